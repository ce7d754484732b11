"""List the generated loops that GCC leaves scalar, and fail if there are others than those known to be so.

    python tools/vectorised.py               # every instruction set of this machine
    python tools/vectorised.py v3            # one

The text of the instructions is generated and compiled as ``setup.py`` does, half a minute for each instruction set, and the
vectoriser's report is read.  One such loop costs ten times what its neighbours take, and nothing else tells.
"""

from __future__ import annotations

import argparse
import importlib.util
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from mxop._kernels import generate

ROOT = Path(__file__).resolve().parents[1]
INCLUDE = ROOT / "mxop" / "_kernels" / "include"
REALS, NARROW, INTEGERS = ("f32", "f64"), ("u8", "i32", "i8"), ("u8", "i32", "i8", "i64")

#: Primitives that are scalar, by type: tables and recurrences; powers of integers by integers.
SCALAR: dict[str, tuple[str, ...]] = {
    "polygamma": REALS,
    "pow": INTEGERS,
}
#: Where integers of 64 bits do not become floating-point numbers in vectors.
WITHOUT_LONG: dict[str, tuple[str, ...]] = dict.fromkeys(("div", "mod", "floordiv"), ("i64",))
#: ...and what else of them is, for operands that are not ordinary: what the C library computes.
SLOW: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("sin", "cos", "tan", "gammaln", "digamma"), REALS),
    **dict.fromkeys(("mod", "floordiv", "gamma"), ("f64",)),
}
#: Without fused multiply-adds, some of float64 is the C library's, and vectors of 64-bit products do not pay.
WITHOUT_FMA: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("mod", "floordiv", "pow"), REALS), **dict.fromkeys(("gamma", "gammaln", "digamma"), ("f64",)),
    "fma": ("f64", "i64"), **dict.fromkeys(("add", "mul", "square"), ("i64",)),
}  # fmt: skip


def flags() -> tuple[dict[str, list[str]], list[str]]:
    """Return the flags of each instruction set of this machine, and those of all."""
    spec = importlib.util.spec_from_file_location("mxop_setup", ROOT / "setup.py")
    assert spec is not None and spec.loader is not None
    setup = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(setup)
    return setup.LEVELS.get(platform.machine().lower(), {"base": []}), [*setup.PLAIN, *setup.LOOPS, *setup.MODEST]


def vector_lines(text: str, options: Sequence[str]) -> tuple[set[int], set[str]]:
    """Compile a header and return its lines with loops that became vectors, and the macros that were defined."""
    with tempfile.TemporaryDirectory() as folder:
        header, source, report = (Path(folder) / name for name in ("loops.h", "loops.c", "report"))
        header.write_text(text)
        source.write_text(
            '#include "loops.h"\nextern const void *const mx_kept[3];\n'
            "const void *const mx_kept[3] = {mx_instructions, mx_loads, mx_stores};\n"
        )
        # equal functions must not be joined, nor loops become calls of memcpy: each is to be reported
        alone = ["-fno-ipa-icf", "-fno-tree-loop-distribute-patterns", f"-fopt-info-vec={report}", "-w", "-fPIC"]
        command = ["gcc", *options, *alone, f"-I{folder}", f"-I{INCLUDE}", "-c", str(source), "-o", f"{folder}/loops.o"]
        subprocess.run(command, check=True)
        found = re.findall(r"loops\.h:(\d+):\d+: optimized: loop vectorized", report.read_text())
        preprocess = ["gcc", *options, f"-I{folder}", f"-I{INCLUDE}", "-dM", "-E", str(source)]
        macros = subprocess.run(preprocess, check=True, capture_output=True, text=True).stdout
    return set(map(int, found)), set(re.findall(r"#define (\w+)", macros))


def loops(text: str) -> Iterator[tuple[int, str, str, bool, str]]:
    """Yield the line of each loop over elements, its formula, its type, and whether it serves ordinary operands alone.

    Last comes the macro of the loop that takes its place in some instruction sets.
    """
    lines = text.split("\n")
    names = {cell: m[1] for line in lines if (m := re.match(r'    \{"(.*?)", \{(.*?)\}', line)) for cell in m[2].split(", ")}
    function, fast, wide = "", False, ""
    for number, line in enumerate(lines, 1):
        if m := re.match(r"#(ifdef|endif /\*) (MX_WIDE)\b", line):
            wide = m[2] if m[1] == "ifdef" else ""
        elif m := re.match(r"static (?:MX_NOINLINE )?void (k\d+_[a-z0-9]+?)(_fast)?(_run)?\(", line):
            function, fast = m[1], m[2] is not None
        elif function and re.match(r"\s+for \(ptrdiff_t i = 0; i < (n|MX_RUN); i\+\+\).* o\[i\] = ", line):
            yield number, names[function], function.split("_")[1], fast or ("mx_" in line and "_fast_" in line), wide


def excused(formula: str, dtype: str, fast: bool, fma: bool, long: bool) -> bool:
    """Tell whether a formula holds a primitive that is known to be scalar."""
    known = [SCALAR, *([] if fast else [SLOW]), *([] if fma else [WITHOUT_FMA]), *([] if long else [WITHOUT_LONG])]
    return any(dtype in table.get(label, ()) for label in re.findall(r"(\w+)\(", formula) for table in known)


def scalar_loops(options: Sequence[str], fma: bool = True) -> list[tuple[str, str]]:
    """Return formula and type of the loops that should be vectors, and are not."""
    text = "\n".join([generate._PROLOGUE, generate.conversion_text(), generate.instruction_text()])
    vectors, macros = vector_lines(text, options)
    long = bool({"__AVX512DQ__", "__aarch64__"} & macros)
    bad = [(formula, dtype) for line, formula, dtype, fast, wide in loops(text)
           if line not in vectors and wide not in macros and not excused(formula, dtype, fast, fma, long)]  # fmt: skip
    return sorted(set(bad))


def main(arguments: Sequence[str] | None = None) -> int:
    levels, plain = flags()
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("levels", nargs="*", help=f"instruction sets, of {', '.join(levels)}; all by default")
    options = parser.parse_args(arguments)
    if shutil.which("gcc") is None:
        parser.error("needs gcc, whose report is read")
    wrong = 0
    for level in options.levels or levels:
        bad = scalar_loops([*plain, *levels[level]], fma=level != "v2")
        wrong += len(bad)
        print("\n".join(f"{level}: {dtype} {formula}" for formula, dtype in bad) or f"{level}: every loop has vectors")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
