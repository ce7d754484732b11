"""What autograd knows of sparse arrays: each that it records has a stand-in on the tape, a dense array without memory.

The stand-in holds zeros, of which there is one in memory; gradients that reach it are dense, but for those that reach a
variable, which may be row_sparse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import autograd
from ..._core import core, tape
from ...opdef import registry
from ...support.nested import leaves
from .memory import at_home, lib, wrapped

Dense = core.Dense
NDArray = core.NDArray


@at_home
def stand_in(shape: tuple[int, ...], like: Any) -> NDArray:
    """Return zeros of a shape, of the type of a part and where it is; at most one of them is in memory."""
    return wrapped(lib(like).broadcast_to(lib(like).zeros((), like.dtype), shape))


def handle(x: Any) -> Any:
    """Return what autograd knows an array by: itself, or the stand-in of a sparse one; None for what was not recorded."""
    at = x if isinstance(x, Dense) else getattr(x, "_history", None)
    return at if at is not None and tape.tracked(at) else None


def involved(values: Sequence[Any]) -> list[NDArray]:
    """Return what a call of these arguments has to record: nothing where autograd does not."""
    return [at for x in leaves(values) if (at := handle(x)) is not None] if tape.recording() else []


def recorded(function: Any, inputs: list[NDArray], found: Any) -> Any:
    """Make `found`, dense or sparse, the result of a function of `inputs`, whose ``_backward(heads)`` gives gradients."""
    at = found
    if not isinstance(found, Dense):
        at = found._history = stand_in(found.shape, found._values)
    tape.record_user(function, inputs, [at])
    return found


class Unchanged:
    """The gradient of what has the same elements, stored otherwise."""

    def _backward(self, heads: list[NDArray]) -> list[NDArray]:
        return heads


def same(source: Any, found: Any) -> Any:
    """Return `found`, which has the elements of `source`, as a result of it where autograd records."""
    inputs = [] if found is source else involved([source])
    return recorded(Unchanged(), inputs, found) if inputs else found


class Again:
    """The gradient of an operator that kept the storage: that of the operator on dense arrays, which is run again."""

    def __init__(self, function: Callable, dense: Callable, args: tuple, kwargs: dict[str, Any]):
        self.function, self.dense, self.args, self.kwargs = function, dense, snapshot(args), kwargs

    def _backward(self, heads: list[NDArray]) -> list[NDArray]:
        again, training, variables = tape.recording(), tape.training(), []

        def variable(x: Any) -> Any:
            if isinstance(x, (list, tuple)):
                return type(x)(map(variable, x))
            tracked, x = handle(x) is not None, self.dense(x)
            if tracked:
                x = core.op_function(registry.get("_copy"))(x) if again else x.detach()
                if not again:  # the tape need not look at what lies before
                    tape.mark_variable(x, None, "write")
                variables.append(x)
            return x

        with autograd.record(train_mode=training):
            found = self.function(*map(variable, self.args), **self.kwargs)
        return tape.run([found], heads, variables, again, again, training)


def snapshot(value: Any) -> Any:
    """Return arguments as they are now: sparse arrays that are written later become others."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(snapshot, value))
    return value._alias() if hasattr(value, "_alias") else value
