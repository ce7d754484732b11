"""The systems that are compared: how each takes arrays, runs a program and hands its result back; imports no other module here.

Threads are set when this is imported, before any system is: the libraries read their numbers when they start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

THREADS = 2
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "MXOP_NUM_THREADS"):
    os.environ.setdefault(_name, str(THREADS))
if hasattr(os, "sched_setaffinity") and len(os.sched_getaffinity(0)) > THREADS:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])  # JAX knows no other way

import numpy as np  # noqa: E402

import mxop as mx  # noqa: E402
from mxop.cli.timing import Way, each, host  # noqa: E402

Call = Callable[[], Any]


def optional(name: str) -> Any:
    """Import a module, or return None."""
    try:
        return __import__(name)
    except ImportError:
        return None


torch, jax, numexpr = optional("torch"), optional("jax"), optional("numexpr")
if jax is not None:
    jax.config.update("jax_enable_x64", True)  # 64-bit types stay what they are


def set_threads(n: int) -> None:
    """Give every system `n` threads, as far as it can be told after its start."""
    mx.context.set_num_threads(n)
    if torch is not None:
        torch.set_num_threads(n)
    if numexpr is not None:
        numexpr.set_num_threads(n)


@dataclass
class Prepared:
    """A program that is prepared once: a function of arrays that returns the call to be timed.

    Attributes
    ----------
    read : callable, optional
        Turns what the call returns into what is compared, after the clock has stopped.
    """

    make: Callable[..., Call]
    read: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class System:
    """One way to run programs.

    Attributes
    ----------
    written : str
        Which of a workload's programs it runs.
    there : bool
    array : callable
        Makes one of its arrays of one of NumPy's.
    call : callable
        ``call(program, arrays)`` returns the call to be timed; `arrays` are its own.
    """

    name: str
    written: str
    there: bool
    array: Callable[[np.ndarray], Any]
    call: Callable[[Any, Sequence[Any]], Call]


def plain(program: Callable, arrays: Sequence[Any]) -> Call:
    """Return the call of a program as it is."""
    return lambda: program(*arrays)


def with_out(program: Callable, arrays: Sequence[Any]) -> Call:
    """Return the call of a program into an array that is kept; the program takes it last, and first gets None."""
    out = program(*arrays, None)
    return lambda: program(*arrays, out)


def bound(program: Callable, arrays: Sequence[Any]) -> Call:
    """Return the run of a program of symbols, bound to arrays."""
    names = [f"x{k}" for k in range(len(arrays))]
    result = program(*map(mx.sym.Variable, names))
    symbol = mx.sym.Group(list(result)) if isinstance(result, (tuple, list)) else result
    executor = symbol.bind(mx.cpu(), dict(zip(names, arrays, strict=True)))
    return lambda: executor.forward(is_train=False)


def evaluated(text: str, arrays: Sequence[Any]) -> Call:
    """Return the evaluation of a text by numexpr; its arrays are x, y, z, w."""
    names = dict(zip("xyzw", arrays, strict=False))
    return lambda: numexpr.evaluate(text, names)


def evaluated_out(text: str, arrays: Sequence[Any]) -> Call:
    """Return the same into an array that is kept."""
    names = dict(zip("xyzw", arrays, strict=False))
    out = numexpr.evaluate(text, names)
    return lambda: numexpr.evaluate(text, names, out=out)


def compiled(program: Callable, arrays: Sequence[Any]) -> Call:
    """Return the call of a program compiled by torch."""
    torch.compiler.reset()  # it takes all our programs for one, of which it compiles eight
    fast = torch.compile(torch.inference_mode()(lambda *given: program(*given)))
    return lambda: fast(*arrays)


def jitted(program: Callable, arrays: Sequence[Any]) -> Call:
    """Return the call of a program compiled by JAX."""
    fast = jax.jit(program)
    return lambda: fast(*arrays)


def tensor(values: np.ndarray) -> Any:
    """Return a tensor of torch with memory of its own."""
    return torch.from_numpy(values.copy())


def ndarray(values: np.ndarray) -> mx.nd.NDArray:
    """Return an array of mxop, of the same type."""
    return mx.nd.array(values, dtype=values.dtype)


SYSTEMS = (
    System("mxop", "mxop", True, ndarray, plain),
    System("mxop out=", "mxop out", True, ndarray, with_out),
    System("mxop bound", "sym", True, ndarray, bound),
    System("hand-written", "hand-written", True, ndarray, bound),
    System("executor", "executor", True, ndarray, bound),
    System("numpy", "numpy", True, np.array, plain),
    System("numpy out=", "numpy out", True, np.array, with_out),
    System("numexpr", "numexpr", numexpr is not None, np.asarray, evaluated),
    System("numexpr out=", "numexpr", numexpr is not None, np.asarray, evaluated_out),
    System("torch", "torch", torch is not None, tensor, plain),
    System("torch out=", "torch out", torch is not None, tensor, with_out),
    System("torch.compile", "torch", torch is not None, tensor, compiled),
    System("jax.jit", "jax", jax is not None, lambda a: jax.numpy.asarray(a), jitted),
    System("scipy", "scipy", True, np.asarray, plain),
    System("numba", "numba", optional("numba") is not None, np.asarray, plain),
)
OURS = ("mxop", "mxop out=", "mxop bound")
# What could be had, by a loop in C++ or by binding what is called eagerly, is no peer.
NO_PEERS = (*OURS, "hand-written", "executor")


def ways(programs: dict[str, Any], arrays: Sequence[np.ndarray]) -> dict[str, Way]:
    """Return the programs of a workload in all systems that are there; one that cannot be made is said, and left out."""
    found: dict[str, Way] = {}
    for system in SYSTEMS:
        own = programs.get(system.name)
        program = own or programs.get(system.written)
        if program is None or not system.there:
            continue
        if isinstance(program, Prepared) and own is None and system.name == "torch.compile":
            continue
        try:
            given = [system.array(a) for a in arrays]
            call = program.make(*given) if isinstance(program, Prepared) else system.call(program, given)
            call()
        except Exception as problem:
            if system.name in OURS:
                raise
            print(f"{system.name}: {type(problem).__name__}: {str(problem).splitlines()[:1]}", file=sys.stderr)
            continue
        read = program.read if isinstance(program, Prepared) else None
        found[system.name] = Way(call, partial(restore, given, arrays), partial(as_arrays, read=read))
    return found


def restore(given: Sequence[Any], arrays: Sequence[np.ndarray]) -> None:
    """Put back what the inputs were, for programs that change them."""
    for own, values in zip(given, arrays, strict=True):
        if torch is not None and isinstance(own, torch.Tensor):
            own.detach().copy_(torch.from_numpy(values))
        elif isinstance(own, (np.ndarray, mx.nd.NDArray)):
            own[...] = values


def as_arrays(results: Any, read: Callable[[Any], Any] | None = None) -> list[np.ndarray]:
    """Return what a call gave as NumPy arrays."""
    return [host(a) for a in each(results if read is None else read(results))]
