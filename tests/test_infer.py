"""Inference of shapes and types over graphs, in both directions.  Legacy forms are those of MXNet 1.9.1."""

import gc
import time

import numpy as np
import pytest

import mxop as mx
from mxop import nd, sym
from mxop.errors import OpValueError
from mxop.op import Of, composite, elementwise, kernel, unregister

a, b, c = sym.Variable("a"), sym.Variable("b"), sym.Variable("c")


@pytest.fixture
def np_shape():
    with mx.np_shape():
        yield


# ---- shapes ---------------------------------------------------------------------------------------------------------
def test_the_example_of_the_tutorial():
    a = sym.Variable("a", shape=(2, 0))
    b = sym.Variable("b")
    c = sym.Variable("c", shape=(0, 3))
    d = a * b + b * c
    assert d.infer_shape() == ([(2, 3), (2, 3), (2, 3)], [(2, 3)], [])


@pytest.mark.parametrize(
    ("symbol", "given", "expected"),
    [
        (a + b, {"a": (2, 3)}, ([(2, 3), (2, 3)], [(2, 3)], [])),
        (sym.exp(a), {"a": (4,)}, ([(4,)], [(4,)], [])),
        (sym.Group([a + b, b + c]), {"c": (5,)}, ([(5,)] * 3, [(5,)] * 2, [])),
        (sym.broadcast_add(a, b), {"a": (2, 1), "b": (3,)}, ([(2, 1), (3,)], [(2, 3)], [])),
        (sym.FullyConnected(a, num_hidden=4, name="f"), {"a": (2, 3)}, ([(2, 3), (4, 3), (4,)], [(2, 4)], [])),
        (sym.SliceChannel(a, num_outputs=3), {"a": (2, 6)}, ([(2, 6)], [(2, 2)] * 3, [])),
        (sym.SliceChannel(a, num_outputs=3)[1], {"a": (2, 6)}, ([(2, 6)], [(2, 2)], [])),
        (sym.Variable("v", shape=(2, 3)), {}, ([(2, 3)], [(2, 3)], [])),
        (sym.Variable("v", shape=(2, 3)), {"v": (5, 5)}, ([(5, 5)], [(5, 5)], [])),
        (sym.transpose(a) + b, {"b": (3, 2)}, ([(2, 3), (3, 2)], [(3, 2)], [])),
        (sym.sum(a, axis=1) * b, {"a": (2, 3)}, ([(2, 3), (2,)], [(2,)], [])),
        (sym.sum(a), {"a": (2, 3)}, ([(2, 3)], [(1,)], [])),
        (sym.zeros((2, 3)) + a, {}, ([(2, 3)], [(2, 3)], [])),
        (sym.reshape(a, shape=(-1, 2)), {"a": (2, 3)}, ([(2, 3)], [(3, 2)], [])),
    ],
)  # fmt: skip
def test_shapes_follow_in_both_directions(symbol, given, expected):
    assert symbol.infer_shape(**given) == expected
    assert symbol.infer_shape_partial(**given) == expected


def test_shapes_by_position_in_the_order_of_the_arguments():
    assert (a + b * c).infer_shape(None, (2,), None) == ([(2,)] * 3, [(2,)], [])
    with pytest.raises(TypeError, match="4 arguments are given; the symbol has 3: a, b, c"):
        (a + b * c).infer_shape((2,), (2,), (2,), (2,))
    with pytest.raises(ValueError, match="either by position or by name"):
        (a + b).infer_shape((2,), b=(2,))


def test_what_is_unknown():
    fc = sym.FullyConnected(a, num_hidden=4, name="f")
    with pytest.warns(UserWarning, match="Cannot decide shape.*: a"):
        assert fc.infer_shape() == (None, None, None)
    assert (a + b).infer_shape_partial() == ([(), ()], [()], [])
    assert (a + b).infer_shape_partial(a=(2, 0), b=(0, 3)) == ([(2, 3), (2, 3)], [(2, 3)], [])
    assert (a + b).infer_shape_partial(a=(2, 0)) == ([(2, 0), (2, 0)], [(2, 0)], [])
    assert fc.infer_shape_partial(a=(0, 3)) == ([(0, 3), (4, 3), (4,)], [(0, 4)], [])
    assert sym.broadcast_add(a, b).infer_shape_partial(a=(2, 3)) == ([(2, 3), ()], [()], [])


def test_of_a_layer_whose_data_are_unknown_mxnet_says_nothing_of_the_weight():
    layer = sym.FullyConnected(sym.Variable("x"), num_hidden=5, name="fc")
    assert layer.infer_shape_partial()[0][1] == ()
    assert layer.infer_shape_partial(x=(2, 0))[0][1] == (5, 0)
    assert layer.infer_shape_partial(fc_weight=(0, 3))[0][1] == (5, 3)


@pytest.mark.filterwarnings("ignore:Cannot decide")
def test_five_states_of_a_shape_are_apart(np_shape):
    exp = sym.exp(a)
    assert exp.infer_shape_partial() == ([None], [None], [])  # unknown rank
    assert exp.infer_shape_partial(a=(-1, 3)) == ([(-1, 3)], [(-1, 3)], [])  # unknown dimension
    for known in ((), (0,), (3, 0)):  # 0-d and empty arrays are known
        assert exp.infer_shape(a=known) == exp.infer_shape_partial(a=known) == ([known], [known], [])
    assert exp.infer_shape() == (None, None, None)
    assert sym.sum(a).infer_shape(a=(2, 3)) == ([(2, 3)], [()], [])


def test_sizes_beyond_32_bits():
    shape = (2**31, 2**20)
    assert sym.exp(sym.reshape(a, shape=(-1,))).infer_shape(a=shape) == ([shape], [(2**51,)], [])


# ---- types ----------------------------------------------------------------------------------------------------------
def test_types_follow_in_both_directions():
    f16, i32 = np.float16, np.int32
    assert (a + b).infer_type(b="int32") == ([i32, i32], [i32], [])
    assert (a + b).infer_type(f16) == ([f16, f16], [f16], [])
    assert sym.cast(a + b, "int32").infer_type(a="float16") == ([f16, f16], [i32], [])
    assert sym.Variable("v", dtype="float16").infer_type() == ([f16], [f16], [])
    for unknown in (sym.exp(a), sym.cast(a, "int32")):
        with pytest.warns(UserWarning, match="Cannot decide type.*: a"):
            assert unknown.infer_type() == (None, None, None)
    assert sym.cast(a, "int32").infer_type_partial() == ([None], [i32], [])
    assert sym.zeros((2,)).infer_type() == ([], [np.float32], [])
    assert (a > b).infer_type(a="int32") == ([i32, i32], [i32], [])


# ---- errors ---------------------------------------------------------------------------------------------------------
def test_an_error_says_where_what_and_why():
    line = __import__("sys")._getframe().f_lineno + 1
    y = sym.exp(a) * sym.reshape(b, shape=(-1, 2))
    with pytest.raises(mx.MXNetError) as caught:
        y.infer_shape(a=(2, 3), b=(3, 2))
    text = str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert text.startswith(f"Error in operator {y.name}: operator elemwise_mul: lhs has shape (2, 3) but rhs has shape (3, 2)")
    assert f"test_infer.py:{line}" in text and "rhs='reshape" in text


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: (a + b).infer_shape(a=(2,), b=(3,)), ValueError, r"lhs has shape \(2,\) but rhs has shape \(3,\)"),
        (lambda: (a + b).infer_type(a="int32", b="float32"), TypeError, "lhs has dtype int32 but rhs has dtype float32"),
        (lambda: sym.broadcast_add(a, b).infer_shape(a=(2,), b=(3,)), ValueError, "do not broadcast"),
        (lambda: sym.FullyConnected(a, num_hidden=4, name="f").infer_shape(a=(2, 3), f_weight=(5, 3)), ValueError,
         r"operator f: .*\(5, 3\)"),
        (lambda: sym.cast(a, "int8").infer_shape(b=(2,)), ValueError, "'b' not found; candidate arguments: a"),
        (lambda: sym.exp(sym.Variable("weight")).infer_shape(wieght=(2,)), ValueError, "did you mean 'weight'"),
        (lambda: (a + b).infer_shape(a=3.5), TypeError, "Arguments need to be shapes"),
        (lambda: (a + b).infer_shape(a=("x",)), TypeError, r"shapes \(tuple\), but 'a'"),
        (lambda: (a + b).infer_shape(a=(-2, 3)), ValueError, r"'a'.*\(-2, 3\) holds a negative"),
        (lambda: (a + b).infer_type(a="flot32"), TypeError, "did you mean 'float32'"),
        (lambda: sym.SliceChannel(a, num_outputs=3).infer_shape(a=(2, 7)), ValueError, r"\(2, 7\)"),
        (lambda: sym.sum(a, axis=2).infer_shape(a=(2, 7)), IndexError, "axis=2 is out of range"),
        (lambda: sym.exp(sym.Variable("v", attr={"__shape__": "x"})).infer_shape(), ValueError, "__shape__='x'"),
        (lambda: sym.exp(sym.Variable("v", attr={"__dtype__": "77"})).infer_type(), TypeError, "__dtype__='77'"),
        (lambda: sym.broadcast_to(sym.exp(a), shape=(2, 3)).infer_shape(a=(2, 2)), ValueError, "does not broadcast"),
    ],
)  # fmt: skip
def test_contradictions(call, kind, message):
    with pytest.raises(mx.MXNetError, match=message) as caught:
        call()
    assert isinstance(caught.value, kind)


def test_a_contradiction_found_from_behind_names_the_argument():
    @kernel
    def test_infer_pair(data):
        """Its output is said to be (2,), its input (3,)."""

    test_infer_pair.infer(lambda ins, outs: ([(3,)], [(2,)]))
    try:
        with pytest.raises(mx.MXNetError, match=r"argument data \('exp.*output'\) has \(5,\); expected \(3,\)"):
            sym.test_infer_pair(sym.exp(a)).infer_shape(a=(5,))
    finally:
        unregister("test_infer_pair")


# ---- composites -----------------------------------------------------------------------------------------------------
def test_composites_infer_through_what_they_call():
    @composite
    def test_infer_layer(F, data, weight):
        """A layer without bias."""
        return F.tanh(F.FullyConnected(data, weight, num_hidden=4, no_bias=True))

    @composite(num_outputs=2)
    def test_infer_nested(F, data, weight):
        """The layer, and its sum."""
        y = F.test_infer_layer(data, weight)
        return y, F.sum(y, axis=1)

    try:
        y = sym.test_infer_nested(a, name="n")
        assert y.infer_shape(a=(2, 3)) == ([(2, 3), (4, 3)], [(2, 4), (2,)], [])
        assert y.infer_type(n_weight="float16") == ([np.float16] * 2, [np.float16] * 2, [])
        with pytest.raises(mx.MXNetError, match=r"Error in operator n: .*test_infer_layer.*made at .*test_infer.py"):
            y.infer_shape(a=(2, 3), n_weight=(4, 9))
    finally:
        unregister("test_infer_nested")
        unregister("test_infer_layer")


def test_a_composite_that_is_wrong_says_so():
    @composite
    def test_infer_wrong(F, data):
        """Return no array."""
        return 3

    try:
        with pytest.raises(mx.MXNetError, match="composite operator test_infer_wrong returned 3; expected 1 output"):
            sym.test_infer_wrong(a).infer_shape(a=(2,))
    finally:
        unregister("test_infer_wrong")


# ---- size -----------------------------------------------------------------------------------------------------------
def chain(length):
    y = a
    for i in range(length):
        y = y + b if i % 3 else sym.exp(y)
    return y


def test_deep_graphs_take_linear_time():
    """The processor's time, without collections of garbage: those grow with what other tests left behind."""
    seconds = []
    for length in (2_000, 20_000):
        y, tries = chain(length), []
        for _ in range(3):
            gc.collect()
            gc.disable()
            start = time.process_time()
            try:
                assert y.infer_shape(a=(2, 3)) == ([(2, 3)] * 2, [(2, 3)], [])
                assert y.infer_type(b="float16")[1] == [np.float16]
            finally:
                tries.append(time.process_time() - start)
                gc.enable()
        seconds.append(min(tries))
    assert seconds[1] < 30 * seconds[0]  # ten times the nodes; machines are noisy


def test_information_travels_back_through_a_deep_graph():
    y = a
    for _ in range(5_000):
        y = sym.exp(y)
    assert (y + b).infer_shape(b=(7,)) == ([(7,)] * 2, [(7,)], [])


def test_solvers_work_on_any_graph():
    @elementwise
    def test_infer_two(data):
        """Two outputs."""
        return data, data * 2

    try:
        graph = mx.graph.Graph(sym.test_infer_two(a)._entries)
        shapes, types = mx.graph.Shapes(graph), mx.graph.Types(graph)
        shapes.set(graph.outputs[1], (3, None))
        types.set(graph.outputs[0], 1)
        shapes.run()
        types.run()
        assert [shapes.get(e) for e in graph.outputs] == [(3, None)] * 2
        assert types.get((graph.variables[0], 0)) == 1
    finally:
        unregister("test_infer_two")


def test_lengths_of_softmax_are_integers_unless_something_else_is_said():
    y = mx.sym.softmax(mx.sym.Variable("x"), mx.sym.Variable("n"), use_length=True, axis=1)
    executor = y.simple_bind(mx.cpu(), x=(2, 3), n=(2,))
    assert executor.arg_dict["n"].dtype == np.int32
    executor.copy_params_from({"x": np.zeros((2, 3)), "n": [1, 2]})
    assert executor.forward()[0].asnumpy().tolist() == [[1, 0, 0], [0.5, 0.5, 0]]
    assert y.infer_type(x="float16", n="int64")[0] == [np.float16, np.int64]


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("Pad", {"mode": "edge", "pad_width": (0, 0, 0, 0, 1, 1, 1, 1)}),
        ("diag", {}),
        ("contrib.count_sketch", {"out_dim": 3}),
        ("SequenceMask", {"use_sequence_length": True}),
        ("SequenceLast", {"use_sequence_length": True}),
        ("SequenceReverse", {"use_sequence_length": True}),
        ("image.normalize", {"mean": (1,), "std": (2,)}),
        ("image.crop", {"x": 0, "y": 0, "width": 1, "height": 1}),
        ("image.flip_left_right", {}),
        ("image.resize", {"size": (2, 2)}),
        ("image.random_hue", {"min_factor": 0, "max_factor": 1}),
        ("fill_element_0index", {}),
        ("khatri_rao", {}),
    ],
)
def test_types_follow_without_shapes(name, params):
    """As in MXNet, whose ``infer_type`` knows no shapes; what is beside the data has their type, where nothing says more."""
    call = mx.sym
    for part in name.split("."):
        call = getattr(call, part)
    inputs, outputs, _ = call(mx.sym.Variable("x"), **params).infer_type(x="float64")
    assert {*inputs, *outputs} == {np.float64}


def test_types_of_other_kinds_follow_without_shapes():
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    f32, f64, i64 = np.float32, np.float64, np.int64
    assert mx.sym.image.to_tensor(a).infer_type(a="uint8") == ([np.uint8], [f32], [])
    assert mx.sym.contrib.allclose(a, b).infer_type(a="float64") == ([f64, f64], [np.uint8], [])
    assert mx.sym.sparse.retain(a, b).infer_type(a="float64", b="int64") == ([f64, i64], [f64], [])
    net = mx.sym.FullyConnected(mx.sym.image.normalize(a, mean=(1,), std=(2,)), num_hidden=2, name="fc")
    assert net.infer_type(a="float64") == ([f64] * 3, [f64], [])


def test_a_function_that_reads_types_needs_no_shapes():
    """What it is asked first does not depend on whether shapes were inferred earlier."""

    @composite
    def test_infer_reads_types(F, data, like):
        return F.cast(F.cast(data, dtype="float32") + F.cast(like, dtype="float32"), dtype=data.dtype)

    net = test_infer_reads_types(mx.sym.Variable("a"), mx.sym.Variable("b"))
    expected = [np.float16, np.int32], [np.float16], []
    assert net.infer_type(a="float16", b="int32") == expected
    net.infer_shape(a=(2,), b=(2,))
    assert net.infer_type(a="float16", b="int32") == expected


# ---- tables of dimensions --------------------------------------------------------------------------------------------
@pytest.fixture
def pairs():
    @composite(active_inputs=lambda *, weighted, shifted: ["data", *["weight"] * weighted, *["shift"] * shifted])
    def test_infer_pairs(F, data, weight=None, shift=None, *, weighted: bool = True, shifted: bool = True):
        """Sum neighbours, weighted, and shift them."""
        found = F.sum(F.reshape(data, shape=(0, -1, 2)), axis=2)
        found = found if weight is None else F.broadcast_mul(found, weight)
        return found if shift is None else F.broadcast_add(found, F.expand_dims(shift, axis=1))

    def halved(n):
        if n % 2:
            raise OpValueError(f"{n} elements are no pairs")
        return n // 2

    @test_infer_pairs.dims
    def _(**params):
        return {"data": ("rows", Of("pairs", lambda n: 2 * n, halved)), "weight": (1, "pairs"), "shift": ("rows",),
                "output": ("rows", "pairs")}  # fmt: skip

    yield test_infer_pairs
    unregister("test_infer_pairs")


def test_a_table_of_dimensions_completes_shapes_in_both_directions(pairs):
    net = pairs(*map(mx.sym.Variable, "dws"))
    whole = [(3, 8), (1, 4), (3,)], [(3, 4)], []
    assert net.infer_shape(d=(3, 8)) == net.infer_shape(d=(3, 0), w=(1, 4)) == net.infer_shape(w=(1, 4), s=(3,)) == whole
    assert (net + mx.sym.Variable("like")).infer_shape(like=(3, 4))[0][:3] == whole[0]
    assert net.infer_shape_partial(s=(3,)) == ([(3, 0), (1, 0), (3,)], [(3, 0)], [])
    for given, message in [
        ({"d": (3, 7)}, "7 elements are no pairs"),
        ({"d": (3, 8), "w": (1, 3)}, r"weight has shape \(1, 3\); expected \(1, 4\)"),
        ({"d": (3, 4, 2)}, r"data has shape \(3, 4, 2\); expected 2 dimensions, \(rows, of pairs\)"),
    ]:
        with pytest.raises(mx.MXNetError, match=message):
            net.infer_shape(**given)


def test_inputs_that_a_call_does_not_take_are_none(pairs):
    """Also one between others, in calls on arrays, recorded ones and symbols."""
    data, shift = mx.nd.array([[1, 2, 3, 4]]), mx.nd.array([10])
    data.attach_grad()
    with mx.autograd.record():
        y = pairs(data, shift=shift, weighted=False)
    y.backward()
    assert y.asnumpy().tolist() == [[13, 17]] and data.grad.asnumpy().tolist() == [[1, 1, 1, 1]]
    net = pairs(mx.sym.Variable("d"), shift=mx.sym.Variable("s"), weighted=False)
    assert net.eval(d=data, s=shift)[0].asnumpy().tolist() == [[13, 17]]
    assert pairs(data, weighted=False, shifted=False).asnumpy().tolist() == [[3, 7]]


# ---- rules of composites in calls on arrays ----------------------------------------------------------------------------
@pytest.mark.parametrize("planned", [True, False])
def test_a_rule_of_a_composite_holds_in_calls_on_arrays(own, planned):
    """It refuses what it refuses when bound, in the same words, also where the function inside would take it."""
    asked = []

    @composite(planned=planned)
    def test_infer_scaled(F, data, scale):
        return F.broadcast_mul(data, scale)

    own(test_infer_scaled)

    @test_infer_scaled.infer
    def _(ins, outs):
        asked.append(ins)
        data = ins[0] or outs[0]
        return [data, None if data is None else data[-1:]], [data]

    data, scale = nd.ones((3, 4)), nd.ones(4) * 2
    assert nd.test_infer_scaled(data, scale).asnumpy().tolist() == [[2] * 4] * 3
    before = len(asked)
    for _ in range(5):
        nd.test_infer_scaled(data, scale)
    assert len(asked) == before  # what was let pass is not looked at again
    x, s = mx.sym.var("x"), mx.sym.var("s")
    for shape in ((1,), (3, 4), (3, 1)):
        text = rf"argument scale .*has \({shape[0]}.*; expected \(4,\)"
        for _ in range(2):
            with pytest.raises(mx.errors.OpValueError, match="operator test_infer_scaled: " + text):
                nd.test_infer_scaled(data, nd.ones(shape))
        with pytest.raises(mx.errors.OpValueError, match=text):
            mx.sym.test_infer_scaled(x, s).bind(mx.cpu(), {"x": data, "s": nd.ones(shape)}).forward()
    data.attach_grad()
    with mx.autograd.record(), pytest.raises(mx.MXNetError, match="argument scale has"):
        nd.test_infer_scaled(data, nd.ones(1))


def test_a_rule_that_the_function_breaks(own):
    @composite
    def test_infer_broken(F, data):
        return F.sum(data, axis=0) if float(data.asnumpy()[0, 0]) else data

    own(test_infer_broken).infer(lambda ins, outs: (ins, ins))
    assert nd.test_infer_broken(nd.zeros((2, 3))).shape == (2, 3)
    with pytest.raises(mx.MXNetError, match=r"test_infer_broken: output has shape \(3,\) but the inputs give \(2, 3\)"):
        nd.test_infer_broken(nd.ones((2, 3)))


def test_a_rule_of_a_kernel_holds_in_calls_on_arrays(own):
    @kernel
    def test_infer_kernel(data, scale):
        """Scaled."""

    own(test_infer_kernel).infer(lambda ins, outs: ([ins[0], ins[0] and ins[0][-1:]], [ins[0]]))

    @test_infer_kernel.cpu
    def _(inputs, outputs):
        outputs[0][:] = inputs[0] * inputs[1]

    assert nd.test_infer_kernel(nd.ones((3, 4)), nd.ones(4)).shape == (3, 4)
    with pytest.raises(mx.MXNetError, match=r"operator test_infer_kernel: argument scale has \(1,\); expected \(4,\)"):
        nd.test_infer_kernel(nd.ones((3, 4)), nd.ones(1))


def test_a_rule_that_asks_for_shapes_holds(own):
    @composite
    def test_infer_asking(F, data, scale):
        return F.broadcast_mul(data, scale) * data.shape[0]

    own(test_infer_asking).infer(lambda ins, outs: ([ins[0], ins[0] and ins[0][-1:]], [ins[0]]))
    assert nd.test_infer_asking(nd.ones((3, 4)), nd.ones(4)).shape == (3, 4)
    with pytest.raises(mx.MXNetError, match=r"operator test_infer_asking: argument scale has \(1,\); expected \(4,\)"):
        nd.test_infer_asking(nd.ones((3, 4)), nd.ones(1))
