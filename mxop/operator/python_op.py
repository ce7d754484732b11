"""MXNet's first operators written in Python: ``NumpyOp`` and ``NDArrayOp``, on top of ``CustomOp``."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from ..support.errors import UnsupportedError
from .custom_op import CustomOp, CustomOpProp, register

_numbers = count()


class PythonOp:
    """Base of operators that are objects, called with symbols; derive from :class:`NumpyOp` or :class:`NDArrayOp`.

    Parameters
    ----------
    need_top_grad : bool
        Whether ``backward`` reads the gradients of the outputs; a loss does not.
    """

    def __init__(self, need_top_grad: bool = True):
        self.need_top_grad_ = need_top_grad
        self._op_type: str | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.get_symbol(*args, **kwargs)

    def get_symbol(self, *args: Any, **kwargs: Any) -> Any:
        """Return the symbol of the operator with these inputs."""
        if type(self)._run is PythonOp._run:
            raise UnsupportedError(f"{type(self).__name__} is neither a NumpyOp nor an NDArrayOp; derive from one of these")
        from .. import symbol

        if self._op_type is None:
            name = f"_python_{type(self).__name__}{next(_numbers)}"
            register(name)(_prop_of(self))
            self._op_type = name
        return symbol.Custom(*args, op_type=self._op_type, **kwargs)

    def _run(self, function: Any, **arrays: Any) -> list:
        """Call a function of the user with arrays of its kind; return what it wrote into the last list."""
        raise NotImplementedError

    def forward(self, in_data: list, out_data: list) -> None:
        """Write the outputs into ``out_data``; by default the first is the first input."""
        out_data[0][:] = in_data[0]

    def backward(self, out_grad: list, in_data: list, out_data: list, in_grad: list) -> None:
        """Write the gradients of the inputs into ``in_grad``; by default that of the first is 1."""
        in_grad[0][:] = 1

    def infer_shape(self, in_shape: list) -> tuple[list, list]:
        """Return the shapes of inputs and outputs; by default one output is as the first input."""
        return in_shape, [in_shape[0]]

    def list_outputs(self) -> list[str]:
        """Return the names of the outputs."""
        return ["output"]

    def list_arguments(self) -> list[str]:
        """Return the names of the inputs."""
        return ["data"]

    def need_top_grad(self) -> bool:
        """Return whether ``backward`` reads the gradients of the outputs."""
        return self.need_top_grad_


class NumpyOp(PythonOp):
    """Operator whose ``forward`` and ``backward`` get NumPy arrays, and write into them.

    Examples
    --------
    >>> class Square(mx.operator.NumpyOp):
    ...     def forward(self, in_data, out_data):
    ...         out_data[0][:] = in_data[0] ** 2
    ...     def backward(self, out_grad, in_data, out_data, in_grad):
    ...         in_grad[0][:] = 2 * in_data[0] * out_grad[0]
    >>> Square()(mx.sym.Variable("x")).eval(x=mx.nd.array([3]))[0].item()
    9.0
    """

    def _run(self, function: Any, **arrays: Any) -> list:
        *given, last = ((name, [None if x is None else np.array(x.asnumpy()) for x in some]) for name, some in arrays.items())
        function(**dict(given), **{last[0]: last[1]})
        return last[1]


class NDArrayOp(PythonOp):
    """Operator whose ``forward`` and ``backward`` get NDArrays, and write into them."""

    def _run(self, function: Any, **arrays: Any) -> list:
        *given, last = arrays.items()
        written = [x.copy() for x in last[1]]
        function(**dict(given), **{last[0]: written})
        return written

    def declare_backward_dependency(self, out_grad: list[int], in_data: list[int], out_data: list[int]) -> list[int]:
        """Return which of the given numbers of arrays ``backward`` reads."""
        return [*(out_grad if self.need_top_grad() else ()), *in_data, *out_data]


class _Operator(CustomOp):
    """Runs the methods of an object, and puts what they wrote where it belongs."""

    def __init__(self, op: PythonOp):
        self.op = op

    def forward(self, is_train: bool, req: list[str], in_data: list, out_data: list, aux: list) -> None:
        for target, r, value in zip(out_data, req, self.op._run(self.op.forward, in_data=in_data, out_data=out_data)):
            self.assign(target, r, value)

    def backward(self, req: list[str], out_grad: list, in_data: list, out_data: list, in_grad: list, aux: list) -> None:
        arrays = {"out_grad": out_grad, "in_data": in_data, "out_data": out_data, "in_grad": in_grad}
        for target, r, value in zip(in_grad, req, self.op._run(self.op.backward, **arrays)):
            self.assign(target, r, value)


def _prop_of(op: PythonOp) -> type[CustomOpProp]:
    """Return the class by which ``Custom`` knows an object."""
    named = type(type(op).__name__, (_Operator,), {})  # whose name messages say

    class Prop(CustomOpProp):
        def __init__(self) -> None:
            super().__init__(op.need_top_grad())

        def list_arguments(self) -> list[str]:
            return op.list_arguments()

        def list_outputs(self) -> list[str]:
            return op.list_outputs()

        def infer_shape(self, in_shape: list) -> tuple:
            return (*op.infer_shape(in_shape), [])

        def create_operator(self, ctx: Any, in_shapes: list, in_dtypes: list) -> CustomOp:
            return named(op)

        if hasattr(op, "declare_backward_dependency"):

            def declare_backward_dependency(self, *numbers: Any) -> list[int]:
                return op.declare_backward_dependency(*numbers)

    Prop.__name__ = type(op).__name__
    return Prop
