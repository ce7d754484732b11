"""Attention of several heads, on projections that lie interleaved in one array.

All are products of stacks of matrices on views, so their gradients are right at every order.  Examples assume
``import mxop as mx``.  May import :mod:`mxop.opdef` only.
"""

from typing import Annotated

from ..errors import OpValueError
from ..opdef import Range, composite, infer

_Heads = Annotated[int, Range(1)]


def _part(F, joined, heads, parts, k):
    """Return one of the projections of ``(steps, batch, heads * parts * size)`` as ``(batch * heads, steps, size)``."""
    split = F.Reshape(joined, shape=(0, 0, heads, parts, -1))
    return _by_head(F, F.Reshape(F.slice_axis(split, axis=3, begin=k, end=k + 1), shape=(0, 0, 0, -1)))


def _by_head(F, split):
    """Turn ``(steps, batch, heads, size)`` into ``(batch * heads, steps, size)``."""
    return F.Reshape(F.transpose(split, axes=(1, 2, 0, 3)), shape=(-3, 0, 0))


def _scores(F, queries, keys):
    """Return the products of queries and keys, over the root of their size."""
    return F.batch_dot(F._contrib_div_sqrt_dim(queries), keys, transpose_b=True)


def _weighted(F, attention, values, heads):
    """Return sums of values, ``(steps, batch, heads * size)``, by weights ``(batch * heads, steps, steps of the values)``."""
    found = F.Reshape(F.batch_dot(attention, values), shape=(-4, -1, heads, 0, 0))
    return F.Reshape(F.transpose(found, axes=(2, 0, 1, 3)), shape=(0, 0, -3))


def _fitting(op, joined, heads, parts, what):
    """Return ``(steps, batch, size of a head)`` of interleaved projections, None where that is not known."""
    if joined is None:
        return None, None, None
    if len(joined) != 3:
        raise OpValueError(f"operator {op}: {what} has shape {infer.show(joined)}; expected three dimensions, (steps, batch, "
                           "projections)")  # fmt: skip
    steps, batch, size = joined
    if size is not None and size % (heads * parts):
        raise OpValueError(f"operator {op}: {what} has {size} projections, which {heads} heads of {parts} parts do not "
                           "divide")  # fmt: skip
    return steps, batch, None if size is None else size // (heads * parts)


def _times(batch, heads):
    return None if batch is None else batch * heads


def _agreed(op, name, given, wanted):
    return infer.same_shape(op, (name, "the shape that fits"), [given, wanted])[0]


@composite(name="_contrib_interleaved_matmul_selfatt_qk")
def selfatt_qk(F, queries_keys_values, *, heads: _Heads):
    """Products of queries and keys of the same sequences, over the root of the size of a head.

    Parameters
    ----------
    queries_keys_values : NDArray or Symbol
        ``(steps, batch, heads * 3 * size)``: for each head its queries, keys and values, one after the other.
    heads : int

    Returns
    -------
    NDArray or Symbol
        ``(batch * heads, steps, steps)``.

    >>> x = mx.nd.array([[[3, 1, 0]], [[1, 2, 0]]])
    >>> mx.nd.contrib.interleaved_matmul_selfatt_qk(x, heads=1).asnumpy().tolist()
    [[[3.0, 6.0], [1.0, 2.0]]]
    """
    queries, keys = (_part(F, queries_keys_values, heads, 3, k) for k in range(2))
    return _scores(F, queries, keys)


@selfatt_qk.infer
def _(ins, outs, *, heads):
    steps, batch, _ = _fitting(selfatt_qk.name, ins[0], heads, 3, "queries_keys_values")
    return ins, [_agreed(selfatt_qk.name, "output", outs[0], (_times(batch, heads), steps, steps))]


@composite(name="_contrib_interleaved_matmul_selfatt_valatt")
def selfatt_valatt(F, queries_keys_values, attention, *, heads: _Heads):
    """Sums of values, weighted by attention, of the same sequences.

    Parameters
    ----------
    queries_keys_values : NDArray or Symbol
        As ``interleaved_matmul_selfatt_qk`` takes it.
    attention : NDArray or Symbol
        ``(batch * heads, steps, steps)``.
    heads : int

    Returns
    -------
    NDArray or Symbol
        ``(steps, batch, heads * size)``.

    >>> x, weights = mx.nd.array([[[0, 0, 5]], [[0, 0, 7]]]), mx.nd.array([[[1, 0], [0.5, 0.5]]])
    >>> mx.nd.contrib.interleaved_matmul_selfatt_valatt(x, weights, heads=1).asnumpy().tolist()
    [[[5.0]], [[6.0]]]
    """
    return _weighted(F, attention, _part(F, queries_keys_values, heads, 3, 2), heads)


@selfatt_valatt.infer
def _(ins, outs, *, heads):
    name = selfatt_valatt.name
    steps, batch, size = _fitting(name, ins[0], heads, 3, "queries_keys_values")
    ins[1] = _agreed(name, "attention", ins[1], (_times(batch, heads), steps, steps))
    return ins, [_agreed(name, "output", outs[0], (steps, batch, _times(size, heads)))]


@composite(name="_contrib_interleaved_matmul_encdec_qk")
def encdec_qk(F, queries, keys_values, *, heads: _Heads):
    """Products of queries of one sequence and keys of another, over the root of the size of a head.

    Parameters
    ----------
    queries : NDArray or Symbol
        ``(steps, batch, heads * size)``.
    keys_values : NDArray or Symbol
        ``(other steps, batch, heads * 2 * size)``: for each head its keys, then its values.
    heads : int

    Returns
    -------
    NDArray or Symbol
        ``(batch * heads, steps, other steps)``.

    >>> x, y = mx.nd.array([[[3]], [[1]]]), mx.nd.array([[[2, 0]]])
    >>> mx.nd.contrib.interleaved_matmul_encdec_qk(x, y, heads=1).asnumpy().tolist()
    [[[6.0], [2.0]]]
    """
    return _scores(F, _by_head(F, F.Reshape(queries, shape=(0, 0, heads, -1))), _part(F, keys_values, heads, 2, 0))


@encdec_qk.infer
def _(ins, outs, *, heads):
    name = encdec_qk.name
    steps, batch, size = _fitting(name, ins[0], heads, 1, "queries")
    others, same, other_size = _fitting(name, ins[1], heads, 2, "keys_values")
    batch, size = batch if same is None else same, size if other_size is None else other_size
    ins[0] = _agreed(name, "queries", ins[0], (steps, batch, _times(size, heads)))
    ins[1] = _agreed(name, "keys_values", ins[1], (others, batch, _times(size, 2 * heads)))
    return ins, [_agreed(name, "output", outs[0], (_times(batch, heads), steps, others))]


@composite(name="_contrib_interleaved_matmul_encdec_valatt")
def encdec_valatt(F, keys_values, attention, *, heads: _Heads):
    """Sums of values of one sequence, weighted by attention of another.

    Parameters
    ----------
    keys_values : NDArray or Symbol
        ``(other steps, batch, heads * 2 * size)``: for each head its keys, then its values.
    attention : NDArray or Symbol
        ``(batch * heads, steps, other steps)``.
    heads : int

    Returns
    -------
    NDArray or Symbol
        ``(steps, batch, heads * size)``.

    >>> y, weights = mx.nd.array([[[0, 4]], [[0, 8]]]), mx.nd.array([[[0.5, 0.5]]])
    >>> mx.nd.contrib.interleaved_matmul_encdec_valatt(y, weights, heads=1).asnumpy().tolist()
    [[[6.0]]]
    """
    return _weighted(F, attention, _part(F, keys_values, heads, 2, 1), heads)


@encdec_valatt.infer
def _(ins, outs, *, heads):
    name = encdec_valatt.name
    others, batch, size = _fitting(name, ins[0], heads, 2, "keys_values")
    steps = None if ins[1] is None else ins[1][1] if len(ins[1]) == 3 else None
    ins[1] = _agreed(name, "attention", ins[1], (_times(batch, heads), steps, others))
    return ins, [_agreed(name, "output", outs[0], (ins[1][1], batch, _times(size, heads)))]
