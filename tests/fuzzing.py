"""Random calls of everything public, with arguments of every kind: what they may raise, and that they come back.

Run as ``python -m fuzzing SEED CASES`` (from this folder); `test_fuzz_api.py` does, in a process of its own whose
memory is bounded.  Each case has a generator seeded with its number, so ``python -m fuzzing SEED 0 NUMBER`` is that case
alone.  The number of the running case is kept in a file, for crashes.
"""

import contextlib
import faulthandler
import inspect
import json
import os
import pickle
import random
import re
import struct
import sys
import tempfile
import time
import traceback
import warnings

import numpy as np

import mxop as mx
from mxop import autograd, nd, sym
from mxop.errors import MXNetError
from mxop.ndarray.params_format import SparseRecord, dumps
from mxop.op import DType, Shape

# What Python and NumPy raise of themselves: for arguments that a function does not have, operands that do not know each
# other, attributes that are not there, an array as a condition...
PYTHONS = re.compile(
    r"positional argument|keyword argument|required argument|takes no arguments|expected \d+ (?:or \d+ )?argument"
    r"|exactly (\d+|one) argument|takes \d+ arguments|at (most|least) \d+ argument|multiple values for"
    r"|unsupported operand|bad operand type|not supported between instances|has no attribute|truth value of an array"
)
# ... and what it raises where no function of mxop is entered.
OUTSIDE = re.compile(
    r"not iterable|not callable|unhashable|must be an iterable|must be a mapping|must be strings|not subscriptable"
    r"|Subscript deletion|doesn't define __round__"
)
PACKAGE = os.path.join(os.path.dirname(mx.__file__), "")
KINDS = ["float32", "float64", "float16", "int8", "uint8", "int32", "int64", "bool", "bfloat16"]
SHAPES = [(), (0,), (1,), (2,), (3,), (2, 3), (3, 2), (1, 3), (2, 1), (2, 0), (2, 3, 2), (1, 2, 1, 2), (1,) * 33]
INTEGERS = [-1, 0, 1, 2, 3, -2, -3, 5, 17, 100, -128, 255, 2**31 - 1, 2**31, -(2**31) - 1, 2**32, 2**62, 2**63 - 1, 2**63,
            -(2**63), -(2**63) - 1, 2**64, 10**30, 10**400]  # fmt: skip
FLOATS = [0.0, -0.0, 0.5, 1.0, -1.5, 2.0, 1e-300, 1e300, 3e38, 2.0**63, float("inf"), -float("inf"), float("nan")]
TEXTS = ["", " ", "a", "1", "-1", "1_000", "1.5", "0x10", "1e400", "inf", "nan", "True", "None", "()", "(1,2)", "0,,",
         "(1_0,2)",          "[2, 3]", "((1,2),3)", "(", "{1: 2}", "9" * 5000, "float32", "float31", "write",
         "add", "null", "x\0y", "\ud800", "é",
         "١", "(9223372036854775808,)", "0:1:0", "@", "new", "1:2,@", "::", "f4,f4", "%s", "{}", "cpu", "gpu"]  # fmt: skip


class Hostile:
    """An object that is nothing in particular."""

    def __repr__(self):
        return "<hostile>"


class Draw(random.Random):
    """Draws arguments; the same seed gives the same."""

    def integer(self):
        return self.choice(INTEGERS) if self.random() < 0.5 else self.randint(-3, 4)

    def number(self):
        return self.choice([self.integer, lambda: self.choice(FLOATS)])()

    def shape(self):
        if self.random() < 0.6:
            return self.choice(SHAPES)
        return tuple(self.integer() for _ in range(self.randint(0, 4)))

    def array(self, shape=None, kind=None):
        shape = self.choice(SHAPES) if shape is None else shape
        values = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 5.0
        if self.random() < 0.2:
            values = np.resize([self.choice(FLOATS), self.choice([-1.0, 7.0, 2.0**31])], values.shape)
        if self.random() < 0.1:  # a row that is broadcast, read-only
            return nd.from_dlpack(np.broadcast_to(np.ones(shape[-1:], "f4"), shape))
        made = nd.array(values, dtype=kind or self.choice(KINDS))
        return self.choice([made[::-1], made.T.copy().T, made[..., ::1]]) if self.random() < 0.3 and made.ndim else made

    def symbol(self):
        x = sym.Variable(self.choice("abc"), shape=self.choice([None, *SHAPES[3:8]]))
        return self.choice([x, x + 1, sym.exp(x), sym.Group([x, sym.Variable("b")]), sym.split(x, num_outputs=2)])

    def named(self):
        axes = [mx.axes.make_axis(self.randint(0, 3), name=n) for n in "xyz"]
        return self.choice([axes[0], axes[:2], mx.axes.ones(axes[:2]), mx.axes.placeholder(axes[:2]), mx.axes.ones(axes[1:])])

    def junk(self):
        return self.choice(
            [None, True, False, Ellipsis, b"\0\1", object, Hostile(), slice(None), slice("a", 2, 0), 1 + 2j, [], {}, set(), (),
             [1, "a"], {"a": 1}, np.float32(1.5), np.int64(2), np.array([1, 2]), np.array("x"), np.array([None]),
             np.datetime64(1, "s"), np.ones((2, 3)), len, mx.cpu(), mx.Context("cpu", 5), [[]], [[1], [2, 3]], range(3)]
        )  # fmt: skip

    def anything(self):
        kinds = [self.integer, self.number, self.shape, self.array, self.symbol, self.junk, self.junk, self.text,
                 lambda: [self.array() for _ in range(self.randint(0, 3))], lambda: list(self.shape()),
                 lambda: {self.text(): self.array()}, lambda: self.choice(KINDS), self.named]  # fmt: skip
        return self.choice(kinds)()

    def text(self):
        return self.choice(TEXTS)

    def parameter(self, p):
        """Return a value for a parameter: half of them may be right, some are written as text."""
        if self.random() < 0.25:
            return self.anything()
        if p.choices:
            value = self.choice(p.choices)
        elif p.kind in (Shape, tuple):
            value = self.shape()
        elif p.kind is DType:
            value = self.choice(KINDS)
        elif p.kind is bool:
            value = self.random() < 0.5
        elif p.kind is str:
            value = self.text()
        else:
            value = self.number() if self.random() < 0.4 else self.randint(0, 3)
        return value if self.random() < 0.7 else _written(value)

    def parameters(self, op):
        chosen = {p.name: self.parameter(p) for p in op.spec.params if self.random() < (0.9 if p.required else 0.4)}
        if self.random() < 0.05:
            chosen[self.choice(["axi", "out", "name", "ctx", "dtype", "__x__", "lr_mult"])] = self.anything()
        return chosen

    def count(self, op):
        n = self.randint(0, 4) if op.variadic else len(op.arguments)
        return n if self.random() < 0.85 else max(n + self.choice([-1, 1]), 0)

    def inputs(self, op, make):
        """Return inputs that often go together."""
        shape, kind = self.choice(SHAPES), self.choice(KINDS)
        found = []
        for _ in range(self.count(op)):
            if self.random() < 0.05:
                found.append(self.anything())
            else:
                found.append(make(shape if self.random() < 0.8 else None, kind if self.random() < 0.85 else None))
        return found

    def arguments(self, most=4):
        names = ["axis", "shape", "dtype", "out", "ctx", "a", "b", "data", "grad_req", "name", "key"]
        kwargs = {self.choice(names): self.anything() for _ in range(self.choice([0, 0, 0, 1, 2]))}
        return [self.anything() for _ in range(self.randint(0, most))], kwargs


def _written(value):
    try:
        return str(value)
    except ValueError:  # a number of 5000 digits
        return "9" * 5000


# ---- what is called: each takes a Draw and calls something once or a few times --------------------------------------
OPERATORS = mx.op.names()


def eager(draw):
    """An operator of arrays, sometimes recorded and differentiated."""
    name = draw.choice(OPERATORS)
    op = mx.op.get(name)
    inputs, params = draw.inputs(op, draw.array), draw.parameters(op)
    if inputs and draw.random() < 0.1:
        params["out"] = draw.choice([draw.array(), inputs[0], [draw.array()], inputs[-1:] * 2, draw.anything()])
    function = getattr(nd._internal, op.name) if op.name.startswith("_") else getattr(nd, name)
    if draw.random() < 0.7:
        return function(*inputs, **params)
    for a in inputs:
        if isinstance(a, nd.NDArray):
            a.attach_grad(draw.choice(["write", "add", "null"]))
    with autograd.record():
        found = function(*inputs, **params)
        heads = found if isinstance(found, list) else [found]
        if draw.random() < 0.3:
            heads = autograd.grad(heads, [a for a in inputs if isinstance(a, nd.NDArray)], create_graph=True)
    autograd.backward(heads, draw.choice([None, None, draw.anything()]))


def symbolic(draw):
    """An operator of symbols: inference, JSON, binding, running."""
    name = draw.choice(OPERATORS)
    op = mx.op.get(name)
    named = iter("abcdefghij")

    def make(shape, kind):
        return sym.Variable(next(named), shape=shape if draw.random() < 0.3 else None, dtype=draw.choice([None, kind]))

    inputs, params = draw.inputs(op, make), draw.parameters(op)
    params.pop("out", None)
    net = getattr(sym._internal, op.name)(*inputs, **params)
    use_symbol(draw, net)


def use_symbol(draw, net):
    steps = [
        lambda: net.infer_shape(**{n: draw.shape() for n in net.list_inputs() if draw.random() < 0.8}),
        lambda: net.infer_shape_partial(*[draw.shape() for _ in net.list_arguments()]),
        lambda: net.infer_type(**{n: draw.choice(KINDS) for n in net.list_inputs() if draw.random() < 0.8}),
        lambda: sym.load_json(net.tojson()),
        lambda: net.list_outputs(),
        lambda: net.debug_str(),
        lambda: net.gradient(net.list_arguments()[:1]),
        lambda: _run(draw, net),
        lambda: _run(draw, net),
        lambda: net.eval(**{n: draw.array() for n in net.list_inputs()}),
    ]
    for step in draw.sample(steps, 3):
        with contextlib.suppress(MXNetError):
            step()


def _run(draw, net):
    shape = draw.choice(SHAPES)
    known = {n: shape if draw.random() < 0.8 else draw.shape() for n in net.list_inputs()}
    types = {n: draw.choice(KINDS) for n in known if draw.random() < 0.3}
    executor = net.simple_bind(mx.cpu(), draw.choice(["write", "null", "add"]), types, **known)
    executor.forward(is_train=True)
    executor.backward(draw.choice([None, executor.outputs, draw.anything()]))
    executor.reshape(**{n: draw.shape() for n in known})


def bind(draw):
    """bind with arrays, gradients and requests that fit or do not."""
    net = draw.symbol()
    names = net.list_arguments()
    shape = draw.choice(SHAPES)
    arrays = {n: draw.array(shape, "float32") if draw.random() < 0.9 else draw.anything() for n in names}
    grads = {n: draw.array(shape, "float32") if draw.random() < 0.8 else draw.anything() for n in names}
    executor = net.bind(
        draw.choice([mx.cpu(), None, draw.anything()]),
        draw.choice([arrays, list(arrays.values()), draw.anything()]),
        draw.choice([grads, None, list(grads.values()), draw.anything()]),
        draw.choice(["write", "add", {names[0]: "write"}, draw.anything()]),
        passes=draw.choice([None, None, [], {"fuse": False}, draw.anything()]),
    )
    for name in draw.sample(["forward", "backward", "copy_params_from", "reshape", "explain", "set_monitor_callback"], 2):
        args, kwargs = draw.arguments(2)
        with contextlib.suppress(MXNetError):
            getattr(executor, name)(*args, **kwargs)


def _public(module):
    """Return what is called of a module, without what it imports."""
    found = {n: getattr(module, n, None) for n in dir(module) if not n.startswith("_")}
    return {n: f for n, f in found.items() if callable(f) and getattr(f, "__module__", "").startswith(module.__name__)}


_FUNCTIONS = {
    **{f"nd.{n}": f for n, f in _public(nd).items() if inspect.isfunction(f) or n in ("Context",)},
    **{f"sym.{n}": f for n, f in _public(sym).items() if inspect.isfunction(f)},
    **{f"autograd.{n}": f for n, f in _public(autograd).items() if inspect.isfunction(f)},
    **{f"context.{n}": getattr(mx.context, n) for n in ("Context", "cpu", "gpu", "set_num_threads", "memory_stats")},
    **{f"mx.{n}": getattr(mx, n) for n in ("AttrScope",)},
    **{f"name.{n}": getattr(mx.name, n) for n in ("NameManager", "Prefix")},
    **{f"util.{n}": getattr(mx.util, n) for n in ("set_np_shape", "np_shape", "use_np_shape")},
    **{f"viz.{n}": getattr(mx.viz, n) for n in ("print_summary", "svg", "memory_chart", "compare")},
    **{f"graph.{n}": getattr(mx.graph, n) for n in ("after", "assign", "sequential", "do_all", "optimize")},
    **{f"op.{n}": getattr(mx.op, n) for n in ("get", "find", "describe", "namespace_of")},
    **{f"operator.{n}": getattr(mx.operator, n) for n in ("get_operator_arguments", "Custom", "CustomRegOp")},
    **{f"axes.{n}": f for n, f in _public(mx.axes).items() if n not in ("Any",) and n[0].islower()},
}  # fmt: skip
for _name in ("nd.save", "autograd.set_recording", "autograd.set_training", "nd.waitall"):
    _FUNCTIONS.pop(_name, None)
_MAKERS = [n for n in _FUNCTIONS if n.startswith("nd.") or n.startswith("sym.")]


def function(draw):
    """A function that makes arrays or symbols, or any other public one."""
    name = draw.choice(draw.choice([_MAKERS, sorted(_FUNCTIONS)]))
    args, kwargs = draw.arguments(3)
    if draw.random() < 0.5:
        args = [draw.choice([draw.integer, draw.number, draw.shape])() for _ in args]
    if draw.random() < 0.3:
        kwargs["dtype"] = draw.choice(KINDS)
    return _FUNCTIONS[name](*args, **kwargs)


_ARRAY_METHODS = [n for n in dir(nd.NDArray) if not re.match("_[^_]", n) and n not in (
    "__class__", "__del__", "__setattr__", "__delattr__", "__getattribute__", "__init__", "__new__", "__init_subclass__",
    "__subclasshook__", "__dir__", "__sizeof__", "__pyx_vtable__", "_view", "__reduce__", "__buffer__",
    "__release_buffer__", "__getstate__", "__jax_array__",  # JAX, if there is one, ends the process where memory is bounded
)]  # fmt: skip


def array_method(draw):
    """A method, property or operator of an array."""
    x = draw.array()
    if draw.random() < 0.2:
        x.attach_grad()
    name = draw.choice(_ARRAY_METHODS)
    args, kwargs = draw.arguments(3)
    if name.startswith("__"):
        kwargs = {}
    with autograd.record() if draw.random() < 0.2 else autograd.pause():
        found = getattr(x, name)
        return found(*args, **kwargs) if callable(found) and name != "dtype" else found


def index(draw):
    """Reading and writing parts of an array."""
    x = draw.array()
    kinds = [draw.integer, draw.anything, lambda: slice(draw.integer(), draw.integer(), draw.integer()), draw.array,
             lambda: Ellipsis, lambda: None]  # fmt: skip
    items = [draw.choice(kinds)() for _ in range(draw.randint(1, 4))]
    key = items[0] if len(items) == 1 else tuple(items)
    if draw.random() < 0.3:
        x.attach_grad()
    with autograd.record() if draw.random() < 0.4 else autograd.pause():
        if draw.random() < 0.6:
            x[key]
        else:
            x[key] = draw.anything()


def foreign(draw):
    """NumPy's functions on arrays."""
    x, y = draw.array(), draw.anything()
    ufunc = getattr(np, draw.choice(["add", "multiply", "maximum", "exp", "divmod", "power", "matmul", "equal", "sign"]))
    call = draw.choice([lambda: ufunc(x), lambda: ufunc(x, y), lambda: ufunc(y, x), lambda: ufunc(x, y, out=draw.anything()),
                        lambda: ufunc.reduce(x, axis=draw.integer()), lambda: np.asarray(x, dtype=draw.text())])  # fmt: skip
    try:
        call()
    except MXNetError:
        raise
    except Exception as problem:  # NumPy's own complaints about arguments of its functions
        if is_ours(traceback.extract_tb(problem.__traceback__)[-1].filename):
            raise


_SYMBOL_METHODS = [
    *(n for n in dir(sym.Symbol) if not n.startswith("_") and n != "save"),
    *("__add__", "__rsub__", "__mul__", "__getitem__", "__call__", "__len__", "__iter__", "__eq__", "__pow__",
                "__mod__", "__neg__", "__bool__", "__copy__", "__truediv__", "__lt__", "__abs__", "_set_attr", "_compose"),
]  # fmt: skip


def symbol_method(draw):
    """A method of a symbol."""
    args, kwargs = draw.arguments(3)
    found = getattr(draw.symbol(), draw.choice(_SYMBOL_METHODS))
    return found(*args, **kwargs) if callable(found) else found


def _damaged(draw, content):
    content = bytearray(content)
    for _ in range(draw.choice([1, 1, 2, 5])):
        at = draw.randrange(len(content))
        edit = draw.randrange(4)
        if edit == 0:
            content[at] = draw.choice([0, 1, 2, 127, 128, 255])
        elif edit == 1:
            del content[at : at + draw.randint(1, 9)]
        elif edit == 2:
            content[at:at] = content[at : at + draw.randint(1, 20)]
        else:
            content[at : at + 8] = struct.pack("<q", max(min(draw.integer(), 2**63 - 1), -(2**63)))
        if not content:
            break
    return bytes(content)


_SPARSE = [
    SparseRecord("row_sparse", (5, 2), np.ones((2, 2), "f4"), (np.array([1, 3]),)),
    SparseRecord("csr", (3, 4), np.ones(2, "f4"), (np.array([0, 1, 1, 2]), np.array([3, 0]))),
]


def params_file(draw):
    """A damaged ``.params`` file."""
    arrays = [np.arange(6, dtype="f4").reshape(2, 3), np.array(3, "i8"), np.zeros((0, 2), "f8"), np.ones(3, "f2"), None]
    chosen = draw.sample(arrays, draw.randint(0, 3)) if draw.random() < 0.5 else draw.sample(_SPARSE, draw.randint(1, 2))
    names = [f"w{i}" for i in range(len(chosen))] if draw.random() < 0.7 else []
    content = dumps(chosen, names)
    nd.load_frombuffer(_damaged(draw, content) if draw.random() < 0.95 else draw.anything())


def json_file(draw):
    """A damaged ``symbol.json``, or one whose fields hold anything."""
    text = draw.symbol().tojson()
    if draw.random() < 0.4:
        content = _damaged(draw, text.encode())
    else:
        graph = json.loads(text)
        for _ in range(draw.randint(1, 3)):
            node = draw.choice(graph["nodes"])
            at = draw.choice([node, node.setdefault("attrs", {}), node["attrs"], graph])
            key = draw.choice(["op", "name", "inputs", "shape", "num_outputs", "__shape__", "__dtype__", "scalar", "heads"])
            at[key] = draw.choice([_written(draw.number()), draw.text(), draw.choice(OPERATORS), [[draw.integer(), 0, 0]],
                                   0, None, _written(draw.shape())])  # fmt: skip
        content = _dumped(graph)
    use_symbol(draw, sym.load_json(content))


def _dumped(graph):
    try:
        return json.dumps(graph)
    except (TypeError, ValueError):
        return "{}"


def pickled(draw):
    """Damaged pickles of arrays, symbols and contexts: only what mxop itself is handed counts."""
    whole = draw.choice([draw.array, draw.symbol, lambda: mx.cpu(1)])()
    make, args = whole.__reduce_ex__(draw.choice([2, 4, 5]))[:2]
    args = list(args)
    if args:
        args[draw.randrange(len(args))] = draw.anything()
    pickle.loads(pickle.dumps(whole))
    make(*args)


def on_disk(draw):
    """Loaders and savers with names of every kind."""
    name = draw.choice([draw.text(), draw.anything(), os.path.join(FOLDER, draw.choice(["x", "no/x", "x\0"]))])
    if isinstance(name, int) or (isinstance(name, str) and os.path.sep not in name):
        name = os.path.join(FOLDER, str(name)) if isinstance(name, str) else True
    calls = [lambda: nd.load(name), lambda: nd.save(name, draw.anything()), lambda: sym.load(name),
             lambda: draw.symbol().save(name), lambda: mx.library.load(name)]  # fmt: skip
    draw.choice(calls)()


FAMILIES = [eager, eager, eager, symbolic, symbolic, bind, function, function, array_method, index, foreign, symbol_method,
            params_file, json_file, pickled, on_disk]  # fmt: skip
FOLDER = tempfile.gettempdir()
LONG = 30  # seconds that no case may take


# ---- judging --------------------------------------------------------------------------------------------------------
def is_ours(filename):
    """Return whether a frame's file is one of the package: frames of compiled modules have paths from its parent folder."""
    return filename.startswith((PACKAGE, "mxop/"))


def verdict(problem):
    """Return None for an error that may be raised, else what is wrong with it."""
    if isinstance(problem, (MXNetError, MemoryError, StopIteration)):
        return None
    if isinstance(problem, (TypeError, AttributeError, ValueError, NotImplementedError)):
        files = [frame.filename for frame in traceback.extract_tb(problem.__traceback__)]
        entered = any(map(is_ours, files))
        if PYTHONS.search(str(problem)) or (not entered and OUTSIDE.search(str(problem))):
            return None
    return f"{type(problem).__name__}: {str(problem)[:200]}"


def case(seed, number):
    """Run one case; return what is wrong, or None."""
    draw = Draw(f"{seed}.{number}")
    mx.util.set_np_shape(draw.random() < 0.1)
    family = draw.choice(FAMILIES)
    try:
        family(draw)
    except Exception as problem:
        wrong = verdict(problem)
        if wrong is not None:
            where = "".join(traceback.format_tb(problem.__traceback__)[-3:])
            return f"case {number} ({family.__name__}): {wrong}\n{where}"
    finally:
        autograd.set_recording(False)
        mx.util.set_np_shape(False)
        mx.context.set_num_threads(1)
    return None


def main(seed, cases, only=None):
    """Run the first cases of a seed; print each kind of wrong error once."""
    global FOLDER
    warnings.simplefilter("ignore")
    faulthandler.enable()
    sys.setrecursionlimit(2000)
    if only is not None:
        print(case(seed, only))
        return
    _bound_memory()
    with tempfile.TemporaryDirectory() as FOLDER, open(os.path.join(FOLDER, "case"), "wb", buffering=0) as running:
        seen = {}
        slowest = (0.0, -1)
        for number in range(cases):
            faulthandler.dump_traceback_later(LONG, exit=True)  # says where a case hangs
            os.pwrite(running.fileno(), f"{number:12d}".encode(), 0)
            began = time.monotonic()
            wrong = case(seed, number)
            slowest = max(slowest, (time.monotonic() - began, number))
            if wrong is not None:
                kind = re.sub(r"\d+|'[^']*'|\"[^\"]*\"", "#", wrong.split("\n", 1)[1])
                if kind not in seen:
                    seen[kind] = wrong
                    print(wrong, flush=True)
    print(f"{cases} cases, {len(seen)} kinds of wrong errors; slowest {slowest[0]:.1f} s (case {slowest[1]})")
    sys.exit(bool(seen))


def _bound_memory(more=2**30):
    """Let this process take only so much more address space: what asks for too much fails at once."""
    import resource

    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + more, now + more))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None)
