"""Monitored execution: one call after the other, nothing fused or shared, every value shown to a callback.

Imports :mod:`.schedule` and the passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .._core import tape
from ..nans import check
from .assignment import settled
from .expand import INSIDE
from .infer import Known
from .ir import Entry, Node, describe
from .plan import Result, phases_of
from .schedule import allocate, copy_call, explained, prepared


class Monitor:
    """Runs an executor's graph node by node.

    Parameters
    ----------
    executor : Executor
    callback : callable
        ``callback(name, array)``.
    monitor_all : bool
        Report inputs too.
    """

    def __init__(self, executor: Any, callback: Callable[[str, Any], None], monitor_all: bool):
        self.callback, self.monitor_all = callback, monitor_all
        self._executor = executor
        self._composites: dict[Entry, list[tuple[Node, int, list[Entry]]]] = {}
        self._names: set[str] = set()  # of the symbol's nodes
        self._arrays: dict[Entry, Any] = {}
        self._ready: dict[bool, tuple[list, list]] = {}
        self._prepared(bool(executor._wanted))

    def _prepared(self, is_train: bool) -> tuple[list, list]:
        """Return the steps of forward and backward in a mode."""
        executor = self._executor
        lowered = executor._lowered_for(is_train)
        key = lowered is executor._lowered.get(True)
        if key not in self._ready:
            known = Known.solve(lowered.graph, dict(lowered.given))
            n = known.n_forward = lowered.n_forward
            graph = settled(lowered.graph, known)
            bound = executor._bound | executor._head_bound
            self._composites |= lowered.composites()
            self._names |= {node.name for node in lowered.source.nodes}
            self._arrays |= {(node, 0): array for node, array in bound.items()}
            forward, backward = phases_of(graph, n)
            gradients = executor._gradient_results(graph.outputs[n:]) if graph.outputs[n:] else []
            self._ready[key] = (
                self._steps(forward, executor._output_results(graph), known, executor._device),
                self._steps(backward, gradients, known, executor._device),
            )
        return self._ready[key]

    def _steps(
        self, nodes: list[Node], results: list[Result], known: Known, like: Any
    ) -> list[tuple[Node | None, Any]]:
        steps: list[tuple[Node | None, Any]] = []
        for node in nodes:
            if node.op is None:
                continue
            outputs = [allocate(known.shape((node, k)), known.dtype((node, k)), like) for k in range(node.n_outputs)]
            inputs = [self._arrays[e] for e in node.inputs]
            self._arrays.update({(node, k): a for k, a in enumerate(outputs)})
            steps.append((node, prepared(node, inputs, outputs, [1] * len(outputs))))
        steps += [(None, copy_call(self._arrays[r.entry], r.array, r.req, known.has_size(r.entry))) for r in results]
        return steps

    def forward(self, is_train: bool) -> None:
        self._run(self._prepared(is_train)[0], is_train)

    def backward(self) -> None:
        self._run(self._prepared(True)[1], True)

    def _run(self, steps: list[tuple[Node | None, Any]], is_train: bool) -> None:
        recording, training = tape.switch_recording(False), tape.switch_training(is_train)
        shown: set[Node] = set()
        try:
            for node, call in steps:
                if node is not None and self.monitor_all:
                    self._show_inputs(node, shown)
                try:
                    call.run()
                except Exception as problem:
                    raise explained(node, problem) from None
                if node is not None:
                    self._show(node)
        finally:
            tape.switch_recording(recording)
            tape.switch_training(training)

    def _own(self, node: Node) -> bool:
        """Return whether a node is one of the symbol's, or of its gradient's, and no part of a composite."""
        if INSIDE in node.name and node.name not in self._names:
            return False
        found = (c for k in range(node.n_outputs) for c in self._composites.get((node, k), ()))
        return all(whole.name != node.name for whole, _, _ in found)

    def _show(self, node: Node) -> None:
        own = self._own(node)
        for k in range(node.n_outputs):
            shown = [(node, k)] if own else []
            shown += [(whole, at) for whole, at, _ in self._composites.get((node, k), ())]
            for whole, at in shown:
                self.callback(whole.output_name(at), self._arrays[node, k])

    def _show_inputs(self, node: Node, shown: set[Node]) -> None:
        if self._own(node):
            self._show_inputs_of(node, node.inputs, shown)
        for k in range(node.n_outputs):
            for whole, _, inputs in self._composites.get((node, k), ()):
                if whole not in shown:
                    shown.add(whole)
                    self._show_inputs_of(whole, inputs, shown)

    def _show_inputs_of(self, node: Node, inputs: Iterable[Entry], shown: set[Node]) -> None:
        for name, entry in zip(node.input_names(), inputs, strict=True):
            if entry not in self._arrays:  # nobody reads it
                continue
            if entry[0].op is None and entry[0] not in shown:
                shown.add(entry[0])
                self.callback(entry[0].name, self._arrays[entry])
            self.callback(f"{node.name}_{name}", self._arrays[entry])


class NaNFinder(Monitor):
    """Raises at the first node whose result holds NaN."""

    def __init__(self, executor: Any):
        super().__init__(executor, lambda name, array: None, False)

    def _show(self, node: Node) -> None:
        outputs = [self._arrays[node, k] for k in range(node.n_outputs)]
        inputs = [self._arrays[e] for e in node.inputs]
        op: Any = node.op
        check(f"operator {op.name}", op, node.attrs, inputs, outputs, f"; in {describe(node)}")
