"""Checks of a user's definition when it is made: options, and signatures of rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from inspect import cleandoc
from keyword import iskeyword
from typing import Any, Generic

from ..support import dtypes
from ..support.errors import Call, OpLookupError, OpTypeError, closest, shown
from .places import callers_line, place

_COMMON_OPTIONS = """\
name : str, optional
    Registered name, by default the function's; ``_contrib_f`` is ``contrib.f``, another underscore hides.
aliases : sequence of str, optional
    Further names.
override : bool, default False
    Replace an operator of another module.
num_outputs, visible_outputs : int or callable
    The number of outputs (derived from a formula), and the number that a call returns; or functions of the
    parameters.
output_names : sequence of str or callable, optional
    Names of outputs in graphs, by default ``output``, or ``output0``...; or a function of the parameters.
active_inputs : callable, optional
    ``active_inputs(**params)`` returns the names of the inputs that a call takes; others are None.
num_args_param : str, optional
    The parameter that holds the number of inputs, for a function of ``*args``.
writes : dict of str to int, optional
    Inputs that are states, each with the output that is its new value.
random : bool, default False
    Whether equal calls give different results, so that both run.
shape_only : sequence of int, optional
    Inputs of which only shape and type are read.
absent_heads : bool, default False
    Whether the gradient rule gets None instead of zeros for outputs without a head gradient."""


#: Options of all kinds that have no meaning for some.
NOT_OF = {
    "elementwise": ("aux",), "composite": ("aux",),
    "reduction": ("num_outputs", "visible_outputs", "writes", "aux", "num_args_param"),
}  # fmt: skip


#: Options for mxop's own operators only: for MXNet's files and calls, and for its own implementations.
_OURS = ("extra_params", "is_backward", "module", "param_order", "stem", "by_keyword", "made_again", "zero_is_unknown", "adds",
         "at_once")  # fmt: skip


def with_common_options(decorator: Call) -> Call:
    """Decorate the decorator of a kind: the options of all kinds take the place of ``{common}`` in its documentation."""
    if decorator.__doc__:  # python -OO removes it
        entries = [e for e in re.split(r"\n(?=\S)", _COMMON_OPTIONS) if not e.startswith(NOT_OF.get(decorator.__name__, "-"))]
        decorator.__doc__ = cleandoc(decorator.__doc__).replace("{common}", "\n".join(entries))
    return decorator


def check_options(cls: type, function: Any, options: Mapping[str, Any]) -> None:
    """Raise for options that a kind of operator does not have, or invalid values."""
    who = options.get("name") or getattr(function, "__name__", "")
    known: set[str] = set()
    for base in cls.__mro__[: cls.__mro__.index(Generic)]:
        code = base.__init__.__code__
        known.update(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])
    known -= {"function", "combine", "arguments", *_OURS, *NOT_OF.get(cls.kind, ())}  # type: ignore[attr-defined]
    for name in options:
        if name not in known:
            raise OpLookupError(f"operator {who}{place(function)}: @{cls.kind} has no option {name!r}; its options are "  # type: ignore[attr-defined]
                                f"{', '.join(sorted({*known, 'override'}))}{closest(name, known)}")  # fmt: skip
        expected, fits = _VALUES.get(name, ("", callable))
        if expected and not fits(options[name]):
            raise OpTypeError(f"operator {who}{place(function)}: {name}={shown(options[name])} is not {expected}")


def check_numbers(op: Any) -> None:
    """Raise for options that name inputs or parameters that an operator does not have."""
    who = f"operator {op.name}{place(op.function)}"
    names = op.spec.names
    if op.num_args_param is not None and not (op.variadic and op.num_args_param in names):
        missing = "" if op.num_args_param in names else ", and there is no parameter of this name"
        raise OpTypeError(f"{who}: num_args_param={op.num_args_param!r} is for a function of *args{missing}")
    example = op.spec.example()
    if example is not None:
        _check_counts(op, who, example)
    n = len(op.arguments)
    if op.variadic or not n:
        return
    for option, given in ("aux", op.aux), ("writes", () if callable(op.writes) else op.writes):
        for name in given:
            if name not in op.arguments:
                raise OpTypeError(f"{who}: {option}={given} names {name!r}; its inputs are: {', '.join(op.arguments)}")
    shape_only = () if isinstance(op._shape_only, slice) else op._shape_only
    if any(not isinstance(k, int) or not 0 <= k < n for k in shape_only):
        there = f"there {'are' if n != 1 else 'is'} {n} input{'s' if n != 1 else ''}"
        raise OpTypeError(f"{who}: shape_only={shape_only} has the number of an input, and {there}")


def _check_counts(op: Any, who: str, example: Any) -> None:
    """Raise for active inputs that are not inputs, and for more visible outputs than outputs."""
    if op._active_inputs is not None and not op.variadic:
        found = op._active_inputs(**example)
        if not isinstance(found, (tuple, list)) or [n for n in found if n not in op.arguments or found.count(n) > 1]:
            raise OpTypeError(f"{who}: active_inputs gave {shown(found)}; expected a tuple of some of its inputs, which are "
                              f"{', '.join(op.arguments)}")  # fmt: skip
    visible = op._visible_outputs(**example) if callable(op._visible_outputs) else op._visible_outputs
    if visible is not None and visible > (n := op.num_outputs(example)):
        raise OpTypeError(f"{who}: visible_outputs={visible}, but there {'are' if n != 1 else 'is'} {n} "
                          f"output{'s' if n != 1 else ''}")  # fmt: skip


def _are_names(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(isinstance(v, str) and v.isidentifier() for v in value)


_COUNT = ("a number from 1 on, or a function of the parameters", lambda v: callable(v) or (type(v) is int and v > 0))
_FUNCTION = ("a function", lambda v: v is None or callable(v))
#: A description of an option's value, and its check.
_VALUES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "name": ("a name that Python can write", lambda v: isinstance(v, str) and v.isidentifier() and not iskeyword(v)),
    "output_names": ("a tuple of names, or a function of the parameters", lambda v: callable(v) or _are_names(v)),
    "num_outputs": _COUNT, "visible_outputs": _COUNT, "active_inputs": _FUNCTION, "out_dtype": _FUNCTION, "rule": _FUNCTION,
    "final": _FUNCTION,
    **dict.fromkeys(("aliases", "integers", "aux"), ("a tuple of names", _are_names)),
    **dict.fromkeys(("absent_heads", "broadcast", "creates", "differentiable", "exclude", "folds", "in_float32", "planned",
                     "random", "strided", "wide"),
                    ("True or False", lambda v: isinstance(v, bool))),
    "writes": ("a dictionary of states and the numbers of outputs", lambda v: callable(v) or isinstance(v, Mapping)),
}  # fmt: skip


def check_rule(op: Any, what: str, rule: Any, expected: Sequence[str], params: Sequence[str] | None = None) -> None:
    """Raise unless a rule can be called with its arguments.

    Parameters
    ----------
    op : Operator
    what : str
        The rule's name, for the message.
    expected : sequence of str
        Positional arguments.  ``*name`` stands for one value for each input.
    params : sequence of str, optional
        Keyword arguments; by default all parameters of the operator.
    """
    if op.module.startswith("mxop."):
        return
    params = op.spec.in_attrs if params is None else params
    if not callable(rule):
        raise OpTypeError(f"operator {op.name}{callers_line()}: its {what} is {shown(rule)}; expected a function "
                          f"{_written(op, expected, params)}")  # fmt: skip
    code = getattr(rule, "__code__", None)
    if code is None:  # the signature of a class or builtin may be unknown
        return
    import inspect

    names = [n for e in expected for n in (_each(op, e[1:]) if e.startswith("*") else [e])]
    try:
        signature = inspect.signature(rule)
        given = [p.name for p in signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        if given != names and sorted(given) == sorted(names):
            raise TypeError(f"it takes them in another order: {', '.join(given)}")
        signature.bind(*names, **dict.fromkeys(params))
    except TypeError as problem:
        raise OpTypeError(f"operator {op.name}{place(rule)}: its {what} is called as rule{_written(op, expected, params)}, and "
                          f"cannot be: {problem}") from None  # fmt: skip


def _each(op: Any, what: str) -> list[str]:
    """Return a name for each input of a call; for any number of inputs, more names than a rule would list."""
    return [f"{what}{i}" for i in range(20)] if op.variadic else list(op.arguments)


def _written(op: Any, expected: Sequence[str], params: Sequence[str]) -> str:
    """Return the arguments of a rule as text."""
    inputs = [f"*{op.arguments[0]}"] if op.variadic and op.arguments else list(op.arguments)
    names = [n for e in expected for n in (inputs if e.startswith("*") else [e])]
    star = ["*"] if params and not any(n.startswith("*") for n in names) else []
    return f"({', '.join([*names, *star, *params])})"


def type_codes(op: Any, what: str, rule: Any, found: Any, n: int) -> list[int]:
    """Return type codes for what a rule returned for `n` outputs: names, NumPy's types or codes; one for all, or a list."""
    if type(found) is int:
        found = [found] * n
    who = f"operator {op.name}{place(rule)}: its {what}"
    several = isinstance(found, (list, tuple))
    try:
        codes = [_code(f) for f in (found if several else [found] * n)]
    except OpTypeError as problem:
        raise OpTypeError(f"{who} returned {shown(found)}: {problem}") from None
    if len(codes) != n:
        raise OpTypeError(f"{who} returned {len(codes)} types for {n} outputs: {shown(found)}")
    return codes


def _code(found: Any) -> int:
    if found is None:  # NumPy would take it for float64
        raise OpTypeError("expected a type")
    return found if type(found) is int and found == dtypes.UNKNOWN else dtypes.code_of(found)
