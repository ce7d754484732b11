"""Formulas and reductions as CUDA text: the arguments of CuPy's kernel makers, and plain kernels of the same text.

The operation of an :class:`ElementwiseText` serves both ``cupy.ElementwiseKernel`` and :meth:`ElementwiseText.standalone`,
which needs a CUDA compiler only; so what NVRTC checks on a machine without a GPU is what runs on one.
May import :mod:`mxop.formula`, :mod:`mxop.opdef`, :mod:`mxop.dtypes` and :mod:`.preamble`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .. import dtypes
from ..errors import OpTypeError
from ..formula import Expr, input_, keys_of, statements, walk
from ..formula.expr import call
from ..opdef.combine import COMBINES
from . import preamble

REQ_NULL, REQ_WRITE, REQ_INPLACE, REQ_ADD = range(4)

#: No contraction to fused multiply-adds: the CPU's programs have none, and results should not depend on the device.
OPTIONS = ("--fmad=false",)

#: Type code: CuPy's parameter type, C type, how to read an element as a number, how to write a number.  bfloat16 travels
#: as its bits, since CuPy's kernels have no such type.
STORAGE = {
    dtypes.FLOAT32: ("float32", "float", "{0}", "(float)({0})"),
    dtypes.FLOAT64: ("float64", "double", "{0}", "(double)({0})"),
    dtypes.FLOAT16: ("float16", "float16", "(float){0}", "float16(mx_odd({0}))"),
    dtypes.UINT8: ("uint8", "unsigned char", "{0}", "(unsigned char)(long long)({0})"),
    dtypes.INT32: ("int32", "int", "{0}", "(int)({0})"),
    dtypes.INT8: ("int8", "signed char", "{0}", "(signed char)(long long)({0})"),
    dtypes.INT64: ("int64", "long long", "{0}", "(long long)({0})"),
    dtypes.BOOL: ("bool", "bool", "{0}", "(({0}) != 0)"),
    dtypes.BFLOAT16: ("uint16", "unsigned short", "mx_bf16_to_f32({0})", "mx_f32_to_bf16(mx_odd({0}))"),
}

#: C's names of the compute types, spelled as CUDA's, where ``int64_t`` may be another type than ``long long``.
COMPUTE = {
    dtypes.FLOAT32: "float", dtypes.FLOAT64: "double", dtypes.UINT8: "unsigned char", dtypes.INT32: "int",
    dtypes.INT8: "signed char", dtypes.INT64: "long long",
}  # fmt: skip
Shape = tuple[int, ...]
_PARAM = {"float": "float32", "double": "float64", "unsigned char": "uint8", "int": "int32", "signed char": "int8",
          "long long": "int64"}  # fmt: skip
_LIMITS = {
    dtypes.UINT8: ("0", "255"),
    dtypes.INT8: ("-128", "127"),
    dtypes.INT32: ("(-2147483647 - 1)", "2147483647"),
    dtypes.INT64: ("(-9223372036854775807LL - 1)", "9223372036854775807LL"),
}


def _identifier(name: str) -> str:
    return "mxop_" + re.sub(r"\W", "_", name.strip("_"))


def _read(code: int, name: str, ctype: str) -> str:
    return f"({ctype}){STORAGE[code][2].format(name)}"


def _store(code: int, name: str, value: str, ctype: str, req: int) -> str:
    """Return the statement that writes or adds a value of the compute type to an element."""
    if req == REQ_NULL:
        return ""
    _, stored, read, write = STORAGE[code]
    if req == REQ_ADD and code in _LIMITS:  # integers: convert, then add
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
        " + ".join(f"({text}) * {step}" if step > 1 else text for text, (_, _, step) in zip(texts, terms, strict=True))
        or "0"
    )


@dataclass(frozen=True)
class ElementwiseText:
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

    @property
    def ctype(self) -> str:
        """C's name of the compute type."""
        return COMPUTE[self.compute]

    @property
    def kernel_name(self) -> str:
        """Name of the kernel, as profilers show it."""
        return _identifier(self.name)

    @property
    def in_params(self) -> str:
        """CuPy's declaration of the inputs and parameters."""
        arrays = [f"{STORAGE[t][0]} x{i}" for i, t in enumerate(self.in_types)]
        return ", ".join(arrays + [f"{_PARAM[self.ctype]} s{k}" for k in range(len(self.params))])

    @property
    def out_params(self) -> str:
        """CuPy's declaration of the outputs."""
        return ", ".join(f"{STORAGE[t][0]} y{i}" for i, t in enumerate(self.out_types))

    @cached_property
    def operation(self) -> str:
        """The text that runs for each element."""
        leaves = [n for n in walk(self.roots) if n.kind == "input"]
        keys = keys_of(self.roots)
        lines = [f"const unsigned long long a{n.label} = (unsigned long long)x{n.label};" if n.label in keys else
                 f"const {self.ctype} a{n.label} = {_read(self.in_types[n.label], f'x{n.label}', self.ctype)};"
                 for n in sorted(leaves, key=lambda n: n.label)]  # fmt: skip
        names = {n: f"a{n.label}" for n in leaves}
        names |= {n: f"s{self.params.index(n.label)}" for n in walk(self.roots) if n.kind == "param"}
        try:
            body, results = statements(list(self.roots), names, self.ctype, "cuda")
        except ValueError as problem:
            type_ = dtypes.NAMES[self.compute]
            raise OpTypeError(f"operator {self.name}: {problem}, so it is not defined for {type_} data") from None
        stores = [
            _store(t, f"y{k}", value, self.ctype, req)
            for k, (t, value, req) in enumerate(zip(self.out_types, results, self.reqs, strict=True))
        ]
        return "\n".join([*lines, *body, *filter(None, stores)])

    @cached_property
    def preamble(self) -> str:
        """The functions that the operation calls."""
        return preamble.definitions(self.operation)

    @property
    def options(self) -> tuple[str, ...]:
        """Options for the compiler."""
        return OPTIONS

    def standalone(self, name: str | None = None, shapes: Sequence[Shape] | None = None) -> str:
        """Return a plain kernel over contiguous arrays: pointers to inputs, parameters, pointers to outputs, size.

        Put :func:`standalone_prologue` before the kernels of a source file.

        Parameters
        ----------
        shapes : sequence of shapes, optional
            Those of the inputs, then that of the results, to which they broadcast; without them all are of one size.
        """
        arguments = [f"const {STORAGE[t][1]} *in{i}" for i, t in enumerate(self.in_types)]
        arguments += [f"{self.ctype} s{k}" for k in range(len(self.params))]
        arguments += [f"{STORAGE[t][1]} *out{k}" for k, t in enumerate(self.out_types)]
        keys = keys_of(self.roots)
        places = ["i" if shapes is None else _place(shapes[k], shapes[-1]) for k in range(len(self.in_types))]
        elements = [f"const {STORAGE[t][1]} &x{k} = in{k}[{0 if k in keys else places[k]}]; (void)x{k};"
                    for k, t in enumerate(self.in_types)]  # fmt: skip
        elements += [f"{STORAGE[t][1]} &y{k} = out{k}[i]; (void)y{k};" for k, t in enumerate(self.out_types)]
        body = "\n        ".join([*elements, *self.operation.split("\n")])
        return (
            f'extern "C" __global__ void {name or self.kernel_name}({", ".join([*arguments, "long long size"])})\n{{\n'
            f"    const long long step = (long long)gridDim.x * blockDim.x;\n"
            f"    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += step) {{\n"
            f"        {body}\n    }}\n}}\n"
        )


@dataclass(frozen=True)
class ReductionText:
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
    def kernel_name(self) -> str:
        """Name of the kernel, as profilers show it."""
        return _identifier(self.name)

    @property
    def ctype(self) -> str:
        """C's name of the compute type."""
        return COMPUTE[self.compute]

    @property
    def reduce_type(self) -> str:
        """C's name of the type in which values are combined."""
        if self.combine.name in ("max", "min"):
            return self.ctype
        return "double" if self.compute in dtypes.FLOATS else "long long"

    @property
    def identity(self) -> str:
        """C's text of the value of an empty reduction."""
        name = self.combine.name
        if name in ("add", "mul", "hypot"):
            return "1" if name == "mul" else "0"
        if self.compute in dtypes.FLOATS:
            return "-INFINITY" if name == "max" else "INFINITY"
        return _LIMITS[self.compute][name == "min"]

    @property
    def identity_value(self) -> float | int:
        """The value of an empty reduction in the compute type."""
        name = self.combine.name
        if name in ("add", "mul", "hypot") or self.compute in dtypes.FLOATS:
            return self.combine.identity if self.compute in dtypes.FLOATS else int(self.combine.identity)
        bits = 8 * dtypes.SIZES[self.compute]
        low, high = (0, 2**bits - 1) if self.compute == dtypes.UINT8 else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return high if name == "min" else low

    @property
    def in_params(self) -> str:
        """CuPy's declaration of the data and the number of elements in each result."""
        return f"{STORAGE[self.in_type][0]} x0, {_PARAM[self.ctype]} s0"

    @property
    def out_params(self) -> str:
        """CuPy's declaration of the result."""
        return f"{STORAGE[self.out_type][0]} y0"

    map_expr = "mxop_map(x0)"
    post_map_expr = "y0 = mxop_final(a, s0)"

    @property
    def reduce_expr(self) -> str:
        """CuPy's combination of ``a`` and ``b``."""
        return self.combine.cuda

    @cached_property
    def functions(self) -> str:
        """The definitions of ``mxop_map`` and ``mxop_final``."""
        data, result = STORAGE[self.in_type][1], STORAGE[self.out_type][1]
        map_lines, (mapped,) = self._body(self.map_root, {input_(0): "a0"})
        lines = [f"const {self.ctype} a0 = {_read(self.in_type, 'x', self.ctype)};", *map_lines, f"return {mapped};"]
        text = f"__device__ inline {self.ctype} mxop_map(const {data} &x)\n{{\n    " + "\n    ".join(lines) + "\n}\n"
        last = input_(0) if self.final_root is None else self.final_root
        final_lines, (value,) = self._body(last, {input_(0): "a0", input_(1): "count"})
        value = STORAGE[self.out_type][3].format(value)
        lines = [f"const {self.ctype} a0 = ({self.ctype})total;", *final_lines, "(void)count;", f"return {value};"]
        head = f"__device__ inline {result} mxop_final({self.reduce_type} total, {self.ctype} count)\n"
        return text + head + "{\n    " + "\n    ".join(lines) + "\n}\n"

    def _body(self, root: Expr, names: dict[Expr, str]) -> tuple[list[str], list[str]]:
        try:
            return statements([root], names, self.ctype, "cuda")
        except ValueError as problem:
            type_ = dtypes.NAMES[self.compute]
            raise OpTypeError(f"operator {self.name}: {problem}, so it is not defined for {type_} data") from None

    @cached_property
    def preamble(self) -> str:
        """The functions that the kernel calls."""
        return preamble.definitions(self.functions + self.reduce_expr + self.identity) + self.functions

    @property
    def options(self) -> tuple[str, ...]:
        """Options for the compiler."""
        return OPTIONS

    def standalone(self, name: str | None = None) -> str:
        """Return a plain kernel, one thread for each result: data of shape (rows, columns), count, results, shape."""
        name = name or self.kernel_name
        data, result = STORAGE[self.in_type][1], STORAGE[self.out_type][1]
        functions = self.functions.replace("mxop_map", f"{name}_map").replace("mxop_final", f"{name}_final")
        return functions + (
            f'extern "C" __global__ void {name}(const {data} *data, {self.ctype} count, {result} *results,\n'
            f"    long long rows, long long columns)\n{{\n"
            f"    const long long step = (long long)gridDim.x * blockDim.x;\n"
            f"    for (long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += step) {{\n"
            f"        {self.reduce_type} a = ({self.reduce_type})({self.identity});\n"
            f"        for (long long k = 0; k < columns; k++) {{\n"
            f"            const {self.reduce_type} b = ({self.reduce_type}){name}_map(data[row * columns + k]);\n"
            f"            a = {self.reduce_expr};\n        }}\n"
            f"        results[row] = {name}_final(a, count);\n    }}\n}}\n"
        )


def standalone_prologue(kernels: Sequence[ElementwiseText | ReductionText]) -> str:
    """Return what a source file of stand-alone kernels starts with."""
    texts = [
        k.operation if isinstance(k, ElementwiseText) else k.functions + k.reduce_expr + k.identity for k in kernels
    ]
    return preamble.FLOAT16 + preamble.definitions("\n".join(texts))


def of_formula(formula, in_types: Sequence[int], out_types: Sequence[int], compute: int, reqs: Sequence[int],
               name: str) -> ElementwiseText:  # fmt: skip
    """Return the text of a :class:`~mxop.opdef.Formula`."""
    return ElementwiseText(formula.roots, formula.params, tuple(in_types), tuple(out_types), compute, tuple(reqs), name)


def of_copy(in_type: int, out_type: int, req: int) -> ElementwiseText:
    """Return the text of a copy that converts types."""
    compute = dtypes.COMPUTED_AS.get(in_type, in_type)
    return ElementwiseText((input_(0),), (), (in_type,), (out_type,), compute, (req,), "copy")


def of_reduction(op, attrs, in_type: int, out_type: int) -> ReductionText:
    """Return the text of a call of a reduction operator."""
    map_, final = op.formulas(attrs)
    compute = dtypes.FLOAT64 if op.wide else map_.compute_type(in_type)
    if final is not None and compute not in dtypes.FLOATS and not final.integer:
        compute = dtypes.FLOAT64
    root, combine, last = map_.roots[0], op.combine_of(attrs), None if final is None else final.roots[0]
    if (
        combine.name == "hypot" and in_type != dtypes.FLOAT64
    ):  # squares of narrower types stay in range, and add up exactly
        root, combine, last = call("square", root), COMBINES["add"], call("sqrt", input_(0) if last is None else last)
    return ReductionText(root, combine, last, in_type, out_type, compute, op.name)


__all__ = ["ElementwiseText", "ReductionText", "of_copy", "of_formula", "of_reduction", "standalone_prologue"]
