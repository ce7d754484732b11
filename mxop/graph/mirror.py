"""Mirroring, MXNet's name for gradient checkpointing: backward recomputes forward values, which need not be kept then.

The forward pass is cut into segments at points with few live values.  Values alive at a cut are kept.  Backward recomputes
the other values of a segment from them, one segment at a time.  With cuts at the square root of the length, memory grows
with that root, at the cost of one more forward pass.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from math import prod

from ..opdef.symbolic import is_symbolic
from ..support import dtypes
from .infer import Known
from .ir import Entry, Graph, Node
from .rewrite import with_copies
from .traits import elements_read, is_plain_view, is_pure, states_of

#: Most segments that are considered.
MOST_SEGMENTS = 64


def is_forced(node: Node) -> bool:
    """Return whether a node's attribute, or its operator, demands mirroring."""
    asked = node.strings.get("__force_mirroring__", "").lower() if node.strings else ""
    return asked in ("1", "true") or (node.op is not None and node.op.made_again and asked == "")


def mirror(graph: Graph, n_forward: int, known: Known, forced_only: bool = False) -> Graph:
    """Return the graph with copies of forward nodes for its backward part.

    Parameters
    ----------
    graph : Graph
        Its first `n_forward` outputs are the forward pass.
    forced_only : bool
        Mirror only nodes with the attribute ``__force_mirroring__``, and operators declared to have large results.
    """
    forward = Graph(graph.outputs[:n_forward]).nodes
    is_forward = set(forward)
    backward = [node for node in graph.nodes if node not in is_forward]
    states = states_of(graph)
    calls = [n for n in forward if n.op is not None]
    again = {n for n in calls if n.inputs and is_pure(n) and n.op.repeatable and not any(s in states for s, _ in n.inputs)}
    if forced_only:
        again = _forced(forward, again, known)
    else:
        read = {e for node in backward for e in node.inputs if e[0] in is_forward and e[0].op is not None}
        delivered = set(graph.outputs[:n_forward])
        again &= _Segments(calls, read - delivered, known).recomputed()
    again -= {node for node, _ in graph.outputs}
    return _with_copies(graph, n_forward, forward, backward, again, known) if again else graph


def _forced(forward: list[Node], possible: set[Node], known: Known) -> set[Node]:
    """Return the nodes that demand mirroring, and the plain views of their results."""
    found: set[Node] = set()
    for node in forward:
        if node in possible and (is_forced(node) or (node.inputs[0][0] in found and is_plain_view(node, known))):
            found.add(node)
    return found


def _with_copies(
    graph: Graph, n_forward: int, forward: list[Node], backward: list[Node], again: set[Node], known: Known
) -> Graph:
    """Return the graph whose backward nodes read copies of the nodes in `again`."""
    needed = {source for node in backward for source, _ in elements_read(node) if source in again}
    for node in reversed(forward):
        if node in needed:
            needed.update(source for source, _ in elements_read(node) if source in again)
    return with_copies(graph, n_forward, needed, set(), known)


class _Segments:
    """Chooses the cuts of a forward pass.

    Parameters
    ----------
    calls : list of Node
        In order of execution.
    read : set of (Node, int)
        Results that backward reads.
    known : Known
        Sizes count as they are in the first call: one choice serves a pattern, and comparisons of symbolic sizes take long.
    """

    def __init__(self, calls: list[Node], read: set[Entry], known: Known):
        self.calls, self.known = calls, known
        place = {node: i for i, node in enumerate(calls)}
        self.last: dict[Entry, int] = {}  # the last call that reads each value
        for i, node in enumerate(calls):
            for entry in node.inputs:
                if entry[0] in place:
                    self.last[entry] = i
        grows = [0] * (len(calls) + 1)
        for entry, last in self.last.items():
            grows[place[entry[0]]] += self._size(entry)
            grows[last] -= self._size(entry)
        self.alive = list(accumulate(grows))[:-1]  # bytes alive after each call
        self.kept = list(accumulate(sum(self._size((n, k)) for k in range(n.n_outputs) if (n, k) in read) for n in calls))

    def _size(self, entry: Entry) -> int:
        shape = self.known.shape(entry)
        return dtypes.SIZES[self.known.dtype(entry)] * prod([n.value if is_symbolic(n) else n for n in shape])

    def recomputed(self) -> set[Node]:
        """Return the calls to recompute: all whose results are not alive at a cut.

        The last segment is recomputed too: values kept for backward stay to the end, since backward may run again.
        """
        if not self.kept or not self.kept[-1]:
            return set()
        cuts = min(map(self._cuts, range(1, MOST_SEGMENTS + 1)), key=self._needed)
        if not cuts:
            return set()
        place = {node: i for i, node in enumerate(self.calls)}
        stay = set()
        for (node, _), last in self.last.items():
            at = bisect_left(cuts, place[node])
            if at < len(cuts) and cuts[at] < last:
                stay.add(node)
        return {node for node in self.calls if node not in stay}

    def _cuts(self, segments: int) -> tuple[int, ...]:
        """Return the calls after which to cut: those with the fewest live bytes near equal shares."""
        share = self.kept[-1] / segments
        found: list[int] = []
        for k in range(1, segments):
            first, stop = (bisect_left(self.kept, (k + d) * share) for d in (-0.3, 0.3))
            first = max(first, found[-1] + 1 if found else 0)
            if first < min(stop + 1, len(self.calls)):
                found.append(min(range(first, min(stop + 1, len(self.calls))), key=self.alive.__getitem__))
        return tuple(found)

    def _needed(self, cuts: tuple[int, ...]) -> int:
        """Return about how many bytes are alive at once: those at the cuts, and the largest segment."""
        ends = [self.kept[c] for c in cuts] + [self.kept[-1]]
        largest = max(b - a for a, b in zip([0, *ends], ends))
        return sum(self.alive[c] for c in cuts) + largest
