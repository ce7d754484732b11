"""An optimizer with the states of all weights."""

from __future__ import annotations

from typing import Any

from ...context import Context
from ...ndarray import NDArray
from ...support.errors import OpTypeError, OpValueError, ends_at_caller, shown
from . import states as _states
from .base import Optimizer


class Updater:
    """Update weights by their index; their states are made when they are first seen.

    Parameters
    ----------
    optimizer : Optimizer

    Examples
    --------
    >>> updater = mx.optimizer.get_updater(mx.optimizer.create("sgd", learning_rate=0.5, momentum=0.5))
    >>> w = mx.nd.array([1, 2])
    >>> updater(0, mx.nd.array([2, 2]), w)
    >>> w.asnumpy().tolist(), updater.states[0].asnumpy().tolist()
    ([0.0, 1.0], [-1.0, -1.0])
    """

    def __init__(self, optimizer: Optimizer):
        if isinstance(optimizer, str):
            raise OpTypeError(f"Updater: {optimizer!r} is a name; expected an optimizer, mx.optimizer.create({optimizer!r})")
        self.optimizer = optimizer
        self.states: dict[Any, Any] = {}
        self.states_synced: dict[Any, bool] = {}  # whether a state is where its weight is

    @property
    def aggregate_updates(self) -> bool:
        """Whether the optimizer takes several weights in one call."""
        return self.optimizer.aggregate_num > 0

    def __call__(self, index: Any, grad: Any, weight: Any) -> None:
        indices, grads, weights = (index, grad, weight) if isinstance(index, (list, tuple)) else ([index], [grad], [weight])
        indices = [i.decode() if isinstance(i, bytes) else i for i in indices]
        if not len(indices) == len(grads) == len(weights):
            raise OpValueError(f"Updater: {len(indices)} indices, {len(grads)} gradients and {len(weights)} weights")
        if any(g is None for g in grads):
            raise OpValueError("Updater: a gradient is None; call attach_grad() on the weight before autograd.record()")
        for array in (*grads, *weights):
            if not hasattr(array, "stype"):
                raise OpTypeError(f"Updater: gradients and weights are NDArrays, got {shown(array)}: use mx.nd.array()")
        if not indices:
            return
        self.optimizer._set_current_context(weights[0].context.device_id)
        for i, w in zip(indices, weights):
            self._have_state(i, w)
        if not self.aggregate_updates:
            for i, w, g in zip(indices, weights, grads):
                self.optimizer.update_multi_precision(i, w, g, self.states[i])
            return
        by_type: dict[Any, list] = {}
        for i, w, g in zip(indices, weights, grads):
            by_type.setdefault(w.dtype, []).append((i, w, g, self.states[i]))
        most = self.optimizer.aggregate_num
        for group in by_type.values():
            for at in range(0, len(group), most):
                i, w, g, s = zip(*group[at : at + most])
                self.optimizer.update_multi_precision(i, w, g, list(s))

    def _have_state(self, index: Any, weight: NDArray) -> None:
        if index not in self.states:
            self.states[index] = self.optimizer.create_state_multi_precision(index, weight)
        elif not self.states_synced[index]:
            state = self.sync_state_context(self.states[index], weight.context)
            if _states.unmade(state):
                state = _states.completed(state, self.optimizer.create_state_multi_precision(index, weight))
            self.states[index] = state
        self.states_synced[index] = True

    def sync_state_context(self, state: Any, context: Context) -> Any:
        """Return a state on a device."""
        if isinstance(state, NDArray):
            return state.as_in_context(context)
        if isinstance(state, (tuple, list)):
            return type(state)(self.sync_state_context(one, context) for one in state)
        if isinstance(state, _states.Unmade):
            return _states.Unmade(state.name, {k: self.sync_state_context(v, context) for k, v in state.attributes.items()})
        return state

    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """Return the states as bytes, and with `dump_optimizer` the optimizer.

        The bytes are a ``.params`` file: the arrays, and JSON that says what they belong to.  Reading it runs no code,
        as reading pickles, MXNet's format, would.
        """
        return _states.dumps(self.states, self.optimizer if dump_optimizer else None)

    def set_states(self, states: bytes) -> None:
        """Take over the states of :meth:`get_states`, and the optimizer, if it is among them.

        What MXNet has written (a pickle) is read, too: of its classes, only arrays, optimizers and schedulers are made.
        """
        found, optimizer = _states.loads(states)
        self.states, self.states_synced = found, dict.fromkeys(found, False)
        if optimizer is not None:
            self.optimizer = optimizer


@ends_at_caller
def get_updater(optimizer: Optimizer) -> Updater:
    """Return an :class:`Updater` of an optimizer."""
    return Updater(optimizer)
