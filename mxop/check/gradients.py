"""Checks of gradients: against differences to any order, in every type, for every request, used several times."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import autograd
from .._core import core, tape
from ..support.errors import MXNetError
from . import cases as c
from .cases import Case, Mismatch
from .edges import reduced

#: Step of the differences (four points, so errors are of its fourth power) and the relative error allowed in float64.
STEP = 1e-3
RTOL = 2e-6
#: Why an operator has no gradient to check, or none to compare with differences and sums.
NO_FLOATS = "no result is a float"
COARSE = "results of float64 data are of a smaller type, too coarse for differences"


def with_variables(case: Case, values: Sequence[np.ndarray]) -> tuple[list, list]:
    """Return (inputs, those of them that are variables: all but states)."""
    made = case.arrays(values)
    chosen = [made[k] for k in case.variables]
    for x in chosen:
        x.attach_grad()
    return made, chosen


def float_outputs(case: Case, inputs: list) -> list:
    """Call the operator; return the outputs that can have a gradient."""
    return [o for o in case.call(inputs) if c.name_of(o) in c.FLOATS]


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
        variables = self.case.arrays(point)
        for x in variables:
            x.attach_grad()
        inputs = self.case.arrays(self.values)
        for place, i in enumerate(self.moving):
            inputs[i] = variables[place]
        with autograd.record():
            outputs = float_outputs(self.case, inputs)
            used = len(self.moving)
            for level in self.heads:
                given = variables[used : used + len(level)]
                outputs = differentiate(outputs, variables[:used], given)
                used += len(level)
        return outputs, variables


def numeric(case: Case, orders: int) -> int | str:
    """Compare gradients of each order with differences of the order below, along random directions."""
    record, rng = case.record, case.rng
    moving = [k for k in case.variables if record.grad_inputs is None or k in record.grad_inputs]
    values = case.sample("float64")
    tower = _Tower(case, values, moving)
    outputs, _ = tower.evaluate(tower.point())
    if not outputs:
        return NO_FLOATS
    if any(c.name_of(o) != "float64" for o in outputs):
        return COARSE
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


def zero_inputs(case: Case) -> int | str:
    """Inputs that the record says have no gradient have gradient zero."""
    record = case.record
    if record.grad_inputs is None or set(case.variables) <= set(record.grad_inputs):
        return "every input has a gradient"
    inputs, variables = with_variables(case, case.sample("float64"))
    with autograd.record():
        outputs = float_outputs(case, inputs)
    heads = case.arrays([case.rng.uniform(0.5, 1.5, o.shape).astype(o.dtype) for o in outputs])
    for k, g in zip(case.variables, differentiate(outputs, variables, heads, create=False), strict=True):
        if k not in record.grad_inputs and g.asnumpy().any():
            raise Mismatch(f"the gradient of input {k} is not zero")
    return 1


def linear(case: Case) -> int | str:
    """The gradients for two head gradients add up to that for their sum: no head gradient is taken for one."""
    values = case.sample("float64")
    first, one = _first_order(case, values, None, None)
    if not first or any(h.dtype != np.float64 for h in first):
        return COARSE if first else NO_FLOATS
    second, other = _first_order(case, values, None, None)
    both = _first_order(case, values, [a + b for a, b in zip(first, second, strict=True)], None)[1]
    for k, a, b, found in zip(case.variables, one, other, both, strict=True):
        want = a.asnumpy() + b.asnumpy()
        c.compare(f"for the sum of two head gradients: gradient of input {k}", found, want, 64.0 * case.record.tolerance)
    return 1


def types(case: Case, names: Sequence[str]) -> int | str:
    """Gradients computed in smaller types agree with those of float64, strided head gradients with plain ones."""
    from .values import layouts

    smaller = [t for t in names if t in ("float32", "float16", "bfloat16")]
    n = 0
    if not smaller:
        return "none of the types is a smaller float"
    for dtype in smaller:
        values = case.sample(dtype)
        heads, found = _first_order(case, values, None, None)
        want = _first_order(case, c.widened(values), [h.astype(np.float64) for h in heads], None)[1]
        slack = c.tolerance(case.record, dtype, gradient=True)
        for k, got, true in zip(case.variables, found, want, strict=True):
            if c.name_of(got) != case.type_of(k, dtype):
                raise Mismatch(f"{dtype}: the gradient of input {k} is {c.name_of(got)}")
            c.compare(f"{dtype}: gradient of input {k}", got, c.wide(true), slack, values)
        n += 1
        if dtype == "float32" and heads:
            for name, laid, make in layouts(heads[0]):
                plain = _first_order(case, values, [laid, *heads[1:]], None)[1]
                given = [make(laid, case.device), *case.arrays(heads[1:])]
                strided = _first_order(case, values, heads, given)[1]
                for k, got, want_ in zip(case.variables, strided, plain, strict=True):
                    c.compare(f"float32, head gradient {name}: gradient of input {k}", got, c.wide(want_), slack)
                n += 1
    return n


def _first_order(case: Case, values: list, heads: list | None, arrays: list | None) -> tuple[list, list]:
    """Return (head gradients, gradients of all variables); neither inputs nor head gradients may be written."""
    inputs, variables = with_variables(case, values)
    with autograd.record():
        outputs = float_outputs(case, inputs)
    if heads is None:
        drawn = [case.rng.uniform(0.5, 1.5, o.shape) * case.rng.choice([-1, 1], o.shape) for o in outputs]
        heads = [d.astype(c.numpy_dtype(c.name_of(o))) for d, o in zip(drawn, outputs, strict=True)]
    if arrays is None:
        arrays = case.arrays([h.astype(c.numpy_dtype(c.name_of(o))) for h, o in zip(heads, outputs, strict=True)])
    before = [g.asnumpy() for g in arrays]
    found = differentiate(outputs, variables, arrays, create=False)
    case.unwritten(inputs, values)
    for k, (g, b) in enumerate(zip(arrays, before, strict=True)):
        c.identical(f"head gradient {k} was written by the gradient", g, b)
    return heads, found


def requests(case: Case) -> int | str:
    """Every combination of grad_req, with the variables used once and three times, equals the sum of single gradients."""
    values, uses = case.sample("float64"), 3
    heads, single = [], [np.zeros(case.shapes[k]) for k in case.variables]
    for _ in range(uses):
        given, grads = _first_order(case, values, None, None)
        heads.append(given)
        single = [s + g.asnumpy() for s, g in zip(single, grads, strict=True)]
    if not heads[0]:
        return NO_FLOATS
    n = 0
    kinds = ("write", "add", "null")
    combinations = list(itertools.product(kinds, repeat=len(case.variables)))
    if len(case.variables) > 2:
        combinations = [(kind,) * len(case.variables) for kind in kinds]
    for reqs in combinations:
        if set(reqs) == {"null"}:
            continue
        inputs, before = case.arrays(values), []
        for k, req in zip(case.variables, reqs, strict=True):
            start = case.rng.uniform(1, 2, inputs[k].shape)
            stored = case.arrays([start])
            autograd.mark_variables([inputs[k]], stored, req)
            before.append((start, stored[0]))
        listed = []
        with autograd.record():
            for given in heads:
                fresh = case.arrays(values)  # states of its own for each use
                used = [fresh[k] if k in case.states else inputs[k] for k in range(len(inputs))]
                listed += zip(float_outputs(case, used), given, strict=True)
        listed = [(o, g) for o, g in listed if tape.tracked(o)]
        if not listed:
            return "no result depends on an input, for gradients"
        autograd.backward([o for o, _ in listed], case.arrays([g for _, g in listed]))
        for k, req, (start, stored), alone in zip(case.variables, reqs, before, single, strict=True):
            want = start if req == "null" else alone + start if req == "add" else alone
            found = stored if req == "null" else inputs[k].grad
            c.compare(f"grad_req={reqs}, each input used {uses} times: gradient of input {k}", found, want, 64.0)
        n += 1
    return n


def same_variable(case: Case) -> int | str:
    """An operator of several inputs may get the same variable in several of them."""
    if len(case.variables) < 2:
        return "it has one input"
    found: int | str = "no two inputs can have one shape"
    for same, together in _of_one_shape(case):
        try:
            found = _one_variable(same, together)
        except MXNetError:
            continue  # other parameters, or other inputs, do not fit these shapes
        break
    return found


def _of_one_shape(case: Case) -> Iterator[tuple[Case, list[int]]]:
    """Yield the case, and others in which inputs have equal shapes, with the positions of such inputs."""
    square = tuple((2,) * len(shape) for shape in case.shapes)
    for shapes in (case.shapes, *((shape,) * len(case.shapes) for shape in case.shapes), square):
        for k in case.variables:
            together = [j for j in case.variables if shapes[j] == shapes[k]]
            if len(together) > 1:
                yield case.where(shapes), together
                break


def _one_variable(case: Case, together: list[int]) -> int | str:
    values = case.sample("float64")
    for k in together:
        values[k] = values[together[0]]
    heads, grads = _first_order(case, values, None, None)
    if not heads:
        return NO_FLOATS
    inputs, x = case.arrays(values), case.arrays([values[together[0]]])[0]
    start = case.rng.uniform(1, 2, x.shape)
    autograd.mark_variables([x], case.arrays([start]), "add")
    with autograd.record():
        outputs = float_outputs(case, [x if k in together else a for k, a in enumerate(inputs)])
    tracked = [(o, g) for o, g in zip(outputs, heads, strict=True) if tape.tracked(o)]
    if not tracked:
        return "no result depends on an input, for gradients"
    autograd.backward([o for o, _ in tracked], case.arrays([g for _, g in tracked]))
    want = start + sum(g.asnumpy() for k, g in zip(case.variables, grads, strict=True) if k in together)
    c.compare(f"one variable in inputs {together}: its gradient", x.grad, want, 64.0 * case.record.tolerance)
    return 1


def empty(case: Case) -> int | str:
    """Gradients of empty and 0-d arrays, and of dimensions of 1, have the shape of the input."""
    n = 0
    for shapes in reduced(case):
        small = case.where(shapes)
        values = small.sample("float32")
        inputs, variables = with_variables(small, values)
        with autograd.record():
            try:
                outputs = small.call(inputs)
            except MXNetError:
                continue
        outputs = [o for o in outputs if tape.tracked(o)]
        if not outputs:
            return "no result depends on an input, for gradients"
        autograd.backward(outputs)
        for k, x in zip(small.variables, variables, strict=True):
            if x.grad.shape != shapes[k]:
                raise Mismatch(f"shapes {shapes}: the gradient of input {k} has shape {x.grad.shape}")
        n += 1
    return n
