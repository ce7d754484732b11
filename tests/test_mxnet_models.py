"""Small models that MXNet 1.9.1 wrote, and ran: normalisation and output layers."""

import json

import mxnet_answers
import numpy as np
import pytest

import mxop as mx
from mxop import sym

ANSWERS = mxnet_answers.read("models.json")


@pytest.mark.parametrize("row", range(len(ANSWERS)))
def test_models_of_mxnet(row):
    """Names, outputs in both modes, gradients and states are MXNet's; and the file comes out as it went in."""
    text, arrays, expected = ANSWERS[row]
    found = mxnet_answers.run_model(mx, text, arrays)
    assert found[0] == expected[0]
    for got, want in zip(found[1:], expected[1:], strict=True):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
    assert json.loads(mx.sym.load_json(text).tojson()) == json.loads(text)


@pytest.mark.parametrize("row", range(len(ANSWERS)))
def test_symbols_are_mxnets(row):
    make, _ = mxnet_answers.MODELS[row]
    with mx.name.NameManager():
        made = json.loads(make(sym, sym.Variable("data")).tojson())
    assert made == json.loads(ANSWERS[row][0])
