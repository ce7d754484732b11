"""Reductions as CUDA text: kernels in which the threads of a block share the elements of results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

from ..formula import Expr, input_
from ..formula.expr import call
from ..opdef.combine import COMBINES
from ..support import dtypes
from .layout import BLOCK, SHORT_INDEX, apart, collapse, place_of
from .text import COMPUTE, LIMITS, STORAGE, KernelText, prologue, read

#: Elements that a thread reads before it combines the first; blocks that the device is filled with, whatever device it is, so
#: that sums are the same on all.
AT_ONCE, FILLED = 4, 1024


class RowLayout(NamedTuple):
    """What the text of a reduction depends on.

    Attributes
    ----------
    kept, reduced : int
        Number of dimensions of the results, and of the elements of each.
    across : bool
        Results that follow each other are made of elements that do.
    wide : bool
        Indices need 64 bits.
    """

    kept: int
    reduced: int
    across: bool
    wide: bool


class Pass(NamedTuple):
    """The numbers of one of a reduction's kernels, and its blocks."""

    numbers: list[int]
    blocks: tuple[int, int]


def _lies(at: str, size: str, step: str, ndim: int) -> tuple[str, str]:
    """Return the lines that take index `at` apart, and where its element lies."""
    lines, parts = apart(at, [f"{size}{d}" for d in range(1, ndim)], f"{size}_")
    return " ".join(lines), place_of(parts, [f"{step}{d}" for d in range(ndim)])


def log2(n: int) -> int:
    """Return the logarithm of the least power of two that is not less."""
    return max(n - 1, 0).bit_length()


def _shared(results: int, each: int, across: bool) -> tuple[int, int, int]:
    """Return how many parts there are, how long one is, and the logarithm of the threads that share a result."""
    most = log2(BLOCK)
    lanes = most - min(log2(results), 5) if across else most
    lanes = min(lanes, log2(-(-each // AT_ONCE)))
    rows = -(-results // (BLOCK >> lanes))
    parts = max(min(FILLED // rows, each // (AT_ONCE * 4 << lanes)), 1)
    part = -(-each // parts)
    return -(-each // part), part, lanes


def lay_rows(shape: Sequence[int], strides: Sequence[int], axes: Sequence[int]) -> tuple[RowLayout, list[Pass]]:
    """Return how a reduction goes through data, and the passes: one, or parts and then the rest.

    Parameters
    ----------
    shape, strides : sequence of int
        Of the data; strides count elements.
    axes : sequence of int
        What is reduced.
    """

    def of(wanted: Sequence[int]) -> tuple[list[int], list[int]]:
        dims, (steps,) = collapse([shape[k] for k in wanted], [[strides[k] for k in wanted]])
        return dims, steps

    kept, kept_steps = of([k for k in range(len(shape)) if k not in axes])
    reduced, steps = of(list(axes))
    results, each = prod(kept), prod(reduced)
    across = results > 1 and abs(kept_steps[-1]) < abs(steps[-1])
    parts, part, lanes = _shared(results, each, across)
    reach = sum(abs(s) * n for n, s in zip([*kept, *reduced], [*kept_steps, *steps], strict=True))
    # elements that broadcasting repeats are counted, too
    layout = RowLayout(len(kept), len(reduced), across, max(reach, results * max(each, parts)) >= SHORT_INDEX)
    numbers = [results, each, part, lanes, *kept[1:], *kept_steps, *reduced[1:], *steps]
    passes = [Pass(numbers, (-(-results // (BLOCK >> lanes)), parts))]
    if parts > 1:
        lanes = min(log2(parts), log2(BLOCK))
        passes.append(Pass([results, parts, parts, lanes, 1, results], (-(-results // (BLOCK >> lanes)), 1)))
    return layout, passes


def total_type(combine: str, compute: int) -> str:
    """Return C's name of the type in which values of a compute type are combined."""
    if combine in ("max", "min"):
        return COMPUTE[compute]
    return "double" if compute in dtypes.FLOATS else "long long"


def identity_of(combine: str, compute: int) -> str:
    """Return C's text of what combining nothing gives."""
    if combine in ("add", "mul", "hypot"):
        return "1" if combine == "mul" else "0"
    if compute in dtypes.FLOATS:
        return "-INFINITY" if combine == "max" else "INFINITY"
    return LIMITS[compute][combine == "min"]


@dataclass(frozen=True)
class ReductionText(KernelText):
    """A kernel that combines mapped elements along axes.

    Sums and products of floating-point data are accumulated in float64 and those of integers in int64, as on the CPU.

    Parameters
    ----------
    map_root : Expr
        Formula of an element, over ``input_(0)``.
    combine : Combine
        See :mod:`mxop.opdef.combine`.
    final_root : Expr or None
        Formula of a combined value and the number of elements, ``input_(0)`` and ``input_(1)``.
    in_type, out_type, compute : int
        Type codes of the data, the result, and of the formulas.
    name : str
        Name of the operator.
    """

    map_root: Expr
    combine: Any
    final_root: Expr | None
    in_type: int
    out_type: int
    compute: int
    name: str = "reduction"

    @property
    def reduce_type(self) -> str:
        """C's name of the type in which values are combined."""
        return total_type(self.combine.name, self.compute)

    @property
    def identity(self) -> str:
        """C's text of the value of an empty reduction."""
        return identity_of(self.combine.name, self.compute)

    @property
    def identity_value(self) -> float | int:
        """The value of an empty reduction in the compute type."""
        name = self.combine.name
        if name in ("add", "mul", "hypot") or self.compute in dtypes.FLOATS:
            return self.combine.identity if self.compute in dtypes.FLOATS else int(self.combine.identity)
        bits = 8 * dtypes.SIZES[self.compute]
        low, high = (0, 2**bits - 1) if self.compute == dtypes.UINT8 else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return high if name == "min" else low

    @cached_property
    def functions(self) -> str:
        """The definitions of ``mxop_map`` and ``mxop_final``."""
        data, result = STORAGE[self.in_type][0], STORAGE[self.out_type][0]
        map_lines, (mapped,) = self._statements([self.map_root], {input_(0): "a0"})
        lines = [f"const {self.ctype} a0 = {read(self.in_type, 'x', self.ctype)};", *map_lines, f"return {mapped};"]
        text = f"__device__ inline {self.ctype} mxop_map(const {data} &x)\n{{\n    " + "\n    ".join(lines) + "\n}\n"
        last = input_(0) if self.final_root is None else self.final_root
        final_lines, (value,) = self._statements([last], {input_(0): "a0", input_(1): "count"})
        value = STORAGE[self.out_type][2].format(value)
        lines = [f"const {self.ctype} a0 = ({self.ctype})total;", *final_lines, "(void)count;", f"return {value};"]
        head = f"__device__ inline {result} mxop_final({self.reduce_type} total, {self.ctype} count)\n"
        return text + head + "{\n    " + "\n    ".join(lines) + "\n}\n"

    def kernel(self, layout: RowLayout) -> str:
        """Return a source of three kernels, for data that lie so: ``whole`` makes results; or ``parts`` makes what parts of the
        elements of each come to, and ``rest`` results of these.

        Their arguments are a pointer to the data, the number of elements of a result, for the formulas, a pointer to what is
        made, and the numbers that :func:`lay_rows` gives.
        """
        data, result, index = STORAGE[self.in_type][0], STORAGE[self.out_type][0], "unsigned int"
        index = "unsigned long long" if layout.wide else index
        apart = RowLayout(1, 1, True, layout.wide)
        mapped, final = "mxop_map(data[at])", "mxop_final(total, count)"
        return (
            prologue(self.functions + self.combine.cuda + self.identity, (data, result))
            + f"typedef {index} mx_index;\ntypedef {self.reduce_type} mx_total;\n"
            + self.functions
            + self._pass("whole", layout, data, mapped, result, "made[result]", final)
            + self._pass("parts", layout, data, mapped, "mx_total", "made[blockIdx.y * (long long)results + result]", "total")
            + self._pass("rest", apart, "mx_total", "data[at]", result, "made[result]", final)
        )

    def _pass(self, name: str, layout: RowLayout, data: str, value: str, made: str, place: str, final: str) -> str:
        """Return a kernel that goes once through data; see :meth:`kernel`."""
        kept = [f"mx_index n{d}" for d in range(1, layout.kept)] + [f"long long t{d}" for d in range(layout.kept)]
        inner = [f"mx_index m{d}" for d in range(1, layout.reduced)] + [f"long long w{d}" for d in range(layout.reduced)]
        arguments = [f"const {data} *data", f"{self.ctype} count", f"{made} *made", "mx_index results", "mx_index each",
                     "mx_index part", "int lanes_log2", *kept, *inner]  # fmt: skip
        start, row = _lies("result", "n", "t", layout.kept), _lies("r", "m", "w", layout.reduced)
        across = "threadIdx.x >> lanes_log2, lane = threadIdx.x & (lanes - 1)"
        if layout.across:  # neighbours have neighbouring results
            across = "threadIdx.x & (rows - 1), lane = threadIdx.x / rows"
        next_ = "s * rows" if layout.across else "s"
        return f"""\
extern "C" __global__ void __launch_bounds__({BLOCK}) {self.kernel_name}_{name}({", ".join(arguments)})
{{
    __shared__ mx_total room[{BLOCK}];
    const int lanes = 1 << lanes_log2, rows = {BLOCK} >> lanes_log2;
    const int row = {across};
    const mx_index result = blockIdx.x * (mx_index)rows + row;
    mx_total a = (mx_total)({self.identity});
    if (result < results) {{
        {start[0]}
        const {data} *from = data + ({start[1]});
        const mx_index first = blockIdx.y * part, end = each - first < part ? each : first + part;
        mx_index at_once = first + lane;
        for (; at_once + {AT_ONCE - 1} * lanes < end; at_once += {AT_ONCE} * lanes) {{
            {data} several[{AT_ONCE}];
            #pragma unroll
            for (int k = 0; k < {AT_ONCE}; k++) {{
                const mx_index r = at_once + k * lanes;
                {row[0]}
                several[k] = from[{row[1]}];
            }}
            #pragma unroll
            for (int k = 0; k < {AT_ONCE}; k++) {{
                const mx_total b = (mx_total){value.replace("data[at]", "several[k]")};
                a = {self.combine.cuda};
            }}
        }}
        for (mx_index r = at_once; r < end; r += lanes) {{
            {row[0]}
            const mx_total b = (mx_total){value.replace("data[at]", f"from[{row[1]}]")};
            a = {self.combine.cuda};
        }}
    }}
    room[threadIdx.x] = a;
    __syncthreads();
    for (int s = lanes / 2; s > 0; s /= 2) {{
        if (lane < s) {{
            const mx_total b = room[threadIdx.x + {next_}];
            a = {self.combine.cuda};
            room[threadIdx.x] = a;
        }}
        __syncthreads();
    }}
    if (lane == 0 && result < results) {{
        const mx_total total = a;
        (void)count;
        {place} = {final};
    }}
}}
"""

    def standalone(self, name: str | None = None) -> str:
        """Return a plain kernel, one thread for each result: data of shape (rows, columns), count, results, shape."""
        name = name or self.kernel_name
        data, result = STORAGE[self.in_type][0], STORAGE[self.out_type][0]
        functions = self.functions.replace("mxop_map", f"{name}_map").replace("mxop_final", f"{name}_final")
        return functions + (
            f'extern "C" __global__ void {name}(const {data} *data, {self.ctype} count, {result} *results,\n'
            f"    long long rows, long long columns)\n{{\n"
            f"    const long long step = (long long)gridDim.x * blockDim.x;\n"
            f"    for (long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += step) {{\n"
            f"        {self.reduce_type} a = ({self.reduce_type})({self.identity});\n"
            f"        for (long long k = 0; k < columns; k++) {{\n"
            f"            const {self.reduce_type} b = ({self.reduce_type}){name}_map(data[row * columns + k]);\n"
            f"            a = {self.combine.cuda};\n        }}\n"
            f"        results[row] = {name}_final(a, count);\n    }}\n}}\n"
        )


def of_reduction(op, attrs, in_type: int, out_type: int) -> ReductionText:
    """Return the text of a call of a reduction operator."""
    map_, final = op.formulas(attrs)
    compute = dtypes.FLOAT64 if op.wide else map_.compute_type(in_type)
    if final is not None and compute not in dtypes.FLOATS and not final.integer:
        compute = dtypes.FLOAT64
    root, combine, last = map_.roots[0], op.combine_of(attrs), None if final is None else final.roots[0]
    if combine.name == "hypot" and in_type != dtypes.FLOAT64:  # squares of narrower types stay in range, and add up exactly
        root, combine, last = call("square", root), COMBINES["add"], call("sqrt", input_(0) if last is None else last)
    return ReductionText(root, combine, last, in_type, out_type, compute, op.name)


__all__ = ["Pass", "ReductionText", "RowLayout", "lay_rows", "of_reduction"]
