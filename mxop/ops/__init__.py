"""Every operator, one declarative entry each, one file a family.

The import order is the order of the documentation; entries find each other through the registry.  Examples assume
``import mxop as mx``.
"""

from . import (  # noqa: F401, I001
    anchors, attention, binary, boxes, convert, convolution, convolved, correlation, counting, create, ctc, deformable, density,
    einsum, gather, hawkes, image, image_random, indexing, join, layout, linalg, loss, many_updates, math, matrix, nn, norm,
    optimizer, order, orthogonal, pooling, positions, quantize, quantized, quantized_parts, random, reduce, regions, replace,
    resize, rnn, sample, sampling, sequence, shape, slicing, spectrum, storage, triangles, windows,
)  # fmt: skip
