"""The branch that every choice becomes: one of two pure functions of arrays, whose gradient is another branch.

Imports :mod:`.bodies`, :mod:`.builder`, :mod:`.expand`, :mod:`.gradient`, :mod:`.trim`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core import core
from ..opdef import Attrs, infer
from .bodies import Bodied, body_calls, copy_of, exchanged, is_zero, kept, specs_of
from .builder import Builder
from .calls import replayed
from .expand import expand
from .gradient import gradients
from .ir import NO_ATTRS, Entry, Graph, Node, variable
from .specs import Specs
from .trim import trimmed

NAME = "_branch"


class Branch(Bodied):
    """The first body where the first input is not zero, else the second.

    Parameters
    ----------
    given : sequence of Node
        Variables of the bodies: the other inputs.
    bodies : two of Graph
        With as many outputs; an output that one body leaves alone (None in `only`) is not defined then.
    only : sequence of (int or None)
        For each output the body that makes it, None for both.
    written : dict of int to int
        Inputs that are auxiliary states of the program, and their new values among the outputs.
    """

    def __init__(
        self, given: Sequence[Node], bodies: Sequence[Graph], only: Sequence[int | None],
        written: dict[int, int] | None = None,
    ):  # fmt: skip
        names = ["condition", *(f"input{k}" for k in range(len(given)))]
        super().__init__(NAME, names, given, bodies)
        self.only = tuple(only)
        self.writes = {names[i]: k for i, k in (written or {}).items()}

    def num_outputs(self, attrs: Attrs, n_inputs: int | None = None) -> int:
        return len(self.only)

    def _made(self, k: int) -> list[Entry]:
        """Return the entries that output `k` is, one of each body that makes it."""
        return [self.bodies[b].outputs[at] for b, at in self._places[k]]

    @property
    def _places(self) -> list[list[tuple[int, int]]]:
        counts, found = [0, 0], []
        for one in self.only:
            mine = [b for b in (0, 1) if one in (b, None)]
            found.append([(b, counts[b]) for b in mine])
            for b in mine:
                counts[b] += 1
        return found

    # ---- inference ------------------------------------------------------------------------------------------------------
    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        found, made = self._infer("shape", ins[1:], outs)
        return [ins[0], *found], made

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        found, made = self._infer("type", ins[1:], outs)
        return [ins[0], *found], made

    def _infer(self, what: str, ins: list, outs: list) -> tuple[list, list]:
        made = [self._made(k) for k in range(len(self.only))]
        solver = self.solved(what, ins, [(e, v) for entries, v in zip(made, outs, strict=True) for e in entries])
        changed = True
        while changed:
            changed = False
            for k, entries in enumerate(made):
                if len(entries) == 2 and solver.get(entries[0]) != solver.get(entries[1]):
                    self._agree(solver, k, *entries)
                    changed = True
        return [solver.get((v, 0)) for v in self.given], [solver.get(entries[0]) for entries in made]

    def _agree(self, solver: Any, k: int, one: Entry, other: Entry) -> None:
        try:
            both = solver.join(solver.get(one), solver.get(other))
        except infer.Conflict:
            raise solver.error(
                f"operator {self.name}: output {k} has {solver.show(solver.get(one))} in the first branch and "
                f"{solver.show(solver.get(other))} in the second; expected the same"
            ) from None
        solver.set(one, both)
        solver.set(other, both)
        solver.run()

    # ---- running --------------------------------------------------------------------------------------------------------
    def call(self, inputs: list[Any], outputs: list[Any], reqs: list[int]) -> Any:
        specs = [(a.shape, a.dtype_code) for a in inputs[1:]]
        bodies = []
        for b in (0, 1):
            at = [k for k, places in enumerate(self._places) if b in [place for place, _ in places]]
            bodies.append((body_calls(self.bodies[b], self.given, specs), at))
        return core.Branch(bodies, inputs, outputs, reqs)

    def run(self, attrs: Attrs, state: Any, is_train: bool, reqs: list[str], inputs: list, outputs: list) -> None:
        chosen = 0 if inputs[0].asnumpy().reshape(-1)[0] else 1
        values = replayed(core.namespace(), self.bodies[chosen], dict(zip(self.given, inputs[1:], strict=True)))
        for places, output in zip(self._places, outputs, strict=True):
            for b, at in places:
                if b == chosen:
                    output[:] = values[at]

    def inside(self, specs: Sequence[tuple[Any, int]]) -> Specs:
        return Specs(dict(zip(self.given, specs[1:], strict=True)))

    # ---- gradient -------------------------------------------------------------------------------------------------------
    def grad(
        self, F: Any, attrs: Attrs, heads: list, inputs: list, outputs: list, needed: Sequence[bool]
    ) -> list | None:
        live = tuple(k for k, h in enumerate(heads) if not is_zero(h))
        key = live, tuple(needed[1:]), specs_of(F, inputs)
        if key not in self._gradients:
            self._gradients[key] = _gradient(self, *key)
        branch, sources, wanted = self._gradients[key]
        found: list[Any] = [None] * len(inputs)
        if branch is None:
            return found
        lists = {"input": inputs, "output": outputs, "head": heads}
        made = F._invoke(branch, [inputs[0], *(lists[kind][k] for kind, k in sources)], NO_ATTRS)
        for i, g in zip(wanted, made if isinstance(made, (list, tuple)) else [made], strict=False):
            found[i + 1] = g
        return found

    def trimmed(self, live: Sequence[int]) -> tuple[Branch, list[int], list[int]]:
        """Return the branch with the outputs in `live` alone, and which of its inputs and outputs are left."""
        outs = sorted(live)
        if len(outs) == len(self.only) and all(trimmed(b) is b for b in self.bodies):
            return self, list(range(len(self.arguments))), outs
        places = self._places
        bodies = [
            trimmed(Graph([self.bodies[b].outputs[at] for k in outs for one, at in places[k] if one == b]))
            for b in (0, 1)
        ]
        read = {node for body in bodies for node in body.variables}
        ins = [i for i, v in enumerate(self.given) if v in read]
        found = copy_of(self)
        found.given, found.only = [self.given[i] for i in ins], tuple(self.only[k] for k in outs)
        found.arguments = ("condition", *(self.arguments[i + 1] for i in ins))
        found._take(bodies)
        return found, [0, *(i + 1 for i in ins)], outs


def with_extras(given: Sequence[Node], bodies: Sequence[Graph], written: dict[int, int] | None = None) -> Branch:
    """Return a branch whose bodies have equal outputs, and which also keeps what its gradient will read."""
    extras = [kept(b) for b in bodies]
    only: list[int | None] = [None] * len(bodies[0].outputs)
    only += [b for b in (0, 1) for _ in extras[b]]
    whole = [Graph([*b.outputs, *more]) for b, more in zip(bodies, extras, strict=True)]
    return Branch(given, whole, only, written)


def _gradient(op: Branch, live: tuple[int, ...], needed: tuple[bool, ...], known: tuple | None) -> tuple:
    """Return the branch of the gradients, what its inputs are, and which inputs' gradients it gives."""
    specs = None if known is None else op.inside(known)
    F, same = Builder(specs), {} if specs is None else specs.same
    heads = {k: variable(f"head{k}") for k in live}
    same.update({v: op._made(k)[0] for k, v in heads.items()})
    source: dict[Node, tuple[str, int]] = {v: ("input", i + 1) for i, v in enumerate(op.given)}
    source |= {v: ("head", k) for k, v in heads.items()}
    to = [i for i, want in enumerate(needed) if want]
    grads = []
    for b in (0, 1):
        ends = [(op.bodies[b].outputs[at], (heads[k], 0)) for k in live for one, at in op._places[k] if one == b]
        found = (
            gradients([e for e, _ in ends], [g for _, g in ends], [(op.given[i], 0) for i in to], specs) if ends else []
        )
        grads.append(found or [None] * len(to))
    wanted = [n for n, pair in enumerate(zip(*grads, strict=True)) if any(pair)]
    if not wanted:
        return None, [], []
    bodies = []
    for b in (0, 1):
        entries = [grads[b][n] or F.zeros_like(F.value((op.given[to[n]], 0))).entry for n in wanted]
        saved: dict[Entry, Entry] = {}
        extras = set(kept(op.bodies[b]))
        for k, places in enumerate(op._places):
            for one, at in places:
                e = op.bodies[b].outputs[at] if one == b else None
                if e in extras:
                    v = variable(f"kept{k}")
                    saved[e], source[v], same[v] = (v, 0), ("output", k), e
        bodies.append(expand(exchanged(Graph(entries), saved), everything=False, specs=specs)[0])
    read = dict.fromkeys(v for body in bodies for v in body.variables)
    given = [v for v in read if v in source]
    return with_extras(given, bodies), [source[v] for v in given], [to[n] for n in wanted]
