"""The comparison in ``tools/compare``: rows by name, peers that compute something else, files that it writes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

TOOL = Path(__file__).resolve().parent.parent / "tools" / "compare"


def run(*arguments):
    command = [sys.executable, str(TOOL), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=TOOL.parent.parent)


@pytest.fixture
def timing(monkeypatch):
    monkeypatch.syspath_prepend(TOOL)
    monkeypatch.setattr(os, "environ", dict(os.environ))  # it sets numbers of threads, which end with the test
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: None, raising=False)
    before = set(sys.modules)
    import mxop as mx

    threads = mx.context.get_num_threads()
    import timing

    yield timing
    mx.context.set_num_threads(threads)
    for name in {"timing", "systems"} - before:
        del sys.modules[name]


def test_one_row_by_name_as_json_and_markdown(tmp_path):
    done = run("s.add", "c.exp.f32", "--brief", "--json", tmp_path / "rows.json", "--markdown", tmp_path / "rows.md")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "rows.json").read_text())
    assert {r["name"] for r in found["rows"]} == {"s.add", "c.exp.f32"}
    for row in found["rows"]:
        assert {"mxop", "numpy"} <= set(row["seconds"]) and row["measured"] > 0
        assert (row["measured"] <= float(row["bound"].split()[1])) == row["ok"]
    assert "| s.add |" in (tmp_path / "rows.md").read_text()


def test_every_row_has_a_name_and_a_group():
    done = run("--list")
    assert done.returncode == 0, done.stderr
    names = " ".join(line for line in done.stdout.splitlines() if line.startswith("    "))
    wanted = "s.rec2 e.sigmul r.softmax d.tr m.dot t.gp f.gelu n.add.1e8 h.chain3 g.nodes u.formula u.focal.both"
    assert set(wanted.split()) <= set(names.split())
    assert "unknown: s.ad" in run("s.ad").stderr


def workload(timing, **programs):
    return timing.Workload("w", "w", programs, lambda: [np.arange(8, dtype="float32")])


def test_a_peer_that_computes_something_else_is_left_out(timing):
    rows = workload(timing, mxop=lambda x: x + 1, numpy=lambda x: x + 1, scipy=lambda x: x + 2).measure({}, True)
    assert set(rows[0].seconds) == {"mxop", "numpy"}


def test_mxop_must_agree_with_a_peer(timing):
    with pytest.raises(AssertionError, match="not those of numpy"):
        workload(timing, mxop=lambda x: x + 1, numpy=lambda x: x + 2).measure({}, True)


def test_shares_are_of_the_fastest_probe_of_the_same_rounds(timing, monkeypatch):
    monkeypatch.setattr(timing, "PROBED", {"copy": 80.0, "triad": 90.0, "read": 50.0})
    seconds = {"mxop": 2.0, "numpy": 4.0}
    w = timing.Workload("w", "w", {}, list, moved=100.0)
    (row,) = w.rows(seconds, seconds | {"copy": 1.0, "triad": 1.0, "read": 1.0})
    assert (row.measured, row.ok, row.against) == (0.5, True, "numpy")
    assert row.bandwidth == pytest.approx(50 / 90) and row.peak is None


def test_a_row_at_the_limit_may_be_as_slow_as_a_peer(timing, monkeypatch):
    monkeypatch.setattr(timing, "PROBED", {"copy": 50.0})
    for moved, ok in ((90.0, True), (40.0, False)):
        (row,) = timing.Workload("w", "w", {}, list, moved=moved).rows({"mxop": 2.0, "numpy": 2.1}, {"copy": 1.0})
        assert row.ok is ok
