"""What the real MXNet answers about convolution, pooling and resizing with random parameters.

Run with MXNet 1.9.1 to ask again, from the root of the tree::

    MXNET_ENGINE_TYPE=NaiveEngine MXNET_MKLDNN_ENABLED=0 oracle/bin/python tests/mxnet_layers.py

Each case is an operator, its parameters and the shapes of its inputs; the answer is, for the result and for the gradient
of each input, its shape and its product with random numbers.  Dilated ``Deconvolution`` and ``Convolution_v1`` are not asked
about: MXNet's own sums of dilated windows lose elements there; nor about ``BilinearResize2D`` with ``mode="like"``, whose
gradient ends MXNet's process.
"""

import json
import random
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data" / "layers.json"


def _frame(rng, n, dilated):
    """Return random parameters of windows, and sizes of an image in which there is one at least."""
    kernel, stride = ([rng.randint(1, 3) for _ in range(n)] for _ in range(2))
    dilate = [rng.randint(1, 2) if dilated else 1 for _ in range(n)]
    pad = [rng.randint(0, k - 1) for k in kernel]
    sizes = [rng.randint(max(1, d * (k - 1) + 1 - 2 * p), 7) for k, d, p in zip(kernel, dilate, pad)]
    params = {"kernel": kernel, "stride": stride, "pad": pad}
    return params | ({"dilate": dilate} if dilated else {}), sizes


def convolution(rng, name, n):
    params, sizes = _frame(rng, n, name == "Convolution")
    groups = rng.choice([1, 1, 2, 3])
    channels, filters = groups * rng.randint(1, 2), groups * rng.randint(1, 2)
    params |= {"num_filter": filters, "num_group": groups, "no_bias": rng.random() < 0.5}
    ends = [channels, filters // groups] if name == "Deconvolution" else [filters, channels // groups]
    shapes = [[rng.randint(1, 2), channels, *sizes], ends + params["kernel"]]
    if name == "Deconvolution":  # something must be left of the result
        whole = [(d - 1) * s + k for d, s, k in zip(sizes, params["stride"], params["kernel"])]
        params["pad"] = [min(p, (w - 1) // 2) for p, w in zip(params["pad"], whole)]
    if name == "Deconvolution" and rng.random() < 0.5:
        params["adj"] = [rng.randint(0, s - 1) for s in params["stride"]]
    elif name == "Deconvolution" and rng.random() < 0.5:
        params["target_shape"] = [w - 2 * rng.randint(0, (w - 1) // 2) for w in whole]
    return [name, params, shapes if params["no_bias"] else [*shapes, [filters]]]


def pooling(rng, name, n):
    params, sizes = _frame(rng, n, False)
    params["pool_type"] = rng.choice(["max", "avg", "sum"] + ["lp"] * (name == "Pooling"))
    params["pooling_convention"] = rng.choice(["valid", "full"])
    if params["pool_type"] == "lp":
        params["p_value"] = rng.randint(1, 3)
    if rng.random() < 0.15:
        params["global_pool"] = True
    shape = [rng.randint(1, 2), 2, *sizes]
    if name == "Pooling" and rng.random() < 0.5:
        params["count_include_pad"] = rng.random() < 0.5
    if name == "Pooling" and rng.random() < 0.3:
        params["layout"], shape = {1: "NWC", 2: "NHWC"}[n], [shape[0], *sizes, 2]
    return [name, params, [shape]]


def columns(rng, name, n):
    params, sizes = _frame(rng, n, True)
    if name == "im2col":
        return [name, params, [[rng.randint(1, 2), 2, *sizes]]]
    counts = [(d + 2 * p - e * (k - 1) - 1) // s + 1 for d, k, s, e, p in zip(
        sizes, params["kernel"], params["stride"], params["dilate"], params["pad"])]  # fmt: skip
    channels = 2 * int(np.prod(params["kernel"]))
    return [name, params | {"output_size": sizes}, [[rng.randint(1, 2), channels, int(np.prod(counts))]]]


def upsampling(rng, name, n):
    scale = rng.randint(1, 3)
    params, size = {"scale": scale, "num_args": 2}, [rng.randint(1, 3), rng.randint(1, 3)]
    if rng.random() < 0.4:
        k = 2 * scale - scale % 2
        return [name, params | {"sample_type": "bilinear", "num_filter": 2}, [[1, 2, *size], [2, 1, k, k]]]
    params |= {"sample_type": "nearest", "multi_input_mode": rng.choice(["sum", "concat"])}
    return [name, params, [[1, 2, *size], [1, 2, *(d * scale for d in size)]]]


def adaptive(rng, name, n):
    size = [rng.randint(1, 4) for _ in range(rng.randint(0, 2))]
    return [name, {"output_size": size} if size else {}, [[2, 2, rng.randint(1, 7), rng.randint(1, 7)]]]


def bilinear(rng, name, n):
    params = {"align_corners": rng.random() < 0.5}
    shapes = [[rng.randint(1, 2), 2, rng.randint(1, 6), rng.randint(1, 6)]]
    mode = rng.choice(["size", "scale", "odd_scale", "to_even_up", "to_odd_up"])
    if mode == "size":
        return [name, params | {"height": rng.randint(1, 8), "width": rng.randint(1, 8)}, shapes]
    if "scale" in mode:
        params |= {"scale_height": rng.choice([1.0, 1.3, 2.0, 2.7]), "scale_width": rng.choice([1.0, 1.7, 3.0])}
    return [name, params | ({} if mode == "scale" else {"mode": mode}), shapes]


#: Operators, how their cases are made, and of how many dimensions.
KINDS = [
    ("Convolution", convolution, (1, 2, 2)), ("Deconvolution", convolution, (1, 2, 2)), ("Convolution_v1", convolution, (2,)),
    ("Pooling", pooling, (1, 2, 2)), ("Pooling", pooling, (1, 2, 2)), ("Pooling_v1", pooling, (2,)), ("im2col", columns, (2,)),
    ("col2im", columns, (2,)), ("UpSampling", upsampling, (2,)), ("_contrib_AdaptiveAvgPooling2D", adaptive, (2,)),
    ("_contrib_BilinearResize2D", bilinear, (2,)),
]  # fmt: skip


def run(mx, seed, case):
    """Return the shape of the result and of each gradient, and their products with random numbers."""
    name, params, shapes = case
    function = getattr(mx.nd, name, None) or getattr(mx.nd.contrib, name[len("_contrib_") :])
    numbers = np.random.RandomState(seed)
    draw = numbers.uniform if seed % 2 else lambda low, high, size: numbers.randint(-4, 5, size)  # whole ones are often equal
    arrays = [mx.nd.array(draw(-1, 1, size=s)) for s in shapes]
    for a in arrays:
        a.attach_grad()
    with mx.autograd.record():
        y = function(*arrays, **{k: tuple(v) if isinstance(v, list) else v for k, v in params.items()})
        total = (y * mx.nd.array(numbers.uniform(-1, 1, size=y.shape))).sum()
    total.backward()
    found = []
    for x in [y, *(a.grad for a in arrays)]:
        values = x.asnumpy().astype("float64")
        values[values < -1e38] = -1  # the largest of nothing: the least number in MXNet, and -infinity here
        found.append([list(x.shape), round(float((values * numbers.uniform(-1, 1, size=x.shape)).sum()), 5)])
    return found


if __name__ == "__main__":
    import mxnet as mx

    rng, rows = random.Random(0), []
    for seed in range(286):
        name, make, ranks = KINDS[seed % len(KINDS)]
        case = make(rng, name, rng.choice(ranks))
        rows.append([seed, case, run(mx, seed, case)])
    text = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    DATA.write_text(f"[\n{text}\n]\n", encoding="utf-8")
