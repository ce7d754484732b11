"""External operators: Python classes, NumPy functions and compiled libraries as operators.

The five kinds derive an operator from the signature of one function.  An external operator is an object with methods: inputs,
parameters and shapes may depend on the call, and it may keep a state from forward to backward.  Its gradient is the hidden
operator ``_backward_<name>``, which calls its ``run_backward``.  The gradient of that one calls ``run_backward`` again while
autograd records it, and so on to any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..support import dtypes
from ..support.memo import keep
from . import infer
from .above import ask
from .operator import Operator
from .params import Attrs, Param, Spec

Reads = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


class OpenSpec(Spec):
    """Parameters of an operator that accepts any others, too, as strings."""

    takes_others = True

    def parse(self, given: Mapping[str, Any]) -> Attrs:
        own = super().parse({name: value for name, value in given.items() if name in self.by_name})
        extra = {name: str(value) for name, value in sorted(given.items()) if name not in self.by_name}
        return Attrs((*own.names, *extra), (*own.values_, *extra.values()))

    def to_strings(self, attrs: Attrs, given: Mapping[str, Any] | None = None) -> dict[str, str]:
        own = super().to_strings(Attrs(self.names, tuple(attrs[n] for n in self.names)), given)
        return own | {name: value for name, value in attrs.items() if name not in self.by_name}


class Cell:
    """Holds the state of a call, which forward makes and backward reads."""

    __slots__ = ("forward", "kept", "made", "state", "watches")

    def __init__(self) -> None:
        self.made, self.state = False, None
        self.watches: list | None = None  # of the outputs, reused in each run
        self.forward, self.kept = None, False  # its last run, and whether that kept NumPy values


class CallAttrs(Attrs):
    """Parameters of one call, with its state; they are equal to themselves only."""

    __slots__ = ("cell", "plain")

    def __init__(self, plain: Attrs):
        super().__init__(plain.names, plain.values_)
        self.plain, self.cell = plain, Cell()

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


class BackwardAttrs(Attrs):
    """Parameters of a gradient: those of the call (``of``), and the indices of inputs with wanted gradients (``wanted``)."""

    __slots__ = ("of", "wanted")

    def __init__(self, of: Attrs, wanted: tuple[int, ...]):
        super().__init__(("of", "wanted"), (of, wanted))
        self.of, self.wanted = of, wanted


def keeps_numbers(instance: Any, before: Mapping[str, Any]) -> bool:
    """Return whether an object has attributes, other than arrays, that it did not have in `before` or that are mutable."""

    def kept(value: Any) -> bool:
        if isinstance(value, (tuple, list, set)):
            return any(map(kept, value))
        return not (value is None or hasattr(value, "dtype_code"))

    return any(
        kept(value) and (isinstance(value, (np.ndarray, list, dict, set)) or before.get(name, before) is not value)
        for name, value in vars(instance).items()
        if name not in ("_made", "_kept")
    )


class External(Operator):
    """An operator defined by methods of a subclass.

    Parameters
    ----------
    name : str
    doc : str
    arguments : sequence of str
        Names of the inputs, if they do not depend on the parameters.
    params : sequence of Param
        Declared parameters.
    open_params : bool
        Accept any other keyword, too, and pass its value as a string.

    Attributes
    ----------
    contiguous : bool
        Whether ``run`` needs contiguous inputs and outputs.
    needs_state : bool
        Whether ``make_state`` is called.
    clears, clears_gradients : bool
        Whether outputs are zeroed before ``run`` (gradients before ``run_backward``), which may leave some unwritten;
        False if it writes all of them.
    open_inputs : bool
        Whether the names of the inputs depend on the parameters.
    """

    kind = "external"
    stateful = True  # equal calls are not merged
    contiguous = False
    needs_state = False
    clears = True
    clears_gradients = True

    def __init__(self, name: str, *, doc: str = "", arguments: Sequence[str] = (), params: Sequence[Param] = (),
                 open_params: bool = False, **options: Any):  # fmt: skip
        options.setdefault("module", type(self).__module__)
        super().__init__(None, name=name, arguments=arguments, **options)
        self._doc = doc
        self._spec = OpenSpec(name, tuple(params)) if open_params else Spec(name, tuple(params))
        self._backward: ExternalBackward | None = None

    # ---- the signature of a call ---------------------------------------------------------------------------------------
    @property
    def spec(self) -> Spec:  # type: ignore[override]
        return self._spec

    @property
    def doc(self) -> str:
        return self._doc

    def same_as(self, other: Operator) -> bool:
        return self is other

    def call_attrs(self, attrs: Attrs) -> Attrs:
        """Return parameters with a state of their own, if the operator keeps one."""
        return CallAttrs(attrs) if self.needs_state and not isinstance(attrs, CallAttrs) else attrs

    def plain_attrs(self, attrs: Attrs) -> Attrs:
        """Return parameters without the state of a call, which may be cached after the call."""
        return attrs.plain if type(attrs) is CallAttrs else attrs

    def state_of(self, attrs: Attrs, inputs: list) -> Any:
        """Return the state of a call, made on its first run."""
        if not isinstance(attrs, CallAttrs):
            return None
        cell = attrs.cell
        if not cell.made:
            cell.state, cell.made = self.make_state(attrs.plain, inputs), True
        return cell.state

    # ---- defined by subclasses -------------------------------------------------------------------------------------------
    def make_state(self, attrs: Attrs, inputs: list) -> Any:
        """Return the state that a call keeps from forward to backward."""
        return None

    def run(self, attrs: Attrs, state: Any, is_train: bool, reqs: list[str], inputs: list, outputs: list) -> None:
        """Compute the outputs.

        Parameters
        ----------
        reqs : list of str
            ``'write'``, ``'add'`` or ``'null'`` for each output.  ``run`` may always write: the framework adds.
        inputs, outputs : list of NDArray
            Auxiliary states are among the inputs.
        """
        raise NotImplementedError

    def check_written(self, attrs: Attrs, unwritten: list[int]) -> None:
        """Raise if outputs that ``run`` left unwritten must not be zero."""

    def _output_types(self, attrs: Attrs, types: list[int], n: int) -> list[int]:
        """Ask the method in each call: it is a user's."""
        return self.infer_type(attrs, list(types), [dtypes.UNKNOWN] * n)[1]

    def has_backward(self, attrs: Attrs) -> bool:
        """Return whether ``run_backward`` is defined."""
        return False

    def run_backward(self, attrs: Attrs, state: Any, is_train: bool, reqs: list[str], heads: list, inputs: list,
                     outputs: list, grads: list) -> None:  # fmt: skip
        """Compute the gradients of the inputs into `grads`, whose items are None if not wanted."""
        raise NotImplementedError

    def backward_reads(self, attrs: Attrs, n_inputs: int) -> Reads:
        """Return the indices of heads, inputs and outputs that ``run_backward`` reads; it gets None for others."""
        n_outputs = self.num_outputs(attrs, n_inputs)
        return tuple(range(n_outputs)), tuple(range(n_inputs)), tuple(range(n_outputs))

    def rule_reads(self, attrs: Attrs, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Return None: all arrays are kept, since ``run_backward`` may read any of them."""

    def differentiable_again(self, attrs: Attrs) -> bool:
        """Return whether autograd can record ``run_backward``, because it calls operators."""
        return True

    # ---- gradient -------------------------------------------------------------------------------------------------------
    @property
    def differentiable(self) -> bool:
        return self._gradient is not None or type(self).run_backward is not External.run_backward

    def backward_operator(self) -> ExternalBackward:
        if self._backward is None:
            self._backward = ExternalBackward(self)
        return self._backward

    def implied(self, F: Any, attrs: Attrs, heads: list, inputs: list, outputs: list, needed: Sequence[bool]) -> Any:
        if not self.has_backward(attrs):
            return None
        op = self.backward_operator()
        wanted = op.wanted(attrs, tuple(needed))
        result: list = [None] * len(inputs)
        if wanted:
            backward = BackwardAttrs(attrs, wanted)
            found = F._invoke(op, op.layout(backward).gather(heads, inputs, outputs), backward)
            for k, g in zip(wanted, found if isinstance(found, (list, tuple)) else [found], strict=True):
                result[k] = g
        return result


class _Layout:
    """Positions of a call's heads, inputs and outputs among the inputs of its gradient."""

    def __init__(self, lower: External, attrs: BackwardAttrs):
        names = lower.input_names(attrs.of)
        outputs = lower.output_names(attrs.of, len(names))
        heads, inputs, kept = lower.backward_reads(attrs.of, len(names))
        inputs = tuple(sorted({*inputs, *attrs.wanted}))  # a gradient has its input's shape and type
        self.counts = len(outputs), len(names), len(outputs)
        self.reads = heads, inputs, kept
        self.gradients = [len(heads) + inputs.index(k) for k in attrs.wanted]
        self.names = tuple(self.gather([f"head_{name}" for name in outputs], list(names), list(outputs)))
        self.states = lower.aux_names(attrs.of)
        written = [name in self.states for name in names]
        self.variable = [not w for w in self.gather([False] * len(outputs), written, [False] * len(outputs))]

    def gather(self, heads: list, inputs: list, outputs: list) -> list:
        """Return the inputs of the gradient for those of the call."""
        return [values[k] for values, chosen in zip((heads, inputs, outputs), self.reads) for k in chosen]

    def scatter(self, given: list) -> list[list]:
        """Return heads, inputs and outputs for the inputs of the gradient, with None for unread ones."""
        lists: list[list] = [[None] * count for count in self.counts]
        at = 0
        for values, chosen in zip(lists, self.reads):
            for k in chosen:
                values[k] = given[at]
                at += 1
        return lists


class ExternalBackward(External):
    """The gradient of an external operator; its inputs are the heads, inputs and outputs that ``run_backward`` reads."""

    def __init__(self, lower: External):
        doc = f"The gradient of ``{lower.name}``."
        super().__init__("_backward_" + lower.name, doc=doc, is_backward=True, module=lower.module)
        self.lower = lower
        self.contiguous = lower.contiguous
        self.clears, self.clears_gradients = lower.clears_gradients, False
        self._layouts: dict[Attrs, _Layout] = {}
        self._wanted: dict[tuple, tuple[int, ...]] = {}

    def plain_attrs(self, attrs: BackwardAttrs) -> BackwardAttrs:  # type: ignore[override]
        plain = self.lower.plain_attrs(attrs.of)
        return attrs if plain is attrs.of else BackwardAttrs(plain, attrs.wanted)

    def wanted(self, attrs: Attrs, needed: tuple[bool, ...]) -> tuple[int, ...]:
        """Return the inputs of a call, except states, whose gradients are needed."""
        key = self.lower.plain_attrs(attrs), needed
        found = self._wanted.get(key)
        if found is None:
            states = self.lower.aux_names(attrs)
            names = self.lower.input_names(attrs, len(needed))
            found = tuple(k for k, name in enumerate(names) if needed[k] and name not in states)
            keep(self._wanted, key, found)
        return found

    def layout(self, attrs: BackwardAttrs) -> _Layout:
        """Return the order of a call's inputs."""
        plain = self.plain_attrs(attrs)
        found = self._layouts.get(plain)
        if found is None:
            found = keep(self._layouts, plain, _Layout(self.lower, plain))
        return found

    def forget(self) -> None:
        """Clear caches about calls, for operators whose inputs depend on objects that can be registered again."""
        self._layouts.clear()
        self._wanted.clear()

    def input_names(self, attrs: BackwardAttrs, n: int | None = None) -> tuple[str, ...]:  # type: ignore[override]
        return self.layout(attrs).names

    def aux_names(self, attrs: BackwardAttrs) -> tuple[str, ...]:  # type: ignore[override]
        return self.layout(attrs).states

    def num_outputs(self, attrs: BackwardAttrs, n_inputs: int | None = None) -> int:  # type: ignore[override]
        return len(attrs.wanted)

    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        ins, outs = list(ins), list(outs)
        layout = self.layout(attrs)
        names = layout.names
        for k, at in enumerate(layout.gradients):
            pair = [names[at], f"gradient of {names[at]}"]
            ins[at], outs[k] = infer.same_shape(self.name, pair, [ins[at], outs[k]])
        return ins, outs

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        ins, outs = list(ins), list(outs)
        for k, at in enumerate(self.layout(attrs).gradients):
            known = [t for t in (ins[at], outs[k]) if t != dtypes.UNKNOWN]
            if known:
                ins[at] = outs[k] = known[0]
        return ins, outs

    def run(self, attrs: Attrs, state: Any, is_train: bool, reqs: list[str], inputs: list, outputs: list) -> None:
        heads, ins, outs = self.layout(attrs).scatter(inputs)
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

    def run_backward(self, attrs: Attrs, state: Any, is_train: bool, reqs: list[str], heads: list, inputs: list,
                     outputs: list, grads: list) -> None:  # fmt: skip
        layout = self.layout(attrs)
        likes = [inputs[at] for at in layout.gradients]

        def run(ins: list, outs: list) -> None:
            self.run(attrs, state, is_train, ["write"] * len(outs), ins, outs)

        of = attrs
        while isinstance(of, BackwardAttrs):
            of = of.of
        cell = of.cell if isinstance(of, CallAttrs) else None
        ask("differentiate_run")(self.name, run, inputs, layout.variable, likes, heads, grads, is_train, cell)
