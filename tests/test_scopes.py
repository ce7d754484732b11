"""What is in force in a thread: attributes, names, device.  Expected behaviour was observed in MXNet 1.9.1."""

import json
import threading

import mxnet_answers
import pytest

import mxop as mx
from mxop import sym

pytestmark = pytest.mark.usefixtures("fresh_names")


@pytest.mark.parametrize("number", range(3))
def test_programs_of_scopes_do_what_they_do_in_mxnet(number):
    """See ``mxnet_answers.py``: random programs, and what MXNet 1.9.1 called their symbols."""
    programs = mxnet_answers.read("scopes.json")[number::3]
    assert len(programs) == 20
    for steps, seen in programs:
        assert json.loads(json.dumps(mxnet_answers.run_scopes(mx, steps))) == seen, steps


SHOWN = [(mx.AttrScope, "current", lambda: mx.AttrScope(__a__="1")), (mx.name.NameManager, "current", mx.name.NameManager),
         (mx.Context, "default_ctx", lambda: mx.cpu(3))]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "make"), SHOWN)
def test_what_is_in_force_can_be_read_and_assigned_in_each_thread(kind, name, make):
    before, found = getattr(kind, name), []

    def other():
        found.append(getattr(kind, name))
        setattr(kind, name, make())
        found.append(getattr(kind, name))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert getattr(kind, name) is before and all(isinstance(x, kind) for x in found) and found[0] is not found[1]
    mine = make()
    try:
        setattr(kind, name, mine)
        assert getattr(kind, name) is mine
        with make() as inner:
            assert getattr(kind, name) is inner
        assert getattr(kind, name) is mine
        with pytest.raises(TypeError, match=f"{kind.__name__}.{name} is assigned 3; expected a {kind.__name__}"):
            setattr(kind, name, 3)
        holder = getattr(kind, f"_{name}")  # MXNet's own tests, and programs, look there
        assert holder.value is mine
        holder.value = before
        assert getattr(kind, name) is before
    finally:
        setattr(kind, name, before)


def test_what_is_assigned_is_used():
    a, before = sym.Variable("a"), (mx.AttrScope.current, mx.name.NameManager.current, mx.Context.default_ctx)
    try:
        mx.AttrScope.current = mx.AttrScope(__lr_mult__="2")
        mx.name.NameManager.current = mx.name.Prefix("p_")
        mx.Context.default_ctx = mx.cpu(2)
        assert sym.exp(a).name == "p_exp0" and sym.exp(a).attr("__lr_mult__") == "2"
        assert mx.current_context() == mx.nd.ones(2).context == mx.cpu(2)
    finally:
        mx.AttrScope.current, mx.name.NameManager.current, mx.Context.default_ctx = before


def test_a_scope_of_a_users_class():
    class Marked(mx.AttrScope):
        def get(self, attr=None):
            return {**super().get(attr), "mine": "yes"}

    class Ending(mx.name.NameManager):
        def get(self, name, hint):
            return (name or hint) + "_end"

    with Marked(z="1"), Ending():  # an operator without parameters takes any attributes
        e = sym.exp(sym.Variable("q"))
    assert (e.name, e.list_arguments()) == ("exp_end", ["q"]) and Marked.current is mx.AttrScope.current
    assert e.attr_dict() == {"q": {"z": "1", "mine": "yes"}, "exp_end": {"z": "1", "mine": "yes"}}
    assert sym.load_json(e.tojson()).attr_dict() == e.attr_dict()
    e._set_attr(z="2")
    assert e.attr("z") == "2"
