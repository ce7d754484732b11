"""Passes of patterns: labels, constraints, skips, parameters, commutative operators."""

import numpy as np
import pytest
from comparing import ops

import mxop as mx
from mxop import nd, sym

a, b, c, d = (sym.Variable(n) for n in "abcd")


def rule(pattern, with_, **labels):
    """Return a pass of one pattern; ``with_(found)`` is what it is replaced by, None leaves it."""

    class OneRule(mx.graph.RewritePass):
        def __init__(self):
            self.register_pattern(pattern, self.found)

        def found(self, node, found):
            new = with_(found)
            if new is not None:
                self.replace(node, new)

    return OneRule


x, y, z = mx.graph.label("x"), mx.graph.label("y"), mx.graph.label("z")
FUSED = sym._internal._hypot  # any operator of two inputs that the patterns do not contain


def test_a_pattern_of_two_operators():
    Rule = rule(sym.exp(sym.negative(x)), lambda f: sym.reciprocal(sym.exp(f["x"])))
    new = (sym.exp(sym.negative(a)) * 2).optimize([Rule])
    assert ops(new) == ["exp", "reciprocal", "_mul_scalar"]
    value = nd.array([0.5, -1.0])
    np.testing.assert_allclose(new.eval(a=value)[0].asnumpy(), 2 * np.exp([-0.5, 1.0]), rtol=1e-6)
    assert ops((sym.exp(sym.sin(a))).optimize([Rule])) == ["sin", "exp"]


def test_a_label_that_stands_twice_matches_one_value():
    Rule = rule(x * x, lambda f: sym.square(f[x]))
    assert ops((a * a).optimize([Rule])) == ["square"]
    assert ops((a * b).optimize([Rule])) == ["elemwise_mul"]
    assert ops((sym.exp(a) * sym.exp(a)).optimize([Rule])) == ["exp", "exp", "elemwise_mul"]  # equal, not one


def test_commutative_operators_match_in_any_order():
    Rule = rule(x * y + x * z, lambda f: f["x"] * (f["y"] + f["z"]))
    for left in (a * b, b * a):
        for right in (a * c, c * a):
            for total in (left + right, right + left):
                new = total.optimize([Rule])
                assert ops(new) == ["elemwise_add", "elemwise_mul"]
                args = {"a": nd.array([2.0]), "b": nd.array([3.0]), "c": nd.array([4.0])}
                assert new.eval(**args)[0].asnumpy().tolist() == [14]
    assert len(ops((a * b + c * d).optimize([Rule]))) == 3
    Minus = rule(sym.exp(x) - y, lambda f: FUSED(f["x"], f["y"]))
    assert ops((a - sym.exp(b)).optimize([Minus])) == ["exp", "elemwise_sub"]  # a difference has an order
    assert ops((sym.exp(b) - a).optimize([Minus])) == ["_hypot"]


def test_many_terms():
    Rule = rule(sym.add_n(sym.exp(x), y, sym.sin(z)), lambda f: f["x"] + f["y"] + f["z"])
    assert ops(sym.add_n(sym.sin(c), sym.exp(a), b).optimize([Rule])) == ["elemwise_add"] * 2
    assert "add_n" in ops(sym.add_n(sym.sin(c), sym.exp(a)).optimize([Rule]))


def test_forms_of_one_function_are_one():
    Rule = rule(x + sym.exp(y), lambda f: sym.broadcast_sub(f["x"], f["y"]))
    assert ops(sym.broadcast_add(sym.exp(b), a).optimize([Rule])) == ["broadcast_sub"]


def test_parameters_that_a_pattern_gives_are_equal():
    given = rule(sym.sum(x, axis=1), lambda f: sym.max(f["x"], axis=1))
    assert ops(sym.sum(a, axis=1).optimize([given])) == ["max"]
    assert ops(sym.sum(a, axis=1, keepdims=True).optimize([rule(sym.sum(x, axis=1), lambda f: None)])) == ["sum"]
    assert ops(sym.sum(a, axis=0).optimize([given])) == ["sum"] and ops(sym.sum(a).optimize([given])) == ["sum"]
    seen = []
    anything = rule(sym.sum(x), lambda f: seen.append(f["x"].name))
    sym.sum(a, axis=(0, 1), exclude=True).optimize([anything])
    assert seen == ["a"]
    assert ops((a * 2).optimize([rule(x * 2, lambda f: f["x"] + f["x"])])) == ["elemwise_add"]
    assert ops((a * 3).optimize([rule(x * 2, lambda f: f["x"] + f["x"])])) == ["_mul_scalar"]


def test_constraints():
    small = mx.graph.label("x", constraint=lambda v: v.shape == (2, 3))
    Rule = rule(sym.exp(small), lambda f: sym.sin(f["x"]))
    assert ops(sym.exp(a).optimize([Rule], a=(2, 3))) == ["sin"]
    assert ops(sym.exp(a).optimize([Rule], a=(3, 3))) == ["exp"] == ops(sym.exp(a).optimize([Rule]))
    number = mx.graph.label("n", constraint=lambda v: v.fill is not None)
    Scalar = rule(x * number, lambda f: f["x"] * f["n"].fill)
    assert ops((sym.full((2,), 3) * a).optimize([Scalar], type_dict={"a": "float32"})) == ["_mul_scalar"]
    assert ops((b * a).optimize([Scalar])) == ["elemwise_mul"]


def test_labels_with_a_pattern():
    top = mx.graph.label("top", pattern=sym.softmax(x))
    found = {}
    Rule = rule(sym.log(top), lambda f: found.update(f))
    sym.log(sym.softmax(a, axis=0, name="s")).optimize([Rule])
    assert found["top"].name == "s" and found["top"].attrs.axis == 0 and found["x"].name == "a"


def test_skips():
    through = mx.graph.skip(sym.exp(x), when=lambda v: v.op_name in ("_copy", "Reshape"))
    Rule = rule(sym.log(through), lambda f: sym.abs(f["x"]))
    for inner in (
        sym.exp(a),
        sym.identity(sym.exp(a)),
        sym.reshape(sym.identity(sym.exp(a)), shape=(-1,)).reshape((2, 3)),
    ):
        assert ops(sym.log(inner).optimize([Rule], a=(2, 3)))[-1] == "abs"
    assert ops(sym.log(sym.exp(a) * 2).optimize([Rule], a=(2, 3)))[-1] == "log"


def test_variables_of_a_pattern_are_variables_by_name():
    Rule = rule(sym.exp(sym.Variable("a")), lambda f: sym.sin(a))
    assert ops(sym.exp(b).optimize([Rule])) == ["exp"]
    outer = sym.exp(a)

    class Inner(mx.graph.RewritePass):
        def __init__(self):
            self.register_pattern(sym.exp(sym.Variable("a")), lambda node, f: self.replace(node, node.inputs[0]))

    assert ops(outer.optimize([Inner])) == []


def test_the_first_pattern_that_replaces_wins():
    seen = []

    class Several(mx.graph.RewritePass):
        def __init__(self):
            self.register_pattern(sym.exp(x), lambda node, f: seen.append("looked"))
            self.register_pattern(sym.exp(x), lambda node, f: self.replace(node, sym.sin(f[x])))
            self.register_pattern(sym.exp(x), lambda node, f: seen.append("never"))

    assert ops(sym.exp(a).optimize([Several])) == ["sin"] and seen == ["looked"]


def test_outputs_of_a_call_are_told_apart():
    pair = sym.split(x, num_outputs=2, axis=0)
    Rule = rule(pair[0] + pair[1], lambda f: sym.sum(f["x"], axis=0, keepdims=True))
    halves, other = sym.split(a, num_outputs=2, axis=0), sym.split(b, num_outputs=2, axis=0)
    assert ops((halves[1] + halves[0]).optimize([Rule])) == ["sum"]
    assert ops((halves[0] + halves[0]).optimize([Rule]))[-1] == "elemwise_add"
    assert ops((halves[0] + other[1]).optimize([Rule]))[-1] == "elemwise_add"


def test_inner_values_that_others_read_stay():
    Rule = rule(sym.log(sym.exp(x)), lambda f: f["x"])
    e = sym.exp(a)
    assert ops(sym.Group([sym.log(e), e]).optimize([Rule])) == ["exp"]


def test_rewritten_nodes_are_looked_at_again():
    Rule = rule(sym.exp(sym.exp(x)), lambda f: sym.exp(f["x"]))
    deep = a
    for _ in range(20):
        deep = sym.exp(deep)
    assert ops(deep.optimize([Rule])) == ["exp"]


def test_what_is_no_pattern():
    with pytest.raises(mx.MXNetError, match="begins with the call of an operator"):
        mx.graph.RewritePass().register_pattern(x, print)
    with pytest.raises(mx.MXNetError, match="group of 2"):
        mx.graph.RewritePass().register_pattern(sym.Group([sym.exp(x), sym.sin(x)]), print)
    with pytest.raises(mx.MXNetError, match="not a string"):
        mx.graph.label(3)
    with pytest.raises(mx.MXNetError, match="not callable"):
        mx.graph.skip(x, when=3)
    with pytest.raises(mx.MXNetError, match="pass 'one_rule' failed: KeyError"):
        sym.exp(a).optimize([rule(sym.exp(x), lambda f: f["q"])])


def test_patterns_run_in_executors():
    class Squares(mx.graph.RewritePass):
        def __init__(self):
            self.register_pattern(x * x, lambda node, f: self.replace(node, sym.square(f[x])))

    mx.graph.register_pass(Squares, before="fuse")
    try:
        value, grad = nd.array([3.0]), nd.zeros((1,))
        executor = (a * a).bind(mx.cpu(), [value], [grad])
        assert executor.forward(is_train=True)[0].asnumpy().tolist() == [9]
        executor.backward(nd.ones((1,)))
        assert grad.asnumpy().tolist() == [6]
    finally:
        mx.graph.unregister_pass("squares")
