"""Sequences, shapes and matrices against MXNet's answers."""

import json

import mxnet_arrays
import numpy as np
import pytest

import mxop as mx

CASES = json.loads(mxnet_arrays.DATA.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted({case[0] for _, case, _ in CASES}))
def test_mxnets_answers(name):
    """See ``mxnet_arrays.py``: results and gradients for random parameters."""
    asked = [row for row in CASES if row[1][0] == name]
    assert len(asked) == 16
    for seed, case, answer in asked:
        found = mxnet_arrays.run(mx, seed, case)
        assert [shape for shape, _ in found] == [shape for shape, _ in answer], case
        np.testing.assert_allclose([v for _, v in found], [v for _, v in answer], rtol=1e-5, atol=1e-5, err_msg=str(case))
