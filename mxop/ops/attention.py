"""Multi-head attention on interleaved projections.

All are products of stacks of matrices on views, so their gradients are right at every order.
"""

from typing import Annotated

from ..opdef import Of, Range, composite
from ..support.errors import OpValueError
from ._shared import divided

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


def _projections(op, heads, parts, what):
    """Return the dimension of interleaved projections, of heads that have ``size``."""
    each = heads * parts

    def size(n):
        if n % each:
            raise OpValueError(f"operator {op.name}: {what} has {n} projections, which {heads} heads of {parts} parts do not "
                               "divide")  # fmt: skip
        return n // each

    return Of("size", lambda n: n * each, size)


def _stacked(heads):
    """Return the dimension of all heads of a batch."""
    return Of("batch", lambda n: n * heads, lambda n: divided(n, heads))


@composite(name="_contrib_interleaved_matmul_selfatt_qk")
def selfatt_qk(F, queries_keys_values, *, heads: _Heads):
    """Scaled attention scores: queries times keys of the same sequence, divided by the root of the head size.

    Parameters
    ----------
    queries_keys_values : NDArray or Symbol
        ``(steps, batch, heads * 3 * size)``: for each head its queries, keys and values, one after the other.

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


@selfatt_qk.dims
def _(*, heads):
    joined = ("steps", "batch", _projections(selfatt_qk, heads, 3, "queries_keys_values"))
    return {"queries_keys_values": joined, "output": (_stacked(heads), "steps", "steps")}


@composite(name="_contrib_interleaved_matmul_selfatt_valatt")
def selfatt_valatt(F, queries_keys_values, attention, *, heads: _Heads):
    """Attention output: values of the same sequence, weighted by attention.

    Parameters
    ----------
    queries_keys_values : NDArray or Symbol
        As ``interleaved_matmul_selfatt_qk`` takes it.
    attention : NDArray or Symbol
        ``(batch * heads, steps, steps)``.

    Returns
    -------
    NDArray or Symbol
        ``(steps, batch, heads * size)``.

    >>> x, weights = mx.nd.array([[[0, 0, 5]], [[0, 0, 7]]]), mx.nd.array([[[1, 0], [0.5, 0.5]]])
    >>> mx.nd.contrib.interleaved_matmul_selfatt_valatt(x, weights, heads=1).asnumpy().tolist()
    [[[5.0]], [[6.0]]]
    """
    return _weighted(F, attention, _part(F, queries_keys_values, heads, 3, 2), heads)


@selfatt_valatt.dims
def _(*, heads):
    joined = ("steps", "batch", _projections(selfatt_valatt, heads, 3, "queries_keys_values"))
    out = ("steps", "batch", _projections(selfatt_valatt, heads, 1, "output"))
    return {"queries_keys_values": joined, "attention": (_stacked(heads), "steps", "steps"), "output": out}


@composite(name="_contrib_interleaved_matmul_encdec_qk")
def encdec_qk(F, queries, keys_values, *, heads: _Heads):
    """Scaled attention scores: queries of one sequence times keys of another, divided by the root of the head size.

    Parameters
    ----------
    queries : NDArray or Symbol
        ``(steps, batch, heads * size)``.
    keys_values : NDArray or Symbol
        ``(other steps, batch, heads * 2 * size)``: for each head its keys, then its values.

    Returns
    -------
    NDArray or Symbol
        ``(batch * heads, steps, other steps)``.

    >>> x, y = mx.nd.array([[[3]], [[1]]]), mx.nd.array([[[2, 0]]])
    >>> mx.nd.contrib.interleaved_matmul_encdec_qk(x, y, heads=1).asnumpy().tolist()
    [[[6.0], [2.0]]]
    """
    return _scores(F, _by_head(F, F.Reshape(queries, shape=(0, 0, heads, -1))), _part(F, keys_values, heads, 2, 0))


@encdec_qk.dims
def _(*, heads):
    queries, keys = (_projections(encdec_qk, heads, n, what) for n, what in ((1, "queries"), (2, "keys_values")))
    return {"queries": ("steps", "batch", queries), "keys_values": ("others", "batch", keys),
            "output": (_stacked(heads), "steps", "others")}  # fmt: skip


@composite(name="_contrib_interleaved_matmul_encdec_valatt")
def encdec_valatt(F, keys_values, attention, *, heads: _Heads):
    """Attention output: values of one sequence, weighted by the attention of another.

    Parameters
    ----------
    keys_values : NDArray or Symbol
        ``(other steps, batch, heads * 2 * size)``: for each head its keys, then its values.
    attention : NDArray or Symbol
        ``(batch * heads, steps, other steps)``.

    Returns
    -------
    NDArray or Symbol
        ``(steps, batch, heads * size)``.

    >>> y, weights = mx.nd.array([[[0, 4]], [[0, 8]]]), mx.nd.array([[[0.5, 0.5]]])
    >>> mx.nd.contrib.interleaved_matmul_encdec_valatt(y, weights, heads=1).asnumpy().tolist()
    [[[6.0]]]
    """
    return _weighted(F, attention, _part(F, keys_values, heads, 2, 1), heads)


@encdec_valatt.dims
def _(*, heads):
    values, out = (_projections(encdec_valatt, heads, n, what) for n, what in ((2, "keys_values"), (1, "output")))
    return {"keys_values": ("others", "batch", values), "attention": (_stacked(heads), "steps", "others"),
            "output": ("steps", "batch", out)}  # fmt: skip
