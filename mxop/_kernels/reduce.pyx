"""Reductions: a program on each element, then an associative combination of the values.

Floating point combines in double, so float32 and float16 sums are as good as their result can show; integers combine in
64 bits.  The order of combination depends on shape and axes, never on the number of threads, nor on whether the elements lie
beside each other: a view of an array has the result of its copy bit by bit, unless it repeats elements.
Elements of which nothing is computed are combined where they lie.  The loops are in ``mxop_fold.h``.
"""
from libc.math cimport INFINITY, hypot, sqrt

from mxop._kernels.instruction_sets cimport BULK, ISA, itemsize_of, mx_prefetch
from mxop._kernels.machine cimport (
    MX_PREFETCH_BYTES, MX_SUM_CHUNK, MX_SUM_CHUNKS, MX_SUM_COLUMNS, MX_SUM_NARROW, MX_SUM_PARTS, MX_SUM_RUN, MX_SUM_TASKS,
    MX_TASKS_A_THREAD,
)
from mxop._kernels.operands cimport Operand, Value, collapse, distance, load_block
from mxop._kernels.interp cimport BLOCK_BYTES, MOST_SCALARS, Ahead, Program
from mxop._kernels.memory cimport Block, block_new, block_release
from mxop._kernels.team cimport run_tasks, task_function, threads_for

CODES = {"add": COMBINE_ADD, "mul": COMBINE_MUL, "max": COMBINE_MAX, "min": COMBINE_MIN, "hypot": COMBINE_HYPOT}

# An accumulator: one of the two, by the compute type.
cdef union Total:
    double d
    long long i

cdef enum:
    TOGETHER = 256      # rows of a task at most, whose totals lie on the stack

# One reduction, as its tasks see it.
cdef struct Job:
    const Reduced* source
    Operand reduced             # the reduced axes; its data are those of one result
    const char* scalars
    int combine
    int ctype                   # of the map's values
    int vtype                   # in which they are combined: lengths of short numbers need no more than float32
    bint plain                  # nothing is computed of an element
    bint direct                 # and it has the type already
    bint columns                # neighbours in memory belong to different results
    bint side_by_side           # these are combined where they lie
    Py_ssize_t run              # elements of one result that would lie side by side in a copy
    Py_ssize_t block, stride    # elements computed at once; bytes of a register
    Py_ssize_t n_kept, n_reduced, inner, width, tiles, tasks, chunks, per_chunk
    Py_ssize_t together         # stretches of columns of one task: short ones
    char* scratch               # of every thread
    Py_ssize_t room
    Total* totals               # of all parts, if tasks are divided
    Ahead* ahead                # what is fetched while values are computed, or NULL
    char* results

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
        t.i = 0 if ctype == 3 else <long long>-1 << (8 * itemsize_of(ctype) - 1)
        if combine == COMBINE_MIN:
            t.i = 255 if ctype == 3 else ~t.i
    return t


cdef inline int accumulator(int ctype) noexcept nogil:
    """Return the type of the accumulators of a compute type."""
    return 1 if ctype <= 1 else 6


cdef inline void store_totals(char* results, int ctype, Py_ssize_t first, const Total* totals, Py_ssize_t n) noexcept nogil:
    """Write accumulators as values of the compute type."""
    cdef Py_ssize_t size = itemsize_of(ctype)
    ISA.stores[ctype][accumulator(ctype)](n, totals, results + first * size, size, 0)


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


# ---- values ---------------------------------------------------------------------------------------------------------------
cdef const char* values_of(Program map_, const Job* job, const Operand* operand, Py_ssize_t start, Py_ssize_t length,
                           char* scratch, double* total) noexcept nogil:
    """Compute some values and return where they lie; or add them to `total`, if there is one and that is as quick."""
    if not job.plain:
        return map_.block(start, length, operand, job.scalars, scratch, job.stride, total, job.ahead)
    if job.direct and operand.contiguous:
        return operand.data + start * itemsize_of(job.vtype)
    load_block(operand, job.vtype, start, length, scratch)
    return scratch


cdef void join_runs(const Job* job, const Operand* operand, char* scratch, Py_ssize_t start, Py_ssize_t stop,
                    Total* total) noexcept nogil:
    """Combine values ``start`` to ``stop`` run by run: where they lie, and meanwhile fetch the next, or of a copy."""
    cdef int last = operand.ndim - 1
    cdef Py_ssize_t size = itemsize_of(job.vtype), at = start, end, length
    cdef Py_ssize_t beside = job.n_reduced if operand.contiguous else operand.shape[last] if operand.strides[last] == size else 1
    while at < stop:
        end = min(stop, at + job.run - at % job.run)
        if operand.contiguous or end - at <= beside - at % beside:
            if end < stop:
                mx_prefetch(operand.data + offset_of(end, operand.ndim, operand.shape, operand.strides),
                            min(job.run * size, <Py_ssize_t>MX_PREFETCH_BYTES))
            BULK.fold[job.vtype](job.combine, total, operand.data + (at * size if operand.contiguous else offset_of(
                at, operand.ndim, operand.shape, operand.strides)), 1, 0, end - at, job.block)
            at = end
        while at < end:
            length = min(job.block, end - at)
            load_block(operand, job.vtype, at, length, scratch)
            BULK.fold[job.vtype](job.combine, total, scratch, 1, 0, length, job.block)
            at += length


cdef void join_range(Program map_, const Job* job, const Operand* operand, char* scratch, Py_ssize_t start, Py_ssize_t stop,
                     double scale, Total* total) noexcept nogil:
    """Combine values ``start`` to ``stop`` with an accumulator; for a length, add up squares, scaled before."""
    cdef Py_ssize_t at = start, length
    cdef const char* values
    if job.direct and scale == 1.0 and job.run >= min(job.n_reduced, <Py_ssize_t>MX_SUM_RUN):
        join_runs(job, operand, scratch, start, stop, total)
        return
    while at < stop:
        length = min(job.block, stop - at)
        values = values_of(map_, job, operand, at, length, scratch, &total.d if job.combine == COMBINE_ADD else NULL)
        if scale != 1.0:
            total.d = total.d + ISA.squares_f64(<const double*>values, length, scale)
        elif values != NULL:
            BULK.fold[job.vtype](job.combine, total, values, 1, 0, length, job.block)
        at += length


cdef void make_length(Program map_, const Job* job, const Operand* operand, char* scratch, Py_ssize_t start, Py_ssize_t stop,
                      Total* total) noexcept nogil:
    """Turn a sum of squares into a length; where it went out of range, add up again, scaled."""
    cdef double scale = 1.0 if job.vtype == 0 else scale_for(total.d)  # squares of float32 stay in range
    if scale != 1.0:
        total.d = 0.0
        join_range(map_, job, operand, scratch, start, stop, scale, total)
    total.d = sqrt(total.d) / scale


cdef void combine_range(Program map_, const Job* job, const Operand* operand, char* scratch, Py_ssize_t start, Py_ssize_t stop,
                        Total* total) noexcept nogil:
    """Combine values ``start`` to ``stop``."""
    total[0] = identity(job.combine, job.ctype)
    join_range(map_, job, operand, scratch, start, stop, 1.0, total)
    if job.combine == COMBINE_HYPOT:
        make_length(map_, job, operand, scratch, start, stop, total)


cdef void aim(Operand* operand, const Job* job, char* data) noexcept nogil:
    """Describe the elements of one result."""
    cdef int i
    operand.data, operand.dtype, operand.contiguous, operand.ndim = data, job.reduced.dtype, job.reduced.contiguous, job.reduced.ndim
    for i in range(operand.ndim):
        operand.shape[i], operand.strides[i] = job.reduced.shape[i], job.reduced.strides[i]


# ---- rows: neighbours in memory belong to one result ----------------------------------------------------------------------
cdef void row_part(Program map_, const Job* job, Py_ssize_t kept, char* scratch, Py_ssize_t start, Py_ssize_t stop,
                   Total* total) noexcept nogil:
    """Combine reduced elements ``start`` to ``stop`` of one result."""
    cdef Operand operand
    aim(&operand, job, job.source.data + offset_of(kept, job.source.n_kept, job.source.kept_shape, job.source.kept_strides))
    combine_range(map_, job, &operand, scratch, start, stop, total)


cdef void rows_task(Program map_, const Job* job, Py_ssize_t first, Py_ssize_t last, char* scratch) noexcept nogil:
    """Compute results ``first`` to ``last``."""
    cdef Total totals[TOGETHER]
    cdef Py_ssize_t k = first
    if several_rows(job):
        while k < last:
            k += rows_beside(map_, job, k, last, scratch, &totals[k - first])
    for k in range(k, last):
        row_part(map_, job, k, scratch, 0, job.n_reduced, &totals[k - first])
    store_totals(job.results, job.ctype, first, totals, last - first)


cdef inline bint several_rows(const Job* job) noexcept nogil:
    """Return whether rows are combined several at a time: dense ones, and short ones."""
    cdef bint whole = job.run == job.n_reduced
    return job.direct and ((whole and job.reduced.contiguous) or (job.run < MX_SUM_RUN and (whole or job.combine != COMBINE_HYPOT)))


cdef Py_ssize_t rows_beside(Program map_, const Job* job, Py_ssize_t first, Py_ssize_t last, char* scratch, Total* totals) noexcept nogil:
    """Combine runs of several results at a time, as far as they are equally far from each other; return how many."""
    cdef const Reduced* s = job.source
    cdef const Operand* r = &job.reduced
    cdef Py_ssize_t size = itemsize_of(job.vtype), k, at = 0, along = s.kept_shape[s.n_kept - 1] if s.n_kept else 1
    cdef Py_ssize_t step = s.kept_strides[s.n_kept - 1] if s.n_kept else 0, count = min(last - first, along - first % along)
    cdef char* data = s.data + offset_of(first, s.n_kept, s.kept_shape, s.kept_strides)
    cdef char* values
    cdef bint beside = r.contiguous or (r.strides[r.ndim - 1] == size and r.shape[r.ndim - 1] % job.run == 0)
    cdef Py_ssize_t shape[MAX_DIMS + 1]
    cdef Py_ssize_t strides[MAX_DIMS + 1]
    cdef Operand operand
    if not beside:  # a copy of the runs
        count = min(count, job.block // job.run)
        shape[0], strides[0], operand.dtype = count, step, s.dtype
        for k in range(s.last_reduced):
            shape[k + 1] = s.reduced_shape[s.n_reduced - s.last_reduced + k]
            strides[k + 1] = s.reduced_strides[s.n_reduced - s.last_reduced + k]
        collapse(&operand, s.last_reduced + 1, shape, strides)
    for k in range(count):
        totals[k] = identity(job.combine, job.ctype)
    while at < job.n_reduced:
        values = data + (0 if at == 0 else offset_of(at, r.ndim, r.shape, r.strides))
        if not beside:
            operand.data = values
            load_block(&operand, job.vtype, 0, count * job.run, scratch)
        BULK.fold[job.vtype](job.combine, totals, values if beside else scratch, count, step if beside else job.run * size, job.run,
                             job.block)
        at += job.run
    if job.combine == COMBINE_HYPOT:
        for k in range(count):
            aim(&operand, job, data + k * step)
            make_length(map_, job, &operand, scratch, 0, job.n_reduced, &totals[k])
    return count


cdef void reduce_rows(Program map_, int combine, const Operand* inputs, Py_ssize_t n_reduced, const char* scalars,
                      char* scratch, Py_ssize_t block, Py_ssize_t first, Py_ssize_t last, char* results,
                      Ahead* ahead) noexcept nogil:
    """Reduce rows ``first`` to ``last`` of a map of several inputs, whose elements are counted row by row.

    Write one value of the compute type for each row; the order of combination is that of :func:`reduce`.
    """
    cdef Job job
    cdef Total totals[TOGETHER]
    cdef Py_ssize_t row = first, k, together
    cdef const char* values
    job.combine, job.ctype, job.vtype, job.scalars, job.block, job.ahead = combine, map_.ctype, map_.ctype, scalars, block, ahead
    job.stride = (block * map_.itemsize + 63) & ~63
    job.plain = map_.copies
    job.direct = job.plain and inputs[0].dtype == map_.ctype
    job.n_reduced = job.run = n_reduced
    together = max(min(block // n_reduced, <Py_ssize_t>TOGETHER), 1)  # short rows are computed several at a time
    if job.direct and inputs[0].contiguous:  # rows of any length are combined where they lie
        together = TOGETHER
    if map_.n_values:
        together = 1
    while row < last:
        together = min(together, last - row)
        if together > 1 and combine != COMBINE_HYPOT:
            values = values_of(map_, &job, inputs, row * n_reduced, together * n_reduced, scratch, NULL)
            for k in range(together):
                totals[k] = identity(combine, map_.ctype)
            BULK.fold[map_.ctype](combine, totals, values, together, n_reduced * map_.itemsize, n_reduced, block)
        else:
            for k in range(together):
                combine_range(map_, &job, inputs, scratch, (row + k) * n_reduced, (row + k + 1) * n_reduced, &totals[k])
        store_totals(results, map_.ctype, row - first, totals, together)
        row += together


# ---- columns: neighbours in memory belong to different results ------------------------------------------------------------
cdef inline bint is_narrow(const Job* job, Py_ssize_t rows) noexcept nogil:
    """Return whether columns are so few, and so many rows long, that several rows are added at a time."""
    return job.inner < MX_SUM_NARROW and rows >= 8 * (2 * MX_SUM_NARROW // job.inner)


cdef void gather(Program map_, const Job* job, Operand* operand, const char* data, Py_ssize_t start, Py_ssize_t rows,
                 Py_ssize_t step, Py_ssize_t width, char* scratch, Total* totals) noexcept nogil:
    """Combine rows of values with the accumulators of their columns; narrow ones with those of several rows, joined at the end.

    They lie at `data`, or are computed from element ``start`` of `operand` on.
    """
    cdef Total lanes[2 * MX_SUM_NARROW]
    cdef Total nothing = identity(job.combine, job.ctype)
    cdef Py_ssize_t size = itemsize_of(job.vtype), several = 1, at = 0, stop = 0, many, k
    cdef const char* values
    if width == job.inner and is_narrow(job, rows):
        several = 2 * MX_SUM_NARROW // width
        stop = rows - rows % several
        for k in range(several * width):
            lanes[k] = nothing
    while at < rows:
        many = (stop if at < stop else rows) - at
        if job.side_by_side:
            values = data + at * step
        else:
            many = min(many, max(job.block // width // several * several, 1))
            step = width * size
            values = values_of(map_, job, operand, start + at * width, many * width, scratch, NULL)
        if at < stop:
            BULK.gather[job.vtype](job.combine, lanes, values, many // several, several * step, several * width)
        else:
            BULK.gather[job.vtype](job.combine, totals, values, many, step, width)
        at += many
        if at == stop:
            BULK.gather[accumulator(job.ctype)](COMBINE_ADD if job.combine == COMBINE_HYPOT else job.combine, totals, lanes,
                                                several, width * sizeof(Total), width)


cdef void columns_part(Program map_, const Job* job, Py_ssize_t outer, Py_ssize_t column, Py_ssize_t width, char* scratch,
                       Py_ssize_t start, Py_ssize_t stop, Total* totals) noexcept nogil:
    """Combine reduced elements ``start`` to ``stop`` of a stretch of results."""
    cdef const Reduced* s = job.source
    cdef int kept = s.n_kept - s.last_kept, reduced = s.n_reduced - (s.last_reduced if job.tiles == 1 else 0), n = 0, i
    cdef Py_ssize_t along = s.reduced_strides[s.n_reduced - 1], run = job.run if job.tiles == 1 or job.side_by_side else 1
    cdef Py_ssize_t r = start, rows, first = 0, j
    cdef char* base = s.data + offset_of(outer, kept, s.kept_shape, s.kept_strides)
    cdef Py_ssize_t shape[MAX_DIMS]
    cdef Py_ssize_t strides[MAX_DIMS]
    cdef Operand operand
    cdef Total nothing = identity(job.combine, job.ctype)
    for j in range(width):
        totals[j] = nothing
    if job.side_by_side:
        base += column * s.kept_strides[s.n_kept - 1]
        reduced = s.n_reduced
    else:  # the last groups of both; of what is wider than a task, a row
        operand.dtype = s.dtype
        for i in range(reduced, s.n_reduced):
            shape[n], strides[n], n = s.reduced_shape[i], s.reduced_strides[i], n + 1
        for i in range(kept, s.n_kept):
            shape[n], strides[n], n = s.kept_shape[i], s.kept_strides[i], n + 1
        collapse(&operand, n, shape, strides)
    while r < stop:
        rows = min(stop - r, run - r % run)
        if not job.side_by_side:
            first = r % run * width + column
        operand.data = base + offset_of(r if job.side_by_side else r // run, reduced, s.reduced_shape, s.reduced_strides)
        gather(map_, job, &operand, operand.data, first, rows, along, width, scratch, totals)
        r += rows
    if job.combine == COMBINE_HYPOT:
        for i in range(width):
            if job.vtype == 0 or scale_for(totals[i].d) == 1.0:
                totals[i].d = sqrt(totals[i].d)
            else:
                row_part(map_, job, outer * job.inner + column + i, scratch, start, stop, &totals[i])


# ---- all tasks ------------------------------------------------------------------------------------------------------------
cdef void do_part(Program map_, const Job* job, Py_ssize_t t, int thread) noexcept nogil:
    """Do one part of one task."""
    cdef char* memory = job.scratch + thread * job.room
    cdef Py_ssize_t task = t // job.chunks, chunk = t % job.chunks, at, width = 1, tile
    cdef Py_ssize_t start = chunk * job.per_chunk, stop = min(job.n_reduced, start + job.per_chunk)
    cdef Total* totals
    if not job.columns:
        if job.chunks == 1:
            rows_task(map_, job, task * job.width, min(job.n_kept, (task + 1) * job.width), memory)
        else:
            row_part(map_, job, task, memory, start, stop, &job.totals[chunk * job.n_kept + task])
        return
    for tile in range(task * job.together, min((task + 1) * job.together, job.n_kept // job.inner * job.tiles)):
        at = tile % job.tiles * job.width
        width = min(job.width, job.inner - at)
        totals = <Total*>memory if job.chunks == 1 else &job.totals[chunk * job.n_kept + tile // job.tiles * job.inner + at]
        columns_part(map_, job, tile // job.tiles, at, width, memory + job.width * sizeof(Total), start, stop, totals)
        if job.chunks == 1:
            store_totals(job.results, job.ctype, tile // job.tiles * job.inner + at, totals, width)


cdef void divide(Job* job, int threads) noexcept nogil:
    """Say what tasks there are, and in how many parts each is done.  Where rows are cut does not depend on the threads."""
    cdef Py_ssize_t most = MX_SUM_CHUNKS, width = MX_SUM_COLUMNS
    job.together = 1
    if job.columns:
        if not job.direct:
            width = min(width, job.block)  # a row of a task is computed at once
        job.tiles = (job.inner + width - 1) // width
        job.width = min(job.inner, width, ((job.inner + job.tiles - 1) // job.tiles + 15) & ~15)
        job.tiles = (job.inner + job.width - 1) // job.width
        job.tasks = job.n_kept // job.inner * job.tiles
        most = MX_SUM_PARTS // max(job.tasks, 1)
    else:
        job.width, job.tasks = 1, job.n_kept
    job.chunks = 1
    if job.tasks < MX_SUM_TASKS:
        job.chunks = min(max(job.n_reduced * job.width // MX_SUM_CHUNK, 1), most)
    elif not job.columns:
        job.width = max(1, min(min(8 * MX_SUM_CHUNK // job.n_reduced, <Py_ssize_t>TOGETHER), job.n_kept // (threads * MX_TASKS_A_THREAD)))
        job.tasks = (job.n_kept + job.width - 1) // job.width
    else:
        job.together = max(1, min(MX_SUM_CHUNK // (job.n_reduced * job.width), job.tasks // (threads * MX_TASKS_A_THREAD)))
        job.tasks = (job.tasks + job.together - 1) // job.together
    job.per_chunk = (job.n_reduced + job.chunks - 1) // job.chunks


cdef void join_parts(const Job* job) noexcept nogil:
    """Combine the parts of each result, in order, and write it."""
    cdef Py_ssize_t c, j
    if job.combine == COMBINE_HYPOT:
        for c in range(1, job.chunks):
            for j in range(job.n_kept):
                job.totals[j].d = hypot(job.totals[j].d, job.totals[c * job.n_kept + j].d)
    else:
        BULK.gather[accumulator(job.ctype)](job.combine, job.totals, job.totals + job.n_kept, job.chunks - 1,
                                              job.n_kept * sizeof(Total), job.n_kept)
    store_totals(job.results, job.ctype, 0, job.totals, job.n_kept)


cdef void add_axis(Reduced* source, bint reduced, bint apart, Py_ssize_t length, Py_ssize_t stride) noexcept nogil:
    """Add the next axis of an array; `apart` says that it does not continue the group of the last one."""
    cdef int* count = &source.n_reduced if reduced else &source.n_kept
    cdef int* group = &source.last_reduced if reduced else &source.last_kept
    cdef Py_ssize_t* shape = &source.reduced_shape[0] if reduced else &source.kept_shape[0]
    cdef Py_ssize_t* strides = &source.reduced_strides[0] if reduced else &source.kept_strides[0]
    if apart:
        group[0] = 0
    if group[0] and strides[count[0] - 1] == stride * length:
        shape[count[0] - 1] *= length
    else:
        shape[count[0]] = length
        count[0] += 1
        group[0] += 1
    strides[count[0] - 1] = stride


cdef bint describe(Job* job, Program map_, int combine, const Reduced* source, const char* scalars, char* results) noexcept nogil:
    """Fill in what follows from the array and the program; tell whether there is anything to combine."""
    cdef int i, last
    cdef Total nothing
    job.source, job.scalars, job.results, job.combine, job.ctype = source, scalars, results, combine, map_.ctype
    job.ahead = NULL
    job.n_kept, job.n_reduced = 1, 1
    for i in range(source.n_kept):
        job.n_kept *= source.kept_shape[i]
    for i in range(source.n_reduced):
        job.n_reduced *= source.reduced_shape[i]
    if job.n_kept == 0 or job.n_reduced == 0:
        nothing = identity(combine, map_.ctype)
        for i in range(job.n_kept):
            store_totals(results, map_.ctype, i, &nothing, 1)
        return False
    job.reduced.dtype = source.dtype
    collapse(&job.reduced, source.n_reduced, source.reduced_shape, source.reduced_strides)
    last = source.n_kept - 1
    job.columns = last >= 0 and source.n_reduced > 0 and (
        distance(source.kept_strides[last]) < distance(source.reduced_strides[source.n_reduced - 1]))
    job.inner = job.run = 1
    for i in range(source.n_kept - source.last_kept, source.n_kept):
        job.inner *= source.kept_shape[i]
    for i in range(source.n_reduced - source.last_reduced, source.n_reduced):
        job.run *= source.reduced_shape[i]
    job.plain = map_.copies
    job.vtype = 0 if combine == COMBINE_HYPOT and job.plain and source.dtype in (0, 2, 12) else map_.ctype
    job.direct = job.plain and source.dtype == job.vtype
    job.side_by_side = (job.columns and job.direct and source.last_kept == 1 and source.last_reduced == 1
                        and source.kept_strides[last] == itemsize_of(job.vtype)
                        and (job.inner >= MX_SUM_NARROW or source.reduced_strides[source.n_reduced - 1] == job.inner * itemsize_of(job.vtype)))
    job.block = BLOCK_BYTES // map_.itemsize
    job.stride = (job.block * map_.itemsize + 63) & ~63
    return True


cdef int reduce(Program map_, int combine, const Reduced* source, const Value* params, char* results) except -1:
    """Reduce an array; write one value of the compute type for each kept element, in C order.

    Parameters
    ----------
    map_ : Program
        One input, one output.
    combine : int
        One of the ``COMBINE_`` codes.
    source : const Reduced*
        The array.
    results : char*
        Room for the results.
    """
    cdef Job job
    cdef Block* memory
    cdef char scalars[8 * MOST_SCALARS]
    cdef Py_ssize_t elements
    cdef int threads
    if map_.n_scalars > MOST_SCALARS:
        raise MemoryError("the formula of a reduction has too many scalars")
    map_.fill_scalars(params, scalars)
    if not describe(&job, map_, combine, source, scalars, results):
        return 0
    elements = job.n_kept * job.n_reduced
    # adding up what is read takes so little time that threads are woken for more of it
    threads = threads_for(elements * map_.itemsize // (8 if job.direct and job.n_kept == 1 else 2 if job.direct else 1))
    divide(&job, threads)
    if job.tasks * job.chunks < threads:
        threads = <int>(job.tasks * job.chunks)
    # where an array repeats along a kept axis, its rows are columns, too
    job.room = 0 if job.direct and job.reduced.contiguous and not job.columns else job.stride * map_.n_registers
    if job.columns:
        if not job.side_by_side:
            job.room = max(job.room, (job.width * itemsize_of(job.vtype) + 63) & ~63)
        job.room += (job.width * sizeof(Total) + 63) & ~63
    memory = block_new(job.room * threads + (job.n_kept * job.chunks * sizeof(Total) if job.chunks > 1 else 0))
    job.scratch, job.totals = memory.data, <Total*>(memory.data + job.room * threads)
    run_tasks(<task_function>do_part, <void*>map_, &job, job.tasks * job.chunks, threads, elements * itemsize_of(source.dtype))
    if job.chunks > 1:
        join_parts(&job)
    block_release(memory)
    return 0


cdef str way_of(Program map_, int combine, const Reduced* source):
    """Return how :func:`reduce` combines an array that is not empty."""
    cdef Job job
    describe(&job, map_, combine, source, NULL, NULL)
    divide(&job, 1)
    if job.columns:
        return "narrow columns" if is_narrow(&job, min(job.run, job.per_chunk)) else "columns in place" if job.side_by_side else "columns"
    return "parts of rows" if job.chunks > 1 else "several rows" if several_rows(&job) else "rows"
