"""Calls on GPU arrays: what :mod:`mxop._core` hands over when the first input of a call lies on a GPU.

Everything takes and returns NDArrays.  May import :mod:`.launch`, :mod:`.device`, :mod:`mxop._core` and :mod:`mxop.opdef`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import dtypes
from .._core import results
from .._core.external import refuse_result
from ..opdef import Formula
from ..opdef.parts import Part
from . import device, launch
from .text import REQ_ADD, REQ_WRITE


# ---- elementwise -----------------------------------------------------------------------------------------------------
def _compute_type(formula: Formula, types: Sequence[int]) -> int:
    """Return the type in which a formula is computed (of mixed inputs: the widest)."""
    return formula.compute_type(dtypes.widest(*[t for k, t in enumerate(types) if k not in formula.keys]))


def _shape_of(call: Any, shapes: Sequence[tuple[int, ...]], outs: list) -> tuple[int, ...]:
    """Return the shape of the results of an elementwise call."""
    op, keys = call.op, call.keys
    if op.creates:
        return tuple(op.infer_shape(call.attrs, list(shapes), outs)[1][0])
    data = [s for k, s in enumerate(shapes) if k not in keys]
    return np.broadcast_shapes(*data) if op.broadcast else data[0]


def _evaluate(name: str, formula: Formula, values: Sequence[float], inputs: Sequence[Any], outputs: list[Any],
              reqs: Sequence[int], compute: int) -> launch.Plan | None:  # fmt: skip
    """Run a formula, and return what was launched.

    An output that overlaps an input it is not equal to gets its values afterwards.
    """
    work = results.work_for(inputs, outputs, list(reqs), results.Ways.SAME_PLACE | results.Ways.ADDS)
    now = [req if a is b else REQ_WRITE for a, b, req in zip(work, outputs, reqs, strict=True)]
    arrays, targets = [a._gpu for a in inputs], [a._gpu for a in work]
    plan = launch.formula(formula.roots, formula.params, values, arrays, targets, compute, now, name)
    results.deliver(work, outputs, list(reqs))
    return plan


def elementwise(
    call: Any, inputs: list[Any], values: list[float], out: Any, req: int
) -> tuple[list[Any], launch.Plan | None]:
    """Run an elementwise operator; return its results, and what was launched.

    Parameters
    ----------
    call : ElementwiseCall
        The operator, its parameters and its formula.
    inputs : list of NDArray
    values : list of (float or int)
        Numeric parameters, in the order of the formula, as data of this type take them.
    out : NDArray, list of NDArray or None
    req : int
        Request for the given outputs.
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
    compute = _compute_type(formula, [*types, *out_types] if formula.keys else types)
    outputs = results.results_for(op, inputs, given, [shape] * call.n_out, out_types)
    reqs = [REQ_WRITE if g is None else req for g in given]
    return outputs, _evaluate(op.name, formula, values, inputs, outputs, reqs, compute)


def formula(roots: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], reqs: Sequence[int]) -> None:
    """Run a fused group: formulas over ``input_(0)`` and on, without parameters, into outputs of one shape.

    Parameters
    ----------
    roots : sequence of Expr
    inputs, outputs : sequence of NDArray
        Inputs broadcast to the outputs' shape.
    reqs : sequence of int
        Request of each output.
    """
    made = Formula(tuple(roots), ())
    compute = made.compute_type(outputs[0].dtype_code)  # that of all inputs, but for keys
    _evaluate("fused", made, (), inputs, list(outputs), reqs, compute)


# ---- reductions and kernels ------------------------------------------------------------------------------------------
def reduction(op: Any, attrs: Any, source: Any, axes: tuple[int, ...], result: Any, req: int) -> launch.Plan | None:
    """Run a reduction over `axes` into an array; return what was launched, if that is one kernel."""
    (work,) = results.work_for([source], [result], [req], results.Ways.DENSE)
    plan = launch.reduction(op, attrs, source._gpu, axes, work._gpu)
    results.deliver([work], [result], [req])
    return plan


class Moves:
    """What :class:`mxop.opdef.parts.Part` does its moves with: kernels of ours, at once."""

    def move(self, source: Any, target: Any, req: int = REQ_WRITE) -> None:
        """Copy an array into another, or add it."""
        launch.assign(source._gpu, target._gpu, req)

    def add(self, source: Any, target: Any) -> None:
        """Add an array to another."""
        launch.assign(source._gpu, target._gpu, REQ_ADD)

    def fill(self, target: Any, value: Any) -> None:
        """Set all elements to a number."""
        with device.using(device.id_of(target._gpu)):
            target._gpu.fill(value)


def kernel(op: Any, params: dict[str, Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Run a kernel's GPU function on arrays that it can read and write as they lie."""
    place = device.id_of(outputs[0]._gpu)
    xp = device.require(place)
    with device.using(place):
        if op.clears:
            for out in outputs:
                out._gpu.fill(0)
        if op.moves is not None and op.moves is op.run_gpu:
            found = op.moves(None, *([Part(_MOVES, a) for a in arrays] for arrays in (inputs, outputs)), **params)
        else:
            found = op.run_gpu(xp, [a._gpu for a in inputs], [a._gpu for a in outputs], **params)
        if op.clears:
            refuse_result(op, "GPU", found)


_MOVES = Moves()

__all__ = ["elementwise", "formula", "kernel", "reduction"]
