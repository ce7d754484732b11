"""Loops and branches in files: the gradient of a symbol with control flow can be written, and read again.

MXNet has no such operators (it does not differentiate twice), so ``_loop`` and ``_branch`` are in files of ours alone.
Imports :mod:`.bodies`, :mod:`.branches`, :mod:`.loops` and :mod:`mxop.opdef`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ..errors import OpTypeError, OpValueError
from ..opdef import Attrs, External, registry
from ..opdef.params import Shape, Spec
from . import branches, loops
from .bodies import Bodied, check_numbers, exchanged
from .ir import Graph, Node, variable


class Written(External):
    """What a file names; :meth:`of` makes the operator of one call of it."""

    def __init__(self, name: str, signature: Callable, make: Callable[[Attrs, list[Node], list[Graph]], Bodied]):
        super().__init__(name, doc=signature.__doc__ or "")
        self._spec, self._make = Spec.of(name, signature), make

    def _refuse(self, *_: Any) -> NoReturn:
        raise OpTypeError(f"operator {self.name} has bodies, which a call cannot give")

    check_arity = infer_shape = infer_type = _refuse

    @property
    def differentiable(self) -> bool:
        return True

    def of(self, attrs: Attrs, bodies: Sequence[Graph]) -> Bodied:
        """Return the operator of a call, over variables that its bodies share."""
        check_numbers(self.name, attrs)
        wanted = [at for at in (attrs.first_locs, attrs.second_locs) if at is not None]
        place: dict[int, Node] = {}
        graphs = []
        for body, at in zip(bodies, wanted, strict=False):
            inner = body.variables
            if len(bodies) != len(wanted) or len(at) != len(inner) or any(not 0 <= k < attrs.num_given for k in at):
                raise OpValueError(f"operator {self.name}: a subgraph of {len(inner)} variables has the inputs {at} of "
                                   f"{attrs.num_given}")  # fmt: skip
            moved = {(v, 0): (place[k], 0) for v, k in zip(inner, at, strict=True) if place.setdefault(k, v) is not v}
            graphs.append(exchanged(body, moved))
        if not graphs:
            raise OpValueError(f"operator {self.name} has {len(wanted)} subgraphs, {len(bodies)} given")
        return self._make(attrs, [place.get(k) or variable(f"unread{k}") for k in range(attrs.num_given)], graphs)


def strings(op: Any) -> dict[str, str]:
    """Return the parameters that a file holds of a loop or branch."""
    at = {v: k for k, v in enumerate(op.given)}
    locs = [str([at[v] for v in body.variables]) for body in op.bodies]
    found = {"num_given": str(len(op.given)), "first_locs": locs[0]} | (
        {"second_locs": locs[1]} if len(locs) == 2 else {}
    )
    states = [k for pair in ((op.arguments.index(n), k) for n, k in op.writes.items()) for k in pair]
    found["states"] = str(states)
    if isinstance(op, loops.Loop):
        found |= {"counts": str(list(op.counts)), "steps": str(op.steps)}
        return found | {"limited": str(op.limited), "reverse": str(op.reverse)}
    return found | {"only": str([2 if b is None else b for b in op.only])}


def _pairs(states: Sequence[int]) -> dict[int, int]:
    if len(states) % 2:
        raise OpValueError(f"states={tuple(states)}; expected pairs of an input and an output")
    return dict(zip(states[::2], states[1::2], strict=True))


def _loop_parameters(
    *, num_given: int, first_locs: Shape, second_locs: Shape | None = None, states: Shape = (), counts: Shape,
    steps: int | None = None, limited: bool = False, reverse: bool = False,
):  # fmt: skip
    """Run a body once for each step; what ``_foreach`` and ``_while_loop`` and their gradients become."""


def _loop(attrs: Attrs, given: list[Node], bodies: list[Graph]) -> Bodied:
    if len(attrs.counts) != 5:
        raise OpValueError(f"operator _loop: counts={attrs.counts}; expected five numbers")
    counts = loops.Counts(*attrs.counts)
    if sum(counts[:3]) != len(given) or counts.states + counts.stacked + counts.sums != len(bodies[0].outputs):
        raise OpValueError(f"operator _loop: counts={attrs.counts} for {len(given)} inputs and "
                           f"{len(bodies[0].outputs)} outputs of the body")  # fmt: skip
    return loops.Loop(
        given, bodies[0], counts, condition=bodies[1] if len(bodies) == 2 else None, steps=attrs.steps,
        limited=attrs.limited, reverse=attrs.reverse, written=_pairs(attrs.states),
    )  # fmt: skip


def _branch_parameters(*, num_given: int, first_locs: Shape, second_locs: Shape, states: Shape = (), only: Shape):
    """Run one of two bodies; what ``_cond`` and its gradients become."""


def _branch(attrs: Attrs, given: list[Node], bodies: list[Graph]) -> Bodied:
    only = [None if b == 2 else b for b in attrs.only]
    if any(sum(b in (k, None) for b in only) != len(body.outputs) for k, body in enumerate(bodies)):
        raise OpValueError(f"operator _branch: only={attrs.only} for branches of {len(bodies[0].outputs)} and "
                           f"{len(bodies[1].outputs)} outputs")  # fmt: skip
    return branches.Branch(given, bodies, only, _pairs(attrs.states))


registry.register(Written(loops.NAME, _loop_parameters, _loop))
registry.register(Written(branches.NAME, _branch_parameters, _branch))
