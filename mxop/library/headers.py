"""Where the headers of operator libraries are."""

from __future__ import annotations

from pathlib import Path


def get_include() -> str:
    """Return the folder to give the compiler (``-I``) for ``#include "mxnet/lib_api.h"`` or ``"mxop/lib_api.h"``.

    Examples
    --------
    >>> import os
    >>> sorted(os.listdir(mx.get_include()))
    ['lib_api.h', 'mxnet', 'mxop']
    """
    return str(Path(__file__).resolve().parent / "include")
