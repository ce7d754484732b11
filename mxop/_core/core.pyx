"""``NDArray``: the array that users hold.

Arithmetic is here, because its cost is what people feel; what is not hot lives in :mod:`mxop.ndarray` and is attached to
the class there.
"""
from cpython.object cimport Py_EQ, Py_GE, Py_GT, Py_LE, Py_LT, Py_NE, PyObject, PyTypeObject

from mxop._core.array cimport (
    Array, detached, has_history, host_reads, is_making, is_read_again, note_host_read, refuse_in_trace,
)
from mxop._kernels.codes cimport BOOL, INT8, INT32, INT64, UINT8
from mxop._core.dispatch cimport OpFunction, call_scalar, call_two, function_of
from mxop._core.numbers cimport plain_number, plain_parameter
from mxop._core.record cimport is_recording, set_recording
from mxop._core.results cimport fresh_like
from mxop._core.views cimport element, plain_assign, plain_numpy, plain_reshaped, plain_scalar, plain_transposed, plain_view

from collections.abc import Sequence as Sequences

import numpy as np

from mxop.support import dtypes
from mxop._core import array as _array, tape
from mxop._core.array import address, as_numpy, become, empty, from_gpu, from_numpy, settle_from_host, touch, values
from mxop._core.device import device_of
from mxop._core.dispatch import OperatorMethod, OpFunction, invoke_req, namespace, op_function
from mxop._core.results import clear, common_device, new_at
from mxop._core.transfer import contiguous, copy, span
from mxop._core.call import Call, Places, PlacesWithin
from mxop._core.finishing import finishing
from mxop._core.launched import fits
from mxop._core.loops import Body, Loop
from mxop._core.prepare import Schedule, Sequence, prepare, prepare_formula, prepare_sized
from mxop._core.steps import Steps
from mxop._core.row_kernels import prepare_row_kernel
from mxop.support.errors import OpTypeError, OpValueError, shown, translated
from mxop.opdef import registry
from mxop.ops.binary import PYTHON_NAMES

cdef extern from "Python.h":
    void PyType_Modified(PyTypeObject* cls)
    void Py_SET_TYPE(PyObject* it, PyTypeObject* cls)
    void Py_INCREF(object it)

HOST = device_of(-1)

#: What arrays that are kept in dense memory are; ``isinstance(x, NDArray)`` is true of sparse ones, too.
Dense = Array

cdef list _two = [None] * 16, _scalar = [None] * 16, _reflected = [None] * 16
cdef object _context_of = None
cdef object _foreign = None      # mxop.ndarray's conversion of other operands

cdef enum:
    ADD = 0
    SUB = 1
    MUL = 2
    DIV = 3
    MOD = 4
    POW = 5
    LT = 6
    LE = 7
    GT = 8
    GE = 9
    EQ = 10
    NE = 11
    FLOORDIV = 12
    AND = 13
    OR = 14
    XOR = 15

#: The functions of ``mx.nd`` that operators are, in the order of their numbers; the table that they are in has no floor_divide.
_NAMES = ("add", "subtract", "multiply", "divide", "modulo", "power", "lesser", "lesser_equal", "greater", "greater_equal", "equal",
          "not_equal", "floor_divide", "logical_and", "logical_or", "logical_xor")


def start(context_of, foreign):
    """Connect the class to the registry and to what lies above; called once at import."""
    global _context_of, _foreign
    _context_of, _foreign = context_of, foreign
    floor_divide = ("_broadcast_floor_divide", "_floor_divide_scalar", "_rfloor_divide_scalar")
    for at, name in enumerate(_NAMES):
        choice = PYTHON_NAMES.get(name)
        names = floor_divide if choice is None else (choice.arrays, choice.scalar, choice.rscalar)
        _two[at], _scalar[at], _reflected[at] = [function_of(registry.get(n)) for n in names]


cdef type _sparse = None


class ArrayType(type):
    """The type of ``NDArray``: sparse arrays count as instances, as in MXNet, though they have no such memory."""

    __slots__ = ()

    def __instancecheck__(cls, x):
        return type.__instancecheck__(cls, x) or cls is NDArray and _sparse is not None and isinstance(x, _sparse)

    def __subclasscheck__(cls, other):
        return type.__subclasscheck__(cls, other) or cls is NDArray and _sparse is not None and issubclass(other, _sparse)


def count_as_arrays(type cls):
    """Let the instances of a class count as instances of ``NDArray``."""
    global _sparse
    _sparse = cls
    if type(NDArray) is type:
        Py_INCREF(ArrayType)
        Py_SET_TYPE(<PyObject*>NDArray, <PyTypeObject*>ArrayType)


def attach(str name, function):
    """Add a method or property written in Python to the class."""
    (<dict>(<PyTypeObject*>NDArray).tp_dict)[name] = function
    PyType_Modified(<PyTypeObject*>NDArray)


cdef object _getitem = None, _setitem = None, _iterate = None, _contains = None, _text = None


cdef object _leaving = None, _reshape = None, _transpose = None


def hook(getitem, setitem, reshape, transpose, iterate, contains, text, leaving):
    """Give the class the functions behind ``x[k]``, ``x[k] = v``, ``reshape``, ``transpose``, iteration, ``in`` and ``repr``, and what
    is told when another library reads a recorded array."""
    global _getitem, _setitem, _reshape, _transpose, _iterate, _contains, _text, _leaving
    _getitem, _setitem, _reshape, _transpose, _iterate = getitem, setitem, reshape, transpose, iterate
    _contains, _text, _leaving = contains, text, leaving
    _array.on_leaving(leaving)


cdef object unsupported(int at, object other):
    """Leave an operation to the other operand; refuse sequences that Python would repeat, an array being an index, or extend,
    and lists and tuples that it would call unequal whatever they hold."""
    if isinstance(other, Sequences if at == ADD or at == MUL else (list, tuple) if at == EQ or at == NE else ()):
        sign = {ADD: "+", MUL: "*", EQ: "==", NE: "!="}[at]
        raise OpTypeError(f"NDArray {sign} {type(other).__name__} is not supported: make an array of it with mx.nd.array()")
    return NotImplemented


cdef object promoted(int at, Array a, Array b, object out):
    """Apply an operator to arrays of two types, in one type where there is one for both."""
    found = dtypes.promoted(a.dtype, b.dtype)
    if found is not None and a.dtype != found:
        a = function_of(_op("Cast"))(a, dtype=found)
    elif found is not None:
        b = function_of(_op("Cast"))(b, dtype=found)
    return call_two(<OpFunction>_two[at], a, b, out)


cdef object binary(int at, object a, object b, object out):
    """Apply an arithmetic operator; `a` is an NDArray."""
    cdef object converted
    if isinstance(b, Array):
        if (<Array>a).dtype != (<Array>b).dtype:
            return promoted(at, <Array>a, <Array>b, out)
        return call_two(<OpFunction>_two[at], <Array>a, <Array>b, out)
    if type(b) is float or type(b) is int:
        return call_scalar(<OpFunction>_scalar[at], <Array>a, b, out)
    converted = plain_number(b)
    if converted is b:
        converted = _foreign(a, b)
    if converted is NotImplemented:
        return unsupported(at, b)
    return binary(at, a, converted, out)


cdef object reflected(int at, object a, object b):
    """Apply an operator to `a` and the NDArray `b`; Python comes here where `a` is not an NDArray."""
    cdef object converted
    if type(a) is float or type(a) is int:
        return call_scalar(<OpFunction>_reflected[at], <Array>b, a, None)
    converted = a if isinstance(a, Array) else _foreign(b, a)
    if converted is NotImplemented:
        return unsupported(at, a)
    if isinstance(converted, Array):
        return call_two(<OpFunction>_two[at], <Array>converted, <Array>b, None)
    return reflected(at, converted, b)


cdef object inplace(int at, object a, object b):
    """Apply an operator and write the result into `a`."""
    cdef object result = binary(at, a, b, a)
    return a if result is not NotImplemented else result


cdef bint is_mask(object value) except -1:
    """Return whether elements are truths: of a comparison's result and of bool arrays; of numbers, whether it is 0 or 1."""
    if isinstance(value, Array):
        return (<Array>value).mask or (<Array>value).dtype == BOOL
    if type(value) is bool or type(value) is int or type(value) is float:
        return value == 0 or value == 1
    return isinstance(value, (np.bool_, np.ndarray)) and value.dtype == np.bool_


cdef object logical(str sign, int at, Array a, object b):
    """Return ``a & b``, ``a | b``, ``a ^ b``, or ``~a`` where `b` is None, of masks."""
    if b is not None and not isinstance(b, (Array, np.ndarray, np.bool_, bool, int, float)):
        return NotImplemented
    for value in (a,) if b is None else (a, b):
        if not is_mask(value):
            raise OpTypeError(f"{sign} is for masks (comparisons such as x > 0, and arrays of bool), not for {shown(value)}: "
                              "nd.logical_and, logical_or, logical_xor and logical_not take any numbers, and what is not 0 "
                              "is true; there are no bitwise operators")
    if isinstance(b, Array) and (<Array>b).dtype != a.dtype:
        b = function_of(_op("Cast"))(b, dtype=a.dtype)  # of any two types: these are 0 and 1
    return function_of(_op("logical_not"))(a) if b is None else binary(at, a, b, None)


cdef int check_single(Array a, error) except -1:
    """Refuse an array that is no scalar, with the class of errors that NumPy and MXNet have there."""
    if a.size != 1:
        raise error(f"only an array of one element is a scalar; this one has shape {a.shape_tuple()}")
    return 0


cdef inline bint shows(Array a) noexcept:
    """Return whether calls on an array are recorded."""
    return is_recording() and has_history(a)


cdef class NDArray(Array):
    """A multi-dimensional array on one device, as MXNet's ``mx.nd.NDArray``.

    Make one with :func:`mxop.nd.array`, :func:`mxop.nd.zeros` and the like.
    """

    __array_priority__ = 1000.0

    # ---- description --------------------------------------------------------------------------------------------------
    @property
    def shape(self):
        """Shape, a tuple of integers."""
        return self.shape_tuple()

    @property
    def ndim(self):
        """Number of dimensions."""
        return (<Array>self).ndim

    @property
    def size(self):
        """Number of elements."""
        return (<Array>self).size

    @property
    def dtype(self):
        """Element type, a NumPy scalar type."""
        return dtypes.type_of((<Array>self).dtype)

    @property
    def itemsize(self):
        """Bytes of one element."""
        return dtypes.SIZES[(<Array>self).dtype]

    @property
    def nbytes(self):
        """Bytes of all elements."""
        return (<Array>self).size * dtypes.SIZES[(<Array>self).dtype]

    @property
    def stype(self):
        """Storage type; always ``'default'`` (dense)."""
        return "default"

    @property
    def context(self):
        """Device that the array lies on."""
        return _context_of(self.device.number, self.device_id)

    @property
    def grad(self):
        """Gradient array of a variable (see :meth:`attach_grad`), or None."""
        return tape.gradient_of(self)

    @property
    def _fresh_grad(self):
        """Whether backward wrote the gradient since this was last set to False, as MXNet's trainers ask."""
        return tape.is_fresh(self)

    @_fresh_grad.setter
    def _fresh_grad(self, state):
        tape.set_fresh(self, bool(state))

    @property
    def T(self):
        """The array with its axes reversed."""
        cdef Array found = None if shows(self) or is_making() else plain_transposed(self, ())
        return _transpose(self, (), {}) if found is None else found

    def __len__(self):
        if (<Array>self).ndim == 0:
            raise OpTypeError("len() of a 0-d array")
        return self.shape_[0]

    def __bool__(self):
        if (<Array>self).size == 0:
            return False
        if (<Array>self).size == 1:
            return bool(self.item())
        raise OpValueError("the truth value of an NDArray with more than one element is ambiguous; use x.any() or x.all()")

    def __hash__(self):
        return <Py_hash_t>(<Py_ssize_t><PyObject*>self >> 4)

    def __getitem__(self, key):
        cdef Array found = None if shows(self) else plain_view(self, key)
        if found is None:
            plain = plain_parameter(key)
            found = None if plain is key or shows(self) else plain_view(self, plain)
            if found is None:
                found = <Array>_getitem(self, key)
                found.mask = (<Array>self).mask
        return found

    def __setitem__(self, key, value):
        cdef bint kept = (<Array>self).mask and is_mask(value)
        cdef bint recording = is_recording()
        key, value = plain_parameter(key), plain_number(value)
        if kept:
            set_recording(False)  # masks have no gradient
        try:
            if is_recording() or not plain_assign(self, key, value):
                _setitem(self, key, value)
        finally:
            if kept:
                set_recording(recording)
        (<Array>self).mask = kept

    def __iter__(self):
        return _iterate(self)

    def __contains__(self, value):
        return _contains(self, value)

    def __repr__(self):
        return _text(self)

    def reshape(self, *shape, **kwargs):
        """Give the same elements another shape: a view that shares memory, or a copy where the strides need one.

        Parameters
        ----------
        *shape : int, or one tuple
            Sizes, or MXNet's codes: 0 copies the dimension at its place, -1 is inferred, -2 copies all that remain,
            -3 merges two, -4 splits one into the two sizes that follow.
        reverse : bool, default False
            Match sizes from the right.

        Examples
        --------
        >>> import mxop as mx
        >>> x = mx.nd.zeros((2, 3, 4))
        >>> x.reshape(-3, 0).shape, x.reshape((-4, 1, -1, -2)).shape, x.reshape((0, -1)).shape
        ((6, 4), (1, 2, 3, 4), (2, 12))
        """
        cdef Array found = None
        if not kwargs and not shows(self):
            sizes = shape[0] if len(shape) == 1 and type(shape[0]) is tuple else shape
            found = plain_reshaped(self, <tuple>sizes)
            if found is None:
                plain = plain_parameter(sizes)
                found = None if plain is sizes else plain_reshaped(self, <tuple>plain)
        return _reshape(self, shape, kwargs) if found is None else found

    def transpose(self, *axes, **kwargs):
        """Permute the dimensions; reverse them when no axes are given.

        Examples
        --------
        >>> import mxop as mx
        >>> x = mx.nd.zeros((2, 3, 4))
        >>> x.transpose().shape, x.transpose(0, 2, 1).shape, x.transpose(axes=(1, 0, 2)).shape
        ((4, 3, 2), (2, 4, 3), (3, 2, 4))
        """
        cdef Array found = None
        if not kwargs and not shows(self) and not is_making():
            found = plain_transposed(
                self, <tuple?>plain_parameter(axes[0] if len(axes) == 1 and type(axes[0]) is tuple else axes))
        return _transpose(self, axes, kwargs) if found is None else found

    # ---- values -------------------------------------------------------------------------------------------------------
    def asnumpy(self):
        """Return a copy as a NumPy array."""
        refuse_in_trace()
        cdef Array host = <Array>self.device.to_host(self)
        if host is not self:
            note_host_read(self)
            return as_numpy(host)
        if self.node is None and not is_read_again():
            found = plain_numpy(self)
            if found is not None:
                return found
        cdef long long writes = 0 if self.watch is None else self.watch.writes
        found = as_numpy(self).copy()
        if self.watch is not None:
            self.watch.writes = writes  # nobody can write through a copy
        return found

    def item(self):
        """Return the only element as a Python number."""
        check_single(self, OpValueError)
        refuse_in_trace()
        found = element(self)
        if found is not None:
            return found
        cdef long long reads = host_reads()
        found = self.asnumpy().reshape(()).item()
        host_reads(reads)  # one number steers the computation; it is no part of it
        return found

    def asscalar(self):
        """Return the only element as a NumPy scalar."""
        check_single(self, OpValueError)
        refuse_in_trace()
        found = plain_scalar(self)
        return dtypes.type_of((<Array>self).dtype)(self.item()) if found is None else found

    def __float__(self):
        check_single(self, OpTypeError)
        return float(self.item())

    def __int__(self):
        check_single(self, OpTypeError)
        with translated("int() of an NDArray"):
            return int(self.item())

    def __index__(self):
        if (<Array>self).size == 1 and (<Array>self).dtype in (UINT8, INT32, INT8, INT64):
            return int(self.item())
        raise OpTypeError("only an integer array of one element can be an index")

    def __array__(self, dtype=None, copy=None):
        if self.node is not None and _leaving is not None:
            _leaving(self)
        view = as_numpy(self)
        with translated("NDArray.__array__"):
            if dtype is not None and np.dtype(dtype) != view.dtype:
                if copy is False:
                    raise OpValueError(f"a {view.dtype} array cannot be seen as {dtype} without a copy")
                return view.astype(dtype)
        return view.copy() if copy else view

    # ---- history ------------------------------------------------------------------------------------------------------
    def attach_grad(self, grad_req="write", stype=None):
        """Make the array a variable: allocate its gradient, which ``backward`` fills.

        Parameters
        ----------
        grad_req : {'write', 'add', 'null'}
            What backward does with a new gradient.
        stype : {'default', 'row_sparse', 'csr'}, optional
            How the gradient is stored; by default dense.
        """
        if stype not in (None, "default"):
            from mxop.ndarray.sparse import zeros
            tape.mark_variable(self, zeros(stype, self.shape_tuple(), self.context, self.dtype), grad_req)
            return
        tape.mark_variable(self, fresh_like(self, True), grad_req)

    def backward(self, out_grad=None, retain_graph=False, train_mode=True):
        """Compute the gradient of this array and store it in the variables that it was computed from.

        Parameters
        ----------
        out_grad : NDArray, optional
            Gradient with respect to this array; ones by default.
        retain_graph : bool, default False
            Keep what is needed to do it again.
        train_mode : bool, default True
        """
        tape.run([self], None if out_grad is None else [out_grad], None, retain_graph, False, train_mode)

    def detach(self):
        """Return an array over the same memory, without history."""
        return detached(self)

    # ---- arithmetic ---------------------------------------------------------------------------------------------------
    def __add__(self, other):
        return binary(ADD, self, other, None)

    def __radd__(self, other):
        return reflected(ADD, other, self)

    def __iadd__(self, other):
        return inplace(ADD, self, other)

    def __sub__(self, other):
        return binary(SUB, self, other, None)

    def __rsub__(self, other):
        return reflected(SUB, other, self)

    def __isub__(self, other):
        return inplace(SUB, self, other)

    def __mul__(self, other):
        return binary(MUL, self, other, None)

    def __rmul__(self, other):
        return reflected(MUL, other, self)

    def __imul__(self, other):
        return inplace(MUL, self, other)

    def __truediv__(self, other):
        return binary(DIV, self, other, None)

    def __rtruediv__(self, other):
        return reflected(DIV, other, self)

    def __itruediv__(self, other):
        return inplace(DIV, self, other)

    def __mod__(self, other):
        return binary(MOD, self, other, None)

    def __rmod__(self, other):
        return reflected(MOD, other, self)

    def __imod__(self, other):
        return inplace(MOD, self, other)

    def __pow__(self, other, modulus):
        if modulus is not None:
            return NotImplemented
        return binary(POW, self, other, None)

    def __rpow__(self, other, modulus):
        return reflected(POW, other, self)

    def __floordiv__(self, other):
        return binary(FLOORDIV, self, other, None)

    def __rfloordiv__(self, other):
        return reflected(FLOORDIV, other, self)

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __matmul__(self, other):
        if not isinstance(other, Array):
            return NotImplemented
        return function_of(_op("dot"))(self, other)

    def __neg__(self):
        return call_scalar(<OpFunction>_scalar[MUL], self, -1.0, None)

    def __pos__(self):
        return self

    def __abs__(self):
        return function_of(_op("abs"))(self)

    def __and__(self, other):
        return logical("&", AND, self, other)

    def __rand__(self, other):
        return logical("&", AND, self, other)

    def __or__(self, other):
        return logical("|", OR, self, other)

    def __ror__(self, other):
        return logical("|", OR, self, other)

    def __xor__(self, other):
        return logical("^", XOR, self, other)

    def __rxor__(self, other):
        return logical("^", XOR, self, other)

    def __invert__(self):
        return logical("~", AND, self, None)

    def __richcmp__(self, other, int op):
        cdef int at = LT if op == Py_LT else LE if op == Py_LE else GT if op == Py_GT else GE if op == Py_GE else (
            EQ if op == Py_EQ else NE)
        if other is None:
            return op == Py_NE if op == Py_EQ or op == Py_NE else NotImplemented
        return binary(at, self, other, None)


cdef dict _ops = {}


cdef object _op(str name):
    found = _ops.get(name)
    if found is None:
        found = _ops[name] = registry.get(name)
    return found


_array.set_array_type(NDArray)
