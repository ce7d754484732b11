"""Comparisons as masks: what they choose, what keeps the mark, logic, and assignments with their gradients."""

import copy
import operator
import pickle
import warnings

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd


def sample(shape, dtype="float32"):
    data = (np.arange(np.prod(shape)).reshape(shape) % 5 - 2).astype(dtype)
    return data, nd.array(data, dtype=dtype)


# ---- what gives a mask -----------------------------------------------------------------------------------------------
#: Each is true where an element is below 0.
BELOW = {
    "x < 0": lambda x: x < 0,
    "reflected": lambda x: operator.gt(0, x),
    "x == y": lambda x: x == -nd.abs(x) - (x == 0),
    "lesser": lambda x: nd.lesser(x, 0),
    "lesser of arrays": lambda x: nd.lesser(x, nd.zeros_like(x)),
    "broadcast_lesser": lambda x: nd.broadcast_lesser(x, nd.zeros((1,) * x.ndim, dtype=x.dtype)),
    "logical_not": lambda x: nd.logical_not(x >= 0),
    "logical_and": lambda x: nd.logical_and(x < 0, x > -9),
    "product": lambda x: (x < 0) * (x > -9),
    "&": lambda x: (x < 0) & (x > -9),
    "|": lambda x: (x < -1) | (x == -1),
    "^": lambda x: (x < 5) ^ (x >= 0),
    "~": lambda x: ~(x >= 0),
    "& of a number": lambda x: True & ((x < 0) | False),
    "& of NumPy": lambda x: np.ones(x.shape, bool) & ((x < 0) | np.zeros(x.shape, bool)),
    "& of bool": lambda x: (x < 0) & nd.ones(x.shape, dtype="bool"),
    "numpy.less": lambda x: np.less(x, 0),
    "copy": lambda x: (x < 0).copy(),
    "copy.copy": lambda x: copy.copy(x < 0),
    "deepcopy": lambda x: copy.deepcopy(x < 0),
    "nd.array": lambda x: nd.array(x < 0),
    "as_in_context": lambda x: (x < 0).as_in_context(mx.cpu(1)).as_in_context(mx.cpu(0)),
    "copyto": lambda x: (x < 0).copyto(mx.cpu(0)),
    "reshape": lambda x: (x < 0).reshape((-1,)).reshape(x.shape),
    "nd.reshape": lambda x: nd.reshape(nd.reshape(x < 0, shape=(-1,)), shape=x.shape),
    "view": lambda x: (x < 0)[:],
    "detach": lambda x: (x < 0).detach(),
    "expand_dims": lambda x: (x < 0).expand_dims(0)[0],
    "transpose": lambda x: (x.T < 0).T,
    "transpose with axes": lambda x: (x.T < 0).transpose(tuple(range(x.ndim))[::-1]),
    "nd.transpose": lambda x: nd.transpose(nd.transpose(x < 0)),
    "slice": lambda x: nd.concat(x < 0, x < 0, dim=0)[: x.shape[0]],
    "stack": lambda x: nd.stack(x < 0, x > 0)[0],
    "tile": lambda x: nd.tile(x < 0, reps=(2,) + (1,) * (x.ndim - 1))[: x.shape[0]],
    "rows": lambda x: (x < 0)[list(range(x.shape[0]))],
    "any": lambda x: (x.expand_dims(-1) < 0).any(axis=-1),
    "all": lambda x: (x.expand_dims(-1) < 0).all(axis=-1),
    "assigned": lambda x: assigned(x < 0, x < 0),
    "assigned truths": lambda x: assigned(x < 9, (x < 0).asnumpy() != 0),
    "bool": lambda x: (x < 0).astype("bool"),
    "numpy": lambda x: x.asnumpy() < 0,
}


def assigned(mask, value):
    mask[:] = value
    return mask


@pytest.mark.parametrize(
    ("dtype", "recorded"),
    [("float32", False), ("float16", False), ("int64", False), ("float32", True), ("float16", True)],
)
@pytest.mark.parametrize("shape", [(2,), (3, 4), (2, 2), (2, 20_000)])
@pytest.mark.parametrize("name", BELOW)
def test_a_comparison_is_a_mask(name, shape, dtype, recorded):
    data, x = sample(shape, dtype)
    if recorded:
        x.attach_grad()
    with autograd.record() if recorded else autograd.pause():
        mask = BELOW[name](x)
        found = x[mask]
        first = x[0, mask[0]] if x.ndim > 1 else x[mask]
    np.testing.assert_array_equal(found.asnumpy(), data[data < 0])
    np.testing.assert_array_equal(first.asnumpy(), data[0, data[0] < 0] if data.ndim > 1 else data[data < 0])
    y = nd.array(data, dtype=dtype)
    y[mask] = 7
    np.testing.assert_array_equal(y.asnumpy(), np.where(data < 0, 7, data))


def test_values_and_types_of_comparisons_are_mxnets():
    for dtype in ("float32", "float16", "float64", "int32", "uint8"):
        x = nd.array([1, 2], dtype=dtype)
        for mask in (x > 1, (x > 1) & (x < 5), ~(x > 1), x > np.array([1, 5])):
            assert mask.dtype == x.dtype
        assert (~(x > 1)).asnumpy().tolist() == [1, 0]
    assert ((x > 1).sum() + (x > 0) * 3).asnumpy().tolist() == [4, 4]


KEYS = {
    "rows": lambda x, m: x[m(x)[:, 0, 0]],
    "rows and a column": lambda x, m: x[m(x)[:, 0, 0], 2],
    "columns": lambda x, m: x[:, m(x)[0, :, 0]],
    "the last": lambda x, m: x[..., m(x)[0, 1]],
    "two dimensions": lambda x, m: x[m(x)[:, :, 1]],
    "the last two": lambda x, m: x[:, m(x)[0]],
    "a row": lambda x, m: x[1, m(x)[0]],
    "None": lambda x, m: x[None, m(x)],
    "a slice beside it": lambda x, m: x[m(x)[:, 0, 0], ::2, 1:],
    "numbers beside it": lambda x, m: x[m(x)[0, 0, :2], [1, 0]],
    "none of them": lambda x, m: x[m(x) & (m(x) ^ m(x))],
}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", KEYS)
def test_masks_in_keys(name, recorded):
    data = np.random.default_rng(3).normal(size=(2, 3, 4)).astype("float32")
    data[:, 0, :2] = [[1, 2], [3, 4]]
    x = nd.array(data)
    x.attach_grad()
    with autograd.record() if recorded else autograd.pause():
        found = KEYS[name](x, lambda x: x > 0)
    np.testing.assert_array_equal(found.asnumpy(), KEYS[name](data, lambda x: x > 0))
    if recorded:
        found.backward()
        places = KEYS[name](np.arange(data.size).reshape(data.shape), lambda x: data > 0 if x.ndim == 3 else None)
        want = np.zeros(data.size)
        np.add.at(want, places.ravel(), 1)
        np.testing.assert_array_equal(x.grad.asnumpy().ravel(), want)


def test_numbers_that_are_0_and_1_are_rows():
    x = nd.array([5.0, 6.0])
    assert x[nd.array([1, 0])].asnumpy().tolist() == [6, 5]
    assert x[nd.zeros_like(x)].asnumpy().tolist() == [5, 5]
    assert nd.array([[1.0, 2], [3, 4]])[nd.array([[1, 0]])].shape == (1, 2, 2)
    truths = nd.array([True, False], dtype="bool")
    assert x[truths == nd.array([True, True], dtype="bool")].asnumpy().tolist() == [5]


def pickled(mask):
    return pickle.loads(pickle.dumps(mask))


def saved(mask, tmp_path):
    nd.save(str(tmp_path / "mask"), [mask])
    return nd.load(str(tmp_path / "mask"))[0]


DROPPED = {
    "times a number": lambda m, path: m * 1,
    "sum": lambda m, path: m + 0 * m,
    "difference": lambda m, path: 1 - (1 - m),
    "a cast": lambda m, path: m.astype("int32"),
    "numbers assigned": lambda m, path: assigned(m, 1 - (1 - m)),
    "a number assigned": lambda m, path: assigned(assigned(m, 2), m / 2 - m / 2 + nd.array([0, 1])),
    "+=": lambda m, path: operator.iadd(m, 0),
    "an output": lambda m, path: nd.elemwise_mul(m, nd.ones_like(m), out=m),
    "copied into an array": lambda m, path: m.copyto(nd.zeros((2,))),
    "a file": saved,
    "a pickle": lambda m, path: pickled(m),
}


@pytest.mark.parametrize("name", DROPPED)
def test_arithmetic_assignments_and_files_make_numbers_of_a_mask(name, tmp_path):
    x = nd.array([5.0, 6.0, 7.0])
    found = DROPPED[name](nd.array([0.0, 6.0]) > 1, tmp_path)
    assert found.asnumpy().tolist() == [0, 1]
    assert x[found].asnumpy().tolist() == [5, 6]


def test_writing_0_and_1_into_a_mask_leaves_one():
    x = nd.array([5.0, 6.0, 7.0])
    for value in (1, 1.0, True, np.bool_(True), np.array([True]), nd.array([1.0]) > 0):
        mask = x > 5
        mask[0] = value
        assert x[mask].asnumpy().tolist() == [5, 6, 7]
    mask &= x < 7
    assert x[mask].asnumpy().tolist() == [5, 6]
    mask |= x == 7
    mask ^= x == 6
    assert x[mask].asnumpy().tolist() == [5, 7]


# ---- what is refused -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("use", [lambda x: x & x, lambda x: x | 1, lambda x: 1 ^ x, lambda x: ~x, lambda x: (x > 0) & x,
                                 lambda x: (x > 0) | 2, lambda x: x & np.array([True, False])])  # fmt: skip
@pytest.mark.parametrize("kind", ["array", "symbol", "integers"])
def test_numbers_have_no_bitwise_operators(use, kind):
    x = {"array": nd.array([1.0, 2.0]), "symbol": mx.sym.Variable("x"), "integers": nd.array([1, 2], dtype="int32")}[kind]
    with pytest.raises(TypeError, match=r"is for masks .*logical_and.*logical_not"):
        use(x)


def test_what_is_no_operand_is_left_to_python():
    with pytest.raises(TypeError, match="unsupported operand"):
        (nd.array([1.0]) > 0) & "x"


def test_masks_must_fit():
    x = nd.array([[1.0, 2.0], [3.0, 4.0]])
    for use in (lambda: x[nd.array([1.0, 2, 3]) > 2], lambda: x.__setitem__(nd.array([1.0, 2, 3]) > 2, 0)):
        with pytest.raises(IndexError, match="boolean index did not match"):
            use()
    with pytest.raises(IndexError, match="list of masks"):
        x[[x[0] > 1, x[1] > 1]]
    with pytest.raises(ValueError, match=r"2.*3|3.*2"):
        x[x > 2] = [1, 2, 3]


# ---- assignments -----------------------------------------------------------------------------------------------------
ASSIGNED = {
    "a number": lambda x, other, array: x.__setitem__(x < 0, 0.5),
    "an array of one": lambda x, other, array: x.__setitem__(x < 0, other[:1, 0]),
    "elements of another": lambda x, other, array: x.__setitem__(x < 0, other[x < 0]),
    "elements of itself": lambda x, other, array: x.__setitem__(x < 0, x[x < 0] * 0.1),
    "rows": lambda x, other, array: x.__setitem__(x[:, 0] < 0, other[0]),
    "a column": lambda x, other, array: x.__setitem__((x[:, 0] < 0, 1), 3.0),
    "columns": lambda x, other, array: x.__setitem__((slice(None), x[0] < 0), 2.0),
    "a list": lambda x, other, array: x.__setitem__(x[:, 0] < 0, [1.0, 2.0, 3.0, 4.0]),
    "twice": lambda x, other, array: (x.__setitem__(x < 0, 0.5), x.__setitem__(x > 1, other[0, 0])),
    "combined": lambda x, other, array: x.__setitem__((x < 0) & ~(x < -1), array([9.0])),
}


def inputs():
    rng = np.random.default_rng(7)
    return [rng.normal(size=(3, 4)).astype("float32") for _ in range(2)]


def test_large_arrays_are_filled_through_masks():
    data, x = sample((100, 100))
    y = nd.array(data)
    y.attach_grad()
    with autograd.record():
        x[y < 0] = float("inf")
        x[0] = 5  # the mask gave it no history
    x[x[:] == 0] = -0.0
    want = np.where(data < 0, np.inf, data)
    want[0] = 5
    np.testing.assert_array_equal(x.asnumpy(), want)
    assert np.signbit(x.asnumpy()[want == 0]).all()


@pytest.mark.parametrize("name", ASSIGNED)
def test_assignments_through_masks(name):
    data, other = inputs()
    x = nd.array(data)
    ASSIGNED[name](x, nd.array(other), nd.array)
    want = data.copy()
    ASSIGNED[name](want, other, np.array)
    np.testing.assert_array_equal(x.asnumpy(), want.astype("float32"))


def differences(function, arrays):
    """Return the derivatives of a function of arrays, in float64."""
    found = []
    for k, a in enumerate(arrays):
        grad = np.zeros(a.size)
        for i in range(a.size):
            step = np.zeros(a.size)
            step[i] = 1e-5
            changed = [[b + sign * step.reshape(b.shape) if j == k else b for j, b in enumerate(arrays)] for sign in (1, -1)]
            grad[i] = (function(*changed[0]) - function(*changed[1])) / 2e-5
        found.append(grad.reshape(a.shape))
    return found


@pytest.mark.parametrize("name", ASSIGNED)
def test_gradients_of_assignments_through_masks(name):
    arrays = [a.astype("float64") for a in inputs()]
    float64 = lambda values: nd.array(values, dtype="float64")  # noqa: E731

    def of_arrays(a, b):
        h = a * 2.0
        ASSIGNED[name](h, b, float64)
        return (h * h * h).sum()

    def of_numpy(a, b):
        h = a * 2.0
        ASSIGNED[name](h, b, np.array)
        return (h * h * h).sum()

    given = [float64(a) for a in arrays]
    for a in given:
        a.attach_grad()
    with autograd.record():
        loss = of_arrays(*given)
    assert abs(loss.item() - of_numpy(*arrays)) < 1e-9
    loss.backward()
    for a, want in zip(given, differences(of_numpy, arrays), strict=True):
        np.testing.assert_allclose(a.grad.asnumpy(), want, rtol=1e-5, atol=1e-6)
    with autograd.record():
        loss = of_arrays(*given)
        first = autograd.grad(loss, given, create_graph=True)
        total = sum((g * g).sum() for g in first)
    total.backward()
    if name == "a number":  # the others are made of the same operators
        x = arrays[0] * 2
        np.testing.assert_allclose(given[0].grad.asnumpy(), np.where(x < 0, 0, 2 * (6 * x**2) * 24 * x), rtol=1e-6)


def test_an_assignment_changes_what_an_activation_keeps():
    """The result of sigmoid is what its gradient reads; that of the assignment is another array."""
    x = nd.array([-1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        h = nd.sigmoid(x)
        h[h < 0.5] = 0
        y = h * 3
    y.backward()
    s = 1 / (1 + np.exp(-2.0))
    np.testing.assert_allclose(x.grad.asnumpy(), [0, 3 * s * (1 - s)], rtol=1e-5)


def test_a_gradient_that_needs_what_was_overwritten_is_refused():
    x, w = nd.array([-1.0, 2.0]), nd.array([3.0, 4.0])
    for a in (x, w):
        a.attach_grad()
    with autograd.record():
        h = x * 2
        y = h * w
        h[h < 0] = 0
        z = (y + h).sum()
    with pytest.raises(mx.MXNetError, match="assignment"):
        z.backward()


def test_recorded_variables_and_other_keys_are_refused():
    x = nd.array([-1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        h = x * 2
        for use in (lambda: x.__setitem__(x < 0, 0), lambda: h.__setitem__(0, 0), lambda: h.__setitem__([0], 0)):
            with pytest.raises(mx.MXNetError, match=r"not supported inside autograd.record\(\), except through a mask"):
                use()


# ---- compiled functions and symbols ----------------------------------------------------------------------------------
COMPILED = {
    "a number": (lambda x: (x < 0, 0.5)),
    "a sum": (lambda x: (x < 0, x.sum())),
    "combined": (lambda x: ((x < 0) & ~(x < -1), 9.0)),
    "logic": (lambda x: ((x < -1) | (x > 1) ^ (x > 2), 0)),
    "rows": (lambda x: (x.min(axis=1) < -1, x.sum(axis=0))),
    "any": (lambda x: ((x < -2).any(axis=1), 0)),
    "reshaped": (lambda x: ((x < 0).reshape((-1,)).reshape(x.shape), 1.0)),
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_functions_assign_through_masks(name):
    def function(x):
        h = x * 2.0
        key, value = COMPILED[name](h)
        h[key] = value
        return h * h

    data = inputs()[0].astype("float64")
    quick, x = mx.graph.compiled(function), nd.array(data, dtype="float64")
    want = data * 2
    key, value = COMPILED[name](want)
    want[key] = value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = quick(x)
    np.testing.assert_allclose(found.asnumpy(), want * want, rtol=1e-12)
    grads = []
    for call in (quick, function):
        x.attach_grad()
        with autograd.record():
            y = call(x)
        y.backward()
        grads.append(x.grad.asnumpy())
    np.testing.assert_allclose(*grads, rtol=1e-12)


def test_parts_whose_size_follows_from_values_run_uncompiled():
    x = nd.array([1.0, -2.0, 3.0])
    with pytest.warns(RuntimeWarning, match=r"runs as it is written.*size that follows from values.*where\(mask, x, 0\)"):
        found = mx.graph.compiled(lambda x: x[x > 0] * 2)(x)
    assert found.asnumpy().tolist() == [2, 6]
    with pytest.warns(RuntimeWarning, match=r"runs as it is written.*how many elements the mask chooses"):
        assert mx.graph.compiled(double_below)(-x[::2]).asnumpy().tolist() == [-2, -6]


def double_below(x):
    h = x * 1
    h[h < 0] = x * 2
    return h


def test_compiled_functions_of_arguments_that_change_run_uncompiled():
    def clip(x):
        x[x < 0] = 0
        return x

    x = nd.array([1.0, -2.0])
    with pytest.warns(RuntimeWarning, match="changes an argument"):
        assert mx.graph.compiled(clip)(x).asnumpy().tolist() == [1, 0]
    assert x.asnumpy().tolist() == [1, 0]


def test_symbols():
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    net = mx.sym.where((x > 0) & ~(x > y) | (x.transpose() == 0).transpose(), x, 0)
    data = np.array([[1, -2, 3], [0, 5, 6]], "float32")
    exe = net.bind(mx.cpu(), {"x": nd.array(data), "y": nd.array(data[::-1].copy())})
    want = np.where((data > 0) & ~(data > data[::-1]) | (data == 0), data, 0)
    np.testing.assert_array_equal(exe.forward()[0].asnumpy(), want)
    with pytest.raises(TypeError, match=r"size that follows from values.*sym\.where\(mask, x, 0\).*boolean_mask"):
        x[x > 0]


def test_rules_do_not_assign():
    from mxop.op import composite

    @composite
    def assigning(F, data):
        """Assign to a part of the data."""
        data = data * 2
        data[data > 0] = 0
        return data

    try:
        with pytest.raises(TypeError, match=r"does not assign to arrays: use F\.where"):
            mx.sym.assigning(mx.sym.Variable("x")).simple_bind(mx.cpu(), x=(2,))
    finally:
        mx.op.unregister("assigning")


# ---- where with numbers ----------------------------------------------------------------------------------------------
def test_where_takes_numbers():
    data, x = sample((3, 4))
    for c, condition in ((data > 0, x > 0), (data[:, 0] > 0, x[:, 0] > 0)):
        wide = c if c.ndim == 2 else c[:, None]
        np.testing.assert_array_equal(nd.where(condition, x, 0).asnumpy(), np.where(wide, data, 0))
        np.testing.assert_array_equal(nd.where(condition, 2.5, x).asnumpy(), np.where(wide, 2.5, data))
        np.testing.assert_array_equal(nd.where(condition, y=x, x=np.float32(3)).asnumpy(), np.where(wide, 3, data))
    np.testing.assert_array_equal(nd.where(x > 0, 1, -1).asnumpy(), np.where(data > 0, 1, -1))
    out = nd.zeros((3, 4))
    assert nd.where(x > 0, x, 7, out=out) is out
    np.testing.assert_array_equal(out.asnumpy(), np.where(data > 0, data, 7))
    net = mx.sym.where(mx.sym.Variable("c"), mx.sym.Variable("x"), -1)
    np.testing.assert_array_equal(net.eval(c=x > 0, x=x)[0].asnumpy(), np.where(data > 0, data, -1))
    x.attach_grad()
    with autograd.record():
        y = nd.where(x > 0, x * x, 5)
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), np.where(data > 0, 2 * data, 0))
    with pytest.raises(TypeError, match="condition"):
        nd.where(1, x, 0)


# ---- results of plans ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_compiled_functions_and_composites_give_masks(dtype):
    from mxop.op import composite

    @composite
    def between_for_masks(F, data, *, low: float = 0.0, high: float = 1.0):
        """1 between two numbers."""
        return F.broadcast_mul(data > low, data < high)

    data, x = sample((40, 5), dtype)
    try:
        for call in (
            lambda: nd.between_for_masks(x, low=-2, high=1),
            lambda: mx.graph.compiled(lambda x: ((x > -2) & (x < 1)).reshape((-1,)).reshape(x.shape))(x),
            lambda: mx.graph.compiled(lambda x: [x * 2, ~((x <= -2) | (x >= 1))])(x)[1],
        ):
            for _ in range(2):
                np.testing.assert_array_equal(x[call()].asnumpy(), data[(data > -2) & (data < 1)])
        numbers = mx.graph.compiled(lambda x: (x > 0) * 1.0)(x)
        assert x[numbers].shape == (40, 5, 5)
    finally:
        mx.op.unregister("between_for_masks")
