"""The type of every expression of a kernel, for the dtypes of one call.

A type is a NumPy dtype's name (``'float32'``, ``'bool_'``), or ``'int'``, ``'float'``, ``'bool'`` for Python's numbers, which
take the type of the other operand.  What an operation gives is not written here: it is asked of the plain words and of
NumPy, on samples, so the compiled kernel has the types of the plain run.
Imports :mod:`.source`, :mod:`.expressions`, :mod:`.words`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ... import dtypes
from ...errors import MXNetError
from .expressions import COMPARISONS, OPERATORS, constant, index_items
from .source import Source, Variable
from .words import CONVERTERS, FUNCTIONS, NARROW

WEAK = {"int": 1, "float": 1.0, "bool": True}
_PYTHON = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow,
}  # fmt: skip


def sample(kind: str) -> Any:
    """Return a value of a type."""
    return WEAK[kind] if kind in WEAK else getattr(np, kind)(1)


def kind_of(value: Any) -> str:
    """Return the type of a value."""
    if type(value) in (int, float, bool):
        return type(value).__name__
    return "bool_" if isinstance(value, np.bool_) else np.asarray(value).dtype.name


@lru_cache(maxsize=4096)
def applied(function: str, *kinds: str) -> str:
    """Return the type that an operator (``'+'``) or a word (``'sqrt'``) gives."""
    call = _PYTHON.get(function) or FUNCTIONS[function][0]
    with np.errstate(all="ignore"):
        return kind_of(call(*map(sample, kinds)))


def joined(a: str, b: str) -> str | None:
    """Return the type of a variable that is assigned both, None when they differ."""
    if a == b:
        return a
    if a in WEAK and b in WEAK:
        return applied("+", a, b)
    if a not in WEAK and b not in WEAK:
        return None
    weak, strong = (a, b) if a in WEAK else (b, a)
    return strong if applied("+", weak, strong) == strong else None


def is_integer(kind: str) -> bool:
    """Tell whether a type can be an index."""
    return kind == "int" or kind.startswith(("int", "uint"))


def element_kind(code: int) -> str:
    """Return the type of a tensor's elements while a kernel works on them."""
    if code in NARROW:
        return "float32"
    return "bool_" if code == dtypes.BOOL else dtypes.NAMES[code]


class Types:
    """Types of a kernel's names and expressions.

    Parameters
    ----------
    source : Source
        Checked.
    in_types : sequence of int
        Type codes of the inputs.
    ranks : sequence of int
        Numbers of dimensions of the inputs.
    attributes : sequence
        Values of the attributes.
    """

    def __init__(self, source: Source, in_types: Sequence[int], ranks: Sequence[int], attributes: Sequence[Any]):
        self.source = source
        self.codes: dict[Variable, int] = dict(zip(source.inputs, in_types))
        self.ranks: dict[Variable, int] = dict(zip(source.inputs, ranks))
        self.values: dict[Variable, Any] = dict(zip(source.attributes, attributes))
        self.kinds: dict[Variable, str] = {
            v: kind_of(a) for v, a in self.values.items() if type(a) in (int, float, bool)
        }
        for variable, rank in self.ranks.items():
            if variable.rank not in (None, rank):
                source.fail(
                    _first_use(source, variable), f"tensor {variable.name!r} has {rank} dimensions, "
                    f"but is used with {variable.rank} indices"
                )  # fmt: skip
        self._tensors()
        while self._scalars():
            pass

    def _tensors(self) -> None:
        self.codes = declared_codes(self.source, [self.codes[v] for v in self.source.inputs])
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                variable = node.targets[0].variable  # type: ignore[attr-defined]
                if variable.kind in ("output", "local"):
                    self.ranks[variable] = self.rank(variable.shape)
                    if variable.rank not in (None, self.ranks[variable]):
                        self.source.fail(node, f"tensor {variable.name!r} has {self.ranks[variable]} dimensions, but is "
                                         f"used with {variable.rank} indices")  # fmt: skip

    def rank(self, shape: ast.expr) -> int:
        """Return the rank of a shape's expression."""
        if isinstance(shape, ast.Attribute):
            return self.ranks[shape.value.variable]  # type: ignore[attr-defined]
        return len(shape.elts) if isinstance(shape, (ast.Tuple, ast.List)) else 1

    def _scalars(self) -> bool:
        """Go once through all assignments; tell whether a type has changed."""
        changed = False
        for node in _in_order(self.source.tree):
            if isinstance(node, ast.For):
                targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
                for target in targets:
                    self.kinds[target.variable] = "int"  # type: ignore[attr-defined]
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            if not isinstance(node, (ast.Assign, ast.AugAssign)) or not isinstance(target, ast.Name):
                continue
            variable = target.variable  # type: ignore[attr-defined]
            if variable.is_tensor:
                continue
            found = self.of(node.value)
            if isinstance(node, ast.AugAssign):
                found = self._apply(node, OPERATORS[type(node.op)], self.kinds[variable], found)
            old = self.kinds.get(variable)
            new = found if old is None else joined(old, found)
            if new is None:
                self.source.fail(
                    node,
                    f"variable {variable.name!r} changes its type from {old} to {found}; convert, as in {old}(...)",
                )
            changed |= new != old
            self.kinds[variable] = new
        return changed

    def _apply(self, node: ast.AST, function: str, *kinds: str) -> str:
        try:
            return applied(function, *kinds)
        except (TypeError, ValueError) as problem:
            self.source.fail(node, f"{function} of {', '.join(kinds)}: {str(problem).splitlines()[0]}")

    def of(self, node: ast.expr) -> str:
        """Return the type of an expression."""
        match node:
            case ast.Constant():
                return type(node.value).__name__
            case ast.Name():
                return self.kinds[node.variable]  # type: ignore[attr-defined]
            case ast.BinOp():
                return self._apply(node, OPERATORS[type(node.op)], self.of(node.left), self.of(node.right))
            case ast.UnaryOp(op=ast.Not()):
                return "bool"
            case ast.UnaryOp():
                kind = self.of(node.operand)
                return self._apply(node, "-", kind, kind) if kind != "bool" else "int"
            case ast.Compare():
                parts = {self.of(p) for p in (node.left, *node.comparators)}
                return "bool" if parts <= set(WEAK) else "bool_"
            case ast.BoolOp():
                return self._logical(node)
            case ast.IfExp():
                a, b = self.of(node.body), self.of(node.orelse)
                found = joined(a, b)
                if found is None:
                    self.source.fail(node, f"the two sides have types {a} and {b}; convert one, as in {a}(...)")
                return found
            case ast.Call():
                return self._call(node)
            case ast.Subscript():
                return self._element(node)
        raise AssertionError(ast.dump(node))

    def _logical(self, node: ast.BoolOp) -> str:
        kinds = [self.of(p) for p in node.values]
        if not all(k in ("bool", "bool_") for k in kinds):
            self.source.fail(node, "'and' and 'or' take comparisons")
        return "bool" if all(k == "bool" for k in kinds) else "bool_"

    def _call(self, node: ast.Call) -> str:
        name = node.func.id  # type: ignore[attr-defined]
        if name == "len":
            return "int"
        kinds = [self.of(a) for a in node.args]
        if name in CONVERTERS:
            return element_kind(CONVERTERS[name])
        if len(kinds) > 2:  # max and min of many, two by two
            found = kinds[0]
            for kind in kinds[1:]:
                found = self._apply(node, name, found, kind)
            return found
        return self._apply(node, name, *kinds)

    def _element(self, node: ast.Subscript) -> str:
        if isinstance(node.value, ast.Attribute):
            rank, at = self.ranks[node.value.value.variable], constant(node.slice)  # type: ignore[attr-defined]
            if not -rank <= at < rank:
                self.source.fail(node, f"a tensor of {rank} dimensions has no shape[{at}]")
            return "int"
        variable = node.value.variable  # type: ignore[attr-defined]
        if variable.kind == "grid":
            return "int"
        if variable.kind == "attribute":
            return kind_of(self.attribute_item(node))
        self.check_indices(node, variable)
        return element_kind(self.codes[variable])

    def attribute_item(self, node: ast.Subscript) -> Any:
        """Return an item of an attribute that is a list."""
        value, at = self.values[node.value.variable], constant(node.slice)  # type: ignore[attr-defined]
        if not isinstance(value, (tuple, list)) or at >= len(value):
            self.source.fail(node, f"attribute {ast.unparse(node.value)} = {value!r} has no item {at}")
        return value[at]

    def check_indices(self, node: ast.Subscript, variable: Variable) -> None:
        """Raise unless an element has all its indices, which are integers."""
        count = 0
        for item in index_items(node):
            grid = getattr(item, "variable", None)
            if grid is not None and grid.kind == "grid":
                count += self.grid_rank(grid)
                continue
            count += 1
            kind = self.of(item)
            if not is_integer(kind):
                self.source.fail(node, f"index {ast.unparse(item)} is of type {kind}, not an integer")
        if count != self.ranks[variable]:
            self.source.fail(
                node, f"tensor {variable.name!r} needs all its {self.ranks[variable]} indices, {count} given"
            )

    def grid_rank(self, variable: Variable) -> int:
        """Return the number of loops that a grid's variable stands for."""
        found = self.ranks.get(variable)
        if found is None:
            loop = next(n for n in ast.walk(self.source.tree) if isinstance(n, ast.For) and n.target is variable.node)
            found = self.ranks[variable] = self.rank(loop.iter.args[0])  # type: ignore[attr-defined]
        return found

    def common(self, kinds: Sequence[str]) -> str:
        """Return the type in which values are compared."""
        if all(k in ("bool", "bool_") for k in kinds):
            return "bool_"
        if all(is_integer(k) or k in ("bool", "bool_") for k in kinds):
            return "int64"
        found = kinds[0]
        for kind in kinds[1:]:
            found = applied("+", found, kind)
        return found


def declared_codes(source: Source, in_types: Sequence[int]) -> dict[Variable, int]:
    """Return the type code of every tensor, from those of the inputs."""
    found = dict(zip(source.inputs, in_types))
    for variable in source.variables:
        if variable.kind in ("output", "local"):
            found[variable] = _declared_code(source, variable, found)
    return found


def _declared_code(source: Source, variable: Variable, known: dict[Variable, int]) -> int:
    match variable.dtype:
        case ast.Attribute(attr="dtype", value=ast.Name() as tensor) if hasattr(tensor, "variable"):
            return known[tensor.variable]
        case ast.Attribute(attr=name) | ast.Constant(value=name) | ast.Name(id=name):
            spelled: Any = name
        case _:
            spelled = None
    try:
        return dtypes.code_of(spelled)
    except MXNetError as problem:
        source.fail(variable.node, str(problem))


def comparison(op: ast.cmpop) -> str:
    """Return a comparison's sign."""
    return COMPARISONS[type(op)]


def _in_order(node: ast.AST) -> list[ast.AST]:
    """Return all nodes, statements in the order of the text."""
    found = [node]
    for child in ast.iter_child_nodes(node):
        found += _in_order(child)
    return found


def _first_use(source: Source, variable: Variable) -> ast.AST:
    for node in _in_order(source.tree):
        if isinstance(node, ast.Subscript) and getattr(node.value, "variable", None) is variable:
            return node
    return source.tree
