"""Sparse arrays in training: gradients and their storage, bound symbols, optimizers, batches, against dense twins."""

import numpy as np
import pytest
from comparing import stored

import mxop as mx
from mxop import autograd, nd, sym

ROWS, WIDTH, BATCH = 12, 3, 4
RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(ROWS, WIDTH)).astype("float32")
MATRIX = np.where(RNG.random((2 * BATCH, ROWS)) < 0.2, RNG.normal(size=(2 * BATCH, ROWS)), 0).astype("float32")
TARGETS = RNG.normal(size=(2 * BATCH, 1)).astype("float32")
NUMBERS = np.array([1, 3, 1, 11])


pytestmark = pytest.mark.usefixtures("quiet")


# ---- tables ------------------------------------------------------------------------------------------------------------
def looked_up(weight, numbers=NUMBERS, **options):
    with autograd.record():
        found = nd.Embedding(nd.array(numbers), weight, input_dim=ROWS, output_dim=WIDTH, **options)
        return (found * found).sum()


@pytest.mark.parametrize("storage", ["default", "row_sparse"])
@pytest.mark.parametrize("req", ["write", "add"])
def test_gradient_of_a_table(storage, req):
    weight, dense = stored(TABLE, storage), nd.array(TABLE)
    weight.attach_grad(req, stype="row_sparse")
    dense.attach_grad(req)
    kept = weight.grad
    for numbers in (NUMBERS, np.array([3, 3, 0, 40])):  # the last is out of range: the nearest row
        looked_up(weight, numbers, sparse_grad=True).backward()
        looked_up(dense, numbers).backward()
        np.testing.assert_allclose(weight.grad.asnumpy(), dense.grad.asnumpy(), rtol=1e-6)
    assert weight.grad is kept and kept.stype == "row_sparse"
    assert kept.indices.asnumpy().tolist() == ([0, 3, 11] if req == "write" else [0, 1, 3, 11])


def test_rows_with_a_gradient_of_zero_count():
    weight = nd.array(TABLE)
    weight.attach_grad(stype="row_sparse")
    with autograd.record():
        y = nd.Embedding(nd.array(NUMBERS), weight, input_dim=ROWS, output_dim=WIDTH, sparse_grad=True) * 0
    y.backward()
    assert weight.grad.indices.asnumpy().tolist() == [1, 3, 11] and not weight.grad.asnumpy().any()


def test_a_table_used_twice():
    weight, dense = nd.array(TABLE), nd.array(TABLE)
    weight.attach_grad(stype="row_sparse")
    dense.attach_grad()
    for x, options in ((weight, {"sparse_grad": True}), (dense, {})):
        with autograd.record():
            y = looked_up(x, **options) + looked_up(x, NUMBERS + 1, **options) * 2 + (x * x).sum()
        y.backward()
    np.testing.assert_allclose(weight.grad.asnumpy(), dense.grad.asnumpy(), rtol=1e-5)


def test_where_gradients_of_tables_go():
    dense, other = nd.array(TABLE), nd.array(TABLE)
    dense.attach_grad()  # an array with all rows takes them too
    looked_up(dense, sparse_grad=True).backward()
    other.attach_grad(stype="row_sparse")  # and one with few what was computed with all
    looked_up(other).backward()
    np.testing.assert_array_equal(dense.grad.asnumpy(), other.grad.asnumpy())
    assert other.grad.stype == "row_sparse" and other.grad.indices.asnumpy().tolist() == [1, 3, 11]
    given = autograd.grad(looked_up(dense, sparse_grad=True), dense)[0]
    assert given.stype == "row_sparse"
    np.testing.assert_array_equal(given.asnumpy(), dense.grad.asnumpy())


def test_gradients_of_tables_of_higher_order():
    weight = nd.array(TABLE)
    weight.attach_grad(stype="row_sparse")
    with autograd.record():
        first = autograd.grad(looked_up(weight, sparse_grad=True), weight, create_graph=True)[0]
        second = (first * first).sum()
    second.backward()
    counts = np.bincount(NUMBERS, minlength=ROWS)[:, None]
    np.testing.assert_allclose(weight.grad.asnumpy(), 8 * counts**2 * TABLE, rtol=1e-5)


def test_a_table_behind_something_else():
    base = nd.array(TABLE)
    base.attach_grad(stype="row_sparse")
    with autograd.record():
        y = nd.Embedding(nd.array(NUMBERS), base * 2, input_dim=ROWS, output_dim=WIDTH, sparse_grad=True)
    y.backward()
    want = 2 * np.bincount(NUMBERS, minlength=ROWS)[:, None] * np.ones(WIDTH)
    np.testing.assert_array_equal(base.grad.asnumpy(), want)


# ---- what sparse arrays go through ---------------------------------------------------------------------------------------
THROUGH = {
    "square": nd.square, "scaled": lambda x: x * 3, "sum": nd.sum, "twice": lambda x: x + x, "abs": nd.abs,
    "sigmoid": nd.sigmoid, "cast": lambda x: x.tostype("default"), "clipped": lambda x: nd.clip(x, -1, 1),
    "norm": nd.norm, "times": lambda x: nd.elemwise_mul(x, x), "negative": lambda x: -x, "mean": lambda x: nd.mean(x, axis=1),
}  # fmt: skip


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
@pytest.mark.parametrize("name", THROUGH)
def test_gradients_through(stype, name):
    x, dense = stored(MATRIX, stype), nd.array(MATRIX)
    for a in (x, dense):
        a.attach_grad()
        with autograd.record():
            y = THROUGH[name](a) * 2
        y.backward()
    assert x.grad.stype == stype
    np.testing.assert_allclose(x.grad.asnumpy(), dense.grad.asnumpy(), rtol=1e-5)


def test_storage_is_kept_while_autograd_records():
    x, w = stored(MATRIX, "csr"), nd.array(TABLE)
    w.attach_grad(stype="row_sparse")
    with autograd.record():
        assert nd.square(x).stype == "csr" and x[2:4].stype == "csr" and (x * 2).stype == "csr"
        y = nd.dot(nd.square(x), w)
    y.backward()
    np.testing.assert_allclose(w.grad.asnumpy(), (MATRIX**2).sum(0)[:, None] * np.ones(WIDTH), rtol=1e-5)
    assert w.grad.indices.asnumpy().tolist() == np.flatnonzero(MATRIX.any(0)).tolist()


def test_slices_have_gradients():
    x = stored(MATRIX, "csr")
    x.attach_grad()
    with autograd.record():
        y = x[2:4] * 3
    assert y.stype == "csr"
    y.backward()
    want = np.zeros_like(MATRIX)
    want[2:4] = 3
    np.testing.assert_array_equal(x.grad.asnumpy(), want)


@pytest.mark.parametrize("transpose", [False, True])
def test_both_factors_have_gradients(transpose):
    left, right = (
        MATRIX.T if transpose else MATRIX,
        RNG.normal(size=(2 * BATCH if transpose else ROWS, 2)).astype("float32"),
    )
    x, w, head = stored(MATRIX, "csr"), nd.array(right), RNG.normal(size=(len(left), 2)).astype("float32")
    x.attach_grad(stype="default")
    w.attach_grad()
    with autograd.record():
        y = nd.dot(x, w, transpose_a=transpose)
    y.backward(nd.array(head))
    of_left = head @ right.T
    np.testing.assert_allclose(x.grad.asnumpy(), of_left.T if transpose else of_left, rtol=1e-5)
    np.testing.assert_allclose(w.grad.asnumpy(), left.T @ head, rtol=1e-4, atol=1e-6)


def test_marked_by_hand_and_detached():
    x, grad = stored(MATRIX, "row_sparse"), nd.zeros(MATRIX.shape, stype="row_sparse")
    autograd.mark_variables([x], [grad])
    with autograd.record():
        y = (x.detach() * x).sum()
    autograd.backward([y])
    np.testing.assert_array_equal(grad.asnumpy(), MATRIX)
    assert x.detach().grad is None
    with autograd.record():
        z = x * 2
    z.backward(stored(MATRIX, "row_sparse"))
    np.testing.assert_array_equal(grad.asnumpy(), 2 * MATRIX)


SQUARE = sym.square(sym.var("x", stype="csr"))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: nd.ones((2, 2)).attach_grad(stype="coo"), "coo"),
        (lambda: nd.ones((2, 2, 2)).attach_grad(stype="csr"), "csr"),
        (lambda: stored(MATRIX, "csr").backward(), "NDArray|variable"),
        (lambda: autograd.mark_variables([nd.ones((2, 2))], [nd.zeros((3, 2), stype="row_sparse")]), "shape"),
        (lambda: autograd.mark_variables([nd.ones((2, 2))], [[1]]), "NDArrays"),
        (lambda: SQUARE.simple_bind(mx.cpu(), x=(2, 3), stype_dict={"x": "coo"}), "coo"),
        (lambda: sym.var("x").simple_bind(mx.cpu(), x=(2, 3), stype_dict={"y": "csr"}), "not an argument"),
        (lambda: SQUARE.simple_bind(mx.cpu(), x=(2, 3, 4)), "csr"),
        (lambda: SQUARE.simple_bind(mx.cpu(), x=(2, 3)).backward(), "head gradients"),
        (lambda: SQUARE.simple_bind(mx.cpu(), x=(2, 3)).forward(y=1), "Unknown argument y"),
        (lambda: SQUARE.simple_bind(mx.cpu(), x=(2, 3)).forward(x=nd.ones((3, 3))), "expected shape"),
    ],
)  # fmt: skip
def test_refused(call, match):
    with pytest.raises(mx.MXNetError, match=match):
        call()


# ---- bound symbols -----------------------------------------------------------------------------------------------------
def linear():
    x, w, b = sym.var("data", stype="csr"), sym.var("w", shape=(ROWS, 1), stype="row_sparse"), sym.var("b", shape=(1,))
    return sym.LinearRegressionOutput(sym.broadcast_add(sym.sparse.dot(x, w), b), sym.var("label"))


def factorization_machine():
    x, v = sym.var("data", stype="csr"), sym.var("v", shape=(ROWS, WIDTH), stype="row_sparse")
    w, b = sym.var("w", shape=(ROWS, 1), stype="row_sparse"), sym.var("b", shape=(1,))
    of_squares = sym.dot(sym.square(x), sym._internal._square_sum(v, axis=1, keepdims=True))
    of_pairs = sym.sum(sym.square(sym.dot(x, v)), axis=1, keepdims=True)
    return sym.LinearRegressionOutput(sym.broadcast_add(sym.dot(x, w), b) + 0.5 * (of_pairs - of_squares), sym.var("label"))


def trained(net, optimizer, dense, **options):
    """Return the parameters after two epochs, all of whose arrays are dense or not."""
    names = [n for n in net.list_arguments() if n not in ("data", "label")]
    stypes = dict.fromkeys(net.list_arguments(), "default") if dense else {}
    executor = net.simple_bind(mx.cpu(), data=(BATCH, ROWS), label=(BATCH, 1), grad_req=dict.fromkeys(names, "write"),
                               stype_dict=stypes)  # fmt: skip
    assert {n: executor.grad_dict[n].stype for n in names} == {n: executor.arg_dict[n].stype for n in names}
    assert executor.arg_dict["data"].stype == ("default" if dense else "csr")
    executor.copy_params_from({n: nd.array(np.resize(TABLE, executor.arg_dict[n].shape)) for n in names})
    update = mx.optimizer.get_updater(mx.optimizer.create(optimizer, **options))
    batches = mx.io.NDArrayIter(stored(MATRIX, "default" if dense else "csr"), TARGETS, BATCH,
                                last_batch_handle="discard")  # fmt: skip
    for _ in range(2):
        batches.reset()
        for batch in batches:
            executor.forward(is_train=True, data=batch.data[0], label=batch.label[0])
            executor.backward()
            for i, n in enumerate(names):
                update(i, executor.grad_dict[n], executor.arg_dict[n])
    return {n: executor.arg_dict[n].asnumpy() for n in names}


@pytest.mark.parametrize("net", [linear, factorization_machine])
@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        ("sgd", {"learning_rate": 0.1}),
        ("sgd", {"momentum": 0.9, "lazy_update": False, "wd": 0.1}),
        ("adam", {"lazy_update": False, "wd": 0.1}),
        ("adagrad", {}),
        ("rmsprop", {}),
    ],
)
def test_models_train_as_dense_ones(net, optimizer, options):
    found, want = (trained(net(), optimizer, dense, **options) for dense in (False, True))
    for name in want:
        np.testing.assert_allclose(found[name], want[name], rtol=2e-4, atol=1e-5, err_msg=name)
        assert np.abs(found[name] - np.resize(TABLE, found[name].shape)).max() > 1e-4


@pytest.mark.parametrize(("optimizer", "options"), [("sgd", {"momentum": 0.9}), ("adam", {}), ("sgd", {})])
@pytest.mark.parametrize("storage", ["default", "row_sparse"])
def test_lazy_optimizers_leave_rows_alone(optimizer, options, storage):
    weight = stored(TABLE, storage)
    weight.attach_grad(stype="row_sparse")
    update = mx.optimizer.get_updater(mx.optimizer.create(optimizer, wd=0.1, learning_rate=0.1, **options))
    for _ in range(2):
        looked_up(weight, sparse_grad=True).backward()
        update(0, weight.grad, weight)
    changed = (weight.asnumpy() != TABLE).all(1)
    assert np.flatnonzero(changed).tolist() == [1, 3, 11] and weight.stype == storage
    states = update.states[0] if isinstance(update.states[0], tuple) else [update.states[0]]
    assert all(s is None or s.stype == storage for s in states)
    again = mx.optimizer.get_updater(mx.optimizer.create(optimizer, **options))
    again.set_states(update.get_states())
    kept = again.states[0] if isinstance(again.states[0], tuple) else [again.states[0]]
    for a, b in zip(states, kept, strict=True):
        assert a is b is None or (a.stype == b.stype and a.asnumpy().tolist() == b.asnumpy().tolist())


def test_ftrl_keeps_zero_weights_sparse():
    weight, dense = nd.zeros((ROWS, WIDTH), stype="row_sparse"), nd.zeros((ROWS, WIDTH))
    for w in (weight, dense):
        w.attach_grad(stype=w.stype)
        with autograd.record():
            e = nd.Embedding(nd.array(NUMBERS), w, input_dim=ROWS, output_dim=WIDTH, sparse_grad=w is weight)
            loss = ((e - 1) ** 2).sum()
        loss.backward()
        mx.optimizer.get_updater(mx.optimizer.create("ftrl"))(0, w.grad, w)
    np.testing.assert_allclose(weight.asnumpy(), dense.asnumpy(), rtol=1e-6)
    assert weight.indices.asnumpy().tolist() == [1, 3, 11]


def test_tables_in_symbols():
    """Only gradients are sparse here: the table and all else is dense."""
    w = sym.var("w")
    table = sym.Embedding(sym.var("x"), w, input_dim=ROWS, output_dim=WIDTH, sparse_grad=True)
    net = sym.FullyConnected(table, sym.var("fc"), no_bias=True, num_hidden=2, flatten=False)
    executor = net.simple_bind(mx.cpu(), x=(BATCH,), grad_req={"w": "add", "fc": "write"})
    assert executor.grad_dict["w"].stype == "row_sparse" and executor.grad_dict["fc"].stype == "default"
    fc = RNG.normal(size=(2, WIDTH)).astype("float32")
    executor.copy_params_from({"w": nd.array(TABLE), "fc": nd.array(fc), "x": nd.array(NUMBERS)})
    for _ in range(2):
        (found,) = executor.forward(is_train=True)
        executor.backward(nd.ones((BATCH, 2)))
    np.testing.assert_allclose(found.asnumpy(), TABLE[NUMBERS] @ fc.T, rtol=1e-5)
    want = 2 * np.bincount(NUMBERS, minlength=ROWS)[:, None] * fc.sum(0)
    np.testing.assert_allclose(executor.grad_dict["w"].asnumpy(), want, rtol=1e-5)
    np.testing.assert_allclose(executor.grad_dict["fc"].asnumpy(), np.tile(TABLE[NUMBERS].sum(0), (2, 1)), rtol=1e-5)
    assert executor.grad_dict["w"].indices.asnumpy().tolist() == [1, 3, 11]
    both = sym.sum(table) + sym.sum(w)
    assert both.simple_bind(mx.cpu(), x=(BATCH,)).grad_dict["w"].stype == "default"  # as MXNet


def test_bound_to_sparse_arrays():
    x, w = stored(MATRIX, "csr"), nd.array(TABLE)
    grads = {"w": nd.zeros(TABLE.shape, stype="row_sparse"), "x": nd.zeros(MATRIX.shape)}
    y = sym.dot(sym.var("x"), sym.var("w"))
    executor = (sym.tanh(y) * 2 + y).bind(mx.cpu(), {"x": x, "w": w}, grads)
    for factor in (1, 2):  # values that the bound arrays have later count
        w[:] = factor * TABLE
        (found,) = executor.forward(is_train=True)
        executor.backward([nd.ones(found.shape)])
        product = MATRIX @ (factor * TABLE)
        np.testing.assert_allclose(found.asnumpy(), 2 * np.tanh(product) + product, rtol=1e-4, atol=1e-6)
        slope = 2 / np.cosh(product) ** 2 + 1
        np.testing.assert_allclose(grads["w"].asnumpy(), MATRIX.T @ slope, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(grads["x"].asnumpy(), slope @ (factor * TABLE).T, rtol=1e-4, atol=1e-5)
    assert w.grad is None and executor.outputs[0] is found


def test_an_argument_of_both_parts():
    """The weight is read by what sparse arrays go through, and by the rest."""
    x, w, g = stored(MATRIX, "csr"), nd.array(TABLE), nd.zeros(TABLE.shape)
    v = sym.var("w")
    y = sym.sum(sym.dot(sym.var("x"), v)) + sym.sum(sym.square(v))
    for req, times in (("write", 1), ("add", 2)):
        executor = y.bind(mx.cpu(), {"x": x, "w": w}, {"w": g}, grad_req=req)
        executor.forward(is_train=True)
        executor.backward(nd.ones((1,)))
        np.testing.assert_allclose(g.asnumpy(), times * (MATRIX.sum(0)[:, None] + 2 * TABLE), rtol=1e-5)


def test_sparse_outputs_and_other_shapes():
    x = sym.var("x", stype="row_sparse")
    executor = sym.Group([sym.square(x), sym.exp(x)]).simple_bind(mx.cpu(), x=(3, 2))
    executor.forward(is_train=True, x=stored([[1, 2], [0, 0], [3, 0]], "row_sparse"))
    assert [o.stype for o in executor.outputs] == ["row_sparse", "default"]
    executor.backward([stored([[1, 1], [1, 1], [1, 1]], "row_sparse"), nd.zeros((3, 2))])
    assert executor.grad_dict["x"].asnumpy().tolist() == [[2, 4], [0, 0], [6, 0]]
    larger = executor.reshape(x=(4, 2))
    assert larger.forward()[0].shape == (4, 2) and larger.arg_dict["x"].stype == "row_sparse"
    assert sym.square(sym.var("x")).eval(x=stored(MATRIX, "csr"))[0].stype == "csr"


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_storage_is_cast_in_symbols(stype):
    x = sym.var("x")
    executor = sym.cast_storage(x * 2, stype=stype).simple_bind(mx.cpu(), x=MATRIX.shape)
    (found,) = executor.forward(is_train=True, x=nd.array(MATRIX))
    assert found.stype == stype
    np.testing.assert_array_equal(found.asnumpy(), 2 * MATRIX)
    executor.backward(nd.array(MATRIX))
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), 2 * MATRIX)
    back = sym.cast_storage(sym.var("x", stype=stype), stype="default")
    assert back.eval(x=stored(MATRIX, stype))[0].stype == "default"


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_what_has_no_form_for_sparse_arrays_is_bound_to_dense_ones(stype):
    x, y = sym.var("data", stype=stype), sym.var("label", stype=stype)
    net = sym.LogisticRegressionOutput(sym.BatchNorm(x, name="bn", fix_gamma=False), y)
    results = []
    for kind in (stype, "default"):
        executor = net.simple_bind(mx.cpu(), data=MATRIX.shape, label=MATRIX.shape, stype_dict={"data": kind, "label": kind})
        executor.copy_params_from({"bn_gamma": nd.ones((ROWS,))}, {"bn_moving_var": nd.ones((ROWS,))})
        out = executor.forward(is_train=True, data=stored(MATRIX, kind), label=stored(abs(MATRIX), kind))[0]
        executor.backward()
        arrays = [out, executor.grad_dict["data"], executor.grad_dict["bn_gamma"], *executor.aux_arrays]
        results.append([a.asnumpy() for a in arrays])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_checks_take_sparse_arrays(stype):
    x, data = sym.var("x", stype=stype), stored(MATRIX, stype)
    y = sym.dot(sym.tanh(x), sym.var("w"))
    values = {"x": data, "w": nd.array(TABLE)}
    mx.test_utils.check_symbolic_forward(y, values, [np.tanh(MATRIX) @ TABLE], rtol=1e-4, atol=1e-5)
    mx.test_utils.check_numeric_gradient(y, values, grad_stype_dict={"w": "row_sparse"}, numeric_eps=1e-3, rtol=1e-2)
    head = RNG.normal(size=(len(MATRIX), WIDTH)).astype("float32")
    want = {"w": np.tanh(MATRIX).T @ head}
    mx.test_utils.check_symbolic_backward(y, values, [head], want, rtol=1e-4, atol=1e-5, grad_stypes={"w": "row_sparse"})


# ---- batches -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_of_csr(shuffle):
    found = []
    for data in (stored(MATRIX, "csr"), nd.array(MATRIX)):
        np.random.seed(3)
        batches = mx.io.NDArrayIter(data, np.arange(8), 3, shuffle=shuffle, last_batch_handle="discard")
        twice = [b for _ in range(2) for b in (batches.reset(), *batches)[1:]]
        found.append([(b.data[0].asnumpy().tolist(), b.label[0].asnumpy().tolist(), b.pad) for b in twice])
        assert {b.data[0].stype for b in twice} == {data.stype}
    assert found[0] == found[1]


def test_libsvm(tmp_path):
    data, labels = tmp_path / "data.txt", tmp_path / "labels.txt"
    data.write_text("1.0 0:0.5 2:1.2\n-2.0\n0.6 0:2.4 3:1.2  # a remark\n\n1 0:1.2\n-1 2:-1.2\n")
    labels.write_text("0 1:0.5\n0 2:3\n0\n0 0:7\n0 2:9\n")
    batches = mx.io.LibSVMIter(data_libsvm=data, data_shape=(4,), batch_size=3)
    assert batches.provide_data[0] == ("data", (3, 4)) and batches.provide_label[0] == ("softmax_label", (3,))
    first, second = list(batches)
    assert first.data[0].stype == "csr" and first.pad == 0 and second.pad == 1
    np.testing.assert_allclose(first.data[0].asnumpy(), [[0.5, 0, 1.2, 0], [0] * 4, [2.4, 0, 0, 1.2]], rtol=1e-6)
    np.testing.assert_allclose(second.label[0].asnumpy(), [1, -1, 1], rtol=1e-6)
    batches.reset()  # the row that filled the last batch up is left out
    assert [b.index.tolist() for b in batches] == [[1, 2, 3], [4, 0, 1]]
    both = mx.io.LibSVMIter(data, (4,), labels, (3,), 2, num_parts=2, part_index=1)
    batch = next(both)
    assert batch.label[0].stype == "csr" and batch.label[0].asnumpy().tolist() == [[0, 0, 0], [7, 0, 0]]


@pytest.mark.parametrize(
    ("text", "options", "match"),
    [
        ("1 a:2\n", {}, "line 1"),
        ("1 0:2\nx 0:1\n", {}, "line 2"),
        ("1 4:2\n", {}, "beyond 0...3"),
        ("1 -1:2\n", {}, "beyond 0...3"),
        ("", {}, "no rows"),
        ("1 0:2\n", {"batch_size": 0}, "positive"),
        ("1 0:2\n", {"data_shape": (2, 2)}, "one positive size"),
        ("1 0:2\n", {"data_shape": "a"}, "data_shape"),
        ("1 0:2\n", {"part_index": 2}, "part"),
        ("1 0:2\n", {"round_batch": False}, "round_batch"),
        (None, {}, "rows.txt"),
    ],
)
def test_libsvm_refuses(tmp_path, text, options, match):
    path = tmp_path / "rows.txt"
    if text is not None:
        path.write_text(text)
    with pytest.raises(mx.MXNetError, match=match):
        mx.io.LibSVMIter(**{"data_libsvm": path, "data_shape": (4,), "batch_size": 2, **options})


# ---- around ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["ftml", "lamb", "groupadagrad", "sgd"])
def test_a_weight_that_an_optimizer_wrote_stays_a_variable(name):
    weight = nd.ones((3, 2))
    weight.attach_grad()
    mx.optimizer.get_updater(mx.optimizer.create(name))(0, nd.ones((3, 2)), weight)
    assert weight.grad is not None


# ---- operators written in Python --------------------------------------------------------------------------------------------
class Doubled(mx.operator.CustomOp):
    """Twice the data, and ``how``, which counts its calls."""

    def forward(self, is_train, req, in_data, out_data, aux):
        assert [x.stype for x in (*in_data, *out_data, *aux)] == ["csr", "csr", "default", "csr", "default"]
        aux[1][:] += 1
        self.assign(out_data[0], req[0], 2 * in_data[0])
        self.assign(out_data[1], req[1], in_data[0].todense().sum())

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        assert [x.stype for x in (*out_grad, *in_grad)] == ["csr", "default", "csr"]
        self.assign(in_grad[0], req[0], 2 * out_grad[0])


class DoubledProp(mx.operator.CustomOpProp):
    backward_types = ["csr", "default"], ["csr"], ["csr", "default"], ["csr"], ["csr", "default"]

    def list_outputs(self):
        return ["twice", "total"]

    def list_auxiliary_states(self):
        return ["kept", "calls"]

    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0], (1,)], [in_shape[0], (1,)]

    def infer_storage_type(self, in_stype):
        dense = in_stype == ["default"]
        return in_stype, ["default" if dense else "csr", "default"], ["default" if dense else "csr", "default"]

    def infer_storage_type_backward(self, *stypes):
        assert stypes == (["default"] * 2, ["csr"], ["csr", "default"], ["default"], ["csr", "default"])
        return self.backward_types

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Doubled()


mx.operator.register("sparse_doubled")(DoubledProp)


def test_custom_operators_take_the_storage_that_they_declare():
    x, kept, calls = stored(MATRIX, "csr"), stored(np.zeros_like(MATRIX), "csr"), nd.zeros(1)
    x.attach_grad()
    heads = RNG.normal(size=MATRIX.shape).astype("float32")
    with autograd.record():
        twice, total = nd.Custom(x, calls=calls, kept=kept, op_type="sparse_doubled")
        loss = (twice * nd.array(heads)).sum()
    loss.backward()
    assert (twice.stype, total.stype, calls.asnumpy().tolist()) == ("csr", "default", [1])
    np.testing.assert_array_equal(twice.asnumpy(), 2 * MATRIX)
    np.testing.assert_allclose(total.asnumpy(), [MATRIX.sum()], rtol=1e-5)
    np.testing.assert_array_equal(x.grad.asnumpy(), 2 * heads)


def test_custom_operators_in_symbols_with_sparse_states():
    y = sym.Custom(sym.var("x", stype="csr"), op_type="sparse_doubled", name="d")[0]
    kept, calls = stored(np.zeros_like(MATRIX), "csr"), nd.zeros(1)
    grad = nd.zeros(MATRIX.shape)
    executor = y.bind(mx.cpu(), {"x": stored(MATRIX, "csr")}, {"x": grad}, aux_states={"d_kept": kept, "d_calls": calls})
    (out,) = executor.forward(is_train=True)
    assert (out.stype, calls.asnumpy().tolist()) == ("csr", [1])
    executor.backward(nd.array(MATRIX))
    np.testing.assert_array_equal(grad.asnumpy(), 2 * MATRIX)


@pytest.mark.parametrize("stype", ["default", "csr"])
def test_sparse_states_of_operators_that_take_dense_ones(stype):
    net = sym.BatchNorm(sym.var("x", stype=stype), name="n", fix_gamma=False, momentum=0.5)
    mean, var = stored(np.zeros(ROWS), "row_sparse"), stored(np.ones(ROWS), "row_sparse")
    args = {"x": stored(MATRIX, stype), "n_gamma": nd.ones((ROWS,)), "n_beta": nd.zeros((ROWS,))}
    executor = net.bind(mx.cpu(), args, aux_states={"n_moving_mean": mean, "n_moving_var": var})
    for k in (0.5, 0.75):
        executor.forward(is_train=True)
        np.testing.assert_allclose(mean.asnumpy(), k * MATRIX.mean(0), rtol=1e-5, atol=1e-7)
    assert (mean.stype, executor.aux_dict["n_moving_mean"] is mean) == ("row_sparse", True)
    executor.aux_dict["n_moving_mean"][:] = 0
    executor.forward(is_train=True)
    np.testing.assert_allclose(mean.asnumpy(), 0.5 * MATRIX.mean(0), rtol=1e-5, atol=1e-7)


def test_custom_operators_that_declare_what_there_is_not():
    class Wrong(DoubledProp):
        backward_types = ["csr"], ["csr"]

        def infer_storage_type(self, in_stype):
            return in_stype, ["csc"], []

    mx.operator.register("sparse_wrong")(Wrong)
    arrays = stored(MATRIX, "csr"), stored(MATRIX, "csr"), nd.zeros(1)
    with pytest.raises(mx.MXNetError, match=r"Wrong.infer_storage_type returned .*'csc'.*expected 3 lists of 1, 2, 2 items"):
        nd.Custom(*arrays, op_type="sparse_wrong")
    with pytest.raises(TypeError, match="expected the inputs data, kept, calls; got 2 arrays"):
        nd.Custom(*arrays[:2], op_type="sparse_doubled")
    Wrong.infer_storage_type = DoubledProp.infer_storage_type
    arrays[0].attach_grad()
    with autograd.record():
        y = nd.Custom(*arrays, op_type="sparse_wrong")[0]
    with pytest.raises(mx.MXNetError, match=r"Wrong.infer_storage_type_backward returned .*expected 5 lists"):
        y.backward()


@pytest.mark.parametrize(("stype", "left"), [("row_sparse", 5.0), ("default", 0.0)])
def test_ftrl_leaves_rows_without_gradient_alone_where_the_weight_is_sparse(stype, left):
    weight = nd.array([[5.0], [0], [5]]).tostype(stype)
    z, n = (nd.zeros((3, 1)).tostype(stype) for _ in range(2))
    grad = nd.sparse.row_sparse_array(([[2.0]], [0]), shape=(3, 1))
    nd.sparse.ftrl_update(weight, grad, z, n, lr=0.1, lamda1=0.01, out=weight)
    found = weight.asnumpy().ravel()
    assert found[0] not in (0, 5) and found[2] == left


def test_sparse_embedding_takes_what_its_old_programs_say():
    data, weight = mx.sym.var("data"), mx.sym.var("weight", stype="row_sparse")
    params = {"input_dim": 5, "output_dim": 2, "deterministic": True}
    rows = mx.sym.contrib.SparseEmbedding(data, weight, **params)
    executor = mx.sym.load_json(rows.tojson()).simple_bind(mx.cpu(), data=(3,), grad_req={"data": "null", "weight": "write"})
    table = mx.nd.arange(10).reshape((5, 2))
    executor.arg_dict["weight"][:] = table.tostype("row_sparse")
    found = executor.forward(is_train=True, data=mx.nd.array([3, 1, 3]))[0]
    assert found.asnumpy().tolist() == table.take(mx.nd.array([3, 1, 3])).asnumpy().tolist()
    executor.backward(mx.nd.ones((3, 2)))
    assert executor.grad_dict["weight"].indices.asnumpy().tolist() == [1, 3]
    assert executor.grad_dict["weight"].data.asnumpy().tolist() == [[1, 1], [2, 2]]
