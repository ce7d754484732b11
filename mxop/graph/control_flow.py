"""MXNet's control flow operators ``_foreach``, ``_while_loop`` and ``_cond``, as in symbols and their files.

Each call holds its subgraphs as written, with variables of their own; parameters map these to the inputs of the call.  Before
a graph is differentiated or run, a call becomes one or two :class:`.loops.Loop`, whose bodies share variables.  Auxiliary
states become states of the loop.  Shapes and types of a call are inferred from its loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

from ..opdef import Attrs, registry
from ..opdef.params import Shape
from ..support import dtypes
from ..support.errors import OpValueError
from .bodies import Bodied, Named, is_vector, over_inputs, slice_of
from .builder import Builder, Value
from .ir import Entry, Graph, Node, variable
from .loop_gradient import added
from .pure import Pure, pure
from .specs import Specs, solved_inside
from .states import Effects


class Roles(NamedTuple):
    """The roles of a call's inputs, from its parameters.

    Attributes
    ----------
    at : sequence of tuple of int
        For each body (a condition first) the inputs of the call that are its variables.
    stacked : int
        The number of outputs of a body that are stacked; new states follow them.
    data, states : sequence of int
        The inputs of which bodies read slices; those for which bodies return new values.
    steps : int, optional
        The most steps; by default the length of the data.
    """

    at: Sequence[tuple[int, ...]]
    stacked: int
    data: Sequence[int] = ()
    states: Sequence[int] = ()
    steps: int | None = None


def _foreach(
    *data, num_args: int, num_outputs: int, num_out_data: int, in_state_locs: Shape, in_data_locs: Shape, remain_locs: Shape
):  # fmt: skip
    """Run a body over slices of arrays; see ``mx.sym.contrib.foreach``."""
    at, n = (*in_data_locs, *in_state_locs, *remain_locs), len(in_data_locs)
    if sorted(at) != list(range(len(at))):
        raise OpValueError(f"operator _foreach: its parameters give the inputs {list(at)}; expected each number once")
    place = tuple(at.index(k) for k in range(len(at)))  # inverts `at`: the input of each variable
    return Roles([place], num_out_data, range(n), range(n, n + len(in_state_locs)))


def _while_loop(
    *data, num_args: int, num_outputs: int, num_out_data: int, max_iterations: int, cond_input_locs: Shape,
    func_input_locs: Shape, func_var_locs: Shape,
):  # fmt: skip
    """Run a body while a condition holds; see ``mx.sym.contrib.while_loop``."""
    at = func_input_locs
    if any(not 0 <= k < len(at) for k in func_var_locs):
        raise OpValueError(f"operator _while_loop: func_var_locs={func_var_locs} of {len(at)} inputs")
    if max_iterations < 0:
        raise OpValueError(f"operator _while_loop: max_iterations={max_iterations}; expected at least 0")
    return Roles([cond_input_locs, at], num_out_data, (), [at[k] for k in func_var_locs], max_iterations)


def _cond(*data, num_args: int, num_outputs: int, cond_input_locs: Shape, then_input_locs: Shape, else_input_locs: Shape):
    """Run one of two bodies; see ``mx.sym.contrib.cond``."""
    return Roles([cond_input_locs, then_input_locs, else_input_locs], num_outputs, steps=1)


class ControlFlow(Bodied):
    """A call of a control flow operator.

    Its body becomes a loop, with a condition if it has one.  A choice becomes two loops of at most one step: the second loop
    makes its step unless the first one did.  The second loop's initial states are the results of the first loop.

    Attributes
    ----------
    attrs : Attrs
    roles : Roles
    inner : list of list of Node
        The variables of each body.
    """

    def __init__(self, roles: Callable[..., Roles], named: Named, attrs: Attrs, bodies: Sequence[Graph]):
        self.attrs, self.roles, self.inner = attrs, roles(**attrs), [b.variables for b in bodies]
        if len(bodies) != len(self.roles.at):
            raise OpValueError(f"operator {named.name} has {len(self.roles.at)} subgraphs, {len(bodies)} given")
        names = [f"arg{k}" for k in range(attrs.num_args - len(bodies))]
        super().__init__(named.name, names, (), bodies, doc=named.doc)
        self._spec = named.spec
        self._graph()  # raises for subgraphs that do not fit
        states = {v for b in bodies for v in b.arguments()[1]}
        self.aux = tuple(names[k] for k in sorted({k for v, k in self._inside if v in states}))

    @property
    def _inside(self) -> list[tuple[Node, int]]:
        """Each variable of a body, with its input."""
        return [p for inner, at in zip(self.inner, self.roles.at, strict=True) for p in zip(inner, at, strict=True)]

    def made(self, F: Builder, inputs: list[Value], bodies: Sequence[Pure]) -> tuple[list[Value], dict[int, Value]]:
        """Add the loops of a call; return its outputs, and the new values of inputs that are states.

        `bodies` are pure, or not made pure yet.
        """
        _, n, data, states, steps = self.roles
        place, graphs = over_inputs(self.name, len(inputs), [b.graph for b in bodies], self.inner, self.roles.at)
        asked = int(len(bodies) > 1)
        self._check(bodies[:asked], bodies[asked:])
        condition = Graph(graphs[0].outputs[:1]) if asked else None
        changed = [*states, *sorted({k for body in bodies[asked:] for k in body.states})]

        def step(body: Pure, graph: Graph) -> tuple[Sequence[Entry], list[Entry]]:
            """Return the stacked outputs of a body, and the new values of `changed` inputs."""
            new = dict(zip([*states, *body.states], graph.outputs[n:], strict=True))
            return graph.outputs[:n], [new.get(k, (place[k], 0)) for k in changed]

        pairs = list(zip(place, self._columns(F, inputs), strict=True))
        free = [pair for k, pair in enumerate(pairs) if k not in (*data, *changed)]
        parts = [pairs[k] for k in data], [pairs[k] for k in changed], free
        (out, new), *other = map(step, bodies[asked:], graphs[asked:])
        last, stacked, _, done = added(F, Graph([*new, *out]), parts, n, condition=condition, steps=steps)
        for out, new in other:
            old = [(variable(str(k)), F.squeeze(value, axis=0)) for k, value in enumerate(stacked)]
            old += [(place[k], value) for k, value in zip(changed, last, strict=True)]
            limit = [1 - done[0]]
            made, *_ = added(F, Graph([*out, *new]), ([], old, free), 0, limit=limit, steps=1, otherwise=True)
            stacked, last = made[:n], made[n:]
        return [*stacked, *last[: len(states)]], dict(zip(changed[len(states) :], last[len(states) :], strict=True))

    def _columns(self, F: Builder, inputs: list[Value]) -> list[Value]:
        """Return the inputs; data that are vectors are reshaped to columns."""
        data = self.roles.data if F.specs else ()
        return [F.expand_dims(v, axis=1) if k in data and is_vector(F.specs(v.entry)[0]) else v for k, v in enumerate(inputs)]

    def _check(self, asked: Sequence[Pure], bodies: Sequence[Pure]) -> None:
        """Raise unless the bodies have as many outputs as the parameters declare."""
        n, n_states, total = self.roles.stacked, len(self.roles.states), self.attrs.num_outputs
        if len(bodies) == 1 and (bodies[0].n != n + n_states or total != bodies[0].n or n < 0):
            raise OpValueError(f"operator {self.name}: the body has {bodies[0].n} outputs; the parameters say {n} and "
                               f"{n_states} states, of {total}")  # fmt: skip
        for condition in asked:
            if condition.n != 1:
                raise OpValueError(f"operator {self.name}: the condition has {condition.n} outputs; expected one")
        if any(body.n != n + n_states for body in bodies):
            raise OpValueError(f"operator {self.name}: num_outputs={total}, but the branches have {bodies[0].n} and "
                               f"{bodies[1].n} outputs")  # fmt: skip

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
        """Return the graph of a call's loops, and the variables of its inputs."""
        key = tuple(map(is_vector, shapes))
        if key not in self._graphs:
            inputs = [variable(name) for name in self.arguments]
            known = dict(zip(inputs, shapes, strict=False))
            F = Builder(lambda e: (known.get(e[0]), dtypes.UNKNOWN))
            outputs, _ = self.made(F, [F.value((v, 0)) for v in inputs], [Pure(b) for b in self.bodies])
            graph = Graph([v.entry for v in outputs])
            for node in graph.nodes:
                node.name = "" if node.op is not None else node.name  # so that messages name the call
            self._graphs[key] = graph, inputs
        return self._graphs[key]

    # ---- running --------------------------------------------------------------------------------------------------------
    def inside(self, specs: Sequence[tuple[Any, int]], is_train: bool | None = None) -> Specs:
        found = [(s and slice_of(s), t) if k in self.roles.data else (s, t) for k, (s, t) in enumerate(specs)]
        return Specs({v: found[k] for v, k in self._inside}, is_train)

    def expanded(self, node: Node, everything: bool, effects: Effects | None, specs: Specs | None) -> list[Entry] | None:
        """Return the outputs of a call's loops, and assign its auxiliary states."""
        inner = self.inside_of(node, specs)
        bodies = [pure(b, v, at, inner) for b, v, at in zip(self.bodies, self.inner, self.roles.at, strict=True)]
        F = Builder(specs)
        F.work_for(node, "", node.order, node.control if effects is None else effects.control_of(node))
        outputs, states = self.made(F, [F.value(e) for e in node.inputs], bodies)
        for k, value in states.items() if effects is not None else ():
            effects.assign(node, node.inputs[k], value.entry)
        return [v.entry for v in outputs]


for _roles in (_foreach, _while_loop, _cond):
    _name = _roles.__name__
    registry.register(Named(_name, _roles, partial(ControlFlow, _roles), f"contrib.{_name[1:]}"))
