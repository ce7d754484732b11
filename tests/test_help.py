"""What tools show: help(), signatures, methods on classes, notebooks."""

import dataclasses
import inspect
import pydoc
import re
from pathlib import Path
from typing import Generic

import numpy as np
import pytest

import mxop as mx


def shown(thing):
    return pydoc.render_doc(thing, renderer=pydoc.plaintext)


# ---- help -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name, thing",
    [
        ("nd", lambda: mx.nd.quadratic),
        ("sym", lambda: mx.sym.quadratic),
        ("nd.contrib", lambda: mx.nd.contrib.quadratic),
    ],
)
def test_help_of_a_function_shows_signature_and_parameters(name, thing):
    text = shown(thing())
    text = re.sub(r"\n    (?=\w+[:=]|\*)|\n(?=\) ->)", " ", text).replace("( ", "(")  # Python 3.13: a line for each
    assert "quadratic(data" in text and "a=0.0, b=0.0, c=0.0, *" in text
    assert "Parameters" in text and "a : float, optional, default=0.0" in text
    assert text.index("Parameters") < text.index(">>>")


@pytest.mark.parametrize("x", [mx.nd.ones((2, 3)), mx.sym.Variable("x")], ids=["array", "symbol"])
def test_help_of_a_method_is_that_of_its_operator(x):
    text = shown(x.sum)
    assert "sum(axis=None, keepdims=False, exclude=False, *" in text
    assert "Axes to sum over" in text
    assert list(inspect.signature(x.clip).parameters)[:2] == ["a_min", "a_max"]
    assert "Sum along axes." in shown(type(x).sum)
    assert "Limit" in shown(type(x)) and "|  sum(" in shown(type(x))


def test_every_operator_has_help():
    for op in mx.op.operators():
        for function in (mx.nd._internal, mx.sym._internal):
            found = getattr(function, op.name, None)
            text = found.__doc__ if found is not None else "Parameters"
            assert "Parameters" in text or "arameters as" in text, op.name


def test_a_function_in_a_class_is_not_bound():
    class Block:
        activation = mx.nd.relu

    assert Block().activation(mx.nd.array([-1, 1])).asnumpy().tolist() == [0, 1]


KINDS = {
    "elementwise": mx.op.Elementwise,
    "reduction": mx.op.Reduction,
    "composite": mx.op.Composite,
    "kernel": mx.op.Kernel,
}
#: What definitions of mxop's own give besides.
INTERNAL = {"function", "combine", "arguments", "extra_params", "is_backward", "module", "param_order", "stem", "by_keyword",
            "made_again", "zero_is_unknown", "adds", "at_once"}  # fmt: skip
PARTS = ("shape", "dtype", "infer", "infer_types", "size", "both", "cpu", "gpu", "rearrange", "view", "gradient")


def options_of(kind):
    """Return the options that a definition of a kind may give."""
    found = set()
    for cls in kind.__mro__[: kind.__mro__.index(Generic)]:
        code = cls.__init__.__code__
        found.update(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])
    return found - INTERNAL


#: What the common decorator takes and a kind has no use for.
NOT_OF = {
    "elementwise": ["aux"], "composite": ["aux"],
    "reduction": ["num_outputs", "visible_outputs", "writes", "aux", "num_args_param"],
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_help_of_a_kind_says_all_of_it(kind):
    """And so does the page of the kinds."""
    page = (Path(__file__).parent.parent / "docs" / "kinds.md").read_text(encoding="utf-8")
    text = shown(getattr(mx.op, kind))
    options = options_of(KINDS[kind]) - set(NOT_OF.get(kind, ()))
    for option in options | {"override"}:
        assert re.search(rf"^[ |]+(\w+, )*{option}(, \w+)* : ", text, re.M), option
        assert f"`{option}" in page, option
    assert "{common}" not in text and ">>>" in text
    if kind == "kernel":
        for part in PARTS:
            assert f"``@op.{part}``" in text and f"`@op.{part}`" in page, part
            assert callable(getattr(mx.op.Kernel, part))
        decorators = {n for n in vars(mx.op.Kernel) if not n.startswith("_")} - {
            "kind", "shape_only", "way", "infer_shape", "implied_types", "sized_shapes", "waits_for"}  # fmt: skip
        assert decorators | {"gradient", "infer_types"} == set(PARTS)


def test_help_of_record_says_every_field():
    text = shown(mx.records.record)
    for field in dataclasses.fields(mx.records.Record):
        assert re.search(rf"^[ |]+(\w+, )*{field.name}(, \w+)* : ", text, re.M), field.name


# ---- methods --------------------------------------------------------------------------------------------------------
#: MXNet 1.9.1's class has these, but no operator or meaning here.
NOT_HERE = {"as_np_ndarray", "get_backend_symbol", "handle"}
MXNET_SYMBOL = """
abs arccos arccosh arcsin arcsinh arctan arctanh argmax argmax_channel argmin argsort as_in_context as_nd_ndarray
as_np_ndarray asnumpy asscalar astype attr attr_dict backward bind broadcast_axes broadcast_like broadcast_to cbrt ceil clip
copy cos cosh debug_str degrees depth_to_space detach diag eval exp expand_dims expm1 fix flatten flip floor
get_backend_symbol get_children get_internals gradient handle infer_shape infer_shape_partial infer_type infer_type_partial
list_arguments list_attr list_auxiliary_states list_inputs list_outputs log log10 log1p log2 log_softmax max mean min name
nanprod nansum norm one_hot ones_like optimize_for pad pick prod radians rcbrt reciprocal relu repeat reshape reshape_like
rint round rsqrt save shape_array sigmoid sign simple_bind sin sinh size_array slice slice_axis slice_like softmax softmin
sort space_to_depth split split_v2 sqrt square squeeze sum swapaxes take tan tanh tile tojson topk transpose trunc
wait_to_read zeros_like
"""


def test_methods_of_symbols_are_on_the_class():
    names = {*MXNET_SYMBOL.split()}
    here = {name for name in names if hasattr(mx.Symbol, name)}
    assert names - here <= NOT_HERE
    assert mx.Symbol.sum is mx.sym.sum and mx.nd.NDArray.sum is mx.nd.sum
    x = mx.sym.Variable("x")
    assert mx.Symbol.exp(x).list_arguments() == x.exp().list_arguments() == ["x"]
    assert x.as_nd_ndarray() is x


def test_methods_follow_the_registry():
    @mx.op.elementwise
    def followed(data):
        return data + 1

    x = mx.sym.Variable("x")
    try:
        assert x.followed().eval(x=mx.nd.ones(1))[0].item() == 2
        old = mx.op.get("sign")

        @mx.op.elementwise(name="sign", override=True)
        def other(data):
            return data * 10

        assert mx.nd.ones(1).sign().item() == x.sign().eval(x=mx.nd.ones(1))[0].item() == 10
    finally:
        mx.op.unregister("followed")
        mx.op.register(old, override=True)
    assert mx.nd.ones(1).sign().item() == 1
    with pytest.raises(AttributeError):
        x.followed  # noqa: B018


def test_dir_lists_what_works():
    assert {"maximum", "power", "hypot", "exp", "Variable"} <= {*dir(mx.sym)}
    assert {"sum", "exp", "simple_bind"} <= {*dir(mx.Symbol)}


# ---- notebooks ------------------------------------------------------------------------------------------------------
def test_an_array_shows_itself():
    text = mx.nd.array([[1, 2], [3, 4]], dtype="int64")._repr_html_()
    assert "NDArray 2&times;2 int64 @cpu(0)" in text and "[3 4]" in text
    for shape in ((), (0, 3), (1000, 1000)):
        with mx.util.np_shape():
            assert len(mx.nd.zeros(shape)._repr_html_()) < 5000


def test_a_symbol_shows_its_graph():
    net = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3, name="fc")
    drawn = net._repr_svg_()
    assert drawn == str(mx.viz.svg(net)) and drawn.startswith("<svg") and "fc_weight" in drawn
    assert mx.sym.Group([net, net.exp()])._repr_svg_().startswith("<svg")


def test_a_symbol_that_cannot_be_drawn_shows_its_text(monkeypatch):
    deep = mx.sym.Variable("x")
    for _ in range(400):
        deep = deep + 1
    assert deep._repr_svg_() is None

    def broken(graph):
        raise ZeroDivisionError

    monkeypatch.setattr(mx.viz, "svg", broken)
    assert mx.sym.Variable("x")._repr_svg_() is None


# ---- plots ----------------------------------------------------------------------------------------------------------
def test_matplotlib_takes_an_array_for_one_set_of_data():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    counts, _, _ = axes.hist(mx.nd.arange(100))
    assert counts.tolist() == [10] * 10
    line = axes.plot(mx.nd.arange(3), mx.nd.array([3, 4, 5]))[0]
    assert np.asarray(line.get_ydata()).tolist() == [3, 4, 5]
    copied = mx.nd.ones(3).to_numpy()
    assert type(copied) is np.ndarray and copied.dtype == np.float32


def test_signatures_show_that_an_operator_takes_any_parameters():
    """Custom and operators of libraries get parameters that only their own code knows."""
    for space in (mx.nd, mx.sym):
        names = [str(p) for p in inspect.signature(space.Custom).parameters.values()]
        assert names[0].startswith("*data") and names[-1] == "**kwargs"
    stub = Path(mx.__file__).with_name("ndarray") / "__init__.pyi"
    definition = stub.read_text(encoding="utf-8").split("def Custom(")[1].split("->")[0]
    assert "**kwargs: Any," in definition


def test_each_name_of_an_operator_names_its_symbols():
    x = mx.sym.Variable("x")
    with mx.name.NameManager():
        names = [f(x).name for f in (mx.sym._internal._contrib_quadratic, mx.sym.contrib.quadratic, mx.sym.quadratic)]
    assert names == ["_contrib_quadratic0", "quadratic0", "quadratic1"]
