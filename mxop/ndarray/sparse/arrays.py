"""The classes: SciPy's csr matrix, or rows and their numbers, with the methods of an array.

They enter operators through ``__mxop_operator__`` alone, which :mod:`.operators` gives them with the methods that are
operators.
"""

from __future__ import annotations

import operator
from operator import getitem
from typing import Any

import numpy as np

from ... import autograd
from ..._core import core, tape
from ...context import Context
from ...opdef import registry
from ...support import dtypes
from ...support.errors import OpIndexError, OpTypeError, OpValueError, OutOfMemoryError, translated
from ...support.handles import handle
from ..blank import filled
from . import history
from .memory import at_home, context_of, csr_of, lib, moved, raw, scipy_sparse, wrapped

Dense = core.Dense
NDArray = core.NDArray
STYPES = ("default", "row_sparse", "csr")


def host(values: Any, dtype: Any = None) -> np.ndarray:
    """Return the values of an array, of any kind, as a NumPy array."""
    if isinstance(values, NDArray):
        values = values.asnumpy()
    return np.asarray(values, dtype=dtype)


def dense(value: Any) -> Any:
    """Return a value with dense arrays in the place of sparse ones."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(dense, value))
    return value.todense() if isinstance(value, BaseSparseNDArray) else value


def checked_stype(stype: Any, function: str) -> str:
    """Return the name of a storage type, if it is one."""
    if not isinstance(stype, str) or stype not in STYPES:
        raise OpValueError(f"{function}: stype={stype!r}; expected one of {', '.join(STYPES)}")
    return stype


def on_device(array: Any, context: Context) -> Any:
    """Return an array in memory of a device, which says from now on that it is on this one of those that share the memory."""
    if isinstance(array, Dense):
        array._device.place(array, context.place)
    else:
        array._context = context if context.place else None
    return array


def _numpy_type(dtype: Any) -> np.dtype:
    return dtypes.numpy_dtype(dtypes.code_of(dtype))


class BaseSparseNDArray:
    """What both kinds have in common: they are dense arrays to who asks for values, and go through operators as they are."""

    stype: str
    shape: tuple[int, ...]
    _values: np.ndarray
    _history: NDArray | None = None  # see .history
    _context: Context | None = None  # of the CPU's, where it is not the first

    __hash__ = object.__hash__  # == compares elements

    # ---- what it is -------------------------------------------------------------------------------------------------
    handle = handle
    writable = True

    @property
    def dtype(self) -> type:
        """The element type."""
        return self._values.dtype.type

    @property
    def dtype_code(self) -> int:
        """The number of the element type."""
        return dtypes.code_of(self._values.dtype)

    @property
    def context(self) -> Context:
        """The device that the array lies on."""
        return self._context or context_of(self._values)

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
        return on_device(wrapped(self._values, True), self.context)

    @property
    @at_home
    def indices(self) -> NDArray:
        """Where they belong: columns (csr) or rows (row_sparse), as int64."""
        return on_device(wrapped(self._places().astype(np.int64), True), self.context)

    @property
    def _aux_types(self) -> list[type]:
        """The types of what says where the values are."""
        return [np.int64] * len(self._parts())

    @property
    def _num_aux(self) -> int:
        return len(self._parts())

    @at_home
    def _aux_data(self, i: int) -> NDArray:
        """Return a copy of pointers and columns (csr), or of the numbers of rows."""
        with translated(f"{type(self).__name__}._aux_data"):
            return on_device(wrapped(self._parts()[i], True), self.context)

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
            return moved(self._dense(), Context("cpu", 0))
        except (MemoryError, ValueError) as problem:  # ValueError: more than can be addressed
            raise OutOfMemoryError(f"{type(self).__name__} of shape {self.shape}, dense: {problem}") from problem

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.asnumpy() if dtype is None else self.asnumpy().astype(dtype)

    def tostype(self, stype: str) -> Any:
        """Return the array in another storage type: ``'default'``, ``'csr'`` or ``'row_sparse'``."""
        return self if checked_stype(stype, "tostype") == self.stype else cast_storage(self, stype)

    def todense(self) -> NDArray:
        """Return the dense array."""
        try:
            return history.same(self, on_device(wrapped(self._dense()), self.context))
        except (MemoryError, ValueError) as problem:
            raise OutOfMemoryError(f"{type(self).__name__} of shape {self.shape}, dense: {problem}") from problem

    @at_home
    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """Return the array with another element type."""
        wanted = _numpy_type(dtype)
        if not copy and wanted == self._values.dtype:
            return self
        return on_device(self._with(self._values.astype(wanted)), self.context)

    @at_home
    def copy(self) -> Any:
        """Return a copy."""
        return on_device(self._with(self._values.copy()), self.context)

    def copyto(self, other: Any) -> Any:
        """Copy to an array, dense or of the same storage type, or to a device."""
        if isinstance(other, Context):
            same = other._device is self.context._device
            return on_device(self.copy() if same else self._moved(other), other)
        if not isinstance(other, NDArray):
            raise OpTypeError(f"copyto takes an array or a context, got {type(other).__name__}")
        other[:] = self
        return other

    def as_in_context(self, context: Context) -> Any:
        """Return the array itself when it is on the device, else a copy there."""
        if not isinstance(context, Context):
            raise OpTypeError(f"as_in_context: {context!r} is not a context; expected something like mx.cpu() or mx.gpu(0)")
        return self if context == self.context else self.copyto(context)

    def _moved(self, context: Context) -> Any:
        """Return an array of the same parts on a device."""
        raise NotImplementedError

    as_in_ctx = as_in_context

    def asscalar(self) -> Any:
        """Return the only element as a NumPy scalar."""
        return self.todense().asscalar()

    def wait_to_read(self) -> None:
        """Wait until the array is computed."""
        self.context._device.synchronize()

    # ---- history ----------------------------------------------------------------------------------------------------
    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Make the array a variable: ``backward`` fills its gradient.

        Parameters
        ----------
        grad_req : {'write', 'add', 'null'}
            What backward does with a new gradient.
        stype : {'default', 'row_sparse', 'csr'}, optional
            How the gradient is stored; by default as the array is.
        """
        stype = self.stype if stype is None else stype
        self._mark(nothing(stype, self.shape, self.dtype, self.context), grad_req)

    def _mark(self, gradient: Any, grad_req: str) -> None:
        """Make the array a variable, whose gradient goes to an array that there is."""
        self._history = history.stand_in(self.shape, self._values)
        tape.mark_variable(self._history, gradient, grad_req)

    @property
    def grad(self) -> Any:
        """The gradient of a variable, or None."""
        return None if self._history is None else tape.gradient_of(self._history)

    def backward(self, out_grad: Any = None, retain_graph: bool = False, train_mode: bool = True) -> None:
        """Compute the gradient of this array and store it in the variables that it was computed from."""
        heads = None if out_grad is None else [out_grad]
        autograd.backward([self], heads, retain_graph, train_mode)

    def detach(self) -> Any:
        """Return an array of the same values, without history."""
        return self._alias(False)

    def _alias(self, history: bool = True) -> Any:
        """Return another array of the same parts, which stays as it is when this one is assigned to."""
        raise NotImplementedError

    def _receive(self, gradient: Any, add: bool) -> None:
        """Store what backward computed (None for zero), or add it to what is here."""
        if gradient is None:
            gradient = nothing(self.stype, self.shape, self.dtype, self.context)
            if add:
                return
        found = _cast(gradient, self.stype).as_in_context(self.context)
        self._become(self + found if add else found)  # type: ignore[operator]

    def check_format(self, full_check: bool = True) -> None:
        """Raise unless the places are within the array and in order."""
        found = self._on_cpu()._problem()
        if found:
            raise OpValueError(f"{type(self).__name__} of shape {self.shape}: {found}")

    def _on_cpu(self) -> Any:
        """Return an array of the same parts in the memory of the CPU."""
        return self.as_in_context(Context("cpu", 0))

    def _problem(self) -> str | None:
        raise NotImplementedError

    # ---- values -----------------------------------------------------------------------------------------------------------
    def __setitem__(self, key: Any, value: Any) -> None:
        if not (key is Ellipsis or (isinstance(key, slice) and key == slice(None))):
            raise OpTypeError(f"{type(self).__name__} can be assigned as a whole alone, with x[:] = value; got the key {key!r}")
        if np.ndim(value) == 0 and not isinstance(value, NDArray):
            value = np.full(self.shape, value, self.dtype)
        made = cast_storage(value, self.stype)
        if made.shape != self.shape:
            raise OpValueError(f"{type(self).__name__} of shape {self.shape} is assigned values of shape {made.shape}")
        self._become(made.astype(self.dtype, copy=False).as_in_context(self.context))

    def _become(self, other: Any) -> None:
        raise NotImplementedError

    def __bool__(self) -> bool:
        return bool(self.todense())

    def __reduce_ex__(self, protocol: Any) -> Any:
        there = self._on_cpu()
        return restored, (self.stype, self.shape, there._values, there._parts())

    def __setstate__(self, state: dict[str, Any]) -> None:
        from ..io import of_state

        made = of_state(state, self.stype)
        if made is not None:
            vars(self).update(vars(made))

    def _parts(self) -> tuple[np.ndarray, ...]:
        """Return what says where the values are, in the order of MXNet's files."""
        raise NotImplementedError


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
    @at_home
    def indptr(self) -> NDArray:
        """Where the values of each row begin, as int64; one more than there are rows."""
        return on_device(wrapped(self._matrix.indptr.astype(np.int64), True), self.context)

    def _places(self) -> np.ndarray:
        return self._matrix.indices

    @at_home
    def _parts(self) -> tuple[np.ndarray, ...]:
        return self._matrix.indptr.astype(np.int64), self._matrix.indices.astype(np.int64)

    def _with(self, values: np.ndarray) -> CSRNDArray:
        check_csr_type(values)
        parts = values, self._matrix.indices.copy(), self._matrix.indptr.copy()
        return CSRNDArray(csr_of(parts, self.shape))

    def _moved(self, context: Context) -> CSRNDArray:
        parts = [moved(part, context) for part in (self._matrix.data, self._matrix.indices, self._matrix.indptr)]
        return CSRNDArray(csr_of(tuple(parts), self.shape))

    @at_home
    def _dense(self) -> np.ndarray:
        return self._matrix.toarray()

    def _become(self, other: Any) -> None:
        self._matrix = other._matrix

    def _alias(self, history: bool = True) -> CSRNDArray:
        made = on_device(CSRNDArray(self._matrix), self.context)
        made._history = self._history if history else None
        return made

    def asscipy(self) -> Any:
        """Return a copy as a matrix of SciPy."""
        return self.copyto(Context("cpu", 0))._matrix

    def _rows(self) -> np.ndarray:
        """Return the row of each value."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self._matrix.indptr))

    def _problem(self) -> str | None:
        problem = _outside(self._matrix)
        if problem:
            return problem
        indices = self._matrix.indices
        rows = self._rows()
        if np.any((rows[1:] == rows[:-1]) & (indices[1:] <= indices[:-1])):
            return "indices of a row are not in order, or name a column twice"
        return None

    @at_home
    def __getitem__(self, key: Any) -> Any:
        """Return rows, a part of them, or with two indices a part of the matrix, as csr."""
        keys = tuple(map(self._slice, key if isinstance(key, tuple) else (key,), self.shape))
        if isinstance(key, tuple) and len(key) > 2:
            raise OpIndexError(f"CSRNDArray: the key {key!r} has {len(key)} indices; expected at most 2")
        found, inputs = on_device(CSRNDArray(self._matrix[keys]), self.context), history.involved([self])
        return history.recorded(history.Again(getitem, dense, (self, keys), {}), inputs, found) if inputs else found

    @staticmethod
    def _slice(key: Any, size: int) -> slice:
        """Return the rows or columns of a key: numbers count as slices of one."""
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            if not -size <= key < size:
                raise OpIndexError(f"CSRNDArray: the index {key} is out of range for a dimension of size {size}")
            return slice(int(key) % size, int(key) % size + 1)
        if key is Ellipsis:
            return slice(None)
        if not isinstance(key, slice):
            raise OpTypeError(f"CSRNDArray: the key {key!r} is neither an integer nor a slice")
        with translated(f"CSRNDArray: the key {key}"):
            if key.step is not None and operator.index(key.step) < 1:
                raise ValueError("its step is not positive")
            return slice(*key.indices(size))


class RowSparseNDArray(BaseSparseNDArray):
    """An array of which only some rows are stored: their numbers, in order, and their values; see ``row_sparse_array``."""

    stype = "row_sparse"

    def __init__(self, values: Any, rows: Any = None, shape: tuple[int, ...] = ()):
        self._values, self._numbers, self.shape = values, rows, shape

    def _places(self) -> np.ndarray:
        return self._numbers

    @at_home
    def _parts(self) -> tuple[np.ndarray, ...]:
        return (self._numbers.astype(np.int64),)

    def _with(self, values: np.ndarray) -> RowSparseNDArray:
        return RowSparseNDArray(values, self._numbers.copy(), self.shape)

    def _moved(self, context: Context) -> RowSparseNDArray:
        return RowSparseNDArray(moved(self._values, context), moved(self._numbers, context), self.shape)

    @at_home
    def _dense(self) -> np.ndarray:
        found = lib(self._values).zeros(self.shape, self._values.dtype)
        found[self._numbers] = self._values
        return found

    def _become(self, other: Any) -> None:
        self._values, self._numbers = other._values, other._numbers

    def _alias(self, history: bool = True) -> RowSparseNDArray:
        made = on_device(RowSparseNDArray(self._values, self._numbers, self.shape), self.context)
        made._history = self._history if history else None
        return made

    @at_home
    def retain(self, indices: Any) -> RowSparseNDArray:
        """Return the rows of these numbers alone."""
        keep = lib(self._numbers).isin(self._numbers, moved(host(indices, np.int64), self.context))
        return on_device(RowSparseNDArray(self._values[keep], self._numbers[keep], self.shape), self.context)

    @at_home
    def _put_rows(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Store values of rows, whose numbers are in order; those that are here already, in place."""
        xp = lib(rows)
        at = xp.searchsorted(self._numbers, rows)
        if not bool(xp.array_equal(self._numbers[at[at < len(self._numbers)]], rows)):
            every = xp.unique(xp.concatenate([self._numbers, rows]))
            self._values, self._numbers = rows_of(self, every), every
            at = xp.searchsorted(every, rows)
        self._values[at] = values

    def _problem(self) -> str | None:
        rows = self._numbers
        if np.any(rows < 0) or np.any(rows >= self.shape[0]):
            return "indices are out of range"
        return "indices are not in order, or name a row twice" if np.any(rows[1:] <= rows[:-1]) else None

    def __getitem__(self, key: Any) -> Any:
        if key is Ellipsis or (isinstance(key, slice) and key == slice(None)):
            return self
        raise OpTypeError(f"RowSparseNDArray can be indexed as a whole alone, with x[:]; got {key!r}; x.tostype('default') is "
                          "dense, retain keeps rows")  # fmt: skip


@at_home
def rows_of(data: RowSparseNDArray, rows: Any) -> Any:
    """Return rows of these numbers; some may not be stored."""
    xp, numbers = lib(rows), data._numbers
    if not len(numbers):
        return xp.zeros((len(rows), *data.shape[1:]), data.dtype)
    at = xp.minimum(xp.searchsorted(numbers, rows), len(numbers) - 1)
    stored = (numbers[at] == rows).reshape(-1, *[1] * (len(data.shape) - 1))
    return xp.where(stored, data._values[at], xp.zeros((), data.dtype))


# ---- making them -----------------------------------------------------------------------------------------------------
def nothing(stype: str, shape: tuple[int, ...], dtype: Any, context: Context | None = None) -> Any:
    """Return zeros on a device: none of them is stored, unless `stype` is ``'default'``."""
    context, kind = context or Context("cpu", 0), _numpy_type(dtype)
    if checked_stype(stype, "sparse.zeros") == "default":
        return filled(shape, dtypes.code_of(kind), context, 0)
    if stype == "row_sparse" and shape:
        return RowSparseNDArray(np.zeros((0, *shape[1:]), kind), np.zeros(0, np.int64), shape).as_in_context(context)
    if stype != "csr" or len(shape) != 2:
        raise OpValueError(f"sparse.zeros: stype={stype!r}, shape={shape}; expected 'csr' and a matrix, or 'row_sparse'")
    starts = np.zeros(shape[0] + 1, np.int64)
    return of_csr(np.zeros(0, kind), np.zeros(0, np.int64), starts, shape).as_in_context(context)


def check_csr_type(values: Any) -> None:
    """Raise for types that SciPy's matrices do not have."""
    if values.dtype == np.float16 or values.dtype.name == "bfloat16":
        raise OpTypeError(f"a csr array has no values of {values.dtype.name}; expected float32 or float64")


def of_csr(values: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: Any) -> CSRNDArray:
    """Return a csr array of parts, which become its own, but for copies of the places; columns are brought into order."""
    check_csr_type(values)
    try:
        matrix = scipy_sparse().csr_matrix((values, np.array(indices), np.array(indptr)), shape=shape)
    except (ValueError, TypeError) as problem:
        raise OpValueError(f"csr_matrix: data, indices and indptr make no matrix of shape {shape}: {problem}") from None
    problem = _outside(matrix)
    if problem:  # SciPy sorts without looking
        raise OpValueError(f"CSRNDArray of shape {tuple(shape)}: {problem}")
    matrix.sort_indices()
    made = CSRNDArray(matrix)
    made.check_format()
    return made


def _outside(matrix: Any) -> str | None:
    """Return why a matrix would lead beyond its memory, or its shape."""
    indptr, indices = matrix.indptr, matrix.indices
    if len(indptr) != matrix.shape[0] + 1 or indptr[0] != 0 or np.any(np.diff(indptr) < 0) or indptr[-1] != len(indices):
        return "indptr does not rise from 0 to the number of values"
    if np.any(indices < 0) or np.any(indices >= matrix.shape[1]):
        return "indices are out of range"
    return None


def of_rows(values: np.ndarray, rows: np.ndarray, shape: tuple[int, ...]) -> RowSparseNDArray:
    """Return a row_sparse array of its parts, whose rows are brought into order."""
    order = np.argsort(rows, kind="stable")
    made = RowSparseNDArray(values[order], rows[order], tuple(shape))
    made.check_format()
    return made


def cast_storage(data: Any, stype: str, out: Any = None, name: str | None = None) -> Any:
    """Return an array in another storage type: ``'default'``, ``'csr'`` or ``'row_sparse'``.

    Examples
    --------
    >>> x = mx.nd.cast_storage(mx.nd.array([[0, 2], [0, 0], [3, 0]]), "csr")
    >>> x.stype, x.data.asnumpy().tolist(), x.indices.asnumpy().tolist()
    ('csr', [2.0, 3.0], [1, 0])
    """
    checked_stype(stype, "cast_storage")
    if not isinstance(data, (NDArray, np.ndarray)):  # a symbol, perhaps
        return core.op_function(registry.get("cast_storage"))(data, stype=stype)
    found = _cast(data, stype)
    if found is not data and hasattr(data, "context"):
        on_device(found, data.context)
    found = history.same(data, found)
    return found if out is None else written(found, out, "cast_storage")


def written(found: Any, out: Any, name: str) -> Any:
    """Write a result to what the caller gave for it."""
    if not isinstance(out, NDArray):
        raise OpTypeError(f"operator {name}: out must be an array, got {type(out).__name__}")
    out[:] = found
    return out


@at_home
def _cast(arr: Any, stype: str) -> Any:
    if stype == "default":
        return arr if isinstance(arr, Dense) else dense(arr) if isinstance(arr, BaseSparseNDArray) else core.from_numpy(arr)
    if stype == "csr":
        if isinstance(arr, CSRNDArray):
            return arr.copy()
        made = _as_csr(host(arr))
        return made.as_in_context(arr.context) if isinstance(arr, NDArray) else made
    if isinstance(arr, RowSparseNDArray):
        return arr.copy()
    values = raw(dense(arr)) if isinstance(arr, (Dense, CSRNDArray)) else arr
    if not values.ndim:
        raise OpValueError("cast_storage: an array without dimensions cannot be row_sparse")
    xp = lib(values)
    there = values != 0
    rows = xp.flatnonzero(there if there.ndim == 1 else there.any(axis=tuple(range(1, there.ndim))))
    return RowSparseNDArray(values[rows], rows, tuple(values.shape))


def _as_csr(values: np.ndarray) -> CSRNDArray:
    if values.ndim != 2:
        raise OpValueError(f"cast_storage: an array of shape {values.shape} cannot be csr; expected a matrix")
    rows, columns = values.nonzero()
    counts = np.concatenate([[0], np.bincount(rows, minlength=len(values)).cumsum()])
    return of_csr(values[rows, columns], columns, counts, values.shape)


def restored(stype: str, shape: tuple, values: np.ndarray, parts: tuple) -> Any:
    """Return an array of what a file or a pickle holds."""
    if stype == "csr":
        indptr, indices = parts if len(parts[0]) else (np.zeros(shape[0] + 1, np.int64), parts[1])
        return of_csr(values, indices, indptr, shape)
    return of_rows(values, parts[0], shape)
