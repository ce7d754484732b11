"""What the site is made of: drawings and charts are up to date, and the reference leaves nothing public out."""

import importlib.util
import json
import re
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from test_docs import DOCS, ROOT

import mxop as mx


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
    tables = charts.tables_of(files)
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
                assert found or entry.startswith("operators/"), f"{page.name} lists {entry}"  # those the site writes
                listed |= found
    missing = [str(p.relative_to(DOCS)) for p in sorted(DOCS.rglob("*.md")) if p not in listed]
    assert missing == [], "add them to a toctree of docs/index.md"


# ---- reference ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("space, page", [("nd", "ndarray"), ("sym", "symbol")])
def test_functions_that_are_no_operators_are_in_the_reference(space, page):
    text = (DOCS / "api" / f"{page}.md").read_text(encoding="utf-8")
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
