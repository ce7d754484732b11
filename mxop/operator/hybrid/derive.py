"""The gradient of a kernel, as another kernel: so it is checked, compiled and differentiated again like any other.

The text goes through the program forward, and then backward statement by statement, loops from their end.  What is
overwritten although its value is read on the way back is kept in tensors indexed by the loops around it, and put back on
the way; a loop that only accumulates keeps what was there before it.
Imports :mod:`.rules`, :mod:`.flow`, :mod:`.types`, :mod:`.races`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .expressions import OPERATORS, constant, index_items
from .flow import Scopes, assignments, strip, target_of, variable_of
from .races import names_in, unique_text, word_of
from .rules import Puller
from .source import Variable
from .types import WEAK, Types, element_kind

FLOATS = ("float", "float32", "float64")
Statements = Sequence[ast.stmt]


class Underivable(Exception):
    """Why a kernel is not differentiated by itself."""


def gradient_text(types: Types) -> str:
    """Return the text of the kernel that computes the gradients of a kernel's inputs.

    It takes the inputs, the attributes, and a gradient for each output.

    Raises
    ------
    Underivable
        When the kernel allocates tensors inside loops, overwrites what is needed inside loops whose bounds depend on other
        loops, or has a loop whose step is no fixed number.
    """
    return _Gradient(types).text


class _Gradient:
    def __init__(self, types: Types):
        self.types, self.source = types, types.source
        self.body = strip(self.source.tree.body)
        self.scopes = Scopes(self.body)
        self.items: dict[str, str] = {}  # "arg[0]" of a grid's variable -> its loop
        taken = [int(m[1]) for v in self.source.variables if (m := re.search(r"__d(\d+)$", v.unique))]
        self.order = max(taken, default=0) + 1  # marks the names of this text
        self.names = {v.unique: f"{v.unique}__v{self.order}" for v in self.source.inputs if v.written}
        self.by_name = {self.names.get(v.unique, v.unique): v for v in self.source.variables}
        self.lines: list[str] = []
        self.depth, self.count = 1, 0
        self.loops: list[tuple[str, str | None]] = []  # position and number of iterations of the loops around
        self.kept: dict[tuple, str] = {}  # what is kept -> the element that holds it
        self.before_loop: dict[ast.AST, list[ast.expr]] = {}  # loop -> what it keeps as it was before
        self.allocations: list[str] = []
        self.hoisted: set[ast.AST] = set()
        self.active = self.activity()
        self.needed = self.reads(self.body)
        self.required = self.requirements()
        self.text = self.function()

    # ---- lines ------------------------------------------------------------------------------------------------------
    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self.depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    def fresh(self, what: str) -> str:
        self.count += 1
        return f"{what}{self.order}__{self.count}_"

    def show(self, node: ast.AST | None) -> str:
        """Return an expression's text; inputs that are assigned have another name here."""
        assert node is not None
        text = unique_text(node)
        for item, name in self.items.items():
            text = re.sub(rf"\b{re.escape(item)}", name, text)
        if self.names:
            text = re.sub(r"\b[A-Za-z_]\w*\b", lambda m: self.names.get(m[0], m[0]), text)
        return text

    def place(self, node: ast.expr) -> str:
        """Return the gradient of a variable or an element."""
        name = self.gradient_of(variable_of(node))
        if isinstance(node, ast.Subscript):
            return f"{name}[{', '.join(map(self.show, index_items(node)))}]"
        return name

    def gradient_of(self, variable: Variable) -> str:
        return f"{variable.unique}__d{self.order}"

    def in_type_of(self, node: ast.expr, text: str) -> str:
        if isinstance(node, ast.Subscript):
            return text  # converted when it is stored
        kind = self.types.kinds[variable_of(node)]
        return f"{'float64' if kind in WEAK else kind}({text})"

    # ---- what depends on what -----------------------------------------------------------------------------------------
    def activity(self) -> set[Variable]:
        """Return the variables through which a gradient flows."""
        active = {v for v in self.source.inputs if self.is_float(v)}
        before = -1
        while len(active) != before:
            before = len(active)
            for node in assignments(self.body):
                variable = variable_of(target_of(node))
                if self.is_float(variable) and active & set(names_in(node.value)):  # type: ignore[attr-defined]
                    active.add(variable)
        return active

    def is_float(self, variable: Variable) -> bool:
        kind = element_kind(self.types.codes[variable]) if variable.is_tensor else self.types.kinds.get(variable)
        return kind in FLOATS

    def flows(self, node: ast.expr) -> bool:
        """Tell whether a gradient flows into an expression."""
        return any(v in self.active for v in names_in(node)) and self.types.of(node) in FLOATS

    def reads(self, statements: Statements) -> set[Variable]:
        """Return the variables whose values are read on the way back through statements."""
        found: set[Variable] = set()
        for root in statements:
            for node in ast.walk(root):
                if isinstance(node, ast.If):
                    found |= set(names_in(node.test))
                elif isinstance(node, ast.For):
                    found |= {v for a in node.iter.args for v in names_in(a)}  # type: ignore[attr-defined]
        for node in assignments(statements):
            before, count = self.lines, self.count
            self.lines = []
            self.back_assignment(node)
            for name in re.findall(r"\b[A-Za-z_]\w*\b", "\n".join(self.lines)):
                if name in self.by_name:
                    found.add(self.by_name[name])
            found |= set(names_in(index)) if (index := getattr(target_of(node), "slice", None)) is not None else set()
            self.lines, self.count = before, count
        return found

    def requirements(self) -> set[Variable]:
        """Return what the forward part must compute: what is needed, and what that is computed from."""
        found, before = set(self.needed), -1
        while len(found) != before:
            before = len(found)
            for node in assignments(self.body):
                if variable_of(target_of(node)) in found:
                    found |= set(names_in(node))
        return found

    # ---- the function -------------------------------------------------------------------------------------------------
    def function(self) -> str:
        source = self.source
        heads = [f"{v.unique}__h{self.order}" for v in source.results]
        arguments = [*(v.unique for v in (*source.inputs, *source.attributes)), *heads]
        for variable in source.inputs:
            if variable.written:
                self.copied(self.names[variable.unique], variable.unique)
        for node in self.body:
            at = len(self.lines)
            self.forward([node])
            self.lines[at:at], self.allocations = self.allocations, []
        for variable in source.variables:
            if variable.is_tensor and (variable in self.active or variable.kind == "input"):
                word = "output_tensor" if variable.kind == "input" else "allocate"
                self.line(f"{self.gradient_of(variable)} = {word}({variable.unique}.shape, {variable.unique}.dtype)")
        for variable, head in zip(source.results, heads, strict=True):
            if variable in self.active:
                self.each(self.gradient_of(variable), "+=", head)
        self.enter(self.scopes.top, None)
        self.backward(self.body)
        self.line(f"return {', '.join(map(self.gradient_of, source.inputs))}")
        return f"def {source.name}_grad({', '.join(arguments)}):\n" + "\n".join(self.lines) + "\n"

    def copied(self, name: str, original: str) -> None:
        self.line(f"{name} = allocate({original}.shape, {original}.dtype)")
        self.each(name, "=", original)

    def each(self, target: str, sign: str, value: str) -> None:
        at = self.fresh("at")
        with self.block(f"for {at} in grid({target}.shape):"):
            self.line(f"{target}[{at}] {sign} {value}[{at}]")

    # ---- forward ------------------------------------------------------------------------------------------------------
    def forward(self, statements: Statements) -> None:
        """Write the program as it is, keeping what will be overwritten."""
        for node in statements:
            match node:
                case ast.Assign(targets=[ast.Name() as target]) if variable_of(target).is_tensor:
                    self.memory(node, variable_of(target))
                case _ if not any(variable_of(target_of(n)) in self.required for n in assignments([node])):
                    pass
                case ast.Assign() | ast.AugAssign():
                    self.keep_old(node)
                    sign = "=" if isinstance(node, ast.Assign) else OPERATORS[type(node.op)] + "="
                    self.line(f"{self.show(target_of(node))} {sign} {self.show(node.value)}")
                case ast.For():
                    self.keep_before(node)
                    with self.loop(node):
                        self.forward(strip(node.body))
                        self.leave(self.scopes.of(node, "body"), node)
                case ast.If():
                    self.forward_condition(node)

    def memory(self, node: ast.Assign, variable: Variable) -> None:
        if self.loops or self.depth > 1:
            raise Underivable(f"line {node.lineno} allocates a tensor inside a loop or a condition")
        self.line(f"{variable.unique} = allocate({self.show(variable.shape)}, {self.show(variable.dtype)})")

    def forward_condition(self, node: ast.If) -> None:
        assigned = {variable_of(target_of(n)) for n in assignments([node])}
        if assigned & set(names_in(node.test)):  # on the way back it would be another condition
            self.keep((node, "test"), f"1 if {self.show(node.test)} else 0", "'int32'")
        with self.block(f"if {self.show(node.test)}:"):
            self.forward(strip(node.body))
            self.leave(self.scopes.of(node, "body"), node)
        if node.orelse:
            with self.block("else:"):
                self.forward(strip(node.orelse))
                self.leave(self.scopes.of(node, "orelse"), node)

    # ---- backward -----------------------------------------------------------------------------------------------------
    def backward(self, statements: Statements) -> None:
        for node in reversed(statements):
            match node:
                case ast.Assign(targets=[ast.Name() as target]) if variable_of(target).is_tensor:
                    pass
                case ast.Assign() | ast.AugAssign():
                    if (node, "old") in self.kept:
                        self.line(f"{self.show(target_of(node))} = {self.kept[node, 'old']}")
                    self.back_assignment(node)
                case ast.For():
                    with self.loop(node, backward=True):
                        self.enter(self.scopes.of(node, "body"), node)
                        self.backward(strip(node.body))
                    for target in self.before_loop.get(node, ()):
                        self.line(f"{self.show(target)} = {self.kept[node, unique_text(target)]}")
                case ast.If():
                    self.back_condition(node)

    def back_assignment(self, node: ast.stmt) -> None:
        """Take the gradient of what is assigned, and add it to what it was computed from."""
        target, value = target_of(node), node.value  # type: ignore[attr-defined]
        if variable_of(target) not in self.active:
            return
        head, place, puller = self.fresh("g"), self.place(target), Puller(self)
        sign = OPERATORS[type(node.op)] if isinstance(node, ast.AugAssign) else _accumulation(target, value)
        if sign in ("+", "-"):
            part = value if isinstance(node, ast.AugAssign) else value.right
            if self.flows(part):
                self.line(f"{head} = {place}")
                puller.pull(part, head if sign == "+" else f"(-{head})")
            return
        self.line(f"{head} = {place}")
        self.line(f"{place} = 0.0")
        if sign is None:
            puller.pull(value, head)
        else:
            puller.operation(sign, target, value, head)

    def back_condition(self, node: ast.If) -> None:
        kept = self.kept.get((node, "test"))
        with self.block(f"if {kept} != 0:" if kept else f"if {self.show(node.test)}:"):
            self.enter(self.scopes.of(node, "body"), node)
            self.backward(strip(node.body))
        if node.orelse:
            with self.block("else:"):
                self.enter(self.scopes.of(node, "orelse"), node)
                self.backward(strip(node.orelse))

    # ---- loops ----------------------------------------------------------------------------------------------------------
    @contextmanager
    def loop(self, node: ast.For, backward: bool = False) -> Iterator[None]:
        """Write the head of a loop, in order or from its end."""
        heads = self.grid(node, backward) if word_of(node) == "grid" else [self.counted(node, backward)]
        depth, around = self.depth, len(self.loops)
        for head, position in heads:
            self.line(head)
            self.depth += 1
            self.loops.append(position)
        before = len(self.lines)
        yield
        if len(self.lines) == before and heads:
            self.line("pass")
        self.depth = depth
        del self.loops[around:]

    def counted(self, node: ast.For, backward: bool) -> tuple[str, tuple[str, str | None]]:
        name, args = variable_of(node.target).unique, node.iter.args  # type: ignore[attr-defined]
        start = self.show(args[0]) if len(args) > 1 else "0"
        stop = self.show(args[min(len(args) - 1, 1)])
        step = constant(args[2]) if len(args) > 2 else 1
        if type(step) is not int or step == 0:
            raise Underivable(f"the step of the loop in line {node.lineno} is no fixed number")
        count = stop if start == "0" and step == 1 else f"ceil_div(({stop}) - ({start}), {step})"
        bounds = ", ".join(map(self.show, args))
        if backward and step == 1:
            bounds = f"{stop} - 1, {'-1' if start == '0' else f'({start}) - 1'}, -1"
        elif backward:
            bounds = f"({start}) + ({count} - 1) * {step}, ({start}) - {step}, {-step}"
        fixed = all(v.kind in ("attribute", "input", "output", "local") or v in self.scopes.fixed
                    for a in args for v in names_in(a)) and not any(map(_reads_elements, args))  # fmt: skip
        at = name if start == "0" and step == 1 else f"({name} - ({start})) // {step}"
        return f"for {name} in range({bounds}):", (at, count if fixed else None)

    def grid(self, node: ast.For, backward: bool) -> list[tuple[str, tuple[str, str | None]]]:
        shape = node.iter.args[0]  # type: ignore[attr-defined]
        if isinstance(shape, ast.Attribute):
            sizes = [f"{self.show(shape)}[{k}]" for k in range(self.types.rank(shape))]
        else:
            sizes = [self.show(s) for s in (shape.elts if isinstance(shape, (ast.Tuple, ast.List)) else [shape])]
        if isinstance(node.target, ast.Tuple):
            names = [variable_of(t).unique for t in node.target.elts]
        else:
            grid = variable_of(node.target)
            names = [f"{grid.unique}__{k}_" for k in range(len(sizes))]
            self.names[grid.unique] = ", ".join(names)
            for k, name in enumerate(names):
                self.items[f"{grid.unique}[{k}]"] = name
        return [
            (f"for {n} in range({f'{s} - 1, -1, -1' if backward else s}):", (n, s))
            for n, s in zip(names, sizes, strict=True)
        ]

    # ---- keeping values ---------------------------------------------------------------------------------------------------
    def keep(self, key: tuple, value: str, dtype: str) -> None:
        """Store a value in an element for the current iteration of all loops."""
        sizes = [size for _, size in self.loops]
        if any(size is None for size in sizes):
            raise Underivable(
                f"line {key[0].lineno} overwrites what is needed, inside a loop whose bounds are not fixed"
            )
        name = self.fresh("kept")
        shape = ", ".join(f"max({size}, 0)" for size in sizes) or "1"
        self.allocations.append(f"    {name} = allocate(({shape},), {dtype})")
        self.kept[key] = f"{name}[{', '.join(at for at, _ in self.loops) or '0'}]"
        self.line(f"{self.kept[key]} = {value}")

    def dtype(self, target: ast.expr) -> str:
        variable = variable_of(target)
        if variable.is_tensor:
            return f"{variable.unique}.dtype"
        kind = self.types.kinds[variable]
        return repr({"int": "int64", "float": "float64", "bool": "bool", "bool_": "bool"}.get(kind, kind))

    def keep_old(self, node: ast.stmt) -> None:
        target = target_of(node)
        if node not in self.hoisted and variable_of(target) in self.needed and target not in self.scopes.first:
            self.keep((node, "old"), self.show(target), self.dtype(target))

    def keep_before(self, loop: ast.For) -> None:
        """Keep, before a loop, what it accumulates into and does not read but for that."""
        stores: dict[Variable, list[ast.stmt]] = {}
        for node in assignments([loop]):
            stores.setdefault(variable_of(target_of(node)), []).append(node)
        inside = {v for v in self.source.variables if v in stores or any(v.node is n for n in ast.walk(loop))}
        read = self.reads([loop])
        for variable, nodes in stores.items():
            target = target_of(nodes[0])
            same = len({unique_text(target_of(n)) for n in nodes}) == 1
            varies = (
                set(names_in(target.slice)) & inside
                if isinstance(target, ast.Subscript)
                else variable.node in set(ast.walk(loop))
            )
            if (
                variable in self.needed
                and variable not in read
                and same
                and not varies
                and not self.hoisted & set(nodes)
            ):
                self.keep((loop, unique_text(target)), self.show(target), self.dtype(target))
                self.before_loop.setdefault(loop, []).append(target)
                self.hoisted |= set(nodes)

    def leave(self, declared: set[Variable], owner: ast.AST) -> None:
        """Keep, at the end of a block, the numbers that end with it."""
        for variable in sorted(declared & self.needed, key=lambda v: v.unique):
            self.keep((owner, variable), variable.unique, self.dtype(variable.node))  # type: ignore[arg-type]

    def enter(self, declared: set[Variable], owner: ast.AST | None) -> None:
        """Begin the way back through a block: the numbers that it declares, and their gradients."""
        for variable in sorted(declared, key=lambda v: v.unique):
            if (owner, variable) in self.kept:
                self.line(f"{variable.unique} = {self.kept[owner, variable]}")
            if variable in self.active:
                self.line(f"{self.gradient_of(variable)} = 0.0")


def _accumulation(target: ast.expr, value: ast.expr) -> str | None:
    """Return the sign of ``t = t + value`` or ``t = t - value``."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, (ast.Add, ast.Sub)):
        return None
    return OPERATORS[type(value.op)] if unique_text(value.left) == unique_text(target) else None


def _reads_elements(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name) for n in ast.walk(node))
