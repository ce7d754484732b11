"""Write ``mxop/support/mxnet_names.txt``: the names of MXNet 1.x, by which an error tells "not yet" from "no such thing".

    python tools/mxnet_names.py OPERATORS.json API.json [mxop/support/mxnet_names.txt]

``OPERATORS.json`` describes the registry: ``{"ops": [{"name", "aliases", "inputs", "mutated_inputs", "python_names"}]}``;
``API.json`` the Python package: ``{"modules": {"mxnet.autograd": {"record": ..., "Function": {"members": {...}}}}}``.  Only
names are taken.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

#: Other names of modules, which the package sets in its ``__init__``, and modules without names of their own.
SHORT = {
    "img": "image", "init": "initializer", "kv": "kvstore", "mod": "module", "mon": "monitor", "nd": "ndarray",
    "np": "numpy", "npx": "numpy_extension", "onnx": "contrib.onnx", "rnd": "random", "sym": "symbol", "th": "torch",
    "viz": "visualization",
}  # fmt: skip
WITHOUT_NAMES = ("api", "contrib.onnx", "error", "executor_manager", "kvstore_server", "libinfo", "notebook", "rtc", "torch",
                 "tvmop")  # fmt: skip
#: What programs use and introspection files elsewhere: names that a module imports.
IMPORTED = {
    "ndarray": ("CachedOp", "np", "npx", "numpy", "numpy_extension"), "ndarray.sparse": ("array", "empty", "zeros"),
    "symbol": ("np", "npx", "numpy", "numpy_extension"), "NDArray": ("handle", "writable"), "Symbol": ("handle",),
    "base": ("c_array", "c_str", "check_call", "integer_types", "mx_real_t", "numeric_types", "string_types"),
    "contrib": ("onnx", "quant", "tensorboard"), "libinfo": ("find_include_path", "find_lib_path"),
}  # fmt: skip
CLASSES = ("NDArray", "Symbol", "Executor", "Context")
PREFIXES = {
    "contrib": "_contrib_",
    "linalg": "_linalg_",
    "random": "_random_",
    "image": "_image_",
    "sparse": "_sparse_",
}
_TYPES = {"string_types", "integer_types", "numeric_types", "tensor_types"}  # names of Python 2's days
_WIDTH = 120


def operators(ops: Iterable[dict]) -> tuple[set[str], dict[str, str]]:
    """Return the registered names, and for operators with auxiliary states the positions of those."""
    names, states = set(), {}
    for op in ops:
        own = (op["name"], *op["aliases"])
        names.update(own)
        written = [name for name in op.get("mutated_inputs") or () if not name.startswith("in")]  # inN: of a repeated one
        inputs = [*op["inputs"], *(name for name in written if name not in op["inputs"])]
        if written:
            states |= dict.fromkeys(own, ",".join(str(inputs.index(name)) for name in written))
    return names, states


def short_path(module: str) -> str:
    """Return a module's path as programs write it: ``mxnet.io.io`` is ``io``."""
    parts = module.split(".")[1:]
    return ".".join(parts[:-1] if parts[-2:-1] == parts[-1:] else parts)


def written_by_hand(ops: Iterable[dict], registered: set[str]) -> dict[str, set[str]]:
    """Return the functions of ``nd`` and ``sym`` that call operators under another name."""
    found: dict[str, set[str]] = {}
    for full in {name for op in ops for name in op.get("python_names", ())}:
        module, _, name = full.rpartition(".")
        root, dot, space = module.partition(".")
        path = SHORT.get(root, root) + dot + space
        if root in ("nd", "sym") and space != "_internal" and not _from_operator(path, name, registered):
            found.setdefault(path, set()).add(name)
    return found


def modules(api: dict[str, dict], registered: set[str]) -> dict[str, set[str]]:
    """Return the names of each module and class that do not follow from a registered operator."""
    found: dict[str, set[str]] = {}
    for full, members in api.items():
        path = short_path(full)
        for name, what in members.items():
            if name.startswith("_") or name in _TYPES or _from_operator(path, name, registered):
                continue
            found.setdefault(path, set()).add(name)
            if name in CLASSES and isinstance(what, dict):
                found[name] = {n for n in what["members"] if not n.startswith("_")}
    for path, names in IMPORTED.items():
        found.setdefault(path, set()).update(names)
    top = {path.partition(".")[0] for path in found if path and path not in CLASSES}
    found[""] = found.get("", set()) | top | {p for p in WITHOUT_NAMES if "." not in p} | set(SHORT)
    return found


def _from_operator(path: str, name: str, registered: set[str]) -> bool:
    root, _, space = path.partition(".")
    return root in ("ndarray", "symbol") and PREFIXES.get(space, "") + name in registered


def text(ops: list[dict], api: dict[str, dict]) -> str:
    """Return the file: sections ``[name]``, each with words."""
    names, states = operators(ops)
    sections = {"operators": sorted(names), "states": [f"{name}={at}" for name, at in sorted(states.items())],
                "short": [f"{short}={path}" for short, path in sorted(SHORT.items())]}  # fmt: skip
    found = modules(api, names)
    for path, more in written_by_hand(ops, names).items():
        found.setdefault(path, set()).update(more)
    sections |= {f"mx.{path}".rstrip("."): sorted(words) for path, words in sorted(found.items())}
    lines = ["# Written by tools/mxnet_names.py.  Names only."]
    for title, words in sections.items():
        lines += [f"[{title}]", *_wrapped(words)]
    return "\n".join(lines) + "\n"


def _wrapped(words: Iterable[str]) -> list[str]:
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) >= _WIDTH:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".lstrip()
    return lines


def main() -> None:
    """Read the two files, write the third."""
    parser = argparse.ArgumentParser(description="Write the names of MXNet 1.x that errors know.")
    parser.add_argument("operators", type=Path)
    parser.add_argument("api", type=Path)
    parser.add_argument(
        "target", type=Path, nargs="?", default=Path(__file__).parents[1] / "mxop" / "support" / "mxnet_names.txt"
    )
    options = parser.parse_args()
    ops, api = (json.loads(path.read_text(encoding="utf-8")) for path in (options.operators, options.api))
    options.target.write_text(text(ops["ops"], api["modules"]), encoding="utf-8")


if __name__ == "__main__":
    main()
