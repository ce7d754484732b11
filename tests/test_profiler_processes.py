"""The profiler from the start of a process to its end: the environment, exits, forks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mxop as mx

ROOT = Path(mx.__file__).parent.parent


def names(folder):
    """Return the operators in the file that a process wrote."""
    events = json.loads((folder / "profile.json").read_text())["traceEvents"]
    return [e["name"] for e in events if e.get("cat") == "operator"]


def run(text, folder, **environment):
    env = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    done = subprocess.run([sys.executable, "-c", text], cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_what_was_not_dumped_is_at_exit(tmp_path):
    run("import mxop as mx; mx.profiler.set_state('run'); mx.nd.sin(mx.nd.ones((2,)))", tmp_path)
    assert "sin" in names(tmp_path)


def test_starting_from_the_environment(tmp_path):
    text = "import mxop as mx; mx.nd.sin(mx.nd.ones((2,)))"
    run(text, tmp_path, MXOP_PROFILER_AUTOSTART="0")
    assert not (tmp_path / "profile.json").exists()
    run(text, tmp_path, MXOP_PROFILER_AUTOSTART="1")
    assert "sin" in names(tmp_path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_leaves_the_file_to_its_parent(tmp_path):
    text = (
        "import os, mxop as mx\nx = mx.nd.ones((2,))\nmx.profiler.set_config(dump_period=0.01)\n"
        "mx.profiler.set_state('run')\nmx.nd.sin(x)\npid = os.fork()\nmx.nd.cos(x)\n"
        "if pid == 0:\n    raise SystemExit(0)\nassert os.waitpid(pid, 0)[1] == 0\nmx.profiler.dump()\n"
    )
    run(text, tmp_path)
    assert names(tmp_path) == ["sin", "cos"]


def test_import_does_not_load_it():
    assert "mxop.profiler" not in run("import sys, mxop; print(*sys.modules)", ROOT).split()
