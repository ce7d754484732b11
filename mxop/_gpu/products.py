"""Products of matrices by cuBLAS, which reads transposed matrices where they lie, and multiplies halves by tensor cores.

CuPy's own ``matmul`` copies transposed matrices, multiplies stacks of halves in float32, and has no bfloat16.
"""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any

import numpy as np

#: CUDA's numbers of a type of elements, and of the type in which products are added up.
_TYPES = {"float16": (2, 68), "bfloat16": (14, 68), "float32": (0, 68), "float64": (1, 70)}
_TF32 = 77  # float32 that tensor cores round to 10 bits
_ONE_AND_ZERO = {68: np.array([1, 0], np.float32), _TF32: np.array([1, 0], np.float32), 70: np.array([1, 0], np.float64)}
_DEFAULT = -1  # the algorithm that cuBLAS chooses


def product(xp: Any, a: Any, b: Any, out: Any = None) -> Any:
    """Return the products of two stacks of matrices, ``(..., m, k)`` and ``(..., k, n)``, which broadcast; in `out`, if given.

    Parameters
    ----------
    a, b : cupy.ndarray
        Of one floating-point type.
    out : cupy.ndarray, optional
        As many elements in C order; another type, another order, and memory of `a` or `b` cost a copy.
    """
    stack, matrix = np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), (a.shape[-2], b.shape[-1])
    direct = out is not None and out.flags.c_contiguous and out.dtype == a.dtype and out.size
    direct = direct and not xp.may_share_memory(out, a) and not xp.may_share_memory(out, b)
    found = out.reshape(*stack, *matrix) if direct else xp.empty((*stack, *matrix), a.dtype)
    _write(xp, *(xp.broadcast_to(x, (*stack, *x.shape[-2:])) for x in (a, b)), found)
    if out is None:
        return found
    if not direct:
        out[...] = found.reshape(out.shape)
    return out


def _write(xp: Any, a: Any, b: Any, out: Any) -> None:
    """Write the products of two stacks of one shape, by one call where the matrices of each lie at equal distances."""
    if not out.size or not a.size:
        out.fill(0)
        return
    if None in (_step(a), _step(b)):
        for k in range(len(out)):
            _write(xp, a[k], b[k], out[k])
        return
    (a, a_turned, a_row), (b, b_turned, b_row) = (_readable(xp, x) for x in (a, b))
    rows, columns = out.shape[-2:]
    kind, summed = _TYPES[a.dtype.name]
    if a.dtype.name == "float32" and os.environ.get("CUPY_TF32") == "1":
        summed = _TF32
    numbers = _ONE_AND_ZERO[summed]
    one, zero = numbers.ctypes.data, numbers.ctypes.data + numbers.itemsize
    # cuBLAS goes down columns: to it, these are the transposed matrices, and their product is that of b and a
    xp.cuda.cublas.gemmStridedBatchedEx(
        xp.cuda.get_cublas_handle(), b_turned, a_turned, columns, rows, a.shape[-1], one,
        b.data.ptr, kind, b_row, _step(b), a.data.ptr, kind, a_row, _step(a), zero,
        out.data.ptr, kind, columns, rows * columns, out.size // (rows * columns), summed, _DEFAULT,
    )  # fmt: skip


def _step(x: Any) -> int | None:
    """Return the elements from one matrix of a stack to the next; None where they are not at equal distances."""
    places = [(d, step // x.itemsize) for d, step in zip(x.shape[:-2], x.strides[:-2], strict=True) if d != 1]
    if any(outer != d * inner for (_, outer), (d, inner) in pairwise(places)):
        return None
    return places[-1][1] if places else 0


def _readable(xp: Any, x: Any) -> tuple[Any, int, int]:
    """Return matrices as cuBLAS reads them (a copy where it cannot), whether they are transposed, and from row to row (column
    to column, if so) how many elements there are."""
    (rows, columns), (down, across) = x.shape[-2:], (step // x.itemsize for step in x.strides[-2:])
    if (columns == 1 or across == 1) and (rows == 1 or columns <= down < 2**31):
        return x, 0, columns if rows == 1 else down
    if (rows == 1 or down == 1) and (columns == 1 or rows <= across < 2**31):
        return x, 1, rows if columns == 1 else across
    return xp.ascontiguousarray(x), 0, columns


__all__ = ["product"]
