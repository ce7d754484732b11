"""Names: what is there is listed, what MXNet has and mxop has not yet is told so, and no suggestion misleads."""

import difflib
import importlib
import inspect
import json
import pickle
import re
import runpy
import sys
from functools import partial
from pathlib import Path

import pytest
from processes import fails_python, run_python

import mxop as mx
from mxop.errors import NotYetError, NotYetImportError, OpLookupError, closest
from mxop.support import mxnet_names

ROOT = Path(__file__).resolve().parent.parent
X, S = mx.nd.ones((2, 3)), mx.sym.Variable("s")
NOT_YET = "mxop does not have it yet"


def told(function):
    """Return the message of an error that is an attribute error and MXNet's error."""
    with pytest.raises(mx.MXNetError) as caught:
        function()
    assert isinstance(caught.value, (AttributeError, ImportError))
    return str(caught.value)


# ---- what MXNet has -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("get, path", [
    (lambda: mx.gluon, "mx.gluon"), (lambda: mx.mod, "mx.mod"), (lambda: mx.th, "mx.th"), (lambda: mx.np, "mx.np"),
    (lambda: mx.nd.contrib.dgl_graph_compact, "mx.nd.contrib.dgl_graph_compact"),
    (lambda: mx.sym.contrib.dgl_adjacency, "mx.sym.contrib.dgl_adjacency"),
    (lambda: mx.sym.contrib.dgl_subgraph, "mx.sym.contrib.dgl_subgraph"),
    (lambda: mx.nd.contrib.dgl_adjacency, "mx.nd.contrib.dgl_adjacency"),
    (lambda: mx.io.ImageRecordInt8Iter, "mx.io.ImageRecordInt8Iter"),
    (lambda: mx.util.use_np, "mx.util.use_np"), (lambda: mx.nd.imdecode, "mx.nd.imdecode"),
    (lambda: mx.contrib.tensorboard, "mx.contrib.tensorboard"),
    (lambda: mx.libinfo.find_lib_path, "mx.libinfo.find_lib_path"),
])  # fmt: skip
def test_what_mxnet_has_is_told(get, path):
    assert re.search(rf"MXNet has {re.escape(path)}, {NOT_YET}$", told(get)), told(get)


def test_no_operator_of_mxnet_is_taken_for_another():
    for name in mxnet_names.sections()["operators"]:
        if mx.op.find(name) is None and name not in ("_cvimdecode", "_cvimread", "_set_value"):  # functions
            spaces = (mx.nd._internal, mx.sym._internal) if name.startswith("_") else (mx.nd, mx.sym)
            for get in (mx.op.get, *(partial(getattr, space) for space in spaces)):
                with pytest.raises(NotYetError, match=f"{NOT_YET}$"):
                    get(name)
    assert NOT_YET in told(lambda: mx.op.get("_npi_sin"))


def test_nothing_is_imported_where_python_holds_a_lock_for_all_imports():
    code = (
        "import sys, mxop; there = {*sys.modules}\n"
        "for name in ('gluon', 'symbol.nosuch', 'ndarray.csr_matrix', 'rnn.cell', 'contrib.onnx', 'sym', 'io.MXDataIter'):\n"
        "    for finder in (f for f in sys.meta_path if f.__module__.startswith('mxop.')):\n"
        "        finder.find_spec('mxop.' + name, mxop.__path__)\n"
        "print({*sys.modules} - there)\n"
    )
    assert run_python(code) == "set()"


SPACES = ("contrib", "linalg", "random", "image", "sparse")


@pytest.mark.parametrize("module", ["ndarray", "symbol", *(f"{api}.{space}" for api in ("ndarray", "symbol")
                                                            for space in SPACES)])  # fmt: skip
def test_every_name_of_a_namespace_is_there_or_not_yet(module):
    found = importlib.import_module(f"mxop.{module}")
    missing = [n for n in mxnet_names.listed(f"mxop.{module}") if not hasattr(found, n)]
    assert bool(missing) == (not module.endswith((".random", ".linalg", ".image", ".sparse")))  # which are whole
    for name in missing:
        with pytest.raises(NotYetError, match=f"{NOT_YET}$"):
            getattr(found, name)


@pytest.mark.parametrize("thing", [X, S], ids=["NDArray", "Symbol"])
def test_every_method_is_there_or_not_yet(thing):
    kind = type(thing).__name__
    missing = [n for n in mxnet_names.sections()[f"mx.{kind}"] if not hasattr(thing, n)]
    assert "as_np_ndarray" in missing
    for name in missing:
        assert re.search(rf"'{name}'.*MXNet has .*{NOT_YET}$", told(lambda name=name: getattr(thing, name)))
        assert name not in dir(thing) and not hasattr(type(thing), name)
    of_gpus = "__cuda_array_interface__"  # libraries ask for it to tell arrays on a GPU from others
    assert all(hasattr(thing, name) for name in dir(thing) if name not in ("__abstractmethods__", of_gpus))


def test_a_method_is_there_as_long_as_its_operator_is():
    diag = mx.op.get("diag")
    mx.op.unregister("diag")
    try:
        assert not hasattr(X, "diag") and not hasattr(S, "diag")
        op = mx.op.elementwise(name="diag")(lambda data: data + 1)
        assert X.diag().asnumpy().tolist() == (X + 1).asnumpy().tolist() and "diag" in dir(X)
        assert S.diag().eval(s=X)[0].shape == X.shape and "diag" in dir(S)
        mx.op.unregister(op.name)
    finally:
        mx.op.register(diag)
    assert X.diag().shape == (2,) and S.diag().eval(s=X)[0].shape == (2,)


@pytest.mark.parametrize("line, name", [
    ("import mxop.gluon", "mx.gluon"), ("from mxop import gluon", "mx.gluon"), ("from mxop.gluon import nn", "mx.gluon"),
    ("from mxop.ndarray.contrib import dgl_subgraph", "mx.nd.contrib.dgl_subgraph"),
    ("from mxop.nd.contrib import dgl_subgraph", "mx.nd.contrib.dgl_subgraph"),
    ("from mxop.util import use_np", "mx.util.use_np"),
    ("from mxop.symbol.contrib import dgl_subgraph", "mx.sym.contrib.dgl_subgraph"),
    ("from mxop.io import ImageRecordInt8Iter", "mx.io.ImageRecordInt8Iter"), ("import mxop.mod", "mx.mod"),
])  # fmt: skip
def test_imports_tell_it_too(line, name):
    with pytest.raises(NotYetImportError, match=f"cannot import .*MXNet has {re.escape(name)}, {NOT_YET}$") as caught:
        exec(line, {})
    assert isinstance(caught.value, ModuleNotFoundError) and isinstance(caught.value, mx.MXNetError)


def test_imports_of_what_nobody_has_are_python_s_own():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'mxop.nonsense'"):
        importlib.import_module("mxop.nonsense")
    with pytest.raises(ImportError, match="cannot import name 'nonsense'"):
        exec("from mxop import nonsense", {})
    exec(
        "from mxop.nd import array, contrib; from mxop.util import np_shape; import mxop.nd.sparse, mxop.operator.hybrid",
        {},
    )


def test_the_names_are_read_when_an_error_needs_them():
    code = "import mxop as mx; mx.nd.exp(mx.nd.ones(3)); print(mx.missing.mxnet_names.sections.cache_info().currsize)"
    assert run_python(code) == "0"
    code = "import sys; from mxop import missing; missing.watch_imports(); print(sys.meta_path.count(missing.Finder))"
    assert run_python(code) == "1"


# ---- suggestions ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("get, end", [
    (lambda: mx.nd.contrib.dgl_subgraf, "did you mean 'dgl_subgraph', which MXNet has and mxop does not have yet?"),
    (lambda: mx.nd.softmax(X, dim=1), "did you mean 'axis'?"), (lambda: mx.nd.concat(X, X, axis=0), "did you mean 'dim'?"),
    (lambda: mx.nd.matmull, "did you mean 'matmul'?"), (lambda: mx.sym.matmull, "did you mean 'matmul'?"),
    (lambda: S.summ, "did you mean 'sum'?"), (lambda: mx.nd.aray, "did you mean 'array'?"),
    (lambda: mx.array, "it is mx.nd.array"), (lambda: mx.grah, "did you mean 'graph'?"),
    (lambda: mx.nd.csr_matrix, "it is mx.nd.sparse.csr_matrix"), (lambda: mx.sym.foreach, "it is mx.sym.contrib.foreach"),
    (lambda: mx.nd.contrib.exp, "it is mx.nd.exp"), (lambda: mx.sym.contrib.exp, "it is mx.sym.exp"),
    (lambda: mx.autograd.recrd, "did you mean 'record'?"), (lambda: mx.axes.exq, "did you mean 'exp'?"),
    (lambda: mx.nd._plusscalar, "has no operator '_plusscalar'"), (lambda: mx.nd.linalg.inv, "did you mean 'inverse'?"),
    (lambda: mx.nd.conv2d, "did you mean 'Convolution'?"), (lambda: mx.nd.linear, "did you mean 'FullyConnected'?"),
    (lambda: mx.nd.random.normal(size=3), "did you mean 'shape'?"),
    (lambda: mx.nd.contrib.geo_mean, "has no operator 'geo_mean'"),
    (lambda: mx.nd.std, "it is the method x.std()"), (lambda: mx.sym.std, "it is the method x.std()"),
    (lambda: mx.nd.random.seed, "it is mx.random.seed"), (lambda: mx.sym.random.seed, "it is mx.random.seed"),
    (lambda: mx.nd.image.imread, "it is mx.image.imread"), (lambda: mx.nd.random.permutation, "did you mean 'shuffle'?"),
])  # fmt: skip
def test_suggestions(get, end):
    assert told(get).endswith(end), told(get)


@pytest.mark.parametrize("thing", [
    X, S, mx.nd, mx.sym, mx.nd.random, mx.nd.contrib, mx, mx.op.get("tanh"), mx.nd.sparse.zeros("csr", (2, 2)),
], ids=lambda thing: getattr(thing, "__name__", type(thing).__name__))  # fmt: skip
def test_asking_whether_a_name_is_there_looks_for_no_similar_one(thing, monkeypatch):
    """Programs ask ``hasattr`` what a thing is; to look for similar names took milliseconds."""
    with monkeypatch.context() as patch:
        patch.setattr(difflib, "get_close_matches", lambda *args, **kwargs: pytest.fail("looked"))
        assert not hasattr(thing, "sofmaxx")
        with pytest.raises(AttributeError) as caught:
            thing.sofmaxx  # noqa: B018
    assert "sofmaxx" in str(caught.value) and repr(str(caught.value)) in repr(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_user_s_operator_is_found_where_it_is():
    op = mx.op.elementwise(name="dgl_adjacency")(lambda data: data * 2)
    try:
        end = f"MXNet has mx.nd.contrib.dgl_adjacency, {NOT_YET}; there is mx.nd.dgl_adjacency"
        assert told(lambda: mx.nd.contrib.dgl_adjacency).endswith(end)
    finally:
        mx.op.unregister(op.name)


def test_suggestions_are_public_and_not_what_was_typed():
    public = {n for n in mx.op.names(hidden=False) if not n.startswith("_")}
    for name in sorted(public)[::3]:
        for typed in (name[:-1], name + "s", name[1:]):
            if mx.op.find(typed) is None and not mxnet_names.is_operator(typed):
                for get in (
                    mx.op.get,
                    lambda n: getattr(mx.nd, n),
                    lambda n: getattr(mx.sym, n),
                    lambda n: getattr(S, n),
                ):
                    try:
                        get(typed)
                    except OpLookupError as problem:
                        found = re.findall(r"mean '(\w+)'", str(problem))
                        assert not any(n.startswith("_") or n == typed for n in found), problem
    assert closest("take", ["take"]) == ""


def test_an_array_s_misspelled_method_is_suggested_by_python():
    assert "Did you mean: 'sum'?" in fails_python("import mxop as mx; mx.nd.ones(3).summ")


# ---- what dir shows -------------------------------------------------------------------------------------------------------
PUBLIC = ["autograd", "axes", "attribute", "base", "context", "errors", "executor", "graph", "library", "name", "nd", "op",
          "operator", "records", "sym", "test_utils", "util", "viz", "nd.contrib", "sym.contrib", "sym.op"]  # fmt: skip


@pytest.mark.parametrize("path", ["", *PUBLIC])
def test_what_is_listed_works_and_belongs_there(path):
    module = mx
    for part in filter(None, path.split(".")):
        module = getattr(module, part)
    names = [n for n in dir(module) if not n.startswith("__")]
    assert names and names == sorted(names)
    for name in names:
        assert not name.startswith("_"), name
        value = getattr(module, name)
        home = getattr(value, "__module__", None) or getattr(value, "__name__", "mxop")
        assert home.startswith("mxop") or type(value).__module__.startswith(("mxop", "builtins")), (name, home)
        assert home not in ("typing", "collections.abc", "dataclasses", "importlib"), (name, home)


def test_what_works_is_listed():
    assert {"gluon", "provide", "dtypes"}.isdisjoint(dir(mx))
    assert {"nd", "sym", "autograd", "viz", "cpu", "MXNetError", "AttrScope", "test_utils"} <= set(dir(mx))
    assert {"maximum", "minimum", "pow", "power", "hypot", "contrib", "exp", "Variable", "load"} <= set(dir(mx.sym))
    assert {"array", "exp", "NDArray", "waitall", "contrib", "load"} <= set(dir(mx.nd))
    assert {"core", "tape", "Any", "Callable"}.isdisjoint(dir(mx.autograd))
    for space in (mx.nd, mx.sym):
        assert {"foreach", "while_loop", "cond", "rand_zipfian", "box_nms"} <= set(dir(space.contrib))
        assert {"multinomial", "randn", "shuffle", "uniform"} <= set(dir(space.random))
    for module in (mx.nd, mx.sym):
        public = {n for n in mx.op.names(hidden=False) if not n.startswith("_")}
        assert public <= set(dir(module))


# ---- the tool that writes the names -----------------------------------------------------------------------------------------
def test_tool_writes_names(tmp_path, monkeypatch):
    ops = {
        "ops": [
            {
                "name": "Norm",
                "aliases": ["_contrib_norm"],
                "inputs": ["data", "state"],
                "mutated_inputs": ["state"],
                "python_names": ["nd.Norm", "nd.norm_of", "NDArray.norm"],
            }
        ]
    }
    api = {"modules": {"mxnet": {"cpu": "()"}, "mxnet.io.io": {"Iter": {"members": {}}, "string_types": ""},
                       "mxnet.ndarray.ndarray": {"NDArray": {"members": {"take": "", "__len__": ""}}, "Norm": ""}}}  # fmt: skip
    (tmp_path / "ops.json").write_text(json.dumps(ops))
    (tmp_path / "api.json").write_text(json.dumps(api))
    monkeypatch.setattr(sys, "argv", ["mxnet_names.py", *(str(tmp_path / n) for n in ("ops.json", "api.json", "names.txt"))])
    runpy.run_path(str(ROOT / "tools" / "mxnet_names.py"), run_name="__main__")
    text = (tmp_path / "names.txt").read_text()
    assert "[operators]\nNorm _contrib_norm\n[states]\nNorm=1 _contrib_norm=1\n" in text
    assert "[mx.io]\nIter\n" in text and "[mx.NDArray]\nhandle take writable\n" in text
    assert "[mx.ndarray]\nCachedOp NDArray norm_of np npx" in text


@pytest.mark.parametrize("module", [
    "attribute", "autograd", "callback", "context", "contrib.autograd", "engine", "executor", "initializer", "log", "metric",
    "monitor", "name", "operator", "optimizer", "optimizer.contrib", "profiler", "random", "recordio", "registry", "rnn",
    "runtime", "test_utils", "visualization",
])  # fmt: skip
def test_modules_that_are_whole(module):
    found = importlib.import_module(f"mxop.{module}")
    assert [n for n in mxnet_names.listed(f"mxop.{module}") if not hasattr(found, n)] == []


def test_names_that_programs_import_at_their_top():
    found = {}
    exec("from mxop.autograd import *\nfrom mxop.base import check_call\nfrom mxop.test_utils import use_np", found)
    assert found["NDArray"] is mx.nd.NDArray
    assert found["check_call"](0) is None
    with pytest.raises(mx.MXNetError, match="returned -1"):
        found["check_call"](-1)


@pytest.mark.parametrize(("key", "shape", "side_by_side"), [
    ((slice(0, 2), slice(0, 3)), (4, 3), True), ((slice(1, 2), slice(0, 2)), (4, 3), True),
    ((slice(0, 2), slice(0, 2)), (4, 3), False), ((slice(0, 4, 2), slice(0, 3)), (4, 3), False),
    ((slice(0, 1, 2), slice(0, 3)), (4, 3), True), ((slice(3, None, -1), slice(0, 3)), (4, 3), False),
    ((slice(2, 2), slice(0, 2)), (4, 3), True), ((slice(0, 2), slice(1, 2)), (4, 3), False),
    ((slice(0, 4), slice(1, 2)), (4, 1), True), ((slice(2, 3), slice(1, 2)), (4, 3), True), ((), (), True),
    ((slice(1, 2), slice(1, 3), slice(None)), (2, 4, 5), True), ((slice(None), slice(1, 3), slice(None)), (2, 4, 5), False),
])  # fmt: skip
def test_slices_that_lie_side_by_side(key, shape, side_by_side):
    """The answers are MXNet's."""
    assert mx.nd.NDArray._basic_indexing_slice_is_contiguous(key, shape) is side_by_side


def test_sparse_arrays_are_asked_for_what_they_have():
    dense = mx.nd.array([[1.0, 0, 2]])
    for x in (dense.tostype("csr"), dense.tostype("row_sparse")):
        for name in ("asnump", "tostyp", "attach", "sums", "indice", "softmx", "shap"):
            hint = re.search("did you mean '(\\w+)'(?: or '\\w+')?\\?$", told(lambda x=x, name=name: getattr(x, name)))
            assert hint and hasattr(x, hint[1]), (name, told(lambda x=x, name=name: getattr(x, name)))
        assert told(lambda x=x: x.split_v2).endswith("a dense array has it: x.tostype('default').split_v2")
        assert "did you mean" not in told(lambda x=x: x.quite_another_thing)


def test_operators_say_what_they_are():
    from mxop.op import F, composite, elementwise, kernel

    @elementwise
    def test_names_plain(data, *, scale: float = 2.0):
        return data * scale

    @elementwise
    def test_names_told(data):
        """Double the data."""
        return F.square(data)

    @kernel
    def test_names_kernel(data):
        """A kernel."""

    for op in (test_names_plain, test_names_told, test_names_kernel):
        assert op.__doc__ == getattr(mx.nd, op.name).__doc__
        assert inspect.signature(op) == inspect.signature(getattr(mx.nd, op.name))
    assert test_names_told.__doc__.startswith("Double the data.") and "scale : float" in test_names_plain.__doc__
    assert type(test_names_told).__doc__.startswith("An operator made of a scalar formula.")
    with pytest.raises(AttributeError, match=r"operator test_names_kernel: .*did you mean 'shape'"):
        test_names_kernel.shap  # noqa: B018
    assert not hasattr(test_names_kernel, "native")

    @composite
    def test_names_detached(F, data):
        return data * data.detach()

    x = mx.nd.array([3.0])
    x.attach_grad()
    with mx.autograd.record():
        y = test_names_detached(x)
    y.backward()
    executor = mx.sym.test_names_detached(mx.sym.Variable("data")).bind(
        mx.cpu(), {"data": x}, args_grad={"data": mx.nd.zeros(1)}
    )
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones(1))
    assert x.grad.item() == executor.grad_arrays[0].item() == 3

    @composite
    def test_names_host(F, data):
        return data * data.asnumpy()

    with pytest.raises(mx.errors.OpLookupError, match=r"\.asnumpy is for arrays only.*operators of F"):
        mx.sym.test_names_host(mx.sym.Variable("data")).eval(data=x)
    for op in (test_names_plain, test_names_told, test_names_kernel, test_names_detached, test_names_host):
        mx.op.unregister(op.name)
