"""What a test gets when it does not say: context, dtype, tolerances and finite-difference steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import context as _context

_INTEGERS = ("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64")

# MXNet 1.x's figures: a test written for them must neither fail nor pass vacuously here. bfloat16 is listed by name
# because NumPy knows the dtype only once ml_dtypes is imported.
_RTOLS = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-5, "bfloat16": 5e-2}
_ATOLS = {"float16": 1e-1, "float32": 1e-3, "float64": 1e-20, "bfloat16": 2e-1}

# Powers of two, so that adding and taking away the step does not round.
_NUMERIC_EPS = {"float16": 2.0**-6, "float32": 2.0**-9, "float64": 2.0**-14, "bfloat16": 2.0**-4}


def default_context() -> Any:
    """Return the context that tests run on: the current one."""
    return _context.current_context()


def set_default_context(ctx: Any) -> None:
    """Make `ctx` the current context of this thread, for everything that follows.

    Parameters
    ----------
    ctx : Context
        The device on which arrays are made and symbols bound when nothing else is said.
    """
    ctx.__enter__()  # a ``with ctx:`` without an end is exactly what is wanted


def list_gpus() -> list[int]:
    """Return the numbers of the GPUs that can be used: ``[0, 1, ...]``, or ``[]``."""
    return list(range(_context.num_gpus()))


def default_dtype() -> type:
    """Return the dtype of test data that names none: float32."""
    return np.float32


def _table(by_name: Mapping[str, float]) -> dict[np.dtype, float]:
    table = {np.dtype(name): value for name, value in by_name.items() if name != "bfloat16"}
    return table | {np.dtype(name): 0 for name in _INTEGERS}


def default_rtols() -> dict[np.dtype, float]:
    """Return the relative tolerance of each dtype."""
    return _table(_RTOLS)


def default_atols() -> dict[np.dtype, float]:
    """Return the absolute tolerance of each dtype."""
    return _table(_ATOLS)


def default_numeric_eps() -> dict[np.dtype, float]:
    """Return the finite-difference step of each floating dtype."""
    return {np.dtype(name): eps for name, eps in _NUMERIC_EPS.items() if name != "bfloat16"}


def numeric_eps_of(dtype: Any) -> float:
    """Return the finite-difference step for `dtype`, float64's for what has none."""
    return _NUMERIC_EPS.get(np.dtype(dtype).name, _NUMERIC_EPS["float64"])


def _lookup(given: float | Mapping | None, dtype: Any, defaults: Mapping[str, float]) -> float:
    """Return the tolerance for `dtype`: the number or table entry `given`, else the default."""
    name = np.dtype(dtype).name
    if isinstance(given, Mapping):
        # Keys come as np.float32, np.dtype("float32") or "float32"; all mean the same.
        for key, value in given.items():
            if np.dtype(key).name == name:
                return value
    elif given is not None:
        return given
    return defaults.get(name, 0)


def get_rtol(rtol: float | Mapping | None = None, dtype: Any = np.float64) -> float:
    """Return `rtol`, or the default relative tolerance of `dtype` when it is None."""
    return _lookup(rtol, dtype, _RTOLS)


def get_atol(atol: float | Mapping | None = None, dtype: Any = np.float64) -> float:
    """Return `atol`, or the default absolute tolerance of `dtype` when it is None."""
    return _lookup(atol, dtype, _ATOLS)


def get_etol(etol: float | None = None) -> float:
    """Return `etol`, the fraction of elements allowed to be wrong; none by default."""
    return 0 if etol is None else etol


def effective_dtype(dat: Any) -> np.dtype:
    """Return the dtype whose precision `dat` really has."""
    dtype = getattr(dat, "dtype", None)
    return np.asarray(dat).dtype if dtype is None else np.dtype(dtype)


def get_tolerance(dat: Any, tol: float | Mapping | None, default_tol: Mapping) -> float:
    """Return the tolerance for `dat`.

    Parameters
    ----------
    dat : NDArray or numpy.ndarray
        The data about to be compared.
    tol : float, dict of dtype to float, or None
        What the test asked for.
    default_tol : dict of dtype to float
        Used for the dtypes on which `tol` is silent.
    """
    by_name = {np.dtype(key).name: value for key, value in default_tol.items()}
    return _lookup(tol, effective_dtype(dat), by_name)


def get_tols(x: Any, y: Any, rtol: float | Mapping | None, atol: float | Mapping | None) -> tuple[float, float]:
    """Return the relative and absolute tolerance for comparing `x` with `y`.

    Where the two dtypes differ the looser tolerance holds: a float32 result cannot be held to float64's.
    """
    dtypes = effective_dtype(x), effective_dtype(y)
    return max(get_rtol(rtol, dtype) for dtype in dtypes), max(get_atol(atol, dtype) for dtype in dtypes)
