"""Reading expressions: names, elements of tensors, calls; each is checked, and becomes one of :mod:`.ir`.

What is only computed when a condition holds becomes a condition: ``a if c else b``, and ``c and x[i] > 0``, where the
element may not exist otherwise.  Imports :mod:`.ir` and :mod:`.words`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from ...errors import closest
from ...formula import Expr, const
from .ir import Assign, If, Routine, Statement, Variable
from .scalars import load, loads, node, size
from .source import Source
from .words import BLOCKS, FUNCTIONS, MEMORY, SCHEDULES, WORDS, primitive

OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow",
}  # fmt: skip
COMPARISONS = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}


class Expressions:
    """Reads one expression after another in the scopes that the statements around have made.

    Attributes
    ----------
    ranks : mapping of str to int, or None
        Dimensions of the inputs.  Where they are not known yet, a shape that could have any number has one.
    lists : mapping of str to sequence
        Values of the attributes that are no numbers.
    out : list of Statement
        Where statements go.
    """

    source: Source
    routine: Routine
    fail: Callable[..., NoReturn]
    ranks: Mapping[str, int] | None
    lists: Mapping[str, Any]
    out: list[Statement]
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
                line = self.gone[node.id].line
                self.fail(node, f"variable {node.id!r} is used out of the scope that declares it (line {line})")
            known = [n for scope in self.scopes for n in scope]
            self.fail(
                node, f"variable {node.id!r} is not declared: a kernel sees its arguments and what it assigns"
                f"{closest(node.id, known)}"
            )  # fmt: skip
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

    def temporary(self, tree: ast.expr) -> Variable:
        """Declare a number that has no name in the text."""
        unique = f"mx__{len(self.routine.variables)}"
        found = Variable(ast.unparse(tree), "scalar", unique, tree.lineno)
        self.scopes[-1][unique] = found
        self.routine.variables.append(found)
        return found

    def inside(self, read: Callable, *given: Any) -> tuple[Any, list[Statement]]:
        """Return what reading a part of the text gives, and the statements that it needs before."""
        before, self.out = self.out, []
        found = read(*given)
        found, self.out = (found, self.out), before
        return found

    # ---- expressions ------------------------------------------------------------------------------------------------
    def expression(self, tree: ast.expr) -> Expr:
        value = constant(tree)
        if type(value) in (int, float, bool):
            return self.number(tree, value)
        match tree:
            case ast.Constant():
                self.fail(tree, f"{tree.value!r} is no number")
            case ast.Name():
                return self.bare(tree)
            case ast.BinOp():
                return node(self.operator(tree), self.expression(tree.left), self.expression(tree.right))
            case ast.UnaryOp():
                if isinstance(tree.op, ast.Invert):
                    self.fail(tree, "operator ~ is not in the language")
                operand = self.expression(tree.operand)
                label = {ast.Not: "lnot", ast.USub: "neg"}.get(type(tree.op))
                return operand if label is None else node(label, operand)
            case ast.Compare():
                return self.comparison(tree)
            case ast.BoolOp():
                word = "land" if isinstance(tree.op, ast.And) else "lor"
                return self.logical(tree, word, [lambda part=part: self.expression(part) for part in tree.values])
            case ast.IfExp():
                return self.choice(tree)
            case ast.Call():
                return self.call(tree)
            case ast.Subscript():
                return self.element(tree, store=False)
            case ast.Attribute():
                self.attribute(tree)
        self.fail(tree, f"{type(tree).__name__} is not in the language")

    def number(self, tree: ast.AST, value: Any) -> Expr:
        """Return a number; floats that could be taken for integers say that they are none."""
        if isinstance(value, bool):
            return node("eq" if value else "ne", 1, 1)
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            self.fail(tree, f"{value} is no integer of 64 bits")
        return node("real", value) if isinstance(value, float) and value.is_integer() else const(value)

    def operator(self, tree: ast.BinOp | ast.AugAssign) -> str:
        found = OPERATORS.get(type(tree.op))  # type: ignore[call-overload]
        if found is None:
            self.fail(tree, f"operator {type(tree.op).__name__} is not in the language: + - * / // % ** are")
        return found

    def comparison(self, tree: ast.Compare) -> Expr:
        if any(type(op) not in COMPARISONS for op in tree.ops):
            self.fail(tree, "comparisons are < <= > >= == !=")
        last = self.expression(tree.left)

        def compared(op: ast.cmpop, right: ast.expr) -> Expr:
            nonlocal last
            left, last = last, self.expression(right)
            return node(COMPARISONS[type(op)], left, last)

        parts = [lambda op=op, r=r: compared(op, r) for op, r in zip(tree.ops, tree.comparators, strict=True)]
        return self.logical(tree, "land", parts)

    def logical(self, tree: ast.expr, word: str, parts: Sequence[Callable[[], Expr]]) -> Expr:
        """Return ``a and b and ...``: elements are read only when what is before does not decide."""
        found = parts[0]()
        for read in parts[1:]:
            other, needed = self.inside(read)
            if not needed and set(loads(other)) <= set(loads(found)):
                found = node(word, found, other)
                continue
            held = self.temporary(tree).leaf
            self.out.append(Assign(held, node(word, found, found), tree.lineno))
            needed.append(Assign(held, node(word, other, other), tree.lineno))
            self.out.append(If(held if word == "land" else node("lnot", held), needed, [], tree.lineno))
            found = held
        return found

    def choice(self, tree: ast.IfExp) -> Expr:
        test = self.expression(tree.test)
        held = self.temporary(tree).leaf
        blocks = []
        for part in (tree.body, tree.orelse):
            value, block = self.inside(self.expression, part)
            blocks.append([*block, Assign(held, value, tree.lineno)])
        self.out.append(If(test, *blocks, tree.lineno))
        return held

    def bare(self, tree: ast.Name) -> Expr:
        variable = self.use(tree)
        if variable.is_tensor:
            self.fail(tree, f"tensor {tree.id!r} needs all its indices")
        if variable.kind == "grid":
            self.fail(tree, f"{tree.id!r} holds all indices of a grid; use it as an index, or take {tree.id}[0]")
        return variable.leaf

    def attribute(self, tree: ast.Attribute) -> None:
        if tree.attr not in ("shape", "dtype"):
            self.fail(tree, f"attribute .{tree.attr} is not in the language; tensors have .shape and .dtype")
        self.tensor(tree.value, tree.attr)
        if tree.attr == "shape":
            self.fail(tree, "a shape is used whole in grid, allocate and output_tensor only; take x.shape[0]")
        self.fail(tree, ".dtype stands in allocate and output_tensor only")

    def tensor(self, tree: ast.expr, what: str) -> Variable:
        if not isinstance(tree, ast.Name):
            self.fail(tree, f"{what} is asked of the name of a tensor")
        variable = self.use(tree)
        if not variable.is_tensor:
            self.fail(tree, f"{tree.id!r} is no tensor and has no {what}")
        return variable

    # ---- calls ------------------------------------------------------------------------------------------------------
    def call(self, tree: ast.Call) -> Expr:
        if not isinstance(tree.func, ast.Name):
            self.fail(tree, f"function {ast.unparse(tree.func)!r} is not in the language; use its words, as in sqrt(x)")
        name = tree.func.id
        if name in MEMORY:
            self.fail(tree, f"{name} is assigned to a name")
        if name in SCHEDULES or name in BLOCKS or name == "grid":
            self.fail(tree, f"{name} stands after {'with' if name in BLOCKS else 'for ... in'} only")
        if name not in FUNCTIONS or self.lookup(name) is not None:
            self.fail(tree, f"function {name!r} is not in the language{closest(name, FUNCTIONS)}")
        _, least, most = FUNCTIONS[name]
        if tree.keywords or not least <= len(tree.args) <= most:
            wanted = str(least) if least == most else f"at least {least}"
            self.fail(tree, f"{name} takes {wanted} argument{'s' if wanted != '1' else ''}, "
                      f"{len(tree.args) + len(tree.keywords)} given")  # fmt: skip
        if name == "len":
            return self.length(tree.args[0])
        args = [self.expression(a) for a in tree.args]
        if name in COMPOSED:
            return COMPOSED[name](*args)
        found = node(primitive(name), *args[:2])
        for other in args[2:]:
            found = node(primitive(name), found, other)
        return found

    def length(self, tree: ast.expr) -> Expr:
        if isinstance(tree, ast.Attribute) and tree.attr == "shape":
            return const(self.tensor(tree.value, "len").rank or 1)
        return size(self.tensor(tree, "len"), 0)

    # ---- elements ---------------------------------------------------------------------------------------------------
    def element(self, tree: ast.Subscript, store: bool) -> Expr:
        """Read ``x[i, j]``, ``x.shape[0]`` and ``arg[0]``."""
        base = tree.value
        if isinstance(base, ast.Attribute):
            return self.size(tree, base, store)
        if isinstance(base, ast.Subscript):
            self.fail(tree, "tensors take all indices at once: write x[i, j], not x[i][j]")
        if not isinstance(base, ast.Name):
            self.fail(tree, "only tensors have elements")
        variable = self.use(base)
        if variable.kind in ("grid", "attribute") and not store:
            return self.item(tree, variable)
        if not variable.is_tensor:
            if store:
                self.check_overwrite(tree, variable)
            self.fail(tree, f"{base.id!r} is no tensor and has no elements")
        variable.written |= store
        return load(variable, self.indices(tree, variable))

    def item(self, tree: ast.Subscript, variable: Variable) -> Expr:
        """Return an index of a grid, or a number of an attribute that is a list."""
        at, n = constant(tree.slice), variable.rank
        if type(at) is not int or at < 0 or (n is not None and at >= n):
            self.fail(tree, f"{variable.name!r} is indexed by a fixed number from 0{f' to {n - 1}' if n else ''}")
        if variable.kind == "grid":
            return variable.loops[min(at, len(variable.loops) - 1)].leaf
        if self.ranks is None:
            return const(1)
        value = self.lists.get(variable.name)
        if not isinstance(value, (tuple, list)) or at >= len(value):
            self.fail(tree, f"attribute {variable.name} = {value!r} has no item {at}")
        return self.number(tree, value[at])

    def indices(self, tree: ast.Subscript, variable: Variable) -> list[Expr]:
        found: list[Expr] = []
        certain = True
        for item in tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]:
            if isinstance(item, ast.Slice) or constant(item) is Ellipsis or constant(item) is None:
                self.fail(tree, f"tensor {variable.name!r} needs all its indices; slices are not in the language")
            whole = self.lookup(item.id) if isinstance(item, ast.Name) else None
            if whole is not None and whole.kind == "grid":
                found += [v.leaf for v in whole.loops]
                certain &= whole.rank is not None
            else:
                found.append(self.expression(item))
        if certain and variable.rank is None:
            variable.rank = len(found)
        if certain and variable.rank != len(found):
            n, name = variable.rank, variable.name
            self.fail(tree, f"tensor {name!r} needs all its {n} indices, {len(found)} given" if self.ranks is None else
                      f"tensor {name!r} has {n} dimensions, but is used with {len(found)} indices")  # fmt: skip
        return found

    def size(self, tree: ast.Subscript, base: ast.Attribute, store: bool) -> Expr:
        if base.attr != "shape":
            self.attribute(base)
        variable = self.tensor(base.value, "shape")
        if store:
            self.fail(tree, "a shape cannot be assigned")
        at = constant(tree.slice)
        if type(at) is not int:
            self.fail(tree, "a shape is indexed by a fixed number")
        if self.ranks is None:
            return size(variable, at)
        rank = variable.rank or 0
        if not -rank <= at < rank:
            self.fail(tree, f"a tensor of {rank} dimensions has no shape[{at}]")
        return size(variable, at % rank)


#: Words that are several primitives.
COMPOSED: dict[str, Callable[..., Expr]] = {
    "isnan": lambda x: node("ne", x, x),
    "isinf": lambda x: node("eq", node("abs", x), float("inf")),
    "isfinite": lambda x: node("lt", node("abs", x), float("inf")),
    "ceil_div": lambda a, b: node("neg", node("floordiv", node("neg", a), b)),
}


def constant(tree: ast.expr) -> Any:
    """Return a number, string... that stands in the text (``-1`` too), or a value that equals nothing."""
    if isinstance(tree, ast.Constant):
        return tree.value
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub) and isinstance(tree.operand, ast.Constant):
        value = tree.operand.value
        return -value if type(value) in (int, float) else _NOTHING
    return _NOTHING


_NOTHING = object()
