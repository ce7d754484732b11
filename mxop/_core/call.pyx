"""What executors are made of: calls whose inference and allocation are done, and how they are given other arrays.

A call may be prepared for *placeholders*, arrays at addresses that no memory has.  :meth:`Places.note` finds every pointer of a
call into a placeholder; :meth:`Places.run` puts pointers into real arrays there, and runs the calls.
"""
from cpython.object cimport PyObject
from libc.stdlib cimport free, realloc

from mxop._core.array cimport Array, in_c_order, read_pointer, template, view_of, wrapped
from mxop._core.device cimport device_of
from mxop._core.lazy cimport run_all
from mxop._kernels.instruction_sets cimport itemsize_of

cdef extern from "Python.h":
    PyObject** PySequence_Fast_ITEMS(object sequence)

cdef enum:
    SHIFT = 44              # a placeholder may have 2**43 bytes, on either side of its address: strides may be negative
    BITS = 16               # of their numbers
cdef Py_ssize_t MARK = <Py_ssize_t>1 << (SHIFT + BITS + 1), TEMPORARY = <Py_ssize_t>1 << (SHIFT + BITS)
cdef Py_ssize_t MIDDLE = <Py_ssize_t>1 << (SHIFT - 1)


cdef class Call:
    """A call that is ready; ``run()`` executes it."""

    cdef int execute(self) except -1:
        return 0

    cdef list launches(self):
        """Return the launches that the call consists of, on memory that it has for good; None if it does anything else."""
        return None

    cdef int point(self, Places places) except -1:
        """Tell where the call points into arrays."""
        raise NotImplementedError(f"{type(self).__name__} keeps its arrays")

    def run(self):
        """Execute the call once."""
        run_all()  # pending calls may read memory that this one overwrites
        self.execute()


cdef list launches_of(list calls):
    """Return the launches of several calls; None if one of them does anything else."""
    cdef Call call
    cdef list found = [], these
    for call in calls:
        these = call.launches()
        if these is None:
            return None
        found += these
    return found


cdef class Places:
    """Where prepared calls point into placeholders.

    Parameters
    ----------
    temporary : bool
        The placeholders are for what lives during one run: other tables do not see them.
    gpu : int
        Number of the GPU on which all arrays lie; -1 for the CPU.
    """

    def __cinit__(self):
        self.known, self.handed = set(), []

    def __init__(self, *, bint temporary=False, int gpu=-1):
        self.mark = TEMPORARY if temporary else MARK
        self.device = device_of(gpu)

    def __dealloc__(self):
        free(self.places)

    def stand_in(self, tuple shape, int dtype, tuple strides=None):
        """Return an array of a shape and type code without memory; they are numbered in the order in which they are made.

        Strides (in elements) that are not those of C order may be negative: elements are where they are in the real array.
        """
        cdef Array like = template(shape, dtype), a = in_c_order(like.ndim, like.shape_, dtype)  # which refuses an overflow
        cdef int i
        if a.size * itemsize_of(dtype) >> (SHIFT - 1) or self.bases >> BITS:
            raise OverflowError("an array is too large for a plan")
        a.data = <char*>(self.mark | (<Py_ssize_t>self.bases << SHIFT) | MIDDLE)
        for i in range(a.ndim if strides is not None else 0):
            a.strides_[i] = <Py_ssize_t>strides[i] * itemsize_of(dtype)
        a.block = wrapped(a, None)  # of the bytes between its elements, too
        a.device, a.device_id = self.device, max(self.device.number, 0)
        self.bases += 1
        return a if strides is None else view_of(a, shape, strides, 0)

    cdef int add(self, char** where) except -1:
        """Note a pointer, if it points into a placeholder."""
        cdef Py_ssize_t address = <Py_ssize_t>where[0]
        if not address & self.mark:
            return 0
        address ^= self.mark
        return self.add_place(where, <int>(address >> SHIFT), (address & ((<Py_ssize_t>1 << SHIFT) - 1)) - MIDDLE)

    cdef int add_place(self, char** where, int base, Py_ssize_t offset) except -1:
        """Note a pointer into an array of the table."""
        cdef Place* more
        if self.count == self.room:
            more = <Place*>realloc(self.places, (2 * self.room + 16) * sizeof(Place))
            if more == NULL:
                raise MemoryError()
            self.places, self.room = more, 2 * self.room + 16
        self.places[self.count].where, self.places[self.count].base, self.places[self.count].offset = where, base, offset
        self.count += 1
        return 0

    cdef int add_array(self, Array a) except -1:
        """Note an array that a call hands to a function; each once."""
        if id(a) not in self.known:
            self.known.add(id(a))
            self.handed.append(a)
            return self.add(&a.data)
        return 0

    def note(self, list calls):
        """Find the pointers of prepared calls.

        Raises
        ------
        NotImplementedError
            For calls that keep their arrays.
        """
        cdef Call call
        for call in calls:
            call.point(self)

    def used(self):
        """Return the numbers of the placeholders that a call points into."""
        cdef Py_ssize_t i
        return {self.places[i].base for i in range(self.count)}

    cdef int base_of(self, char** where) noexcept:
        """Return the number of the placeholder that a pointer of a call points into, -1 if there is none."""
        cdef Py_ssize_t i
        for i in range(self.count):
            if self.places[i].where == where:
                return self.places[i].base
        return -1

    cdef void point_to(self, char** at) noexcept:
        """Put pointers there: to the memory of each array, by the number of its placeholder."""
        cdef Py_ssize_t i
        for i in range(self.count):
            self.places[i].where[0] = at[self.places[i].base] + self.places[i].offset

    cpdef run(self, list calls, list arrays):
        """Run calls on these arrays; ``None`` stands for those that nothing points into."""
        cdef Call call
        self.put(arrays)
        for call in calls:
            call.execute()

    cpdef int put(self, object arrays, list more=None) except -1:
        """Let all places point into these arrays, a tuple or list and what comes after them."""
        cdef PyObject** first = PySequence_Fast_ITEMS(arrays)
        cdef Py_ssize_t n = len(arrays), i, base
        cdef Array a
        for i in range(self.count):
            base = self.places[i].base
            a = <Array>first[base] if base < n else <Array>more[base - n]
            self.places[i].where[0] = read_pointer(a) + self.places[i].offset
        for a in self.handed:
            a.seen = None
        return 0


cdef class PlacesWithin(Places):
    """Where prepared calls point into arrays that have memory: of the same shape and strides, others can be read for one run.

    Parameters
    ----------
    arrays : list of NDArray
    """

    cdef list arrays

    def __init__(self, list arrays):
        self.arrays = arrays

    cdef int add(self, char** where) except -1:
        cdef Py_ssize_t k, offset
        cdef Array a
        for k in range(len(self.arrays)):
            a = <Array>self.arrays[k]
            offset = where[0] - a.data
            if 0 <= offset < a.size * itemsize_of(a.dtype):
                return self.add_place(where, <int>k, offset)
        return 0

    cdef int add_array(self, Array a) except -1:
        cdef Py_ssize_t before = self.count
        self.add(&a.data)
        if self.count > before:  # who is handed it may keep it, and what it points to then lives no longer than the run
            raise NotImplementedError("a function keeps its arrays")
        return 0
