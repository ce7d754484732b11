"""Where the parts of sparse arrays lie: NumPy's arrays and SciPy's matrices on the CPU, CuPy's on a GPU."""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np

from ..._core import core
from ...context import Context
from ...support.nested import leaves

NDArray = core.NDArray


def at_home(function: Any) -> Any:
    """Run a function while the device of the first array or part among its arguments is the current one."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        found = next((a for a in leaves(args) if isinstance(a, NDArray) or hasattr(a, "__cuda_array_interface__")), None)
        if found is None:
            return function(*args, **kwargs)
        with (found.context if isinstance(found, NDArray) else context_of(found))._device.current():
            return function(*args, **kwargs)

    return run


def scipy_sparse() -> Any:
    """Return the module ``scipy.sparse``, which takes a while to import."""
    import scipy.sparse

    return scipy.sparse


def on_gpu(part: Any) -> bool:
    """Return whether an array is CuPy's."""
    return not isinstance(part, np.ndarray)


def lib(part: Any) -> Any:
    """Return the module of an array: NumPy or CuPy."""
    return sys.modules["cupy"] if on_gpu(part) else np


@at_home
def csr_of(parts: tuple, shape: tuple) -> Any:
    """Return a matrix of SciPy, or of CuPy, of values, columns and pointers."""
    if not on_gpu(parts[0]):
        return scipy_sparse().csr_matrix(parts, shape=shape)
    import cupyx.scipy.sparse

    return cupyx.scipy.sparse.csr_matrix(parts, shape=shape)


@at_home
def wrapped(part: Any, copy: bool = False) -> NDArray:
    """Return an array of mxop over an array, or a copy of it."""
    if not on_gpu(part):
        return core.from_numpy(part, copy)
    from ..._gpu import device

    return core.from_gpu(part.copy() if copy else part, device.id_of(part))


def raw(array: NDArray) -> Any:
    """Return what an array of mxop holds, as NumPy's or CuPy's."""
    return array._memory


def context_of(part: Any) -> Context:
    """Return the device that an array lies on."""
    return Context("gpu", int(part.device.id)) if on_gpu(part) else Context("cpu", 0)


def moved(part: Any, context: Context) -> Any:
    """Return an array on a device."""
    if not context.is_gpu:
        return part.get() if on_gpu(part) else part
    from ..._gpu import device

    return device.uploaded(moved(part, Context("cpu", 0)), context.device_id)
