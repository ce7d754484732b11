"""Random numbers of the distributions that need rejection, by parameters in arrays, choices, orders, and densities."""

import ctypes
import itertools
import math
import re

import numpy as np
import pytest
from cuda_compilers import find_host, host_library, pointer
from scipy import stats
from test_random import MASK, key_of, philox

import mxop as mx
from mxop import autograd, nd
from mxop.op import F, elementwise, unregister

KEY = 0x123456789ABCDEF
MEANS = [0.0, 1e-9, 0.3, 1.0, 7.0, 63.99, 64.0, 65.0, 300.0, 1e6, 1e15]
SHAPES = [0.0, 1e-3, 0.5, 0.999, 1.0, 2.0, 40.0, 1e8]


@pytest.fixture(scope="module")
def drawn():
    """Operators that give what the primitives give, for parameters that are arrays."""

    @elementwise(name="_test_gamma")
    def gamma(alpha, key):
        """Draw."""
        return F.random_gamma(key, alpha)

    @elementwise(name="_test_poisson")
    def poisson(lam, key):
        """Draw."""
        return F.random_poisson(key, lam)

    yield {"gamma": gamma, "poisson": poisson}
    unregister("_test_gamma")
    unregister("_test_poisson")


# ---- what elements get -----------------------------------------------------------------------------------------------
def words(i, attempt, purpose):
    return philox((i & MASK, i >> 32, attempt, purpose), (KEY & MASK, KEY >> 32))


def unit(a, b):
    return ((a >> 6) * 2**26 + (b >> 6) + 0.5) * 2.0**-52


def gamma_number(i, alpha):
    """Return what Marsaglia and Tsang's method makes of the words of one element."""
    d = (alpha + 1 if alpha < 1 else alpha) - 1 / 3
    for attempt in itertools.count():
        a, b, c, e = words(i, attempt, 1)
        signed = c - 2**32 if c >> 31 else c
        x = math.sqrt(-2 * math.log(unit(a, b))) * math.cos(math.pi * signed * 2.0**-31)
        v = (1 + x / math.sqrt(9 * d)) ** 3
        if v > 0 and math.log(((e >> 1) + 0.5) * 2.0**-31) < 0.5 * x * x + d * (1 - v + math.log(v)):
            break
    factor = unit(*words(i, 0, 2)[:2]) ** (1 / alpha) if 0 < alpha < 1 else float(alpha > 0)
    return d * v * factor


def poisson_number(i, lam):
    """Return the number of one element: by the sums of the probabilities, or by Hormann's rejection."""
    if lam < 64:
        return stats.poisson(lam).ppf(unit(*words(i, 0, 3)[:2])) if lam else 0.0
    b = 0.931 + 2.53 * math.sqrt(lam)
    a, inverse = -0.059 + 0.02483 * b, 1.1239 + 1.1328 / (b - 3.4)
    for attempt in itertools.count():
        w = words(i, attempt, 3)
        u, v = unit(*w[:2]) - 0.5, unit(*w[2:])
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + lam + 0.43)
        if us >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2):
            return k
        sure = k >= 0 and (us >= 0.013 or v <= us)
        if sure and math.log(v * inverse / (a / (us * us) + b)) <= stats.poisson(lam).logpmf(k):
            return k


@pytest.mark.parametrize("alpha", SHAPES)
def test_gamma_numbers_follow_from_key_and_index(drawn, alpha):
    found = drawn["gamma"](nd.full((40,), alpha, dtype="float64"), key_of(KEY)).asnumpy()
    expected = [gamma_number(i, alpha) for i in range(40)]
    np.testing.assert_allclose(found, expected, rtol=1e-11 if alpha < 1e6 else 1e-9, atol=1e-300)


@pytest.mark.parametrize("lam", MEANS[:-1])
def test_poisson_numbers_follow_from_key_and_index(drawn, lam):
    found = drawn["poisson"](nd.full((40,), lam, dtype="float64"), key_of(KEY)).asnumpy()
    np.testing.assert_array_equal(found, [poisson_number(i, lam) for i in range(40)])


@pytest.mark.parametrize(("name", "parameters"), [("gamma", SHAPES), ("poisson", MEANS)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_are_the_same_in_every_vector(drawn, name, parameters, dtype, levels):
    x = nd.array(np.random.default_rng(0).choice(parameters, 70_001), dtype=dtype)
    whole = drawn[name](x, key_of(KEY)).asnumpy()
    for isa in levels:
        for n in (1, 7, 9, 63, 64, 65, 130):
            np.testing.assert_allclose(drawn[name](x[:n], key_of(KEY)).asnumpy(), whole[:n], rtol=1e-6, err_msg=isa)


@pytest.mark.parametrize(("name", "parameters"), [("gamma", SHAPES), ("poisson", MEANS)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_are_the_same_in_every_block_and_thread(drawn, name, parameters, dtype, tune):
    x = nd.array(np.random.default_rng(0).choice(parameters, 70_001), dtype=dtype)
    whole = drawn[name](x, key_of(KEY)).asnumpy()
    for count, size in itertools.product((1, 2), (400, 1000, 8192)):
        mx.context.set_num_threads(count)
        tune(block_bytes=size)
        np.testing.assert_array_equal(drawn[name](x, key_of(KEY)).asnumpy(), whole)


@pytest.mark.parametrize(("name", "parameters"), [("gamma", SHAPES), ("poisson", MEANS)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_cuda_text_draws_the_same_numbers(drawn, name, parameters, dtype):
    if find_host() is None:
        pytest.skip("no C++ compiler")
    op, types = drawn[name], {"x": dtype, "key": "int64"}
    symbol = op(mx.sym.Variable("x"), mx.sym.Variable("key"))
    (row,) = symbol.simple_bind(mx.cpu(), "null", type_dict=types, x=(1000,), key=(1,)).explain()
    library, function = host_library(row.cuda_source), re.search(r"__global__ void.*? (\w+)\(", row.cuda_source)[1]
    x = np.random.default_rng(1).choice(parameters, 1000).astype(dtype)
    out, key = np.zeros_like(x), np.array([KEY])
    getattr(library, function)(pointer(x), pointer(key), pointer(out), ctypes.c_longlong(x.size))
    np.testing.assert_allclose(
        out, op(nd.array(x, dtype=dtype), key_of(KEY)).asnumpy(), rtol=1e-6 if dtype == "float32" else 1e-9
    )


@pytest.mark.parametrize("name", ["gamma", "poisson"])
def test_parameters_without_a_distribution_give_nan(drawn, name):
    x = nd.array([-1, -1e-30, np.nan, -np.inf, np.inf, 0] * 20, dtype="float64")
    found = drawn[name](x, key_of(3)).asnumpy().reshape(20, 6)
    assert np.isnan(found[:, :4]).all() and (found[:, 4] == np.inf).all() and (found[:, 5] == 0).all()


@pytest.mark.parametrize(
    ("name", "law"),
    [("gamma", stats.gamma), ("poisson", stats.poisson)],
)
@pytest.mark.parametrize("parameter", [0.2, 5.0, 64.5, 1000.0])
def test_means_and_deviations_of_many_numbers(drawn, name, law, parameter):
    n = 400_000
    x = drawn[name](nd.full((n,), parameter, dtype="float64"), key_of(7)).asnumpy()
    mean, var, kurtosis = (float(v) for v in law(parameter).stats("mvk"))
    assert abs(x.mean() - mean) < 5 * math.sqrt(var / n)
    assert abs(x.var() - var) < 5 * var * math.sqrt((kurtosis + 2) / n)


def test_one_key_gives_unrelated_numbers_of_each_kind(drawn):
    x, n = nd.full((50_000,), 3, dtype="float64"), 50_000
    g, p = drawn["gamma"](x, key_of(5)).asnumpy(), drawn["poisson"](x, key_of(5)).asnumpy()
    u = nd._internal._uniform_of(key_of(5), low=0, high=1, most=1, shape=(n,), dtype="float64").asnumpy()
    for a, b in ((g, p), (g, u), (p, u)):
        assert abs(np.corrcoef(a, b)[0, 1]) < 6 / math.sqrt(n)


def test_a_number_is_drawn_by_a_key():
    op = elementwise(lambda x: F.random_gamma(x, x), name="_test_wrong_gamma")
    try:
        with pytest.raises(mx.MXNetError, match="not a number"):
            op(nd.zeros((2,)))
    finally:
        unregister("_test_wrong_gamma")


# ---- functions -------------------------------------------------------------------------------------------------------
#: Name, numbers, and the distribution of numbers.
LAWS = {
    "uniform": ((2.0, 5.0), lambda a, b: stats.uniform(a, b - a)),
    "normal": ((-1.0, 2.0), stats.norm),
    "exponential": ((4.0,), lambda scale: stats.expon(scale=scale)),
    "gamma": ((2.5, 0.5), lambda a, b: stats.gamma(a, scale=b)),
    "poisson": ((6.0,), stats.poisson),
    "negative_binomial": ((3, 0.25), stats.nbinom),
    "generalized_negative_binomial": ((6.0, 0.5), lambda mu, a: stats.nbinom(1 / a, 1 / (1 + mu * a))),
}


def fits(numbers, law, n):
    mean, var = (float(v) for v in law.stats("mv"))
    return abs(numbers.mean() - mean) < 6 * math.sqrt(var / n) and abs(numbers.var() / var - 1) < 0.2


@pytest.mark.parametrize("name", LAWS)
def test_numbers_and_arrays_as_parameters(name):
    numbers, law = LAWS[name]
    draw = getattr(nd.random, name)
    mx.random.seed(1)
    one = draw(*numbers, shape=(100, 100))
    assert one.shape == (100, 100) and fits(one.asnumpy(), law(*numbers), 10_000)
    arrays = [nd.array([p, p + (1 if name != "negative_binomial" else 0.5)]) for p in numbers]
    many = draw(*arrays, shape=(100, 100))
    assert many.shape == (2, 100, 100) and many.dtype == np.float32
    for k in range(2):
        assert fits(many[k].asnumpy(), law(*(a[k].asscalar().item() for a in arrays)), 10_000)
    assert draw(*arrays).shape == (2,)
    assert draw(*arrays, shape=3, dtype="float64").dtype == np.float64
    out = nd.zeros((2, 3), dtype="float16")
    assert draw(*arrays, shape=3, out=out) is out and (out != 0).asnumpy().any()
    symbols = [mx.sym.var(str(i)) for i in range(len(arrays))]
    symbol = getattr(mx.sym.random, name)(*symbols, shape=(4, 5))
    executor = symbol.bind(mx.cpu(), dict(zip("01", arrays, strict=False)))
    mx.random.seed(9)
    bound = executor.forward()[0].asnumpy()
    mx.random.seed(9)
    np.testing.assert_array_equal(bound, draw(*arrays, shape=(4, 5)).asnumpy())
    assert (executor.forward()[0].asnumpy() != bound).any()


def test_arguments_come_in_mxnets_order():
    out = nd.zeros((2, 3))
    for name, (numbers, _) in LAWS.items():
        draw = getattr(nd.random, name)
        assert draw(*numbers, (2, 3), "float64", mx.cpu(1)).context == mx.cpu(1)
        assert draw(*numbers, (2, 3), "float32", None, out) is out
        assert getattr(mx.sym.random, name)(*numbers, (2, 3), "float64", name="x").infer_shape()[1] == [(2, 3)]
    for api in (nd, mx.sym):
        with pytest.raises(mx.MXNetError, match="strange"):
            api.random.gamma(1, 2, strange=3)


def test_numbers_drawn_by_rejection_join_other_formulas():
    def model(F, x):
        return F.exp(x) * F.random.gamma_like(x, alpha=2.5) + F.tanh(x * F.random.poisson_like(x, lam=70))

    x = nd.full((300, 400), 0.3)
    x.attach_grad()
    mx.random.seed(3)
    with autograd.record():
        called = model(nd, x)
    called.backward()
    executor = model(mx.sym, mx.sym.var("x")).simple_bind(mx.cpu(), x=x.shape)
    mx.random.seed(3)
    np.testing.assert_array_equal(executor.forward(is_train=True, x=x)[0].asnumpy(), called.asnumpy())
    executor.backward(nd.ones(x.shape))
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), x.grad.asnumpy())


@pytest.mark.parametrize("name", [n for n in LAWS if n != "exponential"])
def test_like_operators_take_shape_and_type(name):
    numbers, law = LAWS[name]
    for dtype in ("float32", "float64", "float16"):
        data = nd.full((100, 100), np.nan, dtype=dtype)
        found = getattr(nd.random, f"{name}_like")(data, *numbers)
        assert (
            found.shape == data.shape
            and found.dtype == data.dtype
            and fits(found.asnumpy().astype(float), law(*numbers), 10_000)
        )


@pytest.mark.parametrize("api", ["nd", "sym"])
def test_float16_numbers_like_an_array_do_not_reach_the_upper_end(api):
    data = nd.zeros((300_000,), dtype="float16")
    if api == "nd":
        x = nd.random.uniform_like(data, low=0.5, high=0.75)
    else:
        x = mx.sym.random.uniform_like(mx.sym.var("x"), low=0.5, high=0.75).bind(mx.cpu(), {"x": data}).forward()[0]
    assert x.asnumpy().max() < 0.75 and x.asnumpy().min() >= 0.5


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_uniform_numbers_of_arrays_do_not_reach_the_upper_end(dtype):
    low, high = nd.array([0, 0.5, -1, 3, 100]), nd.array([1, 0.501, 0, 3, 101])
    x = nd.random.uniform(low, high, shape=(200_000,), dtype=dtype).asnumpy()
    low, high = (a.astype(dtype).asnumpy() for a in (low, high))
    assert (x.min(1) >= low).all() and ((x.max(1) < high) | (low == high)).all()


def test_seeds_repeat_whatever_draws():
    def drawn():
        mx.random.seed(12)
        parameters = nd.array([0.5, 3, 80])
        found = [nd.random.gamma(parameters, parameters, shape=5), nd.random.poisson(parameters, shape=5)]
        found += [nd.random.negative_binomial(3, 0.5, shape=5), nd.random.shuffle(nd.arange(50))]
        return [a.asnumpy() for a in (*found, *nd.random.multinomial(nd.ones((4, 9)) / 9, shape=5, get_prob=True))]

    first, again = drawn(), drawn()
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert (nd.random.gamma(2, 1, shape=5).asnumpy() != nd.random.gamma(2, 1, shape=5).asnumpy()).any()


def test_mxnets_names():
    for name in (
        "exponential",
        "gamma",
        "generalized_negative_binomial",
        "negative_binomial",
        "normal",
        "poisson",
        "uniform",
    ):
        for api in (nd, mx.sym):
            assert all(hasattr(api, n) for n in (f"random_{name}", f"sample_{name}"))
            assert hasattr(api.random, name) and hasattr(api.random, f"{name}_like")
        assert getattr(mx.random, name) is getattr(nd.random, name)
    for name in ("uniform", "normal", "shuffle", "random_randint", "sample_multinomial", "random_pdf_gamma"):
        assert hasattr(nd, name) and hasattr(mx.sym, name)
    assert nd.random_gamma(2, 1, shape=(3,)).shape == (3,) and nd.normal(shape=2).shape == (2,)
    assert mx.random.multinomial is nd.random.multinomial and mx.random.shuffle is nd.random.shuffle
    assert nd.random.randn(2, 3, loc=nd.array([1.0]), scale=nd.array([1.0])).shape == (1, 2, 3)
    assert nd.random.gamma(3, 1).shape == (1,) and nd.random.gamma(3, 1, out=nd.zeros((2, 2))).shape == (2, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.gamma(0, 1), "_random_gamma: alpha=0.0; expected a number above 0"),
        (lambda r: r.gamma(1, -2), "_random_gamma: beta=-2.0; expected a number above 0"),
        (lambda r: r.gamma(math.nan), "_random_gamma: alpha=nan; expected a number above 0"),
        (lambda r: r.poisson(-1), "_random_poisson: lam=-1.0; expected 0 or a number above"),
        (lambda r: r.poisson(1, dtype="int32"), "_random_poisson: dtype='int32'; expected one of float16"),
        (lambda r: r.poisson(1, out=nd.zeros((2,), dtype="int32")), "dtype='int32'; expected one of float16"),
        (lambda r: r.negative_binomial(-1, 0.5), "_random_negative_binomial: k=-1; expected 0 or a number above"),
        (lambda r: r.negative_binomial(2.5, 0.5), "_random_negative_binomial: parameter k=2.5 is not allowed"),
        (lambda r: r.negative_binomial(2, -0.5), "_random_negative_binomial: p=-0.5; expected 0 or a number above"),
        (lambda r: r.generalized_negative_binomial(1, -1), "alpha=-1.0; expected 0 or a number above"),
        (lambda r: r.normal_like(nd.zeros(2), scale=-1), "_random_normal_like: scale=-1.0; expected a number above 0"),
        (lambda r: r.gamma("a"), "random.gamma: alpha is a str; expected numbers alone, or NDArrays alone"),
        (lambda r: r.gamma(1, nd.ones(2)), "random.gamma: beta is a NDArray; expected numbers alone"),
        (lambda r: r.exponential([1, 2]), "random.exponential: scale is a list; expected numbers alone"),
        (lambda r: r.randint(nd.ones(2), nd.ones(2)), "random.randint: low is a NDArray; expected a number"),
        (lambda r: r.normal(nd.ones(2), nd.ones(3)), r"_sample_normal: mu has shape \(2,\) but sigma has shape \(3,\)"),
        (
            lambda r: r.normal(nd.ones(2), nd.ones(2), shape=(2, 0)),
            r"_sample_normal: shape=\(2, 0\); expected sizes above 0",
        ),
        (
            lambda r: r.normal(nd.ones(2), nd.ones(2), dtype="int8"),
            "_sample_normal: dtype='int8'; expected one of float16",
        ),
        (lambda r: r.multinomial(nd.empty((2, 0))), r"_sample_multinomial: data has shape \(2, 0\); expected prob"),
        (
            lambda r: r.multinomial(nd.ones(2), dtype="int64"),
            "_sample_multinomial: dtype='int64'; expected one of uint8",
        ),
        (
            lambda r: r.multinomial(nd.ones(2), shape=(-1,)),
            r"_sample_multinomial: shape=\(-1,\); expected sizes above 0",
        ),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(mx.MXNetError, match=message):
        call(nd.random)


def test_symbols_and_numbers_do_not_mix():
    with pytest.raises(TypeError, match=r"sym\.random\.normal: loc is a Symbol; expected numbers alone, or Symbols alone"):
        mx.sym.random.normal(mx.sym.var("a"), 1)


def test_sampled_parameters_without_a_distribution_give_nan():
    """In MXNet some of these calls never end."""
    bad = nd.array([-1, 0, 2])
    assert np.isnan(nd.sample_gamma(bad, bad).asnumpy()[0]) and nd.sample_gamma(bad, bad).asnumpy()[1] == 0
    assert np.isnan(nd.sample_poisson(bad).asnumpy()).tolist() == [True, False, False]
    p = nd.array([0.5, -1, 1.5, 0.5, 0.0])
    found = nd.sample_negative_binomial(nd.array([-1, 2, 2, 0, 3]), p).asnumpy()
    assert np.isnan(found[:2]).all() and found[2:].tolist() == [0, 0, np.inf]
    found = nd.sample_generalized_negative_binomial(nd.array([-1, 2, 0, 3]), nd.array([0.5, -1, 1, 0])).asnumpy()
    assert np.isnan(found[:2]).all() and found[2] == 0 and found[3] >= 0


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "uint8"])
def test_parameters_of_any_type_give_float32(dtype):
    found = nd.sample_normal(nd.array([5, 9], dtype=dtype), nd.array([0, 0], dtype=dtype), shape=2)
    assert found.dtype == np.float32 and found.asnumpy().tolist() == [[5, 5], [9, 9]]


def test_parameters_have_no_gradient():
    mu = nd.array([1.0, 2.0])
    mu.attach_grad()
    with autograd.record():
        y = nd.sample_normal(mu, mu, shape=3) + nd.sample_gamma(mu, mu, shape=3) + mu.expand_dims(1)
    y.backward()
    assert mu.grad.asnumpy().tolist() == [3, 3]


def test_zipfian_classes():
    mx.random.seed(4)
    sampled, true, expected = nd.contrib.rand_zipfian(nd.array([3, 0]), 50_000, 20)
    assert (sampled.dtype, true.dtype, expected.dtype) == (np.int64, np.float64, np.float64)
    chances = np.log((np.arange(20) + 2) / (np.arange(20) + 1)) / np.log(21)
    assert stats.chisquare(np.bincount(sampled.asnumpy(), minlength=20), chances * 50_000).pvalue > 1e-6
    np.testing.assert_allclose(true.asnumpy(), 50_000 * chances[[3, 0]], rtol=1e-12)
    np.testing.assert_allclose(expected.asnumpy(), 50_000 * chances[sampled.asnumpy()], rtol=1e-12)
    symbols = mx.sym.contrib.rand_zipfian(mx.sym.var("x"), 50_000, 20)
    executor = mx.sym.Group(list(symbols)).bind(mx.cpu(), {"x": nd.array([3, 0])})
    mx.random.seed(4)
    np.testing.assert_array_equal(executor.forward()[0].asnumpy(), sampled.asnumpy())


# ---- choices ---------------------------------------------------------------------------------------------------------
def test_shapes_of_choices():
    one, two = nd.array([0.1, 0.2, 0.7]), nd.array([[0.1, 0.2, 0.7]] * 2)
    for data, shape, expected in [
        (one, None, (1,)), (one, 2, (2,)), (one, (2, 3), (2, 3)), (two, None, (2,)), (two, 1, (2, 1)), (two, (3, 2), (2, 3, 2)),
        (two.reshape((1, 2, 3)), (4,), (1, 2, 4)), (two.reshape((2, 1, 3)), None, (2, 1)),
    ]:  # fmt: skip
        for get_prob in (False, True):
            found = nd.random.multinomial(data, shape, get_prob)
            assert [a.shape for a in (found if get_prob else [found])] == [expected] * (1 + get_prob)
        given = {} if shape is None else {"shape": shape}
        assert mx.sym.random.multinomial(mx.sym.var("x"), **given).infer_shape(x=data.shape)[1] == [expected] * 2
    assert nd.random.multinomial(one).dtype == np.int32
    assert nd.random.multinomial(one, dtype="float16", get_prob=True)[1].dtype == np.float32
    assert nd.random.multinomial(one.astype("float16"), get_prob=True)[1].dtype == np.float16


def test_choices_have_their_probabilities():
    p = np.random.default_rng(0).dirichlet(np.ones(40), size=3)
    p[1, 5:20] = 0
    p[1] /= p[1].sum()
    x, log = nd.random.multinomial(nd.array(p), shape=(200, 500), get_prob=True)
    for k in range(3):
        counts = np.bincount(x[k].asnumpy().reshape(-1), minlength=40)
        assert counts[p[k] == 0].sum() == 0
        often = p[k] > 0
        assert stats.chisquare(counts[often], p[k][often] / p[k].sum() * counts.sum()).pvalue > 1e-6
        np.testing.assert_allclose(log[k].asnumpy(), np.log(p[k].astype("f4")[x[k].asnumpy()]), rtol=1e-5)


def test_what_probabilities_leave_goes_to_the_last():
    assert set(nd.random.multinomial(nd.array([0.0, 0.0, 0.0]), 50).asnumpy()) == {2}
    assert 0.7 < (nd.random.multinomial(nd.array([0.1, 0.1, 0.0]), 5000).asnumpy() == 2).mean() < 0.9
    assert set(nd.random.multinomial(nd.array([2.0, 2.0]), 50).asnumpy()) == {0}
    assert nd.random.multinomial(nd.array([np.nan, -1, np.inf]), 50).asnumpy().max() <= 2
    assert set(nd.random.multinomial(nd.array([1.0]), 50).asnumpy()) == {0}


def test_gradient_of_the_logarithm_of_probabilities():
    data = nd.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])
    data.attach_grad()
    with autograd.record():
        x, log = nd.random.multinomial(data, shape=4, get_prob=True)
        (g,) = autograd.grad(log, [data], nd.array([[1, 2, 3, 4], [1, 1, 1, 1]]), create_graph=True)
        total = (g * g).sum()
    expected, heads = np.zeros((2, 3)), np.array([[1, 2, 3, 4], [1, 1, 1, 1]])
    for k, j in itertools.product(range(2), range(4)):
        expected[k, x.asnumpy()[k, j]] += heads[k, j] / data.asnumpy()[k, x.asnumpy()[k, j]]
    np.testing.assert_allclose(g.asnumpy(), expected, rtol=1e-5)
    total.backward()
    np.testing.assert_allclose(data.grad.asnumpy(), -2 * expected**2 / data.asnumpy(), rtol=1e-5)


# ---- orders ----------------------------------------------------------------------------------------------------------
def test_every_order_is_as_likely():
    mx.random.seed(5)
    rows = [tuple(nd.shuffle(nd.array([0, 1, 2, 3])).asnumpy().astype(int)) for _ in range(6000)]
    counts = [rows.count(p) for p in itertools.permutations(range(4))]
    assert sum(counts) == 6000 and stats.chisquare(counts).pvalue > 1e-6


@pytest.mark.parametrize("dtype", ["float16", "int32", "float64", "uint8"])
def test_rows_stay_together(dtype):
    x = nd.arange(600).reshape((200, 3)).astype(dtype)
    y = nd.random.shuffle(x)
    assert y.dtype == x.dtype and (y != x).asnumpy().any()
    np.testing.assert_array_equal(np.sort(y.asnumpy(), axis=0), np.sort(x.asnumpy(), axis=0))
    assert {tuple(r) for r in y.asnumpy()} == {tuple(r) for r in x.asnumpy()}
    assert nd.shuffle(nd.zeros((5, 2, 2))).shape == (5, 2, 2) and nd.shuffle(nd.ones((1,))).asnumpy().tolist() == [1]


def test_gradients_go_back_to_their_places():
    x = nd.arange(20)
    x.attach_grad()
    with autograd.record():
        y = nd.shuffle(x)
        z = y * nd.arange(20)
    z.backward()
    np.testing.assert_array_equal(x.grad.asnumpy()[y.asnumpy().astype(int)], np.arange(20))


# ---- densities -------------------------------------------------------------------------------------------------------
#: Parameters, and what MXNet 1.9.1 gives for the samples, with its gradient of the parameters.
SAMPLE = [[0.5, 1.5, 2.0], [3.0, 1.0, 0.0]]
DENSITIES = {
    "uniform": (([0, 1], [2, 3]),
                [0.5] * 6, [[0.75, 0.75], [-0.75, -0.75]]),
    "normal": (([0, 1], [2, 3]),
               [0.193334058, 0.150568709, 0.120985359, 0.106482662, 0.132980749, 0.125794411],
               [[0.141122699, 0.009685656], [-0.123562247, -0.101318344]]),
    "exponential": (([2, 3],),
                    [0.735758901, 0.099574134, 0.036631279, 0.000370229, 0.149361208, 3.0], [[-0.154521048, 0.89943862]]),
    "poisson": (([2, 3],),
                [0.21596387, 0.287951827, 0.270670563, 0.22404182, 0.149361208, 0.049787067],
                [[-0.233960867, -0.149361193]]),
    "negative_binomial": (([2, 3], [0.4, 0.6]),
                          [0.185903221, 0.185903221, 0.1728, 0.138239995, 0.259200007, 0.21600002],
                          [[-0.176412255, -0.118672818], [1.527354836, 1.382400036]]),
    "generalized_negative_binomial": (([2, 3], [0.4, 0.6]),
                                      [0.260361195, 0.231432198, 0.198807046, 0.129723221, 0.192619309, 0.179778025],
                                      [[-0.140627265, -0.110068187], [-0.175352126, 0.115109861]]),
}  # fmt: skip


@pytest.mark.parametrize("name", DENSITIES)
@pytest.mark.parametrize("is_log", [False, True])
def test_densities_and_gradients_are_mxnets(name, is_log):
    parameters, values, grads = DENSITIES[name]
    sample, parameters = nd.array(SAMPLE), [nd.array(p) for p in parameters]
    for x in (sample, *parameters):
        x.attach_grad()
    with autograd.record():
        y = getattr(nd, f"random_pdf_{name}")(sample, *parameters, is_log=is_log)
        z = nd.exp(y) if is_log else y
    z.backward()
    np.testing.assert_allclose(z.asnumpy().reshape(-1), values, rtol=2e-5)
    for p, g in zip(parameters, grads, strict=True):
        np.testing.assert_allclose(p.grad.asnumpy(), g, rtol=2e-4, atol=1e-5)
    assert bool(sample.grad.asnumpy().any()) == (name in ("normal", "exponential"))


def test_densities_are_those_of_scipy():
    rng = np.random.default_rng(3)
    x, a, b = rng.uniform(0.2, 5, (3, 50)), rng.uniform(0.5, 4, 3), rng.uniform(0.5, 3, 3)
    k, p, column = rng.integers(0, 12, (3, 50)).astype(float), rng.uniform(0.2, 0.9, 3), (slice(None), None)
    cases = [
        ("normal", x, (a, b), stats.norm(a[column], b[column]).logpdf(x)),
        ("gamma", x, (a, b), stats.gamma(a[column], scale=1 / b[column]).logpdf(x)),
        ("exponential", x, (a,), stats.expon(scale=1 / a[column]).logpdf(x)),
        ("poisson", k, (a,), stats.poisson(a[column]).logpmf(k)),
        ("negative_binomial", k, (a, p), stats.nbinom(a[column], p[column]).logpmf(k)),
        ("generalized_negative_binomial", k, (a, b), stats.nbinom(1 / b[column], 1 / (1 + a * b)[column]).logpmf(k)),
    ]
    for name, sample, parameters, expected in cases:
        arrays = [nd.array(v, dtype="float64") for v in (sample, *parameters)]
        found = getattr(nd, f"random_pdf_{name}")(*arrays, is_log=True).asnumpy()
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10, err_msg=name)
        np.testing.assert_allclose(getattr(nd, f"random_pdf_{name}")(*arrays).asnumpy(), np.exp(expected), rtol=1e-9)
    points = rng.dirichlet(np.ones(4), size=(3, 5))
    alpha = rng.uniform(0.5, 3, (3, 4))
    found = nd.random_pdf_dirichlet(nd.array(points, dtype="float64"), nd.array(alpha, dtype="float64")).asnumpy()
    expected = [[stats.dirichlet(alpha[i]).pdf(points[i, j] / points[i, j].sum()) for j in range(5)] for i in range(3)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


# ---- devices ---------------------------------------------------------------------------------------------------------
ON_BOTH = {
    "gamma": lambda a: nd.random.gamma(0.7, 2, shape=(50,), ctx=a.context),
    "poisson": lambda a: nd.random.poisson(80, shape=(50,), ctx=a.context),
    "negative_binomial": lambda a: nd.random.negative_binomial(4, 0.2, shape=(50,), ctx=a.context),
    "generalized_negative_binomial": lambda a: nd.random.generalized_negative_binomial(4, 0.2, shape=(50,), ctx=a.context),
    "like": lambda a: nd.random.gamma_like(a, 3, 2) + nd.random.uniform_like(a) + nd.random.poisson_like(a, 5),
    "arrays": lambda a: nd.random.gamma(a, a, shape=(3, 4)) + nd.random.normal(a, a, shape=(3, 4)),
    "counts": lambda a: nd.random.negative_binomial(a, a / 10, shape=3),
    "choices": lambda a: nd.random.multinomial(a / a.sum(axis=1, keepdims=True), shape=(5, 2)),
    "probabilities": lambda a: nd.random.multinomial(a / 20, get_prob=True)[1],
    "order": nd.random.shuffle,
    "density": lambda a: nd.random_pdf_gamma(a, a[:, 0], a[:, 1]) + nd.random_pdf_poisson(a, a[:, 1], is_log=True),
    "dirichlet": lambda a: nd.random_pdf_dirichlet(a / 20, a[0]),
}


@pytest.mark.parametrize("name", ON_BOTH)
def test_both_devices_draw_the_same_numbers(gpu, name):
    data, found = np.random.default_rng(2).uniform(0.5, 5, (6, 4)), []
    for place in (gpu, mx.cpu()):
        mx.random.seed(8)
        found.append(ON_BOTH[name](nd.array(data, ctx=place)))
        assert found[-1].context == place
    np.testing.assert_allclose(found[0].asnumpy(), found[1].asnumpy(), rtol=2e-5)


def test_executors_of_both_devices_draw_the_same_numbers(gpu):
    x = mx.sym.var("x")
    choices = mx.sym.random.multinomial(x / 20, shape=(3, 2), get_prob=True)[1]
    symbol = mx.sym.broadcast_add(mx.sym.sum(mx.sym.random.gamma(x, x, shape=5), axis=2), mx.sym.sum(choices).reshape((1, 1)))
    data, found = np.random.default_rng(2).uniform(0.5, 5, (6, 4)), []
    for place in (gpu, mx.cpu()):
        executor = symbol.simple_bind(place, x=(6, 4))
        executor.arg_dict["x"][:] = data
        mx.random.seed(8)
        found.append(executor.forward(is_train=True)[0].asnumpy())
        executor.backward(nd.ones((6, 4), ctx=place))
        found.append(executor.grad_dict["x"].asnumpy())
    np.testing.assert_allclose(found[0], found[2], rtol=2e-5)
    np.testing.assert_allclose(found[1], found[3], rtol=2e-5)
    assert found[1].any()


def test_parameters_of_multinomial_by_position():
    """MXNet's function of arrays has ``out`` before the type, that of symbols has the type."""
    chances, out = nd.array([0, 1]), nd.zeros((3,), dtype="uint8")
    assert nd.random.multinomial(chances, 3, False, None, "float32").dtype == np.float32
    assert nd.random.multinomial(chances, 3, False, out, "uint8") is out and out.asnumpy().tolist() == [1, 1, 1]
    drawn = mx.sym.random.multinomial(mx.sym.Variable("x"), 3, False, "float32")
    assert drawn.infer_type(x="float32")[1] == [np.float32]
