"""Libraries in C++ that were written for MXNet 1.6 and 1.7 compile and run."""

import numpy as np
import pytest
from libraries_util import COMPILERS, SOURCES, library, needs_compiler  # noqa: F401

import mxop as mx

pytestmark = needs_compiler


@pytest.fixture(autouse=True)
def v17(library):  # noqa: F811
    return library("v17_lib.cc")


def test_operator_and_gradient():
    x = mx.nd.array([1, 2, 3])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.v17_times(x, by=3)
    y.backward()
    assert y.asnumpy().tolist() == [3, 6, 9] and x.grad.asnumpy().tolist() == [3, 3, 3]
    assert mx.sym.v17_times(mx.sym.Variable("x")).infer_shape(x=(2, 3))[1] == [(2, 3)]
    for wrong in (lambda: mx.nd.v17_times(x, bad=1), lambda: mx.nd.v17_times(x.astype("float64"))):
        with pytest.raises(mx.MXNetError, match="v17_times"):
            wrong()


def test_state():
    bound = mx.sym.v17_count(mx.sym.Variable("x"), **{"from": 4}).bind(mx.cpu(), {"x": mx.nd.ones((2,))})
    assert [bound.forward()[0].asnumpy()[0] for _ in range(3)] == [5, 6, 7]
    x = mx.nd.ones((2,))
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.v17_count(x)
    with pytest.raises(mx.MXNetError, match="does not support backward"):
        y.backward()


def test_inputs_that_change():
    x = mx.nd.zeros((2,))
    np.testing.assert_array_equal(mx.nd.v17_add_to(x).asnumpy(), x.asnumpy())
    assert x.asnumpy().tolist() == [1, 1]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_oldest_standard_is_enough(compiler):
    assert mx.library.build(SOURCES / "v17_lib.cc", flags=["-std=c++11", "-O0"], compiler=compiler)
