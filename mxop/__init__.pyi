# Written by `python -m mxop stubs` from the operators' definitions; change those.

from . import attribute as attribute
from . import autograd as autograd
from . import axes as axes
from . import base as base
from . import context as context
from . import errors as errors
from . import graph as graph
from . import library as library
from . import name as name
from . import ndarray as ndarray
from . import op as op
from . import operator as operator
from . import profiler as profiler
from . import random as random
from . import records as records
from . import symbol as symbol
from . import test_utils as test_utils
from . import util as util
from . import visualization as visualization
from . import ndarray as nd
from . import symbol as sym
from . import visualization as viz
from .context import Context as Context
from .errors import MXNetError as MXNetError
from .context import cpu as cpu
from .context import cpu_pinned as cpu_pinned
from .context import current_context as current_context
from .context import gpu as gpu
from .context import gpu_memory_info as gpu_memory_info
from .context import num_gpus as num_gpus
from .attribute import AttrScope as AttrScope
from .symbol import Symbol as Symbol
from .graph.executor import Executor as Executor
from .util import is_np_shape as is_np_shape
from .util import np_shape as np_shape
from .util import set_np_shape as set_np_shape
from .util import use_np_shape as use_np_shape
from .library.include import get_include as get_include

__version__: str
