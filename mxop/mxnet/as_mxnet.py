"""Lets programs written for MXNet import mxop under MXNet's name.

After :func:`install_as_mxnet`, ``import mxnet as mx``, ``from mxnet import nd`` and ``from mxnet.metric import Accuracy`` give
the modules of mxop themselves.
"""

from __future__ import annotations

import sys

from ..support.errors import MXNetError
from ..support.moved import Moved
from . import libinfo

NAME = "mxnet"


def install_as_mxnet() -> None:
    """Let ``import mxnet`` mean mxop in this process, from now on.

    ``__version__`` is then MXNet's, which programs compare; that of mxop is ``mxop.distribution.VERSION``.

    Raises
    ------
    MXNetError
        When the real MXNet was imported before: its objects and mxop's would mix.

    Examples
    --------
    >>> import mxop
    >>> mxop.install_as_mxnet()
    >>> import mxnet as mx
    >>> from mxnet import nd
    >>> mx is mxop and nd.exp is mxop.nd.exp, mx.__version__
    (True, '1.9.1')
    """
    there = sys.modules.get(NAME)
    if there is not None and there is not sys.modules["mxop"]:
        raise MXNetError(
            f"install_as_mxnet: mxnet is imported already, from {getattr(there, '__file__', '?')}; call it before that"
        )
    sys.modules["mxop"].__version__ = libinfo.__version__  # type: ignore[attr-defined]
    Moved.tops = ("mxop", NAME)
