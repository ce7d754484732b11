"""``python -m mxop doctor``: what was found on this machine, and what is missing for what."""

from __future__ import annotations

import importlib
import os
import platform
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np

import mxop as mx
from mxop._kernels import instruction_sets, interp, team
from mxop.opdef import plugins, registry
from mxop.support import distribution


@dataclass(frozen=True)
class Optional:
    """A package that mxop can use, and does not need.

    Attributes
    ----------
    module, package : str
        What is imported, and what is installed.
    use : str
        What it is for.
    extra : str
        The extra of mxop that brings it.
    """

    module: str
    package: str
    use: str
    extra: str


OPTIONAL = (
    Optional("ml_dtypes", "ml_dtypes", "the element type bfloat16", "bfloat16"),
    Optional("matplotlib", "matplotlib", "the picture of python -m mxop demo", "plot"),
    Optional("graphviz", "graphviz", "drawings of networks", "plot"),
    Optional("numba", "numba", "operators written in the hybrid language", "hybrid"),
    Optional("PIL", "pillow", "reading images", "image"),
    Optional("tqdm", "tqdm", "progress bars of the tools", "progress"),
    Optional("pytest", "pytest", "the tests", "test"),
    Optional("hypothesis", "hypothesis", "tests on random graphs, shapes and files", "test"),
    Optional("nvidia", "nvidia-cuda-nvrtc", "tests that compile the CUDA text, without a GPU", "test"),
    Optional("asv", "asv", "benchmarks (asv_bench/)", "bench"),
    Optional("numexpr", "numexpr", "a system to compare with in benchmarks", "bench"),
)  # fmt: skip


def run() -> None:
    """Print what was found."""
    for title, lines in (
        ("mxop", package()),
        ("Machine", machine()),
        ("CPU", cpu()),
        ("GPU", gpu()),
        ("Optional packages", packages()),
        ("Packages of operators", operator_packages()),
    ):
        print(title)
        print("\n".join(f"  {line}" for line in lines))


def _row(label: str, value: object) -> str:
    return f"{label:18} {value}"


def package() -> list[str]:
    """Describe the package itself and what it stands on."""
    folder = Path(mx.__file__).parent
    lines = [_row("version", f"{distribution.VERSION} (distribution {distribution.NAME})"), _row("location", folder)]
    lines += [_row("", text) for text in other_distribution()]
    here = Path("mxop").resolve()
    if here != folder and (here / "support" / "_installed.py").exists():
        lines.append(_row("", f"{here} is a source tree that was not built in place; the installed copy is used"))
    lines += [_row(name, importlib.import_module(name).__version__) for name in ("numpy", "scipy")]
    return lines


def other_distribution() -> list[str]:
    """Tell of a distribution in this environment that has our import name as its own name."""
    try:
        found = metadata.distribution(distribution.OTHER)
    except metadata.PackageNotFoundError:
        return []
    return [
        f"the distribution {distribution.OTHER} {found.version} is installed too, in {found.locate_file('')}",
        f"that name is another project's on the package index; both own the folder {distribution.OTHER}/: run "
        f"pip uninstall {distribution.OTHER}, then install {distribution.NAME} again",
    ]


def machine() -> list[str]:
    """Describe the machine and the interpreter."""
    return [
        _row("system", platform.platform()),
        _row("processor", _processor()),
        _row("usable cores", len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        _row("python", f"{platform.python_version()} in {sys.executable}"),
    ]


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return f"{line.partition(':')[2].strip()} ({platform.machine()})"
    return platform.processor() or platform.machine()


def cpu() -> list[str]:
    """Describe instruction sets, threads and memory."""
    usable = instruction_sets.available()
    built = sorted((p.name.split(".")[0][5:] for p in Path(interp.__file__).parent.glob("_isa_*") if _binary(p)),
                   reverse=True)  # fmt: skip
    others = [name for name in built if name not in usable]
    forced = ", set by MXOP_CPU" if os.environ.get("MXOP_CPU") else ""
    used = f"{instruction_sets.in_use()}{forced} (usable here: {', '.join(usable)}; MXOP_CPU chooses another)"
    lines = [_row("instruction set", used)]
    if others:
        lines.append(_row("", f"built, but not on this processor: {', '.join(others)}"))
    if team.has_openmp():
        lines.append(_row("threads", f"{team.get_num_threads()} (MXOP_NUM_THREADS, mx.context.set_num_threads)"))
    else:
        lines.append(_row("threads", "1: built without OpenMP; reinstall with a compiler that has it for more"))
    stats = mx.context.memory_stats()
    lines.append(_row("memory pool", f"keeps at most {stats['limit'] / 2**30:.2f} GiB for reuse (MXOP_POOL_BYTES)"))
    return lines


def _binary(path: Path) -> bool:
    return path.suffix in (".so", ".pyd")


def gpu() -> list[str]:
    """Describe CuPy and the devices that it sees."""
    from .._gpu import device

    try:
        device.require(0)
    except mx.errors.DeviceError as problem:
        return [_row("none", problem)]
    cupy = importlib.import_module("cupy")
    lines = [_row("cupy", f"{cupy.__version__}, CUDA {_cuda(cupy.cuda.runtime.runtimeGetVersion())}")]
    for k in range(mx.num_gpus()):
        name = cupy.cuda.runtime.getDeviceProperties(k)["name"].decode()
        free, total = mx.gpu_memory_info(k)
        lines.append(_row(f"gpu({k})", f"{name}, {free / 2**30:.1f} of {total / 2**30:.1f} GiB free"))
        lines += [_row("", line) for line in tried(mx.gpu(k))]
    return lines


def tried(device: mx.Context) -> list[str]:
    """Run a formula, a reduction, a product and a graph on a device; return what came of each, beside the CPU."""
    x = mx.nd.random.uniform(shape=(64, 64))
    graph = mx.sym.softmax(mx.sym.dot(mx.sym.Variable("x"), mx.sym.Variable("x")))
    programs = {
        "a formula": lambda x: mx.nd.exp(-x) * x,
        "a reduction": lambda x: x.sum(axis=0),
        "a product": lambda x: mx.nd.dot(x, x),
        "a graph": lambda x: [graph.bind(x.context, {"x": x}).forward()[0] for _ in range(3)][-1],
    }
    return [f"{what}: {_agrees(run, x, device)}" for what, run in programs.items()]


def _agrees(run: Callable[[mx.nd.NDArray], mx.nd.NDArray], x: mx.nd.NDArray, device: mx.Context) -> str:
    begun = time.perf_counter()
    try:
        found = run(x.as_in_context(device)).asnumpy()
    except Exception as problem:  # whatever is wrong, the report goes on
        return f"fails ({type(problem).__name__}: {str(problem).strip().splitlines()[0]})"
    seconds = time.perf_counter() - begun
    if not np.allclose(found, run(x).asnumpy(), rtol=1e-3):
        return "gives other numbers than the CPU"
    return f"as on the CPU; {seconds:.2f} s with compiling"


def _cuda(code: int) -> str:
    return f"{code // 1000}.{code % 1000 // 10}"


def packages() -> list[str]:
    """List the optional packages: found, or missing, for what, and how to get them."""
    return [_row(p.package, _state(p)) for p in OPTIONAL]


def operator_packages() -> list[str]:
    """List the packages that announce operators, with what is wrong with them."""
    registry.load_entry_points()
    lines = []
    for package in plugins.announced().values():
        n = sum(package.has(op.module) for op in registry.operators())
        told = [f"{package.version}, {n} operator{'' if n == 1 else 's'}", *package.problems]
        lines.append(_row(package.name, "; ".join(told)))
    return lines or [_row("none", f"a package announces its operators under the entry point group {plugins.GROUP}")]


def _state(p: Optional) -> str:
    try:
        found = metadata.version(p.package)
        importlib.import_module(p.module)
    except (metadata.PackageNotFoundError, ModuleNotFoundError):
        return f"missing, for {p.use}: {distribution.install(p.extra)}"
    except Exception as problem:  # a broken package must not break the report on it
        return f"installed but broken ({type(problem).__name__}: {problem}); it is for {p.use}"
    return f"{found}, for {p.use}"
