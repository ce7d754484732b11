"""``F.contrib.foreach``, ``while_loop`` and ``cond`` inside composites and compiled functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from . import captured
from .bodies import slice_of
from .builder import CONTROL, Builder, Value
from .ir import Entry, Node, variable


class _Values(captured.Api):
    kind = Value

    def __init__(self, builder: Builder):
        self.builder = builder

    def wrap(self, entry: Entry) -> Value:
        return self.builder.value(entry)

    def one(self, value: Value) -> Entry:
        return value.entry

    def begin(self, name: str) -> set[Node]:
        return set()

    def variable(self, scope: set[Node], name: str, of: Entry, is_slice: bool) -> Node:
        found = variable(name)
        if self.builder.specs is not None:
            shape, code = self.builder.specs(of)
            self.builder.specs.put(found, slice_of(shape) if is_slice and shape is not None else shape, code)
        return found

    def call(self, scope: set[Node], function: Callable, *args: Any) -> Any:
        self.builder._scopes.append(scope)
        try:
            return function(*args)
        finally:
            self.builder._scopes.pop()

    def made(self, scope: set[Node], node: Node) -> bool:
        return node in scope

    def node(self, op: Any, hint: str, inputs: Sequence[Entry], strings: dict[str, str]) -> Node:
        return self.builder.add(op, inputs, op.parse(strings))


def _function(name: str, builder: Builder) -> Callable:
    return partial(getattr(captured, name), _Values(builder))


CONTROL.update({f"_contrib_{name}": partial(_function, name) for name in ("foreach", "while_loop", "cond")})
