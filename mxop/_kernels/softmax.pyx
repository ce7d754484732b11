"""Softmax and its logarithm, along one axis of arrays seen as ``(outer, n, inner)``.

Rows (``inner == 1``) are walked one by one; otherwise a block of neighbouring lanes goes down the axis together, so that
every inner loop runs over contiguous memory.  Three passes: the largest element, the exponentials with their sum, the
division.  NaN, and rows without a finite largest element, give NaN.  May import its neighbours.
"""

from cython.parallel cimport prange
from libc.math cimport INFINITY, log

from mxop._kernels.work cimport Work

cdef extern from "mxop_math.h" nogil:
    float mx_exp_f32(float x)
    double mx_exp_f64(double x)

cdef enum:
    LANES = 16   # partial sums of a row: independent, so that they fill vector registers
    BLOCK = 256  # neighbouring lanes that go down the axis together
    WORTH = 8192  # elements that a thread should have


ctypedef fused real:
    float
    double


cdef inline real exponential(real x) noexcept nogil:
    if real is float:
        return mx_exp_f32(x)
    else:
        return mx_exp_f64(x)


cdef void one_row(const real* x, real* y, Py_ssize_t n, real scale, bint divide, bint logarithm) noexcept nogil:
    """Transform one contiguous row of `n` elements, scaled first; ``n >= 1``."""
    cdef real top[LANES]
    cdef double sums[LANES]
    cdef double total = 0
    cdef real most, v, factor
    cdef Py_ssize_t i, j, whole = n - n % LANES
    if divide:
        for i in range(n):
            y[i] = x[i] / scale
    else:
        for i in range(n):
            y[i] = x[i] * scale
    most = -INFINITY
    if whole:
        for j in range(LANES):
            top[j] = -INFINITY
            sums[j] = 0
        for i in range(whole // LANES):
            for j in range(LANES):
                v = y[i * LANES + j]
                top[j] = v if v > top[j] else top[j]
        for j in range(LANES):
            most = top[j] if top[j] > most else most
    for i in range(whole, n):
        most = y[i] if y[i] > most else most
    if logarithm:
        for i in range(n):
            y[i] = y[i] - most
        for i in range(whole // LANES):
            for j in range(LANES):
                sums[j] += exponential(y[i * LANES + j])
        for i in range(whole, n):
            total += exponential(y[i])
    else:
        for i in range(n):
            y[i] = exponential(y[i] - most)
        for i in range(whole // LANES):
            for j in range(LANES):
                sums[j] += y[i * LANES + j]
        for i in range(whole, n):
            total += y[i]
    if whole:
        for j in range(LANES):
            total += sums[j]
    if logarithm:
        factor = <real>log(total)
        for i in range(n):
            y[i] = y[i] - factor
    else:
        factor = <real>total
        for i in range(n):
            y[i] = y[i] / factor


cdef void some_lanes(const real* x, real* y, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t width, real scale, bint divide,
                     bint logarithm) noexcept nogil:
    """Transform `width` neighbouring lanes, each of `n` elements that lie `inner` apart."""
    cdef real top[BLOCK]
    cdef real part[BLOCK]
    cdef double sums[BLOCK]
    cdef const real* source
    cdef real* target
    cdef real v
    cdef Py_ssize_t i, j
    for j in range(width):
        top[j] = -INFINITY
        sums[j] = 0
    for i in range(n):
        source, target = x + i * inner, y + i * inner
        if divide:
            for j in range(width):
                target[j] = source[j] / scale
        else:
            for j in range(width):
                target[j] = source[j] * scale
        for j in range(width):
            v = target[j]
            top[j] = v if v > top[j] else top[j]
    for i in range(n):
        target = y + i * inner
        if logarithm:
            for j in range(width):
                target[j] = target[j] - top[j]
                part[j] = exponential(target[j])
        else:
            for j in range(width):
                part[j] = exponential(target[j] - top[j])
                target[j] = part[j]
        for j in range(width):
            sums[j] += part[j]
    if logarithm:
        for j in range(width):
            part[j] = <real>log(sums[j])
    else:
        for j in range(width):
            part[j] = <real>sums[j]
    for i in range(n):
        target = y + i * inner
        if logarithm:
            for j in range(width):
                target[j] = target[j] - part[j]
        else:
            for j in range(width):
                target[j] = target[j] / part[j]


cdef void task(const real* x, real* y, Py_ssize_t index, Py_ssize_t blocks, Py_ssize_t n, Py_ssize_t inner, real scale,
               bint divide, bint logarithm, const long long* counts) noexcept nogil:
    """Transform one block of lanes (one row when ``inner == 1``)."""
    cdef Py_ssize_t outer = index // blocks, first = index % blocks * BLOCK, j, i, count
    cdef Py_ssize_t width = inner - first if inner - first < BLOCK else BLOCK
    x += outer * n * inner + first
    y += outer * n * inner + first
    if counts == NULL:
        if inner == 1:
            one_row[real](x, y, n, scale, divide, logarithm)
        else:
            some_lanes[real](x, y, n, inner, width, scale, divide, logarithm)
        return
    for j in range(width):  # every lane has a length of its own
        count = counts[outer * inner + first + j]
        count = 0 if count < 0 else n if count > n else count
        if count:
            if inner == 1:
                one_row[real](x + j, y + j, count, scale, divide, logarithm)
            else:
                some_lanes[real](x + j, y + j, count, inner, 1, scale, divide, logarithm)
        for i in range(count, n):
            y[j + i * inner] = 0


cdef void all_rows(const real* x, real* y, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, double temperature,
                   bint negate, bint logarithm, const long long* counts, int threads) noexcept nogil:
    cdef Py_ssize_t blocks = (inner + BLOCK - 1) // BLOCK, i
    # multiplying by 1 or -1 is exact; other temperatures are divided by, as the definition says
    cdef bint divide = temperature != 1
    cdef real scale = <real>(-temperature if negate else temperature)
    threads = <int>max(1, min(<Py_ssize_t>threads, outer * n * inner // WORTH))
    if threads == 1:
        for i in range(outer * blocks):
            task[real](x, y, i, blocks, n, inner, scale, divide, logarithm, counts)
    else:
        for i in prange(outer * blocks, num_threads=threads, schedule="static"):
            task[real](x, y, i, blocks, n, inner, scale, divide, logarithm, counts)


cdef class Softmax(Work):
    """Softmax, or its logarithm, along axis 1: of the data, and how much of each lane counts if that is asked, into a result.

    The result may be the data.

    Parameters
    ----------
    shape : tuple of int
        ``(outer, n, inner)``.
    double_ : bool
        Whether data and result are float64; otherwise float32.
    temperature : float
        Divides the data first.
    negate : bool
        Negate the data first.
    logarithm : bool
        Write the logarithm of softmax.
    counted : bool
        Whether the second array is int64 of ``(outer, inner)``: how many leading elements of each lane count; 0 is written
        for the others.
    """

    cdef Py_ssize_t outer, n, inner
    cdef bint double_, negate, logarithm, counted
    cdef double temperature

    def __init__(self, tuple shape, bint double_, double temperature=1.0, bint negate=False, bint logarithm=False,
                 bint counted=False):
        self.outer, self.n, self.inner = shape
        self.double_, self.temperature, self.negate = double_, temperature, negate
        self.logarithm, self.counted = logarithm, counted

    cdef Py_ssize_t run(self, char** data, int threads) except? -2:
        cdef const long long* counts = <const long long*>data[1] if self.counted else NULL
        cdef char* out = data[2 if self.counted else 1]
        if 0 in (self.outer, self.n, self.inner):
            return -1
        with nogil:
            if self.double_:
                all_rows[double](<const double*>data[0], <double*>out, self.outer, self.n, self.inner, self.temperature,
                                 self.negate, self.logarithm, counts, threads)
            else:
                all_rows[float](<const float*>data[0], <float*>out, self.outer, self.n, self.inner, self.temperature,
                                self.negate, self.logarithm, counts, threads)
        return -1
