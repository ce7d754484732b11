"""Operators written by users: MXNet's ``CustomOp``, and what is registered.

May import :mod:`mxop._core`, :mod:`mxop.opdef`, :mod:`mxop.ndarray`.
"""

from .custom import Custom
from .custom_op import CustomOp, CustomOpProp, register
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
)
from .listing import (
    OperatorArguments,
    get_all_registered_operators,
    get_all_registered_operators_grouped,
    get_operator_arguments,
)
from .reg_info import CustomRegOp, DataType, custom_info_register

__all__ = [
    "Custom",
    "CustomOp",
    "CustomOpProp",
    "CustomRegOp",
    "DataType",
    "HybridError",
    "OperatorArguments",
    "allocate",
    "attr",
    "block_realize",
    "custom_info_register",
    "get_all_registered_operators",
    "get_all_registered_operators_grouped",
    "get_operator_arguments",
    "grid",
    "kernel",
    "output_tensor",
    "parallel",
    "reduce",
    "register",
    "serial",
    "vectorize",
]  # fmt: skip
