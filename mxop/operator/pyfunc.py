"""A NumPy function as the body of an operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core import core
from ..support.errors import DeviceError, OpTypeError, OpValueError, run_users
from .body import Body, kind_of

_NUMBERS = (int, float, bool, np.generic)


class PyFunc(Body):
    """Calls a function with read-only NumPy views of the inputs, and copies what it returns.

    Parameters
    ----------
    function : callable
        Takes arrays, then attributes (by keyword where an argument has the attribute's name); returns an array, or a
        tuple of them.
    declared : sequence of str
        Names of the attributes.

    What the function raises is the ``__cause__`` of an MXNetError.
    """

    def __init__(self, function: Callable, declared: Sequence[str] = ()):
        if not callable(function):
            raise OpTypeError(f"Custom: func_type='pyfunc' takes a function, got {function!r}")
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self.doc = inspect.getdoc(function) or ""
        self._named: frozenset[str] = frozenset()
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # a builtin says nothing
            return
        kinds = inspect.Parameter
        params = signature.parameters.values()
        self._named = frozenset(p.name for p in params if p.name in declared and p.kind is not kinds.POSITIONAL_ONLY)
        if not any(p.kind is kinds.VAR_POSITIONAL or p.default is not kinds.empty for p in params):
            plain = [p.name for p in params if p.kind is not kinds.VAR_KEYWORD and p.name not in declared]
            unnamed = len([d for d in declared if d not in self._named])
            self.input_names = tuple(plain[: len(plain) - unnamed])

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], attributes: dict[str, Any]) -> None:
        if inputs[0]._device.number >= 0:
            raise DeviceError(f"Custom {self.name}: a pyfunc runs on the CPU, its inputs are on a GPU; copy them with "
                              "as_in_context(mx.cpu())")  # fmt: skip
        arrays = []
        for a in inputs:
            view = core.as_numpy(a)
            view.flags.writeable = False
            arrays.append(view)
        arrays += [value for name, value in attributes.items() if name not in self._named]
        named = {n: attributes[n] for n in attributes if n in self._named}
        result = run_users(f"Custom {self.name}: the function", self.function, *arrays, **named)
        if self.multiple:
            self._store_several(result, outputs)
        elif self.fake_output and result is None:
            core.as_numpy(outputs[0])[...] = 0
        else:
            self._store(result, outputs[0], "")

    def _store_several(self, result: Any, outputs: Sequence[Any]) -> None:
        if not isinstance(result, (tuple, list)):
            raise OpTypeError(f"Custom {self.name}: the function returned {kind_of(result)}; expected a tuple of "
                              f"{len(outputs)} arrays, as out_shape says")  # fmt: skip
        if len(result) != len(outputs):
            raise OpValueError(
                f"Custom {self.name}: the function returned {len(result)} outputs; out_shape says {len(outputs)}"
            )
        for k, (one, target) in enumerate(zip(result, outputs, strict=True)):
            self._store(one, target, f" {k}")

    def _store(self, result: Any, target: Any, which: str) -> None:
        memory = core.as_numpy(target)
        if isinstance(result, np.ndarray):
            if result.shape == memory.shape and result.dtype == memory.dtype:
                memory[...] = result
                return
        elif isinstance(result, _NUMBERS):
            if memory.size == 1 and (not isinstance(result, np.generic) or result.dtype == memory.dtype):
                memory[...] = result
                return
        else:
            raise OpTypeError(
                f"Custom {self.name}: the function returned {kind_of(result)} as output{which}; expected a NumPy array of "
                f"shape {memory.shape} and dtype {memory.dtype}"
            )
        raise OpValueError(
            f"Custom {self.name}: output{which} has shape {np.shape(result)} and dtype {np.asarray(result).dtype}; "
            f"expected shape {memory.shape} and dtype {memory.dtype}, as out_shape and out_dtype say"
        )
