"""Run and count cases: arrays of any layout, every request, eager and bound calls, one thread and two."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

import mxop as mx
from mxop import autograd, nd, sym

from . import reference
from .drawing import Draw
from .reference import Value

TOLERANCES = {"float64": 1e-9, "float32": 3e-5, "float16": 1.5e-2}
#: Elements of float32 from which on threads share most work.
LARGE = 36_864


class Fault(AssertionError):
    """A case whose results are wrong."""


class Laid:
    """An array in some layout, between elements that are NaN (77 in integers) and have to stay so."""

    def __init__(self, draw, values, layout):
        keys, shape = [], []
        size, most = max(values.size, 1), max(8 * values.size, 10_000)  # with what lies around
        for n in values.shape if layout != "dense" else ():
            step = {"part": 1, "steps": draw.integer(1, 3), "backward": -1}.get(layout) or draw.pick([1, -1, 2, -2])
            before, after, reach = draw.integer(0, 2), draw.integer(0, 2), (n - 1) * abs(step) + 1 if n else 0
            if size // (n or 1) * (before + reach + after) > most:  # there are many axes of size 1
                before, after, reach, step = 0, 0, n, 1 if step > 0 else -1
            shape.append(before + reach + after)
            size = size // (n or 1) * max(shape[-1], 1)
            if step > 0 or not n:
                keys.append(slice(before, before + reach, step))
            else:
                keys.append(slice(before + reach - 1, before - 1 if before else None, step))
        self.keys = tuple(keys)
        self.before = np.full(shape or values.shape, 77 if values.dtype.kind in "iu" else np.nan, values.dtype)
        self.before[self.keys] = values
        self.whole = nd.array(self.before, dtype=str(values.dtype))
        self.array = self.whole[self.keys] if self.keys else self.whole

    def elements(self, what):
        """Return the elements, after a look at those around them."""
        found, around = self.whole.asnumpy(), np.ones(self.before.shape, bool)
        around[self.keys] = False
        if not np.array_equal(found[around], self.before[around], equal_nan=found.dtype.kind == "f"):
            raise Fault(f"{what}: elements beside it were written")
        return found[self.keys]


@dataclass
class Run:
    """How a case is run: what else is drawn."""

    dtype: str
    mode: str
    threads: int
    layouts: list
    requests: list


def compare(what, found, want, tolerance):
    found = np.asarray(found)
    if found.shape != want.shape:
        raise Fault(f"{what}: shape {found.shape}, expected {want.shape}")
    if not want.size:
        return
    with np.errstate(invalid="ignore", over="ignore"):
        finite = want[np.isfinite(want)]
        scale = max(1.0, np.abs(finite).max()) if finite.size else 1.0
        wrong = ~np.isclose(found.astype(np.float64), want, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    if wrong.any():
        at = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise Fault(
            f"{what}: {int(wrong.sum())} of {want.size} elements are wrong; at {at}: {found[at]!r}, expected {want[at]!r}"
        )


def run(family, seed, number, make, say=lambda text: None):
    """Run one case; return what it was, as counts."""
    draw = Draw(seed, number)
    case = make(draw)
    dtype = draw.pick(case.dtypes)
    how = Run(dtype, draw.pick(case.modes), draw.integer(1, 2), [draw.layout() for _ in case.inputs],
              ["null" if i.fixed else draw.pick(["write", "add", "add", "null"]) for i in case.inputs])  # fmt: skip
    if how.mode == "out":
        how.requests = ["null"] * len(case.inputs)
    values = [i.values if i.fixed else i.values.astype(dtype) for i in case.inputs]
    shown = ", ".join(f"{v.dtype} {v.shape} {layout} {request}"
                      for v, layout, request in zip(values, how.layouts, how.requests, strict=True))  # fmt: skip
    text = (f"{case.name} of [{shown}], {how.mode}, {how.threads} threads: "
            f"python -m shapes {family} --seed {seed} --only {number}")  # fmt: skip
    say(text)
    mx.context.set_num_threads(how.threads)
    try:
        _check(case, draw, how, values)
    except Exception as problem:
        raise Fault(f"{text}\n{type(problem).__name__}: {problem}") from problem
    tags = {*case.tags, dtype, how.mode, f"{how.threads} threads", *(f"request {r}" for r in how.requests),
            *(f"layout {name}" for name in how.layouts)}  # fmt: skip
    tags |= {name for name, holds in (("large", sum(v.size for v in values) >= LARGE),
                                      ("empty", not all(v.size for v in values)),
                                      ("remainder", any(n % 8 for v in values for n in v.shape))) if holds}  # fmt: skip
    return Counter(tags)


def _listed(found):
    return list(found) if isinstance(found, (list, tuple)) else [found]


def _check(case, draw, how, values):
    known = [v if i.fixed else Value(v) for v, i in zip(values, case.inputs, strict=True)]
    with np.errstate(all="ignore"):
        wanted = _listed(case.reference(*known))
    heads = [draw.rng.uniform(-1, 1, w.shape).astype(how.dtype) for w in wanted]
    tolerance = TOLERANCES[how.dtype] * case.slack
    wants = case.differentiable and any(r != "null" for r in how.requests)
    starts = [draw.rng.uniform(-1, 1, v.shape).astype(v.dtype) for v in values]
    inputs = [Laid(draw, v, layout) for v, layout in zip(values, how.layouts, strict=True)]
    given = [Laid(draw, h, draw.layout()) for h in heads]
    grads = [None if i.fixed else Laid(draw, s, draw.layout()) for s, i in zip(starts, case.inputs, strict=True)]
    asked = [v for v, r in zip(known, how.requests, strict=True) if r != "null"]
    if how.mode in ("eager", "compiled"):  # what depends on no variable is no head
        given = [h if reference.depends(w, asked) or case.gradient else None for h, w in zip(given, wanted, strict=True)]
        wants = wants and any(h is not None for h in given)  # else there is no backward pass, which would write a gradient
    runner = {"out": _run_out, "bind": _run_bound, "eval": _run_eval}.get(how.mode, _run_eager)
    outputs = runner(case, draw, how, inputs, grads if wants else None, given)
    if len(outputs) != len(wanted):
        raise Fault(f"{len(outputs)} outputs, expected {len(wanted)}")
    for k, (found, want) in enumerate(zip(outputs, wanted, strict=True)):
        compare(f"output {k}", found, want.data if isinstance(want, Value) else np.asarray(want, np.float64), tolerance)
    for k, (x, v) in enumerate(zip(inputs, values, strict=True)):
        if not np.array_equal(x.elements(f"input {k}"), v):
            raise Fault(f"input {k} was written")
    if wants and how.mode != "eval":
        _check_gradients(case, how, known, wanted, heads, starts, grads, tolerance)


def _check_gradients(case, how, known, wanted, heads, starts, grads, tolerance):
    variables = [v for v in known if isinstance(v, Value)]
    with np.errstate(all="ignore"):
        if case.gradient is None:
            live = [(w, h.astype(np.float64)) for w, h in zip(wanted, heads, strict=True) if isinstance(w, Value)]
            slopes = reference.gradients([w for w, _ in live], [h for _, h in live], variables)
        else:
            slopes = case.gradient([h.astype(np.float64) for h in heads], *known)
    slopes = iter(slopes)
    for k, (request, start, grad) in enumerate(zip(how.requests, starts, grads, strict=True)):
        if grad is None:
            continue
        want = next(slopes)
        want = start.astype(np.float64) if request == "null" else want + start if request == "add" else want
        compare(f"gradient of input {k}, {request}", grad.elements(f"gradient of input {k}"), want, 4 * tolerance)


def _run_out(case, draw, how, inputs, grads, heads):
    """Call the operator with arrays to write to, where it has one result; without a record."""
    arrays = [x.array for x in inputs]
    found = case.call(nd, *arrays)
    if isinstance(found, (list, tuple)):
        return [o.asnumpy() for o in found]
    target = Laid(draw, np.full(found.shape, 7, found.dtype), draw.layout())
    again = case.call(_Out(nd, target.array), *arrays)
    if again is not target.array:
        raise Fault("a call with out= returned another array")
    compare("with out=", target.elements("output"), found.asnumpy(), 0.0)
    return [found.asnumpy()]


class _Out:
    """A namespace whose operators write to an array: for cases of one operator."""

    def __init__(self, space, out):
        self._space, self._out = space, out

    def __getattr__(self, name):
        found = getattr(self._space, name)
        return (lambda *a, **k: found(*a, **k, out=self._out)) if callable(found) else _Out(found, self._out)


def _run_eager(case, draw, how, inputs, grads, heads):
    arrays = [x.array for x in inputs]
    call = (lambda *a: case.call(nd, *a)) if how.mode == "eager" else mx.graph.compiled(lambda *a: case.call(nd, *a))
    if grads is None:
        return [o.asnumpy() for o in _listed(call(*arrays))]
    marked = [(a, g.array, r) for a, g, r in zip(arrays, grads, how.requests, strict=True) if r != "null"]
    autograd.mark_variables([a for a, _, _ in marked], [g for _, g, _ in marked], [r for _, _, r in marked])
    with autograd.record():
        outputs = _listed(call(*arrays))
    chosen = [(o, h.array) for o, h in zip(outputs, heads, strict=True) if h is not None]
    if chosen:
        autograd.backward([o for o, _ in chosen], [h for _, h in chosen])
    return [o.asnumpy() for o in outputs]


def _symbol(case, inputs):
    names = [f"x{k}" for k in range(len(inputs))]
    found = case.call(sym, *[sym.Variable(n) for n in names])
    return names, sym.Group(_listed(found)) if isinstance(found, (list, tuple)) else found


def _run_eval(case, draw, how, inputs, grads, heads):
    names, net = _symbol(case, inputs)
    used = set(net.list_inputs())
    return [o.asnumpy() for o in net.eval(**{n: x.array for n, x in zip(names, inputs, strict=True) if n in used})]


def _run_bound(case, draw, how, inputs, grads, heads):
    """Bind and run twice: first with the elements in another order, so that nothing may be left of that."""
    names, net = _symbol(case, inputs)
    args = dict(zip(names, [x.array for x in inputs], strict=True))
    requests, stores = "null", None
    if grads is not None:
        requests = dict(zip(names, how.requests, strict=True))
        stores = {n: g.array for n, g in zip(names, grads, strict=True) if g is not None}
        starts = {n: g.copy() for n, g in stores.items()}
    executor = net.bind(mx.cpu(), args, stores, requests)
    real = {n: x.copy() for n, x in args.items()}
    for first in (True, False):
        for n, i in zip(names, case.inputs, strict=True):
            if not i.fixed:
                elements = real[n].asnumpy()
                args[n][...] = nd.array(draw.rng.permutation(elements.ravel()).reshape(elements.shape) if first else elements,
                                        dtype=how.dtype)  # fmt: skip
        outputs = executor.forward(is_train=grads is not None)
        if grads is not None:
            executor.backward([h.array for h in heads])
            if first:
                for n, g in stores.items():
                    g[...] = starts[n]
    return [o.asnumpy() for o in outputs]
