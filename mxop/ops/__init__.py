"""Every operator, one declarative entry each, one file a family.  May import :mod:`mxop.opdef` only.

The import order is the order of the documentation; entries find each other through the registry.
"""

from . import (  # noqa: F401
    binary,
    convert,
    convolution,
    create,
    density,
    gather,
    indexing,
    join,
    layout,
    linalg,
    loss,
    many_updates,
    math,
    matrix,
    nn,
    norm,
    optimizer,
    order,
    orthogonal,
    pooling,
    positions,
    random,
    reduce,
    resize,
    rnn,
    sample,
    sequence,
    shape,
    slicing,
    triangles,
    windows,
)
