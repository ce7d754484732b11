"""What an operator is: the base of the four kinds, with everything that follows from its function's signature.

Imports :mod:`.params`, :mod:`.infer`, :mod:`.registry`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

from .. import dtypes
from ..errors import MXNetError, OpTypeError, OpValueError, translated
from ..limits import check_outputs
from . import infer
from .params import Attrs, Param, Spec

_VARARGS = 0x04


def carrier(values: Iterable[Any]) -> Any:
    """Return the first argument of a call that applies operators itself, as tensors with axes do, or None.

    Its class has a method ``__mxop_operator__(name, args, kwargs)``.
    """
    return next((v for v in values if hasattr(type(v), "__mxop_operator__")), None)


class Operator:
    """One entry of the registry.

    Attributes
    ----------
    name : str
        Canonical name, MXNet's where MXNet has the operator.
    aliases : tuple of str
    function : callable
        The definition: inputs are positional arguments, parameters are keyword-only.
    arguments : tuple of str
        Names of the inputs (of one repeated input when `variadic`).
    variadic : bool
        Whether it takes any number of inputs.
    num_args_param : str or None
        The parameter that holds that number in MXNet's JSON (``num_args``).
    aux : tuple of str
        Inputs that are auxiliary states, written by the operator; see :meth:`aux_names`.
    is_backward : bool
        ``TIsBackward``.
    """

    kind = "operator"
    has_backward_operator = False
    open_inputs = False  # whether the names of the inputs follow from the parameters, and `arguments` says nothing
    stateful = False  # whether equal calls are two calls that must both run
    repeatable = True  # whether running a call again gives the same

    def __init__(
        self,
        function: Callable | None,
        *,
        name: str | None = None,
        arguments: Sequence[str] | None = None,
        aliases: Sequence[str] = (),
        extra_params: Sequence[Param] = (),
        num_outputs: int | Callable[..., int] = 1,
        visible_outputs: int | Callable[..., int] | None = None,
        active_inputs: Callable[..., Sequence[str]] | None = None,
        aux: Sequence[str] = (),
        num_args_param: str | None = None,
        inplace: Sequence[tuple[int, int]] = (),
        is_backward: bool = False,
        module: str | None = None,
    ):
        self.function: Any = function  # None for an operator that is no function of ours
        self.name: str = name or self.function.__name__
        self.aliases = tuple(aliases)
        self.module: str = module or self.function.__module__
        self.variadic = False
        self.arguments = tuple(arguments or ())
        if arguments is None:
            code = self.function.__code__
            self.variadic = bool(code.co_flags & _VARARGS)
            at = code.co_argcount + code.co_kwonlyargcount
            self.arguments = code.co_varnames[at : at + 1] if self.variadic else code.co_varnames[: code.co_argcount]
        self.aux = tuple(aux)
        self.num_args_param = num_args_param
        self.inplace = tuple(inplace)
        self.is_backward = is_backward
        self.record: Any = None  # how to test it, where not in mxop.records
        self._extra_params = tuple(extra_params)
        self._num_outputs = num_outputs
        self._visible_outputs = visible_outputs
        self._active_inputs = active_inputs
        self.by_keyword: tuple[str, ...] = ()  # inputs, the last ones, that a call does not give by position
        self._gradient: Callable | None = None

    def __repr__(self) -> str:
        return f"<{self.kind} operator {self.name}({', '.join(self.arguments)})>"

    # ---- what follows from the signature ----------------------------------------------------------------------------
    @cached_property
    def spec(self) -> Spec:
        """The parameters, read from the signature on first use."""
        return Spec.of(self.name, self.function, self._extra_params)

    @property
    def doc(self) -> str:
        return self.function.__doc__ or ""

    def parse(self, given: dict[str, Any]) -> Attrs:
        """Parse the parameters of a call."""
        return self.spec.parse(given)

    def input_names(self, attrs: Attrs, n: int | None = None) -> tuple[str, ...]:
        """Return the names of the inputs that a call with `attrs` takes (FListInputNames)."""
        if self.variadic:
            if n is None:
                n = attrs[self.num_args_param] if self.num_args_param else 1
            check_outputs(self.name, n, "inputs")
            return tuple(f"arg{i}" for i in range(n))
        if self._active_inputs is not None:
            return tuple(self._active_inputs(**attrs))
        return self.arguments

    def aux_names(self, attrs: Attrs) -> tuple[str, ...]:
        """Return the names of the inputs that are auxiliary states, written by the operator (FMutateInputs)."""
        return self.aux

    def num_outputs(self, attrs: Attrs, n_inputs: int | None = None) -> int:
        """Return the number of outputs, hidden ones included."""
        if not callable(self._num_outputs):
            return self._num_outputs
        count = self._num_outputs(**attrs)
        if count < 1:
            raise OpValueError(
                f"operator {self.name} has {count} outputs with these parameters: {dict(attrs)}; expected at least 1"
            )
        return check_outputs(self.name, count)

    def num_visible_outputs(self, attrs: Attrs, n_inputs: int | None = None) -> int:
        """Return the number of outputs that a call returns."""
        if self._visible_outputs is None:
            return self.num_outputs(attrs, n_inputs)
        return self._visible_outputs(**attrs) if callable(self._visible_outputs) else self._visible_outputs

    def output_names(self, attrs: Attrs, n_inputs: int | None = None) -> tuple[str, ...]:
        """Return ``('output',)``, or ``output0, output1...`` of several."""
        n = self.num_outputs(attrs, n_inputs)
        return ("output",) if n == 1 else tuple(f"output{i}" for i in range(n))

    def check_arity(self, attrs: Attrs, n: int) -> None:
        """Raise unless `n` inputs fit."""
        if self.variadic:
            wanted = attrs[self.num_args_param] if self.num_args_param in attrs.names else n
            if n < 1 or wanted not in (n, None, 0):
                raise OpTypeError(f"operator {self.name}: {self.num_args_param}={wanted} but {n} inputs were given")
            return
        names = self.input_names(attrs)
        if n != len(names):
            raise OpTypeError(
                f"operator {self.name} takes {len(names)} input{'s' if len(names) != 1 else ''} "
                f"({', '.join(names) or 'none'}), {n} given"
            )

    # ---- inference ----------------------------------------------------------------------------------------------------
    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        """Complete the shapes of inputs and outputs from each other, as far as they determine each other."""
        raise NotImplementedError

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        """Complete the types: by default inputs and outputs share one type."""
        names = [*self.input_names(attrs, len(ins)), *self.output_names(attrs, len(ins))]
        done = infer.same_type(self.name, names, [*ins, *outs])
        return done[: len(ins)], done[len(ins) :]

    def infer_outputs(self, attrs: Attrs, shapes: list, types: list[int]) -> tuple[list, list[int]]:
        """Return shapes and types of the outputs of a call whose inputs are all known."""
        n = self.num_outputs(attrs, len(shapes))
        _, out_shapes = self.infer_shape(attrs, list(shapes), [None] * n)
        _, out_types = self.infer_type(attrs, list(types), [dtypes.UNKNOWN] * n)
        for shape in out_shapes:
            if not infer.known(shape):
                listed = ", ".join(map(infer.show, shapes))
                raise MXNetError(f"operator {self.name}: the output's shape does not follow from inputs {listed}")
        return out_shapes, [dtypes.FLOAT32 if t == dtypes.UNKNOWN else t for t in out_types]

    # ---- gradient -----------------------------------------------------------------------------------------------------
    def gradient(self, rule: Callable) -> Callable:
        """Decorate the gradient rule ``rule(F, heads, inputs, outputs, **params) -> list``.

        The rule is written with operators of `F` (``mx.nd`` or ``mx.sym``) and returns one gradient per input; None where
        it is zero.
        """
        self._gradient = rule
        return rule

    def grad(
        self, F: Any, attrs: Attrs, heads: list, inputs: list, outputs: list, needed: Sequence[bool]
    ) -> list | None:
        """Return the gradient of each input, None for zero; or None when the operator has no rule."""
        if self._gradient is None:
            return None
        try:
            return list(self._gradient(F, heads, inputs, outputs, **attrs))
        except translated.KINDS as problem:
            raise translated.error(problem, f"the gradient of operator {self.name}")  # noqa: B904

    @property
    def differentiable(self) -> bool:
        """Whether a gradient is defined (it may be zero)."""
        return self._gradient is not None

    def backward_operator(self) -> Operator | None:
        """Return the hidden operator ``_backward_<name>``, when the gradient is one operator."""
        return None

    def same_as(self, other: Operator) -> bool:
        """Tell whether two definitions mean the same."""
        a, b = self.function.__code__, other.function.__code__
        return (
            type(self) is type(other)
            and (a.co_code, a.co_consts[1:], a.co_names, a.co_varnames)
            == (b.co_code, b.co_consts[1:], b.co_names, b.co_varnames)
            and self.function.__kwdefaults__ == other.function.__kwdefaults__
        )
