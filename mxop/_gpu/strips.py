"""Strips on a GPU: a block of threads takes some rows through all stages, in one kernel.

What only later stages read stays with the block: a number of a row in the registers of the threads that share it, rows in
shared memory, or, where they are too long for that, in memory of their own.  What several stages read is kept in the shared
memory that is left: each thread reads what it has put there itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from ..formula import input_, param, statements, walk
from ..opdef import contiguous_strides
from ..opdef.combine import COMBINES
from ..support import dtypes
from . import compiled, device
from .launch import Plan, blocks_of, scalar
from .layout import BLOCK, SHORT_INDEX, apart, collapse, place_of, steps_of, told, way_of
from .reductions import AT_ONCE, identity_of, log2, total_type
from .text import STORAGE, identifier, prologue, read

SHARED = 48 << 10  # bytes that every GPU gives a block

Shape = tuple[int, ...]


@dataclass
class Operand:
    """An array, or what is local, as one stage reads or writes it.

    Attributes
    ----------
    code : int
        Type of the elements.
    name : str
        The pointer to the row's elements, or of a number of the row the variable.
    way : str or None
        How a row's elements are gone through; None for a number of the row.
    copy : str
        The pointer to a copy of the row in shared memory; "" if there is none.
    copied : bool
        An earlier stage has made the copy.
    """

    code: int
    name: str
    way: str | None = None
    steps: list[str] = field(default_factory=list)
    copy: str = ""
    copied: bool = False

    def at(self, parts: Sequence[str]) -> str:
        """Return the text of the element of these indices."""
        return self.name if self.way is None else f"{self.name}[{place_of(parts, self.steps)}]"

    def read(self, parts: Sequence[str]) -> str:
        """Return the text of element ``k`` of these indices, which makes or reads the copy where there is one."""
        if self.copied:
            return f"{self.copy}[k]"
        return f"{self.copy}[k] = {self.at(parts)}" if self.copy else self.at(parts)


class Strip:
    """A strip for arrays that lie in a certain way: its text, and the numbers that its kernel is told.

    Parameters
    ----------
    rows : int
    locals_ : list of (shape, type)
    stages : list of (roots, inputs, outputs, combine, shape)
        As :func:`mxop._core.row_kernels.prepare_row_kernel` takes them.
    arrays : list of (shape, strides, type)
        Strides count elements.
    values : sequence of str
        Names of the formulas' parameters, which the kernel is given after the arrays.
    """

    def __init__(self, rows: int, locals_: Sequence[tuple[Shape, int]], stages: Sequence[tuple],
                 arrays: Sequence[tuple[Shape, Shape, int]], values: Sequence[str] = ()):  # fmt: skip
        self.rows, self.arrays, self.locals = rows, arrays, locals_
        self.values = {param(name): f"s{k}" for k, name in enumerate(values)}
        self.n = next(k for k in range(len(stages[0][4]) + 1) if prod(stages[0][4][:k]) == rows)
        inner = max(prod(shape[self.n :]) for *_, shape in stages)
        self.lanes_log2 = min(log2(BLOCK), log2(-(-inner // AT_ONCE)))
        self.kept = [k for k, (shape, _) in enumerate(locals_) if prod(shape[self.n :]) > 1]  # whole rows
        self.row_bytes = {k: prod(locals_[k][0][self.n :]) * dtypes.SIZES[locals_[k][1]] + 15 & ~15 for k in self.kept}
        while sum(self.row_bytes.values()) * self.rows_at_once > SHARED and self.rows_at_once > 1:
            self.lanes_log2 += 1
        self.in_memory = sum(self.row_bytes.values()) > SHARED
        self.copies, self.made = self._read_again(stages), set()
        self.numbers: list[int] = [rows, self.lanes_log2]
        self.parameters = ["mx_index rows", "int lanes_log2"]
        self.name = _named(stages)
        self.text = self._written(stages)

    @property
    def rows_at_once(self) -> int:
        """Rows of a block."""
        return BLOCK >> self.lanes_log2

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block."""
        kept = 0 if self.in_memory else sum(self.row_bytes.values())
        return (kept + sum(self.copies.values())) * self.rows_at_once

    def _read_again(self, stages: Sequence[tuple]) -> dict[int, int]:
        """Return the arrays whose rows several stages read, for which there is shared memory, and the bytes of a row."""
        room = SHARED // self.rows_at_once - (0 if self.in_memory else sum(self.row_bytes.values()))
        written = {k for _, _, outputs, *_ in stages for k in outputs}
        found = {}
        for k, (shape, _, code) in enumerate(self.arrays):
            row, nbytes = shape[self.n :], prod(shape[self.n :]) * dtypes.SIZES[code] + 15 & ~15
            readers = [at for _, inputs, _, _, at in stages if k in inputs and at[self.n :] == row]
            own = prod(shape[: self.n]) == self.rows and prod(row) > 1 and k not in written
            if own and len(readers) > 1 and nbytes <= room:
                found[k] = nbytes
                room -= nbytes
        return found

    def _tell(self, kind: str, name: str, value: int) -> None:
        self.parameters.append(f"{kind} {name}")
        self.numbers.append(value)

    def _tell_steps(self, names: Sequence[str], way: str, steps: Sequence[int]) -> None:
        """Let the kernel be told the strides of an operand that it does not know."""
        for name, step in zip([n for n in names if n not in ("", "1")], told(way, steps), strict=True):
            self._tell("long long", name, step)

    def _strides(self, number: int) -> list[int]:
        """Return the strides of an array or a local, 0 where it has one element for all."""
        shape, strides = self.arrays[number][:2] if number >= 0 else (self.locals[~number][0],) * 2
        if number < 0:  # within its row
            strides = (0,) * self.n + contiguous_strides(shape[self.n :])
        return [0 if d == 1 else s for d, s in zip(shape, strides, strict=True)]

    # ---- text -------------------------------------------------------------------------------------------------------
    def _written(self, stages: Sequence[tuple]) -> str:
        functions, body = [], self._rows(stages[0][4][: self.n])
        for s, stage in enumerate(stages):
            function, lines = self._stage(s, *stage)
            functions.append(function)
            body += lines
        memory = [f"char *own{k}" for k in self.kept] if self.in_memory else []
        pointers = [f"{STORAGE[code][0]} *p{k}" for k, (*_, code) in enumerate(self.arrays)]
        longest = max(prod(shape) for *_, shape in stages)
        index = "unsigned long long" if longest >= SHORT_INDEX else "unsigned int"
        text, lines = "".join(functions), "\n    ".join(body)
        used = text + lines
        arguments = ", ".join([*pointers, *(f"double {s}" for s in self.values.values()), *memory, *self.parameters])
        head = f'extern "C" __global__ void __launch_bounds__({BLOCK}) {self.name}({arguments})'
        return f"{prologue(used)}typedef {index} mx_index;\n{DYNAMIC}{text}{head}\n{{\n    {lines}\n}}\n"

    def _rows(self, shape: Shape) -> list[str]:
        """Return the lines that find the thread's row, and where its elements begin."""
        strides = [self._strides(k)[: self.n] for k in range(len(self.arrays))]
        dims, steps = collapse(shape, strides)
        for d, size in enumerate(dims[1:], 1):
            self._tell("mx_index", f"n{d}", size)
        lines, parts = apart("row", [f"n{d}" for d in range(1, len(dims))], "row")
        found = [
            f"__shared__ double room[{BLOCK // 32}];",
            f"const int lanes = 1 << lanes_log2, at_once = {BLOCK} >> lanes_log2;",
            "const int mine = threadIdx.x >> lanes_log2, lane = threadIdx.x & (lanes - 1);",
            "const mx_index row = blockIdx.x * (mx_index)at_once + mine;",
            "const bool live = row < rows;",
            *lines,
        ]
        for k, mine in enumerate(steps):
            way = "".join("0" if step == 0 else "s" for step in mine)
            names = steps_of(way, f"t{k}")
            self._tell_steps(names, way, mine)
            found.append(f"{STORAGE[self.arrays[k][2]][0]} *const q{k} = p{k} + ({place_of(parts, names)});")
        found += [f"{STORAGE[code][0]} l{k};" for k, (_, code) in enumerate(self.locals) if k not in self.kept]
        rows = {f"l{k}": (self.locals[k][1], self.row_bytes[k]) for k in self.kept}
        if self.in_memory:
            found += [self._row(name, code, size, f"own{name[1:]} + row") for name, (code, size) in rows.items()]
            rows = {}
        rows |= {f"c{k}": (self.arrays[k][2], size) for k, size in self.copies.items()}
        offset = 0
        for name, (code, size) in rows.items():
            self._tell("int", f"o_{name}", offset)
            found.append(self._row(name, code, size, f"(char *)mx_shared + o_{name} + mine"))
            offset += size * self.rows_at_once
        return found

    def _row(self, name: str, code: int, size: int, start: str) -> str:
        """Return the declaration of the row of a block's thread; sizes are told, so other lengths have the same text."""
        self._tell("long long", f"r_{name}", size)
        return f"{STORAGE[code][0]} *const {name} = ({STORAGE[code][0]} *)({start} * r_{name});"

    def _stage(self, s: int, roots: Sequence[Any], inputs: Sequence[int], outputs: Sequence[int], combine: str | None,
               shape: Shape) -> tuple[str, list[str]]:  # fmt: skip
        """Return the function of a stage's elements, and the lines that run it."""
        numbers = [*inputs, *outputs]
        codes = [self.arrays[k][2] if k >= 0 else self.locals[~k][1] for k in numbers]
        ctype = "double" if dtypes.FLOAT64 in codes else "float"
        dims, steps = collapse(shape[self.n :], [self._strides(k)[self.n :] for k in numbers])
        operands = []
        for j, (k, code, mine) in enumerate(zip(numbers, codes, steps, strict=True)):
            if k < 0 and ~k not in self.kept:
                operands.append(Operand(code, f"l{~k}"))
                continue
            way = way_of(mine)
            names = steps_of(way, f"w{s}_{j}")
            self._tell_steps(names, way, mine)
            operands.append(Operand(code, f"q{k}" if k >= 0 else f"l{~k}", way, names))
            if k in self.copies and shape[self.n :] == self.arrays[k][0][self.n :]:
                operands[-1].copy, operands[-1].copied = f"c{k}", k in self.made
                self.made.add(k)
        for d, size in enumerate(dims[1:], 1):
            self._tell("mx_index", f"m{s}_{d}", size)
        each = prod(dims)
        self._tell("mx_index", f"e{s}", each)
        n_in = len(inputs)
        lines, parts = apart("k", [f"m{s}_{d}" for d in range(1, len(dims))], "k")
        read_, written = operands[:n_in], operands[n_in:]
        if combine is not None:
            return self._function(s, roots, read_, [], ctype), self._combined(
                s, combine, read_, written[0], ctype, lines, parts
            )
        run = self._once if each == 1 else self._each
        return self._function(s, roots, read_, written, ctype), run(s, read_, written, lines, parts)

    def _function(self, s: int, roots: Sequence[Any], reads: Sequence[Operand], written: Sequence[Operand], ctype: str) -> str:
        given = [f"const {STORAGE[o.code][0]} &x{j}" for j, o in enumerate(reads)]
        given += [f"{STORAGE[o.code][0]} &y{j}" for j, o in enumerate(written)]
        given += [f"{ctype} {value}" for value in self.values.values()]
        names = {input_(j): f"a{j}" for j in range(len(reads))} | self.values
        body, values = statements(list(roots), names, ctype, "cuda")
        lines = [f"const {ctype} a{j} = {read(o.code, f'x{j}', ctype)}; (void)a{j};" for j, o in enumerate(reads)] + body
        lines += [f"y{j} = {STORAGE[o.code][2].format(v)};" for j, (o, v) in enumerate(zip(written, values, strict=False))]
        lines += [] if written else [f"return {values[0]};"]
        text = "\n    ".join(lines)
        head = f"__device__ __forceinline__ {'void' if written else ctype} mx_stage{s}({', '.join(given)})"
        return f"{head}\n{{\n    {text}\n}}\n"

    def _loop(self, s: int, reads: Sequence[Operand], lines: list[str], parts: list[str], use: list[str]) -> list[str]:
        """Return a loop over a row's elements: some are read at once, then used, as ``x0[u]`` and on."""
        at = ["const mx_index k = first + u * lanes;", f"if (k < e{s}) {{"]
        head = ["#pragma unroll", f"for (int u = 0; u < {AT_ONCE}; u++) {{"]
        rows = [(j, o) for j, o in enumerate(reads) if o.way is not None]
        found = [f"for (mx_index first = lane; live && first < e{s}; first += {AT_ONCE} * lanes) {{"]
        found += [f"    {STORAGE[o.code][0]} x{j}[{AT_ONCE}];" for j, o in rows]
        if rows:
            found += [f"    {line}" for line in (*head, *at, *lines)]
            found += [f"        x{j}[u] = {o.read(parts)};" for j, o in rows] + ["    }}"]
        found += [f"    {line}" for line in (*head, *at, *lines, *use)] + ["    }}", "}"]
        return found

    @staticmethod
    def _arguments(reads: Sequence[Operand]) -> list[str]:
        return [o.name if o.way is None else f"x{j}[u]" for j, o in enumerate(reads)]

    def _combined(self, s: int, combine: str, reads: Sequence[Operand], result: Operand, ctype: str, lines: list[str],
                  parts: list[str]) -> list[str]:  # fmt: skip
        """Return the lines of a reduction, whose result all threads of the row get."""
        made = COMBINES[combine]
        compute = dtypes.FLOAT64 if ctype == "double" else dtypes.FLOAT32
        total, start = total_type(combine, compute), identity_of(combine, compute)
        value = f"mx_stage{s}({', '.join([*self._arguments(reads), *self.values.values()])})"
        use = [f"const {total} b = ({total}){value};", f"a = {made.cuda};"]
        return [
            "{",
            *(f"    {line}" for line in (
                f"{total} a = {start};",
                *self._loop(s, reads, lines, parts, use),
                "for (int step = 16; step > 0; step /= 2)",
                "    if (step < lanes) {",
                f"        const {total} b = __shfl_xor_sync(0xffffffffu, a, step);",
                f"        a = {made.cuda};",
                "    }",
                "if (lanes > 32) {  // several warps share a row",
                "    if (threadIdx.x % 32 == 0)",
                "        room[threadIdx.x / 32] = a;",
                "    __syncthreads();",
                "    const int first = (threadIdx.x - lane) / 32;",
                f"    a = ({total})room[first];",
                "    for (int warp = 1; warp < lanes / 32; warp++) {",
                f"        const {total} b = ({total})room[first + warp];",
                f"        a = {made.cuda};",
                "    }",
                "    __syncthreads();",
                "}",
                f"{result.name} = {STORAGE[result.code][2].format(f'({total})a')};",
            )),
            "}",
        ]  # fmt: skip

    def _each(self, s: int, reads: Sequence[Operand], written: Sequence[Operand], lines: list[str],
              parts: list[str]) -> list[str]:  # fmt: skip
        """Return the lines of formulas on all elements of the row."""
        use = [f"{STORAGE[o.code][0]} y{j};" for j, o in enumerate(written)]
        results = [f"y{j}" for j in range(len(written))]
        use += [f"mx_stage{s}({', '.join([*self._arguments(reads), *results, *self.values.values()])});"]
        use += [f"{o.at(parts)} = y{j};" for j, o in enumerate(written)]
        # what other threads wrote, of the row or of a part of it, is there for the stages that follow
        return [*self._loop(s, reads, lines, parts, use), "__syncthreads();"]

    def _once(self, s: int, reads: Sequence[Operand], written: Sequence[Operand], lines: list[str],
              parts: list[str]) -> list[str]:  # fmt: skip
        """Return the lines of formulas on numbers of the row, which each thread computes, and writes for itself to read."""
        zero = ["0"] * len(parts)
        found = [f"{STORAGE[o.code][0]} y{j};" for j, o in enumerate(written)]
        given = [o.at(zero) for o in reads] + [f"y{j}" for j in range(len(written))] + [*self.values.values()]
        found += [f"mx_stage{s}({', '.join(given)});"]
        found += [f"{o.at(zero)} = y{j};" for j, o in enumerate(written)]
        return ["if (live) {", *(f"    {line}" for line in found), "}"]


def _named(stages: Sequence[tuple]) -> str:
    """Return the name of a kernel, as profilers show it: the reductions and functions of its stages, without arithmetic."""
    found: dict[str, None] = {}
    for roots, _, _, combine, _ in stages:
        found |= dict.fromkeys(n.label for n in walk(roots) if n.kind == "call" and n.label not in ("add", "sub", "mul", "neg"))
        found |= {} if combine is None else {"sum" if combine == "add" else combine: None}
    return "_".join(["mxop_rows", *[identifier(name).removeprefix("mxop_") for name in found][:6]])


#: Shared memory, whose size is given when a kernel is launched; the host, which runs the text in tests, has what any needs.
DYNAMIC = f"""\
#ifdef __CUDACC__
extern __shared__ unsigned long long mx_shared[];
#else
static unsigned long long mx_shared[{SHARED // 8}];
#endif
"""


def prepared(rows: int, locals_: Sequence[tuple[Shape, int]], stages: Sequence[tuple], arrays: Sequence[Any],
             numbers: dict[str, float]) -> Any:  # fmt: skip
    """Return the prepared call of a strip, or None; see :func:`mxop._core.row_kernels.prepare_row_kernel`."""
    from .._core import transfer
    from .._core.launched import LaunchCall

    written = {number for _, _, outputs, *_ in stages for number in outputs if number >= 0}
    if any(transfer.overlaps(arrays[k], a) for k in written for a in arrays if a is not arrays[k]):
        return None
    place = arrays[0]._device.number
    strip = Strip(rows, locals_, stages, [(a.shape, a._strides, a.dtype_code) for a in arrays], tuple(numbers))
    own = tuple([rows * size for size in strip.row_bytes.values()]) if strip.in_memory else ()
    with device.using(place):
        function = compiled.module(strip.text, place).get_function(strip.name)
    blocks = -(-rows // strip.rows_at_once)
    launch = blocks_of(function, (blocks,), strip.shared)
    plan = Plan(launch, scalar("double"), tuple(strip.numbers), own)
    return LaunchCall(plan, [a._memory for a in arrays], tuple(numbers.values()), (), arrays[0]._device)


__all__ = ["Strip", "prepared"]
