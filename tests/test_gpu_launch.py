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
    from mxop.__main__ import main

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
