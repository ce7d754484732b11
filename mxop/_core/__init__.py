"""Arrays, dispatch and the tape, compiled.  May import :mod:`mxop._kernels`, :mod:`mxop.opdef` and what is below them."""
