"""What passes see of a graph: symbols that know their shape, type and value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph import constants
from ..graph.infer import Known
from ..graph.ir import Entry, Node, location
from ..opdef import Attrs, Operator
from ..support import dtypes
from .symbol import Symbol


class Operand(Symbol):
    """A node of a graph that is being rewritten, or one of its outputs.

    It can be used as any symbol; what passes need beyond that are its attributes.

    Attributes
    ----------
    op_name : str or None
        Name of the operator; None for a variable.
    kind : str or None
        Kind of the operator.
    attrs : Attrs
        Its parameters: ``node.attrs['axis']`` or ``node.attrs.axis``.
    shape : tuple of int, or None
        None when it is not known.
    dtype : type or None
    inputs : list of Operand
    """

    __slots__ = ("_known",)

    def __init__(self, entries: Sequence[Entry], known: Known):
        super().__init__(entries)
        self._known = known

    @property
    def node(self) -> Node:
        return self._entries[0][0]

    @property
    def op(self) -> Operator | None:
        return self.node.op

    @property
    def op_name(self) -> str | None:
        return None if self.node.op is None else self.node.op.name

    @property
    def kind(self) -> str | None:
        return None if self.node.op is None else self.node.op.kind

    @property
    def attrs(self) -> Attrs:
        return self.node.attrs

    @property
    def inputs(self) -> list[Operand]:
        return [Operand([e], self._known) for e in self.node.inputs]

    @property
    def location(self) -> str | None:
        """Where the user made it, as ``file:line``."""
        return location(self.node)

    @property
    def shape(self) -> tuple[int, ...] | None:
        shape = self._known.shape(self._entries[0])
        return None if shape is None or None in shape else shape

    @property
    def size(self) -> int | None:
        shape = self.shape
        return None if shape is None else int(np.prod(shape, dtype=np.int64))

    @property
    def ndim(self) -> int | None:
        shape = self._known.shape(self._entries[0])
        return None if shape is None else len(shape)

    @property
    def dtype(self) -> Any:
        code = self._known.dtype(self._entries[0])
        return None if code == dtypes.UNKNOWN else dtypes.type_of(code)

    @property
    def is_variable(self) -> bool:
        return self.node.op is None

    @property
    def is_constant(self) -> bool:
        """Whether it is computed from nothing but numbers."""
        return constants.is_literal(self.node) or self.fill is not None

    @property
    def fill(self) -> float | None:
        """The one number that all elements are, or None."""
        return constants.fill_of(self._entries[0], self._known)

    @property
    def value(self) -> np.ndarray | None:
        """The value of a constant, or None."""
        return constants.value_of(self._entries[0], self._known)
