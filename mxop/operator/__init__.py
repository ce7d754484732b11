"""Operators written by users: MXNet's ``CustomOp``, MindSpore's ``Custom``, and what is registered.

``import mxop`` needs :mod:`.custom_op`, which registers the operator ``Custom``, and its :mod:`.answers`; the rest is imported
when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..support.missing import attribute, names_shown
from .custom_op import CustomOp, CustomOpProp, register

if TYPE_CHECKING:
    from .custom import Custom
    from .hybrid import (
        HybridError,
        allocate,
        attr,
        block_realize,
        grid,
        kernel,
        output_tensor,
        parallel,
        reduce,
        serial,
        vectorize,
    )  # fmt: skip
    from .listing import (
        OperatorArguments,
        get_all_registered_operators,
        get_all_registered_operators_grouped,
        get_operator_arguments,
    )  # fmt: skip
    from .python_op import NDArrayOp, NumpyOp, PythonOp
    from .reg_info import CustomRegOp, DataType, custom_info_register

__all__ = [
    "Custom", "CustomOp", "CustomOpProp", "CustomRegOp", "DataType", "HybridError", "NDArrayOp", "NumpyOp",
    "OperatorArguments", "PythonOp", "allocate", "attr", "block_realize", "custom_info_register",
    "get_all_registered_operators", "get_all_registered_operators_grouped", "get_operator_arguments", "grid", "kernel",
    "output_tensor", "parallel", "reduce", "register", "serial", "vectorize",
]  # fmt: skip

_PLACES = {
    "custom": ("Custom",),
    "listing": ("OperatorArguments", "get_all_registered_operators", "get_all_registered_operators_grouped",
                "get_operator_arguments"),
    "python_op": ("NDArrayOp", "NumpyOp", "PythonOp"),
    "reg_info": ("CustomRegOp", "DataType", "custom_info_register"),
}  # fmt: skip
#: What MindSpore called them in other versions.
_ALIASES = {"ms_kernel": "kernel", "ms_hybrid": "kernel"}
_LATER = dict.fromkeys(__all__, "hybrid") | {name: place for place, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _LATER.values():
        return import_module(f"{__name__}.{name}")
    if name in _ALIASES:
        return __getattr__(_ALIASES[name])
    if name not in _LATER:
        raise attribute(__name__, name, lambda: __all__)
    found = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return names_shown(globals(), __all__, {"hybrid"})
