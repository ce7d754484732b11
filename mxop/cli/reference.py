"""``python -m mxop docs``: the operator reference, written from the registry: one page per family, and an index.

The site writes these pages before it is built (``docs/conf.py``); they are not in the repository.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

from ..opdef import Operator, info, plugins, registry
from ..opdef.docs import signature
from .operators import called, families, package_named, summary

_RULE = re.compile("-{3,}")
_NOTE = "<!-- Written from the operators' definitions; change those. -->"


def pages(package: plugins.Package | None = None) -> dict[str, str]:
    """Return the text of every page by file name: of mxop's operators, or of those of another package."""
    found = families(package=package)
    return {
        "index.md": _index(found, package),
        **{f"{family}.md": _family_page(family, ops) for family, ops in found.items()},
    }


def write(folder: str, package: str | None = None) -> list[str]:
    """Write the pages to a folder, which is made when needed; return what was written."""
    texts = pages(package_named(package))
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in texts.items():
        (target / name).write_text(text, encoding="utf-8")
        written.append(str(target / name))
    return written


def _title(op: Operator) -> str:
    """Return the first sentence of the module that defines an operator."""
    text = inspect.getdoc(importlib.import_module(op.module)) or op.module
    return text.partition("\n")[0].rstrip(".")


def _index(found: dict[str, list[Operator]], package: plugins.Package | None) -> str:
    total = sum(map(len, found.values()))
    title = "Operators" if package is None else f"Operators of {package.name}"
    families = "families" if len(found) > 1 else "family"
    lines = [_NOTE, "", f"# {title}", "",
             f"{total} operators in {len(found)} {families}. Each is a function of `mx.nd` and of `mx.sym`, with gradients of "
             "every order where it says so.", "",
             "`python -m mxop ops` lists them, `python -m mxop info NAME` says everything about one."]  # fmt: skip
    if package is None:
        lines[-1] += (
            " [Compared with MXNet](../compared_with_mxnet.md): the orders of gradients that are verified, and what is equal."
        )
    for family, ops in found.items():
        lines += ["", f"## [{family}]({family}.md)", "", f"{_markdown(_title(ops[0]))}.", ""]
        lines += [f"- [`{called(op)}`]({family}.md#{_anchor(op)}): {_markdown(summary(op))}" for op in ops]
    return "\n".join(lines) + "\n"


def _anchor(op: Operator) -> str:
    """Return the anchor that renderers of Markdown make of an operator's heading."""
    return re.sub(r"[^\w-]", "", called(op).lower())


def _family_page(family: str, ops: list[Operator]) -> str:
    lines = [
        _NOTE,
        "",
        f"# {family}: {_markdown(_title(ops[0]))}",
        "",
        f"Defined in `{ops[0].module.replace('.', '/')}.py`. [Index](index.md)",
    ]
    for op in ops:
        lines += ["", *_entry(op)]
    return "\n".join(lines) + "\n"


def _entry(op: Operator) -> list[str]:
    found = info(op.name)
    lines = [
        f"## {called(op)}",
        "",
        "```python",
        f"mx.nd.{called(op)}{signature(op)}",
        "```",
        "",
        *_prose(found["doc"]),
    ]
    facts = [f"Kind: {op.kind}."]
    others = (n for n in op.aliases if n != registry.public_name(op))
    aliases = [n for n in others if registry.namespace_of(n)[0] != "_internal"]
    if aliases:
        facts.append("Also called: " + ", ".join(f"`{_called(n)}`" for n in aliases) + ".")
    facts += [f"`{name}`: {text}." for name, text in found["parameters"].items()]
    formula = found["FCompute"].get("formula")
    if formula:
        chosen = ", ".join(f"{p.name}={p.choices[0]}" for p in op.spec.params if p.required and p.choices)
        facts.append(f"Formula{' with ' + chosen if chosen else ''}: " + ", ".join(f"`{f}`" for f in formula) + ".")
    facts.append(f"Shapes: {found['FInferShape']}.")
    facts.append(f"Gradient: {_gradient(found['FGradient'])}.")
    return [*lines, "", *[f"- {fact}" for fact in facts]]


def _called(name: str) -> str:
    space, short = registry.namespace_of(name)
    return f"{space}.{short}" if space else short


def _gradient(found: dict) -> str:
    if not found["defined"]:
        return "none"
    if "uses" in found:
        needs = {"in": "the inputs", "out": "the outputs", "inout": "inputs and outputs", "none": "nothing else"}
        return f"derived from the formula; it needs the head gradient and {needs.get(found['uses'], found['uses'])}"
    return {"own rule": "by its own rule"}.get(found["rule"], found["rule"])


def _prose(doc: str) -> list[str]:
    """Return a docstring as Markdown: examples as code, numpydoc's headings in bold, its parameters as a list."""
    lines: list[str] = []
    source = doc.splitlines()
    code = listing = False
    for line, following in zip(source, [*source[1:], ""], strict=True):
        if line.startswith(">>>") and not code:
            lines.append("```pycon")
            code, listing = True, False
        elif code and not line.strip():
            lines.append("```")
            code = False
        if code:
            lines.append(line)
        elif _RULE.fullmatch(following.strip()) and line.strip():
            lines += [f"**{line.strip()}**", ""]
            listing = line.strip() not in ("Examples", "Notes", "See Also", "References")
        elif not _RULE.fullmatch(line.strip()):
            lines.append(_markdown(f"- {line}" if listing and line[:1].strip() else line))
    return [*lines, "```"] if code else lines


def _markdown(text: str) -> str:
    """Return text of a docstring with code in Markdown's way."""
    return re.sub(r"``([^`]+)``", r"`\1`", text)
