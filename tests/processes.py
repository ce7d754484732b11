"""Runs code in fresh interpreters, for tests of what happens at import and at exit."""

import os
import subprocess
import sys

import mxop as mx

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(mx.__file__)))


def python(code, timeout=120, **environment):
    """Run code; return the finished process.  Settings of this process do not reach it, `environment` does."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("MXOP_")}
    env["PYTHONPATH"] = os.pathsep.join(p for p in (ROOT, env.get("PYTHONPATH")) if p)
    env.update(environment)
    command = [sys.executable, "-X", "faulthandler", "-c", code]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout)


def run_python(code, **environment):
    """Run code that must succeed; return what it printed."""
    done = python(code, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def fails_python(code, **environment):
    """Run code that must fail; return what it said."""
    done = python(code, **environment)
    assert done.returncode == 1, done.stdout
    return done.stderr
