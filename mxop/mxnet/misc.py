"""``mx.misc``: the schedulers of MXNet's first programs, which do without warm-up and state."""

from __future__ import annotations

import logging

from ..support.errors import OpValueError, shown
from ..support.missing import hooks


class LearningRateScheduler:
    """Learning rate as a function of the iteration; derive, and define ``__call__(iteration)``."""

    def __init__(self) -> None:
        self.base_lr = 0.01

    def __call__(self, iteration: int) -> float:
        raise NotImplementedError(f"{type(self).__name__} does not define __call__(iteration)")


class FactorScheduler(LearningRateScheduler):
    """Multiply the rate by `factor` after every `step` iterations.

    Examples
    --------
    >>> rate = FactorScheduler(step=2, factor=0.5)
    >>> [rate(n) for n in range(5)]
    [0.01, 0.01, 0.005, 0.005, 0.0025]
    """

    def __init__(self, step: int, factor: float = 0.1):
        super().__init__()
        if step < 1:
            raise OpValueError(f"FactorScheduler: step={shown(step)} is less than 1")
        if factor >= 1:
            raise OpValueError(f"FactorScheduler: factor={factor} is not below 1: the rate would not fall")
        self.step, self.factor = step, factor
        self.old_lr, self.init = self.base_lr, False

    def __call__(self, iteration: int) -> float:
        rate = self.base_lr * self.factor ** int(iteration / self.step)
        if not self.init:
            self.old_lr, self.init = self.base_lr, True
        if rate != self.old_lr:
            self.old_lr = rate
            logging.info("Iteration[%d]: Change learning rate to %0.5e", iteration, rate)
        return rate


__all__ = ["FactorScheduler", "LearningRateScheduler"]

__getattr__, __dir__ = hooks(globals(), __all__)
