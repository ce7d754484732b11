"""Inference in both directions by authors' rules, also by those that lead from inputs to outputs only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..support import dtypes
from ..support.errors import OpTypeError, shown, translated
from . import infer
from .places import place
from .rules import type_codes


def by_rule(op: Any, rule: Callable, ins: Sequence, outs: Sequence, params: Any) -> tuple[list, list]:
    """Return the shapes completed by a two-way rule, in agreement with those given."""
    found = rule(list(ins), list(outs), **params)
    who = f"operator {op.name}{place(rule)}: its infer rule"
    counts = [len(ins), len(outs)]
    if not isinstance(found, (list, tuple)) or [_count(part) for part in found] != counts:
        raise OpTypeError(f"{who} returned {shown(found)}; expected a pair of lists, the shapes of {counts[0]} inputs and of "
                          f"{counts[1]} outputs")  # fmt: skip
    made = [[None if s is None else tuple(s) for s in part] for part in found]
    for shape in (*made[0], *made[1]):
        infer.check_sizes(who, shape)
    if all(o is None for o in outs):
        return made[0], made[1]
    return made[0], infer.agreed(op.name, op.output_names(params, len(ins)), made[1], outs)


def _count(part: Any) -> int | None:
    """Return the number of shapes in a list; None if it is not a list of shapes."""
    fits = isinstance(part, (list, tuple)) and all(s is None or isinstance(s, (list, tuple)) for s in part)
    return len(part) if fits else None


class _Unseen:
    """A placeholder for an unknown shape: a rule can only return it."""

    def __bool__(self) -> bool:
        raise TypeError("this shape is not known")

    def __eq__(self, other: object) -> bool:
        raise TypeError("this shape is not known")

    __hash__ = object.__hash__


def handed_on(rule: Callable, n_inputs: int, params: Mapping[str, Any]) -> list[int | None]:
    """Return, for each output, the input that has the same shape in all calls, or None; empty if the rule reads sizes.

    Examples
    --------
    >>> handed_on(lambda data, index: [data, index], 2, {}), handed_on(lambda data: data[:-1], 1, {})
    ([0, 1], [])
    """
    placeholders = [_Unseen() for _ in range(n_inputs)]
    try:
        found = rule(*placeholders, **params)
    except Exception:
        return []
    places = {id(s): k for k, s in enumerate(placeholders)}
    return [places.get(id(f)) for f in (found if isinstance(found, list) else [found])]


def shapes(rule: Callable, names: Sequence[str], ins: list, outs: list, params: Mapping[str, Any]) -> tuple[list, list]:
    """Return shapes with those of inputs completed from outputs of the same shape; `names` begin with the operator's."""
    ins, outs = list(ins), list(outs)
    for k, at in enumerate(handed_on(rule, len(ins), params)[: len(outs)]):
        if at is not None:
            pair = [names[1 + at], names[1 + len(ins) + k]]
            ins[at], outs[k] = infer.same_shape(names[0], pair, [ins[at], outs[k]])
    return ins, outs


def by_type_rule(op: Any, what: str, given: Callable, ins: list[int], outs: list[int], params: Any) -> tuple[list, list]:
    """Return the types completed by a rule that gives those of the outputs."""

    def rule(*codes: int) -> list[int]:
        return type_codes(op, what, given, given(*codes, **params), len(outs))

    with translated(f"operator {op.name}"):
        ins = types(rule, ins, outs)
        return ins, rule(*ins)


def types(rule: Callable[..., list[int]], ins: Sequence[int], outs: Sequence[int]) -> list[int]:
    """Return the types of the inputs; an unknown one is completed if a single type gives the known output types.

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
    """Return whether inputs of types `ins` can give outputs of types `outs`."""
    try:
        made = rule(*ins)
    except Exception:
        return False
    return all(dtypes.UNKNOWN in (m, t) or m == t for m, t in zip(made, outs, strict=True))
