"""What the site is made of: drawings and charts are up to date, and the reference leaves nothing public out."""

import importlib.util
import json
import re
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from test_docs import DOCS, FROM_DOCSTRINGS, PAGES, ROOT

import mxop as mx
from mxop.cli import reference
from mxop.cli.operators import called, families


def script(path):
    """Import a file that belongs to no package."""
    spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def tool(name):
    """Import a script of tools/."""
    return script(ROOT / "tools" / f"{name}.py")


# ---- pictures -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["call", "gradient", "bound", "executor", "swish"])
def test_drawings_are_up_to_date(name):
    drawings = tool("drawings")
    assert sorted(drawings.DRAWINGS) == sorted(p.stem for p in (DOCS / "drawings").glob("*.svg"))
    assert (DOCS / "drawings" / f"{name}.svg").read_text(encoding="utf-8") == drawings.DRAWINGS[name](), (
        "run: python tools/drawings.py"
    )


def test_text_stays_in_its_box():
    drawings = tool("drawings")
    with pytest.raises(ValueError, match="wider than 40"):
        drawings.Box(0, 0, 40, ["short", "much longer than that"])


def test_tables_of_figures_are_those_of_the_files():
    charts = tool("charts")
    page = (DOCS / "figures.md").read_text(encoding="utf-8")
    files = sorted((DOCS / "figures").glob("*.json"))
    tables = charts.tables_of(files) | {"summary": charts.summary(files), "behind": charts.behind(files)}
    assert tables and all(f"<!-- {name} -->" in page for name in tables)
    assert charts.with_tables(page, tables) == page, "run: python tools/charts.py"


def test_charts(tmp_path):
    pytest.importorskip("matplotlib")
    row = {
        "what": "x + y",
        "bound": "<= 0.5",
        "measured": 0.25,
        "ok": True,
        "against": "numpy",
        "unit": "x",
        "seconds": {},
    }
    rows = [row, row | {"what": "slow", "measured": 0.75, "seconds": {"mxop": 3e-6, "numpy": 4e-6}}]
    rows.append(row | {"what": "a share of the bandwidth", "unit": "of it", "bound": ">= 0.85"})
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"machine": {"cpu": "a processor", "threads": 2}, "rows": rows}))
    charts = tool("charts")
    written = charts.charts(path, png=True)
    assert [p.name for p in written] == ["run.svg", "run.png", "run_times.svg", "run_times.png"]
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in written if p.suffix == ".png")
    drawn = written[0].read_text()
    ElementTree.fromstring(drawn)
    assert charts.OK in drawn and charts.SHORT in drawn
    before = written[0].read_bytes()
    charts.charts(path)
    assert written[0].read_bytes() == before


# ---- pages ----------------------------------------------------------------------------------------------------------------
def test_every_page_is_in_a_table_of_contents():
    listed = {DOCS / "index.md"}
    for page in DOCS.rglob("*.md"):
        for body in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
            for entry in (line for line in body.splitlines() if line and not line.startswith(":")):
                found = set(page.parent.glob(f"{entry}.md"))
                written = entry in ("operators/index", "modules/*")  # by the site
                assert found or written, f"{page.name} lists {entry}"
                listed |= found
    pages = [p for p in sorted(DOCS.rglob("*.md")) if p.parent not in FROM_DOCSTRINGS]
    missing = [str(p.relative_to(DOCS)) for p in pages if p not in listed]
    assert missing == [], "add them to a toctree"


@pytest.mark.parametrize("word, page", [
    ("hessian", "gradients"), ("jacobian", "gradients"), ("train a model", "train"), ("install", "install"),
    ("windows", "install"), ("macos", "install"), ("conda", "install"), ("pretrained", "models"), ("license", "license"),
    ("data loader", "api/io"), ("matrix multiplication", "operators/index"), ("matmul", "operators/matmul"),
    ("dropout", "operators/Dropout"), ("broadcasting", "glossary"), ("faq", "faq"), ("cite", "cite"),
])  # fmt: skip
def test_what_people_look_for_has_a_page(word, page):
    """The words stand in the text of the page, where the search of the site finds them."""
    folder, _, name = page.rpartition("/")
    topics = script(DOCS / "mathematics.py").TOPICS
    text = (
        reference.pages(topics=topics)[f"{name}.md"]
        if folder == "operators"
        else (DOCS / f"{page}.md").read_text(encoding="utf-8")
    )
    assert word in " ".join(text.lower().split())


def test_pictures_of_pages_exist_and_have_a_text():
    for page in PAGES:
        for text, path in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert text and (page.parent / path).exists(), f"{page.name}: {path}"


def test_every_program_is_in_the_gallery():
    gallery = (DOCS / "gallery.md").read_text(encoding="utf-8")
    for path in (ROOT / "examples").glob("*.py"):
        assert f"`examples/{path.name}`" in gallery or path.name == "helpers.py"


# ---- pages of operators -----------------------------------------------------------------------------------------------------
def test_every_operator_has_a_topic():
    of_topics = {name for names in script(DOCS / "mathematics.py").TOPICS.values() for name in names.split()}
    assert set(families()) <= of_topics
    assert of_topics - set(families()) <= {called(op) for ops in families().values() for op in ops}


def test_a_page_of_an_operator():
    page = reference.pages()["softmax.md"]
    titles = re.findall(r"^## (.*)$", page, re.M)
    assert titles == ["Parameters", "Examples", "Properties", "See also"]
    assert page.count("- `temperature` (") == 1 and "[`log_softmax`](log_softmax.md)" in page
    assert max(map(len, re.search(r"```python\n(.*?)```", page, re.S)[1].splitlines())) <= 68
    assert "of every order" in page and "finite differences up to order 3" in page
    assert "```formula\ny = abs(data)\n```" in reference.pages()["abs.md"]


def test_formulas_of_operators_are_mathematics():
    written, formulas = script(DOCS / "mathematics.py"), script(DOCS / "formulas.py").FORMULAS
    pages = reference.pages(topics=written.TOPICS, formulas=formulas)
    assert {f"{name}.md" for name in formulas} <= set(pages)
    lists = {"index.md", *(name for name in pages if name.startswith("topic-"))}
    without = {name[:-3] for name in set(pages) - lists if "```formula" not in pages[name]}
    assert without == {
        "amp_multicast",
        "contrib.bipartite_matching",
        "contrib.DeformablePSROIPooling",
        "image.random_color_jitter",
    }
    lines = [
        line
        for text in pages.values()
        for body in re.findall(r"```formula\n(.*?)```", text, re.S)
        for line in body.splitlines()
    ]
    assert len(lines) > 500
    for line in lines:
        ElementTree.fromstring(written.mathml(line))


@pytest.mark.parametrize("text, shown", [
    ("a*(b + c)", "a·(b+c)"), ("a - (b - c)", "a−(b−c)"), ("2*x**2", "2\u2062x2"), ("add(mul(alpha, x), 1.0)", "α·x+1"),
    ("-(a + b)", "−(a+b)"), ("y[i] = sum(j, x[i,j])", "yi=∑jxi,j"), ("maximum(x, 0)", "max\u2061(x,0)"),
    ("where(x > 0, x, 0)", "{xif x>00otherwise"), ("sqrt(a + b)*c", "a+b·c"), ("log1p(x)", "ln(1+x)"),
    ("y[(i,j),k]", "y(i,j),k"), ("a <= x + 1 < b", "a≤x+1<b"),
])  # fmt: skip
def test_mathematics(text, shown):
    """The texts of the elements, in their order; fractions, roots and powers are elements."""
    found = ElementTree.fromstring(script(DOCS / "mathematics.py").mathml(text))
    assert "".join(found.itertext()) == shown


# ---- reference ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("space, page", [("nd", "ndarray"), ("sym", "symbol")])
def test_functions_that_are_no_operators_are_in_the_reference(space, page):
    text = "".join((DOCS / "api" / f"{name}.md").read_text(encoding="utf-8") for name in (page, f"{page}_class"))
    module = getattr(mx, space)
    found = {n for n in module.__all__ if callable(getattr(module, n)) and not hasattr(getattr(module, n), "op")}
    found -= {"var", "NotImplementedForSymbol"}  # of Variable; an error that mx.base has, too
    contrib = mx.nd.contrib
    written = {n for n in dir(contrib) if n[0] != "_" and not hasattr(getattr(contrib, n), "op")}
    found |= written if space == "nd" else {"foreach", "while_loop", "cond"}
    assert found == set(re.findall(r"^\.\. auto(?:function|class):: (\w+)$", text, re.M))


def test_modules_are_in_the_reference():
    """Those without a page of their own are on one page, which is written when the site is built."""
    found = script(DOCS / "conf.py").modules_without_a_page()
    assert {"errors", "name", "util"} <= set(found) and not {"autograd", "graph", "nd", "viz"} & set(found)
    assert found["errors"] is mx.errors
