"""Checks of how a call runs: the same bits over any number of threads, eager against a bound executor; what composites call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np

from .. import autograd, context
from .._kernels import interp, team
from ..graph import patterns
from ..graph.expansion import expand
from ..graph.ir import Graph, Node, variable
from ..graph.specs import Specs
from ..opdef import Operator, registry
from ..opdef.symbolic import numbers_of
from ..support.errors import MXNetError
from . import cases as c
from . import gradients
from .cases import Case, Mismatch

#: Enough elements for several blocks to each thread.
LARGE = 20_000


def repeatability(case: Case, types: Sequence[str]) -> int | str:
    """Results and gradients have the same bits with 1 to 4 threads, and each time again."""
    dtype = "float32" if "float32" in types else types[0]
    values = case.enlarged(dtype, (LARGE, LARGE // 10))
    if case.shapes and not values:
        return 0
    if not team.has_openmp():
        return "this build has no threads"
    threads, settings = context.get_num_threads(), interp.tune()
    try:
        interp.tune(parallel_bytes=2048)
        first = None
        for n in (1, 2, 3, 4, 2):
            context.set_num_threads(n)
            found = _both_ways(case, values, dtype)
            if first is None:
                first = found
            for (what, got), (_, want) in zip(found, first, strict=True):
                c.identical(f"{dtype}, {n} threads against 1: {what}", got, want)
    finally:
        context.set_num_threads(threads)
        interp.tune(parallel_bytes=settings["parallel_bytes"])
    return 1


def _both_ways(case: Case, values: list, dtype: str) -> list[tuple[str, np.ndarray]]:
    inputs, variables = gradients.with_variables(case, values)
    with autograd.record():
        outputs = case.call(inputs)
    found = [(f"output {k}", o.asnumpy()) for k, o in enumerate(outputs)]
    found += [(f"input {k} after the call", inputs[k].asnumpy()) for k in case.states]
    if dtype == "float32" and case.op.differentiable:
        heads = [o for o in outputs if c.name_of(o) in c.FLOATS]
        grads = gradients.differentiate(heads, variables, _ramps(case, heads), create=False)
        found += [(f"gradient of input {k}", g.asnumpy()) for k, g in zip(case.variables, grads, strict=True)]
    return found


def _ramps(case: Case, heads: list) -> list:
    """Return a head gradient for each output, whose elements differ."""
    ramps = [np.linspace(-1, 1, max(o.size, 1))[: o.size].reshape(o.shape) for o in heads]
    return case.arrays([r.astype(c.numpy_dtype(c.name_of(o))) for r, o in zip(ramps, heads, strict=True)])


# ---- calls of other sizes and numbers -----------------------------------------------------------------------------------
def other_calls(case: Case, types: Sequence[str], orders: int) -> int | str:
    """A call amid calls of other sizes, and with other numbers, as rates that fall have, gives what it gives alone.

    The first plan of a composite is made for its sizes and numbers, a second one for any.
    """
    if not case.op.planned or case.device is not None:
        return "its plans are made one by one"
    count, most = 0, orders
    for dtype in c.among(types, "float32", "float16") or types[:1]:
        values, orders = case.sample(dtype), 0 if dtype == "float16" else most
        patterns.forget()
        alone = _with_gradients(case, values, orders)
        patterns.forget()
        count += sum([_runs(other, dtype, orders) for other in _others(case)]) > 1
        for (what, got), (_, want) in zip(_with_gradients(case, values, orders), alone, strict=True):
            c.identical(f"{dtype}, after calls of other sizes and numbers: {what}", got, want)
    return count or "no other sizes follow from those of the record"


def _others(case: Case) -> Iterator[Case]:
    """Yield calls like that of a case: of sizes that are equal where its are, and of numbers near its."""
    numbers = numbers_of(case.op, case.attrs)
    sizes = sorted({d for shape in case.shapes for d in shape if d > 1})
    for k in (1, 2):
        if sizes:
            larger = {d: d + i + k for i, d in enumerate(sizes)}
            yield case.where([tuple([larger.get(d, d) for d in shape]) for shape in case.shapes])
    for k in (1, -1, 2) if numbers else ():
        other = copy(case)
        other.attrs = case.attrs.replaced(**{n: _near(v, k) for n, v in numbers.items()})
        yield other


def _near(value: float, k: int) -> float:
    """Return another number: of a whole one, another whole one."""
    return value + k if value == int(value) and abs(value) > 2 else value * (1 + k / 16) if value else k / 16


def _runs(case: Case, dtype: str, orders: int) -> bool:
    try:
        _with_gradients(case, case.aside().sample(dtype), orders)
    except (MXNetError, c.Mismatch, ValueError):  # sizes that the operator, or the record, does not have
        return False
    return True


def _with_gradients(case: Case, values: list, orders: int) -> list[tuple[str, np.ndarray]]:
    """Return the results and the gradients, up to those of the second order, of one call."""
    inputs, variables = gradients.with_variables(case, values)
    with autograd.record():
        found = case.call(inputs)
        results = [(f"output {k}", a) for k, a in enumerate(found)]
        for order in range(min(orders, 2) if case.op.differentiable and variables else 0):
            heads = [a for a in found if c.name_of(a) in c.FLOATS]
            if not heads:
                break
            found = gradients.differentiate(heads, variables, _ramps(case, heads))
            results += [(f"gradient {k} of order {order + 1}", a) for k, a in zip(case.variables, found, strict=True)]
    results += [(f"input {k} after the call", inputs[k]) for k in case.states]
    return [(what, a.asnumpy()) for what, a in results]


# ---- executor -----------------------------------------------------------------------------------------------------------
def symbols() -> Any:
    """Return ``mx.sym``, or None where it is not there."""
    try:
        from .. import symbol
    except ImportError:
        return None
    return symbol if hasattr(symbol, "Variable") else None


def compose(case: Case, sym: Any) -> tuple[Any, list[str]]:
    """Return the operator applied to variables, and their names."""
    space, short = registry.namespace_of(case.op.name)
    function = getattr(getattr(sym, space) if space else sym, short)
    names = [f"in{k}" for k in range(len(case.shapes))]
    variables = [sym.Variable(n) for n in names]
    if case.op.variadic:
        return function(*variables, name="checked", **case.params), names
    wanted = case.op.input_names(case.attrs)
    return function(**dict(zip(wanted, variables, strict=True)), name="checked", **case.params), names


def executor(case: Case, types: Sequence[str]) -> int | str:
    """A bound executor gives what an eager call gives, forward and backward, in the mode of the case."""
    sym = symbols()
    if sym is None:
        return "mx.sym is not there"
    if any(not s or 0 in s for s in case.shapes):
        return "sizes of 0 are unknown to simple_bind"
    dtype = next((t for t in ("float32", "float64") if t in types), types[0])
    symbol, names = compose(case, sym)
    values = case.sample(dtype)
    inputs, _ = gradients.with_variables(case, values)
    with autograd.record():
        outputs = case.call(inputs)
    real = all(c.name_of(o) in c.FLOATS for o in outputs)
    n, differentiable = 0, real and case.op.differentiable and bool(case.variables)
    for req in ("write", "add"):
        bound = _bound(case, symbol, names, values, dtype, req if differentiable else "null")
        case.seed()
        found = bound.forward(is_train=case.train is not False)
        _same_results(case, dtype, bound, names, found, outputs, inputs)
        _unwritten(case, bound, names, values)
        n += 1
        if not differentiable or case.train is False:  # backward runs in training
            break
        _same_gradients(case, dtype, bound, names, values, req, outputs)
        _unwritten(case, bound, names, values)
    return n


def _bound(case: Case, symbol: Any, names: list[str], values: list, dtype: str, req: str) -> Any:
    """Bind the operator, and fill its arguments and states."""
    shapes = dict(zip(names, case.shapes, strict=True))
    ctx = context.current_context() if case.device is None else case.device
    types = {name: case.type_of(k, dtype) for k, name in enumerate(names)}
    reqs = {names[k]: req if k in case.variables else "null" for k in case.readonly}
    bound = symbol.simple_bind(ctx, grad_req=reqs, type_dict=types, **shapes)
    for k, (name, value) in enumerate(zip(names, values, strict=True)):
        c.store((bound.aux_dict if k in case.states else bound.arg_dict)[name], value)
    return bound


def _same_results(case: Case, dtype: str, bound: Any, names: list[str], found: list, outputs: list, inputs: list) -> None:
    if len(found) != len(outputs):
        raise Mismatch(f"the executor has {len(found)} outputs, the call {len(outputs)}")
    pairs = [(f"output {k}", got, want) for k, (got, want) in enumerate(zip(found, outputs, strict=True))]
    pairs += [(f"input {k}, a state, after the call", bound.aux_dict[names[k]], inputs[k]) for k in case.states]
    for what, got, want in pairs:
        if c.name_of(got) != c.name_of(want):
            raise Mismatch(f"{dtype}, executor: {what} is {c.name_of(got)}, of the call {c.name_of(want)}")
        c.compare(f"{dtype}, executor: {what}", got, c.wide(want), c.tolerance(case.record, c.name_of(got)))


def _unwritten(case: Case, bound: Any, names: list[str], values: list) -> None:
    for k in case.readonly:
        c.identical(f"executor: input {k} was written, although it is not a state", bound.arg_dict[names[k]], values[k])


def _same_gradients(case: Case, dtype: str, bound: Any, names: list[str], values: list, req: str, outputs: list) -> None:
    drawn = [case.rng.uniform(0.5, 1.5, o.shape).astype(c.numpy_dtype(c.name_of(o))) for o in outputs]
    heads = case.arrays(drawn)
    for name, shape in zip(names, case.shapes, strict=True):
        if bound.grad_dict.get(name) is not None:
            c.store(bound.grad_dict[name], np.full(shape, 2.0, c.numpy_dtype(dtype)))
    bound.backward(heads)
    inputs, variables = gradients.with_variables(case, values)
    with autograd.record():
        again = case.call(inputs)
    eager = gradients.differentiate(again, variables, heads, create=False)
    for k, want in zip(case.variables, eager, strict=True):
        got = bound.grad_dict.get(names[k])
        if got is None:
            continue
        value = c.wide(want) + (2.0 if req == "add" else 0.0)
        slack = c.tolerance(case.record, dtype, gradient=True)
        c.compare(f"{dtype}, executor, grad_req={req!r}: gradient of {names[k]}", got, value, slack)


# ---- what a composite calls ---------------------------------------------------------------------------------------------
def inside(case: Case, types: Sequence[str]) -> int | str:
    """What a composite calls has gradients, or says that they are zero, however deep it is nested."""
    called = calls_of(case)
    missing = without_gradient(called)
    if missing:
        raise Mismatch(f"it calls {missing[0]}, which has neither a gradient rule nor a statement that its gradient is zero")
    return len(called) or "it calls nothing"


def without_gradient(called: Sequence[Operator]) -> list[str]:
    """Return the names of those operators that have neither a gradient rule nor a statement that it is zero."""
    return sorted({op.name for op in called if not op.differentiable})


def calls_of(case: Case) -> list[Operator]:
    """Return the operators that a call consists of: those inside a composite, unless it has a gradient rule of its own."""
    op = case.op.pure if case.op.writes else case.op  # the new values of states are computed, too
    inputs = [variable(f"in{k}") for k in range(len(case.shapes))]
    call = Node(op, case.attrs.training(case.train or False), tuple((v, 0) for v in inputs), "call")
    specs = Specs(dict(zip(inputs, zip(case.shapes, case.codes("float32"), strict=True), strict=True)))
    graph = expand(Graph([(call, k) for k in range(call.n_outputs)]), everything=False, specs=specs)[0]
    return [node.op for node in graph.nodes if node.op is not None]
