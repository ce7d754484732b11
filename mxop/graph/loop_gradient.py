"""The gradient of a loop: a loop over the same steps in reverse.

Imports :mod:`.bodies`, :mod:`.builder`, :mod:`.expand`, :mod:`.gradient`, :mod:`.loops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .bodies import exchanged, kept
from .builder import Builder
from .expand import expand
from .gradient import gradients
from .ir import NO_ATTRS, Entry, Graph, Node, variable
from .loops import Counts, Loop


def with_extras(given: Sequence[Node], body: Graph, counts: Counts, **options: Any) -> Loop:
    """Return a loop that also stacks what its gradient will read: states, and what :func:`.bodies.kept` lists."""
    at = counts.states + counts.stacked
    states = [(v, 0) for v in given[counts.data : counts.data + counts.states]]
    extras = [*states, *kept(body)]
    body = Graph([*body.outputs[:at], *extras, *body.outputs[at:]])
    return Loop(given, body, counts._replace(stacked=counts.stacked + len(extras)), **options)


class Gradient:
    """The gradient of a loop, for the head gradients that are not zero and the inputs that want theirs."""

    def __init__(self, op: Loop, live: tuple[int, ...], needed: tuple[bool, ...], specs: tuple | None):
        self.op, self.live = op, live
        self.specs = None if specs is None else op.inside(specs)
        c = op.counts
        self.first_stacked, self.first_sum = c.states, c.states + c.stacked
        self.active = self._active_states(needed)
        self.carried = [j for j in self.active if j in live]
        self.wanted = [i for i, v in enumerate(op.given) if needed[i] and not c.data <= i < c.data + c.states]
        self.heads = {k: variable(f"head{k}") for k in live if k >= c.states}
        self._same({v: op.body.outputs[k] for k, v in self.heads.items()})
        while True:  # until no more gradients of states turn up
            grads = self._body()
            more = [j for j, g in zip(self.active, grads, strict=False) if g is not None and j not in self.carried]
            if not more:
                break
            self.carried = sorted({*self.carried, *more})
        self._make(grads)

    def _same(self, same: dict[Node, Entry]) -> None:
        """Say that variables have shape and type of entries."""
        if self.specs is not None:
            self.specs.same.update(same)

    def _active_states(self, needed: tuple[bool, ...]) -> list[int]:
        """Return the states that depend on an input whose gradient is wanted."""
        op, c = self.op, self.op.counts
        active = {v for i, v in enumerate(op.given) if needed[i]}
        states = op._state_variables
        while True:
            depends = set(active)
            for node in op.body.nodes:
                if any(source in depends for source, _ in node.inputs):
                    depends.add(node)
            more = {states[j] for j in range(c.states) if op.body.outputs[j][0] in depends} - active
            if not more:
                return [j for j, v in enumerate(states) if v in active]
            active |= more

    def _body(self) -> list[Entry | None]:
        """Return the gradients of one step: of the active states, then of the wanted inputs."""
        op, outputs = self.op, self.op.body.outputs
        self.carries = {j: variable(f"grad_state{j}") for j in self.carried}
        self._same({v: outputs[j] for j, v in self.carries.items()})
        heads = [(outputs[j], (v, 0)) for j, v in self.carries.items()]
        heads += [(outputs[k], (v, 0)) for k, v in self.heads.items()]
        to = [(op._state_variables[j], 0) for j in self.active] + [(op.given[i], 0) for i in self.wanted]
        if not heads or not to:
            return [None] * len(to)
        return gradients([e for e, _ in heads], [g for _, g in heads], to, self.specs)

    def _make(self, grads: list[Entry | None]) -> None:
        """Make the loop of the gradients, and note what its inputs are."""
        op, c, F = self.op, self.op.counts, Builder(self.specs)
        of_state = dict(zip(self.active, grads, strict=False))
        states = [of_state[j] or F.zeros_like(F.value((op._state_variables[j], 0))).entry for j in self.carried]
        rest = [(i, g) for i, g in zip(self.wanted, grads[len(self.active) :], strict=True) if g is not None]
        stacked = [(i, g) for i, g in rest if i < c.data]
        sums = [(i, g) for i, g in rest if i >= c.data]
        self.results = [i for i, _ in (*stacked, *sums)]
        if not (self.results or self.carried):
            self.loop = None
            return
        entries = [*states, *(g for _, g in stacked), *(g for _, g in sums)]
        source = {(v, 0): ("input", i) for i, v in enumerate(op.given) if not c.data <= i < c.data + c.states}
        saved: dict[Entry, Entry] = {}
        for k in range(self.first_stacked, self.first_sum):
            e = op.body.outputs[k]
            if (e[0].op is None and e not in source) or e in self._extras:
                v = e[0] if e[0].op is None else variable(f"kept{k}")
                saved[e] = (v, 0)
                source[v, 0] = ("output", k)
        source |= {(v, 0): ("head", k) for k, v in self.heads.items()}
        self._same({v: e for e, (v, _) in saved.items() if v is not e[0]})
        body, _ = expand(exchanged(Graph(entries), saved), everything=False, specs=self.specs)
        read = [v for v in body.variables if (v, 0) in source]
        data = [v for v in read if self._has_slices(*source[v, 0])]
        if not data and op.steps is None:
            data = [op.given[0]]  # it says how many steps there are
        free = [v for v in read if v not in data and not self._has_slices(*source[v, 0])]
        self.sources = [source[v, 0] for v in (*data, *free)]
        counts = Counts(len(data), len(self.carried), len(free), len(stacked), len(sums))
        given = [*data, *self.carries.values(), *free]
        self.loop = with_extras(
            given, body, counts, steps=op.steps, limited=op.limited or op.counted, reverse=not op.reverse
        )

    @property
    def _extras(self) -> set[Entry]:
        return set(kept(self.op.body))

    def _has_slices(self, kind: str, k: int) -> bool:
        return k < (self.op.counts.data if kind == "input" else self.first_sum)

    def apply(self, F: Any, heads: list, inputs: list, outputs: list) -> list:
        """Return the gradients of the inputs."""
        op, c = self.op, self.op.counts
        found: list[Any] = [None] * len(inputs)
        if self.loop is None:
            return found
        lists = {"input": inputs, "output": outputs, "head": heads}
        read = [lists[kind][k] for kind, k in self.sources]
        n = self.loop.counts.data
        states = [heads[j] if j in self.live else F.zeros_like(inputs[c.data + j]) for j in self.carried]
        arrays = [*read[:n], *states, *read[n:]]
        if op.limited or op.counted:
            arrays.append(outputs[-1] if op.counted else inputs[-1])
        made = F._invoke(self.loop, arrays, NO_ATTRS)
        made = list(made) if isinstance(made, (list, tuple)) else [made]
        n, sums = len(self.carried), self.loop.counts.sums
        places = [c.data + j for j in self.carried] + self.results
        values = made[: n + len(self.results) - sums] + made[len(made) - sums :]
        for i, g in zip(places, values, strict=True):
            found[i] = g
        return found


Loop.gradient_of = Gradient
