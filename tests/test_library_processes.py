"""Compiled libraries in threads, in child processes, and when the interpreter ends."""

import sys
import textwrap
import threading

import numpy as np
import pytest
from libraries_util import compiled, library, needs_compiler, variant  # noqa: F401
from processes import run_python

import mxop as mx

pytestmark = needs_compiler


def run(code, *sources):
    """Run code in a fresh interpreter, with the paths of compiled libraries as `paths`."""
    paths = [compiled(source) for source in sources]
    return run_python(f"paths = {paths!r}\nimport mxop as mx, numpy as np\n" + textwrap.dedent(code))


def in_threads(n, work):
    errors = []

    def guarded(k):
        try:
            work(k)
        except BaseException as problem:
            errors.append(problem)

    threads = [threading.Thread(target=guarded, args=(k,)) for k in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors[0]


def test_sixteen_threads_call_at_once(library):  # noqa: F811
    library("gemm_lib.cc")
    library("relu_lib.cc")
    library("kinds_lib.cc")

    def work(k):
        rng = np.random.default_rng(k)
        for turn in range(60):
            shape = (1 + turn % 3, 1 + k % 4)
            x = rng.standard_normal(shape).astype("float32")
            v = mx.nd.array(x)
            assert (mx.nd.my_relu(v).asnumpy() == np.maximum(x, 0)).all()
            assert mx.nd.my_noisy_relu(v).shape == shape
            np.testing.assert_allclose(mx.nd.lib_sum(v, v, scale=k + 1).asnumpy(), 2 * (k + 1) * x, rtol=1e-5)
            v.attach_grad()
            with mx.autograd.record():
                y = mx.nd.my_state_relu(v) + mx.nd.my_gemm(v, v.T).sum()
            y.backward()
            assert v.grad.shape == shape
            with pytest.raises(mx.MXNetError, match=f"thrown|stof|dim {k}|negative"):
                mx.nd.lib_bad(v, forward="throw") if turn % 2 else mx.nd.lib_bad(v, dim=-1 - k)

    in_threads(16, work)


def test_each_thread_gets_its_own_messages(library):  # noqa: F811
    library("kinds_lib.cc")
    x = mx.nd.ones((3,))

    def work(k):
        for _ in range(200):
            with pytest.raises(mx.MXNetError) as caught:
                mx.nd.lib_bad(x, dim=-(k + 1))
            assert str(caught.value).endswith(f"negative dimension, -{k + 1}")

    in_threads(8, work)


def test_threads_that_share_an_executor(library):  # noqa: F811
    library("kinds_lib.cc")
    x = mx.nd.ones((50, 50))
    executor = mx.sym.lib_sum(mx.sym.Variable("a"), mx.sym.Variable("b"), scale=2).bind(mx.cpu(), {"a": x, "b": x})

    def work(k):
        for _ in range(200):
            executor.forward()  # all write the same elements, so only the end counts

    in_threads(8, work)
    assert (executor.outputs[0].asnumpy() == 4).all()


def test_the_interpreter_lock_is_free_during_a_call(library):  # noqa: F811
    library("""#include "lib_api.h"
    #include <chrono>
    #include <thread>
    using namespace mxnet::ext;
    MXReturnValue nap(const std::unordered_map<std::string, std::string>& attrs, std::vector<MXTensor>* in,
                      std::vector<MXTensor>* out, const OpResource& res) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return MX_SUCCESS;
    }
    REGISTER_OP(lib_nap).setForward(nap, "cpu");
    """)
    import time

    x = mx.nd.ones((1,))
    start = time.perf_counter()
    in_threads(8, lambda k: mx.nd.lib_nap(x))
    assert time.perf_counter() - start < 8 * 0.3 * 0.6


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="no fork on this system")
def test_children_of_a_fork():
    said = run(
        """
        import os, warnings
        warnings.simplefilter("ignore")
        mx.library.load(paths[0], verbose=False)
        x = mx.nd.array([-1, 2, -3, 4])
        def check():
            assert mx.nd.my_relu(x).asnumpy().tolist() == [0, 2, 0, 4]
            assert mx.nd.my_noisy_relu(x).shape == (4,)
            v = mx.nd.array([-1, 2]); v.attach_grad()
            with mx.autograd.record():
                y = mx.nd.my_state_relu(v)
            y.backward()
            assert v.grad.asnumpy().tolist() == [0, 1]
        check()
        for _ in range(3):
            child = os.fork()
            if child == 0:
                check()
                mx.library.load(paths[1], verbose=False)  # a library that only the child has
                assert mx.nd.lib_sum(x, x).asnumpy().tolist() == [-2, 4, -6, 8]
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        check()
        assert not hasattr(mx.nd, "lib_sum")
        print("fine")
        """,
        "relu_lib.cc",
        "kinds_lib.cc",
    )
    assert said.endswith("fine")


def test_worker_processes():
    said = run(
        """
        import multiprocessing
        mx.library.load(paths[0], verbose=False)
        def work(k):
            return mx.nd.my_relu(mx.nd.array([-1, k])).asnumpy().tolist()
        if __name__ == "__main__":
            method = "fork" if "fork" in multiprocessing.get_all_start_methods() else None
            if method:
                with multiprocessing.get_context(method).Pool(2) as pool:
                    assert pool.map(work, range(1, 5)) == [[0, k] for k in range(1, 5)]
        print("fine")
        """,
        "relu_lib.cc",
    )
    assert said.endswith("fine")


@pytest.mark.parametrize(
    "ending",
    [
        "pass",
        "sys.exit(0)",
        "raise SystemExit",
        "import atexit; atexit.register(lambda: mx.nd.my_gemm(a, b).asnumpy())",
        "import threading; threading.Thread(target=lambda: [mx.nd.my_gemm(a, b) for _ in range(2000)]).start()",
        "import threading; threading.Thread(target=lambda: [mx.nd.my_gemm(a, b) for _ in range(10**9)], daemon=True).start()",
        "del mx; import gc; gc.collect()",
        "held = object.__new__(type('Held', (), {'__del__': lambda self: mx.nd.state_gemm(a, b)}))",
    ],
)
def test_the_interpreter_ends(ending):
    """No crash, whatever is alive then: states, symbols, executors, recorded calls, running threads."""
    said = run(
        f"""
        import sys
        mx.library.load(paths[0], verbose=False)
        mx.library.load(paths[1], verbose=False)
        a = b = mx.nd.ones((4, 4))
        a.attach_grad()
        with mx.autograd.record():
            recorded = mx.nd.state_gemm(a, b)
        executor = mx.sym.state_gemm(mx.sym.Variable("a"), mx.sym.Variable("b")).bind(mx.cpu(), {{"a": a, "b": b}})
        executor.forward()
        out = mx.sym.log(mx.sym.exp(mx.sym.Variable("a"))).optimize_for("myProp", {{"a": a}})
        second = out.bind(mx.cpu(), {{"a": a}})
        second.forward()
        print("end of the program", flush=True)
        {ending}
        """,
        "gemm_lib.cc",
        "subgraph_lib.cc",
    )
    assert "end of the program" in said


def test_two_libraries_keep_apart(library, variant):  # noqa: F811
    """Functions and variables of the same names, and the header's own, are each library's own."""
    source = """
    int counter = 0;
    std::string name = std::getenv("VARIANT");
    const char* who() { return name.c_str(); }
    MXReturnValue count(const std::unordered_map<std::string, std::string>& attrs, std::vector<MXTensor>* in,
                        std::vector<MXTensor>* out, const OpResource& res) {
      out->at(0).data<float>()[0] = 100 * std::stoi(who()) + ++counter;
      return MX_SUCCESS;
    }
    static bool announce() {
      if (is("1")) { REGISTER_OP(lib_count1).setForward(count, "cpu"); }
      if (is("2")) { REGISTER_OP(lib_count2).setForward(count, "cpu"); }
      if (is("3")) { REGISTER_OP(lib_count3).setForward(count, "cpu"); }
      return true;
    }
    static bool announced = announce();
    MXReturnValue initialize(int version) { return MX_SUCCESS; }
    """
    for k in (1, 2, 3):
        mx.library.load(variant(source, str(k)), verbose=False)
    x = mx.nd.ones((1,))
    calls = [(mx.nd.lib_count1, 101), (mx.nd.lib_count2, 201), (mx.nd.lib_count3, 301), (mx.nd.lib_count1, 102)]
    assert [f(x).asscalar() for f, _ in calls] == [want for _, want in calls]


def test_nothing_is_left_behind_by_calls(library):  # noqa: F811
    """Memory does not grow with the number of calls, of parameters, of states or of failures."""
    resource = pytest.importorskip("resource")
    library("kinds_lib.cc")
    x = mx.nd.ones((1000,))
    x.attach_grad()

    def work(n):
        for k in range(n):
            mx.nd.lib_sum(x, x, scale=k)
            mx.nd.lib_shifter(x)
            mx.nd.lib_bad(x, alloc=10000)
            with mx.autograd.record():
                y = mx.nd.lib_cube(x)
            y.backward()
            with pytest.raises(mx.MXNetError):
                mx.nd.lib_bad(x, forward="throw")

    unit = 1 if sys.platform == "darwin" else 1024
    work(6000)  # until the pool that looks for faults holds back as many freed blocks as it ever will
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    work(3000)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit - before
    assert grown < 8 << 20, grown
