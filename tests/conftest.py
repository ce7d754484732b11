"""What all tests share: tests for a GPU run only where there is one, and settings are put back after each test."""

import gc
import os
import sys
import warnings

import numpy as np
import processes
import pytest
from cuda_compilers import find_host

import mxop as mx
from mxop._core import kinds, launched, plans
from mxop._gpu import compiled, device, launch
from mxop._kernels import instruction_sets, interp, memory

if "site-packages" not in processes.ROOT:  # built in place: what tests start imports this copy, wherever it runs
    os.environ["PYTHONPATH"] = os.pathsep.join(p for p in (processes.ROOT, os.environ.get("PYTHONPATH")) if p)


def pytest_collection_modifyitems(config, items):
    chosen = config.getoption("-m") or ""
    if "gpu" not in chosen or mx.num_gpus() == 0:
        reason = "needs a CUDA device and CuPy" if "gpu" in chosen else "for machines with a GPU: python -m pytest -m gpu"
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason=reason))
    if memory.debugging():  # the pool looks for faults and keeps nothing for reuse
        plain = [item for item in items if item.get_closest_marker("plain_pool")]
        config.hook.pytest_deselected(items=plain)
        items[:] = [item for item in items if item not in plain]
    if "slow" not in chosen:
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="takes minutes: python -m pytest -m slow"))


def pytest_collection_finish(session):
    """Set the tests and modules aside: collections would go through a million objects each time, and find none to free."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def settings_restored():
    """Put back what a test may have changed for all that follow, also when it fails."""
    threads, sizes, limit = mx.context.get_num_threads(), interp.tune(), mx.context.memory_stats()["limit"]
    isa = instruction_sets.in_use()
    recording, training = mx.autograd.is_recording(), mx.autograd.is_training()
    yield
    mx.autograd.set_recording(recording)
    mx.autograd.set_training(training)
    mx.context.set_num_threads(threads)
    interp.tune(**sizes)
    mx.context.set_memory_limit(limit)
    used(isa)


@pytest.fixture
def anew():
    """Drop all that was prepared, of graphs, composites and compiled functions; return the function that does it."""
    mx.graph.switch_passes()  # whatever switches: the next call is prepared by other passes
    return mx.graph.switch_passes


@pytest.fixture
def kept(anew):
    """Return the function that lists the plans that are kept of composites and compiled functions: none, at first."""
    return plans.kept


@pytest.fixture
def prepared():
    """Return a list that grows by the operators of each graph that is optimized from now on."""
    seen = []

    class Seen(mx.graph.Pass):
        name = "seen_by_a_test"

        def do_pass(self, graph):
            seen.append([node.op.name for node in graph.nodes if node.op is not None])
            return graph

    mx.graph.register_pass(Seen)
    yield seen
    mx.graph.unregister_pass("seen_by_a_test")


@pytest.fixture
def rng():
    """A generator with a fixed seed."""
    return np.random.default_rng(1234)


def used(isa):
    """Use an instruction set, until the test ends, and return its name."""
    if isa != instruction_sets.in_use():
        instruction_sets.use(isa)
    return isa


@pytest.fixture(params=instruction_sets.available())
def level(request):
    """One of the instruction sets that this machine has, in use."""
    return used(request.param)


@pytest.fixture
def levels():
    """Return the instruction sets that this machine has, the best first; each is in use while it is looked at."""
    return map(used, instruction_sets.available())


@pytest.fixture(scope="session")
def tune():
    """Set sizes that decide about threads, non-temporal stores and blocks, until the test ends; return all."""
    return interp.tune


@pytest.fixture
def kernels_made(monkeypatch):
    """Return the number of kernels that were made of formulas for GPUs; there is none when the test begins."""
    for module, name in ((launch, "_plans"), (compiled, "_modules"), (compiled, "_kernels")):
        monkeypatch.setattr(module, name, {})
    return lambda: len(compiled._kernels)


@pytest.fixture
def simulated_gpu(monkeypatch, kernels_made):
    """The first GPU, simulated on this machine's processor."""
    if find_host() is None:
        pytest.skip("the simulated GPU needs a C++ compiler")
    import fake_cupy

    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.module())
    for name, module in fake_cupy.sparse_modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(device, "_cupy", None)
    monkeypatch.setattr(device, "_checked", set())
    forget_kernels()
    yield mx.gpu(0)
    forget_kernels()


def forget_kernels():
    """Drop what holds kernels of the simulated device: none may run on another."""
    for module in (launched, plans, kinds):
        module.forget()


@pytest.fixture(params=["simulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def gpu(request):
    """The first GPU: a simulated one, and the machine's."""
    return request.getfixturevalue("simulated_gpu") if request.param == "simulated" else mx.gpu(0)


@pytest.fixture
def own():
    """Give operators that are made in a test their records, and let them go after it."""
    from mxop import records

    made = []

    def keep(op, reference=None, **details):
        made.append(op.name)
        if reference is not None or details:
            records.record(op.name, reference, **details)
        return op

    yield keep
    for name in made:
        mx.op.unregister(name)
        records._users.pop(name, None)


@pytest.fixture
def scratch():
    """Names of operators that the test registered are removed again."""
    before = set(mx.op.names())
    yield
    for name in set(mx.op.names()) - before:
        if mx.op.find(name) is not None and not name.startswith("_backward_"):
            mx.op.unregister(name)


@pytest.fixture
def built_in_quadratic():
    """Register the operator quadratic again where a demonstration, which is a user's program, has defined its own."""
    built_in = mx.op.get("_contrib_quadratic")
    yield
    if mx.op.get("_contrib_quadratic") is not built_in:
        mx.op.register(built_in, override=True)


@pytest.fixture
def fresh_names():
    """Let nodes without a name have those that a new program gives them."""
    with mx.name.NameManager():
        yield


@pytest.fixture
def quiet():
    """Ignore warnings about operators that have no form for sparse arrays."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
