"""Row kernels: several operations that go down their rows together, so that what one makes the next finds in the cache.

A row kernel is a list of stages over one number of rows.  A stage is a program, on all elements of its rows, or a reduction of
each row, or a sum of all rows.  Threads take blocks of rows; for each block they run all stages.  What only later stages read
is *local*: it has room for one block of rows, in each thread.  What is one number for a whole row, such as its mean, is a scalar
to the programs of long rows (`Program.by_values`), which then run row by row.  All rows are added up in float64 in some parts,
always the same ones, and these in order: the sums do not depend on the threads.
"""
from cpython.object cimport PyObject
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from mxop._core.array cimport MAX_VALUES, Array, Value, broadcast_operand, new_array, read_pointer, write_pointer
from mxop._core.call cimport Call, Places
from mxop._core.transfer cimport overlaps, same_layout
from mxop._kernels.instruction_sets cimport BULK, ISA, itemsize_of, mx_stream_fence
from mxop._kernels.machine cimport MX_L1_BYTES, MX_L2_BYTES, MX_LONG_ROW, MX_MEMORY_BLOCK, MX_SUM_PARTS, MX_TASKS_A_THREAD
from mxop._kernels.operands cimport Operand
from mxop._kernels.interp cimport BLOCK_BYTES, MOST_AHEAD, PART_BYTES, Ahead, Program, streams
from mxop._kernels.team cimport is_small, parts_of, run_tasks, task_function, threads_for
from mxop._kernels.memory cimport Block, block_new, block_release
from mxop._kernels.reduce cimport COMBINE_ADD, reduce_rows

from mxop._kernels.instruction_sets import has_instruction
from mxop._kernels.reduce import CODES
from mxop._core.prepare import with_constants
from mxop.formula import compile_program, input_
from mxop.support.memo import keep

cdef extern from "mxop_bulk.h" nogil:
    enum:
        MX_FIND_ROWS

cdef enum:
    PASSES = 2               # over its data that a row kernel makes at least: each is worth threads
    COLUMNS = -2             # among what combines rows: they are added up
    FEWEST_IN_PART = 8       # rows of a part in which that is done
    AT_ONCE = 8              # rows that are added up together, at least: the sums are longer than a row

cdef struct Stage:
    PyObject* program           # kept alive by the call
    int n_inputs, n_outputs     # a reduction has one output, which is local; a sum of rows room for what is added, and the sum
    int first                   # where its operands begin
    int combine                 # -1: not a reduction
    bint direct                 # what is added up lies in its input
    Py_ssize_t sums             # where its sums begin, among those of a part
    Py_ssize_t inner            # elements of a row
    Py_ssize_t block            # elements that are computed at once
    char* scalars               # kept alive by the call
    bint stream                 # its results are large, and no other stage reads them
    bint long                   # rows are computed one by one

# What is local: bytes of a row; where it begins in a thread's room; whether it is what is added up, which waits there for some blocks.
cdef struct Local:
    Py_ssize_t row_bytes, offset
    bint added

# The sums of rows of a task, as one block of it sees them.
cdef struct Sums:
    double* to
    Py_ssize_t first            # the first row that is not among them yet
    Py_ssize_t due              # after which row these are added; 0: after another block

# a struct holds a borrowed reference to a program, with which Cython cannot call without the lock
ctypedef void (*stage_function)(PyObject* program, const Stage* stage, const Operand* inputs, char* scratch, Py_ssize_t first,
                                Py_ssize_t last, Ahead* ahead, const Sums* sums) noexcept nogil
cdef stage_function _run_stage = <stage_function>run_stage


cdef void run_stage(Program program, const Stage* stage, const Operand* inputs, char* scratch, Py_ssize_t first, Py_ssize_t last,
                    Ahead* ahead, const Sums* sums) noexcept nogil:
    """Run one stage on a block of rows."""
    cdef const Operand* values = inputs if stage.direct else inputs + stage.n_inputs
    cdef Py_ssize_t step = stage.inner * program.itemsize
    if stage.combine >= 0:
        reduce_rows(program, stage.combine, inputs, stage.inner, stage.scalars, scratch, stage.block, first, last,
                    values.data + first * program.itemsize, ahead)
        return
    if not stage.direct:
        program._range(first * stage.inner, last * stage.inner, inputs, values, stage.scalars, scratch, stage.block, stage.stream, ahead)
    if stage.combine == COLUMNS and last == sums.due:
        BULK.gather[values.dtype](COMBINE_ADD, sums.to + stage.sums, values.data + sums.first * step, last - sums.first, step, stage.inner)


# One run: rows of a task, rooms of threads, and sums of rows of tasks.
cdef struct Run:
    Py_ssize_t each
    char* rooms
    double* sums


cdef void run_rows(RowKernelCall call, Run* run, Py_ssize_t task, int thread) noexcept nogil:
    """Do one task: some neighbouring rows."""
    call.run_task(task * run.each, min((task + 1) * run.each, call.rows), run.rooms + thread * call.room, run.sums + task * call.sums)


cdef class RowKernelCall(Call):
    """A row kernel on fixed arrays; see :func:`prepare_row_kernel`."""

    cdef list programs, arrays, kept
    cdef bint turned
    cdef Stage* stages
    cdef int n_stages, n_operands, n_locals, n_read
    cdef int* slots                 # of each operand the local that it is, or -1
    cdef Operand* operands
    cdef Local* locals
    cdef const char* read[MOST_AHEAD]        # arrays with an element or more for each row
    cdef Py_ssize_t read_bytes[MOST_AHEAD]   # of one row
    cdef Py_ssize_t rows, block_rows, total_bytes
    cdef Py_ssize_t parts           # of one row, by PART_BYTES: for each, some of the next rows is fetched; 0: never
    cdef Py_ssize_t room, scratch, own_operands     # of each thread: all; where registers, operands begin
    cdef Py_ssize_t sums            # of all rows: how many numbers each part has
    cdef Py_ssize_t at_once         # rows that are added up together

    def __dealloc__(self):
        free(self.stages)
        free(self.slots)
        free(self.operands)
        free(self.locals)

    @property
    def source(self):
        """The listings of the stages."""
        return "\n".join([f"stage {k}:\n{(<Program>p).listing}" for k, p in enumerate(self.programs)])

    cdef int execute(self) except -1:
        cdef int threads = threads_for(PASSES * self.total_bytes)
        cdef Py_ssize_t each = self.rows_of_task(threads), tasks = (self.rows + each - 1) // each
        cdef Block* memory
        cdef Run run
        threads = <int>min(threads, tasks)
        memory = block_new(self.room * threads + tasks * self.sums * 8)
        run.each, run.rooms, run.sums = each, memory.data, <double*>(memory.data + self.room * threads)
        run_tasks(<task_function>run_rows, <void*>self, &run, tasks, threads, self.total_bytes)
        if self.sums:
            with nogil:
                self.add_parts(run.sums, tasks)
        block_release(memory)
        return 0

    cdef Py_ssize_t rows_of_task(self, int threads) noexcept:
        """Return how many rows a task has: neighbours, since a thread fetches the next block while it is busy with one."""
        if self.sums:
            return max((self.rows + MX_SUM_PARTS - 1) // MX_SUM_PARTS, <Py_ssize_t>FEWEST_IN_PART)
        if threads > 1 and is_small(self.total_bytes):
            return parts_of(self.rows, threads)
        return max(self.rows // self.block_rows // (threads * MX_TASKS_A_THREAD), <Py_ssize_t>1) * self.block_rows

    cdef void add_parts(self, double* parts, Py_ssize_t n) noexcept nogil:
        """Add up what each part gave, in order, and write it."""
        cdef const Stage* stage
        cdef const Operand* target
        cdef int k
        BULK.gather[1](COMBINE_ADD, parts, parts + self.sums, n - 1, self.sums * 8, self.sums)
        for k in range(self.n_stages):
            stage = &self.stages[k]
            if stage.combine == COLUMNS:
                target = &self.operands[stage.first + stage.n_inputs + 1]
                ISA.stores[target.dtype][1](stage.inner, parts + stage.sums, target.data, itemsize_of(target.dtype), 0)

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
        cdef int k
        cdef const Local* local
        cdef const Stage* stage
        cdef Ahead ahead
        cdef Ahead* little = NULL
        for k in range(self.n_operands):
            if self.slots[k] >= 0:  # row `first` is where the room of the local begins
                local = &self.locals[self.slots[k]]
                operands[k].data = room + local.offset - (sums.first if local.added else first) * local.row_bytes
        if more and self.parts:
            self.look_ahead(&ahead, last)
            little = &ahead
        for k in range(self.n_stages):
            stage = &self.stages[k]
            _run_stage(stage.program, stage, operands + stage.first, room + self.scratch, first, last,
                       little if stage.long else NULL, sums)

    cdef void look_ahead(self, Ahead* ahead, Py_ssize_t first) noexcept nogil:
        """Name what the block from row `first` on reads as what is fetched while stages run."""
        cdef Py_ssize_t rows = min(self.block_rows, self.rows - first)
        cdef int k
        ahead.n, ahead.far = self.n_read, 0
        for k in range(self.n_read):
            ahead.at[k], ahead.left[k] = self.read[k] + first * self.read_bytes[k], rows * self.read_bytes[k]
            ahead.each[k] = (self.read_bytes[k] // self.parts + 63) & ~63


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


def prepare_row_kernel(Py_ssize_t rows, list locals_, list stages, list arrays, bint turned=False, dict numbers=None):
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
    numbers : dict of str to float, optional
        Values of parameters in the formulas.

    Returns
    -------
    Call or None
        None when an array is written that overlaps another, except as :func:`overwritable` allows, or sums of rows do not lie
        side by side.
    """
    cdef RowKernelCall call = RowKernelCall()
    cdef Value values[MAX_VALUES]
    cdef list ghosts = [ghost(tuple(shape), dtype, k) for k, (shape, dtype) in enumerate(locals_)]
    written = {number for s in stages for number in s[2] if number >= 0}
    sums = {s[2][1] for s in stages if s[3] == "columns"}
    reread = {number for s in stages for number in s[1] if number >= 0}
    for number in written:
        for i in range(len(arrays)):
            if i != number and overlaps(<Array>arrays[i], <Array>arrays[number]):
                if not same_layout(<Array>arrays[i], <Array>arrays[number]) or i not in overwritable(stages, number):
                    return None
    if not all([(<Array>arrays[number]).contiguous for number in sums]):
        return None
    call.arrays, call.rows, call.programs, call.turned, call.kept = arrays, rows, [], turned, []
    lay_out(call, ghosts, stages)
    fetch_ahead(call, [arrays[n] for n in sorted((reread | written) - sums) if n in reread or not goes_past_the_caches(call, n)])
    if numbers and len(numbers) > MAX_VALUES:
        stages, numbers = [(with_constants(roots, numbers), *rest) for roots, *rest in stages], None
    params = tuple(numbers or ())
    for k, name in enumerate(params):
        values[k].d = numbers[name]
    for k, (roots, inputs, outputs, combine, shape) in enumerate(stages):
        prepare_stage(
            call, k, tuple(roots), list(inputs), list(outputs), combine, tuple(shape), ghosts, reread, params, values)
    if call.total_bytes <= MX_L2_BYTES:
        call.parts = 0
    call.room = (call.own_operands + call.n_operands * <Py_ssize_t>sizeof(Operand) + 127) & ~63
    return call


def overwritable(list stages, Py_ssize_t number):
    """Return the arrays in whose place array `number`, of the same layout, may be written: none is read after that.

    What a sum of all rows reads is read once several blocks of rows are done.
    """
    at = [k for k, stage in enumerate(stages) if number in stage[2] and stage[3] is None]
    read = [(n, k) for k, stage in enumerate(stages) for n in stage[1] if n >= 0]
    late = {n for n, k in read if not at or k > at[0] or stages[k][3] == "columns"}
    return {n for n, _ in read} - late - {n for stage in stages for n in stage[2]}


cdef Array array_of(RowKernelCall call, list ghosts, int number):
    """Return the array that a number stands for: one that is given, or a local."""
    if number < 0:
        return <Array>ghosts[~number]
    return <Array>call.arrays[number]


cdef Py_ssize_t row_bytes_of(Array a, Py_ssize_t rows) noexcept:
    """Return the bytes of one row, 0 for what is the same for all rows."""
    return a.size // rows * itemsize_of(a.dtype)


cdef int lay_out(RowKernelCall call, list ghosts, list stages) except -1:
    """Say how many rows make a block, and where in a thread's room each local lies."""
    cdef set added = {~number for _, _, (number, *_), combine, _ in stages if combine == "columns"}
    cdef list shared = [*call.arrays, *[a for k, a in enumerate(ghosts) if k not in added]]
    cdef Py_ssize_t row = sum([row_bytes_of(<Array>a, call.rows) for a in shared])
    cdef int k, n_operands = sum([len(s[1]) + len(s[2]) for s in stages])
    cdef Local* local
    call.n_stages, call.n_locals = <int>len(stages), <int>len(ghosts)
    call.block_rows = max(1, MX_L1_BYTES // max(row, 1))
    if call.block_rows > MX_FIND_ROWS:
        call.block_rows -= call.block_rows % MX_FIND_ROWS
    call.at_once = call.block_rows * ((AT_ONCE + call.block_rows - 1) // call.block_rows)
    call.total_bytes = row * call.rows
    call.stages = <Stage*>calloc(call.n_stages, sizeof(Stage))
    call.locals = <Local*>calloc(call.n_locals + 1, sizeof(Local))
    call.slots = <int*>calloc(n_operands + 1, sizeof(int))
    call.operands = <Operand*>calloc(n_operands + 1, sizeof(Operand))
    if call.stages == NULL or call.locals == NULL or call.slots == NULL or call.operands == NULL:
        raise MemoryError()
    for k in range(call.n_locals):
        local = &call.locals[k]
        local.row_bytes, local.offset, local.added = row_bytes_of(<Array>ghosts[k], call.rows), call.scratch, k in added
        call.scratch += (local.row_bytes * (call.at_once if local.added else call.block_rows) + 127) & ~63
    call.own_operands = call.scratch
    return 0


cdef int fetch_ahead(RowKernelCall call, list arrays) except -1:
    """Note the arrays whose next rows are fetched while others are computed: a row that is written is read first by a cache."""
    cdef Array a
    for a in arrays:
        if a.contiguous and a.size >= call.rows and call.n_read < MOST_AHEAD:
            call.read[call.n_read], call.read_bytes[call.n_read] = read_pointer(a), row_bytes_of(a, call.rows)
            call.n_read += 1
    return 0


cdef int prepare_stage(RowKernelCall call, int k, tuple roots, list inputs, list outputs, combine, tuple shape, list ghosts,
                       set reread, tuple params, const Value* values) except -1:
    """Compile one stage, and describe its operands: its inputs, then its outputs."""
    cdef Stage* stage = &call.stages[k]
    cdef list numbers = [*inputs, *outputs], used = [array_of(call, ghosts, n) for n in numbers]
    cdef int ctype = 1 if any([(<Array>a).dtype == 1 for a in used]) else 0  # halves in float
    cdef Operand* operands = &call.operands[call.n_operands]
    cdef Program program = program_of(roots, len(inputs), ctype, params)
    cdef bytearray scalars
    cdef Array a
    cdef int i, j
    stage.inner = 1
    for d in shape:
        stage.inner *= d
    stage.inner //= call.rows
    stage.combine = -1 if combine is None else CODES.get(combine, COLUMNS)
    stage.n_inputs, stage.n_outputs, stage.first = <int>len(inputs), <int>len(outputs), call.n_operands
    for number, a in zip(numbers, used, strict=True):
        output = call.n_operands >= stage.first + stage.n_inputs
        describe(call, call.n_operands, number, <Array>a, shape, output, stage.combine >= 0)
        call.n_operands += 1
    stage.long = is_long(program, used[:stage.n_inputs], call.rows, stage.inner)
    if stage.long:
        program = program.by_values(call.rows * stage.inner, operands, min(stage.inner, <Py_ssize_t>MX_LONG_ROW),
                                    1 if stage.combine < 0 else stage.inner) or program
    for i in range(stage.n_inputs if stage.combine == -1 else 0):
        for j in range(stage.n_outputs):
            a = used[stage.n_inputs + j]
            operands[stage.n_inputs + j].staged |= overlaps(<Array>used[i], a) and program.clobbers(j, i)
    scalars = bytearray(program.n_scalars * 8 + 1)
    program.fill_scalars(values, scalars)
    call.programs.append(program)
    call.kept.append(scalars)
    stage.program, stage.scalars = <PyObject*>program, scalars
    stage.block = BLOCK_BYTES // program.itemsize
    if program.n_registers - stage.n_inputs > 6:
        stage.block //= 2
    if call.turned and stage.inner > stage.block:
        stage.block = whole_part(used, call.rows, stage.block)
    if stage.long and stage.inner < stage.block:
        stage.block = stage.inner  # blocks that are rows read what is broadcast over rows in place
    if stage.long and not program.copies:
        call.parts += program.n_steps * max(stage.inner * program.itemsize // PART_BYTES, <Py_ssize_t>1)
    stage.stream = stage.combine < 0
    for number in outputs:
        stage.stream = stage.stream and number >= 0 and number not in reread and goes_past_the_caches(call, number)
    if stage.stream and not call.turned:
        stage.block = min(stage.block, MX_MEMORY_BLOCK // program.itemsize)
    if stage.combine == COLUMNS:
        stage.direct, stage.sums = adds_input(call, stage, roots, inputs, ctype, ghosts), call.sums
        call.sums += stage.inner
    call.own_operands = max(
        call.own_operands, call.scratch + ((stage.block * program.itemsize + 63) & ~63) * (program.n_registers + 1))
    return 0


cdef bint adds_input(RowKernelCall call, const Stage* stage, roots, list inputs, int ctype, list ghosts) except -1:
    """Return whether what a stage adds up lies in an array, row after row."""
    cdef Array a
    if roots[0] is not input_(0) or len(inputs) != 1 or inputs[0] < 0:
        return False
    a = array_of(call, ghosts, inputs[0])
    return a.contiguous and a.dtype == ctype and a.size == call.rows * stage.inner


cdef dict _programs = {}


cdef Program program_of(tuple roots, n_inputs, int ctype, tuple params):
    """Return the program of formulas: one for all sizes."""
    key = roots, n_inputs, ctype, params
    found = _programs.get(key)
    if found is None:
        listing = compile_program(roots, n_inputs, lambda name, ctype=ctype: has_instruction(name, ctype), True)
        found = keep(_programs, key, Program(listing, params, ctype))
    return <Program>found


cdef bint is_long(Program program, list read, Py_ssize_t rows, Py_ssize_t inner) except -1:
    """Return whether rows of so many elements are computed one by one; costly loops are the better the longer they are."""
    broadcast = sum([(<Array>a).size < rows * inner for a in read])
    return inner >= MX_LONG_ROW or (inner * broadcast >= 2 * MX_LONG_ROW and not program.n_costly)


cdef Py_ssize_t whole_part(list arrays, Py_ssize_t rows, Py_ssize_t most) except -1:
    """Return how many elements make a block, so that a part of a row, which lie one after the other, is a number of blocks.

    Of short parts, which are copied together, a block is a number.
    """
    cdef Py_ssize_t part, pieces
    for a in arrays:
        part = elements_in_order(<Array>a, rows)
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


cdef bint goes_past_the_caches(RowKernelCall call, int number) noexcept:
    """Return whether an array is so large that writing it would only evict what is still needed."""
    cdef Array a = <Array>call.arrays[number]
    return (a.contiguous or call.turned) and streams(a.size * itemsize_of(a.dtype))


cdef int describe(RowKernelCall call, int at, int number, Array a, tuple shape, bint output, bint reduced) except -1:
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
