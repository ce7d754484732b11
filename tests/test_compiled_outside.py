"""What a compiled function reads besides its arguments: methods, numbers from outside, arrays."""

import collections
import copy
import functools
import gc
import pickle
import random
import threading
import types
import warnings
import weakref
from array import array
from dataclasses import dataclass

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd

ONE = nd.array([1.0])
RATE = 2
SETTINGS = {"rate": 2, "deep": [{"rate": 2}]}


def value(found):
    return found.item()


class Layer:
    scale = 3

    def __init__(self, factor=1.0):
        self.factor = factor
        self.traced = 0

    @mx.graph.compiled
    def forward(self, x):
        type(self).traces = getattr(type(self), "traces", 0) + 1
        return x * self.scale * self.factor

    @mx.graph.compiled
    def through(self, x):
        return self.helper(x) + self.doubled

    def helper(self, x):
        return x * self.inner.rate

    @property
    def doubled(self):
        return 2 * self.hidden

    @classmethod
    @mx.graph.compiled
    def of_class(cls, x):
        return x * cls.scale

    @staticmethod
    @mx.graph.compiled
    def free(x):
        return x + RATE


def test_methods():
    a, b = Layer(2), Layer(5)
    for _ in range(2):
        assert (
            value(a.forward(ONE)),
            value(b.forward(ONE)),
            value(a.forward(ONE)),
        ) == (6, 15, 6)
    a.factor = 7
    a.scale = 10  # hides that of the class
    assert (value(a.forward(ONE)), value(b.forward(ONE))) == (70, 15)
    b.inner, b.hidden = types.SimpleNamespace(rate=4), 8
    assert value(b.through(ONE)) == 20
    b.inner.rate, b.hidden = 5, 9
    assert value(b.through(ONE)) == 23
    assert (value(Layer.of_class(ONE)), value(Layer.free(ONE)), value(a.free(ONE))) == (3, 3, 3)
    again = copy.copy(b)
    again.factor = 100
    assert (value(again.forward(ONE)), value(b.forward(ONE))) == (300, 15)
    bound = b.forward
    b.factor = 1
    assert value(bound(ONE)) == 3
    assert repr(bound) == "<compiled Layer.forward>"


def test_a_method_is_traced_once_for_what_it_reads():
    class Counted(Layer):
        calls = []  # noqa: RUF012

        @mx.graph.compiled
        def counted(self, x):
            self.calls.append(x.shape)
            return x * self.factor

    layer = Counted(2.0)
    for factor in (2.0, 2.0, 3.0, 3.0, 2.0):
        layer.factor = factor
        assert value(layer.counted(ONE)) == factor
    assert len(layer.calls) <= 3
    before = len(layer.calls)
    for _ in range(5):
        layer.counted(ONE)
    assert len(layer.calls) == before


def test_an_instance_is_not_kept_alive():
    layer = Layer(2)
    layer.forward(ONE)
    gone = weakref.ref(layer)
    del layer
    gc.collect()
    assert gone() is None


def test_gradients_of_methods_in_threads():
    layers, found = [Layer(k) for k in range(8)], {}

    def run(k):
        x = nd.array([2.0])
        x.attach_grad()
        for _ in range(5):
            with autograd.record():
                y = layers[k].forward(x)
            y.backward()
            found.setdefault(k, set()).add(x.grad.item())

    threads = [threading.Thread(target=run, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == {k: {3.0 * k} for k in range(8)}


def test_globals():
    global RATE
    f = mx.graph.compiled(lambda x: x * RATE)
    g = mx.graph.compiled(lambda x: x * SETTINGS["rate"] + SETTINGS["deep"][0]["rate"])
    assert (value(f(ONE)), value(g(ONE))) == (2, 4)
    RATE, SETTINGS["rate"], SETTINGS["deep"][0]["rate"] = 7, 3, 10
    try:
        assert (value(f(ONE)), value(g(ONE))) == (7, 13)
    finally:
        RATE, SETTINGS["rate"], SETTINGS["deep"][0]["rate"] = 2, 2, 2
    assert (value(f(ONE)), value(g(ONE))) == (2, 4)


def helper(x):
    return x * RATE


def test_functions_that_are_called():
    global RATE
    f = mx.graph.compiled(lambda x: helper(x) + 1)
    inner = mx.graph.compiled(helper)
    g = mx.graph.compiled(lambda x: functools.partial(helper)(x) + inner.__wrapped__(x))
    assert (value(f(ONE)), value(g(ONE))) == (3, 4)
    RATE = 5
    try:
        assert (value(f(ONE)), value(g(ONE))) == (6, 10)
    finally:
        RATE = 2


@dataclass
class Config:
    rate: float = 2.0


class Slotted:
    __slots__ = ("rate",)

    def __init__(self):
        self.rate = 2.0


class Asked:
    def __init__(self):
        self._values = {"rate": 2.0}

    def __getattr__(self, name):
        return self._values[name]

    def __getitem__(self, name):
        return self._values[name]


class Times:
    def __init__(self):
        self.rate = 2.0

    def __call__(self, x):
        return x * self.rate


def places():
    module = types.ModuleType("test_outside_module")
    module.rate = 2.0
    config, slotted, space, asked, times, array = (
        Config(),
        Slotted(),
        types.SimpleNamespace(rate=2.0),
        Asked(),
        Times(),
        np.array([2.0]),
    )
    nested, row, held = {"a": {"rate": 2.0}}, [2.0], types.MappingProxyType(inside := {"rate": 2.0})
    owner = type("Owner", (), {"rate": 2.0})
    layers = [Times(), Times()]

    def chain(x):
        for layer in layers:
            x = layer(x)
        return x / 2

    default = types.SimpleNamespace(rate=2.0)

    def defaulted(x, of=default):
        return x * of.rate

    def change(found, name="rate"):
        return lambda v: setattr(found, name, v)

    def change_item(found, key):
        return lambda v: found.__setitem__(key, v)

    return {
        "module": (lambda x: x * module.rate, change(module)),
        "dataclass": (lambda x: x * config.rate, change(config)),
        "slots": (lambda x: x * slotted.rate, change(slotted)),
        "namespace": (lambda x: x * space.rate, change(space)),
        "__getattr__": (lambda x: x * asked.rate, change_item(asked._values, "rate")),
        "__getitem__": (lambda x: x * asked["rate"], change_item(asked._values, "rate")),
        "__call__": (lambda x: times(x), change(times)),
        "an object itself": (times, change(times)),
        "numpy": (lambda x: x * float(array[0]), change_item(array, 0)),
        "nested": (lambda x: x * nested["a"]["rate"], change_item(nested["a"], "rate")),
        "list": (lambda x: x * row[0], change_item(row, 0)),
        "proxy": (lambda x: x * held["rate"], change_item(inside, "rate")),
        "class": (lambda x: x * owner.rate, change(owner)),
        "layers": (chain, change(layers[0])),
        "default": (defaulted, change(default)),
        "getattr": (lambda x: x * getattr(space, "rate"), change(space)),  # noqa: B009
        "inner function": (lambda x: (lambda: x * space.rate)(), change(space)),
        "method": (times.__call__, change(times)),
    }


@pytest.mark.parametrize("name", list(places()))
def test_numbers_from_outside_are_those_of_the_call(name):
    function, change = places()[name]
    f = mx.graph.compiled(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert value(f(ONE)) == 2
        for new in (7.0, -0.0, 2.0, 7.0):
            change(new)
            found = f(ONE)
            assert value(found) == new and np.signbit(found.asnumpy()[0]) == np.signbit(new)


def test_a_number_that_becomes_another_type():
    held = {"n": 1}
    f = mx.graph.compiled(lambda x: x / held["n"] if isinstance(held["n"], float) else x * 10)
    assert value(f(ONE)) == 10
    held["n"] = 1.0
    assert value(f(ONE)) == 1
    held["n"] = float("nan")
    assert np.isnan(value(f(ONE)))
    held["n"] = True
    assert value(f(ONE)) == 10


def test_names_that_are_bound_anew():
    rate = 2
    f = mx.graph.compiled(lambda x: x * rate)
    assert value(f(ONE)) == 2
    rate = 3
    assert value(f(ONE)) == 3


def test_arrays_from_outside():
    w, other = nd.array([2.0]), nd.array([5.0])
    f, g, h = (
        mx.graph.compiled(lambda x: x * w),
        mx.graph.compiled(lambda x: x * w.item()),
        mx.graph.compiled(lambda x: x * float(w.asnumpy()[0]) + w.shape[0]),
    )
    for function, want in ((f, (2, 5)), (g, (2, 5)), (h, (3, 6))):
        w[:] = 2
        with pytest.warns(RuntimeWarning, match="runs as it is written, not compiled: ") as told:
            assert value(function(ONE)) == want[0]
        assert len(told) == 1
        w[:] = other
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # it is said once
            assert value(function(ONE)) == want[1]
    shape = mx.graph.compiled(lambda x: x * w.shape[0])
    assert value(shape(ONE)) == 1
    w = nd.ones(4)
    assert value(shape(ONE)) == 4


def test_a_large_numpy_array_from_outside():
    big = np.full(100000, 2.0)
    f = mx.graph.compiled(lambda x: x * float(big[0]))
    with pytest.warns(RuntimeWarning, match=r"reads a NumPy array of shape \(100000,\) from outside; make it an argument"):
        assert value(f(ONE)) == 2
    big[:] = 3
    assert value(f(ONE)) == 3


def test_the_text_says_what_is_wrong():
    w = nd.array([2.0])

    def scaled(x):
        return x * w

    with pytest.warns(RuntimeWarning, match=r"scaled runs as it is written, not compiled: .*NDArray"):
        mx.graph.compiled(scaled)(ONE)
    with pytest.raises(mx.MXNetError, match="argument 0 must be an NDArray"):
        mx.graph.compiled(scaled)(3)


class Counted:
    """What code calls without a name for it."""

    def __init__(self):
        self.kept = RATE

    def __enter__(self):
        return self.kept

    def __exit__(self, *_):
        pass

    def __iter__(self):
        return iter([self.kept])

    def __len__(self):
        return self.kept

    __int__ = __index__ = __neg__ = __len__

    def __rmul__(self, other):
        return other * self.kept


class Computed:
    def __get__(self, instance, owner):
        return instance.hidden


class Read:
    computed = Computed()

    def __init__(self):
        self.hidden = 2


def entered(counted):
    with counted as number:
        return number


@pytest.mark.parametrize("read", [
    entered, len, int, sum, lambda counted: -counted, lambda counted: list(range(9))[counted], lambda counted: 3 * counted,
])  # fmt: skip
def test_methods_that_code_calls_without_a_name(read):
    counted = Counted()
    compiled = mx.graph.compiled(lambda x: x * read(counted))
    for counted.kept in (2, 5, 3):
        assert value(compiled(ONE)) == read(counted)


def test_what_making_an_object_reads(monkeypatch):
    compiled = mx.graph.compiled(lambda x: x * Counted().kept)
    for rate in (2, 5, 3):
        monkeypatch.setitem(globals(), "RATE", rate)
        assert value(compiled(ONE)) == rate


def test_a_descriptor_reads_attributes():
    read = Read()
    compiled = mx.graph.compiled(lambda x: x * read.computed)
    for read.hidden in (2, 5, 3):
        assert value(compiled(ONE)) == read.hidden


def test_what_a_weak_reference_refers_to():
    kept = [Read()]
    reference = weakref.ref(kept[0])
    compiled = mx.graph.compiled(lambda x: x * reference().hidden)
    for kept[0].hidden in (2, 5, 3):
        assert value(compiled(ONE)) == kept[0].hidden


@pytest.mark.parametrize("make", [collections.deque, bytearray, collections.UserList, lambda numbers: array("i", numbers)])
def test_items_of_every_container(make):
    kept = make([2, 7])
    compiled = mx.graph.compiled(lambda x: x * sum(kept))
    for kept[0] in (2, 5, 3):
        assert value(compiled(ONE)) == kept[0] + 7


def test_items_of_a_view_of_a_dictionary():
    numbers = {"a": 2, "b": 7}
    kept = numbers.values()
    compiled = mx.graph.compiled(lambda x: x * sum(kept))
    for numbers["a"] in (2, 5, 3):
        assert value(compiled(ONE)) == numbers["a"] + 7


@pytest.mark.parametrize("function", [lambda x: x + nd.ones(3), lambda x: nd.concat(x, nd.ones(3), dim=0)])
def test_what_to_do_with_an_array_that_is_no_argument(function):
    with pytest.warns(RuntimeWarning, match=r"NDArray.*; pass the array as an argument, or make it from one \(zeros_like"):
        found = mx.graph.compiled(function)(nd.zeros(3))
    np.testing.assert_array_equal(found.asnumpy(), function(nd.zeros(3)).asnumpy())


# ---- objects that are handed on ---------------------------------------------------------------------------------------------
def by_rate(x, held):
    return x * held.rate


def by_rate_of_part(x, held):
    return by_rate(x, held.part)


HELD = types.SimpleNamespace(rate=2.0)


class Held:
    def __init__(self):
        self.rate, self.part = 2.0, types.SimpleNamespace(rate=2.0)

    @mx.graph.compiled
    def own(self, x):
        return by_rate(x, self)

    @mx.graph.compiled
    def of_part(self, x):
        return by_rate(x, self.part)


def test_attributes_that_only_a_called_function_names():
    """The name of the attribute is in the code of the function that is called, the object in that of the caller."""
    held, near = Held(), types.SimpleNamespace(rate=2.0)
    layers = [types.SimpleNamespace(rate=1.0), near]
    scaled = functools.partial(by_rate, held=near)
    cases = {
        "a global": (lambda x: by_rate(x, HELD), HELD), "a closure": (lambda x: by_rate(x, near), near),
        "self": (held.own, held), "an attribute": (held.of_part, held.part),
        "further on": (lambda x: by_rate_of_part(x, held), held.part),
        "items": (lambda x: [x := by_rate(x, layer) for layer in layers][-1], near),
        "partial": (scaled, near), "partial inside": (lambda x: scaled(x), near),
        "by name": (lambda x: vars(near)["rate"] * x, near), "map": (lambda x: next(map(by_rate, [x], [near])), near),
    }  # fmt: skip
    for what, (function, changed) in cases.items():
        compiled = function if isinstance(function, mx.graph.traced.CompiledFunction) else mx.graph.compiled(function)
        for changed.rate in (2.0, 5.0, 3.0, 2.0):
            assert compiled(ONE).item() == changed.rate, what


SPECIAL = {
    "__mul__(s, o): return o * s.rate": lambda x, r: r * x, "__rmul__(s, o): return o * s.rate": lambda x, r: x * r,
    "__float__(s): return s.rate": lambda x, r: x * float(r), "__index__(s): return int(s.rate)": lambda x, r: x * sum([1] * r),
    "__len__(s): return int(s.rate)": lambda x, r: x * len(r), "__iter__(s): return iter([s.rate])": lambda x, r: x * sum(r),
    "__next__(s): return s.rate": lambda x, r: x * next(r), "__reversed__(s): return [s.rate]": lambda x, r: x * reversed(r)[0],
    "__contains__(s, o): return s.rate == o": lambda x, r: x * (5 if 5 in r else 2),
    "__bool__(s): return s.rate == 5": lambda x, r: x * (5 if r else 2), "__neg__(s): return s.rate": lambda x, r: x * -r,
    "__lt__(s, o): return s.rate < o": lambda x, r: x * (2 if r < 4 else 5),
    "__abs__(s): return s.rate": lambda x, r: x * abs(r), "__radd__(s, o): return s.rate + o": lambda x, r: x * (0 + r),
    "__format__(s, f): return str(s.rate)": lambda x, r: x * float(f"{r}"),
    "__getitem__(s, k): return s.rate": lambda x, r: x * r[0], "__call__(s, o): return o * s.rate": lambda x, r: r(x),
    "__get__(s, o, c): return s.rate": lambda x, r: x * type("Holder", (), {"__module__": "user", "part": r})().part,
}  # fmt: skip


@pytest.mark.parametrize("method", SPECIAL)
def test_special_methods_of_objects(method):
    """They are called without their names: the attribute is named by nothing else."""
    names: dict = {}
    exec(f"class Held:\n    def __init__(s): s.rate = 2.0\n    def {method}", {"__name__": "user"}, names)
    held, function = names["Held"](), SPECIAL[method]
    compiled = mx.graph.compiled(lambda x: function(x, held))
    for held.rate in (2.0, 5.0):
        assert compiled(ONE).item() == held.rate


def test_attributes_and_items_of_containers_of_ones_own():
    class Settings(dict):
        pass

    class Rates(list):
        pass

    queue = collections.deque([2.0])
    for held in (Settings(), Rates()):
        compiled = mx.graph.compiled(lambda x, held=held: by_rate(x, held) * queue[0])
        for held.rate in (2.0, 5.0):
            for queue[0] in (1.0, 3.0):
                assert compiled(ONE).item() == held.rate * queue[0]


DRAWN = {"generator": None}
DRAWS = {
    "Python's": lambda x: x * random.random(), "Python's shuffle": lambda x: x * random.sample(range(10**6), 1)[0],
    "NumPy's": lambda x: x * np.random.rand(), "NumPy's normal": lambda x: x + float(np.random.normal(size=3).sum()),
    "a generator": lambda x: x * float(DRAWN["generator"].random()),
}  # fmt: skip


@pytest.mark.parametrize("what", DRAWS)
@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState, random.Random])
def test_random_numbers_of_python_and_numpy_are_drawn_in_each_call(what, make):
    """A plan would have those of its first call in it."""
    function, rows = DRAWS[what], []
    for called in (function, mx.graph.compiled(function)):
        random.seed(1)
        np.random.seed(1)
        DRAWN["generator"] = make(1)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            rows.append([called(ONE).item() for _ in range(3)])
        assert [str(w.message).count("random numbers") for w in told] == [1] * (called is not function)
    assert rows[0] == rows[1] and len(set(rows[0])) == 3


def test_attributes_of_arguments():
    compiled = mx.graph.compiled(by_rate_of_part)
    held = Held()
    for held.part.rate in (2.0, 5.0):
        assert compiled(ONE, held).item() == compiled(ONE, held=held).item() == held.part.rate


# ---- arguments that are no arrays -----------------------------------------------------------------------------------------
def traced_scaled(x, scale=2.0, *more, add=0, mode="plus", **named):
    TRACED.append(scale)
    y = x * scale + sum(more) + add
    for value in named.values():
        y = y * value
    return y if mode == "plus" else -y


TRACED: list = []


@pytest.mark.parametrize("call", [
    lambda f, x, w: f(x, 3), lambda f, x, w: f(x, scale=0.5), lambda f, x, w: f(x, w), lambda f, x, w: f(x, scale=w),
    lambda f, x, w: f(x=x, add=1.5, mode="minus"), lambda f, x, w: f(x, 1, 2, w), lambda f, x, w: f(x, w, add=w, k=w, j=2),
    lambda f, x, w: f(2, scale=w), lambda f, x, w: f(x, np.float32(1.5), k=True),
])  # fmt: skip
def test_arguments_that_are_no_arrays_are_values_from_outside(call, recwarn):
    compiled = mx.graph.compiled(traced_scaled)
    x, w = nd.array([1.0, 2.0, 3.0]), nd.array([0.5, 4.0, -1.0])
    expected = call(traced_scaled, x, w)
    for kept in (x, w):
        kept.attach_grad()
    TRACED.clear()
    for _ in range(3):
        with autograd.record():
            found = call(compiled, x, w)
        found.backward()
        np.testing.assert_array_equal(found.asnumpy(), expected.asnumpy())
    assert len(TRACED) == 1 and not recwarn.list, "traced once, not run as it is written"
    for kept, other in ((x, w), (w, x)):
        step = nd.array([1e-3, 0.0, 0.0])
        slope = (call(traced_scaled, *(a + step if a is kept else a for a in (x, w))) - expected).sum().item() / 1e-3
        assert abs(kept.grad[0].item() - slope) < 1e-2, other


def test_other_values_of_arguments_are_other_plans():
    @mx.graph.compiled
    def power(x, n, rates):
        for _ in range(n):
            x = x * rates["all"]
        return x

    x = nd.array([1.0, 2.0])
    assert [power(x, n, {"all": r}).asnumpy().tolist() for n in (0, 1, 3) for r in (2, 3)] == [
        [1, 2], [1, 2], [2, 4], [3, 6], [8, 16], [27, 54]]  # fmt: skip
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'rates'"):
        power(x, 3)


def test_methods_take_numbers():
    class Layer:
        def __init__(self, k):
            self.k = k

        @mx.graph.compiled
        def forward(self, x, times=1):
            return x * self.k * times

    layer = Layer(3)
    assert [layer.forward(ONE).item(), layer.forward(ONE, 2).item(), layer.forward(ONE, times=5).item()] == [3, 6, 15]
    layer.k = 4
    assert layer.forward(ONE, 2).item() == 8


def test_compiled_functions_become_a_part_of_those_that_call_them(recwarn):
    settings = types.SimpleNamespace(rate=2, traced=0)

    @mx.graph.compiled
    def inner(x, scale=1.0):
        return x * settings.rate * scale

    @mx.graph.compiled
    def slope(x):
        (found,) = autograd.grad((x**3).sum(), [x], create_graph=True)
        return found

    @mx.graph.compiled
    def outer(x):
        settings.traced += 1
        return inner(x) + inner(x, 10) + inner(x, scale=x) + slope(x)

    x = nd.array([1.0, 2.0])
    assert [outer(x).asnumpy().tolist() for _ in range(3)] == [[2 + 20 + 2 + 3, 4 + 40 + 8 + 12]] * 3
    settings.rate = 3
    assert outer(x).asnumpy().tolist() == [3 + 30 + 3 + 3, 6 + 60 + 12 + 12]
    assert settings.traced == 2 and not recwarn.list


@mx.graph.compiled
def pickled_by_name(x):
    return x + 1


def test_compiled_functions_are_pickled():
    """One that a decorator made is found under its name, as functions are."""
    assert pickle.loads(pickle.dumps(pickled_by_name)) is pickled_by_name is copy.deepcopy(pickled_by_name)
    made = mx.graph.compiled(traced_scaled)
    assert pickle.loads(pickle.dumps(made))(ONE).item() == copy.copy(made)(ONE).item() == made(ONE).item() == 2


def test_numbers_that_another_thread_draws_meanwhile_do_not_come_again():
    np.random.seed(1)
    wanted, found = np.random.rand(2).tolist(), []
    np.random.seed(1)
    asked, drawn, ends = threading.Event(), threading.Event(), threading.Event()

    def draw():
        asked.wait(60)
        found.append(np.random.rand())
        drawn.set()
        ends.wait(60)

    def doubled(x):
        asked.set()
        drawn.wait(60)
        return x * 2

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it runs as written: who drew is not known
            assert mx.graph.compiled(doubled)(nd.ones(1)).item() == 2
        found.append(np.random.rand())
    finally:
        ends.set()
        thread.join()
    assert found == wanted
