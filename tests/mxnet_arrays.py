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


#: Operators and how their cases are made.
KINDS = [("SequenceMask", sequence), ("SequenceLast", sequence), ("SequenceReverse", sequence)]


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
    arrays = [mx.nd.array(x, dtype="float64") for x in drawn]
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
FIXED = ("length",)


if __name__ == "__main__":
    import mxnet as mx

    rng, rows = random.Random(0), []
    for seed in range(16 * len(KINDS)):
        name, make = KINDS[seed % len(KINDS)]
        case = [name, *make(rng, name)]
        rows.append([seed, case, run(mx, seed, case)])
    text = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    DATA.write_text(f"[\n{text}\n]\n", encoding="utf-8")
