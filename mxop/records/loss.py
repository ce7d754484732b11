"""Records of output layers (``mxop/ops/loss.py``), whose gradients are not their derivatives.

Those are compared with MXNet's in ``tests/test_mxnet_models.py``, and with their own definition in ``tests/test_loss.py``.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from . import Record, Refusal

_LOSS = {
    "order": 0,
    "grad_inputs": (0,),
    "dtypes": "f",
    "unchecked": {"head gradients": "a loss has the gradient that it says, whatever the head gradient is"},
}


def _softmax(data, label, multi_output=False, preserve_shape=False, **_):
    if multi_output or preserve_shape:
        return special.softmax(data, axis=1 if multi_output else -1)
    return special.softmax(data.reshape(len(data), -1), axis=1).reshape(data.shape)


def _class_slope(probability, label, number, weight, share, other):
    return (probability - np.where(label == number, share, other)) * weight


def _softmax_grad(data, label, scale=1.0, ignore_label=-1.0, multi_output=False, use_ignore=False, preserve_shape=False,
                  normalization="null", smooth_alpha=0.0):  # fmt: skip
    found = _softmax(data, label, multi_output, preserve_shape)
    if label.shape == data.shape:
        return (found - label) * scale
    weight, counts = np.ones(label.shape), label != ignore_label
    if use_ignore:
        weight = weight * counts
    weight = (
        weight
        / {"null": label[0].size if multi_output else 1, "batch": label.size, "valid": max(counts.sum(), 1)}[normalization]
    )
    axis = 1 if multi_output else -1
    place = np.arange(data.shape[axis]).reshape([-1 if k == axis % data.ndim else 1 for k in range(data.ndim)])
    label, weight = (np.expand_dims(a, axis) for a in (label, weight))
    return (found - np.where(label == place, 1 - smooth_alpha, smooth_alpha / (data.shape[axis] - 1))) * weight * scale


def _svm_slope(data, chosen, margin, coefficient, use_linear):
    if use_linear:
        return np.where(chosen != 0, -1.0 * (data < margin), 1.0 * (-data < margin)) * coefficient
    return np.where(chosen != 0, -2 * np.maximum(margin - data, 0), 2 * np.maximum(margin + data, 0)) * coefficient


def _svm_grad(data, label, margin=1.0, coefficient=1.0, use_linear=False):
    return _svm_slope(data, label[:, None] == np.arange(data.shape[1]), margin, coefficient, use_linear)


def _of_data(function):
    """Return the record of an output layer of numbers."""
    return Record(
        lambda data, label, **_: function(data), shapes=[((2, 3), (2, 3)), ((3, 1), (3,))], params=[{}, {"grad_scale": 2.0}],
        refuses=[Refusal("label has shape", shapes=((2, 3), (2,)))], **_LOSS,
    )  # fmt: skip


def _sparse(data, moving_avg, momentum=0.9, is_train=False, **_):
    return data, momentum * moving_avg + (1 - momentum) * data.mean(0) if is_train else moving_avg


_LABELS = ((-2.0, 2.0), (0.0, 2.0))
_CASES = [
    ((2, 3), (2,), {}),
    ((2, 3), (2,), {"grad_scale": 2.0, "smooth_alpha": 0.25, "normalization": "batch"}),
    ((4, 3), (4,), {"use_ignore": True, "ignore_label": 1.0, "normalization": "valid"}),
    ((2, 3, 2), (2, 2), {"multi_output": True}),
    ((2, 2, 3), (2, 2), {"preserve_shape": True, "normalization": "batch"}),
    ((2, 3), (2, 3), {}),
]

RECORDS: dict[str, Record] = {
    "SoftmaxOutput": Record(
        _softmax, domain=_LABELS, whole=(1,), shapes=[(data, label) for data, label, _ in _CASES],
        params=[params for *_, params in _CASES], refuses=[Refusal("label has shape", shapes=((2, 3), (3,)))], **_LOSS,
    ),
    "SVMOutput": Record(
        lambda data, label, **_: data, domain=_LABELS, whole=(1,), shapes=[((2, 3), (2,))],
        params=[{}, {"use_linear": True, "margin": 0.5}], refuses=[Refusal("label has shape", shapes=((2, 3), (3,)))], **_LOSS,
    ),
    "LinearRegressionOutput": _of_data(lambda data: data),
    "LogisticRegressionOutput": _of_data(special.expit),
    "MAERegressionOutput": _of_data(lambda data: data),
    "MakeLoss": Record(
        lambda data, **_: data, params=[{}, {"grad_scale": 2.0, "normalization": "batch"}, {"normalization": "valid"}],
        **_LOSS,
    ),
    "make_loss": Record(lambda data: data, **_LOSS),
    "_sparseness_slope": Record(
        lambda average, target, penalty: penalty * ((1 - target) / (1 - average) - target / average), domain=(0.25, 0.75),
        params=[{"target": 0.25, "penalty": 2.0}], dtypes="f",
    ),
    "IdentityAttachKLSparseReg": Record(
        _sparse, params=[{}, {"momentum": 0.5, "sparseness_target": 0.25, "penalty": 2.0}], shapes=[((4, 3), (3,))],
        domain=(0.25, 0.75), refuses=[Refusal("moving_avg has shape", shapes=((4, 3), (4,)))],
        **{**_LOSS, "unchecked": {"head gradients": "a constant is added to them, in tests/test_loss.py"}},
    ),
    "_class_slope": Record(
        _class_slope, domain=((0.0, 1.0), (0.0, 3.0), (0.0, 3.0), (0.0, 1.0)), whole=(1, 2), dtypes="f", grad_inputs=(0, 3),
        shapes=[((2, 3), (2, 1), (1, 3), (1, 1)), ((2, 3, 2), (2, 1, 2), (1, 3, 1), (2, 1, 2))],
        params=[{"share": 0.75, "other": 0.25}],
    ),
    "_softmax_output_grad": Record(
        _softmax_grad, domain=_LABELS, whole=(1,), dtypes="f", grad_inputs=(0,),
        shapes=[(data, label) for data, label, _ in _CASES],
        params=[{"scale" if k == "grad_scale" else k: v for k, v in params.items()} for *_, params in _CASES],
        unchecked={"one variable": "labels are not data"},
    ),
    "_svm_output_grad": Record(
        _svm_grad, domain=_LABELS, whole=(1,), avoid=(0.5, -0.5), dtypes="f", grad_inputs=(0,), shapes=[((2, 3), (2,))],
        params=[{"margin": 0.5, "coefficient": 2.0, "use_linear": linear} for linear in (False, True)],
    ),
    "_svm_slope": Record(
        _svm_slope, domain=((-2.0, 2.0), (0.0, 1.0)), whole=(1,), avoid=(0.5, -0.5), dtypes="f", grad_inputs=(0,),
        params=[{"margin": 0.5, "coefficient": 2.0, "use_linear": linear} for linear in (False, True)],
    ),
}  # fmt: skip
