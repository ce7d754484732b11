"""Calls that are made ready once and run many times: what executors are made of.

Inference, checks and allocation happen when a call is prepared; running it is a program on fixed operands, without Python.
"""
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from mxop._core.array cimport MAX_VALUES, Array, Value, broadcast_operand, fill_operand, write_pointer
from mxop._core.call cimport Call, Places, launches_of
from mxop._core.device cimport Device, wait_if_asked
from mxop._core.dispatch cimport invoke_with
from mxop._core.elementwise cimport ElementwiseCall, call_for, compute_type, gpu_values, typed_values
from mxop._core.external cimport execute_external
from mxop._core.launched cimport by_graphs
from mxop._core.lazy cimport run_all
from mxop._core.prepared cimport prepare_operator
from mxop._core.profile cimport API, SYMBOLIC, abandon, begin, clock, enter_step, note_api, note_step, watched
from mxop._core.record cimport set_recording
from mxop._core.results cimport SAME_PLACE, common_device, deliver, work_for
from mxop._core.transfer cimport copy_into, overlaps, same_dims, same_layout
from mxop._kernels.operands cimport REQ_WRITE, Operand
from mxop._kernels.interp cimport Program

from mxop.support import dtypes
from mxop._core.array import become
from mxop._core.native_prepared import native_call
from mxop._kernels.instruction_sets import has_instruction
from mxop.support.errors import OpTypeError, OpValueError
from mxop.formula import compile_program, const, param, substitute
from mxop.support.memo import keep
from mxop.opdef import Elementwise, External, Formula


cdef class ProgramCall(Call):
    """A program on fixed arrays."""

    def __dealloc__(self):
        free(self.operands)

    cdef int execute(self) except -1:
        cdef char* places[MOST_PLACES]
        cdef int k
        if self.tiny:
            for k in range(self.program.n_inputs + self.program.n_outputs):
                places[k] = self.operands[k].data
            self.program.run_tiny(self.size, places, self.values)
            return 0
        return self.program.run(self.size, self.operands, self.operands + self.program.n_inputs, self.values)

    cdef int point(self, Places places) except -1:
        cdef Py_ssize_t k
        for k in range(self.program.n_inputs + self.program.n_outputs):
            places.add(&self.operands[k].data)
        return 0

    @property
    def source(self):
        """The listing of the program."""
        return self.program.listing


cdef class FunctionCall(Call):
    """Any other operator on fixed arrays."""

    cdef object op, attrs
    cdef list inputs, outputs, reqs, temporary

    cdef int execute(self) except -1:
        cdef bint before = set_recording(False)
        try:
            invoke_with(self.op, self.inputs, self.attrs, self.temporary, REQ_WRITE)
            deliver(self.temporary, self.outputs, self.reqs)
            run_all()  # pending calls of a user's code may read memory that the next calls overwrite
        finally:
            set_recording(before)
        return 0

    cdef int point(self, Places places) except -1:
        for a in (*self.inputs, *self.outputs, *self.temporary):
            places.add_array(<Array>a)
        return 0


cdef class SizedCall(Call):
    """An operator whose outputs' sizes follow from values: each run makes those anew, for the arrays that stand for them."""

    cdef object op, attrs
    cdef list inputs, outputs, reqs, sized

    cdef int execute(self) except -1:
        cdef bint before = set_recording(False)
        try:
            found = invoke_with(self.op, self.inputs, self.attrs, None, REQ_WRITE)
        finally:
            set_recording(before)
        for a, made, req, sized in zip(self.outputs, found if isinstance(found, list) else [found], self.reqs, self.sized):
            if sized:
                become(a, made)
            else:
                copy_into(<Array>made, <Array>a, req)
        return 0


cdef class ExternalCall(Call):
    """An operator from outside on fixed arrays."""

    cdef object op, attrs
    cdef list inputs, outputs, reqs

    cdef int execute(self) except -1:
        execute_external(self.op, self.attrs, self.inputs, self.outputs, self.reqs)
        return run_all()


def prepare(op, attrs, list inputs, list outputs, list reqs):
    """Return a :class:`Call` of an operator on fixed arrays.

    Parameters
    ----------
    op, attrs
        The operator and its parsed parameters.
    inputs, outputs : list of NDArray
    reqs : list of int
        Request of each output: 0 null, 1 write, 2 in place, 3 add.
    """
    cdef FunctionCall general
    cdef ExternalCall external
    cdef Device device
    if isinstance(op, External):
        ready = op.prepared(inputs, outputs, reqs) if op.bodies else native_call(op, attrs, inputs, outputs, reqs)
        if ready is not None:
            return ready
        external = ExternalCall()
        external.op, external.attrs, external.inputs, external.outputs, external.reqs = op, attrs, inputs, outputs, reqs
        return external
    if op.sized_by is not None:
        shapes = op.infer_outputs(attrs, [a.shape for a in inputs], [a.dtype_code for a in inputs])[0]
        return prepare_sized(op, attrs, inputs, outputs, reqs, [None in shape for shape in shapes])
    device = common_device([*inputs, *outputs])
    if isinstance(op, Elementwise):
        ready = None if device is None else device.elementwise(op, attrs, inputs, outputs, reqs)
    else:
        ready = prepare_operator(op, attrs, inputs, outputs, reqs)
    if ready is not None:
        return ready
    general = FunctionCall()
    general.op, general.attrs, general.inputs, general.outputs, general.reqs = op, attrs, inputs, outputs, reqs
    general.temporary = work_for(inputs, outputs, reqs, SAME_PLACE if isinstance(op, Elementwise) else 0)
    return general


def elementwise_on_host(op, attrs, list inputs, list outputs, list reqs):
    """Return the prepared program of an elementwise operator."""
    cdef ElementwiseCall call
    cdef Value values[MAX_VALUES]
    cdef Value typed[MAX_VALUES]
    cdef ProgramCall fast
    cdef const Value* known
    cdef int ctype
    op.check_arity(attrs, len(inputs))
    if not inputs:
        raise OpTypeError(f"operator {op.name} needs an input")
    call = call_for(op, attrs, len(inputs))
    call.load_values(attrs, values)
    types = [(<Array>a).dtype for a in inputs]
    out_types = op.infer_type(attrs, types, [-1] * call.n_out)[1]
    for a, t in zip(outputs, out_types):
        if (<Array>a).dtype != t:
            raise OpTypeError(f"operator {op.name}: output has dtype {dtypes.NAMES[(<Array>a).dtype]}, "
                              f"expected {dtypes.NAMES[t]}")
    ctype = compute_type(call, <Array>inputs[0], inputs)
    known = typed_values(call, values, out_types[0] if call.has_keys else types[0], typed, &ctype)
    fast = program_call(call.program(ctype), inputs, outputs, reqs, op.name)
    memcpy(fast.values, known, sizeof(values))
    return fast


def gpu_operands(op, attrs, list inputs):
    """Return the :class:`ElementwiseCall` of an operator, and its numeric parameters as data of the type of the first input take
    them."""
    cdef ElementwiseCall call
    cdef Value values[MAX_VALUES]
    cdef int ctype
    op.check_arity(attrs, len(inputs))
    call = call_for(op, attrs, len(inputs))
    call.load_values(attrs, values)
    return call, gpu_values(call, values, (<Array>inputs[0]).dtype, &ctype)


def prepare_sized(op, attrs, list inputs, list outputs, list reqs, list sized):
    """Return a :class:`Call` whose outputs, those that are `sized` and nobody else's, become what each run makes."""
    cdef SizedCall call = SizedCall()
    op.check_arity(attrs, len(inputs))
    call.op, call.attrs, call.inputs, call.outputs = op, attrs, inputs, outputs
    call.reqs, call.sized = reqs, sized
    return call


cdef dict _programs = {}


def prepare_formula(roots, list inputs, list outputs, list reqs, dict numbers=None):
    """Return a :class:`Call` of a fused formula over ``input_(0)`` and on; `numbers` are the values of its parameters."""
    return (<Array>outputs[0]).device.formula(tuple(roots), inputs, outputs, reqs, numbers or {})


def formula_on_host(tuple roots, list inputs, list outputs, list reqs, dict numbers):
    """Return the prepared program of a fused formula."""
    cdef ProgramCall call
    cdef int k, dtype = (<Array>outputs[0]).dtype  # that of all inputs, but for keys
    if numbers and (len(numbers) > MAX_VALUES or dtype not in dtypes.FLOATS):  # a real number would change the compute type
        roots, numbers = with_constants(roots, numbers), {}
    call = program_call(program_of(roots, len(inputs), dtype, tuple(numbers)), inputs, outputs, reqs, "fused")
    for k, value in enumerate(numbers.values()):
        call.values[k].d = value
    return call


def with_constants(roots, numbers):
    """Return formulas with parameters replaced by constants."""
    return tuple(substitute(roots, {param(name): const(value) for name, value in numbers.items()}))


cdef Program program_of(tuple roots, Py_ssize_t n_inputs, int dtype, tuple params):
    """Return the program of a formula; large graphs repeat theirs."""
    key = roots, n_inputs, dtype, params
    found = _programs.get(key)
    if found is None:
        formula = Formula(roots, ())
        ctype = formula.compute_type(dtype)
        listing = compile_program(roots, n_inputs, lambda name: has_instruction(name, ctype))
        found = keep(_programs, key, Program(listing, params, ctype))
    return <Program>found


cdef ProgramCall program_call(Program program, list inputs, list outputs, list reqs, str label):
    cdef ProgramCall call = ProgramCall()
    cdef Array first = <Array>outputs[0], a
    cdef int k, n_in = len(inputs)
    call.program, call.label, call.arrays = program, label, inputs + outputs
    call.size = first.size
    call.operands = <Operand*>calloc(n_in + len(outputs), sizeof(Operand))
    if call.operands == NULL:
        raise MemoryError()
    for k in range(n_in):
        broadcast_operand(&call.operands[k], <Array>inputs[k], first.ndim, first.shape_)
    for k in range(len(outputs)):
        a = <Array>outputs[k]
        if not same_dims(a, first):
            raise OpValueError(f"{label}: outputs have shapes {first.shape_tuple()} and {a.shape_tuple()}")
        fill_operand(&call.operands[n_in + k], a)
        call.operands[n_in + k].data = write_pointer(a)
        call.operands[n_in + k].req = reqs[k]
        call.operands[n_in + k].staged = any([overlaps(<Array>b, a) and (program.clobbers(k, i) or not same_layout(<Array>b, a))
                                              for i, b in enumerate(inputs)])
    call.tiny = n_in + len(outputs) <= MOST_PLACES and program.is_tiny(call.size) and program.takes_plain(call.operands)
    return call


cdef class Sequence(Call):
    """Calls that count as one."""

    cdef readonly list calls

    def __init__(self, calls):
        self.calls = [c for c in calls]

    cdef int execute(self) except -1:
        cdef Call call
        for call in self.calls:
            call.execute()
        return 0

    cdef list launches(self):
        return launches_of(self.calls)

    cdef int point(self, Places places) except -1:
        places.note(self.calls)
        return 0


cdef class Schedule:
    """Prepared calls, run one after the other without Python in between; on a GPU, by CUDA graphs of the kernels.

    Parameters
    ----------
    calls : sequence of Call
    explain : callable, optional
        ``explain(i, problem)`` returns what to raise when call number `i` raises.
    describe : callable, optional
        ``describe()`` returns ``(operator, what a viewer shows)`` for each call; asked once, when the profiler runs.
    name : str
        What a run is called.
    place : int
        The number of the GPU that runs them; -1 for the CPU.
    """

    cdef readonly list calls
    cdef list together      # the calls, or what runs several of them
    cdef list first         # the number of the first call of each
    cdef object explain, describe
    cdef list described
    cdef str name
    cdef int place

    def __init__(self, calls, explain=None, describe=None, str name="Schedule.run", int place=-1):
        self.calls = [c for c in calls]
        self.together, self.first = by_graphs(self.calls)
        self.explain, self.describe, self.name, self.place = explain, describe, name, place

    @property
    def graphs(self):
        """The numbers of the calls of each CUDA graph, as ranges."""
        parts = zip(self.first, [*self.first[1:], len(self.calls)], self.together)
        return [range(first, end) for first, end, part in parts if part is not self.calls[first]]

    def run(self):
        """Execute all calls."""
        cdef Call call
        cdef Py_ssize_t i = -1
        cdef bint one_by_one = watched(SYMBOLIC | API)  # asked once: another thread may start the profiler
        run_all()  # pending calls may read the results of the last run
        try:
            if one_by_one:
                self.run_watched(&i)
            else:
                for call in self.together:
                    i += 1
                    call.execute()
                    wait_if_asked()
        except Exception as problem:
            found = self.explained(i if one_by_one else self.first[i], problem)
            if found is problem:
                raise
            raise found from found.__cause__

    def times(self, wait=None):
        """Execute all calls; return the nanoseconds that each took.

        Parameters
        ----------
        wait : callable, optional
            Called after each, within its time: for a device that computes on its own.
        """
        cdef Call call
        cdef Py_ssize_t i = -1
        cdef long long begun, ended
        cdef list found = []
        run_all()
        try:
            begun = clock()
            for call in self.calls:
                i += 1
                call.execute()
                if wait is not None:
                    wait()
                ended = clock()
                found.append(ended - begun)
                begun = clock()
        except Exception as problem:
            found_problem = self.explained(i, problem)
            if found_problem is problem:
                raise
            raise found_problem from None
        return found

    cdef int run_watched(self, Py_ssize_t* i) except -1:
        """Execute all calls, and tell the profiler."""
        cdef Call call
        cdef long long begun, step
        cdef list described = self.described
        cdef const void* before
        if described is None:
            described = self.described = self.descriptions()
        before = enter_step(NULL)
        begun = clock()
        try:
            for call in self.calls:
                i[0] += 1
                operator, about = described[i[0]]
                enter_step(<const void*>operator)
                step = begin(operator)
                try:
                    call.execute()
                    wait_if_asked()
                except BaseException:
                    abandon(operator)
                    raise
                if watched(SYMBOLIC):
                    note_step(operator, about, step, self.place)
                else:
                    abandon(operator)
        finally:
            enter_step(before)
        if watched(API):
            note_api(self.name, begun)
        return 0

    cdef list descriptions(self):
        return [("call", None) for c in self.calls] if self.describe is None else list(self.describe())

    cdef object explained(self, Py_ssize_t i, object problem):
        return problem if self.explain is None else self.explain(i, problem)

    def __len__(self):
        return len(self.calls)
