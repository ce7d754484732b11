"""Squared hinge loss from a compiled library: built, loaded, and an operator like any other."""

from pathlib import Path

import mxop as mx
from mxop import nd

mx.library.load(mx.library.build([Path(__file__).with_suffix(".cc")]), verbose=False)


def call(data, label):
    return nd.squared_hinge_library(data, label)
