# What differs between the CPU and a GPU.
cdef class Device:
    cdef readonly int code          # MXNet's and DLPack's number of the kind
    cdef readonly str name          # "CPU" or "GPU"
    cdef readonly int number        # of the GPU; -1 for the CPU
    cdef readonly size_t word       # bytes; prepared calls rely on addresses that are multiples of it
    cdef object zero                # an array of one zero, once somebody needs it
    cpdef object empty(self, tuple shape, int dtype)
    cdef object make(self, int ndim, const Py_ssize_t* shape, int dtype)
    cdef object nothing(self)
    cpdef object view(self, object array)
    cpdef object from_numpy(self, object host)
    cpdef object to_host(self, object array)
    cpdef check_host(self)
    cpdef copy(self, object source, object target, int req)
    cdef int copy_from(self, object source, Py_ssize_t offset, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides,
                       object target) except -1
    cpdef fill(self, object target, double value)
    cpdef place(self, object array, int number)

cdef class Host(Device):
    pass

cpdef Device device_of(int number)
cdef int wait_if_asked() except -1
