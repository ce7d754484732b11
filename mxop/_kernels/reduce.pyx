"""Reductions: a program on each block of elements, then an associative combination of the values.

Floating point combines in double, so float32 and float16 sums are as good as their result can show; integers combine in
64 bits.  The order of combination depends on the shape alone, never on the number of threads: results repeat bit by bit.
May import :mod:`.interp` and :mod:`.memory`.
"""
from cython.parallel cimport prange
from libc.math cimport INFINITY, hypot, sqrt

from mxop._kernels.interp cimport (
    BLOCK_BYTES, Operand, Program, Value, collapse, extreme_double, extreme_float, itemsize_of, sum_doubles, sum_floats,
    sum_squares, threads_for,
)
from mxop._kernels.memory cimport Block, block_new, block_release

ctypedef unsigned char uchar
ctypedef signed char schar
ctypedef long long longlong

cdef fused number:
    float
    double
    uchar
    int
    schar
    longlong

CODES = {"add": COMBINE_ADD, "mul": COMBINE_MUL, "max": COMBINE_MAX, "min": COMBINE_MIN, "hypot": COMBINE_HYPOT}

# An accumulator: one of the two, by the compute type.
cdef union Total:
    double d
    long long i

cdef enum:
    CHUNK = 65536     # elements that one task combines when there are few results
    MAX_CHUNKS = 64

cdef Total identity(int combine, int ctype) noexcept nogil:
    """Return the value of an empty reduction."""
    cdef Total t
    t.i = 0
    if ctype <= 1:
        t.d = 0.0 if combine == COMBINE_ADD or combine == COMBINE_HYPOT else 1.0 if combine == COMBINE_MUL else (
            -INFINITY if combine == COMBINE_MAX else INFINITY)
    elif combine == COMBINE_MUL:
        t.i = 1
    elif combine >= COMBINE_MAX:
        if ctype == 3:
            t.i = 0 if combine == COMBINE_MAX else 255
        elif ctype == 5:
            t.i = -128 if combine == COMBINE_MAX else 127
        elif ctype == 4:
            t.i = -2147483647 - 1 if combine == COMBINE_MAX else 2147483647
        else:
            t.i = -9223372036854775807 - 1 if combine == COMBINE_MAX else 9223372036854775807
    return t


cdef extern from "mxop_sums.h" nogil:
    double mx_larger(double a, double v)
    double mx_smaller(double a, double v)


cdef inline double join_d(int combine, double a, double v) noexcept nogil:
    if combine == COMBINE_ADD:
        return a + v
    if combine == COMBINE_MUL:
        return a * v
    if combine == COMBINE_HYPOT:
        return hypot(a, v)
    return mx_larger(a, v) if combine == COMBINE_MAX else mx_smaller(a, v)


cdef inline long long join_i(int combine, long long a, long long v) noexcept nogil:
    if combine == COMBINE_ADD:
        return a + v
    if combine == COMBINE_MUL:
        return a * v
    if combine == COMBINE_MAX:
        return v if v > a else a
    return v if v < a else a


cdef void join_row(int combine, Total* total, const number* x, Py_ssize_t n) noexcept nogil:
    """Combine a block of values into one accumulator."""
    cdef Py_ssize_t i
    cdef double d
    cdef long long k
    if number is float:
        if combine == COMBINE_ADD:
            total.d = total.d + sum_floats(x, n)
        elif combine == COMBINE_MUL:
            d = total.d
            for i in range(n):
                d = d * x[i]
            total.d = d
        else:
            total.d = extreme_float(combine == COMBINE_MAX, total.d, x, n)
    elif number is double:
        if combine == COMBINE_ADD:
            total.d = total.d + sum_doubles(x, n)
        elif combine == COMBINE_MUL:
            d = total.d
            for i in range(n):
                d = d * x[i]
            total.d = d
        else:
            total.d = extreme_double(combine == COMBINE_MAX, total.d, x, n)
    else:
        k = total.i
        for i in range(n):
            k = join_i(combine, k, x[i])
        total.i = k


cdef void join_columns(int combine, Total* totals, const number* x, Py_ssize_t n) noexcept nogil:
    """Combine a block of values, each into an accumulator of its own."""
    cdef Py_ssize_t i
    cdef double* d = <double*>totals
    cdef long long* k = <long long*>totals
    if number is float or number is double:
        if combine == COMBINE_ADD:
            for i in range(n):
                d[i] = d[i] + x[i]
        elif combine == COMBINE_MUL:
            for i in range(n):
                d[i] = d[i] * x[i]
        elif combine == COMBINE_HYPOT:  # of the squares; see columns_task
            for i in range(n):
                d[i] = d[i] + x[i] * x[i]
        elif combine == COMBINE_MAX:
            for i in range(n):
                d[i] = mx_larger(d[i], x[i])
        else:
            for i in range(n):
                d[i] = mx_smaller(d[i], x[i])
    else:
        for i in range(n):
            k[i] = join_i(combine, k[i], x[i])


cdef void join_row_any(int ctype, int combine, Total* total, const char* x, Py_ssize_t n) noexcept nogil:
    if ctype == 0:
        join_row[float](combine, total, <const float*>x, n)
    elif ctype == 1:
        join_row[double](combine, total, <const double*>x, n)
    elif ctype == 3:
        join_row[uchar](combine, total, <const unsigned char*>x, n)
    elif ctype == 4:
        join_row[int](combine, total, <const int*>x, n)
    elif ctype == 5:
        join_row[schar](combine, total, <const signed char*>x, n)
    else:
        join_row[longlong](combine, total, <const long long*>x, n)


cdef void join_columns_any(int ctype, int combine, Total* totals, const char* x, Py_ssize_t n) noexcept nogil:
    if ctype == 0:
        join_columns[float](combine, totals, <const float*>x, n)
    elif ctype == 1:
        join_columns[double](combine, totals, <const double*>x, n)
    elif ctype == 3:
        join_columns[uchar](combine, totals, <const unsigned char*>x, n)
    elif ctype == 4:
        join_columns[int](combine, totals, <const int*>x, n)
    elif ctype == 5:
        join_columns[schar](combine, totals, <const signed char*>x, n)
    else:
        join_columns[longlong](combine, totals, <const long long*>x, n)


cdef inline Py_ssize_t offset_of(Py_ssize_t index, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides) noexcept nogil:
    cdef Py_ssize_t offset = 0
    cdef int d
    for d in range(ndim - 1, -1, -1):
        offset += (index % shape[d]) * strides[d]
        index = index // shape[d]
    return offset


cdef double scale_for(double squares) noexcept nogil:
    """Return what to multiply numbers with, so that the sum of their squares neither overflows nor vanishes."""
    # 2**-600, 2**600 and 2**-900; the least and the largest number keep a place after that
    return 2.409919865102884e-181 if squares == INFINITY else 4.149515568880993e+180 if squares < 1.1830521861667747e-271 else 1.0


cdef double length_of(const double* x, Py_ssize_t n) noexcept nogil:
    """Return the square root of the sum of the squares of numbers that lie side by side."""
    cdef double squares = sum_squares(x, n, 1.0), scale = scale_for(squares)
    return sqrt(squares) if scale == 1.0 else sqrt(sum_squares(x, n, scale)) / scale


cdef void join_range(Program map_, int combine, const Operand* inputs, const char* scalars, char* scratch, Py_ssize_t block,
                     Py_ssize_t start, Py_ssize_t stop, double scale, Total* total) noexcept nogil:
    """Combine mapped elements ``start`` to ``stop`` with an accumulator; for a length, add up squares, scaled before."""
    cdef Py_ssize_t at = start, length, stride = (block * map_.itemsize + 63) & ~63
    cdef const char* values
    while at < stop:
        length = min(block, stop - at)
        values = map_.block(at, length, inputs, scalars, scratch, stride, &total.d if combine == COMBINE_ADD else NULL)
        if combine == COMBINE_HYPOT:
            total.d = total.d + sum_squares(<const double*>values, length, scale)
        elif values != NULL:
            join_row_any(map_.ctype, combine, total, values, length)
        at += length


cdef void combine_range(Program map_, int combine, const Operand* inputs, const char* scalars, char* scratch,
                        Py_ssize_t block, Py_ssize_t start, Py_ssize_t stop, Total* total) noexcept nogil:
    """Combine mapped elements ``start`` to ``stop``."""
    cdef double scale
    total[0] = identity(combine, map_.ctype)
    join_range(map_, combine, inputs, scalars, scratch, block, start, stop, 1.0, total)
    if combine == COMBINE_HYPOT:
        scale = scale_for(total.d)
        if scale != 1.0:
            total.d = 0.0
            join_range(map_, combine, inputs, scalars, scratch, block, start, stop, scale, total)
        total.d = sqrt(total.d) / scale


cdef void rows_task(Program map_, int combine, const Reduced* s, const Operand* reduced, const char* scalars, char* scratch,
                    Py_ssize_t block, Py_ssize_t kept, Py_ssize_t start, Py_ssize_t stop, Total* total) noexcept nogil:
    """Combine reduced elements ``start`` to ``stop`` of one result; neighbours in memory belong to one result."""
    cdef Operand operand = reduced[0]
    operand.data = s.data + offset_of(kept, s.n_kept, s.kept_shape, s.kept_strides)
    combine_range(map_, combine, &operand, scalars, scratch, block, start, stop, total)


cdef void reduce_rows(Program map_, int combine, const Operand* inputs, Py_ssize_t n_reduced, const char* scalars,
                      char* scratch, Py_ssize_t block, Py_ssize_t first, Py_ssize_t last, char* results) noexcept nogil:
    """Reduce rows ``first`` to ``last`` of a map of several inputs, whose elements are counted row by row.

    Write one value of the compute type for each row; the order of combination is that of :func:`reduce`.
    """
    cdef Py_ssize_t row = first, k, stride = (block * map_.itemsize + 63) & ~63
    cdef Py_ssize_t together = max(block // n_reduced, 1)  # short rows are computed several at a time
    cdef const char* values
    cdef Total total
    while row < last:
        together = min(together, last - row)
        if together > 1:
            values = map_.block(row * n_reduced, together * n_reduced, inputs, scalars, scratch, stride, NULL)
            for k in range(together):
                if combine == COMBINE_HYPOT:
                    total.d = length_of(<const double*>values + k * n_reduced, n_reduced)
                else:
                    total = identity(combine, map_.ctype)
                    join_row_any(map_.ctype, combine, &total, values + k * n_reduced * map_.itemsize, n_reduced)
                store_total(results, map_.ctype, row + k - first, &total)
        else:
            combine_range(map_, combine, inputs, scalars, scratch, block, row * n_reduced, (row + 1) * n_reduced, &total)
            store_total(results, map_.ctype, row - first, &total)
        row += together


cdef void columns_task(Program map_, int combine, const Reduced* s, const Operand* reduced, const char* scalars,
                       char* scratch, Py_ssize_t block, Py_ssize_t outer, Py_ssize_t column, Py_ssize_t width,
                       Py_ssize_t start, Py_ssize_t stop, Total* totals) noexcept nogil:
    """Combine rows ``start`` to ``stop`` of a stretch of results; neighbours in memory belong to different results."""
    cdef Operand operand
    cdef int last = s.n_kept - 1
    cdef Py_ssize_t r, i, stride = (block * map_.itemsize + 63) & ~63
    cdef char* base = s.data + offset_of(outer, last, s.kept_shape, s.kept_strides) + column * s.kept_strides[last]
    cdef const char* values
    cdef Total first = identity(combine, map_.ctype)
    for i in range(width):
        totals[i] = first
    operand.dtype = s.dtype
    operand.ndim = 1
    operand.shape[0] = width
    operand.strides[0] = s.kept_strides[last]
    operand.contiguous = s.kept_strides[last] == itemsize_of(s.dtype)
    for r in range(start, stop):
        operand.data = base + offset_of(r, s.n_reduced, s.reduced_shape, s.reduced_strides)
        values = map_.block(0, width, &operand, scalars, scratch, stride, NULL)
        join_columns_any(map_.ctype, combine, totals, values, width)
    if combine == COMBINE_HYPOT:
        for i in range(width):
            if scale_for(totals[i].d) == 1.0:
                totals[i].d = sqrt(totals[i].d)
            else:
                rows_task(map_, combine, s, reduced, scalars, scratch, block, outer * s.kept_shape[last] + column + i, start,
                          stop, &totals[i])


cdef void collapse_dims(int* ndim, Py_ssize_t* shape, Py_ssize_t* strides, int dtype) noexcept nogil:
    cdef Operand o
    cdef int i
    o.dtype = dtype
    collapse(&o, ndim[0], shape, strides)
    ndim[0] = o.ndim
    for i in range(o.ndim):
        shape[i] = o.shape[i]
        strides[i] = o.strides[i]


cdef int reduce(Program map_, int combine, Reduced* source, const Value* params, char* results) except -1:
    """Reduce an array; write one value of the compute type for each kept element, in C order.

    Parameters
    ----------
    map_ : Program
        One input, one output.
    combine : int
        One of the ``COMBINE_`` codes.
    source : Reduced*
        The array; its description is collapsed in place.
    results : char*
        Room for the results.
    """
    cdef Py_ssize_t n_kept = 1, n_reduced = 1, chunks, per_chunk, tasks, width, tiles, t, c, j, need, room, outer, column
    cdef Py_ssize_t block = BLOCK_BYTES // map_.itemsize
    cdef int i, threads, thread, last
    cdef bint columns
    cdef Operand reduced
    cdef Block* memory = NULL
    cdef Block* partial = NULL
    cdef Total few[64]
    cdef char small[4096 + 64]
    cdef Total* totals = few
    cdef Total total
    cdef char* scratch = <char*>((<Py_ssize_t>small + 63) & ~63)
    cdef char scalars[1024]
    for i in range(source.n_kept):
        n_kept *= source.kept_shape[i]
    for i in range(source.n_reduced):
        n_reduced *= source.reduced_shape[i]
    if n_kept == 0:
        return 0
    if map_.n_scalars > 128:
        raise MemoryError("the formula of a reduction has too many scalars")
    map_.fill_scalars(params, scalars)
    total = identity(combine, map_.ctype)
    if n_reduced == 0:
        for j in range(n_kept):
            store_total(results, map_.ctype, j, &total)
        return 0
    collapse_dims(&source.n_kept, source.kept_shape, source.kept_strides, source.dtype)
    reduced.dtype = source.dtype
    collapse(&reduced, source.n_reduced, source.reduced_shape, source.reduced_strides)
    collapse_dims(&source.n_reduced, source.reduced_shape, source.reduced_strides, source.dtype)
    last = source.n_kept - 1
    columns = last >= 0 and n_reduced > 0 and source.n_reduced > 0 and (
        abs(source.kept_strides[last]) < abs(source.reduced_strides[source.n_reduced - 1]))
    if columns:
        width = min(source.kept_shape[last], block // 2)
        tiles = (source.kept_shape[last] + width - 1) // width
        tasks = n_kept // source.kept_shape[last] * tiles
    else:
        width, tiles, tasks = 1, 1, n_kept
    chunks = 1
    if tasks < 16:  # few results: cut the reduced elements, always in the same places
        chunks = min(max(n_reduced * width // CHUNK, 1), MAX_CHUNKS)
    per_chunk = (n_reduced + chunks - 1) // chunks
    threads = threads_for(n_kept * n_reduced * map_.itemsize)
    if tasks * chunks < threads:
        threads = <int>(tasks * chunks)
    block = min(block, max(width if columns else per_chunk, 1))
    room = ((block * map_.itemsize + 63) & ~63) * map_.n_registers
    if room * threads > 4096:
        memory = block_new(room * threads)
        scratch = memory.data
    if n_kept * chunks > 64:
        partial = block_new(n_kept * chunks * sizeof(Total))
        totals = <Total*>partial.data
    if threads == 1:
        with nogil:
            for t in range(tasks * chunks):
                if columns:
                    columns_entry(map_, combine, source, &reduced, scalars, scratch, room, block, t, chunks, per_chunk,
                                  n_reduced, width, tiles, n_kept, totals)
                else:
                    rows_entry(map_, combine, source, &reduced, scalars, scratch, room, block, t, chunks, per_chunk,
                               n_reduced, n_kept, totals)
    elif columns:
        for t in prange(tasks * chunks, nogil=True, schedule="dynamic", num_threads=threads):
            columns_entry(map_, combine, source, &reduced, scalars, scratch, room, block, t, chunks, per_chunk, n_reduced,
                          width, tiles, n_kept, totals)
    else:
        for t in prange(tasks * chunks, nogil=True, schedule="dynamic", num_threads=threads):
            rows_entry(map_, combine, source, &reduced, scalars, scratch, room, block, t, chunks, per_chunk, n_reduced,
                       n_kept, totals)
    for j in range(n_kept):
        total = totals[j]
        for c in range(1, chunks):
            if map_.ctype <= 1:
                total.d = join_d(combine, total.d, totals[c * n_kept + j].d)
            else:
                total.i = join_i(combine, total.i, totals[c * n_kept + j].i)
        store_total(results, map_.ctype, j, &total)
    if partial != NULL:
        block_release(partial)
    if memory != NULL:
        block_release(memory)
    return 0


cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    static int mx_thread(void) { return omp_get_thread_num(); }
    #else
    static int mx_thread(void) { return 0; }
    #endif
    """
    int mx_thread() noexcept nogil


cdef void rows_entry(Program map_, int combine, const Reduced* source, const Operand* reduced, const char* scalars,
                     char* memory, Py_ssize_t room, Py_ssize_t block, Py_ssize_t t, Py_ssize_t chunks, Py_ssize_t per_chunk,
                     Py_ssize_t n_reduced, Py_ssize_t n_kept, Total* totals) noexcept nogil:
    """Do task `t`: one result, one chunk."""
    cdef Py_ssize_t j = t // chunks, c = t % chunks
    rows_task(map_, combine, source, reduced, scalars, memory + room * mx_thread(), block, j, c * per_chunk,
              min(n_reduced, (c + 1) * per_chunk), &totals[c * n_kept + j])


cdef void columns_entry(Program map_, int combine, const Reduced* source, const Operand* reduced, const char* scalars,
                        char* memory, Py_ssize_t room, Py_ssize_t block, Py_ssize_t t, Py_ssize_t chunks, Py_ssize_t per_chunk,
                        Py_ssize_t n_reduced, Py_ssize_t width, Py_ssize_t tiles, Py_ssize_t n_kept,
                        Total* totals) noexcept nogil:
    """Do task `t`: one stretch of results, one chunk."""
    cdef Py_ssize_t c = t % chunks, tile = t // chunks, outer, column, inner = source.kept_shape[source.n_kept - 1]
    outer = tile // tiles
    column = tile % tiles * width
    columns_task(map_, combine, source, reduced, scalars, memory + room * mx_thread(), block, outer, column,
                 min(width, inner - column), c * per_chunk, min(n_reduced, (c + 1) * per_chunk),
                 &totals[c * n_kept + outer * inner + column])


cdef void store_total(char* results, int ctype, Py_ssize_t j, const Total* total) noexcept nogil:
    if ctype == 0:
        (<float*>results)[j] = <float>total.d
    elif ctype == 1:
        (<double*>results)[j] = total.d
    elif ctype == 3:
        (<unsigned char*>results)[j] = <unsigned char>total.i
    elif ctype == 4:
        (<int*>results)[j] = <int>total.i
    elif ctype == 5:
        (<signed char*>results)[j] = <signed char>total.i
    else:
        (<long long*>results)[j] = total.i
