"""What ``MXOP_DEBUG_MEMORY=1`` finds: memory read before it was written, written beside a block, or written when it is gone.

Each program runs in a process of its own, since the setting is read when the package is imported and a fault ends the process.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import mxop as mx

START = """
import ctypes
import numpy as np
import mxop as mx
def address(x):
    return np.frombuffer(memoryview(x), np.uint8).ctypes.data
"""


def run(program, debug="1"):
    environment = dict(os.environ, MXOP_DEBUG_MEMORY=debug)
    return subprocess.run([sys.executable, "-c", START + program], env=environment, capture_output=True, text=True, timeout=300)


def printed(program, debug="1"):
    done = run(program, debug)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        *[(name, "nan") for name in ("float32", "float64", "float16", "bfloat16")],
        *[("int32", str(0x7F7F7F7F)), ("int64", str(0x7F7F7F7F7F7F7F7F)), ("uint8", "127"), ("int8", "127")],
    ],
)
@pytest.mark.parametrize("size", [1, 3, 100_000])
def test_fresh_arrays_hold_what_is_noticed(dtype, expected, size):
    found = printed(f"for x in mx.nd.empty({size}, dtype={dtype!r}).asnumpy()[[0, -1]]: print(x)")
    assert found == [expected, expected]


@pytest.mark.parametrize("offset", ["-1", "x.size * 4", "x.size * 4 + 40"])
@pytest.mark.parametrize("size", [1, 16, 1000, 2_000_000])
def test_what_is_written_beside_a_block_ends_the_process(size, offset):
    program = f"x = mx.nd.zeros({size})\nctypes.memset(address(x) + {offset}, 0, 1)\nprint('written')\ndel x\nprint('alive')"
    done = run(program)
    assert done.stdout.split() == ["written"] and done.returncode != 0
    assert "guard bytes" in done.stderr and '<string>", line' in done.stderr  # where in the program


def test_what_is_written_into_freed_memory_ends_the_process():
    done = run(
        "x = mx.nd.zeros(100)\nat = address(x)\ndel x\nctypes.memset(at, 0, 1)\nmx.context.empty_cache()\nprint('alive')"
    )
    assert done.stdout == "" and done.returncode != 0 and "that is gone" in done.stderr


def test_freed_memory_is_not_used_again_at_once_and_holds_nothing():
    program = (
        "seen = set()\nfor _ in range(100):\n    x = mx.nd.zeros(1000)\n    at = address(x)\n    seen.add(at)\n    del x\n"
        "print(len(seen), set((ctypes.c_ubyte * 4000).from_address(at)))"
    )
    assert printed(program) == ["100", "{255}"]
    assert printed(program, "0")[0] == "1"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak of a process from Linux's /proc")
def test_freed_memory_is_given_back_in_the_end():
    program = (
        "for _ in range(300): mx.nd.zeros(1 << 20)\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    assert int(printed(program)[0]) >> 10 < 600  # MiB, of 1200 that were made


@pytest.mark.parametrize("call", [
    "mx.nd.take(x, i, axis=1)", "mx.nd.take(x, i, axis=1, mode='wrap')", "mx.nd.take(x.T, i, axis=0)",
    "mx.nd.pick(x, mx.nd.zeros((0,)), axis=1)", "x[:, i]",
])  # fmt: skip
def test_nothing_is_taken_of_nothing(call):
    """Results without elements: of an axis before the one that is indexed, too."""
    program = f"mx.util.set_np_shape(True)\nx, i = mx.nd.zeros((0, 3)), mx.nd.array([0, 1, 2, 2, 1])\nprint(({call}).size)"
    assert printed(program + "\nmx.context.empty_cache()") == ["0"]


def test_a_setting_that_is_no_number_is_refused():
    done = run("", "yes")
    assert done.returncode != 0 and "MXOP_DEBUG_MEMORY='yes' is not a whole number" in done.stderr


# ---- views ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [
        ((5,), (1,), 0),
        ((4,), (1,), 1),
        ((2,), (4,), 0),
        ((4,), (-1,), 2),
        ((1,), (1,), 4),
        ((1,), (1,), -1),
        ((2, 3), (2, 1), 0),
    ],
)
def test_a_view_stays_inside_its_memory(shape, strides, offset):
    x = mx.nd.array([1, 2, 3, 4])
    with pytest.raises(mx.MXNetError, match="reaches beyond the 16 bytes"):
        x._view(shape, strides, offset)


def test_views_may_use_all_of_the_memory():
    x = mx.nd.array([1, 2, 3, 4])
    assert x._view((4,), (-1,), 3).asnumpy().tolist() == [4, 3, 2, 1]
    assert x._view((2, 2), (2, 1), 0).asnumpy().tolist() == [[1, 2], [3, 4]]
    assert x._view((0,), (1,), 4).shape == (0,)
    assert x._view((3, 1), (0, 100), 3).asnumpy().tolist() == [[4], [4], [4]]


def test_views_of_wrapped_memory_know_its_bounds():
    given = np.arange(12.0, dtype="float32").reshape(3, 4)[::-1, 1::2]  # neither dense nor from its lowest address on
    x = mx.nd.from_dlpack(given)
    assert np.array_equal(x[2:0:-1].asnumpy(), given[2:0:-1])
    assert np.array_equal(x[1:].asnumpy(), given[1:])
    with pytest.raises(mx.MXNetError, match="reaches beyond the 44 bytes"):
        x._view((4, 2), x._strides, 0)
