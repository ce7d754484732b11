"""The page of the kinds, ``docs/kinds.md``: each operator that it shows passes the checks of operators."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import special

import mxop as mx

PAGE = Path(__file__).resolve().parent.parent / "docs" / "kinds.md"


def _boolean(x, *, limit=0.0):
    return x[x > limit]


def _centred(data, mean, momentum=0.9, is_train=False):
    new = momentum * mean + (1 - momentum) * data.mean(0) if is_train else mean
    return data - new, new


#: The reference, and the fields of the record.
RECORDS = {
    "longest": (lambda *data, num_args: np.max(data, axis=0), {"shapes": [((2, 3),) * 3], "params": [{"num_args": 3}],
                                                               "distinct": True}),
    "hinge": (lambda x, label, margin=1.0: np.maximum(margin - (2 * label - 1) * x, 0),
              {"input_types": {1: "int32"}, "domain": ((-0.8, 0.8), (0, 2)), "grad_inputs": (0,), "dtypes": "f"}),
    "sign_through": (np.sign, {"order": 0, "dtypes": "f"}),
    "exceeds": (np.greater, {"returns": "bool", "order": 0, "shapes": [((2, 3), (3,))]}),
    "distance": (lambda a, b, order=2.0, axis=None, keepdims=False: (abs(a - b) ** order).sum(axis, keepdims=keepdims)
                 ** (1 / order), {"domain": ((1, 2), (-2, 0)), "dtypes": "f", "params": [{}, {"axis": 1, "order": 3.0}]}),
    "log_sum_exp": (lambda x, axis=None, keepdims=False: special.logsumexp(x, axis=axis, keepdims=keepdims),
                    {"dtypes": "f", "distinct": True, "params": [{}, {"axis": (1,), "keepdims": True}],
                     "unchecked": {"special": "of infinities it is NaN"}}),
    "rms_norm": (lambda x, scale, eps=1e-6: x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * scale,
                 {"shapes": [((4, 3), (3,)), ((2, 3, 5), (5,))], "dtypes": "f"}),
    "pooled_pairs": (lambda x, weight: x.reshape(len(x), -1, 2).sum(-1) * weight,
                     {"shapes": [((4, 6), (3,)), ((1, 2), (1,))], "dtypes": "f"}),
    "chosen_score": (lambda x, label: np.take_along_axis(x, label.astype(int)[..., None], -1)[..., 0],
                     {"shapes": [((4, 3), (4,))], "input_types": {1: "int64"}, "domain": ((-2, 2), (0, 2)), "dtypes": "f",
                      "grad_inputs": (0,), "unchecked": {"special": "a NaN beside the score is one of the sum"}}),
    "top": (lambda x: (x.max(-1), x.argmax(-1)),
            {"returns": lambda t: [t, "int64"], "distinct": True, "dtypes": "f"}),
    "running_sum": (lambda x: np.cumsum(x, axis=0), {"dtypes": "f"}),
    "running_sum_back": (lambda x: np.cumsum(x[::-1], axis=0)[::-1], {"dtypes": "f"}),
    "centred": (_centred, {"shapes": [((4, 3), (3,))], "dtypes": "f"}),
    "noisy": (lambda x, scale=1.0, is_train=False: x, {"params": [{"is_train": False}], "dtypes": "f", "seed": mx.random.seed}),
    "above": (_boolean, {"dtypes": "f", "shapes": [((2, 3),), ((7,),)]}),
}  # fmt: skip


@pytest.fixture(scope="module")
def shown():
    """The operators that the page defines, which are let go afterwards."""
    before, text, names = set(mx.op.names()), PAGE.read_text(), {}
    sessions = doctest.DocTestParser().get_examples("\n".join(re.findall(r"```pycon\n(.*?)```", text, re.S)))
    blocks = re.findall(r"```python\n(.*?)```", text, re.S) + [e.source for e in sessions if e.source.startswith("@")]
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    found = set(mx.op.names()) - before
    yield {name for name in found if not name.startswith("_")}
    for name in found:
        if mx.op.find(name) is not None:
            mx.op.unregister(name)


def test_every_operator_of_the_page_has_a_record(shown):
    assert shown == set(RECORDS)


@pytest.mark.parametrize("name", RECORDS)
def test_an_operator_of_the_page_passes_its_checks(shown, name):
    reference, fields = RECORDS[name]
    mx.records.record(name, reference, **fields)
    mx.test_utils.check_op(name)
