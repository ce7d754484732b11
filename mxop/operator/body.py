"""What :class:`mxop.operator.Custom` runs: a NumPy function, a compiled library, or a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..support.errors import MXNetError

Inferred = tuple[list[tuple[int, ...]], list[int]]


class Body:
    """The inside of an operator.

    Attributes
    ----------
    name : str
        For messages.
    doc : str
    input_names : tuple of str or None
        None when a call says how many inputs there are.
    attributes : tuple of str
        Arguments that are known to be attributes although no info declares them.
    defaults : dict of str to value
        Values of such attributes where a call gives none.
    n_outputs : int or None
        When it is known without shapes.
    multiple : bool
        Whether the outputs are a tuple, even of one.
    assigned : tuple of (int, int)
        Pairs of an output and the input that it is assigned to.
    fake_output : bool
        Whether it computes nothing, and the operator gives a zero.
    for_gpu : bool
        Whether an info says that it is for the GPU.
    writes_all : bool
        Whether ``run`` writes every element of the outputs, whatever the user's code does.
    """

    name = ""
    doc = ""
    input_names: tuple[str, ...] | None = None
    attributes: tuple[str, ...] = ()
    n_outputs: int | None = None
    multiple = False
    assigned: tuple[tuple[int, int], ...] = ()
    defaults: Mapping[str, Any] = MappingProxyType({})
    fake_output = False
    for_gpu = False
    writes_all = True

    def infer_shapes(self, shapes: Sequence[tuple[int, ...]], attributes: dict[str, Any]) -> Any:
        """Return the shapes of the outputs, None when ``out_shape`` must say."""
        return None

    def infer_types(self, codes: Sequence[int], attributes: dict[str, Any]) -> list[int] | None:
        """Return the type codes of the outputs, None when ``out_dtype`` must say."""
        return None

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], attributes: dict[str, Any]) -> None:
        """Compute on NDArrays in C order."""
        raise NotImplementedError

    def gradient_operator(self, op: Any) -> Any:
        """Return the operator of the gradient that follows from what the body computes; None where none does."""
        return None

    def gradients(self, op: Any, F: Any, attrs: Any, heads: list, inputs: list, needed: Sequence[bool]) -> list:
        """Return the gradients that follow from what the body computes, as :meth:`mxop.opdef.Operator.grad` does.

        Raises
        ------
        MXNetError
            With the reason why there is none, and how to give one.
        """
        raise underived(f"Custom {self.name}", f"what a {type(self).__name__.lower()} computes is not known", BPROP)


BPROP = ("Custom(..., bprop=...), a function bprop(*inputs, out, dout) that returns the tuple of the gradients of the "
         "inputs")  # fmt: skip


def kind_of(value: Any) -> str:
    """Return what a message calls what a user's function returned."""
    return "None" if value is None else f"a {type(value).__name__}"


def underived(who: str, reason: str, cure: str) -> MXNetError:
    """Return the error that says how to give a gradient."""
    return MXNetError(f"{who} has no gradient: {reason}; give it one with {cure}")
