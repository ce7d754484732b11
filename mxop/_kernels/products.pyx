"""Products of all other elements of a row, and of their derivatives of any order.

A row ``x`` with tangents ``g1 ... gm`` stands for the factors ``x[k] + e1 g1[k] + ... + em gm[k]`` in an algebra whose
``e`` have square 0.  An element of it has one coefficient for each subset of the ``e``.  The wanted number is the
coefficient of the full subset in the product of all factors but one: products from the left times products from the
right, so nothing is divided and zeros are like other numbers.
"""

from cython.parallel cimport prange
from libc.stdlib cimport free, malloc

from mxop._kernels.machine cimport MX_ABREAST
from mxop._kernels.memory cimport fill_scratch

cdef enum:
    MOST = 12    # tangents; that is the order of the derivative


ctypedef fused real:
    float
    double


cdef inline void times(double* state, const real* const* inputs, int m, Py_ssize_t at) noexcept nogil:
    """Multiply the element `state` by the factor at position `at`; large subsets first, as they need the small ones."""
    cdef int s, t
    cdef double value
    for s in range((1 << m) - 1, -1, -1):
        value = state[s] * inputs[0][at]
        for t in range(m):
            if s >> t & 1:
                value += state[s ^ (1 << t)] * inputs[t + 1][at]
        state[s] = value


cdef void row(const real* const* inputs, int m, real* out, Py_ssize_t begin, Py_ssize_t n, double* memory) noexcept nogil:
    cdef int subsets = 1 << m, s
    cdef double* state = memory
    cdef double* after = memory + subsets
    cdef double total
    cdef Py_ssize_t k
    for s in range(subsets):
        state[s] = 1 if s == 0 else 0
    for k in range(n - 1, -1, -1):
        for s in range(subsets):
            after[k * subsets + s] = state[s]
        times(state, inputs, m, begin + k)
    for s in range(subsets):
        state[s] = 1 if s == 0 else 0
    for k in range(n):
        total = 0
        for s in range(subsets):
            total += state[s] * after[k * subsets + subsets - 1 - s]
        out[begin + k] = <real>total
        times(state, inputs, m, begin + k)


cdef void abreast(const real* x, real* out, Py_ssize_t n, double* after) noexcept nogil:
    """Go through some rows without tangents."""
    cdef double state[MX_ABREAST]
    cdef Py_ssize_t k
    cdef int i
    for i in range(MX_ABREAST):
        state[i] = 1
    for k in range(n - 1, -1, -1):
        for i in range(MX_ABREAST):
            after[k * MX_ABREAST + i] = state[i]
            state[i] *= x[i * n + k]
    for i in range(MX_ABREAST):
        state[i] = 1
    for k in range(n):
        for i in range(MX_ABREAST):
            out[i * n + k] = <real>(state[i] * after[k * MX_ABREAST + i])
            state[i] *= x[i * n + k]


cdef int rows(const real* const* inputs, int m, real* out, Py_ssize_t count, Py_ssize_t n, int threads) except -1:
    cdef Py_ssize_t together = 1 if m else MX_ABREAST, tasks = (count + together - 1) // together, t, i, failed = 0
    cdef size_t room = (<size_t>n + 1) * (together << m)
    cdef double* memory
    for t in prange(tasks, nogil=True, num_threads=threads, schedule="static"):
        memory = <double*>malloc(room * sizeof(double))
        if memory != NULL:
            fill_scratch(memory, room * sizeof(double))
        if memory == NULL:
            failed += 1
        elif m == 0 and (t + 1) * together <= count:
            abreast(inputs[0] + t * together * n, out + t * together * n, n, memory)
        else:
            for i in range(t * together, min((t + 1) * together, count)):
                row(inputs, m, out, i * n, n, memory)
        free(memory)
    if failed:
        raise MemoryError(f"no memory for the gradient of a product of {n} elements")
    return 0


cdef int run(list arrays, real[:, ::1] out, int threads) except -1:
    cdef const real* inputs[MOST + 1]
    cdef const real[:, ::1] view
    cdef int i
    for i in range(len(arrays)):
        view = arrays[i]
        if view.shape[0] != out.shape[0] or view.shape[1] != out.shape[1]:
            raise ValueError("the inputs of a product have one shape")
        inputs[i] = &view[0, 0]
    return rows[real](inputs, len(arrays) - 1, &out[0, 0], out.shape[0], out.shape[1], threads)


def product_of_others(list arrays, out, int threads=1):
    """Write the products of all other elements of each row, differentiated along the tangents ``arrays[1:]``.

    Parameters
    ----------
    arrays : list of buffer
        C-contiguous matrices of one type, float32 or float64.
    out : buffer
        The result, of the same shape and type.
    threads : int
    """
    if not 1 <= len(arrays) <= MOST + 1:
        raise ValueError(f"products are differentiated up to order {MOST}")
    if out.size == 0:
        return
    if out.itemsize == 4:
        run[float](arrays, out, threads)
    else:
        run[double](arrays, out, threads)
