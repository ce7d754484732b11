"""What the real MXNet answers about sequences, shapes and matrices with random parameters.

Run with MXNet 1.9.1 to ask again, from the root of the tree::

    MXNET_ENGINE_TYPE=NaiveEngine MXNET_MKLDNN_ENABLED=0 oracle/bin/python tests/mxnet_arrays.py

Each case is an operator, its parameters, and the shapes of its inputs and how they are drawn; the answer is, for each result
and for the gradient of each input that has one, its shape and its product with random numbers.
"""

import json
import random
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data" / "arrays.json"

#: How an input is drawn, from numbers between -1 and 1: lengths of sequences (whole ones), matrices of a kind.
DRAWS = {
    "": lambda x: x,
    "length": lambda x: np.floor(3 * x + 4),  # 1 to 6
    "distinct": lambda x: np.argsort(x),  # of at most as many as there are rows
    "fixed": lambda x: x,
    "regular": lambda x: x + 2 * np.eye(*x.shape[-2:]),
    "definite": lambda x: x @ x.swapaxes(-1, -2) + np.eye(x.shape[-1]),
    "separate": lambda x: (x + x.swapaxes(-1, -2)) / 2 + np.diag(3.0 * np.arange(x.shape[-1])),
}


def _sizes(rng, rank, most=4):
    return [rng.randint(1, most) for _ in range(rank)]


# ---- sequences --------------------------------------------------------------------------------------------------------
def sequence(rng, name):
    axis = 0 if name == "SequenceReverse" else rng.randint(0, 1)
    shape, params = _sizes(rng, rng.randint(3, 4)), {"axis": axis}  # MXNet refuses matrices here
    shape[axis] = 6
    if name == "SequenceMask":
        params["value"] = rng.choice([0.0, -2.5])
    if rng.random() < 0.25 and name != "SequenceLast":  # whose gradient without lengths ends MXNet's process
        return params, [[shape, ""]]
    return params | {"use_sequence_length": True}, [[shape, ""], [[shape[1 - axis]], "length"]]


# ---- layout -----------------------------------------------------------------------------------------------------------
def diagonals(rng, name):
    if rng.random() < 0.2:
        return {"k": rng.randint(-2, 2)}, [[_sizes(rng, 1), ""]]
    shape = _sizes(rng, rng.randint(2, 4))
    a, b = rng.sample(range(len(shape)), 2)
    return {"k": rng.randint(1 - shape[a], shape[b] - 1), "axis1": a, "axis2": b - len(shape)}, [[shape, ""]]


def square_diagonals(rng, name):
    n = rng.randint(1, 4)
    offset = rng.randint(1 - n, n - 1)
    batch = _sizes(rng, rng.randint(0, 2))
    return {"offset": offset}, [[[*batch, n, n] if name == "_linalg_extractdiag" else [*batch, n], ""]]


def padding(rng, name):
    sizes = [rng.randint(2, 4) for _ in range(rng.randint(4, 5))]
    widths = [0, 0, 0, 0] + [rng.randint(0, d - 1) for d in sizes[2:] for _ in range(2)]
    params = {"mode": rng.choice(["constant", "edge", "reflect"]), "pad_width": widths, "constant_value": 1.5}
    return params, [[sizes, ""]]


def cropping(rng, name):
    sizes = _sizes(rng, 4)
    wanted = [rng.randint(1, d) for d in sizes[2:]]
    params = {"center_crop": True} if rng.random() < 0.5 else {
        "offset": [rng.randint(0, d - n) for d, n in zip(sizes[2:], wanted)]}  # fmt: skip
    if rng.random() < 0.5:
        return params | {"num_args": 2}, [[sizes, ""], [[1, 1, *wanted], ""]]
    return params | {"h_w": wanted, "num_args": 1}, [[sizes, ""]]


def blocks(rng, name):
    b, (n, c, h, w) = rng.randint(1, 3), _sizes(rng, 4, 2)
    shape = [n, c * b * b, h, w] if name == "depth_to_space" else [n, c, h * b, w * b]
    return {"block_size": b}, [[shape, ""]]


# ---- matrices ---------------------------------------------------------------------------------------------------------
def square(kind):
    def make(rng, name):
        n = rng.randint(1, 4)
        return {}, [[[*_sizes(rng, rng.randint(0, 2)), n, n], kind]]

    return make


def triangles(rng, name):
    offset, n = rng.randint(-2, 2), rng.randint(1, 3)
    batch, lower = _sizes(rng, rng.randint(0, 2)), rng.random() < 0.5
    whole = [n + abs(offset)] * 2 if name == "_linalg_extracttrian" else [n * (n + 1) // 2]
    return {"offset": offset, "lower": lower}, [[[*batch, *whole], ""]]


def products(rng, name):
    batch, (m, k, n), alpha = _sizes(rng, rng.randint(0, 2)), _sizes(rng, 3), rng.choice([1.0, -0.5])
    flags = {"transpose_a": rng.random() < 0.5, "transpose_b": rng.random() < 0.5, "alpha": alpha}
    shapes = [[k, m] if flags["transpose_a"] else [m, k], [n, k] if flags["transpose_b"] else [k, n]]
    if name == "_linalg_syrk":
        return {"transpose": flags["transpose_a"], "alpha": alpha}, [[[*batch, m, k], ""]]
    shapes += [[m, n]] if name == "_linalg_gemm" else []
    flags |= {"beta": rng.choice([1.0, 2.0])} if name == "_linalg_gemm" else {}
    if rng.random() < 0.4:  # the rows lie along the first axis
        batch, flags["axis"] = batch or [2], 0
        return flags, [[[s[0], *batch, s[1]], ""] for s in shapes]
    return flags, [[[*batch, *s], ""] for s in shapes]


def one_sided(rng, name):
    params = {p: rng.random() < 0.5 for p in ("transpose", "rightside", "lower")} | {"alpha": rng.choice([1.0, -0.5])}
    batch, (n, m) = _sizes(rng, rng.randint(0, 2)), _sizes(rng, 2)
    return params, [[[*batch, n, n], "regular"], [[*batch, *([m, n] if params["rightside"] else [n, m])], ""]]


def wide(rng, name):
    m = rng.randint(1, 3)
    return {}, [[[*_sizes(rng, rng.randint(0, 2)), m, m + rng.randint(0, 2)], "regular"]]


# ---- positions --------------------------------------------------------------------------------------------------------
def flat_indices(rng, name):
    shape = _sizes(rng, rng.randint(1, 3))
    return {"shape": shape}, [[[len(shape), 5] if name == "_ravel_multi_index" else [5], "length"]]


def coordinates(rng, name):
    shape = _sizes(rng, rng.randint(1, 3))
    axes = [rng.randrange(len(shape)) for _ in range(rng.randint(1, 2))]
    return {"axes": axes} if rng.random() < 0.5 else {}, [[shape, "fixed"]]


def copied_rows(rng, name):
    n, rest = rng.randint(1, 2), _sizes(rng, rng.randint(0, 2))
    return {}, [[[7, *rest], ""], [[n], "distinct"], [[n, *rest], ""]]


def factors(rng, name):
    columns = rng.randint(1, 3)
    return {}, [[[rng.randint(1, 3), columns], "fixed"] for _ in range(rng.randint(1, 3))]


#: Operators and how their cases are made.
KINDS = [
    ("SequenceMask", sequence), ("SequenceLast", sequence), ("SequenceReverse", sequence), ("diag", diagonals),
    ("_linalg_makediag", square_diagonals), ("_linalg_extractdiag", square_diagonals), ("Pad", padding), ("Crop", cropping),
    ("depth_to_space", blocks), ("space_to_depth", blocks),
    *((f"_linalg_{name}", make) for name, make in {
        "gemm": products, "gemm2": products, "syrk": products, "trmm": one_sided, "trsm": one_sided,
        "extracttrian": triangles, "maketrian": triangles, "potrf": square("definite"), "potri": square("regular"),
        "sumlogdiag": square("definite"), "inverse": square("regular"), "det": square("regular"),
        "slogdet": square("regular"), "gelqf": wide, "syevd": square("separate"),
    }.items()),
    ("_ravel_multi_index", flat_indices), ("_unravel_index", flat_indices), ("_contrib_index_array", coordinates),
    ("_contrib_index_copy", copied_rows), ("khatri_rao", factors),
]  # fmt: skip


def _function(mx, name):
    for space, prefix in ((mx.nd, ""), (mx.nd.linalg, "_linalg_"), (mx.nd.contrib, "_contrib_")):
        if name.startswith(prefix) and hasattr(space, name[len(prefix) :]):
            return getattr(space, name[len(prefix) :])
    return getattr(mx.nd._internal, name)


def run(mx, seed, case):
    """Return the shape of each result and gradient, and their products with random numbers."""
    name, params, inputs = case
    numbers = np.random.RandomState(seed)
    drawn = [DRAWS[kind](numbers.uniform(-1, 1, size=shape)) for shape, kind in inputs]
    dtype = "float32" if name == "Crop" else "float64"  # MXNet's knows no other
    arrays = [mx.nd.array(x, dtype=dtype) for x in drawn]
    moving = [a for a, (_, kind) in zip(arrays, inputs) if kind not in FIXED]
    for a in moving:
        a.attach_grad()
    with mx.autograd.record():
        y = _function(mx, name)(*arrays, **{k: tuple(v) if isinstance(v, list) else v for k, v in params.items()})
        results = list(y) if isinstance(y, (list, tuple)) else [y]
        factors = [mx.nd.array(numbers.uniform(-1, 1, size=r.shape), dtype="float64") for r in results]
        total = sum((r.astype("float64") * f).sum() for r, f in zip(results, factors))
    if moving:
        total.backward()
    found = []
    for x in [*results, *(a.grad for a in moving)]:
        weights = numbers.uniform(-1, 1, size=x.shape)
        found.append([list(x.shape), round(float((x.asnumpy().astype("float64") * weights).sum()), 6)])
    return found


#: Inputs without a gradient.
FIXED = ("length", "distinct", "fixed")


if __name__ == "__main__":
    import mxnet as mx

    rng, rows = random.Random(0), []
    for seed in range(16 * len(KINDS)):
        name, make = KINDS[seed % len(KINDS)]
        case = [name, *make(rng, name)]
        rows.append([seed, case, run(mx, seed, case)])
    text = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    DATA.write_text(f"[\n{text}\n]\n", encoding="utf-8")
