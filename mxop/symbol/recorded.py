"""From the tape to a symbol: what autograd recorded, as a graph."""

from __future__ import annotations

from typing import Any

from .._core import core, tape
from ..graph.ir import Entry, Node, topological, variable
from ..support.errors import MXNetError, OpTypeError
from .symbol import Symbol


def to_symbol(x: Any) -> Symbol:
    """Return the recorded computation of an array; see :func:`mxop.autograd.get_symbol`."""
    if not isinstance(x, core.Dense):
        raise OpTypeError(f"autograd.get_symbol takes an NDArray, got {type(x).__name__}")
    head, output = tape.origin(x)
    if head is None:
        raise MXNetError(
            "autograd.get_symbol: the array was not recorded; call attach_grad() on an input and compute it inside "
            "autograd.record()"
        )
    made: dict[Any, list[Entry]] = {}  # the outputs of each call
    variables = 0

    def new_variable() -> Node:
        nonlocal variables
        variables += 1
        return variable(f"var{variables - 1}")

    for number, node in enumerate(topological([head], _parents)):
        found = tape.parts(node)
        if found is None:
            made[node] = [(new_variable(), 0)]
            continue
        op, attrs, parents, outputs = found
        # an input without history is a constant of the recording: a variable of its own
        inputs = [
            made[parent][k] if parent is not None else (new_variable(), 0) for parent, k in zip(parents, outputs, strict=True)
        ]
        if attrs is None:
            made[node] = _inside(op, inputs, f"node_{number}")
        else:
            new = Node(op, attrs, tuple(inputs), f"node_{number}", op.spec.to_strings(attrs))
            made[node] = [(new, k) for k in range(new.n_outputs)]
    return Symbol((made[head][output],))


def _inside(run: Any, inputs: list[Entry], name: str) -> list[Entry]:
    """Return the outputs of the graph that ran as a plan, with these inputs."""
    source = run.plan.source(run.values)
    done: dict[Entry, Entry] = {(v, 0): entry for v, entry in zip(run.plan.pattern.variables, inputs, strict=True)}
    calls = [node for node in source.nodes if node.op is not None]
    for number, node in enumerate(calls):
        new = node.replaced(tuple(done[e] for e in node.inputs), name=f"{name}_{number}" if len(calls) > 1 else name)
        new.control = tuple(done[c, 0][0] for c in node.control)
        done |= {(node, k): (new, k) for k in range(node.n_outputs)}
    return [done[e] for e in source.outputs]


def _parents(node: Any) -> list:
    found = tape.parts(node)
    return [] if found is None else [p for p in found[2] if p is not None]
