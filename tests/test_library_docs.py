"""The page about libraries: its files compile, its sessions give what it says."""

import doctest

from kept_files import FOLDER, digest
from libraries_util import library, needs_compiler  # noqa: F401
from test_docs import ROOT, blocks, run_examples

import mxop as mx

PAGE = ROOT / "docs" / "libraries.md"


@needs_compiler
def test_the_page_about_libraries(library, monkeypatch):  # noqa: F811
    folder = FOLDER / f"page_{digest(PAGE.read_text(encoding='utf-8'))}"  # where compiled files are found again
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(folder)
    files, sessions = 0, 0
    for language, text in blocks(PAGE):
        if text.startswith("// "):
            (folder / text.split()[1]).write_text(text)
            files += 1
        elif language == "" and text.startswith(">>>"):
            session = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
            session.globs = {"mx": mx}
            run_examples([session], PAGE.name, session.globs)
            sessions += 1
    assert files == 2 and sessions == 3
