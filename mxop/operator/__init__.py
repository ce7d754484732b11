"""Operators written by users: MXNet's ``CustomOp``, and what is registered.

May import :mod:`mxop._core`, :mod:`mxop.opdef`, :mod:`mxop.ndarray`.
"""

from .custom_op import CustomOp, CustomOpProp, register
from .listing import (
    OperatorArguments,
    get_all_registered_operators,
    get_all_registered_operators_grouped,
    get_operator_arguments,
)

__all__ = [
    "CustomOp", "CustomOpProp", "OperatorArguments", "get_all_registered_operators", "get_all_registered_operators_grouped",
    "get_operator_arguments", "register",
]  # fmt: skip
