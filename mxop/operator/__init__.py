"""Operators written by users: MXNet's ``CustomOp``, and what is registered.

May import :mod:`mxop._core`, :mod:`mxop.opdef`, :mod:`mxop.ndarray`.
"""

from .custom_op import CustomOp, CustomOpProp, register
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
)
from .listing import (
    OperatorArguments,
    get_all_registered_operators,
    get_all_registered_operators_grouped,
    get_operator_arguments,
)
from .reg_info import CustomRegOp, DataType, custom_info_register

__all__ = [
    "Custom", "CustomRegOp", "DataType", "HybridError", "allocate", "attr", "block_realize", "custom_info_register", "grid",
    "kernel", "output_tensor", "parallel", "reduce", "serial", "vectorize",
    "CustomOp", "CustomOpProp", "OperatorArguments", "get_all_registered_operators", "get_all_registered_operators_grouped",
    "get_operator_arguments", "register",
]  # fmt: skip
