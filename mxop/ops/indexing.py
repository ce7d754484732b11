"""What ``x[key]`` and ``x[key] = value`` record while autograd runs: NumPy's indexing as operators.

The integer arrays of a key are inputs; the rest of it is text (see :func:`written`), so that calls can be cached, shown
and stored.  Users index arrays and need none of these operators by name.
"""

import operator
from contextlib import contextmanager
from functools import lru_cache
from math import prod as size_of
from numbers import Integral
from typing import Any, NamedTuple

from ..opdef import kernel
from ..opdef.symbolic import is_concrete, is_symbolic
from ..support import dtypes
from ..support.errors import OpIndexError, OpTypeError, OpValueError, shown
from ..support.shape_mode import numpy_shape
from ._shared import on_both, taken, typed_by_first
from .gather import sums_at

ARRAY, NEW = "@", "new"


# ---- keys as text ---------------------------------------------------------------------------------------------------
def written(items):
    """Write a key: ``start:stop:step`` for a slice, a number, ``new`` for None, ``@`` for the next array of indices.

    Examples
    --------
    >>> written([slice(0, 3, 1), 2, None, "@"])
    '0:3:1,2,new,@'
    """
    texts = []
    for item in items:
        if item is None:
            texts.append(NEW)
        elif isinstance(item, slice):
            texts.append(":".join("" if part is None else str(part) for part in (item.start, item.stop, item.step)))
        else:
            texts.append(str(item))
    return ",".join(texts)


@lru_cache(maxsize=1024)
def read(key):
    """Return the items of a written key; arrays stay ``'@'``.

    Examples
    --------
    >>> read("0:3:1,2,new,@")
    (slice(0, 3, 1), 2, None, '@')
    """
    try:
        return _read(key)
    except ValueError:
        expected = "items such as 3, 0:3:1, new and @"
        raise OpValueError(f"key={shown(key)} is not a key that was written: expected {expected}") from None


def _read(key):
    items = []
    for text in key.split(",") if key else ():
        text = text.strip()
        if text == ARRAY:
            items.append(ARRAY)
        elif text == NEW:
            items.append(None)
        elif ":" in text:
            parts = [int(part) if part else None for part in text.split(":")]
            items.append(slice(*parts) if len(parts) > 1 else slice(parts[0]))
        else:
            items.append(int(text))
    return tuple(items)


def _filled(op, items, arrays):
    """Return the key for NumPy or CuPy, with its arrays in their places."""
    if items.count(ARRAY) != len(arrays):
        raise OpValueError(f"operator {op}: the key has {items.count(ARRAY)} places for arrays, {len(arrays)} given")
    rest = iter(arrays)
    return tuple(next(rest) if isinstance(item, str) else item for item in items)


# ---- basic keys -----------------------------------------------------------------------------------------------------
def slice_of(item, size):
    """Return start, stop and step of a slice of so many elements; whatever its step, that of one element is 1."""
    try:
        start, stop, step = item.indices(size)
    except TypeError:
        raise OpTypeError(f"slice {item} must hold integers or None") from None
    except ValueError as problem:
        raise OpValueError(f"slice {item}: {problem}") from None
    count = len(range(start, stop, step))
    return (start, stop, step) if count > 1 else (start, start + count, 1)


def range_of(item, size):
    """Return start, stop and step of a slice as :func:`slice_of`, and the count; sizes and numbers may be symbolic."""
    if is_concrete((item.start, item.stop, item.step, size)):
        start, stop, step = slice_of(item, size)
        return start, stop, step, len(range(start, stop, step))
    step = 1 if item.step is None else operator.index(item.step)
    if step == 0:
        raise OpValueError(f"slice {item}: slice step cannot be zero")
    start, stop, count = taken(*(None if at is None else _whole(at) for at in (item.start, item.stop)), step, size)
    return (start, stop, step, count) if count > 1 else (start, start + count, 1, count)


def _whole(item):
    return item if is_symbolic(item) and item.integral else operator.index(item)


def integer(item, axis, size):
    """Return an index, counted from the start."""
    at = _whole(item)
    if not -size <= at < size:
        raise OpIndexError(f"index {at} is out of bounds for axis {axis} with size {size}")
    return at + size if at < 0 else at


def expanded(items, rank, used):
    """Return the key with ``...`` written out, so that every dimension is named."""
    if used > rank:
        raise OpIndexError(f"too many indices: the array has {rank} dimensions, but {used} were indexed")
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise OpIndexError("an index can only have a single ellipsis ('...')")
    at = dots[0] if dots else len(items)
    return [*items[:at], *[slice(None)] * (rank - used), *items[at + 1 :]]


def exact(items, shape):
    """Return a key, every dimension named, whose numbers count from the start, and the sizes that a basic key leaves."""
    result, sizes, axis = [], [], 0
    for item in items:
        if item is None:
            result.append(None)
            sizes.append(1)
            continue
        if isinstance(item, slice):
            start, stop, step, count = range_of(item, shape[axis])
            result.append(slice(start, None if stop < 0 else stop, step) if count else slice(0, 0, 1))
            sizes.append(count)
        elif isinstance(item, Integral):
            result.append(integer(item, axis, shape[axis]))
        else:
            result.append(item)
        axis += 1
    return result, tuple(sizes)


def as_slice(items):
    """Return the parameters of ``slice`` that take what an exact key takes; a number keeps its dimension, of size 1.

    Examples
    --------
    >>> as_slice([2, None, slice(0, 3, 1)])
    {'begin': (2, 0), 'end': (3, 3), 'step': (1, 1)}
    """
    parts = [i if isinstance(i, slice) else slice(i, i + 1, 1) for i in items if i is not None]
    return {name: tuple(getattr(p, part) for p in parts)
            for name, part in (("begin", "start"), ("end", "stop"), ("step", "step"))}  # fmt: skip


def basic_key(key, shape):
    """Return an exact key of integers, slices, None and ``...``, and the shape of what it takes.

    Raises
    ------
    TypeError
        Where it holds something else.

    Examples
    --------
    >>> basic_key((slice(1, None), None, -1), (4, 5))
    ([slice(1, 4, 1), None, 4], (3, 1))
    """
    items = key if type(key) is tuple else (key,)
    for item in items:
        if not (item is None or item is Ellipsis or isinstance(item, (slice, Integral))) or isinstance(item, bool):
            raise OpTypeError(f"index {shown(item)} is not an integer, slice, None or ...")
    return exact(expanded(items, len(shape), sum(i is not None and i is not Ellipsis for i in items)), shape)


def part_of(F, x, key):
    """Index by operators that have gradients: a slice, and a reshape that drops and adds dimensions.

    Parameters
    ----------
    F
        What has the operators: of arrays, or of values in a graph.
    x
        An array, or a value of known shape.
    key
        Of integers, slices, None and ``...``.
    """
    found, goal = basic_key(key, x.shape)
    if not goal and x.ndim and not numpy_shape():  # MXNet: one element is an array of shape (1,)
        goal = (1,)
    if not x.ndim or not goal or 0 in x.shape or 0 in goal:  # a 0 in a shape, or no size, would be a code for Reshape
        if goal == (1,) and x.ndim and all(isinstance(i, int) for i in found):
            found.append(None)
        return F._getitem(x, key=written(found))
    part = F.slice(x, **as_slice(found))
    return part if part.shape == goal else F.Reshape(part, shape=goal)


# ---- the shape of data[key] -----------------------------------------------------------------------------------------
def _broadcast(op, shapes):
    rank = max(len(s) for s in shapes)
    result = [1] * rank
    for s in shapes:
        for at, d in enumerate(s, rank - len(s)):
            if d != 1:
                if result[at] not in (1, d):
                    raise OpIndexError(f"operator {op}: index arrays of shapes {', '.join(map(str, shapes))} do not broadcast")
                result[at] = d
    return result


def indexed_shape(op, data, items, arrays):
    """Return the shape of ``data[key]`` by NumPy's rules.

    Parameters
    ----------
    op : str
        For messages.
    data : tuple of int
        Shape of the data.
    items : tuple
        The key, ``'@'`` standing for arrays; dimensions that it does not mention are taken whole.
    arrays : sequence of tuple of int
        Shapes of the arrays.

    Examples
    --------
    >>> indexed_shape("_getitem", (4, 5, 6), (slice(None), "@", None, "@"), [(2, 1), (3,)])
    (2, 3, 4, 1)
    """
    used = sum(item is not None for item in items)
    if used > len(data):
        raise OpIndexError(f"operator {op}: too many indices: the data has {len(data)} dimensions, the key names {used}")
    # beside an array, a number is an index array too
    advanced = [i for i, item in enumerate(items) if isinstance(item, (int, str))] if ARRAY in items else []
    together = _broadcast(op, arrays) if advanced else []
    adjacent = not advanced or advanced[-1] - advanced[0] == len(advanced) - 1
    result, axis = [] if adjacent else list(together), 0
    for i, item in enumerate(items):
        if item is None:
            result.append(1)
            continue
        if isinstance(item, slice):
            result.append(range_of(item, data[axis])[3])
        elif adjacent and advanced and i == advanced[0]:
            result += together
        if isinstance(item, int) and not -data[axis] <= item < data[axis]:
            raise OpIndexError(f"operator {op}: index {item} is out of bounds for axis {axis} with size {data[axis]}")
        axis += 1
    return tuple(result + list(data[axis:]))


# ---- keys with arrays on a GPU ---------------------------------------------------------------------------------------
def _dims(item):
    """Return how many dimensions an item of a key is for: a mask for all of its own."""
    mask = getattr(getattr(item, "dtype", None), "kind", "") == "b"
    return item.ndim if mask else int(item is not None and item is not Ellipsis)


def _along(key, shape):
    """Return the items of a key with the first of the dimensions that each is for."""
    found, axis = [], 0
    for item in expanded(key, len(shape), sum(map(_dims, key))):
        found.append((item, axis))
        axis += _dims(item)
    return found


def check_places(xp, key, shape):
    """Raise as NumPy does where an array of a key names a place out of range: CuPy takes it modulo the size.

    It waits for the device, once for all arrays.
    """
    if xp.__name__ != "cupy":
        return
    found = [(item.astype(xp.int64), axis) for item, axis in _along(key, shape)
             if isinstance(item, xp.ndarray) and item.dtype.kind != "b"]  # fmt: skip
    wrong = [(at < -shape[axis]) | (at >= shape[axis]) for at, axis in found]
    if wrong and xp.stack([w.any() for w in wrong]).any():
        at, axis, where = next((at, axis, w) for (at, axis), w in zip(found, wrong, strict=True) if w.any())
        raise OpIndexError(f"index {int(at[where][0])} is out of bounds for axis {axis} with size {shape[axis]}")


class _Spread(NamedTuple):
    """How a key with arrays takes elements."""

    part: tuple  # a basic key, which is taken first
    axes: tuple  # those of this part that the arrays index
    sizes: tuple  # of these axes
    at: int  # where the dimensions of the arrays lie in the result
    place: Any  # what the arrays choose, counted through these axes
    shape: tuple  # of the result


def _spread(xp, key, shape):
    """Return how a key takes elements, in which numbers beside arrays, and masks, are arrays of indices too."""
    items = []
    for item, axis in _along(key, shape):
        if isinstance(item, xp.ndarray) and item.dtype.kind == "b":
            items += [(where, axis + k) for k, where in enumerate(item.nonzero())]
        else:
            items.append((xp.full((), item, xp.int64) if isinstance(item, Integral) else item, axis))
    named = [(at, axis, item) for at, (item, axis) in enumerate(items) if isinstance(item, xp.ndarray)]
    axes, place = [at for at, _, _ in named], 0
    for _, axis, item in named:
        item = item.astype(xp.int64)
        place = place * shape[axis] + xp.where(item < 0, item + shape[axis], item)
    marked = [ARRAY if isinstance(item, xp.ndarray) else item for item, _ in items]
    return _Spread(
        tuple([slice(None) if item == ARRAY else item for item in marked]), tuple(axes),
        tuple([shape[axis] for _, axis, _ in named]), axes[0] if axes[-1] - axes[0] < len(axes) else 0, place,
        indexed_shape("x[key]", shape, marked, [item.shape for _, _, item in named]),
    )  # fmt: skip


def decided(xp, key, shape, value):
    """Return what to assign at a key so that the last of equal indices counts, as in NumPy; raise for those out of range.

    CuPy writes the values of equal indices in any order, so all of them get the last one's.
    """
    if xp.__name__ != "cupy":
        return value
    check_places(xp, key, shape)
    if value.size < 2 or not any(isinstance(item, xp.ndarray) and item.dtype.kind != "b" for item in key):
        return value
    found = _spread(xp, key, shape)
    place = found.place.ravel()
    order = xp.argsort(place, kind="stable")
    last = order[xp.searchsorted(place[order], place, side="right") - 1]
    rows = xp.broadcast_to(value, found.shape).reshape(size_of(found.shape[: found.at]), place.size, -1)
    return rows[:, last].reshape(found.shape)


def _add_up(xp, out, key, head):
    """Add elements up at the places that a key with arrays names, in the same order each time."""
    found = _spread(xp, key, out.shape)
    out.fill(0)
    if head.size:
        part = xp.moveaxis(out[found.part], found.axes, range(found.at, found.at + len(found.axes)))
        outer = size_of(part.shape[: found.at])
        large = (outer, size_of(found.sizes), part.size // (outer * size_of(found.sizes)))
        part[...] = sums_at(xp, out.dtype, head, found.place.ravel(), large).reshape(part.shape)


# ---- operators ------------------------------------------------------------------------------------------------------
@contextmanager
def _bounds(op):
    """Name the operator where an array holds an index that is out of bounds."""
    try:
        yield
    except IndexError as problem:
        raise OpIndexError(f"operator {op}: {problem}") from None


@kernel(name="_getitem")
def getitem(*data, key: str):
    """Index the first input with `key`, in which the other inputs stand for ``@``; repeated indices repeat elements.

    >>> x, rows = mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([1, 1, 0], dtype="int64")
    >>> mx.nd._internal._getitem(x, rows, key="@,0").asnumpy().tolist()
    [3.0, 3.0, 1.0]
    """


@getitem.shape
def _(data, *arrays, key):
    return indexed_shape("_getitem", data, read(key), arrays)


@kernel(name="_getitem_grad", shape_only=(1,))
def getitem_grad(*data, key: str):
    """Add the elements of the first input up at their places in zeros like the second: the gradient of ``_getitem``.

    Elements with one place are added in an order that follows from their indices, in float32 at least, so that the result is
    the same every time.
    """


@getitem_grad.shape
def _(head, like, *arrays, key):
    wanted = indexed_shape("_getitem_grad", like, read(key), arrays)
    if tuple(head) != wanted:
        raise OpValueError(f"operator _getitem_grad: the first input has shape {head}, expected {wanted}")
    return like


@kernel(name="_setitem")
def setitem(*data, key: str):
    """Copy of the first input in which the elements that `key` names are those of the second.

    >>> x, y = mx.nd.zeros((3,)), mx.nd.ones((2,))
    >>> mx.nd._internal._setitem(x, y, key="0:3:2").asnumpy().tolist()
    [1.0, 0.0, 1.0]
    """


@setitem.shape
def _(data, value, *arrays, key):
    part = indexed_shape("_setitem", data, read(key), arrays)
    if part != value:
        raise OpValueError(f"operator _setitem: the value has shape {value} but the part of the data has shape {part}")
    return data


for _op in (getitem, getitem_grad, setitem):
    typed_by_first(_op)


@on_both(getitem)
def _(xp, inputs, outputs, *, key):
    place = _filled("_getitem", read(key), inputs[1:])
    with _bounds("_getitem"):
        check_places(xp, place, inputs[0].shape)
        outputs[0][...] = inputs[0][place]


@on_both(getitem_grad)
def _(xp, inputs, outputs, *, key):
    (head, _, *arrays), (out,) = inputs, outputs
    place = _filled("_getitem_grad", read(key), arrays)
    if not arrays:  # no element is taken twice
        out[...] = 0
        out[place] = head
        return
    if xp.__name__ == "cupy":  # the indices were looked at by the operator whose gradient this is
        _add_up(xp, out, place, head)
        return
    total = xp.zeros(out.shape, dtypes.numpy_dtype(dtypes.summed_in(dtypes.code_of(out.dtype))))
    with _bounds("_getitem_grad"):
        xp.add.at(total, place, head.astype(total.dtype))
    out[...] = total.astype(out.dtype)


@on_both(setitem)
def _(xp, inputs, outputs, *, key):
    outputs[0][...] = inputs[0]
    place = _filled("_setitem", read(key), inputs[2:])
    with _bounds("_setitem"):
        outputs[0][place] = decided(xp, place, outputs[0].shape, inputs[1])


@getitem.gradient
def _(F, heads, inputs, outputs, *, key):
    return [F._getitem_grad(heads[0], *inputs, key=key)] + [None] * (len(inputs) - 1)


@getitem_grad.gradient
def _(F, heads, inputs, outputs, *, key):
    return [F._getitem(heads[0], *inputs[2:], key=key)] + [None] * (len(inputs) - 1)


@setitem.gradient
def _(F, heads, inputs, outputs, *, key):
    # the caller sees to it that no place is named twice
    data = F._setitem(heads[0], F.zeros_like(inputs[1]), *inputs[2:], key=key)
    return [data, F._getitem(heads[0], *inputs[2:], key=key)] + [None] * (len(inputs) - 2)
