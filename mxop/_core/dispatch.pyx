"""One call of any operator: its arguments bound, its kind told, its states delivered.

The callable behind ``mx.nd.f`` is :class:`OpFunction`.  Elementwise calls with plain arguments take a short way through
it; everything else goes through :func:`invoke`.
"""
from cpython.object cimport PyObject
from libc.string cimport memcpy, memset

from mxop._core.array cimport ARRAY_TYPE, MAX_VALUES, Array, Value, place_of
from mxop._core.elementwise cimport ElementwiseCall, call_for, listed, run_elementwise, run_items, set_value
from mxop._core.kinds cimport run_composite, run_external, run_kernel, run_reduction, run_view, run_view_again
from mxop._core.numbers cimport plain_arguments
from mxop._core.profile cimport IMPERATIVE, NANS, abandon, begin, look, look_into, note_call, watched
from mxop._core.recent cimport OUTPUT, PARAMETER, SLOTS, Form, Forms
from mxop._core.record cimport is_recording, is_training
from mxop._core.results cimport hand_over, output_list
from mxop._core.transfer cimport contiguous_copy
from mxop._kernels.operands cimport REQ_NULL, REQ_WRITE

from mxop._core import elementwise as _elementwise, kinds as _kinds, prepared as _prepared, reductions as _reductions
from mxop._core.kinds import namespace, set_namespace
from mxop.support.errors import MXNetError, OpTypeError, of_gpu, shown
from mxop.support.memo import keep
from mxop.opdef import Elementwise, External, Kernel, Reduction, registry
from mxop.opdef.binding import bind_open
from mxop.opdef.elementwise import MOST_INPUTS
from mxop.opdef.operator import carrier

cdef extern from "Python.h":
    object PyMethod_New(object function, object instance)
    PyObject** PySequence_Fast_ITEMS(object sequence)
    Py_ssize_t PyVectorcall_NARGS(size_t flagged)
    PyObject* PyVectorcall_Call(PyObject* function, PyObject* args, PyObject* kwargs)
    const unsigned long Py_TPFLAGS_HAVE_VECTORCALL
    ctypedef PyObject* (*ternaryfunc)(PyObject*, PyObject*, PyObject*)
    ctypedef struct PyTypeObject:
        ternaryfunc tp_call
        Py_ssize_t tp_vectorcall_offset
        unsigned long tp_flags

cdef enum:
    ELEMENTWISE = 1
    REDUCTION = 2
    KERNEL = 3
    COMPOSITE = 4
    EXTERNAL = 5


cpdef object invoke(object op, object inputs, object attrs, object out=None):
    """Run an operator on arrays with parsed parameters.

    Returns
    -------
    NDArray or list of NDArray
    """
    for a in inputs:  # a rule's mistake is no reason to crash
        if not isinstance(a, Array):
            raise OpTypeError(f"operator {op.name}: an input is {a!r}; expected an NDArray")
    return invoke_with(op, inputs, attrs, out, REQ_WRITE)


def invoke_req(op, inputs, attrs, out, int req):
    """Run an operator into given outputs with a request (``REQ_WRITE`` 1, ``REQ_ADD`` 3, ``REQ_NULL`` 0)."""
    return invoke_with(op, inputs, attrs, out, req)


cdef object invoke_with(object op, object inputs, object attrs, object out, int req):
    if req == REQ_NULL:
        return out
    op.check_arity(attrs, len(inputs))
    return invoke_checked(function_of(op), inputs, attrs, out, req)


cdef object invoke_checked(OpFunction f, object inputs, object attrs, object out, int req):
    """Run a call whose number of inputs is right."""
    cdef long long begun
    if not watched(IMPERATIVE | NANS) or f.kind == ELEMENTWISE:  # which says itself how long it took
        return run_unwatched(f, inputs, attrs, out, req)
    begun = begin(f.op.name)
    try:
        if watched(NANS) and f.kind == COMPOSITE:
            look_into(f.op.name)
            try:
                found = run_unwatched(f, inputs, attrs, out, req)
            finally:
                look_into(None)
        else:
            found = run_unwatched(f, inputs, attrs, out, req)
    except BaseException:
        abandon(f.op.name)
        raise
    if watched(IMPERATIVE):
        note_call(f.op.name, begun, place_of(found))
    else:
        abandon(f.op.name)
    if watched(NANS):
        look(f.op, attrs, inputs, found)
    return found


cdef object run_unwatched(OpFunction f, object inputs, object attrs, object out, int req):
    """Run a call: in the mode of the thread, and with its states delivered."""
    if f.has_mode < 0:
        f.is_view = f.kind == KERNEL and f.op.make_view is not None
        f.has_mode = f.op.spec.has_mode  # last: other threads take this for both
    if f.has_mode and is_training():
        attrs = attrs.training(True)
    if f.writes:
        return run_writing(f, inputs, attrs, out, req)
    return run_kind(f, inputs, attrs, out, req)


cdef object run_writing(OpFunction f, object inputs, object attrs, object out, int req):
    """Run an operator with states: their new values, its last outputs, go where the states lie."""
    cdef int n = f.op.num_visible_outputs(attrs, len(inputs)), k
    cdef list targets = output_list(f.op, out, n), results
    cdef tuple written = f.op.written_inputs(attrs, len(inputs))
    cdef Array state
    cdef object given = inputs
    for k, _ in written:
        if is_recording() and (<Array?>inputs[k]).node is not None:
            raise MXNetError(f"operator {f.op.name} writes its input {f.op.input_names(attrs, len(inputs))[k]!r}, which is a "
                             "variable that autograd has recorded; a state is an array without attach_grad()")
    if is_recording() and any([(<Array?>a).node is not None for a in inputs]):
        given = list(inputs)
        for k, _ in written:  # backward reads what the state was
            given[k] = contiguous_copy(<Array>inputs[k])
    if req == REQ_WRITE:
        targets += [None] * (f.op.num_outputs(attrs, len(inputs)) - n)
        for k, at in written:
            targets[at] = inputs[k]
    found = run_kind(f, given, attrs, targets if req == REQ_WRITE else None, REQ_WRITE)
    results = list(found) if isinstance(found, (list, tuple)) else [found]
    if req != REQ_WRITE:  # only what is returned is added
        states = [None] * len(results)
        for k, at in written:
            states[at] = inputs[k]
        hand_over(f.op, results, targets, req)
        hand_over(f.op, results, states, REQ_WRITE)
    for k, _ in written:
        state = <Array>inputs[k]
        state.node = None  # a state has no history
    return results[0] if n == 1 else results[:n]


cdef object run_kind(OpFunction f, object inputs, object attrs, object out, int req):
    """Run an operator as its kind is run, into all of its outputs."""
    cdef ElementwiseCall call
    cdef Value values[MAX_VALUES]
    if f.kind == ELEMENTWISE:
        if f.op.folds and len(inputs) > MOST_INPUTS:
            f.op.infer_outputs(attrs, [a.shape for a in inputs], [(<Array>a).dtype for a in inputs])  # errors name the input
            inputs, attrs = f.op.folded(invoke, inputs, attrs)
        call = call_for(f.op, attrs, len(inputs))
        call.load_values(attrs, values)
        return run_elementwise(call, inputs, values, out, req)
    try:
        if f.kind == REDUCTION:
            return run_reduction(f.op, attrs, <Array?>inputs[0], out, req)
        if f.kind == KERNEL:
            if f.is_view:
                return run_view(f.op, attrs, inputs, out, req)
            return run_kernel(f.op, attrs, inputs, out, req)
        if f.kind == EXTERNAL:
            return run_external(f.op, attrs, inputs, out, req)
        return run_composite(f.op, attrs, inputs, out, req)
    except Exception as problem:
        found = of_gpu(problem, f"operator {f.op.name}")
        if found is problem:
            raise
        raise found


# ---- the callable behind mx.nd.f ------------------------------------------------------------------------------------------------

cdef dict _functions = {}


cdef OpFunction function_of(object op):
    """Return the callable of an operator."""
    found = _functions.get(op)
    if found is None:
        found = keep(_functions, op, OpFunction(op), 65536)
    return <OpFunction>found


def op_function(op):
    """Return the callable of an operator."""
    return function_of(op)


def forget(op):
    """Drop what is kept for an operator that was unregistered or replaced."""
    found = _functions.pop(op, None)
    _reductions.forget()
    _prepared.forget()
    _kinds.forget()
    _elementwise.forget(op)
    if found is not None:  # somebody may hold it; last, for what it keeps is made of what was dropped
        (<OpFunction>found).has_mode, (<OpFunction>found).forms = -1, Forms()


cdef class ShortWay:
    """What a call with arrays and numbers needs, found out on the first call."""


cdef ShortWay find_short_way(OpFunction f):
    """Return the short way of an operator whose parameters may all be left out or given as numbers; None for others."""
    cdef ShortWay found = ShortWay()
    cdef int slot
    if f.kind != ELEMENTWISE or f.n_in < 1 or f.op._active_inputs is not None or f.op.spec.has_mode or (
            f.writes and not f.op.writes):
        return None
    params = f.op.spec.params
    if any([p.required and not p.numeric for p in params]):
        return None
    attrs = f.op.parse({p.name: 1.0 for p in params if p.required})
    try:
        found.call = call_for(f.op, attrs, f.n_in)
    except OpTypeError:
        return None
    found.written = tuple([k for k, _ in sorted(f.op.written_inputs(attrs, f.n_in), key=lambda pair: pair[1])])
    found.slots = {}
    memset(found.defaults, 0, sizeof(found.defaults))
    for p in params:
        if p.numeric and p.name in found.call.formula.params:
            slot = found.call.formula.params.index(p.name)
            if p.bounds is None:
                found.slots[p.name] = slot
            if p.required:
                found.required |= 1u << slot
            else:
                set_value(&found.defaults[slot], p.default)
        elif p.required:
            return None  # a number that the formula's shape depends on
    return found


cdef object run_short(ShortWay short, PyObject** args, const Value* values, object out):
    """Run a call of the short way; what its states become is written where they lie."""
    cdef Py_ssize_t k
    if not short.written:
        return run_items(short.call, args, None, values, out, REQ_WRITE)
    targets = [out, *[<object>args[k] for k in short.written]]
    results = run_items(short.call, args, None, values, targets, REQ_WRITE)
    for k in short.written:
        (<Array>args[k]).node = None  # a state has no history
    return (<list>results)[0]


cdef class OpFunction:
    # An operator as a function of arrays.  (No docstring: users see the operator's.)

    def __cinit__(self, op):
        self.vectorcall = <vectorcallfunc>called

    def __init__(self, op):
        self.op = op
        self.forms, self.parsed, self.searched, self.short = Forms(), {}, False, None
        self.kind = (ELEMENTWISE if isinstance(op, Elementwise) else REDUCTION if isinstance(op, Reduction)
                     else KERNEL if isinstance(op, Kernel) else EXTERNAL if isinstance(op, External) else COMPOSITE)
        # of a formula, the outputs that no call returns are left out there, too
        self.writes, self.has_mode = bool(op.writes) or (self.kind == ELEMENTWISE and op._visible_outputs is not None), -1
        self.n_in = -1 if op.variadic else len(op.arguments)
        self.arguments, self.open_inputs, self.number = tuple(op.arguments), op.open_inputs, op.num_args_param
        self.fixed_inputs = not op.variadic and op._active_inputs is None and not op.open_inputs
        self.native = getattr(op, "native", None)

    cdef tuple parameters(self):
        """Return the names of the parameters, which are read from the signature when first asked for: most operators never are."""
        if self.names is None:
            self.names = tuple(self.op.spec.names)
        return self.names

    cdef ShortWay short_way(self):
        """Return the short way, None where there is none."""
        if not self.searched:  # set last: another thread, or the next call after an interrupt, must not see half of it
            self.short = find_short_way(self)
            self.searched = True
        return self.short

    def __call__(self, *args, **kwargs):  # others call `called`
        return self.call(args, kwargs)

    cdef object call_short(self, ShortWay short, PyObject** args, Py_ssize_t n, tuple names):
        """Run a call whose inputs are arrays, one of an operator that has a short way; None where its parameters are no numbers."""
        cdef Value numbers[MAX_VALUES]
        cdef unsigned int given = 0
        cdef Py_ssize_t k
        cdef int slot
        cdef object out = None
        cdef tuple parameters = self.parameters()
        if n > self.n_in and (self.op.by_keyword or n - self.n_in > len(parameters)):
            return None
        memcpy(numbers, short.defaults, sizeof(numbers))
        for k in range(self.n_in, n + len(names)):
            name, value = parameters[k - self.n_in] if k < n else names[k - n], <object>args[k]
            if name == "out" and (value is None or isinstance(value, Array)):
                out = value
                continue
            at = short.slots.get(name)
            if at is None or not (type(value) is float or type(value) is int):
                return None
            slot = at
            if given >> slot & 1:
                return None  # given twice
            set_value(&numbers[slot], value)
            given |= 1u << slot
        if (given & short.required) != short.required or (short.written and is_recording()):
            return None
        return run_short(short, args, numbers, out)

    cdef object call(self, tuple args, dict kwargs):
        """Run a call of any kind; the keyword arguments are changed."""
        cdef long long begun
        out = kwargs.get("out")
        if self.native is not None:
            begun = begin(self.op.name) if watched(IMPERATIVE) else 0
            result = self.native.call(args, dict(kwargs))
            if result is not None:
                if begun:
                    note_call(self.op.name, begun, -1)
                return result
            if begun:
                abandon(self.op.name)
        found = self.call_bound(args, kwargs)
        return out if isinstance(out, (list, tuple)) and not any([a is None for a in out]) else found  # as in MXNet

    cdef object call_bound(self, tuple args, dict kwargs):
        """The general call: bind arguments to inputs and parameters."""
        cdef object out = None, inputs = None
        cdef tuple given = args, names = tuple(kwargs), values = tuple(kwargs.values())
        cdef bint counted, came = False
        if kwargs:
            out = kwargs.pop("out", None)
            kwargs.pop("name", None)
            if out is not None and not isinstance(out, Array) and carrier((out,)) is not None:
                return out.__mxop_operator__(self.op.name, args, {**kwargs, "out": out})
        if self.fixed_inputs and len(args) > self.n_in > 0:
            args = self.named(args, kwargs)
        if self.first_arrays(PySequence_Fast_ITEMS(args), len(args)) == len(args) and not self.shadowed(kwargs):
            counted = self.n_in < 0 and self.number is not None and self.number not in kwargs
            attrs = parsed_params(self, kwargs, len(args) if counted else -1, &came)  # only these are left
            if self.fixed_inputs or self.n_in < 0 or self.takes_first(attrs, len(args)):
                inputs = args
        else:
            listed = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
            by_name = carrier([a for a in (*listed, *kwargs.values()) if not isinstance(a, Array)])
            if by_name is not None:
                return by_name.__mxop_operator__(self.op.name, args, kwargs if out is None else {**kwargs, "out": out})
            if self.op.arranged is not None:
                other, args, kwargs = self.op.arranged(args, kwargs)
                if other is not self.op or args is not given:
                    return function_of(other).call_bound(args, kwargs if out is None else {**kwargs, "out": out})
        if inputs is None:
            named_out = out
            if self.fixed_inputs:
                args, out = without_output(self.op, args, out)
            inputs, attrs = bind_arguments(self, args, kwargs, &came)
            came = came and out is named_out  # a form has no output by position
        if not (self.fixed_inputs and inputs is args):
            self.op.check_arity(attrs, len(inputs))
        if came:  # those that come once may be others each time
            self.note_form(given, names, values, inputs, attrs)
        return invoke_checked(self, inputs, attrs, out, REQ_WRITE)

    cdef int note_form(self, tuple args, tuple names, tuple values, object inputs, object attrs) except -1:
        """Remember how a call was written: which of its arguments is which input."""
        cdef list places = []
        cdef Py_ssize_t k, taken = 0, n = len(args)
        if self.open_inputs or n + len(names) > SLOTS:
            return 0
        by_name = any([isinstance(value, Array) for value in values])
        wanted = tuple(self.op.input_names(attrs)) if by_name and self.n_in >= 0 else ()
        for k, value in enumerate(args + values):
            name = names[k - n] if k >= n else self.arguments[k] if k < len(self.arguments) else None
            if k >= n and name == "out" and value is not None:
                places.append(OUTPUT)
            elif isinstance(value, Array):
                place = wanted.index(name) if name in wanted else taken
                if place >= len(inputs) or inputs[place] is not value:
                    return 0  # no input
                places.append(place)
                taken += 1
            else:
                places.append(PARAMETER)
        return self.forms.note(args + values, names, places, attrs) if taken == len(inputs) else 0

    cdef tuple named(self, tuple args, dict kwargs):
        """Return the inputs among arguments by position, once the parameters after them have names; all of them in odd calls."""
        cdef tuple names = self.parameters()
        cdef Py_ssize_t k
        if self.op.by_keyword or len(args) - self.n_in > len(names):
            return args
        for k in range(self.n_in, len(args)):
            if isinstance(args[k], Array) or names[k - self.n_in] in kwargs:
                return args
        for k in range(self.n_in, len(args)):
            kwargs[names[k - self.n_in]] = args[k]
        return args[:self.n_in]

    cdef Py_ssize_t first_arrays(self, PyObject** args, Py_ssize_t n):
        """Return how many arguments are arrays that may be all inputs, before parameters by position; -1 where they may not."""
        cdef Py_ssize_t first = self.n_in if self.fixed_inputs else n, k
        if first > n or not self.fixed_inputs and (n == 0 or self.open_inputs):
            return -1
        for k in range(first):
            if not isinstance(<object>args[k], Array):
                return -1
        return first

    cdef bint takes_first(self, object attrs, Py_ssize_t n):
        """Return whether a call with these parameters takes n inputs, the first that there are."""
        names = tuple(self.op.input_names(attrs))
        return len(names) == n and names == self.arguments[:len(self.arguments) - len(self.op.by_keyword)][:n]

    cdef bint shadowed(self, dict kwargs):
        """Return whether a keyword names an input that is given already."""
        if not kwargs:
            return False
        for name in self.arguments:
            if name in kwargs:
                return True
        return False

    def __repr__(self):
        return f"<function mx.nd.{self.op.name}>"

    def __get__(self, instance, owner):
        return self  # tools, pydoc among them, take what can be bound for a function

    def __reduce__(self):
        return op_function, (self.op,)

    @property
    def __doc__(self):
        from mxop.opdef import docs
        return docs.documentation(self.op)

    @property
    def __name__(self):
        return registry.namespace_of(self.op.name)[1]

    @property
    def __qualname__(self):
        return self.__name__

    @property
    def __module__(self):
        return "mxop.ndarray"

    @property
    def __signature__(self):
        from mxop.opdef import docs
        return docs.signature(self.op)


cdef object called(object function, PyObject** args, size_t flagged, PyObject* keywords):
    """Run ``function(*args, **kwargs)``: the values by name follow those by position, and all are the caller's."""
    cdef OpFunction f = <OpFunction>function
    cdef Py_ssize_t n = PyVectorcall_NARGS(flagged), k
    cdef tuple names = () if keywords == NULL else <tuple>keywords
    cdef ShortWay short
    cdef Form form
    if f.native is not None:
        if not names and not watched(IMPERATIVE):
            found = f.native.call(listed(args, n), None)
            if found is not None:
                return found
    else:
        if (not f.searched or f.short is not None) and f.first_arrays(args, n) >= 0:
            short = f.short_way()
            found = None if short is None else f.call_short(short, args, n, names)
            if found is not None:
                return found
        form = f.forms.find(args, n + len(names), names)
        if form is not None:
            if f.is_view and f.has_mode == 0 and not watched(IMPERATIVE | NANS):
                found = run_view_again(f.op, form, args)
                if found is not None:
                    return found
            return invoke_checked(f, form.inputs(args), form.attrs, form.output(args), REQ_WRITE)
    if f.kind != EXTERNAL:  # which may want to see NumPy's
        plain = plain_arguments(args, n + len(names))
        if plain is not None:
            return called(function, PySequence_Fast_ITEMS(plain), n, keywords)
    return f.call(listed(args, n), {names[k]: <object>args[n + k] for k in range(len(names))})


cdef int start() except -1:
    """Let the interpreter call operators without making a tuple and a dictionary of what it gives them."""
    cdef OpFunction f = OpFunction.__new__(OpFunction, None)
    cdef PyTypeObject* cls = <PyTypeObject*>OpFunction
    cls.tp_vectorcall_offset = <char*>&f.vectorcall - <char*><PyObject*>f
    cls.tp_call = <ternaryfunc>PyVectorcall_Call
    cls.tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL
    return 0


start()


cdef class OperatorMethod:
    """An operator as a method of arrays; the counterpart of :class:`mxop.opdef.fluent.Fluent`, for calls that must be quick."""

    cdef readonly str name
    cdef object namespace

    def __init__(self, str name, namespace):
        self.name, self.namespace = name, namespace

    def __get__(self, instance, owner):
        function = getattr(self.namespace, self.name)  # the operator of that name now
        return function if instance is None else PyMethod_New(function, instance)


cdef tuple without_output(object op, tuple args, object out):
    """Take ``out`` and ``name`` off the end of the positional arguments, where MXNet's functions have them."""
    cdef Py_ssize_t n = len(op.arguments) - len(op.by_keyword) + len(op.spec.names), given = len(args)
    if given <= n or given > n + 2:
        return args, out
    if args[n] is None:
        return args[:n], out
    if out is not None:
        raise OpTypeError(f"operator {op.name}: out is given twice, by position and by name")
    return args[:n], args[n]


cdef object not_an_array(op, argument, value):
    """Return the error of an argument that is not an array; numbers and NumPy's arrays can become one."""
    hint = ": use mx.nd.array()" * (isinstance(value, (int, float, list, tuple)) or hasattr(value, "__array_interface__"))
    return OpTypeError(f"operator {op.name}: argument {argument} must be an NDArray, got {shown(value)}{hint}")


cdef tuple bind_arguments(OpFunction f, tuple args, dict kwargs, bint* came):
    """Sort the arguments of a call into inputs and parsed parameters."""
    cdef list inputs
    op = f.op
    if op.variadic:
        inputs = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
        if op.num_args_param is not None:
            kwargs.setdefault(op.num_args_param, len(inputs))
        for k, a in enumerate(inputs):
            if not isinstance(a, Array):
                raise not_an_array(op, k, a)
        return inputs, parsed_params(f, kwargs, -1, came)
    if op.open_inputs:
        inputs, params = bind_open(op, args, kwargs, ARRAY_TYPE, False)
        return inputs, parsed_params(f, params, -1, came)
    names = op.arguments
    by_position = len(names) - len(op.by_keyword)
    given = {}
    for position, value in enumerate(args):
        if position < by_position:
            if value is not None:
                given[names[position]] = value
            continue
        at = position - by_position
        if at >= len(op.spec.names):
            raise OpTypeError(f"operator {op.name} takes at most {by_position + len(op.spec.names)} arguments, "
                              f"{len(args)} given")
        if op.spec.names[at] in kwargs:
            raise OpTypeError(f"operator {op.name}: parameter {op.spec.names[at]!r} is given twice")
        kwargs[op.spec.names[at]] = value
    for name in names:
        if name in kwargs and name not in op.spec.by_name:
            if name in given:
                raise OpTypeError(f"operator {op.name}: input {name!r} is given twice")
            value = kwargs.pop(name)
            if value is not None:
                given[name] = value
    for name, value in given.items():
        if not isinstance(value, Array):
            raise not_an_array(op, name, value)
    attrs = parsed_params(f, kwargs, -1, came)
    wanted = op.input_names(attrs)
    missing = [n for n in wanted if n not in given]
    if missing and len(given) == len(wanted) == sum([a is not None for a in args[:by_position]]):
        return list(given.values()), attrs  # by position alone: in the order of those that there are
    if missing or len(given) > len(wanted):
        extra = [n for n in given if n not in wanted]
        hint = "; no_bias=True leaves it out" if missing == ["bias"] and "no_bias" in op.spec.by_name else ""
        raise OpTypeError(f"operator {op.name} takes {len(wanted)} input{'s' if len(wanted) != 1 else ''} "
                          f"({', '.join(wanted)}); " + (f"missing: {', '.join(missing)}{hint}" if missing else
                          f"not expected: {', '.join(extra)}"))
    return [given[n] for n in wanted], attrs


cdef object parsed_params(OpFunction f, dict kwargs, Py_ssize_t n_inputs, bint* came):
    """Parse parameters, and the number of inputs where that is one of them, remembering what equal arguments gave.

    `came` is set where they came before, or nobody can tell.
    """
    op = f.op
    if n_inputs >= 0:
        kwargs[f.number] = n_inputs
    if kwargs and not op.spec.names and not isinstance(op, External):  # MXNet's functions without parameters take these and ignore them
        kwargs.pop("ctx", None)
        kwargs.pop("dtype", None)
    elif kwargs and "dtype" in kwargs and kwargs["dtype"] is None and "dtype" not in op.spec.by_name:
        kwargs.pop("dtype")  # NumPy's functions hand it to the array's method
    came[0] = True
    try:
        key = tuple([(k, type(v), key_of(v)) for k, v in kwargs.items()])
        found = f.parsed.get(key)
    except (TypeError, ValueError):  # a list, or an array as a parameter, has no hash, or no truth
        return op.parse(kwargs)
    if found is None:
        came[0] = False
        found = op.parse(kwargs)
        if not holds_arrays(kwargs):  # a number now, another one later
            keep(f.parsed, key, found)
    return found


cdef object key_of(object value):
    """Return what tells a parameter from others of its type; raise TypeError for what cannot be told by equality.

    1, 1.0 and True are equal, and so are 0.0 and -0.0, but they are not the same parameters.
    """
    if type(value) is tuple:
        for item in <tuple>value:
            if type(item) is not int and item is not None and type(item) is not str:
                raise TypeError
        return value
    if value is None or type(value) is bool or type(value) is str or type(value) is int:
        return value
    if isinstance(value, Array) or getattr(value, "ndim", 0):  # a shape may be an array
        raise TypeError
    return repr(value) if value == 0.0 else value


cdef bint holds_arrays(dict kwargs):
    for v in kwargs.values():
        if isinstance(v, Array):
            return True
    return False


cdef object call_two(OpFunction f, Array a, Array b, object out):
    """Call a two-input elementwise operator without parameters."""
    cdef ShortWay short = f.short_way()
    cdef PyObject* items[2]
    items[0], items[1] = <PyObject*>a, <PyObject*>b
    return run_items(short.call, items, None, short.defaults, out, REQ_WRITE)


cdef object call_scalar(OpFunction f, Array a, object number, object out):
    """Call an elementwise operator of one input and one scalar."""
    cdef ShortWay short = f.short_way()
    cdef Value values[MAX_VALUES]
    cdef PyObject* items[1]
    set_value(&values[0], number)
    items[0] = <PyObject*>a
    return run_items(short.call, items, None, values, out, REQ_WRITE)
