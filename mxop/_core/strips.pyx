"""Strips: several operations that go down their rows together, so that what one makes the next finds in the cache.

A strip is a list of stages over one number of rows.  A stage is a program, on all elements of its rows, or a reduction of
each row, or a sum of all rows.  Threads take blocks of rows; for each block they run all stages.  What only later stages read
is *local*: it has room for one block of rows, in each thread.  What is one number for a whole row, such as its mean, is a scalar
to the programs of long rows, which then run row by row.  All rows are added up in float64 in some parts, always the same ones,
and these in order: the sums do not depend on the threads.
"""
from cpython.object cimport PyObject
from cython.parallel cimport prange
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from mxop._core.array cimport Array, Value, broadcast_operand, new_array, read_pointer, write_pointer
from mxop._core.call cimport Call, Places
from mxop._core.transfer cimport overlaps
from mxop._kernels.instruction_sets cimport BULK, itemsize_of, mx_stream_fence
from mxop._kernels.machine cimport MX_L1_BYTES, MX_L2_BYTES, MX_LONG_ROW, MX_MEMORY_BLOCK, MX_SUM_PARTS, MX_TASKS_A_THREAD
from mxop._kernels.operands cimport Operand
from mxop._kernels.interp cimport BLOCK_BYTES, MOST_AHEAD, PART_BYTES, Ahead, Program, Rows, streams
from mxop._kernels.team cimport is_small, mx_next_task, mx_shares, parts_of, share_out, threads_for
from mxop._kernels.memory cimport Block, block_new, block_release
from mxop._kernels.reduce cimport COMBINE_ADD, COMBINE_HYPOT, reduce_row, reduce_rows

from mxop._kernels.instruction_sets import has_instruction
from mxop._kernels.reduce import CODES
from mxop.formula import compile_program, input_, param, substitute
from mxop.support.memo import keep

cdef extern from "mxop_bulk.h" nogil:
    enum:
        MX_FIND_ROWS

cdef enum:
    PASSES = 2               # over its data that a strip makes at least: each is worth threads
    MOST_SCALARS = 8         # numbers of a row that one stage reads
    COLUMNS = -2             # among what combines rows: they are added up
    FEWEST_IN_PART = 8       # rows of a part in which that is done
    AT_ONCE = 8              # rows that are added up together, at least: the sums are longer than a row

ctypedef void (*range_function)(PyObject* program, Py_ssize_t start, Py_ssize_t stop, const Operand* inputs,
                                const Operand* outputs, const char* scalars, char* scratch, Py_ssize_t block,
                                bint stream, Ahead* ahead) noexcept nogil
ctypedef void (*rows_function)(PyObject* program, int combine, const Operand* inputs, Py_ssize_t n_reduced,
                               const char* scalars, char* scratch, Py_ssize_t block, Py_ssize_t first, Py_ssize_t last,
                               char* results, Ahead* ahead) noexcept nogil
ctypedef bint (*place_function)(PyObject* program, Py_ssize_t first, Py_ssize_t inner, const Operand* inputs,
                                const Operand* outputs, char* scratch, Rows* rows) noexcept nogil
ctypedef void (*row_function)(PyObject* program, int combine, Py_ssize_t inner, const char* scalars, Rows* rows, char* result,
                              Ahead* ahead) noexcept nogil
ctypedef void (*fill_function)(PyObject* program, const Value* values, char* scalars) noexcept nogil

cdef struct Stage:
    PyObject* program           # kept alive by the strip
    int n_inputs, n_outputs     # a reduction has one output, which is local; a sum of rows room for what is added, and the sum
    int n_numbers               # of a row; their operands come last
    int first                   # where its operands begin
    int combine                 # -1: not a reduction
    bint direct                 # what is added up lies in its input
    Py_ssize_t sums             # where its sums begin, among those of a part
    Py_ssize_t inner            # elements of a row
    Py_ssize_t block            # elements that are computed at once
    int scalars                 # where its scalars begin
    bint stream                 # its results are large, and no other stage reads them
    bint long                   # rows are computed one by one
    bint in_place               # and are one block each, which may be computed where it lies

# The sums of rows of a task, as one block of it sees them.
cdef struct Sums:
    double* to
    Py_ssize_t first            # the first row that is not among them yet
    Py_ssize_t due              # after which row these are added; 0: after another block


cdef void run_range(Program program, Py_ssize_t start, Py_ssize_t stop, const Operand* inputs, const Operand* outputs,
                    const char* scalars, char* scratch, Py_ssize_t block, bint stream, Ahead* ahead) noexcept nogil:
    program._range(start, stop, inputs, outputs, scalars, scratch, block, stream, ahead)


cdef bint run_place(Program program, Py_ssize_t first, Py_ssize_t inner, const Operand* inputs, const Operand* outputs,
                    char* scratch, Rows* rows) noexcept nogil:
    return program.rows_from(first, inner, inputs, outputs, scratch, rows)


cdef void run_row(Program program, int combine, Py_ssize_t inner, const char* scalars, Rows* rows, char* result,
                  Ahead* ahead) noexcept nogil:
    if combine < 0:
        program.next_row(inner, scalars, rows, NULL, ahead)
    else:
        reduce_row(program, combine, inner, scalars, rows, result, ahead)


cdef void run_fill(Program program, const Value* values, char* scalars) noexcept nogil:
    program.fill_scalars(values, scalars)


# a struct holds a borrowed reference, which Cython cannot call without the lock
cdef range_function _range = <range_function>run_range
cdef rows_function _rows = <rows_function>reduce_rows
cdef place_function _place = <place_function>run_place
cdef row_function _row = <row_function>run_row
cdef fill_function _fill = <fill_function>run_fill


cdef class StripCall(Call):
    """A strip on fixed arrays; see :func:`prepare_strip`."""

    cdef list programs, arrays
    cdef bint turned
    cdef Stage* stages
    cdef int n_stages, n_operands, n_scalars, n_locals, n_read
    cdef int* slots                 # of each operand the local that it is, or -1
    cdef Operand* operands
    cdef Py_ssize_t* row_bytes      # of each local
    cdef Py_ssize_t* offsets        # of each local, in a thread's room
    cdef bint* added                # whether a local is what is added up, which waits there for some blocks
    cdef char* scalars
    cdef const char* read[MOST_AHEAD]        # arrays with an element or more for each row
    cdef Py_ssize_t read_bytes[MOST_AHEAD]   # of one row
    cdef Py_ssize_t rows, block_rows, total_bytes
    cdef Py_ssize_t parts           # of one row, by PART_BYTES: for each, some of the next rows is fetched; 0: never
    cdef Py_ssize_t room, scratch, own_scalars, own_operands    # of each thread: all; where registers, scalars, operands begin
    cdef Py_ssize_t own_room        # for scalars
    cdef Py_ssize_t sums            # of all rows: how many numbers each part has
    cdef Py_ssize_t at_once         # rows that are added up together

    def __dealloc__(self):
        free(self.stages)
        free(self.slots)
        free(self.operands)
        free(self.row_bytes)
        free(self.offsets)
        free(self.added)
        free(self.scalars)

    @property
    def source(self):
        """The listings of the stages."""
        return "\n".join([f"stage {k}:\n{(<Program>p).listing}" for k, p in enumerate(self.programs)])

    cdef int execute(self) except -1:
        cdef int threads = threads_for(PASSES * self.total_bytes), k
        cdef Py_ssize_t each = self.rows_of_task(threads), tasks = (self.rows + each - 1) // each
        cdef mx_shares shares
        cdef Block* memory
        cdef char* parts
        threads = <int>min(threads, tasks)
        memory = block_new(self.room * threads + tasks * self.sums * 8)
        parts = memory.data + self.room * threads
        share_out(&shares, tasks, threads, self.total_bytes)
        if threads == 1:
            with nogil:
                self.run_share(&shares, 0, each, memory.data, parts)
        else:
            for k in prange(threads, nogil=True, schedule="static", chunksize=1, num_threads=threads):
                self.run_share(&shares, k, each, memory.data, parts)
        if self.sums:
            with nogil:
                self.add_parts(<double*>parts, tasks)
        block_release(memory)
        return 0

    cdef Py_ssize_t rows_of_task(self, int threads) noexcept:
        """Return how many rows a task has: neighbours, since a thread fetches the next block while it is busy with one."""
        if self.sums:
            return max((self.rows + MX_SUM_PARTS - 1) // MX_SUM_PARTS, <Py_ssize_t>FEWEST_IN_PART)
        if threads > 1 and is_small(self.total_bytes):
            return parts_of(self.rows, threads)
        return max(self.rows // self.block_rows // (threads * MX_TASKS_A_THREAD), <Py_ssize_t>1) * self.block_rows

    cdef void run_share(self, mx_shares* shares, int thread, Py_ssize_t each, char* memory, char* parts) noexcept nogil:
        """Compute the rows that are a thread's, `each` of them at a time."""
        cdef Py_ssize_t t = mx_next_task(shares, thread)
        while t >= 0:
            self.run_task(t * each, min((t + 1) * each, self.rows), memory + thread * self.room,
                          <double*>parts + t * self.sums)
            t = mx_next_task(shares, thread)

    cdef void add_parts(self, double* parts, Py_ssize_t n) noexcept nogil:
        """Add up what each part gave, in order, and write it."""
        cdef Py_ssize_t i
        cdef const Stage* stage
        cdef const Operand* target
        cdef int k
        BULK.gather[1](COMBINE_ADD, parts, parts + self.sums, n - 1, self.sums * 8, self.sums)
        for k in range(self.n_stages):
            stage = &self.stages[k]
            if stage.combine == COLUMNS:
                target = &self.operands[stage.first + stage.n_inputs + 1]
                if target.dtype == 1:
                    memcpy(target.data, parts + stage.sums, stage.inner * 8)
                    continue
                for i in range(stage.inner):
                    (<float*>target.data)[i] = <float>parts[stage.sums + i]

    cdef int point(self, Places places) except -1:
        cdef int k
        for k in range(self.n_operands):
            if self.slots[k] < 0:
                places.add(&self.operands[k].data)
        for k in range(self.n_read):
            places.add(<char**>&self.read[k])
        return 0

    cdef void run_task(self, Py_ssize_t first, Py_ssize_t last, char* room, double* to) noexcept nogil:
        """Run all stages on the blocks of some rows; these are added up to what is there."""
        cdef Operand* operands = <Operand*>(room + self.own_operands)
        cdef Py_ssize_t row = first, end
        cdef Sums sums
        sums.to, sums.first = to, first
        memcpy(operands, self.operands, self.n_operands * sizeof(Operand))
        if self.sums:
            memset(to, 0, self.sums * 8)
        while row < last:
            end = min(last, row + self.block_rows)
            sums.due = end if end == last or end - sums.first >= self.at_once else 0
            self.run_block(row, end, end < last, room, operands, &sums)
            if sums.due:
                sums.first = end
            row = end
        mx_stream_fence()

    cdef void run_block(self, Py_ssize_t first, Py_ssize_t last, bint more, char* room, Operand* operands,
                        const Sums* sums) noexcept nogil:
        """Run all stages on one block of rows; meanwhile fetch the arrays of the next one, if there are more."""
        cdef int k, slot
        cdef Stage* stage
        cdef Ahead ahead
        cdef Ahead* little = NULL
        for k in range(self.n_operands):
            slot = self.slots[k]
            if slot >= 0:  # row `first` is where the room of the local begins
                operands[k].data = room + self.offsets[slot] - (sums.first if self.added[slot] else first) * self.row_bytes[slot]
        if more and self.parts:
            self.look_ahead(&ahead, last)
            little = &ahead
        for k in range(self.n_stages):
            stage = &self.stages[k]
            if stage.n_numbers:
                self.run_rows(stage, operands + stage.first, room, first, last, little, sums)
            else:
                self.run_stage(stage, operands + stage.first, room, self.scalars + stage.scalars, first, first, last, little,
                               sums)

    cdef void run_rows(self, const Stage* stage, Operand* mine, char* room, Py_ssize_t first, Py_ssize_t last, Ahead* little,
                       const Sums* sums) noexcept nogil:
        """Run one stage row by row, with the numbers of each."""
        cdef int slot = self.slots[stage.first + stage.n_inputs] if stage.combine >= 0 else -1
        cdef char* numbers = room + self.own_scalars
        cdef char* result = room + self.offsets[slot] if slot >= 0 else NULL
        cdef Py_ssize_t step = self.row_bytes[slot] if slot >= 0 else 0, row
        cdef Rows rows
        cdef bint placed = stage.in_place and _place(stage.program, first, stage.inner, mine,
                                                     NULL if slot >= 0 else mine + stage.n_inputs, room + self.scratch, &rows)
        for row in range(first, last):
            self.read_numbers(stage, mine, row, numbers)
            if placed:
                _row(stage.program, stage.combine, stage.inner, numbers, &rows, result, little if stage.long else NULL)
                result += step
            else:
                self.run_stage(stage, mine, room, numbers, first, row, row + 1, little, sums)

    cdef void look_ahead(self, Ahead* ahead, Py_ssize_t first) noexcept nogil:
        """Name what the block from row `first` on reads as what is fetched while stages run."""
        cdef Py_ssize_t rows = min(self.block_rows, self.rows - first)
        cdef int k
        ahead.n, ahead.far = self.n_read, 0
        for k in range(self.n_read):
            ahead.at[k], ahead.left[k] = self.read[k] + first * self.read_bytes[k], rows * self.read_bytes[k]
            ahead.each[k] = (self.read_bytes[k] // self.parts + 63) & ~63

    cdef void run_stage(self, const Stage* stage, Operand* mine, char* room, const char* scalars, Py_ssize_t origin,
                        Py_ssize_t first, Py_ssize_t last, Ahead* ahead, const Sums* sums) noexcept nogil:
        """Run one stage on some rows of the block that begins with row `origin`."""
        cdef const Operand* values = mine if stage.direct else mine + stage.n_inputs
        cdef Py_ssize_t step
        cdef int slot
        if stage.combine < 0 and not stage.direct:
            _range(stage.program, first * stage.inner, last * stage.inner, mine, mine + stage.n_inputs, scalars,
                   room + self.scratch, stage.block, stage.stream, ahead if stage.long else NULL)
        if stage.combine == COLUMNS and last == sums.due:
            step = stage.inner * itemsize_of(values.dtype)
            BULK.gather[values.dtype](COMBINE_ADD, sums.to + stage.sums, values.data + sums.first * step, last - sums.first,
                                        step, stage.inner)
        elif stage.combine >= 0:
            slot = self.slots[stage.first + stage.n_inputs]
            _rows(stage.program, stage.combine, mine, stage.inner, scalars, room + self.scratch, stage.block, first, last,
                  room + self.offsets[slot] + (first - origin) * self.row_bytes[slot], ahead if stage.long else NULL)

    cdef void read_numbers(self, const Stage* stage, const Operand* mine, Py_ssize_t row, char* scalars) noexcept nogil:
        """Make the numbers of a row scalars of the stage's program."""
        cdef Value values[MOST_SCALARS]
        cdef const Operand* operand
        cdef const char* p
        cdef int k
        for k in range(stage.n_numbers):
            operand = mine + stage.n_inputs + stage.n_outputs + k
            p = operand.data + (row if row < operand.shape[0] else row % operand.shape[0]) * operand.strides[0]
            values[k].d = <double>(<const float*>p)[0] if operand.dtype == 0 else (<const double*>p)[0]
        _fill(stage.program, values, scalars)


cdef Array ghost(tuple shape, int dtype, int number):
    """Return an array without memory, at an address that no other array has: it stands for a local."""
    cdef Array a = new_array()
    cdef Py_ssize_t step = itemsize_of(dtype)
    cdef int i
    a.set_dims(<int>len(shape))
    a.dtype, a.contiguous, a.size = dtype, True, 1
    for i in range(a.ndim - 1, -1, -1):
        a.shape_[i] = shape[i]
        a.strides_[i] = step
        step *= max(<Py_ssize_t>shape[i], 1)
        a.size *= shape[i]
    a.data = <char*>(<Py_ssize_t>(number + 1) << 44)
    return a


def prepare_strip(Py_ssize_t rows, list locals_, list stages, list arrays, bint turned=False):
    """Return a :class:`Call` that runs stages over the same rows.

    Parameters
    ----------
    rows : int
        Number of rows.
    locals_ : list of (shape, type)
        What lives in the threads' rooms; the leading dimensions of a shape are the rows.
    stages : list of (roots, inputs, outputs, combine, shape)
        Formulas over ``input_(0)`` and on; what they read and write: ``k`` is ``arrays[k]``, ``~k`` is local `k`; how each
        row is reduced, or None, or ``"columns"``: all rows are added up to the second output, and the first, a local, has room
        for what is added; the shape that is gone through.
    arrays : list of NDArray
    turned : bool
        Whether rows lie in parts, as those of a channel do: blocks then keep within these.

    Returns
    -------
    Call or None
        None when an array is written that overlaps another, or sums of rows do not lie side by side.
    """
    cdef StripCall call = StripCall()
    cdef list ghosts = [ghost(tuple(shape), dtype, k) for k, (shape, dtype) in enumerate(locals_)], operands = []
    written = {number for s in stages for number in s[2] if number >= 0}
    sums = {s[2][1] for s in stages if s[3] == "columns"}
    reread = {number for s in stages for number in s[1] if number >= 0}
    for number in written:
        for i in range(len(arrays)):
            if i != number and overlaps(<Array>arrays[i], <Array>arrays[number]):
                return None
    if not all([(<Array>arrays[number]).contiguous for number in sums]):
        return None
    call.arrays, call.rows, call.programs, call.turned = arrays, rows, [], turned
    lay_out(call, ghosts, stages)
    fetch_ahead(call, [arrays[n] for n in sorted((reread | written) - sums) if n in reread or not goes_past_the_caches(call, n)])
    for k, (roots, inputs, outputs, combine, shape) in enumerate(stages):
        operands.append(prepare_stage(call, k, roots, list(inputs), list(outputs), combine, tuple(shape), ghosts, reread))
    describe_all(call, operands, ghosts)
    if call.total_bytes <= MX_L2_BYTES:
        call.parts = 0
    call.own_operands = call.own_scalars + call.own_room
    call.room = (call.own_operands + call.n_operands * <Py_ssize_t>sizeof(Operand) + 127) & ~63
    return call


cdef Array array_of(StripCall call, list ghosts, int number):
    """Return the array that a number stands for: one that is given, or a local."""
    if number < 0:
        return <Array>ghosts[~number]
    return <Array>call.arrays[number]


cdef Py_ssize_t row_bytes_of(Array a, Py_ssize_t rows) noexcept:
    """Return the bytes of one row, 0 for what is the same for all rows."""
    return a.size // rows * itemsize_of(a.dtype)


cdef int lay_out(StripCall call, list ghosts, list stages) except -1:
    """Say how many rows make a block, and where in a thread's room each local lies."""
    cdef set added = {~number for _, _, (number, *_), combine, _ in stages if combine == "columns"}
    cdef list shared = [*call.arrays, *[a for k, a in enumerate(ghosts) if k not in added]]
    cdef Py_ssize_t row = sum([row_bytes_of(<Array>a, call.rows) for a in shared])
    cdef int k
    call.n_stages, call.n_locals = <int>len(stages), <int>len(ghosts)
    call.block_rows = max(1, MX_L1_BYTES // max(row, 1))
    if call.block_rows > MX_FIND_ROWS:
        call.block_rows -= call.block_rows % MX_FIND_ROWS
    call.at_once = call.block_rows * ((AT_ONCE + call.block_rows - 1) // call.block_rows)
    call.total_bytes = row * call.rows
    call.stages = <Stage*>calloc(call.n_stages, sizeof(Stage))
    call.row_bytes = <Py_ssize_t*>calloc(call.n_locals + 1, sizeof(Py_ssize_t))
    call.offsets = <Py_ssize_t*>calloc(call.n_locals + 1, sizeof(Py_ssize_t))
    call.added = <bint*>calloc(call.n_locals + 1, sizeof(bint))
    if call.stages == NULL or call.row_bytes == NULL or call.offsets == NULL or call.added == NULL:
        raise MemoryError()
    for k in added:
        call.added[k] = True
    for k in range(call.n_locals):
        call.row_bytes[k] = row_bytes_of(<Array>ghosts[k], call.rows)
        call.offsets[k] = call.scratch
        call.scratch += (call.row_bytes[k] * (call.at_once if call.added[k] else call.block_rows) + 127) & ~63
    call.own_scalars = call.scratch
    return 0


cdef int fetch_ahead(StripCall call, list arrays) except -1:
    """Note the arrays whose next rows are fetched while others are computed: a row that is written is read first by a cache."""
    cdef Array a
    for a in arrays:
        if a.contiguous and a.size >= call.rows and call.n_read < MOST_AHEAD:
            call.read[call.n_read], call.read_bytes[call.n_read] = read_pointer(a), row_bytes_of(a, call.rows)
            call.n_read += 1
    return 0


cdef tuple prepare_stage(StripCall call, int k, roots, list inputs, list outputs, combine, tuple shape, list ghosts,
                         set reread):
    """Compile one stage; return its shape and what its operands stand for: inputs, outputs, numbers of a row."""
    cdef Stage* stage = &call.stages[k]
    cdef int ctype = 1 if any([array_of(call, ghosts, i).dtype == 1 for i in [*inputs, *outputs]]) else 0  # halves in float
    cdef Program program
    cdef list numbers = []
    stage.inner = 1
    for d in shape:
        stage.inner *= d
    stage.inner //= call.rows
    read = [array_of(call, ghosts, i) for i in inputs]
    stage.long = is_long(roots, read, call.rows, stage.inner, ctype)
    if stage.long:
        roots, inputs, numbers = with_numbers(roots, inputs, read, call.rows, shape, ctype)
    program = program_of(tuple(roots), len(inputs), ctype, len(numbers))
    call.programs.append(program)
    stage.program, stage.combine = <PyObject*>program, -1 if combine is None else CODES.get(combine, COLUMNS)
    stage.n_inputs, stage.n_outputs, stage.n_numbers = <int>len(inputs), <int>len(outputs), <int>len(numbers)
    stage.first, stage.scalars = call.n_operands, call.n_scalars
    stage.block = BLOCK_BYTES // program.itemsize
    if program.n_registers - stage.n_inputs > 6:
        stage.block //= 2
    if call.turned and stage.inner > stage.block:
        stage.block = whole_part(call, [*inputs, *outputs], ghosts, stage.block)
    if stage.long and stage.inner < stage.block:
        stage.block = stage.inner  # blocks that are rows read what is broadcast over rows in place
    if stage.long and not program.copies:
        call.parts += program.n_steps * max(stage.inner * program.itemsize // PART_BYTES, <Py_ssize_t>1)
    stage.stream = stage.combine < 0
    for number in outputs:
        stage.stream = stage.stream and number >= 0 and number not in reread and goes_past_the_caches(call, number)
    if stage.stream and not call.turned:
        stage.block = min(stage.block, MX_MEMORY_BLOCK // program.itemsize)
    stage.in_place = stage.inner <= stage.block and not stage.stream and stage.combine not in (COMBINE_HYPOT, COLUMNS)
    if stage.combine == COLUMNS:
        stage.direct, stage.sums = adds_input(call, stage, roots, inputs, ctype, ghosts), call.sums
        call.sums += stage.inner
    call.n_operands += stage.n_inputs + stage.n_outputs + stage.n_numbers
    call.n_scalars += (program.n_scalars * 8 + 63) & ~63
    call.own_room = max(call.own_room, (program.n_scalars * 8 + 127) & ~63)
    call.own_scalars = max(
        call.own_scalars, call.scratch + ((stage.block * program.itemsize + 63) & ~63) * (program.n_registers + 1))
    return shape, [*inputs, *outputs, *numbers]


cdef bint adds_input(StripCall call, const Stage* stage, roots, list inputs, int ctype, list ghosts) except -1:
    """Return whether what a stage adds up lies in an array, row after row."""
    cdef Array a
    if roots[0] is not input_(0) or len(inputs) != 1 or inputs[0] < 0:
        return False
    a = array_of(call, ghosts, inputs[0])
    return a.contiguous and a.dtype == ctype and a.size == call.rows * stage.inner


cdef object listing_of(roots, n_inputs, int ctype):
    """Return formulas as a list of instructions."""
    return compile_program(tuple(roots), n_inputs, lambda name, ctype=ctype: has_instruction(name, ctype), True)


cdef dict _programs = {}


cdef Program program_of(tuple roots, n_inputs, int ctype, n_numbers):
    """Return the program of formulas: one for all sizes."""
    key = roots, n_inputs, ctype, n_numbers
    found = _programs.get(key)
    if found is None:
        found = Program(listing_of(roots, n_inputs, ctype), [number_name(i) for i in range(n_numbers)], ctype)
        keep(_programs, key, found)
    return <Program>found


cdef bint is_long(roots, list read, Py_ssize_t rows, Py_ssize_t inner, int ctype) except -1:
    """Return whether rows of so many elements are computed one by one; costly loops are the better the longer they are."""
    broadcast = sum([(<Array>a).size < rows * inner for a in read])
    if inner >= MX_LONG_ROW or inner * broadcast < 2 * MX_LONG_ROW:
        return inner >= MX_LONG_ROW
    return not any([step.costly for step in listing_of(roots, len(read), ctype).steps])


cdef Py_ssize_t whole_part(StripCall call, list numbers, list ghosts, Py_ssize_t most) except -1:
    """Return how many elements make a block, so that a part of a row, which lie one after the other, is a number of blocks.

    Of short parts, which are copied together, a block is a number.
    """
    cdef Py_ssize_t part, pieces
    for number in numbers:
        part = elements_in_order(array_of(call, ghosts, number), call.rows)
        if 0 < part < MX_LONG_ROW:
            return most // part * part
        if part:
            pieces = (part + most - 1) // most
            for pieces in range(pieces, 4 * pieces):
                if part % pieces == 0:
                    return part // pieces
            break
    return most


cdef Py_ssize_t elements_in_order(Array a, Py_ssize_t rows) noexcept:
    """Return how many elements of a row lie one after the other; 0 where all do, or none."""
    cdef Py_ssize_t n = 1
    cdef int i
    for i in range(a.ndim - 1, -1, -1):
        if a.shape_[i] > 1 and a.strides_[i] != n * itemsize_of(a.dtype):
            break
        n *= a.shape_[i]
    return 0 if n == 1 or n * rows >= a.size else n


cdef bint goes_past_the_caches(StripCall call, int number) noexcept:
    """Return whether an array is so large that writing it would only evict what is still needed."""
    cdef Array a = <Array>call.arrays[number]
    return (a.contiguous or call.turned) and streams(a.size * itemsize_of(a.dtype))


cdef int describe_all(StripCall call, list operands, list ghosts) except -1:
    """Fill in all operands, and the scalars that are the same for all rows."""
    cdef int k, i, at = 0
    cdef Stage* stage
    cdef Array a
    call.scalars = <char*>calloc(call.n_scalars + 64, 1)
    call.slots = <int*>calloc(call.n_operands + 1, sizeof(int))
    call.operands = <Operand*>calloc(call.n_operands + 1, sizeof(Operand))
    if call.scalars == NULL or call.slots == NULL or call.operands == NULL:
        raise MemoryError()
    for k, (shape, numbers) in enumerate(operands):
        stage = &call.stages[k]
        if not stage.n_numbers:
            (<Program>call.programs[k]).fill_scalars(NULL, call.scalars + stage.scalars)
        for i, number in enumerate(numbers):
            a = array_of(call, ghosts, number)
            if i < stage.n_inputs + stage.n_outputs:
                describe(call, at, number, a, shape, i >= stage.n_inputs, stage.combine >= 0)
            else:
                call.slots[at] = ~number if number < 0 else -1
                call.operands[at].data, call.operands[at].dtype = read_pointer(a), a.dtype
                call.operands[at].shape[0], call.operands[at].strides[0] = a.size, itemsize_of(a.dtype)
            at += 1
    return 0


def number_name(i):
    """Return how programs call a number that is the same for a whole row."""
    return f"row{i}"


cdef tuple with_numbers(roots, inputs, list read, Py_ssize_t rows, tuple shape, int ctype):
    """Let formulas read what is one number for each row as a parameter.

    Parameters
    ----------
    read : list of NDArray
        What each of `inputs` stands for.

    Returns
    -------
    roots : tuple of Expr
    inputs, numbers : list of int
        What is still read as an array, and what is now a parameter.
    """
    found = [i for i, a in enumerate(read) if is_one_a_row(<Array>a, rows, shape, ctype)][:MOST_SCALARS]
    if not found or len(found) == len(inputs):
        return tuple(roots), list(inputs), []
    names = {input_(i): param(number_name(k)) for k, i in enumerate(found)}
    others = [i for i in range(len(inputs)) if i not in found]
    names |= {input_(old): input_(new) for new, old in enumerate(others)}
    return tuple(substitute(tuple(roots), names)), [inputs[i] for i in others], [inputs[i] for i in found]


cdef bint is_one_a_row(Array a, Py_ssize_t rows, tuple shape, int ctype):
    """Return whether an array of the compute type has one element for each row, or one for all, or for each of some that repeat."""
    cdef Py_ssize_t n = 1
    cdef int i = 0, k = 0
    if a.dtype != ctype or not a.contiguous:
        return False
    while n < rows:
        n *= shape[i]
        i += 1
    padded = (1,) * (len(shape) - a.ndim) + a.shape_tuple()
    while k < i and padded[k] == 1:
        k += 1
    return padded[k:i] == shape[k:i] and all([d == 1 for d in padded[i:]])


cdef int describe(StripCall call, int at, int number, Array a, tuple shape, bint output, bint reduced) except -1:
    """Fill in one operand."""
    cdef Py_ssize_t dims[32]
    cdef Operand* operand = &call.operands[at]
    cdef int i
    call.slots[at] = ~number if number < 0 else -1
    if output and reduced:
        return 0
    for i in range(<int>len(shape)):
        dims[i] = shape[i]
    broadcast_operand(operand, a, <int>len(shape), dims)
    operand.req = 1
    if output and number >= 0:
        write_pointer(a)
    return 0
