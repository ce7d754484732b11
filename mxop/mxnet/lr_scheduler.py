"""``mx.lr_scheduler``: learning rates as functions of the number of updates.

A scheduler is asked with growing numbers; MXNet's keep the rate as ``base_lr``, which optimizers may set.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import pairwise
from math import cos, pi

from ..support.errors import OpTypeError, OpValueError, all_end_at_caller, shown
from ..support.missing import hooks


class LRScheduler:
    """Learning rate as a function of the number of updates; derive, and define ``__call__(num_update)``.

    Parameters
    ----------
    base_lr : float
        The rate that the schedule begins with.
    warmup_steps : int
        For so many updates, the rate comes from the warm-up.
    warmup_begin_lr : float
        The rate that the warm-up begins with.
    warmup_mode : {'linear', 'constant'}
        Whether the warm-up rises to `base_lr`, or stays where it begins.
    """

    def __init__(self, base_lr: float = 0.01, warmup_steps: int = 0, warmup_begin_lr: float = 0, warmup_mode: str = "linear"):
        if not isinstance(warmup_steps, int) or warmup_steps < 0:
            raise OpValueError(f"lr_scheduler: warmup_steps={shown(warmup_steps)} is not a number of updates")
        if warmup_begin_lr > base_lr:
            raise OpValueError(f"lr_scheduler: warmup_begin_lr={warmup_begin_lr} is above base_lr={base_lr}")
        if warmup_mode not in ("linear", "constant"):
            raise OpValueError(f"lr_scheduler: warmup_mode={shown(warmup_mode)} is neither 'linear' nor 'constant'")
        self.base_lr = self.warmup_final_lr = base_lr
        self.warmup_steps, self.warmup_begin_lr, self.warmup_mode = warmup_steps, warmup_begin_lr, warmup_mode

    def get_warmup_lr(self, num_update: int) -> float:
        """Return the rate of an update during the warm-up."""
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        return self.warmup_begin_lr + (self.warmup_final_lr - self.warmup_begin_lr) * num_update / self.warmup_steps

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        self._advance(num_update)
        return self.base_lr

    def _advance(self, num_update: int) -> None:
        """Set `base_lr` to the rate of an update after the warm-up."""
        raise NotImplementedError(f"{type(self).__name__} does not define __call__(num_update)")


def _positive(step: int) -> int:
    if step < 1:
        raise OpValueError(f"lr_scheduler: step={shown(step)} is less than 1")
    return step


def _factor(factor: float) -> float:
    if factor > 1:
        raise OpValueError(f"lr_scheduler: factor={factor} is above 1: the rate would grow")
    return factor


def _told(num_update: int, rate: float, last: bool = False) -> None:
    text = "now learning rate arrived at %0.5e, will not change in the future" if last else "Change learning rate to %0.5e"
    logging.info(f"Update[%d]: {text}", num_update, rate)


class FactorScheduler(LRScheduler):
    """Multiply the rate by `factor` after every `step` updates, down to `stop_factor_lr`.

    Examples
    --------
    >>> rate = FactorScheduler(step=2, factor=0.5, base_lr=1.0)
    >>> [rate(n) for n in range(1, 7)]
    [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]
    """

    def __init__(self, step: int, factor: float = 1, stop_factor_lr: float = 1e-8, base_lr: float = 0.01,
                 warmup_steps: int = 0, warmup_begin_lr: float = 0, warmup_mode: str = "linear"):  # fmt: skip
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self.step, self.factor, self.stop_factor_lr = _positive(step), _factor(factor), stop_factor_lr
        self.count = 0

    def _advance(self, num_update: int) -> None:
        while num_update > self.count + self.step:
            self.count += self.step
            lower = self.base_lr * self.factor
            self.base_lr = max(lower, self.stop_factor_lr)
            _told(num_update, self.base_lr, lower < self.stop_factor_lr)


class MultiFactorScheduler(LRScheduler):
    """Multiply the rate by `factor` after each number of updates that `step` lists.

    Examples
    --------
    >>> rate = MultiFactorScheduler(step=[2, 3], factor=0.5, base_lr=1.0)
    >>> [rate(n) for n in range(1, 6)]
    [1.0, 1.0, 0.5, 0.25, 0.25]
    """

    def __init__(self, step: Sequence[int], factor: float = 1, base_lr: float = 0.01, warmup_steps: int = 0,
                 warmup_begin_lr: float = 0, warmup_mode: str = "linear"):  # fmt: skip
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if not isinstance(step, (list, tuple)) or not step:
            raise OpTypeError(f"lr_scheduler: step={shown(step)} is not a list of numbers of updates")
        if any(_positive(a) >= b for a, b in pairwise(step)):
            raise OpValueError(f"lr_scheduler: step={shown(step)} does not grow")
        _positive(step[0])
        self.step, self.factor = step, _factor(factor)
        self.cur_step_ind = self.count = 0

    def _advance(self, num_update: int) -> None:
        while self.cur_step_ind < len(self.step) and num_update > self.step[self.cur_step_ind]:
            self.count = self.step[self.cur_step_ind]
            self.cur_step_ind += 1
            self.base_lr *= self.factor
            _told(num_update, self.base_lr)


class _Falling(LRScheduler):
    """A rate that falls from `base_lr` to `final_lr`, which it has from `max_update` on."""

    def __init__(self, max_update: int, base_lr: float = 0.01, final_lr: float = 0, warmup_steps: int = 0,
                 warmup_begin_lr: float = 0, warmup_mode: str = "linear"):  # fmt: skip
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if not isinstance(max_update, int) or max_update < 1:
            raise OpValueError(f"lr_scheduler: max_update={shown(max_update)} is not a positive number of updates")
        self.base_lr_orig, self.final_lr, self.max_update = base_lr, final_lr, max_update
        self.max_steps = max_update - warmup_steps

    def _left(self, done: float) -> float:
        """Return the share of the way that is left, when `done` of the updates are done."""
        raise NotImplementedError

    def _advance(self, num_update: int) -> None:
        if num_update <= self.max_update:
            done = (num_update - self.warmup_steps) / self.max_steps if self.max_steps else 1.0
            self.base_lr = self.final_lr + (self.base_lr_orig - self.final_lr) * self._left(done)


class PolyScheduler(_Falling):
    """Let the rate fall to `final_lr` as the power `pwr` of the updates that are left.

    Examples
    --------
    >>> rate = PolyScheduler(max_update=4, base_lr=1.0)
    >>> [rate(n) for n in range(6)]
    [1.0, 0.5625, 0.25, 0.0625, 0.0, 0.0]
    """

    def __init__(self, max_update: int, base_lr: float = 0.01, pwr: float = 2, final_lr: float = 0, warmup_steps: int = 0,
                 warmup_begin_lr: float = 0, warmup_mode: str = "linear"):  # fmt: skip
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self.power = pwr

    def _left(self, done: float) -> float:
        return (1 - done) ** self.power


class CosineScheduler(_Falling):
    """Let the rate fall to `final_lr` along half a period of the cosine.

    Examples
    --------
    >>> rate = CosineScheduler(max_update=4, base_lr=1.0)
    >>> [round(rate(n), 4) for n in range(6)]
    [1.0, 0.8536, 0.5, 0.1464, 0.0, 0.0]
    """

    def _left(self, done: float) -> float:
        return (1 + cos(pi * done)) / 2


for _class in (LRScheduler, FactorScheduler, MultiFactorScheduler, _Falling, PolyScheduler, CosineScheduler):
    all_end_at_caller(_class)

__all__ = ["CosineScheduler", "FactorScheduler", "LRScheduler", "MultiFactorScheduler", "PolyScheduler"]

__getattr__, __dir__ = hooks(globals(), __all__)
