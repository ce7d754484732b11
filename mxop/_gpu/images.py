"""CUDA kernels that sample images, reduce regions of images, and resize images.

Each function has the name and the arguments of a loop in :mod:`mxop._kernels` (``sampling``, ``regions``, ``pixels``), which
documents it, and takes CuPy's arrays in C order.  Gradients gather: each element of a result sums its contributions, in the
order of the CPU's loops.  No function waits for the device.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from . import device
from .elements import in_order, launch, sums_at
from .launch import code_of
from .text import STORAGE


def _loop(name: str, text: str, every: int, arrays: dict[str, Any], **numbers: float) -> None:
    """Launch a kernel for each of `every` elements, unless an array is empty; ``real`` is the type of the first array."""
    ctypes = {at: STORAGE[code_of(a)][0] for at, a in arrays.items()}
    head = f"typedef {next(iter(ctypes.values()))} real;\nconst mx_index here = (mx_index)i;"
    given = {at: (ctypes[at], a) for at, a in arrays.items()}
    if all(a.size for a in arrays.values()):
        launch(name, given, numbers, [head, text], every, max(a.size for a in arrays.values()))


def _cupy(array: Any) -> Any:
    return device.require(device.id_of(array))


# ---- samples between pixels ------------------------------------------------------------------------------------------
def _along(places: Any, size: int, slope: bool, unit: bool, clamp: bool) -> tuple[Any, Any, Any]:
    """Return the first of the two pixels around places along an axis, and the weights of both."""
    xp, pair, scale = _cupy(places), size > 1, (size - 1) / 2 if unit else 1
    at = (places + int(unit)) * scale
    inside = (at >= (0 if clamp else -1)) & (at < size)
    at = xp.where(inside, at, 0)
    pixel = xp.clip(xp.trunc(at), 0, max(size - 2, 0))
    part = at - pixel
    if slope:
        before, after = -scale if pair or not clamp else 0, 0 if clamp else -scale
        low = xp.where(part < 0, scale, xp.where(part < 1, before, 0))
        high = xp.where(part < 0, 0, xp.where(part < 1, scale, after))
    else:
        part = xp.minimum(part, int(pair) if clamp else 2)
        low, high = (xp.maximum(xp.minimum(a, b), 0) for a, b in ((1 - part, 1 + part), (2 - part, part)))
    return xp.minimum(pixel.astype(xp.int64), max(size - 2, 0)), inside * low, inside * high * int(pair)


def _corners(grid: Any, sizes: tuple[int, int], down: bool, across: bool, *how: bool) -> tuple[Any, Any]:
    """Return the four pixels around each place, ``(batch, places, 4)``, and their weights."""
    xp, (height, width) = _cupy(grid), sizes
    (x, left, right), (y, above, below) = (
        _along(grid[:, k], size, slope, *how) for k, size, slope in ((0, width, across), (1, height, down))
    )
    first, next_, under = y * width + x, int(width > 1), width if height > 1 else 0
    weights = xp.stack([above * left, above * right, below * left, below * right], axis=-1).astype(grid.dtype)
    return xp.stack([first, first + next_, first + under, first + (under + next_)], axis=-1), weights


def sample(data: Any, grid: Any, down: bool, across: bool, unit: bool, clamp: bool, found: Any) -> None:
    pixels, weights = _corners(grid, data.shape[2:], down, across, unit, clamp)
    text = """
    const mx_index image = here / count;
    const unsigned long long corner = 4 * (image / channels * (unsigned long long)count + here % count);
    real sum = 0;
    for (int k = 0; k < 4; k++)
        sum += weights[corner + k] != 0 ? weights[corner + k] * data[image * plane + pixels[corner + k]] : 0;
    found[here] = sum;
    """
    _loop("sample", text, found.size, {"data": data, "pixels": pixels, "weights": weights, "found": found},
          count=grid.shape[2], channels=data.shape[1], plane=data.shape[2] * data.shape[3])  # fmt: skip


def scatter(head: Any, grid: Any, down: bool, across: bool, unit: bool, clamp: bool, total: Any) -> None:
    xp, (batch, channels, height, width) = _cupy(head), total.shape
    pixels, weights = _corners(grid, (height, width), down, across, unit, clamp)
    beyond = batch * height * width
    at = xp.where(weights != 0, pixels + (xp.arange(batch) * (height * width))[:, None, None], beyond)
    order, starts = in_order(xp, at.ravel(), beyond)
    text = """
    const mx_index image = here / plane, pixel = image / channels * plane + here % plane;
    real sum = 0;
    for (long long k = starts[pixel]; k < starts[pixel + 1]; k++)
        sum += weights[order[k]] * head[(unsigned long long)image * count + order[k] / 4 % count];
    total[here] = sum;
    """
    _loop("sample_grad", text, total.size, {"head": head, "weights": weights, "order": order, "starts": starts,
          "total": total}, count=grid.shape[2], channels=channels, plane=height * width)  # fmt: skip


def slopes(head: Any, data: Any, grid: Any, unit: bool, clamp: bool, found: Any) -> None:
    for k, (down, across) in enumerate(((False, True), (True, False))):
        each = _cupy(head).zeros_like(head)
        sample(data, grid, down, across, unit, clamp, each)
        found[:, k] = (head * each).sum(axis=1)


# ---- regions ---------------------------------------------------------------------------------------------------------
#: Which bin of which region, and which of its channels, an element of ``found`` is.
_BIN = """
const mx_index across = here % width, down = here / width % height, c = here / width / height % channels;
const mx_index r = here / width / height / channels;
const long long *const row = rows + 2ull * (r * height + down), *const column = columns + 2ull * (r * width + across);
"""


def _sizes(data: Any, found: Any) -> dict[str, int]:
    """Return the sizes that kernels of images and of bins have."""
    channels, height, width = found.shape[1:]
    return {"channels": channels, "height": height, "width": width, "lines": data.shape[2], "size": data.shape[3]}


def largest(data: Any, images: Any, rows: Any, columns: Any, found: Any, places: Any) -> None:
    text = f"""{_BIN}
    const real *const image = data + (images[r] * channels + c) * lines * size;
    real most = 0;
    long long at = -1;
    for (long long y = row[0]; images[r] >= 0 && y < row[1]; y++)
        for (long long x = column[0]; x < column[1]; x++) {{
            const real value = image[y * size + x];
            if (at < 0 || value > most || (value != value && most == most)) {{
                most = value;
                at = y * size + x;
            }}
        }}
    found[here] = most;
    places[here] = at;
    """
    _loop("largest", text, found.size, {"data": data, "images": images, "rows": rows, "columns": columns, "found": found,
          "places": places}, **_sizes(data, found))  # fmt: skip


def put(head: Any, images: Any, places: Any, total: Any) -> None:
    xp, images, (_, channels, pixels) = _cupy(head), images[:, None, None], total.shape
    inside = (places >= 0) & (places < pixels)  # regions of no image have places below 0
    at = xp.where(inside, (images * channels + xp.arange(channels)[:, None]) * pixels + places, total.size)
    sums_at(head, *in_order(xp, at.ravel(), total.size), total, 1, total.size, 1, True)


def weigh(bases: Any, sizes: Any, samples: Any, half: float, low: float, high: float, limit: int, inside: bool, slope: bool,
          spans: Any, weights: Any) -> None:  # fmt: skip
    """Set the weights of all pixels, ``(bins, limit)``: the largest number of pixels of a bin is not known without waiting."""
    text = """
    const mx_index bin = here / limit;
    const long long y = here % limit, last = (long long)limit - 1, count = samples[bin];
    long long counted = 0;
    real sum = 0;
    for (long long k = 0; k < count; k++) {
        real at = bases[bin] + (k + (real)half) * sizes[bin] / count;
        if (!(at >= (real)low && at <= (real)high))
            continue;
        at = at < 0 ? 0 : at > last ? last : at;
        const long long below = (long long)at;
        const real share = at - below;
        sum += y == below ? (slope ? -(share != 0) : 1 - share) : y != below + 1 ? 0 : slope ? share != 0 : share;
        counted++;
    }
    weights[here] = counted ? sum / (inside ? counted : count) : 0;
    """
    _loop("weigh", text, weights.size, {"bases": bases, "sizes": sizes, "samples": samples, "weights": weights},
          half=float(half), low=float(low), high=float(high), limit=limit, inside=int(inside), slope=int(slope))  # fmt: skip
    there = weights != 0
    if there.size:
        spans[:, 0], spans[:, 1] = there.argmax(1), (limit - there[:, ::-1].argmax(1)) * there.any(1)


def blend(data: Any, first: Any, rows: Any, row_weights: Any, columns: Any, column_weights: Any, lower: Any, group: Any,
          planes: int, found: Any) -> None:  # fmt: skip
    text = f"""{_BIN}
    const real *const image = data + (first[r] + c * planes + lower[down] + group[across]) * lines * size;
    real sum = 0;
    for (long long x = column[0]; first[r] >= 0 && x < column[1]; x++) {{
        const real weight = column_weights[(r * width + across) * size + x];
        real line = 0;
        for (long long y = row[0]; weight != 0 && y < row[1]; y++) {{
            const real share = row_weights[(r * height + down) * lines + y];
            line += share != 0 ? share * image[y * size + x] : 0;
        }}
        sum += weight * line;
    }}
    found[here] = sum;
    """
    _loop("blend", text, found.size, {"data": data, "first": first, "rows": rows, "row_weights": row_weights,
          "columns": columns, "column_weights": column_weights, "lower": lower, "group": group, "found": found},
          planes=planes, **_sizes(data, found))  # fmt: skip


def spread(head: Any, images: Any, first: Any, rows: Any, row_weights: Any, columns: Any, column_weights: Any, lower: Any,
           group: Any, planes: int, total: Any) -> None:  # fmt: skip
    xp, images, (batch, all_planes, lines, _) = _cupy(head), images[:, None, None], total.shape
    y = xp.arange(lines)  # rows of bins are sorted by the rows of images that they read: below 0 for no image
    reads = (y >= rows[..., :1]) & (y < rows[..., 1:])
    order, starts = in_order(xp, xp.where(reads, images * lines + y, batch * lines).ravel(), batch * lines)
    text = """
    const mx_index x = here % size, plane = here / size / lines, y = plane / all_planes * lines + here / size % lines;
    real sum = 0;
    for (long long k = starts[y]; k < starts[y + 1]; k++) {
        const long long i = order[k] / lines, r = i / height, own = (long long)plane - first[r] - lower[i % height];
        const real *const each = head + ((r * channels + own / planes) * height + i % height) * width;
        real line = 0;
        for (long long j = 0; own >= 0 && own / planes < channels && j < width; j++) {
            const long long *const column = columns + 2 * (r * width + j);
            if (group[j] == own % planes && x >= column[0] && x < column[1])
                line += column_weights[(r * width + j) * size + x] * each[j];
        }
        sum += row_weights[order[k]] * line;
    }
    total[here] = sum;
    """
    _loop("spread", text, total.size, {"head": head, "first": first, "row_weights": row_weights, "columns": columns,
          "column_weights": column_weights, "lower": lower, "group": group, "order": order, "starts": starts,
          "total": total}, planes=planes, all_planes=all_planes, **_sizes(total, head))  # fmt: skip


# ---- sizes -----------------------------------------------------------------------------------------------------------
#: What is done with each value along a column of bytes, and what becomes of the sum, for each way of ``pixels.resize``.
_STEPS = {1: "sum += (weight * (value >> 4)) >> 16;", 2: "sum += value * weight; part += value * (weight * (float)scale);"}
_BYTES = {
    0: "byte((sum + (1 << 21)) >> 22)", 1: "byte((sum + 2) >> 2)",
    2: "byte(each < inner - inner % 8 ? nearest(part) : (sum + (1 << 21)) >> 22)",
    3: "byte(nearest(sum * (float)scale))", 4: "byte((int)(sum * (float)scale + 0.5f))",
}  # fmt: skip


def resize(images: Any, out: Any, first_x: Any, at_x: Any, weights_x: Any, first_y: Any, at_y: Any, weights_y: Any, way: int,
           scale: float) -> None:  # fmt: skip
    batch, height, _, channels = images.shape
    lines = _cupy(images).empty((batch * height, out.shape[2], channels), weights_x.dtype)
    _mix(images, lines, (first_x, at_x, weights_x), channels)
    last = _BYTES[way] if out.dtype.itemsize == 1 else "sum * (real)(float)scale"
    _mix(lines, out, (first_y, at_y, weights_y), out.shape[2] * channels, _STEPS.get(way, ""), last, scale)


def mix(source: Any, out: Any, axis: int, starts: Any, places: Any, weights: Any) -> None:
    """Write weighted sums of elements along an axis; see ``along.Mixture``."""
    source = _cupy(out).ascontiguousarray(source, np.float32 if source.dtype.itemsize == 2 else source.dtype)
    found = _cupy(out).empty(out.shape, source.dtype)
    if out.size:
        tables = starts.astype(np.int32), places.astype(np.int32), weights.astype(source.dtype)
        _mix(source, found, tables, prod(out.shape[axis + 1 :]))
    out[...] = found


def _mix(source: Any, out: Any, tables: tuple, inner: int, step: str = "", last: str = "sum", scale: float = 1.0) -> None:
    """Write weighted sums of elements along the axis before the last `inner` ones; the tables are NumPy's."""
    starts, at, weights = (_cupy(out).asarray(a) for a in tables)
    size = len(starts) - 1
    text = f"""
    const auto byte = [](int v) {{ return (unsigned char)(v < 0 ? 0 : v > 255 ? 255 : v); }};
    const auto nearest = [](float v) {{ return (int)((v + 12582912.0f) - 12582912.0f); }};
    const mx_index each = here % inner, row = here / inner / size * old, place = here / inner % size;
    real sum = 0;
    float part = 0;
    for (int k = starts[place]; k < starts[place + 1]; k++) {{
        const real value = x[(row + at[k]) * inner + each], weight = weights[k];
        {step or "sum += value * weight;"}
    }}
    y[here] = {last};
    """
    _loop("mix", text, out.size, {"weights": weights, "starts": starts, "at": at, "x": source, "y": out}, inner=inner,
          size=size, old=source.size * size // out.size, scale=float(scale))  # fmt: skip
