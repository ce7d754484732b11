#!/usr/bin/env python
"""Run the tests of compiled libraries under AddressSanitizer and UndefinedBehaviorSanitizer.

    python tools/sanitize_libraries.py                 # all of tests/test_library*.py
    python tools/sanitize_libraries.py -k hostile      # arguments go to pytest

In a copy of this tree, mxop's own side of the C ABI (``mxop/_core/native*.pyx``) is built with the sanitizers, and so are the
libraries that the tests compile; their run-time is loaded before Python.  Needs gcc (or clang in ``CC`` and ``CXX``) with its
sanitizers, Linux, and a tree that was built in place.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1"
SKIP = ("dist", ".git", "__pycache__", ".hypothesis", ".pytest_cache", ".mypy_cache", ".ruff_cache", "results")


def runtime() -> str:
    """Return the sanitizers' libraries, for ``LD_PRELOAD``."""
    compiler = os.environ.get("CC", "gcc")
    found = []
    for name in ("libasan.so", "libubsan.so", "libstdc++.so"):  # the last, so that exceptions are seen
        path = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout
        path = os.path.realpath(path.strip())
        if not os.path.isabs(path) or not os.path.exists(path):
            sys.exit(f"{compiler} has no {name}")
        found.append(path)
    return ":".join(found)


def instrumented(folder: Path) -> Path:
    """Copy the tree, and build the modules that talk to libraries with the sanitizers."""
    tree = folder / "mxop"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*SKIP), symlinks=True)
    for old in [*(tree / "mxop" / "_core").glob("native*.so"), *(tree / "build").rglob("native*")]:
        old.unlink()  # all else is used as it was built
    environment = dict(os.environ, CFLAGS=FLAGS, LDFLAGS=FLAGS)
    command = [sys.executable, "setup.py", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if done.returncode or not list((tree / "mxop" / "_core").glob("native*.so")):
        sys.exit(done.stdout + done.stderr)
    return tree


def compiler(folder: Path) -> str:
    """Return a compiler that runs without the sanitizers itself, which are loaded before everything else."""
    script = folder / "c++"
    script.write_text(f'#!/bin/sh\nunset LD_PRELOAD\nexec {os.environ.get("CXX", "g++")} "$@"\n')
    script.chmod(0o755)
    return str(script)


def main() -> int:
    """Build, run, and return pytest's exit status."""
    preload = runtime()
    with tempfile.TemporaryDirectory() as folder:
        tree = instrumented(Path(folder))
        environment = dict(
            os.environ, LD_PRELOAD=preload, PYTHONPATH=str(tree), PYTHONMALLOC="malloc", MXOP_TEST_SANITIZE=FLAGS,
            CXX=compiler(Path(folder)), MXOP_CACHE_DIR=str(Path(folder) / "cache"), UBSAN_OPTIONS="print_stacktrace=1",
            # Python's own memory lives until the end, so leaks are for tests to measure; some tests ask for too much memory
            ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=1",
        )  # fmt: skip
        tests = sorted(str(p) for p in (tree / "tests").glob("test_library*.py"))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, *sys.argv[1:]]
        return subprocess.run(command, cwd=tree, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
