"""MXNet's operators of control flow: ``_foreach``, ``_while_loop`` and ``_cond``, as symbols and their files have them.

Each call holds its subgraphs as they are written, with variables of their own; parameters say at which input of the call
each variable lies.  Before a graph is differentiated or run, a call becomes a :class:`.loops.Loop` or a
:class:`.branches.Branch`, whose bodies share variables; auxiliary states become states of the loop.
Imports :mod:`.bodies`, :mod:`.branches`, :mod:`.loop_gradient`, :mod:`.loops`, :mod:`.pure` and :mod:`mxop.opdef`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import dtypes
from ..errors import OpTypeError, OpValueError
from ..opdef import Attrs, registry
from ..opdef.params import Shape, Spec
from . import branches, loops
from .bodies import Bodied, check_numbers, copy_of, exchanged, is_vector, slice_of
from .builder import Builder
from .ir import NO_ATTRS, Entry, Graph, Node
from .loop_gradient import with_extras
from .pure import Pure, pure
from .specs import Specs, solved_inside
from .states import Effects


class Merged(NamedTuple):
    """A loop or branch that a call becomes; which inputs of the call are its inputs, which of its outputs are the call's."""

    op: Any
    order: list[int]
    made: list[int]


class ControlFlow(Bodied):
    """An operator of control flow; the registered object has no bodies, each call has a copy with its own.

    Attributes
    ----------
    inner : list of list of Node
        The variables of each body, in its order.
    at : list of tuple of int
        The inputs of the call that they are.
    """

    def __init__(self, name: str, signature: Callable):
        super().__init__(name, (), (), (), doc=signature.__doc__ or "")
        self._spec = Spec.of(name, signature)
        self.inner: list[list[Node]] = []
        self.at: list[tuple[int, ...]] = []
        self.attrs = NO_ATTRS

    def of(self, attrs: Attrs, bodies: Sequence[Graph]) -> ControlFlow:
        """Return the operator of one call, with these bodies.

        Raises
        ------
        MXNetError
            When parameters and bodies do not fit.
        """
        check_numbers(self.name, attrs)
        found = copy_of(self)
        found.attrs, found.inner = attrs, [b.variables for b in bodies]
        n_inputs = attrs.num_args - len(bodies)
        if len(bodies) != self.n_bodies:
            raise OpValueError(f"operator {self.name} has {self.n_bodies} subgraphs, {len(bodies)} given")
        found.at = found._positions()
        for inner, at in zip(found.inner, found.at, strict=True):
            if len(inner) != len(at) or any(not 0 <= k < n_inputs for k in at):
                raise OpValueError(f"operator {self.name}: its parameters give a subgraph of {len(inner)} variables the "
                                   f"inputs {list(at)} of {n_inputs}")  # fmt: skip
        found.arguments = tuple(f"arg{k}" for k in range(n_inputs))
        states = {v for b in bodies for v in b.arguments()[1]}
        pairs = [p for inner, at in zip(found.inner, found.at, strict=True) for p in zip(inner, at, strict=True)]
        found.aux = tuple(f"arg{k}" for k in sorted({k for v, k in pairs if v in states}))
        found._take(bodies)
        return found

    n_bodies = 1

    def _check_answer(self, body: Pure) -> None:
        """Raise unless a condition has one output."""
        if body.n != 1:
            raise OpValueError(f"operator {self.name}: the condition has {body.n} outputs; expected one")

    def _take(self, bodies: Sequence[Graph]) -> None:
        super()._take(bodies)
        self._plain = self.merged([Pure(b) for b in bodies]) if bodies else None

    def _positions(self) -> list[tuple[int, ...]]:
        """Return at which inputs of the call the variables of each body lie."""
        raise NotImplementedError

    def merged(self, bodies: Sequence[Pure]) -> Merged:
        """Return the loop or branch of bodies that were made pure, or not yet."""
        raise NotImplementedError

    def _shared(self, bodies: Sequence[Pure]) -> tuple[dict[int, Node], list[Graph]]:
        """Return one variable for each input of the call, and the bodies over these."""
        place: dict[int, Node] = {}
        graphs = []
        for body, inner, at in zip(bodies, self.inner, self.at, strict=True):
            pairs = list(zip(inner, at, strict=True))
            moved = {(v, 0): (place[k], 0) for v, k in pairs if place.setdefault(k, v) is not v}
            graphs.append(exchanged(body.graph, moved))
        return place, graphs

    def parse(self, given: dict[str, Any]) -> Attrs:
        return self._spec.parse(given)

    def check_arity(self, attrs: Attrs, n: int) -> None:
        self._check_bodies()
        super().check_arity(attrs, n)

    def _check_bodies(self) -> None:
        if not self.bodies:
            raise OpTypeError(f"operator {self.name} has bodies, which a call cannot give: use contrib.{self.name[1:]}")

    def num_outputs(self, attrs: Attrs, n_inputs: int | None = None) -> int:
        return attrs.num_outputs

    # ---- inference ------------------------------------------------------------------------------------------------------
    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        self._check_bodies()
        return self._inferred("shape", None, ins, outs)

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        self._check_bodies()
        return self._inferred("type", dtypes.UNKNOWN, ins, outs)

    def _inferred(self, what: str, unknown: Any, ins: list, outs: list) -> tuple[list, list]:
        op, order, made = self._plain
        results = [unknown] * op.num_outputs(NO_ATTRS)
        for k, value in zip(made, outs, strict=True):
            results[k] = value
        lead = len(op.arguments) - len(order)  # a branch has its condition first
        given = [unknown] * lead + [ins[k] for k in order]
        infer = op.infer_shape if what == "shape" else op.infer_type
        done, found = infer(NO_ATTRS, given, results)
        ins = list(ins)
        for k, value in zip(order, done[lead:], strict=True):
            ins[k] = value
        return ins, [found[k] for k in made]

    # ---- running --------------------------------------------------------------------------------------------------------
    def inside(self, specs: Sequence[tuple[Any, int]]) -> Specs:
        data = self._data()
        found = [(s and slice_of(s), t) if k in data else (s, t) for k, (s, t) in enumerate(specs)]
        pairs = [p for inner, at in zip(self.inner, self.at, strict=True) for p in zip(inner, at, strict=True)]
        return Specs({v: found[k] for v, k in pairs})

    def _data(self) -> list[int]:
        """Return the inputs of the call of which the bodies read slices."""
        return []

    def expanded(
        self, node: Node, everything: bool, effects: Effects | None, specs: Specs | None
    ) -> list[Entry] | None:
        """Return the loop or branch that a call is, and deliver its auxiliary states."""
        inner = None if specs is None else self.inside([specs(e) for e in node.inputs])
        if inner is not None:
            inner.is_train = specs.is_train
        bodies = [pure(b, v, at, inner) for b, v, at in zip(self.bodies, self.inner, self.at, strict=True)]
        op, order, made = self.merged(bodies)
        inputs = (*self._computed(node, bodies), *(node.inputs[k] for k in order))
        control = node.control if effects is None else effects.control_of(node)
        new = Node(op, NO_ATTRS, inputs, node.name, None, node.source, node.order, control)
        if effects is not None and op.writes:
            new = new.replaced(op=op.pure)
            effects.deliver(new.replaced(op=op), [(new, k) for k in range(new.n_outputs)])
        return [(new, k) for k in made]

    def _computed(self, node: Node, bodies: Sequence[Pure]) -> tuple[Entry, ...]:
        """Return what is computed before the loop or branch, and is its first input."""
        return ()


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

    def merged(self, bodies: Sequence[Pure]) -> Merged:
        (place, graphs), body, n_out = self._shared(bodies), bodies[-1], self.attrs.num_out_data
        data, states = self._data(), self._states()
        if body.n != n_out + len(states) or self.attrs.num_outputs != body.n or not 0 <= n_out <= body.n:
            raise OpValueError(f"operator {self.name}: the body has {body.n} outputs; the parameters say {n_out} and "
                               f"{len(states)} states, of {self.attrs.num_outputs}")  # fmt: skip
        free = [k for k in sorted(place) if k not in (*data, *states, *body.states)]
        order = [*data, *states, *body.states, *free]
        outputs = graphs[-1].outputs
        n = len(states) + len(body.states)
        counts = loops.Counts(len(data), n, len(free), n_out, 0)
        written = {len(data) + k: k for k in range(len(states), n)}
        if len(graphs) == 2:
            self._check_answer(bodies[0])
        if self.attrs.get("max_iterations", 0) < 0:
            raise OpValueError(f"operator {self.name}: max_iterations={self.attrs.max_iterations}; expected at least 0")
        condition = Graph(graphs[0].outputs[:1]) if len(graphs) == 2 else None
        op = with_extras(
            [place[k] for k in order], Graph([*outputs[n_out:], *outputs[:n_out]]), counts, condition=condition,
            steps=self.attrs.get("max_iterations"), written=written,
        )  # fmt: skip
        return Merged(op, order, [*range(n, n + n_out), *range(len(states))])


class ForEach(LoopCall):
    """``_foreach``: inputs are data, states, and what else the body reads."""

    def _inferred(self, what: str, unknown: Any, ins: list, outs: list) -> tuple[list, list]:
        vectors = [k for k in self._data() if what == "shape" and is_vector(ins[k])]
        given = [(*s, 1) if k in vectors else s for k, s in enumerate(ins)]
        found, done = super()._inferred(what, unknown, given, outs)
        return [s[:1] if k in vectors else s for k, s in enumerate(found)], done

    def expanded(
        self, node: Node, everything: bool, effects: Effects | None, specs: Specs | None
    ) -> list[Entry] | None:
        data, F = self._data(), Builder(specs)
        inputs = [F.expand_dims(F.value(e), axis=1).entry if k in data and specs and is_vector(specs(e)[0]) else e
                  for k, e in enumerate(node.inputs)]  # fmt: skip
        return super().expanded(node.replaced(inputs=tuple(inputs)), everything, effects, specs)

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
    """``_cond``: the first body says which of the other two runs."""

    n_bodies = 3

    def _positions(self) -> list[tuple[int, ...]]:
        a = self.attrs
        return [tuple(a.cond_input_locs), tuple(a.then_input_locs), tuple(a.else_input_locs)]

    def merged(self, bodies: Sequence[Pure]) -> Merged:
        place, graphs = self._shared(bodies)
        n = self.attrs.num_outputs
        self._check_answer(bodies[0])
        if any(body.n != n for body in bodies[1:]):
            raise OpValueError(f"operator {self.name}: num_outputs={n}, but the branches have {bodies[1].n} and "
                               f"{bodies[2].n} outputs")  # fmt: skip
        states = sorted({k for body in bodies[1:] for k in body.states})
        used = {v for g in graphs[1:] for v in g.variables} | {place[k] for k in states}
        order = [k for k in sorted(place) if place[k] in used]
        branches_of = []
        for body, graph in zip(bodies[1:], graphs[1:], strict=True):
            new = dict(zip(body.states, graph.outputs[n:], strict=True))
            branches_of.append(Graph([*graph.outputs[:n], *(new.get(k, (place[k], 0)) for k in states)]))
        written = {order.index(k) + 1: n + i for i, k in enumerate(states)}
        op = branches.with_extras([place[k] for k in order], branches_of, written)
        return Merged(op, order, list(range(n)))

    def _inferred(self, what: str, unknown: Any, ins: list, outs: list) -> tuple[list, list]:
        ins, at = list(ins), self.at[0]
        found, _ = solved_inside(self.bodies[0], self.inner[0], [ins[k] for k in at], [unknown], what)
        for k, value in zip(at, found, strict=True):
            ins[k] = value
        return super()._inferred(what, unknown, ins, outs)

    def _computed(self, node: Node, bodies: Sequence[Pure]) -> tuple[Entry, ...]:
        values = {(v, 0): node.inputs[k] for v, k in zip(self.inner[0], self.at[0], strict=True)}
        return exchanged(bodies[0].graph, values).outputs[:1]


for _op in (
    ForEach("_foreach", _foreach_parameters), WhileLoop("_while_loop", _while_parameters), Cond("_cond", _cond_parameters)
):  # fmt: skip
    registry.register(_op)
