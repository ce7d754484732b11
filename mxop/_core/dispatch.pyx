"""One call of any operator: infer, allocate, run, record.

The callable behind ``mx.nd.f`` is :class:`OpFunction`.  Elementwise calls with plain arguments take a short way through
it; everything else goes through :func:`invoke`.
May import :mod:`.array`, :mod:`.record`, :mod:`.transfer`, :mod:`.elementwise`, :mod:`mxop._kernels`, :mod:`mxop.opdef`.
"""
from cpython.object cimport PyObject
from libc.string cimport memcpy, memset

from mxop._core.array cimport (
    MAX_VALUES, Array, Value, alloc, alloc_like, alloc_tuple, broadcast_operand, fill_operand, view_of,
)
from mxop._core.elementwise cimport (
    ElementwiseCall, call_for, run_elementwise, run_items, set_value,
)
from mxop._core.record cimport is_recording, record_general, set_recording
from mxop._core.transfer cimport contiguous_copy, copy_into, output_list, overlaps, prepared_output
from mxop._kernels.interp cimport REQ_ADD, REQ_NULL, REQ_WRITE, Operand, Program
from mxop._kernels.reduce cimport Reduced, reduce

from mxop import dtypes
from mxop._core import elementwise as _elementwise
from mxop._kernels import interp
from mxop.errors import DeviceError, OpTypeError
from mxop.formula import compile_program, input_
from mxop.opdef import Elementwise, Kernel, Reduction, registry
from mxop.opdef.reduction import _numpy_shape

cdef enum:
    ELEMENTWISE = 1
    REDUCTION = 2
    KERNEL = 3
    COMPOSITE = 4

cdef object _NAMESPACE = None       # mx.nd, as composites and gradient rules see it


def set_namespace(F):
    """Tell what composites and gradient rules get as ``F``."""
    global _NAMESPACE
    _NAMESPACE = F


# ---- reductions -------------------------------------------------------------------------------------------------------------------

cdef dict _reduce_calls = {}
_COMBINE = {"add": 0, "mul": 1, "max": 2, "min": 3}


cdef object run_reduction(object op, object attrs, Array source, object out, int req):
    """Run a reduction: combine the mapped elements in a buffer of the compute type, then finish into the output."""
    cdef Array result, sums, count
    cdef Reduced r
    cdef Operand operands[3]
    cdef Program map_, final
    cdef Value no_values[1]
    cdef int i, ctype, combine = _COMBINE[op.combine.name]
    cdef Py_ssize_t reduced = 1
    cdef tuple axes = op.axes(attrs, source.ndim), shape = source.shape_tuple()
    (out_shape,), (out_type,) = cached_inference(op, attrs, (shape,), (source.dtype,))
    out = output_list(op, out, 1)[0]
    if out is None:
        result = alloc_tuple(out_shape, out_type)
        result.device_id = source.device_id
        req = REQ_WRITE
    else:
        result = prepared_output(op, out, out_shape, out_type)
    if source.gpu is not None:
        from mxop._gpu import run as gpu_run
        result = gpu_run.reduction(op, attrs, source, axes, None if out is None else result, out_shape, out_type, req)
    else:
        map_formula, final_formula = op.formulas(attrs)
        ctype = map_formula.compute_type(source.dtype)
        if final_formula is not None and ctype > 1 and not final_formula.integer:
            ctype = 1
        map_ = reduce_program(map_formula.roots, 1, ctype)
        final = reduce_program(final_formula.roots if final_formula is not None else (input_(0),),
                               2 if final_formula is not None else 1, ctype)
        r.data, r.dtype, r.n_kept, r.n_reduced = source.data, source.dtype, 0, 0
        for i in range(source.ndim):
            if i in axes:
                r.reduced_shape[r.n_reduced], r.reduced_strides[r.n_reduced] = source.shape_[i], source.strides_[i]
                r.n_reduced += 1
                reduced *= source.shape_[i]
            else:
                r.kept_shape[r.n_kept], r.kept_strides[r.n_kept] = source.shape_[i], source.strides_[i]
                r.n_kept += 1
        sums = alloc(result.ndim, result.shape_, ctype)
        reduce(map_, combine, &r, no_values, sums.data)
        fill_operand(&operands[0], sums)
        fill_operand(&operands[1], result)
        if final_formula is not None:
            count = alloc(0, result.shape_, 1)
            (<double*>count.data)[0] = <double>reduced
            operands[2] = operands[1]
            broadcast_operand(&operands[1], count, result.ndim, result.shape_)
            operands[2].req, operands[2].staged = req, False
            final.run(result.size, operands, &operands[2], no_values)
        else:
            operands[1].req, operands[1].staged = req, False
            final.run(result.size, operands, &operands[1], no_values)
    if is_recording() and op.differentiable:
        record_general(op, attrs, (source,), [result])
    return result


cdef Program reduce_program(tuple roots, int n_in, int ctype):
    cdef tuple key = (roots, n_in, ctype)
    found = _reduce_calls.get(key)
    if found is None:
        if len(_reduce_calls) > 1024:
            _reduce_calls.clear()
        found = _reduce_calls[key] = Program(
            compile_program(roots, n_in, lambda name: interp.has_instruction(name, ctype)), (), ctype)
    return <Program>found


# ---- kernels and composites -----------------------------------------------------------------------------------------------------

cdef dict _inferred = {}


cdef tuple cached_inference(object op, object attrs, tuple shapes, tuple types):
    """Infer outputs, remembering recent answers."""
    cdef tuple key = (op, attrs, shapes, types, _numpy_shape[0])
    found = _inferred.get(key)
    if found is None:
        found = op.infer_outputs(attrs, list(shapes), list(types))
        if len(_inferred) > 4096:
            _inferred.clear()
        _inferred[key] = found
    return <tuple>found


cdef object run_kernel(object op, object attrs, object inputs, object out, int req):
    """Run a kernel's CPU or GPU function; requests, overlap and strides are dealt with around it."""
    cdef Array a, target, source
    cdef list results = [], work = [], targets, ready
    cdef int k = 0, n_visible
    shapes = tuple([(<Array>a).shape_tuple() for a in inputs])
    types = tuple([(<Array>a).dtype for a in inputs])
    out_shapes, out_types = cached_inference(op, attrs, shapes, types)
    targets = output_list(op, out, len(out_shapes))
    gpu = any([(<Array>a).gpu is not None for a in inputs])
    if gpu:
        from mxop._gpu import run as gpu_run
        results = gpu_run.kernel(op, attrs, list(inputs), targets, out_shapes, out_types, req)
    else:
        for k in range(len(out_shapes)):
            if targets[k] is None:
                target = alloc_tuple(tuple(out_shapes[k]), out_types[k])
                if inputs:
                    target.device_id = (<Array>inputs[0]).device_id
                results.append(target)
            else:
                results.append(prepared_output(op, targets[k], tuple(out_shapes[k]), out_types[k]))
        if op.make_view is not None:
            source = <Array>inputs[0]
            shape, strides, offset = op.make_view(shapes[0], source._strides, *shapes[1:], **attrs)
            copy_into(view_of(source, tuple(shape), tuple(strides), offset), <Array>results[0],
                      REQ_WRITE if targets[0] is None else req)
        else:
            if op.run_cpu is None:
                raise DeviceError(f"operator {op.name} has no CPU function; give one with @{op.name}.cpu")
            ready = [a if op.strided or (<Array>a).contiguous else contiguous_copy(<Array>a) for a in inputs]
            for k in range(len(results)):
                target = <Array>results[k]
                if targets[k] is not None and (req == REQ_ADD or req == REQ_NULL or not target.contiguous
                                               or any([overlaps(<Array>a, target) for a in inputs])):
                    work.append(alloc_like(target))
                else:
                    work.append(target)
            op.run_cpu(ready, work, **attrs)
            for k in range(len(results)):
                if work[k] is not results[k]:
                    copy_into(<Array>work[k], <Array>results[k], req)
    if is_recording() and op.differentiable:
        record_general(op, attrs, inputs, results)
    return visible(op, attrs, len(inputs), results)


cdef object visible(object op, object attrs, int n_inputs, list results):
    """Return what a call returns: one array, or the list of visible outputs."""
    cdef int n = op.num_visible_outputs(attrs, n_inputs)
    return results[0] if n == 1 else results[:n]


cdef object run_composite(object op, object attrs, object inputs, object out, int req):
    """Call the operators of a composite; they record themselves unless the composite has a rule of its own."""
    cdef bint own_rule = op._gradient is not None, before = is_recording()
    cdef list results, targets
    cdef int k
    if own_rule:
        set_recording(False)
    try:
        found = op.function(_NAMESPACE, *inputs, **attrs)
    finally:
        set_recording(before)
    results = list(found) if isinstance(found, (list, tuple)) else [found]
    if out is not None:
        targets = output_list(op, out, len(results))
        for k in range(len(results)):
            if targets[k] is not None:
                prepared_output(op, targets[k], (<Array>results[k]).shape_tuple(), (<Array>results[k]).dtype)
                copy_into(<Array>results[k], <Array>targets[k], req)
                (<Array>targets[k]).node, (<Array>targets[k]).output = (<Array>results[k]).node, (<Array>results[k]).output
                results[k] = targets[k]
    if own_rule and before:
        record_general(op, attrs, inputs, results)
    return visible(op, attrs, len(inputs), results)


cpdef object invoke(object op, object inputs, object attrs, object out=None):
    """Run an operator on arrays with parsed parameters.

    Returns
    -------
    NDArray or list of NDArray
    """
    return invoke_with(op, inputs, attrs, out, REQ_WRITE)


def invoke_req(op, inputs, attrs, out, int req):
    """Run an operator into given outputs with a request (``REQ_WRITE`` 1, ``REQ_ADD`` 3, ``REQ_NULL`` 0)."""
    return invoke_with(op, inputs, attrs, out, req)


cdef object invoke_with(object op, object inputs, object attrs, object out, int req):
    cdef OpFunction f = function_of(op)
    cdef ElementwiseCall call
    cdef Value values[MAX_VALUES]
    if req == REQ_NULL:
        return out
    if f.kind == ELEMENTWISE:
        op.check_arity(attrs, len(inputs))
        call = call_for(op, attrs, len(inputs))
        call.load_values(attrs, values)
        return run_elementwise(call, inputs, values, out, req)
    op.check_arity(attrs, len(inputs))
    if f.kind == REDUCTION:
        return run_reduction(op, attrs, <Array?>inputs[0], out, req)
    if f.kind == KERNEL:
        return run_kernel(op, attrs, inputs, out, req)
    return run_composite(op, attrs, inputs, out, req)


# ---- the callable behind mx.nd.f ------------------------------------------------------------------------------------------------

cdef dict _functions = {}


cdef OpFunction function_of(object op):
    """Return the callable of an operator."""
    found = _functions.get(op)
    if found is None:
        if len(_functions) > 65536:
            _functions.clear()
        found = _functions[op] = OpFunction(op)
    return <OpFunction>found


def op_function(op):
    """Return the callable of an operator."""
    return function_of(op)


def forget(op):
    """Drop what is kept for an operator that was unregistered or replaced."""
    _functions.pop(op, None)
    _elementwise.forget(op)


cdef class OpFunction:
    """An operator as a function of arrays."""

    def __init__(self, op):
        self.op = op
        self.parsed, self.numeric = {}, None
        self.kind = (ELEMENTWISE if isinstance(op, Elementwise) else REDUCTION if isinstance(op, Reduction)
                     else KERNEL if isinstance(op, Kernel) else COMPOSITE)
        self.fast = False
        self.n_in = -1 if op.variadic else len(op.arguments)

    cdef int prepare(self) except -1:
        """Find out, on the first call, whether the short way is open: numeric parameters only."""
        cdef int slot = 0
        self.numeric = {}
        if self.kind != ELEMENTWISE or self.n_in < 1 or self.op._active_inputs is not None:
            return 0
        params = self.op.spec.params
        if any([p.required and not p.numeric for p in params]):
            return 0
        attrs = self.op.parse({p.name: 1.0 for p in params if p.required})
        try:
            self.default = call_for(self.op, attrs, self.n_in)
        except OpTypeError:
            return 0
        memset(self.defaults, 0, sizeof(self.defaults))
        for p in params:
            if p.numeric and p.name in self.default.formula.params:
                slot = self.default.formula.params.index(p.name)
                if p.bounds is None:
                    self.numeric[p.name] = slot
                if p.required:
                    self.required |= 1u << slot
                else:
                    set_value(&self.defaults[slot], p.default)
        if self.op._by_value:
            self.numeric = {}
            return 0
        self.fast = True
        return 0

    def __call__(self, *args, **kwargs):
        cdef Value values[MAX_VALUES]
        cdef unsigned int given = 0
        cdef int slot, k
        cdef bint plain
        cdef double d
        if self.numeric is None:
            self.prepare()
        if self.fast and len(args) == self.n_in:
            plain = True
            for k in range(self.n_in):
                if not isinstance(<object>args[k], Array):
                    plain = False
                    break
            if plain:
                memcpy(values, self.defaults, sizeof(values))
                for name, value in kwargs.items():
                    at = self.numeric.get(name)
                    if at is None or not (type(value) is float or type(value) is int):
                        plain = False
                        break
                    slot = at
                    set_value(&values[slot], value)
                    given |= 1u << slot
                if plain and (given & self.required) == self.required:
                    return run_elementwise(self.default, args, values, None, REQ_WRITE)
        return self.call_bound(args, kwargs)

    cdef object call_bound(self, tuple args, dict kwargs):
        """The general call: bind arguments to inputs and parameters."""
        out = kwargs.pop("out", None)
        kwargs.pop("name", None)
        inputs, attrs = bind_arguments(self.op, args, kwargs, self.parsed)
        return invoke_with(self.op, inputs, attrs, out, REQ_WRITE)

    def __repr__(self):
        return f"<function mx.nd.{self.op.name}>"

    def __getattr__(self, name):
        if name == "__name__" or name == "__qualname__":
            return registry.namespace_of(self.op.name)[1]
        if name == "__doc__":
            return self.op.doc
        if name == "__signature__":
            from mxop.opdef import docs
            return docs.signature(self.op)
        if name == "__module__":
            return "mxop.ndarray"
        if name == "__wrapped__":
            raise AttributeError(name)
        raise AttributeError(f"function {self.op.name} has no attribute {name!r}")


def bind_arguments(op, tuple args, dict kwargs, dict cache):
    """Sort the arguments of a call into inputs and parsed parameters."""
    cdef list inputs
    if op.variadic:
        inputs = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
        if op.num_args_param is not None:
            kwargs.setdefault(op.num_args_param, len(inputs))
        for k, a in enumerate(inputs):
            if not isinstance(a, Array):
                raise OpTypeError(f"operator {op.name}: argument {k} must be an NDArray, got {a!r}")
        return inputs, parsed_params(op, kwargs, cache)
    names = op.arguments
    given = {}
    for position, value in enumerate(args):
        if position < len(names):
            if value is not None:
                given[names[position]] = value
            continue
        at = position - len(names)
        if at >= len(op.spec.names):
            raise OpTypeError(f"operator {op.name} takes at most {len(names) + len(op.spec.names)} arguments, "
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
            raise OpTypeError(f"operator {op.name}: argument {name} must be an NDArray, got {value!r}")
    attrs = parsed_params(op, kwargs, cache)
    wanted = op.input_names(attrs)
    missing = [n for n in wanted if n not in given]
    if missing or len(given) > len(wanted):
        extra = [n for n in given if n not in wanted]
        raise OpTypeError(f"operator {op.name} takes {len(wanted)} input{'s' if len(wanted) != 1 else ''} "
                          f"({', '.join(wanted)}); " + (f"missing: {', '.join(missing)}" if missing else
                          f"not expected: {', '.join(extra)}"))
    return [given[n] for n in wanted], attrs


cdef object parsed_params(object op, dict kwargs, dict cache):
    """Parse parameters, remembering what equal arguments gave."""
    if "ctx" in kwargs and "ctx" not in op.spec.by_name:
        kwargs.pop("ctx")
    if "dtype" in kwargs and "dtype" not in op.spec.by_name:
        kwargs.pop("dtype")
    try:
        key = tuple([(k, type(v), v) for k, v in kwargs.items()])
        found = cache.get(key)
    except TypeError:
        return op.parse(kwargs)
    if found is None:
        found = op.parse(kwargs)
        if len(cache) > 1024:
            cache.clear()
        cache[key] = found
    return found


cdef object call_two(OpFunction f, Array a, Array b, object out):
    """Call a two-input elementwise operator without parameters."""
    if f.numeric is None:
        f.prepare()
    cdef PyObject* items[2]
    items[0], items[1] = <PyObject*>a, <PyObject*>b
    return run_items(f.default, items, None, f.defaults, out, REQ_WRITE)


cdef object call_scalar(OpFunction f, Array a, double d, long long i, object out):
    """Call an elementwise operator of one input and one scalar."""
    cdef Value values[MAX_VALUES]
    cdef PyObject* items[1]
    if f.numeric is None:
        f.prepare()
    values[0].d, values[0].i = d, i
    items[0] = <PyObject*>a
    return run_items(f.default, items, None, values, out, REQ_WRITE)
