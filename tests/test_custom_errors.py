"""Exceptions in the Python of custom operators, and answers of their methods that do not fit: always an MXNetError."""

import traceback

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym
from mxop.operator import Custom, CustomOp, CustomOpProp, register


class Own(Exception):
    """Of a user, with arguments of its own."""

    def __init__(self, code, text):
        super().__init__(code, text)


RAISED = [
    (AssertionError("no"), RuntimeError),
    (ValueError("no"), ValueError),
    (TypeError("no"), TypeError),
    (KeyError("no"), KeyError),
    (IndexError("no"), IndexError),
    (LookupError("no"), LookupError),
    (AttributeError("no"), AttributeError),
    (ZeroDivisionError("no"), RuntimeError),
    (NotImplementedError("no"), RuntimeError),
    (MemoryError("no"), RuntimeError),
    (StopIteration("no"), RuntimeError),
    (RecursionError("no"), RuntimeError),
    (UnicodeDecodeError("utf-8", b"x", 0, 1, "no"), ValueError),
    (Own(3, "no"), RuntimeError),
    (mx.MXNetError("no"), RuntimeError),
    (mx.errors.OpIndexError("no"), IndexError),
]
IDS = [type(problem).__name__ for problem, _ in RAISED]
PASS = [KeyboardInterrupt("stop"), SystemExit(3), GeneratorExit("stop")]


class Failing(CustomOp):
    def __init__(self, at, problem):
        self.at, self.problem = at, problem

    def forward(self, is_train, req, in_data, out_data, aux):
        self.step("forward")
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.step("backward")
        self.assign(in_grad[0], req[0], out_grad[0])

    def step(self, name):
        if name == self.at:
            raise self.problem


METHODS = ("__init__", "list_arguments", "list_outputs", "list_auxiliary_states", "infer_shape", "infer_type",
           "declare_backward_dependency", "create_operator")  # fmt: skip


def define(at=None, problem=None, answer=None):
    """Register an operator whose method `at` raises, or answers something."""

    class Prop(CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Failing(at, problem)

    if problem is not None:
        problem.__traceback__ = None  # of the test before

    def method(self, *args, **kwargs):
        if problem is not None:
            raise problem
        return answer(*args) if callable(answer) else answer

    if at in METHODS:
        setattr(Prop, at, method)
    register("test_failing")(Prop)


def called(x):
    nd.Custom(x, op_type="test_failing")


def recorded(x):
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x, op_type="test_failing")
    y.backward()


def bound(x):
    made = sym.Custom(sym.Variable("x"), op_type="test_failing", name="node")
    executor = made.bind(mx.cpu(), {"x": x}, args_grad={"x": nd.zeros(x.shape)})
    executor.forward(is_train=True)
    executor.backward(nd.ones(x.shape))


def simply_bound(x):
    made = sym.Custom(sym.Variable("x"), op_type="test_failing", name="node") * 2
    executor = made.simple_bind(mx.cpu(), x=x.shape)
    executor.forward(is_train=True)
    executor.backward(nd.ones(x.shape))


def fails(call, problem, also, where):
    with pytest.raises(mx.MXNetError, match=where) as caught:
        call(nd.ones((2, 3)))
    assert caught.value.__cause__ is problem and isinstance(caught.value, also)
    assert type(problem).__name__ in str(caught.value)
    assert not autograd.is_recording() and not autograd.is_training()


@pytest.mark.parametrize("call", [called, recorded, bound, simply_bound])
@pytest.mark.parametrize("problem, also", RAISED, ids=IDS)
def test_what_forward_and_backward_raise(call, problem, also):
    for at in ("forward", "backward"):
        if call is called and at == "backward":
            continue
        define(at, problem)
        fails(call, problem, also, rf"operator Custom: Failing.{at} \(op_type='test_failing'\) raised")
        assert [f.name for f in traceback.extract_tb(problem.__traceback__)][-2:] == [at, "step"]


@pytest.mark.parametrize("call", [recorded, bound, simply_bound])
@pytest.mark.parametrize("method", METHODS)
def test_what_the_methods_of_the_prop_raise(call, method):
    for problem, also in RAISED:
        define(method, problem)
        fails(call, problem, also, f"Prop.{method}.* raised")


@pytest.mark.parametrize("call", [recorded, bound])
@pytest.mark.parametrize("at", ["forward", "backward", *METHODS])
def test_what_is_no_exception_passes(call, at):
    for problem in PASS:
        define(at, problem)
        with pytest.raises(type(problem)) as caught:
            call(nd.ones((2, 3)))
        assert caught.value is problem
        assert not autograd.is_recording()


def test_a_failed_call_leaves_the_next_one_right():
    for at in ("forward", "backward", *METHODS):
        define(at, AssertionError("once"))
        with pytest.raises(mx.MXNetError):
            recorded(nd.ones((2, 3)))
        define()
        recorded(nd.ones((2, 3)))
        bound(nd.ones((2, 3)))


def test_a_second_derivative_that_fails():
    class Cube(CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] ** 3)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            assert not autograd.is_recording(), "once only"
            self.assign(in_grad[0], req[0], 3 * in_data[0] ** 2 * out_grad[0])

    @register("test_once_only")
    class CubeProp(CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Cube()

    x = nd.ones((2,))
    x.attach_grad()
    with autograd.record():
        slope = autograd.grad(nd.Custom(x, op_type="test_once_only"), [x], create_graph=True)[0]
    with pytest.raises(mx.MXNetError, match=r"Cube.backward .*raised AssertionError: once only") as caught:
        slope.backward()
    assert type(caught.value.__cause__) is AssertionError


# ---- answers --------------------------------------------------------------------------------------------------------
def generated():
    yield "data"


class Unshowable:
    def __repr__(self):
        raise ValueError("no text")


NAMES = [None, 3, "data", {"data": 1}, generated, [1], [None], [""], [b"data"], ["data", 2], ["a", "a"], Unshowable()]
WRONG = [
    *[("list_arguments", answer) for answer in NAMES],
    *[("list_outputs", answer) for answer in [*NAMES, []]],
    *[("list_auxiliary_states", answer) for answer in [*NAMES, ["data"]]],
    *[
        ("infer_shape", answer)
        for answer in [
            None, 3, "shapes", (), ([],), lambda s: (x for x in (s, s, [])), lambda s: (s, s, [], []),
            lambda s: (s, [], []), lambda s: (s, [s[0], s[0]], []), lambda s: ([], s, []), lambda s: (s, s, s),
            lambda s: (None, s, []), lambda s: (s, None, []), lambda s: (s, s, None), lambda s: (s, 3, []),
            lambda s: (s, iter(s), []), lambda s: (s, "a", []), lambda s: (s, [None], []),
            lambda s: (s, ["23"], []), lambda s: (s, [(2.0, 3)], []), lambda s: (s, [(2, None)], []),
            lambda s: (s, [(-1, 3)], []), lambda s: (s, [(2, -3)], []), lambda s: (s, [(2**70,)], []),
            lambda s: (s, [((2, 3), 3)], []), lambda s: ([(2, 4)], s, []), lambda s: ([(2, 3, 1)], s, []),
            lambda s: ([(-2, 3)], s, []), lambda s: (s, [Unshowable()], []),
        ]
    ],
    *[
        ("infer_type", answer)
        for answer in [
            None, 3, "float32", (), ([],), lambda t: (x for x in (t, t, [])), lambda t: (t, t, [], []),
            lambda t: (t, [], []), lambda t: (t, [t[0], t[0]], []), lambda t: ([], t, []), lambda t: (t, t, t),
            lambda t: (None, t, []), lambda t: (t, None, []), lambda t: (t, iter(t), []), lambda t: (t, "f", []),
            lambda t: (t, [None], []), lambda t: (t, [3], []), lambda t: (t, [True], []), lambda t: (t, ["floot"], []),
            lambda t: (t, [object], []), lambda t: (t, [str], []), lambda t: (t, [np.complex64], []),
            lambda t: (t, [[]], []), lambda t: (t, [Unshowable()], []), lambda t: ([np.float64], t, []),
        ]
    ],
    *[
        ("declare_backward_dependency", answer)
        for answer in [None, 3, "abc", ["a"], [0.5], [None], [17], [-1], [[0]], [0, "a"], {0: 1, 1: "a"}, Unshowable(),
                       lambda g, i, o: iter(g)]
    ],
    *[("create_operator", answer) for answer in [None, 3, Failing, CustomOp, object(), "forward", Unshowable()]],
]  # fmt: skip


def wrong(answer):
    """Return an answer as a method gives it: functions of the arguments, and classes as they are."""
    if isinstance(answer, type):
        return lambda *args: answer
    return answer


@pytest.mark.parametrize("call", [recorded, bound, simply_bound])
@pytest.mark.parametrize("method, answer", WRONG, ids=[f"{m}-{k}" for k, (m, _) in enumerate(WRONG)])
def test_an_answer_that_does_not_fit(call, method, answer):
    define(method, answer=wrong(answer))
    with pytest.raises(mx.MXNetError, match=f"operator Custom: Prop.{method} (returned|gave)"):
        call(nd.ones((2, 3)))


def test_an_answer_about_the_states():
    class Two(CustomOpProp):
        def list_auxiliary_states(self):
            return ["state"]

        def infer_shape(self, in_shape):
            return in_shape, in_shape, [(5,)]

        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Failing(None, None)

    register("test_two")(Two)
    assert nd.Custom(nd.ones((2,)), nd.ones((5,)), op_type="test_two").shape == (2,)
    with pytest.raises(mx.MXNetError, match=r"Two.infer_shape gave \(5,\) for 'state', which has shape \(4,\)"):
        nd.Custom(nd.ones((2,)), nd.ones((4,)), op_type="test_two")
    with pytest.raises(mx.MXNetError, match=r"Two.infer_type gave float32 for 'state', which has dtype int32"):
        nd.Custom(nd.ones((2,)), nd.ones((5,), dtype="int32"), op_type="test_two")


FITS = [
    ("list_arguments", ("data",)),
    ("list_outputs", ("data",)),
    ("infer_shape", lambda s: (s, s)),
    ("infer_shape", lambda s: [tuple(s), tuple(s), ()]),
    ("infer_shape", lambda s: (s, [np.array([2, 3])], [])),
    ("infer_shape", lambda s: (s, [np.zeros((2, 3)).shape], [])),
    ("infer_shape", lambda s: ([()], s, [])),
    ("infer_type", lambda t: (t, ["float64"], [])),
    ("infer_type", lambda t: (t, [np.dtype("float16")], [])),
    ("infer_type", lambda t: (t, [int], [])),
    ("infer_type", lambda t: ([None], t, [])),
    ("declare_backward_dependency", ()),
    ("declare_backward_dependency", lambda g, i, o: (*g, *i)),
    ("declare_backward_dependency", lambda g, i, o: np.array([0, 1])),
]


@pytest.mark.parametrize("method, answer", FITS, ids=[f"{m}-{k}" for k, (m, _) in enumerate(FITS)])
def test_answers_that_fit(method, answer):
    class Wide(CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0])

    define(method, answer=answer)
    if method == "declare_backward_dependency" and answer == ():
        mx.operator.custom_op.prop_class("test_failing").create_operator = lambda *args: Wide()
    recorded(nd.ones((2, 3)))
    bound(nd.ones((2, 3)))


def test_a_prop_that_needs_a_shape_not_known_yet():
    """Whatever it makes of an empty shape is no answer."""
    define("infer_shape", answer=lambda s: (s, [(s[0][0] - 5, s[0][1])], []))
    made = sym.Custom(sym.Variable("x"), op_type="test_failing")
    assert made.infer_shape_partial()[1] in ([()], [None])
    assert made.infer_shape(x=(7, 3))[1] == [(2, 3)]
    with pytest.raises(mx.MXNetError, match=r"Prop.infer_shape gave, for 'output' of the outputs, the shape \(-3, 3\)"):
        made.infer_shape(x=(2, 3))


def test_register_takes_a_name_and_a_class():
    with pytest.raises(TypeError, match="expected a name"):
        register(3)(CustomOpProp)
    with pytest.raises(TypeError, match="not a subclass"):
        register("test_failing")(3)


# ---- MindSpore's Custom and autograd.Function -----------------------------------------------------------------------
@pytest.mark.parametrize("problem, also", RAISED, ids=IDS)
def test_what_functions_raise(problem, also):
    def fail(*args):
        raise problem

    def same(x, *rest):
        return x

    x = nd.ones((2, 3))
    for op, where in [
        (Custom(fail, same, same, "pyfunc"), "Custom fail: the function raised"),
        (Custom(np.negative, fail, same, "pyfunc"), "Custom negative: out_shape raised"),
        (Custom(np.negative, same, fail, "pyfunc"), "Custom negative: out_dtype raised"),
    ]:
        fails(op, problem, also, where)
        fails(lambda x, op=op: op(sym.Variable("x")).bind(mx.cpu(), {"x": x}).forward(), problem, also, where)
    op = Custom(np.negative, same, same, "pyfunc", bprop=fail)

    class Function(autograd.Function):
        def forward(self, x):
            return 2 * x

        def backward(self, dy):
            raise problem

    for call, where in [(op, "Custom negative: bprop raised"), (Function(), "Function.backward raised")]:
        x.attach_grad()
        with autograd.record():
            y = call(x)
        fails(lambda _, y=y: y.backward(), problem, also, where)


def test_what_a_kernel_raises(monkeypatch):
    @mx.operator.kernel
    def fourth(a):
        c = output_tensor((1,), a.dtype)  # noqa: F821
        c[0] = a[3]
        return c

    monkeypatch.setenv("MXOP_HYBRID", "python")
    with pytest.raises(mx.MXNetError, match=r"fourth.*IndexError") as caught:
        Custom(fourth)(nd.ones((2,)))
    assert isinstance(caught.value, IndexError)
