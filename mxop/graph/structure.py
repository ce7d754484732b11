"""The structure of a symbol: its graph without names.  Executors of equal structures share patterns."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .._core import core
from ..opdef import External
from ..opdef.symbolic import Trace, Values, concrete, no_new_guards
from ..support.shape_mode import mode as shape_mode
from .assignment import Assign
from .completion import NamedNodes, may_be_completed
from .epoch import epoch
from .infer import Known
from .ir import Entry, Graph, Node, as_text, variable
from .passes import module_of
from .patterns import Pattern, use_pattern
from .plan import Result
from .recipe import allocate
from .schedule import Arena, build

_NUMBERED = re.compile("\0([0-9]+)\0")


@dataclass(frozen=True)
class Ready:
    """A graph that is ready to be scheduled for an executor's arrays.

    Attributes
    ----------
    pattern : Pattern
    known : Known
        Shapes and calls of the pattern's nodes, for the executor's arrays.
    head_specs : sequence of (shape, type code)
        Of the arrays for head gradients; None where no gradient depends on them.
    named : NamedNodes
        Maps nodes of the pattern to nodes with the symbol's names.
    numbers : sequence of (float, type code)
        Values of the last inputs of the pattern, which follow from sizes.
    """

    pattern: Pattern
    known: Known
    head_specs: Sequence[tuple | None]
    named: NamedNodes
    numbers: Sequence[tuple[float, int]]

    @property
    def outputs(self) -> Sequence[Entry]:
        """The entries of the symbol's outputs."""
        return self.pattern.graph.outputs[: self.pattern.lowered.n_outputs]

    @property
    def gradients(self) -> Sequence[Entry]:
        return self.pattern.graph.outputs[self.pattern.lowered.n_forward :]

    def build(self, arrays: Sequence[Any], heads: Sequence[Any], results: Sequence[Result], arena: Arena) -> tuple:
        """Return the schedules and the plan for arrays of arguments and states, of head gradients, and of results."""
        pattern, device = self.pattern, core.device_of(self.pattern.place)
        numbers = [allocate((), code, device) for _, code in self.numbers]
        for a, (number, _) in zip(numbers, self.numbers, strict=True):
            device.fill(a, number)
        bound = {
            node: a
            for node, a in zip((*pattern.variables, *pattern.lowered.heads), (*arrays, *numbers, *heads), strict=True)
            if node is not None
        }
        return build(pattern.phases(results), self.known, bound, arena, pattern.shares, self.named)


class Structure:
    """A symbol's graph; structures are equal if their graphs differ in names only.

    Parameters
    ----------
    graph : Graph
    variables : sequence of Node
        Arguments and auxiliary states.
    passes : sequence of Pass
    """

    LIMIT = 24  # patterns for given sizes that are kept
    _symbolic_sizes = True

    def __init__(self, graph: Graph, variables: Sequence[Node], passes: Sequence[Any]):
        self.graph, self.variables, self.passes = graph, list(variables), passes
        at = {node: i for i, node in enumerate(graph.nodes)}
        outputs = tuple([(at[n], k) for n, k in graph.outputs])
        self._key = tuple(passes), outputs, tuple([_form(node, at) for node in graph.nodes])
        self._hash = hash(self._key)
        self._one_by_one: OrderedDict[Hashable, Pattern] = OrderedDict()
        own = (module_of(p).startswith("mxop.") for p in passes)  # passes of users may read names
        self._symbolic = self._symbolic_sizes and may_be_completed(graph) and not _keeps_states(graph) and all(own)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self._key == other._key

    def ready(self, specs: tuple, wanted: tuple[int, ...], is_train: bool, gpu: int) -> Ready:
        """Return the graph for variables of given shapes and types, with the gradients of the `wanted` ones."""
        if self._symbolic:
            return use_pattern(self, None, specs, wanted, is_train, gpu, self.completed)  # type: ignore[return-value]
        return self.completed(self.pattern(specs, wanted, is_train, gpu), {})

    def pattern(self, specs: tuple, wanted: tuple[int, ...], is_train: bool, gpu: int, trace: Trace | None = None) -> Pattern:
        """Return the pattern of the graph; if sizes are symbolic, numbers replace the names of its nodes."""
        if trace is not None:
            graph, variables = self._numbered
            return self._pattern(graph, variables, specs, wanted, is_train, gpu, trace)
        key = specs, wanted, is_train, gpu, shape_mode.numpy, epoch()
        found = self._one_by_one.get(key)
        if found is None:
            found = self._pattern(self.graph, self.variables, specs, wanted, is_train, gpu)
            if not _keeps_states(found.graph):
                self._one_by_one[key] = found
                while len(self._one_by_one) > self.LIMIT:
                    self._one_by_one.popitem(last=False)
        return found

    def _pattern(self, graph: Graph, variables: Sequence[Node], specs: tuple, wanted: tuple[int, ...], is_train: bool,
                 gpu: int, trace: Trace | None = None) -> Pattern:  # fmt: skip
        names = [v.name for v in variables]
        return Pattern(graph, variables, specs, wanted, is_train, lambda: ("an executor", names), gpu=gpu, trace=trace,
                       passes=self.passes, bound=True)  # fmt: skip

    @cached_property
    def _numbered(self) -> tuple[Graph, list[Node]]:
        """The graph with numbers in place of names, and its variables."""
        new: dict[Node, Node] = {}
        for i, node in enumerate(self.graph.nodes):
            inputs = tuple([(new[n], k) for n, k in node.inputs])
            control = tuple([new[n] for n in node.control])
            new[node] = Node(node.op, node.attrs, inputs, f"\0{i}\0", node.strings, i, node.order, control)
        return Graph([(new[n], k) for n, k in self.graph.outputs]), [new[v] for v in self.variables]

    @no_new_guards()
    def completed(self, pattern: Pattern, values: Values) -> Ready:
        """Return the pattern completed for the sizes of the variables, with the names of this symbol."""
        lowered, known = pattern.lowered, pattern.completed(values)
        heads = [None if h is None else concrete(lowered.given[h], values) for h in lowered.heads]
        numbers = () if pattern.trace is None else pattern.trace.computed(values)
        told = [variable(f"{number:.9g}") for number, _ in numbers]
        mine = dict(zip(pattern.variables, (*self.variables, *told), strict=True))
        return Ready(pattern, known, heads, NamedNodes(pattern.graph, known, mine, self.named), numbers)

    def text(self, pattern: Pattern) -> str:
        """Return a pattern's graph before the passes as text; sizes may be symbols.  Nothing is lowered again for it."""
        nodes = self.graph.nodes
        return _NUMBERED.sub(lambda m: nodes[int(m[1])].name, as_text(pattern.lowered.graph))

    def named(self, node: Node) -> Node:
        """Return a node whose number is replaced by its name and by the source line that made it."""
        nodes = self.graph.nodes
        new = node.replaced(name=_NUMBERED.sub(lambda m: nodes[int(m[1])].name, node.name))
        if type(node.source) is int:
            new.source = nodes[node.source].source
        return new


def _form(node: Node, at: dict[Node, int]) -> tuple:
    """Return all of a node that passes see; parameters are compared as text too, since 0.0 == -0.0 and 1 == True."""
    strings = tuple([item for item in (node.strings or {}).items() if item[0] not in node.attrs])
    inputs, control = tuple([(at[n], k) for n, k in node.inputs]), tuple([at[n] for n in node.control])
    return node.op, node.attrs, repr(node.attrs.values_), inputs, control, node.order, strings


def _keeps_states(graph: Graph) -> bool:
    """Return whether an operator keeps a state between calls, which two executors must not share."""
    ops = [node.op for node in graph.nodes]
    return any(isinstance(op, External) and not isinstance(op, Assign) and not op.bodies for op in ops)


__all__ = ["Ready", "Structure"]
