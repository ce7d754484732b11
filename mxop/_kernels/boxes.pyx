"""Boxes: which ones stronger boxes suppress, the greedy matching of scores, and the anchors that match objects.

What depends on the order of decisions is here; batches are shared among threads.
"""
from cython.parallel cimport prange
from libc.math cimport exp
from libc.stdint cimport int64_t
from libc.string cimport memset

from mxop._kernels.machine cimport MX_THREAD_BYTES
from mxop._kernels.team cimport most_threads, threads_of

cdef enum:
    LEFT, TOP, RIGHT, BOTTOM, AREA, KIND

ctypedef fused real:
    float
    double


cdef int threads_over(Py_ssize_t batches, Py_ssize_t elements) noexcept nogil:
    """Return how many threads share batches of so many elements together."""
    return threads_of(most_threads(), min(batches, elements * <Py_ssize_t>sizeof(float) // MX_THREAD_BYTES))


cdef inline real overlap(const real* box, real left, real top, real right, real bottom, real area, Py_ssize_t j, Py_ssize_t n,
                         real extra) noexcept nogil:
    """Return the intersection over union of a box and number `j` of `n` boxes; a pixel that ends a box adds `extra` to its size."""
    cdef real width = (right if right < box[RIGHT * n + j] else box[RIGHT * n + j]) - (left if left > box[j] else box[j]) + extra
    cdef real height = (bottom if bottom < box[BOTTOM * n + j] else box[BOTTOM * n + j]) - (
        top if top > box[TOP * n + j] else box[TOP * n + j]) + extra
    cdef real shared = (width if width > 0 else 0) * (height if height > 0 else 0)
    return shared / (area + box[AREA * n + j] - shared)


cdef void suppress_some(const real* box, real* kept, Py_ssize_t count, Py_ssize_t n, real threshold, real extra,
                        Py_ssize_t most) noexcept nogil:
    """Set `kept` to 1 for at most `most` of the first `count` boxes, to 0 for all others."""
    cdef Py_ssize_t i, j, found = 0
    cdef real left, top, right, bottom, area, kind
    memset(kept, 0, n * sizeof(real))
    for i in range(count):
        kept[i] = 1
    for i in range(count):
        if kept[i] == 0:
            continue
        if found == most:
            memset(kept + i, 0, (n - i) * sizeof(real))
            return
        found += 1
        left, top, right, bottom = box[i], box[TOP * n + i], box[RIGHT * n + i], box[BOTTOM * n + i]
        area, kind = box[AREA * n + i], box[KIND * n + i]
        for j in range(i + 1, count):
            kept[j] = 0 if (overlap(box, left, top, right, bottom, area, j, n, extra) > threshold) & (
                kind == box[KIND * n + j]) else kept[j]


def suppress(const real[:, :, ::1] boxes, const int64_t[::1] counts, double threshold, double extra, Py_ssize_t most,
             real[:, ::1] kept):
    """Find the boxes that no stronger box of their kind, which is kept itself, overlaps by more than a threshold.

    Parameters
    ----------
    boxes : array of float32 or float64
        ``(batch, 6, n)``: left, top, right, bottom, area and kind of the boxes, from the strongest to the weakest.
    counts : array of int64
        How many boxes of each row count; the others are not kept.
    extra : float
        What is added to widths and heights of intersections.
    most : int
        How many boxes of each row are kept at most; below 0 there is no limit.
    kept : array of the boxes' type
        ``(batch, n)``: becomes 1 for what is kept, else 0.
    """
    cdef Py_ssize_t batch = boxes.shape[0], n = boxes.shape[2], k
    if batch == 0 or n == 0:
        return
    cdef int threads = threads_over(batch, batch * n * n // 16)
    for k in prange(batch, nogil=True, num_threads=threads, schedule="dynamic"):
        suppress_some(&boxes[k, 0, 0], &kept[k, 0], counts[k], n, <real>threshold, <real>extra, most)


cdef void pair_some(const real* scores, const int64_t* order, int64_t* rows, int64_t* columns, Py_ssize_t height, Py_ssize_t width,
                    real threshold, bint ascend, Py_ssize_t most) noexcept nogil:
    cdef Py_ssize_t i, row, column, left = min(height, width)
    cdef real score
    if 0 <= most < left:
        left = most
    for i in range(height):
        rows[i] = -1
    for i in range(width):
        columns[i] = -1
    for i in range(height * width):
        row, column, score = order[i] // width, order[i] % width, scores[order[i]]
        if rows[row] >= 0 or columns[column] >= 0:
            continue
        if left == 0 or not (score < threshold if ascend else score > threshold):
            return
        rows[row], columns[column] = column, row
        left -= 1


def pair(const real[:, :, ::1] scores, const int64_t[:, ::1] order, double threshold, bint ascend, Py_ssize_t most,
         int64_t[:, ::1] rows, int64_t[:, ::1] columns):
    """Match rows with columns, the best scores first, until one is not above (or, with `ascend`, below) the threshold.

    Parameters
    ----------
    scores : array of float32 or float64
        ``(batch, rows, columns)``, none of them empty.
    order : array of int64
        ``(batch, rows * columns)``: positions of the scores, from the best to the worst.
    most : int
        How many matches there are at most; below 0 there is no limit.
    rows, columns : array of int64
        Become the column of each row, and the row of each column; -1 where there is none.
    """
    cdef Py_ssize_t batch = scores.shape[0], k
    cdef int threads = threads_over(batch, scores.size)
    for k in prange(batch, nogil=True, num_threads=threads, schedule="dynamic"):
        pair_some(&scores[k, 0, 0], &order[k, 0], &rows[k, 0], &columns[k, 0], scores.shape[1], scores.shape[2], <real>threshold,
                  ascend, most)


cdef Py_ssize_t best_free(const real* box, const real* wanted, const int64_t* matches, Py_ssize_t n, real* best) noexcept nogil:
    """Return the first anchor of those that overlap an object most and match none yet, -1 where none overlaps it."""
    cdef Py_ssize_t j, found = -1
    cdef real area = (wanted[2] - wanted[0]) * (wanted[3] - wanted[1]), value
    best[0] = <real>1e-6
    for j in range(n):
        if matches[j] < 0:
            value = overlap(box, wanted[0], wanted[1], wanted[2], wanted[3], area, j, n, 0)
            if value > best[0]:
                best[0], found = value, j
    return found


cdef void match_some(const real* box, const real* labels, int64_t* matches, real* overlaps, int64_t* nearest, real* best,
                     int64_t* where, Py_ssize_t count, Py_ssize_t width, Py_ssize_t n, real threshold) noexcept nogil:
    """Match anchors of one batch; `nearest` has room for all anchors, `best` and `where` for all labels."""
    cdef Py_ssize_t j, k, taken, object
    cdef const real* wanted
    cdef real value, area
    for j in range(n):
        matches[j] = nearest[j] = overlaps[j] = -1
    for k in range(count):
        wanted = labels + k * width + 1
        area = (wanted[2] - wanted[0]) * (wanted[3] - wanted[1])
        for j in range(n):
            value = overlap(box, wanted[0], wanted[1], wanted[2], wanted[3], area, j, n, 0)
            nearest[j] = k if value > overlaps[j] else nearest[j]
            overlaps[j] = value if value > overlaps[j] else overlaps[j]
        where[k] = best_free(box, wanted, matches, n, best + k)
    while True:     # the object and the free anchor that overlap most, the first anchor of equal ones
        object = -1
        for k in range(count):
            if where[k] >= 0 and (object < 0 or best[k] > best[object] or (best[k] == best[object] and where[k] < where[object])):
                object = k
        if object < 0:
            break
        taken = where[object]
        matches[taken], where[object] = object, -1
        for k in range(count):
            if where[k] == taken:
                where[k] = best_free(box, labels + k * width + 1, matches, n, best + k)
    if threshold > 0:
        for j in range(n):
            if matches[j] < 0 and overlaps[j] > threshold:
                matches[j] = nearest[j]


def match(const real[:, ::1] anchors, const real[:, :, ::1] labels, const int64_t[::1] counts, double threshold,
          int64_t[:, ::1] matches, real[:, ::1] overlaps, int64_t[:, ::1] nearest, real[:, ::1] best, int64_t[:, ::1] where):
    """Match each object with an anchor of its own, and further anchors with the object that they overlap most.

    Parameters
    ----------
    anchors : array of float32 or float64
        ``(5, n)``: left, top, right, bottom and area.
    labels : array of the anchors' type
        ``(batch, labels, width)``: class, left, top, right, bottom of each object, and what is not read.
    counts : array of int64
        How many labels of each batch are objects.
    threshold : float
        What further anchors overlap by more than; with 0 or less there are none.
    matches : array of int64
        ``(batch, n)``: becomes the object of each anchor, -1 where there is none.
    overlaps : array of the anchors' type
        ``(batch, n)``: becomes the largest intersection over union of each anchor with an object.
    nearest, best, where : arrays of int64, of the anchors' type, and of int64
        Scratch memory of the shapes of `matches`, of ``(batch, labels)``, and of that again.
    """
    cdef Py_ssize_t batch = labels.shape[0], n = anchors.shape[1], k
    if batch == 0 or n == 0:
        return
    cdef int threads = threads_over(batch, batch * n * labels.shape[1])
    cdef const real* box = &anchors[0, 0]
    for k in prange(batch, nogil=True, num_threads=threads, schedule="dynamic"):
        match_some(box, &labels[k, 0, 0], &matches[k, 0], &overlaps[k, 0], &nearest[k, 0], &best[k, 0], &where[k, 0], counts[k],
                   labels.shape[2], n, <real>threshold)


cdef inline real clipped(real x, bint clip) noexcept nogil:
    """Return a coordinate, in the interval from 0 to 1 if it is to be clipped; NaN becomes 1."""
    if not clip:
        return x
    x = x if x < 1 else 1
    return x if x > 0 else 0


cdef void detect_some(const real* scores, const real* offsets, const real* anchors, const real* variances, real* found,
                      int64_t* count, int64_t* classes, real* best, Py_ssize_t kinds, Py_ssize_t n, real threshold,
                      bint clip) noexcept nogil:
    """Do so for one batch; `classes` and `best` have room for all anchors."""
    cdef Py_ssize_t i, j
    cdef real width, height, x, y
    cdef real* row = found
    for j in range(n):
        classes[j], best[j] = 0, -1
    for i in range(1, kinds):
        for j in range(n):
            classes[j] = i if scores[i * n + j] > best[j] else classes[j]
            best[j] = scores[i * n + j] if scores[i * n + j] > best[j] else best[j]
    for j in range(n):
        if classes[j] > 0 and not best[j] < threshold:
            row[0], row[1] = classes[j] - 1, best[j]
            width, height = anchors[2] - anchors[0], anchors[3] - anchors[1]
            x = offsets[0] * variances[0] * width + (anchors[0] + anchors[2]) / 2
            y = offsets[1] * variances[1] * height + (anchors[1] + anchors[3]) / 2
            width, height = <real>exp(offsets[2] * variances[2]) * width / 2, <real>exp(offsets[3] * variances[3]) * height / 2
            row[2], row[3], row[4], row[5] = (clipped(x - width, clip), clipped(y - height, clip), clipped(x + width, clip),
                                              clipped(y + height, clip))
            row += 6
        anchors += 4
        offsets += 4
    count[0] = (row - found) // 6
    for j in range(6 * count[0], 6 * n):
        found[j] = -1


def detect(const real[:, :, ::1] scores, const real[:, ::1] offsets, const real[:, ::1] anchors, const real[::1] variances,
           double threshold, bint clip, real[:, :, ::1] found, int64_t[::1] counts, int64_t[:, ::1] classes, real[:, ::1] best):
    """Find the anchors whose largest score, but for class 0, is above -1 and not below a threshold, and the boxes at their offsets.

    Parameters
    ----------
    scores : array of float32 or float64
        ``(batch, classes, n)``.
    offsets, anchors : arrays of the scores' type
        ``(batch, 4 * n)`` and ``(n, 4)``.
    variances : array of the scores' type
        What the four offsets are multiplied by.
    found : array of the scores' type
        ``(batch, n, 6)``: becomes class - 1, score, left, top, right, bottom of what was found; -1 behind it.
    counts : array of int64
        Become the numbers of what was found.
    classes, best : arrays of int64 and of the scores' type
        Scratch memory, ``(batch, n)``.
    """
    cdef Py_ssize_t batch = scores.shape[0], n = scores.shape[2], k
    if batch == 0 or n == 0:
        return
    cdef int threads = threads_over(batch, scores.size)
    for k in prange(batch, nogil=True, num_threads=threads, schedule="dynamic"):
        detect_some(&scores[k, 0, 0], &offsets[k, 0], &anchors[0, 0], &variances[0], &found[k, 0, 0], &counts[k], &classes[k, 0],
                    &best[k, 0], scores.shape[1], n, <real>threshold, clip)
