"""The text of a kernel, found and parsed, and errors that show a place in it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from ...support.errors import OpTypeError, OpValueError


class HybridError(OpTypeError, OpValueError):
    """A kernel that is not in the language; the message has its file and line."""


@dataclass(eq=False)
class Source:
    """A kernel's text; the tree has the line numbers of the file, whose line `first` is the first of `lines`."""

    name: str
    file: str
    tree: ast.FunctionDef
    lines: Sequence[str]
    first: int
    globals: dict[str, Any]

    def fail(self, place: ast.AST | int, problem: str) -> NoReturn:
        """Raise for a place in the text: a node, or a line."""
        line = place if isinstance(place, int) else getattr(place, "lineno", self.tree.lineno)
        raise HybridError(self.message(line, problem))

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
