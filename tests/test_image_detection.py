"""Images with boxes: augmenters and batches, as MXNet 1.9.1 gives them of one seed, and labels that are none."""

import random

import numpy as np
import pytest

import mxop as mx
from mxop import nd
from mxop.image import detection

PIXELS = (np.arange(20 * 30 * 3) * 37 % 256).astype(np.uint8).reshape(20, 30, 3)
LABEL = [[0, 0.1, 0.2, 0.5, 0.6], [1, 0.4, 0.3, 0.9, 0.95]]


def made(step, seed):
    random.seed(seed)
    np.random.seed(seed)
    x, label = step(nd.array(PIXELS, dtype="uint8"), np.array(LABEL, np.float32))
    return x.asnumpy(), label


WIDE = ((0.5, 2), (0.1, 0.9))


@pytest.mark.parametrize("make, seed, shape, first, boxes", [
    (lambda: detection.DetHorizontalFlipAug(0.5), 1, (20, 30), [147, 184, 221], [[0.5, 0.2, 0.9, 0.6], [0.1, 0.3, 0.6, 0.95]]),
    (detection.DetRandomCropAug, 1, (19, 16), [188, 225, 6], [[0, 0.2105, 0.6875, 0.6316], [0.5, 0.3158, 1, 1]]),
    (detection.DetRandomCropAug, 4, (20, 20), [0, 37, 74], [[0.15, 0.2, 0.75, 0.6], [0.6, 0.3, 1, 0.95]]),
    (lambda: detection.DetRandomCropAug(0.5, *WIDE, 0.2), 1, (10, 7), [85, 122, 159], [[0, 0, 1, 0.8]]),
    (lambda: detection.DetRandomCropAug(0.5, *WIDE, 0.2), 4, (13, 10), [232, 13, 50], [[0.1, 0, 1, 0.5385]]),
    (detection.DetRandomPadAug, 1, (40, 36), [128, 128, 128], [[0.1667, 0.45, 0.5, 0.65], [0.4167, 0.5, 0.8333, 0.825]]),
    (detection.DetRandomPadAug, 4, (33, 39), [128] * 3, [[0.1026, 0.1818, 0.4103, 0.4242], [0.3333, 0.2424, 0.7179, 0.6364]]),
    (lambda: detection.DetRandomPadAug((0.5, 2), (1, 4), 20, (1, 2, 3)), 4, (38, 32), [1, 2, 3],
     [[0.125, 0.4211, 0.5, 0.6316], [0.4062, 0.4737, 0.875, 0.8158]]),
    (lambda: detection.DetRandomSelectAug([detection.DetRandomPadAug(), detection.DetRandomCropAug()], 0.2), 1, (20, 30),
     [0, 37, 74], [row[1:] for row in LABEL]),
    (lambda: detection.DetRandomSelectAug([detection.DetRandomPadAug(), detection.DetRandomCropAug()], 0.2), 4, (20, 23),
     [111, 148, 185], [[0.087, 0.2, 0.6087, 0.6], [0.4783, 0.3, 1, 0.95]]),
    (lambda: detection.CreateMultiRandCropAugmenter([0.1, 0.3, 0.5], area_range=[(0.1, 1.0), (0.2, 1.0), (0.3, 0.9)],
                                                    skip_prob=0.1), 4, (18, 19),
     [224, 5, 42], [[0.0526, 0.1667, 0.6842, 0.6111], [0.5263, 0.2778, 1, 1]]),
])  # fmt: skip
def test_augmenters_are_those_of_mxnet(make, seed, shape, first, boxes):
    x, label = made(make(), seed)
    assert x.shape == (*shape, 3) and x[0, 0].tolist() == first
    np.testing.assert_allclose(label[:, 1:], boxes, atol=6e-5)
    assert label.dtype == np.float32


def test_a_list_of_augmenters_is_that_of_mxnet():
    steps = detection.CreateDetAugmenter(
        (3, 12, 16), resize=24, rand_crop=0.5, rand_pad=0.5, rand_mirror=True, mean=True, std=True, brightness=0.1,
        contrast=0.1, saturation=0.1, hue=0.1, pca_noise=0.1, rand_gray=0.3,
    )  # fmt: skip
    assert len(steps) == 11 and steps[2].dumps() == '["dethorizontalflipaug", {"p": 0.5}]'
    normalize = '["colornormalizeaug", {"mean": [123.68, 116.28, 103.53], "std": [58.395, 57.12, 57.375]}]'
    assert steps[-1].dumps() == ["detborrowaug", normalize]
    random.seed(6)
    np.random.seed(6)
    x, label = nd.array(PIXELS, dtype="uint8"), np.array(LABEL, np.float32)
    for step in steps:
        x, label = step(x, label)
    assert x.shape == (12, 16, 3)
    np.testing.assert_allclose(x.asnumpy()[0, 0], [0.2101, 0.3397, 0.5495], atol=1e-4)
    np.testing.assert_allclose(x.asnumpy().sum(), 203.22281, rtol=1e-5)
    np.testing.assert_allclose(label, [[0, 0.2162, 0.3556, 0.6054, 0.6222], [1, 0, 0.4222, 0.3135, 0.8556]], atol=6e-5)


class Numbers(detection.ImageDetIter):
    """Images of one number each, which stands in place of the path."""

    def read_image(self, fname):
        return int(fname)

    def imdecode(self, s):
        return nd.full((20, 30, 3), s)


FIRST, SECOND, NONE = [0.1, 0.2, 0.5, 0.6], [0.4, 0.3, 0.9, 0.95], [-1] * 5


def listed(count=5, before=(2, 5)):
    return [[[*before, k, *FIRST, *([k + 10, *SECOND] if k % 2 else [])], str(10 * k)] for k in range(count)]


def test_batches_are_those_of_mxnet():
    random.seed(2)
    batches = Numbers(2, (3, 4, 4), imglist=listed(), shuffle=True, rand_mirror=True)
    assert batches.label_shape == (2, 5) and batches.provide_label[0] == ("label", (2, 2, 5))
    want = [([2, 3], [[[2, *FIRST], NONE], [[3, *FIRST], [13, *SECOND]]], 0),
            ([0, 4], [[[0, *FIRST], NONE], [[4, *FIRST], NONE]], 0),
            ([1, 2], [[[1, *FIRST], [11, *SECOND]], [[2, 0.5, 0.2, 0.9, 0.6], NONE]], 1)]  # fmt: skip
    for batch, (numbers, labels, pad) in zip(batches, want, strict=True):
        assert batch.data[0].asnumpy()[:, 1, 2, 3].tolist() == [10 * n for n in numbers] and batch.pad == pad
        np.testing.assert_allclose(batch.label[0].asnumpy(), labels, atol=1e-6)
    headed = Numbers(2, (3, 4, 4), imglist=listed(before=(4, 5, 640, 480))).next()
    np.testing.assert_allclose(headed.label[0].asnumpy()[1], [[1, *FIRST], [11, *SECOND]], atol=1e-6)


def test_labels_of_two_iterators_get_one_shape():
    few, many = Numbers(1, (3, 4, 4), imglist=listed(1)), Numbers(2, (3, 4, 4), imglist=listed())
    assert few.label_shape == (1, 5) and many.sync_label_shape(few) is few and few.label_shape == (2, 5)
    assert few.next().label[0].asnumpy()[0, 1].tolist() == NONE
    many.reshape((3, 8, 8), (7, 5))
    assert many.provide_data[0] == ("data", (2, 3, 8, 8)) and many.provide_label[0] == ("label", (2, 7, 5))
    for shape in ((6, 5), (7, 6), (7,)):
        with pytest.raises(mx.errors.OpValueError, match="7 objects or more, and 5 numbers"):
            many.reshape(label_shape=shape)


def test_images_without_objects_are_skipped():
    class Lost(detection.DetAugmenter):
        def __call__(self, src, label):
            return src, label if label[0, 0] else label - [9, 0, 0, 0, 0]

    batch = Numbers(3, (3, 20, 30), imglist=listed(4), aug_list=[Lost()]).next()
    assert batch.data[0].asnumpy()[:, 0, 0, 0].tolist() == [10, 20, 30]
    with pytest.raises(StopIteration):
        Numbers(3, (3, 20, 30), imglist=listed(1), aug_list=[Lost()]).next()

    class Once(detection.DetAugmenter):
        calls = 0

        def __call__(self, src, label):
            self.calls += 1
            return src, label if self.calls == 1 else label - [99, 0, 0, 0, 0]

    with pytest.raises(mx.errors.OpValueError, match="no image is left"):
        Numbers(3, (3, 20, 30), imglist=listed(2), aug_list=[Once()]).next()


@pytest.mark.parametrize("label, told", [
    ([2, 5, 0, *FIRST[:3]], "filename '0' has 6 labels, which begin with"), ([2, 5, 0, *FIRST, 1], "8 labels"),
    ([1, 5, 0, *FIRST, 0], "begin"),
    ([2, 4, 0, *FIRST, 0, 0, 0], "begin"), ([float("nan"), 5, 0, *FIRST], "begin"), ([2, 5, 0, 0.5, 0.5, 0.5, 0.9], "no box"),
    ([1e9, 5, 0, *FIRST], "begin"),
])  # fmt: skip
def test_labels_that_are_none_are_told(label, told):
    with pytest.raises(mx.errors.OpValueError, match=told):
        Numbers(1, (3, 4, 4), imglist=[[label, "0"]])


def test_bad_calls_are_told():
    with pytest.raises(mx.errors.OpValueError, match=r"objects have \[5, 6\] numbers"):
        Numbers(1, (3, 4, 4), imglist=[*listed(1), [[2, 6, 0, *FIRST, 7], "0"]])
    with pytest.raises(TypeError, match="expected an Augmenter"):
        detection.DetBorrowAug(len)
    with pytest.raises(ValueError, match="expected DetAugmenters"):
        detection.DetRandomSelectAug([len])
    with pytest.raises(AssertionError, match=r"lists of \[1, 2, 3\] elements"):
        detection.CreateMultiRandCropAugmenter([0.1, 0.2], max_attempts=[1, 2, 3])
    with pytest.raises(AssertionError, match="expected an ImageDetIter"):
        Numbers(1, (3, 4, 4), imglist=listed(1)).sync_label_shape(None)
    for kind, params in ((detection.DetRandomCropAug, {"area_range": (0.9, 0.1)}),
                         (detection.DetRandomPadAug, {"area_range": 1.0}),
                         (detection.DetRandomCropAug, {"aspect_ratio_range": 0})):  # fmt: skip
        with pytest.warns(UserWarning, match=f"{kind.__name__} does nothing"):
            step = kind(**params)
        assert (made(step, 0)[0] == PIXELS).all()


def test_boxes_are_drawn(monkeypatch):
    import sys

    class Cv2:
        FONT_HERSHEY_SIMPLEX = 0
        rectangles, texts = [], []

        @classmethod
        def rectangle(cls, pixels, *args):
            cls.rectangles.append(args)

        @classmethod
        def putText(cls, pixels, text, *args):
            cls.texts.append(text)

    batches = Numbers(1, (3, 20, 30), imglist=listed(2), mean=np.array([1.0, 2.0, 3.0]))
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(mx.errors.MissingPackageError, match="opencv-python"):
        next(batches.draw_next())
    monkeypatch.setitem(sys.modules, "cv2", Cv2)
    found = list(batches.draw_next((1, 2, 3), mean=np.array([2.0, 4.0, 6.0]), id2labels={11: "cat"}))
    assert [x[0, 0].tolist() for x in found] == [[3, 2, 1], [13, 12, 11]] and Cv2.texts == ["cat"]
    assert [args[:3] for args in Cv2.rectangles] == [((3, 4), (15, 12), (3, 2, 1))] * 2 + [((12, 6), (27, 19), (3, 2, 1))]
