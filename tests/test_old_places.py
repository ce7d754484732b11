"""Modules under the names that people import them by: MXNet's, and those of where they once were.  There is one of each."""

import importlib
import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from processes import ROOT, fails_python, run_python

import mxop as mx
from mxop.support import moved

PACKAGE = Path(mx.__file__).parent
#: The names of modules that are imported by another than that of where they lie, and that.
PAIRS = {}
for _name, _folder in moved.FOLDERS.items():
    for _path in [PACKAGE / _folder / f"{_name}.py", *sorted((PACKAGE / _folder / _name).rglob("*.py"))]:
        _module = ".".join(_path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        PAIRS |= {f"mxop.{_module.removeprefix(_folder + '.')}": f"mxop.{_module}"} if _path.exists() else {}
#: What programs import, the way they write it, and where it lies.
STATEMENTS = [
    ("from mxop.optimizer import SGD", "mxop.mxnet.optimizer.rules", "SGD"),
    ("from mxop.optimizer.optimizer import SGD", "mxop.mxnet.optimizer", "SGD"),
    ("from mxop.errors import MXNetError", "mxop.support.errors", "MXNetError"),
    ("from mxop.kvstore.kvstore import KVStore", "mxop.mxnet.kvstore", "KVStore"),
    ("from mxop.contrib.text.vocab import Vocabulary", "mxop.mxnet.contrib.text.vocab", "Vocabulary"),
    ("from mxop.nans import NaNError", "mxop.support.errors", "NaNError"),
    ("from mxop import dtypes", "mxop.support", "dtypes"),
    ("from mxop import init", "mxop.mxnet", "initializer"),
    ("from mxop import kv", "mxop.mxnet", "kvstore"),
    ("import mxop.contrib.ndarray as F", "mxop.mxnet.contrib", "nd"),
]
_ONE = """
import importlib.util, sys
import mxop
mxop.install_as_mxnet()
for first, second, home in {triples}:
    module = importlib.import_module(first)
    assert module is importlib.import_module(second) is sys.modules[first] is sys.modules[second], (first, second)
    assert module.__spec__.name == home and not module.__spec__._initializing, (first, module.__spec__)
    assert importlib.util.find_spec(first) is importlib.util.find_spec(second) is module.__spec__
files = [m.__file__ for m in {{id(m): m for m in sys.modules.values()}}.values() if getattr(m, "__file__", None)]
twice = {{f for f in files if "mxop" in f and files.count(f) > 1}}
assert not twice, twice
"""


@pytest.mark.parametrize("top", ["mxop", "mxnet"])
@pytest.mark.parametrize("old_first", [True, False])
def test_there_is_one_module_under_both_names(top, old_first):
    pairs = [(top + old.removeprefix("mxop"), home) for old, home in PAIRS.items()]
    run_python(_ONE.format(triples=[((old, home) if old_first else (home, old)) + (home,) for old, home in pairs]))


@pytest.mark.parametrize("top", ["mxop", "mxnet"])
@pytest.mark.parametrize(("line", "module", "name"), STATEMENTS)
def test_each_statement_in_a_new_process(line, module, name, top):
    value = line.split()[-1]
    code = f"import mxop; mxop.install_as_mxnet()\n{line.replace('mxop', top)}\nimport importlib\n"
    run_python(code + f"assert {value} is getattr(importlib.import_module({module!r}), {name!r})")


def test_what_was_pickled_by_an_older_name():
    for old, new, name in (("optimizer.rules", "mxnet.optimizer.rules", "SGD"), ("errors", "support.errors", "MXNetError"),
                           ("lr_scheduler", "mxnet.lr_scheduler", "FactorScheduler"), ("name", "support.name", "Prefix"),
                           ("nans", "support.errors", "NaNError")):  # fmt: skip
        pickled = b"cmxop." + old.encode() + b"\n" + name.encode() + b"\n."
        code = f"import pickle, importlib; found = pickle.loads({pickled!r})\n"
        run_python(code + f"assert found is importlib.import_module('mxop.{new}').{name}")
    optimizer = pickle.loads(pickle.dumps(mx.optimizer.SGD(momentum=0.5)))
    assert optimizer.momentum == 0.5 and type(optimizer) is mx.optimizer.SGD
    assert pickle.loads(pickle.dumps(mx.errors.OpValueError)) is mx.errors.OpValueError


def test_threads_that_import_it_at_once_get_one_module():
    code = """
import sys, threading, importlib
import mxop; mxop.install_as_mxnet()
names = ["optimizer.rules", "io", "rnn", "kvstore", "metric", "model", "contrib.text"]
found, start = {}, threading.Barrier(12)
def load(k):
    start.wait()
    for name in names:
        top = ("mxop", "mxop.mxnet", "mxnet")[k % 3]
        importlib.import_module(f"{top}.{name}".rpartition(".")[0])  # Python locks a part before its package, else
        module = importlib.import_module(f"{top}.{name}")
        assert vars(module)["__doc__"], (top, name)
        found.setdefault(name, set()).add(id(module))
threads = [threading.Thread(target=load, args=(k,)) for k in range(12)]
[t.start() for t in threads], [t.join() for t in threads]
print(all(len(ids) == 1 for ids in found.values()) and len(found) == len(names))
print({sys.modules[f"mxop.{n}"].__spec__.name == f"mxop.mxnet.{n}" for n in names})
"""
    for _ in range(5):
        assert run_python(code).splitlines() == ["True", "{True}"]


def test_tools_find_what_is_there_and_nothing_else():
    code = "from importlib.util import find_spec; spec = find_spec('mxop.optimizer'); print(spec.name, spec.origin)\n"
    code += "print(find_spec('mxop.optimizer.nothing'), find_spec('mxop.nothing'))"
    first, second = run_python(code).splitlines()
    assert first == f"mxop.optimizer {PACKAGE / 'mxnet' / 'optimizer' / '__init__.py'}" and second == "None None"
    assert find_spec("mxop.errors").name == "mxop.support.errors"
    assert importlib.reload(mx.misc) is mx.misc is importlib.reload(sys.modules["mxop.misc"])
    told = fails_python("import mxop.optimizer.nothing")
    assert told.strip().endswith("ModuleNotFoundError: No module named 'mxop.optimizer.nothing'"), told
    assert "cannot import name 'Nothing' from 'mxop" in fails_python("from mxop.errors import Nothing")
    with pytest.raises(AttributeError, match=r"module 'mxop\.optimizer' has no attribute 'sgd'"):
        mx.optimizer.sgd  # noqa: B018


def test_the_package_alone_loads_none_of_it():
    run_python("import sys, mxop; assert not [m for m in sys.modules if m.startswith('mxop.mxnet')], sys.modules")
    run_python("import sys, mxop.errors; assert not [m for m in sys.modules if m.startswith('mxop.mxnet')], sys.modules")


def test_the_top_of_the_package_is_read_at_a_glance():
    if (Path(ROOT) / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "mxop"], cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
        assert len({Path(name).parts[1] for name in listed}) <= 28
    there = [p for p in PACKAGE.iterdir() if p.suffix == ".py" or (p.is_dir() and any(p.glob("*.py")))]
    assert len(there) <= 28
    assert not {p.name for p in there} & {f"{name}.py" for name in moved.FOLDERS}


_MEANWHILE = """
import threading, time
problems = []
def run(name, after):
    time.sleep(after)
    try:
        exec(f"import {name}")
    except BaseException as problem:
        problems.append(repr(problem))
threads = [threading.Thread(target=run, args=a) for a in (("mxop", 0), ("mxop.optimizer", 0.1), ("mxop.lr_scheduler", 0.2))]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert not problems, problems
"""


def test_other_threads_may_import_them_while_the_package_is_imported():
    run_python(_MEANWHILE)
