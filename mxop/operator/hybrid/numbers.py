"""Python's division and what else numba and NumPy do not do alike, as functions of NumPy's numbers that numba compiles.

:func:`plain` and :func:`compiled` are what translated kernels name besides their variables.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from .ir import CASTS
from .words import NUMPY, OPERATIONS


def ifloordiv(a, b):
    if b == 0:
        return 0 * a
    if b == -1:  # the hardware traps on the least integer
        return -a
    return a // b


def imod(a, b):
    if b == 0 or b == -1:
        return 0 * a
    return a % b


def floordiv(a, b):  # as NumPy: the quotient that goes with the remainder
    if b == 0:
        return a / b
    rest = np.fmod(a, b)
    found = (a - rest) / b
    if rest != 0 and (b < 0) != (rest < 0):
        found -= 1
    if found == 0:
        return np.copysign(0 * b, a / b)
    whole = np.floor(found)
    return whole + 1 if found - whole > 0.5 else whole


def mod(a, b):
    rest = np.fmod(a, b)
    if b == 0:
        return rest
    if rest == 0:
        return np.copysign(rest, b)
    return rest + b if (b < 0) != (rest < 0) else rest


def at(index, size, line, outside):
    index = index + size if index < 0 else index
    if index < 0 or index >= size:
        outside[0] = line
        return 0 * index
    return index


def ipow(a, b):
    if b < 0:
        raise ValueError("Integers to negative integer powers are not allowed.")
    found = 1 + 0 * a
    while b > 0:
        if b & 1:
            found = found * a
        a = a * a
        b >>= 1
    return found


def maximum(a, b):
    return a if a >= b or a != a else b


def minimum(a, b):
    return a if a <= b or a != a else b


def half(x):
    """Round float32 to the nearest float16."""
    bits = np.float32(x).view(np.uint32)
    sign = np.uint32(bits & np.uint32(0x80000000))
    size = np.uint32(bits ^ sign)
    if size > np.uint32(0x7F800000):
        return np.float32(x)
    if size >= np.uint32(0x477FF000):  # 65520 and more round to infinity
        size = np.uint32(0x7F800000)
    elif size < np.uint32(0x38800000):  # below the least normal number, in steps of 2**-24
        small = np.float32(np.float32(size.view(np.float32) + np.float32(0.5)) - np.float32(0.5))
        size = small.view(np.uint32)
    else:
        odd = np.uint32(size >> np.uint32(13)) & np.uint32(1)
        size = np.uint32(np.uint32(size + np.uint32(0xFFF) + odd) & np.uint32(0xFFFFE000))
    return np.uint32(sign | size).view(np.float32)


# ---- loops whose iterations add to the same elements ----------------------------------------------------------------
def parts(n, additions, size):
    """Return into how many parts a loop is split: a copy must be worth making, and all together have about 2**26 elements."""
    size = max(size, 1)
    return max(1, min(n, additions // (2 * size), 16, 1 + 67108864 // size))


def copies(tensor, parts):
    return np.empty((parts - 1, tensor.size + 64), tensor.dtype)  # no two of them share a cache line


def copy(tensor, copies, part):
    """Return what a part adds to: the tensor itself, or a copy of zeros."""
    if part == 0:
        return tensor
    found = copies[part - 1, : tensor.size].reshape(tensor.shape)
    found[...] = 0
    return found


def blocks(tensor, parts):
    """Return the number of blocks in which copies are added up."""
    return (tensor.size + 8191) // 8192 if parts > 1 else 0


def merge(tensor, copies, block):
    """Add a block of all copies to the tensor, in their order."""
    whole, first = tensor.reshape(tensor.size), block * 8192
    for k in range(copies.shape[0]):
        one = copies[k]
        for i in range(first, min(first + 8192, whole.size)):
            whole[i] += one[i]


_OWN = (ifloordiv, imod, floordiv, mod, at, ipow, maximum, minimum, half, parts, copies, copy, blocks, merge)
_NUMPY = NUMPY | {name: getattr(np, name) for name in ("zeros", "empty", "bool_", "inf", "nan")}


def _named(found: dict[str, Any]) -> dict[str, Any]:
    return {f"_mx_{name}": value for name, value in found.items()}


@lru_cache(maxsize=1)
def plain() -> dict[str, Any]:
    """Return the functions of a kernel that runs as plain Python."""
    return _named(_NUMPY | OPERATIONS | {f.__name__: f for f in _OWN} | {"prange": range})


@lru_cache(maxsize=1)
def compiled() -> dict[str, Any]:
    """Return the functions of a kernel that numba compiles."""
    import numba

    casts = {name: getattr(np, name) for name in CASTS if name != "float16"}
    own = {f.__name__: numba.njit(error_model="numpy", nogil=True)(f) for f in _OWN}
    others = {"erf": math.erf, "prange": numba.prange, "uint32": np.uint32, "uint64": np.uint64}
    return _named(_NUMPY | casts | own | others) | {"__name__": __name__}
