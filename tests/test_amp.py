"""Automatic mixed precision: the conversions that MXNet 1.9.1 puts into the same networks, and scaled losses."""

import json
import textwrap
import warnings

import numpy as np
import pytest
from processes import run_python

import mxop as mx
from mxop.contrib import amp

X, Y = mx.sym.var("x"), mx.sym.var("y")


def dense(data, name="f"):
    return mx.sym.FullyConnected(data, num_hidden=4, name=name, no_bias=True)


def nodes(symbol):
    """Return the names of all nodes but variables, in the order of MXNet's file."""
    found = json.loads(symbol.tojson(remove_amp_cast=False))["nodes"]
    return " ".join(n["name"] for n in found if n["op"] != "null")


# What MXNet 1.9.1 answers; it calls elementwise results x_0 in names of conversions, here they are x_output as everywhere.
LOW = "x_amp_cast_float16 f_weight_amp_cast_float16 f "
ANSWERS = {
    "relu alone": (mx.sym.relu(X, name="r"), "r r_output_amp_cast_float32"),
    "float32 alone": (mx.sym.exp(X, name="e"), "e"),
    "float32 after narrow": (mx.sym.exp(dense(X), name="e"), LOW + "f_output_amp_cast_float32 e"),
    "float32 after unknown": (mx.sym.exp(mx.sym.relu(X, name="r"), name="e"), "r r_output_amp_cast_float32 e"),
    "narrow after narrow": (dense(mx.sym.relu(dense(X), name="r"), "g"),
                            LOW + "r g_weight_amp_cast_float16 g g_output_amp_cast_float32"),
    "widest, one unknown": (mx.sym.broadcast_add(dense(X), Y, name="a"),
                            LOW + "f_output_amp_multicast a a_output_amp_cast_float32"),
    "widest, both known": (mx.sym.broadcast_add(mx.sym.exp(X, name="e"), dense(Y), name="a"),
                           "e y_amp_cast_float16 f_weight_amp_cast_float16 f f_output_amp_cast_float32 a"),
    "widest, equal": (mx.sym.broadcast_add(dense(X), dense(X, "g"), name="a"),
                      LOW + "g_weight_amp_cast_float16 g a a_output_amp_cast_float32"),
    "conditional": (mx.sym.Activation(dense(X), act_type="softrelu", name="a"), LOW + "f_output_amp_cast_float32 a"),
    "other value": (mx.sym.Activation(dense(X), act_type="relu", name="a"), LOW + "a a_output_amp_cast_float32"),
    "a variable as output": (mx.sym.Group([X, dense(X)]),
                             "x_amp_cast_float32 " + LOW + "f_output_amp_cast_float32"),
    "several outputs": (mx.sym.SliceChannel(dense(X), num_outputs=2, name="s"),
                        LOW + "s s_output0_amp_cast_float32 s_output1_amp_cast_float32"),
}  # fmt: skip


@pytest.mark.parametrize("case", ANSWERS)
def test_conversions_are_put_where_mxnet_puts_them(case):
    symbol, expected = ANSWERS[case]
    assert nodes(amp.convert_symbol(symbol)) == expected
    assert nodes(amp.convert_symbol(symbol, "bfloat16")) == expected.replace("float16", "bfloat16")


def test_lists_of_the_caller_and_excluded_nodes():
    e = mx.sym.exp(dense(X), name="e")
    assert nodes(amp.convert_symbol(e, excluded_sym_names=["e"])) == LOW + "e e_output_amp_cast_float32"
    assert nodes(amp.convert_symbol(e, target_dtype_ops=["exp"], fp32_ops=["FullyConnected"])) == (
        "f f_output_amp_cast_float16 e e_output_amp_cast_float32"
    )
    found = amp.convert_symbol(e, conditional_fp32_ops=[("FullyConnected", "num_hidden", ["4"])], target_dtype_ops=["relu"])
    assert nodes(found) == "f e"
    assert {"Convolution", "FullyConnected"} <= set(amp.list_lp16_ops("bfloat16"))
    assert {"exp", "softmax", "SoftmaxOutput"} <= set(amp.list_fp32_ops()) and "_plus" in amp.list_widest_type_cast()
    assert not set(amp.list_fp32_ops()) & set(amp.list_lp16_fp32_ops())


@pytest.mark.parametrize(("kwargs", "message"), [
    ({"target_dtype": "float32"}, "target_dtype='float32'; expected 'float16' or 'bfloat16'"),
    ({"target_dtype": "nothing"}, "expected 'float16' or 'bfloat16'"),
    ({"target_dtype_ops": ["nosuch"]}, "target_dtype_ops: there is no operator 'nosuch'"),
    ({"target_dtype_ops": "exp"}, "target_dtype_ops='exp'; expected a list"),
    ({"fp32_ops": ["exp"], "target_dtype_ops": ["exp"]}, "exp is on two lists"),
    ({"fp32_ops": ["Activation"]}, "Activation is on two lists"),
    ({"conditional_fp32_ops": [("exp", "scale", ["1"])]}, "exp has no parameter 'scale'"),
    ({"conditional_fp32_ops": ["exp"]}, "expected (operator, parameter, list of values)"),
    ({"excluded_sym_names": "f"}, "excluded_sym_names='f'; expected a list of names"),
])  # fmt: skip
def test_bad_arguments_are_named(kwargs, message):
    with pytest.raises(mx.MXNetError) as caught:
        amp.convert_symbol(dense(X), **kwargs)
    assert message in str(caught.value)


def test_a_name_that_the_network_has_not():
    with pytest.warns(UserWarning, match="the network has no zz") as caught:
        amp.convert_model(dense(X), {"f_weight": mx.nd.ones((4, 3))}, {}, excluded_sym_names=["zz"])
    assert caught[0].filename == __file__


def network():
    data = mx.sym.BatchNorm(mx.sym.Convolution(X, kernel=(3, 3), num_filter=4, name="c"), name="bn", fix_gamma=False)
    data = mx.sym.Activation(data, act_type="relu")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(data, num_hidden=3, name="fc"), name="softmax")


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("target", ["float16", "bfloat16"])
def test_a_model_keeps_its_answers(narrow, target):
    net = network()
    shapes, _, states = net.infer_shape(x=(2, 3, 8, 8))
    rng = np.random.default_rng(0)
    args = {n: mx.nd.array(rng.normal(size=s) * 0.3) for n, s in zip(net.list_arguments(), shapes, strict=True)}
    x, label = args.pop("x"), args.pop("softmax_label")
    aux = {n: mx.nd.ones(s) for n, s in zip(net.list_auxiliary_states(), states, strict=True)}
    mixed, some, others = amp.convert_model(net, args, aux, target, cast_optional_params=narrow)
    assert {n: v.dtype for n, v in some.items()} == {
        n: mx.nd.zeros(1, dtype=target).dtype if narrow and n[:2] in ("c_", "fc") else np.float32 for n in args
    }
    assert others["bn_moving_var"].dtype == np.float32

    def run(symbol, params, states):
        return symbol.bind(mx.cpu(), {"x": x, "softmax_label": label, **params}, aux_states=states).forward()[0]

    expected = run(net, args, aux)
    found = run(mixed, some, others)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), atol={"float16": 2e-3, "bfloat16": 2e-2}[target])
    assert (found.asnumpy() != expected.asnumpy()).any()
    assert mx.sym.load_json(mixed.tojson(remove_amp_cast=False)).tojson(remove_amp_cast=False) == mixed.tojson(
        remove_amp_cast=False
    )
    assert "amp_cast" not in mixed.tojson()


def test_a_mixed_network_is_trained_in_float32():
    net = amp.convert_symbol(network())
    run = net.simple_bind(mx.cpu(), x=(2, 3, 8, 8))
    assert {a.dtype for a in (*run.arg_arrays, *(g for g in run.grad_arrays if g is not None))} == {np.float32}
    run.arg_dict["x"][:] = 1.0
    run.arg_dict["c_weight"][:] = 0.1
    run.arg_dict["fc_weight"][:] = 0.01
    run.arg_dict["bn_gamma"][:] = 1.0
    run.forward(is_train=True)
    run.backward()
    assert np.isfinite(run.grad_dict["c_weight"].asnumpy()).all() and run.grad_dict["fc_bias"].asnumpy().any()


@pytest.mark.parametrize("narrow", [False, True])
def test_several_arrays_in_one_type(narrow):
    a, b, i = mx.nd.ones(2), mx.nd.ones(3, dtype="float16"), mx.nd.ones(3, dtype="int32")
    found = mx.nd.amp_multicast(a, b, i, num_outputs=3, cast_narrow=narrow)
    assert [x.dtype for x in found] == [np.float16 if narrow else np.float32] * 2 + [np.int32]
    joined = mx.sym.amp_multicast(mx.sym.var("a"), mx.sym.var("b"), num_outputs=2)
    given, _, _ = joined.infer_type_partial(a="float16")
    assert [np.dtype(t).name if t else None for t in given] == ["float16", None]  # the other may be of any type


def test_mixed_precision_of_calls():
    run_python(
        textwrap.dedent("""
        import numpy as np, pytest, mxop as mx
        from mxop.contrib import amp
        nd = mx.nd
        opt = mx.optimizer.SGD(learning_rate=0.1)
        with pytest.raises(mx.MXNetError, match="call mx.contrib.amp.init"):
            amp.init_trainer(opt)
        amp.init()
        assert amp.amp._amp_initialized
        amp.init("float16")
        with pytest.raises(mx.MXNetError, match="on already, with float16; it cannot change to bfloat16"):
            amp.init("bfloat16")
        a, b, w = nd.ones((2, 3), dtype="float16"), nd.ones((2, 3)), nd.ones((4, 3))
        low, wide = np.float16, np.float32
        assert nd.FullyConnected(b, w, num_hidden=4, no_bias=True).dtype == low
        assert nd.FullyConnected(data=b, weight=w, num_hidden=4, no_bias=True).dtype == low
        assert nd.relu(a).dtype == low and nd.exp(a).dtype == wide and nd.op.exp(a).dtype == wide
        assert nd.Activation(a, act_type="softrelu").dtype == wide and nd.Activation(a, act_type="relu").dtype == low
        assert nd.Activation(a, "softrelu").dtype == wide and nd.Activation(a, "relu").dtype == low
        both = a + b, b - a, a * b, nd.broadcast_add(a, b), nd.concat(a, b), nd.stack(a, b), nd.where(a, a, b), nd.add_n(a, b)
        for mixed in both:
            assert mixed.dtype == wide
        assert (a + a).dtype == low and nd.concat(a, a).dtype == low
        out = nd.zeros((2, 3))
        assert nd.exp(a, out=out) is out and out.asnumpy().min() > 2.7
        with pytest.raises(mx.MXNetError):
            nd.ones(3, dtype="float64") + nd.ones(3, dtype="float16")

        y = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, no_bias=True, name="f") + mx.sym.var("z")
        names = mx.sym.softmax(y, name="s").get_internals().list_outputs()
        assert names == ["x", "amp_cast0_output", "f_weight", "amp_cast1_output", "f_output", "z", "amp_multicast0_output0",
                         "amp_multicast0_output1", "_plus0_output", "amp_cast2_output", "s_output"], names

        rng = np.random.default_rng(0)
        X, true = nd.array(rng.normal(size=(64, 3))), nd.array(rng.normal(size=(4, 3)))
        T = nd.dot(X, true.T)
        w = nd.zeros((4, 3)); w.attach_grad()
        with pytest.raises(mx.MXNetError, match="call amp.init_trainer"):
            amp.unscale(opt)
        amp.init_trainer(opt)
        amp.init_trainer(opt)
        update = mx.optimizer.get_updater(opt)
        for step in range(400):
            with mx.autograd.record():
                loss = nd.mean(nd.square(nd.FullyConnected(X, w, num_hidden=4, no_bias=True) - T))
            with amp.scale_loss(loss, opt) as scaled:
                scaled.backward()
            big = abs(w.grad.asnumpy()).max()
            if step % 2:
                amp.unscale(opt)
                assert np.isclose(abs(w.grad.asnumpy()).max() * 65536, big) and opt.rescale_grad == 1
            else:
                assert opt.rescale_grad == 1 / 65536
            update(0, w.grad, w)
        assert loss.asscalar() < 1e-5 and w.dtype == wide and abs((w - true).asnumpy()).max() < 1e-2

        v = nd.ones(3); v.attach_grad()
        before = w.asnumpy(), v.asnumpy()
        with mx.autograd.record():
            losses = [nd.sum(nd.FullyConnected(X, w, num_hidden=4, no_bias=True)), nd.sum(v * float("inf"))]
        with amp.scale_loss(losses, opt) as scaled:
            mx.autograd.backward(scaled)
        update(0, w.grad, w)  # its own gradient is finite: no update of a step is made, or all are
        update(1, v.grad, v)
        assert (w.asnumpy() == before[0]).all() and (v.asnumpy() == before[1]).all()
        with mx.autograd.record():
            loss = nd.sum(w * w)
        with amp.scale_loss(loss, opt) as scaled:
            assert scaled.asscalar() == np.float32(loss.asscalar() * 32768)
            scaled.backward()
        update(0, w.grad, w)
        assert (w.asnumpy() != before[0]).all()
    """)
    )


def test_the_factor_follows_what_overflows():
    scaler = amp.loss_scaler.LossScaler()
    for _ in range(1999):
        assert not scaler.has_overflow([mx.nd.ones(2)])
    assert scaler.loss_scale == 65536
    scaler.has_overflow([mx.nd.ones(2), mx.nd.ones(3, dtype="float16")])
    assert scaler.loss_scale == 131072
    assert scaler.has_overflow([mx.nd.ones(2), mx.nd.array([float("nan")])]) and scaler.loss_scale == 65536
    for _ in range(30):
        scaler.has_overflow([mx.nd.array([float("inf")])])
    assert scaler.loss_scale == 1


def test_nothing_is_said_of_a_plain_conversion():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        amp.convert_symbol(network())
