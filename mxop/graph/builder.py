"""The namespace ``F`` in which composites and gradient rules add nodes to a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from math import prod
from typing import Any

from ..opdef import Attrs, Operator, infer, registry
from ..support import dtypes, mxnet_names
from ..support.errors import OpLookupError, OpTypeError, UnknownShapeError
from .arithmetic import Arithmetic
from .calls import active_inputs, by_kind, parse_with_count, split_call
from .ir import Entry, Node
from .symbolic import has_numbers, numbers_as_inputs
from .traits import is_mask

_SPACES = {space: prefix for prefix, space in registry.PREFIXES.items()}

#: Attributes that nodes inherit from the node they are made for.
INHERITED = ("__force_mirroring__",)
#: Functions of ``F`` that are not operators, each made by a function of the builder; :mod:`.value_control` and others add them.
CONTROL: dict[str, Callable[[Builder], Callable]] = {}
#: The modules that add them, imported on first use.
_CONTROL_MODULES = {"_gradients": "value_gradient"} | dict.fromkeys(
    ("_contrib_foreach", "_contrib_while_loop", "_contrib_cond"), "value_control"
)


class Value(Arithmetic):
    """An entry of a graph under construction; in a rule it behaves as an array does, with broadcasting arithmetic."""

    __slots__ = ("builder", "entry")

    def __init__(self, builder: Builder, entry: Entry):
        self.builder, self.entry = builder, entry

    def __repr__(self) -> str:
        return f"<value {self.entry[0].output_name(self.entry[1])}>"

    @classmethod
    def _advice(cls, given: Any) -> str:
        array = hasattr(given, "asnumpy")
        return "; pass the array as an argument, or make it from one (zeros_like, contrib.arange_like)" if array else ""

    def _operate(self, op_name: str, hint: str, inputs: list, params: dict[str, Any]) -> Any:
        types = {dtypes.UNKNOWN} if self.builder.specs is None else {self.builder.specs(v.entry)[1] for v in inputs}
        found = dtypes.promoted(*types) if len(types) == 2 and dtypes.UNKNOWN not in types else None
        return self.builder._call(op_name, inputs if found is None else [v.astype(found, False) for v in inputs], params)

    def __mxop_operator__(self, name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Apply an operator called by its own name instead of as a function of ``F``."""
        return getattr(self.builder, name)(*args, **kwargs)

    def __mxop_gradients__(
        self, heads: Sequence, variables: Sequence, head_grads: Sequence | None, create_graph: bool
    ) -> list[Value]:
        """Differentiate in the graph under construction; ``autograd.grad`` calls this for values."""
        found = self.builder._gradients(heads, variables, head_grads)
        return found if create_graph else [g.detach() for g in found]

    def detach(self) -> Value:
        """Return the value without its history: gradients do not pass through."""
        block = registry.get("BlockGrad")
        return Value(self.builder, (self.builder.add(block, [self.entry], block.parse({})), 0))

    def __bool__(self) -> bool:
        raise OpTypeError("a value has no truth value inside a composite, a gradient rule or a compiled function: use where")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return partial(getattr(self.builder, name), self)
        except OpLookupError:
            if name not in mxnet_names.listed("NDArray"):
                raise
            raise OpLookupError(f".{name} is for arrays only: composites and gradient rules run in graphs, too, which have "
                                "no values yet; use operators of F") from None  # fmt: skip

    @property
    def _is_mask(self) -> bool:
        return is_mask(self.entry)

    def __getitem__(self, key: Any) -> Value:
        """Return a part, as of an array: by integers, slices, None and ``...``."""
        from ..ops.indexing import part_of

        if any(isinstance(item, Value) and item._is_mask for item in (key if isinstance(key, tuple) else (key,))):
            raise OpTypeError("x[mask] has a size that follows from values, which a graph does not have: use "
                              "where(mask, x, 0), which keeps the shape, or index outside of the function")  # fmt: skip
        return self.builder.viewed(self, part_of(self.builder, self, key))

    def __setitem__(self, key: Any, value: Any) -> None:
        """Do ``x[mask] = value`` in a compiled function; the value is one for all chosen elements, or for all rows."""
        if not (isinstance(key, Value) and key._is_mask):
            raise OpTypeError("a compiled function assigns to arrays through one mask that it computes, x[x < 0] = value")
        if key.shape != self.shape[: key.ndim]:
            raise OpTypeError(f"a mask of shape {key.shape} does not fit an array of shape {self.shape}")
        mask = key.reshape(key.shape + (1,) * (self.ndim - key.ndim))
        if isinstance(value, Value):
            rank = self.ndim - key.ndim
            if value.ndim > rank and value.size != 1:
                raise OpTypeError(f"x[mask] = value: the value has shape {value.shape}, and how many elements the mask chooses "
                                  "follows from values; use where(mask, value, x) for a value of the shape of x")  # fmt: skip
            value = value.astype(self.dtype, copy=False).reshape((1,) * self.ndim if value.size == 1 else value.shape)
            made = self.builder.where(self.builder.broadcast_like(mask, self), self.builder.broadcast_like(value, self), self)
        else:
            made = self.builder.where(self.builder.broadcast_like(mask, self), value, self)
        if self.builder.changed(self, made) is not self:
            raise OpTypeError("a composite or a gradient rule does not assign to arrays: use F.where(mask, value, x)")

    def reshape(self, *args: Any, **kwargs: Any) -> Value:
        """Return the value in another shape."""
        return self.builder.viewed(self, self.builder.reshape(self, *args, **kwargs))

    def __iadd__(self, other: Any) -> Value:
        return self.builder.changed(self, self + other)

    def __isub__(self, other: Any) -> Value:
        return self.builder.changed(self, self - other)

    def __imul__(self, other: Any) -> Value:
        return self.builder.changed(self, self * other)

    def __itruediv__(self, other: Any) -> Value:
        return self.builder.changed(self, self / other)

    def __imod__(self, other: Any) -> Value:
        return self.builder.changed(self, self % other)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def T(self) -> Value:
        return self.builder.transpose(self)

    def astype(self, dtype: Any, copy: bool = True) -> Value:
        """Return the value in another type; without `copy`, itself if it has the type."""
        if not copy and dtypes.code_of(dtype) == dtypes.code_of(self.dtype):
            return self
        return self.builder.Cast(self, dtype=dtype)

    # These properties need inferred shapes and types: they work in bound graphs and in calls on arrays.
    @property
    def shape(self) -> tuple[int, ...]:
        return self.builder.spec(self.entry, "shape")[0]

    @property
    def ndim(self) -> int:
        return len(self.builder.spec(self.entry, "ndim")[0])

    @property
    def size(self) -> int:
        return prod(self.builder.spec(self.entry, "size")[0])

    @property
    def dtype(self) -> type:
        return dtypes.type_of(self.builder.spec(self.entry, "dtype")[1])


class Builder:
    """The namespace ``F`` of a rule: each registered name is a function that adds a node.

    New nodes get their names and sources from the node they are made for; see :meth:`work_for`.

    Parameters
    ----------
    specs : callable, optional
        ``specs(entry)`` returns shape and type code of an entry, None if unknown.
    """

    def __init__(self, specs: Callable[[Entry], tuple[Any, int]] | None = None) -> None:
        self.specs = specs
        self._is_train: bool | None = getattr(specs, "is_train", None)
        self._prefix, self._source, self._order, self._count = "", None, 0, 0
        self._control: tuple[Node, ...] = ()
        self._inherited: dict[str, str] = {}
        self._scopes: list[set[Node]] = []  # nodes of the subgraphs under construction

    def work_for(self, node: Node, suffix: str, order: int = 0, control: tuple[Node, ...] = ()) -> None:
        """Make all later nodes for `node`: with its name and source, after `control`."""
        self._prefix, self._source, self._order, self._count = node.name + suffix, node.source, order, 0
        self._control = control
        self._inherited = {key: value for key, value in (node.strings or {}).items() if key in INHERITED}

    def value(self, entry: Entry) -> Value:
        """Return an entry as a value for rules."""
        return Value(self, entry)

    def viewed(self, value: Value, part: Value) -> Value:
        """Return `part`, a part of `value` that would be a view of an array."""
        return part

    def changed(self, value: Value, new: Value) -> Value:
        """Return the result of ``value += ...``: rules do not change their arguments."""
        return new

    def spec(self, entry: Entry, asked: str) -> tuple[tuple[int, ...], int]:
        """Return shape and type code of an entry; `asked` is the property that a rule reads, for messages.

        Raises
        ------
        UnknownShapeError
            If that property is not known.
        """
        shape, code = (None, dtypes.UNKNOWN) if self.specs is None else self.specs(entry)
        if (code == dtypes.UNKNOWN) if asked == "dtype" else not infer.known(shape):
            raise UnknownShapeError(f"the .{asked} of {entry[0].output_name(entry[1])!r} is not known yet: a composite or a "
                                    "gradient rule can read it in calls on arrays and in bound graphs")  # fmt: skip
        return shape, code

    def add(self, op: Operator, inputs: Sequence[Entry], attrs: Attrs) -> Node:
        """Add a node in the mode of the graph."""
        op.check_arity(attrs, len(inputs))
        if self._is_train is not None:
            attrs = attrs.training(self._is_train)
        name = self._prefix or op.name.lstrip("_").lower()
        if self._count:
            name += str(self._count)
        self._count += 1
        node = Node(op, attrs, tuple(inputs), name, None, self._source, self._order, self._control)
        if self._inherited:
            node.strings = node.text() | self._inherited
        for scope in self._scopes:
            scope.add(node)
        return node

    def _invoke(self, op: Operator, inputs: Sequence[Value], attrs: Attrs) -> Any:
        """Add a call; return its output, or a list of its outputs."""
        for value in inputs:
            if not isinstance(value, Value):
                raise OpTypeError(f"operator {op.name}: a rule gave {value!r} as an input; expected an array")
        entries = [v.entry for v in inputs]
        if has_numbers(attrs):
            op, entries, attrs = numbers_as_inputs(op, entries, attrs, self.specs)
        node = self.add(op, entries, attrs)
        n = node.visible_outputs
        return Value(self, (node, 0)) if n == 1 else [Value(self, (node, k)) for k in range(n)]

    def _call(self, op_name: str, inputs: list, params: dict[str, Any]) -> Any:
        op = registry.get(op_name)
        return self._invoke(op, inputs, op.parse(params))

    def _function(self, op: Operator) -> Callable:
        def function(*args: Any, **kwargs: Any) -> Any:
            kwargs.pop("name", None)
            called, args, kwargs = (op, args, kwargs) if op.arranged is None else op.arranged(args, kwargs)
            inputs, params = split_call(called, args, kwargs, Value)
            attrs = parse_with_count(called, params, len(inputs))
            names, inputs = active_inputs(called, attrs, inputs)
            for name, value in zip(names, inputs, strict=True):
                if value is None:
                    raise OpTypeError(f"operator {called.name}: input {name!r} is missing in a rule")
            return self._invoke(called, inputs, attrs)

        return function

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in _SPACES:
            return _Space(self, _SPACES[name])
        if name in ("op", "_internal"):
            return self
        op = registry.find(name)
        if op is not None:
            return self._function(op)
        if name in _CONTROL_MODULES:
            import_module(f".{_CONTROL_MODULES[name]}", __package__)
            return CONTROL[name](self)
        from ..ops.binary import PYTHON_NAMES

        choice = PYTHON_NAMES.get(name)
        if choice is not None:
            return by_kind(choice, choice.arrays, lambda op, hint, inputs, params: self._call(op, inputs, params), Value)
        op = registry.hidden(name)
        if op is None:
            raise registry.not_registered(name, f"F has no operator {name!r}")
        return self._function(op)


class _Space:
    """A sub-namespace of F, such as ``F.linalg``."""

    def __init__(self, builder: Builder, prefix: str):
        self._builder, self._prefix = builder, prefix

    def __getattr__(self, name: str) -> Any:
        return getattr(self._builder, self._prefix + name)


def entries_of(result: Any, count: int, what: str) -> list[Entry]:
    """Return the entries of the result of a composite."""
    values = list(result) if isinstance(result, (list, tuple)) else [result]
    if len(values) != count or not all(isinstance(v, Value) for v in values):
        raise OpTypeError(f"{what} returned {result!r}; expected {count} output{'s' if count != 1 else ''}")
    return [v.entry for v in values]
