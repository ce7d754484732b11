"""The checks of expressions: names, elements of tensors, calls.  Imports :mod:`.source` and :mod:`.words`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ...errors import closest
from .source import Source, Variable
from .words import BLOCKS, FUNCTIONS, MEMORY, SCHEDULES, WORDS

OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
}  # fmt: skip
COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


class Expressions:
    """Checks one expression after another in the scopes that the statements around have made."""

    source: Source
    fail: Callable
    scopes: list[dict[str, Variable]]
    gone: dict[str, Variable]  # declared in a scope that has ended

    # ---- names ------------------------------------------------------------------------------------------------------
    def lookup(self, name: str) -> Variable | None:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def use(self, node: ast.Name) -> Variable:
        found = self.lookup(node.id)
        if found is None:
            if node.id in WORDS:
                self.fail(node, f"{node.id!r} is a function and can only be called")
            if node.id in self.gone:
                line = getattr(self.gone[node.id].node, "lineno", "?")
                self.fail(node, f"variable {node.id!r} is used out of the scope that declares it (line {line})")
            known = [n for scope in self.scopes for n in scope]
            self.fail(
                node, f"variable {node.id!r} is not declared: a kernel sees its arguments and what it assigns"
                f"{closest(node.id, known)}"
            )  # fmt: skip
        node.variable = found  # type: ignore[attr-defined]
        return found

    def check_overwrite(self, node: ast.AST, found: Variable) -> None:
        if found.kind in ("loop", "grid"):
            self.fail(node, f"loop variable {found.name!r} is overwritten")
        if found.kind == "attribute":
            self.fail(node, f"attribute {found.name!r} is overwritten")
        if found.is_tensor:
            self.fail(
                node, f"tensor {found.name!r} needs all its indices; it cannot be assigned as a whole or redefined"
            )

    # ---- expressions ------------------------------------------------------------------------------------------------
    def expression(self, node: ast.expr) -> None:
        match node:
            case ast.Constant():
                if type(node.value) not in (int, float, bool):
                    self.fail(node, f"{node.value!r} is no number")
            case ast.Name():
                self.bare(node)
            case ast.BinOp():
                if type(node.op) not in OPERATORS:
                    self.fail(node, f"operator {type(node.op).__name__} is not in the language: + - * / // % ** are")
                self.expression(node.left)
                self.expression(node.right)
            case ast.UnaryOp():
                if isinstance(node.op, ast.Invert):
                    self.fail(node, "operator ~ is not in the language")
                self.expression(node.operand)
            case ast.Compare():
                if any(type(op) not in COMPARISONS for op in node.ops):
                    self.fail(node, "comparisons are < <= > >= == !=")
                for part in (node.left, *node.comparators):
                    self.expression(part)
            case ast.BoolOp():
                for part in node.values:
                    self.expression(part)
            case ast.IfExp():
                for part in (node.test, node.body, node.orelse):
                    self.expression(part)
            case ast.Call():
                self.call(node)
            case ast.Subscript():
                self.element(node, store=False)
            case ast.Attribute():
                self.attribute(node)
            case _:
                self.fail(node, f"{type(node).__name__} is not in the language")

    def bare(self, node: ast.Name) -> None:
        variable = self.use(node)
        if variable.is_tensor:
            self.fail(node, f"tensor {node.id!r} needs all its indices")
        if variable.kind == "grid":
            self.fail(node, f"{node.id!r} holds all indices of a grid; use it as an index, or take {node.id}[0]")

    def attribute(self, node: ast.Attribute) -> None:
        if node.attr not in ("shape", "dtype"):
            self.fail(node, f"attribute .{node.attr} is not in the language; tensors have .shape and .dtype")
        self.tensor(node.value, node.attr)
        if node.attr == "shape":
            self.fail(node, "a shape is used whole in grid, allocate and output_tensor only; take x.shape[0]")
        self.fail(node, ".dtype stands in allocate and output_tensor only")

    def tensor(self, node: ast.expr, what: str) -> Variable:
        if not isinstance(node, ast.Name):
            self.fail(node, f"{what} is asked of the name of a tensor")
        variable = self.use(node)
        if not variable.is_tensor:
            self.fail(node, f"{node.id!r} is no tensor and has no {what}")
        return variable

    def call(self, node: ast.Call) -> None:
        if not isinstance(node.func, ast.Name):
            self.fail(node, f"function {ast.unparse(node.func)!r} is not in the language; use its words, as in sqrt(x)")
        name = node.func.id
        if name in MEMORY:
            self.fail(node, f"{name} is assigned to a name")
        if name in SCHEDULES or name in BLOCKS or name == "grid":
            self.fail(node, f"{name} stands after {'with' if name in BLOCKS else 'for ... in'} only")
        if name not in FUNCTIONS or self.lookup(name) is not None:
            self.fail(node, f"function {name!r} is not in the language{closest(name, FUNCTIONS)}")
        _, least, most = FUNCTIONS[name]
        if node.keywords or not least <= len(node.args) <= most:
            wanted = str(least) if least == most else f"at least {least}"
            self.fail(node, f"{name} takes {wanted} argument{'s' if wanted != '1' else ''}, "
                      f"{len(node.args) + len(node.keywords)} given")  # fmt: skip
        if name == "len":
            argument = node.args[0]
            if isinstance(argument, ast.Attribute) and argument.attr == "shape":
                argument = argument.value
            self.tensor(argument, "len")
            return
        for arg in node.args:
            self.expression(arg)

    def element(self, node: ast.Subscript, store: bool) -> None:
        """Check ``x[i, j]``, ``x.shape[0]`` and ``arg[0]``."""
        base = node.value
        if isinstance(base, ast.Attribute):
            self.size(node, base, store)
            return
        if isinstance(base, ast.Subscript):
            self.fail(node, "tensors take all indices at once: write x[i, j], not x[i][j]")
        if not isinstance(base, ast.Name):
            self.fail(node, "only tensors have elements")
        variable = self.use(base)
        if variable.kind in ("grid", "attribute") and not store:
            at = constant(node.slice)
            if type(at) is not int or at < 0 or (variable.rank is not None and at >= variable.rank):
                self.fail(node, f"{base.id!r} is indexed by a fixed number from 0"
                          + (f" to {variable.rank - 1}" if variable.rank is not None else ""))  # fmt: skip
            return
        if not variable.is_tensor:
            if store:
                self.check_overwrite(node, variable)
            self.fail(node, f"{base.id!r} is no tensor and has no elements")
        self.indices(node, variable)
        variable.written |= store

    def indices(self, node: ast.Subscript, variable: Variable) -> None:
        items = index_items(node)
        count: int | None = 0
        for item in items:
            if isinstance(item, ast.Slice) or constant(item) is Ellipsis or constant(item) is None:
                self.fail(node, f"tensor {variable.name!r} needs all its indices; slices are not in the language")
            whole = self.lookup(item.id) if isinstance(item, ast.Name) else None
            if whole is not None and whole.kind == "grid":
                self.use(item)  # type: ignore[arg-type]
                count = None if whole.rank is None or count is None else count + whole.rank
            else:
                self.expression(item)
                count = None if count is None else count + 1
        if count is None:
            return
        if variable.rank is None:
            variable.rank = count
        elif variable.rank != count:
            self.fail(node, f"tensor {variable.name!r} needs all its {variable.rank} indices, {count} given")

    def size(self, node: ast.Subscript, base: ast.Attribute, store: bool) -> None:
        if base.attr != "shape":
            self.attribute(base)
        self.tensor(base.value, "shape")
        if store:
            self.fail(node, "a shape cannot be assigned")
        if type(constant(node.slice)) is not int:
            self.fail(node, "a shape is indexed by a fixed number")


def index_items(node: ast.Subscript) -> list[ast.expr]:
    """Return the indices of an element."""
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def constant(node: ast.expr) -> Any:
    """Return a number, string... that stands in the text (``-1`` too), or a value that equals nothing."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = node.operand.value
        return -value if type(value) in (int, float) else _NOTHING
    return _NOTHING


_NOTHING = object()
