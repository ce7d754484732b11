"""Whether the iterations of a loop may run at the same time.

The rule: of every tensor that a loop writes, one index must be the same in all places of the loop and tell its iterations
apart: the loop's variable, ``2*i + 1``, or ``i*n + j`` where ``j`` runs through ``range(n)``.  Numbers must not be carried
from one iteration to the next.  Imports :mod:`.source` and :mod:`.expressions`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .expressions import constant, index_items
from .source import Source, Variable

#: Words whose iterations must be independent.
CONCURRENT = ("parallel", "vectorize")


def word_of(loop: ast.For) -> str:
    """Return the word that a loop runs over."""
    return loop.iter.func.id  # type: ignore[attr-defined]


def check_races(source: Source) -> None:
    """Raise for a parallel or vectorize loop whose iterations depend on each other."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.For) and word_of(node) in CONCURRENT:
            found = conflict(node)
            if found is not None:
                source.fail(*found)


def conflict(loop: ast.For) -> tuple[ast.AST, str] | None:
    """Return where and why iterations of a loop depend on each other, None when they do not."""
    word, variable = word_of(loop), loop.target.variable  # type: ignore[attr-defined]
    inside = {n.variable for n in ast.walk(loop) if _declares(n)}
    for node in ast.walk(loop):
        target = _target(node)
        if isinstance(target, ast.Name) and target.variable not in inside:  # type: ignore[attr-defined]
            return node, (f"{target.id!r} is carried from one iteration of the {word} loop over {variable.name!r} to "
                          "the next; use reduce or serial")  # fmt: skip
    accesses: dict[Variable, list[ast.Subscript]] = {}
    written: dict[Variable, ast.AST] = {}
    for node in ast.walk(loop):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            tensor = node.value.variable  # type: ignore[attr-defined]
            if tensor.is_tensor and tensor not in inside:
                accesses.setdefault(tensor, []).append(node)
        target = _target(node)
        if isinstance(target, ast.Subscript):
            written.setdefault(target.value.variable, node)  # type: ignore[attr-defined]
    for tensor, node in written.items():
        if tensor not in inside and not _told_apart(accesses[tensor], loop, inside):
            return node, (
                f"iterations of the {word} loop over {variable.name!r} may write the same elements of {tensor.name!r}, or "
                f"read what others write: no index of {tensor.name!r} is a function of {variable.name!r} alone in every "
                "place; use reduce or serial"
            )
    return None


def _declares(node: ast.AST) -> bool:
    variable = getattr(node, "variable", None)
    return variable is not None and variable.node is node


def _target(node: ast.AST) -> ast.expr | None:
    """Return what a statement assigns, unless it makes a tensor."""
    if isinstance(node, ast.Assign):
        target: ast.expr = node.targets[0]
    elif isinstance(node, ast.AugAssign):
        target = node.target
    else:
        return None
    return target


def _told_apart(accesses: list[ast.Subscript], loop: ast.For, inside: set[Variable]) -> bool:
    indices = [index_items(a) for a in accesses]
    for items in zip(*indices):
        if len({unique_text(i) for i in items}) == 1 and _injective(items[0], loop, inside):
            return len({len(i) for i in indices}) == 1
    return False


def _injective(node: ast.expr, loop: ast.For, inside: set[Variable]) -> bool:
    """Tell whether different iterations give different values, whatever the loops inside do."""
    if _step(node, loop.target.variable, inside) not in (None, 0):  # type: ignore[attr-defined]
        return True
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
        return False
    for product, digit in ((node.left, node.right), (node.right, node.left)):
        if isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult) and isinstance(digit, ast.Name):
            for high, size in ((product.left, product.right), (product.right, product.left)):
                if _digit(digit, size, loop, inside) and _injective(high, loop, inside):
                    return True
    return False


def _step(node: ast.expr, variable: Variable, inside: set[Variable]) -> int | None:
    """Return by how much an expression grows with a loop's variable, None when it depends on more than that."""
    match node:
        case ast.Constant():
            return 0
        case ast.Name():
            if node.variable is variable:  # type: ignore[attr-defined]
                return 1
            return None if node.variable in inside or node.variable.kind == "grid" else 0  # type: ignore[attr-defined]
        case ast.Subscript(value=ast.Attribute()):
            return 0  # x.shape[0]
        case ast.UnaryOp(op=ast.USub()):
            step = _step(node.operand, variable, inside)
            return None if step is None else -step
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult()):
            left, right = _step(node.left, variable, inside), _step(node.right, variable, inside)
            if left is None or right is None:
                return None
            if isinstance(node.op, ast.Mult):
                return _scaled(node, left, right)
            return left + right if isinstance(node.op, ast.Add) else left - right
    return None


def _scaled(node: ast.BinOp, left: int, right: int) -> int | None:
    if left == right == 0:
        return 0
    for step, factor in ((left, constant(node.right)), (right, constant(node.left))):
        if step and type(factor) is int:
            return step * factor
    return None


def _digit(digit: ast.Name, size: ast.expr, loop: ast.For, inside: set[Variable]) -> bool:
    """Tell whether a variable runs through ``range(size)`` inside the loop."""
    for node in ast.walk(loop):
        if isinstance(node, ast.For) and node is not loop and isinstance(node.target, ast.Name):
            if node.target.variable is not digit.variable:  # type: ignore[attr-defined]
                continue
            args = node.iter.args  # type: ignore[attr-defined]
            if word_of(node) == "grid" or len(args) != 1 or _step(size, loop.target.variable, inside) != 0:  # type: ignore[attr-defined]
                return False
            fixed = constant(args[0]), constant(size)
            return unique_text(args[0]) == unique_text(size) or (
                all(type(f) is int for f in fixed) and fixed[0] <= fixed[1]  # type: ignore[operator]
            )
    return False


def unique_text(node: ast.AST) -> str:
    """Return an expression's text with names that are unique in the kernel."""
    return ast.unparse(_Unique().visit(_copy(node)))


class _Unique(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.Name:
        variable = getattr(node, "variable", None)
        return ast.Name(variable.unique if variable is not None else node.id, node.ctx)


def _copy(node: ast.AST) -> ast.AST:
    """Copy a tree, keeping the variables of its names (they are shared, not copied)."""
    fields = {name: _copied(value) for name, value in ast.iter_fields(node)}
    found = type(node)(**fields)
    if hasattr(node, "variable"):
        found.variable = node.variable  # type: ignore[attr-defined]
    return ast.copy_location(found, node) if hasattr(node, "lineno") else found


def _copied(value: object) -> object:
    if isinstance(value, ast.AST):
        return _copy(value)
    return [_copied(v) for v in value] if isinstance(value, list) else value


def names_in(node: ast.AST) -> Iterator[Variable]:
    """Yield the variables that an expression or statement names."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and hasattr(part, "variable"):
            yield part.variable
