"""``setup.py``: a module that was compiled is found again by what it is made of."""

import importlib.util
import os
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("Cython")
pytest.importorskip("setuptools")
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def build(monkeypatch, tmp_path):
    """The build script, with a cache of its own."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("MXOP_BUILD_CACHE", str(tmp_path / "cache"))
    spec = importlib.util.spec_from_file_location("mxop_setup", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cache(build, *flags):
    command = [sys.executable, *flags]  # says its version, as a compiler does
    return build.Cache(SimpleNamespace(compiler_so=command, linker_so=command))


def extension(build, source, *flags):
    found = build.Extension("mxop._kernels.work", [str(source)])
    found.extra_compile_args, found.extra_link_args = [*flags], []
    return found


def test_a_module_is_known_by_what_it_is_made_of(build, tmp_path):
    source = tmp_path / "work.pyx"
    source.write_text("one")
    places = {cache(build).place(extension(build, source))}
    assert places == {cache(build).place(extension(build, source))}
    places.add(cache(build).place(extension(build, source, "-O2")))
    places.add(cache(build, "-g").place(extension(build, source)))
    source.write_text("two")
    places.add(cache(build).place(extension(build, source)))
    assert len(places) == 4
    assert all(place.parent == tmp_path / "cache" for place in places)


def test_the_last_modules_are_kept(build, tmp_path):
    source, built = tmp_path / "work.pyx", tmp_path / "work.so"
    kept = []
    for k in range(6):
        source.write_text(str(k))
        built.write_bytes(b"compiled %d" % k)
        kept.append(cache(build).place(extension(build, source)))
        cache(build).keep(built, kept[-1])
        os.utime(kept[-1], (k, k))
    assert sorted((tmp_path / "cache").iterdir()) == sorted(kept[2:])
    assert kept[5].read_bytes() == b"compiled 5"


def command(build, compile_with):
    """Return the build command, with a compiler."""
    from setuptools._distutils.ccompiler import new_compiler
    from setuptools._distutils.sysconfig import customize_compiler
    from setuptools.dist import Distribution

    found = build.Build(Distribution())
    found.initialize_options()
    found.compiler = new_compiler()
    customize_compiler(found.compiler)
    if compile_with:
        found.compiler.set_executables(compiler_so=compile_with, compiler=compile_with)
    found.compiler.add_include_dir(sysconfig.get_path("include"))
    found.extensions = []
    return found


@pytest.mark.skipif(sys.platform == "win32", reason="there are other compilers")
def test_without_a_compiler_one_sentence_says_what_to_install(build, capfd):
    with pytest.raises(SystemExit, match=r"^mxop: building needs a C compiler.*apt install build-essential python3-dev"):
        command(build, ["/no/such/cc"]).build_extensions()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="there are other compilers")
def test_the_build_says_how_far_it_is(build, capsys, monkeypatch):
    found = command(build, None)
    assert found.compiles("#include <Python.h>\nint main(void) { return 0; }\n")
    assert not found.compiles("int main(void) { return nothing; }\n")
    monkeypatch.setattr(build.build_ext, "build_extension", lambda self, extension: None)
    monkeypatch.setattr(build, "cythonize", lambda chosen, **_: chosen)
    parts = [build.Extension(f"mxop._core.part{k}", []) for k in range(3)]
    found.compile(parts)
    for part in parts:
        found.build_extension(part)
    told = capsys.readouterr().out
    assert "3 modules are translated to C and compiled" in told and "compiling 3 of 3: mxop._core.part2" in told


@pytest.mark.skipif(sys.platform == "win32", reason="there are other compilers")
def test_what_the_cache_lacks_is_compiled_though_it_looks_new(build, tmp_path, monkeypatch):
    """A header is not among the sources of the module that includes it: by file times, the module would stay as it was."""
    header, built, forced = tmp_path / "mxop" / "one.h", tmp_path / "part.so", []
    header.parent.mkdir()

    def compiled(self, extension):
        forced.append(self.force)
        built.write_text(header.read_text())

    monkeypatch.setattr(build, "ROOT", tmp_path)
    monkeypatch.setattr(build, "cythonize", lambda chosen, force, **_: forced.append(force) or chosen)
    monkeypatch.setattr(build.build_ext, "build_extension", compiled)
    monkeypatch.setattr(build.Build, "get_ext_fullpath", lambda self, name: str(built))
    for text, want in (("1", 1), ("1", 0), ("2", 1), ("1", 0)):
        header.write_text(text)
        found = command(build, None)
        found.extensions = [build.Extension("part", [])]
        found.build_extensions()
        assert built.read_text() == text and forced == [True, True] * want
        forced.clear()


def test_modules_share_what_cython_writes(build, tmp_path, monkeypatch):
    [shared] = [e for e in build.extensions() if e.name == build.SHARED]
    shared.extra_compile_args, shared.extra_link_args = [], []
    monkeypatch.setattr(build, "ROOT", tmp_path)  # where it has not been written
    assert cache(build).place(shared).name.startswith(build.SHARED)
    before = cache(build).place(shared)
    monkeypatch.setattr(build, "SHARED", "mxop._kernels.another")  # modules look for it by name
    assert cache(build).place(shared) != before


def test_a_module_is_translated_with_what_is_shared(build, monkeypatch):
    asked = []
    monkeypatch.setattr(build.build_ext, "build_extension", lambda self, extension: asked.append(extension.sources))
    monkeypatch.setattr(
        build, "cythonize", lambda chosen, **options: asked.append(options) or [SimpleNamespace(sources=["a.c"])]
    )
    found = command(build, None)
    found.compile([])
    for name, directives in (("mxop._kernels.a", build.KERNEL_DIRECTIVES), ("mxop._core.a", build.DIRECTIVES)):
        found.build_extension(build.Extension(name, ["a.pyx"]))
        assert asked.pop() == ["a.c"]
        options = asked.pop()
        assert (options["compiler_directives"], options["shared_utility_qualified_name"]) == (directives, build.SHARED)


def test_a_cache_can_be_switched_off(build, monkeypatch):
    monkeypatch.setenv("MXOP_BUILD_CACHE", "0")
    assert cache(build).folder is None


@pytest.mark.skipif(sys.platform == "win32", reason="one set is built there")
def test_the_set_of_this_machine_alone(build, monkeypatch, levels):
    monkeypatch.setenv("MXOP_BUILD_CPU", "native")
    best = next(levels)
    assert [e.name for e in build.isa_extensions()] == [f"mxop._kernels._isa_{best}"]


@pytest.mark.parametrize("inplace", [False, True])
def test_sets_of_an_earlier_build_are_removed(build, tmp_path, monkeypatch, inplace):
    """They would be loaded, though compiled with other headers."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    folders = [tmp_path / "build" / "mxop" / "_kernels", tmp_path / "mxop" / "_kernels"]
    files = [f"{name}{suffix}" for name in ("_isa_v3", "_isa_v4", "along")] + ["_isa_v4.pyx", "_isa_v4.other.so"]
    for path in (folder / name for folder in folders for name in files):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.setattr(build, "ROOT", tmp_path)
    monkeypatch.setattr(build, "KERNELS", folders[1])
    monkeypatch.setattr(build.build_ext, "run", lambda self: None)
    found = command(build, None)
    found.extensions = [build.Extension(f"mxop._kernels.{name}", []) for name in ("_isa_v3", "along")]
    found.build_lib, found.inplace = str(tmp_path / "build"), inplace
    found.run()
    gone = [{p for p in files if not (folder / p).exists()} for folder in folders]
    assert gone == [{files[1]}, {files[1]} if inplace else set()]


@pytest.mark.skipif(sys.platform == "win32", reason="there are other compilers")
def test_flags_that_a_compiler_refuses_are_left_out(build, tmp_path, monkeypatch):
    compiler = tmp_path / "compiler.py"
    compiler.write_text("import sys\nsys.exit('-fvect-cost-model=dynamic' in sys.argv)\n")
    monkeypatch.setattr(build.Build, "compiles", lambda *given: True)
    monkeypatch.setattr(build.Build, "openmp_flags", lambda *given: ([], []))
    monkeypatch.setattr(build.Build, "compile", lambda *given: None)
    found = command(build, [sys.executable, str(compiler)])
    found.extensions, found.force = build.extensions(), True
    found.build_extensions()
    flags = {extension.name: extension.extra_compile_args for extension in found.extensions}
    loops = flags["mxop._kernels.moves"]
    assert "-ftree-vectorize" in loops and "-fvect-cost-model=dynamic" not in loops and "-O2" in loops
    assert any("-fno-tree-pre" in own for name, own in flags.items() if "_isa_" in name)
