"""From a checked kernel to the text that numba compiles: typed, with explicit conversions, and with the schedule applied.

Every operation is written in the type that :mod:`.types` found, so literals do not widen float32 to float64 and narrow
integers wrap as NumPy's do.  ``grid`` becomes loops, the outermost ``parallel`` loop becomes ``prange``, an element that a
loop accumulates into is held in a register.  Imports :mod:`.types`, :mod:`.races`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from .expressions import OPERATORS, index_items
from .races import names_in, unique_text, word_of
from .source import Variable
from .types import WEAK, Types, applied, comparison, element_kind, is_integer
from .words import CONVERTERS, NARROW

#: What holds a type while it is computed.
MACHINE = {"int": "int64", "float": "float64", "bool": "bool_"}
_ALWAYS_FLOAT = ("isnan", "isinf", "isfinite")


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

    prange = "_mx_prange"

    def __init__(self, types: Types, checked: bool = False):
        self.types, self.source = types, types.source
        self.checked = checked
        self.parallel = False
        self.lines: list[str] = []
        self.depth = 0
        self.inside_parallel = False
        self.registers: dict[tuple[Variable, str], str] = {}
        self.count = 0
        self.text = self.function()

    # ---- lines ------------------------------------------------------------------------------------------------------
    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def indented(self) -> Iterator[None]:
        self.depth += 1
        yield
        self.depth -= 1

    def fresh(self, what: str) -> str:
        self.count += 1
        return f"_mx_{what}{self.count}"

    def parameters(self) -> list[str]:
        """Return the arguments of the compiled function: arguments of the kernel, then outputs that are none of them."""
        lists = [v for v in self.source.attributes if v not in self.types.kinds]
        names = [v.unique for v in self.source.arguments if v not in lists]
        names += [v.unique for v in self.source.results if v.kind == "output"]
        return [*names, "_mx_outside"] if self.checked else names

    def function(self) -> str:
        self.line(f"def {self.source.name}({', '.join(self.parameters())}):")
        with self.indented():
            self.block(self.source.tree.body)
            self.line("return")
        return "\n".join(self.lines) + "\n"

    # ---- statements -------------------------------------------------------------------------------------------------
    def block(self, statements: list[ast.stmt]) -> None:
        before = len(self.lines)
        for node in statements:
            self.statement(node)
        if len(self.lines) == before:
            self.line("pass")

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Name() as target]) if target.variable.is_tensor:  # type: ignore[attr-defined]
                self.memory(target.variable)  # type: ignore[attr-defined]
            case ast.Assign(targets=[target]):
                self.store(target, node.value)
            case ast.AugAssign():
                left = self.value(node.target)
                self.store(
                    node.target, None, self.operation(node, OPERATORS[type(node.op)], left, self.value(node.value))
                )
            case ast.For():
                self.loop(node)
            case ast.If():
                self.line(f"if {self.value(node.test)[0]}:")
                with self.indented():
                    self.block(node.body)
                if node.orelse:
                    self.line("else:")
                    with self.indented():
                        self.block(node.orelse)
            case ast.With():
                for inner in node.body:
                    self.statement(inner)

    def memory(self, variable: Variable) -> None:
        if variable.kind == "local":
            kind = element_kind(self.types.codes[variable])
            sizes = ", ".join(self.sizes(variable.shape))
            self.line(f"{variable.unique} = _mx_zeros(({sizes},), _mx_{kind})")

    def sizes(self, node: ast.expr | None) -> list[str]:
        """Return the sizes of a shape's expression."""
        if isinstance(node, ast.Attribute):
            tensor = node.value.variable  # type: ignore[attr-defined]
            return [f"{tensor.unique}.shape[{k}]" for k in range(self.types.ranks[tensor])]
        items = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
        return [self.integer(item) for item in items]  # type: ignore[arg-type]

    def store(self, target: ast.expr, value: ast.expr | None, found: tuple[str, str] | None = None) -> None:
        found = found or self.value(value)  # type: ignore[arg-type]
        if isinstance(target, ast.Name):
            variable = target.variable  # type: ignore[attr-defined]
            self.line(f"{variable.unique} = {self.cast(found, self.types.kinds[variable])}")
            return
        assert isinstance(target, ast.Subscript)
        tensor = target.value.variable  # type: ignore[attr-defined]
        self.types.check_indices(target, tensor)
        held = self.registers.get((tensor, unique_text(target)))
        if held is None:
            self.line(f"{self.element(target)} = {self.to_memory(self.cast(found, self.types.of(target)), tensor)}")
        else:
            self.line(f"{held} = {self.cast(found, self.types.of(target))}")

    def loop(self, node: ast.For) -> None:
        if word_of(node) == "grid":
            self.grid_loop(node)
            return
        bounds = [self.integer(a) for a in node.iter.args]  # type: ignore[attr-defined]
        target = node.target.variable.unique  # type: ignore[attr-defined]
        if word_of(node) == "parallel" and not self.inside_parallel:
            self.parallel = self.inside_parallel = True
            self.parallel_loop(node, target, bounds)
            self.inside_parallel = False
            return
        held = self.accumulators(node)
        if not held:
            self.sequential(node, target, bounds)
            return
        self.line(f"if {bounds[0]} > 0:" if len(bounds) == 1 else f"if len(range({', '.join(bounds)})) > 0:")
        with self.indented():
            for access, name in held:
                tensor = access.value.variable  # type: ignore[attr-defined]
                self.line(f"{name} = {self.from_memory(self.element(access), tensor)}")
                self.registers[tensor, unique_text(access)] = name
            self.sequential(node, target, bounds)
            for access, name in held:
                tensor = access.value.variable  # type: ignore[attr-defined]
                del self.registers[tensor, unique_text(access)]
                self.line(f"{self.element(access)} = {self.to_memory(name, tensor)}")

    def sequential(self, node: ast.For, target: str, bounds: list[str]) -> None:
        self.line(f"for {target} in range({', '.join(bounds)}):")
        with self.indented():
            self.block(node.body)

    def parallel_loop(self, node: ast.For, target: str, bounds: list[str]) -> None:
        count = self.fresh("t")
        if len(bounds) == 1:
            self.line(f"for {count} in {self.prange}({bounds[0]}):")
        else:
            run = f"range({', '.join(bounds)})"
            self.line(f"for {count} in {self.prange}(len({run})):")
        with self.indented():
            step = bounds[2] if len(bounds) == 3 else "1"
            start = f"({bounds[0]}) + " if len(bounds) > 1 else ""
            self.line(f"{target} = {start}_mx_int64({count})" + (f" * ({step})" if step != "1" else ""))
            self.block(node.body)

    def grid_loop(self, node: ast.For) -> None:
        names, sizes = self.grid_loops(node)
        self.nest(node, names, sizes)

    def grid_loops(self, node: ast.For) -> tuple[list[str], list[str]]:
        """Return names and sizes of the loops that a grid stands for."""
        sizes = self.sizes(node.iter.args[0])  # type: ignore[attr-defined]
        if isinstance(node.target, ast.Tuple):
            names = [t.variable.unique for t in node.target.elts]  # type: ignore[attr-defined]
        else:
            variable = node.target.variable  # type: ignore[attr-defined]
            self.types.grid_rank(variable)
            names = [self.grid_index(variable, k) for k in range(len(sizes))]
        if len(names) != len(sizes):
            self.source.fail(node, f"{len(names)} loop variables for a grid of {len(sizes)} dimensions")
        return names, sizes

    def nest(self, node: ast.For, names: list[str], sizes: list[str]) -> None:
        if not names:
            self.block(node.body)
            return
        self.line(f"for {names[0]} in range({sizes[0]}):")
        with self.indented():
            self.nest(node, names[1:], sizes[1:])

    def grid_index(self, variable: Variable, k: int) -> str:
        return f"{variable.unique}__{k}_"

    def accumulators(self, loop: ast.For) -> list[tuple[ast.Subscript, str]]:
        """Return elements that all of a loop's accesses to their tensor name, so that a register can hold them."""
        inside = {v for n in ast.walk(loop) for v in names_in(n) if v.node in _nodes(loop)} | _assigned(loop)
        accesses: dict[Variable, list[ast.Subscript]] = {}
        for node in ast.walk(loop):
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.variable.is_tensor:  # type: ignore[attr-defined]
                accesses.setdefault(node.value.variable, []).append(node)  # type: ignore[attr-defined]
        found = []
        for target in _always_stored(loop.body):
            tensor = target.value.variable  # type: ignore[attr-defined]
            same = accesses.pop(tensor, [])
            if (
                same and len({unique_text(a) for a in same}) == 1 and not inside & set(names_in(target.slice))
                and tensor not in inside and (tensor, unique_text(target)) not in self.registers
                and not any(isinstance(n, ast.Subscript) for n in ast.walk(target.slice))
            ):  # fmt: skip
                found.append((target, self.fresh("r")))
        return found

    # ---- expressions ------------------------------------------------------------------------------------------------
    def value(self, node: ast.expr) -> tuple[str, str]:
        """Return the text of an expression, and its type."""
        kind = self.types.of(node)
        match node:
            case ast.Constant():
                return self.number(node.value), kind
            case ast.Name():
                return node.variable.unique, kind  # type: ignore[attr-defined]
            case ast.BinOp():
                return self.operation(node, OPERATORS[type(node.op)], self.value(node.left), self.value(node.right))
            case ast.UnaryOp():
                return self.unary(node, kind), kind
            case ast.Compare():
                return self.compare(node), kind
            case ast.BoolOp():
                sign = " and " if isinstance(node.op, ast.And) else " or "
                return "(" + sign.join(self.value(p)[0] for p in node.values) + ")", kind
            case ast.IfExp():
                yes, no = (self.cast(self.value(p), kind) for p in (node.body, node.orelse))
                return f"({yes} if {self.value(node.test)[0]} else {no})", kind
            case ast.Call():
                return self.call(node, kind), kind
            case ast.Subscript():
                return self.load(node), kind
        raise AssertionError(ast.dump(node))

    def number(self, value: float) -> str:
        text = repr(value)
        return f"_mx_{text}" if text in ("inf", "nan") else text

    def integer(self, node: ast.expr) -> str:
        text, kind = self.value(node)
        if not is_integer(kind):
            self.source.fail(node, f"{ast.unparse(node)} is of type {kind}; a loop runs over integers")
        return text if kind in ("int", "int64") else f"_mx_int64({text})"

    def cast(self, found: tuple[str, str], kind: str) -> str:
        """Return an expression in another type."""
        text, have = found
        have, want = MACHINE.get(have, have), MACHINE.get(kind, kind)
        if have == want:
            return text
        return f"({text} != 0)" if want == "bool_" else f"_mx_{want}({text})"

    def operation(self, node: ast.AST, sign: str, left: tuple[str, str], right: tuple[str, str]) -> tuple[str, str]:
        kind = self.types._apply(node, sign, left[1], right[1])
        if kind == "bool_":
            return f"({left[0]} {'or' if sign == '+' else 'and'} {right[0]})", kind
        a, b = self.cast(left, kind), self.cast(right, kind)
        integer = is_integer(kind)
        if sign == "**":
            text = f"_mx_ipow({a}, {b})" if integer else f"_mx_pow({a}, {b})"
        elif sign in ("//", "%"):
            name = {"//": "floordiv", "%": "mod"}[sign]
            text = f"_mx_{'i' if integer else 'f'}{name}({a}, {b})"
        else:
            text = f"({a} {sign} {b})"
        return self.wrapped(text, kind), kind

    def wrapped(self, text: str, kind: str) -> str:
        """Bring the result of an operation, computed in a wider machine type, back to its own."""
        return text if kind in WEAK or kind in ("float32", "float64", "int64", "bool_") else f"_mx_{kind}({text})"

    def unary(self, node: ast.UnaryOp, kind: str) -> str:
        text, have = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return f"(not {text})"
        text = self.cast((text, have), kind)
        return text if isinstance(node.op, ast.UAdd) else self.wrapped(f"(-{text})", kind)

    def compare(self, node: ast.Compare) -> str:
        parts = [self.value(p) for p in (node.left, *node.comparators)]
        parted = []
        for op, left, right in zip(node.ops, parts, parts[1:]):
            kind = self.types.common([left[1], right[1]])
            parted.append(f"({self.cast(left, kind)} {comparison(op)} {self.cast(right, kind)})")
        return parted[0] if len(parted) == 1 else "(" + " and ".join(parted) + ")"

    def call(self, node: ast.Call, kind: str) -> str:
        name = node.func.id  # type: ignore[attr-defined]
        if name == "len":
            return self.length(node.args[0])
        values = [self.value(a) for a in node.args]
        if name in CONVERTERS:
            text = self.cast(values[0], kind)
            return f"_mx_half({text})" if CONVERTERS[name] in NARROW else text
        if name in _ALWAYS_FLOAT:
            argument = values[0][1] if values[0][1] in ("float32", "float64") else "float64"
            return f"_mx_{name}({self.cast(values[0], argument)})"
        if name in ("floor", "ceil", "trunc", "round") and kind not in ("float", "float32", "float64"):
            return self.cast(values[0], kind)
        if name in ("max", "min"):
            return self.extreme(name, values)
        if name == "ceil_div":
            a, b = (self.cast(v, kind) for v in values)
            text = f"_mx_{'i' if is_integer(kind) else 'f'}floordiv"
            return self.wrapped(f"(-{text}(-({a}), {b}))", kind)
        if name == "power":
            return self.operation(node, "**", *values)[0] if applied("**", *(v[1] for v in values)) == kind else ""
        if name == "rsqrt":
            return f"({self.cast(('1', 'int'), kind)} / _mx_sqrt({self.cast(values[0], kind)}))"
        return self.wrapped(f"_mx_{name}({', '.join(self.cast(v, kind) for v in values)})", kind)

    def extreme(self, name: str, values: list[tuple[str, str]]) -> str:
        found = values[0]
        for value in values[1:]:
            kind = applied(name, found[1], value[1])
            found = (f"_mx_{name}({self.cast(found, kind)}, {self.cast(value, kind)})", kind)
        return found[0]

    def length(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute):
            return str(self.types.ranks[node.value.variable])  # type: ignore[attr-defined]
        return f"{node.variable.unique}.shape[0]"  # type: ignore[attr-defined]

    def load(self, node: ast.Subscript) -> str:
        base = node.value
        if isinstance(base, ast.Attribute):
            return f"{base.value.variable.unique}.shape[{ast.unparse(node.slice)}]"  # type: ignore[attr-defined]
        variable = base.variable  # type: ignore[attr-defined]
        if variable.kind == "grid":
            return self.grid_index(variable, ast.literal_eval(node.slice))
        if variable.kind == "attribute":
            return self.number(self.types.attribute_item(node))
        held = self.registers.get((variable, unique_text(node)))
        return held or self.from_memory(self.element(node), variable)

    def element(self, node: ast.Subscript) -> str:
        variable = node.value.variable  # type: ignore[attr-defined]
        items = []
        for item in index_items(node):
            grid = getattr(item, "variable", None)
            if grid is not None and grid.kind == "grid":
                items += [self.grid_index(grid, k) for k in range(self.types.grid_rank(grid))]
            else:
                items.append(self.value(item)[0])
        if self.checked:
            name, line = variable.unique, node.lineno
            items = [f"_mx_at({i}, {name}.shape[{k}], {line}, _mx_outside)" for k, i in enumerate(items)]
        return f"{variable.unique}[{', '.join(items) or '()'}]"

    def from_memory(self, text: str, tensor: Variable) -> str:
        return text

    def to_memory(self, text: str, tensor: Variable) -> str:
        return text


def _nodes(loop: ast.For) -> set[ast.AST]:
    return set(ast.walk(loop))


def _assigned(loop: ast.For) -> set[Variable]:
    targets = [n.target if isinstance(n, ast.AugAssign) else n.targets[0] for n in ast.walk(loop)
               if isinstance(n, (ast.Assign, ast.AugAssign))]  # fmt: skip
    return {t.variable for t in targets if isinstance(t, ast.Name)}  # type: ignore[attr-defined]


def _always_stored(statements: list[ast.stmt]) -> Iterator[ast.Subscript]:
    """Yield the elements that every iteration of a loop stores."""
    for node in statements:
        if isinstance(node, ast.With):
            yield from _always_stored(node.body)
        target = (
            node.target
            if isinstance(node, ast.AugAssign)
            else node.targets[0]
            if isinstance(node, ast.Assign)
            else None
        )
        if isinstance(target, ast.Subscript):
            yield target
