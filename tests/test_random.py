"""Random numbers: what they follow from, and that every way of computing them gives the same."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd
from mxop.op import F, elementwise, unregister

MASK = 0xFFFFFFFF


def philox(counter, key):
    """Return the four words of Philox4x32-10, as its authors define it."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k[0], q & MASK, (p >> 32) ^ c[3] ^ k[1], p & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


def words(key, n):
    """Return the first words that follow from a key, in the order in which elements take them."""
    key &= (1 << 64) - 1
    found = []
    for call in range(0, -(-n // 64) * 16, 16):
        four = [philox((c & MASK, c >> 32, 0, 0), (key & MASK, key >> 32)) for c in range(call, call + 16)]
        found += [four[c][w] for w in range(4) for c in range(16)]
    return np.array(found, np.uint64)


def expected(key, n, dtype):
    """Return what an operator that only draws gives."""
    w = words(key, 2 * n + 64)
    pairs = w.reshape(-1, 2, 32)
    two = (pairs[:, 0] << np.uint64(32) | pairs[:, 1]).reshape(-1)[:n]
    one = w[:n]
    return {
        "float32": (one >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24),
        "float64": (two >> np.uint64(11)).astype(np.float64) * 2.0**-53,
        "int32": (one >> np.uint64(1)).astype(np.int32),
        "int64": (two >> np.uint64(1)).astype(np.int64),
        "uint8": (one >> np.uint64(24)).astype(np.uint8),
        "int8": (one >> np.uint64(25)).astype(np.int8),
    }[dtype]


@pytest.fixture(scope="module")
def drawn():
    """An operator that gives what the primitive gives, in the type of its data."""

    @elementwise(name="_test_drawn")
    def op(data, key):
        """Draw."""
        return F.random(key)

    yield op
    unregister("_test_drawn")


def key_of(number):
    return nd.array([number], dtype="int64")


def test_the_reference_gives_the_authors_answers():
    assert philox((0, 0, 0, 0), (0, 0)) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox((MASK,) * 4, (MASK,) * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    counter, key = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)
    assert philox(counter, key) == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "int8"])
@pytest.mark.parametrize("key", [0, -1, 0x123456789ABCDEF])
def test_numbers_are_those_of_philox(drawn, dtype, key, levels):
    for name in levels:
        for n in (1, 31, 64, 65, 700):
            found = nd._internal._test_drawn(nd.zeros((n,), dtype=dtype), key_of(key)).asnumpy()
            np.testing.assert_array_equal(found, expected(key, n, dtype), err_msg=name)


def test_numbers_do_not_depend_on_blocks(drawn, tune):
    x = nd.zeros((70_001,))
    whole = drawn(x, key_of(9)).asnumpy()
    np.testing.assert_array_equal(whole[:3000], expected(9, 3000, "float32"))
    for size in (64, 400, 1000):
        tune(block_bytes=size)
        np.testing.assert_array_equal(drawn(x, key_of(9)).asnumpy(), whole)


def test_strided_outputs_get_the_same_numbers(drawn):
    out = nd.zeros((6, 10))
    part = out[:, 2:7]
    drawn(nd.zeros((6, 5)), key_of(4), out=part)
    np.testing.assert_array_equal(part.asnumpy().reshape(-1), expected(4, 30, "float32"))


# ---- seeds -----------------------------------------------------------------------------------------------------------
def test_seeds_name_devices():
    def first(ctx):
        return nd.random.uniform(shape=(4,), ctx=ctx).asnumpy().tolist()

    mx.random.seed(11)
    zero, one = first(mx.cpu(0)), first(mx.cpu(1))
    assert zero != one
    mx.random.seed(11, ctx=mx.cpu(1))
    assert first(mx.cpu(1)) == zero
    mx.random.seed(11)
    assert (first(mx.cpu(0)), first(mx.cpu(1))) == (zero, one)
    with mx.cpu(1):
        assert nd.random.uniform(shape=(2,)).context == mx.cpu(1)
    for seed in (-3, 2**40, np.int64(5)):
        mx.random.seed(seed)


@pytest.mark.parametrize("given", [("a",), (1.5,), (1, "cpu"), (1, 0)])
def test_wrong_seeds_are_refused(given):
    with pytest.raises((TypeError, ValueError), match=r"random\.seed: (seed_state|ctx)="):
        mx.random.seed(*given)


def test_threads_that_draw_at_once_share_no_key():
    mx.random.seed(1)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: nd._internal._draw_key().asscalar(), range(2000)))
    mx.random.seed(1)
    assert sorted(found) == sorted(nd._internal._draw_key().asscalar() for _ in range(2000))
    assert len(set(found)) == 2000


# ---- ends of intervals ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (-1, 0), (1, 1.001), (-3e4, 3e4), (5, 5), (0.1, 0.7)])
def test_the_upper_end_is_excluded(dtype, low, high):
    mx.random.seed(2)
    x = nd.random.uniform(low, high, shape=(200_000,), dtype=dtype).asnumpy()
    first, end = np.dtype(dtype).type(low), np.dtype(dtype).type(high)
    assert x.min() >= first
    assert x.max() < end or first == end
    assert np.isfinite(nd.random.normal(shape=(200_000,), dtype=dtype).asnumpy()).all()


def test_integers_reach_both_ends():
    for low, high, dtype in ((-(2**31), 2**31, "int32"), (-(2**62), 2**62 - 1, "int64"), (2**40, 2**40 + 3, "int64")):
        x = nd.random.randint(low, high, shape=(100_000,), dtype=dtype).asnumpy()
        assert low <= int(x.min()) and int(x.max()) < high
        assert int(x.min()) < low + (high - low) * 1e-3 + 1 and int(x.max()) > high - (high - low) * 1e-3 - 2


def test_float16_numbers_are_evenly_spaced():
    x = nd.random.uniform(shape=(400_000,), dtype="float16").asnumpy().astype(np.float64) * 2**11
    assert np.array_equal(x, np.floor(x))
    counts = np.bincount(x.astype(int), minlength=2**11)
    assert np.sum((counts - counts.mean()) ** 2 / counts.mean()) < 2048 + 4 * np.sqrt(2 * 2048)  # chi-square


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.uniform(2, 1), "_random_uniform: low=2.0 and high=1.0; expected low <= high"),
        (
            lambda r: r.uniform(-3e38, 3e38),
            "_random_uniform: from low=-3e[+]38 to high=3e[+]38 is further than float32",
        ),
        (lambda r: r.uniform(0, 1, (2,), "int32"), "dtype='int32'; expected one of float16, float32, float64"),
        (lambda r: r.normal(0, 0), "_random_normal: scale=0.0; expected a number above 0"),
        (lambda r: r.exponential(0), "_random_exponential: lam=0.0; expected"),
        (lambda r: r.randint(3, 3), "_random_randint: low=3 and high=3; expected integers, low < high"),
        (
            lambda r: r.randint(0, 2**31 + 1),
            "_random_randint: from low=0 to high=2147483649 is further than int32 reaches",
        ),
        (lambda r: r.randint(-(2**62), 2**62, dtype="int64"), "_random_randint: .* is further than int64 reaches"),
        (lambda r: r.uniform(nd.zeros((2,)), 1), "low is a NDArray; expected numbers alone, or NDArrays alone"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(mx.MXNetError, match=message):
        call(nd.random)


def test_a_key_is_checked(drawn):
    x = nd.zeros((3,))
    with pytest.raises(mx.MXNetError, match="a key has dtype int64 but key has dtype float32"):
        drawn(x, nd.zeros((1,)))
    with pytest.raises(mx.MXNetError, match=r"a key has shape \(1,\) but key has shape \(2,\)"):
        drawn(x, nd.zeros((2,), dtype="int64"))


def test_formulas_draw_by_inputs_alone():
    for wrong, message in (
        (lambda x: F.random(x + 1), "takes an input that holds a key"),
        (lambda x: F.random(x) + x, "not a number"),
    ):
        op = elementwise(wrong, name="_test_wrong_draw")
        try:
            with pytest.raises(mx.MXNetError, match=message):
                op(nd.zeros((2,)))
        finally:
            unregister("_test_wrong_draw")


# ---- graphs ------------------------------------------------------------------------------------------------------------
def run(symbol, seed, **arrays):
    executor = symbol.bind(mx.cpu(), arrays, grad_req="null")
    mx.random.seed(seed)
    return executor.forward()[0].asnumpy()


def test_a_drawn_row_that_is_broadcast_stays_one_row():
    x = nd.array(np.arange(20.0).reshape(4, 5))
    symbol = mx.sym.broadcast_add(mx.sym.var("x"), mx.sym.random.uniform(shape=(1, 5)))
    mx.random.seed(8)
    row = nd.random.uniform(shape=(1, 5))
    np.testing.assert_array_equal(run(symbol, 8, x=x), (x + row).asnumpy())


def test_reductions_and_rows_read_the_same_numbers():
    x = nd.array(np.random.default_rng(0).normal(size=(64, 32)))
    v = mx.sym.var("x")
    symbol = mx.sym.softmax(v + mx.sym.random.normal(shape=(64, 32)), axis=1) + mx.sym.sum(
        mx.sym.random.uniform(shape=(64, 32)) * v, axis=1, keepdims=True
    ).broadcast_to(shape=(64, 32))
    mx.random.seed(8)
    a, b = nd.random.normal(shape=(64, 32)), nd.random.uniform(shape=(64, 32))
    by_calls = nd.softmax(x + a, axis=1) + nd.sum(b * x, axis=1, keepdims=True)
    np.testing.assert_allclose(run(symbol, 8, x=x), by_calls.asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("passes", [None, []])
def test_a_model_has_the_same_bits_bound_and_called(passes):
    def model(F, v):  # each draw where it is used, so that the calls come in the order of the graph
        y = F.Dropout(v * F.random.uniform(-1, 1, shape=(48, 40)) + F.random.normal(shape=(48, 40)), p=0.3, mode="always")
        z = F.dot(y, F.Dropout(F.random.uniform(shape=(40, 48)), p=0.2, mode="always"))
        w = F.softmax(z + F.random.normal(shape=(48, 48)), axis=-1)
        return F.sum(w * F.transpose(F.random.uniform(shape=(48, 48))), axis=1)

    x = nd.array(np.random.default_rng(0).normal(size=(48, 40)))
    x.attach_grad()
    mx.random.seed(4)
    with autograd.record():
        called = model(nd, x)
    called.backward()
    symbol, options = model(mx.sym, mx.sym.var("v")), {} if passes is None else {"passes": passes}
    executor = symbol.simple_bind(mx.cpu(), v=x.shape, **options)
    for is_train in (True, False):
        mx.random.seed(4)
        np.testing.assert_array_equal(executor.forward(is_train, v=x)[0].asnumpy(), called.asnumpy())
        if is_train:
            executor.backward(nd.ones((48,)))
            np.testing.assert_array_equal(executor.grad_dict["v"].asnumpy(), x.grad.asnumpy())


def test_equal_draws_are_two_draws():
    symbol = mx.sym.Group([mx.sym.random.uniform(shape=(3,)) for _ in range(3)])
    executor = symbol.bind(mx.cpu(), {})
    mx.random.seed(21)
    found = [a.asnumpy().tolist() for a in executor.forward()]
    mx.random.seed(21)
    assert found == [nd.random.uniform(shape=(3,)).asnumpy().tolist() for _ in range(3)]
    assert found[0] != found[1] != found[2]
    assert executor.forward()[0].asnumpy().tolist() not in found


def test_backward_does_not_draw_again_after_inference():
    executor = mx.sym.Dropout(mx.sym.var("x"), mode="always").simple_bind(mx.cpu(), x=(3, 4))
    executor.forward(is_train=False)
    with pytest.raises(mx.MXNetError, match="would draw other random numbers"):
        executor.backward(nd.ones((3, 4)))


def test_equal_random_operators_are_not_merged_before_they_are_expanded():
    x = mx.sym.var("x")
    a, b = (mx.sym.Dropout(x, mode="always", name=n) for n in "ab")
    executor = (a - b).simple_bind(mx.cpu(), x=(50, 50))
    executor.arg_dict["x"][:] = 1
    assert executor.forward()[0].asnumpy().any()


def test_a_monitored_run_draws_the_same_numbers():
    executor = mx.sym.Dropout(mx.sym.var("x"), mode="always").simple_bind(mx.cpu(), x=(30, 40))
    executor.arg_dict["x"][:] = 1
    for callback in (None, lambda name, array: None):
        executor.set_monitor_callback(callback)
        mx.random.seed(6)
        y = executor.forward(is_train=True)[0].asnumpy()
        executor.backward(nd.ones((30, 40)))
        np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), y)
    mx.random.seed(6)
    np.testing.assert_array_equal(nd.Dropout(nd.ones((30, 40)), mode="always").asnumpy(), y)


def test_shape_follows_from_use():
    symbol = mx.sym.random.uniform() + mx.sym.var("x")
    assert run(symbol, 3, x=nd.zeros((2, 3))).shape == (2, 3)


def test_symbols_survive_json():
    symbol = mx.sym.random.uniform(-2, 2, shape=(3, 4), dtype="float64") + 1
    np.testing.assert_array_equal(run(mx.sym.load_json(symbol.tojson()), 5), run(symbol, 5))


def test_out_must_be_an_array():
    for wrong in ([1, 2], np.zeros(2)):
        for draw in (nd.random.uniform, nd.random_uniform, nd.random_gamma):
            with pytest.raises(mx.MXNetError, match="out must be an NDArray"):
                draw(out=wrong)
    for nothing, told in (([], "1 output, out holds 0"), ([None], "shape")):
        with pytest.raises(mx.MXNetError, match=told):
            nd.random_uniform(out=nothing)
    with mx.util.np_shape(True), pytest.raises(mx.MXNetError, match="shape"):  # there () is a shape
        nd.random_uniform(out=nd.zeros((2, 3)))


# ---- dropout ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dropout_keeps_the_expected_share(dtype):
    x = nd.ones((100, 300), dtype=dtype)
    for p in (0.1, 0.5, 0.9):
        y = nd.Dropout(x, p=p, mode="always").asnumpy()
        assert set(np.unique(y)) == {0, np.dtype(dtype).type(1 / (1 - p))}
        assert abs((y == 0).mean() - p) < 4 * np.sqrt(p * (1 - p) / y.size)
    assert np.isnan(nd.Dropout(x, p=1, mode="always").asnumpy()).all()  # 0 / 0, as MXNet says


@pytest.mark.parametrize("mode", ["training", "always"])
def test_backward_of_inference_gives_its_gradients(mode):
    """What an executor drew in inference is what its backward multiplies by; what does nothing there lets all through."""
    executor = mx.sym.Dropout(mx.sym.var("x") * 3, p=0.4, mode=mode).simple_bind(mx.cpu(), x=(20, 30))
    executor.arg_dict["x"][:] = 1
    for _ in range(2):
        y = executor.forward(is_train=False)[0].asnumpy()
        for head in (1, 2):
            executor.backward(head * nd.ones((20, 30)), is_train=False)
            np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), head * y)
        assert (y == 0).any() == (mode == "always")


def test_backward_of_inference_of_what_draws_in_no_mode():
    executor = (mx.sym.var("x") * mx.sym.random.uniform(shape=(4, 5))).simple_bind(mx.cpu(), x=(4, 5))
    executor.arg_dict["x"][:] = 1
    y = executor.forward()[0].asnumpy()
    executor.backward(nd.ones((4, 5)), is_train=False)
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), y)


def test_backward_of_inference_reads_the_moving_statistics():
    x = np.float32([[1, 2], [3, 6]])
    executor = mx.sym.BatchNorm(mx.sym.var("x"), fix_gamma=False, eps=0, name="bn").simple_bind(mx.cpu(), x=x.shape)
    states = {"bn_moving_mean": [1, 2], "bn_moving_var": [4, 16]}
    executor.copy_params_from({"x": x, "bn_gamma": [1, 1], "bn_beta": [0, 0]}, states)
    executor.backward(nd.ones((2, 2)), is_train=False)
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), [[0.5, 0.25]] * 2)
    np.testing.assert_allclose(executor.grad_dict["bn_gamma"].asnumpy(), ((x - [1, 2]) / [2, 4]).sum(0))
    assert executor.aux_dict["bn_moving_mean"].asnumpy().tolist() == [1, 2]


def test_dropout_drops_in_training_only():
    x = nd.ones((10, 10))
    assert (nd.Dropout(x) == x).asnumpy().all()
    with autograd.record():
        assert (nd.Dropout(x) == 0).asnumpy().any()
    with autograd.record(train_mode=False):
        assert (nd.Dropout(x) == x).asnumpy().all()
        assert (nd.Dropout(x, mode="always") == 0).asnumpy().any()


def test_dropout_along_axes_drops_together():
    y = nd.Dropout(nd.ones((40, 3, 50)), p=0.4, mode="always", axes=(0, 2)).asnumpy()
    assert (y == y[:1, :, :1]).all()
    y = nd.Dropout(nd.ones((40, 30)), p=0.4, mode="always", axes=(1,)).asnumpy()
    assert (y == y[:, :1]).all() and len(np.unique(y)) == 2


def test_backward_of_calls_draws_the_same_numbers():
    x = nd.array(np.random.default_rng(1).normal(size=(30, 40)))
    x.attach_grad()
    with autograd.record():
        y = nd.Dropout(x, p=0.3)
        z = nd.Dropout(y * y, p=0.3)
    z.backward()
    kept = (z.asnumpy() != 0).astype(np.float32)
    np.testing.assert_allclose(x.grad.asnumpy(), kept * 2 * x.asnumpy() / np.float32(0.7) ** 3, rtol=1e-5)


def test_second_order_gradients_see_the_same_numbers():
    x = nd.array([1.0, 2.0, 3.0, 4.0] * 8)
    x.attach_grad()
    with autograd.record():
        y = nd.Dropout(x, p=0.5) ** 3
        (g,) = autograd.grad(y, [x], create_graph=True)
    g.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), np.where(y.asnumpy() != 0, 48 * x.asnumpy(), 0), rtol=1e-6)


def test_executors_drop_while_training():
    executor = mx.sym.Dropout(mx.sym.var("x")).simple_bind(mx.cpu(), x=(20, 30))
    executor.arg_dict["x"][:] = 1
    assert (executor.forward(is_train=False)[0].asnumpy() == 1).all()
    mx.random.seed(1)
    y = executor.forward(is_train=True)[0].asnumpy()
    executor.backward(nd.ones((20, 30)))
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), y)
    mx.random.seed(1)
    with autograd.record():
        np.testing.assert_array_equal(nd.Dropout(nd.ones((20, 30))).asnumpy(), y)


def test_compiled_functions_draw_anew():
    @mx.graph.compiled
    def noisy(x):
        return nd.Dropout(x, mode="always") + nd.Dropout(2 * x, mode="always")

    x, found = nd.ones((4, 6)), []
    for seed in (1, 2, 1):
        mx.random.seed(seed)
        found += [noisy(x).asnumpy(), noisy(x).asnumpy()]
    assert (found[0] != found[1]).any() and (found[0] != found[2]).any()
    np.testing.assert_array_equal(found[:2], found[4:])
    mx.random.seed(1)
    np.testing.assert_array_equal((nd.Dropout(x, mode="always") + nd.Dropout(2 * x, mode="always")).asnumpy(), found[0])


def test_compiled_functions_that_draw_by_themselves_draw_once():
    """What draws without inputs cannot be planned; to find that out takes no key, at the first call or a later one."""

    @mx.graph.compiled
    def noisy(x):
        return x + nd.random.uniform(shape=(2,)) * nd.random.gamma(2, 1, shape=(2,))

    x = nd.zeros((2,))
    mx.random.seed(3)
    eager = [(x + nd.random.uniform(shape=(2,)) * nd.random.gamma(2, 1, shape=(2,))).asnumpy() for _ in range(3)]
    for _ in range(2):
        mx.random.seed(3)
        np.testing.assert_array_equal([noisy(x).asnumpy() for _ in range(3)], eager)


def test_files_count_mxnets_mask():
    x = mx.sym.Dropout(mx.sym.var("x"), name="d")
    assert x.list_outputs() == ["d_output"] and x.get_internals().list_outputs() == ["x", "d_output"]
    assert '"node_row_ptr": [0, 1, 3, 4]' in (x + 1).tojson()


@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize("passes", [None, []])
def test_backward_of_executors_draws_the_same_numbers(mirror, passes):
    with mx.AttrScope(**({"__force_mirroring__": "True"} if mirror else {})):
        y = mx.sym.Dropout(mx.sym.var("x"), p=0.3, mode="always")
        z = mx.sym.Dropout(mx.sym.exp(y), p=0.3, mode="always")
    executor = z.simple_bind(mx.cpu(), x=(30, 40), **({} if passes is None else {"passes": passes}))
    x = nd.array(np.random.default_rng(1).normal(size=(30, 40)))
    seen = []
    for _ in range(2):
        found = executor.forward(is_train=True, x=x)[0].asnumpy()
        executor.backward(nd.ones((30, 40)))
        kept = found != 0
        inner = np.log(np.where(kept, found * np.float32(0.7), 1))
        np.testing.assert_allclose(
            executor.grad_dict["x"].asnumpy(),
            np.where(kept & (np.abs(inner) > 1e-7), found / np.float32(0.7), 0),
            rtol=1e-4,
        )
        seen.append(kept)
    assert (seen[0] != seen[1]).any()


def test_dropout_keeps_no_mask():
    executor = mx.sym.Dropout(mx.sym.var("x"), mode="always").simple_bind(mx.cpu(), x=(1000, 1000))
    executor.forward(is_train=True)
    assert executor._memory < 1000 * 1000 * 4 + 100_000  # the output, and a key


# ---- the GPU --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "int8"])
def test_both_devices_draw_the_same_bits(drawn, gpu, dtype):
    for shape in ((1,), (200,), (3, 50, 7)):
        x = nd.zeros(shape, dtype=dtype)
        on_gpu = drawn(x.as_in_context(gpu), key_of(77).as_in_context(gpu))
        assert on_gpu.context.is_gpu
        np.testing.assert_array_equal(on_gpu.asnumpy(), drawn(x, key_of(77)).asnumpy())


def test_both_devices_draw_the_same_numbers(gpu):
    mx.random.seed(31)
    on_gpu = [f(shape=(7, 9), ctx=gpu) for f in (nd.random.uniform, nd.random.normal, nd.random.exponential)]
    mx.random.seed(31)
    on_cpu = [f(shape=(7, 9)) for f in (nd.random.uniform, nd.random.normal, nd.random.exponential)]
    np.testing.assert_array_equal(on_gpu[0].asnumpy(), on_cpu[0].asnumpy())
    for a, b in zip(on_gpu, on_cpu, strict=True):
        assert a.context == gpu
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-6)


def test_executors_of_both_devices_draw_the_same_numbers(gpu):
    symbol = mx.sym.Dropout(mx.sym.var("x") * mx.sym.random.uniform(1, 2, shape=(6, 8)), p=0.4, mode="always")
    found = []
    for place in (mx.cpu(), gpu):
        executor = symbol.simple_bind(place, x=(6, 8))
        executor.arg_dict["x"][:] = 2
        mx.random.seed(12)
        found.append(executor.forward(is_train=True)[0].asnumpy())
        executor.backward(nd.ones((6, 8), ctx=place))
        found.append(executor.grad_dict["x"].asnumpy())
    np.testing.assert_allclose(found[0], found[2], rtol=1e-6)
    np.testing.assert_allclose(found[1], found[3], rtol=1e-6)


# ---- results that say the shape --------------------------------------------------------------------------------------
DRAWING = {"random_uniform": (0, 1), "random_normal": (0, 1), "random_exponential": (2.0,), "random_gamma": (2, 1),
           "random_poisson": (3.0,), "random_randint": (0, 9)}  # fmt: skip


@pytest.mark.parametrize("name, params", DRAWING.items())
def test_the_result_says_shape_and_type(name, params):
    for dtype in ("int32", "int64") if name == "random_randint" else ("float32", "float64"):
        out = nd.full((20, 30), 77, dtype=dtype)
        mx.random.seed(3)
        assert getattr(nd, name)(*params, out=out) is out
        assert (out.asnumpy() != 77).all() and out.dtype == np.dtype(dtype)
        mx.random.seed(3)
        assert np.array_equal(getattr(nd, name)(*params, shape=(20, 30), dtype=dtype).asnumpy(), out.asnumpy())
    with pytest.raises(mx.MXNetError, match="shape"):
        getattr(nd, name)(*params)


def test_calls_that_were_prepared_draw_anew_from_the_generator_of_their_device():
    """Equal calls run one plan on the CPU number 0; what it draws is what a symbol draws, and threads draw apart."""
    mx.random.seed(11)
    eager = [mx.nd.random.uniform(2, 3, shape=(2, 3)).asnumpy() for _ in range(4)]
    mx.random.seed(11)
    bound = mx.sym.random.uniform(2, 3, shape=(2, 3)).simple_bind(mx.cpu())
    for want in eager:
        assert np.array_equal(bound.forward()[0].asnumpy(), want)
    mx.random.seed(11)
    with mx.cpu(1):
        elsewhere = mx.nd.random.uniform(2, 3, shape=(2, 3))
    there = mx.nd.random.uniform(2, 3, shape=(2, 3), ctx=mx.cpu(1))
    assert elsewhere.context == there.context == mx.cpu(1)
    here = mx.nd.random.uniform(2, 3, shape=(2, 3), ctx="cpu(0)")  # the other device drew nothing from this one's
    assert here.context == mx.cpu(0) and np.array_equal(here.asnumpy(), eager[0])
    assert not np.array_equal(elsewhere.asnumpy(), there.asnumpy())

    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda _: mx.nd.random.normal(shape=(5,)).asnumpy().tobytes(), range(200)))
    assert len(set(drawn)) == 200
