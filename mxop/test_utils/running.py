"""How a test function runs: its seeds, its retries, its environment."""

from __future__ import annotations

import functools
import os
import random
import sys
import unittest
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from typing import Any

import numpy as np

from ..mxnet.util import _NumpyArrayScope, run_within, setenv

_SEED_VARIABLES = ("MXOP_TEST_SEED", "MXNET_TEST_SEED")


def _seed_all(seed: int) -> None:
    np.random.seed(seed)
    random.seed(seed)
    try:
        from .. import random as mx_random  # here, because comparing arrays needs no random operators
    except ImportError:
        return
    mx_random.seed(seed)


def _choose_seed(fixed: int | None) -> int:
    """Return the seed written at the test, else the environment's, else a fresh one."""
    if fixed is not None:
        return fixed
    for variable in _SEED_VARIABLES:
        if os.environ.get(variable):
            return int(os.environ[variable])
    # From the operating system, not NumPy's generator: a fixture that seeds NumPy must not freeze every test.
    return random.SystemRandom().randrange(2**31)


def with_seed(seed: int | None = None) -> Callable[[Callable], Callable]:
    """Give each run of a test function seeds of its own, and tell them when it fails.

    NumPy's, Python's and mxop's generators are seeded; NumPy's and Python's are put back afterwards, so that a test's
    draws do not depend on the tests before it.

    Parameters
    ----------
    seed : int, optional
        Always use this seed. By default the environment variable ``MXOP_TEST_SEED`` (or ``MXNET_TEST_SEED``) sets
        it, else each run has a new one.

    Examples
    --------
    >>> @with_seed()
    ... def test_something():
    ...     x = np.random.randn(3)
    """

    def decorate(test: Callable) -> Callable:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> Any:
            used = _choose_seed(seed)
            numpy_state, python_state = np.random.get_state(), random.getstate()
            _seed_all(used)
            try:
                return test(*args, **kwargs)
            except unittest.SkipTest:
                raise
            except Exception as error:
                hint = f"{test.__name__} failed with seed {used}; set {_SEED_VARIABLES[0]}={used} to reproduce"
                print(hint, file=sys.stderr)
                error.add_note(hint)
                raise
            finally:
                np.random.set_state(numpy_state)
                random.setstate(python_state)

        return run

    return decorate


def retry(n: int) -> Callable[[Callable], Callable]:
    """Let a stochastic test fail with AssertionError up to ``n - 1`` times before it counts."""
    if n < 1:
        raise ValueError(f"a test cannot run {n} times")

    def decorate(test: Callable) -> Callable:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> Any:
            for _ in range(n - 1):
                try:
                    return test(*args, **kwargs)
                except AssertionError as error:
                    print(f"{test.__name__} failed and is tried again: {error}", file=sys.stderr)
            return test(*args, **kwargs)

        return run

    return decorate


def assert_exception(f: Callable, exception_type: type[BaseException], *args: Any, **kwargs: Any) -> None:
    """Assert that ``f(*args, **kwargs)`` raises `exception_type`."""
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    raise AssertionError(f"{getattr(f, '__name__', f)!s} did not raise {exception_type.__name__}")


@contextmanager
def environment(*args: Any) -> Iterator[None]:
    """Set environment variables inside a ``with`` block.

    Parameters
    ----------
    *args
        A name and a value, or one dict of names to values. The value None removes the variable.

    Examples
    --------
    >>> with environment("OMP_NUM_THREADS", "1"):
    ...     pass
    """
    if len(args) == 1 and isinstance(args[0], Mapping):
        wanted = dict(args[0])
    elif len(args) == 2:
        wanted = {args[0]: args[1]}
    else:
        raise ValueError("environment() takes a name and a value, or a dict of names to values")
    before = {name: os.environ.get(name) for name in wanted}
    try:
        for name, value in wanted.items():
            setenv(name, None if value is None else str(value))
        yield
    finally:
        for name, value in before.items():
            setenv(name, value)


@contextmanager
def discard_stderr() -> Iterator[None]:
    """Discard what is written to stderr inside a ``with`` block, by compiled code too."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
            with redirect_stderr(nowhere):  # which need not be a writer to descriptor 2: a test runner replaces it
                yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def use_np(func: Any) -> Any:
    """Decorate a function, or all methods of a class, that works on ``mx.np`` arrays: there are none, and a call says so."""
    return run_within(functools.partial(_NumpyArrayScope, True), func, "use_np")
