"""Generated loops stay vectors: ``tools/vectorised.py``."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import sys
from pathlib import Path

import pytest

_PATH = Path(__file__).resolve().parents[1] / "tools" / "vectorised.py"
pytest.importorskip("Cython")
if not _PATH.exists():
    pytest.skip("needs the folder tools", allow_module_level=True)
_spec = importlib.util.spec_from_file_location("vectorised", _PATH)
vectorised = importlib.util.module_from_spec(_spec)
sys.modules["vectorised"] = vectorised
_spec.loader.exec_module(vectorised)


def test_loops_are_read_from_the_text():
    text = vectorised.generate.instruction_text()
    found = [(formula, dtype, fast) for _, formula, dtype, fast, _ in vectorised.loops(text)]
    assert {("add(x0,x1)", dtype, False) for dtype in ("f32", "f64", "i8", "u8", "i32", "i64")} <= set(found)
    for formula in ("sin(x0)", "pow(x0,s0)", "log1p(x0)", "mod(s0,x0)"):
        assert {(formula, "f64", True), (formula, "f64", False)} <= set(found)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None or platform.machine() != "x86_64", reason="reads GCC's report")
@pytest.mark.parametrize("level", ["v2", "v3", "v4"])
def test_generated_loops_are_vectors(level):
    levels, plain = vectorised.flags()
    assert vectorised.scalar_loops([*plain, *levels[level]], fma=level != "v2") == []


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="reads GCC's report")
def test_a_loop_that_is_not_is_seen(monkeypatch):
    levels, plain = vectorised.flags()
    level = next(iter(levels))
    assert vectorised.scalar_loops([*plain, *levels[level], "-fno-tree-vectorize"])
