"""What an executor says of itself, compared with what it is."""

import ctypes
import json
import re
import time

import numpy as np
import pytest
from cuda_compilers import find_host, host_library, pointer

import mxop as mx
from mxop.formula import expr, input_, readable
from mxop.graph import bandwidth, rows

pytestmark = pytest.mark.usefixtures("fresh_names")


@pytest.fixture
def executor():
    x, w, b = (mx.sym.Variable(n) for n in "xwb")
    h = mx.sym.tanh(mx.sym.broadcast_add(mx.sym.dot(x, w, name="h"), b))
    y = mx.sym.sum(mx.sym.cumsum(h * 2 + 1, axis=1) * h, axis=0, name="y")
    return y.simple_bind(mx.cpu(), x=(4, 5), w=(5, 3), b=(3,))


def test_one_row_for_each_call(executor):
    told = executor.explain()
    calls = [*executor._train.calls, *executor._backward.calls]
    assert len(told) == len(calls) and [r.step for r in told] == list(range(len(calls)))
    assert [r.phase for r in told].count("forward") == len(executor._train.calls)
    for row, prepared in zip(told, calls, strict=True):
        if hasattr(prepared, "source"):
            assert row.source == str(prepared.source)
    assert [r.kind for r in told.groups] == ["fused"] * len(told.groups) and told[1].operator.startswith("broadcast_add")
    assert told[1].formula == ["tanh0 = tanh(h + b)", "_plusscalar0 = 2 * tanh0 + 1"]
    assert told[0].formula == ["h = dot(x, w)"] and told[0].source is None and told[0].cuda_source is None
    assert "test_explain.py" in told[0].made_at


def test_steps_say_what_runs_and_by_which_path(tune):
    x, w = mx.sym.Variable("x"), mx.sym.Variable("w")
    y = mx.sym.sum(mx.sym.relu(mx.sym.dot(x, w)), axis=1)
    for stream_bytes, product in ((1 << 40, [["Product"], ["ProgramCall"]]), (64, [[], ["Product, epilogue"]])):
        tune(stream_bytes=stream_bytes)
        told = y.simple_bind(mx.cpu(), "null", passes={"strips": False}, x=(70, 33), w=(33, 20)).explain()
        assert [row.steps for row in told] == [*product, ["ReductionRun, several rows"]]
        assert [row["steps"] for row in json.loads(told.to_json())["schedule"]] == [row.steps for row in told]
    sums, _ = mx.sym.contrib.foreach(lambda data, s: (mx.sym.dot(s, w), mx.sym.broadcast_add(s, data)), x, mx.sym.Variable("s"))
    loop = sums.simple_bind(mx.cpu(), "null", x=(3, 1, 1), s=(40, 50), w=(50, 60)).explain()
    assert loop.rows[-1].steps[0] == "Loop" and "Product, packed once" in loop.rows[-1].steps
    with mx.np_shape(True):
        told = mx.sym.sum(x, axis=1).simple_bind(mx.cpu(), "null", x=(3, 0)).explain()
    assert told[0].steps == ["ReductionRun, nothing"]


def test_inference_and_training_differ(executor):
    inference = executor.explain(is_train=False)
    assert {r.phase for r in inference} == {"forward"} and len(inference) < len(executor.explain())
    alone = mx.sym.exp(mx.sym.Variable("x")).simple_bind(mx.cpu(), "null", x=(2,))
    assert len(alone.explain()) == len(alone.explain(is_train=True)) == 1


def test_bytes_are_those_of_the_operands(executor):
    told = executor.explain()
    dot, fused = told[0], told[1]
    assert [v.shape for v in dot.inputs] == [(4, 5), (5, 3)] and dot.nbytes == 4 * (20 + 15 + 12)
    assert fused.nbytes == 4 * (12 + 3 + 12 + 12)
    assert [v.place for v in dot.inputs] == ["argument x", "argument w"] and dot.outputs[0].place.startswith("buffer")
    assert told.nbytes == sum(r.nbytes for r in told) and told.seconds == pytest.approx(sum(r.seconds for r in told))
    last = {v.place for r in told for v in r.outputs}
    assert {"output y_output", "gradient of x", "gradient of w", "gradient of b"} <= last
    x = mx.sym.Variable("x")
    same = (x * x).simple_bind(mx.cpu(), "null", x=(10,)).explain()
    assert same.nbytes == 80  # x is read once


def test_added_gradients_are_read_too():
    x = mx.sym.Variable("x")
    for req, nbytes in (("write", 40), ("add", 80)):
        row = mx.sym.exp(x).simple_bind(mx.cpu(), req, x=(10,)).explain()[-1]
        assert row.outputs[0].place == "gradient of x" and row.outputs[0].nbytes == nbytes


def test_buffers_hold_one_value_at_a_time(executor):
    told = executor.explain()
    assert sum(b.nbytes for b in told.buffers) == told.memory["planned"]
    assert told.memory["unshared"] >= told.memory["planned"] and told.memory["arguments"] == 4 * (20 + 15 + 3)
    names = set()
    for buffer in told.buffers:
        for tenant, after in zip(buffer.tenants, buffer.tenants[1:]):
            assert tenant.last <= after.first  # equal where a result takes the place of its operand
        for tenant in buffer.tenants:
            assert 0 <= tenant.first <= tenant.last < len(told) and tenant.nbytes <= buffer.nbytes
            names.add(tenant.name)
    assert {"h", "tanh0", "cumsum0"} <= names
    assert max(told.live_bytes) <= told.memory["planned"] and len(told.live_bytes) == len(told)


def test_values_that_backward_reads_live_to_the_end(executor):
    told = executor.explain()
    kept = next(t for b in told.buffers for t in b.tenants if t.name == "cumsum0")
    assert kept.last == len(told) - 1


def test_views_and_copies():
    x = mx.sym.Variable("x")
    y = mx.sym.exp(x)
    told = (y.reshape((6,)) * 2).simple_bind(mx.cpu(), "null", x=(2, 3)).explain()
    assert told.views == [("reshape0", "exp0")] and len(told) == 2
    told = mx.sym.Group([x, y, y]).simple_bind(mx.cpu(), "null", x=(2,)).explain()
    copies = [r for r in told if r.kind == "copy"]
    assert [c.formula for c in copies] == [["output x = x"], [f"{copies[1].inputs[0].place} = exp0"]] or len(copies) == 2
    assert all(c.source.strip().startswith("out0") and c.cuda_source is None for c in copies)


def test_reductions_are_explained():
    x = mx.sym.Variable("x")
    told = mx.sym.norm(x, axis=1).simple_bind(mx.cpu(), "null", x=(2, 3)).explain()
    assert told[0].formula == ["norm0 = norm(x over axis 1)"]
    assert "out0 = x0" in told[0].source and "combine: hypot" in told[0].source and "mxop_norm" in told[0].cuda_source
    told = mx.sym.mean(x).simple_bind(mx.cpu(), "null", x=(2, 3)).explain()
    assert told[0].formula == ["mean0 = sum(x over all axes) / count"]
    told = mx.sym.prod(x, axis=(0, 2), exclude=True).simple_bind(mx.cpu(), "null", x=(2, 3, 4)).explain()
    assert told[0].formula == ["prod0 = product(x over all axes but 0, 2)"]


def test_strips_are_explained():
    x = mx.sym.Variable("x")
    away = mx.sym.broadcast_sub(x, mx.sym.mean(x, axis=1, keepdims=True), name="away")
    y = mx.sym.broadcast_mul(away, mx.sym.rsqrt(mx.sym.mean(mx.sym.square(away), axis=1, keepdims=True)), name="y")
    told = y.simple_bind(mx.cpu(), "null", x=(64, 32)).explain()
    assert [r.kind for r in told] == ["strip"] and len(told.groups) == 1
    text = "\n".join(told[0].formula)
    assert "sum(x over each row)" in text and "y = " in text and told[0].source.startswith("stage 0:")
    added = y.simple_bind(mx.cpu(), "add", x=(64, 32)).explain()
    assert all(r.source.startswith("stage 0:") for r in added if r.kind == "strip")
    assert told.nbytes == 2 * 4 * 64 * 32 and told[0].members[-1] == "y"
    picture = mx.viz.svg(y.simple_bind(mx.cpu(), "null", x=(64, 32)))
    assert f"{len(told[0].members)} operators by rows" in picture


def test_constants_are_no_calls():
    x = mx.sym.Variable("x")
    y = mx.sym.dot(x, mx.sym.arange(3, name="numbers").reshape((3, 1)))
    told = y.simple_bind(mx.cpu(), "null", x=(2, 3)).explain()
    assert len(told) == 1 and told[0].inputs[1].place.startswith("constant ")


def test_cuda_text_of_a_group(executor):
    text = executor.explain().groups[0].cuda_source
    assert 'extern "C" __global__ void mxop_fused(' in text and "tanh(t0)" in text and "mx_half" not in text
    half = (mx.sym.Variable("x") * 2 + 1).simple_bind(mx.cpu(), "null", x=(2,), type_dict={"x": "float16"})
    assert "class mx_half" in half.explain()[0].cuda_source


# ---- texts are what runs ------------------------------------------------------------------------------------------------
def test_one_node_is_specialised_like_any_other():
    """The value of a parameter makes the formula another one: where it is alone as where it is fused."""
    x, power = mx.sym.Variable("x"), 2.0
    alone = (x**power).simple_bind(mx.cpu(), "null", x=(3,)).explain()
    fused = mx.sym.exp(x**power).simple_bind(mx.cpu(), "null", x=(3,)).explain()
    assert [r.kind for r in alone] == ["operator"] and [r.kind for r in fused] == ["fused"] and not alone.groups
    assert "pow" not in alone[0].source and "pow" not in fused[0].source and "pow(" not in alone[0].cuda_source
    assert alone[0].operator == "_power_scalar" and alone[0].outputs[0].name == alone[0].members[0]
    values = mx.nd.array([0.5, 1.5, 4.0])
    found = (x**power).bind(mx.cpu(), {"x": values}).forward()[0]
    np.testing.assert_allclose(found.asnumpy(), values.asnumpy() ** power, rtol=1e-6)


def test_parameters_that_change_no_formula_stay_parameters():
    x = mx.sym.Variable("x")
    told = (x * 2.5).simple_bind(mx.cpu(), "null", x=(3,)).explain()
    assert "s0" in told[0].source and told[0].formula == ["_mulscalar0 = 2.5 * x"]


def run_cuda(text, name, arrays, shape):
    """Run a kernel of CUDA text on the host, on arrays in C order; return its result."""
    result = np.empty(shape, "float32")
    call = getattr(host_library(text), name)
    call(*[pointer(a) for a in arrays], pointer(result), ctypes.c_longlong(result.size))
    return result


@pytest.mark.skipif(find_host() is None, reason="needs a C++ compiler")
@pytest.mark.parametrize(
    "shapes",
    [
        ((4, 5), (5,)),
        ((4, 5), (4, 1)),
        ((1, 3, 1), (2, 1, 5)),
        ((2, 3, 4), (3, 1)),
        ((6,), (1,)),
        ((2, 3, 4), (2, 1, 4)),
    ],
)
def test_cuda_text_of_broadcast_inputs_computes_them(shapes):
    a, b = (np.random.default_rng(1).normal(size=s).astype("float32") for s in shapes)
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    net = mx.sym.broadcast_sub(mx.sym.broadcast_mul(x, y), mx.sym.sin(y) if shapes[1] == np.broadcast(a, b).shape else y)
    (row,) = net.simple_bind(mx.cpu(), "null", x=a.shape, y=b.shape).explain()
    want = a * b - b
    order = [a if v.name == "x" else b for v in row.inputs]
    found = run_cuda(row.cuda_source, "mxop_fused", order, want.shape)
    np.testing.assert_allclose(found, want, rtol=1e-6)


def test_cuda_text_is_what_is_launched(simulated_gpu):
    """The bodies of the kernels that a GPU makes are those that are shown, of strips as well."""
    import fake_cupy

    x, b = mx.sym.Variable("x"), mx.sym.Variable("b")
    away = mx.sym.broadcast_sub(x, mx.sym.mean(x, axis=1, keepdims=True))
    net = mx.sym.tanh(mx.sym.broadcast_add(away**2, b)) * 3
    shapes = {"x": (64, 32), "b": (32,)}
    (told,) = net.simple_bind(mx.cpu(), "null", **shapes).explain()
    fake_cupy.made.clear()
    gpu = net.simple_bind(simulated_gpu, "null", **shapes)
    gpu.forward()
    (row,) = gpu.explain()
    assert told.kind == row.kind == "strip"
    (made,) = [text for name, text in fake_cupy.made.items() if name.startswith("mxop_rows_")]
    launched = re.sub(r", (?:float |double )?s0\b", "", made)  # the length of rows is an argument
    assert told.cuda_source == row.cuda_source == launched.replace("s0", "((float)32.0)")


def test_cuda_text_of_what_is_no_strip_on_a_gpu(simulated_gpu):
    """Of few long rows, each kernel is shown; the formulas are those that are launched."""
    import fake_cupy

    x = mx.sym.Variable("x")
    net = mx.sym.tanh(mx.sym.broadcast_sub(x, mx.sym.mean(x, axis=1, keepdims=True))) * 3
    (told,) = net.simple_bind(mx.cpu(), "null", x=(16, 5000)).explain()
    assert told.kind == "strip"
    gpu = net.simple_bind(simulated_gpu, "null", x=(16, 5000))
    gpu.forward()
    assert len(gpu.explain()) == 2 and gpu.explain()[1].kind == "fused"
    for row in gpu.explain():
        body = [line for line in map(str.strip, row.cuda_source.splitlines()) if line.startswith(("const float t", "y0 ="))]
        name = re.search(r"void (mxop_\w+)\(const float \*(in0|data)", row.cuda_source)[1]
        made = fake_cupy.made.get(f"{name}_whole") or fake_cupy.made.get(f"{name}_parts") or fake_cupy.made[name]
        assert body and all(line in told.cuda_source and line in made for line in body)


def test_json_and_text(executor):
    told = executor.explain()
    data = json.loads(told.to_json(indent=1))
    assert data["nbytes"] == told.nbytes and len(data["schedule"]) == len(told)
    assert data["schedule"][1]["formula"] == told[1].formula and data["schedule"][1]["source"] == told[1].source
    assert data["buffers"][0]["tenants"][0]["name"] == told.buffers[0].tenants[0].name
    text = str(told)
    assert text == repr(told) and "tanh0 = tanh(h + b)" in text and f"{len(told)} calls on cpu(0)" in text
    html = told._repr_html_()
    assert html.count("<tr>") == len(told) + len(told.buffers) + 2 and "tanh(h + b)" in html


def test_explaining_changes_nothing(executor):
    for name, value in executor.arg_dict.items():
        value[:] = np.random.default_rng(len(name)).normal(size=value.shape)
    head = mx.nd.ones((3,))
    executor.forward(is_train=True)
    executor.backward(head)
    before = [a.asnumpy() for a in (*executor.outputs, *executor.grad_arrays)]
    str(executor.explain()), str(executor.explain(False))
    executor.forward(is_train=True)
    executor.backward(head)
    for a, b in zip(before, (*executor.outputs, *executor.grad_arrays), strict=True):
        np.testing.assert_array_equal(a, b.asnumpy())


def test_bandwidth_is_measured_once():
    assert bandwidth.copy_bandwidth(mx.cpu(), 1 << 30) == bandwidth.copy_bandwidth(mx.cpu(), 1 << 31) > 0
    assert bandwidth._measured.cache_info().hits >= 1


def test_predicted_time_is_a_floor():
    """A run takes no less than moving its bytes.  Both are measured in turn: what else runs on the machine slows both."""
    x = mx.sym.Variable("x")
    executor = mx.sym.exp(x * 2).simple_bind(mx.cpu(), "null", x=(1 << 22,))
    floors, seconds = [], []
    for _ in range(5):
        bandwidth._measured.cache_clear()
        floors.append(executor.explain().seconds)
        start = time.perf_counter()
        executor.forward()
        seconds.append(time.perf_counter() - start)
    assert min(seconds) > 0.2 * min(floors)


# ---- measured times ----------------------------------------------------------------------------------------------------
def filled(executor):
    for name, value in executor.arg_dict.items():
        value[:] = np.random.default_rng(len(name)).normal(size=value.shape)
    return executor


def test_every_step_has_a_measured_time(executor):
    assert all(r.measured is None and r.ratio is None for r in executor.explain())
    assert executor.explain().measured is executor.explain().slowest is None
    told = filled(executor).explain(measure=True)
    assert all(0 <= r.measured < 1 for r in told) and {r.phase for r in told} == {"forward", "backward"}
    assert told.runs >= 5 and told.lasting == []
    assert told.measured == pytest.approx(sum(r.measured for r in told)) and told.slowest in told.rows
    assert all(r.ratio == pytest.approx(r.measured / r.seconds) for r in told)
    assert {r.phase for r in executor.explain(is_train=False, measure=True)} == {"forward"}
    data = json.loads(told.to_json())
    assert data["runs"] == told.runs and [r["measured"] for r in data["schedule"]] == [r.measured for r in told]
    assert [r["ratio"] for r in data["schedule"]] == [r.ratio for r in told]


def test_measured_times_are_shown(executor):
    told, plain = filled(executor).explain(measure=True), executor.explain()
    assert f"Measured: {rows.time_text(told.measured)} (medians of {told.runs} runs)" in str(told)
    assert f"the slowest is step {told.slowest.step}" in str(told) and "Measured" not in str(plain)
    title = next(line for line in str(told).splitlines() if line.startswith("step"))
    assert title.split() == ["step", "phase", "kind", "moves", "at", "least", "takes", "times", "share", "what"]
    row = next(line for line in str(told).splitlines() if "h = dot(x, w)" in line)
    assert rows.time_text(told[0].measured) in row and f"{told[0].measured / told.measured:.0%}" in row
    html = told._repr_html_()
    assert (
        html.count("<th>") == plain._repr_html_().count("<th>") + 3 and f"<td>{rows.time_text(told[0].measured)}</td>" in html
    )


def test_the_slow_step_is_found():
    """A step that sleeps takes what it sleeps, whatever else the machine does."""

    class Slow(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            time.sleep(0.005)
            self.assign(out_data[0], req[0], in_data[0] * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * 2)

    @mx.operator.register("explain_slow")
    class SlowProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Slow()

    y = mx.sym.exp(mx.sym.Custom(mx.sym.exp(mx.sym.Variable("x")), op_type="explain_slow", name="slow"))
    told = y.simple_bind(mx.cpu(), "null", x=(3,)).explain(measure=True)
    assert told.slowest.members == ["slow"] and told.slowest.measured > 0.004
    assert told.lasting == ["slow"] and "states that they keep outside of arrays are not restored: slow" in str(told)


class Count(mx.operator.CustomOp):
    """Adds to its state at every forward."""

    def forward(self, is_train, req, in_data, out_data, aux):
        aux[0][:] = aux[0] + 1
        self.assign(out_data[0], req[0], in_data[0] * aux[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        if in_data[0].shape == (7,):
            raise ValueError("seven")
        self.assign(in_grad[0], req[0], out_grad[0] * aux[0])


@mx.operator.register("explain_count")
class CountProp(mx.operator.CustomOpProp):
    def list_auxiliary_states(self):
        return ["seen"]

    def infer_shape(self, shapes):
        return shapes, [shapes[0]], [[1]]

    def create_operator(self, ctx, shapes, dtypes):
        return Count()


def everything(executor):
    arrays = (*executor.arg_arrays, *executor.grad_arrays, *executor.aux_arrays, *executor.outputs)
    return [a.asnumpy() for a in arrays if a is not None]


@pytest.mark.parametrize("req", ["write", "add"])
def test_measuring_changes_no_array(req):
    x = mx.sym.Variable("x")
    y = mx.sym.Custom(mx.sym.sin(x), mx.sym.Variable("seen"), op_type="explain_count", name="count")
    y = mx.sym.softmax(mx.sym.broadcast_mul(y, mx.sym.exp(x)))
    measured, other = (filled(y.simple_bind(mx.cpu(), req, x=(4,))) for _ in range(2))
    for executor in (measured, other):
        executor.grad_dict["x"][:] = 3
        executor.forward(is_train=True)
        executor.arg_dict["x"][:] = 7  # what backward reads was computed before
    before = everything(measured)
    told = measured.explain(measure=True)
    assert told.runs >= 5 and measured.aux_arrays[0].asscalar() == 1
    for a, b in zip(before, everything(measured), strict=True):
        np.testing.assert_array_equal(a, b)
    for executor in (measured, other):
        executor.backward(mx.nd.array([1, -2, 3, 0.5]))
    for a, b in zip(everything(measured), everything(other), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_failing_step_is_named_and_changes_no_array():
    y = mx.sym.Custom(mx.sym.Variable("x"), mx.sym.Variable("seen"), op_type="explain_count", name="count")
    executor = filled(y.simple_bind(mx.cpu(), x=(7,)))
    executor.forward(is_train=True)
    before = everything(executor)
    with pytest.raises(Exception, match="seven") as raised:
        executor.explain(measure=True)
    assert "count" in str(raised.value) + "".join(getattr(raised.value, "__notes__", ()))
    for a, b in zip(before, everything(executor), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not mx.autograd.is_training() and not mx.autograd.is_recording()


def test_measuring_needs_no_forward_before():
    """Head gradients are not there yet; what memory held may be slow numbers, or none."""
    x = mx.sym.Variable("x")
    executor = mx.sym.exp(x).simple_bind(mx.cpu(), x=(100,))
    executor._heads.arrays[0][:] = np.nan
    assert executor.explain(measure=True).runs and np.isnan(executor._heads.arrays[0].asnumpy()).all()
    executor.backward(mx.nd.ones((100,)))  # runs forward first
    assert executor.grad_dict["x"].asnumpy().tolist() == [1.0] * 100
    empty = mx.sym.exp(x).bind(mx.cpu(), [mx.nd.empty((0,))]).explain(measure=True)
    assert [r.ratio for r in empty] == [None] * len(empty) and str(empty)


def test_operators_from_outside_are_explained():
    class Twice(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * 2)

    @mx.operator.register("explain_twice")
    class TwiceProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Twice()

    y = mx.sym.Custom(mx.sym.Variable("x"), op_type="explain_twice", name="twice")
    told = mx.sym.exp(y).simple_bind(mx.cpu(), x=(3,)).explain()
    assert told[0].formula[0].startswith("twice = Custom(x") and told[0].source is None
    assert json.loads(told.to_json())["schedule"]


@pytest.mark.parametrize("n, text", [(0, "0 B"), (999, "999 B"), (1500, "1.5 KB"), (2e9, "2 GB")])
def test_sizes_as_text(n, text):
    assert rows.bytes_text(n) == text


@pytest.mark.parametrize("seconds, text", [(2, "2 s"), (0.0025, "2.5 ms"), (3e-6, "3 us"), (5e-8, "50 ns"), (0, "0 ns")])
def test_times_as_text(seconds, text):
    assert rows.time_text(seconds) == text


def test_formulas_are_valid_python():
    """What is printed means what the formula means: evaluated again, with brackets where they are needed."""
    a, b, c = (input_(i) for i in range(3))
    names = {a: "a", b: "b", c: "c"}
    values = {"a": 1.7, "b": -0.6, "c": 2.3}
    for build in (
        lambda a, b, c: a - (b - c), lambda a, b, c: a - b - c, lambda a, b, c: a / (b / c), lambda a, b, c: a / b * c,
        lambda a, b, c: (a + b) * c, lambda a, b, c: -(a + b) * -c, lambda a, b, c: abs(b) ** (a - c),
        lambda a, b, c: (a + 3.5) ** 2 - -b, lambda a, b, c: -2.5 * b - (a < c) * (b + 1), lambda a, b, c: a % (c * b + 9),
        lambda a, b, c: (a * b) * (a * b) + (a * b), lambda a, b, c: 1 / (1 / (a - b)), lambda a, b, c: (-a) ** 2 / 2,
    ):  # fmt: skip
        space = dict(values)
        for line in readable([expr.call("add", build(a, b, c), 0.0)], names, ["result"]):
            exec(line, {"abs": abs}, space)
        assert space["result"] == pytest.approx(build(**values)), readable([build(a, b, c)], names, ["result"])
    assert readable([a, a], names, ["p", "q"]) == ["p = a", "q = a"]


def test_constants_have_a_place():
    x = mx.sym.Variable("x")
    y = mx.sym.broadcast_add(mx.sym.softmax(x), mx.sym.arange(3, name="steps"))
    executor = y.simple_bind(mx.cpu(), "null", x=(2, 3))
    places = {v.place for row in executor.explain().rows for v in row.inputs}
    assert any(place.startswith("constant steps") for place in places)
