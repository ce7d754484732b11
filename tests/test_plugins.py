"""Packages that announce operators: each loads on its own, and what is wrong with one is told and harms no other."""

import pytest
from processes import run_python

SWISH = """
from mxop.op import F, elementwise

@elementwise
def {name}(data, *, beta: float = {beta}):
    \"\"\"Evaluate ``data * sigmoid(beta * data)``.\"\"\"
    return data * F.sigmoid(beta * data)

@elementwise(name="_contrib_{last}", aliases=["{last}_alias"])
def last(data):
    \"\"\"Add one.\"\"\"
    return data + 1
"""


@pytest.fixture
def site(tmp_path):
    """A folder of packages: two that want one name, one that cannot be imported, and one that raises at its end."""
    package(tmp_path, "mxop-aa", "1.0", "mxop_aa", "import not_there_module\n")
    package(tmp_path, "mxop-extra", "2.1", "mxop_extra", SWISH.format(name="swish_beta", beta=1.0, last="extra_last"))
    package(tmp_path, "mxop-two", "0.3", "mxop_two", SWISH.format(name="swish_beta", beta=3.0, last="zz_last"))
    package(
        tmp_path,
        "mxop-zz",
        "1.0",
        "mxop_zz",
        SWISH.format(name="zz_swish", beta=1.0, last="zz") + "raise SystemExit(3)",
    )
    return str(tmp_path)


def package(folder, name, version, module, text):
    (folder / module).mkdir()
    (folder / module / "__init__.py").write_text(f'"""Operators of {name}."""\n{text}')
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[mxop.operators]\n{module} = {module}\n")


def told(site, code):
    """Run code with the packages; return what it printed."""
    return run_python("import warnings; warnings.simplefilter('ignore')\nimport mxop as mx\n" + code, PYTHONPATH=site)


def test_each_loads_on_its_own(site):
    names = ["swish_beta", "zz_last_alias", "extra_last_alias", "zz_swish", "softmx"]
    assert told(site, f"print([hasattr(mx.nd, n) for n in {names}], mx.nd.contrib.zz_last(mx.nd.zeros(1)).item())") == (
        "[True, True, True, True, False] 1.0"
    )
    assert told(site, f"print([hasattr(mx.sym, n) for n in {names}])") == "[True, True, True, True, False]"


def test_rules_and_named_axes_find_them(site):
    code = """
from mxop.op import composite
@composite
def user(F, data):
    return F.swish_beta(data) * 2
print(user(mx.nd.ones(1)).item() > 1)
"""
    assert told(site, code) == "True"
    assert (
        told(site, code.replace("user(mx.nd.ones(1)).item() > 1", "user(mx.sym.var('x')).infer_shape(x=(2,))[1]")) == "[(2,)]"
    )
    code = "print(mx.axes.swish_beta(mx.axes.tensor(mx.nd.ones(1), [mx.axes.make_axis(1, 'W')])).shape)"
    assert told(site, code) == "(1,)"
    assert told(site, "print('swish_beta' in dir(mx.axes))") == "True"


@pytest.mark.parametrize("api", ["nd", "sym"])
def test_dir_knows_them(site, api):
    assert told(site, f"print('swish_beta' in dir(mx.{api}), 'zz_last' in dir(mx.{api}.contrib))") == "True True"


def test_a_clash_loses_one_name_and_says_both_packages(site):
    code = """
import warnings
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    hasattr(mx.nd, "anything")
print(mx.nd.swish_beta(mx.nd.ones(1)).item() < 0.8)
for w in found:
    print(w.category.__name__, w.message)
"""
    first, *lines = told(site, code).splitlines()
    assert first == "True"  # mxop-extra was first
    assert [line.split()[:3] for line in lines] == [
        ["PackageWarning", "package", f"{name}:"] for name in ("mxop-aa", "mxop-two", "mxop-zz")
    ]
    assert "mxop_aa cannot be imported: ModuleNotFoundError: No module named 'not_there_module'" in lines[0]
    assert "operator 'swish_beta' is left out: the name is taken by package mxop-extra (mxop_extra)" in lines[1]
    assert "SystemExit: 3" in lines[2]


def test_who_makes_errors_of_warnings_loses_nothing(site):
    code = """
import warnings
warnings.simplefilter("error")
try:
    hasattr(mx.nd, "anything")
except mx.errors.PackageWarning as problem:
    print(problem)
print([hasattr(mx.nd, name) for name in ("anything", "swish_beta", "zz_last_alias", "zz_swish")])
"""
    first, second = told(site, code).splitlines()
    assert first.startswith("package mxop-aa") and second == "[False, True, True, True]"


def test_a_package_that_is_imported_by_hand_loses_a_name_too(site):
    assert told(site, "import mxop_two, mxop_extra; print(mx.nd.swish_beta(mx.nd.ones(1)).item() > 0.9)") == "True"


def test_an_operator_of_a_user_is_refused_with_the_package_that_has_the_name(site):
    code = """
from mxop.op import elementwise
hasattr(mx.nd, "anything")
try:
    elementwise(lambda x: x, name="swish_beta")
except mx.MXNetError as problem:
    print(problem)
"""
    assert "is taken by 'swish_beta' of package mxop-extra (mxop_extra)" in told(site, code)


def test_commands_list_them(site):
    listed = told(site, "from mxop.cli import main; main(['ops', '*_beta'])")
    assert "mxop_extra  (1)" in listed and "swish_beta" in listed and "package mxop-aa" in listed
    found = told(site, "from mxop.cli import main; main(['doctor'])")
    assert "Packages of operators" in found and "mxop-extra         2.1, 2 operators" in found
    assert "mxop-two           0.3, 1 operator;" in found and "left out" in found and "not_there_module" in found


def test_documentation_and_stubs_of_a_package(site, tmp_path):
    code = "from mxop.cli import main; print(main(['{0}', r'{1}', '--package', '{2}']))"
    assert told(site, code.format("docs", tmp_path / "docs", "mxop-extra")).endswith("0")
    page = (tmp_path / "docs" / "swish_beta.md").read_text()
    assert "# swish_beta" in page and "Evaluate `data * sigmoid(beta * data)`" in page
    index = (tmp_path / "docs" / "index.md").read_text()
    assert "2 operators" in index and "# Operators of mxop-extra" in index and "quadratic" not in index
    for name in ("mxop-extra", "mxop_extra"):
        folder = tmp_path / "stubs" / name
        assert told(site, code.format("stubs", folder, name)).endswith("0")
        text = (folder / "ndarray" / "__init__.pyi").read_text()
        assert "def swish_beta(\n    data: NDArray,\n    beta: float = 1.0,\n" in text and "def softmax(" in text
        assert "def extra_last(" in (folder / "ndarray" / "contrib.pyi").read_text()
        assert "zz_last" not in text
    assert told(site, code.format("docs", tmp_path / "none", "mxop-extr")) == "1"
    assert not (tmp_path / "none").exists()


def test_a_saved_graph_names_the_package_that_it_needs(site, tmp_path):
    file = tmp_path / "net.json"
    told(site, f"(mx.sym.exp(mx.sym.swish_beta(mx.sym.var('x')))).save(r'{file}')")
    assert told(site, f"print(mx.sym.load(r'{file}').list_arguments())") == "['x']"
    code = f"""
import mxop as mx
try:
    mx.sym.load(r"{file}")
except mx.MXNetError as problem:
    print(problem)
again = mx.sym.load(r"{file}", allow_missing=True)
print(again.tojson() == open(r"{file}").read())
"""
    message, same = run_python(code).splitlines()
    assert "'swish_beta' (1" in message and "of package mxop-extra" in message and "pip install" not in message
    assert same == "True"


def test_a_graph_of_built_in_operators_names_none():
    import mxop as mx

    assert "packages" not in mx.sym.exp(mx.sym.var("x")).tojson()


def test_names_that_cannot_be_reached_are_refused():
    import mxop as mx
    from mxop.op import elementwise

    for name in ("array", "waitall", "NDArray", "save"):
        with pytest.raises(mx.MXNetError, match=f"'{name}' .*mx.nd.{name}.*choose another name"):
            elementwise(lambda x: x, name=name)
        with pytest.raises(mx.MXNetError, match="choose another name"):
            elementwise(lambda x: x, name=name, override=True)
        assert mx.op.find(name) is None
