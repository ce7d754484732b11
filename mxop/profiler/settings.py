"""What ``set_config`` takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from .._core import profile
from ..support.errors import MXNetError, OpTypeError, OpValueError, closest

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class Settings:
    """The settings of the profiler; see :func:`mxop.profiler.set_config`."""

    profile_all: bool = False
    profile_symbolic: bool = True
    profile_imperative: bool = True
    profile_memory: bool = True
    profile_api: bool = True
    filename: str = "profile.json"
    continuous_dump: bool = True
    dump_period: float = 1.0
    aggregate_stats: bool = False
    profile_process: str = "worker"

    @property
    def flags(self) -> int:
        """What is recorded while the profiler runs, as bits."""
        every = (
            (self.profile_imperative, profile.IMPERATIVE_CALLS), (self.profile_symbolic, profile.SYMBOLIC_STEPS),
            (self.profile_api, profile.API_CALLS), (self.profile_memory, profile.MEMORY_USE),
        )  # fmt: skip
        chosen = sum(bit for wanted, bit in every if wanted or self.profile_all)
        return chosen | profile.USER_EVENTS | (profile.TIMES_BY_NAME if self.aggregate_stats else 0)


def parsed(given: dict[str, Any]) -> Settings:
    """Return the settings that keyword arguments say; what is not given has its default."""
    kinds = {f.name: f.type for f in fields(Settings)}
    for name in given:
        if name not in kinds:
            raise OpTypeError(f"Cannot find argument '{name}', Possible Arguments: {', '.join(kinds)}{closest(name, kinds)}")
    settings = Settings(**{name: _value(name, str(value), kinds[name]) for name, value in given.items()})
    check_process(settings.profile_process)
    if settings.continuous_dump and not settings.dump_period > 0:
        raise OpValueError(f"Check failed: !continuous_dump || dump_period > 0: dump_period={given['dump_period']!r}, but "
                           f"continuous_dump needs a number of seconds above 0")  # fmt: skip
    return settings


def _value(name: str, text: str, kind: Any) -> Any:
    """Read a value from its text, as MXNet does."""
    try:
        if kind == "bool":
            return _BOOLEANS[text.lower()]
        return float(text) if kind == "float" else text
    except (KeyError, ValueError):
        what = "boolean" if kind == "bool" else kind
        raise OpValueError(f"Invalid Parameter format for {name} expect {what} but value='{text}'") from None


def check_process(process: str) -> None:
    """Raise unless a process is this one: there are no servers."""
    check_choice(process, ("server", "worker"))
    if process == "server":
        raise MXNetError("Check failed: KVStoreHandle passed to profiler is null: mxop has no kvstore servers; the only "
                         "process to profile is 'worker'")  # fmt: skip


def check_choice(value: Any, choices: Iterable[str]) -> None:
    """Raise unless a value is one of a few words."""
    if value not in choices:
        words = ", ".join(map(repr, sorted(choices)))
        raise OpValueError(f"Invalid Input: {value!r}, valid values are: {{{words}}}")
