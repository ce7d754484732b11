"""Shapes and dtypes of a Custom operator's outputs: given, computed by a function, or known to its body."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..opdef.params import Bad, as_shape
from ..support import dtypes
from ..support.errors import MXNetError, OpTypeError, OpValueError, run_users
from .body import Body, Inferred
from .reg_info import Infos

Shape = tuple[int, ...]


class Outputs:
    """What is known of the outputs.

    Parameters
    ----------
    given_shape, given_dtype : object
        ``out_shape`` and ``out_dtype``.

    Attributes
    ----------
    multiple : bool
        Whether a call returns a tuple.
    """

    def __init__(self, name: str, body: Body, given_shape: Any, given_dtype: Any, infos: Infos):
        self.name, self.body, self.infos = name, body, infos
        self.given_shape, self.given_dtype = given_shape, given_dtype
        self.multiple = body.multiple
        self._count: int | None = body.n_outputs
        self._nothing = [False, False]
        if given_shape is not None and not _is_function(given_shape):
            shapes = self._read_shapes(given_shape)
            self._found(len(shapes), _nested(given_shape))
        if isinstance(given_dtype, (tuple, list)):
            self._found(len(self._read_types(given_dtype)), True)

    def _found(self, n: int, multiple: bool) -> None:
        if self._count is not None and self._count != n:
            raise OpValueError(
                f"Custom {self.name}: out_shape, out_dtype and the function speak of {self._count} and of {n} outputs"
            )
        self._count = n
        if multiple or n != 1:
            self.multiple = self.body.multiple = True

    # ---- how many -------------------------------------------------------------------------------------------------------
    def count(self, n_inputs: int, attributes: Any) -> int:
        """Return the number of outputs, if need be by trying the functions on made-up inputs."""
        if self._count is None:
            self._try_types(n_inputs, attributes)
        if self._count is None:
            declared = {len(info["outputs"]) for info in self.infos.all if info["outputs"]}
            if len(declared) == 1:
                n = declared.pop()
                self._found(n, n > 1)
        if self._count is None:
            self._try_shapes(n_inputs, attributes)
        return 1 if self._count is None else self._count

    def _try_types(self, n_inputs: int, attributes: Any) -> None:
        if _is_function(self.given_dtype):
            try:
                self.types([dtypes.FLOAT32] * n_inputs, attributes)
            except Exception:  # a function may refuse what it was not written for
                self._count = self.body.n_outputs

    def _try_shapes(self, n_inputs: int, attributes: Any) -> None:
        for rank in (2, 1, 3, 4, 5):
            try:
                self.shapes([(4,) * rank] * n_inputs, attributes)
            except Exception:  # of another rank
                continue
            return

    # ---- shapes and types -----------------------------------------------------------------------------------------------
    def shapes(self, shapes: Sequence[Shape], attributes: Any) -> list[Shape]:
        """Return the shapes of the outputs."""
        given = self.given_shape
        if given is None:
            found = self.body.infer_shapes(shapes, attributes)
            if found is None:
                raise OpValueError(f"Custom {self.name}: out_shape is needed: a shape, or a function of the inputs' shapes")
            return found
        if _is_function(given):
            given = _call(given, [tuple(s) for s in shapes], attributes, self.name, "out_shape")
            self._nothing[0] = given is None
            if given is None:
                return [(1,)]  # a function without output gives a zero
        found = self._read_shapes(given)
        self._found(len(found), _nested(given))
        return found

    def types(self, codes: Sequence[int], attributes: Any) -> list[int]:
        """Return the type codes of the outputs."""
        given = self.given_dtype
        if given is None:
            found = self.body.infer_types(codes, attributes)
            found = self._from_info(codes) if found is None else found
            if found is None:
                raise OpValueError(f"Custom {self.name}: out_dtype is needed: a dtype, or a function of the inputs' dtypes")
            return found
        if _is_function(given):
            given = _call(given, [dtypes.numpy_dtype(c) for c in codes], attributes, self.name, "out_dtype")
            self._nothing[1] = given is None
            if given is None:
                return [dtypes.INT32]
        found = self._read_types(given)
        if isinstance(given, (tuple, list)):
            self._found(len(found), True)
            return found
        return found * (self._count or 1)  # one dtype for all outputs

    def agree(self, shapes: list[Shape], types: list[int]) -> Inferred:
        """Return both, after a check that they speak of as many outputs."""
        if len(types) == 1 and len(shapes) > 1:
            types = types * len(shapes)
        if len(shapes) != len(types):
            raise OpValueError(f"Custom {self.name}: out_shape speaks of {len(shapes)} outputs and out_dtype of {len(types)}")
        if all(self._nothing):
            self.body.fake_output = True
        return shapes, types

    def _from_info(self, codes: Sequence[int]) -> list[int] | None:
        """Return the types that the info's combination for these inputs gives."""
        have = [dtypes.NAMES[c] for c in codes]
        for info in self.infos.all:
            n = len(info["inputs"])
            if info["dtype_format"] and all(p[0] for c in info["dtype_format"] for p in c):
                self.infos.match(info, codes, [None] * len(info["outputs"]))  # raises, with those supported
            for combination in info["dtype_format"]:
                outs = [p[0] for p in combination[n:]]
                if n == len(have) and all(outs) and all(p[0] in ("", h) for p, h in zip(combination[:n], have)):
                    return [self._code(o) for o in outs]
        return None

    # ---- reading --------------------------------------------------------------------------------------------------------
    def _read_shapes(self, value: Any) -> list[Shape]:
        if _nested(value):
            return [self._shape(v) for v in value]
        return [self._shape(value)]

    def _shape(self, value: Any) -> Shape:
        try:
            found = as_shape(value)
        except Bad:
            found = (-1,)
        if any(d is None or d < 0 for d in found):
            raise OpValueError(f"Custom {self.name}: out_shape gave {value!r}; expected a tuple of integers from 0")
        return found

    def _read_types(self, value: Any) -> list[int]:
        return [self._code(v) for v in value] if isinstance(value, (tuple, list)) else [self._code(value)]

    def _code(self, value: Any) -> int:
        """Return the code of a dtype, also of other frameworks' objects, which have a name."""
        try:
            return dtypes.code_of(value)
        except MXNetError:
            name = str(getattr(value, "name", value)).rpartition(".")[2].lower()
            if name in dtypes.CODES:
                return dtypes.CODES[name]
            raise OpTypeError(
                f"Custom {self.name}: out_dtype gave {value!r}; expected one of {', '.join(dtypes.CODES)}"
            ) from None


def _is_function(value: Any) -> bool:
    """Return whether a value is to be called with the inputs; np.float32 is not."""
    return callable(value) and not isinstance(value, type)


def _nested(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and any(hasattr(v, "__iter__") for v in value)


def _call(function: Callable, values: list, attributes: Any, name: str, what: str) -> Any:
    """Call an inference function with one value for each input, and with the attributes if it takes them."""
    extra = list(attributes.values()) if len(attributes) else []
    where = f"Custom {name}: {what}"
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return run_users(where, function, *values)
    for given in (values, [*values, *extra]):
        try:
            signature.bind(*given)
        except TypeError:
            continue
        return run_users(where, function, *given)
    raise OpTypeError(
        f"Custom {name}: {what}{signature} cannot be called with {len(values)} inputs; it takes one argument for each"
    )
