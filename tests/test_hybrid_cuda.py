"""Kernels of the hybrid language for the GPU: how they are cut into CUDA kernels, and that cupyx.jit understands them."""

import inspect

import cuda_compilers
import numpy as np
import pytest
from hybrid_kernels import matmul

import mxop as mx
from mxop import dtypes
from mxop.operator import Custom, kernel
from mxop.operator.hybrid import Program, cuda


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
        y[i] = (
            float16(x[i]) + max(x[i], i, 2.0) + sqrt(x[i]) * rsqrt(x[i]) + erf(x[i]) + power(x[i], 2) + i // 2 + i % 2
        )
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
    program = Program(function.source)
    known = program.types([dtypes.code_of(t) for t in types], [len(s) for s in shapes], attributes)
    return known, cuda.CudaTranslator(known, checked).stages


@pytest.mark.parametrize("name", CASES)
def test_stages(name):
    _, found = stages(name)
    assert [s.spread for s in found] == CASES[name][4]
    for stage in found:
        compile(stage.text, "stage", "exec")
        assert ("_mx_threads()" in stage.text) is stage.spread


def test_nested_loops_share_the_grid():
    (stage,) = stages("matmul")[1]
    assert "_mx_total3 = _mx_n1 * _mx_n2" in stage.text
    assert "for k in range" in stage.text and "for j in" not in stage.text


def test_a_scalar_of_shapes_is_computed_in_every_stage():
    _, found = stages("normalized")
    assert all("n = x.shape[1]" in stage.text for stage in found)


def test_checked_indices():
    (stage,) = stages("gather", checked=True)[1]
    assert "_mx_at(index[_mx_at(" in stage.text and "_mx_outside" in stage.text.splitlines()[0]


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
        cuda.CudaTranslator(Program(f.source).types([0], [1], ()))


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name, checked", [*((n, False) for n in CASES), ("gather", True), ("matmul", True)])
def test_cupy_translates_every_stage(name, checked):
    pytest.importorskip("cupyx.jit")
    from cupyx.jit import _compile, _cuda_types

    known, found = stages(name, checked)
    source = known.source

    def array(variable):
        return _cuda_types.CArray(dtypes.numpy_dtype(known.codes[variable]), known.ranks[variable], True, False)

    types = [array(v) if v.kind == "input" else _cuda_types.Scalar(np.dtype("float64")) for v in source.arguments]
    types += [array(v) for v in source.results if v.kind == "output"]
    types += [_cuda_types.CArray(np.dtype("int64"), 1, True, False)] if checked else []
    types += [array(v) for v in source.variables if v.kind == "local"]
    for stage in found:
        function = cuda._define(stage.name, stage.text, cuda.helpers())
        assert inspect.getsource(function) == stage.text
        code = _compile.transpile(function, ['extern "C"', "__global__"], "numpy", types, _cuda_types.void).code
        assert f"__global__ void {stage.name}(" in code
        compile_to_ptx(code)


def compile_to_ptx(code):
    import os

    import cupy

    nvrtc = cuda_compilers.find_nvrtc()
    if nvrtc is None:
        return
    include = os.path.join(os.path.dirname(cupy.__file__), "_core", "include")
    folders = [include, *(f"{include}/cupy/_cccl/{part}" for part in ("cub", "thrust", "libcudacxx"))]
    cuda_home = os.environ.get("CUDA_PATH", "/usr/local/cuda")
    if not os.path.isdir(f"{cuda_home}/include"):
        return  # CuPy's headers want those of CUDA
    heads = "".join(f"#include <cupy/{h}.cuh>\n" for h in ("complex", "carray", "atomics"))
    text = "#define CUPY_JIT_MODE\n" + heads + "#include <cupy/math_constants.h>\n" + code
    options = ("--std=c++17", "-arch=sm_80", "-default-device", *(f"-I{f}" for f in [*folders, f"{cuda_home}/include"]))
    assert ".entry" in cuda_compilers.nvrtc_ptx(nvrtc, text, options)


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
