"""Kernels on a GPU without Python in between: of calls like one before, and of calls that were prepared."""
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from libc.stdlib cimport calloc, free

from mxop._core.array cimport Array, adopt, in_c_order, read_pointer, template
from mxop._core.call cimport Call, Places
from mxop._core.device cimport Device
from mxop._kernels.codes cimport BFLOAT16
from mxop._kernels.operands cimport MAX_DIMS

import os

import numpy as np

from mxop.support import dtypes
from mxop.support.errors import of_gpu
from mxop.support.memo import keep

cdef enum:
    MOST = 8        # inputs of calls that are known again
    MOST_GRAPHS = 4     # of the same kernels on different arrays


cdef int _forgotten = 0

#: By the number of a GPU: the stream of the last call there (:func:`mxop._gpu.device.follow`).
followed = {}
cdef dict _followed = followed


def forget():
    """Launch nothing again that was launched before: its kernels are gone."""
    global _forgotten
    _forgotten += 1
    _followed.clear()


cdef class Launch:
    """What a call needs whose operands lie in a certain way.

    Parameters
    ----------
    plan : mxop._gpu.launch.Plan
    results : list of NDArray
        Such results as it has.
    """

    cdef object launch, number
    cdef tuple numbers
    cdef list results
    cdef Launching device
    cdef bint arrays        # the kernel is given arrays, not their addresses

    def __init__(self, plan, list results):
        cdef Array a
        self.launch, self.number, self.numbers, self.arrays = plan.launch, plan.number, plan.numbers, plan.arrays
        self.results = [template((<Array>a).shape_tuple(), (<Array>a).dtype) for a in results]
        self.device = <Launching>(<Array>results[0]).device

    cdef list run(self, PyObject** inputs, int n, list values):
        cdef list operands = [self.operand(<Array>inputs[k]) for k in range(n)], results = []
        cdef Array like, made
        operands.extend([self.number(v) for v in values])
        for like in self.results:
            made = <Array>self.device.make(like.ndim, like.shape_, like.dtype)
            operands.append(self.operand(made))
            results.append(made)
        self.launch(*operands, *self.numbers)
        return results

    cdef object operand(self, Array a):
        return self.device.view(a) if self.arrays else <size_t>read_pointer(a)


cdef Array over_gpu(int ndim, const Py_ssize_t* shape, int dtype, object memory, Device device):
    """Return an array in C order over one of CuPy."""
    cdef Array a = in_c_order(ndim, shape, dtype)
    a.device, a.device_id, a.seen = device, device.number, memory
    adopt(a, <char*><size_t>memory.data.ptr, memory)
    return a


cdef bint begins_a_word(Array a) noexcept:
    """Return whether an array begins where prepared calls of its device rely on it."""
    return <size_t>a.data % a.device.word == 0


def fits(Array a):
    """Return whether prepared calls of its device can read an array where it lies, but for its shape and type."""
    return a.contiguous and begins_a_word(a)


cdef bytes seen(PyObject** inputs, int n, bint numpy):
    """Return what a kernel depends on of its operands, and the meaning of shapes."""
    cdef Py_ssize_t found[1 + MOST * (3 + 2 * MAX_DIMS)]
    cdef Py_ssize_t at = 1
    cdef Array a
    cdef int k, i
    found[0] = numpy | <Py_ssize_t>_forgotten << 1
    for k in range(n):
        a = <Array>inputs[k]
        found[at] = a.dtype | (<Py_ssize_t>a.ndim << 8)
        found[at + 1] = a.device_id
        found[at + 2] = begins_a_word(a)
        at += 3
        for i in range(a.ndim):
            found[at], found[at + 1] = a.shape_[i], a.strides_[i]
            at += 2
    return PyBytes_FromStringAndSize(<char*>found, at * sizeof(Py_ssize_t))


cdef list relaunched(dict launches, PyObject** inputs, int n, bint numpy, list values):
    """Run a call as one before; return its new results, or None where there was none with such operands."""
    cdef Launch launch
    if n > MOST:
        return None
    found = launches.get(seen(inputs, n, numpy))
    if found is None:
        return None
    launch = <Launch>found
    if launch.device.here():
        results = launch.run(inputs, n, values)
        launch.device.settle()
        return results
    with launch.device.current():
        return launch.run(inputs, n, values)


cdef int keep_launch(dict launches, PyObject** inputs, int n, bint numpy, object plan, list results) except -1:
    """Keep what a call launched, whose results are new."""
    if n <= MOST and plan is not None:
        keep(launches, seen(inputs, n, numpy), Launch(plan, results))
    return 0


# ---- memory ------------------------------------------------------------------------------------------------------------

cdef class Launching(Device):
    """A device whose memory is CuPy's."""

    cdef object number_of_current, stream_of, new

    cdef bint here(self) except -1:
        """Return whether this is CuPy's current device, and its current stream that of the last call."""
        last = _followed.get(self.number)
        if self.new is None:
            cupy = self.library
            self.number_of_current, self.stream_of = cupy.cuda.runtime.getDevice, cupy.cuda.get_current_stream
            self.new = cupy.ndarray
        return last is not None and self.number_of_current() == self.number and self.stream_of(self.number) is last

    cdef int settle(self) except -1:
        """Let later calls come after what was launched here, though another thread's stream was followed meanwhile."""
        if not self.here():
            with self.current():
                pass
        return 0

    cdef object make(self, int ndim, const Py_ssize_t* shape, int dtype):
        if dtype == BFLOAT16:  # of which not every CuPy has arrays
            return Device.make(self, ndim, shape, dtype)
        given, kind = tuple([shape[k] for k in range(ndim)]), _types[dtype]
        if self.here():
            try:
                return over_gpu(ndim, shape, dtype, self.new(given, kind), self)
            except Exception as problem:
                raise of_gpu(problem, f"gpu({self.number})")
        with self.current():
            return over_gpu(ndim, shape, dtype, self.new(given, kind), self)


cdef dict _types = {code: np.dtype(name) for code, name in dtypes.NAMES.items() if code != BFLOAT16}


# ---- prepared calls ----------------------------------------------------------------------------------------------------

cdef class LaunchCall(Call):
    """A kernel on fixed arrays of a GPU.

    Parameters
    ----------
    plan : mxop._gpu.launch.Plan
    inputs, outputs : sequence of cupy.ndarray
    values : sequence of (float or int)
        The formula's parameters.
    device : Launching
    """

    cdef object launched
    cdef tuple values, numbers, own     # own: bytes of memory that each run has
    cdef list arrays        # whose memory it uses
    cdef char** pointers
    cdef int n_inputs, n_arrays
    cdef bint takes_arrays  # the kernel is given arrays, not their addresses
    cdef Launching device

    def __init__(self, plan, inputs, values, outputs, Launching device):
        cdef Py_ssize_t k
        self.arrays = [*inputs, *outputs]
        self.n_inputs, self.n_arrays, self.device = <int>len(inputs), <int>len(self.arrays), device
        self.launched, self.numbers, self.own, self.takes_arrays = plan.launch, plan.numbers, plan.own, plan.arrays
        self.values = tuple([plan.number(v) for v in values])
        self.pointers = <char**>calloc(self.n_arrays + 1, sizeof(char*))
        if self.pointers == NULL:
            raise MemoryError()
        for k in range(self.n_arrays):
            self.pointers[k] = <char*><size_t>self.arrays[k].data.ptr

    def __dealloc__(self):
        free(self.pointers)

    cdef int execute(self) except -1:
        if self.device.here():
            self.launch()
            self.device.settle()
        else:
            with self.device.current():
                self.launch()
        return 0

    cdef int launch(self) except -1:
        cdef Py_ssize_t k
        cdef list operands = [self.operand(k) for k in range(self.n_arrays)]
        own = [self.device.new((n,), "uint8") for n in self.own]
        self.launched(*operands[:self.n_inputs], *self.values, *operands[self.n_inputs:], *own, *self.numbers)
        return 0

    cdef object operand(self, Py_ssize_t k):
        """Return the address of an array, or an array there."""
        cdef size_t address = <size_t>self.pointers[k]
        if not self.takes_arrays:
            return address
        array = self.arrays[k]
        if array.data.ptr != address:
            array = self.arrays[k] = self.device.view_at(None, address, array.shape, array.strides, dtypes.code_of(array.dtype))
        return array

    cdef int point(self, Places places) except -1:
        cdef Py_ssize_t k
        for k in range(self.n_arrays):
            places.add(&self.pointers[k])
        return 0

    cdef list launches(self):
        return None if self.own else [self]


# ---- CUDA graphs -------------------------------------------------------------------------------------------------------

cdef tuple by_graphs(list calls):
    """Return calls with launches that follow each other put together, and the number of the first call of each."""
    cdef Call call
    cdef list found = [], first = [], group
    cdef Py_ssize_t at = 0, end
    while at < len(calls):
        group, end = [], at
        while end < len(calls):
            call = <Call>calls[end]
            these = call.launches()
            if these is None or (these and group and (<LaunchCall>these[0]).device is not (<LaunchCall>group[0]).device):
                break
            group += these
            end += 1
        first.append(at)
        found.append(Graph(group) if len(group) > 1 and mx_graphs else calls[at])
        at = end if len(group) > 1 and mx_graphs else at + 1
    return found, first


cdef bint mx_graphs = os.environ.get("MXOP_GPU_GRAPHS", "1") != "0" and os.environ.get("MXOP_GPU_WAIT", "0") in ("", "0")


cdef class Graph(Call):
    """Kernels that are launched together, as a CUDA graph, from their second run on the same arrays on.

    Parameters
    ----------
    calls : list of LaunchCall
    """

    cdef list calls
    cdef dict graphs            # by the addresses of the arrays; None of those that came once
    cdef bint refused

    def __init__(self, list calls):
        self.calls, self.graphs = calls, {}

    cdef int execute(self) except -1:
        cdef Launching device = (<LaunchCall>self.calls[0]).device
        if device.here():
            self.launch()
            device.settle()
        else:
            with device.current():
                self.launch()
        return 0

    cdef int launch(self) except -1:
        cdef Launching device = (<LaunchCall>self.calls[0]).device
        cdef bytes addresses
        if self.refused or device.stream_of(device.number).is_capturing():  # into a graph of the user's
            return self.launch_each()
        addresses = self.pointers()
        graph = self.graphs.get(addresses)
        if graph is None and addresses in self.graphs:
            graph = self.graphs[addresses] = device.captured(self)
            self.refused = graph is None
        if graph is not None:
            graph.launch()
            return 0
        self.launch_each()  # kernels are compiled by their first run
        if not self.refused:
            self.graphs[addresses] = None
            if len(self.graphs) > MOST_GRAPHS:
                del self.graphs[next(iter(self.graphs))]
        return 0

    cdef int launch_each(self) except -1:
        cdef LaunchCall call
        for call in self.calls:
            call.launch()
        return 0

    cdef bytes pointers(self):
        cdef LaunchCall call
        return b"".join([PyBytes_FromStringAndSize(<char*>call.pointers, call.n_arrays * sizeof(char*)) for call in self.calls])

    def __call__(self):
        """Launch each kernel."""
        self.launch_each()
