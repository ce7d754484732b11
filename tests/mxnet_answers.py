"""Ask MXNet 1.9.1 what names, attributes and shapes random programs get; the answers are kept in ``data``.

As ``data/make_golden.py`` it runs only when something is added::

    MXNET_ENGINE_TYPE=NaiveEngine MXNET_MKLDNN_ENABLED=0 oracle/bin/python tests/mxnet_answers.py

``scopes.json`` holds programs of scopes, ``executors.json`` runs of executors, ``updates.json`` steps of optimizers,
``models.json`` models with normalisation and losses, ``partial_shapes.json`` calls whose shapes are known in part: 0 is an
unknown size, an empty list an unknown shape (under ``np_shape``: -1 and None).  The functions that run them are those of the
tests, given MXNet as `mx`.
"""

import json
import random
from pathlib import Path

DATA = Path(__file__).parent / "data"

# ---- scopes ---------------------------------------------------------------------------------------------------------
SCOPES = {
    "attr": lambda mx, key, value: mx.AttrScope(**{key: value}),
    "names": lambda mx: mx.name.NameManager(),
    "prefix": lambda mx, text: mx.name.Prefix(text),
    "device": lambda mx, number: mx.cpu(number),
}
SYMBOLS = {
    "variable": lambda mx, name, attr: mx.sym.Variable(name, attr=attr),
    "exp": lambda mx, name, attr: mx.sym.exp(mx.sym.Variable("x"), name=name, attr=attr),
    "sum": lambda mx, name, attr: mx.sym.Variable("x") + mx.sym.Variable("y"),
    "times": lambda mx, name, attr: mx.sym.elemwise_mul(mx.sym.Variable("x"), mx.sym.Variable("y"), name=name, attr=attr),
}


def scope_program(rng):
    """Return a random list of steps: scopes entered and left, symbols made, what is in force assigned."""
    steps, depth = [["names"]], 1
    for _ in range(rng.randint(4, 14)):
        choice = rng.random()
        if choice < 0.35:
            kind = rng.choice(list(SCOPES))
            arguments = {"attr": [f"__{rng.choice('abc')}__", rng.choice("123")], "names": [],
                         "prefix": [rng.choice("pqr") + "_"], "device": [rng.randint(1, 3)]}[kind]  # fmt: skip
            steps.append([kind, *arguments])
            depth += 1
        elif choice < 0.5 and depth > 1:
            steps.append(["leave"])
            depth -= 1
        elif choice < 0.6:
            steps.append(["assign", rng.choice(["attr", "names", "device"]), rng.choice("stu")])
        else:
            kind = rng.choice(list(SYMBOLS))
            name = rng.choice(["v", "w"]) if kind == "variable" else rng.choice([None, None, "n", ""])
            steps.append(["make", kind, name, rng.choice([None, {}, {"__a__": "own"}])])
    return steps + [["leave"]] * depth


def run_scopes(mx, steps):
    """Run a program; return what each symbol is called, its attributes, and the device in force."""
    kept = mx.AttrScope.current, mx.name.NameManager.current, mx.Context.default_ctx
    entered, seen = [], []
    for step in steps:
        if step[0] == "leave":
            entered.pop().__exit__(None, None, None)
        elif step[0] == "make":
            made = SYMBOLS[step[1]](mx, *step[2:])
            seen.append([made.name, made.list_attr(), str(mx.current_context()), str(mx.Context.default_ctx)])
        elif step[0] == "assign":
            if step[1] == "attr":
                mx.AttrScope.current = mx.AttrScope(__assigned__=step[2])
            elif step[1] == "names":
                mx.name.NameManager.current = mx.name.Prefix(step[2])
            else:
                mx.Context.default_ctx = mx.cpu(ord(step[2]))
        else:
            entered.append(SCOPES[step[0]](mx, *step[1:]))
            entered[-1].__enter__()
    mx.AttrScope.current, mx.name.NameManager.current, mx.Context.default_ctx = kept
    return seen


# ---- shapes that are known in part ----------------------------------------------------------------------------------
#: operator, parameters, shapes of the inputs.
CALLS = [
    ["exp", {}, [[2, 3]]],
    ["elemwise_add", {}, [[2, 3], [2, 3]]],
    ["add_n", {}, [[2, 3], [2, 3], [2, 3]]],
    ["broadcast_add", {}, [[2, 3], [2, 3]]],
    ["broadcast_mul", {}, [[2, 1, 4], [1, 3, 4]]],
    ["broadcast_maximum", {}, [[2, 3, 4], [1, 1, 1]]],
    ["broadcast_equal", {}, [[2, 1], [1, 5]]],
    ["_plus_scalar", {"scalar": 2}, [[2, 3]]],
    ["sum", {}, [[2, 3, 4]]],
    ["sum", {"axis": 1}, [[2, 3, 4]]],
    ["sum", {"axis": (0, 2), "keepdims": True}, [[2, 3, 4]]],
    ["mean", {"axis": 1, "exclude": True}, [[2, 3, 4]]],
    ["max", {"axis": -1}, [[2, 3]]],
    ["norm", {"axis": 1}, [[2, 3]]],
    ["argmax", {"axis": 1}, [[2, 3, 4]]],
    ["argmin", {"axis": 0, "keepdims": True}, [[2, 3]]],
    ["argmax_channel", {}, [[2, 3]]],
    ["dot", {}, [[2, 3], [3, 4]]],
    ["dot", {"transpose_a": True}, [[3, 2], [3, 4]]],
    ["dot", {"transpose_b": True}, [[2, 3], [4, 3]]],
    ["dot", {}, [[2, 3, 4], [4, 5]]],
    ["dot", {}, [[3], [3]]],
    ["batch_dot", {}, [[5, 2, 3], [5, 3, 4]]],
    ["batch_dot", {"transpose_a": True, "transpose_b": True}, [[5, 3, 2], [5, 4, 3]]],
    ["FullyConnected", {"num_hidden": 4}, [[2, 3], [4, 3], [4]]],
    ["FullyConnected", {"num_hidden": 4, "no_bias": True, "flatten": False}, [[2, 5, 3], [4, 3]]],
    ["FullyConnected", {"num_hidden": 4, "no_bias": True}, [[2, 5, 3], [4, 15]]],
    ["Concat", {"dim": 1}, [[2, 3], [2, 4]]],
    ["Concat", {"dim": 0}, [[2, 3], [4, 3], [1, 3]]],
    ["stack", {"axis": 1}, [[2, 3], [2, 3]]],
    ["SliceChannel", {"num_outputs": 2, "axis": 1}, [[3, 4]]],
    ["SliceChannel", {"num_outputs": 4, "axis": 1, "squeeze_axis": True}, [[3, 4]]],
    ["_split_v2", {"indices": (0, 1), "axis": 1}, [[3, 4]]],
    ["_split_v2", {"indices": (), "sections": 2, "axis": 0}, [[4, 3]]],
    ["tile", {"reps": (2, 3)}, [[2, 3]]],
    ["tile", {"reps": (2, 1, 3)}, [[2, 3]]],
    ["tile", {"reps": (2,)}, [[2, 3]]],
    ["repeat", {"repeats": 2, "axis": 1}, [[2, 3]]],
    ["repeat", {"repeats": 2}, [[2, 3]]],
    ["slice", {"begin": (1,), "end": (2,)}, [[3, 4]]],
    ["slice", {"begin": (None, 1), "end": (None, 3)}, [[3, 4]]],
    ["slice", {"begin": (0, -2), "end": (2, None), "step": (1, 1)}, [[3, 4]]],
    ["slice_axis", {"axis": 1, "begin": 1, "end": 3}, [[3, 4]]],
    ["slice_axis", {"axis": 0, "begin": -2, "end": None}, [[3, 4]]],
    ["slice_like", {}, [[3, 4], [2, 3]]],
    ["slice_like", {"axes": (1,)}, [[3, 4], [2, 3]]],
    ["where", {}, [[2, 3], [2, 3], [2, 3]]],
    ["where", {}, [[2], [2, 3], [2, 3]]],
    ["Reshape", {"shape": (6, 2)}, [[3, 4]]],
    ["Reshape", {"shape": (0, -1)}, [[3, 4, 2]]],
    ["Reshape", {"shape": (-1, 0)}, [[3, 4]]],
    ["Reshape", {"shape": (-3, 0)}, [[3, 4, 2]]],
    ["Reshape", {"shape": (-4, 2, -1, 0)}, [[6, 4]]],
    ["Reshape", {"shape": (-2, 1)}, [[3, 4]]],
    ["Reshape", {"shape": (0, -1), "reverse": True}, [[3, 4, 2]]],
    ["Flatten", {}, [[2, 3, 4]]],
    ["expand_dims", {"axis": 1}, [[2, 3]]],
    ["expand_dims", {"axis": -1}, [[2, 3]]],
    ["squeeze", {"axis": 1}, [[2, 1, 3]]],
    ["squeeze", {}, [[2, 1, 3]]],
    ["transpose", {}, [[2, 3, 4]]],
    ["transpose", {"axes": (1, 0, 2)}, [[2, 3, 4]]],
    ["SwapAxis", {"dim1": 0, "dim2": 2}, [[2, 3, 4]]],
    ["reverse", {"axis": 1}, [[2, 3]]],
    ["broadcast_to", {"shape": (2, 3)}, [[1, 3]]],
    ["broadcast_to", {"shape": (0, 3)}, [[2, 1]]],
    ["broadcast_axis", {"axis": 1, "size": 3}, [[2, 1]]],
    ["broadcast_like", {}, [[1, 3], [2, 3]]],
    ["broadcast_like", {"lhs_axes": (0,), "rhs_axes": (1,)}, [[1, 3], [2, 5]]],
    ["reshape_like", {}, [[6], [2, 3]]],
    ["Cast", {"dtype": "float16"}, [[2, 3]]],
    ["clip", {"a_min": 0, "a_max": 1}, [[2, 3]]],
    ["Activation", {"act_type": "relu"}, [[2, 3]]],
    ["LeakyReLU", {}, [[2, 3]]],
    ["LeakyReLU", {"act_type": "prelu"}, [[2, 3, 4], [3]]],
    ["softmax", {}, [[2, 3]]],
    ["log_softmax", {"axis": 0}, [[2, 3]]],
    ["SoftmaxActivation", {}, [[2, 3]]],
    ["softmax_cross_entropy", {}, [[2, 3], [2]]],
    ["smooth_l1", {"scalar": 1.0}, [[2, 3]]],
    ["shape_array", {}, [[2, 3]]],
    ["size_array", {}, [[2, 3]]],
    ["zeros_like", {}, [[2, 3]]],
    ["_zeros", {"shape": (2, 3)}, []],
    ["_ones", {"shape": (0, 3)}, []],
    ["_arange", {"start": 0, "stop": 6}, []],
    ["_contrib_arange_like", {"axis": 1}, [[2, 3]]],
    ["_contrib_arange_like", {}, [[2, 3]]],
    ["_contrib_quadratic", {"a": 1, "b": 2, "c": 3}, [[2, 3]]],
    ["_contrib_div_sqrt_dim", {}, [[2, 3]]],
    ["amp_multicast", {"num_outputs": 2}, [[2, 3], [4]]],
    ["_slice_assign_scalar", {"scalar": 1, "begin": (0,), "end": (1,)}, [[2, 3]]],
]
LATER_CALLS = [
    ["linalg_gemm", {"transpose_b": True}, [[5, 2, 3], [5, 4, 3], [5, 2, 4]]],
    ["linalg_gemm2", {}, [[2, 3], [3, 4]]],
    ["linalg_gemm2", {"transpose_a": True}, [[5, 3, 2], [5, 3, 4]]],
    ["linalg_syrk", {"transpose": True}, [[3, 4]]],
    ["linalg_syrk", {}, [[2, 3, 4]]],
    ["linalg_trmm", {}, [[3, 3], [3, 4]]],
    ["linalg_potrf", {}, [[3, 3]]],
    ["Crop", {"h_w": (2, 3)}, [[2, 3, 5, 6]]],
    ["Crop", {"num_args": 2}, [[2, 3, 5, 6], [1, 1, 2, 3]]],
    ["pick", {}, [[3, 4], [3]]],
    ["pick", {"axis": 0, "keepdims": True}, [[3, 4], [4]]],
    ["take", {}, [[3, 4], [2]]],
    ["Embedding", {"input_dim": 5, "output_dim": 4}, [[2, 3], [5, 4]]],
    ["one_hot", {"depth": 4}, [[2, 3]]],
    ["gather_nd", {}, [[3, 4], [2, 5]]],
    ["Convolution", {"kernel": (3, 3), "num_filter": 4}, [[2, 3, 8, 9], [4, 3, 3, 3], [4]]],
    ["Convolution", {"kernel": (3,), "num_filter": 4, "stride": (2,), "no_bias": True}, [[2, 3, 8], [4, 3, 3]]],
    ["Deconvolution", {"kernel": (3, 3), "num_filter": 4}, [[2, 3, 4, 5], [3, 4, 3, 3]]],
    ["Pooling", {"kernel": (2, 2), "stride": (2, 2)}, [[2, 3, 8, 9]]],
    ["Pooling", {"global_pool": True, "kernel": (1, 1)}, [[2, 3, 8, 9]]],
    ["UpSampling", {"scale": 2, "sample_type": "nearest"}, [[2, 3, 4, 5]]],
    ["LayerNorm", {}, [[2, 3], [3], [3]]],
    ["InstanceNorm", {}, [[2, 3, 4], [3], [3]]],
    ["L2Normalization", {}, [[2, 3, 4]]],
    ["Dropout", {}, [[2, 3]]],
    ["Pad", {"mode": "constant", "pad_width": (0, 0, 0, 0, 1, 1, 2, 2)}, [[2, 3, 4, 5]]],
    ["depth_to_space", {"block_size": 2}, [[2, 4, 3, 5]]],
    ["SoftmaxOutput", {}, [[2, 3], [2]]],
    ["SoftmaxOutput", {"multi_output": True}, [[2, 3, 4], [2, 4]]],
    ["LinearRegressionOutput", {}, [[2, 3], [2, 3]]],
    ["SequenceMask", {"use_sequence_length": True}, [[3, 2, 4], [2]]],
    ["SequenceLast", {}, [[3, 2, 4]]],
    ["topk", {"k": 2}, [[3, 4]]],
    ["sort", {}, [[3, 4]]],
    ["RNN", {"mode": "gru", "state_size": 3, "num_layers": 1}, [[5, 2, 4], [81], [1, 2, 3]]],
]


def hidden(rng, shape, np_shape):
    """Return a shape of which some sizes, or all that is known, are left out."""
    choice = rng.random()
    if choice < 0.15:
        return None if np_shape else []
    unknown = -1 if np_shape else 0
    return list(shape) if choice < 0.4 else [unknown if rng.random() < 0.4 else d for d in shape]


def call_of(mx, name, params, n):
    """Return an operator called on the variables ``x0``, ``x1``..."""
    space = mx.sym if hasattr(mx.sym, name) else mx.sym._internal
    if name.startswith("_contrib_"):
        space, name = mx.sym.contrib, name[len("_contrib_") :]
    return getattr(space, name)(*[mx.sym.Variable(f"x{i}") for i in range(n)], **params, name="y")


def partial_shapes(mx, call, given, out):
    """Return what is inferred of the inputs and outputs: shapes as lists, None where the call is refused.

    `out` is what is known of the (only) output: it is added to another variable.
    """
    name, params, shapes = call
    y = call_of(mx, name, {k: tuple(v) if isinstance(v, list) else v for k, v in params.items()}, len(shapes))
    known = {f"x{i}": shape for i, shape in enumerate(given)}
    if out is not False:
        y = mx.sym.elemwise_add(y, mx.sym.Variable("out"))
        known["out"] = out
    try:
        found = y.infer_shape_partial(**{k: tuple(s) for k, s in known.items() if s is not None})
    except Exception:
        return None
    return [[None if s is None else list(s) for s in part] for part in found[:2]]


def shape_questions(mx, rng, calls):
    questions = []
    for np_shape in (False, True):
        with mx.util.np_shape(np_shape):
            for call in calls:
                outs = (partial_shapes(mx, call, call[2], False) or [[], []])[1]
                for _ in range(3 if np_shape else 8):
                    given = [hidden(rng, s, np_shape) for s in call[2]]
                    out = hidden(rng, outs[0], np_shape) if len(outs) == 1 and outs[0] and rng.random() < 0.5 else False
                    if [call, given, out, np_shape] not in [q[:4] for q in questions]:
                        questions.append([call, given, out, np_shape, partial_shapes(mx, call, given, out)])
    return questions


# ---- executors ------------------------------------------------------------------------------------------------------
#: Graphs over ``a`` and ``b`` of one shape; their gradients read inputs, which MXNet keeps, and no outputs.
GRAPHS = {
    "times": lambda mx, a, b: a * b,
    "two": lambda mx, a, b: mx.sym.Group([a * b, a + b]),
    "squares": lambda mx, a, b: mx.sym.square(a) * b + a,
    "only a": lambda mx, a, b: mx.sym.Group([a * 2, mx.sym.BlockGrad(b)]),
}


def executor_program(rng):
    """Return a random list of calls of an executor's methods."""
    graph = rng.choice(list(GRAPHS))
    heads = 2 if graph in ("two", "only a") else 1
    req = rng.choice(["write", "add", "null", {"a": "add"}, {"a": "write", "b": "add"}, ["write", "null"]])
    steps, rows = [["forward", False, []]] if graph == "squares" else [], 3  # else MXNet reads memory never written
    for _ in range(rng.randint(3, 9)):
        choice = rng.random()
        if choice < 0.3:
            steps.append(["forward", rng.random() < 0.6, [rng.randint(0, 5)] if rng.random() < 0.3 else []])
        elif choice < 0.65:
            steps.append(["backward", rng.choice(["list", "tuple", "dict", "more"]), heads, rng.randint(1, 3)])
        elif choice < 0.75:
            steps.append(["set", rng.choice("ab"), rng.randint(0, 5)])
            steps.append(["forward", rng.random() < 0.5, []])
        elif choice < 0.85:
            steps.append(["copy", rng.choice([["a"], ["a", "b"], ["c", "a"]]), rng.randint(0, 5), rng.random() < 0.5])
            steps.append(["forward", True, []])
        else:
            new = rng.choice([1, 2, 3, 4])
            steps.append(["reshape", new, new > rows or rng.random() < 0.2])
            steps.append(["forward", True, []])
            rows = new
    return [graph, req, steps]


def run_executor(mx, np, program):
    """Run a program; return after each call the outputs (as far as they were computed), gradients, arguments."""
    graph, req, steps = program
    symbol = GRAPHS[graph](mx, mx.sym.Variable("a"), mx.sym.Variable("b"))
    arrays = {name: mx.nd.array(np.arange(6).reshape(3, 2) + k) for k, name in enumerate("ab")}
    executor = symbol.bind(mx.cpu(), arrays, {k: mx.nd.zeros((3, 2)) for k in arrays}, req)
    first, computed, seen = executor, False, []
    for step in steps:
        try:
            executor = _step(mx, executor, step)
        except Exception as problem:
            seen.append("Error" if isinstance(problem, (mx.base.MXNetError, ValueError, TypeError)) else repr(problem))
            continue
        computed = computed or step[0] == "forward"
        shown = [executor.grad_arrays, executor.arg_arrays, first.arg_arrays]
        if computed and step[0] != "reshape":
            shown.append(executor.outputs)
        seen.append([[None if x is None else x.asnumpy().tolist() for x in arrays] for arrays in shown])
        if step[0] == "reshape" and step[2]:  # MXNet leaves the new arrays as they are
            for x in executor.arg_arrays + [g for g in executor.grad_arrays if g is not None]:
                x[:] = 1
            seen.pop()
    return seen


def _step(mx, executor, step):
    shape = executor.arg_dict["a"].shape
    if step[0] == "forward":
        executor.forward(is_train=step[1], **({"a": mx.nd.full(shape, *step[2])} if step[2] else {}))
    elif step[0] == "backward":
        heads = [mx.nd.full(shape, step[3] + k) for k in range(step[2])]
        if step[1] == "dict":
            heads = dict(zip(executor.output_dict, heads), another=mx.nd.ones(1))
        elif step[1] == "more":
            heads.append(mx.nd.ones((7,)))
        executor.backward(tuple(heads) if step[1] == "tuple" else heads)
    elif step[0] == "set":
        executor.arg_dict[step[1]][:] = step[2]
    elif step[0] == "copy":
        params = {name: mx.nd.full(shape, step[2], dtype="float64") for name in step[1]}
        executor.copy_params_from(params, allow_extra_params=step[3])
    else:
        executor = executor.reshape(a=(step[1], 2), b=(step[1], 2), allow_up_sizing=step[2])
    return executor


# ---- updates of optimizers -------------------------------------------------------------------------------------------
#: Function, its arrays, parameters that it must have and parameters that it may have.  Arrays: ``w`` weight, ``g`` gradient,
#: ``s`` a state, ``p`` a positive one, ``v`` one that is larger than a square, ``3`` a float32 copy of the weight, ``1`` and
#: ``2`` so many numbers.  Upper case: float16.
_SGD = ["wd", "rescale_grad", "clip_gradient"]
_BETAS = ["beta1", "beta2", "epsilon"]
_MANY = {"lrs": [0.1, 0.3], "wds": [0.2, 0.05], "num_weights": 2}
_LAMBS = {"learning_rates": [0.1, 0.3], "wds": [0.2, 0.05], "num_tensors": 2, "step_count": [1, 3]}
_MORE_LAMB = ["rescale_grad", "clip_gradient", *_BETAS, "bias_correction", "lower_bound", "upper_bound"]
UPDATES = [
    ["sgd_update", "wg", {"lr": 0.1}, _SGD],
    ["sgd_mom_update", "wgs", {"lr": 0.1}, ["momentum", *_SGD]],
    ["nag_mom_update", "wgs", {"lr": 0.1}, ["momentum", *_SGD]],
    ["signsgd_update", "wg", {"lr": 0.1}, _SGD],
    ["signum_update", "wgs", {"lr": 0.1}, ["momentum", "wd_lh", *_SGD]],
    ["adam_update", "wgsp", {"lr": 0.1}, [*_BETAS, *_SGD]],
    ["_adamw_update", "wgsp1", {"lr": 0.1, "eta": 0.7}, ["wd", "clip_gradient", *_BETAS]],
    [
        "ftml_update",
        "wgpps",
        {"lr": 0.1, "t": 3, "beta2": 0.6},
        ["beta1", "epsilon", "wd", "rescale_grad", "clip_grad"],
    ],
    ["ftrl_update", "wgsp", {"lr": 0.1}, ["lamda1", "beta", *_SGD]],
    ["rmsprop_update", "wgp", {"lr": 0.1}, ["gamma1", "epsilon", "clip_weights", *_SGD]],
    ["rmspropalex_update", "wgvps", {"lr": 0.1}, ["gamma1", "gamma2", "epsilon", "clip_weights", *_SGD]],
    [
        "lamb_update_phase1",
        "wgsp",
        {"wd": 0.2, "t": 3, "beta2": 0.6},
        ["beta1", "bias_correction", "epsilon", *_SGD[1:]],
    ],
    ["lamb_update_phase2", "wg11", {"lr": 0.1}, ["lower_bound", "upper_bound"]],
    ["mp_sgd_update", "WG3", {"lr": 0.1}, _SGD],
    ["mp_sgd_mom_update", "WGs3", {"lr": 0.1}, ["momentum", *_SGD]],
    ["mp_nag_mom_update", "WGs3", {"lr": 0.1}, ["momentum", *_SGD[1:]]],
    ["_mp_adamw_update", "WGsp31", {"lr": 0.1, "eta": 0.7}, ["wd", "clip_gradient", *_BETAS]],
    ["mp_lamb_update_phase1", "WGsp3", {"wd": 0.2, "t": 3, "beta2": 0.6}, ["beta1", "bias_correction", *_SGD[1:]]],
    ["multi_sgd_update", "wgwg", _MANY, _SGD[1:]],
    ["multi_sgd_mom_update", "wgswgs", _MANY, ["momentum", *_SGD[1:]]],
    ["multi_mp_sgd_update", "WG3WG3", _MANY, _SGD[1:]],
    ["multi_mp_sgd_mom_update", "WGs3WGs3", _MANY, ["momentum", *_SGD[1:]]],
    ["preloaded_multi_sgd_update", "wgwg22", {"num_weights": 2}, _SGD[1:]],
    ["preloaded_multi_sgd_mom_update", "wgswgs22", {"num_weights": 2}, ["momentum", *_SGD[1:]]],
    ["preloaded_multi_mp_sgd_update", "WG3WG322", {"num_weights": 2}, _SGD[1:]],
    ["preloaded_multi_mp_sgd_mom_update", "WGs3WGs322", {"num_weights": 2}, ["momentum", *_SGD[1:]]],
    ["_multi_adamw_update", "wgspwgsp1", {**_MANY, "etas": [0.7, 0.9]}, ["clip_gradient", *_BETAS]],
    ["_multi_mp_adamw_update", "WGsp3WGsp31", {**_MANY, "etas": [0.7, 0.9]}, ["clip_gradient", *_BETAS]],
    ["_multi_lamb_update", "wgspwgsp", _LAMBS, _MORE_LAMB],
    ["_multi_mp_lamb_update", "WGsp3WGsp3", _LAMBS, _MORE_LAMB],
    ["multi_lars", "pppp", {"eta": 0.5, "eps": 0.1}, ["rescale_grad"]],
    ["multi_sum_sq", "wg", {"num_arrays": 2}, []],
    ["multi_all_finite", "wg", {"num_arrays": 2}, []],
]
_VALUES = {
    "wd": 0.2, "rescale_grad": 0.7, "clip_gradient": 0.5, "clip_grad": 0.5, "momentum": 0.8, "wd_lh": 0.3, "beta1": 0.7,
    "beta2": 0.6, "epsilon": 0.05, "lamda1": 0.3, "beta": 0.5, "gamma1": 0.6, "gamma2": 0.5, "clip_weights": 0.6,
    "bias_correction": False, "lower_bound": 0.5, "upper_bound": 1.5,
}  # fmt: skip


def update_program(rng, np, kind, given, may):
    """Return the parameters of a random call, and its arrays as lists."""
    params = {**given, **{k: _VALUES[k] for k in may if rng.random() < 0.5}}
    ranges = {"w": (-1, 1), "g": (-2, 2), "s": (-1, 1), "p": (0.1, 1), "v": (2, 3), "1": (0.5, 2), "2": (0.1, 0.3)}
    weight, arrays = None, []
    for letter in kind:
        size = int(letter) if letter in "12" else 3
        low, high = ranges.get(letter.lower(), (0, 1))
        values = [round(rng.uniform(low, high), 3) for _ in range(size)]
        values = weight if letter == "3" else np.array(values, "float16" if letter.isupper() else "float32").tolist()
        weight = values if letter in "wW" else weight
        arrays.append(values)
    return params, arrays


def run_update(mx, name, kind, params, arrays):
    """Call an update; return its results and what its arrays hold afterwards."""
    made = [mx.nd.array(a, dtype="float16" if k.isupper() else "float32") for a, k in zip(arrays, kind)]
    space = mx.nd._internal if name.startswith("_") else mx.nd
    n = params.get("num_weights", params.get("num_tensors", 1))
    out = [x.copy() for x, k in zip(made, kind) if k in "wW"][:n] if n > 1 else None
    found = getattr(space, name)(*made, out=out, **params)
    found = found if isinstance(found, list) else [found]
    return [[[float(f"{v:.7g}") for v in x.asnumpy().tolist()] for x in part] for part in (found, made)]


def update_answers(mx, np, rng):
    rows = []
    for name, kind, given, may in UPDATES:
        for _ in range(3 if may else 1):
            params, arrays = update_program(rng, np, kind, given, may)
            rows.append([name, kind, params, arrays, run_update(mx, name, kind, params, arrays)])
    return rows


# ---- models with normalisation and losses -----------------------------------------------------------------------------
#: Graphs over ``data``, and its shape.
MODELS = [
    [lambda sym, x: sym.BatchNorm(sym.FullyConnected(x, num_hidden=3, name="fc"), name="bn"), (4, 2)],
    [lambda sym, x: sym.BatchNorm(x, name="bn", fix_gamma=False, eps=0.1, momentum=0.5), (2, 3, 2)],
    [lambda sym, x: sym.BatchNorm(x, name="bn", fix_gamma=False, use_global_stats=True), (2, 3, 2)],
    [lambda sym, x: sym.BatchNorm(x, name="bn", fix_gamma=False, axis=-1), (2, 2, 3)],
    [lambda sym, x: sym.BatchNorm_v1(x, name="bn", fix_gamma=False), (2, 3, 2, 1)],
    [lambda sym, x: sym.contrib.SyncBatchNorm(x, name="bn", fix_gamma=False, key="a"), (2, 3, 2)],
    [lambda sym, x: sym.tanh(sym.BatchNorm(sym.BatchNorm(x, name="bn") * 2, name="bn2", fix_gamma=False)), (4, 3)],
    [lambda sym, x: sym.LayerNorm(x, name="ln", eps=0.1), (2, 3)],
    [lambda sym, x: sym.LayerNorm(x, name="ln", axis=1), (2, 3, 2)],
    [lambda sym, x: sym.GroupNorm(x, name="gn", num_groups=2, eps=0.1), (2, 4, 2)],
    [lambda sym, x: sym.InstanceNorm(x, name="in", eps=0.1), (2, 3, 4)],
    [lambda sym, x: sym.L2Normalization(x, name="l2"), (2, 3, 2)],
    [lambda sym, x: sym.L2Normalization(x, name="l2", mode="channel", eps=0.1), (2, 3, 2)],
    [lambda sym, x: sym.L2Normalization(x, name="l2", mode="spatial"), (2, 3, 2)],
    [lambda sym, x: sym.LRN(x, name="lrn", nsize=3, alpha=0.5, knorm=1.0), (1, 5, 2, 1)],
    [lambda sym, x: sym.SoftmaxOutput(sym.FullyConnected(x, num_hidden=3, name="fc"), name="softmax"), (4, 2)],
    [lambda sym, x: sym.SoftmaxOutput(x, name="s", grad_scale=2, normalization="batch", smooth_alpha=0.3), (4, 3)],
    [lambda sym, x: sym.SoftmaxOutput(x, name="s", use_ignore=True, ignore_label=1, normalization="valid"), (4, 3)],
    [lambda sym, x: sym.SoftmaxOutput(x, name="s", ignore_label=1, normalization="valid"), (4, 3)],
    [lambda sym, x: sym.SoftmaxOutput(x, name="s", multi_output=True), (2, 3, 2, 2)],
    [lambda sym, x: sym.SoftmaxOutput(x, name="s", multi_output=True, normalization="batch"), (2, 3, 2, 2)],
    [
        lambda sym, x: sym.SoftmaxOutput(x, name="s", multi_output=True, normalization="valid", ignore_label=1),
        (2, 3, 4),
    ],
    [lambda sym, x: sym.SoftmaxOutput(x, name="s", preserve_shape=True, normalization="batch"), (2, 3, 4)],
    [lambda sym, x: sym.SoftmaxOutput(x, sym.Variable("label", shape=(2, 3)), normalization="batch"), (2, 3)],
    [lambda sym, x: sym.LinearRegressionOutput(x, name="lro", grad_scale=2), (3, 2)],
    [lambda sym, x: sym.LogisticRegressionOutput(x, name="lro"), (3, 2, 2)],
    [lambda sym, x: sym.MAERegressionOutput(sym.FullyConnected(x, num_hidden=1, name="fc"), name="mae"), (3, 2)],
    [lambda sym, x: sym.MakeLoss(sym.square(x), name="l", grad_scale=3, normalization="batch"), (3, 2)],
    [lambda sym, x: sym.MakeLoss(sym.square(x), name="l", normalization="valid", valid_thresh=0.5), (3, 2)],
    [lambda sym, x: sym.make_loss(sym.square(x), name="l"), (3, 2)],
    [lambda sym, x: sym.SVMOutput(x, name="svm", margin=0.5, regularization_coefficient=0.7), (4, 3)],
    [lambda sym, x: sym.SVMOutput(x, name="svm", use_linear=True), (4, 3)],
]


def run_model(mx, text, arrays):
    """Run the model of a file; return names, inference outputs, training outputs, gradients and states afterwards."""
    y = mx.sym.load_json(text)
    executor = y.simple_bind(mx.cpu(), data=tuple(arrays["data"][0]))
    for name, array in {**executor.arg_dict, **executor.aux_dict}.items():
        array[:] = mx.nd.array(arrays[name][1]).reshape(array.shape)
    names = [y.list_arguments(), y.list_auxiliary_states(), y.list_outputs()]
    inference = executor.forward(is_train=False)[0].copy()
    out = executor.forward(is_train=True)[0].copy()
    executor.backward(mx.nd.array([(k % 5) - 1.5 for k in range(out.size)]).reshape(out.shape))
    found = [[inference], [out], executor.grad_arrays, executor.aux_arrays]
    return [names, *([[float(f"{v:.7g}") for v in x.asnumpy().ravel().tolist()] for x in part] for part in found)]


def model_answers(mx, rng):
    rows = []
    for make, shape in MODELS:
        with mx.name.NameManager():
            y = make(mx.sym, mx.sym.Variable("data"))
        shapes, _, states = y.infer_shape(data=shape)
        arrays = {}
        for name, size in [*zip(y.list_arguments(), shapes), *zip(y.list_auxiliary_states(), states)]:
            low = 0.5 if name.endswith(("gamma", "var")) else -1
            count = 1
            for d in size:
                count *= d
            label = name.endswith("label")
            values = [rng.randint(0, 2) if label else round(rng.uniform(low, 2), 3) for _ in range(count)]
            arrays[name] = [list(size), values]
        rows.append([y.tojson(), arrays, run_model(mx, y.tojson(), arrays)])
    return rows


def read(name):
    return json.loads((DATA / name).read_text(encoding="utf-8"))


def write(name, rows):
    text = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    (DATA / name).write_text(f"[\n{text}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    import mxnet as mx

    rng = random.Random(0)
    programs = [scope_program(rng) for _ in range(60)]
    write("scopes.json", [[steps, run_scopes(mx, steps)] for steps in programs])
    write("partial_shapes.json", [*shape_questions(mx, rng, CALLS), *shape_questions(mx, random.Random(7), LATER_CALLS)])
    import numpy as np

    rng = random.Random(1)
    programs = [executor_program(rng) for _ in range(40)]
    write("executors.json", [[program, run_executor(mx, np, program)] for program in programs])
    rng = random.Random(5)
    write("updates.json", update_answers(mx, np, rng))
    write("models.json", model_answers(mx, random.Random(6)))
