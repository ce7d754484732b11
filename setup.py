"""Build mxop's compiled modules; everything declarative is in pyproject.toml.

The instruction loops are generated from the operators' formulas (``mxop/_kernels/generate.py``), so the pure-Python part
of the package is imported here, without its compiled part.  They are built once for each instruction set.

What was compiled once is not compiled again: modules are kept in ``build/cache`` (``MXOP_BUILD_CACHE`` names another folder,
or none) by all that they are made of, so it does not matter that pip builds in an environment that is new each time.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import types
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import ClassVar

import numpy as np
from Cython.Build import cythonize
from setuptools import Command, Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
KERNELS = ROOT / "mxop" / "_kernels"
INCLUDE = "mxop/_kernels/include"
ABI_INCLUDE = "mxop/library/include"  # what users of libraries get, too
GENERATED = KERNELS / "include" / "mxop_instructions.h"

NO_COMPILER = (
    "mxop: building needs a C compiler and the headers of Python, and found none that work. Install them, then install mxop "
    "again. Debian, Ubuntu: apt install build-essential python3-dev; Fedora: dnf install gcc python3-devel; macOS: "
    "xcode-select --install; Windows: the Build Tools for Visual Studio; conda: conda install c-compiler"
)
OLD_CYTHON = "mxop: Cython {} would compile wrong code, which mistakes arguments of some calls; install Cython 3.1.4 or newer"
#: The levels of x86-64, one instruction set after another: GCC has -march=x86-64-v3 from version 11 on.
V2 = ("-mcx16", "-msahf", "-mpopcnt", "-msse4.2")
V3 = (*V2, "-mavx2", "-mbmi", "-mbmi2", "-mf16c", "-mfma", "-mlzcnt", "-mmovbe", "-mxsave")
V4 = (*V3, "-mavx512f", "-mavx512bw", "-mavx512cd", "-mavx512dq", "-mavx512vl")
#: Instruction sets by machine: name of the module, compiler flags.
LEVELS = {machine: {"v4": V4, "v3": V3, "v2": V2} for machine in ("x86_64", "amd64")}
#: What a compiler says of a processor that has a set: its macros.
MACROS = {"v4": {"AVX512F", "AVX512BW", "AVX512DQ", "AVX512VL", "AVX512CD"}, "v3": {"AVX2", "FMA", "BMI2"}}
PLAIN = ("-O2", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv")
#: Kernels are loops: what -O3 has for those, without the rest of it, which takes a quarter longer to compile and gains little.
LOOPS = [] if sys.platform == "win32" else ["-ftree-vectorize", "-fvect-cost-model=dynamic", "-fpeel-loops", "-funswitch-loops"]
#: Partial redundancy elimination joins comparisons of a choice's operands before the choice, where GCC no longer vectorises it.
MODEST = [] if sys.platform == "win32" else ["-fno-tree-pre"]
#: Flags that only GCC has: Clang, which vectorises loops as it is, refuses some of them.
OF_GCC = {*LOOPS, *MODEST}
#: Objects are cleared by the C library: GCC's own instruction for it takes longer than all else that makes a small array.
CLEARED = [] if sys.platform == "win32" else ["-fno-builtin-memset"]
#: What Cython would write into each module otherwise, such as its memory views.
SHARED = "mxop._kernels._cython"
MODULES = {
    "mxop._kernels.machine": "mxop/_kernels/machine.pyx",
    "mxop._kernels.memory": "mxop/_kernels/memory.pyx",
    "mxop._kernels.team": "mxop/_kernels/team.pyx",
    "mxop._kernels.instruction_sets": "mxop/_kernels/instruction_sets.pyx",
    "mxop._kernels.operands": "mxop/_kernels/operands.pyx",
    "mxop._kernels.interp": "mxop/_kernels/interp.pyx",
    "mxop._kernels.moves": "mxop/_kernels/moves.pyx",
    "mxop._kernels.reduce": "mxop/_kernels/reduce.pyx",
    "mxop._kernels.along": "mxop/_kernels/along.pyx",
    "mxop._kernels.csr": "mxop/_kernels/csr.pyx",
    "mxop._kernels.boxes": "mxop/_kernels/boxes.pyx",
    "mxop._kernels.regions": "mxop/_kernels/regions.pyx",
    "mxop._kernels.pixels": "mxop/_kernels/pixels.pyx",
    "mxop._kernels.sampling": "mxop/_kernels/sampling.pyx",
    "mxop._kernels.correlation": "mxop/_kernels/correlation.pyx",
    "mxop._kernels.work": "mxop/_kernels/work.pyx",
    "mxop._kernels.gemm": "mxop/_kernels/gemm.pyx",
    "mxop._kernels.few": "mxop/_kernels/few.pyx",
    "mxop._kernels.products": "mxop/_kernels/products.pyx",
    "mxop._kernels.gather": "mxop/_kernels/gather.pyx",
    "mxop._core.array": "mxop/_core/array.pyx",
    "mxop._core.device": "mxop/_core/device.pyx",
    "mxop._core.recent": "mxop/_core/recent.pyx",
    "mxop._core.numbers": "mxop/_core/numbers.pyx",
    "mxop._core.profile": "mxop/_core/profile.pyx",
    "mxop._core.record": "mxop/_core/record.pyx",
    "mxop._core.transfer": "mxop/_core/transfer.pyx",
    "mxop._core.results": "mxop/_core/results.pyx",
    "mxop._core.lazy": "mxop/_core/lazy.pyx",
    "mxop._core.launched": "mxop/_core/launched.pyx",
    "mxop._core.views": "mxop/_core/views.pyx",
    "mxop._core.elementwise": "mxop/_core/elementwise.pyx",
    "mxop._core.external": "mxop/_core/external.pyx",
    "mxop._core.native_host": "mxop/_core/native_host.pyx",
    "mxop._core.native": "mxop/_core/native.pyx",
    "mxop._core.native_infer": "mxop/_core/native_infer.pyx",
    "mxop._core.native_prepared": "mxop/_core/native_prepared.pyx",
    "mxop._core.native_graph": "mxop/_core/native_graph.pyx",
    "mxop._core.native_library": "mxop/_core/native_library.pyx",
    "mxop._core.call": "mxop/_core/call.pyx",
    "mxop._core.steps": "mxop/_core/steps.pyx",
    "mxop._core.reductions": "mxop/_core/reductions.pyx",
    "mxop._core.prepared": "mxop/_core/prepared.pyx",
    "mxop._core.plans": "mxop/_core/plans.pyx",
    "mxop._core.kinds": "mxop/_core/kinds.pyx",
    "mxop._core.dispatch": "mxop/_core/dispatch.pyx",
    "mxop._core.prepare": "mxop/_core/prepare.pyx",
    "mxop._core.finishing": "mxop/_core/finishing.pyx",
    "mxop._core.loops": "mxop/_core/loops.pyx",
    "mxop._core.row_kernels": "mxop/_core/row_kernels.pyx",
    "mxop._core.chain": "mxop/_core/chain.pyx",
    "mxop._core.tape": "mxop/_core/tape.pyx",
    "mxop._core.core": "mxop/_core/core.pyx",
}
DIRECTIVES = {"language_level": 3, "cdivision": True, "initializedcheck": False, "embedsignature": True}
KERNEL_DIRECTIVES = DIRECTIVES | {"boundscheck": False, "wraparound": False}  # kernels index raw memory anyway


def generate_instructions() -> None:
    """Write the instruction loops from the formulas of the built-in operators."""
    package = types.ModuleType("mxop")
    package.__path__ = [str(ROOT / "mxop")]  # the package without its __init__, which needs what is built here
    before = set(sys.modules)
    sys.modules["mxop"] = package
    try:
        from mxop._kernels import generate

        fresh = GENERATED.with_suffix(".new")
        generate.write(str(fresh))
        if not GENERATED.exists() or GENERATED.read_bytes() != fresh.read_bytes():
            fresh.replace(GENERATED)
        else:
            fresh.unlink()
    finally:
        for name in set(sys.modules) - before:
            if name.split(".")[0] == "mxop":
                del sys.modules[name]


def native(levels: dict) -> str:
    """Return the best of some instruction sets that this processor has, as the compiler knows it."""
    if not MACROS.keys() <= levels.keys():
        return next(iter(levels))
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    command = [*compiler.split(), "-march=native", "-dM", "-E", "-x", "c", os.devnull]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    macros = set(re.findall(r"^#define __(\w+)__ 1$", told, re.MULTILINE))
    return next(name for name in levels if MACROS.get(name, set()) <= macros)


def isa_extensions() -> list[Extension]:
    """Return one extension for each instruction set of this machine."""
    levels = LEVELS.get(platform.machine().lower(), {"base": []}) if sys.platform != "win32" else {"base": []}
    chosen = os.environ.get("MXOP_BUILD_CPU", "").replace(",", " ").split()
    if chosen == ["native"]:
        chosen = [native(levels)]
    if not set(chosen) <= set(levels):
        sys.exit(f"mxop: MXOP_BUILD_CPU={' '.join(chosen)!r}; the instruction sets of this machine are {', '.join(levels)}")
    levels = {name: flags for name, flags in levels.items() if not chosen or name in chosen}
    template = (KERNELS / "instructions.pyx.in").read_text(encoding="utf-8")
    headers = [str(p.relative_to(ROOT)) for p in sorted((KERNELS / "include").glob("*.h"))]
    result = []
    for name, flags in levels.items():
        source = KERNELS / f"_isa_{name}.pyx"
        text = template.replace("@ISA@", name)
        if not source.exists() or source.read_text(encoding="utf-8") != text:
            source.write_text(text, encoding="utf-8")
        sources = [f"mxop/_kernels/_isa_{name}.pyx"]
        extension = Extension(f"mxop._kernels._isa_{name}", sources, depends=headers, include_dirs=[INCLUDE])
        extension.own_flags = [*flags, *LOOPS, *MODEST]
        result.append(extension)
    return result


class Cache:
    """Compiled modules by what they are made of.

    Parameters
    ----------
    compiler : object
        The compiler of the command, whose name, version and flags belong to every module.
    """

    def __init__(self, compiler) -> None:
        chosen = os.environ.get("MXOP_BUILD_CACHE", str(ROOT / "build" / "cache"))
        self.folder = Path(chosen) if chosen not in ("", "0") else None
        commands = [list(getattr(compiler, name, None) or []) for name in ("compiler_so", "linker_so")]
        self.common = hashlib.sha256(repr([
            commands, self.version(commands[0]), sys.version, platform.platform(), DIRECTIVES, KERNEL_DIRECTIVES, SHARED,
            [(name, metadata.version(name)) for name in ("Cython", "numpy", "scipy")],
        ]).encode())  # fmt: skip
        for path in sorted(p for p in (ROOT / "mxop").rglob("*") if p.suffix in (".pxd", ".h")):
            self.common.update(path.read_bytes())

    @staticmethod
    def version(command: list[str]) -> str:
        """Return what a compiler says about itself."""
        words = [word for word in command if not word.startswith("-")][:2]  # such as "ccache gcc"
        try:
            return subprocess.run([*words, "--version"], capture_output=True, text=True, timeout=60).stdout
        except (OSError, IndexError, subprocess.SubprocessError):
            return ""

    def place(self, extension: Extension) -> Path:
        """Return where a module is kept."""
        digest = self.common.copy()
        digest.update(repr([extension.name, extension.extra_compile_args, extension.extra_link_args]).encode())
        for source in extension.sources:
            if source.endswith(".pyx"):  # else it is Cython's own, whose version is known
                digest.update((ROOT / source).read_bytes())
        return self.folder / f"{extension.name}-{digest.hexdigest()[:32]}"

    def keep(self, built: Path, place: Path) -> None:
        """Copy a module that was just compiled; of what was kept before, the last ones stay."""
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh = place.with_name(f"{place.name}.{os.getpid()}")
        shutil.copy(built, fresh)
        fresh.replace(place)
        others = sorted(self.folder.glob(f"{place.name.rsplit('-', 1)[0]}-*"), key=lambda p: p.stat().st_mtime)
        for old in others[:-4]:
            old.unlink(missing_ok=True)


class Build(build_ext):
    """Find out what the compiler can do, translate what is not in the cache, and compile that in parallel."""

    translating = threading.Lock()  # Cython translates one module at a time, while others are compiled

    def build_extensions(self) -> None:
        msvc = self.compiler.compiler_type == "msvc"
        plain = ["/O2"] if msvc else list(PLAIN)
        plain += [] if msvc else ["-Wno-unused-function", "-Wno-misleading-indentation", "-Wno-unused-variable", "-g0"]
        plain.append(f"{'/FI' if msvc else '-include'}{INCLUDE}/mxop_traceback.h")
        if not self.compiles("#include <Python.h>\nint main(void) { return 0; }\n"):
            sys.exit(NO_COMPILER)
        cython = metadata.version("Cython")
        if tuple(map(int, re.findall(r"\d+", cython)[:3])) < (3, 1, 4):
            sys.exit(OLD_CYTHON.format(cython))
        openmp = self.openmp_flags(msvc)
        taken = {flag for flag in OF_GCC if self.takes(flag)}
        for extension in self.extensions:
            own = [flag for flag in getattr(extension, "own_flags", []) if flag not in OF_GCC or flag in taken]
            extension.extra_compile_args = plain + own + openmp[0]
            extension.extra_link_args = openmp[1]
        self.parallel = self.parallel or os.cpu_count() or 1
        cache = Cache(self.compiler)
        # times do not say what must be compiled again: a header that a module includes may have changed, or Cython
        anew, self.force = cache.folder is None or self.force, True
        if anew:
            self.compile(self.extensions)
            return
        places = {extension.name: cache.place(extension) for extension in self.extensions}
        missing = [extension for extension in self.extensions if not self.taken(extension, places[extension.name])]
        print(f"mxop: {len(places) - len(missing)} of {len(places)} modules are in {cache.folder}")
        self.compile(missing)
        for extension in missing:
            cache.keep(Path(self.get_ext_fullpath(extension.name)), places[extension.name])

    def run(self) -> None:
        super().run()
        kernels = KERNELS.relative_to(ROOT)
        for folder in (Path(self.build_lib) / kernels, *([KERNELS] if self.inplace else [])):
            self.drop_other_sets(folder)

    def drop_other_sets(self, folder: Path) -> None:
        """Remove modules of instruction sets that were not built now: they are of other headers, and would be loaded."""
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        kept = {extension.name.rpartition(".")[2] for extension in self.extensions}
        for path in folder.glob(f"_isa_*{suffix}"):
            if path.name.removesuffix(suffix) not in kept:
                print(f"mxop: {path.name} is of an earlier build, and removed")
                path.unlink()

    def compile(self, extensions: list[Extension]) -> None:
        """Translate modules to C, and compile them."""
        everything = self.extensions
        self.numbers, self.total = itertools.count(1), len(extensions)
        if extensions:
            print(f"mxop: {self.total} modules are translated to C and compiled, which takes some minutes", flush=True)
        try:
            self.extensions = extensions
            super().build_extensions()
        finally:
            self.extensions = everything

    def build_extension(self, extension: Extension) -> None:
        print(f"mxop: compiling {next(self.numbers)} of {self.total}: {extension.name}", flush=True)
        with self.translating:
            directives = KERNEL_DIRECTIVES if "._kernels." in extension.name else DIRECTIVES
            options = {"include_path": ["."], "quiet": True, "shared_utility_qualified_name": SHARED}
            extension.sources = cythonize([extension], compiler_directives=directives, force=True, **options)[0].sources
        super().build_extension(extension)

    def takes(self, flag: str) -> bool:
        """Return whether the compiler knows a flag, without a word of it about those that it does not know."""
        command = [*self.compiler.compiler_so, "-Werror", flag, "-x", "c", "-fsyntax-only", os.devnull]
        return subprocess.run(command, capture_output=True).returncode == 0

    def compiles(self, text: str, compile_flags: Sequence[str] = (), link_flags: Sequence[str] | None = None) -> bool:
        """Return whether the compiler takes a text, and where there are `link_flags`, the linker what comes out of it."""
        folder = tempfile.mkdtemp()
        try:
            source = Path(folder) / "probe.c"
            source.write_text(text, encoding="utf-8")
            objects = self.compiler.compile([str(source)], output_dir=folder, extra_postargs=list(compile_flags))
            if link_flags is not None:
                self.compiler.link_executable(objects, str(Path(folder) / "probe"), extra_postargs=list(link_flags))
        except Exception:  # whatever the compiler raises means that it does not work
            return False
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return True

    def taken(self, extension: Extension, place: Path) -> bool:
        """Copy a module from the cache, if it is there."""
        if not place.is_file():
            return False
        target = Path(self.get_ext_fullpath(extension.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(place, target)
        place.touch()
        return True

    def openmp_flags(self, msvc: bool) -> tuple[list[str], list[str]]:
        """Return compiler and linker flags for OpenMP, empty when the compiler has none."""
        if os.environ.get("MXOP_OPENMP") == "0":
            print("mxop: building without OpenMP (MXOP_OPENMP=0); kernels will use one thread")
            return [], []
        choices = [(["/openmp"], [])] if msvc else [
            (["-fopenmp"], ["-fopenmp"]),
            (["-Xpreprocessor", "-fopenmp"], ["-lomp"]),
        ]  # fmt: skip
        text = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n"
        for compile_flags, link_flags in choices:
            if self.compiles(text, compile_flags, link_flags):
                return compile_flags, link_flags
        print("mxop: the compiler has no OpenMP; building single-threaded kernels")
        return [], []


class BuildStubs(Command):
    """Write the ``.pyi`` files, which follow from the registry, so what was built before is imported for them."""

    description = "write the .pyi files"
    user_options: ClassVar[list[tuple[str, str, str]]] = []
    editable_mode = False

    def initialize_options(self) -> None:
        self.build_lib = None

    def finalize_options(self) -> None:
        self.set_undefined_options("build_py", ("build_lib", "build_lib"))

    def run(self) -> None:
        folder = ROOT if self.editable_mode else Path(self.build_lib).resolve()
        paths = [str(folder), os.environ.get("PYTHONPATH", "")]
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, paths)))
        command = [sys.executable, "-m", "mxop", "stubs", str(folder / "mxop")]
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)

    def get_outputs(self) -> list[str]:
        return [str(p) for p in (Path(self.build_lib) / "mxop").rglob("*.pyi")]

    def get_output_mapping(self) -> dict[str, str]:
        return {}

    def get_source_files(self) -> list[str]:
        return []


class BuildAll(build):
    """Build as always, then the stubs."""

    sub_commands = (*build.sub_commands, ("build_stubs", None))


def extensions() -> list[Extension]:
    """Return all compiled modules; kernels come first, because they take longest."""
    present = {name: path for name, path in MODULES.items() if (ROOT / path).exists()}
    kernels = [Extension(n, [p], include_dirs=[INCLUDE]) for n, p in present.items() if "._kernels." in n]
    kernels.append(Extension(SHARED, [SHARED.replace(".", "/") + ".c"]))  # which cythonize writes
    for extension in kernels:
        extension.own_flags = LOOPS
    core_folders = [INCLUDE, ABI_INCLUDE, np.get_include()]
    core = [Extension(n, [p], include_dirs=core_folders) for n, p in present.items() if "._core." in n]
    for extension in core:
        extension.own_flags = CLEARED
    return isa_extensions() + kernels + core


def description() -> str:
    """Return the README as a package index shows it, where relative links and pictures lead nowhere: their texts remain."""
    text = Path("README.md").read_text(encoding="utf-8")
    text = re.sub(r"!\[[^\]]*\]\((?!https?:)[^)]*\)\n+", "", text)
    return re.sub(r"\[([^\]]*)\]\((?!https?:|#)([^)]*)\)", lambda m: m[1] if m[1] == m[2] else f"{m[1]} (`{m[2]}`)", text)


if __name__ == "__main__":
    generate_instructions()
    setup(
        long_description=description(),
        long_description_content_type="text/markdown",
        ext_modules=extensions(),
        cmdclass={"build": BuildAll, "build_ext": Build, "build_stubs": BuildStubs},
    )
