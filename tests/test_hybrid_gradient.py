"""Gradients that are derived from kernels: against differences, against operators of mx.nd, and again."""

import numpy as np
import pytest
from hybrid_kernels import matmul, outer_product, softmax

import mxop as mx
from mxop import dtypes
from mxop.operator import Custom, kernel
from mxop.operator.hybrid import Hybrid

pytest.importorskip("numba")


def numeric(custom, arrays, heads, which, attributes=(), step=1e-6):
    """Return the gradient of ``sum(heads * outputs)`` by central differences."""

    def value(changed):
        found = custom(*(mx.nd.array(a, dtype=a.dtype) for a in changed), *attributes)
        found = found if isinstance(found, tuple) else (found,)
        return sum(float((f.asnumpy() * h).sum()) for f, h in zip(found, heads, strict=True))

    x, result = arrays[which], np.zeros_like(arrays[which])
    for at in np.ndindex(x.shape):
        ends = []
        for sign in (1, -1):
            moved = [a.copy() for a in arrays]
            moved[which][at] += sign * step
            ends.append(value(moved))
        result[at] = (ends[0] - ends[1]) / (2 * step)
    return result


def check(function, *arrays, attributes=(), again=True):
    """Compare first derivatives, and the derivatives of those, with differences."""
    custom = Custom(function)
    rng = np.random.default_rng(7)
    inputs = [mx.nd.array(a, dtype=a.dtype) for a in arrays]
    floats = [k for k, a in enumerate(arrays) if a.dtype.kind == "f"]
    for k in floats:
        inputs[k].attach_grad()

    def outputs():
        found = custom(*inputs, *attributes)
        return found if isinstance(found, tuple) else (found,)

    heads = [rng.normal(size=o.shape) for o in outputs()]
    given_heads = [mx.nd.array(h, dtype="float64") for h in heads]
    with mx.autograd.record():
        total = sum((o * h).sum() for o, h in zip(outputs(), given_heads, strict=True))
        grads = mx.autograd.grad(total, [inputs[k] for k in floats], create_graph=again, retain_graph=True)
        if again:
            weights = [rng.normal(size=g.shape) for g in grads]
            second = sum((g * mx.nd.array(w, dtype="float64")).sum() for g, w in zip(grads, weights, strict=True))
    for k, g in zip(floats, grads, strict=True):
        np.testing.assert_allclose(g.asnumpy(), numeric(custom, arrays, heads, k, attributes), rtol=1e-5, atol=1e-6)
    if not again:
        return
    second.backward()

    def first(changed):
        local = [mx.nd.array(a, dtype=a.dtype) for a in changed]
        for k in floats:
            local[k].attach_grad()
        with mx.autograd.record():
            found = custom(*local, *attributes)
            found = found if isinstance(found, tuple) else (found,)
            total = sum((o * h).sum() for o, h in zip(found, given_heads, strict=True))
        total.backward()
        return sum(float((local[k].grad.asnumpy() * w).sum()) for k, w in zip(floats, weights, strict=True))

    for k in floats:
        x = arrays[k]
        wanted = np.zeros_like(x)
        for at in np.ndindex(x.shape):
            ends = []
            for sign in (1, -1):
                moved = [a.copy() for a in arrays]
                moved[k][at] += sign * 1e-5
                ends.append(first(moved))
            wanted[at] = (ends[0] - ends[1]) / 2e-5
        np.testing.assert_allclose(inputs[k].grad.asnumpy(), wanted, rtol=1e-4, atol=1e-5)


def numbers(*shape, low=0.5, high=2.0, seed=0):
    return np.random.default_rng(seed).uniform(low, high, shape)


@kernel
def moments(x):
    mean = output_tensor((x.shape[1],), x.dtype)
    var = output_tensor((x.shape[1],), x.dtype)
    n = x.shape[0]
    for j in range(x.shape[1]):
        s = 0.0
        for i in reduce(n):
            s += x[i, j]
        mean[j] = s / n
        v = 0.0
        for i in reduce(n):
            v += (x[i, j] - mean[j]) * (x[i, j] - mean[j])
        var[j] = v / n
    return mean, var


@kernel
def overwritten(x, dout):
    dx = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        dx[i] = 2.0 * x[i]
    for i in range(x.shape[0]):
        dx[i] = dx[i] * dout[i]
    return dx


@kernel
def recurrence(x, a):
    y = output_tensor(x.shape, x.dtype)
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = a[0] * y[i - 1] * y[i - 1] + x[i]
    return y


@kernel
def power_series(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        term = 1.0
        total = 0.0
        for k in range(1, 6):
            term = term * x[i] / k
            total += term
        y[i] = total * total
    return y


@kernel
def branches(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i, j in grid(x.shape):
        if x[i, j] > 1.0 and j != 0:
            s = x[i, j] * w[j]
        else:
            s = -x[i, j] / w[j]
        if s > 0:
            s = s * s
            y[i, j] = s
        elif j > 1:
            y[i, j] = w[0] * s if s > -1 else s
        else:
            y[i, j] = tanh(s)
    return y


@kernel
def condition_that_changes(x):
    y = output_tensor((1,), x.dtype)
    s = 0.0
    for i in range(x.shape[0]):
        if s < 3.0:
            s = s + x[i] * x[i]
        else:
            s = s * 0.5
    y[0] = s * s
    return y


@kernel
def smoothed(x):
    y = output_tensor(x.shape, x.dtype)
    t = allocate(x.shape, x.dtype)
    for arg in grid(x.shape):
        t[arg] = x[arg] * arg[0]
    for step in range(3):
        for i in range(1, x.shape[0] - 1):
            for j in range(x.shape[1] - 1, -1, -1):
                t[i, j] = t[i, j] + t[i - 1, j] * t[i + 1, j]
    for arg in grid(x.shape):
        y[arg] = t[arg]
    return y


@kernel
def every_function(x, z):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = (
            sqrt(x[i]) + rsqrt(z[i]) * log(x[i]) - exp(-x[i]) + expm1(z[i] / 3) + tanh(x[i] * z[i]) + abs(-x[i])
            + erf(x[i] - z[i]) + sin(x[i]) * cos(z[i]) + atan(x[i] / z[i]) + atan2(x[i], z[i]) + power(x[i], z[i])
            + x[i] ** 3 + max(x[i], z[i], 1.0) * min(x[i], z[i]) + floor(x[i]) + sign(x[i]) + float64(x[i]) % 0.7
        )  # fmt: skip
    return y


@kernel
def gathered(table, index):
    y = output_tensor((index.shape[0], table.shape[1]), table.dtype)
    for i in range(index.shape[0]):
        p = index[i]
        for j in range(table.shape[1]):
            y[i, j] = table[p, j] * table[index[i], 0]
    return y


@kernel
def scaled(x, factor, n):
    y = output_tensor((n,), x.dtype)
    for i in range(n):
        y[i] = x[i] * x[i] * factor
    return y


@kernel
def assigned(a, b):
    for i in range(a.shape[0]):
        b[i] = b[i] * a[i] + a[i]
    return b


@kernel
def triangular(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(i + 1):
            y[i] += x[i] * x[j]
    return y


@kernel
def chosen(x, z):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        greater = x[i] > z[i] and (i == 0 or x[i - 1] > 0.0)
        s = x[i] * z[i] if greater else exp(x[i]) / z[i]
        y[i] = s * (z[i] if greater else 1)
    return y


CASES = {
    "matmul": (matmul, [numbers(3, 2), numbers(2, 4, seed=1)], ()),
    "empty matmul": (matmul, [numbers(3, 0), numbers(0, 2)], ()),
    "outer_product": (outer_product, [numbers(3, 3), numbers(3, 3, seed=1)], ()),
    "softmax": (softmax, [numbers(2, 4)], ()),
    "moments": (moments, [numbers(4, 2)], ()),
    "overwritten": (overwritten, [numbers(4), numbers(4, seed=1)], ()),
    "recurrence": (recurrence, [numbers(5, high=0.8), numbers(1, high=0.6)], ()),
    "power_series": (power_series, [numbers(3)], ()),
    "branches": (branches, [numbers(3, 3), numbers(3, seed=4)], ()),
    "condition": (condition_that_changes, [numbers(6, high=1.7, seed=3)], ()),
    "smoothed": (smoothed, [numbers(4, 2, high=0.9)], ()),
    "functions": (every_function, [numbers(4, low=1.1, high=1.35), numbers(4, low=1.45, high=1.9, seed=2)], ()),
    "gathered": (gathered, [numbers(3, 2), np.array([2, 0, 2, 1], "int32")], ()),
    "attributes": (scaled, [numbers(4)], (2.5, 3)),
    "assigned": (assigned, [numbers(3), numbers(3, seed=1)], ()),
    "chosen": (chosen, [numbers(5), numbers(5, seed=1)], ()),
    "triangular": (triangular, [numbers(4)], ()),
}


@pytest.mark.parametrize("name", CASES)
def test_derived(name, monkeypatch):
    """Compiled; most of the second derivatives in plain Python, whose texts take long to compile."""
    function, arrays, attributes = CASES[name]
    if name == "assigned":  # on copies: while it is recorded, an input is not assigned
        custom = Custom(function)
        x = mx.sym.Variable("a"), mx.sym.Variable("b")
        exe = custom(*x).bind(
            mx.cpu(), [mx.nd.array(a, dtype="float64") for a in arrays],
            args_grad=[mx.nd.zeros(3, dtype="float64") for _ in arrays],
        )  # fmt: skip
        out = exe.forward(is_train=True)[0].asnumpy()
        np.testing.assert_allclose(out, arrays[1] * arrays[0] + arrays[0])
        exe.backward(mx.nd.ones(3, dtype="float64"))
        np.testing.assert_allclose(exe.grad_arrays[0].asnumpy(), arrays[1] + 1)
        np.testing.assert_allclose(exe.grad_arrays[1].asnumpy(), arrays[0])
        return
    compiled_twice = name in ("matmul", "overwritten", "condition")
    check(function, *arrays, attributes=attributes, again=compiled_twice)
    if not compiled_twice and name != "triangular":
        monkeypatch.setenv("MXOP_HYBRID", "python")
        check(function, *arrays, attributes=attributes)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_other_types(dtype):
    x = mx.nd.array(numbers(3, 4), dtype=dtype)
    x.attach_grad()
    with mx.autograd.record():
        y = (Custom(softmax)(x) * mx.nd.arange(4).astype(dtype).reshape((1, 4)).broadcast_to((3, 4))).sum()
    y.backward()
    z = x.astype("float64").detach()
    z.attach_grad()
    with mx.autograd.record():
        y = (Custom(softmax)(z) * mx.nd.arange(4).astype("float64").reshape((1, 4)).broadcast_to((3, 4))).sum()
    y.backward()
    assert x.grad.dtype == np.dtype(dtype)
    tolerance = 1e-5 if dtype == "float32" else 5e-3
    np.testing.assert_allclose(x.grad.asnumpy(), z.grad.asnumpy(), rtol=tolerance, atol=tolerance)


def test_numbers_of_several_types():
    """An int32 subtracted from a float32 gives float64, also on the way back."""

    @kernel
    def f(x, p):
        y = output_tensor(p.shape, x.dtype)
        for i in range(p.shape[0]):
            k = int32(floor(p[i]))
            u = p[i] - k
            low = x[k] * (1 - u)
            high = x[k + 1] * u
            y[i] = low * u + high
        return y

    x, p = mx.nd.array([1, 2, 4]), mx.nd.array([0.5, 1.25])
    x.attach_grad(), p.attach_grad()
    with mx.autograd.record():
        y = Custom(f)(x, p)
    y.backward()
    assert x.grad.asnumpy().tolist() == [0.25, 0.5 + 0.75 * 0.25, 0.25]
    assert p.grad.asnumpy().tolist() == [1 * (1 - 2 * 0.5) + 2, 2 * (1 - 2 * 0.25) + 4]


def test_third_order():
    @kernel
    def cube(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] * x[i] * x[i]
        return y

    x = mx.nd.array([1.0, 2.0, -3.0], dtype="float64")
    x.attach_grad()
    with mx.autograd.record():
        y = Custom(cube)(x)
        for _ in range(2):
            (y,) = mx.autograd.grad(y.sum(), [x], create_graph=True, retain_graph=True)
    y.backward()
    assert x.grad.asnumpy().tolist() == [6, 6, 6]


def test_each_list_has_its_gradient():
    info = (mx.operator.CustomRegOp().input(0, "x").output(0, "y").attr("by", "required", "listInt")
            .dtype_format(*[mx.operator.DataType.None_None] * 2).target("CPU").get_op_info())  # fmt: skip

    def f(x, by):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] * by[0]
        return y

    custom, x = Custom(f, reg_info=info), mx.nd.ones(2)
    x.attach_grad()
    for by in (2, 5):
        with mx.autograd.record():
            y = custom(x, (by, 0))
        y.backward()
        assert x.grad.asnumpy().tolist() == [by, by]


def test_gradients_for_several_types_are_apart():
    program = Hybrid(assigned)
    for code in (dtypes.FLOAT32, dtypes.FLOAT64):
        known = program.derived.known([(3,)] * 3, [code] * 3, ((0, 1),))
        assert known.out_shapes == [(3,)] * 2 and known.out_codes == [code] * 2
        assert program.derived.known([(3,)] * 3, [code] * 3, ((1,),)).out_codes == [code]


@pytest.mark.parametrize(
    "body, reason",
    [
        ("for i in range(n):\n        t = allocate((2,), x.dtype)\n        t[0] = x[i]\n        y[i] = t[0] * t[0]",
         "line 5 allocates a tensor inside a loop"),
        ("for i in range(n):\n        for j in range(i + 1):\n            y[j] = y[j] * x[i]", "bounds are not fixed"),
        ("k = int32(x[0])\n    for i in range(0, n, k):\n        y[i] = x[i] * x[i]", "step of the loop in line"),
    ],
)  # fmt: skip
def test_outside_of_what_is_derived(body, reason, tmp_path):
    path = tmp_path / "k.py"
    path.write_text(f"def f(x):\n    y = output_tensor(x.shape, x.dtype)\n    n = x.shape[0]\n    {body}\n    return y\n")
    namespace = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    x = mx.nd.ones(3)
    x.attach_grad()
    with mx.autograd.record():
        y = Custom(namespace["f"])(x)
    with pytest.raises(mx.MXNetError, match=rf"Custom f has no gradient: .*{reason}.*give it one with .*bprop="):
        y.backward()
