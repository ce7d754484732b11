"""Lazy evaluation of eager calls: large elementwise calls are collected, and evaluated as one fused program.

A large elementwise call checks its arguments, allocates its results and is added to the *batch* of pending calls, which all
have results of one shape and type.  The batch is evaluated when the memory of a pending result is read
(:func:`mxop._core.array.read_pointer`), when memory that it reads is about to be written, or when a call does not fit.  Results
without references left by then are computed in registers and never stored.  So every array holds what it would hold if each
call had run where it was made, to the last bit.

Whatever makes Python objects may start a garbage collection, whose finalizers may make calls.  It is done before a batch is
changed or evaluated, and ``version`` tells whether the batch has changed meanwhile.
"""
from cpython.pythread cimport (
    WAIT_LOCK, PyThread_acquire_lock, PyThread_allocate_lock, PyThread_get_thread_ident, PyThread_release_lock,
    PyThread_type_lock,
)
from libc.string cimport memcmp, memcpy

from mxop._core.array cimport (
    MAX_VALUES, Array, Value, alloc, broadcast_operand, detached, over, set_settle,
)
from mxop._core.elementwise cimport ElementwiseCall
from mxop._kernels.instruction_sets cimport itemsize_of
from mxop._kernels.operands cimport MAX_DIMS, REQ_WRITE, Operand
from mxop._kernels.interp cimport MOST_REGISTERS, Program
from mxop._kernels.machine cimport MX_L2_BYTES
from mxop._kernels.memory cimport Block, set_forsaken

import os

from mxop._kernels.instruction_sets import has_instruction
from mxop._kernels.memory import default_limit
from mxop.formula import compile_program, composed, leaves, param, substitute
from mxop.support.errors import MXNetError
from mxop.support.limits import setting
from mxop.support.memo import keep

cdef extern from "Python.h":
    int PyGC_Disable()
    int PyGC_Enable()

cdef enum:
    MOST_OPERANDS = 8       # inputs and outputs of one call that may be pending
    MOST_CALLS = 28         # of one batch: all their operands are registers of one program, which has 256

cdef int _most = 0          # calls of a batch; fewer than two switch lazy evaluation off
cdef Py_ssize_t _least = 0  # elements of a result from which on a call may be pending; smaller arrays stay in the caches
cdef Py_ssize_t _most_bytes = default_limit() // 2      # of the results of a batch
cdef dict _programs = {}    # steps of a batch, results to be stored, type -> (program, arrays it reads, root of each result)
cdef Batch _batch = None    # the pending calls
cdef unsigned long _runner = 0          # the thread that evaluates them, and holds the lock; 0: none does
cdef bint _collects = False             # whether garbage was collected before that, and is to be again
cdef PyThread_type_lock _lock = PyThread_allocate_lock()


cdef class Batch:
    """Pending calls, in the order in which they were made."""
    cdef list steps                     # (call, numbers of its operands): results from 0 up, arrays from -1 down
    cdef list arrays                    # what the calls read
    cdef Block* made[MOST_CALLS * MOST_OPERANDS]    # borrowed: where results go, NULL for those without references left
    cdef Value values[MOST_CALLS * MAX_VALUES]      # numeric parameters of all calls
    cdef int n_made, n_values, n_live, dtype, ndim
    cdef Py_ssize_t shape[MAX_DIMS]
    cdef Py_ssize_t size
    cdef unsigned long long version     # how often it was changed


def set_least(Py_ssize_t size):
    """Set from which size of the results on calls may be pending; return what it was."""
    global _least
    before, _least = _least, size
    return before


def set_most(int most):
    """Set how many calls may become one; return what it was.  Fewer than two switch lazy evaluation off."""
    global _most
    before, _most = _most, max(0, min(most, MOST_CALLS))
    run_all()
    return before


def waiting():
    """Return how many calls are pending."""
    return 0 if _batch is None else len(_batch.steps)


def _renew():
    """In the child of a fork, evaluate again what another thread of the parent was evaluating."""
    global _lock, _runner
    if _runner and _collects:
        PyGC_Enable()
    _lock, _runner = PyThread_allocate_lock(), 0


set_most(setting("MXOP_BULK_SIZE", 0 if os.environ.get("MXNET_ENGINE_TYPE") == "NaiveEngine" else MOST_CALLS))
set_least(setting("MXOP_BULK_ELEMENTS", MX_L2_BYTES // 4))
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


cdef object defer(ElementwiseCall call, object inputs, const Value* values, int dtype, int ndim, const Py_ssize_t* shape,
                  Py_ssize_t size):
    """Return the results of a call that becomes pending, as a list; None where it has to run now.

    The arrays are on the CPU and of one type, and their shapes fit.
    """
    global _batch
    cdef Batch before, batch
    cdef Array a
    cdef unsigned long long version
    cdef int k, n_values = <int>len(call.formula.params)
    if size < _least or _most < 2 or call.constant:  # a constant would be folded into the formulas of later calls, in double
        return None
    if _batch is not None and not fits(_batch, call, inputs, dtype, ndim, shape):
        run_all()
    before = _batch
    batch = new_batch(dtype, ndim, shape, size) if before is None else before
    version = batch.version
    arrays, operands = [], []
    for k in range(call.n_in):
        operands.append(operand_number(batch, <Array>inputs[k], arrays))
    step = call, tuple(operands)
    results = [alloc(ndim, shape, dtype) for k in range(call.n_out)]
    if _runner or _batch is not before or batch.version != version or not fits(batch, call, inputs, dtype, ndim, shape):
        return None
    # from here on nothing can raise, and no other code can run in between
    _batch = batch
    batch.steps.append(step)
    for a in arrays:
        a.block.readers += 1
        batch.arrays.append(a)
    for a in results:
        a.device_id = (<Array>inputs[0]).device_id
        a.block.lazy = True
        batch.made[batch.n_made] = a.block
        batch.n_made += 1
    memcpy(batch.values + batch.n_values, values, n_values * sizeof(Value))
    batch.n_values += n_values
    batch.n_live += call.n_out
    batch.version += 1
    return results


cdef Batch new_batch(int dtype, int ndim, const Py_ssize_t* shape, Py_ssize_t size):
    """Return a batch without calls for results of a shape and type."""
    cdef Batch batch = Batch.__new__(Batch)
    batch.steps, batch.arrays = [], []
    batch.dtype, batch.ndim, batch.size = dtype, ndim, size
    memcpy(batch.shape, shape, ndim * sizeof(Py_ssize_t))
    return batch


cdef bint fits(Batch batch, ElementwiseCall call, object inputs, int dtype, int ndim, const Py_ssize_t* shape) noexcept:
    """Return whether a call can be added to a batch: it is alike, and nobody can write to its inputs unnoticed."""
    cdef Array a
    cdef int k
    if call.n_in + call.n_out > MOST_OPERANDS or len(batch.steps) >= _most or dtype != batch.dtype:
        return False
    if not same(ndim, shape, batch.ndim, batch.shape) or (batch.n_made + call.n_out) * batch.size * itemsize_of(dtype) > _most_bytes:
        return False
    for k in range(call.n_in):
        a = <Array>inputs[k]
        if a.block.exports or a.block.size_class < 0 or a.block.lazy and not is_result(batch, a):
            return False
    return True


cdef inline bint same(int ndim, const Py_ssize_t* shape, int other_ndim, const Py_ssize_t* other) noexcept:
    """Return whether two shapes, or strides, are the same."""
    return ndim == other_ndim and not memcmp(shape, other, ndim * sizeof(Py_ssize_t))


cdef bint is_result(Batch batch, Array a) noexcept:
    """Return whether an array over a pending block is the whole result, in C order: then one loop can compute both."""
    return a.contiguous and a.data == a.block.data and same(a.ndim, a.shape_, batch.ndim, batch.shape)


cdef int number_of(Batch batch, Block* block) noexcept:
    """Return which result goes to a pending block."""
    cdef int k = batch.n_made - 1
    while k >= 0 and batch.made[k] != block:
        k -= 1
    return k


cdef Py_ssize_t operand_number(Batch batch, Array a, list fresh) except? 0:
    """Return the number of an operand; an array that the batch does not read yet is added to `fresh`, without its history."""
    cdef Py_ssize_t k = 0
    cdef Array b
    if a.block.lazy:
        return number_of(batch, a.block)
    for known in (batch.arrays, fresh):
        for b in known:
            k -= 1
            if a.data == b.data and same(a.ndim, a.shape_, b.ndim, b.shape_) and same(a.ndim, a.strides_, b.ndim, b.strides_):
                return k
    fresh.append(detached(a))
    return k - 1


cdef void forsake(Block* block) noexcept:
    """Note that a pending result has no references left: it need not be stored, and if that holds for all, nothing is run."""
    global _batch
    cdef Batch batch = _batch
    block.lazy = False
    batch.made[number_of(batch, block)] = NULL
    batch.n_live -= 1
    batch.version += 1
    if not batch.n_live:
        _batch = None
        release_inputs(batch)


cdef void release_inputs(Batch batch) noexcept:
    """Let what the calls of a batch read be written again."""
    cdef Array a
    for a in batch.arrays:
        a.block.readers -= 1


set_forsaken(forsake)


cdef int settle(Block* block, bint writes) except -1:
    """Compute what a block is to hold; if it will be written, also everything that is computed from what it holds."""
    if block.lazy or writes and block.readers:
        run_all()
    return 0


set_settle(settle)


cpdef int run_all() except -1:
    """Evaluate all pending calls, or wait until the thread that does so has finished."""
    cdef PyThread_type_lock lock
    cdef unsigned long me = PyThread_get_thread_ident()
    while _batch is not None:
        if _runner == me:
            raise MXNetError("a signal handler cannot use arrays that are being computed")
        if _runner:
            lock = _lock
            with nogil:
                PyThread_acquire_lock(lock, WAIT_LOCK)
                PyThread_release_lock(lock)
        else:
            run(_batch)
    return 0


cdef int run(Batch batch) except -1:
    """Evaluate a batch; leave it as it is where it changes while that is being prepared."""
    global _batch, _runner, _collects
    cdef unsigned long long version = batch.version
    cdef list results = []
    cdef int k
    for k in range(batch.n_made):
        results.append(None if batch.made[k] == NULL else over(batch.made[k], batch.ndim, batch.shape, batch.dtype))
    pieces = as_programs(batch, results)
    if batch is not _batch or batch.version != version or _runner:
        return 0
    PyThread_acquire_lock(_lock, WAIT_LOCK)  # whoever else has it gives it back without the interpreter's lock
    _runner = PyThread_get_thread_ident()
    _collects = PyGC_Disable()  # programs may be compiled for shapes; finalizers would see what is not computed yet
    try:
        execute(batch, pieces)
    finally:
        if _collects:
            PyGC_Enable()
        _runner = 0
        PyThread_release_lock(_lock)
    for k in range(batch.n_made):
        if batch.made[k] != NULL:
            batch.made[k].lazy = False
            batch.made[k] = NULL  # whoever was preparing this batch, too, finds none
    _batch = None
    release_inputs(batch)
    return 0


cdef list as_programs(Batch batch, list results):
    """Return programs with the arrays that they read and write: one for the whole batch where it has registers enough."""
    numbers = tuple([k for k, a in enumerate(results) if a is not None])
    fused = program_of(tuple(batch.steps), numbers, batch.dtype)
    if (<Program>fused[0]).n_registers <= MOST_REGISTERS:
        return [(fused, batch.arrays, [results[k] for k in numbers], batch.n_values)]
    pieces, first = [], 0
    for call, operands in batch.steps:
        fused = program_of(((call, tuple([-1 - k for k in range(len(operands))])),), tuple(range(call.n_out)), batch.dtype)
        for k in range(first, first + call.n_out):
            if results[k] is None:
                results[k] = alloc(batch.ndim, batch.shape, batch.dtype)
        read = [batch.arrays[-1 - n] if n < 0 else results[n] for n in operands]
        pieces.append((fused, read, results[first : first + call.n_out], len(call.formula.params)))
        first += call.n_out
    return pieces


cdef tuple program_of(tuple steps, tuple numbers, int dtype):
    """Return the program that computes some results of calls, the arrays that it reads, and which root each result is."""
    key = steps, numbers, dtype
    found = _programs.get(key)
    if found is not None:
        return <tuple>found
    formulas, names = [], []
    for k, (call, operands) in enumerate(steps):  # parameters of the same name are others in each call
        own = {leaf: param(f"{k}.{leaf.label}", leaf.real) for leaf in leaves(call.formula.roots) if leaf.kind == "param"}
        formulas.append((tuple(substitute(call.formula.roots, own)), operands))
        names += [f"{k}.{n}" for n in call.formula.params]
    roots, used, places = composed(tuple(formulas), numbers)
    listing = compile_program(roots, len(used), lambda name: has_instruction(name, dtype), dtype <= 1)
    return <tuple>keep(_programs, key, (Program(listing, names, dtype), used, places))


cdef inline void describe(Operand* operand, Array a) noexcept:
    """Describe a contiguous array, which may be a pending result of the batch itself."""
    operand.data, operand.dtype, operand.req, operand.contiguous, operand.staged = a.data, a.dtype, REQ_WRITE, True, False


cdef int execute(Batch batch, list pieces) except -1:
    """Run programs, one after the other."""
    cdef bytearray room = bytearray((len(batch.arrays) + batch.n_made + MOST_OPERANDS) * sizeof(Operand))
    cdef Operand* operands = <Operand*><char*>room
    cdef const Value* values = batch.values
    cdef Operand* target
    cdef Py_ssize_t k, n_in
    cdef list read, made
    cdef tuple used, places
    cdef int n_values
    cdef Array a
    for (program, used, places), read, made, n_values in pieces:
        n_in = len(used)
        for k in range(n_in):
            a = <Array>read[used[k]]
            if a.contiguous and a.size == batch.size:
                describe(&operands[k], a)
            else:
                broadcast_operand(&operands[k], a, batch.ndim, batch.shape)
        for k in range(len(made)):  # each root once, though two results may be the same
            describe(&operands[n_in + <int>places[k]], <Array>made[k])
        (<Program>program).run(batch.size, operands, operands + n_in, values)
        for k in range(len(made)):
            a, target = <Array>made[k], &operands[n_in + <int>places[k]]
            if target.data != a.data:
                memcpy(a.data, target.data, a.size * itemsize_of(a.dtype))
        values += n_values
    return 0
