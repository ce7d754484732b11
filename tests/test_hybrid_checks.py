"""The static checks of the hybrid language: each refusal names what is wrong, with file and line."""

import re

import numpy as np
import pytest

import mxop as mx
from mxop.operator import HybridError, kernel


def refused(function, pattern, line=None):
    with pytest.raises(HybridError, match=pattern) as found:
        kernel(function)
    assert isinstance(found.value, (TypeError, mx.MXNetError)) and isinstance(found.value, ValueError)
    where = re.match(r"(.*):(\d+): kernel (\w+): ", str(found.value))
    assert where and where[1].endswith("test_hybrid_checks.py") and where[3] == function.__name__
    if line is not None:
        assert int(where[2]) == function.__code__.co_firstlineno + line, str(found.value)


# ---- names ----------------------------------------------------------------------------------------------------------------
def test_undeclared_variable():
    def f(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] * factor
        return y

    refused(f, "variable 'factor' is not declared", line=3)


def test_closest_name_is_shown():
    def f(value):
        y = output_tensor(value.shape, value.dtype)
        for i in range(value.shape[0]):
            y[i] = valeu[i]
        return y

    refused(f, "did you mean 'value'")


def test_scalar_out_of_its_loop():
    def f(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            s = x[i] * 2
            y[i] = s
        y[0] = s
        return y

    refused(f, "'s' is used out of the scope that declares it", line=5)


def test_loop_variable_after_its_loop():
    def f(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i]
        y[i] = x[0]
        return y

    refused(f, "'i' is used out of the scope", line=4)


def test_variable_of_one_branch():
    def f(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            if x[i] > 0:
                s = x[i]
            y[i] = s
        return y

    refused(f, "'s' is used out of the scope", line=5)


def test_variable_of_both_branches():
    @kernel
    def f(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            if x[i] > 0:
                s = x[i]
            else:
                s = -x[i]
            y[i] = s
        return y

    assert f(np.array([-1.0, 2.0])).tolist() == [1, 2]


def test_loop_variable_overwritten_by_assignment():
    def f(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            i = 0
            y[i] = x[i]
        return y

    refused(f, "loop variable 'i' is overwritten", line=3)


def test_loop_variable_overwritten_by_augmented_assignment():
    def f(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i]
            i += 1
        return y

    refused(f, "loop variable 'i' is overwritten", line=4)


def test_loop_variable_overwritten_by_an_inner_loop():
    def f(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            for i in range(2):
                y[i] = x[i]
        return y

    refused(f, "loop variable 'i' is overwritten by this loop", line=3)


def test_redefinition():
    def f(x):
        y = output_tensor(x.shape, x.dtype)
        y = output_tensor(x.shape, x.dtype)
        return y

    refused(f, "output 'y' is redefined", line=2)


def test_input_redefined():
    def f(x):
        x = allocate((2,), "float32")
        return x

    refused(f, "input 'x' is redefined", line=1)


def test_word_overwritten():
    def f(x):
        sqrt = 2.0
        y = output_tensor(x.shape, x.dtype)
        y[0] = sqrt
        return y

    refused(f, "'sqrt' is a word", line=1)


def test_attribute_overwritten():
    def f(x, alpha):
        y = output_tensor(x.shape, x.dtype)
        alpha += 1
        y[0] = alpha
        return y

    refused(f, "attribute 'alpha' is overwritten", line=2)


def test_name_of_compiled_texts():
    def f(x):
        y = output_tensor(x.shape, x.dtype)
        _mx_r1 = 2.0
        y[0] = _mx_r1
        return y

    refused(f, "names that begin with _mx_", line=2)


# ---- calls ----------------------------------------------------------------------------------------------------------------
def test_unknown_function():
    def f(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = sqrtt(x[i])
        return y

    refused(f, "function 'sqrtt' is not in the language; did you mean 'sqrt'", line=3)


def test_function_of_a_module():
    def f(x):
        y = output_tensor(x.shape, x.dtype)
        y[0] = np.sqrt(x[0])
        return y

    refused(f, r"function 'np.sqrt' is not in the language", line=2)


@pytest.mark.parametrize("call", ["sqrt(x[0], x[1])", "atan2(x[0])", "power(x[0])", "max(x[0])", "sqrt()", "sqrt(x=x[0])"])
def test_wrong_arity(call, tmp_path):
    text = f"def f(x):\n    y = output_tensor(x.shape, x.dtype)\n    y[0] = {call}\n    return y\n"
    function = from_file(text, tmp_path)
    with pytest.raises(HybridError, match=r":3: kernel f: \w+ takes .* argument"):
        kernel(function)


@pytest.mark.parametrize(
    "statement, pattern",
    [
        ("y = output_tensor(x.shape)", "output_tensor takes a shape and a dtype"),
        ("y = allocate()", "allocate takes a shape and a dtype"),
        ("y = output_tensor(x.shape, x.dtype, 1)", "output_tensor takes a shape and a dtype, 3 arguments given"),
        ("y = output_tensor(x.shape, x.dtype, extra=1)", "output_tensor has no argument 'extra'"),
        ("y[0] = output_tensor(x.shape, x.dtype)", "output_tensor is assigned to a name"),
        ("for i in range(): pass", "range takes one to three numbers, 0 arguments given"),
        ("for i in grid(2, 3): pass", "grid takes one shape, 2 arguments given"),
        ("for i in x: pass", "a loop runs over one of"),
        ("for i in enumerate(3): pass", "a loop runs over one of"),
        ("for i, j in range(3): pass", "several loop variables need grid"),
        ("for i, j in grid((2, 2, 2)): pass", "several loop variables need grid with as many sizes"),
        ("with attr(1, 2): pass", "attr takes a string and a value"),
        ("with attr('a'): pass", "attr takes a string and a value"),
        ("with block_realize(): pass", "block_realize takes one tensor, 0 arguments"),
        ("with block_realize(3): pass", "block_realize is asked of the name of a tensor"),
        ("with open('x'): pass", "with takes attr or block_realize"),
        ("s = grid(x.shape)", "grid stands after for"),
        ("s = range(3)", "range stands after for"),
    ],
)
def test_words_with_wrong_arguments(statement, pattern, tmp_path):
    text = f"def f(x):\n    z = output_tensor(x.shape, x.dtype)\n    {statement}\n    return z\n"
    with pytest.raises(HybridError, match=":3: kernel f: " + pattern):
        kernel(from_file(text, tmp_path))


# ---- statements -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "statement, pattern",
    [
        ("while True: pass", "while is not allowed"),
        ("for i in range(2): break", "break is not allowed"),
        ("for i in range(2): continue", "continue is not allowed"),
        ("a = b = 1", "one statement assigns one"),
        ("a, b = 1, 2", "one statement assigns one"),
        ("[a] = [1]", "one statement assigns one"),
        ("def g(): pass", "a function inside a kernel"),
        ("import math", "import is not allowed"),
        ("a: int = 1", "annotations are not allowed"),
        ("x[0]", "does nothing"),
        ("sqrt(x[0])", "does nothing"),
        ("assert x[0] > 0", "assert is not in the language"),
        ("return x", "return stands once"),
        ("if x[0] > 0: return x", "return stands once"),
        ("del x", "del is not allowed"),
        ("a = lambda: 0", "Lambda is not in the language"),
        ("a = [i for i in range(3)]", "ListComp is not in the language"),
        ("a = 'text'", "'text' is not a number"),
        ("a = None", "None is not a number"),
        ("a = x[0] @ x[1]", "operator MatMult is not in the language"),
        ("a = x[0] << 1", "operator LShift is not in the language"),
        ("a = ~x[0]", "operator ~"),
        ("a = x[0] in x", "comparisons are"),
        ("for i in range(2):\n        pass\n    else:\n        pass", "else after for"),
        ("a = sqrt", "'sqrt' is a function and can only be called"),
    ],
)
def test_statements_outside_of_the_language(statement, pattern, tmp_path):
    text = f"def f(x):\n    y = output_tensor(x.shape, x.dtype)\n    {statement}\n    return y\n"
    with pytest.raises(HybridError, match=r":3: kernel f: .*" + pattern) as found:
        kernel(from_file(text, tmp_path))
    assert isinstance(found.value, TypeError)


# ---- tensors --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "statement, pattern",
    [
        ("y = x + x", "tensor 'x' needs all its indices"),
        ("y = x", "tensor 'x' needs all its indices"),
        ("y[0] = x", "tensor 'x' needs all its indices"),
        ("y[0, 0] = x[0, 1:]", "slices are not in the language"),
        ("y[0, 0] = x[...]", "slices are not in the language"),
        ("y[0, 0] = x[0][0]", r"write x\[i, j\]"),
        ("x += 1", "tensor 'x' needs all its indices"),
        ("y[0, 0] = x[0, 0] + x[0]", "tensor 'x' needs all its 2 indices, 1 given"),
        ("y[0, 0] = x.size", r"attribute \.size is not in the language"),
        ("y[0, 0] = x.T[0, 0]", r"attribute \.T is not in the language"),
        ("y[0, 0] = x.shape", "a shape is used whole"),
        ("y[0, 0] = x.dtype", ".dtype stands in allocate"),
        ("for i in range(2): y[0, 0] = x.shape[i]", "indexed by a fixed number"),
        ("x.shape[0] = 3", "a shape cannot be assigned"),
        ("s = 1.0\n    y[0, 0] = s[0]", "'s' is not a tensor"),
        ("s = 1.0\n    s[0] = 1", "'s' is not a tensor"),
        ("s = 1.0\n    y[0, 0] = s.shape[0]", "'s' is not a tensor and has no shape"),
        ("y[0, 0] = len(3)", "len is asked of the name of a tensor"),
        ("for a in grid((2, 3)): y[0, 0] = a[2]", "indexed by a fixed number from 0 to 1"),
        ("for a in grid((2, 3)): y[0, 0] = a", "holds all indices of a grid"),
        ("for i in range(2): z = output_tensor((2,), 'float32')", "output_tensor stands outside of loops"),
        ("z = output_tensor((2,), 'float32')", "output 'z' is declared, but not returned"),
        ("z = allocate((2,), x)", "a dtype is written as"),
        ("x[0, 0] = 1", "input 'x' is assigned, but not returned"),
    ],
)
def test_tensors(statement, pattern, tmp_path):
    text = f"def f(x):\n    y = output_tensor((2, 2), x.dtype)\n    {statement}\n    return y\n"
    with pytest.raises(HybridError, match=pattern):
        kernel(from_file(text, tmp_path))


@pytest.mark.parametrize(
    "ending, pattern",
    [
        ("pass", "ends with 'return'"),
        ("return", "return takes names"),
        ("return y + 1", "return takes names"),
        ("return z", "'z' is made by allocate"),
        ("return s", "'s' is a number"),
        ("return y, y", "'y' is returned twice"),
        ("return undeclared", "'undeclared' is not declared"),
        ("return x", "output 'y' is declared, but not returned"),
    ],
)
def test_returns(ending, pattern, tmp_path):
    text = (
        "def f(x):\n    y = output_tensor((2,), x.dtype)\n    z = allocate((2,), x.dtype)\n    s = 1.0\n"
        f"    z[0] = s\n    y[0] = z[0]\n    {ending}\n"
    )
    with pytest.raises(HybridError, match=pattern):
        kernel(from_file(text, tmp_path))


@pytest.mark.parametrize("signature", ["*x", "x, **k", "x=1", "x, /"])
def test_signatures(signature, tmp_path):
    text = f"def f({signature}):\n    y = output_tensor((2,), 'float32')\n    return y\n"
    with pytest.raises(HybridError, match=r"plain positional|no defaults"):
        kernel(from_file(text, tmp_path))


def test_no_text():
    namespace = {}
    exec("def f(x):\n    return x\n", namespace)
    for function in (namespace["f"], lambda x: x):
        with pytest.raises(HybridError, match="its text cannot be read"):
            kernel(function)
    with pytest.raises((HybridError, TypeError), match="function"):
        kernel(3)
    with pytest.raises(HybridError, match="expected a Python function"):
        kernel(np.sqrt)


# ---- loops that may not run at once ---------------------------------------------------------------------------------------
RACES = [
    "for i in {w}(n):\n        s[0] += x[i]",
    "for i in {w}(n):\n        y[0] = x[i]",
    "for i in {w}(n):\n        y[i] = x[i]\n        y[i + 1] = x[i]",
    "for i in {w}(1, n):\n        y[i] = y[i - 1] + x[i]",
    "for i in {w}(n):\n        y[i % 2] = x[i]",
    "for i in {w}(n):\n        y[i * 0] = x[i]",
    "for i in {w}(n):\n        for j in range(n):\n            y[i + j] = x[i]",
    "for i in {w}(n):\n        for j in range(n):\n            y[j] = x[i]",
    "t = 0.0\n    for i in {w}(n):\n        t += x[i]",
    "t = 0.0\n    for i in {w}(n):\n        t = x[i]\n        y[i] = t",
    "for i in {w}(n):\n        for j in range(3):\n            y[i * 2 + j] = x[i]",
    "for i in {w}(n):\n        y[int32(x[i])] = x[i]",
]
FINE = [
    "for i in {w}(n):\n        y[i] = x[i]",
    "for i in {w}(n):\n        y[2 * i + 1] = x[i] + x[i - 1]",
    "for i in {w}(n):\n        t = 0.0\n        for j in range(n):\n            t += x[j]\n        y[i] = t",
    "for i in {w}(n):\n        for j in range(2):\n            y[i * 2 + j] = x[i]",
    "for i in {w}(n):\n        for j in range(m):\n            y[j + m * i] = x[i]",
    "for i in {w}(n):\n        for j in range(m):\n            for k in range(3):\n"
    "                y[(i * m + j) * 3 + k] = x[i]",
    "for i in {w}(n):\n        w = allocate((3,), x.dtype)\n        for j in range(3):\n"
    "            w[j] = x[i]\n        y[i] = w[0]",
    "for i in {w}(n):\n        y[n - i] = x[i]",
]
BODY = (
    "def f(x):\n    y = output_tensor((x.shape[0] * 10,), x.dtype)\n    s = allocate((1,), x.dtype)\n    n = x.shape[0]\n"
    "    m = 2\n    {loop}\n    y[0] = s[0]\n    return y\n"
)


@pytest.mark.parametrize("word", ["parallel", "vectorize"])
@pytest.mark.parametrize("loop", RACES)
def test_races_are_refused(loop, word, tmp_path):
    function = from_file(BODY.format(loop=loop.format(w=word)), tmp_path)
    with pytest.raises(HybridError, match=f"{word} loop over 'i'.*use reduce or serial"):
        kernel(function)


@pytest.mark.parametrize("word", ["parallel", "vectorize"])
@pytest.mark.parametrize("loop", FINE)
def test_independent_iterations_are_not(loop, word, tmp_path):
    kernel(from_file(BODY.format(loop=loop.format(w=word)), tmp_path))


@pytest.mark.parametrize("word", ["range", "serial", "reduce"])
@pytest.mark.parametrize("loop", RACES)
def test_loops_in_order_may_do_anything(loop, word, tmp_path):
    kernel(from_file(BODY.format(loop=loop.format(w=word)), tmp_path))


# ---- what depends on a call -----------------------------------------------------------------------------------------------
def test_number_of_dimensions():
    @kernel
    def f(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i]
        return y

    with pytest.raises(HybridError, match="'x' has 2 dimensions, but is used with 1 indices"):
        mx.operator.Custom(f)(mx.nd.ones((2, 3)))


def test_variable_that_changes_its_type():
    @kernel
    def f(x, y):
        z = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            s = x[i]
            s = y[i]
            z[i] = s
        return z

    with pytest.raises(HybridError, match="'s' changes its type from float32 to float64"):
        mx.operator.Custom(f)(mx.nd.ones(2), mx.nd.ones(2, dtype="float64"))


def test_index_that_is_no_integer():
    @kernel
    def f(x):
        z = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            z[i] = x[i / 2]
        return z

    pytest.importorskip("numba")
    with pytest.raises(HybridError, match="index i / 2 is of type float"):
        mx.operator.Custom(f)(mx.nd.ones(2))


def test_shape_that_does_not_follow():
    @kernel
    def f(x):
        z = output_tensor((int32(x[0]),), x.dtype)
        return z

    with pytest.raises(HybridError, match="shape of output 'z' does not follow"):
        mx.operator.Custom(f)(mx.nd.ones(2))


def test_unknown_dtype():
    @kernel
    def f(x):
        z = output_tensor(x.shape, "float31")
        return z

    with pytest.raises(HybridError, match="dtype 'float31' is not supported"):
        mx.operator.Custom(f)(mx.nd.ones(2))


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_integers_of_more_than_64_bits(value, tmp_path):
    text = f"def f(x):\n    y = output_tensor(x.shape, x.dtype)\n    y[0] = {value}\n    return y\n"
    with pytest.raises(HybridError, match=f":3: kernel f: {value} is not an integer of 64 bits"):
        kernel(from_file(text, tmp_path))


def test_attribute_that_is_no_number():
    @kernel
    def f(x, a):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] * a
        return y

    with pytest.raises(HybridError, match=r"attribute 'a' is not a number"):
        mx.operator.Custom(f)(mx.nd.ones(2), a="text")


# ---- one statement each: what was in the language, or refused, although no kernel above shows it ----------------------------
REFUSED = {
    "x.a = 1": "only variables and elements of tensors can be assigned",
    "for x[0] in range(3):\n    y[0] = 1": "a loop variable is a name",
    "y[0] = sqrt(x)[0]": "only tensors have elements",
    "y[0] = np.sqrt(x[0])": "function 'np.sqrt' is not in the language; use its words",
    "y[0] = 1j": "1j is not a number",
    "y[0] = lambda a: a": "Lambda is not in the language",
    "assert True": "assert is not in the language",
    "y[0] = 1 + allocate((1,), x.dtype)": "allocate is assigned to a name",
    "y[0] = range(3)": "range stands after for ... in only",
    "y[0] = attr('a', 1)": "attr stands after with only",
    "with attr(1, 2):\n    y[0] = x[0]": "attr takes a string and a value",
    "y[0] = len(5)": "len is asked of the name of a tensor",
    "i = 0\ny[0] = x.shape[i]": "a shape is indexed by a fixed number",
    "for i in grid((3, 4)):\n    y[0] = i[2]": "'i' is indexed by a fixed number from 0 to 1",
    "for i in grid(x.shape):\n    i[0] = 1": "loop variable 'i' is overwritten",
}
TAKEN = {
    "t = allocate((len(x.shape),), np.float32)\nt[0] = 3\ny[0] = t[0] + x[0]": 4,
    "t = allocate(dtype=float32, shape=(1,))\nt[0] = 3\ny[0] = t[0] + x[0]": 4,
    "if 1:\n    y[0] = x[0]": 1,
    "a = True\nb = False\nif a and not b:\n    y[0] = x[0] + 1": 2,
    "if x[0] > 0:\n    with attr('pragma', x.shape[0] + 1):\n        s = x[0]\nelse:\n    s = 2.0\ny[0] = s * 3": 3,
}


def one_statement(statement, tmp_path):
    inside = statement.replace("\n", "\n    ")
    text = f"def f(x):\n    y = output_tensor(x.shape, x.dtype)\n    {inside}\n    return y\n"
    return from_file(text, tmp_path)


@pytest.mark.parametrize("statement", REFUSED)
def test_refused_statements(statement, tmp_path):
    with pytest.raises(HybridError, match=re.escape(REFUSED[statement])):
        kernel(one_statement(statement, tmp_path))


@pytest.mark.parametrize("statement", TAKEN)
def test_taken_statements(statement, tmp_path):
    pytest.importorskip("numba")
    found = kernel(one_statement(statement, tmp_path))
    assert found(np.ones(1, "float32")).tolist() == [TAKEN[statement]]
    assert mx.operator.Custom(found)(mx.nd.ones(1)).asnumpy().tolist() == [TAKEN[statement]]


@pytest.mark.parametrize("statement, problem", [
    ("for i in range(x[0]):\n    y[i] = 1", "is of type float32; a loop runs over integers"),
    ("if x[0] and 1:\n    y[0] = 1", "'and' and 'or' take comparisons"),
    ("y[0] = -(x[0] > 0)", "neg of bool_: "),
])  # fmt: skip
def test_statements_refused_for_their_types(statement, problem, tmp_path):
    pytest.importorskip("numba")
    with pytest.raises(HybridError, match=re.escape(problem)):
        mx.operator.Custom(kernel(one_statement(statement, tmp_path)))(mx.nd.ones(1))


_count = 0


def from_file(text, folder):
    """Return the function of a text in a file of its own."""
    global _count
    _count += 1
    path = folder / f"kernel{_count}.py"
    path.write_text(text)
    namespace = {"np": np}
    exec(compile(text, str(path), "exec"), namespace)
    return namespace["f"]
