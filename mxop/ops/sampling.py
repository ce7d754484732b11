"""Images sampled at places between their pixels, and the grids of such places.

The operator that samples may give its derivatives in place of values, and so may its gradient: with these two, and the slopes
along the grid, all orders follow.
"""

from typing import Literal

from ..opdef import Shape, composite, kernel
from ..opdef.dims import rule_of
from ._shared import device_of, flat, float_types, in_loops, loops, two_sizes

_DATA, _GRID = ("batch", "channels", "height", "width"), ("batch", 2, "down", "across")
_FOUND = ("batch", "channels", "down", "across")


# ---- samples ---------------------------------------------------------------------------------------------------------------
@kernel(name="_sampled")
def sampled(data, grid, *, down: bool = False, across: bool = False, unit: bool = True, clamp: bool = False):
    """Interpolate images at places, of which the grid ``(batch, 2, ...)`` has x and y, or find the derivatives of that.

    With `unit`, -1 and 1 are the first and the last pixel.  With `clamp`, places from 0 to before the size are between pixels
    or at the last one, and all others give 0; otherwise the image is surrounded by pixels that are 0.

    >>> x, grid = mx.nd.array([[[[1, 2, 4]]]]), mx.nd.array([[[[-1, 0.5]], [[0, 0]]]])
    >>> mx.nd._internal._sampled(x, grid).asnumpy().tolist()
    [[[[1.0, 3.0]]]]
    """


@kernel(name="_sampled_grad", shape_only=(2,))
def sampled_grad(head, grid, like, *, down: bool = False, across: bool = False, unit: bool = True, clamp: bool = False):
    """Add elements up in images of the shape of `like`, at the pixels that ``_sampled`` reads: its gradient."""


@kernel(name="_sampled_slopes")
def sampled_slopes(head, data, grid, *, unit: bool = True, clamp: bool = False):
    """Sum up derivatives of ``_sampled`` with respect to the grid, times its head gradients."""


def _table(op, **dims):
    op.infer(rule_of(op, lambda **params: dims))
    float_types(op)


_table(sampled, data=_DATA, grid=_GRID, output=_FOUND)
_table(sampled_grad, head=_FOUND, grid=_GRID, like=_DATA, output=_DATA)
_table(sampled_slopes, head=_FOUND, data=_DATA, grid=_GRID, output=_GRID)


def _runs(op, name):
    """Let the loop of that name compute an operator; only images have four dimensions there."""

    @in_loops(op)
    def _(xp, inputs, outputs, **params):
        images = {"sample": (0,), "scatter": (), "slopes": (1,)}[name]
        given = [a if k in images else flat(a) for k, a in enumerate(inputs[: 3 if name == "slopes" else 2])]
        # the result is the loop's own array only where that has another type
        own = outputs[0].dtype == given[0].dtype and outputs[0].flags.c_contiguous
        found = outputs[0] if own else xp.empty(outputs[0].shape, given[0].dtype)
        if name == "scatter" or not all(a.size for a in given):
            found[...] = 0
        how = (*params.values(), found if name == "scatter" else flat(found))
        getattr(loops(xp, "sampling"), name)(*given, *how)
        if not own:
            outputs[0][...] = found


_runs(sampled, "sample")
_runs(sampled_grad, "scatter")
_runs(sampled_slopes, "slopes")


def _along_grid(F, head, data, grid, down, across, unit, clamp):
    """Return the gradient with respect to the grid of samples, or of their derivatives, of data times the head."""
    how = {"unit": unit, "clamp": clamp}
    if not down and not across:
        return F._sampled_slopes(head, data, grid, **how)
    if down and across:  # linear between pixels
        return F.zeros_like(grid)
    mixed = F.sum(head * F._sampled(data, grid, down=True, across=True, **how), axis=1, keepdims=True)
    return F.concat(*((mixed, F.zeros_like(mixed)) if down else (F.zeros_like(mixed), mixed)), dim=1)


@sampled.gradient
def _(F, heads, inputs, outputs, **params):
    (data, grid), (head,) = inputs, heads
    return [lambda: F._sampled_grad(head, grid, data, **params), lambda: _along_grid(F, head, data, grid, **params)]


@sampled_grad.gradient
def _(F, heads, inputs, outputs, **params):
    (head, grid, _), (new,) = inputs, heads
    return [lambda: F._sampled(new, grid, **params), lambda: _along_grid(F, head, new, grid, **params), None]


@sampled_slopes.gradient
def _(F, heads, inputs, outputs, **how):
    (head, data, grid), (new,) = inputs, heads
    x, y = (F.slice_axis(new, axis=1, begin=k, end=k + 1) for k in (0, 1))

    def along_both(by_x, by_y):
        return by_x(across=True, **how) + by_y(down=True, **how)

    def of_grid():
        mixed = F.sum(head * F._sampled(data, grid, down=True, across=True, **how), axis=1, keepdims=True)
        return F.concat(mixed * y, mixed * x, dim=1)

    return [
        lambda: (
            F.broadcast_mul(F._sampled(data, grid, across=True, **how), x)
            + F.broadcast_mul(F._sampled(data, grid, down=True, **how), y)
        ),
        lambda: (
            F._sampled_grad(F.broadcast_mul(head, x), grid, data, across=True, **how)
            + F._sampled_grad(F.broadcast_mul(head, y), grid, data, down=True, **how)
        ),
        of_grid,
    ]


@composite
def BilinearSampler(F, data, grid, *, cudnn_off: bool | None = None):
    """Sample images at the places of a grid, by linear interpolation between pixels; the pixels around an image are 0.

    Parameters
    ----------
    data : NDArray or Symbol
        Images, ``(batch, channels, height, width)``, of a floating-point type.
    grid : NDArray or Symbol
        ``(batch, 2, new height, new width)``: x and y, -1 for the first pixel and 1 for the last one.

    Returns
    -------
    NDArray or Symbol
        ``(batch, channels, new height, new width)``.

    >>> x, grid = mx.nd.array([[[[1, 2, 4]]]]), mx.nd.array([[[[-1, 0.5, 1.5]], [[0, 0, 0]]]])
    >>> mx.nd.BilinearSampler(x, grid).asnumpy().tolist()
    [[[[1.0, 3.0, 2.0]]]]
    """
    return F._sampled(data, grid)


BilinearSampler.dims(lambda **params: {"data": _DATA, "grid": _GRID, "output": _FOUND})
float_types(BilinearSampler)


# ---- grids -----------------------------------------------------------------------------------------------------------------
def numbers(F, like, n, start=0.0, step=1.0):
    """Return ``start + i * step`` for `n` places, on the device of an array and of its type."""
    found = F._arange(start=0, stop=n, dtype=like.dtype, ctx=device_of(like))
    return found * step + start


def _step(n):
    """Return the distance of the pixels of a row from -1 to 1; that of a single pixel does not matter."""
    return 2 / max(n - 1, 1)


@float_types
@composite
def GridGenerator(F, data, *, transform_type: Literal["affine", "warp"], target_shape: Shape = (0, 0)):
    """Grid of places at which ``BilinearSampler`` samples images.

    Parameters
    ----------
    data : NDArray or Symbol
        For ``affine``: ``(batch, 6)``, rows of the matrices that map x, y and 1 to places, of a floating-point type.  For
        ``warp``: ``(batch, 2, height, width)``, by how many pixels x and y are moved.
    transform_type : {'affine', 'warp'}
        What the data are.
    target_shape : tuple of int
        For ``affine``: height and width of the grid.

    Returns
    -------
    NDArray or Symbol
        ``(batch, 2, height, width)``: x and y, -1 for the first pixel and 1 for the last one.  A single pixel is at -1.

    >>> shift = mx.nd.array([[1, 0, 0.5, 0, 1, 0]])
    >>> mx.nd.GridGenerator(shift, transform_type='affine', target_shape=(1, 3)).asnumpy().tolist()
    [[[[-0.5, 0.5, 1.5]], [[-1.0, -1.0, -1.0]]]]
    """
    if transform_type == "warp":
        height, width = data.shape[2:]
        x, y = (F.slice_axis(data, axis=1, begin=k, end=k + 1) for k in (0, 1))
        x = F.broadcast_add(x, F.reshape(numbers(F, data, width), shape=(1, 1, 1, width))) * _step(width) - 1
        y = F.broadcast_add(y, F.reshape(numbers(F, data, height), shape=(1, 1, height, 1))) * _step(height) - 1
        return F.concat(x, y, dim=1)
    height, width = two_sizes("GridGenerator", "target_shape", target_shape)
    x = F.reshape(numbers(F, data, width, -1, _step(width)), shape=(1, 1, width))
    y = F.reshape(numbers(F, data, height, -1, _step(height)), shape=(1, height, 1))
    x, y = F.broadcast_to(x, shape=(1, height, width)), F.broadcast_to(y, shape=(1, height, width))
    places = F.reshape(F.concat(x, y, F.ones_like(x), dim=0), shape=(3, height * width))
    return F.reshape(F.dot(F.reshape(data, shape=(-1, 3)), places), shape=(-1, 2, height, width))


@GridGenerator.dims
def _(*, transform_type, target_shape):
    if transform_type == "warp":
        return {"data": _GRID, "output": _GRID}
    return {"data": ("batch", 6), "output": ("batch", 2, *two_sizes("GridGenerator", "target_shape", target_shape))}


@float_types
@composite
def SpatialTransformer(F, data, loc, *, target_shape: Shape = (0, 0), transform_type: Literal["affine"],
                       sampler_type: Literal["bilinear"], cudnn_off: bool | None = None):  # fmt: skip
    """Sample images at places that affine maps give (Spatial transformer networks: Jaderberg et al., 2015).

    It is ``GridGenerator`` of `loc`, then ``BilinearSampler``.

    Parameters
    ----------
    data : NDArray or Symbol
        Images, ``(batch, channels, height, width)``, of a floating-point type.
    loc : NDArray or Symbol
        ``(batch, 6)``: the rows of the matrices that map x, y and 1, of each new pixel, to the place of its sample.
    target_shape : tuple of int
        The new height and width.

    >>> shift, how = mx.nd.array([[1, 0, 1, 0, 1, 0]]), {"transform_type": "affine", "sampler_type": "bilinear"}
    >>> mx.nd.SpatialTransformer(mx.nd.array([[[[1, 2, 4]]]]), shift, target_shape=(1, 3), **how).asnumpy().tolist()
    [[[[2.0, 4.0, 0.0]]]]
    """
    return F._sampled(data, F.GridGenerator(loc, transform_type="affine", target_shape=target_shape))


@SpatialTransformer.dims
def _(*, target_shape, **params):
    size = two_sizes("SpatialTransformer", "target_shape", target_shape)
    return {"data": _DATA, "loc": ("batch", 6), "output": ("batch", "channels", *size)}
