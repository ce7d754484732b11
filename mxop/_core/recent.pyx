"""What calls found out, for calls like them: dictionaries, before which the latest answers are compared without making a key.

May import :mod:`.array`.
"""
from cpython.object cimport PyObject
from libc.string cimport memcmp

from mxop._core.array cimport Array, signature, signature_size, write_signature

from mxop.memo import SHAPES, keep
from mxop.shape_mode import mode as _mode, used as _numpy_used

cdef enum:
    PLANS = 256             # powers of 2
    CALLS = 8
    ROOM = 512              # bytes of a signature that is compared

MISSING = object()
cdef list _used = _numpy_used
cdef tuple _SIMPLE = (int, float, bool, str, type(None))


cdef bint numpy_shapes() except -1:
    """Tell whether shapes have NumPy's meaning in this thread: a look into its memory, once any thread may say so."""
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
        return keep(self.kept, (op, attrs, signature(inputs, numpy_shapes(), strides)), plan, SHAPES)

    def clear(self):
        """Drop all: an operator was unregistered or replaced."""
        Latest.clear(self)
        self.kept.clear()


cdef class Parsed:
    """Parsed parameters of one operator."""

    def __init__(self):
        self.kept, self.latest = {}, [None] * CALLS

    cdef object find(self, tuple names, PyObject** values, Py_ssize_t n_inputs):
        """Return what the very same objects gave; None where they did not come lately."""
        cdef Py_ssize_t k
        found = self.latest[len(names) & (CALLS - 1)]
        if found is None:
            return None
        known, objects, n, attrs = <tuple>found
        if len(<tuple>known) != len(names) or <Py_ssize_t>n != n_inputs:
            return None
        for k in range(len(names)):
            if <PyObject*>(<tuple>known)[k] != <PyObject*>names[k] or <PyObject*>(<tuple>objects)[k] != values[k]:
                return None
        return attrs

    cdef object note(self, tuple names, tuple values, Py_ssize_t n_inputs, object attrs):
        """Keep what keyword arguments gave, if nobody can change them."""
        for value in values:
            if type(value) is tuple:
                for item in <tuple>value:
                    if type(item) not in _SIMPLE:
                        return attrs
            elif type(value) not in _SIMPLE:
                return attrs
        self.latest[len(names) & (CALLS - 1)] = (names, values, n_inputs, attrs)
        return attrs
