"""Calls on GPU arrays: what :mod:`mxop._core` hands over when the first input of a call lies on a GPU.

Requests, given outputs and overlapping memory are dealt with here, for all operators.  Everything takes and returns
NDArrays.  May import :mod:`.launch`, :mod:`.device`, :mod:`mxop._core` and :mod:`mxop.opdef`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import dtypes
from .._core.external import refuse_result
from ..errors import DeviceError, MXNetError, OpTypeError, OpValueError
from ..opdef import Formula
from . import device, launch
from .text import REQ_ADD, REQ_INPLACE, REQ_NULL, REQ_WRITE


# ---- what all kinds share --------------------------------------------------------------------------------------------
def _one_device(op: Any, arrays: Sequence[Any]) -> int:
    """Return the device of all arrays, or raise."""
    if any(a._gpu is None or a.context != arrays[0].context for a in arrays):
        listed = ", ".join(str(a.context) for a in arrays)
        raise OpValueError(f"operator {op.name}: inputs lie on different devices ({listed}); use as_in_context")
    return device.id_of(arrays[0]._gpu)


def _given(out: Any, n: int) -> list[Any]:
    """Return the given outputs as a list of `n`, None where there is none."""
    found = [] if out is None else list(out) if isinstance(out, (list, tuple)) else [out]
    return found + [None] * (n - len(found))


def _check(op: Any, out: Any, shape: tuple[int, ...], code: int, place: int) -> None:
    """Raise unless an array given as output fits."""
    from .._core import core, tape

    if not isinstance(out, core.NDArray):
        raise OpTypeError(f"operator {op.name}: out must be an NDArray, got {type(out).__name__}")
    given: Any = out
    if given._gpu is None or device.id_of(given._gpu) != place:
        raise OpValueError(
            f"operator {op.name}: out lies on {given.context}, the inputs on gpu({place}); use as_in_context"
        )
    if given.shape != shape:
        raise OpValueError(f"operator {op.name}: out has shape {given.shape}, the result has shape {shape}")
    if given.dtype_code != code:
        names = dtypes.NAMES[given.dtype_code], dtypes.NAMES[code]
        raise OpTypeError(f"operator {op.name}: out has dtype {names[0]}, the result has dtype {names[1]}")
    if tape.recording() and tape.tracked(given):
        raise MXNetError(
            f"operator {op.name}: writing into an array that autograd has recorded (inplace operations, out=, x[:]=) is "
            "not supported inside autograd.record(); use a new array, or write outside the scope"
        )


class _Output:
    """Where one result goes: a new array, the given one, or memory beside it that is copied at the end."""

    def __init__(self, op: Any, given: Any, shape: tuple[int, ...], code: int, place: int, req: int):
        if given is not None:
            _check(op, given, shape, code, place)
        self.shape, self.code, self.place = shape, code, place
        self.array = given if given is not None else device.empty(shape, code, place)
        self.req = req if given is not None else REQ_WRITE
        self.work = self.array._gpu
        self.late = False

    def beside(self) -> None:
        """Compute into new memory, and copy at the end."""
        self.work, self.late = device.allocate(self.shape, self.code, self.place), True

    def finish(self) -> Any:
        """Return the result, complete."""
        if self.late:
            launch.assign(self.work, self.array._gpu, self.req)
        return self.array


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


def _evaluate(op: Any, formula: Formula, values: Sequence[float], inputs: Sequence[Any], outputs: Sequence[_Output],
              compute: int) -> list[Any]:  # fmt: skip
    """Run a formula; an output that overlaps an input it is not equal to gets its values afterwards."""
    arrays = [a._gpu for a in inputs]
    for out in outputs:
        if any(device.overlap(a, out.work) and not device.same_layout(a, out.work) for a in arrays):
            out.beside()
    reqs = [REQ_WRITE if out.late else out.req for out in outputs]
    launch.formula(formula.roots, formula.params, values, arrays, [o.work for o in outputs], compute, reqs, op.name)
    return [out.finish() for out in outputs]


def elementwise(call: Any, inputs: list[Any], values: list[float], out: Any, req: int) -> list[Any]:
    """Run an elementwise operator.

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
    place = _one_device(op, inputs)
    types = [a.dtype_code for a in inputs]
    shapes = [a.shape for a in inputs]
    given = _given(out, call.n_out)
    try:
        shape = _shape_of(call, shapes, [None if g is None else g.shape for g in given])
    except ValueError:
        shape = tuple(op.infer_shape(call.attrs, shapes, [None] * call.n_out)[1][0])  # raises, naming the inputs
    out_types = op.infer_type(call.attrs, types, [dtypes.UNKNOWN] * call.n_out)[1]
    compute = _compute_type(formula, [*types, *out_types] if formula.keys else types)
    outputs = [_Output(op, g, shape, t, place, req) for g, t in zip(given, out_types, strict=True)]
    return _evaluate(op, formula, values, inputs, outputs, compute)


class _Fused:
    """What stands for the operator of a fused group in messages and kernel names."""

    name = "fused"


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
    place = _one_device(_Fused, [*inputs, *outputs])
    compute = made.compute_type(outputs[0].dtype_code)  # that of all inputs, but for keys
    targets = [
        _Output(_Fused, a, outputs[0].shape, a.dtype_code, place, req) for a, req in zip(outputs, reqs, strict=True)
    ]
    _evaluate(_Fused, made, (), inputs, targets, compute)


# ---- reductions ------------------------------------------------------------------------------------------------------
def reduction(op: Any, attrs: Any, source: Any, axes: tuple[int, ...], out: Any, out_shape: tuple[int, ...],
              out_type: int, req: int) -> Any:  # fmt: skip
    """Run a reduction over `axes`; return its result, of shape `out_shape`."""
    place = device.id_of(source._gpu)
    if out is not None:
        _check(op, out, tuple(out_shape), out_type, place)
    found = launch.reduction(op, attrs, source._gpu, tuple(axes), out_type).reshape(tuple(out_shape))
    if out is None:
        return device.wrap(found)
    launch.assign(found, out._gpu, req)
    return out


# ---- kernels ---------------------------------------------------------------------------------------------------------
def outputs(op: Any, inputs: list[Any], targets: list[Any], out_shapes: Sequence[tuple[int, ...]],
            out_types: Sequence[int]) -> list[Any]:  # fmt: skip
    """Return the outputs of a call: those that are given, checked, and new ones on the device of the inputs."""
    place = _one_device(op, inputs)
    return [
        _Output(op, given, tuple(shape), code, place, REQ_WRITE).array
        for given, shape, code in zip(targets, out_shapes, out_types, strict=True)
    ]


def kernel(op: Any, attrs: Any, inputs: list[Any], targets: list[Any], out_shapes: Sequence[tuple[int, ...]],
           out_types: Sequence[int], req: int) -> list[Any]:  # fmt: skip
    """Run a kernel's GPU function, or copy what its view rule chooses.

    Parameters
    ----------
    inputs : list of NDArray
    targets : list of (NDArray or None)
        Given outputs; without inputs they tell the device.
    out_shapes, out_types
        Shapes and type codes of the outputs.
    req : int
        Request for the given outputs.
    """
    place = _one_device(op, inputs or [t for t in targets if t is not None])
    outputs = [
        _Output(op, given, tuple(shape), code, place, req)
        for given, shape, code in zip(targets, out_shapes, out_types, strict=True)
    ]
    if op.make_view is not None:
        source, others = inputs[0], [a.shape for a in inputs[1:]]
        shape, strides, offset = op.make_view(source.shape, source._strides, *others, **attrs)
        if strides is None:  # a reshape that no view of these strides can be
            source = device.contiguous_copy(source)
            shape, strides, offset = op.make_view(source.shape, source._strides, *others, **attrs)
        part = source._view(tuple(shape), tuple(strides), offset)._gpu
        launch.assign(part, outputs[0].array._gpu, outputs[0].req)
        return [outputs[0].array]
    if op.run_gpu is None:
        raise DeviceError(
            f"operator {op.name} has no GPU function; give one with @{op.name.lstrip('_')}.gpu, "
            "or move its inputs with as_in_context(mx.cpu())"
        )
    xp = device.require(place)
    with device.using(place):
        ready = [a._gpu if op.strided or a._contiguous else a._gpu.copy(order="C") for a in inputs]
        for out in outputs:  # the functions may read inputs after they have begun to write
            if (
                out.req in (REQ_ADD, REQ_NULL)
                or not out.array._contiguous
                or any(device.overlap(a, out.work) for a in ready)
            ):
                out.beside()
        if op.clears:
            for out in outputs:
                out.work.fill(0)
        found = op.run_gpu(xp, ready, [out.work for out in outputs], **attrs)
        if op.clears:
            refuse_result(op, "GPU", found)
    return [out.finish() for out in outputs]


__all__ = ["REQ_INPLACE", "elementwise", "formula", "kernel", "reduction"]
