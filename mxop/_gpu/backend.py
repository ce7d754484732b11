"""GPUs as devices of arrays: memory of CuPy, and calls that launch kernels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from .._core import core, prepare, transfer
from .._core.launched import Launching
from ..formula import param
from ..opdef import Formula
from ..opdef.kernel import Way
from ..support import dtypes
from ..support.errors import DeviceError
from . import device, launch, run, strips
from .layout import WORD
from .text import REQ_ADD, REQ_WRITE

_FILL = Formula((param("number", real=False),), ("number",))


class Gpu(Launching):
    """A GPU; :class:`mxop._core.device.Device` says what its methods do."""

    def __init__(self, number: int):
        super().__init__(2, "GPU", number, WORD)

    def empty(self, shape: tuple[int, ...], dtype: int) -> Any:
        return core.from_gpu(device.allocate(shape, dtype, self.number), self.number)

    @property
    def library(self) -> Any:
        """CuPy."""
        return device.require(self.number)

    def view_at(self, owner: Any, address: int, shape: tuple, strides: tuple, code: int) -> Any:
        """Return a CuPy array at an address in the memory of `owner`; without one, as long as no kernel runs on it."""
        xp, size = device.require(self.number), max(prod(shape), 1) * dtypes.SIZES[code]
        with device.using(self.number):
            if owner is None:
                memory = xp.cuda.MemoryPointer(xp.cuda.UnownedMemory(address, size, None, self.number), 0)
            else:
                memory = owner.data + (address - owner.data.ptr)
            return xp.ndarray(shape, dtypes.numpy_dtype(code), memory, strides)

    def from_numpy(self, host: np.ndarray) -> Any:
        made = core.from_gpu(device.uploaded(host, self.number), self.number)
        core.settle_from_host(made)
        return made

    def wrap(self, memory: Any) -> Any:
        return core.from_gpu(memory, self.number)

    def to_host(self, array: Any) -> Any:
        with device.using(self.number):
            return core.from_numpy(array._memory.get(), False)

    def copy(self, source: Any, target: Any, req: int) -> None:
        same = transfer.same_layout(source, target)
        if target.size == 0 or (same and req != REQ_ADD):
            return
        memory, overlap = source._memory, not same and transfer.overlaps(source, target)
        if isinstance(memory, np.ndarray):
            memory = device.uploaded(memory, self.number)
        elif device.id_of(memory) != self.number:
            memory = self._from_other(memory)
        with device.using(self.number):
            if overlap:
                memory = memory.copy()
            if source.shape != target.shape:
                memory = memory.reshape(target.shape)
        launch.run(launch.copied(memory, target._memory, req), self.number)

    def _from_other(self, memory: Any) -> Any:
        """Return a copy, here, of an array of another device; both devices' streams wait for it."""
        other = device.id_of(memory)
        with device.using(other):
            memory = device.require(other).ascontiguousarray(memory)
        device.wait_for(other, self.number)
        with device.using(self.number):
            found = memory.copy()  # CuPy copies to the current device
        device.wait_for(self.number, other)
        return found

    def fill(self, target: Any, value: float) -> None:
        with device.using(self.number):
            device.fill(target._memory, value if target.dtype_code in dtypes.FLOATS else value + 0.0)

    def current(self) -> Any:
        return device.using(self.number)

    def synchronize(self) -> None:
        device.synchronize(self.number)

    def stream(self) -> int:
        with self.current():
            return int(device.stream(self.number).ptr)

    def captured(self, launch: Any) -> Any:
        """Return the CUDA graph of the kernels that ``launch()`` launches, without running them; None where there are none.

        This is the current device.
        """
        stream = self.library.cuda.Stream(non_blocking=True)
        try:
            with stream:
                stream.begin_capture()
                try:
                    launch()
                finally:
                    found = stream.end_capture()
        except Exception as problem:  # CuPy has an error class of its own for each library
            warnings.warn(f"kernels are launched one by one on gpu({self.number}), because CUDA made no graph of them: "
                          f"{problem}", stacklevel=2)  # fmt: skip
            return None
        return found

    # ---- prepared calls --------------------------------------------------------------------------------------------------
    def way(self, op: Any, inputs: list, outputs: list, attrs: Any) -> Way:
        if op.run_gpu is None:
            raise DeviceError(f"operator {op.name} has no GPU function; give one with @{op.name.lstrip('_')}.gpu, or move its "
                              "inputs with as_in_context(mx.cpu())")  # fmt: skip
        return next((way for way in op.ways if way.run is op.run_gpu), Way(partial(run.kernel, op)))  # of steps, or not

    def elementwise(self, op: Any, attrs: Any, inputs: list, outputs: list, reqs: list[int]) -> Any:
        if not inputs:
            return None
        call, values = prepare.gpu_operands(op, attrs, inputs)
        return run.prepared_elementwise(call, inputs, values, outputs, reqs)

    def formula(self, roots: tuple, inputs: list, outputs: list, reqs: list[int], numbers: dict[str, float]) -> Any:
        if outputs[0].dtype_code not in dtypes.FLOATS:  # a real number would change the compute type
            roots, numbers = prepare.with_constants(roots, numbers), {}
        return run.prepared_formula("fused", Formula(roots, tuple(numbers)), list(numbers.values()), inputs, outputs, reqs)

    def reduction(self, op: Any, attrs: Any, source: Any, axes: tuple[int, ...], result: Any, req: int) -> Any:
        return run.prepared_reduction(op, attrs, source, axes, result, req)

    def move(self, source: Any, target: Any, req: int) -> Any:
        return run.prepared([launch.copied(source._memory, target._memory, req)], [target], [target], [req])

    def filled(self, target: Any, number: np.ndarray) -> Any:
        return run.prepared_formula("fill", _FILL, [number], [], [target], [REQ_WRITE])

    def row_kernel(self, rows: int, locals_: Sequence[Any], stages: Sequence[Any], arrays: Sequence[Any], turned: bool,
                   numbers: dict[str, float]) -> Any:  # fmt: skip
        return strips.prepared(rows, locals_, stages, arrays, numbers)

    def loop(self, op: Any, inputs: list, outputs: list, reqs: list[int]) -> None:
        return None

    def nest(self, body: Any, known: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        from ..operator.hybrid import cuda

        cuda.run(known, [a._memory for a in inputs], [a._memory for a in outputs])
