"""``mx.contrib.amp``: automatic mixed precision, float16 or bfloat16 where it is fast and float32 where it has to be.

One concern a file:

- ``lists``: which operators run in which type
- ``symbols``: a float32 network as one of mixed types
- ``arrays``: calls on arrays, and symbols made from now on
- ``loss_scaler``: losses scaled so that gradients in float16 do not vanish
"""

from ....support.missing import hooks
from . import loss_scaler
from .arrays import init
from .lists import (
    list_conditional_fp32_ops,
    list_fp32_ops,
    list_loss_output_functions,
    list_lp16_fp32_ops,
    list_lp16_ops,
    list_lp16_use_fp32_params,
    list_widest_type_cast,
)
from .loss_scaler import init_trainer, scale_loss, unscale
from .symbols import convert_model, convert_symbol

__all__ = ["convert_model", "convert_symbol", "init", "init_trainer", "list_conditional_fp32_ops", "list_fp32_ops",
           "list_loss_output_functions", "list_lp16_fp32_ops", "list_lp16_ops", "list_lp16_use_fp32_params",
           "list_widest_type_cast", "loss_scaler", "scale_loss", "unscale"]  # fmt: skip

__getattr__, __dir__ = hooks(globals(), __all__)

from . import amp  # noqa: E402, F401  another path to the same names
