"""The representation of graphs that symbols, executors and passes share.

A :class:`Node` is a call of an operator, or a variable.  Nodes are immutable, so graphs share them, and a pass builds new
ones.  An *entry* ``(node, k)`` is output `k` of a node; a :class:`Graph` is a tuple of entries with all nodes that they need.
No function here is recursive, so graphs may have any depth.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

from ..opdef import Attrs, Operator
from ..support.errors import OpTypeError

Entry = tuple["Node", int]
T = TypeVar("T")

#: Attributes for the framework rather than an operator.  They are listed with and without underscores, as MXNet does.
HIDDEN_KEYS = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage")

NO_ATTRS = Attrs((), ())


class Node:
    """A call of an operator, or a variable.

    Attributes
    ----------
    op : Operator or None
        None for a variable.
    attrs : Attrs
        Parsed parameters.
    inputs : tuple of (Node, int)
    name : str
    strings : dict of str to str, or None
        Parameters and attributes given by the user, as in MXNet's JSON.  None for a node made by the framework.
    control : tuple of Node
        Nodes that run before this one without being its inputs.
    source : tuple or None
        Where the user made it; :func:`location` formats it as ``file:line``.
    order : int
        The number of gradients taken to make this node.
    """

    __slots__ = ("__weakref__", "_n_outputs", "attrs", "control", "inputs", "name", "op", "order", "source", "strings")

    def __init__(
        self,
        op: Operator | None,
        attrs: Attrs,
        inputs: tuple[Entry, ...],
        name: str,
        strings: dict[str, str] | None = None,
        source: Any = None,
        order: int = 0,
        control: tuple[Node, ...] = (),
    ):
        self.op, self.attrs, self.inputs, self.name = op, attrs, inputs, name
        self.strings, self.source, self.order, self.control = strings, source, order, control
        self._n_outputs = 1 if op is None else 0

    @property
    def n_outputs(self) -> int:
        """Number of outputs, with hidden ones."""
        if not self._n_outputs:
            self._n_outputs = self.op.num_outputs(self.attrs, len(self.inputs))
        return self._n_outputs

    @property
    def visible_outputs(self) -> int:
        """Number of outputs that users see."""
        return 1 if self.op is None else self.op.num_visible_outputs(self.attrs, len(self.inputs))

    def __repr__(self) -> str:
        return f"<{'variable' if self.op is None else self.op.name} node {self.name!r}>"

    def replaced(self, inputs: tuple[Entry, ...] | None = None, **changes: Any) -> Node:
        """Return a copy with other inputs or attributes."""
        new = Node(
            changes.get("op", self.op),
            changes.get("attrs", self.attrs),
            self.inputs if inputs is None else inputs,
            changes.get("name", self.name),
            changes.get("strings", self.strings),
            self.source,
            self.order,
            changes.get("control", self.control),
        )
        new._n_outputs = self._n_outputs
        return new

    def needs(self) -> list[Node]:
        """Return the nodes that must run before this one: inputs, then control dependencies."""
        found = [source for source, _ in self.inputs]
        return found + list(self.control) if self.control else found

    def below(self) -> Iterator[Entry]:
        """Return an iterator over :meth:`needs`, as entries."""
        return iter(self.inputs) if not self.control else iter((*self.inputs, *((n, 0) for n in self.control)))

    def input_names(self) -> tuple[str, ...]:
        """Return the operator's names of its inputs."""
        return self.op.input_names(self.attrs, len(self.inputs))

    def output_name(self, k: int) -> str:
        """Return the name of an output as MXNet lists it, such as ``fc1_output``; for a variable its own name."""
        if self.op is None:
            return self.name
        return f"{self.name}_{self.op.output_names(self.attrs, len(self.inputs))[k]}"

    def output_names(self) -> list[str]:
        """Return :meth:`output_name` for each output."""
        if self.op is None:
            return [self.name]
        return [f"{self.name}_{name}" for name in self.op.output_names(self.attrs, len(self.inputs))]

    def text(self) -> dict[str, str]:
        """Return parameters and attributes as strings, for ``symbol.json``."""
        if self.strings is not None or self.op is None:
            return self.strings or {}
        defaults = {p.name: p.default for p in self.op.spec.params}
        given = {n: v for n, v in self.attrs.items() if n not in defaults or defaults[n] != v}
        return self.op.spec.to_strings(self.attrs, given)

    def mutated_inputs(self) -> list[int]:
        """Return the positions of inputs that the operator writes: auxiliary states."""
        states = () if self.op is None else self.op.aux_names(self.attrs)
        return [i for i, name in enumerate(self.input_names()) if name in states] if states else []


def variable(name: str, strings: Mapping[str, str] | None = None, source: Any = None) -> Node:
    """Return a new variable."""
    return Node(None, NO_ATTRS, (), name, dict(strings or {}), source)


class Graph:
    """A tuple of entries, with all nodes that they need.

    Attributes
    ----------
    outputs : tuple of (Node, int)
    """

    __slots__ = ("_nodes", "_uses", "outputs")

    def __init__(self, outputs: Iterable[Entry]):
        self.outputs = tuple(outputs)
        self._nodes: list[Node] | None = None
        self._uses: dict[Entry, list[Node]] | None = None

    @property
    def nodes(self) -> list[Node]:
        """All nodes, each after those that it needs; depth first, in MXNet's order."""
        if self._nodes is None:
            self._nodes = _ordered(self.outputs)
        return self._nodes

    @property
    def variables(self) -> list[Node]:
        return [n for n in self.nodes if n.op is None]

    @property
    def uses(self) -> dict[Entry, list[Node]]:
        """The nodes that read each entry, with repetitions."""
        if self._uses is None:
            self._uses = {}
            for node in self.nodes:
                for entry in node.inputs:
                    self._uses.setdefault(entry, []).append(node)
        return self._uses

    def arguments(self) -> tuple[list[Node], list[Node]]:
        """Return the variables that are arguments and those that are auxiliary states."""
        states = {node.inputs[i][0] for node in self.nodes for i in node.mutated_inputs()}
        found = self.variables
        return [n for n in found if n not in states], [n for n in found if n in states]

    def __len__(self) -> int:
        return len(self.nodes)


def _ordered(outputs: Iterable[Entry]) -> list[Node]:
    """Return :func:`topological` for nodes; specialized, because it runs after every pass."""
    order: list[Node] = []
    seen: set[Node] = set()
    for head, _ in outputs:
        if head in seen:
            continue
        seen.add(head)
        stack = [(head, head.below())]
        while stack:
            node, pending = stack[-1]
            for source, _ in pending:
                if source not in seen:
                    seen.add(source)
                    if source.inputs or source.control:
                        stack.append((source, source.below()))
                        break
                    order.append(source)
            else:
                order.append(node)
                stack.pop()
    return order


def topological(heads: Iterable[T], needs: Callable[[T], Iterable[T]]) -> list[T]:
    """Return the heads and all items that they need, each after those that it needs, without recursion."""
    order: list[T] = []
    seen: set[T] = set()
    for head in heads:
        if head in seen:
            continue
        seen.add(head)
        stack = [(head, iter(needs(head)))]
        while stack:
            item, pending = stack[-1]
            for below in pending:
                if below not in seen:
                    seen.add(below)
                    stack.append((below, iter(needs(below))))
                    break
            else:
                order.append(item)
                stack.pop()
    return order


def caller() -> tuple[Any, int] | None:
    """Return where the user's code is now: code object and instruction, which are cheap to get."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if not (name.startswith("mxop.") or name == "mxop"):
            return frame.f_code, frame.f_lasti
        frame = frame.f_back
    return None


def location(node: Node) -> str | None:
    """Return ``file:line`` of the user's code that made a node."""
    if node.source is None:
        return None
    code, at = node.source
    line = next(islice(code.co_positions(), at // 2, None), (None,))[0]
    return f"{code.co_filename}:{line or code.co_firstlineno}"


def describe(node: Node) -> str:
    """Return a node's name, operator and source line, for messages."""
    place = location(node)
    kind = "variable" if node.op is None else f"operator {node.op.name}"
    return f"node {node.name!r} ({kind}{f', made at {place}' if place else ''})"


def single(entries: tuple[Entry, ...], what: str) -> Entry:
    """Return the only entry of a symbol that is one input."""
    if len(entries) != 1:
        raise OpTypeError(f"{what} is a group of {len(entries)} outputs; expected one (index it, as in group[0])")
    return entries[0]


def as_text(graph: Graph) -> str:
    """Return a graph as text, one block per node, in the form of MXNet's ``debug_str``."""
    lines = ["Symbol Outputs:"]
    lines += [f"\toutput[{i}]={node.name}({k})" for i, (node, k) in enumerate(graph.outputs)]
    for node in graph.nodes:
        if node.op is None:
            lines.append(f"Variable:{node.name}")
            continue
        lines += ["-" * 20, f"Op:{node.op.name}, Name={node.name}", "Inputs:"]
        written = node.mutated_inputs()
        for i, (source, k) in enumerate(node.inputs):
            version = f" version={int(i in written)}" if source.op is None else ""
            lines.append(f"\targ[{i}]={source.name}({k}){version}")
        text = node.text()
        if text:
            lines += ["Attrs:", *(f"\t{key}={value}" for key, value in sorted(text.items()))]
    return "\n".join(lines) + "\n"
