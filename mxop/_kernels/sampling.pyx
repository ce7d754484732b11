"""Images at places between their pixels, by linear interpolation: values, sums at the same places, and slopes.

Places are taken in blocks: the four pixels around each, and their weights, serve all channels.  Each sum is added up in one order
whatever the number of threads.
"""
from cython.parallel cimport prange, threadid
from libc.string cimport memset

import numpy as np

from mxop._kernels.instruction_sets cimport BULK, mx_frame
from mxop._kernels.machine cimport MX_TASKS_A_THREAD, MX_THREAD_BYTES
from mxop._kernels.team cimport most_threads, threads_of

cdef extern from "mxop_blend.h" nogil:
    enum:
        BLOCK "MX_AROUND"  # places
    Py_ssize_t mx_take_fours(const float* image, Py_ssize_t below, const Py_ssize_t* places, const float* weights, float* found,
                             Py_ssize_t n)
    Py_ssize_t mx_slope_fours(const float* head, const float* image, Py_ssize_t below, const Py_ssize_t* places,
                              const float* across, const float* down, float* x, float* y, Py_ssize_t n)

ctypedef fused real:
    float
    double

cdef int threads_over(Py_ssize_t tasks, Py_ssize_t elements) noexcept nogil:
    """Return how many threads share tasks that read so many elements together."""
    return threads_of(most_threads(), min(tasks, elements * 4 * <Py_ssize_t>sizeof(float) // MX_THREAD_BYTES))


cdef Py_ssize_t neighbours(Py_ssize_t tasks, int threads) noexcept nogil:
    """Return how many blocks in a row one thread takes: they read the same parts of an image."""
    return max(1, tasks // (threads * MX_TASKS_A_THREAD))


cdef inline void look(const real* grid, Py_ssize_t n, Py_ssize_t count, bint down, bint across, mx_frame s,
                      Py_ssize_t* places, real* weights) noexcept nogil:
    """Find the pixels around `n` of `count` places, and their weights."""
    BULK.look_around[real is double](grid, grid + count, n, &s, down, across, places, weights)


cdef inline real weighed(real weight, real value) noexcept nogil:
    """Return the product: 0 where the weight is 0, whatever the value."""
    return weight * value if weight != 0 else 0


cdef inline real blended(const real* pixel, Py_ssize_t right, Py_ssize_t below, const real* weights) noexcept nogil:
    return (weighed(weights[0], pixel[0]) + weighed(weights[BLOCK], pixel[right])
            + weighed(weights[2 * BLOCK], pixel[below]) + weighed(weights[3 * BLOCK], pixel[below + right]))


cdef inline void take_block(const real* image, const Py_ssize_t* places, const real* weights, real* found, Py_ssize_t n,
                            mx_frame s) noexcept nogil:
    cdef Py_ssize_t j, done = 0, right = s.width > 1, below = s.width if s.height > 1 else 0
    if real is float and right:
        done = mx_take_fours(image, below, places, weights, found, n)
    for j in range(done, n):
        found[j] = blended(image + places[j], right, below, weights + j)


cdef inline void put_block(const real* head, const Py_ssize_t* places, const real* weights, real* total, Py_ssize_t n,
                           mx_frame s) noexcept nogil:
    cdef Py_ssize_t j, right = s.width > 1, below = s.width if s.height > 1 else 0
    cdef real* pixel
    for j in range(n):
        pixel = total + places[j]
        pixel[0] += weighed(weights[j], head[j])
        pixel[right] += weighed(weights[BLOCK + j], head[j])
        pixel[below] += weighed(weights[2 * BLOCK + j], head[j])
        pixel[below + right] += weighed(weights[3 * BLOCK + j], head[j])


cdef inline void slopes_block(const real* head, const real* image, const Py_ssize_t* places, const real* across, const real* down,
                              real* found, Py_ssize_t n, Py_ssize_t count, mx_frame s) noexcept nogil:
    cdef Py_ssize_t j, done = 0, right = s.width > 1, below = s.width if s.height > 1 else 0
    if real is float and right:
        done = mx_slope_fours(head, image, below, places, across, down, found, found + count, n)
    for j in range(done, n):
        found[j] += weighed(head[j], blended(image + places[j], right, below, across + j))
        found[count + j] += weighed(head[j], blended(image + places[j], right, below, down + j))


def sample(const real[:, :, :, ::1] data, const real[:, :, ::1] grid, bint down, bint across, bint unit, bint clamp,
           real[:, :, ::1] found):
    """Interpolate images; pixels of weight 0 do not count, whatever they are.

    Parameters
    ----------
    data : array of float32 or float64
        ``(batch, channels, height, width)``.
    grid : array of the data's type
        ``(batch, 2, places)``: x and y.
    down, across : bool
        Whether derivatives with respect to y, and to x, take the place of the values.
    unit : bool
        Whether -1 and 1 are the first and the last pixel; otherwise pixels are numbered from 0.
    clamp : bool
        Whether all is 0 more than the last pixel's size after the image, and before it; otherwise pixels around the image are 0.
    found : array of the data's type
        ``(batch, channels, places)``.
    """
    cdef Py_ssize_t channels = data.shape[1], count = grid.shape[2], blocks = (count + BLOCK - 1) // BLOCK, k, b, c, start, n
    if found.size == 0 or data.size == 0:
        return
    cdef mx_frame s = mx_frame(data.shape[2], data.shape[3], unit, clamp)
    cdef int threads = threads_over(data.shape[0] * blocks, found.size)
    cdef Py_ssize_t[:, ::1] places = np.empty((threads, BLOCK), np.intp)
    cdef real[:, ::1] weights = np.empty((threads, 4 * BLOCK), np.asarray(data).dtype)
    for k in prange(data.shape[0] * blocks, nogil=True, num_threads=threads, schedule="dynamic",
                    chunksize=neighbours(data.shape[0] * blocks, threads)):
        b, start = k // blocks, k % blocks * BLOCK
        n = min(BLOCK, count - start)
        look(&grid[b, 0, start], n, count, down, across, s, &places[threadid(), 0], &weights[threadid(), 0])
        for c in range(channels):
            take_block(&data[b, c, 0, 0], &places[threadid(), 0], &weights[threadid(), 0], &found[b, c, start], n, s)


def scatter(const real[:, :, ::1] head, const real[:, :, ::1] grid, bint down, bint across, bint unit, bint clamp,
            real[:, :, :, ::1] total):
    """Add elements up at the pixels from which :func:`sample` takes them, times their weights: its gradient."""
    cdef Py_ssize_t channels = head.shape[1], count = grid.shape[2], k, b, c, i, start, n
    if head.size == 0 or total.size == 0:
        return
    cdef mx_frame s = mx_frame(total.shape[2], total.shape[3], unit, clamp)
    cdef Py_ssize_t parts = max(1, min(channels, most_threads() * 2 // total.shape[0]))
    cdef Py_ssize_t step = (channels + parts - 1) // parts
    parts = (channels + step - 1) // step
    cdef int threads = threads_over(total.shape[0] * parts, head.size)
    cdef Py_ssize_t[:, ::1] places = np.empty((threads, BLOCK), np.intp)
    cdef real[:, ::1] weights = np.empty((threads, 4 * BLOCK), np.asarray(head).dtype)
    for k in prange(total.shape[0] * parts, nogil=True, num_threads=threads, schedule="dynamic"):
        b = k // parts
        for i in range((count + BLOCK - 1) // BLOCK):
            start = i * BLOCK
            n = min(BLOCK, count - start)
            look(&grid[b, 0, start], n, count, down, across, s, &places[threadid(), 0], &weights[threadid(), 0])
            for c in range(k % parts * step, min(channels, (k % parts + 1) * step)):
                put_block(&head[b, c, start], &places[threadid(), 0], &weights[threadid(), 0], &total[b, c, 0, 0], n, s)


def slopes(const real[:, :, ::1] head, const real[:, :, :, ::1] data, const real[:, :, ::1] grid, bint unit, bint clamp,
           real[:, :, ::1] found):
    """Sum derivatives of :func:`sample` with respect to the grid up over channels, times the head."""
    cdef Py_ssize_t channels = data.shape[1], count = grid.shape[2], blocks = (count + BLOCK - 1) // BLOCK, k, b, c, start, n
    if head.size == 0 or data.size == 0:
        return
    cdef mx_frame s = mx_frame(data.shape[2], data.shape[3], unit, clamp)
    cdef int threads = threads_over(data.shape[0] * blocks, head.size)
    cdef Py_ssize_t[:, ::1] places = np.empty((threads, BLOCK), np.intp)
    cdef real[:, :, ::1] weights = np.empty((threads, 2, 4 * BLOCK), np.asarray(data).dtype)
    for k in prange(data.shape[0] * blocks, nogil=True, num_threads=threads, schedule="dynamic",
                    chunksize=neighbours(data.shape[0] * blocks, threads)):
        b, start = k // blocks, k % blocks * BLOCK
        n = min(BLOCK, count - start)
        look(&grid[b, 0, start], n, count, False, True, s, &places[threadid(), 0], &weights[threadid(), 0, 0])
        look(&grid[b, 0, start], n, count, True, False, s, &places[threadid(), 0], &weights[threadid(), 1, 0])
        memset(&found[b, 0, start], 0, n * sizeof(real))
        memset(&found[b, 1, start], 0, n * sizeof(real))
        for c in range(channels):
            slopes_block(&head[b, c, start], &data[b, c, 0, 0], &places[threadid(), 0], &weights[threadid(), 0, 0],
                         &weights[threadid(), 1, 0], &found[b, 0, start], n, count, s)
