"""Documentation: every example is executed, what is generated is up to date, what is named exists."""

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import mxop as mx
from mxop.cli import reference
from mxop.cli.operators import called, families
from mxop.support import moved

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
FROM_DOCSTRINGS = (DOCS / "operators", DOCS / "api" / "modules")  # written when the site is built
WRITTEN = [p for p in sorted(DOCS.rglob("*.md")) if p.parent not in FROM_DOCSTRINGS]
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "tools/README.md")), *WRITTEN]
#: Optional packages that examples of pages need.
NEEDS = {"custom_mindspore.md": ["numba"], "loops.md": ["numba"], "train.md": ["sklearn", "matplotlib"]}
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def modules():
    """Return the names of all modules of the package but the compiled ones and those that only run."""
    found = ["mxop"]
    for module in pkgutil.walk_packages(mx.__path__, "mxop."):
        compiled = importlib.util.find_spec(module.name).origin.endswith((".so", ".pyd"))
        if not compiled and not module.name.endswith(("__main__", "quadratic_user", "_installed")):
            found.append(module.name)
    return found


pytestmark = pytest.mark.usefixtures("fresh_names")


@pytest.fixture
def registry_restored():
    """Take out the operators and passes that an example registers, and MXNet's name and version."""
    before, passes = set(mx.op.names(hidden=True)), mx.graph.list_passes()
    version, tops = mx.__version__, moved.Moved.tops
    yield
    mx.__version__, moved.Moved.tops = version, tops
    if "mxnet" not in tops:
        for name in [name for name in sys.modules if name.split(".")[0] == "mxnet"]:
            del sys.modules[name]
    for found in mx.graph.list_passes():
        if found not in passes:
            mx.graph.unregister_pass(found.name)
    for name in set(mx.op.names(hidden=True)) - before:
        if mx.op.find(name) is not None and not name.startswith("_backward_"):
            mx.op.unregister(name)


def run_examples(examples, name, namespace):
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    told = []
    for example in examples:
        example.globs = namespace if example.globs is None else example.globs
        runner.run(example, out=told.append, clear_globs=False)
    assert runner.summarize(verbose=False).failed == 0, f"{name}:\n" + "".join(told)


class Finder(doctest.DocTestFinder):
    """Finds the examples of decorated functions, too."""

    def _from_module(self, module, object):
        return super()._from_module(module, inspect.unwrap(object))


@pytest.mark.parametrize("name", modules())
def test_docstrings(name, registry_restored):
    module = importlib.import_module(name)
    found = Finder(exclude_empty=True).find(module, name, extraglobs={"mx": mx, "np": np})
    with np.printoptions():
        run_examples(found, name, None)


@pytest.mark.parametrize("family", families(hidden=True))
def test_docstrings_of_operators(family, registry_restored):
    """Operators are objects, whose docstrings no finder sees."""
    parser = doctest.DocTestParser()
    tests = []
    for op in families(hidden=True)[family]:
        names = {"mx": mx, "np": np, "F": mx.nd}
        tests.append(parser.get_doctest(op.doc, names, op.name, op.function.__code__.co_filename, 0))
    run_examples(tests, family, None)


def test_public_operators_have_an_example():
    missing = [op.name for ops in families().values() for op in ops if ">>>" not in op.doc]
    assert missing == []


def blocks(page):
    """Yield (language, text) of the code blocks of a page; those of Sphinx's directives are no code."""
    for language, text in re.findall(r"^ *```([^\n]*)\n(.*?)^ *```", page.read_text(encoding="utf-8"), re.M | re.S):
        if not language.startswith("{"):
            yield language, textwrap.dedent(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_examples_of_pages(page, registry_restored):
    """The blocks of a page are one program, in their order."""
    for package in NEEDS.get(page.name, ()):
        pytest.importorskip(package)
    namespace = {"mx": mx, "np": np, "__name__": f"mxop_page_{page.stem}"}
    for language, text in blocks(page):
        assert language in ("python", "pycon", "sh", ""), f"{page.name}: {language}"
        if language == "python":
            whole = page.read_text(encoding="utf-8")
            before = whole[: max(whole.find(text), 0)].count("\n")  # lines are those of the page, where texts are looked up
            exec(compile("\n" * before + text, str(page), "exec"), namespace)
        elif language == "pycon":
            example = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
            example.globs = namespace
            run_examples([example], page.name, namespace)


def test_readme_begins_as_promised():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = next(text for language, text in blocks(ROOT / "README.md") if language == "sh")
    assert commands == (
        'python -m pip install . && python -m mxop demo\npython -m pip install ".[test]" && python -m pytest -n 2\n'
    )
    code = next(text for language, text in blocks(ROOT / "README.md") if language == "python")
    assert len(code.splitlines()) < 10
    assert text.index("```sh") < text.index("```python")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_what_pages_name_exists(page):
    text = page.read_text(encoding="utf-8")
    for path in re.findall(r"`((?:mxop|tests|tools|docs|asv_bench|examples|\.ci)/[\w./-]*\w)`", text):
        built = path.startswith("mxop/_kernels/include/mxop_instructions")
        assert built or (ROOT / path).exists(), f"{page.name} names {path}"
    for path, function in re.findall(r"`(mxop/[\w./]+)`\s+\(`(\w+)`\)", text):
        source = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"(def|class|cdef [\w\[\], ]+\*?) {function}\b", source), f"{page.name}: {function} in {path}"
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        path = (page.parent / link).resolve()
        assert path.parent in FROM_DOCSTRINGS or path.exists(), f"{page.name} links {link}"
        assert path.parent != DOCS / "operators" or path.name in reference.pages(), f"{page.name} links {link}"


def test_operator_reference(tmp_path):
    """What ``python -m mxop docs`` writes links only what is there, and every public operator has an entry."""
    written = {Path(path).name: Path(path).read_text(encoding="utf-8") for path in reference.write(str(tmp_path))}
    assert written == reference.pages()
    for name, text in written.items():
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert link in written or (DOCS / "operators" / link).resolve().exists(), f"{name} links {link}"
    entries = "".join(written.values())
    for op in mx.op.operators():
        if not op.name.startswith("_") and op.module.startswith("mxop.ops."):
            assert f"`{called(op)}`](" in entries, op.name


def test_the_users_file_is_the_example():
    shipped = Path(mx.__file__).parent / "cli" / "quadratic_user.py"
    assert (ROOT / "examples" / "quadratic.py").read_text() == shipped.read_text()


#: Of real size they take minutes: test_examples.py runs them small.
LONG = {"digits_by_symbol.py", "gradient_penalty.py", "language_model.py", "learning_rates.py", "newton_cg.py"}
SHORT = [p for p in sorted((ROOT / "examples").glob("*.py")) if p.name not in LONG]


@pytest.mark.parametrize("path", SHORT, ids=lambda p: p.name)
def test_examples_run(path, tmp_path):
    env = os.environ | {"PYTHONPATH": str(Path(mx.__file__).parent.parent)}
    done = subprocess.run([sys.executable, str(path)], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_every_builtin_pass_is_on_its_page():
    text = (DOCS / "passes.md").read_text(encoding="utf-8")
    titles = re.findall(r"^### `(\w+)`$", text, re.M)
    assert titles == [p.name for p in mx.graph.list_passes() if p.__module__.startswith("mxop.")]
    for part in re.split(r"^### ", text, flags=re.M)[1:]:
        assert "```pycon" in part, part.splitlines()[0]
