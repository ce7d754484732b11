"""Where a NaN came from: results are looked at, call by call, and the first that holds one is an error."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..formula import Expr, const, input_, param, readable, substitute, walk
from ..opdef import Attrs, Elementwise, Formula, Operator, Reduction
from ..opdef.above import ask
from ..support import dtypes
from ..support.errors import NaNError
from . import core, profile

_here = threading.local()
_count = 0
_counting = threading.Lock()


class detect_nan:
    """A scope in which the first call of an operator whose result holds NaN is an error, forward and backward.

    The error names the operator, where the NaN is, what the inputs are there, and the part of the operator's formula that made
    it; its traceback shows the line. Composites run
    operator by operator in the scope, so that the one inside is named; operators of gradients are called ``_backward_...``.
    Calls take longer in it, and nothing outside of it. It holds for its own thread. For a bound graph there is
    :meth:`Executor.detect_nan`.

    Raises
    ------
    mxop.errors.NaNError
        From the call that made the NaN, or was the first to be given it.

    Examples
    --------
    >>> import mxop as mx
    >>> x = mx.nd.array([1.0, -4.0])
    >>> with mx.autograd.detect_nan():
    ...     y = mx.nd.sqrt(x) + 1
    Traceback (most recent call last):
    ...
    mxop.errors.NaNError: operator sqrt produced NaN from inputs without NaN: output 0 at (1,), where input 0 is -4.0
    """

    def __enter__(self) -> detect_nan:
        global _count
        self._before, _here.active = getattr(_here, "active", False), True
        _here.around = getattr(_here, "around", [])
        self._planned = ask("planned")(False)
        self._planned.__enter__()
        with _counting:
            _count += 1
            profile.look_at_results(_look)
        return self

    def __exit__(self, *problem: object) -> None:
        global _count
        with _counting:
            _count -= 1
            if _count == 0:
                profile.look_at_results(None)
        self._planned.__exit__(None, None, None)
        _here.active = self._before


def _look(op: Operator | str | None, attrs: Attrs | None, inputs: list | None, outputs: list | None) -> None:
    """Look at the results of a call; without results, a composite of this name begins or (without name) ends."""
    if not getattr(_here, "active", False):
        return
    if op is None:
        _here.around.pop()
    elif isinstance(op, str):
        _here.around.append(op)
    else:
        around = _here.around
        who = f"operator {around[0]}: its {' of '.join([op.name, *around[:0:-1]])}" if around else f"operator {op.name}"
        check(who, op, attrs, inputs or [], outputs or [])


def check(who: str, op: Any, attrs: Any, inputs: Sequence[Any], outputs: Sequence[Any], where: str = "") -> None:
    """Raise when an output of a call, of which `who` is the name in the message, holds NaN."""
    for k, out in enumerate(outputs):
        at = None if out is None else _first(out)
        if at is None:
            continue
        given = [i for i, a in enumerate(inputs) if _first(a) is not None]
        if given:
            raise NaNError(f"{who} was given NaN: input {given[0]} at {_first(inputs[given[0]])}; output {k} holds NaN{where}")
        there = [f"input {i} is {_values(a)[at]}" for i, a in enumerate(inputs) if a.shape == out.shape]
        raise NaNError(f"{who} produced NaN from inputs without NaN: output {k} at {at}{', where ' if there else ''}"
                       f"{', '.join(there)}{_part(op, attrs, inputs, out, at)}{where}")  # fmt: skip


# ---- the part of a formula ----------------------------------------------------------------------------------------------
def _part(op: Any, attrs: Any, inputs: Sequence[Any], out: Any, at: tuple[int, ...]) -> str:
    """Return which part of an operator's formula made the NaN, in words; nothing for an operator without a formula."""
    active, _here.active = getattr(_here, "active", False), False  # what is computed here is not looked at
    try:
        if isinstance(op, Elementwise):
            formula, names = op.formula(attrs, len(inputs)), op.input_names(attrs, len(inputs))
            data = [np.broadcast_to(_values(a), out.shape)[at] for a in inputs]
            return "" if formula.keys else _part_of(formula, attrs, op, names, data, _compute_type(out))
        if isinstance(op, Reduction):
            return _part_of_reduction(op, attrs, inputs[0])
        return ""
    finally:
        _here.active = active


def _compute_type(array: Any) -> int:
    return dtypes.COMPUTED_AS.get(array.dtype_code, array.dtype_code)


def _part_of(formula: Formula, attrs: Any, op: Any, names: Sequence[str], data: Sequence[Any], code: int) -> str:
    """Return the first part of a formula that is NaN for these inputs."""
    leaves = {param(n, op.spec.by_name[n].real): const(attrs[n]) for n in formula.params}
    roots = substitute(formula.roots, leaves)
    arrays = [_one(value, code) for value in data] or [_one(0, code)]
    shown = {input_(i): name for i, name in enumerate(names)}
    calls = [node for node in walk(roots) if node.kind == "call"]
    for node in calls if len(calls) > 1 else ():
        if np.isnan(_evaluated(node, arrays)):
            *before, text = readable([node], shown, ["?"])
            operands = ", ".join(f"{_evaluated(a, arrays):.9g}" for a in node.args)
            return f"; in its part {'; '.join([*before, text.removeprefix('? = ')])}, whose operands are {operands}"
    return ""


def _one(value: Any, code: int) -> Any:
    array = core.empty((1,), code)
    array[:] = float(value)
    return array


def _evaluated(node: Expr, arrays: list[Any]) -> float:
    result = _one(0, arrays[0].dtype_code)
    core.prepare_formula((node,), arrays, [result], [1]).run()
    return float(_values(result)[0])


def _part_of_reduction(op: Reduction, attrs: Any, source: Any) -> str:
    """Return which part of a reduction made a NaN: the formula of an element, the combination, or the final formula."""
    formula = op.formulas(attrs)[0]
    code = dtypes.FLOAT64 if op.wide else _compute_type(source)
    elements = core.empty(source.shape, code)
    core.prepare_formula(formula.roots, [source.detach().astype(dtypes.NAMES[code])], [elements], [1]).run()
    at = _first(elements)
    if at is not None:
        value = _values(source)[at]
        return f"; at {at}, where {op.arguments[0]} is {value}{_part_of(formula, attrs, op, op.arguments, [value], code)}"
    combine = op.combine_of(attrs).name
    if op.final is not None and _first(ask("call_operator")(op.part("_combined_"), [source.detach()], dict(attrs))) is None:
        return "; in its final formula"
    return f"; in combining elements ({combine})"


def _values(array: Any) -> np.ndarray:
    return array.detach().asnumpy()  # looking is no part of what is recorded


def _first(array: Any) -> tuple[int, ...] | None:
    """Return where the first NaN is."""
    if array.dtype_code not in dtypes.FLOATS:
        return None
    found = np.argwhere(np.isnan(_values(array)))
    return tuple(found[0].tolist()) if len(found) else None


__all__ = ["NaNError", "check", "detect_nan"]
