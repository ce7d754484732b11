"""Calls on GPU arrays: what :mod:`mxop._core` hands over when the first input of a call lies on a GPU.

Everything takes and returns NDArrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core import core, results
from .._core.launched import LaunchCall
from ..opdef import Formula
from ..support import dtypes
from . import device, launch
from .text import REQ_WRITE


# ---- elementwise -----------------------------------------------------------------------------------------------------
def _compute_type(formula: Formula, types: Sequence[int], values: Sequence[float]) -> int:
    """Return the type in which a formula is computed: of mixed inputs the widest; float64 where integers are compared with a
    number beyond them."""
    found = formula.compute_type(dtypes.widest(*[t for k, t in enumerate(types) if k not in formula.keys]))
    return dtypes.FLOAT64 if found not in dtypes.FLOATS and any(isinstance(v, float) for v in values) else found


def _shape_of(call: Any, shapes: Sequence[tuple[int, ...]], outs: list) -> tuple[int, ...]:
    """Return the shape of the results of an elementwise call."""
    op, keys = call.op, call.keys
    if op.creates:
        return tuple(op.infer_shape(call.attrs, list(shapes), outs)[1][0])
    data = [s for k, s in enumerate(shapes) if k not in keys]
    return np.broadcast_shapes(*data) if op.broadcast else data[0]


def _ready(name: str, formula: Formula, values: Sequence[float], inputs: Sequence[Any], outputs: Sequence[Any],
           reqs: Sequence[int], compute: int) -> tuple[launch.Ready | None, list[Any]]:  # fmt: skip
    """Return what evaluates a formula, and the arrays that it writes: temporaries for outputs that overlap other inputs."""
    work = results.work_for(inputs, list(outputs), list(reqs), results.Ways.SAME_PLACE | results.Ways.ADDS)
    now = [req if a is b else REQ_WRITE for a, b, req in zip(work, outputs, reqs, strict=True)]
    arrays, targets = [a._memory for a in inputs], [a._memory for a in work]
    return launch.formula(formula.roots, formula.params, values, arrays, targets, compute, now, name), work


def elementwise(call: Any, inputs: list[Any], values: list[float], out: Any, req: int) -> tuple[list[Any], launch.Plan | None]:
    """Run an elementwise operator (an ElementwiseCall); return its results, and what was launched.

    `values` are the numeric parameters in the order of the formula; `req` is the request for the outputs that are given.
    """
    op, formula = call.op, call.formula
    types = [a.dtype_code for a in inputs]
    shapes = [a.shape for a in inputs]
    given = results.output_list(op, out, call.n_out)
    try:
        shape = _shape_of(call, shapes, [None if g is None else g.shape for g in given])
    except ValueError:
        shape = tuple(op.infer_shape(call.attrs, shapes, [None] * call.n_out)[1][0])  # raises, naming the inputs
    out_types = op.infer_type(call.attrs, types, [dtypes.UNKNOWN] * call.n_out)[1]
    compute = _compute_type(formula, [*types, *out_types] if formula.keys else types, values)
    outputs = results.results_for(op, inputs, given, [shape] * call.n_out, out_types)
    reqs = [REQ_WRITE if g is None else req for g in given]
    found, work = _ready(op.name, formula, values, inputs, outputs, reqs, compute)
    plan = launch.run(found, work[0]._device.number)
    results.deliver(work, outputs, reqs)
    return outputs, plan


# ---- prepared calls -----------------------------------------------------------------------------------------------------
def prepared(found: Sequence[launch.Ready | None], work: Sequence[Any], outputs: Sequence[Any], reqs: Sequence[int]) -> Any:
    """Return the prepared call of kernels that write `work`, and of the copies that bring temporaries to the outputs."""
    copies = [launch.copied(a._memory, b._memory, r) for a, b, r in zip(work, outputs, reqs, strict=True) if a is not b]
    calls = [LaunchCall(*f, outputs[0]._device) for f in (*found, *copies) if f is not None]
    return calls[0] if len(calls) == 1 else core.Sequence(calls)


def prepared_formula(name: str, formula: Formula, values: Sequence[float], inputs: Sequence[Any], outputs: Sequence[Any],
                     reqs: Sequence[int], compute: int | None = None) -> Any:  # fmt: skip
    """Return the prepared call of a formula on arrays of one device."""
    if compute is None:  # that of all inputs, but for keys
        compute = formula.compute_type(outputs[0].dtype_code)
    found, work = _ready(name, formula, values, inputs, outputs, reqs, compute)
    return prepared([found], work, outputs, reqs)


def prepared_elementwise(
    call: Any, inputs: Sequence[Any], values: Sequence[float], outputs: Sequence[Any], reqs: Sequence[int]
) -> Any:
    """Return the prepared call of an elementwise operator; None where a call does more than its kernel."""
    op, types = call.op, [a.dtype_code for a in inputs]
    shapes, codes = [a.shape for a in inputs], [a.dtype_code for a in outputs]
    if len(set(types)) > 1 or call.keys or op.creates:
        return None
    if op.infer_type(call.attrs, types, [dtypes.UNKNOWN] * call.n_out)[1] != codes:
        return None
    if _shape_of(call, shapes, [None] * call.n_out) != outputs[0].shape:
        return None
    compute = _compute_type(call.formula, types, values)
    return prepared_formula(op.name, call.formula, values, inputs, outputs, reqs, compute)


def prepared_reduction(op: Any, attrs: Any, source: Any, axes: tuple[int, ...], result: Any, req: int) -> Any:
    """Return the prepared call of a reduction."""
    work = results.work_for([source], [result], [req], results.Ways.DENSE)
    return prepared(launch.reduction(op, attrs, source._memory, axes, work[0]._memory), work, [result], [req])


# ---- reductions and kernels ------------------------------------------------------------------------------------------
def reduction(op: Any, attrs: Any, source: Any, axes: tuple[int, ...], result: Any, req: int) -> launch.Plan | None:
    """Run a reduction over `axes` into an array; return what was launched, if that is one kernel."""
    (work,) = results.work_for([source], [result], [req], results.Ways.DENSE)
    plans = [
        launch.run(found, work._device.number) for found in launch.reduction(op, attrs, source._memory, axes, work._memory)
    ]
    results.deliver([work], [result], [req])
    return plans[0] if len(plans) == 1 and axes and source.size else None


def kernel(op: Any, inputs: Sequence[Any], outputs: Sequence[Any], **params: Any) -> Any:
    """Run a kernel's GPU function on arrays that it can read and write as they lie."""
    place = outputs[0]._device.number
    xp = device.require(place)
    with device.using(place):
        return op.run_gpu(xp, [a._memory for a in inputs], [a._memory for a in outputs], **params)


__all__ = ["elementwise", "kernel", "reduction"]
