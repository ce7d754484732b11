"""Damaged and hostile files given to all readers, see :mod:`damaged`: MXNetError comes out, and little memory is taken."""

import json
import os
import subprocess
import sys

import pytest
from processes import ROOT, python

HERE = os.path.dirname(os.path.abspath(__file__))
#: Bytes that took up to 8 GiB, and that ended the process.
BOMBS = {
    "BYTEARRAY8": b"\x80\x05\x96" + (1 << 30).to_bytes(8, "little") + b"a.",
    "BINBYTES8": b"\x80\x04\x8e" + (1 << 30).to_bytes(8, "little") + b"a.",
    "BINBYTES": b"\x80\x03B" + (1 << 30).to_bytes(4, "little") + b"a.",
    "LONG4": b"\x80\x02\x8b" + (1 << 30).to_bytes(4, "little") + b"a.",
    "LONG_BINPUT": b"\x80\x02K\x01r" + (1 << 27).to_bytes(4, "little") + b".",
    "PUT": b"}I1\np134217728\n.",
    "FRAME": b"\x80\x04\x95" + (1 << 30).to_bytes(8, "little") + b".",
    "bytearray of a size": b"cbuiltins\nbytearray\n(I134217728\ntR.",
    "bytearrays of one text": b"}(cbuiltins\nbytearray\nq\x00X\0\0\x10\0" + b"a" * (1 << 20) + b"q\x01"
                              + b"h\0h\1X\6\0\0\0latin1\x86R" * 4001 + b"u.",
    "arrays of one record": b"}(" + b"K\0cmxnet.ndarray\nNDArray\n)R}X\6\0\0\0handleC\3abcsb" * 1000 + b"u.",
    "tuples that double": b"\x80\x02)" + b"q\0h\0\x86" * 100 + b".",
    "tuples of a text": b"}K\0X\0\0\x10\0" + b"a" * (1 << 20) + b"q\0(" + b"h\0" * 100_000 + b"ts.",
    "a dict in itself": b"}q\0K\0h\0s.",
    "dtype of datetimes": b"cnumpy\ndtype\n(S'M8[s]'\nI0\nI1\ntR(I3\nS'<'\nNNNI-1\nI-1\nI0\ntb.",
    "names that are numbers": b"cnumpy\ndtype\n(S'V8'\nI0\nI1\ntR(I3\nS'|'\nN(I16\nt}I8\nI1\nI0\ntb.",
    "a function": b"cos\nsystem\n(S'echo called'\ntR.", "a class": b"cbuiltins\nobject\n.",
    "keys that collide": b"}(" + b"".join(b"\x8a\x0a" + (k * (2**61 - 1)).to_bytes(10, "little") + b"N" for k in range(50_000))
                         + b"u.",
}  # fmt: skip
SET_STATES = """
import resource, sys, mxop as mx
update, content = mx.optimizer.get_updater(mx.optimizer.create("adam")), sys.stdin.buffer.read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    update.set_states(content)
except mx.MXNetError:
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_few_bytes_of_states_take_little(bomb):
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", SET_STATES], input=BOMBS[bomb], capture_output=True,
                          timeout=120, env={**os.environ, "PYTHONPATH": ROOT})  # fmt: skip
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert int(done.stdout) < 100  # MiB


def damaged(seed, count, timeout):
    code = f"import sys; sys.path.insert(0, {HERE!r}); import damaged; sys.exit(bool(damaged.main({seed}, {count})))"
    done = python(code, timeout=timeout, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    tallies = json.loads(done.stdout.splitlines()[-1])
    assert len(tallies) == 26 and all(sum(t.values()) == count and not t["failed"] for t in tallies.values())
    assert all(t["refused"] > count // 10 for t in tallies.values()), tallies  # what nothing refuses tests nothing
    return tallies


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is Linux's")
def test_damaged_files():
    damaged(1, 60, 300)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is Linux's")
def test_many_damaged_files():
    for seed in (2, 3):
        print(damaged(seed, 4000, 3000))
