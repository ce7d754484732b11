"""Programs written for MXNet: ``import mxnet`` means mxop, and what they import is where they look for it."""

import sys
from pathlib import Path
from subprocess import run

import pytest
from processes import ROOT, fails_python, run_python

import mxop as mx

STATES = Path(__file__).parent / "data" / "states.json"
PICKLED = """
import base64, json, pickle
import mxop
mxop.install_as_mxnet()
cases = json.load(open(states))["cases"]
for case in ("adam", "adam row_sparse"):
    (w, _), _ = pickle.loads(base64.b64decode(cases[case][0][-1])).values()
    print(type(w).__name__, w.shape, w.asnumpy().round(3).tolist())
"""


def test_arrays_that_mxnet_has_pickled():
    """Python's unpickler makes ``NDArray(None)`` and sets its state."""
    dense, sparse = run_python(f"states = {str(STATES)!r}" + PICKLED).splitlines()
    assert dense.startswith("NDArray (3, 2) [[") and sparse.startswith("RowSparseNDArray (3, 2) [[")
    assert dense.partition("[")[2] == sparse.partition("[")[2]


PICKLED_OTHERS = r"""
import pickle
import mxop
mxop.install_as_mxnet()
json = (2 * mxop.sym.Variable("x", lr_mult=3)).tojson().encode()
symbol = b"\x80\x02cmxnet.symbol.symbol\nSymbol\nN\x85R}X\x06\0\0\0handleX%ssb." % (len(json).to_bytes(4, "little") + json)
context = b"\x80\x02cmxnet.context\nContext\nq\0)\x81}(X\r\0\0\0device_typeidK\x02X\t\0\0\0device_idK\x01"
context += b"X\x08\0\0\0_old_ctx%sub."
before = b"h\0)\x81}(X\r\0\0\0device_typeidK\x01X\t\0\0\0device_idK\0X\x08\0\0\0_old_ctxNub"
net = pickle.loads(symbol)
print(net.list_arguments(), net.attr_dict()["x"]["__lr_mult__"], net.eval(x=mxop.nd.ones(2))[0].tolist())
for state in (b"N", before):  # of a context that was the default of nobody, and of one that was
    device = pickle.loads(context % state)
    print(device, device == mxop.gpu(1), pickle.loads(pickle.dumps(device)))
with pickle.loads(context.replace(b"K\x02", b"K\x01") % before):
    print(mxop.nd.ones(1).context)
for damaged in (symbol.replace(b"handle", b"hundle"), context.replace(b"K\x02", b"K\x09") % b"N"):
    try:
        pickle.loads(damaged)
    except mxop.MXNetError as problem:
        print(problem)
"""


def test_symbols_and_contexts_that_mxnet_has_pickled():
    """Python's unpickler makes ``Symbol(None)``, or a context without calling its class, and sets the state."""
    symbol, *devices, inside, no_symbol, no_context = run_python(PICKLED_OTHERS).splitlines()
    assert symbol == "['x'] 3 [2.0, 2.0]"
    assert devices == ["gpu(1) True gpu(1)"] * 2 and inside == "cpu(1)"
    assert "handle" in no_symbol and "9" in no_context


IMPORTS = """
import mxnet as mx
import mxnet
import mxnet.ndarray as F
from mxnet import nd, sym, autograd, init, optimizer, metric, io, lr_scheduler, callback, model, context, random, symbol
from mxnet.base import c_array, c_str, classproperty, mx_float, mx_uint
from mxnet.base import MXNetError, _as_list, _Null, data_dir, integer_types, mx_real_t, numeric_types, py_str, string_types
from mxnet.base import NotImplementedForSymbol, NotSupportedForSparseNDArray
from mxnet.context import Context, cpu, current_context, gpu, num_gpus
from mxnet.initializer import InitDesc, Initializer, Xavier
from mxnet.io import DataBatch, DataDesc, DataIter, NDArrayIter
from mxnet.io.io import PrefetchingIter, ResizeIter
from mxnet.lr_scheduler import FactorScheduler, LRScheduler
from mxnet.metric import Accuracy, EvalMetric, check_label_shapes
from mxnet.model import BatchEndParam, load_checkpoint, load_params, save_checkpoint
from mxnet.ndarray import NDArray, array, zeros, _DTYPE_MX_TO_NP, _GRAD_REQ_MAP
from mxnet.ndarray.contrib import quadratic
from mxnet.ndarray.ndarray import NDArray as Same, waitall, ones, _DTYPE_NP_TO_MX
from mxnet.ndarray.random import uniform
from mxnet.ndarray.utils import load, save
from mxnet.operator import CustomOp, CustomOpProp, NDArrayOp, NumpyOp, PythonOp, register
from mxnet.optimizer import SGD, Adam, Optimizer, Updater, get_updater
from mxnet.optimizer.contrib import GroupAdaGrad
from mxnet.optimizer.optimizer import Optimizer as SameOptimizer
from mxnet.random import seed
from mxnet.registry import get_alias_func, get_create_func, get_register_func
from mxnet.symbol.symbol import Symbol, Variable, zeros as symbol_zeros
from mxnet.test_utils import assert_almost_equal, check_numeric_gradient, default_context
from mxnet.util import is_np_array, is_np_shape, np_shape, set_module
from mxnet.contrib import autograd as old, text
from mxnet.contrib.io import DataLoaderIter
from mxnet.contrib.text.embedding import CustomEmbedding
from mxnet.contrib.text.vocab import Vocabulary
from mxnet.executor_manager import DataParallelExecutorManager, _check_arguments, _load_data, _load_label, _split_input_slice
from mxnet.metric import numeric_types as numbers, string_types as strings
from mxnet.misc import FactorScheduler as FirstScheduler
from mxnet import error
from mxnet.contrib.amp import amp
from mxnet.image.image import _get_interp_method
from mxnet.ndarray import _DTYPE_MX_TO_NP, _GRAD_REQ_MAP
import mxnet.contrib.ndarray, mxnet.engine, mxnet.runtime, mxnet.log, mxnet.libinfo, mxnet.attribute, mxnet.name
import mxop
assert mx is mxop and mxnet.nd is mxop.nd is F and Same is NDArray is mxop.nd.NDArray and SameOptimizer is Optimizer
assert mx.ndarray.ndarray.NDArray is NDArray and mxnet.__spec__.name == "mxop"
assert amp.convert_symbol is mx.contrib.amp.convert_symbol and amp is mx.contrib.amp.amp and amp._amp_initialized is False
assert [_get_interp_method(9, (4, 6, *new)) for new in ((8, 9), (2, 3), (8, 3))] == [2, 3, 1]
assert _DTYPE_MX_TO_NP[0] is mx_real_t and _GRAD_REQ_MAP["add"] == 3
assert [issubclass(kind, io.MXDataIter) for kind in (io.CSVIter, io.ImageRecordIter, NDArrayIter)] == [True, True, False]
"""


def test_imports_of_mxnet_are_mxop():
    run_python(f"import mxop; mxop.install_as_mxnet(); mxop.install_as_mxnet()\n{IMPORTS}")


def test_what_is_not_there_is_told():
    code = "import mxop; mxop.install_as_mxnet(); "
    assert "MXNet has mx.gluon, mxop does not have it yet" in fails_python(code + "from mxnet import gluon")
    assert "MXNet has mx.gluon, mxop does not have it yet" in fails_python(code + "from mxnet.gluon import nn")
    assert "No module named 'mxnet.nonsense'" in fails_python(code + "import mxnet.nonsense")


def test_the_real_mxnet_is_not_mixed_in(monkeypatch):
    monkeypatch.setitem(sys.modules, "mxnet", pytest)
    with pytest.raises(mx.MXNetError, match="mxnet is imported already"):
        mx.install_as_mxnet()


def test_run(tmp_path):
    (tmp_path / "beside.py").write_text("value = 7\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, mxnet as mx, beside\nfrom mxnet import nd\n"
        "print(__name__, sys.argv[1:], nd.ones((2,)).sum().asscalar(), beside.value)\n"
        "if '--fail' in sys.argv: nd.exp(nd.ones(2), 3)\n"
    )
    command = [sys.executable, "-m", "mxop", "run", str(script)]
    done = run([*command, "--lr", "0.1"], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "__main__ ['--lr', '0.1'] 2.0 7\n", done.stderr
    failed = run([*command, "--fail"], cwd=ROOT, capture_output=True, text=True)
    assert failed.returncode == 1 and failed.stdout.startswith("__main__")
    assert [line.split(",")[0] for line in failed.stderr.splitlines() if line.startswith("  File")] == [f'  File "{script}"']
    assert ", line 4, in <module>" in failed.stderr
    missing = run([*command[:-1], "there/is/none.py"], cwd=ROOT, capture_output=True, text=True)
    assert (missing.returncode, missing.stderr) == (2, "mxop run: 'there/is/none.py': no such file\n")


def test_new_modules_are_not_imported_with_mxop():
    code = "import sys, mxop; print([m for m in sys.modules if m.startswith(('mxop.mxnet', 'mxnet'))])"
    assert run_python(code) == "[]"
