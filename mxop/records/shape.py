"""Records of operators that move elements (``mxop/ops/shape.py``, ``slicing.py``, ``join.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal, record_of

#: Of operators that MXNet infers forward alone; that a shape does follow here is a matter of the parameters.
_FORWARD = {"shapes back": "the input's shape does not follow from the output's, but for some parameters"}
_LIKE = {"shapes back": "that only the second input's shape is read does not say that it is asked for"}


# ---- reshape --------------------------------------------------------------------------------------------------------
def _reshape(data, shape=(), reverse=False, target_shape=(), keep_highest=False):
    """Read the codes one by one; the cases below use each of them."""
    if not shape:
        first = (data.shape[0],) if keep_highest else target_shape[:1]
        return data.reshape(*first, *(d or -1 for d in target_shape[1:]))
    source, codes = (data.shape[::-1], shape[::-1]) if reverse else (data.shape, shape)
    result, at, i = [], 0, 0
    while i < len(codes):
        if codes[i] == -4:
            a, b = codes[i + 1 : i + 3]
            result += [source[at] // b if a == -1 else a, source[at] // a if b == -1 else b]
            at, i = at + 1, i + 2
        elif codes[i] == -3:
            result.append(source[at] * source[at + 1])
            at += 2
        elif codes[i] == -2:
            result += source[at:]
        else:
            result.append(codes[i] or source[at])
            at += 1
        i += 1
    return data.reshape(result[::-1] if reverse else result)


def _reshape_like(lhs, rhs, lhs_begin=None, lhs_end=None, rhs_begin=None, rhs_end=None):
    whole = tuple(range(lhs.ndim))
    cut = whole[slice(lhs_begin, lhs_end)]
    first, last = (cut[0], cut[-1] + 1) if cut else (lhs.ndim, lhs.ndim)
    return lhs.reshape(lhs.shape[:first] + rhs.shape[slice(rhs_begin, rhs_end)] + lhs.shape[last:])


def _squeeze(data, axis=None):
    result = np.squeeze(data, axis)
    return result.reshape(1) if result.ndim == 0 else result


# ---- slices ---------------------------------------------------------------------------------------------------------
def _key(begin, end, step=()):
    begin, end, step = ((v,) if not isinstance(v, tuple) else v for v in (begin, end, step))
    return tuple(slice(b, e, s) for b, e, s in zip(begin, end, step or (None,) * len(begin), strict=True))


def _slice_axis(data, axis, begin, end):
    return np.moveaxis(np.moveaxis(data, axis, 0)[begin:end], 0, axis)


def _slice_like(data, shape_like, axes=()):
    axes = [a % data.ndim for a in ((axes,) if isinstance(axes, int) else axes)] or range(data.ndim)
    return data[tuple(slice(shape_like.shape[i]) if i in axes else slice(None) for i in range(data.ndim))]


def _slice_assign(lhs, rhs, **where):
    result = np.array(lhs)
    result[_key(**where)] = rhs
    return result


def _slice_assign_scalar(data, scalar=0, **where):
    result = np.array(data)
    result[_key(**where)] = scalar
    return result


# ---- joining and splitting ------------------------------------------------------------------------------------------
def _split(data, num_outputs, axis=1, squeeze_axis=False):
    parts = np.split(data, num_outputs, axis)
    parts = [np.squeeze(p, axis) for p in parts] if squeeze_axis else parts
    return tuple(parts) if num_outputs > 1 else parts[0]


def _split_v2(data, indices=(), axis=1, squeeze_axis=False, sections=0):
    parts = np.split(data, sections or list(indices[1:]), axis)
    return tuple(np.squeeze(p, axis) if squeeze_axis else p for p in parts)


def _where(condition, x, y):
    return np.where(condition.reshape(condition.shape + (1,) * (x.ndim - condition.ndim)) != 0, x, y)


def _broadcast_axis(data, axis=(), size=()):
    shape = list(data.shape)
    for a, s in zip(np.atleast_1d(axis), np.atleast_1d(size), strict=True):
        shape[a] = s
    return np.broadcast_to(data, shape)


def _broadcast_like(lhs, rhs, lhs_axes=None, rhs_axes=None):
    shape = list(lhs.shape if lhs_axes else rhs.shape)
    for a, b in zip(lhs_axes or (), rhs_axes or (), strict=True):
        shape[a] = rhs.shape[b]
    return np.broadcast_to(lhs, shape)


_PART = {"begin": (0, None), "end": (2, None), "step": (1, -2)}

RECORDS: dict[str, Record] = {
    # ---- reshape
    "Reshape": record_of(
        _reshape, ({"shape": (-1,)}, (2, 3)), ({"shape": (0, -1)}, (2, 3, 2)), ({"shape": (-3, -2)}, (2, 3, 2)),
        ({"shape": (-4, -1, 2, 0)}, (4, 3)), ({"shape": (-4, 2, -1, -2)}, (4, 3)), ({"shape": (2, 1, 6)}, (3, 4)),
        ({"shape": (-1, 0), "reverse": True}, (2, 3, 2)), ({"shape": (2, -1, -4, 0), "reverse": True}, (6, 2)),
        ({"target_shape": (2, 0)}, (2, 3)), ({"shape": (0, 3)}, (0, 3)), unchecked=_FORWARD,
        refuses=[Refusal(r"\(2, 3\).*\(4,\)", shapes=((2, 3),), params={"shape": (4,)})],
    ),
    "reshape_like": record_of(
        _reshape_like, ({}, [(2, 3), (3, 2)]), ({"lhs_end": 1, "rhs_end": 2}, [(6, 2), (2, 3, 5)]),
        ({"lhs_begin": -2, "lhs_end": None, "rhs_begin": 1, "rhs_end": 2}, [(2, 3, 2), (5, 6)]), ({}, [(0, 3), (0, 2)]),
        grad_inputs=(0,), unchecked=_LIKE,
    ),
    "Flatten": record_of(
        lambda data: data.reshape(len(data), int(np.prod(data.shape[1:]))), ({}, (2, 3, 2)), ({}, (3,)), ({}, (0, 2, 3))
    ),
    "expand_dims": record_of(
        np.expand_dims, ({"axis": 0}, (2, 3)), ({"axis": -1}, (2, 3)), ({"axis": -2}, (0, 3)),
        refuses=[Refusal("axis=4", params={"axis": 4})],
    ),
    "squeeze": record_of(
        _squeeze, ({}, (1, 3, 1)), ({"axis": 0}, (1, 3, 1)), ({"axis": (0, -1)}, (1, 3, 1)), ({}, (1, 1)), unchecked=_FORWARD,
        refuses=[Refusal(r"\(2, 3\)", shapes=((2, 3),), params={"axis": 0}), Refusal("twice", params={"axis": (0, -3)})],
    ),
    # ---- transpose and flip
    "transpose": record_of(
        lambda data, axes=None: np.transpose(data, axes), ({}, (2, 3)), ({"axes": (1, 2, 0)}, (2, 3, 2)),
        ({"axes": (0, -1, 1)}, (2, 3, 2)), ({}, (3,)), ({}, (0, 3)),
        refuses=[Refusal(r"\(0, 0\)", shapes=((2, 3),), params={"axes": (0, 0)})],
    ),
    "SwapAxis": record_of(
        lambda data, dim1=0, dim2=0: np.swapaxes(data, dim1, dim2), ({"dim1": 0, "dim2": 2}, (2, 3, 2)),
        ({"dim1": -1, "dim2": 0}, (2, 3)), ({}, (2, 3)), ({"dim1": 0, "dim2": 1}, (0, 3)),
    ),
    "reverse": record_of(
        np.flip, ({"axis": 0}, (2, 3)), ({"axis": (0, -1)}, (2, 3, 2)), ({"axis": 1}, (3, 4)), ({"axis": 0}, (0, 3)),
        refuses=[Refusal("twice", shapes=((2, 3),), params={"axis": (1, -1)})],
    ),
    # ---- broadcast
    "broadcast_to": record_of(
        lambda data, shape: np.broadcast_to(data, [d or data.shape[i] for i, d in enumerate(shape)]),
        ({"shape": (2, 3)}, (1, 3)), ({"shape": (0, 4)}, (3, 1)), ({"shape": (2, 3, 2)}, (2, 1, 1)),
        ({"shape": (0, 3)}, (0, 1)), unchecked=_FORWARD,
        refuses=[Refusal(r"\(2, 3\).*\(2, 4\)", shapes=((2, 3),), params={"shape": (2, 4)})],
    ),
    "broadcast_axis": record_of(
        _broadcast_axis, ({"axis": 1, "size": 3}, (2, 1)), ({"axis": (0, -1), "size": (2, 3)}, (1, 3, 1)),
        ({"axis": 0, "size": 2}, (1, 0)), unchecked=_FORWARD,
        refuses=[Refusal("twice", shapes=((1, 3),), params={"axis": (0, -2), "size": (2, 3)})],
    ),
    "broadcast_like": record_of(
        _broadcast_like, ({}, [(1, 3), (2, 3)]), ({}, [(2, 1, 1), (2, 3, 2)]),
        ({"lhs_axes": (0,), "rhs_axes": (-1,)}, [(1, 3), (2, 3, 2)]), grad_inputs=(0,), unchecked=_LIKE,
    ),
    # ---- slices
    "slice": record_of(
        lambda data, **where: data[_key(**where)], (_PART, (2, 5)), ({"begin": (1,), "end": (3,)}, (4, 2)),
        ({"begin": (-1, 0), "end": (-4, 9), "step": (-1, 2)}, (4, 3)), ({"begin": (2,), "end": (1,)}, (4, 2)),
        ({"begin": (None, 1), "end": (None, None)}, (0, 3)), unchecked=_FORWARD,
    ),
    "slice_axis": record_of(
        _slice_axis, ({"axis": 0, "begin": 1, "end": 3}, (4, 2)), ({"axis": -1, "begin": -2, "end": None}, (2, 3)),
        ({"axis": 1, "begin": 0, "end": -1}, (2, 3, 2)), ({"axis": 1, "begin": 1, "end": 2}, (0, 3)), unchecked=_FORWARD,
    ),
    "slice_like": record_of(
        _slice_like, ({}, [(3, 4), (2, 3)]), ({"axes": (0, -1)}, [(3, 2, 4), (2, 5, 1)]), ({"axes": (1,)}, [(3, 4), (5, 2)]),
        grad_inputs=(0,), unchecked=_LIKE,
    ),
    "_slice_assign": record_of(
        _slice_assign, (_PART, [(2, 5), (2, 3)]), ({"begin": (1,), "end": (3,)}, [(4, 2), (2, 2)]),
        unchecked={"shapes back": "forward alone, as MXNet"},
    ),
    "_slice_assign_scalar": record_of(
        _slice_assign_scalar, ({"scalar": 1, **_PART}, (2, 5)), ({"begin": (1,), "end": (3,)}, (4, 2))
    ),
    "_identity_with_attr_like_rhs": record_of(lambda lhs, rhs: lhs, ({}, [(2, 3), (2, 3)]), grad_inputs=(0,)),
    # ---- joining and splitting
    "Concat": record_of(
        lambda *data, dim=1: np.concatenate(data, dim), ({}, [(2, 3), (2, 1)]), ({"dim": 0}, [(2, 3), (1, 3), (2, 3)]),
        ({"dim": -1}, [(2, 2, 1), (2, 2, 2)]), ({"dim": 0}, [(3,)]), ({"dim": 0}, [(0, 3), (2, 3)]),
        refuses=[Refusal(r"\(2, 3\).*\(2, 4\)", shapes=((2, 3), (2, 4)), params={"dim": 0})],
    ),
    "_rnn_param_concat": record_of(
        lambda *data, dim=1: np.concatenate(data, dim), ({"dim": 0}, [(3,), (4,), (2,)]), ({}, [(2, 3), (2, 1)])
    ),
    "stack": record_of(
        lambda *data, axis=0: np.stack(data, axis), ({}, [(2, 3), (2, 3)]), ({"axis": -1}, [(2, 3), (2, 3), (2, 3)]),
        ({"axis": 1}, [(2, 3)]), ({"axis": 1}, [(0, 3), (0, 3)]),
        refuses=[Refusal(r"\(2, 3\).*\(3, 3\)", shapes=((2, 3), (3, 3)))],
    ),
    "SliceChannel": record_of(
        _split, ({"num_outputs": 2}, (3, 4)), ({"num_outputs": 3, "axis": -2, "squeeze_axis": True}, (2, 3, 2)),
        ({"num_outputs": 1, "axis": 0}, (2, 3)), ({"num_outputs": 3}, (0, 3)),
        refuses=[Refusal(r"\(2, 3\)", shapes=((2, 3),), params={"num_outputs": 2})],
    ),
    "_split_v2": record_of(
        _split_v2, ({"indices": (0, 1)}, (2, 3)), ({"indices": (0, 1, 3), "axis": -1}, (2, 4)),
        ({"indices": (), "sections": 2, "axis": 0, "squeeze_axis": True}, (2, 3)), ({"indices": (0, 0, 2), "axis": 0}, (3, 2)),
    ),
    "tile": record_of(
        lambda data, reps: np.tile(data, reps), ({"reps": (2, 3)}, (2, 3)), ({"reps": (2,)}, (2, 3)),
        ({"reps": (2, 1, 2)}, (3, 2)), refuses=[Refusal("above 0", params={"reps": (0, 2)}, shapes=((2, 3),))],
        unchecked=_FORWARD,
    ),
    "repeat": record_of(
        lambda data, repeats, axis=None: np.repeat(data, repeats, axis), ({"repeats": 2}, (2, 3)),
        ({"repeats": 3, "axis": 0}, (2, 3)), ({"repeats": 2, "axis": -1}, (2, 3, 2)), ({"repeats": 0, "axis": 1}, (2, 3)),
    ),
    "where": record_of(
        _where, ({}, [(2, 3), (2, 3), (2, 3)]), ({}, [(2,), (2, 3), (2, 3)]), ({}, [(0, 3), (0, 3), (0, 3)]),
        domain=((-1.0, 1.0), (-2.0, 2.0), (-2.0, 2.0)), grad_inputs=(1, 2),
        unchecked={"shapes back": "a condition of fewer dimensions is as good as a whole one"},
    ),
    "_where_lscalar": record_of(
        lambda condition, y, scalar: _where(condition, np.full_like(y, scalar), y),
        ({"scalar": 1.5}, [(2, 3), (2, 3)]), ({"scalar": -1.0}, [(2,), (2, 3)]), ({"scalar": 0.0}, [(0, 3), (0, 3)]),
        domain=((-1.0, 1.0), (-2.0, 2.0)), grad_inputs=(1,),
        unchecked={"shapes back": "a condition of fewer dimensions is as good as a whole one"},
    ),
    "_where_rscalar": record_of(
        lambda condition, x, scalar: _where(condition, x, np.full_like(x, scalar)),
        ({"scalar": 1.5}, [(2, 3), (2, 3)]), ({"scalar": -1.0}, [(2,), (2, 3)]), ({"scalar": 0.0}, [(0, 3), (0, 3)]),
        domain=((-1.0, 1.0), (-2.0, 2.0)), grad_inputs=(1,),
        unchecked={"shapes back": "a condition of fewer dimensions is as good as a whole one"},
    ),
    "_filled_like": record_of(
        lambda data, scalar: np.full_like(data, scalar), ({"scalar": 1.5}, (2, 3)), ({"scalar": -2.0}, (0, 3)), order=0,
        grad_inputs=(),
    ),
    "_where_scalars": record_of(
        lambda condition, x, y: np.where(condition != 0, np.full_like(condition, x), np.full_like(condition, y)),
        ({"x": 1.0, "y": -1.0}, (2, 3)), ({"x": 2.5, "y": 0.0}, (0, 3)), domain=(-1.0, 1.0), order=0, grad_inputs=(),
    ),
    # ---- shapes as data
    "shape_array": record_of(
        lambda data: np.array(data.shape, np.int64), ({}, (2, 3)), ({}, (0, 3)), order=0, grad_inputs=(), returns="int64",
    ),
    "size_array": record_of(
        lambda data: np.array([data.size]), ({}, (2, 3)), ({}, (0, 3)), order=0, grad_inputs=(), returns="int64"
    ),
}  # fmt: skip
