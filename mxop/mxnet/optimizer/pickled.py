"""Pickles of optimizers' states, read as plain data.

Python's own unpickler is not used: five bytes make it allocate gigabytes, and the classes that it would have to be handed
(``bytearray``, ``numpy.dtype``) do what their arguments say.  Here no module is imported and nothing is called; an instruction
takes memory in proportion to the bytes that belong to it.  The instructions are those of which pickles of numbers, text,
collections and a few known classes consist.
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...support.errors import OpValueError, shown


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """What is neither a number nor text.

    The kinds are ``tuple``, ``list`` and ``dict`` (the content: a list of items, or of pairs), ``array`` (a name, or the bytes
    of a record of a ``.params`` file), ``optimizer`` and ``scheduler`` (name of the class, dict of attributes).  In a pickle
    there are also ``class`` (what it stands for, its name) and ``dtype`` (a byte order and a letter, as in :mod:`struct`).
    """

    kind: str
    content: Any

    def __repr__(self) -> str:
        return f"a {self.kind}"  # what it holds may be without end


def read(content: bytes) -> Any:
    """Return what a pickle holds: a number, text, bytes or a :class:`Node`; what occurs twice may be the same node.

    Raises
    ------
    OpValueError
        For a pickle that asks for other classes, or is damaged.
    """
    reader = _Reader(content)
    try:
        while (instruction := reader.take(1)) != b".":
            if instruction not in _RUN:
                raise ValueError(f"the instruction {instruction!r}, which states of an optimizer do not need")
            _RUN[instruction](reader)
        return reader.pop()
    except OpValueError:
        raise
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError, struct.error) as problem:
        raise OpValueError(f"a pickle that cannot be read, at byte {reader.at}: {shown(problem)}") from None


class _Reader:
    """A position in a pickle, and the operands that its instructions have left."""

    def __init__(self, content: bytes):
        self.content, self.at = content, 0
        self.stack: list[Any] = []
        self.push = self.stack.append
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.left = 4 * len(content)  # bytes that may be encoded from text, of which a reference takes two

    def take(self, count: int) -> bytes:
        """Return the next bytes.  Every read passes here, so no count is believed before it is checked."""
        if not 0 <= count <= len(self.content) - self.at:
            raise ValueError(f"{count} bytes are asked for, and {len(self.content) - self.at} are left")
        self.at += count
        return self.content[self.at - count : self.at]

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def counted(self, form: str) -> bytes:
        return self.take(self.number(form))

    def line(self) -> bytes:
        return self.take(self.content.index(b"\n", self.at) + 1 - self.at)[:-1]

    def pop(self) -> Any:
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise ValueError("an instruction has no operand")
        return self.stack.pop()

    def popped(self, kind: str) -> Any:
        """Return the content of the last operand, which has to be a node of this kind."""
        node = self.pop()
        if not (isinstance(node, Node) and node.kind == kind):
            raise ValueError(f"{shown(node)} where a {kind} is expected")
        return node.content

    def keep(self, at: int) -> None:
        self.push(self.pop())
        self.memo[at] = self.stack[-1]

    def marked(self) -> list[Any]:
        """Return the operands since the last mark."""
        at = self.marks.pop()
        found = self.stack[at:]
        del self.stack[at:]
        return found

    def extend(self, kind: str, items: list[Any]) -> None:
        self.push(node := self.pop())
        if node.kind != kind:
            raise ValueError(f"a {kind} is extended, and there is {shown(node)}")
        node.content.extend(items)

    def encoded(self, text: Any) -> bytes:
        """Return text as the bytes that it stands for in pickles of old protocols."""
        self.left -= len(text)
        if self.left < 0:
            raise ValueError("more bytes than the pickle has are made of its text")
        return text if isinstance(text, bytes) else text.encode("latin-1")

    # ---- what calls stand for
    def call(self) -> None:
        """Apply a class to a tuple of arguments."""
        arguments, (kind, name) = self.popped("tuple"), self.popped("class")
        if kind == "array":
            self.push(Node("array", None))
        elif kind == "bytes":
            self.push(self.encoded(arguments[0]) if arguments else b"")
        elif kind == "dtype":
            self.push(Node("dtype", ["=", _NUMBERS[arguments[0]]]))
        elif kind == "scalar":
            (form,) = [a.content for a in arguments[:1] if a.kind == "dtype"]
            self.push(struct.unpack("".join(form), self.encoded(arguments[1]))[0])
        elif kind == "new":
            self.made(arguments[0].content)
        else:
            raise ValueError(f"{name} is called")

    def made(self, what: Any) -> None:
        """Make an object without attributes yet."""
        kind, name = what
        if kind not in ("optimizer", "scheduler"):
            raise ValueError(f"an object of {name} is made")
        self.push(Node(kind, [name, Node("dict", [])]))

    def build(self) -> None:
        """Give an object its attributes."""
        state, node = self.pop(), self.pop()
        if node.kind == "array":
            (node.content,) = [value for key, value in state.content if key == "handle"]
        elif node.kind == "dtype":
            node.content[0] = {"<": "<", ">": ">"}.get(state.content[1], "=")
        elif node.kind in ("optimizer", "scheduler"):
            node.content[1] = state
        else:
            raise ValueError(f"attributes are given to {shown(node)}")
        self.push(node)


#: The letters of :mod:`struct` for the numbers of NumPy.
_NUMBERS = {"b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q", "f2": "e",
            "f4": "f", "f8": "d"}  # fmt: skip
#: What classes and functions stand for, by the first part of their module's name.
_KNOWN = {
    ("builtins", "bytearray"): "bytes", ("builtins", "bytes"): "bytes", ("_codecs", "encode"): "bytes",
    ("numpy", "dtype"): "dtype", ("numpy", "scalar"): "scalar", ("copyreg", "_reconstructor"): "new",
    ("builtins", "object"): "object",
}  # fmt: skip
_PYTHON_2 = {"__builtin__": "builtins", "copy_reg": "copyreg"}
_ARRAYS = ("NDArray", "_ndarray_cls", "CSRNDArray", "RowSparseNDArray", "ndarray")


def _class(module: str, name: str) -> Node:
    """Return what stands for a class that a pickle asks for."""
    package = module.partition(".")[0]
    kind = _KNOWN.get((_PYTHON_2.get(package, package), name))
    if module.startswith(("mxnet.ndarray", "mxnet.numpy")) and name in _ARRAYS:
        kind = "array"
    elif module.startswith("mxnet.optimizer"):
        kind = "optimizer"
    elif module == "mxnet.lr_scheduler":
        kind = "scheduler"
    if kind is None:
        asked = shown(f"{module}.{name}")
        raise OpValueError(f"the pickle asks for {asked}, which states of an optimizer do not need")
    return Node("class", (kind, name))


def _pairs(items: list[Any]) -> list[list[Any]]:
    return [[key, value] for key, value in zip(items[::2], items[1::2], strict=True)]


def _digits(line: bytes) -> int | bool:
    return line == b"01" if line in (b"00", b"01") else int(line)


def _quoted(line: bytes) -> str:
    if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in b"'\"":
        raise ValueError("text without quotes")
    return codecs.escape_decode(line[1:-1])[0].decode("latin-1")  # type: ignore[attr-defined]


def _text(form: str, encoding: str) -> Callable[[_Reader], None]:
    return lambda r: r.push(r.counted(form).decode(encoding, "surrogatepass" if encoding == "utf-8" else "strict"))


def _integer(form: str) -> Callable[[_Reader], None]:
    return lambda r: r.push(int.from_bytes(r.counted(form), "little", signed=True))


#: The instructions; the module pickletools of Python describes them.
_RUN: dict[bytes, Callable[[_Reader], Any]] = {
    # numbers, text, bytes
    b"N": lambda r: r.push(None), b"\x88": lambda r: r.push(True), b"\x89": lambda r: r.push(False),
    b"K": lambda r: r.push(r.number("<B")), b"M": lambda r: r.push(r.number("<H")), b"J": lambda r: r.push(r.number("<i")),
    b"I": lambda r: r.push(_digits(r.line())), b"L": lambda r: r.push(int(r.line().rstrip(b"L"))),
    b"\x8a": _integer("<B"), b"\x8b": _integer("<i"),
    b"G": lambda r: r.push(r.number(">d")), b"F": lambda r: r.push(float(r.line())),
    b"X": _text("<I", "utf-8"), b"\x8c": _text("<B", "utf-8"), b"\x8d": _text("<Q", "utf-8"),
    b"T": _text("<i", "latin-1"), b"U": _text("<B", "latin-1"),
    b"S": lambda r: r.push(_quoted(r.line())), b"V": lambda r: r.push(r.line().decode("raw-unicode-escape")),
    b"B": lambda r: r.push(r.counted("<I")), b"C": lambda r: r.push(r.counted("<B")),
    b"\x8e": lambda r: r.push(r.counted("<Q")), b"\x96": lambda r: r.push(r.counted("<Q")),
    # collections
    b"(": lambda r: r.marks.append(len(r.stack)),
    b")": lambda r: r.push(Node("tuple", [])), b"]": lambda r: r.push(Node("list", [])),
    b"}": lambda r: r.push(Node("dict", [])),
    b"t": lambda r: r.push(Node("tuple", r.marked())), b"l": lambda r: r.push(Node("list", r.marked())),
    b"d": lambda r: r.push(Node("dict", _pairs(r.marked()))),
    b"\x85": lambda r: r.push(Node("tuple", [r.pop()])), b"\x86": lambda r: r.push(Node("tuple", [r.pop(), r.pop()][::-1])),
    b"\x87": lambda r: r.push(Node("tuple", [r.pop(), r.pop(), r.pop()][::-1])),
    b"a": lambda r: r.extend("list", [r.pop()]), b"e": lambda r: r.extend("list", r.marked()),
    b"s": lambda r: r.extend("dict", _pairs([r.pop(), r.pop()][::-1])), b"u": lambda r: r.extend("dict", _pairs(r.marked())),
    # operands that are used again
    b"p": lambda r: r.keep(int(r.line())), b"q": lambda r: r.keep(r.number("<B")), b"r": lambda r: r.keep(r.number("<I")),
    b"\x94": lambda r: r.keep(len(r.memo)),
    b"g": lambda r: r.push(r.memo[int(r.line())]), b"h": lambda r: r.push(r.memo[r.number("<B")]),
    b"j": lambda r: r.push(r.memo[r.number("<I")]),
    # classes and objects
    b"c": lambda r: r.push(_class(r.line().decode(), r.line().decode())),
    b"\x93": lambda r: r.push(_class(*[r.pop(), r.pop()][::-1])),
    b"R": lambda r: r.call(), b"\x81": lambda r: r.made((r.pop(), r.popped("class"))[1]), b"b": lambda r: r.build(),
    # what says how the pickle is to be read: the protocol, the size of the next part
    b"\x80": lambda r: r.take(1), b"\x95": lambda r: r.take(8),
}  # fmt: skip
