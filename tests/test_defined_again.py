"""Operators that are defined again, or whose parts are given again: whatever was found out about the old ones is gone.

A machine of hypothesis defines two operators, whose names differ by an underscore, as every kind in every order, gives their
parts anew, and uses them in every way; graphs, executors and records that were made before keep to one definition.
"""

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

import mxop as mx
from mxop import autograd, nd, sym
from mxop.op import F, composite, elementwise, kernel, reduction

X = np.array([0.5, 1.0, 2.0])
NAMES = ("test_again", "_test_again")
OVER = {name: f"test_over{name}" for name in NAMES}  # composites that call them


class Model:
    """What the sum of a definition's results is, and its derivatives.

    Attributes
    ----------
    value, slope, bend : function of the element
    """

    def __init__(self, factor, power, slope=None):
        self.value = lambda x: factor * x**power
        self.slope = (lambda x: factor * power * x ** (power - 1)) if slope is None else (lambda x: slope * x)
        self.bend = (lambda x: factor * power * (power - 1) * x ** (power - 2)) if slope is None else (lambda x: slope + 0 * x)


# ---- the kinds ----------------------------------------------------------------------------------------------------------
def as_elementwise(name, c, p):
    op = elementwise(name=name)(lambda x: c * x**p)
    return op, Model(c, p)


def as_ruled(name, c, p):
    op = elementwise(name=name, rule=lambda g, x, y: g * 5 * c * x)(lambda x: c * x**p)
    return op, Model(c, p, 5 * c)


def as_sum(name, c, p):
    return reduction("add")(named(name, lambda x: c * x**p)), Model(c, p)


def as_final(name, c, p):
    return reduction("add", final=lambda v, count: c * v)(named(name, lambda x: x**p)), Model(c, p)


def as_pair(name, c, p):
    op = reduction(("max", "add"))(named(name, lambda x: (x, lambda largest: c * x**p)))
    return op, Model(c, p)


def as_composite(name, c, p):
    def function(F, x):
        result = x
        for _ in range(p - 1):
            result = result * x
        return c * result

    return composite(name=name)(function), Model(c, p)


def as_shaped_composite(name, c, p):
    return composite(name=name)(lambda F, x: F.sum(x**p, axis=x.ndim - 1) * c), Model(c, p)


def as_kernel(name, c, p):
    op = kernel(name=name)(lambda x: None)
    op.shape(lambda x: x)
    give_function(op, c, p)
    return op, Model(c, p)


def give_function(op, c, p):
    """Give a kernel a function and a gradient, for results of any shape and type."""
    op.both(lambda xp, inputs, outputs: outputs[0].__setitem__(..., (c * inputs[0] ** p).reshape(outputs[0].shape)))
    op.gradient(lambda F, heads, inputs, outputs: [
        F._cast_like(F.reshape_like(heads[0], inputs[0]), inputs[0]) * (c * p) * inputs[0] ** (p - 1)])  # fmt: skip


def named(name, function):
    function.__name__ = name
    return function


KINDS = [as_elementwise, as_ruled, as_sum, as_final, as_pair, as_composite, as_shaped_composite, as_kernel]


# ---- the ways to use one ------------------------------------------------------------------------------------------------
def function_of(space, name):
    return getattr(space._internal if name.startswith("_") else space, name)


def total(space, name):
    return lambda x: space.sum(function_of(space, name)(x))


def through(space, name):
    return function_of(space, OVER[name])


def eager(name, call):
    x = nd.array(X)
    return call(nd, name)(x).asnumpy(), None, None


def recorded(name, call):
    x = nd.array(X)
    x.attach_grad()
    with autograd.record():
        y = call(nd, name)(x)
        (g,) = autograd.grad(y, [x], create_graph=True)
    g.backward()
    return y.asnumpy(), g.asnumpy(), x.grad.asnumpy()


def bound(name, call):
    return run_bound(call(sym, name)(sym.var("x")))


def saved(name, call):
    return run_bound(sym.load_json(call(sym, name)(sym.var("x")).tojson()))


def derived(name, call):
    x = sym.var("x")
    y = call(sym, name)(x)
    first = mx.graph.deriv(y, x)
    graph = sym.Group([y, first, mx.graph.deriv(first, x)])
    return [a.asnumpy() for a in sym.load_json(graph.tojson()).bind(mx.cpu(), {"x": nd.array(X)}).forward()]


def run_bound(symbol):
    return run_executor(executor_of(symbol))


def executor_of(symbol):
    return symbol.bind(mx.cpu(), {"x": nd.array(X)}, args_grad={"x": nd.zeros(3)})


def run_executor(executor):
    y = executor.forward(is_train=True)[0].asnumpy()
    executor.backward(nd.ones(1))
    return y, executor.grad_dict["x"].asnumpy(), None


WAYS = [eager, recorded, bound, saved, derived]


def assert_is(found, models):
    """One of the definitions gives all of what was found."""
    for model in models:
        wanted = model.value(X).sum(), model.slope(X), model.bend(X)
        if all(f is None or np.allclose(f, w, rtol=1e-5) for f, w in zip(found, wanted, strict=True)):
            return
    wanted = [(m.value(X).sum(), m.slope(X), m.bend(X)) for m in models]
    raise AssertionError(f"found {found}; the definitions give {wanted}")


# ---- the machine --------------------------------------------------------------------------------------------------------
class Again(RuleBasedStateMachine):
    """Two operators that are defined again and again."""

    def __init__(self):
        super().__init__()
        self.models, self.made, self.kept, self.last = {}, {}, [], {}
        for name in NAMES:
            composite(_over(name))
            self.define(name, as_elementwise, 1, 2)
        self.compiled = {name: mx.graph.compiled(total(nd, name)) for name in NAMES}

    def teardown(self):
        for name in (*NAMES, *OVER.values()):
            mx.op.unregister(name)

    names = st.sampled_from(NAMES)
    calls = st.sampled_from([total, through])

    @rule(name=names, kind=st.sampled_from(KINDS), c=st.integers(1, 3), p=st.integers(2, 3))
    def define(self, name, kind, c, p):
        self.made[name], self.models[name] = kind(name, float(c), p)
        self.last[name] = kind, float(c), p

    @rule(name=names, slope=st.integers(2, 9))
    def give_a_gradient(self, name, slope):
        """A rule takes the place of what was derived."""
        _, c, p = self.last[name]
        self.made[name].gradient(lambda F, heads, inputs, outputs, **p: [F.broadcast_mul(slope * inputs[0], heads[0])])
        self._part(name, Model(c, p, float(slope)))

    @rule(name=names, c=st.integers(1, 3))
    def give_a_function(self, name, c):
        """A kernel computes, and is derived, in another way."""
        kind, _, p = self.last[name]
        if kind is not as_kernel:
            return
        give_function(self.made[name], c, p)
        self.last[name] = kind, float(c), p
        self._part(name, Model(c, p))

    @rule(name=names, kept=st.booleans())
    def give_a_shape_and_a_type(self, name, kept):
        """A kernel's results lie otherwise, in another type; their sum is the same."""
        kind, c, p = self.last[name]
        if kind is not as_kernel:
            return
        op = self.made[name]
        op.shape((lambda x: x) if kept else (lambda x: (*x, 1)))
        op.dtype((lambda x: x) if kept else (lambda x: "float64"))
        give_function(op, c, p)
        self._part(name, Model(c, p))

    def _part(self, name, model):
        """A part was given to the operator that others hold already."""
        self.models[name] = model
        self.kept = [(n, run, models if n != name else [*models, model]) for n, run, models in self.kept]

    @rule(name=names, call=calls, way=st.sampled_from(WAYS))
    def use(self, name, call, way):
        assert_is(way(name, call), [self.models[name]])

    @rule(name=names)
    def use_compiled(self, name):
        x = nd.array(X)
        x.attach_grad()
        with autograd.record():
            y = self.compiled[name](x)
        y.backward()
        assert_is((y.asnumpy(), x.grad.asnumpy(), None), [self.models[name]])

    @rule(name=names)
    def use_in_a_formula(self, name):
        """What is a formula is part of another one."""
        if self.last[name][0] is as_elementwise and self.made[name]._gradient is None:
            inner = self.made[name]
            op = elementwise(name="test_again_within", override=True)(lambda x: 2 * inner(x))
            y = nd.sum(op(nd.array(X))) / 2
            assert_is((y.asnumpy(), None, None), [self.models[name]])
            mx.op.unregister("test_again_within")

    @rule(name=names, call=calls)
    def keep_an_executor(self, name, call):
        executor = executor_of(call(sym, name)(sym.var("x")))
        self.kept.append((name, lambda: run_executor(executor), [self.models[name]]))

    @rule(name=names)
    def keep_a_record(self, name):
        x = nd.array(X)
        x.attach_grad()
        with autograd.record():
            y = total(nd, name)(x)

        def run():
            y.backward(retain_graph=True)
            return y.asnumpy(), x.grad.asnumpy(), None

        self.kept.append((name, run, [self.models[name]]))

    @rule()
    def use_what_was_kept(self):
        """What was made before is as it was, in all of its parts but those that were given to the same operator since."""
        for _, run, models in self.kept:
            found = run()
            for k, quantity in enumerate((found[0], found[1])):
                wanted = [(m.value(X).sum(), m.slope(X))[k] for m in models]
                assert any(np.allclose(quantity, w, rtol=1e-5) for w in wanted), (found, wanted)


def _over(name):
    """Return a composite's function that calls another operator by its name."""
    function = (lambda F, x: F.sum(F.test_again(x))) if name == "test_again" else (lambda F, x: F.sum(F._test_again(x)))
    function.__name__ = OVER[name]
    return function


def test_what_is_defined_again_is_new_everywhere():
    run_state_machine_as_test(Again, settings=settings(
        max_examples=25, stateful_step_count=20, deadline=None, derandomize=True,
        suppress_health_check=list(HealthCheck)))  # fmt: skip


def test_formulas_follow_a_formula_inside_that_is_defined_again():
    """In every kind and type, to the second order, at each of several definitions."""
    made = {}

    def define(factor):
        made["inner"] = elementwise(name="again_inner")(lambda data: F.square(data) * factor)

    define(2)
    middle = elementwise(name="again_middle")(lambda data: made["inner"](data) * 1)
    outer = elementwise(name="again_outer")(lambda data: middle(data) + 1)
    ruled = elementwise(name="again_ruled", rule=lambda g, x, y: g * made["inner"](x))(lambda data: data * 1.0)
    added = reduction("add", name="again_added")(lambda data: made["inner"](data))
    final = reduction("add", name="again_final", final=lambda v, count: made["inner"](v))(lambda data: data)
    pair = reduction(("max", "add"), name="again_pair")(lambda data: (data, lambda largest: made["inner"](data)))
    over = composite(name="again_over")(lambda F, data: outer(data))
    compiled = mx.graph.compiled(lambda data: outer(data))
    users = {outer: 1, added: 0, final: 0, pair: 0, over: 1, compiled: 1}

    def derivative(f, x, order):
        x.attach_grad()
        with autograd.record():
            y = f(x)
            for _ in range(order):
                (y,) = autograd.grad(y, [x], create_graph=True, retain_graph=True)
        return y.asnumpy().tolist()

    for factor in (2, 10, 5):
        define(factor)
        for dtype in ("float32", "float64", "float16", "int32"):
            x, v = nd.array([3], dtype=dtype), sym.Variable("v")
            for f, more in users.items():
                assert f(x).asnumpy().tolist() == [9 * factor + more]
                assert f is compiled or f(v).eval(v=x)[0].asnumpy().tolist() == [9 * factor + more]
                if dtype != "int32":
                    assert derivative(f, x, 1) == [6 * factor]
                    assert derivative(f, x, 2) == [2 * factor]
            assert dtype == "int32" or derivative(ruled, x, 1) == [9 * factor]
            second = mx.graph.deriv(mx.graph.deriv(sym.again_outer(v), v), v)
            assert second.eval(v=x)[0].asnumpy().tolist() == [2 * factor]
