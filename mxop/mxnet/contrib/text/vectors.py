"""Files of vectors: lines of a token and numbers, as they are published or written by hand.

The files come from others, so a line is read only up to a limit, and every problem names it.
"""

from __future__ import annotations

import io
import os
import warnings
import zipfile
import zlib
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from ....support import limits
from ....support.errors import MXNetError, OpValueError, shown
from ....support.files import reading, reporting

#: Characters of a line: a hundred times those of the longest vectors that are published.
LONGEST = 1 << 20
#: Kinds of packing that zipfile unpacks piece by piece; of others, a kilobyte may become gigabytes at once.
BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read(
    path: str, delimiter: str, unknown: Any, encoding: str = "utf8", archive: str | None = None
) -> tuple[list[str], np.ndarray, Any]:
    """Return the tokens of a file, their vectors, and that of the unknown token, None where the file has none.

    Of a token that stands there twice the first vector counts; a line with one number is a header.

    Parameters
    ----------
    archive : str, optional
        A zip file that has the file, which is read from there.

    Raises
    ------
    OpValueError
        For what is no such file; the line is named.
    """
    table = _Table(path, unknown)
    with reporting("embedding", archive or path), _opened(path, encoding, archive) as file:
        table.read(file, delimiter, encoding)
    return table.whole()


@contextmanager
def _opened(path: str, encoding: str, archive: str | None) -> Iterator[Any]:
    try:
        if archive is None:
            with reading(path, "r", encoding=encoding) as file:
                yield file
        else:
            with reading(archive) as whole, zipfile.ZipFile(whole) as packed:
                member = packed.getinfo(os.path.basename(path))
                most = limits.dense_bytes(os.fstat(whole.fileno()).st_size)
                if member.file_size > most:  # of which zipfile returns no more
                    raise limits.too_packed(f"embedding: {archive!r}", most)
                if member.compress_type not in BOUNDED:
                    raise OpValueError(f"embedding: {archive!r} is packed otherwise than by deflate; unpack it first")
                with packed.open(member) as file:
                    yield io.TextIOWrapper(file, encoding)
    except LookupError as problem:  # no such encoding, no such file in the archive
        raise OpValueError(f"embedding: {archive or path!r}: {problem.args[0]}") from None
    except MXNetError:
        raise
    except (zipfile.BadZipFile, EOFError, RuntimeError, zlib.error, ValueError) as problem:
        what = "is not a zip file that can be read" if archive else "cannot be read"
        raise OpValueError(f"embedding: {archive or path!r} {what}: {problem}") from None


class _Table:
    """Tokens and vectors, as far as a file has been read."""

    def __init__(self, path: str, unknown: Any):
        self.path, self.unknown, self.line = path, unknown, 0
        self.tokens: dict[str, None] = {}  # in their order
        self.numbers = array("f")
        self.length: int | None = None
        self.of_unknown: array | None = None

    def read(self, file: Any, delimiter: str, encoding: str) -> None:
        while True:
            self.line += 1
            try:
                line = file.readline(LONGEST)
            except UnicodeError as problem:
                self.refuse(f"is not text in {encoding!r}: {problem}")
            if not line:
                return
            if len(line) == LONGEST:
                self.refuse(f"has {LONGEST:,} characters and more")
            self.add(*self.parsed(line.rstrip(), delimiter))

    def parsed(self, line: str, delimiter: str) -> tuple[str, array]:
        token, *numbers = line.split(delimiter)
        if not numbers:
            self.refuse(f"{shown(line, 60)} has no {delimiter!r} between a token and numbers")
        try:
            return token, array("f", map(float, numbers))
        except ValueError as problem:
            self.refuse(f"token {shown(token, 60)}: {problem}")

    def add(self, token: str, vector: array) -> None:
        if token in self.tokens or (token == self.unknown and self.of_unknown is not None):
            return self.skip(f"token {shown(token, 60)} has a vector already")
        if token == self.unknown:
            self.of_unknown = vector
            return None
        if len(vector) == 1:
            return self.skip(f"token {shown(token, 60)} with one number is taken for a header")
        self.length = self.length or len(vector)
        if len(vector) != self.length:
            self.refuse(f"token {shown(token, 60)} has {len(vector)} numbers, those before have {self.length}")
        self.tokens[token] = None
        self.numbers.extend(vector)

    def whole(self) -> tuple[list[str], np.ndarray, Any]:
        if self.length is None:
            raise OpValueError(f"embedding: {self.path!r} has no line with a token and a vector")
        vectors = np.frombuffer(self.numbers, np.float32).reshape(-1, self.length)
        if self.of_unknown is not None and len(self.of_unknown) != self.length:
            found = f"the vector of {self.unknown!r} has {len(self.of_unknown)} numbers"
            raise OpValueError(f"embedding: {self.path!r}: {found}, those of the others have {self.length}")
        return list(self.tokens), vectors, self.of_unknown

    def refuse(self, why: str) -> NoReturn:
        raise OpValueError(f"embedding: {self.path!r}, line {self.line}: {why}") from None

    def skip(self, why: str) -> None:
        warnings.warn(f"embedding: {self.path!r}, line {self.line}: {why}, and is left out", UserWarning, stacklevel=6)


__all__ = ["read"]
