from mxop._core.array cimport Array
from mxop._core.device cimport Device

cdef struct Place:
    char** where            # a pointer into an array, in a prepared call
    int base                # of which array of the table
    Py_ssize_t offset

cdef class Call

cdef class Places:
    cdef Place* places
    cdef Py_ssize_t count, room
    cdef int bases
    cdef Device device
    cdef Py_ssize_t mark
    cdef set known
    cdef list handed                # arrays that a call hands to a function
    cpdef int put(self, object arrays, list more=*) except -1
    cpdef run(self, list calls, list arrays)
    cdef int base_of(self, char** where) noexcept
    cdef int add(self, char** where) except -1
    cdef int add_place(self, char** where, int base, Py_ssize_t offset) except -1
    cdef int add_array(self, Array a) except -1
    cdef void point_to(self, char** at) noexcept

cdef class Call:
    cdef int execute(self) except -1
    cdef list launches(self)
    cdef int point(self, Places places) except -1

cdef list launches_of(list calls)
