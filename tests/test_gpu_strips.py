"""Strips and plans on a GPU, against the CPU: on a CUDA device (``pytest -m gpu``), and simulated on every machine."""

from math import prod

import fake_cupy
import numpy as np
import pytest
from cuda_compilers import find_nvrtc, nvrtc_ptx

import mxop as mx
from mxop import nd
from mxop._gpu import strips


def layer_norm(F, x, g):
    return F.LayerNorm(x, g, g + 1, axis=-1)


def softmax(F, x, g):
    return F.softmax(x, temperature=0.5)


def standardized(F, x, g):
    away = F.broadcast_sub(x, F.max(x, axis=-1, keepdims=True))
    return F.broadcast_div(away, 1 + F.sum(F.exp(away), axis=-1, keepdims=True)) * F.broadcast_add(x, g)


def lengths(F, x, g):
    return F.broadcast_mul(F.norm(x, axis=-1, keepdims=True), g) + F.broadcast_div(x, 1 + F.mean(x * x, axis=-1, keepdims=True))


def with_numbers_of_rows(F, x, g):
    """Numbers of rows that are results, and are read again, by all threads of the row."""
    out, mean, deviation = F.LayerNorm(x, g, g, axis=-1, output_mean_var=True)
    return F.broadcast_add(F.broadcast_mul(out, mean), deviation)


FUNCTIONS = (layer_norm, softmax, standardized, lengths, with_numbers_of_rows)
SHAPES = ((40, 300), (5, 7), (33,), (3, 4, 50), (300, 17), (2, 1), (260, 1030))


def arrays(shape, dtype, ctx):
    rng = np.random.default_rng(len(shape) + shape[-1])
    x, g = rng.normal(size=shape) * 2, rng.uniform(0.5, 2, shape[-1:])
    return nd.array(x, dtype=dtype, ctx=ctx), nd.array(g, dtype=dtype, ctx=ctx)


def results(function, shape, dtype, ctx):
    """Return a result and the gradients of both arguments."""
    x, g = arrays(shape, dtype, ctx)
    x.attach_grad(), g.attach_grad()
    run = mx.graph.compiled(lambda x, g: function(mx.nd if isinstance(x, nd.NDArray) else mx.sym, x, g))
    with mx.autograd.record():
        y = run(x, g)
        loss = (y * y).sum()
    loss.backward()
    assert y.context == ctx and x.grad.context == ctx
    return [a.astype("float64").asnumpy() for a in (y, x.grad, g.grad)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_strips_of_both_devices_agree(gpu, function, dtype):
    for shape in SHAPES:
        if dtype != "float32" and shape != SHAPES[0]:
            continue  # the host's compiler is slow; what differs is reading and writing
        here, there = (results(function, shape, dtype, ctx) for ctx in (mx.cpu(), gpu))
        for a, b in zip(here, there, strict=True):
            size = max(np.abs(a[np.isfinite(a)]).max(), 1)
            np.testing.assert_allclose(b, a, rtol=0, atol={"float32": 2e-5, "float64": 1e-12, "float16": 8e-3}[dtype] * size)


def test_a_composite_is_one_kernel(gpu, kept):
    """A softmax on an array of a GPU is a plan, and that is one strip."""
    x = nd.array(np.random.default_rng(0).normal(size=(31, 40)), ctx=gpu)
    nd.softmax(x)
    (plan,) = kept()
    assert plan.device.number == 0 and plan.described()[0] == "softmax"
    assert [type(node.op).__name__ for node in plan.pattern.graph.nodes if node.op is not None] == ["Strip"]


def test_plans_take_arrays_however_they_lie(gpu):
    """Views that are not in C order, or begin in the middle of a word."""
    x = np.random.default_rng(1).normal(size=(9, 65)).astype("float32")
    for view in (lambda a: a.T, lambda a: a[:, 1:], lambda a: a[1:], lambda a: a[::2], lambda a: a[1:, ::-1]):
        found = nd.softmax(view(nd.array(x, ctx=gpu)))
        np.testing.assert_allclose(found.asnumpy(), nd.softmax(nd.array(view(x))).asnumpy(), rtol=1e-5)
        found = mx.graph.compiled(lambda a: mx.nd.exp(a) * 2 - a)(view(nd.array(x, ctx=gpu)))
        np.testing.assert_allclose(found.asnumpy(), np.exp(view(x)) * 2 - view(x), rtol=1e-5)


def test_plans_of_many_arrays_of_one_shape(gpu):
    """Each run has memory of its own, and leaves what earlier ones made."""
    rng = np.random.default_rng(2)
    given = [rng.normal(size=(20, 30)).astype("float32") for _ in range(5)]
    found = [nd.log_softmax(nd.array(x, ctx=gpu)) for x in given]
    for x, y in zip(given, found, strict=True):
        np.testing.assert_allclose(y.asnumpy(), nd.log_softmax(nd.array(x)).asnumpy(), rtol=1e-5)


def test_gradients_of_gradients_are_plans_too(gpu):
    found = []
    for ctx in (mx.cpu(), gpu):
        x, _ = arrays((20, 30), "float64", ctx)
        x.attach_grad()
        with mx.autograd.record():
            (first,) = mx.autograd.grad((nd.softmax(x) ** 3).sum(), [x], create_graph=True)
            loss = (first * first).sum()
        loss.backward()
        found.append(x.grad.asnumpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9, atol=1e-12)


def test_rows_that_shared_memory_does_not_hold(simulated_gpu):
    """What is kept of them has memory of its own, in each run."""
    x, _ = arrays((3, 14000), "float32", mx.cpu())
    expected = nd.softmax(x)
    found = nd.softmax(x.as_in_context(simulated_gpu))
    np.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), rtol=1e-4)
    assert "char *own" in "".join(text for name, text in fake_cupy.made.items() if name.startswith("mxop_rows_"))


def bits(function, shape, dtype, ctx):
    """Return a result and the gradients, bit by bit, and the texts of the row kernels."""
    fake_cupy.made.clear()
    found = [a.tobytes() for a in results(function, shape, dtype, ctx)]
    return found, [text for name, text in fake_cupy.made.items() if name.startswith("mxop_rows_")]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_stages_read_again_stays_in_shared_memory(simulated_gpu, monkeypatch, anew, function, dtype):
    """The bits are those of rows that are read from memory each time."""
    shapes = SHAPES if dtype == "float32" else SHAPES[:1]
    found = [bits(function, shape, dtype, simulated_gpu) for shape in shapes]
    monkeypatch.setattr(strips.Strip, "_read_again", lambda strip, stages: {})
    anew()
    for shape, (values, texts) in zip(shapes, found, strict=True):
        again, plain = bits(function, shape, dtype, simulated_gpu)
        assert values == again and not any("[k] = q" in text and " = c" in text for text in plain)
        assert prod(shape[-1:]) == 1 or any("= c0[k] = q0[" in text and "= c0[k];" in text for text in texts)


@pytest.mark.parametrize("length, copies", [(1028, True), (12288, True), (12289, False)])
def test_rows_that_are_kept_fit_into_shared_memory(simulated_gpu, kernels_made, length, copies):
    x, g = arrays((3, length), "float32", mx.cpu())
    fake_cupy.made.clear()
    found = nd.LayerNorm(*(a.as_in_context(simulated_gpu) for a in (x, g, g)))
    np.testing.assert_allclose(found.asnumpy(), nd.LayerNorm(x, g, g).asnumpy(), rtol=1e-5, atol=1e-5)
    (text,) = [text for name, text in fake_cupy.made.items() if name.startswith("mxop_rows_")]
    assert ("= c0[k] = q0[k];" in text) is copies and text.count("= c0[k];") == 2 * copies


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_other_lengths_compile_nothing(simulated_gpu, function):
    """Where the same is kept, and read by words of one size."""
    _, texts = bits(function, (40, 300), "float32", simulated_gpu)
    _, others = bits(function, (24, 212), "float32", simulated_gpu)
    assert texts == others and texts


def test_other_lengths_of_rows_in_memory_compile_nothing(simulated_gpu):
    texts = []
    for length in (14000, 13000):
        fake_cupy.made.clear()
        nd.softmax(nd.ones((2, length), ctx=simulated_gpu))
        texts.append([text for text in fake_cupy.made.values() if "char *own" in text])
    assert texts[0] == texts[1] != []


def test_rows_that_a_stage_changes_are_not_kept(simulated_gpu):
    """An executor may write a result where an argument lies; what is kept of it would be what it was."""
    shape, numbers = (4, 6), [((), inputs, outputs) for inputs, outputs in (([0], [1]), ([0, 1], [0]), ([0], [2]))]
    strip = strips.Strip.__new__(strips.Strip)
    strip.rows, strip.n, strip.lanes_log2, strip.in_memory, strip.row_bytes = 4, 1, 5, False, {}
    strip.arrays = [(shape, (6, 1), 0)] * 3
    assert strip._read_again([(*n, None, shape) for n in numbers]) == {}
    assert strip._read_again([(*n, None, shape) for n in numbers[::2]]) == {0: 32}
    assert strip._read_again([(*numbers[0], None, shape), (*numbers[2], None, (4, 3, 6))]) == {}


def test_inputs_on_two_devices_are_refused(simulated_gpu):
    x, g = arrays((4, 5), "float32", mx.cpu())
    with pytest.raises(mx.errors.OpValueError, match="different devices"):
        nd.LayerNorm(x.as_in_context(simulated_gpu), g, g)


def strip_of(function, shape, dtype="float32"):
    x, g = mx.sym.Variable("x"), mx.sym.Variable("g")
    types = {"x": dtype, "g": dtype}
    executor = function(mx.sym, x, g).simple_bind(mx.cpu(), "null", type_dict=types, x=shape, g=shape[-1:])
    return [row.cuda_source for row in executor.explain() if row.kind == "strip"]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_nvrtc_compiles_strips(function):
    path = find_nvrtc()
    if path is None:
        pytest.skip("nvidia-cuda-nvrtc is not installed (pip install nvidia-cuda-nvrtc)")
    for dtype in ("float32", "float64", "float16"):
        found = strip_of(function, (40, 300), dtype)
        assert found
        for source in found:
            ptx = nvrtc_ptx(path, source, ("--gpu-architecture=compute_90",))
            assert ".visible .entry mxop_rows_" in ptx and "bar.sync" in ptx


def test_a_prepared_call_casts_what_the_call_casts(gpu, request):
    """Integers beside floats: the kernel alone would read them as they are."""

    @mx.op.elementwise(name="_kept_by_a_test", integers=("kept",))
    def kept_or_less(data, kept):
        return mx.op.F.where(kept, data, -1.0)

    request.addfinalizer(lambda: mx.op.unregister("_kept_by_a_test"))
    x, kept = nd.array([1.5, 2.5, 3.5], ctx=gpu), nd.array([1, 0, 1], dtype="int32", ctx=gpu)
    symbol = mx.sym._internal._kept_by_a_test(mx.sym.Variable("x"), mx.sym.Variable("kept"))
    executor = symbol.bind(gpu, {"x": x, "kept": kept}, grad_req="null")
    assert executor.forward()[0].asnumpy().tolist() == [1.5, -1.0, 3.5]
