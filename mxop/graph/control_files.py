"""Loops in files: makes gradients of symbols with control flow serializable.

MXNet has no such operator, since it does not differentiate twice; only files of mxop have ``_loop``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..opdef import Attrs, registry
from ..opdef.params import Shape
from ..support.errors import OpValueError
from .bodies import Named, over_inputs
from .ir import Graph
from .loops import NAME, Counts, Loop

_OPTIONS = ("steps", "limited", "reverse", "otherwise")


def _parameters(
    *, num_given: int, first_locs: Shape, second_locs: Shape | None = None, counts: Shape, steps: int | None = None,
    limited: bool = False, reverse: bool = False, otherwise: bool = False,
):  # fmt: skip
    """Run a body once for each step; ``_foreach``, ``_while_loop``, ``_cond`` and their gradients are lowered to it."""


def _loop(named: Named, attrs: Attrs, bodies: Sequence[Graph]) -> Loop:
    """Return the operator of a call; its bodies get common variables."""
    wanted = [at for at in (attrs.first_locs, attrs.second_locs) if at is not None]
    if len(bodies) != len(wanted):
        raise OpValueError(f"operator {NAME} has {len(wanted)} subgraphs, {len(bodies)} given")
    given, (body, *condition) = over_inputs(NAME, attrs.num_given, bodies, [b.variables for b in bodies], wanted)
    if len(attrs.counts) != 5:
        raise OpValueError(f"operator {NAME}: counts={attrs.counts}; expected five numbers")
    counts = Counts(*attrs.counts)
    if sum(counts[:3]) != len(given) or counts.states + counts.stacked + counts.sums != len(body.outputs):
        raise OpValueError(f"operator {NAME}: counts={attrs.counts} for {len(given)} inputs and {len(body.outputs)} "
                           f"outputs of the body")  # fmt: skip
    return Loop(given, body, counts, *condition, **{key: attrs[key] for key in _OPTIONS})


def strings(op: Loop) -> dict[str, str]:
    """Return the parameters of a loop in a file."""
    at = {v: k for k, v in enumerate(op.given)}
    places = {key: [at[v] for v in body.variables] for key, body in zip(("first_locs", "second_locs"), op.bodies)}
    params = {"num_given": len(op.given), **places, "counts": list(op.counts)}
    params |= {key: getattr(op, key) for key in _OPTIONS}
    return {key: str(value) for key, value in params.items()}


registry.register(Named(NAME, _parameters, _loop, "contrib.foreach"))
