"""How Sphinx builds the site: ``python -m sphinx -W docs build/site``.  Nothing is fetched, and every warning is an error.

The reference is read from the docstrings of the package that is imported, so that is installed or built in place before; the
pages of operators, ``operators``, are written from its registry each time.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import mxop as mx
from mxop.cli import reference

project = "mxop"
author = "mxop developers"
copyright = author
version = release = mx.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["figures/*.md"]  # tables that pages include
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["ref.python"]  # a type in a docstring, such as "dtype", that several classes have as an attribute

html_theme = "furo"
html_title = f"mxop {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
pygments_style = "default"
copybutton_prompt_text = r">>> |\.\.\. ?"  # a line of three points ends a block in the plain interpreter
copybutton_prompt_is_regexp = True

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # numpydoc's sections say the types in words
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True  # attributes are said once, by the class
# The functions of arrays and symbols that operators are have pages of their own.
toc_object_entries_show_parents = "hide"


def write_operators(app: Any) -> None:
    """Write the pages of operators; pages of families that are no more go."""
    folder = Path(__file__).parent / "operators"
    for page in set(folder.glob("*.md")) - set(map(Path, reference.write(str(folder)))):
        page.unlink()


def _operator(found: object) -> bool:
    """Tell whether a member of a class or module is an operator, which the reference of operators has."""
    function = getattr(found, "func", found)
    return hasattr(function, "op") or type(function).__name__ in ("OpFunction", "OperatorMethod", "Fluent")


def leave_out(app: Any, what: str, name: str, found: object, skip: bool, options: Any) -> bool | None:
    """Leave out operators, which are methods of arrays and symbols, too."""
    return True if _operator(found) else None


def prepare(app: Any, what: str, name: str, found: object, options: Any, lines: list[str]) -> None:
    """Take out docstrings of modules, whose page says what they are for; list the operators that are methods."""
    if what == "module":
        lines.clear()  # the page says what the module is for
    elif what == "class" and name in ("mxop.nd.NDArray", "mxop.sym.Symbol"):
        methods = sorted(n for n in dir(found) if n[0] != "_" and _operator(inspect.getattr_static(found, n)))
        lines += ["", "Operators that are methods: " + ", ".join(f"``{n}``" for n in methods) + ".", ""]


def modules_without_a_page() -> dict[str, ModuleType]:
    """Return the public modules that no page of ``api`` is about, by their names in ``mx``."""
    pages = "".join(page.read_text(encoding="utf-8") for page in sorted((Path(__file__).parent / "api").glob("*.md")))
    written = {*re.findall(r"automodule:: (\S+)", pages), "mxop.ndarray", "mxop.symbol", "mxop.executor", "mxop.base"}
    public = {name: getattr(mx, name) for name in dir(mx) if not name.startswith("_")}
    found = {m: name for name, m in sorted(public.items())
             if isinstance(m, ModuleType) and not written & {m.__name__, f"mxop.{name}"}}  # fmt: skip
    return {name: module for module, name in found.items()}


def add_other_modules(app: Any, page: str, source: list[str]) -> None:
    """Write the page of all modules that have none of their own."""
    if page == "api/others":
        for name, module in modules_without_a_page().items():
            first = (inspect.getdoc(module) or "").partition("\n\n")[0]
            source[0] += f"\n## mx.{name}\n\n{first.replace('``', '`')}\n\n```{{eval-rst}}\n"
            source[0] += f".. automodule:: mxop.{name}\n   :members:\n   :imported-members:\n```\n"


def split_attributes(app: Any, what: str, name: str, found: object, options: Any, lines: list[str]) -> None:
    """Give attributes that are described together, ``a, b : type``, an entry each, which napoleon does for parameters only."""
    if "Attributes" not in lines:
        return
    start = lines.index("Attributes") + 2
    end = next((k - 1 for k in range(start, len(lines)) if lines[k].startswith("---")), len(lines))
    entries: list[list[str]] = []
    for line in lines[start:end]:
        if line[:1].strip():
            entries.append([])
        entries[-1].append(line) if entries else None
    result = []
    for first, *rest in entries:
        names, colon, kind = first.partition(" : ")
        for name in names.split(", "):
            result += [f"{name}{colon}{kind}", *rest]
    lines[start:end] = result


def setup(app: Any) -> None:
    app.connect("builder-inited", write_operators)
    app.connect("source-read", add_other_modules)
    app.connect("autodoc-process-docstring", split_attributes, priority=400)  # before napoleon
    app.connect("autodoc-skip-member", leave_out)
    app.connect("autodoc-process-docstring", prepare)
