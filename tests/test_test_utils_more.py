"""``mx.test_utils``: statistics, matrices, sparse arrays, optimizers side by side, data sets that lie on the disk."""

import gzip
import os
import struct

import numpy as np
import pytest
import scipy.sparse

import mxop as mx
from mxop import test_utils as tu
from mxop.errors import OpValueError


def test_generators_are_held_against_their_distribution():
    random = np.random.RandomState(0)
    buckets, probs = tu.gen_buckets_probs_with_ppf(lambda p: -np.log1p(-p), 5)
    assert buckets[0][0] == 0 and buckets[-1][1] == np.inf and len(buckets) == 5
    tu.verify_generator(lambda n: random.exponential(size=n), buckets, probs, nsamples=2000, success_rate=0.4)
    with pytest.raises(AssertionError, match="not from this distribution"):
        tu.verify_generator(lambda n: random.exponential(1.3, size=n), buckets, probs, nsamples=2000, success_rate=0.4)
    mx.random.seed(1)
    chance, observed, expected = tu.chi_square_check(
        lambda n: mx.nd.random.poisson(2, shape=(n,)), list(range(12)),
        [np.exp(-2) * 2**k / np.prod(range(1, k + 1)) for k in range(12)], 5000,
    )  # fmt: skip
    assert chance > 0.001 and observed.sum() == 5000 and abs(expected.sum() - 5000) < 1
    assert tu.mean_check(lambda n: random.normal(3, 2, n), 3, 2, 1000)
    assert not tu.mean_check(lambda n: random.normal(3, 2, n), 4, 2, 1000)
    assert tu.var_check(lambda n: random.normal(3, 2, n), 2, 1000)
    assert not tu.var_check(lambda n: random.normal(3, 2, n), 3, 1000)
    for wrong in (lambda: tu.chi_square_check(None, [1], [0.5, 0.5]), lambda: tu.gen_buckets_probs_with_ppf(None, 0),
                  lambda: tu.chi_square_check(np.zeros, [(1, 2), (0, 1)], [0.5, 0.5], 3)):  # fmt: skip
        with pytest.raises(OpValueError):
            wrong()


def test_samples_at_the_edges_of_intervals_are_counted_as_mxnet_does():
    def counts(values, buckets):
        n = len(values)
        return tu.chi_square_check(lambda _: np.array(values), buckets, [1 / len(buckets)] * len(buckets), n)[1].tolist()

    assert counts([0, 1, 2, 3], [(0, 2), (2, 4)]) == [2, 2]
    assert counts([0, 1, 2, 3], [(0, 1), (2, 3)]) == [
        1,
        2,
    ]  # 1 is at the end of one and before the next; 3 at the last end
    assert counts([-1, 0, 5, 9, 10], [(0, 5), (7, 10)]) == [2, 2]
    edge = 2**31
    assert counts([edge - 1, edge, edge + 1], [(0, edge), (edge, 2 * edge)]) == [1, 2]  # no float32 is next to it
    assert counts(np.float64([0.1, np.nextafter(0.25, 0), 0.25]), [(0, 0.25), (0.25, 1)]) == [2, 1]
    tu.verify_generator(lambda n: np.arange(n) % 4 + 2**24, [(2**24, 2**24 + 2), (2**24 + 2, 2**24 + 4)], [0.5, 0.5], 1000)
    with pytest.raises(AssertionError, match="not from this distribution"):
        tu.verify_generator(lambda n: np.arange(n) % 4, [(0, 1), (1, 4)], [0.5, 0.5], 1000)


def test_use_np_says_that_there_are_no_such_arrays():
    found = {}
    exec("from mxop.test_utils import *; from mxop.util import _NumpyArrayScope", found)

    @found["use_np"]
    def test(x):
        return x

    @tu.use_np
    class Tests:
        def test(self):
            return 1

    for call in (lambda: test(1), Tests().test, found["_NumpyArrayScope"](True).__enter__):
        with pytest.raises(mx.errors.NotYetError, match=r"mx\.np"):
            call()
    assert test.__name__ == "test"
    with found["_NumpyArrayScope"](False):
        assert not mx.util.is_np_array()
    with pytest.raises(mx.MXNetError, match="use_np decorates functions and classes, not int"):
        tu.use_np(3)


def test_matrices():
    q = tu.new_orthonormal_matrix_2d(4)
    np.testing.assert_allclose(q @ q.T, np.eye(4), atol=1e-12)
    for many, symmetric in (
        (tu.new_matrix_with_real_eigvals_nd, False),
        (tu.new_sym_matrix_with_real_eigvals_nd, True),
    ):
        found = many((2, 3, 4, 4))
        values = np.linalg.eigvals(found)
        assert found.shape == (2, 3, 4, 4) and np.abs(values.imag).max() < 1e-6 and np.abs(values.real).max() < 10.001
        assert np.allclose(found, found.swapaxes(-1, -2)) == symmetric
    assert (tu.get_identity_mat(3).asnumpy() == np.eye(3)).all() and tu.get_identity_mat_batch(3).shape == (2, 3, 3)


def test_small_helpers():
    tu.checkShapes(np.ones(3), np.ones(3))
    with pytest.raises(AssertionError, match="not equal"):
        tu.checkShapes(np.ones(3), np.ones(2))
    text = tu.locationError(np.ones(3), np.zeros(3), (1,), ("a", "b"), maxError=True)
    assert text == "Location of maximum error: (1,), a=1.00000000, b=0.00000000"
    x = mx.sym.Variable("x")
    assert tu.same_symbol_structure(mx.sym.exp(x), mx.sym.exp(mx.sym.Variable("y")))
    assert not tu.same_symbol_structure(mx.sym.exp(x), mx.sym.log(x))
    assert not tu.same_symbol_structure(mx.sym.exp(x), mx.sym.exp(mx.sym.exp(x)))
    batches = tu.DummyIter(mx.io.NDArrayIter(mx.nd.arange(4), batch_size=2))
    assert [next(batches).data[0].asnumpy().tolist() for _ in range(3)] == [[0, 1]] * 3


def test_optimizers_side_by_side():
    for shape, more in (((3, 4), {}), ([(3, 4), (2,)], {"ntensors": 2})):
        pair = mx.optimizer.SGD(momentum=0.9), mx.optimizer.NAG(momentum=0.0)
        tu.compare_optimizer(pair[0], mx.optimizer.ccSGD(momentum=0.9), shape, "float32", **more)
        with pytest.raises((AssertionError, mx.MXNetError, TypeError)):
            tu.compare_optimizer(pair[0], mx.optimizer.SGD(momentum=0.9, learning_rate=1), shape, "float32", **more)


class Net:
    """A network of Gluon's kind, as much of it as a check needs: a scale that is drawn at first, or loaded."""

    def __init__(self, prefix, wrong=None):
        self.name, self.wrong, self.hybrid = f"{prefix}scale", wrong, False

    def initialize(self, init=None):
        self.scale = mx.nd.zeros((1,))
        (init or mx.init.Uniform(1))(mx.init.InitDesc(f"{self.name}_weight"), self.scale)

    def hybridize(self):
        self.hybrid = True

    def collect_params(self):
        return {f"{self.name}_weight": self}

    def data(self):
        return self.scale

    def __call__(self, x, y):
        if self.wrong == "output" and self.hybrid:
            x = x + 1
        if self.wrong == "gradient" and self.hybrid:
            y = y.detach()
        return x * self.scale + y * y


def test_networks_before_and_after_they_are_hybridized():
    data = [mx.nd.array([1, 2]), mx.nd.array([3, 4])]
    tu.check_gluon_hybridize_consistency(Net, data)
    for wrong in ("output", "gradient"):
        with pytest.raises(AssertionError):
            tu.check_gluon_hybridize_consistency(lambda prefix, wrong=wrong: Net(prefix, wrong), data)
    tu.check_gluon_hybridize_consistency(lambda prefix: Net(prefix, "gradient"), data, test_grad=False)
    with pytest.raises(AssertionError):
        tu.check_gluon_hybridize_consistency(Net, data, numpy_func=lambda x, y: x * 5 + y * y)


class _Csr(scipy.sparse.csr_matrix):
    def __init__(self, parts, shape=None, dtype=None, ctx=None):
        data, indices, pointers = parts
        super().__init__((data, indices, pointers), shape=shape, dtype=dtype)


def test_sparse_arrays(monkeypatch):
    monkeypatch.setattr(mx.nd.sparse, "csr_matrix", _Csr, raising=False)
    monkeypatch.setattr(mx.nd.sparse, "row_sparse_array", lambda parts, **more: (parts, more), raising=False)
    made, (pointers, columns, values) = tu.rand_sparse_ndarray((8, 9), "csr", 0.5, data_init=3, shuffle_csr_indices=True)
    assert set(np.unique(made.toarray())) == {0, 3} and made.nnz == len(values) == len(columns) == pointers[-1]
    made, (values, rows) = tu.rand_sparse_ndarray((8, 3), "row_sparse", rsp_indices=[2, 5], modifier_func=lambda v: v + 5)
    assert rows.tolist() == [2, 5] and values.shape == (2, 3) and values.min() >= 5 and made[1]["shape"] == (8, 3)
    assert len(tu.create_sparse_array_zd((4, 2), "row_sparse", 0.9)[0][1]) == 0
    assert tu.create_sparse_array((4, 2), "csr", density=1.0).nnz == 8
    csr = _Csr((np.arange(6.0), np.array([0, 1, 2, 0, 1, 2]), np.array([0, 3, 6])), shape=(2, 3))
    tu.shuffle_csr_column_indices(csr)
    assert sorted(csr.indices[:3]) == sorted(csr.indices[3:]) == [0, 1, 2]
    with pytest.raises(OpValueError, match="stype='dense'"):
        tu.create_sparse_array((4, 2), "dense")


def write_mnist(folder):
    random = np.random.RandomState(0)
    for prefix, n in (("train", 6), ("t10k", 4)):
        with gzip.open(folder / f"{prefix}-labels-idx1-ubyte.gz", "wb") as file:
            file.write(struct.pack(">II", 2049, n) + bytes(range(n)))
        with gzip.open(folder / f"{prefix}-images-idx3-ubyte.gz", "wb") as file:
            file.write(struct.pack(">IIII", 2051, n, 28, 28) + random.bytes(n * 784))


def test_data_sets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    with pytest.raises(NotImplementedError, match="mxop downloads nothing; get train-labels"):
        tu.get_mnist()
    folder = tmp_path / "datasets" / "mnist"
    os.makedirs(folder)
    write_mnist(folder)
    data = tu.get_mnist()
    assert data["train_data"].shape == (6, 1, 28, 28) and data["test_label"].tolist() == [0, 1, 2, 3]
    assert data["train_data"].dtype == np.float32 and 0.9 < data["train_data"].max() <= 1
    train, test = tu.get_mnist_iterator(2, (784,), num_parts=2, part_index=1)
    assert train.provide_data[0].shape == (2, 784) and test.data_list[1].asnumpy().tolist() == [1, 3]
    (tmp_path / "x.zip").write_text("")
    assert tu.download("somewhere/x.zip") == "x.zip"
    for name in (
        "download",
        "download_model",
        "get_bz2_data",
        "get_cifar10",
        "get_mnist_pkl",
        "get_mnist_ubyte",
        "get_zip_data",
    ):
        with pytest.raises(mx.MXNetError, match="mxop downloads nothing"):
            getattr(tu, name)("somewhere/y.zip")


def test_surroundings(tmp_path, monkeypatch):
    monkeypatch.delenv("CD_JOB", raising=False)
    assert not tu.is_cd_run() and not tu.has_tvm_ops() and tu.is_op_runnable() and tu.is_aarch64_run() in (True, False)
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="im2rec"):
        tu.get_im2rec_path()
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "im2rec.py").write_text("")
    assert tu.get_im2rec_path() == str(tmp_path / "tools" / "im2rec.py")


def test_all_names_are_listed_and_there():
    own = set(tu.__all__) - {*tu._MODULES, *tu._OBJECTS}
    assert all(callable(getattr(tu, name)) for name in own) and own <= set(dir(tu))


def test_what_tests_take_from_here_without_importing_it():
    found = {}
    exec("from mxop.test_utils import *", found)
    assert found["mx"] is mx and found["np"] is np and found["rnd"] is np.random and found["os"].path and found["time"].time
    assert found["current_context"]() == found["Context"]("cpu") and found["array"] is mx.nd.array
    assert "np" not in dir(tu)
