"""Formulas computed by NumPy, operation by operation: what the demonstration compares with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..formula.expr import CALL, CONST, Expr, walk

_NAMES = {
    "sub": "subtract", "mul": "multiply", "div": "divide", "neg": "negative", "pow": "power", "floordiv": "floor_divide",
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
    "land": "logical_and", "lor": "logical_or", "lxor": "logical_xor", "lnot": "logical_not",
} | {name: name for name in (
    "add", "square", "reciprocal", "abs", "sign", "mod", "hypot", "isnan", "maximum", "minimum", "floor", "ceil", "trunc",
    "rint", "sqrt", "cbrt", "exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan",
    "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh",
)}  # fmt: skip
_OF_SCIPY = {"sigmoid": "expit", "log_sigmoid": "log_expit", "erf": "erf", "erfinv": "erfinv", "normcdf": "ndtr",
             "gamma": "gamma", "gammaln": "gammaln", "digamma": "psi"}  # fmt: skip


def _where(condition: Any, a: Any, b: Any, out: Any) -> Any:
    if out is None:
        return np.where(np.not_equal(condition, 0), a, b)
    np.copyto(out, b)
    np.copyto(out, a, where=np.not_equal(condition, 0))
    return out


def _round(a: Any, out: Any) -> Any:
    """Round halves away from zero."""
    found = np.add(a, np.copysign(0.5, a), out=out)
    return np.trunc(found, out=found)


#: Primitives that NumPy computes in several steps: the first one makes the result, the others work in it.
_SEVERAL: dict[str, Callable] = {
    "where": _where,
    "round": _round,
    "fma": lambda a, b, c, out: np.add(found := np.multiply(a, b, out=out), c, out=found),
    "rsqrt": lambda a, out: np.reciprocal(found := np.sqrt(a, out=out), out=found),
    "rcbrt": lambda a, out: np.reciprocal(found := np.cbrt(a, out=out), out=found),
    "softsign": lambda a, out: np.divide(a, found := np.add(found := np.abs(a, out=out), 1, out=found), out=found),
    "softplus": lambda a, out: np.logaddexp(a, 0, out=out),
    "gelu": lambda a, out: np.multiply(a, found := _function("normcdf")(a, out=out), out=found),
}


def _function(name: str) -> Callable | None:
    """Return NumPy's or SciPy's function of a primitive, None if there is none."""
    if name in _NAMES:
        return getattr(np, _NAMES[name])
    if name in _OF_SCIPY:
        from scipy import special

        return getattr(special, _OF_SCIPY[name])
    return _SEVERAL.get(name)


class InNumPy:
    """Formulas as calls of NumPy.

    Attributes
    ----------
    missing : list of str
        Primitives that NumPy does not have; such formulas cannot be computed.
    """

    def __init__(self, roots: Sequence[Expr]):
        self.roots = list(roots)
        self.nodes = [node for node in walk(roots) if node.kind == CALL]
        self.missing = sorted({n.label for n in self.nodes if _function(n.label) is None})
        kept = set(self.roots)
        last = {a: at for at, node in enumerate(self.nodes) for a in node.args if a.kind == CALL and not kept & {a}}
        self.dead = [[a for a, end in last.items() if end == at] for at in range(len(self.nodes))]

    def buffers(self, like: np.ndarray) -> list[np.ndarray | None]:
        """Return an array for the result of each call; calls share them where no later one reads the result before."""
        found: list[np.ndarray | None] = []
        free: list[np.ndarray] = []
        places: dict[Expr, np.ndarray] = {}
        for node, dead in zip(self.nodes, self.dead, strict=True):
            places[node] = free.pop() if free else np.empty_like(like)
            found.append(places[node])
            free += [places[a] for a in dead]
        return found

    def __call__(self, *inputs: np.ndarray, buffers: Sequence[np.ndarray | None] | None = None,
                 seen: Callable[[np.ndarray], Any] = lambda value: None) -> list[np.ndarray]:  # fmt: skip
        """Return the formulas' values, in `buffers` if these are given; `seen` gets the result of each call."""
        like, values = inputs[0], {}
        for node, out, dead in zip(self.nodes, buffers or [None] * len(self.nodes), self.dead, strict=True):
            operands = [self._leaf(a, inputs) if a.kind != CALL else values[a] for a in node.args]
            function = _function(node.label)
            assert function is not None
            if any(isinstance(a, np.ndarray) for a in operands):
                found = function(*operands, out=out)
                found = found if found.dtype == like.dtype else found.astype(like.dtype)  # truths
            else:
                found = float(function(*operands, out=None))
            values[node] = found
            seen(found)
            for a in dead:
                del values[a]
        found = [self._leaf(r, inputs) if r.kind != CALL else values[r] for r in self.roots]
        return [f if isinstance(f, np.ndarray) else np.full_like(like, f) for f in found]

    @staticmethod
    def _leaf(leaf: Expr, inputs: Sequence[np.ndarray]) -> Any:
        return leaf.label if leaf.kind == CONST else inputs[leaf.label]
