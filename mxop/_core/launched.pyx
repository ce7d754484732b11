"""Kernels on a GPU without Python in between: of calls like one before, and of calls that were prepared."""
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from mxop._core.array cimport Array, new_array
from mxop._core.call cimport Call, Places, gpu_pointer
from mxop._kernels.instruction_sets cimport itemsize_of
from mxop._kernels.operands cimport MAX_DIMS

from mxop.support.memo import keep

cdef enum:
    MOST = 8        # inputs of calls that are known again
    WORD = 16       # bytes


cdef int _forgotten = 0


def forget():
    """Launch nothing again that was launched before: its kernels are gone."""
    global _forgotten
    _forgotten += 1


cdef class Launch:
    """What a call needs whose operands lie in a certain way.

    Parameters
    ----------
    plan : mxop._gpu.launch.Plan
    results : list of NDArray
        Such results as it has.
    """

    cdef object function, blocks, threads, number, current, using, make
    cdef tuple numbers
    cdef list results, made
    cdef int place

    def __init__(self, plan, list results):
        cdef Array a
        self.function, self.blocks, self.threads = plan.function, plan.blocks, plan.threads
        self.number, self.numbers = plan.number, plan.numbers
        self.current, self.using, self.make = plan.device
        self.made = [((<Array>a).shape_tuple(), (<Array>a).gpu.dtype) for a in results]
        self.results = [like_it(<Array>a, None) for a in results]
        self.place = (<Array>results[0]).device_id

    cdef list run(self, PyObject** inputs, int n, list values):
        cdef list arrays = [(<Array>inputs[k]).gpu for k in range(n)], results = []
        cdef Py_ssize_t k
        arrays.extend([self.number(v) for v in values])
        for k in range(len(self.made)):
            shape, dtype = <tuple>self.made[k]
            made = self.make(shape, dtype)
            arrays.append(made)
            results.append(like_it(<Array>self.results[k], made))
        self.function(self.blocks, self.threads, (*arrays, *self.numbers))
        return results


cdef Array like_it(Array a, object memory):
    """Return an array of the shape and type of another that is in C order, over memory of a GPU."""
    cdef Array b = new_array()
    b.set_dims(a.ndim)
    b.dtype, b.size, b.device_id, b.contiguous, b.gpu = a.dtype, a.size, a.device_id, True, memory
    memcpy(b.shape_, a.shape_, a.ndim * sizeof(Py_ssize_t))
    memcpy(b.strides_, a.strides_, a.ndim * sizeof(Py_ssize_t))
    return b


cdef bint begins_a_word(Array a) except -1:
    """Return whether an array of a GPU begins where its kernels can move words."""
    return <size_t>gpu_pointer(a) % WORD == 0


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
    if launch.current() == launch.place:
        return launch.run(inputs, n, values)
    with launch.using(launch.place):
        return launch.run(inputs, n, values)


cdef int keep_launch(dict launches, PyObject** inputs, int n, bint numpy, object plan, list results) except -1:
    """Keep what a call launched, whose results are new."""
    if n <= MOST and plan is not None:
        keep(launches, seen(inputs, n, numpy), Launch(plan, results))
    return 0


# ---- memory ------------------------------------------------------------------------------------------------------------

cdef class Room:
    """Makes arrays of one shape and type on a GPU.

    Parameters
    ----------
    shape : tuple of int
    code : int
        Of the type.
    place : int
        Number of the device.
    """

    def __init__(self, tuple shape, int code, int place):
        from mxop._gpu import device, launch
        cdef Array a = new_array()
        cdef Py_ssize_t step = itemsize_of(code)
        cdef int i
        a.set_dims(<int>len(shape))
        a.dtype, a.size, a.device_id, a.contiguous = code, 1, place, True
        for i in range(a.ndim - 1, -1, -1):
            a.shape_[i], a.strides_[i] = shape[i], step
            step *= max(a.shape_[i], <Py_ssize_t>1)
            a.size *= a.shape_[i]
        self.shape, self.dtype, self.place, self.like = shape, device.type_of(code), place, a
        self.current, self.using, self.make = launch.device_of(place)

    cdef Array new(self):
        """Return a new array; its elements are not set."""
        if self.current() == self.place:
            return like_it(self.like, self.make(self.shape, self.dtype))
        with self.using(self.place):
            return like_it(self.like, self.make(self.shape, self.dtype))


# ---- prepared calls ----------------------------------------------------------------------------------------------------

cdef class LaunchCall(Call):
    """A kernel on fixed arrays of a GPU.

    Parameters
    ----------
    plan : mxop._gpu.launch.Plan
    inputs, outputs : sequence of cupy.ndarray
    values : sequence of (float or int)
        The formula's parameters.
    place : int
        Number of the device.
    """

    cdef object function, blocks, threads, current, using, make
    cdef tuple values, numbers, own     # own: bytes of memory that each run has
    cdef list arrays        # whose memory it uses
    cdef char** pointers
    cdef int n_inputs, n_arrays, place, shared

    def __init__(self, plan, inputs, values, outputs, int place):
        cdef Py_ssize_t k
        self.arrays = [*inputs, *outputs]
        self.n_inputs, self.n_arrays, self.place = <int>len(inputs), <int>len(self.arrays), place
        self.function, self.blocks, self.threads, self.numbers = plan.function, plan.blocks, plan.threads, plan.numbers
        self.values = tuple([plan.number(v) for v in values])
        self.current, self.using, self.make = plan.device
        self.shared, self.own = plan.shared, plan.own
        self.pointers = <char**>calloc(self.n_arrays + 1, sizeof(char*))
        if self.pointers == NULL:
            raise MemoryError()
        for k in range(self.n_arrays):
            self.pointers[k] = <char*><size_t>self.arrays[k].data.ptr

    def __dealloc__(self):
        free(self.pointers)

    cdef int execute(self) except -1:
        if self.current() == self.place:
            self.launch()
        else:
            with self.using(self.place):
                self.launch()
        return 0

    cdef int launch(self) except -1:
        cdef Py_ssize_t k
        own = [self.make((n,), "uint8") for n in self.own]
        inputs = [<size_t>self.pointers[k] for k in range(self.n_inputs)]
        outputs = [<size_t>self.pointers[k] for k in range(self.n_inputs, self.n_arrays)]
        self.function(self.blocks, self.threads, (*inputs, *self.values, *outputs, *own, *self.numbers), self.shared)
        return 0

    cdef int point(self, Places places) except -1:
        cdef Py_ssize_t k
        for k in range(self.n_arrays):
            places.add(&self.pointers[k])
        return 0
