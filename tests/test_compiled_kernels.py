"""Kernels without copies: NumPy's arrays that share memory, and functions of C in the place of Python's."""

import ctypes
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym
from mxop.op import DType, kernel

COMPILER = next((c for c in ("gcc", "cc", "clang") if shutil.which(c)), None)
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler on this machine")

SOURCE = r"""
#include <math.h>
#include "mxop/kernel.h"

/* outputs[0] = scale * x + y, outputs[1] = how often it was called with each parameter */
int axpy(const MXOPTensor* const* inputs, const MXOPTensor* const* outputs, const double* params, int threads)
{
    const MXOPTensor *x = inputs[0], *y = inputs[1];
    if (x->dtype != MXOP_FLOAT32 || threads < 1 || x->struct_size < sizeof(MXOPTensor) || x->device_type != MXOP_CPU) return 7;
    if (x->ndim != outputs[0]->ndim || (x->ndim && x->shape[0] != outputs[0]->shape[0])) return 8;
    float* out = (float*)outputs[0]->data;
    for (int64_t i = 0; i < x->size; i++)
        out[i] = (float)params[0] * ((const float*)x->data)[i] + ((const float*)y->data)[i];
    double* seen = (double*)outputs[1]->data;
    for (int i = 0; i < 5; i++) seen[i] = params[i];
    return 0;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "axpy.c").write_text(SOURCE)
    command = [COMPILER, "-O2", "-shared", "-fPIC", f"-I{mx.get_include()}", "-Werror", "-Wall", "-o", str(folder / "axpy.so"),
               str(folder / "axpy.c")]  # fmt: skip
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "axpy.so"))


def capsule_of(library, name=b"mxop.kernel"):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.cast(library.axpy, ctypes.c_void_p).value, name, None)


class Address:
    """As numba's cfunc."""

    def __init__(self, library):
        self.address = ctypes.cast(library.axpy, ctypes.c_void_p).value


FORMS = {
    "ctypes": lambda library: library.axpy,
    "address": lambda library: Address(library).address,
    "object": Address,
    "capsule": capsule_of,
    "cython": lambda library: capsule_of(
        library, b"int (MXOPTensor const *const *, MXOPTensor const *const *, double const *, int)"
    ),
}


def axpy_of(own, function):
    @kernel(num_outputs=2)
    def test_c_axpy(x, y, *, scale: float, flag: bool = True, mode: Literal["a", "b", "c"] = "b", type_: DType = "int8",
                    limit: float | None = None):  # fmt: skip
        """Scale and add, in C."""

    test_c_axpy.shape(lambda x, y, **params: [x, (5,)])
    test_c_axpy.dtype(lambda x, y, **params: [x, "float64"])
    test_c_axpy.gradient(lambda F, heads, inputs, outputs, *, scale, **params: [scale * heads[0], heads[0]])
    test_c_axpy.cpu(function)
    return own(test_c_axpy)


@needs_compiler
@pytest.mark.parametrize("form", FORMS)
def test_a_function_of_c(own, library, form):
    op = axpy_of(own, FORMS[form](library))
    x, y = nd.array([[1.0, 2.0], [3.0, 4.0]]), nd.array([[10.0, 20.0], [30.0, 40.0]])
    out, seen = op(x, y, scale=2.0, mode="c")
    assert out.asnumpy().tolist() == [[12, 24], [36, 48]]
    assert seen.asnumpy()[:4].tolist() == [2, 1, 2, 5] and np.isnan(seen.asnumpy()[4])
    # another call has its own numbers
    assert op(x, y, scale=3.0, limit=0.5, flag=False)[1].asnumpy().tolist() == [
        3,
        0,
        1,
        5,
        0.5,
    ]  # another call, its own numbers
    wide = nd.array([[1.0, 0.0, 2.0], [3.0, 0.0, 4.0]])[:, ::2]
    assert op(wide, y, scale=2.0)[0].asnumpy().tolist() == [[12, 24], [36, 48]]  # what lies in strides is copied
    x.attach_grad()
    with autograd.record():
        z = op(x, y, scale=2.0)[0]
    z.backward()
    assert x.grad.asnumpy().tolist() == [[2, 2], [2, 2]]


@needs_compiler
def test_in_executors_with_every_request_and_in_threads(own, library):
    axpy_of(own, library.axpy)
    net = sym.test_c_axpy(sym.var("x") * 1.5, sym.var("y"), scale=2.0)[0] + 1
    x, y = nd.arange(6).reshape((2, 3)), nd.ones((2, 3))
    executor = net.bind(mx.cpu(), {"x": x, "y": y}, {"x": nd.zeros((2, 3))})
    want = 2 * 1.5 * x.asnumpy() + 2
    for _ in range(3):
        np.testing.assert_array_equal(executor.forward(is_train=True)[0].asnumpy(), want)
    executor.backward(nd.ones((2, 3)))
    assert executor.grad_dict["x"].asnumpy().tolist() == [[3] * 3] * 2
    out, seen = nd.ones((2, 3)), nd.zeros(5, dtype="float64")
    nd.test_c_axpy(x, y, scale=2.0, out=[out, seen])
    np.testing.assert_array_equal(out.asnumpy(), 2 * x.asnumpy() + 1)
    nd.test_c_axpy(x, y, scale=1.0, out=[x, seen])  # over an input
    np.testing.assert_array_equal(x.asnumpy(), np.arange(6).reshape(2, 3) + 1)
    found = []

    def work(k):
        for _ in range(50):
            result = nd.test_c_axpy(nd.full((7,), k), nd.ones(7), scale=2.0)[0].asnumpy()
            found.append((result == 2 * k + 1).all())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert len(found) == 200 and all(found)


@needs_compiler
def test_what_a_function_of_c_refuses(own, library):
    op = axpy_of(own, library.axpy)
    with pytest.raises(mx.MXNetError, match=r"test_c_axpy: its C function returned 7, for float64 \(3,\), float64 \(3,\)"):
        op(nd.ones(3, dtype="float64"), nd.ones(3, dtype="float64"), scale=1.0)
    op.cpu(backend="numpy", when=lambda inputs, outputs, **params: inputs[0].dtype != np.float32)(by_numpy)
    assert op(nd.ones(3, dtype="float64"), nd.ones(3, dtype="float64"), scale=1.0)[0].asnumpy().tolist() == [2, 2, 2]
    with pytest.raises(mx.MXNetError, match=r"capsule is named b'other'; expected 'mxop\.kernel'"):
        op.cpu(capsule_of(library, b"other"))
    with pytest.raises(mx.MXNetError, match="0 is not the address of a function"):
        op.cpu(0)
    with pytest.raises(mx.MXNetError, match="its CPU function is 'axpy'; expected a function"):
        op.cpu("axpy")


def by_numpy(inputs, outputs, *, scale, **params):
    np.add(np.asarray(inputs[0]) * scale, np.asarray(inputs[1]), out=np.asarray(outputs[0]))
    outputs[1][:] = 0


@needs_compiler
def test_parameters_that_c_is_not_given(own, library):
    @kernel
    def test_c_shape(x, *, shape: tuple[int, ...]):
        """Takes a tuple."""

    own(test_c_shape)
    with pytest.raises(mx.MXNetError, match=r"operator test_c_shape: parameter 'shape' .* is not handed to functions of C"):
        test_c_shape.cpu(library.axpy)


@needs_compiler
def test_the_example_of_the_page(own, tmp_path):
    page = (Path(__file__).parent.parent / "docs" / "kinds.md").read_text(encoding="utf-8")
    (tmp_path / "halve.c").write_text(re.search(r"^```\n(#include .*?)^```", page, re.M | re.S)[1])
    flags = ["-O3", "-shared", "-fPIC", f"-I{mx.get_include()}", "-o", str(tmp_path / "halve.so")]
    subprocess.run([COMPILER, *flags, str(tmp_path / "halve.c")], check=True)

    @kernel
    def test_halve(x):
        """Half."""

    own(test_halve)
    test_halve.shape(lambda x: x)
    test_halve.cpu(ctypes.CDLL(str(tmp_path / "halve.so")).halve)
    assert test_halve(nd.array([1.0, 4.0])).asnumpy().tolist() == [0.5, 2]


CYTHON = """
# cython: language_level=3
from cpython.pycapsule cimport PyCapsule_New

cdef extern from "mxop/kernel.h":
    ctypedef struct MXOPTensor:
        void* data
        long long size

cdef api int twice(const MXOPTensor* const* inputs, const MXOPTensor* const* outputs, const double* params,
                   int threads) noexcept nogil:
    cdef long long i
    for i in range(inputs[0].size):
        (<float*>outputs[0].data)[i] = 2 * (<float*>inputs[0].data)[i]
    return 0

capsule = PyCapsule_New(<void*>twice, "mxop.kernel", NULL)
"""


@needs_compiler
@pytest.mark.skipif(find_spec("Cython") is None, reason="needs Cython")
def test_a_function_of_cython(own, tmp_path):
    (tmp_path / "twice.pyx").write_text(CYTHON)
    env = os.environ | {"CFLAGS": f"-O1 -w -I{shlex.quote(mx.get_include())}", "CC": COMPILER}
    code = "from setuptools import setup; from Cython.Build import cythonize; setup(ext_modules=cythonize('twice.pyx'))"
    subprocess.run(
        [sys.executable, "-c", code, "build_ext", "--inplace"], cwd=tmp_path, env=env, check=True, capture_output=True
    )
    from importlib.machinery import ExtensionFileLoader
    from importlib.util import module_from_spec, spec_from_file_location

    path = str(tmp_path / f"twice{sysconfig.get_config_var('EXT_SUFFIX')}")
    spec = spec_from_file_location("twice", path, loader=ExtensionFileLoader("twice", path))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    for function in (module.capsule, module.__pyx_capi__["twice"]):

        @kernel
        def test_cython_twice(x):
            """Twice."""

        test_cython_twice.shape(lambda x: x)
        test_cython_twice.cpu(function)
        assert test_cython_twice(nd.array([1.0, 2.0])).asnumpy().tolist() == [2, 4]
    own(test_cython_twice)


# ---- NumPy's arrays -----------------------------------------------------------------------------------------------------
def test_arrays_of_numpy_share_memory(own):
    seen = []

    @kernel(num_outputs=2)
    def test_both(data):
        """Sorted, and the order."""

    test_both.shape(lambda data: [data, data])
    test_both.dtype(lambda data: [data, "int64"])

    @test_both.both
    def _(xp, inputs, outputs):
        seen.append((inputs[0].ctypes.data, outputs[0].ctypes.data, inputs[0].strides, inputs[0].flags.writeable))
        outputs[1][...] = xp.argsort(inputs[0], axis=-1)
        outputs[0][...] = xp.take_along_axis(inputs[0], outputs[1], axis=-1)

    own(test_both)
    x = nd.array([[3.0, 1.0, 2.0], [1.0, 0.0, 5.0]])
    values, order = test_both(x)
    assert values.asnumpy().tolist() == [[1, 2, 3], [0, 1, 5]] and order.asnumpy().tolist() == [[1, 2, 0], [1, 0, 2]]
    assert seen[-1][0] == np.asarray(x).ctypes.data and seen[-1][1] == np.asarray(values).ctypes.data
    assert seen[-1][3] is False
    test_both(x[:, ::2])
    assert seen[-1][2] == (12, 8)  # strides are handed over
    assert sym.test_both(sym.var("x")).bind(mx.cpu(), {"x": x}).forward()[1].asnumpy().tolist() == order.asnumpy().tolist()


def test_one_function_for_both_devices(own, simulated_gpu):
    @kernel
    def test_both_devices(data):
        """Twice."""

    test_both_devices.shape(lambda data: data)

    @test_both_devices.both
    def _(xp, inputs, outputs):
        outputs[0][...] = inputs[0] * 2

    own(test_both_devices)
    for place in (mx.cpu(), simulated_gpu):
        assert test_both_devices(nd.array([1.0, 2.0], ctx=place)).asnumpy().tolist() == [2, 4]


@needs_compiler
def test_an_operator_may_have_both(own, library):
    op = axpy_of(own, library.axpy)
    op.both(lambda xp, inputs, outputs, **params: None)
    op.cpu(backend="c", when=lambda inputs, outputs, **params: True)(library.axpy)
    wide = nd.array([[1.0, 0.0, 2.0], [3.0, 0.0, 4.0]])[:, ::2]
    assert op(wide, nd.zeros((2, 2)), scale=2.0)[0].asnumpy().tolist() == [[2, 4], [6, 8]]


def test_mistakes_are_told_as_of_any_function(own):
    @kernel
    def test_both_wrong(data):
        """Wrong."""

    test_both_wrong.shape(lambda data: data)
    own(test_both_wrong)
    with pytest.raises(mx.MXNetError, match=r"test_both_wrong.*function for both devices .*\(xp, inputs, outputs\)"):
        test_both_wrong.both(lambda inputs, outputs: None)
    for run, message in (
        (lambda xp, inputs, outputs: inputs[0] * 2, "returned a ndarray, which nobody reads"),
        (lambda xp, inputs, outputs: inputs[0].fill(7), "read-only"),
    ):
        test_both_wrong.both(run)
        with pytest.raises(mx.MXNetError, match=f"(?s)test_both_wrong.*{message}"):
            test_both_wrong(nd.ones(2))
