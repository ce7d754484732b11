"""Linear algebra: what records do not say."""

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym

RNG = np.random.default_rng(3)
A = RNG.normal(size=(2, 3, 3))
DEFINITE = A @ A.swapaxes(-1, -2) + np.eye(3)


def array(values):
    return nd.array(np.asarray(values), dtype="float64")


def gradient(f, x, **params):
    x = array(x)
    x.attach_grad()
    with autograd.record():
        y = f(x, **params)
    y.backward()
    return x.grad.asnumpy()


def test_factors_give_the_matrix_back():
    low = nd.linalg.potrf(array(DEFINITE))
    np.testing.assert_allclose(nd.linalg.syrk(low).asnumpy(), DEFINITE)
    np.testing.assert_allclose(nd.linalg.potri(low).asnumpy(), np.linalg.inv(DEFINITE))
    q, low = nd.linalg.gelqf(array(A[:, :2]))
    np.testing.assert_allclose(nd.batch_dot(low, q).asnumpy(), A[:, :2])
    u, values = nd.linalg.syevd(array(DEFINITE))
    found = nd.batch_dot(nd.batch_dot(u, nd.linalg.makediag(values), transpose_a=True), u)
    np.testing.assert_allclose(found.asnumpy(), DEFINITE)


def test_gradients_of_symmetric_matrices_are_symmetric():
    """Only the symmetric part of a matrix is read, so a function of it has a derivative in every direction."""
    for f in (nd.linalg.potrf, lambda x: nd.linalg.syevd(x)[1] * array([1, 2, 3])):
        found = gradient(f, DEFINITE)
        np.testing.assert_allclose(found, found.swapaxes(-1, -2), atol=1e-12)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_the_gradient_of_a_singular_determinant(rank):
    """MXNet says 0; the cofactors are not, where one direction makes the matrix regular."""
    x = (A[0, :, :rank] @ A[1, :rank, :]) if rank else np.zeros((3, 3))
    minors = [[np.linalg.det(np.delete(np.delete(x, i, 0), j, 1)) * (-1) ** (i + j) for j in range(3)] for i in range(3)]
    np.testing.assert_allclose(gradient(nd.linalg.det, x), minors, atol=1e-12)
    assert (rank < 2) == np.allclose(minors, 0)


def test_a_newton_step_solves_a_quadratic_problem():
    """The Hessian of ``x' A x / 2 - b x`` by two passes, and its Cholesky factor."""
    matrix, b, x = array(DEFINITE[0]), array([[1], [2], [3]]), array([[0.5], [1], [-1]])
    x.attach_grad()
    with autograd.record():
        loss = (x * nd.dot(matrix, x)).sum() / 2 - (b * x).sum()
        first = autograd.grad(loss, x, create_graph=True)[0]
        rows = [autograd.grad(first[i], x, retain_graph=True)[0].reshape((1, 3)) for i in range(3)]
    low = nd.linalg.potrf(nd.concat(*rows, dim=0))
    step = nd.linalg.trsm(low, nd.linalg.trsm(low, first), transpose=True)
    np.testing.assert_allclose((x - step).asnumpy(), np.linalg.solve(DEFINITE[0], b.asnumpy()))


def test_a_gaussian_likelihood_of_a_symbol():
    """The log-density of a normal distribution: bound, with gradients of mean and covariance."""
    cov, mean = sym.Variable("cov", shape=(3, 3)), sym.Variable("mean", shape=(3, 1))
    low = sym.linalg.potrf(cov)
    white = sym.linalg.trsm(low, mean)
    net = sym.sum(sym.square(white)) * -0.5 - sym.linalg.sumlogdiag(low)
    given = {"cov": array(DEFINITE[0]), "mean": array([[1], [2], [3]])}
    grads = {k: nd.zeros(v.shape, dtype="float64") for k, v in given.items()}
    executor = net.bind(mx.cpu(), given, grads)
    inverse, m = np.linalg.inv(DEFINITE[0]), given["mean"].asnumpy()
    want = -0.5 * (m.T @ inverse @ m + np.linalg.slogdet(DEFINITE[0])[1])
    np.testing.assert_allclose(executor.forward(is_train=True)[0].asnumpy(), want.ravel())
    executor.backward([nd.ones((1,), dtype="float64")])
    np.testing.assert_allclose(grads["mean"].asnumpy(), -inverse @ m)
    np.testing.assert_allclose(grads["cov"].asnumpy(), 0.5 * (inverse @ m @ m.T @ inverse - inverse))


def test_one_triangle_is_read():
    full = A[0] + 4 * np.eye(3)
    for lower, cut in ((True, np.tril), (False, np.triu)):
        for f in (nd.linalg.trmm, nd.linalg.trsm):
            same = [f(array(m), array(A[1]), lower=lower).asnumpy() for m in (full, cut(full))]
            np.testing.assert_array_equal(*same)


def test_namespaces_and_old_names():
    assert nd.linalg_potrf is not None and sym.linalg_gemm2 is not None
    assert {"gemm", "syevd", "det", "makediag", "extracttrian"} <= set(dir(nd.linalg)) & set(dir(sym.linalg))
    assert sym.linalg.gemm2(sym.Variable("a"), sym.Variable("b")).infer_shape(a=(2, 3, 4), b=(2, 4, 5))[1] == [(2, 3, 5)]
    assert sym.linalg.slogdet(sym.Variable("a")).infer_shape(a=(4, 2, 2))[1] == [(4,), (4,)]


X = nd.ones((2, 3))


@pytest.mark.parametrize("call, said", [
    (lambda: nd.linalg.potrf(array([[1, 2], [2, 1]])), "_linalg_potrf: Matrix is not positive definite"),
    (lambda: nd.linalg.inverse(nd.zeros((2, 2))), "_linalg_inverse: Singular matrix"),
    (lambda: nd.linalg.inverse(X), "_linalg_inverse: A has shape (2, 3); expected square matrices"),
    (lambda: nd.linalg.gelqf(nd.ones((3, 2))), "at least as many columns as rows"),
    (lambda: nd.linalg.gemm2(X, X), "_linalg_gemm2: shapes (2, 3), (2, 3)"),
    (lambda: nd.linalg.gemm2(nd.ones((2, 2, 2)), nd.ones((3, 2, 2))), "cannot be multiplied"),
    (lambda: nd.linalg.gemm(X, X, nd.ones((2, 3)), transpose_b=True), "C has shape (2, 3) but the product"),
    (lambda: nd.linalg.trsm(nd.ones((2, 2)), nd.ones((3, 2))), "_linalg_trsm: B has shape (3, 2)"),
    (lambda: nd.linalg.maketrian(nd.ones((4,))), "expected rows of 1, 3, 6, 10..."),
])  # fmt: skip
def test_bad_input(call, said):
    with pytest.raises(mx.MXNetError) as caught:
        call()
    assert said in str(caught.value) and isinstance(caught.value, ValueError)


@pytest.mark.parametrize("dtype", ["float16", "int32"])
def test_other_types_are_refused(dtype):
    x = nd.ones((2, 2), dtype=dtype)
    for f in (nd.linalg.det, nd.linalg.potrf, nd.linalg.syevd, nd.linalg.syrk, nd.linalg.sumlogdiag):
        with pytest.raises(mx.MXNetError, match=f"needs float32 or float64 data, got {dtype}") as caught:
            f(x)
        assert isinstance(caught.value, TypeError)


def test_singular_input_writes_nothing():
    out = nd.full((2, 2), 7)
    with pytest.raises(mx.MXNetError):
        nd.linalg.inverse(nd.zeros((2, 2)), out=out)
    assert (out.asnumpy() == 7).all()


@pytest.mark.parametrize("call", [nd.linalg.potri, lambda z: nd.batch_dot(z, z), lambda z: nd.linalg.gemm2(z, z)])
def test_stacks_of_stacks_of_no_matrices(call):
    with mx.util.np_shape(True):
        for shape in ((0, 0, 0, 0), (0, 3, 2, 2), (3, 0, 2, 2), (3, 2, 0, 0)):
            assert call(nd.zeros(shape)).shape == shape


def test_a_number_is_no_packed_triangle():
    with mx.util.np_shape(True), pytest.raises(mx.MXNetError, match=r"_linalg_maketrian: A has shape \(\); expected rows"):
        nd.linalg.maketrian(nd.zeros(()))
