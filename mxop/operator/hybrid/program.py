"""What an operator runs: a kernel for certain shapes, types and attributes, compiled or as plain Python.

Imports the other modules of this package but :mod:`.function` and :mod:`.body`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

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
        self._of_ranks, self._of_types, self._of_shapes, self.compiled, self.on_gpu = map(
            lru_cache(_MANY), (self._lowered, self._typed, self._shaped, Compiled, _on_gpu)
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

    def types(self, codes: Sequence[int], ranks: Sequence[int], attributes: Sequence[Any]) -> Types:
        """Return what follows from the types of a call."""
        return self._of_types(tuple(codes), tuple(ranks), *general(attributes))

    def shapes(self, shapes: Sequence[tuple[int, ...]], attributes: Sequence[Any]) -> Shapes:
        """Return what follows from the shapes of a call."""
        return self._of_shapes(tuple(shapes), *_keyed(attributes))

    def known(self, inputs: Sequence[Any], attributes: Sequence[Any]) -> tuple[Shapes, Types]:
        """Return what follows from the arrays of a call."""
        codes = [dtypes.code_of(a.dtype) for a in inputs]
        return self.shapes([a.shape for a in inputs], attributes), self.types(
            codes, [a.ndim for a in inputs], attributes
        )

    def infer(
        self, shapes: Sequence[tuple[int, ...]], codes: Sequence[int], attributes: Sequence[Any]
    ) -> tuple[list[tuple[int, ...]], list[int]]:
        """Return shapes and type codes of the outputs."""
        known = self.types(codes, [len(s) for s in shapes], attributes)
        return self.shapes(shapes, attributes).results(), [known.codes[v] for v in known.routine.results]

    def gradient(self, codes: Sequence[int], ranks: Sequence[int], attributes: Sequence[Any]) -> Program:
        """Return the program of the gradients, for types: it becomes the owner of a kernel that nobody else has."""
        return Program(gradient(Types(self._lowered(tuple(ranks), tuple(attributes)), codes, attributes)))

    # ---- running --------------------------------------------------------------------------------------------------------
    def run(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], attributes: Sequence[Any]) -> None:
        """Compute outputs, C-contiguous arrays of the inferred shapes and types.

        An input that the kernel assigns is left as it is: the output is what it would become.
        """
        shapes, types = self.known(inputs, attributes)
        if shapes.empty and not shapes.safe:  # an index into a tensor without elements: nothing could stand in for it
            self.run_as_python(inputs, outputs, attributes)
        else:
            _translated(partial(self.compiled(types), shapes.safe), types, inputs, outputs, attributes)

    def run_as_python(
        self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], attributes: Sequence[Any]
    ) -> None:
        """Do what :meth:`run` does in plain Python."""
        if self._plain is None:
            types = self.known(inputs, attributes)[1]
            with np.errstate(all="ignore"):
                _translated(self.compiled(types).as_python, types, inputs, outputs, attributes)
            return
        arrays, numbers = iter(inputs), iter(attributes)
        found = self._plain([np.array(next(arrays)) if v.is_tensor else next(numbers) for v in self.routine.arguments])
        for target, result in zip(outputs, (found,) if self.routine.single else found, strict=True):
            target[...] = result


def call(run: Callable[[dict[Variable, Any]], None], routine: Routine, inputs: Sequence[Any], outputs: Sequence[Any],
         attributes: Sequence[Any], held: Callable[[Any], Any]) -> None:  # fmt: skip
    """Run a translated kernel on what `held` makes of arrays, outputs for inputs that it assigns, and deliver that."""
    values: dict[Variable, Any] = dict(zip(routine.attributes, attributes, strict=True))
    values |= {v: held(a) for v, a in zip(routine.inputs, inputs, strict=True)}
    for v, target in zip(routine.results, outputs, strict=True):
        start, values[v] = values.get(v, 0), held(target)
        values[v][...] = start
    run(values)
    for v, target in zip(routine.results, outputs, strict=True):
        if values[v] is not target:
            target[...] = values[v]


def _translated(function: Callable, types: Types, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray],
                attributes: Sequence[Any]) -> None:  # fmt: skip
    """Run a translated kernel on NumPy arrays, narrow ones as float32."""
    arguments = [v for v in (*types.routine.arguments, *types.routine.made) if v.is_tensor or v in types.kinds]
    call(lambda values: function(*[values[v] for v in arguments]), types.routine, inputs, outputs, attributes, _wide)


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
