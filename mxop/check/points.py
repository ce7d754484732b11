"""Derivatives of formulas at special points, and as symbols: what random points in a domain do not meet."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from .. import autograd
from .._core import core
from ..opdef import Elementwise
from . import cases as c
from .cases import Case, Mismatch
from .gradients import differentiate, float_outputs

#: Zeros, ones, and numbers whose exponential no float64 holds; of two inputs without the last, which are all even.
POINTS = (0.0, -0.0, 1.0, -1.0, 0.5, 100.0, -100.0, 1000.0, -1000.0, 1e100, -1e100)
#: The step of the differences, relative to the point or 1; and how far derivatives may be from them.
STEP, SLACK = 1e-4, 1e-2


def special(case: Case, orders: int) -> int | str:
    """A derivative is not NaN, infinite or another one where differences say that it is finite.

    The first order is held against differences of the reference, each further one against those of the order below.
    """
    if not isinstance(case.op, Elementwise) or len(case.shapes) > 2 or case.record.reference is None:
        return "it is not a formula of one or two inputs with a reference"
    types = {case.type_of(k, "float64") for k in range(len(case.shapes))}
    if case.states or case.record.whole or types != {"float64"}:
        return "its inputs are not all real"
    if case.op.rule is not None or not case.record.order:
        return "its gradient is not the derivative"
    points = POINTS if len(case.shapes) == 1 else POINTS[:-2]
    values = [np.array(v) for v in zip(*itertools.product(points, repeat=len(case.shapes)), strict=True)]
    n = 0
    with np.errstate(all="ignore"):
        for order in range(1, min(orders, case.record.order) + 1):
            for path in itertools.product(range(len(values)), repeat=order):
                _compare(case, values, path)
                n += 1
    return n


def _value(case: Case, values: Sequence[np.ndarray], path: Sequence[int]) -> np.ndarray:
    """Return the derivative of the first output by one input after the other."""
    variables = [core.from_numpy(v.copy()) for v in values]
    for x in variables:
        x.attach_grad()
    with autograd.record():
        found = float_outputs(case, variables)[0]
        for k in path:
            (found,) = differentiate([found], [variables[k]], [core.from_numpy(np.ones(found.shape))])
    return found.asnumpy()


def _compare(case: Case, values: Sequence[np.ndarray], path: tuple[int, ...]) -> None:
    """Compare a derivative with the differences of the one before."""
    below: Callable = (lambda v: np.asarray(case.expected(v)[0])) if len(path) == 1 else (lambda v: _value(case, v, path[:-1]))
    k, x = path[-1], values[path[-1]]
    found, middle = _value(case, values, path), below(values)
    slopes = []
    for step in (STEP, -STEP, STEP / 2, -STEP / 2):  # of a jump, or a root, the smaller step says another slope
        moved = step * np.maximum(np.abs(x), 1)
        slopes.append((below([v + moved if j == k else v for j, v in enumerate(values)]) - middle) / moved)
    slope, size = np.mean(slopes, 0), np.max(np.abs(slopes), 0)
    finite = np.isfinite(slopes).all(0)
    smooth = finite & (np.ptp(slopes, 0) <= SLACK * (size + STEP))
    near = np.all([np.abs(v) <= 1 for v in values], axis=0)
    wrong = finite & np.isnan(found) | smooth & np.isinf(found)
    wrong |= smooth & near & ~(np.abs(found - slope) <= SLACK * (np.abs(slope) + np.abs(found) + 1))
    if wrong.any():
        names = ", ".join(f"input {j}" for j in path)
        raise Mismatch(f"the derivative by {names}: {c._where(found, slope, wrong, values)} by differences")


def symbolic(case: Case) -> int | str:
    """Second derivatives as symbols are those of recorded calls, with integer labels too, in the type of the data."""
    from ..graph import deriv
    from ..symbol import Symbol, Variable

    if not isinstance(case.op, Elementwise) or case.states or not case.record.order:
        return "it is not a formula that is differentiated twice"
    case = case.aside()
    names = [f"x{k}" for k in range(len(case.shapes))]
    labels = case.op._labels(case.attrs, len(names))
    real = [k for k in case.variables if k not in labels]
    if not real or not float_outputs(case, case.arrays(case.sample("float64"))):
        return "no input has a gradient"
    values = [np.round(v) if k in labels else v for k, v in enumerate(case.sample("float64"))]
    inputs = case.arrays([v.astype("int32") if k in labels else v for k, v in enumerate(values)])
    variables = dict(zip(names, map(Variable, names), strict=True))
    made = case.op(*variables.values(), **case.params)
    symbol: Symbol = made[0]
    for order in (1, 2):
        symbol = deriv(symbol, variables[names[real[0]]])
        found = symbol.eval(**dict(zip(names, inputs, strict=True)))[0]
        plain = [core.from_numpy(v) for v in values]
        for x in plain:
            x.attach_grad()
        with autograd.record():
            want = float_outputs(case, plain)[0]
            for _ in range(order):
                (want,) = differentiate([want], [plain[real[0]]], [core.from_numpy(np.ones(want.shape))])
        if c.name_of(found) != c.name_of(want):
            raise Mismatch(f"order {order} as a symbol is {c.name_of(found)}, expected {c.name_of(want)}")
        c.compare(
            f"order {order} as a symbol, by input {real[0]}",
            found,
            c.wide(want),
            c.GRADIENT_ULPS["float64"] * case.record.tolerance,
        )
    return 2
