"""The order in which a reduction combines elements follows from shape and axes: a view has the bits of its copy."""

import os
import subprocess
import sys

import numpy as np
import pytest

import mxop as mx
from mxop.op import F, reduction

TYPES = ("float16", "float32", "float64", "bfloat16", "int32")
ITSELF = os.path.abspath(__file__)


@reduction("add", final=lambda value, count: F.sqrt(value / count))
def quadratic_mean_of_views(data):
    return F.square(data)


def norm_over(x, axis, **keep):
    return mx.nd.norm(x, axis=axis[:2], **keep)


SEVERAL = {name: getattr(mx.nd, name) for name in ("sum", "mean", "prod", "nansum", "nanprod", "max", "sum_axis")} | {
    "norm": norm_over, "moments": lambda x, axis: mx.nd.moments(x, axes=axis)[1], "own": quadratic_mean_of_views,
    "logsumexp": lambda x, axis: mx.nd.log(mx.nd.sum(mx.nd.exp(x), axis=axis)),
}  # fmt: skip


def layer_norm(x, axis):
    gamma, beta = mx.nd.ones(x.shape[-1], dtype=x.dtype), mx.nd.zeros(x.shape[-1], dtype=x.dtype)
    return mx.nd.LayerNorm(x, gamma, beta)


ROWS = {
    "softmax": lambda x, axis: mx.nd.softmax(x, axis=axis[0]),
    "log_softmax": lambda x, axis: mx.nd.log_softmax(x, axis=axis[0]),
    "L2Normalization": lambda x, axis: mx.nd.L2Normalization(x),
    "LayerNorm": layer_norm,
}
#: Whose results have the same bits with each instruction set, too.
REPEATED = ("sum", "mean", "prod", "nansum", "nanprod", "max", "norm")
#: Around the sizes at which rows and columns are taken together, cut and shared out.
LENGTHS = (1, 2, 3, 5, 7, 8, 16, 17, 31, 33, 64, 65, 255, 256, 257, 1000, 2049, 4097, 40000)


def drawn_shape(draw, most):
    shape = []
    for _ in range(draw.integers(1, 6)):
        left = max(most // max(int(np.prod(shape)), 1), 1)
        shape.append(int(draw.choice([n for n in LENGTHS if n <= left][-12:])))
    return tuple(int(n) for n in draw.permutation(shape))


def drawn_view(draw, shape):
    """Return a shape and slices of it that give a view of another shape."""
    starts, steps = draw.integers(0, 3, len(shape)), draw.choice([1, 1, 1, 2, 3, -1, -2], len(shape))
    ends = draw.integers(0, 3, len(shape))
    full = [int(a + abs(s) * (n - 1) + 1 + e) for n, a, s, e in zip(shape, starts, steps, ends)]
    slices = []
    for n, a, s in zip(shape, starts, steps):
        first = int(a) if s > 0 else int(a - s * (n - 1))
        last = first + int(s) * n
        slices.append(slice(first, last if last >= 0 else None, int(s)))
    return tuple(full), tuple(slices)


def compared(seed, count, most=200_000):
    """Compare reductions of drawn views with those of their copies; return how many, and a checksum of results."""
    draw, done, total = np.random.default_rng(seed), 0, 0
    while done < count:
        shape = drawn_shape(draw, most)
        full, at = drawn_view(draw, shape)
        if np.prod(full) > 20 * most:
            continue
        dtype = TYPES[draw.integers(len(TYPES))]
        whole = mx.nd.array(draw.uniform(-2, 2, full), dtype="float64").astype(dtype)
        view = whole[at]
        copy = mx.nd.array(view.asnumpy(), dtype=dtype)
        assert view.shape == shape == copy.shape
        axis = tuple(int(a) for a in draw.permutation(len(shape))[: draw.integers(1, len(shape) + 1)])
        for name, f in (SEVERAL | ROWS if dtype != "int32" else {n: SEVERAL[n] for n in ("sum", "prod", "max")}).items():
            if (name == "L2Normalization" and len(shape) < 2) or (dtype == "bfloat16" and name == "L2Normalization"):
                continue
            a, b = (f(x, axis=axis).asnumpy() for x in (view, copy))
            assert a.tobytes() == b.tobytes(), (
                f"{name} of {dtype} {shape}, axes {axis}: a view of {full} at {at} differs from its copy"
            )
            if name in REPEATED:
                total = (total * 31 + int.from_bytes(a.tobytes()[:64], "little")) % (2**61 - 1)
            done += 1
    return done, total


@pytest.mark.parametrize("seed", range(8))
def test_views_have_the_bits_of_their_copies(seed):
    assert compared(seed, 100)[0] >= 100


@pytest.mark.parametrize("shape, axes", [
    ((1000, 2), (1, 0)), ((16, 2, 33, 2, 1), (1, 3)), ((1, 17, 5, 8, 3), (3, 2, 0, 4, 1)), ((17, 2, 7, 7, 16), (2, 4)),
    ((13, 9, 3, 1, 5), (0, 3, 2, 4, 1)), ((4, 5, 3, 100), (0, 2, 3)), ((300, 4, 5), (0,)), ((4, 300, 3, 3), (0, 1)),
    ((3, 40000, 2), (0, 1)), ((2, 3, 100, 50), (0, 2, 3)), ((30, 70, 90), (0,)),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_several_axes_of_a_view(shape, axes, dtype):
    x = np.random.default_rng(1).uniform(-2, 2, shape)
    big = np.zeros([n + 3 for n in shape])
    at = tuple(slice(2, 2 + n) for n in shape)
    big[at] = x
    view, copy = mx.nd.array(big, dtype=dtype)[at], mx.nd.array(x, dtype=dtype)
    for name, f in SEVERAL.items():
        assert f(view, axis=axes).asnumpy().tobytes() == f(copy, axis=axes).asnumpy().tobytes(), name


@pytest.mark.parametrize("shape", [(2, 8), (3, 7), (13, 130), (64, 3), (1000, 8), (3, 5, 7), (2, 3, 4, 65)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_arrays_that_repeat_along_axes(shape, dtype):
    """Rows of one memory were taken for columns, whose sums have room of their own: what was read went beyond it.

    They are no arrays of `broadcast_to`, which may not be written: NumPy 2.0 does not export these.
    """
    for axes in range(1, 1 << len(shape)):
        once = [1 if axes >> k & 1 else n for k, n in enumerate(shape)]
        x = np.arange(1, np.prod(once) + 1).reshape(once).astype(dtype) % 7
        x = np.lib.stride_tricks.as_strided(x, shape, np.broadcast_to(x, shape).strides)
        view = mx.nd.from_dlpack(x)
        for axis in range(len(shape)):
            np.testing.assert_array_equal(mx.nd.sum(view, axis=axis).asnumpy(), x.sum(axis=axis, dtype=dtype))
            np.testing.assert_array_equal(mx.nd.max(view, axis=axis).asnumpy(), x.max(axis=axis))
    mx.context.empty_cache()  # looks at what lies around, with MXOP_DEBUG_MEMORY=1


def test_instruction_sets_and_threads_give_the_same_bits(levels):
    """Each runs in a process of its own: views and copies are compared there, and all results between them."""
    found = set()
    for name in levels:
        for threads in ("1", "2"):
            run = subprocess.run([sys.executable, ITSELF], env=os.environ | {"MXOP_CPU": name, "OMP_NUM_THREADS": threads},
                                 capture_output=True, text=True, check=True)  # fmt: skip
            found.add(run.stdout)
    assert len(found) == 1, found


if __name__ == "__main__":
    print(compared(100, 150, 60_000))
