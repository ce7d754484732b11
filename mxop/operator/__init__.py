"""Operators written by users: MXNet's ``CustomOp``, MindSpore's ``Custom``, and what is registered.

``import mxop`` needs :mod:`.custom_op`, which registers the operator ``Custom``, and its :mod:`.answers`; the rest is imported
when it is first used.
"""

from typing import TYPE_CHECKING

from ..support.missing import hooks
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
_LATER = {name: f"{__name__}.hybrid:{name}" for name in __all__}
_LATER |= {name: f"{__name__}.{place}:{name}" for place, names in _PLACES.items() for name in names}
_LATER |= {place: f"{__name__}.{place}" for place in ("hybrid", *_PLACES)}
#: What MindSpore called it in other versions.
_LATER |= dict.fromkeys(("ms_kernel", "ms_hybrid"), _LATER["kernel"])

__getattr__, __dir__ = hooks(globals(), [*__all__, "hybrid"], _LATER)
