"""Checkpoints: a symbol beside the parameters of an epoch, in files."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from .. import ndarray as nd
from .. import symbol as sym
from ..context import cpu
from ..ndarray import NDArray
from ..support.errors import OpValueError, ends_at_caller, shown, translated
from ..symbol import Symbol


def save_checkpoint(prefix: str, epoch: int, symbol: Symbol | None, arg_params: Mapping[str, NDArray] | None,
                    aux_params: Mapping[str, NDArray] | None, remove_amp_cast: bool = True) -> None:  # fmt: skip
    """Write ``prefix-symbol.json`` and ``prefix-0001.params`` (for epoch 1).

    Parameters
    ----------
    prefix : str
    epoch : int
    symbol : Symbol or None
        With None, only the parameters are written.
    arg_params, aux_params : dict of str to NDArray
    remove_amp_cast : bool
        Leave the casts of automatic mixed precision out of the symbol.

    Examples
    --------
    >>> import os, tempfile
    >>> prefix = os.path.join(tempfile.mkdtemp(), "net")
    >>> mx.model.save_checkpoint(prefix, 3, mx.sym.exp(mx.sym.Variable("x")), {"x": mx.nd.ones((2,))}, {})
    >>> symbol, arg_params, aux_params = mx.model.load_checkpoint(prefix, 3)
    >>> symbol.list_arguments(), arg_params["x"].asnumpy().tolist(), aux_params
    (['x'], [1.0, 1.0], {})
    """
    if symbol is not None:
        symbol.save(f"{prefix}-symbol.json", remove_amp_cast=remove_amp_cast)
    kinds = (("arg", arg_params or {}), ("aux", aux_params or {}))
    name = params_file(prefix, epoch)
    nd.save(name, {f"{kind}:{key}": a.as_in_context(cpu()) for kind, arrays in kinds for key, a in arrays.items()})
    logging.info('Saved checkpoint to "%s"', name)


def params_file(prefix: str, epoch: int) -> str:
    """Return the name of the parameters' file."""
    with translated(f"checkpoint: epoch={shown(epoch)}"):
        return f"{prefix}-{epoch:04d}.params"


def load_params(prefix: str, epoch: int) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """Read the parameters of an epoch: arguments and auxiliary states."""
    name = params_file(prefix, epoch)
    found: dict[str, dict[str, Any]] = {"arg": {}, "aux": {}}
    arrays = nd.load(name)
    if not arrays:
        logging.warning("Params file '%s' is empty", name)
    elif isinstance(arrays, list):
        raise OpValueError(f"load_params: the arrays of {name!r} have no names")
    for key, array in dict(arrays).items():
        kind, _, key = key.partition(":")
        if kind in found:
            found[kind][key] = array
    return found["arg"], found["aux"]


@ends_at_caller
def load_checkpoint(prefix: str, epoch: int) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """Read a symbol and the parameters of an epoch; see :func:`save_checkpoint`."""
    return sym.load(f"{prefix}-symbol.json"), *load_params(prefix, epoch)
