"""``mx.contrib.quantization``: networks of float32 converted to int8, for inference.

One concern a file:

- ``graphs``: which nodes are quantized, and how the network is rewritten
- ``calibration``: the ranges of values, from sample data
- ``models``: networks with their parameters
"""

from ....support.missing import hooks
from .calibration import combine_histogram
from .models import calib_graph, quantize_graph, quantize_model, quantize_model_mkldnn

__all__ = ["calib_graph", "combine_histogram", "quantize_graph", "quantize_model", "quantize_model_mkldnn"]

__getattr__, __dir__ = hooks(globals(), __all__)
