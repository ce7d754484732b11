"""The gradient of a loop: a loop over the same steps in reverse order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..opdef import Attrs, Kernel, infer
from .bodies import is_zero, kept, specs_of
from .builder import Builder
from .expansion import expand
from .gradient import active_nodes, gradients
from .ir import NO_ATTRS, Entry, Graph, Node, variable
from .loops import Counts, Loop
from .rewrite import exchanged
from .specs import Specs
from .traits import bare, elements_read

Pairs = Sequence[tuple[Node, Any]]  # variables of a body, with their values


def added(
    F: Any, body: Graph, pairs: tuple[Pairs, Pairs, Pairs], n_stacked: int, n_sums: int = 0, limit: Sequence[Any] = (),
    **options: Any,
) -> tuple[list, list, list, list]:  # fmt: skip
    """Add a loop over data, states and free inputs; return its outputs as :meth:`.loops.Counts.outputs` does.

    The loop also stacks the values that its gradient reads: states that the body reads, and the entries :func:`.bodies.kept`.
    """
    at, read = len(pairs[1]) + n_stacked, set(body.variables)
    extras = [*((v, 0) for v, _ in pairs[1] if v in read), *kept(body)]
    body = Graph([*body.outputs[:at], *extras, *body.outputs[at:]])
    given = [pair for kind in pairs for pair in kind]
    counts = Counts(*map(len, pairs), n_stacked + len(extras), n_sums)
    op = Loop([v for v, _ in given], body, counts, limited=bool(limit), **options)
    made = F._invoke(op, [value for _, value in given] + list(limit), NO_ATTRS)
    last, stacked, sums, steps = counts.outputs(list(made) if isinstance(made, (list, tuple)) else [made])
    return last, stacked[:n_stacked], sums, steps


def _grad(op: Loop, F: Any, attrs: Attrs, heads: list, inputs: list, outputs: list, needed: Sequence[bool]) -> list[Any]:
    """Return the gradients of a loop's inputs where they are needed, else None."""
    c, known = op.counts, specs_of(F, inputs)
    specs = None if known is None else op.inside(known)
    live = [k for k in range(len(op.body.outputs)) if not is_zero(heads[k])]
    handed_on = op.replaced if op.otherwise else []
    of_states, of_outputs, states, rest = _one_step(op, live, handed_on, needed, specs)
    found: list[Any] = [None] * len(inputs)
    for j in set(handed_on).intersection(live):
        found[c.data + j] = heads[j]  # not read if this loop makes a step
    if not (rest or of_states):
        return found
    source, saved = _saved(op, inputs, outputs)
    source |= {v: (heads[k], c.states <= k < c.states + c.stacked) for k, v in of_outputs.items()}
    _same(specs, {v: e for e, (v, _) in saved.items() if v is not e[0]})
    of_data, sums = {i: bare(e, specs) for i, e in rest.items() if i < c.data}, [i for i in rest if i >= c.data]
    later = _at_once(op, {i: rest[i] for i in sums}, specs)
    sums = [i for i in sums if i not in later]
    same = {e: e if e in saved else bare(e, specs) for node in later.values() for e in elements_read(node)}
    operands = same.values()
    stacks = {e: source[v][0] for e in operands if (v := saved.get(e, e)[0]) in source and source[v][1]}
    stacked = list(dict.fromkeys([*of_data.values(), *(e for e in operands if e not in stacks)]))
    body, _ = expand(exchanged(Graph([*states, *stacked, *(rest[i] for i in sums)]), saved), everything=False, specs=specs)
    read = [v for v in body.variables if v in source]
    data, free = ([(v, source[v][0]) for v in read if source[v][1] == sliced] for sliced in (True, False))
    if not data and op.steps is None:
        data = [(op.given[0], inputs[0])]  # its length is the number of steps
    first = [(v, heads[j] if j in live else F.zeros_like(inputs[c.data + j])) for j, v in of_states.items()]
    limit = outputs[-1:] if op.counted else inputs[-1:] if op.limited else []
    values = added(F, body, (data, first, free), len(stacked), len(sums), limit, steps=op.steps, reverse=not op.reverse)
    stacks.update(zip(stacked, values[1], strict=True))
    for i, g in zip([*(c.data + j for j in of_states), *sums], [*values[0], *values[2]], strict=True):
        found[i] = g
    for i, e in of_data.items():
        found[i] = stacks[e]
    for i, node in later.items():  # inputs read for their shape only have that of the gradient
        rows = [F.reshape(stacks[same[e]], shape=(-3, -2)) if e in same else inputs[i] for e in node.inputs]
        found[i] = F._invoke(node.op, rows, node.attrs)
    return found


def _at_once(op: Loop, sums: dict[int, Entry], specs: Specs | None) -> dict[int, Node]:
    """Return the calls whose sum over all steps equals one call on the inputs of all steps: products for weights."""
    if specs is None or op.limited or op.counted or op.otherwise:
        return {}
    graph = Graph(list(sums.values()))
    of_steps = active_nodes(graph, set(graph.variables) - set(op.counts.inputs(op.given)[2]))

    def is_one(node: Node) -> bool:
        if not isinstance(node.op, Kernel) or node.op.at_once is None:
            return False
        shapes = [specs(e)[0] for e in node.inputs]
        differ = all(e[0] in of_steps for e in elements_read(node))  # others would have to be copied for each step
        return differ and all(map(infer.known, shapes)) and node.op.at_once(*shapes, **node.attrs)

    return {i: node for i, (node, _) in sums.items() if is_one(node)}


def _same(specs: Specs | None, same: dict[Node, Entry]) -> None:
    """Declare that variables have the shapes and types of entries."""
    if specs is not None:
        specs.same.update(same)


def _one_step(op: Loop, live: Sequence[int], handed_on: Sequence[int], needed: Sequence[bool], specs: Specs | None) -> tuple:
    """Differentiate one step.

    Returns
    -------
    of_states, of_outputs : dict of int to Node
        Variables for the gradients of states after the step; and for those of stacked, summed and handed-on outputs.
    states : list of (Node, int)
        The gradients of these states before the step.
    rest : dict of int to (Node, int)
        The gradients of the other inputs.
    """
    c, variables, outputs = op.counts, op.counts.inputs(op.given)[1], op.body.outputs
    active = [j for j in _active_states(op, needed) if j not in handed_on]
    wanted = [i for i, v in enumerate(op.given) if needed[i] and v not in variables]
    to = [(variables[j], 0) for j in active] + [(op.given[i], 0) for i in wanted]
    of_outputs = {k: variable(f"head{k}") for k in live if k >= c.states or k in handed_on}
    of_states: dict[int, Node] = {}
    more = [j for j in active if j in live]
    while True:  # until no more states have gradients
        of_states |= {j: variable(f"grad_state{j}") for j in more}
        of_states = dict(sorted(of_states.items()))
        heads = of_states | of_outputs
        _same(specs, {v: outputs[k] for k, v in heads.items()})
        if not (heads and to):
            return {}, {}, [], {}
        found = gradients([outputs[k] for k in heads], [(v, 0) for v in heads.values()], to, specs)
        by_state = dict(zip(active, found, strict=False))
        more = [j for j, g in by_state.items() if g is not None and j not in of_states]
        if not more:
            break
    F = Builder(specs)
    states = [by_state[j] or F.zeros_like(F.value((v, 0))).entry for j, v in of_states.items()]
    rest = {i: g for i, g in zip(wanted, found[len(active) :], strict=True) if g is not None}
    return of_states, of_outputs, states, rest


def _saved(op: Loop, inputs: list, outputs: list) -> tuple[dict[Node, tuple[Any, bool]], dict[Entry, Entry]]:
    """Return the values of the gradient's variables, and whether these have slices; and the entries that forward stacked."""
    c, states, extras = op.counts, op.counts.inputs(op.given)[1], set(kept(op.body))
    source = {v: (x, i < c.data) for i, (v, x) in enumerate(zip(op.given, inputs, strict=False)) if v not in states}
    saved: dict[Entry, Entry] = {}
    for k, (e, stacked) in enumerate(zip(c.outputs(op.body.outputs)[1], c.outputs(outputs)[1], strict=True)):
        if e[0] in states or e in extras:
            v = variable(f"kept{k}") if e in extras else e[0]
            saved[e], source[v] = (v, 0), (stacked, True)
    return source, saved


def _active_states(op: Loop, needed: Sequence[bool]) -> list[int]:
    """Return the states that depend on an input whose gradient is wanted."""
    active = {v for v, wanted in zip(op.given, needed, strict=False) if wanted}
    _, states, _, _ = op.counts.inputs(op.given)
    more = active
    while more:
        depends = active_nodes(op.body, active)
        more = {v for v, (node, _) in zip(states, op.body.outputs, strict=False) if node in depends} - active
        active |= more
    return [j for j, v in enumerate(states) if v in active]


Loop.grad = _grad  # type: ignore[method-assign]  # here, because gradients of loops need loops
