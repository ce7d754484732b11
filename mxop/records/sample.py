"""Records of operators that draw by parameters in arrays (``mxop/ops/sample.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal
from .random import _exponential, _gamma, _generalized, _negative_binomial, _normal, _poisson, _uniform, seeded

SHAPES = [((3, 40), (3, 40)), ((50,), (50,)), ((1, 1), (1, 1))]
ASKED = [{"shape": (5, 4)}, {"shape": (41,), "dtype": "float64"}, {"shape": (2000,), "dtype": "float16"}]


def _of_equal(law):
    """Return the law of numbers whose parameters, all equal, are arrays."""
    return lambda *arrays, **params: law(*(float(a.reshape(-1)[0]) for a in arrays))


def _sampled(law, *domain):
    """Record an operator, whose inputs are drawn from intervals that hold one number each."""
    n = len(domain)
    unequal = [Refusal("expected equal shapes", shapes=((2,), (3,)))] if n > 1 else []
    return Record(
        distribution=_of_equal(law), seed=seeded, domain=[(x, x) for x in domain], shapes=[s[:n] for s in SHAPES],
        params=ASKED, dtypes="f", order=0, grad_inputs=(),
        returns=lambda given, dtype="float32", **_: dtype,
        refuses=[
            *unequal,
            Refusal("expected sizes above 0", params={"shape": (2, 0)}),
            Refusal("expected one of float16, float32, float64", params={"dtype": "int32"}),
        ],
    )  # fmt: skip


def _choices(data, **_):
    """Return the law of positions, and that of the logarithms of their probabilities, for rows that are all equal."""
    chances = np.minimum(np.cumsum(data.reshape(-1, data.shape[-1])[0].astype(float)), 1)
    chances[-1] = 1
    return dict(enumerate(np.diff(chances, prepend=0)))


def _zipfian(range_max, shape):
    edges = np.log(np.arange(1, range_max + 2)) / np.log(range_max + 1)
    return [dict(enumerate(np.diff(edges))), {1: 1.0}]


def _first_above(sums, value):
    return np.minimum((sums[..., None, :] <= value[..., None]).sum(-1), sums.shape[-1] - 1)


def _counted(data):
    values, counts = np.unique(data, return_counts=True)
    return dict(zip(values.tolist(), counts / data.size, strict=True))


RECORDS: dict[str, Record] = {
    "_sample_uniform": _sampled(_uniform, -3.0, 5.0),
    "_sample_normal": _sampled(_normal, -2.0, 0.5),
    "_sample_exponential": _sampled(_exponential, 4.0),
    "_sample_gamma": _sampled(_gamma, 0.5, 2.0),
    "_sample_poisson": _sampled(_poisson, 7.0),
    "_sample_negative_binomial": _sampled(_negative_binomial, 3.0, 0.25),
    "_sample_generalized_negative_binomial": _sampled(_generalized, 6.0, 0.25),
    "_sample_multinomial": Record(
        distribution=_choices, seed=seeded, domain=(0.125, 0.125), dtypes="f", order=0, grad_inputs=(),
        shapes=[((3, 10, 6),), ((8,),), ((40, 3),)],
        params=[{"shape": (7, 5)}, {"shape": (900,), "dtype": "float16"}, {"dtype": "uint8"}],
        returns=lambda given, dtype="int32", **_: dtype,
        refuses=[
            Refusal("expected one of uint8, int32", params={"dtype": "int64"}),
            Refusal("expected sizes above 0", params={"shape": (0,)}), Refusal("expected probabilities", shapes=((2, 0),)),
        ],
    ),
    "_sample_unique_zipfian": Record(
        distribution=_zipfian, seed=seeded, params=[{"range_max": 7, "shape": (900, 1)}], dtypes="f", order=0, grad_inputs=(),
        returns="int64", refuses=[Refusal("not larger than range_max", params={"range_max": 3, "shape": (2, 4)}),
                                  Refusal("expected two dimensions", params={"range_max": 3, "shape": (2,)})],
    ),
    "_shuffle": Record(
        distribution=_counted, seed=seeded, domain=(0, 3), whole=(0,), shapes=[((2050,),), ((3001,),)], order=2,
    ),
    "_first_above": Record(
        _first_above, shapes=[((5,), (8,)), ((2, 3, 4), (2, 3, 6)), ((2, 1), (2, 3)), ((2, 9), (2, 70))], whole=(0, 1), order=0,
        domain=[(2, 2), (0, 4)], grad_inputs=(), returns="int64",
        refuses=[Refusal("expected equal shapes", shapes=((2, 3), (3, 3)))],
    ),
    "_order_of_bits": Record(
        lambda bits: np.argsort(bits >> bits.size.bit_length(), kind="stable"), domain=(0, 1e9), dtypes="i",
        input_types={0: "int64"}, shapes=[((7,),), ((300,),)], order=0, grad_inputs=(), returns="int64",
    ),
}  # fmt: skip
