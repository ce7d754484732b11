"""``mx.io.ImageRecordIter``: what MXNet 1.9.1 makes of the same records; sums of pixels are its own."""

import io
import random

import numpy as np
import pytest

import mxop as mx
from mxop import nd, recordio

SIZES = [(9, 12), (12, 8), (8, 8), (10, 16), (14, 9)]


def pixels(k):
    rows = np.arange(np.prod(SIZES[k]) * 3).reshape(*SIZES[k], 3)
    return ((rows * 37 + k * 53 + rows // 7 * 11) % 256).astype("uint8")


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """A file of five records with its index, and a list with two other labels for each."""
    pillow, folder = pytest.importorskip("PIL.Image"), tmp_path_factory.mktemp("records")
    writer = recordio.MXIndexedRecordIO(folder / "x.idx", folder / "x.rec", "w")
    for k in range(5):
        made = io.BytesIO()
        pillow.fromarray(pixels(k)).save(made, "PNG")
        writer.write_idx(k, recordio.pack((0, k + 0.5, k, 0), made.getvalue()))
    writer.close()
    (folder / "x.lst").write_text("".join(f"{k}\t{10 + k}\t{20 + k}\tp{k}.png\n" for k in range(5)))
    return folder


def batches(records, **more):
    given = {"path_imgrec": records / "x.rec", "data_shape": (3, 6, 7), "batch_size": 2} | more
    return mx.io.ImageRecordIter(**given)


@pytest.mark.parametrize("params, sums", [
    ({}, [15478, 15756, 16226, 16184, 16532]), ({"resize": 11}, [15731, 15887, 16137, 16217, 15617]),
    ({"resize": 11, "inter_method": 2}, [15638, 15789, 16114, 16240, 15638]),
    ({"data_shape": (3, 12, 10)}, [45041, 45553, 46525, 46549, 46058]),
    ({"data_shape": (1, 6, 7)}, [5190, 5144, 5477, 5491, 5411]),
    ({"pad": 2, "fill_value": 9}, [15478, 15756, 16226, 16184, 16532]), ({"mirror": True}, [15478, 15756, 16226, 16184, 16532]),
    ({"mean_r": 10, "mean_g": 20, "mean_b": 30, "std_r": 2, "std_g": 4, "std_b": 8, "scale": 0.5},
     [1947.375, 2025.25, 2131.125, 2045, 2111.75]),
    ({"min_crop_size": 8, "max_crop_size": 8}, [15543, 15868, 16223, 16193, 15950]),
    ({"dtype": "uint8", "mean_r": 5}, [15478, 15756, 16226, 16184, 16532]),
    ({"dtype": "int8", "mean_r": 5}, [11578, 11724, 11946, 11902, 12154]),
])  # fmt: skip
def test_images_are_those_of_mxnet(records, params, sums):
    found = [batch.data[0] for batch in batches(records, **params)]
    assert all(x.dtype == np.dtype(params.get("dtype", "float32")) for x in found)
    assert [float(v) for x in found for v in x.asnumpy().astype("float64").sum((1, 2, 3))] == [*sums, sums[0]]


def test_parts_of_an_image(records):
    middle = pixels(0)[1:7, 2:9].transpose(2, 0, 1)
    assert (batches(records).next().data[0][0].asnumpy() == middle).all()
    assert (batches(records, mirror=True).next().data[0][0].asnumpy() == middle[:, :, ::-1]).all()
    around = batches(records, pad=3, fill_value=9, data_shape=(3, 15, 18)).next().data[0][0].asnumpy()
    assert (around[:, 3:-3, 3:-3] == pixels(0).transpose(2, 0, 1)).all() and (around[:, :3] == 9).all()
    random.seed(0)
    for at_random in ({"rand_crop": True}, {"rand_crop": True, "rand_mirror": True}):
        for batch in batches(records, **at_random):
            for k, x in zip(batch.label[0].asnumpy().astype(int), batch.data[0].asnumpy(), strict=True):
                whole = pixels(k).transpose(2, 0, 1)
                windows = np.lib.stride_tricks.sliding_window_view(whole, (3, 6, 7)).reshape(-1, 3, 6, 7)
                assert any((w == x).all() or (w[:, :, ::-1] == x).all() for w in windows)


def test_last_batch_and_next_epoch(records):
    """What fills the last batch up is left out of the next epoch, as in MXNet; otherwise zeros do."""
    round_, rest = batches(records, batch_size=3), batches(records, batch_size=3, round_batch=False)
    for want, pad in (([[0, 1, 2], [3, 4, 0]], 1), ([[1, 2, 3], [4, 0, 1]], 2), ([[2, 3, 4]], 0)):
        found = list(round_)
        assert [(batch.label[0].asnumpy() - 0.5).tolist() for batch in found] == want
        assert found[-1].pad == pad
        round_.reset()
    for _ in range(2):
        last = list(rest)[-1]
        assert last.label[0].asnumpy().tolist() == [3.5, 4.5, 0] and last.pad == 1 and not last.data[0][2].asnumpy().any()
        rest.reset()
    rest.next()
    rest.reset()  # in the middle of an epoch
    assert rest.next().label[0].asnumpy().tolist() == [0.5, 1.5, 2.5]


def test_labels_and_parts(records):
    assert [batch.label[0].asnumpy().tolist() for batch in batches(records, path_imglist=records / "x.lst", label_width=2)] == [
        [[10, 20], [11, 21]], [[12, 22], [13, 23]], [[14, 24], [10, 20]]]  # fmt: skip
    assert batches(records, path_imglist=records / "x.lst").next().label[0].asnumpy().tolist() == [10, 11]
    found = []
    for part in range(2):
        some = batches(records, batch_size=1, num_parts=2, part_index=part, path_imgidx=records / "x.idx")
        found.append([float(batch.label[0].asnumpy()[0]) for batch in some])
    assert found == [[0.5, 1.5, 2.5], [3.5, 4.5]]
    by_place = [
        [batch.label[0].asnumpy()[0] for batch in batches(records, batch_size=1, num_parts=3, part_index=k)] for k in range(3)
    ]
    assert [label for some in by_place for label in some] == [0.5, 1.5, 2.5, 3.5, 4.5] and all(by_place)


def test_fewer_images_than_a_batch_has_are_repeated(records):
    some = batches(records, batch_size=12)
    for _ in range(2):
        (batch,) = list(some)
        assert (batch.label[0].asnumpy() - 0.5).tolist() == [0, 1, 2, 3, 4] * 2 + [0, 1] and batch.pad == 7
        some = batches(records, batch_size=12)


def test_mixed_images_that_fill_a_batch_up_are_those_of_the_next_epoch(records):
    """One order after the other: every five images are all of them."""
    some, seen = batches(records, batch_size=3, shuffle=True), []
    for _ in range(6):
        seen += [label for batch in some for label in batch.label[0].asnumpy().tolist()]
        some.reset()
    assert all(sorted(seen[k : k + 5]) == [0.5, 1.5, 2.5, 3.5, 4.5] for k in range(0, len(seen) - 4, 5))


def test_records_are_mixed_before_each_epoch(records):
    some, again = (batches(records, batch_size=5, shuffle=True, seed=3) for _ in range(2))
    orders = []
    for _ in range(4):
        (batch,), (same,) = list(some), list(again)
        orders.append(batch.label[0].asnumpy().tolist())
        assert orders[-1] == same.label[0].asnumpy().tolist() and sorted(orders[-1]) == [0.5, 1.5, 2.5, 3.5, 4.5]
        some.reset(), again.reset()
    assert len({tuple(order) for order in orders}) > 1


def test_colours_at_random_stay_near(records):
    plain = np.concatenate([batch.data[0].asnumpy() for batch in batches(records)])
    changed = np.concatenate(
        [batch.data[0].asnumpy() for batch in batches(records, max_random_contrast=0.1, max_random_illumination=5)]
    )
    assert 0 < abs(changed - plain).max() <= 0.1 * 255 + 5 + 1e-3
    for more in ({"brightness": 0.3}, {"contrast": 0.3}, {"saturation": 0.3}, {"pca_noise": 0.1}):
        changed = np.concatenate([batch.data[0].asnumpy() for batch in batches(records, seed_aug=1, **more)])
        assert changed.shape == plain.shape and 0 < abs(changed - plain).max() < 200
    resized = batches(records, random_resized_crop=True, min_random_area=0.5, max_random_area=1, max_aspect_ratio=0.25)
    assert resized.next().data[0].shape == (2, 3, 6, 7)


def test_many_threads_make_the_same_batches(records):
    one, many = (
        [(b.data[0].asnumpy(), b.label[0].asnumpy()) for b in batches(records, preprocess_threads=n, batch_size=1)]
        for n in (1, 8)
    )
    assert all((x == y).all() for a, b in zip(one, many, strict=True) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("params, told", [
    ({"data_shape": (2, 6, 7)}, r"data_shape=\(2, 6, 7\)"), ({"batch_size": 0}, "batch_size=0"),
    ({"dtype": "float16"}, "dtype='float16'"),
    ({"data_shape": 7}, "data_shape=7"),
    ({"num_parts": 2, "part_index": 2}, "part_index=2 is none of 2 parts"),
    ({"rotate": 90}, "rotate=90; mxop's ImageRecordIter has no rotate"), ({"resise": 3}, "unknown parameter resise"),
    ({"path_imgrec": "nowhere.rec"}, "nowhere.rec"),
])  # fmt: skip
def test_bad_parameters_are_told(records, params, told):
    with pytest.raises((mx.MXNetError, FileNotFoundError), match=f"ImageRecordIter.*{told}|MXRecordIO.*{told}"):
        batches(records, **params)


@pytest.mark.parametrize("params, told", [
    ({"data_shape": (4, 6, 7)}, "record 0 of '.*x.rec' has 3 channels"),
    ({"label_width": 2}, "record 0 of '.*x.rec' has 1 labels; label_width=2"),
    ({"max_crop_size": 9, "min_crop_size": 9}, r"max_crop_size=9; an image has shape \(12, 8, 3\)"),
])  # fmt: skip
def test_records_that_do_not_fit_are_told(records, params, told):
    with pytest.raises(mx.errors.OpValueError, match=f"ImageRecordIter: .*{told}"):
        list(batches(records, **params))


def test_damaged_files_are_told(records, tmp_path):
    data = (records / "x.rec").read_bytes()
    generator = random.Random(0)
    for k in range(300):
        broken = bytearray(data)
        for _ in range(generator.randint(1, 4)):
            broken[generator.randrange(len(broken) if k % 2 else 60)] = generator.randrange(256)
        (tmp_path / "y.rec").write_bytes(bytes(broken[: generator.choice([len(data), generator.randrange(len(data))])]))
        try:
            found = list(batches(records, path_imgrec=tmp_path / "y.rec"))
        except mx.MXNetError as problem:
            assert "y.rec" in str(problem) or "there are" in str(problem) or "unpack" in str(problem)
        else:
            assert all(isinstance(batch.data[0], nd.NDArray) for batch in found)


def test_a_file_of_records_is_found_through_its_parts(tmp_path):
    """A record that has the magic word inside is cut there; only its begin is a record's."""
    writer = recordio.MXRecordIO(tmp_path / "z.rec", "w")
    magic = bytes.fromhex("0a23d7ce")
    for body in (b"1234" + magic + b"5678", b"", magic):
        writer.write(body)
    writer.close()
    reader = recordio.MXRecordIO(tmp_path / "z.rec", "r")
    assert [reader._read_at(place) for place in reader._places()] == [b"1234" + magic + b"5678", b"", magic]
