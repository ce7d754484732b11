"""Kernels that say what they do in steps, and kernels with several ways to run: what records do not show."""

import subprocess
import sys
import threading

import numpy as np
import pytest
from comparing import ADD, into
from hypothesis import given
from hypothesis import strategies as st

import mxop as mx
from mxop import nd, sym
from mxop.op import kernel
from mxop.opdef.parts import Part

X = nd.array(np.arange(12).reshape(3, 4))


@pytest.fixture
def summed(own):
    """A kernel ``2 * a + b`` of steps, with a temporary array, and what its rule was asked."""
    asked = []

    @kernel
    def test_ways_summed(a, b, *, scale: float = 2.0):
        """``scale * a + b``."""

    test_ways_summed.shape(lambda a, b, **params: a)

    @test_ways_summed.cpu(prepared=True)
    def _(steps, inputs, outputs, *, scale):
        asked.append(inputs[0].shape)
        between = steps.temporary(inputs[0].shape, inputs[0].dtype_code)
        steps.call("_mul_scalar", {"scalar": scale}, inputs[:1], [between])
        steps.call("elemwise_add", {}, [between, inputs[1]], outputs)

    own(test_ways_summed)
    test_ways_summed.asked = asked
    return test_ways_summed


# ---- steps --------------------------------------------------------------------------------------------------------------
def test_steps_are_asked_once_for_equal_shapes(summed):
    for k in range(5):
        found = nd.test_ways_summed(X + k, X)
        np.testing.assert_array_equal(found.asnumpy(), 2 * (X.asnumpy() + k) + X.asnumpy())
    assert summed.asked == [(3, 4)]
    nd.test_ways_summed(X[0], X[1])
    nd.test_ways_summed(X, X, scale=3)
    assert summed.asked == [(3, 4), (4,), (3, 4)]


def test_every_layout(summed):
    host = X.asnumpy()
    cases = [(X.T, host.T), (X[:, ::-1], host[:, ::-1]), (X[::-1, 1:3], host[::-1, 1:3]), (X[2:0:-1], host[2:0:-1])]
    for x, want in cases:
        np.testing.assert_array_equal(nd.test_ways_summed(x, x).asnumpy(), 3 * want)
        np.testing.assert_array_equal(nd.concat(x, x, dim=0).asnumpy(), np.concatenate([want, want]))
        np.testing.assert_array_equal(nd.dot(x, x.T).asnumpy(), want @ want.T)
        np.testing.assert_array_equal(nd.take(x, nd.array([1, 0])).asnumpy(), want[[1, 0]])


def test_outputs_may_be_inputs_and_parts(summed):
    x = X.copy()
    nd.test_ways_summed(x, x, out=x)
    np.testing.assert_array_equal(x.asnumpy(), 3 * X.asnumpy())
    whole = nd.zeros((6, 8))
    nd.test_ways_summed(X, X, out=whole[::2, ::2])
    np.testing.assert_array_equal(whole.asnumpy()[::2, ::2], 3 * X.asnumpy())
    assert whole.asnumpy().sum() == 3 * X.asnumpy().sum()


def test_requests(summed):
    out = nd.ones((3, 4))
    for times, req in ((1, ADD), (2, ADD)):
        into("test_ways_summed", [X, X], out, req)
        np.testing.assert_array_equal(out.asnumpy(), 1 + times * 3 * X.asnumpy())
    into("test_ways_summed", [X, X], out)
    np.testing.assert_array_equal(out.asnumpy(), 3 * X.asnumpy())


def test_bound(summed):
    a, b = sym.var("a"), sym.var("b")
    graph = sym.test_ways_summed(sym.test_ways_summed(a, b), sym.transpose(b), scale=-1)
    square = nd.array(np.arange(16).reshape(4, 4))
    executor = graph.bind(mx.cpu(), {"a": square, "b": square + 1})
    host = square.asnumpy()
    for _ in range(2):
        found = executor.forward()[0].asnumpy()
        np.testing.assert_array_equal(found, -(2 * host + host + 1) + (host + 1).T)
    out = nd.ones((4, 4))
    nd.dot(square, square, out=out)
    np.testing.assert_array_equal(out.asnumpy(), host @ host)


def test_threads_share_what_is_prepared(summed):
    big = [nd.array(np.full((200, 300), k, "float32")) for k in range(4)]
    wrong = []

    def work(k):
        for _ in range(50):
            if (nd.test_ways_summed(big[k], big[k]).asnumpy() != 3 * k).any():
                wrong.append(k)
            if (nd.dot(big[k], big[k].T).asnumpy() != 300 * k * k).any():
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_refused_element_is_that_of_this_call():
    for value in (7, 9):
        with pytest.raises(IndexError, match=f"index {value}.0 at position 1"):
            nd.take(X, nd.array([0, value]), mode="raise")
    executor = sym.take(sym.var("x"), sym.var("i"), mode="raise").bind(mx.cpu(), {"x": X, "i": nd.array([0, 5])})
    with pytest.raises(IndexError, match=r"index 5\.0 at position 1"):
        executor.forward()
    executor.arg_dict["i"][:] = nd.array([2, 1])
    np.testing.assert_array_equal(executor.forward()[0].asnumpy(), X.asnumpy()[[2, 1]])


def test_a_rule_that_fails_names_the_operator(own):
    @kernel
    def test_ways_fails(x):
        """Fails."""

    test_ways_fails.shape(lambda x: x)
    test_ways_fails.cpu(prepared=True)(lambda steps, inputs, outputs: steps.nothing)
    own(test_ways_fails)
    with pytest.raises(mx.MXNetError, match=r"operator test_ways_fails.*nothing"):
        nd.test_ways_fails(X)


def test_halves_are_multiplied_in_float32():
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=(33, 65)).astype("float16") for _ in range(2))
    found = nd.dot(nd.array(a, dtype="float16"), nd.array(b, dtype="float16"), transpose_b=True)
    exact, parts = a.astype("d") @ b.astype("d").T, abs(a).astype("d") @ abs(b).astype("d").T
    rounded = np.spacing(abs(exact).astype("float16")).astype("d") / 2  # once, from sums that err as those of float32 do
    assert (abs(found.asnumpy() - exact) <= rounded + 65 * 2.0**-24 * parts).all()


def test_memory_of_temporaries_is_given_back(summed):

    big = nd.ones((512, 1024))
    nd.test_ways_summed(big, big)
    before = mx.context.memory_stats()["in_use"]
    for _ in range(4):
        nd.test_ways_summed(big, big)
    assert mx.context.memory_stats()["in_use"] == before


# ---- parts --------------------------------------------------------------------------------------------------------------
INDEX = st.one_of(st.slices(4), st.integers(-3, 2))


@given(st.lists(INDEX, max_size=3), st.integers(0, 3), st.booleans())
def test_parts_are_numpys(index, dots, reverse):
    host = np.arange(60.0).reshape(4, 5, 3)
    x = nd.array(host)
    if reverse:
        host, x = host[::-1], x[::-1]
    key = (*index[:dots], ..., *index[dots:]) if dots < 3 else tuple(index)
    part = Part(None, x)[key]
    assert part.shape == host[key].shape
    if host[key].size:
        np.testing.assert_array_equal(part._array.asnumpy(), host[key])


def test_parts_that_do_not_fit(own):
    @kernel
    def test_ways_wrong(x):
        """Assigns what does not fit."""

    test_ways_wrong.shape(lambda x: (2, 3))

    @test_ways_wrong.rearrange
    def _(xp, inputs, outputs):
        outputs[0][...] = inputs[0]

    own(test_ways_wrong)
    assert nd.test_ways_wrong(nd.array([1, 2, 3])).asnumpy().tolist() == [[1, 2, 3]] * 2
    with pytest.raises(mx.MXNetError, match=r"shape \(4,\) does not broadcast to one of shape \(2, 3\)"):
        nd.test_ways_wrong(nd.zeros(4))


def test_parts_are_turned_and_added_to(own):
    @kernel
    def test_ways_added(x, y):
        """The first input, with the second one's rows added to its columns, and both to the first column."""

    test_ways_added.shape(lambda x, y: x)

    @test_ways_added.rearrange
    def _(xp, inputs, outputs):
        (x, y), (out,) = inputs, outputs
        out[...] = x
        turned = out.transpose()
        for k in range(2):
            turned[k] += y[k]
        first = turned[0]
        first += y[1]
        turned[0] += turned[1]

    own(test_ways_added)
    x, y = np.arange(6.0).reshape(3, 2), 10 * np.arange(1.0, 7.0).reshape(2, 3)
    want = x + y.T
    want[:, 0] += y[1] + want[:, 1]
    for dtype in ("float32", "float64", "float16", "int32"):
        found = nd.test_ways_added(nd.array(x, dtype=dtype), nd.array(y, dtype=dtype))
        assert found.asnumpy().tolist() == want.tolist()
    a, b = sym.Variable("a"), sym.Variable("b")
    assert sym.test_ways_added(a, b).eval(a=nd.array(x), b=nd.array(y))[0].asnumpy().tolist() == want.tolist()


def test_moves_of_bfloat16_need_no_package():
    code = """
import sys
sys.modules["ml_dtypes"] = None
import mxop as mx
x = mx.nd.array([[1, 2]]).astype("bfloat16")
print(mx.nd.concat(x, x, dim=0).astype("float32").asnumpy().tolist())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout.strip() == "[[1.0, 2.0], [1.0, 2.0]]", run.stderr


def test_what_cannot_be_turned_or_added(own):
    part = Part(None, X)
    for axes in ((0,), (0, 0), (0, 2), (-1, 0)):
        with pytest.raises(mx.MXNetError, match="each of them once"):
            part.transpose(*axes)
    with pytest.raises(mx.MXNetError, match=r"1\.5 cannot be added to a part"):
        part += 1.5


# ---- several ways -------------------------------------------------------------------------------------------------------
def test_the_first_way_that_fits_runs(own):
    def writes(number):
        def run(inputs, outputs):
            np.asarray(outputs[0]).fill(number)

        return run

    @kernel
    def test_ways_many(x):
        """A number that says who ran."""

    test_ways_many.shape(lambda x: x)
    own(test_ways_many)
    test_ways_many.cpu(writes(1))
    assert nd.test_ways_many(X[0]).asnumpy()[0] == 1
    test_ways_many.cpu(backend="other", when=lambda inputs, outputs: inputs[0].shape[0] > 3)(writes(2))
    assert nd.test_ways_many(X[0]).asnumpy()[0] == 2
    assert nd.test_ways_many(X).asnumpy()[0, 0] == 1
    test_ways_many.cpu(prepared=True, when=lambda inputs, outputs: inputs[0].dtype_code == 1)(
        lambda steps, inputs, outputs: steps.fill(outputs[0], 3)
    )
    assert nd.test_ways_many(X.astype("float64")).asnumpy()[0, 0] == 3
    assert nd.test_ways_many(X).asnumpy()[0, 0] == 1
    test_ways_many.cpu(writes(4))
    assert nd.test_ways_many(X).asnumpy()[0, 0] == 4
    assert [w.backend for w in test_ways_many.ways] == [None, "other", None]
    executor = sym.test_ways_many(sym.var("x")).bind(mx.cpu(), {"x": X[0]})
    assert executor.forward()[0].asnumpy()[0] == 2


def test_an_operator_without_a_way_says_so(own):
    @kernel
    def test_ways_none(x):
        """Nothing runs it."""

    test_ways_none.shape(lambda x: x)
    own(test_ways_none)
    with pytest.raises(mx.MXNetError, match=r"test_ways_none has no CPU function; give one with @test_ways_none.cpu"):
        nd.test_ways_none(X)


@pytest.mark.parametrize("prepared", [True, False])
def test_a_part_given_anew_holds_from_then_on(own, prepared):
    @kernel
    def test_ways_anew(x):
        """A number that says which definition ran."""

    def give(number, shape):
        test_ways_anew.shape(lambda x: shape)
        if prepared:
            test_ways_anew.cpu(prepared=True)(lambda steps, inputs, outputs: steps.fill(outputs[0], number))
        else:
            test_ways_anew.cpu(lambda inputs, outputs: np.asarray(outputs[0]).fill(number))
        test_ways_anew.gradient(lambda F, heads, inputs, outputs: [F.zeros_like(inputs[0]) + number])

    own(test_ways_anew)
    compiled = mx.graph.compiled(lambda x: nd.test_ways_anew(x) + 0)
    for number in (1, 2):
        give(number, (number,))
        x = X[0].copy()
        x.attach_grad()
        with mx.autograd.record():
            y = nd.test_ways_anew(x)
        y.backward()
        assert y.asnumpy().tolist() == compiled(x).asnumpy().tolist() == [number] * number
        assert x.grad.asnumpy().tolist() == [number] * 4
        executor = sym.test_ways_anew(sym.var("x")).bind(mx.cpu(), {"x": x})
        assert executor.forward()[0].asnumpy().tolist() == [number] * number
