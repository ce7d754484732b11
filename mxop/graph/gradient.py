"""Gradients of graphs, as graphs: each operator adds its gradient rule, made of operators with gradient rules themselves.

So gradients can be differentiated again, to any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .._core.chain import gradients_at
from ..opdef import Kernel, registry
from .builder import Builder
from .ir import Entry, Graph, Node, describe

_SUM_AT_ONCE = 8  # operands of one add_n


def gradients(
    heads: Sequence[Entry],
    head_grads: Sequence[Entry | None],
    variables: Sequence[Entry],
    specs: Callable | None = None,
    applied: list[tuple[Node, list[Entry | None]]] | None = None,
) -> list[Entry | None]:
    """Return the gradients of `heads` with respect to `variables`.

    Parameters
    ----------
    heads : sequence of (Node, int)
        The entries to differentiate; composites without a rule of their own are expanded before.
    head_grads : sequence of (Node, int), or None for ones
        Gradient with respect to each head.
    variables : sequence of (Node, int)
    specs : callable, optional
        ``specs(entry)`` returns shape and type code, for rules that read them.
    applied : list, optional
        Receives each node whose rule was applied, with the gradients of its inputs.

    Returns
    -------
    list of (Node, int)
        Gradient with respect to each variable; None if it is zero.

    Raises
    ------
    MXNetError
        If an operator between heads and variables has no gradient rule.
    """
    graph = Graph(heads)
    active = active_nodes(graph, {node for node, _ in variables})
    order = 1 + max((node.order for node in graph.nodes), default=0)
    F = Builder(specs)
    parts: dict[Entry, list[Entry]] = {}
    came_from: dict[Node, Node] = {}
    for head, g in zip(heads, head_grads, strict=True):
        if g is None:
            F.work_for(head[0], "_head_grad", order)
            g = F.ones_like(F.value(head)).entry
        parts.setdefault(head, []).append(g)
    for node in reversed(graph.nodes):
        if node.op is None or node not in active or not any((node, k) in parts for k in range(node.n_outputs)):
            continue
        needed = [source in active for source, _ in node.inputs]
        if not any(needed):
            continue
        F.work_for(node, "_backward", order)
        given = _apply_rule(F, node, parts, needed, came_from)
        if applied is not None:
            applied.append((node, given))
        for entry, g in zip(node.inputs, given, strict=True):
            if g is not None:
                parts.setdefault(entry, []).append(g)
                came_from.setdefault(entry[0], node)
    found: list[Entry | None] = []
    for entry in variables:
        F.work_for(entry[0], "_grad", order)
        found.append(_sum(F, parts, entry))
    return found


def active_nodes(graph: Graph, variables: set[Node]) -> set[Node]:
    """Return the nodes that depend on values of variables; elsewhere a gradient of 0 times an infinite derivative is NaN."""
    active = set(variables)
    for node in graph.nodes:
        if node.op is None or node.op.name in ("ones_like", "zeros_like"):  # as on the tape
            continue
        unread = node.op.shape_only(len(node.inputs))
        if any(source in active and k not in unread for k, (source, _) in enumerate(node.inputs)):
            active.add(node)
    return active


def _apply_rule(F: Builder, node: Node, parts, needed: list[bool], came_from: dict[Node, Node]) -> list[Entry | None]:
    """Return the gradient of each input of a node; None where it is not needed."""
    outputs = [F.value((node, k)) for k in range(node.n_outputs)]
    heads = []
    for output in outputs:
        g = _sum(F, parts, output.entry)
        if g is not None:
            heads.append(F.value(g))
        else:
            heads.append(None if node.op.absent_heads else F.zeros_like(output))  # type: ignore[union-attr]
    inputs = [F.value(e) for e in node.inputs]
    found = gradients_at(node.op, F, node.attrs, heads, inputs, outputs, needed, lambda: _context(node, came_from))
    return [None if g is None else g.entry for g in found]


def _context(node: Node, came_from: dict[Node, Node]) -> tuple[int, str, str]:
    """Return, for messages, the order of the gradient, the path from the head to a node, and where the user made it."""
    path = [node]
    while path[-1] in came_from:
        path.append(came_from[path[-1]])
    shown = " <- ".join(f"{n.name} ({n.op.name})" for n in reversed(path))
    return 1 + max(n.order for n in path), shown, f"; at {describe(node)}"


def _sum(F: Builder, parts: dict[Entry, list[Entry]], entry: Entry) -> Entry | None:
    """Return the sum of the gradients that reached an entry; None if none did."""
    terms = parts.get(entry)
    if not terms:
        return None
    total, at = terms[0], 1
    while at < len(terms):  # in the order in which the tape adds them: sums round differently in another
        count = next((k for k, term in enumerate(terms[at : at + _SUM_AT_ONCE - 1]) if _added(term)), _SUM_AT_ONCE - 1)
        total = _add(F, [total, *terms[at : at + count]]) if count else _add_part(F, total, terms[at])
        at += max(count, 1)
    parts[entry] = [total]
    return total


def _added(term: Entry) -> Kernel | None:
    """Return what adds the gradient of a part to others; None for other gradients."""
    op = term[0].op
    return op.added if isinstance(op, Kernel) else None


def _add_part(F: Builder, total: Entry, term: Entry) -> Entry:
    """Add the gradient of a part to where that was taken from, not an array of the whole size, to a sum."""
    node = term[0]
    given = [F.value(e) for e in (total, *node.inputs[:-1])]  # the last input says the shape
    return getattr(F, _added(term).name)(*given, **node.attrs).entry  # type: ignore[union-attr]


def _add(F: Builder, terms: list[Entry]) -> Entry:
    op = registry.get("elemwise_add" if len(terms) == 2 else "add_n")
    params = {"num_args": len(terms)} if len(terms) > 2 else {}
    return F.add(op, terms, op.parse(params)), 0
