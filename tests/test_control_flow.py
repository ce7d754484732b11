"""``foreach``, ``while_loop`` and ``cond``: against programs that are unrolled by hand, in nd and sym, to the third order."""

import json

import numpy as np
import pytest
from loop_programs import (
    ARGS,
    V,
    bound,
    close,
    each,
    linear,
    loss_of,
    powers,
    recorded,
    rnn,
    stacked,
    two_states,
    unrolled,
    values,
    with_loop,
)

import mxop as mx
from mxop import nd, sym
from mxop.graph.traits import bare


# ---- foreach -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("make", [rnn, two_states, linear])
def test_foreach_is_the_unrolled_program(make, order):
    shapes = ARGS if make is not two_states else {**ARGS, "x": (4, 2, 3)}
    arrays = values(shapes)
    wanted = recorded(with_loop(make, False), arrays, order)
    close(recorded(with_loop(make, True), arrays, order), wanted)
    close(bound(with_loop(make, True), arrays, order), wanted)


@pytest.mark.parametrize("flatten", [True, False])
def test_gradients_of_weights_are_products_of_all_steps(flatten):
    def loss(F, x, h, w, v):
        def body(x, states):
            hidden = F.FullyConnected(F.concat(x, states[0], dim=1), w, num_hidden=4, no_bias=True, flatten=flatten)
            return hidden, [F.tanh(F.dot(F.relu(hidden), v))]

        out, (last,) = F.contrib.foreach(body, x, [h])
        return F.sum(out * out) + F.sum(last)

    arrays = values({"x": (5, 2, 3), "h": (2, 6), "w": (4, 9), "v": (4, 6)})
    symbol = loss(sym, **{n: V(n) for n in arrays})
    mx.test_utils.check_numeric_gradient(symbol, arrays, numeric_eps=1e-5, rtol=1e-5, atol=1e-7, dtype=np.float64)
    executor = symbol.simple_bind(mx.cpu(), **{n: a.shape for n, a in arrays.items()})
    plan = [line for line in str(executor.explain()).splitlines() if " backward " in line]
    assert sum(" dot(" in line or " _dot_grad(" in line for line in plan) == 2  # none is left in the loop


def test_copies_are_seen_through_where_shapes_are_known():
    x, y = mx.graph.variable("x"), mx.graph.variable("y")
    op = mx.op.get("_unbroadcast")
    node = mx.graph.Node(op, op.parse({}), ((x, 0), (y, 0)), "a")
    assert bare((node, 0), lambda entry: ((2, 3), 0)) == (x, 0)
    assert bare((node, 0), lambda entry: ((2, 3) if entry[0] is x else (3,), 0)) == (node, 0)
    for unknown in (None, (None, 3)):
        assert bare((node, 0), lambda entry, unknown=unknown: (unknown, 0)) == (node, 0)
    assert bare((node, 0), None) == (node, 0)


def test_what_is_the_same_in_all_steps_is_not_stacked():
    symbol, _ = sym.contrib.foreach(lambda x, s: (sym.dot(V("a") * 2, V("w")) * x, s), V("x"), [V("h")])
    shapes = {"x": (5, 2, 4), "h": (1,), "a": (2, 3), "w": (3, 4)}
    executor = symbol.simple_bind(mx.cpu(), **shapes)
    assert not [line for line in str(executor.explain()).splitlines() if " dot(" in line or " _dot_grad(" in line]
    mx.test_utils.check_numeric_gradient(symbol, values(shapes), numeric_eps=1e-5, rtol=1e-5, atol=1e-7, dtype=np.float64)


@pytest.mark.parametrize("names", [("x",), ("h",), ("u",), ("w", "x")])
def test_foreach_with_some_gradients(names):
    arrays = values()
    for order in (1, 2):
        close(bound(with_loop(rnn, True), arrays, order, names), recorded(with_loop(rnn, False), arrays, order, names))


def test_foreach_adds_to_gradients():
    arrays, wanted = values(), recorded(with_loop(rnn, False), values(), 1)
    total = with_loop(rnn, True)(sym, **{n: V(n) for n in arrays})
    grads = {n: nd.ones(a.shape, dtype="float64") for n, a in arrays.items()}
    executor = total.bind(mx.cpu(), arrays, args_grad=grads, grad_req="add")
    for _ in range(2):
        executor.forward(is_train=True)
        executor.backward(nd.ones((1,), dtype="float64"))
    for n, g in grads.items():
        np.testing.assert_allclose(g.asnumpy(), 1 + 2 * wanted[1][n], rtol=1e-9)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float16", 2e-2)])
def test_foreach_in_other_types(dtype, tolerance):
    arrays = values(dtype=dtype)
    wanted = recorded(with_loop(rnn, False), {n: a.astype("float64") for n, a in arrays.items()}, 1)
    found = bound(with_loop(rnn, True), arrays, 1)
    assert found[0].dtype == dtype and found[1]["w"].dtype == dtype
    close(found, wanted, tolerance)


def test_foreach_one_step_and_strided_arguments():
    arrays = values({**ARGS, "x": (1, 2, 3)})
    program = with_loop(rnn, True)
    one = bound(program, arrays, 1)
    x = nd.array(np.concatenate([arrays["x"].asnumpy()] * 2, 2)[..., ::2], dtype="float64")
    strided = {**arrays, "x": nd.array(np.zeros((1, 2, 6)), dtype="float64")[:, :, ::2]}
    strided["x"][:] = x
    grads = {"x": nd.zeros((1, 6, 2), dtype="float64").transpose((0, 2, 1))[:, :, ::2]}
    total = program(sym, **{n: V(n) for n in arrays})
    executor = total.bind(mx.cpu(), strided, args_grad=grads)
    wanted = bound(program, {**arrays, "x": x}, 1)
    np.testing.assert_allclose(executor.forward(is_train=True)[0].asnumpy(), wanted[0])
    executor.backward(nd.ones((1,), dtype="float64"))
    np.testing.assert_allclose(grads["x"].asnumpy(), wanted[1]["x"])
    assert one[0].shape == (1,)


def test_steps_over_a_vector_have_one_element():
    def body(x, s):
        return x * s, s + x

    values = np.array([1, 2, 3], "float32")
    d, s = nd.array(values), nd.array([1])
    d.attach_grad()
    with mx.autograd.record():
        out, last = nd.contrib.foreach(body, d, s)
        loss = (out * out).sum() + last
    loss.backward()
    assert out.shape == (3, 1) and last.shape == (1,)
    made, state = sym.contrib.foreach(body, V("d"), V("s"))
    assert made.infer_shape(d=(3,), s=(1,)) == ([(3,), (1,)], [(3, 1)], [])
    ex = (sym.sum(made * made) + state).bind(mx.cpu(), {"d": nd.array(values), "s": s}, {"d": nd.zeros(3)})
    np.testing.assert_allclose(ex.forward(is_train=True)[0].asnumpy(), loss.asnumpy())
    ex.backward(nd.ones(1))
    np.testing.assert_allclose(ex.grad_dict["d"].asnumpy(), d.grad.asnumpy())
    with mx.np_shape():
        assert made.infer_shape(d=(3,), s=()) == ([(3,), ()], [(3,)], [])


def test_foreach_nested_lists():
    def body(F):
        return lambda x, s: ([x[0] + s[0], [x[1][0] * s[1][0]]], [s[0] + 1, [s[1][0] * x[0]]])

    a, b = nd.array([[1, 2], [3, 4]]), nd.array([[5, 6], [7, 8]])
    s, t = nd.ones(2), nd.ones(2) * 2
    (out, (deep,)), (s1, (t1,)) = nd.contrib.foreach(body(nd), [a, [b]], [s, [t]])
    names = [V(n) for n in "abst"]
    (o1, (o2,)), (o3, (o4,)) = sym.contrib.foreach(body(sym), [names[0], [names[1]]], [names[2], [names[3]]])
    found = sym.Group([o1, o2, o3, o4]).eval(a=a, b=b, s=s, t=t)
    for one, other in zip(found, (out, deep, s1, t1), strict=True):
        np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())
    assert deep.asnumpy().tolist() == [[10, 12], [14, 32]]


def test_foreach_shapes_are_inferred_both_ways():
    out, last = sym.contrib.foreach(lambda x, s: (x + s * V("w"), s), V("d"), V("s"))
    both = sym.Group([out, last])
    assert both.list_arguments() == ["d", "s", "w"]
    assert both.infer_shape(d=(5, 3)) == ([(5, 3), (3,), (3,)], [(5, 3), (3,)], [])
    assert both.infer_shape_partial(w=(3,)) == ([(0, 3), (3,), (3,)], [(0, 3), (3,)], [])
    assert (both[0] + V("y")).infer_shape(y=(4, 2))[0][:3] == [(4, 2), (2,), (2,)]
    assert both.infer_type(s="float64")[0] == [np.float64] * 3


def test_free_variables_are_arguments_in_mxnet_s_order():
    d, s, w, u = (V(n) for n in "dswu")
    outer = w + 1
    parts = sym.split(w, num_outputs=2, axis=0)

    def body(x, state):
        return sym.FullyConnected(u * state, num_hidden=3, name="fc") + x * outer * (parts[1] - 1), state + (w + 1)

    out, last = sym.contrib.foreach(body, d, s)
    both = sym.Group([out, last])
    assert both.list_arguments() == ["d", "s", "u", "fc_weight", "fc_bias", "w"]
    names = [n["name"] for n in json.loads(both.tojson())["nodes"] if n["op"] != "null"]
    assert [n.rstrip("0123456789") for n in names] == ["_plusscalar", "split", "_foreach"]  # made once, outside


def test_what_lies_outside_is_computed_once():
    calls = []

    @registered_custom("flow_counted")
    def run(x):
        calls.append(1)
        return x

    outside = sym.Custom(V("w"), op_type="flow_counted")
    out, _ = sym.contrib.foreach(lambda x, s: (x * outside, s + x), V("d"), V("s"))
    out.eval(d=nd.ones((3, 2)), s=nd.ones(2), w=nd.ones(2))
    assert len(calls) == 1
    out, _ = sym.contrib.foreach(lambda x, s: (sym.Custom(x * V("w"), op_type="flow_counted"), s + x), V("d"), V("s"))
    found = out.eval(d=nd.ones((3, 2)), s=nd.ones(2), w=nd.ones(2) * 5)[0]
    assert len(calls) == 4 and found.asnumpy().tolist() == [[5, 5]] * 3


def registered_custom(name):
    def register(run):
        class Op(mx.operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                self.assign(out_data[0], req[0], run(in_data[0]))

            def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
                self.assign(in_grad[0], req[0], out_grad[0] * in_data[0])

        @mx.operator.register(name)
        class Prop(mx.operator.CustomOpProp):
            def create_operator(self, ctx, shapes, dtypes):
                return Op()

        return run

    return register


def test_an_operator_from_outside_in_a_body_has_its_own_gradient():
    registered_custom("flow_outside")(lambda x: x * 2)
    out, _ = sym.contrib.foreach(lambda x, s: (sym.Custom(x * V("w"), op_type="flow_outside"), s + x), V("d"), V("s"))
    d = nd.array([[1, 2], [3, 4], [5, 6]])
    executor = out.bind(mx.cpu(), {"d": d, "s": nd.zeros(2), "w": nd.ones(2) * 3}, args_grad={"w": nd.zeros(2)})
    assert executor.forward(is_train=True)[0].asnumpy().tolist() == (d * 6).asnumpy().tolist()
    executor.backward(nd.ones((3, 2)))
    assert executor.grad_dict["w"].asnumpy().tolist() == (d * d * 3).sum(axis=0).asnumpy().tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("rows, depth, columns", [(2, 3, 2), (3, 5, 17), (13, 40, 100), (30, 900, 33)])
@pytest.mark.parametrize("turned, bias", [(False, False), (True, False), (True, True)])
def test_what_a_product_packs_for_all_steps(level, rows, depth, columns, turned, bias, dtype):
    """The same bits as products one by one, with the weights of each run."""
    rng = np.random.default_rng(0)
    x = nd.array(rng.normal(size=(3, rows, depth)), dtype=dtype)
    weights = [nd.array(rng.normal(size=(columns, depth) if turned else (depth, columns)), dtype=dtype) for _ in range(2)]
    b = nd.array(rng.normal(size=columns), dtype=dtype)

    def product(F, x, w, b):
        return F.FullyConnected(x, w, b, num_hidden=columns) if bias else F.dot(x, w, transpose_b=turned)

    loop = sym.contrib.foreach(lambda x, states: (product(sym, x, V("w"), V("b")), states), V("x"), [])[0]
    executor = loop.bind(mx.cpu(), {"x": x, "w": weights[0].copy()} | ({"b": b} if bias else {}))
    for w in weights:
        executor.arg_dict["w"][:] = w
        wanted = np.stack([product(nd, x[t], w, b).asnumpy() for t in range(3)])
        np.testing.assert_array_equal(executor.forward()[0].asnumpy(), wanted)


# ---- while_loop ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("most, limit, steps", [(6, 3, 3), (4, 9, 4), (1, 1, 1)])
def test_while_loop_is_the_unrolled_program(most, limit, steps, order):
    arrays = values({"s": (1,), "w": (1,)})
    wanted = recorded(unrolled(steps), arrays, order)
    close(recorded(powers(most, limit), arrays, order), wanted)
    close(bound(powers(most, limit), arrays, order), wanted)


def test_while_loop_fills_up_with_zeros():
    out, (i, s) = sym.contrib.while_loop(lambda i, s: i < V("n"), lambda i, s: (s, [i + 1, s * 2]), [V("i"), V("s")], 4)
    group = sym.Group([out, i, s])
    assert group.list_arguments() == ["i", "n", "s"]  # as MXNet's, in the order in which cond, then func read them
    assert group.infer_shape(i=(1,), s=(2, 3), n=(1,)) == ([(1,), (1,), (2, 3)], [(4, 2, 3), (1,), (2, 3)], [])
    executor = group.bind(mx.cpu(), {"i": nd.zeros(1), "s": nd.ones((1,)), "n": nd.zeros(1)})
    for n, column in ((4, [1, 2, 4, 8]), (2, [1, 2, 0, 0]), (0, [0, 0, 0, 0]), (9, [1, 2, 4, 8])):
        found = executor.forward(n=nd.array([n]))
        assert found[0].asnumpy().ravel().tolist() == column and found[1].item() == min(n, 4)
        steps = nd.contrib.while_loop(lambda i, s, n=n: i < n, lambda i, s: (s, [i + 1, s * 2]), [nd.zeros(1), nd.ones(1)], 4)
        if n:
            assert steps[0].asnumpy().ravel().tolist() == column
        else:
            assert steps[0] == []
        assert steps[1][0].item() == min(n, 4)


def test_what_a_loop_begins_with_may_be_read_as_it_was():
    i, x = V("i"), V("x")
    _, (_, power) = sym.contrib.while_loop(lambda i, p: i < x, lambda i, p: (None, [i + 1, p * x]), [i, x], 10)
    assert power.list_arguments() == ["i", "x"]
    assert power.eval(i=nd.zeros(1), x=nd.array([3]))[0].item() == 81
    out, _ = sym.contrib.foreach(lambda d, s: (s * x, s * x + d * 0), x, x)
    assert out.list_arguments() == ["x"] and sym.load_json(out.tojson()).list_arguments() == ["x"]


def test_while_loop_forms():
    for F, one in ((nd, nd.array([0])), (sym, V("i"))):
        out, last = F.contrib.while_loop(lambda i: i < 3, lambda i: (i, i + 1), one, 5)
        assert not isinstance(out, list) and not isinstance(last, list)
        out, last = F.contrib.while_loop(lambda i: i < 3, lambda i: (None, [i + 1]), [one], 5)
        assert out == [] and len(last) == 1
        out, last = F.contrib.while_loop(lambda i: i < 3, lambda i: ([i, [i]], [i + 1]), [one], 5.9)
        assert isinstance(out[1], list)
        evaluated = out[1][0] if F is nd else out[1][0].eval(i=nd.array([0]))[0]
        assert evaluated.asnumpy().ravel().tolist() == [0, 1, 2, 0, 0]


# ---- cond ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("sign", [1, -1])
def test_cond_is_the_branch_that_it_takes(sign, order):
    arrays = values({"a": (2, 2), "b": (2, 2)})
    arrays["a"] = abs(arrays["a"]) * sign

    def branches(F, a, b):
        return (lambda: F.dot(F.sin(a), b)), (lambda: F.exp(a * 0.1) * a)

    def chosen(F, a, b):
        return F.sum(branches(F, a, b)[0 if sign > 0 else 1]() ** 2)

    def program(F, a, b):
        return F.sum(F.contrib.cond(F.sum(a) > 0, *branches(F, a, b)) ** 2)

    wanted = recorded(chosen, arrays, order)
    close(recorded(program, arrays, order), wanted)
    close(bound(program, arrays, order), wanted)


def test_variables_of_one_name_are_one_argument():
    """Programs make them anew in each function."""
    var = sym.Variable
    chosen = sym.contrib.cond(var("c") > 1, lambda: var("x") * 2, lambda: var("x") - 1)
    assert chosen.list_arguments() == ["c", "x"]  # as MXNet's
    for c, expected in ((2, 10), (0, 4)):
        executor = chosen.bind(mx.cpu(), {"c": nd.array([c]), "x": nd.array([5])})
        assert executor.forward()[0].item() == expected
    out, state = sym.contrib.while_loop(lambda i: i < var("n"), lambda i: ([i * var("n")], [i + 1]), [var("i")], 5)
    loop = sym.Group([*out, *state])
    executor = loop.simple_bind(mx.cpu(), i=(1,), n=(1,))
    executor.arg_dict["n"][:] = 3
    assert executor.forward()[0].asnumpy().ravel().tolist() == [0, 3, 6, 0, 0]


def test_states_that_begin_with_one_array_are_several():
    def step(i, a, b):
        chosen = sym.contrib.cond(V("c") > 0, lambda: a - b, lambda: b - a)  # both are called after z
        return [], [i + 1, chosen, b * 2]

    _, (_, a, b) = sym.contrib.while_loop(lambda i, a, b: i < 2, step, [V("i"), V("z"), V("z")], 3)
    arrays = {"c": nd.array([1]), "i": nd.zeros(1), "z": nd.array([1, 2])}
    assert [x.asnumpy().tolist() for x in sym.Group([a, b]).eval(**arrays)] == [[-2, -4], [4, 8]]


def test_cond_forms_and_conditions():
    a, b = nd.array([1]), nd.array([2])
    assert nd.contrib.cond(a < b, lambda: [a, [b]], lambda: b)[1][0] is b
    assert nd.contrib.cond(True, lambda: a, lambda: b) is a and nd.contrib.cond(lambda: a > b, lambda: a, lambda: b) is b
    x, y = V("x"), V("y")
    first, (second,) = sym.contrib.cond(lambda: x < y, lambda: [x, [y + 1]], lambda: [y, [x * 2]])
    group = sym.Group([first, second])
    assert group.list_arguments() == ["x", "y"]
    assert [o.item() for o in group.eval(x=a, y=b)] == [1, 3] and [o.item() for o in group.eval(x=b, y=a)] == [1, 4]


# ---- one in the other ----------------------------------------------------------------------------------------------------
def nested(loop):
    def program(F, x, h, w, u):
        def inner(ys, states):
            new = F.tanh(F.dot(ys[0], w) + F.dot(states[0], u) * h_now[0])
            return [new], [new]

        def outer(xs, states):
            h_now[0] = states[0]
            out, last = each(F, loop, inner, xs if loop else [(xs[0], 2)], states)
            return [F.sum(out[0], axis=0)], last

        h_now = [None]
        return loss_of(F, *each(F, loop, outer, [x] if loop else [(x, 3)], [h]))

    return program


@pytest.mark.parametrize("order", [1, 2, 3])
def test_foreach_in_foreach(order):
    arrays = values({**ARGS, "x": (3, 2, 2, 3)})
    wanted = recorded(nested(False), arrays, order)
    close(recorded(nested(True), arrays, order), wanted)
    close(bound(nested(True), arrays, order), wanted)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_cond_in_while_loop(order):
    def program(F, s, w):
        def func(i, s):
            new = F.contrib.cond(i < 2, lambda: F.sin(s * w), lambda: s * s + w)
            return new, [i + 1, new]

        i = nd.zeros((1,), dtype="float64") if F is nd else sym.zeros((1,), dtype="float64")
        out, states = F.contrib.while_loop(lambda i, s: i < 4, func, [i, s], 6)
        return loss_of(F, [out], states[1:])

    def plain(F, s, w):
        outs = []
        for i in range(4):
            s = F.sin(s * w) if i < 2 else s * s + w
            outs.append(s)
        return loss_of(F, [stacked(F, outs)], [s])

    arrays = values({"s": (1,), "w": (1,)})
    wanted = recorded(plain, arrays, order)
    close(recorded(program, arrays, order), wanted)
    close(bound(program, arrays, order), wanted)


@pytest.mark.parametrize("order", [1, 2])
def test_while_loop_in_foreach_in_cond(order):
    def program(F, s, w):
        def body(x, state):
            i = F.zeros_like(x)
            return F.contrib.while_loop(lambda i, v: i < 2, lambda i, v: (v, [i + 1, F.sin(v * x)]), [i, state], 3)[
                0
            ], state * x

        def yes():
            out, last = F.contrib.foreach(body, s, w)
            return F.sum(out * out) + F.sum(last)

        return F.contrib.cond(F.sum(w) < 1000, yes, lambda: F.sum(s * 3))

    def plain(F, s, w):
        total, state = None, w
        for k in range(3):
            x = F.slice_axis(s, axis=0, begin=k, end=k + 1).reshape((1,))
            v = state
            for _ in range(2):
                total = F.sum(v * v) if total is None else total + F.sum(v * v)
                v = F.sin(v * x)
            state = state * x
        return total + F.sum(state)

    arrays = values({"s": (3, 1), "w": (1,)})
    wanted = recorded(plain, arrays, order)
    close(recorded(program, arrays, order), wanted)
    close(bound(program, arrays, order), wanted)
