"""Rows as Markdown and JSON, and what they were measured on; `charts.py` draws the JSON.  Imports `systems` and `timing`."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from systems import OURS, THREADS, jax, mx, numexpr, torch
from timing import Row

HEAD = ("name", "what", "bound", "measured", "against", "of the bandwidth", "of the peak", "")


def machine() -> dict[str, Any]:
    """Describe what was measured on."""
    from mxop._kernels import instruction_sets

    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as f:
            model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), model)
    except OSError:
        pass
    versions = {"numpy": np.__version__, "mxop": mx.__version__, "python": platform.python_version()}
    versions.update({m.__name__: m.__version__ for m in (torch, jax, numexpr) if m is not None})
    return {"cpu": model, "cores": os.cpu_count(), "threads": THREADS, "instruction_set": instruction_sets.in_use(),
            "versions": versions}  # fmt: skip


def head() -> str:
    """Return the first lines of the table."""
    return "| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|"


def line(row: Row) -> str:
    """Return a row as a line of the table."""
    there = math.isfinite(row.measured)
    measured = f"{row.measured:.3g} {row.unit}" if there else "-"
    verdict = "" if not row.bound else "ok" if row.ok else "short" if there else "-"
    verdict = f"too fast: {', '.join(row.doubted)}" if row.doubted else verdict
    shares = ["-" if s is None else f"{s:.0%}" for s in (row.bandwidth, row.peak)]
    return "| " + " | ".join([row.name, row.what, row.bound or "-", measured, row.against or "-", *shares, verdict]) + " |"


def details(row: Row) -> str:
    """Return the medians of a row."""
    return "    " + ", ".join(f"{name} {duration(s)}" for name, s in sorted(row.seconds.items(), key=lambda i: i[1]))


def duration(seconds: float) -> str:
    """Return seconds in a fitting unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def summary(rows: Sequence[Row]) -> str:
    """Return the geometric mean of the ratios to the best peer, and how many bounds are missed."""
    first: dict[str, Row] = {}
    for r in rows:
        if r.unit == "x" and r.measured > 0 and any(name in r.seconds for name in OURS):
            first.setdefault(r.name, r)  # the row against the best peer comes first
    short = sum(bool(r.bound) and not r.ok for r in rows)
    text = f"{sum(bool(r.bound) for r in rows)} bounds, {short} short"
    if not first:
        return text
    mean = math.exp(sum(math.log(r.measured) for r in first.values()) / len(first))
    return f"{text}; geometric mean of {len(first)} ratios to the best peer {mean:.3g}"


def write(rows: Sequence[Row], markdown: Path | None, as_json: Path | None) -> None:
    """Write the files that were asked for."""
    if markdown is not None:
        text = "\n".join([head(), *map(line, rows), "", summary(rows)])
        markdown.write_text(text + "\n", encoding="utf-8")
    if as_json is not None:
        found = [{k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in asdict(r).items()} for r in rows]
        found = [r for r in found if r["measured"] is not None]
        as_json.write_text(json.dumps({"machine": machine(), "rows": found}, indent=1) + "\n", encoding="utf-8")
