"""Kernels of the hybrid language for the GPU: how they are cut into CUDA kernels, which NVRTC compiles and the host runs."""

import contextlib
import gc
import re
import weakref

import cuda_compilers
import numpy as np
import pytest
from hybrid_kernels import Host, matmul

import mxop as mx
from mxop import dtypes
from mxop.operator import Custom, kernel
from mxop.operator.hybrid import Hybrid, cuda


@kernel
def normalized(x, eps):
    y = output_tensor(x.shape, x.dtype)
    total = allocate((x.shape[0],), x.dtype)
    n = x.shape[1]
    for i in range(x.shape[0]):
        for j in reduce(n):
            total[i] += x[i, j]
    for i, j in grid(x.shape):
        y[i, j] = x[i, j] / (total[i] / n + eps)
    return y


@kernel
def running_sum(x):
    y = output_tensor(x.shape, x.dtype)
    for i in serial(x.shape[0]):
        y[i] = x[i] + (y[i - 1] if i > 0 else 0.0)
    return y


@kernel
def mean_subtracted(x):
    y = output_tensor(x.shape, x.dtype)
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    for i in range(x.shape[0]):
        y[i] = x[i] - s / x.shape[0]
    return y


@kernel
def gather(table, index):
    y = output_tensor((index.shape[0], table.shape[1]), table.dtype)
    for arg in grid(y.shape):
        y[arg] = table[index[arg[0]], arg[1]]
    return y


@kernel
def steps(x):
    y = output_tensor(x.shape, x.dtype)
    for i in parallel(1, x.shape[0], 2):
        y[i] = float16(x[i]) + max(x[i], i, 2.0) + sqrt(x[i]) * rsqrt(x[i]) + erf(x[i]) + power(x[i], 2) + i // 2 + i % 2
    return y


CASES = {  # kernel, dtypes, shapes, attributes, which stages run on the grid
    "matmul": (matmul, ["float32"] * 2, [(3, 4), (4, 5)], (), [True]),
    "normalized": (normalized, ["float32"], [(3, 4)], (0.5,), [True, True]),
    "running_sum": (running_sum, ["float64"], [(6,)], (), [False]),
    "mean_subtracted": (mean_subtracted, ["float32"], [(6,)], (), [False]),
    "gather": (gather, ["float32", "int32"], [(4, 3), (5,)], (), [True]),
    "steps": (steps, ["float32"], [(9,)], (), [True]),
    "half": (matmul, ["float16"] * 2, [(3, 4), (4, 5)], (), [True]),
}


def stages(name, checked=False):
    function, types, shapes, attributes, _ = CASES[name]
    program = Hybrid(function)
    known = program.compiled([dtypes.code_of(t) for t in types], [len(s) for s in shapes], attributes).types
    return known, cuda.CudaTranslator(known, checked).stages


@pytest.mark.parametrize("name", CASES)
def test_stages(name):
    _, found = stages(name)
    assert [s.spread for s in found] == CASES[name][4]
    for stage in found:
        assert ("gridDim" in stage.text) is stage.spread


def test_nested_loops_share_the_grid():
    (stage,) = stages("matmul")[1]
    assert re.search(r"_mx_total\d+ = _mx_n\d+ \* _mx_n\d+;", stage.text)
    assert "for (long long v_k" in stage.text and "for (long long v_j" not in stage.text


def test_a_scalar_of_shapes_is_computed_in_every_stage():
    _, found = stages("normalized")
    assert all("v_n = n1_x;" in stage.text for stage in found)


def test_checked_indices():
    (stage,) = stages("gather", checked=True)[1]
    assert "mx_at(((long long)v_index[mx_at(" in stage.text and "mx_outside)\n{" in stage.text


def test_allocation_inside_a_loop():
    @kernel
    def f(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            t = allocate((2,), x.dtype)
            t[0] = x[i]
            y[i] = t[0]
        return y

    with pytest.raises(mx.errors.DeviceError, match="allocates 't' inside a loop"):
        cuda.CudaTranslator(Hybrid(f).compiled([0], [1], ()).types)


@pytest.mark.parametrize("name, checked", [*((n, False) for n in CASES), ("gather", True), ("matmul", True)])
def test_nvrtc_compiles_every_stage(name, checked):
    path = cuda_compilers.find_nvrtc()
    if path is None:
        pytest.skip("needs NVRTC")
    text = cuda.standalone(stages(name, checked)[1])
    ptx = cuda_compilers.nvrtc_ptx(path, text, ("--std=c++17", "-arch=sm_80"))
    assert ptx.count(".entry") == len(stages(name)[1])


@pytest.fixture
def on_host(monkeypatch, kernels_made):
    """Return a function that runs a program's CUDA text on NumPy arrays."""
    if cuda_compilers.find_host() is None:
        pytest.skip("needs a C++ compiler")
    monkeypatch.setattr(cuda.device, "id_of", lambda array: 0)
    monkeypatch.setattr(cuda.device, "require", lambda place: Host)
    monkeypatch.setattr(cuda.device, "using", lambda place: contextlib.nullcontext())

    def run(program, arrays, attributes=()):
        known = program.known([a.shape for a in arrays], [dtypes.code_of(a.dtype) for a in arrays], attributes)
        outputs = [np.empty(s, dtypes.numpy_dtype(c)) for s, c in zip(known.out_shapes, known.out_codes, strict=True)]
        cuda.run(known, arrays, outputs)
        return outputs

    return run


@pytest.mark.parametrize("name", CASES)
def test_the_text_computes_what_plain_python_does(name, on_host):
    function, types, shapes, attributes, _ = CASES[name]
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.5, 2.5, s).astype(t) for s, t in zip(shapes, types, strict=True)]
    (given,) = on_host(Hybrid(function), arrays, attributes)
    tolerance = 2e-3 if types[0] == "float16" else 1e-6
    np.testing.assert_allclose(given, function(*arrays, *attributes), rtol=tolerance)


@pytest.mark.parametrize("x_type", ["float32", "float64", "float16", "int8", "int32", "int64", "bfloat16"])
def test_words_and_operators(x_type, on_host):
    @kernel
    def f(x, a):
        y = output_tensor((x.shape[0], 20), "float64")
        for i in range(x.shape[0]):
            v = x[i]
            y[i, 0] = v // 3 + v % 3 + v * 2 - (-v)
            y[i, 1] = v // -3 + v % -3 + v / 3
            y[i, 2] = max(v, a, 1) + min(v, 2.5) + abs(v) + sign(v)
            y[i, 3] = round(v / 2) + floor(v / 2) + ceil(v / 2) + trunc(v / 2)
            y[i, 4] = int32(v) + int8(v / 4) + float16(v / 3) + ceil_div(v, 4)
            y[i, 5] = tanh(v) + erf(v) + atan(v) + atan2(v, 2.0) + sin(v) * cos(v)
            y[i, 6] = exp(v / 9) + expm1(v / 9) + log(abs(v) + 1) + sqrt(abs(v)) + rsqrt(abs(v) + 1.0)
            y[i, 7] = (1 if isnan(v) or isinf(v) else 2) + (v**2) + power(abs(v) + 1.0, 1.5)
            y[i, 8] = v if 0 < v <= 4 and x[i - 1] > -9 else 1
            y[i, 9] = 1 if not (v > 2) else 0
            y[i, 10] = v // 0.0 if v > 3 else 5.0 % 0.75
        return y

    x = np.array([-5, -1, 0, 1, 2, 3, 7]).astype(dtypes.numpy_dtype(dtypes.code_of(x_type)))
    (given,) = on_host(Hybrid(f), [x], (2,))
    np.testing.assert_allclose(given, f(x, 2), rtol=2e-6 if x_type != "float64" else 1e-13)


@pytest.mark.parametrize("name", ["matmul", "normalized", "running_sum", "mean_subtracted"])
def test_gradients(name, on_host):
    """The derived kernel gives on the GPU's text what it gives when it is compiled by numba."""
    function, _, shapes, attributes, _ = CASES[name]
    rng = np.random.default_rng(1)
    arrays = [rng.uniform(0.5, 2.5, s).astype("float64") for s in shapes]
    program = Hybrid(function)
    codes = [dtypes.FLOAT64] * len(arrays)
    derived = program.derived
    heads = [rng.normal(size=s) for s in program.known([a.shape for a in arrays], codes, attributes).out_shapes]
    wanted = [np.empty_like(a) for a in arrays]
    given = [*arrays, *heads]
    attributes = (*attributes, tuple(range(len(arrays))))
    known = derived.known([a.shape for a in given], [dtypes.FLOAT64] * len(given), attributes)
    derived.compute(known, given, wanted, as_python=True)
    for found, expected in zip(on_host(derived, given, attributes), wanted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_index_outside_of_its_tensor(on_host):
    with pytest.raises(IndexError, match="an index is outside of its tensor"):
        on_host(Hybrid(gather), [np.ones((4, 3), "float32"), np.array([7], "int32")])


def test_integers_wrap_around(on_host):
    """What overflows is unsigned: of signed numbers, compilers take it that they never do."""

    @kernel
    def wrapped(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = (x[i] + 1) * x[i + 1 - 1]
        return y

    for name, ctype in (("int32", "int"), ("int64", "long long")):
        text = cuda.CudaTranslator(Hybrid(wrapped).compiled([dtypes.code_of(name)], [1], ()).types).text
        assert text.count(f"(unsigned {ctype})") == 4 and "v_i + " in text
        x = np.array([np.iinfo(name).max, -5, np.iinfo(name).min], name)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(on_host(Hybrid(wrapped), [x])[0], (x + 1) * x)


def test_index_into_a_tensor_without_elements(on_host):
    """What stands in for an element that is not there has a place."""
    with pytest.raises(IndexError, match="an index is outside of its tensor"):
        on_host(Hybrid(gather), [np.ones((0, 3), "float32"), np.array([7], "int32")])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_tensor_as_the_index_of_a_store(dtype, on_host):
    @kernel
    def scattered(x, at):
        y = output_tensor(x.shape, x.dtype)
        for i in serial(x.shape[0]):
            y[int32(at[i])] = x[i]
        return y

    x, at = np.arange(4.0), np.array([2, 0, 3, 1]).astype(dtypes.numpy_dtype(dtypes.code_of(dtype)))
    (given,) = on_host(Hybrid(scattered), [x, at])
    assert given.tolist() == [1, 3, 0, 2]


def test_names_that_look_like_lengths(on_host):
    @kernel
    def f(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            x_n0 = x[i] * 2
            y[i] = x_n0
        return y

    assert on_host(Hybrid(f), [np.arange(3.0)])[0].tolist() == [0, 2, 4]


def test_numbers_that_follow_from_data(on_host):
    """Only what follows from shapes and attributes is computed before everything else."""

    @kernel
    def f(x):
        y = output_tensor(x.shape, x.dtype)
        a = x[1]
        b = a * 2
        for i in range(x.shape[0]):
            y[i] = b + x[i]
        return y

    assert on_host(Hybrid(f), [np.arange(1.0, 4.0)])[0].tolist() == [5, 6, 7]


def test_stages_go_with_their_program(on_host):
    program = Hybrid(gather)
    on_host(program, [np.ones((4, 3), "float32"), np.array([2], "int32")])
    gone = weakref.ref(program.compiled([dtypes.FLOAT32, dtypes.INT32], [2, 1], ()).types)
    del program
    gc.collect()
    assert gone() is None


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_on_the_gpu(name):
    function, types, shapes, attributes, _ = CASES[name]
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.5, 2.5, s).astype(t) for s, t in zip(shapes, types, strict=True)]
    wanted = function(*arrays, *attributes)
    found = Custom(function)(*(mx.nd.array(a, dtype=a.dtype, ctx=mx.gpu()) for a in arrays), *attributes)
    assert found.context == mx.gpu()
    tolerance = 5e-3 if types[0] == "float16" or name == "steps" else 1e-5
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.gpu
def test_index_outside_on_the_gpu():
    table = mx.nd.ones((4, 3), ctx=mx.gpu())
    with pytest.raises(IndexError, match="an index is outside of its tensor"):
        Custom(gather)(table, mx.nd.array([7], dtype="int32", ctx=mx.gpu()))
