"""Formulas as CUDA text.

The operation of an :class:`ElementwiseText` serves the kernels that run, which CuPy's ``ElementwiseKernel`` makes of
:meth:`ElementwiseText.plain` or, for large arrays, of :meth:`ElementwiseText.by_words`; and
:meth:`ElementwiseText.standalone`, which a person reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ..formula import Expr, input_, keys_of, statements, walk
from ..support import dtypes
from ..support.errors import OpTypeError
from . import preamble
from .layout import BLOCK, TILE, Layout, Tiles, apart, place_of, steps_of

REQ_NULL, REQ_WRITE, REQ_INPLACE, REQ_ADD = range(4)

#: Of programs whose subnormal numbers are kept; :mod:`.compiled` says how.
SUBNORMALS = "-DMXOP_SUBNORMALS"
#: No contraction to fused multiply-adds: the CPU's programs have none, and results should not depend on the device.
OPTIONS = ("--fmad=false", SUBNORMALS)

#: Type code: C type, how to read an element as a number, how to write a number.  bfloat16 travels as its bits.
STORAGE = {
    dtypes.FLOAT32: ("float", "{0}", "(float)({0})"),
    dtypes.FLOAT64: ("double", "{0}", "(double)({0})"),
    dtypes.FLOAT16: ("mx_half", "(float){0}", "mx_half(mx_odd({0}))"),
    dtypes.UINT8: ("unsigned char", "{0}", "(unsigned char)(long long)({0})"),
    dtypes.INT32: ("int", "{0}", "(int)({0})"),
    dtypes.INT8: ("signed char", "{0}", "(signed char)(long long)({0})"),
    dtypes.INT64: ("long long", "{0}", "(long long)({0})"),
    dtypes.BOOL: ("bool", "{0}", "(({0}) != 0)"),
    dtypes.BFLOAT16: ("unsigned short", "mx_bf16_to_f32({0})", "mx_f32_to_bf16(mx_odd({0}))"),
}

#: C's names of the compute types, spelled as CUDA's, where ``int64_t`` may be another type than ``long long``.
COMPUTE = {
    dtypes.FLOAT32: "float", dtypes.FLOAT64: "double", dtypes.UINT8: "unsigned char", dtypes.INT32: "int",
    dtypes.INT8: "signed char", dtypes.INT64: "long long",
}  # fmt: skip
Shape = tuple[int, ...]
#: C's unsigned integers, by their bytes.
WORDS = {8: "unsigned long long", 4: "unsigned int", 2: "unsigned short", 1: "unsigned char"}
#: C's name of a compute type: NumPy's, of the scalars that a kernel is given.
SCALAR = {"float": "float32", "double": "float64", "unsigned char": "uint8", "int": "int32", "signed char": "int8",
          "long long": "int64"}  # fmt: skip
#: Type codes whose elements CuPy's kernels take as bits.
ARRAY = {dtypes.FLOAT16: "uint16", dtypes.BFLOAT16: "uint16"}
LIMITS = {
    dtypes.UINT8: ("0", "255"),
    dtypes.INT8: ("-128", "127"),
    dtypes.INT32: ("(-2147483647 - 1)", "2147483647"),
    dtypes.INT64: ("(-9223372036854775807LL - 1)", "9223372036854775807LL"),
}


def identifier(name: str) -> str:
    return "mxop_" + re.sub(r"\W", "_", name.strip("_"))


def read(code: int, name: str, ctype: str) -> str:
    return f"({ctype}){STORAGE[code][1].format(name)}"


def _store(code: int, name: str, value: str, ctype: str, req: int) -> str:
    """Return the statement that writes or adds a value of the compute type to an element."""
    if req == REQ_NULL:
        return ""
    stored, read, write = STORAGE[code]
    if req == REQ_ADD and code in LIMITS:  # integers: convert, then add
        return f"{name} = ({stored})({name} + {write.format(value)});"
    if req == REQ_ADD:  # in the wider of both types
        wide = "double" if "double" in (stored, ctype) else "float" if code in dtypes.FLOATS else ctype
        value = f"({wide}){read.format(name)} + ({wide}){value}"
    return f"{name} = {write.format(value)};"


def _place(shape: Shape, result: Shape) -> str:
    """Return which element of an array in C order stands at index ``i`` of the results, to whose shape it broadcasts."""
    terms, stride, below = [], 1, 1
    for axis in range(1, len(result) + 1):
        size = shape[-axis] if axis <= len(shape) else 1
        if size != 1:
            inner = f"i / {below}" if below > 1 else "i"
            first = all(d == 1 for d in result[:-axis])
            terms.append((inner, None if first else size, stride))
        stride, below = stride * size, below * result[-axis]
    if stride == below:
        return "i"
    texts = [inner if size is None else f"{inner} % {size}" for inner, size, _ in terms]
    return (
        " + ".join(f"({text}) * {step}" if step > 1 else text for text, (_, _, step) in zip(texts, terms, strict=True)) or "0"
    )


# ---- where elements lie ------------------------------------------------------------------------------------------------
CHUNK = f"const mx_index c = (blockIdx.x * (mx_index)U + u) * {BLOCK} + threadIdx.x;"
#: Of random numbers: 16 threads have 64 elements, and each those that one call of Philox makes.
DRAWN = f"const mx_counter i = {{blockIdx.x * {BLOCK}ull + threadIdx.x, (unsigned)u}}; const mx_index c = (mx_index)i;"
THREAD = f"(blockIdx.x * (long long){BLOCK} + threadIdx.x)"


def coordinates(layout: Layout) -> tuple[list[str], list[str]]:
    """Return the lines that say where chunk ``c`` stands, and its index in each dimension."""
    return apart("c", [f"n{d}" for d in range(1, layout.ndim)], "c")


class Place:
    """How a kernel reads and writes one operand, whose pointer is ``p_NAME``, by chunks ``eNAME[u]``.

    Attributes
    ----------
    told : list of str
        Names of the strides that it is told.
    """

    def __init__(self, name: str, way: str, layout: Layout):
        self.name, self.way, self.parts = name, way, coordinates(layout)[1]
        self.steps = [] if way == "c" else steps_of(way, f"t_{name}")
        self.told = [step for step in self.steps if step not in ("", "1")]

    def at(self, k: str = "0") -> str:
        """Return the index of an element of chunk ``c``."""
        if self.way == "c":
            return f"(long long)c * V + {k}"
        return place_of([*self.parts[:-1], f"((long long){self.parts[-1]} * V + {k})"], self.steps)

    def at_last(self) -> str:
        """Return the index of element ``last`` of one dimension."""
        return "last" if self.way == "c" else place_of(["last"], self.steps)

    def _whole(self) -> bool:
        return self.way[-1] in "cd"

    def load(self, ctype: str) -> list[str]:
        """Return the lines that read chunk ``c``."""
        pack = f"mx_pack<{ctype}, V>"
        if self._whole():
            return [f"e{self.name}[u] = *(const {pack} *)(p_{self.name} + ({self.at()}));"]
        return [f"for (int k = 0; k < V; k++)\n            e{self.name}[u].v[k] = p_{self.name}[{self.at('k')}];"]

    def store(self, ctype: str) -> list[str]:
        """Return the lines that write chunk ``c``."""
        pack = f"mx_pack<{ctype}, V>"
        if self._whole():
            return [f"*({pack} *)(p_{self.name} + ({self.at()})) = e{self.name}[u];"]
        return [f"for (int k = 0; k < V; k++)\n            p_{self.name}[{self.at('k')}] = e{self.name}[u].v[k];"]


# ---- kernels -----------------------------------------------------------------------------------------------------------
class Source(NamedTuple):
    """What CuPy's ``ElementwiseKernel`` is made of."""

    in_params: str
    out_params: str
    operation: str
    name: str
    preamble: str


class KernelText:
    """What texts of kernels have in common."""

    name: str
    compute: int

    @property
    def ctype(self) -> str:
        """C's name of the compute type."""
        return COMPUTE[self.compute]

    @property
    def kernel_name(self) -> str:
        """Name of the kernel, as profilers show it."""
        return identifier(self.name)

    def _statements(self, roots: Sequence[Expr], names: dict[Expr, str]) -> tuple[list[str], list[str]]:
        """Return the lines that evaluate formulas, and their values."""
        try:
            return statements(list(roots), names, self.ctype, "cuda")
        except ValueError as problem:
            type_ = dtypes.NAMES[self.compute]
            raise OpTypeError(f"operator {self.name}: {problem}, so it is not defined for {type_} data") from None


@dataclass(frozen=True)
class ElementwiseText(KernelText):
    """A kernel that evaluates formulas on each element.

    Parameters
    ----------
    roots : tuple of Expr
        One formula for each output.
    params : tuple of str
        Numeric parameters, passed as scalars of the compute type.
    in_types, out_types : tuple of int
        Type codes of the arrays.
    compute : int
        Type code in which the formulas are computed.
    reqs : tuple of int
        Request of each output.
    name : str
        Name of the operator.

    Notes
    -----
    In the text ``x0, x1...`` are elements of inputs, ``y0, y1...`` of outputs, ``s0, s1...`` parameters; ``a0, a1...`` are
    the inputs in the compute type, or keys, and ``i`` is the index of the element.  All are read before anything is
    written, so an output may be an input's memory.
    """

    roots: tuple[Expr, ...]
    params: tuple[str, ...]
    in_types: tuple[int, ...]
    out_types: tuple[int, ...]
    compute: int
    reqs: tuple[int, ...]
    name: str = "formula"

    def _copies(self) -> bool:
        """Return whether the result is the input, bit by bit."""
        alone = len(self.roots) == 1 and self.roots[0].kind == "input" and self.reqs == (REQ_WRITE,)
        return alone and self.in_types == self.out_types and self.roots[0].label not in keys_of(self.roots)

    @cached_property
    def operation(self) -> str:
        """The text that runs for each element."""
        if self._copies():
            return f"y0 = x{self.roots[0].label};"  # bits, whatever they mean
        leaves = [n for n in walk(self.roots) if n.kind == "input"]
        keys = keys_of(self.roots)
        lines = [f"const unsigned long long a{n.label} = (unsigned long long)x{n.label};" if n.label in keys else
                 f"const {self.ctype} a{n.label} = {read(self.in_types[n.label], f'x{n.label}', self.ctype)};"
                 for n in sorted(leaves, key=lambda n: n.label)]  # fmt: skip
        names = {n: f"a{n.label}" for n in leaves}
        names |= {n: f"s{self.params.index(n.label)}" for n in walk(self.roots) if n.kind == "param"}
        body, results = self._statements(self.roots, names)
        stores = [
            _store(t, f"y{k}", value, self.ctype, req)
            for k, (t, value, req) in enumerate(zip(self.out_types, results, self.reqs, strict=True))
        ]
        return "\n".join([*lines, *body, *filter(None, stores)])

    def plain(self) -> Source:
        """Return a kernel over arrays of any strides, which broadcast: its arguments are the inputs, parameters and outputs.

        Keys are arrays of one element.  Numbers of 16 bits are arrays of ``uint16``, as not every CuPy has all of them.
        """
        keys, n_in = keys_of(self.roots), len(self.in_types)
        params: list[str] = []
        lines: list[str] = []
        for k, code in enumerate((*self.in_types, *self.out_types)):
            name, const = (f"x{k}", "const ") if k < n_in else (f"y{k - n_in}", "")
            ctype, dtype = STORAGE[code][0], ARRAY.get(code, dtypes.NAMES[code])
            bound = k in keys or ctype == "mx_half"
            params.append(f"{'raw ' * (k in keys)}{dtype} {'p_' * bound}{name}")
            if k in keys:  # of an array without dimensions, CuPy gives the value, not the place
                lines.append(f"const auto v_{name} = p_{name}[(long long)0];")
            if bound:
                element = f"v_{name}" if k in keys else f"p_{name}"
                lines.append(f"{const}{ctype} &{name} = *({const}{ctype} *)&{element};")
        scalars = [f"{SCALAR[self.ctype]} s{k}" for k in range(len(self.params))]
        operation = "\n".join([*lines, self.operation])
        given, made = ", ".join([*params[:n_in], *scalars]), ", ".join(params[n_in:])
        return Source(given, made, operation, self.kernel_name, prologue(operation))

    def by_words(self, layout: Layout) -> Source:
        """Return a kernel whose threads read and write whole words of operands that lie so.

        Its arguments are the addresses of the inputs, the parameters, the addresses of the outputs, and the numbers that
        :func:`.layout.lay` gives; each of its blocks has :data:`.layout.BLOCK` threads.
        """
        ctypes = [STORAGE[t][0] for t in (*self.in_types, *self.out_types)]
        names = [f"x{k}" for k in range(len(self.in_types))] + [f"y{k}" for k in range(len(self.out_types))]
        n_in, scalars = len(self.in_types), [f"s{k}" for k in range(len(self.params))]
        places = [Place(name, way, layout) for name, way in zip(names, layout.ways, strict=True)]
        index, bits = ("unsigned long long", "uint64") if layout.wide else ("unsigned int", "uint32")
        given = [*(f"uint64 at_{n}" for n in names[:n_in]), *(f"{SCALAR[self.ctype]} {s}" for s in scalars)]
        given += [f"uint64 at_{n}" for n in names[n_in:]]
        given += [f"{bits} {n}" for n in ("chunks", "size", *(f"n{d}" for d in range(1, layout.ndim)))]
        given += [f"int64 {step}" for p in places for step in p.told]
        constants = f"typedef {index} mx_index;\nenum {{ V = {layout.width}, U = {layout.chunks} }};\n"
        one = self._one(ctypes, "mx_counter" if layout.drawn else "long long")
        functions = prologue(self.operation, ctypes)
        if layout.drawn:
            functions = f"#define MX_DRAWN\n{functions}#undef MX_DRAWN\n"
        preamble_ = f"{functions}{constants}{one}"
        return Source(", ".join(given), "", self._words(layout, names, ctypes, places), self.kernel_name, preamble_)

    def _words(self, layout: Layout, names: list[str], ctypes: list[str], places: list[Place]) -> str:
        """Return the lines of a thread: chunks are read, computed and written; then what is left of the last word."""
        n_in, keys, kept = len(self.in_types), keys_of(self.roots), range(len(self.in_types), len(names))
        whole = [k for k in range(len(names)) if k not in keys]  # operands that have an element for each
        loads = [k for k in whole if k < n_in or self.reqs[k - n_in] == REQ_ADD]

        def one(index: str, element: Callable[[int], str]) -> str:
            inputs = [f"k_x{k}" if k in keys else element(k) for k in range(n_in)]
            given = [*inputs, *(f"s{k}" for k in range(len(self.params))), index, *map(element, kept)]
            return f"mx_one({', '.join(given)});"

        pointers = [f"{'const ' * (k < n_in)}{c} *" for k, c in enumerate(ctypes)]
        body = [f"{p}const p_{n} = ({p})at_{n};" for p, n in zip(pointers, names, strict=True)]
        body += [f"const {ctypes[k]} k_x{k} = p_x{k}[0];" for k in sorted(keys)]
        body += [f"mx_pack<{ctypes[k]}, V> e{names[k]}[U];" for k in whole]
        start = [
            "#pragma unroll",
            "for (int u = 0; u < U; u++) {",
            f"    {DRAWN if layout.drawn else CHUNK}",
            "    if (c >= chunks)",
            "        break;",
            *(f"    {line}" for line in coordinates(layout)[0]),
        ]
        body += [*start, *(f"    {line}" for k in loads for line in places[k].load(ctypes[k])), "}"]
        index = "i" if layout.drawn else "(long long)c * V + k"
        body += [*start, "    #pragma unroll", "    for (int k = 0; k < V; k++)"]
        body += [f"        {one(index, lambda k: f'e{names[k]}[u].v[k]')}"]
        body += [f"    {line}" for k in kept for line in places[k].store(ctypes[k])] + ["}"]
        if layout.ndim == 1 and layout.width > 1:  # what is left of the last word
            body += [f"const long long last = (long long)chunks * V + {THREAD};", "if (last < size)"]
            body += [f"    {one('last', lambda k: f'p_{names[k]}[{places[k].at_last()}]')}"]
        return "\n".join(body)

    def by_tiles(self, tiles: Tiles) -> Source:
        """Return a kernel of one input, whose blocks of threads turn tiles around in shared memory.

        Its arguments are the address of the input, the parameters, the address of the output, and the numbers that
        :func:`.layout.tiled` gives.
        """
        ctype, stored = STORAGE[self.in_types[0]][0], STORAGE[self.out_types[0]][0]
        bits = WORDS[dtypes.SIZES[self.in_types[0]]]  # shared memory has no constructors
        scalars = [f"s{k}" for k in range(len(self.params))]
        numbers = ["na", "nl", "xl", "ya", *(f"{n}{d}" for d in range(tiles.others) for n in ("n", "tx", "ty"))]
        given = ["uint64 at_x0", *(f"{SCALAR[self.ctype]} {s}" for s in scalars), "uint64 at_y0"]
        given += [f"int64 {n}" for n in numbers]
        others = [f"p_x0 += left % n{d} * tx{d}; p_y0 += left % n{d} * ty{d}; left /= n{d};" for d in range(tiles.others)]
        element = ", ".join([f"*(const {ctype} *)&tile[lane][r]", *scalars, "0", "p_y0[(long long)a * ya + l]"])
        lines = [
            f"__shared__ {bits} tile[{TILE}][{TILE + 1}];",
            f"const {bits} *p_x0 = (const {bits} *)at_x0;",
            f"{stored} *p_y0 = ({stored} *)at_y0;",
            f"const mx_index tl = (nl + {TILE - 1}) / {TILE}, ta = (na + {TILE - 1}) / {TILE};",
            f"const mx_index lane = threadIdx.x % {TILE}, rank = threadIdx.x / {TILE};",
            "mx_index left = blockIdx.x;",
            f"const mx_index first_l = left % tl * {TILE}, first_a = left / tl % ta * {TILE};",
            "left = left / tl / ta;",
            *reversed(others),
            f"for (mx_index r = rank; r < {TILE}; r += {BLOCK // TILE}) {{",
            "    const mx_index l = first_l + r, a = first_a + lane;",
            "    if (l < nl && a < na)",
            "        tile[r][lane] = p_x0[(long long)a + (long long)l * xl];",
            "}",
            "__syncthreads();",
            f"for (mx_index r = rank; r < {TILE}; r += {BLOCK // TILE}) {{",
            "    const mx_index l = first_l + lane, a = first_a + r;",
            "    if (l < nl && a < na)",
            f"        mx_one({element});",
            "}",
        ]
        index = f"typedef unsigned {'long long' if tiles.wide else 'int'} mx_index;\n"
        functions = prologue(self.operation, [ctype, stored]) + index + self._one([ctype, stored], "long long")
        return Source(", ".join(given), "", "\n".join(lines), self.kernel_name, functions)

    def _one(self, ctypes: Sequence[str], index: str) -> str:
        """Return the function that evaluates the formulas on one element."""
        names = [f"x{k}" for k in range(len(self.in_types))] + [f"y{k}" for k in range(len(self.out_types))]
        n_in = len(self.in_types)
        element = [f"const {c} &{n}" for c, n in zip(ctypes[:n_in], names, strict=False)]
        element += [f"{self.ctype} s{k}" for k in range(len(self.params))] + [f"const {index} i"]
        element += [f"{c} &{n}" for c, n in zip(ctypes[n_in:], names[n_in:], strict=True)]
        operation = "\n    ".join(self.operation.split("\n"))
        return f"__device__ __forceinline__ void mx_one({', '.join(element)})\n{{\n    {operation}\n}}\n"

    def standalone(self, name: str | None = None, shapes: Sequence[Shape] | None = None) -> str:
        """Return a plain kernel over contiguous arrays: pointers to inputs, parameters, pointers to outputs, size.

        Put :func:`prologue` before the kernels of a source file.

        Parameters
        ----------
        shapes : sequence of shapes, optional
            Those of the inputs, then that of the results, to which they broadcast; without them all are of one size.
        """
        arguments = [f"const {STORAGE[t][0]} *in{i}" for i, t in enumerate(self.in_types)]
        arguments += [f"{self.ctype} s{k}" for k in range(len(self.params))]
        arguments += [f"{STORAGE[t][0]} *out{k}" for k, t in enumerate(self.out_types)]
        keys = keys_of(self.roots)
        places = ["i" if shapes is None else _place(shapes[k], shapes[-1]) for k in range(len(self.in_types))]
        elements = [f"const {STORAGE[t][0]} &x{k} = in{k}[{0 if k in keys else places[k]}]; (void)x{k};"
                    for k, t in enumerate(self.in_types)]  # fmt: skip
        elements += [f"{STORAGE[t][0]} &y{k} = out{k}[i]; (void)y{k};" for k, t in enumerate(self.out_types)]
        body = "\n        ".join([*elements, *self.operation.split("\n")])
        return (
            f'extern "C" __global__ void {name or self.kernel_name}({", ".join([*arguments, "long long size"])})\n{{\n'
            f"    const long long step = (long long)gridDim.x * blockDim.x;\n"
            f"    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += step) {{\n"
            f"        {body}\n    }}\n}}\n"
        )


def prologue(text: str, ctypes: Sequence[str] = ()) -> str:
    """Return what stands before a text and variables of these types: the types and functions that it uses."""
    return preamble.PACK * bool(ctypes) + preamble.definitions(" ".join([text, *ctypes]))


def of_formula(formula, in_types: Sequence[int], out_types: Sequence[int], compute: int, reqs: Sequence[int],
               name: str) -> ElementwiseText:  # fmt: skip
    """Return the text of a :class:`~mxop.opdef.Formula`."""
    return ElementwiseText(formula.roots, formula.params, tuple(in_types), tuple(out_types), compute, tuple(reqs), name)


def of_copy(in_type: int, out_type: int, req: int) -> ElementwiseText:
    """Return the text of a copy that converts types."""
    compute = dtypes.COMPUTED_AS.get(in_type, in_type)
    return ElementwiseText((input_(0),), (), (in_type,), (out_type,), compute, (req,), "copy")


__all__ = ["ElementwiseText", "of_copy", "of_formula", "prologue"]
