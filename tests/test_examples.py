"""The programs of ``examples/`` at a small size: each learns what it is there to learn, and its derivatives are right."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import mxop as mx

FOLDER = Path(__file__).resolve().parent.parent / "examples"
NAMES = ("gradient_penalty", "learning_rates", "newton_cg", "language_model", "digits_by_symbol")


@pytest.fixture
def example(monkeypatch):
    """Import an example as it is when it runs as a program: with its folder in front of the path."""
    monkeypatch.syspath_prepend(FOLDER)
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if name in NAMES or name == "helpers":
            del sys.modules[name]


def test_gradient_penalty_brings_generator_and_slope(example):
    found = example("gradient_penalty").train(rounds=80, batch=64, width=32, critic_steps=4, learning_rate=2e-3)
    assert found["after"] < 0.4 * found["before"]
    assert 0.6 < found["slope"] < 1.5


def test_without_a_penalty_slopes_grow(example):
    found = example("gradient_penalty").train(rounds=80, batch=64, width=32, critic_steps=4, learning_rate=2e-3, penalty=0)
    assert found["slope"] > 2


def test_hypergradient_is_that_of_differences(example):
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
    module = example("learning_rates")
    problem = module.Problem(hidden=8, inner_steps=3, batch=32, seed=1)
    task, rates = problem.task(), np.log(np.array([[0.3, 0.1], [0.2, 0.4], [0.1, 0.2]], "float32"))

    def reached(values):
        with mx.autograd.record():
            return problem.reached(values, *task, problem.judges)

    log_rates = mx.nd.array(rates)
    log_rates.attach_grad()
    reached(log_rates).backward()
    for at in np.ndindex(rates.shape):
        moved = [rates.copy(), rates.copy()]
        moved[0][at] += 0.05
        moved[1][at] -= 0.05
        up, down = (reached(mx.nd.array(m)).asscalar() for m in moved)
        np.testing.assert_allclose(log_rates.grad.asnumpy()[at], (up - down) / 0.1, rtol=0.02, atol=1e-5)


def test_learning_rates_are_learnt(example):
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
    found = example("learning_rates").learn(rounds=30, inner_steps=5, hidden=16, learning_rate=0.1)
    assert found["learnt"] < 0.95 * found["constant"]


def test_products_with_the_hessian(example):
    fit = example("newton_cg").Fit(widths=(1, 5, 1), points=20)
    rng = np.random.default_rng(2)
    weights, vector = fit.start + rng.normal(0, 0.1, fit.start.shape), rng.normal(size=fit.start.shape)
    _, product = fit.derivatives(weights)
    step = 1e-5
    up, down = (fit.derivatives(weights + s * step * vector)[0] for s in (1, -1))
    np.testing.assert_allclose(product(vector), (up - down) / (2 * step), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(product(2 * vector), 2 * product(vector), rtol=1e-12)


def test_newton_reaches_a_minimum(example):
    module = example("newton_cg")
    fit = module.Fit(widths=(1, 8, 1), points=40, decay=1e-4)
    found = module.newton(fit, 200)
    assert found["gradient"] < 1e-6
    assert all(b <= a for a, b in zip(found["losses"], found["losses"][1:], strict=False))
    assert found["losses"][-1] < min(module.adam(fit, 200))


def test_a_language_model_learns_its_text(example):
    module = example("language_model")
    text = "the lamp, the sea, the road, " * 28
    model, perplexity = module.train(text, epochs=25, hidden=32, layers=1, length=16, batch=4, learning_rate=2e-2)
    assert perplexity[0] > 5 and perplexity[-1] < 1.3
    assert model.write("the lamp, ", 19, temperature=0.1) == "the lamp, the sea, the road, "


def test_one_letter_at_a_time_is_the_same_network(example):
    module = example("language_model")
    text = module.TEXT.read_text(encoding="utf-8")
    model, _ = module.train(text[:600], epochs=1, hidden=8, layers=2, length=8, batch=2)
    given = model.encode(text[:8])[:, None]
    whole = model.bind(8, 1).forward(is_train=False, data=mx.nd.array(given))[0].asnumpy()
    single = model.bind(1, 1)
    for k in range(8):
        chances, *states = single.forward(is_train=False, data=mx.nd.array(given[k : k + 1]))
        np.testing.assert_allclose(chances.asnumpy()[0], whole[k], rtol=1e-5)
        for name, state in zip(module.STATES, states, strict=True):
            state.copyto(single.arg_dict[name])


def test_digits_by_symbol(example):
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
    found = example("digits_by_symbol").train(epochs=12)
    assert found["test"][-1] > 0.97


@pytest.mark.parametrize("name", NAMES)
def test_every_example_says_how_it_is_run(example, name):
    module = example(name)
    assert f"python examples/{name}.py" in module.__doc__ and callable(module.main)
