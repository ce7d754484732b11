"""Inputs that are one number for many elements, as a bias is for those of a channel: instructions take them as scalars."""

import numpy as np
import pytest

import mxop as mx
from mxop import nd
from mxop._core import core
from mxop._kernels.instruction_sets import has_instruction
from mxop.formula import compile_program, input_, param

BINARY = (
    "add",
    "sub",
    "mul",
    "div",
    "maximum",
    "minimum",
    "power",
    "hypot",
    "greater",
    "not_equal",
    "logical_xor",
    "mod",
)


def whole(b, shape):
    """Return the same numbers as an array of its own."""
    return nd.array(np.broadcast_to(b.asnumpy(), shape).copy(), dtype=b.dtype)


def same(one, other):
    assert one.dtype == other.dtype
    np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8", "int64", "int8"])
@pytest.mark.parametrize("name", BINARY)
def test_rows_have_the_bits_of_whole_arrays(name, dtype):
    rng, op = np.random.default_rng(0), getattr(nd, f"broadcast_{name}")
    for n in (159, 160, 161, 700, 5000):
        shape = (3, 4, n)
        x = nd.array(rng.integers(1, 9, shape), dtype=dtype)
        for part in ((3, 4, 1), (1, 4, 1), (3, 1, 1), (1, 1, 1)):
            b = nd.array(rng.integers(1, 9, part), dtype=dtype)
            same(op(x, b), op(x, whole(b, shape)))
            same(op(b, x), op(whole(b, shape), x))
    b = nd.array(rng.integers(1, 9, (3, 8)), dtype=dtype)[:, ::-2].reshape((3, 4, 1))
    same(op(x, b), op(x, whole(b, shape)))
    same(op(x[:, ::-1], b), op(x[:, ::-1], whole(b, shape)))


def test_formulas_of_rows(level):
    """Fused: with rows of several lengths, numbers of rows alone, requests, results of another type, and in threads."""

    def formula(x, mean, scale, shift, factor):
        y = nd.broadcast_mul(nd.broadcast_sub(x, mean), scale)
        return nd.relu(nd.broadcast_add(y, nd.broadcast_mul(shift, factor)) * 0.5), nd.broadcast_maximum(y, factor)

    rng, compiled = np.random.default_rng(1), mx.graph.compiled(formula)
    for shape in ((2, 5, 300), (8, 16, 3000), (1, 1, 4097)):
        parts = [(1, shape[1], 1), (*shape[:2], 1), (shape[0], 1, 1), (1, 1, shape[2])]
        for dtype in ("float32", "float64"):  # of float16, shift * factor is rounded where it is an array of its own
            given = [nd.array(rng.normal(size=s), dtype=dtype) for s in (shape, *parts)]
            wanted = compiled(given[0], *(whole(b, shape) for b in given[1:]))
            for one, other in zip(compiled(*given), wanted, strict=True):
                same(one, other)


def test_a_number_of_a_row_may_hold_parameters():
    """As a mean does, which is a sum divided by a count that another size changes: once a row, not for each element."""
    x, total, n, eps = input_(0), input_(1), param("n"), param("eps")
    program = compile_program((x - total / n * (eps + 2),), 2, lambda name: has_instruction(name, 0), True, frozenset([1]))
    (step,) = program.steps
    assert step.srcs == (0,) and [str(v) for v in step.scalars] != ["in1[...]"]
    rng = np.random.default_rng(8)
    for dtype in ("float32", "float64"):
        for shape in ((3, 1, 7), (16, 1, 300), (20, 1, 1000)):
            data, sums = (nd.array(rng.normal(size=s), dtype=dtype) for s in (shape, (*shape[:2], 1)))
            out = nd.empty(shape, dtype=dtype)
            values = {"n": 3.0, "eps": 0.1}
            wide = nd.array(np.broadcast_to(sums.asnumpy(), shape).copy(), dtype=dtype)
            found = []
            for second in (sums, wide):
                core.prepare_formula((x - total / n * (eps + 2),), [data, second], [out], [1], values).run()
                found.append(out.asnumpy())
            np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("req", ["write", "add"])
@pytest.mark.parametrize("shape", [(4, 3, 20, 20), (2, 3, 11, 13)])
def test_batch_norm_of_rows(req, shape):
    rng = np.random.default_rng(2)
    args = {n: nd.array(rng.normal(size=s)) for n, s in {"x": shape, "g": (3,), "b": (3,)}.items()}
    aux = {"m": nd.array(rng.normal(size=3)), "v": nd.array(rng.uniform(0.5, 2, 3))}
    symbol = mx.sym.BatchNorm(*map(mx.sym.Variable, "xgbmv"), fix_gamma=False, use_global_stats=True, eps=1e-3)
    grads = {n: nd.ones(a.shape) for n, a in args.items()}
    executor = symbol.bind(mx.cpu(), args, args_grad=grads, grad_req=req, aux_states=aux)
    y = executor.forward(is_train=True)[0].asnumpy()
    head = rng.uniform(-1, 1, shape)
    executor.backward(nd.array(head))
    x, g, b, m, v = (a.asnumpy().astype("f8") for a in (*args.values(), *aux.values()))
    slope = g / np.sqrt(v + 1e-3)
    along = lambda a: a[:, None, None]  # noqa: E731
    np.testing.assert_allclose(y, (x - along(m)) * along(slope) + along(b), rtol=1e-5, atol=1e-5)
    wanted = {"x": head * along(slope), "g": (head * (x - along(m)) / np.sqrt(along(v) + 1e-3)).sum((0, 2, 3)),
              "b": head.sum((0, 2, 3))}  # fmt: skip
    for name, want in wanted.items():
        np.testing.assert_allclose(grads[name].asnumpy(), float(req == "add") + want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n", [161, 203, 1001])
def test_numbers_that_are_drawn_beside_rows_are_the_same(n):
    """A row may begin anywhere, and what is drawn counts elements."""
    b = nd.array(np.arange(7.0).reshape(7, 1))
    symbol = mx.sym.broadcast_add(mx.sym.random.uniform(shape=(7, n)), mx.sym.Variable("b"))
    mx.random.seed(3)
    wanted = nd.random.uniform(shape=(7, n)).asnumpy() + b.asnumpy()
    mx.random.seed(3)
    np.testing.assert_array_equal(symbol.bind(mx.cpu(), {"b": b}).forward()[0].asnumpy(), wanted)


def test_what_is_written_over_is_read_first():
    x = nd.array(np.arange(900.0).reshape(3, 300))
    wanted = x.asnumpy() - x.asnumpy()[:, :1]
    nd.broadcast_sub(x, x[:, :1], out=x)
    np.testing.assert_array_equal(x.asnumpy(), wanted)
