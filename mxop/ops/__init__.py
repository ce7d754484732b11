"""Every operator, one declarative entry each, one file a family.  May import :mod:`mxop.opdef` only.

The import order is the order of the documentation; entries find each other through the registry.
"""

from . import binary, convert, create, indexing, join, math, matrix, nn, random, reduce, shape, slicing  # noqa: F401
