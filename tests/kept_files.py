"""What tests compile is kept between runs, by its contents: beside the libraries of ``mx.library.build``."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from mxop.support.files import cache_folder

#: In the user's cache folder, or in that of MXOP_CACHE_DIR.
FOLDER = cache_folder("tests")


def digest(*parts: str) -> str:
    """Return a name that belongs to texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def kept(name: str, make: Callable[[Path], None]) -> Path:
    """Return a file of this name, which `make` writes when it is not there; other processes see all of it or nothing."""
    path = FOLDER / name
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            fresh = Path(folder, name)
            make(fresh)
            os.replace(fresh, path)
    return path


def text_file(name: str, text: str) -> Path:
    """Return a file with a text."""
    return kept(name, lambda path: path.write_text(text))
