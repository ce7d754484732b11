"""An operator of one's own documents itself: it answers as its function does."""

import inspect
import pydoc
from typing import Annotated, Literal

import pytest

import mxop as mx
from mxop.op import AnyValue, Bound, DType, F, Range, Scalar, composite, elementwise, kernel, reduction


@pytest.fixture
def swish():
    @elementwise
    def help_swish(data, *, beta: float = 1.0):
        """Evaluate ``data * sigmoid(beta * data)``."""
        return data * F.sigmoid(beta * data)

    yield help_swish
    mx.op.unregister("help_swish")


def test_attributes_are_those_of_the_function(swish):
    assert swish.__name__ == "help_swish"
    assert swish.__qualname__ == "swish.<locals>.help_swish"
    assert swish.__module__ == __name__
    assert swish.__wrapped__.__code__.co_name == "help_swish"
    assert swish.__doc__.startswith("Evaluate ``data * sigmoid(beta * data)``.")
    assert inspect.unwrap(swish) is swish.__wrapped__
    assert "help_swish(data, *, beta" in inspect.getsource(swish)


def test_signature_and_repr_show_parameters(swish):
    assert list(inspect.signature(swish).parameters) == ["data", "beta", "out", "name"]
    assert inspect.signature(swish).parameters["beta"].default == 1.0
    assert repr(swish) == "<elementwise operator help_swish(data, beta=1.0)>"


def test_help_shows_the_operator_and_not_its_class(swish):
    text = pydoc.plain(pydoc.render_doc(swish))
    assert "help_swish(data, beta=1.0" in text
    assert "Evaluate ``data * sigmoid(beta * data)``." in text
    assert "An operator made of a scalar formula" not in text
    assert len(text.splitlines()) < 30


def test_operators_of_every_kind():
    @reduction("add")
    def help_cubes(data):
        """Sum cubes."""
        return data**3

    @reduction(("max", "add"), final=lambda largest, total, count: largest + F.log(total))
    def help_pair(data):
        """Combine twice."""
        return data, lambda largest: F.exp(data - largest)

    @composite
    def help_twice(F, data):
        """Double."""
        return F.broadcast_add(data, data)

    @kernel
    def help_copy(data, *, axis: int = 0):
        """Copy."""

    for op, first in (
        (help_cubes, "Sum cubes."),
        (help_pair, "Combine twice."),
        (help_twice, "Double."),
        (help_copy, "Copy."),
    ):
        name = op.name
        assert (op.__name__, op.__module__) == (name, __name__)
        assert op.__wrapped__.__name__ == name
        assert op.__doc__.startswith(first)
        assert first in pydoc.plain(pydoc.render_doc(op))
        mx.op.unregister(name)


def test_operators_of_the_package_and_those_without_a_function():
    assert mx.op.get("quadratic").__name__ == "quadratic"
    assert mx.op.get("Custom").__name__ == "Custom"
    assert not hasattr(mx.op.get("Custom"), "__wrapped__")
    for name in mx.op.names(hidden=True):
        assert name and mx.op.get(name).name in repr(mx.op.get(name))


def test_a_class_may_have_an_operator_as_its_attribute(swish):
    class Layer:
        activation = swish

    assert Layer.activation is swish and Layer().activation is swish


@pytest.mark.parametrize("annotation", [float, int, bool, str, str | None, tuple[int, ...], tuple[float, ...], DType, AnyValue,
                                        Literal["a", "b"], Scalar, Bound, Annotated[int, Range(3)],
                                        Annotated[float, Range(high=-2)]])  # fmt: skip
def test_a_required_parameter_of_any_kind_is_described(annotation):
    def help_required(data, *, p):
        return F.exp(data)

    help_required.__annotations__ = {"p": annotation}
    for define in (elementwise, reduction("add")):
        op = define(help_required)
        try:
            assert "formula: " in mx.op.describe(op.name) or op.kind == "reduction"
            assert "required" in str(mx.op.info(op.name)["parameters"])
        finally:
            mx.op.unregister("help_required")
