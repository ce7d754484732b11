"""``mx.profiler``, MXNet's interface: what ran when, as a trace for a viewer, and as a table of times for each operator.

While it does not run, a call pays for one test of a C integer (:mod:`mxop._core.profile`).

Examples
--------
>>> import os, tempfile
>>> import mxop as mx
>>> path = os.path.join(tempfile.mkdtemp(), 'trace.json')
>>> mx.profiler.set_config(filename=path, aggregate_stats=True)
>>> mx.profiler.set_state('run')
>>> y = mx.nd.sin(mx.nd.ones((2, 3)))
>>> mx.profiler.set_state('stop')
>>> table = mx.profiler.dumps(reset=True)
>>> [line.split()[:2] for line in table.splitlines() if line.startswith('sin')]
[['sin', '1']]
>>> mx.profiler.dump()  # then open the file in chrome://tracing or ui.perfetto.dev
"""

from .control import (
    dump,
    dump_profile,
    dumps,
    pause,
    profiler_set_config,
    profiler_set_state,
    resume,
    set_config,
    set_kvstore_handle,
    set_state,
)
from .objects import Counter, Domain, Event, Frame, Marker, Task

__all__ = [
    "Counter", "Domain", "Event", "Frame", "Marker", "Task", "dump", "dump_profile", "dumps", "pause",
    "profiler_set_config", "profiler_set_state", "resume", "set_config", "set_kvstore_handle", "set_state",
]  # fmt: skip
