"""Networks quantized: the graphs, parameters, ranges and results that MXNet 1.9.1 gives for the same networks."""

import json

import numpy as np
import pytest

import mxop as mx
from mxop.contrib import quantization as q

S = mx.sym
DATA = S.Variable("data")


def dense(x, n, name, **params):
    return S.FullyConnected(x, num_hidden=n, name=name, **params)


def relu(x, name):
    return S.Activation(x, act_type="relu", name=name)


def conv(x, n, name):
    return S.Convolution(x, num_filter=n, kernel=(3, 3), pad=(1, 1), name=name, no_bias=True)


def mlp():
    return S.SoftmaxOutput(dense(relu(dense(DATA, 16, "fc1"), "relu1"), 5, "fc2"), name="softmax"), (4, 10)


def embedding():
    x = S.Flatten(S.Embedding(DATA, input_dim=20, output_dim=6, name="emb"), name="flat")
    return dense(relu(dense(x, 8, "fc1"), "relu1"), 3, "fc2"), (4, 5)


def product():
    return dense(S.elemwise_mul(dense(DATA, 8, "fa"), dense(DATA, 8, "fb"), name="mul"), 4, "fc"), (4, 6)


def split():
    x = S.SliceChannel(dense(DATA, 8, "fc1"), num_outputs=2, name="split")
    return dense(S.Concat(x[0], x[1], relu(x[0], "r"), name="cat"), 3, "fc2"), (4, 6)


def residual():
    x = relu(S.BatchNorm(conv(DATA, 8, "conv0"), name="bn0", fix_gamma=False), "relu0")
    y = S.BatchNorm(conv(x, 8, "conv1"), name="bn1", fix_gamma=False)
    x = S.Pooling(
        relu(S.elemwise_add(x, y, name="plus"), "relu1"), global_pool=True, kernel=(1, 1), pool_type="avg", name="pool"
    )
    return S.softmax(dense(S.Flatten(x, name="flat"), 5, "fc"), name="softmax"), (2, 3, 8, 8)


def two_layers():
    x = S.Flatten(relu(dense(DATA, 6, "fc1"), "r1"), name="fl")
    return S.exp(S.Concat(x, relu(dense(x, 6, "fc2"), "r2"), name="cat"), name="e"), (4, 6)


def made(network):
    """Return a network, its parameters, and three batches of data; no sum of two products exceeds 16 bits, see below."""
    symbol, shape = network()
    shapes, _, states = symbol.infer_shape(data=shape)
    rng = np.random.RandomState(0)
    args = {n: rng.uniform(-0.5, 0.5, s).astype("f4") for n, s in zip(symbol.list_arguments(), shapes, strict=True)
            if n not in ("data", "softmax_label")}  # fmt: skip
    aux = {n: rng.uniform(0.3, 1.5, s) if "var" in n else rng.uniform(-0.2, 0.2, s)
           for n, s in zip(symbol.list_auxiliary_states(), states, strict=True)}  # fmt: skip
    for name, values in args.items():
        if name.endswith("weight") and values.ndim == 2 and "emb" not in name:
            values *= 0.4
            values[0, 0], values[0, 1] = 0.5, 0
        if "gamma" in name:
            values[:] = np.abs(values) + 0.5
    rng = np.random.RandomState(1)
    size = (3 * shape[0], *shape[1:])
    data = rng.randint(0, 20, size).astype("f4") if network is embedding else rng.uniform(-1, 1, size).astype("f4")
    return symbol, *({n: mx.nd.array(v) for n, v in d.items()} for d in (args, aux)), data, shape[0]


def batches(data, size):
    return mx.io.NDArrayIter(data, batch_size=size)


def run(symbol, args, aux, data, size):
    arrays = {**args, "data": mx.nd.array(data[:size]), "softmax_label": mx.nd.zeros((size,))}
    executor = symbol.bind(mx.cpu(), {n: arrays[n] for n in symbol.list_arguments()}, aux_states=aux, grad_req="null")
    return executor.forward()[0].asnumpy()


def quantized(network, **params):
    symbol, args, aux, data, size = made(network)
    if params["calib_mode"] != "none":
        params["calib_data"] = batches(data, size)
    found = q.quantize_model(symbol, args, aux, **params)
    return found, data, size, run(*found, data, size)


def names(symbol, parameters=False):
    nodes = json.loads(symbol.tojson())["nodes"]
    return " ".join(n["name"] for n in nodes if (n["op"] == "null") == parameters)


# ---- graphs ----------------------------------------------------------------------------------------------------------
BEFORE_SOFTMAX = "fc2_dequantize softmax"
FULL = {
    mlp: "data_quantize quantized_fc1 requantize_fc1 quantized_relu1 quantized_fc2 requantize_fc2 fc2_dequantize softmax",
    embedding: "quantized_emb quantized_flat quantized_fc1 requantize_fc1 quantized_relu1 quantized_fc2 requantize_fc2 "
               "fc2_dequantize",
    product: "data_quantize quantized_fa requantize_fa quantized_fb requantize_fb quantized_mul requantize_mul quantized_fc "
             "requantize_fc fc_dequantize",
    split: "data_quantize quantized_fc1 requantize_fc1 fc1_dequantize split split_output0_quantize split_output1_quantize "
           "quantized_r quantized_cat quantized_fc2 requantize_fc2 fc2_dequantize",
    residual: "data_quantize quantized_conv0 requantize_conv0 quantized_bn0 quantized_relu0 quantized_conv1 requantize_conv1 "
              "quantized_bn1 quantized_plus requantize_plus quantized_relu1 quantized_pool quantized_flat quantized_fc "
              "requantize_fc fc_dequantize softmax",
    two_layers: "data_quantize quantized_fc1 requantize_fc1 quantized_r1 quantized_fl quantized_fc2 requantize_fc2 "
                "quantized_r2 quantized_cat cat_dequantize e",
}  # fmt: skip
SMART = {  # MXNet calls the second node of embedding's flat_0_quantize: it has no name for that operator's output
    embedding: "emb flat flat_output_quantize quantized_fc1 requantize_fc1 quantized_relu1 quantized_fc2 requantize_fc2 "
               "fc2_dequantize",
    split: "data_quantize quantized_fc1 requantize_fc1 fc1_dequantize split r cat cat_output_quantize quantized_fc2 "
           "requantize_fc2 fc2_dequantize",
    two_layers: "data_quantize quantized_fc1 requantize_fc1 quantized_r1 quantized_fl fl_dequantize quantized_fc2 "
                "requantize_fc2 fc2_dequantize r2 cat e",
}  # fmt: skip


def graph(network, mode="full", **params):
    symbol, args, aux, *_ = made(network)
    return q.quantize_graph(symbol, args, aux, calib_mode="none", quantize_mode=mode, **params)


@pytest.mark.parametrize("network", FULL)
def test_nodes_are_those_of_mxnet(network):
    assert names(graph(network)[0]) == FULL[network]
    assert names(graph(network, "smart")[0]) == SMART.get(network, FULL[network])


def test_parameters_are_those_of_mxnet():
    symbol, args, aux, collector = graph(mlp)
    assert collector is None and aux == {}
    assert names(symbol, parameters=True) == (
        "data fc1_weight_quantize fc1_bias_quantize fc1_weight_quantize_min fc1_weight_quantize_max fc1_bias_quantize_min "
        "fc1_bias_quantize_max fc2_weight_quantize fc2_bias_quantize fc2_weight_quantize_min fc2_weight_quantize_max "
        "fc2_bias_quantize_min fc2_bias_quantize_max softmax_label"
    )
    assert sorted(args) == sorted(set(symbol.list_arguments()) - {"data", "softmax_label"})
    assert args["fc1_weight_quantize"].asnumpy()[0].tolist() == [127, 0, 10, 5, -8, 15, -6, 40, 47, -12]
    assert args["fc2_bias_quantize"].asnumpy().tolist() == [14, 23, 127, -57, -71]
    limits = [args[f"fc2_bias_quantize_{end}"].item() for end in ("min", "max")]
    np.testing.assert_allclose(limits, [-0.46193638, 0.46193638], rtol=1e-6)
    _, args, aux, _ = graph(residual)
    assert {"bn0_gamma", "bn1_beta"} <= set(args) and set(aux) == {f"bn{k}_moving_{v}" for k in (0, 1) for v in ("mean", "var")}


def test_what_is_excluded_stays():
    without = graph(mlp, excluded_sym_names=["fc1"])[0]
    assert names(without) == "fc1 fc1_output_quantize quantized_relu1 quantized_fc2 requantize_fc2 " + BEFORE_SOFTMAX
    without = graph(mlp, excluded_op_names=["Activation"])[0]
    assert names(without) == ("data_quantize quantized_fc1 requantize_fc1 fc1_dequantize relu1 relu1_output_quantize "
                              "quantized_fc2 requantize_fc2 " + BEFORE_SOFTMAX)  # fmt: skip


def test_what_has_no_counterpart_stays():
    pooled = S.Pooling(S.Activation(DATA, act_type="tanh", name="t"), kernel=(2, 2), pool_type="sum", name="p")
    normed = S.BatchNorm(pooled, axis=2, name="b")
    assert names(q.quantize_graph(normed, {}, {}, calib_mode="none")[0]) == "t p b"
    several = S.Group([relu(DATA, "r"), S.exp(relu(DATA, "r"), name="e"), DATA])
    found = q.quantize_graph(several, {}, {}, calib_mode="none")[0]
    assert found.list_outputs() == ["r_dequantize_output", "e_output", "data"]
    x = mx.nd.array([[1.0, -2.0]])
    for result, expected in zip(found.eval(data=x), ([[1, 0]], [[2.718, 1]], [[1, -2]]), strict=True):
        np.testing.assert_allclose(result.asnumpy(), expected, atol=0.02)


def test_a_parameter_of_any_name_is_converted():
    symbol = S.elemwise_add(DATA, S.Variable("offset"), name="add")
    found, args, _, _ = q.quantize_graph(symbol, {"offset": mx.nd.array([1.0, -0.5])}, {}, calib_mode="none")
    assert sorted(args) == ["offset_quantize", "offset_quantize_max", "offset_quantize_min"]
    np.testing.assert_allclose(found.eval(data=mx.nd.array([1.0, 2.0]), **args)[0].asnumpy(), [2, 1.5], atol=0.03)


# ---- ranges and results ----------------------------------------------------------------------------------------------
RANGES = {
    mlp: {"data_quantize": (-0.999771, 0.994646), "requantize_fc1": (-1.097536, 0.854755),
          "requantize_fc2": (-0.390847, 0.527320)},
    embedding: {"requantize_fc1": (-0.735747, 0.827254), "requantize_fc2": (-0.453061, 0.666565)},
    product: {"data_quantize": (-0.999771, 0.977722), "requantize_fa": (-0.643988, 0.810987),
              "requantize_fb": (-0.723750, 0.776060), "requantize_mul": (-0.263092, 0.387211),
              "requantize_fc": (-0.388165, 0.452175)},
    split: {"data_quantize": (-0.999771, 0.977722), "requantize_fc1": (-0.643988, 0.810987),
            "split_output0_quantize": (-0.580642, 0.747039), "split_output1_quantize": (-0.643988, 0.810987),
            "requantize_fc2": (-0.633900, 0.463004)},
    residual: {"data_quantize": (-0.999771, 0.994970), "requantize_conv0": (-3.153942, 3.161971),
               "quantized_bn0": (-2.254006, 2.653845), "requantize_conv1": (-4.221471, 3.195428),
               "quantized_bn1": (-4.255632, 2.442075), "requantize_plus": (-4.255632, 3.267648),
               "requantize_fc": (-0.383357, 0.683026)},
    two_layers: {"data_quantize": (-0.999771, 0.977722), "requantize_fc1": (-0.346809, 1.120591),
                 "requantize_fc2": (-0.509567, 0.342971)},
}  # fmt: skip


def ranges(symbol):
    nodes = json.loads(symbol.tojson())["nodes"]
    found = {n["name"]: n.get("attrs", {}) for n in nodes}
    return {n: (float(a["min_calib_range"]), float(a["max_calib_range"])) for n, a in found.items() if "min_calib_range" in a}


def same_ranges(found, expected, tolerance=2e-6):
    assert list(found) == list(expected)
    np.testing.assert_allclose(list(found.values()), list(expected.values()), atol=tolerance, rtol=0)


#: The first row of the results, without calibration and with that by extrema.
RESULTS = {
    mlp: ([0.195607, 0.195607, 0.3014676, 0.1755579, 0.1317604], [0.1957787, 0.1957787, 0.3010007, 0.1758186, 0.1316233]),
    embedding: ([-0.2408678, 0.5743772, -0.3474056], [-0.2404862, 0.5750757, -0.3502734]),
    product: ([0.2746462, 0.1946859, -0.3893718, 0.410231], [0.2730782, 0.1950559, -0.3865653, 0.4113906]),
    split: ([-0.4856108, 0.4005038, -0.2152708], [-0.4872329, 0.4027129, -0.2137859]),
    two_layers: ([1, 1, 2.179784, 1, 1.006155, 1.10994, 1, 1, 1, 1, 1, 1.278165],
                 [1, 1, 2.186313, 1, 1.008828, 1.11123, 1, 1, 1, 1, 1, 1.279015]),
}  # fmt: skip


@pytest.mark.parametrize("network", RESULTS)
def test_results_are_those_of_mxnet(network):
    """MXNet's processors without VNNI cut sums of two products at 16 bits; these networks have none so large."""
    for mode, expected in zip(("none", "naive"), RESULTS[network], strict=True):
        for dtype in ("int8", "auto"):
            (symbol, _, _), *_, result = quantized(network, calib_mode=mode, quantized_dtype=dtype, quantize_mode="full")
            np.testing.assert_allclose(result[0], expected, rtol=2e-6)
            same_ranges(ranges(symbol), {} if mode == "none" else RANGES[network])


def test_a_network_of_images_is_near_that_of_float32():
    """MXNet's CPU has no convolution of int8 data."""
    (symbol, *_), data, size, result = quantized(residual, calib_mode="naive", quantized_dtype="int8")
    same_ranges(ranges(symbol), RANGES[residual])
    wanted, args, aux, *_ = made(residual)
    expected = run(wanted, args, aux, data, size)
    assert abs(result - expected).max() < 0.01 < expected.std()
    unsigned = quantized(residual, calib_mode="naive", quantized_dtype="auto")[-1]
    assert abs(unsigned - expected).max() < 0.01


ENTROPY = {
    mlp: {"data_quantize": 0.994773, "requantize_fc1": 0.884092, "requantize_fc2": 0.513216},
    two_layers: {"data_quantize": 0.968282, "requantize_fc1": 0.778383, "requantize_fc2": 0.506596},
}


@pytest.mark.parametrize("network", ENTROPY)
def test_ranges_of_least_loss_are_those_of_mxnet(network):
    """Up to one of 8001 bins: MXNet computes losses in float32."""
    (symbol, *_), *_ = quantized(network, calib_mode="entropy", quantized_dtype="auto", quantize_mode="full")
    same_ranges(ranges(symbol), {n: (-v, v) for n, v in ENTROPY[network].items()}, tolerance=2.1 * 1.1 / 8001)


def test_positive_values_have_unsigned_levels():
    symbol = relu(DATA, "r")
    data = mx.io.NDArrayIter(np.random.RandomState(3).uniform(0, 1, (8, 50)), batch_size=4)
    for mode in ("naive", "entropy"):
        data.reset()
        found = q.quantize_model(symbol, {}, {}, calib_mode=mode, calib_data=data, quantized_dtype="auto", quantize_mode="full")
        low, high = ranges(found[0])["data_quantize"]
        assert 0 <= low < 0.01 and 0.5 < high <= 1.001
        assert found[0].get_internals()["data_quantize_output0"].infer_type(data="float32")[1] == [np.uint8]


def test_so_many_examples_are_used():
    found = quantized(mlp, calib_mode="naive", num_calib_examples=5)[0][0]  # two batches of four
    expected = {"data_quantize": (-0.999771, 0.977722), "requantize_fc1": (-1.097536, 0.774045),
                "requantize_fc2": (-0.390847, 0.527320)}  # fmt: skip
    same_ranges(ranges(found), expected)


class Fixed:
    """A collector of one's own."""

    def __init__(self):
        self.min_max_dict, self.seen = {}, []

    def collect(self, name, arr):
        self.seen.append(name)
        self.min_max_dict[name] = (-2.0, 3.0)


@pytest.mark.parametrize("mode", ["naive", "customize"])
def test_graph_and_calibration_in_two_steps(mode):
    symbol, args, aux, data, size = made(mlp)
    own = Fixed()
    qsym, _, _, collector = q.quantize_graph(symbol, args, aux, calib_mode=mode, LayerOutputCollector=own)
    assert (collector is own) == (mode == "customize")
    executor = symbol.simple_bind(mx.cpu(), grad_req="null", data=(size, 10))
    executor.copy_params_from(args)
    executor.set_monitor_callback(collector.collect, monitor_all=True)
    for batch in batches(data, size):
        executor.forward(data=batch.data[0])
    found, qargs, _ = q.calib_graph(mx.sym.load_json(qsym.tojson()), args, aux, collector, calib_mode=mode)
    expected = RANGES[mlp] if mode == "naive" else dict.fromkeys(RANGES[mlp], (-2.0, 3.0))
    same_ranges(ranges(found), expected)
    assert "fc1_output" in own.seen or mode == "naive"
    assert run(found, qargs, {}, data, size).shape == (4, 5)


def test_a_quantized_network_is_saved_and_loaded(tmp_path):
    (symbol, args, aux), data, size, result = quantized(residual, calib_mode="naive")
    mx.model.save_checkpoint(str(tmp_path / "net"), 3, symbol, args, aux)
    loaded = mx.model.load_checkpoint(str(tmp_path / "net"), 3)
    assert loaded[1]["fc_weight_quantize"].dtype == np.int8
    np.testing.assert_array_equal(run(*loaded, data, size), result)


def test_histograms_grow_by_whole_bins():
    first = (np.array([1, 0, 2]), np.array([-3.0, -1, 1, 3]), -2.0, 3.0, 3.0)
    counts, edges, low, high, limit = q.combine_histogram(first, np.array([0.5, -2.5]), -2.5, 0.5, 2.5)
    assert (counts.tolist(), edges is first[1], low, high, limit) == ([2, 1, 2], True, -2.5, 3.0, 3.0)
    counts, edges, low, high, limit = q.combine_histogram(first, np.array([4.5, 0.1]), 0.1, 4.5, 4.5)
    assert (counts.tolist(), edges.tolist(), low, high, limit) == ([0, 1, 1, 2, 1], [-5, -3, -1, 1, 3, 5], -2, 4.5, 5)


def _call(function=q.quantize_model, network=mlp, **params):
    symbol, args, aux, data, size = made(network)
    given = {"sym": symbol, "arg_params": args, "aux_params": aux, "calib_mode": "naive", "calib_data": batches(data, size)}
    if function is q.quantize_graph:
        del given["calib_data"]
    return function(**given | params)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"calib_data": None}, "calib_data=None; expected a DataIter"),
        ({"calib_mode": "best"}, "calib_mode='best'; expected one of 'none', 'naive', 'entropy'"),
        ({"calib_mode": "customize"}, "expected 'none', 'naive' or 'entropy', or quantize_graph"),
        ({"quantized_dtype": "int4"}, "quantized_dtype='int4'; expected one of 'int8', 'uint8', 'auto'"),
        ({"quantize_mode": "some"}, "quantize_mode='some'"),
        ({"quantize_granularity": "row-wise"}, "quantize_granularity='row-wise'"),
        ({"excluded_sym_names": ["fc9"]}, "the network has no fc9"),
        ({"excluded_sym_names": "fc1"}, "excluded_sym_names='fc1'; expected a list of names"),
        ({"excluded_op_names": ["Conv"]}, "Conv"),
        ({"ctx": [mx.cpu()]}, "expected one Context"),
        ({"sym": "net.json"}, "sym is 'net.json'; expected a Symbol"),
        ({"arg_params": None}, "arg_params is None; expected a dict"),
        ({"arg_params": {}}, "fc1_weight, fc1_bias, fc2_weight, fc2_bias of the network are neither in arg_params"),
        ({"data_names": ("x",)}, "calib_data gives data, data_names="),
        ({"function": q.quantize_graph, "calib_mode": "customize"}, "LayerOutputCollector=None; expected an object"),
    ],
)
def test_bad_input_is_refused(params, match):
    with pytest.raises(mx.MXNetError, match=match):
        _call(**params)


def test_an_iterator_that_is_used_up_is_refused():
    symbol, args, aux, data, size = made(mlp)
    used = batches(data, size)
    list(used)
    with pytest.raises(mx.MXNetError, match="calib_data has no batches"):
        q.quantize_model(symbol, args, aux, calib_mode="naive", calib_data=used)


def test_only_a_filled_collector_calibrates():
    symbol, args, aux, _ = graph(mlp)
    for mode, match in (("naive", "expected one with a dict min_max_dict"), ("none", "calib_mode='none'")):
        with pytest.raises(mx.MXNetError, match=match):
            q.calib_graph(symbol, args, aux, None, calib_mode=mode)
    with pytest.raises(mx.MXNetError, match="expected the CPU"):
        q.quantize_model_mkldnn(*made(mlp)[:3], ctx=mx.gpu(0))
