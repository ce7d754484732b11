"""Automatic differentiation of imperative code, of any order.

Recording belongs to a thread.  ``with autograd.record():`` notes calls on arrays that descend from variables (see
``attach_grad``); ``backward`` stores gradients in the variables, ``grad`` returns them, and with ``create_graph=True``
their own calls are noted too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._core import core, tape
from ._core.array import Forward, Reading, handed_to_host
from ._core.nans import detect_nan
from .opdef import registry
from .opdef.above import ask
from .opdef.external import keeps_numbers
from .support.errors import MXNetError, OpTypeError, OpValueError, ends_at_caller, items, run_users
from .support.missing import hooks

Dense = core.Dense
NDArray = core.NDArray


def is_recording() -> bool:
    """Return whether calls are being recorded in this thread."""
    return tape.recording()


def is_training() -> bool:
    """Return whether operators behave as in training in this thread."""
    return tape.training()


def set_recording(is_recording: bool) -> bool:
    """Switch recording; return what it was."""
    return tape.switch_recording(bool(is_recording))


def set_training(train_mode: bool) -> bool:
    """Switch training mode; return what it was."""
    return tape.switch_training(bool(train_mode))


_Scope = tape.Scope


def record(train_mode: bool = True) -> _Scope:
    """Return a scope in which calls are recorded for differentiation.

    Examples
    --------
    >>> x = mx.nd.array([1, 2, 3])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad.asnumpy().tolist()
    [2.0, 4.0, 6.0]
    """
    return _Scope(True, train_mode)


def pause(train_mode: bool = False) -> _Scope:
    """Return a scope in which nothing is recorded."""
    return _Scope(False, train_mode)


def train_mode() -> _Scope:
    """Return a scope in which operators behave as in training."""
    return _Scope(None, True)


def predict_mode() -> _Scope:
    """Return a scope in which operators behave as in prediction."""
    return _Scope(None, False)


@ends_at_caller
def mark_variables(variables: NDArray | Sequence[NDArray], gradients: NDArray | Sequence[NDArray],
                   grad_reqs: str | Sequence[str] = "write") -> None:  # fmt: skip
    """Make arrays variables, with the arrays that take their gradients.

    Parameters
    ----------
    variables, gradients : NDArray or list of NDArray
    grad_reqs : str or list of str
        ``'write'``, ``'add'`` or ``'null'``.
    """
    variables, gradients = _items(variables, "variables"), _items(gradients, "gradients")
    _listed([a for a in (*variables, *gradients) if not hasattr(a, "_history")], "variables and gradients")
    if isinstance(grad_reqs, str):
        grad_reqs = [grad_reqs] * len(variables)
    grad_reqs = _items(grad_reqs, "requests")
    if not len(variables) == len(gradients) == len(grad_reqs):
        raise OpValueError(f"mark_variables: {len(variables)} variables, {len(gradients)} gradients, {len(grad_reqs)} requests")
    for x, g, req in zip(variables, gradients, grad_reqs, strict=True):
        if hasattr(x, "_history"):
            x._mark(g, req)
        else:
            tape.mark_variable(x, g, req)


@ends_at_caller
def backward(heads: NDArray | Sequence[NDArray], head_grads: NDArray | Sequence[NDArray | None] | None = None,
             retain_graph: bool = False, train_mode: bool = True) -> None:  # fmt: skip
    """Compute the gradients of `heads` and store them in the variables that they were computed from.

    Parameters
    ----------
    heads : NDArray or list of NDArray
    head_grads : NDArray, list of (NDArray or None), or None
        Gradients with respect to the heads; ones by default.
    retain_graph : bool, default False
        Keep what is needed for another backward.
    train_mode : bool, default True
    """
    heads, head_grads = _heads(heads, head_grads)
    tape.run(heads, head_grads, None, retain_graph, False, train_mode)


@ends_at_caller
def grad(heads: NDArray | Sequence[NDArray], variables: NDArray | Sequence[NDArray],
         head_grads: NDArray | Sequence[NDArray | None] | None = None, retain_graph: bool | None = None,
         create_graph: bool = False, train_mode: bool = True) -> list[NDArray]:  # fmt: skip
    """Return the gradients of `heads` with respect to `variables`.

    Parameters
    ----------
    heads, variables : NDArray or list of NDArray
    head_grads : NDArray, list of (NDArray or None), or None
        Gradients with respect to the heads; ones by default.
    retain_graph : bool, optional
        Keep what is needed for another backward; `create_graph` by default.
    create_graph : bool, default False
        Record the computation of the gradients, so that they can be differentiated again.
    train_mode : bool, default True

    Returns
    -------
    list of NDArray
        One for each variable; zeros for a variable that the heads do not depend on.

    Examples
    --------
    >>> x = mx.nd.array([1, 2, 3])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = x * x * x
    ...     dx = mx.autograd.grad(y, [x], create_graph=True)[0]
    >>> dx.backward()
    >>> x.grad.asnumpy().tolist()
    [6.0, 12.0, 18.0]
    """
    if tape.arrays_of(heads) is None:
        heads = _items(heads, "heads")
        graph = getattr(heads[0], "__mxop_gradients__", None) if heads else None
        if graph is not None:  # of a function that is being compiled
            given = None if head_grads is None else _items(head_grads, "head gradients")
            return graph(heads, _items(variables, "variables"), given, create_graph)
    heads, head_grads = _heads(heads, head_grads)
    variables = _listed(variables, "variables")
    if not variables:
        raise OpValueError("autograd.grad needs at least one variable")
    retain = create_graph if retain_graph is None else retain_graph
    return tape.run(heads, head_grads, variables, retain, create_graph, train_mode)


@ends_at_caller
def get_symbol(x: NDArray) -> Any:
    """Return the recorded computation of an array as a Symbol; its variables are called ``var0``, ``var1``...

    Raises
    ------
    MXNetError
        When the array was not recorded, or a :class:`Function` took part.

    Examples
    --------
    >>> x = mx.nd.array([1, 2])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = mx.nd.softmax(x) * 2
    >>> mx.autograd.get_symbol(y).eval(var0=x)[0].asnumpy().tolist() == y.asnumpy().tolist()
    True
    """
    return ask("symbols")().recorded.to_symbol(x)


def differentiate_run(name: str, run: Callable, inputs: list, variable: list[bool], likes: list, heads: list, grads: list,
                      train_mode: bool, cell: Any = None) -> None:  # fmt: skip
    """Record ``run(inputs, outputs)`` and write the gradients of its outputs into `grads`.

    This differentiates what people write with operators, such as the ``backward`` of a :class:`mxop.operator.CustomOp`.

    Parameters
    ----------
    name : str
        What messages call it.
    run : callable
        Writes its outputs into arrays that it gets.
    inputs : list of NDArray
    variable : list of bool
        Which of them to differentiate with respect to; the others are states.
    likes : list of NDArray
        Arrays of the shapes and types that the outputs have.
    heads : list of NDArray
        Gradient with respect to each output.
    grads : list of (NDArray or None)
        What is computed: for each input, unless None.
    cell : Cell, optional
        Of an operator that keeps a state: says which arrays its forward made.

    Raises
    ------
    MXNetError
        When a recorded array was handed to NumPy on the way: what was computed from it there has no gradient here.  So it is
        with what forward made, where the gradient goes through it.
    """
    again = is_recording()
    with pause(train_mode=train_mode):
        outputs = [like.zeros_like() for like in likes]
    with record(train_mode=train_mode):
        variables = [_variable(x, again) if v else x for x, v in zip(inputs, variable, strict=True)]
        before = tape.reads_by_host()
        forward, reading = getattr(cell, "forward", None), None
        if forward is None:
            run(variables, outputs)
        else:
            seen = [x for x, v in zip(inputs, variable, strict=True) if v]
            asked = [x for x, v, g in zip(variables, variable, grads, strict=True) if v and g is not None]
            with Reading(forward, [], seen, asked, tape.Lost(name, tape.MADE)) as reading:
                run(variables, outputs)
        if tape.reads_by_host() != before:
            raise MXNetError(
                f"{name} cannot be differentiated: it handed a recorded array to NumPy (asnumpy, np.asarray), and what was "
                f"computed from it there has no gradient; compute it with operators of mx.nd instead"
            )
        if reading is not None and (reading.cut or cell.kept):
            raise tape.Lost(name, tape.CUT if reading.cut else tape.KEPT_BY_HOST).error()
    tracked = [(o, h) for o, h in zip(outputs, heads, strict=True) if tape.tracked(o)]
    found: list = [None] * len(inputs)
    if tracked:
        chosen = [x for x, v in zip(variables, variable, strict=True) if v]
        result = iter(tape.run([o for o, _ in tracked], [h for _, h in tracked], chosen, False, again, train_mode))
        found = [next(result) if v else None for v in variable]
    for target, g in zip(grads, found, strict=True):
        if target is not None:
            target[:] = 0 if g is None else g


def _variable(x: NDArray, again: bool) -> NDArray:
    """Return the array as a variable; when recording goes on outside, as one that remembers where it came from."""
    if again and tape.tracked(x):
        return core.op_function(registry.get("_copy"))(x)
    x = x.detach()
    tape.mark_variable(x, None, "write")
    return x


def _items(arrays: Any, what: str) -> list:
    if isinstance(arrays, Dense) or hasattr(arrays, "_history") or hasattr(arrays, "__mxop_gradients__"):
        return [arrays]
    return items(arrays, f"autograd: {what}")


def _listed(arrays: Any, what: str) -> list:
    plain = tape.arrays_of(arrays)
    if plain is not None:
        return plain
    arrays = [_known(a) for a in _items(arrays, what)]
    for a in arrays:
        if not isinstance(a, Dense):
            raise OpTypeError(f"autograd: {what} must be NDArrays, got {type(a).__name__}")
    return arrays


def _known(array: Any) -> Any:
    """Return what stands for an array on the tape: for a sparse one that was recorded, another."""
    stands = getattr(array, "_history", None)
    return array if stands is None else stands


def _heads(heads: Any, head_grads: Any) -> tuple[list, list | None]:
    heads = _listed(heads, "heads")
    if head_grads is None:
        return heads, None
    head_grads = [g.todense() if hasattr(g, "_history") else g for g in _items(head_grads, "head gradients")]
    for g in head_grads:
        if g is not None and not isinstance(g, Dense):
            raise OpTypeError(f"autograd: head gradients must be NDArrays or None, got {type(g).__name__}")
    if len(head_grads) != len(heads):
        raise OpValueError(f"autograd: {len(heads)} heads but {len(head_grads)} head gradients")
    return heads, head_grads


class Function:
    """A function with a gradient of its own: derive, and define ``forward`` and ``backward``.

    ``backward`` gets one gradient per output and returns one per input (None for zero).  When it calls operators inside a
    recording scope (``create_graph=True``), it can be differentiated again: as far as it reads inputs, outputs and constants.
    ``forward`` is not recorded, so a gradient through anything else that it made is an error.

    Examples
    --------
    >>> class Square(mx.autograd.Function):
    ...     def forward(self, x):
    ...         self.save_for_backward(x)
    ...         return x * x
    ...     def backward(self, dy):
    ...         x, = self.saved_tensors
    ...         return 2 * x * dy
    >>> x = mx.nd.array([3.0])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = Square()(x)
    >>> y.backward()
    >>> x.grad.asscalar().item()
    6.0
    """

    def __init__(self) -> None:
        self._saved: tuple = ()
        self._used = False
        self._called: int | None = None  # when forward had run
        self._made: Forward | None = None  # tells which arrays forward made, where it was recorded
        self._kept = False  # whether it keeps what NumPy computed

    def save_for_backward(self, *args: Any) -> None:
        """Keep arrays for ``backward``, which finds them in ``saved_tensors``."""
        self._saved = args

    @property
    def saved_tensors(self) -> tuple:
        """What ``save_for_backward`` kept.

        Raises
        ------
        MXNetError
            When an array of it was changed after the call.
        """
        for k, a in enumerate(self._saved if self._called is not None else ()):
            writer = tape.changed_since(a, self._called) if isinstance(a, Dense) else None
            if writer is not None:
                raise MXNetError(
                    f"cannot differentiate {type(self).__name__}: array {k} of what it saved was changed after it was called, "
                    f"by {writer}; change it after backward(), or save a copy"
                )
        return self._saved

    def __call__(self, *inputs: NDArray) -> Any:
        if self._used:
            raise OpValueError(f"a {type(self).__name__} instance can be called once; make another for each call")
        self._used = True
        recorded = [a for a in inputs if isinstance(a, Dense) and tape.tracked(a)] if is_recording() else []
        with pause(train_mode=is_training()):
            if recorded:
                before = dict(vars(self))
                with Forward(recorded) as self._made:
                    found = self.forward(*inputs)
                    self._kept = handed_to_host() and keeps_numbers(self, before)
            else:
                found = self.forward(*inputs)
        self._called = tape.moment()
        outputs = list(found) if isinstance(found, (list, tuple)) else [found]
        self._check("forward returned", outputs)
        outputs = [o.detach() if any(o is i for i in inputs) else o for o in outputs]
        if is_recording():
            self._check("was called with", inputs)
            tape.record_user(self, list(inputs), outputs)
        return outputs if isinstance(found, (list, tuple)) else outputs[0]

    def _backward(self, heads: list) -> list:
        found = run_users(f"autograd.Function: {type(self).__name__}.backward", self.backward, *heads)
        grads = list(found) if isinstance(found, (list, tuple)) else [found]
        self._check("backward returned", [g for g in grads if g is not None])
        return grads

    def _check(self, what: str, arrays: Sequence[Any]) -> None:
        """Raise unless all are arrays: the tape looks into them without asking."""
        for a in arrays:
            if not isinstance(a, Dense):
                raise OpTypeError(f"autograd.Function: {type(self).__name__} {what} a {type(a).__name__}; expected NDArrays")

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Compute the outputs."""
        raise NotImplementedError

    def backward(self, *output_grads: Any, **kwargs: Any) -> Any:
        """Compute the gradients of the inputs."""
        raise NotImplementedError


__all__ = [
    "Function", "NDArray", "backward", "detect_nan", "get_symbol", "grad", "is_recording", "is_training", "mark_variables",
    "pause", "predict_mode", "record", "set_recording", "set_training", "train_mode",
]  # fmt: skip

__getattr__, __dir__ = hooks(globals(), __all__)
