"""Inference of shapes and types in a graph, in both directions, to a fixed point.

A node is visited again only after one of its inputs or outputs has become known, so the work is proportional to the graph, not
to the number of sweeps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from ..opdef import Attrs, Elementwise, Operator, infer
from ..opdef.params import Bad, parse_shape
from ..support import dtypes
from ..support.errors import MXNetError, OpTypeError, OpValueError, translated
from ..support.shape_mode import numpy_shape
from .ir import Entry, Graph, Node, describe


class Solver:
    """Solves for the shapes (or types) of a graph's entries.

    Parameters
    ----------
    graph : Graph
    """

    unknown: Any = None

    def __init__(self, graph: Graph):
        self.nodes = graph.nodes
        self._at = {node: i for i, node in enumerate(self.nodes)}
        self._values: list[list] = [[self.unknown] * node.n_outputs for node in self.nodes]
        self._feeds = [[(self._at[n], k) for n, k in node.inputs] for node in self.nodes]
        self._readers: list[list[int]] = [[] for _ in self.nodes]
        for i, feeds in enumerate(self._feeds):
            for j, _ in feeds:
                self._readers[j].append(i)
        self._results: dict[tuple, tuple[list, list]] = {}  # results by call
        self._waiting = deque(i for i, node in enumerate(self.nodes) if node.op is not None)
        self._queued = bytearray(node.op is not None for node in self.nodes)

    # what subclasses define
    def rule(self, node: Node, ins: list, outs: list) -> tuple[list, list]:
        raise NotImplementedError

    def join(self, a: Any, b: Any) -> Any:
        raise NotImplementedError

    def show(self, value: Any) -> str:
        raise NotImplementedError

    error: type[MXNetError] = OpValueError

    def __contains__(self, node: Node) -> bool:
        return node in self._at

    def get(self, entry: Entry) -> Any:
        """Return what is known of an entry: a partial shape, or a type."""
        return self._values[self._at[entry[0]]][entry[1]]

    def all_of(self, node: Node) -> list:
        """Return what is known of each output of a node."""
        return self._values[self._at[node]]

    def set(self, entry: Entry, value: Any) -> None:
        """Add knowledge of an entry from outside of the graph."""
        self._learn(self._at[entry[0]], entry[1], value, None)

    def run(self) -> None:
        """Apply the rules of all nodes until nothing changes."""
        while self._waiting:
            i = self._waiting.popleft()
            self._queued[i] = 0
            self._visit(i)

    def _visit(self, i: int) -> None:
        feeds, outs = self._feeds[i], self._values[i]
        ins = [self._values[j][k] for j, k in feeds]
        new_ins, new_outs = self._answer(self.nodes[i], ins, outs)
        for k, value in enumerate(new_outs):
            if value is not outs[k]:
                self._learn(i, k, value, i, output=True)
        for at, ((j, k), value) in enumerate(zip(feeds, new_ins, strict=True)):
            if value is not ins[at]:
                self._learn(j, k, value, i, at)

    def _answer(self, node: Node, ins: list, outs: list) -> tuple[list, list]:
        key = (node.op, node.attrs, tuple(ins), tuple(outs))
        found = self._results.get(key)
        if found is None:
            try:
                with translated(f"operator {node.op.name}"):  # type: ignore[union-attr]
                    found = self.rule(node, ins, list(outs))
            except MXNetError as problem:
                raise located(problem, node, zip(self._argument_names(node), ins)) from problem.__cause__
            self._results[key] = found
        return found

    def _argument_names(self, node: Node) -> Iterable[str]:
        for name, (source, k) in zip(node.input_names(), node.inputs):
            yield f"{name}={source.output_name(k)!r}"

    def _learn(self, i: int, k: int, value: Any, by: int | None, at: int = 0, output: bool = False) -> None:
        """Add a value for an entry; `by` is the node whose rule gave it, for its input `at` or its output."""
        old = self._values[i][k]
        try:
            joined = self.join(old, value)
        except infer.Conflict:
            raise self._conflict(i, k, value, by, at, output) from None
        if joined == old:
            return
        self._values[i][k] = joined
        for reader in self._readers[i]:
            self._wake(reader)
        if by != i:
            self._wake(i)

    def _wake(self, i: int) -> None:
        if not self._queued[i] and self.nodes[i].op is not None:
            self._queued[i] = 1
            self._waiting.append(i)

    def _conflict(self, i, k, value, by, at, output) -> MXNetError:
        old = self._values[i][k]
        node = self.nodes[i if by is None else by]
        if by is None:
            text = f"{node.output_name(k)!r} is {self.show(old)}; expected {self.show(value)}"
        elif output:
            text = f"its output {node.output_name(k)!r} is {self.show(old)}; its inputs give {self.show(value)}"
        else:
            text = (f"argument {node.input_names()[at]} ({self.nodes[i].output_name(k)!r}) has {self.show(old)}; "
                    f"expected {self.show(value)}")  # fmt: skip
        ins = [self._values[j][n] for j, n in self._feeds[self._at[node]]]
        return located(self.error(text), node, zip(self._argument_names(node), ins) if node.op else ())


class Shapes(Solver):
    """Solves for shapes; unknown ranks and dimensions are None."""

    unknown = None

    def rule(self, node: Node, ins: list, outs: list) -> tuple[list, list]:
        ins, outs = node.op.infer_shape(node.attrs, ins, outs)
        return list(ins), list(outs)

    def join(self, a: Any, b: Any) -> Any:
        return infer.unify(a, b)

    def show(self, value: Any) -> str:
        return infer.show(value) if value is None or isinstance(value, tuple) else str(value)


class Types(Solver):
    """Solves for element types."""

    unknown = dtypes.UNKNOWN
    error = OpTypeError

    def rule(self, node: Node, ins: list, outs: list) -> tuple[list, list]:
        ins, outs = node.op.infer_type(node.attrs, ins, outs)
        return list(ins), list(outs)

    def join(self, a: int, b: int) -> int:
        if a in (b, dtypes.UNKNOWN):
            return b
        if b == dtypes.UNKNOWN:
            return a
        raise infer.Conflict

    def show(self, value: Any) -> str:
        return "an unknown dtype" if value == dtypes.UNKNOWN else f"dtype {dtypes.NAMES[value]}"

    def default(self, code: int = dtypes.FLOAT32) -> None:
        """Give variables of unknown type a default type."""
        self.run()
        for node in self.nodes:
            if node.op is None and self.get((node, 0)) == dtypes.UNKNOWN:
                self.set((node, 0), code)
                self.run()


def located(problem: MXNetError, node: Node, inputs: Iterable[tuple[str, Any]] = ()) -> MXNetError:
    """Return an error of the same class with the node in its message, in MXNet's form.

    Nodes without a name are parts of a call, whose own name is added later.
    """
    if not node.name:
        return problem
    inputs = list(inputs)
    shown = ", ".join(f"{name} {_show(value)}" for name, value in inputs)
    text = f"Error in operator {node.name}: {problem}; in {describe(node)}{f' with inputs {shown}' if shown else ''}"
    found = type(problem)(text)
    found.__cause__ = problem.__cause__  # the error in a user's code
    return found


def _show(value: Any) -> str:
    return dtypes.NAMES.get(value, "of unknown dtype") if isinstance(value, int) else infer.show(value)


def declared_shape(node: Node) -> Any:
    """Return the shape that a variable was declared with (``__shape__``)."""
    text = (node.strings or {}).get("__shape__")
    if text is None:
        return None
    try:
        return None if text == "None" else infer.from_legacy(parse_shape(text), numpy_shape())
    except (Bad, OpValueError):
        raise OpValueError(f"{describe(node)} has __shape__={text!r}; expected a tuple of integers") from None


def declared_type(node: Node) -> int:
    """Return the type that a variable was declared with (``__dtype__``)."""
    text = (node.strings or {}).get("__dtype__")
    if text is None:
        return dtypes.UNKNOWN
    try:
        number = text.lstrip("-")
        known = number.isascii() and number.isdigit() and text != "-1"
        return dtypes.code_of(int(text[:10])) if known else dtypes.UNKNOWN
    except MXNetError:
        raise OpTypeError(f"{describe(node)} has __dtype__={text!r}; expected MXNet's number of a type") from None


def is_key(node: Node, at: int) -> bool:
    """Return whether an input of a node is a key of random numbers, whose type is independent of the data's."""
    return isinstance(node.op, Elementwise) and at in node.op.formula(node.attrs, len(node.inputs)).keys


class Known:
    """Shapes and types of all entries of a graph, extended while passes rebuild it.

    Attributes
    ----------
    on_cpu : bool
        Whether the graph's arrays are on the CPU.
    n_forward : int or None
        The number of outputs of the forward pass; gradients follow.  None if all are.
    """

    def __init__(self) -> None:
        self._of: dict[Node, tuple[list, list]] = {}
        self._answers: dict[tuple, tuple[list, list]] = {}
        self.recipes: dict[Any, Any] = {}  # how calls are prepared, by all that this depends on besides sizes
        self.completer: Any = None  # of calls with symbolic sizes
        self.n_forward: int | None = None
        self.on_cpu = True

    @classmethod
    def solve(cls, graph: Graph, given: dict[Node, tuple[tuple, int]], partial: bool = False) -> Known:
        """Return shapes and types inferred from those of the variables.

        With `partial`, they may remain unknown.
        """
        return cls._followed(graph, given) or cls._solved(graph, given, partial)

    @classmethod
    def _followed(cls, graph: Graph, given: dict[Node, tuple[tuple, int]]) -> Known | None:
        """Infer from inputs to outputs only; None if a variable is unknown, or rules conflict: :meth:`_solved` must run."""
        found = cls()
        for node in graph.nodes:
            if node.op is None:
                shape, code = given.get(node, (None, dtypes.UNKNOWN))
                if not infer.known(shape) or code == dtypes.UNKNOWN:
                    return None
                found._of[node] = [tuple(shape)], [code]
                continue
            calls = len(found._answers)
            try:
                outputs = found.answer(node)
                if (
                    outputs is None
                    or not all(map(infer.known, outputs[0]))
                    or (len(found._answers) > calls and not found._fits(node))
                ):
                    return None
            except MXNetError:  # the solver's message is better
                return None
            found._of[node] = outputs
        return found

    def _fits(self, node: Node) -> bool:
        """Return whether a node's rules agree with the shapes and types of its inputs."""
        op, attrs, n = node.op, node.attrs, node.n_outputs
        shapes, types = [self.shape(e) for e in node.inputs], [self.dtype(e) for e in node.inputs]
        return (
            list(op.infer_shape(attrs, list(shapes), [None] * n)[0]) == shapes  # type: ignore[union-attr]
            and list(op.infer_type(attrs, list(types), [dtypes.UNKNOWN] * n)[0]) == types  # type: ignore[union-attr]
        )

    @classmethod
    def _solved(cls, graph: Graph, given: dict[Node, tuple[tuple, int]], partial: bool) -> Known:
        shapes, types = Shapes(graph), Types(graph)
        for node, (shape, code) in given.items():
            if node in shapes:
                shapes.set((node, 0), shape)
                types.set((node, 0), code)
        shapes.run()
        if partial:
            types.run()
        else:
            types.default()
        found = cls()
        for node in graph.nodes:
            found._of[node] = (shapes.all_of(node), types.all_of(node))
            if partial:
                continue
            found._check_sized(node)
            for k, shape in enumerate(shapes.all_of(node)):
                if not infer.known(shape) and not _sized(node, given):
                    raise OpValueError(f"the shape of {node.output_name(k)!r} does not follow from the arguments' shapes; "
                                       f"found {infer.show(shape)}, in {describe(node)}")  # fmt: skip
                if types.all_of(node)[k] == dtypes.UNKNOWN:
                    types.all_of(node)[k] = dtypes.FLOAT32
        return found

    def _check_sized(self, node: Node) -> None:
        """Raise if a node needs a size that is known only after another node has run."""
        for source, k in node.inputs:
            if infer.known(self._of[source][0][k]):
                continue
            if source.op is not None and source.op.sized_by is not None:
                raise OpValueError(
                    f"the shape of {source.output_name(k)!r}, {infer.show(self._of[source][0][k])}, follows from the "
                    f"values of the inputs of operator {source.op.name}, so it can only be an output of a symbol; "
                    f"{describe(node)} needs it earlier: return it, and continue with mx.nd"
                )
            if node.op.kind != "kernel" or node.op.make_view is not None:  # type: ignore[union-attr]
                raise OpValueError(
                    f"{source.name!r} has a size that is known only after a run, {infer.show(self._of[source][0][k])}, but "
                    f"{describe(node)} needs it earlier"
                )

    def shape(self, entry: Entry) -> tuple[int, ...]:
        return self._found(entry[0])[0][entry[1]]

    def dtype(self, entry: Entry) -> int:
        return self._found(entry[0])[1][entry[1]]

    def _found(self, node: Node) -> tuple[list, list[int]]:
        """Return shapes and types of a node's outputs."""
        return self._of[node]

    def call(self, node: Node) -> tuple[Operator, Attrs]:
        """Return the operator and the parameters of a node."""
        return node.op, node.attrs  # type: ignore[return-value]

    def only_type(self, node: Node) -> int | None:
        """Return the common type of all inputs and outputs of a node, except random keys; None if they differ."""
        types = self._of[node][1]
        code = types[0]
        for at, (source, k) in enumerate(node.inputs):
            if self._of[source][1][k] != code and not is_key(node, at):
                return None
        return code if len(types) == 1 or types.count(code) == len(types) else None

    def same(self, a: Entry, b: Entry) -> bool:
        """Return whether two entries are known to have the same shape and type."""
        shape, code = self.shape(a), self.dtype(a)
        return shape == self.shape(b) and code == self.dtype(b) != dtypes.UNKNOWN and infer.known(shape)

    def conflict(self, a: Entry, b: Entry) -> bool:
        """Return whether two entries are known to have different shapes or types."""
        codes = {self.dtype(a), self.dtype(b)} - {dtypes.UNKNOWN}
        return len(codes) > 1 or not infer.compatible(self.shape(a), self.shape(b))

    def has_size(self, entry: Entry) -> bool:
        """Return whether the size of an entry is known before a run."""
        return infer.known(self.shape(entry))

    def is_known(self, entry: Entry) -> bool:
        """Return whether shape and type of an entry are known."""
        return infer.known(self.shape(entry)) and self.dtype(entry) != dtypes.UNKNOWN

    def __contains__(self, node: Node) -> bool:
        return node in self._of

    def copy(self, old: Node, new: Node) -> None:
        """Copy the shapes and types of `old` to `new`, which was rebuilt from it."""
        self._of[new] = self._of[old]

    def put(self, node: Node, shapes: list, types: list[int]) -> None:
        self._of[node] = (shapes, types)

    def answer(self, node: Node) -> tuple[list, list] | None:
        """Return the shapes and types of a node's outputs inferred from its inputs; None if one of these is unknown.

        Equal calls share the result, which must not be changed.
        """
        shapes, types = [], []
        for source, k in node.inputs:
            of_source = self._of[source]
            shapes.append(of_source[0][k])
            types.append(of_source[1][k])
        key = (node.op, node.attrs, tuple(shapes), tuple(types))
        found = self._answers.get(key)
        if found is None:
            if dtypes.UNKNOWN in types or not all(map(infer.known, shapes)):
                return None
            found = self._answers[key] = node.op.infer_outputs(node.attrs, shapes, types)
        return found

    def add(self, node: Node) -> None:
        """Infer the outputs of a new node from its inputs, as far as these are known."""
        try:
            found = self.answer(node)
            if found is not None:
                self._of[node] = found
                return
            outs = [None] * node.n_outputs
            shapes = [self.shape(e) for e in node.inputs]
            types = [self.dtype(e) for e in node.inputs]
            found_shapes = node.op.infer_shape(node.attrs, shapes, outs)[1]
            codes = node.op.infer_type(node.attrs, types, [dtypes.UNKNOWN] * node.n_outputs)[1]
        except MXNetError as problem:
            raise located(problem, node, zip(node.input_names(), map(self.shape, node.inputs))) from problem.__cause__
        self._of[node] = list(found_shapes), list(codes)

    def complete(self, graph: Graph) -> None:
        """Infer the shapes and types that a pass has not added."""
        for node in graph.nodes:
            if node not in self._of and node.op is not None and all(n in self._of for n, _ in node.inputs):
                self.add(node)


def _sized(node: Node, given: dict[Node, tuple[tuple, int]]) -> bool:
    """Return whether a run determines the sizes of a node's outputs, or, for a head gradient, those of its output."""
    return given.get(node, (None,))[0] is not None if node.op is None else node.op.sized_by is not None
