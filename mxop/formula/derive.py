"""Symbolic differentiation: the backward formula of an operator's formula.

A backward formula is an ordinary formula, so its operator has a backward formula too: one definition gives derivatives of every
order.
"""

from __future__ import annotations

from typing import NamedTuple

from .expr import CALL, INPUT, OUTPUT, Expr, call, const, input_, output, substitute, walk
from .primitives import TABLE


class Backward(NamedTuple):
    """The backward formula of an operator.

    Attributes
    ----------
    roots : tuple of (Expr or None)
        Gradient with respect to each input; None if it is zero everywhere.  Their input leaves are numbered as the operands
        below: head gradients first, then the inputs and outputs that the formula reads.
    heads, inputs, outputs : tuple of int
        Indices of the head gradients, forward inputs and forward outputs that are its operands, in this order.
    """

    roots: tuple[Expr | None, ...]
    heads: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def backward(roots: tuple[Expr, ...], n_inputs: int, rule=None, absent: tuple[int, ...] = ()) -> Backward:
    """Return the backward formula of a formula.

    Parameters
    ----------
    roots : tuple of Expr
        The formula of each output, over ``input_(0)`` to ``input_(n_inputs - 1)``.
    n_inputs : int
        Number of inputs.
    rule : callable, optional
        ``rule(heads, inputs, outputs)`` returns the gradients, for operators whose gradient is not the derivative
        (straight-through estimators).
    absent : tuple of int
        Outputs without a head gradient.  They are left out: 0 times an infinite derivative would be NaN.  Only operands of the
        backward formula of all outputs are used, since the tape keeps no others.
    """
    heads = [const(0) if k in absent else input_(n_inputs + k) for k in range(len(roots))]
    if rule is None:
        present = [k for k in range(len(roots)) if k not in absent]
        grads = vjp([roots[k] for k in present], [heads[k] for k in present], [input_(i) for i in range(n_inputs)])
        kept = backward(roots, n_inputs).outputs if absent else range(len(roots))
        grads = _reuse_outputs(grads, roots, n_inputs, kept)
    else:
        grads = rule(heads, [input_(i) for i in range(n_inputs)], [output(k) for k in range(len(roots))])
    return _renumbered(grads, n_inputs)


def vjp(roots, heads, variables, table=TABLE) -> list[Expr | None]:
    """Return ``sum_k heads[k] * d roots[k] / d v`` for each of the `variables`, or None if it is zero.

    `table` holds the gradient rules; variables may be any nodes.
    """
    order = list(walk(roots, ruled=True))
    active = {v.uid for v in variables}
    for node in order:  # only nodes that depend on a variable need a gradient
        if any(a.uid in active for a in (node.rule[1] if node.rule else node.args)):
            active.add(node.uid)
    grads: dict[int, Expr] = {}
    for root, head in zip(roots, heads, strict=True):
        grads[root.uid] = grads[root.uid] + head if root.uid in grads else head
    for node in reversed(order):
        g = grads.get(node.uid)
        if g is None or node.kind != CALL or node.uid not in active:
            continue
        rule, operands = node.rule or (table[node.label].rule, node.args)
        for arg, part in zip(operands, rule(g, *operands, node), strict=True):
            if part is not None and arg.uid in active:
                grads[arg.uid] = grads[arg.uid] + part if arg.uid in grads else part
    return [grads.get(v.uid) for v in variables]


def _reuse_outputs(grads, roots, n_inputs, kept):
    """Return gradients that read an output that was costly to compute, or that makes it unnecessary to keep the inputs.

    `kept` are the outputs that may be read.  The second case is ``max(0, x)``: the result is exact, and ``x`` may be freed.
    """
    calls = {roots[k]: output(k) for k in kept if roots[k].kind == CALL}
    costly = {r: o for r, o in calls.items() if any(n.kind == CALL and TABLE[n.label].costly for n in walk([r]))}
    chosen = {r: o for r, o in calls.items() if r.label in ("maximum", "minimum")}
    present = [g for g in grads if g is not None]
    rebuilt = substitute(present, costly | chosen)
    if any(n.kind == INPUT and n.label < n_inputs for n in walk(rebuilt)):
        rebuilt = substitute(present, costly)
    found = iter(rebuilt)
    return [None if g is None else next(found) for g in grads]


def _renumbered(grads, n_inputs: int) -> Backward:
    used = [leaf for leaf in walk([g for g in grads if g is not None]) if leaf.kind in (INPUT, OUTPUT)]
    heads = sorted(leaf.label - n_inputs for leaf in used if leaf.kind == INPUT and leaf.label >= n_inputs)
    inputs = sorted(leaf.label for leaf in used if leaf.kind == INPUT and leaf.label < n_inputs)
    outputs = sorted(leaf.label for leaf in used if leaf.kind == OUTPUT)
    old = [input_(n_inputs + h) for h in heads] + [input_(i) for i in inputs] + [output(k) for k in outputs]
    replace = {leaf: input_(position) for position, leaf in enumerate(old)}
    present = iter(substitute([g for g in grads if g is not None], replace))
    roots = tuple(None if g is None else next(present) for g in grads)
    return Backward(roots, tuple(heads), tuple(inputs), tuple(outputs))


__all__ = ["Backward", "backward", "call", "vjp"]
