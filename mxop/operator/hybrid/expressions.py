"""Reading expressions: names, elements of tensors, calls; each is checked, and becomes one of :mod:`.scalars`.

What is only computed when a condition holds becomes a condition: ``a if c else b``, and ``c and x[i] > 0``, where the
element may not exist otherwise.  Imports :mod:`.ir`, :mod:`.scalars` and :mod:`.words`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any

from ...errors import closest
from ...formula import Expr, const
from .ir import Assign, Builder, If, Routine
from .scalars import Variable, load, loads, node, size
from .source import Source
from .words import TABLE, WORDS, primitive

#: Python's operators as primitives.
OPERATORS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
    ast.And: "land", ast.Or: "lor", ast.Not: "lnot", ast.USub: "neg",
}  # fmt: skip
#: Words that are several primitives.
COMPOSED: dict[str, Callable[..., Expr]] = {
    "isnan": lambda x: node("ne", x, x),
    "isinf": lambda x: node("eq", node("abs", x), float("inf")),
    "isfinite": lambda x: node("lt", node("abs", x), float("inf")),
    "ceil_div": lambda a, b: node("neg", node("floordiv", node("neg", a), b)),
}
_MISPLACED = {
    "memory": "is assigned to a name", "loop": "stands after for ... in only", "block": "stands after with only",
}  # fmt: skip
_NOTHING = object()


def kind_of_call(tree: ast.AST | None) -> str | None:
    """Return the kind of the word that is called, None where none is."""
    called = isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in TABLE
    return TABLE[tree.func.id].kind if called else None  # type: ignore[union-attr]


def constant(tree: ast.expr) -> Any:
    """Return a number, string... that stands in the text (``-1`` too), or a value that equals nothing."""
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        value = constant(tree.operand)
        return -value if type(value) in (int, float) else _NOTHING
    return tree.value if isinstance(tree, ast.Constant) else _NOTHING


def items(tree: Any) -> list[ast.expr]:
    """Return the items of a tuple or a list, or the one thing that stands alone."""
    return tree.elts if isinstance(tree, (ast.Tuple, ast.List)) else [tree]


class Expressions(Builder, ast.NodeVisitor):
    """Reads one expression after another in the scopes that the statements around have made.

    `ranks` are the dimensions of the inputs (None where they are not known yet: a shape that could have any number has one),
    `lists` the values of attributes that are no numbers.  Statements go to `out`; `gone` is what was declared in a scope that
    has ended.
    """

    def __init__(self, source: Source, ranks: Mapping[str, int] | None, lists: Mapping[str, Any]):
        self.source, self.fail = source, source.fail
        self.ranks, self.lists = ranks, lists
        self.routine = Routine(source)
        self.out = self.routine.body
        self.scopes: list[dict[str, Variable]] = [{}]
        self.gone: dict[str, Variable] = {}

    def require(self, holds: object, tree: ast.AST | int, problem: str) -> None:
        """Raise for a place in the text unless something holds."""
        if not holds:
            self.fail(tree, problem)

    # ---- names ------------------------------------------------------------------------------------------------------
    def lookup(self, name: str) -> Variable | None:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def named(self, item: Any, tree: ast.AST, problem: str) -> str:
        """Return the name that something in a statement has to be."""
        self.require(isinstance(item, ast.Name), tree, problem)
        return item.id

    def use(self, tree: ast.Name) -> Variable:
        name, found = tree.id, self.lookup(tree.id)
        if found is not None:
            return found
        self.require(name not in WORDS, tree, f"{name!r} is a function and can only be called")
        if name in self.gone:
            line = self.gone[name].line
            self.fail(tree, f"variable {name!r} is used out of the scope that declares it (line {line})")
        known = closest(name, [n for scope in self.scopes for n in scope])
        self.fail(tree, f"variable {name!r} is not declared: a kernel sees its arguments and what it assigns{known}")

    def tensor(self, tree: Any, what: str) -> Variable:
        name = self.named(tree, tree, f"{what} is asked of the name of a tensor")
        variable = self.use(tree)
        self.require(variable.is_tensor, tree, f"{name!r} is no tensor and has no {what}")
        return variable

    def check_overwrite(self, tree: ast.AST, found: Variable) -> None:
        fixed = found.kind in ("loop", "grid", "attribute")
        self.require(not fixed, tree, f"{found.what} {found.name!r} is overwritten")
        self.require(not found.is_tensor, tree,
                     f"tensor {found.name!r} needs all its indices; it cannot be assigned as a whole or redefined")  # fmt: skip

    def temporary(self, tree: ast.expr) -> Variable:
        """Declare a number that has no name in the text."""
        found = self.routine.new("mx", "scalar", tree.lineno)
        found.name = ast.unparse(tree)
        self.scopes[-1][found.unique] = found
        return found

    # ---- expressions ------------------------------------------------------------------------------------------------
    def expression(self, tree: ast.expr) -> Expr:
        value = constant(tree)
        return self.visit(tree) if value is _NOTHING else self.number(tree, value)

    def generic_visit(self, tree: ast.AST) -> None:
        self.fail(tree, f"{type(tree).__name__} is not in the language")

    def number(self, tree: ast.AST, value: Any) -> Expr:
        """Return a number; floats that could be taken for integers say that they are none."""
        if isinstance(value, bool):
            return node("eq" if value else "ne", 1, 1)
        if isinstance(value, float):
            return node("real", value) if value.is_integer() else const(value)
        self.require(isinstance(value, int), tree, f"{value!r} is no number")
        self.require(-(2**63) <= value < 2**63, tree, f"{value} is no integer of 64 bits")
        return const(value)

    def operator(self, tree: ast.BinOp | ast.AugAssign) -> str:
        kind = type(tree.op)
        self.require(kind in OPERATORS, tree, f"operator {kind.__name__} is not in the language: + - * / // % ** are")
        return OPERATORS[kind]

    def visit_BinOp(self, tree: ast.BinOp) -> Expr:
        return node(self.operator(tree), self.expression(tree.left), self.expression(tree.right))

    def visit_UnaryOp(self, tree: ast.UnaryOp) -> Expr:
        self.require(not isinstance(tree.op, ast.Invert), tree, "operator ~ is not in the language")
        operand, label = self.expression(tree.operand), OPERATORS.get(type(tree.op))
        return node(label, operand) if label else operand

    def visit_Compare(self, tree: ast.Compare) -> Expr:
        self.require(all(type(op) in OPERATORS for op in tree.ops), tree, "comparisons are < <= > >= == !=")
        last = self.expression(tree.left)

        def compared(op: ast.cmpop, right: ast.expr) -> Expr:
            nonlocal last
            left, last = last, self.expression(right)
            return node(OPERATORS[type(op)], left, last)

        return self.logical(tree, "land", [partial(compared, *one) for one in zip(tree.ops, tree.comparators)])

    def visit_BoolOp(self, tree: ast.BoolOp) -> Expr:
        return self.logical(tree, OPERATORS[type(tree.op)], [partial(self.expression, part) for part in tree.values])

    def logical(self, tree: ast.expr, word: str, parts: Sequence[Callable[[], Expr]]) -> Expr:
        """Return ``a and b and ...``: elements are read only when what is before does not decide."""
        found = parts[0]()
        for read in parts[1:]:
            with self.collected() as needed:
                other = read()
            if not needed and set(loads(other)) <= set(loads(found)):
                found = node(word, found, other)
                continue
            held = self.temporary(tree).leaf
            self.out.append(Assign(held, node(word, found, found), tree.lineno))
            needed.append(Assign(held, node(word, other, other), tree.lineno))
            self.out.append(If(held if word == "land" else node("lnot", held), needed, [], tree.lineno))
            found = held
        return found

    def visit_IfExp(self, tree: ast.IfExp) -> Expr:
        test = self.expression(tree.test)
        held = self.temporary(tree).leaf
        blocks = []
        for part in (tree.body, tree.orelse):
            with self.collected() as block:
                block.append(Assign(held, self.expression(part), tree.lineno))
            blocks.append(block)
        self.out.append(If(test, *blocks, tree.lineno))
        return held

    def visit_Name(self, tree: ast.Name) -> Expr:
        variable = self.use(tree)
        self.require(not variable.is_tensor, tree, f"tensor {tree.id!r} needs all its indices")
        self.require(variable.kind != "grid", tree,
                     f"{tree.id!r} holds all indices of a grid; use it as an index, or take {tree.id}[0]")  # fmt: skip
        return variable.leaf

    def visit_Attribute(self, tree: ast.Attribute) -> None:
        of_tensors = tree.attr in ("shape", "dtype")
        self.require(of_tensors, tree, f"attribute .{tree.attr} is not in the language; tensors have .shape and .dtype")
        self.tensor(tree.value, tree.attr)
        if tree.attr == "shape":
            self.fail(tree, "a shape is used whole in grid, allocate and output_tensor only; take x.shape[0]")
        self.fail(tree, ".dtype stands in allocate and output_tensor only")

    # ---- calls ------------------------------------------------------------------------------------------------------
    def visit_Call(self, tree: ast.Call) -> Expr:
        if not isinstance(tree.func, ast.Name):
            self.fail(tree, f"function {ast.unparse(tree.func)!r} is not in the language; use its words, as in sqrt(x)")
        name, kind = tree.func.id, kind_of_call(tree)
        if kind is None:
            functions = [n for n, word in TABLE.items() if word.kind == "function"]
            self.fail(tree, f"function {name!r} is not in the language{closest(name, functions)}")
        self.require(kind == "function", tree, f"{name} {_MISPLACED.get(kind)}")
        given = self.arguments(tree)
        if name == "len":
            return self.length(given[0])
        operands = [self.expression(item) for item in given]
        if name in COMPOSED:
            return COMPOSED[name](*operands)
        return reduce(partial(node, primitive(name)), operands) if len(given) > 1 else node(primitive(name), *operands)

    def arguments(self, tree: ast.Call) -> list[ast.expr]:
        """Return what a word is called with, in the order in which it takes it."""
        name = tree.func.id  # type: ignore[attr-defined]
        word, given = TABLE[name], dict(enumerate(tree.args))
        for keyword in tree.keywords:
            self.require(word.names, tree, f"{name} takes its arguments by position")
            at = word.names.index(keyword.arg) if keyword.arg in word.names else None
            if at is None or at in given:
                self.fail(tree, f"{name} has no argument {keyword.arg!r}, or it is given twice")
            given[at] = keyword.value
        n = len(given)
        enough = word.least <= n <= word.most and all(k in given for k in range(word.least))
        self.require(enough, tree, f"{name} takes {word.takes}, {n} argument{'s' if n != 1 else ''} given")
        return [given[k] for k in sorted(given)]

    def length(self, tree: ast.expr) -> Expr:
        if isinstance(tree, ast.Attribute) and tree.attr == "shape":
            return const(self.tensor(tree.value, "len").rank or 1)
        return size(self.tensor(tree, "len"), 0)

    # ---- elements ---------------------------------------------------------------------------------------------------
    def visit_Subscript(self, tree: ast.Subscript, store: bool = False) -> Expr:
        """Read ``x[i, j]``, ``x.shape[0]`` and ``arg[0]``."""
        base: Any = tree.value
        if isinstance(base, ast.Attribute):
            return self.size(tree, base, store)
        twice = isinstance(base, ast.Subscript)
        self.require(not twice, tree, "tensors take all indices at once: write x[i, j], not x[i][j]")
        name = self.named(base, tree, "only tensors have elements")
        variable = self.use(base)
        if variable.kind in ("grid", "attribute") and not store:
            return self.item(tree, variable)
        if store and not variable.is_tensor:
            self.check_overwrite(tree, variable)
        self.require(variable.is_tensor, tree, f"{name!r} is no tensor and has no elements")
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
        certain, name = True, variable.name
        for item in tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]:
            part = isinstance(item, ast.Slice) or constant(item) in (Ellipsis, None)
            self.require(not part, tree, f"tensor {name!r} needs all its indices; slices are not in the language")
            whole = self.lookup(item.id) if isinstance(item, ast.Name) else None
            if whole is not None and whole.kind == "grid":
                found += [v.leaf for v in whole.loops]
                certain &= whole.rank is not None
            else:
                found.append(self.expression(item))
        n = len(found)
        if certain and variable.rank is None:
            variable.rank = n
        if certain and variable.rank != n:
            self.fail(tree, f"tensor {name!r} needs all its {variable.rank} indices, {n} given" if self.ranks is None else
                      f"tensor {name!r} has {variable.rank} dimensions, but is used with {n} indices")  # fmt: skip
        return found

    def size(self, tree: ast.Subscript, base: ast.Attribute, store: bool) -> Expr:
        if base.attr != "shape":
            self.visit(base)
        variable, at = self.tensor(base.value, "shape"), constant(tree.slice)
        self.require(not store, tree, "a shape cannot be assigned")
        self.require(type(at) is int, tree, "a shape is indexed by a fixed number")
        rank = variable.rank or 0
        if self.ranks is None:
            return size(variable, at)
        self.require(-rank <= at < rank, tree, f"a tensor of {rank} dimensions has no shape[{at}]")
        return size(variable, at % rank)
