"""The memory plan: where each value of a graph lives, found before anything runs.

Values that live at different times share a buffer; an elementwise result takes the place of an operand that nobody reads
afterwards; a reshape is another view of its operand.  Results go straight into the arrays that they belong in.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import dtypes
from ..opdef import Elementwise, contiguous_strides
from .assignment import Assign
from .infer import Known
from .ir import Entry, Graph, Node
from .order import early_release
from .traits import elements_read, is_plain_view

NULL, WRITE, ADD = 0, 1, 3
#: How many times larger than a value its buffer may be: a small value would keep a large one from taking the place.
ROOMY = 4


@dataclass
class Result:
    """A value that belongs in a given array.

    Attributes
    ----------
    entry : (Node, int)
    array : NDArray
    req : int
        1 to write, 3 to add.
    last : bool
        Whether it may be written only when all nodes have run, because they read what lies there.
    """

    entry: Entry
    array: Any
    req: int = WRITE
    last: bool = False


@dataclass
class Phase:
    """Nodes in order of execution, and the results to deliver: forward, or backward."""

    nodes: list[Node]
    results: list[Result]


@dataclass
class Home:
    """Where a value lives.

    Attributes
    ----------
    array : NDArray or None
        An array that is given, or
    buffer : int
        a buffer of the plan.
    req : int
        What the node that makes the value does: write, add, or nothing when nobody reads it.
    """

    array: Any = None
    buffer: int = -1
    req: int = WRITE


@dataclass
class Plan:
    """The homes of all values, and the buffers behind them.

    Attributes
    ----------
    homes : dict
        Of each entry that a node makes, aliases left out.
    alias : dict
        Entries that are another view of an entry.
    copies : list of list of (entry, Result)
        For each phase what is copied after its nodes ran.
    buffers : list of (int, int)
        Type and number of elements of each buffer.
    unshared : int
        Bytes that the values would take without sharing.
    phases : sequence of Phase
    known : Known
        What the plan was made for.
    """

    homes: dict[Entry, Home] = field(default_factory=dict)
    alias: dict[Entry, Entry] = field(default_factory=dict)
    copies: list[list[Result]] = field(default_factory=list)
    buffers: list[tuple[int, int]] = field(default_factory=list)
    unshared: int = 0
    phases: Sequence[Phase] = ()
    known: Known | None = None

    def root(self, entry: Entry) -> Entry:
        """Return the entry whose memory an entry is a view of."""
        return self.alias.get(entry, entry)

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers."""
        return sum(dtypes.SIZES[code] * size for code, size in self.buffers)

    def carried(self) -> set[int]:
        """Return the buffers in which one phase leaves values for a later one."""
        made_in = {node: p for p, phase in enumerate(self.phases) for node in phase.nodes}
        found = set()
        for p, phase in enumerate(self.phases):
            read = [e for node in phase.nodes for e in elements_read(node)] + [r.entry for r in self.copies[p]]
            found |= {self.homes[r].buffer for r in map(self.root, read) if r in self.homes and made_in[r[0]] < p}
        return found - {-1}


def size_of(shape: tuple[int | None, ...]) -> int:
    """Return the number of elements; what has no size before a run takes no place in a plan."""
    size = 1
    for d in shape:
        size *= d or 0
    return size


def make_plan(
    phases: Sequence[Phase], known: Known, contiguous: set[Node], arrays: Mapping[Node, Any], share: bool = True
) -> Plan:
    """Plan memory for phases that run in this order, where the last may run again.

    Parameters
    ----------
    contiguous : set of Node
        The variables whose arrays lie in C order, so that they can be viewed in another shape.
    arrays : dict
        The array of each variable.
    share : bool
        Whether buffers are used again; otherwise every value has its own.
    """
    plan = Plan(phases=phases, known=known)
    made_in = {node: p for p, phase in enumerate(phases) for node in phase.nodes if node.op is not None}
    delivered = {r.entry for phase in phases for r in phase.results}
    for phase in phases:
        for node in phase.nodes:
            _find_alias(plan, node, delivered, known, contiguous)
    _deliver(plan, phases, made_in)
    if share:
        _begin_there(plan, phases, made_in, known)
        plan.phases = phases = [
            Phase(_early(plan, p, phases, made_in, known), phase.results) for p, phase in enumerate(phases)
        ]
        _assign_in_place(plan, phases, arrays)
    last = _last_uses(plan, phases, made_in)
    if not share:
        _never_ending(last, phases)
    _share(plan, phases, last, known)
    return plan


def _find_alias(plan: Plan, node: Node, delivered: set[Entry], known: Known, contiguous: set[Node]) -> None:
    if node.op is None or node.n_outputs != 1 or (node, 0) in delivered or not node.inputs:
        return
    source = plan.root(node.inputs[0])
    if source in delivered:  # its array may have any strides
        return
    if (source[0].op is None and source[0] not in contiguous) or not is_plain_view(node, known):
        return
    plan.alias[node, 0] = source


def _deliver(plan: Plan, phases: Sequence[Phase], made_in: dict[Node, int]) -> None:
    """Let nodes write results where they belong; what cannot be is copied afterwards."""
    readers: dict[Entry, int] = {}
    for phase in phases:
        for entry in [e for node in phase.nodes for e in node.inputs] + [r.entry for r in phase.results]:
            readers[plan.root(entry)] = readers.get(plan.root(entry), 0) + 1
    for p, phase in enumerate(phases):
        copies = []
        for result in phase.results:
            entry = result.entry
            direct = made_in.get(entry[0]) == p and entry not in plan.homes and entry not in plan.alias
            if direct and not result.last and (result.req == WRITE or readers[entry] == 1):
                plan.homes[entry] = Home(array=result.array, req=result.req)
            else:
                copies.append(result)
        plan.copies.append(copies)


def _begin_there(plan: Plan, phases: Sequence[Phase], made_in: dict[Node, int], known: Known) -> None:
    """Let values be made where what takes their place belongs, or is another view of them."""
    nodes = [node for phase in phases for node in phase.nodes if node.op is not None]
    readers = Counter(plan.root(e) for n in nodes if (n, 0) not in plan.alias for e in elements_read(n))
    readers.update(plan.root(r.entry) for phase in phases for r in phase.results)
    for node in reversed(nodes):
        view = (node, 0) in plan.homes and node.n_outputs == 1 and bool(node.inputs) and is_plain_view(node, known)
        for k in range(node.n_outputs):
            home = plan.homes.get((node, k))
            if home is None or home.req != WRITE or not home.array._contiguous:
                continue
            same = [e for e in _overwritten(plan, node, k) if known.same(e, (node, k))]
            for first in map(plan.root, node.inputs[:1] if view else same):
                if first in plan.homes or readers[first] != 1 or made_in.get(first[0]) != made_in[node]:
                    continue
                shape = known.shape(first)
                plan.homes[first] = Home(array=home.array._view(shape, contiguous_strides(shape), 0))
                if view:
                    plan.alias[node, k] = first
                    del plan.homes[node, k]
                break


def _early(plan: Plan, p: int, phases: Sequence[Phase], made_in: dict[Node, int], known: Known) -> list[Node]:
    """Return the nodes of a phase in an order in which memory is given back early."""
    nodes = phases[p].nodes
    if sum(node.op is not None for node in nodes) < 3:  # nothing dies between them
        return list(nodes)
    kept = {plan.root(e) for phase in phases[p + 1 :] for node in phase.nodes for e in node.inputs}
    kept |= {plan.root(r.entry) for copies in plan.copies[p:] for r in copies}
    states = {node.inputs[i][0] for node in nodes for i in node.mutated_inputs()}
    in_turn: dict[Node, Node] = {}  # what has effects keeps its order
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
        if made_in.get(node) != p or entry in plan.homes or entry in plan.alias:
            return 0
        return dtypes.SIZES[known.dtype(entry)] * size_of(known.shape(entry))

    return early_release(nodes, needs, plan.root, size, kept)


def _assign_in_place(plan: Plan, phases: Sequence[Phase], arrays: Mapping[Node, Any]) -> None:
    """Let a state's new value be made where the state lies, if nobody reads the old one in between."""
    readers: dict[Entry, list[Node]] = {}
    for phase in phases:
        for node in phase.nodes:
            for entry in node.inputs:
                readers.setdefault(plan.root(entry), []).append(node)
    delivered = {plan.root(r.entry) for phase in phases for r in phase.results}
    for phase in phases:
        at = {node: i for i, node in enumerate(phase.nodes)}
        for node in [n for n in phase.nodes if isinstance(n.op, Assign)]:
            state, value = node.inputs
            maker = value[0]
            if maker not in at or maker.op is None or value in plan.homes or plan.root(value) != value:
                continue
            if readers[value] != [node] or value in delivered or (node, 0) in readers or (node, 0) in delivered:
                continue
            between = [n for n in readers[state] if n is not node and at.get(n, len(at)) >= at[maker]]
            if between and (between != [maker] * len(between) or not isinstance(maker.op, Elementwise)):
                continue  # an elementwise call reads an element before it writes it
            plan.homes[value] = Home(array=arrays[state[0]])
            plan.alias[node, 0] = value


def _end(phases: Sequence[Phase]) -> int:
    """Return the number of the step behind all others."""
    return sum(len(phase.nodes) for phase in phases) + len(phases)


def _last_uses(plan: Plan, phases: Sequence[Phase], made_in: dict[Node, int]) -> dict[Entry, int]:
    """Return the step after which each value is not read any more."""
    last: dict[Entry, int] = {}
    step = 0
    end = _end(phases)
    for p, phase in enumerate(phases):
        for node in phase.nodes:
            for entry in elements_read(node):
                root = plan.root(entry)
                # a later phase may run again, so it never frees what an earlier one made
                last[root] = step if made_in.get(root[0]) == p else end
            step += 1
        for result in plan.copies[p]:
            root = plan.root(result.entry)
            last[root] = step if made_in.get(root[0]) == p else end
        step += 1
    return last


def _never_ending(last: dict[Entry, int], phases: Sequence[Phase]) -> None:
    """Let every value live to the end."""
    end = _end(phases)
    last.update(dict.fromkeys(last, end))


def _share(plan: Plan, phases: Sequence[Phase], last: dict[Entry, int], known: Known) -> None:
    """Give every other value a buffer, and the buffer to another value when the last reader is done."""
    free: dict[int, _Free] = {}  # of each type
    ending: dict[int, list[Entry]] = {}
    step = 0
    for phase in phases:
        for node in phase.nodes:
            if node.op is not None and (node, 0) not in plan.alias:
                taken = _take_place(plan, node, step, last, known)
                for k in range(node.n_outputs):
                    entry = (node, k)
                    if entry in plan.homes:
                        continue
                    code, size = known.dtype(entry), size_of(known.shape(entry))
                    plan.unshared += dtypes.SIZES[code] * size
                    buffer = taken.get(k)
                    if buffer is None:
                        buffer = _allocate(plan, free.get(code), code, size)
                    plan.homes[entry] = Home(buffer=buffer, req=WRITE if entry in last else NULL)
                    ending.setdefault(last.get(entry, step), []).append(entry)
                for entry in list(ending.get(step, ())):
                    if plan.homes[entry].buffer in taken.values() and entry[0] is not node:
                        ending[step].remove(entry)  # it lives on as this node's output
            _release(plan, ending.pop(step, ()), free)
            step += 1
        _release(plan, ending.pop(step, ()), free)
        step += 1


def _take_place(plan: Plan, node: Node, step: int, last: dict[Entry, int], known: Known) -> dict[int, int]:
    """Return the buffers of dying operands that a node's outputs can take: ``{output: buffer}``."""
    taken: dict[int, int] = {}
    for k in range(node.n_outputs):
        if (node, k) in plan.homes or (node, k) not in last:
            continue
        for entry in _overwritten(plan, node, k):
            root = plan.root(entry)
            home = plan.homes.get(root)
            if home is None or home.buffer < 0 or home.buffer in taken.values() or last.get(root) != step:
                continue
            if known.same(entry, (node, k)):
                taken[k] = home.buffer
                break
    return taken


def _overwritten(plan: Plan, node: Node, k: int) -> Sequence[Entry]:
    """Return the operands whose place an output may take."""
    if isinstance(node.op, Elementwise):
        return node.inputs  # it reads an element before it writes it
    if (i := _kept_in_place(node).get(k)) is None:
        return ()
    roots = [plan.root(e) for e in node.inputs]
    return [node.inputs[i]] if roots.count(roots[i]) == 1 else []


def _kept_in_place(node: Node) -> dict[int, int]:
    """Return the outputs that need not be written where they lie in an input's place already, and that input."""
    return node.op.takes_place() if node.op.bodies else {}


class _Free:
    """Buffers of one type that nobody needs now, as a stack for each size."""

    def __init__(self) -> None:
        self._sizes: list[int] = []  # sorted, each once: there are many buffers, but few sizes
        self._of: dict[int, list[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._sizes)

    def take(self, size: int) -> int:
        """Return the buffer that was given back last of the smallest size that is enough, else of the next smaller; or -1."""
        at = bisect_left(self._sizes, size)
        if at == len(self._sizes) or self._sizes[at] > ROOMY * size:
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


def _allocate(plan: Plan, free: _Free | None, code: int, size: int) -> int:
    """Return a free buffer that is not too large, made larger where it is too small, or a new one."""
    buffer = free.take(size) if free else -1
    if buffer < 0:
        plan.buffers.append((code, size))
        return len(plan.buffers) - 1
    plan.buffers[buffer] = (code, max(size, plan.buffers[buffer][1]))
    return buffer


def _release(plan: Plan, entries: Sequence[Entry], free: dict[int, _Free]) -> None:
    for entry in entries:
        buffer = plan.homes[entry].buffer
        code, size = plan.buffers[buffer]
        free.setdefault(code, _Free()).give(size, buffer)


def phases_of(graph: Graph, n_forward: int) -> tuple[list[Node], list[Node]]:
    """Return the nodes that the forward outputs need, and the others, in order of execution."""
    if n_forward >= len(graph.outputs):
        return graph.nodes, []
    forward = Graph(graph.outputs[:n_forward]).nodes
    done = set(forward)
    return forward, [node for node in graph.nodes if node not in done]
