"""Epilogues: a formula of a product's results is computed of each tile while it lies in the caches."""
from mxop._core.array cimport Array, extent
from mxop._core.call cimport Places
from mxop._core.prepare cimport MOST_PLACES, ProgramCall
from mxop._core.steps cimport MOST_ARRAYS, Steps, WorkCall
from mxop._core.transfer cimport overlaps
from mxop._kernels.instruction_sets cimport itemsize_of
from mxop._kernels.interp cimport streams
from mxop._kernels.operands cimport REQ_ADD, Operand
from mxop._kernels.team cimport most_threads
from mxop._kernels.work cimport Finish, Work, finish_of

cdef enum:
    SMALL = 8               # times smaller than the result are other arrays of the formula
    LOOK_AHEAD = 4          # calls after a product among which its epilogue is looked for

# The bytes that an array covers, relative to its first element: lowest, and one past the highest.
cdef struct Extent:
    Py_ssize_t low, high


cdef inline bint meet(const char* a, const Extent* of_a, const char* b, const Extent* of_b) noexcept:
    return a + of_a.low < b + of_b.high and b + of_b.low < a + of_a.high


cdef class Finishing(WorkCall):
    """Compiled work, and a formula of its result."""

    cdef readonly ProgramCall formula
    cdef Finish finish
    cdef Extent of_work[MOST_ARRAYS]
    cdef Extent of_formula[MOST_PLACES]

    cdef bint apart(self) noexcept:
        """Find the operands that are the result; tell whether no other lies there, and no output where the work still reads."""
        cdef int n = <int>len(self.arrays) - 1, i, k, n_in = self.formula.program.n_inputs
        cdef const Operand* operand
        self.finish.result, self.finish.read, self.finish.replaces = self.data[n], 0, False
        for k in range(n_in + self.formula.program.n_outputs):
            operand = &self.formula.operands[k]
            if self.is_result(operand):
                self.finish.read |= 1u << k if k < n_in else 0
                self.finish.replaces |= k >= n_in
            elif meet(operand.data, &self.of_formula[k], self.data[n], &self.of_work[n]):
                return False
            for i in range(n if k >= n_in else 0):
                if meet(operand.data, &self.of_formula[k], self.data[i], &self.of_work[i]):
                    return False
        return True

    cdef bint is_result(self, const Operand* operand) noexcept:
        """Return whether an operand lies where the result does, element by element."""
        cdef Array result = <Array>self.arrays[-1]
        return (operand.data == self.data[len(self.arrays) - 1] and operand.contiguous and self.formula.size == result.size
                and itemsize_of(operand.dtype) == itemsize_of(result.dtype))

    cdef int execute(self) except -1:
        cdef Work work = self.work if self.kept is None else self.kept
        if self.apart():
            return work.run_finishing(self.data, most_threads(), self.finish)
        WorkCall.execute(self)
        return self.formula.execute()

    cdef int point(self, Places places) except -1:
        WorkCall.point(self, places)
        return self.formula.point(places)

    @property
    def source(self):
        """The listing of the formula's program."""
        return self.formula.source


cdef Finishing joined(WorkCall call, ProgramCall formula):
    """Return work and a formula as one call; None where that is no use."""
    cdef Finishing found = Finishing()
    cdef Array result = <Array>call.arrays[-1]
    cdef Py_ssize_t k, n_in = formula.program.n_inputs
    if len(formula.arrays) > MOST_PLACES or not call.work.finishes(formula.program.n_costly > 0):
        return None
    found.work, found.arrays, found.data, found.formula = call.work, call.arrays, call.data, formula
    for k in range(len(call.arrays)):
        extent(<Array>call.arrays[k], &found.of_work[k].low, &found.of_work[k].high)
    for k in range(len(formula.arrays)):
        extent(<Array>formula.arrays[k], &found.of_formula[k].low, &found.of_formula[k].high)
        if k >= n_in and formula.operands[k].req == REQ_ADD:
            return None
        # row after row of a large one would come from memory in the middle of the work
        if k < n_in and not found.is_result(&formula.operands[k]) and (<Array>formula.arrays[k]).size > result.size // SMALL:
            return None
    found.finish = finish_of(formula.program, formula.operands, formula.values, result.size, itemsize_of(result.dtype))
    return found if found.apart() and found.finish.read else None


cdef WorkCall last_work(object call):
    """Return the work with which a call ends, if its result is large and a formula may be computed of parts of it; or None."""
    cdef list calls = (<Steps>call).calls if isinstance(call, Steps) and not (<Steps>call).temporaries else []
    cdef WorkCall work = <WorkCall>calls[-1] if calls and isinstance(calls[-1], WorkCall) else None
    cdef Array result
    if work is None or work.refuse is not None:
        return None
    result = <Array>work.arrays[-1]
    # what does not stay in the caches, read and written once more
    large = result.contiguous and streams(result.size * itemsize_of(result.dtype) // 2)
    return work if large and work.work.finishes(False) else None


cdef Py_ssize_t formula_of(WorkCall work, list calls, Py_ssize_t k):
    """Return which call from number `k` on is the next to look at a work's result; -1 if those before may not run first."""
    cdef ProgramCall call
    cdef list outputs
    for k in range(k, min(len(calls), k + LOOK_AHEAD)):
        if not isinstance(calls[k], ProgramCall):
            return -1
        call = <ProgramCall>calls[k]
        if any([overlaps(<Array>a, <Array>work.arrays[-1]) for a in call.arrays]):
            return k
        outputs = call.arrays[call.program.n_inputs:]
        if any([overlaps(<Array>a, <Array>b) for a in outputs for b in work.arrays]):
            return -1
    return -1


def finishing(list calls):
    """Return calls in which formulas of large results are one with the work that made these, and that is no call of its own."""
    cdef WorkCall work
    cdef Finishing one
    cdef Py_ssize_t k, at
    cdef list found = list(calls)
    for k in range(len(found)):
        work = last_work(found[k])
        at = -1 if work is None else formula_of(work, found, k + 1)
        one = None if at < 0 else joined(work, <ProgramCall>found[at])
        if one is not None:
            found[at] = one
            (<Steps>found[k]).calls.pop()
    return found
