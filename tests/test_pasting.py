"""What the copy button of the site gives can be pasted into the plain interpreter, and into IPython."""

import codeop
import doctest
import importlib.util
import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_docs import PAGES, ROOT, blocks

import mxop as mx

TUTORIAL = ROOT / "docs" / "tutorial.md"
HOME = str(Path(mx.__file__).parent.parent)


def copied(language, text):
    """Return what the copy button puts into the clipboard: lines with a prompt, or all lines where there is none."""
    settings = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    prompt = re.search(r'copybutton_prompt_text = r"(.*?)"', settings)[1]
    lines = text.rstrip("\n").split("\n")
    matches = [re.match(f"^({prompt})(.*)", line) for line in lines]
    if not any(matches):
        return text.rstrip("\n")
    return "\n".join(m[2] if m else "" for m, line in zip(matches, lines, strict=True) if m or not line.strip())


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_statements_of_pages_are_complete(page):
    """A block that is not ended takes the next statement for a part of it, in the plain interpreter of Python 3.12."""
    for language, text in blocks(page):
        for statement in re.findall(r"^>>> .*(?:\n\.\.\.(?: .*)?$)*", text, re.M) if language == "pycon" else ():
            typed = re.sub(r"^(>>> |\.\.\. ?)", "", statement, flags=re.M)
            assert codeop.compile_command(typed, symbol="single"), (
                f"{page.name}: end it by a line of three points:\n{statement}"
            )


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_blocks_of_pages_can_be_pasted(page):
    """The plain interpreter of Python 3.12 ends a statement at an empty line, and takes nothing else for its end."""
    for language, text in blocks(page):
        lines = []
        for line in [*copied(language, text).split("\n"), ""] if language in ("python", "pycon") else ():
            lines.append(line)
            try:
                if codeop.compile_command("\n".join(lines), symbol="single"):
                    lines = []
            except SyntaxError as problem:
                shown = "\n".join(lines)
                pytest.fail(f"{page.name}: {problem.msg}: an empty line inside a statement, or none after one:\n{shown}")


class Terminal:
    """The plain interpreter on a pseudo-terminal."""

    def __init__(self, folder):
        pty = pytest.importorskip("pty")
        self.end, other = pty.openpty()
        env = os.environ | {"PYTHONPATH": HOME, "TERM": "dumb", "PYTHON_BASIC_REPL": "1", "PYTHONSTARTUP": ""}
        self.process = subprocess.Popen([sys.executable, "-q", "-i"], stdin=other, stdout=other, stderr=other, cwd=folder,
                                        env=env, start_new_session=True)  # fmt: skip
        os.close(other)
        self.number = 0

    def paste(self, text, seconds=60):
        """Paste text, press Enter, and return what the terminal shows until that is done."""
        self.number += 1
        for line in [*text.split("\n"), "", f"print('done', {self.number})"]:
            os.write(self.end, f"{line}\n".encode())
        shown, until = "", time.monotonic() + seconds
        while f"\ndone {self.number}" not in shown.replace("\r", ""):
            assert time.monotonic() < until, shown
            if select.select([self.end], [], [], 1)[0]:
                shown += os.read(self.end, 65536).decode()
        return shown.replace("\r", "")

    def close(self):
        os.close(self.end)
        self.process.kill()
        self.process.wait(10)


@pytest.fixture
def terminal(tmp_path):
    found = Terminal(tmp_path)
    yield found
    found.close()


def test_the_tutorial_can_be_pasted_into_the_plain_interpreter(terminal):
    for language, text in blocks(TUTORIAL):
        if language not in ("python", "pycon"):
            continue
        shown = terminal.paste(copied(language, text))
        assert "SyntaxError" not in shown and "IndentationError" not in shown, shown
        examples = doctest.DocTestParser().get_examples(text) if language == "pycon" else []
        assert shown.count("Traceback (most recent call last)") == sum(e.exc_msg is not None for e in examples), shown
        for example in examples:
            if example.want and example.exc_msg is None:
                want = re.escape(example.want.replace("<BLANKLINE>", "").strip())
                want = re.sub(r"(\\ |\\\n)+", r"\\s+", want.replace(r"\.\.\.", ".*?"))
                assert re.search(want, shown, re.S), f"{example.want}\n{shown}"


def test_a_block_without_an_end_is_what_went_wrong(terminal):
    """The test above sees it."""
    shown = terminal.paste("for k in range(2):\n    print(k)\nprint('after')")
    assert "SyntaxError" in shown


@pytest.mark.skipif(importlib.util.find_spec("IPython") is None, reason="needs IPython")
def test_the_tutorial_can_be_pasted_into_ipython(tmp_path):
    cells = [copied(*block) for block in blocks(TUTORIAL) if block[0] in ("python", "pycon")]
    code = (
        "import sys\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        f"for cell in {cells!r}:\n"
        "    found = shell.run_cell(cell)\n"
        "    wrong = found.error_before_exec or found.error_in_exec\n"
        "    assert wrong is None or type(wrong).__module__ == 'mxop.errors', cell\n"
        "print('all pasted', shell.user_ns['points'].grad.asnumpy().round(4).tolist())\n"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join([HOME, *filter(None, [os.environ.get("PYTHONPATH")])])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "all pasted [-0.87849" in done.stdout
