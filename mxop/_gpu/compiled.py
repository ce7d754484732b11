"""CUDA text compiled by NVRTC, CuPy's door to it, and loaded.

CuPy's makers of kernels add an option of their own, which flushes subnormal numbers to zero, and address memory element by
element; here the text is compiled as it is.
"""

from __future__ import annotations

from typing import Any

from ..support.memo import keep
from . import device
from .text import OPTIONS

_modules: dict[tuple[int, str], Any] = {}


def module(source: str, place: int) -> Any:
    """Return the module of a source on a device, which is CuPy's current one; compile it when it is new.

    Its ``get_function(name)`` returns what is called with the grid, the block and the arguments.
    """
    key = place, source
    found = _modules.get(key)
    if found is None:
        cuda = device.require(place).cuda
        binary, _ = cuda.compiler.compile_using_nvrtc(source, OPTIONS, cache_in_memory=True)
        found = cuda.function.Module()
        found.load(binary)
        keep(_modules, key, found)
    return found


__all__ = ["module"]
