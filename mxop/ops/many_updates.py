"""Optimizer updates of several tensors in one call, and of float16 weights with a float32 copy.

They are made of the steps in :mod:`.optimizer`, called as the pure functions that they are; see there for what the parameters
mean.
"""

from functools import wraps

from ..opdef import F, Floats, Shape, composite, elementwise, get, infer
from ..opdef.params import Spec
from ..support import dtypes
from ..support.errors import OpTypeError, OpValueError
from . import optimizer as one
from ._shared import floats, names_of


def _step(F, step, inputs, **params):
    """Return the results of a step, an operator's name or a function, and the new values of its states: nothing is written."""
    if callable(step):
        return step(F, *inputs, **params)
    op = get(step)
    found = F._invoke(op.pure, list(inputs), op.spec.filled(params))
    return found if isinstance(found, (list, tuple)) else [found]


def _mixed(F, step, weight, grad, states, weight32, *more, **params):
    """Return the results of a step of the float32 copy: the new weights in their own type, the states, the copy."""
    new, *states = _step(F, step, [weight32, F.cast(grad, dtype="float32"), *states, *more], **params)
    return F._cast_like(new, weight), *states, new


def _params_of(op, *without):
    """Return the parameters of another operator."""
    return [p for p in op.spec.params if p.name not in without]


# ---- float16 weights -------------------------------------------------------------------------------------------------
def _mixed_types(op, groups):
    """Let the inputs and outputs of each group, ``groups(**params) -> [(inputs, outputs)...]``, have one floating type.

    All others are float32.
    """

    @op.infer_types
    def _(ins, outs, **params):
        n = len(ins)
        names = names_of(op, n, params)
        types, found = [*ins, *outs], [None] * (n + len(outs))
        for mine, made in groups(**params):
            places = [*mine, *(n + k for k in made)]
            shared = infer.same_type(op.name, [names[k] for k in places], [types[k] for k in places])
            for k, t in zip(places, shared, strict=True):
                found[k] = floats(op, t)
        wide = [k for k, t in enumerate(found) if t is None]
        infer.same_type(op.name, ["the float32 copies", *(names[k] for k in wide)], [dtypes.FLOAT32, *(types[k] for k in wide)])
        found = [dtypes.FLOAT32 if t is None else t for t in found]
        return found[:n], found[n:]


@composite(writes={"weight32": 1}, num_outputs=2, planned=False, extra_params=_params_of(one.sgd_update))
def mp_sgd_update(F, weight, grad, weight32, **params):
    """``sgd_update`` of `weight32`, a float32 copy of `weight`; both are updated.

    >>> w = mx.nd.array([1], dtype="float16")
    >>> w32 = w.astype("float32")
    >>> mx.nd.mp_sgd_update(w, mx.nd.array([4], dtype="float16"), w32, lr=0.125, out=w).item(), w32.item()
    (0.5, 0.5)
    """
    return _mixed(F, "sgd_update", weight, grad, [], weight32, **params)


@composite(writes={"mom": 1, "weight32": 2}, num_outputs=3, planned=False, extra_params=_params_of(one.sgd_mom_update))
def mp_sgd_mom_update(F, weight, grad, mom, weight32, **params):
    """``sgd_mom_update`` of `weight32`, a float32 copy of `weight`, with a float32 state.

    >>> w, g = (mx.nd.array([x], dtype="float16") for x in (1, 4))
    >>> w32, mom = w.astype("float32"), mx.nd.array([2])
    >>> mx.nd.mp_sgd_mom_update(w, g, mom, w32, lr=0.25, momentum=0.75, out=w).item(), mom.item(), w32.item()
    (1.5, 0.5, 1.5)
    """
    return _mixed(F, "sgd_mom_update", weight, grad, [mom], weight32, **params)


@composite(writes={"mom": 1, "weight32": 2}, num_outputs=3, planned=False, extra_params=_params_of(one.nag_mom_update))
def mp_nag_mom_update(F, weight, grad, mom, weight32, **params):
    """``nag_mom_update`` of `weight32`, a float32 copy of `weight`, with a float32 state, and weight decay from the new weight.

    >>> w, g = (mx.nd.array([x], dtype="float16") for x in (1, 4))
    >>> w32, mom = w.astype("float32"), mx.nd.array([1])
    >>> mx.nd.mp_nag_mom_update(w, g, mom, w32, lr=0.25, momentum=0.5, out=w).item(), mom.item(), w32.item()
    (-0.25, -0.5, -0.25)
    """
    return _mixed(F, "_nag_mom_update", weight, grad, [mom], weight32, **params)


@composite(name="_mp_adamw_update", writes={"mean": 1, "var": 2, "weight32": 3}, num_outputs=4, planned=False,
           extra_params=_params_of(one.adamw_update))  # fmt: skip
def mp_adamw_update(F, weight, grad, mean, var, weight32, rescale_grad, **params):
    """``adamw_update`` of `weight32`, a float32 copy of `weight`, with float32 states.

    >>> w, g = (mx.nd.array([x], dtype="float16") for x in (1, 4))
    >>> w32, mean, var = w.astype("float32"), mx.nd.array([0]), mx.nd.array([0])
    >>> rates = {"lr": 1, "eta": 0.5, "beta1": 0.5, "beta2": 0.75}
    >>> mx.nd.contrib.mp_adamw_update(w, g, mean, var, w32, 1, out=w, **rates).item(), w32.item()
    (0.5, 0.5)
    """
    return _mixed(F, "_adamw_update", weight, grad, [mean, var], weight32, rescale_grad, **params)


@composite(writes={"mean": 1, "var": 2}, num_outputs=3, planned=False, extra_params=_params_of(one.lamb_update_phase1))
def mp_lamb_update_phase1(F, weight, grad, mean, var, weight32, **params):
    """``lamb_update_phase1`` of `weight32`, a float32 copy of `weight`; the result, the direction, is float32.

    >>> w, g = (mx.nd.array([x], dtype="float16") for x in (1, 4))
    >>> mean, var, w32 = mx.nd.array([0]), mx.nd.array([0]), mx.nd.array([1])
    >>> f"{mx.nd.mp_lamb_update_phase1(w, g, mean, var, w32, t=1, wd=0.5).item():.4f}"
    '1.5000'
    """
    return _step(F, "lamb_update_phase1", [weight32, F.cast(grad, dtype="float32"), mean, var], **params)


@composite(writes={"weight32": 1}, num_outputs=2, planned=False, extra_params=_params_of(one.lamb_update_phase2))
def mp_lamb_update_phase2(F, weight, g, r1, r2, weight32, **params):
    """``lamb_update_phase2`` of `weight32`, a float32 copy of `weight`; both are updated.

    >>> w = mx.nd.array([3, 4], dtype="float16")
    >>> w32, g = w.astype("float32"), mx.nd.array([0, 2])
    >>> mx.nd.mp_lamb_update_phase2(w, g, w32.norm(), g.norm(), w32, lr=0.5, out=w).asnumpy().tolist()
    [3.0, 1.5]
    """
    new = F.lamb_update_phase2(weight32, g, r1, r2, **params)
    return F._cast_like(new, weight), new


for _op in (mp_sgd_update, mp_sgd_mom_update, mp_nag_mom_update, mp_adamw_update):
    _mixed_types(_op, lambda **params: [((0, 1), (0,))])
_mixed_types(mp_lamb_update_phase1, lambda **params: [((0, 1), ())])
_mixed_types(mp_lamb_update_phase2, lambda **params: [((0,), (0,))])


# ---- several tensors -------------------------------------------------------------------------------------------------
#: What lists with a number for each tensor are called, and the parameter of the step that gets one of them.
_LISTS = {"lrs": "lr", "learning_rates": "lr", "wds": "wd", "etas": "eta", "step_count": "t"}


def _several(step, params_of=None, *, name=None, states=0, mixed=False, after=0, count="num_weights"):
    """Decorate a function without a body: the operator that does one step for each of several tensors.

    Parameters
    ----------
    step : str or callable
        The step, as ``_step`` takes it.
    params_of : Operator, optional
        Whose parameters the step has; by default it is the operator that does it.
    name : str, optional
        Of the operator, by default that of the function.
    states : int
        Arrays of each tensor, after weight and gradient, that are written.
    mixed : bool
        Whether a float32 copy of the weight follows them, and all but weight and gradient are float32.
    after : int
        Arrays after those of the tensors: one, for all tensors; two, vectors with a rate for each tensor.
    count : str
        The parameter that says how many tensors there are.
    """
    size, written = 2 + states + mixed, states + mixed

    def decorate(function):
        title = name or function.__name__

        @wraps(function)
        def operate(F, *data, **params):
            n = params.pop(count)
            lists = {key: params.pop(key) for key in _LISTS if key in params}
            for key, values in lists.items():
                if len(values) != n:
                    raise OpValueError(f"operator {title}: {key}={values} but {count}={n}; expected {n} numbers")
            data, shared = data[: size * n], data[size * n :]
            made = []
            for i in range(n):
                given = params | {_LISTS[key]: values[i] for key, values in lists.items()}
                rest = [F.slice_axis(a, axis=0, begin=i, end=i + 1) for a in shared] if after == 2 else shared
                mine = data[size * i : size * (i + 1)]
                if mixed:
                    made.append(_mixed(F, step, *mine[:2], mine[2:-1], mine[-1], *rest, **given))
                else:
                    made.append(_step(F, step, [*mine, *rest], **given))
            return [new for new, *_ in made] + [state for _, *new_states in made for state in new_states]

        def check(attrs, n_inputs):
            n = attrs[count]
            if n < 1 or n_inputs != size * n + after:
                also = f", and {after} for all" if after else ""
                raise OpTypeError(
                    f"operator {title}: {n_inputs} inputs, but {count}={n}; expected {size} for each tensor{also}"
                )

        def writes(**given):
            n = given[count]
            return {f"arg{size * i + 2 + j}": n + written * i + j for i in range(n) for j in range(written)}

        params = (
            *Spec.of(title, function).params,
            *_params_of(params_of or get(step), *_LISTS.values(), "lazy_update"),
        )
        op = composite(name=title, writes=writes, num_outputs=lambda **given: (1 + written) * given[count],
                       visible_outputs=lambda **given: given[count], planned=False,
                       extra_params=params)(operate)  # fmt: skip
        op.check_arity = check
        if mixed:
            _mixed_types(op, lambda **given: [((size * i, size * i + 1), (i,)) for i in range(given[count])])
        return op

    return decorate


@_several("sgd_update")
def multi_sgd_update(F, *data, lrs: Floats, wds: Floats, num_weights: int = 1, **params):
    """``sgd_update`` of several tensors: inputs are weight, gradient, weight, gradient...

    `lrs` and `wds` have one number for each tensor.

    >>> v, w = mx.nd.array([1]), mx.nd.array([2])
    >>> _ = mx.nd.multi_sgd_update(v, v * 4, w, w * 4, lrs=(0.5, 0.25), wds=(0, 0), num_weights=2, out=[v, w])
    >>> v.item(), w.item()
    (-1.0, 0.0)
    """


@_several("sgd_mom_update", states=1)
def multi_sgd_mom_update(F, *data, lrs: Floats, wds: Floats, num_weights: int = 1, **params):
    """``sgd_mom_update`` of several tensors: inputs are weight, gradient, mom, weight, gradient, mom...

    >>> w, g, mom = mx.nd.array([1]), mx.nd.array([4]), mx.nd.array([1])
    >>> mx.nd.multi_sgd_mom_update(w, g, mom, lrs=(0.5,), wds=(0,), momentum=0.5, out=w).item(), mom.item()
    (-0.5, -1.5)
    """


@_several("sgd_update", mixed=True)
def multi_mp_sgd_update(F, *data, lrs: Floats, wds: Floats, num_weights: int = 1, **params):
    """``mp_sgd_update`` of several tensors: inputs are weight, gradient, weight32, weight, gradient, weight32...

    >>> w, g, w32 = mx.nd.array([1], dtype="float16"), mx.nd.array([4], dtype="float16"), mx.nd.array([1])
    >>> mx.nd.multi_mp_sgd_update(w, g, w32, lrs=(0.5,), wds=(0,), out=w).item(), w32.item()
    (-1.0, -1.0)
    """


@_several("sgd_mom_update", states=1, mixed=True)
def multi_mp_sgd_mom_update(F, *data, lrs: Floats, wds: Floats, num_weights: int = 1, **params):
    """``mp_sgd_mom_update`` of several tensors: weight, gradient, mom, weight32, weight, gradient, mom, weight32...

    >>> w, g, mom, w32 = (mx.nd.array([x], dtype=t) for x, t in ((1, "float16"), (4, "float16"), (1, None), (1, None)))
    >>> mx.nd.multi_mp_sgd_mom_update(w, g, mom, w32, lrs=(0.5,), wds=(0,), momentum=0.5, out=w).item(), mom.item()
    (-0.5, -1.5)
    """


# ---- several tensors, whose learning rates are in arrays ---------------------------------------------------------------
@elementwise(name="_sgd_at", broadcast=True)
def sgd_at(weight, grad, lr, wd, *, rescale_grad: float, clip_gradient: float):
    """``sgd_update`` whose rates are arrays."""
    return weight - lr * (one.scaled(grad, rescale_grad, clip_gradient) + wd * weight)


@elementwise(name="_sgd_mom_at", broadcast=True)
def sgd_mom_at(weight, grad, mom, lr, wd, *, momentum: float, rescale_grad: float, clip_gradient: float):
    """``sgd_mom_update`` whose rates are arrays."""
    mom = momentum * mom - lr * (one.scaled(grad, rescale_grad, clip_gradient) + wd * weight)
    return weight + mom, mom


@_several("_sgd_at", one.sgd_update, after=2)
def preloaded_multi_sgd_update(F, *data, num_weights: int = 1, **params):
    """``multi_sgd_update`` with two further arrays: learning rates and weight decays.

    >>> w, lrs, wds = mx.nd.array([1]), mx.nd.array([0.5]), mx.nd.array([0])
    >>> mx.nd.preloaded_multi_sgd_update(w, w * 4, lrs, wds, out=w).item()
    -1.0
    """


@_several("_sgd_mom_at", one.sgd_mom_update, states=1, after=2)
def preloaded_multi_sgd_mom_update(F, *data, num_weights: int = 1, **params):
    """``multi_sgd_mom_update`` with two further arrays: learning rates and weight decays.

    >>> w, mom, lrs, wds = (mx.nd.array([x]) for x in (1, 1, 0.5, 0))
    >>> mx.nd.preloaded_multi_sgd_mom_update(w, w * 4, mom, lrs, wds, momentum=0.5, out=w).item(), mom.item()
    (-0.5, -1.5)
    """


@_several("_sgd_at", one.sgd_update, mixed=True, after=2)
def preloaded_multi_mp_sgd_update(F, *data, num_weights: int = 1, **params):
    """``multi_mp_sgd_update`` with two further arrays: learning rates and weight decays.

    >>> w, g, w32 = mx.nd.array([1], dtype="float16"), mx.nd.array([4], dtype="float16"), mx.nd.array([1])
    >>> mx.nd.preloaded_multi_mp_sgd_update(w, g, w32, mx.nd.array([0.5]), mx.nd.array([0]), out=w).item(), w32.item()
    (-1.0, -1.0)
    """


@_several("_sgd_mom_at", one.sgd_mom_update, states=1, mixed=True, after=2)
def preloaded_multi_mp_sgd_mom_update(F, *data, num_weights: int = 1, **params):
    """``multi_mp_sgd_mom_update`` with two further arrays: learning rates and weight decays.

    >>> w, g, mom, w32 = (mx.nd.array([x], dtype=t) for x, t in ((1, "float16"), (4, "float16"), (1, None), (1, None)))
    >>> rates = mx.nd.array([0.5]), mx.nd.array([0])
    >>> mx.nd.preloaded_multi_mp_sgd_mom_update(w, g, mom, w32, *rates, momentum=0.5, out=w).item(), w32.item()
    (-0.5, -0.5)
    """


# ---- AdamW and LAMB of several tensors ---------------------------------------------------------------------------------
@_several("_adamw_update", name="_multi_adamw_update", states=2, after=1)
def multi_adamw_update(F, *data, lrs: Floats, wds: Floats, etas: Floats, num_weights: int = 1, **params):
    """``adamw_update`` of several tensors: weight, gradient, mean and var of each, then `rescale_grad`.

    ``mx.nd.contrib.multi_adamw_update`` takes lists of arrays.

    >>> w, g, mean, var = (mx.nd.array([x]) for x in (1, 4, 0, 0))
    >>> rates = {"lrs": [1], "wds": [0], "etas": [0.5], "beta1": 0.5, "beta2": 0.75}
    >>> mx.nd.contrib.multi_adamw_update([w], [g], [mean], [var], 1, out=[w], **rates)[0].item()
    0.5
    """


@_several("_adamw_update", name="_multi_mp_adamw_update", states=2, mixed=True, after=1)
def multi_mp_adamw_update(F, *data, lrs: Floats, wds: Floats, etas: Floats, num_weights: int = 1, **params):
    """``mp_adamw_update`` of several tensors: weight, gradient, mean, var and weight32 of each, then `rescale_grad`.

    >>> w, g, mean, var, w32 = (mx.nd.array([x], dtype=t) for x, t in zip((1, 4, 0, 0, 1), "eefff"))
    >>> rates = {"lrs": [1], "wds": [0], "etas": [0.5], "beta1": 0.5, "beta2": 0.75}
    >>> mx.nd.contrib.multi_mp_adamw_update([w], [g], [mean], [var], [w32], 1, out=[w], **rates)[0].item(), w32.item()
    (0.5, 0.5)
    """


def _lamb(F, weight, grad, *states, lr, lower_bound, upper_bound, **params):
    """Return the new weights and states: both phases of LAMB."""
    direction, *states = _step(F, "lamb_update_phase1", [weight, grad, *states], **params)
    bounds = {"lower_bound": lower_bound, "upper_bound": upper_bound}
    norms = F.norm(weight), F.norm(direction)
    return F.lamb_update_phase2(weight, direction, *norms, lr=lr, **bounds), *states


@_several(_lamb, one.lamb_update_phase1, name="_multi_lamb_update", states=2, count="num_tensors")
def multi_lamb_update(F, *data, learning_rates: Floats, wds: Floats, step_count: Shape, lower_bound: float = -1.0,
                      upper_bound: float = -1.0, num_tensors: int = 1, **params):  # fmt: skip
    """Both phases of LAMB for several tensors: weight, gradient, mean and var of each.

    `step_count` holds the number of each one's step, from 1 on.  ``mx.nd.contrib.multi_lamb_update`` takes lists of arrays,
    and `lrs` for `learning_rates`.

    >>> w, g, mean, var = (mx.nd.array(x) for x in ([3, 4], [4, 4], [0, 0], [0, 0]))
    >>> _ = mx.nd.contrib.multi_lamb_update([w], [g], [mean], [var], step_count=[1], lrs=[1], wds=[0], out=[w])
    >>> w.asnumpy().round(3).tolist()
    [-0.5360000133514404, 0.46399998664855957]
    """


@_several(_lamb, one.lamb_update_phase1, name="_multi_mp_lamb_update", states=2, mixed=True, count="num_tensors")
def multi_mp_lamb_update(F, *data, learning_rates: Floats, wds: Floats, step_count: Shape, lower_bound: float = -1.0,
                         upper_bound: float = -1.0, num_tensors: int = 1, **params):  # fmt: skip
    """``multi_lamb_update`` of float32 copies: weight, gradient, mean, var and weight32 of each.

    >>> w, g, mean, var = (mx.nd.array(x) for x in ([3, 4], [4, 4], [0, 0], [0, 0]))
    >>> narrow, more = w.astype("float16"), {"step_count": [1], "lrs": [1], "wds": [0]}
    >>> _ = mx.nd.contrib.multi_mp_lamb_update([narrow], [g.astype("float16")], [mean], [var], [w], out=[narrow], **more)
    >>> w.asnumpy().round(3).tolist()
    [-0.5360000133514404, 0.46399998664855957]
    """


# ---- what optimizers ask of many arrays ------------------------------------------------------------------------------
@composite(num_args_param="num_arrays", stem="array_")
def multi_sum_sq(F, *data, num_arrays: int):
    """Sums of the squares of all elements of each array, in one float32 vector.

    >>> mx.nd.multi_sum_sq(mx.nd.array([3, 4]), mx.nd.array([2]), num_arrays=2).asnumpy().tolist()
    [25.0, 4.0]
    """
    sums = [F.Reshape(F._square_sum(F.cast(a, dtype="float32")), shape=(1,)) for a in data]
    return F.Concat(*sums, dim=0)


@elementwise(name="_infinite", rule=lambda g, data, out: None)
def infinite(data):
    """1 where the data are infinite or NaN, 0 elsewhere."""
    return F.where(F.abs(data) < float("inf"), 0, 1)


@composite
def all_finite(F, data, *, init_output: bool = True):
    """1 if all elements are finite, 0 if one is infinite or NaN, as a float32 array of shape ``(1,)``.

    Parameters
    ----------
    init_output : bool
        With False, ``mx.nd.all_finite(data, out=a)`` keeps a 0 that ``a`` already holds.

    >>> mx.nd.all_finite(mx.nd.array([1, 2])).item(), mx.nd.all_finite(mx.nd.array([1, float("inf")])).item()
    (1.0, 0.0)
    """
    return F.multi_all_finite(data, num_arrays=1, init_output=init_output)


@composite(num_args_param="num_arrays", stem="array_")
def multi_all_finite(F, *data, num_arrays: int = 1, init_output: bool = True):
    """1 if all elements of all arrays are finite, 0 otherwise; see ``all_finite``.

    >>> mx.nd.multi_all_finite(mx.nd.array([1, 2]), mx.nd.array([float("nan")]), num_arrays=2).item()
    0.0
    """
    counts = [F.Reshape(F.sum(F.cast(F._infinite(a), dtype="float32")), shape=(1,)) for a in data]
    return F._equal_scalar(F.add_n(*counts), scalar=0)


@composite(writes=lambda num_arrays: {f"array_{i}": i for i in range(num_arrays)}, num_outputs=lambda num_arrays: num_arrays,
           visible_outputs=0, num_args_param="num_arrays", stem="array_")  # fmt: skip
def reset_arrays(F, *data, num_arrays: int):
    """Set all arrays to zero.

    >>> a, b = mx.nd.ones((2,)), mx.nd.ones((1,))
    >>> mx.nd.reset_arrays(a, b, num_arrays=2)
    []
    >>> a.asnumpy().tolist(), b.item()
    ([0.0, 0.0], 0.0)
    """
    return [F.zeros_like(a) for a in data]


_mixed_types(multi_sum_sq, lambda num_arrays: [(range(num_arrays), ())])
