"""What kernels of the hybrid language become: texts, threads, SIMD instructions; and what there is without numba."""

import gc
import linecache
import os
import sys
import textwrap
import threading

import numpy as np
import pytest
from hybrid_kernels import agree, copied, from_text, matmul, numbers, softmax
from processes import run_python

import mxop as mx
from mxop import dtypes
from mxop.operator.hybrid import Hybrid
from mxop.operator.hybrid.translate import Translator

numba = pytest.importorskip("numba")


def translated(function, codes, ranks):
    return Translator(Hybrid(function).compiled(codes, ranks, ()).types).text


def test_parallel_becomes_prange_and_reduce_a_register():
    text = translated(matmul, (0, 0), (2, 2))
    assert text.count("_mx_prange(") == 1
    inner = text[text.index("for k in") :]
    assert "c[" not in inner.splitlines()[1]  # accumulates in a variable
    assert inner.splitlines()[2].strip().startswith("c[i, j] =")


def test_inner_parallel_loops_are_loops(tmp_path):
    f = from_text(
        "def f(x):\n    y = output_tensor(x.shape, x.dtype)\n    for i in parallel(x.shape[0]):\n"
        "        for j in parallel(1, x.shape[1], 2):\n            y[i, j] = x[i, j]\n    return y\n",
        tmp_path,
    )
    assert translated(f, (0,), (2,)).count("_mx_prange") == 1
    agree(f, numbers((3, 6), "float32"))


@pytest.mark.parametrize("bounds", ["n", "1, n", "1, n, 2", "n - 1, -1, -1", "0", "3, 1"])
@pytest.mark.parametrize("word", ["parallel", "serial", "vectorize"])
def test_bounds_of_loops(bounds, word, tmp_path):
    f = from_text(
        f"def f(x):\n    y = output_tensor(x.shape, x.dtype)\n    n = x.shape[0]\n    for i in {word}({bounds}):\n"
        "        y[i] = x[i] + i\n    return y\n",
        tmp_path,
    )
    agree(f, numbers((7,), "float32"))


def test_threads_run_at_once(tmp_path, monkeypatch):
    """A parallel loop is one of numba's parallel regions; one thread takes the plain form."""
    monkeypatch.setenv("MXOP_CACHE_DIR", str(tmp_path))  # what is found on disk cannot be looked into
    before = mx.context.get_num_threads()
    program = Hybrid(matmul)
    a = numbers((8, 8), "float32")
    try:
        for threads in (1, 2):
            mx.context.set_num_threads(threads)
            out, known = np.empty((8, 8), "float32"), program.known([(8, 8)] * 2, [dtypes.FLOAT32] * 2, ())
            program.compute(known, [a, a], [out])
            np.testing.assert_allclose(out, a @ a, rtol=1e-5)
    finally:
        mx.context.set_num_threads(before)
    one = program.compiled([0, 0], [2, 2], ())
    assert set(one.forms) == {(False, False, ()), (True, False, ())}
    function = one.form(True, False)
    assert function.get_metadata(function.signatures[0])["parfor_diagnostics"].count_parfors() == 1


def test_vectorize_uses_simd(tmp_path, monkeypatch):
    monkeypatch.setenv("MXOP_CACHE_DIR", str(tmp_path / "cache"))
    f = from_text(
        "def f(x, z):\n    y = output_tensor(x.shape, x.dtype)\n    for i in range(x.shape[0]):\n"
        "        for j in vectorize(x.shape[1]):\n            y[i, j] = x[i, j] * z[i, j] + x[i, j]\n    return y\n",
        tmp_path,
    )
    program = Hybrid(f)
    x = numbers((4, 64), "float32")
    program.compute(program.known([x.shape] * 2, [dtypes.FLOAT32] * 2, ()), [x, x], [np.empty_like(x)])
    one = program.compiled([0, 0], [2, 2], ())
    code = "".join(one.form(False, False).inspect_asm().values())
    if "xmm" in code:
        assert "mulps" in code


def test_many_threads_call_at_once():
    """The first calls too, which compile."""
    custom, problems = mx.operator.Custom(softmax), []
    x = mx.nd.array(numbers((16, 8), "float32"))
    wanted = mx.operator.Custom(softmax)(x).asnumpy()

    def work():
        for _ in range(20):
            if not (custom(x).asnumpy() == wanted).all():
                problems.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_a_fork(tmp_path):
    """Its text is in a file, where that of a kernel can be read."""
    path = tmp_path / "program.py"
    path.write_text(
        textwrap.dedent("""
        import os
        import mxop as mx

        @mx.operator.kernel
        def f(x):
            y = output_tensor(x.shape, x.dtype)
            for i in parallel(x.shape[0]):
                y[i] = x[i] * 2
            return y

        custom = mx.operator.Custom(f)
        assert custom(mx.nd.ones(1000)).sum().asscalar() == 2000
        child = os.fork()
        if child == 0:
            os._exit(0 if custom(mx.nd.ones(1000)).sum().asscalar() == 2000 else 1)
        assert os.waitpid(child, 0)[1] == 0
    """)
    )
    run_python(f"import runpy; runpy.run_path({str(path)!r})", timeout=300)


# ---- without numba --------------------------------------------------------------------------------------------------------
def test_without_numba(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    custom = mx.operator.Custom(copied)
    with pytest.raises(mx.errors.DeviceError, match=r'pip install "mxop-ndarray\[hybrid\]".*MXOP_HYBRID=python'):
        custom(mx.nd.ones((2, 2)))
    monkeypatch.setenv("MXOP_HYBRID", "python")
    assert custom(mx.nd.ones((2, 2))).asnumpy().sum() == 4
    monkeypatch.delenv("MXOP_HYBRID")
    plain = mx.operator.Custom(copied, func_type="pyfunc")
    assert plain(mx.nd.ones((2, 2))).asnumpy().sum() == 4


def test_texts_of_kernels_go_with_them():
    function = Hybrid(copied).compiled([dtypes.FLOAT32], [1], ()).as_python
    file = function.__code__.co_filename
    assert "def copied_kernel(" in linecache.getline(file, 1)
    del function
    gc.collect()
    assert file not in linecache.cache
