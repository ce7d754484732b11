"""The executor: a symbol bound to arrays, run as a prepared schedule.

Binding does all the work: inference, gradients, passes, fusion, memory plan, prepared calls.  A run is one call into Cython.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from .._core import core, profile, tape
from ..support import dtypes
from ..support.errors import MXNetError, OpTypeError, OpValueError, all_end_at_caller, closest
from ..support.handles import handle
from ..support.memo import keep
from .expansion import give_state
from .feeding import WRITER, Heads, assign, head_missing, listed_heads
from .garbage import collected_later
from .ir import Entry, Graph, Node, describe
from .lowering import Lowered
from .monitor import Monitor, NaNFinder
from .passes import of_stage, selected
from .plan import ADD, NULL, WRITE, Result, size_of
from .recipe import allocate, seen_as
from .rewrite import rewrite
from .schedule import Arena
from .states import has_mode
from .structure import Ready, Structure

REQS = {"null": NULL, "write": WRITE, "add": ADD}


class Executor:
    """A symbol with arrays for its arguments; ``Symbol.bind`` and ``Symbol.simple_bind`` make it.

    Attributes
    ----------
    arg_arrays, grad_arrays, aux_arrays : list of NDArray
        In the order of ``list_arguments`` and ``list_auxiliary_states``; None for a gradient that is not wanted.
    arg_dict, grad_dict, aux_dict, output_dict : dict of str to NDArray
    outputs : list of NDArray
        The arrays that every forward writes into.

    Examples
    --------
    >>> import mxop as mx
    >>> x = mx.sym.Variable('x')
    >>> executor = mx.sym.square(x).bind(mx.cpu(), {'x': mx.nd.array([1, 2, 3])})
    >>> executor.forward()[0].asnumpy().tolist()
    [1.0, 4.0, 9.0]
    """

    @collected_later()
    def __init__(self, symbol: Any, ctx: Any, args: list[core.NDArray], grads: list[core.NDArray | Any],
                 reqs: list[str], aux: list[core.NDArray], passes: Any = None,
                 outputs: Sequence[core.NDArray] = ()):  # fmt: skip
        begun = profile.now()
        self._symbol, self._ctx = symbol, ctx
        self._old_outputs = outputs  # of the executor that was reshaped into this one, which uses their memory
        self._graph, own_states = rewrite(Graph(symbol._entries), give_state)
        self._arguments, self._states = self._graph.arguments()
        self.arg_arrays, self.grad_arrays, self.aux_arrays = args, grads, aux  # a gradient may be None: to a checker, Any
        self._grad_req = reqs
        self._reqs = [r if g is not None else "null" for r, g in zip(reqs, grads, strict=True)]
        names = [n.name for n in self._arguments]
        self.arg_dict = dict(zip(names, args, strict=True))
        self.grad_dict = dict(zip(names, grads, strict=True))
        self.aux_dict = dict(zip([n.name for n in self._states], aux, strict=True))
        self._bound = dict(zip(self._arguments + self._states, args + aux, strict=True))
        self._passes = selected(passes)
        self._structure = self._structure_of(symbol, not own_states)
        self._check_gradients()
        self._prepare()
        profile.call_event("Executor.bind", begun, True)

    def _structure_of(self, symbol: Any, shared: bool) -> Structure:
        """Return the structure of a symbol; the symbol caches it if `shared`."""
        key = tuple(self._passes)
        found = symbol._structures.get(key) if shared else None
        if found is None:
            found = Structure(self._graph, self._arguments + self._states, self._passes)
            if shared:
                keep(symbol._structures, key, found, 4)
        return found

    # ---- preparation ------------------------------------------------------------------------------------------------
    def _check_gradients(self) -> None:
        for node, array, grad in zip(self._arguments, self.arg_arrays, self.grad_arrays, strict=True):
            if grad is not None and (grad.shape != array.shape or grad.dtype_code != array.dtype_code):
                raise OpValueError(f"the gradient array of {node.name!r} has shape {grad.shape} and dtype "
                                   f"{dtypes.NAMES[grad.dtype_code]}; the argument has shape {array.shape} and dtype "
                                   f"{dtypes.NAMES[array.dtype_code]}")  # fmt: skip

    def _prepare(self) -> None:
        self._given = {n: (a.shape, a.dtype_code) for n, a in self._bound.items()}
        self._device = next((a._device for a in self._bound.values()), core.HOST)
        self._arena = Arena(self._device)
        self._has_mode = has_mode(self._graph)
        self._lowered: dict[bool, Lowered] = {}  # by train mode
        self._inferences: dict[bool, tuple[Any, Any]] = {}
        self._train: Any = None
        self._backward: Any = None
        self._evaluated: Any = None
        self._draws: bool | None = None
        self._heads = Heads([], None, (), False)
        self._last_run: str | None = None
        self._monitor: Monitor | None = None
        self._wanted = [i for i, req in enumerate(self._reqs) if req != "null"]
        ready = self._ready(bool(self._wanted), self._wanted)
        self._make_outputs(ready)
        self._bound_pattern = ready.pattern
        if self._wanted:
            (self._train, self._backward), self._train_plan, self._heads = self._with_gradients(ready)
        else:
            self._inferences[False] = self._prepare_inference(ready)

    def _ready(self, is_train: bool, wanted: Sequence[int]) -> Ready:
        """Return the pattern for a mode and the wanted gradients, completed for the bound arrays."""
        ready = self._structure.ready(tuple(self._given.values()), tuple(wanted), is_train, self._device.number)
        self._check_inferred(ready, wanted)
        return ready

    def _make_outputs(self, ready: Ready) -> None:
        self._outputs = []
        self._sized = {}  # outputs whose size each run determines: inferred shapes, and the arrays that schedules write
        for i, e in enumerate(ready.outputs):
            shape, code, sized = ready.known.shape(e), ready.known.dtype(e), not ready.known.has_size(e)
            found = _fitted(self._old_outputs[i], shape, code) if self._old_outputs and not sized else None
            self._outputs.append(self._output(shape, code) if found is None else found)
            if sized:
                self._sized[i] = shape, self._outputs[i]

    def _output(self, shape: tuple[int | None, ...], code: int) -> core.NDArray:
        found = allocate(shape, code, self._device)
        self._device.place(found, getattr(self._ctx, "place", 0))
        return found

    def _check_inferred(self, ready: Ready, wanted: Sequence[int]) -> None:
        """Raise unless inferred shapes and types of gradients are those of the arguments: gradient rules may be a user's."""
        for entry, i in zip(ready.gradients, wanted, strict=False):
            have, want = (ready.known.shape(entry), ready.known.dtype(entry)), self._given[self._arguments[i]]
            if have != want:
                raise OpValueError(
                    f"the gradient of {self._arguments[i].name!r} has shape {have[0]} and dtype {dtypes.NAMES[have[1]]}, the "
                    f"argument {want[0]} and {dtypes.NAMES[want[1]]}; it was computed for {describe(ready.named(entry[0]))}"
                )

    handle = handle

    @collected_later()
    def _prepare_inference(self, ready: Ready) -> tuple[Any, Any]:
        """Return the schedule that computes the outputs alone, and its plan."""
        (schedule,), plan = ready.build(list(self._bound.values()), (), self._output_results(), self._arena)
        return schedule, plan

    def _with_gradients(self, ready: Ready) -> tuple[Any, Any, Heads]:
        """Return the schedules of forward and backward, their plan, and the head gradients needed."""
        heads = [None if spec is None else allocate(*spec, self._device) for spec in ready.head_specs]
        results = [*self._output_results(), *self._gradient_results()]
        schedules, plan = ready.build(list(self._bound.values()), heads, results, self._arena)
        written = [a for a in (*self._outputs, *self.grad_arrays, *self.aux_arrays) if a is not None]
        return schedules, plan, Heads(heads, schedules[1], written, not self._sized)

    def _evaluation(self) -> tuple[Any, Any, Heads]:
        """Return the schedules of forward and backward in inference mode, and the head gradients."""
        if self._evaluated is None:
            made = self._with_gradients(self._ready(False, self._wanted)) if self._has_mode else None
            self._evaluated = (*made[0], made[2]) if made else (self._train, self._backward, self._heads)
        return self._evaluated

    def _inference_draws(self) -> bool:
        """Return whether inference draws random numbers, so that its gradient needs the values of the same run."""
        if self._draws is None:
            found = any(n.op and not n.op.repeatable for n in self._graph.nodes)
            self._draws = found and any(
                n.op and not n.op.repeatable for n in self._ready(False, ()).pattern.lowered.graph.nodes
            )
        return self._draws

    def _inference(self, is_train: bool) -> tuple[Any, Any]:
        """Return the schedule of inference and its plan; graphs with operators that read the mode have one for each mode."""
        mode = bool(is_train) and self._has_mode
        found = self._inferences.get(mode)
        if found is None:
            found = self._inferences[mode] = self._prepare_inference(self._ready(mode, ()))
        return found

    @property
    def _infer(self) -> Any:
        return self._inferences.get(False, (None,))[0]

    def _output_results(self, entries: Sequence[Entry | None] | None = None) -> list[Result]:
        entries = entries or [None] * len(self._outputs)
        return [Result(e, self._sized[i][1] if i in self._sized else self._outputs[i]) for i, e in enumerate(entries)]

    def _gradient_results(self, entries: Sequence[Entry | None] | None = None) -> list[Result]:
        entries = entries or [None] * len(self._wanted)
        return [Result(e, self.grad_arrays[i], REQS[self._reqs[i]]) for e, i in zip(entries, self._wanted, strict=True)]

    # ---- running ----------------------------------------------------------------------------------------------------
    @property
    def outputs(self) -> list[core.NDArray]:
        return list(self._outputs)

    @property
    def output_dict(self) -> dict[str, core.NDArray]:
        return dict(zip(self._symbol.list_outputs(), self._outputs, strict=True))

    def forward(self, is_train: bool = False, **kwargs: Any) -> list[core.NDArray]:
        """Compute the outputs.

        Parameters
        ----------
        is_train : bool
            Keep the values that :meth:`backward` needs, and run operators such as Dropout in training mode.
        **kwargs
            New values for arguments, copied into the bound arrays.

        Returns
        -------
        list of NDArray
        """
        if isinstance(is_train, core.NDArray):
            raise OpTypeError("forward: is_train is an NDArray; new values of arguments are given by name: forward(data=x)")
        for name in kwargs:
            if name not in self.arg_dict:
                raise OpTypeError(f"Unknown argument {name}{closest(name, self.arg_dict)}")
        values = [(self.arg_dict[name], value, f"Argument {name}") for name, value in kwargs.items()]
        assign(values, "; reshape() returns an executor for other shapes")
        run = "train" if is_train else "infer"
        if self._monitor is not None:
            self._monitor.forward(is_train)
        elif is_train and self._train is not None:
            self._run(self._train.run, True)
        elif self._wanted and self._inference_draws():
            self._run(self._evaluation()[0].run, False)
            run = "evaluation"
        else:
            self._run(self._inference(is_train)[0].run, is_train)
        self._last_run = run
        for i, (_, array) in self._sized.items():
            self._outputs[i] = array._view(array.shape, array._strides)  # arrays that users hold keep their values
        for array in (*self._outputs, *self.aux_arrays):
            core.touch(array, WRITER)
        return list(self._outputs)

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        """Compute the gradients and write (or add) them to the gradient arrays.

        If the last run was not ``forward(is_train=True)``, that is run first, with the current values of the bound arrays.
        With ``is_train=False`` the gradients are those of inference, unless the last run was one of training.

        Parameters
        ----------
        out_grads : NDArray, list of NDArray or dict of str to NDArray, optional
            Gradient with respect to each output; only outputs of loss functions need none.  Gradients beyond the number of
            outputs are ignored.
        is_train : bool
        """
        if not self._wanted:
            return
        if not is_train and self._last_run != "train" and self._monitor is None:
            self._backward_of_inference(out_grads)
        else:
            self._backward_of_training(out_grads, is_train)
        for array in self.grad_arrays:
            if array is not None:
                core.touch(array, WRITER)

    def _backward_of_inference(self, out_grads: Any) -> None:
        forward, _, heads = self._evaluation()
        backward = self._head_gradients(out_grads, heads)
        if self._last_run != "evaluation":
            self._run(forward.run, False)
        self._run(backward, False)

    def _backward_of_training(self, out_grads: Any, is_train: bool) -> None:
        backward = self._head_gradients(out_grads, self._heads)
        if self._last_run != "train":  # the values that backward reads were not kept
            self._forward_again()
        if self._monitor is not None:
            self._monitor.backward()
        else:
            self._run(backward, is_train)

    def _forward_again(self) -> None:
        """Run forward in training mode; raise if it would repeat a run that drew random numbers or updated states."""
        if self._last_run and any(
            n.op and (not n.op.repeatable or n.mutated_inputs())
            for n in self._lowered_for(True).graph.nodes  # lowered, so that only draws that take place count
        ):
            raise MXNetError("backward() after forward(is_train=False): running forward again would draw other random "
                             "numbers or update states twice; call forward(is_train=True) before")  # fmt: skip
        self.forward(is_train=True)

    @staticmethod
    def _run(body: Callable[[], None], is_train: bool) -> None:
        recording, training = tape.switch_recording(False), tape.switch_training(is_train)
        try:
            body()
        finally:
            tape.switch_recording(recording)
            tape.switch_training(training)

    def _head_gradients(self, out_grads: Any, heads: Heads) -> Callable[[], None]:
        """Take the head gradients and return the function that runs backward."""
        given = listed_heads(out_grads, self._symbol)
        found = []
        for i, target in enumerate(heads.arrays):
            if target is None:
                continue
            g = given[i] if i < len(given) else None
            if g is None:
                raise head_missing(i, out_grads, self._symbol)
            if i in self._sized:
                core.become(target, allocate(self._outputs[i].shape, target.dtype_code, self._device))
            found.append((target, g, f"Head gradient {i}"))
        return heads.taken(found, self._monitor is not None)

    # ---- parameters and shapes --------------------------------------------------------------------------------------
    def copy_params_from(
        self,
        arg_params: Mapping[str, Any],
        aux_params: Mapping[str, Any] | None = None,
        allow_extra_params: bool = False,
    ) -> None:
        """Copy values into the arguments and auxiliary states.

        Parameters
        ----------
        arg_params, aux_params : dict of str to NDArray
        allow_extra_params : bool
            Ignore names that the symbol does not have.
        """
        groups = (
            ("arguments", arg_params, self.arg_dict),
            ("auxiliary states", {} if aux_params is None else aux_params, self.aux_dict),
        )
        for what, params, targets in groups:
            if not isinstance(params, Mapping):
                raise OpTypeError(f"copy_params_from: {what} must be a dict of NDArrays, got {type(params).__name__}")
            for name in params:
                if name not in targets and not allow_extra_params:
                    other = "aux_params" if name in self.aux_dict else "arg_params" if name in self.arg_dict else ""
                    hint = f"; it belongs to {other}" if other else closest(name, targets)
                    hint += "; allow_extra_params=True ignores it"
                    raise OpValueError(f"copy_params_from: {name!r} is not in the {what}{hint}")
        assign(
            (targets[name], value, f"Argument {name}")
            for _, params, targets in groups
            for name, value in params.items()
            if name in targets
        )

    def reshape(self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs: Any) -> Executor:
        """Return an executor for other shapes that shares the memory of this one, its outputs included.

        Do not run the two executors in turn: each overwrites the values of the other.

        Parameters
        ----------
        partial_shaping : bool
            Allow changes of shapes that `kwargs` does not name.
        allow_up_sizing : bool
            Allocate new arrays for those that grow.
        **kwargs
            Shapes of arguments.
        """
        infer_shape = self._symbol.infer_shape_partial if self._sized else self._symbol.infer_shape
        shapes, _, aux_shapes = infer_shape(**kwargs)
        if shapes is None:
            raise OpValueError(f"reshape: the shapes of all arguments do not follow from {kwargs}")
        args, grads = [], []
        kept = [grad if req != "null" else None for grad, req in zip(self.grad_arrays, self._reqs, strict=True)]
        for name, shape, array, grad in zip(self.arg_dict, shapes, self.arg_arrays, kept, strict=True):
            if shape != array.shape and name not in kwargs and not partial_shaping:
                raise OpValueError(f"reshape: the shape of {name!r} would change from {array.shape} to {shape}, though it is "
                                   f"not given; pass partial_shaping=True if that is meant")  # fmt: skip
            args.append(_resized(array, shape, allow_up_sizing, name))
            grads.append(None if grad is None else _resized(grad, shape, allow_up_sizing, name))
        aux = [_resized(a, s, allow_up_sizing, n) for n, s, a in zip(self.aux_dict, aux_shapes, self.aux_arrays, strict=True)]
        found = Executor(self._symbol, self._ctx, args, grads, self._reqs, aux, self._passes, self._outputs)
        if self._monitor is not None:
            found.set_monitor_callback(self._monitor.callback, self._monitor.monitor_all)
        return found

    # ---- looking inside ---------------------------------------------------------------------------------------------
    def set_monitor_callback(self, callback: Callable[[str, Any], None] | None, monitor_all: bool = False) -> None:
        """Call ``callback(name, array)`` for every output of every operator of the symbol while it runs (None: no more).

        Nothing is fused then, so that every value exists; backward reports the nodes of the gradient graph.

        Parameters
        ----------
        callback : callable or None
        monitor_all : bool
            Report the inputs of a node too, before its outputs.
        """
        if callback is not None and not callable(callback):
            raise OpTypeError(f"set_monitor_callback: {callback!r} is not callable")
        self._monitor = None if callback is None else Monitor(self, callback, monitor_all)

    @contextmanager
    def detect_nan(self) -> Iterator[Executor]:
        """Return a scope in which forward and backward run node by node; the first result that holds NaN raises an error.

        Examples
        --------
        >>> import mxop as mx
        >>> graph = mx.sym.sqrt(mx.sym.Variable('x'), name='root') + 1
        >>> executor = graph.bind(mx.cpu(), {'x': mx.nd.array([1, -4])})
        >>> with executor.detect_nan():
        ...     _ = executor.forward()
        Traceback (most recent call last):
        ...
        mxop.errors.NaNError: operator sqrt produced NaN from inputs without NaN: output 0 at (1,), where input 0 ...
        """
        before, self._monitor = self._monitor, NaNFinder(self)
        try:
            yield self
        finally:
            self._monitor = before

    def _lowered_for(self, is_train: bool) -> Lowered:
        """Return the graph of a mode before the passes."""
        mode = is_train if self._has_mode else bool(self._wanted)
        if mode not in self._lowered:
            wanted = tuple(self._wanted) if mode else ()
            pattern = self._structure.pattern(tuple(self._given.values()), wanted, mode, self._device.number)
            self._lowered[mode] = pattern.lowered
        return self._lowered[mode]

    @property
    def _head_bound(self) -> dict[Node, Any]:
        heads = zip(self._lowered_for(True).heads, self._heads.arrays, strict=True) if self._wanted else ()
        return {node: array for node, array in heads if node is not None}

    @property
    def _memory(self) -> int:
        return self._arena.nbytes + sum(a.size * dtypes.SIZES[a.dtype_code] for a in self._outputs)

    def explain(self, is_train: bool | None = None, measure: bool = False) -> Any:
        """Return a description of a run: schedule, fused groups, buffers, bytes moved, and the least time that these take.

        Parameters
        ----------
        is_train : bool, optional
            Explain training (forward and backward) or inference; the default is training, if gradients are wanted.
        measure : bool
            Run the schedules for about half a second and report the time of each step beside its lower bound.  The values of
            the arrays are restored afterwards; states that an external function keeps elsewhere are not.

        Returns
        -------
        Explanation
            It prints as a table; see :class:`mxop.graph.explain.Explanation`.
        """
        from .explain import Explanation

        return Explanation(self, is_train, measure)

    def get_optimized_symbol(self) -> Any:
        """Return the symbol after the passes whose results are symbols; :meth:`explain` shows the fused graph."""
        passes = of_stage(self._passes, "symbol") + of_stage(self._passes, "graph")
        arrays = {**self.arg_dict, **self.aux_dict}
        types = {name: array.dtype for name, array in arrays.items()}
        return self._symbol.optimize(passes, types, **{name: array.shape for name, array in arrays.items()})

    def debug_str(self) -> str:
        """Return the graph (with its gradient, if wanted) and the memory that it takes, as text."""
        lines = [self._structure.text(self._bound_pattern).rstrip()]
        for name, schedule in (("forward", self._train or self._infer), ("backward", self._backward)):
            if schedule is not None:
                lines.append(f"Schedule {name}: {len(schedule)} calls")
        # MXNet's last lines: its modules read the number of the first.
        return "\n".join([*lines, f"Total {self._memory >> 20} MB allocated", "Total 0 TempSpace resource requested\n"])


def _resized(array: Any, shape: tuple[int, ...], allow_up_sizing: bool, name: str) -> Any:
    """Return an array of another shape, in the memory of `array` if it fits."""
    found = _fitted(array, shape, array.dtype_code)
    if found is not None:
        return found
    if not allow_up_sizing and size_of(shape) > array.size:
        raise OpValueError(f"reshape: {name!r} would grow from {array.shape} to {shape}; make the large executor first and "
                           f"reshape it down, or pass allow_up_sizing=True to allocate new arrays")  # fmt: skip
    new = allocate(shape, array.dtype_code, array._device)
    new[:] = 0
    return new


def _fitted(array: Any, shape: tuple[int, ...], code: int) -> Any:
    """Return `array`, or a view of its start in another shape; None if that does not fit."""
    if array.dtype_code != code:
        return None
    if shape == array.shape:
        return array
    return seen_as(array, shape) if size_of(shape) <= array.size and array._contiguous else None


all_end_at_caller(Executor, ["backward", "copy_params_from", "explain", "forward", "get_optimized_symbol", "reshape",
                            "set_monitor_callback"])  # fmt: skip
