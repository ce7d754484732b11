"""Records of normalisation (``mxop/ops/norm.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal


def _along(vector, data, axis=1):
    return np.reshape(vector, [-1 if k == axis % data.ndim else 1 for k in range(data.ndim)])


# ---- over the batch --------------------------------------------------------------------------------------------------
def _batch(data, gamma, beta, mean, var, eps=1e-3, momentum=0.9, fix_gamma=True, use_global_stats=False,
           output_mean_var=False, axis=1, is_train=False, variance=False, **_):  # fmt: skip
    used, new = (mean, var), (mean, var)
    if is_train and not use_global_stats:
        others = tuple(k for k in range(data.ndim) if k != axis % data.ndim)
        used = data.mean(others), data.var(others)
        new = tuple(momentum * old + (1 - momentum) * now for old, now in zip(new, used, strict=True))
    m, v, b, g = (_along(a, data, axis) for a in (*used, beta, np.ones_like(gamma) if fix_gamma else gamma))
    shown = (used[0], used[1] if variance else 1 / np.sqrt(used[1] + eps)) if output_mean_var else ()
    return (data - m) / np.sqrt(v + eps) * g + b, *shown, *new


def _batch_relu(*inputs, **params):
    found = _batch(*inputs, **params)
    return np.maximum(found[0], 0), *found[1:]


def _batch_v1(*inputs, **params):
    return _batch(*inputs, variance=True, **params)


_CASES = [
    ((4, 3), 1, {"fix_gamma": False}),
    ((2, 3, 4), 1, {"fix_gamma": False, "eps": 0.1, "momentum": 0.5, "output_mean_var": True}),
    ((3, 2, 3), 1, {"use_global_stats": True, "fix_gamma": False, "eps": 0.25}),
    ((4, 2), 1, {"eps": 0.25}),
    ((2, 3, 4), -1, {"axis": -1, "fix_gamma": False, "eps": 0.1}),
    ((3, 2, 4), 0, {"axis": 0, "fix_gamma": False, "eps": 0.1}),
]


def _wide(dtype, **_):
    """Return the type that data are computed in: float16 in float32."""
    return "float32" if dtype.endswith("16") else dtype


def _results(dtype, output_mean_var=False, **_):
    return [dtype, _wide(dtype), _wide(dtype)] if output_mean_var else dtype


def _batch_record(reference, axes=True, domain=((-2.0, 2.0), (0.5, 1.5), (-1.0, 1.0), (-1.0, 1.0), (0.5, 1.5)), **more):
    cases = [case for case in _CASES if axes or "axis" not in case[2]]
    extra = more.pop("params", {})
    return Record(
        reference, domain=domain, dtypes="f", input_types=dict.fromkeys((1, 2, 3, 4), _wide), returns=_results,
        params=[{**p, **extra} for _, _, p in cases],
        shapes=[(shape, *[(shape[axis],)] * 4) for shape, axis, _ in cases],
        refuses=[Refusal("gamma has shape", shapes=((2, 3), (2,), (3,), (3,), (3,))),
                 *([Refusal("axis=2 is out of range", params={"axis": 2})] if axes else [])],
        **more,
    )  # fmt: skip


# ---- of each sample --------------------------------------------------------------------------------------------------
def _normal(data, axes, eps):
    mean, var = data.mean(axes, keepdims=True), data.var(axes, keepdims=True)
    return (data - mean) / np.sqrt(var + eps), mean, np.sqrt(var + eps)


def _layer(data, gamma, beta, axis=-1, eps=1e-5, output_mean_var=False):
    y, mean, std = _normal(data, axis, eps)
    y = y * _along(gamma, data, axis) + _along(beta, data, axis)
    return (y, mean, std) if output_mean_var else y


def _group(data, gamma, beta, num_groups=1, eps=1e-5, output_mean_var=False):
    y, mean, std = _normal(data.reshape(len(data), num_groups, -1), 2, eps)
    y = (y * gamma[:, None] + beta[:, None]).reshape(data.shape)
    return (y, mean[..., 0], std[..., 0]) if output_mean_var else y


def _instance(data, gamma, beta, eps=1e-3):
    y = _normal(data, tuple(range(2, data.ndim)), eps)[0]
    return y * _along(gamma, data) + _along(beta, data)


def _length(data, eps=1e-10, mode="instance"):
    axes = {"instance": tuple(range(1, data.ndim)), "channel": 1, "spatial": tuple(range(2, data.ndim))}[mode]
    return data / np.sqrt((data**2).sum(axes, keepdims=True) + eps)


def _lrn(data, nsize, alpha=1e-4, beta=0.75, knorm=2.0):
    before = nsize // 2
    near = [(data[:, max(0, k - before) : k - before + nsize] ** 2).sum(1) for k in range(data.shape[1])]
    return data / (knorm + alpha / nsize * np.stack(near, 1)) ** beta


RECORDS: dict[str, Record] = {
    "BatchNorm": _batch_record(_batch),
    "_contrib_BatchNormWithReLU": _batch_record(_batch_relu),
    "BatchNorm_v1": _batch_record(_batch_v1, axes=False),
    "_contrib_SyncBatchNorm": _batch_record(_batch_v1, axes=False, params={"key": "a"}),
    "LayerNorm": Record(
        _layer, shapes=[((2, 3), (3,), (3,)), ((2, 3, 4), (3,), (3,)), ((3, 2), (3,), (3,))], dtypes="f",
        params=[{"eps": 0.1}, {"axis": 1, "eps": 0.25, "output_mean_var": True}, {"axis": 0, "eps": 0.1}],
        refuses=[Refusal("beta has shape", shapes=((2, 3), (3,), (2,))), Refusal("axis=2 is out of", params={"axis": 2})],
    ),
    "GroupNorm": Record(
        _group, shapes=[((2, 4, 3), (2,), (2,)), ((2, 2, 2, 2), (1,), (1,)), ((2, 3, 2), (3,), (3,))], dtypes="f",
        params=[{"num_groups": 2, "eps": 0.1, "output_mean_var": True}, {"eps": 0.25}, {"num_groups": 3, "eps": 0.5}],
        refuses=[Refusal("not divisible", shapes=((2, 3, 3), (2,), (2,))),
                 Refusal("at least 3 dimensions", shapes=((2, 4), (2,), (2,)))],
    ),
    "InstanceNorm": Record(
        _instance, shapes=[((2, 3, 4), (3,), (3,)), ((2, 2, 2, 2), (2,), (2,))], params=[{"eps": 0.1}, {"eps": 0.5}],
        dtypes="f", refuses=[Refusal("at least 3 dimensions", shapes=((2, 3), (3,), (3,)))],
    ),
    "L2Normalization": Record(
        _length, shapes=[((2, 3),), ((2, 3, 2),), ((2, 2, 3),)], domain=(0.5, 2.0), dtypes="f",
        params=[{}, {"mode": "channel", "eps": 0.1}, {"mode": "spatial"}],
        refuses=[Refusal("needs at least 3 dimensions", params={"mode": "spatial"})],
    ),
    "LRN": Record(
        _lrn, shapes=[((2, 5, 2),), ((1, 2, 2, 2),), ((2, 3),), ((2, 4),)], dtypes="f",
        params=[{"nsize": 3, "alpha": 0.5}, {"nsize": 5, "alpha": 1.0, "beta": 0.5, "knorm": 1.0}, {"nsize": 1}, {"nsize": 2}],
        refuses=[Refusal("at least 2 dimensions", shapes=((3,),)), Refusal("from 1", params={"nsize": 0})],
    ),
    "_widened": Record(
        lambda data: data, returns=_wide, unchecked={"types back": "the type of float32 results may be float16"}
    ),
}  # fmt: skip
