"""Fusion into matrix products: transposes become flags; scales and biases become arguments."""

from __future__ import annotations

import math
from typing import Any

from ...opdef import Operator
from .. import symbols
from ..infer import Known
from ..ir import Graph
from .peephole import PeepholePass, visit

_PRODUCTS = ("dot", "batch_dot", "_gemm")


def transposed(x: Any) -> Any:
    """Return ``a`` if ``x`` is ``a`` with its last two axes exchanged (of two or more), else None."""
    if x.ndim is None or x.ndim < 2 or x.op_name not in ("transpose", "SwapAxis"):
        return None
    rank = x.ndim
    swapped = [*range(rank - 2), rank - 1, rank - 2]
    if x.op_name == "transpose":
        axes = [a % rank for a in x.attrs["axes"]] or list(range(rank))[::-1]
        return x.inputs[0] if axes == swapped else None
    return x.inputs[0] if sorted(d % rank for d in (x.attrs["dim1"], x.attrs["dim2"])) == [rank - 2, rank - 1] else None


class _OfProducts(PeepholePass):
    """Counts the readers of each value, in graphs with products."""

    def looks_at(self, op: Operator) -> bool:
        return op.name in (*_PRODUCTS, "FullyConnected")

    def begin_pass(self, graph: Graph, known: Known) -> None:
        super().begin_pass(graph, known)
        self._readers: dict[Any, int] = {}
        self._formula_reads: set[Any] = set()
        for node in graph.nodes:
            for entry in node.inputs:
                self._readers[entry] = self._readers.get(entry, 0) + 1
                if node.op.kind == "elementwise":  # type: ignore[union-attr]
                    self._formula_reads.add(entry)
        for entry in graph.outputs:
            self._readers[entry] = self._readers.get(entry, 0) + 1

    def read_once(self, x: Any) -> bool:
        """Return whether a value has one reader; values made in this sweep are counted in the next one."""
        return self._readers.get(x._entries[0]) == 1


class TransposesIntoProducts(_OfProducts):
    """Let matrix products read transposed operands instead of copies.

    ::

        a -- transpose -- dot -- y      becomes      a -- dot(transpose_a=True) -- y
        b -----------------+                         b ----+

    Also for ``batch_dot`` and its last two axes, for ``FullyConnected`` without bias on a transposed weight, and for the
    transpose of a product: ``(a b)^T = b^T a^T``.
    """

    @visit.on(*_PRODUCTS)
    def operand_of_product(self, node: Any, lhs: Any, rhs: Any, *bias: Any) -> None:
        if node.op_name != "batch_dot" and (lhs.ndim, rhs.ndim) != (2, 2):
            return
        a, b = transposed(lhs), transposed(rhs)
        if a is None and b is None:
            return
        flags = {"transpose_a": node.attrs["transpose_a"] ^ (a is not None),
                 "transpose_b": node.attrs["transpose_b"] ^ (b is not None)}  # fmt: skip
        self.replace(node, _with(node, [lhs if a is None else a, rhs if b is None else b, *bias], **flags))

    @visit.on("FullyConnected")
    def weight_of_layer(self, node: Any, data: Any, weight: Any, *bias: Any) -> None:
        w = transposed(weight)
        if w is not None and not bias and data.ndim == 2:
            self.replace(node, symbols.namespace().dot(data, w))

    @visit.on("transpose", "SwapAxis")
    def transposed_product(self, node: Any, x: Any) -> None:
        if x.op_name not in ("dot", "batch_dot") or transposed(node) is None or not self.read_once(x):
            return
        lhs, rhs = x.inputs
        if x.op_name == "batch_dot" or (lhs.ndim, rhs.ndim) == (2, 2):
            flags = {"transpose_a": not x.attrs["transpose_b"], "transpose_b": not x.attrs["transpose_a"]}
            self.replace(node, _with(x, [rhs, lhs], **flags))


class ScaleAndBiasIntoProducts(_OfProducts):
    """Fuse a scale and a bias into a product of two matrices, whose GEMM applies them at no cost.

    ::

        a -- dot -- mul(0.5) -- add -- y      becomes      a -- _gemm(alpha=0.5) -- y
        b ----+                  |                         b ----+
        c -----------------------+                         c ----+

    Scales of operands are fused too.  A bias is not fused if a formula reads the sum, since it is added there at no cost.  A
    product is changed only if the scale or bias is its only reader, and a scale only if it is finite and not 0.
    Results differ in rounding.
    """

    @visit.on("_mul_scalar", "_div_scalar")
    def scale_of_product(self, node: Any, x: Any) -> None:
        alpha = _scale(node)
        if _is_product(x) and alpha is not None and self.read_once(x):
            if x.op_name == "_gemm" and not x.attrs["no_bias"]:
                return
            self.replace(node, gemm(x, alpha * _alpha(x)))

    @visit.on("dot", "_gemm")
    def scale_of_operand(self, node: Any, lhs: Any, rhs: Any, *bias: Any) -> None:
        if not _is_product(node):
            return
        for at, x in enumerate((lhs, rhs)):
            alpha = _scale(x) if x.op_name in ("_mul_scalar", "_div_scalar") else None
            if alpha is not None and self.read_once(x):
                operands = [lhs, rhs]
                operands[at] = x.inputs[0]
                self.replace(node, gemm(node, alpha * _alpha(node), operands, bias[0] if bias else None))
                return

    @visit.on("elemwise_add", "broadcast_add")
    def bias_of_product(self, node: Any, lhs: Any, rhs: Any) -> None:
        if node._entries[0] in self._formula_reads:
            return
        for x, bias in ((lhs, rhs), (rhs, lhs)):
            if _is_product(x) and self.read_once(x) and x.shape == node.shape and x._entries != bias._entries:
                if x.op_name == "_gemm" and not x.attrs["no_bias"]:
                    continue
                self.replace(node, gemm(x, _alpha(x), bias=bias))
                return


def _is_product(x: Any) -> bool:
    return x.op_name in ("dot", "_gemm") and all(y.ndim == 2 for y in x.inputs[:2])


def _scale(x: Any) -> float | None:
    number = x.attrs["scalar"]
    if not math.isfinite(number) or number == 0:
        return None
    number = number if x.op_name == "_mul_scalar" else 1 / number
    return number if 1e-30 < abs(number) < 1e30 else None


def _alpha(x: Any) -> float:
    return x.attrs["alpha"] if x.op_name == "_gemm" else 1.0


def _with(node: Any, inputs: list[Any], **changes: Any) -> Any:
    """Return the call of a product with other inputs and changed flags."""
    F = symbols.namespace()
    params = {k: v for k, v in node.attrs.items() if v is not None} | changes
    return getattr(F._internal, node.op_name)(*inputs, **params)


def gemm(product: Any, alpha: float, operands: list[Any] | None = None, bias: Any = None) -> Any:
    """Return a product as a call of ``_gemm``."""
    flags = {k: product.attrs[k] for k in ("transpose_a", "transpose_b")}
    inputs = [*(operands or product.inputs[:2]), *([] if bias is None else [bias])]
    return symbols.namespace()._internal._gemm(*inputs, alpha=alpha, no_bias=bias is None, **flags)
