"""MXNet's functions for updates of optimizers that take lists of arrays, and numbers where the operator takes an array.

They are ``mx.nd.contrib.adamw_update`` and others; :func:`all_finite` may keep what its result holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .._core import core
from ..opdef import registry
from ..support.errors import OpTypeError, shown

__all__ = ["all_finite", "multi_all_finite"]


def _call(name: str, arrays: Iterable[Any], **params: Any) -> Any:
    return core.op_function(registry.get(name))(*arrays, **params)


def _as_array(number: Any, like: Any) -> Any:
    """Return an array of one number, where another array is and of its type."""
    if isinstance(number, core.Dense):
        return number
    return _call("_full", (), shape=(1,), value=number, ctx=str(like.context), dtype=like.dtype)


def _in_turn(*lists: Sequence[Any]) -> list[Any]:
    """Return the first array of each list, then the second..."""
    return [array for arrays in zip(*lists, strict=True) for array in arrays]


# ---- AdamW and LAMB --------------------------------------------------------------------------------------------------
def adamw_update(weight: Any, grad: Any, mean: Any, var: Any, rescale_grad: Any, lr: float, eta: float, **params: Any) -> Any:
    """Step of AdamW: ``_adamw_update``, whose `rescale_grad` may be a number here."""
    arrays = weight, grad, mean, var, _as_array(rescale_grad, mean)
    return _call("_adamw_update", arrays, lr=lr, eta=eta, **params)


def mp_adamw_update(weight: Any, grad: Any, mean: Any, var: Any, weight32: Any, rescale_grad: Any, lr: float, eta: float,
                    **params: Any) -> Any:  # fmt: skip
    """Step of AdamW with a float32 copy of the weights: ``_mp_adamw_update``, whose `rescale_grad` may be a number here."""
    arrays = weight, grad, mean, var, weight32, _as_array(rescale_grad, mean)
    return _call("_mp_adamw_update", arrays, lr=lr, eta=eta, **params)


def multi_adamw_update(weights: Sequence[Any], grads: Sequence[Any], mean: Sequence[Any], var: Sequence[Any],
                       rescale_grad: Any, lrs: Any, wds: Any, etas: Any, size: int = 0, **params: Any) -> Any:  # fmt: skip
    """``_multi_adamw_update`` of lists of arrays, one of each kind."""
    arrays = [*_in_turn(weights, grads, mean, var), _as_array(rescale_grad, mean[0])]
    return _call("_multi_adamw_update", arrays, num_weights=size or len(weights), lrs=lrs, wds=wds, etas=etas, **params)


def multi_mp_adamw_update(weights: Sequence[Any], grads: Sequence[Any], mean: Sequence[Any], var: Sequence[Any],
                          weights32: Sequence[Any], rescale_grad: Any, lrs: Any, wds: Any, etas: Any, size: int = 0,
                          **params: Any) -> Any:  # fmt: skip
    """``_multi_mp_adamw_update`` of lists of arrays, one of each kind."""
    arrays = [*_in_turn(weights, grads, mean, var, weights32), _as_array(rescale_grad, mean[0])]
    return _call("_multi_mp_adamw_update", arrays, num_weights=size or len(weights), lrs=lrs, wds=wds, etas=etas, **params)


def multi_lamb_update(weights: Sequence[Any], grads: Sequence[Any], mean: Sequence[Any], var: Sequence[Any], step_count: Any,
                      lrs: Any, wds: Any, num_tensors: int = 0, **params: Any) -> Any:  # fmt: skip
    """``_multi_lamb_update`` of lists of arrays, one of each kind."""
    more = {"num_tensors": num_tensors or len(weights), "step_count": step_count, "learning_rates": lrs, "wds": wds}
    return _call("_multi_lamb_update", _in_turn(weights, grads, mean, var), **more, **params)


def multi_mp_lamb_update(weights: Sequence[Any], grads: Sequence[Any], mean: Sequence[Any], var: Sequence[Any],
                         weights32: Sequence[Any], step_count: Any, lrs: Any, wds: Any, num_tensors: int = 0,
                         **params: Any) -> Any:  # fmt: skip
    """``_multi_mp_lamb_update`` of lists of arrays, one of each kind."""
    more = {"num_tensors": num_tensors or len(weights), "step_count": step_count, "learning_rates": lrs, "wds": wds}
    return _call("_multi_mp_lamb_update", _in_turn(weights, grads, mean, var, weights32), **more, **params)


#: What ``mx.nd.contrib`` has beside its operators.
CONTRIB = {f.__name__: f for f in (adamw_update, mp_adamw_update, multi_adamw_update, multi_mp_adamw_update,
                                   multi_lamb_update, multi_mp_lamb_update)}  # fmt: skip


# ---- are all finite? -------------------------------------------------------------------------------------------------
def all_finite(data: Any, init_output: bool = True, out: Any = None, name: str | None = None) -> Any:
    """Return 1 if all elements are finite, 0 if one is infinite or NaN, as a float32 array of shape ``(1,)``.

    Parameters
    ----------
    data : NDArray
    init_output : bool
        False leaves a 0 that is in `out` already.
    out : NDArray, optional
        Where the result is written.

    >>> mx.nd.all_finite(mx.nd.array([1, 2])).item(), mx.nd.all_finite(mx.nd.array([1, float("inf")])).item()
    (1.0, 0.0)
    """
    return multi_all_finite(data, init_output=init_output, out=out)


def multi_all_finite(*data: Any, num_arrays: int | None = None, init_output: bool = True, out: Any = None,
                     name: str | None = None) -> Any:  # fmt: skip
    """Return 1 if all elements of all arrays are finite, 0 otherwise; see :func:`all_finite`.

    >>> mx.nd.multi_all_finite(mx.nd.array([1, 2]), mx.nd.array([float("nan")]), num_arrays=2).item()
    0.0
    """
    if out is not None and not isinstance(out, core.NDArray):
        raise OpTypeError(f"multi_all_finite: out={shown(out)} is not an NDArray")
    found = _call("multi_all_finite", data, num_arrays=len(data) if num_arrays is None else num_arrays)
    if out is None:
        return found
    out[:] = found if init_output else found * out
    return out
