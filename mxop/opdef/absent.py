"""An operator that a file names and that is not registered: its graph can be looked at, and not computed."""

from __future__ import annotations

from typing import Any, NoReturn

from ..support import mxnet_names
from .operator import Operator
from .params import Attrs, Spec
from .registry import not_registered

_NO_ATTRS = Attrs((), ())


class Absent(Operator):
    """What stands in a graph for one call of an operator that is not registered.

    It takes any inputs; its parameters are kept as text.  Whatever would need to know more raises.

    Parameters
    ----------
    name : str
    n_outputs : int or None
        Outputs, hidden ones included; None where the file does not tell.
    n_visible : int
        Those that the graph reads.
    written : object
        What only a file holds of the node, for whoever writes it again.
    package : str, optional
        Where the operator is from, if the file says so.
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
        """Accept any number: how many there must be is not known."""

    def _refuse(self, *_: Any) -> NoReturn:
        raise not_registered(self.name)

    infer_shape = infer_type = infer_outputs = grad = _refuse

    def same_as(self, other: Operator) -> bool:
        return False
