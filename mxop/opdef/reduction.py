"""The decorator ``@reduction``; reductions of several inputs, and those whose second combination reads the first's result.

The latter two are composites of formulas and of reductions of one input (:mod:`.combine`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import prod
from typing import Any

from ..formula import input_, leaves, param
from ..support import dtypes
from ..support.errors import OpTypeError, UnknownShapeError, ends_at_caller
from . import infer
from .combine import COUNT, OWN, Part, Reduction, checked_parts, own_params
from .composite import Composite
from .operator import Operator, defined
from .params import IS_TRAIN, Attrs, Spec
from .places import place
from .rules import with_common_options
from .tracing import called, traced


class ComposedReduction(Composite):
    """A reduction that is a composite; for users its kind is *reduction*.

    Parameters
    ----------
    function : callable
        As in :class:`~.combine.Reduction`, with any number of inputs.  With two combinations it returns the element of the
        first, and a function that returns the element of the second from the result of the first.
    combine : str, callable or pair of them
    broadcast : bool
        Whether inputs of different shapes broadcast.
    final, exclude, wide, empty
        As in a reduction; with two combinations, ``final(first, second, count, **params)``.
    """

    kind = "reduction"

    def __init__(self, function: Callable, combine: Any, *, final: Callable | None = None, exclude: bool = True,
                 wide: bool = False, empty: bool | None = None, broadcast: bool = False, **options: Any):  # fmt: skip
        options.setdefault("module", function.__module__ or "<unnamed>")
        options.setdefault("name", function.__name__)
        code = function.__code__
        inputs = code.co_varnames[: code.co_argcount]
        super().__init__(self._compose, arguments=("F", *inputs), extra_params=own_params(exclude), **options)
        self.element = self.__wrapped__ = function
        self.final = final
        self.combine = combine if isinstance(combine, tuple) else (combine,)
        self.broadcast = broadcast
        self._reductions = {"exclude": exclude, "wide": wide, "empty": empty}
        self._parts: dict[str, Any] = {}

    @cached_property
    def spec(self) -> Spec:  # type: ignore[override]
        return Spec.of(self.name, self.element, self._extra_params)

    @property
    def doc(self) -> str:
        return self.element.__doc__ or ""

    def same_as(self, other: Operator) -> bool:
        return isinstance(other, ComposedReduction) and (
            self.element.__code__.co_code == other.element.__code__.co_code
            and self.element.__code__.co_consts == other.element.__code__.co_consts
            and self.combine == other.combine
        )

    def check_definition(self) -> None:
        super().check_definition()
        checked_parts(self, self.element, self.combine, self.final, ("first", "second")[-len(self.combine) :])

    # ---- hidden operators---------------------------------------------------------------------------------------------------
    def part(self, prefix: str) -> Any:
        """Return a hidden operator that a call uses; it belongs to this operator."""
        found = self._parts.get(prefix)
        return found if found is not None else self._parts.setdefault(prefix, self._made(prefix))

    def derived(self, prefix: str) -> Operator | None:
        pair = len(self.combine) > 1
        known = {"_map_", "_combined_"} | ({"_second_map_", "_second_", "_final_"} if pair else set())
        return self.part(prefix) if prefix in known else super().derived(prefix)

    def _made(self, prefix: str) -> Operator:
        names, pair = self.arguments, len(self.combine) > 1
        if prefix == "_map_":
            function = (lambda *data, **params: self._pair(data, params)[0]) if pair else self.element
            return Part(self, prefix, function, names, broadcast=self.broadcast)
        if prefix == "_second_map_":
            return Part(self, prefix, lambda *data, **params: self._pair(data[:-1], params)[1](data[-1]), (*names, "first"),
                        broadcast=True)  # fmt: skip
        if prefix == "_final_":
            return Part(self, prefix, lambda a, b, *, count, **params: self.final(a, b, count, **params),  # type: ignore[misc]
                        ("first", "second"), (COUNT,))  # fmt: skip
        return _OfElements(self, prefix, self.combine[prefix == "_second_"], None if pair else self.final)

    def _pair(self, data: tuple, params: dict[str, Any]) -> tuple[Any, Callable]:
        found = called(self.name, self.element, *data, **params)
        if not isinstance(found, tuple) or len(found) != 2 or not callable(found[1]):
            raise OpTypeError(f"operator {self.name}{place(self.element)}: with two combinations the function returns a pair: "
                              "the element of the first, and a function that makes the element of the second from the first's "
                              "result, as in return data, lambda largest: F.exp(data - largest)")  # fmt: skip
        return found

    # ---- a call ---------------------------------------------------------------------------------------------------------
    def _compose(self, F: Any, *inputs: Any, **attrs: Any) -> Any:
        try:
            types = [dtypes.code_of(x.dtype) for x in inputs]
        except UnknownShapeError:  # inference of shapes, which types do not affect
            types = [dtypes.FLOAT32]
        if any(t in dtypes.FLOATS for t in types) or not self._is_real(attrs, types[0]):
            return self._parts_of(F, *inputs, **attrs)
        # as within one formula, intermediate values are not rounded to integers
        found = self._parts_of(F, *(F.cast(x, dtype="float64") for x in inputs), **attrs)
        return F.cast(found, dtype=dtypes.NAMES[types[0]])

    def _is_real(self, attrs: dict[str, Any], code: int) -> bool:
        """Return whether a call on integers computes a part in floating point."""
        own = {name: value for name, value in attrs.items() if name not in (*OWN, IS_TRAIN)}
        for prefix in ("_map_", "_second_map_", "_final_") if len(self.combine) > 1 else ("_map_",):
            if prefix == "_final_" and self.final is None:
                continue
            op = self.part(prefix)
            given = op.parse({**own, **({"count": 1.0} if prefix == "_final_" else {})})
            if op.formula(given, len(op.arguments)).compute_type(code) in dtypes.FLOATS:
                return True
        return False

    def _parts_of(self, F: Any, *inputs: Any, **attrs: Any) -> Any:
        own = {
            name: value for name, value in attrs.items() if name not in (*OWN, IS_TRAIN)
        }  # each part gets the mode by itself
        given = Attrs(tuple(attrs), tuple(attrs.values()))

        def call(prefix: str, values: list, **more: Any) -> Any:
            op = self.part(prefix)
            return F._invoke(op, values, given if isinstance(op, Reduction) else op.parse({**own, **more}))

        elements = call("_map_", list(inputs))
        result = call("_combined_", [elements])
        if len(self.combine) == 1:
            return result
        axes = {"axis": attrs["axis"], "exclude": attrs.get("exclude", False)}
        first = F._restore_dims(result, elements, **axes)
        second = call("_second_", [call("_second_map_", [*inputs, first])])
        if self.final is None:
            return second
        count = 1.0
        if self._reads_count(attrs):
            reduced = infer.reduced_axes(self.name, axes["axis"], axes["exclude"], elements.ndim)
            count = float(prod(elements.shape[i] for i in reduced))
        return call("_final_", [result, second], count=count)

    def _reads_count(self, attrs: dict[str, Any]) -> bool:
        """Return whether the final formula reads the number of elements."""
        own = {name: value for name, value in attrs.items() if name not in OWN}
        roots = traced(self.name, self.final, input_(0), input_(1), param("count"), **own)  # type: ignore[arg-type]
        return any(leaf is param("count") for leaf in leaves(roots))


class _OfElements(Reduction):
    """A reduction of elements that another operator computed."""

    def __init__(self, of: ComposedReduction, prefix: str, combine: Any, final: Callable | None):
        super().__init__(_element, combine, final=final, name=prefix + of.name, module=of.module, **of._reductions)
        self.base = of

    @cached_property
    def spec(self) -> Spec:  # type: ignore[override]
        return Spec(self.name, self.base.spec.params, self.base.spec.in_attrs)


def _element(data: Any, **params: Any) -> Any:
    return data


@with_common_options
@ends_at_caller
def reduction(
    combine: str | Callable[..., str] | tuple, *, override: bool = False, **options: Any
) -> Callable[[Callable[..., Any]], Operator]:
    """Make an operator that combines ``function(element)`` along axes.

    The operator has the parameters ``axis`` (an integer or a tuple; all axes by default), ``keepdims`` and ``exclude``
    (reduce over all other axes); its gradient, of every order, follows from the formulas.

    Parameters
    ----------
    combine : {'add', 'mul', 'max', 'min'}, or a pair of them
        The largest or smallest of no elements is an error, or with ``empty=True`` the identity.  It may be a function
        ``combine(**params)`` that returns one of these.  With a pair, the operator's function returns the element of the first
        combination, and a function that returns that of the second from the first's result.
    final : callable, optional
        ``final(value, count, **params)``, a formula of each result; `count` is the number of elements.  With a pair,
        ``final(first, second, count, **params)``; the default is the second.
    broadcast : bool, default False
        Whether inputs of different shapes broadcast.
    empty : bool, optional
        Whether no elements may be reduced; by default unless it is an extremum.
    wide : bool, default False
        Whether to compute in float64 for all types, because intermediate values exceed the result.
    exclude : bool, default True
        Whether the operator has the parameter ``exclude``.
    {common}

    Examples
    --------
    >>> from mxop.op import F, reduction
    >>> @reduction("add")
    ... def sum_of_cubes(data):
    ...     \"\"\"Sum of ``data**3`` along axes.\"\"\"
    ...     return data**3
    >>> mx.nd.sum_of_cubes(mx.nd.array([[1, 2], [3, 4]]), axis=1).asnumpy().tolist()
    [9.0, 91.0]

    A mean with weights, and a logarithm of a sum of exponentials that does not overflow:

    >>> @reduction("add", final=lambda value, count: value / count)
    ... def weighted_mean(data, weight):
    ...     \"\"\"Mean of ``data * weight`` along axes.\"\"\"
    ...     return data * weight
    >>> weighted_mean(mx.nd.array([1, 2, 3]), mx.nd.array([3, 0, 1])).item()
    2.0
    >>> @reduction(("max", "add"), final=lambda largest, total, count: largest + F.log(total))
    ... def log_sum_exp(data):
    ...     \"\"\"Logarithm of the sum of exponentials.\"\"\"
    ...     return data, lambda largest: F.exp(data - largest)
    >>> log_sum_exp(mx.nd.array([[1000, 1000], [0, 1]]), axis=1).asnumpy().round(3).tolist()
    [1000.692993..., 1.31299996...]
    """
    combines = combine if isinstance(combine, tuple) else (combine,)
    for c in combines:
        if callable(c) and getattr(c, "__code__", None) is not None and c.__code__.co_argcount:
            raise OpTypeError(f"operator {c.__name__}{place(c)}: a reduction says how elements are combined: write "
                              "@reduction('add') in place of @reduction")  # fmt: skip

    @ends_at_caller
    def make(function: Callable) -> Operator:
        code = getattr(function, "__code__", None)
        if len(combines) > 1 or (code is not None and code.co_argcount > 1):
            return defined(ComposedReduction, function, combine, override=override, options=options)
        return defined(Reduction, function, combines[0], override=override, options=options)

    Reduction.check_combine(combines)
    return make
