"""Where the elements of operands lie, as kernels go through them: in few dimensions, and in whole words where they may."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from ..opdef import contiguous_strides

BLOCK = 256  # threads
WORD = 16  # bytes that a thread reads or writes at once
TILE = 32  # elements of a row, and rows, that a block of threads turns around at once
SHORT_INDEX = 2**31  # elements that 32 bits count

Numbers = list[int]


class Layout(NamedTuple):
    """What the text of a kernel over elements depends on, beside its operation.

    Attributes
    ----------
    ways : tuple of str
        How each operand is gone through: ``"c"``, in C order without gaps; otherwise a letter for each dimension, ``"0"`` for
        one along which it does not move, ``"d"`` for the last where its elements follow each other, ``"s"`` for any other.
    width : int
        Elements of a chunk, which lie along the last dimension.
    chunks : int
        Chunks of each thread.
    wide : bool
        Indices need 64 bits.
    drawn : bool
        Each thread has four elements of which the random bits are made together.
    """

    ways: tuple[str, ...]
    width: int
    chunks: int
    wide: bool
    drawn: bool = False

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return max((len(way) for way in self.ways if way != "c"), default=1)


def collapse(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[Numbers, list[Numbers]]:
    """Leave out dimensions of size 1 and join neighbours along which all operands step alike.

    Parameters
    ----------
    shape : sequence of int
    strides : sequence of sequences of int
        Of each operand, one for each dimension; 0 where it does not move.

    Examples
    --------
    >>> collapse((2, 1, 3, 4), [(12, 12, 4, 1), (4, 4, 0, 1)])
    ([2, 3, 4], [[12, 4, 1], [4, 0, 1]])
    >>> collapse((2, 3, 4), [(12, 4, 1), (0, 0, 0)])
    ([24], [[1], [0]])
    """
    dims: Numbers = []
    steps: list[Numbers] = [[] for _ in strides]
    for k, size in enumerate(shape):
        if size == 1:
            continue
        if dims and all(mine[-1] == theirs[k] * size for mine, theirs in zip(steps, strides, strict=True)):
            dims[-1] *= size
            for mine, theirs in zip(steps, strides, strict=True):
                mine[-1] = theirs[k]
        else:
            dims.append(size)
            for mine, theirs in zip(steps, strides, strict=True):
                mine.append(theirs[k])
    if not dims:
        return [1], [[0] for _ in strides]
    return dims, steps


def apart(index: str, sizes: Sequence[str], name: str) -> tuple[list[str], list[str]]:
    """Return the lines that take an index apart, and its parts, from the outermost dimension on.

    Parameters
    ----------
    sizes : sequence of str
        Texts of the sizes of all dimensions but the outermost.
    name : str
        What the parts are called, before their numbers.

    Examples
    --------
    >>> apart("i", ["n1"], "c")
    (['const mx_index c1 = i % n1, c1_rest = i / n1;'], ['c1_rest', 'c1'])
    """
    lines: list[str] = []
    parts: list[str] = []
    for d in range(len(sizes), 0, -1):
        part, rest = f"{name}{d}", f"{name}{d}_rest"
        lines.append(f"const mx_index {part} = {index} % {sizes[d - 1]}, {rest} = {index} / {sizes[d - 1]};")
        parts.append(part)
        index = rest
    return lines, [index, *reversed(parts)]


def steps_of(way: str, name: str) -> list[str]:
    """Return the text of the stride along each dimension: nothing, 1, or what a kernel is told by this name."""
    return ["" if letter == "0" else "1" if letter == "d" else f"{name}_{d}" for d, letter in enumerate(way)]


class Tiles(NamedTuple):
    """How a kernel goes through two operands of which the first lies so that its elements follow each other along another
    dimension than the last, along which those of the second do.

    Attributes
    ----------
    others : int
        Number of dimensions beside these two.
    wide : bool
        Indices need 64 bits.
    """

    others: int
    wide: bool


def tiled(dims: Numbers, source: Numbers, target: Numbers) -> tuple[Tiles, Numbers, int] | None:
    """Return how a kernel goes through operands by tiles, the numbers that it is told, and its blocks; None if it should not.

    Parameters
    ----------
    dims : list of int
        Without dimensions of size 1, neighbours joined where they can be (:func:`collapse`).
    source, target : list of int
        Strides, in elements.
    """
    last = len(dims) - 1
    at = source.index(1) if 1 in source else last
    if at == last or target[last] != 1 or min(dims[at], dims[last]) < TILE // 2:
        return None
    others = [d for d in range(last) if d != at]
    numbers = [dims[at], dims[last], source[last], target[at], *(n for d in others for n in (dims[d], source[d], target[d]))]
    blocks = -(-dims[at] // TILE) * -(-dims[last] // TILE)
    for d in others:
        blocks *= dims[d]
    reach = max(sum(abs(step) * size for step, size in zip(steps, dims, strict=True)) for steps in (source, target))
    return Tiles(len(others), reach >= SHORT_INDEX), numbers, blocks


def place_of(parts: Sequence[str], steps: Sequence[str]) -> str:
    """Return the text of where the element of these indices lies."""
    terms = [part if step == "1" else f"{part} * {step}" for part, step in zip(parts, steps, strict=True) if step]
    return " + ".join(terms) or "0"


def way_of(steps: Sequence[int]) -> str:
    """Return a letter for each dimension; see :class:`Layout`."""
    last = len(steps) - 1
    return "".join("0" if s == 0 else "d" if s == 1 and d == last else "s" for d, s in enumerate(steps))


def told(way: str, steps: Sequence[int]) -> Numbers:
    """Return the strides that a kernel is told."""
    return [step for letter, step in zip(way, steps, strict=True) if letter == "s"]


def _in_order(dims: Numbers, steps: Numbers) -> bool:
    return tuple(steps) == contiguous_strides(tuple(dims))


def _width(dims: Numbers, steps: list[Numbers], most: int) -> int:
    """Return how many elements a chunk may have, so that chunks end with the rows and begin where words do."""
    if len(dims) == 1:
        return most if dims[0] >= most else 1
    apart = [dims[-1]] + [step for mine in steps if mine[-1] == 1 for step in mine[:-1]]
    while most > 1 and any(step % most for step in apart):
        most //= 2
    return most


def lay(
    shape: Sequence[int], strides: Sequence[Sequence[int]], itemsize: int, aligned: bool, drawn: bool = False
) -> tuple[Layout, Numbers, int]:
    """Return how a kernel goes through operands, the numbers that it is told, and its blocks.

    Parameters
    ----------
    shape : sequence of int
        Of the results, to which all broadcast.
    strides : sequence of sequences of int
        Of each operand, in elements; 0 along dimensions to which it broadcasts.
    itemsize : int
        Bytes of the largest element.
    aligned : bool
        All operands begin where a word does.
    drawn : bool, default False
        Elements are random numbers.
    """
    dims, steps = collapse(shape, strides)
    width = _width(dims, steps, max(WORD // itemsize, 1) if aligned and not drawn else 1)
    chunks = 4 if drawn else min(max(2 * WORD // (width * itemsize), 1), 8)
    total = prod(dims)
    ways = tuple("c" if _in_order(dims, mine) else way_of(mine) for mine in steps)
    counted = total // width
    while not drawn and chunks > 1 and counted <= BLOCK * 256 * (chunks // 2):  # rather more blocks than long ones
        chunks //= 2
    numbers = [counted, total, *dims[1:-1], *([dims[-1] // width] if len(dims) > 1 else [])]
    for way, mine in zip(ways, steps, strict=True):
        if way != "c":
            numbers += told(way, mine)
    reach = max((sum(abs(step) * size for step, size in zip(mine, dims, strict=True)) for mine in steps), default=0)
    blocks = -(-max(counted, 1) // (BLOCK * chunks))
    return Layout(ways, width, chunks, max(total, reach) >= SHORT_INDEX, drawn), numbers, blocks


__all__ = ["BLOCK", "TILE", "WORD", "Layout", "Tiles", "apart", "collapse", "lay", "place_of", "steps_of", "tiled", "told",
           "way_of"]  # fmt: skip
