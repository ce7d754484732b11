"""Scalar expressions, to which operators' Python functions are traced.

An :class:`Expr` is an immutable node.  Equal expressions are the same object (*hash-consing*), so common subexpressions are
found by identity, and expressions can be dictionary keys.  :mod:`.simplify` simplifies them as they are built.
"""

from __future__ import annotations

import itertools
import operator
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, SupportsFloat, TypeAlias

from ..support.errors import OpLookupError, OpTypeError

_uids = itertools.count()
_interned: weakref.WeakValueDictionary[tuple, Expr] = weakref.WeakValueDictionary()
_interning = threading.RLock()  # two threads must not make two objects for equal expressions

#: Kinds of nodes; leaves are operands of a backward operator in this order.
INPUT, OUTPUT, PARAM, CONST, CALL = "input", "output", "param", "const", "call"


class TraceError(OpTypeError):
    """A formula used a traced value in a way that has no meaning for single elements."""


class UnknownFunction(TraceError, OpLookupError):
    """A formula used a function or attribute that traced values do not have."""


class NeedsValue(TraceError):
    """Python's control flow needs the value of a parameter: the function is traced again with the value.

    Attributes
    ----------
    param : str
        The parameter whose value is needed (the first one by name).
    """

    def __init__(self, param: str):
        super().__init__(f"the formula branches on parameter {param!r}")
        self.param = param


class Expr:
    """A node of a formula.

    Attributes
    ----------
    kind : str
        ``'input'``, ``'output'``, ``'param'``, ``'const'`` or ``'call'``.
    label : int, str or float
        Position of an input or output, name of a parameter or primitive, or value of a constant.
    args : tuple of Expr
        Operands of a call.
    rule : tuple of (callable, tuple of Expr) or None
        The gradient rule of a call and its operands, if it is not the primitive's; see :func:`with_rule`.
    """

    __slots__ = ("__weakref__", "args", "kind", "label", "real", "rule", "uid")

    def __init__(self, kind: str, label: Any, args: tuple[Expr, ...], real: bool, rule: Rule | None = None):
        self.kind, self.label, self.args, self.real, self.rule = kind, label, args, real, rule
        self.uid = next(_uids)

    # Expressions are equal if identical; `==` builds a comparison, as for arrays.
    def __hash__(self) -> int:
        return self.uid

    def _refuse(self, why: str) -> NoReturn:
        """Raise :class:`TraceError`, or :class:`NeedsValue` for an expression of parameters only."""
        found = list(leaves([self]))
        asked = [leaf.label for leaf in found if leaf.kind == PARAM]
        if not asked or any(leaf.kind in (INPUT, OUTPUT) for leaf in found):
            raise TraceError(why)
        raise NeedsValue(min(asked))

    def __bool__(self) -> bool:
        self._refuse("a formula is the same for every element, so it has no truth value: use F.where(condition, a, b) in "
                     "place of if, F.land, F.lor, F.lnot of and, or, not, F.maximum and F.minimum of max and min")  # fmt: skip

    def __repr__(self) -> str:
        if self.kind == CALL:
            return f"{self.label}({', '.join(map(repr, self.args))})"
        return {INPUT: "x", OUTPUT: "y"}.get(self.kind, "") + str(self.label)

    # fmt: off
    def __add__(self, other: Operand) -> Expr: return call("add", self, other)
    def __radd__(self, other: Operand) -> Expr: return call("add", other, self)
    def __sub__(self, other: Operand) -> Expr: return call("sub", self, other)
    def __rsub__(self, other: Operand) -> Expr: return call("sub", other, self)
    def __mul__(self, other: Operand) -> Expr: return call("mul", self, other)
    def __rmul__(self, other: Operand) -> Expr: return call("mul", other, self)
    def __truediv__(self, other: Operand) -> Expr: return call("div", self, other)
    def __rtruediv__(self, other: Operand) -> Expr: return call("div", other, self)
    def __mod__(self, other: Operand) -> Expr: return call("mod", self, other)
    def __rmod__(self, other: Operand) -> Expr: return call("mod", other, self)
    def __floordiv__(self, other: Operand) -> Expr: return call("floordiv", self, other)
    def __rfloordiv__(self, other: Operand) -> Expr: return call("floordiv", other, self)
    def __pow__(self, other: Operand) -> Expr: return call("pow", self, other)
    def __rpow__(self, other: Operand) -> Expr: return call("pow", other, self)
    def __neg__(self) -> Expr: return call("neg", self)
    def __pos__(self) -> Expr: return self
    def __abs__(self) -> Expr: return call("abs", self)
    def __lt__(self, other: Operand) -> Expr: return call("lt", self, other)
    def __le__(self, other: Operand) -> Expr: return call("le", self, other)
    def __gt__(self, other: Operand) -> Expr: return call("gt", self, other)
    def __ge__(self, other: Operand) -> Expr: return call("ge", self, other)
    def __eq__(self, other: Operand) -> Expr: return call("eq", self, other)  # type: ignore[override]
    def __ne__(self, other: Operand) -> Expr: return call("ne", self, other)  # type: ignore[override]
    def __and__(self, other: Operand) -> Expr: return _of_truths("&", self, other)
    def __rand__(self, other: Operand) -> Expr: return _of_truths("&", other, self)
    def __or__(self, other: Operand) -> Expr: return _of_truths("|", self, other)
    def __ror__(self, other: Operand) -> Expr: return _of_truths("|", other, self)
    def __xor__(self, other: Operand) -> Expr: return _of_truths("^", self, other)
    def __rxor__(self, other: Operand) -> Expr: return _of_truths("^", other, self)
    def __invert__(self) -> Expr: return _of_truths("~", self)
    def __floor__(self) -> Expr: return call("floor", self)
    def __ceil__(self) -> Expr: return call("ceil", self)
    def __trunc__(self) -> Expr: return call("trunc", self)
    # fmt: on

    def __round__(self, ndigits: int | None = None) -> Expr:
        if ndigits is not None:
            raise TraceError("round takes no digits in a formula: write F.rint(x * 10**digits) / 10**digits")
        return call("rint", self)

    def __float__(self) -> float:
        self._refuse("a traced value is not a Python number: use the functions of F, as F.sin(x) in place of math.sin(x)")

    def __int__(self) -> int:
        self._refuse("a traced value is not a Python integer: use F.trunc(x) in place of int(x)")

    def __index__(self) -> int:
        self._refuse("a traced value is not a Python integer, so it cannot be a position or a count")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Expr:
        primitive = _UFUNCS.get(ufunc.__name__)
        if primitive is not None and method == "__call__" and not kwargs:
            return call(primitive, *inputs)  # a NumPy scalar is the left operand
        raise TraceError(f"numpy.{ufunc.__name__} cannot be traced: use mxop.op.F.{ufunc.__name__} in a formula")

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise TraceError("a traced value is not an array: use mxop.op.F in a formula, as F.where(condition, a, b) in place of "
                         "numpy.where")  # fmt: skip

    def __mxop_operator__(self, name: str, args: Any, kwargs: Any) -> NoReturn:
        """Raise for a function of ``mx.nd`` or ``mx.sym``, which operates on arrays."""
        raise TraceError(f"operator {name} takes arrays or symbols, and a formula has neither: use the functions of F, as "
                         f"F.sin(x) in place of nd.sin(x); call other operators in a @composite")  # fmt: skip

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # looked up by Python and NumPy
            raise AttributeError(name)
        raise UnknownFunction(f"a formula sees one element at a time, which has no .{name}: functions are those of F, as "
                              f"F.exp(x) in place of x.exp(); @reduction and @composite work on whole arrays")  # fmt: skip


#: Operands of arithmetic with an expression.
Operand: TypeAlias = Expr | SupportsFloat
#: A gradient rule, as in :mod:`.primitives`, and its operands.
Rule: TypeAlias = tuple[Callable[..., tuple[Expr | None, ...]], tuple[Expr, ...]]

#: Primitives for NumPy's ufuncs of Python's operators.
_UFUNCS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "remainder": "mod",
    "power": "pow", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq",
    "not_equal": "ne",
}  # fmt: skip
_ELEMENT = "a formula sees one element at a time"
#: Python's methods that have no meaning for a single element, and replacements.
_REFUSED = {
    **dict.fromkeys(("divmod", "rdivmod"), "divmod(a, b): use a // b and a % b"),
    **dict.fromkeys(("matmul", "rmatmul"), f"a @ b: {_ELEMENT}; call dot in a @composite"),
    **dict.fromkeys(("lshift", "rlshift"), "a << b: use a * 2**b"),
    **dict.fromkeys(("rshift", "rrshift"), "a >> b: use F.floor(a / 2**b)"),
    **dict.fromkeys(("getitem", "setitem", "delitem"), f"x[...]: {_ELEMENT}; take parts of arrays in a @composite"),
    **dict.fromkeys(("iter", "contains"), f"for and in: {_ELEMENT}; combine elements in a @reduction or a @composite"),
    "len": f"len(x): {_ELEMENT}; combine elements in a @reduction or a @composite",
}  # fmt: skip


def _refused(why: str) -> Callable[..., NoReturn]:
    def method(self: Expr, *others: Any) -> NoReturn:
        raise TraceError(f"a formula cannot be traced through {why}")

    return method


#: Primitives whose results are truth values.
TRUTHS = {"lt", "le", "gt", "ge", "eq", "ne", "land", "lor", "lxor", "lnot", "isnan", "isinf", "isfinite"}


def is_truth(value: Any) -> bool:
    """Return whether all values of an expression are 1 (true) or 0 (false)."""
    if isinstance(value, Expr):
        if value.kind == CALL and value.label == "where":
            return is_truth(value.args[1]) and is_truth(value.args[2])
        return value.label in TRUTHS if value.kind == CALL else value.kind == CONST and value.label in (0, 1)
    return isinstance(value, bool)


#: Python's bitwise operators: the primitive for truth values, and replacements for numbers.
_SIGNS = {
    "&": ("land", "F.land(a, b), which is 1 where neither is 0"),
    "|": ("lor", "F.lor(a, b), which is 1 where either is not 0"),
    "^": ("lxor", "F.lxor(a, b), or a ** b for a power"),
    "~": ("lnot", "F.lnot(a), which is 1 where a is 0"),
}


def _of_truths(sign: str, *operands: Any) -> Expr:
    primitive, hint = _SIGNS[sign]
    if not all(map(is_truth, operands)):
        shown = f"a {sign} b" if len(operands) == 2 else f"{sign}a"
        raise TraceError(f"a formula cannot be traced through {shown} of numbers: {sign} is for truth values such as "
                         f"(x > 0); use {hint}")  # fmt: skip
    return call(primitive, *operands)


for _name, _why in _REFUSED.items():
    setattr(Expr, f"__{_name}__", _refused(_why))


def _intern(kind: str, label: Any, args: tuple[Expr, ...], real: bool, rule: Rule | None = None) -> Expr:
    # repr distinguishes 0.0 from -0.0, and NaN equals itself
    key: tuple = (kind, repr(label) if kind == CONST else label, real, *[a.uid for a in args])
    if rule is not None:
        key = (*key, rule[0], *[a.uid for a in rule[1]])
    node = _interned.get(key)
    if node is None:
        with _interning:
            node = _interned.get(key)
            if node is None:
                node = _interned[key] = Expr(kind, label, args, real, rule)
    return node


def input_(position: int) -> Expr:
    """Return the leaf for the operator's input at `position`."""
    return _intern(INPUT, position, (), False)


def output(position: int) -> Expr:
    """Return the leaf for the operator's output at `position`, for its backward formula."""
    return _intern(OUTPUT, position, (), False)


def param(name: str, real: bool = True) -> Expr:
    """Return the leaf for a numeric parameter; `real` parameters make integer data compute in floating point."""
    return _intern(PARAM, name, (), real)


def const(value: float) -> Expr:
    """Return the leaf for a number; its label is a float, or an int64 that no float represents."""
    if isinstance(value, int) and float(value) != value and -(2**63) <= value < 2**63:
        return _intern(CONST, value, (), False)
    return _intern(CONST, float(value), (), not (-(2**63) <= value < 2**63 and value == int(value)))


def as_expr(value: Any) -> Expr:
    """Return `value` as an expression; numbers become constants."""
    if isinstance(value, Expr):
        return value
    shape = getattr(value, "shape", ())
    if shape != ():
        raise TraceError(f"an array (a {type(value).__name__} of shape {shape}) cannot be a constant of a formula, which "
                         "sees one element at a time: make it an input, or a parameter if it is one number")  # fmt: skip
    if isinstance(value, (bool, int, float)) or hasattr(value, "__float__"):
        return const(value if isinstance(value, int) else float(value))
    raise TraceError(f"a formula cannot use {value!r} of type {type(value).__name__}: its operands are numbers and "
                     "expressions of the inputs and parameters")  # fmt: skip


def call(name: str, *args: Any) -> Expr:
    """Return the primitive `name` applied to `args`, simplified."""
    return _simplified(name, tuple(as_expr(a) for a in args))


def raw_call(name: str, args: tuple[Expr, ...]) -> Expr:
    """Return the node without simplification; only the simplifier needs this."""
    return _intern(CALL, name, args, False)


def with_rule(value: Expr, rule: Callable[..., tuple[Expr | None, ...]], *operands: Expr) -> Expr:
    """Return `value` with the gradient rule ``rule(g, *operands, value)``, which returns a gradient for each operand.

    It replaces derivatives that are wrong at single points: that of ``where(x == 0, 0, f(x))`` is NaN where the derivative of
    ``f`` is infinite.  `value` must contain the leaves of each operand that has a gradient.
    """
    return _intern(CALL, value.label, value.args, False, (rule, operands)) if value.kind == CALL else value


_simplified: Callable[[str, tuple[Expr, ...]], Expr] = raw_call


def simplify_with(simplified: Callable[[str, tuple[Expr, ...]], Expr]) -> None:
    """Set the function that :func:`call` applies to a primitive and its arguments."""
    global _simplified
    _simplified = simplified


def walk(roots: Iterable[Expr], ruled: bool = False) -> Iterator[Expr]:
    """Yield each node of `roots` once, operands before their users; if `ruled`, those of gradient rules."""
    seen: set[int] = set()
    stack = [(root, False) for root in reversed(list(roots))]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif node.uid not in seen:
            seen.add(node.uid)
            operands = node.rule[1] if ruled and node.rule else node.args
            if not operands:
                yield node
                continue
            stack.append((node, True))
            stack.extend([(arg, False) for arg in reversed(operands)])


def leaves(roots: Iterable[Expr]) -> Iterator[Expr]:
    """Yield the distinct leaves of `roots`."""
    return (node for node in walk(roots) if node.kind != CALL)


def substitute(roots: Iterable[Expr], replace: dict[Expr, Expr], build: Callable[..., Expr] | None = None) -> list[Expr]:
    """Return `roots` rebuilt with the nodes in `replace` replaced; `build` makes the calls, by default as :func:`call` does."""
    build = build or _simplified
    built: dict[int, Expr] = {old.uid: new for old, new in replace.items()}

    def rebuild(node: Expr) -> Expr:
        stack = [node]
        while stack:
            top = stack[-1]
            if top.uid in built:
                stack.pop()
                continue
            rule, operands = top.rule or (None, ())
            missing = [a for a in (*top.args, *operands) if a.uid not in built]
            if missing:
                stack.extend(missing)
                continue
            args = tuple([built[a.uid] for a in top.args])
            same = all(map(operator.is_, args, top.args))
            found = top if same else build(top.label, args)
            built[top.uid] = found if same or rule is None else with_rule(found, rule, *[built[a.uid] for a in operands])
        return built[node.uid]

    return [rebuild(root) for root in roots]
