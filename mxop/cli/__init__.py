"""The commands of ``python -m mxop``: one file each.

Commands import what they need when they run, so that ``--help`` is quick.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ..opdef.params import plain_number
from ..support import distribution
from ..support.errors import MXNetError


class Stop(Exception):
    """A command ends with this message for the user and an exit status."""

    status = 1


class BadInput(Stop):
    """What the user named cannot be used."""

    status = 2


def _positive(text: str) -> int:
    try:
        value = int(plain_number(text))  # 1e6 is easier to type
    except (ValueError, OverflowError):
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return value


def _command(name: str) -> Any:
    """Return the module of a command."""
    return import_module(f"{__name__}.{name}")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; each command's ``run`` takes the parsed options."""
    parser = argparse.ArgumentParser(prog="python -m mxop", description="Operators defined once, as Python functions.")
    parser.add_argument("--version", action="version", version=f"{distribution.NAME} {distribution.VERSION}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="show what follows from one function: nd, sym, gradients, tests, a benchmark")
    demo.add_argument("--input", metavar="X.npy", help="use this array, of any shape")
    demo.add_argument("--function", metavar="MY.py:NAME", help="this operator of yours, or a built-in one such as hard_sigmoid")
    demo.add_argument("--output", metavar="PICTURE", help="picture of f, f' and f'' (mxop_demo.png)")
    demo.add_argument("--size", type=_positive, default=10_000_000, help="number of elements to time (10000000)")
    demo.set_defaults(run=lambda options: _command("demo").run(options))

    ops = commands.add_parser("ops", help="list the operators")
    ops.add_argument("pattern", nargs="?", help="part of a name or description, or a pattern such as 'broadcast_*'")
    ops.add_argument("--from", dest="source", metavar="MY.py", help="only operators of this file or module")
    ops.add_argument("--family", help="only this family (a file of mxop/ops), such as math")
    ops.add_argument("--hidden", action="store_true", help="also operators whose names begin with an underscore")
    ops.add_argument("--missing", action="store_true", help="what MXNet has and mxop does not, and what to use instead")
    ops.set_defaults(run=lambda o: _command("operators").list_missing() if o.missing else _command("operators").list_operators(
        o.pattern, o.family, o.hidden, o.source))  # fmt: skip

    info = commands.add_parser("info", help="describe one operator")
    info.add_argument("name", help="such as Convolution, or MY.py:NAME for one of your own")
    info.set_defaults(run=lambda options: _command("own").info(options.name))

    doctor = commands.add_parser("doctor", help="list what was found on this machine, and what is missing for what")
    doctor.set_defaults(run=lambda options: _command("doctor").run())

    docs = commands.add_parser("docs", help="write the operator reference: one page for each operator, and an index")
    docs.add_argument("folder")
    docs.add_argument("--package", metavar="NAME", help="for the operators of this installed package")
    docs.set_defaults(run=lambda o: print("\n".join(_command("reference").write(o.folder, o.package))))

    run = commands.add_parser("run", help="run a program written for MXNet: `import mxnet` imports mxop")
    run.add_argument("script")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the program").required = False

    stubs = commands.add_parser("stubs", help="write the .pyi files of the package")
    stubs.add_argument("folder", nargs="?", help="the folder of the package (by default the installed mxop)")
    stubs.add_argument("--package", metavar="NAME", help="with the operators of this installed package")
    stubs.set_defaults(run=lambda o: print("\n".join(_command("stubs").write(o.folder, o.package))))
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command line without the program; that of the process by default.
    """
    options = make_parser().parse_args(arguments)
    if options.command == "run":  # what goes wrong in somebody's program is not ours to shorten
        return _command("run").run(options)
    try:
        options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return 130
    except Stop as problem:
        return _complain(options.command, problem, problem.status)
    except MXNetError as problem:
        return _complain(options.command, problem)
    except MemoryError as problem:
        return _complain(options.command, f"not enough memory{f' ({problem})' if str(problem) else ''}")
    except OSError as problem:  # a file or folder that cannot be written
        return _complain(options.command, problem)
    return 0


def _complain(command: str, problem: object, status: int = 1) -> int:
    sys.stdout.flush()
    print(f"mxop {command}: {problem}", file=sys.stderr)
    return status
