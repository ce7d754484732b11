"""Operators with loops: what ``@loops`` makes is an operator like any other, and its compiled code is found again."""

import itertools
import pickle
import textwrap

import numpy as np
import pytest
from processes import run_python

import mxop as mx
from mxop import op
from mxop.op import info, loops
from mxop.operator import HybridError
from mxop.operator.hybrid.body import Hybrid
from mxop.operator.hybrid.translate import Translator
from mxop.records import record

pytest.importorskip("numba")


@pytest.fixture(scope="module", autouse=True)
def let_go():
    """Let go the operators of this file after it."""
    yield
    for name in [n for n in op.names() if n.startswith("loops_")]:
        op.unregister(name)


@loops
def loops_running_product(data, *, start: float = 1.0):
    """The product of the elements so far."""
    result = output_tensor(data.shape, data.dtype)
    so_far = start
    for i in range(data.shape[0]):
        so_far = so_far * data[i]
        result[i] = so_far
    return result


@loops
def loops_sampled(data, places):
    """Elements of rows between two places."""
    result = output_tensor((data.shape[0], places.shape[1]), data.dtype)
    last = data.shape[1] - 2
    for n in parallel(data.shape[0]):
        for j in range(places.shape[1]):
            k = max(min(int32(floor(places[n, j])), last), 0)
            part = places[n, j] - float32(k)
            result[n, j] = data[n, k] * (1 - part) + data[n, k + 1] * part
    return result


@loops
def loops_histogram(data, *, bins: int, scale: tuple[float, ...] = (1.0, 0.0)):
    """Two results: how many elements fall into each bin, and the scaled data."""
    counts = output_tensor((bins,), "int32")
    scaled = output_tensor(data.shape, data.dtype)
    for i in range(data.shape[0]):
        counts[min(max(int32(data[i]), 0), bins - 1)] += 1
        scaled[i] = data[i] * scale[0] + scale[1]
    return counts, scaled


def product(data, start=1.0):
    return start * np.cumprod(data)


def sampled(data, places):
    k = np.clip(np.floor(places).astype(int), 0, data.shape[1] - 2)
    low, high = np.take_along_axis(data, k, 1), np.take_along_axis(data, k + 1, 1)
    return low * (1 - (places - k)) + high * (places - k)


record("loops_running_product", product, shapes=[((4,),), ((0,),)], params=[{"start": 2.0}, {}], dtypes="l", order=2)
record("loops_sampled", sampled, shapes=[((2, 4), (2, 3))], domain=((-2, 2), (0.1, 0.9)), dtypes="l", order=1)


@pytest.mark.parametrize("name, orders", [("loops_running_product", 2), ("loops_sampled", 1)])
def test_check_op(name, orders):
    report = mx.test_utils.check_op(name, orders=orders)
    assert report["kind"] == "loops" and report["checks"]["gradient"] and report["checks"]["shapes back"]


def test_arrays_symbols_and_files(tmp_path):
    x = mx.nd.array([1, 2, 3])
    assert mx.nd.loops_running_product(x, start=2).asnumpy().tolist() == [2, 4, 12]
    net = mx.sym.loops_running_product(mx.sym.Variable("x"), start=3.0, name="p") * 2
    net.save(str(tmp_path / "net.json"))
    again = mx.sym.load(str(tmp_path / "net.json"))
    assert '"op": "loops_running_product"' in again.tojson()
    executor = again.simple_bind(mx.cpu(), x=(3,))
    assert executor.forward(is_train=True, x=x)[0].asnumpy().tolist() == [6, 12, 36]
    executor.backward(mx.nd.ones(3))
    assert executor.grad_dict["x"].asnumpy().tolist() == [54, 24, 12]
    assert again.infer_shape_partial()[0] == [None] or again.infer_shape_partial()[0] == [()]
    assert pickle.loads(pickle.dumps(loops_running_product)) is loops_running_product
    assert info("loops_running_product")["kind"] == "loops"
    assert info("loops_running_product")["FGradient"]["rule"] == "derived from its loops"


def test_derivatives_of_every_order_are_operators():
    x = mx.nd.array([1.0, 2.0, 3.0], dtype="float64")
    x.attach_grad()
    with mx.autograd.record():
        y = loops_running_product(x)
        for _ in range(2):
            y = mx.autograd.grad(y.sum(), x, create_graph=True)[0]
    y.backward()  # 1 x0 + x0 x1 + x0 x1 x2: what is left of the third derivative is that of the last
    assert x.grad.asnumpy().tolist() == [2, 2, 2]
    assert mx.op.get("_backward__backward_loops_running_product").kind == "loops"


def test_parameters_and_several_results():
    counts, scaled = mx.nd.loops_histogram(mx.nd.array([0.5, 1.5, 1.6, 9]), bins=3, scale=(2, 1))
    assert counts.asnumpy().tolist() == [1, 2, 1] and counts.dtype == np.int32
    np.testing.assert_allclose(scaled.asnumpy(), [2, 4, 4.2, 19], rtol=1e-6)
    x = mx.nd.array([0.5, 1.5])
    x.attach_grad()
    with mx.autograd.record():
        total = (mx.nd.loops_histogram(x, bins=3, scale=(3.0,) * 2)[1] * mx.nd.array([1, 2])).sum()
    total.backward()
    assert x.grad.asnumpy().tolist() == [3, 6]
    with pytest.raises(mx.MXNetError, match=r"loops_histogram.*bins.*missing"):
        mx.nd.loops_histogram(x)


def test_the_same_in_custom():
    """What stands after a star is an attribute, with its default."""

    def scaled(x, *, by=2.0):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] * by
        return y

    op = mx.operator.Custom(scaled)
    assert op(mx.nd.ones(1)).asnumpy().tolist() == [2] and op(mx.nd.ones(1), by=5.0).asnumpy().tolist() == [5]
    assert mx.operator.kernel(scaled)(np.ones(1), 3.0).tolist() == [3]


def test_a_state_is_written():
    @loops(writes={"total": 1})
    def loops_counted(data, total):
        """Pass the data on, and add it to a state."""
        result = output_tensor(data.shape, data.dtype)
        for i in range(data.shape[0]):
            result[i] = data[i]
            total[i] += data[i]
        return result, total

    total = mx.nd.array([1, 1])
    y = mx.nd.loops_counted(mx.nd.array([2, 3]), total)
    assert y.asnumpy().tolist() == [2, 3] and total.asnumpy().tolist() == [3, 4]


def test_defined_again():
    """The derivative goes with the definition."""
    grads = []
    for power in (2, 3):
        text = "y[i] = x[i] * x[i]" + " * x[i]" * (power - 2)
        source = f"def loops_again(x):\n    y = output_tensor(x.shape, x.dtype)\n    for i in range(len(x)):\n        {text}\n"
        grads.append(_slope(source + "    return y\n", power))
    assert grads == [[4.0], [12.0]]


def _slope(text, power):
    import linecache

    file = f"<loops {power}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace = {"__name__": __name__}
    exec(compile(text, file, "exec"), namespace)
    loops(namespace["loops_again"])
    x = mx.nd.array([2])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.loops_again(x)
    y.backward()
    return x.grad.asnumpy().tolist()


def test_a_rule_goes_before_what_is_derived():
    @loops
    def loops_ruled(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i]
        return y

    @loops_ruled.gradient
    def _(F, heads, inputs, outputs):
        return [heads[0] * 7]

    x = mx.nd.ones(2)
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.loops_ruled(x)
    y.backward()
    assert x.grad.asnumpy().tolist() == [7, 7]


def test_mistakes():
    with pytest.raises(HybridError, match=r"test_loops\.py:\d+: kernel wrong: 'by' is used as a number.*after a star"):

        @loops
        def wrong(x, by):
            y = output_tensor(x.shape, x.dtype)
            for i in range(x.shape[0]):
                y[i] = x[i] * by
            return y

    with pytest.raises(mx.MXNetError, match="has a default, so it is a parameter"):

        @loops
        def wrong_too(x, by=2):
            return x

    @loops
    def loops_underived(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            t = allocate((1,), x.dtype)
            t[0] = x[i]
            y[i] = t[0] * t[0]
        return y

    x = mx.nd.ones(2)
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.loops_underived(x)
    with pytest.raises(mx.MXNetError, match=r"operator loops_underived has no gradient.*inside a loop.*@loops_underived\."):
        y.backward()


# ---- what the gradient is made of -----------------------------------------------------------------------------------------
def backward_text(op, wanted, ranks):
    body = op.body.derived
    codes = [0] * len(ranks)
    return Translator(body.compiled(codes, ranks, (wanted,)).types).text


def test_backward_runs_in_threads_where_iterations_stay_apart():
    text = backward_text(loops_sampled, (0, 1), (2, 2, 2))
    assert text.count("_mx_prange(") == 1
    assert "_mx_zeros" not in text  # numbers are computed again, heads are read where they are


def test_only_wanted_gradients_are_computed():
    assert "data__d[" not in backward_text(loops_sampled, (1,), (2, 2, 2))
    assert "places__d[" not in backward_text(loops_sampled, (0,), (2, 2, 2))


def test_clamped_indices_are_not_checked():
    shapes = loops_sampled.body.shapes([(2, 4), (2, 3)], (), ())
    assert shapes.safe and loops_sampled.body.known([(2, 4), (2, 3)], (0, 0), ()).shapes.safe
    backward = loops_sampled.body.derived.shapes([(2, 4), (2, 3), (2, 3)], (0, 0, 0), ((0, 1),))
    assert backward.safe
    assert not loops_sampled.body.shapes([(2, 1), (2, 3)], (), ()).safe  # there is no second column


def test_a_number_that_may_be_nan_is_no_index():
    @loops
    def loops_clamped(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[int32(min(max(x[i], 0), 1))]
        return y

    assert not loops_clamped.body.shapes([(3,)], (), ()).safe
    with pytest.raises(IndexError), np.errstate(all="ignore"):
        mx.nd.loops_clamped(mx.nd.array([np.nan, 0, 0]))


def test_on_a_gpu(simulated_gpu):
    """Also the gradient, and an index that lies outside."""
    data, places = np.arange(8.0, dtype="float32").reshape(2, 4), np.array([[0.5, 2.25], [1, 7]], "float32")
    found = []
    for ctx in (mx.cpu(), simulated_gpu):
        x, p = mx.nd.array(data, ctx=ctx), mx.nd.array(places, ctx=ctx)
        x.attach_grad(), p.attach_grad()
        with mx.autograd.record():
            y = mx.nd.loops_sampled(x, p)
        y.backward()
        assert y.context == ctx
        found.append([a.asnumpy().tolist() for a in (y, x.grad, p.grad)])
    assert found[0] == found[1]


# ---- on disk --------------------------------------------------------------------------------------------------------------
PROGRAM = """
import mxop as mx
from mxop.op import loops

@loops
def twice(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * FACTOR
    return y

assert mx.nd.twice(mx.nd.array([1, 2])).asnumpy().tolist() == [FACTOR, 2 * FACTOR]
(form,) = twice.body.compiled((0,), (1,), ()).forms.values()
print("found", sum(form.stats.cache_hits.values()), "made", sum(form.stats.cache_misses.values()))
"""


def test_compiled_code_is_found_again(tmp_path):
    path = tmp_path / "program.py"

    def run(factor):
        path.write_text(textwrap.dedent(PROGRAM).replace("FACTOR", factor))
        return run_python(f"import runpy; runpy.run_path({str(path)!r})", timeout=300, MXOP_CACHE_DIR=str(tmp_path / "cache"))

    assert [run("2.0"), run("2.0"), run("3.0"), run("2.0")] == [
        "found 0 made 1", "found 1 made 0", "found 0 made 1", "found 1 made 0",
    ]  # fmt: skip


DERIVED = """
import numba.core.event
import mxop as mx
from mxop.op import loops

@loops
def moving(x, alpha):
    y = output_tensor(x.shape, x.dtype)
    for i in parallel(x.shape[0]):
        state = x[i, 0] * 1.0
        for t in range(x.shape[1]):
            state = alpha[0] * x[i, t] + (1 - alpha[0]) * state
            y[i, t] = state
    return y

mx.context.set_num_threads(2)
variables = [mx.nd.array([[1, 2, 3], [3, 1, 2]]), mx.nd.array([0.25])]
[v.attach_grad() for v in variables]
with numba.core.event.install_recorder("numba:compile") as recorded, mx.autograd.record():
    y = moving(*variables)
    for order in range(3):
        y = sum([(g * g).sum() for g in mx.autograd.grad((y * y).sum(), variables, create_graph=True)])
    y.wait_to_read()
print(sum(event.is_start for _, event in recorded.buffer), y.item())
"""


def test_derivatives_are_found_again(tmp_path):
    """Of every order, in threads too, by the next process."""
    path = tmp_path / "program.py"
    path.write_text(DERIVED)
    (first, value), (second, again) = (
        run_python(f"import runpy; runpy.run_path({str(path)!r})", timeout=600, MXOP_CACHE_DIR=str(tmp_path / "cache")).split()
        for _ in range(2)
    )
    assert int(first) >= 4 and int(second) == 0
    assert value == again


def moving_average(x, alpha):
    y = output_tensor(x.shape, x.dtype)
    for i in parallel(x.shape[0]):
        y[i, 0] = x[i, 0]
        for t in range(1, x.shape[1]):
            y[i, t] = alpha[i] * x[i, t] + (1 - alpha[i]) * y[i, t - 1]
    return y


def test_derived_texts_stay_short():
    """Compilers take as long as a text has statements: an order has about twice those of the one before."""
    body, codes, ranks, wanted, lines = Hybrid.of_function(moving_average), [0, 0], [2, 1], [], []
    for _ in range(4):
        types = body.compiled(codes, ranks, wanted).types
        lines.append(Translator(types, False).text.count("\n"))
        heads = [v.rank for v in types.routine.results]
        wanted = [*wanted, tuple(range(len(codes)))]
        codes, ranks, body = [*codes, *([0] * len(heads))], [*ranks, *heads], body.derived
    assert all(b < 2.4 * a for a, b in itertools.pairwise(lines[1:])), lines
    assert lines[3] < 150, lines


@pytest.mark.parametrize("suffix, keep", [("nbc", 0), ("nbc", 100), ("nbi", 3), ("nbi", 0)])
def test_damaged_files_are_made_again(tmp_path, suffix, keep):
    path, cache = tmp_path / "program.py", tmp_path / "cache"
    path.write_text(textwrap.dedent(PROGRAM).replace("FACTOR", "4.0"))
    code = f"import runpy; runpy.run_path({str(path)!r})"
    run_python(code, timeout=300, MXOP_CACHE_DIR=str(cache))
    (file,) = cache.rglob(f"*.{suffix}")
    file.write_bytes(file.read_bytes()[:keep])
    assert "made 1" in run_python(code, timeout=300, MXOP_CACHE_DIR=str(cache))
    assert "found 1" in run_python(code, timeout=300, MXOP_CACHE_DIR=str(cache))


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("MXOP_CACHE_DIR", str(file))

    @loops
    def loops_uncached(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] + 41.5
        return y

    assert mx.nd.loops_uncached(mx.nd.ones(1)).asnumpy().tolist() == [42.5]
