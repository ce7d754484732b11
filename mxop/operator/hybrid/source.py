"""The text of a kernel: found, parsed, and what is known about its names.  Imports :mod:`mxop.errors`."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ...errors import OpTypeError, OpValueError


class HybridError(OpTypeError, OpValueError):
    """A kernel that is not in the language; the message has its file and line."""


@dataclass(eq=False)
class Variable:
    """A name of a kernel within the scope that declares it.

    Attributes
    ----------
    kind : {'input', 'attribute', 'output', 'local', 'scalar', 'loop', 'grid'}
        The first, third and fourth are tensors; 'grid' is the tuple of indices of a loop over ``grid``.
    unique : str
        A name that no other variable of the kernel has.
    shape, dtype : ast.expr or None
        How an allocated tensor was declared.
    rank : int or None
        Number of indices, as far as the text tells.
    written : bool
        Whether elements are assigned.
    """

    name: str
    kind: str
    unique: str
    node: ast.AST
    shape: ast.expr | None = None
    dtype: ast.expr | None = None
    rank: int | None = None
    written: bool = False

    @property
    def is_tensor(self) -> bool:
        return self.kind in ("input", "output", "local")


@dataclass(eq=False)
class Source:
    """A kernel's text before and after the checks.

    Attributes
    ----------
    tree : ast.FunctionDef
        With line numbers of the file; after the checks, nodes that are names carry their ``variable``.
    arguments : list of Variable
    results : list of Variable
        What is returned, in order.
    variables : list of Variable
        All of them.
    """

    name: str
    file: str
    tree: ast.FunctionDef
    lines: Sequence[str]
    first: int
    globals: dict[str, Any]
    arguments: list[Variable] = field(default_factory=list)
    results: list[Variable] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    single: bool = True

    @property
    def inputs(self) -> list[Variable]:
        """The arguments that are tensors."""
        return [v for v in self.arguments if v.kind == "input"]

    @property
    def attributes(self) -> list[Variable]:
        """The arguments that are numbers."""
        return [v for v in self.arguments if v.kind == "attribute"]

    def fail(self, node: ast.AST | None, problem: str) -> NoReturn:
        """Raise for a place in the text."""
        raise HybridError(self.message(getattr(node, "lineno", self.tree.lineno), problem))

    def message(self, line: int, problem: str) -> str:
        """Return a message with a place in the text."""
        at = line - self.first
        text = self.lines[at].strip() if 0 <= at < len(self.lines) else ""
        return f"{self.file}:{line}: kernel {self.name}: {problem}\n    {text}"


def read(function: Callable) -> Source:
    """Return the parsed text of a function.

    Raises
    ------
    HybridError
        When it is no function with a text (a lambda, a builtin, one made by exec).
    """
    code = getattr(function, "__code__", None)
    name = getattr(function, "__name__", repr(function))
    if code is None:
        raise HybridError(f"kernel {name}: expected a Python function, got {function!r}")
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
    except (OSError, SyntaxError, IndexError):
        tree = None
    if not isinstance(tree, ast.FunctionDef) or tree.name != code.co_name:
        raise HybridError(
            f"{code.co_filename}:{code.co_firstlineno}: kernel {name}: its text cannot be read; a kernel must be "
            "written with 'def' in a file or a notebook cell"
        )
    ast.increment_lineno(tree, max(first, 1) - 1)
    return Source(name, code.co_filename, tree, lines, max(first, 1), function.__globals__)


def parse(text: str, name: str) -> Source:
    """Return the parsed text of a kernel that was generated."""
    tree = ast.parse(text).body[0]
    assert isinstance(tree, ast.FunctionDef)
    return Source(name, f"<kernel {name}>", tree, text.splitlines(), 1, {})
