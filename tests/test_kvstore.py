"""``mx.kv``: stores of one process, as MXNet 1.9.1 behaves."""

import pytest

import mxop as mx
from mxop import nd


def pulled(store, key, shape=(2,)):
    out = nd.zeros(shape)
    store.pull(key, out=out)
    return out.asnumpy().tolist()


def test_values():
    store = mx.kv.create("device")
    assert (store.type, store.rank, store.num_workers, store.is_capable("optimizer")) == ("device", 0, 1, True)
    store.init("a", nd.array([1, 2]))
    store.init(["b", "c"], [nd.ones((2,)), nd.zeros((2,))])
    assert pulled(store, "a") == [1, 2] and pulled(store, "b") == [1, 1]
    given = nd.array([8, 9])
    store.push("a", given)
    given[:] = 0
    assert pulled(store, "a") == [8, 9]
    store.push("a", [nd.ones((2,))] * 4)
    assert pulled(store, "a") == [4, 4]
    store.push(["b", "c"], [[nd.ones((2,))] * 2, [nd.ones((2,))] * 3])
    both = [nd.zeros((2,)), nd.zeros((2,))]
    store.pull(["b", "c"], out=both)
    assert [o.asnumpy()[0] for o in both] == [2, 3]
    store.pull("a", out=both)  # to two devices
    assert [o.asnumpy()[0] for o in both] == [4, 4]
    store.push(["b", "c", "b"], [nd.ones((2,)), nd.ones((2,)), nd.ones((2,)) * 4])  # one key twice
    assert pulled(store, "b") == [5, 5]
    store._barrier()


def test_updater_and_optimizer(tmp_path):
    store, seen = mx.kv.create(), []

    def update(key, pushed, value):
        seen.append(key)
        value += 2 * pushed

    store.init(7, nd.ones((2,)))
    store._set_updater(update)
    store.push(7, [nd.ones((2,)), nd.ones((2,))])
    assert pulled(store, 7) == [5, 5] and seen == [7]
    store.push([7, 7], [nd.ones((2,)), nd.ones((2,))])
    assert pulled(store, 7) == [9, 9] and seen == [7, 7]
    with pytest.raises(mx.MXNetError, match="8"):  # and nothing is done
        store.push([7, 8], [nd.ones((2,)), nd.ones((2,))])
    assert pulled(store, 7) == [9, 9]
    store = mx.kv.create()
    store.init("w", nd.ones((2,)))
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.5))
    store.push("w", nd.ones((2,)))
    assert pulled(store, "w") == [0.5, 0.5]
    store.save_optimizer_states(str(tmp_path / "states"))
    after = []
    for _ in range(2):
        out = nd.zeros((2,))
        store.load_optimizer_states(str(tmp_path / "states"))
        store.pushpull("w", nd.ones((2,)), out=out)
        after.append(out.asnumpy()[0])
    assert after == [-0.25, -1.0]  # the momentum, too, is that of the file
    (tmp_path / "states").write_bytes(b"\x80\x04\x8e" + bytes([255] * 8))
    for name in ("states", "missing", "/dev/zero", str(tmp_path)):
        with pytest.raises(mx.MXNetError, match=f"load_optimizer_states: '.*{name}'"):
            store.load_optimizer_states(str(tmp_path / name))
    with pytest.raises(mx.MXNetError, match=r"save_optimizer_states: '.*no/states'"):
        store.save_optimizer_states(str(tmp_path / "no" / "states"))


def test_rows():
    store = mx.kv.create()
    rows = nd.sparse.row_sparse_array((nd.ones((2, 3)), [0, 2]), shape=(4, 3))
    store.init("e", rows)
    out = nd.sparse.zeros("row_sparse", (4, 3))
    store.row_sparse_pull("e", out=out, row_ids=nd.array([0, 1]))
    assert out.asnumpy().sum(axis=1).tolist() == [3, 0, 0, 0]
    store.init("f", rows)
    outs = [[nd.sparse.zeros("row_sparse", (4, 3)) for _ in range(2)] for _ in range(2)]
    some, other = nd.array([[2, 0], [2, 2]]), nd.array([1])
    store.row_sparse_pull(["e", "f"], out=outs, row_ids=[[some, other], [other, some]])
    assert [[float(o.asnumpy().sum()) for o in pair] for pair in outs] == [[6, 0], [0, 6]]
    store.pull("e", out=out)  # sparse arrays are left alone
    assert out.asnumpy().sum() == 3
    store.pull("e", out=out, ignore_sparse=False)
    assert out.asnumpy().sum() == 6


def test_own_stores():
    @mx.kv.KVStoreBase.register
    class TestStore(mx.kv.KVStoreBase):
        type = "test"

    try:
        assert mx.kv.create("teststore").type == "test"
        with pytest.raises(NotImplementedError, match="TestStore defines no pushpull"):
            mx.kv.create("teststore").pushpull("a", nd.ones((1,)))
    finally:
        del mx.kv.KVStoreBase.kv_registry["teststore"]


@pytest.mark.parametrize("call, message", [
    (lambda s: s.pull("b", out=nd.ones((1,))), "call init"), (lambda s: s.push("b", nd.ones((1,))), "call init"),
    (lambda s: s.init("a", nd.ones((1,))), "initialized before"), (lambda s: s.pull("a"), "out of 'a' is None"),
    (lambda s: s.push(["a", "c"], [nd.ones((1,))]), "do not belong together"), (lambda s: s.push(1.5, nd.ones((1,))), "key"),
    (lambda s: s.set_gradient_compression({"type": "2bit"}), "nothing to compress"),
    (lambda s: s.save_optimizer_states("x"), "set_optimizer"), (lambda s: mx.kv.create("dist_sync"), "one process"),
    (lambda s: s.init(3, nd.ones((1,))), "all int or all str"),
    (lambda s: s.row_sparse_pull("a", out=nd.ones((1,)), row_ids=nd.array([0])), "expected 'row_sparse'"),
    (lambda s: s.row_sparse_pull("a", out=nd.ones((1,)), row_ids=[]), "do not belong together"),
    (lambda s: mx.kv.create(3), "expected a str"), (lambda s: s.row_sparse_pull("a"), "row_ids"),
])  # fmt: skip
def test_misuse(call, message):
    store = mx.kv.create()
    store.init("a", nd.ones((1,)))
    with pytest.raises(mx.MXNetError, match=message):
        call(store)


def test_an_unknown_key_is_one_also_for_sparse_arrays():
    with pytest.raises(mx.MXNetError, match="'no' was not initialized"):
        mx.kv.create().pull("no", nd.sparse.zeros("row_sparse", (2, 2)))


# ---- parameters on several devices -----------------------------------------------------------------------------------
def test_which_store_updates(monkeypatch):
    arrays = {"w": nd.ones((2,))}
    made = mx.kv.create("local")
    assert mx.model._create_kvstore(None, 2, arrays) == (None, False)
    assert mx.model._create_kvstore("local", 1, arrays) == (None, False)
    assert mx.model._create_kvstore(made, 1, arrays) == (made, True)
    store, updates = mx.model._create_kvstore("device", 2, arrays)
    assert store.type == "device" and updates
    assert mx.model._create_kvstore("local", 2, {"w": nd.zeros((2**24 + 1,), dtype="int8")})[1] is False
    monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", "0")
    assert mx.model._create_kvstore(made, 1, arrays) == (made, False)
    with pytest.raises(TypeError, match="kvstore=3"):
        mx.model._create_kvstore(3, 2, arrays)


@pytest.mark.parametrize("on_store", [True, False])
def test_loops_that_people_wrote(on_store):
    """Two devices, two parameters, one of them without a gradient: MXNet gives the same."""
    from mxop.model import _initialize_kvstore, _update_params, _update_params_on_kvstore

    names, start = ["w", "fixed"], {"w": nd.array([1, 2]), "fixed": nd.array([5])}
    parameters = [[nd.zeros((2,)), nd.zeros((2,))], [nd.zeros((1,)), nd.zeros((1,))]]
    gradients = [[nd.array([1, 2]), nd.array([3, 4])], [None, None]]
    store = mx.kv.create("local")
    _initialize_kvstore(store, parameters, start, names, on_store)
    assert [a.asnumpy().tolist() for a in parameters[0]] == ([[1, 2]] * 2 if on_store else [[0, 0]] * 2)
    optimizer = mx.optimizer.SGD(learning_rate=0.5, momentum=0.5)
    if on_store:
        store.set_optimizer(optimizer)
    updater = mx.optimizer.get_updater(optimizer)
    for _ in range(2):
        if on_store:
            _update_params_on_kvstore(parameters, gradients, store, names)
        else:
            gradients[0] = [nd.array([1, 2]), nd.array([3, 4])]  # the sum takes their place
            _update_params(parameters, gradients, updater, 2, store, names)
    expected = [-4, -5.5] if on_store else [-5, -7.5]
    assert [a.asnumpy().tolist() for a in parameters[0]] == [expected] * 2
    assert [a.asnumpy().tolist() for a in parameters[1]] == [[5 * on_store]] * 2
    alone = [[nd.array([1.0])]]
    _update_params(alone, [[nd.array([2.0])]], mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.5)), 1)
    assert alone[0][0].asnumpy().tolist() == [0]
