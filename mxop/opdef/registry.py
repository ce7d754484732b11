"""The registry of operators by name and alias, with hints for unknown names.

Names follow MXNet: a prefix puts an operator in a sub-namespace (``_contrib_quadratic`` is ``nd.contrib.quadratic``), any
other leading underscore hides it in ``nd._internal``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..support import mxnet_names
from ..support.errors import OTHER_WORDS, NotYetError, OpLookupError, OpTypeError, OpValueError, shown
from ..support.missing import NOT_YET, error, suggestion
from . import plugins
from .places import place
from .plugins import load_entry_points

if TYPE_CHECKING:
    from .operator import Operator

#: Name prefixes and their namespaces.
PREFIXES = {
    "_contrib_": "contrib", "_linalg_": "linalg", "_random_": "random", "_image_": "image", "_sparse_": "sparse",
}  # fmt: skip
BACKWARD = "_backward_"
PARTS = ("_map_", "_final_", "_combined_", "_second_map_", "_second_")  # of a reduction, or of its gradient

_MOST_ORDERS = 64  # of derivatives looked up by name: each is an operator, and files may name any

_operators: dict[str, Operator] = {}  # canonical names
_names: dict[str, Operator] = {}  # canonical names and aliases
_derived: dict[str, list[str]] = {}  # names of hidden operators, by the operator they are derived from
_users: dict[str, set[str]] = {}  # operators whose formulas contain another's, by the name of the other
_roots: dict[str, str] = {}  # for a derived operator, the operator whose replacement removes it
_reserved: dict[str, str] = {}  # names of other functions, and their full names
_listeners: list[Callable[[str, Any], None]] = []


def namespace_of(name: str) -> tuple[str, str]:
    """Return the namespace of a registered name and the name within it.

    Examples
    --------
    >>> namespace_of("_contrib_quadratic"), namespace_of("exp"), namespace_of("_plus_scalar")
    (('contrib', 'quadratic'), ('', 'exp'), ('_internal', '_plus_scalar'))
    """
    for prefix, space in PREFIXES.items():
        if name.startswith(prefix):
            return space, name[len(prefix) :]
    return ("_internal", name) if name.startswith("_") else ("", name)


def register(op: Operator, *, override: bool = False) -> None:
    """Add an operator under its name and aliases.

    A name may be registered again by the same module (a reload) or with an equal definition; the new operator then gets all
    names of the old one.  Otherwise ``override=True`` is required.  A package that declares its operators in an entry point
    loses a taken name, with a warning, and keeps its other names.

    Raises
    ------
    OpValueError
        If a name is taken by another operator, or by something that is not an operator.
    """
    lost = {n for n in (op.name, *op.aliases) if _is_lost(op, n, override)}
    if op.name in lost:
        return
    op.aliases = tuple(n for n in op.aliases if n not in lost)
    for name in (op.name, *op.aliases):
        old = _names.get(name)
        if old is not None and old is not op and (old.name == name or old.same_as(op)):
            op.aliases = tuple(dict.fromkeys((*op.aliases, *(n for n in (old.name, *old.aliases) if n != op.name))))
            _operators.pop(old.name, None)
    _drop_derived(op.name)
    _operators[op.name] = op
    for name in (op.name, *op.aliases):
        _names[name] = op
        for listener in _listeners:
            listener(name, op)
    for user in _users.pop(op.name, ()):
        if (found := _names.get(user)) is not None and found is not op:
            found.retrace()
            register(found)


def note_use(user: str | None, name: str) -> None:
    """Record that an operator's formula contains another's: it is traced again if the other is defined again."""
    while (prefix := next((p for p in (BACKWARD, *PARTS) if (user or "").startswith(p)), None)) is not None:
        user = user[len(prefix) :]  # type: ignore[index]
    if user is not None and user != name:
        _users.setdefault(name, set()).add(user)


def _is_lost(op: Operator, name: str, override: bool) -> bool:
    """Return whether a package's operator cannot have a name; raise if the operator is not a package's."""
    old = _names.get(name)
    if _means_more(name) and not op.module.startswith("mxop."):
        taken = f"of {_reserved.get(name, 'something of Python')}, which is not an operator"
    elif override or old is None or old is op or old.module == op.module or old.same_as(op):
        return False
    else:
        taken = f"by {plugins.named(old.module)}"
    package = plugins.of(op.module)
    if package is not None:
        package.complain(f"operator {name!r} is left out: the name is taken {taken}")
        return True
    who = f"operator {op.name}{place(op.function)}"
    if _means_more(name):
        raise OpValueError(f"{who}: the name {name!r} is that {taken}; choose another name")
    raise OpValueError(f"{who}: the name {name!r} is taken by {old.name!r} of {plugins.named(old.module)}; choose another "
                       f"name, or pass override=True to replace it")  # fmt: skip


def _means_more(name: str) -> bool:
    """Return whether a name belongs to something that is not an operator."""
    return name in _reserved or (name.startswith("__") and name.endswith("__"))


def reserve(names: Iterable[str], of: str) -> None:
    """Keep names from users' operators, because they are names of other functions in `of`."""
    _reserved.update({name: f"{of}.{name}" for name in names})


def _drop_derived(name: str) -> None:
    """Remove the operators derived from the one of this name, which is replaced or removed."""
    for derived in _derived.pop(name, ()):
        _roots.pop(derived, None)
        _operators.pop(derived, None)
        _names.pop(derived, None)


def unregister(name: str) -> None:
    """Remove an operator and its aliases (tests and libraries that failed to load need this)."""
    op = get(name)
    _drop_derived(op.name)
    _operators.pop(op.name, None)
    for n in (op.name, *op.aliases):
        _names.pop(n, None)
        for listener in _listeners:
            listener(n, None)


def alias(op: Operator | str, *names: str) -> None:
    """Add names for a registered operator."""
    target = get(op) if isinstance(op, str) else op
    for name in names:
        taken = _names.get(name)
        if taken is not None and taken is not target:
            raise OpValueError(f"alias {name!r} is taken by operator {taken.name!r}")
    target.aliases = tuple(dict.fromkeys((*target.aliases, *names)))
    register(target)


def find(name: str) -> Operator | None:
    """Return the operator with a name or alias, or None."""
    if not isinstance(name, str):
        raise OpTypeError(f"the name of an operator must be a string, got {shown(name)}")
    op = _names.get(name)
    return _derived_by_name(name) if op is None and name.count(BACKWARD) <= _MOST_ORDERS else op


def _derived_by_name(name: str) -> Operator | None:
    """Return a derivative, or a part of one, by its name; None if it does not exist."""
    prefix = next((p for p in (BACKWARD, *PARTS) if name.startswith(p)), None)
    if prefix is None:
        return None
    of = find(name[len(prefix) :])
    op = None if of is None else of.derived(prefix)
    if op is None or of is None or name in _names:  # making its parts may have registered it
        return _names.get(name)
    _derived.setdefault(_roots.get(of.name, of.name), []).append(name)  # first, so that replacing the root removes it
    _roots[name] = _roots.get(of.name, of.name)
    _operators[name] = _names[name] = op
    return op


def hidden(name: str) -> Operator | None:
    """Return the operator behind a function of a rule's ``F`` that has no operator of that name, or None.

    It is the operator of ``F.zeros``, ``F.arange``..., which are functions of ``mx.nd``, or one of a package.
    """
    found = find("_" + name) or find("_contrib_" + name)
    if found is None:
        load_entry_points()
        found = find(name)
    return found


def get(name: str) -> Operator:
    """Return the operator with a name or alias.

    Raises
    ------
    OpLookupError
        If it does not exist, with the closest name.
    """
    op = find(name)
    if op is None:
        load_entry_points()
        op = find(name)
    if op is None:
        raise not_registered(name)
    return op


def not_registered(name: str, told: str | None = None) -> OpLookupError:
    """Return the error for an operator that does not exist; `told` begins the message."""
    told = told or f"operator {name!r} is not registered"
    if mxnet_names.is_operator(name):
        return NotYetError(f"{told}: MXNet has it, {NOT_YET}")
    return OpLookupError(told + suggestion(name, names(hidden=False), mxnet_names.listed("mxop.ndarray")))


def not_in_namespace(name: str, module: str, known: Callable[[], Iterable[str]]) -> OpLookupError:
    """Return the error for a missing name in a namespace such as ``mxop.ndarray.contrib``.

    Parameters
    ----------
    known : callable
        Returns the names in the namespace.
    """
    from .fluent import NAMES

    api, _, space = module.removeprefix("mxop.").partition(".")
    short = {"ndarray": "mx.nd", "symbol": "mx.sym"}[api]
    places = {"": "", **{s: p for p, s in PREFIXES.items()}}
    found = {s: _names[p + name] for s, p in places.items() if p + name in _names and s != space}
    if mxnet_names.path_of(module, name) is not None:  # one of MXNet elsewhere may mean something else: gamma, and random.gamma
        found = {s: op for s, op in found.items() if not op.module.startswith("mxop.")}
    there = (".".join(filter(None, (short, s, name))) for s in found)
    other = f"the method x.{name}()" if name in NAMES else None
    of_numpy = vars(np).get(name) if module == "mxop.ndarray" and name not in OTHER_WORDS else None
    if callable(of_numpy) and not isinstance(of_numpy, type):
        other = other or f"NumPy's np.{name}, which takes NDArrays, too"
    return error(f"module {module!r} has no operator {name!r}", name, module, known, next(there, other))


def restored(name: str, module: str) -> Operator:
    """Return a pickled operator by name, after importing the module that defines it."""
    if find(name) is None and not module.startswith("<"):
        from importlib import import_module

        try:
            import_module(module)
        except ImportError as problem:
            raise OpLookupError(f"operator {name!r} was defined in the module {module}, which cannot be imported: "
                                f"{problem}") from problem  # fmt: skip
    return get(name)


def operators(hidden: bool = True) -> Iterator[Operator]:
    """Yield every registered operator once, by canonical name, without backward operators."""
    for _, op in sorted(_operators.items()):
        if not op.is_backward and (hidden or public_name(op) is not None):
            yield op


def public_name(op: Operator) -> str | None:
    """Return the name or alias of an operator that users see; None if it is hidden.

    Examples
    --------
    >>> public_name(get("exp")), public_name(get("_shuffle")), public_name(get("_plus_scalar"))
    ('exp', 'shuffle', None)
    """
    return next((n for n in (op.name, *op.aliases) if namespace_of(n)[0] != "_internal"), None)


def names(hidden: bool = True) -> list[str]:
    """Return all names and aliases; hidden names include backward operators."""
    found = [n for n in list(_names) if hidden or namespace_of(n)[0] != "_internal"]
    if hidden:
        found += [
            BACKWARD + op.name
            for op in list(_operators.values())  # other threads may add some
            if op.has_backward_operator and not op.is_backward and BACKWARD + op.name not in _names
        ]
    return sorted(found)


def on_register(listener: Callable[[str, Any], None]) -> None:
    """Call ``listener(name, operator)`` for all names, present and future; operator is None when a name is removed."""
    _listeners.append(listener)
    for name, op in list(_names.items()):
        listener(name, op)
