"""Boxes, anchors, detections: what MXNet 1.9.1 gives for ties, NaN, padding and limits, and what the records do not say."""

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym

contrib = nd.contrib
NAN = float("nan")
BOXES = [
    [0, 0.5, 0.1, 0.1, 0.2, 0.2],
    [1, 0.4, 0.1, 0.1, 0.2, 0.2],
    [0, 0.3, 0.1, 0.1, 0.14, 0.14],
    [2, 0.6, 0.5, 0.5, 0.7, 0.8],
]
ANCHORS = [[[0.1, 0.1, 0.2, 0.2], [0.1, 0.1, 0.25, 0.22], [0.5, 0.5, 0.9, 0.9], [0.5, 0.5, 0.9, 0.95]]]
SCORES = [[[0.1, 0.2, 0.3, 0.1], [0.6, 0.5, 0.4, 0.3], [0.3, 0.3, 0.3, 0.6]]]


def array(values):
    return nd.array(values, dtype="float32")


def rounded(x, digits=4):
    return np.round(x.asnumpy().astype(float), digits).tolist()


# ---- overlaps -------------------------------------------------------------------------------------------------------------
def test_overlaps_of_inverted_empty_and_unknown_boxes():
    x = array([[1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0], [NAN, 0, 1, 1], [0, 0, np.inf, 1]])
    y = array([[0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]])
    want = [[0, 0, 0], [1, 0, 0], [0, 0, 0], [NAN, 0, 0], [0, 0, 0]]
    np.testing.assert_array_equal(contrib.box_iou(x, y).asnumpy(), want)
    centred = contrib.box_iou(array([[0.5, 0.5, 1, 1], [0, 0, 0.5, 0.5]]), array([[0.25, 0.25, 0.75, 0.75]]), format="center")
    assert rounded(centred) == [[0.3333], [0.2093]]
    assert contrib.box_iou(nd.ones((2, 1, 4)), nd.ones((3, 4))).shape == (2, 1, 3)


@pytest.mark.parametrize("op, shapes", [
    (contrib.box_iou, [(0, 4), (2, 4)]), (contrib.box_iou, [(2, 0, 4), (0, 4)]), (contrib.box_nms, [(0, 6)]),
    (contrib.box_nms, [(0, 3, 6)]),
    (lambda x: contrib.bipartite_matching(x, threshold=0.5)[1], [(2, 0, 3)]),
    (lambda *a: contrib.box_encode(*a)[0], [(0, 3), (0, 3), (0, 3, 4), (0, 2, 4), (4,), (4,)]),
    (contrib.box_decode, [(2, 0, 4), (1, 0, 4)]), (contrib.MultiBoxPrior, [(1, 1, 0, 2)]),
    (lambda *a: contrib.MultiBoxTarget(*a, negative_mining_ratio=1.0)[2], [(1, 3, 4), (2, 0, 5), (2, 3, 3)]),
    (lambda *a: contrib.MultiBoxTarget(*a)[0], [(1, 0, 4), (2, 1, 5), (2, 3, 0)]),
    (lambda *a: contrib.MultiBoxTarget(*a, negative_mining_ratio=1.0)[0], [(1, 2, 4), (2, 1, 5), (2, 0, 2)]),
    (contrib.MultiBoxDetection, [(2, 3, 0), (2, 0), (1, 0, 4)]), (contrib.MultiBoxDetection, [(0, 3, 2), (0, 8), (1, 2, 4)]),
    (contrib.MultiBoxDetection, [(2, 0, 2), (2, 8), (1, 2, 4)]), (contrib.MultiBoxDetection, [(2, 1, 2), (2, 8), (1, 2, 4)]),
    (contrib.Proposal, [(1, 24, 0, 2), (1, 48, 0, 2), (1, 3)]), (contrib.MultiProposal, [(0, 24, 1, 2), (0, 48, 1, 2), (0, 3)]),
])  # fmt: skip
def test_nothing_has_a_result(op, shapes):
    """The elements of the result, if there are any, are those that stand for nothing: 0 or -1."""
    with mx.np_shape():
        found = op(*(nd.zeros(shape) for shape in shapes)).asnumpy()
    assert set(found.ravel().tolist()) <= {0.0, -1.0}


# ---- suppression ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("params, kept", [
    ({"id_index": 0, "force_suppress": True}, [3, 0]), ({"id_index": 0}, [3, 0, 1]),
    ({"id_index": 0, "background_id": 0}, [3, 1]), ({"background_id": 0}, [3, 0]), ({"valid_thresh": 0.9}, []),
    ({"valid_thresh": 0.5}, [3]), ({"topk": 1}, [3]),
    ({"topk": 100}, [3, 0]), ({"topk": -5}, [3, 0]), ({"overlap_thresh": -1}, [3]), ({"overlap_thresh": 1}, [3, 0, 1, 2]),
])  # fmt: skip
def test_which_boxes_are_kept_and_get_a_gradient(params, kept):
    x, head = array(BOXES), np.arange(24, dtype=np.float32).reshape(4, 6)
    x.attach_grad()
    with autograd.record():
        y = contrib.box_nms(x, **{"overlap_thresh": 0.1, **params})
    y.backward(nd.array(head))
    want, grad = np.full((4, 6), -1, np.float32), np.zeros((4, 6), np.float32)
    want[: len(kept)] = np.asarray(BOXES, np.float32)[kept]
    grad[kept] = head[: len(kept)]
    assert (y.asnumpy() == want).all() and (x.grad.asnumpy() == grad).all()


def test_a_top_k_of_zero_returns_the_data():
    x = array(BOXES)
    x.attach_grad()
    with autograd.record():
        y = contrib.box_non_maximum_suppression(x, topk=0, out_format="center")
    y.backward(2 * x)
    assert (y.asnumpy() == x.asnumpy()).all() and (x.grad.asnumpy() == 2 * x.asnumpy()).all()


def test_equal_scores_keep_their_order_and_unknown_ones_are_dropped():
    x = array([[1, 0.5, 0, 0, 1, 1], [2, NAN, 4, 4, 5, 5], [3, 0.5, 2, 2, 3, 3], [4, 0.5, 0, 0, 1, 1], [5, 0.75, NAN, 2, 3, 3]])
    assert contrib.box_nms(x).asnumpy()[:, 0].tolist() == [5, 1, 3, -1, -1]


def test_classes_are_whole_numbers_and_minus_one_is_background_by_default():
    x = array([[-1, 0.5, 0.1, 0.1, 0.2, 0.2], [0.5, 0.4, 0.5, 0.5, 0.6, 0.6], [0.2, 0.3, 0.5, 0.5, 0.6, 0.6]])
    assert rounded(contrib.box_nms(x, id_index=0)[:, 0]) == [0.5, -1, -1]
    assert rounded(contrib.box_nms(x, id_index=0, background_id=0)[:, 0]) == [-1, 0.5, -1]


def test_formats_are_converted():
    x, kept = array(BOXES), {"overlap_thresh": 0.1}
    assert rounded(contrib.box_nms(x, out_format="center", **kept)[0]) == [2, 0.6, 0.6, 0.65, 0.2, 0.3]
    assert rounded(contrib.box_nms(x, in_format="center", **kept)[0]) == [2, 0.6, 0.15, 0.1, 0.85, 0.9]
    left_of_the_image = contrib.box_nms(array([[0, 1, -3, 0, 1, 2]]), out_format="center")  # MXNet leaves it as it is
    assert left_of_the_image.asnumpy().tolist() == [[0, 1, -1, 1, 4, 2]]


@pytest.mark.parametrize("req, want", [("write", 1), ("add", 3), ("null", 2)])
def test_requests_of_a_bound_symbol(req, want):
    net = sym.contrib.box_nms(sym.Variable("data"), overlap_thresh=0.1, name="nms")
    assert net.list_outputs() == ["nms_output0"]
    bound = net.bind(mx.cpu(), {"data": array(BOXES)}, {"data": nd.full((4, 6), 2)}, grad_req=req)
    bound.forward(is_train=True)
    bound.backward(nd.ones((4, 6)))
    rest = 2 if req != "write" else 0
    found = bound.grad_dict["data"]
    assert req == "null" or found.asnumpy()[:, 0].tolist() == [want, rest, rest, want]


# ---- matching and offsets --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scores, params, columns, rows", [
    ([[0.5, 0.6], [0.1, 0.2], [0.3, 0.4]], {"threshold": 0.5}, [1, -1, -1], [-1, 0]),
    ([[0.5, 0.6], [0.1, 0.2], [0.3, 0.4]], {"threshold": 0.35, "is_ascend": True}, [-1, 0, -1], [1, -1]),
    (np.ones((4, 5)), {"threshold": 0.1, "topk": 0}, [0, 1, 2, 3], [0, 1, 2, 3, -1]),
    (np.ones((4, 5)), {"threshold": 0.1, "topk": 1}, [0, 1, -1, -1], [0, 1, -1, -1, -1]),
    ([[NAN, 0.6], [0.1, 0.2], [0.3, NAN]], {"threshold": 0.1}, [1, -1, 0], [2, 0]),
])  # fmt: skip
def test_matching(scores, params, columns, rows):
    found = contrib.bipartite_matching(array(scores), **params)
    assert [f.asnumpy().tolist() for f in found] == [columns, rows]


def test_offsets_of_matches_and_of_those_out_of_range():
    anchors, refs = array([[[0, 0, 1, 1], [0, 0, 2, 2]]]), array([[[0, 0, 0.5, 0.5], [0.1, 0.2, 1, 2]]])
    means, stds = array([1, 2, 3, 4]), array([0.1, 0.1, 0.2, 0.2])
    found, mask = contrib.box_encode(array([[1, -1]]), array([[0, -1]]), anchors, refs, means, stds)
    assert rounded(found) == [[[-12.5, -22.5, -18.4657, -23.4657], [0, 0, 0, 0]]] and mask.asnumpy()[0, :, 0].tolist() == [1, 0]
    nearest = contrib.box_encode(array([[1, 1]]), array([[-7, 9]]), anchors, refs, means, stds)[0]
    named = contrib.box_encode(array([[1, 1]]), array([[0, 1]]), anchors, refs, means, stds)[0]
    assert (nearest.asnumpy() == named.asnumpy()).all()


def test_boxes_at_offsets():
    moves, anchor = array([[[0.1, 0.2, 0.3, 0.4], [1, -1, 5, -5]]]), array([[[0.5, 0.5, 1, 1], [0.2, 0.2, 0.6, 0.8]]])
    assert rounded(contrib.box_decode(moves, anchor, clip=2)[0, 1]) == [-1.4167, -0.6027, 3.0167, -0.5973]
    assert rounded(contrib.box_decode(moves, anchor, format="corner")[0, 0]) == [0.4625, 0.477, 1.1375, 1.223]


# ---- anchors ---------------------------------------------------------------------------------------------------------------
def test_anchors_of_a_map_that_is_not_square():
    found = contrib.MultiBoxPrior(nd.zeros((1, 1, 1, 2)), sizes=(0.5, 1.2), ratios=(2, 0.5), clip=True)[0, :3]
    want = [[0.0732, 0.3232, 0.4268, 0.6768], [0, 0.0757, 0.6743, 0.9243], [0.1616, 0.1464, 0.3384, 0.8536]]
    assert rounded(found) == want
    found = contrib.MultiBoxPrior(nd.zeros((2, 3, 2, 3)), sizes=(0.1,), steps=(0.3, 0.2), offsets=(0.2, 0.7))[0, 3]
    assert rounded(found) == [0.1067, 0.31, 0.1733, 0.41]


LABELS = [[[0, 0.1, 0.1, 0.25, 0.25], [1, 0.5, 0.2, 0.9, 0.6], [-1, -1, -1, -1, -1]]]
NEAR = [[[0.1, 0.1, 0.2, 0.2], [0.55, 0.2, 0.9, 0.5], [0, 0.25, 1, 1], [0.4, 0.4, 0.6, 0.6]]]


@pytest.mark.parametrize("label, params, classes", [
    (LABELS, {}, [1, 2, 0, 0]), (LABELS, {"overlap_threshold": 0.1}, [1, 2, 2, 2]),
    (LABELS, {"overlap_threshold": -1}, [1, 2, 0, 0]),
    (LABELS, {"negative_mining_ratio": 0.5, "ignore_label": -7}, [1, 2, 0, -7]),
    (LABELS, {"negative_mining_ratio": 0.1, "minimum_negative_samples": 2, "ignore_label": -7}, [1, 2, -7, -7]),
    # MXNet stops, as it finds too few
    (LABELS, {"negative_mining_ratio": 3, "negative_mining_thresh": 0.001, "ignore_label": -7}, [1, 2, -7, -7]),
    ([[[-1, -1, -1, -1, -1]]], {"ignore_label": -3}, [-3] * 4), ([[[-2, 0.1, 0.1, 0.2, 0.2]]], {}, [-1, 0, 0, 0]),
    ([[[0, NAN, 0.1, 0.25, 0.25], [1, 0.5, 0.2, 0.9, 0.6]]], {}, [0, 2, 0, 0]),
    ([[[0, 0.15, 0.15, 0.15, 0.15], [1, 0.5, 0.2, 0.9, 0.6]]], {}, [0, 2, 0, 0]),
])  # fmt: skip
def test_classes_that_anchors_learn(label, params, classes):
    scores = array(np.arange(12).reshape(1, 3, 4) % 5)
    offsets, mask, found = contrib.MultiBoxTarget(array(NEAR), array(label), scores, **params)
    assert found.asnumpy().tolist() == [classes]
    assert mask.asnumpy().reshape(4, 4)[:, 0].tolist() == [float(c > 0 or c == label[0][0][0] + 1 != 1) for c in classes]
    if label is LABELS:
        want = [2.5, 2.5, 2.0273, 2.0273, -0.7143, 1.6667, 0.6677, 1.4384]
        assert rounded(offsets[0, :8]) == want


# ---- detections ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("params, classes, scores", [
    ({}, [0, 1, -1, 0], [0.6, 0.6, 0.5, 0.4]), ({"threshold": 0.6}, [0, 1, -1, -1], [0.6, 0.6, -1, -1]),
    ({"force_suppress": True}, [0, 1, -1, -1], [0.6, 0.6, 0.5, 0.4]),
    ({"background_id": 1}, [0, 1, -1, 0], [0.6, 0.6, 0.5, 0.4]),
    ({"nms_threshold": 0}, [0, 0, 0, 1], [0.6, 0.5, 0.4, 0.6]), ({"nms_threshold": 1.5}, [0, 0, 0, 1], [0.6, 0.5, 0.4, 0.6]),
    ({"nms_threshold": 1}, [0, 1, 0, 0], [0.6, 0.6, 0.5, 0.4]), ({"nms_topk": 1}, [0, -1, -1, -1], [0.6, 0.5, 0.4, 0.6]),
    ({"nms_topk": 2, "force_suppress": True}, [0, 1, -1, -1], [0.6, 0.6, 0.4, 0.6]),
])  # fmt: skip
def test_detections(params, classes, scores):
    found = contrib.MultiBoxDetection(array(SCORES), nd.zeros((1, 16)), array(ANCHORS), **params)
    assert found.asnumpy()[0, :, 0].tolist() == classes and rounded(found[0, :, 1]) == scores


def test_detections_of_unknown_scores_and_offsets():
    scores = array([[[0.1, 0.2, 0.3, 0.1], [NAN, 0.5, 0.4, 0.3], [0.3, NAN, 0.3, 0.6]]])
    found = contrib.MultiBoxDetection(scores, nd.zeros((1, 16)), array(ANCHORS))
    assert rounded(found[0, :, :2]) == [[1, 0.6], [0, 0.5], [0, 0.4], [1, 0.3]]
    found = contrib.MultiBoxDetection(array(SCORES), array([[NAN, *[0] * 15]]), array(ANCHORS))
    assert rounded(found[0, 0]) == [0, 0.6, 1, 0.1, 1, 0.2]


SMALL = {
    "scales": (1, 2),
    "ratios": (0.5, 1),
    "feature_stride": 4,
    "rpn_min_size": 2,
    "rpn_post_nms_top_n": 4,
    "rpn_pre_nms_top_n": 8,
}


def test_proposals_of_equal_scores_keep_their_order():
    scores, moves, image = nd.full((1, 8, 2, 3), 0.5), nd.zeros((1, 16, 2, 3)), array([[8, 12, 1]])
    found, of = contrib.Proposal(scores, moves, image, output_score=True, **SMALL)
    want = [[0, 0, 0.5, 4, 2.5], [0, 0, 0, 7, 4], [0, 0, 0, 3, 3], [0, 0, 0, 5, 5]]
    assert found.asnumpy().tolist() == want and of.asnumpy().tolist() == [[0.5]] * 4
    both = contrib.MultiProposal(*(nd.concat(a, a, dim=0) for a in (scores, moves, image)), **SMALL)
    assert both.asnumpy().tolist() == [*want, *([1, *row[1:]] for row in want)]


def test_too_few_proposals_are_repeated_and_small_ones_come_last():
    scores = array(np.arange(8).reshape(1, 8, 1, 1) / 8)
    found, of = contrib.Proposal(
        scores, nd.zeros((1, 16, 1, 1)), array([[4, 4, 2]]), output_score=True, **{**SMALL, "threshold": 0.1}
    )
    assert of.asnumpy().ravel().tolist() == [0.875] * 4 and found.asnumpy().tolist() == [[0, 0, 0, 3, 3]] * 4
    small = contrib.Proposal(scores, nd.zeros((1, 16, 1, 1)), array([[4, 4, 4]]), output_score=True, **SMALL)
    assert small[1].asnumpy().ravel().tolist() == [-1] * 4 and small[0].asnumpy()[0].tolist() == [0, -4, -3.5, 7, 6.5]


def test_symbols_have_mxnets_names():
    inputs = [sym.Variable(name) for name in "abc"]
    assert sym.contrib.Proposal(*inputs, output_score=True, name="p").list_outputs() == ["p_output", "p_score"]
    assert sym.contrib.Proposal(*inputs, name="p").list_outputs() == ["p_output"]
    net = sym.contrib.MultiBoxTarget(*inputs, name="t")
    assert net.list_outputs() == ["t_loc_target", "t_loc_mask", "t_cls_target"]
    assert net.infer_shape(a=(1, 5, 4), b=(2, 3, 5), c=(2, 4, 5))[1] == [(2, 20), (2, 20), (2, 5)]


# ---- GPUs, types, threads ---------------------------------------------------------------------------------------------------
def _calls(ctx):
    r = np.random.default_rng(3)
    boxes = np.sort(r.random((2, 30, 2, 2)), axis=2).reshape(2, 30, 4).astype(np.float32)
    rows = np.concatenate([r.integers(0, 2, (2, 30, 1)), r.random((2, 30, 1)), boxes], axis=2)
    a, x, anchors = (nd.array(v, ctx=ctx, dtype="float32") for v in (boxes, rows, boxes[:1]))
    scores, moves = (nd.array(r.random(s), ctx=ctx, dtype="float32") for s in ((2, 3, 30), (2, 120)))
    regions = [
        nd.array(v, ctx=ctx, dtype="float32") for v in (r.random((2, 4, 3, 4)), r.random((2, 8, 3, 4)), [[40, 60, 1]] * 2)
    ]
    yield contrib.box_iou(a, anchors[0])
    yield contrib.box_nms(x, id_index=0)
    yield from contrib.bipartite_matching(contrib.box_iou(a[0], anchors[0]), threshold=0.1)
    yield from contrib.box_encode(scores[:, 0], moves[:, :30] * 20, a, a, nd.zeros((4,), ctx=ctx), nd.ones((4,), ctx=ctx))
    yield contrib.box_decode(a, anchors)
    yield contrib.MultiBoxPrior(regions[0], sizes=(0.5, 0.25), ratios=(1, 2))
    labels = nd.concat(x[:, :4, :1], x[:, :4, 2:], dim=2)
    yield from contrib.MultiBoxTarget(anchors, labels, scores, negative_mining_ratio=2.0, overlap_threshold=0.25)
    yield contrib.MultiBoxDetection(scores, moves, anchors, nms_topk=9)
    yield from contrib.MultiProposal(*regions, scales=(1, 2), ratios=(1,), rpn_post_nms_top_n=7, output_score=True)


@pytest.mark.parametrize("gpu", ["simulated"], indirect=True)
def test_gpus_give_the_same(gpu):
    for found, want in zip(_calls(gpu), _calls(mx.cpu()), strict=True):
        assert found.context == gpu
        np.testing.assert_allclose(found.asnumpy(), want.asnumpy(), rtol=2e-6, atol=1e-6)


def test_number_of_threads_does_not_count():
    r = np.random.default_rng(0)
    x = array(np.concatenate([r.random((3, 700, 2)), np.sort(r.random((3, 700, 2, 2)), axis=2).reshape(3, 700, 4)], axis=2))
    together = contrib.box_nms(x, overlap_thresh=0.3).asnumpy()
    for k in range(3):
        assert (contrib.box_nms(x[k], overlap_thresh=0.3).asnumpy() == together[k]).all()


def test_integers_are_refused():
    for call in (lambda x: contrib.box_iou(x, x), contrib.box_nms, lambda x: contrib.bipartite_matching(x, threshold=0.5)):
        with pytest.raises(mx.MXNetError, match="floating-point"):
            call(nd.zeros((3, 6), dtype="int32")[:, :4] if call is not contrib.box_nms else nd.zeros((3, 6), dtype="int32"))
