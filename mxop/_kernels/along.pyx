"""What goes along one axis of arrays seen as ``(outer, n, inner)``: where extremes are, running sums, and mixtures of elements.

Rows (``inner == 1``) are walked one by one; otherwise neighbouring columns go down the axis together.
"""
from cython cimport floating
from cython.parallel cimport prange
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from mxop._kernels.instruction_sets cimport BULK, ISA, itemsize_of
from mxop._kernels.machine cimport MX_ABREAST, MX_COLUMNS, MX_L1_BYTES, MX_THREAD_BYTES
from mxop._kernels.team cimport part_function, run_tasks, share_parts, task_function, threads_of
from mxop._kernels.work cimport Work

cdef extern from "mxop_bulk.h" nogil:
    enum:
        MX_FIND_ROWS

cdef enum:
    MOST_PARTS = 16     # of a row

ctypedef fused number:
    float
    double
    uint8_t
    int8_t
    int32_t
    int64_t


cdef class Find(Work):
    """Where the largest (or smallest) element is along axis 1, the first of equals or of NaN: of data, into int64 or float32.

    Parameters
    ----------
    shape : tuple of int
        ``(outer, n, inner)``, with ``n > 0``.
    dtype : int
        Code of the data's type, a compute type.
    largest, real : bool
        What is searched; whether the result is of float32.
    """

    cdef Py_ssize_t outer, n, inner, size, pieces, together     # pieces of the columns; rows of a task
    cdef int dtype
    cdef bint largest, real

    def __init__(self, tuple shape, int dtype, bint largest, bint real):
        self.outer, self.n, self.inner = shape
        self.dtype, self.largest, self.real, self.size = dtype, largest, real, itemsize_of(dtype)
        self.pieces = 1 if self.inner == 1 else (self.inner + MX_COLUMNS - 1) // MX_COLUMNS
        # short rows that lie in L1 together
        self.together = max(1, min(<Py_ssize_t>MX_FIND_ROWS, MX_L1_BYTES // 2 // (self.n * self.size))) if self.inner == 1 else 1

    cdef Py_ssize_t run(self, char** data, int threads) except? -2:
        cdef Py_ssize_t elements = self.outer * self.n * self.inner, t
        cdef Py_ssize_t tasks = (self.outer + self.together - 1) // self.together * self.pieces
        threads = threads_of(threads, elements // (MX_THREAD_BYTES // 4))
        if 1 <= tasks < threads and self.together == 1 and self.n >= (MX_THREAD_BYTES // 4):
            with nogil:
                for t in range(tasks):
                    self.task_in_parts(data[0], data[1], t, min(threads, <int>MOST_PARTS))
        else:
            run_tasks(<task_function>find, <void*>self, data, tasks, threads, elements * self.size)
        return -1

    cdef Py_ssize_t task_at(self, Py_ssize_t t, Py_ssize_t* count, Py_ssize_t* first) noexcept nogil:
        """Return where the elements of a task begin; say how many results it has, and where they begin."""
        cdef Py_ssize_t outer = t // self.pieces * self.together, column = t % self.pieces * MX_COLUMNS
        count[0] = min(self.together, self.outer - outer) if self.inner == 1 else min(<Py_ssize_t>MX_COLUMNS, self.inner - column)
        first[0] = outer * self.inner + column
        return outer * self.n * self.inner + column

    cdef void write(self, char* found, Py_ssize_t first, Py_ssize_t count, const int64_t* places) noexcept nogil:
        cdef int dtype = 0 if self.real else 6
        ISA.stores[dtype][6](count, places, found + first * itemsize_of(dtype), itemsize_of(dtype), 0)

    cdef void task_in_parts(self, const char* x, char* found, Py_ssize_t t, int parts) noexcept nogil:
        """Search one row, or one piece of columns, by several threads, and then among what these found."""
        cdef int64_t places[MOST_PARTS * MX_COLUMNS]
        cdef char among[MOST_PARTS * MX_COLUMNS * 8]
        cdef int64_t best[MX_COLUMNS]
        cdef Py_ssize_t count, first, step = self.inner * self.size, p, c, begin, end
        x += self.task_at(t, &count, &first) * self.size
        for p in prange(parts, num_threads=parts, schedule="static"):
            begin, end = self.n * p // parts, self.n * (p + 1) // parts
            if self.inner == 1:
                BULK.find[self.dtype](self.largest, places + p, x + begin * step, 1, end - begin)
            else:
                BULK.find_columns[self.dtype](self.largest, places + p * count, x + begin * step, end - begin, step, count)
            for c in range(count):
                places[p * count + c] += begin
                memcpy(among + (p * count + c) * self.size, x + places[p * count + c] * step + c * self.size, self.size)
        BULK.find_columns[self.dtype](self.largest, best, among, parts, count * self.size, count)
        for c in range(count):
            best[c] = places[best[c] * count + c]
        self.write(found, first, count, best)


cdef void find(Find self, char** data, Py_ssize_t t, int thread) noexcept nogil:
    """Search some rows, or a piece of the columns."""
    cdef int64_t places[MX_COLUMNS]
    cdef Py_ssize_t count, first
    cdef const char* x = data[0] + self.task_at(t, &count, &first) * self.size
    if self.inner == 1:
        BULK.find[self.dtype](self.largest, places, x, count, self.n)
    else:
        BULK.find_columns[self.dtype](self.largest, places, x, self.n, self.inner * self.size, count)
    self.write(data[1], first, count, places)


# ---- windows ----------------------------------------------------------------------------------------------------------------
ctypedef fused element:
    uint8_t
    int32_t
    int64_t

cdef struct Search:
    char** data
    char* scratch


cdef class FindInWindows(Work):
    """Where the largest element of each window is in its plane, the first of equals or of NaN: of data, into int64.

    Parameters
    ----------
    planes, height, width : int
        Of the data.
    rows, columns : arrays of int64
        ``(places in a window, windows)``: which row, and which column, is at each place of each window.
    dtype : int
        Code of the data's type, a compute type.
    """

    cdef Py_ssize_t planes, height, width, size, places, together   # places in a window; windows whose elements lie in L1 together
    cdef const int64_t[:, ::1] rows, columns
    cdef int dtype

    def __init__(self, Py_ssize_t planes, Py_ssize_t height, Py_ssize_t width, rows, columns, int dtype):
        self.planes, self.height, self.width, self.dtype, self.size = planes, height, width, dtype, itemsize_of(dtype)
        self.rows, self.columns, self.places = rows, columns, rows.shape[0] * columns.shape[0]
        self.together = max(1, min(<Py_ssize_t>MX_COLUMNS, MX_L1_BYTES // 2 // (self.places * self.size)))

    cdef Py_ssize_t run(self, char** data, int threads) except? -2:
        cdef Py_ssize_t nbytes = self.planes * self.rows.shape[1] * self.columns.shape[1] * self.places * self.size
        cdef Search run = Search(data, NULL)
        threads = threads_of(threads, min(self.planes, nbytes // MX_THREAD_BYTES))
        run.scratch = <char*>malloc(threads * self.places * self.together * self.size)
        if run.scratch == NULL:
            raise MemoryError(f"no memory for {self.together} windows of {self.places} elements")
        run_tasks(<task_function>find_in_plane, <void*>self, &run, self.planes, threads, nbytes)
        free(run.scratch)
        return -1


cdef void take_windows(FindInWindows self, const element* x, element* windows, Py_ssize_t i, Py_ssize_t j, Py_ssize_t height,
                       Py_ssize_t n) noexcept nogil:
    """Copy some windows, those of `n` columns in each of `height` rows: what has one place in its window together."""
    cdef Py_ssize_t p, q, r, c
    cdef const element* row
    cdef const int64_t* column
    for p in range(self.rows.shape[0]):
        for q in range(self.columns.shape[0]):
            column = &self.columns[q, j]
            for r in range(height):
                row = x + self.rows[p, i + r] * self.width
                for c in range(n):
                    windows[c] = row[column[c]]
                windows += n


cdef void find_windows(FindInWindows self, const element* x, int64_t* found, element* windows) noexcept nogil:
    """Search one plane, a few windows at a time: of some whole rows, or of a part of one."""
    cdef Py_ssize_t down = self.rows.shape[1], across = self.columns.shape[1], width = min(across, self.together)
    cdef Py_ssize_t step = max(1, self.together // across), b, c, i, j, r, v, k, n, height, several = self.columns.shape[0]
    cdef int64_t at[MX_COLUMNS]
    cdef int64_t* row
    for b in range((down + step - 1) // step):
        i, height = b * step, min(step, down - b * step)
        for c in range((across + width - 1) // width):
            j, n = c * width, min(width, across - c * width)
            take_windows(self, x, windows, i, j, height, n)
            BULK.find_columns[self.dtype](True, at, <char*>windows, self.places, height * n * self.size, height * n)
            for r in range(height):
                row = found + (i + r) * across + j
                for v in range(n):
                    k = at[r * n + v]
                    row[v] = self.rows[k // several, i + r] * self.width + self.columns[k % several, j + v]


cdef void find_in_plane(FindInWindows self, Search* run, Py_ssize_t t, int thread) noexcept nogil:
    cdef char* scratch = run.scratch + thread * self.places * self.together * self.size
    cdef const char* x = run.data[0] + t * self.height * self.width * self.size
    cdef int64_t* found = <int64_t*>run.data[1] + t * self.rows.shape[1] * self.columns.shape[1]
    if self.size == 1:
        find_windows(self, <const uint8_t*>x, found, <uint8_t*>scratch)
    elif self.size == 4:
        find_windows(self, <const int32_t*>x, found, <int32_t*>scratch)
    else:
        find_windows(self, <const int64_t*>x, found, <int64_t*>scratch)


# ---- sums -------------------------------------------------------------------------------------------------------------------
cdef void sum_row(const number* x, number* y, Py_ssize_t n) noexcept nogil:
    """Write the sums of the elements up to each one of a row."""
    cdef Py_ssize_t i
    cdef number total = x[0]
    y[0] = total
    for i in range(1, n):
        total = total + x[i]
        y[i] = total


cdef void sum_abreast(const number* x, number* y, Py_ssize_t n) noexcept nogil:
    """Do so for several rows at once: an addition waits for the one before it in its row, and not for others."""
    cdef number totals[MX_ABREAST]
    cdef Py_ssize_t i, r
    for r in range(MX_ABREAST):
        y[r * n] = totals[r] = x[r * n]
    for i in range(1, n):
        for r in range(MX_ABREAST):
            totals[r] = totals[r] + x[r * n + i]
            y[r * n + i] = totals[r]


cdef void sum_columns(const number* x, number* y, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t width) noexcept nogil:
    """Write the sums of the elements up to each one of neighbouring columns."""
    cdef Py_ssize_t i, j
    cdef const number* before
    for j in range(width):
        y[j] = x[j]
    for i in range(1, n):
        before = y
        x += inner
        y += inner
        for j in range(width):
            y[j] = before[j] + x[j]


cdef void sum_task(RunningSum self, char** data, Py_ssize_t begin, Py_ssize_t end, int thread) noexcept nogil:
    if self.dtype == 0:
        sum_some(self, <const float*>data[0], <float*>data[1], begin, end)
    elif self.dtype == 1:
        sum_some(self, <const double*>data[0], <double*>data[1], begin, end)
    elif self.dtype == 3:
        sum_some(self, <const uint8_t*>data[0], <uint8_t*>data[1], begin, end)
    elif self.dtype == 4:
        sum_some(self, <const int32_t*>data[0], <int32_t*>data[1], begin, end)
    elif self.dtype == 5:
        sum_some(self, <const int8_t*>data[0], <int8_t*>data[1], begin, end)
    else:
        sum_some(self, <const int64_t*>data[0], <int64_t*>data[1], begin, end)


cdef void sum_some(RunningSum self, const number* x, number* y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Write the sums of some rows, or of some columns of matrices."""
    cdef Py_ssize_t first, t, r
    for t in range(begin, end):
        first = t // self.pieces * self.n * self.inner + t % self.pieces * MX_COLUMNS
        if self.inner == 1 and (t + 1) * MX_ABREAST <= self.outer:
            sum_abreast(x + t * MX_ABREAST * self.n, y + t * MX_ABREAST * self.n, self.n)
        elif self.inner == 1:
            for r in range(t * MX_ABREAST, self.outer):
                sum_row(x + r * self.n, y + r * self.n, self.n)
        else:
            sum_columns(x + first, y + first, self.n, self.inner, min(<Py_ssize_t>MX_COLUMNS, self.inner - t % self.pieces * MX_COLUMNS))


cdef class RunningSum(Work):
    """Sums of the elements up to each one along axis 1: of data, into a result of their type; each adds up in order.

    Parameters
    ----------
    shape : tuple of int
        ``(outer, n, inner)``.
    dtype : int
        Code of the type, a compute type.
    """

    cdef Py_ssize_t outer, n, inner, pieces     # of the columns
    cdef int dtype

    def __init__(self, tuple shape, int dtype):
        self.outer, self.n, self.inner = shape
        self.dtype, self.pieces = dtype, (self.inner + MX_COLUMNS - 1) // MX_COLUMNS

    cdef Py_ssize_t run(self, char** data, int threads) except? -2:
        cdef Py_ssize_t elements = self.outer * self.n * self.inner
        cdef Py_ssize_t tasks = (self.outer + MX_ABREAST - 1) // MX_ABREAST if self.inner == 1 else self.outer * self.pieces
        if elements:
            with nogil:
                share_parts(<part_function>sum_task, <void*>self, data, tasks,
                            threads_of(threads, min(elements // (MX_THREAD_BYTES // 4), tasks)), 0)
        return -1


cdef void mix(const floating* x, floating* y, const Py_ssize_t* starts, const Py_ssize_t* places, const double* weights, bint even,
              Py_ssize_t inner) noexcept nogil:
    """Write one row of a mixture: elements times their weights, or their sum times the first one where all are `even`."""
    cdef Py_ssize_t j, c, first = starts[0], last = starts[1]
    cdef const floating* row
    cdef floating weight, total
    if inner == 1:
        total = 0
        for j in range(first, last):
            total = total + (x[places[j]] if even else x[places[j]] * <floating>weights[j])
        y[0] = total * <floating>weights[first] if even and first < last else total
        return
    if first == last:
        for c in range(inner):
            y[c] = 0
    for j in range(first, last):
        row, weight = x + places[j] * inner, 1 if even else <floating>weights[j]
        if j == first:
            for c in range(inner):
                y[c] = weight * row[c]
        else:
            for c in range(inner):
                y[c] = y[c] + weight * row[c]
    if even and first < last:
        weight = <floating>weights[first]
        for c in range(inner):
            y[c] = y[c] * weight


cdef void mix_abreast(const floating* x, floating* y, const Py_ssize_t* starts, const Py_ssize_t* places, const double* weights,
                      bint even, Py_ssize_t n, Py_ssize_t size) noexcept nogil:
    """Write an element of each of several rows, which are `n` elements apart, and those of the results `size`."""
    cdef floating totals[MX_ABREAST]
    cdef floating weight
    cdef Py_ssize_t j, r
    for r in range(MX_ABREAST):
        totals[r] = 0
    for j in range(starts[0], starts[1]):
        weight = 1 if even else <floating>weights[j]
        for r in range(MX_ABREAST):
            totals[r] = totals[r] + x[places[j] + r * n] * weight
    weight = <floating>weights[starts[0]] if even and starts[0] < starts[1] else 1
    for r in range(MX_ABREAST):
        y[r * size] = totals[r] * weight


cdef class Mixture(Work):
    """Mixtures of elements along axis 1, into results of their type: a sparse matrix times the data.

    Elements without a weight are not read.

    Parameters
    ----------
    shape : tuple of int
        ``(outer, n, inner)`` of the data.
    dtype : int
        Code of float32 or float64.
    starts, places : arrays of intp
        Where the places of each result begin among all, and the last ones end; and which elements these are.
    weights : array of float64
        One for each place.
    even : bool
        Whether all weights of a result are the same: then its elements are added first.
    """

    cdef Py_ssize_t outer, n, inner, size, together     # results of a row; rows of a task
    cdef int dtype
    cdef bint even
    cdef const Py_ssize_t[::1] starts, places
    cdef const double[::1] weights

    def __init__(self, tuple shape, int dtype, const Py_ssize_t[::1] starts, const Py_ssize_t[::1] places,
                 const double[::1] weights, bint even):
        cdef Py_ssize_t k
        self.outer, self.n, self.inner = shape
        self.starts, self.places, self.weights, self.even = starts, places, weights, even
        self.size, self.dtype, self.together = starts.shape[0] - 1, dtype, MX_ABREAST if self.inner == 1 else 1
        for k in range(places.shape[0]):
            if not 0 <= places[k] < self.n:
                raise IndexError(f"place {places[k]} of {self.n}")

    cdef Py_ssize_t run(self, char** data, int threads) except? -2:
        cdef Py_ssize_t elements = self.outer * max(self.n, self.size) * self.inner
        run_tasks(<task_function>mix_task, <void*>self, data, (self.outer + self.together - 1) // self.together,
                  threads_of(threads, elements // (MX_THREAD_BYTES // 4)), 0)
        return -1


cdef void mix_task(Mixture self, char** data, Py_ssize_t t, int thread) noexcept nogil:
    if self.dtype == 0:
        mix_some(self, <const float*>data[0], <float*>data[1], t)
    else:
        mix_some(self, <const double*>data[0], <double*>data[1], t)


cdef void mix_some(Mixture self, const floating* x, floating* y, Py_ssize_t t) noexcept nogil:
    """Write some rows, where these have an element for each place, or the rows of a matrix."""
    cdef Py_ssize_t first = t * self.together, last = min(first + self.together, self.outer), outer, i
    cdef const Py_ssize_t* places = &self.places[0]
    cdef const double* weights = &self.weights[0]
    for i in range(self.size):
        if last == first + MX_ABREAST:
            mix_abreast(x + first * self.n, y + first * self.size + i, &self.starts[i], places, weights, self.even, self.n,
                        self.size)
            continue
        for outer in range(first, last):
            mix(x + outer * self.n * self.inner, y + (outer * self.size + i) * self.inner, &self.starts[i], places, weights,
                self.even, self.inner)
