"""What the machine can do: bandwidth of memory and multiplications with addition, measured in the rounds of the workloads.

A small C file is compiled for the machine; without a compiler, NumPy and torch copy, and there is no peak.  Imports `systems`
and `timing`.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from systems import THREADS, Call, torch
from timing import PROBED

BYTES = 40_000_000  # of an array: as large as the workloads'
SOURCE = r"""
#include <string.h>
#ifdef __AVX512F__
enum { VECTOR = 64 };
#elif defined(__AVX__)
enum { VECTOR = 32 };
#else
enum { VECTOR = 16 };
#endif
typedef float many __attribute__((vector_size(VECTOR)));
int lanes(void) { return VECTOR / sizeof(float); }
void copy(float *y, const float *x, const float *z, long n) { memcpy(y, x, n * sizeof(float)); }
void triad(float *y, const float *x, const float *z, long n) {
  for (long i = 0; i < n; ++i) y[i] = x[i] + 3.0f * z[i];
}
void read(float *y, const float *x, const float *z, long n) {
  many sum[4] = {{0}};
  for (long i = 0; i + VECTOR <= n; i += VECTOR)
    for (int k = 0; k < 4; ++k) { many v; memcpy(&v, x + i + VECTOR / 4 * k, sizeof v); sum[k] += v; }
  many all = sum[0] + sum[1] + sum[2] + sum[3];
  y[0] = all[0];
}
void multiply_add(float *y, const float *x, const float *z, long n) {
  many s[12], a, b;
  memcpy(&a, x, sizeof a);
  memcpy(&b, z, sizeof b);
  for (int k = 0; k < 12; ++k) s[k] = a * (float)k;
  for (long i = 0; i < n; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < 12; ++k) s[k] = s[k] * a + b;
  }
  for (int k = 1; k < 12; ++k) s[0] += s[k];
  y[0] = s[0][0];
}
"""
LOOPS = 2_000_000  # milliseconds: starting threads takes a tenth of one, or three
PASSES = 6  # over the arrays, for the same reason
Address = int


@cache
def _compiled() -> Any:
    folder = tempfile.mkdtemp(prefix="mxop_probes")
    source, library = Path(folder, "probes.c"), Path(folder, "probes.so")
    source.write_text(SOURCE)
    command = [
        *shlex.split(os.environ.get("CC", "cc")),
        "-O3",
        "-march=native",
        "-ffp-contract=fast",
        "-shared",
        "-fPIC",
    ]
    try:
        subprocess.run([*command, str(source), "-o", str(library)], check=True, capture_output=True)
        return ctypes.CDLL(str(library))
    except (OSError, subprocess.CalledProcessError) as problem:
        print(f"no C compiler for the probes: {problem}", file=sys.stderr)
        return None


def _together(work: Callable[[int], Any]) -> Call:
    """Return a call of `work` in as many threads as the systems have."""

    def on(core: set[int], k: int) -> None:
        _move_to(core)
        work(k)

    def run() -> None:
        cores = _cores()
        others = [threading.Thread(target=on, args=({cores[k % len(cores)]}, k)) for k in range(1, THREADS)]
        _move_to({cores[0]})
        try:
            for t in others:
                t.start()
            work(0)
            for t in others:
                t.join()
        finally:
            _move_to(set(cores))

    return run


def _cores() -> list[int]:
    """Return the cores that there are: the system may put two threads on one."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]


def _move_to(cores: set[int]) -> None:
    """Let this thread run on some cores only, where the system can be told."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)


def in_cache(moved: float, reads: bool) -> dict[str, Call]:
    """Return what copies, or reads, as many bytes in one thread: all of them are in the caches, as far as those reach."""
    x = np.full(int(moved) // (4 if reads else 8), 0.5, np.float32)
    y = np.empty_like(x)
    if not reads:
        PROBED["copy, in cache"] = moved
        return {"copy, in cache": lambda: np.copyto(y, x)}
    library = _compiled()
    if library is None:
        return {}
    library.read.argtypes, library.read.restype = [ctypes.c_void_p] * 3 + [ctypes.c_long], None
    PROBED["read, in cache"] = moved
    to, source = y.ctypes.data_as(ctypes.c_void_p), x.ctypes.data_as(ctypes.c_void_p)  # which keep the arrays
    return {"read, in cache": lambda: library.read(to, source, source, len(x))}


def probes() -> dict[str, Call]:
    """Return the probes that there are, and write down what each moves or computes."""
    n = BYTES // 4
    arrays = [np.full(n, 0.5, np.float32) for _ in range(3)]
    y, x, z = (a.ctypes.data for a in arrays)
    parts = [(k * n // THREADS, (k + 1) * n // THREADS) for k in range(THREADS)]
    found: dict[str, Call] = {
        "copy, numpy": _together(lambda k: np.copyto(arrays[0][slice(*parts[k])], arrays[1][slice(*parts[k])]))
    }
    PROBED["copy, numpy"] = 2.0 * BYTES
    library = _compiled()
    if library is not None:
        results = np.zeros((THREADS, 1024), np.float32)  # each thread its own lines of the cache

        def part(function: Any, target: Callable[[int], Address]) -> Call:
            function.argtypes, function.restype = [ctypes.c_void_p] * 3 + [ctypes.c_long], None

            def passes(k: int) -> None:
                for _ in range(PASSES):
                    function(target(k), x + 4 * parts[k][0], z + 4 * parts[k][0], parts[k][1] - parts[k][0])

            return _together(passes)

        for name, arrays_moved in (("copy", 2), ("triad", 3)):
            found[name] = part(getattr(library, name), lambda k: y + 4 * parts[k][0])
            PROBED[name] = float(PASSES * arrays_moved * BYTES)
        found["read"] = part(library.read, lambda k: results[k].ctypes.data)
        PROBED["read"] = float(PASSES * BYTES)
        function = library.multiply_add
        function.argtypes, function.restype = [ctypes.c_void_p] * 3 + [ctypes.c_long], None
        found["multiply-add"] = _together(lambda k: function(results[k].ctypes.data, x, z, LOOPS))
        PROBED["multiply-add"] = 2.0 * 12 * library.lanes() * LOOPS * THREADS
    elif torch is not None:
        source, target = (torch.from_numpy(a) for a in arrays[:2])
        found["copy, torch"] = lambda: target.copy_(source)
        PROBED["copy, torch"] = 2.0 * BYTES
    return found
