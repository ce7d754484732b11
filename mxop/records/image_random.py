"""Records of random changes of images (``mxop/ops/image_random.py``), by parameters that leave nothing to chance.

What is drawn, and what MXNet 1.9.1 gives, stands in ``tests/test_image.py``.
"""

from __future__ import annotations

import numpy as np

from . import Record, Refusal
from .random import seeded

_LIGHT = np.array([0.299, 0.587, 0.114])
_COMPONENTS = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])


def _grey(data):
    return (data * _LIGHT).sum(axis=-1, keepdims=True) if data.shape[-1] == 3 else data


def _bytes(data, found):
    """Return results as bytes hold them, where the data are bytes."""
    return np.clip(found, 0, 255) if data.dtype == np.uint8 else found


def _brighter(data, min_factor, max_factor):
    return _bytes(data, data * min_factor)


def _contrasted(data, min_factor, max_factor):
    return _bytes(data, data * min_factor + (1 - min_factor) * _grey(data).mean(axis=(-3, -2, -1), keepdims=True))


def _saturated(data, min_factor, max_factor):
    return _bytes(data, data * min_factor + (1 - min_factor) * _grey(data) if data.shape[-1] == 3 else data)


def _hue_turned(red, green, blue, turn):
    """Return colours whose hue is turned, from the share of each channel at each hue."""
    red, green, blue = (np.asarray(channel, float) for channel in (red, green, blue))
    high, low = np.maximum(np.maximum(red, green), blue), np.minimum(np.minimum(red, green), blue)
    apart = np.where(high == low, 1, high - low)
    hue = np.where(
        high == red, (green - blue) / apart, np.where(high == green, (blue - red) / apart + 2, (red - green) / apart + 4)
    )
    return [low + (high - low) * np.clip(np.abs((hue + 6 * turn - place) % 6 - 3) - 1, 0, 1) for place in (0, 2, 4)]


def _hue(data, min_factor, max_factor):
    if data.shape[-1] == 1:
        return data
    return _bytes(data, np.stack(_hue_turned(*np.moveaxis(data, -1, 0), min_factor), axis=-1))


def _lit(data, alpha):
    return _bytes(data, data + _COMPONENTS @ (np.array(alpha) * [55.46, 4.794, 1.148]) if data.shape[-1] == 3 else data)


def _factors(reference, factor, **more):
    """Return the record of an operator that draws a factor."""
    params = {"min_factor": factor, "max_factor": factor}
    bad = [Refusal("expected an image", shapes=((2, 3),)), Refusal("4 channels", shapes=((2, 3, 4),)),
           Refusal("min_factor=-1", params={"min_factor": -1.0, "max_factor": 1.0})]  # fmt: skip
    return Record(reference, params=[params], refuses=bad, **_DRAWS, **more)


_DRAWS = {"shapes": [((2, 3, 3),), ((2, 3, 2, 3),), ((2, 2, 1),)], "seed": seeded, "domain": (0, 100), "order": 1}
_NO_CHANCE = Refusal("expected an image", shapes=((2, 3),))
_STILL = {"brightness": 0.0, "contrast": 0.0, "saturation": 0.0, "hue": 0.0}
_ROUNDED = "numbers beyond 0...255 have no hue"

RECORDS: dict[str, Record] = {
    "_image_random_brightness": _factors(_brighter, 0.5),
    "_image_random_contrast": _factors(_contrasted, 1.75, exact_integer=False),  # sums of float32
    "_image_random_saturation": _factors(_saturated, 1.75, exact_integer=False),
    "_image_random_hue": _factors(_hue, 0.125, exact_integer=False, unchecked={"special": _ROUNDED}, tolerance=20),
    "_hue_turned": Record(
        _hue_turned, domain=((200, 240), (90, 110), (10, 40), (0.02, 0.05)), dtypes="l", order=1,
        unchecked={"special": _ROUNDED}, tolerance=20,  # of float32, the largest channel has the last bit
    ),
    "_image_random_color_jitter": Record(
        lambda data, **_: data, params=[_STILL, {**_STILL, "brightness": 1e-15}],
        refuses=[Refusal("4 channels", shapes=((2, 3, 4),), params=_STILL)],
        **{**_DRAWS, "shapes": [((2, 3, 3),), ((2, 3, 2, 1),)]},
    ),
    "_image_adjust_lighting": Record(
        _lit, params=[{"alpha": (0.1, 0.2, -0.3)}], shapes=_DRAWS["shapes"], domain=(0, 100), exact_integer=False,
        refuses=[Refusal("three numbers", params={"alpha": (0.1, 0.2)}),
                 Refusal("4 channels", shapes=((2, 3, 4),), params={"alpha": (0.0, 0.0, 0.0)})],
    ),
    "_image_random_lighting": Record(
        lambda data, **_: data, params=[{"alpha_std": 0.0}], refuses=[Refusal("4 channels", shapes=((2, 3, 4),))], **_DRAWS,
    ),
    **{f"_image_random_flip_{how}": Record(
        lambda data: data, **{**_DRAWS, "shapes": [((1, 1, 3),), ((2, 1, 1, 1),)]}, refuses=[_NO_CHANCE],
    ) for how in ("left_right", "top_bottom")},
}  # fmt: skip
