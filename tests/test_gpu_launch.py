"""How formulas are launched on a GPU: by CuPy's ElementwiseKernel, over arrays of any strides or by words; what is compiled."""

import sys

import fake_kernels
import numpy as np
import pytest
from comparing import ADD, WRITE, into
from processes import run_python

import mxop as mx
from mxop import nd

WORDS = "mx_pack<float, V>"


def launched(name="mxop_broadcast_add"):
    """Return the text of the last kernel of a name."""
    return fake_kernels.made[name]


def compiled_by(run):
    """Return the number of texts that a function has compiled."""
    before = len(fake_kernels.compiled)
    run()
    return len(fake_kernels.compiled) - before


@pytest.mark.parametrize("shapes, words", [
    ([(8,), (8,)], False),  # small
    ([(64, 128), (64, 128)], True),
    ([(64, 128), (1, 128)], True),
    ([(64, 128), (64, 1)], True),
    ([(5000,), (5000,)], True),  # and a remainder
    ([(64, 127), (1, 127)], True),  # words of one element
])  # fmt: skip
def test_large_arrays_go_by_words(simulated_gpu, shapes, words):
    x, y = (mx.nd.random.uniform(shape=s) for s in shapes)
    found = nd.broadcast_add(x.as_in_context(simulated_gpu), y.as_in_context(simulated_gpu))
    np.testing.assert_array_equal(found.asnumpy(), x.asnumpy() + y.asnumpy())
    assert (WORDS in launched()) is words and "CUPY_FOR" in launched()


@pytest.mark.parametrize("part, words", [(np.s_[::2, ::3], False), (np.s_[::-1], True), (np.s_[:, 4:100], True)])
def test_views_are_read_where_they_lie(simulated_gpu, part, words):
    x = mx.nd.random.uniform(shape=(256, 192))
    found = nd.exp(x.as_in_context(simulated_gpu)[part])
    np.testing.assert_allclose(found.asnumpy(), nd.exp(x[part]).asnumpy(), rtol=1e-6)
    assert (WORDS in launched("mxop_exp")) is words


@pytest.mark.parametrize("shape, axes", [
    ((70, 90), (1, 0)), ((90, 64), (1, 0)), ((3, 64, 70), (0, 2, 1)), ((33, 5, 65), (2, 1, 0)), ((2, 40, 3, 50), (2, 3, 0, 1)),
    ((3, 2, 40, 50), (1, 0, 3, 2)), ((4100, 16), (1, 0)),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "uint8"])
@pytest.mark.parametrize("req", [WRITE, ADD])
def test_what_is_turned_goes_by_tiles(simulated_gpu, shape, axes, dtype, req):
    x = nd.array(np.arange(np.prod(shape)).reshape(shape) % 101, dtype=dtype)
    want = x.asnumpy().transpose(axes)
    found = nd.ones(want.shape, dtype=dtype, ctx=simulated_gpu)
    fake_kernels.made.clear()
    into("transpose", [x.as_in_context(simulated_gpu)], found, req, axes=axes)
    np.testing.assert_array_equal(found.asnumpy(), want + (req == ADD))
    assert "tile[lane][r]" in launched("mxop_copy")
    y = x.as_in_context(simulated_gpu).transpose(axes).astype("float32")  # converted on the way
    np.testing.assert_array_equal(y.asnumpy(), want.astype("float32"))


def test_formulas_of_what_is_turned_go_by_tiles(simulated_gpu):
    x = nd.array(np.random.default_rng(0).normal(size=(100, 80)))
    on_gpu = x.as_in_context(simulated_gpu)
    y = mx.sym.transpose(mx.sym.var("x")) * 3  # the transpose is a view here
    np.testing.assert_array_equal(y.eval(x=on_gpu)[0].asnumpy(), x.asnumpy().T * np.float32(3))
    assert any("tile[lane][r]" in text for text in fake_kernels.made.values())
    part = on_gpu.T[1:, ::2] * 3  # no two neighbours lie beside each other
    np.testing.assert_array_equal(part.asnumpy(), x.asnumpy().T[1:, ::2] * np.float32(3))


RUNNING = [((5, 7), 0), ((5, 7), 1), ((3000,), 0), ((3, 5001), 1), ((2, 2049, 3), 1), ((7, 40), 0), ((2, 4, 33), 1),
           ((4, 6), None), ((0, 3), 0)]  # fmt: skip


@pytest.mark.parametrize("shape, axis", RUNNING)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8", "bool"])
def test_running_sums(simulated_gpu, shape, axis, dtype):
    x = nd.array(np.random.default_rng(0).integers(0, 3, shape), dtype=dtype)
    for wanted in (None, "int32", "float64", "bool"):
        params = {"axis": axis, "dtype": wanted}
        want = nd.cumsum(x, **params)
        found = nd.cumsum(x.as_in_context(simulated_gpu), **params)
        assert found.dtype == want.dtype
        np.testing.assert_array_equal(found.asnumpy(), want.asnumpy())


def test_results_that_lie_apart(simulated_gpu):
    x = np.arange(12, dtype="float32").reshape(3, 4)
    g, at = nd.array(x, ctx=simulated_gpu), nd.array([1, 0, 2], ctx=simulated_gpu)
    part = g[:, 1:3]
    np.testing.assert_array_equal(nd.take(part, at).asnumpy(), x[[1, 0, 2], 1:3])
    np.testing.assert_array_equal(nd.cumsum(part, axis=0).asnumpy(), x[:, 1:3].cumsum(0))
    for call, want in ((lambda out: nd.cumsum(g, axis=1, out=out), x.cumsum(1)),
                       (lambda out: nd.take(g, at, out=out), x[[1, 0, 2]]),
                       (lambda out: nd._internal._take_grad(g, at, g, out=out), x[[1, 0, 2]])):  # fmt: skip
        whole = nd.zeros((3, 8), ctx=simulated_gpu)
        call(whole[:, ::2])
        np.testing.assert_array_equal(whole.asnumpy()[:, ::2], want)
        assert not whole.asnumpy()[:, 1::2].any()


def test_running_sums_of_fractions_do_not_vary(simulated_gpu):
    x = nd.array(np.random.default_rng(0).normal(size=(2, 10_000)), ctx=simulated_gpu)
    found = nd.cumsum(x, axis=1).asnumpy()
    np.testing.assert_allclose(found, x.asnumpy().astype("float64").cumsum(1), atol=2e-3)
    infinite = nd.array([1, np.inf, 2, -np.inf, 3], ctx=simulated_gpu)
    np.testing.assert_array_equal(nd.cumsum(infinite).asnumpy(), [1, np.inf, np.inf, np.nan, np.nan])


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8"])
@pytest.mark.parametrize("index", ["int64", "int32", "float32", "float16", "uint8"])
@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_rows_that_indices_name(simulated_gpu, dtype, index, mode):
    rng = np.random.default_rng(0)
    for shape, axis in (((9, 8), 0), ((9, 8), 1), ((5, 3, 7), 1), ((6,), 0), ((4, 16), 0)):
        x = nd.array(rng.integers(-50, 50, shape), dtype=dtype)
        at = rng.integers(0 if index == "uint8" else -20, 20, (3, 5)).astype("float64")
        if index.startswith("f"):
            at.flat[:4] = np.nan, np.inf, -np.inf, 1.7
        at = nd.array(at, dtype=index)
        params = {"axis": axis, "mode": mode}
        want = nd.take(x, at, **params)
        found = nd.take(x.as_in_context(simulated_gpu), at.as_in_context(simulated_gpu), **params)
        np.testing.assert_array_equal(found.asnumpy(), want.asnumpy())
    assert "mx_pack<unsigned int, 4>" in launched("mxop_take") or dtype != "float32"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "uint8", "int8", "int32", "int64"])
@pytest.mark.parametrize("n", [1, 7, 4096, 4099])
@pytest.mark.parametrize("req", [WRITE, ADD])
def test_types_requests_and_remainders(simulated_gpu, dtype, n, req):
    if dtype == "bfloat16" and not mx.dtypes.has_bfloat16():
        pytest.skip("needs ml_dtypes")
    values = np.arange(n) % 23
    x, y = (nd.array(values + k, dtype=dtype) for k in (0, 1))
    out = nd.ones((n,), dtype=dtype)
    on_gpu = [a.as_in_context(simulated_gpu) for a in (x, y, out)]
    into("broadcast_mul", [x, y], out, req)
    into("broadcast_mul", on_gpu[:2], on_gpu[2], req)
    assert on_gpu[2].asnumpy().tobytes() == out.asnumpy().tobytes()


def test_subnormal_numbers_are_kept_and_others_are_as_cupy_wants_them(simulated_gpu):
    nd.ones((2,), ctx=simulated_gpu).exp()
    program = sys.modules["cupy"].cuda.compiler._NVRTCProgram("text")
    ours = ("--fmad=false", "-DMXOP_SUBNORMALS", "-arch=sm_90", "-ftz=true")
    assert program.compile(ours)[0] == ours[:-1]
    assert program.compile(ours[2:])[0] == ours[2:]


def test_a_cupy_that_flushes_subnormal_numbers_is_told_once(simulated_gpu):
    del sys.modules["cupy"].cuda.compiler._NVRTCProgram
    with pytest.warns(UserWarning, match="subnormal float32 numbers become 0") as told:
        nd.ones((2,), ctx=simulated_gpu).exp()
        nd.ones((2,), ctx=simulated_gpu).log()
    assert len(told) == 1


def test_a_new_number_compiles_nothing(simulated_gpu):
    x = nd.random.uniform(shape=(6, 5)).as_in_context(simulated_gpu)

    def run(number):
        calls = [x * number, nd.clip(x, -number, number), nd.LayerNorm(x, nd.ones((5,), ctx=x.context), nd.zeros(
            (5,), ctx=x.context), eps=number), nd.softmax(x, temperature=number)]  # fmt: skip
        return [c.asnumpy() for c in calls]

    run(0.5)
    assert compiled_by(lambda: run(0.25)) == 0
    expected = nd.softmax(x.as_in_context(mx.cpu()), temperature=0.125).asnumpy()
    np.testing.assert_allclose(run(0.125)[3], expected, rtol=1e-6)


def test_a_new_small_size_compiles_nothing(simulated_gpu):
    def run(n):
        x = nd.ones((n, n), ctx=simulated_gpu)
        return (nd.exp(x) + x[0]).asnumpy()

    run(5)
    assert compiled_by(lambda: [run(n) for n in (6, 9, 30)]) == 0


SECOND = """
import sys
sys.path.insert(0, {tests!r})
import fake_cupy, fake_kernels
sys.modules["cupy"] = fake_cupy.module()
from mxop import nd, autograd
import mxop as mx
x = nd.ones((70, 70), ctx=mx.gpu(0))
x.attach_grad()
with autograd.record():
    y = nd.softmax(nd.tanh(x * 0.3 + x[0])).sum()
y.backward()
import hashlib
print(*sorted(hashlib.sha256(t.encode()).hexdigest() for t in fake_kernels.compiled))
"""


def test_a_second_process_compiles_nothing(simulated_gpu):
    """CuPy keeps on disk what it compiled, by the text: two processes make the same texts."""
    code = SECOND.format(tests=str(__import__("pathlib").Path(__file__).parent))
    first, second = (set(run_python(code, PYTHONHASHSEED=seed).split()) for seed in ("1", "2"))
    assert len(first) > 3 and first == second


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("n", [4096, 4097, 4160, 5000, 70001])
def test_random_numbers_are_the_cpus(simulated_gpu, dtype, n):
    found = []
    for ctx in (mx.cpu(), simulated_gpu):
        mx.random.seed(7)
        found.append([nd.random.uniform(shape=(n,), dtype=dtype, ctx=ctx), nd.random.randint(0, 99, shape=(n,), ctx=ctx)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def test_the_doctor_tries_what_a_gpu_does(simulated_gpu, monkeypatch, capsys):
    from mxop.cli import main

    cupy = sys.modules["cupy"]
    monkeypatch.setattr(cupy, "__version__", "14.2.0", raising=False)
    monkeypatch.setattr(cupy.cuda.runtime, "runtimeGetVersion", lambda: 13020, raising=False)
    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceProperties", lambda k: {"name": b"Some"}, raising=False)
    main(["doctor"])
    told = capsys.readouterr().out
    for what in ("formula", "reduction", "product", "graph"):
        assert told.count(f"a {what}: as on the CPU;") == 2  # devices
    monkeypatch.setattr(fake_kernels.ElementwiseKernel, "__call__", None)
    main(["doctor"])
    assert "a formula: fails (TypeError: 'NoneType' object is not callable)" in capsys.readouterr().out
