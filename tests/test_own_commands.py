"""Commands on what is the user's own: his operators, and his arrays of any numbers."""

import re

import numpy as np
import pytest
from test_cli import command, refused

import mxop as mx
from mxop.cli import main
from mxop.cli.npy import read_floats
from mxop.cli.own import operator_named

OWN = '''
"""Operators of a user."""

import numpy as np
from mxop.op import F, composite, elementwise


@elementwise
def own_mish(data, *, beta: float = 1.0):
    """Evaluate ``data * tanh(softplus(beta * data))``."""
    return data * F.tanh(F.softplus(beta * data))


@elementwise
def own_hinge(data):
    """Zero below one."""
    return F.where(data > 1, data - 1, 0)


@elementwise
def own_power(data, *, exponent: float):
    """Raise."""
    return F.pow(data, exponent)


@composite
def own_total(F, data):
    """Add up."""
    return F.sum(data)


def plain(x):
    return x
'''
pytestmark = pytest.mark.usefixtures("built_in_quadratic")
NAMES = ["own_hinge", "own_mish", "own_power", "own_total"]


def forget():
    for name in NAMES:
        if mx.op.find(name) is not None:
            mx.op.unregister(name)


@pytest.fixture
def own(tmp_path):
    """A file of operators; the names that importing it registers are taken back."""
    (tmp_path / "my.py").write_text(OWN.strip("\n"), encoding="utf-8")
    yield tmp_path / "my.py"
    forget()


@pytest.mark.parametrize(("data", "became"), [
    (np.array([1, -2, 3]), "int64, which was converted to float32"),
    (np.array([True, False]), "bool, which was converted to float32"),
    (np.array([2**40, 1]), "int64, which was converted to float64"),
    (np.array([1, 250], "u1"), "uint8, which was converted to float32"),
    (np.zeros((0, 2), "i4"), "int32, which was converted to float32"),
])  # fmt: skip
def test_whole_numbers_are_converted_and_it_is_said(tmp_path, capsys, data, became):
    np.save(tmp_path / "x.npy", data)
    found = read_floats(str(tmp_path / "x.npy"))
    assert f"x.npy holds {became}" in capsys.readouterr().out
    assert found.tolist() == data.astype(float).tolist()


@pytest.mark.parametrize("function", ["my.py:own_mish", "my.py:own_hinge", "log_sigmoid", "erf", "sign", "my:own_mish"])
def test_demo_shows_the_users_own_operator_on_the_users_data(own, tmp_path, function):
    np.save(tmp_path / "x.npy", np.linspace(-2, 2, 12, dtype="f").reshape(3, 4))
    done = command("demo", "--function", function, "--input", "x.npy", "--size", "2e6", cwd=tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    name = function.rpartition(":")[2]
    for text in (
        f"mx.nd.{name}([[1, 2], [3, 4]]) = ", "from output to input", "\nf = ", "\nf' = ", "\nf'' = ",
        "the largest difference from NumPy is", "on shape (12,): passed", "__global__ void",
        "NumPy, out=", "Its speed on x.npy: 12 float32", "Everything above agreed",
    ):  # fmt: skip
        assert text in done.stdout, text
    assert ":" not in function or f"def {name}(data" in done.stdout
    assert "too fast" not in done.stdout


@pytest.mark.parametrize("data", [
    np.zeros((0, 3)), np.float64(0.5), np.array([np.nan, np.inf, -1e300, 1.0]), np.array([[1, 0], [0, 1]], bool),
    np.array([1e4, -6e4, 0], "float16"),
], ids=["empty", "scalar", "special", "bool", "half"])  # fmt: skip
@pytest.mark.parametrize("function", ["my.py:own_mish", "log"])
def test_own_operators_on_unusual_data(own, tmp_path, data, function):
    np.save(tmp_path / "x.npy", data)
    done = command("demo", "--function", function, "--input", "x.npy", "--size", "10", cwd=tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stderr == ""


def test_demo_refuses_what_is_no_formula(own, tmp_path, capsys):
    """One line and status 2, whatever is wrong with the name or the file."""
    (tmp_path / "broken.py").write_text("x = 1\ny = 1 / 0\n")
    (tmp_path / "syntax.py").write_text("def f(:\n")
    for function, told in {
        f"{own}:plain": "is no operator (its type is function): decorate a function with @mxop.op.elementwise",
        f"{own}:np": "is no operator (its type is module)",
        f"{own}:own_mihs": "has no 'own_mihs'; did you mean 'own_mish'?",
        f"{own}:own_total": "operator own_total (composite) takes data; ",
        f"{own}:own_power": "has no default for exponent",
        f"{tmp_path / 'missing.py'}:f": "there is no such file",
        f"{tmp_path / 'broken.py'}:f": "broken.py:2, in `y = 1 / 0`",
        f"{tmp_path / 'syntax.py'}:f": "SyntaxError",
        "no_such_module_at_all:f": "No module named",
        "dot": "operator dot (kernel) takes lhs, rhs; ",
    }.items():
        assert told in refused(capsys, "demo", "--function", function, status=2), function
        forget()
    assert "did you mean 'sigmoid'?" in refused(capsys, "demo", "--function", "sigmod")
    assert "dimension" in refused(capsys, "demo", "--size", "1e30", status=2)


def test_a_file_may_have_the_name_of_a_module_that_is_loaded(own, tmp_path, capsys):
    own.rename(tmp_path / "numpy.py")
    assert main(["info", f"{tmp_path / 'numpy.py'}:own_hinge"]) == 0
    import numpy

    assert numpy is np and hasattr(numpy, "linspace")


def test_info_and_ops_see_the_users_operators(own, capsys):
    assert main(["info", f"{own}:own_mish"]) == 0
    told = capsys.readouterr().out
    assert "own_mish  (elementwise)" in told and "tanh(softplus" in told and "beta: float, optional, default=1.0" in told
    forget()
    assert "has no 'other'" in refused(capsys, "info", f"{own}:other", status=2)
    forget()
    assert main(["ops", "--from", str(own)]) == 0
    told = capsys.readouterr().out
    assert re.findall(r"^  (\w+)", told, re.M) == NAMES
    assert "4 operators" in told


def test_names_are_found_without_case(capsys):
    assert main(["info", "convolution"]) == 0
    assert capsys.readouterr().out.startswith("Convolution  (")
    assert main(["ops", "NORM"]) == 0
    told = capsys.readouterr().out
    for name in ("BatchNorm", "GroupNorm", "InstanceNorm", "L2Normalization", "LayerNorm", "norm"):
        assert f"  {name} " in told
    assert main(["ops", "conv*"]) == 0
    assert "  Convolution " in capsys.readouterr().out


def test_info_takes_names_as_ops_lists_and_programs_write_them(capsys):
    assert main(["ops"]) == 0
    listed = re.findall(r"^  ((?:contrib|random|linalg|image)\.\w+) ", capsys.readouterr().out, re.M)
    assert len(listed) > 80 and "contrib.MultiBoxPrior" in listed
    for name in [*listed, "mx.nd.contrib.quadratic", "nd.relu", "mx.sym.RELU", "LinAlg.gemm2"]:
        assert operator_named(name).name.casefold().endswith(name.rpartition(".")[2].casefold()), name


def test_ops_finds_words_of_descriptions_where_no_name_fits(capsys):
    assert main(["ops", "cumulative sum"]) == 0
    told = capsys.readouterr().out
    assert "  cumsum " in told and "1 operators" in told
    assert main(["ops", "Average", "--family", "pooling"]) == 0
    assert "  contrib.AdaptiveAvgPooling2D " in capsys.readouterr().out


@pytest.mark.parametrize("name", ["zeros", "load", "mx.nd.histogram", "NDArray"])
def test_info_says_of_what_is_no_operator_where_help_is(name, capsys):
    short = name.rpartition(".")[2]
    assert f"{short!r} is no operator; in Python, help(mx.nd.{short}) describes it" in refused(capsys, "info", name)


@pytest.mark.parametrize(("name", "meant"), [("Conv", "Convolution"), ("conv", "Convolution"), ("Emb", "Embedding")])
def test_the_beginning_of_a_name_leads_to_it(name, meant, capsys):
    assert f"did you mean '{meant}'?" in refused(capsys, "info", name)


def test_a_file_without_an_operator_is_told_how_to_name_one(own, capsys):
    told = refused(capsys, "demo", "--function", str(own), status=2)
    assert f"{own}:NAME" in told and all(name in told for name in NAMES) and "did you mean" not in told


def test_ops_cuts_no_words(capsys):
    assert main(["ops"]) == 0
    told = capsys.readouterr().out
    summaries = {" ".join(op.doc.strip().split("\n\n")[0].split()) for op in mx.op.operators(hidden=False)}
    cut = re.findall(r"^  \S+ +(?:elementwise|reduction|composite|kernel) +(.*) \.\.\.$", told, re.M)
    assert cut and all(any(s.startswith(f"{text} ") for s in summaries) for text in cut)
