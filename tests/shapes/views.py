"""Random programs rich in views: parts, reshapes and turns of inputs, of computed values and of views, as results too."""

import numpy as np

from .drawing import Case
from .numpy_space import Numpy

MODES = ("eager", "eval", "eval", "bind", "bind", "bind", "compiled", "compiled")


# ---- views: each returns (text, function of F and a value, new shape), or None where a shape has no such view ---------
def part_of_axis(draw, shape):
    axis = draw.integer(0, len(shape) - 1)
    n = shape[axis]
    begin = draw.pick([0, 0, draw.integer(0, n - 1)])
    end = draw.integer(begin + 1, n)
    new = (*shape[:axis], end - begin, *shape[axis + 1 :])
    return f"slice_axis({axis}, {begin}, {end})", lambda F, x: F.slice_axis(x, axis=axis, begin=begin, end=end), new


def part(draw, shape):
    begin, end, step, new = [], [], [], []
    for n in shape[: draw.integer(1, len(shape))]:
        s, b = draw.pick([1, 1, 2, -1]), draw.pick([0, 0, draw.integer(0, n - 1)])
        e = draw.integer(b + 1, n)
        b, e, s = (e - 1, b - 1 if b else None, -1) if s < 0 else (b, e, s)
        begin.append(b), end.append(e), step.append(s)
        new.append(len(range(n)[b:e:s]))
    begin, end, step = tuple(begin), tuple(end), tuple(step)
    if set(step) == {1}:
        return f"slice({begin}, {end})", lambda F, x: F.slice(x, begin=begin, end=end), (*new, *shape[len(new) :])
    return (f"slice({begin}, {end}, {step})", lambda F, x: F.slice(x, begin=begin, end=end, step=step),
            (*new, *shape[len(new) :]))  # fmt: skip


def crop(draw, shape):
    if len(shape) != 4:
        return None
    height, width = draw.integer(1, shape[2]), draw.integer(1, shape[3])
    offset = draw.pick([(0, 0), (draw.integer(0, shape[2] - height), draw.integer(0, shape[3] - width))])
    return (f"Crop({(height, width)}, {offset})",
            lambda F, x: F.Crop(x, h_w=(height, width), offset=offset, num_args=1), (*shape[:2], height, width))  # fmt: skip


def reshape(draw, shape):
    size = int(np.prod(shape))
    found = []
    while len(found) < 3 and size > 1 and draw.flag(0.7):
        factors = [f for f in (2, 3, 4, 5, 7, 8, 16) if size % f == 0] + [size]
        found.append(draw.pick(factors))
        size //= found[-1]
    new = tuple(int(n) for n in draw.rng.permutation([*found, size]))
    return f"reshape({new})", lambda F, x: F.reshape(x, shape=new), new


def expand(draw, shape):
    axis = draw.integer(0, len(shape))
    return f"expand_dims({axis})", lambda F, x: F.expand_dims(x, axis=axis), (*shape[:axis], 1, *shape[axis:])


def squeeze(draw, shape):
    ones = [k for k, n in enumerate(shape) if n == 1]
    if not ones or len(shape) == 1:
        return None
    axis = draw.pick(ones)
    return f"squeeze({axis})", lambda F, x: F.squeeze(x, axis=axis), (*shape[:axis], *shape[axis + 1 :])


def flip(draw, shape):
    axis = draw.integer(0, len(shape) - 1)
    return f"flip({axis})", lambda F, x: F.flip(x, axis=axis), shape


def turn(draw, shape):
    axes = tuple(int(k) for k in draw.rng.permutation(len(shape)))
    return f"transpose({axes})", lambda F, x: F.transpose(x, axes=axes), tuple(shape[a] for a in axes)


def repeat(draw, shape):
    ones = [k for k, n in enumerate(shape) if n == 1]
    if not ones:
        return None
    axis, n = draw.pick(ones), draw.integer(1, 9)
    new = (*shape[:axis], n, *shape[axis + 1 :])
    return f"broadcast_to({new})", lambda F, x: F.broadcast_to(x, shape=new), new


def piece(draw, shape):
    axis = draw.integer(0, len(shape) - 1)
    several = [n for n in (2, 3, 4) if shape[axis] % n == 0]
    if not several:
        return None
    n = draw.pick(several)
    k = draw.integer(0, n - 1)
    new = (*shape[:axis], shape[axis] // n, *shape[axis + 1 :])
    return f"split({n}, {axis})[{k}]", lambda F, x: F.split(x, num_outputs=n, axis=axis)[k], new


# ---- what computes --------------------------------------------------------------------------------------------------------
def formula(draw, shape):
    op = draw.pick(["sin", "tanh", "square", "sigmoid", "identity"])
    return op, lambda F, x: getattr(F, op)(x), shape


def along(draw, shape):
    op, axis = draw.pick(["softmax", "cumsum", "sort", "sum", "mean"]), draw.integer(0, len(shape) - 1)
    if op in ("sum", "mean"):
        kept = draw.flag() or len(shape) == 1
        new = (*shape[:axis], *([1] if kept else []), *shape[axis + 1 :])
        return f"{op}({axis}, {kept})", lambda F, x: getattr(F, op)(x, axis=axis, keepdims=kept), new
    return f"{op}({axis})", lambda F, x: getattr(F, op)(x, axis=axis), shape


VIEWS = (part_of_axis, part_of_axis, part, part, crop, reshape, expand, squeeze, flip, turn, repeat, piece)
COMPUTES = (formula, formula, along)


def _together(draw, a, b):
    """Return what two values of some shapes may become: (text, function, shape), or None."""
    kinds = []
    if a == b or (len(a) == len(b) and all(n == m or 1 in (n, m) for n, m in zip(a, b, strict=True))):
        op = draw.pick(["broadcast_add", "broadcast_mul", "broadcast_sub"])
        kinds.append((op, lambda F, x, y: getattr(F, op)(x, y), np.broadcast_shapes(a, b)))
    same = [k for k in range(len(a)) if len(a) == len(b) and a[:k] == b[:k] and a[k + 1 :] == b[k + 1 :]]
    if same:
        axis = draw.pick(same)
        new = (*a[:axis], a[axis] + b[axis], *a[axis + 1 :])
        kinds.append((f"concat({axis})", lambda F, x, y: F.concat(x, y, dim=axis), new))
    if len(a) == len(b) == 2 and a[1] == b[0]:
        kinds.append(("dot", lambda F, x, y: F.dot(x, y), (a[0], b[1])))
    if len(a) == len(b) and a != b and all(n >= m for n, m in zip(a, b, strict=True)):
        kinds.append(("slice_like", lambda F, x, y: F.slice_like(x, y), b))
    return draw.pick(kinds) if kinds else None


def steps(draw, shapes, n, views=0.6, most=200_000):
    """Return steps ``(function, places)`` on a growing list of values, their texts, and the shapes."""
    found, texts, shapes = [], [], list(shapes)
    while len(found) < n:
        at = -1 if draw.flag(0.6) else draw.integer(0, len(shapes) - 1)
        at %= len(shapes)
        if draw.flag(0.25):
            other = draw.integer(0, len(shapes) - 1)
            drawn, places = _together(draw, shapes[at], shapes[other]), (at, other)
        else:
            drawn, places = draw.pick(VIEWS if draw.flag(views) else COMPUTES)(draw, shapes[at]), (at,)
        if drawn is None or np.prod(drawn[2]) > most or len(drawn[2]) > 5:
            continue
        text, function, new = drawn
        found.append((function, places))
        texts.append(f"v{len(shapes)} = {text} of {', '.join(f'v{p}' for p in places)}")
        shapes.append(tuple(int(s) for s in new))
    return found, texts, shapes


def types(texts):
    """Return the types in which a program is compared: sums and the order of close values are float64's."""
    return ("float64",) if any(op in text for text in texts for op in ("sum(", "sort(")) else ("float32", "float64")


def run(F, program, inputs, results):
    values = list(inputs)
    for function, places in program:
        values.append(function(F, *(values[p] for p in places)))
    return [values[k] for k in results]


def _case(draw, computed_first):
    shapes = [draw.shape(1, 4, empty=0, room=min(draw.room, 50_000)) for _ in range(draw.integer(1, 2))]
    before = shapes
    program, texts = [], []
    if computed_first:
        program, texts, shapes = steps(draw, shapes, 1, views=0.0)
    more, also, shapes = steps(draw, shapes, draw.integer(1, 8))
    program, texts = program + more, texts + also
    last = len(shapes) - 1
    results = [last, *(draw.integer(len(before), last) for _ in range(draw.pick([0, 0, 1, 2])))]
    used, waiting = set(), list(results)  # a symbol has no other arguments than those that its results need
    while waiting:
        k = waiting.pop()
        if k not in used:
            used.add(k)
            waiting += program[k - len(before)][1] if k >= len(before) else ()
    inputs = [draw.real(*s) for s in before]
    names = [f"v{k}" for k in range(len(before))]

    def call(F, *values):
        return run(F, program, [*values], results)

    missing = [k for k in range(len(before)) if k not in used]
    if missing:  # the second input is not read: the program of the first alone
        inputs = [x for k, x in enumerate(inputs) if k not in missing]

        def call(F, *values):
            given = iter(values)
            return run(F, program, [None if k in missing else next(given) for k in range(len(before))], results)

        program = [(f if all(p in used for p in places) and k + len(before) in used else (lambda F, *v: None), places)
                   for k, (f, places) in enumerate(program)]  # fmt: skip
    text = f"{', '.join(names)}; {'; '.join(texts)}; results {results}"
    tags = [t.split(" = ")[1].split("(")[0].split(" ")[0] for t in texts]
    return Case(text, inputs, call, lambda *v: call(Numpy, *v), modes=MODES, dtypes=types(texts), slack=20,
                tags=(*tags, *(["several results"] if len(results) > 1 else [])))  # fmt: skip


def views(draw):
    return _case(draw, False)


def views_of_computed_values(draw):
    return _case(draw, True)


MAKERS = [views, views_of_computed_values]
