"""MXNet's operators written in Python: ``CustomOp``, ``CustomOpProp``, ``register`` and the operator ``Custom``.

A call runs in the thread that makes it: no queue, no worker, so it may call ``asnumpy``, autograd or other operators, works
after a fork, and what it raises is the cause of the MXNetError that arrives.  A ``backward`` written with operators of
``mx.nd`` can be differentiated again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

from .._core.array import handed_to_host
from .._core.profile import InPython
from ..context import current_context
from ..ndarray import NDArray
from ..opdef import Attrs, External, infer, registry
from ..opdef.external import Reads, keeps_numbers
from ..opdef.params import REQUIRED, param_from
from ..support import dtypes
from ..support.errors import MXNetError, OpLookupError, OpTypeError, OpValueError, closest, raised
from ..support.memo import keep
from ..support.shape_mode import numpy_shape
from . import answers

_PROPS: dict[str, type[CustomOpProp]] = {}
Prop = TypeVar("Prop", bound=type)


class CustomOp:
    """What a custom operator computes: derive, and define ``forward`` and, where there is a gradient, ``backward``.

    Examples
    --------
    >>> class Square(mx.operator.CustomOp):
    ...     def forward(self, is_train, req, in_data, out_data, aux):
    ...         self.assign(out_data[0], req[0], in_data[0] * in_data[0])
    ...     def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
    ...         self.assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0])
    >>> @mx.operator.register("doc_square")
    ... class SquareProp(mx.operator.CustomOpProp):
    ...     def create_operator(self, ctx, in_shapes, in_dtypes):
    ...         return Square()
    >>> mx.nd.Custom(mx.nd.array([1, 2, 3]), op_type="doc_square").asnumpy().tolist()
    [1.0, 4.0, 9.0]
    """

    def forward(self, is_train: bool, req: list[str], in_data: list, out_data: list, aux: list) -> None:
        """Compute ``out_data`` from ``in_data``; an output that stays unwritten is an error.

        Parameters
        ----------
        is_train : bool
        req : list of str
            What to do with each output: ``'write'``, ``'add'``, ``'inplace'`` or ``'null'``; see :meth:`assign`.
        in_data, out_data, aux : list of NDArray
        """

    def backward(self, req: list[str], out_grad: list, in_data: list, out_data: list, in_grad: list, aux: list) -> None:
        """Compute ``in_grad``, the gradients of the inputs, from ``out_grad``, those of the outputs.

        A gradient that stays unwritten is zero; without a method of its own, a class has zeros for all.

        Parameters
        ----------
        req : list of str
            What to do with each gradient.
        out_grad, in_data, out_data, in_grad, aux : list of NDArray
        """

    def assign(self, dst: NDArray, req: str, src: Any) -> None:
        """Write `src` to `dst` as `req` says."""
        if req == "null":
            return
        if req in ("write", "inplace"):
            dst[:] = src
        elif req == "add":
            dst[:] += src
        else:
            raise OpValueError(f"assign: req={req!r} is not allowed; expected 'null', 'write', 'inplace' or 'add'")


class CustomOpProp:
    """What a custom operator looks like: inputs, outputs, shapes and types.

    Parameters
    ----------
    need_top_grad : bool, default True
        Whether ``backward`` reads the gradients of the outputs; a loss does not.
    """

    def __init__(self, need_top_grad: bool = True):
        self.need_top_grad_ = need_top_grad

    def infer_shape(self, in_shape: list, /) -> tuple:
        """Return shapes of inputs, outputs and states; by default all are as the first input."""
        return in_shape, (in_shape[0],) * len(self.list_outputs()), ()

    def infer_type(self, in_type: list, /) -> tuple:
        """Return types of inputs, outputs and states; by default all are as the first input."""
        first = in_type[0]
        return in_type, [first] * len(self.list_outputs()), [first] * len(self.list_auxiliary_states())

    def infer_storage_type(self, in_stype: list, /) -> tuple:
        """Return storage types of inputs, outputs and states: a class that defines this may be given sparse arrays."""
        dense = "default"
        return in_stype, [dense] * len(self.list_outputs()), [dense] * len(self.list_auxiliary_states())

    def infer_storage_type_backward(
        self, ograd_stype: list, in_stype: list, out_stype: list, igrad_stype: list, aux_stype: list, /
    ) -> tuple:
        """Return storage types for ``backward``, in the order of the arguments; gradients that come are dense."""
        return ograd_stype, in_stype, out_stype, ["default"] * len(igrad_stype), aux_stype

    def list_outputs(self) -> list[str]:
        """Return the names of the outputs."""
        return ["output"]

    def list_arguments(self) -> list[str]:
        """Return the names of the inputs."""
        return ["data"]

    def list_auxiliary_states(self) -> list[str]:
        """Return the names of the auxiliary states."""
        return []

    def declare_backward_dependency(self, out_grad: list[int], in_data: list[int], out_data: list[int], /) -> list[int]:
        """Return which of the given numbers of arrays ``backward`` reads."""
        found = list(out_grad) if self.need_top_grad_ else []
        return [*found, *in_data, *out_data]

    def create_operator(self, ctx: Any, in_shapes: list, in_dtypes: list, /) -> CustomOp:
        """Return the operator for one call (or bound node)."""
        return CustomOp()


def register(reg_name: str) -> Callable[[Prop], Prop]:
    """Register a subclass of :class:`CustomOpProp` under the name that ``op_type`` gives.

    Examples
    --------
    >>> @mx.operator.register("doc_identity")
    ... class IdentityProp(mx.operator.CustomOpProp):
    ...     pass
    >>> "doc_identity" in mx.operator.get_all_registered_operators()
    True
    """

    def add(prop: Prop) -> Prop:
        if not (isinstance(prop, type) and issubclass(prop, CustomOpProp)):
            raise OpTypeError(f"register({reg_name!r}): {prop!r} is not a subclass of CustomOpProp")
        if not isinstance(reg_name, str):
            raise OpTypeError(f"register({reg_name!r}): expected a name, a string")
        _PROPS[reg_name] = prop
        CUSTOM.forget()
        return prop

    return add


def registered() -> list[str]:
    """Return the names given to :func:`register`."""
    return sorted(_PROPS)


def prop_class(reg_name: str) -> type[CustomOpProp]:
    """Return the class registered under a name."""
    return _PROPS[reg_name]


class _About:
    """What a class says of itself with given parameters."""

    def __init__(self, prop: CustomOpProp):
        self.prop = prop
        self.arguments = answers.names(prop, "list_arguments")
        self.states = answers.names(prop, "list_auxiliary_states")
        answers.distinct(prop, "list_auxiliary_states", self.states, self.arguments)
        self.outputs = answers.names(prop, "list_outputs")
        if not self.outputs:
            raise OpValueError(f"{answers.said(prop, 'list_outputs')} returned no names; expected at least one")

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """The names of inputs, outputs and states."""
        return self.arguments, self.outputs, self.states

    @cached_property
    def reads(self) -> tuple[tuple[int, ...], ...]:
        """Which heads, inputs and outputs ``backward`` reads."""
        n_in, n_out = len(self.arguments), len(self.outputs)
        everything = list(range(n_out + n_in + n_out))
        parts = everything[:n_out], everything[n_out : n_out + n_in], everything[n_out + n_in :]
        method = "declare_backward_dependency"
        found = answers.answer(self.prop, method, *(list(part) for part in parts))
        declared = answers.numbers(self.prop, method, found, everything)
        return tuple(tuple(i for i, number in enumerate(part) if number in declared) for part in parts)


class Custom(External):
    """The operator behind ``mx.nd.Custom`` and ``mx.sym.Custom``: ``op_type`` says which class it runs."""

    open_inputs = True
    needs_state = True

    def __init__(self) -> None:
        op_type = param_from("op_type", str, REQUIRED, register)
        super().__init__("Custom", doc=_DOC, params=(op_type,), open_params=True)
        self._props: dict[Attrs, _About] = {}

    def forget(self) -> None:
        """Drop what was made of classes that are registered anew."""
        self._props.clear()
        op: Any = self
        while op is not None:
            op = op._backward
            if op is not None:
                op.forget()
        if registry.find(self.name) is self:
            from .._core import dispatch

            dispatch.forget(self)

    # ---- the user's class -----------------------------------------------------------------------------------------------
    def _make(self, attrs: Attrs) -> CustomOpProp:
        """Return a new prop with the parameters of a call, all of which are strings."""
        prop = _PROPS.get(attrs.op_type)
        if prop is None:
            raise OpLookupError(
                f"operator Custom: op_type={attrs.op_type!r} is not registered; register a CustomOpProp with "
                f"@mx.operator.register({attrs.op_type!r}){closest(attrs.op_type, _PROPS)}"
            )
        given = {name: value for name, value in attrs.items() if name != "op_type"}
        try:
            return prop(**given)
        except Exception as problem:
            if isinstance(problem, TypeError):
                _check_parameters(prop, attrs.op_type, given)
            raise raised(f"operator Custom: {prop.__name__}.__init__ (op_type={attrs.op_type!r})", problem) from problem

    def _about(self, attrs: Attrs) -> _About:
        found = self._props.get(attrs)
        if found is None:
            found = keep(self._props, attrs, _About(self._make(attrs)))
        return found

    # ---- what a call looks like -----------------------------------------------------------------------------------------
    def input_names(self, attrs: Attrs, n: int | None = None) -> tuple[str, ...]:
        about = self._about(_plain(attrs))
        return about.arguments + about.states

    def aux_names(self, attrs: Attrs) -> tuple[str, ...]:
        return self._about(_plain(attrs)).states

    def num_outputs(self, attrs: Attrs, n_inputs: int | None = None) -> int:
        return len(self._about(_plain(attrs)).outputs)

    def output_names(self, attrs: Attrs, n_inputs: int | None = None) -> tuple[str, ...]:
        return self._about(_plain(attrs)).outputs

    # ---- inference ------------------------------------------------------------------------------------------------------
    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        about = self._about(_plain(attrs))
        given = ins[: len(about.arguments)]
        whole = all(infer.known(s) for s in given)
        try:
            found = answers.answer(about.prop, "infer_shape", [list(infer.to_legacy(s, numpy_shape()) or ()) for s in given])
            parts = answers.three_parts(about.prop, "infer_shape", found, about.names, answers.shape)
        except MXNetError:
            if whole:
                raise
            return ins, outs  # it needs a shape that is not known yet
        scalars = numpy_shape() or () in given
        new_ins, new_outs, states = [[_shape(s, whole, scalars) for s in part] for part in parts]
        new_ins = answers.agreed_shapes(about.prop, about.arguments + about.states, [*new_ins, *states], ins)
        return new_ins, infer.agreed(self.name, about.outputs, new_outs, outs)

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        about = self._about(_plain(attrs))
        n = len(about.arguments)
        known = [t for t in ins[:n] if t != dtypes.UNKNOWN]
        if n and not known:
            return ins, outs
        given = [known[0] if t == dtypes.UNKNOWN else t for t in ins[:n]]
        found = answers.answer(about.prop, "infer_type", [dtypes.numpy_dtype(t).type for t in given])
        new_ins, new_outs, states = answers.three_parts(about.prop, "infer_type", found, about.names, answers.type_code)
        if dtypes.UNKNOWN in new_outs:
            name = about.outputs[new_outs.index(dtypes.UNKNOWN)]
            raise OpTypeError(f"{answers.said(about.prop, 'infer_type')} gave None for output {name!r}; expected a type")
        return answers.agreed_types(about.prop, about.arguments + about.states, [*new_ins, *states], ins), new_outs

    # ---- a call ---------------------------------------------------------------------------------------------------------
    def make_state(self, attrs: Attrs, inputs: list) -> CustomOp:
        about = self._about(attrs)
        n = len(about.arguments)
        shapes = [list(a.shape) for a in inputs]
        prop = self._make(attrs)  # one of its own, as what it finds out about shapes is about these
        answers.answer(prop, "infer_shape", [list(s) for s in shapes[:n]])
        ctx, types = inputs[0].context if inputs else current_context(), [a.dtype for a in inputs]
        op = answers.answer(prop, "create_operator", ctx, shapes, types)
        if not isinstance(op, CustomOp):
            raise OpTypeError(f"{answers.said(prop, 'create_operator')} returned {answers.shown(op)}; expected a CustomOp")
        return op

    def run(self, attrs: Attrs, state: Any, is_train: bool, reqs: list[str], inputs: list, outputs: list) -> None:
        n = len(self._about(_plain(attrs)).arguments)
        try:
            with InPython(_plain(attrs).op_type):
                before = dict(vars(state))
                state.forward(is_train=is_train, req=reqs, in_data=inputs[:n], out_data=outputs, aux=inputs[n:])
                if handed_to_host():  # within a call that has a cell
                    attrs.cell.kept = keeps_numbers(state, before)  # type: ignore[attr-defined]
        except Exception as problem:
            raise raised(_method(state, "forward", attrs), problem) from problem

    def check_written(self, attrs: Attrs, unwritten: list[int]) -> None:
        if unwritten:
            k, state = unwritten[0], attrs.cell.state  # type: ignore[attr-defined]
            name = self._about(_plain(attrs)).outputs[k]
            raise MXNetError(
                f"{_method(state, 'forward', attrs)} wrote nothing into output {name!r}; write it with "
                f"self.assign(out_data[{k}], req[{k}], value), or out_data[{k}][:] = value"
            )

    def has_backward(self, attrs: Attrs) -> bool:
        return True

    def backward_reads(self, attrs: Attrs, n_inputs: int) -> Reads:
        about = self._about(_plain(attrs))
        heads, inputs, outputs = about.reads
        return heads, inputs + tuple(range(len(about.arguments), n_inputs)), outputs

    def run_backward(
        self, attrs: Attrs, state: Any, is_train: bool, reqs: list[str], heads: list, inputs: list, outputs: list,
        grads: list,
    ) -> None:  # fmt: skip
        n = len(self._about(_plain(attrs)).arguments)
        in_grad = [inputs[k].zeros_like() if g is None else g for k, g in enumerate(grads[:n])]
        try:
            with InPython(f"_backward_{_plain(attrs).op_type}"):
                state.backward(
                    req=reqs[:n], out_grad=heads, in_data=inputs[:n], out_data=outputs, in_grad=in_grad, aux=inputs[n:]
                )
        except Exception as problem:
            raise raised(_method(state, "backward", attrs), problem) from problem


def _check_parameters(prop: type, op_type: str, given: dict[str, str]) -> None:
    """Raise when a class does not take these parameters."""
    try:
        inspect.signature(prop).bind(**given)
    except TypeError as problem:
        raise OpTypeError(
            f"operator Custom: {prop.__name__} (op_type={op_type!r}) does not take the parameters {given}: {problem}"
        ) from None


def _plain(attrs: Attrs) -> Attrs:
    """Return the parameters without a call's state."""
    return getattr(attrs, "plain", attrs)


def _method(op: CustomOp, method: str, attrs: Attrs) -> str:
    """Return how messages call a method of a user's operator."""
    return f"operator Custom: {type(op).__name__}.{method} (op_type={_plain(attrs).op_type!r})"


def _shape(value: tuple[int, ...], whole: bool, scalars: bool) -> infer.Shape:
    """Return a shape that a prop gave; 0 is a size when all inputs are known, and else what is not known."""
    return value if whole and (value or scalars) else infer.from_legacy(value, numpy_shape())


_DOC = """Run an operator that is written in Python: see :class:`mxop.operator.CustomOp`.

Parameters
----------
*data : NDArray or Symbol
    The inputs that the class of `op_type` lists, then its auxiliary states.
op_type : str
    The name that its :class:`mxop.operator.CustomOpProp` was registered under.
**kwargs
    Handed to that class as strings.

Returns
-------
NDArray or Symbol, or a list of them
    As many as the class lists.

Raises
------
MXNetError
    When the name is not registered, or what the class says or does not fit.  What its methods raise is the error's
    ``__cause__``.

Examples
--------
>>> import mxop as mx
>>> class Double(mx.operator.CustomOp):
...     def forward(self, is_train, req, in_data, out_data, aux):
...         self.assign(out_data[0], req[0], 2 * in_data[0])
>>> @mx.operator.register("doc_double")
... class DoubleProp(mx.operator.CustomOpProp):
...     def create_operator(self, ctx, in_shapes, in_dtypes):
...         return Double()
>>> mx.nd.Custom(mx.nd.array([1, 2]), op_type="doc_double").asnumpy().tolist()
[2.0, 4.0]
"""

CUSTOM = Custom()
registry.register(CUSTOM)
