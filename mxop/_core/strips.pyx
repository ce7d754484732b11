"""Strips: several operations that go down their rows together, so that what one makes the next finds in the cache.

A strip is a list of stages over one number of rows.  A stage is a program, on all elements of its rows, or a reduction of
each row.  Threads take blocks of rows; for each block they run all stages.  What only later stages read is *local*: it has
room for one block of rows, in each thread.
May import :mod:`.array`, :mod:`.prepare`, :mod:`mxop._kernels`.
"""
from cpython.object cimport PyObject
from cython.parallel cimport prange, threadid
from libc.stdlib cimport calloc, free

from mxop._core.array cimport Array, Value, broadcast_operand, new_array, read_pointer, write_pointer
from mxop._core.call cimport Call
from mxop._core.transfer cimport overlaps
from mxop._kernels.interp cimport BLOCK_BYTES, Operand, Program, itemsize_of, threads_for
from mxop._kernels.memory cimport Block, block_new, block_release
from mxop._kernels.reduce cimport reduce_rows

from mxop._kernels import interp
from mxop._kernels.interp import get_num_threads
from mxop.formula import compile_program

_COMBINE = {"add": 0, "mul": 1, "max": 2, "min": 3}

cdef enum:
    CACHE_BYTES = 131072     # what the arrays of one block of rows may take
    WORTH_A_BLOCK = 256      # elements of a row that make a block of their own

ctypedef void (*range_function)(PyObject* program, Py_ssize_t start, Py_ssize_t stop, const Operand* inputs,
                                const Operand* outputs, const char* scalars, char* scratch, Py_ssize_t block) noexcept nogil
ctypedef void (*rows_function)(PyObject* program, int combine, const Operand* inputs, Py_ssize_t n_reduced,
                               const char* scalars, char* scratch, Py_ssize_t block, Py_ssize_t first, Py_ssize_t last,
                               char* results) noexcept nogil

cdef struct Stage:
    PyObject* program           # kept alive by the strip
    int n_inputs, n_outputs     # a reduction has one output, which is local
    int first                   # where its operands begin
    int combine                 # -1: not a reduction
    Py_ssize_t inner            # elements of a row
    Py_ssize_t block            # elements that are computed at once
    int scalars                 # where its scalars begin


cdef void run_range(Program program, Py_ssize_t start, Py_ssize_t stop, const Operand* inputs, const Operand* outputs,
                    const char* scalars, char* scratch, Py_ssize_t block) noexcept nogil:
    program._range(start, stop, inputs, outputs, scalars, scratch, block, False)


# a struct holds a borrowed reference, which Cython cannot call without the lock
cdef range_function _range = <range_function>run_range
cdef rows_function _rows = <rows_function>reduce_rows


cdef class StripCall(Call):
    """A strip on fixed arrays; see :func:`prepare_strip`."""

    cdef list programs, arrays
    cdef Stage* stages
    cdef int n_stages, n_operands, n_locals, threads
    cdef int* slots                 # of each operand the local that it is, or -1
    cdef Operand* operands          # of every thread
    cdef Py_ssize_t* row_bytes      # of each local
    cdef Py_ssize_t* offsets        # of each local, in a thread's room
    cdef char* scalars
    cdef Py_ssize_t rows, block_rows, room, scratch, total_bytes

    def __dealloc__(self):
        free(self.stages)
        free(self.slots)
        free(self.operands)
        free(self.row_bytes)
        free(self.offsets)
        free(self.scalars)

    @property
    def source(self):
        """The listings of the stages."""
        return "\n".join([f"stage {k}:\n{(<Program>p).listing}" for k, p in enumerate(self.programs)])

    cdef int execute(self) except -1:
        cdef int threads = threads_for(self.total_bytes), t
        cdef Py_ssize_t blocks = (self.rows + self.block_rows - 1) // self.block_rows
        cdef Block* memory
        threads = min(threads, self.threads)
        if blocks < threads:
            threads = <int>blocks
        memory = block_new(self.room * threads)
        if threads == 1:
            with nogil:
                for t in range(<int>blocks):
                    self.run_block(t, memory.data, self.operands)
        else:
            for t in prange(<int>blocks, nogil=True, schedule="dynamic", num_threads=threads):
                self.run_block(t, memory.data + threadid() * self.room, self.operands + threadid() * self.n_operands)
        block_release(memory)
        return 0

    cdef void run_block(self, Py_ssize_t index, char* room, Operand* operands) noexcept nogil:
        """Run all stages on one block of rows."""
        cdef Py_ssize_t first = index * self.block_rows, last = min(self.rows, first + self.block_rows)
        cdef int k, slot
        cdef Stage* stage
        cdef Operand* mine
        for k in range(self.n_operands):
            slot = self.slots[k]
            if slot >= 0:  # row `first` is where the room of the local begins
                operands[k].data = room + self.offsets[slot] - first * self.row_bytes[slot]
        for k in range(self.n_stages):
            stage = &self.stages[k]
            mine = operands + stage.first
            if stage.combine < 0:
                _range(stage.program, first * stage.inner, last * stage.inner, mine, mine + stage.n_inputs,
                       self.scalars + stage.scalars, room + self.scratch, stage.block)
            else:
                slot = self.slots[stage.first + stage.n_inputs]
                _rows(stage.program, stage.combine, mine, stage.inner, self.scalars + stage.scalars, room + self.scratch,
                      stage.block, first, last, room + self.offsets[slot])


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


def prepare_strip(Py_ssize_t rows, list locals_, list stages, list arrays):
    """Return a :class:`Call` that runs stages over the same rows.

    Parameters
    ----------
    rows : int
        Number of rows.
    locals_ : list of (shape, type)
        What lives in the threads' rooms; the leading dimensions of a shape are the rows.
    stages : list of (roots, inputs, outputs, combine, shape)
        Formulas over ``input_(0)`` and on; what they read and write: ``k`` is ``arrays[k]``, ``~k`` is local `k`; how each
        row is reduced, or None; the shape that is gone through.
    arrays : list of NDArray

    Returns
    -------
    Call or None
        None when an array is written that overlaps another.
    """
    cdef StripCall call = StripCall()
    cdef int k, i, j, n_in, ctype, at = 0, n_scalars = 0, number
    cdef Py_ssize_t row = 0, need, registers = 0, size
    cdef Program program
    cdef Stage* stage
    cdef list ghosts = [ghost(tuple(shape), dtype, k) for k, (shape, dtype) in enumerate(locals_)], operands = []
    cdef Array a
    cdef const char* scalars
    written = {number for s in stages for number in s[2] if number >= 0}
    for number in written:
        for i in range(len(arrays)):
            if i != number and overlaps(<Array>arrays[i], <Array>arrays[number]):
                return None
    call.arrays, call.rows, call.programs = arrays, rows, []
    call.n_stages, call.n_locals = <int>len(stages), <int>len(locals_)
    for a in ghosts:
        row += a.size // rows * itemsize_of(a.dtype)
    for a in arrays:
        if a.size >= rows:
            row += a.size // rows * itemsize_of(a.dtype)
    call.block_rows = max(1, CACHE_BYTES // max(row, 1))
    call.total_bytes = row * rows
    call.stages = <Stage*>calloc(call.n_stages, sizeof(Stage))
    call.row_bytes = <Py_ssize_t*>calloc(call.n_locals + 1, sizeof(Py_ssize_t))
    call.offsets = <Py_ssize_t*>calloc(call.n_locals + 1, sizeof(Py_ssize_t))
    if call.stages == NULL or call.row_bytes == NULL or call.offsets == NULL:
        raise MemoryError()
    size = 0
    for k in range(call.n_locals):
        a = <Array>ghosts[k]
        call.row_bytes[k] = a.size // rows * itemsize_of(a.dtype)
        call.offsets[k] = size
        size += (call.row_bytes[k] * call.block_rows + 127) & ~63
    for k, (roots, inputs, outputs, combine, shape) in enumerate(stages):
        stage = &call.stages[k]
        n_in = <int>len(inputs)
        ctype = stage_type(inputs, outputs, arrays, ghosts)
        listing = compile_program(tuple(roots), n_in, lambda name, ctype=ctype: interp.has_instruction(name, ctype))
        program = Program(listing, (), ctype)
        call.programs.append(program)
        stage.program, stage.n_inputs, stage.n_outputs, stage.first = <PyObject*>program, n_in, <int>len(outputs), at
        stage.combine = _COMBINE[combine] if combine is not None else -1
        stage.inner = 1
        for d in shape:
            stage.inner *= d
        stage.inner //= rows
        stage.block = BLOCK_BYTES // program.itemsize
        if program.n_registers - n_in > 6:
            stage.block //= 2
        if stage.inner < stage.block and (stage.combine >= 0 or stage.inner >= WORTH_A_BLOCK):
            stage.block = stage.inner  # blocks that are rows read what is broadcast over rows in place
        stage.scalars = n_scalars
        n_scalars += (program.n_scalars * 8 + 63) & ~63
        need = ((stage.block * program.itemsize + 63) & ~63) * program.n_registers
        registers = max(registers, need)
        operands.append((shape, [*inputs, *outputs]))
        at += n_in + stage.n_outputs
    call.n_operands, call.scratch, call.room = at, size, size + registers + 64
    call.scalars = <char*>calloc(n_scalars + 64, 1)
    call.threads = get_num_threads()
    call.slots = <int*>calloc(at + 1, sizeof(int))
    call.operands = <Operand*>calloc(<size_t>at * call.threads + 1, sizeof(Operand))
    if call.scalars == NULL or call.slots == NULL or call.operands == NULL:
        raise MemoryError()
    at = 0
    for k, (shape, numbers) in enumerate(operands):
        (<Program>call.programs[k]).fill_scalars(NULL, call.scalars + call.stages[k].scalars)
        for number in numbers:
            describe(call, at, number, <Array>(ghosts[~number] if number < 0 else arrays[number]), shape,
                     at - call.stages[k].first >= call.stages[k].n_inputs, call.stages[k].combine >= 0)
            at += 1
    for i in range(1, call.threads):
        for j in range(call.n_operands):
            call.operands[i * call.n_operands + j] = call.operands[j]
    return call


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


cdef int stage_type(list inputs, list outputs, list arrays, list ghosts) except -1:
    """Return the type that a stage computes in: all its operands have one type, of which halves are computed in float."""
    cdef int number, code = 0
    for number in [*outputs, *inputs]:
        code = (<Array>(ghosts[~number] if number < 0 else arrays[number])).dtype
        if code == 1:
            return 1
    return 0
