"""What is timed is computed: each timed method returns what it claims, is waited for, and is compared when asv has finished."""

from functools import wraps
from time import perf_counter

from mxop.cli.timing import JUDGED, TOO_FAST, Way, copies, each, finish, host


def timed(cls):
    """Wait for the results of a class's methods ``time_*``; compare those of one more call afterwards.

    The class says what is right: ``expected(name, *params)`` returns the arrays that ``time_<name>`` returns, or None where its
    result is no array.  Where ``small`` is true, calls compute their results before they return, so nothing is waited for.
    """
    methods = {name: method for name, method in vars(cls).items() if name.startswith("time_")}
    for name, method in methods.items():
        setattr(cls, name, _remembered(name, method, getattr(cls, "small", False)))
    cls.teardown = _compare
    return cls


def _remembered(name, method, small):
    if small:  # what waiting costs would be a large part of such a call

        @wraps(method)
        def run(self, *params):
            self.ran = name
            return method(self, *params)
    else:

        @wraps(method)
        def run(self, *params):
            self.ran = name
            start = perf_counter()
            results = finish(method(self, *params))
            self.fastest = min(perf_counter() - start, getattr(self, "fastest", float("inf")))
            return results

    run.method = method
    return run


def _compare(self, *params):
    name = getattr(self, "ran", None)
    if name is None:
        return
    call = getattr(type(self), name).method
    expected = self.expected(name.removeprefix("time_"), *params)
    if expected is None:
        return
    wrong = Way(lambda: call(self, *params), getattr(self, "restore", lambda: None)).wrong(expected, 2e-3)
    if wrong is not None:
        raise AssertionError(f"{type(self).__name__}.{name} {wrong}")
    moved = sum(host(a).nbytes for a in each(call(self, *params)))
    if moved >= JUDGED and hasattr(self, "fastest"):
        fastest = min(min(_seconds(copy) for _ in range(20)) for copy in copies(moved).values())
        if self.fastest * TOO_FAST < fastest:
            took = f"takes {self.fastest:.3g} s, and a copy of its results {fastest:.3g} s"
            raise AssertionError(f"{type(self).__name__}.{name} {took}")


def _seconds(call):
    start = perf_counter()
    call()
    return perf_counter() - start
