"""What an operator runs: a kernel for certain shapes, types and attributes, compiled or as plain Python.

Imports the other modules of this package but :mod:`.function` and :mod:`.body`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ... import dtypes
from .bounds import Shapes
from .checks import lower
from .compiled import Compiled
from .derive import gradient
from .ir import Routine, Variable
from .races import check_races
from .source import Source
from .types import WEAK, Types, kind_of
from .words import NARROW

_MANY = 512  # shapes, or types, of which a program keeps what it knows


def checked(source: Source, attributes: frozenset[str] = frozenset()) -> Routine:
    """Run all checks that need the text only."""
    routine = lower(source, attributes)
    check_races(routine)
    return routine


class Known(NamedTuple):
    """What follows from a call: of its shapes, of its types, shapes and type codes of the outputs; and its attributes."""

    shapes: Shapes
    types: Types
    out_shapes: list[tuple[int, ...]]
    out_codes: list[int]
    attributes: tuple


class Program:
    """A kernel as the body of an operator.

    Parameters
    ----------
    source : Source or Routine
        A text, which is read again for each combination of ranks; or what was derived, for certain types.
    plain : callable or None
        Runs the text as plain Python: arguments, as in the text, to results.
    attributes : frozenset of str
        As in :func:`~.checks.lower`.
    """

    def __init__(
        self, source: Source | Routine, plain: Callable | None = None, attributes: frozenset[str] = frozenset()
    ):
        self.routine = source if isinstance(source, Routine) else checked(source, attributes)
        self._plain, self._derived, self._declared = plain, isinstance(source, Routine), attributes
        self._of_ranks, self._of_types, self._of_shapes, self._of_calls, self.compiled, self.on_gpu = map(
            lru_cache(_MANY), (self._lowered, self._typed, self._shaped, self._known, Compiled, _on_gpu)
        )

    # ---- inference ------------------------------------------------------------------------------------------------------
    def _lowered(self, ranks: tuple[int, ...], attributes: tuple, text: str = "") -> Routine:
        if self._derived:
            return self.routine
        lists = dict(zip((v.name for v in self.routine.attributes), attributes))
        by_name = dict(zip((v.name for v in self.routine.inputs), ranks))
        return lower(self.routine.source, self._declared, by_name, lists)

    def _typed(self, codes: tuple[int, ...], ranks: tuple[int, ...], attributes: tuple, text: str) -> Types:
        return Types(self._of_ranks(ranks, attributes, text), codes, attributes)

    def _shaped(self, shapes: tuple[tuple[int, ...], ...], attributes: tuple, text: str) -> Shapes:
        return Shapes(self._of_ranks(tuple(map(len, shapes)), *general(attributes)), shapes, attributes)

    def _known(
        self, shapes: tuple[tuple[int, ...], ...], codes: tuple[int, ...], attributes: tuple, text: str
    ) -> Known:
        found, types = self.shapes(shapes, attributes), self.types(codes, list(map(len, shapes)), attributes)
        return Known(found, types, found.results(), [types.codes[v] for v in types.routine.results], attributes)

    def types(self, codes: Sequence[int], ranks: Sequence[int], attributes: Sequence[Any]) -> Types:
        """Return what follows from the types of a call."""
        return self._of_types(tuple(codes), tuple(ranks), *general(attributes))

    def shapes(self, shapes: Sequence[tuple[int, ...]], attributes: Sequence[Any]) -> Shapes:
        """Return what follows from the shapes of a call."""
        return self._of_shapes(tuple(shapes), *_keyed(attributes))

    def known(self, shapes: Sequence[tuple[int, ...]], codes: Sequence[int], attributes: Sequence[Any]) -> Known:
        """Return all that follows from shapes, types and attributes of a call."""
        return self._of_calls(tuple(shapes), tuple(codes), *_keyed(attributes))

    def gradient(self, codes: Sequence[int], ranks: Sequence[int], attributes: Sequence[Any]) -> Program:
        """Return the program of the gradients, for types: it becomes the owner of a kernel that nobody else has."""
        return Program(gradient(Types(self._lowered(tuple(ranks), tuple(attributes)), codes, attributes)))

    # ---- running --------------------------------------------------------------------------------------------------------
    def run(self, known: Known, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        """Compute outputs, C-contiguous arrays of the inferred shapes and types.

        An input that the kernel assigns is left as it is: the output is what it would become.
        """
        shapes = known.shapes
        if shapes.empty and not shapes.safe:  # an index into a tensor without elements: nothing could stand in for it
            self.run_as_python(known, inputs, outputs)
            return
        compiled = self.compiled(known.types)
        call(lambda arrays: compiled(shapes.safe, *arrays), known, inputs, outputs, _wide)

    def run_as_python(self, known: Known, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        """Do what :meth:`run` does in plain Python."""
        if self._plain is None:
            function = self.compiled(known.types).as_python
            with np.errstate(all="ignore"):
                call(lambda arrays: function(*arrays), known, inputs, outputs, _wide)
            return
        arrays, numbers = iter(inputs), iter(known.attributes)
        found = self._plain([np.array(next(arrays)) if v.is_tensor else next(numbers) for v in self.routine.arguments])
        for target, result in zip(outputs, (found,) if self.routine.single else found, strict=True):
            target[...] = result


def call(run: Callable[[list], None], known: Known, inputs: Sequence[Any], outputs: Sequence[Any],
         held: Callable[[Any], Any]) -> None:  # fmt: skip
    """Run a translated kernel on what `held` makes of arrays, outputs for inputs that it assigns, and deliver that."""
    routine = known.types.routine
    values: dict[Variable, Any] = dict(zip(routine.attributes, known.attributes, strict=True))
    values |= {v: held(a) for v, a in zip(routine.inputs, inputs, strict=True)}
    for v, target in zip(routine.results, outputs, strict=True):
        start, values[v] = values.get(v, 0), held(target)
        values[v][...] = start
    run([values[v] for v in known.types.taken])
    for v, target in zip(routine.results, outputs, strict=True):
        if values[v] is not target:
            target[...] = values[v]


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if dtypes.code_of(array.dtype) in NARROW else array


def _on_gpu(types: Types, checked: bool, cupy: Any) -> Any:
    from .cuda import loaded

    return loaded(types, checked, cupy)


def general(attributes: Sequence[Any]) -> tuple[tuple, str]:
    """Return what a text depends on, as a key: types of numbers, values of lists and strings."""
    return _keyed([WEAK[kind_of(a)] if type(a) in (int, float, bool) else a for a in attributes])


def _keyed(values: Sequence[Any]) -> tuple[tuple, str]:
    """Return values with their text, which tells 1, 1.0 and True apart where they are a key."""
    return tuple(values), repr(values)
