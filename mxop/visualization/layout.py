"""Where the boxes of a graph go: rows from inputs to outputs, few crossings, short lines.

The steps are those of Sugiyama: rows by longest path, order within a row by the middle of neighbours, then positions.
Long edges pass through a point in each row between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

Edge = tuple[int, int]
Point = tuple[float, float]

_GAP, _ROW_GAP, _SWEEPS = 18.0, 34.0, 8
#: Longer edges are drawn straight through when there would be more points than this between rows.
MAX_POINTS = 20_000


@dataclass
class Placement:
    """Where everything is.

    Attributes
    ----------
    centers : list of (float, float)
        Of each box.
    lines : list of list of (float, float)
        The points of each edge, from the lower end of a box to the upper end of another.
    width, height : float
        Of the whole.
    """

    centers: list[Point]
    lines: list[list[Point]]
    width: float
    height: float


def layered(sizes: Sequence[tuple[float, float]], edges: Sequence[Edge]) -> Placement:
    """Place boxes of given sizes; each edge ``(a, b)`` has ``a < b`` and goes down.

    Examples
    --------
    >>> layered([(10, 10), (10, 10)], [(0, 1)]).centers
    [(5.0, 5.0), (5.0, 49.0)]
    """
    rank = _ranks(len(sizes), edges)
    widths = [w for w, _ in sizes]
    chains = _chains(rank, edges, widths)
    neighbours = _neighbours(len(widths), chains)
    rows: list[list[int]] = [[] for _ in range(max(rank, default=-1) + 1)]
    for item, r in enumerate(rank):
        rows[r].append(item)
    _order(rows, neighbours, rank)
    x = _positions(rows, neighbours, widths)
    tops, height = _heights(rows, sizes)
    centers = [(x[i], tops[rank[i]][0] + tops[rank[i]][1] / 2) for i in range(len(sizes))]
    lines = [_line(chain, x, rank, tops, sizes) for chain in chains]
    return Placement(centers, lines, max((x[i] + widths[i] / 2 for i in range(len(widths))), default=0.0), height)


def _ranks(count: int, edges: Sequence[Edge]) -> list[int]:
    """Return the row of each box: below all that it needs, and what needs nothing just above its first reader."""
    rank = [0] * count
    readers: list[list[int]] = [[] for _ in range(count)]
    has_inputs = [False] * count
    for a, b in sorted(edges, key=lambda e: e[1]):
        rank[b] = max(rank[b], rank[a] + 1)
        readers[a].append(b)
        has_inputs[b] = True
    for a in range(count):
        if not has_inputs[a] and readers[a]:
            rank[a] = min(rank[b] for b in readers[a]) - 1
    return rank


def _chains(rank: list[int], edges: Sequence[Edge], widths: list[float]) -> list[list[int]]:
    """Return the items that each edge passes through; adds the points between rows to `rank` and `widths`."""
    room = MAX_POINTS
    chains = []
    for a, b in edges:
        chain = [a]
        if rank[b] - rank[a] - 1 <= room:
            for r in range(rank[a] + 1, rank[b]):
                chain.append(len(rank))
                rank.append(r)
                widths.append(2.0)
                room -= 1
        chains.append([*chain, b])
    return chains


def _neighbours(count: int, chains: Sequence[Sequence[int]]) -> tuple[list[list[int]], list[list[int]]]:
    """Return what is connected with each item in the rows above and below."""
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for chain in chains:
        for a, b in pairwise(chain):
            above[b].append(a)
            below[a].append(b)
    return above, below


def _order(rows: list[list[int]], neighbours: tuple[list[list[int]], list[list[int]]], rank: list[int]) -> None:
    """Sort each row by the middle of the neighbours in the row before, down and up in turn."""
    place = {item: k for row in rows for k, item in enumerate(row)}

    def middle(item: int, side: list[list[int]]) -> float:
        near = [place[n] for n in side[item]]
        return sum(near) / len(near) if near else place[item]

    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        side = neighbours[0] if down else neighbours[1]
        for row in rows[1:] if down else rows[-2::-1]:
            row.sort(key=lambda item: middle(item, side))
            for k, item in enumerate(row):
                place[item] = k


def _positions(rows: list[list[int]], neighbours: tuple[list[list[int]], list[list[int]]], widths: list[float]) -> list[float]:
    """Return the middle of each item: as near to its neighbours as its row has room."""
    x = [0.0] * len(widths)
    for row in rows:
        at = 0.0
        for item in row:
            x[item] = at + widths[item] / 2
            at += widths[item] + _GAP
    for sweep in range(_SWEEPS):
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            wanted = []
            for item in row:
                near = neighbours[sweep % 2][item] or neighbours[1 - sweep % 2][item]
                wanted.append(sum(x[n] for n in near) / len(near) if near else x[item])
            for item, at in zip(row, _apart(wanted, [widths[i] for i in row]), strict=True):
                x[item] = at
    left = min((x[i] - widths[i] / 2 for row in rows for i in row), default=0.0)
    return [max(v - left, width / 2) for v, width in zip(x, widths, strict=True)]  # rounded, it may lie a little less inside


def _apart(wanted: list[float], widths: list[float]) -> list[float]:
    """Return positions that keep their distance, as near as possible to those that are wanted, in the same order.

    Items that would overlap form a block, which lies where its items wish to be on average.
    """
    from scipy.optimize import isotonic_regression  # slow to import

    if not wanted:
        return []
    offsets = np.cumsum([0.0, *((a + b) / 2 + _GAP for a, b in pairwise(widths))])
    return (isotonic_regression(wanted - offsets).x + offsets).tolist()


def _heights(rows: list[list[int]], sizes: Sequence[tuple[float, float]]) -> tuple[list[Point], float]:
    """Return where each row begins and how high it is, and the height of all."""
    tops, at = [], 0.0
    for row in rows:
        height = max((float(sizes[i][1]) for i in row if i < len(sizes)), default=0.0)
        tops.append((at, height))
        at += height + _ROW_GAP
    return tops, max(at - _ROW_GAP, 0.0)


def _line(
    chain: list[int], x: list[float], rank: list[int], tops: list[Point], sizes: Sequence[tuple[float, float]]
) -> list[Point]:
    """Return the points of an edge: straight through the rows between."""
    first, *between, last = chain
    top, height = tops[rank[first]]
    points = [(x[first], top + height / 2 + sizes[first][1] / 2)]
    for item in between:
        top, height = tops[rank[item]]
        points += [(x[item], top), (x[item], top + height)]
    top, height = tops[rank[last]]
    return [*points, (x[last], top + height / 2 - sizes[last][1] / 2)]
