"""Recurrent layers and loops: steps, batches and states of any size; sequences of several lengths; bodies with views."""

import numpy as np

from . import reference as r
from .drawing import Case, operator
from .numpy_space import Numpy
from .reference import einsum, joined, sigmoid, stacked, tanh, value
from .views import run, steps, types

GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}
EVERYWHERE = ("eager", "bind", "bind", "compiled", "eval")


def _step(mode, gates, hidden, h, c):
    """Return the states of a batch after one step; `gates` are those of the input, `hidden` those of the state."""
    if mode == "gru":
        n = hidden.shape[1] // 3
        reset, update = sigmoid(gates[:, :n] + hidden[:, :n]), sigmoid(gates[:, n : 2 * n] + hidden[:, n : 2 * n])
        new = tanh(gates[:, 2 * n :] + reset * hidden[:, 2 * n :])
        return (1.0 - update) * new + update * h, c
    total = gates + hidden
    if mode != "lstm":
        return (tanh if mode == "rnn_tanh" else r.relu)(total), c
    n = total.shape[1] // 4
    i, f, g, o = (total[:, k * n : (k + 1) * n] for k in range(4))
    c = sigmoid(f) * c + sigmoid(i) * tanh(g)
    return sigmoid(o) * tanh(c), c


def rnn(draw):
    mode, layers, ways = draw.pick(list(GATES)), draw.pick([1, 1, 2, 3]), draw.pick([1, 1, 2])
    length, batch, columns, size = draw.integer(1, 9), draw.size(20), draw.size(70), draw.size(70)
    lengths = draw.flag(0.25)
    outputs, gates = draw.flag(), GATES[mode]
    shapes, at = [], [0]
    for layer in range(layers):
        for _ in range(ways):
            shapes += [(gates * size, columns if layer == 0 else ways * size), (gates * size, size)]
    shapes += [(gates * size,)] * (2 * layers * ways)
    at = np.cumsum([0, *(int(np.prod(s)) for s in shapes)])

    def recurrent(x, vector, state, *more):
        parts = [vector[at[k] : at[k + 1]].reshape(s) for k, s in enumerate(shapes)]
        ends = more[-1].astype(int) if lengths else np.full(batch, length)
        h_last, c_last = [], []
        for layer in range(layers):
            found = []
            for way in range(ways):
                k = layer * ways + way
                w, u = parts[2 * k : 2 * k + 2]
                b, d = parts[2 * (layers * ways + k) : 2 * (layers * ways + k) + 2]
                h, c = state[k], more[0][k] if mode == "lstm" else None
                row = [None] * length
                for t in range(length)[:: -1 if way else 1]:
                    new, carry = _step(mode, einsum("bi,gi->bg", x[t], w) + b, einsum("bh,gh->bg", h, u) + d, h, c)
                    inside = value((t < ends).astype(float).reshape(-1, 1))
                    h = new * inside + h * (1.0 - inside)
                    c = carry * inside + c * (1.0 - inside) if c is not None else None
                    row[t] = new * inside
                found.append(stacked(row))
                h_last.append(h), c_last.append(c)
            x = joined(found, 2)
        states = [stacked(h_last), *([stacked(c_last)] if mode == "lstm" else [])]
        return [x, *states] if outputs else x

    scale = 1.0 / size**0.5
    states = [draw.real(layers * ways, batch, size) for _ in range(2 if mode == "lstm" else 1)]
    inputs = [draw.real(length, batch, columns), draw.real(int(at[-1]), low=-scale, high=scale), *states]
    if lengths:
        inputs.append(draw.whole(1, length, (batch,), "float32"))
    tags = [mode, *(["both directions"] if ways == 2 else []), *(["lengths"] if lengths else [])]
    return operator("RNN", inputs, recurrent, state_size=size, num_layers=layers, bidirectional=ways == 2, mode=mode,
                    state_outputs=outputs, use_sequence_length=lengths, slack=4, tags=tags,
                    dtypes=("float32",) if lengths else ("float32", "float64"),
                    modes=(*EVERYWHERE, *([] if outputs else ["out"])))  # fmt: skip


def foreach(draw):
    """A body of random steps on the slice and the state, which keeps the state's shape."""
    length, shape = draw.size(20), draw.shape(1, 3, empty=0, room=2000)
    program, texts, shapes = steps(draw, [shape, shape], draw.integer(1, 5), most=20_000)
    last = len(shapes) - 1
    gives_input = draw.flag(0.2)
    sliced = draw.flag(0.4) and length > 1
    n = draw.integer(1, length)

    def call(F, x, s):
        def body(x, s):
            (found,) = run(F, program, [x, s], [last])
            new = F.tanh(F.broadcast_add(x, s))
            return (F.broadcast_mul(x, s) if gives_input else found), new

        outputs, state = F.contrib.foreach(body, x, s)
        return [F.slice_axis(outputs, axis=0, begin=0, end=n) if sliced else outputs, state]

    text = f"foreach of x, s: {'; '.join(texts)}; state tanh(x + s){f'; outputs[:{n}]' if sliced else ''}"
    return Case(text + (", x * s" if gives_input else ""), [draw.real(length, *shape), draw.real(*shape)], call,
                lambda *v: call(Numpy, *v), modes=EVERYWHERE, dtypes=types(texts), slack=30,
                tags=("foreach", *(["outputs sliced"] if sliced else [])))  # fmt: skip


def foreach_of_layers(draw):
    length, batch, columns, size = draw.size(12), draw.size(20), draw.size(40), draw.size(40)

    def call(F, x, h, w, u):
        def body(x, h):
            h = F.tanh(F.broadcast_add(F.dot(x, w), F.dot(h, u)))
            return F.slice_axis(h, axis=1, begin=0, end=(size + 1) // 2), h

        return list(F.contrib.foreach(body, x, h))

    inputs = [
        draw.real(length, batch, columns),
        draw.real(batch, size),
        draw.real(columns, size),
        draw.real(size, size),
    ]
    return Case("foreach: h = tanh(dot(x, w) + dot(h, u)); outputs: its first half", inputs, call, lambda *v: call(Numpy, *v),
                modes=EVERYWHERE, dtypes=("float32", "float64"), slack=30, tags=("foreach of layers",))  # fmt: skip


def while_loop(draw):
    most, shape = draw.integer(2, 12), draw.shape(1, 3, empty=0, room=2000)
    count = draw.integer(1, most)
    rows = draw.flag(0.4)

    def call(F, i, s, x):
        def body(i, s):
            s = F.tanh(F.broadcast_mul(s, x))
            return F.slice_axis(s, axis=0, begin=0, end=1) if rows else F.sin(s), [i + 1, s]

        outputs, (_, s) = F.contrib.while_loop(lambda i, s: i < count, body, [i, s], most)
        return [outputs[0] if isinstance(outputs, list) else outputs, s]

    start = draw.whole(0, 0, (1,), "float32")
    return Case(f"while_loop: {count} of {most} steps of s = tanh(s * x); outputs: {'s[:1]' if rows else 'sin(s)'}",
                [start, draw.real(*shape), draw.real(*shape, low=0.5, high=1.5)], call, lambda *v: call(Numpy, *v),
                modes=EVERYWHERE, dtypes=("float32",), slack=30, tags=("while_loop",))  # fmt: skip


def cond(draw):
    shape = draw.shape(1, 3, empty=0)
    first, texts, shapes = steps(draw, [shape], draw.integer(1, 4))
    end = len(shapes) - 1

    def call(F, p, x):
        return F.contrib.cond(p > 0.5, lambda: F.sum(run(F, first, [x], [end])[0].reshape((-1, 1)), axis=0),
                              lambda: F.sum(F.sin(x).reshape((-1, 1)), axis=0))  # fmt: skip

    inputs = [draw.whole(0, 1, (1,), "float32"), draw.real(*shape)]
    return Case(f"cond: sum of {'; '.join(texts)}, else of sin(x)", inputs, call,
                lambda *v: call(Numpy, *v), modes=EVERYWHERE, dtypes=("float32",), slack=100, tags=("cond",))  # fmt: skip


MAKERS = [rnn, rnn, rnn, foreach, foreach, foreach_of_layers, while_loop, cond]
