#!/usr/bin/env python
"""Run one test many times, each time with another seed, and say how often and with which seeds it fails.

    python tools/flakiness_checker.py test_operator.test_quadratic_function
    python tools/flakiness_checker.py tests/test_operator.py::test_quadratic_function -n 100 -s 42

All trials run in one child process: starting an interpreter for each would take far longer than most tests, while a
test that crashes must not take this tool, and the seed it knows, with it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_TRIALS = 500
SHOWN_SEEDS = 10


# --------------------------------------------------------------------------------------------------------------------
# Which test
# --------------------------------------------------------------------------------------------------------------------
def find_test(spec: str) -> str:
    """Return the pytest id of the test that `spec` means.

    Parameters
    ----------
    spec : str
        ``module.test``, ``module.Class.test``, ``module.py:test`` or ``path/module.py::test``. The module is looked
        for in the current directory, the root of the repository, and the ``tests`` folder of each.

    Raises
    ------
    ValueError
        When there is no such file.
    """
    if ".py:" in spec:
        path, _, name = spec.partition(":")
        candidates = [(Path(path), name.lstrip(":"))]
    else:
        dotted, bracket, parameters = spec.partition("[")  # the parameters of a test may hold dots of their own
        parts = dotted.split(".")
        cuts = range(len(parts) - 1, 0, -1)
        candidates = [(Path(*parts[:i]).with_suffix(".py"), "::".join(parts[i:]) + bracket + parameters) for i in cuts]
    for path, name in candidates:
        for found in _places(path):
            if found.is_file():
                return f"{found}::{name}"
    raise ValueError(f"no file for the test {spec!r} in {Path.cwd()}, {ROOT} or their tests folders")


def _places(path: Path) -> Iterator[Path]:
    for folder in dict.fromkeys((Path.cwd(), ROOT)):
        yield folder / path
        yield folder / "tests" / path
    yield from sorted((ROOT / "tests").glob(f"*/**/{path.name}"))


# --------------------------------------------------------------------------------------------------------------------
# The child: runs the trials and reports each as a line of JSON
# --------------------------------------------------------------------------------------------------------------------
class RepeatEachTest:
    """A pytest plugin: runs each collected test `trials` times, setting up and tearing down its fixtures each time."""

    def __init__(self, seeds: range, stop_at_first: bool, channel: TextIO) -> None:
        self.seeds = seeds
        self.stop_at_first = stop_at_first
        self.channel = channel

    def tell(self, **event: Any) -> None:
        """Send one event to the parent."""
        print(json.dumps(event), file=self.channel, flush=True)

    def pytest_collection_finish(self, session: Any) -> None:
        self.tell(event="collected", count=len(session.items))

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.tell(event="broken", text=str(report.longrepr))

    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> bool:
        from _pytest.runner import runtestprotocol

        for seed in self.seeds:
            self.tell(event="start", seed=seed)
            _seed(seed)
            last = seed == self.seeds[-1]
            # With the parent as its successor, the test is torn down but the fixtures of its module are kept.
            reports = runtestprotocol(item, log=False, nextitem=nextitem if last else item.parent)
            failed = [report for report in reports if report.failed]
            text = "\n".join([*(str(report.longrepr) for report in failed), *_output_of(failed)])
            self.tell(event="end", seed=seed, failed=bool(failed), skipped=any(r.skipped for r in reports), text=text)
            getattr(item, "_report_sections", []).clear()  # pytest would hand each trial the output of all before it
            if failed and self.stop_at_first:
                break
        return True  # pytest itself need not run it again


def _output_of(reports: list) -> Iterator[str]:
    for report in reports:
        for title, content in report.sections:
            yield f"--- {title} ---\n{content}"


def _seed(seed: int) -> None:
    """Seed a test decorated by ``with_seed`` through the environment, and any other through the generators."""
    import numpy as np

    os.environ["MXOP_TEST_SEED"] = os.environ["MXNET_TEST_SEED"] = str(seed)
    np.random.seed(seed)
    random.seed(seed)


def run_child(test: str, seeds: range, stop_at_first: bool) -> int:
    """Run the trials under pytest, reporting to what was the standard output."""
    import pytest

    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what pytest prints must not mix with the reports
    sys.path.append(str(ROOT))  # last, so that an installed mxop comes before the sources
    plugin = RepeatEachTest(seeds, stop_at_first, channel)
    return int(pytest.main([test, "-q", "--no-header", "--no-summary", "-p", "no:cacheprovider"], plugins=[plugin]))


# --------------------------------------------------------------------------------------------------------------------
# The parent: shows progress and sums up
# --------------------------------------------------------------------------------------------------------------------
class Progress:
    """A bar if tqdm is installed, else a counter."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        try:
            from tqdm import tqdm

            self.bar = tqdm(total=total, unit="trial")
        except ImportError:
            self.bar = None

    def step(self, failures: int) -> None:
        """Count one trial."""
        self.done += 1
        if self.bar is not None:
            self.bar.set_postfix_str(f"{failures} failed" if failures else "", refresh=False)
            self.bar.update()
        elif sys.stderr.isatty():
            print(f"\r{self.done}/{self.total} trials, {failures} failed", end="", file=sys.stderr, flush=True)
        elif self.done % max(self.total // 10, 1) == 0:
            print(f"{self.done}/{self.total} trials, {failures} failed", file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Print a line without breaking the bar."""
        if self.bar is not None:
            self.bar.write(text, file=sys.stdout)
        else:
            print(text)

    def close(self) -> None:
        """End the bar's line."""
        if self.bar is not None:
            self.bar.close()
        elif sys.stderr.isatty():
            print(file=sys.stderr)


@dataclass
class Outcome:
    """What the child has told so far."""

    collected: int = 0
    finished: int = 0
    skipped: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)  # seed, traceback
    running: int | None = None  # the seed of the trial under way
    broken: str = ""  # why the test could not even be collected
    interrupted: bool = False  # by Ctrl-C

    def take(self, event: dict[str, Any]) -> None:
        """Take in one event."""
        kind = event["event"]
        if kind == "collected":
            self.collected = event["count"]
        elif kind == "broken":
            self.broken = event["text"]
        elif kind == "start":
            self.running = event["seed"]
        elif kind == "end":
            self.running = None
            self.finished += 1
            self.skipped += event["skipped"]
            if event["failed"]:
                self.failures.append((event["seed"], event["text"]))


def run_trials(test: str, seeds: range, stop_at_first: bool, verbose: bool) -> tuple[Outcome, int]:
    """Run the child, and return what it told and its exit status."""
    command = [sys.executable, str(Path(__file__).resolve()), test, "-n", str(len(seeds)), "-s", str(seeds[0])]
    command += ["--child"] + ["-x"] * stop_at_first
    outcome, progress = Outcome(), None
    with tempfile.TemporaryFile("w+") as complaints:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=None if verbose else complaints, text=True)
        try:
            for line in child.stdout:
                event = json.loads(line)
                outcome.take(event)
                if event["event"] == "collected":
                    progress = Progress(len(seeds) * outcome.collected)
                elif event["event"] == "end":
                    if verbose:
                        state = "failed" if event["failed"] else "skipped" if event["skipped"] else "passed"
                        progress.say(f"seed {event['seed']}: {state}")
                    progress.step(len(outcome.failures))
        except KeyboardInterrupt:
            child.kill()
            outcome.interrupted, outcome.running = True, None
        finally:
            status = child.wait()
            if progress is not None:
                progress.close()
        if not outcome.collected and not outcome.broken:
            complaints.seek(0)
            outcome.broken = complaints.read()
    return outcome, status


def summarize(spec: str, outcome: Outcome, status: int) -> int:
    """Print what was found, and return this tool's exit status."""
    if outcome.broken or not outcome.collected:
        print(outcome.broken or f"pytest found no test {spec}")
        return 2
    if outcome.interrupted:
        print(f"Interrupted after {outcome.finished} trials.")
    again = f"python tools/flakiness_checker.py {spec} -n 1 -s"
    if outcome.running is not None:
        cause = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        print(f"The test process ended ({cause}) in the trial with seed {outcome.running}.")
        print(f"To reproduce: {again} {outcome.running}")
        return 1
    if outcome.failures:
        seeds = [seed for seed, _ in outcome.failures]
        print(outcome.failures[0][1])
        print(f"\n{len(seeds)} of {outcome.finished} trials failed ({100 * len(seeds) / outcome.finished:.3g}%).")
        more = " ..." if len(seeds) > SHOWN_SEEDS else ""
        print(f"Failing seeds: {', '.join(map(str, seeds[:SHOWN_SEEDS]))}{more}")
        print(f"To reproduce: {again} {seeds[0]}   (or pytest with MXOP_TEST_SEED={seeds[0]} set)")
        return 1
    if outcome.skipped == outcome.finished:
        print("No trial ran to its end." if outcome.interrupted else "Every trial was skipped.")
        return 2
    print(f"All {outcome.finished} trials passed.")
    return 0


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("test", help="module.test, module.py:test or path/module.py::test")
    parser.add_argument(
        "-n", "--num-trials", type=int, default=DEFAULT_TRIALS, help=f"how many trials to run ({DEFAULT_TRIALS})"
    )
    parser.add_argument("-s", "--seed", type=int, help="seed of the first trial; each next one is 1 more (random)")
    parser.add_argument("-x", "--exitfirst", action="store_true", help="stop at the first failure")
    parser.add_argument("-v", "--verbose", action="store_true", help="tell each trial's seed and result")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.num_trials < 1:
        parser.error("--num-trials must be at least 1")
    if options.seed is not None and not 0 <= options.seed <= 2**32 - options.num_trials:
        parser.error("NumPy takes seeds from 0 to 2**32 - 1")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run the tool; the exit status is 0 if all trials passed, 1 if one failed, 2 if there is no such test."""
    options = parse_arguments(arguments)
    first = random.randrange(2**31) if options.seed is None else options.seed
    seeds = range(first, first + options.num_trials)
    if options.child:
        return run_child(options.test, seeds, options.exitfirst)
    try:
        test = find_test(options.test)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{len(seeds)} trials of {os.path.relpath(test)} with the seeds {seeds[0]} to {seeds[-1]}")
    outcome, status = run_trials(test, seeds, options.exitfirst, options.verbose)
    return summarize(options.test, outcome, status)


if __name__ == "__main__":
    sys.exit(main())
