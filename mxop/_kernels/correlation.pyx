"""Products of two feature maps, one of which is displaced, summed over channels; and their gradients."""
from cython.parallel cimport prange

from mxop._kernels.machine cimport MX_THREAD_BYTES
from mxop._kernels.team cimport most_threads, threads_of

ctypedef fused real:
    float
    double

cdef struct Frame:
    Py_ssize_t limit, step, radius, stride, height, width, down, across


cdef int threads_over(Py_ssize_t tasks, Py_ssize_t elements) noexcept nogil:
    """Return how many threads share tasks that read so many elements together."""
    return threads_of(most_threads(), min(tasks, elements * <Py_ssize_t>sizeof(float) // MX_THREAD_BYTES))


cdef void multiply_planes(const real* one, const real* other, real* found, Py_ssize_t shift, Frame s) noexcept nogil:
    """Add the products of a plane and a displaced one up."""
    cdef Py_ssize_t i, j, at
    for i in range(s.down):
        at = (i * s.stride + s.limit) * s.width + s.limit
        if s.stride == 1:
            for j in range(s.across):
                found[i * s.across + j] += one[at + j] * other[at + shift + j]
        else:
            for j in range(s.across):
                found[i * s.across + j] += one[at + j * s.stride] * other[at + shift + j * s.stride]


cdef void spread_plane(const real* head, const real* other, real* total, Py_ssize_t read, Py_ssize_t put, Frame s) noexcept nogil:
    """Add products of a head and a plane up in another plane; what is read, or where it is put, is displaced."""
    cdef Py_ssize_t i, j, at
    for i in range(s.down):
        at = (i * s.stride + s.limit) * s.width + s.limit
        if s.stride == 1:
            for j in range(s.across):
                total[at + put + j] += head[i * s.across + j] * other[at + read + j]
        else:
            for j in range(s.across):
                total[at + put + j * s.stride] += head[i * s.across + j] * other[at + read + j * s.stride]


cdef inline Py_ssize_t shift_of(Py_ssize_t d, Frame s) noexcept nogil:
    """Return by how many elements displacement number `d` moves a place."""
    cdef Py_ssize_t side = 2 * s.radius + 1
    return (d // side - s.radius) * s.step * s.width + (d % side - s.radius) * s.step


def multiply(const real[:, :, :, ::1] one, const real[:, :, :, ::1] other, Py_ssize_t limit, Py_ssize_t step, Py_ssize_t stride,
             real[:, :, :, ::1] found):
    """Multiply maps at places from `limit` on, until so far from the end, with displaced ones, and sum over channels.

    Parameters
    ----------
    one, other : arrays of float32 or float64
        ``(batch, channels, height, width)``.
    limit, step : int
        Displacements are multiples of `step` up to `limit`, down and to the right.
    stride : int
        The distance of places.
    found : array of their type
        ``(batch, displacements, down, across)``, zeros.
    """
    cdef Py_ssize_t count = found.shape[1], k, c
    cdef Frame s = Frame(limit, step, limit // step, stride, one.shape[2], one.shape[3], found.shape[2], found.shape[3])
    if found.size == 0 or one.size == 0:
        return
    cdef int threads = threads_over(found.shape[0] * count, found.size * one.shape[1])
    for k in prange(found.shape[0] * count, nogil=True, num_threads=threads):
        for c in range(one.shape[1]):
            multiply_planes(&one[k // count, c, 0, 0], &other[k // count, c, 0, 0], &found[k // count, k % count, 0, 0],
                            shift_of(k % count, s), s)


def spread(const real[:, :, :, ::1] head, const real[:, :, :, ::1] other, Py_ssize_t limit, Py_ssize_t step, Py_ssize_t stride,
           bint displaced, real[:, :, :, ::1] total):
    """Find the gradient of :func:`multiply` with respect to one of the maps, the displaced one or not, from the `other` one."""
    cdef Py_ssize_t channels = total.shape[1], k, d, shift
    cdef Frame s = Frame(limit, step, limit // step, stride, total.shape[2], total.shape[3], head.shape[2], head.shape[3])
    if head.size == 0 or total.size == 0:
        return
    cdef int threads = threads_over(total.shape[0] * channels, head.size * channels)
    for k in prange(total.shape[0] * channels, nogil=True, num_threads=threads):
        for d in range(head.shape[1]):
            shift = shift_of(d, s)
            spread_plane(&head[k // channels, d, 0, 0], &other[k // channels, k % channels, 0, 0],
                         &total[k // channels, k % channels, 0, 0], 0 if displaced else shift, shift if displaced else 0, s)
