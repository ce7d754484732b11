"""From a kernel to the text that numba compiles: typed, with explicit conversions, and with the schedule applied.

Every operation is written in the type that :mod:`.types` found, so literals do not widen float32 to float64 and narrow
integers wrap as NumPy's do.  The outermost ``parallel`` loop becomes ``prange``, an element that a loop accumulates into is
held in a register, what is used twice has a name.  Imports :mod:`.types`, :mod:`.ir`, :mod:`.scalars`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...formula import Expr, walk
from ...formula.expr import CALL, CONST, INPUT
from ...formula.text import texts
from .ir import Allocate, Assign, For, If, Statement, Variable, accesses, changing
from .scalars import CASTS, FLOATS, fixed, literal, loads, names_in
from .types import Types, is_integer

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
          "land": "and", "lor": "or"}  # fmt: skip
#: Primitive -> text over its operands and their type ``{k}``; the others are functions of their own name.
_FORMS = {label: f"({{0}} {sign} {{1}})" for label, sign in _SIGNS.items()} | {
    "lnot": "(not {0})", "neg": "(-{0})", "square": "({0} * {0})", "cube": "({0} * ({0} * {0}))", "real": "{0}",
    "where": "({1} if {0} else {2})", "size": "{0}.shape[{1}]", "rsqrt": "(_mx_{k}(1.0) / _mx_sqrt({0}))",
    "float16": "_mx_half({0})",
}  # fmt: skip
_EXACT = ("int64", "float32", "float64", "bool_")
_ROUNDING = ("floor", "ceil", "trunc", "nearest")
#: What arithmetic of truth values is.
_OF_BOOLS = {"add": "lor", "mul": "land", "maximum": "lor", "minimum": "land"}


class Translator:
    """Writes one kernel for one set of types: `text`, a Python function of what the types say is `taken`.

    With `checked`, indices are checked; the function then takes an array more, for the line of one that is outside.  False says
    that none can be, and that none is negative, so compilers need not look; None leaves both to Python.
    """

    end = ""  # of a line

    def __init__(self, types: Types, checked: bool | None = None):
        self.types, self.routine, self.checked = types, types.routine, checked
        self.parallel = self.inside_parallel = False
        self.lines: list[str] = []
        self.depth, self.count, self.at = 0, 0, 0
        self.registers: dict[Expr, str] = {}
        self.text = self.function()

    def function(self) -> str:
        with self.block(f"def {self.routine.source.name}_kernel({', '.join(self.parameters())})"):
            self.write(self.routine.body)
        return "\n".join(self.lines) + "\n"

    def parameters(self) -> list[str]:
        """Return the arguments of the compiled function."""
        return [*(v.unique for v in self.types.taken), *(["_mx_outside"] if self.checked else [])]

    # ---- lines ------------------------------------------------------------------------------------------------------
    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write a head; what is written inside stands under it."""
        self.line(f"{head}:")
        self.depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    def assign(self, place: str, value: str) -> None:
        self.line(f"{place} = {value}{self.end}")

    def new(self, what: str, kind: str, value: str) -> str:
        """Write a name of its own for a value, and return it."""
        name = self.fresh(what)
        self.assign(self.declared(name, kind), value)
        return name

    def fresh(self, what: str) -> str:
        self.count += 1
        return f"_mx_{what}{self.count}"

    def declared(self, name: str, kind: str) -> str:
        return name

    # ---- statements -------------------------------------------------------------------------------------------------
    def write(self, body: Sequence[Statement]) -> None:
        for s in body:
            self.at = s.line
            match s:
                case Allocate():
                    if s.variable in self.routine.locals:
                        self.memory(s.variable)
                case Assign():
                    self.store(s.target, self.value(s.value, self.types.machine(s.target)))
                case For():
                    self.loop(s)
                case If():
                    with self.block(f"if ({self.value(s.test, 'bool_')})"):
                        self.write(s.body)
                    if s.orelse:
                        with self.block("else"):
                            self.write(s.orelse)

    def memory(self, variable: Variable) -> None:
        sizes = ", ".join(self.value(n, "int64") for n in variable.shape)
        self.line(f"{variable.unique} = _mx_zeros(({sizes},), _mx_{self.types.of_variable(variable)})")

    def store(self, target: Expr, value: str) -> None:
        """Assign a number, an element, or the register that holds it."""
        held = target.kind == INPUT or target in self.registers
        self.assign(self.value(target, place=True), value if held else self.stored(value, target))

    def stored(self, value: str, target: Expr) -> str:
        """Return a value as memory holds it."""
        return value

    def read(self, text: str, element: Expr) -> str:
        """Return an element as it is computed with."""
        return text

    # ---- loops ------------------------------------------------------------------------------------------------------
    def loop(self, s: For) -> None:
        bounds = [self.value(b, "int64") for b in s.bounds]
        if s.word == "parallel" and not self.inside_parallel:
            self.parallel = self.inside_parallel = True
            self.spread(s, bounds)
            self.inside_parallel = False
            return
        held = self.accumulators(s)
        if not held:
            self.sequential(s, bounds)
            return
        with self.block(f"if ({self.runs(bounds)})"):
            for access in held:
                self.registers[access] = self.new("r", self.types.machine(access), self.value(access))
            self.sequential(s, bounds)
            for access in held:
                name = self.registers.pop(access)
                self.store(access, name)

    def runs(self, bounds: list[str]) -> str:
        """Return the condition that a loop runs at all."""
        return f"len(range({', '.join(bounds)})) > 0"

    def sequential(self, s: For, bounds: list[str]) -> None:
        with self.block(f"for {s.variable.unique} in range({', '.join(bounds)})"):
            self.write(s.body)

    def spread(self, s: For, bounds: list[str]) -> None:
        count, (start, _, step) = self.fresh("t"), bounds
        with self.block(f"for {count} in _mx_prange(len(range({', '.join(bounds)})))"):
            self.assign(s.variable.unique, f"{start} + _mx_int64({count}) * {step}")
            self.write(s.body)

    def accumulators(self, loop: For) -> list[Expr]:
        """Return elements that all of a loop's accesses to their tensor name, so that a register can hold them."""
        varies, found = changing([loop]), accesses(loop.body)
        return [
            access
            for access in dict.fromkeys(s.target for s in loop.body if isinstance(s, Assign) and s.target.kind == CALL)
            if set(found[access.args[0].label]) == {access} and not names_in(access) & varies  # type: ignore[index]
            and len(loads(access)) == 1 and access not in self.registers
        ]  # fmt: skip

    # ---- expressions ------------------------------------------------------------------------------------------------
    def value(self, e: Expr, kind: str | None = None, place: bool = False) -> str:
        """Return the text of an expression, converted to a type; or of the place that is to be assigned."""
        parts = list(walk([e]))
        names = {n: self.name(n.label) for n in parts if n.kind == INPUT} | self.registers  # type: ignore[arg-type]
        uses = Counter(a for n in parts for a in n.args * (2 if n.label in ("pow", "square") else 1))

        def write(n: Expr, operands: list[str]) -> str:
            given = zip(n.args, operands, self.types.operands(n), strict=True)
            text = self.form(n).format(*(self.cast(*one) for one in given), k=self.types.machine(n))
            if n.label == "load" and not (n is e and place):
                return self.read(text, n)
            named = n is not e and n.label not in ("size", "real") and uses[n] > 1
            return self.new("v", self.types.machine(n), text) if named else text

        found = texts([e], names, write, lambda n, user: "")
        return self.cast(e, found.get(e, ""), kind or self.types.machine(e))

    def cast(self, e: Expr, text: str, want: str | None) -> str:
        """Return the text of an expression in a type; a number is written in it."""
        if want is None:
            return text
        number = literal(e)
        if number.kind != CONST:
            return text if self.types.machine(e) == want else self.converted(text, want)
        if want == "bool_" or want in FLOATS or math.isfinite(number.label):  # type: ignore[arg-type]
            return self.number(number.label != 0 if want == "bool_" else number.label, want)  # type: ignore[arg-type]
        return self.converted(self.number(number.label, "float64"), want)  # type: ignore[arg-type]

    def converted(self, text: str, kind: str) -> str:
        return f"({text} != 0)" if kind == "bool_" else f"_mx_{kind}({text})"

    def name(self, variable: Variable) -> str:
        return variable.unique

    def number(self, value: float, kind: str) -> str:
        if kind == "bool_":
            return str(value)
        text = str(int(value)) if is_integer(kind) else repr(float(value))
        text = f"_mx_{text}" if text in ("inf", "nan") else "(-_mx_inf)" if text == "-inf" else text
        return text if kind in ("int64", "float64") else f"_mx_{kind}({text})"

    def form(self, n: Expr) -> str:
        """Return the text of a call with places for its operands."""
        label, kind = self.operation(n), self.types.machine(n)
        if label == "load":
            indices = [self.index(n, k) for k in range(len(n.args) - 1)]
            return f"{{0}}[{', '.join(indices) or '()'}]"
        prefix = "i" if label in ("floordiv", "mod", "pow") and is_integer(kind) else ""
        found = _FORMS.get(label) or f"_mx_{prefix}{label}({', '.join(f'{{{k}}}' for k in range(len(n.args)))})"
        return found if kind in _EXACT or found == "{0}" else f"_mx_{kind}({found})"

    def operation(self, n: Expr) -> str:
        """Return the primitive that a call is in the type in which it is computed."""
        label, kind = str(n.label), self.types.machine(n)
        if (label in _ROUNDING and kind not in FLOATS) or (label in CASTS and label != "float16"):
            return "real"  # the operand is what it should be
        if kind == "bool_":
            return _OF_BOOLS.get(label, label)
        if label == "pow" and kind in FLOATS:
            return {2: "square", 3: "cube"}.get(fixed(literal(n.args[1])), label)
        return label

    def index(self, n: Expr, k: int) -> str:
        if self.checked:
            return f"_mx_at({{{k + 1}}}, {{0}}.shape[{k}], {self.at}, _mx_outside)"
        return f"{{{k + 1}}}" if self.checked is None or n.args[k + 1].kind == CONST else f"_mx_uint64({{{k + 1}}})"
