"""Checks of how a call runs: the same bits over any number of threads, eager against a bound executor.

May import :mod:`.cases`, :mod:`.gradients` and, when it is there, :mod:`mxop.symbol`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import autograd, context
from .._kernels import interp
from ..opdef import registry
from . import cases as c
from . import gradients
from .cases import Case, Mismatch

#: Enough elements for several blocks to each thread.
LARGE = 20_000


def repeatability(case: Case, types: Sequence[str]) -> int:
    """Results and gradients have the same bits with 1 to 4 threads, and each time again."""
    dtype = "float32" if "float32" in types else types[0]
    values = case.enlarged(dtype, (LARGE, LARGE // 10))
    if not values or not interp.has_openmp():
        return 0
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
    variables = gradients._variables(case, values)
    with autograd.record():
        outputs = case.call(variables)
    found = [(f"output {k}", o.asnumpy()) for k, o in enumerate(outputs)]
    if dtype == "float32":
        heads = [o for o in outputs if c.name_of(o) in c.FLOATS]
        ramps = [np.linspace(-1, 1, max(o.size, 1))[: o.size].reshape(o.shape) for o in heads]
        given = case.arrays([r.astype(c.numpy_dtype(c.name_of(o))) for r, o in zip(ramps, heads, strict=True)])
        grads = gradients.differentiate(heads, variables, given, create=False)
        found += [(f"gradient of input {k}", g.asnumpy()) for k, g in enumerate(grads)]
    return found


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


def executor(case: Case, types: Sequence[str]) -> int:
    """A bound executor gives what an eager call gives, forward and backward."""
    sym = symbols()
    if sym is None or case.op.aux_names(case.attrs) or any(not s or 0 in s for s in case.shapes):
        return 0  # to simple_bind, as to MXNet, sizes of 0 are unknown
    n = 0
    for dtype in [t for t in ("float32", "float64") if t in types][:1]:
        symbol, names = compose(case, sym)
        values = case.sample(dtype)
        variables = gradients._variables(case, values)
        with autograd.record():
            outputs = case.call(variables)
        is_float = [c.name_of(o) in c.FLOATS for o in outputs]
        for req in ("write", "add"):
            shapes = dict(zip(names, case.shapes, strict=True))
            bound = symbol.simple_bind(
                context.current_context() if case.device is None else case.device,
                grad_req=req if all(is_float) else "null",
                type_dict=dict.fromkeys(names, dtype), **shapes,
            )  # fmt: skip
            for name, value in zip(names, values, strict=True):
                c.store(bound.arg_dict[name], value)
            found = bound.forward(is_train=True)
            if len(found) != len(outputs):
                raise Mismatch(f"the executor has {len(found)} outputs, the call {len(outputs)}")
            for k, (got, want) in enumerate(zip(found, outputs, strict=True)):
                c.compare(f"{dtype}, executor: output {k}", got, c.wide(want), c.tolerance(case.record, c.name_of(got)))
            n += 1
            if not all(is_float) or not case.shapes:
                break
            heads = case.arrays(
                [case.rng.uniform(0.5, 1.5, o.shape).astype(c.numpy_dtype(c.name_of(o))) for o in outputs]
            )
            for name, x in zip(names, case.shapes, strict=True):
                if bound.grad_dict.get(name) is not None:
                    c.store(bound.grad_dict[name], np.full(x, 2.0, c.numpy_dtype(dtype)))
            bound.backward(heads)
            with autograd.record():
                again = case.call(variables)
            eager = gradients.differentiate(again, variables, heads, create=False)
            for name, want in zip(names, eager, strict=True):
                got = bound.grad_dict.get(name)
                if got is None:
                    continue
                value = c.wide(want) + (2.0 if req == "add" else 0.0)
                slack = c.tolerance(case.record, dtype, gradient=True)
                c.compare(f"{dtype}, executor, grad_req={req!r}: gradient of {name}", got, value, slack)
    return n
