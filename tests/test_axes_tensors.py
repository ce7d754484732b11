"""Tensors with axes: every function against NumPy, over random orders of axes; arrays, symbols, gradients."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mxop as mx
from mxop import axes as ng

SETTINGS = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
LETTERS = "abcdef"
LENGTHS = (2, 3, 1, 4, 2, 3)
POOL = dict(zip(LETTERS, (ng.make_axis(n, c) for n, c in zip(LENGTHS, LETTERS))))
some_axes = st.permutations(LETTERS).flatmap(lambda p: st.integers(0, 4).map(lambda n: "".join(p[:n])))


def axes_of(letters):
    return ng.make_axes(POOL[c] for c in letters)


def letters_of(axes):
    return "".join(axes.names)


def values(letters, seed=0):
    generator = np.random.default_rng([seed, len(letters), *map(ord, letters)])
    return generator.uniform(0.5, 2, [POOL[c].length for c in letters])


class Both:
    """Computes with arrays, or with symbols that are evaluated."""

    def __init__(self, symbols):
        self.symbols, self.given = symbols, {}

    def __call__(self, data, letters):
        if not self.symbols:
            return ng.array(data, axes_of(letters), dtype="float64")
        name = f"x{len(self.given)}"
        self.given[name] = mx.nd.array(np.reshape(data, data.shape or (1,)), dtype="float64")
        return ng.placeholder(axes_of(letters), name=name, dtype="float64")

    def value(self, x):
        return (x.eval(**{k: self.given[k] for k in x.list_arguments()}) if self.symbols else x).asnumpy()


both = pytest.mark.parametrize("make", [False, True], ids=["array", "symbol"])


def einsum(text, *arrays):
    return np.einsum(text, *arrays)


def close(found, expected):
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-10)


# ---- elementwise ------------------------------------------------------------------------------------------------------
@both
@given(a=some_axes, b=some_axes)
@SETTINGS
def test_arithmetic_by_name(make, a, b):
    do = Both(make)
    x, y = values(a), values(b, 1)
    result = do(x, a) * do(y, b)
    union = "".join(dict.fromkeys(a + b))
    assert letters_of(result.axes) == union
    close(do.value(result), einsum(f"{a},{b}->{union}", x, y))


@both
@given(a=some_axes, b=some_axes, c=some_axes)
@SETTINGS
def test_three_operands(make, a, b, c):
    do = Both(make)
    x, y, z = values(a), values(b, 1), values(c, 2)
    union = "".join(dict.fromkeys(a + b + c))

    def full(v, letters):
        return einsum(f"{letters},{union}->{union}", v, np.ones([POOL[i].length for i in union]))

    given = do(x, a), do(y, b), do(z, c)
    found = ng.where(ng.greater(given[0], 1.2), given[1], given[2])
    assert letters_of(found.axes) == union
    close(do.value(found), np.where(full(x, a) > 1.2, full(y, b), full(z, c)))
    close(do.value(ng.add_n(*given)), full(x, a) + full(y, b) + full(z, c))


@both
def test_every_arithmetic_operator(make):
    x, y = values("ab"), values("cb", 1)
    a, b = x[:, :, None], y.T[None]
    for of_numpy in (
        lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x / y, lambda x, y: x**y, lambda x, y: x % y,
        lambda x, y: x // y,
    ):  # fmt: skip
        do = Both(make)
        p, q = do(x, "ab"), do(y, "cb")
        close(do.value(of_numpy(p, q)), of_numpy(a, b))
        close(do.value(of_numpy(p, p)), of_numpy(x, x))
        close(do.value(of_numpy(p, 1.5)), of_numpy(x, 1.5))
        close(do.value(of_numpy(1.5, p)), of_numpy(1.5, x))
    for of_numpy in (lambda x, y: x > y, lambda x, y: x == y, lambda x, y: x <= y, lambda x, y: x != y):
        do = Both(make)
        close(do.value(of_numpy(do(x, "ab"), do(y, "cb"))), of_numpy(a, b).astype(float))
    close(do.value(-do(x, "ab")), -x)
    close(do.value(abs(-do(x, "ab"))), x)
    assert do.value(+do(x, "ab") == np.float32(1)).sum() == 0


@both
def test_functions_of_two(make):
    do = Both(make)
    x, y = values("ab"), values("ba", 1)
    p, q = do(x, "ab"), do(y, "ba")
    close(do.value(ng.maximum(p, q)), np.maximum(x, y.T))
    close(do.value(ng.maximum(p, 1)), np.maximum(x, 1))
    close(do.value(ng.subtract(1, p)), 1 - x)
    close(do.value(ng.less(p, q)), (x < y.T).astype(float))
    close(do.value(ng.elemwise_add(p, q)), x + y.T)
    close(do.value(ng.broadcast_add(p, q)), x + y.T)
    close(do.value(ng.absolute(ng.negative(p))), x)
    close(do.value(p.clip(0.8, 1.2)), np.clip(x, 0.8, 1.2))
    close(do.value(ng.Activation(p, act_type="tanh")), np.tanh(x))
    close(do.value(ng.LeakyReLU(p - 1, act_type="leaky", slope=0.5)), np.where(x > 1, x - 1, (x - 1) / 2))
    close(do.value(ng.where(p > 1, p, 0)), np.where(x > 1, x, 0))
    mask = do(np.array([0.5, 0]), "a")
    close(do.value(ng.where(mask.astype("float32"), p, q)), np.where([[1], [0]], x, y.T))
    close(do.value(ng.where(mask.astype("float32"), p.sum(), p)), np.where([[1], [0]], x.sum(), x))
    assert ng.maximum(2, 3) == 3


def test_order_means_nothing():
    x = ng.array(values("ab"), axes_of("ab"))
    assert ng.equal(x, x.T).asnumpy().all() and x.T.axes == axes_of("ba")
    assert (x - x.T).axes == x.axes and not (x - x.T).asnumpy().any()


def test_axes_of_the_documentation():
    H, W, N = (ng.make_axis(n, m) for n, m in ((2, "H"), (3, "W"), (4, "N")))
    hw, h, nw = ng.ones([H, W]), ng.ones([H]), ng.ones([N, W])
    assert (hw + h).axes == [H, W] and (hw + nw).axes == [H, W, N] and (h + hw).axes == [H, W]
    samples, features = ng.ones([ng.make_axis(50)]), ng.ones([ng.make_axis(50)])
    assert (samples + features).shape == (50, 50)


def test_operators_of_users():
    from mxop.op import elementwise, reduction

    @elementwise
    def axes_test_mix(lhs, rhs, *, k: float = 2.0):
        """Mix."""
        return lhs + k * rhs

    @reduction("mul")
    def axes_test_prod(data):
        """Product."""
        return data

    try:
        x, y = values("ab"), values("b", 1)
        p, q = ng.array(x, axes_of("ab"), dtype="float64"), ng.array(y, axes_of("b"), dtype="float64")
        close(ng.axes_test_mix(q, p, k=3).asnumpy(), (y + 3 * x).T)
        close(p.axes_test_prod(out_axes=POOL["b"]).asnumpy(), x.prod(0))
    finally:
        mx.op.unregister("axes_test_mix")
        mx.op.unregister("axes_test_prod")
    with pytest.raises(AttributeError, match="axes_test_mix"):
        ng.axes_test_mix  # noqa: B018


# ---- reductions -------------------------------------------------------------------------------------------------------
@both
@given(a=some_axes, data=st.data(), name=st.sampled_from(["sum", "prod", "max", "mean", "norm", "nansum"]))
@SETTINGS
def test_reductions(make, a, data, name):
    order = data.draw(st.permutations(a))
    count = data.draw(st.integers(0, len(a)))
    reduced, kept = order[:count], order[count:]
    do, x = Both(make), values(a)
    of_numpy = {"norm": lambda v, axis: np.sqrt((v * v).sum(axis)), "nansum": np.sum}.get(name) or getattr(np, name)
    expected = of_numpy(x, axis=tuple(a.index(c) for c in reduced))
    rest = [c for c in a if c in kept]
    tensor = do(x, a)
    found = getattr(tensor, name)(reduction_axes=axes_of(reduced))
    assert letters_of(found.axes) == "".join(rest)
    close(do.value(found), expected)
    found = getattr(ng, name)(tensor, out_axes=axes_of(kept))
    assert letters_of(found.axes) == "".join(kept)
    close(do.value(found), expected.transpose([rest.index(c) for c in kept]) if kept else expected)


@both
def test_default_reduction_keeps_batch_and_time(make):
    C, N, REC = ng.make_axis(2, "C"), ng.make_axis(3, "N"), ng.make_axis(2, "REC")
    x = (ng.ones if not make else lambda axes: ng.placeholder(axes, name="x"))([C, N, REC])
    assert ng.sum(x).axes == [N, REC] and ng.softmax(x).axes == x.axes
    assert ng.sum(x, out_axes=()).axes == [] and ng.sum(x, reduction_axes="N").axes == [C, REC]
    assert ng.mean(x, out_axes=["N", C]).axes == [N, C]


def test_full_reduction_is_one_number():
    x = ng.array(values("ab"), axes_of("ab"))
    total = x.sum(out_axes=())
    assert total.asnumpy().shape == () and total.item() == pytest.approx(values("ab").sum(), rel=1e-6)
    assert float(total) == total.item() and (x + total).axes == x.axes and (total + x).shape == x.shape
    assert total.sum().item() == total.item()


@both
def test_positions(make):
    do, x = Both(make), values("adb")
    t = do(x, "adb")
    close(do.value(ng.argmax(t, reduction_axes=POOL["d"])), x.argmax(1).astype(float))
    close(do.value(ng.argmin(t, out_axes=POOL["a"])), x.reshape(2, -1).argmin(1).astype(float))
    assert do.value(ng.argmax(t, out_axes=())) == x.argmax()
    moved = x.transpose(1, 2, 0).reshape(4, -1)
    close(do.value(ng.argmax(t, reduction_axes=axes_of("ba"))), moved.argmax(1).astype(float))


@both
@given(a=some_axes.filter(len), data=st.data())
@SETTINGS
def test_normalizations(make, a, data):
    over = data.draw(st.lists(st.sampled_from(a), unique=True))
    do, x = Both(make), values(a)
    at = tuple(a.index(c) for c in over)
    e = np.exp(x - x.max(at, keepdims=True)) if over else np.ones_like(x)
    expected = e / e.sum(at, keepdims=True) if over else np.ones_like(x)
    close(do.value(ng.softmax(do(x, a), normalization_axes=axes_of(over))), expected)
    close(do.value(ng.log_softmax(do(x, a), axes_of(over))), np.log(expected))


@both
def test_moments(make):
    do, x = Both(make), values("abd")
    mean, variance = ng.moments(do(x, "abd"), out_axes=axes_of("da"))
    close(do.value(mean), x.mean(1).T)
    close(do.value(variance), x.var(1).T)
    close(do.value(ng.squared_L2(do(x, "abd"), out_axes=())), (x**2).sum())


def test_errors_of_reductions_print_both_sides():
    a, b, d = axes_of("abd")
    x = ng.ones([a, b])
    with pytest.raises(ng.IncompatibleAxesError, match=r"Axes\(a: 2\) and out_axes=Axes\(a: 2, b: 3\) overlap"):
        ng.sum(x, reduction_axes=a, out_axes=[a, b])
    with pytest.raises(ng.UnmatchedAxesError, match=r"Axes\(a: 2\) and out_axes=Axes\(\) do not cover Axes\(a: 2, b: 3\)"):
        ng.sum(x, reduction_axes=a, out_axes=())
    with pytest.raises(ng.UnmatchedAxesError, match=r"reduction_axes=Axes\(d: 4\) are not all among Axes\(a: 2, b: 3\)"):
        ng.sum(x, reduction_axes=d)
    with pytest.raises(ng.UnmatchedAxesError, match=r"out_axes=Axes\(d: 4\) are not all among"):
        ng.prod(x, out_axes=d)
    with pytest.raises(ng.UnmatchedAxesError, match="different axes, in spite of their names"):
        ng.sum(x, reduction_axes=ng.make_axis(2, "a"))
    with pytest.raises(TypeError, match="takes reduction_axes or out_axes, not axis"):
        x.sum(axis=0)


# ---- products ---------------------------------------------------------------------------------------------------------
@both
@given(a=some_axes, b=some_axes)
@SETTINGS
def test_dot_over_the_common_axes(make, a, b):
    do, x, y = Both(make), values(a), values(b, 1)
    result = ng.dot(do(x, a), do(y, b))
    rest = "".join(c for c in a if c not in b) + "".join(c for c in b if c not in a)
    assert letters_of(result.axes) == rest
    close(do.value(result), einsum(f"{a},{b}->{rest}", x, y))


@both
@given(a=some_axes, b=some_axes, data=st.data())
@SETTINGS
def test_dot_that_keeps_common_axes(make, a, b, data):
    common = [c for c in a if c in b]
    summed = data.draw(st.lists(st.sampled_from(common), unique=True)) if common else []
    rest = data.draw(st.permutations([c for c in dict.fromkeys(a + b) if c not in summed]))
    do, x, y = Both(make), values(a), values(b, 1)
    p, q = do(x, a), do(y, b)
    expected = einsum(f"{a},{b}->{''.join(rest)}", x, y)
    close(do.value(ng.dot(p, q, reduction_axes=axes_of(summed), out_axes=axes_of(rest))), expected)
    found = ng.dot(p, q, out_axes=axes_of(rest))
    assert letters_of(found.axes) == "".join(rest)
    close(do.value(found), expected)


@pytest.mark.parametrize("a, b", [p for k in ("ab", "ba") for p in itertools.product([k], ("bd", "db"))])
def test_dot_of_matrices_is_one_operator(a, b):
    x, y = ng.placeholder(axes_of(a), name="x"), ng.placeholder(axes_of(b), name="y")
    assert len(ng.dot(x, y).value.get_internals()) == 3
    found = (x @ y).eval(x=mx.nd.array(values(a)), y=mx.nd.array(values(b))).asnumpy()
    np.testing.assert_allclose(found, einsum(f"{a},{b}->ad", values(a), values(b)), rtol=1e-5)


def test_errors_of_dot():
    a, b, d = axes_of("abd")
    x, y = ng.ones([a, b]), ng.ones([b, d])
    with pytest.raises(ng.UnmatchedAxesError, match="not all common"):
        ng.dot(x, y, reduction_axes=a)
    with pytest.raises(ng.UnmatchedAxesError, match=r"out_axes=Axes\(a: 2\), but .* leave Axes\(a: 2, d: 4\)"):
        ng.dot(x, y, reduction_axes=b, out_axes=a)
    with pytest.raises(ng.IncompatibleAxesError, match="overlap"):
        ng.dot(x, y, reduction_axes=b, out_axes=[a, b, d])
    with pytest.raises(TypeError, match="do not mix"):
        ng.dot(x, ng.placeholder([b]))
    with pytest.raises(TypeError, match="has no axes"):
        ng.dot(x, mx.nd.ones((3, 4)))


# ---- axes changed -----------------------------------------------------------------------------------------------------
@both
@given(a=some_axes, extra=some_axes, data=st.data())
@SETTINGS
def test_broadcast(make, a, extra, data):
    every = data.draw(st.permutations(list(dict.fromkeys(a + extra))))
    do, x = Both(make), values(a)
    found = ng.broadcast(do(x, a), axes_of(every))
    assert letters_of(found.axes) == "".join(every)
    letters = "".join(every)
    close(do.value(found), einsum(f"{a},{letters}->{letters}", x, np.ones([POOL[c].length for c in every])))


@both
@given(a=some_axes, data=st.data())
@SETTINGS
def test_order_and_flattening(make, a, data):
    order = data.draw(st.permutations(a))
    do, x = Both(make), values(a)
    t = ng.axes_with_order(do(x, a), axes_of(order))
    moved = x.transpose([a.index(c) for c in order])
    close(do.value(t), moved)
    flat = ng.flatten(t)
    assert len(flat.axes) == 1 and flat.axes.lengths == (x.size,)
    close(do.value(flat), moved.reshape(-1))
    back = ng.unflatten(flat)
    assert letters_of(back.axes) == "".join(order)
    close(do.value(back), moved)
    for at in range(1, len(a)):
        matrix = ng.flatten_at(t, at)
        close(do.value(matrix), moved.reshape(int(np.prod(moved.shape[:at])), -1))
        close(do.value(ng.unflatten(matrix, axes_of(a))), x)


@both
def test_expand_dims_and_casts(make):
    do, x = Both(make), values("ab")
    t = do(x, "ab")
    d = POOL["d"]
    for dim in (0, 1, 2, -1):
        found = ng.expand_dims(t, d, dim)
        assert found.axes.index(d) == dim % 3
        close(do.value(found), np.repeat(np.expand_dims(x, dim), 4, dim if dim >= 0 else 2))
    e, f = ng.make_axis(2, "e"), ng.make_axis(name="f")
    cast = ng.cast_axes(t, [e, f])
    assert cast.axes == [e, f] and f.length == 3
    close(do.value(cast + t), x[:, :, None, None] + x)
    close(do.value(ng.cast_role(t, [e, f])), x)
    mapped = ng.map_roles(t, {"a": "k", POOL["b"]: f})
    assert mapped.axes.names == ("k", "f") and ng.map_roles(t, {"a": "k"}).axes[0] is mapped.axes[0]
    role, other = ng.make_axis_role(), ng.make_axis_role()
    r = ng.make_axis(2, "r", roles=[role])
    moved = ng.map_roles(ng.cast_axes(t, [r, POOL["b"]]), {role: other}).axes[0]
    assert moved.has_role(other) and not moved.has_role(role) and moved.name == "r"


def test_errors_of_moves():
    a, b, d = axes_of("abd")
    x = ng.ones([a, b])
    for call, error in (
        (lambda: ng.axes_with_order(x, [a, d]), ng.UnmatchedAxesError),
        (lambda: ng.axes_with_order(x, a), ng.UnmatchedAxesError),
        (lambda: ng.broadcast(x, [a, d]), ng.UnmatchedAxesError),
        (lambda: ng.cast_axes(x, [b, a]), ng.UnmatchedAxesError),
        (lambda: ng.cast_axes(x, [a]), ng.UnmatchedAxesError),
        (lambda: ng.expand_dims(x, a), ng.IncompatibleAxesError),
        (lambda: ng.array(np.ones((3, 2)), [a, b]), ng.UnmatchedAxesError),
        (lambda: ng.array(np.ones(2), [a, b]), ng.UnmatchedAxesError),
    ):
        with pytest.raises(error, match=r"a: 2.*|\(3, 2\)") as told:
            call()
        assert isinstance(told.value, (mx.MXNetError, ValueError))
    with pytest.raises(ng.IncompatibleAxesError, match="more than once"):
        ng.map_roles(x, {"a": b})
    with pytest.raises(IndexError):
        ng.flatten_at(x, 2)
    with pytest.raises(IndexError):
        ng.expand_dims(x, d, 5)
    with pytest.raises(ValueError, match="length of axis K"):
        ng.broadcast(x, [a, b, ng.make_axis(name="K")])


# ---- parts ------------------------------------------------------------------------------------------------------------
slices = st.one_of(
    st.integers(-2, 1),
    st.builds(slice, st.none() | st.integers(-3, 3), st.none() | st.integers(-3, 3), st.sampled_from([None, 1, 2, -1])),
)


@both
@given(data=st.data())
@SETTINGS
def test_slices(make, data):
    key = data.draw(st.lists(slices, max_size=3))
    do, x = Both(make), values("abd")
    expected = x[tuple(key)]
    if 0 in expected.shape and make:
        return  # symbols know no dimension of size 0
    t = do(x, "abd")
    found = ng.tensor_slice(t, key)
    assert found.axes.lengths == expected.shape
    close(do.value(found), expected)
    if key:
        close(do.value(ng.slice_along_axis(t, POOL["a"], key[0])), x[key[0]])
        close(do.value(t[{"a": key[0]}]), x[key[0]])


@both
def test_differences_by_name(make):
    do, x = Both(make), values("ad")
    t = do(x, "ad")
    close(do.value(t[:, 1:] - t[:, :-1]), np.diff(x))
    flat = ng.flatten(t)
    close(do.value(flat[1:] - flat[:-1]), np.diff(x.reshape(-1)))
    renamed = ng.tensor_slice(t, [slice(None), slice(0, 2)], axes=axes_of("ae"))
    assert renamed.axes == axes_of("ae")
    close(do.value(t[..., 0]), x[..., 0])
    with pytest.raises(ng.UnmatchedAxesError):
        ng.tensor_slice(t, [0], axes=axes_of("a"))


@both
def test_concatenation(make):
    do, x, y = Both(make), values("ad"), values("da", 1)
    p, q = do(x, "ad"), do(y, "da")
    found = ng.concat_along_axis([p, q], POOL["d"])
    assert found.axes.lengths == (2, 8) and found.axes.names == ("a", "d")
    close(do.value(found), np.concatenate([x, y.T], 1))
    assert ng.concat_along_axis([q, p], "d").axes == found.axes.T
    close(do.value(found[:, :4] + p), 2 * x)  # a part as long as the axis has the axis
    r = do(values("ab"), "ab")
    close(do.value(ng.concat_along_axis([p, r], POOL["d"])), np.concatenate([x, values("ab")], 1))
    wide = ng.make_axis(name="wide")
    assert ng.concat_along_axis([r, p], [POOL["b"], POOL["d"]], out_axis=wide).axes[1] is wide and wide.length == 7
    for wrong in ([p, do(values("b"), "b")], [p, do(values("abd"), "abd")]):
        with pytest.raises(ng.UnmatchedAxesError, match="with one axis to concatenate"):
            ng.concat_along_axis(wrong, POOL["d"])
    with pytest.raises(ng.UnmatchedAxesError, match="stands for 7"):
        ng.concat_along_axis([r, p], [POOL["b"], POOL["d"]], out_axis=POOL["e"])


@both
def test_stack_pad_and_one_hot(make):
    do, x = Both(make), values("ab")
    p, q = do(x, "ab"), do(x.T, "ba")
    k = ng.make_axis(name="k")
    found = ng.stack([p, q], k, pos=1)
    assert k.length == 2 and found.axes == [POOL["a"], k, POOL["b"]]
    close(do.value(found), np.stack([x, x], 1))
    total = p.sum(out_axes=())
    close(do.value(ng.stack([total, total], k)), np.repeat(x.sum(), 2))
    padded = ng.pad(p, [(1, 0), 2])
    assert padded.axes.lengths == (3, 7)
    close(do.value(padded), np.pad(x, ((1, 0), (2, 2))))
    assert ng.pad(p, [0, (0, 1)], axes=axes_of("ad")).axes == axes_of("ad")
    index = np.array([[0, 2, 3], [1, 1, 0]])
    hot = ng.one_hot(do(index.astype(float), "ab"), POOL["d"])
    assert letters_of(hot.axes) == "dab"
    close(do.value(hot), np.eye(4)[index].transpose(2, 0, 1))
    close(do.value(ng.one_hot(do(np.array(2.0), ""), POOL["d"])), np.eye(4)[2])
    with pytest.raises(ng.UnmatchedAxesError, match="stands for 3"):
        ng.stack([p, p, p], k)
    with pytest.raises(ng.IncompatibleAxesError):
        ng.one_hot(p, POOL["a"])
    with pytest.raises(ng.IncompatibleAxesError):
        ng.stack([p], POOL["a"])


def test_bad_slices():
    x = ng.ones(axes_of("ab"))
    for key, error in ((2, IndexError), ((0, 0, 0), IndexError), (1.5, TypeError), ({"q": 0}, ValueError),
                       ((slice(None, None, 0),), ValueError), ([[0, 1]], TypeError)):  # fmt: skip
        with pytest.raises(error):
            x[key]


# ---- arrays -----------------------------------------------------------------------------------------------------------
def test_arrays():
    x = ng.array([[1, 2, 3], [4, 5, 6]], axes_of("ab"))
    assert x.dtype == np.float32 and x.size == 6 and x.ndim == 2 and len(x) == 2 and x.context == mx.cpu()
    assert np.asarray(x).tolist() == x.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert [row.tolist() for row in x] == x.tolist() and x.astype("int32").dtype == np.int32
    assert repr(x).endswith("<NamedArray Axes(a: 2, b: 3) @cpu(0)>")
    assert ng.array([1, 2]).axes.lengths == (2,) and ng.constant(3).item() == 3
    assert bool(ng.constant(3)) and int(ng.constant(3)) == 3
    assert ng.zeros(axes_of("a"), dtype="int64").tolist() == [0, 0] and ng.full((), 2).item() == 2
    plain = mx.nd.ones((2, 3))
    assert ng.tensor(plain, axes_of("ab")).value is plain
    assert x.with_order(axes_of("ba")).shape == (3, 2)
    for wrong in (lambda: x + plain, lambda: plain + x, lambda: ng.exp(plain), lambda: ng.maximum(x, "q"),
                  lambda: ng.array(x), lambda: ng.tensor(x, axes_of("ab")), lambda: x + ng.placeholder(axes_of("a")),
                  lambda: ng.tensor(3, ()), lambda: x + "q"):  # fmt: skip
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(AttributeError, match="works on positions"):
        ng.SwapAxis  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'exp'"):
        x.exq  # noqa: B018
    assert not hasattr(x, "no_such_thing")


@both
def test_functions_of_mx_nd_and_mx_sym(make):
    """Called with a tensor, they work by name."""
    do, F = Both(make), mx.sym if make else mx.nd
    x, y = values("ab"), values("db", 1)
    p, q = do(x, "ab"), do(y, "db")
    close(do.value(F.exp(p)), np.exp(x))
    close(do.value(F.broadcast_add(p, rhs=q)), x[:, :, None] + y.T)
    close(do.value(F.elemwise_mul(lhs=p, rhs=q)), x[:, :, None] * y.T)
    close(do.value(F.maximum(p, q)), np.maximum(x[:, :, None], y.T))
    close(do.value(F.maximum(p, 1)), np.maximum(x, 1))
    close(do.value(F.add_n([p, p, p])), 3 * x)
    close(do.value(F.clip(p, a_min=0.8, a_max=1.2)), np.clip(x, 0.8, 1.2))
    close(do.value(F.dot(p, q)), x @ y.T)
    close(do.value(F.sum(p, reduction_axes=POOL["a"])), x.sum(0))
    close(do.value(F.softmax(p, normalization_axes=POOL["a"])), np.exp(x) / np.exp(x).sum(0))
    with pytest.raises(AttributeError, match="works on positions"):
        F.SwapAxis(p)
    with pytest.raises(TypeError, match="takes reduction_axes"):
        F.sum(p, axis=1)
    with pytest.raises(TypeError, match="has no axes"):
        F.broadcast_add(p, F.zeros((2, 3)))


def test_in_place():
    x = ng.zeros(axes_of("ab"))
    plain = x.value
    x += ng.array([1, 2, 3], axes_of("b"))
    x *= 2
    assert x.value is plain and x.tolist() == [[2, 4, 6]] * 2
    x[0] = ng.array([7, 8, 9], axes_of("b"))
    x[:, 0] = 5
    assert plain.asnumpy().tolist() == [[5, 8, 9], [5, 4, 6]]
    x[:] = ng.array([1, 2], axes_of("a"))
    assert x.tolist() == [[1, 1, 1], [2, 2, 2]]
    with pytest.raises(ng.UnmatchedAxesError, match="does not fit"):
        x += ng.ones(axes_of("d"))
    with pytest.raises(ng.UnmatchedAxesError, match="cannot be written"):
        x[0] = ng.ones(axes_of("a"))


def test_numpy_shapes():
    with mx.util.np_shape():
        x = ng.array(values("ab"), axes_of("ab"), dtype="float64")
        total = x.sum(out_axes=())
        assert total.value.shape == ()
        close((x / total).sum(out_axes=()).asnumpy(), np.array(1.0))
        close(ng.flatten(total).asnumpy(), values("ab").sum().reshape(1))
        close(ng.unflatten(ng.flatten(total)).asnumpy(), values("ab").sum())
        assert x[0, 0].value.shape == () and ng.argmax(total).value.shape == ()
        close(ng.softmax(total).asnumpy(), np.array(1.0))


# ---- gradients --------------------------------------------------------------------------------------------------------
def test_gradients_of_arrays_have_axes():
    x, w = ng.array(values("ab"), axes_of("ab")), ng.array(values("bd"), axes_of("bd"))
    x.attach_grad()
    w.attach_grad()
    with mx.autograd.record():
        y = ng.dot(w, x.T)
    head = values("ad", 3)
    y.backward(ng.array(head, axes_of("ad")))
    assert x.grad.axes == x.axes and w.grad.axes == w.axes and y.axes == axes_of("da")
    np.testing.assert_allclose(x.grad.asnumpy(), head @ values("bd").T, rtol=1e-5)
    np.testing.assert_allclose(w.grad.asnumpy(), values("ab").T @ head, rtol=1e-5)
    assert ng.zeros(axes_of("a")).grad is None


def program(x, w):
    """Everything that moves axes, once."""
    y = ng.dot(x, w) + x.mean(reduction_axes=POOL["b"])
    y = ng.concat_along_axis([y, y * 2], POOL["d"]) if y.axes["d"].length == 4 else y
    y = ng.softmax(y, normalization_axes=y.axes["d"]) * ng.pad(y[{"d": slice(1, 5)}], [0, 2], axes=y.axes)
    y = ng.stack([y, y.T * 3], ng.make_axis(name="s"), pos=1)
    y = ng.unflatten(ng.flatten_at(ng.broadcast(y, y.axes + POOL["c"]), 2))
    return (ng.expand_dims(y, POOL["f"], 1) ** 2).sum(out_axes=())


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_every_order_agree(order):
    """Arrays, symbols and differences."""
    x, w = values("ab"), values("bd")
    tensors = [ng.array(v, axes_of(k), dtype="float64") for v, k in ((x, "ab"), (w, "bd"))]
    tensors[0].attach_grad()
    with mx.autograd.record():
        y = program(*tensors)
        for _ in range(order):
            y = ng.deriv(y, tensors[0])
            y = (y * ng.array(values("ab", 5), axes_of("ab"), dtype="float64")).sum(out_axes=())
    names = [ng.placeholder(axes_of(k), name=n, dtype="float64") for n, k in (("x", "ab"), ("w", "bd"), ("v", "ab"))]

    def by_symbol(order, x):
        y = program(*names[:2])
        for _ in range(order):
            y = ng.deriv(y, names[0])
            y = (y * names[2]).sum(out_axes=())
        given = {"x": x, "w": w, "v": values("ab", 5)}
        args = {k: mx.nd.array(given[k], dtype="float64") for k in y.list_arguments()}
        return y.eval(**args).item()

    found = by_symbol(order, x)
    assert y.item() == pytest.approx(found, rel=1e-9)
    step = 1e-5 * values("ab", 5)
    numeric = (by_symbol(order - 1, x + step) - by_symbol(order - 1, x - step)) / 2e-5
    assert found == pytest.approx(numeric, rel=1e-5)


def test_errors_of_deriv():
    x = ng.placeholder(axes_of("a"), name="x")
    with pytest.raises(TypeError, match="not a placeholder"):
        ng.deriv(x * x, x * 2)
    with pytest.raises(ng.UnmatchedAxesError, match="error has"):
        ng.deriv(x * x, x, error=ng.placeholder(axes_of("b")))
    with pytest.raises(TypeError, match="do not mix"):
        ng.deriv(x * x, ng.ones(axes_of("a")))


def test_derivative_with_an_error():
    x = ng.array(values("ab"), axes_of("ab"), dtype="float64")
    x.attach_grad()
    error = ng.array(values("ba", 1), axes_of("ba"), dtype="float64")
    with mx.autograd.record():
        y = x * x
    close(ng.deriv(y, x, error=error).asnumpy(), 2 * values("ab") * values("ba", 1).T)
    s = ng.placeholder(axes_of("ab"), name="s")
    e = ng.placeholder(axes_of("ba"), name="e")
    found = ng.grad(s * s, s, e).eval(s=x, e=error)
    close(found.asnumpy(), 2 * values("ab") * values("ba", 1).T)


# ---- the story of Prod ------------------------------------------------------------------------------------------------
def prod_gradient(x, delta, reduction_axes):
    """The rule of nGraph's tutorial: count zeros, and leave out the one."""
    is_zero = ng.equal(x, 0)
    zeros = ng.sum(is_zero, reduction_axes=reduction_axes)
    none, one = (ng.broadcast(ng.equal(zeros, k), axes=x.axes) for k in (0, 1))
    replaced = ng.equal(x, 0.0) * 1.0 + (1.0 - ng.equal(x, 0.0)) * x
    others = ng.prod(replaced, reduction_axes=reduction_axes) / replaced
    return ng.broadcast(delta, x.axes) * (none * others + one * is_zero * others)


@pytest.mark.parametrize("data", [[[1.0, 2.0], [3.0, 4.0]], [[0.0, 2.0], [0.0, 0.0]]])
@both
def test_prod(make, data):
    axes = ng.make_axes([ng.make_axis(2), ng.make_axis(2)])
    x = ng.placeholder(axes, name="x") if make else ng.constant(data, axes=axes)
    if not make:
        x.attach_grad()
    with mx.autograd.record():
        y = ng.prod(x, reduction_axes=x.axes[1])
        gradient = ng.deriv(y, x)
        delta = ng.sum(x, reduction_axes=x.axes[1]) * 0 + 1
        rule = prod_gradient(x, ng.axes_with_order(delta, y.axes), x.axes[1])
    found, dx, by_rule = ((v.eval(x=mx.nd.array(data)) if make else v) for v in (y, gradient, rule))
    assert found.axes == [axes[0]] and found.tolist() == np.prod(data, 1).tolist()
    assert dx.axes == axes and dx.tolist() == by_rule.tolist() == [row[::-1] for row in data]


# ---- symbols ----------------------------------------------------------------------------------------------------------
def test_symbols():
    a, b = axes_of("ab")
    x, y = ng.placeholder([a, b], name="x"), ng.variable(axes=b, name="y")
    z = x * y
    assert z.value.infer_shape() == ([(2, 3), (3,)], [(2, 3)], []) and z.list_arguments() == ["x", "y"]
    executor = z.simple_bind(mx.cpu())
    executor.arg_dict["x"][:] = 2
    executor.arg_dict["y"][:] = 3
    assert executor.forward()[0].asnumpy().tolist() == [[6] * 3] * 2
    given = ng.array(values("ba"), [b, a])
    found = z.eval(x=given, y=ng.ones(b))
    np.testing.assert_array_equal(found.asnumpy(), given.asnumpy().T)
    for args in ({"x": given, "y": ng.ones(b)}, [given, ng.ones(b)]):
        bound = z.bind(mx.cpu(), args, args_grad={"x": ng.zeros([a, b])})
        np.testing.assert_array_equal(bound.forward()[0].asnumpy(), given.asnumpy().T)
    with pytest.raises(ng.UnmatchedAxesError, match="'x' has"):
        z.eval(x=ng.ones([a]), y=ng.ones(b))
    with pytest.raises(ng.UnmatchedAxesError, match="cannot take the gradient"):
        z.bind(mx.cpu(), {"x": given, "y": ng.ones(b)}, args_grad={"x": ng.zeros([b, a])})
    assert ng.placeholder(a).name.startswith("placeholder") and ng.placeholder("q", [a]).name == "q"
    assert repr(x) == "<NamedSymbol x Axes(a: 2, b: 3)>"
    with pytest.raises(TypeError):
        ng.tensor(mx.sym.Group([x.value, y.value]), a)


def test_lengths_unknown_to_symbols():
    a, b, c = (ng.make_axis(name=n) for n in "abc")
    x, y = ng.placeholder([a, b], name="x"), ng.placeholder([c, b], name="y")
    z = ng.dot(ng.exp(x), y) + x.sum(out_axes=a) - ng.flatten(y).sum(reduction_axes=ng.FlattenedAxis([c, b]))
    assert z.axes == [a, c]
    p, q = np.ones((2, 3)), np.arange(12).reshape(4, 3)
    found = z.value.eval(x=mx.nd.array(p), y=mx.nd.array(q))[0].asnumpy()
    np.testing.assert_allclose(found, np.exp(p) @ q.T + 3 - 66, rtol=1e-5)


def test_axes_leave_nothing_in_the_graph():
    """A symbol made with axes is the symbol that is written by hand."""
    c, n, k = ng.make_axis(5, "C"), ng.make_axis(4, "N"), ng.make_axis(3, "K")
    with mx.name.NameManager():
        x, w, b = ng.placeholder([n, c], name="x"), ng.variable([k, c], name="w"), ng.variable([k], name="b")
        by_name = ng.softmax(ng.tanh(ng.dot(x, w) + b) * 2, normalization_axes=k).sum(reduction_axes=n)
    with mx.name.NameManager():
        x, w, b = (mx.sym.Variable(v, shape=s) for v, s in (("x", (4, 5)), ("w", (3, 5)), ("b", (3,))))
        h = mx.sym.broadcast_add(mx.sym.dot(x, w, transpose_b=True), b)
        by_hand = mx.sym.softmax(mx.sym.tanh(h) * 2, axis=1).sum(axis=0)
    assert by_name.value.tojson() == by_hand.tojson()
    told = [s.simple_bind(mx.cpu()).explain() for s in (by_name, by_hand)]
    assert len(told[0]) == len(told[1]) and told[0].memory == told[1].memory
    for mine, other in zip(*told, strict=True):
        assert (mine.formula, mine.source, mine.nbytes) == (other.formula, other.source, other.nbytes)


def test_imperative_calls_are_cheap():
    import time

    x, y = ng.ones(axes_of("ab")), ng.ones(axes_of("b"))
    p, q = x.value, y.value

    def seconds(call):
        best = float("inf")
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(200):
                call()
            best = min(best, time.perf_counter() - start)
        return best / 200

    assert seconds(lambda: x + x) < seconds(lambda: p + p) + 10e-6
    assert seconds(lambda: x + y) < seconds(lambda: p + q) + 50e-6
