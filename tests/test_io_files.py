"""Iterators over files, and files of records, as MXNet 1.9.1 reads and writes them."""

import errno
import gc
import gzip
import os
import pickle
import random
import struct
import sys

import numpy as np
import pytest

import mxop as mx
from mxop import recordio

MAGIC = struct.pack("<I", 0xCED7230A)


def batches(iterator):
    return [(b.data[0].asnumpy().tolist(), b.label[0].asnumpy().tolist(), b.pad) for b in iterator]


@pytest.fixture
def csv(tmp_path):
    np.savetxt(tmp_path / "x.csv", np.arange(18).reshape(6, 3), "%d", delimiter=",")
    np.savetxt(tmp_path / "y.csv", np.arange(6), delimiter=",")
    return {
        "data_csv": str(tmp_path / "x.csv"),
        "label_csv": str(tmp_path / "y.csv"),
        "data_shape": (3,),
        "batch_size": 4,
    }


def test_numbers_may_be_strings(csv):
    found = mx.io.CSVIter(**csv | {"data_shape": "(1, 3)", "batch_size": "2", "round_batch": "false"})
    assert [(data.shape, pad) for data, _, pad in ((b.data[0], b.label, b.pad) for b in found)] == [((2, 1, 3), 0)] * 3
    for name, value in (("batch_size", "x"), ("round_batch", "maybe"), ("data_shape", "(3, x)")):
        with pytest.raises(ValueError, match=f"CSVIter: {name}={value!r}".replace("(", r"\(").replace(")", r"\)")):
            mx.io.CSVIter(**csv | {name: value})


def test_csv(csv):
    found = mx.io.CSVIter(**csv, prefetch_buffer=2)
    assert found.provide_data[0].shape == (4, 3) and found.provide_label[0] == ("softmax_label", (4,))
    labels = []
    for _ in range(3):
        labels.append([(label, pad) for _, label, pad in batches(found)])
        found.reset()
    first = [([0, 1, 2, 3], 0), ([4, 5, 0, 1], 2)]
    assert labels == [first, [([2, 3, 4, 5], 0)], first]  # an epoch goes on behind what filled up the one before
    found = mx.io.CSVIter(**csv, round_batch=False)
    assert [pad for *_, pad in batches(found)] == [0, 2]
    found.reset()
    assert len(batches(found)) == 2
    csv |= {"data_shape": (1, 3), "dtype": "int32", "label_csv": None, "label_shape": (2,)}
    batch = next(mx.io.CSVIter(**csv))
    assert batch.data[0].shape == (4, 1, 3) and batch.data[0].dtype == np.int32 and batch.label[0].shape == (4, 2)


def test_parts_of_a_batch_are_arrays(csv):
    found = mx.io.CSVIter(**csv)  # of MXNet's iterators over files; NDArrayIter gives lists
    assert found.iter_next() and found.getdata().asnumpy()[:, 0].tolist() == [0, 3, 6, 9]
    assert found.getlabel().asnumpy().tolist() == found.getindex().tolist() == [0, 1, 2, 3]
    assert found.next().data[0].shape == (4, 3)


def test_whole_numbers_as_savetxt_writes_them(tmp_path):
    np.savetxt(tmp_path / "x.csv", [[1, -2], [55, 0]], delimiter=",")
    made = {"data_csv": str(tmp_path / "x.csv"), "data_shape": (2,), "batch_size": 2}
    assert next(mx.io.CSVIter(**made, dtype="int64")).data[0].asnumpy().tolist() == [[1, -2], [55, 0]]
    for wrong in ("1.5", "3000000000", "nan", "inf", "1e300"):  # some versions of NumPy cut these
        (tmp_path / "x.csv").write_text(f"2,{wrong}\n")
        with pytest.raises(mx.MXNetError, match=r"is no int32"):
            mx.io.CSVIter(**made, dtype="int32")
    (tmp_path / "x.csv").write_text("9007199254740993,-9223372036854775808\n")
    found = mx.io.CSVIter(**made | {"batch_size": 1}, dtype="int64")
    assert next(found).data[0].asnumpy().tolist() == [[9007199254740993, -(2**63)]]


def test_libsvm(tmp_path):
    (tmp_path / "x").write_text("1.0 0:0.5 2:1.2\n-2.0\n\n-3 0:0.6 1:2.4 2:1.2\n4 2:-1.2\n")
    found = mx.io.LibSVMIter(data_libsvm=str(tmp_path / "x"), data_shape=(3,), batch_size=3)
    first, second = found
    assert first.data[0].stype == "csr" and first.label[0].asnumpy().tolist() == [1, -2, -3]
    wanted = np.array([[0.5, 0, 1.2], [0, 0, 0], [0.6, 2.4, 1.2]], "float32")
    np.testing.assert_array_equal(first.data[0].asnumpy(), wanted)
    assert second.pad == 2 and second.label[0].asnumpy().tolist() == [4, 1, -2]
    found = mx.io.LibSVMIter(str(tmp_path / "x"), (3,), label_libsvm=str(tmp_path / "x"), label_shape=(3,), num_parts=2,
                             part_index=1)  # fmt: skip
    assert [b.label[0].asnumpy().tolist() for b in found] == [wanted[2:].tolist(), [[0, 0, np.float32(-1.2)]]]


def idx(array):
    return b"\0\0\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def test_mnist(tmp_path):
    images = np.random.RandomState(0).randint(0, 255, (10, 4, 5)).astype("uint8")
    (tmp_path / "x").write_bytes(idx(images))
    (tmp_path / "y.gz").write_bytes(gzip.compress(idx(np.arange(10, dtype="uint8"))))
    files = {"image": str(tmp_path / "x"), "label": str(tmp_path / "y.gz"), "batch_size": 4, "silent": True}
    first, second = mx.io.MNISTIter(**files, shuffle=False)
    np.testing.assert_array_equal(first.data[0].asnumpy(), images[:4, None].astype("float32") / 256)
    assert second.label[0].asnumpy().tolist() == [4, 5, 6, 7]
    (part,) = mx.io.MNISTIter(**files, shuffle=False, flat=True, num_parts=2, part_index=1)
    assert part.data[0].shape == (4, 20) and part.label[0].asnumpy().tolist() == [5, 6, 7, 8]
    (same,) = mx.io.MNISTIter(**files | {"batch_size": str(files["batch_size"])}, shuffle="False", flat="1", num_parts="2",
                              part_index="1")  # fmt: skip
    np.testing.assert_array_equal(same.data[0].asnumpy(), part.data[0].asnumpy())
    mixed = mx.io.MNISTIter(**files, seed=3)
    labels = [int(n) for _, label, _ in batches(mixed) for n in label]
    assert labels != list(range(8)) and len(set(labels)) == 8


@pytest.mark.parametrize("content, message", [
    (b"", "is empty"), (b"1,2\n", "do not make shape"), (b"1,2,x\n", "CSVIter: .*x.csv"), (b"1,2,3\n4,5\n", "x.csv"),
    (b"\xff\xfe\0", "x.csv"),
])  # fmt: skip
def test_wrong_csv(csv, content, message):
    with open(csv["data_csv"], "wb") as file:
        file.write(content)
    with pytest.raises(mx.MXNetError, match=message):
        mx.io.CSVIter(**csv)


@pytest.mark.parametrize("kwargs, message", [
    ({"data_csv": "missing"}, os.strerror(errno.ENOENT)),
    ({"data_csv": 3}, "a string or a path"), ({"batch_size": 0}, "batch_size=0"),
    ({"data_shape": (0,)}, "positive sizes"), ({"dtype": "float16"}, "none of float32"),
    ({"label_shape": (2,)}, "do not make shape"),
])  # fmt: skip
def test_wrong_parameters(csv, kwargs, message):
    with pytest.raises(mx.MXNetError, match=message):
        mx.io.CSVIter(**{**csv, **kwargs})


@pytest.mark.parametrize("content", [b"", b"\0\0\x08\x03", b"\0\0\x0d\x01\0\0\0\1\0\0\0\0", idx(np.zeros(3, "uint8"))[:-1]])
def test_wrong_idx(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    (tmp_path / "y.gz").write_bytes(gzip.compress(content)[:-3])
    with pytest.raises(mx.MXNetError, match=r"idx file|bytes for an array"):
        mx.io.MNISTIter(str(tmp_path / "x"), str(tmp_path / "x"))
    with pytest.raises(mx.MXNetError, match="gzip"):
        mx.io.MNISTIter(str(tmp_path / "y.gz"), str(tmp_path / "x"))


@pytest.mark.parametrize("line", ["x 0:1", "1 0", "1 0:x", "1 3:1", "1 -1:1", "1 0:1:2"])
def test_wrong_libsvm(tmp_path, line):
    (tmp_path / "x").write_text(f"1 0:1\n{line}\n")
    with pytest.raises(mx.MXNetError, match="line 2"):
        mx.io.LibSVMIter(str(tmp_path / "x"), (3,))


# ---- records ------------------------------------------------------------------------------------------------------------
RECORDS = [b"record", b"", MAGIC * 3, b"ab" + MAGIC + b"cd", b"abcd" + MAGIC + b"e", b"\0" * 7]


def test_records(tmp_path):
    name = str(tmp_path / "x.rec")
    writer = recordio.MXRecordIO(name, "w")
    for record in RECORDS:
        writer.write(record)
    writer.close()
    written = (tmp_path / "x.rec").read_bytes()
    assert written.startswith(
        MAGIC + b"\6\0\0\0record\0\0" + MAGIC + b"\0\0\0\0" + MAGIC + b"\0\0\0\x20" + MAGIC + b"\0\0\0\x40"
    )
    reader = recordio.MXRecordIO(name, "r")
    assert [reader.read() for _ in range(7)] == [*RECORDS, None]
    reader.reset()
    assert pickle.loads(pickle.dumps(reader)).read() == reader.read() == b"record"
    with pytest.raises(mx.MXNetError, match="cannot write"):
        reader.write(b"")
    with pytest.raises(mx.MXNetError, match="expected bytes"):
        recordio.MXRecordIO(name, "w").write("text")


def test_records_by_key(tmp_path):
    names = str(tmp_path / "x.idx"), str(tmp_path / "x.rec")
    writer = recordio.MXIndexedRecordIO(*names, "w")
    for k in range(5):
        writer.write_idx(2 * k, b"record_%d" % k)
    writer.close()
    assert (tmp_path / "x.idx").read_text() == "0\t0\n2\t16\n4\t32\n6\t48\n8\t64\n"
    reader = recordio.MXIndexedRecordIO(*names, "r")
    assert reader.keys == [0, 2, 4, 6, 8] and reader.read_idx(6) == b"record_3" and reader.read() == b"record_4"
    with pytest.raises(mx.MXNetError, match="no record 5"):
        reader.read_idx(5)
    (tmp_path / "x.idx").write_text("0\t0\n1\t80\n")
    with pytest.raises(mx.MXNetError, match=r"x\.rec' ends where .*x\.idx' has record 1"):
        recordio.MXIndexedRecordIO(*names, "r").read_idx(1)
    (tmp_path / "x.idx").write_text("0\t0\nx\t16\n")
    with pytest.raises(mx.MXNetError, match="line 2"):
        recordio.MXIndexedRecordIO(*names, "r")


def test_headers():
    one = recordio.pack(recordio.IRHeader(0, 4, 2574, 0), b"image")
    assert one.hex() == "00000000000080400e0a0000000000000000000000000000" + b"image".hex()
    assert recordio.unpack(one) == (recordio.IRHeader(0, 4, 2574, 0), b"image")
    header, rest = recordio.unpack(recordio.pack(recordio.IRHeader(0, [1, 2, 3], 1, 0), b"q"))
    assert header.flag == 3 and header.label.tolist() == [1, 2, 3] and rest == b"q"
    for wrong in (b"short", struct.pack("<IfQQ", 9, 0, 0, 0)):
        with pytest.raises(mx.MXNetError, match=r"recordio\.unpack"):
            recordio.unpack(wrong)
    with pytest.raises(mx.MXNetError, match="is not a header"):
        recordio.pack((0, 1, -1, 0), b"")


def test_damaged_records_are_errors(tmp_path):
    name, rng = str(tmp_path / "x.rec"), random.Random(0)
    writer = recordio.MXRecordIO(name, "w")
    for record in RECORDS:
        writer.write(record)
    writer.close()
    whole = (tmp_path / "x.rec").read_bytes()
    refused = 0
    for _ in range(300):
        damaged = bytearray(whole[: rng.randrange(len(whole))] if rng.random() < 0.3 else whole)
        for _ in range(rng.randrange(1, 4)):
            if damaged:
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        (tmp_path / "x.rec").write_bytes(damaged)
        reader = recordio.MXRecordIO(name, "r")
        try:
            while reader.read() is not None:
                pass
        except mx.MXNetError as problem:
            refused += "is it whole" in str(problem)
    assert refused > 50


def test_files_that_unpack_to_much(tmp_path, monkeypatch):
    """What a packed file may grow to is limited; one that is no idx file, or says that it is large, is not unpacked."""
    packed = tmp_path / "x.gz"
    packed.write_bytes(gzip.compress(bytes(1 << 20)))
    with pytest.raises(mx.MXNetError, match=r"x\.gz' is not an idx file"):
        mx.io.MNISTIter(str(packed), str(packed))
    packed.write_bytes(gzip.compress(idx(np.zeros((2, 4, 8), "uint8")) + bytes(1 << 20)))  # is not unpacked to the end
    with pytest.raises(mx.MXNetError, match=r"x\.gz' has \d{5} bytes for an array of shape \(2, 4, 8\)"):
        mx.io.MNISTIter(str(packed), str(packed))
    packed.write_bytes(gzip.compress(idx(np.zeros((1 << 15, 4, 8), "uint8"))))
    (tmp_path / "labels").write_bytes(idx(np.zeros(1 << 15, "uint8")))
    assert mx.io.MNISTIter(str(packed), str(tmp_path / "labels")).provide_data[0].shape == (128, 1, 4, 8)
    monkeypatch.setenv("MXOP_MAX_DENSE_BYTES", "1000")
    with pytest.raises(mx.MXNetError, match=r"x\.gz' unpacks to more than \d+ bytes.*MXOP_MAX_DENSE_BYTES"):
        mx.io.MNISTIter(str(packed), str(tmp_path / "labels"))
    for rows in (b"0,0\n" * 100_000, b"1 0:1\n" * 100_000):
        packed.write_bytes(gzip.compress(rows))
        for make in (mx.io.CSVIter, mx.io.LibSVMIter):
            with pytest.raises(mx.MXNetError, match="unpacks to more than"):
                make(str(packed), (2,))


READERS = [
    mx.nd.load, mx.sym.load, lambda name: recordio.MXRecordIO(name, "r"), mx.init.Load, mx.library.load,
    lambda name: recordio.MXIndexedRecordIO(name, name, "r"), lambda name: mx.io.CSVIter(name, (2,)),
    lambda name: mx.io.LibSVMIter(name, (2,)), lambda name: mx.io.MNISTIter(name, name),
    mx.contrib.text.embedding.CustomEmbedding,
]  # fmt: skip


@pytest.mark.parametrize("read", READERS)
def test_devices_and_pipes_are_no_files(read, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("/dev/zero", str(tmp_path / "pipe"), str(tmp_path), str(tmp_path / "missing")):
        with pytest.raises(mx.MXNetError, match=os.path.basename(name)):
            read(name)


def test_an_index_that_cannot_be_written(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda about: seen.append(about.exc_value))
    with pytest.raises(mx.MXNetError, match=r"no/x\.idx"):
        recordio.MXIndexedRecordIO(str(tmp_path / "no" / "x.idx"), str(tmp_path / "x.rec"), "w")
    gc.collect()
    assert not seen  # the object that was not made is closed without a further error
    for wrong in ("x" * 30, None, 3):
        with pytest.raises(mx.MXNetError, match="a record is bytes"):
            recordio.unpack(wrong)


def test_files_without_permission(tmp_path):
    """root may read all files, so the test is somebody else for a moment."""
    name = tmp_path / "secret"
    name.write_bytes(b"1,2\n")
    name.chmod(0)
    user = os.geteuid()
    try:
        if not user:
            os.seteuid(65534)
        for read in READERS:
            with pytest.raises(mx.MXNetError, match=r"secret'.*ermission"):
                read(str(name))
    finally:
        os.seteuid(user)


def test_wrong_indices(tmp_path):
    name = str(tmp_path / "x.rec")
    writer = recordio.MXRecordIO(name, "w")
    writer.write(b"record")
    writer.close()
    for line in (b"0\t\xff", b"\xff\t0", b"0\t-8", b"0\t17", b"0\t99999999999999999999", b"0", b"0\tx", b"x\t0"):
        (tmp_path / "x.idx").write_bytes(b"1\t0\r\n" + line + b"\n")
        with pytest.raises(mx.MXNetError, match=r"x\.idx', line 2"):
            recordio.MXIndexedRecordIO(str(tmp_path / "x.idx"), name, "r")
    (tmp_path / "x.idx").write_bytes("é\t0\r\n".encode())
    assert recordio.MXIndexedRecordIO(str(tmp_path / "x.idx"), name, "r", str).read_idx("é") == b"record"


def test_images_that_are_none(monkeypatch):
    """OpenCV answers None or raises its own error."""

    class Cv2:
        error = type("error", (Exception,), {})

        @staticmethod
        def imdecode(data, iscolor):
            if not data.size:
                raise Cv2.error("!buf.empty()")
            return None if data[0] else data

    monkeypatch.setitem(sys.modules, "cv2", Cv2)
    header = recordio.IRHeader(0, 1.0, 7, 0)
    assert recordio.unpack_img(recordio.pack(header, b"\0\1"))[1].tolist() == [0, 1]
    for data, message in ((b"", "cannot read the image of record 7"), (b"\1\2", "2 bytes of record 7 are no image")):
        with pytest.raises(mx.MXNetError, match=message):
            recordio.unpack_img(recordio.pack(header, data))
