"""Schedules: lists of prepared calls made from a plan.  Only this module allocates the arrays of an executor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .._core import core
from ..opdef import External
from ..opdef.symbolic import no_new_guards
from ..support import dtypes
from ..support.errors import MXNetError, fitting, of_gpu, translated
from .constants import is_literal, is_small
from .infer import Known, located
from .ir import Node, describe
from .plan import Phase, Plan, Result, plan_of
from .recipe import allocate, prepared, recipe_of

_NAMES = ("Executor.forward", "Executor.backward")  # names of the schedules in profiles


class Arena:
    """Buffers that the schedules of an executor share, which never run at the same time."""

    def __init__(self, device: Any):
        self.device = device
        self.arrays: dict[int, list[Any]] = {}

    def take(self, wanted: Sequence[tuple[int, int]]) -> list[Any]:
        """Return an array of at least the wanted size for each ``(type code, size)``."""
        unused = {code: sorted(arrays, key=lambda a: a.size) for code, arrays in self.arrays.items()}
        found = []
        for code, size in wanted:
            at = next((a for a in unused.get(code, ()) if a.size >= size), None)
            if at is None:
                at = allocate((size,), code, self.device)
                self.arrays.setdefault(code, []).append(at)
            else:
                unused[code] = [a for a in unused[code] if a is not at]
            found.append(at)
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers."""
        return sum(a.size * dtypes.SIZES[code] for code, arrays in self.arrays.items() for a in arrays)


class Buffers:
    """The arena of a plan: it gives placeholders, whose memory is allocated at each run."""

    def __init__(self, table: Any, device: Any):
        self.table, self.device = table, device
        self.sizes: list[tuple[int, int]] = []

    def take(self, wanted: Sequence[tuple[int, int]]) -> list[Any]:
        """Return a placeholder for each ``(type code, size)``."""
        self.sizes = list(wanted)
        return [self.table.stand_in((size,), code) for code, size in wanted]


@no_new_guards()
def build(
    phases: Sequence[Phase],
    known: Known,
    bound: dict[Node, Any],
    arena: Arena,
    share: bool = True,
    named: Any = None,
) -> tuple[list[Any], Callable[[], Plan]]:
    """Return a schedule for each phase, and a function that returns the memory plan, with the names that messages show.

    Parameters
    ----------
    bound : dict
        The array of each variable.
    share : bool
        Whether values with disjoint lifetimes share memory.
    named : callable, optional
        Maps a node to the node with the name that messages show.
    """
    constants = constants_of([n for phase in phases for n in phase.nodes], known, arena.device)
    bound = {**bound, **constants}
    _find_overlaps(phases, bound)
    strided = frozenset(n for n, a in bound.items() if not a._contiguous)
    recipe = recipe_of(phases, known, known, share, frozenset(constants), strided)
    sharing = recipe.sharing(known)
    results = [r.array for phase in phases for r in phase.results]
    completer = known.completer
    parts = () if completer is None else completer.parts.of(known.values)  # type: ignore[attr-defined]
    made = recipe.prepare(parts, bound, results, arena.take(sharing.buffers), sharing, named)
    schedules = []
    for k, (calls, steps) in enumerate(zip(made, recipe.steps, strict=True)):
        made_for = [step.node for step in steps]
        described = partial(_described, made_for, named, len(calls) - len(steps))
        explained = partial(_explained, made_for, named)
        schedules.append(core.Schedule(core.finishing(calls), explained, described, _NAMES[k], arena.device.number))
    return schedules, partial(plan_of, recipe.layout, sharing, phases, known, bound, named)


def _find_overlaps(phases: Sequence[Phase], bound: dict[Node, Any]) -> None:
    """Set `last` of the results whose arrays overlap those of variables: gradients may be written into the arguments."""
    spans = [(*core.span(a), None) for a in bound.values()]
    spans += [(*core.span(r.array), r) for phase in phases for r in phase.results]
    before: list[tuple[int, Result]] = []  # results after the last variable, with the ends of their memory
    reach = 0  # the end of the memory of the variables so far
    for low, high, result in sorted(spans, key=lambda span: span[:2]):
        if result is None:
            reach = max(reach, high)
            for r_high, r in before:
                r.last = r_high > low
            before = []
        elif low < reach:
            result.last = True
        else:
            before.append((high, result))


def _explained(nodes: list[Node], named: Callable[[Node], Node] | None, i: int, problem: Exception) -> Exception:
    return explained(_named(nodes[i], named) if i < len(nodes) else None, problem)  # None: a copy


def _described(
    nodes: list[Node], named: Callable[[Node], Node] | None, n_copies: int
) -> list[tuple[str, dict[str, Any] | None]]:
    from .listing import profiled

    return profiled([_named(n, named) for n in nodes], n_copies)


def _named(node: Node, named: Callable[[Node], Node] | None) -> Node:
    return node if named is None else named(node)


def explained(node: Node | None, problem: Exception) -> Exception:
    """Return the error of a call with its node in the message."""
    if node is None:
        return problem
    problem = of_gpu(problem, f"operator {node.name}")
    if isinstance(problem, MXNetError):
        found = located(problem, node)
        found.__cause__ = problem.__cause__
        return found.with_traceback(problem.__traceback__)
    if isinstance(problem, translated.KINDS) and (node.op.bodies or not isinstance(node.op, External)):
        found = located(fitting(problem, str(problem)), node)
        found.__cause__ = problem
        return found.with_traceback(problem.__traceback__)
    problem.add_note(f"Error in operator {node.name}: in {describe(node)}")
    return problem


def constants_of(nodes: Sequence[Node], known: Known, device: Any) -> dict[Node, Any]:
    """Return small constants as arrays, evaluated now."""
    found = {}
    for node in nodes:
        if is_constant(node, known):
            array = found[node] = allocate(known.shape((node, 0)), known.dtype((node, 0)), device)
            prepared(*known.call(node), [], [array], [1], node).run()
    return found


def is_constant(node: Node, known: Known) -> bool:
    """Return whether a node is a small constant, which is evaluated before the first run."""
    return is_literal(node) and is_small(known.shape((node, 0)))
