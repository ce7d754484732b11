"""The profiler: what it records, what it writes, what it says, and that it is gone when it is off."""

import itertools
import json
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import mxop as mx
from mxop import profiler
from mxop._core import core, profile
from mxop.profiler import control


@pytest.fixture
def path(tmp_path):
    """A file that the profiler is set to; afterwards it is as if it had never run."""
    control._profiler.trace = None
    profile.forget()
    yield str(tmp_path / "trace.json")
    profiler.set_state("stop")
    control._profiler.trace = None
    profiler.set_config()
    profile.forget()


def configured(path, **settings):
    profiler.set_config(filename=path, **({"continuous_dump": False, "aggregate_stats": True} | settings))


def events(path, category=None):
    found = json.loads(Path(path).read_text())["traceEvents"]
    return [e for e in found if category is None or e.get("cat") == category]


def names(path, category="operator"):
    return [e["name"] for e in events(path, category) if e["ph"] != "e"]


def counted(category="operator"):
    return {name: row["Count"] for name, row in json.loads(profiler.dumps(format="json"))["Time"].get(category, {}).items()}


def check_schema(event):
    """Raise unless an event is one of Chrome's trace format."""
    assert set(event) <= {"name", "ph", "cat", "ts", "dur", "pid", "tid", "args", "id", "s"}
    assert isinstance(event["name"], str) and event["name"]
    assert all(type(event[k]) is int and 0 <= event[k] < 1 << 53 for k in ("pid", "tid"))
    if event["ph"] == "M":
        assert event["name"] in ("process_name", "thread_name") and isinstance(event["args"]["name"], str)
        return
    assert isinstance(event["cat"], str) and event["ts"] >= 0
    assert event["ph"] in "XCbei"
    assert (event["ph"] == "X") == ("dur" in event) and event.get("dur", 0) >= 0
    assert (event["ph"] in "be") == ("id" in event)
    assert event["ph"] != "C" or all(isinstance(v, int) for v in event["args"].values())
    assert event["ph"] != "i" or event["s"] in "gpt"


def program():
    """Use everything that is recorded."""
    x = mx.nd.ones((8,))
    x.attach_grad()
    with mx.autograd.record():
        y = (mx.nd.sin(x) * x).sum()
    y.backward()
    s = mx.sym.sort(mx.sym.sin(mx.sym.Variable("x") * 2, name="wave"), name="weights")
    executor = s.simple_bind(mx.cpu(), x=(3,))
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((3,)))
    domain = profiler.Domain("dom")
    task, frame, event = domain.new_task("tsk"), domain.new_frame("frm"), profiler.Event("evt")
    for span in (task, frame, event):
        span.start()
    for span in (task, frame, event):
        span.stop()
    counter = domain.new_counter("cnt", 5)
    counter += 2
    counter -= 1
    counter.decrement(3)
    counter.increment()
    for scope in ("global", "process", "thread", "task", "marker"):
        domain.new_marker('a "mark"').mark(scope)


# ---- what is recorded ------------------------------------------------------------------------------------------------
def test_trace_has_the_schema_of_viewers(path):
    configured(path, profile_all=True)
    profiler.set_state("run")
    program()
    profiler.set_state("stop")
    profiler.dump()
    told = json.loads(Path(path).read_text())
    assert told["displayTimeUnit"] == "ms"
    for event in told["traceEvents"]:
        check_schema(event)
    assert {e["ph"] for e in told["traceEvents"]} == set("MXCbei")
    assert {e["cat"] for e in told["traceEvents"] if "cat" in e} == {
        "operator", "MXOP_API", "Device Storage", "dom", "dom,frame", "dom,instant_marker", "event"
    }  # fmt: skip
    begins = {e["id"] for e in told["traceEvents"] if e["ph"] == "b"}
    assert begins == {e["id"] for e in told["traceEvents"] if e["ph"] == "e"} and len(begins) == 3
    assert [e["args"]["cnt"] for e in told["traceEvents"] if e["name"] == "cnt"] == [5, 7, 6, 3, 4]
    assert [e["s"] for e in told["traceEvents"] if e["name"] == 'a "mark"'] == ["g", "p", "t", "p", "p"]


def test_calls_and_the_tape(path):
    configured(path, profile_symbolic=False)
    profiler.set_state("run")
    program()
    profiler.set_state("stop")
    counts = counted()
    assert counts["sin"] == counts["broadcast_mul"] == counts["sum"] == counts["_backward_sin"] == 1
    assert counts["_backward_broadcast_mul"] == counts["_backward_sum"] == 1
    assert counted("MXOP_API") == {
        "Executor.bind": 1, "Executor.forward": 1, "Executor.backward": 1, "autograd.backward": 1
    }  # fmt: skip


def test_every_kind_of_call_is_counted_once(path):
    x, y = mx.nd.ones((4, 3)), mx.nd.ones((4, 3), dtype="float64")
    configured(path)
    profiler.set_state("run")
    x + x, x * 2, -x, x + mx.nd.ones((1, 3)), mx.nd.exp(x), mx.nd.exp(y, out=y), mx.nd.ones((3000,)) - 1
    mx.nd.sum(x, axis=1), x.transpose(), mx.nd.sort(x), mx.nd.dot(x, x.T), mx.nd.cast(x, "int32") + 1
    profiler.set_state("stop")
    counts = counted()
    want = {"broadcast_add": 2, "_mul_scalar": 2, "exp": 2, "_minus_scalar": 1, "sum": 1, "transpose": 2, "sort": 1,
            "dot": 1, "_plus_scalar": 1}  # fmt: skip
    assert {name: counts.get(name) for name in want} == want


def test_steps_of_executors_have_node_and_formula(path):
    x = mx.sym.Variable("x")
    y = mx.sym.sort(mx.sym.sin(x * 2, name="wave"), name="weights")
    executor = y.simple_bind(mx.cpu(), "null", x=(2, 3))
    configured(path, profile_imperative=False, profile_memory=False, profile_api=False)
    profiler.set_state("run")
    for _ in range(3):
        executor.forward()
    mx.nd.sin(mx.nd.ones((2,)))  # imperative
    profiler.dump()
    told = executor.explain()
    assert names(path) == [row.operator for row in told] * 3
    steps = events(path, "operator")[: len(told)]
    assert [s["args"]["formula"] for s in steps] == ["; ".join(row.formula) for row in told]
    assert [s["args"]["node"] for s in steps] == [row.members[-1] for row in told]
    assert steps[-1]["args"]["node"] == "weights"


def test_a_step_that_calls_its_operator_counts_once(path):
    """What overlaps cannot be prepared: the step is a call of the operator, as users make it."""
    x, op = mx.nd.ones((3,)), mx.op.get("sum")
    call = core.prepare(op, op.parse({"axis": 0, "keepdims": True}), [x], [x[:1]], [1])
    assert type(call).__name__ == "FunctionCall"
    schedule = core.Schedule([call], None, lambda: [(op.name, {"node": "total"})])
    configured(path)
    profiler.set_state("run")
    schedule.run()
    assert counted() == {"sum": 1} and x.asnumpy()[0] == 3
    mx.nd.sum(x)
    assert counted() == {"sum": 2}


def test_large_groups_have_short_names(path):
    x = y = mx.sym.Variable("x")
    for _ in range(10):
        y = mx.sym.sin(y) * x
    executor = y.simple_bind(mx.cpu(), "null", x=(3,))
    configured(path)
    profiler.set_state("run")
    executor.forward()
    profiler.set_state("stop")
    (name,) = counted()
    assert name.endswith("and 14 more")


def test_custom_operators_and_functions(path):
    class Twice(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], mx.nd.sqrt(in_data[0]) + mx.nd.zeros(3) * mx.nd.ones(3, dtype="float32"))

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0])

    @mx.operator.register("profiler_twice")
    class TwiceProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Twice()

    class Mine(mx.autograd.Function):
        def forward(self, x):
            return x * 2

        def backward(self, dy):
            return dy * 2

    x = mx.nd.ones((3,))
    x.attach_grad()
    configured(path)
    profiler.set_state("run")
    with mx.autograd.record():
        y = Mine()(mx.nd.Custom(x, op_type="profiler_twice"))
    y.backward()
    profiler.set_state("stop")
    counts = counted()
    assert counts["Custom"] == counts["_backward_Mine"] == 1 and counts["_mul_scalar"] == 2
    inside = counted("Custom Operator")  # MXNet's names
    assert inside["profiler_twice::pure_python"] == inside["_backward_profiler_twice::pure_python"] == 1
    assert [inside[f"profiler_twice::{name}"] for name in ("sqrt", "_zeros", "_ones")] == [1, 1, 1]
    assert "sqrt" not in counts


def test_memory_is_what_the_pool_holds(path):
    before = mx.context.memory_stats()["in_use"]
    configured(path, profile_imperative=False)
    profiler.set_state("run")
    x = mx.nd.ones((1 << 16,))
    held = mx.context.memory_stats()["in_use"]
    del x
    profiler.set_state("stop")
    profiler.dump()
    values = [e["args"]["Memory: cpu/0"] for e in events(path, "Device Storage")]
    assert held - before >= 1 << 18 and held in values and values[-1] < held
    row = json.loads(profiler.dumps(format="json"))["Memory"]["Device Storage"]["Memory: cpu/0"]
    assert row["Count"] == len(values) and row["Max"] == pytest.approx(max(values) / 1000)


@pytest.mark.parametrize("kind", ["imperative", "symbolic", "memory", "api"])
def test_each_kind_can_be_left_out(path, kind):
    configured(path, **{f"profile_{kind}": False})
    profiler.set_state("run")
    program()
    profiler.dump()
    found = {e.get("cat") for e in events(path)}
    calls = set(names(path))
    assert ("Device Storage" in found) == (kind != "memory") and ("MXOP_API" in found) == (kind != "api")
    assert ("broadcast_mul" in calls) == (kind != "imperative") and ("_mul_scalar sin" in calls) == (kind != "symbolic")
    assert "dom" in found  # what a program times itself always is


def test_everything_wins_over_leaving_out(path):
    configured(path, profile_all=True, profile_memory=False, profile_imperative=False)
    profiler.set_state("run")
    mx.nd.sin(mx.nd.ones((2,)))
    profiler.dump()
    assert {"operator", "Device Storage"} <= {e.get("cat") for e in events(path)}


def test_errors_are_raised_as_ever(path):
    configured(path)
    profiler.set_state("run")
    with pytest.raises(mx.MXNetError, match="broadcast_add"):
        mx.nd.ones((2,)) + mx.nd.ones((3,))
    with pytest.raises(TypeError, match="sin"):
        mx.nd.sin(3)
    mx.nd.cos(mx.nd.ones((2,)))
    profiler.dump()
    assert names(path)[-1] == "cos"


# ---- running and stopping ---------------------------------------------------------------------------------------------
def test_nothing_is_recorded_while_it_does_not_run(path):
    x = mx.nd.ones((2,))
    configured(path)
    mx.nd.tan(x)
    task = profiler.Task(profiler.Domain("d"), "over a pause")
    profiler.set_state("run")
    task.start()
    profiler.pause()
    mx.nd.exp(x)
    quiet = profiler.Task(profiler.Domain("d"), "while paused")
    quiet.start()
    quiet.stop()
    profiler.Marker(profiler.Domain("d"), "m").mark()
    profiler.resume()
    task.stop()
    mx.nd.log(x)
    profiler.set_state("stop")
    mx.nd.sqrt(x), program()
    assert counted() == {"log": 1} and counted("d") == {"over a pause": 1}
    profiler.dump()
    assert names(path) == ["log"] and names(path, "d") == ["over a pause"]
    profiler.resume()
    mx.nd.sqrt(x)
    assert counted() == {"log": 1}


def test_dumps_add_to_the_file_until_one_is_the_last(path):
    x = mx.nd.ones((2,))
    configured(path)
    with pytest.raises(mx.MXNetError, match=r"Profiler hasn't been run\. Config and start profiler first"):
        profiler.dump()
    profiler.set_state("run")
    for function in (mx.nd.sin, mx.nd.cos):
        function(x)
        profiler.dump(finished=False)
        mx.nd.tan(x)
    assert names(path) == ["sin", "tan", "cos"]
    profiler.dump()  # which also stops
    mx.nd.exp(x)
    assert names(path) == ["sin", "tan", "cos", "tan"]
    assert len([e for e in events(path) if e["ph"] == "M"]) == 2
    with pytest.raises(mx.MXNetError, match="hasn't been run"):
        profiler.dump()
    profiler.set_state("run")
    mx.nd.log(x)
    profiler.dump()
    assert names(path) == ["log"]


def test_a_file_that_went_away_is_begun_anew(path):
    configured(path)
    profiler.set_state("run")
    mx.nd.sin(mx.nd.ones((2,)))
    profiler.dump(False)
    os.remove(path)
    mx.nd.cos(mx.nd.ones((2,)))
    profiler.dump(False)
    assert "cos" in names(path) and "sin" not in names(path)
    assert [e["args"]["name"] for e in events(path) if e["name"] == "thread_name"] == [threading.current_thread().name]


def test_a_file_that_cannot_be_written_is_an_error_that_loses_nothing(path, tmp_path):
    configured(str(tmp_path / "no folder" / "x.json"))
    profiler.set_state("run")
    mx.nd.sin(mx.nd.ones((2,)))
    with pytest.raises(mx.MXNetError, match=r"profiler: cannot write .*no folder"):
        profiler.dump(False)
    configured(path)
    profiler.dump()
    assert "sin" in names(path)


def test_regular_dumps(path):
    profiler.set_config(filename=path, dump_period=0.02)
    profiler.set_state("run")
    mx.nd.sin(mx.nd.ones((2,)))
    for _ in range(500):
        try:
            if os.path.exists(path) and "sin" in names(path):
                break
        except ValueError:  # it is being written
            pass
        time.sleep(0.02)
    assert "sin" in names(path)
    mx.nd.cos(mx.nd.ones((2,)))
    profiler.dump()
    assert "cos" in names(path)
    for _ in range(500):
        if not any(t.name == "mxop profiler" for t in threading.enumerate()):
            break
        time.sleep(0.02)
    assert not any(t.name == "mxop profiler" for t in threading.enumerate())


def test_another_file_while_it_runs(path, tmp_path):
    configured(path)
    profiler.set_state("run")
    x = mx.nd.ones((2,))
    mx.nd.sin(x)
    profiler.dump(False)
    mx.nd.cos(x)
    other = str(tmp_path / "other.json")
    configured(other)
    mx.nd.tan(x)
    profiler.dump()
    assert names(path)[-2:] == ["sin", "cos"] and names(other) == ["tan"]


def test_memory_of_the_profiler_is_bounded(path):
    configured(path, profile_memory=False)
    before = profile.most_events(5000)
    try:
        x = mx.nd.ones((2,))
        profiler.set_state("run")
        for _ in range(5007):
            mx.nd.sin(x)
        assert counted()["sin"] == 5007  # the table knows all of them
        profiler.dump(False)
        assert len(events(path, "operator")) == 5000
        assert events(path)[-1]["name"].startswith("7 events were dropped")
        mx.nd.cos(x)
        profiler.dump()
        assert names(path)[-1] == "cos" and len(events(path, "profiler")) == 1
    finally:
        assert profile.most_events(before) == 5000
    assert before == 1 << 20


def test_threads(path):
    """Every call is counted once, under the thread that made it."""
    configured(path, profile_memory=False, profile_api=False)
    executor = mx.sym.sort(mx.sym.Variable("x")).simple_bind(mx.cpu(), "null", x=(4, 4))
    executor.forward()
    profile.take()
    profiler.set_state("run")
    barrier = threading.Barrier(8)

    def work():
        x = mx.nd.ones((8,))
        barrier.wait()
        for _ in range(500):
            mx.nd.sin(x)

    def dumps():
        barrier.wait()
        for _ in range(20):
            profiler.dump(False)
            profiler.dumps()

    threads = [threading.Thread(target=work, name=f"worker {i}") for i in range(7)] + [threading.Thread(target=dumps)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    profiler.dump()
    assert counted()["sin"] == 3500
    called = {e["args"]["name"]: e["tid"] for e in events(path) if e["name"] == "thread_name"}
    for i in range(7):
        mine = [e for e in events(path, "operator") if e["tid"] == called[f"worker {i}"] and e["name"] == "sin"]
        assert len(mine) == 500
        assert all(a["ts"] + a["dur"] <= b["ts"] + 0.002 for a, b in itertools.pairwise(mine))


def test_times_are_those_of_the_clock(path):
    x = mx.nd.ones((1 << 18,))
    configured(path, profile_memory=False)
    profiler.set_state("run")
    begun = time.perf_counter()
    for _ in range(20):
        mx.nd.sin(x)
    taken = time.perf_counter() - begun
    profiler.dump()
    spans = events(path, "operator")
    assert 0.5 * taken < sum(e["dur"] for e in spans) / 1e6 <= taken
    assert spans[-1]["ts"] + spans[-1]["dur"] - spans[0]["ts"] <= 1.001e6 * taken
    row = json.loads(profiler.dumps(format="json"))["Time"]["operator"]["sin"]
    assert row["Total"] == pytest.approx(sum(e["dur"] for e in spans) / 1000, rel=1e-3)
    assert row["Min"] <= row["Avg"] <= row["Max"] and row["Avg"] == pytest.approx(row["Total"] / 20)


# ---- tables -----------------------------------------------------------------------------------------------------------
TABLE = """
Profile Statistics:
\tNote the difference in units for different entries.
Device Storage
=================
Name                          Total Count    Min Use  (kB)    Max Use  (kB)    Avg Use  (kB)
----                          -----------    -------------    -------------    -------------
Memory: cpu/0                          23           0.0320           0.2880           0.1280

operator
=================
Name                          Total Count        Time (ms)    Min Time (ms)    Max Time (ms)    Avg Time (ms)
----                          -----------        ---------    -------------    -------------    -------------
sin                                     3           0.0190           0.0020           0.0090           0.0063
_identity_with_attr_like_rhs               1           0.0070           0.0070           0.0070           0.0070

"""


def test_table_is_that_of_mxnet():
    rows = {"operator": {"_identity_with_attr_like_rhs": (1, 7000, 7000, 7000), "sin": (3, 19000, 2000, 9000)},
            "Device Storage": {"Memory: cpu/0": (23, 23 * 128, 32, 288)}}  # fmt: skip
    assert control.table.as_text(rows, "total", False) == TABLE


@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("by, order", [("total", "cab"), ("avg", "abc"), ("min", "acb"), ("max", "bac"), ("count", "cba")])
def test_sorting(by, order, ascending):
    rows = {"operator": {"a": (1, 10, 10, 10), "b": (2, 9, 1, 15), "c": (9, 30, 3, 8)}}
    want = list(reversed(order)) if ascending else list(order)
    assert list(json.loads(control.table.as_json(rows, by, ascending))["Time"]["operator"]) == want
    lines = control.table.as_text(rows, by, ascending).splitlines()
    assert [line[0] for line in lines if line[:2] in ("a ", "b ", "c ")] == want


def test_reset_and_nothing(path):
    profiler.set_config(filename=path)
    profile.tables(True)
    assert profiler.dumps() == profiler.dumps(format="json") == ""
    configured(path)
    assert profiler.dumps() == "\nProfile Statistics:\n\tNote the difference in units for different entries.\n"
    profiler.set_state("run")
    mx.nd.sin(mx.nd.ones((2,)))
    assert counted()["sin"] == 1 and "\nsin " in profiler.dumps(reset=True)
    assert counted() == {}
    mx.nd.cos(mx.nd.ones((2,)))
    assert "cos" in counted() and "sin" not in counted()


def test_counters_have_values_not_times(path):
    configured(path)
    profiler.set_state("run")
    counter = profiler.Domain("d").new_counter("c", 10)
    counter -= 20
    row = json.loads(profiler.dumps(format="json"))["Counter"]["d,counter"]["c"]
    assert row == {"Count": 2, "Min": -10.0, "Max": 10.0, "Avg": 0.0} and "Avg Value" in profiler.dumps()


# ---- wrong use --------------------------------------------------------------------------------------------------------
D = profiler.Domain("d")
WRONG = [
    (lambda: profiler.set_config(foo=1), "Cannot find argument 'foo', Possible Arguments:.*aggregate_stats"),
    (lambda: profiler.set_config(profile_all="maybe"), "for profile_all expect boolean but value='maybe'"),
    (lambda: profiler.set_config(profile_all=3), "Invalid Parameter format for .* expect boolean but value='3'"),
    (lambda: profiler.set_config(profile_all=None), "expect boolean but value='None'"),
    (lambda: profiler.set_config(dump_period="x"), "Invalid Parameter format for dump_period expect float but value='x'"),
    (lambda: profiler.set_config(dump_period=-1), r"Check failed: !continuous_dump \|\| dump_period > 0"),
    (lambda: profiler.set_config(dump_period="nan"), "dump_period > 0"),
    (lambda: profiler.set_config(profile_process="bad"), "Input: 'bad', valid values are: {'server', 'worker'}"),
    (lambda: profiler.set_config(profile_process="server"), "KVStoreHandle passed to profiler is null"),
    (lambda: profiler.set_state("foo"), "'foo', valid values are: {'run', 'stop'}"),
    (lambda: profiler.set_state("run", "foo"), "'foo', valid values are"),
    (lambda: profiler.pause("server"), "no kvstore servers"),
    (lambda: profiler.resume("foo"), "'foo', valid values are"),
    (lambda: profiler.dump(True, "foo"), "'foo', valid values are"),
    (lambda: profiler.dumps(format="xml"), "Invalid value provided for format: xml. Support: 'table', 'json'"),
    (lambda: profiler.dumps(sort_by="x"), "for sort_by: x. Support: 'total', 'avg', 'min', 'max', 'count'"),
    (lambda: profiler.dumps(ascending="x"), "Invalid value provided for ascending: x. Support: False, True"),
    (lambda: profiler.dumps(reset=2), "Invalid value provided for reset: 2. Support: False, True"),
    (lambda: profiler.Domain(3), "the name must be a string, got 3"),
    (lambda: profiler.Task(D, 3), "profiler.Task: the name must be a string"),
    (lambda: profiler.Task(None, "x"), "the domain must be a profiler.Domain, got None"),
    (lambda: profiler.Counter(D, "c", "abc"), "invalid literal for int"),
    (lambda: profiler.Counter(D, "c", 1 << 70), "does not fit"),
    (lambda: profiler.Marker(D, "m").mark("abc"),
     "Invalid Input: 'abc', valid values are: {'global', 'marker', 'process', 'task', 'thread'}"),
]  # fmt: skip


@pytest.mark.parametrize("call, message", WRONG)
def test_wrong_use(path, call, message):
    with pytest.raises(mx.MXNetError, match=message):
        call()


def test_settings_are_read_as_mxnet_reads_them(path):
    for value in (True, "true", "TRUE", 1, "1"):
        profiler.set_config(profile_all=value, filename=path)
        assert control._profiler.settings.profile_all is True
    profiler.set_config(profile_all=0, filename=3, dump_period="2.5")
    assert control._profiler.settings.filename == "3" and control._profiler.settings.dump_period == 2.5
    profiler.set_config()
    assert control._profiler.settings.filename == "profile.json"  # what is not given has its default again


def test_older_names(path):
    told = r"profiler.profiler_set_config\(\) is deprecated. Please use profiler.set_config\(\) instead"
    with pytest.warns(UserWarning, match=told):
        profiler.profiler_set_config("all", path)
    assert control._profiler.settings.profile_all and control._profiler.settings.filename == path
    with pytest.warns(UserWarning, match="profiler_set_state"):
        profiler.profiler_set_state("run")
    mx.nd.sin(mx.nd.ones((2,)))
    with pytest.warns(UserWarning, match="dump_profile"):
        profiler.dump_profile()
    assert "sin" in names(path)
    profiler.set_kvstore_handle(None)
    with pytest.warns(UserWarning), pytest.raises(mx.MXNetError, match="Cannot find argument 'profile_foo'"):
        profiler.profiler_set_config("foo")


def test_stopping_what_was_not_started_is_nothing(path):
    configured(path)
    profiler.set_state("run")
    task = profiler.Domain("d").new_task("t")
    task.stop(), task.start(), task.stop(), task.stop()
    assert counted("d") == {"t": 1} and str(task) == "t"


def test_results_are_the_same(path, rng):
    """Being watched changes no number."""
    values = rng.normal(size=(5, 6)).astype("float32")

    def compute():
        x = mx.nd.array(values)
        x.attach_grad()
        with mx.autograd.record():
            y = mx.nd.sort(mx.nd.dot(x, x.T) * 0.5 + 1) / 3
        y.backward()
        s = mx.sym.sort(mx.sym.tanh(mx.sym.Variable("x") * 2))
        executor = s.bind(mx.cpu(), {"x": x}, args_grad={"x": mx.nd.zeros(x.shape)})
        executor.forward(is_train=True)
        executor.backward(x)
        return [a.asnumpy() for a in (y, x.grad, *executor.outputs, *executor.grad_arrays)]

    before = compute()
    configured(path, profile_all=True)
    profiler.set_state("run")
    watched = compute()
    profiler.set_state("stop")
    for a, b in zip(before, watched, strict=True):
        np.testing.assert_array_equal(a, b)
