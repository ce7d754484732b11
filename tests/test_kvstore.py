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


def test_updater_and_optimizer(tmp_path):
    store, seen = mx.kv.create(), []

    def update(key, pushed, value):
        seen.append(key)
        value += 2 * pushed

    store.init(7, nd.ones((2,)))
    store._set_updater(update)
    store.push(7, [nd.ones((2,)), nd.ones((2,))])
    assert pulled(store, 7) == [5, 5] and seen == [7]
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
