"""CUDA text compiled by CuPy, whose files on disk spare other processes the work."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from ..support.memo import keep
from . import device
from .text import OPTIONS, SUBNORMALS, Source

_modules: dict[tuple[int, str], Any] = {}
_kernels: dict[Source, Any] = {}


def module(source: str, place: int) -> Any:
    """Return the module of a source on a device, which is CuPy's current one; compile it when it is new.

    Its ``get_function(name)`` returns what is called with the grid, the block and the arguments.
    """
    found = _modules.get((place, source))
    if found is None:
        cupy = device.require(place)
        keep_subnormals(cupy)
        found = keep(_modules, (place, source), cupy.RawModule(code=source, options=OPTIONS))
    return found


def elementwise(source: Source, place: int) -> Any:
    """Return the ``ElementwiseKernel`` of a source, which CuPy compiles for each device where it is called."""
    found = _kernels.get(source)
    if found is None:
        cupy = device.require(place)
        keep_subnormals(cupy)
        made = cupy.ElementwiseKernel(source.in_params, source.out_params, source.operation, source.name,
                                      preamble=source.preamble, no_return=True, options=OPTIONS)  # fmt: skip
        found = keep(_kernels, source, made)
    return found


@functools.cache
def keep_subnormals(cupy: Any) -> None:
    """Let CuPy compile programs of ours without its option that flushes subnormal numbers of float32 to zero.

    CuPy adds the option behind those that it is given, so it is taken out where NVRTC gets them.  A macro tells our programs
    from others; as it is among the options by which CuPy's files are found, nobody gets a program of the other kind.
    """
    program = getattr(cupy.cuda.compiler, "_NVRTCProgram", None)
    plain = getattr(program, "compile", None)
    if program is None or plain is None:
        warnings.warn("this version of CuPy compiles kernels so that subnormal float32 numbers become 0 on a GPU", stacklevel=2)
        return

    @functools.wraps(plain)
    def compile_(self: Any, options: tuple[str, ...] = (), *args: Any, **kwargs: Any) -> Any:
        if SUBNORMALS in options:
            options = tuple([o for o in options if o != "-ftz=true"])
        return plain(self, options, *args, **kwargs)

    program.compile = compile_
