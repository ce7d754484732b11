"""Uses operators for the first time under strain; a program of its own, which ``test_first_use.py`` starts.

    python tests/first_use.py threads [OPERATOR...]           sixteen threads at once
    python tests/first_use.py mixed [USE...] [-n COUNT]        sixteen threads, each in an order of its own; COUNT times
    python tests/first_use.py interrupts [USE...] [-n COUNT]   an exception at COUNT (or all) lines of the first use

Each use happens in a child that was forked from a process in which no operator has run, and is followed by a clean one
whose results must be those of a child that nothing disturbed.  Prints what went wrong, a line each, and a summary.
"""

import argparse
import faulthandler
import importlib
import os
import pickle
import random
import signal
import sys
import threading
import traceback

import numpy as np

import mxop as mx
from mxop import autograd, nd
from mxop.check import running
from mxop.check.cases import FLOATS, cases, name_of
from mxop.check.gradients import differentiate
from mxop.records import find

THREADS = 16
SECONDS = 60  # for one child


# ---- uses of operators -----------------------------------------------------------------------------------------------
def first_case(name):
    """Return the first case of an operator's record that has elements; those of backward operators are their forward's."""
    op = mx.op.get(name)
    found = cases(op, find(op.name), np.random.default_rng(3))
    return next((c for c in found if all(0 not in s for s in c.shapes)), found[0])


def operator_use(name):
    """Return a use of one operator: forward, backward, second order, and a bound graph."""
    case = first_case(name)
    types = set(case.record.dtypes)
    dtype = "float32" if types & set("fnl") else "int32" if "i" in types else "bool"
    values = case.sample(dtype)
    orders = min(case.record.order, 2)
    aux = bool(case.op.aux_names(case.attrs))

    def use():
        found = eager(case, values, orders)
        found = found if aux else found + bound(case, values, dtype)
        return [np.zeros_like(a) for a in found] if case.random else found  # threads share one generator

    return use


def eager(case, values, orders):
    arrays = case.arrays(values)
    states = case.op.aux_names(case.attrs)
    names = case.op.input_names(case.attrs, len(arrays))
    variables = [x for x, name in zip(arrays, names, strict=True) if name not in states]
    if orders:
        for x in variables:
            x.attach_grad()
    with autograd.record():
        outputs = case.call(arrays)
    found = list(outputs)
    heads = [o for o in outputs if name_of(o) in FLOATS]
    for order in range(orders if heads else 0):
        with autograd.record():
            heads = differentiate(heads, variables, [None] * len(heads), create=order + 1 < orders)
        found += heads
    return [a.asnumpy() for a in found]


def bound(case, values, dtype):
    symbol, names = running.compose(case, mx.sym)
    arrays = dict(zip(names, case.arrays(values), strict=True))
    executor = symbol.bind(mx.cpu(), arrays, args_grad={n: nd.zeros_like(a) for n, a in arrays.items()})
    found = executor.forward(is_train=True)
    if all(name_of(o) in FLOATS for o in found) and names and case.record.order:
        executor.backward([nd.ones_like(o) for o in found])
        found = [*found, *executor.grad_dict.values()]
    return [a.asnumpy() for a in found]


def arithmetic():
    x = nd.array([1.0, 2.0, 3.0])
    found = [x * x, x + 1, 2 - x, x**2, x > 1, -x, abs(x), x / x, x % 2]
    x += 1
    return [a.asnumpy() for a in [*found, x]]


def orders():
    x = nd.array([0.5, 2.0, 3.0])
    x.attach_grad()
    with autograd.record():
        y = nd.sin(x) * x + nd.broadcast_mul(nd.mean(x, keepdims=True), x)
        first = autograd.grad(y, x, create_graph=True)[0]
        second = autograd.grad(first, x, create_graph=True)[0]
    second.backward()
    return [a.asnumpy() for a in (y, first, second, x.grad)]


def indexing():
    x = nd.array(np.arange(24.0).reshape(2, 3, 4))
    x.attach_grad()
    with autograd.record():
        y = (x[0, 1:] * 2).sum() + x[:, ::2, -1].sum() + x[np.array([1, 0])].sum() + x[..., None, 2].sum()
    y.backward()
    z = nd.zeros((4, 4))
    z[1:3, ::2] = 5
    z[0] = nd.array([1, 2, 3, 4])
    z[np.array([3])] = 7
    return [a.asnumpy() for a in (y, x.grad, z)]


def branching():
    """An operator whose formula asks for the value of a parameter."""
    op = mx.op.find("first_use_branching")
    if op is None:

        @mx.op.elementwise
        def first_use_branching(data, *, clip: float = -1.0, rate: float = 1.0):
            if clip >= 0:
                data = mx.op.F.maximum(mx.op.F.minimum(data, clip), -clip)
            return data * rate * data

    found = []
    for clip, rate in ((-1, 2), (1, 3), (0.5, 4)):
        x = nd.array([-2.0, 0.25, 3.0])
        x.attach_grad()
        with autograd.record():
            y = nd.first_use_branching(x, clip=clip, rate=rate)
        y.backward()
        found += [y, x.grad]
    return [a.asnumpy() for a in found]


class Double(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * 2)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * 2)


@mx.operator.register("first_use_double")
class DoubleProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, types):
        return Double()


def custom():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x * x, op_type="first_use_double")
    y.backward()
    net = mx.sym.Custom(mx.sym.Variable("x"), op_type="first_use_double")
    executor = net.bind(mx.cpu(), {"x": x}, args_grad={"x": nd.zeros((2,))})
    out = executor.forward(is_train=True)[0]
    executor.backward([nd.ones((2,))])
    return [a.asnumpy() for a in (y, x.grad, out, executor.grad_dict["x"])]


def binding():
    x, w = mx.sym.Variable("x"), mx.sym.Variable("w")
    net = mx.sym.softmax(mx.sym.FullyConnected(x, w, no_bias=True, num_hidden=3) * 2 + 1)
    net = mx.sym.Group([net, mx.sym.sum(mx.sym.exp(x - 1) * x, axis=1)])
    executor = net.simple_bind(mx.cpu(), x=(2, 4))
    executor.arg_dict["x"][:] = 0.5
    executor.arg_dict["w"][:] = 0.25
    found = executor.forward(is_train=True)
    executor.backward([nd.ones_like(o) for o in found])
    return [a.asnumpy() for a in [*found, *executor.grad_arrays]]


def compositions():
    """Composites, rules of operators, inference inside, JSON."""
    x = nd.array(np.linspace(-1, 1, 12).reshape(3, 4))
    x.attach_grad()
    with autograd.record():
        y = nd.log_softmax(nd.concat(x, nd.transpose(x).reshape((3, 4)), dim=1)) + nd.norm(x)
    y.backward()
    net = mx.sym.load_json(mx.sym.mean(mx.sym.Activation(mx.sym.Variable("x"), act_type="softrelu"), axis=0).tojson())
    out = net.eval(x=x)[0]
    return [a.asnumpy() for a in (y, x.grad, out)]


def recurrent():
    """Cells are made of symbols, whose package they import."""
    outputs, _ = mx.rnn.LSTMCell(3, prefix="first_use_").unroll(2, inputs=mx.sym.Variable("x"), merge_outputs=True)
    executor = outputs.simple_bind(mx.cpu(), x=(2, 2, 4))
    for name in executor.arg_dict:
        executor.arg_dict[name][:] = 0.25
    return [executor.forward()[0].asnumpy()]


def recorded():
    x = nd.array([0.25, 0.5])
    x.attach_grad()
    with autograd.record():
        y = nd.log_softmax(x) * 2
    return [autograd.get_symbol(y).eval(**{autograd.get_symbol(y).list_arguments()[0]: x})[0].asnumpy()]


def imported():
    """Modules that few programs need, in any order, and one that there is not."""
    names = ["rnn", "symbol", "symbol.contrib", "graph", "io", "metric", "kvstore", "contrib.text", "contrib.amp", "image"]
    for name in random.sample(names, len(names)):
        importlib.import_module(f"mxop.{name}")
    try:
        importlib.import_module("mxop.gluon")
    except ImportError as problem:
        assert "MXNet has mx.gluon" in str(problem)
    return []


USES = {f.__name__: f for f in (arithmetic, orders, indexing, branching, custom, binding, compositions, recurrent, recorded,
                                imported)}  # fmt: skip


def use_of(name):
    return USES[name] if name in USES else operator_use(name)


# ---- children --------------------------------------------------------------------------------------------------------
class Interrupt(BaseException):
    """As when the user presses Ctrl-C."""


def in_child(function):
    """Run a function in a forked child; return (what it returned, None) or (None, what went wrong)."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(SECONDS)
        try:
            answer = (function(), None)
        except BaseException:
            answer = (None, traceback.format_exc(limit=-6))
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        sent = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return None, f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return pickle.loads(sent)


def difference(found, wanted):
    """Say how results differ, or return None."""
    if len(found) != len(wanted):
        return f"{len(found)} results instead of {len(wanted)}"
    for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype or not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
            return f"result {k} is {a.tolist()} instead of {b.tolist()}"
    return None


def in_threads(orders):
    """Use things, pairs of a function and its results, from many threads at once; return what went wrong.

    `orders` has the things of each thread.
    """
    barrier, problems = threading.Barrier(len(orders)), []

    def work(uses):
        barrier.wait()
        for use, wanted in uses:
            try:
                problem = difference(use(), wanted)
            except BaseException:
                problem = traceback.format_exc(limit=-4)
            if problem:
                problems.append(problem)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=work, args=(uses,)) for uses in orders]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    sys.setswitchinterval(before)
    return problems


def interrupted(use, at, kind):
    """Use it with an exception at the line event number `at`; return whether that many came, and what a clean use gives."""
    left, inside = at, os.path.dirname(mx.__file__)

    def trace(frame, event, argument):
        nonlocal left
        if not frame.f_code.co_filename.startswith(inside):
            return None if event == "call" and not frame.f_code.co_filename.startswith("<") else trace
        left -= 1
        if left == 0:
            sys.settrace(None)
            raise kind("injected")
        return trace

    sys.settrace(trace)
    try:
        use()
    except (Interrupt, MemoryError, RecursionError, mx.MXNetError) as problem:
        del problem
    finally:
        sys.settrace(None)
    return left <= 0, use()


def line_events(use):
    """Return how many line events a first use has, and the numbers of the first and the last one of each line."""
    count, inside = 0, os.path.dirname(mx.__file__)
    first, last = {}, {}

    def trace(frame, event, argument):
        nonlocal count
        if not frame.f_code.co_filename.startswith(inside):
            return None if event == "call" and not frame.f_code.co_filename.startswith("<") else trace
        count += 1
        line = frame.f_code, frame.f_lineno
        first.setdefault(line, count)
        last[line] = count
        return trace

    sys.settrace(trace)
    try:
        use()
    finally:
        sys.settrace(None)
    return count, sorted({*first.values(), *last.values()})


# ---- the two programs ------------------------------------------------------------------------------------------------
def strain_threads(names):
    failures = 0
    for name in names:
        use = use_of(name)
        wanted, problem = in_child(use)
        problems = [problem] if problem else None
        if not problem:
            problems, killed = in_child(lambda uses=[(use, wanted)]: in_threads([uses] * THREADS))
            problems = [killed] if killed else problems
        if problems:
            failures += 1
            print(f"{name}: {len(problems)} of {THREADS} threads: {problems[0]}", flush=True)
    print(f"threads: {len(names)} first uses, {failures} failed")
    return failures


def strain_mixed(names, times):
    """What one thread imports first, another needs while it is imported."""
    uses = [use_of(name) for name in names]
    pairs = [(use, in_child(use)[0]) for use in uses]
    failures = 0
    for seed in range(times):
        rng = np.random.default_rng(seed)
        orders = [[pairs[k] for k in rng.permutation(len(pairs))] for _ in range(THREADS)]
        problems, killed = in_child(lambda orders=orders: in_threads(orders))
        if killed or problems:
            failures += 1
            print(f"time {seed}: {killed or problems[0]}", flush=True)
    print(f"mixed: {len(names)} first uses, {times} times, {failures} failed")
    return failures


def strain_interrupts(names, most):
    failures = points = 0
    for name in names:
        use = use_of(name)
        wanted, problem = in_child(use)
        found, problem = (None, problem) if problem else in_child(lambda use=use: line_events(use))
        if problem:
            failures += 1
            print(f"{name}: {problem}", flush=True)
            continue
        lines, places = found
        if most is not None:
            places = np.unique(np.linspace(1, lines, most).astype(int)).tolist()
        for at in places:
            kind = (Interrupt, MemoryError, RecursionError)[at % 3]
            found, problem = in_child(lambda use=use, at=at, kind=kind: interrupted(use, at, kind))
            points += 1
            problem = problem or difference(found[1], wanted)
            if problem:
                failures += 1
                print(f"{name}: {kind.__name__} at line event {at} of {lines}: {problem}", flush=True)
    print(f"interrupts: {len(names)} first uses, {points} places, {failures} failed")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["threads", "mixed", "interrupts"])
    parser.add_argument("names", nargs="*", help="operators, or " + ", ".join(USES))
    parser.add_argument(
        "-n", type=int, help="how many line events of each use are interrupted (the first and the last of every line)"
    )
    given = parser.parse_args()
    faulthandler.enable()
    names = given.names or [*USES, *(op.name for op in mx.op.operators() if find(op.name) is not None)]
    if given.what == "mixed":
        failed = strain_mixed(given.names or [*USES], given.n or 10)
    else:
        failed = strain_threads(names) if given.what == "threads" else strain_interrupts(names, given.n)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
