"""Updates of optimizers: as MXNet 1.9.1 makes them, in calls on arrays, in symbols and in loops."""

import math
import tracemalloc

import mxnet_answers
import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym

ANSWERS = mxnet_answers.read("updates.json")


def test_every_update_has_answers():
    """All of the family, but those that MXNet has for sparse arrays only, and those with tests of their own below."""
    asked = {row[0] for row in ANSWERS}
    own = {
        "_sparse_adagrad_update",
        "_contrib_group_adagrad_update",
        "mp_lamb_update_phase2",
        "reset_arrays",
        "all_finite",
    }
    family = [mx.op.get(n) for n in mx.op.names()]
    family = [op for op in family if op.module in ("mxop.ops.optimizer", "mxop.ops.many_updates")]
    assert {op.name for op in family if ">>>" in op.doc and not op.is_backward} == asked | own


@pytest.mark.parametrize("row", range(len(ANSWERS)), ids=lambda k: f"{k}-{ANSWERS[k][0]}")
def test_updates_are_mxnets(row):
    name, kind, params, arrays, expected = ANSWERS[row]
    found = mxnet_answers.run_update(mx, name, kind, params, arrays)
    for got, want, letters in zip(found, expected, ("W" if kind[0] == "W" else "w", kind), strict=True):
        for k, (a, b) in enumerate(zip(got, want, strict=True)):
            if letters[min(k, len(letters) - 1)] in "gG":  # MXNet's AdamW leaves the scaled gradient there
                continue
            wide = name == "mp_lamb_update_phase1" or letters[min(k, len(letters) - 1)].islower() or letters[0] == "w"
            np.testing.assert_allclose(a, b, rtol=2e-5 if wide else 2e-3, atol=2e-5 if wide else 2e-3)


@pytest.mark.parametrize("scale", [0.0, math.inf, math.nan])
def test_adamw_leaves_out_steps_whose_scale_is_no_number(scale):
    w, g, mean, var = (nd.array([x]) for x in (1, 2, 3, 4))
    nd.contrib.adamw_update(w, g, mean, var, scale, lr=0.1, eta=1, wd=0.5, out=w)
    assert [a.item() for a in (w, mean, var)] == [1, 3, 4]


@pytest.mark.parametrize(("dtype", "want", "var_want"), [
    ("float16", [0.91943359375, 1.8798828125], [0.12493896484375, 0.25]), ("float64", [0.91927164, 1.88], [0.1249375, 0.25]),
])  # fmt: skip
def test_adamw_takes_float32_scales_beside_weights_of_other_types(dtype, want, var_want):
    w, g, mean, var = (nd.array([k, 2 * k], dtype=dtype) for k in (1, 0.5, 0.25, 0.125))
    nd.contrib.adamw_update(w, g, mean, var, nd.array([0.5]), lr=0.1, eta=1, wd=0.01, out=w)
    assert w.dtype == mean.dtype == np.dtype(dtype)
    np.testing.assert_allclose(w.asnumpy(), want, rtol=1e-8)  # MXNet's
    np.testing.assert_allclose(mean.asnumpy(), [0.25, 0.5], rtol=1e-8)
    np.testing.assert_allclose(var.asnumpy(), var_want, rtol=1e-8)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_momentum_of_nesterov_takes_the_decay_from_the_new_weight(dtype):
    nag = mx.optimizer.NAG(learning_rate=0.1, momentum=0.9, wd=0.07, multi_precision=True)
    w = nd.array([1], dtype=dtype)
    state = nag.create_state_multi_precision(0, w)
    mom, copy = (state, w) if dtype == "float32" else state
    mom[:] = 0.25
    nag.update_multi_precision(0, w, nd.array([0.5], dtype=dtype), state)
    np.testing.assert_allclose([copy.item(), mom.item()], [1.0942, 0.1673406], rtol=1e-6)  # MXNet's


def test_lamb_keeps_its_copy_better():
    """MXNet's leaves the copy as it was, so that the next step begins at the same place."""
    w32, g = nd.array([3, 4]), nd.array([0, 2])
    nd.mp_lamb_update_phase2(w32.astype("float16"), g, w32.norm(), g.norm(), w32, lr=0.5)
    assert w32.asnumpy().tolist() == [3, 1.5]


def test_whether_all_are_finite():
    bad, fine = nd.array([1, math.nan]), nd.array([[1, 2]], dtype="float16")
    out = nd.zeros((1,))
    assert nd.all_finite(fine, out=out) is out
    assert out.item() == 1
    assert nd.all_finite(nd.array([65504, -math.inf], dtype="float16")).item() == 0
    for held, data, found in ((1, fine, 1), (1, bad, 0), (0, fine, 0)):
        out[:] = held
        nd.multi_all_finite(fine, data, num_arrays=2, init_output=False, out=out)
        assert out.item() == found


def test_sums_of_squares_of_float16_do_not_overflow():
    assert nd.multi_sum_sq(nd.full((3,), 300, dtype="float16"), num_arrays=1).asnumpy().tolist() == [270000]


def test_one_tensor_without_a_state_keeps_its_axes():
    """Its only result was taken for a list of results: the first row was returned."""
    w, g = nd.array([[1, 2], [3, 4]]), nd.array([[2, 2], [4, 4]])
    for found in (nd.multi_sgd_update(w, g, lrs=(0.5,), wds=(0,)),
                  nd.preloaded_multi_sgd_update(w, g, nd.array([0.5]), nd.array([0]))):  # fmt: skip
        assert found.asnumpy().tolist() == [[0, 1], [1, 2]]


def test_numbers_of_inputs_and_rates():
    w = nd.ones((2,))
    with pytest.raises(mx.MXNetError, match="multi_sgd_mom_update: 2 inputs, but num_weights=1; expected 3 for each tensor"):
        nd.multi_sgd_mom_update(w, w, lrs=(0.1,), wds=(0,))
    with pytest.raises(mx.MXNetError, match=r"multi_sgd_update: lrs=\(0.1,\) but num_weights=2; expected 2 numbers"):
        nd.multi_sgd_update(w, w, w, w, lrs=(0.1,), wds=(0, 0), num_weights=2)
    with pytest.raises(mx.MXNetError, match="expected 4 for each tensor, and 1 for all"):
        nd._internal._multi_adamw_update(w, w, w, w, lrs=(0.1,), wds=(0,), etas=(1,))


def test_a_learning_rate_that_is_always_new_keeps_no_memory():
    """Neither a formula nor a plan is made for it; what was parsed is forgotten after a thousand others."""
    w, g, mom = nd.ones((8,)), nd.ones((8,)), nd.zeros((8,))
    calls = [
        lambda lr: nd.sgd_mom_update(w, g, mom, lr=lr, momentum=0.9, out=w),
        lambda lr: nd.multi_sgd_mom_update(w, g, mom, lrs=(lr,), wds=(0,), momentum=0.9, out=w),
        lambda lr: nd.contrib.adamw_update(w, g, mom, mom.copy(), 1.0, lr=lr, eta=1, out=w),
        lambda lr: nd.ftml_update(w, g, mom, mom.copy(), mom.copy(), lr=lr, t=int(1 / lr), out=w),
    ]
    for call in calls:
        tracemalloc.start()
        for step in range(500, 3000):
            call(1 / step)
        before = tracemalloc.get_traced_memory()[0]
        for step in range(3000, 7000):
            call(1 / step)
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert grown < 500_000
    assert max(len(mx.op.get(n)._formulas) for n in ("sgd_mom_update", "_adamw", "_ftml")) < 8


# ---- gradients ---------------------------------------------------------------------------------------------------------
def test_backward_reads_the_state_that_was():
    w, g, mean, var = (nd.array([x]) for x in (1.0, 0.5, 0.25, 0.75))
    g.attach_grad()
    with autograd.record():
        y = nd.adam_update(w, g, mean, var, lr=0.1, beta1=0.5, beta2=0.5)
    y.backward()

    def step(grad):
        m, v = 0.5 * 0.25 + 0.5 * grad, 0.5 * 0.75 + 0.5 * grad**2
        return 1 - 0.1 * m / (math.sqrt(v) + 1e-8)

    assert mean.item() == 0.375
    assert g.grad.item() == pytest.approx((step(0.501) - step(0.499)) / 0.002, rel=1e-4)


def test_a_step_of_a_copy_has_the_gradient_of_the_step():
    g = nd.array([0.5, -1.5])
    found = []
    for mixed in (False, True):
        w, mom, x = nd.array([1, 2]), nd.array([0.5, 0.25]), g.copy()
        x.attach_grad()
        with autograd.record():
            params = {"lr": 0.5, "momentum": 0.5, "clip_gradient": 1.0}
            y = nd.mp_sgd_mom_update(w, x, mom, w.copy(), **params) if mixed else nd.sgd_mom_update(w, x, mom, **params)
        y.backward()
        found.append([y.asnumpy().tolist(), x.grad.asnumpy().tolist()])
    assert found[0] == found[1] == [[1, 2.625], [-0.5, 0]]


def test_a_learning_rate_is_learnt():
    """The gradient through a step with respect to what the step is made of: a hypergradient."""
    w, rate = nd.array([3.0]), nd.array([0.1])
    rate.attach_grad()
    with autograd.record():
        new = nd._internal._sgd_at(w, 2 * w, rate, nd.zeros((1,)), rescale_grad=1, clip_gradient=-1)
        loss = new * new
    loss.backward()
    assert rate.grad.item() == pytest.approx(2 * (3 - 0.1 * 6) * -6, rel=1e-6)


# ---- symbols -----------------------------------------------------------------------------------------------------------
def test_states_of_several_tensors_in_a_symbol():
    names = ["w0", "g0", "m0", "w0_32", "w1", "g1", "m1", "w1_32"]
    y = sym.multi_mp_sgd_mom_update(*map(sym.Variable, names), lrs=(0.5, 0.25), wds=(0, 0), momentum=0.5, num_weights=2)
    assert y.list_arguments() == ["w0", "g0", "w1", "g1"]
    assert y.list_auxiliary_states() == ["m0", "w0_32", "m1", "w1_32"]
    assert len(y.list_outputs()) == 2
    executor = y.simple_bind(mx.cpu(), grad_req="null", w0=(2,), w1=(3,), type_dict={"w0": "float16", "w1": "float16"})
    assert executor.arg_dict["g1"].dtype == np.float16
    assert executor.aux_dict["w1_32"].dtype == np.float32
    executor.arg_dict["g1"][:] = 4
    executor.aux_dict["w1_32"][:] = 1
    for new, mom in ((0, -1), (-1.5, -1.5)):
        out = executor.forward()[1]
        assert out.dtype == np.float16
        assert out.asnumpy().tolist() == executor.aux_dict["w1_32"].asnumpy().tolist() == [new] * 3
        assert executor.aux_dict["m1"].asnumpy().tolist() == [mom] * 3


def test_arrays_that_are_reset():
    a, b = nd.ones((2, 3)), nd.ones((4,), dtype="int32")
    assert nd.reset_arrays(a, b[1:3], num_arrays=2) == []
    assert a.asnumpy().sum() == 0
    assert b.asnumpy().tolist() == [1, 0, 0, 1]


def test_a_count_of_none_is_inferred_too():
    net = sym.multi_sum_sq(sym.Variable("a"), num_arrays=0)
    assert net.infer_type(a="float32") == ([np.float32], [np.float32], [])
    assert net.simple_bind(mx.cpu(), a=(2,)).forward()[0].shape == (1,)
