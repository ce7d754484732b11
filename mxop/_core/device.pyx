"""Devices: all that differs between arrays on the CPU and on a GPU.

An array is a block of memory with shape, strides and type, on any device.  Its ``device`` allocates, copies and fills, shows the
memory to NumPy or CuPy, and prepares calls.  :class:`Host` is the CPU, :class:`mxop._gpu.backend.Gpu` a GPU.
"""
from mxop._core.array cimport Array, HOST, alloc, alloc_tuple, as_numpy, from_numpy, view_at
from mxop._core.transfer cimport copy_on_host, fill_on_host, gather_on_host
from mxop._kernels.codes cimport FLOAT64
from mxop._kernels.operands cimport REQ_WRITE

import os

import numpy as np

from mxop.support.errors import DeviceError

cdef dict _gpus = {}


cdef class Nothing:
    """A scope in which all is as it was; Python's own is slower."""

    def __enter__(self):
        pass

    def __exit__(self, kind, problem, trace):
        pass


cdef Nothing _nothing = Nothing()
cdef bint _waits = os.environ.get("MXOP_GPU_WAIT", "0") not in ("", "0")


cdef int wait_if_asked() except -1:
    """Wait for the GPUs in use after a call, where the environment asks for it: a fault is then told by its own call."""
    if _waits:
        from mxop._gpu import device
        device.synchronize()
    return 0


cpdef Device device_of(int number):
    """Return a GPU by its number; the CPU for -1."""
    if number < 0:
        return HOST
    found = _gpus.get(number)
    if found is None:
        from mxop._gpu.backend import Gpu
        found = _gpus.setdefault(number, Gpu(number))
    return <Device>found


cdef class Device:
    """Where arrays lie, and what computes there.  Arguments and results are arrays of this device unless said otherwise."""

    def __init__(self, int code, str name, int number, size_t word):
        self.code, self.name, self.number, self.word = code, name, number, word

    cpdef object empty(self, tuple shape, int dtype):
        """Return a new array in C order whose elements are not set."""
        raise NotImplementedError

    cdef object make(self, int ndim, const Py_ssize_t* shape, int dtype):
        """Do as `empty` for a shape in C."""
        return self.empty(tuple([shape[k] for k in range(ndim)]), dtype)

    cdef object nothing(self):
        """Return an array of one float64 zero; nobody writes it."""
        cdef Array made
        if self.zero is None:
            made = <Array>self.empty((), FLOAT64)
            self.fill(made, 0)
            made.block.stamp = 0  # a constant, whoever needs it first
            self.zero = made
        return self.zero

    cpdef object view(self, object array):
        """Return an array of NumPy or CuPy over the memory of an array; whoever has it may write at any time."""
        cdef Array a = <Array>array
        if a.seen is None:
            a.seen = self.view_at(<object>a.block.link, <size_t>a.data, a.shape_tuple(),
                                  tuple([a.strides_[k] for k in range(a.ndim)]), a.dtype)
        if a.watch is not None:
            a.watch.writes += 1
            a.watch.exports += 1
        return a.seen

    cpdef object from_numpy(self, object host):
        """Return an array with the elements of a NumPy array that nobody else has."""
        raise NotImplementedError

    def wrap(self, memory):
        """Return an array over one of NumPy or CuPy, or of a copy in C order."""
        raise NotImplementedError

    cpdef object to_host(self, object array):
        """Return an array on the CPU with the same elements: a copy, where the array lies elsewhere."""
        raise NotImplementedError

    cpdef check_host(self):
        """Raise unless the CPU reads this memory."""
        raise DeviceError("a GPU array is not copied to the host implicitly: call asnumpy()")

    cpdef copy(self, object source, object target, int req):
        """Copy an array of any device to one of this device and of the same size, or add it; convert types."""
        raise NotImplementedError

    cdef int copy_from(self, object source, Py_ssize_t offset, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides,
                       object target) except -1:
        """Copy the elements at an offset, with strides in bytes, to a new contiguous array of the same type."""
        cdef Array part = view_at(<Array>source, ndim, shape, strides, offset)
        self.copy(part, target, REQ_WRITE)
        return 0

    cpdef fill(self, object target, double value):
        """Set all elements to a number that the type has."""
        raise NotImplementedError

    cpdef place(self, object array, int number):
        """Let an array say that it is on the context of a number (see ``Context.place``), if these share memory."""

    def current(self):
        """Return a scope in which this GPU is CuPy's current device, as all of CuPy's functions want it."""
        return _nothing

    def synchronize(self):
        """Wait for the work that was launched."""

    def stream(self):
        """Return the address of the CUDA stream in force; 0 for the CPU."""
        return 0


cdef class Host(Device):
    """The CPU; whoever makes the first array makes it."""

    def __init__(self):
        Device.__init__(self, 1, "CPU", -1, 1)

    cpdef object empty(self, tuple shape, int dtype):
        return alloc_tuple(shape, dtype)

    cdef object make(self, int ndim, const Py_ssize_t* shape, int dtype):
        return alloc(ndim, shape, dtype)

    cpdef object view(self, object array):
        return as_numpy(<Array>array)

    cpdef object from_numpy(self, object host):
        return from_numpy(host, False)

    def wrap(self, memory):
        return from_numpy(np.asarray(memory, order="C"), False)

    @property
    def library(self):
        """NumPy."""
        return np

    cpdef object to_host(self, object array):
        return array

    cpdef check_host(self):
        pass

    cpdef copy(self, object source, object target, int req):
        copy_on_host(<Array>(<Array>source).device.to_host(source), <Array>target, req)

    cdef int copy_from(self, object source, Py_ssize_t offset, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides,
                       object target) except -1:
        return gather_on_host(<Array>source, offset, ndim, shape, strides, <Array>target)

    cpdef fill(self, object target, double value):
        fill_on_host(<Array>target, value)

    cpdef place(self, object array, int number):
        (<Array>array).device_id = number

    # ---- prepared calls ---------------------------------------------------------------------------------------------------
    def way(self, op, list inputs, list outputs, attrs):
        """Return the implementation of a kernel for a call (:class:`mxop.opdef.kernel.Way`)."""
        found = op.way(inputs, outputs, attrs)
        if found is None:
            raise DeviceError(f"operator {op.name} has no CPU function; give one with @{op.name}.cpu")
        return found

    def elementwise(self, op, attrs, list inputs, list outputs, list reqs):
        """Return the prepared call of an elementwise operator; None where a call does more than its kernel."""
        from mxop._core.prepare import elementwise_on_host
        return elementwise_on_host(op, attrs, inputs, outputs, reqs)

    def formula(self, tuple roots, list inputs, list outputs, list reqs, dict numbers):
        """Return the prepared call of a fused formula over ``input_(0)`` and on; `numbers` are the values of its parameters."""
        from mxop._core.prepare import formula_on_host
        return formula_on_host(roots, inputs, outputs, reqs, numbers)

    def reduction(self, op, attrs, source, tuple axes, result, int req):
        """Return the prepared call of a reduction that overlaps nothing; None where its result needs a temporary."""
        from mxop._core.reductions import reduction_on_host
        return reduction_on_host(op, attrs, source, axes, result, req)

    def move(self, source, target, int req):
        """Return the prepared call that copies (or adds) an array to one of its shape that it does not overlap."""
        from mxop._core.steps import move_of
        return move_of(source, target, req)

    def filled(self, target, number):
        """Return the prepared call that sets all elements of an array to a number of its type."""
        one = from_numpy(np.reshape(number, 1), False)
        return self.move(one._view(target.shape, (0,) * target.ndim, 0), target, REQ_WRITE)

    def row_kernel(self, Py_ssize_t rows, list locals_, list stages, list arrays, bint turned, dict numbers):
        """Return the prepared call of a row kernel (:func:`mxop._core.row_kernels.prepare_row_kernel`)."""
        from mxop._core.row_kernels import prepare_row_kernel
        return prepare_row_kernel(rows, locals_, stages, arrays, turned, numbers)

    def loop(self, op, list inputs, list outputs, list reqs):
        """Return the prepared call of a loop over graphs; None where its bodies run call by call."""
        return op.call(inputs, outputs, reqs)

    def nest(self, body, known, inputs, outputs):
        """Run a kernel of loops over elements (:class:`mxop.operator.hybrid.body.Hybrid`)."""
        body.execute(known, inputs, outputs)
