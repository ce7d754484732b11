"""Loops whose iterations add to the same elements: in parts and in blocks, with the same bits as one loop or another."""

import numpy as np
import pytest
from hybrid_kernels import from_text

import mxop as mx
from mxop import dtypes
from mxop.operator import kernel
from mxop.operator.hybrid import Hybrid
from mxop.operator.hybrid.numbers import parts
from mxop.operator.hybrid.translate import BLOCK, Translator

pytest.importorskip("numba")


@kernel
def sampled(data, places):
    """Elements of a row between two places, which several points share."""
    y = output_tensor(places.shape, data.dtype)
    last = data.shape[0] - 2
    for i in parallel(places.shape[0]):
        for j in range(places.shape[1]):
            k = max(min(int32(floor(places[i, j])), last), 0)
            part = places[i, j] - k
            y[i, j] = data[k] * (1 - part) + data[k + 1] * part
    return y


@kernel
def counted(data):
    """A histogram, of all and of the negative, from the last element on."""
    counts = output_tensor((8,), "int32")
    total = output_tensor((1, 8), data.dtype)
    for i in range(data.shape[0] - 1, -1, -1):
        k = max(min(int32(abs(data[i])), 7), 0)
        counts[k] += 1
        total[0, k] -= data[i] * 0.1
    return counts, total


@kernel
def chosen(data, weights):
    """What is added depends on a condition, and one element gets a sum of all."""
    y = output_tensor(data.shape, data.dtype)
    for i in parallel(data.shape[0]):
        k = max(min(int32(floor(data[i])), weights.shape[0] - 1), 0)
        if data[i] > 0:
            y[i] = weights[k] * data[i]
        y[i] += weights[0] / 3
    return y


def run(function, arrays, wanted=None, python=False, threads=2):
    """Return the results of a kernel, or of its gradient with heads of many digits."""
    body, rng = Hybrid(function, as_python=python), np.random.default_rng(1)
    if wanted is not None:
        heads = [rng.normal(size=a.shape).astype(a.dtype) for a in run(function, arrays)]
        body, arrays = body.derived, [*arrays, *heads]
    codes = [dtypes.code_of(a.dtype) for a in arrays]
    known = body.known([a.shape for a in arrays], codes, () if wanted is None else (wanted,))
    outputs = [np.full(s, 77, dtypes.numpy_dtype(c)) for s, c in zip(known.out_shapes, known.out_codes, strict=True)]
    before = mx.context.get_num_threads()
    mx.context.set_num_threads(threads)
    try:
        body.compute(known, arrays, outputs, python)
    finally:
        mx.context.set_num_threads(before)
    return outputs


def values(shape, size, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=size).astype(dtype), rng.uniform(-1, size + 1, shape).astype(dtype)]


def text_of(function, ranks, wanted=None, checked=False):
    body = Hybrid(function)
    if wanted is None:
        return Translator(body.compiled([0] * len(ranks), ranks, ()).types, checked).text
    return Translator(body.derived.compiled([0] * len(ranks), ranks, (wanted,)).types, checked).text


def test_what_is_written():
    text = text_of(sampled, (1, 2, 2), (0, 1))
    assert "_mx_parts(" in text and text.count("_mx_prange(") == 2 and "_mx_empty(" in text
    assert "_mx_parts(" not in text_of(sampled, (1, 2, 2), (1,))  # its rows are apart
    checked = text_of(sampled, (1, 2, 2), (0, 1), checked=True)
    assert "_mx_parts(" in checked and "_mx_empty(" not in checked
    assert "_mx_empty(" in text_of(counted, (1,)) and "_mx_parts(" not in text_of(counted, (1,))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape, size", [((0, 3), 4), ((1, 1), 2), ((3, BLOCK + 1), 5), ((40, 2 * BLOCK), 7), ((2, 3), 4000)])
def test_gradients_have_the_same_bits_everywhere(shape, size, dtype):
    """With one thread and two, in blocks and, as plain Python, without; and they are right."""
    data, places = values(shape, size, dtype)
    found = [run(sampled, [data, places], (0, 1), threads=n) for n in (1, 2)]
    found.append(run(sampled, [data, places], (0, 1), python=True))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
    heads = np.random.default_rng(1).normal(size=shape).astype(dtype).astype("float64")
    wide = places.astype("float64")
    k = np.clip(np.floor(wide).astype(int), 0, size - 2)
    exact = np.zeros(size)
    np.add.at(exact, k, heads * (1 - (wide - k)))
    np.add.at(exact, k + 1, heads * (wide - k))
    tolerance = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(found[0][0], exact, rtol=tolerance, atol=tolerance * max(abs(exact).max(), 1))


def test_several_parts_are_taken():
    """The sizes above are those of one part and of many."""
    assert [parts(n, n * 2 * m, size) for n, m, size in [(0, 3, 4), (3, BLOCK + 1, 5), (40, 2 * BLOCK, 7)]] == [
        1,
        3,
        16,
    ]
    assert parts(2, 12, 4000) == 1 and parts(5, 0, 0) == 1
    assert parts(10**6, 10**12, 10**7) == 7 and parts(10**6, 10**12, 10**9) == 1  # copies are not larger than 2**26


@pytest.mark.parametrize("n", [0, 1, BLOCK - 1, BLOCK, 3 * BLOCK + 5])
def test_sums_in_blocks(n):
    data = np.random.default_rng(3).uniform(-9, 9, n).astype("float32")
    for a, b in zip(run(counted, [data]), run(counted, [data], python=True), strict=True):
        np.testing.assert_array_equal(a, b)
    assert run(counted, [data])[0].sum() == n


def test_conditions_and_sums_of_all():
    data, weights = np.random.default_rng(4).uniform(-2, 5, 999).astype("float32"), np.ones(4, "float32")
    first, second = (run(chosen, [data, weights], (0, 1), threads=n) for n in (1, 2))
    third = run(chosen, [data, weights], (0, 1), python=True)
    for a, b, c in zip(first, second, third, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
    heads = np.random.default_rng(1).normal(size=999).astype("float32").astype("float64")
    exact = np.zeros(4)
    np.add.at(exact, np.clip(np.floor(data).astype(int), 0, 3), np.where(data > 0, heads * data, 0))
    exact[0] += heads.sum() / 3
    np.testing.assert_allclose(first[1], exact, rtol=1e-4)


@pytest.mark.parametrize("line", ["c[k] = c[k] * 2 + x[i]", "c[k] += c[0]", "c[k] += x[i]\n        y[i] = c[k]"])
def test_what_is_read_meanwhile_is_not_put_off(line, tmp_path):
    text = (
        "def f(x):\n    c = output_tensor((4,), x.dtype)\n    y = output_tensor(x.shape, x.dtype)\n"
        "    for i in range(x.shape[0]):\n        k = min(max(int32(x[i]), 0), 3)\n        {}\n    return c, y\n"
    )
    f = from_text(text.format(line), tmp_path)
    assert "_mx_empty(" not in text_of(f, (1,))
    assert "_mx_empty(" in text_of(from_text(text.format("c[k] += x[i]"), tmp_path), (1,))
    x = np.random.default_rng(5).uniform(-1, 5, 600).astype("float32") / 50
    for a, b in zip(run(f, [x]), run(f, [x], python=True), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_register_and_elements_at_once():
    data = np.random.default_rng(6).uniform(-1, 5, (3, 600)).astype("float32")
    assert "later" in text_of(summed, (2,)) and "_mx_r" in text_of(summed, (2,))
    for a, b in zip(run(summed, [data]), run(summed, [data], python=True), strict=True):
        np.testing.assert_array_equal(a, b)


@kernel
def summed(x):
    rows = output_tensor((x.shape[0],), x.dtype)
    bins = output_tensor((4,), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            rows[i] += x[i, j] / 3
            bins[min(max(int32(x[i, j]), 0), 3)] -= x[i, j] / 3
    return rows, bins


def test_results_and_arguments_that_share_memory():
    """Compiled loops are told that nothing is shared: an array that is given and written is copied before."""
    x = mx.nd.arange(5)
    op = mx.operator.Custom(kernel(reversed_and_next))
    wanted = op(x).asnumpy().tolist()
    assert op(x, out=x) is not None and x.asnumpy().tolist() == wanted == [5, 5, 5, 5, 4]


def reversed_and_next(x):
    y = output_tensor(x.shape, x.dtype)
    last = x.shape[0] - 1
    for i in range(x.shape[0]):
        y[i] = x[last - i] + x[min(i + 1, last)]
    return y


@kernel
def lengths(points):
    y = output_tensor((points.shape[0],), points.dtype)
    for i in range(points.shape[0]):
        y[i] = points[i, 0] * points[i, 0] + points[i, 1] * points[i, 1]
    return y


def test_short_axes_are_compiled_in(tmp_path, monkeypatch):
    """Elements that lie a known distance apart are read by SIMD instructions."""
    monkeypatch.setenv("MXOP_CACHE_DIR", str(tmp_path))  # what is found on disk cannot be looked into
    body = Hybrid(lengths)
    for length in (2, 3, 100):
        points = np.random.default_rng(0).normal(size=(50, length)).astype("float32")
        known, y = body.known([points.shape], [dtypes.FLOAT32], ()), np.empty(50, "float32")
        body.compute(known, [points], [y])
        np.testing.assert_allclose(y, points[:, 0] ** 2 + points[:, 1] ** 2, rtol=1e-6)
    one = body.compiled([0], [2], ())
    assert set(one.forms) == {(False, False, (2,)), (False, False, (3,)), (False, False, ())}
    assert "points.shape[1] == 2" in Translator(one.types, False, {(one.small[0][1], 1): 2}).text
    assert "vector.body" in "".join(one.form(False, False, (2,)).inspect_llvm().values())


def test_offsets_have_32_bits():
    """Loops over larger tensors make no use of them."""
    body = Hybrid(lengths)
    assert body.known([(2**31 - 1, 2)], [0], ()).shapes.safe
    assert not body.known([(2**31, 2)], [0], ()).shapes.safe


@pytest.mark.parametrize(
    "lines, whole",
    [
        ("for i in range(x.shape[0]):\n        for j in range(x.shape[1]):\n            y[i, j] = x[j, i]", True),
        ("for j, i in grid((x.shape[1], x.shape[0])):\n        y[i, j] = 1", True),
        (
            "for arg in grid(y.shape):\n        y[arg] = 2\n    for arg in grid(y.shape):\n        y[arg] += y[0, 0]",
            True,
        ),
        ("for arg in grid(y.shape):\n        y[arg] += 1", False),
        ("for arg in grid(y.shape):\n        if x[arg] > 0:\n            y[arg] = 1", False),
        ("for i in range(1, x.shape[0]):\n        for j in range(x.shape[1]):\n            y[i, j] = 1", False),
        ("for i in range(0, x.shape[0], 2):\n        for j in range(x.shape[1]):\n            y[i, j] = 1", False),
        ("for i, j in grid(x.shape):\n        y[i, i] = 1", False),
        ("for i, j in grid(x.shape):\n        for k in range(0):\n            y[i, j] = 1", False),
        ("for i, j in grid(x.shape):\n        y[i, j] = 1\n        y[j, i] = y[j, i] + 1", False),
        ("y[0, 0] += 1\n    for i, j in grid(x.shape):\n        y[i, j] = 1", False),
        ("for i in range(x.shape[1]):\n        for j in range(x.shape[0]):\n            y[i, j] = 1", False),
    ],
)
def test_what_is_written_whole_is_not_cleared(lines, whole, tmp_path):
    f = from_text(f"def f(x):\n    y = output_tensor(x.shape, x.dtype)\n    {lines}\n    return y\n", tmp_path)
    one = Hybrid(f).compiled([0], [2], ())
    assert len(one.whole) is int(whole)
    x = np.random.default_rng(7).normal(size=(3, 3)).astype("float32")
    np.testing.assert_array_equal(run(f, [x])[0], f(x))
