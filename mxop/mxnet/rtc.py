"""``mx.rtc``: CUDA kernels that are compiled while a program runs, by CuPy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.core import Dense
from .._gpu import device
from ..context import Context
from ..support import dtypes
from ..support.errors import DeviceError, MXNetError, OpTypeError, OpValueError, all_end_at_caller, shown
from ..support.missing import hooks

_TYPES = {
    "float": "float32", "double": "float64", "__half": "float16", "uint8_t": "uint8", "int8_t": "int8", "char": "int8",
    "int": "int32", "int32_t": "int32", "int64_t": "int64",
}  # fmt: skip
_ARGUMENT = re.compile(r"\s*(const)?\s*(\w+)\s*(\*)?\s*(?:__restrict__\s*)?(\w+)?\s*")


class CudaModule:
    """A source in CUDA, from which kernels are taken.

    Parameters
    ----------
    source : str
        Kernels, ``extern "C"`` or named in `exports`.
    options : sequence of str
        For NVRTC, the compiler.
    exports : sequence of str
        Names of templates with their types, such as ``'axpy<float>'``.

    Examples
    --------
    ::

        module = mx.rtc.CudaModule(r'''
        extern "C" __global__ void axpy(const float *x, float *y, float alpha) {
            int i = threadIdx.x + blockIdx.x * blockDim.x;
            y[i] += alpha * x[i];
        }''')
        axpy = module.get_kernel("axpy", "const float *x, float *y, float alpha")
        x, y = mx.nd.ones((10,), ctx=mx.gpu(0)), mx.nd.zeros((10,), ctx=mx.gpu(0))
        axpy.launch([x, y, 3.0], mx.gpu(0), (1, 1, 1), (10, 1, 1))
    """

    def __init__(self, source: str, options: Sequence[str] = (), exports: Sequence[str] = ()):
        if not isinstance(source, str):
            raise OpTypeError(f"CudaModule: source={shown(source)} is a {type(source).__name__}; expected a str")
        self._source = source
        self._options, self._exports = (tuple([x] if isinstance(x, str) else x) for x in (options, exports))
        self._modules: dict[int, Any] = {}
        if not device.count():
            device.require(0)  # says what is missing

    def get_kernel(self, name: str, signature: str) -> CudaKernel:
        """Return a kernel.

        Parameters
        ----------
        name : str
        signature : str
            Its parameters as in the source: ``'const float *x, int n'``.
        """
        found = [_ARGUMENT.fullmatch(text) for text in signature.split(",")]
        for text, match in zip(signature.split(","), found):
            if match is None or match[2] not in _TYPES:
                raise OpValueError(f"get_kernel: {text.strip()!r} of the signature of {name!r} is not a parameter; expected "
                                   f"'const type *name', of {', '.join(_TYPES)}")  # fmt: skip
        return CudaKernel(self, name, [(_TYPES[m[2]], bool(m[3])) for m in found if m])

    def _function(self, name: str, place: int) -> Any:
        """Return CuPy's function on a device."""
        cupy = device.require(place)
        if place not in self._modules:
            more = {"name_expressions": self._exports} if self._exports else {}
            self._modules[place] = cupy.RawModule(code=self._source, options=self._options, **more)
        try:
            return self._modules[place].get_function(name)
        except Exception as problem:  # CuPy's own, of the compiler and of the driver
            raise MXNetError(f"CudaModule: the kernel {name!r} cannot be had: {problem}") from problem


class CudaKernel:
    """A kernel of a :class:`CudaModule`."""

    def __init__(self, module: CudaModule, name: str, parameters: list[tuple[str, bool]]):
        self._module, self._name, self._parameters = module, name, parameters

    def launch(self, args: Sequence[Any], ctx: Context, grid_dims: Sequence[int], block_dims: Sequence[int],
               shared_mem: int = 0) -> None:  # fmt: skip
        """Run the kernel.

        Parameters
        ----------
        args : list of NDArray or number
            Arrays for pointers, of the device and of the types in the signature.  Autograd sees nothing of it.
        ctx : Context
        grid_dims, block_dims : tuple of int
            Three numbers each.
        shared_mem : int
            Bytes of shared memory for each block.
        """
        if ctx.device_type != "gpu":
            raise DeviceError(f"launch: ctx is {ctx}; CUDA kernels run on a GPU")
        if len(args) != len(self._parameters):
            raise OpValueError(f"launch: {self._name!r} takes {len(self._parameters)} arguments, {len(args)} given")
        for what, dims in (("grid_dims", grid_dims), ("block_dims", block_dims)):
            if len(dims) != 3:
                raise OpValueError(f"launch: {what}={shown(dims)}; expected three numbers")
        given = [self._argument(at, value, ctx) for at, value in enumerate(args)]
        with device.using(ctx.device_id):
            function = self._module._function(self._name, ctx.device_id)
            function(tuple(grid_dims), tuple(block_dims), tuple(given), shared_mem=shared_mem)

    def _argument(self, at: int, value: Any, ctx: Context) -> Any:
        kind, pointer = self._parameters[at]
        if not pointer:
            try:
                return np.dtype(kind).type(value)
            except (TypeError, ValueError, OverflowError) as problem:
                raise OpTypeError(f"launch: argument {at} of {self._name!r} is {shown(value)}; expected {kind}") from problem
        if not isinstance(value, Dense):
            raise OpTypeError(f"launch: argument {at} of {self._name!r} is {shown(value)}; expected an NDArray of {kind}")
        if value.context != ctx or dtypes.NAMES[value.dtype_code] != kind:
            there = f"{dtypes.NAMES[value.dtype_code]} on {value.context}"
            raise OpValueError(f"launch: argument {at} of {self._name!r} is {there}; expected {kind} on {ctx}")
        if not value._memory.flags.c_contiguous:
            raise OpValueError(f"launch: argument {at} of {self._name!r} is a view whose elements do not follow each other")
        return value._memory


__all__ = ["CudaKernel", "CudaModule"]

for _class in (CudaModule, CudaKernel):
    all_end_at_caller(_class)
__getattr__, __dir__ = hooks(globals(), __all__)
