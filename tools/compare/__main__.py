#!/usr/bin/env python
"""Measure mxop beside NumPy, torch, JAX and numexpr: all systems in turn, round by round, in one run.

    python tools/compare                       # every row; half an hour
    python tools/compare s.add m.dot           # some rows
    python tools/compare s e                   # some groups: what stands before the point
    python tools/compare --list
    python tools/compare --json figures.json --markdown figures.md && python tools/charts.py figures.json

What is compared are medians of time, as ratios: machines differ, and so does one machine from minute to minute, so only what
ran side by side can be compared.  A ratio is mxop's time (called, called with ``out=``, or bound: the least) over that of the
fastest peer whose result is the same.  NumPy is always there; what else is missing is left out.  Shares of the bandwidth and of
the peak of multiplication and addition come from probes in the same rounds.  A row is ``short`` when its bound is missed; the
exit status stays 0, because this is a report, not a test.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import systems  # noqa: F401  (first: it sets the number of threads)

import arrays  # isort: skip
import cached
import chains
import doors
import fused
import graphs
import importing
import large
import report
import scaling
import sizes
import small
import training
import written
from probes import in_cache, probes
from timing import Row

WORKLOADS = {w.name: w for m in (small, large, arrays, training, fused, cached, chains, sizes, written) for w in m.WORKLOADS}
FIGURES = graphs.FIGURES | doors.FIGURES | importing.FIGURES
GROUPS = {
    "s": "small calls, 8 elements", "call": "small calls beside NumPy", "e": "elementwise, 1e7",
    "n": "each kind of operator, 1e1 to 1e8",
    "z": "random numbers", "r": "reductions and normalisation", "d": "movement", "m": "matrices", "t": "training steps",
    "f": "fused programs", "h": "chains of eager calls",
    "c": "in cache, one thread", "g": "graphs and memory", "u": "operators that users write",
    "i": "import",
}  # fmt: skip


def chosen(names: Sequence[str]) -> list[str]:
    """Return the rows that are named, or belong to groups that are; all when nothing is named."""
    known = [*WORKLOADS, *FIGURES]
    found = [n for n in known if not names or n in names or n.split(".", 1)[0] in names]
    unknown = [n for n in names if n not in known and n not in GROUPS]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; --list shows the names of rows and groups")
    return found


def measure(names: Sequence[str], brief: bool) -> list[Row]:
    """Measure rows, and print them as they come; an error in one is said, and the others go on."""
    rows, machine = [], probes()
    print(report.head())
    for name in names:
        try:
            if name in WORKLOADS:
                load = WORKLOADS[name]
                found = load.measure(in_cache(load.moved, load.reads) if load.cached else machine, brief)
            else:
                found = FIGURES[name]()
        except Exception as problem:
            print(f"{name}: {type(problem).__name__}: {problem}", file=sys.stderr)
            found = [Row(name, getattr(WORKLOADS.get(name), "what", name), "", float("nan"), False, "failed")]
        rows += found
        for row in found:
            print(report.line(row), flush=True)
    return rows


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    found = argparse.ArgumentParser(prog="compare", description=(__doc__ or "").splitlines()[0])
    found.add_argument("names", nargs="*", help="rows or groups; all by default")
    found.add_argument("--list", action="store_true", help="show the names of groups and rows")
    found.add_argument("--json", type=Path, metavar="FILE", help="write the figures, for charts.py")
    found.add_argument("--markdown", type=Path, metavar="FILE", help="write the table")
    found.add_argument("--details", action="store_true", help="show the medians of all systems")
    found.add_argument("--brief", action="store_true", help="two rounds: to see that results agree, not to measure")
    found.add_argument("--mxnet", metavar="PYTHON", help="an interpreter that has MXNet 1.x: CustomOp beside MXNet's")
    found.add_argument("--scaling", action="store_true", help="how much faster all threads are than one")
    found.add_argument("--ways", action="store_true", help="the table of examples/squared_hinge instead")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table, write the files asked for."""
    given = parser().parse_args(arguments)
    if given.list:
        for group, what in GROUPS.items():
            print(f"{group}: {what}")
            print("   ", " ".join(n for n in chosen([group])))
        return
    about = report.machine()
    print(f"{about['cpu']}, {about['threads']} threads, instruction set {about['instruction_set']}; "
          + ", ".join(f"{k} {v}" for k, v in about["versions"].items()))  # fmt: skip
    if given.ways:
        print(doors.ways())
        return
    if given.scaling:
        for name in chosen(given.names):
            if name in WORKLOADS:
                print(f"{name}: {scaling.told(WORKLOADS[name])}", flush=True)
        return
    if given.mxnet:
        FIGURES["u.mxnet"] = lambda: doors.beside_mxnet(given.mxnet)
    rows = measure(chosen(given.names), given.brief)
    if given.details:
        print("\n".join(f"{r.name}:\n{report.details(r)}" for r in rows if r.seconds))
    print(report.summary(rows))
    report.write(rows, given.markdown, given.json)


if __name__ == "__main__":
    main()
