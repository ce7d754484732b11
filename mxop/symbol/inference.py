"""Inference of a symbol's shapes and types, in MXNet's forms.

Inside, what is unknown is None; MXNet's 0 and ``()`` exist only here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..graph.infer import Shapes, Solver, Types, declared_shape, declared_type
from ..graph.ir import Graph, Node
from ..opdef import infer
from ..opdef.params import Bad, as_shape
from ..support import dtypes
from ..support.errors import OpTypeError, OpValueError, closest
from ..support.shape_mode import numpy_shape


def infer_shape(symbol: Any, args: Sequence[Any], kwargs: Mapping[str, Any], partial: bool) -> tuple:
    """See ``Symbol.infer_shape``."""
    graph = Graph(symbol._entries)
    given = _match(graph, args, kwargs, _checked_shape)
    solver = solve_shapes(graph, given)
    legacy = numpy_shape()

    def form(shapes: list) -> list:
        return [infer.to_legacy(s, legacy) for s in shapes]

    return _results(graph, solver, infer.known, form, partial, "shape")


def infer_type(symbol: Any, args: Sequence[Any], kwargs: Mapping[str, Any], partial: bool) -> tuple:
    """See ``Symbol.infer_type``."""
    graph = Graph(symbol._entries)
    given = _match(graph, args, kwargs, lambda name, value: dtypes.code_of(value))
    solver = solve_types(graph, given)
    solver.run()

    def form(types: list) -> list:
        return [None if t == dtypes.UNKNOWN else dtypes.type_of(t) for t in types]

    return _results(graph, solver, lambda t: t != dtypes.UNKNOWN, form, partial, "type")


def solve_shapes(graph: Graph, given: Mapping[Node, Any]) -> Shapes:
    """Infer shapes from those given (over those declared) for variables."""
    solver = Shapes(graph)
    for node in graph.variables:
        shape, declared = given.get(node), declared_shape(node)
        solver.set((node, 0), infer.unify(shape, declared) if infer.compatible(shape, declared) else shape)
    solver.run()
    return solver


def solve_types(graph: Graph, given: Mapping[Node, int]) -> Types:
    """Prepare the inference of types."""
    solver = Types(graph)
    for node in graph.variables:
        solver.set((node, 0), given[node] if node in given else declared_type(node))
    return solver


def _checked_shape(name: str, shape: Any) -> infer.Shape:
    try:
        found = None if shape is None else as_shape(shape)
    except Bad:
        raise OpTypeError(f"Arguments need to be shapes (tuple), but '{name}' is {type(shape)}: {shape!r}") from None
    try:
        return infer.from_legacy(found, numpy_shape())
    except OpValueError as problem:
        raise OpValueError(f"argument '{name}': {problem}") from None


def _match(graph: Graph, args: Sequence[Any], kwargs: Mapping[str, Any], read: Callable[[str, Any], Any]) -> dict[Node, Any]:
    """Return what is given for each variable."""
    if args and kwargs:
        raise OpValueError("Can only specify known arguments either by position or by name, not both.")
    found: dict[Node, Any] = {}
    if args:
        arguments = graph.arguments()[0]
        if len(args) > len(arguments):
            raise OpTypeError(f"{len(args)} arguments are given; the symbol has {len(arguments)}: "
                              f"{', '.join(n.name for n in arguments)}")  # fmt: skip
        found = {n: read(n.name, value) for n, value in zip(arguments, args) if value is not None}
    names = [n.name for n in graph.variables]
    for key, value in kwargs.items():
        nodes = [n for n in graph.variables if n.name == key]
        if not nodes:
            raise OpValueError(f"argument name {key!r} not found{closest(key, names)}; candidate arguments: {', '.join(names)}")
        found.update(dict.fromkeys(nodes, read(key, value)))
    return found


def _results(graph: Graph, solver: Solver, known: Callable, form: Callable, partial: bool, what: str) -> tuple:
    arguments, states = graph.arguments()
    args = [solver.get((n, 0)) for n in arguments]
    outs = [solver.get(e) for e in graph.outputs]
    aux = [solver.get((n, 0)) for n in states]
    if not partial and not all(map(known, (*args, *outs, *aux))):
        missing = [n.name for n, value in zip(arguments, args, strict=True) if not known(value)]
        warnings.warn(f"Cannot decide {what} for the following arguments; consider providing them as input: "
                      f"{', '.join(missing) or 'none, but outputs are unknown'}", stacklevel=5)  # fmt: skip
        return None, None, None
    return form(args), form(outs), form(aux)
