"""Parameters of operators: declared by a function's signature, parsed once from Python values or from MXNet's strings.

=====================================  =========================================================================
annotation                             meaning
=====================================  =========================================================================
``float``                              a real number; integer data are computed in floating point
``Scalar``                             a number that is cast to the data's type first, as in ``x * 2.5``
``Bound``                              a limit of the data, as in ``min(x, 300)``: integer data stay integers
``int``, ``bool``, ``str``             as they say
``Literal['a', 'b']``                  one of the given strings
``Shape`` (or ``tuple[int, ...]``)     a tuple of integers; one integer stands for a tuple of one
``Floats`` (or ``tuple[float, ...]``)  a tuple of real numbers; one number stands for a tuple of one
``DType``                              an element type, by name, NumPy's type or code; the function gets the code
``AnyValue``                           any hashable Python object; a graph that holds one cannot be saved
``X | None``                           may also be None
``Annotated[int, Range(1, 8)]``        with inclusive bounds
=====================================  =========================================================================

A parameter without a default is required.
"""

from __future__ import annotations

import builtins
import math
import operator
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..support import dtypes
from ..support.errors import OpParameterError, OpTypeError, OpValueError, closest, shown, warn
from .above import ask
from .places import place
from .symbolic import SymbolicNumber


class Scalar(float):
    """Annotation: a number that is cast to the type of the data before it is used."""


class Bound(float):
    """Annotation: a number that limits the data; if it exceeds the range of an integer type, it acts as that range's end."""


class Shape(tuple):
    """Annotation: a tuple of integers."""


class Floats(tuple):
    """Annotation: a tuple of real numbers, also written ``tuple[float, ...]``."""


class DType(int):
    """Annotation: an element type, given by name, NumPy type or MXNet code; the function gets the code."""


class AnyValue:
    """Annotation: any hashable Python object, which cannot be written to JSON."""


@dataclass(frozen=True)
class Range:
    """Inclusive bounds of a numeric parameter: ``Range(1)`` means at least 1, ``Range(high=8)`` at most 8."""

    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not all(isinstance(bound, (int, float)) for bound in (self.low, self.high)) or not self.low <= self.high:
            raise OpTypeError(f"Range({self.low!r}, {self.high!r}): expected two numbers, the smaller one first, or one: "
                              "Range(1), Range(high=8)")  # fmt: skip


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()


class _NullType:
    """The value that MXNet's generated functions use for arguments that are not given."""

    def __repr__(self) -> str:
        return "_Null"


NULL = _NullType()


class Bad(ValueError):
    """Raised by parsers with what they expect; the spec adds the names of operator and parameter."""


def plain_number(text: str) -> float | int:
    """Return the number written in a text, by C's syntax: without Python's ``1_000`` and digits of other alphabets.

    A suffix ``f`` or ``L`` is allowed, since MXNet wrote some.

    Examples
    --------
    >>> plain_number(" 12L"), plain_number("1e3"), plain_number("-inf")
    (12, 1000.0, -inf)
    """
    text = text.strip()
    if "_" in text or not text.isascii():
        raise ValueError(f"{shown(text)} is not a number")
    if text[-1:] in ("f", "L") and text[-2:-1] in tuple("0123456789."):
        text = text[:-1]
    try:
        return int(text)
    except ValueError:
        return float(text)


def _number(value: Any) -> float | int:
    """Return a value as a Python number: True is 1, and instances of subclasses are converted."""
    if isinstance(value, str):
        return plain_number(value)
    if hasattr(value, "item"):  # NumPy scalars and arrays of one element
        value = value.item()
    return int(value) if isinstance(value, int) else float(value)


def _parse_float(value: Any) -> float | int:
    try:
        number = _number(value)
    except (TypeError, ValueError, OverflowError):
        raise Bad("a number") from None
    try:
        float(number)
    except OverflowError:
        raise Bad("a number that float64 can hold") from None
    return number


def _parse_real(value: Any) -> float:
    return float(_parse_float(value))


_INTEGERS = range(-(2**63), 2**63)  # the range of int64


def _parse_int(value: Any) -> int:
    try:
        number = _number(value)
        whole = int(number)
    except (TypeError, ValueError, OverflowError):
        raise Bad("an integer") from None
    if number != whole:
        raise Bad("an integer")
    if whole not in _INTEGERS:
        raise Bad("an integer of 64 bits")
    return whole


_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


def _parse_bool(value: Any) -> bool:
    if isinstance(value, str):
        found = _TRUTHS.get(value.strip().lower())
        if found is None:
            raise Bad("True or False")
        return found
    if isinstance(value, (bool, int)) or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise Bad("True or False")


def _parse_str(value: Any) -> str:
    if hasattr(value, "device_typeid"):  # a context, which ``ctx`` parameters name
        return str(value)
    if not isinstance(value, str):
        raise Bad("a string")
    return str.__str__(value)


def as_shape(value: Any) -> tuple[int | None, ...]:
    """Return a shape given as an integer or any iterable of integers: tuple, list, array...

    Integers are objects with ``__index__``, such as NumPy's, except True and False; None is an unknown size.

    Raises
    ------
    Bad
        For any other value.

    Examples
    --------
    >>> import numpy as np
    >>> as_shape(np.array([2, 3])), as_shape(np.int64(6)), as_shape([4, None])
    ((2, 3), (6,), (4, None))
    """
    if isinstance(value, (str, bytes)):
        raise Bad("a tuple of integers")
    try:
        if type(value) is not tuple and hasattr(value, "__index__") and not getattr(value, "ndim", 0):
            value = (value,)  # an array of one element is a sequence
        return tuple([None if v is None else _size(v) for v in value])
    except (TypeError, ValueError):
        raise Bad("a tuple of integers") from None


def _size(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError
    return value if type(value) is SymbolicNumber and value.integral else operator.index(value)


def _parse_any(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        raise Bad("a hashable value, such as a tuple instead of a list: calls are told apart by it") from None
    return value


def parse_shape(value: Any) -> tuple[int | None, ...]:
    """Return a shape given as for :func:`as_shape`, or as text in MXNet's JSON."""
    if isinstance(value, str):
        try:
            return tuple([None if v is None else _parse_int(v) for v in _items(value)])
        except Bad:
            raise Bad("a tuple of integers") from None
    found = as_shape(value)
    if not all(v is None or type(v) is SymbolicNumber or -(2**63) <= v < 2**63 for v in found):
        raise Bad("a tuple of integers of 64 bits")
    return found


def _parse_floats(value: Any) -> tuple[float, ...]:
    """Return numbers given as one, as a sequence, or as text in MXNet's JSON."""
    if isinstance(value, str):
        try:
            return tuple([_parse_real(v) for v in _items(value)])
        except Bad:
            raise Bad("a tuple of numbers") from None
    try:
        listed = value if hasattr(value, "__len__") and getattr(value, "ndim", 1) else (value,)
        if isinstance(listed, (str, bytes, dict, set)) or any(isinstance(v, (str, bytes)) for v in listed):
            raise TypeError
        return tuple([float(v) for v in listed])
    except (TypeError, ValueError, OverflowError):
        raise Bad("a tuple of numbers") from None


_BRACKETS = {"(": ")", "[": "]"}


def _items(text: str) -> list[str | None]:
    """Return the items of a tuple or list written as text, with or without brackets; ``None`` becomes None."""
    text = text.strip()
    if text[:1] in _BRACKETS:
        if len(text) < 2 or text[-1] != _BRACKETS[text[0]]:
            raise Bad("a tuple of integers")
        text = text[1:-1].strip()
    items = [item.strip() for item in text.split(",")]
    if items[-1] == "":  # after a last comma, or in an empty tuple
        items.pop()
    return [None if item == "None" else item for item in items]


def _parse_dtype(value: Any) -> int:
    try:
        return dtypes.code_of(value.strip() if isinstance(value, str) else value)
    except OpTypeError:
        raise Bad("one of " + ", ".join(dtypes.CODES)) from None


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except Exception:  # arrays of several elements have no truth value
        return False


def _parse_choice(choices: tuple) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        if isinstance(value, str):
            value = value.strip()
        for choice in choices:
            if _same(value, choice) or (isinstance(value, str) and value == str(choice)):
                return choice
        raise Bad("one of " + ", ".join(repr(c) for c in choices) + closest(value, choices)) from None

    return parse


_PARSERS: dict[Any, tuple[str, Callable[[Any], Any]]] = {
    float: ("float", _parse_real), Scalar: ("double", _parse_float), Bound: ("float", _parse_float),
    int: ("int", _parse_int), bool: ("boolean", _parse_bool), str: ("string", _parse_str),
    Shape: ("Shape(tuple)", parse_shape), tuple: ("Shape(tuple)", parse_shape),
    Floats: ("tuple of <float>", _parse_floats), DType: ("dtype", _parse_dtype), AnyValue: ("object", _parse_any),
}  # fmt: skip


#: Kinds of parameters that are a single number.
NUMBERS = frozenset({float, Scalar, Bound, int})
_REAL = (float, Scalar, Bound, Floats)


class Param(NamedTuple):
    """A declared parameter.

    Attributes
    ----------
    name : str
    kind : type
        The annotation without ``| None`` and bounds.
    default : object
        The default, or :data:`REQUIRED`.
    """

    name: str
    kind: Any
    default: Any
    optional: bool
    choices: tuple
    bounds: Range | None
    type_name: str
    parse_value: Callable[[Any], Any]

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def is_number(self) -> bool:
        """Whether the value is a real number, or None if it is optional."""
        return self.kind in _REAL[:3]

    @property
    def numeric(self) -> bool:
        """Whether the value is a leaf of formulas, so that it can change without a new program."""
        return self.is_number and not self.optional

    @property
    def real(self) -> bool:
        """Whether it makes integer data be computed in floating point."""
        return self.kind is float

    def describe(self) -> str:
        """Return the type in the form of MXNet's documentation."""
        text = self.type_name
        if self.choices:
            text = "{" + ", ".join(repr(c) for c in self.choices) + "}"
        if self.optional:
            text += " or None"
        return text + (", required" if self.required else f", optional, default={self.shown_default()!r}")

    def shown_default(self) -> Any:
        return dtypes.NAMES[self.default] if self.kind is DType and isinstance(self.default, int) else self.default

    def parse(self, value: Any) -> Any:
        """Return `value` converted to the declared type, or raise :class:`Bad`."""
        if self.optional and (value is None or (isinstance(value, str) and value.strip() in ("None", ""))):
            return None
        if (value is None or (type(value) is str and value == "None")) and self.kind is Shape and not self.required:
            return self.default  # MXNet: an unknown shape
        if value is None:
            raise Bad(self.type_name)
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if self.kind in _REAL and hasattr(item, "attach_grad") and ask("is_recorded")(item):
                raise Bad("a number that is not recorded: no gradient would reach this array; make it an input of the "
                          "operator, or pass its value, x.item() or x.detach()")  # fmt: skip
        symbolic = type(value) is SymbolicNumber and (self.is_number or (self.kind is int and value.integral))
        found = value if symbolic else self.parse_value(value)
        if self.bounds is not None and not self.bounds.low <= found <= self.bounds.high:
            raise Bad(f"a value from {self.bounds.low} to {self.bounds.high}")
        return found


def _tuple_kind(annotation: Any) -> Any:
    """Return the kind of a tuple annotation: of integers, of numbers, or itself if unsupported."""
    members = set(typing.get_args(annotation)) - {...}
    return tuple if members == {int} else Floats if members == {float} else annotation


def _resolve(annotation: Any, function: Callable) -> Any:
    if isinstance(annotation, str):  # the module postpones its annotations
        scope = dict(vars(builtins))
        scope.update(typing=typing, Literal=typing.Literal, Annotated=typing.Annotated, Scalar=Scalar, Shape=Shape)
        scope.update(Bound=Bound, Floats=Floats, DType=DType, Range=Range)
        scope.update(function.__globals__)
        try:
            annotation = eval(annotation, scope)  # the operator author's own source text
        except Exception as problem:
            raise Bad(f"{annotation!r}, which cannot be read: {problem}") from None
    return annotation


def param_from(name: str, annotation: Any, default: Any, function: Callable) -> Param:
    """Return the parameter declared by a keyword-only argument of an operator's function."""
    who = f"operator {function.__name__}{place(function)}: parameter {name!r}"
    try:
        annotation = _resolve(annotation, function)
    except Bad as problem:
        raise OpTypeError(f"{who} is annotated {problem}") from None
    bounds, optional = None, False
    while (origin := typing.get_origin(annotation)) in (typing.Annotated, typing.Union, types.UnionType):
        members = typing.get_args(annotation)
        if origin is typing.Annotated:
            annotation, bounds = members[0], next((e for e in members[1:] if isinstance(e, Range)), bounds)
            continue
        optional = optional or type(None) in members
        members = tuple(m for m in members if m is not type(None))
        if len(members) != 1:
            raise OpTypeError(f"{who} is a union; only 'X | None' unions are understood")
        annotation = members[0]
    choices: tuple = ()
    if typing.get_origin(annotation) is typing.Literal:
        choices = typing.get_args(annotation)
        if None in choices:
            optional, choices = True, tuple(c for c in choices if c is not None)
        type_name, parse = "enum", _parse_choice(choices)
        annotation = str
    else:
        kind = _tuple_kind(annotation) if typing.get_origin(annotation) is tuple else annotation
        if kind not in _PARSERS:
            raise OpTypeError(
                f"{who} needs a type; got {annotation!r}, "
                "expected float, int, bool, str, Scalar, Shape, Floats, DType, tuple[int, ...], tuple[float, ...], "
                "Literal[...] or one of these with '| None'"
            )
        annotation = kind
        type_name, parse = _PARSERS[kind]
    if bounds is not None and annotation not in NUMBERS:
        raise OpTypeError(f"{who} has bounds, {bounds}, and is not a number")
    result = Param(name, annotation, default, optional or default is None, choices, bounds, type_name, parse)
    if default is not REQUIRED:
        try:
            result = result._replace(default=result.parse(default))
        except Bad as problem:
            raise OpTypeError(f"{who} has the default {shown(default)}, which is not {problem}") from None
    return result


#: A keyword of an operator's function that is not a parameter: whether the call trains.  The framework passes it: the mode of
#: the thread for a call on arrays, the mode of the schedule in an executor.  Parsed parameters hold False until then.
IS_TRAIN = "is_train"


def _told(value: Any) -> Any:
    """Return what tells a parameter from others, as equality does except for 0.0 and -0.0."""
    if type(value) is tuple:
        return tuple([_told(v) for v in value])
    return repr(value) if type(value) is float and value == 0 else value


class Attrs(dict):
    """Parsed parameters of a call: a frozen dictionary, whose items are attributes too.

    It is a dictionary because ``function(**attrs)`` is fastest with one.
    """

    __slots__ = ("_hash", "_told", "names", "values_")

    def __init__(self, names: tuple[str, ...], values: tuple):
        super().__init__(zip(names, values, strict=True))
        self.names, self.values_ = names, values
        self._told = _told(values)
        self._hash = hash((names, self._told))

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __hash__(self) -> int:  # type: ignore[override]
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attrs) and self.names == other.names and self._told == other._told

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __reduce__(self):
        return Attrs, (self.names, self.values_)

    def _frozen(self, *args: Any, **changes: Any) -> Any:
        raise TypeError("parsed parameters do not change; replaced(name=value) returns a copy")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _frozen  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Attrs({', '.join(f'{k}={v!r}' for k, v in self.items())})"

    def training(self, is_train: bool) -> Attrs:
        """Return the parameters for a mode, if the operator reads the mode."""
        return self if self.get(IS_TRAIN, is_train) is is_train else self.replaced(**{IS_TRAIN: is_train})

    def replaced(self, **changes: Any) -> Attrs:
        """Return a copy with some values replaced."""
        return Attrs(self.names, tuple(changes.get(n, v) for n, v in zip(self.names, self.values_, strict=True)))


class Spec:
    """The parameters of an operator.

    Attributes
    ----------
    params : tuple of Param
    in_attrs : tuple of str
        Names of the items of :class:`Attrs`: the parameters, then :data:`IS_TRAIN` if the operator reads it.
    has_mode : bool
        Whether the operator reads :data:`IS_TRAIN`.
    """

    takes_others = False
    ignores = False  # plain parameters that it does not have, as MXNet's operators without any do

    def __init__(self, op_name: str, params: tuple[Param, ...], in_attrs: tuple[str, ...] | None = None):
        self.op_name = op_name
        self.params = params
        self.names = tuple(p.name for p in params)
        self.in_attrs = self.names if in_attrs is None else in_attrs
        self.has_mode = IS_TRAIN in self.in_attrs
        self.by_name = {p.name: p for p in params}
        self._required = tuple(p for p in params if p.required)
        self._defaults = tuple(p.default for p in params)
        self._at = {n: i for i, n in enumerate(self.names)}
        self.numbers = tuple([p.name for p in params if p.is_number and not p.name.startswith("_")])  # may be symbolic
        self.integers = tuple([p.name for p in params if p.kind in (int, Shape, tuple)])  # these may be, too

    @classmethod
    def of(cls, op_name: str, function: Callable, extra: tuple[Param, ...] = (), order: Sequence[str] = ()) -> Spec:
        """Read the keyword-only arguments of an operator's function; `order` lists all names, if `extra` are not last."""
        code = function.__code__
        first = code.co_argcount
        names = code.co_varnames[first : first + code.co_kwonlyargcount]
        has_mode = IS_TRAIN in names
        names = tuple(n for n in names if n != IS_TRAIN)
        defaults = function.__kwdefaults__ or {}
        annotations = function.__annotations__
        missing = [n for n in names if n not in annotations]
        if missing:
            raise OpTypeError(f"operator {op_name}{place(function)}: parameter {missing[0]!r} needs a type annotation, as in "
                              f"{missing[0]}: float; what stands before the star is an input")  # fmt: skip
        own = tuple(param_from(n, annotations[n], defaults.get(n, REQUIRED), function) for n in names)
        params = own + tuple(p for p in extra if p.name not in names)
        if order:
            params = tuple(sorted(params, key=lambda p: order.index(p.name)))
        spec = cls(op_name, params, (*(p.name for p in params), IS_TRAIN) if has_mode else None)
        spec.ignores = not params and str(function.__module__).startswith("mxop.ops.")
        return spec

    def parse(self, given: Mapping[str, Any]) -> Attrs:
        """Return the parsed parameters of a call, with defaults for those not given.

        Raises
        ------
        OpParameterError
            If the operator has no parameter of a given name.
        OpTypeError, OpValueError
            If a required parameter is missing, or a value does not fit.
        """
        values = list(self._defaults)
        for name, value in given.items():
            if value is NULL:
                continue
            at = self._at.get(name)
            if at is None:
                known = ", ".join(self.names) or "none"
                if self.ignores and name != IS_TRAIN and isinstance(value, (str, int, float, tuple, list, type, type(None))):
                    warn(f"operator {self.op_name} has no parameters; {name}={shown(value)} is ignored")
                    continue
                known += "; the mode is that of autograd.record or forward(is_train=)" if name == IS_TRAIN else ""
                raise OpParameterError(f"operator {self.op_name} has no parameter {name!r} (given {shown(value)}); its "
                                       f"parameters are: {known}{closest(name, self.names)}")  # fmt: skip
            try:
                values[at] = self.params[at].parse(value)
            except Bad as problem:
                error = OpTypeError if not isinstance(value, (str, int, float, tuple, list)) else OpValueError
                raise error(f"operator {self.op_name}: parameter {name}={shown(value)} is not allowed; expected {problem}"
                            f"{' or None' if self.params[at].optional else ''}") from None  # fmt: skip
        for p in self._required:
            if values[self._at[p.name]] is REQUIRED:
                kind = p.describe().removesuffix(", required")
                raise OpTypeError(f"operator {self.op_name}: required parameter {p.name!r} ({kind}) is missing")
        if self.has_mode:
            values.insert(self.in_attrs.index(IS_TRAIN), False)
        return Attrs(self.in_attrs, tuple(values))

    def example(self) -> Attrs | None:
        """Return parameters for an example call; None if a required one has no obvious value."""
        if not all(p.numeric or p.choices for p in self._required):
            return None
        return self.parse({p.name: self.stand_in(p.name) for p in self._required})

    def stand_in(self, name: str) -> Any:
        """Return a valid value of a parameter, as a placeholder for an unknown one."""
        p = self.by_name.get(name)
        if p is None or p.bounds is not None:
            return 1.0 if p is None else max(p.bounds.low, min(1.0, p.bounds.high))
        return p.choices[0] if p.choices else {str: "", DType: "float32"}.get(p.kind, 1.0 if p.numeric else 1)

    def filled(self, parsed: Mapping[str, Any]) -> Attrs:
        """Return the parameters of a call made by another operator: its own parsed ones, and defaults."""
        values = tuple([parsed.get(name, default) for name, default in zip(self.names, self._defaults, strict=True)])
        return Attrs(self.names, values)

    def to_strings(self, attrs: Attrs, given: Mapping[str, Any] | None = None) -> dict[str, str]:
        """Return parameters as in MXNet's JSON; only those in `given`, if that is not None."""
        result = {}
        for p in self.params:
            if given is None or p.name in given:
                result[p.name] = to_string(p, attrs[p.name])
        return result


def to_string(p: Param, value: Any) -> str:
    """Return a parsed value as in MXNet's JSON."""
    if value is not None and p.kind is DType:
        return dtypes.NAMES[value]
    return str(value)
