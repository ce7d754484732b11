"""Correlation of two feature maps: products of patches of one with displaced patches of the other.

The products of pixels are a compiled loop, and so are their gradients; for arrays on a GPU, the data are copied to the host and
the results back.
"""

from typing import Annotated

from ..opdef import F as formulas
from ..opdef import Of, Range, composite, elementwise, kernel
from ..opdef.dims import rule_of
from ..support.errors import OpValueError
from ._shared import Count, compiled, float_types, on_host

_Size = Annotated[int, Range(0)]
_MAPS = ("batch", "channels", "height", "width")


# ---- products of pixels ----------------------------------------------------------------------------------------------------
@kernel(name="_displaced_products")
def displaced_products(data1, data2, *, limit: _Size, step: Count, stride: Count):
    """Multiply maps at places that are `limit` from the edges with displaced places, and sum over channels.

    Displacements are multiples of `step` up to `limit`, row by row; places are `stride` apart.

    >>> x = mx.nd.array([[[[1, 2, 4]] * 3]])
    >>> mx.nd._internal._displaced_products(x, x, limit=1, step=1, stride=1).asnumpy().ravel().tolist()
    [2.0, 4.0, 8.0, 2.0, 4.0, 8.0, 2.0, 4.0, 8.0]
    """


@kernel(name="_displaced_products_grad", shape_only=(2,))
def displaced_products_grad(head, other, like, *, limit: _Size, step: Count, stride: Count, displaced: bool = False):
    """Gradient of ``_displaced_products`` with respect to one of the maps, displaced or not; `other` is the other one."""


def _places(op, limit, step, stride):
    """Return the dimensions of results of maps of some height and width."""

    def there(n):
        if n < 2 * limit + 1:
            raise OpValueError(f"operator {op}: maps of size {n}, padded, have no place {limit} from both edges")
        return (n - 2 * limit - 1) // stride + 1

    return (2 * (limit // step) + 1) ** 2, *(Of(name, there, lambda n: None) for name in ("height", "width"))


def _products_dims(one, other, bins, output="", /, *, limit, step, stride, **params):
    found = ("batch", *_places("_displaced_products", limit, step, stride))
    return {one: _MAPS, other: _MAPS, output: _MAPS, bins: found}


displaced_products.infer(rule_of(displaced_products, lambda **params: _products_dims("data1", "data2", "output", **params)))
displaced_products_grad.infer(
    rule_of(displaced_products_grad, lambda **params: _products_dims("like", "other", "head", "output", **params))
)
float_types(displaced_products)
float_types(displaced_products_grad)


def _runs(op, name):
    @on_host(op)
    def _(np, inputs, outputs, **params):
        found = np.zeros(outputs[0].shape, inputs[0].dtype)
        getattr(compiled("correlation"), name)(*inputs[:2], *params.values(), found)
        outputs[0][...] = found


_runs(displaced_products, "multiply")
_runs(displaced_products_grad, "spread")


@displaced_products.gradient
def _(F, heads, inputs, outputs, **how):
    (one, other), (head,) = inputs, heads
    return [lambda: F._displaced_products_grad(head, other, one, **how),
            lambda: F._displaced_products_grad(head, one, other, displaced=True, **how)]  # fmt: skip


@displaced_products_grad.gradient
def _(F, heads, inputs, outputs, *, displaced, **how):
    (head, other, _), (new,) = inputs, heads
    return [lambda: F._displaced_products(*((other, new) if displaced else (new, other)), **how),
            lambda: F._displaced_products_grad(head, new, other, displaced=not displaced, **how), None]  # fmt: skip


@elementwise(name="_distance", rule=lambda g, a, b, out: (formulas.where(a >= b, g, -g), formulas.where(a >= b, -g, g)))
def distance(a, b):
    """Absolute value of a difference; where it is 0, the slope is that of ``a - b``, as in MXNet."""
    return formulas.abs(a - b)


def _displaced_distances(F, one, other, limit, step, stride):
    """Return what ``_displaced_products`` does, with distances in place of products: one call for each displacement."""
    height, width = (n - 2 * limit for n in one.shape[2:])

    def part(data, down, right):
        ends = {"begin": (None, None, down, right), "end": (None, None, down + height, right + width)}
        return F.slice(data, step=(None, None, stride, stride), **ends)

    one = part(one, limit, limit)
    moves = [limit + k * step for k in range(-(limit // step), limit // step + 1)]
    parts = [part(other, down, right) for down in moves for right in moves]
    return F.concat(*[F.sum(F._distance(one, each), axis=1, keepdims=True) for each in parts], dim=1)


# ---- patches -----------------------------------------------------------------------------------------------------------------
@float_types
@composite
def Correlation(
    F, data1, data2, *, kernel_size: Count = 1, max_displacement: _Size = 1, stride1: Count = 1, stride2: Count = 1,
    pad_size: _Size = 0, is_multiply: bool = True,
):  # fmt: skip
    """Compare each patch of a feature map with displaced patches of another one (FlowNet: Dosovitskiy et al., 2015).

    Patches are multiplied element by element; the result is the mean over their elements and channels.

    Parameters
    ----------
    data1, data2 : NDArray or Symbol
        ``(batch, channels, height, width)``, of a floating-point type.
    kernel_size : int
        Height and width of a patch, an odd number.
    max_displacement : int
        By how many pixels patches are displaced at most, in each direction.
    stride1 : int
        The distance of patches.
    stride2 : int
        The distance of displacements.
    pad_size : int
        How many zeros are added on each side of the maps.
    is_multiply : bool
        Whether patches are multiplied; otherwise it is the absolute value of their difference.

    Returns
    -------
    NDArray or Symbol
        ``(batch, (2 * (max_displacement // stride2) + 1) ** 2, new height, new width)``.

    >>> x = mx.nd.array([[[[1, 2, 4]]]])
    >>> mx.nd.Correlation(x, x, pad_size=1).asnumpy()[0, 3:6].tolist()
    [[[0.0, 2.0, 8.0]], [[1.0, 4.0, 16.0]], [[2.0, 8.0, 0.0]]]
    """
    if pad_size:
        widths = (0, 0, 0, 0, *(pad_size,) * 4)
        data1, data2 = (F.Pad(x, mode="constant", pad_width=widths) for x in (data1, data2))
    one_pixel = kernel_size == 1
    how = {"limit": max_displacement, "step": stride2, "stride": stride1 if one_pixel else 1}
    found = F._displaced_products(data1, data2, **how) if is_multiply else _displaced_distances(F, data1, data2, **how)
    if not one_pixel:
        found = F.Pooling(found, kernel=(kernel_size,) * 2, stride=(stride1,) * 2, pool_type="sum")
    return found / (kernel_size**2 * max(data1.shape[1], 1))


@Correlation.dims
def _(*, kernel_size, max_displacement, stride1, stride2, pad_size, is_multiply):
    if kernel_size % 2 == 0:
        raise OpValueError(f"operator Correlation: kernel_size={kernel_size}; expected an odd number")
    border = max_displacement + kernel_size // 2

    def there(n):
        if n + 2 * pad_size <= 2 * border:
            raise OpValueError(f"operator Correlation: maps of size {n} and pad_size={pad_size} have no patch of kernel_size="
                               f"{kernel_size} that may be displaced by max_displacement={max_displacement}")  # fmt: skip
        return (n + 2 * pad_size - 2 * border - 1) // stride1 + 1

    size = (Of(name, there, lambda n: None) for name in ("height", "width"))
    found = ("batch", (2 * (max_displacement // stride2) + 1) ** 2, *size)
    return {"data1": _MAPS, "data2": _MAPS, "output": found}
