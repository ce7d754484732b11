"""Functions of arrays that run as plans, marked with :func:`compiled`."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Sequence
from operator import itemgetter
from threading import local
from typing import Any

from .._core import core, plans, tape
from .._core.array import switch_tracing
from ..opdef import Attrs, Operator
from ..opdef.symbolic import Trace
from ..support.errors import OpTypeError, OpValueError, shown
from ..support.generators import no_draws
from ..support.memo import keep
from .builder import Builder, Value
from .calls import replayed
from .draws import in_turn
from .expansion import expand
from .halves import HALF_TYPES, widened
from .ir import Entry, Graph, Node, variable
from .outside import Outside
from .patterns import REFUSED, Pattern, planned
from .specs import Specs, inside
from .states import has_mode
from .symbols import symbol

Dense = core.Dense
NDArray = core.NDArray


def run_in_float32(op: Operator, attrs: Attrs, inputs: Sequence[Any]) -> list | None:
    """Call a composite on float16 or bfloat16 arrays operator by operator, with float32 in between; None for other arrays."""
    if not op.in_float32 or not any(a.dtype_code in HALF_TYPES for a in inputs):  # type: ignore[attr-defined]
        return None
    specs = tuple([(a.shape, a.dtype_code) for a in inputs])
    found = inside(op, attrs, len(inputs), specs)
    if found is None:
        return None
    graph, variables = found
    F = Builder()
    F.work_for(variable(op.name.lstrip("_")), "_inside")
    sources = [(v, 0) for v in variables]
    known = Specs(dict(zip(variables, specs, strict=True)))
    graph = Graph(widened(F, graph.outputs, sources, known))
    loops = any(node.op is not None and node.op.bodies for node in graph.nodes)
    graph = expand(graph, everything=False, specs=known)[0] if loops else in_turn(graph)[0]
    return replayed(core.namespace(), graph, dict(zip(variables, inputs, strict=True)))


class _Traced(Builder):
    """Builds the graph of a function for one mode."""

    def __init__(self, specs: Specs, is_train: bool):
        super().__init__(specs)
        self._trained, self._recorded = is_train, tape.recording()
        self._others: list[Entry] = []
        self._views: set[Entry] = set()  # entries that would share memory if they were arrays

    def add(self, op: Operator, inputs: Sequence[Entry], attrs: Attrs) -> Node:
        # Before the graph is lowered: a gradient may be taken inside the function.
        node = super().add(op, inputs, attrs.training(self._trained))
        if tape.training() != self._trained:
            self._others.append((node, 0))
        return node

    def _invoke(self, op: Operator, inputs: Sequence[Value], attrs: Attrs) -> Any:
        found = super()._invoke(op, inputs, attrs)
        if tape.recording():
            self._recorded = True
        elif self._recorded:  # paused: what is not recorded is a constant
            found = [v.detach() for v in found] if isinstance(found, list) else found.detach()
        return found

    def viewed(self, value: Value, part: Value) -> Value:
        self._views |= {value.entry, part.entry}
        return part

    def changed(self, value: Value, new: Value) -> Value:
        """Give a value that the function made a new entry, under all its names, as arrays are changed in place."""
        node = value.entry[0]
        alone = node.op is not None and value.entry not in self._views and (not self._scopes or node in self._scopes[-1])
        if not alone or self.specs(value.entry) != self.specs(new.entry):  # type: ignore[misc]
            raise OpTypeError("a compiled function changes an argument, or a part of an array, in place")
        value.entry = new.entry
        return value

    def check_mode(self) -> None:
        """Raise if the function calls an operator that reads the mode in another mode than its own."""
        if has_mode(Graph(self._others)):
            raise OpValueError("a compiled function calls an operator in another mode than it is called in itself")


#: Functions that make the result of a function from a list of its values.
_forms: dict[type, Callable] = {Value: itemgetter(0), list: list, tuple: tuple}


class _Calling(local):
    function: Callable | None = None
    changed: tuple | None = None  # values that the function reads from outside, after tracing


_calling = _Calling()  # the compiled function or method that this thread calls


def _filled(function: Callable, places: list, others: dict, *arrays: Any) -> Any:
    """Call a function with arrays at these places, numbers and names, beside other arguments."""
    given = others | dict(zip(places, arrays, strict=True))
    numbered = sorted(k for k in given if isinstance(k, int))
    return function(*(given[k] for k in numbered), **{k: a for k, a in given.items() if isinstance(k, str)})


class CompiledFunction:
    """A function of arrays that runs as a plan; see :func:`compiled`."""

    def __init__(self, function: Callable):
        functools.update_wrapper(self, function)
        self._function, self._reads, self._owner = function, Outside(function), self
        self._outside: tuple | None = None  # of the last call
        self._same: dict[tuple, tuple] = {}  # outside values as changed by the function itself, and before
        self._refused, self._told = "", False  # why calls run uncompiled, and whether the warning was given

    def __get__(self, instance: Any, owner: type | None = None) -> CompiledFunction:
        if instance is None or not hasattr(self._function, "__get__"):
            return self
        return self._as(self._function.__get__(instance, owner))

    def __reduce__(self) -> Any:
        found = getattr(sys.modules.get(self.__module__), self.__qualname__, None)
        return self.__qualname__ if found is self else (CompiledFunction, (self._function,))  # the name is the decorated one's

    def _as(self, function: Callable) -> CompiledFunction:
        """Return another function with the plans and warnings of this one."""
        found = CompiledFunction.__new__(CompiledFunction)
        found.__dict__.update(self.__dict__)
        found._function, found._reads = function, Outside(function, self._reads.names)
        return found

    def _beside(self, given: tuple, named: dict[str, Any]) -> Any:
        """Call with arguments that are no arrays: values of a function that is being traced, or values from outside."""
        if any(isinstance(a, Value) for a in (*given, *named.values())):
            return self._function(*given, **named)
        others: dict[Any, Any] = {**dict(enumerate(given)), **named}
        places = [k for k, a in others.items() if isinstance(a, Dense)]
        if not places:
            self._check(given)
        arrays = [others.pop(k) for k in places]
        function = functools.partial(_filled, self._function, places, others)
        return self._as(functools.update_wrapper(function, self._function))(*arrays)

    def _check(self, arrays: tuple) -> None:
        for i, a in enumerate(arrays):
            if not isinstance(a, Dense):
                raise OpTypeError(f"{self._name}: argument {i} must be an NDArray, got {shown(a)}")

    def explain(self, first: Any, *others: Any) -> Any:
        """Return what an executor of the function's graph says of a run on these arrays, without gradients.

        A function that runs as it is written raises the reason.  See :meth:`mxop.graph.executor.Executor.explain`.
        """
        arrays, mode = (first, *others), tape.training()
        self._check(arrays)
        made = self.pattern(tuple([(a.shape, a.dtype_code) for a in arrays]), (), mode, first._device.number)
        net, given = symbol(made.source.outputs), {v.name: a for v, a in zip(made.variables, arrays, strict=True)}
        return net.bind(first.context, {name: given[name] for name in net.list_arguments()}, grad_req="null").explain(mode)

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        if arrays and isinstance(arrays[0], type):  # classmethod hands over the class so, from Python 3.13 on
            return self.__get__(arrays[0])(*arrays[1:], **named)
        for a in arrays:
            if not isinstance(a, Dense):
                return self._beside(arrays, named)
        if named:
            return self._beside(arrays, named)
        owner = self._owner
        try:
            read = self._reads.now()
        except OpTypeError as problem:
            owner._refused, found = owner._refused or str(problem), None
        else:
            if read is not owner._outside and read == owner._outside:
                read = owner._outside  # the same object is looked up faster
            owner._outside = read
            before, _calling.function, _calling.changed = _calling.function, self._function, None
            try:
                found = plans.run_function(owner, owner._same.get(read, read), list(arrays))
            finally:
                _calling.function = before
            if _calling.changed not in (None, read):  # changed by the function while it was traced
                keep(owner._same, _calling.changed, owner._same.get(read, read))
        if found is None:
            found = self._function(*arrays)
            if owner._refused and not owner._told:
                owner._told = True
                warnings.warn(f"{self._name} runs as it is written, not compiled: {owner._refused}", RuntimeWarning, 2)
        return found

    @property
    def _name(self) -> str:
        return getattr(self._function, "__qualname__", repr(self._function))

    def pattern(self, specs: tuple, wanted: tuple[int, ...], is_train: bool, gpu: int, trace: Trace | None = None) -> Pattern:
        """Return the pattern for inputs of given shapes and types."""
        try:
            return self._traced(_calling.function or self._function, specs, wanted, is_train, gpu, trace)
        except REFUSED as problem:
            if trace is None:
                self._refused = str(problem)
            raise

    def _traced(
        self,
        function: Callable,
        specs: tuple,
        wanted: tuple[int, ...],
        is_train: bool,
        gpu: int,
        trace: Trace | None,
    ) -> Pattern:
        variables = [variable(f"x{i}") for i in range(len(specs))]
        F = _Traced(Specs(dict(zip(variables, specs, strict=True))), is_train)
        before = switch_tracing(True)
        try:
            with no_draws():
                found = function(*[F.value((v, 0)) for v in variables])
            _calling.changed = Outside(function, self._reads.names).now()
        finally:
            switch_tracing(before)
        F.check_mode()
        form = _forms.get(type(found)) or getattr(type(found), "_make", None)  # of a namedtuple
        values = [found] if isinstance(found, Value) else [] if form is None else list(found)
        if not values or not all(isinstance(v, Value) for v in values):
            raise OpTypeError(f"{self._name} returned {found!r}; expected what operators return")
        entries: list[Entry] = [v.entry for v in values]
        names = [f"argument {i}" for i in range(len(specs))]
        made = Pattern(Graph(entries), variables, specs, wanted, is_train, lambda: (self._name, names), gpu=gpu, trace=trace)
        made.form = form
        return made

    def __repr__(self) -> str:
        return f"<compiled {self._name}>"


def compiled(function: Callable) -> CompiledFunction:
    """Return a function of arrays that runs as one plan: operators fused, temporaries shared, no Python between them.

    The function is called with placeholders once for all sizes with the same guards (results of comparisons of sizes), and
    again for other numbers of dimensions, types, wanted gradients, and values that it reads from outside (numbers and objects
    in closures, globals, attributes, and arguments that are no arrays).  So it must do nothing but call operators.  A function
    that reads elements of its arrays (such as by ``asnumpy``), changes its arguments in place, or uses an array that is not an
    argument, runs uncompiled and warns once.  It may be a method.  Gradients of every order are those of the function; it may
    call ``mx.autograd.grad``.  Results are new arrays, even if the function returns an argument or a part of one.

    Parameters
    ----------
    function : callable
        Takes arrays, and other objects beside them; returns an array or a list or tuple of arrays.

    Examples
    --------
    >>> import mxop as mx
    >>> @mx.graph.compiled
    ... def normalized(x):
    ...     x = x - x.mean(axis=-1, keepdims=True)
    ...     return x / mx.nd.sqrt(mx.nd.square(x).mean(axis=-1, keepdims=True))
    >>> normalized(mx.nd.array([[1, 2, 3], [2, 4, 6]])).asnumpy().astype("float64").round(3).tolist()
    [[-1.225, 0.0, 1.225], [-1.225, 0.0, 1.225]]
    """
    return CompiledFunction(function)


__all__ = ["CompiledFunction", "compiled", "planned"]
