"""Loading compiled libraries: what is found and printed, and every way in which it can fail, with nothing registered then."""

import contextlib
import os
import re
import shutil
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from libraries_util import SANITIZE, SOURCES, compiled, library, needs_compiler, variant  # noqa: F401
from processes import run_python

import mxop as mx
from mxop.library import binary, loader

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads and writes ELF files")


@pytest.fixture
def untouched():
    """Check that a test leaves the registry as it was."""
    before, files = set(mx.op.names()), list(loader._loaded)
    yield
    assert set(mx.op.names()) == before
    assert list(loader._loaded) == files


def c_library(source, name, *flags):
    return mx.library.build([SOURCES / source], name, (*SANITIZE, *flags))


# ---- files that are not libraries ---------------------------------------------------------------------------------------


def refused(path, message):
    with pytest.raises(mx.MXNetError, match=message) as caught:
        mx.library.load(path)
    assert Path(path).name in str(caught.value)


def test_a_file_that_is_missing(untouched, tmp_path):
    refused(tmp_path / "nothing.so", "does NOT exist")
    refused(str(tmp_path / "nothing.so"), "does NOT exist")
    refused("nothing.so", "does NOT exist")
    refused(tmp_path, "NOT a library file")


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "empty file"),
        (b"hello, this is text\n", "text file"),
        (b"int f() {}\n" * 100, "text file"),
        (b"\x00\x01\x02\x03" * 100, "first bytes"),
        (b"!<arch>\nabc\0", "static archive"),
        (b"MZ" + bytes(200), "damaged"),
        (b"\x7fELF", "damaged"),
        (b"\x7fELF" + bytes(100), "not a shared library"),
        (b"\xca\xfe\xba\xbe" + b"\0\0\0\x34" + bytes(100), "Java class"),
        (b"\xcf\xfa\xed\xfe" + bytes(3), "damaged"),
    ],
)
def test_a_file_that_is_no_library(untouched, tmp_path, content, message):
    file = tmp_path / "lib.so"
    file.write_bytes(content)
    refused(file, message)


def elf(machine=62, kind=3, bits=2, order=1, parts=((1, 0, 64),)):
    """Return the head of an ELF file."""
    mark = "<" if order == 1 else ">"
    head = b"\x7fELF" + bytes([bits, order, 1]) + bytes(9)
    if bits == 2:
        head += struct.pack(mark + "HHIQQQIHHHHHH", kind, machine, 1, 0, 64, 0, 0, 64, 56, len(parts), 0, 0, 0)
        for type_, offset, size in parts:
            head += struct.pack(mark + "IIQQQQQQ", type_, 5, offset, 0, 0, size, size, 4096)
    else:
        head += struct.pack(mark + "HHIIIIIHHHHHH", kind, machine, 1, 0, 52, 0, 0, 52, 32, len(parts), 0, 0, 0)
        for type_, offset, size in parts:
            head += struct.pack(mark + "IIIIIIII", type_, offset, 0, 0, size, size, 5, 4096)
    return head


@linux
@pytest.mark.parametrize(
    "content, message",
    [
        (elf(183 if binary.this_machine() != "aarch64" else 62) + bytes(500), "but this machine is"),
        (elf(40, bits=1) + bytes(500), r"ARM \(32 bit\), but this machine"),
        (elf(22, order=2) + bytes(500), "s390x, but this machine"),
        (elf(9999) + bytes(500), "ELF machine 9999"),
        (elf(kind=1) + bytes(500), "an object file"),
        (elf(kind=2) + bytes(500), "a program"),
        (elf(parts=()) + bytes(500), "lists nothing to load"),
        (elf(parts=((1, 0, 10**6),)) + bytes(500), "cut off"),
        (elf(parts=((1, 2**63, 2**63),)) + bytes(500), "cut off"),
        (elf(parts=((1, 0, 64),) * 5)[:200], "cut off"),
        (
            b"MZ" + bytes(58) + struct.pack("<I", 64) + b"PE\0\0" + struct.pack("<H", 0x8664) + bytes(200),
            "another system",
        ),
        (b"\xcf\xfa\xed\xfe" + struct.pack("<IIIII", 0x0100000C, 0, 6, 3, 100) + bytes(200), "Mach-O for aarch64"),
        (
            b"\xca\xfe\xba\xbe" + struct.pack(">I", 1) + struct.pack(">IIIII", 7, 0, 0, 0, 0) + bytes(99),
            "Mach-O for x86",
        ),
    ],
)
def test_a_library_of_another_machine_or_system(untouched, tmp_path, content, message):
    file = tmp_path / "lib.so"
    file.write_bytes(content)
    refused(file, message)


@linux
@needs_compiler
def test_a_library_cut_off_anywhere(untouched, tmp_path):
    whole = Path(c_library("plain.c", "cut")).read_bytes()
    file = tmp_path / "cut.so"
    needed = 0  # what lies behind is not read by the loader
    for size in sorted({*range(1, 700, 37), *range(700, len(whole), max(1, len(whole) // 40))}):
        file.write_bytes(whole[:size])
        try:
            binary.check(file)
            assert size >= needed > 0
        except mx.MXNetError as problem:
            needed = max([needed, *map(int, re.findall(r"reach to (\d+)", str(problem)))])
            refused(file, "cut")
    rng = np.random.default_rng(5)
    for _ in range(300):  # headers with wrong bytes are read without an accident; they are not opened here
        damaged = bytearray(whole)
        for at in rng.integers(0, 1000, 3):
            damaged[at] = rng.integers(256)
        file.write_bytes(damaged)
        with contextlib.suppress(mx.MXNetError):
            binary.check(file)


# ---- libraries that are not ours ----------------------------------------------------------------------------------------


@needs_compiler
def test_libraries_of_something_else(untouched):
    refused(compiled("int nothing_of_ours() {\n return 1; }"), "exports no mxop_library_v1")
    include = re.escape(f"-I{mx.get_include()} (mxop.get_include()), or by mx.library.build")
    refused(compiled('extern "C" {\nint _opRegSize() { return 0; } }'), f"MXNet's own lib_api.h.*{include}")
    refused(
        compiled('extern "C" int not_there();\nint f() { return not_there(); }'),
        "cannot be loaded.*not_there",
    )


HOSTILE = [
    ("REFUSE", "refuses to work with mxop.*gave no reason"),
    ("REFUSE_WITH_TEXT", "wants another host"),
    ("LIBRARY_SIZE_0", "0 bytes"),
    ("LIBRARY_SIZE_HUGE", "4294967295 bytes"),
    ("OTHER_VERSION", "version 99.*recompile"),
    ("UNKNOWN_FEATURES", "feature bits 0x10000000000"),
    ("COUNT_NEGATIVE", "-1 operators"),
    ("COUNT_HUGE", "2147483647 operators"),
    ("NO_LIST", "does not list them"),
    ("NULL_OPERATOR", "operator's table is missing"),
    ("OPERATOR_SIZE_SMALL", "40 bytes"),
    ("NAME_NULL", "name is missing"),
    ("NAME_LONG", "longer than 200 bytes"),
    ("NAME_NO_TEXT", "is no text"),
    ("NAME_NO_NAME", "'not a name'"),
    ("NAME_EMPTY", "named ''"),
    ("NAME_TWICE", "hostile_two twice"),
    ("NAME_TAKEN", "operator relu.*taken"),
    ("NO_RUN", "no function that runs it"),
    ("NO_BIND", "no function that parses"),
    ("NO_FORWARD", "no forward function.*setForward"),
    ("INITIALIZE_FAILS", "failed to initialize: no licence for this machine"),
    ("INITIALIZE_FAILS_SILENTLY", "failed to initialize"),
    ("STATE_WITHOUT_CREATE", "no create_state"),
    ("GRADIENT_UNKNOWN", "no_such_operator"),
    ("DOC_NO_TEXT", "is no text"),
    ("PASSES_HUGE", "2147483647 graph passes"),
    ("PARTITIONERS_NEGATIVE", "-5 partitioners"),
]


@needs_compiler
@pytest.mark.parametrize("mode, message", HOSTILE, ids=[m for m, _ in HOSTILE])
def test_hostile_libraries(untouched, mode, message):
    refused(c_library("hostile.c", mode.lower(), f"-DMODE={mode}"), message)


@needs_compiler
def test_a_later_library(library):  # noqa: F811
    """Tables may have grown since: what is known of them is used."""
    mx.library.load(c_library("hostile.c", "larger", "-DMODE=LARGER_TABLES"), verbose=False)
    assert mx.nd.hostile_one(mx.nd.ones((2, 3))).shape == (2, 3)


@pytest.fixture
def little_memory():
    """Let arrays of gigabytes, for which a library may ask, be refused."""
    resource = pytest.importorskip("resource", reason="the system has no limits of memory")
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 1 << 18
    before = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + (1 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (most if before[1] < 0 else min(most, before[1]), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@needs_compiler
def test_rubbish_at_call_time(library, little_memory):  # noqa: F811
    mx.library.load(c_library("hostile.c", "fuzz", "-DMODE=FUZZ"), verbose=False)
    x = mx.nd.ones((2, 3))
    worked = 0
    for seed in range(3000):
        try:
            found = mx.nd.hostile_one(x, seed=seed)
            for out in [found] if isinstance(found, mx.nd.NDArray) else found:
                assert all(d >= 0 for d in out.shape)
            worked += 1
        except (mx.MXNetError, MemoryError):
            pass
    assert 0 < worked < 3000
    for seed in range(300):
        try:
            out = mx.sym.hostile_one(mx.sym.Variable("x"), seed=seed)
            out.infer_shape_partial(x=(2, 3))
            out.infer_type_partial(x="float32")
        except (mx.MXNetError, MemoryError):
            pass


def test_initialize_in_cpp(untouched, variant):  # noqa: F811
    if shutil.which("c++") is None and shutil.which("g++") is None:
        pytest.skip("no C++ compiler on this machine")
    source = """
    MXReturnValue copy(const std::unordered_map<std::string, std::string>& attrs, std::vector<MXTensor>* in,
                       std::vector<MXTensor>* out, const OpResource& res) { return MX_SUCCESS; }
    static bool announce() {
      if (is("taken")) { REGISTER_OP(exp).setForward(copy, "cpu"); }
      else if (is("twice")) { REGISTER_OP(never_there).setForward(copy, "cpu").setForward(copy, "cpu"); }
      else if (is("elsewhere")) { REGISTER_OP(never_there).setForward(copy, "tpu"); }
      else { REGISTER_OP(never_there).setForward(copy, "cpu"); }
      return true;
    }
    static bool announced = announce();
    MXReturnValue initialize(int version) {
      if (is("old")) { MX_ERROR_MSG << "version " << version << " is too old"; return MX_FAIL; }
      if (is("throws")) throw std::runtime_error("no key");
      return MX_SUCCESS;
    }
    """
    path = variant(source, "old")
    refused(path, r"failed to initialize.*version 10901 is too old")
    refused(path, r"failed to initialize.*version 10901 is too old")  # the second time too
    refused(variant(source, "throws"), "failed to initialize: no key")
    assert not hasattr(mx.nd, "never_there")
    refused(variant(source, "twice"), "never_there: setForward is called twice for context 'cpu'")
    refused(variant(source, "elsewhere"), "never_there: setForward: context 'tpu'")
    refused(variant(source, "taken"), "registers operator exp, but that name is taken")


# ---- libraries that load ------------------------------------------------------------------------------------------------


@needs_compiler
def test_a_library_in_plain_c(library, tmp_path, monkeypatch, capsys):  # noqa: F811
    path = Path(c_library("plain.c", "plain"))
    shutil.copy(path, tmp_path / "libplain.so")
    monkeypatch.chdir(tmp_path)
    mx.library.load("libplain.so")  # a relative path
    said = capsys.readouterr().out
    assert re.search(r"Found 3 operators in library\n\tOp\[0\] c_scale\n\tOp\[1\] c_scale_gradient\n\tOp\[2\] c_count", said)
    mx.library.load(tmp_path / "libplain.so", verbose=False)  # again, by another path
    assert capsys.readouterr().out == ""
    assert mx.library.loaded().count(str((tmp_path / "libplain.so").resolve())) == 1

    x = mx.nd.array([1, 2, 3])
    assert mx.nd.c_scale(x, by=3).asnumpy().tolist() == [3, 6, 9]
    assert mx.nd.c_scale(data=x.astype("float64"), by=0.5).asnumpy().tolist() == [0.5, 1, 1.5]
    with pytest.raises(mx.MXNetError, match=r"c_scale has one parameter, by; given:\ntimes"):
        mx.nd.c_scale(x, times=3)
    with pytest.raises(mx.MXNetError, match=r"expected float32 or float64"):
        mx.nd.c_scale(x.astype("int32"))
    assert mx.nd.c_scale.__doc__.startswith("Multiply by the parameter `by`.")
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.c_scale(x, by=3)
        (g,) = mx.autograd.grad((y * y).sum(), [x], create_graph=True)
        total = g.sum()
    assert g.asnumpy().tolist() == [18, 36, 54]
    total.backward()
    assert x.grad.asnumpy().tolist() == [18, 18, 18]

    assert [mx.nd.c_count().asnumpy().tolist() for _ in range(3)] == [[1, 1]] * 3
    executor = mx.sym.c_count().bind(mx.cpu(), {})
    assert [executor.forward()[0].asnumpy().tolist() for _ in range(3)] == [[1, 1], [2, 1], [3, 1]]
    assert mx.nd.c_count().dtype == np.int64


@needs_compiler
def test_the_same_operators_from_another_file(library, tmp_path):  # noqa: F811
    path = Path(c_library("plain.c", "plain"))
    mx.library.load(path, verbose=False)
    other = tmp_path / "other.so"
    shutil.copy(path, other)
    before = set(mx.op.names())
    refused(other, "registers operator c_scale, but that name is taken by an operator of library plain")
    assert set(mx.op.names()) == before and mx.nd.c_scale(mx.nd.ones((1,)), by=2).asscalar() == 2


@needs_compiler
def test_a_file_that_changed(library, tmp_path):  # noqa: F811
    file = tmp_path / "lib.so"
    shutil.copy(c_library("plain.c", "plain"), file)
    mx.library.load(file, verbose=False)
    fresh = tmp_path / "fresh.so"
    shutil.copy(c_library("hostile.c", "larger", "-DMODE=LARGER_TABLES"), fresh)
    os.replace(fresh, file)
    refused(file, "changed since")
    assert mx.nd.c_scale(mx.nd.ones((1,)), by=2).asscalar() == 2


@needs_compiler
def test_load_op_lib_and_threads_that_load():
    code = f"""
        import threading
        import mxop as mx
        path = {c_library("plain.c", "plain")!r}
        errors = []
        def work():
            try:
                mx.library.load_op_lib(path, False)
                assert mx.nd.c_scale(mx.nd.ones((3,)), by=2).asnumpy().tolist() == [2, 2, 2]
            except Exception as problem:
                errors.append(problem)
        threads = [threading.Thread(target=work) for _ in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert not errors, errors
        print(len(mx.library.loaded()))
    """
    import textwrap

    assert run_python(textwrap.dedent(code)) == "1"
