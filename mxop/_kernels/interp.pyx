"""The blocked interpreter: runs a program on blocks that stay in the first-level cache.

Threads take runs of blocks.  For each block, inputs that are not plain arrays of the compute type are loaded into
registers, each instruction is one vectorised loop, and outputs that cannot be written in place are stored from registers
(casts, ``req='add'``, strides).
"""
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from . cimport team
from .codes cimport FLOAT16
from .instruction_sets cimport (
    BULK, ISA, instruction, itemsize_of, mx_instruction, mx_prefetch, mx_prefetch_first,
    mx_stream_fence,
)
from .machine cimport (
    MX_BLOCK_BYTES, MX_GIL_BYTES, MX_L2_BYTES, MX_LONG_ROW, MX_MEMORY_BLOCK, MX_PREFETCH_BYTES, MX_STACK_BYTES, MX_TASKS_A_THREAD,
)
from .memory cimport Block, block_new, block_release, fill_scratch
from .operands cimport (
    REQ_ADD, REQ_INPLACE, REQ_NULL, REQ_WRITE, block_in_place, converts, is_value, load_block, load_key, period_of,
    place_in_order, store_block, was_read,
)
from .team cimport is_small, parts_of, run_tasks, task_function, threads_for

from mxop.formula import compile_program

from .instruction_sets import has_instruction
from .machine import STREAM_BYTES

BLOCK_BYTES = MX_BLOCK_BYTES
cdef Py_ssize_t _stream_bytes, _stream_computed, _stream_costly
_stream_bytes, _stream_computed, _stream_costly = STREAM_BYTES


# ---- settings -------------------------------------------------------------------------------------------------------------

def tune(parallel_bytes=None, stream_bytes=None, block_bytes=None):
    """Set the sizes from which on threads, and non-temporal stores (of copies, computed and costly results), are used; return all."""
    global _stream_bytes, _stream_computed, _stream_costly, BLOCK_BYTES
    if block_bytes is not None:
        BLOCK_BYTES = block_bytes
    if parallel_bytes is not None:
        team.PARALLEL_BYTES = parallel_bytes
    if stream_bytes is not None:
        sizes = stream_bytes if isinstance(stream_bytes, tuple) else (stream_bytes,) * 3
        _stream_bytes, _stream_computed, _stream_costly = sizes
    sizes = _stream_bytes, _stream_computed, _stream_costly
    return {"parallel_bytes": team.PARALLEL_BYTES, "stream_bytes": sizes, "block_bytes": BLOCK_BYTES}


cdef bint streams(Py_ssize_t nbytes) noexcept nogil:
    """Return whether non-temporal stores are used, for half of the bytes read and written."""
    return nbytes >= _stream_bytes


cdef enum:  # what makes a number of parameters
    PUSH_PARAM
    PUSH_SCALAR
    PUSH_NUMBER
    ADD
    SUB
    MUL
    DIV
    NEGATIVE
    SQUARE

OPERATIONS = {"add": ADD, "sub": SUB, "mul": MUL, "div": DIV, "neg": NEGATIVE, "square": SQUARE}


cdef bint reads_inputs(object number) except -1:
    """Return whether a number is made of values of inputs."""
    return any([hasattr(part, "input") for part in getattr(number, "postfix", ())])


cdef Code code_of(object part, list names) except *:
    """Return one part of a number's postfix, of parameters or of values of inputs."""
    cdef Code code
    code.op, code.param, code.value = PUSH_NUMBER, 0, 0.0
    if isinstance(part, tuple):
        code.op = OPERATIONS[part[0]]
    elif isinstance(part, str):
        code.op, code.param = PUSH_PARAM, names.index(part)
    elif hasattr(part, "input"):
        code.op, code.param = PUSH_PARAM, part.input
    else:
        code.value = part
    return code


# ---- programs -------------------------------------------------------------------------------------------------------------

cdef Ahead _next_block      # asks a range of a program to fetch its own next block


cdef inline void put_scalar(int ctype, char* scalars, int k, double number, long long whole) noexcept nogil:
    """Write a scalar in the compute type."""
    if ctype == 0:
        (<float*>scalars)[k] = <float>number
    elif ctype == 1:
        (<double*>scalars)[k] = number
    else:
        ISA.stores[ctype][6](1, &whole, scalars + k * itemsize_of(ctype), itemsize_of(ctype), 0)


cdef void fetch_little(Ahead* ahead, Py_ssize_t nbytes) noexcept nogil:
    """Ask for a little more of what comes next, as much as is due for an instruction with so many bytes of results."""
    cdef Py_ssize_t parts = max(nbytes // PART_BYTES, <Py_ssize_t>1), some
    cdef int k
    for k in range(ahead.n):
        some = min(parts * ahead.each[k], ahead.left[k])
        mx_prefetch(ahead.at[k] + ahead.far, some)
        if ahead.far:
            mx_prefetch_first(ahead.at[k], some)
        ahead.at[k] += some
        ahead.left[k] -= some


# One run: chunks of `n` elements are tasks of threads, each of which has some room.
cdef struct Chunks:
    Py_ssize_t n, chunk, block, room
    const Operand* inputs
    const Operand* outputs
    const char* scalars
    char* scratch
    bint stream
    Ahead* ahead


cdef void run_chunk(Program program, Chunks* job, Py_ssize_t task, int thread) noexcept nogil:
    program._range(task * job.chunk, min(job.n, (task + 1) * job.chunk), job.inputs, job.outputs, job.scalars,
                   job.scratch + thread * job.room, job.block, job.stream, job.ahead)
    if job.stream:
        mx_stream_fence()


cdef class Program:
    """A compiled formula for one compute type.

    Parameters
    ----------
    program : mxop.formula.Program
    params : sequence of str
        Names of the parameters, in the order in which a call gives their values.
    ctype : int
        Code of the compute type.
    """

    def __cinit__(self, program, params, int ctype):
        cdef int i, j, offset = 0, at_code = 0
        cdef list steps = program.steps, names = list(params), numbers = [v for s in steps for v in s.scalars]
        cdef int spare = len(numbers)  # where scalars begin that are parameters in numbers made of values of inputs, too
        cdef const mx_instruction* known
        self.n_inputs, self.n_outputs, self.n_registers = program.n_inputs, program.n_outputs, program.n_registers
        self.n_steps, self.ctype, self.itemsize = len(steps), ctype, itemsize_of(ctype)
        self.n_scalars = spare + sum([isinstance(part, str) for v in numbers if reads_inputs(v) for part in v.postfix])
        self.listing = str(program)
        self.copies = self.n_inputs == self.n_outputs == 1 and [s.name for s in steps] == ["x0"]
        self.steps = <StepC*>calloc(self.n_steps + 1, sizeof(StepC))
        self.scalars = <ScalarC*>calloc(self.n_scalars + 1, sizeof(ScalarC))
        self.keys, self.valued = <bint*>calloc(self.n_inputs + 1, sizeof(bint)), <bint*>calloc(self.n_inputs + 1, sizeof(bint))
        self.made_of, self.params, self.variants = program, names, {}
        self.codes = <Code*>calloc(sum([len(getattr(v, "postfix", ())) for v in numbers]) + 1, sizeof(Code))
        if self.steps == NULL or self.scalars == NULL or self.keys == NULL or self.valued == NULL or self.codes == NULL:
            raise MemoryError()
        for k in program.keys:
            self.keys[<int>k] = True
        for k in program.values:
            self.valued[<int>k] = True
        self.n_values = <int>len(program.values)
        for i, step in enumerate(steps):
            known = instruction(step.name, ctype)
            if known == NULL:
                raise KeyError(f"no instruction {step.name!r} for compute type {ctype}")
            srcs = list(step.srcs) + [0, 0, 0]
            self.steps[i].loop = known.loops[ctype]
            self.steps[i].total = known.totals[ctype] if ctype <= 1 else NULL
            self.steps[i].dst = step.dst
            self.steps[i].n_srcs = len(step.srcs)
            self.steps[i].a, self.steps[i].b, self.steps[i].c = srcs[0], srcs[1], srcs[2]
            self.steps[i].scalars = offset
            self.steps[i].costly, self.steps[i].twice = step.costly, step.twice
            self.n_costly += step.costly
            for value in step.scalars:
                if isinstance(value, str):
                    self.scalars[offset].param = names.index(value)
                elif hasattr(value, "postfix"):
                    self.scalars[offset].param = -4 if reads_inputs(value) else -2
                    self.scalars[offset].code, self.scalars[offset].n_codes = at_code, len(value.postfix)
                    for part in value.postfix:
                        self.codes[at_code] = code_of(part, names)
                        if isinstance(part, str) and self.scalars[offset].param == -4:
                            self.scalars[spare].param, self.codes[at_code].param = self.codes[at_code].param, spare
                            self.codes[at_code].op = PUSH_SCALAR
                            spare += 1
                        at_code += 1
                elif hasattr(value, "input"):
                    self.scalars[offset].param, self.scalars[offset].code = -3, value.input
                else:
                    self.scalars[offset].param = -1
                    self.scalars[offset].value.d = value
                    self.scalars[offset].value.i = <long long>value if -2.0 ** 63 <= value < 2.0 ** 63 else 0
                offset += 1

    def __dealloc__(self):
        free(self.steps)
        free(self.scalars)
        free(self.keys)
        free(self.valued)
        free(self.codes)

    def __str__(self):
        return self.listing

    cdef double computed(self, const ScalarC* scalar, const Value* params, const char* scalars) noexcept nogil:
        """Compute a number of parameters, or values of inputs, with the roundings of the compute type, float32 or float64."""
        cdef double stack[16]
        cdef int i, top = -1
        cdef const Code* code
        for i in range(scalar.code, scalar.code + scalar.n_codes):
            code = &self.codes[i]
            if code.op <= PUSH_NUMBER:
                top += 1
                stack[top] = params[code.param].d if code.op == PUSH_PARAM else code.value
                if code.op == PUSH_SCALAR:
                    stack[top] = (<const float*>scalars)[code.param] if self.ctype == 0 else (<const double*>scalars)[code.param]
            elif code.op == NEGATIVE:
                stack[top] = -stack[top]
            elif code.op == SQUARE:
                stack[top] = stack[top] * stack[top]
            else:
                top -= 1
                if code.op == ADD:
                    stack[top] = stack[top] + stack[top + 1]
                elif code.op == SUB:
                    stack[top] = stack[top] - stack[top + 1]
                elif code.op == MUL:
                    stack[top] = stack[top] * stack[top + 1]
                else:
                    stack[top] = stack[top] / stack[top + 1]
            if self.ctype == 0:
                stack[top] = <float>stack[top]
        return stack[0]

    cdef Program by_values(self, Py_ssize_t n, const Operand* inputs, Py_ssize_t least, Py_ssize_t row):
        """Return a program that takes as scalars those inputs that are the same for many elements; None where that is no use.

        They are the same for at least so many elements, and for whole rows of so many.
        """
        cdef unsigned long long bits = 0
        cdef int k
        if self.copies or self.n_values or n < MX_LONG_ROW or self.n_inputs > 64:
            return None
        for k in range(self.n_inputs):
            if is_value(&inputs[k], least) and not self.keys[k] and inputs[k].shape[inputs[k].ndim - 1] % row == 0:
                bits |= 1ull << k
        if bits == 0:
            return None
        found = self.variants.get(bits, self)
        if found is self:
            ctype = self.ctype
            listing = compile_program(self.made_of.roots, self.n_inputs, lambda name: has_instruction(name, ctype), ctype <= 1,
                                      frozenset([k for k in range(self.n_inputs) if bits >> k & 1]))
            found = Program(listing, self.params, ctype)
            if not listing.values or (<Program>found).n_scalars > MOST_SCALARS or (<Program>found).n_registers > MOST_REGISTERS:
                found = None
            self.variants[bits] = found
        return <Program>found

    cdef Py_ssize_t take_values(self, Py_ssize_t start, Py_ssize_t length, const Operand* inputs, char* scalars) noexcept nogil:
        """Write the scalars that follow from inputs, from an element on; return for how many of at most `length` they stay so."""
        cdef const Operand* operand
        cdef const char* p
        cdef Value values[64]
        cdef float single
        cdef Py_ssize_t run = 0, number = 0, rest   # elements of a run of equal ones, and which run it is
        cdef int i, d
        for i in range(self.n_inputs):
            if not self.valued[i]:
                continue
            operand = &inputs[i]
            d = operand.ndim - 1
            if operand.shape[d] != run:  # one division for all inputs of equal runs
                run = operand.shape[d]
                number = start // run
            length = min(length, (number + 1) * run - start)
            rest, p = number, operand.data
            while d > 0:
                d -= 1
                p = p + (rest if rest < operand.shape[d] else rest % operand.shape[d]) * operand.strides[d]
                rest = 0 if rest < operand.shape[d] else rest // operand.shape[d]
            if operand.dtype <= 1 and self.ctype <= 1:
                values[i].d = (<const float*>p)[0] if operand.dtype == 0 else (<const double*>p)[0]
                continue
            if self.ctype == 0:
                ISA.loads[operand.dtype][0](1, p, 0, &single)
                values[i].d = single
            else:
                ISA.loads[operand.dtype][self.ctype](1, p, 0, <void*>&values[i].d if self.ctype == 1 else <void*>&values[i].i)
        for i in range(self.n_scalars):
            if self.scalars[i].param == -4:
                put_scalar(self.ctype, scalars, i, self.computed(&self.scalars[i], values, scalars), 0)
            elif self.scalars[i].param == -3 and self.ctype <= 1:
                put_scalar(self.ctype, scalars, i, values[self.scalars[i].code].d, 0)
            elif self.scalars[i].param == -3:
                memcpy(scalars + i * self.itemsize, &values[self.scalars[i].code].i, self.itemsize)
        return length

    cdef bint clobbers(self, int output, int input_) noexcept nogil:
        """Return whether an output that lies where an input does is written before that was read for the last time."""
        cdef int i, last = -1, first = self.n_steps
        cdef StepC* step
        for i in range(self.n_steps):
            step = &self.steps[i]
            if step.dst == self.n_inputs + output and i < first:
                first = i
            if ((step.n_srcs > 0 and step.a == input_) or (step.n_srcs > 1 and step.b == input_)
                    or (step.n_srcs > 2 and step.c == input_)):
                last = i
        return first < last or (first == last and self.steps[first].twice)

    cdef void fill_scalars(self, const Value* params, char* buffer) noexcept nogil:
        """Write all scalars in the compute type."""
        cdef int i
        cdef Value v
        for i in range(self.n_scalars):
            v = params[self.scalars[i].param] if self.scalars[i].param >= 0 else self.scalars[i].value
            if self.scalars[i].param == -2:
                v.d = self.computed(&self.scalars[i], params, buffer)
            put_scalar(self.ctype, buffer, i, v.d, v.i)

    cdef bint takes_halves(self, const Operand* inputs, const Operand* output) noexcept nogil:
        """Return whether the program is one instruction on plain arrays of float16."""
        cdef int k
        if self.n_steps != 1 or self.n_outputs != 1 or self.ctype != 0 or not 0 < self.n_inputs <= 3:
            return False
        for k in range(self.n_inputs):
            if inputs[k].dtype != FLOAT16 or not inputs[k].contiguous or self.keys[k]:
                return False
        return (output.dtype == FLOAT16 and output.contiguous and not output.staged
                and (output.req == REQ_WRITE or output.req == REQ_INPLACE))

    cdef void _range(self, Py_ssize_t start, Py_ssize_t stop, const Operand* inputs, const Operand* outputs,
                     const char* scalars, char* scratch, Py_ssize_t block, bint stream, Ahead* ahead) noexcept nogil:
        """Run the program on elements ``start`` to ``stop``, block by block; whoever streams fences when all is done.

        Meanwhile what `ahead` names is fetched; or the next block, if it is `_next_block`.
        """
        cdef char* registers[MOST_REGISTERS]
        cdef char* rooms[MOST_REGISTERS]
        cdef const char* there
        cdef Py_ssize_t at = start, length, size = self.itemsize, room = (block * size + 63) & ~63
        cdef bint own = ahead == &_next_block   # whether what the next block reads is fetched meanwhile
        cdef Ahead next_block
        cdef const char* asked[MOST_AHEAD]
        cdef int k, n_in = self.n_inputs, n_out = self.n_outputs, n_asked = 0, n_direct = 0
        cdef char* free_room = scratch  # in the end, for a block of another type
        cdef const char* result
        cdef bint direct_in[MOST_REGISTERS]
        cdef Py_ssize_t period[MOST_REGISTERS]     # of what is loaded once, and read from another place by each block
        cdef Py_ssize_t longest = 0     # of these
        cdef Py_ssize_t within = 0      # rows of so many elements a block keeps, which are read where they lie
        cdef Py_ssize_t in_row[MOST_REGISTERS]     # elements of a row that is the same for all, and lies side by side
        cdef Py_ssize_t offset = 0      # of a block in its row
        cdef bint direct_out[MOST_REGISTERS]
        cdef bint past[MOST_REGISTERS]             # the caches
        cdef char values[8 * MOST_SCALARS]
        if self.n_values:
            memcpy(values, scalars, self.n_scalars * size)
            scalars = values
        if self.copies:
            self.convert(start, stop, inputs, outputs, scratch, block, stream)
            return
        if self.takes_halves(inputs, outputs):
            registers[0], registers[1] = inputs[self.steps.a].data + 2 * start, inputs[self.steps.b].data + 2 * start
            registers[2], free_room = inputs[self.steps.c].data + 2 * start, outputs.data + 2 * start
            stream = stream and not was_read(outputs, inputs, n_in) and not <Py_ssize_t>free_room & 15
            ISA.halves(self.steps.loop, self.steps.n_srcs, stop - start, free_room, <const char* const*>registers, scalars, stream)
            return
        for k in range(n_in):
            direct_in[k] = inputs[k].contiguous and inputs[k].dtype == self.ctype and not self.keys[k]
            n_direct += direct_in[k]
            registers[k], in_row[k] = scratch, 0
            if not direct_in[k] and not self.valued[k]:
                registers[k] = rooms[k] = free_room
                free_room += room
                period[k] = 0 if self.keys[k] else period_of(&inputs[k])
                if period[k] > block // 2:
                    within = 0 if stream and period[k] & 15 else period[k]
                    if inputs[k].dtype == self.ctype and inputs[k].ndim == 2 and inputs[k].strides[1] == size:
                        in_row[k] = within
                    period[k] = 0
                elif period[k]:
                    load_block(&inputs[k], self.ctype, 0, min(block, stop), rooms[k])
                    longest = max(longest, period[k])
        if own:
            ahead, own = NULL, n_direct > 1     # the processor fetches one array by itself
        for k in range(n_out):
            past[k] = stream and not was_read(&outputs[k], inputs, n_in)
            direct_out[k] = (outputs[k].contiguous and outputs[k].dtype == self.ctype and outputs[k].req != REQ_ADD
                             and outputs[k].req != REQ_NULL and not outputs[k].staged and not past[k])
            if not direct_out[k]:
                registers[n_in + k] = free_room
                free_room += room
        for k in range(n_in):           # while results go to memory, what is read next comes from there
            if direct_in[k] and past[0] and outputs.dtype == self.ctype and not own and ahead == NULL and n_asked < MOST_AHEAD:
                asked[n_asked] = inputs[k].data + start * size + MX_PREFETCH_BYTES
                n_asked += 1
        for k in range(n_in + n_out, self.n_registers):
            registers[k] = free_room
            free_room += room
        if self.n_steps == 1 and free_room == scratch:  # nothing is kept between, so that all can be one block
            block = stop - start
        elif longest > 1 and stop > block:  # what is loaded is as long as a block from any place on
            block -= longest
            block = block & ~63 if block > 63 else block
        while at < stop:
            length = min(block, stop - at)
            if within:
                offset = at % within
                length = min(length, within - offset)
            if self.n_values:
                length = self.take_values(at, length, inputs, values)
            for k in range(n_in):
                if direct_in[k]:
                    registers[k] = inputs[k].data + at * size
                elif self.valued[k]:
                    continue
                elif self.keys[k]:
                    load_key(&inputs[k], at, rooms[k])
                elif within and in_row[k] == within:
                    registers[k] = inputs[k].data + offset * size
                elif period[k]:
                    registers[k] = rooms[k] + (at % period[k] * size if period[k] > 1 else 0)
                else:
                    there = block_in_place(&inputs[k], self.ctype, at, length)
                    registers[k] = <char*>there if there != NULL else rooms[k]
                    if there == NULL:
                        load_block(&inputs[k], self.ctype, at, length, rooms[k])
            for k in range(n_out):
                if direct_out[k]:
                    registers[n_in + k] = outputs[k].data + at * size
            if own:
                ahead = &next_block
                self.look_ahead(ahead, inputs, at + length, min(stop, at + length + block))
            self.run_steps(length, registers, scalars, NULL, ahead)
            for k in range(n_out):
                if not direct_out[k] and outputs[k].req != REQ_NULL:
                    there = NULL
                    if past[k] and outputs[k].req != REQ_ADD and itemsize_of(outputs[k].dtype) <= size:
                        there = place_in_order(&outputs[k], at, length)
                    if there != NULL and not <Py_ssize_t>there & 15:
                        result = registers[n_in + k]
                        if outputs[k].dtype != self.ctype:
                            ISA.stores[outputs[k].dtype][self.ctype](length, result, free_room, itemsize_of(outputs[k].dtype), 0)
                            result = free_room
                        BULK.stream(<char*>there, result, length * itemsize_of(outputs[k].dtype), asked, 0 if k else n_asked)
                    else:
                        store_block(&outputs[k], self.ctype, at, length, registers[n_in + k])
            at += length

    cdef void convert(self, Py_ssize_t start, Py_ssize_t stop, const Operand* source, const Operand* target, char* scratch,
                      Py_ssize_t block, bint stream) noexcept nogil:
        """Copy elements ``start`` to ``stop`` block by block, from one type or layout to another, without a step between."""
        cdef Py_ssize_t at = start, length, size = self.itemsize, width = itemsize_of(target.dtype)
        cdef char* beside               # a block of the target's type
        cdef bint dense = target.contiguous and target.req != REQ_ADD, direct = dense and target.dtype == self.ctype and not stream
        cdef bint plain = source.contiguous and source.dtype == self.ctype
        cdef const char* p
        if target.req == REQ_NULL:
            return
        if stream and width > size:
            block = max(block * size // width, 1)
        beside = scratch + ((block * size + 63) & ~63)
        while at < stop:
            length = min(block, stop - at)
            p = scratch
            if plain:
                p = source.data + at * size
            else:
                load_block(source, self.ctype, at, length, target.data + at * size if direct else scratch)
            if p != scratch or not direct:
                if stream and dense and not (<Py_ssize_t>target.data + at * width) & 15:
                    if target.dtype != self.ctype:
                        ISA.stores[target.dtype][self.ctype](length, p, beside, width, 0)
                    BULK.stream(target.data + at * width, <const char*>beside if target.dtype != self.ctype else p,
                                length * width, NULL, 0)
                else:
                    store_block(target, self.ctype, at, length, p)
            at += length

    cdef void look_ahead(self, Ahead* ahead, const Operand* inputs, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
        """Name elements ``start`` to ``stop`` of the inputs, the next block, as what is fetched."""
        cdef int k
        ahead.n, ahead.far = 0, MX_MEMORY_BLOCK
        for k in range(min(self.n_inputs, <int>MOST_AHEAD)):
            if inputs[k].contiguous and inputs[k].dtype == self.ctype:
                ahead.at[ahead.n] = inputs[k].data + start * self.itemsize
                ahead.left[ahead.n] = (stop - start) * self.itemsize
                ahead.each[ahead.n] = (PART_BYTES // self.n_steps + 63) & ~63
                ahead.n += 1

    cdef void run_fetching(self, const StepC* step, Py_ssize_t length, char** registers, const char* scalars,
                           Ahead* ahead) noexcept nogil:
        """Run an instruction in parts, and ask for a little of what comes next before each."""
        cdef Py_ssize_t begin = 0, size = self.itemsize, part = PART_BYTES // size
        while begin < length:
            fetch_little(ahead, PART_BYTES)
            step.loop(min(part, length - begin), registers[step.dst] + begin * size, registers[step.a] + begin * size,
                      registers[step.b] + begin * size, registers[step.c] + begin * size, scalars)
            begin += part

    cdef bint run_steps(self, Py_ssize_t length, char** registers, const char* scalars, double* total, Ahead* ahead) noexcept nogil:
        """Run all instructions on one block; tell whether the last one added its elements to `total`, if there is one, instead.

        What `ahead` names, if anything, is fetched after each, and while costly ones run.
        """
        cdef const StepC* step = self.steps
        cdef const StepC* last = step + self.n_steps - 1
        cdef const char* mine
        cdef bint added = False
        while step <= last:
            mine = scalars + step.scalars * self.itemsize
            if ahead != NULL and step.costly:
                self.run_fetching(step, length, registers, mine, ahead)
                step += 1
                continue
            added = step == last and total != NULL and step.total != NULL
            if added:
                total[0] += step.total(length, registers[step.a], registers[step.b], registers[step.c], mine)
            else:
                step.loop(length, registers[step.dst], registers[step.a], registers[step.b], registers[step.c], mine)
            if ahead != NULL:
                fetch_little(ahead, length * self.itemsize)
            step += 1
        return added

    cdef const char* block(self, Py_ssize_t start, Py_ssize_t length, const Operand* inputs, const char* scalars,
                           char* scratch, Py_ssize_t stride, double* total, Ahead* ahead) noexcept nogil:
        """Compute one block of the (only) output and return where it lies; for kernels that go on from there.

        With `total`, its elements are added to that instead, if the last instruction can: then the result is NULL.  What
        `ahead` names, if anything, is fetched meanwhile.
        """
        cdef char* registers[MOST_REGISTERS]
        cdef char values[8 * MOST_SCALARS]
        cdef const char* there
        cdef int k
        if self.n_values:
            memcpy(values, scalars, self.n_scalars * self.itemsize)
            self.take_values(start, length, inputs, values)
            scalars = values
        if self.copies:
            if inputs[0].contiguous and inputs[0].dtype == self.ctype:
                return inputs[0].data + start * self.itemsize
            load_block(&inputs[0], self.ctype, start, length, scratch)
            return scratch
        for k in range(self.n_registers):
            registers[k] = scratch + k * stride
        for k in range(self.n_inputs):
            if self.keys[k]:
                load_key(&inputs[k], start, registers[k])
            if self.keys[k] or self.valued[k]:
                continue
            there = block_in_place(&inputs[k], self.ctype, start, length) if not inputs[k].contiguous else NULL
            if inputs[k].contiguous and inputs[k].dtype == self.ctype:
                registers[k] = inputs[k].data + start * self.itemsize
            elif there != NULL:
                registers[k] = <char*>there
            else:
                load_block(&inputs[k], self.ctype, start, length, registers[k])
        return NULL if self.run_steps(length, registers, scalars, total, ahead) else registers[self.n_inputs]

    cdef bint is_tiny(self, Py_ssize_t n) noexcept:
        """Return whether so many elements are few enough for :meth:`run_tiny`, and the program has room there."""
        cdef Py_ssize_t size = (n * self.itemsize + 63) & ~63
        if size > MX_GIL_BYTES or self.n_registers > MOST_TINY or self.n_scalars > MOST_TINY:
            return False
        return size * (1 + self.n_steps // 2 + 2 * self.n_costly) < 2 * team.PARALLEL_BYTES  # else threads help

    cdef bint takes_plain(self, const Operand* operands) noexcept:
        """Return whether operands, inputs and then outputs, are what :meth:`run_tiny` takes."""
        cdef int k
        for k in range(self.n_inputs + self.n_outputs):
            if not operands[k].contiguous or operands[k].dtype != self.ctype or (k < self.n_inputs and self.keys[k]):
                return False
            if k >= self.n_inputs and (operands[k].staged or operands[k].req not in (REQ_WRITE, REQ_INPLACE)):
                return False
        return True

    cdef void run_tiny(self, Py_ssize_t n, char** arrays, const Value* params) noexcept:
        """Run few elements of plain arrays of the compute type (inputs, then outputs)."""
        cdef char scalars[8 * MOST_TINY]
        cdef char scratch[MX_BLOCK_BYTES + 64]
        cdef char* registers[MOST_TINY]
        cdef char* room = <char*>((<Py_ssize_t>scratch + 63) & ~63)
        cdef int k, first = self.n_inputs + self.n_outputs, kept = self.n_registers - first
        cdef Py_ssize_t at = 0, length, stride, block = n
        cdef StepC* step
        fill_scratch(scratch, sizeof(scratch))
        if self.n_scalars:
            self.fill_scalars(params, scalars)
        if self.n_steps > 1:
            block = min(n, (min(BLOCK_BYTES, MX_BLOCK_BYTES // max(kept, 1)) & ~63) // self.itemsize)
        stride = (block * self.itemsize + 63) & ~63
        for k in range(first, self.n_registers):
            registers[k] = room + (k - first) * stride
        while at < n:  # some loops look at the first element, so there is one
            length = min(block, n - at)
            for k in range(first):
                registers[k] = arrays[k] + at * self.itemsize
            for k in range(self.n_steps):
                step = &self.steps[k]
                step.loop(length, registers[step.dst], registers[step.a], registers[step.b], registers[step.c],
                          scalars + step.scalars * self.itemsize)
            at += length

    cdef int run(self, Py_ssize_t n, Operand* inputs, Operand* outputs, const Value* params) except -1:
        """Run the program on `n` elements."""
        cdef Program by_values = self.by_values(n, inputs, MX_LONG_ROW, 1)
        cdef char small[MX_STACK_BYTES + 64]
        cdef char scalar_room[8 * MOST_SCALARS]
        cdef char* scalars = scalar_room
        cdef Py_ssize_t block = BLOCK_BYTES // self.itemsize, need
        cdef int threads, k
        cdef Block* memory = NULL
        cdef Block* scalar_memory = NULL
        cdef bint stream, other, waits
        cdef Chunks job
        cdef Ahead* ahead = NULL
        cdef Py_ssize_t moved = 0
        if n == 0:
            return 0
        if by_values is not None:
            return by_values.run(n, inputs, outputs, params)
        if self.n_registers > MOST_REGISTERS:
            raise MemoryError(f"a program of {self.n_registers} registers is too large")
        if self.n_scalars > MOST_SCALARS:
            scalar_memory = block_new(self.n_scalars * 8)
            scalars = scalar_memory.data
        self.fill_scalars(params, scalars)
        for k in range(self.n_inputs):
            moved += n * itemsize_of(inputs[k].dtype) if inputs[k].contiguous else 0
        for k in range(self.n_outputs):
            moved += n * itemsize_of(outputs[k].dtype)
        if self.takes_halves(inputs, outputs):
            stream = moved // 2 >= _stream_bytes
        else:
            stream = moved // 2 >= (_stream_costly if self.n_costly else _stream_computed)
        other = converts(outputs, self.n_outputs, self.ctype)
        if self.n_steps > 1:
            waits = n * self.itemsize > team.PARALLEL_BYTES
        else:  # for memory alone, and not where it computes and converts for as long
            waits = stream and not (other and self.n_costly)
        if self.n_steps > 1 and streams(moved // 2):
            ahead = &_next_block
        if waits:
            block = MX_MEMORY_BLOCK // self.itemsize
        elif other or self.n_registers - self.n_inputs > 6:
            block = block // 2  # many temporaries, or blocks of another type: keep them all in the first-level cache
        if n < block:
            block = n
        need = ((block * self.itemsize + 63) & ~63) * (self.n_registers + 1)
        threads = threads_for(n * self.itemsize * (1 + self.n_steps // 2)) if n > block else 1
        job.scratch = <char*>((<Py_ssize_t>small + 63) & ~63)
        fill_scratch(small, sizeof(small))
        if need * threads > MX_STACK_BYTES:
            memory = block_new(need * threads)
            job.scratch = memory.data
        # several pieces for each thread: one whose core is busy is helped with what it has not begun
        job.chunk = (n // (threads * MX_TASKS_A_THREAD) if threads > 1 else MX_L2_BYTES // 4 // self.itemsize) // block * block + block
        if threads > 1 and is_small(n * self.itemsize):
            job.chunk = (parts_of(n, threads) + 63) & ~63
        job.n, job.block, job.room, job.stream, job.ahead = n, block, need, stream, ahead
        job.inputs, job.outputs, job.scalars = inputs, outputs, scalars
        run_tasks(<task_function>run_chunk, <void*>self, &job, (n + job.chunk - 1) // job.chunk, threads, n * self.itemsize)
        if memory != NULL:
            block_release(memory)
        if scalar_memory != NULL:
            block_release(scalar_memory)
        return 0
