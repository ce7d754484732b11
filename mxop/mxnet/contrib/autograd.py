"""``mx.contrib.autograd``: MXNet's first interface to autograd, in terms of :mod:`mxop.autograd`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ... import autograd
from ..._core import tape
from ...autograd import mark_variables
from ...ndarray import NDArray
from ...support.errors import OpTypeError, shown
from ...support.missing import hooks


def set_is_training(is_train: bool) -> bool:
    """Switch recording and train mode on or off; return whether recording was on."""
    autograd.set_training(is_train)
    return autograd.set_recording(is_train)


def TrainingStateScope(enter_state: bool) -> tape.Scope:
    """Return a scope with recording and train mode on or off."""
    return tape.Scope(enter_state, enter_state)


def train_section() -> Any:
    """Return a scope that records, in train mode."""
    return TrainingStateScope(True)


def test_section() -> Any:
    """Return a scope that does not record, inside a :func:`train_section`."""
    return TrainingStateScope(False)


test_section.__test__ = False  # type: ignore[attr-defined]  # no test of pytest's


def backward(outputs: list, out_grads: list | None = None, retain_graph: bool = False) -> None:
    """Compute the gradients of marked variables."""
    autograd.backward(outputs, out_grads, retain_graph)


def compute_gradient(outputs: list) -> None:
    """Compute the gradients of marked variables; an older name of :func:`backward`."""
    backward(outputs)


def grad_and_loss(func: Callable, argnum: int | list[int] | None = None) -> Callable:
    """Return a function that computes the gradients of `func` beside its result.

    Parameters
    ----------
    func : callable
    argnum : int or list of int, optional
        The arguments to differentiate with respect to; all by default.

    Examples
    --------
    >>> grads, loss = mx.contrib.autograd.grad_and_loss(lambda x: x * x)(mx.nd.array([3]))
    >>> grads[0].item(), loss.item()
    (6.0, 9.0)
    """

    @functools.wraps(func)
    def wrapped(*args: Any) -> tuple[list, Any]:
        chosen = args if argnum is None else [args[i] for i in (argnum if isinstance(argnum, list) else [argnum])]
        for x in chosen:
            if not isinstance(x, NDArray):
                raise OpTypeError(f"grad_and_loss: argument {shown(x)} is not an NDArray")
        grads = [x.zeros_like() for x in chosen]
        mark_variables(list(chosen), grads)
        with train_section():
            outputs = func(*args)
        backward([outputs] if isinstance(outputs, NDArray) else outputs)
        return grads, outputs

    return wrapped


def grad(func: Callable, argnum: int | list[int] | None = None) -> Callable:
    """Return a function that computes the gradients of `func`; see :func:`grad_and_loss`."""
    both = grad_and_loss(func, argnum)

    @functools.wraps(both)
    def wrapped(*args: Any) -> list:
        return both(*args)[0]

    return wrapped


__all__ = ["TrainingStateScope", "backward", "compute_gradient", "grad", "grad_and_loss", "mark_variables", "set_is_training",
           "test_section", "train_section"]  # fmt: skip

__getattr__, __dir__ = hooks(globals(), __all__)
