"""``check_op``: hold one registered operator against its whole test record.

- ``cases``: what is fed in, tolerances, comparison
- ``values``: values, types, requests, overlap, strides, special numbers, inference
- ``gradients``: against differences to any order, in every type, for every request
- ``running``: threads, and eager against a bound executor

Users reach it as :func:`mxop.test_utils.check_op`.  May import :mod:`mxop.records` and everything below ``mx.nd``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import records
from ..context import Context
from ..errors import OpLookupError
from ..opdef import Operator, registry
from . import cases, gradients, running, values

__all__ = ["check_op", "example", "find_record"]


def check_op(
    name: str, *, orders: int = 3, dtypes: Sequence[Any] | None = None, seed: int = 0, device: Any = "cpu"
) -> dict[str, Any]:
    """Check everything that mxop promises about an operator: a built-in one, or one of your own.

    Checked are: values in every type against the record's reference; ``write``, ``add`` and ``null`` into plain,
    strided and overlapping outputs; empty, 0-d and strided inputs; NaN, infinities, signed zeros and denormals;
    inference in both directions; gradients against differences up to `orders` (with respect to head gradients too), in
    every float type, for every ``grad_req``, with variables used several times; the same bits over 1 to 4 threads;
    eager calls against a bound executor.

    Parameters
    ----------
    name : str
        A registered name or alias.
    orders : int, default 3
        Highest order of gradient.
    dtypes : sequence of dtype, optional
        Types to check, of those that the record names; all by default.
    seed : int, default 0
        Of the random inputs.
    device : {'cpu', 'gpu'} or Context, default 'cpu'

    Returns
    -------
    dict
        What was checked: ``name``, ``kind``, ``cases``, ``dtypes`` and the number of comparisons under ``checks``.

    Raises
    ------
    AssertionError
        Names the operator, the case and what differs; also for an operator without a record.

    Examples
    --------
    >>> import mxop as mx
    >>> from mxop.op import elementwise
    >>> from mxop.records import record
    >>> @elementwise
    ... def cube(data):
    ...     \"\"\"Evaluate ``data**3``.\"\"\"
    ...     return data**3
    >>> _ = record("cube", lambda data: data**3)
    >>> mx.test_utils.check_op("cube")["kind"]
    'elementwise'
    """
    op = registry.get(name)
    found = find_record(op)
    if found is None:
        raise AssertionError(
            f"operator {op.name} has no test record; give one with mxop.records.record({op.name!r}, reference, ...)"
        )
    if found.draws is not None:
        return _check_draws(op, found, dtypes, _device(device) or Context("cpu"))
    listed = cases.types_of(found, dtypes)
    if not listed:
        raise AssertionError(f"operator {op.name}: its record's types {found.dtypes!r} hold none of {dtypes}")
    checks: dict[str, int] = {}
    place = _device(device)
    all_cases = cases.cases(op, found, np.random.default_rng(seed), place)
    for position, case in enumerate(all_cases):
        for what, run in _checks(case, listed, orders, first=position == 0):
            try:
                checks[what] = checks.get(what, 0) + run()
            except cases.Mismatch as problem:
                raise AssertionError(f"operator {op.name}, case {position} ({case}), {what}: {problem}") from None
            except Exception as problem:
                told = f"raises {type(problem).__name__}: {problem}"
                raise AssertionError(f"operator {op.name}, case {position} ({case}), {what}: {told}") from problem
    return {"name": op.name, "kind": op.kind, "cases": len(all_cases), "dtypes": listed, "checks": checks}


def _check_draws(op: Operator, record: records.Record, dtypes: Sequence[Any] | None, place: Any) -> dict[str, Any]:
    """Check an operator that draws random numbers."""
    from . import draws

    asked = None if dtypes is None else [np.dtype(t).name for t in dtypes]
    listed = [t for t in record.draws.dtypes if asked is None or t in asked]
    counts: dict[str, int] = {}
    for params in record.params:
        for dtype in listed:
            try:
                for what, n in draws.checks(op, record, dtype, dict(params), place):
                    counts[what] = counts.get(what, 0) + n
            except cases.Mismatch as problem:
                raise AssertionError(f"operator {op.name}, {params}: {problem}") from None
    return {"name": op.name, "kind": op.kind, "cases": len(record.params), "dtypes": listed, "checks": counts}


def find_record(op: Operator) -> records.Record | None:
    """Return the record of an operator, under its name or an alias."""
    if op.record is not None:
        return op.record
    for name in (op.name, *op.aliases):
        found = records.find(name)
        if found is not None:
            return found
    return None


def example(name: str, *, elements: int = 0, dtype: str = "float32", seed: int = 0) -> tuple[Any, list]:
    """Return a call of an operator and inputs for it, from its record: what benchmarks run.

    Parameters
    ----------
    name : str
        A registered name or alias.
    elements : int
        About how large the largest input shall be, where the parameters allow it; 0 is as small as in the record.
    dtype : str, default 'float32'
    seed : int, default 0

    Returns
    -------
    call : callable
        ``call(inputs)`` returns the list of outputs.
    inputs : list of NDArray

    Examples
    --------
    >>> from mxop.check import example
    >>> call, inputs = example("exp", elements=1000)
    >>> len(inputs), call(inputs)[0].size >= 1000
    (1, True)
    """
    op = registry.get(name)
    found = find_record(op)
    if found is None:
        raise OpLookupError(f"operator {op.name} has no test record, so there is no example of it")
    case = cases.cases(op, found, np.random.default_rng(seed))[0]
    if dtype not in cases.types_of(found, None):
        dtype = cases.types_of(found, None)[0]
    values = case.enlarged(dtype, (elements,)) if elements else []
    return case.call, case.arrays(values or case.sample(dtype))


def _checks(case: cases.Case, types: list[str], orders: int, first: bool) -> Iterator[tuple[str, Any]]:
    """Yield what to check of a case; parameters alone change neither requests nor strides, so those take the first."""
    yield "values", lambda: values.reference_values(case, types)
    yield "special", lambda: values.special_values(case, types)
    yield "inference", lambda: values.inference(case, types)
    if first:
        yield "req", lambda: values.requests(case, types)
        yield "strides", lambda: values.strides(case, types)
        yield "small shapes", lambda: values.small_shapes(case, types)
    floats = any(t in cases.FLOATS for t in types)
    if floats and case.shapes and case.op.differentiable and orders > 0:
        yield "gradient", lambda: gradients.numeric(case, orders)
        yield "gradient dtypes", lambda: gradients.types(case, types)
        if first:
            yield "zero gradients", lambda: gradients.zero_inputs(case)
            yield "grad_req", lambda: gradients.requests(case)
            yield "one variable", lambda: gradients.same_variable(case)
            yield "small gradients", lambda: gradients.empty(case)
    yield "executor", lambda: running.executor(case, types)
    if first:
        yield "threads", lambda: running.repeatability(case, types)


def _device(device: Any) -> Any:
    """Return the context to place arrays on, None for the CPU."""
    from ..context import check_available

    ctx = device if isinstance(device, Context) else Context(device)
    check_available(ctx)
    return ctx if ctx.is_gpu else None
