"""A call that runs other calls: a body, once for each step of a loop.

A body is a list of calls that were prepared for placeholders (:mod:`.call`).  A step moves pointers and executes the calls:
inputs and outputs that have a slice for each step move by a stride, states go to and fro between two places.  What compiled work
can make ready of an operand that is the same for all steps (a product packs its right matrix) is made ready once.
"""
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from mxop._core.array cimport Array, alloc_tuple, read_pointer, write_pointer
from mxop._core.call cimport Call, Places
from mxop._core.profile cimport clock
from mxop._core.results cimport ADDS, DENSE, deliver, fresh_like, goes_beside
from mxop._core.steps cimport WorkCall, works_of
from mxop._core.transfer cimport contiguous_copy, same_layout
from mxop._kernels.instruction_sets cimport itemsize_of
from mxop._kernels.operands cimport REQ_ADD

cdef enum:
    OFTEN = 16              # steps between looks at the clock
    TURN = 20_000_000       # nanoseconds until signals are seen and other threads run; less, and those who wait never ask for it


cdef class Body:
    """Calls that were prepared for placeholders, and the memory that they compute in.

    Parameters
    ----------
    calls : list of Call
    n_given : int
        How many placeholders are given at each run; `buffers`, shapes and types, follow them.
    """

    cdef readonly list calls
    cdef list buffers
    cdef Places places
    cdef char** at
    cdef Py_ssize_t n_given

    def __init__(self, list calls, Py_ssize_t n_given, list buffers):
        cdef Py_ssize_t k
        cdef Array a
        self.calls, self.n_given, self.places = calls, n_given, Places()
        self.places.note(calls)
        self.buffers = [alloc_tuple(shape, dtype) for shape, dtype in buffers]
        self.at = <char**>calloc(n_given + len(buffers) + 1, sizeof(char*))
        if self.at == NULL:
            raise MemoryError()
        for k in range(len(buffers)):
            a = <Array>self.buffers[k]
            self.at[n_given + k] = a.data

    def __dealloc__(self):
        free(self.at)

    cdef int run(self) except -1:
        """Execute the calls on what the pointers `at` point to."""
        cdef Call call
        self.places.point_to(self.at)
        for call in self.calls:
            call.execute()
        return 0


cdef class Loop(Call):
    """A body, run once for each step.

    It reads dense inputs and writes dense outputs; others are copied.  The body's placeholders are: a slice of each of the data,
    the states, what all steps read; the new states, a slice of each stacked output, each sum.  The condition's, where there
    is one: the states, what all steps read, and the answer, an int64.
    Outputs are the states after the last step, the stacked ones, the sums, and with a condition the number of steps.

    Parameters
    ----------
    counts : tuple of int
        How many data, states, free inputs, stacked outputs and sums there are.
    steps : int
        How many steps there are; with a condition, or `limited`, at most.
    limited : bool
        Whether the last input says how many.
    reverse : bool
        Whether the last slice comes first.
    """

    cdef readonly Body body
    cdef Body condition
    cdef list inputs, outputs, reqs, ready, work
    cdef bint copies_in, copies_out, limited, reverse
    cdef Py_ssize_t n_data, n_states, n_free, n_in, n_stacked, n_sums, steps
    cdef readonly list keeping      # compiled work of which an operand is the same for all steps
    cdef list pairs                 # for each state two places, if there may be several steps
    cdef Py_ssize_t* strides        # of what the body is given: by how much a slice lies behind the one before

    def __init__(self, Body body, Body condition, tuple counts, Py_ssize_t steps, bint limited, bint reverse,
                 list inputs, list outputs, list reqs):
        cdef Py_ssize_t k, i
        cdef Array a
        cdef list read
        cdef set used = body.places.used()
        self.n_data, self.n_states, self.n_free, self.n_stacked, self.n_sums = counts
        self.n_in = self.n_data + self.n_states + self.n_free
        self.body, self.condition, self.steps, self.limited, self.reverse = body, condition, steps, limited, reverse
        self.inputs, self.outputs, self.reqs, self.ready, self.work = inputs, outputs, reqs, list(inputs), []
        self.copies_in = not all([(<Array>a).contiguous for a in inputs])
        for k in range(len(outputs)):
            a = <Array>outputs[k]
            read = list(inputs)
            i = self.n_data + k
            if k < self.n_states and i not in used and same_layout(<Array>inputs[i], a):
                del read[i]  # the last state may lie where the first one does, which no step reads
            if goes_beside(a, read, reqs[k], DENSE | (ADDS if self.is_sum(k) else 0)):
                a, self.copies_out = fresh_like(a, False), True
            self.work.append(a)
        self.strides = <Py_ssize_t*>calloc(body.n_given + 1, sizeof(Py_ssize_t))
        if self.strides == NULL:
            raise MemoryError()
        for k in range(self.n_data):
            self.strides[k] = nbytes_of(<Array>inputs[k]) // max(steps, 1)
        for k in range(self.n_states, self.n_states + self.n_stacked):
            self.strides[self.n_in + k] = nbytes_of(<Array>outputs[k]) // max(steps, 1)
        self.pairs = [(fresh_like(a, False), fresh_like(a, False)) for a in outputs[: self.n_states] if steps > 1]
        self.keeping = [call for call in works_of(body.calls) if steps > 1 and self.is_kept(<WorkCall>call)]

    def __dealloc__(self):
        free(self.strides)

    cdef bint is_sum(self, Py_ssize_t k) noexcept:
        k -= self.n_states + self.n_stacked
        return 0 <= k < self.n_sums

    cdef bint is_kept(self, WorkCall call) noexcept:
        cdef int operand = call.work.kept_operand()
        return operand >= 0 and self.n_data + self.n_states <= self.body.places.base_of(&call.data[operand]) < self.n_in

    cdef int point(self, Places places) except -1:
        for a in (*self.inputs, *self.outputs):
            places.add_array(<Array>a)
        return 0

    cdef int execute(self) except -1:
        cdef Py_ssize_t n = self.begin(), done
        try:
            self.make_ready()
            done = self.steps_made(n)
        finally:
            for call in self.keeping:
                (<WorkCall>call).kept = None
        self.finish(done)
        return deliver(self.work, self.outputs, self.reqs) if self.copies_out else 0

    cdef int make_ready(self) except -1:
        """Let work make ready what is the same for all steps."""
        cdef WorkCall call
        if self.keeping:
            self.body.places.point_to(self.body.at)
        for call in self.keeping:
            call.kept = call.work.keeping(call.data)
        return 0

    cdef Py_ssize_t steps_made(self, Py_ssize_t n) except -1:
        """Make at most `n` steps; return how many were made."""
        cdef Py_ssize_t s = 0, k
        cdef long long turn = clock()
        while s < n and (self.condition is None or self.goes_on()):
            if s == n - 1:  # there is no other step: the new states are the last ones
                for k in range(self.n_states):
                    self.body.at[self.n_in + k] = write_pointer(<Array>self.work[k])
            self.body.run()
            self.go_on()
            s += 1
            if s % OFTEN == 0 and clock() - turn > TURN:
                PyErr_CheckSignals()
                with nogil:
                    pass
                turn = clock()
        return s

    cdef Py_ssize_t begin(self) except -1:
        """Set the pointers for the first step; return how many steps there may be."""
        cdef Py_ssize_t k, n = self.steps
        cdef char** at = self.body.at
        cdef Array a
        for k in range(self.n_in):
            at[k] = self.read(k)
        for k in range(len(self.pairs)):
            at[self.n_in + k] = (<Array>(<tuple>self.pairs[k])[0]).data
        for k in range(self.n_states, self.n_states + self.n_stacked + self.n_sums):
            a = <Array>self.work[k]
            at[self.n_in + k] = write_pointer(a)
            if self.is_sum(k) and (a is not self.outputs[k] or self.reqs[k] != REQ_ADD):
                memset(a.data, 0, nbytes_of(a))
        if self.condition is not None:
            for k in range(self.n_free):
                self.condition.at[self.n_states + k] = at[self.n_data + self.n_states + k]
        if self.limited:
            n = min(n, <Py_ssize_t>(<int64_t*>self.read(self.n_in))[0])
        for k in range(self.body.n_given if self.reverse else 0):
            at[k] += (n - 1) * self.strides[k]
        return n

    cdef bint goes_on(self) except -1:
        """Ask the condition."""
        cdef Py_ssize_t k
        for k in range(self.n_states):
            self.condition.at[k] = self.body.at[self.n_data + k]
        self.condition.run()
        return (<int64_t*>(<Array>self.condition.buffers[0]).data)[0] != 0

    cdef void go_on(self) noexcept:
        """Set the pointers for the next step, to which the new states are the states."""
        cdef Py_ssize_t k
        cdef char** at = self.body.at
        cdef char* one
        for k in range(self.n_states):
            at[self.n_data + k] = at[self.n_in + k]
        for k in range(len(self.pairs)):
            one = (<Array>(<tuple>self.pairs[k])[0]).data
            at[self.n_in + k] = (<Array>(<tuple>self.pairs[k])[1]).data if at[self.n_in + k] == one else one
        for k in range(self.body.n_given):
            at[k] += -self.strides[k] if self.reverse else self.strides[k]

    cdef int finish(self, Py_ssize_t done) except -1:
        """Write the last states, zeros for the steps that were not made, and their number."""
        cdef Py_ssize_t k, stride
        cdef Array a
        for k in range(self.n_states):
            a = <Array>self.work[k]
            if write_pointer(a) != self.body.at[self.n_data + k]:
                memcpy(a.data, self.body.at[self.n_data + k], nbytes_of(a))
        for k in range(self.n_states, self.n_states + self.n_stacked):
            stride = self.strides[self.n_in + k]
            memset(write_pointer(<Array>self.work[k]) + done * stride, 0, (self.steps - done) * stride)
        if self.condition is not None:
            a = <Array>self.work[len(self.work) - 1]
            (<int64_t*>write_pointer(a))[0] = done
        return 0

    cdef char* read(self, Py_ssize_t k) except NULL:
        """Return where input `k` lies in C order."""
        cdef Array a = <Array>self.inputs[k]
        if self.copies_in and not a.contiguous:
            a = contiguous_copy(a)
            self.ready[k] = a  # it lives until the next run
        return read_pointer(a)


cdef inline Py_ssize_t nbytes_of(Array a) noexcept:
    return a.size * itemsize_of(a.dtype)
