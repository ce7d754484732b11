"""A library's operator as an entry of the registry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core import native, native_infer
from .._core.core import Dense
from ..opdef import Attrs, External, infer, registry
from ..opdef.external import ExternalBackward
from ..opdef.params import Param
from ..support import dtypes
from ..support.errors import MXNetError, OpTypeError

#: What a library may leave in a vector of types for "not known": MXNet's kUNSET.
_UNSET = 100


class LibraryOperator(External):
    """An operator whose functions are in a compiled library.

    Parameters
    ----------
    of : NativeOp
        The functions.
    params : sequence of Param
        Declared parameters; the library gets all others as they are.
    """

    open_inputs = True
    contiguous = True

    def __init__(self, of: native.NativeOp, params: Sequence[Param] = ()):
        module = f"library {of.library}"
        super().__init__(of.name, doc=_documentation(of), params=params, open_params=True, module=module)
        self.native = of
        self.needs_state = of.stateful
        of.op = self

    def bound_to(self, attrs: Attrs) -> native.Bound:
        """Return the operator with the parameters of a call."""
        return self.native.bind(self.plain_attrs(attrs))

    # ---- what a call looks like -----------------------------------------------------------------------------------------
    def input_names(self, attrs: Attrs, n: int | None = None) -> tuple[str, ...]:
        count, given = self.bound_to(attrs).n_inputs, self.native.input_names
        if len(given) == count:
            return given
        return ("data",) if count == 1 else tuple(f"data{i}" for i in range(count))

    def aux_names(self, attrs: Attrs) -> tuple[str, ...]:
        names = self.input_names(attrs)
        return tuple(names[k] for k in self.bound_to(attrs).mutated)

    def num_outputs(self, attrs: Attrs, n_inputs: int | None = None) -> int:
        return self.bound_to(attrs).n_outputs

    # ---- inference ------------------------------------------------------------------------------------------------------
    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        names = [*self.input_names(attrs, len(ins)), *self.output_names(attrs, len(ins))]
        bound = self.bound_to(attrs)
        if not bound.has_infer_shape:
            done = infer.same_shape(self.name, names, [*ins, *outs])
            return done[: len(ins)], done[len(ins) :]
        if ins and all(shape is None for shape in (*ins, *outs)):
            return ins, outs
        found = native_infer.infer_shapes(bound, list(ins), list(outs))
        if found is None:  # it lacks an input
            return ins, outs
        done = infer.agreed(self.name, names, [*found[0], *found[1]], [*ins, *outs], ", but the library infers")
        return done[: len(ins)], done[len(ins) :]

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        bound = self.bound_to(attrs)
        self._check_storage(bound, len(ins), len(outs))
        if not bound.has_infer_type:
            return super().infer_type(attrs, ins, outs)
        if ins and all(code == dtypes.UNKNOWN for code in (*ins, *outs)):
            return ins, outs
        found = native_infer.infer_codes(bound, False, list(ins), list(outs))
        if found is None:
            return ins, outs
        names = [*self.input_names(attrs, len(ins)), *self.output_names(attrs, len(ins))]
        done = []
        for name, new, old in zip(names, [*found[0], *found[1]], [*ins, *outs], strict=True):
            if new in (dtypes.UNKNOWN, _UNSET):
                new = old
            elif new not in dtypes.NAMES:
                raise MXNetError(f"operator {self.name}: the library infers type {new} for {name}, which is none of "
                                 f"{', '.join(f'{c} {n}' for c, n in dtypes.NAMES.items())}")  # fmt: skip
            elif old not in (dtypes.UNKNOWN, new):
                raise OpTypeError(f"operator {self.name}: {name} has dtype {dtypes.NAMES[old]}, but the library wants "
                                  f"{dtypes.NAMES[new]}")  # fmt: skip
            done.append(new)
        return done[: len(ins)], done[len(ins) :]

    def _check_storage(self, bound: native.Bound, n_inputs: int, n_outputs: int) -> None:
        """Refuse an operator that wants sparse arrays."""
        if bound.dense or not bound.has_infer_storage:
            return
        where = f"operator {self.name} of library {self.native.library}"
        try:
            found = native_infer.infer_codes(bound, True, [0] * n_inputs, [0] * n_outputs)
        except MXNetError as problem:
            raise MXNetError(f"{where} does not take dense arrays, and mxop has no others\n{problem}") from None
        if any(found[0]) or any(found[1]):
            raise MXNetError(f"{where} makes sparse arrays (setInferSType), and mxop has dense ones only")
        bound.dense = True

    def attrs_with(self, attrs: Attrs, state: Any) -> Attrs:
        """Return the parameters of a call that was run with a state, for the tape."""
        if state is None:
            return attrs
        found = self.call_attrs(attrs)
        found.cell.state, found.cell.made = state, True  # type: ignore[attr-defined]
        return found

    # ---- a call ---------------------------------------------------------------------------------------------------------
    def make_state(self, attrs: Attrs, inputs: list) -> Any:
        return self.bound_to(attrs).make_state(list(inputs))

    def run(self, attrs: Attrs, state: Any, is_train: bool, reqs: list[str], inputs: list, outputs: list) -> None:
        self.bound_to(attrs).run(state, is_train, list(inputs), list(outputs))

    # ---- gradient -------------------------------------------------------------------------------------------------------
    @property
    def differentiable(self) -> bool:
        return self.native.has_backward or self.gradient_name is not None

    @property
    def gradient_name(self) -> str | None:
        """The name of the operator that computes the gradient, if one does."""
        if self.native.gradient is not None:
            return self.native.gradient
        found = registry.find(registry.BACKWARD + self.name)
        return found.name if isinstance(found, LibraryOperator) else None

    def has_backward(self, attrs: Attrs) -> bool:
        return self.native.has_backward

    def differentiable_again(self, attrs: Attrs) -> bool:
        return False  # machine code is not recorded: a second order needs an operator for the first

    def backward_operator(self) -> ExternalBackward:
        if self._backward is None:
            self._backward = LibraryBackward(self)
        return self._backward

    def grad(self, F: Any, attrs: Attrs, heads: list, inputs: list, outputs: list, needed: Sequence[bool]) -> list | None:
        name = self.gradient_name
        if name is not None:
            op = registry.get(name)
            found = F._invoke(op, [*heads, *inputs, *outputs], op.parse(dict(self.plain_attrs(attrs))))
            grads = list(found) if isinstance(found, (list, tuple)) else [found]
            if len(grads) != len(inputs):
                raise MXNetError(f"operator {name} is the gradient of {self.name}, which has {len(inputs)} inputs, but gives "
                                 f"{len(grads)} outputs")  # fmt: skip
        elif not self.native.has_backward:
            raise MXNetError(f"operator {self.name} of library {self.native.library} has no gradient: it registers neither "
                             f"setBackward nor setGradient")  # fmt: skip
        else:
            grads = self._gradients(attrs, heads, inputs, outputs)
            if grads is None:
                return super().grad(F, attrs, heads, inputs, outputs, needed)
        states = self.bound_to(attrs).mutated
        return [g if needed[k] and k not in states else None for k, g in enumerate(grads)]

    def _gradients(self, attrs: Attrs, heads: list, inputs: list, outputs: list) -> list | None:
        """Return the gradients of plain arrays, None where more is asked for: symbols, or a gradient of the gradient."""
        if not isinstance(heads[0], Dense):
            return None
        return self.bound_to(attrs).gradients(self.state_of(attrs, inputs), list(heads), list(inputs), list(outputs))

    def run_backward(
        self, attrs: Attrs, state: Any, is_train: bool, reqs: list[str], heads: list, inputs: list, outputs: list,
        grads: list,
    ) -> None:  # fmt: skip
        self.bound_to(attrs).run_backward(state, is_train, list(heads), list(inputs), list(outputs), list(grads))


class LibraryBackward(ExternalBackward):
    """The gradient of a library's operator, computed by its backward function."""

    @property
    def gradient_of(self) -> External:
        """The operator that it is the gradient of; executors ask for it."""
        return self.lower

    def grad(self, F: Any, attrs: Attrs, heads: list, inputs: list, outputs: list, needed: Sequence[bool]) -> list | None:
        of = self.lower
        raise MXNetError(
            f"operator {of.name} of library {of.native.library} can be differentiated once: its backward is compiled "  # type: ignore[attr-defined]
            f"code.  For higher orders the library registers an operator named _backward_{of.name}, or names one with "
            f"setGradient, that has a backward of its own"
        )


def _documentation(of: native.NativeOp) -> str:
    return of.doc or f"Operator ``{of.name}`` of the library {of.library}.\n\n" + _CALL


_CALL = """Parameters
----------
*data : NDArray or Symbol
    The inputs.
**kwargs
    The operator's parameters; the library gets them as strings.

Returns
-------
NDArray or Symbol, or a list of them
"""
