"""Random shapes and arrays. Everything draws from NumPy's global generator, which `with_seed` seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import ndarray as nd
from .defaults import default_context, default_dtype

Shape = tuple[int, ...]


def rand_shape_nd(num_dim: int, dim: int = 10, allow_zero_size: bool = False) -> Shape:
    """Return a random shape of `num_dim` dimensions, each from 1 (0 if allowed) to `dim`."""
    return tuple(np.random.randint(0 if allow_zero_size else 1, dim + 1, size=num_dim).tolist())


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> Shape:
    """Return a random shape of 2 dimensions, at most `dim0` and `dim1`."""
    return _rand_shape((dim0, dim1), allow_zero_size)


def rand_shape_3d(dim0: int = 10, dim1: int = 10, dim2: int = 10, allow_zero_size: bool = False) -> Shape:
    """Return a random shape of 3 dimensions, at most `dim0`, `dim1` and `dim2`."""
    return _rand_shape((dim0, dim1, dim2), allow_zero_size)


def _rand_shape(limits: Sequence[int], allow_zero_size: bool) -> Shape:
    return tuple(rand_shape_nd(1, limit, allow_zero_size)[0] for limit in limits)


def rand_coord_2d(x_low: int, x_high: int, y_low: int, y_high: int) -> tuple[int, int]:
    """Return a random point of the rectangle, its high ends excluded."""
    return int(np.random.randint(x_low, x_high)), int(np.random.randint(y_low, y_high))


def random_arrays(*shapes: Shape) -> np.ndarray | list[np.ndarray]:
    """Return a standard normal float32 array of each shape: the array itself when there is one shape, else a list."""
    arrays = [np.array(np.random.standard_normal(shape), dtype=default_dtype()) for shape in shapes]
    return arrays[0] if len(arrays) == 1 else arrays


def random_uniform_arrays(*shapes: Shape, low: float = 0.0, high: float = 1.0, dtype: Any = None) -> list[np.ndarray]:
    """Return a list with an array of each shape, uniform between `low` and `high`."""
    dtype = dtype or default_dtype()
    return [np.array(np.random.uniform(low, high, shape), dtype=dtype) for shape in shapes]


def random_sample(population: Sequence, k: int) -> list:
    """Return `k` different elements of `population` in random order."""
    return [population[i] for i in np.random.permutation(len(population))[:k]]


def rand_ndarray(shape: Shape, stype: str = "default", density: float | None = None, dtype: Any = None,
                 modifier_func: Callable[[Any], Any] | None = None, shuffle_csr_indices: bool = False,
                 distribution: str | None = None, ctx: Any = None) -> Any:  # fmt: skip
    """Return a random NDArray.

    Parameters
    ----------
    shape : tuple of int
        Its shape.
    stype : {"default", "csr", "row_sparse"}
        Its storage type. Dense values are standard normal, sparse ones uniform in [0, 1).
    density : float, optional
        The fraction of non-zero elements (csr) or rows (row_sparse); random by default. Dense arrays have none.
    dtype : dtype, optional
        float32 by default.
    modifier_func : callable, optional
        Applied to each stored value of a sparse array.
    shuffle_csr_indices : bool
        Accepted for MXNet's sake. A conversion to csr stores sorted columns, so there is nothing to shuffle.
    distribution : {"uniform", "powerlaw"}, optional
        How the non-zero elements of a csr array are spread over its rows.
    ctx : Context, optional
        Where to put it; the default context if None.
    """
    ctx = ctx or default_context()
    dtype = dtype or default_dtype()
    if stype == "default":
        return nd.array(random_arrays(shape), dtype=dtype, ctx=ctx)
    stored = sparse_pattern(shape, stype, np.random.rand() if density is None else density, distribution or "uniform")
    values = np.random.rand(*shape)
    if modifier_func is not None:
        values = assign_each(values, modifier_func)
    return nd.array(np.where(stored, values, 0), dtype=dtype, ctx=ctx).tostype(stype)


def sparse_pattern(shape: Shape, stype: str, density: float, distribution: str) -> np.ndarray:
    """Return which elements a sparse array stores, as a bool array."""
    if stype == "row_sparse":
        rows = np.random.rand(shape[0]) < density
        return np.broadcast_to(rows.reshape((-1,) + (1,) * (len(shape) - 1)), shape)
    if stype != "csr" or len(shape) != 2:
        raise ValueError(f"no storage type {stype!r} for the shape {shape}: csr (2-D), row_sparse or default")
    if distribution == "uniform":
        return np.random.rand(*shape) < density
    if distribution == "powerlaw":
        # Row i stores 2**i elements, until the share that `density` allows is used up.
        left = int(density * shape[0] * shape[1])
        pattern = np.zeros(shape, dtype=bool)
        for row in range(shape[0]):
            taken = min(2 ** min(row, 62), shape[1], left)
            pattern[row, :taken] = True
            left -= taken
        return pattern
    raise ValueError(f"no distribution {distribution!r}: uniform or powerlaw")


def assign_each(the_input: np.ndarray, function: Callable[[Any], Any] | None) -> np.ndarray:
    """Return `function` of each element; a copy when it is None."""
    return np.array(the_input if function is None else np.vectorize(function, [the_input.dtype])(the_input))


def assign_each2(input1: np.ndarray, input2: np.ndarray, function: Callable[[Any, Any], Any] | None) -> np.ndarray:
    """Return `function` of each pair of elements; a copy of the first input when it is None."""
    return np.array(input1 if function is None else np.vectorize(function, [input1.dtype])(input1, input2))


def create_vector(size: int, dtype: Any = np.int64) -> Any:
    """Return the NDArray ``[0, 1, ..., size - 1]``."""
    return nd.arange(0, size, dtype=dtype)


def create_2d_tensor(rows: int, columns: int, dtype: Any = np.int64) -> Any:
    """Return an NDArray of the given size in which each element is the number of its row."""
    return nd.broadcast_to(nd.arange(0, rows, dtype=dtype).reshape((rows, 1)), shape=(rows, columns))


def np_reduce(
    dat: np.ndarray, axis: int | Sequence[int] | None, keepdims: bool, numpy_reduce_func: Callable[..., np.ndarray]
) -> np.ndarray:
    """Reduce `dat` over one, several or (None) all axes with a NumPy function that takes one axis at a time."""
    axes = range(dat.ndim) if axis is None else [axis] if np.ndim(axis) == 0 else axis
    axes = sorted({int(a) % dat.ndim for a in axes}, reverse=True)  # from the last, so that the others keep their place
    reduced = dat
    for one in axes:
        reduced = numpy_reduce_func(reduced, axis=one)
    if keepdims:
        reduced = np.reshape(reduced, tuple(1 if i in axes else size for i, size in enumerate(dat.shape)))
    return reduced


def collapse_sum_like(a: np.ndarray, shape: Shape) -> np.ndarray:
    """Sum `a` down to `shape`, undoing a broadcast from it: what the gradient of a broadcast input is."""
    lead = a.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(lead + i for i, size in enumerate(shape) if size == 1)
    return np.sum(a, axis=axes, keepdims=True).reshape(shape)
