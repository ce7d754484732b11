"""Records of hidden operators: what gradient rules are made of.

Most have a second input of which only the shape matters (``like``); its gradient is zero.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import special

from . import Record
from .reduce import axes_of, full

_FIRST = {"grad_inputs": (0,), "order": 2}  # linear in the first input, so orders above 2 are zero
_GIVEN = "gradient rules call it with shapes that fit each other, and look at no others"
#: Of helpers whose shapes follow from the operator that is differentiated: none is ever inferred from its result.
_UNCHECKED = {
    **{name: {"shapes back": _GIVEN} for name in (
        "_along_channels", "_broadcast_reduced", "_getitem_grad", "_reduce_like", "_setitem", "_slice_added",
        "_slice_axis_added", "_slice_axis_grad", "_slice_grad", "_slice_like_added", "_slice_like_grad", "_unbroadcast",
    )},
    **{name: dict.fromkeys(("shapes back", "small shapes", "one variable", "small gradients"), _GIVEN)
       for name in ("_concat_grad", "_dot_grad")},
    "_product_of_others": {"special": "an infinite factor gives NaN, where the product of the others is infinite"},
}  # fmt: skip


# ---- reductions and the way back -------------------------------------------------------------------------------------
def _kept(like, axis, exclude):
    axes = axes_of(like, axis, exclude)
    return tuple(1 if i in axes else d for i, d in enumerate(like.shape))


def _restored(data, like, axis=None, exclude=False, **_):
    return data.reshape(_kept(like, axis, exclude))


def _broadcast_reduced(data, like, axis=None, keepdims=False, exclude=False):
    return np.broadcast_to(_restored(data, like, axis, exclude), like.shape)


def _reduce_like(data, like, axis=None, exclude=False):
    return data.sum(axes_of(data, axis, exclude), keepdims=True).reshape(like.shape)


def _divide_by_count(data, like, axis=None, exclude=False):
    return data / max(np.prod([like.shape[a] for a in axes_of(like, axis, exclude)], dtype=int), 1)


def _unbroadcast(data, like):
    lead = data.ndim - like.ndim
    axes = tuple(range(lead)) + tuple(lead + i for i, d in enumerate(like.shape) if d == 1)
    return data.sum(axes).reshape(like.shape)


def _square_sum(data, axis=None, keepdims=False, exclude=False):
    found = np.square(data).sum(axes_of(data, axis, exclude), keepdims=keepdims)
    return full(found)


def _product_of_others(x, *factors, axis=None, exclude=False):
    """Sum, for each element, over choices of further elements, one a factor, the product of what is left."""
    axes = axes_of(x, axis, exclude)
    order = [i for i in range(x.ndim) if i not in axes] + list(axes)
    rows = [a.transpose(order).reshape(-1, int(np.prod([x.shape[i] for i in axes]))) for a in (x, *factors)]

    def rest(row, left, chosen):
        """Return the sum for the remaining `left` factors, where the elements `chosen` are taken."""
        if not left:
            return np.prod([v for k, v in enumerate(rows[0][row]) if k not in chosen])
        return sum(left[0][row][k] * rest(row, left[1:], {*chosen, k}) for k in range(rows[0].shape[1]) if k not in chosen)

    found = np.array([[rest(i, rows[1:], {j}) for j in range(rows[0].shape[1])] for i in range(rows[0].shape[0])])
    moved = [x.shape[i] for i in order]
    return found.reshape(moved).transpose(np.argsort(order))


# ---- parts of arrays -------------------------------------------------------------------------------------------------
def _put(where):
    """Make a reference that puts `head` into a part of zeros like `like`."""

    def reference(head, like, **params):
        result = np.zeros_like(like)
        result[where(like, head, **params)] = head
        return result

    return reference


def _add_to(where):
    """Make a reference that adds `part` to a part of the data."""
    return lambda data, part, **params: data + _put(where)(part, data, **params)


def _key(text):
    """Read what ``mxop.ops.indexing.write`` made, for keys without arrays."""
    found = []
    for part in text.split(","):
        if part == "new":
            found.append(None)
        elif ":" in part:
            found.append(slice(*(int(p) if p else None for p in part.split(":"))))
        else:
            found.append(int(part))
    return tuple(found)


def _slices(like, head, begin, end, step=()):
    steps = step or (None,) * len(begin)
    return tuple(map(slice, begin, end, steps))


def _axis_slice(like, head, axis, begin, end):
    return (slice(None),) * (axis % like.ndim) + (slice(begin, end),)


def _leading(like, head, axes=()):
    return tuple(slice(0, d) for d in head.shape)


def _set(data, value, key):
    result = data.copy()
    result[_key(key)] = value
    return result


def _concat_grad(head, *likes, parts, dim=1):
    places = np.cumsum([a.shape[dim] for a in likes])[:-1]
    return tuple(np.split(head, places, dim))


def _along_channels(gamma, data):
    return gamma.reshape((1, -1) + (1,) * (data.ndim - 2) if gamma.size > 1 else (1,) * data.ndim)


def _dot_grad(head, other, like, side, transpose_a=False, transpose_b=False):
    if side == "lhs":
        found = head @ (other if transpose_b else other.T)
        return found.T if transpose_a else found
    found = (other if transpose_a else other.T) @ head
    return found.T if transpose_b else found


# ---- formulas --------------------------------------------------------------------------------------------------------
def _leaky(x, act_type, slope=0.25):
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    with np.errstate(all="ignore"):
        return {
            "leaky": lambda: np.where(x > 0, x, slope * x),
            "elu": lambda: np.where(x > 0, x, slope * np.expm1(x)),
            "selu": lambda: scale * np.where(x > 0, x, alpha * np.expm1(x)),
            "gelu": lambda: x * special.ndtr(x),
        }[act_type]()


def _norm_slope(head, data, norm):
    ratio = data / np.where(norm == 0, 1, norm)
    if data.dtype.kind in "iu":  # integers as in C
        ratio = np.trunc(ratio).astype(data.dtype)
    return np.where(norm == 0, 0, head * ratio)


_PAIR = [((2, 3), (2, 3)), ((5,), (5,))]

RECORDS: dict[str, Record] = {
    "_square_sum": Record(
        _square_sum, params=[{}, {"axis": 1}, {"axis": (0,), "keepdims": True}, {"axis": 0, "exclude": True}], order=3
    ),
    "_broadcast_reduced": Record(
        _broadcast_reduced, **_FIRST,
        shapes=[((1,), (2, 3)), ((2,), (2, 3)), ((2, 1), (2, 3)), ((3,), (2, 3, 2)), ((1, 3, 1), (2, 3, 2))],
        params=[{}, {"axis": 1}, {"axis": -1, "keepdims": True}, {"axis": (0, 2)},
                {"axis": 1, "exclude": True, "keepdims": True}],
    ),
    "_restore_dims": Record(
        _restored, **_FIRST, shapes=[((1,), (2, 3)), ((2,), (2, 3)), ((3,), (2, 3, 2))],
        params=[{}, {"axis": 1}, {"axis": 1, "exclude": True}],
    ),
    "_reduce_like": Record(
        _reduce_like, **_FIRST, shapes=[((2, 3), (1,)), ((2, 3), (2,)), ((2, 3, 2), (1, 3, 1))],
        params=[{}, {"axis": 1}, {"axis": 1, "exclude": True}],
    ),
    "_divide_by_count": Record(
        _divide_by_count, **_FIRST, domain=(-9, 9), shapes=[((1,), (2, 3)), ((2,), (2, 3)), ((3,), (2, 3, 2))],
        params=[{}, {"axis": 1}, {"axis": 1, "exclude": True}],
    ),
    "_unbroadcast": Record(
        _unbroadcast, **_FIRST,
        shapes=[((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 3), (2, 1)), ((4, 2, 3), (1, 3)), ((2, 3), (1,)), ((0, 3), (3,))],
    ),
    "_product_of_others": Record(
        _product_of_others, shapes=[((3,),), ((2, 3),), ((2, 3), (2, 3)), ((4,), (4,), (4,))],
        params=[{}, {"axis": 1}, {"axis": 0, "exclude": True}, {"axis": 0}],
    ),
    "_select_equal": Record(
        lambda head, data, value: np.where(data == value, head, 0), domain=((-2, 2), (1, 1), (1, 1)), **_FIRST,
        shapes=[((2, 3), (2, 3), (2, 1)), ((2, 3), (2, 3), (2, 3))],
    ),
    "_norm_slope": Record(
        _norm_slope, domain=((-2, 2), (-9, 9), (0.5, 3)), shapes=[((2, 1), (2, 3), (2, 1)), ((5,), (5,), (5,))],
    ),
    "_highest": Record(
        lambda data, axis=None, keepdims=False, exclude=False: np.max(data, axis=axis, keepdims=keepdims, initial=-np.inf),
        shapes=[((2, 3),), ((3, 0),)], params=[{"axis": 1}, {"axis": 0, "keepdims": True}], dtypes="f",
    ),
    "_concat_grad": Record(
        _concat_grad, **_FIRST, shapes=[((2, 5), (2, 2), (2, 3)), ((4,), (1,), (3,))],
        params=[{"parts": 2}, {"parts": 2, "dim": 0}],
    ),
    "_choose": Record(
        lambda condition, x, y: np.where(condition, x, y), grad_inputs=(1, 2), order=2,
        shapes=[((2, 3),) * 3, ((2, 1), (2, 3), (3,))],
    ),
    "_keep_where": Record(lambda data, condition: np.where(condition, data, 0), shapes=_PAIR, **_FIRST),
    "_getitem": Record(
        lambda data, key: data[_key(key)], order=2, shapes=[((4, 3),), ((4, 3),), ((4, 3),), ((5,),)],
        params=[{"key": "1:4:2,0"}, {"key": "new,-1"}, {"key": "::-1,::2"}, {"key": "2:2"}],
    ),
    "_getitem_grad": Record(
        _put(lambda like, head, key: _key(key)), **_FIRST, shapes=[((2,), (4, 3)), ((4, 2), (4, 3))],
        params=[{"key": "1:4:2,0"}, {"key": "::-1,::2"}],
    ),
    "_setitem": Record(
        _set, order=2, shapes=[((4, 3), (2,)), ((4, 3), (4, 2))], params=[{"key": "1:4:2,0"}, {"key": "::-1,::2"}],
    ),
    "_slice_grad": Record(
        _put(_slices), **_FIRST, shapes=[((2, 2), (4, 3)), ((2, 3), (4, 3))],
        params=[{"begin": (1, 0), "end": (3, 2)}, {"begin": (0,), "end": (4,), "step": (2,)}],
    ),
    "_slice_added": Record(
        _add_to(_slices), order=2, shapes=[((4, 3), (2, 2)), ((4, 3), (2, 3))],
        params=[{"begin": (1, 0), "end": (3, 2)}, {"begin": (0,), "end": (4,), "step": (2,)}],
    ),
    "_slice_axis_added": Record(
        _add_to(_axis_slice), order=2, shapes=[((4, 3), (2, 3)), ((4, 3), (4, 1))],
        params=[{"axis": 0, "begin": 1, "end": 3}, {"axis": -1, "begin": 2, "end": None}],
    ),
    "_slice_like_added": Record(
        _add_to(_leading), order=2, shapes=[((4, 3), (2, 2)), ((4, 3), (4, 2))], params=[{}, {"axes": (1,)}]
    ),
    "_slice_axis_grad": Record(
        _put(_axis_slice), **_FIRST, shapes=[((2, 3), (4, 3)), ((4, 1), (4, 3))],
        params=[{"axis": 0, "begin": 1, "end": 3}, {"axis": -1, "begin": 2, "end": None}],
    ),
    "_slice_like_grad": Record(
        _put(_leading), **_FIRST, shapes=[((2, 2), (4, 3)), ((4, 2), (4, 3))], params=[{}, {"axes": (1,)}]
    ),
    "_dot_grad": Record(
        _dot_grad, grad_inputs=(0, 1),
        shapes=[((2, 4), (3, 4), (2, 3)), ((2, 4), (2, 3), (3, 4)), ((2, 4), (3, 4), (3, 2)), ((2, 4), (2, 3), (4, 3))],
        params=[{"side": "lhs"}, {"side": "rhs"}, {"side": "lhs", "transpose_a": True}, {"side": "rhs", "transpose_b": True}],
        dtypes="f",
    ),
    "_filled": Record(
        lambda data, inside, value: np.where(inside, data, value), **_FIRST, shapes=[((2, 3), (2, 3)), ((2, 3), (3,))],
        params=[{"value": 0.5}, {"value": -2.0}], dtypes="f",
    ),
    "_along_channels": Record(
        _along_channels, **_FIRST, shapes=[((3,), (2, 3)), ((3,), (2, 3, 2)), ((1,), (2, 3))],
    ),
    "_leaky": Record(
        _leaky, avoid=(0,), params=[{"act_type": "leaky"}, {"act_type": "elu"}, {"act_type": "selu"}, {"act_type": "gelu"}]
    ),
    "_prelu": Record(lambda x, gamma: np.where(x > 0, x, gamma * x), avoid=(0,), shapes=[((2, 3), (2, 3)), ((2, 3), (1, 3))]),
}  # fmt: skip

RECORDS |= {name: replace(RECORDS[name], unchecked=why) for name, why in _UNCHECKED.items()}
