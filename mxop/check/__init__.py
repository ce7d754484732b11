"""``check_op``: hold one registered operator against its whole test record.

- ``cases``: what is fed in, tolerances, comparison
- ``values``: values, types, states, requests, overlap, strides, alignment
- ``edges``: small shapes, special numbers, bad input
- ``inference``: in both directions
- ``draws``: distributions of random numbers
- ``gradients``: against differences to any order, in every type, for every request
- ``points``: derivatives at special points, and as symbols
- ``running``: threads, eager against a bound executor, what composites call

Users reach it as :func:`mxop.test_utils.check_op`.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import records
from ..context import Context
from ..opdef import Composite, Operator, registry
from ..support.errors import OpLookupError, ends_at_caller
from . import cases, draws, edges, gradients, inference, points, running, values

__all__ = ["check_op", "example", "find_record"]


@ends_at_caller
def check_op(
    name: str, *, orders: int = 3, dtypes: Sequence[Any] | None = None, seed: int = 0, device: Any = "cpu"
) -> dict[str, Any]:
    """Check everything that mxop promises about an operator: a built-in one, or one of your own.

    Checked are: values and their types, for inputs of every type, against the record's reference, and so are states after the
    call; no other input is written; ``write``, ``add`` and ``null`` into plain, strided and overlapping outputs; empty, 0-d and
    strided inputs, and data that begins anywhere; NaN, infinities, signed zeros and denormals; bad input, with its message;
    inference in both directions; gradients against differences up to `orders` (with respect to head gradients too), in every
    float type, at special points, as symbols, for every ``grad_req``, with variables used several times; the same bits over 1
    to 4 threads; eager calls against a bound executor; both modes of an operator that takes ``is_train``; the distribution of
    random numbers.  A check that could not run is explained by the record, or fails.

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
        What was checked: ``name``, ``kind``, ``cases``, ``dtypes``, the number of comparisons of each check under
        ``checks``, and under ``unchecked`` why some of them ran zero times.

    Raises
    ------
    AssertionError
        Names the operator, the case and what differs; also for an operator without a record.

    Examples
    --------
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
    if found.distribution is None and found.seed is None and not op.repeatable:
        raise AssertionError(f"operator {op.name} draws random numbers; its record needs distribution=, or seed= when the "
                             f"results of its cases follow from the inputs alone")  # fmt: skip
    if found.distribution is None and found.reference is None:
        raise AssertionError(f"operator {op.name}: its record has neither reference=, what NumPy computes after the seed, nor "
                             "distribution=, with dependent=True where the elements of a result depend on others")  # fmt: skip
    listed = cases.types_of(found, dtypes)
    if not listed:
        wanted = "type: expected letters of 'fnlib'" if dtypes is None else f"type of {list(dtypes)}"
        raise AssertionError(f"operator {op.name}: its record's dtypes={found.dtypes!r} name no {wanted}")
    report = _Report(op, found)
    place = _device(device)
    all_cases = cases.cases(op, found, np.random.default_rng(seed), place)
    for position, case in enumerate(all_cases):
        for what, run in _checks(case, listed, orders, first=position == 0):
            report.add(what, run, f"operator {op.name}, case {position} ({case}), {what}")
    report.close()
    return {
        "name": op.name, "kind": op.kind, "cases": len(all_cases), "dtypes": listed, "checks": report.counts,
        "unchecked": report.reasons,
    }  # fmt: skip


class _Report:
    """What ran how often, and why something did not."""

    def __init__(self, op: Operator, record: records.Record):
        self.op, self.record = op, record
        self.counts: dict[str, int] = {}
        self.reasons: dict[str, str] = {}

    def add(self, what: str, run: Callable[[], int | str], where: str) -> None:
        """Run a check and count it; a check that returns a text did not run, for that reason."""
        self.counts.setdefault(what, 0)
        if what in self.record.unchecked:
            return
        try:
            done = run()
        except cases.Mismatch as problem:
            raise AssertionError(f"{where}: {problem}") from None
        except Exception as problem:
            last = traceback.extract_tb(problem.__traceback__)[-1]  # an assert may say nothing else
            told = str(problem) or f"at {last.filename}:{last.lineno}, in {last.line!r}"
            raise AssertionError(f"{where}: raises {type(problem).__name__}: {told}") from problem
        if isinstance(done, str):
            self.reasons.setdefault(what, done)
        else:
            self.counts[what] += done

    def close(self) -> None:
        """Raise AssertionError unless each check that ran zero times is explained."""
        unknown = [what for what in self.record.unchecked if what not in CHECKS]
        if unknown:
            known = ", ".join(CHECKS)
            raise AssertionError(f"operator {self.op.name}: its record leaves out {unknown[0]!r}, which is not a check; the "
                                 f"checks are {known}")  # fmt: skip
        said = self.record.unchecked
        self.reasons = {w: said.get(w) or self.reasons.get(w, "") for w, n in self.counts.items() if not n}
        silent = [what for what, why in self.reasons.items() if not why]
        if silent:
            raise AssertionError(f"operator {self.op.name}: the check {silent[0]!r} ran zero times; say why in its record, "
                                 f"with unchecked={{{silent[0]!r}: 'why'}}, or give cases for it")  # fmt: skip


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


#: The names of the checks: in reports, and in ``Record.unchecked``.
CHECKS = (
    "values", "distribution", "special", "small shapes", "large", "inference", "shapes back", "types back", "bad input",
    "shape_only", "req", "strides", "alignment", "gradient", "gradient dtypes", "head gradients", "zero gradients", "grad_req",
    "one variable", "small gradients", "special gradients", "symbolic gradients", "composition",
    "other calls", "executor", "threads",
)  # fmt: skip

_Check = tuple[str, Callable[[], int | str]]


def _checks(case: cases.Case, types: list[str], orders: int, first: bool) -> Iterator[_Check]:
    """Yield what to check of a case; parameters alone change neither requests nor strides, so those take the first."""
    yield "values", lambda: values.reference_values(case, types)
    yield "inference", lambda: inference.inference(case, types)
    if case.record.distribution is not None:
        yield "distribution", lambda: draws.distribution(case, types)
    if first:
        yield "bad input", lambda: edges.refusals(case, types)
    for what, run in _of_references(case, types, first):
        yield what, run if case.record.distribution is None else lambda: "its results are random"
    again = not case.random or case.record.seed is not None
    for what, run in _of_two_calls(case, types, orders, first):
        yield what, run if again else lambda: "its results are random, and the record has no seed"
    yield "shapes back", lambda: inference.shapes_back(case, types)
    yield "types back", lambda: inference.types_back(case, types)


def _of_references(case: cases.Case, types: list[str], first: bool) -> Iterator[_Check]:
    yield "special", lambda: edges.special_values(case, types, first)
    yield "small shapes", lambda: edges.small_shapes(case, types)
    if first:
        yield "large", lambda: values.large(case, types)


def _of_two_calls(case: cases.Case, types: list[str], orders: int, first: bool) -> Iterator[_Check]:
    """Yield the checks that compare two calls with each other."""
    if first:
        yield "shape_only", lambda: values.shapes_alone(case, types)
        yield "req", lambda: values.requests(case, types)
        yield "strides", lambda: values.strides(case, types)
        yield "alignment", lambda: values.alignment(case, types)
    if isinstance(case.op, Composite):
        yield "composition", lambda: running.inside(case, types)
        yield "other calls", lambda: running.other_calls(case, types, orders)
    why = _no_gradient(case, types, orders)
    for what, run in _of_gradients(case, types, orders, first):
        yield what, run if why is None else lambda: why
    yield "executor", lambda: running.executor(case, types)
    if first:
        yield "threads", lambda: running.repeatability(case, types)


def _of_gradients(case: cases.Case, types: list[str], orders: int, first: bool) -> Iterator[_Check]:
    yield "gradient", lambda: gradients.numeric(case, orders)
    yield "gradient dtypes", lambda: gradients.types(case, types)
    if first:
        yield "head gradients", lambda: gradients.linear(case)
        yield "zero gradients", lambda: gradients.zero_inputs(case)
        yield "grad_req", lambda: gradients.requests(case)
    yield "one variable", lambda: gradients.same_variable(case)
    yield "small gradients", lambda: gradients.empty(case)
    yield "special gradients", lambda: points.special(case, orders)
    yield "symbolic gradients", lambda: points.symbolic(case)


def _no_gradient(case: cases.Case, types: list[str], orders: int) -> str | None:
    """Return why gradients are not checked, None where they are."""
    if not case.shapes:
        return "it has no inputs"
    if not orders:
        return "orders=0"
    if not any(t in cases.FLOATS for t in types):
        return "none of the types is a float"
    if case.op.differentiable:
        return None
    if case.op.kind == "elementwise":  # which has one unless it is told otherwise
        return "it says that it has no gradient"
    said = case.record.unchecked.get("gradient")
    if said is None and case.record.grad_inputs == ():
        return "the record says that no input has a gradient"
    return said or ""


def _device(device: Any) -> Any:
    """Return the context to place arrays on, None for the CPU."""
    from ..context import check_available

    ctx = device if isinstance(device, Context) else Context(device)
    check_available(ctx)
    return ctx if ctx.is_gpu else None
