"""Derivatives of symbols, including those that need shapes before the symbol is bound.

Such a derivative is a node (:class:`Deferred`) that holds the graph to differentiate.  It is replaced by the gradient when the
graph is expanded with known shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ..opdef import Attrs, registry
from ..support.errors import OpValueError, UnknownShapeError
from .bodies import Bodied, Named
from .expansion import expand, expand_ahead, refuse_modes
from .gradient import gradients
from .ir import Entry, Graph, Node
from .rewrite import exchanged
from .specs import Specs, solved_inside
from .states import Effects

NAME = "_deferred_gradient"


def derivatives(who: str, outputs: Sequence[Entry], weights: Sequence[Entry] | None, wanted: Sequence[Entry]) -> list[Entry]:
    """Return derivatives of outputs, weighted or summed, with respect to the `wanted` entries; zeros if independent.

    Raises
    ------
    OpValueError
        If they depend on the mode of a run, or on random draws.
    """
    try:
        graph, moved = expand_ahead(who, Graph(outputs))
        found = gradients(graph.outputs, weights or [None] * len(outputs), [moved.get(e, e) for e in wanted])
        return [g or _zeros(e) for g, e in zip(found, wanted, strict=True)]
    except UnknownShapeError:  # a rule or composite reads a shape
        refuse_modes(who, Graph(outputs))
    body = Graph([*wanted, *outputs, *(weights or ())])
    params = {"num_args": len(body.variables) + 1, "num_outputs": len(wanted), "num_heads": len(outputs)}
    strings = {key: str(value) for key, value in params.items()}
    template: Named = registry.get(NAME)  # type: ignore[assignment]
    attrs = template.parse(strings)
    inputs = tuple((v, 0) for v in body.variables)
    node = Node(template.of(attrs, [body]), attrs, inputs, f"{outputs[0][0].name}_gradient", strings)
    return [(node, k) for k in range(len(wanted))]


def _zeros(entry: Entry) -> Entry:
    op = registry.get("zeros_like")
    return Node(op, op.parse({}), (entry,), f"{entry[0].name}_no_gradient"), 0


def _parameters(*data, num_args: int, num_outputs: int, num_heads: int):
    """Differentiate a graph once shapes are known; see ``mx.graph.deriv``."""


class Deferred(Bodied):
    """A derivative that is taken once shapes are known.

    Outputs of its body: the entries to differentiate with respect to, the entries to differentiate, then weights, if any.
    """

    def __init__(self, named: Named, attrs: Attrs, bodies: Sequence[Graph]):
        n = attrs.num_outputs, attrs.num_heads
        if len(bodies) != 1 or len(bodies[0].outputs) not in (sum(n), sum(n) + n[1]) or min(n) < 1:
            raise OpValueError(f"operator {NAME}: its parameters {dict(attrs.items())} do not fit its subgraphs")
        given = bodies[0].variables
        if attrs.num_args != len(given) + 1:
            raise OpValueError(f"operator {NAME}: num_args={attrs.num_args}; its subgraph has {len(given)} variables")
        super().__init__(NAME, [f"arg{k}" for k in range(len(given))], given, bodies, doc=named.doc)
        self._spec = named.spec

    def implied(self, F: Any, attrs: Attrs, heads: list, inputs: list, outputs: list, needed: Sequence[bool]) -> NoReturn:
        raise UnknownShapeError("the derivative of a derivative that needs shapes needs them, too")

    def num_outputs(self, attrs: Attrs, n_inputs: int | None = None) -> int:
        return attrs.num_outputs

    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        return solved_inside(self.bodies[0], self.given, ins, outs, "shape")

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        return solved_inside(self.bodies[0], self.given, ins, outs, "type")

    def inside(self, specs: Sequence[tuple], is_train: bool | None = None) -> Specs:
        return Specs(dict(zip(self.given, specs, strict=True)), is_train)

    def expanded(self, node: Node, everything: bool, effects: Effects | None, specs: Specs | None) -> list[Entry] | None:
        """Return the gradients if shapes are known, else None."""
        if specs is None:
            return None
        pairs = zip(self.given, node.inputs, strict=True)
        graph = exchanged(self.bodies[0], {(v, 0): e for v, e in pairs if e != (v, 0)})
        graph = expand(graph, everything=False, specs=specs)[0]
        if not all(n.op is None or n.op.repeatable for n in graph.nodes):
            refuse_modes("gradient", graph)
        n, m = node.attrs.num_outputs, node.attrs.num_outputs + node.attrs.num_heads
        wanted, heads = graph.outputs[:n], graph.outputs[n:m]
        found = gradients(heads, graph.outputs[m:] or [None] * len(heads), wanted, specs)
        return [g or _zeros(e) for g, e in zip(found, wanted, strict=True)]


registry.register(Named(NAME, _parameters, Deferred, "mx.graph.deriv", is_backward=True))
