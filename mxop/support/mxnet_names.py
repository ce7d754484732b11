"""What MXNet 1.x calls its modules, functions, methods and operators: an error asks whether a missing name is one of them.

The names stand in ``mxnet_names.txt`` (written by ``tools/mxnet_names.py``), which is read when the first such error is made.
"""

from __future__ import annotations

import os
from functools import cache, lru_cache

#: Namespaces of operators, and what their registered names begin with.
SPACES = {
    "contrib": "_contrib_", "linalg": "_linalg_", "random": "_random_", "image": "_image_", "sparse": "_sparse_",
    "op": "", "_internal": "",
}  # fmt: skip
#: What the names of operators behind ``mx.np`` and of those for 8 bits begin with; the file does not list these.
FAMILIES = ("_np_", "_npi_", "_npx_", "_contrib_quantized_")
SHOWN = {"ndarray": "nd", "symbol": "sym", "visualization": "viz"}


@cache
def sections() -> dict[str, frozenset[str]]:
    """Return the words of each section of the file."""
    found: dict[str, list[str]] = {}
    words: list[str] = []
    with open(os.path.splitext(__file__)[0] + ".txt", encoding="utf-8") as file:
        lines = file.read().splitlines()
    for line in lines:
        if line.startswith("["):
            words = found.setdefault(line.strip("[]"), [])
        elif not line.startswith("#"):
            words += line.split()
    return {title: frozenset(words) for title, words in found.items()}


def _pairs(section: str) -> dict[str, str]:
    return dict(word.split("=") for word in sections()[section])


def is_operator(name: str) -> bool:
    """Return whether MXNet registers an operator under this name.

    Examples
    --------
    >>> is_operator("Convolution"), is_operator("_contrib_foreach"), is_operator("_npi_sin"), is_operator("swish")
    (True, False, True, False)
    """
    return name in sections()["operators"] or name.startswith(FAMILIES)


def states_of(operator: str) -> tuple[int, ...]:
    """Return the positions of the inputs that an operator of MXNet writes (``FMutateInputs``)."""
    return tuple(int(at) for at in _pairs("states").get(operator, "").split(",") if at)


@lru_cache(256)
def path_of(module: str, name: str) -> str | None:
    """Return the path of a name in MXNet, as programs write it, or None when it is not in that module or below.

    Parameters
    ----------
    module : str
        A module of mxop (``'mxop.ndarray.sparse'``), or the class ``'NDArray'`` or ``'Symbol'``.

    Examples
    --------
    >>> path_of("mxop", "mod"), path_of("mxop.gluon", "nn"), path_of("mxop.ndarray", "csr_matrix")
    ('mx.mod', 'mx.gluon.nn', 'mx.nd.sparse.csr_matrix')
    """
    parts, known = _parts(module), sections()
    here = ".".join(("mx", *parts))
    spaces = ["", *SPACES] if parts in (["ndarray"], ["symbol"]) else [""]
    places = [".".join(filter(None, (here, space))) for space in spaces]
    places += [title for title in known if parts and title.startswith(here + ".")]
    places += [f"mx.{part}" for part in parts[1:]]  # mx.random has the seed of mx.nd.random
    for place in places:
        submodule = f"{place}.{name}"
        if name in names_in(place) or any(t == submodule or t.startswith(submodule + ".") for t in known):
            _, first, *rest = [*place.split("."), name]
            return ".".join(("mx", SHOWN.get(first, first), *rest))
    return None


def names_in(place: str) -> set[str]:
    """Return the names of a section of the file; of a module of operators, theirs too."""
    found = set(sections().get(place, ()))
    _, *parts = place.split(".")
    if parts and parts[0] in ("ndarray", "symbol"):
        prefix = SPACES.get(".".join(parts[1:]))
        if prefix is not None or len(parts) == 1:
            short = (n.removeprefix(prefix or "") for n in sections()["operators"] if n.startswith(prefix or ""))
            found |= {n for n in short if n.startswith("_") == (parts[1:] == ["_internal"])}
    return found


def listed(module: str) -> list[str]:
    """Return the public names of MXNet in a module or class, among which the nearest is looked for."""
    return sorted(n for n in names_in(".".join(("mx", *_parts(module)))) if not n.startswith("_"))


def _parts(module: str) -> list[str]:
    """Return the parts of a module's path as the file has them."""
    return [_pairs("short").get(part, part) for part in module.removeprefix("mxop").strip(".").split(".") if part]
