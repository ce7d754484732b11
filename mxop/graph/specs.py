"""Shapes and types while a graph is built, inferred on demand; and inference of operators that are graphs."""

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
from .ir import Entry, Graph, Node, topological, variable


class Specs:
    """Shapes and types of a graph's entries, inferred on demand from those of the variables.

    Parameters
    ----------
    given : dict
        Shape and type code of variables.
    is_train : bool, optional
        The mode for operators that composites and rules call; None if the graph is not built to run.

    Attributes
    ----------
    same : dict
        Maps variables to entries of the same shape and type.
    """

    def __init__(self, given: Mapping[Node, tuple], is_train: bool | None = None):
        self.is_train = is_train
        self.same: dict[Node, Entry] = {}
        self._known = Known()
        for node, spec in given.items():
            if spec is not None and (spec[0] is None or infer.known(spec[0])):
                self._known.put(node, [spec[0] if spec[0] is None else tuple(spec[0])], [spec[1]])

    def put(self, node: Node, shape: Any, code: int) -> None:
        """Set shape and type code of a variable."""
        self._known.put(node, [shape], [code])

    def __call__(self, entry: Entry) -> tuple[Any, int]:
        for node in topological([entry[0]], self._unknown_below):
            if node in self.same:
                like = self.same[node]
                self._known.put(node, [self._known.shape(like)], [self._known.dtype(like)])
            elif node not in self._known:
                if node.op is None:
                    self._known.put(node, [None], [dtypes.UNKNOWN])
                else:
                    self._known.add(node)
        return self._known.shape(entry), self._known.dtype(entry)

    def _unknown_below(self, node: Node) -> list[Node]:
        needs = [self.same[node][0]] if node in self.same else [n for n, _ in node.inputs]
        return [n for n in needs if n not in self._known]


# ---- composites -----------------------------------------------------------------------------------------------------
_Inside = tuple[Graph, list[Node]]
_insides: dict[tuple, _Inside | None] = {}  # None: the function reads shapes
_shaped: dict[tuple, list[tuple[int, ...]]] = {}  # the last shapes of functions that do
_MISSING = object()


def inside(op: Operator, attrs: Any, n_inputs: int, specs: tuple | None = None) -> _Inside | None:
    """Return the graph of a composite, and the variables of its inputs.

    Parameters
    ----------
    specs : tuple of (shape, type code), optional
        Shapes and types of the inputs, for a function that reads them.

    Returns
    -------
    graph, inputs
        None if the function reads an unknown shape or type.
    """
    key = (op, attrs, n_inputs, specs)
    found = _insides.get(key, _MISSING)
    if found is _MISSING:  # read once: another thread may empty the cache
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
    """Clear the caches for composites: an operator was redefined."""
    _insides.clear()
    _shaped.clear()


on_change(forget)


def infer_inside(op: Operator, attrs: Any, ins: list, outs: list, what: str) -> tuple[list, list]:
    """Infer a composite's shapes or types through the operators inside.

    If its function reads shapes, nothing is inferred until those of all inputs are known.
    """
    found = inside(op, attrs, len(ins))
    if found is None:
        found = _inside_shaped(op, attrs, ins, what)
    if found is None:
        return ins, outs
    return solved_inside(*found, ins, outs, what)


def _inside_shaped(op: Operator, attrs: Any, ins: list, what: str) -> _Inside | None:
    """Return the graph of a composite whose function reads shapes.

    Shapes and types are inferred separately: types for the last known shapes, shapes for float32, since types do not affect
    shapes.
    """
    key = (op, attrs, len(ins))
    if what == "shape" and all(map(infer.known, ins)):
        shapes = keep(_shaped, key, [tuple(s) for s in ins])
        return inside(*key, tuple((s, dtypes.FLOAT32) for s in shapes))
    if what == "shape":
        return None
    known = _shaped.get(key, [None] * len(ins))  # a function that reads types alone needs no shapes
    return inside(*key, tuple(zip(known, ins, strict=True)))


def infer_whole(op: Operator, attrs: Any, shapes: list, types: list[int]) -> tuple[list, list[int]] | None:
    """Return shapes and types of the outputs of a composite whose function reads shapes or types; None for others."""
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
    """Infer the shapes or types of an operator that is a graph; `outs` are those of its first outputs.

    ``settle(solver)`` may add constraints.
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
