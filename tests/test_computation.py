"""Computations, derivatives of symbols, assignment, and the order between nodes."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxop as mx
from mxop.errors import OpTypeError, OpValueError

x, y, v, w = (mx.sym.Variable(n) for n in "xyvw")


def close(found, expected):
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-5, atol=1e-6)


# ---- computations ---------------------------------------------------------------------------------------------------
def test_values_come_in_the_order_of_the_placeholders():
    f = mx.graph.computation(x - y, x, y)
    g = mx.graph.computation(x - y, y, x)
    assert f([5, 6], [1, 2]).asnumpy().tolist() == [4, 4]
    assert g([5, 6], [1, 2]).asnumpy().tolist() == [-4, -4]


def test_one_symbol_gives_an_array_and_a_list_gives_a_list():
    assert isinstance(mx.graph.computation(x * 2, x)([1]), mx.nd.NDArray)
    found = mx.graph.computation([x * 2, x + 1], x)([1])
    assert [a.asscalar() for a in found] == [2, 2]
    assert len(mx.graph.computation([x * 2], x)([1])) == 1


def test_results_are_new_arrays():
    f = mx.graph.computation(x * 2, x)
    first, second = f([1]), f([5])
    assert (first.asscalar(), second.asscalar()) == (2, 10)


def test_an_output_may_be_a_placeholder_and_a_placeholder_may_be_unused():
    f = mx.graph.computation([x, x * 1], x, y)
    assert [a.asscalar() for a in f([3], [[1, 2]])] == [3, 3]


def test_it_is_compiled_once_for_each_shape_and_type():
    f = mx.graph.computation(x * 2, x)
    for shape in ((2,), (3,), (2,), (3,)):
        assert f(np.ones(shape)).shape == shape
    assert len(f._bound) == 2
    assert f(mx.nd.array([1, 2], dtype="float64")).dtype == np.float64
    assert len(f._bound) == 3
    for n in range(1, 40):
        f(np.ones(n))
    assert len(f._bound) <= mx.graph.functions.MOST


def test_declared_types_are_kept():
    z = mx.sym.Variable("z", dtype="float64")
    assert mx.graph.computation(z * 2, z)([1.0]).dtype == np.float64


def test_the_callers_arrays_stay():
    value = mx.nd.array([1, 2])
    f = mx.graph.computation(x * 2, x)
    f(value), f([7, 8])
    assert value.asnumpy().tolist() == [1, 2]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: mx.graph.computation(x * y, x), OpValueError, "depend on 'y'"),
        (lambda: mx.graph.computation(x * y, x, x, y), OpValueError, "'x' is given twice"),
        (lambda: mx.graph.computation(x, x, state={"x": [1]}), OpValueError, "'x' is given twice"),
        (lambda: mx.graph.computation(x * 2, x * 2), OpTypeError, "placeholder 0 is node"),
        (lambda: mx.graph.computation(x * 2, 3), OpTypeError, "expected a Symbol"),
        (lambda: mx.graph.computation([], x), OpTypeError, "expected a Symbol or a list"),
        (lambda: mx.graph.computation(x * 2, x, state={"q": [1]}), OpValueError, "no output depends on"),
        (lambda: mx.graph.computation(x * 2, x, state=3), OpTypeError, "expected a dict"),
        (lambda: mx.graph.computation(x * 2, mx.sym.Variable("x")), OpValueError, "not the variable of that name"),
        (lambda: mx.graph.computation(x + mx.sym.Variable("x"), x), OpValueError, "two variables are named 'x'"),
        (lambda: mx.graph.computation(mx.graph.assign(x, x + 1), x), OpValueError, "belongs in state="),
        (lambda: mx.graph.computation(x * 2, x)(1, 2), OpTypeError, "takes 1 values"),
        (lambda: mx.graph.computation(x * 2, x)("text"), OpTypeError, "is not an array of numbers"),
        (lambda: mx.graph.computation(x * y, x, y)([1, 2], [1, 2, 3]), mx.MXNetError, "x"),
    ],
)
def test_what_is_wrong_is_said(make, error, text):
    with pytest.raises(error, match=text):
        make()


# ---- derivatives ----------------------------------------------------------------------------------------------------
def test_derivatives_of_any_order():
    found = mx.sym.sin(x)
    for _ in range(5):
        found = mx.graph.deriv(found, x)
    values = np.linspace(-1, 1, 7)
    close(mx.graph.computation(found, x)(values).asnumpy(), np.cos(values))


def test_derivative_with_respect_to_what_was_computed():
    inner = mx.sym.square(x, name="inner")
    outer = mx.sym.exp(inner)
    close(mx.graph.computation(mx.graph.deriv(outer, inner), x)([0.5]).asnumpy(), np.exp(0.25))


def test_several_at_once_weights_and_zeros():
    found = mx.graph.deriv(x * y, [x, y, v], error=w)
    assert isinstance(found, list)
    values = mx.graph.computation(found, x, y, v, w)([2, 3], [4, 5], [1, 1, 1], [10, 100])
    assert [a.asnumpy().tolist() for a in values] == [[40, 500], [20, 300], [0, 0, 0]]


def test_derivatives_of_composites_and_reductions():
    z = mx.sym.sum(mx.sym.log_softmax(x, axis=1) * y)
    values, weights = np.random.default_rng(0).normal(size=(2, 3, 4))
    array = mx.nd.array(values)
    array.attach_grad()
    with mx.autograd.record():
        loss = mx.nd.sum(mx.nd.log_softmax(array, axis=1) * mx.nd.array(weights))
    loss.backward()
    close(mx.graph.computation(mx.graph.deriv(z, x), x, y)(values, weights).asnumpy(), array.grad.asnumpy())


def test_wrong_derivatives():
    with pytest.raises(OpValueError, match="not the given"):
        mx.graph.deriv(x * 2, mx.sym.Variable("x"))
    with pytest.raises(OpTypeError, match="expected one"):
        mx.graph.deriv(x * 2, mx.sym.Group([x, y]))
    with pytest.raises(mx.MXNetError, match="equal shapes"):
        mx.graph.computation(mx.graph.deriv(x * 2, x, error=y), x, y)([1, 2], [1, 2, 3])


# ---- assignment -----------------------------------------------------------------------------------------------------
def test_a_step_of_gradient_descent():
    data, label = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20.0)
    loss = mx.sym.mean(mx.sym.square(mx.sym.dot(x, w) - y))
    step = mx.graph.computation([loss, mx.graph.assign(w, w - 0.1 * mx.graph.deriv(loss, w))], x, y, state={"w": np.zeros(3)})
    weight = np.zeros(3)
    for _ in range(5):
        error = data @ weight - label
        loss_now, new = step(data, label)
        close(loss_now.asscalar(), np.mean(error**2))
        weight = weight - 0.1 * 2 * data.T @ error / 20
        close(new.asnumpy(), weight)
        close(step.state["w"].asnumpy(), weight)


def test_computations_share_the_arrays_that_they_are_given():
    held = mx.nd.array([1.0])
    count = mx.graph.computation(mx.graph.assign(w, w + 1), state={"w": held})
    look = mx.graph.computation(w * 10, state={"w": held})
    count(), count()
    assert look().asscalar() == 30
    assert held.asscalar() == 3


def test_readers_see_the_value_from_before():
    f = mx.graph.computation([w * 1, mx.graph.assign(w, w + 1), w * 2, w], state={"w": [1.0]})
    assert [a.asscalar() for a in f()] == [1, 2, 2, 1]
    assert [a.asscalar() for a in f()] == [2, 3, 4, 2]


def test_readers_that_need_the_result_still_see_the_value_from_before():
    new = mx.graph.assign(w, w * 10)
    f = mx.graph.computation(new - w, state={"w": [2.0]})
    assert f().asscalar() == 18


def test_numbers_are_assigned_everywhere():
    f = mx.graph.computation(mx.graph.assign(w, 7), state={"w": np.zeros((2, 2))})
    assert f().asnumpy().tolist() == [[7, 7], [7, 7]]


def test_assigned_variables_are_auxiliary_states():
    step = mx.graph.assign(w, w + x)
    assert (step.list_arguments(), step.list_auxiliary_states()) == (["x"], ["w"])
    executor = step.simple_bind(mx.cpu(), x=(2,))
    executor.arg_dict["x"][:] = 1
    executor.forward(), executor.forward()
    assert executor.aux_dict["w"].asnumpy().tolist() == [2, 2]


def test_backward_reads_what_forward_read():
    other = mx.sym.Variable("other")
    loss = mx.sym.Group([x * w * w, mx.graph.assign(w, w * 0 + other)])
    executor = loss.simple_bind(mx.cpu(), {"x": "write", "other": "null"}, x=(1,), w=(1,), other=(1,))
    executor.arg_dict["x"][:], executor.arg_dict["other"][:], executor.aux_dict["w"][:] = 2, 100, 3
    executor.forward(is_train=True)
    executor.backward([mx.nd.ones((1,)), mx.nd.zeros((1,))])
    assert executor.grad_dict["x"].asscalar() == 9
    assert executor.aux_dict["w"].asscalar() == 100


@pytest.mark.parametrize("monitored", [False, True])
def test_monitored_runs_keep_the_order(monitored):
    program = mx.sym.Group([mx.graph.sequential([mx.graph.assign(w, w * 2), w + 1]), w * 10])
    executor = program.simple_bind(mx.cpu(), "null", w=(1,))
    executor.aux_dict["w"][:] = 3
    if monitored:
        executor.set_monitor_callback(lambda name, array: None)
    assert [a.asscalar() for a in executor.forward()] == [7, 30]


def test_files_keep_assignment_and_order():
    program = mx.graph.sequential([mx.graph.assign(w, w + 1), w * 10])
    again = mx.sym.load_json(program.tojson())
    executor = again.simple_bind(mx.cpu(), "null", w=(1,))
    assert executor.forward()[0].asscalar() == 10


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: mx.graph.assign(w * 2, w), OpTypeError, "is not a variable"),
        (lambda: mx.graph.assign(w, "text"), OpTypeError, "expected a Symbol or a number"),
        (lambda: mx.graph.computation(mx.graph.assign(w, x), x, state={"w": [1]})([1, 2]), mx.MXNetError, r"\(1,\)"),
        (
            lambda: mx.graph.computation([mx.graph.assign(w, w + 1), mx.graph.assign(w, w + 2)], state={"w": [1]})(),
            OpValueError,
            "without an order",
        ),
        (lambda: mx.graph.sequential([]), OpTypeError, "at least one"),
        (lambda: mx.graph.after(w, 3), OpTypeError, "after: expected a Symbol"),
        (lambda: mx.graph.control_dependencies(3).__enter__(), OpTypeError, "control_dependencies: expected"),
    ],
)
def test_what_is_wrong_with_an_assignment_is_said(make, error, text):
    with pytest.raises(error, match=text):
        make()


# ---- order ----------------------------------------------------------------------------------------------------------
class Recorder(mx.operator.CustomOp):
    """Notes when it runs."""

    def __init__(self, name):
        self.name = name

    def forward(self, is_train, req, in_data, out_data, aux):
        ran.append(self.name)
        self.assign(out_data[0], req[0], in_data[0])


@mx.operator.register("computation_recorder")
class RecorderProp(mx.operator.CustomOpProp):
    def __init__(self, tag):
        super().__init__(need_top_grad=True)
        self.tag = tag

    def create_operator(self, ctx, shapes, dtypes):
        return Recorder(self.tag)


ran = []


def recorder(tag, data=x):
    return mx.sym.Custom(data, op_type="computation_recorder", tag=tag)


def run(program):
    ran.clear()
    mx.graph.computation(program, x)([1.0])
    return ran


def test_after():
    a, b = recorder("a"), recorder("b")
    assert run([a, mx.graph.after(b, a)]) == ["a", "b"]
    assert run([a.after(b), b]) == ["b", "a"]


def test_scopes_add_up_and_end():
    with mx.graph.control_dependencies([recorder("a")]):
        with mx.graph.control_dependencies(recorder("b")):
            last = recorder("c")
        free = recorder("d")
    assert run([last, free]) in (["a", "b", "c", "d"], ["a", "b", "d", "c"])
    outside = recorder("e")
    assert outside._entries[0][0].control == ()


def test_scopes_belong_to_their_thread():
    found = []
    with mx.graph.control_dependencies([recorder("a")]):
        thread = threading.Thread(target=lambda: found.append(x * 2))
        thread.start()
        thread.join()
    assert found[0]._entries[0][0].control == ()


def test_order_survives_composites_and_gradients():
    with mx.graph.control_dependencies([mx.graph.assign(w, w + 1)]):
        z = mx.sym.log_softmax(mx.sym.elemwise_mul(w, w))
    close(mx.graph.computation(z, state={"w": [0.0, 1.0]})().asnumpy(), [1 - np.logaddexp(1, 4), 4 - np.logaddexp(1, 4)])
    with mx.graph.control_dependencies([mx.graph.assign(w, w + 1)]):
        z = mx.sym.elemwise_mul(w, x) * w
    assert mx.graph.computation(mx.graph.deriv(z, x), x, state={"w": [2.0]})([1.0]).asscalar() == 9


def test_composition_keeps_the_order():
    program = mx.graph.after(x * 1, mx.graph.assign(w, w + 1))
    z = program(x=mx.sym.Variable("z") * 2)
    executor = z.simple_bind(mx.cpu(), "null", z=(1,), w=(1,))
    executor.forward()
    assert executor.aux_dict["w"].asscalar() == 1


def test_shared_parts_of_a_sequence_are_computed_once():
    a = recorder("a")
    assert run(mx.graph.sequential([a * 2, recorder("b"), a + 1])) == ["a", "b"]


def test_do_all():
    assert sorted(run(mx.graph.do_all([recorder("a"), recorder("b")]))) == ["a", "b"]
    assert mx.graph.computation(mx.graph.do_all([recorder("a")], x * 3), x)([2.0]).asscalar() == 6


# ---- programs -------------------------------------------------------------------------------------------------------
NAMES = ("p", "q", "r")
EXPRESSIONS = st.recursive(
    st.sampled_from([*NAMES, "x"]),
    lambda inner: st.one_of(st.tuples(st.sampled_from(["add", "sub", "max"]), inner, inner), st.tuples(st.just("half"), inner)),
    max_leaves=5,
)
SYMBOLS = {
    "add": mx.sym.elemwise_add, "sub": mx.sym.elemwise_sub, "max": lambda a, b: mx.sym.maximum(a, b),
    "half": lambda a: a * 0.5,
}  # fmt: skip
VALUES = {"add": np.add, "sub": np.subtract, "max": np.maximum, "half": lambda a: a * 0.5}


def built(expression, leaves, functions):
    if isinstance(expression, str):
        return leaves[expression]
    return functions[expression[0]](*(built(e, leaves, functions) for e in expression[1:]))


STATEMENTS = st.lists(st.tuples(st.sampled_from([*NAMES, None]), EXPRESSIONS), min_size=1, max_size=8)


@given(STATEMENTS, st.booleans())
@settings(max_examples=150, deadline=None)
def test_sequences_do_what_the_same_program_does_in_numpy(statements, twice):
    variables = {n: mx.sym.Variable(n) for n in (*NAMES, "x")}
    values = {n: np.array([i + 1.0, -i], np.float32) for i, n in enumerate((*NAMES, "x"))}
    items = [sum(variables.values(), start=variables["x"])]  # so that all are used
    for name, expression in statements:
        value = built(expression, variables, SYMBOLS)
        items.append(value if name is None else mx.graph.assign(variables[name], value))
    program = mx.graph.computation(mx.graph.sequential(items), variables["x"], state={n: values[n].copy() for n in NAMES})
    for _ in range(1 + twice):
        found = program(values["x"])
        for name, expression in statements:
            last = built(expression, values, VALUES)
            if name is not None:
                values[name] = last
        close(found.asnumpy(), last)
        for n in NAMES:
            close(program.state[n].asnumpy(), values[n])


@given(st.dictionaries(st.sampled_from(NAMES), EXPRESSIONS, min_size=1), EXPRESSIONS)
@settings(max_examples=150, deadline=None)
def test_assignments_without_order_happen_at_once(assigned, read):
    variables = {n: mx.sym.Variable(n) for n in (*NAMES, "x")}
    values = {n: np.array([i + 1.0, -i], np.float32) for i, n in enumerate((*NAMES, "x"))}
    updates = [mx.graph.assign(variables[n], built(e, variables, SYMBOLS)) for n, e in assigned.items()]
    outputs = [built(read, variables, SYMBOLS) + sum(variables.values(), start=variables["x"]) * 0, *updates]
    program = mx.graph.computation(outputs, variables["x"], state={n: values[n].copy() for n in NAMES})
    found = program(values["x"])
    close(found[0].asnumpy(), built(read, values, VALUES))
    new = {n: built(e, values, VALUES) for n, e in assigned.items()}
    for n in NAMES:
        close(program.state[n].asnumpy(), new.get(n, values[n]))


def test_many_assignments_take_no_long():
    variables = [mx.sym.Variable(f"w{i}") for i in range(300)]
    total = sum(variables[1:], start=variables[0])
    updates = [mx.graph.assign(s, s - total * 0.1) for s in variables]
    f = mx.graph.computation(updates, state={s.name: [1.0] for s in variables})
    assert f()[299].asscalar() == pytest.approx(1 - 30)


# ---- what only a run knows --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [
    lambda x: mx.sym.Dropout(x, p=0.5), lambda x: mx.sym.BatchNorm(x, name="n"),
    lambda x: mx.sym.random.uniform(shape=(2,)) * x, lambda x: mx.sym.LeakyReLU(x, act_type="rrelu"),
    lambda x: mx.sym.contrib.foreach(lambda d, s: (mx.sym.Dropout(d) + s, s), x, mx.sym.Variable("s"))[0],
    lambda x: mx.sym.contrib.foreach(lambda d, s: (mx.sym.BatchNorm(d, name="n") + s, s), x, mx.sym.Variable("s"))[0],
])  # fmt: skip
def test_a_gradient_that_only_a_run_knows_is_refused(make):
    x = mx.sym.Variable("x")
    for take in (lambda y: y.gradient(["x"]), lambda y: mx.graph.deriv(y, x)):
        with pytest.raises(mx.errors.OpValueError, match="depends on the mode of a run, or draws numbers"):
            take(make(x))


@pytest.mark.parametrize("make", [
    lambda x: mx.sym.Dropout(x, p=0), lambda x: mx.sym.BatchNorm(x, use_global_stats=True, name="n"), mx.sym.LeakyReLU,
])  # fmt: skip
def test_a_mode_that_makes_no_difference(make):
    assert make(mx.sym.Variable("x")).gradient(["x"]).list_outputs()
