"""Which module imports which: ``docs/architecture.md`` has the folders of the package in their order, and arrows point down."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "mxop"
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
#: What stands above all rows: the package itself, and how it is started.
ABOVE = {"__init__.py", "__main__.py"}
FILES = [p for p in sorted(PACKAGE.rglob("*.p*")) if p.suffix in (".py", ".pyx", ".pxd") and not p.name.startswith("_isa_")]


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
    return ".".join([*parts[: len(parts) + 1 - level], *filter(None, [module.lstrip("."), name])] if level else [module, name])


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


def test_no_thread_waits_for_a_package_that_waits_for_it():
    """What other folders import one module at a time: these do not import the package, or it imports none of them at once."""
    graph = imported(PACKAGE / "graph" / "__init__.py")
    assert not [m for m in graph if m.startswith("mxop.graph.")]
    for path in (PACKAGE / "symbol").glob("*.py"):
        names = [m.removeprefix("mxop.symbol.") for m in imported(path) if m.startswith("mxop.symbol.")]
        if path.name != "__init__.py":  # `from . import x`, which names a module, waits for the package first
            assert not [n for n in names if (PACKAGE / "symbol" / f"{n}.py").exists()], path.name


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


#: Names of numbers from 16 on that stand elsewhere than in ``mxop_machine.h``, by why they are no thresholds.
NAMED = {
    "a format, a code, or an interface": """
        _core/call.pyx:SHIFT _core/call.pyx:BITS _core/native.pyx:MANY _core/native_graph.pyx:MANY
        _core/native_host.pyx:MXNET_VERSION _core/native_host.pyx:MXOP_LONGEST_ERROR _core/native_library.pyx:MANY
        _core/profile.pxd:USER _core/profile.pxd:AGGREGATE _core/profile.pxd:NANS _kernels/memory.pxd:FRESH
        _kernels/memory.pxd:FRESH_INTEGER _kernels/memory.pyx:GUARD_BYTE _kernels/operands.pxd:MAX_DIMS""",
    "a limit of memory: of what is cached, of a table, or of an array on the stack": """
        _core/array.pxd:MAX_VALUES _core/elementwise.pyx:LATEST
        _core/lazy.pyx:MOST_CALLS _core/plans.pyx:MOST _core/prepare.pxd:MOST_PLACES _core/profile.pyx:FIRST_ROOM
        _core/recent.pxd:SLOTS _core/recent.pyx:PLANS _core/recent.pyx:FORMS _core/recent.pyx:ROOM
        _core/recent.pyx:ITEMS _kernels/along.pyx:MOST_PARTS _kernels/include/mxop_team.h:MX_SHARES
        _kernels/include/mxop_bulk.h:MX_AROUND
        _kernels/interp.pxd:MOST_REGISTERS _kernels/interp.pxd:MOST_SCALARS _kernels/interp.pxd:MOST_TINY
        _kernels/memory.pyx:N_CLASSES _kernels/memory.pyx:PUT_OFF _kernels/memory.pyx:MANY_PUT_OFF
        _kernels/reduce.pyx:TOGETHER graph/constants.py:LARGEST graph/formulas.py:_MANY graph/functions.py:MOST
        graph/outside.py:_MOST graph/structure.py:LIMIT""",
    "mathematics": """
        _core/views.pyx:MOST _core/views.pyx:_EXACT _kernels/include/mxop_random.h:MX_WORDS
        _kernels/include/mxop_samplers.h:MX_MANY _kernels/include/mxop_sampling.h:MX_SIDE
        graph/passes/algebra.py:_SMALL_INTEGER ops/ctc.py:_NEVER""",
    "vectors and registers": """
        _kernels/include/mxop_bulk.h:MX_FIND_ROWS _kernels/include/mxop_csr.h:MX_CSR_BYTES
        _kernels/include/mxop_few_type.h:MX_FEW_REGISTERS _kernels/include/mxop_gemm_kernels.h:MX_GEMM_BYTES
        _kernels/include/mxop_gemm_kernels.h:MX_GEMM_AHEAD ops/convolved.py:VECTOR""",
    "how long a graph takes to be built, how large a program becomes": """
        graph/expansion.py:_MAX_NESTING graph/fuse.py:MAX_INSTRUCTIONS graph/measure.py:MOST
        graph/mirror.py:MOST_SEGMENTS graph/passes/base.py:_MAX_SWEEPS graph/recompute.py:MAX_COST
        graph/stages.py:MAX_CALLS graph/strips.py:MAX_MEMBERS graph/strips.py:MAX_SEARCHED ops/binary.py:_MOST_BITS""",
    "loops in Python, of each turn of which its own cost is the greatest": "ops/sample.py:_MANY",
    "what a call may be asked to do": "ops/regions.py:MOST_SAMPLES ops/regions.py:MOST_TURNED",
    "when signals are seen": "_core/loops.pyx:OFTEN _core/loops.pyx:TURN",
    "the GPU": "graph/rowwise.py:FEWEST_ON_GPU graph/rowwise.py:SMALL",
    "threads of convolutions with few filters": "_kernels/few.pyx:TURNS _kernels/few.pyx:SLICES",
}


def named_numbers(path):
    """Yield the upper-case names that a file gives to arithmetic of numbers alone, and that."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            for target in node.targets if isinstance(node, ast.Assign) else ():
                both = target, node.value
                pairs = zip(*(x.elts for x in both), strict=False) if all(isinstance(x, ast.Tuple) for x in both) else [both]
                yield from ((n.id, ast.unparse(v)) for n, v in pairs if isinstance(n, ast.Name) and n.id.isupper())
    else:
        name, number = (
            r"(?:^|define|[,{] *|\s)(_?[A-Z][A-Z0-9_]*)(?: *= *|(?<=\w) +)",
            r"([-+*/<>(). \w]+?) *(?=$|[,;}#]|/\*)",
        )
        for line in text.splitlines():
            yield from re.findall(name + number, line)


def size_of(text):
    """Return the absolute value of arithmetic of numbers, 0 of all else."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        return 0
    plain = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Constant)
    if not all(isinstance(n, plain) and isinstance(getattr(n, "value", 0), int | float) for n in ast.walk(tree)):
        return 0
    return abs(eval(text.strip()))


def test_thresholds_stand_in_one_file():
    header = (PACKAGE / "_kernels/include/mxop_machine.h").read_text(encoding="utf-8")
    names = re.findall(r"^    (MX_\w+) =", header, re.M)
    listed = (PACKAGE / "_kernels/machine.pxd").read_text(encoding="utf-8")
    assert re.findall(r"MX_\w+", listed) == names and len(names) <= 40
    known, found = set(" ".join(NAMED.values()).split()), set()
    paths = (p for folder in ("_core", "_kernels", "graph", "ops") for p in sorted((PACKAGE / folder).rglob("*")))
    for path in paths:
        generated = path.name.startswith(("_isa_", "mxop_instructions", "mxop_machine", "mxop_math", "mxop_wide"))
        if path.suffix in (".py", ".pyx", ".pxd", ".h") and not generated:
            for name, text in named_numbers(path):
                if size_of(text) >= 16:
                    found.add(f"{path.relative_to(PACKAGE).as_posix()}:{name}")
    assert found == known, f"{sorted(found - known)} belong into mxop_machine.h; {sorted(known - found)} are gone"
