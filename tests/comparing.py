"""How tests compare arrays where NumPy's own comparisons do not look, and output gradients that hide nothing."""

import numpy as np

from mxop import nd


def heads(outputs):
    """Return output gradients that differ from element to element: equal ones hide elements that change places."""
    return [nd.array(np.random.default_rng(k).uniform(-1, 1, o.shape), dtype=o.dtype) for k, o in enumerate(outputs)]


def same_signs(have, want):
    """Zeros have the same signs; a NaN has none."""
    np.testing.assert_array_equal(np.signbit(have) & ~np.isnan(have), np.signbit(want) & ~np.isnan(want))
