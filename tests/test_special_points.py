"""Derivatives of every order where formulas have cases: zeros, exponents that are whole, edges, large and equal numbers.

References are derivatives by mpmath with a hundred digits, beside the point where the function itself has a case there.
"""

import itertools
from functools import lru_cache

import mpmath
import numpy as np
import pytest

import mxop as mx
from mxop.op import F, elementwise

inf, nan = float("inf"), float("nan")


def derivative(function, arrays, order):
    """Differentiate by one array after the other; return NumPy's array."""
    for x in arrays:
        x.attach_grad()
    with mx.autograd.record():
        found = function(*arrays)
        for k in order:
            (found,) = mx.autograd.grad(found, [arrays[k]], create_graph=True, retain_graph=True)
    return found.asnumpy().astype("float64")


def limit(function, point, counts):
    """Return a mixed derivative at a point; where the first coordinate is 0, its limit from above: maybe infinite."""
    with mpmath.workdps(120):
        if point[0] != 0:
            return float(mpmath.diff(function, point, counts))
        near, nearer = (mpmath.diff(function, (mpmath.mpf(10) ** -e, *point[1:]), counts) for e in (8, 16))
        if abs(nearer) > abs(near) * 1.5:
            return float(mpmath.sign(nearer)) * inf
        return 0.0 if abs(nearer) < abs(near) / 1.5 else float(nearer)


@elementwise
def special_power(base, exponent):
    """Evaluate ``base**exponent``."""
    return base**exponent


@elementwise
def special_power_by(data, *, exponent: float = 1.0):
    """Evaluate ``data**exponent``."""
    return data**exponent


@elementwise
def special_power_of(data, *, base: float = 1.0):
    """Evaluate ``base**data``."""
    return base**data


BASES = (0.0, 0.5, 1.0, 2.0, -1.5)
EXPONENTS = (0.0, 1.0, 2.0, 3.0, 4.0, -1.0, -2.0, 0.5, 2.5)
POWERS = {
    "operator": lambda x, y: x**y,
    "broadcast": mx.nd.broadcast_power,
    "formula": special_power,
    "compiled": mx.graph.compiled(lambda x, y: x**y),
}


@lru_cache(None)
def power(base, exponent, m, n):
    """Return the derivative of ``base**exponent``, `m` times by the base and `n` times by the exponent."""
    if base == 0 and exponent == 0 and n and not m:
        return 0.0  # by convention, as by the base
    if base < 0 and n == 1 and exponent in range(m):  # the factor of log(base) is 0
        return float(mpmath.diff(lambda e: mpmath.ff(e, m), exponent)) * base ** (exponent - m)
    if base < 0 and (n or exponent != int(exponent)):
        return nan
    if base < 0:  # mpmath's differences of a real power are complex there
        return float(mpmath.ff(exponent, m)) * base ** (exponent - m)
    return limit(lambda x, y: x**y, (base, exponent), (m, n))


@pytest.mark.parametrize("how", POWERS)
@pytest.mark.parametrize(
    "order", [o for n in range(1, 5) for o in itertools.product((0, 1), repeat=n)] + [(0,) * 5, (0, 1, 0, 0, 0)]
)
def test_powers(how, order):
    # a plan computes the gradients of both operands together: NaN of one by log(base) reaches the other's derivatives
    bases = [b for b in BASES if b > 0] if how == "compiled" else BASES
    x, y = (a.ravel() for a in np.meshgrid(bases, EXPONENTS))
    found = derivative(POWERS[how], [mx.nd.array(a, dtype="float64") for a in (x, y)], order)
    want = [power(a, b, order.count(0), order.count(1)) for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("order", range(1, 6))
def test_powers_by_and_of_a_number(dtype, order):
    tolerance = {"float64": 1e-9, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    for exponent in (0, 1, 2, 3, 4, -1, 2.5):
        want = [power(a, exponent, order, 0) for a in BASES]
        for function in (lambda x: x**exponent, lambda x: special_power_by(x, exponent=exponent),  # noqa: B023
                         lambda x: mx.nd.broadcast_power(x, mx.nd.full((1,), exponent, dtype=dtype))):  # noqa: B023  # fmt: skip
            found = derivative(function, [mx.nd.array(BASES, dtype=dtype)], [0] * order)
            np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance)
    for base in (0, 0.5, 2):
        want = [power(base, b, 0, order) for b in (0.0, 1.0, 2.0, 0.5)]
        for function in (lambda x: base**x, lambda x: special_power_of(x, base=base)):  # noqa: B023
            found = derivative(function, [mx.nd.array([0.0, 1.0, 2.0, 0.5], dtype=dtype)], [0] * order)
            np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("order", range(1, 5))
def test_powers_as_symbols(order):
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    s = mx.sym.broadcast_power(x, y)
    for _ in range(order):
        s = mx.graph.deriv(s, x)
    at, by = (a.ravel() for a in np.meshgrid(BASES, EXPONENTS))
    found = s.eval(x=mx.nd.array(at, dtype="float64"), y=mx.nd.array(by, dtype="float64"))[0].asnumpy()
    want = [power(a, b, order, 0) for a, b in zip(at, by, strict=True)]
    np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-12)


def test_an_even_function_of_a_square_has_all_its_derivatives_at_zero():
    x = mx.nd.array([0.0, -0.0], dtype="float64")
    for order, want in enumerate([1, 0, -2, 0, 12, 0, -120]):
        assert derivative(lambda x: mx.nd.exp(-(x**2)), [x], [0] * order).tolist() == [want] * 2


@pytest.mark.parametrize("order", range(1, 5))
def test_cube_roots_and_square_roots_are_infinitely_steep_at_zero(order):
    for function, k in ((mx.nd.cbrt, 3), (mx.nd.sqrt, 2)):
        found = derivative(function, [mx.nd.array([0.0, 8.0], dtype="float64")], [0] * order)
        want = float(mpmath.ff(mpmath.mpf(1) / k, order) * mpmath.mpf(8) ** (mpmath.mpf(1) / k - order))
        np.testing.assert_allclose(found, [(-1) ** (order + 1) * inf, want], rtol=1e-9)


@pytest.mark.parametrize("order", [o for n in range(1, 4) for o in itertools.product((0, 1), repeat=n)])
def test_hypot_and_norm_at_zero(order):
    """At the origin the derivatives are 0, elsewhere on the axes they are smooth."""
    points = ((0.0, 0.0), (3.0, 0.0), (0.0, -2.0), (3.0, 4.0))
    x, y = np.array(points).T
    counts = (order.count(0), order.count(1))
    want = [limit(mpmath.hypot, p, counts) if p[0] else
            0.0 if p == (0, 0) else limit(lambda b, a: mpmath.hypot(a, b), p[::-1], counts[::-1]) for p in points]  # fmt: skip
    both = [mx.nd.array(a, dtype="float64") for a in (x, y)]
    norm = lambda a, b: mx.nd.norm(mx.nd.stack(a, b, axis=1), axis=1)  # noqa: E731
    for function in (mx.nd.hypot, mx.nd.broadcast_hypot, norm):
        np.testing.assert_allclose(derivative(function, both, order), want, rtol=1e-9, atol=1e-12)


def test_remainders_by_zero_have_finite_derivatives_through_their_head_gradients():
    x, y, g = (mx.nd.array(a, dtype="float64") for a in ([5.0, -5.0, 5.0], [0.0, 0.0, 3.0], [2.0, 2.0, 2.0]))
    for a in (x, y, g):
        a.attach_grad()
    with mx.autograd.record():
        slopes = mx.autograd.grad(x % y, [x, y], head_grads=g, create_graph=True)
        total = slopes[0] + slopes[1]
    total.backward()
    assert [s.asnumpy().tolist() for s in slopes] == [[2, 2, 2], [0, 0, -2]]
    assert g.grad.asnumpy().tolist() == [1, 1, 0]


# ---- updates of optimizers ------------------------------------------------------------------------------------------
def states(n, dtype="float64"):
    return [mx.nd.zeros((2,), dtype=dtype) for _ in range(n)]


UPDATES = {  # what the first element's slope is where its gradient and all states are 0
    "adam": (lambda w, g: mx.nd.adam_update(w, g, *states(2), lr=0.1), -1e6),
    "adamw": (lambda w, g: mx.nd.contrib.adamw_update(w, g, *states(2), mx.nd.ones(1, dtype="float64"), lr=0.1, eta=1.0), -1e6),
    "ftml": (lambda w, g: mx.nd.ftml_update(w, g, *states(3), lr=0.1, t=1), -1e7),
    "lamb": (lambda w, g: mx.nd.lamb_update_phase1(w, g, *states(2), t=1, wd=0.0), 1e6),
    "ftrl": (lambda w, g: mx.nd.ftrl_update(w, g, *states(2), lr=0.1), 0.0),
    "ftrl from 0": (lambda w, g: mx.nd.ftrl_update(w, g, *states(2), lr=0.1, lamda1=0.0), 0.0),
    "rmsprop": (lambda w, g: mx.nd.rmsprop_update(w, g, *states(1), lr=0.1), -1e3),
    "rmspropalex": (lambda w, g: mx.nd.rmspropalex_update(w, g, *states(3), lr=0.1), -1e3),
    "adagrad": (lambda w, g: mx.nd.sparse.adagrad_update(w, g, *states(1), lr=0.1), -0.1 / 1e-7**0.5),
    "nadam": (lambda w, g: mx.nd._internal._nadam_update(
        w, g, *states(2), lr=0.1, beta1=0.9, beta2=0.999, new2=0.001, epsilon=1e-8, of_grad=1.0, of_mean=0.0, left2=1.0,
        wd=0.0), -1e7),
    "adamax": (lambda w, g: mx.nd._internal._adamax_update(w, g, *states(2), lr=0.1, beta1=0.9, beta2=0.999, wd=0.0), -0.01),
    "nag": (lambda w, g: mx.nd.nag_mom_update(w, g, *states(1), lr=0.1, momentum=0.5), -0.15),
    "mp_adamw": (lambda w, g: mx.nd.contrib.mp_adamw_update(
        w.astype("float16"), g.astype("float16"), *states(2, "float32"), w.astype("float32"), mx.nd.ones(1), lr=1e-4, eta=1.0,
    ), -1e3),
}  # fmt: skip


@pytest.mark.parametrize("name", UPDATES)
def test_gradients_through_updates_where_nothing_was_learned_yet(name):
    update, want = UPDATES[name]
    w = mx.nd.array([1.0, 1.0], dtype="float64")
    first = derivative(lambda g: update(w, g), [mx.nd.array([0.0, 1.0], dtype="float64")], [0])
    np.testing.assert_allclose(first[0], want, rtol=2e-3)
    assert np.isfinite(first).all()
    if name != "mp_adamw":
        assert np.isfinite(derivative(lambda g: update(w, g), [mx.nd.array([0.0, 1.0], dtype="float64")], [0, 0])).all()


def test_rates_of_layers_without_weights_or_gradients():
    w = mx.nd.array([0.0, 4.0, 0.0], dtype="float64")
    g = mx.nd.array([1.0, 0.0, 0.0], dtype="float64")
    one = mx.nd.ones(3, dtype="float64")
    for k in (0, 1):
        found = derivative(lambda w, g: mx.nd.multi_lars(one, w, g, one, eta=0.5, eps=1e-8), [w, g], [k])
        assert found.tolist() == [0, 0, 0]


# ---- linear algebra -------------------------------------------------------------------------------------------------
def test_eigenvalues_that_are_equal_have_finite_gradients():
    for a, of, want in ((np.eye(2), lambda v: v, np.eye(2)), (2 * np.eye(3), lambda v: v * v, 4 * np.eye(3)),
                        (np.zeros((2, 2)), lambda v: v, np.eye(2)), (np.diag([2.0, 2.0, 5.0]), lambda v: v, np.eye(3)),
                        (np.stack([np.eye(2), np.zeros((2, 2))]), lambda v: v, np.stack([np.eye(2)] * 2))):  # fmt: skip
        x = mx.nd.array(a, dtype="float64")
        np.testing.assert_allclose(derivative(lambda x: of(mx.nd.linalg.syevd(x)[1]), [x], [0]), want, atol=1e-12)  # noqa: B023
        s = mx.sym.linalg.syevd(mx.sym.Variable("x", shape=a.shape))[1]
        bound = of(s).simple_bind(mx.cpu(), x=a.shape, type_dict={"x": "float64"})
        bound.arg_dict["x"][:] = x
        bound.forward(is_train=True)
        bound.backward(mx.nd.ones(a.shape[:-1], dtype="float64"))
        np.testing.assert_allclose(bound.grad_dict["x"].asnumpy(), want, atol=1e-12)


def test_the_sign_of_a_singular_determinant_has_gradient_zero():
    x = mx.nd.zeros((2, 2))
    assert derivative(lambda x: mx.nd.linalg.slogdet(x)[0] + x.sum(), [x], [0]).tolist() == [[1, 1], [1, 1]]


# ---- outputs without a head gradient: 0 times an infinite slope is NaN ------------------------------------------------------
@pytest.fixture
def root_and_double():
    """Return a formula of two outputs, one of which is infinitely steep at 0; other tests ask for every operator."""
    op = elementwise(name="_root_and_double")(lambda data: (F.sqrt(data), 2 * data))
    yield op
    mx.op.unregister(op.name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_output_that_nobody_differentiates_says_nothing(root_and_double, dtype):
    x = mx.nd.array([0, 1], dtype=dtype)
    for compiled in (False, True):
        function = mx.graph.compiled(lambda x: root_and_double(x)) if compiled else root_and_double
        x.attach_grad()
        with mx.autograd.record():
            root, double = function(x)
        double.backward(retain_graph=True)
        assert x.grad.asnumpy().tolist() == [2, 2]
        root.backward()
        assert x.grad.asnumpy().tolist() == [inf, 0.5]
        with mx.autograd.record():
            first = mx.autograd.grad(function(x)[1] ** 2, x, create_graph=True)[0]
        first.backward()
        assert x.grad.asnumpy().tolist() == [8, 8]
    variable = mx.sym.Variable("x")
    double = root_and_double(variable)[1]
    assert mx.graph.deriv(double, variable).eval(x=x)[0].asnumpy().tolist() == [2, 2]
    executor = double.bind(mx.cpu(), {"x": x}, args_grad={"x": mx.nd.zeros(2, dtype=dtype)})
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones(2, dtype=dtype))
    assert executor.grad_dict["x"].asnumpy().tolist() == [2, 2]


def test_powers_whose_exponent_is_a_variable_too():
    """By both operands at once; only the gradient by the base is differentiated again, and has no logarithm in it."""
    points, exponents, want = [0, -1, 2], [2, 2, 3], ([0, -2, 12], [2, 2, 12], [0, 0, 6], [0, 0, 0])

    def by_both(function, order):
        x, y = (mx.nd.array(v, dtype="float64") for v in (points, exponents))
        x.attach_grad(), y.attach_grad()
        with mx.autograd.record():
            found = function(x, y)
            for _ in range(order - 1):
                found = mx.autograd.grad(found, [x, y], create_graph=True, retain_graph=True)[0]
        found.backward()
        return x.grad.asnumpy().tolist()

    symbol = mx.sym.Variable("x") ** mx.sym.Variable("y")
    for order, expected in enumerate(want, 1):
        assert by_both(lambda x, y: x**y, order) == expected
        assert by_both(mx.graph.compiled(lambda x, y: x**y), order) == expected
        symbol = mx.sym.sum(symbol).gradient(["x", "y"])[0]
        given = {k: mx.nd.array(v, dtype="float64") for k, v in (("x", points), ("y", exponents))}
        assert symbol.eval(**given)[0].asnumpy().tolist() == expected


@pytest.mark.parametrize("wanted", [(0,), (1,), (0, 1)])
def test_gradients_of_compiled_functions_without_some_heads(wanted):
    """Each choice of outputs, first and second derivatives, against the same call by call."""

    def function(x, y):
        return x**y, mx.nd.sqrt(x) * y, mx.nd.sin(x) + y**3

    def found(function, heads, again):
        x, y = mx.nd.array([0.5, 2], dtype="float64"), mx.nd.array([3, -1.5], dtype="float64")
        variables = [x, y]
        for v in variables:
            v.attach_grad()
        with mx.autograd.record():
            outputs = function(x, y)
            total = mx.nd.add_n(*[(k + 1) * mx.nd.sum(outputs[k]) for k in heads])
            if again:
                total = mx.nd.add_n(*[
                    mx.nd.sum(g * g)
                    for g in mx.autograd.grad(total, [variables[k] for k in wanted], create_graph=True)
                ])  # fmt: skip
        total.backward()
        return [v.grad.asnumpy() for v in variables]

    compiled = mx.graph.compiled(function)
    for n in (1, 2, 3):
        for heads in itertools.combinations(range(3), n):
            for again in (False, True):
                for a, b in zip(found(function, heads, again), found(compiled, heads, again), strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-12)
