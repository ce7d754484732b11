"""The base of operators that run graphs, such as loops, and the functions that turn such a graph into prepared calls.

The graphs (``op.bodies``) have variables of their own for their operands; ``op.given`` lists these in the order of the
operator's inputs.  Each call is an operator object of its own, whose properties (does it draw, how many outputs has it)
follow from its graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from .._core import core
from ..opdef import Attrs, External, Kernel
from ..opdef.params import Spec
from ..support.errors import OpTypeError, OpValueError
from ..support.memo import keep
from ..support.shape_mode import numpy_shape
from .builder import Builder
from .epoch import epoch
from .expansion import expand
from .infer import Known
from .ir import Entry, Graph, Node, variable
from .lowering import Lowered, optimized
from .passes import of_stage, selected
from .plan import ADD, WRITE, Phase, Result
from .rewrite import exchanged
from .schedule import Buffers, build
from .specs import Specs
from .states import Effects


class Bodied(External):
    """An operator that runs graphs.

    Attributes
    ----------
    given : list of Node
        The variables of the bodies, in the order of the inputs; ``arguments`` are the names of the inputs.
    bodies : tuple of Graph
    """

    kind = "control"
    stateful = False
    contiguous = True
    clears = False

    def __init__(self, name: str, arguments: Sequence[str], given: Sequence[Node], bodies: Sequence[Graph], **options: Any):
        super().__init__(name, arguments=arguments, module=__name__, **options)
        self.given = list(given)
        self._take(bodies)

    def _take(self, bodies: Sequence[Graph]) -> None:
        self.bodies, self._bodies = tuple(bodies), {}  # the second: those that run, by what they are made for
        calls = [n for b in self.bodies for n in b.nodes if n.op is not None]
        self.repeatable = all(n.op.repeatable for n in calls)
        self.stateful = any(n.op.stateful for n in calls)

    def with_bodies(self, bodies: Sequence[Graph]) -> Bodied:
        """Return an operator with other graphs of the same variables, or itself if they are the same graphs."""
        if all(a is b for a, b in zip(bodies, self.bodies, strict=True)):
            return self
        found = copy_of(self)
        found._take(bodies)
        return found

    def check_arity(self, attrs: Attrs, n: int) -> None:
        if n != len(self.arguments):
            raise OpTypeError(f"operator {self.name} takes {len(self.arguments)} inputs, {n} given")

    def prepared(self, inputs: list[Any], outputs: list[Any], reqs: list[int]) -> Any:
        """Return a call of :mod:`mxop._core.loops` on these arrays; None if the bodies must be run by :meth:`run`."""
        try:
            return outputs[0]._device.loop(self, inputs, outputs, reqs)
        except NotImplementedError:  # a call in a body cannot be moved to other arrays
            return None

    def call(self, inputs: list[Any], outputs: list[Any], reqs: list[int]) -> Any:
        """Return the prepared call on these arrays."""
        raise NotImplementedError

    def inside(self, specs: Sequence[tuple[Any, int]], is_train: bool | None = None) -> Specs:
        """Return shapes and types of entries of the bodies, for those of the inputs."""
        raise NotImplementedError

    def inside_of(self, node: Node, specs: Specs | None) -> Specs | None:
        """Return :meth:`inside` for the inputs of a node; None without `specs`."""
        return None if specs is None else self.inside([specs(e) for e in node.inputs], specs.is_train)

    def expanded(self, node: Node, everything: bool, effects: Effects | None, specs: Specs | None) -> list[Entry] | None:
        """Return the entries that replace a node when graphs are expanded; see :func:`.expand.expand`."""
        inner = self.inside_of(node, specs)
        op = self.with_bodies([expand(b, everything, specs=inner)[0] for b in self.bodies])
        new = node if op is self else node.replaced(op=op)
        return None if new is node else [(new, k) for k in range(node.n_outputs)]

    @property
    def differentiable(self) -> bool:
        return True


def copy_of(op: Bodied) -> Any:
    """Return a copy of an operator without its cached properties (``copy.copy`` of an operator returns itself)."""
    found = object.__new__(type(op))
    found.__dict__.update(op.__dict__)
    for name in ("pure", "_everything", "_graphs"):
        found.__dict__.pop(name, None)
    return found


def specs_of(F: Any, values: Sequence[Any]) -> tuple | None:
    """Return shapes and types of arrays, or of a builder's values if they are known."""
    if not isinstance(F, Builder):
        return tuple((tuple(a.shape), a.dtype_code) for a in values)
    return None if F.specs is None else tuple(F.specs(v.entry) for v in values)


class Named(External):
    """An operator with bodies in the registry and in files; :meth:`of` makes the operator of one call.

    Parameters
    ----------
    signature : callable
        A function with its parameters and documentation.
    make : callable
        ``make(named, attrs, bodies)`` returns the operator of a call, or raises if parameters and bodies do not fit.
    used_by : str
        The function that makes such calls, for messages.
    """

    kind = "control"
    differentiable = True  # type: ignore[assignment]

    def __init__(
        self, name: str, signature: Callable, make: Callable[[Named, Attrs, Sequence[Graph]], Bodied], used_by: str,
        **options: Any,
    ):  # fmt: skip
        super().__init__(name, doc=signature.__doc__ or "", **options)
        self._spec, self._make, self._used_by = Spec.of(name, signature), make, used_by

    def of(self, attrs: Attrs, bodies: Sequence[Graph]) -> Bodied:
        """Return the operator of a call with these bodies."""
        for key, value in attrs.items():
            if isinstance(value, tuple) and None in value:
                raise OpValueError(f"operator {self.name}: {key}={value}; expected whole numbers")
        return self._make(self, attrs, bodies)

    def _refuse(self, *_: Any) -> NoReturn:
        raise OpTypeError(f"operator {self.name} has bodies, which a call cannot give: use {self._used_by}")

    check_arity = infer_shape = infer_type = _refuse


def over_inputs(
    name: str, n: int, graphs: Sequence[Graph], inner: Sequence[Sequence[Node]], at: Sequence[Sequence[int]]
) -> tuple[list[Node], list[Graph]]:
    """Return a variable for each of `n` inputs, and the graphs over these: variables `inner` become the inputs `at`."""
    place: dict[int, Node] = {}
    found = []
    for graph, variables, places in zip(graphs, inner, at, strict=True):
        if len(variables) != len(places) or any(not 0 <= k < n for k in places):
            raise OpValueError(f"operator {name}: its parameters give a subgraph of {len(variables)} variables the inputs "
                               f"{list(places)} of {n}")  # fmt: skip
        pairs = list(zip(variables, places, strict=True))
        found.append(exchanged(graph, {(v, 0): (place[k], 0) for v, k in pairs if place.setdefault(k, v) is not v}))
    return [place.get(k) or variable(f"unread{k}") for k in range(n)], found


# ---- what a graph keeps for its gradient ----------------------------------------------------------------------------------
def kept(graph: Graph) -> list[Entry]:
    """Return the entries of a body that a loop stores for its gradient.

    These cannot be recomputed (random draws) or are expensive (products, reductions, loops).  Elementwise calls and views are
    recomputed.
    """
    return [(node, k) for node in graph.nodes if node.op is not None and _keeps(node) for k in range(node.n_outputs)]


def _keeps(node: Node) -> bool:
    op: Any = node.op
    if not op.repeatable:
        return True
    view = isinstance(op, Kernel) and op.make_view is not None
    return bool(node.inputs) and op.kind != "elementwise" and not view


def is_vector(shape: Any) -> bool:
    """Return whether slices have shape ``(1,)``, as in MXNet without NumPy's shapes; the loop then reads a column."""
    return shape is not None and len(shape) == 1 and not numpy_shape()


def slice_of(shape: Any) -> Any:
    """Return the shape of a slice of data."""
    return (1,) if is_vector(shape) else shape[1:]


def is_zero(head: Any) -> bool:
    """Return whether an output gradient is zero because nothing depends on the output."""
    entry = getattr(head, "entry", None)
    return entry is not None and entry[0].op is not None and entry[0].op.name == "zeros_like"


# ---- calls --------------------------------------------------------------------------------------------------------------
def body_calls(
    op: Bodied,
    body: int,
    given: Sequence[Node],
    specs: Sequence[tuple[tuple[int, ...], int]],
    n_sums: int = 0,
    answer: bool = False,
) -> Any:
    """Return a graph as the calls that :mod:`mxop._core.loops` runs, on placeholders for inputs, then outputs.

    Parameters
    ----------
    body : int
        Which body of `op`.
    given : sequence of Node
        Its variables.
    specs : sequence of (shape, type code)
        Of the inputs.
    n_sums : int
        The number of last outputs that are added to their arrays.
    answer : bool
        Whether the graph is a condition, whose only output is a buffer of the body.
    """
    graph, known = _optimized(op, body, given, tuple(specs), answer)
    n = len(graph.outputs)
    table = core.Places()
    bound = {v: table.stand_in(*spec) for v, spec in zip(given, specs, strict=True)}
    made = [(known.shape(e), known.dtype(e)) for e in graph.outputs]
    results = [
        Result(e, table.stand_in(*spec), ADD if k >= n - n_sums else WRITE)
        for k, (e, spec) in enumerate(zip(graph.outputs, made, strict=True))
    ]
    buffers = Buffers(table, core.HOST)
    (schedule,), _ = build([Phase(graph.nodes, results)], known, bound, buffers, bool(of_stage(selected(), "plan")))
    own = [((size,), code) for code, size in buffers.sizes]
    if answer:
        return core.Body(schedule.calls, len(specs), [*made, *own])
    return core.Body(schedule.calls, len(specs) + n, own)


def _optimized(op: Bodied, body: int, given: Sequence[Node], specs: tuple, answer: bool) -> tuple[Graph, Known]:
    """Return a body after all passes, with its shapes and types; loops of other numbers of steps run it, too."""
    key = body, specs, epoch(), numpy_shape()
    found = op._bodies.get(key)
    if found is None:
        graph = op.bodies[body]
        if answer:
            F, (e,) = Builder(), graph.outputs
            graph = Graph([F.Cast(F.value(e) != 0, dtype="int64").entry])
        n = len(graph.outputs)
        found = optimized(Lowered(graph, dict(zip(given, specs, strict=True)), n, n, graph, ()), selected(), True)
        keep(op._bodies, key, found, 8)
    return found
