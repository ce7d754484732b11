"""Read and write MXNet's ``.params`` files, the format of ``nd.save``.

The layout, little-endian throughout::

    file    := u64 0x112, u64 reserved, u64 count, record * count, u64 names, (u64 length, bytes) * names
    record  := u32 0xF993FAC9 (V2) or 0xF993FACA (V3), i32 storage type, [storage shape,] shape, body
             | u32 0xF993FAC8 (V1), shape, body
             | u32 ndim, u32 dim * ndim, body                       (before V1: no magic number at all)
    shape   := i32 ndim, i64 dim * ndim
    body    := i32 device type, i32 device id, i32 type flag, [(i32 type flag, shape) * aux,] data, [data of each aux]

The parts in brackets are there for sparse arrays only. The storage shape is that of the stored values, and its first number
cannot be relied on: MXNet writes it before it waits for the array, and everything else afterwards. How many values there are is
what the shape of the last aux array says, for MXNet's reader too. V3 says that the file was written under ``np_shape``, where a
dimension may be 0 and ``()`` is a scalar. In the older records ``()`` means "no array", and nothing follows the shape.

A file is not trusted: every length is compared with the bytes that are left before anything is allocated, so reading
never takes more memory than a small multiple of the file, and whatever is wrong raises `MXNetError` with the offset,
the record, what was found there and what was expected. Nothing is unpickled.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from mxop.support.dtypes import BFLOAT16
from mxop.support.errors import MXNetError

_LIST_MAGIC = 0x112
_V1, _V2, _V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA

# 8 to 11 were added by MXNet 2; 1.x refuses a file that has them. 12 is bfloat16, which NumPy itself does not have.
_DTYPES = {
    0: np.dtype("<f4"), 1: np.dtype("<f8"), 2: np.dtype("<f2"), 3: np.dtype("u1"), 4: np.dtype("<i4"),
    5: np.dtype("i1"), 6: np.dtype("<i8"), 7: np.dtype("?"), 8: np.dtype("<i2"), 9: np.dtype("<u2"),
    10: np.dtype("<u4"), 11: np.dtype("<u8"),
}  # fmt: skip
_FLAGS = {dtype: flag for flag, dtype in _DTYPES.items()}

_STORAGE = {0: "default", 1: "row_sparse", 2: "csr"}
_STORAGE_IDS = {name: number for number, name in _STORAGE.items()}
_AUX_NAMES = {"row_sparse": ("indices",), "csr": ("indptr", "indices")}

_MAX_NDIM = 64  # NumPy's own limit
_MAX_BYTES = 2**63 - 1


@dataclass(frozen=True, eq=False)
class SparseRecord:
    """A sparse array as it is stored, unconverted.

    Attributes
    ----------
    stype : str
        ``'row_sparse'`` or ``'csr'``.
    shape : tuple of int
        The shape of the whole array.
    data : numpy.ndarray
        The stored values: ``(n, *shape[1:])`` for row_sparse, ``(nnz,)`` for csr.
    aux : tuple of numpy.ndarray
        ``(indices,)`` for row_sparse, ``(indptr, indices)`` for csr.
    """

    stype: str
    shape: tuple[int, ...]
    data: np.ndarray
    aux: tuple[np.ndarray, ...]


def loads(buffer) -> tuple[list[np.ndarray | SparseRecord | None], list[str]]:
    """Read the contents of a ``.params`` file.

    Parameters
    ----------
    buffer : bytes-like
        The whole file.

    Returns
    -------
    arrays : list
        A `numpy.ndarray` (writable, its own memory) for each dense array, a `SparseRecord` for each sparse one, and
        None where an array without a shape was saved.
    names : list of str
        As long as `arrays`, or empty if the arrays were saved as a list. A name may occur more than once.

    Raises
    ------
    MXNetError
        If the bytes are not such a file, or it is damaged.

    Examples
    --------
    >>> arrays, names = loads(dumps([np.arange(3, dtype="float32")], ["w"]))
    >>> names, arrays[0].tolist()
    (['w'], [0.0, 1.0, 2.0])
    """
    reader = _Reader(memoryview(buffer).cast("B"))
    _read_header(reader)
    # The shortest record is an old one without a shape: 4 bytes.
    count = reader.count("the number of arrays", smallest=4)
    arrays = []
    for index in range(count):
        reader.where = f"record {index} of {count}"
        arrays.append(_read_record(reader))
    reader.where = "the list of names"
    names = _read_names(reader, count)
    if reader.left:
        reader.fail(reader.at, "what follows the names", f"{reader.left} more bytes", "the end of the file")
    return arrays, names


def dumps(
    arrays: Sequence[np.ndarray | SparseRecord | None], names: Sequence[str] = (), *, np_shape: bool | None = None
) -> bytes:
    """Return the contents of a ``.params`` file that MXNet 1.x reads.

    Parameters
    ----------
    arrays : sequence of numpy.ndarray, SparseRecord or None
        Anything `numpy.asarray` takes is also accepted. None stands for an array without a shape.
    names : sequence of str
        One for each array, or none at all.
    np_shape : bool, optional
        True writes V3 records and False V2 records. MXNet reads the former only under ``np_shape`` and the latter only
        outside it, so all records of a file are alike. By default they are V3 if some dense array is 0-dimensional or
        has a dimension of 0, which are not plain shapes outside ``np_shape``, and V2 otherwise.

    Returns
    -------
    bytes

    Raises
    ------
    MXNetError
        If a dtype cannot be stored, the names do not fit, or a sparse array meets ``np_shape``.

    Notes
    -----
    int16, uint16, uint32 and uint64 are written with the type flags of MXNet 2; MXNet 1.x cannot read these.
    """
    return b"".join(_pieces(arrays, names, np_shape))


def dump(file: BinaryIO, arrays: Sequence[np.ndarray | SparseRecord | None], names: Sequence[str] = (), *,
         np_shape: bool | None = None) -> None:  # fmt: skip
    """Write to an open binary file what `dumps` returns, without holding all of it in memory.

    Parameters
    ----------
    file : binary file object
        What is open for writing, such as ``open(name, "wb")``.
    arrays, names, np_shape
        See `dumps`. They are checked before the first byte is written.
    """
    for piece in _pieces(arrays, names, np_shape):
        file.write(piece)


class _Reader:
    """A position in a buffer, and the words for what is wrong there."""

    def __init__(self, data: memoryview):
        self.data = data
        self.at = 0
        self.where = "the header"

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def fail(self, offset: int, what: str, found: str, expected: str):
        raise MXNetError(
            f"invalid .params data at byte {offset} (0x{offset:x}), {self.where}: {what}: found {found}, expected {expected}"
        )

    def take(self, size: int, what: str) -> memoryview:
        """Return the next `size` bytes. Every read passes here, so no length is believed before it is checked."""
        if size > self.left:
            self.fail(self.at, what, f"{self.left} bytes to the end of the file", f"{size}")
        self.at += size
        return self.data[self.at - size : self.at]

    def numbers(self, code: str, count: int, what: str) -> tuple[int, ...]:
        size = struct.calcsize("<" + code)
        return struct.unpack(f"<{count}{code}", self.take(count * size, what))

    def number(self, code: str, what: str) -> int:
        return self.numbers(code, 1, what)[0]

    def count(self, what: str, smallest: int) -> int:
        """Read how many items follow, each of which takes at least `smallest` bytes."""
        start = self.at
        count = self.number("Q", what)
        if count > self.left // smallest:
            self.fail(start, what, f"{count}", f"at most {self.left // smallest}, as only {self.left} bytes are left")
        return count


def _read_header(reader: _Reader) -> None:
    magic = reader.number("Q", "the magic number")
    if magic != _LIST_MAGIC:
        read = "mx.sym.load reads symbols" if reader.data[0] in b"{" else "mx.nd.load reads .params, .npy and .npz files"
        reader.fail(0, "the magic number", f"0x{magic:x}", f"0x{_LIST_MAGIC:x}; {read}")
    reader.number("Q", "the reserved word")  # MXNet does not look at its value


def _read_record(reader: _Reader) -> np.ndarray | SparseRecord | None:
    start = reader.at
    magic = reader.number("I", "the magic number")
    stype, storage_shape = "default", None
    if magic in (_V2, _V3):
        at = reader.at
        number = reader.number("i", "the storage type")
        if number not in _STORAGE:
            reader.fail(at, "the storage type", str(number), "0 (default), 1 (row_sparse) or 2 (csr)")
        stype = _STORAGE[number]
        if stype != "default":
            storage_shape = _read_shape(reader, "the storage shape", magic)
        shape = _read_shape(reader, "the shape", magic)
    elif magic == _V1:
        shape = _read_shape(reader, "the shape", magic)
    elif magic <= _MAX_NDIM:
        shape = reader.numbers("I", magic, "the shape") or None
    else:
        reader.fail(start, "the start of the record", f"0x{magic:x}", f"0x{_V1:x}, 0x{_V2:x}, 0x{_V3:x} or a rank")
    if shape is None:
        return None
    reader.numbers("i", 2, "the device")  # where the array lived is of no use to the reader
    dtype = _read_dtype(reader, "the type flag")
    if stype == "default":
        return _read_data(reader, shape, dtype, "the data")
    if storage_shape is None:
        reader.fail(start, "the storage shape", "none", f"the shape of the values of a {stype} array")
    return _read_sparse(reader, stype, shape, storage_shape, dtype, start)


def _read_shape(reader: _Reader, what: str, magic: int) -> tuple[int, ...] | None:
    """Read a shape, or None if it says that there is no array.

    That is a rank of -1 in a V3 record and 0 in an older one. MXNet also writes -1 for a dimension that is not known,
    and then nothing after the shape, so such an array is absent as well.
    """
    start = reader.at
    ndim = reader.number("i", f"{what}, its rank")
    if not -1 <= ndim <= _MAX_NDIM:
        reader.fail(start, f"{what}, its rank", str(ndim), f"0 to {_MAX_NDIM}")
    if ndim == -1 or (ndim == 0 and magic != _V3):
        return None
    start = reader.at
    shape = reader.numbers("q", ndim, what)
    if any(dim < -1 for dim in shape):
        reader.fail(start, what, str(shape), "no negative dimension")
    return None if -1 in shape else shape


def _read_dtype(reader: _Reader, what: str) -> np.dtype:
    start = reader.at
    flag = reader.number("i", what)
    if flag == BFLOAT16:
        return _bfloat16()
    if flag not in _DTYPES:
        reader.fail(start, what, str(flag), f"0 to {BFLOAT16}")
    return _DTYPES[flag]


def _bfloat16() -> np.dtype:
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        raise MXNetError("this file has a bfloat16 array; install ml_dtypes to read it") from None
    return np.dtype(bfloat16)


def _read_data(reader: _Reader, shape: tuple[int, ...], dtype: np.dtype, what: str) -> np.ndarray:
    # NumPy limits the size of an array as if its zero dimensions were one, so that its strides cannot overflow.
    if math.prod(dim or 1 for dim in shape) * dtype.itemsize > _MAX_BYTES:
        reader.fail(reader.at, what, f"shape {shape} and dtype {dtype}", "a size below 2**63 bytes")
    raw = reader.take(math.prod(shape) * dtype.itemsize, f"{what} of shape {shape} and dtype {dtype}")
    if not raw:
        return np.empty(shape, dtype)
    if dtype == np.bool_:
        # Only 0 and 1 are valid bool objects to NumPy, and the file may hold any byte.
        return np.not_equal(np.frombuffer(raw, np.uint8), 0).reshape(shape)
    # A copy: the source may be unaligned or read-only, and must not be kept alive as a whole by one array.
    return np.frombuffer(raw, dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=True)


def _read_sparse(reader, stype, shape, storage_shape, dtype, start) -> SparseRecord:
    described = []
    for name in _AUX_NAMES[stype]:
        aux_dtype = _read_dtype(reader, f"the type flag of {name}")
        described.append((name, aux_dtype, _read_shape(reader, f"the shape of {name}", _V3)))
        if described[-1][2] is None:
            reader.fail(reader.at, f"the shape of {name}", "none", "a vector")
    _, _, indices = described[-1]
    data = _read_data(reader, (*indices[:1], *storage_shape[1:]), dtype, "the values")
    aux = []
    for name, aux_dtype, aux_shape in described:
        aux.append(_read_data(reader, aux_shape, aux_dtype, name))
    record = SparseRecord(stype, shape, data, tuple(aux))
    problem = _sparse_problem(record)
    if problem:
        reader.fail(start, f"a {stype} array of shape {shape}", problem, "parts that fit together")
    return record


def _sparse_problem(record: SparseRecord) -> str | None:
    """Say why the parts of a sparse array do not fit together, or None if they do.

    The order of the indices is not looked at: MXNet stores what it was given, and reads it again.
    """
    if record.stype not in _AUX_NAMES:
        return f"storage type {record.stype!r}"
    shape, data, aux = record.shape, record.data, record.aux
    if len(aux) != len(_AUX_NAMES[record.stype]):
        return f"{len(aux)} auxiliary arrays"
    for name, array in zip(_AUX_NAMES[record.stype], aux, strict=True):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            return f"{name} of shape {array.shape} and dtype {array.dtype}, not a vector of integers"
    indices = aux[-1]
    if record.stype == "row_sparse":
        if not shape or data.shape != (len(indices), *shape[1:]):
            return f"values of shape {data.shape} for {len(indices)} indices"
        return _range_problem(indices, shape[0])
    if len(shape) != 2 or data.shape != indices.shape:
        return f"values of shape {data.shape} for {len(indices)} indices"
    indptr = aux[0]
    if not len(indptr) and not len(indices):
        return None  # a csr array that was never filled
    if len(indptr) != shape[0] + 1:
        return f"{len(indptr)} row pointers for {shape[0]} rows"
    if indptr[0] != 0 or indptr[-1] != len(indices) or np.any(indptr[1:] < indptr[:-1]):
        return f"row pointers that do not rise from 0 to {len(indices)}"
    return _range_problem(indices, shape[1])


def _range_problem(indices: np.ndarray, stop: int) -> str | None:
    if len(indices) and (indices.min() < 0 or indices.max() >= stop):
        return f"indices from {indices.min()} to {indices.max()} for a dimension of {stop}"
    return None


def _read_names(reader: _Reader, arrays: int) -> list[str]:
    start = reader.at
    count = reader.count("the number of names", smallest=8)
    if count not in (0, arrays):
        reader.fail(start, "the number of names", str(count), f"0 or {arrays}, the number of arrays")
    names = []
    for index in range(count):
        reader.where = f"name {index} of {count}"
        raw = bytes(reader.take(reader.count("its length", smallest=1), "its text"))
        try:
            names.append(raw.decode("utf-8"))
        except UnicodeDecodeError as error:
            offset = reader.at - len(raw) + error.start
            reader.fail(offset, "its text", f"byte 0x{raw[error.start]:02x}", "UTF-8")
    return names


def _pieces(arrays, names, np_shape) -> Iterator[bytes | memoryview]:
    """Yield the file in order, checking everything before the first piece: a failure leaves no half-written file."""
    arrays = [array if array is None or isinstance(array, SparseRecord) else np.asarray(array) for array in arrays]
    names = list(names)
    if names and len(names) != len(arrays):
        raise MXNetError(f"{len(names)} names for {len(arrays)} arrays; give one for each, or none")
    encoded = [_encode_name(name) for name in names]
    labels = [repr(name) for name in names] or [str(index) for index in range(len(arrays))]
    if np_shape is None:
        np_shape = _needs_np_shape(arrays)
    heads = [_record_head(array, label, np_shape) for array, label in zip(arrays, labels, strict=True)]

    yield struct.pack("<QQQ", _LIST_MAGIC, 0, len(arrays))
    for array, head in zip(arrays, heads, strict=True):
        yield head
        if isinstance(array, SparseRecord):
            for part in (array.data, *array.aux):
                yield _raw(part)
        elif array is not None:
            yield _raw(array)
    yield struct.pack("<Q", len(encoded))
    for name in encoded:
        yield struct.pack("<Q", len(name)) + name


def _encode_name(name: str) -> bytes:
    if not isinstance(name, str):
        raise MXNetError(f"the name of an array must be a str, not {name!r}")
    try:
        return name.encode("utf-8")
    except UnicodeEncodeError:
        raise MXNetError(f"the name {name!r} cannot be written as UTF-8") from None


def _needs_np_shape(arrays) -> bool:
    if any(isinstance(array, SparseRecord) for array in arrays):
        # MXNet stores no sparse array in V3. A dimension of 0 it writes to V2 too, and reads it back.
        return False
    return any(array is not None and 0 in (array.ndim, *array.shape) for array in arrays)


def _record_head(array: np.ndarray | SparseRecord | None, label: str, np_shape: bool) -> bytes:
    """Return what precedes the data of one record."""
    magic = _V3 if np_shape else _V2
    if array is None:
        return struct.pack("<Iii", magic, 0, -1 if np_shape else 0)
    cpu = struct.pack("<ii", 1, 0)
    if not isinstance(array, SparseRecord):
        if array.ndim == 0 and not np_shape:
            raise MXNetError(
                f"array {label} is 0-dimensional, which a file with sparse arrays cannot hold: reshape((1,)), or write it "
                "to another file"
            )
        head = struct.pack("<Ii", magic, 0) + _pack_shape(array.shape) + cpu
        return head + struct.pack("<i", _flag(array.dtype, label))
    if np_shape:
        raise MXNetError(f"array {label} is sparse; MXNet stores no sparse array with np_shape=True")
    problem = _sparse_problem(array)
    if problem:
        raise MXNetError(f"array {label}, {array.stype} of shape {array.shape}, is malformed: {problem}")
    head = struct.pack("<Ii", magic, _STORAGE_IDS[array.stype])
    head += _pack_shape(array.data.shape) + _pack_shape(array.shape) + cpu
    head += struct.pack("<i", _flag(array.data.dtype, label))
    for aux in array.aux:
        head += struct.pack("<i", _flag(aux.dtype, label)) + _pack_shape(aux.shape)
    return head


def _pack_shape(shape: tuple[int, ...]) -> bytes:
    return struct.pack(f"<i{len(shape)}q", len(shape), *shape)


def _flag(dtype: np.dtype, label: str) -> int:
    # By name, so that this module need not import ml_dtypes to recognise its bfloat16.
    if dtype.name == "bfloat16":
        return BFLOAT16
    flag = _FLAGS.get(dtype.newbyteorder("<"))
    if flag is None:
        known = ", ".join(known.name for known in _DTYPES.values())
        raise MXNetError(f"array {label} has dtype {dtype}, which cannot be stored; possible are {known}, bfloat16")
    return flag


def _raw(array: np.ndarray) -> bytes | memoryview:
    """Return the elements in C order and little-endian, without a copy where they already are."""
    flat = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1)
    return memoryview(flat.view(np.uint8)) if flat.size else b""
