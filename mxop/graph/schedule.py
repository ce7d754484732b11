"""Schedules: lists of prepared calls made from a plan.  Only this module allocates the arrays of an executor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .._core import core
from ..opdef import External, contiguous_strides, registry
from ..opdef.symbolic import no_new_guards
from ..support import dtypes
from ..support.errors import MXNetError, fitting, translated
from .assignment import Assign
from .constants import is_literal, is_small
from .fuse import Fused
from .infer import Known, located
from .ir import Entry, Node, describe
from .plan import WRITE, Layout, Phase, Plan, Result, Sharing, make_layout, plan_of, shared
from .rowwise import Turn
from .stages import Strip

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


def allocate(shape: tuple[int | None, ...], code: int, device: Any) -> Any:
    """Return a new array on a device; a dimension of None is 0 until a run determines it."""
    if None in shape:
        shape = tuple([d or 0 for d in shape])
    return device.empty(tuple(shape), code)


@no_new_guards()
def build(
    phases: Sequence[Phase],
    known: Known,
    bound: dict[Node, Any],
    arena: Arena,
    share: bool = True,
    named: Any = None,
) -> tuple[list[Any], Plan]:
    """Return a schedule for each phase, and the memory plan.

    Parameters
    ----------
    bound : dict
        The array of each variable.
    share : bool
        Whether values with disjoint lifetimes share memory.
    named : callable, optional
        Maps a node to the node with the name that messages show.
    """
    constants = _constants([n for phase in phases for n in phase.nodes], known, bound, arena.device)
    bound = {**bound, **constants}
    _find_overlaps(phases, bound)
    strided = frozenset(n for n, a in bound.items() if not a._contiguous)
    layout, sharing = laid_out(phases, known, known, share, frozenset(constants), strided)
    plan = plan_of(layout, sharing, phases, known, bound)
    plan.names = named
    arrays = _Arrays(plan, known, bound, arena.take(plan.buffers))
    schedules = []
    for k, (phase, copies) in enumerate(zip(plan.phases, plan.copies, strict=True)):
        calls, made_for = [], []
        for node in phase.nodes:
            if node.op is None or (node, 0) in plan.alias:
                continue
            outputs = [(node, k) for k in range(node.n_outputs)]
            reqs = [plan.homes[e].req for e in outputs]
            own = [arrays.of(e) for e in node.inputs], [arrays.of(e) for e in outputs], reqs
            calls.append(prepared(node, *own, known, named))
            made_for.append(node)
        calls += [copy_call(arrays.of(r.entry), r.array, r.req, known.has_size(r.entry)) for r in copies]
        described = partial(_described, made_for, named, len(copies))
        schedules.append(
            core.Schedule(core.finishing(calls), partial(_explained, made_for, named), described, _NAMES[k])
        )
    return schedules, plan


def laid_out(
    phases: Sequence[Phase], known: Known, sizes: Known, share: bool, constants: frozenset, strided: frozenset
) -> tuple[Layout, Sharing]:
    """Return the memory layout and the sharing of buffers, cached in ``sizes.layouts``.

    Parameters
    ----------
    known, sizes : Known
        Relations between sizes are read from `known`, sizes from `sizes`.
    constants : frozenset of Node
        Nodes evaluated before the first run: arrays, as variables are.
    strided : frozenset of Node
        Variables whose arrays are not contiguous.
    """
    key = share, constants, strided, tuple([tuple([r.form for r in phase.results]) for phase in phases])
    found = sizes.layouts.get(key)
    if found is None or found[1] is None:
        layout = found[0] if found else None
        if layout is None:
            phases = [Phase([n for n in phase.nodes if n not in constants], phase.results) for phase in phases]
            layout = make_layout(phases, known, sizes, strided, share)
        found = sizes.layouts[key] = layout, shared(layout, sizes)
    return found


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


class _Arrays:
    """The arrays that values are stored in, made on first use."""

    def __init__(self, plan: Plan, known: Known, bound: dict[Node, Any], buffers: list[Any]):
        self._plan, self._known, self._buffers = plan, known, buffers
        self._found: dict[Entry, Any] = {(node, 0): array for node, array in bound.items()}

    def of(self, entry: Entry) -> Any:
        """Return the array of an entry."""
        found = self._found.get(entry)
        if found is None:
            root = self._plan.root(entry)
            if root is not entry:
                found = seen_as(self.of(root), self._known.shape(entry))
            else:
                home = self._plan.homes[entry]
                found = (
                    home.array
                    if home.array is not None
                    else seen_as(self._buffers[home.buffer], self._known.shape(entry))
                )
            self._found[entry] = found
        return found


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


def _constants(nodes: Sequence[Node], known: Known, bound: dict[Node, Any], device: Any) -> dict[Node, Any]:
    """Return small constants as arrays, evaluated now."""
    found = {}
    for node in nodes:
        if is_constant(node, known) and node not in bound:
            array = found[node] = allocate(known.shape((node, 0)), known.dtype((node, 0)), device)
            prepared(node, [], [array], [1], known).run()
    return found


def is_constant(node: Node, known: Known) -> bool:
    """Return whether a node is a small constant, which is evaluated before the first run."""
    return is_literal(node) and is_small(known.shape((node, 0)))


def seen_as(array: Any, shape: tuple[int, ...]) -> Any:
    """Return a view of the start of a contiguous array in another shape."""
    return array._view(tuple(shape), contiguous_strides(shape), 0)


def prepared(
    node: Node,
    inputs: list[Any],
    outputs: list[Any],
    reqs: list[int],
    known: Known | None = None,
    named: Callable[[Node], Node] | None = None,
) -> Any:
    """Return the prepared call of a node, with the sizes and parameters in `known`."""
    op, attrs = (node.op, node.attrs) if known is None else known.call(node)
    try:
        if isinstance(op, Strip):
            return _strip(op, inputs, outputs, reqs)
        if isinstance(op, Assign):
            return _assigned(inputs, outputs, reqs)
        if isinstance(op, Fused):
            return core.prepare_formula(op.roots, inputs, outputs, reqs)
        return core.prepare(op, attrs, inputs, outputs, reqs)
    except MXNetError as problem:
        raise located(problem, _named(node, named)) from problem.__cause__


def _assigned(inputs: list[Any], outputs: list[Any], reqs: list[int]) -> Any:
    """Return the prepared assignment of a variable: a copy, and a second one if its output is read."""
    state, value = inputs
    copies = [copy_call(value, state, WRITE)] if value is not state else []
    copies += [copy_call(value, outputs[0], reqs[0])] if reqs[0] else []
    return copies[0] if len(copies) == 1 else core.Sequence(copies)


def _strip(op: Strip, inputs: list[Any], outputs: list[Any], reqs: list[int]) -> Any:
    """Return the prepared call of a row kernel; results that it cannot write in place are copied afterwards."""
    device = outputs[0]._device
    stages = [(s.roots, list(s.inputs), list(s.outputs), s.combine, s.shape) for s in op.stages]

    def prepare(results: list[Any]) -> Any:
        given = [_turned(a, shape, op.turn) for a, shape in zip((*inputs, *results), op.seen, strict=True)]
        arrays = [_of_shape(a, shape) for a, shape in zip(given, op.shapes, strict=True)]
        return device.strip(op.rows, list(op.locals_), stages, arrays, bool(op.turn.order))

    own = [a if req == WRITE else allocate(*of, device) for a, req, of in zip(outputs, reqs, op.results, strict=True)]
    call = prepare(own)
    if call is None:
        own = [allocate(*of, device) for of in op.results]
        call = prepare(own)
    copies = [copy_call(a, b, req) for a, b, req in zip(own, outputs, reqs, strict=True) if a is not b and req]
    return core.Sequence([call, *copies]) if copies else call


def _turned(array: Any, shape: tuple[int, ...], turn: Turn) -> Any:
    """Return an array with its axes in the order of `turn`, once the array has as many dimensions as the turn."""
    if len(shape) != len(turn.order):
        return array
    array = _of_shape(array, turn.back(shape))
    return array._view(turn(array.shape), turn(array._strides), 0)


def _of_shape(array: Any, shape: tuple[int, ...]) -> Any:
    """Return a view of an array with dimensions of size 1 added or removed."""
    if array.shape == shape:
        return array
    strides = iter([s for d, s in zip(array.shape, array._strides, strict=True) if d != 1])
    return array._view(shape, tuple([1 if d == 1 else next(strides) for d in shape]), 0)


def copy_call(source: Any, target: Any, req: int = 1, has_size: bool = True) -> Any:
    """Return a call that copies (1) or adds (3) `source` to `target`; if sizes are unknown, `target` becomes the copy."""
    op = registry.get("_copy")
    if not has_size:
        return core.prepare_sized(op, op.parse({}), [source], [target], [WRITE], [True])
    return core.prepare(op, op.parse({}), [source], [target], [req])
