"""Functions of ``mx.sym`` that are not one operator: constants, ``split_v2``."""

from __future__ import annotations

import sys
from typing import Any

from ..opdef import registry
from ..support.errors import all_end_at_caller, translated
from .symbol import Symbol, create


def _make(op_name: str, name: str | None, attr: Any, **params: Any) -> Symbol:
    return create(registry.get(op_name), op_name, [], params, name, attr)


def zeros(shape: Any, dtype: Any = None, name: str | None = None, attr: Any = None, **kwargs: Any) -> Symbol:
    """Return zeros.

    Examples
    --------
    >>> mx.sym.zeros((2,)).eval()[0].asnumpy().tolist()
    [0.0, 0.0]
    """
    return _make("_zeros", name, attr, shape=shape, dtype=dtype or "float32", **kwargs)


def ones(shape: Any, dtype: Any = None, name: str | None = None, attr: Any = None, **kwargs: Any) -> Symbol:
    """Return ones."""
    return _make("_ones", name, attr, shape=shape, dtype=dtype or "float32", **kwargs)


def full(shape: Any, val: float, dtype: Any = None, name: str | None = None, attr: Any = None, **kwargs: Any) -> Symbol:
    """Return an array of one value."""
    with translated("sym.full: val"):
        real = float(val)
    value = val if isinstance(val, int) and real != val else real  # a float in JSON, as MXNet's, if one holds it
    return _make("_full", name, attr, shape=shape, dtype=dtype or "float32", value=value, **kwargs)


def arange(
    start: float, stop: float | None = None, step: float = 1.0, repeat: int = 1, infer_range: bool = False,
    name: str | None = None, dtype: Any = None,
) -> Symbol:  # fmt: skip
    """Return evenly spaced values from `start` to before `stop` (from 0 to before `start` when `stop` is None)."""
    return _make("_arange", name, None, start=start, stop=stop, step=step, repeat=repeat, infer_range=infer_range,
                 dtype=dtype or "float32")  # fmt: skip


def split_v2(
    ary: Symbol, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False, name: str | None = None
) -> Symbol:
    """Split a symbol into equal sections, or before the given indices.

    Examples
    --------
    >>> mx.sym.split_v2(mx.sym.Variable('a'), (1, 3), axis=1, name='s').infer_shape(a=(3, 4))[1]
    [(3, 1), (3, 2), (3, 1)]
    """
    return Symbol.split_v2(ary, indices_or_sections, axis, squeeze_axis, name)


def linspace(start: float, stop: float, num: int, endpoint: bool = True, name: str | None = None, dtype: Any = None) -> Symbol:
    """Return `num` evenly spaced values over an interval."""
    return _make("_linspace", name, None, start=start, stop=stop, num=num, endpoint=endpoint, dtype=dtype or "float32")


def histogram(a: Symbol, bins: int | Symbol = 10, range: Any = None, name: str | None = None, **kwargs: Any) -> Symbol:
    """Count the numbers in each of some bins, so many between the limits `range`, or between the edges `bins`.

    Examples
    --------
    >>> counts, edges = mx.sym.histogram(mx.sym.Variable('a'), 4, (0, 1))
    >>> counts.infer_shape(a=(9,))[1]
    [(4,)]
    """
    op = registry.get("_histogram")
    if isinstance(bins, Symbol):
        return create(op, "_histogram", [a, bins], kwargs, name, None)
    return create(op, "_histogram", [a, None], {"bin_cnt": bins, "range": range, **kwargs}, name, None)


def eye(N: int, M: int = 0, k: int = 0, dtype: Any = None, name: str | None = None, **kwargs: Any) -> Symbol:
    """Return ones on a diagonal."""
    return _make("_eye", name, None, N=N, M=M, k=k, dtype=dtype or "float32", **kwargs)


all_end_at_caller(sys.modules[__name__], ["arange", "eye", "full", "histogram", "linspace", "ones", "split_v2", "zeros"])
