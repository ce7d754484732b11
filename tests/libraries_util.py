"""Compiling and loading libraries in tests.  What a test loads is taken out of the registry when it ends."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from kept_files import digest, text_file

import mxop as mx
from mxop.library import loader

SOURCES = Path(__file__).parent / "libraries"
#: All C++ compilers of this machine, the one that ``build`` takes first.
COMPILERS = [c for c in (os.environ.get("CXX"), "c++", "g++", "clang++") if c and shutil.which(c)]
COMPILER = COMPILERS[0] if COMPILERS else None

#: Flags of tools/sanitize.py.
SANITIZE = tuple(os.environ.get("MXOP_TEST_SANITIZE", "").split())

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")


def compiled(source: str, flags: tuple[str, ...] = ()) -> str:
    """Return the path of a library compiled from a file of tests/libraries, or from text of several lines."""
    file = text_file(f"lib_{digest(source)}.cc", source) if "\n" in source else SOURCES / source
    return mx.library.build([file], flags=("-O0", *SANITIZE, *flags))


@pytest.fixture
def variant(tmp_path, monkeypatch):
    """Return a function of (source, name): the source is compiled once, each library reads its name from ``VARIANT``.

    They are files of their own, which the system loads one beside the other.  The header takes 5 s to compile.
    """

    def chosen(source: str, name: str) -> str:
        monkeypatch.setenv("VARIANT", name)
        return shutil.copy(compiled(IS + source), tmp_path / f"{name}.so")

    return chosen


#: ``is("name")``: whether a library is the one of this name.
IS = """#include <cstdlib>
#include <cstring>
#include "mxnet/lib_api.h"
using namespace mxnet::ext;
static bool is(const char* name) { return std::strcmp(std::getenv("VARIANT"), name) == 0; }
"""


class Loader:
    """Loads libraries for one test."""

    def __init__(self) -> None:
        self.before = set(loader._loaded)

    def __call__(self, source: str, flags: tuple[str, ...] = ()) -> str:
        """Compile (a file's name, or C++ text) and load; return the path."""
        path = compiled(source, flags)
        mx.library.load(path, verbose=False)
        return path

    def forget(self) -> None:
        for path in set(loader._loaded) - self.before:
            loader.forget(loader._loaded.pop(path))


@pytest.fixture
def library():
    """Compile and load libraries that are forgotten after the test."""
    found = Loader()
    yield found
    found.forget()
