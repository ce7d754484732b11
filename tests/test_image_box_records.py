"""``mx.io.ImageDetRecordIter``: labels and sums of pixels that MXNet 1.9.1 makes of the same records."""

import io
import random

import numpy as np
import pytest

import mxop as mx
from mxop import nd, recordio
from mxop.image import augmenters, box_records

SIZES = [(9, 12), (12, 8), (8, 8), (10, 16), (14, 9)]
LABELS = [
    [2, 5, 0, 0.5, 0.25, 0.75, 0.625],
    [2, 5, 0, 0, 0.25, 0.375, 0.75, 1, 0.125, 0.0625, 0.1875, 0.375],
    [3, 6, 7, 0, 0.4375, 0.03125, 0.5625, 0.4375, 9, 1, 0.25, 0.3125, 0.5, 0.625, 8],
    [2, 5, 3, 0.25, 0.5, 0.625, 0.75],
    [2, 5, 2, 0.75, 0.5, 1, 0.6875, 1, 0.6875, 0, 0.9375, 0.1875],
]
PLAIN = [15583, 16019, 16223, 15870, 16059]


def pixels(k):
    rows = np.arange(np.prod(SIZES[k]) * 3).reshape(*SIZES[k], 3)
    return ((rows * 37 + k * 53 + rows // 7 * 11) % 256).astype("uint8")


def written(path, labels, images=range(5)):
    pillow = pytest.importorskip("PIL.Image")
    writer = recordio.MXRecordIO(path, "w")
    for k, label in zip(images, labels, strict=True):
        made = io.BytesIO()
        pillow.fromarray(pixels(k)).save(made, "PNG")
        writer.write(recordio.pack((0, label, k, 0), made.getvalue()))
    writer.close()
    return path


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """A file of five records, and a list with other labels."""
    folder = tmp_path_factory.mktemp("boxes")
    (folder / "x.lst").write_text("".join(f"{k}\t2\t5\t{k}\t0.25\t0.5\t0.5\t0.75\tp{k}.png\n" for k in range(5)))
    return written(folder / "x.rec", LABELS)


def batches(records, **more):
    return mx.io.ImageDetRecordIter(**{"path_imgrec": records, "data_shape": (3, 6, 7), "batch_size": 5} | more)


@pytest.mark.parametrize("params, sums, sizes", [
    ({}, PLAIN, None), ({"resize": 11}, [15825, 16004, 16184, 15805, 16081], None),
    ({"resize": 4, "inter_method": 2}, [18237, 16046, 16237, 15675, 16067], None),
    ({"inter_method": 0, "data_shape": (3, 12, 10)}, [44748, 45748, 47019, 45296, 45976], None),
    ({"inter_method": 3}, [15926, 16041, 16242, 16014, 16192], None),
    ({"inter_method": 4}, [15814, 16008, 16268, 15497, 15936], None),
    ({"data_shape": (3, 16, 20), "inter_method": 9}, [121394, 122264, 123668, 122049, 123297], None),
    ({"data_shape": (1, 6, 7)}, [5185, 5259, 5482, 5213, 5310], None), ({"rand_mirror_prob": 1}, PLAIN, None),
    ({"resize_mode": "shrink", "data_shape": (3, 10, 10)}, [26683, 22889, 24750, 22930, 23061],
     [(7, 10), (10, 6), (8, 8), (6, 10), (10, 6)]),
    ({"resize_mode": "fit", "data_shape": (3, 20, 20)}, [113891, 99491, 154577, 91518, 92494],
     [(15, 20), (20, 13), (20, 20), (12, 20), (20, 12)]),
    ({"resize_mode": "fit", "mean_r": 5, "std_g": 2}, [11104.5, 7459.5, 11292, 8424.5, 5756.5],
     [(5, 7), (6, 4), (6, 6), (4, 7), (6, 3)]),
    ({"mean_r": 10, "mean_g": 20, "mean_b": 30, "std_r": 2, "std_g": 4, "std_b": 8, "scale": 0.5, "std_a": 0},
     [1963.5625, 2030.25, 2091.9375, 2010.5625, 2059.9375], None),
])  # fmt: skip
def test_batches_are_those_of_mxnet(records, params, sums, sizes):
    batch = batches(records, **params).next()
    assert batch.data[0].asnumpy().astype("float64").sum((1, 2, 3)).tolist() == sums
    channels, *size = params.get("data_shape", (3, 6, 7))
    flipped = [[1 - v for v in label] for label in LABELS]
    for k, row in enumerate(batch.label[0].asnumpy().tolist()):
        label = list(LABELS[k])
        if "rand_mirror_prob" in params:
            for at in range(int(label[0]), len(label), int(label[1])):
                label[at + 1], label[at + 3] = flipped[k][at + 3], flipped[k][at + 1]
        assert row == [channels, *(sizes[k] if sizes else size), len(label), *label, *[-1] * (15 - len(label))]


def test_widths_of_labels(records):
    padded = batches(records, label_pad_width=20, label_pad_value=-2.5)
    assert padded.provide_label[0] == ("softmax_label", (5, 24)) and padded.provide_data[0] == ("data", (5, 3, 6, 7))
    assert padded.next().label[0].asnumpy()[0, 4:].tolist() == LABELS[0] + [-2.5] * 13
    assert batches(records, label_pad_width=-1).provide_label[0].shape == (5, 19)
    listed = batches(records, path_imglist=records.parent / "x.lst", label_width=7).next().label[0].asnumpy()
    assert listed.tolist() == [[3, 6, 7, 7, 2, 5, k, 0.25, 0.5, 0.5, 0.75] for k in range(5)]


def test_parameters_may_be_strings(records):
    given = {"batch_size": "5", "data_shape": "(3, 10, 10)", "label_pad_width": "20", "resize_mode": "shrink", "scale": "0.5"}
    batch = batches(records, **given).next()
    assert batch.data[0].asnumpy().sum((1, 2, 3)).tolist() == [13341.5, 11444.5, 12375, 11465, 11530.5]
    assert batch.label[0].shape == (5, 24)
    with pytest.raises(mx.errors.OpValueError, match="ImageDetRecordIter: batch_size='many'"):
        batches(records, batch_size="many")


def test_last_batch_parts_and_order(records):
    some = batches(records, batch_size=3)
    found = [(batch.label[0].asnumpy()[:, 3].tolist(), batch.pad) for batch in some]
    assert found == [([7, 12, 15], 0), ([7, 12, 7], 1)]
    parts = [[label for b in batches(records, batch_size=1, num_parts=2, part_index=k) for label in b.label[0].asnumpy()[:, 3]]
             for k in range(2)]  # fmt: skip
    assert parts == [[7, 12], [15, 7, 12]]
    mixed = [b.label[0].asnumpy()[0, 3] for b in batches(records, batch_size=1, shuffle=True, seed=1)]
    assert sorted(mixed) == [7, 7, 12, 12, 15] and isinstance(some, mx.io.MXDataIter)


@pytest.mark.parametrize("levels, found", [
    ((-1, 0, 0), [13643, 14007, 13757]), ((1, 0, 0), [13395, 13676, 13538]), ((0, 1, 0), [13623, 13950, 13758]),
    ((0, -1, 0), [13411, 13737, 13535]), ((0, 0, 1), [13524, 13847, 13640]), ((0, 0, -1), [13518, 13849, 13641]),
    ((0, 0, 0), [13496, 13828, 13637]),
])  # fmt: skip
def test_colours_are_those_of_opencv(levels, found):
    changed = augmenters.shifted_colours(nd.array(pixels(0), dtype="uint8"), *levels)
    assert changed.asnumpy().astype(int).sum((0, 1)).tolist() == found


def test_colours_at_random(records):
    plain = batches(records).next().data[0].asnumpy()
    for name, limit in (("hue", 30), ("saturation", 40), ("illumination", 40), ("contrast", 0.5)):
        given = {f"random_{name}_prob": 1, f"max_random_{name}": limit}
        found = batches(records, **given).next().data[0].asnumpy()
        assert found.min() >= 0 and found.max() <= 255 and 0 < abs(found - plain).mean() < 100
        assert (batches(records, **given | {f"random_{name}_prob": 0}).next().data[0].asnumpy() == plain).all()
    hues = mx.io.ImageRecordIter(path_imgrec=records, data_shape=(3, 8, 8), batch_size=1, label_width=7, random_h=90)
    assert hues.next().data[0].shape == (1, 3, 8, 8)


def test_larger_images_move_boxes(records):
    """Of the size of a box follows how much larger the image is, and of that how much is border."""
    random.seed(0)
    batch = batches(records, rand_pad_prob=1, max_pad_scale=3, fill_value=300, data_shape=(3, 90, 120), inter_method=0).next()
    scales = []
    for k, (row, image) in enumerate(zip(batch.label[0].asnumpy(), batch.data[0].asnumpy(), strict=True)):
        begin, width = LABELS[k][:2]
        before = np.array(LABELS[k][begin:], "float32").reshape(-1, width)
        after = row[4 + begin : 4 + len(LABELS[k])].reshape(-1, width)
        found = (before[:, 3:5] - before[:, 1:3]) / (after[:, 3:5] - after[:, 1:3])
        np.testing.assert_allclose(found, found[0, 0], rtol=1e-4)
        np.testing.assert_array_equal(after[:, [0, *range(5, width)]], before[:, [0, *range(5, width)]])
        scales.append(found[0, 0])
        assert abs((image == 255).all(axis=0).mean() - (1 - 1 / scales[-1] ** 2)) < 0.15
    assert min(scales) > 1 and 2 < max(scales) < 3


PLACES = nd.array(np.stack([*np.mgrid[:200, :250], np.zeros((200, 250))], axis=2), dtype="uint8")
OBJECTS = np.array([[0, 0.1, 0.2, 0.5, 0.6], [1, 0.4, 0.3, 0.9, 0.95], [2, 0.05, 0.7, 0.2, 0.9]], "float32")


@pytest.mark.parametrize("scales, ratios, overlaps, samples, covered, emitted", [
    ((0.4, 0.9), (1, 1), (0, 1), (0, 1), (0, 1), None), ((0.2, 1), (0.5, 2), (0.3, 1), (0, 1), (0, 1), None),
    ((0.2, 1), (0.5, 2), (0, 1), (0.4, 0.8), (0, 1), 0.5), ((0.1, 1), (0.5, 2), (0, 1), (0, 1), (1, 1), 0.1),
])  # fmt: skip
def test_parts_hold_what_they_must(scales, ratios, overlaps, samples, covered, emitted):
    """Each pixel says where it was; parts are cut to whole pixels, so shares are right to within some."""
    random.seed(1)
    size, drawn = np.array([250, 200]), 0
    for _ in range(200):
        part = box_records._cropped(emitted, 50, scales, ratios, overlaps, samples, covered, PLACES, OBJECTS)
        if part is None:
            continue
        drawn += 1
        places = part[0].asnumpy().astype(int)
        begin, end = places[0, 0, 1::-1] / size, (places[-1, -1, 1::-1] + 1) / size
        w, h = end - begin
        assert scales[0] - 0.02 < (w * h) ** 0.5 <= scales[1] and ratios[0] * 0.95 < 1.25 * w / h < ratios[1] * 1.05
        low, high = OBJECTS[:, 1:3], OBJECTS[:, 3:5]
        common = (np.minimum(high, end) - np.maximum(low, begin)).clip(0).prod(axis=1)
        areas, middle = (high - low).prod(axis=1), (low + high) / 2
        inside = np.minimum(middle - begin, end - middle).min(axis=1) if emitted is None else common / areas - emitted
        after = {int(row[0]): row[1:] for row in part[1]}
        for kind in range(3):
            assert (kind in after) == (inside[kind] > 0) or abs(inside[kind]) < 0.08
            if kind in after:
                box = np.clip(np.concatenate([low[kind], high[kind]]), [*begin, *begin], [*end, *end])
                np.testing.assert_allclose(after[kind] * [w, h, w, h] + [*begin, *begin], box, atol=0.012)
        shares = common / (areas + w * h - common), common / w / h, common / areas
        fits = [(share > least - 0.08) & (share < most + 0.08)
                for (least, most), share in zip((overlaps, samples, covered), shares, strict=True)]  # fmt: skip
        assert np.all(fits, axis=0).any()
    assert drawn > 100


def test_parts_that_cannot_be_leave_images_alone(records):
    impossible = {"min_crop_overlaps": 0.999, "max_crop_scales": 0.2, "max_crop_trials": 3}
    for params in (impossible, {"max_crop_trials": 0}, {"num_crop_sampler": 0}):
        found = batches(records, rand_crop_prob=1, **params).next()
        assert found.data[0].asnumpy().astype("float64").sum((1, 2, 3)).tolist() == PLAIN
    some = batches(records, rand_crop_prob=1, num_crop_sampler=2, min_crop_scales=(0.3, 0.5)).next()
    assert some.data[0].asnumpy().sum() != sum(PLAIN)


@pytest.mark.parametrize("params, told", [
    ({"label_width": 7}, "labels of 7 to 15 numbers; label_width=7"), ({"label_pad_width": 14}, "label_pad_width=14"),
    ({"dtype": "uint8"}, "dtype='uint8'"), ({"data_shape": (2, 6, 7)}, r"data_shape=\(2, 6, 7\)"),
    ({"batch_size": 0}, "batch_size=0"),
    ({"crop_emit_mode": "middle"}, "crop_emit_mode='middle'"), ({"resize_mode": "fill"}, "resize_mode='fill'"),
    ({"min_crop_scales": (0.1, 0.2, 0.3), "num_crop_sampler": 2}, r"min_crop_scales=\(0.1, 0.2, 0.3\); num_crop_sampler=2"),
    ({"min_crop_scales": 0.9, "max_crop_scales": 0.5}, "min_crop_scales=0.9, max_crop_scales=0.5"),
    ({"max_crop_scales": 1.5}, "max_crop_scales=1.5"), ({"mean_img": "mean.bin"}, "has no mean_img"),
    ({"rand_mirror": True}, "unknown parameter rand_mirror"),
    ({"num_parts": 2, "part_index": 2}, "part_index=2 is none of 2 parts"),
])  # fmt: skip
def test_bad_parameters_are_told(records, params, told):
    with pytest.raises((mx.errors.OpValueError, mx.errors.OpTypeError), match=f"ImageDetRecordIter.*{told}"):
        batches(records, **params)


@pytest.mark.parametrize("label, told", [
    (1.0, "has 1 labels"), ([2, 5, 0, 0.1, 0.2, 0.3], "has 6 labels"), ([1, 5, 0, 0.1, 0.2, 0.3, 0.4], "begin with .1.0, 5.0."),
    ([2, 4, 0, 0.1, 0.2, 0.3, 0.4], "begin with .2.0, 4.0."), ([2, 5, 0, 0.1, 0.2, 0.3, 0.4, 1], "has 8 labels"),
    ([9, 5, 0, 0.1, 0.2, 0.3, 0.4], "begin with .9.0"), ([float("nan"), 5, 0, 0.1, 0.2, 0.3, 0.4], "begin with .nan"),
    ([2, 5, 0, 0.3, 0.2, 0.3, 0.4], "boxes without a size"), ([2, 5, 0, 0.1, 0.2, float("nan"), 0.4], "boxes without a size"),
    ([2, 5, 0, 0.1, 0.2, 0.3, float("inf")], "boxes without a size"),
])  # fmt: skip
def test_labels_that_are_none_are_told(tmp_path, label, told):
    path = written(tmp_path / "y.rec", [LABELS[0], label], range(2))
    with pytest.raises(mx.errors.OpValueError, match=f"ImageDetRecordIter: record 1 of .*y.rec.*{told}"):
        batches(path)


def test_damaged_files_are_told(records, tmp_path):
    data, generator = records.read_bytes(), random.Random(0)
    ended = 0
    for k in range(300):
        broken = bytearray(data)
        for _ in range(generator.randint(1, 4)):
            broken[generator.randrange(len(broken) if k % 2 else 120)] = generator.randrange(256)
        (tmp_path / "y.rec").write_bytes(bytes(broken[: generator.choice([len(data), generator.randrange(len(data))])]))
        try:
            found = list(batches(tmp_path / "y.rec", rand_crop_prob=1, rand_pad_prob=0.5, max_pad_scale=2))
        except mx.MXNetError as problem:
            ended += 1
            assert "y.rec" in str(problem) or "there are" in str(problem) or "unpack" in str(problem)
        else:
            assert all(isinstance(batch.data[0], nd.NDArray) for batch in found)
    assert 100 < ended < 300
