"""Reductions on the CPU: a program on each element, a combination of the values, a program on each result."""
from mxop._core.array cimport Array, Value, fill_operand, read_pointer, write_pointer
from mxop._core.call cimport Call, Places
from mxop._core.transfer cimport overlaps
from mxop._kernels.instruction_sets cimport itemsize_of
from mxop._kernels.operands cimport REQ_INPLACE, REQ_WRITE, Operand
from mxop._kernels.interp cimport Program
from mxop._kernels.memory cimport Block, block_new, block_release
from mxop._kernels.reduce cimport Reduced, add_axis, reduce, way_of

from mxop._kernels.instruction_sets import has_instruction
from mxop._kernels.reduce import CODES
from mxop.formula import compile_program, input_
from mxop.support.memo import keep

cdef dict _reductions = {}      # (operator, parameters) -> ReductionCall


cdef class ReductionCall:
    """A reduction with its parameters fixed: formulas, and their programs for each compute type."""

    def __init__(self, op, attrs):
        self.op, self.attrs = op, attrs
        self.combine = CODES[op.combine_of(attrs).name]
        self.map_formula, self.final_formula = op.formulas(attrs)
        self.axes, self.programs, self.types = {}, [None] * 7, {}

    cdef int compute_type(self, int dtype) except -1:
        found = self.types.get(dtype)
        if found is None:
            found = self.map_formula.compute_type(dtype)
            if self.op.wide or (self.final_formula is not None and found > 1 and not self.final_formula.integer):
                found = 1
            self.types[dtype] = found
        return found

    cdef tuple programs_of(self, int ctype):
        """Return the programs for each element and for each result."""
        found = self.programs[ctype]
        if found is None:
            def available(name):
                return has_instruction(name, ctype)

            last = self.final_formula.roots if self.final_formula is not None else (input_(0),)
            n_last = 2 if self.final_formula is not None else 1
            found = self.programs[ctype] = (
                Program(compile_program(self.map_formula.roots, 1, available), (), ctype),
                Program(compile_program(last, n_last, available), (), ctype),
            )
        return <tuple>found

    cdef tuple axes_of(self, int rank):
        found = self.axes.get(rank)
        if found is None:
            found = self.axes[rank] = self.op.axes(self.attrs, rank)
        return <tuple>found


cdef ReductionCall reduction_call(object op, object attrs):
    key = (op, attrs)
    found = _reductions.get(key)
    if found is None:
        found = keep(_reductions, key, ReductionCall(op, attrs))
    return <ReductionCall>found


def forget():
    """Drop what is kept for operators, one of which was unregistered or replaced."""
    _reductions.clear()


cdef class ReductionRun(Call):
    """A reduction of one array into another."""

    @property
    def way(self):
        """How elements are combined."""
        return way_of(self.map_, self.call.combine, &self.reduced) if self.source.size else "nothing"

    cdef int execute(self) except -1:
        cdef Program map_ = self.map_, final = self.final
        cdef Value no_values[1]
        cdef Block* room = NULL
        cdef char* combined = write_pointer(self.result)
        if not self.direct:
            room = block_new(self.kept * itemsize_of(self.ctype))
            combined = self.operands[0].data = room.data
        try:
            reduce(map_, self.call.combine, &self.reduced, no_values, combined)
            if room != NULL or self.call.final_formula is not None:
                final.run(self.kept, self.operands, &self.operands[2], no_values)
        finally:
            if room != NULL:
                block_release(room)
        return 0

    cdef int point(self, Places places) except -1:
        cdef int k
        places.add(&self.reduced.data)
        places.add_array(self.result)
        for k in range(3):
            places.add(&self.operands[k].data)
        return 0


cdef ReductionRun reduction_run(ReductionCall call, Array source, tuple axes, Array result, int req):
    """Return a reduction of `source` over `axes` into `result`, ready to execute."""
    cdef ReductionRun run = ReductionRun()
    cdef Reduced* r = &run.reduced
    cdef int i, at = 0, n_axes = <int>len(axes)
    cdef bint reduced, before = False
    run.call, run.source, run.result, run.ctype = call, source, result, call.compute_type(source.dtype)
    run.map_, run.final = call.programs_of(run.ctype)
    run.count, run.kept = 1, 1
    r.data, r.dtype, r.n_kept, r.n_reduced = read_pointer(source), source.dtype, 0, 0
    r.last_kept, r.last_reduced = 0, 0
    for i in range(source.ndim):
        reduced = at < n_axes and <int>axes[at] == i
        if reduced:
            at += 1
            run.count *= source.shape_[i]
        else:
            run.kept *= source.shape_[i]
        if source.shape_[i] != 1:
            add_axis(r, reduced, reduced != before, source.shape_[i], source.strides_[i])
            before = reduced
    if run.kept != result.size:  # rules of the operator that disagree must not write beyond the result
        raise ValueError(f"{call.op.name}: reduces {source.shape_tuple()} over axes {axes} to {run.kept} elements; its "
                         f"result has the shape {result.shape_tuple()}")
    run.direct = (result.contiguous and result.dtype == run.ctype and req in (REQ_WRITE, REQ_INPLACE)
                  and not overlaps(source, result))  # a result is written before all elements are read
    dense_operand(&run.operands[0], write_pointer(result), run.ctype)
    dense_operand(&run.operands[1], <char*>&run.count, 1)  # one number for all elements
    run.operands[1].contiguous, run.operands[1].ndim = False, 1
    run.operands[1].shape[0], run.operands[1].strides[0] = run.kept, 0
    fill_operand(&run.operands[2], result)
    run.operands[2].req = req
    return run


cdef void dense_operand(Operand* operand, char* data, int dtype) noexcept:
    operand.data, operand.dtype, operand.contiguous, operand.staged, operand.ndim = data, dtype, True, False, 0


def reduction_on_host(op, attrs, Array source, tuple axes, Array result, int req):
    """Return the prepared call of a reduction of an array into another."""
    return reduction_run(reduction_call(op, attrs), source, axes, result, req)
