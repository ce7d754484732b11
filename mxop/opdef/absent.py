"""Operators in files that are not registered: their graphs can be inspected, but not evaluated."""

from __future__ import annotations

from typing import Any, NoReturn

from ..support import mxnet_names
from .operator import Operator
from .params import Attrs, Spec
from .registry import not_registered

_NO_ATTRS = Attrs((), ())


class Absent(Operator):
    """One call of an operator that is not registered.

    It takes any inputs; its parameters stay text.  Methods that need the operator's definition raise.

    Parameters
    ----------
    name : str
    n_outputs : int or None
        The number of outputs, with hidden ones; None if the file does not say.
    n_visible : int
        The number of outputs that the graph reads.
    written : object
        Data of the node that are in the file only, for writing it again.
    package : str, optional
        The package of the operator, if the file names it.
    """

    kind = "absent"

    def __init__(self, name: str, n_outputs: int | None, n_visible: int, written: Any, package: str | None = None):
        states = tuple(f"arg{i}" for i in mxnet_names.states_of(name))
        total = max(n_outputs or 0, n_visible)
        super().__init__(None, name=name, arguments=("arg",), num_outputs=total, visible_outputs=n_visible, aux=states,
                         module=__name__)  # fmt: skip
        self.variadic = True
        self.spec = Spec(name, ())
        self.counted = n_outputs is not None
        self.written = written
        self.package = package

    def parse(self, given: dict[str, Any]) -> Attrs:
        return _NO_ATTRS

    def input_names(self, attrs: Attrs, n: int | None = None) -> tuple[str, ...]:
        return tuple(f"arg{i}" for i in range(n or 0))

    def output_names(self, attrs: Attrs, n_inputs: int | None = None) -> tuple[str, ...]:
        n = self.num_visible_outputs(attrs)
        return ("output",) if n == 1 else tuple(f"output{i}" for i in range(n))

    def check_arity(self, attrs: Attrs, n: int) -> None:
        """Accept any number of inputs, since the right one is unknown."""

    def _refuse(self, *_: Any) -> NoReturn:
        raise not_registered(self.name)

    infer_shape = infer_type = infer_outputs = grad = _refuse

    def same_as(self, other: Operator) -> bool:
        return False
