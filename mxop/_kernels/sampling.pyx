"""Images at places between their pixels, by linear interpolation: values, sums at the same places, and slopes.

Places are taken in blocks: the four pixels around each, and their weights, serve all channels.  Each sum is added up in one order
whatever the number of threads.
"""
from cython.parallel cimport prange, threadid

import numpy as np

from mxop._kernels.machine cimport MX_TASKS_A_THREAD, MX_THREAD_BYTES
from mxop._kernels.team cimport most_threads, threads_of

cdef enum:
    BLOCK = 256  # places

ctypedef fused real:
    float
    double

cdef struct Frame:
    Py_ssize_t height, width, places
    bint down, across, unit, clamp


cdef int threads_over(Py_ssize_t tasks, Py_ssize_t elements) noexcept nogil:
    """Return how many threads share tasks that read so many elements together."""
    return threads_of(most_threads(), min(tasks, elements * 4 * <Py_ssize_t>sizeof(float) // MX_THREAD_BYTES))


cdef inline Py_ssize_t weigh(real at, Py_ssize_t size, bint slope, Frame s, real* low, real* high) noexcept nogil:
    """Return the first of the two pixels around a place along one axis, and set their weights, with `slope` in the derivative.

    At the edges of an image, these are the first or last two pixels; what lies outside has no weight.
    """
    cdef real unit = <real>(size - 1) / 2 if s.unit else 1
    cdef Py_ssize_t first
    low[0], high[0] = 0, 0
    if s.unit:
        at = (at + 1) * unit
    if not (at >= (0 if s.clamp else -1) and at < size):
        return 0
    first = <Py_ssize_t>at
    first -= at < first
    if s.clamp and first == size - 1:
        low[0] = 0 if slope else 1
    elif slope:
        low[0], high[0] = -unit, unit
    else:
        low[0], high[0] = 1 - (at - first), at - first
    if first < 0:
        low[0], high[0] = high[0], 0
        return 0
    if first == size - 1:
        if size == 1:
            high[0] = 0
            return 0
        low[0], high[0] = 0, low[0]
        return size - 2
    return first


cdef void look(const real* grid, Py_ssize_t n, bint down, bint across, Frame s, Py_ssize_t* places, real* weights) noexcept nogil:
    """Set the first of the four pixels around each of `n` places, and the weights of the four."""
    cdef Py_ssize_t j, x, y
    cdef real left, right, above, below
    for j in range(n):
        x = weigh(grid[j], s.width, across, s, &left, &right)
        y = weigh(grid[s.places + j], s.height, down, s, &above, &below)
        places[j] = y * s.width + x
        weights[j], weights[BLOCK + j] = above * left, above * right
        weights[2 * BLOCK + j], weights[3 * BLOCK + j] = below * left, below * right


cdef inline real weighed(real weight, real value, bint careful) noexcept nogil:
    """Return the product; if `careful`, 0 where the weight is 0, whatever the value."""
    return weight * value if not careful or weight != 0 else 0


cdef inline real blended(const real* pixel, Py_ssize_t right, Py_ssize_t below, const real* weights, bint careful) noexcept nogil:
    return (weighed(weights[0], pixel[0], careful) + weighed(weights[BLOCK], pixel[right], careful)
            + weighed(weights[2 * BLOCK], pixel[below], careful)
            + weighed(weights[3 * BLOCK], pixel[below + right], careful))


cdef inline void take_block(const real* image, const Py_ssize_t* places, const real* weights, real* found, Py_ssize_t n, Frame s,
                            bint careful) noexcept nogil:
    cdef Py_ssize_t j, right = s.width > 1, below = s.width if s.height > 1 else 0
    for j in range(n):
        found[j] = blended(image + places[j], right, below, weights + j, careful)


cdef inline void put_block(const real* head, const Py_ssize_t* places, const real* weights, real* total, Py_ssize_t n, Frame s,
                           bint careful) noexcept nogil:
    cdef Py_ssize_t j, right = s.width > 1, below = s.width if s.height > 1 else 0
    cdef real* pixel
    for j in range(n):
        pixel = total + places[j]
        pixel[0] += weighed(weights[j], head[j], careful)
        pixel[right] += weighed(weights[BLOCK + j], head[j], careful)
        pixel[below] += weighed(weights[2 * BLOCK + j], head[j], careful)
        pixel[below + right] += weighed(weights[3 * BLOCK + j], head[j], careful)


cdef inline void slopes_block(const real* head, const real* image, const Py_ssize_t* places, const real* across, const real* down,
                              real* found, Py_ssize_t n, Frame s, bint careful) noexcept nogil:
    cdef Py_ssize_t j, right = s.width > 1, below = s.width if s.height > 1 else 0
    for j in range(n):
        found[j] += weighed(head[j], blended(image + places[j], right, below, across + j, careful), careful)
        found[s.places + j] += weighed(head[j], blended(image + places[j], right, below, down + j, careful), careful)


def sample(const real[:, :, :, ::1] data, const real[:, :, ::1] grid, bint down, bint across, bint unit, bint clamp,
           bint careful, real[:, :, ::1] found):
    """Interpolate images.

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
    careful : bool
        Whether pixels, or elements of a head, may be infinite or NaN: those of weight 0 then do not count.
    found : array of the data's type
        ``(batch, channels, places)``.
    """
    cdef Py_ssize_t channels = data.shape[1], blocks = (grid.shape[2] + BLOCK - 1) // BLOCK, k, b, c, start, n
    if found.size == 0 or data.size == 0:
        return
    cdef Frame s = Frame(data.shape[2], data.shape[3], grid.shape[2], down, across, unit, clamp, careful)
    cdef int threads = threads_over(data.shape[0] * blocks, found.size)
    cdef Py_ssize_t[:, ::1] places = np.empty((threads, BLOCK), np.intp)
    cdef real[:, ::1] weights = np.empty((threads, 4 * BLOCK), np.asarray(data).dtype)
    for k in prange(data.shape[0] * blocks, nogil=True, num_threads=threads, schedule="dynamic"):
        b, start = k // blocks, k % blocks * BLOCK
        n = min(BLOCK, s.places - start)
        look(&grid[b, 0, start], n, down, across, s, &places[threadid(), 0], &weights[threadid(), 0])
        for c in range(channels):
            if careful:  # a variant of its own, as the others need no comparisons
                take_block(&data[b, c, 0, 0], &places[threadid(), 0], &weights[threadid(), 0], &found[b, c, start], n, s, True)
            else:
                take_block(&data[b, c, 0, 0], &places[threadid(), 0], &weights[threadid(), 0], &found[b, c, start], n, s, False)


def scatter(const real[:, :, ::1] head, const real[:, :, ::1] grid, bint down, bint across, bint unit, bint clamp,
            bint careful, real[:, :, :, ::1] total):
    """Add elements up at the pixels from which :func:`sample` takes them, times their weights: its gradient."""
    cdef Py_ssize_t channels = head.shape[1], k, b, c, i, start, n
    if head.size == 0 or total.size == 0:
        return
    cdef Frame s = Frame(total.shape[2], total.shape[3], grid.shape[2], down, across, unit, clamp)
    cdef Py_ssize_t parts = max(1, min(channels, most_threads() * MX_TASKS_A_THREAD // total.shape[0]))
    cdef Py_ssize_t step = (channels + parts - 1) // parts
    parts = (channels + step - 1) // step
    cdef int threads = threads_over(total.shape[0] * parts, head.size)
    cdef Py_ssize_t[:, ::1] places = np.empty((threads, BLOCK), np.intp)
    cdef real[:, ::1] weights = np.empty((threads, 4 * BLOCK), np.asarray(head).dtype)
    for k in prange(total.shape[0] * parts, nogil=True, num_threads=threads, schedule="dynamic"):
        b = k // parts
        for i in range((s.places + BLOCK - 1) // BLOCK):
            start = i * BLOCK
            n = min(BLOCK, s.places - start)
            look(&grid[b, 0, start], n, down, across, s, &places[threadid(), 0], &weights[threadid(), 0])
            for c in range(k % parts * step, min(channels, (k % parts + 1) * step)):
                if careful:  # a variant of its own, as the others need no comparisons
                    put_block(&head[b, c, start], &places[threadid(), 0], &weights[threadid(), 0], &total[b, c, 0, 0], n, s,
                              True)
                else:
                    put_block(&head[b, c, start], &places[threadid(), 0], &weights[threadid(), 0], &total[b, c, 0, 0], n, s,
                              False)


def slopes(const real[:, :, ::1] head, const real[:, :, :, ::1] data, const real[:, :, ::1] grid, bint unit, bint clamp,
           bint careful, real[:, :, ::1] found):
    """Sum derivatives of :func:`sample` with respect to the grid up over channels, times the head; `found` begins as zeros."""
    cdef Py_ssize_t channels = data.shape[1], blocks = (grid.shape[2] + BLOCK - 1) // BLOCK, k, b, c, start, n
    if head.size == 0 or data.size == 0:
        return
    cdef Frame s = Frame(data.shape[2], data.shape[3], grid.shape[2], False, False, unit, clamp)
    cdef int threads = threads_over(data.shape[0] * blocks, head.size)
    cdef Py_ssize_t[:, ::1] places = np.empty((threads, BLOCK), np.intp)
    cdef real[:, :, ::1] weights = np.empty((threads, 2, 4 * BLOCK), np.asarray(data).dtype)
    for k in prange(data.shape[0] * blocks, nogil=True, num_threads=threads, schedule="dynamic"):
        b, start = k // blocks, k % blocks * BLOCK
        n = min(BLOCK, s.places - start)
        look(&grid[b, 0, start], n, False, True, s, &places[threadid(), 0], &weights[threadid(), 0, 0])
        look(&grid[b, 0, start], n, True, False, s, &places[threadid(), 0], &weights[threadid(), 1, 0])
        for c in range(channels):
            if careful:
                slopes_block(&head[b, c, start], &data[b, c, 0, 0], &places[threadid(), 0], &weights[threadid(), 0, 0],
                             &weights[threadid(), 1, 0], &found[b, 0, start], n, s, True)
            else:
                slopes_block(&head[b, c, start], &data[b, c, 0, 0], &places[threadid(), 0], &weights[threadid(), 0, 0],
                             &weights[threadid(), 1, 0], &found[b, 0, start], n, s, False)
