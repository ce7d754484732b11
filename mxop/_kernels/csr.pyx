"""Products of csr matrices with dense ones, whose rows threads share."""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t

from mxop._kernels.instruction_sets cimport BULK
from mxop._kernels.machine cimport MX_TASKS_A_THREAD
from mxop._kernels.team cimport mx_next_task, mx_shares, share_out, threads_for

ctypedef fused place:
    int32_t
    int64_t

ctypedef fused real:
    float
    double


cdef void some_rows(const place* starts, const place* columns, const real* values, const real* rhs, real* out,
                    Py_ssize_t begin, Py_ssize_t end, Py_ssize_t width) noexcept nogil:
    """Compute rows of the product."""
    cdef Py_ssize_t i, first
    for i in range(begin, end):
        first = starts[i]
        BULK.csr_row[real is double][place is int64_t](out + i * width, rhs, values + first, columns + first,
                                                         starts[i + 1] - first, width)


def dot(const place[::1] starts, const place[::1] columns, const real[::1] values, const real[:, ::1] rhs, real[:, ::1] out):
    """Multiply a csr matrix, whose parts were checked, by a dense one.

    Parameters
    ----------
    starts, columns : array of int32 or int64
        Where the values of each row begin, and the column of each.
    values : array of float32 or float64
    rhs, out : arrays of the type of the values
    """
    cdef Py_ssize_t rows = out.shape[0], width = out.shape[1], parts, t
    cdef int threads = threads_for(values.shape[0] * width * sizeof(real)), k
    cdef mx_shares shares
    if rows == 0 or width == 0:
        return
    if values.shape[0] == 0 or rhs.shape[0] == 0:
        out[:, :] = 0
        return
    parts = min(rows, threads * MX_TASKS_A_THREAD)
    with nogil:
        share_out(&shares, parts, threads, 0)
        for k in prange(threads, num_threads=threads, schedule="static", chunksize=1):
            t = mx_next_task(&shares, k)
            while t >= 0:
                some_rows(&starts[0], &columns[0], &values[0], &rhs[0, 0], &out[0, 0], t * rows // parts,
                          (t + 1) * rows // parts, width)
                t = mx_next_task(&shares, k)
