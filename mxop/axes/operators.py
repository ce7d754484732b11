"""Operators applied by name: whatever is registered as elementwise or as a reduction takes tensors here.

An elementwise operator aligns its inputs by their axes, and its result has all of them, in the order of the inputs.  A
reduction takes the axes that it runs over, or those that it keeps.  So an operator that a user registers is there at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from functools import reduce as fold
from numbers import Number
from typing import Any

from ..opdef import Operator, registry
from ..ops.binary import PYTHON_NAMES, TABLE, Choice
from ..support.errors import IncompatibleAxesError, OpLookupError, OpTypeError, shown
from ..support.missing import suggestion
from .axis import Axes, unmatched
from .layout import aligned, merged, ordered, split, spread, union
from .tensor import Tensor, mixed

#: Operators of arrays of one shape, and those that broadcast in their place.
_BROADCAST = {name: row.broadcast.split()[0] for row in TABLE for name in row.elemwise.split() if row.broadcast}
#: Operators that work element by element, though they are of another kind.
_LIKE_ELEMENTWISE = ("where", "LeakyReLU")
_POSITIONS = ("argmax", "argmin")
_NORMALIZATIONS = ("softmax", "log_softmax", "softmin")
#: Other names.
_ALIASES = {
    "absolute": "abs", "less": "lesser", "less_equal": "lesser_equal", "stop_gradient": "BlockGrad",
    "squared_L2": "_square_sum",
}  # fmt: skip


_made: dict[str, Callable] = {}  # by name
registry.on_register(lambda name, op: _made.clear())


def find(name: str) -> Callable:
    """Return a function of tensors: an operator by its registered name (or a short one).

    Raises
    ------
    OpLookupError
        When there is no such operator, or it works by position.
    """
    if not isinstance(name, str):
        raise OpTypeError(f"mx.axes.find takes a name, got {shown(name)}")
    found = _made.get(name)
    if found is None:
        found = _made[name] = _make(_ALIASES.get(name, name))
        found.__name__ = found.__qualname__ = name
    return found


def names() -> set[str]:
    """Return the names that :func:`find` knows."""
    registry.load_entry_points()
    alike = {*_LIKE_ELEMENTWISE, *_POSITIONS, *_NORMALIZATIONS}
    known = (n for n in registry.names(hidden=False) if registry.namespace_of(n)[0] in ("", "contrib"))
    ours = (n for n in known if registry.get(n).kind in ("elementwise", "reduction") or registry.get(n).name in alike)
    return {*_ALIASES, *PYTHON_NAMES, *(registry.namespace_of(n)[1] for n in ours)}


def _make(name: str) -> Callable:
    if name in PYTHON_NAMES:
        return _two(PYTHON_NAMES[name])
    registry.load_entry_points()
    op = registry.find(name) or registry.find(f"_contrib_{name}")
    if op is None:
        raise OpLookupError(f"module 'mxop.axes' has no function {name!r}{suggestion(name, names())}")
    for kind, alike, make in (
        ("elementwise", _LIKE_ELEMENTWISE, _elementwise), ("reduction", (), _reduction), ("", _POSITIONS, _search),
        ("", _NORMALIZATIONS, _normalization),
    ):  # fmt: skip
        if op.kind == kind or op.name in alike:
            function = make(op)
            function.__doc__ = f"{make.__doc__}\n\n{op.doc}"
            return function
    raise OpLookupError(f"operator {op.name} works on positions, not on named axes; apply it to the plain value, "
                        f"x.value, and give the result axes with mx.axes.tensor")  # fmt: skip


# ---- elementwise ----------------------------------------------------------------------------------------------------
def _elementwise(op: Operator) -> Callable:
    """Apply an elementwise operator by name: the result has the axes of the first input, then new ones of the next."""

    def function(*inputs: Any, **params: Any) -> Any:
        x = inputs[0] if len(inputs) == 1 else None
        if isinstance(x, Tensor) and not any(isinstance(v, Tensor) for v in params.values()):
            return _wrapped(x, getattr(x.F, op.name)(x.value, **params), x.axes)
        if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
            inputs = tuple(inputs[0])
        n = len(inputs) if op.variadic else len(op.arguments)
        inputs, rest = inputs[:n], inputs[n:]
        by_name = {a: params.pop(a) for a in op.arguments if isinstance(params.get(a), Tensor)}
        given = [*inputs, *by_name.values()]
        tensors = _tensors(op, given)
        axes = fold(union, (x.axes for x in tensors))
        F, name = tensors[0].F, op.name
        if len(tensors) > 1 and any(x.axes != axes for x in tensors):
            name = _BROADCAST.get(name, name)
            if name == "where" and None in axes.lengths:
                name = "_choose"  # all of one type, but it broadcasts, for which no length need be known
            align = aligned if getattr(registry.get(name), "broadcast", False) else spread
            values = [align(F, x.value, x.axes, axes) for x in tensors]
        else:
            values = [x.value for x in tensors]
        if name == op.name:
            by_name = dict(zip(by_name, values[len(inputs) :], strict=True))
            result = getattr(F, name)(*values[: len(inputs)], *rest, **by_name, **params)
        else:
            result = getattr(F, name)(*values, *rest, **params)
        return _wrapped(tensors[0], result, axes)

    return function


def _wrapped(like: Tensor, result: Any, axes: Axes) -> Any:
    if isinstance(result, (list, tuple)):
        return [like._new(r, axes) for r in result]
    if not like._holds_data and len(result) > 1:
        return [like._new(r, axes) for r in result]
    return like._new(result, axes)


def _tensors(op: Operator, given: list[Any]) -> list[Tensor]:
    """Return the inputs as tensors of one kind; a number becomes a tensor of the type of the others."""
    found = [x for x in given if isinstance(x, Tensor)]
    if not found:
        raise OpTypeError(f"operator {op.name}: no input has axes; see mx.axes.tensor(value, axes)")
    for x in found:
        if type(x) is not type(found[0]):
            raise mixed(found[0], x)
    return [_tensor(op, x, found[-1]) for x in given]


def _tensor(op: Operator, x: Any, like: Tensor) -> Tensor:
    if isinstance(x, Tensor):
        return x
    if isinstance(x, Number):
        return like._new(like.F._plus_scalar(like.F.zeros_like(like.value), scalar=x), like.axes)
    raise OpTypeError(f"operator {op.name}: {x!r} has no axes; see mx.axes.tensor(value, axes)")


def _two(choice: Choice) -> Callable:
    """Return a function of two tensors, or of a tensor and a number."""

    def function(lhs: Any, rhs: Any, **options: Any) -> Any:
        if isinstance(lhs, Tensor) and isinstance(rhs, Number):
            return lhs._new(getattr(lhs.F, choice.scalar)(lhs.value, scalar=rhs, **options), lhs.axes)
        if isinstance(rhs, Tensor) and isinstance(lhs, Number):
            return rhs._new(getattr(rhs.F, choice.rscalar)(rhs.value, scalar=lhs, **options), rhs.axes)
        if isinstance(lhs, Number) and isinstance(rhs, Number):
            return choice.numbers(lhs, rhs)
        arrays = isinstance(lhs, Tensor) and lhs._holds_data
        return _elementwise(registry.get(choice.arrays if arrays else choice.symbols))(lhs, rhs, **options)

    function.__doc__ = f"Apply ``{choice.arrays}`` by name, to tensors or to a tensor and a number."
    return function


# ---- reductions -----------------------------------------------------------------------------------------------------
def reduced_and_kept(x: Tensor, reduction_axes: Any, out_axes: Any, what: str) -> tuple[Axes, Axes]:
    """Return the axes that a reduction runs over and those of its result, from one or both of them.

    Without any, it runs over all but the batch and the recurrent axis.

    Raises
    ------
    IncompatibleAxesError
        When an axis is both reduced and kept.
    UnmatchedAxesError
        For axes that `x` does not have, or axes of `x` that are neither reduced nor kept.
    """
    if reduction_axes is None and out_axes is None:
        reduction_axes = x.axes.feature_axes()
    given = [None if axes is None else x.axes.select(axes) for axes in (reduction_axes, out_axes)]
    return _partition(x.axes, *given, what)


@lru_cache(4096)
def _partition(axes: Axes, reduced: Axes | None, kept: Axes | None, what: str) -> tuple[Axes, Axes]:
    for given, argument in ((reduced, "reduction_axes"), (kept, "out_axes")):
        if given is not None and not given.is_sub_set(axes):
            raise unmatched(f"{what}: {argument}={given!r} are not all among {axes!r}", given, axes)
    if reduced is None:
        return axes - kept, kept  # type: ignore[return-value]
    if kept is None:
        return reduced, axes - reduced
    if reduced & kept:
        raise IncompatibleAxesError(f"{what}: reduction_axes={reduced!r} and out_axes={kept!r} overlap in "
                                    f"{reduced & kept!r}")  # fmt: skip
    if not (reduced + kept).is_equal_set(axes):
        text = f"{what}: reduction_axes={reduced!r} and out_axes={kept!r} do not cover {axes!r}"
        raise unmatched(text, axes, reduced + kept)
    return reduced, kept


@lru_cache(4096)
def _places(axes: Axes, some: Axes) -> tuple[int, ...]:
    return tuple(sorted(axes.index(a) for a in some))


def _reduction(op: Operator) -> Callable:
    """Reduce over `reduction_axes`, or over all but `out_axes`, which are the axes of the result in that order.

    Without both, all axes but the batch axis ``N`` and the recurrent axis ``REC`` are reduced.
    """

    def function(x: Tensor, reduction_axes: Any = None, out_axes: Any = None, **params: Any) -> Any:
        x = _checked(op, x, params)
        reduced, kept = reduced_and_kept(x, reduction_axes, out_axes, op.name)
        value, at = x.value, _places(x.axes, reduced)
        if not at:  # no axis: a reduction of single elements
            value, at = x.F.expand_dims(value, axis=0), (0,)
        value = getattr(x.F, op.name)(value, axis=at if len(at) > 1 else at[0], **params)
        if reduction_axes is None or out_axes is not None:  # the order of the result was given
            value = ordered(x.F, value, x.axes - reduced, kept)
        return x._new(value, kept)

    return function


def _search(op: Operator) -> Callable:
    """Return positions along `reduction_axes`; along several, as if these were flattened in their order."""

    def function(x: Tensor, reduction_axes: Any = None, out_axes: Any = None, **params: Any) -> Any:
        x = _checked(op, x, params)
        reduced, kept = reduced_and_kept(x, reduction_axes, out_axes, op.name)
        value = ordered(x.F, x.value, x.axes, kept + reduced)
        value = merged(x.F, value, len(kept), len(reduced))
        return x._new(getattr(x.F, op.name)(value, axis=len(kept), **params), kept)

    return function


def _checked(op: Operator, x: Any, params: dict[str, Any]) -> Tensor:
    if not isinstance(x, Tensor):
        raise OpTypeError(f"operator {op.name}: {x!r} has no axes; see mx.axes.tensor(value, axes)")
    for name in ("axis", "keepdims", "exclude"):
        if name in params:
            raise OpTypeError(f"operator {op.name} of tensors takes reduction_axes or out_axes, not {name}; "
                              f"the axes are {x.axes!r}")  # fmt: skip
    return x


def _normalization(op: Operator) -> Callable:
    """Normalize over `normalization_axes`; by default, all but the batch and the recurrent axis."""

    def function(x: Tensor, normalization_axes: Any = None, **params: Any) -> Any:
        x = _checked(op, x, params)
        over, rest = reduced_and_kept(x, normalization_axes, None, op.name)
        normalize = getattr(x.F, op.name)
        if len(over) == 1:
            return x._new(normalize(x.value, axis=x.axes.index(over[0]), **params), x.axes)
        value = merged(x.F, ordered(x.F, x.value, x.axes, rest + over), len(rest), len(over))
        value = split(x.F, normalize(value, axis=len(rest), **params), len(rest), len(rest) + 1, over, op.name)
        if not x.axes:
            value = x.F.squeeze(value)
        return x._new(ordered(x.F, value, rest + over, x.axes), x.axes)

    return function


def variance(x: Tensor, reduction_axes: Any = None, out_axes: Any = None) -> Any:
    """Return the mean of squared differences from the mean, over axes that are given as for ``sum``."""
    mean = find("mean")
    reduced, kept = reduced_and_kept(x, reduction_axes, out_axes, "variance")
    away = x - mean(x, reduction_axes=reduced)
    return mean(away * away, reduction_axes=reduced, out_axes=kept)


def moments(x: Tensor, reduction_axes: Any = None, out_axes: Any = None) -> tuple[Any, Any]:
    """Return mean and variance over axes that are given as for ``sum``."""
    return find("mean")(x, reduction_axes, out_axes), variance(x, reduction_axes, out_axes)
