cdef extern from "mxop_team.h" nogil:
    ctypedef struct mx_shares:
        pass
    Py_ssize_t mx_next_task(mx_shares* shares, int thread)

cdef Py_ssize_t PARALLEL_BYTES

cdef int threads_for(Py_ssize_t nbytes) noexcept nogil
cdef int threads_of(int most, Py_ssize_t parts) noexcept nogil
cdef bint is_small(Py_ssize_t nbytes) noexcept nogil
cdef int most_threads() noexcept nogil
cdef void share_out(mx_shares* shares, Py_ssize_t tasks, int threads, Py_ssize_t nbytes) noexcept nogil

# One task of a kernel, on the data of one run.
ctypedef void (*task_function)(void* kernel, void* run, Py_ssize_t task, int thread) noexcept nogil
ctypedef void (*part_function)(void* kernel, void* run, Py_ssize_t begin, Py_ssize_t end, int thread) noexcept nogil
cdef void share_tasks(task_function do, void* kernel, void* run, Py_ssize_t tasks, int threads, Py_ssize_t nbytes) noexcept nogil
cdef void share_parts(part_function do, void* kernel, void* run, Py_ssize_t n, int threads, Py_ssize_t nbytes) noexcept nogil
cdef void run_tasks(task_function do, void* kernel, void* run, Py_ssize_t tasks, int threads, Py_ssize_t nbytes) noexcept


cdef inline Py_ssize_t parts_of(Py_ssize_t length, Py_ssize_t part) noexcept nogil:
    """Return how many parts of a length there are at least."""
    return (length + part - 1) // part
