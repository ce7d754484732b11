"""Reductions on the CPU: a program on each element, a combination of the values, a program on each result.

May import :mod:`.array`, :mod:`mxop._kernels`, :mod:`mxop.opdef`.
"""
from mxop._core.array cimport Array, Value, alloc, broadcast_operand, fill_operand, read_pointer, write_pointer
from mxop._kernels.interp cimport Operand, Program
from mxop._kernels.reduce cimport Reduced, reduce

from mxop._kernels import interp
from mxop.formula import compile_program, input_

cdef dict _reductions = {}      # (operator, parameters) -> ReductionCall
_COMBINE = {"add": 0, "mul": 1, "max": 2, "min": 3}


cdef class ReductionCall:
    """A reduction with its parameters fixed: formulas, and their programs for each compute type."""

    def __init__(self, op, attrs):
        self.op, self.attrs = op, attrs
        self.combine = _COMBINE[op.combine.name]
        self.map_formula, self.final_formula = op.formulas(attrs)
        self.axes, self.maps, self.finals = {}, [None] * 7, [None] * 7

    cdef int compute_type(self, int dtype) except -1:
        cdef int ctype = self.map_formula.compute_type(dtype)
        if self.op.wide:
            return 1
        if self.final_formula is not None and ctype > 1 and not self.final_formula.integer:
            return 1
        return ctype

    cdef int make_programs(self, int ctype) except -1:
        def available(name):
            return interp.has_instruction(name, ctype)

        last = self.final_formula.roots if self.final_formula is not None else (input_(0),)
        n_last = 2 if self.final_formula is not None else 1
        self.maps[ctype] = Program(compile_program(self.map_formula.roots, 1, available), (), ctype)
        self.finals[ctype] = Program(compile_program(last, n_last, available), (), ctype)
        return 0

    cdef tuple axes_of(self, int rank):
        found = self.axes.get(rank)
        if found is None:
            found = self.axes[rank] = self.op.axes(self.attrs, rank)
        return <tuple>found


cdef ReductionCall reduction_call(object op, object attrs):
    key = (op, attrs)
    found = _reductions.get(key)
    if found is None:
        if len(_reductions) > 1024:
            _reductions.clear()
        found = _reductions[key] = ReductionCall(op, attrs)
    return <ReductionCall>found


def forget():
    """Drop what is kept for operators, one of which was unregistered or replaced."""
    _reductions.clear()


cdef int reduce_cpu(ReductionCall call, Array source, tuple axes, Array result, int req) except -1:
    cdef int i, at = 0, n_axes = len(axes), ctype = call.compute_type(source.dtype)
    cdef Reduced r
    cdef Operand operands[3]
    cdef Value no_values[1]
    cdef Array sums, count
    cdef Py_ssize_t reduced = 1, kept = 1
    if call.maps[ctype] is None:
        call.make_programs(ctype)
    r.data, r.dtype, r.n_kept, r.n_reduced = read_pointer(source), source.dtype, 0, 0
    for i in range(source.ndim):
        if at < n_axes and <int>axes[at] == i:
            at += 1
            r.reduced_shape[r.n_reduced], r.reduced_strides[r.n_reduced] = source.shape_[i], source.strides_[i]
            r.n_reduced += 1
            reduced *= source.shape_[i]
        else:
            r.kept_shape[r.n_kept], r.kept_strides[r.n_kept] = source.shape_[i], source.strides_[i]
            r.n_kept += 1
            kept *= source.shape_[i]
    if kept != result.size:  # rules of the operator that disagree must not write beyond the result
        raise ValueError(f"{call.op.name}: reduces {source.shape_tuple()} over axes {axes} to {kept} elements; its result "
                         f"has the shape {result.shape_tuple()}")
    sums = alloc(result.ndim, result.shape_, ctype)
    reduce(<Program>call.maps[ctype], call.combine, &r, no_values, write_pointer(sums))
    fill_operand(&operands[0], sums)
    if call.final_formula is None:
        fill_operand(&operands[1], result)
        operands[1].req = req
        (<Program>call.finals[ctype]).run(result.size, operands, &operands[1], no_values)
        return 0
    count = alloc(0, result.shape_, 1)
    (<double*>write_pointer(count))[0] = <double>reduced
    broadcast_operand(&operands[1], count, result.ndim, result.shape_)
    fill_operand(&operands[2], result)
    operands[2].req = req
    (<Program>call.finals[ctype]).run(result.size, operands, &operands[2], no_values)
    return 0
