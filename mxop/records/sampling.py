"""Records of samples between pixels (``mxop/ops/sampling.py``), whose references have a matrix of weights for each axis."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal, record_of


# ---- samples ---------------------------------------------------------------------------------------------------------------
def weights(places, size, slope=False, unit=True, clamp=False):
    """Return the weights of the pixels of one axis at places, ``(*places, size)``."""
    scale, pixels = (size - 1) / 2 if unit else 1, np.arange(size)
    at = ((places + 1) * scale if unit else places)[..., None]
    below = np.floor(at)
    weights = (pixels == below) * (1 - at + below) + (pixels == below + 1) * (at - below)
    if slope:
        weights = ((pixels == below + 1.0) * 1.0 - (pixels == below)) * scale
    if clamp:
        weights = np.where(at >= size - 1, 0 if slope else pixels == size - 1, weights)
        weights = np.where((at < 0) | (at >= size), 0, weights)
    return weights


def _both(grid, size, down, across, **how):
    return weights(grid[:, 1], size[0], down, **how), weights(grid[:, 0], size[1], across, **how)


def _sampled(data, grid, down=False, across=False, **how):
    rows, columns = _both(grid, data.shape[2:], down, across, **how)
    return np.einsum("nijy,nijx,ncyx->ncij", rows, columns, data)


def _sampled_grad(head, grid, like, down=False, across=False, **how):
    rows, columns = _both(grid, like.shape[2:], down, across, **how)
    return np.einsum("nijy,nijx,ncij->ncyx", rows, columns, head)


def _slopes(head, data, grid, **how):
    return np.stack([(head * _sampled(data, grid, **{way: True}, **how)).sum(1) for way in ("across", "down")], 1)


# ---- grids -----------------------------------------------------------------------------------------------------------------
def _line(n):
    return np.linspace(-1, 1, n)


def _grid(data, transform_type, target_shape=()):
    if transform_type == "warp":
        height, width = data.shape[2:]
        steps = [2 / max(n - 1, 1) for n in (width, height)]
        return np.stack([data[:, 0] * steps[0] + _line(width), data[:, 1] * steps[1] + _line(height)[:, None]], 1)
    y, x = np.meshgrid(_line(target_shape[0]), _line(target_shape[1]), indexing="ij")
    return np.einsum("nij,jhw->nihw", data.reshape(-1, 2, 3), np.stack([x, y, np.ones_like(x)]))


def _transformed(data, loc, target_shape, **params):
    return _sampled(data, _grid(loc, "affine", target_shape))


# ---- records ---------------------------------------------------------------------------------------------------------------
def between(grid, sizes, unit=True):
    """Return places made of drawn numbers from 0 to 1: in the middle between pixels, and some outside of the image."""
    grid = grid.copy()
    for k, size in enumerate(sizes[::-1]):
        at = grid[:, k] * (size + 2) - 1.5
        at = np.floor(at) + 0.2 + 0.6 * (at - np.floor(at))
        grid[:, k] = at * 2 / max(size - 1, 1) - 1 if unit else at
    return grid


def _into_cells(data, loc):
    """Return maps to places that stay between the same pixels: inside of the first image, at a corner outside of the second."""
    if loc.ndim != 2 or loc.shape[1] != 6:
        return data, loc
    return data, 0.15 * loc + np.resize([[0, 0, 0.25, 0, 0, 0], [0, 0, -1.25, 0, 0, 1.33]], loc.shape)


def _placed(images, grid, unit):
    """Return a function that makes places of what is drawn for input `grid`; input `images` has their sizes."""

    def prepare(*arrays):
        found = list(arrays)
        if arrays[grid].ndim == arrays[images].ndim == 4 and arrays[grid].shape[1] == 2:
            found[grid] = between(arrays[grid], arrays[images].shape[2:], unit)
        return tuple(found)

    return prepare


_IMAGES, _PLACES, _FOUND = (2, 3, 4, 5), (2, 2, 3, 2), (2, 3, 3, 2)
#: Where pixels that are infinite meet the weight 0, the reference has NaN; tests/test_regions.py has what MXNet gives.
_INFINITE = {
    "special": "0 times an infinite pixel is NaN in the reference",
    "shapes back": "of images, their result has no size",
}
_HOW = [{}, {"clamp": True}, {"down": True}, {"across": True}, {"down": True, "across": True, "clamp": True}]
_AFFINE = {"transform_type": "affine", "target_shape": (3, 4)}
_TRANSFORM = {**_AFFINE, "sampler_type": "bilinear"}


def _record(reference, shapes, params, domain, images, grid, **details):
    return Record(
        reference, shapes=[shapes] * len(params), params=params, domain=domain, prepare=_placed(images, grid, True), dtypes="f",
        unchecked=_INFINITE, **details,
    )  # fmt: skip


_ONE, _UNIT = (-2, 2), (0, 1)
RECORDS: dict[str, Record] = {
    "_sampled": _record(
        _sampled, (_IMAGES, _PLACES), _HOW, (_ONE, _UNIT), 0, 1,
        refuses=[Refusal("grid has shape", shapes=(_IMAGES, (2, 3, 3, 2))), Refusal("floating-point", dtypes=("int32",) * 2)],
    ),
    "_sampled_grad": _record(
        _sampled_grad, (_FOUND, _PLACES, _IMAGES), _HOW, (_ONE, _UNIT, _ONE), 2, 1, grad_inputs=(0, 1),
    ),
    "_sampled_slopes": _record(_slopes, (_FOUND, _IMAGES, _PLACES), [{}, {"clamp": True}], (_ONE, _ONE, _UNIT), 1, 2),
    "BilinearSampler": _record(
        _sampled, (_IMAGES, _PLACES), [{}], (_ONE, _UNIT), 0, 1,
        refuses=[Refusal("grid has shape", shapes=(_IMAGES, (3, 2, 3, 2))), Refusal("expected 4", shapes=((2, 3, 4), _PLACES))],
    ),
    "GridGenerator": record_of(
        _grid, (_AFFINE, (2, 6)), ({**_AFFINE, "target_shape": (1, 3)}, (1, 6)), ({"transform_type": "warp"}, (2, 2, 3, 4)),
        ({"transform_type": "warp"}, (1, 2, 2, 1)), dtypes="f",
        refuses=[
            Refusal("two sizes above 0", params={"transform_type": "affine"}),
            Refusal("two sizes above 0", params={**_AFFINE, "target_shape": (3,)}),
            Refusal("data has shape", shapes=((2, 5),)),
            Refusal("data has shape", params={"transform_type": "warp"}, shapes=((2, 3, 3, 4),)),
        ],
    ),
    "SpatialTransformer": Record(
        _transformed, shapes=[(_IMAGES, (2, 6))], params=[_TRANSFORM], domain=(_ONE, (-0.35, 0.35)), dtypes="f",
        prepare=_into_cells,
        refuses=[Refusal("two sizes above 0", params={**_TRANSFORM, "target_shape": (0, 0)}),
                 Refusal("loc has shape", shapes=(_IMAGES, (2, 5)))],
        unchecked=_INFINITE,
    ),
}  # fmt: skip
