"""Networks as people have them, built by symbols: detectors, faces, generators; for :mod:`compare_models`.

Each function takes ``mx`` and returns a symbol and the shapes of its inputs.  They are smaller than the originals where only
sizes differ (fewer filters, smaller images), and have the same operators, parameters and connections.
"""

from __future__ import annotations

from typing import Any

Built = tuple[Any, dict[str, tuple[int, ...]]]


# ---- parts -----------------------------------------------------------------------------------------------------------
def convolved(mx, data, filters, name, kernel=3, stride=1, act="relu"):
    """Return convolution, batch normalization and activation."""
    net = mx.sym.Convolution(data, num_filter=filters, kernel=(kernel, kernel), stride=(stride, stride), no_bias=True,
                             pad=(kernel // 2, kernel // 2), name=f"{name}_conv")  # fmt: skip
    net = mx.sym.BatchNorm(net, fix_gamma=False, eps=2e-5, momentum=0.9, name=f"{name}_bn")
    if act is None:
        return net
    kind = "LeakyReLU" if act in ("leaky", "prelu") else "Activation"
    settings = {"slope": 0.1} if act == "leaky" else {}
    return getattr(mx.sym, kind)(net, act_type=act, name=f"{name}_{act}", **settings)


def unit(mx, data, filters, stride, name, dim_match, act="relu"):
    """Return a residual unit of two convolutions, normalized before and after, as in ResNet-IR."""
    sym = mx.sym
    net = sym.BatchNorm(data, fix_gamma=False, eps=2e-5, momentum=0.9, name=f"{name}_bn1")
    net = convolved(mx, net, filters, f"{name}_2", act=act)
    net = sym.Convolution(net, num_filter=filters, kernel=(3, 3), stride=(stride, stride), pad=(1, 1), no_bias=True,
                          name=f"{name}_conv2")  # fmt: skip
    net = sym.BatchNorm(net, fix_gamma=False, eps=2e-5, momentum=0.9, name=f"{name}_bn3")
    if dim_match:
        return net + data
    side = sym.Convolution(data, num_filter=filters, kernel=(1, 1), stride=(stride, stride), no_bias=True, name=f"{name}_sc")
    return net + sym.BatchNorm(side, fix_gamma=False, eps=2e-5, momentum=0.9, name=f"{name}_scbn")


def residual(mx, data, units, filters, act="relu"):
    """Return the stages of a residual network."""
    found = []
    for stage, (n, width) in enumerate(zip(units, filters, strict=True), 1):
        data = unit(mx, data, width, 2, f"stage{stage}_unit1", False, act)
        for k in range(2, n + 1):
            data = unit(mx, data, width, 1, f"stage{stage}_unit{k}", True, act)
        found.append(data)
    return found


# ---- detection -------------------------------------------------------------------------------------------------------
def _heads(mx, maps, classes, sizes, ratios):
    """Return class scores, offsets and anchors of several feature maps, as SSD joins them."""
    sym, scores, moves, anchors = mx.sym, [], [], []
    for k, (data, size) in enumerate(zip(maps, sizes, strict=True)):
        n = len(size) + len(ratios) - 1
        for kind, width, into in (("cls", classes + 1, scores), ("loc", 4, moves)):
            net = sym.Convolution(data, num_filter=n * width, kernel=(3, 3), pad=(1, 1), name=f"{kind}{k}")
            into.append(sym.Flatten(sym.transpose(net, axes=(0, 2, 3, 1))))
        anchors.append(sym.contrib.MultiBoxPrior(data, sizes=size, ratios=ratios, clip=False, name=f"anchors{k}"))
    scores = sym.Reshape(sym.concat(*scores, dim=1), shape=(0, -1, classes + 1))
    scores = sym.transpose(scores, axes=(0, 2, 1), name="scores")
    return scores, sym.concat(*moves, dim=1, name="moves"), sym.concat(*anchors, dim=1, name="anchors")


def ssd(mx) -> Built:
    """SSD on a residual network: losses, and detections."""
    sym, data = mx.sym, mx.sym.Variable("data")
    net = convolved(mx, data, 16, "first", stride=2)
    maps = residual(mx, sym.Pooling(net, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max"), (2, 2), (16, 32))
    for k, width in enumerate((32, 16)):
        net = convolved(mx, maps[-1], width // 2, f"extra{k}_1", kernel=1)
        maps.append(convolved(mx, net, width, f"extra{k}_3", stride=2))
    sizes = ((0.1, 0.141), (0.2, 0.272), (0.37, 0.447), (0.54, 0.619))
    scores, moves, anchors = _heads(mx, maps, 5, sizes, (1, 2, 0.5))
    target, mask, wanted = sym.contrib.MultiBoxTarget(
        anchors, sym.Variable("label"), scores, overlap_threshold=0.5, ignore_label=-1, negative_mining_ratio=3,
        minimum_negative_samples=0, negative_mining_thresh=0.5, variances=(0.1, 0.1, 0.2, 0.2), name="target",
    )  # fmt: skip
    classes = sym.SoftmaxOutput(scores, wanted, ignore_label=-1, use_ignore=True, grad_scale=1.0, multi_output=True,
                                normalization="valid", name="classes")  # fmt: skip
    offsets = sym.MakeLoss(sym.smooth_l1(mask * (moves - target), scalar=1.0), normalization="valid", name="offsets")
    found = sym.contrib.MultiBoxDetection(classes, moves, anchors, nms_threshold=0.45, force_suppress=False, nms_topk=400,
                                          variances=(0.1, 0.1, 0.2, 0.2), name="detection")  # fmt: skip
    return sym.Group([classes, offsets, sym.BlockGrad(wanted), sym.BlockGrad(found)]), {
        "data": (2, 3, 96, 96), "label": (2, 4, 5)}  # fmt: skip


def faster_rcnn(mx) -> Built:
    """The heads of Faster R-CNN: proposals, regions, classes and boxes."""
    sym, data = mx.sym, mx.sym.Variable("data")
    shared = residual(mx, data, (1, 1), (16, 24))[-1]
    rpn = sym.Activation(sym.Convolution(shared, num_filter=32, kernel=(3, 3), pad=(1, 1), name="rpn"), act_type="relu")
    score = sym.Convolution(rpn, num_filter=18, kernel=(1, 1), name="rpn_score")
    moves = sym.Convolution(rpn, num_filter=36, kernel=(1, 1), name="rpn_moves")
    likely = sym.softmax(sym.Reshape(score, shape=(0, 2, -1, 0)), axis=1)
    likely = sym.Reshape(likely, shape=(0, 18, -1, 0), name="rpn_likely")
    rois = sym.contrib.Proposal(sym.BlockGrad(likely), sym.BlockGrad(moves), sym.Variable("im_info"), feature_stride=4,
                                scales=(2, 4, 8), ratios=(0.5, 1, 2), rpn_pre_nms_top_n=200, rpn_post_nms_top_n=16,
                                threshold=0.7, rpn_min_size=4, name="rois")  # fmt: skip
    pooled = sym.ROIPooling(shared, rois, pooled_size=(5, 5), spatial_scale=0.25, name="pooled")
    net = sym.Activation(sym.FullyConnected(pooled, num_hidden=48, name="fc6"), act_type="relu")
    classes = sym.softmax(sym.FullyConnected(net, num_hidden=6, name="cls"), axis=-1)
    boxes = sym.FullyConnected(net, num_hidden=24, name="boxes")
    return sym.Group([sym.BlockGrad(rois), classes, boxes, likely]), {"data": (1, 3, 64, 64), "im_info": (1, 3)}


def yolo3(mx) -> Built:
    """The heads of YOLO v3: two scales, the coarser one repeated and joined to the finer one, boxes and scores decoded."""
    sym, data = mx.sym, mx.sym.Variable("data")
    fine = convolved(mx, convolved(mx, data, 8, "a", act="leaky"), 16, "b", stride=2, act="leaky")
    coarse = convolved(mx, fine, 32, "c", stride=2, act="leaky")
    found = []
    for k, net in enumerate((coarse, fine)):
        if k:
            up = convolved(mx, coarse, 8, "up", kernel=1, act="leaky")
            net = sym.concat(sym.repeat(sym.repeat(up, repeats=2, axis=-1), repeats=2, axis=-2), net, dim=1)
        net = convolved(mx, net, 16, f"head{k}", act="leaky")
        net = sym.Convolution(net, num_filter=2 * 8, kernel=(1, 1), name=f"predicted{k}")
        net = sym.transpose(sym.Reshape(net, shape=(0, 2, 8, -1)), axes=(0, 3, 1, 2))
        centers = sym.sigmoid(sym.slice_axis(net, axis=-1, begin=0, end=2))
        anchors = sym.Variable(f"anchors{k}_weight", shape=(1, 1, 2, 2))
        sides = sym.broadcast_mul(sym.exp(sym.slice_axis(net, axis=-1, begin=2, end=4)), anchors)
        likely = sym.sigmoid(sym.slice_axis(net, axis=-1, begin=4, end=8))
        boxes = sym.concat(centers - sides / 2, centers + sides / 2, dim=-1)
        found.append(sym.Reshape(sym.concat(sym.broadcast_mul(sym.slice_axis(likely, axis=-1, begin=0, end=1),
                                                              sym.slice_axis(likely, axis=-1, begin=1, end=4)), boxes, dim=-1),
                                 shape=(0, -3, 0)))  # fmt: skip
    return sym.concat(*found, dim=1), {"data": (2, 3, 16, 16)}


# ---- faces -----------------------------------------------------------------------------------------------------------
def arcface(mx) -> Built:
    """ResNet-100 of ArcFace (IR units, PReLU, features from a dropped and normalized layer), with its margin loss."""
    sym, data = mx.sym, mx.sym.Variable("data")
    net = (data - 127.5) * 0.0078125
    net = convolved(mx, net, 16, "first", act="prelu")
    net = residual(mx, net, (3, 13, 30, 3), (16, 24, 32, 48), "prelu")[-1]
    net = sym.BatchNorm(net, fix_gamma=False, eps=2e-5, momentum=0.9, name="bn1")
    net = sym.FullyConnected(sym.Dropout(net, p=0.4), num_hidden=64, name="pre_fc1")
    features = sym.BatchNorm(net, fix_gamma=True, eps=2e-5, momentum=0.9, name="fc1")
    weight = sym.L2Normalization(sym.Variable("fc7_weight", shape=(10, 64)), mode="instance")
    cosine = sym.FullyConnected(sym.L2Normalization(features, mode="instance") * 64, weight, num_hidden=10, no_bias=True,
                                name="fc7")  # fmt: skip
    label = sym.Variable("softmax_label")
    likely = sym.pick(cosine, label, axis=1) / 64
    theta = sym.arccos(sym.clip(likely, a_min=-0.999, a_max=0.999)) + 0.5
    moved = (sym.cos(theta) - likely) * 64
    with_margin = cosine + sym.broadcast_mul(sym.one_hot(label, depth=10, on_value=1.0, off_value=0.0),
                                             sym.expand_dims(moved, 1))  # fmt: skip
    return sym.Group([features, sym.SoftmaxOutput(with_margin, label, name="softmax", normalization="valid")]), {
        "data": (8, 3, 48, 48), "softmax_label": (8,)}  # fmt: skip


def _mtcnn(mx, size, layers, hidden, landmarks) -> Built:
    sym, net = mx.sym, mx.sym.Variable("data")
    for k, (filters, kernel, pool) in enumerate(layers, 1):
        net = sym.Convolution(net, num_filter=filters, kernel=(kernel, kernel), name=f"conv{k}")
        net = sym.LeakyReLU(net, act_type="prelu", name=f"prelu{k}")
        if pool:
            net = sym.Pooling(net, pool_type="max", kernel=(pool, pool), stride=(2, 2), pooling_convention="full")
    if hidden:
        net = sym.LeakyReLU(sym.FullyConnected(net, num_hidden=hidden, name="fc"), act_type="prelu", name="prelu_fc")
    outputs = []
    for name, n in (("face", 2), ("box", 4), *((("landmarks", 10),) if landmarks else ())):
        head = sym.FullyConnected(net, num_hidden=n, name=name) if hidden else sym.Convolution(
            net, num_filter=n, kernel=(1, 1), name=name)  # fmt: skip
        outputs.append(sym.SoftmaxActivation(head, mode="instance" if hidden else "channel") if name == "face" else head)
    return sym.Group(outputs), {"data": (2, 3, size, size)}


def mtcnn_p(mx) -> Built:
    """The first network of MTCNN: faces anywhere in an image."""
    return _mtcnn(mx, 31, ((10, 3, 2), (16, 3, 0), (32, 3, 0)), 0, False)


def mtcnn_r(mx) -> Built:
    """The second network of MTCNN."""
    return _mtcnn(mx, 24, ((28, 3, 3), (48, 3, 3), (64, 2, 0)), 128, False)


def mtcnn_o(mx) -> Built:
    """The third network of MTCNN, with landmarks."""
    return _mtcnn(mx, 48, ((32, 3, 3), (64, 3, 3), (64, 3, 2), (128, 2, 0)), 256, True)


# ---- generators ------------------------------------------------------------------------------------------------------
def dcgan_generator(mx) -> Built:
    """The generator of DCGAN."""
    net, sym = mx.sym.Variable("data"), mx.sym
    for k, (filters, stride, pad) in enumerate(((64, 1, 0), (32, 2, 1), (16, 2, 1), (8, 2, 1))):
        net = sym.Deconvolution(net, kernel=(4, 4), stride=(stride, stride), pad=(pad, pad), num_filter=filters, no_bias=True,
                                name=f"g{k}")  # fmt: skip
        net = sym.BatchNorm(net, fix_gamma=True, eps=1e-5 + 1e-12, name=f"gbn{k}")
        net = sym.Activation(net, act_type="relu")
    net = sym.Deconvolution(net, kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_filter=3, no_bias=True, name="g4")
    return sym.Activation(net, act_type="tanh"), {"data": (2, 20, 1, 1)}


def dcgan_discriminator(mx) -> Built:
    """The discriminator of DCGAN."""
    net, sym = mx.sym.Variable("data"), mx.sym
    for k, filters in enumerate((8, 16, 32)):
        net = sym.Convolution(net, kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_filter=filters, no_bias=True, name=f"d{k}")
        net = net if k == 0 else sym.BatchNorm(net, fix_gamma=True, eps=1e-5 + 1e-12, name=f"dbn{k}")
        net = sym.LeakyReLU(net, act_type="leaky", slope=0.2)
    net = sym.Flatten(sym.Convolution(net, kernel=(4, 4), num_filter=1, no_bias=True, name="d3"))
    return sym.LogisticRegressionOutput(net, sym.Variable("label_of_fake"), name="dloss"), {
        "data": (2, 3, 32, 32), "label_of_fake": (2, 1)}  # fmt: skip


#: By name, and whether an operator of MXNet has float32 alone, or computes in it (LeakyReLU).
NETWORKS = {
    "SSD": (ssd, True), "Faster R-CNN, heads": (faster_rcnn, True), "YOLO v3, heads": (yolo3, True),
    "ArcFace, ResNet-100": (arcface, True), "MTCNN, first": (mtcnn_p, True), "MTCNN, second": (mtcnn_r, True),
    "MTCNN, third": (mtcnn_o, True), "DCGAN, generator": (dcgan_generator, False),
    "DCGAN, discriminator": (dcgan_discriminator, True),
}  # fmt: skip
