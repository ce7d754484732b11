"""Wrong operators that ``check_op`` must refuse, each with the reason in the message, and right ones of every kind."""

import ctypes
import math
import re

import numpy as np
import pytest
from scipy import special, stats

import mxop as mx
from mxop import autograd, records
from mxop.check import cases, check_op, find_record
from mxop.dtypes import INT32
from mxop.errors import OpValueError
from mxop.op import Elementwise, F, composite, elementwise, kernel
from mxop.records import Refusal, record


def equal(ins, outs):
    """Infer one shape for all inputs and outputs."""
    known = [shape for shape in (*ins, *outs) if shape is not None]
    sizes = [{n for n in axis if n is not None} for axis in zip(*known, strict=True)]
    if any(len(several) > 1 for several in sizes):
        raise OpValueError(f"test_check: expected equal shapes, not {known}")
    shape = tuple(min(one, default=None) for one in sizes) if known else None
    return [shape] * len(ins), [shape] * len(outs)


def of_numpy(run):
    """Make a CPU function of one that takes NumPy arrays and whose result does not count."""

    def run_cpu(inputs, outputs):
        run([np.asarray(a) for a in inputs], [np.asarray(a) for a in outputs])

    return run_cpu


def square_kernel(run, two_ways=True, **options):
    """Make a kernel ``square(data)`` with a right gradient rule and this CPU function of NumPy arrays."""

    @kernel(name="test_check_square", **options)
    def square(data):
        """Square."""

    if two_ways:
        square.infer(equal)
    else:
        square.shape(lambda data: (*data,))
    square.gradient(lambda F, heads, inputs, outputs: [2.0 * F.elemwise_mul(heads[0], inputs[0])])
    square.cpu(of_numpy(run))
    return square


def accumulator(run, **options):
    """Make a kernel ``(data, total)`` whose second input is a state, with this CPU function of NumPy arrays."""

    @kernel(name="test_check_total", aux=("total",), **options)
    def total(data, total):
        """Add the data to the total and return it."""

    total.infer(equal)
    total.gradient(lambda F, heads, inputs, outputs: [heads[0], None])
    total.cpu(of_numpy(run))
    return total


def adds_up(inputs, outputs):
    inputs[1][...] += inputs[0]
    outputs[0][...] = inputs[1]


def refused(name, match):
    with pytest.raises(AssertionError, match=match) as caught:
        check_op(name)
    assert name in str(caught.value)


# ---- results --------------------------------------------------------------------------------------------------------
def test_wrong_type_of_results(own):
    @elementwise(name="test_check_whole", out_dtype=lambda data: INT32)
    def whole(data):
        """Return int32 for every type."""
        return data * data

    own(whole, np.square)
    refused("test_check_whole", r"values: float64: output 0 is int32, the record says float64 \(returns=\)")


def test_the_type_of_results_may_be_another(own):
    @elementwise(name="test_check_whole", out_dtype=lambda data: INT32)
    def whole(data):
        """Return int32 for every type."""
        return data * data

    whole.gradient(lambda F, heads, inputs, outputs: [None])
    own(whole, np.square, returns=lambda given: "int32", order=0, grad_inputs=())
    assert check_op("test_check_whole")["unchecked"]["gradient"] == "no result is a float"


def test_dropped_nan(own):
    own(square_kernel(lambda i, o: np.square(np.nan_to_num(i[0]), out=o[0])), np.square, dtypes="f")
    refused("test_check_square", "special: float64, nan in input 0: output 0")


def test_undeclared_write(own):
    def run(inputs, outputs):
        np.square(inputs[0], out=outputs[0])
        inputs[0][...] = 0

    own(square_kernel(run), np.square, dtypes="f")
    refused("test_check_square", "values: .*its CPU function raised ValueError: .*read-only")


def test_gradient_that_writes_its_head(own):
    @kernel(name="_test_check_backward")
    def backward(head, data):
        """The gradient of the square."""

    def run(inputs, outputs):
        outputs[0][...] = 2 * inputs[0] * inputs[1]
        inputs[0][...] = 0

    backward.infer(equal)
    backward.cpu(of_numpy(run))
    backward.gradient(lambda F, heads, inputs, outputs: [heads[0] * 2.0 * inputs[1], heads[0] * 2.0 * inputs[0]])
    square = square_kernel(lambda i, o: np.square(i[0], out=o[0]))
    square.gradient(lambda F, heads, inputs, outputs: [F._test_check_backward(heads[0], inputs[0])])
    own(backward)
    own(square, np.square, dtypes="f", order=0)
    refused("test_check_square", "gradient: .*_test_check_backward: its CPU function raised .*read-only")


def test_results_that_change_with_alignment(own):
    def run(inputs, outputs):
        np.square(inputs[0], out=outputs[0])
        if inputs[0].ctypes.data % 16:
            outputs[0][...] *= 1 + np.finfo(outputs[0].dtype).eps  # one unit: what vector loops in another order do

    own(square_kernel(run), np.square, dtypes="f")
    refused("test_check_square", "alignment: float32, data that begins 1 elements later: output 0: not the same bits")


def test_wrong_for_small_shapes(own):
    def run(inputs, outputs):
        np.square(inputs[0], out=outputs[0])
        if inputs[0].shape[-1:] == (1,):
            outputs[0][...] = 0

    own(square_kernel(run), np.square, dtypes="f")
    refused("test_check_square", r"small shapes: float32, shapes \(\(2, 1\),\): output 0: 2 of 2 elements differ")


def wrong_where(condition):
    """Return a CPU function that squares, but for inputs of which the condition holds."""

    def run(inputs, outputs):
        outputs[0][...] = np.square(inputs[0]) + condition(inputs[0])

    return run


@pytest.mark.parametrize("condition, says", [
    (lambda x: x.ndim == 0, r"small shapes: .*shapes \(\(\),\)"),
    (lambda x: x.ndim == 3, "small shapes: .*3, 1, 4"),
    (lambda x: x.size >= 64, "large: .*larger"),
    (lambda x: 0 * (1 // x.size), "ZeroDivisionError"),
], ids=["0-d", "3-d", "large", "empty"])  # fmt: skip
def test_wrong_for_some_sizes(own, condition, says):
    own(square_kernel(wrong_where(condition)), np.square, dtypes="f")
    refused("test_check_square", says)


def test_an_input_that_is_written_when_it_is_large(own):
    def run(inputs, outputs):
        outputs[0][...] = np.square(inputs[0])
        if inputs[0].size > 5000:
            ctypes.memset(inputs[0].ctypes.data, 0, 4)

    own(square_kernel(run), np.square, dtypes="f")
    refused("test_check_square", "large: input 0 was written")


def test_an_input_that_does_not_lend_its_shape_alone(own):
    @kernel(name="test_check_times", shape_only=(1,))
    def times(a, b):
        """A product."""

    times.infer(equal)
    times.gradient(lambda F, heads, inputs, outputs: [heads[0] * inputs[1], heads[0] * inputs[0]])
    times.cpu(of_numpy(lambda inputs, outputs: np.multiply(*inputs, out=outputs[0])))
    own(times, np.multiply, dtypes="f")
    refused("test_check_times", r"shape_only: output 0 with other numbers in inputs \[1\]")


def test_inputs_with_a_type_of_their_own(own):
    """Rows of the data, by indices that are int64 whatever the data are."""

    @kernel(name="test_check_rows")
    def rows(data, index):
        """Take rows."""

    @kernel(name="_test_check_rows_back")
    def back(head, index, like):
        """Add rows up where they come from."""

    def add_up(inputs, outputs):
        outputs[0][...] = 0
        np.add.at(outputs[0], inputs[1], inputs[0])

    rows.shape(lambda data, index: (*index, *data[1:]))
    rows.cpu(of_numpy(lambda inputs, outputs: outputs[0].__setitem__(..., inputs[0][inputs[1]])))
    rows.gradient(lambda F, heads, inputs, outputs: [F._test_check_rows_back(heads[0], inputs[1], inputs[0]), None])
    back.shape(lambda head, index, like: like)
    back.cpu(of_numpy(add_up))
    back.gradient(lambda F, heads, inputs, outputs: [F.test_check_rows(heads[0], inputs[1]), None, None])
    for op in (rows, back):
        op.infer_type = lambda attrs, ins, outs: (ins, [ins[0]])
    own(back)
    details = {"shapes": [((4, 3), (2,))], "domain": ((-2, 2), (0, 3)), "order": 2, "dtypes": "f"}
    details["unchecked"] = dict.fromkeys(("types back", "shapes back", "small shapes", "small gradients"), "for a test")
    own(rows, lambda data, index: data[index], input_types={1: "int64"}, **details)
    done = check_op("test_check_rows")["checks"]
    assert all(done[what] for what in ("special", "gradient", "grad_req", "executor", "strides", "threads"))
    record("test_check_rows", lambda data, index: data[index + 1], input_types={1: "int64"}, **details)
    refused("test_check_rows", "raises IndexError|values: float64: output 0")


# ---- inference ------------------------------------------------------------------------------------------------------
def test_inference_of_shapes_that_runs_one_way(own):
    own(square_kernel(lambda i, o: np.square(i[0], out=o[0]), two_ways=False), np.square, dtypes="f")
    refused("test_check_square", r"shapes back: .*finds None for input 0, though no shape but \(2, 3\) fits")


def test_inference_of_types_that_runs_one_way(own):
    square = own(square_kernel(lambda i, o: np.square(i[0], out=o[0])), np.square, dtypes="f")
    square.infer_type = lambda attrs, ins, outs: (ins, [ins[0]])
    refused("test_check_square", "types back: .*its rule for types runs one way")


def test_one_way_may_be_declared(own):
    why = {"shapes back": "for a test"}
    own(square_kernel(lambda i, o: np.square(i[0], out=o[0]), two_ways=False), np.square, dtypes="f", unchecked=why)
    assert check_op("test_check_square")["unchecked"]["shapes back"] == "for a test"


# ---- states ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("strided", [False, True])
def test_right_states_of_a_kernel(own, strided):
    own(accumulator(adds_up, strided=strided), lambda data, total: (data + total, data + total), dtypes="f", order=1)
    done = check_op("test_check_total")["checks"]
    assert done["req"] and done["strides"] and done["executor"] and done["gradient"] and done["threads"]


def test_wrong_state(own):
    def run(inputs, outputs):
        outputs[0][...] = inputs[0] + inputs[1]
        inputs[1][...] = 12345

    own(accumulator(run), lambda data, total: (data + total, data + total), dtypes="f", order=1)
    refused("test_check_total", "values: float64: input 1, a state, after the call: 6 of 6 elements differ.*12345")


def test_state_left_unwritten(own):
    own(
        accumulator(lambda i, o: np.add(i[0], i[1], out=o[0])),
        lambda data, total: (data + total, data + total),
        dtypes="f",
        order=1,
    )
    refused("test_check_total", "values: float64: input 1, a state, after the call: 6 of 6 elements differ")


def test_reference_without_the_state(own):
    own(accumulator(adds_up), lambda data, total: data + total, dtypes="f", order=1)
    refused("test_check_total", "1 outputs and 1 states, the reference has 1")


def momentum(name="test_check_momentum", new=lambda grad, mom, rate: 0.9 * mom - rate * grad):
    @elementwise(name=name, num_outputs=2, writes={"mom": 1})
    def update(weight, grad, mom, *, rate: float = 0.1):
        """Descend with momentum."""
        found = new(grad, mom, rate)
        return weight + found, found

    return update


def momentum_reference(weight, grad, mom, rate=0.1):
    return weight + 0.9 * mom - rate * grad, 0.9 * mom - rate * grad


def test_right_states_that_are_outputs(own):
    own(momentum(), momentum_reference, dtypes="f", params=[{}, {"rate": 0.5}], order=2)
    done = check_op("test_check_momentum")["checks"]
    assert done["special"] and done["req"] and done["strides"] and done["gradient"] and done["executor"]


def test_wrong_states_that_are_outputs(own):
    own(momentum(new=lambda grad, mom, rate: 0.9 * mom), momentum_reference, dtypes="f")
    refused("test_check_momentum", "values: float64: ")


def test_state_that_is_an_output_left_unwritten(own):
    @kernel(name="test_check_moved", num_outputs=2, writes={"total": 1})
    def moved(data, total):
        """Give the sum of the data and the total, which should become the new total."""

    moved.infer(equal)
    moved.gradient(lambda F, heads, inputs, outputs: [heads[0], None])
    moved.cpu(of_numpy(lambda inputs, outputs: np.add(*inputs, out=outputs[0])))
    own(moved, lambda data, total: (data + total, data + total), dtypes="f", order=1)
    refused("test_check_moved", "values: float64: input 1, a state, after the call: 6 of 6 elements differ")


# ---- gradients ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("order", "says"), [(1, "gradient: order 1 of the gradient"), (0, "head gradients: for the sum")])
def test_gradient_for_head_gradients_of_one(own, order, says):
    square = square_kernel(lambda i, o: np.square(i[0], out=o[0]))
    square.gradient(lambda F, heads, inputs, outputs: [2.0 * inputs[0]])
    own(square, np.square, dtypes="f", order=order)
    refused("test_check_square", says)


def test_results_of_one_type_for_data_of_any(own):
    """Head gradients were of the data's type."""

    @composite
    def test_check_float32(F, data):
        return F.cast(F.square(data), dtype="float32")

    own(test_check_float32, np.square, dtypes="f", returns="float32", unchecked={"types back": "any type gives float32"})
    report = check_op("test_check_float32")
    assert "too coarse" in report["unchecked"]["gradient"] and report["checks"]["gradient dtypes"]


def without_rule():
    @kernel(name="test_check_ruleless")
    def ruleless(data):
        """Copy."""

    ruleless.infer(equal)
    ruleless.cpu(of_numpy(lambda inputs, outputs: np.copyto(outputs[0], inputs[0])))
    return ruleless


def test_missing_rule_must_be_declared(own):
    own(without_rule(), np.copy, dtypes="f", order=0)
    refused("test_check_ruleless", "the check 'gradient' ran zero times; say why in its record")
    record("test_check_ruleless", np.copy, dtypes="f", unchecked={"gradient": "for a test"})
    assert check_op("test_check_ruleless")["unchecked"]["grad_req"] == "for a test"


def test_composites_are_looked_through(own):
    own(without_rule(), np.copy, dtypes="f", order=0, grad_inputs=())

    @composite(name="test_check_inner")
    def inner(F, data):
        return F.test_check_ruleless(data)

    @composite(name="test_check_outer")
    def outer(F, data):
        return F.exp(F.test_check_inner(data))

    own(inner, np.copy)
    own(outer, np.exp, dtypes="f")
    refused("test_check_outer", "composition: it calls test_check_ruleless, which has neither a gradient rule")


# ---- what runs, and what says why it does not -----------------------------------------------------------------------
def test_only_checks_can_be_left_out(own):
    own(without_rule(), np.copy, dtypes="f", unchecked={"gradients": "a typing error", "gradient": "for a test"})
    refused("test_check_ruleless", "its record leaves out 'gradients', which is not a check")


def test_reasons_follow_from_the_record():
    report = check_op("_zeros")
    assert report["unchecked"]["strides"] == "it has no inputs"
    assert "values" not in report["unchecked"] and report["checks"]["threads"] == 2 - 1
    assert check_op("exp", orders=0)["unchecked"]["gradient"] == "orders=0"


# ---- bad input ------------------------------------------------------------------------------------------------------
def picky(error):
    square = square_kernel(lambda i, o: np.square(i[0], out=o[0]))

    @square.infer
    def _(ins, outs):
        if ins[0] is not None and len(ins[0]) > 3:
            raise error
        return equal(ins, outs)

    return square


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OpValueError("operator test_check_square: data has 4 dimensions, expected at most 3"), None),
        (OpValueError("operator test_check_square: no"), "bad input: .*expected 'at most 3'"),
        (OpValueError("data has 4 dimensions, expected at most 3"), None),  # who calls the rule says whose it is
    ],
)
def test_bad_input_has_its_message(own, error, says):
    own(picky(error), np.square, dtypes="f", refuses=[Refusal("at most 3", shapes=((1, 1, 1, 1),))])
    if says is None:
        assert check_op("test_check_square")["checks"]["bad input"] == 3
    else:
        refused("test_check_square", says)


def test_bad_input_that_is_taken(own):
    own(
        square_kernel(lambda i, o: np.square(i[0], out=o[0])),
        np.square,
        dtypes="f",
        refuses=[Refusal("float", dtypes=["int32"])],
    )
    refused("test_check_square", "bad input: a call that it must refuse .* is taken")


# ---- modes ----------------------------------------------------------------------------------------------------------
def mode_reference(data, is_train):
    return 2 * data if is_train else data


def test_both_modes_are_checked(own):
    @composite(name="test_check_mode")
    def mode(F, data, *, is_train):
        return F._mul_scalar(data, scalar=2.0) if is_train else F._copy(data)

    own(mode, mode_reference, dtypes="f")
    assert check_op("test_check_mode")["cases"] == 2
    record("test_check_mode", lambda data, is_train: data, dtypes="f")
    refused("test_check_mode", re.escape("case 1 ((2, 3); is_train=True), values"))


def test_mode_that_is_read_from_the_thread(own):
    """What runs later, a gradient or an executor, does not see the mode that the call saw."""

    @composite(name="test_check_mode")
    def mode(F, data):
        return F._mul_scalar(data, scalar=2.0) if autograd.is_training() else F._copy(data)

    own(mode, mode_reference, dtypes="f", params=[{"is_train": False}, {"is_train": True}])
    refused("test_check_mode", "is_train=.*(executor: output 0|gradient: order 1)")


# ---- random numbers -------------------------------------------------------------------------------------------------
def drawing(draw, **options):
    """Make an operator ``(scale) -> scale * draw(rng, shape)``, and the function that seeds it."""
    state = [np.random.default_rng(0)]

    @kernel(name="test_check_draw", random=True, num_outputs=2, visible_outputs=1, **options)
    def op(scale):
        """Draw numbers; what was drawn is the second output."""

    op.infer(equal)

    @op.cpu
    def _(inputs, outputs):
        drawn = draw(state[0], inputs[0].shape)
        np.asarray(outputs[1])[...] = drawn
        np.multiply(np.asarray(inputs[0]), np.asarray(outputs[1]), out=np.asarray(outputs[0]))

    op.gradient(lambda F, heads, inputs, outputs: [F.elemwise_mul(heads[0], outputs[1])])

    def seed(n):
        state[0] = np.random.default_rng(n)

    return op, seed


ONES = {"domain": (1.0, 1.0), "shapes": [((40, 50),)], "dtypes": "f"}


def test_continuous_distribution(own):
    own(drawing(lambda rng, shape: rng.uniform(0, 1, shape))[0], distribution=lambda scale: stats.uniform(), **ONES)
    report = check_op("test_check_draw")
    assert report["checks"]["distribution"] == 4
    assert report["unchecked"]["gradient"] == "its results are random, and the record has no seed"
    record("test_check_draw", distribution=lambda scale: stats.uniform(0, 1.1), **ONES)
    refused("test_check_draw", "distribution: float64: output 0: .*Kolmogorov-Smirnov")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [({0.0: 0.3, 2.0: 0.7}, {0.0: 0.35, 2.0: 0.65}), (stats.poisson(3), stats.poisson(3.2))],
    ids=["dictionary", "pmf"],
)
def test_discrete_distribution(own, right, wrong):
    def draw(rng, shape):
        return 2 * (rng.random(shape) < 0.7) if isinstance(right, dict) else rng.poisson(3, shape)

    own(drawing(draw)[0], distribution=lambda scale: right, **ONES)
    check_op("test_check_draw")
    record("test_check_draw", distribution=lambda scale: wrong, **ONES)
    refused("test_check_draw", "distribution: float64: output 0: .*chi-square")


def test_numbers_that_cannot_be(own):
    own(drawing(lambda rng, shape: rng.integers(0, 3, shape))[0], distribution=lambda scale: {0: 0.5, 1: 0.5}, **ONES)
    refused("test_check_draw", "draws 2.0, which its distribution does not have")


def test_draws_that_are_related(own):
    spread = {**ONES, "distribution": lambda scale: stats.uniform()}
    own(drawing(lambda rng, shape: np.sort(rng.random(shape), axis=None).reshape(shape))[0], **spread)
    refused("test_check_draw", "neighbours are correlated")


def test_calls_that_repeat_each_other(own):
    spread = {**ONES, "distribution": lambda scale: stats.uniform()}
    own(drawing(lambda rng, shape: np.random.default_rng(1).random(shape))[0], **spread)
    refused("test_check_draw", "distribution: float64: output 0: numbers of one call and the next are correlated")


def test_random_operator_needs_a_distribution(own):
    own(drawing(lambda rng, shape: rng.random(shape))[0], lambda scale: scale)
    refused("test_check_draw", "draws random numbers; its record needs distribution=")


def test_seed_lets_every_check_run(own):
    op, seed = drawing(lambda rng, shape: rng.random(shape))
    own(op, distribution=lambda scale: stats.uniform(), seed=seed, order=2, **ONES)
    done = check_op("test_check_draw", orders=2)["checks"]
    assert all(done[what] for what in ("gradient", "req", "alignment", "executor", "head gradients"))
    op.gradient(lambda F, heads, inputs, outputs: [heads[0]])
    refused("test_check_draw", "order 1 of the gradient")


def gumbel(F, data):
    """Softmax of noise: the elements of a row depend on each other."""
    return F.softmax(data - F.log(-F.log(F.random.uniform_like(data))), axis=-1)


def test_elements_that_depend_on_each_other(own):
    """Of two equal numbers, the first part of the softmax of noise is uniform, and the second what is left."""
    given = {"dtypes": "f", "domain": (0.0, 0.0), "shapes": [((3, 2),)], "seed": mx.random.seed, "order": 2}
    op = composite(random=True, name="test_check_gumbel")(gumbel)
    op.infer(equal)
    own(op, distribution=lambda data: stats.uniform(), **given)
    refused("test_check_gumbel", "neighbours are correlated")
    record("test_check_gumbel", distribution=lambda data: stats.uniform(), dependent=True, **given)
    done = check_op("test_check_gumbel", orders=2)["checks"]
    assert all(done[what] for what in ("distribution", "values", "gradient", "executor", "threads"))
    record("test_check_gumbel", distribution=lambda data: stats.beta(1.5, 1), dependent=True, **given)
    refused("test_check_gumbel", "distribution: float64: output 0: .*Kolmogorov-Smirnov")


def test_a_record_says_what_is_wrong_with_it(own):
    own(composite(random=True, name="test_check_gumbel")(gumbel), seed=mx.random.seed, dtypes="f")
    refused("test_check_gumbel", "neither reference=.*nor distribution=, with dependent=True")

    def strict(data):
        if data.size < 10:
            raise AssertionError
        return data

    for details, message in (
        (
            {"reference": strict},
            r"values: raises AssertionError: at .*test_check_op.py:\d+, in 'raise AssertionError'",
        ),
        ({"reference": lambda data: None}, "values: a function of the record returns None"),
        (
            {"reference": np.exp, "domain": (2.0, -2.0)},
            "values: the record's domain of input 0 is empty: from 2.0 to -2.0",
        ),
        ({"reference": np.exp, "dtypes": "x"}, "dtypes='x' name no type: expected letters"),
        ({"reference": np.exp, "dtypes": "i"}, None),
    ):
        record("exp", **details)
        try:
            if message:
                refused("exp", message)
            else:
                with pytest.raises(AssertionError, match=r"dtypes='i' name no type of \['float32'\]"):
                    check_op("exp", dtypes=["float32"])
        finally:
            records._users.pop("exp")


# ---- operators from outside -----------------------------------------------------------------------------------------
class Average(mx.operator.CustomOp):
    """The difference from a running average, which training updates."""

    def forward(self, is_train, req, in_data, out_data, aux):
        if is_train:
            aux[0][:] = 0.5 * aux[0] + 0.5 * in_data[0]
        self.assign(out_data[0], req[0], in_data[0] - aux[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], 0.5 * out_grad[0])


@mx.operator.register("test_check_average")
class AverageProp(mx.operator.CustomOpProp):
    def list_auxiliary_states(self):
        return ["average"]

    def infer_shape(self, in_shape):
        return in_shape, in_shape, in_shape

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Average()


def average_reference(data, average, op_type, is_train):
    new = 0.5 * average + 0.5 * data
    return data - new, new


@pytest.mark.parametrize("right", [True, False])
def test_custom_op_with_a_state(own, right):
    training = {"op_type": "test_check_average", "is_train": True}
    details = {"params": [training], "shapes": [((2, 3), (2, 3))], "dtypes": "f", "order": 1}
    try:
        if right:
            record("Custom", average_reference, **details)
            done = check_op("Custom", orders=1)["checks"]
            assert done["gradient"] and done["executor"] and done["req"] and done["grad_req"]
        else:
            record("Custom", lambda data, average, **params: (data, average), **details)
            refused("Custom", "values: float64: output 0")
    finally:
        records._users.pop("Custom", None)


def test_larger_shapes_have_bounded_results():
    op = mx.op.get("diag")
    vector = next(c for c in cases.cases(op, find_record(op), np.random.default_rng(0)) if len(c.shapes[0]) == 1)
    for size in (200_000, 20_000):
        (values,) = vector.enlarged("float32", (size, 2_000))
        assert 2_000 <= values.size < 2_010  # not a matrix of 20,000 rows and columns


# ---- special points -------------------------------------------------------------------------------------------------
SLOPES = {
    "naive softplus": (
        lambda x: F.log(1 + F.exp(x)),
        lambda x: np.logaddexp(0, x),
        r"special values: .* got .*inf.*, expected .*e\+306",
    ),
    "a jump to infinity": (lambda x: F.where(x > 1e4, math.inf, x), lambda x: x, r"got .*inf.*, expected .*e\+306"),
    "tanh of exp": (lambda x: F.tanh(F.exp(x)), lambda x: np.tanh(np.exp(x)), "derivative by input 0: .* got .*nan"),
    "sqrt of a square": (lambda x: F.sqrt(x * x), lambda x: np.sqrt(x * x), "derivative by input 0: .* got .*nan"),
    "naive swish": (
        lambda x: x / (1 + F.exp(-x)),
        lambda x: x * special.expit(x),
        "derivative by input 0: .* got .*nan",
    ),
    "naive mish": (
        lambda x: x * F.tanh(F.log(1 + F.exp(x))),
        lambda x: x * np.tanh(np.logaddexp(0, x)),
        "got .*(nan|inf)",
    ),
    "masked branch": (
        lambda x: F.where(x > 0, F.sqrt(x) * x, 0 * x),
        lambda x: np.sqrt(np.maximum(x, 0)) * x,
        "got .*nan",
    ),
    "second order": (
        lambda x: F.exp(-(F.where(x == 0, 0, x) ** 2)),
        lambda x: np.exp(-x * x),
        "derivative by input 0, input 0: .* got",
    ),
}


@pytest.mark.parametrize("name", SLOPES)
def test_derivatives_at_special_points(own, name):
    formula, reference, says = SLOPES[name]

    @elementwise
    def test_check_slope(data):
        return formula(data)

    unchecked = {"special": "large squares overflow"} if name == "sqrt of a square" else {}
    own(test_check_slope, reference, dtypes="f", domain=(0.5, 2), unchecked=unchecked)
    refused("test_check_slope", says)


def test_masked_derivatives_at_special_points(own):
    @elementwise
    def test_check_slope(a, b):
        return F.exp(a) * b + F.where(b == 0, 0, a * b)

    own(test_check_slope, lambda a, b: np.exp(a) * b + np.where(b == 0, 0, a * b), dtypes="f")
    refused("test_check_slope", "special gradients: the derivative by input 1: .* got .*2.718.*, expected .*3.718")


def test_labels_of_integers_in_symbols(own, monkeypatch, anew):
    @elementwise(integers=("label",))
    def test_check_slope(data, label):
        return F.exp(data * label) + F.sin(data)

    own(test_check_slope, lambda d, n: np.exp(d * n) + np.sin(d), dtypes="f", input_types={1: "int32"})
    assert check_op("test_check_slope")["checks"]["symbolic gradients"] == 2
    backward = type(mx.op.get("_backward_test_check_slope"))
    monkeypatch.setattr(backward, "_labels", Elementwise._labels)
    anew()
    refused("test_check_slope", "symbolic gradients")
