"""Passes: small functions from a graph to a graph, in a table, each verified after it ran.

A pass never changes the graph that it gets.  It keeps shape, type and values, NaN, infinities and the sign of zero
included.  Gradients are taken before.  Imports :mod:`.ir`, :mod:`.infer`, :mod:`.rewrite`, :mod:`.verify`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import MXNetError, OpLookupError, closest
from ..formula import input_
from ..opdef import Composite, Elementwise, External, Kernel, contiguous_strides
from .builder import Builder, entries_of
from .infer import Known, located
from .ir import Entry, Graph, Node
from .rewrite import Moved, rewrite
from .verify import verify

_MAX_NESTING = 64


def expand(graph: Graph, everything: bool = True) -> tuple[Graph, Moved]:
    """Replace composites by what they call.

    Parameters
    ----------
    everything : bool
        Also those with a gradient rule of their own (before gradients are taken they stay).

    Returns
    -------
    graph : Graph
    moved : dict
        Where each entry that changed went.
    """
    F = Builder()

    def replace(node: Node) -> list[Entry] | None:
        if not isinstance(node.op, Composite) or (not everything and node.op._gradient is not None):
            return None
        F.work_for(node, "_inside", node.order)
        inputs = [F.value(e) for e in node.inputs]
        try:
            result = node.op.function(F, *inputs, **node.attrs)
            return entries_of(result, node.n_outputs, f"composite operator {node.op.name}")
        except MXNetError as problem:
            raise located(problem, node) from None

    total: Moved = {}
    for _ in range(_MAX_NESTING):
        graph, moved = rewrite(graph, replace)
        if not moved:
            return _with_states(graph, total)
        total = {old: moved.get(new, new) for old, new in total.items()} | {
            old: new for old, new in moved.items() if old not in total
        }
    raise MXNetError(f"composite operators are nested more than {_MAX_NESTING} deep; does one call itself?")


def _with_states(graph: Graph, total: Moved) -> tuple[Graph, Moved]:
    """Give each call of an operator that keeps a state one of its own, which its backward will find."""
    graph, moved = rewrite(graph, give_state)
    return graph, {old: moved.get(new, new) for old, new in total.items()} | moved


def give_state(node: Node) -> list[Entry] | None:
    """Return the outputs of the node with a state of its own; None when it keeps none, or has it."""
    attrs = node.op.call_attrs(node.attrs) if isinstance(node.op, External) else node.attrs
    if attrs is node.attrs:
        return None
    new = node.replaced(attrs=attrs)
    return [(new, k) for k in range(node.n_outputs)]


def simplify(graph: Graph, known: Known) -> Graph:
    """Drop what copies its input: identities, reshapes to the same shape, sums over no axis."""
    return rewrite(graph, lambda node: _identity(node, known), known)[0]


def _identity(node: Node, known: Known) -> list[Entry] | None:
    """Return the entries that a node's outputs equal, if each equals an input."""
    op = node.op
    if op.stateful or not node.inputs:
        return None
    if isinstance(op, Elementwise):
        leaves = [input_(i) for i in range(len(node.inputs))]
        found = []
        for k, root in enumerate(op.formula(node.attrs, len(leaves)).roots):
            source = next((e for leaf, e in zip(leaves, node.inputs, strict=True) if leaf is root), None)
            if source is None or not known.same(source, (node, k)):
                return None
            found.append(source)
        return found
    if node.n_outputs != 1 or not known.same(node.inputs[0], (node, 0)):
        return None
    if op.name == "_unbroadcast" or is_plain_view(node, known):
        return [node.inputs[0]]
    return None


def is_plain_view(node: Node, known: Known) -> bool:
    """Tell whether a node gives the elements of its first input another shape, and nothing else."""
    op = node.op
    if not isinstance(op, Kernel) or op.make_view is None or known.dtype(node.inputs[0]) != known.dtype((node, 0)):
        return False
    shapes = [known.shape(e) for e in node.inputs]
    shape, strides, offset = op.make_view(shapes[0], contiguous_strides(shapes[0]), *shapes[1:], **node.attrs)
    # an axis of one element has no step to compare
    steps = zip(shape, strides or (), contiguous_strides(tuple(shape)))
    return strides is not None and offset == 0 and all(d <= 1 or a == b for d, a, b in steps)


def common_subexpressions(graph: Graph, known: Known) -> Graph:
    """Compute equal calls once."""
    first: dict[tuple, Node] = {}

    def replace(node: Node) -> list[Entry] | None:
        if node.op.stateful or node.mutated_inputs() or node.control:
            return None
        # repr tells 0.0 from -0.0, which are equal
        found = first.setdefault((node.op, repr(node.attrs.values_), node.inputs), node)
        return None if found is node else [(found, k) for k in range(node.n_outputs)]

    return rewrite(graph, replace, known)[0]


@dataclass(frozen=True)
class Pass:
    """One row of the table.

    Attributes
    ----------
    name : str
    run : callable
        ``run(graph, known) -> graph``; it adds to `known` what it makes.
    """

    name: str
    run: Callable[[Graph, Known], Graph]

    @property
    def doc(self) -> str:
        return (self.run.__doc__ or "").strip()


#: What an executor does to a graph, in this order, before it fuses and plans.
PASSES = [
    Pass("simplify", simplify),
    Pass("common_subexpressions", common_subexpressions),
]


def optimize(graph: Graph, known: Known, names: Sequence[str] | None = None, check: bool = True) -> Graph:
    """Run passes.

    Parameters
    ----------
    graph : Graph
        Without composites.
    known : Known
        Its shapes and types.
    names : sequence of str, optional
        Which passes; all by default.
    check : bool
        Verify the graph after each.
    """
    for name in names or ():
        if name not in [p.name for p in PASSES]:
            raise OpLookupError(f"there is no pass {name!r}{closest(name, [p.name for p in PASSES])}")
    for p in PASSES:
        if names is None or p.name in names:
            graph = p.run(graph, known)
            if check:
                verify(graph, known, p.name)
    return graph
