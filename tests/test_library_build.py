"""``mxop.get_include``, ``mx.library.build`` and ``load_inline``."""

import os
import subprocess
import threading
from pathlib import Path

import pytest
from libraries_util import COMPILER, COMPILERS, SOURCES, library, needs_compiler  # noqa: F401
from processes import run_python

import mxop as mx

TWICE = """
using namespace mxnet::ext;
MXReturnValue twice(const std::unordered_map<std::string, std::string>& attrs, std::vector<MXTensor>* in,
                    std::vector<MXTensor>* out, const OpResource& res) {
  for (int64_t i = 0; i < in->at(0).size(); ++i) out->at(0).data<float>()[i] = BY * in->at(0).data<float>()[i];
  return MX_SUCCESS;
}
REGISTER_OP(inline_twice).setForward(twice, "cpu");
"""


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("MXOP_CACHE_DIR", str(folder))
    return folder


def test_headers_are_where_get_include_says():
    folder = Path(mx.get_include())
    for name in ("lib_api.h", "mxop/lib_api.h", "mxop/abi.h", "mxnet/lib_api.h"):
        assert (folder / name).is_file(), name
    assert mx.get_include() == mx.library.get_include()


@needs_compiler
@pytest.mark.parametrize("standard", ["c++11", "c++14", "c++17", "c++20"])
def test_headers_compile(tmp_path, standard):
    """From each of the folders that users name; what the preprocessor makes the same of is compiled once."""
    source, seen = tmp_path / "a.cc", []

    def ran(*options):
        command = [COMPILER, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *options, str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    for include in ("", "mxop", "mxnet"):
        more = "" if include else '#include "mxnet/lib_api.h"\n#include "mxop/lib_api.h"\n'
        source.write_text(f'#include "lib_api.h"\n{more}')
        folder = os.path.join(mx.get_include(), include)
        text = ran("-I", folder, "-E", "-P").replace("mxnet/../", "")
        if text not in seen:
            seen.append(text)
            ran("-I", folder, "-fsyntax-only")
    assert len(seen) == 2


@pytest.mark.parametrize("compiler", COMPILERS[1:] or COMPILERS)
def test_every_compiler_of_the_machine(compiler):
    """Compilers are mixed in one process: nothing of C++ crosses between a library and mxop."""
    paths = [mx.library.build(SOURCES / f"{name}_lib.cc", flags=["-O0"], compiler=compiler) for name in ("gemm", "relu")]
    said = run_python(
        f"import mxop as mx\nfor path in {paths!r}:\n    mx.library.load(path, verbose=False)\n"
        "x = mx.nd.array([[-1, 2]])\nprint(mx.nd.my_gemm(mx.nd.my_relu(x), mx.nd.my_state_relu(x).T).asscalar())"
    )
    assert said.endswith("4.0")


@needs_compiler
def test_several_files_make_one_library(library, tmp_path):  # noqa: F811
    """The header is included in each; together they have one registry and one entry point."""
    for k in (1, 2):
        source = '#include "mxop/lib_api.h"\n' + TWICE.replace("twice", f"twice{k}").replace("BY", str(k + 1))
        (tmp_path / f"part{k}.cc").write_text(source)
    path = mx.library.build([tmp_path / "part1.cc", tmp_path / "part2.cc"], "parts", ["-O0"])
    mx.library.load(path, verbose=False)
    x = mx.nd.ones((2,))
    assert mx.nd.inline_twice1(x).asnumpy().tolist() == [2, 2] and mx.nd.inline_twice2(x).asnumpy().tolist() == [3, 3]
    library.folder = tmp_path


@needs_compiler
@pytest.mark.parametrize("folder", ["plain", "a place #1 $ü"])
def test_what_is_built_is_found_again(tmp_path, cache, capsys, folder):
    """Also where compilers write the folder's name in the quotes of make."""
    tmp_path /= folder
    tmp_path.mkdir()
    source, header = tmp_path / "a.c", tmp_path / "a.h"
    header.write_text("#define VALUE 1\n")
    source.write_text('#include "a.h"\nint value(void) { return VALUE; }\n')
    first = mx.library.build(source, verbose=True)
    assert "-shared" in capsys.readouterr().out
    assert Path(first).is_relative_to(cache) and Path(first).name.startswith("a-")
    stamp = os.stat(first).st_mtime_ns
    assert mx.library.build([str(source)], verbose=True) == first and capsys.readouterr().out == ""
    assert os.stat(first).st_mtime_ns == stamp
    header.write_text("#define VALUE 2\n")
    second = mx.library.build(source)
    assert second != first and Path(first).exists()
    source.write_text(source.read_text() + "/* more */\n")
    third = mx.library.build(source)
    assert mx.library.build(source, flags=["-O1"]) not in (first, second, third)
    assert mx.library.build(source, "named").rpartition("/")[2].startswith("named-")
    (Path(third).parent / "built.json").write_text("{damaged")
    assert mx.library.build(source) == third


@needs_compiler
def test_errors_show_what_the_compiler_said(tmp_path):
    source = tmp_path / "bad.cc"
    source.write_text("int f() { return undeclared_thing; }\n")
    with pytest.raises(mx.MXNetError, match=r"bad.cc did not compile \(exit status 1\)(.|\n)*undeclared_thing"):
        mx.library.build(source)
    with pytest.raises(mx.MXNetError, match=r"missing.cc does not exist"):
        mx.library.build(tmp_path / "missing.cc")
    with pytest.raises(mx.MXNetError, match=r"no sources"):
        mx.library.build([])
    with pytest.raises(mx.MXNetError, match=r"not a name for a library"):
        mx.library.build(source, "../up")
    with pytest.raises(mx.errors.DeviceError, match=r"no compiler 'no-such-compiler'.*CXX"):
        mx.library.build(source, compiler="no-such-compiler")


def test_no_compiler(tmp_path, monkeypatch):
    source = tmp_path / "a.cc"
    source.write_text("")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(mx.errors.DeviceError, match=r"no C\+\+ compiler.*install g\+\+"):
        mx.library.build(source)


@needs_compiler
def test_load_inline(library, capsys):  # noqa: F811
    path = mx.library.load_inline("inline", TWICE, ["-O0", "-DBY=2"], verbose=True)
    assert "Op[0] inline_twice" in capsys.readouterr().out
    assert mx.nd.inline_twice(mx.nd.array([1, 2])).asnumpy().tolist() == [2, 4]
    assert mx.library.load_inline("inline", TWICE, ["-O0", "-DBY=2"]) == path
    with pytest.raises(mx.MXNetError, match=r"broken.cc:2(.|\n)*what_is_this"):
        mx.library.load_inline("broken", "\nint f() { return what_is_this; }\n", ["-O0"])
    with pytest.raises(mx.MXNetError, match=r"inline_twice, but that name is taken"):
        mx.library.load_inline("inline", TWICE, ["-O0", "-DBY=3"])


@needs_compiler
def test_threads_that_build_the_same(tmp_path):
    source = tmp_path / "a.c"
    source.write_text("int value(void) { return 1; }\n")
    found = []
    threads = [threading.Thread(target=lambda: found.append(mx.library.build(source))) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 6 and len(set(found)) == 1 and Path(found[0]).is_file()
    assert not [f for f in Path(found[0]).parent.iterdir() if f.name.startswith("tmp")]


@needs_compiler
def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("MXOP_CACHE_DIR", str(blocked))
    source = tmp_path / "a.c"
    source.write_text("int value(void) { return 1; }\n")
    first = mx.library.build(source)
    assert Path(first).is_file() and mx.library.build(source) == first


@needs_compiler
def test_a_user_without_a_home(monkeypatch, tmp_path):
    """As in containers whose user has a number and no name."""
    for name in ("HOME", "USERPROFILE", "XDG_CACHE_HOME", "LOCALAPPDATA", "MXOP_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # what it does where nobody knows
    source = tmp_path / "a.c"
    source.write_text("int value(void) { return 1; }\n")
    first = Path(mx.library.build(source))
    assert first.is_file() and first.is_absolute() and any(part.startswith("mxop-") for part in first.parts)
    assert Path(mx.library.build(source)) == first
