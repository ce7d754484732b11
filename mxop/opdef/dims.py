"""Shapes as tables: each dimension of each input and output is a number, a name, or a function of a named one.

Known dimensions complete all shapes, in both directions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..support.errors import OpTypeError, OpValueError, shown
from . import infer
from .places import place


class Of(NamedTuple):
    """A dimension that is a function of a named one.

    Parameters
    ----------
    name : str
        The name of the other dimension.
    there, back : callable
        ``there(size)`` returns this dimension for a size of the other, ``back`` the inverse; None if undefined.
    otherwise : int, optional
        This dimension while the other is unknown.

    Examples
    --------
    >>> from mxop.op import Of
    >>> halves = Of("size", lambda n: 2 * n, lambda n: None if n % 2 else n // 2)
    >>> completed("halved", {"data": (halves,), "output": ("size",)}, {"data": (6,), "output": None})
    {'data': (6,), 'output': (3,)}
    """

    name: str
    there: Callable[[int], int | None]
    back: Callable[[int], int | None]
    otherwise: int | None = None


Dim = int | str | Of | None


def completed(
    op: str, table: Mapping[str, Sequence[Dim]], shapes: Mapping[str, infer.Shape], params: Mapping[str, Any] | None = None
) -> dict[str, infer.Shape]:
    """Return the shapes of an operator's inputs and outputs, completed by a table of dimensions; `params` are for messages.

    Raises
    ------
    OpValueError
        If a shape contradicts the table.

    Examples
    --------
    >>> completed("pairs", {"data": ("batch", "size"), "output": ("batch", 2)}, {"data": None, "output": (3, None)})
    {'data': (3, None), 'output': (3, 2)}
    """
    sizes: dict[str, int] = {}

    def size(dim: Dim) -> int | None:
        if isinstance(dim, Of):
            return dim.there(sizes[dim.name]) if dim.name in sizes else dim.otherwise
        return sizes.get(dim) if isinstance(dim, str) else dim

    done, n_known = dict(shapes), -1
    while len(sizes) > n_known:  # until no more sizes are found
        n_known = len(sizes)
        for name, shape in done.items():
            dims = table[name]
            if shape is not None and len(shape) != len(dims):
                given = "".join(f", {key}={value}" for key, value in (params or {}).items() if value and type(value) is tuple)
                raise OpValueError(f"operator {op}: {name} has shape {infer.show(shape)}; expected {len(dims)} dimensions, "
                                   f"{_shown(dims)}{given.replace(',', ' for', 1)}")  # fmt: skip
            done[name] = infer.same_shape(op, (name, "expected"), [shape, tuple(map(size, dims))])[0]
            for dim, n in zip(dims, done[name] or (), strict=True):
                of, known = (dim.name, dim.back(n)) if isinstance(dim, Of) and n is not None else (dim, n)
                if not isinstance(of, str) or known is None:
                    continue
                if known < 0:
                    raise OpValueError(f"operator {op}: {name} has shape {infer.show(done[name])}; no {of} gives {n}")
                sizes.setdefault(of, known)
    return done


def _shown(dims: Sequence[Dim]) -> str:
    """Return a table row as text, for messages."""
    return f"({', '.join('?' if d is None else f'of {d.name}' if isinstance(d, Of) else str(d) for d in dims)})"


def rule_of(op: Any, table: Callable) -> Callable:
    """Return a two-way rule that applies a table, which is a function of the parameters."""

    def rule(ins: list, outs: list, **params: Any) -> tuple[list, list]:
        names = [*op.input_names(params, len(ins)), *op.output_names(params, len(ins))]
        rows = table(**params)
        if not isinstance(rows, Mapping) or not all(isinstance(rows.get(name), (tuple, list)) for name in names):
            raise OpTypeError(f"operator {op.name}{place(table)}: its table of dimensions is {shown(rows)}; expected a tuple "
                              f"for each of {', '.join(names)}")  # fmt: skip
        found = list(completed(op.name, rows, dict(zip(names, [*ins, *outs], strict=True)), params).values())
        return found[: len(ins)], found[len(ins) :]

    return rule
