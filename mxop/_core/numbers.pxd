from cpython.object cimport PyObject

cdef object plain_number(object value)
cdef object plain_parameter(object value)
cdef list plain_arguments(PyObject** values, Py_ssize_t n)
