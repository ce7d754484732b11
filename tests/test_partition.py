"""Backends and partitioning: what ``Symbol.optimize_for`` does with Python-registered backends."""

import inspect

import numpy as np
import pytest
from comparing import ops

import mxop as mx
from mxop import nd, sym

a, b, w = sym.Variable("a"), sym.Variable("b"), sym.Variable("w")


@pytest.fixture(autouse=True)
def backends_restored():
    before = {*mx.graph.backends()}
    yield
    for name in {*mx.graph.backends()} - before:
        mx.graph.unregister_backend(name)


def taking(*names, **extra):
    """Register a backend that takes operators by name, and return it; ``ran`` holds what it ran."""

    class Taking(mx.graph.Backend):
        on_cycle = extra.get("on_cycle", "error")

        def __init__(self):
            self.ran = []

        def select(self, node, **options):
            mark = extra.get("mark")
            return node.op_name in names if mark is None else mark(node)

        def run(self, subgraph, inputs, outputs):
            self.ran.append((ops(subgraph), [x.shape for x in inputs], len(outputs)))
            return super().run(subgraph, inputs, outputs)

    return mx.graph.register_backend("taking", Taking())


def outcome(symbol, **arrays):
    """Return outputs and gradients of a symbol."""
    args = {k: nd.array(v, dtype="float64") for k, v in arrays.items()}
    grads = {k: nd.zeros(v.shape, dtype="float64") for k, v in args.items()}
    executor = symbol.bind(mx.cpu(), args, grads)
    executor.forward(is_train=True)
    executor.backward([nd.ones(o.shape, dtype="float64") for o in executor.outputs])
    return [o.asnumpy() for o in executor.outputs] + [grads[k].asnumpy() for k in sorted(grads)]


def same(first, second, **arrays):
    for have, want in zip(outcome(first, **arrays), outcome(second, **arrays), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-12)


X, Y = np.array([[0.3, -1.0, 2.0]]), np.array([[1.0, 0.5, -0.2]])


def test_chosen_nodes_become_one_operator():
    backend = taking("exp", "sin", "elemwise_mul")
    y = sym.sin(sym.exp(a) * b) + a
    new = y.optimize_for("taking")
    assert ops(new) == ["_subgraph", "elemwise_add"] and ops(y) == ["exp", "elemwise_mul", "sin", "elemwise_add"]
    assert new.list_arguments() == ["a", "b"] and new.list_outputs() == y.list_outputs()
    assert new.infer_shape(a=(2, 3)) == y.infer_shape(a=(2, 3))  # through the subgraph, in both directions
    assert new.infer_type(b="float64") == y.infer_type(b="float64")
    same(new, y, a=X, b=Y)
    assert backend.ran[0] == (["exp", "elemwise_mul", "sin"], [(1, 3), (1, 3)], 1)


def test_two_separate_parts_are_two_operators():
    backend = taking("exp", "sin")
    new = (sym.dot(sym.exp(a), sym.sin(b), transpose_b=True) + 1).optimize_for("taking")
    assert ops(new) == ["_subgraph", "_subgraph", "dot", "_plus_scalar"]
    same(new, sym.dot(sym.exp(a), sym.sin(b), transpose_b=True) + 1, a=X, b=Y)
    assert [r[0] for r in backend.ran[:2]] == [["exp"], ["sin"]]


def test_subgraphs_with_several_outputs_and_inputs_of_one():
    taking("exp", "sin")
    e = sym.exp(a)
    y = sym.Group([sym.sin(e), e * b, e])
    new = y.optimize_for("taking")
    assert ops(new) == ["_subgraph", "elemwise_mul"] and len(new.list_outputs()) == 3
    same(new, y, a=X, b=Y)


def test_a_function_that_writes_its_outputs():
    class Doubling(mx.graph.Backend):
        def select(self, node):
            return node.op_name == "_mul_scalar"

        def run(self, subgraph, inputs, outputs):
            outputs[0][:] = inputs[0] * 2

    mx.graph.register_backend("doubling", Doubling())
    assert (a * 2).optimize_for("doubling").eval(a=nd.array([3.0]))[0].asnumpy().tolist() == [6]


def test_a_cycle_is_an_error():
    taking("exp", "elemwise_add")
    e = sym.exp(a, name="e")
    line = inspect.currentframe().f_lineno + 1
    y = sym.sin(e, name="s") + e
    with pytest.raises(mx.MXNetError, match=rf"a cycle: e \(exp\) -> s \(sin\) -> _plus\d+ .*test_partition.py:{line}"):
        y.optimize_for("taking")
    taking("exp", "elemwise_add", "sin")
    assert ops(y.optimize_for("taking")) == ["_subgraph"]
    backend = taking("exp", "elemwise_add", on_cycle="split")
    new = y.optimize_for("taking")
    assert ops(new) == ["_subgraph", "sin", "_subgraph"]
    same(new, y, a=X)
    assert len(backend.ran) >= 2


def test_a_cycle_of_two_subgraphs():
    """Each alone is fine; together they need each other."""
    taking(mark=lambda node: {"exp": "one", "cos": "one", "sin": "two", "tan": "two"}.get(node.op_name))
    y = sym.cos(sym.sin(a)) + sym.tan(sym.exp(b))
    with pytest.raises(mx.MXNetError, match=r"a cycle: (\w+ \(\w+\) -> ){2,}"):
        y.optimize_for("taking")


def test_named_groups_need_not_be_connected():
    taking(mark=lambda node: "both" if node.op_name in ("exp", "sin") else None)
    y = sym.exp(a) * sym.sin(b)
    new = y.optimize_for("taking")
    assert ops(new) == ["_subgraph", "elemwise_mul"]
    same(new, y, a=X, b=Y)


def test_neighbours_that_are_not_connected():
    class Apart(mx.graph.Backend):
        def select(self, node):
            return node.kind == "elementwise"

        def connect(self, node, input):
            return node.op_name != "sin"

    mx.graph.register_backend("apart", Apart())
    assert ops(sym.exp(sym.sin(sym.cos(a))).optimize_for("apart")) == ["_subgraph", "_subgraph"]


def test_accept_looks_at_the_subgraph():
    class Large(mx.graph.Backend):
        def select(self, node, least=2):
            return node.op_name in ("exp", "sin")

        def accept(self, subgraph, least=2):
            return len(ops(subgraph)) >= least

    mx.graph.register_backend("large", Large())
    y = sym.exp(sym.sin(a)) * sym.exp(b)
    assert ops(y.optimize_for("large")) == ["_subgraph", "exp", "elemwise_mul"]
    assert ops(y.optimize_for("large", least=3)) == ["sin", "exp", "exp", "elemwise_mul"]
    assert ops(y.optimize_for("large", least=1)).count("_subgraph") == 2


def test_backends_know_shapes_when_arrays_are_given():
    seen = {}

    class Shapes(mx.graph.Backend):
        def select(self, node):
            seen[node.op_name] = node.shape, node.dtype
            return False

    mx.graph.register_backend("shapes", Shapes())
    y = sym.sum(sym.exp(a), axis=0)
    y.optimize_for("shapes")
    assert seen["exp"] == (None, None)
    y.optimize_for("shapes", args={"a": nd.zeros((2, 3), dtype="float16")}, ctx=mx.cpu())
    assert seen == {"exp": ((2, 3), np.float16), "sum": ((3,), np.float16)}
    y.optimize_for("shapes", [nd.zeros((4, 3))])
    assert seen["sum"][0] == (3,) and seen["exp"][0] == (4, 3)


def test_composites_gradients_of_any_order_and_autograd():
    taking("LeakyReLU", "exp", "square")
    y = sym.square(sym.exp(sym.LeakyReLU(a, act_type="elu")))
    new = y.optimize_for("taking")
    for _ in range(3):
        same(new, y, a=X)
        y, new = y.gradient(["a"]), new.gradient(["a"])
    part = sym.exp(a).optimize_for("taking")
    x = nd.array([0.5])
    x.attach_grad()
    with mx.autograd.record():
        found = mx.nd.CachedOp(part)(x)
    found.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), np.exp([0.5]), rtol=1e-6)


def test_add_requests_and_inner_gradients():
    taking("exp")
    y = (sym.exp(a) * 2).optimize_for("taking")
    grad = nd.array([10.0])
    executor = y.bind(mx.cpu(), [nd.array([0.0])], [grad], "add")
    executor.forward(is_train=True)
    executor.backward(nd.array([1.0]))
    assert grad.asnumpy().tolist() == [12]


def test_partitioned_symbols_can_be_saved():
    taking("exp", "sin")
    y = sym.sin(sym.exp(a)) * 2
    again = sym.load_json(y.optimize_for("taking").tojson())
    same(again, y, a=X)
    mx.graph.unregister_backend("taking")
    with pytest.raises(mx.MXNetError, match="no backend 'taking'"):
        again.eval(a=nd.array([1.0]))


def test_parts_are_never_merged_or_dropped_while_they_are_read():
    backend = taking("exp")
    y = sym.Group([sym.exp(a), sym.exp(a)]).optimize_for("taking")
    y.eval(a=nd.array([1.0]))
    assert len(backend.ran) == 2


def test_errors_of_a_backend_arrive():
    class Failing(mx.graph.Backend):
        def select(self, node):
            return True

        def run(self, subgraph, inputs, outputs):
            raise ValueError("no power")

    class Short(Failing):
        def run(self, subgraph, inputs, outputs):
            return []

    mx.graph.register_backend("failing", Failing())
    with pytest.raises(ValueError, match="no power"):
        sym.exp(a).optimize_for("failing").eval(a=nd.array([1.0]))
    mx.graph.register_backend("failing", Short())
    with pytest.raises(mx.MXNetError, match="returned 0 arrays for 1 outputs"):
        sym.exp(a).optimize_for("failing").eval(a=nd.array([1.0]))


# ---- the registry ---------------------------------------------------------------------------------------------------
def test_any_function_can_be_a_backend():
    seen = {}

    def rewrite(symbol, args, aux, ctx, options):
        seen.update(args=args, aux=aux, ctx=ctx, options=options)
        args["extra"] = nd.array([5.0])
        return symbol * sym.Variable("extra")

    assert mx.graph.register_backend("simple", rewrite) is rewrite and "simple" in mx.graph.backends()
    args = {"a": nd.array([2.0])}
    new = sym.exp(a).optimize_for("simple", args, {}, mx.cpu(), level=3, name="x")
    assert seen["options"] == {"level": 3, "name": "x"} and seen["ctx"] == mx.cpu() and seen["aux"] == {}
    np.testing.assert_allclose(new.bind(mx.cpu(), args).forward()[0].asnumpy(), 5 * np.exp([2.0]), rtol=1e-6)
    mx.graph.unregister_backend("simple")
    assert "simple" not in mx.graph.backends()


def test_what_is_wrong_is_said():
    mx.graph.register_backend("simple", lambda symbol, args, aux, ctx, options: 3)
    for call, message in (
        (lambda: sym.exp(a).optimize_for("simpel"), "no backend 'simpel'; did you mean 'simple'"),
        (lambda: sym.exp(a).optimize_for("simple"), "returned 3; expected a Symbol"),
        (lambda: sym.exp(a).optimize_for("simple", args=[]), "a list of 1: a"),
        (lambda: sym.exp(a).optimize_for("simple", args={"a": 3}), r"args\['a'\] is 3"),
        (lambda: sym.exp(a).optimize_for("simple", ctx=3), "Context type error"),
        (lambda: mx.graph.register_backend("simple", 3), "not callable"),
        (lambda: mx.graph.register_backend(3, print), "expected a string"),
        (lambda: mx.graph.register_backend("simple", print), "is taken by"),
        (lambda: mx.graph.unregister_backend("other"), "no backend 'other'"),
    ):
        with pytest.raises(mx.MXNetError, match=message):
            call()
    with pytest.raises(mx.MXNetError, match=r"has no run\(subgraph"):
        taking("exp")
        new = sym.exp(a).optimize_for("taking")
        mx.graph.unregister_backend("taking")
        mx.graph.register_backend("taking", lambda *args: None)
        new.eval(a=nd.array([1.0]))
