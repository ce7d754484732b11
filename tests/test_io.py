"""``mx.io``, ``mx.model`` and ``mx.callback``: batches, checkpoints, what training says."""

import logging
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import mxop as mx
from mxop.errors import OpTypeError, OpValueError

DATA = np.arange(14, dtype="float32").reshape(7, 2)


def first_columns(batches):
    return [batch.data[0].asnumpy()[:, 0].astype(int).tolist() for batch in batches]


@pytest.mark.parametrize("last, epochs, pads", [
    ("pad", [[[0, 2, 4], [6, 8, 10], [12, 0, 2]]] * 2, [0, 0, 2]),
    ("discard", [[[0, 2, 4], [6, 8, 10]]] * 2, [0, 0]),
    ("roll_over", [[[0, 2, 4], [6, 8, 10]], [[12, 0, 2], [4, 6, 8]], [[10, 12, 0], [2, 4, 6], [8, 10, 12]]], [0, 0]),
])  # fmt: skip
def test_the_last_batch(last, epochs, pads):
    batches = mx.io.NDArrayIter(DATA, DATA[:, 1], 3, last_batch_handle=last)
    assert [batch.pad for batch in batches] == pads
    batches.hard_reset()
    for expected in epochs:
        found = list(batches)
        assert first_columns(found) == expected
        assert all((b.label[0] == b.data[0][:, 1]).asnumpy().all() for b in found)
        batches.reset()


def test_names_shapes_and_types():
    batches = mx.io.NDArrayIter({"b": DATA, "a": mx.nd.zeros((7, 3), dtype="int32")}, [DATA, DATA], 2, label_name="y")
    assert [(d.name, d.shape, d.dtype) for d in batches.provide_data] == [
        ("a", (2, 3), np.int32),
        ("b", (2, 2), np.float32),
    ]
    assert [d.name for d in batches.provide_label] == ["_0_y", "_1_y"] and batches.num_source == 4
    assert [d.name for d in mx.io.NDArrayIter(DATA).provide_data] == ["data"]
    assert mx.io.NDArrayIter(DATA).provide_label == [] and next(mx.io.NDArrayIter(DATA)).label == []
    last = mx.io.NDArrayIter(DATA.T, DATA.T + 1, 4, shuffle=True, layout="TN")
    assert last.provide_data[0].shape == (2, 4)
    assert [(x.data[0].shape, x.pad) for x in last] == [((2, 4), 0), ((2, 4), 1)]
    last.reset()
    assert all(
        (x.label[0] - x.data[0] == 1).asnumpy().all() and (x.data[0][1] - x.data[0][0] == 1).asnumpy().all() for x in last
    )


def test_shuffling_keeps_data_and_labels_together():
    np.random.seed(2)
    batches = mx.io.NDArrayIter(DATA, DATA[:, 1], 7, shuffle=True)
    orders = set()
    for _ in range(3):
        (batch,) = batches
        assert (batch.label[0] == batch.data[0][:, 1]).asnumpy().all()
        assert sorted(batch.label[0].asnumpy()) == sorted(DATA[:, 1])
        orders.add(batch.label[0].asnumpy().tobytes())
        batches.reset()
    assert len(orders) == 3


def test_a_batch_larger_than_the_data():
    (batch,) = mx.io.NDArrayIter(DATA[:2], batch_size=7)
    assert batch.data[0].asnumpy()[:, 0].tolist() == [0, 2, 0, 2, 0, 2, 0] and batch.pad == 5


def test_arrays_longer_than_the_first_one():
    """MXNet's page of the iterator has such an example."""
    data, label = {"a": DATA[:3], "b": DATA}, {"l": DATA[:, 1]}
    with pytest.warns(UserWarning, match="'a': 3, 'b': 7, 'l': 7}; the first 3 of each are used"):
        batches = mx.io.NDArrayIter(data, label, 2, shuffle=True)
    found = [np.concatenate([part.asnumpy() for part in parts]) for parts in zip(*[b.data + b.label for b in batches])]
    assert [len(x) for x in found] == [4, 4, 4] and sorted(found[0][:3, 0]) == sorted(DATA[:3, 0])
    assert (found[0] == found[1]).all() and (found[0][:, 1] == found[2]).all()


def test_mistakes():
    for data in (None, [], "x", {}, {"a": object()}):
        with pytest.raises(OpTypeError):
            mx.io.NDArrayIter(data)
    with pytest.raises(OpValueError, match=r"different numbers of elements along axis 0: .*'data': 7, 'softmax_label': 6"):
        mx.io.NDArrayIter(DATA, DATA[:6])
    with pytest.raises(OpValueError, match="last_batch_handle"):
        mx.io.NDArrayIter(DATA, last_batch_handle="drop")
    with pytest.raises(TypeError, match="NDArrayIter: '_0_data' is 1, a number; expected an array of examples"):
        mx.io.NDArrayIter([1, 2, 3], batch_size=2)
    batches = mx.io.NDArrayIter(DATA, batch_size=7)
    list(batches)
    with pytest.raises(OpValueError, match="epoch is over"):
        batches.getdata()
    with pytest.raises(OpTypeError, match="expected a list"):
        mx.io.DataBatch(mx.nd.ones(2))


def test_descriptions():
    desc = mx.io.DataDesc("x", (2, 3), "int32", "TN")
    assert tuple(desc) == ("x", (2, 3)) and mx.io.DataDesc.get_batch_axis(desc.layout) == 1
    assert mx.io.DataDesc.get_batch_axis(None) == 0
    copy = pickle.loads(pickle.dumps(desc))
    assert (copy.dtype, copy.layout) == ("int32", "TN")
    listed = mx.io.DataDesc.get_list([("x", (1,)), ("y", (2,))], [("x", "int8"), ("y", "int32")])
    assert [d.dtype for d in listed] == ["int8", "int32"]
    assert str(mx.io.DataBatch([mx.nd.ones((2, 3))], [])) == "DataBatch: data shapes: [(2, 3)] label shapes: None"


def test_other_lengths():
    longer = mx.io.ResizeIter(mx.io.NDArrayIter(DATA, batch_size=3), 5)
    assert first_columns(longer) == [[0, 2, 4], [6, 8, 10], [12, 0, 2], [0, 2, 4], [6, 8, 10]]
    longer.reset()
    assert first_columns(longer)[0] == [0, 2, 4] and longer.provide_data[0].shape == (3, 2)


class Failing(mx.io.NDArrayIter):
    def next(self):
        raise ZeroDivisionError


def test_prefetching():
    def make(**more):
        return mx.io.NDArrayIter(DATA, DATA[:, 1], 3, **more)

    both = mx.io.PrefetchingIter([make(), make()], [{"data": "a"}, {"data": "b"}], [{"softmax_label": "y"}] * 2)
    assert [d.name for d in both.provide_data + both.provide_label] == ["a", "b", "y", "y"] and both.batch_size == 3
    for _ in range(2):
        found = list(both)
        assert first_columns(found) == [[0, 2, 4], [6, 8, 10], [12, 0, 2]]
        assert all(len(b.data) == len(b.label) == 2 and b.pad == (2 if i == 2 else 0) for i, b in enumerate(found))
        both.reset()
    with pytest.raises(OpValueError, match="equally many"):
        list(mx.io.PrefetchingIter([make(), make(last_batch_handle="discard")]))
    with pytest.raises(ZeroDivisionError):
        next(mx.io.PrefetchingIter(Failing(DATA)))
    with pytest.raises(OpValueError):
        mx.io.PrefetchingIter([])


def test_own_iterators():
    class Two(mx.io.DataIter):
        cur = 0

        def iter_next(self):
            self.cur += 1
            return self.cur <= 2

        def getdata(self):
            return [mx.nd.ones((1,)) * self.cur]

        def getlabel(self):
            return []

        def getpad(self):
            return 0

    assert [b.data[0].item() for b in Two()] == [1, 2] and list(mx.io.DataIter()) == []


# ---- checkpoints and callbacks --------------------------------------------------------------------------------------------
def test_checkpoints(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    prefix, symbol = str(tmp_path / "net"), mx.sym.exp(mx.sym.Variable("x"), name="e")
    saved = mx.callback.do_checkpoint(prefix, 2)
    for epoch in range(4):
        saved(epoch, symbol, {"x": mx.nd.array([epoch])}, {"m": mx.nd.zeros((2,))})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net-0002.params", "net-0004.params", "net-symbol.json"]
    again, arguments, states = mx.model.load_checkpoint(prefix, 4)
    assert again.tojson() == symbol.tojson() and arguments["x"].item() == 3 and states["m"].shape == (2,)
    assert "Saved checkpoint" in caplog.text
    mx.model.save_checkpoint(prefix, 8, None, {"x": mx.nd.ones((1,))}, None)
    assert mx.model.load_params(prefix, 8)[1] == {}
    mx.model.save_checkpoint(prefix, 5, None, {}, {})
    assert mx.model.load_params(prefix, 5) == ({}, {}) and "is empty" in caplog.text
    with pytest.raises(FileNotFoundError):
        mx.model.load_checkpoint(prefix, 6)
    mx.nd.save(f"{prefix}-0007.params", [mx.nd.ones(2), mx.nd.ones(2)])
    with pytest.raises(mx.MXNetError, match=r"net-0007.params' have no names"):
        mx.model.load_params(prefix, 7)
    for wrong in ("7", None):
        with pytest.raises(mx.MXNetError, match=f"epoch={wrong!r}"):
            mx.model.load_checkpoint(prefix, wrong)


def test_what_callbacks_log(caplog):
    caplog.set_level(logging.INFO)
    metric = mx.metric.create("mse")
    metric.update([mx.nd.array([1])], [mx.nd.array([3])])
    speed, bar, train = (
        mx.callback.Speedometer(10, 2),
        mx.callback.ProgressBar(4, 8),
        mx.callback.log_train_metric(2, True),
    )
    for batch in range(1, 5):
        param = mx.model.BatchEndParam(3, batch, metric if batch > 2 else None, None)
        speed(param)
        bar(param)
    metric.update([mx.nd.array([1])], [mx.nd.array([2])])
    train(mx.model.BatchEndParam(3, 4, metric, None))
    mx.callback.LogValidationMetricsCallback()(SimpleNamespace(eval_metric=metric, epoch=3))
    text = caplog.text
    assert "Iter[3] Batch [2]\tSpeed: " in text and "Epoch[3] Batch [2-4]\tSpeed: " in text and "mse=4.000000" in text
    assert "[==------] 25%" in text and "[========] 100%" in text and "Iter[3] Batch[4] Train-mse=1.000000" in text
    assert "Epoch[3] Validation-mse=nan" in text and metric.get_global()[1] == 2.5
    saved = []
    module = SimpleNamespace(save_checkpoint=lambda *args: saved.append(args))
    callback = mx.callback.module_checkpoint(module, "net", 2, True)
    for epoch in range(4):
        callback(epoch)
    assert saved == [("net", 2, True), ("net", 4, True)]


@pytest.mark.parametrize("shuffle", [False, True])
def test_csr_matrices_stay_so(shuffle):
    rows = np.diag(np.arange(1, 8, dtype="float32"))
    data = mx.nd.array(rows).tostype("csr")
    batches = list(mx.io.NDArrayIter(data, np.arange(7), 3, shuffle=shuffle, last_batch_handle="discard"))
    assert len(batches) == 2
    for batch in batches:
        assert batch.data[0].stype == "csr"
        np.testing.assert_array_equal(batch.data[0].asnumpy(), rows[batch.label[0].asnumpy().astype(int)])
    with pytest.raises(NotImplementedError, match="must be 'discard'"):
        mx.io.NDArrayIter({"x": data}, batch_size=3)


@pytest.mark.parametrize("size", ["2", 0, 2.0])
def test_a_size_of_batches_that_is_none(size):
    with pytest.raises(ValueError, match=f"NDArrayIter: batch_size={size!r}; expected a positive integer"):
        mx.io.NDArrayIter(np.ones((4, 2)), batch_size=size)
    assert mx.io.NDArrayIter(np.ones((4, 2)), batch_size=np.int64(2)).provide_data[0].shape == (2, 2)
