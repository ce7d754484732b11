"""Kernels from formulas: compiled on first use, kept, and launched on CuPy's arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..formula import keys_of
from ..support import dtypes
from ..support.memo import keep
from . import compiled, device, reductions, text
from .layout import BLOCK, WORD, collapse, lay, tiled

#: Elements of results from which on a kernel goes through its operands by words.
MANY = 4096

_plans: dict[tuple, Any] = {}


class Plan(NamedTuple):
    """A kernel that is ready for operands of certain types that lie in a certain way."""

    launch: Any  # what is called with the inputs, the parameters, the outputs, own memory and the numbers
    number: Any  # what makes a scalar of a parameter
    numbers: tuple[int, ...] = ()  # what the kernel is told of how operands lie
    own: tuple[int, ...] = ()  # bytes of memory that it is given for itself, after all arrays
    arrays: bool = False  # it is given arrays, not their addresses

    def __call__(self, inputs: Sequence[Any], values: Sequence[float], outputs: Sequence[Any]) -> None:
        """Launch the kernel on CuPy's current device."""
        if not self.arrays:
            inputs, outputs = [a.data.ptr for a in inputs], [a.data.ptr for a in outputs]
        self.launch(*inputs, *map(self.number, values), *outputs, *self.numbers)


def blocks_of(function: Any, blocks: tuple[int, ...], shared: int = 0) -> Any:
    """Return what launches a function of a module, by blocks of :data:`.layout.BLOCK` threads; `shared` is in bytes."""
    return lambda *arguments: function(blocks, (BLOCK,), arguments, shared_mem=shared)


def scalar(ctype: str) -> Any:
    """Return what makes a kernel's scalar of a number; integers wrap around, as they do in arrays."""
    dtype = np.dtype(text.SCALAR[ctype])
    return dtype.type if dtype.kind == "f" else lambda number: np.asarray(number).astype(dtype)[()]


def _strides(array: Any, shape: tuple[int, ...]) -> list[int]:
    """Return the strides, in elements, of an array that is seen with a shape to which it broadcasts."""
    size, steps = array.dtype.itemsize, [0] * (len(shape) - array.ndim)
    return steps + [0 if n == 1 else step // size for n, step in zip(array.shape, array.strides, strict=True)]


def _elementwise(made: text.ElementwiseText, keys: frozenset, inputs: Sequence[Any], outputs: Sequence[Any],
                 place: int) -> Plan:  # fmt: skip
    """Return the plan of a formula: by words where many elements lie so that these can be read and written at once."""
    number = scalar(made.ctype)
    if outputs[0].size >= MANY:
        shape, arrays = outputs[0].shape, (*inputs, *outputs)
        strides = [[0] * len(shape) if k in keys else _strides(a, shape) for k, a in enumerate(arrays)]
        aligned = all(a.data.ptr % WORD == 0 for a in arrays)
        layout, numbers, blocks = lay(shape, strides, max(a.dtype.itemsize for a in arrays if a.size > 1), aligned, bool(keys))
        if not any(way.endswith("s") for way in layout.ways):
            kernel = compiled.elementwise(made.by_words(layout), place)
            return Plan(partial(kernel, size=blocks * BLOCK, block_size=BLOCK), number, tuple(numbers))
        if len(inputs) == len(outputs) == 1 and not keys:
            dims, (source, target) = collapse(shape, strides)
            found = tiled(dims, source, target)
            if found is not None:
                tiles, numbers, blocks = found
                kernel = compiled.elementwise(made.by_tiles(tiles), place)
                return Plan(partial(kernel, size=blocks * BLOCK, block_size=BLOCK), number, tuple(numbers))
    kernel = compiled.elementwise(made.plain(), place)
    halves = [t in text.ARRAY for t in (*made.in_types, *[False] * len(made.params), *made.out_types)]
    return Plan(_with_bits(kernel, halves) if any(halves) else kernel, number, arrays=True)


def _with_bits(kernel: Any, halves: Sequence[bool]) -> Any:
    """Return what launches a kernel that takes some arrays as numbers of 16 bits."""

    def launch(*operands: Any) -> None:
        kernel(*[a.view(np.uint16) if half else a for a, half in zip(operands, halves, strict=True)])

    return launch


def code_of(array: Any) -> int:
    """Return the type code of a CuPy array."""
    return dtypes.code_of(array.dtype)


Ready = tuple[Plan, Sequence[Any], Sequence[float], Sequence[Any]]  # a kernel, its inputs, values and outputs


def run(found: Ready | None, place: int) -> Plan | None:
    """Launch what was found; return it."""
    if found is None:
        return None
    plan, *operands = found
    with device.using(place):
        plan(*operands)
    return plan


def formula(roots: Sequence[Any], params: Sequence[str], values: Sequence[float], inputs: Sequence[Any],
            outputs: Sequence[Any], compute: int, reqs: Sequence[int], name: str) -> Ready | None:  # fmt: skip
    """Return what evaluates formulas into outputs of one shape, to which the inputs broadcast; None when nothing is to do.

    All are CuPy arrays of one device.  An output may be the very memory of an input of its layout; otherwise they must not
    overlap.
    """
    if not any(reqs) or outputs[0].size == 0:
        return None
    written = [k for k, req in enumerate(reqs) if req != text.REQ_NULL]
    roots, outputs = tuple(roots[k] for k in written), [outputs[k] for k in written]
    reqs = tuple(text.REQ_ADD if reqs[k] == text.REQ_ADD else text.REQ_WRITE for k in written)
    place, arrays = device.id_of(outputs[0]), (*inputs, *outputs)
    # the numbers of expressions are never used twice, so they may outlive them in a key
    key = (tuple([r.uid for r in roots]), tuple(params), compute, reqs, name, place, len(inputs),
           *[(a.dtype, a.shape, a.strides, a.data.ptr % WORD == 0) for a in arrays])  # fmt: skip
    plan = _plans.get(key)
    if plan is None:
        made = text.ElementwiseText(roots, tuple(params), tuple(map(code_of, inputs)), tuple(map(code_of, outputs)),
                                    compute, reqs, name)  # fmt: skip
        with device.using(place):
            plan = keep(_plans, key, _elementwise(made, frozenset(keys_of(roots)), inputs, outputs, place))
    return plan, inputs, values, outputs


def copied(source: Any, target: Any, req: int) -> Ready | None:
    """Return what copies (or adds) a CuPy array into another of the same shape that it does not overlap, converting types."""
    made = text.of_copy(code_of(source), code_of(target), req)
    return formula(made.roots, (), (), [source], [target], made.compute, (req,), "copy")


def reduction(op: Any, attrs: Any, source: Any, axes: tuple[int, ...], result: Any) -> list[Ready]:
    """Return what reduces a CuPy array over axes, into one in C order of the type and the size of the result.

    The value of each kernel is the number of elements of a result.
    """
    if result.size == 0:
        return []
    made = reductions.of_reduction(op, attrs, code_of(source), code_of(result))
    place = device.id_of(source)
    each = prod([source.shape[i] for i in axes])
    if source.size == 0 or not axes:  # nothing to combine: only the formulas are left
        result = result.reshape([d for i, d in enumerate(source.shape) if i not in axes])
        found = _uncombined(made, source, result, each)
        return [] if found is None else [found]
    last = None if made.final_root is None else made.final_root.uid
    key = (made.map_root.uid, made.combine.name, last, made.in_type, made.out_type,
           made.compute, made.name, axes, place, source.shape, source.strides)  # fmt: skip
    with device.using(place):
        passes = _plans.get(key) or keep(_plans, key, _reduction(made, source, axes, place))
        if len(passes) == 1:
            return [(passes[0], [source], (each,), [result])]
        results, each_has = passes[1].numbers[:2]
        parts = device.require(place).empty(results * each_has, text.SCALAR[made.reduce_type])
    return [(passes[0], [source], (each,), [parts]), (passes[1], [parts], (each,), [result])]


def _reduction(made: reductions.ReductionText, source: Any, axes: tuple[int, ...], place: int) -> list[Plan]:
    layout, passes = reductions.lay_rows(source.shape, _strides(source, source.shape), axes)
    module = compiled.module(made.kernel(layout), place)
    names = ["whole"] if len(passes) == 1 else ["parts", "rest"]
    functions = [module.get_function(f"{made.kernel_name}_{name}") for name in names]
    return [Plan(blocks_of(function, one.blocks), scalar(made.ctype), tuple(one.numbers))
            for function, one in zip(functions, passes, strict=True)]  # fmt: skip


def _uncombined(made: reductions.ReductionText, source: Any, result: Any, each: int) -> Ready | None:
    """Return what writes a reduction that combines no elements, or each alone."""
    from ..formula import const, input_, substitute

    root, inputs = (made.map_root, [source]) if each else (const(made.identity_value), [])
    if made.final_root is not None:
        (root,) = substitute([made.final_root], {input_(0): root, input_(1): const(each)})
    return formula((root,), (), (), inputs, [result], made.compute, (text.REQ_WRITE,), made.name)
