"""What the real MXNet answers about attention, CTC, Hawkes processes, quantization and other single operators.

Run with MXNet 1.9.1 to ask again, from the root of the tree::

    MXNET_ENGINE_TYPE=NaiveEngine oracle/bin/python tests/mxnet_operators.py

A case is an operator, its parameters and its inputs: the type, the shape and the interval of each, and whether it holds
whole numbers and wants a gradient.  Not asked about is what MXNet gets wrong: gradients of ``hawkesll``
and of ``selu``, which disagree with differences, and the loss of a batch without any label, which is 0.
Random slopes, and labels that do not fit into the steps, may end its process.
"""

import json
import random
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data" / "operators.json"


def real(shape, low=-2.0, high=2.0, *, grad=True):
    return ["float32", shape, low, high, False, grad]


def whole(shape, low, high, dtype="float32"):
    return [dtype, shape, low, high, True, False]


def attention(rng, name):
    steps, others, batch, heads, size = (rng.randint(1, 4) for _ in range(5))
    params, width = {"heads": heads}, heads * size
    if "selfatt" in name:
        inputs = [[steps, batch, 3 * width], [batch * heads, steps, steps]]
        return params, [real(s) for s in inputs[: 1 + name.endswith("valatt")]]
    if name.endswith("valatt"):
        return params, [real([others, batch, 2 * width]), real([batch * heads, steps, others])]
    return params, [real([steps, batch, width]), real([others, batch, 2 * width])]


def ctc(rng, name):
    batch, classes, labels = rng.randint(1, 3), rng.randint(3, 5), rng.randint(1, 3)
    steps = 2 * labels + rng.randint(1, 3)
    last = rng.random() < 0.5
    params = {"blank_label": "last" if last else "first"}
    low, high = (0, classes - 2) if last else (1, classes - 1)
    inputs = [real([steps, batch, classes])]
    if rng.random() < 0.5:
        params |= {"use_data_lengths": True, "use_label_lengths": True}
        return params, [
            *inputs,
            whole([batch, labels], low, high),
            whole([batch], 2 * labels, steps),
            whole([batch], 1, labels),
        ]
    return params, [*inputs, whole([batch, labels], low - (batch > 1), high)]


def hawkes(rng, name):
    batch, marks, points = rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 5)
    positive = [[batch, marks], [marks], [marks], [batch, marks], [batch, points]]
    inputs = [real(s, 0.1, 1.0, grad=False) for s in positive]
    inputs += [
        whole([batch, points], 0, marks - 1, "int32"),
        whole([batch], 0, points),
        real([batch], 5, 6, grad=False),
    ]
    return {}, inputs


def levels(rng, name):
    limits = {"min_calib_range": rng.uniform(-1, 0.1), "max_calib_range": rng.uniform(0.5, 2)}
    ranges = [real([1], -2, -0.5, grad=False), real([1], 0.5, 2, grad=False)]
    data = [real([3, 4], -3, 3, grad=False)]
    if name == "_contrib_quantize":
        return {"out_type": rng.choice(["int8", "uint8"])}, data + ranges
    if name == "_contrib_quantize_v2":
        return {"out_type": rng.choice(["int8", "uint8", "auto"])} | (limits if rng.random() < 0.7 else {}), data
    if name == "_contrib_requantize":
        params = {"out_type": rng.choice(["int8", "uint8", "auto"])} | limits
        return params, [whole([3, 4], -(2**30), 2**30, "int32"), *ranges]
    type_, low, high = rng.choice([("int8", -128, 127), ("uint8", 0, 255)])
    return {}, [whole([3, 4], low, high, type_), *ranges]


def histogram(rng, name):
    return {"bin_cnt": rng.randint(1, 6), "range": [-1.5, rng.uniform(0, 3)]}, [real([4, 5], grad=False)]


def entropy(rng, name):
    bins = rng.choice([11, 25, 51])
    return {"num_quantized_bins": rng.choice([5, 7, 9])}, [
        whole([bins], 0, 9),
        ["edges", [bins + 1], -4, 4, False, False],
    ]


def close(rng, name):
    params = {"rtol": rng.choice([1e-5, 1.0]), "atol": rng.choice([1e-8, 3.0]), "equal_nan": rng.random() < 0.5}
    return params, [real([3], grad=False), real([3], grad=False)]


def filled(rng, name):
    rows, columns = rng.randint(1, 4), rng.randint(1, 4)
    return {}, [real([rows, columns], grad=False), real([rows], grad=False), whole([rows], 0, columns - 1)]


def leaky(rng, name):
    params = {"act_type": rng.choice(["elu", "gelu", "leaky", "prelu"]), "slope": rng.uniform(0.1, 0.5)}
    shape = [2, 3, 2][: rng.randint(2, 3)]
    return params, [real(shape), real([3], 0.1, 0.5)][: 1 + (params["act_type"] == "prelu")]


#: Operators, and how their cases are made.
KINDS = [
    *[(f"_contrib_interleaved_matmul_{part}", attention)
      for part in ("selfatt_qk", "selfatt_valatt", "encdec_qk", "encdec_valatt")],
    ("CTCLoss", ctc), ("_contrib_hawkesll", hawkes),
    *[(f"_contrib_{name}", levels) for name in ("quantize", "quantize_v2", "requantize", "dequantize")],
    ("_histogram", histogram), ("_contrib_calibrate_entropy", entropy), ("_contrib_allclose", close),
    ("fill_element_0index", filled), ("LeakyReLU", leaky),
]  # fmt: skip


def run(mx, seed, case):
    """Return the type, shape and values of each result and of each gradient."""
    name, params, inputs = case
    numbers, arrays = np.random.RandomState(seed), []
    for dtype, shape, low, high, is_whole, _ in inputs:
        if dtype == "edges":
            values, dtype = np.linspace(low, high, shape[0]), "float32"
        else:
            values = numbers.randint(low, high + 1, shape) if is_whole else numbers.uniform(low, high, shape)
        arrays.append(mx.nd.array(values, dtype=dtype))
    wanted = [a for a, spec in zip(arrays, inputs) if spec[-1]]
    for a in wanted:
        a.attach_grad()
    names = {"data_lengths": 2, "label_lengths": 3} if name == "CTCLoss" else {}
    named = {key: arrays[k] for key, k in names.items() if k < len(arrays)}
    function = getattr(mx.nd._internal, name, None) or getattr(mx.nd, name, None)
    function = function or getattr(mx.nd.contrib, name[len("_contrib_") :])
    with mx.autograd.record(bool(wanted)):
        found = function(*arrays[: len(arrays) - len(named)], **named,
                         **{k: tuple(v) if isinstance(v, list) else v for k, v in params.items()})  # fmt: skip
        found = list(found) if isinstance(found, (list, tuple)) else [found]
        total = (found[0] * mx.nd.array(numbers.uniform(-1, 1, found[0].shape))).sum() if wanted else None
    if wanted:
        total.backward()
    return [[str(np.dtype(x.dtype)), list(x.shape) or [1], np.round(x.asnumpy().astype("float64"), 6).ravel().tolist()]
            for x in [*found, *(a.grad for a in wanted)]]  # fmt: skip


if __name__ == "__main__":
    import mxnet as mx

    rng, rows = random.Random(0), []
    for seed in range(8 * len(KINDS)):
        name, make = KINDS[seed % len(KINDS)]
        case = [name, *make(rng, name)]
        rows.append([seed, case, run(mx, seed, case)])
    text = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    DATA.write_text(f"[\n{text}\n]\n", encoding="utf-8")
