"""Which statements assign what, and in which block a number lives.  Imports :mod:`.source`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from .source import Variable


def strip(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return statements with those inside ``with`` among them, without return, pass and texts."""
    found: list[ast.stmt] = []
    for node in statements:
        if isinstance(node, ast.With):
            found += strip(node.body)
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.For, ast.If)):
            found.append(node)
    return found


def target_of(node: ast.stmt) -> ast.expr:
    """Return what a statement assigns."""
    return node.target if isinstance(node, ast.AugAssign) else node.targets[0]  # type: ignore[attr-defined]


def variable_of(node: ast.expr) -> Variable:
    """Return the variable of a name or an element."""
    return (node.value if isinstance(node, ast.Subscript) else node).variable  # type: ignore[attr-defined]


def makes_tensor(node: ast.stmt) -> bool:
    """Tell whether a statement is a call of ``allocate`` or ``output_tensor``."""
    target = target_of(node)
    return isinstance(target, ast.Name) and variable_of(target).is_tensor


def assignments(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that assign numbers and elements, in the order of the text."""
    for root in statements:
        if isinstance(root, (ast.Assign, ast.AugAssign)):
            if not makes_tensor(root):
                yield root
        elif isinstance(root, (ast.For, ast.With)):
            yield from assignments(root.body)
        elif isinstance(root, ast.If):
            yield from assignments(root.body)
            yield from assignments(root.orelse)


class Scopes:
    """Where numbers are declared.

    Attributes
    ----------
    top : set of Variable
        Those of the function's own block.
    first : set of ast.expr
        Targets of assignments before which the variable had no value.
    fixed : set of Variable
        Those of the function's own block that are assigned once.
    """

    def __init__(self, body: Sequence[ast.stmt]):
        self.first: set[ast.expr] = set()
        self._of: dict[tuple[ast.AST, str], set[Variable]] = {}
        self.top = self._block(body, set())
        counts: dict[Variable, int] = {}
        for node in assignments(body):
            variable = variable_of(target_of(node))
            counts[variable] = counts.get(variable, 0) + 1
        self.fixed = {v for v in self.top if counts[v] == 1}

    def of(self, node: ast.AST, branch: str) -> set[Variable]:
        """Return the numbers that live in a block: ``'body'`` or ``'orelse'`` of a loop or a condition."""
        return self._of.get((node, branch), set())

    def _block(self, statements: Sequence[ast.stmt], known: set[Variable]) -> set[Variable]:
        new: set[Variable] = set()
        for node in strip(statements):
            match node:
                case ast.Assign(targets=[ast.Name() as target]) if not variable_of(target).is_tensor:
                    if variable_of(target) not in known | new:
                        self.first.add(target)
                        new.add(variable_of(target))
                case ast.For():
                    self._of[node, "body"] = self._block(node.body, known | new)
                case ast.If():
                    yes, no = self._block(node.body, known | new), self._block(node.orelse, known | new)
                    shared = yes & no
                    self._of[node, "body"], self._of[node, "orelse"] = yes - shared, no - shared
                    new |= shared
        return new
