"""What authors get wrong: each mistake is an MXNetError with the operator's name and the author's line, or works."""

import linecache

import numpy as np
import pytest

import mxop as mx
from mxop import nd, sym

FILE = "/of_an_author.py"
HEAD = "import functools\nimport numpy as np\nimport mxop as mx\nfrom mxop.op import *\nX = mx.nd.array([1.0, 2, 3])\n"
KERNEL = "@kernel\ndef test_wrong(x): pass\n"
SHAPED = KERNEL + "test_wrong.shape(lambda x: x)\n"
COPIES = SHAPED + "test_wrong.both(lambda xp, i, o: o[0].__setitem__(..., i[0]))\n"
TRAINED = "X.attach_grad()\nwith mx.autograd.record(): y = test_wrong(X)\ny.backward()\n"


@pytest.fixture
def run():
    """Run an author's file, and let go what it defines."""
    before = set(mx.op.names())

    def run(text):
        text = HEAD + text
        linecache.cache[FILE] = (len(text), None, text.splitlines(True), FILE)
        names = {"__name__": "of_an_author"}
        exec(compile(text, FILE, "exec"), names)
        return names

    yield run
    linecache.cache.pop(FILE, None)
    for name in set(mx.op.names()) - before:
        if mx.op.find(name) is not None:
            mx.op.unregister(name)


#: Text after `HEAD`, and what the message says.  The line of each is told, too.
MISTAKES = {
    "async": ("@elementwise\nasync def test_wrong(x): return x", "async or yield"),
    "a generator": ("@composite\ndef test_wrong(F, x): yield x", "async or yield"),
    "any keyword": ("@elementwise\ndef test_wrong(x, **kw): return x", "takes any keyword"),
    "a decorator between": (
        "def log(f):\n    @functools.wraps(f)\n    def g(*a, **k): return f(*a, **k)\n    return g\n"
        "@elementwise\n@log\ndef test_wrong(x, *, k: float = 2.0): return x * k", "stands above that of the kind"),
    "a class": ("@elementwise\nclass test_wrong: pass", "made of a function that is written in Python"),
    "a partial function": (
        "elementwise(name='test_wrong')(functools.partial(max, 1))", "made of a function that is written in Python"),
    "a cached function": ("@elementwise\n@functools.cache\ndef test_wrong(x): return x", "stands next to it"),
    "a method": (
        "class C:\n    def test_wrong(self, x): return x\nelementwise(C().test_wrong)", "made of a function"),
    "two decorators": ("@elementwise\n@kernel\ndef test_wrong(x): return x", "made of a function"),
    "the mode as an input": ("@elementwise\ndef test_wrong(x, is_train): return x", "is_train is the mode, and stands after"),
    "a parameter without a type": ("@elementwise\ndef test_wrong(x, *, k=[1]): return x", "'k' needs a type annotation"),
    "an input after the star": ("@elementwise\ndef test_wrong(*, x): return x", "what stands before the star is an input"),
    "a parameter called name": ("@elementwise\ndef test_wrong(x, *, name: str = 'a'): return x", "can be named 'name'"),
    "an input called out": ("@elementwise\ndef test_wrong(x, out): return x + out", "no input or parameter can be named 'out'"),
    "a number": ("elementwise(3, name='test_wrong')", "operator test_wrong"),
    "a keyword as a name": ("@elementwise(name='lambda', aliases=('test_wrong',))\ndef f(x): return x", "name='lambda' is not"),
    "a name of Python": ("@elementwise(aliases=('__class__',))\ndef test_wrong(x): return x", "'__class__' is that of"),
    "a name that is taken": ("@elementwise(aliases=('exp',))\ndef test_wrong(x): return x", "'exp' is taken by 'exp' of mxop"),
    "no return": ("@elementwise\ndef test_wrong(x): x * 2", "returned None; expected a formula: is there a return"),
    "an empty tuple": ("@elementwise\ndef test_wrong(x): return ()", "expected a formula: is there a return"),
    "a text": ("@elementwise\ndef test_wrong(x): return 'x'", "returned 'x'; expected a formula"),
    "a division by zero": ("@elementwise\ndef test_wrong(x):\n    return x * (1 / 0)", "division by zero"),
    "a name that nobody defined": ("@elementwise\ndef test_wrong(x):\n    return x * gama\ntest_wrong(X)", "name 'gama'"),
    "no end of calls": ("@elementwise\ndef test_wrong(x):\n    return test_wrong(x)\ntest_wrong(X)", "recursion"),
    "another kind's part": ("@elementwise\ndef test_wrong(x): return x\ntest_wrong.cpu(print)", "a @kernel has"),
    "a rule of too few": (
        "@elementwise(rule=lambda g, a, b, y: g)\ndef test_wrong(a, b): return a * b\nX.attach_grad()\n"
        "with mx.autograd.record(): y = test_wrong(X, X)\ny.backward()", "expected 2 formulas: one for each input"),
    "a rule of texts": (
        "@elementwise(rule=lambda g, a, y: 'g')\ndef test_wrong(a): return a * 2\n" + TRAINED, "returned 'g'; expected"),
    "a combination of a function": (
        "@reduction(lambda *, k: 'plus')\ndef test_wrong(x, *, k: int = 1): return x\ntest_wrong(X)", "expected one of add"),
    "a final tuple": ("@reduction('add', final=lambda v, count: (v, count))\ndef test_wrong(x): return x\ntest_wrong(X)",
                      "returned 2 formulas; expected one"),
    "a composite without F": ("@composite\ndef test_wrong(x):\n    return x * 2\ntest_wrong(X)", "function of F"),
    "an input in the place of F": ("@composite\ndef test_wrong(x, w):\n    return x.dot(w)\ntest_wrong(X, X)", "function of F"),
    "a composite of nothing": ("@composite\ndef test_wrong(F, x): F.exp(x)\ntest_wrong(X)", "returned a NoneType"),
    "an operator that is not there": ("@composite\ndef test_wrong(F, x):\n    return F.expp(x)\ntest_wrong(X)", "mean 'exp'"),
    "a parameter that is not there": (
        "@composite\ndef test_wrong(F, x):\n    return F.sum(x, dim=0)\ntest_wrong(X)", "sum has no parameter 'dim'"),
    "an undefined name in a composite": (
        "@composite\ndef test_wrong(F, x):\n    return x + gama\ntest_wrong(X)", "name 'gama'"),
    "no shape rule": (KERNEL + "test_wrong(X)", "@test_wrong.shape"),
    "no size rule": (KERNEL + "test_wrong.shape(lambda x: (None,))\ntest_wrong(X)", "@test_wrong.size"),
    "a number as a shape": (KERNEL + "test_wrong.shape(lambda x: 3)\ntest_wrong(X)", "returned 3; expected the shape of its"),
    "one shape of two": (
        "@kernel(num_outputs=2)\ndef test_wrong(x): pass\ntest_wrong.shape(lambda x: x)\ntest_wrong(X)",
        "returned (3,); expected the shape of each of its 2 outputs"),
    "a shape rule that raises": (KERNEL + "test_wrong.shape(lambda x: (x[5],))\ntest_wrong(X)", "tuple index out of range"),
    "a size rule that raises": (
        COPIES + "test_wrong.shape(lambda x: (None,))\ntest_wrong.size(lambda x: (x.foo,))\ntest_wrong(X)", "attribute 'foo'"),
    "a size that is none": (
        COPIES + "test_wrong.shape(lambda x: (None,))\ntest_wrong.size(lambda x: (-2,))\ntest_wrong(X)", "rule returned (-2,)"),
    "arguments in another order": (SHAPED + "test_wrong.both(lambda inputs, outputs, xp: None)", "another order"),
    "a new output": (
        SHAPED + "@test_wrong.both\ndef run(xp, i, o):\n    o[0] = i[0] * 2\ntest_wrong(X)", "outputs[0][...] = value"),
    "a function that raises": (
        SHAPED + "@test_wrong.both\ndef run(xp, i, o):\n    o[0][...] = np.ones(7)\ntest_wrong(X)", "could not broadcast"),
    "an address that is none": (KERNEL + "test_wrong.cpu('run')", "its CPU function is 'run'"),
    "no list of gradients": (COPIES + "test_wrong.gradient(lambda F, h, i, o: None)\n" + TRAINED, "returned a NoneType"),
    "too many gradients": (COPIES + "test_wrong.gradient(lambda F, h, i, o: [h[0]] * 2)\n" + TRAINED, "2 gradients for 1"),
    "a gradient of NumPy": (COPIES + "test_wrong.gradient(lambda F, h, i, o: [np.ones(3)])\n" + TRAINED, "for input 0; exp"),
    "a gradient of another shape": (COPIES + "test_wrong.gradient(lambda F, h, i, o: [F.sum(h[0])])\n" + TRAINED, "shape (1,)"),
    "a gradient that raises": (COPIES + "test_wrong.gradient(lambda F, h, i, o: [h[7]])\n" + TRAINED, "index out of range"),
    "a gradient of what is not there": (
        COPIES + "test_wrong.gradient(lambda F, h, i, o: [F.nothere(h[0])])\n" + TRAINED, "F has no operator 'nothere'"),
}  # fmt: skip


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_told_with_its_place(run, what):
    text, says = MISTAKES[what]
    with pytest.raises(mx.MXNetError) as told:
        run(text)
    message = str(told.value)
    assert says in message
    assert "test_wrong" in message or "operator lambda" in message
    assert FILE + ":" in message


@pytest.mark.parametrize("text", ["reduction('sum')", "reduction(['max', 'add'])", "reduction(('max', 'add', 'add'))"])
def test_a_combination_that_is_none_is_told_before_the_operator_has_a_name(run, text):
    with pytest.raises(mx.MXNetError, match=f"reduction, {FILE}:6: combine="):
        run(text)


def test_in_a_graph_the_line_is_told_too(run):
    run("@composite\ndef test_wrong(F, x):\n    return F.sum(x, dim=0)\n")
    with pytest.raises(mx.MXNetError, match=rf"sum has no parameter 'dim'.*in operator test_wrong, {FILE}:8"):
        sym.test_wrong(sym.var("x")).bind(mx.cpu(), {"x": nd.ones(3)})


def test_of_composites_inside_composites_the_inner_line_is_told(run):
    run("@composite\ndef test_inner(F, x):\n    return F.sum(x, dim=0)\n"
        "@composite\ndef test_outer(F, x):\n    return F.test_inner(x)\n")  # fmt: skip
    with pytest.raises(mx.MXNetError, match=rf"in operator test_inner, {FILE}:8, in `return F.sum.*in operator test_outer"):
        nd.test_outer(nd.ones(3))


WORKS = {
    "a closure": "k = 3.0\n@elementwise\ndef test_right(x): return x * k\n",
    "any number of inputs": "@elementwise\ndef test_right(*xs): return 3 * xs[0]\n",
    "a list default": "@elementwise\ndef test_right(x, *, ks: tuple[float, ...] = [3, 4]): return x * ks[0]\n",
    "inputs by position only": "@elementwise\ndef test_right(x, /): return 3 * x\n",
    "a static method": "class C:\n    @staticmethod\n    @elementwise\n    def test_right(x): return 3 * x\n",
    "annotated inputs": "@elementwise\ndef test_right(x: 'Unknown') -> mx.nd.NDArray: return 3 * x\n",
    "letters of other alphabets": "@elementwise\ndef test_right(x, *, größe: float = 3.0): return x * größe\n",
    "inputs that are called as rules are": "@composite\ndef test_right(F, inputs): return 3 * inputs\n",
    "parameters that are called as ours are": (
        "@elementwise\ndef test_right(x, *, function: float = 3.0, args: float = 1.0): return x * function * args\n"),
    "a tuple of shapes": (
        "@kernel(num_outputs=2)\ndef test_right(x): pass\ntest_right.shape(lambda x: (x, x))\n"
        "@test_right.both\ndef run(xp, i, o): o[0][...], o[1][...] = 3 * i[0], 0\n"),
    "a shape of NumPy": (
        "@kernel\ndef test_right(x): pass\ntest_right.shape(lambda x: np.array(x))\n"
        "@test_right.both\ndef run(xp, i, o): o[0][...] = 3 * i[0]\n"),
}  # fmt: skip


@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
@pytest.mark.parametrize("what", WORKS)
def test_what_works(run, what, future):
    linecache.cache.pop(FILE, None)
    names = {"__name__": "of_an_author"}
    exec(compile(future + HEAD + WORKS[what], "<string>", "exec"), names)
    for found in (nd.test_right(nd.array([1, 2])), sym.test_right(sym.var("x")).eval(x=nd.array([1, 2]))[0]):
        found = found[0] if isinstance(found, list) else found
        assert found.asnumpy().tolist() == [3, 6]
    for name in ("test_right",):
        mx.op.unregister(name)


def test_an_author_s_line_is_found_beneath_numpy(run):
    """Frames of NumPy lie between the author's line and the error."""
    run(KERNEL + "test_wrong.shape(lambda x: x)\n@test_wrong.both\ndef go(xp, i, o):\n    o[0][...] = np.stack(i * 0)\n")
    with pytest.raises(mx.MXNetError, match=rf"test_wrong: its CPU function raised ValueError: .*{FILE}:11"):
        nd.test_wrong(nd.array(np.ones(2)))
