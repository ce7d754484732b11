#!/usr/bin/env python
"""Measure mxop beside NumPy, torch, JAX and numexpr: all systems in turn, round by round, in one run.

    python tools/compare.py                    # everything, about five minutes; prints the table of figures
    python tools/compare.py small large        # some groups only
    python tools/compare.py --json figures.json && python tools/charts.py figures.json

What is compared are medians of time, as ratios: machines differ, and so does one machine from minute to minute, so only
what ran side by side can be compared.  NumPy is always there; torch, JAX and numexpr when importable.
A row is ``short`` when its bound is missed; the exit status stays 0, because this is a report, not a test.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import platform
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

# Thread counts are read when the libraries start, so they are set before anything is imported.
THREADS = 2
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "MXOP_NUM_THREADS"):
    os.environ.setdefault(_name, str(THREADS))
if hasattr(os, "sched_setaffinity") and len(os.sched_getaffinity(0)) > THREADS:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])  # JAX knows no other way

import numpy as np  # noqa: E402

import mxop as mx  # noqa: E402
from mxop import autograd, nd  # noqa: E402

LARGE = 10_000_000
Systems = dict[str, Callable[[], Any]]


def optional(name: str) -> Any:
    """Import a module, or return None."""
    try:
        return __import__(name)
    except ImportError:
        return None


torch, jax, numexpr = optional("torch"), optional("jax"), optional("numexpr")
if torch is not None:
    torch.set_num_threads(THREADS)
if numexpr is not None:
    numexpr.set_num_threads(THREADS)


# ---- rows ------------------------------------------------------------------------------------------------------------
@dataclass
class Row:
    """One line of the table.

    Attributes
    ----------
    measured : float
        A ratio of times, a share of the copy bandwidth, or units in the last place.
    seconds : dict of str to float
        Median of every system.
    """

    group: str
    what: str
    bound: str
    measured: float
    ok: bool
    against: str = ""
    unit: str = "x"
    seconds: dict[str, float] = field(default_factory=dict)


def in_turn(systems: Systems, rounds: int, least: float, rest: float = 0.0) -> dict[str, float]:
    """Time every system once a round, in an order that rotates; return medians of seconds for one call.

    Parameters
    ----------
    least : float
        Seconds that one measurement takes at least; short calls are repeated.
    rest : float
        Seconds before each measurement in which the threads of the system before fall asleep: waiting, they would hold
        the cores.  One call that is not timed follows, which wakes the system's own.
    """
    repeats = {}
    for name, call in systems.items():
        call()
        start, n = time.perf_counter(), 0
        while time.perf_counter() - start < least:
            call()
            n += 1
        repeats[name] = max(n, 1)
    found: dict[str, list[float]] = {name: [] for name in systems}
    names = list(systems)
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for k in range(rounds):
            for name in names[k % len(names) :] + names[: k % len(names)]:
                call, n = systems[name], repeats[name]
                if rest:
                    time.sleep(rest)
                    call()
                start = time.perf_counter()
                for _ in range(n):
                    call()
                found[name].append((time.perf_counter() - start) / n)
    finally:
        if was_enabled:
            gc.enable()
    return {name: statistics.median(times) for name, times in found.items()}


def ratio_row(group: str, what: str, bound: float, systems: Systems, peers: Iterable[str], *, rounds: int, least: float,
              rest: float = 0.0) -> Row | None:  # fmt: skip
    """Compare mxop with the best of `peers` that are there; None when none is."""
    there = [p for p in peers if p in systems]
    seconds = in_turn(systems, rounds, least, rest)
    if not there:
        return Row(group, what, f"<= {bound:g}", float("nan"), False, "not installed", seconds=seconds)
    best = min(there, key=seconds.__getitem__)
    ratio = seconds["mxop"] / seconds[best]
    return Row(group, what, f"<= {bound:g}", ratio, ratio <= bound, best, seconds=seconds)


# ---- small calls -----------------------------------------------------------------------------------------------------
def small() -> list[Row]:
    """Calls on 8 elements: what a call costs beside its work."""
    rows = []
    values = np.linspace(0.1, 0.8, 8, dtype=np.float32)
    x, y = nd.array(values), nd.array(values[::-1].copy())
    xn, yn = values, values[::-1].copy()
    systems: Systems = {"mxop": lambda: x + y, "numpy": lambda: xn + yn}
    if torch is not None:
        xt, yt = torch.from_numpy(xn), torch.from_numpy(yn)
        systems["torch"] = lambda: xt + yt
    rows.append(ratio_row("small", "x + y, 8 float32", 0.5, systems, ["numpy"], rounds=41, least=2e-3))

    a, b, c = 1.0, 2.0, 3.0
    quadratic = nd.quadratic
    systems = {
        "mxop": lambda: quadratic(x, a=1.0, b=2.0, c=3.0),
        "numpy": lambda: a * xn * xn + b * xn + c,
    }
    if torch is not None:
        systems["torch"] = lambda: a * xt * xt + b * xt + c
    rows.append(
        ratio_row("small", "nd.quadratic(x, a=, b=, c=), 8 float32", 0.3, systems, ["numpy"], rounds=41, least=2e-3)
    )
    rows += [_first_order(values), _second_order(values), _chain(values)]
    return [r for r in rows if r is not None]


def _first_order(values: np.ndarray) -> Row | None:
    x = nd.array(values)
    x.attach_grad()

    def ours():
        with autograd.record():
            y = nd.sin(x) * x
        y.backward()

    systems: Systems = {"mxop": ours}
    if torch is not None:
        t = torch.from_numpy(values.copy()).requires_grad_()
        ones = torch.ones(8)

        def theirs():
            t.grad = None
            (torch.sin(t) * t).backward(ones)

        systems["torch"] = theirs
    what = "record + backward of sin(x)*x, 8 float32"
    return ratio_row("small", what, 0.2, systems, ["torch"], rounds=41, least=2e-3)


def _second_order(values: np.ndarray) -> Row | None:
    x = nd.array(values)
    x.attach_grad()

    def ours():
        with autograd.record():
            y = nd.sin(x) * x
            (g,) = autograd.grad(y, [x], create_graph=True)
        g.backward()

    systems: Systems = {"mxop": ours}
    if torch is not None:
        t = torch.from_numpy(values.copy()).requires_grad_()
        ones = torch.ones(8)

        def theirs():
            t.grad = None
            (g,) = torch.autograd.grad(torch.sin(t) * t, t, ones, create_graph=True)
            g.backward(ones)

        systems["torch"] = theirs
    return ratio_row("small", "the same at second order", 0.2, systems, ["torch"], rounds=41, least=2e-3)


def _chain(values: np.ndarray) -> Row | None:
    s = mx.sym.Variable("x")
    for name in ("sin", "exp", "tanh", "sigmoid", "square", "sqrt", "log1p", "arctan", "cos", "expm1"):
        s = getattr(mx.sym, name)(s)
    bound = s.simple_bind(mx.cpu(), grad_req="write", x=(8,))
    bound.arg_dict["x"][:] = nd.array(values)
    head = nd.ones((8,))

    def ours():
        bound.forward(is_train=True)
        bound.backward(head)

    systems: Systems = {"mxop": ours}
    if torch is not None:
        t = torch.from_numpy(values.copy()).requires_grad_()
        ones = torch.ones(8)
        chain = [torch.sin, torch.exp, torch.tanh, torch.sigmoid, torch.square, torch.sqrt, torch.log1p, torch.atan,
                 torch.cos, torch.expm1]  # fmt: skip

        def theirs():
            t.grad = None
            y = t
            for f in chain:
                y = f(y)
            y.backward(ones)

        systems["torch"] = theirs
    what = "10-operator chain, forward and backward, bound executor, 8 float32"
    return ratio_row("small", what, 0.1, systems, ["torch"], rounds=31, least=2e-3)


# ---- bandwidth -------------------------------------------------------------------------------------------------------
def copies(n: int) -> Systems:
    """Return several ways to copy `n` float32 with two threads, into memory that exists."""
    source, target = np.ones(n, np.float32), np.zeros(n, np.float32)
    parts = [slice(k * n // THREADS, (k + 1) * n // THREADS) for k in range(THREADS)]

    def together(work: Callable[[slice], Any]) -> Callable[[], None]:
        def run() -> None:
            others = [threading.Thread(target=work, args=(p,)) for p in parts[1:]]
            for t in others:
                t.start()
            work(parts[0])
            for t in others:
                t.join()

        return run

    address = [a.__array_interface__["data"][0] for a in (target, source)]

    def move(p: slice) -> None:
        ctypes.memmove(address[0] + 4 * p.start, address[1] + 4 * p.start, 4 * (p.stop - p.start))

    found: Systems = {
        "np.copyto": together(lambda p: np.copyto(target[p], source[p])),
        "memmove": together(move),
    }
    x, out = nd.array(source), nd.zeros((n,))
    found["mxop copy"] = lambda: nd.identity(x, out=out)
    if torch is not None:
        xt, out_t = torch.from_numpy(source), torch.from_numpy(target)
        found["torch copy_"] = lambda: out_t.copy_(xt)
    return found


def bandwidth(n: int) -> list[Row]:
    """Large imperative calls against the copy bandwidth of the same rounds."""
    rng = np.random.default_rng(0)
    x, y = nd.array(rng.uniform(0, 1, n).astype(np.float32)), nd.array(rng.uniform(0, 1, n).astype(np.float32))
    variable, head = nd.array(x.asnumpy()), nd.array(y.asnumpy())
    variable.attach_grad()
    with autograd.record():
        recorded = nd.quadratic(variable, a=1.0, b=2.0, c=3.0)
    calls: Systems = {
        "quadratic forward": lambda: nd.quadratic(x, a=1.0, b=2.0, c=3.0),
        "quadratic backward": lambda: autograd.grad(recorded, [variable], [head], retain_graph=True),
        "x + y": lambda: x + y,
    }
    arrays = {"quadratic forward": 2, "quadratic backward": 3, "x + y": 3}  # read and written
    ways = copies(n)
    seconds = in_turn({**calls, **ways}, 15, 0.0)
    fastest = min(ways, key=seconds.__getitem__)
    speed = 2 * 4 * n / seconds[fastest]
    rows = [Row("large", f"copy, {THREADS} threads, {n:g} float32 ({fastest})", "", speed / 1e9, True, unit="GB/s",
                seconds={w: seconds[w] for w in ways})]  # fmt: skip
    for name in calls:
        share = arrays[name] * 4 * n / seconds[name] / speed
        rows.append(Row("large", f"{name}, {n:g} float32, result allocated", ">= 0.85", share, share >= 0.85,
                        "copy bandwidth", unit="of it", seconds={"mxop": seconds[name]}))  # fmt: skip
    return rows


# ---- functions of large arrays ---------------------------------------------------------------------------------------
def large() -> list[Row]:
    """1e7 elements."""
    rows = bandwidth(LARGE)
    values = np.random.default_rng(1).uniform(0.05, 3, LARGE).astype(np.float32)
    x = nd.array(values)
    for name in ("exp", "log", "sin", "tanh", "erf", "sigmoid"):
        call = getattr(nd, name)
        out = nd.zeros((LARGE,))
        systems: Systems = {"mxop": lambda call=call: call(x), "mxop out=": lambda call=call, out=out: call(x, out=out)}
        theirs = getattr(np, name, None)
        if theirs is not None:
            target = np.empty_like(values)
            systems["numpy out="] = lambda f=theirs, t=target: f(values, out=t)
        if torch is not None:
            theirs, xt, out_t = getattr(torch, name), torch.from_numpy(values), torch.empty(LARGE)
            systems["torch out="] = lambda f=theirs, o=out_t, t=xt: f(t, out=o)
        rows.append(ratio_row("large", f"{name}, 1e7 float32", 1.0, systems, ["torch out="], rounds=9, least=0.0))
    rows.append(_fused())
    return [r for r in rows if r is not None]


def _fused() -> Row | None:
    rng = np.random.default_rng(2)
    x, y, z = (rng.normal(size=LARGE).astype(np.float32) for _ in range(3))
    sx, sy, sz = (mx.sym.Variable(k) for k in "xyz")
    bound = (mx.sym.sigmoid(sx * sy + sz) * sx).bind(mx.cpu(), {"x": nd.array(x), "y": nd.array(y), "z": nd.array(z)})
    systems: Systems = {"mxop": lambda: bound.forward(is_train=False)}
    if numexpr is not None:
        out = np.empty_like(x)
        systems["numexpr"] = lambda: numexpr.evaluate("x / (1 + exp(-(x * y + z)))", {"x": x, "y": y, "z": z}, out=out)
    if torch is not None:
        tx, ty, tz = map(torch.from_numpy, (x, y, z))
        systems["torch eager"] = lambda: torch.sigmoid(tx * ty + tz) * tx
        try:
            compiled = torch.compile(lambda a, b, c: torch.sigmoid(a * b + c) * a)
            compiled(tx, ty, tz)
            systems["torch.compile"] = lambda: compiled(tx, ty, tz)
        except Exception as problem:  # it needs a compiler
            print(f"torch.compile: {str(problem).splitlines()[0]}", file=sys.stderr)
    if jax is not None:
        jx, jy, jz = map(jax.numpy.asarray, (x, y, z))
        jitted = jax.jit(lambda a, b, c: jax.nn.sigmoid(a * b + c) * a)
        systems["jax.jit"] = lambda: jitted(jx, jy, jz).block_until_ready()
    peers = ["torch.compile", "jax.jit", "numexpr"]
    return ratio_row("large", "sigmoid(x*y+z)*x, bound executor, 1e7 float32", 0.5, systems, peers, rounds=9, least=0.0)


# ---- accuracy --------------------------------------------------------------------------------------------------------
def sweep(count: int = 1000) -> np.ndarray:
    """Return float32 of every binade and both signs: its ends, and random numbers between; denormals too."""
    rng = np.random.default_rng(3)
    bits = [np.uint32(e) << 23 | rng.integers(0, 1 << 23, count, dtype=np.uint32) for e in range(255)]
    bits += [np.arange(255, dtype=np.uint32) << 23, (np.arange(255, dtype=np.uint32) << 23) | 0x7FFFFF]
    # most functions change where arguments are near 1: look closer there
    bits += [np.uint32(e) << 23 | rng.integers(0, 1 << 23, 20 * count, dtype=np.uint32) for e in range(117, 137)]
    positive = np.concatenate(bits).astype(np.uint32).view(np.float32)
    return np.concatenate([positive, -positive])


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return errors in units of the last place of float32, infinite where NaN or infinity is at fault."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        unit = np.spacing(np.minimum(np.abs(rounded), np.float32(3.4028235e38))).astype(np.float64)
        error = np.abs(got.astype(np.float64) - exact) / np.abs(unit)
    error[(got == rounded) | (np.isnan(got) & np.isnan(rounded))] = np.minimum(
        np.nan_to_num(error[(got == rounded) | (np.isnan(got) & np.isnan(rounded))], nan=0.0, posinf=0.0), 0.5
    )
    edge = np.isinf(got) & (np.abs(exact) > 3.402823e38) & (np.sign(got) == np.sign(exact))
    error[edge] = 0.5
    return np.nan_to_num(error, nan=np.inf)


def accuracy() -> list[Row]:
    """The largest error of every unary operator over all binades."""
    from mxop.opdef import registry
    from mxop.records import math as records

    x = sweep()
    wide = x.astype(np.float64)
    rows = []
    for name, record in records.RECORDS.items():
        op = registry.find(name)
        if op is None or op.kind != "elementwise" or len(op.arguments) != 1 or op.variadic or op.out_dtype is not None:
            continue
        params = record.params[-1]  # the most telling ones: the first are often the defaults
        with np.errstate(all="ignore"):
            exact = np.asarray(record.reference(wide, **params), dtype=np.float64)
        got = nd._internal.__getattr__(name)(nd.array(x), **params).asnumpy()
        error = ulps(got, exact)
        at = int(np.argmax(error))
        rows.append(Row("accuracy", f"{name}{params or ''}, float32, all binades", "<= 2", float(error[at]),
                        bool(error[at] <= 2), f"worst at {x[at]!s}", unit="ULP"))  # fmt: skip
    return rows


# ---- memory ----------------------------------------------------------------------------------------------------------
def resident() -> int:
    """Return the bytes of memory that the process holds."""
    try:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def memory() -> list[Row]:
    """Resident memory over 1e4 rounds of recording, backward and create_graph."""
    x = nd.array(np.linspace(0, 1, 4096, dtype=np.float32))
    x.attach_grad()

    def rounds(n: int) -> None:
        for _ in range(n):
            with autograd.record():
                y = nd.sin(x) * x
                (g,) = autograd.grad(y, [x], create_graph=True)
                z = nd.sum(g * g)
            z.backward()

    rounds(1000)
    before, used = resident(), mx.context.memory_stats()["in_use"]
    rounds(10_000)
    grown, more = resident() - before, mx.context.memory_stats()["in_use"] - used
    what = "resident memory over 1e4 rounds of record, backward, create_graph"
    return [Row("memory", what, "<= 1 MB", grown / 1e6, grown <= 1 << 20 and more == 0, f"pool in use {more:+d} bytes",
                unit="MB")]  # fmt: skip


GROUPS = {"small": small, "large": large, "accuracy": accuracy, "memory": memory}


# ---- report ----------------------------------------------------------------------------------------------------------
def machine() -> dict[str, Any]:
    """Describe what was measured on."""
    from mxop._kernels import interp

    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as f:
            model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), model)
    except OSError:
        pass
    versions = {"numpy": np.__version__, "mxop": mx.__version__, "python": platform.python_version()}
    versions.update({m.__name__: m.__version__ for m in (torch, jax, numexpr) if m is not None})
    return {"cpu": model, "cores": os.cpu_count(), "threads": THREADS, "instruction_set": interp.instruction_set(),
            "versions": versions}  # fmt: skip


def show(row: Row) -> str:
    """Write a row as one line of the table."""
    value = f"{row.measured:.3g} {row.unit}" if np.isfinite(row.measured) else "-"
    verdict = "" if not row.bound else "ok" if row.ok else "short" if np.isfinite(row.measured) else "-"
    return f"| {row.what:<68} | {row.bound:<8} | {value:>10} | {row.against:<24} | {verdict:<5} |"


def details(row: Row) -> str:
    """Write the medians of a row."""
    return "    " + ", ".join(f"{name} {_time(s)}" for name, s in sorted(row.seconds.items(), key=lambda i: i[1]))


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def write(path: str, rows: list[Row]) -> None:
    """Write rows as JSON, which ``charts.py`` draws; ``-`` prints them."""
    text = json.dumps({"machine": machine(), "rows": [asdict(r) for r in rows]}, indent=1) + "\n"
    if path == "-":
        print(text, end="")
    else:
        with open(path, "w") as f:
            f.write(text)


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the table, write the files asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = ", ".join(GROUPS)
    parser.add_argument("groups", nargs="*", default=list(GROUPS), metavar="group", help=f"of {known}; all by default")
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON ('-' prints them)")
    parser.add_argument("--details", action="store_true", help="show the medians of all systems")
    given = parser.parse_args(arguments)
    unknown = set(given.groups) - set(GROUPS)
    if unknown:
        parser.error(f"unknown group {', '.join(sorted(unknown))}; expected {known}")
    about = machine()
    print(f"{about['cpu']}, {THREADS} threads, instruction set {about['instruction_set']}; "
          + ", ".join(f"{k} {v}" for k, v in about["versions"].items()))  # fmt: skip
    print(f"| {'what':<68} | {'bound':<8} | {'measured':>10} | {'against':<24} |       |")
    print(f"|{'-' * 70}|{'-' * 10}|{'-' * 12}|{'-' * 26}|{'-' * 7}|")
    rows: list[Row] = []
    for group in given.groups:
        for row in GROUPS[group]():
            rows.append(row)
            print(show(row), flush=True)
            if given.details and row.seconds:
                print(details(row))
    short = [r for r in rows if r.bound and not r.ok]
    print(f"{sum(bool(r.bound) for r in rows)} figures, {len(short)} short")
    if given.json:
        write(given.json, rows)


if __name__ == "__main__":
    main()
