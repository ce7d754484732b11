"""Sparse arrays on a GPU, simulated or real, against the CPU."""

import pickle

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym

RNG = np.random.default_rng(1)
MATRIX = np.where(RNG.random((6, 9)) < 0.3, RNG.normal(size=(6, 9)), 0).astype("float32")
TABLE = RNG.normal(size=(9, 3)).astype("float32")
NUMBERS = [1, 3, 1, 8]


pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_made_moved_and_read(stype, gpu):
    here = nd.array(MATRIX).tostype(stype)
    there = here.as_in_context(gpu)
    for x in (there, nd.array(MATRIX, ctx=gpu).tostype(stype), here.copyto(gpu), there.copy(), there * 1,
              there.as_in_context(mx.cpu()).as_in_context(gpu)):  # fmt: skip
        assert x.context == gpu and x.stype == stype and x.data.context == gpu and x.indices.context == gpu
        np.testing.assert_array_equal(x.asnumpy(), MATRIX)
        assert x.indices.asnumpy().tolist() == here.indices.asnumpy().tolist()
        x.check_format()
    assert there.tostype("default").context == gpu and there.as_in_context(gpu) is there
    assert pickle.loads(pickle.dumps(there)).context == mx.cpu()
    assert there.astype("float64").dtype is np.float64 and there.astype("float64").context == gpu
    zeros = nd.zeros((3, 2), ctx=gpu, stype=stype)
    assert zeros.context == gpu and zeros.asnumpy().tolist() == [[0, 0]] * 3
    there[:] = 2 * MATRIX
    assert there.context == gpu
    np.testing.assert_array_equal(there.asnumpy(), 2 * MATRIX)


def test_made_of_parts(gpu, tmp_path):
    x = nd.sparse.csr_matrix(([5, 7], [1, 0], [0, 1, 1, 2]), shape=(3, 2), ctx=gpu)
    y = nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [2, 0]), shape=(3, 2), ctx=gpu)
    assert x.context == y.context == gpu and x.asnumpy().tolist() == [[0, 5], [0, 0], [7, 0]]
    assert y.retain(nd.array([0], ctx=gpu)).indices.asnumpy().tolist() == [0]
    with gpu:
        assert nd.sparse.zeros("csr", (2, 2)).context == gpu
    path = str(tmp_path / "x.params")
    nd.save(path, [x, y])
    for a, b in zip(nd.load(path), (x, y), strict=True):
        assert a.stype == b.stype and a.asnumpy().tolist() == b.asnumpy().tolist()
    assert x.asscipy().shape == (3, 2) and x.indptr.context == gpu and x[1:].asnumpy().tolist() == [[0, 0], [7, 0]]


CALLS = {
    "square": lambda x: nd.square(x), "scaled": lambda x: x * 3, "sum": lambda x: nd.sum(x, axis=0),
    "exp": lambda x: nd.exp(x), "both": lambda x: x + x, "times": lambda x: x * x, "minus": lambda x: x - 2 * x,
    "norm": lambda x: nd.norm(x), "dense": lambda x: x.tostype("default") + x,
    "times dense": lambda x: x * x.tostype("default"), "zeros": lambda x: nd.zeros_like(x),
    "squares": lambda x: nd._internal._square_sum(x, axis=1, keepdims=True),
    "many": lambda x: nd.add_n(x, x, x), "product": lambda x: nd.dot(x, nd.ones((9, 2), ctx=x.context)),
    "transposed": lambda x: nd.dot(x, nd.ones((6, 2), ctx=x.context), transpose_a=True),
}  # fmt: skip


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
@pytest.mark.parametrize("name", CALLS)
def test_operators_and_their_gradients(stype, name, gpu):
    found = []
    for ctx in (mx.cpu(), gpu):
        x = nd.array(MATRIX).tostype(stype).as_in_context(ctx)
        x.attach_grad()
        with autograd.record():
            y = CALLS[name](x)
        y.backward()
        assert y.context == ctx and x.grad.context == ctx and x.grad.stype == stype
        found.append((y.asnumpy(), x.grad.asnumpy()))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("storage", ["default", "row_sparse"])
@pytest.mark.parametrize(("optimizer", "options"), [("sgd", {"momentum": 0.9}), ("adam", {}), ("ftrl", {}), ("nag", {})])
def test_tables_train(storage, optimizer, options, gpu):
    found = []
    for ctx in (mx.cpu(), gpu):
        weight = nd.array(TABLE, ctx=ctx).tostype(storage)
        weight.attach_grad(stype="row_sparse")
        update = mx.optimizer.get_updater(mx.optimizer.create(optimizer, learning_rate=0.1, **options))
        for _ in range(2):
            with autograd.record():
                rows = nd.Embedding(nd.array(NUMBERS, ctx=ctx), weight, input_dim=9, output_dim=3, sparse_grad=True)
                loss = (rows * rows).sum()
            loss.backward()
            assert weight.grad.context == ctx and weight.grad.indices.asnumpy().tolist() == [1, 3, 8]
            update(0, weight.grad, weight)
        assert weight.context == ctx and weight.stype == storage
        found.append(weight.asnumpy())
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6)


def test_bound(gpu):
    found = []
    for ctx in (mx.cpu(), gpu):
        y = sym.tanh(sym.dot(sym.var("x", stype="csr"), sym.var("w", stype="row_sparse")))
        executor = y.simple_bind(ctx, x=MATRIX.shape, w=TABLE.shape, grad_req={"w": "write"})
        executor.copy_params_from({"x": nd.array(MATRIX, ctx=ctx).tostype("csr"), "w": nd.array(TABLE, ctx=ctx)})
        (out,) = executor.forward(is_train=True)
        executor.backward(nd.ones(out.shape, ctx=ctx))
        assert out.context == ctx and executor.grad_dict["w"].context == ctx
        found.append((out.asnumpy(), executor.grad_dict["w"].asnumpy(), executor.grad_dict["w"].indices.asnumpy()))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
