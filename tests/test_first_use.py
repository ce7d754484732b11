"""The first use of anything, by many threads at once or interrupted half-way, leaves everything as it should be.

``first_use.py`` beside this file is the program that does it, in processes in which nothing was used before.
"""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from processes import ROOT

import mxop as mx
from mxop import nd

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="first_use.py forks")


def first_use(*arguments, timeout=300):
    program = os.path.join(os.path.dirname(__file__), "first_use.py")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([ROOT, os.path.dirname(__file__)]))
    command = [sys.executable, program, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    return done.stdout.splitlines()[-1]


PARTS = [
    "arithmetic", "orders", "indexing", "branching", "custom", "binding", "compositions", "recurrent", "recorded", "imported",
]  # fmt: skip
OPERATORS = [
    "exp",
    "quadratic",
    "broadcast_add",
    "mean",
    "norm",
    "softmax",
    "dot",
    "transpose",
    "concat",
    "where",
    "clip",
]


def test_sixteen_threads_at_once():
    assert first_use("threads", *PARTS, *OPERATORS) == f"threads: {len(PARTS) + len(OPERATORS)} first uses, 0 failed"


def test_threads_begin_with_other_things():
    assert first_use("mixed", "-n", "8") == f"mixed: {len(PARTS)} first uses, 8 times, 0 failed"


@pytest.mark.parametrize("part", PARTS)
def test_an_exception_at_lines_of_the_first_use(part):
    assert first_use("interrupts", part, "-n", "20") == "interrupts: 1 first uses, 20 places, 0 failed"


def test_an_exception_at_lines_of_operators_first_use():
    assert first_use("interrupts", *OPERATORS, "-n", "5").endswith(" 0 failed")


@pytest.mark.slow
def test_every_operator_in_sixteen_threads():
    print(first_use("threads", timeout=1200))


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_an_exception_at_every_line(part):
    print(first_use("interrupts", part, timeout=7200))


@pytest.mark.slow
def test_an_exception_in_the_first_use_of_every_operator():
    print(first_use("interrupts", "-n", "20", timeout=7200))


# ---- parameters that a formula asks for --------------------------------------------------------------------------------
@pytest.fixture
def clipped():
    @mx.op.elementwise(override=True)
    def first_use_clipped(data, *, rate: float = 1.0, clip: float = -1.0, floor: float = 0.0):
        if clip >= 0:
            data = mx.op.F.maximum(mx.op.F.minimum(data, clip), -clip)
            if floor > 0:
                data = mx.op.F.maximum(data, floor)
        return data * rate * data

    yield first_use_clipped
    mx.op.unregister("first_use_clipped")


def test_only_the_parameters_that_are_asked_for_have_formulas_of_their_own(clipped):
    x = nd.array([-2.0, 0.5, 3.0])
    for step in range(300):
        rate, clip = 0.01 * (step + 1), (-1.0, 1.0, 2.0)[step % 3]
        want = x.asnumpy() if clip < 0 else np.clip(x.asnumpy(), -clip, clip)
        np.testing.assert_allclose(nd.first_use_clipped(x, rate=rate, clip=clip).asnumpy(), rate * want**2, rtol=1e-6)
    assert len(clipped._formulas) == 3


def test_a_recorded_call_keeps_its_numbers_when_another_asks_for_values(clipped):
    x = nd.array([-2.0, 0.5, 3.0])
    x.attach_grad()
    with mx.autograd.record():
        first = nd.first_use_clipped(x, rate=2)
        second = nd.first_use_clipped(x, rate=5)
        third = nd.first_use_clipped(x, rate=7, clip=1, floor=0.75)
    third.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), [0, 0, 0])
    second.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 10 * x.asnumpy())
    first.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 4 * x.asnumpy())


def test_zero_has_a_sign_and_nan_is_itself(clipped):
    @mx.op.elementwise(override=True)
    def first_use_signed(data, *, number: float):
        return data / number if number != 1 else data

    x = nd.array([1.0])
    assert nd.first_use_signed(x, number=0.0).item() == np.inf
    assert nd.first_use_signed(x, number=-0.0).item() == -np.inf
    for _ in range(3):
        assert np.isnan(nd.first_use_signed(x, number=float("nan")).item())
    assert len(first_use_signed._formulas) == 4  # and that of 1, with which the short way was tried
    mx.op.unregister("first_use_signed")


def test_a_gradient_rule_that_branches_says_so():
    with pytest.raises(mx.MXNetError, match=r"first_use_rule: in its gradient rule .* 'rate'; use where"):

        @mx.op.elementwise(override=True, rule=lambda g, x, y, rate: g * x if rate > 0 else g)
        def first_use_rule(data, *, rate: float = 1.0):
            return data * rate

    assert mx.op.find("first_use_rule") is None


# ---- arrays without memory ---------------------------------------------------------------------------------------------
class Sub(nd.NDArray):
    def __init__(self, *args, **kwargs):
        pass


@pytest.mark.parametrize("cls", [nd.NDArray, Sub, nd.NDArray.__mro__[1]])
@pytest.mark.parametrize("args", [(), (3,), (object(),), ((2, 3), "float32"), (None, None, None)])
def test_no_array_without_memory(cls, args):
    for make in (lambda: cls(*args), lambda: cls.__new__(cls, *args), lambda: object.__new__(cls)):
        with pytest.raises(TypeError) as caught:
            make()
        if make.__code__.co_names != ("object", "__new__"):
            assert isinstance(caught.value, mx.MXNetError)
            assert "mx.nd.array(values)" in str(caught.value)
    with pytest.raises(TypeError):
        cls(*args, handle=None)


def test_arrays_are_still_copied():
    x = nd.array([1.0, 2.0])
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.copy()):
        assert type(y) is nd.NDArray
        assert y.asnumpy().tolist() == [1.0, 2.0]
