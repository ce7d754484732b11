"""What a kernel is prepared as: steps on arrays that run without Python, with memory for what lies between them.

The rule of a kernel (``@op.cpu(prepared=True)``) is handed :class:`Steps` and asks it for copies, for compiled work, for calls
of other operators, and for temporary arrays.
"""
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free

from mxop._core.abi cimport MXOP_CPU, MXOPTensor
from mxop._core.array cimport Array, fill_operand, read_pointer, write_pointer
from mxop._core.call cimport Call, Places, launches_of
from mxop._core.device cimport Device
from mxop._core.transfer cimport copy_program, same_layout
from mxop._kernels.operands cimport REQ_ADD, REQ_WRITE
from mxop._kernels.team cimport most_threads
from mxop._kernels.moves cimport move, way_of
from mxop._kernels.work cimport Work

import numpy as np

from mxop.support import dtypes
from mxop.support.errors import MXNetError, OpValueError
from mxop.opdef import registry
from mxop.opdef.above import ask

cdef class Move(Call):
    """A copy of elements that lie elsewhere: transposed, sliced, broadcast."""

    @property
    def way(self):
        """How elements are moved, unless they are few."""
        return way_of(self.result.size, &self.operands[0], &self.operands[1])

    cdef int execute(self) except -1:
        write_pointer(self.result)
        return move(self.result.size, self.operands, &self.operands[1], self.program)

    cdef int point(self, Places places) except -1:
        places.add(&self.operands[0].data)
        places.add(&self.operands[1].data)
        return 0


cpdef Move move_of(Array source, Array result, int req):
    """Return a copy (or sum, by `req`) of one array into another of its shape; the types may differ."""
    cdef Move move = Move()
    move.source, move.result, move.program = source, result, copy_program(source.dtype)
    fill_operand(&move.operands[0], source)
    fill_operand(&move.operands[1], result)
    move.operands[1].req = req
    return move


cdef class WorkCall(Call):
    """Compiled work on fixed arrays."""

    cdef int execute(self) except -1:
        cdef Work work = self.work if self.kept is None else self.kept
        cdef Py_ssize_t at = work.run(self.data, most_threads())
        if at >= 0:
            self.refuse(at, *self.arrays)
            raise AssertionError(f"{type(self.work).__name__} refused an element and nobody said why")
        return 0

    cdef int point(self, Places places) except -1:
        cdef Py_ssize_t k
        for k in range(len(self.arrays)):
            places.add(&self.data[k])
            if self.refuse is not None:
                places.add_array(<Array>self.arrays[k])
        return 0


cdef extern from "mxop/kernel.h" nogil:
    ctypedef int (*MXOPKernel)(const MXOPTensor* const* inputs, const MXOPTensor* const* outputs, const double* params,
                               int threads) noexcept


cdef class CKernel(Call):
    """A function of C on fixed arrays; ``mxop/kernel.h`` says what it is."""

    cdef MXOPKernel function
    cdef object name, owner             # who keeps the function in memory
    cdef list arrays
    cdef int n_in
    cdef MXOPTensor* tensors
    cdef MXOPTensor** table
    cdef int64_t* sizes
    cdef double* params

    def __dealloc__(self):
        free(self.tensors)
        free(self.table)
        free(self.sizes)
        free(self.params)

    cdef int fill(self, list params) except -1:
        """Describe the arrays to the function."""
        cdef Py_ssize_t n = len(self.arrays), k, i, at = 0
        cdef Array a
        cdef MXOPTensor* t
        self.tensors = <MXOPTensor*>calloc(n + 1, sizeof(MXOPTensor))
        self.table = <MXOPTensor**>calloc(n + 1, sizeof(MXOPTensor*))
        self.sizes = <int64_t*>calloc(sum([(<Array>a).ndim for a in self.arrays]) + 1, sizeof(int64_t))
        self.params = <double*>calloc(len(params) + 1, sizeof(double))
        if self.tensors == NULL or self.table == NULL or self.sizes == NULL or self.params == NULL:
            raise MemoryError()
        for k in range(len(params)):
            self.params[k] = params[k]
        for k in range(n):
            a, t = <Array>self.arrays[k], &self.tensors[k]
            self.table[k] = t
            t.struct_size, t.dtype, t.ndim, t.size = sizeof(MXOPTensor), a.dtype, <int32_t>a.ndim, a.size
            t.device_type, t.shape = MXOP_CPU, &self.sizes[at]
            t.data = read_pointer(a) if k < self.n_in else write_pointer(a)
            for i in range(a.ndim):
                self.sizes[at] = a.shape_[i]
                at += 1
        return 0

    cdef int execute(self) except -1:
        cdef int code, threads = most_threads()
        cdef const MXOPTensor* const* table = <const MXOPTensor* const*>self.table
        with nogil:
            code = self.function(table, &table[self.n_in], self.params, threads)
        if code != 0:
            given = ", ".join([f"{dtypes.NAMES[(<Array>a).dtype]} {(<Array>a).shape_tuple()}" for a in self.arrays[: self.n_in]])
            raise MXNetError(f"operator {self.name}: its C function returned {code}, for {given or 'no inputs'}")
        return 0

    cdef int point(self, Places places) except -1:
        cdef Py_ssize_t k
        for k in range(len(self.arrays)):
            places.add(<char**>&self.tensors[k].data)
        return 0


def check_call(op, attrs, inputs, outputs):
    """Raise unless arrays can be those of a call."""
    op.check_arity(attrs, len(inputs))
    shapes, types = op.infer_outputs(attrs, [a.shape for a in inputs], [a.dtype_code for a in inputs])
    given = [a.shape for a in outputs], [a.dtype_code for a in outputs]
    if given != ([tuple(s) for s in shapes], list(types)):
        raise OpValueError(f"steps.call: operator {op.name} gives arrays of shapes {shapes} and types "
                           f"{[dtypes.NAMES[t] for t in types]}, not {given[0]} and {[dtypes.NAMES[t] for t in given[1]]}")


cdef class Steps(Call):
    """Calls that run one after the other; while they run they have temporary memory."""

    def __init__(self, Device device):
        self.calls, self.temporaries, self.device = [], [], device
        self.places = Places(temporary=True, gpu=device.number)

    def temporary(self, shape, int dtype):
        """Return an array that has memory while the steps run."""
        found = self.places.stand_in(tuple(shape), dtype)
        self.temporaries.append(found)
        return found

    def move(self, Array source, Array target, int req=REQ_WRITE):
        """Copy an array to another, unless they are in one place; a source of other strides, or with stride 0, may be a view."""
        if self.checks and source.shape_tuple() != target.shape_tuple():
            raise OpValueError(f"steps.move: the source has shape {source.shape_tuple()}, the target {target.shape_tuple()}")
        if source is not target and not (req == REQ_WRITE and same_layout(source, target)):
            self.calls.append(self.device.move(source, target, req))

    def add(self, Array source, Array target):
        """Add an array to another, which may be of another type."""
        self.move(source, target, REQ_ADD)

    def room(self, Array target, int dtype):
        """Return the array itself if it has this type, else a temporary one that has it: move it there when it is written."""
        return target if target.dtype == dtype else self.temporary(target.shape_tuple(), dtype)

    def converted(self, Array source, int dtype):
        """Return the array itself if it has this type, else a temporary copy that has it."""
        if source.dtype == dtype:
            return source
        found = self.temporary(source.shape_tuple(), dtype)
        self.move(source, found)
        return found

    def fill(self, Array target, value):
        """Set all elements to one number."""
        number = np.asarray(value).astype(dtypes.numpy_dtype(target.dtype))
        self.calls.append(self.device.filled(target, number))

    def work(self, Work work, *arrays, refuse=None):
        """Run compiled work on arrays, of which it writes the last.

        ``refuse(position, *arrays)`` raises for the element at which the work says that it cannot go on.
        """
        cdef WorkCall call = WorkCall()
        cdef Py_ssize_t k
        if len(arrays) > MOST_ARRAYS:
            raise ValueError(f"{type(work).__name__}: {len(arrays)} arrays; at most {MOST_ARRAYS} are supported")
        call.work, call.arrays, call.refuse = work, list(arrays), refuse
        for k in range(len(arrays)):
            call.data[k] = read_pointer(<Array?>arrays[k])
        write_pointer(<Array>arrays[-1])
        self.calls.append(call)

    def c_function(self, str name, size_t address, owner, inputs, outputs, list params):
        """Run a function of C, of which ``mxop/kernel.h`` says what it is; `owner` is kept as long as the steps."""
        cdef CKernel call = CKernel()
        call.function, call.name, call.owner = <MXOPKernel>address, name, owner
        call.arrays, call.n_in = [*inputs, *outputs], <int>len(inputs)
        call.fill(params)
        self.calls.append(call)

    def call(self, str name, dict params, inputs, outputs):
        """Run another operator, which is no kernel of steps."""
        op = registry.get(name)
        if self.checks:
            check_call(op, op.parse(params), inputs, outputs)
        call = ask("prepare")(op, op.parse(params), list(inputs), list(outputs), [REQ_WRITE] * len(outputs))
        if isinstance(call, Steps):
            raise AssertionError(f"operator {name} has temporary arrays of its own")
        self.calls.append(call)

    def run(self):
        """Execute the steps once."""
        self.finished().execute()

    cdef Steps finished(self):
        """Find out where the calls point into temporary arrays."""
        if self.temporaries:
            self.places.note(self.calls)
        return self

    cdef int execute(self) except -1:
        cdef Call call
        cdef Array a
        if self.temporaries:
            self.places.run(self.calls, [self.device.make(a.ndim, a.shape_, a.dtype) for a in self.temporaries])
        else:
            for call in self.calls:
                call.execute()
        return 0

    cdef list launches(self):
        return None if self.temporaries else launches_of(self.calls)

    cdef int point(self, Places places) except -1:
        places.note(self.calls)
        return 0


cdef list works_of(list calls):
    """Return the compiled work among calls, and among their steps."""
    cdef list found = []
    for call in calls:
        if isinstance(call, WorkCall):
            found.append(call)
        elif isinstance(call, Steps):
            found += works_of((<Steps>call).calls)
    return found
