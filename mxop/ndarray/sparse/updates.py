"""Steps of optimizers by row_sparse gradients."""

from __future__ import annotations

from typing import Any

from ..._core import core
from ...opdef import registry
from .arrays import RowSparseNDArray, dense, rows_of, written
from .memory import raw, wrapped

Dense = core.Dense
NDArray = core.NDArray
#: Operators that change those rows alone which the gradient has.
NAMES = ("sgd_update", "sgd_mom_update", "adam_update", "_sparse_adagrad_update", "ftrl_update",
         "_contrib_group_adagrad_update")  # fmt: skip


def update(name: str, weight: Any, grad: Any, *rest: Any, lazy_update: bool = True, out: Any = None, **params: Any) -> Any:
    """Update the rows that the gradient has, of the weight and of the states, and leave the others as they are.

    Without `lazy_update` all rows are updated, those that the gradient has not by a gradient of zero.
    """
    states = [a for a in rest if isinstance(a, NDArray)]
    params |= zip(registry.get(name).spec.names, rest[len(states) :], strict=False)
    has_rows = all(isinstance(a, (Dense, RowSparseNDArray)) for a in (weight, *states))
    lazy = bool(lazy_update) and has_rows and isinstance(grad, RowSparseNDArray)
    if name == "ftrl_update" and isinstance(weight, Dense):  # as MXNet, which is lazy where the weight is row_sparse
        lazy = False
    rows = grad._numbers if lazy else None
    step = grad.data if lazy else dense(grad)
    parts = [_part(a, rows) for a in (weight, *states)]
    new = core.op_function(registry.get(name))(parts[0], step, *parts[1:], **{k: dense(v) for k, v in params.items()})
    target = weight.copy() if out is None else out
    if target is not weight and out is not None:
        written(weight, out, name)
    for array, part in zip((target, *states), (new, *parts[1:]), strict=True):
        _put(array, part, rows)
    return target


def _part(array: Any, rows: Any) -> NDArray:
    """Return rows of a weight or state, or all of it, as a dense array."""
    if rows is None:
        return dense(array)
    if isinstance(array, RowSparseNDArray):
        return wrapped(rows_of(array, rows))
    return core.op_function(registry.get("take"))(array, wrapped(rows), axis=0)


def _put(array: Any, part: NDArray, rows: Any) -> None:
    """Store the new values of rows, or of all."""
    if rows is None:
        if array is not part:
            array[:] = part
    elif isinstance(array, RowSparseNDArray):
        array._put_rows(rows, raw(part))
    else:
        array[wrapped(rows)] = part
