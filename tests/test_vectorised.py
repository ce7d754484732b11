"""Generated loops stay vectors: ``tools/vectorised.py``."""

from __future__ import annotations

import importlib.util
import platform
import re
import shutil
import subprocess
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


@pytest.mark.skipif(shutil.which("gcc") is None or platform.machine() != "x86_64", reason="reads GCC's report")
@pytest.mark.parametrize("level", ["v2", "v3", "v4"])
def test_pixels_around_places_are_found_by_vectors(level, tmp_path):
    levels, plain = vectorised.flags()
    source, report = tmp_path / "around.c", tmp_path / "report"
    source.write_text('#include "mxop_around.h"\nmx_look_around of[] = {mx_look_around_f32, mx_look_around_f64};\n')
    options = [*plain, *levels[level], f"-I{vectorised.INCLUDE}", f"-fopt-info-vec={report}"]
    subprocess.run(["gcc", *options, "-c", source, "-o", tmp_path / "around.o"], check=True)
    text = (vectorised.INCLUDE / "mxop_around_type.h").read_text(encoding="utf-8").split("\n")
    loops = [str(k) for k, line in enumerate(text, 1) if line.lstrip().startswith("for (")]
    found = re.findall(r"mxop_around_type.h:(\d+):\d+: optimized: loop vectorized", report.read_text())
    assert len(loops) == 2 and set(found) == set(loops) and found.count(loops[0]) >= 4  # of two axes and types


BY_FOURS = """
#include <stdio.h>
#include "mxop_blend.h"
int main(void)
{
    static float image[64], weights[4 * MX_AROUND], x[16], y[16];
    static ptrdiff_t places[16];
    const int taken = mx_take_fours(image, 8, places, weights, x, 11);
    printf("%d %d", taken, (int)mx_slope_fours(x, image, 8, places, weights, weights, x, y, 11));
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="runs a program that GCC compiles")
def test_places_are_sampled_four_at_a_time(tmp_path):
    _, plain = vectorised.flags()
    (tmp_path / "fours.c").write_text(BY_FOURS)
    subprocess.run(["gcc", *plain, f"-I{vectorised.INCLUDE}", tmp_path / "fours.c", "-o", tmp_path / "fours"], check=True)
    version = subprocess.run(["gcc", "-dumpversion"], capture_output=True, text=True, check=True).stdout
    shuffles = int(version.split(".")[0]) >= 12  # older ones lack __builtin_shufflevector
    found = subprocess.run([tmp_path / "fours"], capture_output=True, text=True, check=True).stdout
    assert found == ("8 8" if shuffles else "0 0")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="reads GCC's report")
def test_a_loop_that_is_not_is_seen(monkeypatch):
    levels, plain = vectorised.flags()
    level = next(iter(levels))
    assert vectorised.scalar_loops([*plain, *levels[level], "-fno-tree-vectorize"])
