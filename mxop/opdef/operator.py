"""The base of the five kinds of operators, with everything derived from the signature of an operator's function."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar, overload

from ..support import dtypes
from ..support.errors import (
    Later,
    MXNetError,
    OpLookupError,
    OpTypeError,
    OpValueError,
    closest,
    ends_at_caller,
    shown,
    translated,
)
from ..support.limits import check_outputs
from ..support.memo import keep
from . import infer, registry
from .above import ask
from .params import IS_TRAIN, Attrs, Param, Spec
from .places import callers_line, place
from .rules import check_numbers, check_options, check_rule, type_codes

_VARARGS = 0x04
MOST_RULES = 256  # cached calls of `rule_reads` for each operator
_types_of: dict[tuple, list[int]] = {}  # types of outputs, by operator, parameters and types of inputs

T = TypeVar("T")
P = ParamSpec("P")  # what a function takes after its first input, so that type checkers know an operator's parameters
RuleReads = tuple[frozenset[int], frozenset[int]]
_PARTS = ("shape", "dtype", "infer", "size", "both", "cpu", "gpu", "rearrange", "view")
ASKS = "asks for shapes"  # instead of the arrays that a gradient rule reads


def carrier(values: Iterable[Any]) -> Any:
    """Return the first argument of a call whose class applies operators itself, as tensors with axes do, or None.

    The class has a method ``__mxop_operator__(name, args, kwargs)``.
    """
    return next((v for v in values if hasattr(type(v), "__mxop_operator__")), None)


_NO_RESULT = 0x20 | 0x80 | 0x200  # code flags of generators and coroutines
_KEYWORDS = 0x08  # code flag of functions that take any keyword


def _checked(function: Any, name: str | None, optional_inputs: bool) -> Any:
    """Return an author's function; raise if it cannot define an operator."""
    code = getattr(function, "__code__", None)
    who = f"operator {name or getattr(function, '__name__', shown(function))}{place(function) or callers_line()}"
    if code is None or hasattr(function, "__self__"):
        raise OpTypeError(f"{who}: an operator is made of a function that is written in Python, got {shown(function)}: write "
                          "one with def, whose positional arguments are the inputs; the decorator of the kind stands next to "
                          "it")  # fmt: skip
    if name is None and not function.__name__.isidentifier():
        raise OpValueError(f"{who}: an operator needs a name: write def in place of lambda, or give name=")
    if function.__defaults__ and not optional_inputs:
        raise OpTypeError(_with_star(function))
    return function


def _check_signature(function: Any, who: str) -> None:
    """Raise for a Python function whose signature cannot be that of an operator."""
    code = function.__code__
    if code.co_flags & _NO_RESULT:
        raise OpTypeError(f"{who}: its function is one with async or yield; expected one that returns its result")
    if code.co_flags & _KEYWORDS:
        raise OpTypeError(f"{who}: its function takes any keyword; write its parameters after a star, with types, as in def "
                          "f(data, *, slope: float = 1.0). A decorator of your own stands above that of the kind")  # fmt: skip
    if IS_TRAIN in code.co_varnames[: code.co_argcount]:
        raise OpTypeError(f"{who}: {IS_TRAIN} is the mode, and stands after a star: def f(data, *, {IS_TRAIN})")
    for taken in {"name", "out"}.intersection(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]):
        raise OpTypeError(f"{who}: no input or parameter can be named {taken!r}, which every call takes: x, name='y', out=z")


def _with_star(function: Any) -> str:
    """Return the message for a definition with parameters among the inputs: how to write it."""
    code, first = function.__code__, function.__code__.co_argcount - len(function.__defaults__)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    defaults = dict(zip(names[first:], function.__defaults__, strict=False)) | (function.__kwdefaults__ or {})
    params = [_declared(function, name, defaults.get(name, ...)) for name in names[first:]]
    return (f"operator function {function.__name__}{place(function)}: {names[first]}={defaults[names[first]]!r} has a "
            f"default, so it is a parameter and not an input; parameters stand after a star: "
            f"def {function.__name__}({', '.join([*names[:first], '*', *params])})")  # fmt: skip


_DECLARED = {bool: "bool", int: "float", str: "str", tuple: "Shape", list: "Shape", type(None): "float | None"}


def _declared(function: Any, name: str, default: Any) -> str:
    """Return the declaration of a parameter as source text."""
    given = function.__annotations__.get(name)
    text = given if isinstance(given, str) else getattr(given, "__name__", None)
    return f"{name}: {text or _DECLARED.get(type(default), 'float')}" + ("" if default is ... else f" = {default!r}")


Kind = TypeVar("Kind", bound="Operator")


def defined(cls: type[Kind], function: Any, *args: Any, override: bool, options: Mapping[str, Any]) -> Kind:
    """Make an operator of an author's function, check it, and register it."""
    if "inplace" in options:
        warnings.warn("inplace= has no effect: sharing of memory is determined automatically", FutureWarning, stacklevel=4)
        options = {name: value for name, value in options.items() if name != "inplace"}
    ours = (getattr(function, "__module__", None) or "").startswith("mxop.")
    if not ours:
        check_options(cls, function, options)
        if hasattr(function, "__code__"):
            _check_signature(function, f"operator {options.get('name') or function.__name__}{place(function)}")
    op = cls(function, *args, **options)
    if not ours:
        with suppress(NameError):  # names that the author's module defines later
            op.check_definition()
    registry.register(op, override=override)
    return op


_listeners: list[Callable[[Operator], None]] = []


def on_change(listener: Callable[[Operator], None]) -> None:
    """Call ``listener(operator)`` whenever an operator gets a rule or an implementation."""
    _listeners.append(listener)


class _Documentation:
    """The attribute ``__doc__``: of an instance (an operator) that of its function, of the class its own."""

    def __init__(self, of_class: str | None):
        self.of_class = of_class

    def __get__(self, op: Operator | None, cls: type) -> str | None:
        if op is None:
            return self.of_class
        from . import docs

        return docs.documentation(op)


class Operator(Generic[P]):
    """An entry of the registry; callable on arrays, on symbols and (if it is a formula) inside other formulas.

    Attributes
    ----------
    name : str
        Canonical name: MXNet's, if MXNet has the operator.
    aliases : tuple of str
    function : callable
        The definition: inputs are positional arguments, parameters are keyword-only.
    arguments : tuple of str
        Names of the inputs (of one repeated input when `variadic`).
    variadic : bool
        Whether it takes any number of inputs.
    num_args_param : str or None
        The parameter that holds that number in MXNet's JSON (``num_args``).
    writes : dict of str to int, or callable
        Inputs that are states, each with the output that is its new value.  The operator itself is a pure function; its
        callers assign the new values.  These outputs are the last ones, and no call returns them.  It is a function of the
        parameters for an operator of any number of inputs, whose names are ``arg0``, ``arg1``...
    random : bool
        Whether equal calls give different results.
    aux : tuple of str
        Of external operators: inputs that they write themselves; see :meth:`aux_names`.
    is_backward : bool
        ``TIsBackward``.
    param_order : tuple of str
        All parameters in MXNet's order, if those of the kind are not last.
    stem : str
        The stem of names of numbered inputs.
    by_keyword : tuple of str
        The last inputs, which a call gives by keyword only.
    made_again : bool
        Whether backward recomputes the result, because it is much larger than the operands.
    zero_is_unknown : tuple of str
        Shape parameters in which MXNet writes 0 for an unknown size.
    """

    kind = "operator"
    _how_to_say_shapes = ""  # added to a message for the author
    has_backward_operator = False
    open_inputs = False  # whether the names of the inputs depend on the parameters, and `arguments` is empty
    stateful = False  # whether equal calls must both run
    repeatable = True  # whether running a call again gives the same result
    sized_by: Callable | None = None  # a rule for shapes that depend on values: see Kernel.size
    bodies: tuple = ()  # the graphs that a control flow operator runs
    gives_mask = False  # whether the result of what is no formula is 1 where something holds, and 0 elsewhere
    arranged: Callable | None = None  # from the arguments of a call to the operator it is of, and that one's arguments

    def __init__(self, function: Callable | None, *, name: str | None = None, arguments: Sequence[str] | None = None,
                 aliases: Sequence[str] = (), extra_params: Sequence[Param] = (), num_outputs: int | Callable[..., int] = 1,
                 visible_outputs: int | Callable[..., int] | None = None,
                 output_names: Sequence[str] | Callable[..., Sequence[str]] = (),
                 active_inputs: Callable[..., Sequence[str]] | None = None,
                 writes: Mapping[str, int] | Callable[..., Mapping[str, int]] | None = None, random: bool = False,
                 aux: Sequence[str] = (), num_args_param: str | None = None, is_backward: bool = False,
                 shape_only: Sequence[int] | slice = (), param_order: Sequence[str] = (), stem: str = "arg",
                 by_keyword: Sequence[str] = (), absent_heads: bool = False, made_again: bool = False,
                 zero_is_unknown: Sequence[str] = (), module: str | None = None):  # fmt: skip
        self.function: Any = function  # None for operators that are not made of one
        if arguments is None:
            _checked(function, name, active_inputs is not None)
        self.name: str = name or self.function.__name__
        self.aliases = tuple(aliases)
        # code that runs in a namespace without a name belongs to no module
        self.module: str = module or self.function.__module__ or "<unnamed>"
        self.__module__ = self.module
        self.variadic = False
        self.arguments = tuple(arguments or ())
        if arguments is None:
            code = self.function.__code__
            self.variadic = bool(code.co_flags & _VARARGS)
            at = code.co_argcount + code.co_kwonlyargcount
            self.arguments = code.co_varnames[at : at + 1] if self.variadic else code.co_varnames[: code.co_argcount]
        self.aux = tuple(aux)
        self.writes = writes if callable(writes) else dict(writes or {})
        for k in () if callable(self.writes) else self.writes.values():
            if isinstance(k, bool) or not isinstance(k, int) or k < 1:
                raise OpTypeError(f"operator {self.name}{place(function)}: writes={self.writes}; expected the number of an "
                                  "output, from 1 on, for each state: what a call returns comes before")  # fmt: skip
        if random:
            self.stateful, self.repeatable = True, False
        self.num_args_param = num_args_param
        self.is_backward = is_backward
        self._shape_only = shape_only
        self._rule_reads: dict[tuple, RuleReads | str | None] = {}
        self.record: Any = None  # how to test it, if not in mxop.records
        self._extra_params = tuple(extra_params)
        self._num_outputs = num_outputs
        self._visible_outputs = visible_outputs
        self._active_inputs = active_inputs
        self._output_names = output_names
        self.param_order, self.stem, self.by_keyword = tuple(param_order), stem, tuple(by_keyword)
        self._absent_heads, self.made_again, self.zero_is_unknown = absent_heads, made_again, tuple(zero_is_unknown)
        self._types: Callable | None = None
        self._gradient: Callable | None = None

    def check_definition(self) -> None:
        """Raise for errors that are visible before a call, so that authors see them at the definition."""
        check_numbers(self)
        for what in ("num_outputs", "visible_outputs", "active_inputs", "writes"):
            rule = getattr(self, what if what == "writes" else f"_{what}")
            if callable(rule):
                check_rule(self, what, rule, ())
        attrs = None if callable(self.writes) or not self.writes else self.spec.example()
        if attrs is not None and self.num_outputs(attrs) <= (last := max(self.writes.values())):  # type: ignore[union-attr]
            raise OpTypeError(f"operator {self.name}{place(self.function)}: writes={self.writes}, but there are "
                              f"{self.num_outputs(attrs)} outputs: declare num_outputs={last + 1}, and return the "
                              "new values of states last")  # fmt: skip

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__doc__ = _Documentation(cls.__doc__)  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        """Return what ``inspect`` asks a function; raise for other names, with a hint if it is a part of another kind."""
        if name == "__signature__":
            from . import docs

            return docs.signature(self)
        function = self.__dict__.get("__wrapped__", self.__dict__.get("function"))
        if name in ("__name__", "__qualname__"):
            return getattr(function, name, self.__dict__.get("name"))
        if name == "__wrapped__" and function is not None:
            return function
        if name in _PARTS:
            raise OpLookupError(f"operator {self.name}{callers_line()}: it is made by @{self.kind}, which has no part "
                                f"@{self.name}.{name}; a @kernel has")  # fmt: skip
        told = f"operator {self.__dict__.get('name')}: {type(self).__name__!r} object has no attribute {name!r}"
        if name.startswith("_"):
            raise AttributeError(told)
        raise AttributeError(Later(lambda: told + closest(name, [n for n in dir(type(self)) if not n.startswith("_")])))

    def __repr__(self) -> str:
        shown = [str(p) for p in self.__signature__.parameters.values() if p.name not in ("out", "name")]
        return f"<{self.kind} operator {self.name}({', '.join(shown)})>"

    def __get__(self, instance: Any, owner: type) -> Operator:
        return self  # what can be bound is documented as a function, by pydoc among others

    @overload
    def __call__(self, first: T, /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def __call__(self, first: T, /, *args: Any, out: Any, **kwargs: Any) -> T: ...
    @overload
    def __call__(self, first: T, /, *args: Any, name: str | None, **kwargs: Any) -> T: ...
    @overload
    def __call__(self, **kwargs: Any) -> Any: ...
    @ends_at_caller
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the operator to arrays, as its function in ``mx.nd`` does, or to symbols, as that in ``mx.sym``."""
        return self._applied(args, kwargs)

    def _applied(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        return ask("call_operator")(self, args, kwargs)

    def __reduce__(self) -> tuple:
        """Pickle by name, as functions are; unpickling imports the module that defines the operator."""
        if registry.find(self.name) is not self:
            raise OpValueError(f"operator {self.name} cannot be pickled: operators are pickled by name, and that one is "
                               f"{'another operator' if registry.find(self.name) else 'not registered'} now")  # fmt: skip
        return registry.restored, (self.name, self.module)

    def __copy__(self) -> Operator:
        return self

    def __deepcopy__(self, memo: Any) -> Operator:
        return self

    # ---- derived from the signature -----------------------------------------------------------------------------------
    @cached_property
    def spec(self) -> Spec:
        """The parameters, read from the signature on first use."""
        return Spec.of(self.name, self.function, self._extra_params, self.param_order)

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
            return tuple(f"{self.stem}{i}" for i in range(n))
        if self._active_inputs is not None:
            return tuple(self._active_inputs(**attrs))
        return self.arguments

    def aux_names(self, attrs: Attrs) -> tuple[str, ...]:
        """Return the names of inputs that a call changes: auxiliary states (FMutateInputs)."""
        return tuple(self.states(attrs)) or self.aux

    def states(self, attrs: Attrs) -> Mapping[str, int]:
        """Return the states among a call's inputs, each with the output that is its new value."""
        return self.writes(**attrs) if callable(self.writes) else self.writes

    def written_inputs(self, attrs: Attrs, n_inputs: int) -> tuple[tuple[int, int], ...]:
        """Return (index of a state among the inputs, index of the output that is its new value) for each state."""
        if not self.writes:
            return ()
        names = self.input_names(attrs, n_inputs)
        return tuple((names.index(name), k) for name, k in self.states(attrs).items() if name in names)

    @cached_property
    def pure(self) -> Operator:
        """The operator without states: a function whose outputs include their new values."""
        found = object.__new__(type(self))  # copy() returns the operator itself
        found.__dict__.update(self.__dict__, writes={}, _visible_outputs=None)
        return found

    def num_outputs(self, attrs: Attrs, n_inputs: int | None = None) -> int:
        """Return the number of outputs, with hidden ones."""
        if not callable(self._num_outputs):
            return self._num_outputs
        count = self._num_outputs(**attrs)
        if type(count) is not int or count < 1:
            raise OpValueError(f"operator {self.name}{place(self._num_outputs)} has {shown(count)} outputs with these "
                               f"parameters: {dict(attrs)}; expected a whole number from 1 on")  # fmt: skip
        return check_outputs(self.name, count)

    def num_visible_outputs(self, attrs: Attrs, n_inputs: int | None = None) -> int:
        """Return the number of outputs that a call returns."""
        if self._visible_outputs is None:
            return self.num_outputs(attrs, n_inputs) - len(self.states(attrs))
        return self._visible_outputs(**attrs) if callable(self._visible_outputs) else self._visible_outputs

    def output_names(self, attrs: Attrs, n_inputs: int | None = None) -> tuple[str, ...]:
        """Return ``('output',)``, or ``output0, output1...`` for several, and ``new_<input>`` for states."""
        if self._output_names:
            given = tuple(self._output_names(**attrs) if callable(self._output_names) else self._output_names)
            count = self.num_outputs(attrs, n_inputs)
            if len(given) < count:
                raise OpValueError(f"operator {self.name}{place(self.function)}: output_names gave {given} for {count} outputs")
            return given[:count]
        states = {k: f"new_{name}" for name, k in self.states(attrs).items()}
        n = self.num_outputs(attrs, n_inputs) - len(states)
        names = ("output",) if n == 1 else tuple(f"output{i}" for i in range(n))
        return (*names, *(states[k] for k in sorted(states)))

    def shape_only(self, n: int) -> tuple[int, ...]:
        """Return which of `n` inputs are read for shape and type only."""
        return tuple(range(n)[self._shape_only]) if isinstance(self._shape_only, slice) else tuple(self._shape_only)

    def check_arity(self, attrs: Attrs, n: int) -> None:
        """Raise unless a call can have `n` inputs."""
        if self.variadic:
            wanted = attrs[self.num_args_param] if self.num_args_param in attrs.names else n
            if n < 1:
                raise OpTypeError(f"operator {self.name} takes one input or more, 0 given")
            if wanted not in (n, None, 0):
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

    def infer_types(self, rule: Callable) -> Callable:
        """Decorate the two-way rule ``rule(ins, outs, **params) -> (ins, outs)`` for types.

        Types are codes, such as ``mxop.dtypes.FLOAT32``; ``mxop.dtypes.UNKNOWN`` is an unknown type.
        """
        return self.ruled("_types", "rule of types", rule, ("ins", "outs"))

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        """Complete the types of inputs and outputs from each other."""
        if self._types is None:
            return self.implied_types(attrs, ins, outs)
        with translated(f"operator {self.name}"):
            found = self._types(list(ins), list(outs), **attrs)
        if not (isinstance(found, tuple) and len(found) == 2 and all(isinstance(f, (list, tuple)) for f in found)):
            raise OpTypeError(f"operator {self.name}{place(self._types)}: its rule of types returned {shown(found)}; expected "
                              "a pair: the types of the inputs, and those of the outputs")  # fmt: skip
        ins, outs = (type_codes(self, "rule of types", self._types, f, len(g)) for f, g in zip(found, (ins, outs)))
        return ins, outs

    def implied_types(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        """Complete types for an operator without a rule: by default inputs and outputs share one type."""
        names = [*self.input_names(attrs, len(ins)), *self.output_names(attrs, len(ins))]
        done = infer.same_type(self.name, names, [*ins, *outs])
        return done[: len(ins)], done[len(ins) :]

    def infer_outputs(self, attrs: Attrs, shapes: list, types: list[int]) -> tuple[list, list[int]]:
        """Return shapes and types of the outputs of a call whose inputs are known."""
        n = self.num_outputs(attrs, len(shapes))
        ins, out_shapes = self.infer_shape(attrs, list(shapes), [None] * n)
        if list(ins) != list(shapes):
            infer.check_inputs(self.name, self.input_names(attrs, len(shapes)), ins, shapes)
        out_types = self._output_types(attrs, types, n)
        for k, shape in enumerate(out_shapes):
            if not infer.known(shape) and self.sized_by is None:
                listed = ", ".join(map(infer.show, shapes))
                raise MXNetError(f"operator {self.name}: the shape of output {k} does not follow from inputs {listed}"
                                 + self._how_to_say_shapes)  # fmt: skip
        return out_shapes, [dtypes.FLOAT32 if t == dtypes.UNKNOWN else t for t in out_types]

    def _output_types(self, attrs: Attrs, types: list[int], n: int) -> list[int]:
        """Return the types of `n` outputs for those of all inputs, which a call with other sizes has again."""
        key = (self, attrs, *types)
        found = _types_of.get(key)
        if found is None:
            ins, found = self.infer_type(attrs, list(types), [dtypes.UNKNOWN] * n)
            for name, *both in zip(self.input_names(attrs, len(types)), ins, types, strict=True):
                infer.same_type(self.name, ("its rule of types", name), both)
            keep(_types_of, key, found)
        return found

    # ---- gradient -----------------------------------------------------------------------------------------------------
    def gradient(self, rule: Callable) -> Callable:
        """Decorate the gradient rule ``rule(F, heads, inputs, outputs, **params) -> list``.

        The rule calls operators of `F` (``mx.nd`` or ``mx.sym``) and returns one gradient per input, None if it is zero.  An
        item may be a function without parameters that returns the gradient (``lambda: F.dot(...)``); it is called only if the
        gradient is wanted.
        """
        return self.ruled("_gradient", "gradient rule", rule, ("F", "heads", "inputs", "outputs"))

    @property
    def absent_heads(self) -> bool:
        """Whether the gradient rule gets None instead of zeros for outputs without a head gradient."""
        return self._absent_heads

    @property
    def zero_gradient(self) -> bool:
        """Whether a rule declares that the gradient is zero everywhere."""
        return self._gradient is no_gradient

    def ruled(self, attribute: str, what: str, rule: Callable, expected: Sequence[str]) -> Callable:
        """Keep a rule as an attribute if it takes what is expected (see :func:`.rules.check_rule`); return it."""
        check_rule(self, what, rule, expected)
        setattr(self, attribute, rule)
        self.changed()
        return rule

    def changed(self) -> None:
        """Clear caches about the operator, after a part of it was defined."""
        self._rule_reads.clear()
        _types_of.clear()
        for listener in _listeners:
            listener(self)

    def retrace(self) -> None:
        """Clear traces of the operator, after an operator inside its formula was defined again."""
        for cache in ("_formulas", "_backwards", "_asked", "_parts"):
            getattr(self, cache, {}).clear()
        for made in ("backward_", "pure"):
            self.__dict__.pop(made, None)
        self.changed()

    def grad(self, F: Any, attrs: Attrs, heads: list, inputs: list, outputs: list, needed: Sequence[bool]) -> list | None:
        """Return the gradient of each input, None for zero; or None if the operator has no gradient."""
        if not self.differentiable:
            return None
        if self._gradient is None:
            return self.implied(F, attrs, heads, inputs, outputs, needed)
        with translated(f"the gradient of operator {self.name}"):
            found = self._gradient(F, heads, inputs, outputs, **attrs)
            if isinstance(found, (list, tuple)):
                found = _called(found, needed)
        if not isinstance(found, (list, tuple)):
            raise OpTypeError(f"the gradient rule of operator {self.name}{place(self._gradient)} returned a "
                              f"{type(found).__name__}; expected a list: one gradient, or None, for each input")  # fmt: skip
        return found

    def implied(self, F: Any, attrs: Attrs, heads: list, inputs: list, outputs: list, needed: Sequence[bool]) -> Any:
        """Return the gradients of an operator without a gradient rule, as its kind derives them."""
        return None

    def rule_reads(self, attrs: Attrs, inputs: Sequence[Any], outputs: Sequence[Any]) -> RuleReads | None:
        """Return the indices of inputs and outputs whose elements the gradient rule reads; None if unknown.

        The rule is applied to placeholders, with the shapes of the arrays if it reads any.  The result is unknown for a rule
        that reads elements.
        """
        found = self._reads((attrs, len(inputs), len(outputs), None))
        if found is ASKS:
            specs = tuple([(a.shape, a.dtype_code) for a in (*inputs, *outputs)])
            found = self._reads((attrs, len(inputs), len(outputs), specs))
        return None if found is ASKS else found  # type: ignore[return-value]

    def _reads(self, key: tuple) -> RuleReads | str | None:
        try:
            return self._rule_reads[key]
        except KeyError:
            if len(self._rule_reads) >= MOST_RULES:
                return None  # parameters differ in each call: analysis would cost more than it saves
        found = self._rule_reads[key] = ask("rule_reads")(self, *key)
        return found

    @property
    def differentiable(self) -> bool:
        """Whether a gradient is defined, even if it is zero."""
        return self._gradient is not None

    def derived(self, prefix: str) -> Operator | None:
        """Return the hidden operator with this prefix and name, such as the gradient or a part of it; None if undefined."""
        return self.backward_operator() if prefix == registry.BACKWARD else None

    def backward_operator(self) -> Operator | None:
        """Return the hidden operator ``_backward_<name>`` if the gradient is one operator, else None."""
        return None

    def same_as(self, other: Operator) -> bool:
        """Return whether two definitions are equal."""
        a, b = self.function.__code__, other.function.__code__
        return (
            type(self) is type(other)
            and (a.co_code, a.co_consts[1:], a.co_names, a.co_varnames)
            == (b.co_code, b.co_consts[1:], b.co_names, b.co_varnames)
            and self.function.__kwdefaults__ == other.function.__kwdefaults__
        )


def no_gradient(F: Any, heads: list, inputs: list, outputs: list, **params: Any) -> list:
    """Return zero gradients: a gradient rule for operators whose gradient is zero everywhere."""
    return [None] * len(inputs)


def _called(gradients: Sequence[Any], needed: Sequence[bool]) -> list:
    """Return gradients, after calling those that are functions and needed."""
    wanted = [*needed, *[False] * len(gradients)]
    return [(g() if n else None) if type(g) is FunctionType else g for g, n in zip(gradients, wanted, strict=False)]
