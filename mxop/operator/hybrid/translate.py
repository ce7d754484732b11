"""From a kernel to the text that numba compiles: typed, with explicit conversions, and with the schedule applied.

Every operation is written in the type that :mod:`.types` found, so literals do not widen float32 to float64 and narrow
integers wrap as NumPy's do.  The outermost ``parallel`` loop becomes ``prange``, an element that a loop accumulates into is
held in a register, what is used twice has a name.  Where iterations add to the same elements, a parallel loop runs in parts
with a copy each, and a loop inside makes its additions after the rest of a block of iterations, which is vectorised then.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext

from ...formula import Expr, walk
from ...formula.expr import CALL, CONST, INPUT
from ...formula.text import texts
from . import ir
from .ir import Allocate, Assign, For, If, Scopes, Statement, Variable, fixed, literal, loads, names_in
from .races import meeting
from .types import Types, is_integer

_SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "land": "and", "lor": "or"}
#: Primitive -> text over its operands and their type ``{k}``; the others are functions of their own name.
_FORMS = {label: f"({{0}} {sign} {{1}})" for label, sign in _SIGNS.items()} | {
    **{label: ir.ROWS[label].cuda for label in ("add", "sub", "mul", "div", "neg", "square", "cube", "real")},  # as in C
    "lnot": "(not {0})", "where": "({1} if {0} else {2})", "size": "{0}.shape[{1}]", "float16": "_mx_half({0})",
    "rsqrt": "(_mx_{k}(1.0) / _mx_sqrt({0}))",
}  # fmt: skip
BLOCK = 256  # iterations
#: What may leave a type: compilers take it that signed numbers never do, and could leave out checks of what follows.
WRAPPING = ("add", "sub", "mul")
_EXACT = ("int64", "float32", "float64", "bool_")
_ROUNDING = ("floor", "ceil", "trunc", "nearest")
#: What arithmetic of truth values is.
_OF_BOOLS = {"add": "lor", "mul": "land", "maximum": "lor", "minimum": "land"}


class Translator:
    """Writes one kernel for one set of types: `text`, a Python function of what the types say is `taken`.

    With `checked`, indices are checked; the function then takes an array more, for the line of one that is outside.  False says
    that none can be, and that none is negative, so compilers need not look; None leaves both to Python.  `sizes` are lengths
    for which the text is meant: (tensor, axis) -> length.
    """

    end = ""  # of a line

    def __init__(self, types: Types, checked: bool | None = None, sizes: Mapping[tuple[Variable, int], int] | None = None):
        self.types, self.routine, self.checked, self.sizes = types, types.routine, checked, sizes or {}
        self.scopes = Scopes(self.routine.body)
        self.inside_parallel = False
        self.lines: list[str] = []
        self.depth, self.count, self.at = 0, 0, 0
        self.registers: dict[Expr, str] = {}
        self.copies: dict[Variable, str] = {}  # what stands for a tensor in a part of a loop
        self.text = self.function()

    def function(self) -> str:
        with self.block(f"def {self.routine.source.name}_kernel({', '.join(self.parameters())})"), self.alone():
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

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Write what a thread does: under the lengths that the text is meant for, buffers first."""
        lengths = [f"{self.name(v)}.shape[{axis}] == {n}" for (v, axis), n in self.sizes.items()]
        with self.block(f"if ({' and '.join(lengths)})") if lengths else nullcontext():
            self.top, before = (len(self.lines), self.depth), self.__dict__.get("top")
            yield
            self.top = before

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
            self.inside_parallel = True
            self.spread(s, bounds)
            self.inside_parallel = False
            return
        held = self.accumulators(s)
        with self.block(f"if ({self.runs(bounds)})") if held else nullcontext():
            for access in held:
                self.registers[access] = self.new("r", self.types.machine(access), self.value(access))
            self.sequential(s, bounds)
            for access in held:
                self.store(access, self.registers.pop(access))

    def runs(self, bounds: list[str]) -> str:
        """Return the condition that a loop runs at all."""
        return f"{_times(bounds)} > 0"

    def sequential(self, s: For, bounds: list[str]) -> None:
        late = self.postponed(s)
        if late:
            self.in_blocks(s, bounds, late)
            return
        with self.block(f"for {s.variable.unique} in range({', '.join(bounds)})"):
            self.write(s.body)

    def spread(self, s: For, bounds: list[str]) -> None:
        """Write a loop whose iterations run in threads."""
        n, met = self.new("n", "int64", _times(bounds)), meeting(s, self.scopes)
        if met:
            self.in_parts(s, bounds, n, sorted(met, key=lambda v: v.unique))
            return
        count = self.fresh("t")
        with self.block(f"for {count} in _mx_prange({n})"), self.alone():
            self.step(s, bounds, count)
            self.write(s.body)

    def step(self, s: For, bounds: list[str], count: str) -> None:
        """Give a loop's variable its value in an iteration."""
        self.assign(s.variable.unique, f"{bounds[0]} + _mx_int64({count}) * {bounds[2]}")

    # ---- iterations that add to the same elements ---------------------------------------------------------------------
    def in_parts(self, s: For, bounds: list[str], n: str, met: Sequence[Variable]) -> None:
        """Write a loop in parts, which add to copies of what iterations meet in; their number depends on lengths alone."""
        additions = " + ".join(self.additions(s.body, v, ir.changing([s])) or "0" for v in met)
        sizes = " + ".join(f"{self.name(v)}.size" for v in met)
        parts = self.new("parts", "int64", f"_mx_parts({n}, {n} * ({additions}), {sizes})")
        copies = {v: self.new("copies", "", f"_mx_copies({self.name(v)}, {parts})") for v in met}
        part, count = self.fresh("p"), self.fresh("t")
        with self.block(f"for {part} in _mx_prange({parts})"), self.alone():
            self.copies = {v: self.new("copy", "", f"_mx_copy({v.unique}, {copies[v]}, {part})") for v in met}
            with self.block(f"for {count} in range({part} * {n} // {parts}, ({part} + 1) * {n} // {parts})"):
                self.step(s, bounds, count)
                self.write(s.body)
            self.copies = {}
        for v in met:
            with self.block(f"for {part} in _mx_prange(_mx_blocks({v.unique}, {parts}))"):
                self.line(f"_mx_merge({v.unique}, {copies[v]}, {part})")

    def additions(self, body: Sequence[Statement], tensor: Variable, inner: set[Variable]) -> str:
        """Return how often a block adds to a tensor, at most; loops whose bounds change inside count once."""
        found = []
        for s in body:
            if isinstance(s, Assign) and s.variable is tensor:
                found.append("1")
            for block in ir.blocks(s):
                times = self.additions(block, tensor, inner)
                if times and isinstance(s, For) and not names_in(*s.bounds) & inner and not loads(*s.bounds):
                    times = f"({times}) * {_times([self.value(b, 'int64') for b in s.bounds])}"
                found += [times] * bool(times)
        return " + ".join(found)

    def postponed(self, s: For) -> list[Assign]:
        """Return additions that can be made after all else that a block of iterations does."""
        if self.checked is not False or any(isinstance(t, (For, Allocate)) for t in ir.statements(s.body)):
            return []
        met = meeting(s, self.scopes) or set()
        found = [t for t in s.body if isinstance(t, Assign) and t.variable in met]
        varies = names_in(*(i for t in found for i in t.target.args[1:])) & ir.changing([s])
        return found if varies and len(found) == sum(t.variable in met for t in ir.assignments(s.body)) else []

    def in_blocks(self, s: For, bounds: list[str], late: Sequence[Assign]) -> None:
        """Write a loop in blocks of iterations: all but some additions, then these, in their order."""
        n, begin, k = self.new("n", "int64", _times(bounds)), self.fresh("b"), self.fresh("k")
        names = {v: self.name(v) for v in dict.fromkeys(t.variable for t in late)}
        flat = {v: self.new("flat", "", f"{name}.reshape({name}.size)") for v, name in names.items()}
        put: dict[Statement, list[str]] = {}
        with self.block(f"for {begin} in range(0, {n}, {BLOCK})"):
            many = self.new("m", "int64", f"min({n} - {begin}, {BLOCK})")
            with self.block(f"for {k} in range({many})"):
                self.step(s, bounds, f"{begin} + {k}")
                for t in s.body:
                    if t in late:
                        put[t] = self.put_off(t, flat[t.variable], k)
                    else:
                        self.write([t])
            with self.block(f"for {k} in range({many})"):
                for t, operands in put.items():
                    self.assign(operands[0], self.applied(t.value, operands, self.types.machine(t.target)))

    def put_off(self, s: Assign, flat: str, k: str) -> list[str]:
        """Keep what an addition needs; return the texts of the element and of what is added, for later."""
        place, value = self.registers.get(s.target, ""), s.value.args[1]
        if not place:
            first, *rest = (self.value(i, "int64") for i in s.target.args[1:])
            for axis, index in enumerate(rest, 1):
                first = f"({first}) * {self.name(s.variable)}.shape[{axis}] + {index}"
            place = f"{flat}[_mx_uint64({self.kept(k, first, 'uint32')})]"
        return [place, self.kept(k, self.value(value), self.types.machine(value)) if value.kind != CONST else ""]

    def kept(self, k: str, value: str, kind: str) -> str:
        """Write a value into a buffer of a thread; return the text of the element."""
        name, (at, depth) = self.fresh("later"), self.top
        self.lines.insert(at, "    " * depth + f"{name} = _mx_empty({BLOCK}, _mx_{kind})")
        self.assign(f"{name}[{k}]", value)
        return f"{name}[{k}]"

    def accumulators(self, loop: For) -> list[Expr]:
        """Return elements that all of a loop's accesses to their tensor name, so that a register can hold them."""
        varies, found = ir.changing([loop]), ir.accesses(loop.body)
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
            text = self.applied(n, operands)
            if n.label == "load" and not (n is e and place):
                return self.read(text, n)
            named = n is not e and n.label not in ("size", "real") and uses[n] > 1
            return self.new("v", self.types.machine(n), text) if named else text

        found = texts([e], names, write, lambda n, user: "")
        return self.cast(e, found.get(e, ""), kind or self.types.machine(e))

    def applied(self, n: Expr, operands: Sequence[str], want: str | None = None) -> str:
        """Return the text of a call over those of its operands."""
        given = zip(n.args, operands, self.types.operands(n), strict=True)
        text = self.form(n).format(*(self.cast(*one) for one in given), k=self.types.machine(n))
        return self.cast(n, text, want)

    def cast(self, e: Expr, text: str, want: str | None) -> str:
        """Return the text of an expression in a type; a number is written in it."""
        if want is None:
            return text
        number = literal(e)
        if number.kind != CONST:
            return text if self.types.machine(e) == want else self.converted(text, want)
        if want == "bool_" or want in ir.FLOATS or math.isfinite(number.label):  # type: ignore[arg-type]
            return self.number(number.label != 0 if want == "bool_" else number.label, want)  # type: ignore[arg-type]
        return self.converted(self.number(number.label, "float64"), want)  # type: ignore[arg-type]

    def converted(self, text: str, kind: str) -> str:
        return f"({text} != 0)" if kind == "bool_" else f"_mx_{kind}({text})"

    def name(self, variable: Variable) -> str:
        return self.copies.get(variable, variable.unique)

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
        if label in WRAPPING and kind == "int64" and self.checked is not None and not short(n):
            return "_mx_int64" + _FORMS[label].format("_mx_uint64({0})", "_mx_uint64({1})")
        prefix = "i" if label in ("floordiv", "mod", "pow") and is_integer(kind) else ""
        found = _FORMS.get(label) or f"_mx_{prefix}{label}({', '.join(f'{{{k}}}' for k in range(len(n.args)))})"
        return found if kind in _EXACT or found == "{0}" else f"_mx_{kind}({found})"

    def operation(self, n: Expr) -> str:
        """Return the primitive that a call is in the type in which it is computed."""
        label, kind = str(n.label), self.types.machine(n)
        if (label in _ROUNDING and kind not in ir.FLOATS) or (label in ir.CASTS and label != "float16"):
            return "real"  # the operand is what it should be
        if kind == "bool_":
            return _OF_BOOLS.get(label, label)
        if label == "pow" and kind in ir.FLOATS:
            return {2: "square", 3: "cube"}.get(fixed(literal(n.args[1])), label)
        return label

    def index(self, n: Expr, k: int) -> str:
        if self.checked:
            return f"_mx_at({{{k + 1}}}, {{0}}.shape[{k}], {self.at}, _mx_outside)"
        return f"{{{k + 1}}}" if self.checked is None or n.args[k + 1].kind == CONST else f"_mx_uint64({{{k + 1}}})"


def _times(bounds: Sequence[str]) -> str:
    """Return how often a loop runs."""
    return f"len(range({', '.join(bounds)}))"


def short(e: Expr) -> bool:
    """Return whether an expression is a sum of lengths, loop variables and numbers, none of which is large."""
    if e.kind == CALL:
        return e.label == "size" or (e.label in ("add", "sub") and all(map(short, e.args)))
    return e.label.kind == "loop" if e.kind == INPUT else abs(e.label) < 2**31  # type: ignore[union-attr,arg-type]
