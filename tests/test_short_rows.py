"""Sums and extremes of short rows, of which several are combined at once: the bits of a row alone, in every instruction set."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from comparing import path_of

import mxop as mx

WIDTHS = (1, 7, 8, 9, 15, 16, 17, 31, 33, 47, 48, 63, 64, 65, 79, 100, 127, 128, 131, 200, 511, 512)
ROWS = (1, 7, 8, 15, 16, 17, 40)
COMBINED = ("sum", "max", "min")


def rows_of(rows, width):
    x = np.random.default_rng(width).standard_normal((rows, width)).astype("float32")
    return x * np.float32(10) ** np.arange(rows, dtype="float32")[:, None] if rows < 20 else x


def combined(name, x):
    return getattr(mx.nd, name)(mx.nd.array(x), axis=1).asnumpy()


@pytest.mark.parametrize("name", COMBINED)
def test_several_rows_are_combined_at_once(name):
    symbol = getattr(mx.sym, name)(mx.sym.Variable("x"), axis=1)
    for shape in itertools.product(ROWS, WIDTHS):
        assert path_of(symbol, x=shape) == ["ReductionRun, several rows"], shape


@pytest.mark.parametrize("name", COMBINED)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_row_does_not_depend_on_its_neighbours(level, name, width):
    for rows in ROWS:
        x = rows_of(rows, width)
        alone = np.concatenate([combined(name, row[None]) for row in x])
        np.testing.assert_array_equal(combined(name, x), alone)
        reference = getattr(np, name)(x.astype("float64"), axis=1)
        magnitude = np.abs(x.astype("float64")).sum(axis=1)
        assert (np.abs(alone - reference) <= 1e-6 * magnitude).all()


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("width", [16, 17, 33, 64, 100, 511])
def test_a_nan_is_found_at_every_place_and_in_its_row_only(level, name, width):
    for place in range(width):
        x = rows_of(33, width)
        x[place % 33, place] = np.nan
        wanted = getattr(np, name)(x, axis=1)
        np.testing.assert_array_equal(combined(name, x), wanted)


@pytest.mark.parametrize("name", ["max", "min"])
def test_infinities(level, name):
    x = rows_of(40, 50)
    x[::3] = np.inf
    x[1::3] = -np.inf
    np.testing.assert_array_equal(combined(name, x), getattr(np, name)(x, axis=1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
@pytest.mark.parametrize("width", [1, 5, 16, 17, 31, 33, 63, 64, 65, 100, 127, 128, 129, 200, 257, 513])
def test_the_first_of_the_best_is_found_wherever_it_is(level, dtype, width):
    x = np.random.default_rng(width).integers(3, 100, (2 * width, width)).astype(dtype)
    for place in range(width):  # one; and several, in a row whose neighbours differ
        x[place, place] = 120
        x[width + place, place:] = 120
    for turned in (x, 130 - x):
        given = mx.nd.array(turned, dtype=dtype)
        np.testing.assert_array_equal(mx.nd.argmax(given, axis=1).asnumpy(), turned.argmax(1).astype(dtype))
        np.testing.assert_array_equal(mx.nd.argmin(given, axis=1).asnumpy(), turned.argmin(1).astype(dtype))
    if "float" in dtype:
        for place in range(width):
            x[place, place:] = np.nan
        given = mx.nd.array(x, dtype=dtype)
        np.testing.assert_array_equal(mx.nd.argmax(given, axis=1).asnumpy(), np.argmax(x, 1))
        np.testing.assert_array_equal(mx.nd.argmin(given, axis=1).asnumpy(), np.argmin(x, 1))


def test_all_sets_have_the_same_bits(levels):
    found = [[combined(name, rows_of(40, width)) for name in COMBINED for width in WIDTHS] for _ in levels]
    for others in zip(*found, strict=True):
        for other in others[1:]:
            np.testing.assert_array_equal(other, others[0])


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int32", "int8", "int64", "float16"])
@pytest.mark.parametrize("shape", [(1, 5), (7, 3), (8, 100), (17, 13), (3, 9, 11), (100, 1), (16, 1)])
def test_running_sums_of_rows_abreast_are_those_of_each(shape, dtype):
    a = (np.random.default_rng(0).random(shape) * 50).astype(dtype)
    added = np.float32 if dtype == "float16" else a.dtype
    for axis in range(a.ndim):
        found = mx.nd.cumsum(mx.nd.array(a, dtype=dtype), axis=axis).asnumpy()
        np.testing.assert_array_equal(found, np.cumsum(a.astype(added), axis=axis, dtype=added).astype(dtype))


@pytest.mark.parametrize("name", ["BilinearResize2D", "AdaptiveAvgPooling2D"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lines_of_an_image_are_resized_alike_alone_and_abreast(name, dtype):
    def resized(x, width):
        x, height = mx.nd.array(x, dtype=dtype), x.shape[2]
        sizes = {"height": height, "width": width} if name == "BilinearResize2D" else {"output_size": (height, width)}
        return getattr(mx.nd.contrib, name)(x, **sizes).asnumpy()

    for rows, width in ((1, 9), (7, 4), (8, 9), (19, 5)):
        x = np.random.default_rng(rows).standard_normal((2, 3, rows, width))
        for wide in (2 * width, 3):
            alone = np.concatenate([resized(x[:, :, k : k + 1], wide) for k in range(rows)], axis=2)
            np.testing.assert_array_equal(resized(x, wide), alone)
