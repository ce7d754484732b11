"""How tests compare arrays where NumPy's own comparisons do not look."""

import numpy as np


def same_signs(have, want):
    """Zeros have the same signs; a NaN has none."""
    np.testing.assert_array_equal(np.signbit(have) & ~np.isnan(have), np.signbit(want) & ~np.isnan(want))
