#!/usr/bin/env python
"""Make tables and charts of figures that ``tools/compare`` wrote with ``--json``.

    python tools/charts.py                      # of docs/figures/*.json: charts beside them, tables in docs/figures.md
    python tools/charts.py --png figures.json   # charts of other files, beside them, as PNG too

A chart has a bar for each ratio, with its bound; rows of many sizes are lines of another.  When the file has the times of all
systems, one more shows these as multiples of mxop's.  Needs matplotlib.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "figures.md"
OK, SHORT = "#4c78a8", "#e45756"
OWN = ("executor", "built-in", "hand-written")  # what rows are held against beside other systems
MARKERS = "o<>sDv^P"
WIDTH = 4.7  # inches: text is readable on a telephone, where a page is 390 pixels wide
TITLES = {
    "arrays": "Reductions, data movement, sorting", "calls": "Calls on eight elements", "graphs": "Graphs",
    "large": "Large arrays, elementwise", "products": "Matrix multiplication and training steps", "sizes": "By size",
    "users": "Operators that users write",
}  # fmt: skip
Row = dict[str, Any]


def table(rows: Sequence[Row]) -> str:
    """Return rows as a table of Markdown."""
    lines = ["| what | bound | measured | against |", "|---|---|---|---|"]
    for row in rows:
        measured = f"{row['measured']:.3g} {row['unit']}"
        measured += f" (too fast: {', '.join(row['doubted'])})" if row.get("doubted") else ""
        lines.append(f"| {row['what']} | {row['bound'] or '-'} | {measured} | {row['against'] or '-'} |")
    return "\n".join(lines) + "\n"


def tables_of(files: Sequence[Path]) -> dict[str, str]:
    """Return the tables of files, by their names; rows of many sizes have a chart alone."""
    rows = {path.name: json.loads(path.read_text(encoding="utf-8"))["rows"] for path in files}
    return {name: table(found) for name, found in rows.items() if not all(map(_by_size, found))}


def _ratios(path: Path) -> list[Row]:
    """Return the rows of a file that are ratios to a peer, the best where there are several."""
    rows: dict[str, Row] = {}
    for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
        if row["unit"] == "x" and row["measured"] > 0 and row["against"] not in (*OWN, None) and len(row["seconds"]) > 1:
            rows.setdefault(row["name"], row)
    return list(rows.values())


def summary(files: Sequence[Path]) -> str:
    """Return what the ratios of each file say together."""
    lines = ["| table | rows | mean ratio | slower than the best peer |", "|---|---|---|---|"]
    for path in files:
        if found := [row["measured"] for row in _ratios(path)]:
            title = TITLES.get(path.stem, path.stem)
            anchor = re.sub(r"[^\w-]", "", title.lower().replace(" ", "-"))
            mean, behind = math.exp(sum(map(math.log, found)) / len(found)), sum(v > 1.05 for v in found)
            lines.append(f"| [{title}](#{anchor}) | {len(found)} | {mean:.2f} | {behind or '-'} |")
    return "\n".join(lines) + "\n"


def behind(files: Sequence[Path]) -> str:
    """Return the rows in which a peer is faster, the slowest first."""
    rows = sorted((r for path in files for r in _ratios(path) if r["measured"] > 1.05), key=lambda r: -r["measured"])
    lines = [f"| {r['what']} | {r['measured']:.2f} x | {r['against']} |" for r in rows]
    return "\n".join(["| what | time | best peer |", "|---|---|---|", *lines]) + "\n"


def machine(files: Sequence[Path]) -> str:
    """Return a sentence about what the files were measured on: each machine once, with the tables of it."""
    found: dict[str, list[str]] = {}
    for path in files:
        about = json.loads(path.read_text(encoding="utf-8"))["machine"]
        versions = ", ".join(f"{name} {v}" for name, v in about["versions"].items() if name != "mxop")
        told = f"{about['cpu']}, instruction set {about['instruction_set']}, {about['threads']} threads; {versions}"
        found.setdefault(told, []).append(path.stem)
    return "".join(f"- {told} ({', '.join(names)})\n" for told, names in found.items())


def with_tables(page: str, tables: dict[str, str]) -> str:
    """Return a page in which what stands between ``<!-- NAME -->`` and ``<!-- end -->`` is the table of that name."""
    for name, text in tables.items():
        part = re.compile(rf"(<!-- {re.escape(name)} -->\n\n).*?(\n<!-- end -->)", re.S)
        page = part.sub(lambda found, text=text: found[1] + text + found[2], page)
    return page


def bounds(rows: Sequence[Row], title: str) -> Any:
    """Return a chart of ratios with their bounds, or None when there are none."""
    shown = [r for r in rows if r["unit"] == "x" and r["bound"] and _limit(r) < 2 and r["measured"] > 0]
    if not shown:
        return None
    figure, axes = _figure(0.9 + 0.4 * len(shown))
    for k, row in enumerate(shown):
        limit = _limit(row)
        axes.barh(k + 0.2, row["measured"], color=OK if row["measured"] <= limit else SHORT, height=0.34)
        axes.plot([limit, limit], [k, k + 0.4], color="black", linewidth=1.5, label="bound" if k == 0 else None)
        axes.text(1.01, k + 0.2, f"{row['measured']:.2g}", transform=axes.get_yaxis_transform(), va="center", fontsize=8)
        axes.text(0, k - 0.2, f"{row['what']}  /  {row['against']}", va="center", fontsize=7.5)
    axes.set_yticks([])
    axes.set_xlim(0, 1.15 * max(max(_limit(r), r["measured"]) for r in shown))
    axes.set_xlabel("share of the peer's time (less is better)", fontsize=8)
    axes.tick_params(labelsize=8)
    _finish(axes, title, len(shown))
    return figure


def systems(rows: Sequence[Row], title: str) -> Any:
    """Return a chart of the times of all systems as multiples of mxop's, or None when there are none."""
    timed = [r for r in rows if "mxop" in r["seconds"] and len(r["seconds"]) > 1]
    if not timed:
        return None
    figure, axes = _figure(0.9 + 0.4 * len(timed))
    names = sorted({name for r in timed for name in r["seconds"] if name != "mxop"})
    for k, name in enumerate(names):
        places = [(i, r["seconds"][name] / r["seconds"]["mxop"]) for i, r in enumerate(timed) if name in r["seconds"]]
        axes.plot([v for _, v in places], [i for i, _ in places], MARKERS[k % len(MARKERS)], label=name)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_yticks(range(len(timed)), [r["what"] for r in timed], fontsize=8)
    axes.set_xscale("log")
    axes.set_xlabel("time as a multiple of mxop's (right of the line: slower than mxop)")
    _finish(axes, title, len(timed))
    return figure


def _by_size(row: Row) -> bool:
    return row.get("name", "").startswith("n.")


def sizes(rows: Sequence[Row], title: str) -> Any:
    """Return a chart of the ratios of rows ``n.KIND.1eK``, a line for each kind; None when there are none."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if _by_size(row) and row["measured"] > 0:
            _, kind, size = row["name"].split(".")
            lines.setdefault(kind, []).append((float(size), row["measured"]))
    if not lines:
        return None
    figure, axes = _figure(6.5)
    for k, (kind, points) in enumerate(lines.items()):
        axes.plot(*zip(*points, strict=True), f"-{MARKERS[k % len(MARKERS)]}", label=kind, markersize=4)
    axes.axhline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("elements")
    axes.set_ylabel("share of the best peer's time")
    for formatter in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        formatter("{x:g}")
    axes.set_title(title, fontsize=8, loc="left")
    axes.grid(color="0.9")
    figure.legend(fontsize=8, frameon=False, ncols=2, loc="outside lower center")
    return figure


def _figure(height: float) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = "mxop"  # the same figures, the same file
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.add_subplot()


def _limit(row: Row) -> float:
    return float(row["bound"].split()[1])


def _finish(axes: Any, title: str, rows: int) -> None:
    axes.set_ylim(rows - 0.4, -0.6)
    axes.set_title(title, fontsize=8, loc="left")
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), fontsize=7, frameon=False, ncols=4)


def charts(path: Path, png: bool = False) -> list[Path]:
    """Write the charts of a file beside it; return their paths."""
    measured = json.loads(path.read_text(encoding="utf-8"))
    about, written = measured["machine"], []
    title = f"{about['cpu']}, {about['threads']} threads"
    by_size = [r for r in measured["rows"] if _by_size(r)]
    others = [r for r in measured["rows"] if not _by_size(r)]
    for ending, draw, rows in (("", bounds, others), ("_times", systems, others), ("_sizes", sizes, by_size)):
        if ending == "_times" and path.parent == PAGE.parent / "figures":  # the page has no place for it
            continue
        figure = draw(rows, title)
        for kind in ("svg", "png") if figure is not None and png else ("svg",) if figure is not None else ():
            target = path.with_name(f"{path.stem}{ending}.{kind}")
            figure.savefig(target, dpi=120, transparent=kind == "svg", metadata={"Date": None} if kind == "svg" else {})
            written.append(target)
    return written


def main(arguments: Sequence[str] | None = None) -> None:
    """Write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="files of figures; those of the docs by default")
    parser.add_argument("--png", action="store_true", help="write PNG beside SVG")
    given = parser.parse_args(arguments)
    files = given.files or sorted((ROOT / "docs" / "figures").glob("*.json"))
    for path in files:
        for target in charts(path, given.png):
            print(target)
    if not given.files:
        tables = tables_of(files) | {"summary": summary(files), "behind": behind(files), "machine": machine(files)}
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8")
        print(PAGE)


if __name__ == "__main__":
    main()
