"""Counting and comparing: histogram, allclose, isnan.  Their gradients are zero."""

import math

from ..opdef import F, Floats, composite, elementwise, infer, kernel
from ..support import dtypes
from ..support.errors import OpValueError
from ._shared import on_both, zero_gradient


# ---- histograms --------------------------------------------------------------------------------------------------------
@kernel(
    name="_histogram", aliases=("_npi_histogram",), num_outputs=2,
    active_inputs=lambda *, bin_cnt, **params: ("data", "bins") if bin_cnt is None else ("data",),
)  # fmt: skip
def histogram(data, bins, *, bin_cnt: int | None = None, range: Floats | None = None):
    """Count the numbers in each of some bins, as int64; ``mx.nd.histogram`` calls it.

    The last bin holds its upper edge, too.  NaN, and what is outside, is in none.

    Parameters
    ----------
    bins : NDArray or Symbol
        The edges of the bins, from the least to the largest; only without `bin_cnt`.
    bin_cnt : int, optional
        How many bins, equally wide, there are between the limits `range`.

    Returns
    -------
    counts, edges : tuple of NDArray or Symbol

    >>> counts, edges = mx.nd._internal._histogram(mx.nd.array([0, 1, 3, 4]), bin_cnt=2, range=(0, 4))
    >>> counts.asnumpy().tolist(), edges.asnumpy().tolist()
    ([2, 2], [0.0, 2.0, 4.0])
    """


@histogram.infer
def _(ins, outs, *, bin_cnt, range):
    if bin_cnt is not None:
        if bin_cnt < 1 or range is None or len(range) != 2 or not range[0] < range[1]:
            raise OpValueError(f"operator _histogram: bin_cnt={bin_cnt}, range={range}; expected at least one bin, and "
                               "range=(least, largest)")  # fmt: skip
        n = bin_cnt
    else:
        edges = ins[1]
        if edges is not None and (len(edges) != 1 or (edges[0] is not None and edges[0] < 2)):
            raise OpValueError(f"operator _histogram: bins has shape {infer.show(edges)}; expected a vector of at least two "
                               "edges")  # fmt: skip
        n = None if edges is None or edges[0] is None else edges[0] - 1
    shapes = [(n,), (None if n is None else n + 1,)]
    return ins, [infer.same_shape("_histogram", (name, "the number of bins"), [s, f])[0]
                 for name, s, f in zip(("counts", "edges"), outs, shapes, strict=True)]  # fmt: skip


histogram.infer_types(lambda ins, outs, **params: (ins, [dtypes.INT64, ins[-1]]))
zero_gradient(histogram)


@on_both(histogram, waits="the range of the data")
def _(xp, inputs, outputs, *, bin_cnt, range):
    data = inputs[0].ravel().astype(xp.float64)
    edges = inputs[1].astype(xp.float64) if bin_cnt is None else xp.linspace(*range, bin_cnt + 1)
    if bool((edges[1:] < edges[:-1]).any()):
        raise OpValueError("operator _histogram: bins are not in order, from the least to the largest")
    data = data[(data >= edges[0]) & (data <= edges[-1])]  # NaN goes, too
    outputs[0][...] = xp.histogram(data, edges if bin_cnt is None else bin_cnt, None if bin_cnt is None else range)[0]
    whole = outputs[1].dtype.kind in "iu"  # from a negative number, only from whole ones is the way to unsigned ones defined
    outputs[1][...] = edges.astype(xp.int64) if whole else edges


# ---- what is no number -------------------------------------------------------------------------------------------------
def _classified(name, summary, examples):
    """Decorate a formula that tells what kind of number an element is, as 1 or 0 in its type."""

    def decorate(function):
        function.__doc__ = f"""1 where the data are {summary}, 0 elsewhere, in their type.

        >>> mx.nd.contrib.{name}(mx.nd.array([1, float("inf"), float("nan")])).asnumpy().tolist()
        {examples}
        """
        return elementwise(function, name="_contrib_" + name, rule=lambda g, data, out: None)

    return decorate


@_classified("isnan", "NaN", "[0.0, 0.0, 1.0]")
def isnan(data):
    return F.where(data != data, 1, 0)


@_classified("isinf", "infinite", "[0.0, 1.0, 0.0]")
def isinf(data):
    return F.where(F.abs(data) == math.inf, 1, 0)


@_classified("isfinite", "finite numbers", "[1.0, 0.0, 0.0]")
def isfinite(data):
    return F.where(F.abs(data) < math.inf, 1, 0)


# ---- closeness ---------------------------------------------------------------------------------------------------------
@elementwise(
    name="_is_close", out_dtype=lambda *types, **params: dtypes.UINT8,
    rule=lambda g, a, b, out, **params: (None, None),
)  # fmt: skip
def is_close(a, b, *, rtol: float, atol: float, equal_nan: bool):
    """Whether numbers are close: equal, or at most ``atol + rtol * abs(b)`` away from finite `b`."""
    near = F.abs(a - b) <= atol + rtol * F.abs(b)
    close = F.where(F.abs(b) < math.inf, F.where(near, 1, 0), F.where(a == b, 1, 0))
    if equal_nan:
        close = F.where(F.isnan(a), F.where(F.isnan(b), 1, 0), close)
    return close


@composite(name="_contrib_allclose")
def allclose(F, a, b, *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = True):
    """Whether all elements are close, as 1 or 0 of uint8: at most ``atol + rtol * abs(b)`` apart.

    An infinity is close to itself only.

    Parameters
    ----------
    a, b : NDArray or Symbol
        Of one shape.
    equal_nan : bool
        Whether two NaN are close.

    >>> x = mx.nd.array([1, float("nan")])
    >>> mx.nd.contrib.allclose(x, x).item(), mx.nd.contrib.allclose(x, x, equal_nan=False).item()
    (1, 0)
    """
    close = F.prod(F._is_close(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan))  # of nothing it is 1
    return F._getitem(close, key="0") if close.shape else close  # MXNet's has no dimensions, whatever shapes mean


allclose.infer_types(lambda ins, outs, **params: (infer.same_type("_contrib_allclose", ["a", "b"], ins), [dtypes.UINT8]))
