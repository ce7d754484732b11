"""Resizing of images ``(height, width, channels)``: each element is a weighted sum along a row, then along a column.

Images of uint8 are rounded as OpenCV 3.4 does, which MXNet uses: weights have 11 bits, and each way has its own last step.
"""
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport free, malloc

from cython.parallel cimport prange

from mxop._kernels.machine cimport MX_THREAD_BYTES
from mxop._kernels.team cimport most_threads, threads_of

cdef enum:
    SUM, LINEAR, CUBIC, MEAN, MEAN_UP

ctypedef fused pixel:
    uint8_t
    float
    double

ctypedef fused inner:
    int32_t
    float
    double


cdef inline void across_some(const pixel* row, inner* found, const int32_t* first, const int32_t* at, const inner* weights,
                             Py_ssize_t size, Py_ssize_t channels, Py_ssize_t stride) noexcept nogil:
    """Write some channels, 4 at most, of a row of another width; where their number is a constant, loops over it are unrolled."""
    cdef Py_ssize_t i, c
    cdef int32_t t
    cdef inner total[4]
    for i in range(size):
        for c in range(channels):
            total[c] = 0
        for t in range(first[i], first[i + 1]):
            for c in range(channels):
                total[c] = total[c] + <inner>row[at[t] * stride + c] * weights[t]
        for c in range(channels):
            found[i * stride + c] = total[c]


cdef void across(const pixel* row, inner* found, const int32_t* first, const int32_t* at, const inner* weights,
                 Py_ssize_t size, Py_ssize_t channels) noexcept nogil:
    """Write a row of another width."""
    cdef Py_ssize_t c
    if channels == 3:
        across_some(row, found, first, at, weights, size, 3, 3)
    else:
        for c in range(channels):
            across_some(row + c, found + c, first, at, weights, size, 1, channels)


cdef inline uint8_t clamped(int32_t value) noexcept nogil:
    return <uint8_t>(0 if value < 0 else 255 if value > 255 else value)


cdef inline int32_t rounded(float value) noexcept nogil:
    """Return the nearest whole number, of two the even one: additions are vectorised, and lrintf is not."""
    return <int32_t>((value + <float>12582912.0) - <float>12582912.0)   # 1.5 * 2**23


cdef void down(const inner** rows, pixel* out, inner* total, const inner* weights, Py_ssize_t count, Py_ssize_t width, int way,
               float scale) noexcept nogil:
    """Write a row that is the weighted sum of others; `total` has room for it."""
    cdef Py_ssize_t x, k, begin = 0
    cdef const inner* row = rows[0]
    cdef const inner* other = rows[1 if count > 1 else 0]
    cdef const inner* third = rows[2 if count > 2 else 0]
    cdef const inner* fourth = rows[3 if count > 3 else 0]
    cdef inner weight = weights[0], more = weights[1 if count > 1 else 0]
    cdef float a, b, c, d
    if pixel is uint8_t and inner is int32_t:
        if way == LINEAR:
            for x in range(width):
                out[x] = <uint8_t>((((weight * (row[x] >> 4)) >> 16) + ((more * (other[x] >> 4)) >> 16) + 2) >> 2)
            return
        if way == CUBIC:    # OpenCV's vectors of eight are of float32
            begin = width - width % 8
            a, b, c, d = weight * scale, more * scale, weights[2] * scale, weights[3] * scale
            for x in range(begin):
                out[x] = clamped(rounded(((row[x] * a + other[x] * b) + third[x] * c) + fourth[x] * d))
    for x in range(begin, width):
        total[x] = row[x] * weight
    for k in range(1, count):
        row, weight = rows[k], weights[k]
        for x in range(begin, width):
            total[x] = total[x] + row[x] * weight
    for x in range(begin, width):
        if pixel is not uint8_t:
            out[x] = <pixel>(total[x] * scale if way == MEAN else total[x])
        elif inner is int32_t:
            out[x] = clamped((total[x] + (1 << 21)) >> 22)
        else:
            out[x] = clamped(<int32_t>(total[x] * scale + <float>0.5) if way == MEAN_UP else rounded(<float>(total[x] * scale)))


cdef int resize_rows(const pixel* image, pixel* out, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t width, Py_ssize_t size,
                     Py_ssize_t channels, const int32_t* first_x, const int32_t* at_x, const inner* weights_x,
                     const int32_t* first_y, const int32_t* at_y, const inner* weights_y, Py_ssize_t most, int way,
                     float scale) noexcept nogil:
    """Write rows of the result; return -1 where there is no memory.  The last `most` rows of the first step are kept."""
    cdef Py_ssize_t y, k, count, row = size * channels
    cdef inner* room = <inner*>malloc((most + 1) * row * sizeof(inner))
    cdef const inner** rows = <const inner**>malloc(most * sizeof(void*))
    cdef int32_t* kept = <int32_t*>malloc(most * sizeof(int32_t))
    cdef int32_t place
    if room == NULL or rows == NULL or kept == NULL:
        free(room); free(rows); free(kept)
        return -1
    for k in range(most):
        kept[k] = -1
    for y in range(begin, end):
        count = first_y[y + 1] - first_y[y]
        for k in range(count):
            place = at_y[first_y[y] + k]
            rows[k] = room + place % most * row
            if kept[place % most] != place:
                across(image + place * width * channels, room + place % most * row, first_x, at_x, weights_x, size, channels)
                kept[place % most] = place
        down(rows, out + y * row, room + most * row, weights_y + first_y[y], count, row, way, scale)
    free(room); free(rows); free(kept)
    return 0


def resize(const pixel[:, :, :, ::1] images, pixel[:, :, :, ::1] out, const int32_t[::1] first_x, const int32_t[::1] at_x,
           const inner[::1] weights_x, const int32_t[::1] first_y, const int32_t[::1] at_y, const inner[::1] weights_y, int way,
           float scale):
    """Resize images.

    Parameters
    ----------
    images, out : arrays of uint8, float32 or float64
        ``(batch, height, width, channels)``, none of them empty.
    first_x, first_y : arrays of int32
        The places of each column's, and row's, part of the two following arrays, and of their end.
    at_x, at_y : arrays of int32
        Which columns, and rows, are added up: those of one row lie in a stretch of the image.
    weights_x, weights_y : arrays of int32 or of the real type
        The weights of those.
    way : int
        The last step: 0 the sum (of whole numbers with 22 bits behind the point), 1 and 2 OpenCV's for two and for four weights,
        3 and 4 the sum times `scale`, where halves become even, or the next number.
    """
    cdef Py_ssize_t batch = images.shape[0], height = out.shape[1], y, parts, part, failed = 0, most = 0, n
    for y in range(height):
        n = at_y[first_y[y + 1] - 1] - at_y[first_y[y]] + 1     # fewer than weights where these are of one row, at an edge
        most = max(most, n, first_y[y + 1] - first_y[y])
    cdef int threads = threads_of(most_threads(), min(batch * height, images.size * <Py_ssize_t>sizeof(pixel) // MX_THREAD_BYTES))
    parts = 1 if batch >= threads else min(height, threads)
    for part in prange(batch * parts, nogil=True, num_threads=threads, schedule="dynamic"):
        failed += resize_rows(&images[part // parts, 0, 0, 0], &out[part // parts, 0, 0, 0], part % parts * height // parts,
                              (part % parts + 1) * height // parts, images.shape[2], out.shape[2], images.shape[3], &first_x[0],
                              &at_x[0], &weights_x[0], &first_y[0], &at_y[0], &weights_y[0], most, way, scale)
    if failed:
        raise MemoryError
