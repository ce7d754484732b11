"""The table of passes: their order, which ones are on, and the function that runs and verifies them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from ...support.errors import MXNetError, OpLookupError, OpTypeError, OpValueError, closest, fitting, items
from ..garbage import collected_later
from ..infer import Known
from ..ir import Graph
from ..ordering import own_names
from ..verification import snapshot, verify, verify_arguments, verify_kept, verify_untouched
from .base import STAGES, Pass

#: Pass classes or instances, in the order in which they run.
_table: list[Any] = []
_switched: dict[str, bool] = {}
_listeners: list[Callable[[], None]] = []
#: MXNet's environment variables that turn passes on and off.
_VARIABLES = {"mirror": "MXNET_BACKWARD_DO_MIRROR", "common_subexpressions": "MXNET_ELIMINATE_COMMON_EXPR"}


def on_change(listener: Callable[[], None]) -> None:
    """Call ``listener()`` whenever the set of passes changes, so that caches of their results are cleared."""
    _listeners.append(listener)


def _changed() -> None:
    for listener in _listeners:
        listener()


def register_pass(pass_: Any, *, before: str | None = None, after: str | None = None) -> Any:
    """Add a pass to those that executors run; usable as a decorator.

    Parameters
    ----------
    pass_ : subclass (or instance) of Pass
        A class is instantiated for every run.  A pass of the same name and module is replaced.
    before, after : str, optional
        Names of the passes that it runs before and after; by default it is the last of its stage.

    Raises
    ------
    OpValueError
        If another module has a pass of this name, or `after` comes later than `before`.
    OpLookupError
        If no pass has the name `before` or `after`.
    """
    if not isinstance(pass_, Pass) and not (isinstance(pass_, type) and issubclass(pass_, Pass)):
        raise OpTypeError(f"register_pass: expected a subclass or instance of mx.graph.Pass, got {pass_!r}")
    if pass_.stage not in STAGES:
        raise OpValueError(f"pass {pass_.name!r}: stage={pass_.stage!r} is not one of {', '.join(STAGES)}")
    old = next((p for p in _table if p.name == pass_.name), None)
    if old is not None and module_of(old) != module_of(pass_):
        raise OpValueError(f"register_pass: {module_of(old)} has a pass {pass_.name!r} already; choose another name")
    first, last = _place(pass_, before, after, [p for p in _table if p is not old])
    place = last if before is not None else first
    if old is not None:
        at = _table.index(old)
        _table.remove(old)
        place = at if before is after is None else place
    _table.insert(place, pass_)
    _changed()
    return pass_


def module_of(pass_: Any) -> str:
    return pass_.__module__ if isinstance(pass_, type) else type(pass_).__module__


def _place(pass_: Any, before: str | None, after: str | None, table: list[Any]) -> tuple[int, int]:
    """Return the first and the last possible position of a pass."""
    names = [p.name for p in table]
    for name in (before, after):
        if name is not None and name not in names:
            raise OpLookupError(f"register_pass: there is no pass {name!r}{closest(name, names)}")
    first = names.index(after) + 1 if after is not None else None
    last = names.index(before) if before is not None else None
    if first is not None and last is not None and first > last:
        raise OpValueError(f"register_pass: {pass_.name!r} cannot go after {after!r} and before {before!r}, which comes first")
    neighbour = table[last] if last is not None else table[first - 1] if first is not None else None
    if neighbour is not None and pass_.stage != neighbour.stage:
        pass_.stage = neighbour.stage
    end = sum(STAGES.index(p.stage) <= STAGES.index(pass_.stage) for p in table)
    first = end if first is None else first
    return first, end if last is None else last


def unregister_pass(name: str) -> None:
    """Remove a pass from the table."""
    found = _find(name)
    _table.remove(found)
    _switched.pop(name, None)
    _changed()


def list_passes() -> list[Any]:
    """Return the registered passes in the order in which they run.

    Examples
    --------
    >>> import mxop as mx
    >>> [p.name for p in mx.graph.list_passes() if not p.automatic]
    ['algebra', 'mirror']
    """
    return list(_table)


def _find(name: Any) -> Any:
    names = [p.name for p in _table]
    if name not in names:
        raise OpLookupError(f"there is no pass {name!r}{closest(name, names)}; passes: {', '.join(names)}")
    return _table[names.index(name)]


# ---- on and off -----------------------------------------------------------------------------------------------------
class switch_passes:
    """Turn passes on or off by name: for all executors made later, or within a ``with`` block.

    Parameters
    ----------
    **states : bool
        ``name=True`` or ``name=False``.

    Examples
    --------
    >>> import mxop as mx
    >>> x = mx.sym.Variable('x')
    >>> with mx.graph.switch_passes(fuse=False):
    ...     executor = mx.sym.exp(x * 2).simple_bind(mx.cpu(), x=(3,))
    """

    def __init__(self, **states: bool):
        for name, on in states.items():
            _find(name)
            if on not in (True, False):
                raise OpTypeError(f"switch_passes: {name}={on!r}; expected True or False")
        self._before = dict(_switched)
        _switched.update(states)
        _changed()

    def __enter__(self) -> switch_passes:
        return self

    def __exit__(self, *exception: Any) -> None:
        _switched.clear()
        _switched.update(self._before)
        _changed()


def _environment() -> dict[str, bool]:
    found = {name: os.environ.get(variable) for name, variable in _VARIABLES.items()}
    return {name: text.strip().lower() in ("1", "true") for name, text in found.items() if text is not None}


def selected(passes: Any = None, everything: bool = False) -> list[Any]:
    """Return the passes to run.

    Parameters
    ----------
    passes : sequence of (str, Pass or subclass), or dict of str to bool, optional
        Exactly these passes, in this order; or changes to the default.
    everything : bool
        Whether the default includes passes that are not automatic.
    """
    if passes is None or isinstance(passes, Mapping):
        states = {**_environment(), **_switched, **(passes or {})}
        for name in states:
            _find(name)
        return [p for p in _table if states.get(p.name, p.automatic or everything)]
    if isinstance(passes, (str, Pass, type)):
        passes = [passes]
    found = []
    for p in items(passes, "passes"):
        if isinstance(p, str):
            p = _find(p)
        elif not isinstance(p, Pass) and not (isinstance(p, type) and issubclass(p, Pass)):
            raise OpTypeError(f"passes: {p!r} is neither the name of a pass nor a pass")
        found.append(p)
    return found


# ---- running --------------------------------------------------------------------------------------------------------
@collected_later()
def run_passes(graph: Graph, known: Known, passes: Iterable[Any], check: bool = True) -> Graph:
    """Run passes in order, and verify the graph after each; after passes of this package once, after the last.

    Raises
    ------
    MXNetError
        With the name of a pass that failed, or whose result is not a graph or not equivalent.
    """
    verified: set = set()
    instances = [p() if isinstance(p, type) else p for p in passes]
    for ours, group in groupby(instances, lambda p: module_of(p).startswith("mxop.")):
        for some in [list(group)] if ours else [[p] for p in group]:
            before = snapshot(graph) if check and not ours else []
            new = graph
            for p in some:
                given, new = new, _run(p, new, known)
                if new is not given and (ours or not check):
                    known.complete(new)
            verify_untouched(before, some[-1].name)
            if check and new is not graph:
                after = some[-1].name
                verify_arguments(graph, new, after)
                verify(new, known, after, verified, complete=True)
                verify_kept(graph, new, known, after)
            graph = new
    return graph


def _run(pass_: Pass, graph: Graph, known: Known) -> Graph:
    try:
        with own_names():
            new = pass_.run(graph, known)
    except MXNetError as problem:
        raise type(problem)(f"pass {pass_.name!r} failed: {problem}").with_traceback(problem.__traceback__) from None
    except Exception as problem:
        raise fitting(problem, f"pass {pass_.name!r} failed: {type(problem).__name__}: {problem}") from problem
    if not isinstance(new, Graph):
        raise OpTypeError(f"pass {pass_.name!r} returned {new!r}; expected a Graph")
    return new


def optimize(graph: Graph, known: Known, names: Sequence[Any] | None = None, check: bool = True) -> Graph:
    """Run the passes of stage ``'graph'``, or the named ones.

    Parameters
    ----------
    graph : Graph
        Without composites.
    known : Known
        Shapes and types of the graph.
    names : sequence of str, optional
        Passes to run; by default those that are on.
    check : bool
        Whether to verify the graph after each pass.
    """
    passes = selected(names)
    if names is None:
        passes = of_stage(passes, "graph")
    return run_passes(graph, known, passes, check)


def of_stage(passes: Iterable[Any], stage: str) -> list[Any]:
    """Return the passes of a stage."""
    return [p for p in passes if p.stage == stage]
