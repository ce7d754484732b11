"""Intermediate values of composites are float32 if the data are float16 or bfloat16.

So results do not depend on fusion, and large intermediate values do not overflow.  Elementwise operators and reductions inside
read and return float32, and views pass it on.  Other operators (matrix products, which accumulate in float32 anyway, indices,
states) read and return the data's type, as do the outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..opdef import Elementwise, Kernel, Reduction
from ..support import dtypes
from .builder import Builder
from .ir import Entry, Node, topological
from .specs import Specs

HALF_TYPES = (dtypes.FLOAT16, dtypes.BFLOAT16)


def widened(F: Builder, entries: Sequence[Entry], sources: Sequence[Entry], specs: Specs) -> list[Entry]:
    """Return entries of the same types, computed from `sources` with float32 in between.

    Parameters
    ----------
    F : Builder
        Adds the nodes.
    entries : sequence of (Node, int)
        The outputs of a composite.
    sources : sequence of (Node, int)
        Its inputs.
    specs : Specs
        Shapes and types.
    """
    if not any(specs(e)[1] in HALF_TYPES for e in sources):
        return list(entries)
    found = _Widening(F, specs)
    for node in _inside(entries, {n for n, _ in sources}):
        found.add(node)
    return [found.narrow(e) for e in entries]


def _inside(entries: Iterable[Entry], outside: set[Node]) -> list[Node]:
    """Return the nodes between `outside` and `entries`, in an order of execution."""
    heads = [n for n, _ in entries if n not in outside]
    return topological(heads, lambda node: [n for n in node.needs() if n not in outside])


class _Widening:
    def __init__(self, F: Builder, specs: Specs):
        self._F, self._specs = F, specs
        self._wide: dict[Entry, Entry] = {}  # the float32 form of an entry
        self._same: dict[Entry, Entry] = {}  # its form of the original type
        self._nodes: dict[Node, Node] = {}

    def add(self, node: Node) -> None:
        """Rebuild a node; the nodes that it needs were added before."""
        wide = self._takes_wide(node)
        inputs = tuple([self.wide(e) if wide and self._half(e) else self.narrow(e) for e in node.inputs])
        control = tuple([self._nodes.get(n, n) for n in node.control])
        if inputs == node.inputs and control == node.control:
            return
        new = self._nodes[node] = node.replaced(inputs, control=control)
        for k in range(node.n_outputs):
            became = self._half((node, k)) and self._specs((new, k))[1] == dtypes.FLOAT32
            (self._wide if became else self._same)[node, k] = new, k

    def _takes_wide(self, node: Node) -> bool:
        if isinstance(node.op, (Elementwise, Reduction)):
            return any(self._half(e) for e in node.inputs)
        view = isinstance(node.op, Kernel) and node.op.make_view is not None
        return view and node.inputs[0] in self._wide

    def _half(self, entry: Entry) -> bool:
        return self._specs(entry)[1] in HALF_TYPES

    def wide(self, entry: Entry) -> Entry:
        """Return an entry as float32."""
        if entry not in self._wide:
            self._wide[entry] = self._cast(self._same.get(entry, entry), dtypes.FLOAT32)
        return self._wide[entry]

    def narrow(self, entry: Entry) -> Entry:
        """Return an entry in its original type."""
        if entry in self._wide and entry not in self._same and entry[0] in self._nodes:
            self._same[entry] = self._cast(self._wide[entry], self._specs(entry)[1])
        return self._same.get(entry, entry)

    def _cast(self, entry: Entry, code: int) -> Entry:
        return self._F.Cast(self._F.value(entry), dtype=dtypes.NAMES[code]).entry
