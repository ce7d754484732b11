"""Chains of eager calls: what large calls return is computed when somebody asks for its memory, fused with what it is made of.

A large elementwise call checks its arguments, takes memory for its results, and ends: the results' blocks know the call, a
:class:`Later`.  Whoever reads such a block (:func:`mxop._core.array.read_pointer`) first lets the chain of calls behind it run
as one program.  What nobody holds by then is computed in registers and never stored.  Whoever writes to a block that calls
still have to read lets these run before.  So every array holds what it would hold if each call had run where it was made.
"""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.pythread cimport (
    NOWAIT_LOCK, WAIT_LOCK, PyThread_acquire_lock, PyThread_allocate_lock, PyThread_get_thread_ident, PyThread_release_lock,
    PyThread_type_lock,
)
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy

from mxop._core.array cimport (
    MAX_VALUES, Array, Value, alloc, broadcast_operand, detached, fill_operand, over, set_settle,
)
from mxop._kernels.instruction_sets cimport itemsize_of
from mxop._kernels.operands cimport MAX_DIMS, REQ_WRITE, Operand
from mxop._kernels.interp cimport MOST_REGISTERS, Program
from mxop._kernels.memory cimport Block, block_release, block_retain, set_forsaken

import os

from mxop._kernels.instruction_sets import has_instruction
from mxop._kernels.memory import default_limit
from mxop.formula import compile_program, composed, leaves, param, substitute
from mxop.limits import setting
from mxop.memo import keep

cdef enum:
    MOST_OPERANDS = 8       # inputs and outputs of one call that may wait
    MOST_CALLS = 28         # of one chain: all their operands are registers of one program, of which there are not many more
    MOST_WAITING = 256      # of all chains: whoever runs one looks at all

cdef int _most = 0          # calls that become one; fewer than two switch waiting off
cdef Py_ssize_t _least = 0  # elements of a result from which on a call may wait; arrays below stay in the caches
cdef Py_ssize_t _waiting = 0, _bytes = 0, _most_bytes = 0     # of all results that wait: what they are made of is kept as long
cdef dict _programs = {}    # what a chain looks like -> Chain
cdef dict _alone = {}       # what is called, type -> Chain of one call
cdef PyThread_type_lock _lock = PyThread_allocate_lock()    # one thread at a time lets chains run
cdef unsigned long _holder = 0          # it, and how often it entered; as a lock of Python's, which takes ten times as long
cdef int _entered = 0
cdef PyObject* _latest = NULL           # the last call that has not run; each knows the one before
cdef unsigned long long _walk = 0, _turn = 0


@cython.freelist(64)
@cython.no_gc_clear  # what leave() reads must be there to the end
cdef class Later:
    """A call that has not run."""

    cdef object call                    # the ElementwiseCall
    cdef Value values[MAX_VALUES]
    cdef list sources                   # its inputs: arrays, and calls whose results they will be
    cdef int output[MOST_OPERANDS]      # which result of such a call
    cdef Block* made[MOST_OPERANDS]     # borrowed: where results go, NULL for those that nobody has any more
    cdef int readers[MOST_OPERANDS]     # calls that have not run and read a result
    cdef list results                   # once it ran: the results that calls still have to read, None for others
    cdef int n_out, dtype, ndim, length # with what it is made of, that many calls
    cdef Py_ssize_t shape[MAX_DIMS]
    cdef Py_ssize_t size
    cdef PyObject* before               # in the list of those that have not run
    cdef PyObject* after
    cdef bint listed
    cdef unsigned long long walk        # scratch: the last walk that came by, and where the results' numbers began
    cdef int first

    def __dealloc__(self):
        self.leave()

    cdef Py_ssize_t nbytes(self) noexcept:
        return self.size * itemsize_of(self.dtype) * self.n_out

    cdef void leave(self) noexcept:
        """Leave the list, and what was to be read."""
        cdef Py_ssize_t k
        global _latest, _waiting, _bytes
        if not self.listed:
            return
        self.listed = False
        _waiting -= 1
        _bytes -= self.nbytes()
        if self.after != NULL:
            (<Later>self.after).before = self.before
        else:
            _latest = self.before
        if self.before != NULL:
            (<Later>self.before).after = self.after
        for k in range(len(self.sources)):
            source = self.sources[k]
            if isinstance(source, Array):
                (<Array>source).block.readers -= 1
            elif (<Later>source).results is None:
                (<Later>source).readers[self.output[k]] -= 1
            elif (<Later>source).results[self.output[k]] is not None:
                (<Array>(<Later>source).results[self.output[k]]).block.readers -= 1


cdef bint may_wait(Py_ssize_t size) noexcept:
    """Tell whether a call with results of a size may wait."""
    return size >= _least and _most > 1


def set_least(Py_ssize_t size):
    """Set how large results are whose calls may wait; return what it was."""
    global _least
    before, _least = _least, size
    return before


def set_most_bytes(Py_ssize_t nbytes):
    """Bound the bytes of all results that wait; return what the bound was."""
    global _most_bytes
    before, _most_bytes = _most_bytes, nbytes
    return before


def waiting():
    """Return how many calls wait."""
    return _waiting


def set_most(int most):
    """Set how many calls may become one; return how many might before.  Fewer than two switch waiting off."""
    global _most
    before, _most = _most, max(0, min(most, MOST_CALLS))
    run_all()
    return before


def _renew():
    """Forget, in the child of a fork, that another thread of the parent was at it."""
    global _lock, _entered
    _lock, _entered = PyThread_allocate_lock(), 0


set_most(setting("MXOP_BULK_SIZE", 0 if os.environ.get("MXNET_ENGINE_TYPE") == "NaiveEngine" else MOST_CALLS))
set_least(setting("MXOP_BULK_ELEMENTS", 131072))
set_most_bytes(default_limit() // 2)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


# ---- a call that waits ------------------------------------------------------------------------------------------------

cdef object defer(object call, int n_in, int n_out, object inputs, const Value* values, int dtype, int ndim,
                  const Py_ssize_t* shape, Py_ssize_t size):
    """Return the results of a call that is to run later, as a list; None where it has to run now.

    The arrays are on the CPU and of one type, and their shapes fit.
    """
    global _latest, _waiting, _bytes
    cdef Later later
    cdef Array a, result
    cdef list results
    cdef int k, length
    if n_in + n_out > MOST_OPERANDS:
        return None
    for k in range(n_in):
        if not private((<Array>inputs[k]).block):
            return None
    if _waiting >= MOST_WAITING or _bytes + size * itemsize_of(dtype) * n_out > _most_bytes:
        run_all()
    length = total_length(inputs, n_in, ndim, shape)
    if length > _most:  # what is read twice was counted twice
        length = counted(inputs, n_in)
    if length > _most:
        for k in range(n_in):
            a = <Array>inputs[k]
            if a.block.later != NULL:
                run_for(a.block, False)
        length = 1
    later = Later.__new__(Later)
    later.call, later.n_out, later.dtype, later.ndim, later.size, later.length = call, n_out, dtype, ndim, size, length
    memcpy(later.shape, shape, ndim * sizeof(Py_ssize_t))
    memcpy(later.values, values, sizeof(later.values))
    results = []
    for k in range(n_out):
        result = alloc(ndim, shape, dtype)
        result.device_id = (<Array>inputs[0]).device_id
        results.append(result)
        later.readers[k] = 0
    later.sources = []
    for k in range(n_in):
        found = source_of(later, k, <Array>inputs[k])
        if found is None:
            return None
        later.sources.append(found)
    for found in later.sources:  # other threads may have run while a chain did, or while an object was made
        if not private((<Array>found).block) if isinstance(found, Array) else (<Later>found).results is not None:
            return None
    # from here on nothing can raise, and no other code can run in between
    for k in range(n_in):
        found = later.sources[k]
        if isinstance(found, Array):
            (<Array>found).block.readers += 1
        else:
            (<Later>found).readers[later.output[k]] += 1
    for k in range(n_out):
        later.made[k] = (<Array>results[k]).block
        later.made[k].later = <PyObject*>later
        Py_INCREF(later)
    later.before, later.after, later.listed = _latest, NULL, True
    if _latest != NULL:
        (<Later>_latest).after = <PyObject*>later
    _latest = <PyObject*>later
    _waiting += 1
    _bytes += later.nbytes()
    return results


cdef inline bint private(Block* block) noexcept:
    """Tell whether nobody writes to memory unseen."""
    return not block.exports and block.size_class >= 0


cdef int total_length(object inputs, int n_in, int ndim, const Py_ssize_t* shape) except -1:
    """Return how many calls a call would wait with, itself among them; what cannot be part of its chain runs now."""
    cdef int k, j, length = 1
    cdef Array a
    for k in range(n_in):
        a = <Array>inputs[k]
        if a.block.later == NULL:
            continue
        if not whole(a, <Later>a.block.later, ndim, shape):
            run_for(a.block, False)
            continue
        for j in range(k):
            if (<Array>inputs[j]).block.later == a.block.later:
                break
        else:
            length += (<Later>a.block.later).length
    return length


cdef int counted(object inputs, int n_in) except -1:
    """Return how many calls a call would wait with, itself among them, each counted once."""
    cdef list calls = []
    cdef int k
    cdef Array a
    global _walk
    _walk += 1
    for k in range(n_in):
        a = <Array>inputs[k]
        if a.block.later != NULL and (<Later>a.block.later).walk != _walk:
            visit(<Later>a.block.later, _walk, calls)
    return <int>len(calls) + 1


cdef bint whole(Array a, Later later, int ndim, const Py_ssize_t* shape) noexcept:
    """Tell whether an array is a call's whole result in C order, of a given shape: both can be computed in one loop."""
    return (a.contiguous and a.data == a.block.data and same(a.ndim, a.shape_, ndim, shape)
            and same(later.ndim, later.shape, ndim, shape))


cdef inline bint same(int ndim, const Py_ssize_t* shape, int other_ndim, const Py_ssize_t* other) noexcept:
    """Tell whether two shapes, or strides, are the same."""
    return ndim == other_ndim and not memcmp(shape, other, ndim * sizeof(Py_ssize_t))


cdef object source_of(Later later, int k, Array a):
    """Return what an input comes from: itself, or the call that makes it; None for a part of what is to be made."""
    cdef Later source
    cdef int i
    if a.block.later == NULL:
        return detached(a)  # without its history, which would keep more alive
    source = <Later>a.block.later
    if not whole(a, source, later.ndim, later.shape):
        return None
    for i in range(source.n_out):
        if source.made[i] == a.block:
            later.output[k] = i
    return source


cdef bint hand_on(Array made, Array target) except -1:
    """Let a result that nobody has but the caller be another array's new content, if it waits; return whether it is."""
    cdef Later later
    cdef int k
    if made.gpu is not None or target.gpu is not None or made.block.refs > 1 or target.block.exports or target.readonly_:
        return False
    if target.block.readers:
        run_all()
    if target.block.readers or made.block.later == NULL or target.block.size_class < 0 or target.dtype != made.dtype or target.watch is not None:
        return False
    later = <Later>made.block.later
    if not whole(made, later, later.ndim, later.shape) or not whole(target, later, later.ndim, later.shape):
        return False
    if target.block.later != NULL:  # and nobody will see what it was to be
        forsake(target.block)
    for k in range(later.n_out):
        if later.made[k] == made.block:
            later.made[k] = target.block
    target.block.later, made.block.later = made.block.later, NULL
    block_release(made.block)
    made.block, made.data = block_retain(target.block), target.block.data
    return True


cdef void forsake(Block* block) noexcept:
    """Nobody will read a block: its call need not store it."""
    cdef Later later = <Later>block.later
    cdef int k
    block.later = NULL
    for k in range(later.n_out):
        if later.made[k] == block:
            later.made[k] = NULL
    Py_DECREF(later)


set_forsaken(forsake)


# ---- running a chain --------------------------------------------------------------------------------------------------

cdef int run_for(Block* block, bint writes) except -1:
    """Compute what a block is to hold; if it will be written, also all that is to be made of what it holds."""
    if _latest == NULL:
        return 0
    enter()
    try:
        if block.later != NULL:
            run_chain(<Later>block.later)
    finally:
        leave()
    if writes and block.readers:
        run_all()
    return 0


set_settle(run_for)


cdef void enter() noexcept:
    """Wait until no other thread lets chains run."""
    global _holder, _entered
    cdef unsigned long me = PyThread_get_thread_ident()
    if _entered and _holder == me:
        _entered += 1
        return
    if not PyThread_acquire_lock(_lock, NOWAIT_LOCK):
        with nogil:
            PyThread_acquire_lock(_lock, WAIT_LOCK)
    _holder, _entered = me, 1


cdef void leave() noexcept:
    """Let another thread."""
    global _entered
    _entered -= 1
    if not _entered:
        PyThread_release_lock(_lock)


cpdef int run_all() except -1:
    """Run all calls that wait."""
    if _latest == NULL:
        return 0
    enter()
    try:
        while _latest != NULL:  # the newest first: the others are what it is made of
            run_chain(<Later>_latest)
    finally:
        leave()
    return 0


cdef class Chain:
    """What a chain of calls became."""

    cdef Program program
    cdef tuple used, places     # the arrays that it reads; which of its results is which
    cdef list counts            # how many numbers each call brings


cdef int run_chain(Later last) except -1:
    """Run a call with all that it is made of, and what else is to be made of that."""
    cdef list calls
    cdef Later later
    if run_alone(last):
        return 0
    while last.results is None:
        calls = together(last)
        if not run_calls(calls):
            for later in calls:
                while later.results is None:
                    run_calls([later])
    return 0


cdef bint run_alone(Later last) except -1:
    """Run a call that is no part of a chain, without looking for one; return whether it is such a call.

    What may begin a collection of garbage comes first, as in :func:`run_calls`.
    """
    cdef Operand operands[MOST_OPERANDS]
    cdef list stored, results
    if _waiting != 1 or last.length != 1 or last.n_out != 1 or last.made[0] == NULL:
        return False
    chain = _alone.get((last.call, last.dtype))
    if chain is None:
        numbers = tuple([-1 - k for k in range(len(last.sources))])
        chain = keep(_alone, (last.call, last.dtype), chain_of(((last.call, numbers),), (0,), last.dtype))
    stored, results = [over(last.made[0], last.ndim, last.shape, last.dtype)], [None]
    if _waiting != 1 or last.results is not None or last.made[0] == NULL:  # others came by
        return False
    execute(<Chain>chain, last.values, last.sources, stored, last, operands)
    if last.readers[0]:  # of another thread, meanwhile
        results[0] = stored[0]
        (<Array>stored[0]).block.readers += last.readers[0]
    last.results = results
    conclude(last)
    return True


cdef list together(Later last):
    """Return the calls to run as one, each after what it reads."""
    cdef list calls = [], waiting = []
    cdef PyObject* at = _latest
    while at != NULL:
        waiting.append(<Later>at)
        at = (<Later>at).before
    order(last, calls)
    gather(last, waiting, calls)
    waiting.clear()  # whatever nobody else has goes before anything is computed
    return calls


cdef bint run_calls(list calls) except -1:
    """Run calls as one program, and store what somebody has, or is to read; False where that program is too large.

    Objects that are made may begin a collection of garbage, whose finalizers may run calls; then nothing is done.
    """
    cdef list arrays = [], stored = [], numbers = [], results
    cdef tuple steps
    cdef Later last = <Later>calls[len(calls) - 1], later
    cdef Chain chain
    cdef unsigned long long turn
    cdef int k
    global _turn
    _turn += 1
    turn = _turn
    steps = numbered(calls, arrays)
    if steps is None:
        return True
    for later in calls:
        for k in range(later.n_out):
            if later.made[k] != NULL or read_elsewhere(later, k, calls):
                stored.append(over(later.made[k], later.ndim, later.shape, later.dtype))
                numbers.append(later.first + k)
    if turn != _turn:  # which numbered some of them anew
        return True
    chain = chain_of(steps, tuple(numbers), last.dtype)
    if chain.program.n_registers > MOST_REGISTERS and len(calls) > 1:
        return False
    results = [[None] * later.n_out for later in calls]
    by_number = dict(zip(numbers, stored))
    if turn == _turn:  # from here on no objects are made
        execute_calls(chain, calls, arrays, stored, last)
        publish(calls, results, by_number)
    return True


cdef int order(Later last, list calls) except -1:
    """List the calls that a call is made of, and it, each after what it reads."""
    global _walk
    _walk += 1
    visit(last, _walk, calls)
    return 0


cdef int gather(Later last, list waiting, list calls) except -1:
    """List also what else is to be made of these calls' results, which are in the caches now; `waiting` has the newest first.

    From the beginning of a walk to its end nothing is made that could begin a collection of garbage, and another walk.
    """
    cdef Later later
    cdef Py_ssize_t k
    for k in range(len(waiting) - 1, -1, -1):
        later = <Later>waiting[k]
        if later.walk != _walk and later.dtype == last.dtype and reads_any(later, _walk):
            if not same(later.ndim, later.shape, last.ndim, last.shape):
                continue
            if len(calls) + later.length > MOST_CALLS:
                break
            visit(later, _walk, calls)
    return 0


cdef bint reads_any(Later later, unsigned long long walk) except -1:
    """Tell whether a call reads a result of one that a walk came by."""
    for source in later.sources:
        if isinstance(source, Later) and (<Later>source).walk == walk:
            return True
    return False


cdef int visit(Later later, unsigned long long walk, list calls) except -1:
    later.walk = walk
    for source in later.sources:
        if isinstance(source, Later) and (<Later>source).results is None and (<Later>source).walk != walk:
            visit(<Later>source, walk, calls)
    calls.append(later)
    return 0


cdef tuple numbered(list calls, list arrays):
    """Return each call with the numbers of its operands: results from 0 up, arrays from -1 down; `arrays` gets these.

    None where a call has run meanwhile.
    """
    cdef list steps = []
    cdef int k, n = 0
    cdef Later later
    for later in calls:
        later.first = n
        n += later.n_out
        operands = []
        if later.results is not None:
            return None
        for k in range(len(later.sources)):
            source = later.sources[k]
            if isinstance(source, Later):
                if (<Later>source).results is None:
                    operands.append((<Later>source).first + later.output[k])
                    continue
                source = (<Later>source).results[later.output[k]]
            operands.append(-1 - place_among(arrays, <Array>source))
        steps.append((later.call, tuple(operands)))
    return tuple(steps)


cdef Py_ssize_t place_among(list arrays, Array a) except -1:
    """Return which of some arrays is laid out as one is; add it where none is."""
    cdef Py_ssize_t k
    cdef Array b
    for k in range(len(arrays)):
        b = <Array>arrays[k]
        if a.data == b.data and same(a.ndim, a.shape_, b.ndim, b.shape_) and same(a.ndim, a.strides_, b.ndim, b.strides_):
            return k
    arrays.append(a)
    return len(arrays) - 1


cdef bint read_elsewhere(Later later, int output, list calls) except -1:
    """Tell whether calls beside these are to read a result."""
    cdef int inside = 0, k
    cdef Later other
    for other in calls:
        for k in range(len(other.sources)):
            inside += other.sources[k] is later and other.output[k] == output
    return later.readers[output] > inside


cdef Chain chain_of(tuple steps, tuple numbers, int dtype):
    """Return the program of a chain."""
    cdef Chain chain
    key = steps, numbers, dtype
    found = _programs.get(key)
    if found is not None:
        return <Chain>found
    chain = Chain.__new__(Chain)
    formulas, names, chain.counts = [], [], [len(call.formula.params) for call, _ in steps]
    for k, (call, operands) in enumerate(steps):  # parameters of the same name are others in each call
        own = {leaf: param(f"{k}.{leaf.label}", leaf.real) for leaf in leaves(call.formula.roots) if leaf.kind == "param"}
        formulas.append((tuple(substitute(call.formula.roots, own)), operands))
        names += [f"{k}.{n}" for n in call.formula.params]
    roots, chain.used, chain.places = composed(tuple(formulas), numbers)
    listing = compile_program(roots, len(chain.used), lambda name: has_instruction(name, dtype), dtype <= 1)
    chain.program = Program(listing, names, dtype)
    return <Chain>keep(_programs, key, chain)


cdef int execute_calls(Chain chain, list calls, list arrays, list stored, Later last) except -1:
    """Gather the numbers that calls bring, and let their program compute what is to be stored."""
    cdef Py_ssize_t n_operands = len(chain.used) + len(stored), n_values = 0, k
    cdef Operand* operands = <Operand*>malloc(n_operands * sizeof(Operand) + len(calls) * MAX_VALUES * sizeof(Value))
    cdef Value* values = <Value*>(operands + n_operands)
    cdef int n
    if operands == NULL:
        raise MemoryError()
    try:
        for k in range(len(calls)):
            n = chain.counts[k]
            memcpy(values + n_values, (<Later>calls[k]).values, n * sizeof(Value))
            n_values += n
        execute(chain, values, arrays, stored, last, operands)
    finally:
        free(operands)
    return 0


cdef int execute(Chain chain, const Value* values, list arrays, list stored, Later last, Operand* operands) except -1:
    """Let a program compute what is to be stored; there is room to describe its operands."""
    cdef Py_ssize_t n_in = len(chain.used), n_out = len(stored), k
    cdef Array a
    cdef int n
    for k in range(n_in):
        a = <Array>arrays[chain.used[k]]
        if a.contiguous and a.size == last.size:
            fill_operand(&operands[k], a)
        else:
            broadcast_operand(&operands[k], a, last.ndim, last.shape)
    for k in range(n_out):  # each root once, though two results may be the same
        a = <Array>stored[k]
        n = n_in + <int>chain.places[k]
        operands[n].data, operands[n].dtype, operands[n].req = a.data, a.dtype, REQ_WRITE
        operands[n].contiguous, operands[n].staged = True, False
    chain.program.run(last.size, operands, operands + n_in, values)
    for k in range(n_out):
        a = <Array>stored[k]
        n = n_in + <int>chain.places[k]
        if operands[n].data != a.data:
            memcpy(a.data, operands[n].data, a.size * itemsize_of(a.dtype))
    return 0


cdef int publish(list calls, list results, dict stored) except -1:
    """Let the results be known: to who has them, and to calls that have not run and read them."""
    cdef Later later
    cdef Array a
    cdef Py_ssize_t i
    cdef int k
    for i in range(len(calls)):  # who reads what, before anybody leaves
        later = <Later>calls[i]
        for k in range(later.n_out):
            if later.readers[k] and later.first + k in stored:
                a = <Array>stored[later.first + k]
                a.block.readers += later.readers[k]
                (<list>results[i])[k] = a
        later.results = <list>results[i]
    for later in calls:
        conclude(later)
    return 0


cdef void conclude(Later later) noexcept:
    """Let what a call made be memory like any other."""
    cdef int k
    for k in range(later.n_out):
        if later.made[k] != NULL:
            later.made[k].later = NULL
            later.made[k] = NULL
            Py_DECREF(later)
    later.leave()
