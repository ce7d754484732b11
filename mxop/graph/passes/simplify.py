"""Simplification: rewrites that keep every result bit for bit.

All rewrites keep NaN, infinities and the sign of zero, for every type: ``x * 0`` stays, and so does ``x + 0``, since it turns
-0.0 into 0.0 (``x - 0`` does not).  Rewrites that hold for real numbers only are in :mod:`.algebra`.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

from ...formula import input_
from ...opdef import Elementwise, Kernel, contiguous_strides, registry
from ...opdef.elementwise import BackwardOperator
from ...opdef.infer import broadcast_shape
from ...opdef.infer import known as is_known
from ...support import dtypes
from ..constants import fill_of
from ..formulas import specialised
from ..infer import Known
from ..ir import Entry, Graph, Node
from ..traits import is_plain, is_plain_view, is_pure, same_by_rule, states_of, strided
from .base import Rewriting

_OF_BYTES = {dtypes.INT32, dtypes.INT64, dtypes.FLOAT16, dtypes.FLOAT32, dtypes.FLOAT64}
#: Types that hold all values of the key exactly.
_HELD_BY = {
    dtypes.FLOAT16: {dtypes.FLOAT32, dtypes.FLOAT64}, dtypes.BFLOAT16: {dtypes.FLOAT32, dtypes.FLOAT64},
    dtypes.FLOAT32: {dtypes.FLOAT64}, dtypes.INT32: {dtypes.INT64, dtypes.FLOAT64},
    dtypes.UINT8: _OF_BYTES, dtypes.INT8: _OF_BYTES,
}  # fmt: skip


class Simplify(Rewriting):
    """Drop copies, cancel pairs of inverse operators, and merge reshapes and transposes.

    ===============================================  ==========================================
    before                                           after
    ===============================================  ==========================================
    ``x * 1``, ``x / 1``, ``x ** 1``, ``x - 0``      ``x``
    ``x + 0`` of integers                            ``x``
    ``identity(x)``, ``cast(x)`` to its own type     ``x``
    ``-(-x)``                                        ``x``
    ``cast(cast(x, 'float64'), 'float32')``          ``x``, of float32
    ``transpose(transpose(x))``, ``flip(flip(x))``   ``x``, or one transpose
    ``reshape(reshape(x, ...), ...)``                ``reshape(x, ...)``, or ``x``
    ``x * full(2)``                                  ``x * 2``, with a scalar parameter
    ``x * broadcast_to(b, ...)``                     ``broadcast_mul(x, b)``
    ===============================================  ==========================================
    """

    def begin_pass(self, graph: Graph, known: Known) -> None:
        super().begin_pass(graph, known)
        self._states = states_of(graph)
        self._own = set(graph.nodes)
        self._read = {entry for node in graph.nodes for entry in node.inputs} | set(graph.outputs)

    def visit_node(self, node: Node) -> None:
        if not self._may_go(node):
            return
        found = self._identity(node)
        if found is None and isinstance(node.op, Elementwise):
            found = self._double_negation(node) or self._double_cast(node)
            found = found or self._with_number(node) or self._repeating(node)
        elif found is None and isinstance(node.op, Kernel) and node.op.make_view is not None:
            found = self._view_of_view(node)
        if found is not None:
            self._replacement[node] = found

    def _may_go(self, node: Node) -> bool:
        """Return whether other values may be read in the place of a node's: it has no effects, nor do its inputs change."""
        return bool(node.inputs) and is_pure(node) and not any(n in self._states for n, _ in node.inputs)

    def _visited(self, node: Node) -> list[Entry] | None:
        """Replace a node; or let what reads an output that equals an input read the input, where other outputs need the node.

        The node stays, so this is no reason to sweep again.  Nodes that this sweep rebuilt are read under their old names.
        """
        found = super()._visited(node)
        if found is not None or node.control or not isinstance(node.op, Elementwise) or node.n_outputs == 1:
            return found
        if not self._may_go(node):
            return None
        same = self._same(node)
        read = [k for k in same if node not in self._own or (node, k) in self._read]
        return [same.get(k, (node, k)) for k in range(node.n_outputs)] if read else None

    # ---- copies -----------------------------------------------------------------------------------------------------
    def _identity(self, node: Node) -> list[Entry] | None:
        """Return the entries that a node's outputs are equal to, if each equals an input."""
        known = self.known
        if isinstance(node.op, Elementwise):
            found = self._same(node)
            return self._integer_sum(node) if len(found) < node.n_outputs else [found[k] for k in range(node.n_outputs)]
        if node.n_outputs != 1 or not known.same(node.inputs[0], (node, 0)):
            return None
        if node.op.name == "_unbroadcast" or is_plain_view(node, known):  # type: ignore[union-attr]
            return [node.inputs[0]]
        return None

    def _same(self, node: Node) -> dict[int, Entry]:
        """Return the inputs that outputs of an elementwise node are equal to."""
        known, found = self.known, {}
        for k, root in enumerate(specialised(node, known) or node.op.formula(node.attrs, len(node.inputs)).roots):  # type: ignore
            source = node.inputs[root.label] if root.kind == "input" else None
            if source is not None and (known.same(source, (node, k)) or same_by_rule(node, source, known)):
                found[k] = source
        return found

    def _integer_sum(self, node: Node) -> list[Entry] | None:
        if node.op.name not in ("_plus_scalar", "_minus_scalar") or not -1 < node.attrs["scalar"] < 1:  # type: ignore[union-attr]
            return None
        code = self.known.dtype((node, 0))
        return [node.inputs[0]] if code not in dtypes.FLOATS and code not in (dtypes.UNKNOWN, dtypes.BOOL) else None

    # ---- inverse operators ------------------------------------------------------------------------------------------
    def _double_negation(self, node: Node) -> list[Entry] | None:
        source = node.inputs[0][0]
        if source.op is None or not self._negates(node) or not is_pure(source) or not self._negates(source):
            return None
        return [source.inputs[0]]

    def _negates(self, node: Node) -> bool:
        if len(node.inputs) != 1:
            return False
        if node.op.name == "negative":  # type: ignore[union-attr]
            return True
        roots = specialised(node, self.known)
        return (
            roots is not None
            and len(roots) == 1
            and roots[0].kind == "call"
            and roots[0].label == "neg"
            and (roots[0].args[0] is input_(0))
        )

    def _double_cast(self, node: Node) -> list[Entry] | None:
        source = node.inputs[0][0]
        if node.op.name != "Cast" or source.op is None or source.op.name != "Cast":  # type: ignore[union-attr]
            return None
        first, middle, last = (self.known.dtype(e) for e in (source.inputs[0], (source, 0), (node, 0)))
        return [source.inputs[0]] if first == last and middle in _HELD_BY.get(first, ()) else None

    # ---- operands --------------------------------------------------------------------------------------------------
    def _with_number(self, node: Node) -> list[Entry] | None:
        """Replace an operand of equal elements by a scalar parameter: ``x * full(2)`` is ``x * 2``."""
        forms = _number_forms().get(node.op)
        if forms is None:
            return None
        for at, (op, other) in enumerate(zip(forms, reversed(node.inputs), strict=True)):
            fill = fill_of(node.inputs[at], self.known) if op is not None else None
            if fill is not None and self.known.same(other, (node, 0)):
                new = Node(op, op.parse({"scalar": fill}), (other,), node.name, None, node.source, node.order)
                self.known.copy(node, new)
                return [(new, 0)]
        return None

    def _repeating(self, node: Node) -> list[Entry] | None:
        """Read the operands of broadcasting operators, if the node's operator broadcasts itself."""
        op = _that_broadcasts(node.op)
        inputs = tuple(map(self._before_repeating, node.inputs))
        shapes = [self.known.shape(e) for e in ((node, 0), *inputs)]
        if (
            op is None
            or inputs == node.inputs
            or not all(map(is_known, shapes))
            or shapes[0] != broadcast_shape(op.name, node.input_names(), shapes[1:])
        ):
            return None
        new = Node(op, node.attrs, inputs, node.name, None, node.source, node.order)
        self.known.copy(node, new)
        return [(new, k) for k in range(node.n_outputs)]

    def _before_repeating(self, entry: Entry) -> Entry:
        source, known = entry[0], self.known
        if source.op is None or source.op.name not in ("broadcast_to", "broadcast_axis", "broadcast_like"):
            return entry
        origin = source.inputs[0]
        shapes = known.shape(origin), known.shape(entry)
        same = origin[0] not in self._states and all(map(is_known, shapes)) and len(shapes[0]) == len(shapes[1])
        return origin if same else entry

    # ---- views ------------------------------------------------------------------------------------------------------
    def _view_of_view(self, node: Node) -> list[Entry] | None:
        known = self.known
        source = node.inputs[0][0]
        if not isinstance(source.op, Kernel) or source.op.make_view is None or not is_pure(source):
            return None
        origin = source.inputs[0]
        outer = [known.shape(e) for e in node.inputs]
        inner = [known.shape(e) for e in source.inputs]
        codes = {known.dtype(e) for e in (origin, (source, 0), (node, 0))}
        if not all(map(is_known, outer + inner)) or len(codes) != 1 or 0 in outer[0]:
            return None
        _, strides, first = strided(source.op, source.attrs, tuple(inner), contiguous_strides(inner[0]))
        if strides is None:
            return None
        shape, strides, second = strided(node.op, node.attrs, tuple(outer), strides)  # type: ignore[arg-type]
        return None if strides is None or first + second else self._as_one_view(node, origin, shape, strides)

    def _as_one_view(self, node: Node, origin: Entry, shape: tuple, strides: tuple) -> list[Entry] | None:
        """Return `origin`, a reshape or a transpose of it, if that has the elements of the view; else None."""
        before = self.known.shape(origin)
        params: dict[str, Any]
        if prod(shape) != prod(before):  # a slice of it, or repeated elements
            return None
        if is_plain(shape, strides, 0):
            if shape == before:
                return [origin]
            if not shape:
                return None
            name, params = "Reshape", {"shape": shape}
        else:
            steps = contiguous_strides(before)
            if 1 in before or len(shape) != len(before) or sorted(strides) != sorted(steps):
                return None
            axes = tuple(steps.index(s) for s in strides)
            if tuple(before[i] for i in axes) != tuple(shape):
                return None
            name, params = "transpose", {"axes": axes}
        op = registry.get(name)
        attrs = op.parse(params)
        if node.op is op and node.inputs[0] == origin and node.attrs == attrs:
            return None
        new = Node(op, attrs, (origin,), node.name, op.spec.to_strings(attrs, params), node.source, node.order)
        self.known.copy(node, new)
        return [(new, 0)]


def _that_broadcasts(op: Any) -> Any:
    """Return the form of an elementwise operator that broadcasts its inputs; None if none exists."""
    if op.broadcast:
        return op
    if isinstance(op, BackwardOperator):
        forward = _that_broadcasts(op.forward)
        return forward and forward.backward_operator()
    return _broadcasting().get(op)


@lru_cache(1)
def _broadcasting() -> dict[Any, Any]:
    """Map operators of two arrays of one shape to their broadcasting forms."""
    from ...ops.binary import TABLE

    rows = [row for row in TABLE if row.elemwise and row.broadcast]
    return {registry.get(row.elemwise.split()[0]): registry.get(row.broadcast.split()[0]) for row in rows}


@lru_cache(1)
def _number_forms() -> dict[Any, tuple[Any, Any]]:
    """Map operators of two arrays to their forms for a scalar and an array, and for an array and a scalar."""
    from ...ops.binary import TABLE

    found = {}
    commutes = ("_plus_scalar", "_mul_scalar", "_equal_scalar", "_not_equal_scalar")
    for row in TABLE:
        scalar, reflected = (text.split()[0] if text else "" for text in (row.scalar, row.rscalar))
        if not reflected and scalar in commutes:
            reflected = scalar
        pair = tuple(registry.get(name) if name else None for name in (reflected, scalar))
        for text in (row.elemwise, row.broadcast):
            if text:
                found[registry.get(text.split()[0])] = pair
    return found  # type: ignore[return-value]
