"""What follows from the shapes of one call: the shapes of a kernel's tensors, and whether every index stays inside them.

Integers are followed as intervals. Where all indices are proven to lie inside, the kernel runs without checks; otherwise it
runs with them, and raises IndexError as plain Python would.  Imports :mod:`.source`, :mod:`.expressions`, :mod:`.races`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from .expressions import constant, index_items
from .races import word_of
from .source import Source, Variable

Interval = tuple[int, int]


class Shapes:
    """Shapes of one call.

    Attributes
    ----------
    of : dict of Variable to list of intervals
    safe : bool
        Whether no index can be outside of its tensor (or negative).
    empty : bool
        Whether a tensor may have no elements.
    """

    def __init__(self, source: Source, shapes: Sequence[tuple[int, ...]], attributes: Sequence[Any]):
        self.source = source
        self.safe = True
        self.of: dict[Variable, list[Interval] | None] = {v: [(n, n) for n in s] for v, s in zip(source.inputs, shapes)}
        self.numbers: dict[Variable, Interval | None] = {}
        self.lists: dict[Variable, Any] = {}
        for variable, value in zip(source.attributes, attributes):
            if type(value) in (int, bool):
                self.numbers[variable] = (int(value), int(value))
            elif isinstance(value, (tuple, list)):
                self.lists[variable] = value
        self.grids: dict[Variable, list[Interval]] = {}
        self.assigned = _assignment_counts(source)
        self.block(source.tree.body)
        self.empty = any(low <= 0 for shape in self.of.values() for low, _ in shape or ())

    def results(self) -> list[tuple[int, ...]]:
        """Return the shapes of the outputs.

        Raises
        ------
        HybridError
            When one depends on more than shapes and attributes.
        """
        found = []
        for variable in self.source.results:
            shape = self.of.get(variable)
            if shape is None or any(low != high for low, high in shape):
                self.source.fail(variable.node, f"the shape of output {variable.name!r} does not follow from the shapes of "
                                 "the inputs and the attributes")  # fmt: skip
            found.append(tuple(low for low, _ in shape))
        return found

    # ---- statements -------------------------------------------------------------------------------------------------
    def block(self, statements: list[ast.stmt]) -> None:
        for node in statements:
            match node:
                case ast.Assign(targets=[ast.Name() as target]):
                    self.assign(target.variable, node)  # type: ignore[attr-defined]
                case ast.Assign(targets=[target]):
                    self.visit(node.value)
                    self.visit(target)
                case ast.AugAssign():
                    self.visit(node.value)
                    self.visit(node.target)
                case ast.For():
                    self.loop(node)
                case ast.If():
                    self.visit(node.test)
                    self.block(node.body)
                    self.block(node.orelse)
                case ast.With():
                    self.block(node.body)

    def assign(self, variable: Variable, node: ast.Assign) -> None:
        if variable.is_tensor:
            self.of[variable] = self.shape(variable.shape)
            if self.of[variable] is None or any(low < 0 for low, _ in self.of[variable]):  # type: ignore[union-attr]
                if variable.kind == "output":
                    self.source.fail(node, f"the shape of output {variable.name!r} does not follow from the shapes of the "
                                     "inputs and the attributes")  # fmt: skip
                self.safe = False
            return
        self.visit(node.value)
        once = self.assigned.get(variable, 0) == 1
        self.numbers[variable] = self.value(node.value) if once else None

    def shape(self, node: ast.expr | None) -> list[Interval] | None:
        if isinstance(node, ast.Attribute):
            return self.of.get(node.value.variable)  # type: ignore[attr-defined]
        items = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
        found = [self.value(item) for item in items]  # type: ignore[arg-type]
        return None if any(f is None for f in found) else found  # type: ignore[return-value]

    def loop(self, node: ast.For) -> None:
        args = node.iter.args  # type: ignore[attr-defined]
        if word_of(node) == "grid":
            sizes = self.shape(args[0])
            ranges = None if sizes is None else [(0, high - 1) for _, high in sizes]
            empty = sizes is not None and any(high <= 0 for _, high in sizes)
            if isinstance(node.target, ast.Tuple):
                for k, target in enumerate(node.target.elts):
                    self.numbers[target.variable] = None if ranges is None else ranges[k]  # type: ignore[attr-defined]
            elif ranges is not None:
                self.grids[node.target.variable] = ranges  # type: ignore[attr-defined]
        else:
            for arg in args:
                self.visit(arg)
            found = self.range([self.value(a) for a in args])
            empty = found is not None and found[0] > found[1]
            self.numbers[node.target.variable] = found  # type: ignore[attr-defined]
        if not empty:
            self.block(node.body)

    def range(self, args: list[Interval | None]) -> Interval | None:
        """Return the values of a loop's variable; (0, -1) of a loop that never runs."""
        if any(a is None for a in args):
            return None
        start: Any = args[0] if len(args) > 1 else (0, 0)
        stop: Any = args[1] if len(args) > 1 else args[0]
        step: Any = args[2] if len(args) > 2 else (1, 1)
        if step[0] > 0:
            low, high = start[0], stop[1] - 1
        elif step[1] < 0:
            low, high = stop[0] + 1, start[1]
        else:
            return None
        return (low, high) if low <= high else (0, -1)

    # ---- expressions ------------------------------------------------------------------------------------------------
    def visit(self, node: ast.expr) -> None:
        """Look at every element in an expression."""
        for part in ast.walk(node):
            if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name) and part.value.variable.is_tensor:  # type: ignore[attr-defined]
                self.element(part)

    def element(self, node: ast.Subscript) -> None:
        shape = self.of.get(node.value.variable)  # type: ignore[attr-defined]
        found: list[Interval | None] = []
        for item in index_items(node):
            grid = getattr(item, "variable", None)
            if grid is not None and grid.kind == "grid":
                found += self.grids.get(grid, [None])
            else:
                found.append(self.value(item))
        if shape is None or len(found) != len(shape):
            self.safe = False
            return
        for index, size in zip(found, shape):
            if index is None or index[0] < 0 or index[1] >= size[0]:
                self.safe = False

    def value(self, node: ast.expr) -> Interval | None:
        """Return the interval of an integer expression, None when it is not known."""
        fixed = constant(node)
        if type(fixed) is int:
            return fixed, fixed
        match node:
            case ast.Name():
                return self.numbers.get(node.variable)  # type: ignore[attr-defined]
            case ast.Subscript():
                return self._item(node)
            case ast.BinOp():
                return self._operation(node.op, self.value(node.left), self.value(node.right))
            case ast.UnaryOp(op=ast.USub()):
                return self._operation(ast.Sub(), (0, 0), self.value(node.operand))
            case ast.Call(func=ast.Name(id="len")):
                return self._length(node.args[0])
            case ast.Call(func=ast.Name(id="max" | "min" as name)):
                parts = [self.value(a) for a in node.args]
                if any(p is None for p in parts):
                    return None
                pick = max if name == "max" else min
                return pick(p[0] for p in parts), pick(p[1] for p in parts)  # type: ignore[index]
            case ast.Call(func=ast.Name(id="ceil_div")):
                up = self._operation(ast.FloorDiv(), self._operation(ast.Sub(), (0, 0), self.value(node.args[0])),
                                     self.value(node.args[1]))  # fmt: skip
                return self._operation(ast.Sub(), (0, 0), up)
            case ast.Call(func=ast.Name(id="int32" | "int64")):
                return self.value(node.args[0])
        return None

    def _item(self, node: ast.Subscript) -> Interval | None:
        base, at = node.value, constant(node.slice)
        if isinstance(base, ast.Attribute):
            shape = self.of.get(base.value.variable)  # type: ignore[attr-defined]
            return shape[at] if shape is not None and -len(shape) <= at < len(shape) else None
        variable = base.variable  # type: ignore[attr-defined]
        if variable in self.grids and type(at) is int:
            return self.grids[variable][at]
        if variable in self.lists and type(self.lists[variable][at]) is int:
            return self.lists[variable][at], self.lists[variable][at]
        return None

    def _length(self, node: ast.expr) -> Interval | None:
        if isinstance(node, ast.Attribute):
            shape = self.of.get(node.value.variable)  # type: ignore[attr-defined]
            return None if shape is None else (len(shape), len(shape))
        shape = self.of.get(node.variable)  # type: ignore[attr-defined]
        return shape[0] if shape else None

    def _operation(self, op: ast.operator, a: Interval | None, b: Interval | None) -> Interval | None:
        if a is None or b is None:
            return None
        match op:
            case ast.Add():
                return a[0] + b[0], a[1] + b[1]
            case ast.Sub():
                return a[0] - b[1], a[1] - b[0]
            case ast.Mult():
                corners = [x * y for x in a for y in b]
                return min(corners), max(corners)
            case ast.FloorDiv() if b[0] > 0 or b[1] < 0:
                corners = [x // y for x in a for y in b]
                return min(corners), max(corners)
            case ast.Mod() if b[0] > 0:
                return (a if a[0] == a[1] and b[0] == b[1] and 0 <= a[0] < b[0] else
                        (a[0] % b[0],) * 2 if a[0] == a[1] and b[0] == b[1] else (0, b[1] - 1))  # fmt: skip
            case ast.Pow() if a[0] == a[1] and b[0] == b[1] and 0 <= b[0] < 64:
                return a[0] ** b[0], a[0] ** b[0]
        return None


def _assignment_counts(source: Source) -> dict[Variable, int]:
    found: dict[Variable, int] = {}
    for node in ast.walk(source.tree):
        target = (
            node.targets[0]
            if isinstance(node, ast.Assign)
            else node.target
            if isinstance(node, ast.AugAssign)
            else None
        )
        if isinstance(target, ast.Name):
            found[target.variable] = found.get(target.variable, 0) + 1  # type: ignore[attr-defined]
    return found
