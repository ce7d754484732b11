"""Prints formulas as C (CPU instructions, generated at build time) and as CUDA (at run time).

Both use the rows of the primitive table, so that the devices agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from .expr import CALL, CONST, Expr, walk
from .primitives import TABLE

SUFFIX = {"float": "f32", "double": "f64"}


def number(value: float, ctype: str) -> str:
    """Return a literal of the C type `ctype`."""
    if ctype not in SUFFIX:
        return f"(({ctype}){int(value)})"
    value = float(value)
    if value != value:
        return f"(({ctype})NAN)"
    if value in (float("inf"), float("-inf")):
        return f"(({ctype}){'-' if value < 0 else ''}INFINITY)"
    return f"(({ctype}){value!r})"


def statements(roots: list[Expr], names: dict[Expr, str], ctype: str, dialect: str) -> tuple[list[str], list[str]]:
    """Return the text of formulas, with a temporary for each shared or nested call.

    Parameters
    ----------
    roots : list of Expr
        The formulas.
    names : dict
        Text for each leaf (constants may be left out).
    ctype : str
        Element type in the text: ``'float'``, ``'double'``, ``'int64_t'``...
    dialect : {'c', 'cuda'}
        ``'c'`` uses ``mxop_math.h``; ``'cuda'`` uses CUDA's overloaded functions.

    Returns
    -------
    lines : list of str
        Declarations of the temporaries.
    results : list of str
        The text of each root.
    """
    lines: list[str] = []

    def form(node: Expr) -> str:
        row = TABLE[node.label]
        if ctype in SUFFIX:
            return row.c if dialect == "c" else row.cuda
        if row.integer is None:
            raise ValueError(f"primitive {row.name} has no integer form")
        return row.integer

    def name(value: str) -> str:
        lines.append(f"const {ctype} t{len(lines)} = {value};")
        return f"t{len(lines) - 1}"

    def write(node: Expr, operands: list[str]) -> str:
        return name(form(node).format(*operands, T=ctype, s=SUFFIX.get(ctype, "")))

    text = texts(roots, names, write, lambda node, user: number(node.label, ctype))
    return lines, [text[root] if root in text else number(root.label, ctype) for root in roots]


def texts(roots: Iterable[Expr], names: Mapping[Expr, str], write: Callable[[Expr, list[str]], str],
          literal: Callable[[Expr, Expr], str]) -> dict[Expr, str]:  # fmt: skip
    """Return the text of every node, in any language.

    Parameters
    ----------
    roots : iterable of Expr
    names : mapping of Expr to str
        Text for each leaf (constants may be left out).
    write : callable
        ``write(node, operands)`` returns the text of a call, given those of its operands.  It runs for operands first, and may
        write a line for the call and return the name of its result.
    literal : callable
        ``literal(constant, user)`` returns a number as the operand of a call.
    """
    text = dict(names)
    for node in walk(roots):
        if node in text or node.kind == CONST:
            continue
        if node.kind != CALL:
            raise KeyError(f"no name for leaf {node!r}")
        text[node] = write(node, [text[a] if a in text else literal(a, node) for a in node.args])
    return text
