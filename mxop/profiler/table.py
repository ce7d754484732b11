"""Times for each name, as MXNet's table and as JSON.

What comes in is ``{category: {name: (count, total, least, most)}}``, times in nanoseconds, memory in bytes.
"""

from __future__ import annotations

import json
from typing import Any

Row = tuple[int, int, int, int]
Tables = dict[str, dict[str, Row]]

_TITLE = "\nProfile Statistics:\n\tNote the difference in units for different entries.\n"
_MEMORY = "Device Storage"
#: Columns after the count by section; ``None`` leaves a column out.
_HEADS = {
    "Time": ("Time (ms)", "Min Time (ms)", "Max Time (ms)", "Avg Time (ms)"),
    "Memory": (None, "Min Use  (kB)", "Max Use  (kB)", "Avg Use  (kB)"),
    "Counter": (None, "Min Value", "Max Value", "Avg Value"),
}
_UNITS = {"Time": 1e6, "Memory": 1e3, "Counter": 1}
SORT_KEYS = {
    "total": lambda row: row[1], "avg": lambda row: row[1] / row[0], "min": lambda row: row[2],
    "max": lambda row: row[3], "count": lambda row: row[0],
}  # fmt: skip


def as_text(tables: Tables, sort_by: str, ascending: bool) -> str:
    """Return a table for each category."""
    return _TITLE + "".join(
        "\n".join([category, "=" * 17, *_lines(_section(category), rows)]) + "\n\n"
        for category, rows in _sorted(tables, sort_by, ascending)
    )


def as_json(tables: Tables, sort_by: str, ascending: bool) -> str:
    """Return the same as JSON, by section: times, memory, counters."""
    found: dict[str, Any] = {section: {} for section in _HEADS}
    for category, rows in _sorted(tables, sort_by, ascending):
        section = _section(category)
        names = ("Total", "Min", "Max", "Avg")
        found[section][category] = {
            name: {"Count": row[0]} | {k: v for k, v in zip(names, _values(section, row), strict=True) if v is not None}
            for name, row in rows
        }
    return json.dumps(found | {"Unit": {"Time": "ms", "Memory": "kB"}}, indent=4)


def _section(category: str) -> str:
    return "Memory" if category == _MEMORY else "Counter" if category.endswith(",counter") else "Time"


def _sorted(tables: Tables, sort_by: str, ascending: bool) -> list[tuple[str, list[tuple[str, Row]]]]:
    key = SORT_KEYS[sort_by]
    return [
        (category, sorted(tables[category].items(), key=lambda item: key(item[1]), reverse=not ascending))
        for category in sorted(tables)
    ]


def _values(section: str, row: Row) -> list[float | None]:
    """Return total, least, most and mean in the units of a section; None for a column that it has not."""
    count, total, least, most = row
    wanted = (head is not None for head in _HEADS[section])
    return [v / _UNITS[section] if w else None for w, v in zip(wanted, (total, least, most, total / count), strict=True)]


def _lines(section: str, rows: list[tuple[str, Row]]) -> list[str]:
    heads = ["Total Count", *(h for h in _HEADS[section] if h is not None)]
    lines = [_line("Name", heads), _line("----", ["-" * len(h) for h in heads])]
    for name, row in rows:
        values = [f"{v:.4f}" for v in _values(section, row) if v is not None]
        lines.append(_line(name, [str(row[0]), *values]))
    return lines


def _line(name: str, cells: list[str]) -> str:
    return f"{name:<25}{cells[0]:>16}" + "".join(f"{cell:>17}" for cell in cells[1:])
