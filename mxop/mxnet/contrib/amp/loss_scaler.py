"""Losses scaled so that gradients in float16 do not vanish, by a factor that follows what overflows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import MethodType
from typing import Any

from .... import autograd
from .... import ndarray as nd
from ...._core import tape
from ....support.errors import MXNetError, OpTypeError, shown
from ...optimizer import Optimizer
from .arrays import is_on

_HIGHEST = 2.0**24
_CALM = 2000  # steps without overflow, after which the factor is doubled


class LossScaler:
    """The factor of a loss: halved after each step whose gradients overflowed, doubled after 2000 steps without.

    Attributes
    ----------
    loss_scale : float
        The factor; at first 65536, at most 2 ** 24.

    Examples
    --------
    >>> scaler = mx.contrib.amp.loss_scaler.LossScaler()
    >>> scaler.has_overflow([mx.nd.array([1, float('inf')])]), scaler.loss_scale
    (True, 32768.0)
    """

    def __init__(self) -> None:
        self.loss_scale = 2.0**16
        self._calm = 0

    def has_overflow(self, params: Sequence[Any]) -> bool:
        """Return whether a gradient is infinite or NaN, and change the factor for the next step.

        Parameters
        ----------
        params : sequence of NDArray
            Gradients.
        """
        overflowed = not _finite(list(params))
        self._calm = 0 if overflowed else self._calm + 1
        if overflowed:
            self.loss_scale = max(1.0, self.loss_scale / 2)
        elif self._calm == _CALM:
            self.loss_scale, self._calm = min(_HIGHEST, self.loss_scale * 2), 0
        return overflowed


def _finite(grads: list) -> bool:
    places: dict[Any, list] = {}
    for g in grads:
        places.setdefault(g.context, []).append(g if isinstance(g, nd.NDArray) else g.tostype("default"))
    found = [nd.multi_all_finite(*some, num_arrays=len(some)) for some in places.values()]
    return all(x.asscalar() == 1 for x in found)


class _Step:
    """What the scaled loss of an optimizer's next update had."""

    def __init__(self, rescale_grad: float):
        self.scaler = LossScaler()
        self.rescale_grad = rescale_grad
        self.factor = 1.0  # that the gradients are multiplied by
        self.grads: list = []
        self.skip = False


def init_trainer(optimizer_or_trainer: Optimizer) -> None:
    """Prepare an optimizer for scaled losses: updates are left out in steps whose gradients overflow.

    Parameters
    ----------
    optimizer_or_trainer : Optimizer
        :func:`scale_loss` changes its ``rescale_grad``.

    Raises
    ------
    MXNetError
        If mixed precision was not switched on (:func:`init`).
    """
    if not isinstance(optimizer_or_trainer, Optimizer):
        raise OpTypeError(f"amp.init_trainer takes an Optimizer, got {shown(optimizer_or_trainer)}")
    if not is_on():
        raise MXNetError("amp.init_trainer: mixed precision is not on; call mx.contrib.amp.init() first")
    optimizer: Any = optimizer_or_trainer
    if hasattr(optimizer, "_amp_step"):
        return
    step = optimizer._amp_step = _Step(optimizer.rescale_grad)
    update = type(optimizer).update_multi_precision

    def update_unless_overflowed(self: Any, index: Any, weight: Any, grad: Any, state: Any) -> None:
        if not step.skip:
            update(self, index, weight, grad, state)

    optimizer.update_multi_precision = MethodType(update_unless_overflowed, optimizer)


def _step_of(optimizer: Any, who: str) -> _Step:
    found = getattr(optimizer, "_amp_step", None)
    if found is None:
        raise MXNetError(f"amp.{who}: {shown(optimizer)} is not prepared for scaled losses; call amp.init_trainer() first")
    return found


@contextmanager
def scale_loss(loss: Any, optimizer_or_trainer: Optimizer) -> Iterator[Any]:
    """Give a loss, or a list of losses, times the factor; call ``backward`` of it inside of the scope.

    At the end of the scope, the gradients are checked.  If one is infinite or NaN, the optimizer leaves out the updates
    up to the next scope, and the factor is halved.

    Parameters
    ----------
    loss : NDArray or sequence of NDArray
        Recorded.
    optimizer_or_trainer : Optimizer
        For which :func:`init_trainer` was called; its ``rescale_grad`` undoes the factor.
    """
    step = _step_of(optimizer_or_trainer, "scale_loss")
    losses = list(loss) if isinstance(loss, (list, tuple)) else [loss]
    for one in losses:
        if not isinstance(one, nd.NDArray):
            raise OpTypeError(f"amp.scale_loss: loss is {shown(one)}; expected a recorded NDArray, or a list of these")
    step.factor = factor = step.scaler.loss_scale
    optimizer_or_trainer.rescale_grad = step.rescale_grad / factor
    step.grads = tape.gradients_below(losses)
    step.skip = False
    with autograd.record(autograd.is_training()):
        scaled = [one * factor for one in losses]
    yield scaled if isinstance(loss, (list, tuple)) else scaled[0]
    step.skip = step.scaler.has_overflow(step.grads)


def unscale(optimizer_or_trainer: Optimizer) -> None:
    """Divide the gradients of the last scaled loss by its factor now, so that they can be clipped or looked at.

    Parameters
    ----------
    optimizer_or_trainer : Optimizer
        Its ``rescale_grad`` becomes what it was before.
    """
    step = _step_of(optimizer_or_trainer, "unscale")
    for grad in step.grads:
        grad *= 1 / step.factor
    step.factor, optimizer_or_trainer.rescale_grad = 1.0, step.rescale_grad
