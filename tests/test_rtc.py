"""``mx.rtc`` on a simulated GPU: what is launched, and what is refused; ``-m gpu`` runs it on the machine's."""

import sys
import types

import numpy as np
import pytest

import mxop as mx

SOURCE = r"""
extern "C" __global__ void axpy(const float *x, float *y, float alpha) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    y[i] += alpha * x[i];
}
"""
SIGNATURE = "const float *x, float *y, float alpha"


@pytest.fixture
def launched(simulated_gpu, monkeypatch):
    """The calls of CuPy's functions, of which ``axpy`` does what it says."""
    calls = []

    class RawModule:
        def __init__(self, code, options=(), name_expressions=()):
            self.given = code, options, name_expressions

        def get_function(self, name):
            if name not in self.given[0]:
                raise RuntimeError("named symbol not found")

            def run(grid, block, arguments, shared_mem=0):
                calls.append((self.given[1:], name, grid, block, shared_mem, [getattr(a, "dtype", None) for a in arguments]))
                x, y, alpha = arguments
                y._host[...] += alpha * x._host

            return run

    monkeypatch.setattr(sys.modules["cupy"], "RawModule", RawModule, raising=False)
    return calls


def axpy(ctx, **kwargs):
    kernel = mx.rtc.CudaModule(SOURCE, **kwargs).get_kernel("axpy", SIGNATURE)
    x, y = mx.nd.ones((10,), ctx=ctx), mx.nd.zeros((10,), ctx=ctx)
    kernel.launch([x, y, 3], ctx, (1, 1, 1), (10, 1, 1))
    return y.asnumpy().tolist()


def test_launch(simulated_gpu, launched):
    assert axpy(simulated_gpu, options=["-O1"], exports="axpy<float>") == [3.0] * 10
    (call,) = launched
    assert call == ((("-O1",), ("axpy<float>",)), "axpy", (1, 1, 1), (10, 1, 1), 0, [np.dtype("float32")] * 3)


@pytest.mark.gpu
def test_launch_on_the_machine_s_gpu():
    assert axpy(mx.gpu(0)) == [3.0] * 10


def test_refused(simulated_gpu, launched):
    module = mx.rtc.CudaModule(SOURCE)
    kernel = module.get_kernel("axpy", SIGNATURE)
    x = mx.nd.ones((4,), ctx=simulated_gpu)
    grid = ((1, 1, 1), (4, 1, 1))
    for args, message in [
        ([x, x], "takes 3 arguments, 2 given"), ([x, x, "a"], "argument 2 of 'axpy' is 'a'; expected float32"),
        ([x, 3.0, 1], "argument 1 of 'axpy' is 3.0; expected an NDArray"), ([mx.nd.ones((4,)), x, 1], "on cpu"),
        ([x.astype("float64"), x, 1], "is float64 on gpu"), ([x.reshape((2, 2))[:, 0], x, 1], "do not follow each other"),
    ]:  # fmt: skip
        with pytest.raises(mx.MXNetError, match=message):
            kernel.launch(args, simulated_gpu, *grid)
    with pytest.raises(mx.MXNetError, match="run on a GPU"):
        kernel.launch([x, x, 1], mx.cpu(), *grid)
    with pytest.raises(mx.MXNetError, match="expected three numbers"):
        kernel.launch([x, x, 1], simulated_gpu, (1,), (4, 1, 1))
    with pytest.raises(mx.MXNetError, match="symbol not found"):
        module.get_kernel("other", SIGNATURE).launch([x, x, 1], simulated_gpu, *grid)
    for signature in ("float[] x", "long x", ""):
        with pytest.raises(mx.MXNetError, match="is not a parameter"):
            module.get_kernel("axpy", signature)
    with pytest.raises(mx.MXNetError, match="expected a str"):
        mx.rtc.CudaModule(b"")
    assert not launched


def test_without_a_gpu(monkeypatch):
    broken = types.ModuleType("cupy")  # installed, but no device is there
    monkeypatch.setitem(sys.modules, "cupy", broken)
    monkeypatch.setattr("mxop._gpu.device._cupy", None)
    monkeypatch.setattr("mxop._gpu.device._checked", set())
    with pytest.raises(mx.MXNetError, match="no CUDA device is visible"):
        mx.rtc.CudaModule(SOURCE)
