"""The ``.params`` format: files of MXNet 1.9.1 in ``data/``, round trips, and damaged files.

``data/make_golden.py`` made the files; each dense array in them counts 0, 1, 2, ...
"""

import io
import struct
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mxop as mx
from mxop import nd
from mxop.errors import MXNetError
from mxop.ndarray.params_format import SparseRecord, dump, dumps, loads
from mxop.ndarray.sparse.arrays import restored

DATA = Path(__file__).parent / "data"
GOLDEN = sorted(path.name for path in DATA.glob("*.params"))
MXNET_DTYPES = ["float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool"]
NEWER_DTYPES = ["int16", "uint16", "uint32", "uint64"]


def counting(dtype, shape=(2, 3)):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def filled(record):
    return restored(record.stype, record.shape, record.data, record.aux).asnumpy()


def read(name):
    content = (DATA / name).read_bytes()
    if name == "bfloat16.params":
        pytest.importorskip("ml_dtypes")
    return content, *loads(content)


def assert_same(actual, expected):
    """Equal in kind, dtype, shape and every bit: NaNs and signed zeros too."""
    assert type(actual) is type(expected)
    if isinstance(expected, SparseRecord):
        assert (actual.stype, actual.shape) == (expected.stype, expected.shape)
        pairs = zip((actual.data, *actual.aux), (expected.data, *expected.aux), strict=True)
    else:
        pairs = [(actual, expected)] if expected is not None else []
    for left, right in pairs:
        assert (left.dtype, left.shape, left.tobytes()) == (right.dtype, right.shape, right.tobytes())


# ---- files of MXNet


def test_dtypes():
    _, arrays, names = read("v2_dtypes.params")
    assert names == [f"arg:{dtype}" for dtype in MXNET_DTYPES]
    for array, dtype in zip(arrays, MXNET_DTYPES, strict=True):
        assert_same(array, counting(dtype))


def test_list_has_no_names():
    _, arrays, names = read("v2_list.params")
    assert names == []
    assert_same(arrays[0], counting("float32", (3,)))
    assert_same(arrays[1], counting("int32", (2, 1, 2)))


def test_names_are_unicode():
    _, arrays, names = read("v2_unicode.params")
    assert names == ["aux:é漢"]
    assert_same(arrays[0], counting("float32", (1,)))


def test_np_shape():
    _, arrays, _ = read("v3_np_shape.params")
    for array, shape in zip(arrays, [(), (0, 2), (2, 3)], strict=True):
        assert_same(array, counting("float32", shape))


def test_empty():
    assert read("empty.params")[1:] == ([], [])


@pytest.mark.parametrize("name", ["v1.params", "oldest.params", "mixed.params"])
def test_older_records(name):
    _, arrays, names = read(name)
    assert names == [f"w{i}" for i in range(len(arrays))]
    for array in arrays:
        assert_same(array, counting("float32"))


def test_bfloat16():
    _, arrays, _ = read("bfloat16.params")
    assert arrays[0].dtype.name == "bfloat16"
    assert arrays[0].astype("float32").tolist() == [1.0, 2.5]


def test_bfloat16_needs_ml_dtypes(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(MXNetError, match="install ml_dtypes"):
        loads((DATA / "bfloat16.params").read_bytes())


def test_sparse():
    _, arrays, names = read("sparse.params")
    found = dict(zip(names, arrays, strict=True))
    assert [found[name].stype for name in ("rows", "csr", "zeros")] == ["row_sparse", "csr", "csr"]
    np.testing.assert_array_equal(filled(found["rows"]), [[0, 0], [1, 2], [0, 0], [3, 4], [0, 0]])
    np.testing.assert_array_equal(filled(found["csr"]), [[1, 0, 0, 0], [0, 0, 0, 0], [0, 3, 2, 0]])
    np.testing.assert_array_equal(filled(found["zeros"]), np.zeros((5, 2)))
    assert_same(found["dense"], counting("float32"))


@pytest.mark.parametrize("name", sorted({*GOLDEN} - {"v1.params", "oldest.params", "mixed.params"}))
def test_same_bytes_as_mxnet(name):
    content, arrays, names = read(name)
    assert dumps(arrays, names) == content


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("buffer", [bytearray, memoryview, lambda raw: np.frombuffer(raw, np.uint8)])
def test_arrays_own_their_memory(name, buffer):
    content = bytearray(read(name)[0])
    arrays, _ = loads(buffer(content))
    parts = [part for a in arrays for part in ((a.data, *a.aux) if isinstance(a, SparseRecord) else (a,))]
    before = [part.tobytes() for part in parts]
    content[:] = b"\xff" * len(content)
    assert [part.tobytes() for part in parts] == before
    assert all(part.flags.writeable and part.flags.aligned and part.dtype.isnative for part in parts)


# ---- round trips

names_of_arrays = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
dense = st.sampled_from(MXNET_DTYPES + NEWER_DTYPES).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3))
)


@st.composite
def sparse(draw):
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    dtype = draw(st.sampled_from(["float32", "int64"]))
    if draw(st.booleans()):
        indices = np.array(draw(st.lists(st.integers(0, rows - 1), unique=True)), "int64")
        return SparseRecord("row_sparse", (rows, columns), counting(dtype, (len(indices), columns)), (indices,))
    indices = np.array(draw(st.lists(st.integers(0, columns - 1), max_size=6)), "int64")
    cuts = sorted(draw(st.lists(st.integers(0, len(indices)), min_size=rows - 1, max_size=rows - 1)))
    indptr = np.array([0, *cuts, len(indices)], "int64")
    return SparseRecord("csr", (rows, columns), counting(dtype, indices.shape), (indptr, indices))


def named(arrays):
    names = st.lists(names_of_arrays, min_size=len(arrays), max_size=len(arrays))
    return st.tuples(st.just(arrays), st.one_of(st.just([]), names))


@settings(deadline=None)
@given(st.lists(st.one_of(dense, st.none()), max_size=4).flatmap(named))
def test_dense_round_trip(content):
    arrays, names = content
    found, found_names = loads(dumps(arrays, names))
    assert len(found) == len(arrays) and found_names == names
    for left, right in zip(found, arrays, strict=True):
        assert_same(left, right)


@settings(deadline=None)
@given(st.lists(sparse(), max_size=3).flatmap(named))
def test_sparse_round_trip(content):
    arrays, names = content
    found, found_names = loads(dumps(arrays, names))
    assert len(found) == len(arrays) and found_names == names
    for left, right in zip(found, arrays, strict=True):
        assert_same(left, right)


@pytest.mark.parametrize("array", [
    counting("float32", (4, 6))[::2, ::-3],
    counting("float32", (4, 6)).T,
    np.asfortranarray(counting("int64", (2, 3, 4))),
    counting(">f8"),
    counting(">i2"),
    np.broadcast_to(np.float16(3), (2, 2)),
])  # fmt: skip
def test_any_memory_layout(array):
    found = loads(dumps([array]))[0][0]
    assert_same(found, np.ascontiguousarray(array, array.dtype.newbyteorder("=")))


def test_record_version_follows_the_shapes():
    plain, scalar, empty = np.ones(2, "f4"), np.array(1.0), np.ones((0, 2))
    v2, v3 = struct.pack("<I", 0xF993FAC9), struct.pack("<I", 0xF993FACA)
    assert dumps([plain])[24:28] == v2
    # MXNet loads no file that has both, so one scalar decides for all.
    assert dumps([plain, scalar])[24:28] == dumps([plain, empty])[24:28] == v3
    assert dumps([plain], np_shape=True)[24:28] == v3
    assert dumps([empty], np_shape=False)[24:28] == v2
    with pytest.raises(MXNetError, match="array 'w' is 0-dimensional"):
        dumps([scalar], ["w"], np_shape=False)


def test_dump_writes_what_dumps_returns():
    file = io.BytesIO()
    dump(file, [counting("float32"), None], ["a", "b"])
    assert file.getvalue() == dumps([counting("float32"), None], ["a", "b"])


ROWS = SparseRecord("row_sparse", (3, 2), np.ones((1, 2), "f4"), (np.array([2]),))


@pytest.mark.parametrize(("arrays", "names", "message"), [
    ([np.ones(2)], ["a", "b"], "2 names for 1 arrays"),
    ([np.ones(2)], [3], "must be a str, not 3"),
    ([np.ones(2)], ["\ud800"], "cannot be written as UTF-8"),
    ([np.ones(2), np.ones(2, "complex64")], [], "array 1 has dtype complex64"),
    ([np.array("text")], ["w"], "array 'w' has dtype <U4"),
    ([np.array([object()])], [], "dtype object"),
    ([ROWS, np.array(1.0)], [], r"array 1 is 0-dimensional, .* reshape\(\(1,\)\), or write it to another file"),
    ([SparseRecord("csr", (3, 2), ROWS.data, ROWS.aux)], [], "malformed: 1 auxiliary arrays"),
    ([SparseRecord("row_sparse", (2, 2), ROWS.data, ROWS.aux)], [], "indices from 2 to 2 for a dimension of 2"),
])  # fmt: skip
def test_what_cannot_be_written(arrays, names, message):
    file = io.BytesIO()
    with pytest.raises(MXNetError, match=message):
        dump(file, arrays, names)
    assert not file.getvalue()


def test_sparse_is_not_written_under_np_shape():
    with pytest.raises(MXNetError, match="array 0 is sparse"):
        dumps([ROWS], np_shape=True)


# ---- sparse arrays that MXNet wrote before they were computed: the storage shape is an old one, all else is right
STALE_ROWS = bytes.fromhex(  # nd.save("f", {"w": nd.ones((3, 2)).tostype("row_sparse")})
    "120100000000000000000000000000000100000000000000c9fa93f90100000002000000000000000000000002000000000000000200000003000000"
    "000000000200000000000000010000000000000000000000060000000100000003000000000000000000803f0000803f0000803f0000803f0000803f"
    "0000803f0000000000000000010000000000000002000000000000000100000000000000010000000000000077"
)
STALE_CSR = bytes.fromhex(  # nd.save("f", [nd.array([[0, 1, 0], [2, 0, 3]]).tostype("csr")])
    "120100000000000000000000000000000100000000000000c9fa93f9020000000100000000000000000000000200000002000000000000000300"
    "00000000000001000000000000000000000006000000010000000300000000000000060000000100000003000000000000000000803f00000040"
    "00004040000000000000000001000000000000000300000000000000010000000000000000000000000000000200000000000000000000000000"
    "0000"
)


def test_a_storage_shape_that_was_written_too_early():
    arrays, names = loads(STALE_ROWS)
    assert names == ["w"] and arrays[0].stype == "row_sparse" and arrays[0].data.shape == (3, 2)
    assert arrays[0].aux[0].tolist() == [0, 1, 2]
    np.testing.assert_array_equal(filled(arrays[0]), np.ones((3, 2), "f4"))
    np.testing.assert_array_equal(filled(loads(STALE_CSR)[0][0]), np.array([[0, 1, 0], [2, 0, 3]], "f4"))
    assert nd.load_frombuffer(STALE_ROWS)["w"].asnumpy().tolist() == [[1, 1]] * 3
    assert nd.load_frombuffer(STALE_CSR)[0].asnumpy().tolist() == [[0, 1, 0], [2, 0, 3]]


@pytest.mark.parametrize("content", [STALE_ROWS, STALE_CSR], ids=["row_sparse", "csr"])
def test_any_number_of_rows_may_stand_in_the_storage_shape(content):
    """MXNet's reader takes it from the indices; an array that is written again had other numbers of rows before."""
    for rows in (1, 2, 7, 2**40):
        changed = bytearray(content)
        changed[36:44] = struct.pack("<q", rows)
        assert_same(loads(changed)[0][0], loads(content)[0][0])


@pytest.mark.parametrize("content", [STALE_ROWS, STALE_CSR], ids=["row_sparse", "csr"])
def test_damage_beside_an_early_storage_shape_is_refused(content):
    for size in range(len(content)) if len(content) <= 2000 else (*range(2000), *range(2000, len(content), 11)):
        with pytest.raises(MXNetError):
            loads(content[:size])
    for offset in range(len(content)):
        for value in (0x00, 0x01, 0x7F, 0x80, 0xFF):
            parse_or_error(content[:offset] + bytes([value]) + content[offset + 1 :])
    rank = bytearray(content)
    rank[32] += 1  # of the storage shape
    with pytest.raises(MXNetError):
        loads(rank)


# ---- what a small file may become
def test_empty_sparse_arrays_of_a_file_have_a_budget(monkeypatch):
    """88 bytes that ask for 2 GiB of rows."""
    none = np.ones(0, "f4"), (np.zeros(0, "i8"), np.zeros(0, "i8"))
    content = dumps([SparseRecord("csr", (2**28, 2), *none)])
    with pytest.raises(MXNetError, match=r"take 2147483656 bytes .* 268435456 are allowed.*max_bytes=2147483656"):
        nd.load_frombuffer(content)
    with pytest.raises(MXNetError, match="take 402653208 bytes"):
        nd.load_frombuffer(dumps([SparseRecord("csr", (2**24, 30), *none)] * 3))
    small = dumps([SparseRecord("csr", (5, 2), *none)])
    assert nd.load_frombuffer(small, max_bytes=48)[0].shape == (5, 2)
    with pytest.raises(MXNetError, match="take 48 bytes"):
        nd.load_frombuffer(small, max_bytes=47)
    monkeypatch.setenv("MXOP_MAX_DENSE_BYTES", "3")  # the file itself allows for 64 times its size
    assert nd.load_frombuffer(small)[0].asnumpy().tolist() == [[0, 0]] * 5
    for wrong in (-1, "1", 2.0):
        with pytest.raises(MXNetError, match="max_bytes"):
            nd.load_frombuffer(small, max_bytes=wrong)
    large = dumps([SparseRecord("row_sparse", (2**40, 2), np.ones((1, 2), "f4"), (np.array([5]),))])
    assert nd.load_frombuffer(large)[0].shape == (2**40, 2)


def test_the_budget_of_a_file_can_be_raised(tmp_path, monkeypatch):
    path = tmp_path / "x.params"
    path.write_bytes(dumps([SparseRecord("csr", (2**25, 2), np.ones(0, "f4"), (np.zeros(0, "i8"), np.zeros(0, "i8")))]))
    with pytest.raises(MXNetError, match=r"x\.params.*max_bytes.*MXOP_MAX_DENSE_BYTES"):
        nd.load(path)
    monkeypatch.setenv("MXOP_MAX_DENSE_BYTES", str(2**29))
    assert nd.load(path)[0].shape == (2**25, 2)


# ---- damaged files


def tiny_file(record, names=0):
    return struct.pack("<QQQ", 0x112, 0, 1) + record + struct.pack("<Q", names)


def v2_record(ndim=1, dims=(2,), flag=0, stype=0, magic=0xF993FAC9, data=bytes(8)):
    return struct.pack(f"<Iii{len(dims)}q", magic, stype, ndim, *dims) + struct.pack("<iii", 1, 0, flag) + data


def csr_record(indptr=(0, 1, 2), indices=(0, 3), values=2, shape=(2, 4), aux_flag=6):
    head = struct.pack("<Iiiqiqq", 0xF993FAC9, 2, 1, values, 2, *shape) + struct.pack("<iii", 1, 0, 0)
    aux = struct.pack("<iiq", aux_flag, 1, len(indptr)) + struct.pack("<iiq", 6, 1, len(indices))
    numbers = struct.pack(f"<{len(indptr) + len(indices)}q", *indptr, *indices)
    return head + aux + bytes(4 * values) + numbers


def test_the_tiny_files_are_valid():
    assert_same(loads(tiny_file(v2_record()))[0][0], np.zeros(2, "f4"))
    assert loads(tiny_file(csr_record()))[0][0].shape == (2, 4)


@pytest.mark.parametrize(("content", "message"), [
    (b"", r"at byte 0 \(0x0\), the header: the magic number: found 0 bytes to the end of the file, expected 8"),
    (bytes(24), "the magic number: found 0x0, expected 0x112"),
    (struct.pack("<QQQ", 0x112, 0, 2**60), "byte 16.*number of arrays: found 1152921504606846976, expected at most"),
    (tiny_file(v2_record()) + b"!", "what follows the names: found 1 more bytes"),
    (tiny_file(v2_record(), names=1), "the number of names: found 1, expected at most 0"),
    (tiny_file(v2_record(), names=2) + bytes(16), "the number of names: found 2, expected 0 or 1"),
    (tiny_file(v2_record(), names=1) + struct.pack("<Q", 2**63), "name 0 of 1: its length: found 9223372036854775808"),
    (tiny_file(v2_record(), names=1) + struct.pack("<Q", 2) + b"a\xff", "byte 81 .*found byte 0xff, expected UTF-8"),
    (tiny_file(struct.pack("<I", 65)), "record 0 of 1: the start of the record: found 0x41"),
    (tiny_file(v2_record(magic=0xF993FACB)), "the start of the record: found 0xf993facb, expected 0xf993fac8"),
    (tiny_file(v2_record(stype=3)), "byte 28.*the storage type: found 3"),
    (tiny_file(v2_record(ndim=65)), "its rank: found 65, expected 0 to 64"),
    (tiny_file(v2_record(ndim=-2)), "its rank: found -2"),
    (tiny_file(v2_record(ndim=64)), "the shape: found .* bytes to the end of the file, expected 512"),
    (tiny_file(v2_record(dims=(-5,))), r"the shape: found \(-5,\), expected no negative dimension"),
    (tiny_file(v2_record(flag=13)), "the type flag: found 13, expected 0 to 12"),
    (tiny_file(v2_record(flag=-1)), "the type flag: found -1"),
    (tiny_file(v2_record(dims=(2**40,))), "the data of shape .1099511627776,. and dtype float32: found 16 bytes"),
    (tiny_file(v2_record(2, (2**62, 2**62))), "a size below 2..63 bytes"),
    (tiny_file(v2_record(2, (0, 2**62), data=b"")), "a size below 2..63 bytes"),
    (tiny_file(csr_record(indices=(0, 4))), "array of shape .2, 4.: found indices from 0 to 4 for a dimension of 4"),
    (tiny_file(csr_record(indices=(-1, 3))), "indices from -1 to 3"),
    (tiny_file(csr_record(indptr=(0, 3, 2))), "row pointers that do not rise from 0 to 2"),
    (tiny_file(csr_record(indptr=(0, 2))), "2 row pointers for 2 rows"),
    (tiny_file(csr_record(values=3)), "row pointers that do not rise from 0 to 2"),  # two values are read, not three
    (tiny_file(csr_record(aux_flag=1)), "indptr of shape .3,. and dtype float64, not a vector of integers"),
], ids=lambda value: "" if isinstance(value, bytes) else value)  # fmt: skip
def test_what_is_wrong_is_named(content, message):
    with pytest.raises(MXNetError, match=message):
        loads(content)


def test_absent_arrays():
    """A record may end after its shape: a rank of 0 said that before np_shape, and -1 says it since."""
    ends = [struct.pack("<I", 0), struct.pack("<Ii", 0xF993FAC8, 0), struct.pack("<Iii", 0xF993FAC9, 0, 0)]
    ends += [struct.pack("<Iii", 0xF993FACA, 0, -1), struct.pack("<Iiiqq", 0xF993FACA, 0, 2, -1, 3)]
    for end in ends:
        assert loads(tiny_file(end)) == ([None], [])


def test_any_byte_is_a_bool():
    array = loads(tiny_file(v2_record(flag=7, dims=(3,), data=b"\0\1\7")))[0][0]
    assert array.view(np.uint8).tolist() == [0, 1, 1]


def parse_or_error(content):
    """Read what may be damaged. Whatever is no error has to survive being written again."""
    try:
        arrays, names = loads(content)
    except MXNetError:
        return
    kinds = {array.ndim == 0 if isinstance(array, np.ndarray) else type(array) for array in arrays}
    if kinds >= {True, SparseRecord}:
        return  # damage put a scalar beside a sparse array, and no version of the records is for both
    again, names_again = loads(dumps(arrays, names))
    assert names_again == names
    for left, right in zip(again, arrays, strict=True):
        assert_same(left, right)


@pytest.mark.parametrize("name", GOLDEN)
def test_truncated_anywhere(name):
    content = read(name)[0]
    for size in range(len(content)) if len(content) <= 2000 else (*range(2000), *range(2000, len(content), 11)):
        with pytest.raises(MXNetError):
            loads(content[:size])


@pytest.mark.parametrize("name", GOLDEN)
def test_one_byte_changed(name):
    content, values = read(name)[0], (0x00, 0x01, 0x7F, 0x80, 0xFF)
    long = len(content) > 2000  # nearly all numbers
    for offset in (*range(600), *range(600, len(content), 7)) if long else range(len(content)):
        for value in (values[offset % 5],) if long else values:
            parse_or_error(content[:offset] + bytes([value]) + content[offset + 1 :])


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(GOLDEN), st.lists(st.tuples(st.integers(0, 700), st.integers(0, 255)), min_size=1, max_size=6))
def test_several_bytes_changed(name, changes):
    content = bytearray((DATA / name).read_bytes())
    for offset, value in changes:
        content[offset % len(content)] = value
    parse_or_error(bytes(content))


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_noise(noise):
    parse_or_error(noise)
    parse_or_error(struct.pack("<QQQ", 0x112, 0, 1) + noise)


def test_memory_stays_small():
    """Whatever a small file claims to hold, little is allocated for it."""
    claims = [
        struct.pack("<QQQ", 0x112, 0, 2**62) + bytes(1000),
        tiny_file(v2_record(dims=(2**33,))),
        tiny_file(struct.pack("<III", 2, 2**31, 2**31)),
        tiny_file(v2_record(), names=1) + struct.pack("<Q", 2**40),
        tiny_file(csr_record(shape=(2**40, 2**40))),
    ]
    tracemalloc.start()
    try:
        for claim in claims:
            with pytest.raises(MXNetError):
                loads(claim)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**20


def test_the_mode_of_a_file_does_not_matter_better(tmp_path):
    """MXNet raises for a file of the other mode: there, 0 and () mean "unknown" outside of ``np_shape``."""
    for name, shapes in (("v3_np_shape.params", [(), (0, 2), (2, 3)]), ("v2_list.params", [(3,), (2, 1, 2)])):
        for mode in (False, True):
            with mx.util.np_shape(mode):
                assert [a.shape for a in mx.nd.load(str(DATA / name))] == shapes
