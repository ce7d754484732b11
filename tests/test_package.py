"""The package: its stubs, its settings, and the source tree that hands over to the installed copy."""

import ast
import builtins
import os
import re
import shutil
import subprocess
import sys
from doctest import DocTestParser
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import pytest
from processes import fails_python, run_python

import mxop as mx
from mxop.cli import stubs

PACKAGE = Path(mx.__file__).parent
ROOT = Path(__file__).resolve().parent.parent
NAME = "mxop-ndarray"  # of the distribution


# ---- stubs ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", stubs.files())
def test_stubs_are_up_to_date(name):
    text = stubs.files()[name]
    assert (PACKAGE / name).read_text(encoding="utf-8") == text, "install again, or in place run: python -m mxop stubs"
    compile(text, name, "exec")


def test_stubs_show_the_real_signatures():
    text = stubs.files()["ndarray/contrib.pyi"]
    assert "def quadratic(\n    data: NDArray,\n    a: float = 0.0,\n    b: float = 0.0,\n    c: float = 0.0,\n" in text
    text = stubs.files()["ndarray/__init__.pyi"]
    assert "act_type: Literal['relu', 'sigmoid', 'softrelu', 'softsign', 'tanh']" in text
    assert (PACKAGE / "py.typed").exists()


_TYPED = """\
from typing import Any, assert_type

import numpy as np

import mxop as mx
from mxop.op import elementwise


@elementwise
def typed_quadratic(data, *, a: float = 0.0, b: float = 0.0, c: float = 0.0):
    return data * (a * data + b) + c


x = mx.nd.array([1.0, 2.0])
x.attach_grad()
with mx.autograd.record():
    y = mx.nd.contrib.quadratic(x, a=1) + mx.nd.exp(x) * 2 + x.sum(axis=0)
y.backward()
assert_type(y, mx.nd.NDArray)
assert_type(x.grad, mx.nd.NDArray | Any)
assert_type(x == 1, mx.nd.NDArray)
assert_type(mx.nd.concat(x, x, dim=0), mx.nd.NDArray)
assert_type(mx.sym.contrib.quadratic(mx.sym.Variable("x"), a=1.0), mx.Symbol)
values: np.ndarray = y.asnumpy()
typed_quadratic(x, a=1)
assert_type(typed_quadratic(x, 1, out=x), mx.nd.NDArray)
with mx.AttrScope(group="1"), mx.util.np_shape():
    pass
mx.test_utils.assert_almost_equal(x, x)
shared: np.ndarray = np.from_dlpack(x)
for batch in mx.io.NDArrayIter(values, values, 2):
    assert_type(batch.label[0], mx.nd.NDArray | Any)
    assert_type(batch.data[0], mx.nd.NDArray | Any)


class Batches(mx.io.DataIter):
    @property
    def provide_data(self) -> list[mx.io.DataDesc]:
        return [mx.io.DataDesc("data", (2, 3))]


def seen(data: mx.io.DataIter) -> int:
    return sum(batch.data[0].shape[0] - batch.pad for batch in data) + len(data.provide_data) + len(data.provide_label)


seen(Batches())
assert_type(mx.io.NDArrayIter(values).provide_data[0].shape, tuple[int, ...])
assert_type(Batches().provide_data[0].layout, str)
images = mx.io.ImageRecordIter("x.rec", (3, 4, 4), 2)
assert_type(mx.io.ImageDetRecordIter("x.rec", (3, 4, 4), 2).provide_label, list[mx.io.DataDesc])
assert_type(mx.image.imresize(mx.image.imread("x.png"), 2, 2), mx.nd.NDArray)
assert_type(mx.image.detection.CreateDetAugmenter((3, 4, 4)), list[mx.image.DetAugmenter])
assert_type(mx.rnn.LSTMCell(3).params, mx.rnn.RNNParams)
steps, last = mx.rnn.LSTMCell(3).unroll(2, mx.sym.Variable("x"), merge_outputs=True)
mx.sym.Group([mx.sym.reshape(steps, shape=(-1, 3)), *last])
assert_type(mx.nd.random.uniform(0, 1, shape=(2,)), mx.nd.NDArray)
assert_type(mx.nd.random_normal(shape=(2,), ctx=mx.cpu()), mx.nd.NDArray)
mx.recordio.unpack(mx.recordio.MXIndexedRecordIO("x.idx", "x.rec", "r").read_idx(0))
assert_type(mx.sym.random.normal(0, 1, shape=(2,)), mx.Symbol)
net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3)
shapes = dict(zip(net.list_arguments(), net.infer_shape(data=(2, 4))[0], strict=True))
executor = net.simple_bind(mx.cpu(), data=(2, 4))
for parameter, gradient in executor.grad_dict.items():
    mx.nd.sgd_update(executor.arg_dict[parameter], gradient, lr=0.1)
quantized, args, _ = mx.contrib.quantization.quantize_model(mx.sym.Variable("x"), {}, {}, calib_mode="none")
assert_type(args["x"], mx.nd.NDArray)
mask = (x > 0) & ~(x < 1) | True ^ (x == 3)
assert_type(mask, mx.nd.NDArray)
assert_type(x[mask], mx.nd.NDArray)
x[x.std(axis=0) > x.var(ddof=1)] = 0
assert_type(mx.nd.where(mask, x, 0), mx.nd.NDArray)
assert_type(mx.nd.einsum("i,i->", x, x), mx.nd.NDArray)
assert_type(mx.nd.maximum(x, values), mx.nd.NDArray)
assert_type((x + values).any(axis=0), mx.nd.NDArray)
assert_type(~(mx.sym.Variable("x") > 0) & (mx.sym.Variable("y") > 0), mx.Symbol)
memoryview(x)
mx.nd.load("x.params")["x"].asnumpy(), mx.nd.load("x.npy")[0].asnumpy()
model = mx.model.FeedForward(net)
sorted(model.arg_params), model.aux_params["x"].asnumpy()


@mx.operator.register("typed_double")
class DoubleProp(mx.operator.CustomOpProp):
    def __init__(self, by: str = "2"):
        super(DoubleProp, self).__init__(need_top_grad=True)
        self.by = float(by)

    def infer_shape(self, shapes):
        return shapes, [shapes[0]], []

    def create_operator(self, ctx, shapes, dtypes):  # the names of MXNet's documentation
        return mx.operator.CustomOp()


assert_type(DoubleProp().by, float)


@mx.init.register
class Filled(mx.init.Initializer):
    def __init__(self, value: float = 1.0):
        super(Filled, self).__init__(value=value)
        self.value = value

    def _init_weight(self, _, arr):
        arr[:] = self.value


@mx.metric.register
class Counted(mx.metric.EvalMetric):
    def __init__(self, by: float = 1.0):
        super(Counted, self).__init__("counted")
        self.by = by


@mx.optimizer.register
class Stepping(mx.optimizer.Optimizer):
    def __init__(self, step: float = 1.0, **kwargs: Any):
        super(Stepping, self).__init__(**kwargs)
        self.step = step


class Doubled(mx.autograd.Function):
    def forward(self, x):
        return 2 * x

    def backward(self, dy):
        return 2 * dy


assert_type(Filled().value + Counted().by + Stepping(learning_rate=1).step, float)
Doubled()(x).asnumpy()
"""
_WRONG = """
mx.nd.exp("x")
mx.nd.Activation(x, "rleu")
mx.nd.contrib.quadratic(x, a="1")
mx.nd.exp(x, bta=1)
typed_quadratic(x, bta=2)
typed_quadratic(x, a="many")
mx.nd.nosuch(x)
mx.sym.nosuch(mx.sym.Variable("x"))
"""


#: A program whose author annotates everything, and what its results are.
_STRICT = """\
from typing import Any, assert_type

import mxop as mx
import mxop.errors
from mxop.contrib.text.vocab import Vocabulary
from mxop.op import Expr, F, composite, elementwise, reduction
from mxop.optimizer import SGD
from mxop.optimizer.optimizer import Optimizer


@elementwise
def typed_swish(data: Expr, *, beta: float = 1.0) -> Expr:
    return data * F.sigmoid(beta * data)


@elementwise(name="typed_other")
def other(data: Expr) -> Expr:
    return abs(F.where(data > 0, data, 2 * data)) ** 2 + typed_swish(data, beta=2.0)


@reduction("add", name="typed_cubes")
def cubes(data: Expr) -> Expr:
    return data**3


@elementwise
def typed_two(lhs: Expr, rhs: Expr, *, scale: float = 1.0) -> Expr:
    return scale * lhs * rhs


@composite
def typed_double(F: Any, data: Any, *, times: int = 2) -> Any:
    return data * times


@elementwise
def typed_many(*data: Expr) -> Expr:
    return data[0] + data[1]


x = mx.nd.array([-1, 0, 2])
a = mx.sym.Variable("a")
assert_type(typed_swish(x, beta=0.5), mx.nd.NDArray)
assert_type(typed_swish(a), mx.Symbol)
assert_type(typed_two(x, x, scale=2), mx.nd.NDArray)
assert_type(typed_two(a, a, name="two"), mx.Symbol)
assert_type(typed_double(x, times=3), mx.nd.NDArray)
assert_type(typed_many(x, x), mx.nd.NDArray)
assert_type(cubes(x, axis=0), mx.nd.NDArray)
assert_type(a + 1, mx.Symbol)
assert_type(2 * a - a / 3 + a**2, mx.Symbol)
assert_type(-a > 2, mx.Symbol)
assert_type(a.sum(axis=0).exp()[0], mx.Symbol)
assert_type(mx.sym.exp(a), mx.Symbol)
executor = a.simple_bind(mx.cpu(), a=(2, 3))
assert_type(executor, mx.Executor)
assert_type(a.bind(mx.cpu(), {"a": x}), mx.Executor)
assert_type(executor.forward(is_train=True), list[mx.nd.NDArray])
assert_type(executor.outputs, list[mx.nd.NDArray])
assert_type(executor.arg_dict, dict[str, mx.nd.NDArray])
assert_type(executor.grad_dict, dict[str, mx.nd.NDArray | Any])
assert_type(a.eval(a=x), list[mx.nd.NDArray])
assert_type(mx.nd.load("file"), Any)
assert_type(mx.nd.split(x, num_outputs=3), list[mx.nd.NDArray])
assert_type(x.split(num_outputs=1), mx.nd.NDArray)
assert_type(round(x, 1), mx.nd.NDArray)
assert_type(divmod(x, 2), tuple[mx.nd.NDArray, mx.nd.NDArray])
x.attach_grad()
assert_type(x.grad, mx.nd.NDArray | Any)
optimizer: Optimizer = SGD(learning_rate=0.1)
assert_type(mx.optimizer.SGD(), SGD)
assert_type(len(Vocabulary()), int)
problem: mx.MXNetError = mxop.errors.OpValueError("a")
"""
_STRICT_WRONG = """
optimizer.no_such
mxop.errors.NoSuchError
F.sum(typed_swish)
executor.forward()[0].asnumpyy()
mx.Symbol.no_such(a)
F.exp("x")
typed_swish(x, bta=2)
typed_two(x, x, scal=2)
typed_two(x)
typed_double(x, tims=3)
"""


def _examples(page: str) -> str:
    """Return the examples of a page as one program, without those that are errors on purpose."""
    lines = []
    for language, text in re.findall(r"^```(\w*)\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.M | re.S):
        if language == "python":
            lines += text.splitlines()
        elif language == "pycon":
            examples = DocTestParser().get_examples(text)
            lines += [line for example in examples if example.exc_msg is None for line in example.source.splitlines()]
    return "\n".join(lines) + "\n"


def _program(right: str, wrong: str) -> tuple[str, set[int]]:
    """Return a program of two parts, and the lines of the second."""
    first = len(right.splitlines()) + 2
    return right + wrong, set(range(first, first + len(wrong.split("\n")) - 2))


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_types_as_a_user_sees_them(checker, tmp_path):
    if find_spec(checker) is None:
        pytest.skip(f"needs {checker}")
    programs = {
        "user.py": _program(_TYPED, _WRONG),
        "strict.py": _program(_STRICT, _STRICT_WRONG),
        "readme.py": (_examples("README.md"), set()),
        "tutorial.py": (_examples("docs/tutorial.md"), set()),
    }
    for name, (text, _) in programs.items():
        (tmp_path / name).write_text(text)
    runs = {
        "mypy": [["--no-incremental", "--follow-imports=silent", "user.py", "readme.py"],
                 ["--no-incremental", "--follow-imports=silent", "--strict", "strict.py", "tutorial.py"]],
        "pyright": [["--pythonpath", sys.executable, *programs]],
    }[checker]  # fmt: skip
    path = str(PACKAGE.parent)
    env = os.environ | ({} if "site-packages" in path else {"MYPYPATH": path, "PYTHONPATH": path})
    told = ""
    for options in runs:
        done = subprocess.run([sys.executable, "-m", checker, *options], cwd=tmp_path, env=env, capture_output=True,
                              text=True, timeout=600)  # fmt: skip
        told += done.stdout + done.stderr
    for name, (_, wrong) in programs.items():
        lines = re.findall(rf"{name}:(\d+):?(?:\d+)?[ :-]+error", told)
        assert {int(line) for line in lines} == wrong, f"{name}:\n{told}"


def test_stubs_have_docstrings_and_are_valid():
    text = stubs.files()["ndarray/__init__.pyi"]
    definitions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
    missing = [n.name for n in definitions if not ast.get_docstring(n)]
    assert len(definitions) > 200 and missing == []
    relu = next(n for n in definitions if n.name == "relu")
    assert ast.get_docstring(relu) == mx.nd.relu.__doc__
    methods = stubs.files()["_core/core.pyi"]
    assert "Return a copy as a NumPy array." in methods and "keepdims: bool = False" in methods


def test_names_in_stubs_are_defined_there():
    """A checker takes what it does not know for Any, and says so only of files that it is told to check."""
    for page, text in stubs.files().items():
        nodes = list(ast.walk(ast.parse(text)))
        known = {a.asname or a.name for n in nodes if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
        known |= {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        known |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        used = {n.id for n in nodes if isinstance(n, ast.Name)}
        assert used - known - set(dir(builtins)) == set(), page


def test_import_brings_only_what_every_program_needs():
    code = "import sys, mxop; print(*(n for n in sys.modules if n.startswith('mxop.operator.')))"
    assert sorted(run_python(code).split()) == ["mxop.operator.answers", "mxop.operator.custom_op"]
    assert run_python("import mxop as mx; print(mx.operator.kernel, mx.operator.hybrid.kernel)").count("kernel") == 2


# ---- settings -------------------------------------------------------------------------------------------------------------
def test_each_instruction_set_can_be_forced_and_the_best_is_chosen(levels):
    names = [*levels]
    code = "import mxop as mx; from mxop.cli import main; main(['doctor']); print(mx.nd.exp(mx.nd.zeros(100)).sum().item())"
    for forced in names if "MXOP_CPU" in os.environ else [*names, None]:
        told = run_python(code, **({"MXOP_CPU": forced} if forced else {}))
        assert re.search(rf"instruction set +{forced or names[0]}\b", told) and told.endswith("100.0")


def test_instruction_sets_that_are_not_here_are_told_from_those_that_are(levels):
    """README names v4, v3, v2 and base; no machine has all of them."""
    usable = [*levels]
    for name in {"v4", "v3", "v2", "base"} - set(usable):
        told = fails_python("import mxop", MXOP_CPU=name)
        assert f"instruction set '{name}' is not available here; expected one of {', '.join(usable)}" in told


@pytest.mark.parametrize("setting, told", [
    ({"MXOP_CPU": "v9"}, "instruction set 'v9' is not available here; expected one of"),
    ({"MXOP_NUM_THREADS": "many"}, "MXOP_NUM_THREADS='many' is not a positive number"),
    ({"MXOP_NUM_THREADS": "0"}, "MXOP_NUM_THREADS='0' is not a positive number"),
    ({"MXOP_NUM_THREADS": "1_0"}, "MXOP_NUM_THREADS='1_0' is not a positive number"),
    ({"MXOP_POOL_BYTES": "some"}, "MXOP_POOL_BYTES='some'"),
], ids=str)  # fmt: skip
def test_wrong_settings_are_named(setting, told):
    assert told in fails_python("import mxop", **setting)


def test_commands_in_pyproject():
    import tomllib

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["project"]["version"] == mx.__version__
    assert settings["project"]["name"] == NAME
    assert settings["project"]["scripts"]["mxop"] == "mxop.__main__:main"
    versions = re.findall(r"Python :: (3\.\d+)$", "\n".join(settings["project"]["classifiers"]), re.M)
    built = settings["tool"]["cibuildwheel"]["build"].split()
    assert built == [f"cp{version.replace('.', '')}-*" for version in versions]
    assert settings["project"]["requires-python"] == f">={versions[0]}"


def test_a_wheel_has_the_headers_that_are_read_and_no_others():
    """The GPU's text is made of some headers of the CPU, ``mx.get_include()`` is for libraries; the rest is for the build."""
    import tomllib

    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    read = {
        name for path in (ROOT / "mxop" / "_gpu").glob("*.py") for name in re.findall(r'shared\("(\w+\.h)"\)', path.read_text())
    }
    assert {f"include/{name}" for name in read} == set(data["mxop._kernels"]) and len(read) == 4
    assert data["mxop.library"] == ["include/**/*.h"]
    assert not any("pxd" in pattern for patterns in data.values() for pattern in patterns)


def test_the_changelog_begins_with_this_version():
    titles = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert titles[0].split()[0] == mx.__version__


def test_the_command_line_says_its_version():
    done = subprocess.run([sys.executable, "-m", "mxop", "--version"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout == f"{NAME} {mx.__version__}\n", done.stderr


def test_the_name_of_the_distribution_stands_in_one_place():
    """A hint to install ``mxop`` would bring another project's package."""
    found = [p for folder in ("mxop", "docs", "tools", "examples", "asv_bench") for p in (ROOT / folder).rglob("*")]
    for path in [*found, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]:
        if path.suffix in (".py", ".pyx", ".md", ".json"):
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"install .?mxop\b(?!-)|\bmxop\[\w+\]", text), path
            if path.suffix in (".py", ".pyx") and path.name != "distribution.py":
                assert NAME not in text, path


def test_console_script():
    done = subprocess.run([sys.executable, "-m", "mxop", "--help"], cwd=ROOT, capture_output=True, timeout=120)
    assert done.returncode == 0


# ---- numpy's shapes -------------------------------------------------------------------------------------------------------
def test_np_shape_scopes_nest():
    x = mx.nd.ones((2, 3))
    with mx.util.np_shape():
        assert mx.util.is_np_shape() and x.sum().shape == ()
        with mx.util.np_shape(False):
            assert not mx.util.is_np_shape() and x.sum().shape == (1,)
        assert mx.util.is_np_shape()
    assert not mx.util.is_np_shape()
    with pytest.raises(ZeroDivisionError), mx.util.np_shape():
        raise ZeroDivisionError
    assert not mx.util.is_np_shape()


def test_each_thread_has_a_np_shape_of_its_own():
    x, found = mx.nd.ones((2, 3)), []

    def other():
        found.append((mx.util.is_np_shape(), x.sum().shape))
        mx.util.set_np_shape(True)
        found.append((mx.util.is_np_shape(), x.sum().shape))

    for inside in (True, False):
        with mx.util.np_shape(inside):
            thread = Thread(target=other)
            thread.start()
            thread.join()
            assert mx.util.is_np_shape() is inside and x.sum().shape == (() if inside else (1,))
    assert found == [(False, (1,)), (True, ())] * 2


def test_views_under_np_shape_are_kept_apart():
    x = mx.nd.ones((1, 1))
    for inside in (False, True, False):
        with mx.util.np_shape(inside):
            assert mx.nd.squeeze(x).shape == (() if inside else (1,))


def test_use_np_shape_on_functions_and_classes():
    @mx.util.use_np_shape
    class Sums:
        def total(self, x):
            """Sum."""
            return x.sum()

    assert Sums().total(mx.nd.ones(3)).shape == ()
    assert Sums.total.__doc__ == "Sum."
    assert mx.nd.ones(3).sum().shape == (1,)
    with pytest.raises(mx.MXNetError, match="not int"):
        mx.util.use_np_shape(3)
    with pytest.raises(TypeError, match="active='yes'"):
        mx.util.set_np_shape("yes")


# ---- a source tree that was not built in place ------------------------------------------------------------------------------
@pytest.fixture
def source_tree(tmp_path):
    """A copy of the package without its compiled modules."""
    compiled = shutil.ignore_patterns("*.so", "*.pyd", "*.c", "__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "mxop", ignore=compiled)
    return tmp_path


def in_folder(folder, *arguments, path=None):
    """Run Python in a folder, which comes first on its path, as ``python -m`` has it."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    env["PYTHONPATH"] = str(path) if path is not None else ""
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=120)


def test_source_tree_hands_over_to_the_installed_copy(source_tree):
    code = "import mxop, mxop.symbol, mxop.nd; print(mxop.__file__, mxop.symbol.__file__, mxop.__spec__.origin, sep='\\n')"
    done = in_folder(source_tree, "-c", code, path=PACKAGE.parent)
    assert done.returncode == 0, done.stderr
    files = [PACKAGE / "__init__.py", PACKAGE / "symbol" / "__init__.py", PACKAGE / "__init__.py"]
    assert done.stdout.splitlines() == [str(f) for f in files]
    done = in_folder(source_tree, "-m", "mxop", "info", "quadratic", path=PACKAGE.parent)
    assert done.returncode == 0 and "_contrib_quadratic" in done.stdout, done.stderr
    done = in_folder(source_tree, "-m", "mxop", "doctor", path=PACKAGE.parent)
    assert f"{source_tree / 'mxop'} is a source tree that was not built in place" in done.stdout, done.stderr


def test_source_tree_alone_says_what_to_do(source_tree):
    done = in_folder(source_tree, "-S", "-c", "import mxop")  # -S: no site-packages, so no installed copy
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: mxop in ") and last.endswith("python -m pip install .")


def test_other_import_errors_are_not_hidden(source_tree):
    """A compiled module that is there and fails is no missing module."""
    broken = source_tree / "mxop" / "_kernels" / f"interp{EXTENSION_SUFFIXES[0]}"
    broken.write_bytes(b"not a library")
    done = in_folder(source_tree, "-c", "import mxop", path=PACKAGE.parent)
    assert done.returncode == 1 and "interp" in done.stderr and "source tree" not in done.stderr


def test_a_new_process_has_every_operator():
    """Modules are imported late; none of them may bring an operator that a file names before anybody imports it."""
    code = """
import importlib, pkgutil
import mxop as mx
mx.sym.Variable("x")
first = set(mx.op.names(hidden=True))
for module in pkgutil.walk_packages(mx.__path__, "mxop."):
    if not module.name.endswith(("__main__", "quadratic_user", "_installed")):
        importlib.import_module(module.name)
print(sorted(set(mx.op.names(hidden=True)) - first))
"""
    assert run_python(code) == "[]"
