"""Records of neural network layers (``mxop/ops/nn.py``)."""

from __future__ import annotations

import numpy as np
from scipy import special

from . import Record, Refusal
from .random import seeded

_ACTIVATIONS = {
    "relu": lambda x: np.where(x <= 0, 0, x), "sigmoid": special.expit, "softrelu": lambda x: np.logaddexp(0, x),
    "softsign": lambda x: x / (1 + np.abs(x)), "tanh": np.tanh,
}  # fmt: skip


def _activation(data, act_type):
    return _ACTIVATIONS[act_type](data)


def _leaky_relu(data, gamma=None, act_type="leaky", slope=0.25, lower_bound=0.125, upper_bound=0.334,
                is_train=False):  # fmt: skip
    if act_type == "gelu":
        return data * special.ndtr(data)
    if act_type == "prelu":
        slope = gamma if gamma.size == 1 else gamma.reshape(-1, *(1,) * (data.ndim - 2))
    elif act_type == "rrelu":  # while training, too, where the bounds are equal
        slope = (lower_bound + upper_bound) / 2
    below = slope * data
    if act_type == "elu":
        below = slope * np.expm1(np.minimum(data, 0))
    scale = 1.0
    if act_type == "selu":
        scale = 1.0507009873554805
        below = 1.6732632423543772 * np.expm1(np.minimum(data, 0))
    found = scale * np.where(data > 0, data, below)
    return (found, np.full(data.shape, slope * is_train)) if act_type == "rrelu" else found


def _fully_connected(data, weight, bias=0.0, num_hidden=None, no_bias=False, flatten=True):
    if flatten:
        data = data.reshape(data.shape[0], weight.shape[1])
    return data @ weight.T + bias


def _softmax(data, length=None, axis=-1, temperature=None, dtype=None, use_length=False, logarithm=False):
    """Of the first `length` elements of each row; 0 for the others."""
    place = np.arange(data.shape[axis]).reshape([-1 if i == axis % data.ndim else 1 for i in range(data.ndim)])
    inside = np.full(data.shape, True) if length is None else place < np.expand_dims(length, axis)
    x = np.where(inside, data / (temperature or 1.0), -np.inf)
    x = x - x.max(axis, keepdims=True, initial=-np.inf)  # beside an infinity all is NaN, where SciPy says 0 and -inf
    total = np.exp(x).sum(axis, keepdims=True)
    return np.where(inside, x - np.log(total) if logarithm else np.exp(x) / total, 0)


def _log_softmax(*inputs, **params):
    return _softmax(*inputs, logarithm=True, **params)


def _of_axes(reference):
    """Make a record of the softmax family."""
    lengths = {"use_length": True}
    params = [{}, {"axis": 1}, {"axis": 0, "temperature": 2.5}, {}, {"axis": 0}, lengths, {"axis": 1, **lengths}]
    shapes = [((2, 3),), ((2, 3, 2),), ((3, 2),), ((0, 3),), ((4,),), ((2, 3), (2,)), ((2, 3, 2), (2, 2))]
    domain = ((-2.0, 2.0), (1, 3))
    return Record(reference, params=params, shapes=shapes, domain=domain, dtypes="f", input_types={1: "int32"})


def _along_axes(reference):
    params, shapes = [{"axis": -1}, {"axis": 0}, {"axis": 1}], [((2, 3),), ((3,),), ((2, 3, 2),)]
    return Record(reference, params=params, shapes=shapes, dtypes="f")


def _softmax_cross_entropy(data, label):
    chosen = np.arange(data.shape[1]) == label[:, None]
    return np.reshape(-np.sum(np.where(chosen, _log_softmax(data, axis=1), 0)), (1,))


RECORDS: dict[str, Record] = {
    # integers: computed in floating point and cut, as NumPy's results are
    "Activation": Record(_activation, params=[{"act_type": name} for name in _ACTIVATIONS], avoid=(0,), dtypes="f"),
    "LeakyReLU": Record(
        _leaky_relu,
        params=[
            {}, {"act_type": "leaky", "slope": 0.1}, {"act_type": "elu"}, {"act_type": "selu"}, {"act_type": "gelu"},
            {"act_type": "rrelu", "is_train": False}, {"act_type": "rrelu", "lower_bound": 0.5, "upper_bound": 0.5},
            {"act_type": "prelu"}, {"act_type": "prelu"}, {"act_type": "prelu"},
        ],
        shapes=[((2, 3),)] * 7 + [((2, 3), (3,)), ((2, 3, 2), (3,)), ((2, 3), (1,))], avoid=(0,), dtypes="f", seed=seeded,
    ),
    "FullyConnected": Record(
        _fully_connected,
        params=[
            {"num_hidden": 2}, {"num_hidden": 2, "no_bias": True}, {"num_hidden": 2}, {"num_hidden": 2, "flatten": False},
            {"num_hidden": 2, "flatten": False, "no_bias": True}, {"num_hidden": 2},
        ],
        shapes=[
            ((3, 2), (2, 2), (2,)), ((3, 2), (2, 2)), ((2, 2, 2), (2, 4), (2,)), ((2, 2, 3), (2, 3), (2,)), ((3,), (2, 3)),
            ((0, 3), (2, 3), (2,)),
        ],
        dtypes="f",
    ),
    "softmax": _of_axes(_softmax),
    "softmin": _of_axes(lambda data, *length, **params: _softmax(-data, *length, **params)),
    "log_softmax": _of_axes(_log_softmax),
    "_softmaxed": _along_axes(_softmax),
    "_log_softmaxed": _along_axes(_log_softmax),
    "SoftmaxActivation": Record(
        lambda data, mode="instance": special.softmax(data, axis=1 if mode == "channel" else -1),
        params=[{}, {"mode": "channel"}], shapes=[((2, 3),), ((2, 3, 2),)], dtypes="f",
    ),
    "softmax_cross_entropy": Record(
        _softmax_cross_entropy, domain=((-2.0, 2.0), (1.0, 1.0)), shapes=[((2, 3), (2,))], grad_inputs=(0,), dtypes="f",
        unchecked={"shapes back": "the labels' shape is given, as in MXNet"},
        refuses=[Refusal(r"expected \(batch, classes\)", shapes=((2, 3, 4), (2,)))],
    ),
}  # fmt: skip
