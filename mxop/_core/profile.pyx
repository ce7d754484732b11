"""What :mod:`mxop.profiler` records: a clock, a bounded list of events, and a table of times for each name.

Every place that can be timed tests one C integer, ``flags``, which is 0 while the profiler does not run.  All of this
happens with the GIL held, so one list serves all threads, and its events are in the order of their ends.
"""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdlib cimport free, realloc

from mxop._kernels.memory cimport set_watch

cdef extern from *:
    """
    #if defined(_WIN32)
    #include <windows.h>
    static long long mx_clock(void)
    {
        LARGE_INTEGER now, rate;
        QueryPerformanceCounter(&now);
        QueryPerformanceFrequency(&rate);
        return (now.QuadPart / rate.QuadPart) * 1000000000LL + (now.QuadPart % rate.QuadPart) * 1000000000LL / rate.QuadPart;
    }
    #else
    #include <time.h>
    static long long mx_clock(void)
    {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * 1000000000LL + now.tv_nsec;
    }
    #endif
    #if defined(_MSC_VER)
    #define MX_LOCAL __declspec(thread)
    #else
    #define MX_LOCAL __thread
    #endif
    static MX_LOCAL int mx_thread = 0, mx_named = 0;    /* this thread's number, from 1; whether its name is known */
    static MX_LOCAL const void *mx_step = NULL;         /* the name of the executor's step that this thread is in */
    """
    long long mx_clock() noexcept nogil
    int mx_thread
    int mx_named
    const void* mx_step

cdef enum:
    FIRST_ROOM = 1024

cdef struct Event:
    PyObject* category      # owned, as the next two
    PyObject* name
    PyObject* about         # what a viewer shows beside it, or NULL
    long long begun, ended  # nanoseconds; of a counter `ended` is its value
    int thread
    char phase              # as in Chrome's format: X a call, C a counter, b a task, i a marker

cdef Event* _events = NULL
cdef Py_ssize_t _n_events = 0, _room = 0, _dropped = 0
cdef Py_ssize_t _most = 1 << 20     # events that wait to be written; more are counted and dropped
cdef int _n_threads = 0
cdef dict _thread_names = {}    # number -> name
cdef dict _tables = {}          # category -> {name: Times}
cdef dict _inside = {}          # thread -> the operator in Python that it is in
cdef object _devices = None     # what times calls on GPUs
cdef str _CUSTOM = "Custom Operator"
cdef str _OPERATOR = "operator", _API = "MXOP_API", _STORAGE = "Device Storage", _CPU = "Memory: cpu/0"

flags = 0


cdef class Times:
    """What is known of all events of one name."""

    cdef readonly long long count, total, least, most

    cdef void add(self, long long value) noexcept:
        if self.count == 0 or value < self.least:
            self.least = value
        if self.count == 0 or value > self.most:
            self.most = value
        self.count += 1
        self.total += value


cdef Times _storage = Times()   # of the pool: it may change while objects go away, when nothing may be allocated


cdef long long clock() noexcept nogil:
    """Return nanoseconds, counted from some moment."""
    return mx_clock()


# ---- recording -----------------------------------------------------------------------------------------------------
cdef int thread_number() noexcept:
    global mx_thread, _n_threads
    if mx_thread == 0:
        _n_threads += 1
        mx_thread = _n_threads
    return mx_thread


cdef int learn_thread_name() except -1:
    global mx_named
    import threading
    _thread_names[thread_number()] = threading.current_thread().name
    mx_named = 1
    return 0


cdef void append(char phase, str category, str name, object about, long long begun, long long ended, int thread=0) noexcept:
    """Add an event.  Runs no Python and allocates no objects: the pool calls this while objects go away."""
    global _events, _n_events, _room, _dropped
    cdef Event* event
    cdef Event* larger
    cdef Py_ssize_t wanted
    if _n_events == _room:
        wanted = min(2 * _room if _room else FIRST_ROOM, _most)
        larger = <Event*>realloc(_events, wanted * sizeof(Event)) if wanted > _room else NULL
        if larger == NULL:
            _dropped += 1
            return
        _events, _room = larger, wanted
    event = &_events[_n_events]
    event.category, event.name = <PyObject*>category, <PyObject*>name
    event.about = NULL
    Py_INCREF(category)
    Py_INCREF(name)
    if about is not None:
        event.about = <PyObject*>about
        Py_INCREF(about)
    event.phase, event.begun, event.ended, event.thread = phase, begun, ended, thread or thread_number()
    _n_events += 1


cdef int count(str category, str name, long long value) except -1:
    """Add to the table of a category."""
    cdef dict table = _tables.get(category)
    if table is None:
        table = _tables.setdefault(category, {})
    found = table.get(name)
    if found is None:
        found = table.setdefault(name, Times())
    (<Times>found).add(value)
    return 0


cdef int note(str category, str name, object about, long long begun, long long ended) except -1:
    """Record a call that is over."""
    if not mx_named:
        learn_thread_name()
    if _inside and category is _OPERATOR:
        caller = _inside.get(thread_number())
        if caller is not None:
            category, name = _CUSTOM, f"{caller}::{name}"
    append(c"X", category, name, about, begun, ended)
    if flags & AGGREGATE:
        count(category, name, ended - begun)
    return 0


cdef long long begin(str name) except -1:
    """Return the clock when a call of an operator begins; GPUs mark the moment, too."""
    if _devices is not None:
        _devices.begin(name)
    return mx_clock()


cdef int abandon(str name) except -1:
    """Say that the call which began last is not recorded: it has raised."""
    if _devices is not None:
        _devices.end(name, -1)
    return 0


cdef int note_call(str name, long long begun, int place) except -1:
    """Record a call of an operator that ends now; what an executor's step consists of is recorded there.

    `place` is the number of the GPU on which its results lie, or -1.
    """
    cdef long long ended = mx_clock()
    if _devices is not None:
        _devices.end(name, -1 if mx_step == <const void*>name else place)
    if mx_step == <const void*>name:
        return 0
    return note(_OPERATOR, name, None, begun, ended)


cdef int note_step(str name, object about, long long begun, int place) except -1:
    """Record a step of an executor that ends now."""
    if _devices is not None:
        _devices.end(name, place)
    return note(_OPERATOR, name, about, begun, mx_clock())


cdef int note_api(str name, long long begun) except -1:
    """Record a call of the interface that ends now."""
    return note(_API, name, None, begun, mx_clock())


cdef const void* enter_step(const void* name) noexcept:
    """Say which step this thread is in now, by the name; return which one it was in."""
    global mx_step
    cdef const void* before = mx_step
    mx_step = name
    return before


cdef bint _body_is_next = False


cdef void enter_body() noexcept:
    """Say that the function which is called now is the one that is being timed; nothing may come between."""
    global _body_is_next
    _body_is_next = True


cdef bint is_body() noexcept:
    """Return whether this is the call that :func:`enter_body` spoke of."""
    global _body_is_next
    cdef bint found = _body_is_next
    _body_is_next = False
    return found


cdef void note_memory(Py_ssize_t in_use) noexcept:
    append(c"C", _STORAGE, _CPU, None, mx_clock(), in_use)
    if flags & AGGREGATE:
        _storage.add(in_use)


# ---- for Python ----------------------------------------------------------------------------------------------------
cdef class InPython:
    """Within it, this thread is in an operator that is written in Python: what that calls is recorded as its parts."""

    cdef str name
    cdef object before
    cdef long long begun

    def __init__(self, str name):
        self.name, self.begun = name, 0

    def __enter__(self):
        if flags & (IMPERATIVE | SYMBOLIC):
            self.begun, self.before = mx_clock(), _inside.get(thread_number())
            _inside[thread_number()] = self.name

    def __exit__(self, *exception):
        if self.begun:
            if self.before is None:
                _inside.pop(thread_number(), None)
            else:
                _inside[thread_number()] = self.before
            note(_CUSTOM, f"{self.name}::pure_python", None, self.begun, mx_clock())


def record_only(int wanted):
    """Set what is recorded from now on; return what was."""
    global flags
    cdef int before = flags
    flags = wanted | (flags & NANS)
    if wanted & MEMORY:
        set_watch(note_memory)
    else:
        set_watch(NULL)
    return before


def now():
    """Return the clock that events are timed with, in nanoseconds."""
    return mx_clock()


def clock_cost():
    """Return how many nanoseconds pass between two looks at the clock."""
    cdef long long least = 1000, begun
    cdef int k
    for k in range(200):
        begun = mx_clock()
        least = min(least, mx_clock() - begun)
    return least


def user_event(str phase, str category, str name, about, long long begun, long long ended):
    """Record what a program timed itself, if it is wanted.

    Parameters
    ----------
    phase : {'b', 'C', 'i'}
        A span that may overlap others, a counter (whose value is `ended`), a marker.
    """
    if not flags & USER:
        return
    if not mx_named:
        learn_thread_name()
    append(<char>ord(phase), category, name, about, begun, ended)
    if flags & AGGREGATE and phase != "i":  # an instant has no time to add up
        if phase == "C":
            count(f"{category},counter", name, ended)
        else:
            count(category, name, ended - begun)


def device_event(str place, str name, long long begun, long long ended, int number):
    """Record a call that a GPU has run, under a category of its own."""
    cdef int thread = -2 - number
    _thread_names[thread] = place
    append(c"X", f"operator on {place}", name, None, begun, ended, thread)
    if flags & AGGREGATE:
        count(f"operator on {place}", name, ended - begun)


def time_devices(timer):
    """Tell a :class:`mxop._gpu.timing.Timer` when calls begin and end; None: nobody."""
    global _devices
    _devices = timer


def call_event(str name, long long begun, bint of_interface=False):
    """Record a call that ends now, of an operator or of the interface, if such are wanted."""
    if flags & (API if of_interface else IMPERATIVE):
        note(_API if of_interface else _OPERATOR, name, None, begun, mx_clock())


def take():
    """Take out the events, as tuples ``(phase, category, name, about, begun, ended, thread)``.

    Returns
    -------
    events : list of tuple
    dropped : int
        How many there was no room for.
    """
    global _events, _n_events, _room, _dropped
    cdef Event* taken = _events
    cdef Event* event
    cdef Py_ssize_t n = _n_events, dropped = _dropped, k
    cdef list found = []
    _events, _n_events, _room, _dropped = NULL, 0, 0, 0  # first: making objects may let others go, which is recorded
    try:
        for k in range(n):
            event = &taken[k]
            found.append((chr(event.phase), <object>event.category, <object>event.name,
                          <object>event.about if event.about != NULL else None, event.begun, event.ended, event.thread))
    finally:
        for k in range(n):
            Py_XDECREF(taken[k].category)
            Py_XDECREF(taken[k].name)
            Py_XDECREF(taken[k].about)
        free(taken)
    return found, dropped


def most_events(Py_ssize_t n):
    """Bound the events that wait to be written; return what the bound was."""
    global _most
    cdef Py_ssize_t before = _most
    _most = n
    return before


def thread_names():
    """Return the names of the threads that recorded something, by number."""
    return dict(_thread_names)


def tables(bint reset=False):
    """Return ``{category: {name: (count, total, least, most)}}``, and forget them if asked to."""
    global _tables, _storage
    found = {category: {name: (t.count, t.total, t.least, t.most) for name, t in table.items()}
             for category, table in _tables.items()}
    if _storage.count:
        found[_STORAGE] = {_CPU: (_storage.count, _storage.total, _storage.least, _storage.most)}
    if reset:
        _tables, _storage = {}, Times()
    return found


def forget():
    """Drop all events and times; for the child of a fork."""
    take()
    tables(True)


IMPERATIVE_CALLS, SYMBOLIC_STEPS, API_CALLS, MEMORY_USE = IMPERATIVE, SYMBOLIC, API, MEMORY
USER_EVENTS, TIMES_BY_NAME = USER, AGGREGATE


# ---- results that are looked at -------------------------------------------------------------------------------------------
cdef object _looker = None


def look_at_results(looker):
    """Call ``looker(operator, parameters, inputs, outputs)`` after each call of an operator; None: no more.

    ``looker(name, None, None, None)`` says that what follows is called by a composite, ``looker(None, None, None, None)`` that
    it is over.
    """
    global _looker, flags
    _looker = looker
    flags = flags & ~NANS if looker is None else flags | NANS


cdef int look_into(str name) except -1:
    """Tell whoever looks that a composite begins, or ends (None)."""
    looker = _looker
    if looker is not None:
        looker(name, None, None, None)
    return 0


cdef int look(object op, object attrs, object inputs, object found) except -1:
    """Show the results of a call to whoever looks at them."""
    looker = _looker
    if looker is not None:
        looker(op, attrs, list(inputs), found if isinstance(found, list) else [found])
    return 0
