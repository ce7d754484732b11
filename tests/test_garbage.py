"""Python's collector of garbage waits while graphs are made, and nothing but that."""

import gc
import os
import threading
from contextlib import ExitStack, contextmanager

import pytest

import mxop as mx
from mxop import sym
from mxop.graph.garbage import collected_later


@pytest.fixture(autouse=True)
def collector_on():
    gc.enable()
    yield
    gc.enable()


def test_blocks_are_nested():
    with collected_later():
        with collected_later():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_was_off_stays_off():
    gc.disable()
    with collected_later():
        pass
    assert not gc.isenabled()


@contextmanager
def another_thread_inside():
    inside, leave = threading.Event(), threading.Event()

    def work():
        with collected_later():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(60)
    yield
    leave.set()
    thread.join()


def test_the_last_thread_turns_it_on():
    with ExitStack() as stack:
        with collected_later():
            stack.enter_context(another_thread_inside())
        assert not gc.isenabled()
    assert gc.isenabled()


class Looks(mx.graph.Pass):
    def do_pass(self, graph):
        self.found = gc.isenabled()
        return graph


class Fails(mx.graph.Pass):
    def do_pass(self, graph):
        raise ValueError("no")


def test_binding_and_passes_are_such_blocks():
    looks = Looks()
    sym.exp(sym.Variable("x")).simple_bind(mx.cpu(), passes=[looks], x=(3,))
    assert not looks.found and gc.isenabled()
    sym.exp(sym.Variable("x")).optimize([looks])
    assert not looks.found and gc.isenabled()
    with pytest.raises(mx.MXNetError, match="pass 'fails' failed"):
        sym.exp(sym.Variable("x")).simple_bind(mx.cpu(), passes=[Fails], x=(3,))
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_does_not_wait_for_threads_that_it_does_not_have():
    with another_thread_inside():
        child = os.fork()
        if not child:
            os._exit(0 if gc.isenabled() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert not gc.isenabled()


def test_binding_leaves_no_cycles_behind():
    """They would pile up while the collector waits."""

    def bound():
        y = sym.Variable("x")
        for k in range(300):
            y = (y * (1 + k / 1000), sym.tanh(y), y * y + 0.1)[k % 3]
        return y.simple_bind(mx.cpu(), "write", x=(3,))

    kept = [bound()]  # what is prepared once may be
    gc.collect()
    gc.disable()
    kept.append(bound())
    assert gc.collect() < 100


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "sqrt_of_sums"])
def test_a_recorded_plan_that_reads_its_result_goes_with_it(name):
    """Without the collector of cycles: what is recorded lives as long as its result."""

    def sqrt_of_sums(x):
        return mx.nd.sqrt(mx.nd.sum(mx.nd.square(x), axis=1))

    f = mx.graph.compiled(sqrt_of_sums) if name == "sqrt_of_sums" else getattr(mx.nd, name)
    x = mx.nd.ones((300, 200))
    x.attach_grad()
    used = []
    gc.disable()
    for _ in range(4):
        with mx.autograd.record():
            y = f(x)
        y.wait_to_read()
        del y
        used.append(mx.context.memory_stats()["in_use"])
    assert used[0] == used[-1]
