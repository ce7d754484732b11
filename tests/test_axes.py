"""Named axes: the algebra of axes, their roles, and the errors."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxop as mx
from mxop import axes as ng


@pytest.fixture
def hwn():
    return tuple(ng.make_axis(length=n, name=name) for n, name in ((2, "H"), (3, "W"), (4, "N")))


# ---- one axis ---------------------------------------------------------------------------------------------------------
def test_an_axis_is_itself():
    samples, features = ng.make_axis(50), ng.make_axis(50)
    assert samples != features and samples == samples and samples.name != features.name
    assert ng.make_axis(2, "H") != ng.make_axis(2, "H")


def test_length_may_come_later():
    axis = ng.make_axis(name="H")
    assert axis.length is None and repr(axis) == "Axis(H: ?)"
    axis.length = 7
    assert axis.length == 7 and axis.axes.lengths == (7,)
    x = ng.array([1, 2, 3], ng.make_axis(name="W"))
    assert x.axes[0].length == 3


@pytest.mark.parametrize("length, error", [(-1, ValueError), (2.5, TypeError), ("3", TypeError)])
def test_wrong_lengths(length, error):
    with pytest.raises(error, match="H"):
        ng.make_axis(length, "H")
    with pytest.raises(error, match="H"):
        ng.make_axis(name="H").length = length


def test_batch_recurrent_and_channel_axes():
    axes = ng.make_axes([ng.make_axis(2, n) for n in ("C", "D", "REC", "N")])
    C, D, REC, N = axes
    assert (axes.batch_axis(), axes.recurrent_axis(), axes.channel_axis()) == (N, REC, C)
    assert axes.batch_axes() == [N] and axes.sample_axes() == [C, D, REC]
    assert axes.feature_axes() == [C, D] and axes.spatial_axes() == [D]
    assert ng.make_axes(D).batch_axis() is None and ng.make_axes(D).batch_axes() == ()
    assert ng.make_axis(2, "time", recurrent=True).is_recurrent and ng.make_axis(2, "s", batch=True).is_batch
    with pytest.raises(ng.IncompatibleAxesError, match="2 batch axes"):
        (N + ng.make_axis(2, batch=True)).batch_axis()


def test_roles():
    rows = ng.make_axis_role("rows")
    H = ng.make_axis(2, "H", roles=[rows])
    W = ng.make_axis(3, "W")
    assert H.has_role(rows) and not W.has_role(rows) and W.add_role(rows).has_role(rows)
    assert (H + W).role_axes(rows) == [H, W] and ng.make_axis(1, "N").has_role(ng.BATCH)


def test_variants_are_remembered(hwn):
    H, W, _ = hwn
    assert W.variant(length=2) is W.variant(length=2) is not H
    assert W.variant(length=2).variant(length=3) is W and W.variant(length=3) is W
    assert W.variant(name="K").name == "K" and W.variant(name="K").length == 3
    flat = ng.FlattenedAxis([H, W])
    assert flat == ng.FlattenedAxis([H, W]) != ng.FlattenedAxis([W, H])
    assert flat.variant(length=4) is ng.FlattenedAxis([H, W]).variant(length=4)
    W.length = 5
    assert W.variant(length=2).length == 2


# ---- axes as list and set ---------------------------------------------------------------------------------------------
def test_axes_as_a_list(hwn):
    H, W, N = hwn
    axes = ng.make_axes([H, W, N])
    assert len(axes) == 3 and list(axes) == [H, W, N] and axes[1] is W and axes[:2] == H + W and axes["N"] is N
    assert axes.lengths == (2, 3, 4) and axes.names == ("H", "W", "N") and axes.size == 24
    assert axes.index(N) == axes.index("N") == 2 and axes.find_by_name("W") == [W] and not axes.find_by_name("Q")
    assert axes.T == [N, W, H] and W in axes and ng.make_axis(3, "W") not in axes and "W" in axes
    assert repr(axes) == "Axes(H: 2, W: 3, N: 4)" and ng.make_axes() == ng.make_axes(None) == []
    assert ng.make_axes(axes) is axes and bool(axes) and not ng.make_axes()
    assert ng.make_axes(a for a in (H, W)) == (H, W)


def test_algebra(hwn):
    H, W, N = hwn
    a, b = H + W, W + N
    assert a + N == [H, W, N] and a + [N] == a + N  # noqa: RUF005
    assert a - b == [H] and a - W == [H] and b - a == [N]
    assert a | b == [H, W, N] and b | a == [W, N, H]
    assert a & b == [W] and a & N == [] and a - None == a
    assert a != W + H and a.is_equal_set(W + H) and not a.is_not_equal_set([W, H]) and a.is_not_equal_set(b)
    assert ng.make_axes(W).is_sub_set(a) and not a.is_sub_set(W) and a.is_super_set(W) and a.is_sub_set(W | a)
    assert hash(H + W) == hash(ng.make_axes([H, W])) and (a == 3) is False
    assert [H, W] + N.axes == [H, W, N] and [H, W] - W.axes == [H]  # noqa: RUF005
    assert [N] | a == [N, H, W] and [W, N] & a == [W]


def test_flattened_axes(hwn):
    H, W, N = hwn
    axes = ng.make_axes([(H, W), N])
    assert axes.lengths == (6, 4) and axes.full_lengths == ((2, 3), 4) and axes[0].is_flattened
    assert axes[0].axes == [H, W] and (H + W).flatten() == axes[0] and H.axes.flatten() is H
    assert H.axes.flatten(force=True).is_flattened and repr(axes) == "Axes((H, W): 6, N: 4)"
    with pytest.raises(ValueError, match="follows from its axes"):
        axes[0].length = 3


@given(st.lists(st.integers(0, 6), unique=True), st.lists(st.integers(0, 6), unique=True))
@settings(deadline=None)
def test_algebra_is_that_of_ordered_sets(a, b):
    pool = [ng.make_axis(i, f"a{i}") for i in range(7)]
    x, y = ng.Axes(pool[i] for i in a), ng.Axes(pool[i] for i in b)
    assert (x | y).lengths == tuple(dict.fromkeys(a + b))
    assert (x & y).lengths == tuple(i for i in a if i in b)
    assert (x - y).lengths == tuple(i for i in a if i not in b)
    assert (x == y, x.is_equal_set(y)) == (a == b, set(a) == set(b))
    assert (x.is_sub_set(y), x.is_super_set(y)) == (set(a) <= set(b), set(a) >= set(b))
    if set(a) & set(b):
        with pytest.raises(ng.IncompatibleAxesError):
            x + y
    else:
        assert (x + y).lengths == tuple(a + b)


# ---- errors -----------------------------------------------------------------------------------------------------------
def test_errors_are_mxnet_and_value_errors():
    assert issubclass(ng.UnmatchedAxesError, ng.IncompatibleAxesError)
    assert issubclass(ng.IncompatibleAxesError, mx.MXNetError) and issubclass(ng.IncompatibleAxesError, ValueError)


def test_an_axis_occurs_once(hwn):
    H, W, N = hwn
    with pytest.raises(ng.IncompatibleAxesError, match=r"more than once in Axes\(H: 2, H: 2\)"):
        ng.make_axes([H, H])
    with pytest.raises(ng.IncompatibleAxesError, match=r"Axes\(H: 2, W: 3\) and Axes\(W: 3, N: 4\): both have Axes\(W: 3\)"):
        (H + W) + (W + N)


@pytest.mark.parametrize("wrong", [3, [3], "H", object()], ids=lambda wrong: type(wrong).__name__)
def test_what_is_no_axis(wrong):
    with pytest.raises(TypeError, match="expected an axis"):
        ng.make_axes(wrong)


def test_axes_that_are_not_there(hwn):
    H, W, N = hwn
    with pytest.raises(ng.UnmatchedAxesError, match=r"no axis \(N: 4\) in Axes\(H: 2, W: 3\)"):
        (H + W).index(N)
    with pytest.raises(ng.UnmatchedAxesError, match="no axis named 'Q'"):
        (H + W)["Q"]
    with pytest.raises(ng.UnmatchedAxesError, match="several axes named 'H'"):
        (H + ng.make_axis(2, "H"))["H"]
    with pytest.raises(ng.UnmatchedAxesError, match="H of one side and of the other are different axes"):
        (H + W).index(ng.make_axis(2, "H"))
    with pytest.raises(ValueError, match=r"length of axis K of Axes\(H: 2, K: \?\) is not known"):
        (H + ng.make_axis(name="K")).size  # noqa: B018
