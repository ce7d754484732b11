"""What :func:`mxop.test_utils.check_op` asks of an operator that draws random numbers.

May import :mod:`mxop.random`, :mod:`mxop.context`, :mod:`mxop.symbol`, :mod:`.cases` and :mod:`mxop.records`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import context
from ..opdef import Operator
from ..records import Record
from .cases import Mismatch

SIZE = 20_000
#: The distance of Kolmogorov and Smirnov times the root of the size is larger in one of 1500 samples; seeds are fixed.
FARTHEST = 2.0


class Draws:
    """Calls of one operator with one set of parameters."""

    def __init__(self, op: Operator, params: dict[str, Any], dtype: str, device: Any):
        import mxop as mx

        self.op, self.params, self.dtype, self.device, self.mx = op, params, dtype, device, mx

    def call(self, shape: tuple[int, ...], **options: Any) -> Any:
        """Return the array that an imperative call gives."""
        if "out" not in options:
            options["ctx"] = str(self.device)
        return self.op(**self.params, shape=shape, dtype=self.dtype, **options)

    def drawn(self, seed: int, shape: tuple[int, ...] = (SIZE,), times: int = 1) -> list[np.ndarray]:
        """Return what calls give after a seed."""
        self.mx.random.seed(seed)
        return [self.call(shape).asnumpy() for _ in range(times)]


def ks_distance(sample: np.ndarray, cdf: Any) -> float:
    """Return how far a sample is from a distribution, times the root of its size.

    The distance is taken at the values that occur, so that it serves distributions of integers too.
    """
    values, counts = np.unique(sample.astype(np.float64), return_counts=True)
    upto = np.cumsum(counts) / sample.size
    return float(np.max(np.abs(upto - cdf(values))) * np.sqrt(sample.size))


def checks(op: Operator, record: Record, dtype: str, params: dict[str, Any], device: Any) -> Iterator[tuple[str, int]]:
    """Yield the name of each check that held, and the number of comparisons."""
    calls = Draws(op, params, dtype, device)
    yield "values", _distribution(calls, record)
    yield "calls", _calls_differ(calls)
    yield "threads", _same_for_threads(calls)
    yield "outputs", _into_given_arrays(calls)
    yield "executor", _executor_draws_the_same(calls)


def _distribution(calls: Draws, record: Record) -> int:
    assert record.draws is not None
    for seed in (1, 2):
        (sample,) = calls.drawn(seed)
        if sample.dtype != np.dtype(calls.dtype):
            raise Mismatch(f"{calls.dtype}: the result has dtype {sample.dtype}")
        far = ks_distance(sample, lambda x: record.draws.cdf(x, **calls.params))
        if not far < FARTHEST:
            raise Mismatch(f"{calls.dtype}: a sample of {SIZE} is {far:.2f} / sqrt({SIZE}) from its distribution")
    return 2


def _calls_differ(calls: Draws) -> int:
    first, second = calls.drawn(3, times=2)
    again, _ = calls.drawn(3, times=2)
    (other,) = calls.drawn(4)
    if not np.array_equal(first, again):
        raise Mismatch(f"{calls.dtype}: one seed gives different numbers")
    one, two, three = (x.astype(np.float64) for x in (first, second, other))
    pairs = [(one, two), (one, three), (one[1:], one[:-1]), (one[16:], one[:-16]), (one[64:], one[:-64])]
    for a, b in pairs:  # two calls, two seeds, neighbours, words of one call of Philox, groups
        related = abs(np.corrcoef(a, b)[0, 1]) * np.sqrt(a.size)
        if not related < 4:
            raise Mismatch(
                f"{calls.dtype}: numbers that should be independent have a correlation of {related:.1f} sigma"
            )
    return 6


def _same_for_threads(calls: Draws) -> int:
    shape = (300_001,)  # enough for several threads, and no multiple of a block
    before, found = context.get_num_threads(), []
    try:
        for n in (1, 2, 3, 4):
            context.set_num_threads(n)
            found += calls.drawn(5, shape)
    finally:
        context.set_num_threads(before)
    if not all(np.array_equal(found[0], x) for x in found):
        raise Mismatch(f"{calls.dtype}: results depend on the number of threads")
    part = calls.drawn(5, (1001,))[0]
    if not np.array_equal(part, found[0][:1001]):
        raise Mismatch(f"{calls.dtype}: the first numbers depend on how many are drawn")
    return 4


def _into_given_arrays(calls: Draws) -> int:
    (expected,) = calls.drawn(6, (3, 5))
    for shape in ((0,), (2, 0, 3), (1,)):
        if calls.drawn(6, shape)[0].shape != shape:
            raise Mismatch(f"{calls.dtype}: a call for shape {shape} gives another")
    with calls.mx.np_shape(True):
        if calls.drawn(6, ())[0].shape != ():
            raise Mismatch(f"{calls.dtype}: a call for shape () gives another")
    out = calls.mx.nd.zeros((3, 5), dtype=calls.dtype, ctx=calls.device)
    calls.mx.random.seed(6)
    calls.call((3, 5), out=out)
    if calls.device.is_gpu == (out._gpu is None) or (
        not calls.device.is_gpu and not np.array_equal(out.asnumpy(), expected)
    ):
        raise Mismatch(f"{calls.dtype}: out= gives other numbers")
    return 5


def _executor_draws_the_same(calls: Draws) -> int:
    mx = calls.mx
    space, name = mx.op.namespace_of(calls.op.name)
    function = getattr(mx.sym._internal, calls.op.name) if space == "random" else getattr(mx.sym, name)
    symbol = function(**calls.params, shape=(40, 50), dtype=calls.dtype)
    expected = calls.drawn(7, (40, 50), times=2)
    for bound in (symbol, mx.sym.Cast(symbol, dtype=calls.dtype)):
        executor = bound.bind(calls.device, {})
        mx.random.seed(7)
        found = [executor.forward()[0].asnumpy() for _ in range(2)]
        for a, b in zip(expected, found, strict=True):
            if not np.array_equal(a, b):
                raise Mismatch(f"{calls.dtype}: a bound executor draws other numbers than calls")
    return 4
