"""Operators from outside: what a Python class, a NumPy function or a compiled library needs to be one of ours.

The four kinds read an operator off the signature of one function.  An operator from outside is an object with methods: its
inputs, parameters and shapes may all depend on what a call gives, and it may keep a state from forward to backward.  Its
gradient is the hidden operator ``_backward_<name>``, which runs its ``run_backward``; the gradient of that one runs
``run_backward`` again while autograd records it, and so on to any order.
Imports :mod:`.operator` and :mod:`.params`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import dtypes
from ..errors import MXNetError, OpTypeError, closest
from . import infer
from .operator import Operator
from .params import Attrs, OpenSpec, Param, Spec

Reads = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]

_differentiate_run: Callable | None = None


def provide_recording(differentiate_run: Callable) -> None:
    """Tell how to differentiate a run by recording it; autograd's (see :func:`mxop.autograd.differentiate_run`)."""
    global _differentiate_run
    _differentiate_run = differentiate_run


class Cell:
    """Holds the state of one call, which forward makes and backward finds."""

    __slots__ = ("made", "state")

    def __init__(self) -> None:
        self.made, self.state = False, None


class CallAttrs(Attrs):
    """Parameters of one particular call, with its state: equal to themselves only."""

    __slots__ = ("cell", "plain")

    def __init__(self, plain: Attrs):
        super().__init__(plain.names, plain.values_)
        self.plain, self.cell = plain, Cell()

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


class External(Operator):
    """An operator whose parts are methods; subclasses say what it does.

    Parameters
    ----------
    name : str
    doc : str
    arguments : sequence of str
        Names of the inputs, when they do not depend on the parameters.
    params : sequence of Param
        Declared parameters.
    open_params : bool
        Take any other keyword too; its value is handed over as a string.

    Attributes
    ----------
    contiguous : bool
        Whether ``run`` wants inputs and outputs in C order.
    needs_state : bool
        Whether ``make_state`` is called.
    open_inputs : bool
        Whether the names of the inputs follow from the parameters.
    """

    kind = "external"
    stateful = True  # equal calls are two calls
    contiguous = False
    needs_state = False

    def __init__(
        self,
        name: str,
        *,
        doc: str = "",
        arguments: Sequence[str] = (),
        params: Sequence[Param] = (),
        open_params: bool = False,
        **options: Any,
    ):
        options.setdefault("module", type(self).__module__)
        super().__init__(None, name=name, arguments=arguments, **options)
        self._doc = doc
        self._spec = OpenSpec(name, tuple(params)) if open_params else Spec(name, tuple(params))
        self._backward: ExternalBackward | None = None

    # ---- what a call looks like -----------------------------------------------------------------------------------------
    @property
    def spec(self) -> Spec:  # type: ignore[override]
        return self._spec

    @property
    def doc(self) -> str:
        return self._doc

    def same_as(self, other: Operator) -> bool:
        return self is other

    def call_attrs(self, attrs: Attrs) -> Attrs:
        """Return parameters that carry a state of their own, when the operator keeps one."""
        return CallAttrs(attrs) if self.needs_state and not isinstance(attrs, CallAttrs) else attrs

    def state_of(self, attrs: Attrs, inputs: list) -> Any:
        """Return the state of a call, made when it runs first."""
        if not isinstance(attrs, CallAttrs):
            return None
        cell = attrs.cell
        if not cell.made:
            cell.state, cell.made = self.make_state(attrs.plain, inputs), True
        return cell.state

    # ---- what subclasses give -------------------------------------------------------------------------------------------
    def make_state(self, attrs: Attrs, inputs: list) -> Any:
        """Return what one call keeps from forward to backward."""
        return None

    def run(self, attrs: Attrs, state: Any, is_train: bool, reqs: list[str], inputs: list, outputs: list) -> None:
        """Compute the outputs.

        Parameters
        ----------
        reqs : list of str
            ``'write'``, ``'add'`` or ``'null'`` for each output.  Writing is always right: the framework adds.
        inputs, outputs : list of NDArray
            Auxiliary states are among the inputs.
        """
        raise NotImplementedError

    def has_backward(self, attrs: Attrs) -> bool:
        """Tell whether ``run_backward`` is there."""
        return False

    def run_backward(
        self,
        attrs: Attrs,
        state: Any,
        is_train: bool,
        reqs: list[str],
        heads: list,
        inputs: list,
        outputs: list,
        grads: list,
    ) -> None:
        """Compute the gradients of the inputs into `grads`, where an item is None when nobody wants it."""
        raise NotImplementedError

    def backward_reads(self, attrs: Attrs, n_inputs: int) -> Reads:
        """Return which heads, inputs and outputs ``run_backward`` reads; the others are None there."""
        n_outputs = self.num_outputs(attrs, n_inputs)
        return tuple(range(n_outputs)), tuple(range(n_inputs)), tuple(range(n_outputs))

    def differentiable_again(self, attrs: Attrs) -> bool:
        """Tell whether ``run_backward`` may be recorded by autograd: it is written with operators."""
        return True

    # ---- gradient -------------------------------------------------------------------------------------------------------
    @property
    def differentiable(self) -> bool:
        return self._gradient is not None or type(self).run_backward is not External.run_backward

    def backward_operator(self) -> ExternalBackward:
        if self._backward is None:
            self._backward = ExternalBackward(self)
        return self._backward

    def grad(
        self, F: Any, attrs: Attrs, heads: list, inputs: list, outputs: list, needed: Sequence[bool]
    ) -> list | None:
        if self._gradient is not None:
            return super().grad(F, attrs, heads, inputs, outputs, needed)
        if not self.has_backward(attrs):
            return None
        states = set(self.aux_names(attrs))
        names = self.input_names(attrs, len(inputs))
        wanted = tuple(k for k, name in enumerate(names) if needed[k] and name not in states)
        result: list = [None] * len(inputs)
        if wanted:
            op = self.backward_operator()
            backward = Attrs(("of", "wanted"), (attrs, wanted))
            found = F._invoke(op, op.gather(backward, heads, inputs, outputs), backward)
            for k, g in zip(wanted, found if isinstance(found, (list, tuple)) else [found], strict=True):
                result[k] = g
        return result


class ExternalBackward(External):
    """The gradient of an operator from outside: inputs are heads, inputs and outputs, as far as they are read.

    Its parameters are those of the call (``of``) and the positions of the inputs whose gradient is wanted (``wanted``).
    """

    def __init__(self, lower: External):
        doc = f"The gradient of ``{lower.name}``."
        super().__init__("_backward_" + lower.name, doc=doc, is_backward=True, module=lower.module)
        self.lower = lower
        self.contiguous = lower.contiguous
        self.needs_state = False

    def _reads(self, attrs: Attrs) -> Reads:
        n = len(self.lower.input_names(attrs.of))
        heads, inputs, outputs = self.lower.backward_reads(attrs.of, n)
        return heads, tuple(sorted({*inputs, *attrs.wanted})), outputs  # a gradient has its input's shape and type

    def gather(self, attrs: Attrs, heads: list, inputs: list, outputs: list) -> list:
        """Return the inputs of a call."""
        lists = zip((heads, inputs, outputs), self._reads(attrs), strict=True)
        return [values[k] for values, positions in lists for k in positions]

    def _scatter(self, attrs: Attrs, given: list) -> tuple[list, list, list]:
        """Undo :meth:`gather`."""
        lower, of = self.lower, attrs.of
        n_inputs = len(lower.input_names(of))
        n_outputs = lower.num_outputs(of, n_inputs)
        lists: tuple[list, list, list] = ([None] * n_outputs, [None] * n_inputs, [None] * n_outputs)
        at = iter(given)
        for values, positions in zip(lists, self._reads(attrs), strict=True):
            for k in positions:
                values[k] = next(at)
        return lists

    def input_names(self, attrs: Attrs, n: int | None = None) -> tuple[str, ...]:
        names = self.lower.input_names(attrs.of)
        outputs = self.lower.output_names(attrs.of, len(names))
        heads = [f"head_{name}" for name in outputs]
        return tuple(self.gather(attrs, heads, list(names), list(outputs)))

    def aux_names(self, attrs: Attrs) -> tuple[str, ...]:
        return self.lower.aux_names(attrs.of)

    def num_outputs(self, attrs: Attrs, n_inputs: int | None = None) -> int:
        return len(attrs.wanted)

    def _positions(self, attrs: Attrs) -> list[int]:
        """Return where, among the inputs of a call, the inputs lie whose gradients are wanted."""
        heads, inputs, _ = self._reads(attrs)
        return [len(heads) + inputs.index(k) for k in attrs.wanted]

    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        ins, outs = list(ins), list(outs)
        names = self.input_names(attrs)
        for k, at in enumerate(self._positions(attrs)):
            pair = [names[at], f"gradient of {names[at]}"]
            ins[at], outs[k] = infer.same_shape(self.name, pair, [ins[at], outs[k]])
        return ins, outs

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        ins, outs = list(ins), list(outs)
        for k, at in enumerate(self._positions(attrs)):
            known = [t for t in (ins[at], outs[k]) if t != dtypes.UNKNOWN]
            if known:
                ins[at] = outs[k] = known[0]
        return ins, outs

    def run(self, attrs: Attrs, state: Any, is_train: bool, reqs: list[str], inputs: list, outputs: list) -> None:
        heads, ins, outs = self._scatter(attrs, inputs)
        grads: list = [None] * len(ins)
        requests = ["null"] * len(ins)
        for k, target, req in zip(attrs.wanted, outputs, reqs, strict=True):
            grads[k], requests[k] = target, req
        state = self.lower.state_of(attrs.of, ins)
        self.lower.run_backward(attrs.of, state, is_train, requests, heads, ins, outs, grads)

    def has_backward(self, attrs: Attrs) -> bool:
        return self.lower.differentiable_again(attrs.of)

    def differentiable_again(self, attrs: Attrs) -> bool:
        return self.lower.differentiable_again(attrs.of)

    def backward_reads(self, attrs: Attrs, n_inputs: int) -> Reads:
        return tuple(range(len(attrs.wanted))), tuple(range(n_inputs)), ()

    def run_backward(
        self,
        attrs: Attrs,
        state: Any,
        is_train: bool,
        reqs: list[str],
        heads: list,
        inputs: list,
        outputs: list,
        grads: list,
    ) -> None:
        if _differentiate_run is None:
            raise MXNetError(f"operator {self.name}: its gradient needs autograd, which is not loaded")
        likes = [inputs[at] for at in self._positions(attrs)]
        states = self.aux_names(attrs)
        variable = [name not in states for name in self.input_names(attrs)]

        def run(ins: list, outs: list) -> None:
            self.run(attrs, state, is_train, ["write"] * len(outs), ins, outs)

        _differentiate_run(self.name, run, inputs, variable, likes, heads, grads, is_train)


def _a(kind: type) -> str:
    return f"{'an' if kind.__name__[0] in 'AEIOUN' else 'a'} {kind.__name__}"


def bind_open(
    op: Operator, args: Sequence[Any], kwargs: Mapping[str, Any], kind: type, optional: bool
) -> tuple[list[Any], dict[str, Any]]:
    """Sort the arguments of a call whose inputs follow from its parameters.

    Parameters
    ----------
    kind : type
        The class of inputs: these are inputs, all else is a parameter.
    optional : bool
        Whether inputs may be missing (None stands for them), as when a symbol is made.

    Returns
    -------
    inputs : list
    params : dict
    """
    named = {name: value for name, value in kwargs.items() if isinstance(value, kind)}
    params = {name: value for name, value in kwargs.items() if name not in named and value is not None}
    if len(args) == 1 and isinstance(args[0], (list, tuple)):
        args = args[0]
    names = op.input_names(op.parse(params), len(args))
    if len(args) > len(names):
        raise OpTypeError(f"operator {op.name} takes {len(names)} inputs ({', '.join(names)}) with these parameters; "
                          f"{len(args)} were given")  # fmt: skip
    inputs: list[Any] = [*args, *[None] * (len(names) - len(args))]
    for i, value in enumerate(args):
        if value is not None and not isinstance(value, kind):
            raise OpTypeError(f"operator {op.name}: argument {names[i]} must be {_a(kind)}, got {value!r}")
    for name, value in named.items():
        if name not in names:
            raise OpTypeError(f"operator {op.name} has no input {name!r} with these parameters; its inputs are "
                              f"{', '.join(names)}{closest(name, names)}")  # fmt: skip
        at = names.index(name)
        if inputs[at] is not None:
            raise OpTypeError(f"operator {op.name}: input {name!r} is given twice")
        inputs[at] = value
    missing = [name for name, value in zip(names, inputs, strict=True) if value is None]
    if missing and not optional:
        raise OpTypeError(
            f"operator {op.name} takes {len(names)} inputs ({', '.join(names)}); missing: {', '.join(missing)}"
        )
    return inputs, params
