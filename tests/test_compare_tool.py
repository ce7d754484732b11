"""The comparison in ``tools/compare``: rows by name, peers that compute something else, files that it writes."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mxop import autograd

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
    for name in {p.stem for p in TOOL.glob("*.py")} & (set(sys.modules) - before):
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


def workload(timing, reference=None, claims=1, **programs):
    arrays = lambda: [np.arange(8, dtype="float32")]  # noqa: E731
    return timing.Workload("w", "w", programs, arrays, reference=reference, claims=claims)


def test_a_peer_that_computes_something_else_is_left_out(timing):
    rows = workload(timing, mxop=lambda x: x + 1, numpy=lambda x: x + 1, scipy=lambda x: x + 2).measure({}, True)
    assert set(rows[0].seconds) == {"mxop", "numpy"}


def test_mxop_must_agree_with_the_reference(timing):
    with pytest.raises(AssertionError, match="w: mxop result 0: 1 where 2 is right"):
        workload(timing, mxop=lambda x: x + 1, numpy=lambda x: x + 2).measure({}, True)
    with pytest.raises(AssertionError, match="the results of mxop are not those of scipy"):
        workload(timing, mxop=lambda x: x + 1, scipy=lambda x: x + 2, reference=lambda x: x + 1).measure({}, True)


def test_a_row_that_leaves_work_undone_is_refused(timing):
    """As rows "forward and backward" were that returned the gradient alone: peers that leave out as much do not help it."""

    def cheat(x):
        x.attach_grad()

        def run():
            with autograd.record():
                y = x * x
            y.backward()
            return x.grad

        return run

    both = {"reference": lambda x: [x * x, 2 * x], "claims": 2}
    row = workload(timing, mxop=timing.Prepared(cheat), scipy=lambda x: 2 * x, **both)
    with pytest.raises(AssertionError, match="w: mxop returns 1 of 2 results"):
        row.measure({}, True)
    with pytest.raises(AssertionError, match="w: claims 2 results, and the reference has 1"):
        workload(timing, mxop=lambda x: x, numpy=lambda x: x, claims=2).measure({}, True)
    kept = []
    with pytest.raises(AssertionError, match="w: mxop result 0: nan where 0 is right"):
        workload(timing, mxop=lambda x: kept or kept.append(x * x) or kept, numpy=lambda x: x * x).measure({}, True)


def test_a_rate_that_no_memory_has_is_marked(timing):
    values = np.ones(1 << 20, "float32")
    cheat = timing.Workload("w", "w", {"mxop": lambda x: x, "numpy": lambda x: x}, lambda: [values], moved=8 << 20)
    (row,) = cheat.measure({}, True)
    assert row.doubted == ["mxop", "numpy"]
    import report

    assert report.line(row).endswith("| too fast: mxop, numpy |")


def test_rows_that_name_a_gradient_claim_the_result_too(timing):
    spec = importlib.util.spec_from_file_location("compare_main", TOOL / "__main__.py")
    main = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(main)
    both = [w for w in main.WORKLOADS.values() if "forward and backward" in w.what or "differentiated" in w.what]
    assert len(both) >= 12 and all(w.claims > 1 for w in both), [w.name for w in both if w.claims < 2]


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
