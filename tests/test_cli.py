"""``python -m mxop``: each command, on good and on bad input."""

import contextlib
import errno
import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import mxop as mx
from mxop.cli import Stop, demo, main
from mxop.cli.doctor import OPTIONAL
from mxop.cli.npy import read_floats

HOME = str(Path(mx.__file__).parent.parent)


def command(*arguments, cwd, timeout=120, **environment):
    """Run ``python -m mxop`` in a process of its own: the demonstration registers an operator."""
    env = os.environ | {"PYTHONPATH": HOME} | environment
    return subprocess.run([sys.executable, "-m", "mxop", *map(str, arguments)], cwd=cwd, env=env, capture_output=True,
                          text=True, timeout=timeout)  # fmt: skip


def refused(capsys, *arguments, status=1):
    """Run a command that must end with a status and one line; return what it said."""
    assert main([str(a) for a in arguments]) == status
    told = capsys.readouterr().err
    assert told.startswith(f"mxop {arguments[0]}: ") and told.count("\n") == 1
    return told


pytestmark = pytest.mark.usefixtures("built_in_quadratic")


# ---- demo -----------------------------------------------------------------------------------------------------------------
def test_what_mxnet_has_and_mxop_does_not_has_its_reason(capsys):
    assert main(["ops", "--missing"]) == 0
    *rows, total = capsys.readouterr().out.splitlines()
    names = [row.split()[0] for row in rows]
    assert names == ["_cvimdecode", "_cvimread", "_imdecode", "_npi_Custom", "_npi_cvimdecode", "_npi_cvimread", "_set_value"]
    assert all(len(row.split()) > 1 for row in rows) and total.endswith("names of operators are here")


def test_demo_runs(tmp_path):
    done = command("demo", "--size", "1000", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for text in (
        "mx.nd.contrib.quadratic([[1, 2], [3, 4]], a=1, b=2, c=3) = [[6.0, 11.0], [18.0, 27.0]]",
        "mx.nd.quadratic([[1, 2], [3, 4]], a=1, b=2, c=3) = [[6.0, 11.0], [18.0, 27.0]]",
        "def quadratic(data, *, a: float = 0.0, b: float = 0.0, c: float = 0.0):",
        "f'''",
        "check_symbolic_forward, check_symbolic_backward, check_numeric_gradient\n",
        "on shape (3, 4): passed",
        "GB/s",
        "Everything above agreed",
    ):
        assert text in done.stdout
    drawn = (tmp_path / "mxop_demo.png").exists()
    assert drawn == (find_spec("matplotlib") is not None)
    assert drawn or 'pip install "mxop-ndarray[plot]"' in done.stdout


def test_the_demos_figures_are_those_of_work_that_was_done(tmp_path):
    done = command("demo", "--size", "3e6", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^forward(?: and backward)?\n(?:  .*\n){4}", done.stdout, re.M)
    rates = [[float(rate) for rate in re.findall(r"([\d.]+) GB/s", row)] for row in rows]
    assert len(rates) == 2 and all(0 < rate <= 1.5 * copy for *ways, copy in rates for rate in ways), rows
    assert max(map(len, re.findall(r".*(?:GB/s|passed|f  |->|Medians).*", done.stdout))) <= 80
    assert "too fast" not in done.stdout


def test_the_demo_stops_at_work_that_was_not_done(monkeypatch):
    """Whoever leaves the gradient to be computed later, or gives one that he kept, has no figure."""
    monkeypatch.setattr(demo.mx.autograd, "record", contextlib.nullcontext)
    values = np.ones(1000, "float32")
    with pytest.raises(mx.MXNetError):
        demo.show_speed(demo.shown("_contrib_quadratic"), values, "nothing recorded")
    monkeypatch.undo()
    other = demo.Shown(mx.op.get("_contrib_quadratic"), demo.PARAMS)
    other.call = lambda x: mx.nd.array(values)
    with pytest.raises(Stop, match="forward by mxop result 0: 1 where 6 is right, 100% of it wrong"):
        demo.show_speed(other, values, "another operator")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f8"])
def test_demo_on_the_users_data(tmp_path, dtype):
    np.save(tmp_path / "x.npy", np.array([[1, 2], [3, 4]], dtype))
    done = command("demo", "--input", "x.npy", "--size", "1000", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    name = np.dtype(dtype).newbyteorder("=").name
    assert f"shape (2, 2), {name}\nf     [[6.0, 11.0], [18.0, 27.0]]\nf'    [[4.0, 6.0], [8.0, 10.0]]" in done.stdout
    assert f"Its speed on x.npy: 4 {name}" in done.stdout


@pytest.mark.parametrize("data", [
    np.zeros((0, 3), "float32"), np.float32(3), np.array([np.nan, np.inf, -np.inf, 6e4], "float16"),
    np.array([1e30, -1e30, 1e19], "float32"), np.asfortranarray(np.arange(12.0).reshape(3, 4)),
], ids=["empty", "scalar", "special", "overflow", "fortran"])  # fmt: skip
def test_demo_on_unusual_data(tmp_path, data):
    np.save(tmp_path / "x.npy", data)
    done = command("demo", "--input", "x.npy", "--size", "10", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def _files(folder):
    """Write files that are no arrays of floating-point numbers; return what is said of each."""
    np.save(folder / "complex.npy", np.ones(2, complex))
    np.save(folder / "text.npy", np.array(["a"]))
    np.save(folder / "objects.npy", np.array([{}, 1], object), allow_pickle=True)
    np.savez(folder / "archive.npz", a=np.ones(2))
    np.save(folder / "whole.npy", np.ones((50, 4)))
    whole = (folder / "whole.npy").read_bytes()
    (folder / "short.npy").write_bytes(whole[:200])
    (folder / "header.npy").write_bytes(whole[:40])
    (folder / "wild.npy").write_bytes(whole.replace(b"(50, 4)", b"(50, x)"))
    (folder / "huge.npy").write_bytes(b"\x93NUMPY\3\0" + b"\xff\xff\xff\x7f" + whole[10:])
    (folder / "plain.npy").write_text("hello")
    (folder / "nothing.npy").write_bytes(b"")
    return {
        "complex.npy": "dtype complex128; expected integers, or one of float16, float32, float64",
        "text.npy": "expected integers, or one of",
        "objects.npy": "holds Python objects",
        "archive.npz": "is an archive",
        "short.npy": "is damaged",
        "header.npy": "is damaged",
        "wild.npy": "is damaged",
        "huge.npy": "a header of 2147483647 bytes in a file of",
        "/dev/zero": "a device or a pipe",
        "plain.npy": "is not an .npy file",
        "nothing.npy": "is not an .npy file",
        "missing.npy": os.strerror(errno.ENOENT),
        ".": "is a folder",
    }


def test_demo_refuses_other_files(tmp_path, capsys):
    for name, text in _files(tmp_path).items():
        told = refused(capsys, "demo", "--input", tmp_path / name, status=2)
        assert text in told and (name in told or name == "."), told


def test_objects_are_not_loaded(tmp_path):
    """A pickle in a file of data must not be executed."""

    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "executed",))

    np.save(tmp_path / "x.npy", np.array([Trap()], object), allow_pickle=True)
    with pytest.raises(Exception, match="holds Python objects"):
        read_floats(str(tmp_path / "x.npy"))
    assert not (tmp_path / "executed").exists()


def test_demo_refuses_impossible_pictures_before_the_work(tmp_path, capsys):
    assert "no folder" in refused(capsys, "demo", "--output", tmp_path / "missing" / "a.png", status=2)
    assert "is a folder" in refused(capsys, "demo", "--output", tmp_path, status=2)


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="pictures need matplotlib")
def test_demo_draws_where_it_is_told(tmp_path):
    np.save(tmp_path / "x.npy", np.array([3, np.nan, -1.0, np.inf]))
    done = command("demo", "--input", "x.npy", "--output", "f.png", "--size", "10", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    done = command("demo", "--output", "f.what", "--size", "10", cwd=tmp_path)
    assert done.returncode == 1 and "cannot write the picture f.what" in done.stderr


@pytest.mark.parametrize("size", ["0", "-3", "many", "inf"])
def test_demo_refuses_sizes(size, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["demo", f"--size={size}"])
    assert stopped.value.code == 2
    assert "is not a positive number" in capsys.readouterr().err


# ---- the others -----------------------------------------------------------------------------------------------------------
def test_ops_lists_every_operator(capsys):
    assert main(["ops"]) == 0
    listed = capsys.readouterr().out
    for op in mx.op.operators(hidden=False):
        if op.module.startswith("mxop.ops."):
            spaces = map(mx.op.namespace_of, (op.name, *op.aliases))
            space, short = next(found for found in spaces if found[0] != "_internal")
            assert f"  {space + '.' if space else ''}{short} " in listed
    assert main(["ops", "broadcast_*", "--family", "shape"]) == 0
    listed = capsys.readouterr().out
    assert "broadcast_to" in listed and "broadcast_add" not in listed
    assert main(["ops", "quadr"]) == 0
    assert "contrib.quadratic" in capsys.readouterr().out


def test_ops_suggests(capsys):
    assert "did you mean 'sigmoid'?" in refused(capsys, "ops", "sigmod")
    assert "did you mean 'math'?" in refused(capsys, "ops", "--family", "mth")


def test_info(capsys):
    assert main(["info", "quadratic"]) == 0
    told = capsys.readouterr().out
    for text in ("_contrib_quadratic", "mx.nd.contrib.quadratic", "mx.nd.quadratic", "a: float, optional, default=0.0",
                 "FListInputNames", "FInferShape", "FInferType", "FCompute", "uses: in",
                 "TIsBackward"):  # fmt: skip
        assert text in told
    assert "operator 'sigmod' is not registered; did you mean 'sigmoid'?" in refused(capsys, "info", "sigmod")


@pytest.mark.parametrize("name", mx.op.names(hidden=True))
def test_info_of_every_operator(name):
    told = mx.op.describe(name)
    assert told.startswith(mx.op.info(name)["name"])
    assert len(told) < 10000, "a value that a formula uses more than once is written once"


def test_doctor(capsys):
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    for text in ("instruction set", "threads", "memory pool", "GPU", "numpy", "python", *(p.package for p in OPTIONAL)):
        assert text in told


def test_doctor_tells_of_the_other_distribution(tmp_path):
    assert "another project" not in command("doctor", cwd=tmp_path).stdout
    made = tmp_path / "mxop-0.2.0.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: mxop\nVersion: 0.2.0\n")
    told = command("doctor", cwd=tmp_path).stdout
    assert f"the distribution mxop 0.2.0 is installed too, in {tmp_path}" in told
    assert "pip uninstall mxop, then install mxop-ndarray again" in told


def test_version():
    done = subprocess.run([sys.executable, "-m", "mxop", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"mxop-ndarray {mx.__version__}\n"


def test_doctor_names_extras_that_exist():
    try:
        known = requires("mxop-ndarray")
    except PackageNotFoundError:
        pytest.skip("a tree that was built in place has no metadata, so its extras are not known")
    for optional in OPTIONAL:
        assert any(optional.package in line and f'extra == "{optional.extra}"' in line for line in known), optional


def test_docs_cannot_be_written(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert "file" in refused(capsys, "docs", tmp_path / "file")


@pytest.mark.parametrize("arguments", [[], ["demonstrate"], ["info"], ["docs"], ["run"], ["demo", "extra"]])
def test_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    told = capsys.readouterr().err
    assert "usage: python -m mxop" in told and "script, arguments" not in told


def test_output_may_be_cut_short(tmp_path):
    """As in ``python -m mxop ops | head -1``."""
    env = os.environ | {"PYTHONPATH": HOME}
    with subprocess.Popen([sys.executable, "-m", "mxop", "ops"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          cwd=tmp_path, env=env) as running:  # fmt: skip
        running.stdout.close()
        told = running.stderr.read()
    assert told == b"" and running.returncode == 0


def test_a_header_that_claims_more_than_the_file_holds_takes_no_memory(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(3))
    whole = (tmp_path / "x.npy").read_bytes()
    claim = b"(8589934592,), }"  # 64 GiB
    (tmp_path / "x.npy").write_bytes(whole.replace(b"(3,), }" + b" " * (len(claim) - 7), claim))
    with pytest.raises(Stop, match=r"damaged.*greater than file size"):
        read_floats(str(tmp_path / "x.npy"))
