"""Images from files, in parts, changed and in batches: what MXNet 1.9.1 gives, of one seed; what is damaged or too large."""

import base64
import io
import random
import struct
import sys
import zlib

import numpy as np
import pytest

import mxop as mx
from mxop import image, nd, recordio

PIXELS = (np.arange(20 * 30 * 3) * 37 % 256).astype(np.uint8).reshape(20, 30, 3)
#: A JPEG of 8 x 6 pixels.
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAoHBwgHBgoICAgLCgoLDhgQDg0NDh0VFhEYIx8lJCIfIiEmKzcvJik0KSEiMEExNDk7Pj4+JS5ESUM8SDc9P"
    "jv/2wBDAQoLCw4NDhwQEBw7KCIoOzs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozv/wAARCAAGAAgDAREAAhEBAxEB"
    "/8QAFAABAAAAAAAAAAAAAAAAAAAAAv/EABoQAAAHAAAAAAAAAAAAAAAAAAAEBQYhMpH/xAAVAQEBAAAAAAAAAAAAAAAAAAAEBf/EABcRAAMBAAAAAAAA"
    "AAAAAAAAAAADBSH/2gAMAwEAAhEDEQA/AAmNEtFcFWrYZoSJVZh//9k="
)
ROW = [
    [5, 79, 240],
    [28, 80, 225],
    [61, 79, 205],
    [93, 79, 192],
    [121, 79, 179],
    [152, 80, 166],
    [186, 80, 146],
    [210, 79, 131],
]


def pixels(dtype="uint8"):
    return nd.array(PIXELS, dtype=dtype)


def png(array, kind, depth=8, size=None):
    """Return a PNG: kind 0 is grey, 2 colours, 4 grey and transparency, 6 colours and transparency."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    height, width = size or array.shape[:2]
    rows = b"".join(b"\0" + row.astype(">u2" if depth == 16 else "u1").tobytes() for row in array)
    head = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.fixture
def pillow():
    return pytest.importorskip("PIL.Image")


# ---- decoding -------------------------------------------------------------------------------------------------------------
def test_jpegs_have_the_pixels_of_mxnet(pillow, tmp_path):
    (tmp_path / "x.jpg").write_bytes(JPEG)
    x = image.imread(tmp_path / "x.jpg")
    assert x.dtype == np.uint8 and x.shape == (6, 8, 3) and x.asnumpy()[2].tolist() == ROW and x.asnumpy().sum() == 18350
    assert image.imdecode(JPEG, flag=0).asnumpy()[2, :, 0].tolist() == [75, 81, 88, 96, 103, 111, 119, 124]
    for buf in (JPEG, bytearray(JPEG), np.frombuffer(JPEG, np.uint8), nd.array(np.frombuffer(JPEG, np.uint8), dtype="uint8")):
        assert (image.imdecode(buf, to_rgb=0).asnumpy() == x.asnumpy()[:, :, ::-1]).all()
    out = nd.zeros((6, 8, 3), dtype="uint8")
    assert image.imdecode(JPEG, 1, True, out=out) is out and (out.asnumpy() == x.asnumpy()).all()
    assert (nd._internal._cvimdecode(JPEG).asnumpy() == nd._internal._cvimread(str(tmp_path / "x.jpg")).asnumpy()).all()


def test_channels_and_depths(pillow):
    """Transparency is left out, of 16 bits the upper eight stay, and light is cut to whole numbers, as in MXNet."""
    grey, colours = PIXELS[:, :, :1], PIXELS
    wide = np.concatenate([colours, grey], axis=2)
    for data, want in [
        (png(grey, 0), grey), (png(wide[:, :, 2:], 4), colours[:, :, 2:]), (png(colours, 2), colours), (png(wide, 6), colours),
        (png(grey.astype(int) * 256 + 77, 0, 16), grey), (png(colours.astype(int) * 256 + 200, 2, 16), colours),
    ]:  # fmt: skip
        found = image.imdecode(data).asnumpy()
        assert found.dtype == np.uint8 and (found == want).all() and found.shape == (20, 30, 3)
        light = image.imdecode(data, flag=0).asnumpy()
        weights = [1 << 15] if want.shape[2] == 1 else [9797, 19234, 3737]
        assert light.shape == (20, 30, 1) and (light[:, :, 0] == want @ np.array(weights) >> 15).all()


def test_what_the_camera_held_up_is_not_looked_at(pillow):
    """As in MXNet: the sixth orientation means a turn by 90 degrees."""
    exif, made = pillow.Exif(), io.BytesIO()
    exif[0x112] = 6
    pillow.fromarray(PIXELS).save(made, "JPEG", exif=exif)
    assert image.imdecode(made.getvalue()).shape == (20, 30, 3)


@pytest.mark.filterwarnings("ignore:Image size")  # Pillow's limit is the same
@pytest.mark.parametrize("data, told", [
    (b"", "there are no bytes"), (b"hello, no image", "these 15 bytes are no image that Pillow knows"),
    (JPEG[:200], "no whole image"), (png(PIXELS, 2)[:200], "no whole image"), (png(PIXELS, 2)[:40], "these 40 bytes are no"),
    (png(PIXELS[:2], 2, size=(100000, 100000)), "bomb"), (png(PIXELS[:2], 2, size=(9900, 9100)), "MXOP_MAX_DENSE"),
    (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "no image that Pillow knows"),
])  # fmt: skip
def test_what_is_no_image_is_told(pillow, tmp_path, data, told):
    with pytest.raises(mx.errors.OpValueError, match=rf"^imdecode: .*({told})"):
        image.imdecode(data)
    (tmp_path / "bad.jpg").write_bytes(data)
    with pytest.raises(mx.errors.OpValueError, match=rf"^imread: '.*bad\.jpg': .*({told})"):
        image.imread(tmp_path / "bad.jpg")


def test_larger_images_are_allowed_on_request(pillow, monkeypatch):
    blank = png(np.zeros((400, 400), np.uint8), 0)
    monkeypatch.setenv("MXOP_MAX_DENSE_BYTES", "1000")
    with pytest.raises(mx.errors.OpValueError, match="image of 400 x 400 pixels unpacks to more than"):
        image.imdecode(blank)
    monkeypatch.setenv("MXOP_MAX_DENSE_BYTES", "480000")
    assert image.imdecode(blank).shape == (400, 400, 3)


def test_bad_calls_are_told(pillow, tmp_path):
    with pytest.raises(TypeError, match="buf is a str; expected bytes"):
        image.imdecode("text")
    with pytest.raises(TypeError, match="array of float32"):
        image.imdecode(nd.zeros(3))
    with pytest.raises(mx.errors.OpValueError, match="flag=-1"):
        image.imdecode(JPEG, flag=-1)
    with pytest.raises(FileNotFoundError, match=r"imread: '.*none\.png'"):
        image.imread(tmp_path / "none.png")


def damaged(data, r):
    """Return bytes with some of them changed, left out, doubled or cut off."""
    data = bytearray(data)
    for _ in range(r.integers(1, 6)):
        at, kind = int(r.integers(len(data) or 1)), r.integers(5)
        if kind == 0:
            data[at : at + 1] = bytes([int(r.integers(256))])
        elif kind == 1:
            data[at : at + 4] = struct.pack(">I", int(r.integers(2**32)))
        elif kind == 2:
            del data[at : at + int(r.integers(1, 20))]
        elif kind == 3:
            data[at:at] = data[at : at + int(r.integers(1, 20))]
        else:
            del data[at + 1 :]
    return bytes(data)


@pytest.mark.filterwarnings("ignore")  # of Pillow
def test_damaged_images_are_images_or_told(pillow, count=300):
    r, forms = np.random.default_rng(0), []
    for name in ("JPEG", "PNG", "BMP", "GIF", "TIFF", "WEBP", "PPM"):
        made = io.BytesIO()
        pillow.fromarray(PIXELS).save(made, name)
        forms.append(made.getvalue())
    found = {"image": 0, "told": 0}
    for k in range(count):
        try:
            x = image.imdecode(damaged(forms[k % len(forms)], r), flag=int(r.integers(2)))
            assert x.dtype == np.uint8 and x.ndim == 3 and x.shape[2] in (1, 3)
            found["image"] += 1
        except mx.errors.OpValueError as problem:
            assert str(problem).startswith("imdecode: ")
            found["told"] += 1
    assert min(found.values()) > count // 10


def test_without_pillow_and_opencv_it_is_told_what_to_install(monkeypatch):
    for name in ("PIL", "cv2"):
        monkeypatch.setitem(sys.modules, name, None)
    for call in (lambda: image.imdecode(JPEG), lambda: recordio.pack_img((0, 1.0, 2, 0), PIXELS)):
        with pytest.raises(mx.errors.MissingPackageError, match=r"Pillow or OpenCV: pip install \"mxop-ndarray\[image\]\""):
            call()
    assert image.imresize(pixels(), 4, 5).shape == (5, 4, 3)


def test_opencv_is_used_where_it_is_alone(monkeypatch):
    class Cv2:
        IMREAD_COLOR, IMREAD_GRAYSCALE, IMREAD_UNCHANGED, IMREAD_IGNORE_ORIENTATION = 1, 0, -1, 128
        error = type("error", (Exception,), {})

        @staticmethod
        def imdecode(data, how):
            if data[0] == 1:
                raise Cv2.error("damaged")
            return {2: None, 3: PIXELS if how == 129 else PIXELS[:, :, 0]}[data[0]]

    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "cv2", Cv2)
    assert (image.imdecode(b"\3").asnumpy() == PIXELS[:, :, ::-1]).all()
    assert (image.imdecode(b"\3", to_rgb=False).asnumpy() == PIXELS).all()
    assert (image.imdecode(b"\3", flag=0).asnumpy() == PIXELS[:, :, :1]).all()
    for data, told in ((b"\1", "OpenCV cannot read these 1 bytes: damaged"), (b"\2", "no image that OpenCV knows")):
        with pytest.raises(mx.errors.OpValueError, match=told):
            image.imdecode(data)


def test_images_in_records(pillow, monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    header = recordio.IRHeader(0, 3.0, 7, 0)
    for given in (PIXELS, PIXELS[:, :, 0]):
        found, x = recordio.unpack_img(recordio.pack_img(header, given, img_fmt=".png"))
        assert found == header and (x == given).all()
        even = np.full_like(given, 90)
        found, x = recordio.unpack_img(recordio.pack_img(header, even, quality=100))
        assert x.shape == given.shape and abs(x.astype(int) - even).max() < 2
    record = recordio.pack_img(header, PIXELS, img_fmt=".png")
    assert recordio.unpack_img(record, 0)[1].shape == (20, 30) and recordio.unpack_img(record, 1)[1].shape == (20, 30, 3)
    with pytest.raises(mx.errors.OpValueError, match="record 7: these 3 bytes are no image"):
        recordio.unpack_img(recordio.pack(header, b"abc"))
    with pytest.raises(mx.errors.OpValueError, match=r"pack_img: pixels of shape \(2, 2, 7\)"):
        recordio.pack_img(header, np.zeros((2, 2, 7)))


# ---- sizes and parts ------------------------------------------------------------------------------------------------------
def test_parts_at_random_are_those_of_mxnet():
    random.seed(1)
    part, place = image.random_crop(pixels(), (12, 8))
    assert place == (4, 9, 12, 8) and part.asnumpy()[0, 0].tolist() == [206, 243, 24]
    random.seed(1)
    part, place = image.random_crop(pixels(), (40, 10))
    assert place == (0, 9, 30, 7) and part.shape == (10, 40, 3) and part.asnumpy()[3, 3].tolist() == [236, 25, 65]
    random.seed(1)
    part, place = image.random_size_crop(pixels(), (12, 8), (0.2, 0.5), (0.75, 1.5))
    assert place == (2, 4, 14, 10) and part.asnumpy()[3, 3].tolist() == [129, 166, 222]


def test_parts_and_sizes():
    part, place = image.center_crop(pixels(), (11, 9))
    assert place == (9, 5, 11, 9) and (part.asnumpy() == PIXELS[5:14, 9:20]).all()
    part[:] = 0  # no view
    short = image.resize_short(pixels(), 7)
    assert short.shape == (7, 10, 3) and short.asnumpy()[2, 3].tolist() == [99, 136, 173]
    assert image.resize_short(pixels().transpose((1, 0, 2)), 7).shape == (10, 7, 3)
    assert image.fixed_crop(pixels(), 1, 2, 10, 9, (5, 4), interp=9).shape == (4, 5, 3)
    small, large = image.imresize(pixels(), 10, 10, 9), image.imresize(pixels(), 40, 40, 9)
    assert (small.asnumpy() == image.imresize(pixels(), 10, 10, 3).asnumpy()).all()
    assert (large.asnumpy() == image.imresize(pixels(), 40, 40, 2).asnumpy()).all()
    with pytest.warns(DeprecationWarning, match="use `area`"):
        image.random_size_crop(pixels(), (2, 2), None, (1, 1), min_area=0.5)
    with pytest.raises(AssertionError, match="no parameter 'zone'"):
        image.random_size_crop(pixels(), (2, 2), 0.5, (1, 1), zone=1)


@pytest.mark.parametrize("call, told", [
    (lambda: image.imresize(pixels(), 4, 4, interp=5), "interp=5"), (lambda: image.imresize(PIXELS, 4, 4), "src is a ndarray"),
    (lambda: image.center_crop(nd.zeros((3, 4)), (2, 2)), "center_crop: src has shape"),
    (lambda: image.imresize(pixels(), 0, 4), "w=0, h=4"), (lambda: image.resize_short(nd.zeros((1, 900, 3)), 0), "w=0, h=0"),
    (lambda: image.copyMakeBorder(pixels(), -1, 0, 0, 0), "top=-1"), (lambda: image.CreateAugmenter((3, 4)), "data_shape"),
    (lambda: image.CreateAugmenter((3, 4, 4), rand_resize=True), "rand_crop=True"),
    (lambda: image.CreateAugmenter((3, 4, 4), mean=[1, 2, 3]), "mean is a list"),
])  # fmt: skip
def test_bad_parameters_are_told(call, told):
    with pytest.raises(mx.MXNetError, match=told):
        call()


# ---- rotations -----------------------------------------------------------------------------------------------------------
TURNED = [
    ({}, [0.3797, 0.6564, 0.664, 0.2057, 0.4824, 0.759, 0.3007, 0.3083, 0.585]),
    ({"zoom_in": True}, [0.7529, 0.6528, 0.2141, 0.299, 0.4824, 0.6657, 0.7506, 0.312, 0.2118]),
    ({"zoom_out": True}, [0, 0.234, 0.6514, 0.2973, 0.4824, 0.6675, 0.3133, 0.7307, 0]),
]


def test_rotations_are_those_of_mxnet():
    x = nd.array((np.arange(2 * 3 * 7 * 9) * 37 % 256).reshape(2, 3, 7, 9) / 255.0)
    for params, row in TURNED:
        found = image.imrotate(x[0], 30, **params)
        np.testing.assert_allclose(found.asnumpy()[0, 3], row, atol=6e-5)
        both = image.imrotate(x, nd.array([30, 10]), **params).asnumpy()
        np.testing.assert_allclose(both[0], found.asnumpy(), atol=1e-6)
        np.testing.assert_allclose(both[1], image.imrotate(x[1], 10, **params).asnumpy(), atol=1e-6)
    np.random.seed(3)
    row = [0.5348, 0.7727, 0.6015, 0.2445, 0.4824, 0.7202, 0.3632, 0.192, 0.4299]
    np.testing.assert_allclose(image.random_rotate(x, (-30, 60)).asnumpy()[0, 0, 3], row, atol=6e-5)
    row = [0.2074, 0.3948, 0.5299, 0.6649, 0.8, 0.8596, 0.2111, 0.3658, 0.1956]
    np.testing.assert_allclose(image.random_rotate(x[1], (-30, 60), zoom_out=True).asnumpy()[0, 3], row, atol=6e-5)


@pytest.mark.parametrize("args, told", [
    ((nd.zeros((3, 2, 2)), 5, True, True), "cannot both be True"),
    ((nd.zeros((3, 2, 2), dtype="uint8"), 5), "expected an NDArray"),
    ((nd.zeros((2, 2)), 5), "src has shape"), ((nd.zeros((3, 2, 2)), nd.zeros(1)), "is a number"),
    ((nd.zeros((2, 3, 2, 2)), nd.zeros(3)), "3 angles for 2 images"),
])  # fmt: skip
def test_bad_rotations_are_told(args, told):
    with pytest.raises(mx.MXNetError, match=told):
        image.imrotate(*args)


# ---- augmenters -----------------------------------------------------------------------------------------------------------
VECTORS = [[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]]


@pytest.mark.parametrize("make, dumped, want", [
    (lambda: image.BrightnessJitterAug(0.3), '["brightnessjitteraug", {"brightness": 0.3}]',
     [1.686, 32.868, 64.051, 95.234, 126.417, 157.6]),
    (lambda: image.ContrastJitterAug(0.3), '["contrastjitteraug", {"contrast": 0.3}]',
     [15.31, 46.492, 77.675, 108.858, 140.041, 171.224]),
    (lambda: image.SaturationJitterAug(0.3), '["saturationjitteraug", {"saturation": 0.3}]',
     [6.741, 37.924, 69.107, 117.741, 148.924, 180.107]),
    (lambda: image.HueJitterAug(0.3), '["huejitteraug", {"hue": 0.3}]', [17.267, 27.318, 96.156, 128.217, 138.404, 206.849]),
    (lambda: image.ColorJitterAug(0.1, 0.2, 0.3), ["colorjitteraug", [
        '["contrastjitteraug", {"contrast": 0.2}]', '["saturationjitteraug", {"saturation": 0.3}]',
        '["brightnessjitteraug", {"brightness": 0.1}]']], [4.737, 42.937, 81.136, 112.609, 150.808, 189.008]),
    (lambda: image.LightingAug(0.1, np.array([55.46, 4.794, 1.148]), np.array(VECTORS)),
     '["lightingaug", {"alphastd": 0.1, "eigval": [55.46, 4.794, 1.148], "eigvec": [[-0.5675, 0.7192, 0.4009], '
     '[-0.5808, -0.0045, -0.814], [-0.5836, -0.6948, 0.4203]]}]', [-3.475, 33.229, 70.07, 107.526, 144.229, 181.07]),
    (lambda: image.RandomGrayAug(0.9), '["randomgrayaug", {"p": 0.9}]', [33.82, 33.82, 33.82, 144.82, 144.82, 144.82]),
    (lambda: image.HorizontalFlipAug(0.9), '["horizontalflipaug", {"p": 0.9}]', [113, 150, 187, 2, 39, 76]),
    (lambda: image.ColorNormalizeAug(nd.array([1, 2, 3]), nd.array([4, 5, 6])),
     '["colornormalizeaug", {"mean": [1.0, 2.0, 3.0], "std": [4.0, 5.0, 6.0]}]', [0.25, 7.4, 12.167, 28, 29.6, 30.667]),
])  # fmt: skip
def test_augmenters_are_those_of_mxnet(make, dumped, want):
    augmenter = make()
    random.seed(3)
    np.random.seed(3)
    found = augmenter(pixels("float32")[:2, :2].copy()).asnumpy()[1].ravel()
    np.testing.assert_allclose(found, want, atol=6e-4)
    assert augmenter.dumps() == dumped


def test_a_list_of_augmenters_is_that_of_mxnet():
    steps = image.CreateAugmenter(
        (3, 8, 10), resize=12, rand_crop=True, rand_resize=True, rand_mirror=True, mean=True, std=True, brightness=0.1,
        contrast=0.1, saturation=0.1, hue=0.1, pca_noise=0.05, rand_gray=0.2, inter_method=9,
    )  # fmt: skip
    assert [type(step).__name__.removesuffix("Aug") for step in steps] == [
        "Resize", "RandomSizedCrop", "HorizontalFlip", "Cast", "ColorJitter", "HueJitter", "Lighting", "RandomGray",
        "ColorNormalize",
    ]  # fmt: skip
    random.seed(5)
    np.random.seed(5)
    found = image.SequentialAug(steps)(pixels()).asnumpy()
    assert found.shape == (8, 10, 3)
    np.testing.assert_allclose(found[0, :2], [[0.8008, -0.3591, -0.2311], [-0.1233, 0.674, 0.2946]], atol=1e-4)
    np.testing.assert_allclose(found.sum(), 58.526127, rtol=1e-5)


# ---- batches --------------------------------------------------------------------------------------------------------------
class Numbers(image.ImageIter):
    """Images of one number each, which stands in place of the path."""

    def read_image(self, fname):
        return int(fname)

    def imdecode(self, s):
        return nd.full((4, 4, 3), s)


@pytest.mark.parametrize("how, epochs", [
    ("pad", [[(2, 3, 1), (4, 5, 0), (6, 2, 3)], [(3, 2, 4), (5, 1, 6), (0, 3, 2)], [(6, 4, 5), (2, 0, 3), (1, 6, 4)]]),
    ("discard", [[(2, 3, 1), (4, 5, 0)], [(3, 2, 4), (5, 1, 6)], [(6, 4, 5), (2, 0, 3)]]),
    ("roll_over", [[(2, 3, 1), (4, 5, 0)], [(6, 3, 2), (4, 5, 1)], [(6, 0, 6), (4, 5, 2), (0, 3, 1)]]),
])  # fmt: skip
def test_the_last_images_go_where_mxnet_has_them(how, epochs):
    random.seed(2)
    batches = Numbers(3, (3, 2, 2), imglist=[[k, str(10 * k)] for k in range(7)], last_batch_handle=how, shuffle=True)
    for want in epochs:
        found = list(batches)
        assert [tuple(b.label[0].asnumpy().astype(int).tolist()) for b in found] == want
        assert all((b.data[0].asnumpy()[:, 1, 0, 1] == 10 * b.label[0].asnumpy()).all() for b in found)
        batches.reset()
    batches.hard_reset()
    assert len(list(batches)) == (2 if how != "pad" else 3)


def test_fewer_images_than_a_batch_has_are_repeated():
    batch = Numbers(5, (3, 2, 2), imglist=[[0, "5"], [1, "6"]]).next()
    assert batch.label[0].asnumpy().tolist() == [0, 1, 0, 1, 0] and batch.pad == 3


@pytest.fixture
def files(pillow, tmp_path):
    """A folder of PNGs of one grey level each, a list of them, and a file of records with its index."""
    writer = recordio.MXIndexedRecordIO(tmp_path / "x.idx", tmp_path / "x.rec", "w")
    lines = []
    for k in range(6):
        data = png(np.full((10, 12, 3), 10 * k), 2)
        (tmp_path / f"{k}.png").write_bytes(data)
        writer.write_idx(k, recordio.pack((0, k + 0.5, k, 0), data))
        lines.append(f"{k}\t{k}.25\t{k}.png\n")
    writer.close()
    (tmp_path / "x.lst").write_text("".join(lines))
    return tmp_path


def told_of(batches):
    return [(b.label[0].asnumpy().ravel().tolist(), b.data[0].asnumpy()[:, 0, 0, 0].tolist(), b.pad) for b in batches]


def test_lists_and_records(files):
    levels, root = [([0, 10, 20, 30], 0), ([40, 50, 0, 10], 2)], {"path_root": files}
    for more, last in [
        ({"path_imglist": files / "x.lst", **root}, 0.25), ({"path_imgrec": files / "x.rec"}, 0.5),
        ({"path_imgrec": files / "x.rec", "path_imgidx": files / "x.idx"}, 0.5),
        ({"path_imgrec": files / "x.rec", "path_imgidx": files / "x.idx", "path_imglist": files / "x.lst"}, 0.25),
        ({"imglist": [[k + 0.75, f"{k}.png"] for k in range(6)], **root}, 0.75),
    ]:  # fmt: skip
        batches = image.ImageIter(4, (3, 8, 8), **more)
        assert batches.provide_data[0] == ("data", (4, 3, 8, 8)) and batches.provide_label[0] == ("softmax_label", (4,))
        for _ in range(2):
            assert told_of(batches) == [([v / 10 + last for v in level], level, pad) for level, pad in levels]
            batches.reset()
    part = image.ImageIter(3, (3, 8, 8), path_imgrec=files / "x.rec", path_imgidx=files / "x.idx", num_parts=2, part_index=1)
    assert [row[1] for row in told_of(part)] == [[30, 40, 50]]
    two = image.ImageIter(2, (3, 8, 8), 2, imglist=[[k, -k, f"{k}.png"] for k in range(2)], path_root=files, data_name="d")
    assert two.next().label[0].asnumpy().tolist() == [[0, 0], [1, -1]] and two.provide_data[0].name == "d"


def test_broken_files_are_told(files):
    (files / "2.png").write_bytes(b"text")
    batches = image.ImageIter(3, (3, 8, 8), path_imglist=files / "x.lst", path_root=files)
    with pytest.raises(RuntimeError, match=r"ImageIter: broken image, filename '2.png': imdecode: these 4 bytes"):
        batches.next()
    (files / "2.png").unlink()
    with pytest.raises(FileNotFoundError, match=r"ImageIter: '.*2\.png'"):
        image.ImageIter(3, (3, 8, 8), path_imglist=files / "x.lst", path_root=files).next()
    for line in ("x\t1\t1.png", "1", "1\tone\t1.png"):
        (files / "x.lst").write_text("0\t0\t0.png\n" + line)
        with pytest.raises(mx.errors.OpValueError, match=r"x\.lst', line 2: expected number, labels and path"):
            image.ImageIter(3, (3, 8, 8), path_imglist=files / "x.lst")
    writer = recordio.MXRecordIO(files / "y.rec", "w")
    writer.write(recordio.pack((0, 1.0, 0, 0), JPEG[:99]))
    writer.close()
    with pytest.raises(RuntimeError, match=r"broken image, number 0 of '.*y\.rec'"):
        image.ImageIter(1, (3, 8, 8), path_imgrec=files / "y.rec").next()
    with pytest.raises(mx.errors.OpValueError, match=r"1 labels, index 0; label_width=2"):
        image.ImageIter(1, (3, 8, 8), 2, path_imgrec=files / "x.rec", path_imgidx=files / "x.idx").next()
    with pytest.raises(mx.errors.OpValueError, match=r"shape \(3, 10, 12\), index 0; expected \(3, 8, 8\)"):
        image.ImageIter(1, (3, 8, 8), path_imgrec=files / "x.rec", path_imgidx=files / "x.idx", aug_list=[]).next()


@pytest.mark.parametrize("params, told", [
    ({}, "one of path_imgrec"), ({"imglist": []}, "no images"), ({"imglist": [[1]]}, r"imglist\[0\]"),
    ({"imglist": [["a", "b"]]}, r"imglist\[0\]"), ({"imglist": [[1, "a"]], "dtype": "uint8"}, "dtype='uint8'"),
    ({"imglist": [[1, "a"]], "last_batch_handle": "keep"}, "'keep'"),
    ({"imglist": [[1, "a"]], "data_shape": (1, 2, 2)}, "channels"),
    ({"imglist": [[1, "a"]], "part_index": 2}, "part_index=2"), ({"imglist": [[1, "a"]], "batch_size": 0}, "batch_size=0"),
])  # fmt: skip
def test_bad_iterators_are_told(params, told):
    with pytest.raises(mx.MXNetError, match=told):
        image.ImageIter(**{"batch_size": 1, "data_shape": (3, 2, 2), **params})
