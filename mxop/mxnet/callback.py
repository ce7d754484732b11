"""``mx.callback``: what loops of training call at the end of batches and epochs."""

from __future__ import annotations

import logging
import math
import time
from collections import namedtuple
from collections.abc import Callable
from functools import partial
from typing import Any

from ..support.missing import hooks
from .checkpoints import save_checkpoint

#: What callbacks at the end of a batch get.
BatchEndParam = namedtuple("BatchEndParam", ["epoch", "nbatch", "eval_metric", "locals"])


def every(period: int, write: Callable) -> Callable:
    """Return a callback that calls ``write(epoch, symbol, arguments, states)`` after every `period` epochs."""
    period = max(1, int(period))

    def callback(iter_no: int, sym: Any = None, arg: Any = None, aux: Any = None) -> None:
        if (iter_no + 1) % period == 0:
            write(iter_no + 1, sym, arg, aux)

    return callback


def module_checkpoint(mod: Any, prefix: str, period: int = 1, save_optimizer_states: bool = False) -> Callable:
    """Return a callback that lets a module write a checkpoint after every `period` epochs."""
    return every(period, lambda epoch, *_: mod.save_checkpoint(prefix, epoch, save_optimizer_states))


def do_checkpoint(prefix: str, period: int = 1) -> Callable:
    """Return a callback that writes a checkpoint after every `period` epochs; see ``mx.model.save_checkpoint``."""
    return every(period, partial(save_checkpoint, prefix))


def log_train_metric(period: int, auto_reset: bool = False) -> Callable:
    """Return a callback that logs the metric after every `period` batches."""

    def callback(param: Any) -> None:
        if param.nbatch % period == 0 and param.eval_metric is not None:
            for name, value in param.eval_metric.get_name_value():
                logging.info("Iter[%d] Batch[%d] Train-%s=%f", param.epoch, param.nbatch, name, value)
            if auto_reset:
                param.eval_metric.reset_local()

    return callback


class Speedometer:
    """Log the speed and the metric after every `frequent` batches.

    Parameters
    ----------
    batch_size, frequent : int
    auto_reset : bool
        Whether the metric begins anew after that.
    """

    def __init__(self, batch_size: int, frequent: int = 50, auto_reset: bool = True):
        self.batch_size, self.frequent, self.auto_reset = batch_size, frequent, auto_reset
        self.init, self.tic, self.last_count = False, 0.0, 0

    def __call__(self, param: Any) -> None:
        count = param.nbatch
        fresh = not self.init or self.last_count > count
        self.last_count = count
        if fresh:
            self.init, self.tic = True, time.perf_counter()
        elif count % self.frequent == 0:
            now = time.perf_counter()
            self._log(param, self.frequent * self.batch_size / max(now - self.tic, 1e-9))
            self.tic = time.perf_counter()

    def _log(self, param: Any, speed: float) -> None:
        if param.eval_metric is None:
            logging.info("Iter[%d] Batch [%d]\tSpeed: %.2f samples/sec", param.epoch, param.nbatch, speed)
            return
        values = param.eval_metric.get_name_value()
        if self.auto_reset:
            param.eval_metric.reset_local()
        first = param.nbatch - self.frequent if self.auto_reset else 0
        text = "Epoch[%d] Batch [%d-%d]\tSpeed: %.2f samples/sec" + "\t%s=%f" * len(values)
        logging.info(text, param.epoch, first, param.nbatch, speed, *(x for pair in values for x in pair))


class ProgressBar:
    """Log a bar of `length` characters, of which as much is filled as of the `total` batches is done."""

    def __init__(self, total: int, length: int = 80):
        self.bar_len, self.total = length, total

    def __call__(self, param: Any) -> None:
        share = param.nbatch / self.total
        filled = round(self.bar_len * share)
        logging.info("[%s] %s%%\r", "=" * filled + "-" * (self.bar_len - filled), math.ceil(100 * share))


class LogValidationMetricsCallback:
    """Log the metric of the validation at the end of an epoch."""

    def __call__(self, param: Any) -> None:
        for name, value in param.eval_metric.get_name_value() if param.eval_metric else ():
            logging.info("Epoch[%d] Validation-%s=%f", param.epoch, name, value)


__all__ = ["LogValidationMetricsCallback", "ProgressBar", "Speedometer", "do_checkpoint", "log_train_metric",
           "module_checkpoint"]  # fmt: skip

__getattr__, __dir__ = hooks(globals(), __all__)
