"""The methods of ``NDArray`` that are not hot: attached to the compiled class once, at import.

``TABLE`` holds those that are written out here; operators that are methods too are in :mod:`mxop.opdef.fluent`.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Sequence
from types import FunctionType
from typing import Any

from .._core import core, tape, views
from ..context import Context
from ..opdef import fluent, registry
from ..opdef.params import Bad, as_shape
from ..ops.shape import reshaped_shape, reshaped_strides
from ..support import dtypes, missing
from ..support.errors import MXNetError, OpTypeError, OpValueError, ends_at_caller, shorten, translated
from ..support.handles import handle
from . import creation, indexing, interop, sparse
from .register import F

Dense = core.Dense
NDArray = core.NDArray

#: Methods of PyTorch's and NumPy's arrays that have other names here; and MXNet's, there as soon as their operators are.
_OTHERS = ["clone", "cpu", "cuda", "numpy", "permute", "ravel", "requires_grad", "requires_grad_", "to", "unsqueeze", "view"]
ABSENT = frozenset({"as_np_ndarray", *_OTHERS, *(n for n in fluent.NAMES if fluent.operator_of(n) is None)})


# ---- devices and copies ---------------------------------------------------------------------------------------------
class _Moved:
    """Lets gradients flow back through a copy to another device or type, as autograd.Function does."""

    def __init__(self, source: NDArray, made: NDArray):
        self.context, self.dtype_code = source.context, source.dtype_code
        op = registry.get("Cast")
        self.call = op, op.parse({"dtype": made.dtype_code})  # what it is in a symbol

    def _backward(self, heads: list) -> list:
        back = as_in_context(heads[0], self.context)
        return [back if back.dtype_code == self.dtype_code else F.Cast(back, dtype=self.dtype_code)]


def copyto(self: NDArray, other: Any) -> NDArray:
    """Copy into another array, converting the element type, or to a new array on a device.

    Parameters
    ----------
    other : NDArray of the same shape, or Context

    Returns
    -------
    NDArray
        The array that was written.
    """
    try:
        if isinstance(other, Context):
            made = creation.blank(self.shape, self.dtype_code, other)
        elif isinstance(other, Dense):
            if other is self:
                warnings.warn("copyto: the array is copied to itself", RuntimeWarning, stacklevel=2)
                return other
            if other.shape != self.shape:
                raise OpValueError(f"copyto: the target has shape {other.shape}, the source {self.shape}")
            if tape.recording() and tape.known(other):
                other[...] = self  # raises: what is recorded cannot be changed
            core.touch(other, "copyto")
            made = other
        elif isinstance(other, sparse.BaseSparseNDArray):
            other[:] = self
            return other
        else:
            raise OpTypeError(f"copyto takes an NDArray or a context, got {type(other).__name__}")
        core.copy(self, made)
        if made is not other:
            made._is_mask = self._is_mask
        if tape.recording() and tape.tracked(self):
            tape.record_user(_Moved(self, made), [self], [made])
        return made
    except MXNetError as problem:
        shorten(problem)
        raise


def as_in_context(self: NDArray, context: Context) -> NDArray:
    """Return the array itself when it is on the device, else a copy there."""
    try:
        if not isinstance(context, Context):
            raise OpTypeError(f"as_in_context takes a context such as mx.cpu(), got {type(context).__name__}")
        here = self.context
        return self if here is context or here == context else copyto(self, context)
    except MXNetError as problem:
        shorten(problem)
        raise


def astype(self: NDArray, dtype: Any, copy: bool = True) -> NDArray:
    """Return the array in another element type; the array itself when it has that type and `copy` is False."""
    try:
        code = dtypes.code_of(dtype)
        if not copy and code == self.dtype_code:
            return self
        found = views.converted(self, code)
        return F.Cast(self, dtype=code) if found is None else found
    except MXNetError as problem:
        shorten(problem)
        raise


def copy(self: NDArray) -> NDArray:
    """Return a copy on the same device."""
    try:
        return F._copy(self)
    except MXNetError as problem:
        shorten(problem)
        raise


def wait_to_read(self: NDArray) -> None:
    """Wait until the array is computed; on the CPU, compute it where that has not been done yet."""
    try:
        self._settle()
        self._device.synchronize()
    except MXNetError as problem:
        shorten(problem)
        raise


def tostype(self: NDArray, stype: str) -> Any:
    """Return the array in another storage type: ``'default'`` (itself), ``'csr'`` or ``'row_sparse'``."""
    return sparse.cast_storage(self, stype)


def as_nd_ndarray(self: NDArray) -> NDArray:
    """Return the array itself."""
    return self


def to_numpy(self: NDArray) -> Any:
    """Return a copy as a NumPy array, as :meth:`asnumpy` does; plotting libraries ask for it under this name."""
    return self.asnumpy()


def tolist(self: NDArray) -> Any:
    """Return the values as nested lists of Python numbers."""
    return self.asnumpy().tolist()


# ---- text -----------------------------------------------------------------------------------------------------------
def text(self: NDArray) -> str:
    """Return what MXNet prints: the values, then class, shape and device."""
    values = core.values(self)
    return f"\n{values!s}\n<NDArray {'x'.join(map(str, self.shape))} @{self.context}>"


def html(self: NDArray) -> str | None:
    """Return the array as HTML, for notebooks: what it is, and its values as NumPy prints them."""
    try:
        from html import escape

        about = f"NDArray {'&times;'.join(map(str, self.shape))} {dtypes.NAMES[self.dtype_code]} @{self.context}"
        values = core.values(self)
        return f"<div><small>{about}</small><pre>{escape(str(values))}</pre></div>"
    except Exception:  # a notebook shows the text; an error here would hide it
        return None


def formatted(self: NDArray, spec: str) -> str:
    """Format one element as a number; without a format, as ``str``."""
    with translated("NDArray.__format__"):
        return format(self.item(), spec) if spec else text(self)


# ---- shapes ---------------------------------------------------------------------------------------------------------
def reshape(self: NDArray, shape: tuple, kwargs: dict[str, Any]) -> NDArray:
    """Do what ``NDArray.reshape`` does, for shapes with codes and whatever else is not plain."""
    reverse = kwargs.pop("reverse", False)
    if "shape" in kwargs:
        if shape:
            raise OpTypeError("reshape: the shape is given twice")
        shape = (kwargs.pop("shape"),)
    if kwargs.pop("order", "C") not in ("C", "A"):  # NumPy's functions pass it
        raise OpValueError("reshape: order must be 'C'")
    if kwargs:
        raise OpTypeError(f"reshape has no argument {next(iter(kwargs))!r}; it takes a shape, reverse")
    if not shape:
        raise OpTypeError("reshape needs a shape")
    given = shape[0] if len(shape) == 1 else shape
    try:
        asked = as_shape(given)
    except Bad:
        raise OpTypeError(f"reshape: shape={given!r} must hold integers") from None
    if tape.recording() and tape.tracked(self):
        return F.Reshape(self, shape=asked, reverse=reverse)
    return reshaped(self, reshaped_shape(self.shape, asked, reverse))


def reshaped(x: NDArray, shape: tuple[int, ...]) -> NDArray:
    """Return an array in a shape without codes, sharing memory where possible."""
    size = math.prod(shape)
    if size != x.size:
        raise OpValueError(f"cannot reshape an array of shape {x.shape} ({x.size} elements) to {shape} ({size} elements)")
    strides = reshaped_strides(x.shape, x._strides, shape)
    if strides is None:
        x = core.contiguous(x)
        strides = reshaped_strides(x.shape, x._strides, shape)
    return x._view(shape, strides, 0)


def transpose(self: NDArray, axes: tuple, kwargs: dict[str, Any]) -> NDArray:
    """Do what ``NDArray.transpose`` does, for whatever is not plain."""
    if axes:
        one = axes[0] if len(axes) == 1 and (axes[0] is None or hasattr(axes[0], "__iter__")) else axes
        kwargs["axes"] = () if one is None else one
    return F.transpose(self, **kwargs)


def _inplace(self: NDArray, name: str, **params: Any) -> NDArray:
    """Return what a reshaping operator does, as a view that shares memory (MXNet's meaning of the word)."""
    if tape.recording() and tape.tracked(self):
        return getattr(F, name)(self, **params)
    op = registry.get(name)
    shapes = op.infer_outputs(op.parse(params), [self.shape], [self.dtype_code])[0]
    return reshaped(self, tuple(shapes[0]))


def expand_dims(self: NDArray, axis: int, inplace: bool = False) -> NDArray:
    """Insert a dimension of size 1; `inplace` shares memory."""
    try:
        return _inplace(self, "expand_dims", axis=axis) if inplace else F.expand_dims(self, axis=axis)
    except MXNetError as problem:
        shorten(problem)
        raise


def flatten(self: NDArray, inplace: bool = False) -> NDArray:
    """Merge all dimensions but the first; `inplace` shares memory."""
    try:
        return _inplace(self, "Flatten") if inplace else F.Flatten(self)
    except MXNetError as problem:
        shorten(problem)
        raise


def squeeze(self: NDArray, axis: Any = None, inplace: bool = False) -> NDArray:
    """Remove dimensions of size 1; `inplace` shares memory."""
    try:
        return _inplace(self, "squeeze", axis=axis) if inplace else F.squeeze(self, axis=axis)
    except MXNetError as problem:
        shorten(problem)
        raise


def split_v2(self: NDArray, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False) -> list[NDArray]:
    """Split into equal sections, or before the given indices."""
    return creation.split_v2(self, indices_or_sections, axis, squeeze_axis)


def slice_assign(self: NDArray, rhs: NDArray, begin: Any, end: Any, step: Any = ()) -> NDArray:
    """Write `rhs` into a slice, and return the array."""
    return F._slice_assign(self, rhs, begin=begin, end=end, step=step, out=self)


def slice_assign_scalar(self: NDArray, value: float, begin: Any, end: Any, step: Any = ()) -> NDArray:
    """Write a number into a slice, and return the array."""
    return F._slice_assign_scalar(self, scalar=value, begin=begin, end=end, step=step, out=self)


def complex_(self: NDArray) -> complex:
    """Return the only element as a complex number."""
    return complex(self.item())


def round_(self: NDArray, decimals: int | None = None, out: NDArray | None = None, **kwargs: Any) -> NDArray:
    """Round to the nearest integer, halves away from zero, as the operator ``round``; or to decimals, as NumPy.

    Parameters
    ----------
    decimals : int, optional
        With it, halves go to the even neighbour, as in ``numpy.round``; negative ones are places before the point.
    out : NDArray, optional

    Examples
    --------
    >>> x = mx.nd.array([0.5, 2.5, 1.26])
    >>> print(x.round().asnumpy(), x.round(decimals=0).asnumpy(), x.round(1).asnumpy())
    [1. 3. 1.] [0. 2. 1.] [0.5 2.5 1.3]
    """
    if decimals is None:
        return F.round(self, out=out, **kwargs)
    found = rounded(self, decimals)
    return found if out is None else creation.copied_to(found, out, "round")


def rounded(self: NDArray, ndigits: int | None = None) -> NDArray:
    """Round to decimals, halves to even, as Python's and NumPy's ``round`` do."""
    with translated("round"):
        digits = operator.index(ndigits or 0)
    if self.dtype_code not in dtypes.FLOATS:
        if digits >= 0:
            return F._copy(self)
        return F.Cast(rounded(F.Cast(self, dtype="float64"), digits), dtype=self.dtype_code)
    if digits == 0:
        return F._round_half_even(self)
    with translated("round"):
        tens = 10.0 ** abs(digits)
    return F._round_half_even(self * tens) / tens if digits > 0 else F._round_half_even(self / tens) * tens


def _slice_is_contiguous(slc_key: Sequence[slice], shape: Sequence[int]) -> bool:
    """Return whether slices, one for each axis, choose elements that lie side by side in an array in C order."""
    axes = [(range(*part.indices(size)), size) for part, size in zip(slc_key, shape, strict=True)]
    last = max((k for k, (chosen, size) in enumerate(axes) if len(chosen) < size), default=0)
    # before the last axis that is cut, an axis has one element
    along = (len(chosen) == 1 or (k >= last and chosen.step == 1) for k, (chosen, _) in enumerate(axes))
    return math.prod(len(chosen) for chosen, _ in axes) == 0 or all(along)


TABLE: dict[str, Any] = {
    "as_in_context": as_in_context, "as_in_ctx": as_in_context, "as_nd_ndarray": as_nd_ndarray, "astype": astype,
    "copy": copy, "copyto": copyto,
    "ctx": property(operator.attrgetter("context"), doc="Device that the array lies on; see ``context``."),
    "device": property(operator.attrgetter("context"), doc="Device that the array lies on; see ``context``."),
    "expand_dims": expand_dims, "flatten": flatten, "handle": handle,
    "round": round_, "slice_assign": slice_assign, "slice_assign_scalar": slice_assign_scalar, "split_v2": split_v2,
    "squeeze": squeeze,
    "to_dlpack_for_read": interop.to_dlpack_for_read, "to_dlpack_for_write": interop.to_dlpack_for_write,
    "to_numpy": to_numpy, "tolist": tolist, "tostype": tostype,
    "wait_to_read": wait_to_read, "wait_to_write": wait_to_read,
    "writable": property(lambda self: not self._readonly, doc="Whether elements can be assigned."),
    # what Python looks up by name; operators and indexing have slots and are in the compiled class
    "__array_ufunc__": interop.array_ufunc, "__complex__": complex_, "__copy__": interop.copy,
    "__deepcopy__": interop.deepcopy, "__dlpack__": interop.dlpack, "__dlpack_device__": interop.dlpack_device,
    "__cuda_array_interface__": interop.cuda_array_interface,
    "__format__": formatted, "__jax_array__": interop.jax_array, "__reduce_ex__": interop.reduce_ex,
    "__round__": rounded, "__setstate__": interop.set_state,
    "_basic_indexing_slice_is_contiguous": staticmethod(_slice_is_contiguous), "_repr_html_": html,
}  # fmt: skip
#: What the compiled class asks for: see ``core.hook``.
HOOKS: dict[str, Any] = {
    "getitem": indexing.getitem, "setitem": indexing.setitem, "reshape": reshape, "transpose": transpose,
    "iterate": indexing.iterate, "contains": indexing.contains, "text": text, "leaving": interop.leaving,
}  # fmt: skip


class _Absent:
    """What other arrays have and ours do not, and no operator's name."""

    def __init__(self, name: str):
        self.name = name

    @ends_at_caller
    def __get__(self, x: NDArray | None, owner: type | None = None) -> Any:
        known = vars(NDArray).keys() - ABSENT
        raise missing.error(f"'NDArray' object has no attribute {self.name!r}", self.name, "NDArray", lambda: known)


def listing(self: NDArray) -> list[str]:
    """Return what ``dir`` shows: not the methods whose operators are not registered."""
    return sorted(n for n in object.__dir__(self) if n not in ABSENT or fluent.operator_of(n) is not None)


def install() -> None:
    """Attach all methods to the class."""
    core.attach("__dir__", listing)
    for name in fluent.NAMES:
        core.attach(name, core.OperatorMethod(name, F))
    for name in ABSENT - set(fluent.NAMES):
        core.attach(name, _Absent(name))
    for name, function in TABLE.items():
        core.attach(name, ends_at_caller(function) if isinstance(function, FunctionType) else function)
    core.hook(**HOOKS)
    core.count_as_arrays(sparse.BaseSparseNDArray)
