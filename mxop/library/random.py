"""The seed of the random numbers that libraries draw."""

from __future__ import annotations

from .._core import native_host


def seed(value: int) -> None:
    """Seed what ``OpResource.get_cpu_rand_states`` gives; ``mx.random.seed`` calls this.

    Examples
    --------
    >>> mx.library.seed(42)
    """
    native_host.set_seed(value)
