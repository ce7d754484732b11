cdef enum:
    IMPERATIVE = 1      # calls of operators
    SYMBOLIC = 2        # steps of executors
    API = 4             # calls of the interface: an executor's forward, autograd's backward
    MEMORY = 8          # what the pool holds
    USER = 16           # what programs time themselves
    AGGREGATE = 32      # keep a table of times

cdef int flags          # what is recorded now; 0 while the profiler does not run

cdef long long clock() noexcept nogil
cdef int note_call(str name, long long begun) except -1
cdef int note_step(str name, object about, long long begun) except -1
cdef int note_api(str name, long long begun) except -1
cdef const void* enter_step(const void* name) noexcept
