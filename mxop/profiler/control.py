"""Starting, stopping and dumping."""

from __future__ import annotations

import atexit
import os
import threading
import warnings
from typing import Any

from .._core import profile
from ..support.errors import MXNetError, OpValueError, ends_at_caller
from . import table
from .settings import Settings, check_choice, check_process, parsed
from .trace import Trace


class _Profiler:
    """The state of the only profiler there is."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.running = self.paused = False
        self.trace: Trace | None = None  # what a dump goes into; None when nothing ran since the last one
        self.lock = threading.RLock()
        self.timer: Any = None  # of GPUs
        self._stopped: threading.Event | None = None  # ends the thread that dumps regularly
        self._registered = False

    def configure(self, settings: Settings) -> None:
        with self.lock:
            self._dump_no_more()
            if self.trace is not None and self.trace.begun:
                self.collect()
                self.trace.write()
                self.trace = Trace(settings.filename)
            elif self.trace is not None:
                self.trace.path = settings.filename
            self.settings = settings
            self._apply()

    def run(self) -> None:
        with self.lock:
            self._register()
            self.trace = self.trace or Trace(self.settings.filename)
            self.running, self.paused = True, False
            self._apply()

    def stop(self) -> None:
        with self.lock:
            self.collect()
            self.running = False
            self._apply()

    def pause(self, paused: bool) -> None:
        with self.lock:
            self.collect()
            self.paused = paused
            self._apply()

    def dump(self, finished: bool) -> None:
        with self.lock:
            if self.trace is None:
                raise MXNetError("Profiler hasn't been run. Config and start profiler first: "
                                 "profiler.set_config(filename=...), profiler.set_state('run')")  # fmt: skip
            if finished:
                self.stop()
            self.collect()
            self.trace.write()
            if finished:
                self.trace = None

    def collect(self) -> None:
        """Take the times of GPUs, which may have to finish first."""
        if self.timer is not None:
            self.timer.collect()

    def _apply(self) -> None:
        """Record what is wanted now, and dump regularly if that is."""
        watching = self.running and not self.paused
        profile.record_only(self.settings.flags if watching else 0)
        if watching and self.timer is None:
            from .._gpu.timing import Timer

            self.timer = Timer()
        profile.time_devices(self.timer if watching else None)
        if not self.running or not self.settings.continuous_dump:
            self._dump_no_more()
        elif self._stopped is None:
            self._stopped = threading.Event()
            arguments = (self._stopped, self.settings.dump_period)
            threading.Thread(target=self._dump_regularly, args=arguments, name="mxop profiler", daemon=True).start()

    def _dump_regularly(self, stopped: threading.Event, period: float) -> None:
        while not stopped.wait(min(period, threading.TIMEOUT_MAX)):
            with self.lock:
                if stopped.is_set() or self.trace is None:
                    return
                try:
                    self.collect()
                    self.trace.write()
                except MXNetError as problem:  # a dump says it again
                    warnings.warn(str(problem), RuntimeWarning, stacklevel=1)
                    return

    def _dump_no_more(self) -> None:
        if self._stopped is not None:
            self._stopped.set()
            self._stopped = None

    def _register(self) -> None:
        if not self._registered:
            self._registered = True
            atexit.register(self._at_exit)
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=self._in_child)

    def _at_exit(self) -> None:
        if self.trace is not None:
            try:
                self.dump(True)
            except MXNetError as problem:
                warnings.warn(str(problem), RuntimeWarning, stacklevel=1)

    def _in_child(self) -> None:
        """Leave the file to the process that was forked."""
        profile.record_only(0)
        profile.time_devices(None)
        profile.forget()
        registered = self._registered
        self.__init__()  # type: ignore[misc]
        self._registered = registered


_profiler = _Profiler()


@ends_at_caller
def set_config(**kwargs: Any) -> None:
    """Say what the profiler records, and where to; what is not given has its default again.

    Parameters
    ----------
    filename : str, default 'profile.json'
        The trace.
    profile_all : bool, default False
        Record everything, whatever the next four say.
    profile_symbolic, profile_imperative : bool, default True
        Steps of executors; calls of operators, and autograd's backward.
    profile_memory : bool, default True
        What the memory pool holds, whenever that changes.
    profile_api : bool, default True
        Whole calls: binding, an executor's forward and backward, autograd's backward.
    aggregate_stats : bool, default False
        Keep the table that :func:`dumps` returns.
    continuous_dump : bool, default True
        Write what was recorded every `dump_period` seconds.
    dump_period : float, default 1
    profile_process : {'worker'}

    Examples
    --------
    >>> mx.profiler.set_config(profile_al=True)
    Traceback (most recent call last):
    mxop.errors.OpTypeError: Cannot find argument 'profile_al', Possible Arguments: profile_all,...
    """
    _profiler.configure(parsed(kwargs))


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """Start (``'run'``) or stop (``'stop'``) the profiler.

    Parameters
    ----------
    state : {'run', 'stop'}
    profile_process : {'worker'}
    """
    check_choice(state, ("run", "stop"))
    check_process(profile_process)
    if state == "run":
        _profiler.run()
    else:
        _profiler.stop()


def pause(profile_process: str = "worker") -> None:
    """Record nothing until :func:`resume`."""
    check_process(profile_process)
    _profiler.pause(True)


def resume(profile_process: str = "worker") -> None:
    """Go on after :func:`pause`."""
    check_process(profile_process)
    _profiler.pause(False)


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Write the trace; it opens in Chrome (``chrome://tracing``) and in Perfetto (ui.perfetto.dev).

    Parameters
    ----------
    finished : bool, default True
        Stop the profiler; what is recorded later begins the file anew. Otherwise go on, and add to the file.
    profile_process : {'worker'}
    """
    check_process(profile_process)
    _profiler.dump(finished is True)


def dumps(reset: bool = False, format: str = "table", sort_by: str = "total", ascending: bool = False) -> str:
    """Return how often what ran and how long it took; empty without ``set_config(aggregate_stats=True)``.

    Parameters
    ----------
    reset : bool, default False
        Begin the table anew.
    format : {'table', 'json'}
    sort_by : {'total', 'avg', 'min', 'max', 'count'}
    ascending : bool, default False

    Returns
    -------
    str
        An operator that calls others counts their time, too.
    """
    _check_value("format", format, ("table", "json"))
    _check_value("sort_by", sort_by, tuple(table.SORT_KEYS))
    _check_value("ascending", ascending, (False, True))
    _check_value("reset", reset, (False, True))
    _profiler.collect()
    tables = profile.tables(bool(reset))
    if not tables and not _profiler.settings.aggregate_stats:
        return ""
    return (table.as_text if format == "table" else table.as_json)(tables, sort_by, ascending)


def _check_value(name: str, value: Any, choices: tuple) -> None:
    if value not in choices:
        words = ", ".join(map(repr, choices))
        raise OpValueError(f"Invalid value provided for {name}: {value}. Support: {words}")


def set_kvstore_handle(handle: Any) -> None:
    """Accept what MXNet's function takes; there are no kvstore servers to profile."""


# ---- MXNet's older names --------------------------------------------------------------------------------------------
def profiler_set_config(mode: str = "symbolic", filename: str = "profile.json") -> None:
    """Call :func:`set_config` with ``profile_<mode>=True`` (deprecated)."""
    _deprecated("profiler_set_config", "set_config")
    set_config(**{f"profile_{mode}": True, "filename": filename})


def profiler_set_state(state: str = "stop") -> None:
    """Call :func:`set_state` (deprecated)."""
    _deprecated("profiler_set_state", "set_state")
    set_state(state)


def dump_profile() -> None:
    """Call :func:`dump` (deprecated)."""
    _deprecated("dump_profile", "dump")
    dump(True)


def _deprecated(old: str, new: str) -> None:
    warnings.warn(f"profiler.{old}() is deprecated. Please use profiler.{new}() instead", UserWarning, stacklevel=3)
