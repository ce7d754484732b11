"""Sequences of different lengths in one array: mask the rest, take the last elements, reverse."""

from ..opdef import F, Scalar, composite, elementwise, infer, kernel
from ..support import dtypes
from ..support.errors import OpValueError
from ._shared import both_ways, device_of, on_both, typed_by_first, zero_gradient


def _inputs(*, use_sequence_length, **params):
    return ("data", "sequence_length") if use_sequence_length else ("data",)


def _checked(name, data, axis):
    """Return the shape of the lengths, one a sequence."""
    if axis not in (0, 1):
        raise OpValueError(f"operator {name}: axis={axis}; expected 0 or 1, the other one being that of the batch")
    if len(data) < 2:
        raise OpValueError(
            f"operator {name}: data has shape {infer.show(data)}; expected at least two dimensions, "
            "those of the sequences and of the batch"
        )
    return (data[1 - axis],)


def _along(xp, data, length, axis):
    """Return the places along the axis, and the lengths as whole numbers, in shapes that broadcast to the data's."""
    sizes = [1] * data.ndim
    sizes[axis], wide = -1, length.astype(xp.int64)
    places = xp.arange(data.shape[axis]).reshape(sizes)
    sizes[axis], sizes[1 - axis] = 1, -1
    return places, wide.reshape(sizes)


# ---- mask -----------------------------------------------------------------------------------------------------------
@elementwise(name="_keep_or", broadcast=True)
def keep_or(data, kept, *, value: Scalar):
    """The data where `kept` is not 0, else a value."""
    return F.where(kept, data, value)


@composite(aliases=("_npx_sequence_mask",), active_inputs=_inputs)
def SequenceMask(F, data, sequence_length=None, *, use_sequence_length: bool = False, value: Scalar = 0.0, axis: int = 0):
    """Replace the elements beyond the end of each sequence.

    Parameters
    ----------
    data : NDArray or Symbol
        Of at least two dimensions, the first two of which are those of the sequences and of the batch.
    sequence_length : NDArray or Symbol
        Only with `use_sequence_length`: one length for each sequence, of any type.
    use_sequence_length : bool
        Without it the data are copied.
    value : float
        The replacement.
    axis : int
        Axis of the sequences, 0 or 1.

    >>> x = mx.nd.array([[1, 2], [3, 4], [5, 6]])
    >>> mx.nd.SequenceMask(x, mx.nd.array([1, 2]), use_sequence_length=True, value=-1).asnumpy().tolist()
    [[1.0, 2.0], [-1.0, 4.0], [-1.0, -1.0]]
    """
    if not use_sequence_length or 0 in data.shape:
        return F.identity(data)
    sizes, ones = data.shape[:2], (1,) * (len(data.shape) - 2)
    place = F._arange(start=0, stop=sizes[axis], ctx=device_of(data))
    length = F.cast(F.trunc(sequence_length), dtype="float32")
    shapes = [(-1, 1, *ones), (1, -1, *ones)]
    kept = F.broadcast_lesser(F.Reshape(place, shape=shapes[axis]), F.Reshape(length, shape=shapes[1 - axis]))
    return F._keep_or(data, F.cast(kept, dtype=data.dtype), value=value)


typed_by_first(SequenceMask, others=True)


@SequenceMask.gradient
def _(F, heads, inputs, outputs, *, value, **params):
    return [F.SequenceMask(heads[0], *inputs[1:], value=0.0, **params)] + [None] * (len(inputs) - 1)


# ---- rows of sequences ----------------------------------------------------------------------------------------------
@kernel(name="_sequence_rows", shape_only=(0,))
def sequence_rows(data, sequence_length, *, axis: int = 0, last: bool = False):
    """Number the rows of ``data.reshape(-1, ...)``, as int64: in reverse order up to each end, or those at the ends alone."""


def _rows_shape(data, length, *, axis, last):
    if data is None:
        return None
    wanted = _checked("SequenceLast" if last else "SequenceReverse", data, axis)
    infer.same_shape("_sequence_rows", ("sequence_length", "the batch of the data"), [length, wanted])
    return (data[1 - axis],) if last else data[:2]


both_ways(sequence_rows, _rows_shape)
sequence_rows.infer_types(lambda ins, outs, **params: (ins, [dtypes.INT64]))
zero_gradient(sequence_rows)


@on_both(sequence_rows)
def _(xp, inputs, outputs, *, axis, last):
    places, length = _along(xp, *inputs, axis)
    batch = xp.arange(length.size).reshape(length.shape)
    steps, count = inputs[0].shape[axis], inputs[0].shape[1 - axis]
    if last:
        found = xp.clip(length - 1, 0, steps - 1)
    else:
        length = xp.minimum(length, steps)
        found = xp.where(places < length, length - 1 - places, places)
    rows = found * count + batch if axis == 0 else batch * steps + found
    outputs[0][...] = rows.reshape(outputs[0].shape) if last else rows.reshape(rows.shape[:2])


def _rows(F, data, length, axis, last=False):
    """Take the rows of the merged first two dimensions that ``_sequence_rows`` numbers."""
    return F.take(F.Reshape(data, shape=(-3, -2)), F._sequence_rows(data, length, axis=axis, last=last))


def _inferred(op, forward, backward=None):
    """Let the output's shape, ``forward(data, axis)``, and that of the lengths follow from the data's."""

    @op.infer
    def _(ins, outs, *, axis, **params):
        if backward is not None and outs[0] is not None:
            ins[0] = infer.same_shape(op.name, ("data", "output"), [ins[0], backward(outs[0])])[0]
        if ins[0] is not None:
            wanted = _checked(op.name, ins[0], axis)
            ins[1:] = [infer.same_shape(op.name, ("sequence_length", "the batch of the data"), [s, wanted])[0] for s in ins[1:]]
            names = ("output", "expected by the data")
            outs = infer.same_shape(op.name, names, [outs[0], forward(ins[0], axis)])[:1]
        return ins, outs


@composite(active_inputs=_inputs)
def SequenceLast(F, data, sequence_length=None, *, use_sequence_length: bool = False, axis: int = 0):
    """Take the last element of each sequence.

    Parameters
    ----------
    data : NDArray or Symbol
        Of at least two dimensions, the first two of which are those of the sequences and of the batch.
    sequence_length : NDArray or Symbol
        Only with `use_sequence_length`: one length for each sequence, of any type.  Lengths below 1 count as 1,
        lengths beyond the data as theirs.
    use_sequence_length : bool
        Without it all sequences are as long as the data.
    axis : int
        Axis of the sequences, 0 or 1.

    >>> x = mx.nd.array([[1, 2], [3, 4], [5, 6]])
    >>> mx.nd.SequenceLast(x).asnumpy().tolist()
    [5.0, 6.0]
    >>> mx.nd.SequenceLast(x, mx.nd.array([1, 2]), use_sequence_length=True).asnumpy().tolist()
    [1.0, 4.0]
    """
    if use_sequence_length:
        return _rows(F, data, sequence_length, axis, last=True)
    return F.squeeze(F.slice_axis(data, axis=axis, begin=-1, end=None), axis=(axis,))


@composite(active_inputs=_inputs)
def SequenceReverse(F, data, sequence_length=None, *, use_sequence_length: bool = False, axis: int = 0):
    """Reverse each sequence up to its end; elements beyond it stay.

    Parameters
    ----------
    data : NDArray or Symbol
        Of at least two dimensions, the first two of which are those of the sequences and of the batch.
    sequence_length : NDArray or Symbol
        Only with `use_sequence_length`: one length for each sequence, of any type.
    use_sequence_length : bool
        Without it all sequences are as long as the data.
    axis : int
        Axis of the sequences, 0 or 1; MXNet supports 0 only.

    >>> x = mx.nd.array([[1, 2], [3, 4], [5, 6]])
    >>> mx.nd.SequenceReverse(x, mx.nd.array([1, 2]), use_sequence_length=True).asnumpy().tolist()
    [[1.0, 4.0], [3.0, 2.0], [5.0, 6.0]]
    """
    if not use_sequence_length:
        return F.reverse(data, axis=(axis,))
    return F.reshape_like(_rows(F, data, sequence_length, axis), data)


_inferred(SequenceMask, lambda data, axis: data, lambda out: out)
_inferred(SequenceLast, lambda data, axis: (data[1 - axis], *data[2:]))
_inferred(SequenceReverse, lambda data, axis: data, lambda out: out)
typed_by_first(SequenceLast, others=True)
typed_by_first(SequenceReverse, others=True)
