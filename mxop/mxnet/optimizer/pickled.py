"""Pickles of optimizers' states, read as plain data.

Python's own unpickler is not used: five bytes make it allocate gigabytes, and the classes that it would have to be handed
(``bytearray``, ``numpy.dtype``) do what their arguments say.  Here no module is imported and nothing is called; an instruction
takes memory in proportion to the bytes that belong to it.  The instructions are those of which pickles of numbers, text,
collections and a few known classes consist; Python's ``pickletools`` says what stands behind each.
"""

from __future__ import annotations

import codecs
import io
import pickletools
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
        while (instruction := reader.file.read(1)) != b".":
            reader.run(instruction)
        return reader.pop()
    except OpValueError:
        raise
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError, struct.error) as problem:
        raise OpValueError(f"a pickle that cannot be read, at byte {reader.file.tell()}: {shown(problem)}") from None


class _Reader:
    """A position in a pickle, and the operands that its instructions have left."""

    def __init__(self, content: bytes):
        self.file = io.BytesIO(content)
        self.stack: list[Any] = []
        self.push = self.stack.append
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.left = 4 * len(content)  # bytes that may be encoded from text, of which a reference takes two

    def run(self, instruction: bytes) -> None:
        """Run an instruction with its argument, which stands behind it."""
        known = pickletools.code2op.get(instruction.decode("latin-1"))
        if known is None or known.name not in _RUN:
            raise ValueError(f"the instruction {instruction!r}, which states of an optimizer do not need")
        reader = None if known.arg is None else _quoted if known.name == "STRING" else known.arg.reader
        _RUN[known.name](self, *(() if reader is None else (reader(self.file),)))

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


def _quoted(file: io.BytesIO) -> str:
    """Return text in quotes, which may be bytes of Python 2: pickletools takes ASCII alone."""
    line = pickletools.read_stringnl(file, decode=False)
    return codecs.escape_decode(line)[0].decode("latin-1")  # type: ignore[attr-defined]


_VALUES = (
    "BININT1", "BININT2", "BININT", "INT", "LONG", "LONG1", "LONG4", "BINFLOAT", "FLOAT", "BINUNICODE", "SHORT_BINUNICODE",
    "BINUNICODE8", "UNICODE", "BINSTRING", "SHORT_BINSTRING", "STRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
)  # fmt: skip
#: The instructions, by the names that pickletools has for them.
_RUN: dict[str, Callable[..., Any]] = {
    # numbers, text, bytes
    **dict.fromkeys(_VALUES, lambda r, value: r.push(value)),
    "BYTEARRAY8": lambda r, value: r.push(bytes(value)),
    "NONE": lambda r: r.push(None), "NEWTRUE": lambda r: r.push(True), "NEWFALSE": lambda r: r.push(False),
    # collections
    "MARK": lambda r: r.marks.append(len(r.stack)),
    "EMPTY_TUPLE": lambda r: r.push(Node("tuple", [])), "EMPTY_LIST": lambda r: r.push(Node("list", [])),
    "EMPTY_DICT": lambda r: r.push(Node("dict", [])),
    "TUPLE": lambda r: r.push(Node("tuple", r.marked())), "LIST": lambda r: r.push(Node("list", r.marked())),
    "DICT": lambda r: r.push(Node("dict", _pairs(r.marked()))),
    "TUPLE1": lambda r: r.push(Node("tuple", [r.pop()])), "TUPLE2": lambda r: r.push(Node("tuple", [r.pop(), r.pop()][::-1])),
    "TUPLE3": lambda r: r.push(Node("tuple", [r.pop(), r.pop(), r.pop()][::-1])),
    "APPEND": lambda r: r.extend("list", [r.pop()]), "APPENDS": lambda r: r.extend("list", r.marked()),
    "SETITEM": lambda r: r.extend("dict", _pairs([r.pop(), r.pop()][::-1])),
    "SETITEMS": lambda r: r.extend("dict", _pairs(r.marked())),
    # operands that are used again
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), _Reader.keep), "MEMOIZE": lambda r: r.keep(len(r.memo)),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), lambda r, at: r.push(r.memo[at])),
    # classes and objects
    "GLOBAL": lambda r, names: r.push(_class(*names.split(" ", 1))),
    "STACK_GLOBAL": lambda r: r.push(_class(*[r.pop(), r.pop()][::-1])),
    "REDUCE": _Reader.call, "NEWOBJ": lambda r: r.made((r.pop(), r.popped("class"))[1]), "BUILD": _Reader.build,
    # what says how the pickle is to be read: the protocol, the size of the next part
    **dict.fromkeys(("PROTO", "FRAME"), lambda r, number: None),
}  # fmt: skip
