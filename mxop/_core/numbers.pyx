"""NumPy's numbers in the place of Python's: as parameters, axes, sizes of shapes, indices and operands."""
from cpython.object cimport PyObject

import numpy as np

cdef extern from "Python.h":
    ctypedef struct PyTypeObject
    bint PyObject_TypeCheck(object value, PyTypeObject* kind)
    bint PyFloat_Check(object value)
    double PyFloat_AS_DOUBLE(object number)
    object PyNumber_Float(object number)
    object PyNumber_Index(object number)

cdef PyTypeObject* GENERIC = <PyTypeObject*>np.generic
cdef PyTypeObject* INTEGER = <PyTypeObject*>np.integer
cdef PyTypeObject* FLOATING = <PyTypeObject*>np.floating
cdef PyTypeObject* BOOLEAN = <PyTypeObject*>np.bool_
cdef PyTypeObject* LONG_DOUBLE = <PyTypeObject*>np.longdouble


cdef object plain_number(object value):
    """Return Python's number for one of NumPy's, and anything else as it is."""
    if not PyObject_TypeCheck(value, GENERIC):
        return value
    if PyFloat_Check(value):
        return PyFloat_AS_DOUBLE(value)
    if PyObject_TypeCheck(value, INTEGER):
        return PyNumber_Index(value)
    if PyObject_TypeCheck(value, FLOATING) and not PyObject_TypeCheck(value, LONG_DOUBLE):
        return PyNumber_Float(value)
    return bool(value) if PyObject_TypeCheck(value, BOOLEAN) else value


cdef object plain_parameter(object value):
    """Return the same of a parameter, which may be a tuple or a list."""
    cdef Py_ssize_t k
    cdef list items = None
    if type(value) is not tuple and type(value) is not list:
        return plain_number(value)
    for k, item in enumerate(value):
        number = plain_number(item)
        if number is not item:
            if items is None:
                items = list(value)
            items[k] = number
    return value if items is None else type(value)(items)


cdef list plain_arguments(PyObject** values, Py_ssize_t n):
    """Return the arguments of a call with Python's numbers, None where there are no others."""
    cdef Py_ssize_t k
    cdef list found = None
    for k in range(n):
        value = <object>values[k]
        plain = plain_parameter(value)
        if plain is not value:
            if found is None:
                found = [<object>values[i] for i in range(n)]
            found[k] = plain
    return found
