"""``mx.optimizer`` and ``mx.lr_scheduler``: steps by NumPy's formulas, rates, states and their files."""

import base64
import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest

import mxop as mx
from mxop.errors import OpTypeError, OpValueError

RATES = {"learning_rate": 0.1, "wd": 0.01, "rescale_grad": 0.5, "clip_gradient": 0.4}
LR, WD, RESCALE, CLIP = RATES.values()


def cut(g):
    return np.clip(g, -CLIP, CLIP)


def sgd(w, g, s, t, momentum=0.0):
    mom = momentum * s.get("mom", 0) - LR * (cut(RESCALE * g) + WD * w)
    s["mom"] = mom
    return w + mom


def nag(w, g, s, t, momentum=0.9):
    step, mom = LR * (cut(RESCALE * g) + WD * w), momentum * s.get("mom", 0)
    w = w + momentum * (mom - step) - step
    s["mom"] = mom - LR * (cut(RESCALE * g) + WD * w)
    return w


def signum(w, g, s, t, momentum=0.9, wd_lh=0.0):
    s["mom"] = momentum * s.get("mom", 0) - (1 - momentum) * (cut(RESCALE * g) + WD * w)
    return (1 - LR * wd_lh) * w + LR * np.sign(s["mom"])


def ftml(w, g, s, t, beta1=0.6, beta2=0.999, epsilon=1e-8):
    g = cut(RESCALE * g + WD * w)
    s["v"] = beta2 * s.get("v", 0) + (1 - beta2) * g * g
    d = (1 - beta1**t) / LR * (np.sqrt(s["v"] / (1 - beta2**t)) + epsilon)
    s["z"] = beta1 * s.get("z", 0) + (1 - beta1) * g - (d - beta1 * s.get("d", 0)) * w
    s["d"] = d
    return -s["z"] / d


def dcasgd(w, g, s, t, momentum=0.0, lamda=0.04):
    g = cut(RESCALE * g)
    before = s.get("before", w)
    s["mom"] = momentum * s.get("mom", 0) - LR * (g + WD * w + lamda * g * g * (w - before))
    s["before"] = w
    return w + s["mom"]


def moments(g, s, beta1, beta2):
    s["m"] = beta1 * s.get("m", 0) + (1 - beta1) * g
    s["v"] = beta2 * s.get("v", 0) + (1 - beta2) * g * g
    return s["m"], s["v"]


def adam(w, g, s, t, beta1=0.9, beta2=0.999, epsilon=1e-8):
    m, v = moments(cut(RESCALE * g + WD * w), s, beta1, beta2)
    return w - LR * math.sqrt(1 - beta2**t) / (1 - beta1**t) * m / (np.sqrt(v) + epsilon)


def adagrad(w, g, s, t, eps=1e-7):
    g = cut(RESCALE * g)
    s["h"] = s.get("h", 0) + g * g
    return w - LR * (g / np.sqrt(s["h"] + eps) + WD * w)


def rmsprop(w, g, s, t, gamma1=0.9, gamma2=0.9, epsilon=1e-8, centered=False):
    g = cut(RESCALE * g + WD * w)
    s["n"] = gamma1 * s.get("n", 0) + (1 - gamma1) * g * g
    if not centered:
        return w - LR * g / np.sqrt(s["n"] + epsilon)
    s["g"] = gamma1 * s.get("g", 0) + (1 - gamma1) * g
    s["d"] = gamma2 * s.get("d", 0) - LR * g / np.sqrt(s["n"] - s["g"] ** 2 + epsilon)
    return w + s["d"]


def adadelta(w, g, s, t, rho=0.9, epsilon=1e-5):
    g = cut(RESCALE * g)
    s["g"] = rho * s.get("g", 0) + (1 - rho) * g * g
    step = np.sqrt(s.get("d", 0) + epsilon) / np.sqrt(s["g"] + epsilon) * g
    s["d"] = rho * s.get("d", 0) + (1 - rho) * step * step
    return w - step - WD * w


def ftrl(w, g, s, t, lamda1=0.01, beta=1):
    g = cut(RESCALE * g)
    n = s.get("n", 0)
    s["n"] = n + g * g
    s["z"] = s.get("z", 0) + g - (np.sqrt(s["n"]) - np.sqrt(n)) * w / LR
    new = (np.sign(s["z"]) * lamda1 - s["z"]) / ((beta + np.sqrt(s["n"])) / LR + WD)
    return np.where(np.abs(s["z"]) > lamda1, new, 0)


def adamax(w, g, s, t, beta1=0.9, beta2=0.999):
    g = cut(RESCALE * g + WD * w)
    s["m"] = beta1 * s.get("m", 0) + (1 - beta1) * g
    s["u"] = np.maximum(beta2 * s.get("u", 0), np.abs(g))
    return w - LR / (1 - beta1**t) * s["m"] / s["u"]


def nadam(w, g, s, t, beta1=0.9, beta2=0.999, epsilon=1e-8, decay=0.004):
    g = cut(RESCALE * g + WD * w)
    now, later = (beta1 * (1 - 0.5 * 0.96 ** (k * decay)) for k in (t, t + 1))
    s["all"] = s.get("all", 1) * now
    m, v = moments(g, s, beta1, beta2)
    ahead = (1 - now) * g / (1 - s["all"]) + later * m / (1 - s["all"] * later)
    return w - LR * ahead / (np.sqrt(v / (1 - beta2**t)) + epsilon)


def lamb(w, g, s, t, beta1=0.9, beta2=0.999, epsilon=1e-6):
    m, v = moments(cut(RESCALE * g), s, beta1, beta2)
    step = m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + epsilon) + WD * w
    return w - LR * np.linalg.norm(w) / np.linalg.norm(step) * step


def lars(w, g, s, t, momentum=0.9, eta=0.001):
    norm = np.linalg.norm(w)
    rate = LR * eta * norm / (np.linalg.norm(RESCALE * g) + WD * norm)
    s["mom"] = momentum * s.get("mom", 0) - rate * (cut(RESCALE * g) + WD * w)
    return w + s["mom"]


CASES = [
    (sgd, "sgd", {}), (sgd, "sgd", {"momentum": 0.9}), (sgd, "ccsgd", {}), (nag, "nag", {"momentum": 0.9}),
    (signum, "signum", {"wd_lh": 0.1}), (ftml, "ftml", {}), (dcasgd, "dcasgd", {}), (dcasgd, "dcasgd", {"momentum": 0.9}),
    (adam, "adam", {}), (adagrad, "adagrad", {}), (rmsprop, "rmsprop", {}), (rmsprop, "rmsprop", {"centered": True}),
    (adadelta, "adadelta", {}), (ftrl, "ftrl", {}), (adamax, "adamax", {}), (nadam, "nadam", {}), (lamb, "lamb", {}),
    (lars, "lars", {"momentum": 0.9}), (sgd, "lbsgd", {"warmup_epochs": 0}),
]  # fmt: skip


@pytest.mark.parametrize("formula, name, kwargs", CASES, ids=[f"{n}{k or ''}" for _, n, k in CASES])
@pytest.mark.parametrize("mixed", [False, True])
def test_steps(formula, name, kwargs, mixed):
    random = np.random.RandomState(3)
    optimizer = mx.optimizer.create(name, multi_precision=mixed, **RATES, **kwargs)
    update, states = mx.optimizer.get_updater(optimizer), {}
    dtype = np.float16 if mixed else np.float32
    weight = mx.nd.array(random.normal(size=(4, 3)), dtype=dtype)
    expected = weight.asnumpy().astype("float64")
    for t in range(1, 6):
        grad = random.normal(size=(4, 3)).astype(dtype)
        given = mx.nd.array(grad, dtype=dtype)
        update(0, given, weight)
        expected = formula(expected, grad.astype("float64"), states, t, **kwargs if "warmup_epochs" not in kwargs else {})
        assert (given.asnumpy() == grad).all()  # the gradient is the caller's
    tolerance = 2e-3 if mixed else 3e-6
    np.testing.assert_allclose(weight.asnumpy(), expected, rtol=tolerance, atol=tolerance)


def test_groups_noise_and_test():
    w, g = mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([[1, 1], [2, 2]])
    mx.optimizer.get_updater(mx.optimizer.create("groupadagrad", learning_rate=0.5))(0, g, w)
    assert w.asnumpy().round(3).tolist() == [[0.5, 1.5], [2.5, 3.5]]
    with pytest.raises(OpValueError, match="no weight decay"):
        mx.optimizer.get_updater(mx.optimizer.create("groupadagrad", wd=0.1))(0, g, w)
    w = mx.nd.ones((100, 100))
    mx.optimizer.get_updater(mx.optimizer.create("sgld", learning_rate=0.04))(0, mx.nd.ones((100, 100)), w)
    assert abs(float(w.mean().asscalar()) - 0.98) < 0.01 and abs(w.asnumpy().std() - 0.2) < 0.01
    w, update = mx.nd.ones(2), mx.optimizer.get_updater(mx.optimizer.create("test", rescale_grad=2))
    update("a", mx.nd.ones(2), w)
    assert w.asnumpy().tolist() == update.states["a"].asnumpy().tolist() == [3, 3]


def test_a_weight_without_a_gradient_keeps_still():
    w = mx.nd.array([1, 2])
    for name in ("adamax", "adam", "adagrad", "rmsprop"):
        mx.optimizer.get_updater(mx.optimizer.create(name))(0, mx.nd.array([0, 1]), w)
        assert w.asnumpy()[0] == 1


# ---- rates and counts -----------------------------------------------------------------------------------------------------
def test_rates_of_single_weights():
    a = mx.sym.Variable("a_weight", lr_mult=0.5, wd_mult=3.0)
    symbol = mx.sym.FullyConnected(mx.sym.Variable("x"), a, mx.sym.Variable("a_bias"), num_hidden=2)
    names = {0: "a_weight", 1: "a_bias", 2: "b_gamma"}
    optimizer = mx.optimizer.SGD(learning_rate=1.0, wd=0.1, param_idx2name=names, sym=symbol)
    assert optimizer._get_lrs([0, 1, 2]) == [0.5, 1, 1]
    np.testing.assert_allclose(optimizer._get_wds([0, 1, 2]), [0.3, 0, 0.1])
    optimizer.set_lr_mult({"a_bias": 2})
    optimizer.set_wd_mult({"a_bias": 1, 2: 4})
    assert optimizer._get_lrs([0, 1, 2]) == [0.5, 2, 1]
    np.testing.assert_allclose(optimizer._get_wds([0, 1, 2]), [0.3, 0.1, 0.4])

    class Parameter:
        lr_mult, wd_mult = 7, 8

    optimizer.param_dict = {0: Parameter}
    assert (optimizer._get_lr(0), optimizer._get_wd(0)) == (7, 0.8)


def test_schedules_follow_the_largest_count():
    schedule = mx.lr_scheduler.FactorScheduler(2, 0.5)
    with pytest.warns(UserWarning, match="replaces the scheduler's base_lr=0.01"):
        optimizer = mx.optimizer.SGD(learning_rate=1.0, lr_scheduler=schedule)
    update, w = mx.optimizer.get_updater(optimizer), mx.nd.zeros((1,))
    found = []
    for _ in range(5):
        update(0, mx.nd.ones((1,)), w)
        found.append(w.item())
    assert found == [-1, -2, -2.5, -3, -3.25] and optimizer.learning_rate == 0.25
    plain = mx.optimizer.Adam(lr_scheduler=lambda n: 0.5**n)  # a function will do
    plain.num_update = 3
    assert plain.learning_rate == 0.125
    with pytest.raises(OpValueError, match="2 indices, 1 gradients and 1 weights"):
        update([0, 1], [w], [w])
    with pytest.raises(UserWarning, match="lr_scheduler sets") as caught:
        optimizer.set_learning_rate(3)
    assert isinstance(caught.value, OpValueError)
    for name in ("learning_rate", "wd"):
        with pytest.raises(OpTypeError, match=f"SGD: {name}='0.1' is text; expected a number"):
            mx.optimizer.create("sgd", **{name: "0.1"})
    with pytest.raises(ValueError, match="'nope' is not registered"):
        mx.optimizer.create("nope")
    update(1, mx.nd.ones((1,)), w)  # a new weight begins to count, the rate does not go back
    assert optimizer.num_update == 5 and w.item() == -3.5


def test_the_momentum_of_lars_is_corrected_for_all_weights_alike():
    schedule = mx.lr_scheduler.FactorScheduler(1, 0.5, base_lr=1.0)
    update = mx.optimizer.get_updater(mx.optimizer.LARS(momentum=0.9, lr_scheduler=schedule, eta=1))
    weights = [mx.nd.ones((2,)) for _ in range(6)]
    for _ in range(3):
        update(list(range(6)), [mx.nd.ones((2,)) for _ in range(6)], weights)
    assert len({w.asnumpy().tobytes() for w in weights}) == 1


@pytest.mark.parametrize("make, values", [
    (lambda s: s.FactorScheduler(2, 0.5, 0.3, 1.0), [1, 1, 1, 0.5, 0.5, 0.3, 0.3]),
    (lambda s: s.MultiFactorScheduler([1, 4], 0.1, 1.0), [1, 1, 0.1, 0.1, 0.1, 0.01, 0.01]),
    (lambda s: s.PolyScheduler(4, 1.0, 1), [1, 0.75, 0.5, 0.25, 0, 0, 0]),
    (lambda s: s.CosineScheduler(4, 1.0, 0.5), [1, 0.92678, 0.75, 0.57322, 0.5, 0.5, 0.5]),
    (lambda s: s.CosineScheduler(4, 1.0, warmup_steps=2, warmup_begin_lr=0.5), [0.5, 0.75, 1, 0.5, 0, 0, 0]),
    (lambda s: s.PolyScheduler(4, 1.0, 1, 0, 2, 0.1, "constant"), [0.1, 0.1, 1, 0.5, 0, 0, 0]),
])  # fmt: skip
def test_schedules(make, values):
    schedule = make(mx.lr_scheduler)
    np.testing.assert_allclose([schedule(n) for n in range(7)], values, atol=1e-5)


def test_schedules_tell_of_changes(caplog):
    """MXNet's words, for programs that read logs."""
    caplog.set_level("INFO")
    factor, steps = mx.lr_scheduler.FactorScheduler(2, 0.5, 0.4, 1.0), mx.lr_scheduler.MultiFactorScheduler([1], 0.1, 1.0)
    for n in range(1, 6):
        factor(n)
    steps(2)
    assert [record.getMessage() for record in caplog.records] == [
        "Update[3]: Change learning rate to 5.00000e-01",
        "Update[5]: now learning rate arrived at 4.00000e-01, will not change in the future",
        "Update[2]: Change learning rate to 1.00000e-01",
    ]


@pytest.mark.parametrize("make", [
    lambda s: s.FactorScheduler(0), lambda s: s.FactorScheduler(1, 2), lambda s: s.MultiFactorScheduler([3, 2]),
    lambda s: s.MultiFactorScheduler([]), lambda s: s.MultiFactorScheduler(3), lambda s: s.PolyScheduler(0),
    lambda s: s.CosineScheduler(1.5), lambda s: s.LRScheduler(0.1, -1), lambda s: s.LRScheduler(0.1, 1, 0.2),
    lambda s: s.LRScheduler(0.1, warmup_mode="slow"),
])  # fmt: skip
def test_impossible_schedules(make):
    with pytest.raises(mx.MXNetError, match="lr_scheduler: "):
        make(mx.lr_scheduler)


def test_names():
    assert isinstance(mx.optimizer.create("SGD"), mx.optimizer.SGD)
    with pytest.raises(ValueError, match="optimizer 'adm' is not registered; did you mean 'adam'"):
        mx.optimizer.create("adm")

    @mx.optimizer.register
    class OwnStep(mx.optimizer.Optimizer):
        aggregate_num = property(lambda self: 2, lambda self, value: None)

        def update(self, index, weight, grad, state):
            seen.append(index)

    seen = []
    try:
        update = mx.optimizer.get_updater(mx.optimizer.create("ownstep"))
        update([0, 1, 2], [mx.nd.ones(1)] * 3, [mx.nd.ones(1)] * 3)
        assert seen == [(0, 1), (2,)]
    finally:
        del mx.optimizer.Optimizer.opt_registry["ownstep"]


# ---- files of states ------------------------------------------------------------------------------------------------------
def stepped(**more):
    schedule = mx.lr_scheduler.FactorScheduler(1, 0.5, base_lr=0.2)
    update = mx.optimizer.get_updater(mx.optimizer.create("adam", learning_rate=0.2, lr_scheduler=schedule, **more))
    for index in (0, "b"):
        update(index, mx.nd.ones((2, 3)), mx.nd.ones((2, 3)))
    return update


def test_states_come_back():
    first, second = stepped(), mx.optimizer.get_updater(mx.optimizer.SGD())
    second.set_states(first.get_states())
    assert isinstance(second.optimizer, mx.optimizer.SGD) and list(second.states) == [0, "b"]
    for index, state in first.states.items():
        assert [a.asnumpy().tolist() for a in state] == [a.asnumpy().tolist() for a in second.states[index]]
    second.set_states(first.get_states(dump_optimizer=True))
    ours, theirs = second.optimizer, first.optimizer
    assert type(ours) is type(theirs) and ours._index_update_count is ours._all_index_update_counts[0]
    assert vars(ours.lr_scheduler) == vars(theirs.lr_scheduler)
    assert {k: v for k, v in vars(ours).items() if k != "lr_scheduler"} == {
        k: v for k, v in vars(theirs).items() if k != "lr_scheduler"
    }
    weights = [mx.nd.ones((2, 3)) for _ in range(2)]
    for update, w in zip((first, second), weights):
        update(0, mx.nd.ones((2, 3)), w)
    assert (weights[0] == weights[1]).asnumpy().all()
    copy = pickle.loads(pickle.dumps(first.optimizer))
    assert copy._index_update_count == first.optimizer._index_update_count and copy.param_dict == {}


class Pair:
    """A state of a class of the optimizer's own."""

    def __init__(self, weight):
        self.sum, self.steps, self.rate = mx.nd.zeros_like(weight), 0, None


def test_states_of_a_class_of_the_optimizers_own(monkeypatch):
    """MXNet pickles them.  Here the optimizer makes the object, and the file its attributes, also when written again."""

    class Counting(mx.optimizer.Optimizer):
        kept = Pair

        def create_state(self, index, weight):
            return mx.nd.ones((1,)), self.kept(weight)

        def update(self, index, weight, grad, state):
            state[1].sum += grad
            state[1].steps, state[1].rate = state[1].steps + 1, 0.5
            weight[:] -= state[1].sum / state[1].steps

    first, second, third = (mx.optimizer.get_updater(Counting()) for _ in range(3))
    weights = [mx.nd.array([8, 4]) for _ in range(3)]
    for gradient in ([1, 2], [4, 3]):
        first(0, mx.nd.array(gradient), weights[0])
    second.set_states(first.get_states())
    third.set_states(second.get_states())
    for update, weight in zip((second, third), weights[1:]):
        weight[:] = weights[0]
        update(0, mx.nd.array([1, 1]), weight)
        one, state = update.states[0]
        assert type(state) is Pair and (state.sum.asnumpy().tolist(), state.steps, state.rate) == ([6, 6], 3, 0.5)
        assert weight.asnumpy().tolist() == [8 - 1 - 2.5 - 2, 4 - 2 - 2.5 - 2] and one.asscalar() == 1
    second.set_states(first.get_states())
    monkeypatch.setattr(Counting, "kept", mx.nd.zeros_like)
    with pytest.raises(OpValueError, match="a state is of class Pair, with sum, steps, rate; the optimizer makes"):
        second(0, mx.nd.ones((2,)), weights[1])
    with pytest.raises(OpTypeError, match=r"get_states: optimizer Counting.* is <.*Pair"):
        first.optimizer.lr_mult = Pair(weights[0])
        first.get_states(dump_optimizer=True)


STATES = json.loads((Path(__file__).parent / "data" / "states.json").read_text())


@pytest.mark.parametrize("case", STATES["cases"])
def test_states_of_mxnet_are_read(case):
    """The third step is MXNet's, with the optimizer and states of its pickles, also when we have written them again."""
    pickles, before, after = STATES["cases"][case]
    stored = case.partition(" ")[2]

    def held(values):
        array = mx.nd.array(values, dtype="float16" if stored == "float16" else "float32")
        return array.tostype("row_sparse") if stored == "row_sparse" else array

    *whole, states_alone = map(base64.b64decode, pickles)
    for content in whole:
        update, again = (mx.optimizer.get_updater(mx.optimizer.create("test")) for _ in range(2))
        update.set_states(content)
        again.set_states(update.get_states(dump_optimizer=True))
        update.set_states(states_alone)
        assert type(update.optimizer).__name__.lower() == case.partition(" ")[0]
        for one in (update, again):
            weights = [held(w) for w in before]
            for index, (weight, grad) in enumerate(zip(weights, STATES["grads"])):
                one(index, held(grad), weight)
            for weight, expected in zip(weights, after):
                if case != "sgld":  # which draws
                    np.testing.assert_allclose(weight.asnumpy(), expected, rtol=1e-5, atol=1e-6)


class Harm:
    def __reduce__(self):
        return print, ("harm",)


@pytest.mark.parametrize("content", [
    pickle.dumps({0: Harm()}), pickle.dumps(Harm(), 0), pickle.dumps([1]), b"\x80\x04nonsense", b"", b"nonsense",
    mx.nd.save_tobuffer({"a": mx.nd.ones(1)}), mx.nd.save_tobuffer([mx.nd.ones(1)]),
    mx.nd.save_tobuffer({"structure": mx.nd.array(list(b"{}"), dtype="uint8")}),
])  # fmt: skip
def test_other_bytes_are_refused(content, capsys):
    with pytest.raises(mx.MXNetError, match=r"^set_states: "):
        mx.optimizer.get_updater(mx.optimizer.create("adam")).set_states(content)
    assert capsys.readouterr().out == ""


def test_what_no_file_is_made_of_is_told():
    update = mx.optimizer.get_updater(mx.optimizer.SGD(lr_scheduler=lambda n: 0.1))
    assert update.get_states()
    with pytest.raises(OpTypeError, match=r"optimizer SGD\['lr_scheduler'\] is <function"):
        update.get_states(dump_optimizer=True)


def test_a_scheduler_alone_sets_the_rate():
    optimizer = mx.optimizer.Optimizer(lr_scheduler=mx.lr_scheduler.FactorScheduler(step=1))
    with pytest.raises(UserWarning, match="lr_scheduler sets the learning rate") as caught:
        optimizer.set_learning_rate(5)
    assert isinstance(caught.value, OpValueError) and optimizer.learning_rate == 0.01


@pytest.mark.parametrize(("name", "given", "words"), [
    ("sgd", {"lr": 1}, "SGD has no parameter 'lr'; did you mean 'learning_rate'.*: momentum, lazy_update"),
    ("adam", {"beta": 0.9}, "Adam has no parameter 'beta'; did you mean 'beta.'.*: learning_rate, beta1, beta2, epsilon"),
])  # fmt: skip
def test_parameters_that_there_are_not(name, given, words):
    with pytest.raises(TypeError, match=words):
        mx.optimizer.create(name, **given)


@pytest.mark.parametrize(
    "name", ["AdaGrad", "GroupAdaGrad", "AdaDelta", "Adamax", "Nadam", "DCASGD", "SGD", "Adam", "RMSProp", "Ftrl"]
)
def test_clipping_to_zero(name):
    """As in MXNet: to some optimizers 0 is a limit, to others it says that there is none."""
    step = mx.optimizer.get_updater(mx.optimizer.create(name, learning_rate=0.1, clip_gradient=0.0))
    weight = mx.nd.array([[1, 2], [3, 4]])
    step(0, mx.nd.ones((2, 2)), weight)
    assert np.array_equal(weight.asnumpy(), [[1, 2], [3, 4]]) == (name not in ("SGD", "Adam", "RMSProp", "Ftrl"))


@pytest.mark.parametrize("take", [mx.optimizer.get_updater, lambda name: mx.kv.create().set_optimizer(name)])
def test_a_name_is_no_optimizer(take):
    """The error came with the first update: that a str has no attribute ``_set_current_context``."""
    with pytest.raises(OpTypeError, match=r"'sgd' is a name; expected an optimizer, mx.optimizer.create\('sgd'\)"):
        take("sgd")
