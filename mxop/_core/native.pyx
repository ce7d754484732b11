"""Operators of compiled libraries: one call through the C ABI of ``mxop/library/include/mxop/abi.h``.

What is the same from call to call is made once: the parameters (:class:`Bound`), the shapes and types that were inferred
(:class:`Plan`) and the C structures (:class:`Frame`).  Everything that a library returns is checked before it is used.
"""
cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from mxop._core.abi cimport (
    MXOP_BACKWARD_CPU, MXOP_BACKWARD_GPU, MXOP_CPU, MXOP_FORWARD_CPU, MXOP_FORWARD_GPU, MXOP_GPU, MXOP_RUN_BACKWARD,
    MXOP_RUN_TRAINING, MXOP_STATE_CPU, MXOP_STATE_GPU, MXOP_SUBGRAPH, MXOPAttr, MXOPOperator, MXOPRun,
    MXOPShape, MXOPTensor,
)
from mxop._core.array cimport Array, HOST, alloc, read_pointer, write_pointer
from mxop._core.device cimport device_of
from mxop._core.results cimport clear, common_device, fresh_like
from mxop._core.native_host cimport copy_table, failure, free_memory, seed_of, table_text
from mxop._core.record cimport is_noted, is_recording, is_training, record_general
from mxop._core.transfer cimport contiguous_copy
from mxop._kernels.operands cimport MAX_DIMS

from mxop.support.errors import DeviceError, MXNetError, OpValueError

cdef enum:
    MANY = 1024                 # parameters, inputs, outputs: more is a mistake
    PLANS = 8

cdef uint64_t _version = 0      # of tensors: no two calls share one


cdef void new_version() noexcept:
    global _version
    _version += 1


# ---- operators ------------------------------------------------------------------------------------------------------------------


cdef NativeOp native_op(const MXOPOperator* given, str library):
    """Return a library's operator after a look at its table."""
    cdef NativeOp made = NativeOp.__new__(NativeOp)
    what = f"library {library}: an operator's table"
    copy_table(<const char*>given, <char*>&made.table, sizeof(made.table),
               <Py_ssize_t>(<char*>&made.table.run - <char*>&made.table) + sizeof(void*), what)
    made.given, made.library = given, library
    made.name = table_text(made.table.name, 200, f"{what}: name")
    made.doc = "" if made.table.doc == NULL else table_text(made.table.doc, 1 << 20, f"library {library}: operator {made.name}: doc")
    made.gradient = None if made.table.gradient == NULL else table_text(
        made.table.gradient, 200, f"library {library}: operator {made.name}: gradient")
    names = "" if made.table.input_names == NULL else table_text(
        made.table.input_names, 1 << 16, f"library {library}: operator {made.name}: input_names")
    made.input_names = tuple([n.strip() for n in names.split(",") if n.strip()])
    made.bounds, made.calls = {}, {}
    if made.table.bind == NULL or made.table.run == NULL:
        raise MXNetError(f"operator {made.name} of library {library} has no function that "
                         f"{'parses its parameters' if made.table.bind == NULL else 'runs it'}")
    if not made.table.functions & (MXOP_FORWARD_CPU | MXOP_FORWARD_GPU):
        raise MXNetError(f"operator {made.name} of library {library} has no forward function: call setForward, or "
                         f"setCreateOpState, for \"cpu\" or \"gpu\"")
    if made.table.functions & (MXOP_STATE_CPU | MXOP_STATE_GPU) and made.table.create_state == NULL:
        raise MXNetError(f"operator {made.name} of library {library} keeps a state but has no create_state")
    return made


cdef class NativeOp:
    """A library's operator; see :class:`mxop.library.operator.LibraryOperator` for what is registered."""

    @property
    def stateful(self):
        """Whether calls have a state."""
        return bool(self.table.functions & (MXOP_STATE_CPU | MXOP_STATE_GPU))

    @property
    def has_backward(self):
        """Whether there is a backward function."""
        return bool(self.table.functions & (MXOP_BACKWARD_CPU | MXOP_BACKWARD_GPU))

    @property
    def is_subgraph(self):
        """Whether it runs subgraphs."""
        return bool(self.table.functions & MXOP_SUBGRAPH)

    def bind(self, attrs):
        """Return the operator with these parsed parameters."""
        found = self.bounds.get(attrs)
        if found is None:
            found = bind(self, attrs)
            if len(self.bounds) > MANY:
                self.bounds.clear()
                self.calls.clear()
            self.bounds[attrs] = found
        return found

    cdef Bound bound_of(self, dict kwargs):
        """Return the operator with a call's keyword arguments, or None when they need the general way."""
        cdef list key = []
        for name, value in kwargs.items():
            if not (type(value) is str or type(value) is int or type(value) is bool
                    or (type(value) is float and value != 0.0)) or name == "name" or name == "out":
                return None
            key.append(name)
            key.append(type(value))
            key.append(value)
        made = tuple(key)
        found = self.calls.get(made)
        if found is None:
            found = self.calls[made] = self.bind(self.op.parse(kwargs))
        return <Bound>found

    cdef object call(self, tuple args, dict kwargs):
        """Run a plain call; None means that it is not one."""
        cdef Bound bound = self.plain
        cdef object a
        cdef bint plain = True
        if kwargs:
            bound = self.bound_of(kwargs)
        elif bound is None:
            bound = self.plain = self.bind(self.op.parse({}))
        if bound is None or not bound.direct or len(args) != bound.n_inputs:
            return None
        for a in args:
            if not isinstance(a, Array) or (<Array>a).device is not HOST:
                return None
            plain = plain and (<Array>a).contiguous
        if plain:
            return bound.run_direct(args, args)
        return bound.run_direct(tuple([a if (<Array>a).contiguous else contiguous_copy(<Array>a) for a in args]), args)


# ---- plans ----------------------------------------------------------------------------------------------------------------------


cdef class Plan:
    def __cinit__(self):
        self.forms = NULL

    def __dealloc__(self):
        free(self.forms)

    cdef bint fits(self, tuple inputs) noexcept:
        """Return whether a call's inputs have these shapes and types."""
        cdef Py_ssize_t* form = self.forms
        cdef Array a
        cdef int i
        cdef object item
        for item in inputs:
            a = <Array>item
            if a.ndim != form[0] or a.dtype != form[1]:
                return False
            form += 2
            for i in range(a.ndim):
                if a.shape_[i] != form[i]:
                    return False
            form += a.ndim
        return True


cdef Plan make_plan(tuple inputs, out_shapes, out_types):
    cdef Plan plan = Plan.__new__(Plan)
    cdef list numbers = []
    cdef Array a
    cdef Py_ssize_t k
    for a in inputs:
        numbers += [a.ndim, a.dtype, *a.shape_tuple()]
    for shape, dtype in zip(out_shapes, out_types):
        numbers += [len(shape), dtype, *shape]
    plan.n_inputs, plan.n_outputs = len(inputs), len(out_shapes)
    plan.forms = <Py_ssize_t*>calloc(len(numbers) + 1, sizeof(Py_ssize_t))
    if plan.forms == NULL:
        raise MemoryError()
    for k in range(len(numbers)):
        plan.forms[k] = numbers[k]
    return plan


# ---- frames ---------------------------------------------------------------------------------------------------------------------


@cython.no_gc_clear
cdef class Frame:
    def __cinit__(self, NativeOp native, int n_inputs, int n_outputs):
        cdef int k, n = n_inputs + n_outputs
        self.native = native
        self.tensors = <MXOPTensor*>calloc(n + 1, sizeof(MXOPTensor))
        self.pointers = <MXOPTensor**>calloc(n + 1, sizeof(MXOPTensor*))
        if self.tensors == NULL or self.pointers == NULL:
            raise MemoryError()
        for k in range(n):
            self.pointers[k] = &self.tensors[k]
            self.tensors[k].struct_size = sizeof(MXOPTensor)
        memset(&self.run, 0, sizeof(self.run))
        self.run.struct_size = sizeof(self.run)
        self.run.frame = &self.kept
        self.run.n_inputs, self.run.n_outputs = n_inputs, n_outputs
        self.run.inputs, self.run.outputs = self.pointers, self.pointers + n_inputs
        self.run.call = &self.memory

    def __dealloc__(self):
        if self.kept != NULL and self.native.table.release_frame != NULL:
            with nogil:
                self.native.table.release_frame(self.native.given, self.kept)
        free(self.tensors)
        free(self.pointers)

    cdef int fill(self, int k, Array a) except -1:
        """Describe an array in C order."""
        cdef MXOPTensor* t = &self.tensors[k]
        t.dtype, t.shape, t.ndim, t.size = a.dtype, <const int64_t*>a.shape_, a.ndim, a.size
        t.version, t.device_type, t.device_id = _version, a.device.code, a.device_id
        t.data = <void*>(read_pointer(a) if k < self.run.n_inputs else write_pointer(a))
        return 0

    cdef void renew(self) noexcept:
        """Say that the elements of all arrays may have changed."""
        cdef int k
        new_version()
        for k in range(self.run.n_inputs + self.run.n_outputs):
            self.tensors[k].version = _version


# ---- operators with parameters --------------------------------------------------------------------------------------------------


cdef Bound bind(NativeOp native, object attrs):
    """Let the library parse the parameters of a call."""
    cdef Bound made = Bound.__new__(Bound)
    cdef MXOPAttr* items
    cdef int32_t n_inputs = 0, n_outputs = 0, n = len(attrs)
    cdef int failed, k
    cdef void* handle = NULL
    made.native, made.attrs, made.plans = native, attrs, []
    texts = []
    for name, value in attrs.items():
        for text in (name, str(value)):
            if "\0" in text:
                raise OpValueError(f"operator {native.name}: parameter {name!r} contains a zero character")
            texts.append(text.encode("utf-8", "surrogateescape"))
    items = <MXOPAttr*>calloc(n + 1, sizeof(MXOPAttr))
    if items == NULL:
        raise MemoryError()
    try:
        for k in range(n):
            items[k].key, items[k].value = <bytes>texts[2 * k], <bytes>texts[2 * k + 1]
        with nogil:
            failed = native.table.bind(native.given, n, items, &handle, &n_inputs, &n_outputs)
    finally:
        free(items)
    if failed:
        raise failed_call(native, "parsing its parameters")
    made.handle = handle
    if native.is_subgraph:
        n_inputs, n_outputs = max(n_inputs, -1), max(n_outputs, -1)
    elif not (0 <= n_inputs <= MANY and 1 <= n_outputs <= MANY):
        raise MXNetError(f"operator {native.name} of library {native.library} says that it has {n_inputs} inputs and "
                         f"{n_outputs} outputs; expected 0 to {MANY} inputs and 1 to {MANY} outputs")
    made.n_inputs, made.n_outputs = n_inputs, n_outputs
    made.mutated = made.find_mutated()
    made.stateful = native.stateful
    made.direct = made.on_cpu(False) and not made.mutated and n_inputs > 0 and not native.is_subgraph
    return made


cdef object failed_call(NativeOp native, str what):
    return MXNetError(f"operator {native.name}: {what} failed in library {native.library}: {failure()}")


@cython.no_gc_clear
cdef class Bound:
    def __dealloc__(self):
        if self.handle != NULL and self.native.table.unbind != NULL:
            with nogil:
                self.native.table.unbind(self.native.given, self.handle)

    def set_counts(self, int n_inputs, int n_outputs):
        """Tell how many inputs and outputs there are, where the library left it open."""
        self.n_inputs, self.n_outputs = n_inputs, n_outputs

    def find_mutated(self):
        """Return the positions of the inputs that are states."""
        cdef int32_t positions[MANY]
        cdef int32_t count = 0
        cdef int failed
        if self.native.table.mutated_inputs == NULL or self.n_inputs <= 0:
            return ()
        with nogil:
            failed = self.native.table.mutated_inputs(self.native.given, self.handle, self.n_inputs, positions, &count)
        if failed:
            raise failed_call(self.native, "listing the inputs that it writes")
        found = [positions[k] for k in range(min(max(count, 0), MANY))]
        if count != len(found) or len(set(found)) != count or any(not 0 <= k < self.n_inputs for k in found):
            raise MXNetError(f"operator {self.native.name} of library {self.native.library} says that it writes {count} "
                             f"inputs, {found}; expected different positions below {self.n_inputs}")
        return tuple(found)

    # ---- what the library says -------------------------------------------------------------------------------------------
    @property
    def has_infer_type(self):
        return self.native.table.infer_type != NULL

    @property
    def has_infer_shape(self):
        return self.native.table.infer_shape != NULL

    @property
    def has_infer_storage(self):
        return self.native.table.infer_storage != NULL

    # ---- calls ----------------------------------------------------------------------------------------------------------
    def make_state(self, list inputs):
        """Return the state of one call."""
        cdef State made = State.__new__(State)
        cdef int n = len(inputs), failed, k
        cdef int64_t* dims = <int64_t*>calloc(n * MAX_DIMS + 1, sizeof(int64_t))
        cdef MXOPShape* shapes = <MXOPShape*>calloc(n + 1, sizeof(MXOPShape))
        cdef int32_t* types = <int32_t*>calloc(n + 1, sizeof(int32_t))
        cdef Array first = <Array>inputs[0] if inputs else None
        cdef int32_t device = MXOP_CPU if first is None else first.device.code
        cdef int32_t device_id = first.device_id if first is not None else 0
        cdef void* handle = NULL
        self.check_device(device, MXOP_STATE_CPU, MXOP_STATE_GPU, "state")
        try:
            if dims == NULL or shapes == NULL or types == NULL:
                raise MemoryError()
            put_shapes([(<Array?>a).shape_tuple() for a in inputs], dims, shapes)
            for k in range(n):
                types[k] = (<Array>inputs[k]).dtype
            with nogil:
                failed = self.native.table.create_state(self.native.given, self.handle, device, device_id, n, shapes,
                                                        types, &handle)
        finally:
            free(dims)
            free(shapes)
            free(types)
        made.bound, made.handle = self, handle
        if failed:
            raise failed_call(self.native, "making its state")
        if handle == NULL:
            raise MXNetError(f"operator {self.native.name}: create_state of library {self.native.library} gave no state")
        return made

    def run(self, object state, bint is_train, list inputs, list outputs):
        """Run forward on arrays in C order."""
        cdef Frame frame = self.take(False)
        cdef int k
        self.check_arrays(inputs, outputs, self.n_inputs, self.n_outputs)
        self.check_device(self.begin(frame, inputs, outputs), MXOP_FORWARD_CPU, MXOP_FORWARD_GPU, "forward")
        self.execute(frame, state, is_train)

    def run_backward(self, object state, bint is_train, list heads, list inputs, list outputs, list grads):
        """Run backward on arrays in C order; a gradient that is None is computed and dropped."""
        cdef Frame frame = self.take(True)
        cdef list given = heads + inputs + outputs
        cdef list wanted = [fresh_like(<Array?>i, False) if g is None else g for g, i in zip(grads, inputs)]
        self.check_arrays(given, wanted, 2 * self.n_outputs + self.n_inputs, self.n_inputs)
        self.check_device(self.begin(frame, given, wanted), MXOP_BACKWARD_CPU, MXOP_BACKWARD_GPU, "backward")
        self.execute(frame, state, is_train)

    def gradients(self, object state, list heads, list inputs, list outputs):
        """Return the gradients of all inputs at once; None when the general way must be taken."""
        cdef list arrays = heads + inputs + outputs, grads
        if is_recording() or not self.on_cpu(True) or common_device(arrays) is not HOST:
            return None
        if not all([(<Array>a).contiguous for a in arrays]):
            return None
        grads = [fresh_like(<Array>i, True) for i in inputs]
        self.run_backward(state, is_training(), heads, inputs, outputs, grads)
        return grads

    cdef bint on_cpu(self, bint backward) noexcept:
        """Return whether there is a function for the CPU."""
        return (self.native.table.functions & (MXOP_BACKWARD_CPU if backward else MXOP_FORWARD_CPU)) != 0

    cdef int begin(self, Frame frame, list inputs, list outputs) except -1:
        """Describe the arrays of a run; return the device."""
        cdef int k = 0
        cdef Array a
        new_version()
        for a in inputs:
            frame.fill(k, a)
            k += 1
        for a in outputs:
            frame.fill(k, a)
            k += 1
        frame.run.device_type = frame.tensors[0].device_type
        frame.run.device_id = frame.tensors[0].device_id
        if frame.run.device_type == MXOP_GPU:
            frame.gpu_memory = []
            frame.memory.gpu = <PyObject*>frame.gpu_memory
            frame.run.stream = <void*><size_t>(<Array>(inputs or outputs)[0]).device.stream()
        return frame.run.device_type

    def check_arrays(self, list inputs, list outputs, int n_inputs, int n_outputs):
        cdef Array a
        for a in (*inputs, *outputs):
            if a is None or not a.contiguous:
                raise MXNetError(f"operator {self.native.name}: every array must be there, in C order")
        if len(inputs) != n_inputs or len(outputs) != n_outputs:
            raise MXNetError(f"operator {self.native.name}: {len(inputs)} inputs and {len(outputs)} outputs; expected "
                             f"{n_inputs} and {n_outputs}")

    def check_device(self, int device, unsigned int cpu, unsigned int gpu, str what):
        if not self.native.table.functions & (gpu if device == MXOP_GPU else cpu):
            raise DeviceError(f"operator {self.native.name} of library {self.native.library} has no {what} function for "
                              f"the {'GPU' if device == MXOP_GPU else 'CPU'}")

    cdef Frame take(self, bint backward):
        """Return a frame that nobody uses."""
        cdef Frame found = self.backward if backward else self.forward
        if found is None:
            if backward:
                return Frame(self.native, 2 * self.n_outputs + self.n_inputs, self.n_inputs)
            return Frame(self.native, self.n_inputs, self.n_outputs)
        if backward:
            self.backward = found.next
        else:
            self.forward = found.next
        found.next = None
        return found

    cdef int launch(self, Frame frame, object state, bint training) except -1:
        """Run a frame that is filled."""
        cdef bint backward = frame.run.n_inputs != self.n_inputs
        cdef const MXOPOperator* op = self.native.given
        cdef void* handle = self.handle
        cdef int failed
        cdef int (*function)(const MXOPOperator*, void*, MXOPRun*) noexcept nogil
        function = self.native.table.run
        frame.run.state = (<State?>state).handle if state is not None else NULL
        frame.run.flags = (MXOP_RUN_TRAINING if training else 0) | (MXOP_RUN_BACKWARD if backward else 0)
        seed_of(&frame.run.seed, &frame.run.seed_version)
        if frame.gpu_memory is None:
            with nogil:
                failed = function(op, handle, &frame.run)
        else:
            with device_of(frame.run.device_id).current():
                with nogil:
                    failed = function(op, handle, &frame.run)
        if frame.memory.chunks != NULL:
            free_memory(&frame.memory)
        if frame.gpu_memory is not None:
            frame.gpu_memory, frame.memory.gpu = None, NULL
        if failed:
            raise failed_call(self.native, "its backward function" if backward else "its forward function")
        return 0

    cdef int execute(self, Frame frame, object state, bint training) except -1:
        """Run a frame that is filled, and put it back."""
        self.launch(frame, state, training)
        if frame.run.n_inputs != self.n_inputs:
            frame.next, self.backward = self.backward, frame
        else:
            frame.next, self.forward = self.forward, frame
        return 0

    cdef Plan find_plan(self, tuple inputs):
        """Find, or make, the plan of a call.  Other threads may do so at the same time."""
        cdef Plan plan
        cdef Array a
        for plan in self.plans:
            if plan.fits(inputs):
                self.plan = plan
                return plan
        shapes, types = self.native.op.infer_outputs(self.attrs, [(<Array>a).shape_tuple() for a in inputs],
                                                     [(<Array>a).dtype for a in inputs])
        self.plan = plan = make_plan(inputs, shapes, types)
        self.plans = [plan, *self.plans[:PLANS - 1]]
        return plan

    cdef object run_direct(self, tuple inputs, tuple given):
        """Run a plain call on CPU arrays in C order: infer, allocate, call, record it as a call on what was given."""
        cdef Plan plan = self.plan
        cdef Frame frame
        cdef Array a, first, result = None
        cdef Py_ssize_t* form
        cdef object item, state = None
        cdef list results = None
        cdef int k = 0, i
        if plan is None or not plan.fits(inputs):
            plan = self.find_plan(inputs)
        if self.stateful:
            state = self.make_state(list(inputs))
        frame = self.take(False)
        new_version()
        form = plan.forms
        first = <Array>inputs[0]
        for item in inputs:
            a = <Array>item
            frame.fill(k, a)
            form += 2 + a.ndim
            k += 1
        if plan.n_outputs > 1:
            results = []
        for i in range(plan.n_outputs):
            result = alloc(<int>form[0], form + 2, <int>form[1])
            result.device_id = first.device_id
            clear(result)  # machine code may leave it as it is
            frame.fill(k + i, result)
            form += 2 + form[0]
            if results is not None:
                results.append(result)
        frame.run.device_type, frame.run.device_id = MXOP_CPU, first.device_id
        self.execute(frame, state, is_training())
        if is_noted():
            record_general(self.native.op, self.native.op.attrs_with(self.attrs, state), given,
                           [result] if results is None else results)
        return result if results is None else results


cdef int put_shapes(list values, int64_t* dims, MXOPShape* shapes) except -1:
    """Write shapes, None where not known, as the ABI has them."""
    cdef int k = 0, i
    for shape in values:
        shapes[k].dims, shapes[k].capacity = dims + k * MAX_DIMS, MAX_DIMS
        if shape is None:
            shapes[k].ndim = -1
        elif len(shape) > MAX_DIMS:
            raise OpValueError(f"shape {shape} has {len(shape)} dimensions; at most {MAX_DIMS} are supported")
        else:
            shapes[k].ndim = len(shape)
            for i in range(len(shape)):
                shapes[k].dims[i] = -1 if shape[i] is None else shape[i]
        k += 1
    return 0


@cython.no_gc_clear
cdef class State:
    """What a library's operator keeps from forward to backward."""

    def __dealloc__(self):
        if self.handle != NULL and self.bound.native.table.destroy_state != NULL:
            with nogil:
                self.bound.native.table.destroy_state(self.bound.native.given, self.handle)
