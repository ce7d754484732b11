"""Tracebacks of errors end at the user's line; MXOP_FULL_TRACEBACK=1 shows the frames of mxop."""

import os
import pickle
import subprocess
import sys
import textwrap
import traceback

import numpy as np
import pytest

import mxop as mx
from mxop.op import F, composite, elementwise

HERE = os.path.basename(__file__)


@pytest.fixture(autouse=True)
def own_operators(fresh_names):
    """Operators of the calls below."""

    @elementwise
    def tb_swish(data, *, beta: float = 1.0):
        return data * F.sigmoid(beta * data)

    @composite
    def tb_wrong(F, data):
        return F.dot(data, data, no_such=1)

    yield
    for name in ("tb_swish", "tb_wrong"):
        mx.op.unregister(name)


def bound():
    x = mx.sym.Variable("x")
    return (x + 1).simple_bind(mx.cpu(), x=(2, 3))


def two():
    return mx.sym.Variable("x") + mx.sym.Variable("y")


A, B = np.ones((2, 3), "f"), np.ones(4, "f")
CALLS = {
    "operator": lambda a, b: a + b,
    "reflected": lambda a, b: np.ones(4, "f") - a,
    "in place": lambda a, b: a.__iadd__(b),
    "comparison": lambda a, b: a < b,
    "function": lambda a, b: mx.nd.broadcast_add(a, b),
    "kernel": lambda a, b: mx.nd.dot(a, b),
    "reduction": lambda a, b: mx.nd.sum(a, axis=7),
    "parameter": lambda a, b: mx.nd.sum(a, dim=1),
    "namespace": lambda a, b: mx.nd.linalg.gemm2(a, b),
    "choice": lambda a, b: mx.nd.maximum(a, "x"),
    "method": lambda a, b: a.sum(axis=7),
    "written method": lambda a, b: a.reshape((5, 5)),
    "expand_dims": lambda a, b: a.expand_dims(9),
    "squeeze": lambda a, b: a.squeeze(axis=1),
    "broadcast_to": lambda a, b: a.broadcast_to((7, 7)),
    "a device": lambda a, b: mx.gpu(-3),
    "Context": lambda a, b: mx.Context("tpu"),
    "CudaModule": lambda a, b: mx.rtc.CudaModule("int x;", options="--none"),
    "as_in_context": lambda a, b: a.as_in_context("gpu"),
    "astype": lambda a, b: a.astype("float99"),
    "copyto": lambda a, b: a.copyto(b),
    "full_like": lambda a, b: mx.nd.full_like(3, 1),
    "index": lambda a, b: a[5],
    "assignment": lambda a, b: a.__setitem__(0, b),
    "number": lambda a, b: float(a),
    "creation": lambda a, b: mx.nd.array([[1], [2, 3]]),
    "zeros": lambda a, b: mx.nd.zeros((2, -3)),
    "empty": lambda a, b: mx.nd.empty("x"),
    "arange": lambda a, b: mx.nd.arange("x"),
    "file": lambda a, b: mx.nd.load("no/such/file"),
    "NumPy": lambda a, b: np.add(a, b),
    "missing": lambda a, b: mx.nd.nosuch,
    "missing in mxop": lambda a, b: mx.nosuch,
    "missing method": lambda a, b: mx.sym.Variable("x").nosuch,
    "missing in symbols": lambda a, b: mx.sym.nosuch,
    "own operator": lambda a, b: mx.nd.tb_swish(a, bta=2),
    "own object": lambda a, b: mx.op.get("tb_swish")(a, bta=2),
    "symbol": lambda a, b: mx.sym.sum(mx.sym.Variable("x"), dim=1),
    "symbol's operator": lambda a, b: mx.sym.Variable("x") + "y",
    "symbol's method": lambda a, b: mx.sym.Variable("x").sum(dim=1),
    "creation of a symbol": lambda a, b: mx.sym.Variable(3),
    "inference": lambda a, b: two().infer_shape(x=(2, 3), y=(4,)),
    "bind": lambda a, b: two().simple_bind(mx.cpu(), x=(2, 3), y=(4,)),
    "bind to arrays": lambda a, b: two().bind(mx.cpu(), {"x": a, "y": b}),
    "eval": lambda a, b: two().eval(x=a, y=b),
    "forward": lambda a, b: bound().forward(x=b),
    "forward's name": lambda a, b: bound().forward(z=a),
    "backward of an executor": lambda a, b: bound().backward(b),
    "executor's reshape": lambda a, b: bound().reshape(x=(9, 9)),
    "backward": lambda a, b: a.backward(),
    "gradient": lambda a, b: mx.autograd.grad(a, b),
    "control flow": lambda a, b: mx.nd.contrib.foreach(lambda x, s: (x, s), 1, 2),
    "iterator": lambda a, b: mx.io.NDArrayIter(b, a, 3),
    "iterator of a file": lambda a, b: mx.io.CSVIter(data_csv="nosuch.csv", data_shape=(3,), batch_size=2),
    "iterator of images": lambda a, b: mx.io.ImageRecordIter(path_imgrec="nosuch.rec", data_shape=(3, 8, 8), batch_size=2),
    "derivative of a symbol": lambda a, b: mx.graph.deriv(mx.sym.Variable("x"), mx.sym.Variable("x")),
    "computation": lambda a, b: mx.graph.computation(two(), 3),
    "random numbers": lambda a, b: mx.nd.random.normal("x"),
    "random symbols": lambda a, b: mx.sym.random.gamma("x"),
    "updater": lambda a, b: mx.optimizer.get_updater("sgd"),
    "record": lambda a, b: mx.recordio.unpack("x"),
    "drawing": lambda a, b: mx.viz.svg(3),
    "checks": lambda a, b: mx.test_utils.check_op("nosuch"),
    "metric": lambda a, b: mx.metric.Accuracy().update([a], [b]),
    "model": lambda a, b: mx.model.FeedForward(mx.sym.Variable("data"), num_epoch=1).fit(B, A),
    "checkpoint": lambda a, b: mx.model.load_checkpoint("no/such/file", 1),
    "optimizer": lambda a, b: mx.optimizer.create("adam", lr=1),
    "initializer": lambda a, b: mx.init.create("xavir"),
    "scheduler": lambda a, b: mx.lr_scheduler.FactorScheduler(step=0),
    "scheduler's base": lambda a, b: mx.lr_scheduler.CosineScheduler(max_update=0),
    "picture": lambda a, b: mx.image.imread("no/such.jpg"),
    "picture in memory": lambda a, b: mx.image.imdecode(b"123"),
    "records": lambda a, b: mx.recordio.MXIndexedRecordIO("no/such.idx", "no/such.rec", "r"),
    "library": lambda a, b: mx.library.load("/no/such.so"),
    "summary": lambda a, b: mx.viz.print_summary(3),
    "plot": lambda a, b: mx.viz.plot_network(3),
    "profiler": lambda a, b: mx.profiler.set_config(nosuch=1),
    "quantization": lambda a, b: mx.contrib.quantization.quantize_model(3, {}, {}),
    "definition": lambda a, b: elementwise(3),
    "definition with options": lambda a, b: elementwise(num_outputs=0)(lambda x: x),
}


@pytest.mark.parametrize("what", CALLS)
def test_errors_end_at_the_users_line(what):
    with pytest.raises(mx.MXNetError) as caught:
        CALLS[what](mx.nd.array(A), mx.nd.array(B))
    entries = traceback.extract_tb(caught.value.__traceback__)
    assert [os.path.basename(e.filename) for e in entries] == [HERE] * 2, entries
    assert entries[-1].name == "<lambda>"


def test_own_code_stays_in_the_traceback():
    """The line of a composite that called wrongly is the user's, too."""
    with pytest.raises(mx.MXNetError) as caught:
        mx.nd.tb_wrong(mx.nd.array(A))
    entries = traceback.extract_tb(caught.value.__traceback__)
    assert {os.path.basename(e.filename) for e in entries} == {HERE}
    assert "no_such=1" in entries[-1].line
    assert "in operator tb_wrong, " in str(caught.value)


def test_causes_are_shortened_and_kept():
    with pytest.raises(mx.MXNetError) as caught:
        mx.nd.full((2,), "many")
    cause = caught.value.__cause__ or caught.value.__context__
    assert cause is None or all("mxop" not in e.filename for e in traceback.extract_tb(cause.__traceback__))
    assert isinstance(caught.value, (TypeError, ValueError))


def test_other_errors_keep_the_way_but_no_frames_that_are_not_on_disk():
    with pytest.raises(TypeError) as caught:
        mx.nd.array(A).attach_grad("write", None, 3, 4)
    assert all(os.path.exists(e.filename) for e in traceback.extract_tb(caught.value.__traceback__))


WARNINGS = {
    "ignored parameter": lambda a: mx.nd.sqrt(a, foo=3),
    "ignored parameter of a symbol": lambda a: mx.sym.sqrt(mx.sym.Variable("x"), foo=3),
    "ignored parameter of a method": lambda a: a.tanh(foo=3),
    "plain name": lambda a: mx.init.Xavier()("x_bias", a),
    "replaced rate": lambda a: mx.optimizer.Adam(learning_rate=1.0, lr_scheduler=mx.lr_scheduler.FactorScheduler(2)),
    "replaced rate by name": lambda a: mx.optimizer.create("adam", learning_rate=1.0,
                                                           lr_scheduler=mx.lr_scheduler.FactorScheduler(2)),
    "states in float16": lambda a: mx.optimizer.get_updater(mx.optimizer.Adam())(0, a.astype("float16"), a.astype("float16")),
}  # fmt: skip


@pytest.mark.parametrize("what", WARNINGS)
def test_warnings_name_the_users_line(what):
    with pytest.warns(Warning) as caught:
        WARNINGS[what](mx.nd.array(A))
    assert [w.filename for w in caught] == [__file__], [str(w) for w in caught]


def test_a_missing_file_is_told_once(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("import mxop as mx\nmx.nd.load('nosuch.params')\n", encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120)
    assert len(done.stderr.splitlines()) <= 5, done.stderr
    assert "\nmxop.errors.MissingFileError: nd.load: 'nosuch.params': No such file or directory" in done.stderr
    with pytest.raises(FileNotFoundError) as caught:
        mx.nd.load("nosuch.params")
    assert type(caught.value) is mx.errors.MissingFileError is type(pickle.loads(pickle.dumps(caught.value)))


PROGRAM = """
import mxop as mx
a, b = mx.nd.ones((2, 3)), mx.nd.ones(4)
a + b
"""


def _shown(tmp_path, **settings):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM), encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if k != "MXOP_FULL_TRACEBACK"} | settings
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 1
    return done.stderr


def test_a_wrong_sum_prints_few_lines(tmp_path):
    text = _shown(tmp_path)
    assert len(text.splitlines()) <= 8
    assert "a + b" in text and "do not broadcast" in text


def test_full_tracebacks(tmp_path):
    text = _shown(tmp_path, MXOP_FULL_TRACEBACK="1")
    assert "core.pyx" in text and "infer.py" in text


def test_few_lines_in_ipython():
    pytest.importorskip("IPython")
    code = textwrap.dedent(
        """
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance(colors="NoColor")
        shell.run_cell("import mxop as mx; a, b = mx.nd.ones((2, 3)), mx.nd.ones(4)")
        shell.run_cell("a + b")
        """
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "do not broadcast" in done.stdout
    assert len(done.stdout.splitlines()) <= 20
    assert ".pyx" not in done.stdout and "Could not get source" not in done.stdout
