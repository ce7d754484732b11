"""What calls found out, for calls like them: dictionaries, before which the latest answers are compared without making a key."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.string cimport memcmp, memcpy

from mxop._core.array cimport Array, signature, signature_size, write_signature

from mxop.support.memo import keep
from mxop.support.shape_mode import mode as _mode, used as _numpy_used

cdef extern from "Python.h":
    void* Py_TYPE(PyObject* a)
    bint PyFloat_CheckExact(object a)
    bint PyList_CheckExact(object a)
    bint PyLong_CheckExact(object a)
    bint PyTuple_CheckExact(object a)
    bint PyUnicode_CheckExact(object a)
    double PyFloat_AS_DOUBLE(object number)
    PyObject** PySequence_Fast_ITEMS(object sequence)
    Py_ssize_t PySequence_Fast_GET_SIZE(object sequence)
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow)

cdef enum:
    PLANS = 256             # powers of 2
    FORMS = 64
    ROOM = 512              # bytes of a signature that is compared
    ITEMS = 64              # of a parameter that is kept

MISSING = object()
cdef list _used = _numpy_used
cdef tuple _SIMPLE = (int, float, bool, str, type(None))


cdef bint numpy_shapes() except -1:
    """Return whether shapes have NumPy's meaning in this thread: a look into its memory, once any thread may say so."""
    return bool(_used) and _mode.numpy


cdef class Entry:
    """One of the latest plans; or a question that has no plan yet."""


cdef inline size_t place_of(object op, object attrs, object inputs) except? 0:
    cdef size_t at = <size_t><PyObject*>op >> 4 ^ <size_t><PyObject*>attrs >> 4
    cdef Array a
    for a in inputs:
        at = at * 31 + <size_t>a.size
    return at & (PLANS - 1)


cdef class Latest:
    """The latest plans, each in a place that follows from what it is for."""

    def __init__(self):
        self.latest = [None] * PLANS

    cdef Entry entry(self, object op, object attrs, object inputs, int mode, bint strides, bint wants):
        """Return what is known of a call on arrays like these; without a plan, where it is not among the latest."""
        cdef char known[ROOM]
        cdef Py_ssize_t size = signature_size(inputs, strides)
        cdef Entry entry
        found = self.latest[place_of(op, attrs, inputs)]
        if found is not None and size <= ROOM:
            entry = <Entry>found
            if entry.op is op and entry.attrs is attrs and len(entry.signature) == size:
                write_signature(known, inputs, mode, strides, wants)
                if not memcmp(known, <char*>entry.signature, size):
                    return entry
        entry = Entry.__new__(Entry)
        entry.op, entry.attrs, entry.plan, entry.signature = op, attrs, MISSING, signature(inputs, mode, strides, wants)
        return entry

    cdef int keep(self, Entry entry, object inputs, object plan) except -1:
        """Let an entry be among the latest, with its plan."""
        entry.plan = plan
        self.latest[place_of(entry.op, entry.attrs, inputs)] = entry
        return 0

    def clear(self):
        """Drop all: an operator was unregistered or replaced."""
        self.latest = [None] * PLANS


cdef class Plans(Latest):
    """Plans of calls; what nothing can be planned for may be None."""

    def __init__(self):
        Latest.__init__(self)
        self.kept = {}

    cdef object find(self, object op, object attrs, object inputs, bint strides):
        """Return the plan for arrays like these, or MISSING."""
        cdef Entry entry = self.entry(op, attrs, inputs, numpy_shapes(), strides, False)
        if entry.plan is MISSING:
            found = self.kept.get((op, attrs, entry.signature), MISSING)
            if found is MISSING:
                return MISSING
            self.keep(entry, inputs, found)
        return entry.plan

    cdef object put(self, object op, object attrs, object inputs, bint strides, object plan):
        """Keep a plan, and return it."""
        return keep(self.kept, (op, attrs, signature(inputs, numpy_shapes(), strides)), plan)

    def clear(self):
        """Drop all: an operator was unregistered or replaced."""
        Latest.clear(self)
        self.kept.clear()


cdef inline size_t mark_of(PyObject* value) noexcept:
    """Return a number that equal parameters share: of numbers it is made of their values, of others of where they are."""
    cdef int overflow = 0
    cdef double number
    cdef size_t mark = 0
    if PyLong_CheckExact(<object>value):
        return <size_t>PyLong_AsLongLongAndOverflow(<object>value, &overflow)
    if not PyFloat_CheckExact(<object>value):
        return <size_t>value >> 4
    number = PyFloat_AS_DOUBLE(<object>value)
    memcpy(&mark, &number, sizeof(double))
    return mark


cdef inline bint same_item(PyObject* a, PyObject* b):
    """Return whether simple values are the same parameter; what is equal but of another type, or sign, is not."""
    cdef double one, other
    if a == b:
        return True
    if Py_TYPE(a) != Py_TYPE(b):
        return False
    if PyFloat_CheckExact(<object>a):
        one, other = PyFloat_AS_DOUBLE(<object>a), PyFloat_AS_DOUBLE(<object>b)
        return not memcmp(&one, &other, sizeof(double))
    return (PyLong_CheckExact(<object>a) or PyUnicode_CheckExact(<object>a)) and <object>a == <object>b


cdef inline bint is_row(PyObject* value) noexcept:
    return PyTuple_CheckExact(<object>value) or PyList_CheckExact(<object>value)


cdef bint same_parameter(PyObject* a, PyObject* b):
    """Return whether values are the same parameter: simple ones, or tuples or lists of these."""
    cdef Py_ssize_t k
    if a == b or not is_row(a) or Py_TYPE(a) != Py_TYPE(b):
        return same_item(a, b)
    if PySequence_Fast_GET_SIZE(<object>a) != PySequence_Fast_GET_SIZE(<object>b):
        return False
    for k in range(PySequence_Fast_GET_SIZE(<object>a)):
        if not same_item(PySequence_Fast_ITEMS(<object>a)[k], PySequence_Fast_ITEMS(<object>b)[k]):
            return False
    return True


cdef size_t place_of_form(PyObject** values, Py_ssize_t n, tuple names) noexcept:
    cdef size_t at = n
    cdef Py_ssize_t k, i, first = n - len(names)
    for k in range(n):
        if k >= first:
            at = at * 31 + (<size_t>PySequence_Fast_ITEMS(names)[k - first] >> 4)
        if is_row(values[k]):
            for i in range(PySequence_Fast_GET_SIZE(<object>values[k])):
                at = at * 31 + mark_of(PySequence_Fast_ITEMS(<object>values[k])[i])
        elif not isinstance(<object>values[k], Array):
            at = at * 31 + mark_of(values[k])
    return (at * <size_t>0x9e3779b97f4a7c15) >> 58


cdef class Form:
    """How one call was written, and what its parameters are."""

    cdef bint is_this(self, PyObject** values, Py_ssize_t n, tuple names, bint objects):
        """Return whether a call is written so, with the same parameters, or even the same objects."""
        cdef Py_ssize_t k
        cdef PyObject** known = PySequence_Fast_ITEMS(self.values)
        if len(self.names) != len(names) or len(self.values) != n:
            return False
        for k in range(len(names)):
            if PySequence_Fast_ITEMS(self.names)[k] != PySequence_Fast_ITEMS(names)[k]:
                return False
        for k in range(n):
            if self.places[k] != PARAMETER:
                if not isinstance(<object>values[k], Array):
                    return False
            elif known[k] != values[k] and (objects or not same_parameter(known[k], values[k])):
                return False
        return True

    cdef tuple inputs(self, PyObject** values):
        """Return the inputs among the arguments of a call like this, in the order in which the operator takes them."""
        cdef tuple found = PyTuple_New(self.n_inputs)
        cdef Py_ssize_t k
        for k in range(len(self.values)):
            if self.places[k] >= 0:
                Py_INCREF(<object>values[k])
                PyTuple_SET_ITEM(found, self.places[k], <object>values[k])
        return found

    cdef object output(self, PyObject** values):
        """Return the array that is given as `out`, or None."""
        return None if self.output_at < 0 else <object>values[self.output_at]


cdef class Forms:
    """Forms of calls of one operator, each in a place that follows from its parameters."""

    cdef Form find(self, PyObject** values, Py_ssize_t n, tuple names):
        """Return the form of a call, None where none like it came lately."""
        cdef Form last = self.last
        if last is None or last.is_this(values, n, names, True):
            return last
        found = self.latest[place_of_form(values, n, names)]
        if found is None or not (<Form>found).is_this(values, n, names, False):
            return None
        self.last = <Form>found
        return <Form>found

    cdef int note(self, tuple values, tuple names, list places, object attrs) except -1:
        """Keep the form of a call, if all of its parameters are simple, or tuples or lists of what is simple."""
        cdef Form form = Form.__new__(Form)
        cdef list kept = [], latest = self.latest
        cdef Py_ssize_t k
        form.output_at = -1
        for k in range(len(values)):
            value = values[k]
            form.places[k] = places[k]
            if form.places[k] == OUTPUT:
                form.output_at = <int>k
            if form.places[k] != PARAMETER:
                form.n_inputs += form.places[k] >= 0
                value = None
            elif type(value) is tuple or type(value) is list:
                if len(value) > ITEMS:
                    return 0
                for item in value:
                    if type(item) not in _SIMPLE:
                        return 0
                value = value[:]  # the caller may change a list
            elif type(value) not in _SIMPLE and not isinstance(value, type):
                return 0
            kept.append(value)
        form.names, form.values, form.attrs = names, tuple(kept), attrs
        if latest is None:
            latest = [None] * FORMS
        latest[place_of_form(PySequence_Fast_ITEMS(values), len(values), names)] = form
        self.latest, self.last = latest, form
        return 0
