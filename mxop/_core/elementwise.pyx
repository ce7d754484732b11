"""Elementwise calls: from arrays and parameter values to one run of a program.

Small calls on plain arrays take a way without any set-up.
"""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.math cimport fabs, INFINITY
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from mxop._core.array cimport (
    MAX_VALUES, Array, HOST, Node, Value, alloc, alloc_like, broadcast_operand, detached, fill_operand, is_making,
    place_of, read_pointer, settle_results, shape_of, touch, write_pointer,
)
from mxop._core.lazy cimport defer
from mxop._core.launched cimport keep_launch, relaunched
from mxop._core.profile cimport IMPERATIVE, NANS, abandon, begin, enter_body, is_body, look, note_call, watched
from mxop._core.recent cimport numpy_shapes
from mxop._core.record cimport any_node, is_noted, is_recording, link_outputs, new_node, note_overwritten, record_general
from mxop._core.device cimport wait_if_asked
from mxop._core.results cimport output_list, prepared_output, raise_devices
from mxop._core.transfer cimport copy_into, overlaps, same_dims, same_layout
from mxop._kernels.codes cimport BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT8, INT32, INT64, UINT8
from mxop._kernels.operands cimport MAX_DIMS, REQ_WRITE, Operand
from mxop._kernels.interp cimport MOST_REGISTERS, Program

from mxop.support import dtypes
from mxop._kernels.instruction_sets import has_instruction
from mxop.support.errors import OpArithmeticError, OpTypeError, OpValueError, of_gpu, shown
from mxop.formula import compile_program, walk
from mxop.formula.expr import TRUTHS, is_truth
from mxop.support.memo import keep
from mxop.opdef import Bound, Scalar
from mxop.opdef.elementwise import MOST_INPUTS
from mxop.support.shape_mode import numpy_shape

cdef extern from "Python.h":
    PyObject** PySequence_Fast_ITEMS(object sequence)   # of a list or tuple

cdef enum:
    WRAPS = 1              # how a number takes the type of integer data: as C casts it,
    SATURATES = 2          # as the nearest integer of the type,
    UPPER = 3              # the same, of a minimum: one that 64 bits do not hold, and below all of them, is refused,
    LOWER = 4              # of a maximum, such a one above all of them,
    COMPARED = 5           # or, where the type does not hold it, not at all: it is compared as it is

cdef dict _WAYS = {"minimum": UPPER, "maximum": LOWER, **dict.fromkeys(TRUTHS, COMPARED)}
cdef dict _calls = {}      # operator -> {(inputs, static parameters): ElementwiseCall}
cdef enum:
    LATEST = 256           # a power of 2
cdef list _latest = [None] * LATEST  # (operator, parameters, inputs, ElementwiseCall)


cdef ElementwiseCall call_for(object op, object attrs, int n):
    """Return the call of an operator with these static parameters, the same object each time."""
    cdef size_t place = (<size_t><PyObject*>op >> 4 ^ <size_t><PyObject*>attrs >> 6 ^ <size_t>n) & (LATEST - 1)
    latest = _latest[place]
    if latest is not None and (<tuple>latest)[0] is op and (<tuple>latest)[1] is attrs and <int>(<tuple>latest)[2] == n:
        return <ElementwiseCall>(<tuple>latest)[3]
    calls = <dict?>_calls.setdefault(op, {})
    found = calls.get(op.static_key(attrs, n))
    if found is None:
        made = ElementwiseCall(op, attrs, n)
        found = keep(calls, op.static_key(attrs, n), made)  # tracing may have found that values are needed
    _latest[place] = op, attrs, n, found
    return <ElementwiseCall>found


def forget(op):
    """Drop the calls of an operator that was replaced."""
    _calls.pop(op, None)
    for k, latest in enumerate(_latest):
        if latest is not None and latest[0] is op:
            _latest[k] = None


cdef int way_of(tuple roots, str name, int usual) except -1:
    """Return how a parameter takes the type of integer data: by the functions that it is an operand of, where they tell."""
    users = [n for n in walk(roots) if any([a.kind == "param" and a.label == name for a in n.args])]
    found = {_WAYS.get(n.label, usual) for n in users}
    if len(found) != 1 or (COMPARED in found and not all([any([n is r for r in roots]) for n in users])):  # what is computed of it is no 0 or 1
        return usual
    return found.pop()


cpdef int truths_of(tuple roots) except -1:
    """Return whether a formula gives 1 where something holds and 0 elsewhere; 2 where it does so of such inputs."""
    if len(roots) != 1:
        return 0
    root = roots[0]
    if root.kind == "call" and is_truth(root):
        return 1
    return 2 if root.kind == "input" or (root.label == "mul" and all([a.kind == "input" for a in root.args])) else 0


cdef class BackwardPlan:
    """Which operands the backward formula takes, and the call that computes it."""


cdef class ElementwiseCall:
    """An elementwise operator with its static parameters fixed: a formula, and its program for each compute type."""

    def __init__(self, op, attrs, int n_in):
        self.op, self.attrs, self.n_in = op, attrs, n_in
        self.formula = op.formula(attrs, n_in)
        self.n_out = len(self.formula.roots)
        self.broadcast = op.broadcast
        self.keys, self.creates = self.formula.keys, op.creates
        self.has_keys = bool(self.keys)
        self.plain_types = op.out_dtype is None and not self.has_keys
        self.has_rule = op.differentiable
        self.programs = [None] * 7
        self.backwards, self.types, self.launches = {}, {}, {}
        if len(self.formula.params) > MAX_VALUES:
            raise OpValueError(f"operator {op.name} has {len(self.formula.params)} numeric parameters; "
                               f"at most {MAX_VALUES} are supported")
        for k, name in enumerate(self.formula.params):
            kind = op.spec.by_name[name].kind
            if kind is Scalar or kind is Bound:
                self.ways[<int>k] = way_of(self.formula.roots, name, SATURATES if kind is Bound else WRAPS)
                self.typed = True
        self.constant = not all([any([n.kind == "input" for n in walk([r])]) for r in self.formula.roots])
        self.truths = truths_of(self.formula.roots) if op.out_dtype is None else 0  # a cast says what is meant
        if self.n_in + self.n_out > MOST_INPUTS + 1:
            raise OpValueError(f"operator {op.name}: {self.n_in} inputs and {self.n_out} outputs; at most {MOST_INPUTS + 1} "
                               "together are supported")

    cdef Program program(self, int ctype):
        found = self.programs[ctype]
        if found is None:
            try:
                listing = compile_program(self.formula.roots, self.n_in, lambda name: has_instruction(name, ctype), ctype <= 1)
            except KeyError as missing:
                raise OpTypeError(f"operator {self.op.name}: {missing.args[0]} is not defined for "
                                  f"{dtypes.NAMES[ctype]} data") from None
            found = Program(listing, self.formula.params, ctype)
            if (<Program>found).n_registers > MOST_REGISTERS:
                raise OpValueError(f"operator {self.op.name}: its formula is too long, it has {(<Program>found).n_registers} "
                                   f"intermediate values at a time; at most {<int>MOST_REGISTERS} are supported, and a @composite may call several")
            self.programs[ctype] = found
        return <Program>found

    def source(self, dtype="float32"):
        """Return the listing of the program for data of a type."""
        return str(self.program(self.formula.compute_type(dtypes.code_of(dtype))))

    cdef int load_values(self, attrs, Value* values) except -1:
        """Write the numeric parameters of a call."""
        cdef int slot = 0
        for name in self.formula.params:
            set_value(&values[slot], attrs[name])
            slot += 1
        return 0

    cdef object types_of(self, tuple codes):
        """Return the types of the outputs for inputs of these types: what the operator says, asked once."""
        found = self.types.get(codes)
        if found is None:
            found = self.types[codes] = self.op.infer_type(self.attrs, list(codes), [-1] * self.n_out)[1]
        return found

    cdef BackwardPlan backward(self, tuple wanted, tuple absent=()):
        """Return how to compute the gradients of the `wanted` inputs; outputs that are `absent` have no head gradient."""
        found = self.backwards.get((wanted, absent) if absent else wanted)
        if found is None:
            found = make_backward_plan(self, wanted, absent)
            self.backwards[(wanted, absent) if absent else wanted] = found
        return <BackwardPlan>found


cdef BackwardPlan make_backward_plan(ElementwiseCall call, tuple wanted, tuple absent):
    cdef BackwardPlan plan = BackwardPlan()
    rule = call.op.backward_formula(call.attrs, call.n_in, absent)
    plan.passed = tuple([(i, rule.heads[rule.roots[i].label]) for i in wanted if is_head(rule, i)])
    plan.wanted = tuple([i for i in wanted if rule.roots[i] is not None and not is_head(rule, i)])
    plan.heads, plan.inputs, plan.outputs = rule.heads, rule.inputs, rule.outputs
    if plan.wanted:
        backward_op = call.op._backward  # also where a rule was given since the call was recorded
        attrs = backward_op.attrs_for(call.attrs, plan.wanted, call.n_in, absent)
        n = len(plan.heads) + len(plan.inputs) + len(plan.outputs)
        plan.call = call_for(backward_op, attrs, n)
    return plan


cdef inline bint is_zero(BackwardPlan plan):
    return not plan.wanted and not plan.passed


cdef bint is_head(object rule, int i):
    """Return whether the gradient of an input is a head gradient as it is."""
    root = rule.roots[i]
    return root is not None and root.kind == "input" and root.label < len(rule.heads)


cdef long long whole(double d) noexcept nogil:
    """Cut a number to an integer; 0 where 64 bits hold none."""
    return <long long>d if -2.0 ** 63 <= d < 2.0 ** 63 else 0


cdef int set_value(Value* value, object number) except -1:
    """Hold a parameter as a real number and as an integer."""
    cdef double d
    if type(number) is float:
        d = <double>number
        value.d = d
        value.i = whole(d)
    elif type(number) is int and -(1 << 63) <= number < 1 << 63:
        value.i = number
        value.d = <double>value.i
    else:
        set_other(value, number)
    return 0


cdef int set_other(Value* value, object number) except -1:
    """Hold a parameter that is neither a float nor an integer of 64 bits."""
    try:
        value.d = float(number)
    except OverflowError:
        raise OpArithmeticError(f"the number {shown(number, 20)} is too large for any element type") from None
    try:
        value.i = int(number)
    except (OverflowError, ValueError):
        value.i = 0
    return 0


cdef inline bint is_key(ElementwiseCall call, int k) except -1:
    """Return whether an input is a key of random numbers."""
    return call.has_keys and k in call.keys


cdef int raise_shapes(ElementwiseCall call, object inputs) except -1:
    """Let inference raise its error for inputs that do not fit together."""
    shapes = [(<Array>a).shape_tuple() for a in inputs]
    call.op.infer_shape(call.attrs, shapes, [None] * call.n_out)
    raise OpValueError(f"operator {call.op.name}: inputs of shapes {shapes} do not fit together")


cdef int common_shape(ElementwiseCall call, object inputs, Py_ssize_t* shape) except -1:
    """Broadcast the inputs' shapes; return the rank."""
    cdef int ndim = 0, i, at, k
    cdef Array a
    for k in range(call.n_in):
        a = <Array>inputs[k]
        if a.ndim > ndim and not is_key(call, k):
            ndim = a.ndim
    for i in range(ndim):
        shape[i] = 1
    for k in range(call.n_in):
        if is_key(call, k):
            continue
        a = <Array>inputs[k]
        for i in range(a.ndim):
            at = ndim - a.ndim + i
            if a.shape_[i] != 1:
                if shape[at] != 1 and shape[at] != a.shape_[i]:
                    raise_shapes(call, inputs)
                shape[at] = a.shape_[i]
    return ndim


cdef object run_elementwise(ElementwiseCall call, object inputs, const Value* values, object out, int req):
    """Run an elementwise call on a list or tuple of arrays; return its output, or a list of several."""
    return run_items(call, PySequence_Fast_ITEMS(inputs), inputs, values, out, req)


cdef object run_items(ElementwiseCall call, PyObject** items, object inputs, const Value* values, object out, int req):
    """The body of :func:`run_elementwise`; `inputs` may be None, then they are listed only if they are needed as objects."""
    cdef Array first, a
    cdef int k, n_in = call.n_in
    cdef bint same = True, plain, host
    cdef object found = None
    if watched(IMPERATIVE | NANS) and not is_body():
        return run_timed(call, items, inputs, values, out, req)
    if n_in == 0:
        raise OpTypeError(f"operator {call.op.name} needs an input")
    first = <Array>items[0]
    host = first.device is HOST
    plain = (first.contiguous and host and call.plain_types and n_in + call.n_out <= 8
             and (out is None or (req == REQ_WRITE and call.n_out == 1 and is_plain_target(out, first))))
    for k in range(1, n_in):
        a = <Array>items[k]
        if a is first:
            continue
        if a.dtype != first.dtype and call.plain_types:
            return run_elementwise(call, call.op.cast(call.attrs, listed(items, n_in)), values, out, req)
        if not same_dims(a, first):
            same = False
            if not call.broadcast and not is_key(call, k):
                raise_shapes(call, listed(items, n_in))
        if a.device is not first.device:
            raise_devices(call.op, listed(items, n_in))
        plain = plain and a.contiguous
    if plain and same and first.dtype <= FLOAT64:  # float32 and float64 in one block: nothing to set up
        found = run_plain(call, call.program(first.dtype), items, n_in, first, values, <Array>out)
        if found is not None and is_noted():
            record_elementwise(call, listed(items, n_in) if inputs is None else inputs,
                               [found] if call.n_out == 1 else <list>found, values)
    if found is None:
        inputs = listed(items, n_in) if inputs is None else inputs
        found = run_large(call, inputs, values, out, req, same) if host else run_on_gpu(call, items, inputs, values, out, req)
    if call.truths and out is None:
        (<Array>found).mask = call.truths == 1 or all_masks(items, n_in)
    return found


cdef bint all_masks(PyObject** items, int n) noexcept:
    cdef int k
    for k in range(n):
        if not (<Array>items[k]).mask:
            return False
    return True


cdef object run_timed(ElementwiseCall call, PyObject** items, object inputs, const Value* values, object out, int req):
    """As :func:`run_items`, for the profiler: a function of its own, so that calls do not pay for one around another."""
    cdef long long begun = begin(call.op.name)
    enter_body()
    try:
        found = run_items(call, items, inputs, values, out, req)
    except BaseException:
        abandon(call.op.name)
        raise
    if watched(IMPERATIVE):
        note_call(call.op.name, begun, place_of(found))
    else:
        abandon(call.op.name)
    if watched(NANS):
        look(call.op, filled_attrs(call, values), inputs if inputs is not None else listed(items, call.n_in), found)
    return found


cdef bint is_plain_target(object out, Array first):
    """Return whether a result like an input may be written where it is asked for."""
    if not isinstance(out, Array):
        return False
    cdef Array a = <Array>out
    return (a.contiguous and a.device is first.device and a.device_id == first.device_id and a.dtype == first.dtype and not a.readonly_
            and same_dims(a, first) and not (a.node is not None and is_recording()))


cdef bint disturbed(Program program, PyObject** items, int n_in, Array target) except -1:
    """Return whether a result that is written where it is asked for would be written over what is still to be read."""
    cdef int k
    for k in range(n_in):
        if overlaps(<Array>items[k], target) and (not same_layout(<Array>items[k], target) or program.clobbers(0, k)):
            return True
    return False


cdef object run_plain(ElementwiseCall call, Program program, PyObject** items, int n_in, Array first, const Value* values,
                      Array target):
    """Run a small call on plain arrays; return the output or a list of several, or None when the call is not small."""
    cdef char* pointers[8]
    cdef list results
    cdef Array result
    cdef int k
    if not program.is_tiny(first.size):
        return None
    if target is not None:
        if disturbed(program, items, n_in, target):
            return None
        touch(target, call.op.name)
    for k in range(n_in):
        pointers[k] = read_pointer(<Array>items[k])
    if call.n_out == 1:
        result = target
        if target is None:
            result = alloc_like(first)
            result.device_id = first.device_id
        pointers[n_in] = write_pointer(result)
        program.run_tiny(first.size, pointers, values)
        return result
    results = []
    for k in range(call.n_out):
        result = alloc_like(first)
        result.device_id = first.device_id
        pointers[n_in + k] = write_pointer(result)
        results.append(result)
    program.run_tiny(first.size, pointers, values)
    return results


cdef list gpu_values(ElementwiseCall call, const Value* values, int dtype, int* ctype):
    """Return the parameters of a call as Python numbers: whole ones for integer data; `ctype` is set as by :func:`typed_values`."""
    cdef bint real = dtype in dtypes.FLOATS
    cdef list found = []
    cdef Value typed[MAX_VALUES]
    cdef int k
    values = typed_values(call, values, dtype, typed, ctype)
    for k in range(len(call.formula.params)):
        found.append(values[k].d if real or values[k].d != <double>values[k].i else values[k].i)
    return found


def values_of(op, attrs, int n_inputs, int dtype):
    """Return the numeric parameters of a call on data of a type, as its formula gets them; the GPU's kernels take these."""
    cdef ElementwiseCall call = call_for(op, attrs, n_inputs)
    cdef Value values[MAX_VALUES]
    cdef int ctype
    call.load_values(attrs, values)
    return gpu_values(call, values, dtype, &ctype)


cdef tuple listed(PyObject** items, Py_ssize_t n):
    """Return objects as a tuple."""
    cdef tuple found = PyTuple_New(n)
    cdef Py_ssize_t k
    for k in range(n):
        Py_INCREF(<object>items[k])
        PyTuple_SET_ITEM(found, k, <object>items[k])
    return found


cdef object run_large(ElementwiseCall call, object inputs, const Value* values, object out, int req, bint same):
    """Run a call of any size on CPU arrays: lazily where that is possible."""
    cdef Py_ssize_t shape[MAX_DIMS]
    cdef Value typed[MAX_VALUES]
    cdef Array first = <Array>inputs[0]
    cdef int k, ndim, dtype = first.dtype, ctype
    cdef Py_ssize_t size = 1
    cdef Program program
    cdef list results = None
    if call.has_keys:
        dtype, same = drawn_type(call, inputs), False
    if same:
        ndim = first.ndim
        memcpy(shape, first.shape_, ndim * sizeof(Py_ssize_t))
    else:
        ndim = common_shape(call, inputs, shape) if not call.creates else asked_shape(call, shape)
    for k in range(ndim):
        size *= shape[k]
    ctype = compute_type(call, first, inputs)
    values = typed_values(call, values, dtype, typed, &ctype)
    program = call.program(ctype)
    if out is None and call.plain_types and dtype <= FLOAT64 and not watched(IMPERATIVE | NANS):
        results = <list>defer(call, inputs, values, dtype, ndim, shape, size)
    if results is None:
        results = evaluated(call, program, inputs, values, out, req, ndim, shape, size, dtype)
    if is_noted():
        record_elementwise(call, inputs, results, values)
    return results[0] if call.n_out == 1 else results


cdef int asked_shape(ElementwiseCall call, Py_ssize_t* shape) except -1:
    """Write the shape that a call asks for; return the rank."""
    cdef int k
    cdef tuple found = tuple(call.attrs["shape"])
    # in a call on arrays, a size of 0 is one: there is nobody else to say what it should be
    if None in found or (found and min(found) < 0) or not (found or numpy_shape()):
        raise OpValueError(f"operator {call.op.name}: shape={found} leaves the result's open; expected the size of each "
                           "dimension")
    if len(found) > MAX_DIMS:
        raise OpValueError(f"operator {call.op.name}: shape={found} has more than {<int>MAX_DIMS} dimensions")
    for k in range(len(found)):
        shape[k] = found[k]
    return <int>len(found)


cdef int drawn_type(ElementwiseCall call, object inputs) except -1:
    """Return the type of the data of a call that draws random numbers: that of the inputs that are no keys."""
    cdef int k, dtype = call.attrs["dtype"] if call.creates else -1
    cdef bint fine = True
    cdef Array a
    for k in range(call.n_in):
        a = <Array>inputs[k]
        if is_key(call, k):
            fine = fine and a.dtype == INT64 and a.size == 1
        elif dtype < 0:
            dtype = a.dtype
        else:
            fine = fine and a.dtype == dtype
    if not fine:
        call.op.infer_type(call.attrs, [(<Array>a).dtype for a in inputs], [-1] * call.n_out)
        raise_shapes(call, inputs)
    return dtype


cdef const Value* typed_values(ElementwiseCall call, const Value* values, int dtype, Value* typed, int* ctype) except NULL:
    """Return the parameters of a call on data of a type; for every device.

    Of integer data, a scalar is converted to their type, and wraps as in C, also where the formula is computed in floating
    point; what 64 bits do not hold is refused.  A limit that the type does not reach becomes the last integer before it, and
    what data are compared with stays what it is: then `ctype`, in which the formula is computed, becomes float64.
    """
    cdef int k
    if not call.typed or dtype <= FLOAT16 or dtype == BFLOAT16:
        return values
    memcpy(typed, values, MAX_VALUES * sizeof(Value))
    for k in range(MAX_VALUES):
        if call.ways[k]:
            take_type(call, k, dtype, &typed[k], ctype)
    return typed


cdef int take_type(ElementwiseCall call, int k, int dtype, Value* value, int* ctype) except -1:
    """Convert parameter number `k` to the type of integer data."""
    cdef bint lost = value.i == 0 and not fabs(value.d) < 1  # 64 bits do not hold it, or it is NaN
    cdef bint beyond = lost or nearest(value, dtype) != value.i
    cdef int way = call.ways[k]
    if way == COMPARED and beyond:
        ctype[0], value.i = FLOAT64, nearest(value, dtype)  # which differs from the number, since no integer of the type equals it
        if lost and value.d == value.d:  # the last integers of 64 bits are rounded to 2**63 there
            value.d = INFINITY if value.d > 0 else -INFINITY
        return 0
    if lost and (way == WRAPS or value.d != value.d or (way == UPPER and value.d < 0) or (way == LOWER and value.d > 0)):
        raise OpArithmeticError(f"operator {call.op.name}: {call.formula.params[k]}={value.d:.17g} does not fit the data, whose dtype is "
                                f"{dtypes.NAMES[dtype]}: expected a number that integers hold")
    value.i = wrapped(value.i, dtype) if way == WRAPS else nearest(value, dtype)
    value.d = <double>value.i
    return 0


cdef long long wrapped(long long i, int dtype) noexcept nogil:
    """Convert an integer to another type of integers."""
    if dtype == UINT8 or dtype == BOOL:
        return <unsigned char>i
    return <signed char>i if dtype == INT8 else <int>i if dtype == INT32 else i


cdef long long nearest(const Value* value, int dtype) noexcept nogil:
    """Cut a number to an integer that a type has."""
    cdef long long low = -9223372036854775807 - 1, high = 9223372036854775807
    if dtype == UINT8 or dtype == BOOL:
        low, high = 0, 255
    elif dtype == INT8:
        low, high = -128, 127
    elif dtype == INT32:
        low, high = -2147483647 - 1, 2147483647
    if value.i == 0 and fabs(value.d) >= 1:  # beyond 64 bits
        return low if value.d < 0 else high
    return min(max(value.i, low), high)


cdef inline bint same_shape(Array a, int ndim, const Py_ssize_t* shape) noexcept:
    cdef int i
    if a.ndim != ndim:
        return False
    for i in range(ndim):
        if a.shape_[i] != shape[i]:
            return False
    return True


cdef int compute_type(ElementwiseCall call, Array first, object inputs) except -1:
    """Return the compute type of a call (of mixed inputs: the widest)."""
    cdef int dtype = first.dtype
    cdef Array a
    if call.has_keys:
        dtype = drawn_type(call, inputs)
    elif not call.plain_types:
        for a in inputs:
            if a.dtype != dtype:
                dtype = dtypes.widest(dtype, a.dtype)
    if dtype == FLOAT32 or dtype == FLOAT64:
        return dtype
    return call.formula.compute_type(dtype)


cdef list evaluated(ElementwiseCall call, Program program, object inputs, const Value* values, object out, int req, int ndim,
                    Py_ssize_t* shape, Py_ssize_t size, int dtype):
    """Run a program on arrays, into new arrays or those that are given; return the results."""
    cdef Operand* operands = <Operand*>malloc((call.n_in + call.n_out) * sizeof(Operand))
    cdef list results = [], targets = output_list(call.op, out, call.n_out), late = []
    cdef Array target, a
    cdef int k
    if operands == NULL:
        raise MemoryError()
    try:
        for k in range(call.n_in):
            a = <Array>inputs[k]
            if same_shape(a, ndim, shape):
                fill_operand(&operands[k], a)
            else:
                broadcast_operand(&operands[k], a, ndim, shape)
        types = None if call.plain_types or call.has_keys else call.types_of(tuple([(<Array>a).dtype for a in inputs]))
        full = None if out is None else tuple([shape[k] for k in range(ndim)])
        for k in range(call.n_out):
            code = dtype if types is None else types[k]
            if targets[k] is None:
                target = alloc(ndim, shape, code)
                target.device_id = (<Array>inputs[0]).device_id
                describe_output(&operands[call.n_in + k], target, REQ_WRITE, False)
            else:
                target = prepared_output(call.op, targets[k], full, code, <Array>inputs[0])
                into_given(call, program, inputs, target, req, k, &operands[call.n_in + k], late)
            results.append(target)
        program.run(size, operands, &operands[call.n_in], values)
    finally:
        free(operands)
    for final, beside in late:
        copy_into(<Array>beside, <Array>final, req)
    return results


cdef int into_given(ElementwiseCall call, Program program, object inputs, Array target, int req, int k, Operand* operand,
                    list late) except -1:
    """Describe a given array as output number `k`; where it overlaps an input of another layout, a temporary that is copied there."""
    cdef bint staged = False
    cdef Array a
    for a in inputs:
        if overlaps(a, target) and not same_layout(a, target):
            late.append((target, alloc_like(target)))
            return describe_output(operand, <Array>late[-1][1], REQ_WRITE, False)
    for i in range(call.n_in):
        staged |= overlaps(<Array>inputs[i], target) and program.clobbers(k, i)
    return describe_output(operand, target, req, staged)


cdef int describe_output(Operand* operand, Array target, int req, bint staged) except -1:
    """Describe an array that a program writes."""
    fill_operand(operand, target)
    operand.data, operand.staged, operand.req = write_pointer(target), staged, req
    return 0


cdef int record_elementwise(ElementwiseCall call, object inputs, list outputs, const Value* values) except -1:
    """Record an elementwise call, keeping only the operands that its backward formula mentions."""
    cdef Node node
    cdef Array a
    cdef int k
    if is_making():
        settle_results(inputs, outputs, call.op.zero_gradient or (
            call.op._gradient is None and call.has_rule and is_zero(call.backward(tuple(range(call.n_in))))))
    if not is_recording() or not any_node(inputs):
        return 0
    # where types differ, the gradient is computed in float64 between casts
    if call.op._gradient is not None or not call.has_rule or (not call.plain_types and call.op.out_dtype is not None):
        return record_general(call.op, filled_attrs(call, values), inputs, outputs)
    if call.rule is None:
        call.rule = call.op.backward_formula(call.attrs, call.n_in)
    node = new_node(call.op, inputs, outputs)
    node.call = call
    memcpy(node.values, values, len(call.formula.params) * sizeof(Value))
    node.inputs = [shape_of(<Array>a) for a in inputs] if call.broadcast else [None] * call.n_in
    for k in call.rule.inputs:
        node.inputs[k] = inputs[k]
    if call.rule.outputs or call.n_out > 1:
        node.outputs = [detached(<Array>outputs[k]) for k in range(call.n_out)]
    note_overwritten(node, outputs)
    link_outputs(node, outputs)
    return 0


cdef object filled_attrs(ElementwiseCall call, const Value* values):
    """Return the parameters of a call, the numeric ones as given."""
    changes = {}
    for k, name in enumerate(call.formula.params):
        # an integer that no float holds stays one
        exact = values[k].d == <double>values[k].i and whole(values[k].d) != values[k].i
        changes[name] = values[k].i if exact else values[k].d
    return call.attrs.replaced(**changes) if changes else call.attrs


cdef object run_on_gpu(ElementwiseCall call, PyObject** items, object inputs, const Value* values, object out, int req):
    """Run a call on GPU arrays, by the kernel of one before if there was one like it."""
    cdef int ctype = -1
    cdef list numbers = gpu_values(call, values, (<Array>items[0]).dtype, &ctype)
    cdef dict launches = call.launches if ctype < 0 else {}  # their kernels compute in the data's type
    cdef list results
    try:
        results = relaunched(launches, items, call.n_in, numpy_shapes(), numbers) if out is None else None
        if results is None:
            from mxop._gpu import run as gpu_run
            results, plan = gpu_run.elementwise(call, list(inputs), numbers, out, req)
            if out is None:
                keep_launch(launches, items, call.n_in, numpy_shapes(), plan, results)
        wait_if_asked()
    except Exception as problem:
        raise of_gpu(problem, f"operator {call.op.name}")
    if is_noted():
        record_elementwise(call, inputs, results, values)
    return results[0] if len(results) == 1 else results
