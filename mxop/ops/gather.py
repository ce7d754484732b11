"""Gather and scatter: elements selected by index arrays.

Data are seen as ``(outer, n, inner)``: a :class:`Span` says how for each operator, and the rest is shared.  The gradient of
taking adds up at the places that were taken from; its gradient takes again.
"""

import sys
from typing import Literal, NamedTuple

from ..opdef import DType, Shape, composite, infer, kernel
from ..support import dtypes
from ..support.errors import OpIndexError, OpValueError
from ..support.shape_mode import numpy_shape
from ._shared import IN_RANGE, Count, adjoint, both_ways, compiled, element, size_of, typed_by_first


class Span(NamedTuple):
    """How the data are seen: the sizes in `sizes`, together ``n``, are what the indices run over."""

    outer: int
    sizes: tuple
    inner: int
    lanes: bool = False  # each outer and inner position has indices of its own


# ---- both devices ---------------------------------------------------------------------------------------------------
def _refuse(op, index, at, sizes):
    """Raise for the index at a flat position."""
    k = at // max(index.size // len(sizes), 1)
    value = index.ravel()[at].item()
    dimension = f"dimension {k}, of" if len(sizes) > 1 else "a dimension of"
    raise OpIndexError(f"operator {op.name}: index {value} at position {at} of the indices is out of range for "
                       f"{dimension} size {sizes[k]}")  # fmt: skip


def _prepare(steps, op, out, source, index, span, mode, put):
    gather = compiled("gather")
    wide = out.dtype_code
    if put == "add":
        wide = dtypes.summed_in(wide)
    index = steps.converted(index, index.dtype_code if gather.reads(index.dtype_code) else dtypes.FLOAT32)
    found = steps.room(out, wide)
    work = gather.Gather(wide, index.dtype_code, index.size, span.sizes, span.outer, span.inner, mode, span.lanes, put)

    def refuse(at, source, index, out):
        _refuse(op, index.asnumpy(), at, span.sizes)

    steps.work(work, steps.converted(source, wide), index, found, refuse=refuse)
    steps.move(found, out)


def _places(xp, op, index, span, mode):
    """Return the place of each index in ``n``."""
    place, wrong = 0, []
    for at, size in zip(index.reshape(len(span.sizes), -1), span.sizes, strict=True):
        if at.dtype.kind not in "iub":
            at, last = at.astype(xp.float64), 2**63 - 1
            whole = xp.where(xp.abs(at) < 9.2e18, at, 0).astype(xp.int64)
            at = xp.where(at >= 9.2e18, last, xp.where(at > -9.2e18, whole, -last))
        at = at.astype(xp.int64)
        if mode == "wrap" and size:
            at = at % size
        elif mode == "clip" and size:
            at = xp.clip(at, 0, size - 1)
        else:
            if mode == "negative":
                at = xp.where(at < 0, at + size, at)
            wrong.append((at < 0) | (at >= size))
        place = place * size + at
    if wrong and (wrong := xp.concatenate(wrong)).any():  # the only wait for the device
        _refuse(op, index, int(wrong.argmax()), span.sizes)
    return place


def _run_gpu(xp, op, out, source, index, span, mode, put):
    n, plain = size_of(span.sizes), mode in ("clip", "wrap") and len(span.sizes) == 1 and not put and not span.lanes
    place = xp.ascontiguousarray(index) if plain and n else _places(xp, op, index, span, mode)  # no kernels for its few numbers
    large, small = (span.outer, n, span.inner), (span.outer, -1, span.inner)
    if span.lanes and 0 not in (span.outer, span.inner):
        place = place.reshape(small)
    if not place.size:
        out.fill(0)
    elif put:
        _put_gpu(xp, out, source, place, large, put)
    elif span.lanes:
        out[...] = xp.take_along_axis(source.reshape(large), place, 1).reshape(out.shape)
    else:
        from .._gpu import elements

        found = out if source.dtype == out.dtype else xp.empty(out.shape, source.dtype)
        elements.take(xp.ascontiguousarray(source), place, found, span.outer, n, span.inner, mode if plain else "clip")
        if found is not out:
            out[...] = found


def _put_gpu(xp, out, source, place, large, put):
    """Put elements at their places in zeros, or add them up there."""
    outer, n, inner = large
    if place.ndim == 3:
        place = (xp.arange(outer).reshape(-1, 1, 1) * n + place) * inner + xp.arange(inner)
        place, large = place.ravel(), (1, outer * n * inner, 1)
    out[...] = sums_at(xp, out.dtype, source, place, large, put).reshape(out.shape)


def sums_at(xp, dtype, source, place, large, put="add"):
    """Return zeros of shape `large` to which the elements of `source` are added along the middle axis, at each `place`.

    The elements of each place are added one after the other: the same sums each time, unlike those of atomic additions.
    """
    from .._gpu import elements

    found = xp.empty(large, dtype)
    elements.sums_at(xp.ascontiguousarray(source), *elements.in_order(xp, place, large[1]), found, *large, put == "add")
    return found


def _moves(op, how, by_values=False, mode=None):
    """Give a kernel its functions; ``how(inputs, output, params)`` is ``(source, index, span, mode, put)``.

    `by_values` says that it depends on values: it cannot be prepared, and runs as the operator that takes an index.
    """

    def checked(inputs, out, params):
        source, index, span, _, put = found = how(inputs, out, params)
        parts, wanted = source if put else out, span.outer * index.size * span.inner
        if by_values and parts.size != wanted:
            raise OpValueError(f"operator {op.name}: the index chooses {index.size} parts, {wanted} elements in all, but "
                               f"there is room for {parts.size}")  # fmt: skip
        return found

    def prepare(steps, inputs, outputs, **params):
        _prepare(steps, op, outputs[0], *checked(inputs, outputs[0], params))

    def run(inputs, outputs, axis):
        from .._core.core import namespace

        source, index, _, _, put = checked(inputs, outputs[0], {"axis": axis})
        given = [source, index, *(inputs[2:] if put else ())]
        getattr(namespace(), "_take_grad" if put else "take")(*given, axis=axis, mode="clip", out=outputs[0])

    op.cpu(prepared=not by_values)(run if by_values else prepare)
    op.gpu(lambda xp, inputs, outputs, **params: _run_gpu(xp, op, outputs[0], *checked(inputs, outputs[0], params)),
           waits=lambda **params: "" if (mode or params["mode"]) in ("clip", "wrap") else IN_RANGE)  # fmt: skip


def _taking(op, grad, forward, span, mode=None, places=None):
    """Make `op` take elements, and `grad` its gradient, which adds them up in zeros like its last input.

    ``forward(data, index, **params)`` is the output's shape, ``span(data, index, **params)`` how these shapes are seen;
    ``places(index)`` are the indices where the input is something else.
    """
    shown = op.name.removeprefix("_contrib_")

    def how(source, data, index, params, put=None):
        seen = span(data.shape, index.shape, **params)
        return source, index if places is None else places(index), seen, mode or params["mode"], put

    both_ways(op, lambda data, index, **params: None if None in (data, index) else forward(data, index, **params))
    _moves(op, lambda inputs, out, params: how(inputs[0], *inputs, params), places is not None, mode)

    both_ways(grad, lambda head, index, like, **params: like)

    @grad.shape
    def _(head, index, like, **params):
        wanted = forward(like, index, **params)
        if not infer.compatible(head, wanted):
            raise OpValueError(
                f"operator {grad.name}, the gradient of {shown}: head has shape {head}, expected {infer.show(wanted)}"
            )
        return like

    _moves(grad, lambda inputs, out, params: how(inputs[0], out, inputs[1], params, "add"), places is not None, mode)

    adjoint(op, grad)
    typed_by_first(op)
    typed_by_first(grad)


# ---- along one axis -------------------------------------------------------------------------------------------------
@kernel(aliases=("_npi_take",))
def take(a, indices, *, axis: int = 0, mode: Literal["clip", "raise", "wrap"] = "clip"):
    """Take the parts of `a` at given indices along an axis.

    Parameters
    ----------
    indices : NDArray or Symbol
        Of any shape and type; fractions are truncated.  The result has their dimensions in place of `axis`.
    mode : str
        Out-of-range indices: ``clip`` uses the nearest valid one, ``wrap`` the index modulo the size, ``raise`` is an error.

    >>> x = mx.nd.array([[1, 2], [3, 4], [5, 6]])
    >>> mx.nd.take(x, mx.nd.array([2, -1])).asnumpy().tolist()
    [[5.0, 6.0], [1.0, 2.0]]
    >>> mx.nd.take(x, mx.nd.array([3, -1]), axis=1, mode='wrap').asnumpy().tolist()
    [[2.0, 2.0], [4.0, 4.0], [6.0, 6.0]]
    """


@kernel(name="_take_grad", shape_only=(2,))
def take_grad(head, indices, like, *, axis: int = 0, mode: Literal["clip", "raise", "wrap"] = "clip"):
    """Add the parts of `head` up at their places in zeros like `like`: the gradient of ``take``."""


def _take_forward(a, indices, *, axis, mode):
    at = infer.normal_axis("take", axis, len(a))
    return (*a[:at], *indices, *a[at + 1 :])


def _take_span(a, indices, *, axis, mode):
    at = axis % len(a)
    return Span(size_of(a[:at]), (a[at],), size_of(a[at + 1 :]))


_taking(take, take_grad, _take_forward, _take_span)


@kernel(name="_take_added")
def take_added(data, head, indices, *, axis: int = 0, mode: Literal["clip", "raise", "wrap"] = "clip"):
    """Copy of the data with what ``_take_grad`` puts into zeros added to them."""


both_ways(take_added, lambda data, head, indices, **params: data, lambda out, *ins, **params: out)
take_added.overwrites = True
take_grad.added = take_added


@take_added.shape
def _(data, head, indices, **params):
    wanted = _take_forward(data, indices, **params)
    if not infer.compatible(head, wanted):
        raise OpValueError(f"operator _take_added: head has shape {head}, expected {infer.show(wanted)}")
    return data


@take_added.infer_types
def _(ins, outs, **params):
    data = infer.same_type("_take_added", ["data", "head", "output"], [*ins[:2], *outs])[0]
    return [data, data, ins[2]], [data]


@take_added.cpu(prepared=True)
def _(steps, inputs, outputs, *, axis, mode):
    (data, head, index), (out,) = inputs, outputs
    span = _take_span(data.shape, index.shape, axis=axis, mode=mode)
    steps.move(data, out)
    if dtypes.summed_in(out.dtype_code) == out.dtype_code:
        _prepare(steps, take_added, out, head, index, span, mode, "onto")
        return
    total = steps.temporary(out.shape, out.dtype_code)  # sums are rounded once, before they are added
    _prepare(steps, take_added, total, head, index, span, mode, "add")
    steps.add(total, out)


@take_added.gpu(waits=lambda *, axis, mode: "" if mode in ("clip", "wrap") else IN_RANGE)
def _(xp, inputs, outputs, *, axis, mode):
    (data, head, index), (out,) = inputs, outputs
    span = _take_span(data.shape, index.shape, axis=axis, mode=mode)
    total = xp.empty(out.shape, out.dtype)
    _run_gpu(xp, take_added, total, head, index, span, mode, "add")
    out[...] = data + total


@take_added.gradient
def _(F, heads, inputs, outputs, **params):
    return [heads[0], F.take(heads[0], inputs[2], **params), None]


@kernel(aliases=("_npx_pick", "choose_element_0index"))
def pick(data, index, *, axis: int | None = -1, keepdims: bool = False, mode: Literal["clip", "wrap"] = "clip"):
    """Pick one element along an axis for each position of the other axes.

    Parameters
    ----------
    index : NDArray or Symbol
        Of the data's shape without `axis`, or with size 1 there.
    keepdims : bool
        Keep the axis, with size 1.
    mode : str
        Out-of-range indices: ``clip`` uses the nearest valid one, ``wrap`` the index modulo the size.

    >>> x = mx.nd.array([[1, 2], [3, 4], [5, 6]])
    >>> mx.nd.pick(x, mx.nd.array([0, 1, 5])).asnumpy().tolist()
    [1.0, 4.0, 6.0]
    """


@kernel(name="_pick_grad", shape_only=(2,))
def pick_grad(head, index, like, *, axis: int | None = -1, keepdims: bool = False, mode: Literal["clip", "wrap"] = "clip"):
    """Put the elements of `head` to their places in zeros like `like`: the gradient of ``pick``."""


def _lane_axis(name, data, axis):
    if axis is None:
        raise OpValueError(f"operator {name}: axis=None is not supported; name the axis to pick along")
    return infer.normal_axis(name, axis, len(data))


def _pick_forward(data, index, *, axis, keepdims, mode):
    at = _lane_axis("pick", data, axis)
    kept, dropped = (*data[:at], 1, *data[at + 1 :]), (*data[:at], *data[at + 1 :])
    if not any(infer.compatible(index, shape) for shape in (kept, dropped)):  # of a vector: one index, or a scalar
        raise OpValueError(f"operator pick: index has shape {infer.show(index)} but data {infer.show(data)}; "
                           f"expected the data's shape without axis {at}")  # fmt: skip
    return kept if keepdims else dropped if dropped or numpy_shape() else (1,)


def _lane_span(data, index, *, axis, **params):
    at = axis % len(data)
    return Span(size_of(data[:at]), (data[at],), size_of(data[at + 1 :]), True)


_taking(pick, pick_grad, _pick_forward, _lane_span)


def _label_follows(rule):
    """Complete the shape of an index, which is the data's without the axis, or with a size of 1: ``rule`` says the rest."""

    def shapes(ins, outs, *, axis, **params):
        data, index = ins
        if data is not None:
            at = _lane_axis("pick", data, axis)
            wanted = (*data[:at], *data[at + 1 :]) or (() if numpy_shape() else (1,))
            if index is not None and len(index) == len(data):
                wanted = (*data[:at], 1, *data[at + 1 :])
            ins = [data, infer.unify(wanted, index) if infer.compatible(wanted, index) else index]
        return rule(ins, outs, axis=axis, **params)

    return shapes


pick.infer(_label_follows(pick._infer))


@kernel(name="_take_lanes")
def take_lanes(data, index, *, axis: int):
    """Take elements along an axis, at each position of the other axes those that `index` names there.

    >>> mx.nd._internal._take_lanes(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([[1, 0], [0, 0]]), axis=1).asnumpy().tolist()
    [[2.0, 1.0], [3.0, 3.0]]
    """


@kernel(name="_take_lanes_grad", shape_only=(2,))
def take_lanes_grad(head, index, like, *, axis: int):
    """Add the elements of `head` up at their places in zeros like `like`: the gradient of ``_take_lanes``."""


def _lanes_forward(data, index, *, axis):
    at = _lane_axis("_take_lanes", data, axis)
    if not infer.compatible((*data[:at], None, *data[at + 1 :]), index):
        raise OpValueError(f"operator _take_lanes: index has shape {infer.show(index)} but data {infer.show(data)}; "
                           f"expected equal shapes but for axis {at}")  # fmt: skip
    return index


_taking(take_lanes, take_lanes_grad, _lanes_forward, _lane_span, "clip")


@kernel(name="_contrib_boolean_mask", aliases=("_npi_boolean_mask",))
def boolean_mask(data, index, *, axis: int = 0):
    """Take the parts of the data along an axis at which `index` is not zero.

    The size of the result depends on values: in a symbol, it can only be an output.

    Parameters
    ----------
    index : NDArray or Symbol
        A vector as long as the axis.

    >>> x = mx.nd.array([[1, 2], [3, 4], [5, 6]])
    >>> mx.nd.contrib.boolean_mask(x, mx.nd.array([0, 1, 1])).asnumpy().tolist()
    [[3.0, 4.0], [5.0, 6.0]]
    """


@kernel(name="_boolean_mask_grad", shape_only=(2,))
def boolean_mask_grad(head, index, like, *, axis: int = 0):
    """Put the parts of `head` to where `index` is not zero, in zeros like `like`: the gradient of ``boolean_mask``."""


def _mask_forward(data, index, *, axis):
    at = infer.normal_axis("boolean_mask", axis, len(data))
    if not infer.compatible(index, (data[at],)):
        raise OpValueError(f"operator boolean_mask: index has shape {infer.show(index)}; expected ({data[at]},), a vector "
                           f"as long as axis {at} of data of shape {infer.show(data)}")  # fmt: skip
    return (*data[:at], None, *data[at + 1 :])


def _nonzero(index):
    """Return the positions that are not zero, of an NDArray or of CuPy's."""
    if hasattr(index, "nonzero"):
        return (index != 0).nonzero()[0]
    from .._core.core import from_numpy

    return from_numpy(index.asnumpy().nonzero()[0])


def _mask_span(data, index, *, axis):
    return _take_span(data, index, axis=axis, mode="raise")


_taking(boolean_mask, boolean_mask_grad, _mask_forward, _mask_span, "raise", _nonzero)


@kernel(name="_boolean_mask_as", shape_only=(2,))
def boolean_mask_as(data, index, like, *, axis: int = 0):
    """``boolean_mask``, whose result is known to have the shape of `like`: its own gradient of the second order."""


both_ways(boolean_mask_as, lambda data, index, like, **params: like)
typed_by_first(boolean_mask_as)
_moves(boolean_mask_as, lambda inputs, out, params: (
    inputs[0], _nonzero(inputs[1]), _mask_span(inputs[0].shape, inputs[1].shape, **params), "raise", None),
    by_values=True, mode="raise")  # fmt: skip


@boolean_mask_as.gradient
def _(F, heads, inputs, outputs, *, axis):
    return [F._boolean_mask_grad(heads[0], inputs[1], inputs[0], axis=axis), None, None]


@boolean_mask_grad.gradient
def _(F, heads, inputs, outputs, *, axis):
    return [F._boolean_mask_as(heads[0], inputs[1], inputs[0], axis=axis), None, None]


@boolean_mask.size
def _(data, index, *, axis):
    at = axis % data.ndim
    return (*data.shape[:at], _nonzero(index).size, *data.shape[at + 1 :])


@composite
def batch_take(F, a, indices):
    """Take one element of each row of a matrix; ``pick`` does the same for any axis.

    >>> x = mx.nd.array([[1, 2], [3, 4], [5, 6]])
    >>> mx.nd.batch_take(x, mx.nd.array([0, 1, 0], dtype='int32')).asnumpy().tolist()
    [1.0, 4.0, 5.0]
    """
    return F.reshape_like(F.pick(a, indices, axis=-1), indices)


@batch_take.infer_types
def _(ins, outs):
    data, result = infer.same_type("batch_take", ["a", "output"], [ins[0], outs[0]])
    return [data, dtypes.INT32 if ins[1] == dtypes.UNKNOWN else ins[1]], [result]


@composite(aliases=("_contrib_SparseEmbedding", "_npx_embedding", "_sparse_Embedding"))
def Embedding(
    F, data, weight, *, input_dim: Count, output_dim: Count, dtype: DType = dtypes.FLOAT32, sparse_grad: bool = False,
    deterministic: bool = False,
):  # fmt: skip
    """Look up rows of a table (embedding lookup); indices out of range select the nearest row.

    Parameters
    ----------
    data : NDArray or Symbol
        Numbers of rows, of any shape and type.
    weight : NDArray or Symbol
        ``(input_dim, output_dim)``.
    dtype : str or type
        Type of the weight if it cannot be inferred.
    sparse_grad : bool
        The gradient of the weight holds the rows that were looked up, where a row_sparse array takes it:
        ``weight.attach_grad(stype='row_sparse')``.  It is dense in graphs and at higher orders.
    deterministic : bool
        Has no effect: the gradient is always deterministic.

    >>> table = mx.nd.array([[1, 2], [3, 4], [5, 6]])
    >>> mx.nd.Embedding(mx.nd.array([2, 0]), table, input_dim=3, output_dim=2).asnumpy().tolist()
    [[5.0, 6.0], [1.0, 2.0]]
    """
    return F.take(weight, data)


@Embedding.gradient
def _(F, heads, inputs, outputs, *, sparse_grad, **params):
    add = getattr(F, "rows_gradient", F._take_grad) if sparse_grad else F._take_grad
    return [None, add(heads[0], inputs[0], inputs[1])]


@Embedding.infer
def _(ins, outs, *, input_dim, output_dim, **params):
    names = ("weight", "expected by input_dim and output_dim")
    ins[1] = infer.same_shape("Embedding", names, [ins[1], (input_dim, output_dim)])[0]
    if ins[0] is not None:
        names = ("output", "expected by data and output_dim")
        outs = infer.same_shape("Embedding", names, [outs[0], (*ins[0], output_dim)])[:1]
    if outs[0] is not None:
        ins[0] = infer.same_shape("Embedding", ("data", "expected by the output"), [ins[0], outs[0][:-1]])[0]
    return ins, outs


@Embedding.infer_types
def _(ins, outs, *, dtype, **params):
    data = infer.same_type("Embedding", ("weight", "output"), [ins[1], outs[0]])[0]
    data = dtype if data == dtypes.UNKNOWN else data
    return [ins[0], data], [data]


# ---- by coordinates -------------------------------------------------------------------------------------------------
@kernel(aliases=("_npi_gather_nd", "_npx_gather_nd"))
def gather_nd(data, indices):
    """Take the parts of the data at given coordinates.

    Parameters
    ----------
    indices : NDArray or Symbol
        ``(m, ...)``: column by column, coordinates in the first `m` dimensions of the data.  Negative ones count from the
        end; beyond that, an index is an error.

    >>> x = mx.nd.array([[1, 2], [3, 4]])
    >>> mx.nd.gather_nd(x, mx.nd.array([[1, 0], [0, -1]])).asnumpy().tolist()
    [3.0, 2.0]
    """


@kernel(name="_gather_nd_grad", shape_only=(2,))
def gather_nd_grad(head, indices, like):
    """Add the parts of `head` up at their places in zeros like `like`: the gradient of ``gather_nd``."""


def _coordinates(name, data, indices):
    """Return how many dimensions the coordinates run over."""
    if len(indices) < 2:
        raise OpValueError(f"operator {name}: indices have shape {infer.show(indices)}; expected (m, ...), one column of "
                           "m coordinates for each part")  # fmt: skip
    m = indices[0]
    if m is not None and not 0 < m <= len(data):
        raise OpValueError(f"operator {name}: indices of shape {infer.show(indices)} hold {m} coordinates, the data "
                           f"have {len(data)} dimensions {infer.show(data)}")  # fmt: skip
    return m


def _gather_forward(data, indices):
    m = _coordinates("gather_nd", data, indices)
    return None if m is None else (*indices[1:], *data[m:])


def _gather_span(data, indices, **params):
    return Span(1, tuple(data[: indices[0]]), size_of(data[indices[0] :]))


_taking(gather_nd, gather_nd_grad, _gather_forward, _gather_span, "negative")


def _scattering(op, put):
    """Make `op` put parts at coordinates of zeros of a given shape."""

    @op.shape
    def _(data, indices, *, shape):
        m = _coordinates(op.name, shape, indices)
        wanted = (*indices[1:], *shape[m:])
        if data != wanted:
            raise OpValueError(f"operator {op.name}: data has shape {data}, expected {wanted} for indices of shape "
                               f"{indices} and shape={shape}")  # fmt: skip
        return shape

    both_ways(op, lambda data, indices, *, shape: shape)
    typed_by_first(op)
    _moves(
        op, lambda inputs, out, params: (*inputs, _gather_span(out.shape, inputs[1].shape), "negative", put), mode="negative"
    )
    op.gradient(lambda F, heads, inputs, outputs, *, shape: [F.gather_nd(heads[0], inputs[1]), None])


@kernel
def scatter_nd(data, indices, *, shape: Shape):
    """Write parts of the data to given coordinates of an array of zeros: the inverse of ``gather_nd``.

    Parameters
    ----------
    data : NDArray or Symbol
        One part for each column of `indices`.
    indices : NDArray or Symbol
        ``(m, ...)``, coordinates in the first `m` dimensions of the result.  Of several parts for one position the last
        stays; gradients take them for different places.
    shape : tuple of int
        Of the result.

    >>> places = mx.nd.array([[1, 0], [0, 1]])
    >>> mx.nd.scatter_nd(mx.nd.array([3, 2]), places, shape=(2, 2)).asnumpy().tolist()
    [[0.0, 2.0], [3.0, 0.0]]
    """


@kernel(name="_backward_gather_nd")
def scatter_add_nd(data, indices, *, shape: Shape):
    """Add the parts of the data up at given coordinates of zeros, as ``scatter_nd`` puts them.

    >>> places = mx.nd.array([[1, 1], [0, 0]])
    >>> mx.nd._internal._backward_gather_nd(mx.nd.array([3, 2]), places, shape=(2, 2)).asnumpy().tolist()
    [[0.0, 0.0], [5.0, 0.0]]
    """


_scattering(scatter_nd, "set")
_scattering(scatter_add_nd, "add")


@kernel(aliases=("_npx_one_hot",))
def one_hot(indices, *, depth: int, on_value: float = 1.0, off_value: float = 0.0, dtype: DType = dtypes.FLOAT32):
    """One-hot rows: `on_value` at the index, `off_value` elsewhere.

    Parameters
    ----------
    indices : NDArray or Symbol
        Of any shape and type; an index out of range gives a row without `on_value`.
    depth : int
        Length of the rows.

    >>> mx.nd.one_hot(mx.nd.array([1, 0, 3]), 3).asnumpy().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """


one_hot.infer_types(lambda ins, outs, *, dtype, **params: (ins, [dtype]))
one_hot.gradient(lambda F, heads, inputs, outputs, **params: [None])
both_ways(one_hot, lambda indices, *, depth, **params: None if indices is None else (*indices, depth),
          lambda out, indices, **params: out[:-1])  # fmt: skip


@one_hot.gpu
def _(xp, inputs, outputs, *, depth, on_value, off_value, dtype):
    from .._gpu.device import fill

    (index,), (out,) = inputs, outputs
    on_value, off_value = _cut(on_value, off_value, dtype)
    rows, at = out.reshape(index.size, depth), index.ravel()
    if at.dtype.kind not in "iub":
        at = xp.trunc(at.astype(xp.float64))
    fill(rows, off_value)
    rows[at.reshape(-1, 1) == xp.arange(depth)] = on_value


@one_hot.cpu(prepared=True)
def _(steps, inputs, outputs, *, depth, on_value, off_value, dtype):
    gather, (index,), (out,) = compiled("gather"), inputs, outputs
    index = steps.converted(index, index.dtype_code if gather.reads(index.dtype_code) else dtypes.FLOAT32)
    bits = [_bits(value, dtype) for value in _cut(on_value, off_value, dtype)]
    steps.work(gather.OneHot(index.dtype_code, dtypes.SIZES[dtype], index.size, depth, *bits), index, out)


def _bits(value, dtype):
    """Return the bits of an element, as a signed integer."""
    import numpy as np

    return int.from_bytes(np.full(1, value, dtypes.numpy_dtype(dtype)).tobytes(), sys.byteorder, signed=True)


def _cut(on_value, off_value, dtype):
    """Return the values as numbers of a type."""
    if dtype in dtypes.FLOATS:
        return on_value, off_value
    return [element(v, dtypes.numpy_dtype(dtype), "one_hot") for v in (on_value, off_value)]
