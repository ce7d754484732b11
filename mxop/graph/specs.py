"""Shapes and types for those who ask while a graph is built, and those of operators that stand for a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..opdef import Operator, infer
from ..opdef.operator import on_change
from ..support import dtypes
from ..support.errors import UnknownShapeError, translated
from ..support.memo import keep
from .builder import Builder, entries_of
from .infer import Known, Shapes, Solver, Types
from .ir import Entry, Graph, Node, variable


class Specs:
    """Shapes and types of a graph's entries, inferred from those of the variables when somebody asks.

    Parameters
    ----------
    given : dict
        Shape and type code of variables.
    is_train : bool, optional
        The mode that what composites and rules call is told; None where graphs are not made to run.

    Attributes
    ----------
    same : dict
        Variables that have shape and type of an entry.
    """

    def __init__(self, given: Mapping[Node, tuple], is_train: bool | None = None):
        self.is_train = is_train
        self.same: dict[Node, Entry] = {}
        self._known = Known()
        for node, spec in given.items():
            if spec is not None and infer.known(spec[0]):
                self._known.put(node, [tuple(spec[0])], [spec[1]])

    def put(self, node: Node, shape: Any, code: int) -> None:
        """Say what a variable is."""
        self._known.put(node, [shape], [code])

    def __call__(self, entry: Entry) -> tuple[Any, int]:
        waiting = [entry[0]]
        while waiting:  # a graph may be deeper than Python's stack
            node = waiting[-1]
            needs = [self.same[node][0]] if node in self.same else [n for n, _ in node.inputs]
            missing = [n for n in needs if n not in self._known]
            waiting += missing
            if missing:
                continue
            waiting.pop()
            if node in self.same:
                like = self.same[node]
                self._known.put(node, [self._known.shape(like)], [self._known.dtype(like)])
            elif node not in self._known:
                if node.op is None:
                    self._known.put(node, [None], [dtypes.UNKNOWN])
                else:
                    self._known.add(node)
        return self._known.shape(entry), self._known.dtype(entry)


# ---- composites -----------------------------------------------------------------------------------------------------
_Inside = tuple[Graph, list[Node]]
_insides: dict[tuple, _Inside | None] = {}  # None: the function asks for shapes
_shaped: dict[tuple, list[tuple[int, ...]]] = {}  # the last shapes of those that do
_MISSING = object()


def inside(op: Operator, attrs: Any, n_inputs: int, specs: tuple | None = None) -> _Inside | None:
    """Return the graph that a composite stands for, and the variables that are its inputs.

    Parameters
    ----------
    specs : tuple of (shape, type code), optional
        What is known of the inputs, for a function that asks for it.

    Returns
    -------
    graph, inputs
        None when the function asks for what is not known.
    """
    key = (op, attrs, n_inputs, specs)
    found = _insides.get(key, _MISSING)
    if found is _MISSING:  # another thread may empty what is kept at any time
        found = keep(_insides, key, _traced(op, attrs, n_inputs, specs))
    return found  # type: ignore[return-value]


def _traced(op: Operator, attrs: Any, n_inputs: int, specs: tuple | None) -> _Inside | None:
    inputs = [variable(name) for name in op.input_names(attrs, n_inputs)]
    builder = Builder(None if specs is None else Specs(dict(zip(inputs, specs, strict=True))))
    builder.work_for(variable(op.name.lstrip("_")), "_inside")
    try:
        with translated(f"operator {op.name}"):
            result = op.called(builder, [builder.value((v, 0)) for v in inputs], attrs)
    except UnknownShapeError:
        return None
    count = op.num_outputs(attrs, n_inputs)
    return Graph(entries_of(result, count, f"composite operator {op.name}")), inputs


def forget(op: Operator) -> None:
    """Drop what is kept of composites: one may be defined anew."""
    _insides.clear()
    _shaped.clear()


on_change(forget)


def infer_inside(op: Operator, attrs: Any, ins: list, outs: list, what: str) -> tuple[list, list]:
    """Infer a composite's shapes or types through the operators inside.

    Of one whose function asks for shapes nothing is found before those of all inputs are known.
    """
    found = inside(op, attrs, len(ins))
    if found is None:
        found = _inside_shaped(op, attrs, ins, what)
    if found is None:
        return ins, outs
    return solved_inside(*found, ins, outs, what)


def _inside_shaped(op: Operator, attrs: Any, ins: list, what: str) -> _Inside | None:
    """Return what a composite that asks for shapes stands for.

    Shapes and types are inferred one after the other: types for the shapes that were found last, shapes for float32 (a type
    decides on no shape).
    """
    key = (op, attrs, len(ins))
    if what == "shape" and all(map(infer.known, ins)):
        shapes = keep(_shaped, key, [tuple(s) for s in ins])
        return inside(*key, tuple((s, dtypes.FLOAT32) for s in shapes))
    known = _shaped.get(key) if what == "type" else None
    return None if known is None else inside(*key, tuple(zip(known, ins, strict=True)))


def infer_whole(op: Operator, attrs: Any, shapes: list, types: list[int]) -> tuple[list, list[int]] | None:
    """Infer the outputs of a composite whose function asks for shapes or types; None for others."""
    n = len(shapes)
    if inside(op, attrs, n) is not None:
        return None
    found = inside(op, attrs, n, tuple((tuple(s), t) for s, t in zip(shapes, types, strict=True)))
    if found is None:
        return None
    graph, inputs = found
    known = Known.solve(graph, dict(zip(inputs, zip(shapes, types, strict=True), strict=True)))
    return [known.shape(e) for e in graph.outputs], [known.dtype(e) for e in graph.outputs]


def solved_inside(
    graph: Graph, inputs: list[Node], ins: Sequence, outs: Sequence, what: str, settle: Callable | None = None
) -> tuple[list, list]:
    """Infer the shapes or types of an operator that stands for a graph, as far as its first outputs are those.

    ``settle(solver)`` adds what is known besides.
    """
    solver: Solver = Shapes(graph) if what == "shape" else Types(graph)
    for node, value in zip(inputs, ins, strict=True):
        if node in solver and value != solver.unknown:
            solver.set((node, 0), value)
    for entry, value in zip(graph.outputs, outs, strict=False):
        if value != solver.unknown:
            solver.set(entry, value)
    solver.run()
    if settle is not None:
        settle(solver)
    found = [solver.get((n, 0)) if n in solver else value for n, value in zip(inputs, ins, strict=True)]
    return found, [solver.get(e) for e in graph.outputs[: len(outs)]]
