"""What the tape refuses, how it sees writes, what it keeps: symbols of histories, errors, memory."""

import gc
import warnings
import weakref

import numpy as np
import pytest
from test_autograd import close, variable

import mxop as mx
from mxop import autograd, nd
from mxop.op import elementwise, kernel

try:
    import resource
except ImportError:  # Windows
    resource = None


# ---- get_symbol ------------------------------------------------------------------------------------------------------
def test_get_symbol():
    x, w = variable([[1.0, 2.0]]), variable([[3.0, 4.0]])
    with autograd.record():
        y = nd.contrib.quadratic(x, a=2.0, b=1.0) * w + nd.sum(x)
    symbol = autograd.get_symbol(y)
    names = symbol.list_arguments()
    assert len(names) == 2
    values = {name: value.asnumpy() for name, value in zip(names, (x, w), strict=True)}
    for order in (names, names[::-1]):  # which is which is not promised
        bound = symbol.eval(**{n: nd.array(values[o], dtype="float64") for n, o in zip(names, order, strict=True)})[0]
        if np.allclose(bound.asnumpy(), y.asnumpy()):
            break
    else:
        raise AssertionError("the symbol computes something else")


# ---- errors ----------------------------------------------------------------------------------------------------------
def test_not_recorded():
    x = variable([1.0])
    y = x * 2
    with pytest.raises(mx.MXNetError, match=r"not computed from variables.*autograd\.record.*: write w\[:\] = w - w\.grad"):
        y.backward()
    with autograd.record():
        z = nd.array([1.0]) * 2
    with pytest.raises(mx.MXNetError, match=r"attach_grad"):
        z.backward()


def test_second_backward():
    x = variable([1.0])
    with autograd.record():
        y = nd.exp(x)
        z = y * y
    z.backward()
    with pytest.raises(mx.MXNetError, match=r"operator \w+ again.*freed.*retain_graph=True"):
        y.backward()


@pytest.mark.parametrize("holds", ["nobody", "the array", "a view", "memory", "an executor"])
def test_gradients_keep_their_place_where_somebody_knows_it(holds):
    x, w = variable(np.ones((3, 4))), variable(np.ones((4, 2)))
    kept = {
        "nobody": lambda: None,
        "the array": lambda: w.grad,
        "a view": lambda: w.grad[1:],
        "memory": lambda: np.asarray(w.grad),
        "an executor": lambda: (mx.sym.var("g") * 1).bind(mx.cpu(), {"g": w.grad}),
    }[holds]()
    for k in (1.0, 2.0):
        with autograd.record():
            y = nd.dot(x, w) * k
        y.backward()
        assert (w.grad.asnumpy() == 3 * k).all()
        if holds == "an executor":
            kept = kept.forward()[0] if k == 2 else kept
        elif kept is not None:
            assert (np.asarray(kept) == 3 * k).all()
    if holds == "an executor":
        assert (kept.asnumpy() == 6).all()


def test_a_freed_history_is_a_constant():
    x, w = variable([2.0]), variable([3.0])
    with autograd.record():
        y = x * x
        z = y * w
    z.backward()
    x.grad[:] = 0
    with autograd.record():
        again = y * w + x
    with pytest.warns(mx.errors.GradientWarning, match="broadcast_mul counts as a constant"):
        again.backward()
    close(w.grad, [4])
    close(x.grad, [1])
    with autograd.record():
        alone = y * 2
    with pytest.warns(mx.errors.GradientWarning):
        alone.backward()
    close(x.grad, [1])


def test_a_second_backward_is_an_error_and_no_warning():
    x = variable([2.0])
    with autograd.record():
        y = (nd.exp(x) * x).sum()
    y.backward()
    with warnings.catch_warnings(), pytest.raises(mx.MXNetError, match="cannot differentiate operator sum again"):
        warnings.simplefilter("error")
        y.backward()


@pytest.mark.parametrize("head", [nd.ones((3,), dtype="float64"), nd.ones((2,), dtype="float32")], ids=["shape", "dtype"])
def test_wrong_head_gradient(head):
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * 2
    with pytest.raises(mx.MXNetError, match=r"head gradient 0 .*the head has shape \(2,\) and dtype float64"):
        y.backward(head)
    y.backward()
    close(x.grad, [2, 2])


def test_wrong_arguments():
    x = variable([1.0])
    with autograd.record():
        y = x * 2
    with pytest.raises(ValueError, match="1 heads but 2 head gradients"):
        autograd.backward([y], [None, None])
    with pytest.raises(TypeError, match="heads must be NDArrays, got float"):
        autograd.backward([1.0])
    with pytest.raises(ValueError, match="at least one variable"):
        autograd.grad(y, [])
    with pytest.raises(mx.MXNetError, match="not part of the graph"):
        autograd.grad(y, [nd.array([1.0])])
    with pytest.raises(ValueError, match="'write', 'add' or 'null'"):
        x.attach_grad("sum")
    with pytest.raises(ValueError, match="2 variables, 1 gradients"):
        autograd.mark_variables([x, y], [x])
    with pytest.raises(ValueError, match=r"shape \(2,\), the variable \(1,\)"):
        autograd.mark_variables(x, nd.zeros((2,), dtype="float64"))
    with pytest.raises(TypeError, match="dtype float32, the variable float64"):
        autograd.mark_variables(x, nd.zeros((1,)))


def test_missing_rule():
    @kernel(name="test_autograd_no_rule")
    def no_rule(data):
        """Copy without a gradient."""

    no_rule.shape(lambda shape: shape)

    @no_rule.cpu
    def _(inputs, outputs):
        np.asarray(outputs[0])[...] = np.asarray(inputs[0])

    try:
        x = variable([1.0])
        with autograd.record():
            y = nd.exp(nd.test_autograd_no_rule(x))
        with pytest.raises(mx.MXNetError) as caught:
            y.backward()
        message = str(caught.value)
        for part in (
            "test_autograd_no_rule",
            "order 1",
            "exp <- test_autograd_no_rule",
            "@test_autograd_no_rule.gradient",
        ):
            assert part in message, message
    finally:
        mx.op.unregister("test_autograd_no_rule")


def test_operator_that_is_not_differentiable_at_second_order():
    @elementwise(name="test_autograd_once", rule=lambda g, data, out: g)
    def once(data):
        return data * 1.0

    try:
        x = variable([1.0])
        with autograd.record():
            y = nd.test_autograd_once(x)
            (g,) = autograd.grad(y, [x], create_graph=True)
        close(g, [1])
    finally:
        mx.op.unregister("test_autograd_once")


# ---- in-place writes -------------------------------------------------------------------------------------------------
def test_in_place_write_inside_record_is_refused():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * 2
        with pytest.raises(mx.MXNetError, match=r"not supported inside autograd\.record"):
            y += 1
        with pytest.raises(mx.MXNetError, match=r"autograd"):
            y[:] = 0
        with pytest.raises(mx.MXNetError, match=r"autograd"):
            nd.exp(x, out=y)
    y.backward()
    close(x.grad, [2, 2])


def test_parameters_are_updated_outside_record():
    w = variable([1.0])
    for _ in range(3):
        with autograd.record():
            loss = w * w
        loss.backward()
        w -= 0.1 * w.grad
    close(w, [0.8**3])
    w[:] = 5
    with autograd.record():
        loss = w * w
    loss.backward()
    close(w.grad, [10])


# ---- memory ----------------------------------------------------------------------------------------------------------
def in_use():
    gc.collect()
    return mx.context.memory_stats()["in_use"]


def test_backward_frees_what_it_kept():
    x = variable(np.zeros((1000,)))
    before = in_use()
    with autograd.record():
        y = nd.sin(x) * nd.exp(x)
    assert in_use() > before + 8000
    y.backward()
    kept = in_use() - before
    assert kept < 2 * 8192, f"{kept} bytes are still kept beside the head itself"
    del y
    assert in_use() == before


def test_dropping_the_head_frees_the_graph():
    x = variable(np.zeros((1000,)))
    before = in_use()
    with autograd.record():
        y = x
        for _ in range(20):
            y = nd.sin(y)
    del y
    assert in_use() == before


def test_arrays_are_freed_without_the_garbage_collector():
    class Probe(autograd.Function):
        def forward(self, x):
            return x * 2

        def backward(self, g):
            return g * 2

    x = variable([1.0])
    gc.disable()
    try:
        f = Probe()
        watched = weakref.ref(f)
        with autograd.record():
            y = f(x)
            (g,) = autograd.grad(y * y, [x], create_graph=True)
        del f, y, g
        assert watched() is None
    finally:
        gc.enable()


def test_long_chains_are_freed_without_deep_recursion():
    x = variable([1.0])
    with autograd.record():
        y = x
        for _ in range(200_000):
            y = y + 1.0
    y.backward()
    close(x.grad, [1])
    with autograd.record():
        y = x
        for _ in range(200_000):
            y = y * 1.0
    del y


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def rounds(x, n):
    for k in range(n):
        with autograd.record():
            y = nd.sin(x) * x
            unused = nd.exp(y)
            (g,) = autograd.grad(y, [x], create_graph=True)
            z = nd.sum(g * g)
            if k % 10 == 0:
                with pytest.raises(mx.MXNetError):
                    nd.elemwise_add(y, nd.ones((3,), dtype="float64"))
        z.backward()
        del unused


def test_memory_is_flat_over_many_rounds():
    x = variable(np.linspace(0, 1, 64))
    rounds(x, 500)
    before, pool = in_use(), mx.context.memory_stats()
    size = resident() if resource is not None and hasattr(resource, "getpagesize") and _has_proc() else None
    rounds(x, 10_000)
    assert in_use() == before
    after = mx.context.memory_stats()
    assert after["cached"] <= pool["cached"] + 65536
    if size is not None:
        assert resident() - size < 4 << 20


def test_memory_is_flat_for_empty_arrays():
    x = variable(np.zeros((0, 3)))
    rounds(x, 50)
    before = in_use()
    rounds(x, 500)
    assert in_use() == before


def _has_proc():
    try:
        resident()
    except OSError:
        return False
    return True
