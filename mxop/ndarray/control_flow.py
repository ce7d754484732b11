"""``mx.nd.contrib.foreach``, ``while_loop`` and ``cond``: Python runs the steps, and autograd records what they call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any

from .._core import core, tape
from ..opdef import registry
from ..opdef.operator import carrier
from ..support import limits
from ..support.errors import OpTypeError, OpValueError, all_end_at_caller
from ..support.nested import ForEach, Form, WhileLoop, flatten, leaves, regroup

Dense = core.Dense
NDArray = core.NDArray


def foreach(body: Callable, data: Any, init_states: Any) -> tuple[Any, Any]:
    """Run a function over the slices of arrays along axis 0, with states that go from step to step.

    Parameters
    ----------
    body : callable
        ``body(slice, states)`` takes them in the form of `data` and `init_states`, and returns the outputs of the step and
        new states.
    data, init_states : NDArray or (nested) list of NDArray
        All data have the same number of slices, at least one.

    Returns
    -------
    outputs, states
        The outputs of all steps, stacked along a new axis 0, and the states after the last one.

    Examples
    --------
    >>> data, total = mx.nd.array([[1, 2], [3, 4], [5, 6]]), mx.nd.zeros(2)
    >>> sums, last = mx.nd.contrib.foreach(lambda x, s: (x + s, x + s), data, total)
    >>> sums.asnumpy().tolist(), last.asnumpy().tolist()
    ([[1.0, 2.0], [4.0, 6.0], [9.0, 12.0]], [9.0, 12.0])
    """
    if (by_name := carrier(leaves(data))) is not None:  # a function that is compiled
        return by_name.__mxop_operator__("_contrib_foreach", (body, data, init_states), {})
    loop = ForEach(NDArray, body, data, init_states)
    n = _steps(loop.data)
    slices, states, outputs = (
        [_slices(a, n) for a in loop.data],
        init_states,
        _Outputs("foreach: the output of the body"),
    )
    for t in range(n):
        out, form, states, _ = loop.step([s[t] for s in slices], states)
        outputs.add(out, form)
    return outputs.stacked(n), states


def _steps(data: Sequence[Any]) -> int:
    """Return how many slices data have."""
    shapes = [a.shape for a in data]
    if not all(shapes) or len({s[0] for s in shapes}) > 1:
        raise OpValueError(f"foreach: data have shapes {', '.join(map(str, shapes))}; expected the same number of slices along "
                           f"axis 0")  # fmt: skip
    if not shapes[0][0]:
        raise OpValueError(f"foreach: data of shape {shapes[0]} have no slices, so the outputs cannot be determined")
    return shapes[0][0]


def _slices(array: Any, n: int) -> Any:
    """Return the slices of an array; recorded, they are one call, whose gradient joins theirs."""
    if not (tape.recording() and tape.tracked(array)) or n > limits.max_outputs():
        return array
    op = core.op_function(registry.get("SliceChannel"))
    found = op(array, num_outputs=n, axis=0, squeeze_axis=True)
    return found if isinstance(found, list) else [found]


class _Outputs:
    """What the steps of a loop return; `what` they are called in messages."""

    def __init__(self, what: str):
        self._what = what
        self._steps: list[list[Any]] = []
        self._form: Form = []

    def add(self, flat: list[Any], form: Form) -> None:
        """Take the output of a step."""
        done = len(self._steps)
        if done and form != self._form:
            raise OpValueError(f"{self._what} changes its form: step {done} returned {regroup(flat, form)!r}")
        for k, array in enumerate(flat):
            before = self._steps[0][k] if done else array
            if array.shape != before.shape:
                raise OpValueError(f"{self._what}, array {k}, has shape {before.shape} in the first step and {array.shape} in "
                                   f"step {done}; expected the same")  # fmt: skip
        self._form = form
        self._steps.append(flat)

    def stacked(self, n: int) -> Any:
        """Return the outputs of the steps, stacked, with zeros up to `n`."""
        stack, join, zeros = (core.op_function(registry.get(name)) for name in ("stack", "Concat", "_zeros"))
        found = []
        for k in range(len(self._steps[0]) if self._steps else 0):
            arrays = [step[k] for step in self._steps]
            made = stack(*arrays, axis=0)
            if len(arrays) < n:
                rest = zeros(shape=(n - len(arrays), *arrays[0].shape), dtype=arrays[0].dtype)
                made = join(made, rest.as_in_context(made.context), dim=0)
            found.append(made)
        return regroup(found, self._form)


def while_loop(cond: Callable, func: Callable, loop_vars: Any, max_iterations: int | None = None) -> tuple[Any, Any]:
    """Run a function as long as a condition holds.

    Parameters
    ----------
    cond, func : callable
        ``cond(*loop_vars)`` returns one number, ``func(*loop_vars)`` the output of the step (None or ``[]`` for none) and
        new loop variables.
    loop_vars : NDArray or (nested) list of NDArray
    max_iterations : int
        Most steps.

    Returns
    -------
    outputs, loop_vars
        The outputs of the steps, stacked and filled with zeros up to `max_iterations` slices (``[]`` if there was no step),
        and the loop variables after the last one.

    Examples
    --------
    >>> i, s = mx.nd.array([1]), mx.nd.array([0])
    >>> out, (i, s) = mx.nd.contrib.while_loop(lambda i, s: i <= 3, lambda i, s: (s, [i + 1, s + i]), [i, s], 5)
    >>> out.asnumpy().ravel().tolist(), s.item()
    ([0.0, 1.0, 3.0, 0.0, 0.0], 6.0)
    """
    if (by_name := carrier(leaves(loop_vars))) is not None:
        return by_name.__mxop_operator__("_contrib_while_loop", (cond, func, loop_vars, max_iterations), {})
    loop = WhileLoop(NDArray, cond, func, loop_vars, max_iterations)
    outputs, done = _Outputs("while_loop: the output of func"), 0
    while done < loop.most and _truth(loop.asked(loop_vars), "while_loop: cond"):
        out, form, loop_vars, _ = loop.step(loop_vars)
        outputs.add(out, form)
        done += 1
    return outputs.stacked(loop.most), loop_vars


def _truth(value: Any, what: str) -> bool:
    """Return the truth of one number."""
    if isinstance(value, Dense) and value.size == 1:
        return bool(value.detach().asnumpy().reshape(-1)[0])  # what it decides has no gradient
    if isinstance(value, Number):
        return bool(value)
    shown = f"an array of shape {value.shape}" if isinstance(value, Dense) else repr(value)
    raise (OpValueError if isinstance(value, Dense) else OpTypeError)(f"{what} is {shown}; expected one number")


def cond(pred: Any, then_func: Callable, else_func: Callable) -> Any:
    """Run one of two functions, and return what it returns.

    Parameters
    ----------
    pred : NDArray, number, or callable that returns one
    then_func, else_func : callable
        Take nothing; return an NDArray or a (nested) list of them.

    Examples
    --------
    >>> x = mx.nd.array([3])
    >>> mx.nd.contrib.cond(x > 0, lambda: x * 2, lambda: x / 2).item()
    6.0
    """
    if callable(pred) and not isinstance(pred, Dense):
        pred = pred()
    if (by_name := carrier((pred,))) is not None:
        return by_name.__mxop_operator__("_contrib_cond", (pred, then_func, else_func), {})
    chosen = _truth(pred, "cond: pred")
    found = then_func() if chosen else else_func()
    flatten(found, NDArray, f"cond: what {'then' if chosen else 'else'}_func returns")
    return found


__all__ = ["cond", "foreach", "while_loop"]
all_end_at_caller(sys.modules[__name__], __all__)
