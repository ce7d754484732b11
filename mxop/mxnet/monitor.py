"""``mx.monitor``: numbers about what flows through executors, every so many batches."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from math import sqrt
from typing import Any

from .. import ndarray as nd
from ..ndarray import NDArray
from ..support.errors import OpTypeError, shown
from ..support.missing import hooks


def _size(array: NDArray) -> NDArray:
    """Return the root of the mean square."""
    return nd.norm(array) / sqrt(array.size)


class Monitor:
    """Give a statistic of outputs of operators, gradients and parameters, in every `interval`-th batch.

    Parameters
    ----------
    interval : int
    stat_func : callable, optional
        From an array to an NDArray or a list of them; by default the root of the mean square.
    pattern : str
        A regular expression: which names, from their beginning.
    sort : bool
        Sort by name.
    monitor_all : bool
        Inputs of operators, too.

    Examples
    --------
    >>> executor = mx.sym.exp(mx.sym.Variable("x"), name="e").bind(mx.cpu(), {"x": mx.nd.zeros((4,))})
    >>> monitor = mx.monitor.Monitor(1)
    >>> monitor.install(executor)
    >>> monitor.tic()
    >>> _ = executor.forward()
    >>> monitor.toc()
    [(1, 'e_output', '1.0\\t'), (1, 'x', '0.0\\t')]
    """

    def __init__(self, interval: int, stat_func: Callable[[NDArray], Any] | None = None, pattern: str = ".*",
                 sort: bool = False, monitor_all: bool = False):  # fmt: skip
        self.interval, self.stat_func, self.sort, self.monitor_all = interval, stat_func or _size, sort, monitor_all
        self.re_prog = re.compile(pattern)
        self.activated, self.step = False, 0
        self.queue: list[tuple[int, str, Any]] = []
        self.exes: list[Any] = []

    def install(self, exe: Any) -> None:
        """Watch an executor, within a batch from now on."""
        self.exes.append(exe)
        if self.activated:
            exe.set_monitor_callback(self.stat_helper, self.monitor_all)

    def stat_helper(self, name: str, array: NDArray) -> None:
        """Take the statistic of an array, where it is wanted."""
        if self.activated and self.re_prog.match(name):
            self.queue.append((self.step, name, self.stat_func(array)))

    def tic(self) -> None:
        """Begin a batch, before forward."""
        if self.step % self.interval == 0:
            self.queue, self.activated = [], True
            for exe in self.exes:  # which fuse nothing while they are watched: only now
                exe.set_monitor_callback(self.stat_helper, self.monitor_all)
        self.step += 1

    def toc(self) -> list[tuple[int, str, str]]:
        """End a batch; return number of the batch, name and statistic as text."""
        if not self.activated:
            return []
        for exe in self.exes:
            for arrays in (exe.arg_dict, exe.aux_dict):
                for name, array in arrays.items():
                    self.stat_helper(name, array)
        self.activated = False
        if self.interval > 1:
            for exe in self.exes:
                exe.set_monitor_callback(None)
        found = sorted(self.queue, key=lambda entry: entry[1]) if self.sort else self.queue
        self.queue = []
        return [(step, name, self._text(name, value)) for step, name, value in found]

    @staticmethod
    def _text(name: str, value: Any) -> str:
        values = [value] if isinstance(value, NDArray) else value
        if not isinstance(values, list) or not all(isinstance(v, NDArray) for v in values):
            raise OpTypeError(f"Monitor: stat_func gave {shown(value)} for {name!r}; expected an NDArray or a list of them")
        return "".join(f"{v.asscalar() if v.shape == (1,) else v.asnumpy()!s}\t" for v in values)

    def toc_print(self) -> None:
        """End a batch, and log what :meth:`toc` returns."""
        for step, name, text in self.toc():
            logging.info("Batch: %7d %-30s %s", step, name, text)


__all__ = ["Monitor"]

__getattr__, __dir__ = hooks(globals(), __all__)
