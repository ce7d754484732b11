"""Composition of formulas: formulas applied to the results of others become one."""

from __future__ import annotations

from functools import lru_cache

from .expr import Expr, input_, leaves, substitute


@lru_cache(1024)
def composed(
    calls: tuple[tuple[tuple[Expr, ...], tuple[int, ...]], ...], results: tuple[int, ...]
) -> tuple[tuple[Expr, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the composition of formulas; cached, since the same calls recur.

    Parameters
    ----------
    calls : tuple of (roots, operands)
        Formulas and their operands: values, numbered from 0 up in the order of `calls`, and inputs, from -1 down.
    results : tuple of int
        The wanted values.

    Returns
    -------
    roots : tuple of Expr
    used : tuple of int
        The inputs that the leaves of the roots are, numbered from 0.
    places : tuple of int
        The index of the root that is each result.
    """
    values: list[Expr] = []
    for roots, operands in calls:
        exchanged = {input_(i): values[n] if n >= 0 else input_(-1 - n) for i, n in enumerate(operands)}
        values += substitute(roots, exchanged)
    wanted = list(dict.fromkeys(values[n] for n in results))
    used = sorted({leaf.label for leaf in leaves(wanted) if leaf.kind == "input"})
    found = wanted
    if used != list(range(len(used))):
        found = substitute(wanted, {input_(old): input_(new) for new, old in enumerate(used)})
    place = {root: k for k, root in enumerate(wanted)}
    return tuple(found), tuple(used), tuple([place[values[n]] for n in results])
