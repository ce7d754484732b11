"""Workloads of large arrays that are no formula: reductions, normalisation, movement, matrices.

Imports `large`, `systems` and `timing`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from large import SIDE, normal
from systems import Prepared, jax, mx, optional, torch
from timing import Workload

nd, sym, autograd = mx.nd, mx.sym, mx.autograd
WHOLE = 4.0 * SIDE**2  # bytes of a matrix


def programs(**given: Any) -> dict[str, Any]:
    """Return programs by how they are written; a name with _out is that with ``out=``."""
    return {k.replace("_", " "): v for k, v in given.items()}


def reduction(name: str, what: str, *, numexpr: str = "", bound: float = 0.9, **ways: Callable) -> Workload:
    """Return the row of a reduction of a matrix."""
    if numexpr:
        ways["numexpr"] = numexpr
    return Workload(
        name, f"{what}, 4096x4096 float32", programs(**ways), normal((SIDE, SIDE)), moved=WHOLE, reads=True, bound=bound
    )


def same(f: Callable) -> dict[str, Callable]:
    """Return one function for systems whose arrays have the methods of NumPy's."""
    return dict.fromkeys(("mxop", "numpy", "torch", "jax"), f)


REDUCTIONS = [
    reduction("r.sum", "sum of all", **same(lambda x: x.sum()), numexpr="sum(x)"),
    reduction("r.sum0", "sum, axis 0", mxop=lambda x: x.sum(axis=0), numpy=lambda x: x.sum(0), torch=lambda x: x.sum(0),
              jax=lambda x: x.sum(0), numexpr="sum(x, 0)"),
    reduction("r.sum1", "sum, axis 1", mxop=lambda x: x.sum(axis=1), numpy=lambda x: x.sum(1), torch=lambda x: x.sum(1),
              jax=lambda x: x.sum(1), numexpr="sum(x, 1)"),
    reduction("r.mean", "mean of all", **same(lambda x: x.mean())),
    reduction("r.max1", "max, axis 1", mxop=lambda x: x.max(axis=1), numpy=lambda x: x.max(1), torch=lambda x: x.amax(1),
              jax=lambda x: x.max(1), numexpr="max(x, 1)"),
    reduction("r.prod1", "prod, axis 1", mxop=lambda x: x.prod(axis=1), numpy=lambda x: x.prod(1), torch=lambda x: x.prod(1),
              jax=lambda x: x.prod(1), numexpr="prod(x, 1)"),
    reduction("r.norm", "L2 norm of all", mxop=nd.norm, numpy=np.linalg.norm, torch=lambda x: torch.linalg.norm(x),
              jax=lambda x: jax.numpy.linalg.norm(x)),
    reduction("r.argmax1", "argmax, axis 1", mxop=lambda x: nd.argmax(x, axis=1), numpy=lambda x: x.argmax(1),
              torch=lambda x: x.argmax(1), jax=lambda x: x.argmax(1)),
]  # fmt: skip


def softmax(x: Any, log: bool = False) -> Any:
    """Evaluate softmax by NumPy."""
    x = x - x.max(-1, keepdims=True)
    e = np.exp(x)
    total = e.sum(-1, keepdims=True)
    return x - np.log(total) if log else e / total


def strip(name: str, what: str, ours: str, **ways: Any) -> Workload:
    """Return the row of softmax or its logarithm."""
    known = {"mxop": getattr(nd, ours), "mxop out": lambda x, o: getattr(nd, ours)(x, out=o), "sym": getattr(sym, ours)}
    return Workload(name, f"{what}, 4096x4096 float32", known | programs(**ways), normal((SIDE, SIDE)), moved=2 * WHOLE)


def layer_norm_arrays() -> list[np.ndarray]:
    """Return data, scale, shift and a head gradient."""
    x, head = normal((SIDE, SIDE), (SIDE, SIDE))()
    return [x, np.ones(SIDE, "f4"), np.zeros(SIDE, "f4"), head]


def layer_norm(x: Any, gamma: Any, beta: Any, head: Any) -> Callable:
    """Return forward and backward of LayerNorm."""
    for v in (x, gamma, beta):
        v.attach_grad()

    def run() -> Any:
        with autograd.record():
            y = nd.LayerNorm(x, gamma, beta, eps=1e-5)
        y.backward(head)
        return [y, x.grad, gamma.grad, beta.grad]

    return run


def layer_norm_torch(x: Any, gamma: Any, beta: Any, head: Any) -> Callable:
    """Return the same in torch."""
    values = [v.requires_grad_() for v in (x, gamma, beta)]

    def run() -> Any:
        y = torch.nn.functional.layer_norm(x, gamma.shape, gamma, beta)
        return [y, *torch.autograd.grad(y, values, head)]

    return run


def layer_norm_jax(x: Any, gamma: Any, beta: Any, head: Any) -> Any:
    """Return the result and the gradients of LayerNorm, by JAX."""

    def forward(x: Any, gamma: Any, beta: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * gamma + beta

    y, backward = jax.vjp(forward, x, gamma, beta)
    return [y, *backward(head)]


def layer_norm_numpy(x: Any, gamma: Any, beta: Any, head: Any) -> Any:
    """Return the same by NumPy, in float64, with the gradient by hand."""
    x = x.astype("f8")
    centred = x - x.mean(-1, keepdims=True)
    scale = 1 / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    normed, g = centred * scale, head * gamma
    slope = scale * (g - g.mean(-1, keepdims=True) - normed * (g * normed).mean(-1, keepdims=True))
    return [normed * gamma + beta, slope, (head * normed).sum(0), head.sum(0, dtype="f8")]


IMAGES = (32, 64, 56, 56)


def batch_norm(x: Any, gamma: Any, beta: Any, mean: Any, var: Any) -> Callable:
    """Return the forward pass of BatchNorm in training."""

    def run() -> Any:
        with autograd.train_mode():
            return nd.BatchNorm(x, gamma, beta, mean, var, fix_gamma=False, eps=1e-5)

    return run


def batch_norm_jax(x: Any, gamma: Any, beta: Any, mean: Any, var: Any) -> Any:
    """Return the same, by JAX."""
    m, v = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
    return (x - m) * jax.lax.rsqrt(v + 1e-5) * gamma.reshape(1, -1, 1, 1) + beta.reshape(1, -1, 1, 1)


def batch_norm_arrays() -> list[np.ndarray]:
    """Return data, scale, shift and moving statistics."""
    return [*normal(IMAGES)(), np.ones(64, "f4"), np.zeros(64, "f4"), np.zeros(64, "f4"), np.ones(64, "f4")]


NORMS = [
    strip("r.softmax", "softmax, last axis", "softmax", numpy=softmax, torch=lambda x: torch.softmax(x, -1),
          torch_out=lambda x, o: torch.softmax(x, -1, out=o), jax=lambda x: jax.nn.softmax(x)),
    strip("r.logsm", "log_softmax, last axis", "log_softmax", numpy=lambda x: softmax(x, True),
          torch=lambda x: torch.log_softmax(x, -1), torch_out=lambda x, o: torch.log_softmax(x, -1, out=o),
          jax=lambda x: jax.nn.log_softmax(x)),
    Workload("r.ln", "LayerNorm forward and backward, 4096x4096 float32",
             {"mxop": Prepared(layer_norm), "torch": Prepared(layer_norm_torch), "jax": layer_norm_jax},
             layer_norm_arrays, moved=5 * WHOLE, bound=0.8, claims=4, reference=layer_norm_numpy),
    Workload("r.bn", "BatchNorm forward, training, 32x64x56x56 float32",
             {"mxop": Prepared(batch_norm), "jax": batch_norm_jax,
              "torch": lambda x, g, b, m, v: torch.nn.functional.batch_norm(x, m, v, g, b, training=True)},
             batch_norm_arrays, moved=8.0 * np.prod(IMAGES), bound=0.8),
]  # fmt: skip


# ---- movement --------------------------------------------------------------------------------------------------------
def indices(count: int, most: int) -> np.ndarray:
    """Return places, as 32-bit integers."""
    return np.random.default_rng(2).integers(0, most, count).astype("int32")


def embedding() -> list[np.ndarray]:
    """Return places and a table."""
    return [indices(100_000, 100_000), *normal((100_000, 128))()]


def embedding_trained(i: Any, table: Any) -> Callable:
    """Return forward and backward of Embedding."""
    table.attach_grad()

    def run() -> Any:
        with autograd.record():
            y = nd.Embedding(i, table, input_dim=100_000, output_dim=128)
        y.backward()
        return y, table.grad

    return run


def embedding_torch(i: Any, table: Any) -> Callable:
    """Return the same in torch."""
    table.requires_grad_()

    def run() -> Any:
        y = torch.nn.functional.embedding(i, table)
        return y, *torch.autograd.grad(y, table, torch.ones_like(y))

    return run


def embedding_jax(i: Any, table: Any) -> Any:
    """Return the same in JAX."""
    y, backward = jax.vjp(lambda t: t[i], table)
    return y, *backward(jax.numpy.ones_like(y))


def embedding_numpy(i: Any, table: Any) -> Any:
    """Return the same by NumPy: a row's gradient is how often it was taken."""
    return table[i], np.repeat(np.bincount(i, minlength=len(table))[:, None], table.shape[1], 1)


def copied(x: Any) -> Any:
    """Return a copy in its own order."""
    return np.ascontiguousarray(x)


MOVES = [
    Workload("d.tr", "transpose, 4096x4096 float32",
             programs(mxop=nd.transpose, mxop_out=lambda x, o: nd.transpose(x, out=o), numpy=lambda x: copied(x.T),
                      torch=lambda x: x.T.contiguous(), jax=lambda x: x.T + 0,
                      torch_out=lambda x, o: x.T.contiguous() if o is None else o.copy_(x.T)),
             normal((SIDE, SIDE)), moved=2 * WHOLE),
    Workload("d.nhwc", "transpose (0, 2, 3, 1), 32x64x56x56 float32",
             programs(mxop=lambda x: nd.transpose(x, axes=(0, 2, 3, 1)), numpy=lambda x: copied(x.transpose(0, 2, 3, 1)),
                      # not compiled: torch 2.13 fails at it, and computes nothing in this process any more
                      torch=Prepared(lambda x: lambda: x.permute(0, 2, 3, 1).contiguous()),
                      jax=lambda x: x.transpose(0, 2, 3, 1),
                      torch_out=lambda x, o: x.permute(0, 2, 3, 1).contiguous() if o is None else
                      o.copy_(x.permute(0, 2, 3, 1))), normal(IMAGES), moved=8.0 * np.prod(IMAGES)),
    Workload("d.concat", "concat of two 4096x2048, dim 1",
             programs(mxop=lambda x, y: nd.concat(x, y, dim=1), numpy=lambda x, y: np.concatenate((x, y), 1),
                      numpy_out=lambda x, y, o: np.concatenate((x, y), 1, out=o), torch=lambda x, y: torch.cat((x, y), 1),
                      torch_out=lambda x, y, o: torch.cat((x, y), 1, out=o), jax=lambda x, y: jax.numpy.concatenate((x, y), 1)),
             normal((SIDE, SIDE // 2), (SIDE, SIDE // 2)), moved=2 * WHOLE),
    Workload("d.emb", "Embedding forward, 1e5x128, 1e5 indices",
             programs(mxop=lambda i, t: nd.Embedding(i, t, input_dim=100_000, output_dim=128), numpy=lambda i, t: t[i],
                      torch=lambda i, t: torch.nn.functional.embedding(i, t), jax=lambda i, t: t[i],
                      numpy_out=lambda i, t, o: np.take(t, i, axis=0, out=o, mode="clip")), embedding, moved=1.024e8),
    Workload("d.embbwd", "Embedding forward and backward, 1e5x128, 1e5 indices",
             {"mxop": Prepared(embedding_trained), "torch": Prepared(embedding_torch),
              "jax": embedding_jax}, embedding, moved=2.048e8, claims=2, reference=embedding_numpy),
    Workload("d.onehot", "one_hot, 1e4 to 1000",
             programs(mxop=lambda i: nd.one_hot(i, depth=1000), numpy=lambda i: np.eye(1000, dtype="f4")[i],
                      torch=lambda i: torch.nn.functional.one_hot(i.long(), 1000).float(),
                      jax=lambda i: jax.nn.one_hot(i, 1000, dtype="float32")), lambda: [indices(10_000, 1000)], moved=4e7),
    Workload("d.sort", "sort, 1e6 float32",
             programs(mxop=nd.sort, numpy=np.sort, torch=lambda x: torch.sort(x)[0], jax=lambda x: jax.numpy.sort(x)),
             normal(1_000_000), moved=8e6, bound=1.05),
    Workload("d.argsort", "argsort, 1e6 float32",
             programs(mxop=nd.argsort, numpy=lambda x: np.argsort(x, kind="stable"), torch=lambda x: torch.argsort(x),
                      jax=lambda x: jax.numpy.argsort(x)),
             lambda: [np.random.default_rng(0).permutation(1_000_000).astype("f4")], moved=8e6, bound=1.05),
    Workload("d.sortrows", "sort, rows of 4096x100 float32",
             programs(mxop=nd.sort, numpy=np.sort, torch=lambda x: torch.sort(x)[0], jax=lambda x: jax.numpy.sort(x)),
             normal((4096, 100)), moved=3.3e6, bound=1.05),
    Workload("d.topk1", "topk, k=10 of 1e6",
             programs(mxop=lambda x: nd.topk(x, k=10, ret_typ="value"), torch=lambda x: torch.topk(x, 10)[0],
                      numpy=lambda x: -np.sort(np.partition(-x, 10)[:10]), jax=lambda x: jax.lax.top_k(x, 10)[0]),
             normal(1_000_000), moved=4e6, reads=True, bound=1.0),
    Workload("d.topk", "topk, k=10 of 1000x10000",
             programs(mxop=lambda x: nd.topk(x, k=10, ret_typ="value"), torch=lambda x: torch.topk(x, 10)[0],
                      numpy=lambda x: -np.sort(np.partition(-x, 10, axis=-1)[:, :10], -1),
                      jax=lambda x: jax.lax.top_k(x, 10)[0]), normal((1000, 10_000)), moved=4e7, reads=True, bound=1.0),
]  # fmt: skip


# ---- matrices --------------------------------------------------------------------------------------------------------
def fully_connected(x: Any, w: Any, b: Any, head: Any) -> Callable:
    """Return forward and backward of a layer."""
    executor = sym.FullyConnected(*map(sym.Variable, "xwb"), num_hidden=1024).bind(
        mx.cpu(),
        {"x": x, "w": w, "b": b},
        args_grad={n: nd.zeros(a.shape) for n, a in zip("xwb", (x, w, b), strict=True)},
    )

    def run() -> Any:
        executor.forward(is_train=True)
        executor.backward(head)
        return [*executor.outputs, *executor.grad_arrays]

    return run


def fully_connected_torch(x: Any, w: Any, b: Any, head: Any) -> Callable:
    """Return the same in torch."""
    values = [v.requires_grad_() for v in (x, w, b)]

    def run() -> Any:
        y = torch.nn.functional.linear(x, w, b)
        return [y.detach(), *torch.autograd.grad(y, values, head)]

    return run


def fully_connected_jax(x: Any, w: Any, b: Any, head: Any) -> Any:
    """Return the same in JAX."""
    y, backward = jax.vjp(lambda x, w, b: x @ w.T + b, x, w, b)
    return [y, *backward(head)]


def fully_connected_numpy(x: Any, w: Any, b: Any, head: Any) -> Any:
    """Return the same by NumPy."""
    return [x @ w.T + b, head @ w, head.T @ x, head.sum(0)]


def product(name: str, rows: int, inner: int, columns: int) -> Workload:
    """Return the row of a product of matrices."""
    ways = programs(mxop=nd.dot, mxop_out=lambda x, y, o: nd.dot(x, y, out=o), numpy=np.dot,
                    numpy_out=lambda x, y, o: np.dot(x, y, out=o), torch=lambda x, y: torch.mm(x, y),
                    torch_out=lambda x, y, o: torch.mm(x, y, out=o), jax=lambda x, y: x @ y)  # fmt: skip
    return Workload(name, f"dot, {rows}x{inner}x{columns} float32", ways, normal((rows, inner), (inner, columns)),
                    flops=2.0 * rows * inner * columns)  # fmt: skip


def eight_bits() -> dict[str, Any]:
    """Return the products of levels of eight bits, in 32."""
    one = nd.ones((1,))
    wide = {"preferred_element_type": "int32"}
    return programs(
        mxop=lambda x, w: nd.contrib.quantized_fully_connected(x, w, one, one, one, one, num_hidden=768, no_bias=True)[0],
        torch=lambda x, w: torch._int_mm(x, w.T), jax=lambda x, w: jax.lax.dot_general(x, w, (((1,), (1,)), ((), ())), **wide),
    )  # fmt: skip


def levels(*shapes: tuple[int, ...]) -> Callable:
    """Return what draws levels of eight bits."""
    return lambda: [np.random.default_rng(k).integers(-128, 128, shape, "int8") for k, shape in enumerate(shapes)]


def sparse() -> Workload:
    """Return the row of a sparse matrix times a dense one."""
    matrix: list[Any] = []

    def arrays() -> list[np.ndarray]:
        import scipy.sparse

        matrix[:] = [scipy.sparse.random(100_000, 1000, 0.01, "csr", dtype="f4", random_state=0)]
        return normal((1000, 64))()

    def ours(dense: Any) -> Callable:
        csr = nd.sparse.csr_matrix(matrix[0])
        return lambda: nd.sparse.dot(csr, dense)

    return Workload("m.csr", "csr dot dense, 1 % of 1e5x1e3 times 1e3x64",
                    {"mxop": Prepared(ours), "scipy": lambda d: matrix[0] @ d}, arrays, moved=3.4e7, bound=1.0)  # fmt: skip


MATRICES = [
    product("m.dot", 1024, 1024, 1024), product("m.dot128x1024", 128, 1024, 1024), product("m.dot512x3072", 512, 3072, 768),
    product("m.dot128", 128, 128, 128),
    Workload("m.bdot", "batch_dot, 64x128x128x128 float32",
             programs(mxop=nd.batch_dot, numpy=np.matmul, numpy_out=lambda x, y, o: np.matmul(x, y, out=o),
                      torch=lambda x, y: torch.bmm(x, y), torch_out=lambda x, y, o: torch.bmm(x, y, out=o),
                      jax=lambda x, y: x @ y), normal((64, 128, 128), (64, 128, 128)), flops=2.0 * 64 * 128**3),
    Workload("m.int8", "quantized_fully_connected 512x3072 to 768, int8", eight_bits(), levels((512, 3072), (768, 3072)),
             bound=1.0),
    Workload("m.fc", "FullyConnected 128x1024 to 1024, forward and backward",
             {"mxop": Prepared(fully_connected), "torch": Prepared(fully_connected_torch), "jax": fully_connected_jax},
             normal((128, 1024), (1024, 1024), (1024,), (128, 1024), scale=0.1), flops=6.0 * 128 * 1024**2, bound=0.8,
             claims=4, reference=fully_connected_numpy),
]  # fmt: skip
if hasattr(nd, "sparse") and hasattr(nd.sparse, "csr_matrix") and optional("scipy") is not None:
    MATRICES.append(sparse())
WORKLOADS = [*REDUCTIONS, *NORMS, *MOVES, *MATRICES]
