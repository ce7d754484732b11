"""The threads that work together: how many, how much work is worth them, that each has a core of its own, and where they begin."""
import os

from cython.parallel cimport prange

from mxop._kernels.machine cimport MX_GIL_BYTES, MX_PARALLEL_BYTES, MX_SMALL_TIMES, MX_TASKS_A_THREAD

from mxop.support.errors import OpValueError
from mxop.support.limits import setting

cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    static int mx_max_threads(void) { return omp_get_max_threads(); }
    static int mx_openmp(void) { return 1; }
    #else
    static int mx_max_threads(void) { return 1; }
    static int mx_openmp(void) { return 0; }
    #endif

    /* A thread that wakes up while every core was busy a moment ago may be put on the core of the thread that wakes it, and
       Linux leaves it there as long as both are busy: the two then take turns of a millisecond.  So those who help a thread
       stay off its core: they are told when it has moved, and when there are more of them. */
    #if defined(_OPENMP) && defined(__linux__)
    #include <sched.h>
    static __thread int mx_core = -1;    /* where a thread was when it told */
    static __thread int mx_told = 1;     /* how many of its team know, itself among them: OpenMP ends those that are too many */
    static __thread long mx_tellings;
    static __thread cpu_set_t mx_given, mx_left; /* the cores that a helper has of others, and what it made of them */

    static void mx_stay_off(int core)
    {
        cpu_set_t now;
        if (sched_getaffinity(0, sizeof now, &now)) return;
        if (!CPU_EQUAL(&now, &mx_left)) mx_given = now; /* at first, and where somebody else has changed them */
        mx_left = mx_given;
        CPU_CLR(core, &mx_left);
        if (CPU_COUNT(&mx_left)) sched_setaffinity(0, sizeof mx_left, &mx_left);
    }

    static void mx_tell(int n, int core)
    {
        #pragma omp parallel num_threads(n)
        if (omp_get_thread_num()) mx_stay_off(core);
        mx_core = core;
        mx_told = n;
        mx_tellings++;
    }

    static void mx_apart(int n)
    {
        int core = sched_getcpu();
        if (core == mx_core && n <= mx_told) mx_told = n;
        else if (core >= 0 && core < CPU_SETSIZE && !omp_in_parallel() && omp_get_proc_bind() == omp_proc_bind_false)
            mx_tell(n, core);
    }
    static long mx_times_told(void) { return mx_tellings; }
    #else
    static void mx_apart(int n) { (void)n; }
    static long mx_times_told(void) { return -1; }
    #endif
    """
    int mx_max_threads() nogil
    int mx_openmp() nogil
    void mx_apart(int n) nogil
    long mx_times_told() nogil

cdef extern from "mxop_team.h" nogil:
    void mx_share_out(mx_shares* shares, Py_ssize_t tasks, int threads, bint back, bint own)

cdef int _threads = 1
cdef bint _backwards = False
PARALLEL_BYTES = MX_PARALLEL_BYTES


def set_num_threads(n):
    """Set the number of threads of every kernel; it is the only such setting."""
    global _threads
    if not 0 < n < 1 << 20:
        raise OpValueError(f"the number of threads must be at least 1 (and one that a machine can have), got {n}")
    _threads = n if mx_openmp() else 1


def get_num_threads():
    """Return the number of threads that kernels use."""
    return _threads


def has_openmp():
    """Return whether the package was built with OpenMP."""
    return bool(mx_openmp())


def times_told():
    """Return how often this thread kept its helpers off its own core; -1 where the system does not allow it."""
    return mx_times_told()


cdef int most_threads() noexcept nogil:
    """Return how many threads kernels may use."""
    return _threads


cdef int threads_for(Py_ssize_t nbytes) noexcept nogil:
    """Return how many threads work of this size is worth."""
    if nbytes < PARALLEL_BYTES:
        return 1
    return threads_of(_threads, nbytes // (PARALLEL_BYTES // 2))


cdef int threads_of(int most, Py_ssize_t parts) noexcept nogil:
    """Return how many threads work of so many parts is worth; they are on cores of their own."""
    cdef int n = <int>min(<Py_ssize_t>most, parts)
    if n <= 1:
        return 1
    mx_apart(n)
    return n


cdef bint is_small(Py_ssize_t nbytes) noexcept nogil:
    """Return whether work on so many bytes is best cut into one piece for each thread."""
    return nbytes < MX_SMALL_TIMES * PARALLEL_BYTES


cdef void share_out(mx_shares* shares, Py_ssize_t tasks, int threads, Py_ssize_t nbytes) noexcept nogil:
    """Deal out tasks on so many bytes, 0 where nobody knows; :c:func:`mx_next_task` then gives a thread its next one.

    Each has neighbours, the same for arrays of one size: its core's cache may hold what it read or wrote the last time.  What is more
    than caches hold begins where the work before ended, at what is still there.
    """
    global _backwards
    cdef bint back = False, own = 0 < nbytes < 2 * MX_SMALL_TIMES * PARALLEL_BYTES     # a line of another core takes longer
    if tasks > 1 and not is_small(nbytes):
        back = _backwards = not _backwards
    mx_share_out(shares, tasks, threads, back, own)


cdef void run_tasks(task_function do, void* kernel, void* run, Py_ssize_t tasks, int threads, Py_ssize_t nbytes) noexcept:
    """Do as :func:`share_tasks`; other threads of Python run meanwhile, unless that takes as long as to wake them."""
    if threads == 1 and 0 < nbytes < MX_GIL_BYTES:
        share_tasks(do, kernel, run, tasks, 1, nbytes)
        return
    with nogil:
        share_tasks(do, kernel, run, tasks, threads, nbytes)


cdef void share_tasks(task_function do, void* kernel, void* run, Py_ssize_t tasks, int threads, Py_ssize_t nbytes) noexcept nogil:
    """Call ``do(kernel, run, task, thread)`` for each task, on so many threads; see :func:`share_out`."""
    cdef mx_shares shares
    cdef int k
    if tasks == 1:
        do(kernel, run, 0, 0)
        return
    share_out(&shares, tasks, threads, nbytes)
    if threads == 1:
        run_share(do, kernel, run, &shares, 0)
        return
    for k in prange(threads, schedule="static", chunksize=1, num_threads=threads):
        run_share(do, kernel, run, &shares, k)


cdef struct Parts:
    part_function do
    void* kernel
    void* run
    Py_ssize_t n, parts


cdef void run_part(Parts* p, void* unused, Py_ssize_t t, int thread) noexcept nogil:
    p.do(p.kernel, p.run, t * p.n // p.parts, (t + 1) * p.n // p.parts, thread)


cdef void share_parts(part_function do, void* kernel, void* run, Py_ssize_t n, int threads, Py_ssize_t nbytes) noexcept nogil:
    """Call ``do(kernel, run, begin, end, thread)`` for some parts of `n` things, for all of them where there is one thread."""
    cdef Parts p
    p.do, p.kernel, p.run, p.n = do, kernel, run, n
    p.parts = min(n, <Py_ssize_t>threads * MX_TASKS_A_THREAD) if threads > 1 else 1
    share_tasks(<task_function>run_part, &p, NULL, p.parts, threads, nbytes)


cdef void run_share(task_function do, void* kernel, void* run, mx_shares* shares, int thread) noexcept nogil:
    """Do the tasks of one thread."""
    cdef Py_ssize_t t = mx_next_task(shares, thread)
    while t >= 0:
        do(kernel, run, t, thread)
        t = mx_next_task(shares, thread)


def _after_fork():
    # The threads of the parent do not exist in the child, and the OpenMP runtime cannot start new ones there.
    global _threads
    _threads = 1


def _start():
    threads = setting("MXOP_NUM_THREADS", max(mx_max_threads(), 1), "positive number")
    if not 0 < threads < 1 << 20:
        raise OpValueError(f"MXOP_NUM_THREADS='{threads}' is not a positive number")
    set_num_threads(threads)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)


_start()
