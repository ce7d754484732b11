"""``python -m mxop ops``: the operators, by family."""

from __future__ import annotations

import fnmatch
import shutil
import textwrap
from collections.abc import Iterable

from .. import ndarray  # noqa: F401  registers the operators
from ..opdef import Operator, plugins, registry
from ..support import mxnet_names
from ..support.errors import closest
from . import Stop
from .own import module_of

_BUILT_IN = "mxop.ops."

#: Operators of MXNet that are none here, and what there is instead.
_INSTEAD = {
    **dict.fromkeys(("_cvimdecode", "_cvimread", "_npi_cvimdecode", "_npi_cvimread"), "functions: mx.image.imdecode, imread"),
    "_imdecode": "mx.image.imdecode", "_npi_Custom": "Custom", "_set_value": "function: x[:] = value",
}  # fmt: skip


def family_of(op: Operator) -> str:
    """Return the family of an operator: the file of ``mxop/ops`` that defines it, of another package the module."""
    return op.module.removeprefix(_BUILT_IN)


def is_of(op: Operator, package: plugins.Package | None) -> bool:
    """Return whether an operator belongs to a package; None is mxop."""
    return op.module.startswith(_BUILT_IN) if package is None else package.has(op.module)


def families(hidden: bool = False, package: plugins.Package | None = None) -> dict[str, list[Operator]]:
    """Return the operators of a package, by default of mxop, by family; families and operators in order of their names."""
    found: dict[str, list[Operator]] = {}
    for op in registry.operators(hidden):
        if is_of(op, package):
            found.setdefault(family_of(op), []).append(op)
    return dict(sorted(found.items()))


def package_named(name: str | None) -> plugins.Package | None:
    """Return the package that has a name, as a distribution or as a module, with its operators; None for no name.

    Raises
    ------
    Stop
        When no such package announces operators; names the closest.
    """
    if name is None:
        return None
    registry.load_entry_points()
    known = plugins.announced()
    found = known.get(name) or next((p for p in known.values() if p.has(name)), None)
    if found is None:
        raise Stop(f"no installed package {name!r} announces operators under {plugins.GROUP!r}{closest(name, known)}; "
                   f"packages that do: {', '.join(known) or 'none'}")  # fmt: skip
    return found


def problems() -> list[str]:
    """Return what is wrong with packages of operators."""
    registry.load_entry_points()
    return [f"package {p.name}: {problem}" for p in plugins.announced().values() for problem in p.problems]


def called(op: Operator) -> str:
    """Return how a function of ``mx.nd`` is called for an operator, such as ``contrib.quadratic``."""
    space, short = registry.namespace_of(registry.public_name(op) or op.name)
    return f"{space}.{short}" if space else short


def summary(op: Operator) -> str:
    """Return the first sentence of an operator's documentation."""
    return " ".join(op.doc.strip().split("\n\n")[0].partition("  Parameters as")[0].split())


def _chosen(pattern: str | None, family: str | None, hidden: bool, module: str | None) -> Iterable[Operator]:
    ops = [op for op in registry.operators(hidden) if family in (None, family_of(op)) and module in (None, op.module)]
    if pattern is None:
        return ops
    wanted = (pattern if set(pattern) & set("*?[") else f"*{pattern}*").casefold()
    named = [op for op in ops if any(fnmatch.fnmatchcase(n.casefold(), wanted) for n in (op.name, *op.aliases))]
    return named or [op for op in ops if pattern.casefold() in summary(op).casefold()]


def list_operators(pattern: str | None, family: str | None, hidden: bool, source: str | None = None) -> None:
    """Print the operators whose names fit, one a line, under their family; upper and lower case are the same.

    Where no name fits, those with the pattern in the first sentence of their documentation.

    Parameters
    ----------
    source : str, optional
        A file of the user's, or a module: only its operators.

    Raises
    ------
    Stop
        When there is none; names the closest.
    """
    module = None if source is None else module_of(source).__name__
    registry.load_entry_points()
    known = {family_of(op) for op in registry.operators()}
    if family is not None and family not in known:
        raise Stop(f"there is no family {family!r}{closest(family, known)}; families: {', '.join(sorted(known))}")
    chosen: dict[str, list[Operator]] = {}
    for op in _chosen(pattern, family, hidden, module):
        chosen.setdefault(family_of(op), []).append(op)
    if not chosen:
        if pattern is None:
            raise Stop(f"{source} defines no operators")
        raise Stop(f"no operator's name or description fits {pattern!r}{closest(pattern, registry.names(hidden))}")
    width = shutil.get_terminal_size((138, 24)).columns  # that, too, where the output is no terminal
    for name, ops in sorted(chosen.items()):
        print(f"{name}  ({len(ops)})")
        for op in ops:
            told = textwrap.shorten(summary(op), max(width - 48, 30), placeholder=" ...")
            print(f"  {called(op):32} {op.kind:12} {told}".rstrip())
    count = sum(map(len, chosen.values()))
    print(f"\n{count} operators; more about one: python -m mxop info NAME", *problems(), sep="\n")


def list_missing() -> None:
    """Print the operators of MXNet 1.9.1 that are none here, and what there is instead."""
    from ..graph import control_flow  # noqa: F401  registers its operators

    names = mxnet_names.sections()["operators"]
    missing = sorted(name for name in names if registry.find(name) is None)
    for name in missing:
        print(f"  {name:20} {_INSTEAD.get(name, '')}".rstrip())
    print(f"{len(names) - len(missing)} of MXNet's {len(names)} names of operators are here")
