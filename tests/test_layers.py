"""Which module imports which: ``docs/architecture.md`` has the folders of the package in their order, and arrows point down."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "mxop"
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
#: What stands above all rows: the package itself, and how it is started.
ABOVE = {"__init__.py", "__main__.py"}
FILES = [
    p for p in sorted(PACKAGE.rglob("*.p*")) if p.suffix in (".py", ".pyx", ".pxd") and not p.name.startswith("_isa_")
]


def places(text):
    """Return the entries of the package's folder that a text names, without a slash."""
    return [name.rstrip("/") for name in re.findall(r"`mxop/(\w+(?:/|\.py))`", text)]


def rows():
    """Return the row of each place, from below."""
    table = re.findall(r"^\| (`mxop/.*?) \|", TEXT, re.M)
    return {name: k for k, cell in enumerate(table) for name in places(cell)}


def place_of(module):
    """Return the entry of the package's folder that a module lies in; None for other packages."""
    top, _, rest = module.partition(".")
    name = rest.partition(".")[0]
    if top != "mxop" or not name:
        return "__init__.py" if top == "mxop" else None
    return name if (PACKAGE / name).is_dir() else f"{name}.py" if (PACKAGE / f"{name}.py").exists() else "__init__.py"


def imported(path):
    """Return the modules, or names in them, that a file imports at its top: full names."""
    parts = ("mxop", *path.relative_to(PACKAGE).parts[:-1])
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        found = re.findall(r"^from ([\w.]+) c?import (?:\(\s*)?(\w+)|^c?import ([\w.]+)", text, re.M)
        return [whole or _full(parts, module, name) for module, name, whole in found]
    names = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import):
            names += [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [_full(parts, "." * node.level + (node.module or ""), a.name) for a in node.names]
    return names


def _full(parts, module, name):
    level = len(module) - len(module.lstrip("."))
    return ".".join(
        [*parts[: len(parts) + 1 - level], *filter(None, [module.lstrip("."), name])] if level else [module, name]
    )


def test_every_place_has_a_row():
    there = {p.name for p in PACKAGE.iterdir() if p.suffix == ".py" or (p.is_dir() and any(p.glob("*.py")))}
    assert there - ABOVE == set(rows()), "docs/architecture.md: the table of folders"


def test_arrows_point_down():
    row, wrong = rows(), []
    for path in FILES:
        own = path.relative_to(PACKAGE).parts[0]
        for place, module in ((place_of(m), m) for m in imported(path) if own not in ABOVE):
            # the commands, which are the last row, use the package as everybody does
            if place is not None and (own != "cli" if place in ABOVE else row[place] > row[own]):
                wrong.append(f"{path.relative_to(PACKAGE)} imports {module}")
    assert not wrong


def test_what_is_common_imports_nothing_else():
    assert rows()["support"] == 0 and list(rows()).count("support") == 1
    for path in (PACKAGE / "support").rglob("*.py"):
        assert {place_of(m) for m in imported(path)} <= {"support", None}, path


def test_what_is_imported_is_seen():
    """The readers of imports find what they should: a test that sees nothing would pass."""
    assert "mxop.support.errors.OpTypeError" in imported(PACKAGE / "mxnet" / "registry.py")
    assert {"mxop._core.array.Array", "mxop.opdef.above.ask"} <= set(imported(PACKAGE / "_core" / "plans.pyx"))
    assert "mxop._core.array.Array" in imported(PACKAGE / "_core" / "plans.pxd")
    assert place_of("mxop.graph.ir.Graph") == "graph" and place_of("numpy.ndarray") is None


#: Questions whether an array lies on a GPU.  What the answers need stands in methods of devices, which may ask.
ON_GPU = re.compile(
    r"gpu is (not )?None|\bis (not )?(core\.)?HOST\b|\bdevice\.number\)? (<|>=|==|!=)|\bdevice\.(name|code) (==|!=|in|not in)",
)
DEVICES = {"_core/device.pyx", "context.py"}


def test_devices_answer_for_themselves():
    asked = []
    for path in FILES:
        name = path.relative_to(PACKAGE).as_posix()
        if name in DEVICES or name.startswith("_gpu/"):
            continue
        lines = path.read_text(encoding="utf-8").replace("_device", "device").splitlines()
        asked += [f"{name}:{k}: {line.strip()}" for k, line in enumerate(lines, 1) if ON_GPU.search(line)]
    assert 0 < len(asked) <= 8, "\n".join(asked)
