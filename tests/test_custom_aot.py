"""Operators compiled ahead of time: MindSpore's C entry points, from libraries and from sources."""

import os
import shutil
import subprocess

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd
from mxop.operator import Custom, CustomRegOp, DataType

COMPILER = next(
    (c for c in (os.environ.get("CXX", "").split()[:1] or [""]) + ["c++", "g++", "clang++"] if c and shutil.which(c)),
    None,
)
pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")

PLAIN = r"""
#include <string.h>
#include <stdint.h>
extern "C" int CustomAdd(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream,
                         void *extra) {
  constexpr int OUTPUT_INDEX = 2;
  constexpr int TOTAL_PARAM_NUM = 3;
  if (nparam != TOTAL_PARAM_NUM) return 1;
  float *input1 = static_cast<float *>(params[0]);
  float *input2 = static_cast<float *>(params[1]);
  float *output = static_cast<float *>(params[2]);
  int size = 1;
  for (int i = 0; i < ndims[OUTPUT_INDEX]; i++) {
    size *= shapes[OUTPUT_INDEX][i];
  }
  for (int i = 0; i < nparam; i++) {
    if (strcmp(dtypes[i], "float32") != 0) return 2;
  }
  for (int i = 0; i < size; i++) output[i] = input1[i] + input2[i];
  return 0;
}
"""

REDUCE = r"""
#include <string>
#include <vector>
#include "custom_aot_extra.h"

static int destroyed = 0;

class ReduceKernel : public AotKernelData {
 public:
  int64_t axis;
  bool keep_dim;
  float scale;
  std::vector<float> weights;
  ~ReduceKernel() override { ++destroyed; }
};

extern "C" int Destroyed() { return destroyed; }

extern "C" std::vector<int64_t> CustomReduceInferShape(int *ndims, int64_t **shapes, AotExtra *extra) {
  const int64_t axis = extra->Attr<int64_t>("axis");
  const bool keep_dim = extra->Attr<bool>("keep_dim");
  std::vector<int64_t> shape;
  for (int64_t i = 0; i < ndims[0]; i++) {
    if (i != axis) shape.push_back(shapes[0][i]);
    else if (keep_dim) shape.push_back(1);
  }
  return shape;
}

extern "C" int CustomReduceInit(int *ndims, int64_t **shapes, const char **dtypes, AotExtra *extra) {
  size_t workspace_size = 1;
  for (int i = 0; i < ndims[0]; i++) workspace_size *= shapes[0][i];
  std::vector<size_t> workspace = {workspace_size * sizeof(float), 16};
  extra->SetWorkSpace(workspace);
  if (extra->WorkSpace().size() != 2) return 9;
  ReduceKernel *kernel = new ReduceKernel;
  kernel->axis = extra->Attr<int64_t>("axis");
  kernel->keep_dim = extra->Attr<bool>("keep_dim");
  kernel->scale = extra->HasAttr("scale") ? extra->Attr<float>("scale") : 1.0f;
  if (extra->HasAttr("weights")) kernel->weights = extra->Attr<std::vector<float>>("weights");
  if (extra->HasAttr("mode") && extra->Attr<std::string>("mode") == "throw") throw std::runtime_error("bad mode");
  if (extra->HasAttr("mode") && extra->Attr<std::string>("mode") == "code") return 7;
  extra->SetKernelData(kernel);
  return 0;
}

extern "C" int CustomReduce(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream,
                            void *extra_void) {
  AotExtra *extra = static_cast<AotExtra *>(extra_void);
  auto kernel = static_cast<ReduceKernel *>(extra->KernelData());
  if (nparam != 4) return 1;
  if (std::string(dtypes[2]) != "uint8" || ndims[2] != 1 || shapes[3][0] != 16) return 3;
  const float *x = static_cast<float *>(params[0]);
  float *y = static_cast<float *>(params[1]);
  float *copy = static_cast<float *>(params[2]);
  int64_t before = 1, after = 1;
  for (int64_t i = 0; i < kernel->axis; i++) before *= shapes[0][i];
  for (int64_t i = kernel->axis + 1; i < ndims[0]; i++) after *= shapes[0][i];
  const int64_t n = shapes[0][kernel->axis];
  for (int64_t i = 0; i < before * n * after; i++) copy[i] = x[i] * kernel->scale;
  for (int64_t i = 0; i < before; i++)
    for (int64_t k = 0; k < after; k++) {
      float sum = 0;
      for (int64_t j = 0; j < n; j++)
        sum += copy[(i * n + j) * after + k] * (kernel->weights.empty() ? 1.0f : kernel->weights[j]);
      y[i * after + k] = sum;
    }
  return 0;
}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MXOP_CACHE_DIR", str(tmp_path / "cache"))


def source(folder, text, name="op.cc"):
    path = folder / name
    path.write_text(text)
    return path


def library(folder, text, name="op"):
    path = source(folder, text, name + ".cc")
    include = os.path.join(mx.get_include(), "mxop")
    target = folder / f"{name}.so"
    subprocess.run([COMPILER, "-std=c++17", "-shared", "-fPIC", f"-I{include}", str(path), "-o", str(target)], check=True)
    return target


def first(a, b):
    return a


def reduce_info():
    reg = CustomRegOp("reduce").input(0, "x").output(0, "y").attr("axis", "required", "int")
    reg.attr("keep_dim", "required", "bool").attr("scale", "optional", "float")
    reg.attr("weights", "optional", "listFloat").attr("mode", "optional", "str")
    return reg.dtype_format(DataType.F32_Default, DataType.F32_Default).target("CPU").get_op_info()


@pytest.mark.parametrize("make", [source, library], ids=["source", "library"])
def test_a_function(make, tmp_path):
    op = Custom(f"{make(tmp_path, PLAIN)}:CustomAdd", first, first, "aot", bprop=lambda x, y, out, dout: (dout, dout))
    x, y = nd.ones((2, 3)), nd.ones((2, 3)) * 2
    x.attach_grad()
    with autograd.record():
        z = op(x, y)
    z.backward()
    assert (z.asnumpy() == 3).all() and (x.grad.asnumpy() == 1).all()
    assert op(nd.arange(6).reshape((2, 3)).T, nd.zeros((3, 2))).asnumpy().tolist() == [[0, 3], [1, 4], [2, 5]]
    net = op(mx.sym.Variable("a"), mx.sym.Variable("b"))
    assert net.list_arguments() == ["a", "b"]
    assert (mx.sym.load_json(net.tojson()).eval(a=x, b=y)[0].asnumpy() == 3).all()


def test_a_path_from_the_current_folder(tmp_path, monkeypatch):
    library(tmp_path, PLAIN)
    monkeypatch.chdir(tmp_path)
    for path in ("./op.so", "op.so", "./op.cc"):
        assert Custom(f"{path}:CustomAdd", first, first, "aot")(nd.ones(1), nd.ones(1)).asscalar() == 2


def test_codes_of_errors(tmp_path):
    op = Custom(f"{source(tmp_path, PLAIN)}:CustomAdd", first, first, "aot")
    with pytest.raises(mx.MXNetError, match="Custom CustomAdd: CustomAdd returned the error code 2"):
        op(nd.ones(1, dtype="int32"), nd.ones(1, dtype="int32"))
    one = Custom(f"{source(tmp_path, PLAIN)}:CustomAdd", lambda a: a, lambda a: a, "aot")
    with pytest.raises(mx.MXNetError, match="error code 1"):
        one(nd.ones(1))


@pytest.mark.parametrize("make", [source, library], ids=["source", "library"])
def test_init_and_infer_shape(make, tmp_path):
    op = Custom(f"{make(tmp_path, REDUCE)}:CustomReduce", None, lambda t: t, "aot", reg_info=reduce_info())
    x = nd.arange(24).reshape((2, 3, 4))
    for axis in range(3):
        for keep in (True, False):
            wanted = x.asnumpy().sum(axis, keepdims=keep)
            found = op(x, axis, keep)
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found.asnumpy(), wanted)
    wanted = (x.asnumpy() * np.array([1, 2, 4], "float32")[:, None]).sum(1) * 0.5
    np.testing.assert_allclose(op(x, axis=1, keep_dim=False, scale=0.5, weights=[1, 2, 4]).asnumpy(), wanted)
    net = op(mx.sym.Variable("x"), axis=0, keep_dim=True)
    assert net.infer_shape(x=(5, 2))[1] == [(1, 2)]
    for mode, problem in (
        ("throw", "CustomReduceInit threw: bad mode"),
        ("code", "CustomReduceInit returned the error code 7"),
    ):
        with pytest.raises(mx.MXNetError, match=problem):
            op(x, 0, True, mode=mode)


def test_dtype_from_the_info(tmp_path):
    op = Custom(f"{source(tmp_path, REDUCE)}:CustomReduce", None, None, "aot", reg_info=reduce_info())
    assert op(nd.ones((2, 3)), 0, False).asnumpy().tolist() == [2, 2, 2]
    with pytest.raises(TypeError, match=r"\(float64\).*supported: \(float32\) -> \(float32\)"):
        op(nd.ones((2, 3), dtype="float64"), 0, False)


def test_kernel_data_is_deleted(tmp_path):
    import ctypes

    path = library(tmp_path, REDUCE)
    op = Custom(f"{path}:CustomReduce", None, lambda t: t, "aot", reg_info=reduce_info())
    op(nd.ones((2, 3)), 0, False)
    op(nd.ones((2, 3)), 0, False)
    op(nd.ones((3, 3)), 0, False)
    destroyed = ctypes.CDLL(str(path)).Destroyed
    assert destroyed() == 0
    op.body._calls.clear()
    assert destroyed() == 2


ATTRS = r"""
#include "mxop/custom_aot_extra.h"
extern "C" int TypesInit(int *ndims, int64_t **shapes, const char **dtypes, AotExtra *extra) {
  if (extra->Attr<int64_t>("i") != 3 || extra->Attr<int>("i") != 3 || extra->Attr<double>("i") != 3.0) return 1;
  if (extra->Attr<float>("f") != 2.5f || extra->Attr<double>("f") != 2.5) return 2;
  if (!extra->Attr<bool>("b")) return 3;
  if (extra->Attr<std::string>("s") != "text") return 4;
  if (extra->Attr<std::vector<int64_t>>("li") != std::vector<int64_t>{1, 2}) return 5;
  if (extra->Attr<std::vector<float>>("lf") != std::vector<float>{1.5f, 2.f}) return 6;
  if (extra->Attr<std::vector<std::string>>("ls") != std::vector<std::string>{"a", "bc"}) return 7;
  if (extra->Attr<std::vector<bool>>("lb") != std::vector<bool>{true, false}) return 8;
  if (extra->Attr<std::vector<std::vector<int64_t>>>("ll") != std::vector<std::vector<int64_t>>{{1, 2}, {3}}) return 9;
  if (extra->HasAttr("none")) return 10;
  return 0;
}
extern "C" int Types(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream, void *extra) {
  AotExtra *e = static_cast<AotExtra *>(extra);
  static_cast<float *>(params[1])[0] = e->Attr<float>("wrong");
  return 0;
}
"""


def test_attributes_of_every_type(tmp_path):
    reg = CustomRegOp().input(0, "x").output(0, "y").target("CPU")
    for name, kind in (("i", "int"), ("f", "float"), ("b", "bool"), ("s", "str"), ("li", "listInt"), ("lf", "listFloat"),
                       ("ls", "listStr"), ("lb", "listBool"), ("ll", "all"), ("wrong", "all")):  # fmt: skip
        reg.attr(name, "required", kind)
    op = Custom(f"{source(tmp_path, ATTRS)}:Types", lambda s: s, lambda t: t, "aot", reg_info=reg.get_op_info())
    given = {"i": 3, "f": 2.5, "b": True, "s": "text", "li": [1, 2], "lf": [1.5, 2], "ls": ["a", "bc"], "lb": [True, False],
             "ll": [[1, 2], [3]]}  # fmt: skip
    assert op(nd.ones(1), **given, wrong=4.5).asscalar() == 4.5
    with pytest.raises(mx.MXNetError, match="Types threw: attribute 'wrong' is no number of this type"):
        op(nd.ones(1), **given, wrong="text")
    net = mx.sym.load_json(op(mx.sym.Variable("x"), **given, wrong=2).tojson())
    assert net.eval(x=nd.ones(1))[0].asscalar() == 2


def test_several_outputs(tmp_path):
    text = PLAIN.replace("TOTAL_PARAM_NUM = 3", "TOTAL_PARAM_NUM = 4").replace(
        "return 0;\n}", "static_cast<float *>(params[3])[0] = size;\n  return 0;\n}"
    )
    op = Custom(f"{source(tmp_path, text)}:CustomAdd", lambda a, b: (a, (1,)), lambda a, b: (a, a), "aot")
    total, size = op(nd.ones(4), nd.ones(4))
    assert total.asnumpy().tolist() == [2] * 4 and size.asnumpy().tolist() == [4]


def test_a_source_is_compiled_once(tmp_path, monkeypatch):
    path = source(tmp_path, PLAIN)
    op = Custom(f"{path}:CustomAdd", first, first, "aot")
    op(nd.ones(1), nd.ones(1))
    folder = tmp_path / "cache"
    before = sorted(str(p) for p in folder.rglob("*") if p.suffix == ".so")
    Custom(f"{path}:CustomAdd", first, first, "aot")
    assert sorted(str(p) for p in folder.rglob("*") if p.suffix == ".so") == before
    path.write_text(PLAIN.replace("input1[i] + input2[i]", "input1[i] - input2[i]"))
    assert Custom(f"{path}:CustomAdd", first, first, "aot")(nd.ones(1), nd.ones(1)).asscalar() == 0


@pytest.mark.parametrize(
    "func, problem",
    [
        ("CustomAdd", 'takes "lib.so:Func"'),
        ("op.so", 'takes "lib.so:Func"'),
        (":CustomAdd", 'takes "lib.so:Func"'),
        ("op.so:", 'takes "lib.so:Func"'),
        ("missing.so:F", "there is no file 'missing.so'"),
        ("missing.cc:F", "there is no file 'missing.cc'"),
        ("op.so:Missing", "has no function 'Missing'; is it declared extern"),
        ("text.so:F", "'text.so' cannot be loaded: "),
        ("bad.cc:F", "bad.cc did not compile[^$]*error"),
    ],
)
def test_what_cannot_be_loaded(func, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if func.startswith("op.so"):
        library(tmp_path, PLAIN)
    (tmp_path / "text.so").write_text("no library")
    (tmp_path / "bad.cc").write_text("int f( {")
    with pytest.raises(mx.MXNetError, match=problem):
        Custom(func, first, first, "aot")


def test_cuda_sources_say_what_is_missing(tmp_path, monkeypatch):
    path = source(tmp_path, PLAIN, "op.cu")
    monkeypatch.setattr(shutil, "which", lambda name, *a, **k: None)
    with pytest.raises(mx.errors.DeviceError, match=r"op\.cu needs CUDA's compiler nvcc"):
        Custom(f"{path}:CustomAdd", first, first, "aot")


def test_cuda_code_wants_arrays_on_a_gpu(tmp_path):
    if shutil.which("nvcc") is None:
        pytest.skip("needs nvcc")
    text = PLAIN + "__global__ void kernel(float *x) { x[threadIdx.x] = 1; }\n"
    op = Custom(f"{source(tmp_path, text, 'op.cu')}:CustomAdd", first, first, "aot")
    with pytest.raises(mx.errors.DeviceError, match="CUDA code, but its inputs are on the CPU"):
        op(nd.ones(1), nd.ones(1))


def test_without_a_compiler(tmp_path, monkeypatch):
    """A library's Func can be called; Init and InferShape, which are C++, cannot."""
    from mxop.operator import aot

    plain, reduce = library(tmp_path, PLAIN, "plain"), library(tmp_path, REDUCE, "reduce")
    monkeypatch.setattr(aot, "_shim_loaded", [])
    monkeypatch.setattr(shutil, "which", lambda name, *a, **k: None)
    monkeypatch.delenv("CXX", raising=False)
    assert Custom(f"{plain}:CustomAdd", first, first, "aot")(nd.ones(1), nd.ones(1)).asscalar() == 2
    with pytest.raises(mx.errors.DeviceError, match=r"calling its Init and InferShape.*no C\+\+ compiler"):
        Custom(f"{reduce}:CustomReduce", None, lambda t: t, "aot", reg_info=reduce_info())
