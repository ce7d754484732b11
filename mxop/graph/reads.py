"""Which inputs an operator reads elements of, and which arrays a gradient rule reads."""

from __future__ import annotations

from functools import lru_cache

from ..formula import Expr, leaves
from ..opdef import Attrs, Elementwise, Operator
from ..opdef.operator import ASKS, RuleReads
from ..support.errors import MXNetError, UnknownShapeError
from .builder import Builder, Value
from .expansion import expand
from .ir import Graph, Node, variable
from .specs import Specs


def unread_inputs(node: Node) -> tuple[int, ...]:
    """Return the positions of inputs of which an operator reads only shape and type."""
    op = node.op
    if isinstance(op, Elementwise):
        return _unmentioned(op.formula(node.attrs, len(node.inputs)).roots, len(node.inputs))
    return op.shape_only(len(node.inputs)) if op is not None else ()


@lru_cache(4096)
def _unmentioned(roots: tuple[Expr, ...], n_inputs: int) -> tuple[int, ...]:
    used = {leaf.label for leaf in leaves(roots) if leaf.kind == "input"}
    return tuple(i for i in range(n_inputs) if i not in used)


def rule_reads(op: Operator, attrs: Attrs, n_inputs: int, n_outputs: int, given: tuple | None) -> RuleReads | str | None:
    """Return the inputs and outputs of a call whose elements the gradient rule reads; None if it cannot be determined.

    The rule is applied to variables, and the nodes that it adds are analysed.  `given` are shapes and types of inputs and
    outputs; without them, `ASKS` is returned for a rule that reads any.
    """
    heads = [variable(f"head{k}") for k in range(n_outputs)]
    inputs = [variable(f"input{k}") for k in range(n_inputs)]
    outputs = [variable(f"output{k}") for k in range(n_outputs)]
    specs = None
    if given is not None:
        specs = Specs(dict(zip([*inputs, *outputs], given, strict=True)))
        specs.same.update((h, (o, 0)) for h, o in zip(heads, outputs, strict=True))
    F = Builder(specs)

    def values(nodes: list[Node]) -> list[Value]:
        return [F.value((n, 0)) for n in nodes]

    try:
        grads = op.grad(F, attrs, values(heads), values(inputs), values(outputs), [True] * n_inputs)
        graph, _ = expand(Graph([g.entry for g in grads or () if g is not None]), specs=specs)
    except UnknownShapeError:
        return ASKS
    except (MXNetError, AttributeError, TypeError, ValueError, IndexError):  # reads elements, or fails
        return None
    read = {source for source, _ in graph.outputs}  # a gradient may be an array itself
    for node in graph.nodes:
        unread = unread_inputs(node) if node.inputs else ()
        read.update(source for i, (source, _) in enumerate(node.inputs) if i not in unread)
    return (
        frozenset(i for i, n in enumerate(inputs) if n in read),
        frozenset(i for i, n in enumerate(outputs) if n in read),
    )
