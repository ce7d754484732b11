"""``python -m mxop ops``: the operators, by family."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable

from .. import ndarray  # noqa: F401  registers the operators
from ..errors import closest
from ..opdef import Operator, registry
from . import Stop


def family_of(op: Operator) -> str:
    """Return the file that defines an operator: the last part of its module's name."""
    return op.module.rpartition(".")[2]


def families(hidden: bool = False) -> dict[str, list[Operator]]:
    """Return the built-in operators by family, families and operators in order of their names."""
    found: dict[str, list[Operator]] = {}
    for op in registry.operators(hidden):
        if op.module.startswith("mxop.ops."):
            found.setdefault(family_of(op), []).append(op)
    return dict(sorted(found.items()))


def called(op: Operator) -> str:
    """Return how a function of ``mx.nd`` is called for an operator, such as ``contrib.quadratic``."""
    space, short = registry.namespace_of(registry.public_name(op) or op.name)
    return f"{space}.{short}" if space else short


def summary(op: Operator) -> str:
    """Return the first sentence of an operator's documentation."""
    return " ".join(op.doc.strip().split("\n\n")[0].split())


def _chosen(pattern: str | None, family: str | None, hidden: bool) -> Iterable[Operator]:
    registry.load_entry_points()
    wanted = None if pattern is None else pattern if set(pattern) & set("*?[") else f"*{pattern}*"
    for op in registry.operators(hidden):
        if family is not None and family_of(op) != family:
            continue
        if wanted is None or any(fnmatch.fnmatch(n, wanted) for n in (op.name, *op.aliases)):
            yield op


def list_operators(pattern: str | None, family: str | None, hidden: bool) -> None:
    """Print the operators whose names fit, one a line, under their family.

    Raises
    ------
    Stop
        When there is none; names the closest.
    """
    known = families(hidden=True)
    if family is not None and family not in known:
        raise Stop(f"there is no family {family!r}{closest(family, known)}; families: {', '.join(known)}")
    chosen: dict[str, list[Operator]] = {}
    for op in _chosen(pattern, family, hidden):
        chosen.setdefault(family_of(op), []).append(op)
    if not chosen:
        names = registry.names(hidden)
        raise Stop(f"no operator's name fits {pattern!r}{closest(pattern or '', names)}")
    for name, ops in sorted(chosen.items()):
        print(f"{name}  ({len(ops)})")
        for op in ops:
            print(f"  {called(op):32} {op.kind:12} {summary(op)[:90]}".rstrip())
    print(f"\n{sum(map(len, chosen.values()))} operators; more about one: python -m mxop info NAME")
