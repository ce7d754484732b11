"""The loop to which all loops are lowered: a pure function of arrays, whose gradient is another loop.

A :class:`Loop` runs its body once for each step.  The body reads a slice of each *data* input, the *states*, and the *free*
inputs, which are the same for all steps.  It returns the new states, *stacked* outputs and *summed* outputs.  The gradient runs
over the same steps in reverse: gradients of states are its states, those of data are stacked, those of free inputs are summed.
So it is a loop as well, and can be differentiated again.  The values of each step that the gradient reads (the states before
it, and the entries of :func:`.bodies.kept`) are stacked outputs; dead ones are removed before a graph runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

from .._core import core
from ..opdef import Attrs, infer
from ..support import dtypes
from ..support.errors import OpValueError
from .bodies import Bodied, body_calls, copy_of
from .calls import replayed
from .infer import Solver
from .ir import Graph, Node
from .specs import Specs, solved_inside
from .trim import trimmed

NAME = "_loop"
_CHANGED = "the state {!r} has {} before a step and {} after it"
_DIFFER = "output {} has {} in the first branch and {} in the second"


class Counts(NamedTuple):
    """Numbers of inputs and outputs of each kind that a loop, or its body, has; there are as many new states as states."""

    data: int
    states: int
    free: int
    stacked: int
    sums: int

    def inputs(self, items: Sequence[Any]) -> tuple[Any, Any, Any, Any]:
        """Return the data, the states, the free inputs, and the remaining items."""
        return _parts(items, self.data, self.states, self.free)

    def outputs(self, items: Sequence[Any]) -> tuple[Any, Any, Any, Any]:
        """Return the states, the stacked outputs, the sums, and the remaining items."""
        return _parts(items, self.states, self.stacked, self.sums)


def _parts(items: Sequence[Any], a: int, b: int, c: int) -> tuple[Any, Any, Any, Any]:
    return items[:a], items[a : a + b], items[a + b : a + b + c], items[a + b + c :]


class Loop(Bodied):
    """A body that runs once for each step.

    Inputs: the data, the states, the free inputs, and for a `limited` loop the number of steps.  Outputs: the last states, the
    stacked outputs, the sums, and for a loop with a condition the number of steps it made.

    Parameters
    ----------
    given : sequence of Node
        The body's variables: data, states, free.
    body : Graph
        Its outputs: new states, stacked, summed.
    condition : Graph, optional
        A scalar of states and free variables, evaluated before each step.
    steps : int, optional
        The most steps; by default the length of the data.
    limited, reverse : bool
        Whether the last input is the number of steps; whether slices are read from last to first.
    otherwise : bool
        Whether it makes a step only if another loop made none.  States that its step does not read are results of that loop,
        whose gradients are not read if that loop made no step.
    """

    def __init__(
        self, given: Sequence[Node], body: Graph, counts: Counts, condition: Graph | None = None,
        steps: int | None = None, limited: bool = False, reverse: bool = False, otherwise: bool = False,
    ):  # fmt: skip
        names = [f"data{k}" for k in range(counts.data)] + [f"state{k}" for k in range(counts.states)]
        names += [f"free{k}" for k in range(counts.free)] + ["steps"] * limited
        super().__init__(NAME, names, given, (body,) if condition is None else (body, condition))
        self.counts, self.steps = counts, steps
        self.limited, self.reverse, self.otherwise = limited, reverse, otherwise

    @property
    def body(self) -> Graph:
        """The graph that runs in each step."""
        return self.bodies[0]

    @property
    def counted(self) -> bool:
        """Whether the number of steps depends on values."""
        return len(self.bodies) == 2

    def num_outputs(self, attrs: Attrs, n_inputs: int | None = None) -> int:
        return len(self.body.outputs) + self.counted

    # ---- inference ------------------------------------------------------------------------------------------------------
    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        data, states, free, limit = self.counts.inputs(ins)
        last, stacked, sums, done = self.counts.outputs(outs)
        length: Any = (self.steps,)
        for shape in (*data, *stacked):
            length = self._agreed_length(length, shape)
        found, made = self._solved("shape", [*map(_slice, data), *states, *free], [*last, *map(_slice, stacked), *sums])
        data, states, free, _ = self.counts.inputs(found)
        last, stacked, sums, _ = self.counts.outputs(made)
        data, stacked = ([None if s is None else (*length, *s) for s in slices] for slices in (data, stacked))
        return [*data, *states, *free, *[(1,)] * len(limit)], [*last, *stacked, *sums, *[(1,)] * len(done)]

    def _agreed_length(self, length: Any, shape: Any) -> Any:
        if shape is None:
            return length
        if not shape:
            raise OpValueError(f"operator {self.name}: data of shape () have no steps; expected at least one dimension")
        try:
            return infer.unify(length, shape[:1])
        except infer.Conflict:
            text = f"operator {self.name}: data have {length[0]} and {shape[0]} steps along axis 0; expected the same number"
            raise OpValueError(text) from None

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        n_in, n_out = len(self.given), len(self.body.outputs)
        found, made = self._solved("type", ins[:n_in], outs[:n_out])
        return found + [dtypes.INT64] * len(ins[n_in:]), made + [dtypes.INT64] * len(outs[n_out:])

    def _solved(self, what: str, ins: list, outs: list) -> tuple[list, list]:
        return solved_inside(self._everything, self.given, ins, outs, what, self._settle)

    @cached_property
    def _everything(self) -> Graph:
        return Graph([*(e for body in self.bodies for e in body.outputs), *((v, 0) for v in self._states)])

    def _settle(self, solver: Solver) -> None:
        """Give each state the same shape and type before and after a step."""
        changed = True
        while changed:
            changed = False
            for before, after in zip(self._states, self.body.outputs, strict=False):
                old, new = solver.get((before, 0)), solver.get(after)
                if old == new:
                    continue
                try:
                    both = solver.join(old, new)
                except infer.Conflict:
                    text = (_DIFFER if self.otherwise else _CHANGED).format(before.name, solver.show(old), solver.show(new))
                    raise solver.error(f"operator {self.name}: {text}; expected the same") from None
                solver.set((before, 0), both)
                solver.set(after, both)
                solver.run()
                changed = True

    @property
    def _states(self) -> list[Node]:
        """Variables of the body that are states."""
        return self.counts.inputs(self.given)[1]

    @property
    def replaced(self) -> list[int]:
        """Indices of states that no step reads."""
        read = set(self.body.variables)
        return [j for j, v in enumerate(self._states) if v not in read]

    # ---- running --------------------------------------------------------------------------------------------------------
    def _inside(self, specs: Sequence[tuple[Any, int]]) -> list[tuple[Any, int]]:
        """Return shapes and types of the body's variables, from those of the inputs."""
        data, states, free, _ = self.counts.inputs(specs)
        return [*((_slice(s), t) for s, t in data), *states, *free]

    def inside(self, specs: Sequence[tuple[Any, int]], is_train: bool | None = None) -> Specs:
        return Specs(dict(zip(self.given, self._inside(specs), strict=True)), is_train)

    def _length(self, inputs: list[Any]) -> int:
        return self.steps if self.steps is not None else inputs[0].shape[0]

    def takes_place(self) -> dict[int, int]:
        """Return ``{output: input}``: last states that can use the memory of first states that no step reads."""
        return {j: self.counts.data + j for j in self.replaced}

    def call(self, inputs: list[Any], outputs: list[Any], reqs: list[int]) -> Any:
        specs = self._inside([(a.shape, a.dtype_code) for a in inputs])
        c, n = self.counts, self._length(inputs)
        if n == 1:  # a sum over one step is written instead of added
            c = c._replace(stacked=c.stacked + c.sums, sums=0)
        body = body_calls(self, 0, self.given, specs, c.sums)
        condition = None
        if self.counted:
            condition = body_calls(self, 1, self.given[c.data :], specs[c.data :], answer=True)
        return core.Loop(body, condition, tuple(c), n, self.limited, self.reverse, inputs, outputs, reqs)

    def run(self, attrs: Attrs, state: Any, is_train: bool, reqs: list[str], inputs: list, outputs: list) -> None:
        data, states, free, limit = self.counts.inputs(inputs)
        last, stacked, sums, steps = self.counts.outputs(outputs)
        n = min([self._length(inputs), *(int(a.asnumpy()[0]) for a in limit)])
        F, done = core.namespace(), 0
        for array in (*stacked, *sums):
            array[:] = 0
        while done < n:
            t = n - 1 - done if self.reverse else done
            arrays = dict(zip(self.given, [*(a[t] for a in data), *states, *free], strict=True))
            if self.counted and not replayed(F, self.bodies[1], arrays)[0].asnumpy().reshape(-1)[0]:
                break
            states, slices, terms, _ = self.counts.outputs(replayed(F, self.body, arrays))
            for array, value in zip(stacked, slices, strict=True):
                array[t] = value
            for array, value in zip(sums, terms, strict=True):
                array[:] += value
            done += 1
        for array, value in zip([*last, *steps], [*states, *[done] * len(steps)], strict=True):
            array[:] = value

    def trimmed(self, live: Sequence[int]) -> tuple[Loop, list[int], list[int]]:
        """Return the loop with only the outputs in `live`, and the indices of its remaining inputs and outputs."""
        c, n = self.counts, len(self.body.outputs)
        keep = {k for k in live if k < n}
        states = {v: j for j, v in enumerate(self._states)}
        condition = self.bodies[1:]
        while True:
            outs = sorted(keep)
            body = trimmed(Graph([self.body.outputs[k] for k in outs]))
            read = {node for b in (body, *condition) for node in b.nodes if node.op is None}
            more = {states[v] for v in read if v in states} - keep
            if not more:
                break
            keep |= more
        ins = [i for i, v in enumerate(self.given) if v in read or states.get(v) in keep]
        if self.steps is None and not any(i < c.data for i in ins):
            ins = [0, *ins]  # its length is the number of steps
        made = outs + [n] * self.counted
        given = ins + [len(self.given)] * self.limited
        if len(made) == n + self.counted and len(given) == len(self.arguments) and body is self.body:
            return self, given, made
        found = copy_of(self)
        kinds_in, kinds_out = c.inputs(range(len(self.given)))[:3], c.outputs(range(n))[1:3]
        found.counts = Counts(*(len({*kind}.intersection(ins)) for kind in kinds_in),
                              *(len({*kind}.intersection(outs)) for kind in kinds_out))  # fmt: skip
        found.given, found.arguments = [self.given[i] for i in ins], tuple(self.arguments[i] for i in given)
        found._take((body, *condition))
        return found, given, made


def _slice(shape: Any) -> Any:
    return None if shape is None else shape[1:]
