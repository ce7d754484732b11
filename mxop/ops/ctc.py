"""Connectionist temporal classification (CTC): the loss of sequences with unaligned labels.

A loop over the steps adds up, in logarithms, the probabilities of all ways to write the labels; its gradient, of every order,
follows.
"""

import math
from typing import Literal

from ..opdef import F, Of, composite, elementwise, kernel
from ..support import dtypes
from ..support.errors import OpValueError
from ._shared import device_of, equal_shapes, float_types, on_both, zero_gradient

#: The logarithm of no probability at all: finite, so that differences of it are numbers.
_NEVER = -1e30


# ---- what labels ask for -----------------------------------------------------------------------------------------------
@kernel(name="_ctc_paths", shape_only=(0,), num_outputs=4)
def paths(data, label, data_lengths, label_lengths, *, by_length: bool = False, blank_last: bool = False):
    """What the labels, with blanks around each, ask of the steps.

    Returns the class at each place, what is added to skip the blank before it, what is added to end there, and the steps that
    are inside their sequence.  Without `by_length`, labels end at the first padding, 0 or (with `blank_last`) -1.
    """


def _path_shapes(data, label, *lengths, **params):
    places = (label[0], None if label[1] is None else 2 * label[1] + 1)  # with blanks around each
    return [places, places, places, data[:2]]


paths.shape(_path_shapes)
zero_gradient(paths)


@paths.infer_types
def _(ins, outs, **params):
    wide = dtypes.COMPUTED_AS.get(ins[0], ins[0])
    return ins, [dtypes.INT64, wide, wide, wide]


@on_both(paths)
def _(xp, inputs, outputs, *, by_length, blank_last):
    data, label, data_lengths, label_lengths = inputs
    steps, batch, classes = data.shape
    blank, n = classes - 1 if blank_last else 0, label.shape[1]
    label = label.astype(xp.int64)
    padding = label == (-1 if blank_last else 0)
    lengths = label_lengths.astype(xp.int64) if by_length else (xp.cumsum(padding, 1) == 0).sum(1)
    lengths = xp.clip(lengths, 0, n)
    places = xp.full((batch, 2 * n + 1), blank, xp.int64)
    places[:, 1::2] = xp.clip(label, 0, classes - 1)
    may_skip = xp.zeros(places.shape, bool)
    may_skip[:, 3::2] = label[:, 1:] != label[:, :-1]
    at, end = xp.arange(2 * n + 1), 2 * lengths[:, None]
    outputs[0][...] = places
    outputs[1][...] = xp.where(may_skip, 0, _NEVER)
    outputs[2][...] = xp.where((at == end) | (at == end - 1), 0, _NEVER)
    outputs[3][...] = xp.arange(steps)[:, None] < data_lengths.astype(xp.int64)


# ---- sums of probabilities ---------------------------------------------------------------------------------------------
@elementwise(name="_log_add", rule=lambda g, a, b, c, out: (g * F.exp(a - out), g * F.exp(b - out), g * F.exp(c - out)))
def log_add(a, b, c):
    """Logarithm of the sum of three numbers whose logarithms are given."""
    top = F.maximum(F.maximum(a, b), c)
    found = top + F.log(F.exp(a - top) + F.exp(b - top) + F.exp(c - top))
    return F.where(F.abs(top) == math.inf, top, found)


@elementwise(name="_loss_of")
def loss_of(data):
    """The loss of a logarithm of a probability; 0 where that is none."""
    return F.where(data <= 0.5 * _NEVER, 0, -data)


def _moved(F, data, n):
    """Move the places by `n`, where ways never are at first."""
    none = F._minus_scalar(F.zeros_like(F.slice_axis(data, axis=1, begin=0, end=1)), scalar=-_NEVER)
    return F.concat(*[none] * n, F.slice_axis(data, axis=1, begin=0, end=-n), dim=1)


def _step(F, skip, emission, inside, old):
    """Return the logarithms of the probabilities to be at each place, after one more step."""
    new = F._log_add(old, _moved(F, old, 1), _moved(F, old, 2) + skip) + emission
    return F._where_inside(F.expand_dims(inside, axis=1), new, old)


def _inputs(*, use_data_lengths, use_label_lengths, **params):
    return ["data", "label", *["data_lengths"] * use_data_lengths, *["label_lengths"] * use_label_lengths]


@composite(
    aliases=("_contrib_CTCLoss", "_contrib_ctc_loss", "ctc_loss"), num_outputs=2, visible_outputs=1,
    output_names=("output0", "output1"), active_inputs=_inputs,
)  # fmt: skip
def CTCLoss(F, data, label, data_lengths=None, label_lengths=None, *, use_data_lengths: bool = False,
            use_label_lengths: bool = False, blank_label: Literal["first", "last"] = "first"):  # fmt: skip
    """Connectionist temporal classification (CTC) loss: minus the log-probability of the labels.

    It includes the softmax over the classes.  Where the labels do not fit into the steps, the loss is 0.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(steps, batch, classes)``.
    label : NDArray or Symbol
        ``(batch, labels)``, of any type.
    data_lengths : NDArray or Symbol
        Only with `use_data_lengths`: how many steps each sequence has, ``(batch,)``.
    label_lengths : NDArray or Symbol
        Only with `use_label_lengths`: number of labels, ``(batch,)``.  Without it, labels end at the first padding.
    blank_label : {'first', 'last'}
        The class for no label: 0, which is also the padding; or the last one, with the padding -1.

    >>> x = mx.nd.zeros((2, 1, 3))  # three of nine ways to write class 1 in two steps
    >>> mx.nd.CTCLoss(x, mx.nd.array([[1, 0]])).asnumpy().round(4).tolist()
    [1.0986000299453735]
    """
    x = F._widened(data)
    steps = data.shape[0]
    if data_lengths is None:  # as many as there are labels, of no sequences, too
        length = F.full(shape=(1,), value=steps, dtype="int64", ctx=device_of(data))
        data_lengths = F.broadcast_like(length, label, lhs_axes=(0,), rhs_axes=(0,))
    given = data_lengths if label_lengths is None else label_lengths
    places, skip, ends, inside = F._ctc_paths(
        x, label, data_lengths, given, by_length=use_label_lengths, blank_last=blank_label == "last"
    )
    if use_data_lengths:  # what lies behind the end may be NaN, and has no gradient
        x = F._filled(x, F.expand_dims(inside, axis=2), value=0)
    at = F.broadcast_to(F.expand_dims(places, axis=0), shape=(steps, 0, 0))
    emissions = F._take_lanes(F.log_softmax(x, axis=-1), at, axis=2)
    first = F._ctc_start(skip)

    def step(given, old):
        new = _step(F, skip, given[0], given[1], old)
        return new, new

    _, last = F.contrib.foreach(step, [emissions, inside], first)
    return [F.Cast(F._loss_of(F._logsumexp(last + ends, axis=1)), dtype=data.dtype)] * 2


@zero_gradient
@equal_shapes
@kernel(name="_ctc_start", shape_only=(0,))
def start(skip):
    """Logarithms of the probabilities before the first step: all ways are at the first place."""


@start.rearrange
def _(xp, inputs, outputs):
    outputs[0][...] = _NEVER
    outputs[0][:, :1] = 0


@CTCLoss.dims
def _(**params):
    vectors = dict.fromkeys(["data_lengths", "label_lengths", *CTCLoss.output_names(None)], ("batch",))
    return {"data": ("steps", "batch", "classes"), "label": ("batch", Of("labels", _room, _room)), **vectors}


def _room(n):
    if n == 0:
        raise OpValueError("operator CTCLoss: label has no columns; expected room for one label at least")
    return n


float_types(CTCLoss, label=None, data_lengths=None, label_lengths=None)
