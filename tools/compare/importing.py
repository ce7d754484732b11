"""What an import takes, in processes of their own: time, and resident memory afterwards.  Imports `systems` and `timing`."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

from systems import jax, numexpr, torch
from timing import Row

ROUNDS = 7
PROGRAM = """
import time
start = time.perf_counter()
import {0}
print(time.perf_counter() - start)
try:
    print(int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6)
except OSError:
    print("nan")
"""


def imported(name: str) -> tuple[float, float]:
    """Import a module in a new process; return seconds, and megabytes of resident memory."""
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # the first import keeps its byte code for the others
    program = [sys.executable, "-c", PROGRAM.format(name)]
    done = subprocess.run(program, capture_output=True, text=True, check=True, env=environment)
    seconds, memory = map(float, done.stdout.split())
    return seconds, memory


def imports() -> list[Row]:
    """Import mxop beside NumPy; torch and JAX are shown."""
    others = {"torch": torch, "jax": jax, "numexpr": numexpr}
    names = ["mxop", "numpy", *(n for n, module in others.items() if module is not None)]
    found: dict[str, list[tuple[float, float]]] = {n: [] for n in names}
    for k in range(ROUNDS):
        for name in names[k % len(names) :] + names[: k % len(names)]:
            found[name].append(imported(name))
    seconds = {n: statistics.median(s for s, _ in times) for n, times in found.items()}
    memory = {n: statistics.median(m for _, m in times) for n, times in found.items()}
    time, size = seconds["mxop"] / seconds["numpy"], memory["mxop"] / memory["numpy"]
    return [
        Row("i.time", "import", "<= 2", time, time <= 2, "numpy", seconds=seconds),
        Row("i.memory", "resident memory after import", "<= 1.5", size, size <= 1.5, "numpy", "of it"),
    ]


#: Measures by name.
FIGURES = {"i.import": imports}
