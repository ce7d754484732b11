"""The classes: SciPy's csr matrix, or rows and their numbers, with the methods of an array.

They enter operators through ``__mxop_operator__`` alone; :mod:`.operators` says what those do.  Imports NumPy,
:mod:`mxop._core` and, on use, SciPy.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ... import dtypes
from ..._core import core
from ...context import Context
from ...errors import OpTypeError, OpValueError, OutOfMemoryError, translated
from ...missing import error
from ...opdef import registry

NDArray = core.NDArray
STYPES = ("default", "row_sparse", "csr")


def scipy_sparse() -> Any:
    """Return the module ``scipy.sparse``, which takes a while to import."""
    import scipy.sparse

    return scipy.sparse


def host(values: Any, dtype: Any = None) -> np.ndarray:
    """Return the values of an array, of any kind, as a NumPy array."""
    if isinstance(values, (NDArray, BaseSparseNDArray)):
        values = values.asnumpy()
    return np.asarray(values, dtype=dtype)


def _numpy_type(dtype: Any) -> np.dtype:
    return dtypes.numpy_dtype(dtypes.code_of(dtype))


class BaseSparseNDArray:
    """What both kinds have in common: they are dense arrays to who asks for values, and go through operators as they are."""

    stype: str
    shape: tuple[int, ...]
    _values: np.ndarray

    # ---- what it is -------------------------------------------------------------------------------------------------
    @property
    def dtype(self) -> type:
        """The element type."""
        return self._values.dtype.type

    @property
    def context(self) -> Context:
        """The device: sparse arrays lie in the memory of the CPU."""
        return Context("cpu", 0)

    ctx = context

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, zeros included."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def data(self) -> NDArray:
        """A copy of the values that are stored."""
        return core.from_numpy(self._values, True)

    @property
    def indices(self) -> NDArray:
        """Where they belong: columns (csr) or rows (row_sparse), as int64."""
        return core.from_numpy(self._places().astype(np.int64), True)

    def _places(self) -> np.ndarray:
        raise NotImplementedError

    def _with(self, values: np.ndarray) -> Any:
        """Return an array of other values at the same places."""
        raise NotImplementedError

    def _dense(self) -> np.ndarray:
        raise NotImplementedError

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"\n<{type(self).__name__} {'x'.join(map(str, self.shape))} @{self.context}>"

    # ---- as something else ------------------------------------------------------------------------------------------
    def asnumpy(self) -> np.ndarray:
        """Return all elements as a NumPy array."""
        try:
            return self._dense()
        except (MemoryError, ValueError) as problem:  # ValueError: more than can be addressed
            raise OutOfMemoryError(f"{type(self).__name__} of shape {self.shape}, dense: {problem}") from problem

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.asnumpy() if dtype is None else self.asnumpy().astype(dtype)

    def tostype(self, stype: str) -> Any:
        """Return the array in another storage type: ``'default'``, ``'csr'`` or ``'row_sparse'``."""
        return self if stype == self.stype else cast_storage(self, stype)

    def todense(self) -> NDArray:
        """Return the dense array."""
        return core.from_numpy(self.asnumpy(), False)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """Return the array with another element type."""
        wanted = _numpy_type(dtype)
        return self if not copy and wanted == self._values.dtype else self._with(self._values.astype(wanted))

    def copy(self) -> Any:
        """Return a copy."""
        return self._with(self._values.copy())

    def copyto(self, other: Any) -> Any:
        """Copy to an array, dense or of the same storage type, or to a device."""
        if isinstance(other, Context):
            return self.as_in_context(other)
        other[:] = self
        return other

    def as_in_context(self, context: Context) -> Any:
        """Return the array itself; on a GPU there are dense arrays alone."""
        return self.todense().as_in_context(context) if context.is_gpu else self

    as_in_ctx = as_in_context

    def wait_to_read(self) -> None:
        """Return: the array is computed."""

    def detach(self) -> Any:
        """Return the array itself, which has no history."""
        return self

    def check_format(self, full_check: bool = True) -> None:
        """Raise unless the places are within the array and in order."""
        found = self._problem()
        if found:
            raise OpValueError(f"{type(self).__name__} of shape {self.shape}: {found}")

    def _problem(self) -> str | None:
        raise NotImplementedError

    # ---- operators --------------------------------------------------------------------------------------------------
    def __mxop_operator__(self, name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Apply a function of ``mx.nd`` that was called with a sparse array."""
        from .operators import apply

        return apply(name, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        op = None if name.startswith("_") else registry.find(name)
        if op is None:
            raise error(f"{type(self).__name__!r} object has no attribute {name!r}", name, "NDArray")
        return lambda *args, **kwargs: self.__mxop_operator__(op.name, (self, *args), kwargs)

    def __setitem__(self, key: Any, value: Any) -> None:
        if not (key is Ellipsis or (isinstance(key, slice) and key == slice(None))):
            raise OpTypeError(
                f"{type(self).__name__} can be assigned as a whole alone, with x[:] = value; got the key {key!r}"
            )
        if np.ndim(value) == 0 and not isinstance(value, (NDArray, BaseSparseNDArray)):
            value = np.full(self.shape, value)
        made = cast_storage(value, self.stype)
        if made.shape != self.shape:
            raise OpValueError(f"{type(self).__name__} of shape {self.shape} is assigned values of shape {made.shape}")
        self._become(made.astype(self.dtype, copy=False))

    def _become(self, other: Any) -> None:
        raise NotImplementedError

    def __bool__(self) -> bool:
        return bool(self.todense())

    def __reduce_ex__(self, protocol: Any) -> Any:
        return restored, (self.stype, self.shape, self._values, self._parts())

    def _parts(self) -> tuple[np.ndarray, ...]:
        """Return what says where the values are, in the order of MXNet's files."""
        raise NotImplementedError


def _method(name: str, swapped: bool = False) -> Any:
    def method(self: Any, other: Any) -> Any:
        args = (other, self) if swapped else (self, other)
        return sys.modules["mxop.ndarray.sparse.operators"].binary(name, *args)

    return method


for _symbol, _name in {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power",
                       "mod": "modulo"}.items():  # fmt: skip
    setattr(BaseSparseNDArray, f"__{_symbol}__", _method(_name))
    setattr(BaseSparseNDArray, f"__r{_symbol}__", _method(_name, swapped=True))
for _symbol, _name in {"gt": "greater", "ge": "greater_equal", "lt": "lesser", "le": "lesser_equal", "eq": "equal",
                       "ne": "not_equal"}.items():  # fmt: skip
    setattr(BaseSparseNDArray, f"__{_symbol}__", _method(_name))
BaseSparseNDArray.__neg__ = lambda self: self._with(-self._values)  # type: ignore[attr-defined]
BaseSparseNDArray.__abs__ = lambda self: self._with(np.abs(self._values))  # type: ignore[attr-defined]
BaseSparseNDArray.__hash__ = object.__hash__  # type: ignore[method-assign]  # == compares elements


class CSRNDArray(BaseSparseNDArray):
    """A matrix by rows: of each the columns that are not zero, and their values; ``csr_matrix`` makes one."""

    stype = "csr"

    def __init__(self, matrix: Any):
        self._matrix = matrix

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The sizes of the dimensions."""
        return tuple(self._matrix.shape)

    @property
    def _values(self) -> np.ndarray:  # type: ignore[override]
        return self._matrix.data

    @property
    def indptr(self) -> NDArray:
        """Where the values of each row begin, as int64; one more than there are rows."""
        return core.from_numpy(self._matrix.indptr.astype(np.int64), True)

    def _places(self) -> np.ndarray:
        return self._matrix.indices

    def _parts(self) -> tuple[np.ndarray, ...]:
        return self._matrix.indptr.astype(np.int64), self._matrix.indices.astype(np.int64)

    def _with(self, values: np.ndarray) -> CSRNDArray:
        matrix = self._matrix
        return of_csr(values, matrix.indices.copy(), matrix.indptr.copy(), self.shape)

    def _dense(self) -> np.ndarray:
        return self._matrix.toarray()

    def _become(self, other: Any) -> None:
        self._matrix = other._matrix

    def asscipy(self) -> Any:
        """Return a copy as a matrix of SciPy."""
        return self._matrix.copy()

    def _rows(self) -> np.ndarray:
        """Return the row of each value."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self._matrix.indptr))

    def _problem(self) -> str | None:
        indptr, indices = self._matrix.indptr, self._matrix.indices
        if (
            len(indptr) != self.shape[0] + 1
            or indptr[0] != 0
            or np.any(np.diff(indptr) < 0)
            or indptr[-1] != len(indices)
        ):
            return "indptr does not rise from 0 to the number of values"
        if np.any(indices < 0) or np.any(indices >= self.shape[1]):
            return "indices are out of range"
        rows = self._rows()
        if np.any((rows[1:] == rows[:-1]) & (indices[1:] <= indices[:-1])):
            return "indices of a row are not in order"
        return None

    def __getitem__(self, key: Any) -> Any:
        """Return rows, a part of them, or with two indices a part of the matrix, as csr."""
        if isinstance(key, int):
            with translated("CSRNDArray: the row"):
                rows = range(self.shape[0])[key]
            return CSRNDArray(self._matrix[rows : rows + 1])
        if isinstance(key, tuple):
            key = tuple(slice(k, k + 1 or None) if isinstance(k, int) else k for k in key)
        with translated("CSRNDArray: the key"):
            return CSRNDArray(self._matrix[key].tocsr())


class RowSparseNDArray(BaseSparseNDArray):
    """An array of which only some rows are stored: their numbers, in order, and their values; see ``row_sparse_array``."""

    stype = "row_sparse"

    def __init__(self, values: np.ndarray, rows: np.ndarray, shape: tuple[int, ...]):
        self._values, self._numbers, self.shape = values, rows, shape

    def _places(self) -> np.ndarray:
        return self._numbers

    def _parts(self) -> tuple[np.ndarray, ...]:
        return (self._numbers.astype(np.int64),)

    def _with(self, values: np.ndarray) -> RowSparseNDArray:
        return RowSparseNDArray(values, self._numbers.copy(), self.shape)

    def _dense(self) -> np.ndarray:
        found = np.zeros(self.shape, self._values.dtype)
        found[self._numbers] = self._values
        return found

    def _become(self, other: Any) -> None:
        self._values, self._numbers = other._values, other._numbers

    def retain(self, indices: Any) -> RowSparseNDArray:
        """Return the rows of these numbers alone."""
        keep = np.isin(self._numbers, host(indices, np.int64))
        return RowSparseNDArray(self._values[keep], self._numbers[keep], self.shape)

    def _problem(self) -> str | None:
        rows = self._numbers
        if np.any(rows < 0) or np.any(rows >= self.shape[0]):
            return "indices are out of range"
        return "indices are not in order" if np.any(rows[1:] <= rows[:-1]) else None

    def __getitem__(self, key: Any) -> Any:
        if key is Ellipsis or (isinstance(key, slice) and key == slice(None)):
            return self
        raise OpTypeError(f"RowSparseNDArray can be indexed as a whole alone, with x[:]; got {key!r}; x.tostype('default') is "
                          "dense, retain keeps rows")  # fmt: skip


# ---- making them -----------------------------------------------------------------------------------------------------
def of_csr(values: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: Any) -> CSRNDArray:
    """Return a csr array of its parts, whose columns are brought into order."""
    if values.dtype == np.float16 or values.dtype.name == "bfloat16":
        raise OpTypeError(f"a csr array has no values of {values.dtype.name}; expected float32 or float64")
    try:
        matrix = scipy_sparse().csr_matrix((values, indices, indptr), shape=shape)
    except (ValueError, TypeError) as problem:
        raise OpValueError(f"csr_matrix: data, indices and indptr make no matrix of shape {shape}: {problem}") from None
    matrix.sort_indices()
    made = CSRNDArray(matrix)
    made.check_format()
    return made


def of_rows(values: np.ndarray, rows: np.ndarray, shape: tuple[int, ...]) -> RowSparseNDArray:
    """Return a row_sparse array of its parts, whose rows are brought into order."""
    order = np.argsort(rows, kind="stable")
    made = RowSparseNDArray(values[order], rows[order], tuple(shape))
    made.check_format()
    return made


def cast_storage(arr: Any, stype: str) -> Any:
    """Return an array in another storage type: ``'default'``, ``'csr'`` or ``'row_sparse'``.

    Examples
    --------
    >>> import mxop as mx
    >>> x = mx.nd.cast_storage(mx.nd.array([[0, 2], [0, 0], [3, 0]]), "csr")
    >>> x.stype, x.data.asnumpy().tolist(), x.indices.asnumpy().tolist()
    ('csr', [2.0, 3.0], [1, 0])
    """
    if stype not in STYPES:
        raise OpValueError(f"cast_storage: stype={stype!r}; expected one of {', '.join(STYPES)}")
    if not isinstance(arr, (NDArray, BaseSparseNDArray, np.ndarray)):  # a symbol: storage is no matter of graphs
        return sys.modules["mxop.ndarray.register"].F.cast_storage(arr, stype=stype)
    if stype == "default":
        return arr if isinstance(arr, NDArray) else core.from_numpy(np.array(host(arr)), False)
    if stype == "csr":
        values = arr._dense() if isinstance(arr, RowSparseNDArray) else arr
        if isinstance(values, CSRNDArray):
            return values.copy()
        dense = host(values)
        if dense.ndim != 2:
            raise OpValueError(f"cast_storage: an array of shape {dense.shape} cannot be csr; expected a matrix")
        rows, columns = dense.nonzero()
        counts = np.concatenate([[0], np.bincount(rows, minlength=len(dense)).cumsum()])
        return of_csr(dense[rows, columns], columns, counts, dense.shape)
    if isinstance(arr, RowSparseNDArray):
        return arr.copy()
    dense = host(arr)
    if not dense.ndim:
        raise OpValueError("cast_storage: an array without dimensions cannot be row_sparse")
    rows = np.flatnonzero((dense != 0).reshape(len(dense), -1).any(1))
    return RowSparseNDArray(dense[rows], rows, dense.shape)


def restored(stype: str, shape: tuple, values: np.ndarray, parts: tuple) -> Any:
    """Return an array of what a file or a pickle holds."""
    if stype == "csr":
        indptr, indices = parts if len(parts[0]) else (np.zeros(shape[0] + 1, np.int64), parts[1])
        return of_csr(values, indices, indptr, shape)
    return of_rows(values, parts[0], shape)
