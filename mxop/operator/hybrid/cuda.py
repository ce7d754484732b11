"""Kernels on the GPU, through cupyx.jit: one CUDA kernel for each statement of the function's own block.

A loop whose iterations are independent runs on the grid, together with such loops directly inside it; ``parallel`` and
``vectorize`` promise that, of ``range`` and ``grid`` it is found out, ``serial`` and ``reduce`` run in order.  Everything
else is done by one thread.  Imports :mod:`.translate`, :mod:`.races`; CuPy when a kernel runs.
"""

from __future__ import annotations

import ast
import linecache
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ... import dtypes
from ...errors import DeviceError, OpIndexError
from .bounds import Shapes
from .flow import Scopes, strip, target_of, variable_of
from .races import conflict, names_in, unique_text, word_of
from .source import Variable
from .translate import Translator
from .types import Types
from .words import NARROW

THREADS = 128
BLOCKS = 4096
_IN_ORDER = ("serial", "reduce")


@dataclass
class Stage:
    """One CUDA kernel.

    Attributes
    ----------
    name, text : str
        A function for ``cupyx.jit.rawkernel``.
    spread : bool
        Whether it runs on the grid; else in one thread.
    """

    name: str
    text: str
    spread: bool


class CudaTranslator(Translator):
    """Writes the stages of a kernel for one set of types.

    Attributes
    ----------
    stages : list of Stage
    """

    def function(self) -> str:
        self.scopes = Scopes(self.source.tree.body)
        self.stages: list[Stage] = []
        statements = strip(self.source.tree.body)
        prologue = [n for n in statements if self.is_prologue(n)]
        rest = [n for n in statements if n not in prologue and not self.is_memory(n)]
        whole = any(not isinstance(n, ast.For) and isinstance(target_of_any(n), ast.Name) for n in rest)
        for group in [rest] if whole else [[n] for n in rest]:  # numbers computed on the way tie all together
            self.stage(prologue, group)
        return "".join(stage.text for stage in self.stages)

    def is_memory(self, node: ast.stmt) -> bool:
        return (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and variable_of(node.targets[0]).is_tensor
        )

    def is_prologue(self, node: ast.stmt) -> bool:
        """Tell whether a statement computes a number from shapes and attributes, so that every stage can do it again."""
        if not isinstance(node, ast.Assign) or self.is_memory(node) or not isinstance(node.targets[0], ast.Name):
            return False
        reads = [n for n in ast.walk(node.value) if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)]
        simple = all(v.kind == "attribute" or v in self.scopes.fixed or v.is_tensor for v in names_in(node.value))
        return (
            variable_of(node.targets[0]) in self.scopes.fixed
            and simple
            and not any(variable_of(n).is_tensor for n in reads)
        )

    def stage(self, prologue: list[ast.stmt], group: list[ast.stmt]) -> None:
        """Write one kernel."""
        self.lines, self.depth = [], 1
        for node in prologue:
            self.statement(node)
        loops = self.spread_loops(group[0]) if len(group) == 1 else []
        if loops:
            self.spread(loops)
        else:
            self.line("if _mx_thread() == 0:")
            with self.indented():
                self.block(group)
        name = f"{self.source.name}_{len(self.stages)}"
        text = f"def {name}({', '.join(self.parameters())}):\n" + "\n".join(self.lines) + "\n"
        self.stages.append(Stage(name, text, bool(loops)))

    def parameters(self) -> list[str]:
        local = [v.unique for v in self.source.variables if v.kind == "local"]
        return [*super().parameters(), *local]

    # ---- loops on the grid ------------------------------------------------------------------------------------------
    def spread_loops(self, node: ast.stmt) -> list[ast.For]:
        """Return a loop and those directly inside it whose iterations may all run at once."""
        loops: list[ast.For] = []
        while isinstance(node, ast.For) and self.independent(node):
            inside = {v for loop in loops for v in names_in(loop.target)}
            if inside & {v for a in node.iter.args for v in names_in(a)}:  # type: ignore[attr-defined]
                break
            loops.append(node)
            body = strip(node.body)
            if len(body) != 1:
                break
            node = body[0]
        return loops

    def independent(self, node: ast.For) -> bool:
        if word_of(node) == "grid":
            return grid_is_independent(node)
        return word_of(node) not in _IN_ORDER and conflict(node) is None

    def spread(self, loops: list[ast.For]) -> None:
        """Write loops as one loop over all their iterations, of which each thread takes its share."""
        names, starts, steps, counts = [], [], [], []
        for loop in loops:
            for name, start, step, count in self.extents(loop):
                names.append(name)
                starts.append(start)
                steps.append(step)
                counts.append(self.fresh("n"))
                self.line(f"{counts[-1]} = {count}")
        total, at = self.fresh("total"), self.fresh("t")
        self.line(f"{total} = {' * '.join(counts) or '_mx_int64(1)'}")
        self.line(f"for {at} in range(_mx_thread(), {total}, _mx_threads()):")
        with self.indented():
            rest = self.fresh("rest")
            self.line(f"{rest} = _mx_int64({at})")
            for k in reversed(range(len(names))):
                index = f"{rest} % {counts[k]}"
                self.line(f"{names[k]} = " + (index if starts[k] == "0" and steps[k] == "1" else
                                              f"({starts[k]}) + ({index}) * ({steps[k]})"))  # fmt: skip
                self.line(f"{rest} = {rest} // {counts[k]}")
            self.block(loops[-1].body)

    def extents(self, loop: ast.For) -> list[tuple[str, str, str, str]]:
        """Return name, start, step and number of iterations of each loop that a loop stands for."""
        if word_of(loop) == "grid":
            names, sizes = self.grid_loops(loop)
            return [(n, "0", "1", f"_mx_int64({s})") for n, s in zip(names, sizes, strict=True)]
        bounds = [self.integer(a) for a in loop.iter.args]  # type: ignore[attr-defined]
        start = bounds[0] if len(bounds) > 1 else "0"
        stop = bounds[1] if len(bounds) > 1 else bounds[0]
        step = bounds[2] if len(bounds) > 2 else "1"
        count = (
            f"_mx_int64({stop})"
            if start == "0" and step == "1"
            else f"_mx_count(_mx_int64({start}), _mx_int64({stop}), _mx_int64({step}))"
        )
        return [(loop.target.variable.unique, start, step, count)]  # type: ignore[attr-defined]

    def parallel_loop(self, node: ast.For, target: str, bounds: list[str]) -> None:
        self.sequential(node, target, bounds)

    # ---- what memory holds --------------------------------------------------------------------------------------------
    def memory(self, variable: Variable) -> None:
        raise DeviceError(f"kernel {self.source.name} allocates {variable.name!r} inside a loop, which a GPU cannot; "
                          "allocate it outside of loops")  # fmt: skip

    def from_memory(self, text: str, tensor: Variable) -> str:
        return f"_mx_float32({text})" if self.types.codes[tensor] in NARROW else text

    def to_memory(self, text: str, tensor: Variable) -> str:
        return f"_mx_float16({text})" if self.types.codes[tensor] == dtypes.FLOAT16 else text


def target_of_any(node: ast.stmt) -> ast.expr | None:
    """Return what a statement assigns; of a condition, the first number that it assigns."""
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        return target_of(node)
    if isinstance(node, ast.If):
        return next((t for n in (*node.body, *node.orelse) if isinstance(t := target_of_any(n), ast.Name)), None)
    return None


def grid_is_independent(node: ast.For) -> bool:
    """Tell whether each iteration of a grid writes elements of its own."""
    targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
    loop = {variable_of(t) for t in targets}
    inside = {v for n in ast.walk(node) for v in names_in(n) if v.node in set(ast.walk(node))}
    accesses: dict[Variable, list[ast.Subscript]] = {}
    written: set[Variable] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name) and variable_of(part).is_tensor:
            accesses.setdefault(variable_of(part), []).append(part)
        if isinstance(part, (ast.Assign, ast.AugAssign)):
            target = target_of(part)
            if isinstance(target, ast.Name) and variable_of(target) not in inside:
                return False
            if isinstance(target, ast.Subscript):
                written.add(variable_of(target))
    for tensor in written - inside:
        items = accesses[tensor][0].slice
        parts = items.elts if isinstance(items, ast.Tuple) else [items]
        named = {variable_of(p) for p in parts if isinstance(p, ast.Name)}
        if len({unique_text(a) for a in accesses[tensor]}) > 1 or not loop <= named:
            return False
    return True


# ---- running ------------------------------------------------------------------------------------------------------------
@lru_cache(maxsize=1)
def helpers() -> dict[str, Any]:
    """Return what stages name besides their variables."""
    import cupy
    from cupyx import jit
    from cupyx.scipy import special

    names: dict[str, Any] = {
        "sqrt": cupy.sqrt, "sign": cupy.sign, "log": cupy.log, "exp": cupy.exp, "expm1": cupy.expm1, "tanh": cupy.tanh,
        "abs": cupy.absolute, "erf": special.erf, "sin": cupy.sin, "cos": cupy.cos, "atan": cupy.arctan,
        "atan2": cupy.arctan2, "isnan": cupy.isnan, "isinf": cupy.isinf, "isfinite": cupy.isfinite, "floor": cupy.floor,
        "ceil": cupy.ceil, "trunc": cupy.trunc, "round": cupy.rint, "pow": cupy.power, "ipow": cupy.power,
        "ifloordiv": cupy.floor_divide, "ffloordiv": cupy.floor_divide, "imod": cupy.remainder, "fmod": cupy.remainder,
        "max": cupy.maximum, "min": cupy.minimum, "bool_": np.bool_, "inf": np.inf, "nan": np.nan, "float16": np.float16,
    }  # fmt: skip
    for kind in ("int8", "uint8", "int16", "int32", "int64", "float32", "float64"):
        names[kind] = getattr(np, kind)
    found = {f"_mx_{name}": value for name, value in names.items()}
    found |= {"_jit": jit}
    for name, text in _DEVICE.items():
        found[name] = raw_kernel(_define(name, text, found), device=True)
    return found


def raw_kernel(function: Callable, device: bool = False) -> Any:
    """Return cupyx.jit's kernel of a function."""
    from cupyx import jit

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # that its interface may change is known
        return jit.rawkernel(mode="numpy", device=device)(function)


#: Functions on the device, as cupyx.jit takes them.
_DEVICE = {
    "_mx_thread": "def _mx_thread():\n    return _mx_int64(_jit.grid(1))\n",
    "_mx_threads": "def _mx_threads():\n    return _mx_int64(_jit.gridsize(1))\n",
    "_mx_count": (
        "def _mx_count(start, stop, step):\n"
        "    n = _mx_int64(0)\n"
        "    if step > 0:\n"
        "        if stop > start:\n"
        "            n = (stop - start + step - _mx_int64(1)) // step\n"
        "    elif start > stop:\n"
        "        n = (start - stop - step - _mx_int64(1)) // -step\n"
        "    return n\n"
    ),
    "_mx_half": "def _mx_half(x):\n    return _mx_float32(_mx_float16(x))\n",
    "_mx_at": (
        "def _mx_at(index, size, line, outside):\n"
        "    n = _mx_int64(size)\n"
        "    i = _mx_int64(index)\n"
        "    if i < 0:\n"
        "        i = i + n\n"
        "    if i < 0 or i >= n:\n"
        "        outside[0] = line\n"
        "        i = _mx_int64(0)\n"
        "    return i\n"
    ),
}

_serial = 0


def _define(name: str, text: str, namespace: dict[str, Any]) -> Callable:
    """Make a function whose text ``inspect`` finds, as cupyx.jit asks for it."""
    global _serial
    _serial += 1
    file = f"<mxop cuda {name} {_serial}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace = dict(namespace)
    exec(compile(text, file, "exec"), namespace)  # text that this package wrote
    return namespace[name]


class CudaProgram:
    """The compiled stages of a kernel for one set of types."""

    def __init__(self, types: Types, checked: bool):
        stages = CudaTranslator(types, checked).stages
        self.stages = [(raw_kernel(_define(s.name, s.text, helpers())), s.spread) for s in stages]

    def __call__(self, arguments: Sequence[Any]) -> None:
        for launch, spread in self.stages:
            launch((BLOCKS if spread else 1,), (THREADS if spread else 1,), tuple(arguments))


_programs: dict[tuple, CudaProgram] = {}


def run(program: Any, inputs: Sequence[Any], outputs: Sequence[Any], attributes: Sequence[Any]) -> None:
    """Run a kernel on CuPy arrays; an input that it assigns is left as it is."""
    import cupy

    source = program.source
    codes, ranks = [dtypes.code_of(a.dtype) for a in inputs], [a.ndim for a in inputs]
    if dtypes.BFLOAT16 in codes:
        raise DeviceError(f"kernel {source.name}: bfloat16 arrays are not supported on a GPU; convert them to float32")
    shapes = program.shapes([a.shape for a in inputs], attributes)
    types = program.types(codes, ranks, attributes)
    key = (program, types, shapes.safe)
    found = _programs.get(key)
    if found is None:
        found = _programs[key] = CudaProgram(types, not shapes.safe)
    arguments = list(_arguments(source, types, shapes, inputs, outputs, attributes))
    if shapes.safe:
        found(arguments)
        return
    outside = cupy.zeros(1, np.int64)
    n = len(arguments) - sum(v.kind == "local" for v in source.variables)
    found([*arguments[:n], outside, *arguments[n:]])
    line = int(outside[0])
    if line:
        raise OpIndexError(source.message(line, "an index is outside of its tensor"))


def _arguments(source: Any, types: Types, shapes: Shapes, inputs: Sequence[Any], outputs: Sequence[Any],
               attributes: Sequence[Any]):  # fmt: skip
    """Yield inputs and numbers, outputs, and intermediate tensors."""
    import cupy

    given = dict(zip(source.inputs, inputs, strict=True))
    numbers = dict(zip(source.attributes, attributes, strict=True))
    written = dict(zip(source.results, outputs, strict=True))
    for variable, target in written.items():
        target[...] = given.get(variable, 0)
    for variable in source.arguments:
        if variable.kind == "input":
            yield written.get(variable, given[variable])
        elif type(numbers[variable]) in (int, float, bool):
            yield np.asarray(numbers[variable])[()]
    yield from (written[v] for v in source.results if v.kind == "output")
    for variable in source.variables:
        if variable.kind == "local":
            sizes = shapes.of.get(variable)
            if sizes is None:
                raise DeviceError(
                    f"kernel {source.name}: the size of {variable.name!r} is not known before the kernel runs"
                )
            yield cupy.zeros(tuple(high for _, high in sizes), dtypes.numpy_dtype(types.codes[variable]))
