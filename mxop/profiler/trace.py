"""Events as a file for Chrome's trace viewer and Perfetto.

The file is complete after every write: what comes later takes the place of its last line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from .._core import profile
from ..support.errors import MXNetError

_HEAD = b'{"displayTimeUnit": "ms", "traceEvents": [\n'
_FOOT = b"\n]}\n"
_ORIGIN = profile.now()  # viewers show numbers since 1970 with too few digits


class Trace:
    """One file.

    Parameters
    ----------
    path : str
    """

    def __init__(self, path: str):
        self.path = path
        self.begun = False
        self._pid = os.getpid()
        self._known: set[int] = set()  # threads whose names are in the file
        self._ids = count(1)

    def write(self) -> None:
        """Move all events that were recorded into the file."""
        try:
            with open(self.path, "r+b" if self._goes_on() else "wb") as file:
                lines = list(self._lines(*profile.take()))
                if not self.begun:
                    file.write(_HEAD + ",\n".join(lines).encode() + _FOOT)
                elif lines:
                    file.seek(-len(_FOOT), os.SEEK_END)
                    file.write(b",\n" + ",\n".join(lines).encode() + _FOOT)
        except OSError as problem:
            raise MXNetError(f"profiler: cannot write {self.path!r}: {problem.strerror or problem}") from problem
        self.begun = True

    def _goes_on(self) -> bool:
        """Return whether the file that was begun is still there."""
        self.begun = self.begun and os.path.isfile(self.path) and os.path.getsize(self.path) > len(_HEAD + _FOOT)
        if not self.begun:
            self._known.clear()
        return self.begun

    def _lines(self, events: list[tuple], dropped: int) -> Iterator[str]:
        if not self.begun:
            yield json.dumps(self._named("process_name", 0, f"mxop {self._pid}"))
        seen = {event[6] for event in events}
        for thread, name in profile.thread_names().items():
            if thread not in self._known and (thread > 0 or thread in seen):  # below 0: a GPU
                self._known.add(thread)
                yield json.dumps(self._named("thread_name", thread, name))
        yield from self._event_lines(events)
        if dropped:
            text = f"{dropped} events were dropped: too many came between two dumps"
            at = (events[-1][5] - _ORIGIN) / 1000 if events else 0
            yield json.dumps({"name": text, "cat": "profiler", "ph": "i", "s": "g", "ts": at, "pid": self._pid, "tid": 0})

    def _named(self, what: str, thread: int, name: str) -> dict[str, Any]:
        return {"name": what, "ph": "M", "pid": self._pid, "tid": thread, "args": {"name": name}}

    def _event_lines(self, events: Iterable[tuple]) -> Iterator[str]:
        begins: dict[tuple, str] = {}  # what all events of a name have in common, as text
        for phase, category, name, about, begun, ended, thread in events:
            key = phase, category, name, id(about)
            begin = begins.get(key)
            if begin is None:
                begin = begins[key] = self._begin(phase, category, name, about)
            at = f'{begin}, "tid": {thread}, "ts": {max(begun - _ORIGIN, 0) / 1000:.3f}'
            if phase == "X":
                yield f'{at}, "dur": {(ended - begun) / 1000:.3f}}}'
            elif phase == "C":
                yield f'{at}, "args": {{{json.dumps(name)}: {ended}}}}}'
            elif phase == "b":  # spans of a program may overlap on one thread: begin and end have a number
                number = next(self._ids)
                yield f'{at}, "id": {number}}}'
                end = self._begin("e", category, name, None)
                yield f'{end}, "tid": {thread}, "ts": {max(ended - _ORIGIN, 0) / 1000:.3f}, "id": {number}}}'
            else:
                yield at + "}"

    def _begin(self, phase: str, category: str, name: str, about: dict[str, Any] | None) -> str:
        fields: dict[str, Any] = {"name": name, "cat": category, "ph": phase, "pid": self._pid}
        if phase == "i":
            fields |= about or {}
        elif about is not None:
            fields["args"] = about
        return json.dumps(fields)[:-1]
