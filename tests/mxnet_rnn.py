"""What the real MXNet answers about ``RNN`` with random parameters.

Run with MXNet 1.9.1 to ask again, from the root of the tree::

    MXNET_ENGINE_TYPE=NaiveEngine oracle/bin/python tests/mxnet_rnn.py

Each answer is, for the outputs and for the gradient of each input, the shape and the product with random numbers.  MXNet's
processor code has no gradients with `projection_size`, and needs `state_outputs` there; it ignores `use_sequence_length` and
the limits of LSTM's states, about which nothing is asked.  With ``MXNET_USE_MKLDNN_RNN=0`` only the gradients of three
plain layers differ: there MXNet's are wrong.
"""

import json
import random
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data" / "rnn.json"
GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


def case(rng, mode, layers, bidirectional):
    """Return parameters and the shapes of the inputs."""
    steps, batch, n_inputs, size = (rng.randint(1, 4) for _ in range(4))
    params = {"mode": mode, "num_layers": layers, "state_size": size, "bidirectional": bidirectional}
    params["state_outputs"] = rng.random() < 0.7
    out, ways = size, 1 + bidirectional
    if mode == "lstm" and rng.random() < 0.4:
        out = params["projection_size"] = rng.randint(1, size)
        params["state_outputs"] = True
    columns = n_inputs + (layers - 1) * ways * out + layers * (out + 2)
    count = ways * (GATES[mode] * size * columns + layers * out * size * ("projection_size" in params))
    states = [[layers * ways, batch, n] for n in ([out, size] if mode == "lstm" else [out])]
    return params, [[steps, batch, n_inputs], [count], *states]


def run(mx, seed, params, shapes):
    """Return the shapes of outputs and gradients, and their products with random numbers."""
    numbers = np.random.RandomState(seed)
    arrays = [mx.nd.array(numbers.uniform(-1, 1, size=s)) for s in shapes]
    if "projection_size" in params:
        outs = mx.nd.RNN(*arrays, **params)
        outs = outs if isinstance(outs, list) else [outs]
        return [_product(numbers, y) for y in outs]
    for a in arrays:
        a.attach_grad()
    with mx.autograd.record():
        outs = mx.nd.RNN(*arrays, **params)
        outs = outs if isinstance(outs, list) else [outs]
        heads = [mx.nd.array(numbers.uniform(-1, 1, size=y.shape)) for y in outs]
    mx.autograd.backward(outs, heads)
    return [_product(numbers, x) for x in [*outs, *(a.grad for a in arrays)]]


def _product(numbers, x):
    found = (x.asnumpy().astype("float64") * numbers.uniform(-1, 1, size=x.shape)).sum()
    return [list(x.shape), round(float(found), 5)]


if __name__ == "__main__":
    import mxnet as mx

    rng, rows = random.Random(0), []
    kinds = [(mode, layers, both) for mode in GATES for layers in (1, 2, 3) for both in (False, True)]
    for seed, kind in enumerate(kinds * 3):
        params, shapes = case(rng, *kind)
        rows.append([seed, params, shapes, run(mx, seed, params, shapes)])
    text = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    DATA.write_text(f"[\n{text}\n]\n", encoding="utf-8")
