"""``mx.log``: Python's logging, with messages that begin with level, time, process and place."""

from __future__ import annotations

import logging
import sys
import warnings
from logging import CRITICAL, DEBUG, ERROR, INFO, NOTSET, WARNING

from ..support.missing import hooks


class _Formatter(logging.Formatter):
    """``W1122 09:30:00 4711 file.py:function:12] message``, in the level's colour on a terminal."""

    def __init__(self, coloured: bool):
        super().__init__("%(asctime)s %(process)d %(pathname)s:%(funcName)s:%(lineno)d] %(message)s", "%m%d %H:%M:%S")
        self._coloured = coloured

    def format(self, record: logging.LogRecord) -> str:
        text = record.levelname[:1] + super().format(record)
        if not self._coloured:
            return text
        colour = 31 if record.levelno >= WARNING else 32 if record.levelno >= INFO else 34
        head, bracket, message = text.partition("] ")
        return f"\x1b[{colour}m{head}]\x1b[0m {message}" if bracket else text


def get_logger(
    name: str | None = None, filename: str | None = None, filemode: str | None = None, level: int = WARNING
) -> logging.Logger:
    """Return a logger; on the first call for a name it gets a handler and a level.

    Parameters
    ----------
    name : str, optional
        Without one, the root logger is returned as it is.
    filename : str, optional
        Where to write; to standard error by default.
    filemode : str, optional
        ``'a'`` by default.
    level : int

    Examples
    --------
    >>> mx.log.get_logger("doc", level=mx.log.INFO).level == mx.log.INFO
    True
    """
    logger = logging.getLogger(name)
    if name is not None and not getattr(logger, "_init_done", False):
        logger._init_done = True  # type: ignore[attr-defined]
        handler = logging.FileHandler(filename, filemode or "a") if filename else logging.StreamHandler()
        handler.setFormatter(_Formatter(not filename and sys.stderr.isatty()))
        logger.addHandler(handler)
        logger.setLevel(level)
    return logger


def getLogger(
    name: str | None = None, filename: str | None = None, filemode: str | None = None, level: int = WARNING
) -> logging.Logger:
    """Return what :func:`get_logger` does; MXNet's older name."""
    warnings.warn("getLogger is the older name of get_logger", DeprecationWarning, stacklevel=2)
    return get_logger(name, filename, filemode, level)


__all__ = ["CRITICAL", "DEBUG", "ERROR", "INFO", "NOTSET", "WARNING", "getLogger", "get_logger"]

__getattr__, __dir__ = hooks(globals(), __all__)
