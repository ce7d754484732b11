"""Checks of gradients: against differences to any order, in every type, for every request, used several times.

May import :mod:`.cases`, :mod:`mxop.autograd` and the tape.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import autograd
from .._core import core, tape
from . import cases as c
from .cases import Case, Mismatch

#: Step of the differences (four points, so errors are of its fourth power) and the relative error allowed in float64.
STEP = 1e-3
RTOL = 2e-6


def _variables(case: Case, values: Sequence[np.ndarray]) -> list:
    made = case.arrays(values)
    for x in made:
        x.attach_grad()
    return made


def differentiate(heads: list, variables: list, head_grads: list, create: bool = True) -> list:
    """Return the gradients of the heads that depend on variables; zeros when none does."""
    kept = [(h, g) for h, g in zip(heads, head_grads, strict=True) if tape.tracked(h)]
    if not kept or not variables:
        return [core.from_numpy(np.zeros(v.shape, v.dtype)) for v in variables]
    return autograd.grad([h for h, _ in kept], variables, [g for _, g in kept], create_graph=create)


class _Tower:
    """The operator and its gradients as functions of flat lists of values.

    Level 0 takes the inputs.  Level n + 1 takes what level n takes and a head gradient for each of its outputs, and
    returns the gradient with respect to all that level n takes: inputs, and head gradients below.
    """

    def __init__(self, case: Case, values: list[np.ndarray], moving: list[int]):
        self.case, self.values, self.moving = case, values, moving
        self.heads: list[list[np.ndarray]] = []

    def point(self) -> list[np.ndarray]:
        """Return the values at which the present level is evaluated."""
        return [self.values[i] for i in self.moving] + [h for level in self.heads for h in level]

    def evaluate(self, point: Sequence[np.ndarray]) -> tuple[list, list]:
        """Return (outputs, variables) of the present level at a point."""
        variables = _variables(self.case, point)
        inputs = self.case.arrays(self.values)
        for place, i in enumerate(self.moving):
            inputs[i] = variables[place]
        with autograd.record():
            outputs = [o for o in self.case.call(inputs) if c.name_of(o) in c.FLOATS]
            used = len(self.moving)
            for level in self.heads:
                given = variables[used : used + len(level)]
                outputs = differentiate(outputs, variables[:used], given)
                used += len(level)
        return outputs, variables


def numeric(case: Case, orders: int) -> int:
    """Compare gradients of each order with differences of the order below, along random directions."""
    record, rng = case.record, case.rng
    moving = list(range(len(case.shapes))) if record.grad_inputs is None else list(record.grad_inputs)
    values = case.sample("float64")
    tower = _Tower(case, values, moving)
    outputs, _ = tower.evaluate(tower.point())
    if not outputs:
        return 0
    for order in range(1, orders + 1):
        heads = [rng.uniform(0.5, 1.5, o.shape) * rng.choice([-1, 1], o.shape) for o in outputs]
        point = tower.point()
        below = _Tower(case, values, moving)
        below.heads = list(tower.heads)
        tower.heads.append(heads)
        outputs, _ = tower.evaluate([*point, *heads])
        grads = [o.asnumpy() for o in outputs]
        if order > record.order:
            continue  # it runs: every rule it needs is there
        directions = [rng.uniform(-1, 1, p.shape) for p in point]
        names = _names(moving, below.heads)
        slope = _slope(below, point, directions, heads)
        exact, size = _dot(grads, directions), _dot(map(np.abs, grads), map(np.abs, directions))
        if not abs(slope - exact) <= RTOL * size + 1e-8:
            for k in range(len(names)):  # say which of them it is
                single = [d if j == k else np.zeros_like(d) for j, d in enumerate(directions)]
                slope, exact = _slope(below, point, single, heads), _dot(grads, single)
                if not abs(slope - exact) <= RTOL * _dot(map(np.abs, grads), map(np.abs, single)) + 1e-8:
                    break
            raise Mismatch(f"order {order} of the gradient with respect to {names[k]} is {exact!r} along a direction, "
                           f"differences say {slope!r}")  # fmt: skip
    return orders


def _names(moving: list[int], heads: list) -> list[str]:
    found = [f"input {i}" for i in moving]
    return found + [f"head gradient {k} of order {n + 1}" for n, level in enumerate(heads) for k in range(len(level))]


def _dot(a: Any, b: Any) -> float:
    return float(sum(np.sum(x * y) for x, y in zip(a, b, strict=True)))


def _slope(tower: _Tower, point: list, directions: list, heads: list) -> float:
    """Differentiate ``sum(heads * outputs)`` along a direction by differences."""

    def value(t: float) -> float:
        outputs, _ = tower.evaluate([p + t * d for p, d in zip(point, directions, strict=True)])
        return _dot([o.asnumpy() for o in outputs], heads)

    near, far = value(STEP) - value(-STEP), value(2 * STEP) - value(-2 * STEP)
    return (8 * near - far) / (12 * STEP)


def zero_inputs(case: Case) -> int:
    """Inputs that the record says have no gradient have gradient zero."""
    record = case.record
    if record.grad_inputs is None:
        return 0
    variables = _variables(case, case.sample("float64"))
    with autograd.record():
        outputs = [o for o in case.call(variables) if c.name_of(o) in c.FLOATS]
    heads = case.arrays([case.rng.uniform(0.5, 1.5, o.shape).astype(o.dtype) for o in outputs])
    for k, g in enumerate(differentiate(outputs, variables, heads, create=False)):
        if k not in record.grad_inputs and g.asnumpy().any():
            raise Mismatch(f"the gradient of input {k} is not zero")
    return 1


def types(case: Case, names: Sequence[str]) -> int:
    """Gradients computed in smaller types agree with those of float64, strided head gradients with plain ones."""
    from .values import layouts

    smaller = [t for t in names if t in ("float32", "float16", "bfloat16")]
    n = 0
    for dtype in smaller:
        values = case.sample(dtype)
        heads, found = _first_order(case, values, None, None)
        want = _first_order(case, [v.astype(np.float64) for v in values], [h.astype(np.float64) for h in heads], None)[
            1
        ]
        slack = c.tolerance(case.record, dtype, gradient=True)
        for k, (got, true) in enumerate(zip(found, want, strict=True)):
            if c.name_of(got) != dtype:
                raise Mismatch(f"{dtype}: the gradient of input {k} is {c.name_of(got)}")
            c.compare(f"{dtype}: gradient of input {k}", got, c.wide(true), slack, values)
        n += 1
        if dtype == "float32" and heads:
            for name, laid, make in layouts(heads[0]):
                plain = _first_order(case, values, [laid, *heads[1:]], None)[1]
                given = [make(laid, case.device), *case.arrays(heads[1:])]
                for k, (got, want_) in enumerate(zip(_first_order(case, values, heads, given)[1], plain, strict=True)):
                    c.compare(f"float32, head gradient {name}: gradient of input {k}", got, c.wide(want_), slack)
                n += 1
    return n


def _first_order(case: Case, values: list, heads: list | None, arrays: list | None) -> tuple[list, list]:
    """Return (head gradients, gradients of all inputs)."""
    variables = _variables(case, values)
    with autograd.record():
        outputs = [o for o in case.call(variables) if c.name_of(o) in c.FLOATS]
    if heads is None:
        heads = [
            (case.rng.uniform(0.5, 1.5, o.shape) * case.rng.choice([-1, 1], o.shape)).astype(
                c.numpy_dtype(c.name_of(o))
            )
            for o in outputs
        ]
    if arrays is None:
        arrays = case.arrays([h.astype(c.numpy_dtype(c.name_of(o))) for h, o in zip(heads, outputs, strict=True)])
    return heads, differentiate(outputs, variables, arrays, create=False)


def requests(case: Case) -> int:
    """Every combination of grad_req, with the variables used once and three times, equals the sum of single gradients."""
    values = case.sample("float64")
    if not values:
        return 0
    uses = 3
    heads, single = [], [np.zeros(v.shape) for v in values]
    for _ in range(uses):
        given, grads = _first_order(case, values, None, None)
        heads.append(given)
        single = [s + g.asnumpy() for s, g in zip(single, grads, strict=True)]
    if not heads[0]:
        return 0
    n = 0
    kinds = ("write", "add", "null")
    combinations = list(itertools.product(kinds, repeat=len(values)))
    if len(values) > 2:
        combinations = [(kind,) * len(values) for kind in kinds]
    for reqs in combinations:
        if set(reqs) == {"null"}:
            continue
        variables, before = case.arrays(values), []
        for x, req in zip(variables, reqs, strict=True):
            start = case.rng.uniform(1, 2, x.shape)
            autograd.mark_variables([x], case.arrays([start]), req)
            before.append(start)
        with autograd.record():
            outputs = [[o for o in case.call(variables) if c.name_of(o) in c.FLOATS] for _ in range(uses)]
        listed = [
            (o, g) for level, given in zip(outputs, heads, strict=True) for o, g in zip(level, given, strict=True)
        ]
        listed = [(o, g) for o, g in listed if tape.tracked(o)]
        if not listed:
            return n
        autograd.backward([o for o, _ in listed], case.arrays([g for _, g in listed]))
        for k, (x, req) in enumerate(zip(variables, reqs, strict=True)):
            want = before[k] if req == "null" else single[k] + before[k] if req == "add" else single[k]
            c.compare(f"grad_req={reqs}, each input used {uses} times: gradient of input {k}", x.grad, want, 64.0)
        n += 1
    return n


def same_variable(case: Case) -> int:
    """An operator of several inputs of one shape may get the same variable in all of them."""
    if len(case.shapes) < 2 or len(set(case.shapes)) > 1:
        return 0
    value = case.sample("float64")[0]
    values = [value] * len(case.shapes)
    heads, grads = _first_order(case, values, None, None)
    if not heads:
        return 0
    x = case.arrays([value])[0]
    start = case.rng.uniform(1, 2, x.shape)
    autograd.mark_variables([x], case.arrays([start]), "add")
    with autograd.record():
        outputs = [o for o in case.call([x] * len(values)) if c.name_of(o) in c.FLOATS]
    if not any(map(tape.tracked, outputs)):
        return 0
    autograd.backward(outputs, case.arrays(heads))
    c.compare("one variable in all inputs: its gradient", x.grad, start + sum(g.asnumpy() for g in grads), 64.0)
    return 1


def empty(case: Case) -> int:
    """Gradients of empty and 0-d arrays have their shape."""
    if case.op.kind != "elementwise" or not case.shapes:
        return 0
    for shape in ((), (0,), (2, 0)):
        variables = _variables(case, case.sample("float32", [shape] * len(case.shapes)))
        with autograd.record():
            outputs = case.call(variables)
        outputs = [o for o in outputs if tape.tracked(o)]
        if not outputs:
            return 0
        autograd.backward(outputs)
        for k, x in enumerate(variables):
            if x.grad.shape != shape:
                raise Mismatch(f"shape {shape}: the gradient of input {k} has shape {x.grad.shape}")
    return 1
