"""Whatever is called with whatever: an `MXNetError`, never a crash, never another error (see `fuzzing.py`)."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mxop as mx

HERE = Path(__file__).parent


def fuzz(seed, cases):
    """Run the fuzz in a process of its own: memory is bounded there, and a crash is only its end.

    The cases are counted, not timed, so that the same ones run on every machine.
    """
    pytest.importorskip("resource", reason="memory cannot be bounded here")
    path = os.pathsep.join([str(HERE), str(Path(mx.__file__).parent.parent)])
    environment = os.environ | {"MXOP_FULL_TRACEBACK": "1", "MXOP_NUM_THREADS": "1", "PYTHONPATH": path}
    command = [sys.executable, "-m", "fuzzing", str(seed), str(cases)]
    done = subprocess.run(command, env=environment, cwd=HERE, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, f"seed {seed}:\n{done.stdout}\n{done.stderr[-3000:]}"


def test_every_error_is_ours():
    fuzz(20, 6_000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_every_error_is_ours_for_long(seed):
    fuzz(100 + seed, 200_000)


def test_the_fuzz_finds_what_it_looks_for(monkeypatch):
    """An operator that fails in Python, and a verdict on errors of each kind."""
    import fuzzing

    assert fuzzing.verdict(mx.MXNetError("ours")) is None
    assert fuzzing.verdict(TypeError("f() takes 1 positional argument but 2 were given")) is None
    assert fuzzing.verdict(ValueError("invalid literal for int()")) == "ValueError: invalid literal for int()"
    assert fuzzing.is_ours(mx.__file__) and fuzzing.is_ours("mxop/_core/array.pyx")
    assert not fuzzing.is_ours(os.path.join(os.sep, "clones", "mxop", "tests", "fuzzing.py"))
    assert not fuzzing.is_ours(np.__file__)
    monkeypatch.setattr(fuzzing, "FAMILIES", [lambda draw: [].index(draw.anything())])
    assert "ValueError" in fuzzing.case(1, 1) and "not in list" in fuzzing.case(1, 1)
