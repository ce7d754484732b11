"""Monitored execution: node by node, without fusion and shared memory; a callback receives the values of the symbol's calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._core import tape
from .._core.nans import check
from ..opdef import Elementwise, Reduction
from ..support import mxnet_names
from .assignment import settled
from .infer import Known
from .ir import Entry, Node, describe
from .lowering import Call, Differentiated
from .plan import Result, phases_of
from .recipe import allocate, copy_call, prepared
from .schedule import explained

#: Operators whose only input MXNet does not name; it names none of formulas and reductions either, except those of `_NAMED`.
_NUMBERED = frozenset((
    "Flatten", "Reshape", "SoftmaxActivation", "_contrib_AdaptiveAvgPooling2D", "_contrib_arange_like",
    "_contrib_div_sqrt_dim", "_shuffle", "_slice_assign_scalar", "argmax", "argmax_channel", "argmin",
    "argsort", "broadcast_axis", "broadcast_to", "expand_dims", "make_loss", "shape_array", "size_array",
    "slice", "slice_axis", "softmin", "sort", "topk", "transpose",
))  # fmt: skip
#: Operators whose gradient is the head gradient: MXNet's backward has no node for them.
_IDENTITY_GRADIENT = frozenset(("_copy", "add_n", "elemwise_add"))
_NAMED = frozenset(("_contrib_quadratic", "add_n"))


class Monitor:
    """Runs an executor's graph node by node.

    In forward, ``callback(name, array)`` gets the outputs of the symbol's nodes in the symbol's order, as soon as they are
    computed, and with `monitor_all` their inputs; in backward, the gradients of their inputs, in reverse order.
    """

    def __init__(self, executor: Any, callback: Callable[[str, Any], None], monitor_all: bool):
        self.callback, self.monitor_all = callback, monitor_all
        self._executor = executor
        self._arrays: dict[Entry, Any] = {}
        self._ready: dict[bool, tuple[list, list, Sequence[Call]]] = {}
        self._calls: list[Call] = []  # calls to report, in reverse order
        self._missing: set[Node] = set()  # nodes that have not run yet
        self._prepared(bool(executor._wanted))

    def _prepared(self, is_train: bool) -> tuple[list, list, Sequence[Call]]:
        """Return the steps of forward and backward in a mode, and the calls of the symbol."""
        executor = self._executor
        lowered = executor._lowered_for(is_train)
        key = lowered is executor._lowered.get(True)
        if key not in self._ready:
            known = Known.solve(lowered.graph, dict(lowered.given))
            n = known.n_forward = lowered.n_forward
            graph = settled(lowered.graph, known)
            bound = executor._bound | executor._head_bound
            self._arrays |= {(node, 0): array for node, array in bound.items()}
            forward, backward = phases_of(graph, n)
            gradients = executor._gradient_results(graph.outputs[n:]) if graph.outputs[n:] else []
            self._ready[key] = (
                self._steps(forward, executor._output_results(graph.outputs[: lowered.n_outputs]), known, executor._device),
                self._steps(backward, gradients, known, executor._device),
                lowered.calls,
            )
        return self._ready[key]

    def _steps(self, nodes: list[Node], results: list[Result], known: Known, device: Any) -> list[tuple[Node | None, Any]]:
        steps: list[tuple[Node | None, Any]] = []
        for node in nodes:
            if node.op is None:
                continue
            outputs = [allocate(known.shape((node, k)), known.dtype((node, k)), device) for k in range(node.n_outputs)]
            inputs = [self._arrays[e] for e in node.inputs]
            self._arrays.update({(node, k): a for k, a in enumerate(outputs)})
            steps.append((node, prepared(node.op, node.attrs, inputs, outputs, [1] * len(outputs), node)))
        steps += [(None, copy_call(self._arrays[r.entry], r.array, r.req, known.has_size(r.entry))) for r in results]
        return steps

    def forward(self, is_train: bool) -> None:
        steps, _, calls = self._prepared(is_train)
        self._calls, self._missing = list(reversed(calls)), {node for node, _ in steps if node is not None}
        self._run(steps, is_train, self._ran)
        self._show_calls()

    def backward(self) -> None:
        self._run(self._prepared(True)[1], True, self._ran_backward)
        with tape.Scope(False, None):
            self._show_gradients()

    def _run(self, steps: list[tuple[Node | None, Any]], is_train: bool, ran: Callable[[Node], None]) -> None:
        with tape.Scope(False, is_train):
            for node, call in steps:
                try:
                    call.run()
                except Exception as problem:
                    raise explained(node, problem) from None
                if node is not None:
                    ran(node)

    def _ran(self, node: Node) -> None:
        """Record that a node of forward has run."""
        self._missing.discard(node)
        self._show_calls()

    def _show_calls(self) -> None:
        """Report the symbol's calls that are done; values without readers were not computed."""
        while self._calls and not any(source in self._missing for source, _ in self._calls[-1].outputs):
            call = self._calls.pop()
            self._show_values(call.node, call.inputs, call.outputs)

    def _ran_backward(self, node: Node) -> None:
        """Record that a node of backward has run."""

    def _show_gradients(self) -> None:
        """Report the gradients of the inputs of the symbol's calls, by MXNet's names."""
        lowered = self._executor._lowered_for(True)
        by_call = _by_call(lowered.calls, lowered.differentiated())
        for call in reversed(lowered.calls):
            op: Any = call.node.op
            if call not in by_call or op.name in _IDENTITY_GRADIENT:
                continue
            states = set(op.states(call.node.attrs))
            places = [k for k, name in enumerate(call.node.input_names()) if name not in states]
            for at, k in enumerate(places):
                arrays = [self._arrays[g] for g in by_call[call][k] if g in self._arrays]
                if arrays:
                    name = f"{call.node.name}_backward_output{at if len(places) > 1 else ''}"
                    self.callback(name, sum(arrays[1:], arrays[0]))

    def _show_values(self, node: Node, inputs: Sequence[Entry], outputs: Sequence[Entry]) -> None:
        if self.monitor_all:
            for name, entry, own in zip(_input_names(node), inputs, node.inputs, strict=True):
                if entry in self._arrays:
                    if own[0].op is None:
                        self.callback(own[0].name, self._arrays[entry])
                    self.callback(f"{node.name}_{name}", self._arrays[entry])
        op: Any = node.op
        shown = node.visible_outputs
        states = {k for _, k in op.written_inputs(node.attrs, len(node.inputs))}  # MXNet does not name new values of states
        for k, (name, entry) in enumerate(zip(node.output_names(), outputs, strict=True)):
            filler = k >= shown and entry in outputs[:shown]  # LayerNorm returns its result in place of means nobody asked for
            if entry in self._arrays and k not in states and not filler:
                self.callback(name, self._arrays[entry])


def _by_call(calls: Sequence[Call], rules: Sequence[Differentiated]) -> dict[Call, list[list[Entry]]]:
    """Return the gradients of each call's inputs, each as a list of terms: a call may have become several nodes."""
    owners: dict[Node, Call] = {}
    for call in calls:
        ahead = [node for node, _ in call.outputs]
        outside = {node for node, _ in call.inputs}
        while ahead:
            node = ahead.pop()
            if node not in outside and owners.setdefault(node, call) is call:
                outside.add(node)
                ahead += [source for source, _ in node.inputs]
    found: dict[Call, list[list[Entry]]] = {}
    for rule in rules:
        call = owners.get(rule.output[0])
        if call is None:
            continue
        parts = found.setdefault(call, [[] for _ in call.inputs])
        for k, (entry, gradient) in enumerate(zip(rule.inputs, rule.gradients, strict=True)):
            if gradient is not None and entry in call.inputs:
                parts[k if rule.inputs == call.inputs else call.inputs.index(entry)].append(gradient)
    return found


def _input_names(node: Node) -> Sequence[str]:
    """Return the names of a node's inputs as MXNet's monitors show them: inputs without names are numbered."""
    op: Any = node.op
    names = node.input_names()
    if len(names) == 1 and mxnet_names.is_operator(op.name):
        numbered = op.name not in _NAMED if isinstance(op, (Elementwise, Reduction)) else op.name in _NUMBERED
        return ("input0",) if numbered else names
    return names


class NaNFinder(Monitor):
    """Raises at the first node whose outputs hold NaN."""

    def __init__(self, executor: Any):
        super().__init__(executor, lambda name, array: None, False)

    def _ran(self, node: Node) -> None:
        self._ran_backward(node)

    def _show_gradients(self) -> None:
        """Report nothing: each node was checked when it ran."""

    def _ran_backward(self, node: Node) -> None:
        outputs = [self._arrays[node, k] for k in range(node.n_outputs)]
        inputs = [self._arrays[e] for e in node.inputs]
        op: Any = node.op
        check(f"operator {op.name}", op, node.attrs, inputs, outputs, f"; in {describe(node)}")
