"""Scalar expressions: what an operator's Python function becomes when it is traced.

An :class:`Expr` is an immutable node.  Equal expressions are the same object (they are *hash-consed*), so a common
subexpression is found by identity and every later step may use expressions as dictionary keys.
How they are simplified as they are built is told by :mod:`.simplify`.  Imports nothing.
"""

from __future__ import annotations

import itertools
import operator
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_uids = itertools.count()
_interned: weakref.WeakValueDictionary[tuple, Expr] = weakref.WeakValueDictionary()

#: Kinds of leaves, in the order in which a backward operator takes them.
INPUT, OUTPUT, PARAM, CONST, CALL = "input", "output", "param", "const", "call"


class TraceError(TypeError):
    """A formula used a traced value in a way that has no element-by-element meaning."""


class NeedsValue(TraceError):
    """Python control flow asked for the value of a parameter: trace again with the value itself."""


class Expr:
    """One node of a formula.

    Attributes
    ----------
    kind : str
        ``'input'``, ``'output'``, ``'param'``, ``'const'`` or ``'call'``.
    label : int, str or float
        Position of an input or output, name of a parameter or primitive, or value of a constant.
    args : tuple of Expr
        Operands of a call.
    """

    __slots__ = ("__weakref__", "args", "kind", "label", "real", "uid")

    def __init__(self, kind: str, label: Any, args: tuple[Expr, ...], real: bool):
        self.kind, self.label, self.args, self.real = kind, label, args, real
        self.uid = next(_uids)

    # An expression is its own identity: `==` builds a comparison, as for arrays.
    def __hash__(self) -> int:
        return self.uid

    def __bool__(self) -> bool:
        if any(leaf.kind in (INPUT, OUTPUT) for leaf in leaves([self])):
            raise TraceError(
                "a formula has no truth value while it is traced: use where(condition, a, b) instead of if/and/or/not"
            )
        raise NeedsValue("the formula branches on a parameter")

    def __repr__(self) -> str:
        if self.kind == CALL:
            return f"{self.label}({', '.join(map(repr, self.args))})"
        return {INPUT: "x", OUTPUT: "y"}.get(self.kind, "") + str(self.label)

    # fmt: off
    def __add__(self, other): return call("add", self, other)
    def __radd__(self, other): return call("add", other, self)
    def __sub__(self, other): return call("sub", self, other)
    def __rsub__(self, other): return call("sub", other, self)
    def __mul__(self, other): return call("mul", self, other)
    def __rmul__(self, other): return call("mul", other, self)
    def __truediv__(self, other): return call("div", self, other)
    def __rtruediv__(self, other): return call("div", other, self)
    def __mod__(self, other): return call("mod", self, other)
    def __rmod__(self, other): return call("mod", other, self)
    def __floordiv__(self, other): return call("floordiv", self, other)
    def __rfloordiv__(self, other): return call("floordiv", other, self)
    def __pow__(self, other): return call("pow", self, other)
    def __rpow__(self, other): return call("pow", other, self)
    def __neg__(self): return call("neg", self)
    def __pos__(self): return self
    def __abs__(self): return call("abs", self)
    def __lt__(self, other): return call("lt", self, other)
    def __le__(self, other): return call("le", self, other)
    def __gt__(self, other): return call("gt", self, other)
    def __ge__(self, other): return call("ge", self, other)
    def __eq__(self, other): return call("eq", self, other)  # type: ignore[override]
    def __ne__(self, other): return call("ne", self, other)  # type: ignore[override]
    # fmt: on

    def __float__(self):
        raise TraceError("a traced value cannot become a Python number: use the functions of mxop.op.F in a formula")

    __int__ = __index__ = __float__

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        raise TraceError(f"numpy.{ufunc.__name__} cannot be traced: use mxop.op.F.{ufunc.__name__} in a formula")


def _intern(kind: str, label: Any, args: tuple[Expr, ...], real: bool) -> Expr:
    # repr keeps 0.0 and -0.0, and NaN with itself, apart from other constants
    key = (kind, repr(label) if kind == CONST else label, real, *[a.uid for a in args])
    node = _interned.get(key)
    if node is None:
        node = Expr(kind, label, args, real)
        _interned[key] = node
    return node


def input_(position: int) -> Expr:
    """Return the leaf for the operator's input at `position`."""
    return _intern(INPUT, position, (), False)


def output(position: int) -> Expr:
    """Return the leaf for the operator's own output, as seen by its backward formula."""
    return _intern(OUTPUT, position, (), False)


def param(name: str, real: bool = True) -> Expr:
    """Return the leaf for a numeric parameter; `real` parameters make integer data compute in floating point."""
    return _intern(PARAM, name, (), real)


def const(value: float) -> Expr:
    """Return the leaf for a number; its label is a float, or an integer of 64 bits that no float holds."""
    if isinstance(value, int) and float(value) != value and -(2**63) <= value < 2**63:
        return _intern(CONST, value, (), False)
    return _intern(CONST, float(value), (), float(value) != int(value) if abs(value) < 2**62 else True)


def as_expr(value: Any) -> Expr:
    """Return `value` as an expression: numbers become constants."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, (bool, int, float)) or hasattr(value, "__float__"):
        return const(value if isinstance(value, int) else float(value))
    raise TraceError(f"a formula cannot use {value!r} of type {type(value).__name__}")


def call(name: str, *args: Any) -> Expr:
    """Apply the primitive `name`, simplifying as it is built."""
    return _simplified(name, tuple(as_expr(a) for a in args))


def raw_call(name: str, args: tuple[Expr, ...]) -> Expr:
    """Make the node as given; only the simplifier needs this."""
    return _intern(CALL, name, args, False)


_simplified: Callable[[str, tuple[Expr, ...]], Expr] = raw_call


def simplify_with(simplified: Callable[[str, tuple[Expr, ...]], Expr]) -> None:
    """Tell what :func:`call` makes of a primitive and its arguments."""
    global _simplified
    _simplified = simplified


def walk(roots: Iterable[Expr]) -> Iterator[Expr]:
    """Yield every node below `roots` once, operands before users."""
    seen: set[int] = set()
    stack = [(root, False) for root in reversed(list(roots))]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif node.uid not in seen:
            seen.add(node.uid)
            if not node.args:
                yield node
                continue
            stack.append((node, True))
            stack.extend([(arg, False) for arg in reversed(node.args)])


def leaves(roots: Iterable[Expr]) -> Iterator[Expr]:
    """Yield the distinct leaves below `roots`."""
    return (node for node in walk(roots) if node.kind != CALL)


def substitute(roots: Iterable[Expr], replace: dict[Expr, Expr]) -> list[Expr]:
    """Rebuild `roots` with every node that is a key of `replace` exchanged for its value."""
    built: dict[int, Expr] = {old.uid: new for old, new in replace.items()}

    def rebuild(node: Expr) -> Expr:
        stack = [node]
        while stack:
            top = stack[-1]
            if top.uid in built:
                stack.pop()
                continue
            missing = [a for a in top.args if a.uid not in built]
            if missing:
                stack.extend(missing)
                continue
            args = tuple([built[a.uid] for a in top.args])
            same = all(map(operator.is_, args, top.args))
            built[top.uid] = top if same else _simplified(top.label, args)
        return built[node.uid]

    return [rebuild(root) for root in roots]
