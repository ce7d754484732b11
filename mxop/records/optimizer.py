"""Records of the update operators of optimizers (``mxop/ops/optimizer.py``).

The references are MXNet 1.9.1's steps in float64; ``tests/test_optimizer.py`` holds the operators against its answers, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import Record, Refusal


def _clipped(grad, limit):
    return np.clip(grad, -limit, limit) if limit >= 0 else grad


def _scaled(grad, rescale_grad=1.0, clip_gradient=-1.0, **_):
    return _clipped(rescale_grad * grad, clip_gradient)


def _decayed(weight, grad, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0, **_):
    """Clip with the decay inside, as Adam, FTML and RMSProp do."""
    return _clipped(rescale_grad * grad + wd * weight, clip_gradient)


# ---- steps, of one tensor ----------------------------------------------------------------------------------------------
def sgd(weight, grad, lr, wd=0.0, **params):
    return weight - lr * (_scaled(grad, **params) + wd * weight)


def sgd_mom(weight, grad, mom, lr, momentum=0.0, wd=0.0, **params):
    mom = momentum * mom - lr * (_scaled(grad, **params) + wd * weight)
    return weight + mom, mom


def nag_mom(weight, grad, mom, lr, momentum=0.0, wd=0.0, **params):
    step = lr * (_scaled(grad, **params) + wd * weight)
    mom = momentum * mom - step
    return weight + momentum * mom - step, mom


def nag_in_place(weight, grad, mom, lr, momentum=0.0, wd=0.0, **params):
    weight, mom = nag_mom(weight, grad, mom, lr, momentum, wd, **params)[0], momentum * mom
    return weight, mom - lr * (_scaled(grad, **params) + wd * weight)


def signsgd(weight, grad, lr, wd=0.0, **params):
    return (1 - lr * wd) * weight - lr * np.sign(grad)


def signum(weight, grad, mom, lr, momentum=0.0, wd=0.0, wd_lh=0.0, **params):
    mom = momentum * mom - (1 - momentum) * (wd * weight + _scaled(grad, **params))
    return (1 - lr * wd_lh) * weight + lr * np.sign(mom), mom


def adam(weight, grad, mean, var, lr, beta1=0.9, beta2=0.999, epsilon=1e-8, **params):
    grad = _decayed(weight, grad, **params)
    mean, var = beta1 * mean + (1 - beta1) * grad, beta2 * var + (1 - beta2) * grad**2
    return weight - lr * mean / (np.sqrt(var) + epsilon), mean, var


def adamw(weight, grad, mean, var, rescale_grad, lr, eta, beta1=0.9, beta2=0.999, epsilon=1e-8, wd=0.0,
          clip_gradient=-1.0):  # fmt: skip
    scale = float(np.reshape(rescale_grad, -1)[0])
    if not np.isfinite(scale) or scale == 0:
        return weight, mean, var
    grad = _clipped(scale * grad, clip_gradient)
    mean, var = beta1 * mean + (1 - beta1) * grad, beta2 * var + (1 - beta2) * grad**2
    return weight - eta * (lr * mean / (np.sqrt(var) + epsilon) + wd * weight), mean, var


def ftml(weight, grad, d, v, z, lr, t, beta1=0.6, beta2=0.999, epsilon=1e-8, clip_grad=-1.0, **params):
    grad = _decayed(weight, grad, clip_gradient=clip_grad, **params)
    v = beta2 * v + (1 - beta2) * grad**2
    new = (1 - beta1**t) / lr * (np.sqrt(v / (1 - beta2**t)) + epsilon)
    z = beta1 * z + (1 - beta1) * grad - (new - beta1 * d) * weight
    return -z / new, new, v, z


def ftrl(weight, grad, z, n, lr, lamda1=0.01, beta=1.0, wd=0.0, **params):
    grad = _scaled(grad, **params)
    z, n = z + grad - (np.sqrt(n + grad**2) - np.sqrt(n)) * weight / lr, n + grad**2
    out = (np.sign(z) * lamda1 - z) / ((beta + np.sqrt(n)) / lr + wd)
    return np.where(np.abs(z) > lamda1, out, 0), z, n


def rmsprop(weight, grad, n, lr, gamma1=0.95, epsilon=1e-8, clip_weights=-1.0, **params):
    grad = _decayed(weight, grad, **params)
    n = gamma1 * n + (1 - gamma1) * grad**2
    return _clipped(weight - lr * grad / np.sqrt(n + epsilon), clip_weights), n


def rmspropalex(weight, grad, n, g, delta, lr, gamma1=0.95, gamma2=0.9, epsilon=1e-8, clip_weights=-1.0, **params):
    grad = _decayed(weight, grad, **params)
    n, g = gamma1 * n + (1 - gamma1) * grad**2, gamma1 * g + (1 - gamma1) * grad
    delta = gamma2 * delta - lr * grad / np.sqrt(n - g**2 + epsilon)
    return _clipped(weight + delta, clip_weights), n, g, delta


def lamb_direction(weight, grad, mean, var, t, wd, beta1=0.9, beta2=0.999, epsilon=1e-6, bias_correction=True, **params):
    grad = _scaled(grad, **params)
    mean, var = beta1 * mean + (1 - beta1) * grad, beta2 * var + (1 - beta2) * grad**2
    m, v = (mean / (1 - beta1**t), var / (1 - beta2**t)) if bias_correction else (mean, var)
    return m / (np.sqrt(v) + epsilon) + wd * weight, mean, var


def lamb_step(weight, g, r1, r2, lr, lower_bound=-1.0, upper_bound=-1.0):
    r1, r2 = (float(np.reshape(r, -1)[0]) for r in (r1, r2))
    r1 = max(r1, lower_bound) if lower_bound >= 0 else r1
    r1 = min(r1, upper_bound) if upper_bound >= 0 else r1
    return weight - lr * (r1 / r2 if r1 and r2 else 1.0) * g


def adagrad(weight, grad, history, lr, epsilon=1e-7, wd=0.0, **params):
    grad = _scaled(grad, **params)
    history = history + grad**2
    return weight - lr * (grad / np.sqrt(history + epsilon) + wd * weight), history


def group_adagrad(weight, grad, history, lr, epsilon=1e-5, **params):
    grad = _scaled(grad, **params)
    history = history + (grad**2).mean(axis=tuple(range(1, grad.ndim)), keepdims=True)
    return weight - lr * grad / np.sqrt(history + epsilon), history


def multi_lars(lrs, weights, grads, wds, eta, eps, rescale_grad=1.0):
    w, g = np.sqrt(weights), np.sqrt(grads) * rescale_grad
    found = lrs * eta * w / np.where((w > 0) & (g > 0), g + wds * w + eps, 1)
    return np.where((w > 0) & (g > 0), found, lrs)


def adadelta(weight, grad, squares, steps, rho, epsilon, wd, **params):
    grad = _scaled(grad, **params)
    squares = rho * squares + (1 - rho) * grad**2
    step = np.sqrt(steps + epsilon) / np.sqrt(squares + epsilon) * grad
    return weight - step - wd * weight, squares, rho * steps + (1 - rho) * step**2


def adamax(weight, grad, mean, largest, lr, beta1, beta2, **params):
    grad = _decayed(weight, grad, **params)
    mean, largest = beta1 * mean + (1 - beta1) * grad, np.maximum(beta2 * largest, abs(grad))
    return weight - lr * mean / np.where(largest, largest, 1), mean, largest


def nadam(weight, grad, mean, var, lr, beta1, beta2, new2, epsilon, of_grad, of_mean, left2, **params):
    grad = _decayed(weight, grad, **params)
    mean, var = beta1 * mean + (1 - beta1) * grad, beta2 * var + new2 * grad**2
    return weight - lr * (of_grad * grad + of_mean * mean) / (np.sqrt(var / left2) + epsilon), mean, var


# ---- the same of several tensors, and of float32 copies ----------------------------------------------------------------
def _mixed(step: Callable, states: int) -> Callable:
    """Return a step whose inputs are weight, gradient, states, the copy, and what follows."""

    def mixed(weight, grad, *more, **params):
        found = step(more[states], grad, *more[:states], *more[states + 1 :], **params)
        new, *after = found if isinstance(found, tuple) else (found,)
        return new, *after, new

    return mixed


def _several(step: Callable, arrays: int, *names: str, after: int = 0) -> Callable:
    """Return the step of each tensor; parameters called `names` have one value a tensor, which the step calls lr, wd..."""
    inner = {"lrs": "lr", "learning_rates": "lr", "wds": "wd", "etas": "eta", "step_count": "t"}

    def several(*data, num_weights=1, num_tensors=1, **params):
        found = []
        for i in range(num_weights * num_tensors):
            given = {k: v for k, v in params.items() if k not in names}
            given |= {inner[k]: params[k][i] for k in names}
            rest = data[len(data) - after :]
            if after == 2:
                given |= {"lr": rest[0][i], "wd": rest[1][i]}
                rest = ()
            made = step(*data[arrays * i : arrays * (i + 1)], *rest, **given)
            found.append(made if isinstance(made, tuple) else (made,))
        return *(f[0] for f in found), *(state for f in found for state in f[1:])

    return several


def lamb(weight, grad, mean, var, lr, wd, t, lower_bound=-1.0, upper_bound=-1.0, **params):
    direction, mean, var = lamb_direction(weight, grad, mean, var, t=t, wd=wd, **params)
    norms = np.sqrt((weight**2).sum()), np.sqrt((direction**2).sum())
    return lamb_step(weight, direction, *norms, lr, lower_bound, upper_bound), mean, var


# ---- records ---------------------------------------------------------------------------------------------------------
# Weights and gradients of one sign, and limits that are far from them: the edge of a cut has no derivative.
_W, _G, _STATE, _SQUARE, _ONE = (0.5, 2.0), (1.0, 2.0), (-1.0, 1.0), (0.2, 1.0), (0.5, 0.9)
_CLIP = [{}, {"wd": 0.2, "rescale_grad": 0.5, "clip_gradient": 0.3}, {"wd": 0.1, "clip_gradient": 5.0}]
_SHAPE, _SCALAR, _WIDE = (2, 3), (1,), "float32"
_BETAS = {"beta1": 0.75, "beta2": 0.5, "epsilon": 0.0625}
_GIVEN = "each tensor has shapes of its own; the step that each one makes is checked"
_COARSE = dict.fromkeys(("gradient", "gradient dtypes", "head gradients", "grad_req"),
                        "of float32, too coarse for differences; they are those of the step, which is checked")  # fmt: skip
_FORWARD = "shapes follow from the weights', as in MXNet"


def _step(step: Callable, *states: tuple, params: Any = ({},), **more: Any) -> Record:
    """Return the record of a step whose states have these domains."""
    given = [{"lr": 0.125, **p, **q} for p, q in zip([*params, *[params[-1]] * 2], _CLIP, strict=False)]
    n = 2 + len(states)
    refuses = [Refusal("required parameter 'lr'", params={}), Refusal("shape", shapes=(_SHAPE,) * (n - 1) + ((4,),))]
    return Record(step, domain=(_W, _G, *states), params=given, shapes=[(_SHAPE,) * n], dtypes="f", refuses=refuses, **more)


def _without(params: dict, *names: str) -> dict:
    return {k: v for k, v in params.items() if k not in names}


def _scaled_later(params: Any) -> list[dict]:
    """Return parameters without `rescale_grad`, which is an array."""
    return [_without(p, "rescale_grad") for p in params]


def _with_scale(step: Callable, states: int, params: Any, **more: Any) -> Record:
    """Return the record of a step whose last input is `rescale_grad`."""
    domains = [_W, _G, _STATE, _SQUARE, *[_W] * (states - 2), _ONE]
    shapes = [(_SHAPE,) * (2 + states) + (_SCALAR,)]
    return Record(step, domain=domains, params=_scaled_later(params), shapes=shapes, **more)


def _of_copy(record: Record, states: int) -> Record:
    """Return the record of the step with a float32 copy of the weights."""
    n = 3 + states
    return Record(_mixed(record.reference, states), domain=[*record.domain, _W], params=record.params,
                  shapes=[(_SHAPE,) * n], dtypes="n", unchecked=_COARSE, input_types=dict.fromkeys(range(2, n), _WIDE),
                  refuses=[Refusal("required parameter 'lr'", params={})])  # fmt: skip


def _many(record: Record, *names: str, after: Any = (), count: str = "num_weights", **more: Any) -> Record:
    """Return the record of a step of two tensors; parameters called `names` have one value for each."""
    inner = {"lrs": "lr", "learning_rates": "lr", "wds": "wd", "etas": "eta", "step_count": "t"}
    arrays = len(record.shapes[0]) - (len(after) == 1)  # what is for all stands at the end of the record
    params = []
    for given in record.params:
        rates = {k: (given.get(inner[k], 0.25), given.get(inner[k], 0.25) + (1 if k == "step_count" else 0.5)) for k in names}
        params.append({**_without(given, "lr", "wd", "eta", "t"), **rates, count: 2})
    domains = [*record.domain[:arrays]] * 2 + list(after)
    wide = {i * arrays + k: t for i in (0, 1) for k, t in record.input_types.items() if k < arrays}
    wide |= {2 * arrays + k: _WIDE for k in range(len(after)) if wide}
    shapes = [tuple([_SHAPE] * arrays + [(4,)] * arrays + [(len(after),)] * len(after))]
    refuses = [Refusal("inputs, but", shapes=shapes[0][:-1]), *[Refusal("expected 2 numbers", params={**params[0], k: (1,)})
                                                                for k in names]]  # fmt: skip
    step = _several(record.reference, arrays, *names, after=len(after))
    left_out = dict.fromkeys(("one variable", "small shapes", "small gradients"), _GIVEN) | record.unchecked
    return Record(step, domain=domains, params=params, shapes=shapes, dtypes=record.dtypes, input_types=wide, refuses=refuses,
                  unchecked=left_out, **more)  # fmt: skip


_SGD = _step(sgd)
_SGD_MOM = _step(sgd_mom, _STATE, params=[{"momentum": 0.5}])
_NAG = _step(nag_in_place, _STATE, params=[{"momentum": 0.5}])
_LAMB = Record(
    lamb_direction, domain=(_W, _G, _STATE, _SQUARE), shapes=[(_SHAPE,) * 4], dtypes="f",
    params=[{"t": 1, "wd": 0.0}, {"t": 3, "wd": 0.2, "rescale_grad": 0.5, "clip_gradient": 0.3, **_BETAS},
            {"t": 2, "wd": 0.2, "bias_correction": False}],
    refuses=[Refusal("required parameter 't'", params={"wd": 0.0})],
)  # fmt: skip
_ADAMW = [{"lr": 0.125, "eta": 0.5, **p} for p in ({}, {**_BETAS, **_CLIP[1]}, _CLIP[2])]
_BOUNDS = [{"lr": 0.125}, {"lr": 0.125, "lower_bound": 3.0, "upper_bound": 4.0}, {"lr": 0.125, "upper_bound": 0.25}]
_NORMS = {"domain": (_W, _G, _W, _G), "params": _BOUNDS, "shapes": [(_SHAPE, _SHAPE, _SCALAR, _SCALAR)], "dtypes": "f"}
_FULL_LAMB = Record(lamb, domain=_LAMB.domain, shapes=_LAMB.shapes, dtypes="f", params=[{**p, **q} for p, q in zip(
    _LAMB.params, _BOUNDS, strict=True)])  # fmt: skip

_COUNT = Refusal("num_arrays", params={"num_arrays": 3})
_ONE_NUMBER = "the result is one number, whatever the shapes are"
_TO_WIDE = {"shapes back": _ONE_NUMBER, "one variable": _GIVEN, "small shapes": _GIVEN, "small gradients": _GIVEN}


def _finite(*data):
    return np.array([all(np.isfinite(a).all() for a in data)], dtype=float)


RECORDS: dict[str, Record] = {
    "sgd_update": _SGD,
    "sgd_mom_update": _SGD_MOM,
    "nag_mom_update": _step(nag_mom, _STATE, params=[{"momentum": 0.5}]),
    "_nag_mom_update": _NAG,
    "signsgd_update": _step(signsgd),
    "signum_update": _step(signum, (-0.2, 0.2), params=[{"momentum": 0.5, "wd_lh": 0.1}]),
    "adam_update": _step(adam, _STATE, _SQUARE, params=[{}, _BETAS]),
    "_adamw_update": _with_scale(adamw, 2, _ADAMW, dtypes="f"),
    "ftml_update": Record(
        ftml, domain=(_W, _G, _SQUARE, _SQUARE, _STATE), shapes=[(_SHAPE,) * 5], dtypes="f",
        params=[{"lr": 0.125, "t": 1}, {"lr": 0.25, "t": 3, **_BETAS, "wd": 0.2, "rescale_grad": 0.5, "clip_grad": 0.3}],
    ),
    "ftrl_update": _step(ftrl, (2.0, 3.0), _SQUARE, params=[{}, {"lamda1": 0.125, "beta": 0.5}]),
    "rmsprop_update": _step(rmsprop, _SQUARE, params=[{}, {"gamma1": 0.5, "epsilon": 0.125, "clip_weights": 9.0}]),
    "rmspropalex_update": _step(
        rmspropalex, (4.0, 5.0), (-0.5, 0.5), _STATE, params=[{}, {"gamma1": 0.5, "gamma2": 0.5, "clip_weights": 0.01}]
    ),
    "_sparse_adagrad_update": _step(adagrad, _SQUARE, params=[{}, {"epsilon": 0.125}]),
    "_contrib_group_adagrad_update": Record(
        group_adagrad, domain=(_W, _G, _SQUARE), shapes=[((2, 3), (2, 3), (2, 1))], dtypes="f",
        params=[{"lr": 0.125}, {"lr": 0.25, "rescale_grad": 0.5, "clip_gradient": 0.3, "epsilon": 0.5}],
    ),
    "lamb_update_phase1": _LAMB,
    "lamb_update_phase2": Record(lamb_step, **_NORMS),
    "mp_sgd_update": _of_copy(_SGD, 0),
    "mp_sgd_mom_update": _of_copy(_SGD_MOM, 1),
    "mp_nag_mom_update": _of_copy(_NAG, 1),
    "_mp_adamw_update": _with_scale(_mixed(adamw, 2), 3, _ADAMW, dtypes="n", unchecked=_COARSE,
                                    input_types=dict.fromkeys(range(2, 6), _WIDE)),
    "mp_lamb_update_phase1": Record(
        lambda w, g, mean, var, w32, **p: lamb_direction(w32, g, mean, var, **p), domain=(_W, *_LAMB.domain[1:], _W),
        shapes=[(_SHAPE,) * 5], dtypes="n", unchecked=_COARSE, params=_LAMB.params, returns=_WIDE,
        input_types=dict.fromkeys((2, 3, 4), _WIDE),
    ),
    "mp_lamb_update_phase2": Record(
        lambda w, g, r1, r2, w32, **p: (lamb_step(w32, g, r1, r2, **p),) * 2, domain=(_W, _G, _W, _G, _W), params=_BOUNDS,
        shapes=[(_SHAPE, _SHAPE, _SCALAR, _SCALAR, _SHAPE)], dtypes="n", unchecked=_COARSE,
        input_types=dict.fromkeys((1, 2, 3, 4), _WIDE),
    ),
    "multi_sgd_update": _many(_SGD, "lrs", "wds"),
    "multi_sgd_mom_update": _many(_SGD_MOM, "lrs", "wds"),
    "multi_mp_sgd_update": _many(_of_copy(_SGD, 0), "lrs", "wds"),
    "multi_mp_sgd_mom_update": _many(_of_copy(_SGD_MOM, 1), "lrs", "wds"),
    "preloaded_multi_sgd_update": _many(_SGD, after=(_ONE, _ONE)),
    "preloaded_multi_sgd_mom_update": _many(_SGD_MOM, after=(_ONE, _ONE)),
    "preloaded_multi_mp_sgd_update": _many(_of_copy(_SGD, 0), after=(_ONE, _ONE)),
    "preloaded_multi_mp_sgd_mom_update": _many(_of_copy(_SGD_MOM, 1), after=(_ONE, _ONE)),
    "_multi_adamw_update": _many(_with_scale(adamw, 2, _ADAMW, dtypes="f"), "lrs", "wds", "etas", after=(_ONE,)),
    "_multi_mp_adamw_update": _many(
        _with_scale(_mixed(adamw, 2), 3, _ADAMW, dtypes="n", unchecked=_COARSE, input_types=dict.fromkeys(range(2, 6), _WIDE)),
        "lrs", "wds", "etas", after=(_ONE,),
    ),
    "_multi_lamb_update": _many(_FULL_LAMB, "learning_rates", "wds", "step_count", count="num_tensors"),
    "_multi_mp_lamb_update": _many(
        Record(_mixed(lamb, 2), domain=[*_LAMB.domain, _W], params=_FULL_LAMB.params, shapes=[(_SHAPE,) * 5], dtypes="n",
               input_types=dict.fromkeys((2, 3, 4), _WIDE), unchecked=_COARSE),
        "learning_rates", "wds", "step_count", count="num_tensors",
    ),
    "multi_lars": Record(
        multi_lars, domain=((0.1, 0.5), (1.0, 4.0), (1.0, 4.0), (0.1, 0.5)), dtypes="f",
        params=[{"eta": 0.5, "eps": 0.0}, {"eta": 0.5, "eps": 0.25, "rescale_grad": 0.5}],
    ),
    "multi_sum_sq": Record(
        lambda *data, num_arrays: np.array([np.square(a).sum() for a in data]), shapes=[((2, 3), (4,)), ((2,),)],
        params=[{"num_arrays": 2}, {"num_arrays": 1}], dtypes="f", returns=_WIDE, refuses=[_COUNT],
        unchecked=_TO_WIDE | _COARSE,
    ),
    "all_finite": Record(_finite, dtypes="f", returns=_WIDE, grad_inputs=(), order=0, unchecked={"shapes back": _ONE_NUMBER}),
    "multi_all_finite": Record(
        lambda *data, num_arrays: _finite(*data), shapes=[((2, 3), (4,))], params=[{"num_arrays": 2}], dtypes="f",
        returns=_WIDE, grad_inputs=(), order=0, refuses=[_COUNT],
        unchecked={"shapes back": _ONE_NUMBER, "small shapes": _GIVEN, "small gradients": _GIVEN},
    ),
    "reset_arrays": Record(
        lambda *data, num_arrays: tuple(np.zeros_like(a) for a in data), shapes=[((2, 3), (4,))], params=[{"num_arrays": 2}],
        unchecked={"executor": "it has no result that a graph could ask for"},
    ),
    # ---- what these are made of
    "_adamw": Record(
        adamw, domain=(_W, _G, _STATE, _SQUARE, _ONE), shapes=[(_SHAPE,) * 4 + (_SCALAR,)], dtypes="f",
        params=[{"epsilon": 1e-8, "wd": 0.0, "clip_gradient": -1.0, **_BETAS, **p} for p in _scaled_later(_ADAMW)],
    ),
    "_adadelta_update": Record(adadelta, domain=(_W, _G, _SQUARE, _SQUARE), dtypes="f", params=[
        {"rho": 0.75, "epsilon": 0.125, "wd": 0.0},
        {"rho": 0.5, "epsilon": 0.25, "wd": 0.2, "rescale_grad": 0.5, "clip_gradient": 0.3},
    ]),
    "_adamax_update": Record(adamax, domain=(_W, _G, _STATE, _SQUARE), dtypes="f", params=[
        {"lr": 0.25, "beta1": 0.5, "beta2": 0.75, "wd": 0.0},
        {"lr": 0.25, "beta1": 0.5, "beta2": 0.75, "wd": 0.2, "rescale_grad": 0.5, "clip_gradient": 0.3},
    ]),
    "_nadam_update": Record(nadam, domain=(_W, _G, _STATE, _SQUARE), dtypes="f", params=[
        {"lr": 0.25, **_BETAS, "new2": 0.5, "of_grad": 0.5, "of_mean": 0.75, "left2": 0.5, "wd": 0.2, **more}
        for more in ({}, {"rescale_grad": 0.5, "clip_gradient": 0.3})
    ]),
    "_ftml": Record(
        lambda w, g, d, v, z, left1, left2, **p: ftml(w, g, d, v, z, t=2, **p), domain=(_W, _G, _SQUARE, _SQUARE, _STATE),
        params=[{"lr": 0.25, **_BETAS, "left1": 1 - 0.75**2, "left2": 0.75, "wd": 0.2, "rescale_grad": 0.5, "clip_grad": -1.0}],
        dtypes="f",
    ),
    "_lamb_direction": Record(
        lambda *a, left1, left2, **p: lamb_direction(*a, t=2, **p), domain=_LAMB.domain, dtypes="f",
        params=[{**_BETAS, "left1": 1 - 0.75**2, "left2": 0.75, "wd": 0.2, "rescale_grad": 0.5, "clip_gradient": -1.0}],
    ),
    "_lamb_step": Record(
        lamb_step, **(_NORMS | {"params": [{"lower_bound": -1.0, "upper_bound": -1.0, **p} for p in _BOUNDS]}),
    ),
    "_scaled_gradient": Record(_scaled, domain=_G, params=[{"rescale_grad": 0.5, "clip_gradient": c} for c in (-1.0, 0.3)],
                               dtypes="f"),
    "_group_step": Record(
        lambda w, g, h, lr, epsilon: w - lr * g / np.sqrt(h + epsilon), domain=(_W, _G, _SQUARE), dtypes="f",
        shapes=[((2, 3), (2, 3), (2, 1))], params=[{"lr": 0.125, "epsilon": 0.5}],
    ),
    "_sgd_at": Record(
        lambda w, g, lr, wd, **p: sgd(w, g, lr=lr, wd=wd, **p), domain=(_W, _G, _ONE, _ONE), dtypes="f",
        shapes=[(_SHAPE, _SHAPE, _SCALAR, _SCALAR)], params=[{"rescale_grad": 0.5, "clip_gradient": c} for c in (-1.0, 0.3)],
    ),
    "_sgd_mom_at": Record(
        lambda w, g, m, lr, wd, **p: sgd_mom(w, g, m, lr=lr, wd=wd, **p), domain=(_W, _G, _STATE, _ONE, _ONE), dtypes="f",
        shapes=[(_SHAPE,) * 3 + (_SCALAR,) * 2], params=[{"momentum": 0.5, "rescale_grad": 0.5, "clip_gradient": 0.3}],
    ),
    "_infinite": Record(lambda data: 1.0 - np.isfinite(data), grad_inputs=(), order=0, dtypes="f"),
}  # fmt: skip
