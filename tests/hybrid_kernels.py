"""Kernels of the hybrid language that several files of tests run, and how they compare them with plain Python."""

import ctypes
import types

import cuda_compilers
import numpy as np
from fake_kernels import NVRTCProgram

import mxop as mx
from mxop.operator import kernel

FLOATS = ["float32", "float64"]
ALL = ["float32", "float64", "float16", "int8", "uint8", "int32", "int64"]
TOLERANCE = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-14}


def compiled(function, *arrays, attributes=()):
    """Run a kernel through Custom on NDArrays; return NumPy arrays."""
    custom = mx.operator.Custom(function)
    found = custom(*(mx.nd.array(a, dtype=a.dtype) for a in arrays), *attributes)
    return tuple(f.asnumpy() for f in found) if isinstance(found, tuple) else found.asnumpy()


def agree(function, *arrays, attributes=(), rtol=None):
    """Compare the compiled with the plain run."""
    given = compiled(function, *arrays, attributes=attributes)
    wanted = function(*(a.copy() for a in arrays), *attributes)
    pairs = [(given, wanted)] if isinstance(wanted, np.ndarray) else list(zip(given, wanted, strict=True))
    for a, b in pairs:
        assert a.dtype == b.dtype and a.shape == b.shape
        tolerance = TOLERANCE.get(a.dtype.name, 0) if rtol is None else rtol
        if tolerance:
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(a.astype("float64"), b.astype("float64"), rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(a, b)


def numbers(shape, dtype, seed=0, low=-5, high=5):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "u":
        low = 0
    return (rng.uniform(low, high, shape)).astype(dtype)


def from_text(text, tmp_path, name="f"):
    path = tmp_path / f"k{len(list(tmp_path.iterdir()))}.py"
    path.write_text(text)
    namespace = {}
    exec(compile(text, str(path), "exec"), namespace)
    return kernel(namespace[name])


@kernel
def matmul(a, b):
    """A product of matrices."""
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in parallel(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0.0
            for k in reduce(a.shape[1]):
                c[i, j] = c[i, j] + a[i, k] * b[k, j]
    return c


@kernel
def outer_product(a, b):
    d = allocate(a.shape, a.dtype)
    c = output_tensor(a.shape, a.dtype)
    with block_realize(c):
        for i0 in range(a.shape[0]):
            for i1 in range(b.shape[1]):
                c[i0, i1] = 0.0
                for i2 in range(a.shape[1]):
                    d[i0, i2] = 2 * a[i0, i2]
                    c[i0, i1] = c[i0, i1] + sin(d[i0, i2] * b[i2, i1])
    return c


@kernel
def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    for i in parallel(x.shape[0]):
        m = x[i, 0]
        for j in range(1, x.shape[1]):
            m = max(m, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - m)
            total += y[i, j]
        for j in vectorize(x.shape[1]):
            y[i, j] /= total
    return y


@kernel
def copied(x):
    y = output_tensor(x.shape, x.dtype)
    for arg in grid(x.shape):
        y[arg] = x[arg]
    return y


class Host:
    """CuPy's part in :mod:`.cuda`, by the host's compiler: one thread does all."""

    zeros, ascontiguousarray = staticmethod(np.zeros), staticmethod(np.ascontiguousarray)

    class RawModule:
        def __init__(self, code, options):
            self.library = cuda_compilers.host_library(code)

        def get_function(self, name):
            kinds = {"i": ctypes.c_longlong, "f": ctypes.c_double, "b": ctypes.c_bool}

            def launch(grid, block, arguments):
                arguments = [getattr(a, "_host", a) for a in arguments]  # of simulated arrays
                getattr(self.library, name)(*(
                    cuda_compilers.pointer(a) if isinstance(a, np.ndarray) else kinds[a.dtype.kind](a) for a in arguments
                ))  # fmt: skip

            return launch

    cuda = types.SimpleNamespace(compiler=types.SimpleNamespace(_NVRTCProgram=type("Program", (NVRTCProgram,), {})))
