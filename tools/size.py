"""How large the package is: lines of Python and Cython outside the operators and their records, folder by folder.

``python tools/size.py`` prints them, and fails when they are more than ``most_lines`` in ``pyproject.toml``: what is added in
one place is saved in another, or the limit is raised by a change that says why.
"""

import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FREE = ("ops", "records")  # an operator more is an entry more


def counted() -> Counter[str]:
    """Return the lines of each folder."""
    lines: Counter[str] = Counter()
    for path in (ROOT / "mxop").rglob("*"):
        place = path.relative_to(ROOT / "mxop").parts
        generated = path.name.startswith("_isa_")
        if path.suffix in (".py", ".pyx", ".pxd") and place[0] not in FREE and not generated:
            lines[place[0] if len(place) > 1 else "."] += len(path.read_text(encoding="utf-8").splitlines())
    return lines


def main() -> int:
    most = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mxop"]["most_lines"]
    lines = counted()
    for folder, number in sorted(lines.items(), key=lambda item: -item[1]):
        print(f"{number:7,}  {folder}")
    total = sum(lines.values())
    print(f"{total:7,}  together; most_lines is {most:,}")
    return total > most


if __name__ == "__main__":
    sys.exit(main())
