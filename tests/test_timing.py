"""What is timed is computed: calls are waited for, and figures of work that was not done are refused."""

from pathlib import Path

import numpy as np
import pytest

from mxop import autograd, nd
from mxop._core import lazy
from mxop.cli.timing import JUDGED, Way, difference, each, ended, spoil, timed

SIZE = 1 << 19  # calls on so many elements wait until somebody reads them
VALUES = np.linspace(-1, 1, SIZE, dtype="float32")
SQUARED = [VALUES**2]
BOTH = [VALUES**2, 2 * VALUES]


def measured(call, expected, **more):
    """Return what is wrong with a call, None when nothing is."""
    return timed({"a": Way(call)}, expected, rounds=3, **more).wrong.get("a")


def trained(x):
    with autograd.record():
        y = x * x
    y.backward()
    return y, x.grad


@pytest.fixture
def x():
    x = nd.array(VALUES)
    x.attach_grad()
    return x


def test_calls_are_made_in_turn_and_each_round_begins_with_another():
    calls = []
    ways = {name: Way(lambda name=name: calls.append(name)) for name in "abc"}
    found = timed(ways, None, rounds=3)
    assert "".join(calls[-9:]) == "abcbcacab" and set(found.seconds) == {"a", "b", "c"}
    assert not found.wrong and not found.too_fast


def test_a_call_is_over_when_its_results_are_computed(x):
    kept = x * x
    assert lazy.waiting() == 1  # to be computed when somebody reads it
    del kept
    assert lazy.waiting() == 0  # never
    waiting = []
    found = timed({"a": Way(lambda: trained(x))}, BOTH, rounds=3, rest=lambda: waiting.append(lazy.waiting()))
    assert waiting == [0] * 3 and not found.wrong


def test_small_calls_are_not_wrapped():
    few, many = nd.ones(8), nd.ones(SIZE)
    call = few.exp
    assert ended(call) is call
    assert ended(many.exp) is not many.exp
    first = lambda: (many * many)[:4]  # noqa: E731  (a small part of a large result, which waits)
    wrapped = ended(first)
    assert wrapped is not first
    kept = wrapped()
    assert lazy.waiting() == 0 and kept.shape == (4,)


def test_a_gradient_alone_is_not_forward_and_backward(x):
    assert measured(lambda: trained(x), BOTH) is None
    assert measured(lambda: trained(x)[1], BOTH) == "returns 1 of 2 results"


def test_calls_whose_results_nobody_waits_for(x):
    """As the demonstration was: the gradient is there for whoever reads it, after the clock has stopped."""
    assert measured(lambda: trained(x) and None, BOTH).startswith("leaves ")
    other = nd.concat(nd.array(VALUES), nd.array(VALUES), dim=0)
    kept = []

    def hidden():
        squared = x * x
        kept[:] = [other * 3]  # of another size: no part of the same program
        return squared

    assert measured(hidden, SQUARED) == "leaves 1 calls undone"


@pytest.mark.parametrize("array", [np.asarray, nd.array])
def test_results_that_were_kept_from_another_call(array):
    kept = array(VALUES**2)
    told = measured(lambda: kept, SQUARED)
    assert told is not None and told.startswith("result 0: nan where ")
    whole = nd.array(VALUES)
    assert measured(lambda: nd.square(whole, out=kept) if array is nd.array else np.square(VALUES, out=kept), SQUARED) is None


@pytest.mark.parametrize(("results", "told"), [
    ([np.ones(3)], "result 0: 1 where 2 is right, 33% of it wrong"), ([np.ones(2)], "result 0 has 2 elements, not 3"),
    ([], "returns 0 of 1 results"), ([np.array([1, np.nan, 2])], "result 0: nan where 1 is right, 33% of it wrong"),
    ([np.array([1, 1, 2.001])], None),
])  # fmt: skip
def test_what_is_said_of_results(results, told):
    assert difference(results, [np.array([1, 1, 2])], 2e-3) == told


def test_calls_that_change_their_inputs_are_compared_from_the_first_state(x):
    def step():
        x[:] = x * 2
        return x

    def restore():
        x[:] = VALUES

    assert not timed({"a": Way(step, restore)}, [2 * VALUES], rounds=3).wrong
    assert timed({"a": Way(step)}, [2 * VALUES], rounds=3).wrong


def test_a_rate_that_no_memory_has_is_marked(x):
    ways = {"cheat": Way(lambda: VALUES), "square": Way(lambda: x * x)}
    found = timed(ways, None, nbytes=8 * SIZE, rounds=5)
    assert found.too_fast == ["cheat"] and found.seconds["copy"] > 0
    assert not timed(ways, None, nbytes=JUDGED - 1, rounds=3).too_fast  # a call costs more than its memory


def test_spoiling():
    arrays = np.ones(2), np.ones(2, "int32"), nd.ones(2), nd.ones(2, dtype="uint8"), nd.ones(1), np.float32(1), 3
    spoil([arrays[:3], arrays[3:]])
    assert np.isnan(arrays[0]).all() and arrays[1].tolist() == [113, 113] and np.isnan(arrays[2].asnumpy()).all()
    assert arrays[3].asnumpy().tolist() == [113, 113] and np.isnan(arrays[4].asnumpy()).all()
    assert list(each([(1, [2]), 3])) == [1, 2, 3]


def test_the_tool_for_gpus(simulated_gpu, monkeypatch, tmp_path):
    """On the simulated GPU: a row is compared in all of its results, and its rate with that of a copy."""
    import cupy

    monkeypatch.syspath_prepend(Path(__file__).parent.parent / "tools")
    for name in ("memcpyAsync", "deviceSynchronize"):  # a copy that takes its time
        monkeypatch.setattr(cupy.cuda.runtime, name, lambda *given: given and np.ones(1 << 20).sum(), raising=False)
    import on_gpu

    monkeypatch.setattr(on_gpu, "ROUNDS", 3)
    monkeypatch.setattr(on_gpu, "LEAST", 0.0)
    row = on_gpu.Row("squares", [(SIZE,)], lambda x: x * x, cupy=lambda x: x * x, moved=8)
    row.measure()
    assert set(row.found) == {"mxop", "cupy"} and "| squares |" in row.line(1e9)
    wrong = on_gpu.Row("squares", [(8,)], lambda x: (x * x, x * 2), cupy=lambda x: (x * x, x * 3))
    with pytest.raises(AssertionError, match="mxop result 1: "):
        wrong.measure()
    partly = on_gpu.Row("squares", [(8,)], lambda x: x * x, cupy=lambda x: (x * x, x * 2))
    with pytest.raises(AssertionError, match="mxop returns 1 of 2 results"):
        partly.measure()
    monkeypatch.setattr(on_gpu, "ROUNDS", 1)
    rows = on_gpu.rows(300_000, (128, 64), 256, 32, (2, 4, 6, 6))
    for row in rows:
        row.torch = None
        row.measure()
    assert len(rows) > 40 and all(row.found["mxop"] > 0 for row in rows)
    pytest.importorskip("matplotlib")
    on_gpu.draw(rows, "a chart", tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").stat().st_size > 1000


def test_benchmarks_of_asv(monkeypatch):
    """A timed method is waited for, and what one more call returns is compared when asv has finished."""
    monkeypatch.syspath_prepend(Path(__file__).parent.parent / "asv_bench")
    from benchmarks import dispatch, executor
    from benchmarks.timed import timed as measured_by_asv

    @measured_by_asv
    class Cheats:
        def setup(self):
            self.x = nd.array(VALUES)
            self.x.attach_grad()

        def expected(self, name):
            return BOTH

        def time_both(self):
            return trained(self.x)

        def time_half(self):
            return trained(self.x)[1]

        def time_nothing(self):
            trained(self.x)

    def run(cls, name, *params):
        benchmark = cls()
        benchmark.setup(*params)
        getattr(benchmark, name)(*params)
        assert lazy.waiting() == 0
        benchmark.teardown(*params)

    run(Cheats, "time_both")
    with pytest.raises(AssertionError, match=r"Cheats\.time_half returns 1 of 2 results"):
        run(Cheats, "time_half")
    monkeypatch.setattr(lazy, "waiting", lambda: 0)
    with pytest.raises(AssertionError, match=r"Cheats\.time_nothing returns 1 of 2 results"):
        run(Cheats, "time_nothing")
    monkeypatch.undo()
    run(executor.Chain, "time_forward_backward", 1000)
    for cls in (dispatch.Call, dispatch.Written, dispatch.Arrays, dispatch.Composite, dispatch.Gradient):
        for name in vars(cls):
            if name.startswith("time_"):
                run(cls, name)
