"""Random shapes beside NumPy in float64: a counted generator for each family of operators, see `shapes`.

Each runs in a process of its own, so that memory that it damages is nobody else's.  The quick variant runs the same cases every
time; ``-m slow`` runs others for a minute a family, from ``MXOP_TEST_SEED`` if that is set.  A failure prints the case and the
command that runs it again.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from shapes import reference
from shapes.drawing import LAYOUTS
from shapes.reference import Value

#: Cases of the quick variant, and what some of them must be, beside what all families have.
FAMILIES = {
    "products": (1000, ("epilogue", "shared factor", "transposed")),
    "convolution": (450, ("strided", "dilated", "padded", "grouped", "depthwise", "channels last",
                          *(f"{n} dimensions" for n in (1, 2, 3)))),
    "windows": (500, ("strided", "padded", "channels last", "global", "max", "avg", "sum", "lp", "full", "same", "bilinear")),
    "reductions": (1500, ("formula", "sum", "prod", "max", "min", "argmax", "argmin", "broadcast_mul", "broadcast_like")),
    "rows": (900, ("program", "lengths", "softmin", "log_softmax", "SoftmaxOutput", "BatchNorm")),
    "moves": (1800, ("backward steps", "constant", "edge", "reflect", "space_to_depth", "depth_to_space")),
    "gathering": (1800, ("take", "Embedding", "SequenceMask", "SequenceLast", "SequenceReverse")),
    "order": (1500, ("value", "indices", "mask", "both")),
    "recurrent": (450, ("lengths", "both directions", "outputs sliced", "foreach", "while_loop", "cond")),
    "views": (1800, ("several results", "slice", "slice_axis", "slice_like", "Crop", "reshape", "flip", "expand_dims",
                    "concat")),
}  # fmt: skip
COMMON = ("float32", "float64", "request write", "request add", "request null", "1 threads", "2 threads", "eager", "bind",
          "compiled", "eval", "large", "remainder", *(f"layout {name}" for name in LAYOUTS))  # fmt: skip


def run(family, seed, tmp_path, *options):
    """Run cases of a family; return what they were."""
    kept, tests = tmp_path / "case", Path(__file__).parent
    command = [sys.executable, "-m", "shapes", family, "--seed", str(seed), "--keep", str(kept), *options]
    done = subprocess.run(command, cwd=tests, capture_output=True, text=True, timeout=1800)
    text = done.stdout if done.returncode in (0, 1) else f"in {kept.read_text()}:\n{done.stdout}"
    assert done.returncode == 0, f"exit status {done.returncode}\n{text}\n{done.stderr}"
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("family", FAMILIES)
def test_random_shapes(family, tmp_path):
    cases, own = FAMILIES[family]
    counts = run(family, 0, tmp_path, "--cases", str(cases))
    assert counts["cases"] == cases
    few = {name: counts.get(name, 0) for name in (*COMMON, *own) if counts.get(name, 0) < cases / 100}
    assert not few, f"too few of {cases} cases are of these kinds: {few}"


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_other_random_shapes_for_a_minute(family, tmp_path):
    seed = int(os.environ.get("MXOP_TEST_SEED") or np.random.SeedSequence().generate_state(1)[0])
    counts = run(family, seed, tmp_path, "--cases", "1000000", "--seconds", os.environ.get("MXOP_SHAPES_SECONDS", "60"))
    assert counts["cases"] >= FAMILIES[family][0] / 4, f"only {counts['cases']} cases in {counts['seconds']} s, seed {seed}"


# ---- the means themselves ----------------------------------------------------------------------------------------------
REFERENCES = {
    "arithmetic": lambda x, y: x * y - y / (x * x + 2.0) + 1.0 / (y * y + 1.0) - (-x),
    "broadcasting": lambda x, y: x[:1] * y + x.sum((1,), True) * y.mean((0, 1)),
    "parts": lambda x, y: reference.joined([x[::-1, 1:], y[:, ::2]], 1).transpose(1, 0).reshape(3, -1),
    "moves": lambda x, y: reference.moved(x, lambda a: np.pad(a, 1, constant_values=-1).repeat(2, 0), 0.5),
    "products": lambda x, y: reference.einsum("ab,cb->ac", x, y),
    "functions": lambda x, y: reference.tanh(x) + reference.sigmoid(y) * reference.sin(x),
    "logarithms": lambda x, y: reference.log(reference.exp(x) + 1.0) * y,
    "extremes": lambda x, y: reference.extreme(x, (1,), False) * reference.extreme(y, (1,), False, largest=False),
    "windows": lambda x, y: reference.gathered(x, [(slice(k, k + 2),) for k in range(2)])
    + reference.scattered(y.reshape(1, 3, 4), [(slice(0, 3),)], (5, 4))[:2],
    "stacks": lambda x, y: reference.stacked([x, y, x]) * reference.sqrt(x * x + 1.0) + reference.absolute(x),
    "sums": lambda x, y: reference.linear(reference.relu(x), lambda a: a.cumsum(1), lambda h: h[:, ::-1].cumsum(1)[:, ::-1]),
}  # fmt: skip


@pytest.mark.parametrize("name", REFERENCES)
def test_gradients_of_references_are_differences(name, rng):
    function, points = REFERENCES[name], [rng.uniform(-1, 1, (3, 4)) for _ in range(2)]
    values = [Value(p) for p in points]
    head = rng.uniform(-1, 1, function(*values).shape)
    for k, slope in enumerate(reference.gradients([found := function(*values)], [head], values)):
        assert found.shape == head.shape
        for at in np.ndindex(points[k].shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = [p.copy() for p in points]
                moved[k][at] += step
                ends.append((function(*map(Value, moved)).data * head).sum())
            np.testing.assert_allclose(slope[at], (ends[0] - ends[1]) / 2e-5, rtol=1e-7, atol=1e-8)
