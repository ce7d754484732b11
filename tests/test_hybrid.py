"""Kernels of the hybrid language: what is compiled gives what plain Python gives, and schedules mean what they say."""

import warnings

import numpy as np
import pytest
from hybrid_kernels import (
    ALL,
    FLOATS,
    TOLERANCE,
    agree,
    compiled,
    copied,
    from_text,
    matmul,
    numbers,
    outer_product,
    softmax,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mxop as mx
from mxop import dtypes
from mxop.operator import HybridError, kernel
from mxop.operator.hybrid import Hybrid

numba = pytest.importorskip("numba")


# ---- kernels as people write them -----------------------------------------------------------------------------------------
@kernel
def stencil(x):
    y = output_tensor(x.shape, x.dtype)
    for i, j in grid(x.shape):
        y[i, j] = x[i, j]
        if i > 0 and i < x.shape[0] - 1 and j > 0 and j < x.shape[1] - 1:
            y[i, j] = (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]) / 4
    return y


@kernel
def moments(x):
    mean = output_tensor((x.shape[1],), x.dtype)
    var = output_tensor((x.shape[1],), x.dtype)
    n = x.shape[0]
    for j in parallel(x.shape[1]):
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
def flattened(x):
    y = output_tensor((x.shape[0] * x.shape[1] * x.shape[2],), x.dtype)
    for i in parallel(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                y[(i * x.shape[1] + j) * x.shape[2] + k] = x[i, j, k]
    return y


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 1, 1), (0, 3, 2), (3, 0, 2), (7, 2, 9)])
def test_matmul(shape, dtype):
    n, m, k = shape
    agree(matmul, numbers((n, k), dtype), numbers((k, m), dtype, 1), rtol=None)


@pytest.mark.parametrize("dtype", [*FLOATS, "float16"])
def test_outer_product(dtype):
    agree(outer_product, numbers((4, 4), dtype), numbers((4, 4), dtype, 1), rtol=5 * TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [*FLOATS, "float16"])
def test_softmax(dtype):
    x = numbers((5, 7), dtype)
    agree(softmax, x)
    assert np.allclose(compiled(softmax, x).astype("float32").sum(1), 1, atol=5e-3)


@pytest.mark.parametrize("shape", [(5, 6), (1, 5), (2, 2), (3, 3)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_stencil(shape, dtype):
    agree(stencil, numbers(shape, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_several_outputs(dtype):
    x = numbers((6, 3), dtype)
    mean, var = compiled(moments, x)
    np.testing.assert_allclose(mean, x.mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(var, x.var(0), rtol=1e-5)
    agree(moments, x)


@pytest.mark.parametrize("function, shape", [(flattened, (2, 3, 4)), (copied, (2, 3, 4)), (copied, (5,)), (copied, (2, 0))])
@pytest.mark.parametrize("dtype", [*ALL, "bool"])
def test_moves(function, shape, dtype):
    agree(function, numbers(shape, dtype))


# ---- the words ------------------------------------------------------------------------------------------------------------
UNARY = ["sqrt", "rsqrt", "sign", "log", "exp", "expm1", "tanh", "abs", "erf", "sin", "cos", "atan", "floor", "ceil", "trunc",
         "round", "isnan", "isinf", "isfinite", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]  # fmt: skip
BINARY = ["power", "atan2", "ceil_div", "max", "min"]
SPECIAL = np.array([0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 3.7, -3.7, 1e-8, 100.0, -2.0])


@pytest.mark.parametrize("word", UNARY)
@pytest.mark.parametrize("dtype", ALL)
def test_functions_of_one(word, dtype, tmp_path):
    values = SPECIAL.copy()
    if np.dtype(dtype).kind == "f" and not word.startswith("int"):
        values = np.concatenate([values, [np.inf, -np.inf, np.nan, 7e4, 1e-7]])
    values = np.abs(values) if np.dtype(dtype).kind == "u" else values
    result = "float64" if not word.startswith(("is", "int")) else "int64"
    f = from_text(
        f"def f(x):\n    y = output_tensor(x.shape, '{result}')\n    for i in range(x.shape[0]):\n"
        f"        y[i] = {word}(x[i])\n    return y\n",
        tmp_path,
    )
    with np.errstate(all="ignore"):
        x = values.astype(dtype)
    agree(f, x, rtol=3e-6 if dtype != "float64" else 1e-14)


@pytest.mark.parametrize("word", BINARY)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "float16"])
def test_functions_of_two(word, dtype, tmp_path):
    f = from_text(
        "def f(x, z):\n    y = output_tensor((x.shape[0], z.shape[0]), 'float64')\n"
        f"    for i, j in grid(y.shape):\n        y[i, j] = {word}(x[i], z[j])\n    return y\n",
        tmp_path,
    )
    x = np.array([1, 2, 5, -3, 7]).astype(dtype)
    z = np.array([1, 3, 4, 2]).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x, z = np.append(x, np.array([np.nan, 0.5, -np.inf], dtype)), np.append(z, np.array([np.nan, -0.5], dtype))
    agree(f, x, z, rtol=3e-6 if dtype != "float64" else 1e-14)


def test_float16_is_computed_in_float32(tmp_path):
    f = from_text(
        "def f(x):\n    y = output_tensor((1,), x.dtype)\n    s = 0.0\n    for i in reduce(x.shape[0]):\n"
        "        s += x[i]\n    y[0] = s / x.shape[0]\n    return y\n",
        tmp_path,
    )
    x = np.full(5000, 100.1, "float16")
    assert compiled(f, x)[0] == np.float16(100.1) == f(x)[0]


@given(st.floats(width=32), st.sampled_from([1.0, -1.0]))
@settings(max_examples=300, deadline=None)
def test_float16_rounds_as_numpy(value, sign):
    half = _half()
    with np.errstate(all="ignore"):
        wanted = np.float32(np.float16(np.float32(sign * value)))
        np.testing.assert_array_equal(half(np.float32(sign * value)), wanted)


def test_float16_rounds_every_bit_pattern():
    half = _half()
    bits = np.arange(0, 2**32, 65521, dtype=np.uint64).astype(np.uint32)
    near = np.concatenate(
        [bits, np.arange(0x33000000, 0x33000100, dtype=np.uint32), np.arange(0x477FEF00, 0x477FF100, dtype=np.uint32)]
    )
    values = near.view(np.float32)
    with np.errstate(all="ignore"):
        wanted = values.astype(np.float16).astype(np.float32)
    given = np.array([half(v) for v in values], np.float32)
    np.testing.assert_array_equal(given, wanted)


def _half():
    from mxop.operator.hybrid.numbers import compiled

    return compiled()["_mx_half"]


# ---- expressions at random ------------------------------------------------------------------------------------------------
def expressions():
    leaves = st.sampled_from(["x[i]", "z[i]", "i", "2", "0.5", "3", "x[0]", "-1.5", "n", "a"])
    unary = st.sampled_from(["(-{0})", "abs({0})", "float32({0})", "(+{0})", "tanh({0})", "int32(tanh({0}) * 50)"])
    binary = st.sampled_from(["({0} + {1})", "({0} - {1})", "({0} * {1})", "({0} / {1})", "max({0}, {1})", "min({0}, {1})",
                              "({0} // {1})", "({0} % {1})"])  # fmt: skip
    choice = st.sampled_from(["({0} if {1} > {2} else {0})", "({0} if 0 < {1} <= {2} or {1} == 1 else {0})"])

    def extend(inner):
        return st.one_of(
            st.builds(lambda f, a: f.format(a), unary, inner),
            st.builds(lambda f, a, b: f.format(a, b), binary, inner, inner),
            st.builds(lambda f, a, b, c: f.format(a, b, c), choice, inner, inner, inner),
        )

    return st.recursive(leaves, extend, max_leaves=6)


@given(expressions(), st.sampled_from(ALL), st.sampled_from(ALL), st.sampled_from(ALL), st.integers(0, 5), st.booleans())
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_expressions_agree(tmp_path, text, x_type, z_type, y_type, n, parallel):
    word = "parallel" if parallel else "serial"
    f = from_text(
        f"def f(x, z, a):\n    y = output_tensor(x.shape, '{y_type}')\n    n = x.shape[0]\n"
        f"    b = a\n    for i in {word}(x.shape[0]):\n        s = {text}\n        y[i] = s\n    return y\n",
        tmp_path,
    )
    x, z = numbers((n,), x_type, 1), numbers((n,), z_type, 2)
    try:
        with np.errstate(all="ignore"):
            wanted = f(x, z, 7).astype("float64")
    except (OverflowError, ValueError, ZeroDivisionError, TypeError, IndexError):
        return  # Python's own integers are stricter than a machine's: they take neither infinity nor NaN
    try:
        given = compiled(f, x, z, attributes=(7,)).astype("float64")
    except HybridError:
        return  # refused, not wrong
    exact = np.dtype(y_type).kind != "f"
    bounded = np.isfinite(wanted) & (np.abs(wanted) < 1e6)
    if exact:
        return_types = np.iinfo(y_type)
        bounded &= (wanted > return_types.min) & (wanted < return_types.max) & (np.abs(wanted) < 100)
        near = np.abs(given - wanted)[bounded] <= 1  # a rounding apart before truncation
        assert near.all(), (text, given, wanted)
    else:
        np.testing.assert_allclose(given[bounded], wanted[bounded], rtol=4e-3 if y_type == "float16" else 2e-5, atol=1e-4)
        assert (np.isnan(given) == np.isnan(wanted)).all(), (text, given, wanted)


SCHEDULES = st.sampled_from(["range", "serial", "parallel", "vectorize"])


@given(SCHEDULES, SCHEDULES, st.sampled_from(["range", "reduce", "serial"]), st.tuples(*[st.integers(0, 5)] * 3),
       st.sampled_from(ALL))  # fmt: skip
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_schedules_change_nothing(tmp_path, first, second, third, shape, dtype):
    f = from_text(
        f"def f(a, b):\n    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)\n    for i in {first}(a.shape[0]):\n"
        f"        for j in {second}(b.shape[1]):\n            for k in {third}(a.shape[1]):\n"
        "                c[i, j] += a[i, k] * b[k, j]\n    return c\n",
        tmp_path,
    )
    n, m, k = shape
    agree(f, numbers((n, k), dtype), numbers((k, m), dtype, 3))


@pytest.mark.parametrize("k", [2, 1.5])
def test_what_a_condition_excludes_is_not_read(k):
    @kernel
    def f(x, k):
        y = output_tensor(x.shape, x.dtype)
        n = x.shape[0]
        for i in parallel(n):
            if (i < n - 1 and x[i + 1] > 0.0) or i == n - 1:
                y[i] = (x[i + 1] if i < n - 1 else x[i - 1] if i > 0 else 0.0) * k
            elif not (x[i] > 1) and (x[i - 1] if i > 0 else 2.0) < 1.5:
                y[i] = -1
            else:
                y[i] = x[i] ** 2 - 5 % 3 + 7 // 2 * 1.0
        return y

    agree(f, np.array([1.0, 2.0, -3.0, 0.5, -1.0, 4.0]), attributes=(k,))


def test_integers_that_no_float_holds():
    @kernel
    def f(x):
        y = output_tensor(x.shape, "int64")
        for i in range(x.shape[0]):
            y[i] = x[i] + 9007199254740993 - (1 if x[i] > 2 else 0)
        return y

    agree(f, np.array([1, 2, 3]))


# ---- indices --------------------------------------------------------------------------------------------------------------
@kernel
def shifted(x, by):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i + by]
    return y


def test_indices_from_the_end():
    x = np.arange(4.0)
    agree(shifted, x, attributes=(-2,))


@pytest.mark.parametrize("word", ["range", "parallel"])
def test_index_outside_raises(word, tmp_path):
    f = from_text(
        f"def f(x, by):\n    y = output_tensor(x.shape, x.dtype)\n    for i in {word}(x.shape[0]):\n"
        "        y[i] = x[i + by]\n    return y\n",
        tmp_path,
    )
    for by in (1, -10, 10**9):
        with pytest.raises(IndexError, match=r"k0\.py:4: kernel f: an index is outside of its tensor\n    y\[i\] = x"):
            compiled(f, np.arange(4.0), attributes=(by,))
        with pytest.raises(IndexError):
            f(np.arange(4.0), by)
    assert compiled(f, np.arange(4.0), attributes=(0,)).tolist() == [0, 1, 2, 3]


@kernel
def gather(table, index):
    y = output_tensor((index.shape[0], table.shape[1]), table.dtype)
    for i in range(index.shape[0]):
        for j in range(table.shape[1]):
            y[i, j] = table[index[i], j]
    return y


def test_index_from_data():
    table, index = numbers((5, 3), "float32"), np.array([4, 0, -1, 2], "int32")
    agree(gather, table, index)
    with pytest.raises(IndexError):
        compiled(gather, table, np.array([5], "int32"))


@pytest.mark.parametrize(
    "function, shapes, attributes, safe",
    [
        (matmul, [(3, 4), (4, 5)], (), True),
        (matmul, [(3, 4), (3, 5)], (), False),
        (stencil, [(4, 4)], (), False),
        (shifted, [(4,)], (0,), True),
        (shifted, [(4,)], (1,), False),
        (gather, [(4, 3), (2,)], (), False),
        (flattened, [(2, 3, 4)], (), True),
        (copied, [(2, 3)], (), True),
        (softmax, [(2, 3)], (), True),
        (softmax, [(2, 0)], (), False),
    ],
)
def test_what_is_proven_of_indices(function, shapes, attributes, safe):
    program = Hybrid(function)
    assert program.shapes(shapes, (), attributes).safe is safe


@pytest.mark.parametrize(
    "index, safe",
    [
        ("min(int32(i) * 1073741824, 9)", False),  # i = 2: the least int32
        ("min(int32(i) * 1048576, 9)", True),
        ("min(max(int8(i), 0), 100) + 124", False),
        ("min(max(int16(i), 0), 100) + 124", True),
        ("max(uint8(i) - 4, 0)", False),  # 252
        ("max(int32(i) - 4, 0)", True),
        ("min(-int16(i * 4096 - 32768), 9)", False),
        ("max(-(int16(i) * 8192), 0) // 64", False),
        ("max(min(int32(x[i]), 200), 0)", True),
        ("max(min(int32(x[i]) + 1, 200), 0)", True),
        ("min(int64(i) * 4611686018427387904, 9)", False),
    ],
)
def test_indices_that_wrap_around_are_checked(index, safe, tmp_path):
    """An index is proven to lie inside in the type in which it is computed."""
    f = from_text(
        f"def f(x):\n    y = output_tensor((8,), x.dtype)\n    for i in range(8):\n        y[i] = x[{index}]\n    return y\n",
        tmp_path,
    )
    assert Hybrid(f).known([(230,)], [dtypes.FLOAT32], ()).shapes.safe is safe
    x = np.arange(230, dtype="float32") * 1e7
    try:
        with np.errstate(all="ignore"):
            f(x)
    except IndexError:
        with pytest.raises(IndexError):
            compiled(f, x)
    else:
        agree(f, x)


# ---- inputs that are assigned ---------------------------------------------------------------------------------------------
@kernel
def accumulate(a, b):
    for i in range(a.shape[0]):
        b[i] = b[i] + a[i]
    return b


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_input_is_assigned(dtype):
    a, b = np.arange(3).astype(dtype), np.ones(3, dtype)
    assert accumulate(a, b) is b and b.tolist() == [1, 2, 3]
    x, y = mx.nd.array(a, dtype=dtype), mx.nd.ones(3, dtype=dtype)
    z = mx.operator.Custom(accumulate)(x, y)
    assert z.asnumpy().tolist() == [1, 2, 3] and y.asnumpy().tolist() == [1, 2, 3] and x.asnumpy().tolist() == [0, 1, 2]


def test_input_is_not_assigned_while_it_is_recorded():
    x, y = mx.nd.ones(3), mx.nd.ones(3)
    y.attach_grad()
    with mx.autograd.record(), pytest.raises(mx.MXNetError, match="assigns its input 1"):
        mx.operator.Custom(accumulate)(x, y)


def test_returned_input_that_is_not_assigned():
    @kernel
    def f(a):
        y = output_tensor(a.shape, a.dtype)
        for i in range(a.shape[0]):
            y[i] = -a[i]
        return y, a

    y, a = compiled(f, np.arange(3.0))
    assert y.tolist() == [0, -1, -2] and a.tolist() == [0, 1, 2]


# ---- called directly ------------------------------------------------------------------------------------------------------
def test_called_directly():
    assert isinstance(matmul(np.eye(2), np.eye(2)), np.ndarray)
    assert matmul.__name__ == "matmul" and matmul.__doc__ == "A product of matrices."
    with pytest.raises(mx.MXNetError, match="takes 2 arguments"):
        matmul(np.eye(2))
    with pytest.raises(mx.MXNetError, match="takes NumPy arrays"):
        matmul(mx.nd.ones((2, 2)), mx.nd.ones((2, 2)))


def test_a_number_that_a_tensor_cannot_hold():
    """NumPy warns or raises; a warning finds the names that Python's machinery asks for."""

    @kernel
    def f(x):
        y = output_tensor(x.shape, "uint8")
        for i in range(x.shape[0]):
            y[i] = -i
        return y

    with warnings.catch_warnings(), pytest.raises((OverflowError, DeprecationWarning)):
        warnings.simplefilter("error")
        f(np.ones(2))


def test_decorator_with_arguments():
    info = (mx.operator.CustomRegOp().input(0, "a").output(0, "y")
            .dtype_format(*[mx.operator.DataType.F32_None] * 2).target("CPU").get_op_info())  # fmt: skip

    @kernel(reg_info=info, compile_attrs={"test1": True})
    def f(a):
        y = output_tensor(a.shape, a.dtype)
        for i in range(a.shape[0]):
            y[i] = a[i]
        return y

    custom = mx.operator.Custom(f)
    assert custom(mx.nd.ones(2)).asnumpy().sum() == 2
    with pytest.raises(mx.MXNetError, match=r"\(float64 -> float64\).*not among those supported: \(float32\) -> \(float32\)"):
        custom(mx.nd.ones(2, dtype="float64"))


@pytest.mark.parametrize("value", [3, 2.5, True])
def test_attributes(value, tmp_path):
    f = from_text(
        "def f(x, a):\n    y = output_tensor(x.shape, x.dtype)\n    for i in range(x.shape[0]):\n"
        "        y[i] = x[i] * a + (1 if a > 1 else 2)\n    return y\n",
        tmp_path,
    )
    agree(f, numbers((3,), "float32"), attributes=(value,))
    custom = mx.operator.Custom(f)
    x = mx.nd.ones(2)
    assert (custom(x, a=value).asnumpy() == custom(x, value).asnumpy()).all()
    with pytest.raises(mx.MXNetError, match=r"'a'.*missing"):
        custom(x)


def test_lists_that_are_equal_and_not_of_one_type(tmp_path):
    f = from_text(
        "def f(x, by):\n    y = output_tensor(x.shape, 'float64')\n    for i in range(x.shape[0]):\n"
        "        y[i] = x[i] * by[0]\n    return y\n",
        tmp_path,
    )
    program = Hybrid(f, declared=["by"])
    x = np.array([100], "int8")
    for by, wanted in ((2,), -56), ((2.0,), 200):
        y = np.empty(1)
        program.compute(program.known([(1,)], [dtypes.INT8], (by,)), [x], [y])
        assert y[0] == wanted


def test_names_that_look_like_others(tmp_path):
    f = from_text(
        "def f(x):\n    y = output_tensor(x.shape, x.dtype)\n    for i in range(x.shape[0]):\n        a = x[i]\n"
        "        y[i] = a\n    for i in range(x.shape[0]):\n        a__2 = 5.0\n        a = x[i]\n        a += 1.0\n"
        "        y[i] += a * a__2\n    return y\n",
        tmp_path,
    )
    agree(f, np.arange(3.0))


def test_a_kernel_called_as_a_word(tmp_path):
    text = "def range(x):\n    y = output_tensor(x.shape, x.dtype)\n    for i in range(x.shape[0]):\n"
    text += "        y[i] = x[i]\n    return y\n"
    agree(from_text(text, tmp_path, "range"), np.arange(3.0))


def test_list_attribute():
    info = (mx.operator.CustomRegOp().input(0, "x").output(0, "y").attr("axes", "required", "listInt")
            .dtype_format(*[mx.operator.DataType.None_None] * 2).target("CPU").get_op_info())  # fmt: skip

    def f(x, axes):
        y = output_tensor((axes[0], axes[1]), x.dtype)
        for i, j in grid(y.shape):
            y[i, j] = x[i * axes[1] + j]
        return y

    custom = mx.operator.Custom(f, reg_info=info)
    assert custom(mx.nd.arange(6), (2, 3)).asnumpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert custom(mx.nd.arange(6), axes=[3, 2]).shape == (3, 2)
