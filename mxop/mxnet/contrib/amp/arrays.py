"""Mixed precision for calls: the functions of ``mx.nd`` and ``mx.sym`` convert their arguments from now on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .... import ndarray as nd
from .... import symbol as sym
from ....graph.calls import split_call
from ....opdef import Operator, registry
from ....support import dtypes
from ....support.errors import OpValueError
from .lists import Lists

_in_force: Lists | None = None


def init(target_dtype: Any = "float16", target_precision_ops: Sequence[str] | None = None, conditional_fp32_ops: Any = None,
         fp32_ops: Sequence[str] | None = None) -> None:  # fmt: skip
    """Switch on mixed precision for all calls from now on, of ``mx.nd``, ``mx.sym`` and Python's operators.

    Networks that are made afterwards have the conversions in them; :func:`convert_symbol` adds them to those that exist.
    It cannot be switched off.  Composites and gradients run in the types that they get.

    Parameters
    ----------
    target_dtype : str or type
        The narrow type, float16 or bfloat16.
    target_precision_ops, fp32_ops, conditional_fp32_ops : optional
        As ``target_dtype_ops``, ``fp32_ops`` and ``conditional_fp32_ops`` of :func:`convert_symbol`.

    Raises
    ------
    OpValueError
        If mixed precision is on already, with another type.
    """
    global _in_force
    lists = Lists(target_dtype, target_precision_ops, fp32_ops, conditional_fp32_ops)
    if _in_force is not None:
        if _in_force.target != lists.target:
            raise OpValueError(
                f"amp.init: mixed precision is on already, with {_in_force.target}; it cannot change to {lists.target}"
            )
        return
    _in_force = lists
    dtypes.mix_floats()
    sym.Symbol._operate = _operating(lists, sym.Symbol._operate)  # type: ignore[method-assign]
    listed = lists.operators()
    for name in registry.names():
        op = registry.get(name)
        if op in listed:
            _place(name, op, lists)


def is_on() -> bool:
    """Return whether :func:`init` was called."""
    return _in_force is not None


def _place(name: str, op: Operator, lists: Lists) -> None:
    space, short = registry.namespace_of(name)
    for module, converted in ((nd, _on_arrays), (sym, _on_symbols)):
        for where in [getattr(module, space)] if space else [module, *([module.op] if hasattr(module, "op") else [])]:
            setattr(where, short, converted(getattr(where, short), op, lists))


def _on_arrays(function: Callable, op: Operator, lists: Lists) -> Callable:
    """Return a function of ``mx.nd`` that converts arrays of floats first."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        params = split_call(op, args, kwargs, nd.NDArray)[1] if lists.asks(op) else {}
        way = lists.way(op, params)
        if way is not None:
            arrays = [a for a in _flat((*args, *(v for k, v in kwargs.items() if k != "out"))) if isinstance(a, nd.NDArray)]
            target = _wanted(way, lists.code, [dtypes.code_of(a.dtype) for a in arrays])
            if target is not None:
                args = tuple([_cast(a, target) for a in args])
                kwargs = {k: v if k == "out" else _cast(v, target) for k, v in kwargs.items()}
        return function(*args, **kwargs)

    return call


def _wanted(way: str, low: int, types: list[int]) -> str | None:
    """Return the type that a call needs; None where its floats have it."""
    found = {t for t in types if t in (dtypes.FLOAT32, low)}
    wanted = low if way == "low" else dtypes.FLOAT32
    return None if found <= {wanted} or (way == "widest" and len(found) < 2) else dtypes.NAMES[wanted]


def _flat(values: Sequence[Any]) -> list[Any]:
    return [one for v in values for one in (v if isinstance(v, (list, tuple)) else (v,))]


def _cast(value: Any, target: str) -> Any:
    if isinstance(value, (list, tuple)):
        return [_cast(v, target) for v in value]
    return nd.amp_cast(value, dtype=target) if isinstance(value, nd.NDArray) and value.dtype.__name__ != target else value


def _on_symbols(function: Callable, op: Operator, lists: Lists) -> Callable:
    """Return a function of ``mx.sym`` that adds conversions to the node it makes."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _converted(function(*args, **kwargs), lists)

    return call


def _operating(lists: Lists, operate: Callable) -> Callable:
    """Return what Python's operators on symbols call, with conversions."""

    @functools.wraps(operate)
    def _operate(self: Any, op_name: str, hint: str, inputs: list, params: dict[str, Any]) -> Any:
        return _converted(operate(self, op_name, hint, inputs, params), lists)

    return _operate


def _converted(made: Any, lists: Lists) -> Any:
    """Return a symbol with conversions before its last node."""
    node = made._entries[0][0] if isinstance(made, sym.Symbol) else None
    way = None if node is None or node.op is None else lists.way(node.op, node.attrs)
    if way is None or (way == "widest" and len(node.inputs) < 2):
        return made
    inputs = [sym.Symbol([e]) for e in node.inputs]
    if way == "widest":
        entries = sym.amp_multicast(*inputs, num_outputs=len(inputs))._entries
    else:
        target = lists.target if way == "low" else "float32"
        entries = [e for x in inputs for e in sym.amp_cast(x, dtype=target)._entries]
    new = node.replaced(tuple(entries))
    return sym.Symbol([(new, k) for _, k in made._entries])
