"""The memory plan: a home for each value of a graph, chosen before the first run.

Values with disjoint lifetimes share a buffer.  A result of an elementwise operator, a row kernel or an assignment to a part
overwrites an operand that is not read afterwards.  A reshape is a view of its operand, and so is a slice that elementwise nodes
alone read.  Results are written straight into the arrays that the caller gave for them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, NamedTuple

from ..opdef import Elementwise, Kernel, contiguous_strides
from ..support import dtypes
from .assignment import Assign
from .infer import Known
from .ir import Entry, Graph, Node
from .order import early_release
from .stages import Strip
from .traits import elements_read, has_rows, is_plain_view

NULL, WRITE, ADD = 0, 1, 3
#: A buffer is at most this many times larger than a value in it, so that small values do not occupy large buffers.
MAX_OVERSIZE = 4


@dataclass(eq=False, repr=False)
class Result:
    """A value to be delivered in a given array.

    Attributes
    ----------
    entry : (Node, int)
    array : NDArray or None
        None while memory is planned for any contiguous arrays.
    req : int
        1 to write, 3 to add.
    last : bool
        Whether it may be written only after all nodes have run: its array overlaps one that they read.
    """

    entry: Entry
    array: Any = None
    req: int = WRITE
    last: bool = False

    @property
    def form(self) -> tuple[int, bool, bool]:
        """What a layout depends on: request, `last`, and whether the array is contiguous."""
        return self.req, self.last, self.array is None or self.array._contiguous


@dataclass(eq=False, repr=False)
class Phase:
    """Nodes in order of execution, and the results to deliver: forward, or backward."""

    nodes: list[Node]
    results: list[Result]


@dataclass(eq=False, repr=False)
class Home:
    """Where a value is stored.

    Attributes
    ----------
    array : NDArray or None
        A given array, or None for
    buffer : int
        the index of a buffer of the plan.
    req : int
        What the node that computes the value does: write, add, or nothing if the value is dead.
    """

    array: Any = None
    buffer: int = -1
    req: int = WRITE


class Place(NamedTuple):
    """The given array that a value is computed in: that of a result, or of a variable.

    Attributes
    ----------
    of : (int, int) or Node
        Phase and index of the result, or the variable.
        What the node that makes the value does: write, or add.
    contiguous : bool
        Whether the array is contiguous.
    viewed : bool
        Whether the value's shape differs from the array's.
    """

    of: Any
    req: int = WRITE
    contiguous: bool = True
    viewed: bool = False


@dataclass(eq=False, repr=False)
class Layout:
    """The part of a plan that does not depend on sizes.

    Attributes
    ----------
    phases : list of Phase
        Nodes in order of execution.
    alias : dict
        Maps an entry that is a view to the entry that it is a view of.
    slices : set
        The views among them that are not contiguous.
    places : dict
        Of entries that are computed in given arrays.
    copies : list of list of int
        For each phase the indices of results that are copied after its nodes.
    last : dict
        For each entry the last step that reads it.
    """

    phases: list[Phase]
    alias: dict[Entry, Entry] = field(default_factory=dict)
    slices: set[Entry] = field(default_factory=set)
    places: dict[Entry, Place] = field(default_factory=dict)
    copies: list[list[int]] = field(default_factory=list)
    last: dict[Entry, int] = field(default_factory=dict)

    def root(self, entry: Entry) -> Entry:
        """Return the entry that owns the memory of `entry`."""
        return self.alias.get(entry, entry)

    def req(self, entry: Entry) -> int:
        """Return what the node that computes an entry does: write, add, or nothing if nobody reads it."""
        place = self.places.get(entry)
        return place.req if place is not None else WRITE if entry in self.last else NULL

    def carried(self) -> set[Entry]:
        """Return the entries that a later phase reads than that in which they are computed."""
        made_in = {node: p for p, phase in enumerate(self.phases) for node in phase.nodes if node.op is not None}
        found = set()
        for p, phase in enumerate(self.phases):
            read = [*(e for node in phase.nodes for e in elements_read(node)), *self.copied(p)]
            found |= {root for root in map(self.root, read) if made_in.get(root[0], p) < p}
        return found

    def copied(self, p: int) -> list[Entry]:
        """Return the entries that are copied after the nodes of phase `p`."""
        return [self.phases[p].results[i].entry for i in self.copies[p]]


@dataclass(eq=False, repr=False)
class Sharing:
    """The buffers of a layout, and the values in them.

    Attributes
    ----------
    homes : dict
    buffers : list of (int, int)
        Type code and number of elements of each.
    unshared : int
        Bytes that the values would take without sharing.
    """

    homes: dict[Entry, Home] = field(default_factory=dict)
    buffers: list[tuple[int, int]] = field(default_factory=list)
    unshared: int = 0


@dataclass(eq=False, repr=False)
class Plan:
    """The homes of all values, and the buffers behind them.

    Attributes
    ----------
    homes : dict
        Of each entry that a node computes, except aliases.
    alias : dict
        Maps an entry that is a view to the entry that it is a view of.
    copies : list of list of Result
        For each phase the results that are copied after its nodes.
    buffers : list of (int, int)
        Type code and number of elements of each.
    unshared : int
        Bytes that the values would take without sharing.
    phases : sequence of Phase
    known : Known
        Shapes and types that the plan was made for.
    """

    homes: dict[Entry, Home]
    alias: dict[Entry, Entry]
    copies: list[list[Result]]
    buffers: list[tuple[int, int]]
    unshared: int
    phases: Sequence[Phase]
    known: Any

    def root(self, entry: Entry) -> Entry:
        """Return the entry that owns the memory of `entry`."""
        return self.alias.get(entry, entry)

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers."""
        return sum(dtypes.SIZES[code] * size for code, size in self.buffers)


def size_of(shape: tuple[int | None, ...]) -> int:
    """Return the number of elements; a dimension that only a run determines counts as 0."""
    return prod(d or 0 for d in shape)


def make_layout(phases: Sequence[Phase], known: Known, sizes: Known, strided: Container[Node], share: bool = True) -> Layout:
    """Return the layout for all sizes with the same guards as `known`.

    Phases run in the given order; the last one may run several times.

    Parameters
    ----------
    sizes : Known
        Sizes that the order of nodes is chosen for.
    strided : set of Node
        Variables whose arrays are not contiguous, so that they have no views of other shapes.
    share : bool
        Whether values share buffers.
    """
    layout = Layout(list(phases))
    made_in = {node: p for p, phase in enumerate(phases) for node in phase.nodes if node.op is not None}
    delivered = {r.entry for phase in phases for r in phase.results}
    written = {node.inputs[i][0] for phase in phases for node in phase.nodes for i in node.mutated_inputs()}
    for phase in phases:
        for node in phase.nodes:
            _find_alias(layout, node, delivered, known, written, strided)
    if share:
        _find_slices(layout, delivered, known, written, strided)
    _deliver(layout, made_in)
    if share:
        _propagate_places(layout, made_in, known)
        layout.phases = [Phase(_early(layout, p, made_in, sizes), phase.results) for p, phase in enumerate(layout.phases)]
        _assign_in_place(layout)
    layout.last = _last_uses(layout, made_in)
    if not share:
        _keep_all(layout.last, phases)
    layout.phases = [Phase(phase.nodes, [Result(r.entry, req=r.req) for r in phase.results]) for phase in layout.phases]
    return layout


def plan_of(
    layout: Layout,
    sharing: Sharing,
    phases: Sequence[Phase],
    known: Known,
    arrays: Mapping[Node, Any],
    names: Any = None,
) -> Plan:
    """Return the plan for the arrays of variables, and of the results in `phases`.

    `names`, a :class:`NamedNodes`, maps nodes to nodes with the names that messages show.
    """
    homes = dict(sharing.homes)
    for entry, place in layout.places.items():
        array = arrays[place.of] if isinstance(place.of, Node) else phases[place.of[0]].results[place.of[1]].array
        if place.viewed:
            shape = known.shape(entry)
            array = array._view(shape, contiguous_strides(shape), 0)
        homes[entry] = Home(array=array, req=place.req)
    copies = [[phase.results[i] for i in of] for phase, of in zip(phases, layout.copies, strict=True)]
    ordered = [Phase(own.nodes, phase.results) for own, phase in zip(layout.phases, phases, strict=True)]
    found = Plan(homes, layout.alias, copies, sharing.buffers, sharing.unshared, ordered, known)
    return found if names is None else _named(found, names)


def _named(plan: Plan, names: Any) -> Plan:
    entry = names.entry

    def seen(results: Sequence[Result]) -> list[Result]:
        return [replace(r, entry=entry(r.entry)) for r in results]

    return Plan(
        {entry(e): home for e, home in plan.homes.items()},
        {entry(a): entry(b) for a, b in plan.alias.items()},
        list(map(seen, plan.copies)), plan.buffers, plan.unshared,
        [Phase(list(map(names, p.nodes)), seen(p.results)) for p in plan.phases], names.known,
    )  # fmt: skip


def _find_alias(
    layout: Layout, node: Node, delivered: set[Entry], known: Known, written: set[Node], strided: Container[Node]
) -> None:
    if node.op is None or node.n_outputs != 1 or (node, 0) in delivered or not node.inputs:
        return
    source = layout.root(node.inputs[0])
    if source in delivered or source[0] in strided or source[0] in written:  # any strides are possible; it changes
        return
    if is_plain_view(node, known):
        layout.alias[node, 0] = source


def _find_slices(layout: Layout, delivered: set[Entry], known: Known, written: set[Node], strided: Container[Node]) -> None:
    """Let slices be views that elementwise nodes alone read: these read operands of any strides, and rows quickly."""
    readers: dict[Entry, list[Node]] = {}
    for phase in layout.phases:
        for node in phase.nodes:
            for entry in node.inputs:
                readers.setdefault(entry, []).append(node)
    for entry, nodes in readers.items():
        if entry in layout.alias or entry in delivered or not all(isinstance(n.op, Elementwise) for n in nodes):
            continue
        node = entry[0]
        source = layout.root(node.inputs[0]) if node.op is not None and node.inputs else None
        if source is None or source in delivered or source[0] in strided or source[0] in written:
            continue
        if node.inputs[0] not in layout.slices and has_rows(node, known):
            layout.alias[entry] = source
            layout.slices.add(entry)


def _deliver(layout: Layout, made_in: dict[Node, int]) -> None:
    """Give results their arrays as places; those that no node can write in place are copied after the phase."""
    readers: Counter[Entry] = Counter()
    for phase in layout.phases:
        readers.update(layout.root(e) for node in phase.nodes for e in node.inputs)
        readers.update(layout.root(r.entry) for r in phase.results)
    for p, phase in enumerate(layout.phases):
        copies = []
        for i, result in enumerate(phase.results):
            entry, (req, waits, contiguous) = result.entry, result.form
            direct = made_in.get(entry[0]) == p and entry not in layout.places and entry not in layout.alias
            if direct and not waits and (req == WRITE or readers[entry] == 1):
                layout.places[entry] = Place((p, i), req, contiguous)
            else:
                copies.append(i)
        layout.copies.append(copies)


def _propagate_places(layout: Layout, made_in: dict[Node, int], known: Known) -> None:
    """Give an operand the place of an output that overwrites it or is a view of it."""
    nodes = [node for phase in layout.phases for node in phase.nodes if node.op is not None]
    readers = Counter(layout.root(e) for n in nodes if (n, 0) not in layout.alias for e in elements_read(n))
    readers.update(layout.root(r.entry) for phase in layout.phases for r in phase.results)
    for node in reversed(nodes):
        view = (node, 0) in layout.places and node.n_outputs == 1 and bool(node.inputs) and is_plain_view(node, known)
        for k in range(node.n_outputs):
            place = layout.places.get((node, k))
            if place is None or place.req != WRITE or not place.contiguous:
                continue
            same = [e for e in _overwritten(layout, node, k) if known.same(e, (node, k))]
            for first in map(layout.root, node.inputs[:1] if view else same):
                if first in layout.places or readers[first] != 1 or made_in.get(first[0]) != made_in[node]:
                    continue
                layout.places[first] = Place(place.of, viewed=True)
                if view:
                    layout.alias[node, k] = first
                    del layout.places[node, k]
                break


def _early(layout: Layout, p: int, made_in: dict[Node, int], sizes: Known) -> list[Node]:
    """Return the nodes of a phase in an order that frees memory early."""
    phases = layout.phases
    nodes = phases[p].nodes
    if sum(node.op is not None for node in nodes) < 3:  # every order has the same peak
        return list(nodes)
    kept = {layout.root(e) for phase in phases[p + 1 :] for node in phase.nodes for e in node.inputs}
    kept |= {layout.root(e) for later in range(p, len(phases)) for e in layout.copied(later)}
    states = {node.inputs[i][0] for node in nodes for i in node.mutated_inputs()}
    in_turn: dict[Node, Node] = {}  # nodes with effects keep their order
    before = None
    for node in nodes:
        if node.op is not None and (node.op.stateful or any(source in states for source, _ in node.inputs)):
            if before is not None:
                in_turn[node] = before
            before = node

    def needs(node: Node) -> list[Node]:
        return node.needs() if node not in in_turn else [*node.needs(), in_turn[node]]

    def size(entry: Entry) -> int:
        node = entry[0]
        if made_in.get(node) != p or entry in layout.places or entry in layout.alias:
            return 0
        return dtypes.SIZES[sizes.dtype(entry)] * size_of(sizes.shape(entry))

    return early_release(nodes, needs, layout.root, size, kept)


def _assign_in_place(layout: Layout) -> None:
    """Compute a state's new value in the state's array, if no node in between reads the old one."""
    readers: dict[Entry, list[Node]] = {}
    for phase in layout.phases:
        for node in phase.nodes:
            for entry in node.inputs:
                readers.setdefault(layout.root(entry), []).append(node)
    delivered = {layout.root(r.entry) for phase in layout.phases for r in phase.results}
    for phase in layout.phases:
        at = {node: i for i, node in enumerate(phase.nodes)}
        for node in [n for n in phase.nodes if isinstance(n.op, Assign)]:
            state, value = node.inputs
            maker = value[0]
            if maker not in at or maker.op is None or value in layout.places or layout.root(value) != value:
                continue
            if readers[value] != [node] or value in delivered or (node, 0) in readers or (node, 0) in delivered:
                continue
            between = [n for n in readers[state] if n is not node and at.get(n, len(at)) >= at[maker]]
            if between and (between != [maker] * len(between) or not isinstance(maker.op, Elementwise)):
                continue  # an elementwise call reads an element before it writes it
            layout.places[value] = Place(state[0])
            layout.alias[node, 0] = value


def _end(phases: Sequence[Phase]) -> int:
    """Return a step number after all others."""
    return sum(len(phase.nodes) for phase in phases) + len(phases)


def _last_uses(layout: Layout, made_in: dict[Node, int]) -> dict[Entry, int]:
    """Return the last step that reads each value."""
    last: dict[Entry, int] = {}
    step = 0
    end = _end(layout.phases)
    for p, phase in enumerate(layout.phases):
        for node in phase.nodes:
            for entry in elements_read(node):
                root = layout.root(entry)
                # a later phase may run again, so values of earlier phases stay alive
                last[root] = step if made_in.get(root[0]) == p else end
            step += 1
        for entry in layout.copied(p):
            root = layout.root(entry)
            last[root] = step if made_in.get(root[0]) == p else end
        step += 1
    return last


def _keep_all(last: dict[Entry, int], phases: Sequence[Phase]) -> None:
    """Keep every value alive to the end."""
    end = _end(phases)
    last.update(dict.fromkeys(last, end))


def shared(layout: Layout, known: Known) -> Sharing:
    """Assign every value without a place to a buffer; a buffer is free again after the last read of its value."""
    found = Sharing()
    free: dict[int, _Free] = {}  # by type code
    ending: dict[int, list[Entry]] = {}
    step, last = 0, layout.last
    for phase in layout.phases:
        for node in phase.nodes:
            if node.op is not None and (node, 0) not in layout.alias:
                taken = _overwritten_buffers(layout, found, node, step, known)
                for k in range(node.n_outputs):
                    entry = (node, k)
                    if entry in layout.places:
                        continue
                    code, size = known.dtype(entry), size_of(known.shape(entry))
                    found.unshared += dtypes.SIZES[code] * size
                    buffer = taken.get(k)
                    if buffer is None:
                        buffer = _allocate(found, free.get(code), code, size)
                    found.homes[entry] = Home(buffer=buffer, req=layout.req(entry))
                    ending.setdefault(last.get(entry, step), []).append(entry)
                for entry in list(ending.get(step, ())):
                    if found.homes[entry].buffer in taken.values() and entry[0] is not node:
                        ending[step].remove(entry)  # this node's output lives in its buffer
            _release(found, ending.pop(step, ()), free)
            step += 1
        _release(found, ending.pop(step, ()), free)
        step += 1
    return found


def _overwritten_buffers(layout: Layout, sharing: Sharing, node: Node, step: int, known: Known) -> dict[int, int]:
    """Return ``{output: buffer}``: buffers of operands dead after this step, which outputs of `node` overwrite."""
    taken: dict[int, int] = {}
    for k in range(node.n_outputs):
        if (node, k) in layout.places or (node, k) not in layout.last:
            continue
        for entry in _overwritten(layout, node, k):
            root = layout.root(entry)
            home = sharing.homes.get(root)
            if home is None or home.buffer in taken.values() or layout.last.get(root) != step:
                continue
            if known.same(entry, (node, k)):
                taken[k] = home.buffer
                break
    return taken


def _overwritten(layout: Layout, node: Node, k: int) -> Sequence[Entry]:
    """Return the operands that output `k` may overwrite."""
    if isinstance(node.op, Elementwise):  # it reads an element before it writes it; those of slices are elsewhere
        sliced = {layout.root(e) for e in node.inputs if e in layout.slices}
        return [e for e in node.inputs if layout.root(e) not in sliced]
    roots = [layout.root(e) for e in node.inputs]
    return [node.inputs[i] for i in _in_place_inputs(node, k) if roots.count(roots[i]) == 1]


def _in_place_inputs(node: Node, k: int) -> Sequence[int]:
    """Return the inputs in whose memory a row kernel, an assignment to a part, or a user's kernels can leave output `k`."""
    if isinstance(node.op, Strip):
        return node.op.overwrites[k] if node.op.overwrites else ()
    if isinstance(node.op, Kernel) and node.op.overwrites:
        return [0]
    place = node.op.takes_place().get(k) if node.op.bodies else None
    return () if place is None else [place]


class _Free:
    """Free buffers of one type: a stack for each size."""

    def __init__(self) -> None:
        self._sizes: list[int] = []  # sorted and distinct: buffers are many, sizes few
        self._of: dict[int, list[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._sizes)

    def take(self, size: int) -> int:
        """Return the last freed buffer of the smallest sufficient size, else of the next smaller size; -1 if none is free."""
        at = bisect_left(self._sizes, size)
        if at == len(self._sizes) or self._sizes[at] > MAX_OVERSIZE * size:
            at -= 1
        if at < 0:
            return -1
        stack = self._of[self._sizes[at]]
        buffer = stack.pop()
        if not stack:
            del self._of[self._sizes.pop(at)]
        return buffer

    def give(self, size: int, buffer: int) -> None:
        """Take a buffer back."""
        if size not in self._of:
            insort(self._sizes, size)
            self._of[size] = []
        self._of[size].append(buffer)


def _allocate(sharing: Sharing, free: _Free | None, code: int, size: int) -> int:
    """Return a free buffer, enlarged if it is too small, or a new one."""
    buffer = free.take(size) if free else -1
    if buffer < 0:
        sharing.buffers.append((code, size))
        return len(sharing.buffers) - 1
    sharing.buffers[buffer] = (code, max(size, sharing.buffers[buffer][1]))
    return buffer


def _release(sharing: Sharing, entries: Sequence[Entry], free: dict[int, _Free]) -> None:
    for entry in entries:
        buffer = sharing.homes[entry].buffer
        code, size = sharing.buffers[buffer]
        free.setdefault(code, _Free()).give(size, buffer)


def phases_of(graph: Graph, n_forward: int) -> tuple[list[Node], list[Node]]:
    """Return the nodes that the forward outputs need, and the other nodes, in order of execution."""
    if n_forward >= len(graph.outputs):
        return graph.nodes, []
    forward = Graph(graph.outputs[:n_forward]).nodes
    done = set(forward)
    return forward, [node for node in graph.nodes if node not in done]
