"""C functions as CPU implementations of a kernel: their addresses and capsules, and the parameters that they receive.

``mxop/library/include/mxop/kernel.h`` declares their signature.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..support.errors import OpTypeError, OpValueError
from .params import Attrs, Bound, DType, Param, Scalar

NAME = "mxop.kernel"
_SIGNATURE = "int(MXOPTensor**,MXOPTensor**,double*,int)"  # the name that Cython gives the capsule of such a function


def address_of(who: str, function: Any) -> int | None:
    """Return the address of a C function; None for any other object.

    Parameters
    ----------
    function : int, ctypes function, capsule, or object with an ``address``
        Numba's ``cfunc`` makes objects with an ``address``.
    """
    if type(function).__name__ == "PyCapsule":
        return _in_capsule(who, function)
    ctypes = sys.modules.get("ctypes")
    if ctypes is not None and isinstance(function, ctypes._CFuncPtr):
        function = ctypes.cast(function, ctypes.c_void_p).value
    elif not isinstance(function, int) and type(getattr(function, "address", None)) is int:
        function = function.address
    if not isinstance(function, int) or isinstance(function, bool):
        return None
    if function <= 0:
        raise OpValueError(f"{who}: {function} is not the address of a function")
    return function


def _in_capsule(who: str, capsule: Any) -> int:
    import ctypes

    api = ctypes.pythonapi
    name_of, pointer_of = api.PyCapsule_GetName, api.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = name_of(capsule)
    plain = (name or b"").decode(errors="replace").replace("const", "").replace(" ", "")
    if plain not in (NAME, _SIGNATURE):
        raise OpTypeError(f"{who}: the capsule is named {name!r}; expected {NAME!r}, or the signature of a function as "
                          "mxop/kernel.h declares it")  # fmt: skip
    return pointer_of(capsule, name)


def check_params(who: str, params: tuple[Param, ...]) -> None:
    """Raise for parameters that cannot be passed to a C function."""
    for p in params:
        if p.kind not in (float, int, bool, Scalar, Bound, DType) and not p.choices:
            raise OpTypeError(f"{who}: parameter {p.name!r} ({p.type_name}) is not handed to functions of C; they take "
                              "numbers, truth values, choices and types")  # fmt: skip


def numbers(params: tuple[Param, ...], attrs: Attrs) -> list[float]:
    """Return the parameters of a call as numbers, as a C function receives them."""
    found = []
    for p in params:
        value = attrs[p.name]
        found.append(float("nan") if value is None else float(p.choices.index(value) if p.choices else value))
    return found


def steps_of(op: Any, address: int, owner: Any) -> Callable[..., None]:
    """Return a prepared implementation that calls a C function; `owner` keeps the function in memory."""
    check_params(f"operator {op.name}", op.spec.params)

    def steps_of_c(steps: Any, inputs: list, outputs: list, **params: Any) -> None:
        given = numbers(op.spec.params, op.spec.filled(params))
        steps.c_function(op.name, address, owner, inputs, outputs, given)

    return steps_of_c
