"""``python -m mxop run``: runs a program that was written for MXNet."""

from __future__ import annotations

import argparse
import builtins
import os
import runpy
import sys

from ..mxnet.as_mxnet import install_as_mxnet


def run(options: argparse.Namespace) -> int:
    """Run a script as Python would, with ``import mxnet`` meaning mxop; what it raises is shown as Python shows it."""
    if not os.path.exists(options.script):
        print(f"mxop run: {options.script!r}: no such file", file=sys.stderr)
        return 2
    install_as_mxnet()
    sys.argv[:] = [options.script, *options.arguments]
    if not sys.flags.safe_path:  # where Python puts the current folder first, for a module
        sys.path[0] = os.path.dirname(os.path.abspath(options.script))
    try:
        runpy.run_path(options.script, {"__builtins__": builtins}, "__main__")  # the module, as in a script
    except Exception as problem:
        trace = problem.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != options.script:  # frames of this command
            trace = trace.tb_next
        sys.excepthook(type(problem), problem.with_traceback(trace), trace)
        return 1
    return 0
