"""How an operator of each kind runs on arrays: infer, allocate, run, record.

Formulas have their own module, :mod:`.elementwise`; which kind it is, and what is done around it, is for :mod:`.dispatch`.
"""
from cpython.object cimport PyObject

from mxop._core.array cimport Array, HOST, host_reads, new_like, template, view_at
from mxop._core.device cimport wait_if_asked
from mxop._core.external cimport execute_external
from mxop._core.launched cimport keep_launch, relaunched
from mxop._core.plans cimport Bound, Plan, plan_of
from mxop._core.prepared cimport KernelPlan, plan_for, prepare_kernel
from mxop._core.recent cimport MISSING, Form, Plans, numpy_shapes
from mxop._core.record cimport is_noted, is_recording, record_general, set_recording
from mxop._core.reductions cimport ReductionCall, reduction_call, reduction_run
from mxop._core.results cimport hand_over, new_at, one_result, output_list, requests_of, results_for
from mxop._core.transfer cimport contiguous_copy, copy_into
from mxop._kernels.codes cimport BFLOAT16, FLOAT16
from mxop._kernels.instruction_sets cimport itemsize_of
from mxop._kernels.operands cimport MAX_DIMS, REQ_WRITE

from mxop.support.errors import MXNetError, OpTypeError, translated
from mxop.support.memo import keep
from mxop.opdef import infer
from mxop.opdef.above import ask
from mxop.opdef.places import place

cdef tuple _KINDS = translated.KINDS
cdef object _NAMESPACE = None       # mx.nd, as composites and gradient rules see it


def namespace():
    """Return what composites and gradient rules get as ``F``."""
    return _NAMESPACE


def set_namespace(F):
    """Tell what composites and gradient rules get as ``F``."""
    global _NAMESPACE
    _NAMESPACE = F


# ---- reductions -------------------------------------------------------------------------------------------------------

cdef object run_reduction(object op, object attrs, Array source, object out, int req):
    """Run a reduction: combine the mapped elements in a buffer of the compute type, then finish into the output."""
    cdef ReductionPlan plan
    cdef Array result
    cdef tuple inputs = (source,)
    found = _reductions.find(op, attrs, inputs, False)
    if found is MISSING:
        found = _reductions.put(op, attrs, inputs, False, reduction_plan(op, attrs, source))
    plan = <ReductionPlan>found
    if source.device is HOST:
        result = one_result(op, inputs, out, plan.result, &req)
        reduction_run(plan.call, source, plan.axes, result, req).execute()
    else:
        result = reduce_on_gpu(op, attrs, source, out, req, plan)
        wait_if_asked()
    if plan.mask and out is None:
        result.mask = True
    if is_noted():
        record_general(op, attrs, inputs, [result])
    return result


cdef Array reduce_on_gpu(object op, object attrs, Array source, object out, int req, ReductionPlan plan):
    """Run a reduction on a GPU, by the kernel of one before if there was one like it; return its result."""
    cdef PyObject* only = <PyObject*>source
    cdef list found = relaunched(plan.launches, &only, 1, numpy_shapes(), [plan.each]) if out is None else None
    cdef Array result
    if found is not None:
        return <Array>found[0]
    from mxop._gpu import run as gpu_run
    result = one_result(op, (source,), out, plan.result, &req)
    launched = gpu_run.reduction(op, attrs, source, plan.axes, result, req)
    if out is None:
        keep_launch(plan.launches, &only, 1, numpy_shapes(), launched, [result])
    return result


cdef class ReductionPlan:
    """How a reduction runs on arrays of a shape and type."""

    cdef ReductionCall call
    cdef tuple axes
    cdef Array result               # one of the shape and type of the result
    cdef dict launches              # how the data lie on a GPU -> what was launched
    cdef Py_ssize_t each            # elements of a result
    cdef bint mask                  # which is one


cdef Plans _reductions = Plans()


cdef ReductionPlan reduction_plan(object op, object attrs, Array source):
    cdef ReductionPlan plan = ReductionPlan()
    (shape,), (code,) = op.infer_outputs(attrs, [source.shape_tuple()], [source.dtype])
    plan.call = reduction_call(op, attrs)
    plan.axes, plan.launches, plan.each, plan.mask = plan.call.axes_of(source.ndim), {}, 1, op.gives_mask
    for k in plan.axes:
        plan.each *= source.shape_[k]
    plan.result = template(shape, code)
    return plan


# ---- kernels and composites -----------------------------------------------------------------------------------------------------

cdef dict _inferred = {}


cdef tuple cached_inference(object op, object attrs, tuple shapes, tuple types):
    """Infer outputs, remembering recent answers."""
    cdef tuple key = (op, attrs, shapes, types, numpy_shapes())
    found = _inferred.get(key)
    if found is None:
        found = op.infer_outputs(attrs, list(shapes), list(types))
        keep(_inferred, key, found)
    return <tuple>found


cdef class ViewPlan:
    """Where the elements lie that an operator rearranges, for arrays of certain shapes and strides."""

    cdef Array source, result       # of the shapes and types of the only input, which has these strides, and of the result
    cdef bint numpy                 # what shapes mean
    cdef int ndim
    cdef Py_ssize_t shape[MAX_DIMS]
    cdef Py_ssize_t strides[MAX_DIMS]   # in bytes
    cdef Py_ssize_t offset

    cdef bint fits(self, Array source) except -1:
        """Return whether the plan is for arrays like this one."""
        cdef int k
        if source.dtype != self.source.dtype or source.ndim != self.source.ndim or self.numpy != numpy_shapes():
            return False
        for k in range(source.ndim):
            if source.shape_[k] != self.source.shape_[k] or source.strides_[k] != self.source.strides_[k]:
                return False
        return True

    cdef Array copied(self, Array source):
        """Return a new array of the elements, which is the short way of most calls."""
        cdef Array result = new_like(self.result, source)
        source.device.copy_from(source, self.offset, self.ndim, self.shape, self.strides, result)
        result.mask = source.mask
        return result


cdef Plans _views = Plans()


cdef object run_view(object op, object attrs, object inputs, object out, int req):
    """Run an operator that only rearranges elements: ask where they lie, then copy them."""
    cdef Array source = <Array>inputs[0], result, part
    cdef ViewPlan plan = view_plan_of(op, attrs, inputs)
    if plan is not None and out is None and not is_noted():
        return plan.copied(source)
    if plan is None:  # a reshape that no view of these strides can be
        source = contiguous_copy(source)
        plan = view_plan_of(op, attrs, [source, *inputs[1:]])
    result = one_result(op, inputs, out, plan.result, &req)
    part = view_at(source, plan.ndim, plan.shape, plan.strides, plan.offset)
    copy_into(part, result, req)
    if out is None:
        result.mask = source.mask
    if is_noted():
        record_general(op, attrs, inputs, [result])
    return result


cdef Array picked(object op, object attrs, list inputs):
    """Return what a view operator shows of its first input, where it lies."""
    cdef ViewPlan plan = view_plan_of(op, attrs, inputs)
    return view_at(<Array>inputs[0], plan.ndim, plan.shape, plan.strides, plan.offset)


cdef object run_view_again(object op, Form form, PyObject** values):
    """Run a call that is written as one before, whose plan the form keeps; None where that is no short way."""
    cdef Py_ssize_t k = 0
    cdef Array source
    if form.n_inputs != 1 or form.output_at >= 0 or is_noted():
        return None
    while form.places[k] != 0:
        k += 1
    source = <Array>values[k]
    found = form.plan
    if found is None or not (<ViewPlan>found).fits(source):
        found = form.plan = view_plan_of(op, form.attrs, (source,))
    return None if found is None else (<ViewPlan>found).copied(source)


cdef ViewPlan view_plan_of(object op, object attrs, object inputs):
    """Return what is kept of an operator's view rule for arrays like these."""
    found = _views.find(op, attrs, inputs, True)
    if found is MISSING:
        found = _views.put(op, attrs, inputs, True, view_plan(op, attrs, inputs))
    return <ViewPlan>found


cdef ViewPlan view_plan(object op, object attrs, object inputs):
    """Return what an operator's view rule says of arrays like these; None where it finds no view."""
    cdef ViewPlan plan = ViewPlan()
    cdef Array source = <Array>inputs[0], part
    cdef int i
    shapes = [(<Array>a).shape_tuple() for a in inputs]
    (out_shape,), (out_type,) = op.infer_outputs(attrs, list(shapes), [(<Array>a).dtype for a in inputs])
    shape, strides, offset = op.make_view(shapes[0], source._strides, *shapes[1:], **attrs)
    if strides is None:
        return None
    plan.source, plan.numpy = template(shapes[0], source.dtype), numpy_shapes()
    for i in range(source.ndim):
        plan.source.strides_[i] = source.strides_[i]
    plan.result, part = template(out_shape, out_type), template(shape, source.dtype)
    plan.ndim, plan.offset = part.ndim, offset * itemsize_of(source.dtype)
    for i in range(part.ndim):
        plan.shape[i] = part.shape_[i]  # the stride of an axis of size 1 is arbitrary
        plan.strides[i] = strides[i] * itemsize_of(source.dtype) if part.shape_[i] > 1 else 0
    return plan


cdef object run_kernel(object op, object attrs, object inputs, object out, int req):
    """Run a kernel, on the CPU or on a GPU."""
    cdef KernelPlan plan
    cdef Array a
    cdef list results, targets = None
    attrs = like_result(op, attrs, inputs, out)
    plan = plan_for(op, attrs, inputs) if out is None or (inputs and req == REQ_WRITE) else None
    if plan is not None:
        if out is not None:
            targets = output_list(op, out, <int>len(plan.outputs), plan.n_visible)
        results = plan.run(op, inputs, targets)
        if results is not None:
            mark_moved(op, inputs, results, out)
            if is_noted():
                record_general(op, attrs, inputs, results)
            return results[0] if plan.n_visible == 1 else results[:plan.n_visible]
    shapes = tuple([(<Array>a).shape_tuple() for a in inputs])
    types = tuple([(<Array>a).dtype for a in inputs])
    out_shapes, out_types = cached_inference(op, attrs, shapes, types)
    if op.sized_by is not None:
        out_shapes = shapes_by_values(op, attrs, inputs, out_shapes)
    if out is None and not inputs and attrs.get("ctx"):
        out = placed(attrs["ctx"], out_shapes, out_types)
    targets = output_list(op, out, len(out_shapes), op.num_visible_outputs(attrs, len(inputs)))
    results = results_for(op, inputs, targets, out_shapes, out_types)
    prepare_kernel(op, attrs, list(inputs), results, requests_of(targets, req)).execute()
    wait_if_asked()
    mark_moved(op, inputs, results, out)
    if is_noted():
        record_general(op, attrs, inputs, results)
    return visible(op, attrs, len(inputs), results)


cdef int mark_moved(object op, object inputs, list results, object out) except -1:
    """Let new results of an operator that only moves elements be masks if its inputs are."""
    cdef Array a
    if out is None and inputs and (<Array>inputs[0]).mask and op.moves is not None and all([(<Array>a).mask for a in inputs]):
        for a in results:
            a.mask = True
    return 0


cdef list shapes_by_values(object op, object attrs, object inputs, object shapes):
    """Return the shapes of a call's outputs where they follow from the values of its inputs."""
    cdef long long reads = host_reads()
    arrays = [(<Array>a).device.view(a) for a in inputs]
    host_reads(reads)  # nothing is computed from them that has a gradient
    scope = ((<Array>inputs[0]).device if inputs else HOST).current()
    with scope:
        return op.sized_shapes(attrs, arrays, shapes)


cdef list placed(str ctx, object shapes, object types):
    """Return new arrays on the device that a parameter names."""
    from mxop.context import of_text
    place = of_text(ctx)
    return [new_at(tuple(shape), code, place._device, place.place) for shape, code in zip(shapes, types)]


cdef object run_external(object op, object attrs, object inputs, object out, int req):
    """Run an operator from outside."""
    cdef Array a
    cdef list targets, results
    shapes = tuple([(<Array>a).shape_tuple() for a in inputs])
    types = tuple([(<Array>a).dtype for a in inputs])
    out_shapes, out_types = cached_inference(op, op.plain_attrs(attrs), shapes, types)
    targets = output_list(op, out, len(out_shapes), op.num_visible_outputs(attrs, len(inputs)))
    results = results_for(op, inputs, targets, out_shapes, out_types)
    attrs = op.call_attrs(attrs)
    execute_external(op, attrs, list(inputs), results, requests_of(targets, req))
    if is_noted():
        record_general(op, attrs, inputs, results)
    return visible(op, attrs, len(inputs), results)


cdef object visible(object op, object attrs, int n_inputs, list results):
    """Return what a call returns: one array, or the list of visible outputs (with states: all of them)."""
    cdef int n = len(results) if op.writes else op.num_visible_outputs(attrs, n_inputs)
    return results[0] if n == 1 else results[:n]


cdef list checked_by_rules(object op, object attrs, object inputs):
    """Return the outputs' shapes, as far as the rules that a composite was given tell.

    They may ask for more than what is inside; if that fails too, the message has both.
    """
    cdef Array a
    cdef tuple shapes = tuple([(<Array>a).shape_tuple() for a in inputs]), types = tuple([(<Array>a).dtype for a in inputs])
    cdef tuple key = (op, attrs, shapes, types, None, numpy_shapes())
    found = _inferred.get(key)
    if found is None:
        try:
            expected, found = op.by_rules(attrs, list(shapes), list(types))
        except _KINDS as problem:
            raise translated.error(problem, f"operator {op.name}")
        try:
            infer.check_inputs(op.name, op.input_names(attrs, len(shapes)), expected, shapes)
        except MXNetError as refused:
            try:
                run_function(op, inputs, attrs)
            except MXNetError as problem:
                refused.args = (f"{refused}; {problem}",)
            raise
        keep(_inferred, key, found)
    return <list>found


cdef object like_result(object op, object attrs, object inputs, object out):
    """Let what is made of no array have the shape of the result, where nothing else says it, and its type."""
    if out is None or inputs or attrs.get("shape") != () or numpy_shapes():
        return attrs
    cdef list targets = output_list(op, out, op.num_outputs(attrs, 0), op.num_visible_outputs(attrs, 0))
    cdef Array first
    if targets[0] is None:
        return attrs
    first = <Array>targets[0]
    return attrs.replaced(shape=first.shape_tuple(), dtype=first.dtype if attrs.get("dtype") is None else attrs["dtype"])


cdef object run_composite(object op, object attrs, object inputs, object out, int req):
    """Call the operators of a composite; they record themselves unless the composite has a rule of its own."""
    cdef bint before = is_recording(), own_rule = before and op._gradient is not None
    cdef list results, targets, shapes
    cdef Array a
    cdef Bound found
    cdef Plan plan
    cdef int k
    attrs = like_result(op, attrs, inputs, out)
    if own_rule:
        set_recording(False)
    try:
        found = plan_of(op, attrs, inputs) if op.planned else None
        if found is not None:
            plan = found.plan
            results = found.run(inputs, None if out is None or req != REQ_WRITE else plan.targets(op, out, inputs))
            if not own_rule and (out is None or (plan.n_visible == 1 and results[0] is out)):
                return results[0] if plan.n_visible == 1 else results[:plan.n_visible]
        else:
            shapes = checked_by_rules(op, attrs, inputs) if op.has_rules else None
            results = returned(op, attrs, len(inputs), run_function(op, inputs, attrs))
            if shapes is not None:
                infer.agreed(op.name, op.output_names(attrs, len(inputs)), shapes, [(<Array>a).shape_tuple() for a in results])
    finally:
        set_recording(before)
    if out is not None:
        targets = output_list(op, out, len(results), op.num_visible_outputs(attrs, len(inputs)))
        if any([a is None and b is not None for a, b in zip(results, targets)]):  # nobody can see it, so it was not computed
            raise OpTypeError(f"operator {op.name}: out holds {len(out)} arrays, but a call returns "
                              f"{op.num_visible_outputs(attrs, len(inputs))}")
        made = list(results)
        hand_over(op, results, targets, req)
        for k in range(len(results)):
            if results[k] is not made[k] and (<Array>made[k]).node is not None:  # a variable stays one
                (<Array>results[k]).node, (<Array>results[k]).output = (<Array>made[k]).node, (<Array>made[k]).output
    if own_rule:
        record_general(op, attrs, inputs, results)
    return visible(op, attrs, len(inputs), results)


cdef list returned(object op, object attrs, int n_inputs, object found):
    """Return what a composite's function returned as a list; raise unless it is as many arrays as there are outputs."""
    cdef list results = list(found) if isinstance(found, (list, tuple)) else [found]
    cdef int n = op.num_outputs(attrs, n_inputs)
    for a in results:
        if not isinstance(a, Array):
            raise OpTypeError(f"composite operator {op.name} returned a {type(a).__name__}; expected what operators return"
                              f"{place(op.function)}")
    if len(results) != n:
        raise OpTypeError(f"composite operator {op.name} returned {len(results)} arrays, but has {n} output"
                          f"{'s' if n != 1 else ''}: declare num_outputs={len(results)}, or return {n}")
    return results


cdef object run_function(object op, object inputs, object attrs):
    """Call a composite's function."""
    try:
        for a in inputs:
            if (<Array>a).dtype == FLOAT16 or (<Array>a).dtype == BFLOAT16:
                found = ask("run_in_float32")(op, attrs, inputs)
                if found is not None:
                    return found
                break
        return op.called(_NAMESPACE, inputs, attrs)
    except MXNetError as problem:
        raise translated.error(problem, f"operator {op.name}")
    except _KINDS as problem:
        raise translated.error(problem, f"operator {op.name}")


def forget():
    """Drop what was inferred: an operator was unregistered or replaced."""
    for kept in (_inferred, _views, _reductions):
        kept.clear()
