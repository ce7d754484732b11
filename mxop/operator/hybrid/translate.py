"""From a kernel to the text that numba compiles: typed, with explicit conversions, and with the schedule applied.

Every operation is written in the type that :mod:`.types` found, so literals do not widen float32 to float64 and narrow
integers wrap as NumPy's do.  The outermost ``parallel`` loop becomes ``prange``, an element that a loop accumulates into is
held in a register, what is used twice has a name.  Imports :mod:`.types`, :mod:`.ir`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from ...formula import Expr, walk
from ...formula.expr import CALL, CONST, INPUT
from ...formula.text import texts
from .ir import CASTS, Allocate, Assign, For, If, Statement, Variable, expressions, loads, names_in, statements
from .types import COMPARISONS, LOGICAL, Types, is_integer, machine

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
          "land": "and", "lor": "or"}  # fmt: skip
#: Primitive -> text over its operands and their type ``{k}``; the others are functions of their own name.
_FORMS = {label: f"({{0}} {sign} {{1}})" for label, sign in _SIGNS.items()} | {
    "lnot": "(not {0})", "neg": "(-{0})", "square": "({0} * {0})", "where": "({1} if {0} else {2})", "bool_": "({0} != 0)",
    "size": "{0}.shape[{1}]", "rsqrt": "(_mx_{k}(1.0) / _mx_sqrt({0}))",
}  # fmt: skip
_EXACT = ("int64", "float32", "float64", "bool_")


class Translator:
    """Writes one kernel for one set of types.

    Parameters
    ----------
    types : Types
    checked : bool
        Whether to check indices; the function then takes an array more, for the line of one that is outside.

    Attributes
    ----------
    text : str
        A Python function whose arguments are the inputs and the attributes that are numbers, then the outputs.
    parallel : bool
        Whether it has a parallel loop.
    """

    def __init__(self, types: Types, checked: bool = False):
        self.types, self.routine, self.checked = types, types.routine, checked
        self.parallel = self.inside_parallel = False
        self.lines: list[str] = []
        self.depth, self.count, self.at = 0, 0, 0
        self.registers: dict[Expr, str] = {}
        self.text = self.function()

    def function(self) -> str:
        self.block(f"def {self.routine.source.name}({', '.join(self.parameters())})", self.routine.body)
        return "\n".join(self.lines) + "\n"

    def parameters(self) -> list[str]:
        """Return the arguments of the compiled function: arguments of the kernel, then outputs that are none of them."""
        names = [v.unique for v in self.routine.arguments if v.is_tensor or v in self.types.kinds]
        return [*names, *(v.unique for v in self.routine.made), *(["_mx_outside"] if self.checked else [])]

    # ---- lines ------------------------------------------------------------------------------------------------------
    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self, what: str) -> str:
        self.count += 1
        return f"_mx_{what}{self.count}"

    def block(self, head: str, body: Sequence[Statement | str | Callable[[], None]]) -> None:
        """Write statements under a head; some are texts already, or write themselves."""
        self.line(f"{head}:")
        self.depth += 1
        for s in body:
            self.part(s)
        if not body:
            self.line("pass")
        self.depth -= 1

    def part(self, s: Statement | str | Callable[[], None]) -> None:
        if isinstance(s, str):
            self.line(s)
        elif callable(s):
            s()
        else:
            self.statement(s)

    # ---- statements -------------------------------------------------------------------------------------------------
    def statement(self, s: Statement) -> None:
        self.at = s.line
        match s:
            case Allocate():
                if s.variable in self.routine.locals:
                    self.memory(s.variable)
            case Assign():
                self.store(s.target, s.value)
            case For():
                self.loop(s)
            case If():
                self.block(self.condition(self.value(s.test, "bool_")), s.body)
                if s.orelse:
                    self.block("else", s.orelse)

    def condition(self, test: str) -> str:
        return f"if {test}"

    def memory(self, variable: Variable) -> None:
        sizes = ", ".join(self.value(n, "int64") for n in variable.shape)
        self.line(f"{variable.unique} = _mx_zeros(({sizes},), _mx_{self.types.of_variable(variable)})")

    def store(self, target: Expr, value: Expr) -> None:
        kind = machine(self.types.of(target))
        found, place = self.value(value, kind), self.place(target)
        held = target.kind == INPUT or place in self.registers.values()
        self.assign(place, found if held else self.stored(found, target))

    def place(self, target: Expr) -> str:
        """Return the text of what a statement assigns."""
        return self.value(target)

    def assign(self, place: str, value: str) -> None:
        self.line(f"{place} = {value}")

    def stored(self, value: str, target: Expr) -> str:
        """Return a value as memory holds it."""
        return value

    # ---- loops ------------------------------------------------------------------------------------------------------
    def loop(self, s: For) -> None:
        bounds = [self.value(b, "int64") for b in s.bounds]
        if s.word == "parallel" and not self.inside_parallel:
            self.parallel = self.inside_parallel = True
            self.spread(s, bounds)
            self.inside_parallel = False
            return
        held = {self.types.typed(access): access for access in self.accumulators(s)}
        if not held:
            self.sequential(s, bounds)
            return
        self.block(self.condition(self.runs(bounds)), [lambda: self.hold(s, bounds, held)])

    def hold(self, s: For, bounds: list[str], held: dict[Expr, Expr]) -> None:
        """Write a loop with elements in registers."""
        for typed, access in held.items():
            self.registers[typed] = self.register(access)
        self.sequential(s, bounds)
        for typed, access in held.items():
            name = self.registers.pop(typed)
            self.assign(self.place(access), self.stored(name, access))

    def register(self, access: Expr) -> str:
        name = self.fresh("r")
        self.line(f"{name} = {self.value(access)}")
        return name

    def runs(self, bounds: list[str]) -> str:
        """Return the condition that a loop runs at all."""
        return f"len(range({', '.join(bounds)})) > 0"

    def sequential(self, s: For, bounds: list[str]) -> None:
        self.block(f"for {s.variable.unique} in range({', '.join(bounds)})", s.body)

    def spread(self, s: For, bounds: list[str]) -> None:
        count, (start, _, step) = self.fresh("t"), bounds
        first = f"{s.variable.unique} = {start} + _mx_int64({count}) * {step}"
        self.block(f"for {count} in _mx_prange(len(range({', '.join(bounds)})))", [first, *s.body])

    def accumulators(self, loop: For) -> list[Expr]:
        """Return elements that all of a loop's accesses to their tensor name, so that a register can hold them."""
        inner = list(statements(loop.body))
        varies = {loop.variable} | {s.variable for s in inner if isinstance(s, (For, Allocate))}
        varies |= {s.variable for s in inner if isinstance(s, Assign) and s.target.kind == INPUT}
        accesses: dict[Variable, set[Expr]] = {}
        for s in inner:
            for access in loads(*expressions(s)):
                accesses.setdefault(access.args[0].label, set()).add(access)  # type: ignore[arg-type]
        return [
            access
            for access in {s.target: None for s in loop.body if isinstance(s, Assign) and s.target.kind == CALL}
            if len(accesses[access.args[0].label]) == 1 and not names_in(access) & varies  # type: ignore[index]
            and len(loads(access)) == 1 and self.types.typed(access) not in self.registers
        ]  # fmt: skip

    # ---- expressions ------------------------------------------------------------------------------------------------
    def value(self, expression: Expr, kind: str | None = None) -> str:
        """Return the text of an expression, converted to a type."""
        e = self.types.typed(expression, kind)
        if e.kind == CONST:
            return self.number(e.label, kind or machine(self.types.of(expression)))  # type: ignore[arg-type]
        parts = list(walk([e]))
        names = {n: self.name(n.label) for n in parts if n.kind == INPUT} | self.registers  # type: ignore[arg-type]
        uses = Counter(a for n in parts for a in n.args + n.args * (n.label == "square"))

        def write(n: Expr, operands: list[str]) -> str:
            text = self.form(n).format(*operands, k=self.types.machine_kind(n))
            return self.named(n, text) if n is not e and n.label not in ("load", "size") and uses[n] > 1 else text

        found = texts([e], names, write, lambda n, user: self.number(n.label, self.types.operand_kind(user)))  # type: ignore[arg-type]
        return found[e]

    def name(self, variable: Variable) -> str:
        return variable.unique

    def named(self, n: Expr, text: str) -> str:
        name = self.fresh("v")
        self.line(f"{name} = {text}")
        return name

    def number(self, value: float, kind: str) -> str:
        if kind == "bool_":
            return str(bool(value))
        text = str(int(value)) if is_integer(kind) else repr(float(value))
        text = f"_mx_{text}" if text in ("inf", "nan") else "(-_mx_inf)" if text == "-inf" else text
        return text if kind in ("int64", "float64") else f"_mx_{kind}({text})"

    def form(self, n: Expr) -> str:
        """Return the text of a call with places for its operands."""
        label, kind = str(n.label), self.types.machine_kind(n) or ""
        if label == "load":
            indices = [self.index(n, k) for k in range(len(n.args) - 1)]
            return f"{{0}}[{', '.join(indices) or '()'}]"
        if label in _FORMS:
            found = _FORMS[label]
        else:
            prefix = "i" if label in ("floordiv", "mod") and is_integer(kind) else ""
            found = f"_mx_{prefix}{label}({', '.join(f'{{{k}}}' for k in range(len(n.args)))})"
        exact = kind in _EXACT or label in CASTS or label in COMPARISONS or label in LOGICAL
        return found if exact else f"_mx_{kind}({found})"

    def index(self, n: Expr, k: int) -> str:
        return f"_mx_at({{{k + 1}}}, {{0}}.shape[{k}], {self.at}, _mx_outside)" if self.checked else f"{{{k + 1}}}"
