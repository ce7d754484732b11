"""MXNet's operators of control flow: ``_foreach``, ``_while_loop`` and ``_cond``, as symbols and their files have them.

Each call holds its subgraphs as they are written, with variables of their own; parameters say at which input of the call
each variable lies.  Before a graph is differentiated or run, a call becomes one or two :class:`.loops.Loop`, whose bodies
share variables; auxiliary states become states of the loop.  What a call says of shapes and types is what these say.
Imports :mod:`.bodies`, :mod:`.loop_gradient`, :mod:`.pure`, :mod:`.specs` and :mod:`mxop.opdef`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from .. import dtypes
from ..errors import OpValueError
from ..opdef import Attrs, registry
from ..opdef.params import Shape
from .bodies import Bodied, Named, is_vector, over_inputs, slice_of
from .builder import Builder, Value
from .ir import Entry, Graph, Node, variable
from .loop_gradient import Pairs, added
from .pure import Pure, pure
from .specs import Specs, solved_inside
from .states import Effects


class ControlFlow(Bodied):
    """One call of an operator of control flow.

    Attributes
    ----------
    attrs : Attrs
    inner : list of list of Node
        The variables of each body, in its order.
    at : list of tuple of int
        The inputs of the call that they are.
    """

    n_bodies = 1

    def __init__(self, named: Named, attrs: Attrs, bodies: Sequence[Graph]):
        if len(bodies) != self.n_bodies:
            raise OpValueError(f"operator {named.name} has {self.n_bodies} subgraphs, {len(bodies)} given")
        names = [f"arg{k}" for k in range(attrs.num_args - len(bodies))]
        super().__init__(named.name, names, (), bodies, doc=named.doc)
        self._spec, self.attrs, self.inner = named.spec, attrs, [b.variables for b in bodies]
        self.at = self._positions()
        self._graph()  # it says what does not fit
        states = {v for b in bodies for v in b.arguments()[1]}
        self.aux = tuple(names[k] for k in sorted({k for v, k in self._inside if v in states}))

    @property
    def _inside(self) -> list[tuple[Node, int]]:
        """Each variable of a body, and the input that it is."""
        return [p for inner, at in zip(self.inner, self.at, strict=True) for p in zip(inner, at, strict=True)]

    def _positions(self) -> list[tuple[int, ...]]:
        """Return at which inputs of the call the variables of each body lie."""
        raise NotImplementedError

    def made(self, F: Builder, inputs: list[Value], bodies: Sequence[Pure]) -> tuple[list[Value], dict[int, Value]]:
        """Add the loops that a call is; return its outputs, and the new values of the inputs that are states.

        The bodies were made pure, or not yet.
        """
        place, graphs = over_inputs(self.name, len(inputs), [b.graph for b in bodies], self.inner, self.at)
        return self._made(F, list(zip(place, inputs, strict=True)), graphs, bodies)

    def _made(self, F: Builder, pairs: Pairs, graphs: list[Graph], bodies: Sequence[Pure]) -> Any:
        """Do so for graphs over shared variables, one for each input."""
        raise NotImplementedError

    def _check_answer(self, body: Pure) -> None:
        """Raise unless a condition has one output."""
        if body.n != 1:
            raise OpValueError(f"operator {self.name}: the condition has {body.n} outputs; expected one")

    def num_outputs(self, attrs: Attrs, n_inputs: int | None = None) -> int:
        return attrs.num_outputs

    # ---- inference ------------------------------------------------------------------------------------------------------
    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        return solved_inside(*self._graph(ins), ins, outs, "shape")

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        return solved_inside(*self._graph(), ins, outs, "type")

    @cached_property
    def _graphs(self) -> dict[tuple[bool, ...], tuple[Graph, list[Node]]]:
        return {}

    def _graph(self, shapes: Sequence[Any] = ()) -> tuple[Graph, list[Node]]:
        """Return what a call stands for, and the variables that are its inputs."""
        key = tuple(map(is_vector, shapes))
        if key not in self._graphs:
            inputs = [variable(name) for name in self.arguments]
            known = dict(zip(inputs, shapes, strict=False))
            F = Builder(lambda e: (known.get(e[0]), dtypes.UNKNOWN))
            outputs, _ = self.made(F, [F.value((v, 0)) for v in inputs], [Pure(b) for b in self.bodies])
            graph = Graph([v.entry for v in outputs])
            for node in graph.nodes:
                node.name = "" if node.op is not None else node.name  # messages name the call
            self._graphs[key] = graph, inputs
        return self._graphs[key]

    # ---- running --------------------------------------------------------------------------------------------------------
    def inside(self, specs: Sequence[tuple[Any, int]]) -> Specs:
        data = self._data()
        found = [(s and slice_of(s), t) if k in data else (s, t) for k, (s, t) in enumerate(specs)]
        return Specs({v: found[k] for v, k in self._inside})

    def _data(self) -> list[int]:
        """Return the inputs of the call of which the bodies read slices."""
        return []

    def expanded(
        self, node: Node, everything: bool, effects: Effects | None, specs: Specs | None
    ) -> list[Entry] | None:
        """Return the loops that a call is, and deliver its auxiliary states."""
        inner = None if specs is None else self.inside([specs(e) for e in node.inputs])
        if inner is not None:
            inner.is_train = specs.is_train
        bodies = [pure(b, v, at, inner) for b, v, at in zip(self.bodies, self.inner, self.at, strict=True)]
        F = Builder(specs)
        F.work_for(node, "", node.order, node.control if effects is None else effects.control_of(node))
        outputs, states = self.made(F, [F.value(e) for e in node.inputs], bodies)
        for k, value in states.items() if effects is not None else ():
            effects.assign(node, node.inputs[k], value.entry)
        return [v.entry for v in outputs]


# ---- loops --------------------------------------------------------------------------------------------------------------
def _foreach_parameters(
    *data, num_args: int, num_outputs: int, num_out_data: int, in_state_locs: Shape, in_data_locs: Shape, remain_locs: Shape
):  # fmt: skip
    """Run a body over slices of arrays; see ``mx.sym.contrib.foreach``."""


def _while_parameters(
    *data, num_args: int, num_outputs: int, num_out_data: int, max_iterations: int, cond_input_locs: Shape,
    func_input_locs: Shape, func_var_locs: Shape,
):  # fmt: skip
    """Run a body while a condition holds; see ``mx.sym.contrib.while_loop``."""


def _cond_parameters(
    *data, num_args: int, num_outputs: int, cond_input_locs: Shape, then_input_locs: Shape, else_input_locs: Shape
):
    """Run one of two bodies; see ``mx.sym.contrib.cond``."""


class LoopCall(ControlFlow):
    """What ``_foreach`` and ``_while_loop`` share: the last body is that of a loop."""

    def _states(self) -> list[int]:
        """Return the inputs of the call that are states."""
        raise NotImplementedError

    def _made(self, F: Builder, pairs: Pairs, graphs: list[Graph], bodies: Sequence[Pure]) -> Any:
        (*asked, body), outputs, n_out = bodies, graphs[-1].outputs, self.attrs.num_out_data
        data, states = self._data(), self._states()
        if body.n != n_out + len(states) or self.attrs.num_outputs != body.n or not 0 <= n_out <= body.n:
            raise OpValueError(f"operator {self.name}: the body has {body.n} outputs; the parameters say {n_out} and "
                               f"{len(states)} states, of {self.attrs.num_outputs}")  # fmt: skip
        if (steps := self.attrs.get("max_iterations")) is not None and steps < 0:
            raise OpValueError(f"operator {self.name}: max_iterations={steps}; expected at least 0")
        for condition in asked:
            self._check_answer(condition)
        changed = [*states, *body.states]
        free = [k for k in range(len(pairs)) if k not in (*data, *changed)]
        last, stacked, _, _ = added(
            F, Graph([*outputs[n_out:], *outputs[:n_out]]),
            tuple([pairs[k] for k in at] for at in (data, changed, free)), n_out,
            condition=Graph(graphs[0].outputs[:1]) if asked else None, steps=steps,
        )  # fmt: skip
        n = len(states)
        return [*stacked, *last[:n]], dict(zip(body.states, last[n:], strict=True))


class ForEach(LoopCall):
    """``_foreach``: inputs are data, states, and what else the body reads."""

    def made(self, F: Builder, inputs: list[Value], bodies: Sequence[Pure]) -> tuple[list[Value], dict[int, Value]]:
        data = self._data()
        columns = [
            F.expand_dims(v, axis=1) if k in data and F.specs and is_vector(F.specs(v.entry)[0]) else v
            for k, v in enumerate(inputs)
        ]
        return super().made(F, columns, bodies)

    def _data(self) -> list[int]:
        return list(range(len(self.attrs.in_data_locs)))

    def _states(self) -> list[int]:
        n = len(self.attrs.in_data_locs)
        return list(range(n, n + len(self.attrs.in_state_locs)))

    def _positions(self) -> list[tuple[int, ...]]:
        a = self.attrs
        return [_inverse(self.name, (*a.in_data_locs, *a.in_state_locs, *a.remain_locs))]


class WhileLoop(LoopCall):
    """``_while_loop``: inputs are loop variables, and what else condition and body read."""

    n_bodies = 2

    def _states(self) -> list[int]:
        at = self.attrs.func_input_locs
        if any(not 0 <= k < len(at) for k in self.attrs.func_var_locs):
            raise OpValueError(f"operator {self.name}: func_var_locs={self.attrs.func_var_locs} of {len(at)} inputs")
        return [at[k] for k in self.attrs.func_var_locs]

    def _positions(self) -> list[tuple[int, ...]]:
        return [tuple(self.attrs.cond_input_locs), tuple(self.attrs.func_input_locs)]


def _inverse(name: str, at: tuple[int, ...]) -> tuple[int, ...]:
    """Return the input of each variable, from the variable of each input."""
    if sorted(at) != list(range(len(at))):
        raise OpValueError(f"operator {name}: its parameters give the inputs {list(at)}; expected each number once")
    return tuple(at.index(k) for k in range(len(at)))


# ---- choice -------------------------------------------------------------------------------------------------------------
class Cond(ControlFlow):
    """``_cond``: the first body says which of the other two runs.

    Each is a loop of one step at most.  The second one's states are what the first one made: it makes its step, in which
    they become its own, unless the first did.
    """

    n_bodies = 3

    def _positions(self) -> list[tuple[int, ...]]:
        a = self.attrs
        return [tuple(a.cond_input_locs), tuple(a.then_input_locs), tuple(a.else_input_locs)]

    def _made(self, F: Builder, pairs: Pairs, graphs: list[Graph], bodies: Sequence[Pure]) -> Any:
        n, (condition, first, second) = self.attrs.num_outputs, bodies
        self._check_answer(condition)
        if (first.n, second.n) != (n, n):
            raise OpValueError(f"operator {self.name}: num_outputs={n}, but the branches have {first.n} and {second.n} "
                               f"outputs")  # fmt: skip
        states = sorted({*first.states, *second.states})
        free = [pair for k, pair in enumerate(pairs) if k not in states]

        def outputs(body: Pure, graph: Graph) -> tuple[Sequence[Entry], list[Entry]]:
            new = dict(zip(body.states, graph.outputs[n:], strict=True))
            return graph.outputs[:n], [new.get(k, (pairs[k][0], 0)) for k in states]

        made, new = outputs(first, graphs[1])
        old = [pairs[k] for k in states]
        last, stacked, _, (steps,) = added(
            F, Graph([*new, *made]), ([], old, free), n, condition=Graph(graphs[0].outputs[:1]), steps=1
        )
        old = [(v, value) for (v, _), value in zip(old, last, strict=True)]
        old = [(variable(str(k)), F.squeeze(value, axis=0)) for k, value in enumerate(stacked)] + old
        made, new = outputs(second, graphs[2])
        last, *_ = added(F, Graph([*made, *new]), ([], old, free), 0, limit=[1 - steps], steps=1, otherwise=True)
        return last[:n], dict(zip(states, last[n:], strict=True))


for _name, _signature, _make in (
    ("foreach", _foreach_parameters, ForEach),
    ("while_loop", _while_parameters, WhileLoop),
    ("cond", _cond_parameters, Cond),
):
    registry.register(Named(f"_{_name}", _signature, _make, f"contrib.{_name}"))
