"""Inference in both directions by an author's rules; those that lead from inputs to outputs say something of inputs, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..support import dtypes
from ..support.errors import OpTypeError, shown
from . import infer
from .places import place


def by_rule(op: Any, rule: Callable, ins: Sequence, outs: Sequence, params: Any) -> tuple[list, list]:
    """Return the shapes that a rule of both directions completes, in agreement with those that it was given."""
    found = rule(list(ins), list(outs), **params)
    who = f"operator {op.name}{place(rule)}: its infer rule"
    counts = [len(ins), len(outs)]
    if not isinstance(found, (list, tuple)) or [_count(part) for part in found] != counts:
        raise OpTypeError(f"{who} returned {shown(found)}; expected a pair of lists, the shapes of {counts[0]} inputs and of "
                          f"{counts[1]} outputs")  # fmt: skip
    made = [[None if s is None else tuple(s) for s in part] for part in found]
    for shape in (*made[0], *made[1]):
        infer.check_sizes(who, shape)
    return made[0], infer.agreed(op.name, op.output_names(params, len(ins)), made[1], outs)


def _count(part: Any) -> int | None:
    """Return how many shapes a list has; None for what is no list of shapes."""
    fits = isinstance(part, (list, tuple)) and all(s is None or isinstance(s, (list, tuple)) for s in part)
    return len(part) if fits else None


class _Unseen:
    """Stands for a shape that is not known: a rule can hand it on, and nothing else."""

    def __bool__(self) -> bool:
        raise TypeError("this shape is not known")

    def __eq__(self, other: object) -> bool:
        raise TypeError("this shape is not known")

    __hash__ = object.__hash__


def handed_on(rule: Callable, n_inputs: int, params: Mapping[str, Any]) -> list[int | None]:
    """Return, for each output, the input whose shape it has whatever that is; None where the rule looks at sizes.

    Examples
    --------
    >>> handed_on(lambda data, index: [data, index], 2, {}), handed_on(lambda data: data[:-1], 1, {})
    ([0, 1], [])
    """
    stand_ins = [_Unseen() for _ in range(n_inputs)]
    try:
        found = rule(*stand_ins, **params)
    except Exception:
        return []
    places = {id(s): k for k, s in enumerate(stand_ins)}
    return [places.get(id(f)) for f in (found if isinstance(found, list) else [found])]


def shapes(rule: Callable, names: Sequence[str], ins: list, outs: list, params: Mapping[str, Any]) -> tuple[list, list]:
    """Complete shapes of inputs from those of the outputs that are made like them; `names` begin with the operator's."""
    ins, outs = list(ins), list(outs)
    for k, at in enumerate(handed_on(rule, len(ins), params)[: len(outs)]):
        if at is not None:
            pair = [names[1 + at], names[1 + len(ins) + k]]
            ins[at], outs[k] = infer.same_shape(names[0], pair, [ins[at], outs[k]])
    return ins, outs


def types(rule: Callable[..., list[int]], ins: Sequence[int], outs: Sequence[int]) -> list[int]:
    """Return the types of the inputs, completed where just one type gives what is known of the outputs.

    Examples
    --------
    >>> types(lambda data: [data, dtypes.INT64], [dtypes.UNKNOWN], [dtypes.FLOAT16, dtypes.INT64]) == [dtypes.FLOAT16]
    True
    """
    found = list(ins)
    if all(t == dtypes.UNKNOWN for t in outs):
        return found
    for k in [k for k, t in enumerate(ins) if t == dtypes.UNKNOWN]:
        fitting = [t for t in dtypes.NAMES if _gives(rule, [*found[:k], t, *found[k + 1 :]], outs)]
        if len(fitting) == 1:
            found[k] = fitting[0]
    return found


def _gives(rule: Callable[..., list[int]], ins: list[int], outs: Sequence[int]) -> bool:
    """Tell whether inputs of these types may give outputs of those."""
    try:
        made = rule(*ins)
    except Exception:
        return False
    return all(dtypes.UNKNOWN in (m, t) or m == t for m, t in zip(made, outs, strict=True))
