"""``python -m mxop docs``: the operator reference, written from the registry: pages of operators, of topics, and an index.

The site writes these pages before it is built (``docs/conf.py``); they are not in the repository.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from .. import records
from ..formula import walk
from ..opdef import Operator, info, plugins, registry
from ..opdef.docs import documentation, formulas_of, signature
from .operators import called, families, package_named, summary

_NOTE = "<!-- Written from the operators' definitions; change those. -->"
_MOST_NODES = 40  # of a formula that is shown: as text, what is used twice stands there twice
_TYPES = {"f": "floating point", "n": "float32 and narrower", "l": "float32, float64", "i": "integers", "b": "bool"}


def pages(
    package: plugins.Package | None = None,
    topics: Mapping[str, str] | None = None,
    formulas: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, str]:
    """Return the text of every page by file name: of mxop's operators, or of those of another package.

    Parameters
    ----------
    topics : mapping, optional
        The titles of the pages of topics, with the names of the families and operators of each; by default the families.
    formulas : mapping, optional
        What operators compute, as Python expressions, by the names of their functions; elementwise ones need no entry.
    """
    found = families(package=package)
    wanted = {title: set(names.split()) for title, names in (topics or dict(zip(found, found, strict=True))).items()}
    groups = {t: [o for family, ops in found.items() for o in ops if {family, called(o)} & wanted[t]] for t in wanted}
    home = {op.name: title for title, ops in reversed(groups.items()) for op in ops}
    texts = {"index.md": _index(groups, package)} | {f"{_file(t)}.md": _topic(t, ops) for t, ops in groups.items()}
    for ops in found.values():
        for op in ops:
            texts[f"{called(op)}.md"] = _page(op, home[op.name], _related(op, groups[home[op.name]], ops), formulas or {})
    return texts


def write(folder: str, package: str | None = None) -> list[str]:
    """Write the pages to a folder, which is made when needed; return what was written."""
    texts = pages(package_named(package))
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (target / name).write_text(text, encoding="utf-8")
    return [str(target / name) for name in texts]


def _index(groups: Mapping[str, list[Operator]], package: plugins.Package | None) -> str:
    title = "Operators" if package is None else f"Operators of {package.name}"
    total = len({op.name for ops in groups.values() for op in ops})
    about = f"{total} operators. Each is a function of `mx.nd` (arrays) and of `mx.sym` (graphs)."
    lines = [_NOTE, "", f"# {title}", "", f"{about} `python -m mxop info NAME` shows one in the terminal."]
    for group, ops in groups.items():
        lines += ["", f"## [{group}]({_file(group)}.md)", "", ", ".join(f"[`{called(op)}`]({called(op)}.md)" for op in ops)]
    return "\n".join(lines) + "\n"


def _topic(title: str, ops: list[Operator]) -> str:
    lines = ["---", "orphan: true", "---", _NOTE, "", f"# {title}", "", "[Operators](index.md)", ""]
    lines += [f"- [`{called(op)}`]({called(op)}.md): {_markdown(summary(op))}" for op in ops]
    return "\n".join(lines) + "\n"


def _related(op: Operator, group: list[Operator], family: list[Operator]) -> list[Operator]:
    """Return operators for "See also": those that the documentation names or that name it, then others of the family."""
    named = set(re.findall(r"`([\w.]+)(?:\(|`)", op.doc))
    first = [o for o in {*group, *family} if {o.name, called(o)} & named or f"`{called(op)}`" in o.doc]
    at = family.index(op)
    near = sorted(family, key=lambda o: abs(family.index(o) - at))
    chosen = dict.fromkeys(o.name for o in sorted(first, key=called) + near if o is not op)
    return [registry.get(name) for name in list(chosen)[:6]]


def _file(title: str) -> str:
    """Return the name of a topic's page, without its suffix: no operator has a name with a hyphen."""
    return "-".join(["topic", *re.findall(r"\w+", title.lower())])


def _page(op: Operator, group: str, related: list[Operator], formulas: Mapping[str, Sequence[str]]) -> str:
    found, name = info(op.name), called(op)
    parts = documentation(op).replace(" : NDArray\n", " : NDArray or Symbol\n")
    text, _, examples = re.sub(r"^Examples\n-+\n+(?=>>>)", "", parts, flags=re.M).partition("\n>>>")
    about, *sections = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.M)
    lines = ["---", "orphan: true", "---", _NOTE, "", f"# {name}", "",
             f"[Operators](index.md) / [{group}]({_file(group)}.md)", "", *_markdown(about).splitlines(), "",
             "```python", *_call(f"mx.nd.{name}", signature(op)), "```"]  # fmt: skip
    shown = formulas.get(name) or _formula(op)
    lines += ["", "```formula", *shown, "```"] if shown else []
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        if body.strip() not in ("NDArray", "NDArray, or list of NDArray"):
            listed = title in ("Parameters", "Returns")
            lines += ["", f"## {title}", "", *(_entries(body) if listed else _markdown(body).splitlines())]
    if examples:
        lines += ["", "## Examples", "", *_examples(">>>" + examples)]
    lines += ["", "## Properties", "", "| | |", "|---|---|", *(f"| {k} | {v} |" for k, v in _facts(op, found).items())]
    if related:
        lines += ["", "## See also", "", *(f"- [`{called(o)}`]({called(o)}.md): {_markdown(summary(o))}" for o in related)]
    return "\n".join(lines) + "\n"


def _call(name: str, call: inspect.Signature) -> list[str]:
    """Return a signature in lines of at most 68 characters."""
    parts = str(call).removeprefix("(").removesuffix(")")
    whole = f"{name}({parts})"
    if len(whole) <= 68:
        return [whole]
    kept = re.sub(r"(\(|\{|\[)[^()\[\]{}]*(\)|\}|\])", lambda m: m[0].replace(" ", "\0"), parts)
    wrapped = textwrap.wrap(kept, 64, initial_indent="    ", subsequent_indent="    ", break_long_words=False)
    return [f"{name}(", *(line.replace("\0", " ") for line in wrapped), ")"]


def _formula(op: Operator) -> list[str]:
    """Return the formula of an elementwise operator, in terms of its arguments, where it can be read."""
    root = formulas_of(op)[0] if op.kind == "elementwise" else None
    if root is None or len(list(walk([root]))) > _MOST_NODES:
        return []
    names = dict(enumerate(op.arguments * 2 if op.variadic else op.arguments))
    text = re.sub(r"\bx(\d+)\b", lambda m: names.get(int(m[1]), m[0]), repr(root))
    return [f"y = {text}"] if len(text) < 160 else []


def _facts(op: Operator, found: dict) -> dict[str, str]:
    """Return the rows of the table of properties."""
    aliases = [_called(n) for n in op.aliases if registry.namespace_of(n)[0] != "_internal" and n != registry.public_name(op)]
    record = records.find(op.name)
    facts = {"Also called": ", ".join(f"`{n}`" for n in aliases)} if aliases else {}
    facts |= {"Kind": f"`@{op.kind}`", "Shapes": found["FInferShape"], "Types": found["FInferType"]}
    gradient = _gradient(found["FGradient"])
    if record is not None:
        facts["Types"] += f"; tested with {', '.join(_TYPES[code] for code in record.dtypes)}"
        if record.order and gradient != "none":
            gradient += f"; compared with finite differences up to order {record.order}"
    states = found["FMutateInputs"]
    if isinstance(states, list) and states:
        facts["Writes to"] = ", ".join(f"`{n}`" for n in states)
    return facts | {"Gradient": gradient, "Source": f"`{op.module.replace('.', '/')}.py`"}


def _called(name: str) -> str:
    space, short = registry.namespace_of(name)
    return f"{space}.{short}" if space else short


def _gradient(found: dict) -> str:
    if not found["defined"]:
        return "none"
    if "uses" in found:
        return "of every order, derived from the formula"
    return "of every order, " + {"own rule": "by a rule made of operators"}.get(found["rule"], "derived " + found["rule"])


def _entries(body: str) -> list[str]:
    """Return numpydoc's entries as a list."""
    lines: list[str] = []
    for entry in re.split(r"\n(?=\S)", textwrap.dedent(body).strip("\n")):
        head, _, text = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        kind = re.sub(r"\b(Shape|Floats)(\(tuple\))?", "tuple", kind).replace("boolean", "bool")
        shown = ", ".join(f"`{n.strip()}`" for n in names.split(",")) + f" ({kind})" if kind else head
        lines.append(f"- {shown}" + (f": {_markdown(' '.join(text.split()))}" if text.strip() else ""))
    return lines


def _examples(text: str) -> list[str]:
    """Return examples as code, and the text between them."""
    lines: list[str] = []
    code = False
    for line in text.splitlines():
        if line.startswith(">>>") and not code:
            lines += ["", "```pycon"]
            code = True
        elif code and not line.strip():
            lines.append("```")
            code = False
        if line.startswith(">>>") and lines[-1].startswith("... "):
            lines.append("...")
        lines.append(line if code else _markdown(line))
    return [*lines, "```"] if code else lines


def _markdown(text: str) -> str:
    """Return text of a docstring with code in Markdown's way."""
    return re.sub(r"``([^`]+)``", r"`\1`", re.sub(r":\w+:`([^`]+)`", r"`\1`", text))
