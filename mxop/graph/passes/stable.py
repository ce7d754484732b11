"""Numerically stable forms of textbook formulas."""

from __future__ import annotations

from typing import Any

from ...opdef import registry
from ...support import dtypes
from .. import symbols
from ..ir import Node
from .peephole import PeepholePass, visit


class Stable(PeepholePass):
    """Replace formulas that overflow or cancel by stable operators.

    =================================  ================================================
    before                             after
    =================================  ================================================
    ``log(softmax(x))``                ``log_softmax(x)``
    ``log(1 + x)``                     ``log1p(x)``
    ``exp(x) - 1``                     ``expm1(x)``
    ``log(sum(exp(x)))``               ``_logsumexp(x)``, which subtracts the largest ``x``
    ``log(1 + exp(x))``                ``softrelu``
    ``1 / (1 + exp(-x))``              ``sigmoid(x)``
    ``log(sigmoid(x))``                ``log_sigmoid(x)``
    ``log(1 - sigmoid(x))``            ``log_sigmoid(-x)``
    =================================  ================================================

    The cross-entropy ``-(t*log(p) + (1-t)*log(1-p))`` of ``p = sigmoid(x)`` and its gradient become finite for every finite
    ``x``.  It runs before gradients are taken, on floating-point data.  NaN gives NaN.  Results agree to rounding where the
    written form neither overflows, underflows nor cancels.
    """

    stage = "symbol"

    @visit.on("log")
    def log_of(self, node: Any, x: Any) -> None:
        F = symbols.namespace()
        if not is_real(node) or not _own(x):
            return
        inner = x.op_name
        if inner == "softmax" and not x.attrs["use_length"]:
            params = {k: v for k, v in x.attrs.items() if v is not None and k != "dtype"}
            if x.attrs["dtype"] is not None:
                params["dtype"] = dtypes.NAMES[x.attrs["dtype"]]
            self.replace(node, F.log_softmax(x.inputs[0], **params))
        elif inner == "sum" and x.inputs[0].op_name == "exp" and is_real(x.inputs[0]):
            params = {k: v for k, v in x.attrs.items() if v is not None}
            self.replace(node, F._internal._logsumexp(x.inputs[0].inputs[0], **params))
        elif is_sigmoid(x):
            self.replace(node, F.log_sigmoid(x.inputs[0]))
        elif (source := minus_from_one(x)) is not None and is_sigmoid(source):
            self.replace(node, F.log_sigmoid(-source.inputs[0]))
        elif (source := plus_one(x)) is not None:
            self.replace(node, F.log1p(source))

    @visit.on("log1p")
    def log1p_of(self, node: Any, x: Any) -> None:
        F = symbols.namespace()
        if x.op_name == "exp" and is_real(node):
            self.replace(node, F.Activation(x.inputs[0], act_type="softrelu"))

    @visit.on("_minus_scalar", "_plus_scalar")
    def exp_minus_one(self, node: Any, x: Any) -> None:
        wanted = 1 if node.op_name == "_minus_scalar" else -1
        if x.op_name == "exp" and node.attrs["scalar"] == wanted and is_real(node):
            self.replace(node, symbols.namespace().expm1(x.inputs[0]))

    @visit.on("_rdiv_scalar", "reciprocal")
    def sigmoid_written_out(self, node: Any, x: Any) -> None:
        source = plus_one(x) if node.op_name == "reciprocal" or node.attrs["scalar"] == 1 else None
        if source is None or source.op_name != "exp" or not is_real(node):
            return
        negated = source.inputs[0]
        if negated.op_name == "negative" or (negated.op_name == "_mul_scalar" and negated.attrs["scalar"] == -1):
            self.replace(node, symbols.namespace().sigmoid(negated.inputs[0]))


def is_real(x: Any) -> bool:
    """Return whether data are floating-point, or of unknown type."""
    code = x._known.dtype(x._entries[0])
    return code in dtypes.FLOATS or code == dtypes.UNKNOWN


def _own(x: Any) -> bool:
    node: Node = x.node
    return node.op is not None and registry.find(node.op.name) is node.op


def is_sigmoid(x: Any) -> bool:
    """Return whether a value is a ``sigmoid``."""
    return x.op_name == "sigmoid" or (x.op_name == "Activation" and x.attrs["act_type"] == "sigmoid")


def plus_one(x: Any) -> Any:
    """Return ``a`` if a value is ``a + 1``, else None."""
    if x.op_name == "_plus_scalar" and x.attrs["scalar"] == 1:
        return x.inputs[0]
    if x.op_name in ("elemwise_add", "broadcast_add"):
        for a, b in (x.inputs, x.inputs[::-1]):
            if b.fill == 1 and (x.op_name == "elemwise_add" or (a.shape is not None and a.shape == x.shape)):
                return a
    return None


def minus_from_one(x: Any) -> Any:
    """Return ``a`` if a value is ``1 - a``, else None."""
    if x.op_name == "_rminus_scalar" and x.attrs["scalar"] == 1:
        return x.inputs[0]
    if x.op_name in ("elemwise_sub", "broadcast_sub"):
        one, a = x.inputs
        if one.fill == 1 and (x.op_name == "elemwise_sub" or (a.shape is not None and a.shape == x.shape)):
            return a
    return None
