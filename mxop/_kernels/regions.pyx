"""Regions of images: their largest pixels, and weighted sums of their pixels.

Rows and columns of pixels have weights of their own, so the sum over a bin of a region is one over rows, then one over columns.
Regions of one image, or channels, are shared among threads; each sum is added up in one order whatever their number.
"""
from cython.parallel cimport prange, threadid
from libc.stdint cimport int64_t
from libc.string cimport memset

import numpy as np

from mxop._kernels.machine cimport MX_TASKS_A_THREAD, MX_THREAD_BYTES
from mxop._kernels.team cimport most_threads, threads_of

ctypedef fused real:
    float
    double


cdef int threads_over(Py_ssize_t tasks, Py_ssize_t elements) noexcept nogil:
    """Return how many threads share tasks that read so many elements together."""
    return threads_of(most_threads(), min(tasks, elements * <Py_ssize_t>sizeof(float) // MX_THREAD_BYTES))


cdef Py_ssize_t shared(Py_ssize_t count, Py_ssize_t others) noexcept nogil:
    """Return how many of `count` channels are one task, where there are so many `others` to multiply the tasks with."""
    cdef Py_ssize_t parts = max(1, min(count, most_threads() * MX_TASKS_A_THREAD // max(1, others)))
    return max(1, (count + parts - 1) // parts)


# ---- the largest pixel ------------------------------------------------------------------------------------------------------
cdef void largest_of(const real* image, const int64_t* rows, const int64_t* columns, real* found, int64_t* place, real* most,
                     int64_t* where, Py_ssize_t height, Py_ssize_t width, Py_ssize_t across) noexcept nogil:
    """Find the largest pixel of each bin of a region of one channel: that of each column first, of the bin's rows."""
    cdef Py_ssize_t i, j, x, y, low = columns[0], high = columns[0]
    cdef real value
    cdef int64_t at
    cdef const real* row
    for j in range(width):
        low, high = min(low, columns[2 * j]), max(high, columns[2 * j + 1])
    for i in range(height):
        if rows[2 * i] < rows[2 * i + 1]:
            row = image + rows[2 * i] * across
            for x in range(low, high):
                most[x], where[x] = row[x], rows[2 * i]
            for y in range(rows[2 * i] + 1, rows[2 * i + 1]):
                row = image + y * across
                for x in range(low, high):
                    at = (row[x] > most[x]) | ((row[x] != row[x]) & (most[x] == most[x]))
                    most[x], where[x] = row[x] if at else most[x], y if at else where[x]
        for j in range(width):
            value, at = 0, -1
            if rows[2 * i] < rows[2 * i + 1]:
                for x in range(columns[2 * j], columns[2 * j + 1]):
                    if at < 0 or most[x] > value or (most[x] != most[x] and value == value) or (
                            where[x] < at // across and (most[x] == value or (most[x] != most[x] and value != value))):
                        value, at = most[x], where[x] * across + x
            found[i * width + j], place[i * width + j] = value, at


def largest(const real[:, :, :, ::1] data, const int64_t[::1] images, const int64_t[:, :, ::1] rows,
            const int64_t[:, :, ::1] columns, real[:, :, :, ::1] found, int64_t[:, :, :, ::1] places):
    """Find the largest pixel of each bin, and where in its channel it is, the first of equal ones; NaN is larger than all.

    Parameters
    ----------
    data : array of float32 or float64
        Images, ``(batch, channels, height, width)``.
    images : array of int64
        The image of each region; below 0 it has none, and the results stay as they are.
    rows, columns : arrays of int64
        ``(regions, bins, 2)``: where bins begin and end; what is empty gives 0, at -1.
    found, places : arrays of the data's type and of int64
        ``(regions, channels, *bins)``.
    """
    cdef Py_ssize_t regions = images.shape[0], channels = data.shape[1], across = data.shape[3], r, c, k
    cdef Py_ssize_t height = rows.shape[1], width = columns.shape[1], step = shared(channels, regions)
    if found.size == 0 or data.size == 0:
        return
    cdef Py_ssize_t parts = (channels + step - 1) // step
    cdef int threads = threads_over(regions * parts, found.size * 16)
    dtype = np.asarray(data).dtype
    cdef real[:, ::1] most = np.empty((threads, across), dtype)
    cdef int64_t[:, ::1] where = np.empty((threads, across), np.int64)
    for k in prange(regions * parts, nogil=True, num_threads=threads, schedule="dynamic"):
        r = k // parts
        if images[r] >= 0:
            for c in range(k % parts * step, min(channels, (k % parts + 1) * step)):
                largest_of(&data[images[r], c, 0, 0], &rows[r, 0, 0], &columns[r, 0, 0], &found[r, c, 0, 0],
                           &places[r, c, 0, 0], &most[threadid(), 0], &where[threadid(), 0], height, width, across)


def by_image(images, batch):
    """Return the regions, those of each image together, and where those of each begin, and the last ones end."""
    order = np.argsort(images, kind="stable")
    return order, np.searchsorted(np.asarray(images)[order], np.arange(batch + 1))


def put(const real[:, :, ::1] head, const int64_t[::1] images, const int64_t[:, :, ::1] places, real[:, :, ::1] total):
    """Add elements of regions up at their places in images.

    Parameters
    ----------
    head, places : arrays of float32 or float64, and of int64
        ``(regions, channels, bins)``; what has a place outside of the image is left out.
    images : array of int64
        The image of each region; one below 0 is left out.
    total : array of the head's type
        Images, ``(batch, channels, pixels)``.
    """
    cdef Py_ssize_t channels = head.shape[1], bins = head.shape[2], k, i, j, c, b
    cdef const int64_t[::1] order, starts
    if head.size == 0 or total.size == 0:
        return
    order, starts = by_image(images, total.shape[0])
    cdef Py_ssize_t step = shared(channels, total.shape[0]), parts = (channels + step - 1) // step
    cdef int threads = threads_over(total.shape[0] * parts, head.size)
    for k in prange(total.shape[0] * parts, nogil=True, num_threads=threads, schedule="dynamic"):
        b = k // parts
        for i in range(starts[b], starts[b + 1]):
            for c in range(k % parts * step, min(channels, (k % parts + 1) * step)):
                for j in range(bins):
                    if 0 <= places[order[i], c, j] < total.shape[2]:
                        total[b, c, places[order[i], c, j]] += head[order[i], c, j]


# ---- weighted sums ----------------------------------------------------------------------------------------------------------
cdef void weigh_bin(real base, real size, int64_t samples, real half, real low, real high, Py_ssize_t limit, bint inside,
                    bint slope, int64_t* span, real* weights) noexcept nogil:
    """Set the weights of the pixels between which the samples of one bin lie, along one axis."""
    cdef Py_ssize_t i, below, first = limit, last = -1, turn
    cdef real at, share
    cdef int64_t counted = 0
    for turn in range(2):  # first where the pixels begin and end, then their weights
        for i in range(samples):
            at = base + (i + half) * size / samples
            if not (at >= low and at <= high):
                continue
            at = min(max(at, 0), limit - 1)
            below = <Py_ssize_t>at
            share = at - below
            if turn == 0:
                counted += 1
                first, last = min(first, below), max(last, below + (1 if below < limit - 1 else 0))
            elif not slope:
                weights[below - first] += 1 - share
                if share != 0:
                    weights[below - first + 1] += share
            elif share != 0:
                weights[below - first] -= 1
                weights[below - first + 1] += 1
        if turn == 0 and counted:
            span[0], span[1] = first, last + 1
    for i in range(span[1] - span[0]):
        weights[i] /= counted if inside else samples


def weigh(const real[::1] bases, const real[::1] sizes, const int64_t[::1] samples, double half, double low, double high,
          Py_ssize_t limit, bint inside, bint slope, int64_t[:, ::1] spans, real[:, ::1] weights):
    """Set the weights of pixels in means of samples, which lie between pixels, along one axis.

    Parameters
    ----------
    bases, sizes : arrays of float32 or float64
        Where bins begin, and how large they are; sample `i` of `n` lies at ``base + (i + half) * size / n``.
    samples : array of int64
        How many samples each bin has.
    half : float
        See above.
    low, high : float
        Samples outside of this interval count as 0; inside of it they are moved to the nearest pixel first.
    limit : int
        How many pixels there are.
    inside : bool
        Whether only samples inside of the interval count in the mean.
    slope : bool
        Whether weights are those of the derivative with respect to the places of the samples.
    spans, weights : arrays of int64 and of the bases' type
        ``(bins, 2)`` and ``(bins, room)``: zeros; become where pixels begin and end that have a weight, and the weights.
    """
    cdef Py_ssize_t k, count = bases.shape[0]
    if count == 0 or limit == 0:
        return
    cdef int threads = threads_over(count, count * 64)
    for k in prange(count, nogil=True, num_threads=threads):
        weigh_bin(bases[k], sizes[k], samples[k], <real>half, <real>low, <real>high, limit, inside, slope, &spans[k, 0],
                  &weights[k, 0])


cdef struct Bins:
    Py_ssize_t height, width, rooms, room, down, across, planes, plane


cdef Py_ssize_t together(const int64_t* columns, const int64_t* group, Py_ssize_t j, Bins s, int64_t* span) noexcept nogil:
    """Return the first bin after `j` that reads another channel, and set where columns of the bins up to it begin and end."""
    cdef Py_ssize_t k = j
    span[0], span[1] = columns[2 * j], columns[2 * j + 1]
    while k < s.width and group[k] == group[j]:
        if columns[2 * k] < columns[2 * k + 1]:
            if span[0] == span[1]:
                span[0] = columns[2 * k]
            span[0], span[1] = min(span[0], columns[2 * k]), max(span[1], columns[2 * k + 1])
        k += 1
    return k


cdef void blend_channel(const real* image, const int64_t* rows, const real* row_weights, const int64_t* columns,
                        const real* column_weights, const int64_t* down, const int64_t* group, real* found, real* line,
                        Bins s) noexcept nogil:
    cdef Py_ssize_t i, j, k, m, x, y
    cdef int64_t[2] span
    cdef real weight, total
    cdef const real* row
    for i in range(s.height):
        j = 0
        while j < s.width:
            k = together(columns, group, j, s, span)
            memset(line + span[0], 0, (span[1] - span[0]) * sizeof(real))
            for y in range(rows[2 * i], rows[2 * i + 1]):
                weight = row_weights[i * s.rooms + y - rows[2 * i]]
                row = image + (down[i] + group[j]) * s.plane + y * s.across
                if weight != 0:
                    for x in range(span[0], span[1]):
                        line[x] += weight * row[x]
            for m in range(j, k):
                total = 0
                for x in range(columns[2 * m], columns[2 * m + 1]):
                    weight = column_weights[m * s.room + x - columns[2 * m]]
                    total += weight * line[x] if weight != 0 else 0
                found[i * s.width + m] = total
            j = k


cdef void spread_channel(const real* head, const int64_t* rows, const real* row_weights, const int64_t* columns,
                         const real* column_weights, const int64_t* down, const int64_t* group, real* image, real* line,
                         Bins s) noexcept nogil:
    cdef Py_ssize_t i, j, k, m, x, y
    cdef int64_t[2] span
    cdef real weight
    cdef real* row
    for i in range(s.height):
        j = 0
        while j < s.width:
            k = together(columns, group, j, s, span)
            memset(line + span[0], 0, (span[1] - span[0]) * sizeof(real))
            for m in range(j, k):
                for x in range(columns[2 * m], columns[2 * m + 1]):
                    line[x] += column_weights[m * s.room + x - columns[2 * m]] * head[i * s.width + m]
            for y in range(rows[2 * i], rows[2 * i + 1]):
                weight = row_weights[i * s.rooms + y - rows[2 * i]]
                row = image + (down[i] + group[j]) * s.plane + y * s.across
                for x in range(span[0], span[1]):
                    row[x] += weight * line[x]
            j = k


def blend(const real[:, :, :, ::1] data, const int64_t[::1] first, const int64_t[:, :, ::1] rows,
          const real[:, :, ::1] row_weights, const int64_t[:, :, ::1] columns, const real[:, :, ::1] column_weights,
          const int64_t[::1] down, const int64_t[::1] group, Py_ssize_t planes, real[:, :, :, ::1] found):
    """Sum up the pixels of each bin of regions, times the weights of their rows and columns.

    Parameters
    ----------
    data : array of float32 or float64
        Images, ``(batch, channels * planes, height, width)``.
    first : array of int64
        The number of the first plane that each region reads, counted over all images; below 0 the results stay as they are.
    rows, columns : arrays of int64
        ``(regions, bins, 2)``: where pixels begin and end.
    row_weights, column_weights : arrays of the data's type
        ``(regions, bins, room)``.
    down, group : arrays of int64
        Which plane of a channel a bin reads: ``down[i] + group[j]``.
    found : array of the data's type
        ``(regions, channels, *bins)``.
    planes : int
        How many planes belong to a channel.
    """
    cdef Py_ssize_t regions = first.shape[0], channels = found.shape[1], r, c, k, t
    if found.size == 0 or data.size == 0:
        return
    cdef Bins s = Bins(rows.shape[1], columns.shape[1], row_weights.shape[2], column_weights.shape[2], data.shape[2],
                       data.shape[3], planes, data.shape[2] * data.shape[3])
    cdef Py_ssize_t step = shared(channels, regions), parts = (channels + step - 1) // step
    cdef int threads = threads_over(regions * parts, found.size * 16)
    cdef real[:, ::1] line = np.empty((threads, s.across), np.asarray(data).dtype)
    for k in prange(regions * parts, nogil=True, num_threads=threads, schedule="dynamic"):
        r = k // parts
        if first[r] >= 0:
            for c in range(k % parts * step, min(channels, (k % parts + 1) * step)):
                blend_channel(&data[0, 0, 0, 0] + (first[r] + c * s.planes) * s.plane, &rows[r, 0, 0], &row_weights[r, 0, 0], &columns[r, 0, 0],
                              &column_weights[r, 0, 0], &down[0], &group[0], &found[r, c, 0, 0], &line[threadid(), 0], s)


def spread(const real[:, :, :, ::1] head, const int64_t[::1] images, const int64_t[::1] first, const int64_t[:, :, ::1] rows,
           const real[:, :, ::1] row_weights, const int64_t[:, :, ::1] columns, const real[:, :, ::1] column_weights,
           const int64_t[::1] down, const int64_t[::1] group, Py_ssize_t planes, real[:, :, :, ::1] total):
    """Add the elements of regions up in images, times the weights with which :func:`blend` sums pixels up: its gradient."""
    cdef Py_ssize_t channels = head.shape[1], c, k, b, i
    cdef const int64_t[::1] order, starts
    if head.size == 0 or total.size == 0:
        return
    order, starts = by_image(images, total.shape[0])
    cdef Bins s = Bins(rows.shape[1], columns.shape[1], row_weights.shape[2], column_weights.shape[2], total.shape[2],
                       total.shape[3], planes, total.shape[2] * total.shape[3])
    cdef Py_ssize_t step = shared(channels, total.shape[0]), parts = (channels + step - 1) // step
    cdef int threads = threads_over(total.shape[0] * parts, head.size * 16)
    cdef real[:, ::1] line = np.empty((threads, s.across), np.asarray(head).dtype)
    for k in prange(total.shape[0] * parts, nogil=True, num_threads=threads, schedule="dynamic"):
        b = k // parts
        for i in range(starts[b], starts[b + 1]):
            for c in range(k % parts * step, min(channels, (k % parts + 1) * step)):
                spread_channel(&head[order[i], c, 0, 0], &rows[order[i], 0, 0], &row_weights[order[i], 0, 0],
                               &columns[order[i], 0, 0], &column_weights[order[i], 0, 0], &down[0], &group[0],
                               &total[0, 0, 0, 0] + (first[order[i]] + c * s.planes) * s.plane, &line[threadid(), 0], s)
