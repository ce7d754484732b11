#!/usr/bin/env python
"""Run the tests under AddressSanitizer and UndefinedBehaviorSanitizer, or under ThreadSanitizer.

    python tools/sanitize.py                           # everything that is compiled, the whole suite
    python tools/sanitize.py tests/test_ops.py -k sum  # arguments go to pytest
    python tools/sanitize.py --libraries               # mxop's side of the C ABI and tests/test_library*.py only: quicker
    python tools/sanitize.py --threads                 # ThreadSanitizer, the tests of threads

A copy of this tree is built with the sanitizers, for one instruction set alone (``--level v3``; the best of this machine), and
so are the libraries that the tests compile; the sanitizers' run-time is loaded before Python.  The pool marks memory that no
array has (``mxop/_kernels/memory.pyx``), so reading past an array's end is found, though blocks are larger and used again.

Needs Linux, gcc with its sanitizers, and for ``--threads`` LLVM's libomp and libarcher, which tells ThreadSanitizer how
OpenMP's threads wait for each other: libgomp's own ways are unknown to it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MEMORY = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1"
THREADS = "-fsanitize=thread -fno-omit-frame-pointer -g1"
SKIP = ("dist", ".git", "__pycache__", ".hypothesis", ".pytest_cache", ".mypy_cache", ".ruff_cache", "results")
#: Tests that measure time or memory, or that ask how the package was built and installed: no sanitizer belongs there.
APART = [
    "tests/test_package.py",
    "tests/test_memory.py",
    "tests/test_graph_memory.py",
    "tests/test_garbage.py",
    "tests/test_debug_memory.py",
]  # the pool's own marks, which lie where the sanitizer's are
#: Single tests that measure memory or time; and LLVM in numba does not work beside AddressSanitizer.
SINGLE = [
    "tests/test_autograd_limits.py::test_memory_is_flat_over_many_rounds",
    "tests/test_custom_aot.py::test_cuda_code_wants_arrays_on_a_gpu",
    "tests/test_hybrid_compiled.py::test_threads_run_at_once",
]
#: Tests whose threads do something to the same operators, arrays or graphs.
OF_THREADS = ["tests/test_threads.py", "tests/test_first_use.py", "tests/test_large.py"]


def output_of(*command: str) -> str:
    """Return what a command prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def runtime(*names: str) -> list[str]:
    """Return the compiler's own libraries of these names, for ``LD_PRELOAD``."""
    found = [os.path.realpath(output_of("gcc", f"-print-file-name={name}")) for name in names]
    for path in found:
        if not os.path.exists(path):
            sys.exit(f"gcc has no {os.path.basename(path)}")
    return found


def openmp_of_llvm() -> list[str]:
    """Return LLVM's OpenMP library, which stands in for gcc's, and the tool that explains it to ThreadSanitizer."""
    if shutil.which("clang") is None:
        sys.exit("--threads needs LLVM's libomp and libarcher, and finds them by clang, which is not on the PATH")
    folder = Path(output_of("clang", "-print-resource-dir")).parents[1]
    found = [folder / "libomp.so", folder / "libarcher.so"]
    if not all(p.exists() for p in found):
        sys.exit(f"{folder} has no libomp.so or no libarcher.so")
    return [str(p) for p in found]


def best_level() -> str:
    """Return the best instruction set of this machine that has a module of its own."""
    code = "from mxop._kernels import instruction_sets; print(instruction_sets.available()[0])"
    return output_of(sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}")


def instrumented(folder: Path, flags: str, libraries: bool, level: str | None) -> Path:
    """Copy the tree, and build it (or only the modules that talk to libraries) with the sanitizers."""
    tree = folder / "mxop"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*SKIP), symlinks=True)
    pattern = "native*" if libraries else "*"
    for old in [*(tree / "mxop").rglob(f"{pattern}.so"), *(tree / "build").rglob(f"{pattern}.o")]:
        old.unlink()  # all else is used as it was built
    if not libraries:
        shutil.rmtree(tree / "build", ignore_errors=True)
    environment = dict(os.environ, CC=f"gcc {flags}")  # for linking programs, too: the build tries OpenMP with one
    if not libraries:
        environment["MXOP_BUILD_CPU"] = level or best_level()
    command = [sys.executable, "setup.py", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if done.returncode or not list((tree / "mxop" / "_core").glob("native*.so")):
        sys.exit(done.stdout + done.stderr)
    if "has no OpenMP" in done.stdout:
        sys.exit("built without OpenMP: no threads would be seen\n" + done.stderr)
    return tree


def script(folder: Path, name: str, command: str) -> str:
    """Return a compiler that runs without the sanitizers itself, which are loaded before everything else."""
    path = folder / name
    path.write_text(f'#!/bin/sh\nunset LD_PRELOAD\nexec {command} "$@"\n')
    path.chmod(0o755)
    return str(path)


def run(tree: Path, folder: Path, preload: str, flags: str, arguments: Sequence[str]) -> int:
    """Run pytest in the instrumented tree; return its exit status."""
    environment = dict(
        os.environ, LD_PRELOAD=preload, PYTHONPATH=str(tree), PYTHONMALLOC="malloc", MXOP_TEST_SANITIZE=flags,
        CC=script(folder, "cc", os.environ.get("CC", "gcc")), CXX=script(folder, "c++", os.environ.get("CXX", "g++")),
        MXOP_CACHE_DIR=str(folder / "cache"), UBSAN_OPTIONS="print_stacktrace=1",
        # Python's own memory lives until the end, so leaks are for tests to measure; some tests ask for too much memory; and
        # gcc before 13 puts vectors of 64 bytes at odd places where frames are kept to find their use after return
        ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=0",
        TSAN_OPTIONS="ignore_noninstrumented_modules=1:halt_on_error=1:history_size=4:die_after_fork=0",
    )  # fmt: skip
    # reports are written to the process's own stderr, which pytest must not capture
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--capture=sys", *arguments]
    return subprocess.run(command, cwd=tree, env=environment, check=False).returncode


def main() -> int:
    """Build, run, and return pytest's exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--libraries", action="store_true", help="only what talks to compiled libraries")
    parser.add_argument("--threads", action="store_true", help="ThreadSanitizer instead")
    parser.add_argument("--level", help="instruction set, such as v3; the best of this machine by default")
    given, arguments = parser.parse_known_args()
    named = any(not a.startswith("-") and Path(a.split("::")[0]).exists() for a in arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.threads:
            openmp, archer = openmp_of_llvm()
            os.environ["OMP_TOOL_LIBRARIES"] = archer
            preload = [*runtime("libtsan.so"), openmp]
            tests, flags = OF_THREADS, THREADS
        else:
            preload = runtime("libasan.so", "libubsan.so", "libstdc++.so")  # the last, so that exceptions are seen
            flags = MEMORY
            tests = ["tests", *(f"--ignore={t}" for t in APART), *(f"--deselect={t}" for t in SINGLE)]
            if given.libraries:
                tests = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "tests").glob("test_library*.py"))
        tree = instrumented(folder, flags, given.libraries, given.level)
        return run(tree, folder, ":".join(preload), flags, [*([] if named else tests), *arguments])


if __name__ == "__main__":
    sys.exit(main())
