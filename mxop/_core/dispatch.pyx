"""One call of one operator: infer, allocate, run, record.

The callable behind ``mx.nd.f`` is :class:`OpFunction`.  Elementwise calls with plain arguments take a short way through
it; everything else goes through :func:`invoke`.  ``req`` and overlap are dealt with here, for all operators.
May import :mod:`.array`, :mod:`mxop._kernels` and :mod:`mxop.opdef`.
"""
cimport cython
from cpython.object cimport PyObject
from libc.string cimport memcpy, memset

from mxop._core.array cimport (
    INLINE_DIMS, MAX_VALUES, Array, Node, alloc, alloc_like, alloc_tuple, broadcast_operand, detached, fill_operand,
    new_array, view_of, write_pointer,
)
from mxop._kernels.interp cimport MAX_DIMS, REQ_ADD, REQ_INPLACE, REQ_NULL, REQ_WRITE, Operand, Program, Value
from mxop._kernels.reduce cimport Reduced, reduce
from mxop._kernels.memory cimport Block, block_new, block_release

from mxop import dtypes
from mxop._kernels import interp
from mxop.errors import DeviceError, MXNetError, OpTypeError, OpValueError
from mxop.formula import compile_program, input_
from mxop.opdef import Elementwise, Kernel, Reduction, Scalar, registry
from mxop.opdef.reduction import _numpy_shape

cdef extern from "Python.h":
    PyObject** PySequence_Fast_ITEMS(object sequence)   # of a list or tuple

cdef extern from *:
    """
    #if defined(_MSC_VER)
    static __declspec(thread) int mx_recording = 0, mx_training = 0;
    #else
    static __thread int mx_recording = 0, mx_training = 0;
    #endif
    """
    bint mx_recording
    bint mx_training

cdef enum:
    MAX_OPERANDS = 64      # inputs and outputs of one program run from here
    ELEMENTWISE = 1
    REDUCTION = 2
    KERNEL = 3
    COMPOSITE = 4

cdef unsigned long long _serial = 0
cdef object _NAMESPACE = None       # mx.nd, as composites and gradient rules see it


def set_namespace(F):
    """Tell what composites and gradient rules get as ``F``."""
    global _NAMESPACE
    _NAMESPACE = F


# ---- recording state, one for each thread -----------------------------------------------------------------------------------

cdef bint is_recording() noexcept nogil:
    return mx_recording


cdef bint is_training() noexcept nogil:
    return mx_training


cdef bint set_recording(bint value) noexcept nogil:
    global mx_recording
    cdef bint before = mx_recording
    mx_recording = value
    return before


cdef bint set_training(bint value) noexcept nogil:
    global mx_training
    cdef bint before = mx_training
    mx_training = value
    return before


# ---- elementwise ------------------------------------------------------------------------------------------------------------

cdef class BackwardPlan:
    """Which operands the backward formula takes, and the call that computes it."""


cdef class ElementwiseCall:
    """An elementwise operator with its static parameters fixed: a formula, and its program for each compute type."""

    def __init__(self, op, attrs, int n_in):
        self.op, self.attrs, self.n_in = op, attrs, n_in
        self.formula = op.formula(attrs, n_in)
        self.n_out = len(self.formula.roots)
        self.broadcast = op.broadcast
        self.plain_types = op.out_dtype is None
        self.has_rule = op.differentiable
        self.programs = [None] * 7
        self.backwards = {}
        self.scalar_mask = 0
        for k, name in enumerate(self.formula.params):
            if op.spec.by_name[name].kind is Scalar:
                self.scalar_mask |= 1u << <int>k
        if len(self.formula.params) > MAX_VALUES:
            raise OpValueError(f"operator {op.name} has {len(self.formula.params)} numeric parameters; "
                               f"at most {MAX_VALUES} are supported")
        if self.n_in + self.n_out > MAX_OPERANDS:
            raise OpValueError(f"operator {op.name}: {self.n_in} inputs; at most {MAX_OPERANDS - self.n_out} are supported")

    cdef Program program(self, int ctype):
        found = self.programs[ctype]
        if found is None:
            try:
                listing = compile_program(self.formula.roots, self.n_in, lambda name: interp.has_instruction(name, ctype))
            except KeyError as missing:
                raise OpTypeError(f"operator {self.op.name}: {missing.args[0]} is not defined for "
                                  f"{dtypes.NAMES[ctype]} data") from None
            found = self.programs[ctype] = Program(listing, self.formula.params, ctype)
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

    cdef BackwardPlan backward(self, tuple wanted):
        """Return how to compute the gradients of the `wanted` inputs."""
        found = self.backwards.get(wanted)
        if found is None:
            found = self.backwards[wanted] = make_backward_plan(self, wanted)
        return <BackwardPlan>found


cdef BackwardPlan make_backward_plan(ElementwiseCall call, tuple wanted):
    cdef BackwardPlan plan = BackwardPlan()
    rule = call.op.backward_formula(call.attrs, call.n_in)
    plan.wanted = tuple([i for i in wanted if rule.roots[i] is not None])
    plan.heads, plan.inputs, plan.outputs = rule.heads, rule.inputs, rule.outputs
    if plan.wanted:
        backward_op = call.op.backward_operator()
        attrs = backward_op.attrs_for(call.attrs, plan.wanted, call.n_in)
        n = len(plan.heads) + len(plan.inputs) + len(plan.outputs)
        plan.call = function_of(backward_op).call_for(attrs, n)
    return plan


cdef inline int set_value(Value* value, object number) except -1:
    """Hold a parameter as a real number and as an integer."""
    cdef double d
    if type(number) is float:
        d = <double>number
        value.d = d
        value.i = <long long>d if -9.2e18 < d < 9.2e18 else 0
    else:
        value.d = float(number)
        try:
            value.i = int(number)
        except (OverflowError, ValueError):
            value.i = 0
    return 0


cdef int raise_shapes(ElementwiseCall call, object inputs) except -1:
    """Let inference raise its error for inputs that do not fit together."""
    shapes = [(<Array>a).shape_tuple() for a in inputs]
    call.op.infer_shape(call.attrs, shapes, [None] * call.n_out)
    raise OpValueError(f"operator {call.op.name}: inputs of shapes {shapes} do not fit together")


cdef bint same_dims(Array a, Array b) noexcept:
    cdef int i
    if a.ndim != b.ndim:
        return False
    for i in range(a.ndim):
        if a.shape_[i] != b.shape_[i]:
            return False
    return True


cdef int common_shape(ElementwiseCall call, object inputs, Py_ssize_t* shape) except -1:
    """Broadcast the inputs' shapes; return the rank."""
    cdef int ndim = 0, i, at
    cdef Array a
    for a in inputs:
        if a.ndim > ndim:
            ndim = a.ndim
    for i in range(ndim):
        shape[i] = 1
    for a in inputs:
        for i in range(a.ndim):
            at = ndim - a.ndim + i
            if a.shape_[i] != 1:
                if shape[at] != 1 and shape[at] != a.shape_[i]:
                    raise_shapes(call, inputs)
                shape[at] = a.shape_[i]
    return ndim


cdef bint overlaps(Array a, Array b) noexcept:
    """Tell whether the memory of two arrays may overlap."""
    cdef char* a_low
    cdef char* a_high
    cdef char* b_low
    cdef char* b_high
    if a.data == NULL or b.data == NULL or a.size == 0 or b.size == 0:
        return False
    extent(a, &a_low, &a_high)
    extent(b, &b_low, &b_high)
    return a_low < b_high and b_low < a_high


cdef void extent(Array a, char** low, char** high) noexcept:
    cdef int i
    low[0] = a.data
    high[0] = a.data + dtypes_size(a.dtype)
    for i in range(a.ndim):
        if a.strides_[i] < 0:
            low[0] += (a.shape_[i] - 1) * a.strides_[i]
        else:
            high[0] += (a.shape_[i] - 1) * a.strides_[i]


cdef inline Py_ssize_t dtypes_size(int dtype) noexcept:
    return 4 if dtype == 0 or dtype == 4 else 8 if dtype == 1 or dtype == 6 else 2 if dtype == 2 or dtype == 12 else 1


cdef bint same_layout(Array a, Array b) noexcept:
    """Tell whether element k of both arrays lies at the same address."""
    cdef int i
    if a.data != b.data or a.dtype != b.dtype or not same_dims(a, b):
        return False
    for i in range(a.ndim):
        if a.shape_[i] != 1 and a.strides_[i] != b.strides_[i]:
            return False
    return True


cdef Array prepared_output(object op, object out, object shape, int dtype):
    """Check an array given as ``out``."""
    if not isinstance(out, Array):
        raise OpTypeError(f"operator {op.name}: out must be an NDArray, got {type(out).__name__}")
    cdef Array a = <Array>out
    if a.shape_tuple() != shape:
        raise OpValueError(f"operator {op.name}: out has shape {a.shape_tuple()}, the result has shape {shape}")
    if a.dtype != dtype:
        raise OpTypeError(f"operator {op.name}: out has dtype {dtypes.NAMES[a.dtype]}, the result has dtype "
                          f"{dtypes.NAMES[dtype]}")
    if a.readonly_:
        raise OpValueError(f"operator {op.name}: out is read-only")
    if mx_recording and a.node is not None:
        raise MXNetError(f"operator {op.name}: writing into an array that autograd has recorded (inplace operations, out=, "
                         "x[:]=) is not supported inside autograd.record(); use a new array, or write outside the scope")
    return a


cdef object run_elementwise(ElementwiseCall call, object inputs, const Value* values, object out, int req):
    """Run an elementwise call on a list or tuple of arrays; return its output, or a list of several."""
    return run_items(call, PySequence_Fast_ITEMS(inputs), inputs, values, out, req)


cdef object run_items(ElementwiseCall call, PyObject** items, object inputs, const Value* values, object out, int req):
    """The body of :func:`run_elementwise`; `inputs` may be None, then they are listed only if they are needed as objects."""
    cdef Array first, a
    cdef int k, n_in = call.n_in
    cdef bint same = True, plain
    cdef list found
    if n_in == 0:
        raise OpTypeError(f"operator {call.op.name} needs an input")
    first = <Array>items[0]
    plain = first.contiguous and first.gpu is None and out is None and call.plain_types and n_in + call.n_out <= 8
    for k in range(1, n_in):
        a = <Array>items[k]
        if a is first:
            continue
        if a.dtype != first.dtype and call.plain_types:
            call.op.infer_type(call.attrs, [(<Array>items[i]).dtype for i in range(n_in)], [-1] * call.n_out)
        if not same_dims(a, first):
            same = False
            if not call.broadcast:
                raise_shapes(call, listed(items, n_in))
        if a.device_id != first.device_id or (a.gpu is None) != (first.gpu is None):
            raise_devices(call.op, listed(items, n_in))
        plain = plain and a.contiguous
    if plain and same and first.dtype <= 1:  # float32 and float64 in one block: nothing to set up
        found = run_plain(call, call.program(first.dtype), items, n_in, first, values)
        if found is not None:
            if mx_recording and call.has_rule:
                record_elementwise(call, listed(items, n_in) if inputs is None else inputs, found, values)
            return found[0] if call.n_out == 1 else found
    if inputs is None:
        inputs = listed(items, n_in)
    if first.gpu is not None:
        from mxop._gpu import run as gpu_run
        return finish_gpu(call.op, call, inputs, values, out, gpu_run.elementwise(
            call, list(inputs), [values[k].d for k in range(len(call.formula.params))], out, req))
    return run_large(call, inputs, values, out, req, same)


cdef list run_plain(ElementwiseCall call, Program program, PyObject** items, int n_in, Array first, const Value* values):
    """Run a small call on plain arrays; None when it is not small."""
    cdef char* pointers[8]
    cdef list results
    cdef Array result
    cdef int k
    if first.size > 2048:
        return None
    for k in range(n_in):
        pointers[k] = (<Array>items[k]).data
    results = []
    for k in range(call.n_out):
        result = alloc_like(first)
        result.device_id = first.device_id
        pointers[n_in + k] = result.data
        results.append(result)
    return results if program.run_tiny(first.size, pointers, values) else None


cdef list listed(PyObject** items, int n):
    return [<object>items[k] for k in range(n)]


cdef object run_large(ElementwiseCall call, object inputs, const Value* values, object out, int req, bint same):
    """Describe the operands to the interpreter and run the program."""
    cdef Operand operands[MAX_OPERANDS]
    cdef Py_ssize_t shape[MAX_DIMS]
    cdef Value whole[MAX_VALUES]
    cdef Array first = <Array>inputs[0], a, result
    cdef int k, ndim, n_in = call.n_in, dtype = first.dtype, ctype
    cdef Program program
    cdef Py_ssize_t size
    if same:
        ndim, size = first.ndim, first.size
        memcpy(shape, first.shape_, ndim * sizeof(Py_ssize_t))
    else:
        ndim = common_shape(call, inputs, shape)
        size = 1
        for k in range(ndim):
            size *= shape[k]
    ctype = compute_type(call, first, inputs)
    program = call.program(ctype)
    if ctype == 1 and call.scalar_mask and dtype not in dtypes.FLOATS:
        memcpy(whole, values, sizeof(whole))
        for k in range(MAX_VALUES):
            if call.scalar_mask & (1u << k):
                whole[k].d = <double>whole[k].i
        values = whole
    for k in range(n_in):
        a = <Array>inputs[k]
        if same or same_shape(a, ndim, shape):
            fill_operand(&operands[k], a)
        else:
            broadcast_operand(&operands[k], a, ndim, shape)
    if out is None and call.n_out == 1 and call.plain_types:
        result = alloc(ndim, shape, dtype)
        result.device_id = first.device_id
        operands[n_in].data = result.data
        operands[n_in].dtype = dtype
        operands[n_in].contiguous = True
        operands[n_in].staged = False
        operands[n_in].req = REQ_WRITE
        program.run(size, operands, &operands[n_in], values)
        if mx_recording and call.has_rule:
            record_elementwise(call, inputs, [result], values)
        return result
    return elementwise_outputs(call, inputs, values, out, req, operands, program, ndim, shape, size, dtype)


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
    if not call.plain_types:
        for a in inputs:
            if a.dtype != dtype:
                dtype = 1 if (a.dtype in dtypes.FLOATS) or (dtype in dtypes.FLOATS) else 6
    if dtype == 0 or dtype == 1:
        return dtype
    return call.formula.compute_type(dtype)


cdef object elementwise_outputs(ElementwiseCall call, object inputs, const Value* values, object out, int req,
                                Operand* operands, Program program, int ndim, Py_ssize_t* shape, Py_ssize_t size, int dtype):
    """The general case: several outputs, other types, given arrays, requests."""
    cdef list results = [], targets, late = []
    cdef Array target, a
    cdef int k, i, out_dtype
    cdef tuple full = tuple([shape[k] for k in range(ndim)])
    if call.plain_types:
        types = [dtype] * call.n_out
    else:
        types = call.op.infer_type(call.attrs, [(<Array>a).dtype for a in inputs], [-1] * call.n_out)[1]
    targets = output_list(call.op, out, call.n_out)
    for k in range(call.n_out):
        out_dtype = types[k]
        if targets[k] is None:
            target = alloc(ndim, shape, out_dtype)
            operands[call.n_in + k].staged = False
            operands[call.n_in + k].req = REQ_WRITE
            results.append(target)
        else:
            target = prepared_output(call.op, targets[k], full, out_dtype)
            results.append(target)
            operands[call.n_in + k].staged = False
            operands[call.n_in + k].req = req
            for a in inputs:
                if overlaps(a, target):
                    if same_layout(a, target):
                        operands[call.n_in + k].staged = True
                    else:  # copy semantics: compute beside, then copy
                        late.append((target, k))
                        target = alloc(ndim, shape, out_dtype)
                        operands[call.n_in + k].req = REQ_WRITE
                        break
        i = operands[call.n_in + k].staged
        req_k = operands[call.n_in + k].req
        fill_operand(&operands[call.n_in + k], target)
        operands[call.n_in + k].staged = i
        operands[call.n_in + k].req = req_k
        if late and late[-1][1] == k:
            late[-1] = (late[-1][0], target)
    program.run(size, operands, &operands[call.n_in], values)
    for final, beside in late:
        copy_into(<Array>beside, <Array>final, req)
    if mx_recording and call.has_rule:
        record_elementwise(call, inputs, results, values)
    return results[0] if call.n_out == 1 else results


cdef list output_list(object op, object out, int n):
    """Return the given outputs as a list of `n`, None where there is none."""
    cdef list given
    if out is None:
        return [None] * n
    given = list(out) if isinstance(out, (list, tuple)) else [out]
    if len(given) > n:
        raise OpTypeError(f"operator {op.name} has {n} output{'s' if n > 1 else ''}, out holds {len(given)}")
    return given + [None] * (n - len(given))


cdef int raise_devices(object op, object inputs) except -1:
    devices = ", ".join([str(a.context) for a in inputs])
    raise OpValueError(f"operator {op.name}: inputs lie on different devices ({devices}); use as_in_context")


# ---- recording ----------------------------------------------------------------------------------------------------------------

cdef inline bint any_node(object inputs) noexcept:
    cdef Array a
    for a in inputs:
        if a.node is not None:
            return True
    return False


cdef Node new_node(object op, object inputs, list outputs):
    """Record a call: link it to where its inputs came from."""
    global _serial
    cdef Node node = Node.__new__(Node)
    cdef Array a
    _serial += 1
    node.op = op
    node.serial = _serial
    node.parents = [(<Array>a).node for a in inputs]
    node.parent_outputs = [(<Array>a).output for a in inputs]
    node.n_outputs = len(outputs)
    return node


def make_node(list inputs, int n_outputs):
    """Return a node without operator, for calls that the user differentiates (autograd.Function)."""
    return new_node(None, inputs, [None] * n_outputs)


cdef int link_outputs(Node node, list outputs) except -1:
    cdef Array a
    cdef int k = 0
    for a in outputs:
        if a is not None:
            a.node = node
            a.output = k
        k += 1
    return 0


cdef int record_elementwise(ElementwiseCall call, object inputs, list outputs, const Value* values) except -1:
    """Record an elementwise call, keeping only the operands that its backward formula mentions."""
    cdef Node node
    cdef Array a
    cdef int k
    if not any_node(inputs):
        return 0
    if call.op._gradient is not None:
        return record_general(call.op, filled_attrs(call, values), inputs, outputs)
    if call.rule is None:
        call.rule = call.op.backward_formula(call.attrs, call.n_in)
    node = new_node(call.op, inputs, outputs)
    node.call = call
    memcpy(node.values, values, len(call.formula.params) * sizeof(Value))
    # shapes are needed to undo broadcasting, so a broadcasting call keeps its inputs
    if call.broadcast:
        node.inputs = list(inputs)
    else:
        node.inputs = [None] * call.n_in
        for k in call.rule.inputs:
            node.inputs[k] = inputs[k]
    if call.rule.outputs or call.n_out > 1:
        node.outputs = [detached(<Array>outputs[k]) for k in range(call.n_out)]
    link_outputs(node, outputs)
    return 0


cdef object filled_attrs(ElementwiseCall call, const Value* values):
    """Return the parameters of a call, the numeric ones as given."""
    changes = {}
    for k, name in enumerate(call.formula.params):
        changes[name] = values[k].d
    return call.attrs.replaced(**changes) if changes else call.attrs


cdef int record_general(object op, object attrs, object inputs, list outputs) except -1:
    """Record a reduction, kernel or composite with a rule."""
    cdef Node node
    if not any_node(inputs):
        return 0
    node = new_node(op, inputs, outputs)
    node.call = attrs
    node.inputs = list(inputs)
    node.outputs = [detached(<Array>a) for a in outputs]
    link_outputs(node, outputs)
    return 0


cdef object finish_gpu(object op, ElementwiseCall call, object inputs, const Value* values, object out, list results):
    if mx_recording and call.has_rule:
        record_elementwise(call, inputs, results, values)
    return results[0] if len(results) == 1 else results


# ---- copies ---------------------------------------------------------------------------------------------------------------------

cdef list _copies = [None] * 7


cdef Program copy_program(int ctype):
    found = _copies[ctype]
    if found is None:
        found = _copies[ctype] = Program(compile_program((input_(0),), 1, lambda name: True), (), ctype)
    return <Program>found


cdef int copy_into(Array source, Array target, int req) except -1:
    """Copy (or add, by `req`) one array into another of the same number of elements, converting types."""
    cdef Operand operands[2]
    cdef int ctype = source.dtype
    if req == REQ_NULL:
        return 0
    if source.gpu is not None or target.gpu is not None:
        from mxop._gpu import device
        device.copy(source, target, req)
        return 0
    write_pointer(target)
    if overlaps(source, target) and not same_layout(source, target):
        source = contiguous_copy(source)
    if source.dtype == target.dtype and req != REQ_ADD:
        # bits stay as they are: move float16 as float16 would need no arithmetic, but the compute type is exact for it
        pass
    ctype = 0 if ctype == 2 or ctype == 12 else 3 if ctype == 7 else ctype
    fill_operand(&operands[0], source)
    fill_operand(&operands[1], target)
    operands[1].req = req
    operands[1].staged = False
    if operands[0].contiguous and operands[1].contiguous and source.dtype == target.dtype and req != REQ_ADD:
        if source.size * dtypes_size(source.dtype) < 65536:
            memcpy(target.data, source.data, source.size * dtypes_size(source.dtype))
            return 0
    copy_program(ctype).run(source.size, &operands[0], &operands[1], NULL)
    return 0


cdef Array contiguous_copy(Array a):
    """Return a C-order copy."""
    cdef Array result = alloc_like(a)
    result.device_id = a.device_id
    if a.gpu is not None:
        from mxop._gpu import device
        return device.contiguous_copy(a)
    copy_into(a, result, REQ_WRITE)
    return result


def copy(Array source, Array target, int req=REQ_WRITE):
    """Copy one array into another; see :func:`copy_into`."""
    if source.size != target.size:
        raise OpValueError(f"cannot copy an array of shape {source.shape_tuple()} to shape {target.shape_tuple()}")
    copy_into(source, target, req)


def contiguous(Array a):
    """Return the array itself when it is contiguous, else a C-order copy."""
    return a if a.contiguous and a.gpu is None else contiguous_copy(a)


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
    if mx_recording and op.differentiable:
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
    if mx_recording and op.differentiable:
        record_general(op, attrs, inputs, results)
    return visible(op, attrs, len(inputs), results)


cdef object visible(object op, object attrs, int n_inputs, list results):
    """Return what a call returns: one array, or the list of visible outputs."""
    cdef int n = op.num_visible_outputs(attrs, n_inputs)
    return results[0] if n == 1 else results[:n]


cdef object run_composite(object op, object attrs, object inputs, object out, int req):
    """Call the operators of a composite; they record themselves unless the composite has a rule of its own."""
    cdef bint own_rule = op._gradient is not None, before = mx_recording
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
        call = f.call_for(attrs, len(inputs))
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


cdef class OpFunction:
    """An operator as a function of arrays."""

    def __init__(self, op):
        self.op = op
        self.calls, self.parsed, self.numeric = {}, {}, None
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
            self.default = self.call_for(attrs, self.n_in)
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

    cdef ElementwiseCall call_for(self, attrs, int n):
        key = (n, self.op.static_key(attrs))
        found = self.calls.get(key)
        if found is None:
            if len(self.calls) > 1024:
                self.calls.clear()
            made = ElementwiseCall(self.op, attrs, n)
            key = (n, self.op.static_key(attrs))  # tracing may have found that parameters are needed by value
            found = self.calls[key] = made
        return <ElementwiseCall>found

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
