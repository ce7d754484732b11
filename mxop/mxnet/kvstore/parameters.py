"""Parameters on several devices and a store: what loops of training that people wrote themselves take from ``mx.model``.
Arrays of a parameter, and its gradients, are lists with one of each device.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

from ...support.errors import OpTypeError, shown
from .base import KVStoreBase, create

#: MXNet sums larger parameters on the device, and updates them there.
_LARGEST = 2**24


def _create_kvstore(kvstore: Any, num_device: int, arg_params: Mapping[str, Any]) -> tuple[Any, bool]:
    """Return the store for a name, a store or None, and whether it is what updates the parameters."""
    updates = os.environ.get("MXNET_UPDATE_ON_KVSTORE", "1") != "0"
    if kvstore is None or isinstance(kvstore, KVStoreBase):
        return kvstore, updates and kvstore is not None
    if not isinstance(kvstore, str):
        raise OpTypeError(f"_create_kvstore: kvstore={shown(kvstore)}; expected a store, its name or None")
    if num_device == 1 and "dist" not in kvstore:
        return None, False
    large = kvstore == "local" and max((prod(a.shape) for a in arg_params.values()), default=0) > _LARGEST
    return create(kvstore), updates and not large


def _initialize_kvstore(kvstore: Any, param_arrays: Sequence[Any], arg_params: Mapping[str, Any],
                        param_names: Sequence[str], update_on_kvstore: bool) -> None:  # fmt: skip
    """Put the parameters into the store, and where that updates them, from there to the devices."""
    for name, arrays in zip(param_names, param_arrays):
        kvstore.init(name, arg_params[name])
        if update_on_kvstore and arg_params[name].stype == "default":
            kvstore.pull(name, arrays)


def _with_gradient(param_arrays: Sequence[Any], grad_arrays: Sequence[Any]) -> Iterator[tuple[int, Any, Any]]:
    """Give number, arrays and gradients of the parameters that have gradients."""
    for number, (arrays, gradients) in enumerate(zip(param_arrays, grad_arrays)):
        if gradients[0] is not None:
            yield number, arrays, gradients


def _update_params_on_kvstore(
    param_arrays: Sequence[Any], grad_arrays: Sequence[Any], kvstore: Any, param_names: Sequence[str]
) -> None:
    """Let the store, which has the optimizer, update the parameters."""
    for number, arrays, gradients in _with_gradient(param_arrays, grad_arrays):
        kvstore.push(param_names[number], gradients)
        kvstore.pull(param_names[number], arrays)


def _update_params(param_arrays: Sequence[Any], grad_arrays: Sequence[Any], updater: Callable[..., None], num_device: int,
                   kvstore: Any = None, param_names: Sequence[str] | None = None) -> None:  # fmt: skip
    """Update the parameters on each device, with a store by the sum of all devices' gradients."""
    for number, arrays, gradients in _with_gradient(param_arrays, grad_arrays):
        if kvstore:
            kvstore.push(param_names[number], gradients)  # type: ignore[index]
            kvstore.pull(param_names[number], gradients, ignore_sparse=False)  # type: ignore[index]
        for device, (array, gradient) in enumerate(zip(arrays, gradients)):
            updater(number * num_device + device, gradient, array)
