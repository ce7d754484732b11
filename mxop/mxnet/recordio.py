"""``mx.recordio``: files of records, one after the other or by key.

A record is a magic word, a word with its length in the lower 29 bits, its bytes, and zeros up to a multiple of four.  Where
the magic word is among the bytes, at such a multiple, the record is cut there, and the upper bits say which part this is.
"""

from __future__ import annotations

import os
import struct
import sys
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from ..support.errors import MXNetError, OpLookupError, OpTypeError, OpValueError, all_end_at_caller, shown
from ..support.files import path_of, reading, reporting
from ..support.missing import hooks

_MAGIC = struct.pack("<I", 0xCED7230A)
_MOST = (1 << 29) - 1
_WHOLE, _FIRST, _MIDDLE, _LAST = range(4)


class MXRecordIO:
    """A file of records, which is read or written from begin to end.

    Parameters
    ----------
    uri : str
        The file's name.
    flag : {'r', 'w'}

    Examples
    --------
    >>> import os, tempfile
    >>> name = os.path.join(tempfile.mkdtemp(), "x.rec")
    >>> writer = mx.recordio.MXRecordIO(name, "w")
    >>> for word in (b"one", b"two"):
    ...     writer.write(word)
    >>> writer.close()
    >>> reader = mx.recordio.MXRecordIO(name, "r")
    >>> reader.read(), reader.read(), reader.read()
    (b'one', b'two', None)
    """

    def __init__(self, uri: Any, flag: str):
        if flag not in ("r", "w"):
            raise OpValueError(f"{type(self).__name__}: flag={shown(flag)} is neither 'r' nor 'w'")
        self.uri, self.flag, self.writable = path_of(uri, type(self).__name__), flag, flag == "w"
        self.is_open = False
        self.open()

    def open(self) -> None:
        """Open the file at its begin; what was in one that is written is lost."""
        with reporting(type(self).__name__, self.uri):
            self._file = open(self.uri, "wb") if self.writable else reading(self.uri)  # noqa: SIM115
        self.is_open = True

    def close(self) -> None:
        """Close the file."""
        if self.is_open:
            self.is_open = False
            self._file.close()

    def __del__(self) -> None:
        if getattr(self, "is_open", False):
            self.close()

    def __getstate__(self) -> dict[str, Any]:
        self._may("be pickled", False)
        return {**self.__dict__, "_file": None, "is_open": False, "_was_open": self.is_open}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.__dict__.pop("_was_open"):
            self.open()

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def reset(self) -> None:
        """Go back to the begin."""
        self.close()
        self.open()

    def tell(self) -> int:
        """Return where the next record will be written."""
        self._may("tell where it writes", True)
        return self._file.tell()

    def _may(self, what: str, writing: bool) -> None:
        if self.writable != writing:
            raise MXNetError(f"{type(self).__name__}: {self.uri!r} is open to {'write' if self.writable else 'read'}, "
                             f"so it cannot {what}")  # fmt: skip

    def write(self, buf: bytes) -> None:
        """Write a record."""
        self._may("write", True)
        data = bytes(buf) if isinstance(buf, (bytes, bytearray, memoryview)) else None
        if data is None:
            raise OpTypeError(f"{type(self).__name__}.write: {shown(buf)} is a {type(buf).__name__}; expected bytes")
        if len(data) > _MOST:
            raise OpValueError(f"{type(self).__name__}.write: a record has at most {_MOST} bytes, not {len(data)}")
        parts, begin = [], 0
        at = data.find(_MAGIC)
        while at >= 0:
            if at % 4 == 0:
                parts.append(data[begin:at])
                begin = at + 4
            at = data.find(_MAGIC, at + (4 if at % 4 == 0 else 1))
        parts.append(data[begin:])
        for k, part in enumerate(parts):
            which = _WHOLE if len(parts) == 1 else _FIRST if k == 0 else _LAST if k == len(parts) - 1 else _MIDDLE
            self._file.write(_MAGIC + struct.pack("<I", which << 29 | len(part)) + part + b"\0" * (-len(part) % 4))

    def read(self) -> bytes | None:
        """Return the next record, None at the end."""
        self._may("read", False)
        which, data = self._part(True)
        if data is None or which == _WHOLE:
            return data
        parts = [data]
        while which != _LAST:
            which, data = self._part(False)
            parts.append(data)
        return _MAGIC.join(parts)

    def _read_at(self, place: int) -> bytes | None:
        """Return the record that begins at a byte of the file."""
        self._file.seek(place)
        return self.read()

    def _places(self) -> list[int]:
        """Return at which bytes records begin."""
        found, at, size = [], 0, self._size()
        while at < size:
            self._file.seek(at)
            head = self._file.read(8)
            if len(head) < 8 or head[:4] != _MAGIC:
                raise OpValueError(f"{type(self).__name__}: {self.uri!r} has no record at byte {at}; is it whole?")
            which, length = divmod(struct.unpack("<I", head[4:])[0], 1 << 29)
            if which in (_WHOLE, _FIRST):
                found.append(at)
            at += 8 + length + -length % 4
        return found

    def _part(self, first: bool) -> tuple[int, Any]:
        head = self._file.read(8)
        if not head and first:
            return _WHOLE, None
        if len(head) == 8 and head[:4] == _MAGIC:
            which, length = divmod(struct.unpack("<I", head[4:])[0], 1 << 29)
            if (which in (_WHOLE, _FIRST)) == first and which <= _LAST and length <= self._size() - self._file.tell():
                data = self._file.read(length)
                self._file.read(-length % 4)
                return which, data
        raise OpValueError(f"{type(self).__name__}: {self.uri!r} has no record before byte {self._file.tell()}; is it whole?")


class MXIndexedRecordIO(MXRecordIO):
    """A file of records that are read by key; another file says where each is.

    Parameters
    ----------
    idx_path : str
        The name of the other file: a line for each record, key and place.
    uri : str
    flag : {'r', 'w'}
    key_type : type
        What makes a key of text.
    """

    _index: Any = None  # the other file, while it is written

    def __init__(self, idx_path: Any, uri: Any, flag: str, key_type: Callable[[str], Any] = int):
        self.idx_path, self.key_type = path_of(idx_path, type(self).__name__), key_type
        self.idx: dict[Any, int] = {}
        self.keys: list[Any] = []
        super().__init__(uri, flag)

    def open(self) -> None:
        super().open()
        self.idx, self.keys = {}, []
        if self.writable:
            with reporting(type(self).__name__, self.idx_path):
                self._index = open(self.idx_path, "w", encoding="utf-8")  # noqa: SIM115
            return
        size = self._size()
        with reporting(type(self).__name__, self.idx_path), reading(self.idx_path) as lines:
            for number, line in enumerate(lines, 1):
                try:
                    key, place = line.decode().rstrip("\r\n").split("\t")[:2]
                    if not 0 <= (at := int(place)) <= size:
                        raise ValueError(f"a record at byte {shown(at)} of {self.uri!r}, which has {size}")
                    self.idx[self.key_type(key)] = at
                except ValueError as problem:
                    raise OpValueError(f"MXIndexedRecordIO: {self.idx_path!r}, line {number}: {problem}") from None
        self.keys = list(self.idx)

    def close(self) -> None:
        if self.is_open and self._index is not None:
            self._index.close()
        super().close()

    def seek(self, idx: Any) -> None:
        """Go to the record of a key."""
        self._may("seek", False)
        if idx not in self.idx:
            raise OpLookupError(f"MXIndexedRecordIO: there is no record {shown(idx)} in {self.idx_path!r}")
        self._file.seek(self.idx[idx])

    def read_idx(self, idx: Any) -> bytes:
        """Return the record of a key."""
        self.seek(idx)
        if (found := self.read()) is None:
            raise OpValueError(f"MXIndexedRecordIO: {self.uri!r} ends where {self.idx_path!r} has record {shown(idx)}")
        return found

    def write_idx(self, idx: Any, buf: bytes) -> None:
        """Write a record under a key."""
        key, place = self.key_type(idx), self.tell()  # type: ignore[arg-type]
        self.write(buf)
        self._index.write(f"{key}\t{place}\n")
        self.idx[key] = place
        self.keys.append(key)


#: What stands before an image in a record: a number of labels (0: the one that is the label), label, number, second number.
IRHeader = namedtuple("HEADER", ["flag", "label", "id", "id2"])
_IR_FORMAT = "IfQQ"  # as MXNet's programs read it
_HEADER = struct.Struct(f"<{_IR_FORMAT}")
_IR_SIZE = _HEADER.size


def pack(header: tuple, s: bytes) -> bytes:
    """Return header and bytes as a record.

    Examples
    --------
    >>> record = mx.recordio.pack(mx.recordio.IRHeader(0, 4.0, 2574, 0), b"image")
    >>> mx.recordio.unpack(record)
    (HEADER(flag=0, label=4.0, id=2574, id2=0), b'image')
    """
    flag, label, number, second = header
    labels = b""
    if not isinstance(label, (int, float, np.number)):
        several = np.asarray(label, "<f4").ravel()
        flag, label, labels = several.size, 0, several.tobytes()
    try:
        return _HEADER.pack(flag, float(label), number, second) + labels + bytes(s)
    except struct.error as problem:
        raise OpValueError(f"recordio.pack: {shown(tuple(header))} is not a header: {problem}") from None


def unpack(s: bytes) -> tuple[IRHeader, bytes]:
    """Return header and bytes of a record; several labels are an array of float32."""
    if not isinstance(s, (bytes, bytearray, memoryview)):
        raise OpTypeError(f"recordio.unpack: a record is bytes, got {type(s).__name__}")
    if len(s) < _HEADER.size:
        raise OpValueError(f"recordio.unpack: {len(s)} bytes hold no header, which has {_HEADER.size}")
    header, rest = IRHeader(*_HEADER.unpack(s[: _HEADER.size])), s[_HEADER.size :]
    if not header.flag:
        return header, rest
    if len(rest) < 4 * header.flag:
        raise OpValueError(f"recordio.unpack: the header says {header.flag} labels, for which there are {len(rest)} bytes")
    return header._replace(label=np.frombuffer(rest, "<f4", header.flag)), rest[4 * header.flag :]


def _cv2() -> Any:
    """Return OpenCV, or None where it is not installed: then Pillow does its work."""
    try:
        import cv2
    except ImportError:
        return None
    return cv2


def pack_img(header: tuple, img: np.ndarray, quality: int = 95, img_fmt: str = ".jpg") -> bytes:
    """Return header and an image, as a JPEG or PNG, as a record; channels are blue, green and red, as OpenCV has them.

    It needs OpenCV or Pillow.
    """
    jpeg = img_fmt.lower() in (".jpg", ".jpeg")
    if not jpeg and img_fmt.lower() != ".png":
        raise OpValueError(f"recordio.pack_img: img_fmt={shown(img_fmt)} is none of .jpg, .jpeg, .png")
    if (cv2 := _cv2()) is None:
        from .image.decoding import encoded

        return pack(header, encoded(img, "JPEG" if jpeg else "PNG", quality if jpeg else min(quality, 9), "recordio.pack_img"))
    done, data = cv2.imencode(img_fmt, img, [cv2.IMWRITE_JPEG_QUALITY if jpeg else cv2.IMWRITE_PNG_COMPRESSION, quality])
    if not done:
        raise MXNetError("recordio.pack_img: OpenCV could not pack the image")
    return pack(header, data.tobytes())


def unpack_img(s: bytes, iscolor: int = -1) -> tuple[IRHeader, np.ndarray]:
    """Return header and image of a record, in blue, green and red; `iscolor` is OpenCV's: 1, 0 for grey, -1 for what it is."""
    (header, data), cv2 = unpack(s), _cv2()
    if cv2 is None:
        from .image.decoding import decoded

        if iscolor not in (-1, 0, 1):
            raise OpValueError(f"recordio.unpack_img: iscolor={shown(iscolor)}; expected 1, 0 or -1")
        found = decoded(bytes(data), iscolor, f"recordio.unpack_img: record {header.id}", to_rgb=False)
        return header, found[:, :, 0] if iscolor == 0 else found
    try:
        image = cv2.imdecode(np.frombuffer(data, np.uint8), iscolor)
    except cv2.error as problem:
        raise OpValueError(f"recordio.unpack_img: OpenCV cannot read the image of record {header.id}: {problem}") from None
    if image is None:
        raise OpValueError(f"recordio.unpack_img: the {len(data)} bytes of record {header.id} are no image that OpenCV knows")
    return header, image


for _class in (MXRecordIO, MXIndexedRecordIO):
    all_end_at_caller(_class)
all_end_at_caller(sys.modules[__name__], ["pack", "pack_img", "unpack", "unpack_img"])

__all__ = ["IRHeader", "MXIndexedRecordIO", "MXRecordIO", "pack", "pack_img", "unpack", "unpack_img"]

__getattr__, __dir__ = hooks(globals(), __all__)
