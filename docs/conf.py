"""How Sphinx builds the site: ``python -m sphinx -W docs build/site``.  Nothing is fetched, and every warning is an error.

The reference is read from the docstrings of the package that is imported, so that is installed or built in place before; the
pages of operators, ``operators``, are written from its registry each time.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from html import escape
from pathlib import Path
from types import ModuleType
from typing import Any

import mxop as mx
from mxop.cli import reference

sys.path.insert(0, str(Path(__file__).parent))
from formulas import FORMULAS
from mathematics import TOPICS, mathml

DOCS = Path(__file__).parent
MODULES = DOCS / "api" / "modules"

project = "mxop"
author = "mxop developers"
copyright = author
version = release = mx.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode", "sphinx_copybutton"]
exclude_patterns = ["figures/*.md"]  # tables that pages include
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["ref.python"]  # a type in a docstring, such as "dtype", that several classes have as an attribute

html_theme = "furo"
html_title = f"mxop {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_use_index = False  # one page of 23,000 pixels; the search finds names
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


def write_pages(app: Any) -> None:
    """Write the pages of operators, and of modules that have no page; those of what is no more go."""
    MODULES.mkdir(exist_ok=True)
    for name, module in modules_without_a_page().items():
        first = (inspect.getdoc(module) or "").partition("\n\n")[0].replace("``", "`").partition(": ")[2]
        text = f"# mx.{name}\n\n{first[:1].upper()}{first[1:]}\n\n```{{eval-rst}}\n"
        _write(MODULES / f"{name}.md", text + f".. automodule:: mxop.{name}\n   :members:\n   :imported-members:\n```\n")
    for page in set(MODULES.glob("*.md")) - {MODULES / f"{name}.md" for name in modules_without_a_page()}:
        page.unlink()
    texts = reference.pages(topics=TOPICS, formulas=FORMULAS)
    (DOCS / "operators").mkdir(exist_ok=True)
    for name, text in texts.items():
        _write(DOCS / "operators" / name, text)
    for page in set((DOCS / "operators").glob("*.md")) - {DOCS / "operators" / name for name in texts}:
        page.unlink()


def _write(path: Path, text: str) -> None:
    """Write a file where it changes, so that Sphinx builds only what changed."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def show_formulas(app: Any, page: str, source: list[str]) -> None:
    """Turn the formulas of operators into mathematics, and name the source of each by a link."""
    if page.startswith("operators/"):

        def formulas(found: re.Match[str]) -> str:
            return '<div class="formula">' + "".join(map(mathml, found[1].splitlines())) + "</div>"

        def origin(found: re.Match[str]) -> str:
            module, name = found[1], re.search(r"^# (?:\w+\.)?(\w+)$", source[0], re.M)[1]  # type: ignore[index]
            lines = (DOCS.parent / f"{module}.py").read_text(encoding="utf-8").splitlines()
            at = next((k for k, line in enumerate(lines, 1) if re.search(rf'def \w*{name}\(|"\w*{name}"', line)), 1)
            return f'| Source | <a href="../_modules/{module}.html#line-{at}">{module}.py, line {at}</a> |'

        source[0] = re.sub(r"^```formula\n(.*?)\n```$", formulas, source[0], flags=re.M | re.S)
        source[0] = re.sub(r"^\| Source \| `(mxop/\S+)\.py` \|$", origin, source[0], flags=re.M)


def sources(app: Any) -> Any:
    """Write the sources of operators as pages, to whose lines the reference links."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    for path in sorted((Path(mx.__file__).parent / "ops").glob("*.py")):
        name = f"mxop/ops/{path.stem}"
        shown = HtmlFormatter(linenos="inline", lineanchors="line", cssclass="highlight")
        code = highlight(path.read_text(encoding="utf-8"), PythonLexer(), shown)
        yield f"_modules/{name}", {"title": f"{name}.py", "body": f"<h1>{escape(name)}.py</h1>\n{code}"}, "page.html"


def _operator(found: object) -> bool:
    """Tell whether a member of a class or module is an operator, which the reference of operators has."""
    function = getattr(found, "func", found)
    return hasattr(function, "op") or type(function).__name__ in ("OpFunction", "OperatorMethod", "Fluent")


def leave_out(app: Any, what: str, name: str, found: object, skip: bool, options: Any) -> bool | None:
    """Leave out operators, which are methods of arrays and symbols, too; and what symbols refuse, as MXNet's."""
    if app.env.docname == "api/symbol_class":
        found = inspect.getattr_static(mx.sym.Symbol, name, found)
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
    pages = "".join(page.read_text(encoding="utf-8") for page in sorted((DOCS / "api").glob("*.md")))
    named = {
        *re.findall(r"automodule:: (\S+)", pages),
        "mxop.ndarray",
        "mxop.symbol",
        "mxop.executor",
        "mxop.base",
        "mxop.image",
    }
    written = {name for module in named for name in (module, importlib.import_module(module).__name__)}
    public = {name: getattr(mx, name) for name in dir(mx) if not name.startswith("_")}
    found = {m: name for name, m in sorted(public.items())
             if isinstance(m, ModuleType) and not written & {m.__name__, f"mxop.{name}"}}  # fmt: skip
    return {name: module for module, name in found.items()}


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


def mend_sources(app: Any, problem: Exception | None) -> None:
    """Take dead links out of the pages of sources: back to functions under another name, and to compiled modules."""
    folder = Path(app.outdir) / "_modules"
    for page in folder.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        mended = re.sub(r'<a class="viewcode-back"[^>]*>.*?</a>', "", text)
        if page == folder / "index.html":
            mended = re.sub(
                r'<li><a href="([^"]+)">([^<]*)</a></li>',
                lambda found: found[0] if (folder / found[1]).exists() else f"<li>{found[2]}</li>",
                mended,
            )
        if mended != text:
            page.write_text(mended, encoding="utf-8")


def setup(app: Any) -> None:
    app.connect("build-finished", mend_sources)
    app.connect("builder-inited", write_pages)
    app.connect("source-read", show_formulas)
    app.connect("html-collect-pages", sources)
    app.connect("autodoc-process-docstring", split_attributes, priority=400)  # before napoleon
    app.connect("autodoc-skip-member", leave_out)
    app.connect("autodoc-process-docstring", prepare)
