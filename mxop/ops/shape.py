"""Changes of the shape: reshape, transpose, flip, broadcast.

Almost all are views: their entry says where each element of the result lies, and the framework does the rest.
"""

from functools import lru_cache

from ..opdef import Shape, contiguous_strides, infer, kernel
from ..support import dtypes
from ..support.errors import OpValueError
from ..support.shape_mode import numpy_shape
from ._shared import adjoint, both_ways, on_both, product_of, size_of, typed_by_first, zero_gradient


# ---- shapes that may hold unknown dimensions ------------------------------------------------------------------------
def _ratio(op, total, known, asked, shape):
    """Return ``total / known``, the size of a dimension that is asked for as -1."""
    if total is None or known is None:
        return None
    if known == 0 or total % known:
        raise OpValueError(f"operator {op}: shape {infer.show(shape)} cannot be reshaped to {asked}; no size fits -1")
    return total // known


@lru_cache(1024)
def reshaped_shape(shape, asked, reverse=False, op="Reshape"):
    """Apply MXNet's shape codes to a shape whose dimensions may be unknown.

    Examples
    --------
    >>> reshaped_shape((2, 3, 4), (-3, 0)), reshaped_shape((2, 3, 4), (-4, 1, -1, -2))
    ((6, 4), (1, 2, 3, 4))
    """
    source, codes = (shape[::-1], asked[::-1]) if reverse else (shape, asked)
    result, at, free, i = [], 0, None, 0

    def take():
        nonlocal at
        if at >= len(source):
            raise OpValueError(f"operator {op}: shape={asked} reads more dimensions than {infer.show(shape)} has")
        at += 1
        return source[at - 1]

    left = []  # sizes that no code copied: what -1 and plain sizes share
    while i < len(codes):
        code = codes[i]
        if code == 0:
            result.append(take())
        elif code == -1:
            if free is not None:
                raise OpValueError(f"operator {op}: shape={asked} holds more than one -1")
            free = len(result)
            result.append(1)
            left += source[at : at + 1]
            at += 1
        elif code == -2:
            result += source[at:]
            at = len(source)
        elif code == -3:
            result.append(product_of((take(), take())))
        elif code == -4:
            if i + 2 >= len(codes):
                raise OpValueError(f"operator {op}: -4 in shape={asked} needs the two sizes that it splits into")
            whole, a, b = take(), codes[i + 1], codes[i + 2]
            if a == -1 and b == -1:
                raise OpValueError(f"operator {op}: only one of the two sizes after -4 may be -1, in shape={asked}")
            if a == -1:
                a = _ratio(op, whole, b, asked, shape)
            elif b == -1:
                b = _ratio(op, whole, a, asked, shape)
            if None not in (whole, a, b) and a * b != whole:
                raise OpValueError(f"operator {op}: -4 in shape={asked} cannot split {whole} into {a} and {b}")
            result += [a, b]
            i += 2
        elif code > 0:
            result.append(code)
            left += source[at : at + 1]
            at += 1
        else:
            raise OpValueError(f"operator {op}: shape={asked} holds {code}; expected sizes or codes from -4 to 0")
        i += 1
    if free is not None:
        total, known = product_of(source), product_of(result[:free] + result[free + 1 :])
        if known == 0 == total:  # a copied size is 0: what was not copied decides
            total = product_of([*left, *source[at:]])
            known = product_of([c for c in codes if c > 0])
        result[free] = _ratio(op, total, known, asked, shape)
    return tuple(result[::-1] if reverse else result)


def _target_shape(shape, target, keep_highest):
    """Apply the old ``target_shape``: 0 is inferred, and `keep_highest` copies the first dimension."""
    result = [shape[0], *target[1:]] if keep_highest else list(target)
    zeros = [i for i, d in enumerate(result) if d == 0 and not (keep_highest and i == 0)]
    if len(zeros) > 1:
        raise OpValueError(f"operator Reshape: target_shape={target} holds more than one 0")
    if zeros:
        result[zeros[0]] = _ratio("Reshape", product_of(shape), product_of([d for d in result if d != 0]), target, shape)
    return tuple(result)


def _same_size(op, shape, result):
    if product_of(shape) != product_of(result) and None not in shape and None not in result:
        raise OpValueError(f"operator {op}: shape {shape} has {size_of(shape)} elements but {result} has {size_of(result)}")
    return result


def _fill_one(out, data):
    """Return the data's shape with its one unknown dimension computed from the output's size."""
    if data is None or data.count(None) != 1 or None in out:
        return data
    rest = size_of(d for d in data if d is not None)
    return data if rest == 0 or size_of(out) % rest else tuple(size_of(out) // rest if d is None else d for d in data)


def reshaped_strides(shape, strides, new):
    """Return the strides of the same elements in shape `new`, or None where that takes a copy."""
    if 0 in shape or strides == contiguous_strides(shape):
        return contiguous_strides(new)
    old = [(d, s) for d, s in zip(shape, strides, strict=True) if d != 1]
    result, i, j = [1] * len(new), 0, 0
    while i < len(old):
        k, m = i + 1, j + 1
        have, want = old[i][0], new[j]
        while have != want:  # the smallest groups of equal size on both sides
            if want < have:
                want *= new[m]
                m += 1
            else:
                have *= old[k][0]
                k += 1
        if any(old[n][1] != old[n + 1][0] * old[n + 1][1] for n in range(i, k - 1)):
            return None
        step = old[k - 1][1]
        for n in range(m - 1, j - 1, -1):
            result[n] = step
            step *= new[n]
        i, j = k, m
    return tuple(result)


def reshaping(op, forward, backward=None):
    """Give `op` all that a change of shape alone needs; ``forward(shape, *others, **params)`` is the new shape."""

    @op.view
    def _(shape, strides, /, *others, **params):
        new = _same_size(op.name, shape, forward(shape, *others, **params))
        return new, reshaped_strides(shape, strides, new), 0

    @op.gradient
    def _(F, heads, inputs, outputs, **params):
        return [F.reshape_like(heads[0], inputs[0])] + [None] * (len(inputs) - 1)

    both_ways(op, lambda *shapes, **params: None if shapes[0] is None else forward(*shapes, **params),
              backward or (lambda out, data, *others, **params: _fill_one(out, data)))  # fmt: skip


# ---- reshape --------------------------------------------------------------------------------------------------------
@kernel(name="Reshape", aliases=("reshape",))
def reshape(data, *, shape: Shape = (), reverse: bool = False, target_shape: Shape = (), keep_highest: bool = False):
    """Change the shape; elements stay in order.

    Parameters
    ----------
    shape : tuple of int
        Sizes, or codes: 0 copies the dimension, -1 is inferred, -2 copies all remaining ones, -3 merges two,
        -4 splits one into the two sizes that follow (one of which may be -1).
    reverse : bool
        Read `shape` and the data's shape from the right (a -4 then follows its two sizes).
    target_shape, keep_highest
        The interface before MXNet 0.9: 0 is inferred; the first dimension may be kept.

    >>> x = mx.nd.zeros((2, 3, 4))
    >>> mx.nd.reshape(x, shape=(-3, 0)).shape, mx.nd.reshape(x, shape=(0, -1)).shape
    ((6, 4), (2, 12))
    """


def _reshape_forward(data, *, shape, reverse, target_shape, keep_highest):
    if shape:
        return reshaped_shape(data, shape, reverse)
    return _target_shape(data, target_shape, keep_highest) if target_shape else ()


reshaping(reshape, _reshape_forward)


@kernel(aliases=("_npx_reshape_like",))
def reshape_like(lhs, rhs, *, lhs_begin: int | None = None, lhs_end: int | None = None, rhs_begin: int | None = None,
                 rhs_end: int | None = None):  # fmt: skip
    """Give `lhs` the shape of `rhs`, or exchange only some of its dimensions for some of those of `rhs`.

    Parameters
    ----------
    lhs, rhs : NDArray or Symbol
        Only the shape of `rhs` matters.
    lhs_begin, lhs_end, rhs_begin, rhs_end : int, optional
        The dimensions ``lhs_begin:lhs_end`` are replaced by ``rhs_begin:rhs_end``; negative ones count from the end.

    >>> x, like = mx.nd.zeros((6, 5)), mx.nd.zeros((2, 3, 7))
    >>> mx.nd.reshape_like(x, like, lhs_end=1, rhs_end=2).shape
    (2, 3, 5)
    """


def _span(begin, end, rank, side):
    """Return the range of dimensions that two parameters name."""
    b = 0 if begin is None else begin + rank if begin < 0 else begin
    e = rank if end is None else end + rank if end < 0 else end
    if not 0 <= b <= e <= rank:
        raise OpValueError(
            f"operator reshape_like: {side}_begin={begin}, {side}_end={end} are not a range in {rank} dimensions"
        )
    return b, e


def _reshape_like_forward(lhs, rhs, *, lhs_begin, lhs_end, rhs_begin, rhs_end):
    if lhs_begin is lhs_end is rhs_begin is rhs_end is None:
        return rhs
    if lhs is None or rhs is None:
        return None
    b, e = _span(lhs_begin, lhs_end, len(lhs), "lhs")
    rb, re = _span(rhs_begin, rhs_end, len(rhs), "rhs")
    return (*lhs[:b], *rhs[rb:re], *lhs[e:])


reshaping(reshape_like, _reshape_like_forward)
typed_by_first(reshape_like)


@kernel(name="Flatten", aliases=("_npx_batch_flatten", "flatten"))
def flatten(data):
    """Merge all dimensions but the first.

    >>> mx.nd.flatten(mx.nd.zeros((2, 3, 4))).shape
    (2, 12)
    """


def _flatten_forward(data):
    return (data[0] if data else 1, product_of(data[1:]))


reshaping(flatten, _flatten_forward,
         lambda out, data: _fill_one(out, data) if data is None or not data else (out[0], *data[1:]))  # fmt: skip


@kernel(aliases=("_npi_expand_dims",))
def expand_dims(data, *, axis: int):
    """Insert a dimension of size 1 before `axis` (after it, counting from the end, when it is negative).

    >>> mx.nd.expand_dims(mx.nd.zeros((2, 3)), axis=-1).shape
    (2, 3, 1)
    """


def _expand_forward(data, *, axis):
    at = infer.normal_axis("expand_dims", axis, len(data) + 1)
    return (*data[:at], 1, *data[at:])


def _expand_backward(out, data, *, axis):
    at = infer.normal_axis("expand_dims", axis, len(out))
    return (*out[:at], *out[at + 1 :])


reshaping(expand_dims, _expand_forward, _expand_backward)


@kernel
def squeeze(data, *, axis: Shape | None = None):
    """Remove dimensions of size 1: those that `axis` names, or all.

    At least one dimension remains, unless ``mx.util.np_shape`` is on.

    >>> mx.nd.squeeze(mx.nd.zeros((1, 3, 1))).shape, mx.nd.squeeze(mx.nd.zeros((1, 3, 1)), axis=0).shape
    ((3,), (3, 1))
    """


def _squeeze_forward(data, *, axis):
    if axis is None:
        if None in data:
            return None
        kept = tuple(d for d in data if d != 1)
    else:
        axes = infer.distinct_axes("squeeze", axis, len(data))
        wrong = next((a for a in axes if data[a] not in (1, None)), None)
        if wrong is not None:
            raise OpValueError(f"operator squeeze: axis {wrong} of shape {infer.show(data)} has size {data[wrong]}, not 1")
        kept = tuple(d for i, d in enumerate(data) if i not in axes)
    return kept if kept or numpy_shape() else (1,)


def _squeeze_backward(out, data, *, axis):
    if axis is None or out in ((1,), (None,)):  # one dimension remains of any number
        return _fill_one(out, data)
    rank, rest = len(out) + len(axis), iter(out)
    axes = infer.distinct_axes("squeeze", axis, rank)
    return tuple(1 if i in axes else next(rest) for i in range(rank))


reshaping(squeeze, _squeeze_forward, _squeeze_backward)


# ---- transpose and flip ---------------------------------------------------------------------------------------------
@kernel
def transpose(data, *, axes: Shape = ()):
    """Permute the dimensions; reverse them when no `axes` are given.

    >>> mx.nd.transpose(mx.nd.array([[1, 2], [3, 4]])).asnumpy().tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    >>> mx.nd.transpose(mx.nd.zeros((2, 3, 4)), axes=(0, 2, 1)).shape
    (2, 4, 3)
    """


def _order(axes, rank):
    if not axes:
        return tuple(range(rank))[::-1]
    order = tuple(infer.normal_axis("transpose", a, rank, "axes") for a in axes) if len(axes) == rank else ()
    if sorted(order) != list(range(rank)):
        raise OpValueError(f"operator transpose: axes={axes} is not a permutation of the {rank} dimensions of the data")
    return order


def inverse(axes):
    """Return the permutation that undoes `axes` (negative ones count from the end)."""
    order = [a % len(axes) for a in axes]
    return tuple(order.index(i) for i in range(len(order)))


@transpose.view
def _(shape, strides, *, axes):
    order = _order(axes, len(shape))
    return tuple(shape[i] for i in order), tuple(strides[i] for i in order), 0


both_ways(
    transpose,
    lambda data, *, axes: None if data is None else tuple(data[i] for i in _order(axes, len(data))),
    lambda out, data, *, axes: tuple(out[i] for i in inverse(_order(axes, len(out)))),
)


@transpose.gradient
def _(F, heads, inputs, outputs, *, axes):
    return [F.transpose(heads[0], axes=inverse(axes))]


@kernel(name="SwapAxis", aliases=("_npi_swapaxes", "swapaxes"))
def swapaxes(data, *, dim1: int = 0, dim2: int = 0):
    """Exchange two dimensions.

    >>> mx.nd.swapaxes(mx.nd.zeros((2, 3, 4)), dim1=0, dim2=2).shape
    (4, 3, 2)
    """


def _swapped(values, dim1, dim2):
    a, b = (infer.normal_axis("SwapAxis", d, len(values), n) for d, n in ((dim1, "dim1"), (dim2, "dim2")))
    result = list(values)
    result[a], result[b] = result[b], result[a]
    return tuple(result)


@swapaxes.view
def _(shape, strides, *, dim1, dim2):
    return _swapped(shape, dim1, dim2), _swapped(strides, dim1, dim2), 0


both_ways(
    swapaxes,
    lambda data, **dims: None if data is None else _swapped(data, **dims),
    lambda out, data, **dims: _swapped(out, **dims),
)
adjoint(swapaxes, swapaxes)


@kernel(aliases=("flip",))
def reverse(data, *, axis: Shape):
    """Reverse the order of the elements along axes.

    >>> mx.nd.flip(mx.nd.array([[1, 2], [3, 4]]), axis=1).asnumpy().tolist()
    [[2.0, 1.0], [4.0, 3.0]]
    """


@reverse.view
def _(shape, strides, *, axis):
    axes = infer.distinct_axes("reverse", axis, len(shape))
    offset = sum((shape[a] - 1) * strides[a] for a in axes) if 0 not in shape else 0
    return shape, tuple(-s if i in axes else s for i, s in enumerate(strides)), offset


both_ways(reverse, lambda data, *, axis: data, lambda out, data, *, axis: out)
adjoint(reverse, reverse)


# ---- broadcast ------------------------------------------------------------------------------------------------------
def _broadcast(op, forward):
    """Give `op` everything that broadcasting needs; ``forward(shape, *others, **params)`` is the shape to reach."""

    @op.view
    def _(shape, strides, /, *others, **params):
        result = forward(shape, *others, **params)
        lead = len(result) - len(shape)
        if lead < 0 or any(d not in (1, r) for d, r in zip(shape, result[lead:], strict=True)):
            raise OpValueError(f"operator {op.name}: shape {shape} does not broadcast to {result}")
        steps = (0 if d == 1 != r else s for d, r, s in zip(shape, result[lead:], strides, strict=True))
        return result, (0,) * lead + tuple(steps), 0

    @op.gradient
    def _(F, heads, inputs, outputs, **params):
        return [F._unbroadcast(heads[0], inputs[0])] + [None] * (len(inputs) - 1)

    both_ways(op, lambda *shapes, **params: None if None in shapes else forward(*shapes, **params))


@kernel
def broadcast_to(data, *, shape: Shape = ()):
    """Repeat dimensions of size 1 until the data have the given shape; 0 in it copies the data's size.

    >>> mx.nd.broadcast_to(mx.nd.array([[1], [2]]), shape=(0, 3)).asnumpy().tolist()
    [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    """


def _broadcast_to_forward(data, *, shape):
    lead = len(shape) - len(data)
    if lead < 0:
        raise OpValueError(f"operator broadcast_to: shape={shape} has fewer dimensions than the data, {infer.show(data)}")
    if any(d < 0 for d in shape):
        raise OpValueError(f"operator broadcast_to: shape={shape} holds a negative size")
    return tuple(data[i - lead] if d == 0 and i >= lead else d for i, d in enumerate(shape))


_broadcast(broadcast_to, _broadcast_to_forward)


@kernel(aliases=("broadcast_axes",))
def broadcast_axis(data, *, axis: Shape = (), size: Shape = ()):
    """Repeat the data along axes of size 1.

    Parameters
    ----------
    axis : int or tuple of int
        Axes whose size is 1.
    size : int or tuple of int
        Their new sizes.

    >>> mx.nd.broadcast_axis(mx.nd.array([[1], [2]]), axis=1, size=3).asnumpy().tolist()
    [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    """


def _broadcast_axis_forward(data, *, axis, size):
    if len(axis) != len(size):
        raise OpValueError(f"operator broadcast_axis: axis={axis} and size={size} differ in length")
    if any(s < 0 for s in size):
        raise OpValueError(f"operator broadcast_axis: size={size} holds a negative size")
    result = list(data)
    for at, s in zip(infer.distinct_axes("broadcast_axis", axis, len(data)), size, strict=True):
        if data[at] not in (1, None):
            raise OpValueError(f"operator broadcast_axis: axis {at} of shape {infer.show(data)} has size {data[at]}, not 1")
        result[at] = s
    return tuple(result)


_broadcast(broadcast_axis, _broadcast_axis_forward)


@kernel
def broadcast_like(lhs, rhs, *, lhs_axes: Shape | None = None, rhs_axes: Shape | None = None):
    """Repeat `lhs` along its dimensions of size 1 until it has the shape of `rhs`.

    Parameters
    ----------
    lhs, rhs : NDArray or Symbol
        Only the shape of `rhs` matters.
    lhs_axes, rhs_axes : tuple of int, optional
        Broadcast only these axes of `lhs`, to the sizes of those of `rhs`.

    >>> mx.nd.broadcast_like(mx.nd.array([[1], [2]]), mx.nd.zeros((2, 3))).shape
    (2, 3)
    """


def _broadcast_like_forward(lhs, rhs, *, lhs_axes, rhs_axes):
    if lhs_axes is None and rhs_axes is None:
        lead = len(rhs) - len(lhs)
        own = (None,) * lead + tuple(None if d == 1 else d for d in lhs)  # other sizes stay
        return tuple(own[i] if d is None else d for i, d in enumerate(rhs)) if lead >= 0 else rhs
    if lhs_axes is None or rhs_axes is None or len(lhs_axes) != len(rhs_axes):
        raise OpValueError(f"operator broadcast_like: lhs_axes={lhs_axes} and rhs_axes={rhs_axes} differ in length")
    result = list(lhs)
    for a, b in zip(lhs_axes, rhs_axes, strict=True):
        size = rhs[infer.normal_axis("broadcast_like", b, len(rhs), "rhs_axes")]
        result[infer.normal_axis("broadcast_like", a, len(lhs), "lhs_axes")] = size
    return tuple(result)


_broadcast(broadcast_like, _broadcast_like_forward)
typed_by_first(broadcast_like)


# ---- shapes as data -------------------------------------------------------------------------------------------------
@kernel(name="_identity_with_attr_like_rhs")
def identity_with_attr_like_rhs(lhs, rhs):
    """Copy of `lhs`, which has the shape of `rhs`."""


@identity_with_attr_like_rhs.view
def _(shape, strides, rhs):
    return shape, strides, 0


@identity_with_attr_like_rhs.infer
def _(ins, outs):
    done = infer.same_shape("_identity_with_attr_like_rhs", ("lhs", "rhs", "output"), [*ins, *outs])
    return done[:2], done[2:]


@identity_with_attr_like_rhs.gradient
def _(F, heads, inputs, outputs):
    return [heads[0], None]


@zero_gradient
@kernel(aliases=("_npx_shape_array",), shape_only=(0,))
def shape_array(data):
    """Shape of the data, as int64.

    >>> mx.nd.shape_array(mx.nd.zeros((2, 3))).asnumpy().tolist()
    [2, 3]
    """


@zero_gradient
@kernel(shape_only=(0,))
def size_array(data):
    """Number of elements of the data, as int64.

    >>> mx.nd.size_array(mx.nd.zeros((2, 3))).asnumpy().tolist()
    [6]
    """


both_ways(shape_array, lambda data: (None if data is None else len(data),))
shape_array.dtype(lambda data: dtypes.INT64)
both_ways(size_array, lambda data: (1,))
size_array.dtype(lambda data: dtypes.INT64)


@on_both(shape_array)
def _(xp, inputs, outputs):
    outputs[0][...] = xp.asarray(inputs[0].shape, outputs[0].dtype)


@on_both(size_array)
def _(xp, inputs, outputs):
    outputs[0][...] = inputs[0].size
