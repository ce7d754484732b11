"""What code of users leaves unwritten: zero gradients, an error for outputs, and never what lay in the memory before."""

import numpy as np
import pytest
from comparing import NULL, into
from libraries_util import library, needs_compiler  # noqa: F401

import mxop as mx
from mxop import autograd, nd, sym
from mxop.operator import Custom, CustomOp, CustomOpProp, register

SHAPE = (3, 4)
TYPES = ["float32", "float64", "float16", "int8", "uint8", "int32", "int64", "bool"]
if mx.dtypes.has_bfloat16():
    TYPES.append("bfloat16")


def dirty(*arrays):
    """Leave memory in the pool that is not zero, of the sizes that these arrays have."""
    for a in arrays:
        kept = [nd.full((max(a.nbytes, 1),), 0x5B, dtype="uint8") for _ in range(8)]
        del kept


class Writes(CustomOp):
    """Writes outputs and gradients as functions say, which get the operator, a request, a target and a value."""

    def __init__(self, forward, backward):
        self._forward, self._backward = forward, backward

    def forward(self, is_train, req, in_data, out_data, aux):
        for k, write in enumerate(self._forward):
            if write is not None:
                write(self, req[k], out_data, k, in_data[0] * (k + 1))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        for k, write in enumerate(self._backward):
            if write is not None:
                write(self, req[k], in_grad, k, out_grad[0] * (k + 1))


def assign(op, req, targets, k, value):
    op.assign(targets[k], req, value)


def define(forward=(assign,), backward=(assign,)):
    """Register an operator with one input for each gradient and one output for each forward."""

    class Prop(CustomOpProp):
        def list_arguments(self):
            return [f"x{k}" for k in range(len(backward))]

        def list_outputs(self):
            return [f"y{k}" for k in range(len(forward))]

        def infer_shape(self, in_shape):
            return [in_shape[0]] * len(backward), [in_shape[0]] * len(forward), []

        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Writes(forward, backward)

    register("test_writes")(Prop)
    return "test_writes"


class Silent(CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0])


# ---- gradients ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("req", ["write", "add"])
def test_a_gradient_that_is_not_written_is_zero_or_unchanged(req):
    define(backward=(None, assign, None))
    xs = [nd.ones(SHAPE) for _ in range(3)]
    for x in xs:
        x.attach_grad(req)
        x.grad[:] = 7
    for _ in range(2):
        dirty(xs[0])
        with autograd.record():
            y = nd.Custom(*xs, op_type="test_writes")
        y.backward()
    expected = {"write": (0, 2, 0), "add": (7, 7 + 2 * 2, 7)}[req]
    for x, value in zip(xs, expected, strict=True):
        np.testing.assert_array_equal(x.grad.asnumpy(), np.full(SHAPE, value, "float32"))


def test_a_class_without_backward_has_zero_gradients():
    @register("test_silent")
    class SilentProp(CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Silent()

    x = nd.ones(SHAPE)
    x.attach_grad()
    dirty(x)
    with autograd.record():
        y = nd.Custom(x, op_type="test_silent")
        first = autograd.grad(y, [x], create_graph=True)[0]
        np.testing.assert_array_equal(first.asnumpy(), np.zeros(SHAPE))
        total = (first + x).sum()
    total.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), np.ones(SHAPE))


@pytest.mark.parametrize("req", ["write", "add", "null"])
def test_gradients_of_a_bound_operator(req):
    define(backward=(None, assign))
    out = sym.Custom(sym.Variable("a"), sym.Variable("b"), op_type="test_writes")
    grads = {name: nd.full(SHAPE, np.float32(-0.0) if name == "a" else 7) for name in "ab"}
    executor = out.bind(mx.cpu(), {n: nd.ones(SHAPE) for n in "ab"}, args_grad=grads, grad_req=req)
    for _ in range(2):
        executor.forward(is_train=True)
        executor.backward(nd.ones(SHAPE))
    expected = {"write": (0, 2), "add": (0, 11), "null": (0, 7)}[req]
    for name, value in zip("ab", expected, strict=True):
        np.testing.assert_array_equal(grads[name].asnumpy(), np.full(SHAPE, value, "float32"))
    assert np.signbit(grads["a"].asnumpy()).all() == (req != "write")  # what is added to is unchanged, to the bit


def test_a_gradient_that_is_written_in_part_is_zero_elsewhere():
    def first_row(op, req, targets, k, value):
        targets[k][0] = 5

    define(backward=(first_row,))
    x = nd.ones(SHAPE)
    x.attach_grad()
    dirty(x)
    with autograd.record():
        y = nd.Custom(x, op_type="test_writes")
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), [[5] * 4, [0] * 4, [0] * 4])


# ---- outputs --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [SHAPE, (1,)])
def test_an_output_that_is_not_written_is_an_error(dtype, shape):
    define(forward=(assign, None))
    x = nd.ones(shape, dtype=dtype)
    words = r"operator Custom: Writes.forward \(op_type='test_writes'\) wrote nothing into output 'y1'"
    with pytest.raises(mx.MXNetError, match=words):
        nd.Custom(x, op_type="test_writes")
    executor = sym.Custom(sym.Variable("x"), op_type="test_writes").bind(mx.cpu(), {"x": x})
    with pytest.raises(mx.MXNetError, match=words):
        executor.forward()[0].asnumpy()
    with pytest.raises(mx.MXNetError, match=words), autograd.record():
        nd.Custom(x, op_type="test_writes")


def test_a_new_array_in_the_list_is_not_written():
    def replace(op, req, targets, k, value):
        targets[k] = value

    define(forward=(replace,))
    with pytest.raises(mx.MXNetError, match=r"self.assign\(out_data\[0\], req\[0\], value\), or out_data\[0\]\[:\]"):
        nd.Custom(nd.ones(SHAPE), op_type="test_writes")


def test_out_that_is_not_written():
    define(forward=(None,))
    with pytest.raises(mx.MXNetError, match="wrote nothing into output 'y0'"):
        nd.Custom(nd.ones(SHAPE), op_type="test_writes", out=nd.ones(SHAPE))


def test_a_later_run_of_a_bound_operator_that_does_not_write():
    class Once(CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            if is_train:
                self.assign(out_data[0], req[0], in_data[0])

    @register("test_once")
    class OnceProp(CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Once()

    executor = sym.Custom(sym.Variable("x"), op_type="test_once").bind(mx.cpu(), {"x": nd.ones(SHAPE)})
    assert executor.forward(is_train=True)[0].asnumpy().all()
    with pytest.raises(mx.MXNetError, match=r"Once.forward .* wrote nothing"):
        executor.forward(is_train=False)


def zero_by_numpy(op, req, targets, k, value):
    np.asarray(targets[k])[...] = 0


def zero_by_view(op, req, targets, k, value):
    targets[k].reshape((-1,))[:] = 0


def zero_by_detached(op, req, targets, k, value):
    targets[k].detach()[0:1][:] = 0


def zero_by_out(op, req, targets, k, value):
    nd.zeros_like(value, out=targets[k])


def zero_by_kernel(op, req, targets, k, value):
    nd.concat(value * 0, dim=0, out=targets[k])


def zero_in_place(op, req, targets, k, value):
    targets[k] *= 0


def zero_by_elements(op, req, targets, k, value):
    targets[k][tuple([0] * targets[k].ndim)] = 0


def zero_by_mask(op, req, targets, k, value):
    targets[k][np.ones(targets[k].shape, bool)] = 0


def zero_by_copyto(op, req, targets, k, value):
    (value * 0).copyto(targets[k])


def zero_by_dlpack(op, req, targets, k, value):
    nd.from_dlpack(targets[k])[:] = 0


def zero_by_a_sum(op, req, targets, k, value):
    nd.sum(nd.stack(value * 0, value * 0), axis=0, out=targets[k])


def zero_by_another_operator(op, req, targets, k, value):
    nd.Custom(value * 0, op_type="test_silent_too", out=targets[k])


def zero_by_a_bound_operator(op, req, targets, k, value):
    x = sym.Variable("x")
    bound = (x * 3).bind(mx.cpu(), {"x": value}, args_grad={"x": targets[k]})
    bound.forward(is_train=True)
    bound.backward(nd.zeros(value.shape))


@register("test_silent_too")
class SilentTooProp(CustomOpProp):
    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Silent()


WAYS = [f for name, f in sorted(globals().items()) if name.startswith("zero_")]


@pytest.mark.parametrize("write", WAYS, ids=[f.__name__ for f in WAYS])
@pytest.mark.parametrize("shape", [SHAPE, (1,), (700, 900)])
def test_zeros_that_are_written_are_no_error(write, shape):
    define(forward=(write,))
    x = nd.ones(shape)
    dirty(x)
    np.testing.assert_array_equal(nd.Custom(x, op_type="test_writes").asnumpy(), np.zeros(shape))
    executor = sym.Custom(sym.Variable("x"), op_type="test_writes").bind(mx.cpu(), {"x": x})
    for _ in range(2):
        np.testing.assert_array_equal(executor.forward()[0].asnumpy(), np.zeros(shape))


@pytest.mark.parametrize("dtype", TYPES)
def test_zeros_of_every_type(dtype):
    define(forward=(assign, zero_by_numpy if dtype != "bfloat16" else assign))
    a, b = nd.Custom(nd.zeros((1,), dtype=dtype), op_type="test_writes")
    assert not a.asnumpy().astype("float32").any() and not b.asnumpy().astype("float32").any()


@pytest.mark.parametrize("kept", ["array", "numpy", "view"])
def test_memory_kept_from_an_earlier_run(kept):
    """A bound operator has the same memory each time; who keeps it may write it without a look at ``out_data``."""

    class Keeps(CustomOp):
        memory = None

        def forward(self, is_train, req, in_data, out_data, aux):
            if self.memory is None:
                keep = {"array": lambda a: a, "numpy": np.asarray, "view": lambda a: a[0:2]}[kept]
                self.memory = keep(out_data[0])
            self.memory[:] = 0

    @register("test_keeps")
    class KeepsProp(CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Keeps()

    executor = sym.Custom(sym.Variable("x"), op_type="test_keeps").bind(mx.cpu(), {"x": nd.ones(SHAPE)})
    for _ in range(3):
        assert not executor.forward()[0].asnumpy().any()


def test_outputs_without_elements_need_no_writing():
    define(forward=(None, None))
    a, b = nd.Custom(nd.empty((0, 3)), op_type="test_writes")
    assert a.shape == b.shape == (0, 3)


def test_outputs_that_nobody_asks_for():
    define(forward=(assign, None), backward=(assign,))
    a, b = nd.ones(SHAPE), nd.full(SHAPE, 7)
    x = nd.ones(SHAPE)
    into("Custom", [x], [a, b], NULL, op_type="test_writes")
    assert a.asnumpy().max() == 1 and b.asnumpy().min() == 7


# ---- other code of users --------------------------------------------------------------------------------------------
def kernel_operator(run):
    @mx.op.kernel
    def test_written_kernel(data):
        """Left to a function of a test."""

    @test_written_kernel.shape
    def _(data):
        return data

    test_written_kernel.cpu(run)


@pytest.fixture
def kernels():
    yield kernel_operator
    mx.op.unregister("test_written_kernel")


def bound(name, x):
    return lambda: getattr(sym, name)(sym.Variable("x")).bind(mx.cpu(), {"x": x}).forward()[0]


def test_a_kernel_that_returns_what_it_should_write(kernels):
    kernels(lambda inputs, outputs: inputs[0] * 2)
    for call in (lambda: nd.test_written_kernel(nd.ones(SHAPE)), bound("test_written_kernel", nd.ones(SHAPE))):
        with pytest.raises(mx.MXNetError, match=r"test_written_kernel: its CPU function returned a NDArray.*outputs\[0\]"):
            call()


def test_a_kernel_that_writes_nothing_or_some(kernels):
    def some(inputs, outputs):
        if inputs[0][0, 0].asscalar():
            outputs[0][0] = 5

    kernels(some)
    x = nd.ones(SHAPE)
    for call in (lambda: nd.test_written_kernel(x), bound("test_written_kernel", x)):
        dirty(x)
        np.testing.assert_array_equal(call().asnumpy(), [[5] * 4, [0] * 4, [0] * 4])
    x = nd.zeros(SHAPE)
    for call in (lambda: nd.test_written_kernel(x), bound("test_written_kernel", x)):
        with pytest.raises(mx.MXNetError, match=r"test_written_kernel.*wrote nothing into output 0.*\(3, 4\)"):
            call()


@needs_compiler
def test_a_library_that_writes_nothing_gives_zeros(library):  # noqa: F811
    library("""#include "lib_api.h"
        using namespace mxnet::ext;
        using Attributes = std::unordered_map<std::string, std::string>;
        MXReturnValue nothing(const Attributes&, std::vector<MXTensor>*, std::vector<MXTensor>*, const OpResource&) {
          return MX_SUCCESS;
        }
        REGISTER_OP(test_nothing).setForward(nothing, "cpu").setBackward(nothing, "cpu");
        MXReturnValue initialize(int version) { return MX_SUCCESS; }
    """)
    x = nd.ones(SHAPE)
    for _ in range(2):
        dirty(x)
        assert not nd.test_nothing(x).asnumpy().any()
        assert not nd.test_nothing(x[:, ::2]).asnumpy().any()
        assert not nd.test_nothing(x, out=nd.ones(SHAPE)).asnumpy().any()
    x.attach_grad()
    dirty(x)
    with autograd.record():
        y = nd.test_nothing(x)
    y.backward()
    assert not x.grad.asnumpy().any()
    executor = sym.test_nothing(sym.Variable("x") * 2).simple_bind(mx.cpu(), x=SHAPE)
    for grad in executor.grad_arrays:
        grad[:] = 3
    executor.outputs[0][:] = 3
    assert not executor.forward(is_train=True)[0].asnumpy().any()
    executor.backward(nd.ones(SHAPE))
    assert not executor.grad_arrays[0].asnumpy().any()


@needs_compiler
def test_a_compiled_function_that_writes_nothing_gives_zeros(tmp_path):
    (tmp_path / "nothing.cc").write_text(
        """#include <stdint.h>
        extern "C" int Nothing(int n, void **p, int *d, int64_t **s, const char **t, void *stream, void *extra) {
          return 0;
        }
        """
    )
    op = Custom(f"{tmp_path}/nothing.cc:Nothing", lambda s: s, lambda t: t, "aot")
    x = nd.ones(SHAPE)
    dirty(x)
    assert not op(x).asnumpy().any()


def test_a_function_that_returns_nothing():
    with pytest.raises(mx.MXNetError, match="the function returned None"):
        Custom(lambda x: None, lambda s: s, lambda t: t, "pyfunc")(nd.ones(SHAPE))
    op = Custom(lambda x: 2 * x, lambda s: s, lambda t: t, "pyfunc", bprop=lambda x, out, dout: (None,))
    x = nd.ones(SHAPE)
    x.attach_grad()
    dirty(x)
    with autograd.record():
        y = op(x)
    y.backward()
    assert not x.grad.asnumpy().any()


@pytest.mark.parametrize("value", [None, 3.0, np.ones(3), [None]])
def test_a_function_with_a_gradient_returns_arrays(value):
    class Wrong(autograd.Function):
        def forward(self, x):
            return value

    x = nd.ones(SHAPE)
    x.attach_grad()
    with pytest.raises(TypeError, match=r"Wrong forward returned a .*; expected NDArrays"), autograd.record():
        Wrong()(x)

    class WrongGradient(autograd.Function):
        def forward(self, x):
            return 2 * x

        def backward(self, dy):
            return value

    with autograd.record():
        y = WrongGradient()(x)
    if value is None or isinstance(value, list):
        y.backward()
        assert not x.grad.asnumpy().any()
    else:
        with pytest.raises(TypeError, match=r"WrongGradient backward returned a .*; expected NDArrays"):
            y.backward()
