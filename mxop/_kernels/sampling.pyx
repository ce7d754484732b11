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


cdef inline void weigh(const real* places, Py_ssize_t n, Py_ssize_t size, bint slope, Frame s, real* first, real* low,
                       real* high) noexcept nogil:
    """Find the first of the two pixels around `n` places along one axis and the two weights, with `slope` in the derivative.

    At the edges of an image, these are the first or last two pixels; what lies outside has no weight.  A weight falls from 1 at
    its pixel to 0 at the next ones.  Numbers are chosen, not branches, as compilers make vectors of that, and which places lie
    outside is hard to predict.
    """
    cdef real zero = 0, one = 1, two = 2, end = <real>size, pair = 1 if size > 1 else 0
    cdef real unit = <real>(size - 1) / 2 if s.unit else 1, start = 1 if s.unit else 0, least = 0 if s.clamp else -1
    cdef real away = -unit if pair or not s.clamp else 0, after = 0 if s.clamp else -unit, limit = pair if s.clamp else 2
    cdef real most = <real>max(size - 2, 0)
    cdef real at, pixel, part, inside, one_side, other_side
    cdef Py_ssize_t j
    for j in range(n):
        at = (places[j] + start) * unit
        inside = one if at >= least else zero
        inside = inside if at < end else zero
        at = at if at >= least else zero
        at = at if at < end else zero
        pixel = <real>(<int>at if real is float else <Py_ssize_t>at)  # float32 does not tell those after 2^24 apart
        pixel = pixel if pixel < most else most
        pixel = pixel if pixel > zero else zero
        part = at - pixel
        if slope:
            one_side, other_side = away if part < one else zero, unit if part < one else after
            one_side, other_side = unit if part < zero else one_side, zero if part < zero else other_side
        else:
            part = part if part < limit else limit
            one_side, other_side = one - part, two - part
            one_side = one_side if one_side < one + part else one + part
            other_side = other_side if other_side < part else part
            one_side, other_side = one_side if one_side > zero else zero, other_side if other_side > zero else zero
        first[j], low[j], high[j] = pixel, inside * one_side, pair * inside * other_side


cdef void look(const real* grid, Py_ssize_t n, bint down, bint across, Frame s, Py_ssize_t* places, real* weights) noexcept nogil:
    """Set the first of the four pixels around each of `n` places, and the weights of the four."""
    cdef Py_ssize_t j, x, y
    cdef real[BLOCK] column, left, right, row, above, below
    weigh(grid, n, s.width, across, s, column, left, right)
    weigh(grid + s.places, n, s.height, down, s, row, above, below)
    for j in range(n):
        # as integers once more: a size above 2^24 may be rounded up in float32
        x, y = max(0, min(<Py_ssize_t>column[j], s.width - 2)), max(0, min(<Py_ssize_t>row[j], s.height - 2))
        places[j] = y * s.width + x
        weights[j], weights[BLOCK + j] = above[j] * left[j], above[j] * right[j]
        weights[2 * BLOCK + j], weights[3 * BLOCK + j] = below[j] * left[j], below[j] * right[j]


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
    cdef Frame s = Frame(data.shape[2], data.shape[3], grid.shape[2], down, across, unit, clamp)
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
