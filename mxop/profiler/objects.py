"""What programs time and count themselves: tasks, frames, events, counters, markers."""

from __future__ import annotations

import threading
from typing import Any

from .._core import profile
from ..support.errors import OpTypeError, OpValueError
from .settings import check_choice

_SCOPES = {"global": "g", "process": "p", "thread": "t", "task": "p", "marker": "p"}  # as viewers know them


def _of(what: str, domain: Any) -> Domain:
    if not isinstance(domain, Domain):
        raise OpTypeError(f"profiler.{what}: the domain must be a profiler.Domain, got {domain!r}")
    return domain


class _Named:
    """What has a name."""

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise OpTypeError(f"profiler.{type(self).__name__}: the name must be a string, got {name!r}")
        self.name = name

    def __str__(self) -> str:
        return self.name


class Domain(_Named):
    """A group of tasks, frames, counters and markers: their category in the trace, and a table of their own.

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> task = mx.profiler.Domain('training').new_task('load a batch')
    >>> task.start()
    >>> task.stop()
    """

    def new_task(self, name: str) -> Task:
        """Return a task of this domain."""
        return Task(self, name)

    def new_frame(self, name: str) -> Frame:
        """Return a frame of this domain."""
        return Frame(self, name)

    def new_counter(self, name: str, value: int | None = None) -> Counter:
        """Return a counter of this domain."""
        return Counter(self, name, value)

    def new_marker(self, name: str) -> Marker:
        """Return a marker of this domain."""
        return Marker(self, name)


class _Span(_Named):
    """What is started and stopped; recorded when it stops while the profiler runs."""

    _category: str

    def __init__(self, name: str):
        super().__init__(name)
        self._begun: int | None = None

    def start(self) -> None:
        """Begin to time; again, to begin anew."""
        self._begun = profile.now()

    def stop(self) -> None:
        """Record the time since :meth:`start`; without one, nothing happens."""
        begun, self._begun = self._begun, None
        if begun is not None:
            profile.user_event("b", self._category, self.name, None, begun, profile.now())


class Task(_Span):
    """A piece of work, which may overlap others.

    Parameters
    ----------
    domain : Domain
    name : str
    """

    _kind = ""

    def __init__(self, domain: Domain, name: str):
        super().__init__(name)
        self._category = _of(type(self).__name__, domain).name + self._kind


class Frame(Task):
    """One of many alike, such as a step of training.

    Parameters
    ----------
    domain : Domain
    name : str
    """

    _kind = ",frame"


class Event(_Span):
    """A stretch of time without a domain.

    Parameters
    ----------
    name : str
    """

    _category = "event"


class Counter(_Named):
    """A number that changes; the trace draws it over time.

    Parameters
    ----------
    domain : Domain
    name : str
    value : int, optional

    Examples
    --------
    >>> seen = mx.profiler.Domain('training').new_counter('examples', 0)
    >>> seen += 32
    """

    def __init__(self, domain: Domain, name: str, value: int | None = None):
        super().__init__(name)
        self._domain = _of("Counter", domain)
        self._value, self._lock = 0, threading.Lock()
        if value is not None:
            self.set_value(value)

    def set_value(self, value: int) -> None:
        """Set the number."""
        self._change(0, value)

    def increment(self, delta: int = 1) -> None:
        """Add to the number."""
        self._change(1, delta)

    def decrement(self, delta: int = 1) -> None:
        """Take from the number."""
        self._change(1, -self._whole(delta))

    def _change(self, times: int, delta: int) -> None:
        delta = self._whole(delta)
        with self._lock:
            value = times * self._value + delta
            profile.user_event("C", self._domain.name, self.name, None, profile.now(), value)
            self._value = value

    def _whole(self, value: Any) -> int:
        try:
            number = int(value)
        except (TypeError, ValueError, OverflowError) as problem:
            raise OpValueError(f"profiler.Counter {self.name!r}: {problem}") from None
        if not -(1 << 62) <= number < 1 << 62:
            raise OpValueError(f"profiler.Counter {self.name!r}: {number} does not fit into 63 bits")
        return number

    def __iadd__(self, delta: int) -> Counter:
        self.increment(delta)
        return self

    def __isub__(self, delta: int) -> Counter:
        self.decrement(delta)
        return self


class Marker(_Named):
    """A moment.

    Parameters
    ----------
    domain : Domain
    name : str
    """

    def __init__(self, domain: Domain, name: str):
        super().__init__(name)
        self.domain = _of("Marker", domain)

    def mark(self, scope: str = "process") -> None:
        """Record that the moment is now.

        Parameters
        ----------
        scope : {'global', 'process', 'thread', 'task', 'marker'}
            How far a viewer draws its line.
        """
        check_choice(scope, _SCOPES)
        now = profile.now()
        profile.user_event("i", f"{self.domain.name},instant_marker", self.name, {"s": _SCOPES[scope]}, now, now)
