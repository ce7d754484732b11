"""Captured functions: ``foreach``, ``while_loop`` and ``cond`` turn functions into subgraphs, for symbols and in composites.

A function is called once, with variables for slices and states.  Values that it reads from outside become inputs of the call.
An :class:`Api` adapts this to symbols or values: it makes the arguments, and knows which nodes a scope has made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet

from ..opdef import registry
from ..support.errors import OpTypeError, OpValueError
from ..support.nested import ForEach, WhileLoop, flatten, regroup
from . import control_flow as _control_flow  # noqa: F401  registers the operators
from . import subgraph as _subgraph  # noqa: F401  registers the operator
from .ir import Entry, Graph, Node, variable
from .rewrite import exchanged

_given: WeakSet[Node] = WeakSet()  # variables for slices and states; equal names do not make them one


class Api:
    """Adapts captured functions to their arguments: symbols, or the values of a builder."""

    kind: type
    named = False  # whether variables of equal names are the same

    def wrap(self, entry: Entry) -> Any:
        """Return an entry as an argument of a function."""
        raise NotImplementedError

    def one(self, value: Any) -> Entry:
        """Return the only entry of a value."""
        raise NotImplementedError

    def begin(self, name: str) -> Any:
        """Return a new scope; `name` is the beginning of its name."""
        raise NotImplementedError

    def variable(self, scope: Any, name: str, of: Entry, is_slice: bool) -> Node:
        """Return a variable in a scope, for an entry or for its slices."""
        raise NotImplementedError

    def call(self, scope: Any, function: Callable, *args: Any) -> Any:
        """Call a function in a scope."""
        raise NotImplementedError

    def made(self, scope: Any, node: Node) -> bool:
        """Return whether a node was made in a scope."""
        raise NotImplementedError

    def node(self, op: Any, hint: str, inputs: Sequence[Entry], strings: dict[str, str]) -> Node:
        """Add a call of an operator."""
        raise NotImplementedError

    def called(self, name: str, bodies: Sequence[Subgraph], inputs: Sequence[Entry], params: dict[str, Any]) -> list[Any]:
        """Return the outputs of a call of a control flow operator."""
        params = {"num_args": len(inputs) + len(bodies), **params}
        strings = {k: str(list(v)) if isinstance(v, (list, tuple)) else str(v) for k, v in params.items()}
        template: Any = registry.get(name)
        node = self.node(template.of(template.parse(strings), [b.graph for b in bodies]), name, inputs, strings)
        return [self.wrap((node, k)) for k in range(node.n_outputs)]


class Subgraph:
    """One call of a user's function: its scope, and the values that it reads from outside.

    Parameters
    ----------
    api : Api
    name : str
        The scope's name; a number is appended.
    parameters : sequence of (Node, int)
        The sliced arrays, then initial states; each has a variable in the subgraph.
    n_data : int
        The number of sliced arrays.
    """

    def __init__(self, api: Api, name: str, parameters: Sequence[Entry] = (), n_data: int = 0):
        self.api, self.scope = api, api.begin(name)
        self.parameters = list(parameters)
        self.variables = [
            api.variable(self.scope, f"{node.name}-{k}", (node, k), i < n_data) for i, (node, k) in enumerate(self.parameters)
        ]
        _given.update(self.variables)

    def given(self) -> list[Any]:
        """Return the arguments of the function."""
        return [self.api.wrap((v, 0)) for v in self.variables]

    def call(self, function: Callable, *args: Any) -> Any:
        """Call a function in the scope."""
        return self.api.call(self.scope, function, *args)

    def finish(self, entries: Sequence[Entry]) -> None:
        """Make the graph of the subgraph: values from outside become its variables."""
        entries = list(entries)
        made = Graph(entries)
        inside = set(self.variables)
        self.outside: dict[Entry, Entry] = {}  # values of the variables from outside
        moved: dict[Entry, Entry] = {}
        for node in made.nodes:
            if node.op is not None and (self.api.made(self.scope, node) or any(n in inside for n, _ in node.inputs)):
                inside.add(node)
        read = [e for node in made.nodes if node in inside for e in node.inputs] + entries
        for e in dict.fromkeys(read):
            if e[0] not in inside:
                cut = e if e[0].op is None else (variable(e[0].output_name(e[1])), 0)
                self.outside[cut] = e
                moved[e] = cut
        passed = set(moved.values()) | {(v, 0) for v in self.variables}
        done: list[Entry] = []
        for e in exchanged(made, moved).outputs:
            done.append(self._copy(e) if e in passed or e in done else e)
        self.graph = Graph(done)

    def _copy(self, entry: Entry) -> Entry:
        """Return a copy of an entry: an output needs a node of its own."""
        return self.call(self.api.node, registry.get("_copy"), "identity", [entry], {}), 0

    def source(self, node: Node) -> Entry:
        """Return the outer entry that a variable of the subgraph stands for."""
        if node in self.variables:
            return self.parameters[self.variables.index(node)]
        return self.outside[node, 0]

    @property
    def inner(self) -> list[Node]:
        return self.graph.variables


def foreach(api: Api, body: Callable, data: Any, init_states: Any, name: str = "foreach") -> tuple[Any, Any]:
    """See ``mx.sym.contrib.foreach``."""
    loop = ForEach(api.kind, body, data, init_states)
    n = len(loop.data)
    sub = Subgraph(api, name, [api.one(v) for v in (*loop.data, *loop.states)], n)
    given = sub.given()
    out, form, _, states = sub.call(loop.step, given[:n], regroup(given[n:], loop.state_form))
    sub.finish([api.one(v) for v in (*out, *states)])
    for k, v in enumerate(sub.variables):
        if v not in sub.inner:
            what = "data" if k < n else "state"
            raise OpValueError(f"foreach: the {what} array {v.name!r} is not used by the body; expected a body that reads "
                               f"every data array and state")  # fmt: skip
    locs = [sub.inner.index(v) for v in sub.variables]
    rest = [k for k in range(len(sub.inner)) if k not in locs]
    inputs = [*sub.parameters, *(sub.source(sub.inner[k]) for k in rest)]
    found = api.called("_foreach", [sub], inputs, {
        "num_outputs": len(sub.graph.outputs), "num_out_data": len(out), "in_state_locs": locs[n:],
        "in_data_locs": locs[:n], "remain_locs": rest,
    })  # fmt: skip
    return regroup(found[: len(out)], form), regroup(found[len(out) :], loop.state_form)


def while_loop(
    api: Api,
    cond: Callable,
    func: Callable,
    loop_vars: Any,
    max_iterations: int | None = None,
    name: str = "while_loop",
) -> tuple[Any, Any]:
    """See ``mx.sym.contrib.while_loop``."""
    loop = WhileLoop(api.kind, cond, func, loop_vars, max_iterations)
    first = [api.one(v) for v in loop.states]
    asked, done = Subgraph(api, f"{name}_cond", first), Subgraph(api, f"{name}_func", first)
    answer = asked.call(loop.asked, regroup(asked.given(), loop.form))
    if not isinstance(answer, api.kind):
        raise OpTypeError(f"while_loop: cond must return a {api.kind.__name__}, it returned {answer!r}")
    asked.finish([api.one(answer)])
    out, form, _, states = done.call(loop.step, regroup(done.given(), loop.form))
    done.finish([api.one(v) for v in (*out, *states)])
    for k, v in enumerate(done.variables):
        if v not in done.inner:
            raise OpValueError(f"while_loop: func does not use loop_vars[{k}], {v.name!r}")
    inputs, places = _gathered([asked, done])
    found = api.called("_while_loop", [asked, done], inputs, {
        "num_outputs": len(done.graph.outputs), "num_out_data": len(out), "max_iterations": loop.most,
        "cond_input_locs": places[0], "func_input_locs": places[1],
        "func_var_locs": [done.inner.index(v) for v in done.variables],
    })  # fmt: skip
    return regroup(found[: len(out)], form), regroup(found[len(out) :], loop.form)


def cond(api: Api, pred: Any, then_func: Callable, else_func: Callable, name: str = "cond") -> Any:
    """See ``mx.sym.contrib.cond``."""
    subs, flats, forms = [], [], []
    for kind, function in (("pred", pred), ("then", then_func), ("else", else_func)):
        sub = Subgraph(api, f"{name}_{kind}")
        found = sub.call(function) if callable(function) and not isinstance(function, api.kind) else function
        flat, form = flatten(found, api.kind, f"cond: what {kind} returns" if found is not pred else "cond: pred")
        sub.finish([api.one(v) for v in flat])
        subs.append(sub)
        flats.append(flat)
        forms.append(form)
    if len(flats[0]) != 1:
        raise OpValueError(f"cond: pred is {len(flats[0])} symbols; expected one")
    if len(flats[1]) != len(flats[2]):
        raise OpValueError(f"cond: the number of outputs differs between then_func, {len(flats[1])}, and else_func, "
                           f"{len(flats[2])}")  # fmt: skip
    inputs, places = _gathered(subs)
    found = api.called("_cond", subs, inputs, {
        "num_outputs": len(flats[1]), "cond_input_locs": places[0], "then_input_locs": places[1],
        "else_input_locs": places[2],
    })  # fmt: skip
    return regroup(found, forms[1])


def _gathered(subs: Sequence[Subgraph]) -> tuple[list[Entry], list[list[int]]]:
    """Return all inputs of a call, in the order in which the bodies read them, and for each body those that it reads."""
    read: dict[Any, tuple[int, Entry]] = {}
    places: list[list[int]] = []
    for sub in subs:
        places.append([])
        for v in sub.inner:
            e = sub.source(v)
            if v in sub.variables:
                key: Any = sub.variables.index(v)  # initial values of loop variables are inputs of their own, even equal ones
            else:
                key = e[0].name if sub.api.named and e[0].op is None and e[0] not in _given else e
            places[-1].append(read.setdefault(key, (len(read), e))[0])
    return [e for _, e in read.values()], places
