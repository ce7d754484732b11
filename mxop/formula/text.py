"""Print formulas as C (the CPU instructions, generated at build time) and as CUDA (at run time).

Both come from the same rows of the primitive table, so that the devices cannot drift apart.
Imports :mod:`.expr` and :mod:`.primitives`.
"""

from __future__ import annotations

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
    """Print a formula, one temporary per shared or nested call.

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
    text = dict(names)
    for node in walk(roots):
        if node in text:
            continue
        if node.kind == CONST:
            text[node] = number(node.label, ctype)
        elif node.kind == CALL:
            row = TABLE[node.label]
            if ctype in SUFFIX:
                form = row.c if dialect == "c" else row.cuda
            elif row.integer is None:
                raise ValueError(f"primitive {row.name} has no integer form")
            else:
                form = row.integer
            value = form.format(*(text[a] for a in node.args), T=ctype, s=SUFFIX.get(ctype, ""))
            name = f"t{len(lines)}"
            lines.append(f"const {ctype} {name} = {value};")
            text[node] = name
        else:
            raise KeyError(f"no name for leaf {node!r}")
    return lines, [text[root] for root in roots]
