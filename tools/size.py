"""How large the package is: every line that a person wrote in ``mxop/``, folder by folder.

``python tools/size.py`` prints them, and fails when they are more than ``most_lines`` in ``pyproject.toml``.  Python, Cython, C
headers, C++ and templates count, operators and records too; what the build or a command generates does not.  The limit is
lowered with what goes, and raised only by a change that does nothing else and says what for.
"""

import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WRITTEN = (".py", ".pyx", ".pxd", ".h", ".cc", ".in")
GENERATED = ("mxop_instructions.h", "_isa_")  # how the names of files begin that the build writes


def counted() -> Counter[str]:
    """Return the lines of each folder."""
    lines: Counter[str] = Counter()
    for path in (ROOT / "mxop").rglob("*"):
        if path.suffix in WRITTEN and not path.name.startswith(GENERATED):
            place = path.relative_to(ROOT / "mxop").parts
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
