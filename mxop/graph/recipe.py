"""Recipes: how the calls of a graph are prepared, made once for all sizes of a pattern."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

from .._core import core
from ..opdef import contiguous_strides, registry
from ..opdef.symbolic import Part, completed
from ..support.errors import MXNetError
from .assignment import Assign
from .fuse import Fused
from .infer import Known, located
from .ir import Entry, Node
from .plan import WRITE, Layout, Phase, Sharing, make_layout, shared
from .rowwise import Turn
from .stages import Strip


@dataclass(eq=False, repr=False)
class Step:
    """A call to prepare: its node, the indices of its inputs and outputs in :attr:`Recipe.refs`, and the requests.

    ``complete`` returns the operator and the parameters; None if they are those of the node.
    """

    node: Node
    complete: Callable[[tuple], tuple[Any, Any, dict[str, float]]] | None
    inputs: list[int]
    outputs: list[int]
    reqs: list[int]

    def completed(self, parts: tuple) -> tuple[Any, Any, dict[str, float]]:
        """Return the operator, its parameters, and the values of those in its formulas."""
        return (self.node.op, self.node.attrs, {}) if self.complete is None else self.complete(parts)


class Ref(NamedTuple):
    """An array of a recipe: that of a variable, the index of a result, or an entry in a buffer, possibly viewed in a shape.

    A slice is a view of an earlier array: ``sliced`` is its step, and the shapes of all its inputs.
    """

    of: Node | int | Entry
    shape: Part | None
    sliced: tuple[Step, list[Part]] | None = None


class Recipe:
    """How the calls of phases are prepared: what holds for all sizes of a pattern.

    Parameters
    ----------
    layout : Layout
    known : Known

    Attributes
    ----------
    refs : list of Ref
    steps : list of list of Step
        Of each phase.
    copies : list of list of (int, int, int, bool)
        For each phase the results that are copied after its nodes: index in `refs`, index of the result, request, and whether
        the size is known before a run.
    """

    def __init__(self, layout: Layout, known: Known):
        self.layout, self._known = layout, known
        self.refs: list[Ref] = []
        self._at: dict[Entry, int] = {}
        self._computed = {node for phase in layout.phases for node in phase.nodes if node.op is not None}
        first = list(accumulate([len(phase.results) for phase in layout.phases], initial=0))
        self._results = dict(enumerate(first))  # the index of each phase's first result
        self.steps = [
            [self._step(n) for n in phase.nodes if n.op is not None and (n, 0) not in layout.alias] for phase in layout.phases
        ]
        self.copies = [
            [
                (self._ref(e), first[p] + i, layout.phases[p].results[i].req, known.has_size(e))
                for i, e in zip(of, layout.copied(p), strict=True)
            ]
            for p, of in enumerate(layout.copies)
        ]
        self.buffered = any(type(ref.of) is tuple for ref in self.refs)

    def _step(self, node: Node) -> Step:
        outputs = [(node, k) for k in range(node.n_outputs)]
        complete = None if self._known.completer is None else self._known.completer.call(node)
        return Step(node, complete, list(map(self._ref, node.inputs)), list(map(self._ref, outputs)),
                    list(map(self.layout.req, outputs)))  # fmt: skip

    def _ref(self, entry: Entry) -> int:
        """Return the index of the array of an entry."""
        found = self._at.get(entry)
        if found is None:
            ref = self._ref_of(entry)
            found = self._at[entry] = len(self.refs)
            self.refs.append(ref)
        return found

    def _ref_of(self, entry: Entry) -> Ref:
        if entry in self.layout.slices:
            return self._slice(entry[0])
        root = self.layout.root(entry)
        place = self.layout.places.get(root)
        if place is None:
            of = root if root[0] in self._computed else root[0]
        else:
            of = place.of if isinstance(place.of, Node) else self._results[place.of[0]] + place.of[1]
        plain = root is entry and (place is not None or type(of) is not tuple) and not (place and place.viewed)
        if plain:
            return Ref(of, None)
        return Ref(of, self._part(self._known.shape(entry)))

    def _part(self, shape: tuple) -> Part:
        completer = self._known.completer
        return (-1, shape) if completer is None else completer.parts.add(shape)

    def _slice(self, node: Node) -> Ref:
        source = self._ref(node.inputs[0])
        complete = None if self._known.completer is None else self._known.completer.call(node)
        return Ref(
            source, None, (Step(node, complete, [source], [], []), [self._part(self._known.shape(e)) for e in node.inputs])
        )

    def sharing(self, known: Known) -> Sharing:
        """Return the buffers for the sizes in `known`."""
        return shared(self.layout, known) if self.buffered else Sharing()

    def carried(self, sharing: Sharing) -> set[int]:
        """Return the buffers that hold values between phases."""
        return {sharing.homes[e].buffer for e in self._carried if e in sharing.homes}

    @cached_property
    def _carried(self) -> set[Entry]:
        return self.layout.carried()

    def prepare(
        self,
        parts: tuple,
        bound: Mapping[Node, Any],
        results: Sequence[Any],
        buffers: Sequence[Any],
        sharing: Sharing,
        named: Any = None,
    ) -> list[list[Any]]:
        """Return the prepared calls of each phase.

        Parameters
        ----------
        parts : tuple
            What :meth:`Completions.of` returned for the sizes.
        bound : dict
            The array of each variable and constant.
        results, buffers : sequence of NDArray
        named : callable, optional
            Maps a node to the node with the name that messages show.
        """
        arrays = []
        for ref in self.refs:
            if ref.sliced is not None:
                array = _sliced(arrays[ref.of], *ref.sliced, parts)  # type: ignore[index]
            elif type(ref.of) is tuple:
                array = buffers[sharing.homes[ref.of].buffer]
            elif type(ref.of) is int:
                array = results[ref.of]
            else:
                array = bound[ref.of]  # type: ignore[index]
            arrays.append(array if ref.shape is None else seen_as(array, completed(ref.shape, parts)))
        found = []
        for steps, copies in zip(self.steps, self.copies, strict=True):
            calls = []
            for step in steps:
                node = step.node
                op, attrs, numbers = step.completed(parts)
                inputs, outputs = [arrays[i] for i in step.inputs], [arrays[i] for i in step.outputs]
                calls.append(prepared(op, attrs, inputs, outputs, step.reqs, node, named, numbers))
            found.append(calls + [copy_call(arrays[i], results[k], req, sized) for i, k, req, sized in copies])
        return found


def recipe_of(
    phases: Sequence[Phase], known: Known, sizes: Known, share: bool, constants: frozenset, strided: frozenset
) -> Recipe:
    """Return the recipe for phases, cached in ``sizes.recipes``.

    Parameters
    ----------
    known, sizes : Known
        Relations between sizes are read from `known`; `sizes` are those that the order of nodes is chosen for.
    constants : frozenset of Node
        Nodes evaluated before the first run: arrays, as variables are.
    strided : frozenset of Node
        Variables whose arrays are not contiguous.
    """
    key = share, constants, strided, tuple([tuple([r.form for r in phase.results]) for phase in phases])
    found = sizes.recipes.get(key)
    if found is None:
        phases = [Phase([n for n in phase.nodes if n not in constants], phase.results) for phase in phases]
        found = sizes.recipes[key] = Recipe(make_layout(phases, known, sizes, strided, share), known)
    return found


# ---- arrays and calls ---------------------------------------------------------------------------------------------------
def allocate(shape: tuple[int | None, ...], code: int, device: Any) -> Any:
    """Return a new array on a device; a dimension of None is 0 until a run determines it."""
    if None in shape:
        shape = tuple([d or 0 for d in shape])
    return device.empty(tuple(shape), code)


def seen_as(array: Any, shape: tuple[int, ...]) -> Any:
    """Return a view of the start of a contiguous array in another shape."""
    return array._view(tuple(shape), contiguous_strides(shape), 0)


def _sliced(array: Any, step: Step, shapes: Sequence[Part], parts: tuple) -> Any:
    """Return the view of an array that a step without a call is."""
    op, attrs, _ = step.completed(parts)
    given = [completed(shape, parts) for shape in shapes]
    return array._view(*op.make_view(given[0], array._strides, *given[1:], **attrs))


def prepared(
    op: Any, attrs: Any, inputs: list[Any], outputs: list[Any], reqs: list[int], node: Node, named: Any = None,
    numbers: dict[str, float] | None = None,
) -> Any:  # fmt: skip
    """Return the prepared call of a node, whose operator and parameters have been completed.

    `numbers` are the values of the parameters in its formulas.
    """
    try:
        if isinstance(op, Strip):
            return _row_kernel(op, inputs, outputs, reqs, numbers)
        if isinstance(op, Assign):
            return _assigned(inputs, outputs, reqs)
        if isinstance(op, Fused):
            return core.prepare_formula(op.roots, inputs, outputs, reqs, numbers)
        return core.prepare(op, attrs, inputs, outputs, reqs)
    except MXNetError as problem:
        raise located(problem, node if named is None else named(node)) from problem.__cause__


def _assigned(inputs: list[Any], outputs: list[Any], reqs: list[int]) -> Any:
    """Return the prepared assignment of a variable: a copy, and a second one if its output is read."""
    state, value = inputs
    copies = [copy_call(value, state, WRITE)] if value is not state else []
    copies += [copy_call(value, outputs[0], reqs[0])] if reqs[0] else []
    return copies[0] if len(copies) == 1 else core.Sequence(copies)


def _row_kernel(op: Strip, inputs: list[Any], outputs: list[Any], reqs: list[int], numbers: dict[str, float] | None) -> Any:
    """Return the prepared call of a row kernel; results that it cannot write in place are copied afterwards."""
    device = outputs[0]._device

    def prepare(results: list[Any]) -> Any:
        given = [_turned(a, shape, op.turn) for a, shape in zip((*inputs, *results), op.seen, strict=True)]
        arrays = [_of_shape(a, shape) for a, shape in zip(given, op.shapes, strict=True)]
        return device.row_kernel(op.rows, op.locals_, op.stages, arrays, bool(op.turn.order), numbers or {})

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
