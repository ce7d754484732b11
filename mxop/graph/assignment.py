"""Assignment to variables: the operator, and the order of reads and assignments in a graph.

A node that reads a variable gets its value from the start of the run; only nodes ordered after an assignment (see
:mod:`.ordering`) get the new value.  Passes ignore this: :func:`settled` enforces it at the end, when a schedule is made.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ..opdef import Attrs, External, infer, registry
from ..support import dtypes
from ..support.errors import OpTypeError, OpValueError
from . import symbols
from .infer import Known
from .ir import Entry, Graph, Node, describe, topological

NAME = "_assign_variable"


class Assign(External):
    """Set a variable to a value, and return the value; see ``mx.graph.assign``."""

    contiguous = False

    def __init__(self) -> None:
        super().__init__(NAME, doc=type(self).__doc__ or "", arguments=("variable", "value"), aux=("variable",))
        self.gradient(lambda F, heads, inputs, outputs: [None, heads[0]])

    def num_outputs(self, attrs: Attrs, n_inputs: int | None = None) -> int:
        return 1

    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        done = infer.same_shape("assign", ["the variable", "the value", "the result"], [*ins, *outs])
        return done[:2], done[2:]

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        done = infer.same_type("assign", ["the variable", "the value", "the result"], [*ins, *outs])
        return done[:2], done[2:]

    def infer_outputs(self, attrs: Attrs, shapes: list, types: list[int]) -> tuple[list, list[int]]:
        self.infer_type(attrs, list(types), [dtypes.UNKNOWN])
        return self.infer_shape(attrs, list(shapes), [None])[1], types[:1]

    def run(self, attrs: Attrs, state: Any, is_train: bool, reqs: list[str], inputs: list, outputs: list) -> None:
        variable, value = inputs
        variable[:] = value
        if reqs[0] != "null":
            outputs[0][:] = value


registry.register(Assign())


def assign(variable: Any, value: Any) -> Any:
    """Return a symbol that assigns a value to a variable when it is computed; its own value is that value.

    The variable becomes an auxiliary state.  All other reads of it in the same run get its old value, except those ordered
    after the assignment; see :func:`~mxop.graph.after`, :func:`~mxop.graph.sequential` and
    :func:`~mxop.graph.control_dependencies`.

    Parameters
    ----------
    variable : Symbol
        A variable.
    value : Symbol or number
        Of the variable's shape and type.

    Examples
    --------
    >>> import mxop as mx
    >>> w = mx.sym.Variable('w')
    >>> count = mx.graph.computation(mx.graph.assign(w, w + 1), state={'w': [0.0]})
    >>> [float(count().asscalar()) for _ in range(3)]
    [1.0, 2.0, 3.0]
    """
    entries = symbols.entries_of(variable)
    if len(entries) != 1 or entries[0][0].op is not None:
        raise OpTypeError(f"assign: {variable!r} is not a variable; expected what mx.sym.Variable returns")
    F = symbols.namespace()
    if isinstance(value, (bool, int, float)):
        value = F.ones_like(variable) * value
    elif not hasattr(value, "_entries"):
        raise OpTypeError(f"assign: the value is {value!r}; expected a Symbol or a number")
    return getattr(F._internal, NAME)(variable, value)


# ---- order ----------------------------------------------------------------------------------------------------------
def settled(graph: Graph, known: Known) -> Graph:
    """Return a graph in which each reader of a variable gets the value that it should.

    Readers run before the assignment that follows them.  Those that cannot (they need its result, or are part of backward) read
    a copy made before the assignment.

    Raises
    ------
    OpValueError
        If two assignments to a variable have no order.
    """
    writers: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        if node.op is not None and node.op.name == NAME:
            writers.setdefault(node.inputs[0][0], []).append(node)
    return _Order(graph, known, writers).result() if writers else graph


class _Order:
    """Adds control dependencies and copies of variables to a graph.

    Assignments are numbered; a set of them is an integer with one bit for each.
    """

    def __init__(self, graph: Graph, known: Known, writers: dict[Node, list[Node]]):
        self.graph, self.known, self.writers = graph, known, writers
        self.bit = {node: 1 << i for i, node in enumerate(w for nodes in writers.values() for w in nodes)}
        self.by_number = list(self.bit)
        self.past: dict[Node, int] = {}  # the assignments that a node needs
        for node in graph.nodes:
            found = self.bit.get(node, 0)
            for source, _ in node.below():
                found |= self.past[source]
            self.past[node] = found
        self.behind = {node: self.past[node] for node in self.bit}  # what each needs, with added dependencies
        n = len(graph.outputs) if known.n_forward is None else known.n_forward
        self.forward = set(Graph(graph.outputs[:n]).nodes)
        self.added: dict[Node, list[Node]] = {}  # nodes that an assignment must run after
        self.saved: dict[Node, Node] = {}  # copies of variables
        self.reads: dict[tuple[Node, int], Node] = {}  # inputs that read a copy

    def result(self) -> Graph:
        """Return the graph with its reads and assignments in order."""
        for variable, nodes in self.writers.items():
            self._check_order(variable, nodes)
        for node in self.graph.nodes:
            for i, (source, _) in enumerate(node.inputs):
                if source in self.writers and i not in node.mutated_inputs():
                    self._place(node, i, self.writers[source])
        return self._rebuilt([(self._copy(n), k) if n in self.writers else (n, k) for n, k in self.graph.outputs])

    def _check_order(self, variable: Node, writers: list[Node]) -> None:
        for first, second in pairwise(writers):  # in order of execution
            if not self.past[second] & self.bit[first]:
                raise OpValueError(
                    f"{variable.name!r} is assigned twice without an order: {describe(first)}, and {describe(second)}; put "
                    f"one after the other with mx.graph.sequential, or mx.graph.after"
                )

    def _place(self, reader: Node, at: int, writers: list[Node]) -> None:
        """Make a reader run before the assignment that follows it, or read a copy."""
        past = self.past[reader] if reader.control else 0
        follower = next((w for w in writers if w is not reader and not past & self.bit[w]), None)
        if follower is None:
            return
        late = follower in self.forward and reader not in self.forward
        if late or self._behind(self.past[reader]) & self.bit[follower]:
            if follower is not writers[0]:
                raise OpValueError(f"{describe(reader)} reads {reader.inputs[at][0].name!r} between two assignments, but "
                                   f"cannot run before {describe(follower)}")  # fmt: skip
            self.reads[reader, at] = self._copy(reader.inputs[at][0])
        else:
            self._let_wait(follower, reader)

    def _let_wait(self, writer: Node, node: Node) -> None:
        self.added.setdefault(writer, []).append(node)
        self.behind[writer] |= self.past.get(node, 0)

    def _behind(self, assignments: int) -> int:
        """Return a set of assignments with all that they need."""
        found = left = assignments
        while left:
            number = left.bit_length() - 1
            more = self.behind[self.by_number[number]] & ~found
            found |= more
            left = (left ^ (1 << number)) | more
        return found

    def _copy(self, variable: Node) -> Node:
        """Return the copy of a variable made before its first assignment."""
        if variable not in self.saved:
            op = registry.get("_copy")
            saved = self.saved[variable] = Node(op, op.parse({}), ((variable, 0),), f"{variable.name}_before")
            self.known.copy(variable, saved)
            self._let_wait(self.writers[variable][0], saved)
        return self.saved[variable]

    # ---- the graph --------------------------------------------------------------------------------------------------
    def _inputs(self, node: Node) -> list[Entry]:
        return [(self.reads.get((node, i), n), k) for i, (n, k) in enumerate(node.inputs)]

    def _rebuilt(self, heads: list[Entry]) -> Graph:
        def needs(node: Node) -> list[Node]:
            return [*(n for n, _ in self._inputs(node)), *node.control, *self.added.get(node, ())]

        made: dict[Node, Node] = {}
        for node in topological([n for n, _ in heads], needs):
            inputs = tuple([(made.get(n, n), k) for n, k in self._inputs(node)])
            control = tuple(dict.fromkeys(made.get(n, n) for n in (*node.control, *self.added.get(node, ()))))
            if inputs != node.inputs or control != node.control:
                made[node] = node.replaced(inputs, control=control)
                self.known.copy(node, made[node])
        return Graph((made.get(n, n), k) for n, k in heads)
