"""Kernels on the GPU: one CUDA kernel for each statement of the function's own block.

A loop whose iterations are independent runs on the grid, together with such loops directly inside it; ``parallel`` and
``vectorize`` promise that, of ``range`` and ``grid`` it is found out, ``serial`` and ``reduce`` run in order.  Everything
else is done by one thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ..._gpu import device, preamble
from ..._gpu.compiled import module as compile_module
from ..._gpu.text import COMPUTE, STORAGE
from ...formula import Expr
from ...formula.expr import INPUT
from ...formula.text import number
from ...support import dtypes
from ...support.errors import DeviceError, OpIndexError
from .bounds import ANY
from .compiled import Compiled, Known, call
from .ir import FLOATS, ROWS, Allocate, Assign, For, Statement, Variable, assignments, loads, names_in, variable_of
from .races import conflict
from .translate import WRAPPING, Translator, short
from .types import machine

THREADS = 128
BLOCKS = 4096
_IN_ORDER = ("serial", "reduce")
#: Type of a number -> C type.
CTYPES = {dtypes.NAMES[code]: text for code, text in COMPUTE.items()} | {"bool_": "bool", "int16": "short"}
_THREAD = "(blockIdx.x * (long long)blockDim.x + threadIdx.x)"

#: What the texts call besides the functions of formulas.
_DEVICE = """\
__device__ inline long long mx_at(long long index, long long size, long long line, long long *outside)
{
    index += index < 0 ? size : 0;
    if (index >= 0 && index < size)
        return index;
    *outside = line;
    return 0;
}
"""


class Stage(NamedTuple):
    """One CUDA kernel; `spread` over the grid, or run by one thread."""

    name: str
    text: str
    spread: bool


def standalone(stages: Sequence[Stage]) -> str:
    """Return the text of stages with all that they call."""
    text = "".join(s.text for s in stages)
    return preamble.definitions(text + _DEVICE) + _DEVICE + text


class CudaTranslator(Translator):
    """Writes the stages of a kernel for one set of types.

    Attributes
    ----------
    stages : list of Stage
    """

    end = ";"

    def function(self) -> str:
        self.stages: list[Stage] = []
        body = [s for s in self.routine.body if not isinstance(s, Allocate)]
        prologue = self.prologue(body)
        rest = [s for s in body if s not in prologue]
        tied = (a.variable for s in rest if not isinstance(s, For) for a in assignments([s]))
        whole = any(v in self.scopes.top for v in tied)  # numbers computed on the way tie all together
        for group in [rest] if whole else [[s] for s in rest]:
            self.stage(prologue, group)
        return "".join(stage.text for stage in self.stages)

    def prologue(self, body: Sequence[Statement]) -> list[Statement]:
        """Return what computes numbers from shapes and attributes, so that every stage can do it again."""
        found: dict[Variable, Statement] = {}
        for s in body:
            once = isinstance(s, Assign) and s.variable in self.scopes.fixed and not loads(s.value)
            if once and all(v.is_tensor or v.kind == "attribute" or v in found for v in names_in(s.value)):
                found[s.variable] = s
        return list(found.values())

    def stage(self, prologue: list[Statement], group: list[Statement]) -> None:
        """Write one kernel."""
        self.lines, self.depth = [], 1
        assigned = dict.fromkeys(a.variable for a in assignments([*prologue, *group]) if a.target.kind == INPUT)
        for variable in assigned:
            self.line(self.declared(self.name(variable), machine(self.types.kinds[variable])) + self.end)
        self.write(prologue)
        loops = self.spread_loops(group[0]) if len(group) == 1 else []
        if loops:
            self.on_grid(loops)
        else:
            with self.block(f"if ({_THREAD} == 0)"):
                self.write(group)
        name = f"{self.routine.source.name}_{len(self.stages)}"
        head = f'extern "C" __global__ void {name}({", ".join(self.parameters())})\n{{\n'
        self.stages.append(Stage(name, head + "\n".join(self.lines) + "\n}\n", bool(loops)))

    def parameters(self) -> list[str]:
        found = []
        for v in (*self.types.taken, *self.routine.locals):
            if v.is_tensor:
                found.append(f"{STORAGE[self.types.codes[v]][0]} *{self.name(v)}")
                found += [f"long long {_length(v.leaf, k)}" for k in range(v.rank or 0)]
            else:
                found.append(self.declared(self.name(v), machine(self.types.kinds[v])))
        return found + ["long long *mx_outside"] * bool(self.checked)

    # ---- lines ------------------------------------------------------------------------------------------------------
    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(f"{head} {{")
        self.depth += 1
        yield
        self.depth -= 1
        self.line("}")

    def declared(self, name: str, kind: str) -> str:
        return f"{CTYPES[kind]} {name}"

    def memory(self, variable: Variable) -> None:
        raise DeviceError(f"kernel {self.routine.source.name} allocates {variable.name!r} inside a loop, which a GPU cannot; "
                          "allocate it outside of loops")  # fmt: skip

    # ---- loops ------------------------------------------------------------------------------------------------------
    def runs(self, bounds: list[str]) -> str:
        start, stop, step = bounds
        return f"{step} > 0 ? {start} < {stop} : {start} > {stop}"

    def sequential(self, s: For, bounds: list[str]) -> None:
        stop, step = (self.new("b", "int64", b) for b in bounds[1:])
        at = self.name(s.variable)
        with self.block(f"for (long long {at} = {bounds[0]}; {self.runs([at, stop, step])}; {at} += {step})"):
            self.write(s.body)

    spread = sequential  # what is not on the grid already runs in order

    def spread_loops(self, s: Statement, around: Sequence[For] = ()) -> Sequence[For]:
        """Return a loop and those directly inside it whose iterations may all run at once."""
        apart = isinstance(s, For) and s.word not in _IN_ORDER and conflict(s, self.scopes) is None
        if not apart or {loop.variable for loop in around} & names_in(*s.bounds) or (around and loads(*s.bounds)):
            return around
        return self.spread_loops(s.body[0], [*around, s]) if len(s.body) == 1 else [*around, s]

    def on_grid(self, loops: Sequence[For]) -> None:
        """Write loops as one loop over all their iterations, of which each thread takes its share."""
        bounds = [[self.new("b", "int64", self.value(b, "int64")) for b in s.bounds] for s in loops]
        counts = [self.new("n", "int64", f"({self.runs(b)}) ? ({b[1]} - {b[0]} - ({b[2]} > 0 ? 1 : -1)) / {b[2]} + 1 : 0")
                  for b in bounds]  # fmt: skip
        total, at = self.new("total", "int64", " * ".join(counts)), self.fresh("t")
        with self.block(f"for (long long {at} = {_THREAD}; {at} < {total}; {at} += (long long)gridDim.x * blockDim.x)"):
            rest = self.new("rest", "int64", at)
            for s, (start, _, step), n in reversed(list(zip(loops, bounds, counts, strict=True))):
                self.assign(f"const long long {self.name(s.variable)}", f"{start} + {rest} % {n} * {step}")
                self.assign(rest, f"{rest} / {n}")
            self.write(loops[-1].body)

    # ---- expressions --------------------------------------------------------------------------------------------------
    def name(self, variable: Variable) -> str:
        return f"v_{variable.unique}"

    def number(self, value: float, kind: str) -> str:
        return number(value, CTYPES[kind])

    def converted(self, text: str, kind: str) -> str:
        return f"({text} != 0)" if kind == "bool_" else f"(({CTYPES[kind]}){text})"

    def stored(self, value: str, target: Expr) -> str:
        return STORAGE[self.types.codes[variable_of(target)]][2].format(value)

    def read(self, text: str, element: Expr) -> str:
        return STORAGE[self.types.codes[variable_of(element)]][1].format(text)

    def form(self, n: Expr) -> str:
        label, kind = self.operation(n), self.types.machine(n)
        if label == "size":
            return _length(n, int(n.args[1].label))
        if label == "load":
            flat = self.index(n, 0) if len(n.args) > 1 else "0"
            for k in range(1, len(n.args) - 1):
                flat = f"({flat}) * {_length(n, k)} + {self.index(n, k)}"
            return f"{{0}}[{flat}]"
        row, ctype = ROWS[label], CTYPES[kind]
        text = (row.cuda if kind in (*FLOATS, "bool_") else row.integer or "").replace("{T}", ctype)
        if label in WRAPPING and kind in ("int32", "int64") and not short(n):
            text = re.sub(r"{\d}", rf"(unsigned {ctype})\g<0>", text)
        return text

    def index(self, n: Expr, k: int) -> str:
        return f"mx_at({{{k + 1}}}, {_length(n, k)}, {self.at}, mx_outside)" if self.checked else f"{{{k + 1}}}"


def _length(n: Expr, axis: int) -> str:
    """Return the argument that is a length of the tensor of an expression; no variable's name begins as it does."""
    return f"n{axis}_{variable_of(n).unique}"


# ---- running ------------------------------------------------------------------------------------------------------------
def loaded(compiled: Compiled, checked: bool, place: int) -> list[tuple[Any, tuple[int], tuple[int]]]:
    """Return the stages of a kernel as CuPy's functions, each with its blocks and threads."""
    key = "gpu", checked, place
    if key not in compiled.forms:
        stages = CudaTranslator(compiled.types, checked).stages
        module = compile_module(standalone(stages), place)
        compiled.forms[key] = [
            (module.get_function(s.name), (BLOCKS if s.spread else 1,), (THREADS if s.spread else 1,)) for s in stages
        ]
    return compiled.forms[key]


def run(known: Known, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Run a kernel on CuPy arrays; an input that it assigns is left as it is."""
    shapes, types, place = known.shapes, known.compiled.types, device.id_of(outputs[0])
    cupy = device.require(place)

    def launch(*arrays: Any) -> None:
        outside = [] if shapes.safe else [cupy.zeros(1, np.int64)]
        tensors = dict(zip((*types.taken, *types.routine.locals), (*arrays, *_locals(known, cupy)), strict=True))
        arguments = [a for v, array in tensors.items() for a in _arguments(v, array, known, cupy)] + outside
        for function, blocks, threads in loaded(known.compiled, not shapes.safe, place):
            function(blocks, threads, tuple(arguments))
        line = int(outside[0][0]) if outside else 0
        if line:
            raise OpIndexError(types.source.message(line, "an index is outside of its tensor"))

    with device.using(place):
        call(launch, known, inputs, outputs, cupy.ascontiguousarray)


def _locals(known: Known, cupy: Any) -> list[Any]:
    """Return tensors of zeros for those that the kernel allocates."""
    found, types = [], known.compiled.types
    for v in types.routine.locals:
        sizes = known.shapes.of.get(v, [ANY])
        if ANY in sizes:
            raise DeviceError(f"kernel {types.source.name}: the size of {v.name!r} is not known before the kernel runs")
        found.append(cupy.zeros(tuple([int(n[1]) for n in sizes]), dtypes.numpy_dtype(types.codes[v])))
    return found


def _arguments(v: Variable, value: Any, known: Known, cupy: Any) -> Iterator[Any]:
    """Yield what the stages take for a variable: a tensor with its lengths, or a number."""
    if not v.is_tensor:
        yield getattr(np, machine(known.compiled.types.kinds[v]))(value)
        return
    shape = value.shape
    if not (value.size or known.shapes.safe):  # where an index is outside, some element is read
        value = cupy.zeros(tuple(max(n, 1) for n in shape), value.dtype)
    yield value.view(np.uint16) if known.compiled.types.codes[v] == dtypes.BFLOAT16 else value
    yield from map(np.int64, shape)
