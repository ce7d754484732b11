cdef enum:
    IMPERATIVE = 1      # calls of operators
    SYMBOLIC = 2        # steps of executors
    API = 4             # calls of the interface: an executor's forward, autograd's backward
    MEMORY = 8          # what the pool holds
    USER = 16           # what programs time themselves
    AGGREGATE = 32      # keep a table of times
    NANS = 64           # no event: results are looked at

cdef extern from *:
    bint unlikely(bint condition) noexcept nogil    # Cython's own macro

cdef int flags          # what is recorded now; 0 while the profiler does not run


cdef inline bint watched(int kinds) noexcept nogil:
    """Return whether any of some kinds of events is recorded; compilers know that it hardly ever is."""
    return unlikely((flags & kinds) != 0)


cdef long long clock() noexcept nogil
cdef long long begin(str name) except -1
cdef int abandon(str name) except -1
cdef int note_call(str name, long long begun, int place) except -1
cdef int look_into(str name) except -1
cdef int look(object op, object attrs, object inputs, object found) except -1
cdef int note_step(str name, object about, long long begun, int place) except -1
cdef int note_api(str name, long long begun) except -1
cdef const void* enter_step(const void* name) noexcept
cdef void enter_body() noexcept
cdef bint is_body() noexcept
