"""Make the golden ``.params`` and ``symbol.json`` files of this directory with MXNet 1.9.1.

The files are kept, so this runs only when one is added::

    python3.11 -m venv oracle
    oracle/bin/pip install numpy==1.23.5 mxnet==1.9.1
    MXNET_ENGINE_TYPE=NaiveEngine MXNET_MKLDNN_ENABLED=0 oracle/bin/python tests/data/make_golden.py

What MXNet 1.9.1 no longer writes (records of older versions, a graph of MXNet 0.8) is put together by hand here, and
loaded with MXNet before it is kept. ``NAME.upgraded.json`` is what MXNet makes of the old ``NAME.json``.
"""

import base64
import json
import pickle
import struct
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import nd, sym

HERE = Path(__file__).parent
DTYPES = ["float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool"]


def counting(dtype, shape=(2, 3)):
    """The content of every dense golden array: 0, 1, 2, ... in the given dtype."""
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def save(name, arrays, np_shape=False):
    with mx.util.np_shape(np_shape):
        nd.save(str(HERE / name), arrays)


def make_params():
    save("v2_dtypes.params", {f"arg:{t}": nd.array(counting(t), dtype=t) for t in DTYPES})
    save("v2_list.params", [nd.array(counting("float32", (3,))), nd.array(counting("int32", (2, 1, 2)), dtype="int32")])
    save("v2_unicode.params", {"aux:é漢": nd.array(counting("float32", (1,)))})
    with mx.util.np_shape(True):
        arrays = [nd.array(counting("float32", shape)) for shape in [(), (0, 2), (2, 3)]]
    save("v3_np_shape.params", arrays, np_shape=True)
    save("empty.params", [])
    bfloat16 = nd.empty((2,), dtype=np.dtype([("bfloat16", np.uint16)]))
    save("bfloat16.params", [bfloat16])  # its data are made definite below
    rows = nd.sparse.row_sparse_array((np.array([[1, 2], [3, 4]], "float32"), [1, 3]), shape=(5, 2))
    csr = nd.sparse.csr_matrix((np.array([1, 2, 3.0]), [0, 2, 1], [0, 1, 1, 3]), shape=(3, 4), dtype="float64")
    zeros = nd.sparse.zeros("csr", (5, 2))
    save("sparse.params", {"rows": rows, "csr": csr, "zeros": zeros, "dense": nd.array(counting("float32"))})

    path = HERE / "bfloat16.params"
    raw = path.read_bytes()
    path.write_bytes(raw[:-12] + struct.pack("<HH", 0x3F80, 0x4020) + raw[-8:])  # 1.0 and 2.5

    data = counting("float32").tobytes()
    body = struct.pack("<iii", 1, 0, 0) + data
    v1 = struct.pack("<Iiqq", 0xF993FAC8, 2, 2, 3) + body
    oldest = struct.pack("<III", 2, 2, 3) + body
    on_gpu = struct.pack("<Iiiqq", 0xF993FAC9, 0, 2, 2, 3) + struct.pack("<iii", 2, 3, 0) + data
    for name, records in {"v1": [v1], "oldest": [oldest], "mixed": [v1, oldest, on_gpu]}.items():
        names = [f"w{i}".encode() for i in range(len(records))]
        content = struct.pack("<QQQ", 0x112, 0, len(records)) + b"".join(records) + struct.pack("<Q", len(names))
        content += b"".join(struct.pack("<Q", len(text)) + text for text in names)
        (HERE / f"{name}.params").write_bytes(content)
        loaded = nd.load(str(HERE / f"{name}.params"))
        assert all((array.asnumpy() == counting("float32")).all() for array in loaded.values()), name


def mlp():
    data = sym.Variable("data")
    with mx.AttrScope(ctx_group="stage1", __remark__='a "quoted" \\ remark\tin é漢'):
        hidden = sym.FullyConnected(data, name="fc1", num_hidden=16, attr={"lr_mult": "2"})
        hidden = sym.BatchNorm(hidden, name="bn1", eps=1e-3, fix_gamma=False)
    hidden = sym.LeakyReLU(hidden, act_type="prelu", name="act1")
    weight = sym.Variable("fc2_weight", shape=(4, 16), init=mx.init.Xavier(), wd_mult=0.5, dtype="float16")
    return sym.SoftmaxOutput(sym.FullyConnected(hidden, weight, name="fc2", num_hidden=4), name="softmax")


def many():
    """More than ten of everything that MXNet then spreads over lines."""
    items = [sym.Variable(f"v{i}") for i in range(12)]
    parts = sym.SliceChannel(sym.concat(*items, dim=1, name="joined"), num_outputs=12, name="parts")
    return sym.Group([parts, items[3] * 2 + items[4], 1 / items[5]])


def loop():
    state, weight = sym.Variable("state"), sym.Variable("weight")
    body = lambda item, states: (item + states[0] * weight, [item])  # noqa: E731
    outputs, states = sym.contrib.foreach(body, sym.Variable("data"), [state], name="loop")
    return sym.Group([outputs, *states])


def while_loop():
    i, state, weight = sym.Variable("i"), sym.Variable("state"), sym.Variable("weight")
    step = lambda i, s: ([s * weight], [i + 1, s + s * weight * 0.5])  # noqa: E731
    outputs, states = sym.contrib.while_loop(lambda i, s: i < 3, step, [i, state], max_iterations=5)
    return sym.Group([*outputs, *states])


def cond():
    x, y = sym.Variable("x"), sym.Variable("y")
    chosen = sym.contrib.cond(sym.sum(x) < sym.sum(y), lambda: [x * y, sym.exp(x)], lambda: [y, x - y * 2])
    return sym.Group(chosen)


def nested_loops():
    data, state, weight = sym.Variable("data"), sym.Variable("state"), sym.Variable("weight")

    def outer(items, s):
        inner = lambda item, r: (item * weight + r, sym.tanh(r * s + item))  # noqa: E731
        return sym.contrib.foreach(inner, items, s)

    outputs, states = sym.contrib.foreach(outer, data, state)
    return sym.Group([outputs, states])


CONTROL_FLOW = {  # the arguments of each, and those whose gradients MXNet computes
    while_loop: ({"i": [0.0], "state": [1.0, 2.0], "weight": [1.0, 1.5]}, ["i", "state", "weight"]),
    cond: ({"x": [1.0, 2.0], "y": [3.0, 0.5]}, ["x", "y"]),
    nested_loops: ({"data": [[[1.0, 2.0], [3.0, -1.0]]] * 2, "state": [0.5, 0.1], "weight": [2.0, 3.0]},
                   ["data", "state", "weight"]),
}  # fmt: skip


def make_control_flow():
    """Symbols with subgraphs, and what they compute; slices of steps that were not made are left out."""
    answers = {}
    for make, (args, names) in CONTROL_FLOW.items():
        with mx.name.NameManager():
            symbol = make()
        (HERE / f"{make.__name__}.json").write_text(symbol.tojson(), encoding="utf-8")
        arrays = {name: nd.array(args[name]) for name in symbol.list_arguments()}
        grads = {name: nd.zeros(arrays[name].shape) for name in names}
        executor = symbol.bind(mx.cpu(), arrays, args_grad=grads)
        outputs = executor.forward(is_train=True)
        steps = 3 if make is while_loop else None
        found = [o.asnumpy()[:steps].tolist() for o in outputs]
        executor.backward([nd.ones(o.shape) for o in outputs])
        answers[make.__name__] = {
            "args": {name: a.asnumpy().tolist() for name, a in arrays.items()}, "outputs": found,
            "grads": {name: g.asnumpy().tolist() for name, g in grads.items()},
        }  # fmt: skip
    (HERE / "control_flow_answers.json").write_text(json.dumps(answers, indent=1), encoding="utf-8")


def old_node(op, name, inputs=(), param=None, attr=None):
    node = {"op": op, "param": param or {}, "name": name, "inputs": list(inputs), "backward_source_id": -1}
    return dict(node, attr=attr) if attr else node


def v08():
    """A graph as MXNet 0.8 wrote it: param and attr, two-element entries, no auxiliary states, unmarked attributes."""
    hidden = {"ctx_group": "stage1", "lr_mult": "2", "weight_lr_mult": "3"}
    nodes = [
        old_node("null", "data"),
        old_node("null", "fc_weight", attr={"wd_mult": "0.5"}),
        old_node("null", "fc_bias"),
        old_node("FullyConnected", "fc", [[0, 0], [1, 0], [2, 0]], {"no_bias": "False", "num_hidden": "4"}, hidden),
        old_node("null", "bn_gamma"),
        old_node("null", "bn_beta"),
        old_node("BatchNorm", "bn", [[3, 0], [4, 0], [5, 0]], {"eps": "0.001"}, {"force_mirroring": "True"}),
        old_node("null", "prelu_gamma"),
        old_node("LeakyReLU", "prelu", [[6, 0], [7, 0]], {"act_type": "prelu"}),
        old_node("argmax", "best", [[8, 0]], {"axis": "-1"}),
    ]
    return {"nodes": nodes, "arg_nodes": [0, 1, 2, 4, 5, 7], "heads": [[9, 0]]}


def v093():
    """A graph as MXNet 0.9.3 wrote it: states are inputs, but do not say how they start."""
    graph = json.loads(sym.BatchNorm(sym.Variable("data"), name="bn").tojson())
    for node in graph["nodes"]:
        node.pop("attrs", None)
    graph["nodes"][1]["attr"] = {"wd_mult": "0"}
    graph["attrs"]["mxnet_version"] = ["int", 903]
    return graph


def make_symbols():
    with mx.name.NameManager():
        for make in (mlp, many, loop):
            (HERE / f"{make.__name__}.json").write_text(make().tojson(), encoding="utf-8")
        with mx.util.np_shape(True):
            (HERE / "np_shape.json").write_text(sym.exp(sym.Variable("data"), name="exp").tojson(), encoding="utf-8")
    for make in (v08, v093):
        text = json.dumps(make(), indent=1)
        (HERE / f"{make.__name__}.json").write_text(text, encoding="utf-8")
        upgraded = sym.load_json(text).tojson()
        (HERE / f"{make.__name__}.upgraded.json").write_text(upgraded, encoding="utf-8")


# ---- networks of layers ----------------------------------------------------------------------------------------------
def lenet():
    x = sym.Variable("data")
    for i, filters in enumerate((4, 6)):
        x = sym.Convolution(x, kernel=(3, 3), num_filter=filters, name=f"conv{i}")
        x = sym.Pooling(sym.Activation(x, act_type="tanh"), kernel=(2, 2), stride=(2, 2), pool_type="max", name=f"pool{i}")
    x = sym.Activation(sym.FullyConnected(sym.Flatten(x), num_hidden=12, name="fc0"), act_type="relu")
    return sym.FullyConnected(x, num_hidden=10, name="fc1")


def residual():
    """Two blocks with shortcuts, of plain, grouped and strided convolutions, and a way back up."""
    x = sym.Convolution(sym.Variable("data"), kernel=(3, 3), pad=(1, 1), num_filter=4, no_bias=True, name="stem")
    x = sym.Pooling(sym.relu(x), kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max", pooling_convention="full")
    for i, stride in enumerate((1, 2)):
        y = sym.Convolution(x, kernel=(3, 3), stride=(stride,) * 2, pad=(1, 1), num_filter=4, num_group=4, name=f"b{i}a")
        y = sym.Convolution(sym.relu(y), kernel=(3, 3), pad=(2, 2), dilate=(2, 2), num_filter=4, name=f"b{i}b")
        short = x if stride == 1 else sym.Convolution(x, kernel=(1, 1), stride=(2, 2), num_filter=4, no_bias=True, name="short")
        x = sym.relu(y + short)
    up = sym.Deconvolution(x, kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_filter=2, name="up")
    large = sym.UpSampling(up, scale=2, sample_type="nearest", num_args=1)
    pooled = sym.Pooling(large, kernel=(3, 3), pad=(1, 1), pool_type="avg", count_include_pad=False)
    whole = sym.Pooling(x, global_pool=True, kernel=(1, 1), pool_type="avg")
    return sym.FullyConnected(sym.Concat(sym.Flatten(pooled), sym.Flatten(whole)), num_hidden=5, name="fc")


def make_networks():
    """Write the graphs, and arrays: parameters, data, head gradients, the output, and the gradients of all arguments."""
    for make, shape in ((lenet, (2, 1, 14, 14)), (residual, (2, 2, 11, 11))):
        with mx.name.NameManager():
            net = make()
        net.save(str(HERE / f"{make.__name__}.json"))
        shapes, (out,), _ = net.infer_shape(data=shape)
        rng = np.random.RandomState(1)
        arrays = {
            k: nd.array(rng.uniform(-1, 1, s) / max(np.prod(s[1:]), 1) ** 0.5) for k, s in zip(net.list_arguments(), shapes)
        }
        arrays["data"] = nd.array(rng.uniform(-1, 1, shape))
        grads = {k: nd.zeros(a.shape) for k, a in arrays.items()}
        executor = net.bind(mx.cpu(), arrays, grads)
        head = nd.array(rng.uniform(-1, 1, out))
        output = executor.forward(is_train=True)[0].copy()
        executor.backward(head)
        kept = {f"arg:{k}": a for k, a in arrays.items()} | {f"grad:{k}": a for k, a in grads.items()}
        save(f"{make.__name__}.params", kept | {"head": head, "output": output})


#: Optimizers whose states are kept, with their parameters; a name may be followed by how the weights are stored.
OPTIMIZERS = {
    "sgd": {"momentum": 0.9}, "sgd float16": {"momentum": 0.9}, "sgd row_sparse": {"momentum": 0.9}, "signum": {}, "ftml": {},
    "lars": {"momentum": 0.9}, "lbsgd": {"momentum": 0.9, "batch_scale": 3}, "lamb": {}, "dcasgd": {}, "adagrad": {},
    "nag": {"momentum": 0.9}, "adam": {}, "adam float16": {}, "adam row_sparse": {}, "rmsprop": {"centered": True},
    "adadelta": {}, "ftrl": {}, "adamax": {"clip_gradient": np.float32(0.5)}, "nadam": {}, "ccsgd": {"momentum": 0.5},
    "test": {}, "sgld": {}, "groupadagrad": {},
}  # fmt: skip
SCHEDULERS = {
    "sgd": lambda: mx.lr_scheduler.FactorScheduler(1, 0.5), "ftrl": lambda: mx.lr_scheduler.PolyScheduler(10, 0.3),
    "adam": lambda: mx.lr_scheduler.MultiFactorScheduler([1, 2], 0.5, warmup_steps=1),
    "nag": lambda: mx.lr_scheduler.CosineScheduler(10, 0.1, np.float32(0.01)),
}  # fmt: skip


def make_states():
    """Write states (and optimizers) after two steps as MXNet pickles them, the weights then and after a third step."""
    rng = np.random.RandomState(3)
    weights = [rng.randn(3, 2).astype("float32"), rng.randn(4, 1).astype("float32")]
    grads = [[rng.randn(*w.shape).astype("float32") for w in weights] for _ in range(3)]
    net = sym.FullyConnected(sym.Variable("d"), sym.Variable("a_weight", lr_mult=0.5), sym.Variable("b_bias"), num_hidden=3)
    kept = {}
    for case, params in OPTIMIZERS.items():
        name, _, stored = case.partition(" ")
        more = {} if name == "groupadagrad" else {"wd": 0.01}
        more |= {"lr_scheduler": SCHEDULERS[case]()} if case in SCHEDULERS else {"learning_rate": np.float64(0.125)}
        more["multi_precision"] = stored == "float16"
        optimizer = mx.optimizer.create(name, param_idx2name={0: "a_weight", 1: "b_bias"}, sym=net, **more, **params)
        update = mx.optimizer.get_updater(optimizer)

        def held(array, stored=stored):
            array = nd.array(array, dtype="float16" if stored == "float16" else "float32")
            return array.tostype("row_sparse") if stored == "row_sparse" else array

        own = [held(w) for w in weights]
        for step in grads[:2]:
            _update(update, own, map(held, step))
        protocols = range(6) if case in SCHEDULERS or stored else [4]
        pickles = [pickle.dumps((update.states, update.optimizer), protocol) for protocol in protocols]
        pickles += [update.get_states(dump_optimizer=False)]
        before = [w.asnumpy().tolist() for w in own]
        _update(update, own, map(held, grads[2]))
        kept[case] = [[base64.b64encode(p).decode() for p in pickles], before, [w.asnumpy().tolist() for w in own]]
    text = json.dumps({"grads": [g.tolist() for g in grads[2]], "cases": kept}, indent=0)
    (HERE / "states.json").write_text(text + "\n")


def _update(update, weights, grads):
    for index, (weight, grad) in enumerate(zip(weights, grads)):
        several = update.aggregate_updates
        update([index] if several else index, [grad] if several else grad, [weight] if several else weight)


if __name__ == "__main__":
    make_params()
    make_symbols()
    make_control_flow()
    make_networks()
    make_states()
