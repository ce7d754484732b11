"""Kernels from formulas: made by CuPy on first use, kept, and launched on CuPy's arrays.

May import :mod:`.text`, :mod:`.device`, :mod:`mxop.opdef` and :mod:`mxop.dtypes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import dtypes
from ..memo import SHAPES, keep
from . import device, text

_kernels: dict[tuple, Any] = {}


def _kernel(key: tuple, make: Any) -> Any:
    """Return a kernel that was made before, or make it."""
    found = _kernels.get(key)
    if found is None:
        found = keep(
            _kernels, key, make(), SHAPES
        )  # formulas with constants of their own (fused groups) could go on forever
    return found


def _elementwise(source: text.ElementwiseText, xp: Any) -> Any:
    return xp.ElementwiseKernel(
        source.in_params, source.out_params, source.operation, source.kernel_name,
        preamble=source.preamble, options=source.options,
    )  # fmt: skip


def _operand(array: Any) -> Any:
    """Return an array as a kernel takes it: bfloat16 as bits."""
    return array.view(np.uint16) if array.dtype.name == "bfloat16" else array


def code_of(array: Any) -> int:
    """Return the type code of a CuPy array."""
    return dtypes.code_of(array.dtype)


def formula(roots: Sequence[Any], params: Sequence[str], values: Sequence[float], inputs: Sequence[Any],
            outputs: Sequence[Any], compute: int, reqs: Sequence[int], name: str) -> None:  # fmt: skip
    """Evaluate formulas into outputs of one shape, to which the inputs broadcast; all are CuPy arrays of one device.

    An output may be the very memory of an input of its layout; otherwise they must not overlap.
    """
    if not any(reqs) or outputs[0].size == 0:
        return
    in_types, out_types = tuple(map(code_of, inputs)), tuple(map(code_of, outputs))
    reqs = tuple(text.REQ_WRITE if r == text.REQ_INPLACE else r for r in reqs)
    place = device.id_of(outputs[0])
    xp = device.require(place)
    # the numbers of expressions are never used twice, so they may outlive them in a key
    key = (tuple(r.uid for r in roots), tuple(params), in_types, out_types, compute, reqs, name)
    number = float if compute in dtypes.FLOATS else int
    with device.using(place):
        kernel = _kernel(key, lambda: _elementwise(
            text.ElementwiseText(tuple(roots), tuple(params), in_types, out_types, compute, reqs, name), xp))  # fmt: skip
        kernel(*map(_operand, inputs), *(number(v) for v in values), *map(_operand, outputs))


def assign(source: Any, target: Any, req: int) -> None:
    """Copy (or add) a CuPy array into another of the same size and device, converting types."""
    if req == text.REQ_NULL or target.size == 0:
        return
    if device.same_layout(source, target) and req != text.REQ_ADD:
        return
    place = device.id_of(target)
    with device.using(place):
        if source.shape != target.shape:
            source = source.reshape(target.shape)
        if device.overlap(source, target) and not device.same_layout(source, target):
            source = source.copy()
        if source.dtype == target.dtype and req != text.REQ_ADD:
            target[...] = source  # CuPy moves bytes
            return
    in_type, out_type = code_of(source), code_of(target)
    made = text.of_copy(in_type, out_type, req)
    formula(made.roots, (), (), [source], [target], made.compute, (req,), "copy")


def reduction(op: Any, attrs: Any, source: Any, axes: tuple[int, ...], out_type: int) -> Any:
    """Return the reduction of a CuPy array: a new array in C order, without the reduced axes."""
    made = text.of_reduction(op, attrs, code_of(source), out_type)
    place = device.id_of(source)
    kept = tuple(d for i, d in enumerate(source.shape) if i not in axes)
    each = 1
    for i in axes:
        each *= source.shape[i]
    result = device.allocate(kept, out_type, place)
    if result.size == 0:
        return result
    xp = device.require(place)
    with device.using(place):
        if source.size == 0 or not axes:  # nothing to combine: only the formulas are left
            _finish(made, source, result, each)
            return result
        last = made.final_root.uid if made.final_root is not None else None
        key = ("reduce", made.map_root.uid, made.combine.name, last, made.in_type, out_type, made.compute, made.name)
        kernel = _kernel(key, lambda: xp.ReductionKernel(
            made.in_params, made.out_params, made.map_expr, made.reduce_expr, made.post_map_expr, made.identity,
            made.kernel_name, reduce_type=made.reduce_type, preamble=made.preamble, options=made.options))  # fmt: skip
        count = float(each) if made.compute in dtypes.FLOATS else each
        kernel(_operand(source), count, out=_operand(result), axis=axes)
    return result


def _finish(made: text.ReductionText, source: Any, result: Any, each: int) -> None:
    """Write a reduction that combines no elements, or each alone."""
    from ..formula import const, input_, substitute

    if each == 0 and made.final_root is None:
        result.fill(made.identity_value)
        return
    if each == 0:
        root, inputs = const(made.identity_value), []
    else:
        root, inputs = made.map_root, [source]
    if made.final_root is not None:
        (root,) = substitute([made.final_root], {input_(0): root, input_(1): const(each)})
    formula((root,), (), (), inputs, [result], made.compute, (text.REQ_WRITE,), made.name)


def copy(source: Any, target: Any, req: int) -> None:
    """Copy (or add, by `req`) one NDArray into another of the same size, converting types; one or both are on a GPU."""
    from .._core import core

    if target._gpu is None:
        core.copy(core.from_numpy(device.to_numpy(source._gpu), False), target, req)
        return
    place = device.id_of(target._gpu)
    if source._gpu is None:
        assign(device.uploaded(core.as_numpy(source), place), target._gpu, req)
    elif device.id_of(source._gpu) == place:
        assign(source._gpu, target._gpu, req)
    else:
        with device.using(place):  # CuPy copies to the current device
            moved = source._gpu.copy()
        assign(moved, target._gpu, req)
