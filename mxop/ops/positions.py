"""Conversions of indices, and rows at given indices."""

from ..opdef import Shape, composite, infer, kernel
from ..support import dtypes
from ..support.errors import OpIndexError, OpValueError
from ._shared import IN_RANGE, both_ways, on_both, one_type, typed_by_first, zero_gradient


# ---- flat indices ---------------------------------------------------------------------------------------------------
def _sizes(name, shape):
    """Return the sizes whose product is one step of each coordinate: the first may be unknown, -1."""
    if not shape or any(d < 1 for d in shape[1:]) or shape[0] < -1:
        raise OpValueError(f"operator {name}: shape={shape}; expected sizes, of which the first one may be -1")
    return shape[1:]


@kernel(name="_ravel_multi_index", aliases=("ravel_multi_index",))
def ravel_multi_index(data, *, shape: Shape = ()):
    """Convert coordinates to flat indices, in row-major order.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(m, n)``: one column of coordinates for each element; they are not checked against the sizes.
    shape : tuple of int
        The `m` sizes of the array; the first one does not matter, and may be -1.

    >>> mx.nd.ravel_multi_index(mx.nd.array([[3, 6, 6], [4, 5, 1]]), shape=(7, 6)).asnumpy().tolist()
    [22.0, 41.0, 37.0]
    """


@kernel(name="_unravel_index", aliases=("unravel_index",))
def unravel_index(data, *, shape: Shape = ()):
    """Convert flat indices to coordinates, in row-major order.

    Parameters
    ----------
    data : NDArray or Symbol
        Flat indices, of any shape.
    shape : tuple of int
        The sizes of the array; the first one does not matter, and may be -1.

    Returns
    -------
    NDArray or Symbol
        ``(m, ...)``: one column of coordinates for each index.

    >>> mx.nd.unravel_index(mx.nd.array([22, 41, 37]), shape=(7, 6)).asnumpy().tolist()
    [[3.0, 6.0, 6.0], [4.0, 5.0, 1.0]]
    """


def _ravelled(data, *, shape):
    _sizes("_ravel_multi_index", shape)
    if len(data) < 2 or data[0] not in (None, len(shape)):
        raise OpValueError(f"operator _ravel_multi_index: data has shape {infer.show(data)}; expected ({len(shape)}, ...), "
                           f"a column of coordinates for each element, for shape={shape}")  # fmt: skip
    return data[1:]


def _unravelled(data, *, shape):
    _sizes("_unravel_index", shape)
    return (len(shape), *data)


for _op, _there, _back in ((ravel_multi_index, _ravelled, _unravelled), (unravel_index, _unravelled, _ravelled)):
    both_ways(_op, lambda data, _rule=_there, **params: None if data is None else _rule(data, **params),
              lambda out, data, _rule=_back, **params: _rule(out, **params))  # fmt: skip
    typed_by_first(_op)
    zero_gradient(_op)


@on_both(ravel_multi_index)
def _(xp, inputs, outputs, *, shape):
    found, *rest = inputs[0].astype(xp.int64)
    for size, coordinate in zip(shape[1:], rest, strict=True):
        found = found * size + coordinate
    outputs[0][...] = found


@on_both(unravel_index)
def _(xp, inputs, outputs, *, shape):
    left = inputs[0].astype(xp.int64)
    for k in range(len(shape) - 1, 0, -1):
        rest = xp.fmod(left, shape[k])  # the sign of the number, as MXNet's
        outputs[0][k] = rest
        left = (left - rest) // shape[k]
    outputs[0][0] = left


@kernel(name="_contrib_index_array", shape_only=(0,))
def index_array(data, *, axes: Shape | None = None):
    """Coordinates of every element, along a new last axis, as int64.

    Parameters
    ----------
    data : NDArray or Symbol
        Only its shape matters.
    axes : tuple of int, optional
        Which coordinates; all by default.

    >>> mx.nd.contrib.index_array(mx.nd.ones((2, 2))).asnumpy().tolist()
    [[[0, 0], [0, 1]], [[1, 0], [1, 1]]]
    """


def _index_axes(rank, axes):
    return range(rank) if axes is None else [infer.normal_axis("_contrib_index_array", a, rank, "axes") for a in axes]


both_ways(index_array, lambda data, *, axes: None if data is None else (*data, len(_index_axes(len(data), axes))),
          lambda out, data, *, axes: out[:-1])  # fmt: skip
index_array.infer_types(lambda ins, outs, **params: (ins, [dtypes.INT64]))
zero_gradient(index_array)


@on_both(index_array)
def _(xp, inputs, outputs, *, axes):
    shape = inputs[0].shape
    for k, axis in enumerate(_index_axes(len(shape), axes)):
        sizes = [-1 if i == axis else 1 for i in range(len(shape))]
        outputs[0][..., k] = xp.arange(shape[axis]).reshape(sizes)


# ---- rows at positions ----------------------------------------------------------------------------------------------
@kernel(name="_contrib_index_copy")
def index_copy(old_tensor, index_vector, new_tensor):
    """Copy of `old_tensor` in which rows are replaced by those of `new_tensor`.

    Parameters
    ----------
    index_vector : NDArray or Symbol
        For each row of `new_tensor`, which row it replaces; of equal ones the last wins, and gradients treat them
        as different.

    >>> old, new = mx.nd.zeros((3, 2)), mx.nd.array([[1, 2], [3, 4]])
    >>> mx.nd.contrib.index_copy(old, mx.nd.array([2, 0]), new).asnumpy().tolist()
    [[3.0, 4.0], [0.0, 0.0], [1.0, 2.0]]
    """


@index_copy.infer
def _(ins, outs):
    old, index, new = ins
    old, out = infer.same_shape("_contrib_index_copy", ("old_tensor", "output"), [old, outs[0]])
    if (index is not None and len(index) != 1) or old == ():
        raise OpValueError(f"operator _contrib_index_copy: index_vector has shape {infer.show(index)}, old_tensor "
                           f"{infer.show(old)}; expected a vector, and rows")  # fmt: skip
    if old is not None:
        names = ("new_tensor", "rows of old_tensor, one for each index")
        new = infer.same_shape("_contrib_index_copy", names, [new, (index[0] if index else None, *old[1:])])[0]
        index = infer.same_shape("_contrib_index_copy", ("index_vector", "new_tensor"), [index, new[:1]])[0]
    return [old, index, new], [out]


@index_copy.infer_types
def _(ins, outs):
    names = ("old_tensor", "new_tensor", "output")
    old, new, out = infer.same_type("_contrib_index_copy", names, [ins[0], ins[2], outs[0]])
    return [old, ins[1], new], [out]


@on_both(index_copy, waits=IN_RANGE)
def _(xp, inputs, outputs):
    old, index, new = inputs
    places = index.astype(xp.int64)
    if places.size and not bool(((places >= 0) & (places < len(old))).all()):
        raise OpIndexError(f"operator _contrib_index_copy: index_vector names rows that old_tensor of {len(old)} does not have")
    outputs[0][...] = old
    outputs[0][places] = new


@index_copy.gradient
def _(F, heads, inputs, outputs):
    index, new = inputs[1:]
    return [F._contrib_index_copy(heads[0], index, F.zeros_like(new)), None, F.take(heads[0], index)]


@one_type
@composite(num_args_param="num_args")
def khatri_rao(F, *args, num_args: int = 0):
    """Khatri-Rao product of matrices: column by column, the Kronecker product.

    Parameters
    ----------
    *args : NDArray or Symbol
        Matrices with equal numbers of columns.
    num_args : int
        Number of matrices; optional in calls.

    >>> a, b = mx.nd.array([[1, -1], [2, -3]]), mx.nd.array([[1, 4], [2, 5]])
    >>> mx.nd.khatri_rao(a, b).asnumpy().tolist()
    [[1.0, -4.0], [2.0, -5.0], [2.0, -12.0], [4.0, -15.0]]
    """
    if any(len(a.shape) != 2 or a.shape[1] != args[0].shape[1] for a in args):
        shapes = ", ".join(str(tuple(a.shape)) for a in args)
        raise OpValueError(f"operator khatri_rao: shapes {shapes}; expected matrices with equal numbers of columns")
    found = args[0]
    for a in args[1:]:
        found = F.Reshape(F.broadcast_mul(F.expand_dims(found, axis=1), F.expand_dims(a, axis=0)), shape=(-3, 0))
    return F.identity(found) if len(args) == 1 else found
