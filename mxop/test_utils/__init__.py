"""``mx.test_utils``: utilities for tests, with the names and meaning of MXNet 1.x; ``check_op`` is :mod:`mxop.check`."""

from __future__ import annotations

from ..support.missing import hooks

#: In which module each name is; it is imported when the name is first used.
_PLACES = {
    "checks": ("check_numeric_gradient", "check_symbolic_backward", "check_symbolic_forward", "numeric_grad",
               "simple_forward"),
    "compare": ("almost_equal", "assert_allclose", "assert_almost_equal", "assert_almost_equal_ignore_nan",
                "assert_almost_equal_with_err", "checkShapes", "compare_ndarray_tuple", "find_max_violation",
                "locationError", "same", "same_array"),
    "consistency": ("check_consistency", "check_speed"),
    "defaults": ("default_atols", "default_context", "default_dtype", "default_numeric_eps", "default_rtols",
                 "effective_dtype", "get_atol", "get_etol", "get_rtol", "get_tolerance", "get_tols", "list_gpus",
                 "set_default_context"),
    "generate": ("assign_each", "assign_each2", "collapse_sum_like", "create_2d_tensor", "create_vector", "np_reduce",
                 "rand_coord_2d", "rand_ndarray", "rand_shape_2d", "rand_shape_3d", "rand_shape_nd", "random_arrays",
                 "random_sample", "random_uniform_arrays"),
    "running": ("assert_exception", "discard_stderr", "environment", "retry", "use_np", "with_seed"),
    "statistics": ("chi_square_check", "gen_buckets_probs_with_ppf", "mean_check", "var_check", "verify_generator"),
    "matrices": ("get_identity_mat", "get_identity_mat_batch", "new_matrix_with_real_eigvals_2d",
                 "new_matrix_with_real_eigvals_nd", "new_orthonormal_matrix_2d",
                 "new_sym_matrix_with_real_eigvals_2d", "new_sym_matrix_with_real_eigvals_nd"),
    "sparse": ("create_sparse_array", "create_sparse_array_zd", "rand_sparse_ndarray", "shuffle_csr_column_indices"),
    "training": ("DummyIter", "check_gluon_hybridize_consistency", "compare_optimizer", "same_symbol_structure"),
    "surroundings": ("download", "download_model", "get_bz2_data", "get_cifar10", "get_im2rec_path", "get_mnist",
                     "get_mnist_iterator", "get_mnist_pkl", "get_mnist_ubyte", "get_zip_data", "has_tvm_ops",
                     "is_aarch64_run", "is_cd_run", "is_op_runnable"),
}  # fmt: skip
#: What MXNet's module holds besides: tests take ``mx``, ``np`` and others from it with ``import *``, and import no more.
_MODULES = {"mx": "mxop", "np": "numpy", "npt": "numpy.testing", "rnd": "numpy.random"} | {
    n: n for n in ("bz2", "errno", "gzip", "json", "logging", "numbers", "os", "platform", "struct", "sys", "time",
                   "traceback", "zipfile")
}  # fmt: skip
_OBJECTS = {"Context": "mxop.context", "OrderedDict": "collections", "Symbol": "mxop.symbol", "array": "mxop.ndarray",
            "contextmanager": "contextlib", "current_context": "mxop.context"}  # fmt: skip
_FROM = {name: f"{__name__}.{place}" for place, names in _PLACES.items() for name in names}
_FROM |= {"check_op": "mxop.check", **_OBJECTS}
__all__ = [*_FROM, *_MODULES]

__getattr__, __dir__ = hooks(globals(), set(_FROM).difference(_OBJECTS), _MODULES | {n: f"{m}:{n}" for n, m in _FROM.items()})
