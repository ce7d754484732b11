"""What a compiled function reads besides its arguments: methods, numbers from outside, arrays."""

import collections
import copy
import functools
import gc
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
    with pytest.warns(
        RuntimeWarning, match=r"NDArray of shape.*; pass the array as an argument, or make it from one \(zeros_like"
    ):
        found = mx.graph.compiled(function)(nd.zeros(3))
    np.testing.assert_array_equal(found.asnumpy(), function(nd.zeros(3)).asnumpy())
