"""Formulas as text for people: infix, with names; one line for each result and for each value used more than once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from .expr import CALL, CONST, Expr, walk

#: Text of each primitive over its operands, and its precedence.
_INFIX = {
    "lor": ("{} or {}", 1), "lxor": ("{} xor {}", 1), "land": ("{} and {}", 2), "lnot": ("not {}", 3),
    "lt": ("{} < {}", 4), "le": ("{} <= {}", 4), "gt": ("{} > {}", 4), "ge": ("{} >= {}", 4), "eq": ("{} == {}", 4),
    "ne": ("{} != {}", 4), "add": ("{} + {}", 5), "sub": ("{} - {}", 5), "mul": ("{} * {}", 6), "div": ("{} / {}", 6),
    "mod": ("{} % {}", 6), "floordiv": ("{} // {}", 6),
    "neg": ("-{}", 7), "square": ("{}**2", 9), "pow": ("{}**{}", 8), "reciprocal": ("1 / {}", 6),
}  # fmt: skip
_ATOM = 10
#: Left-associative primitives: ``a - b - c`` is ``(a - b) - c``.
_LEFT = ("add", "sub", "mul", "div", "mod", "floordiv", "lor", "lxor", "land")


def readable(roots: Sequence[Expr], names: Mapping[Expr, str], results: Sequence[str]) -> list[str]:
    """Return formulas as lines of assignments.

    Parameters
    ----------
    roots : sequence of Expr
    names : dict of Expr to str
        Names of leaves; constants and leaves without a name are written as they are.
    results : sequence of str
        The name of each formula's result.

    Examples
    --------
    >>> from mxop.formula.expr import call, input_
    >>> x = input_(0)
    >>> t = call('tanh', x + 1)
    >>> readable([t * (t - 2)], {x: 'x'}, ['y'])
    ['t0 = tanh(x + 1)', 'y = t0 * (t0 - 2)']
    """
    uses = Counter(a for node in walk(roots) for a in node.args)
    text: dict[Expr, tuple[str, int]] = {leaf: (name, _ATOM) for leaf, name in names.items()}
    targets: dict[Expr, list[str]] = {}
    for root, result in zip(roots, results, strict=True):
        targets.setdefault(root, []).append(result)
    lines: list[str] = []
    temporaries = 0
    for node in walk(roots):
        written = text.get(node) or _written(node, text)
        own = targets.get(node, [])
        lines += [f"{name} = {written[0]}" for name in own]
        if node.kind == CALL and own:
            written = (own[0], _ATOM)
        elif node.kind == CALL and uses[node] > 1:
            lines.append(f"t{temporaries} = {written[0]}")
            written, temporaries = (f"t{temporaries}", _ATOM), temporaries + 1
        text[node] = written
    return lines


def _written(node: Expr, text: Mapping[Expr, tuple[str, int]]) -> tuple[str, int]:
    """Return the text of a node over those of its operands, and its precedence."""
    if node.kind == CONST:
        value = f"{node.label:.9g}"
        return value, _ATOM if not value.startswith("-") else 7
    if node.kind != CALL:
        return repr(node), _ATOM
    operands = [text[a] for a in node.args]
    if node.label not in _INFIX:
        return f"{node.label}({', '.join(t for t, _ in operands)})", _ATOM
    form, strength = _INFIX[node.label]
    needed = [strength + (at > 0 or node.label not in _LEFT) for at in range(len(operands))]
    inner = [t if s >= least else f"({t})" for (t, s), least in zip(operands, needed, strict=True)]
    return form.format(*inner), strength
