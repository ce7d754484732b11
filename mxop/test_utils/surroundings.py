"""What machine this is, and data sets: mxop downloads nothing, but reads what lies there."""

from __future__ import annotations

import os
import platform
from typing import Any

import numpy as np

from ..context import current_context
from ..mxnet.base import data_dir
from ..mxnet.runtime import Features
from ..support.errors import MissingFileError, UnsupportedError


def is_cd_run() -> bool:
    """Return whether a job of continuous delivery runs this."""
    return os.environ.get("CD_JOB") == "1"


def is_aarch64_run() -> bool:
    """Return whether the machine is a 64-bit ARM."""
    return platform.machine() == "aarch64"


def has_tvm_ops() -> bool:
    """Return whether operators are made by TVM; none is."""
    return Features().is_enabled("TVM_OP")


def is_op_runnable() -> bool:
    """Return whether operators run on the current device."""
    return not current_context().is_gpu or Features().is_enabled("CUDA")


def get_im2rec_path(home_env: str = "MXNET_HOME") -> str:
    """Return the path of MXNet's program that packs images, below the folder that an environment variable names."""
    path = os.path.join(os.environ.get(home_env, ""), "tools", "im2rec.py")
    if not os.path.isfile(path):
        raise MissingFileError(f"get_im2rec_path: there is no {path!r}; set {home_env} to a folder with MXNet's tools")
    return path


def download(url: str, fname: str | None = None, dirname: str | None = None, overwrite: bool = False, retries: int = 5) -> str:
    """Return the name of a file that is there already.

    Raises
    ------
    UnsupportedError
        When it is not: mxop downloads nothing.
    """
    name = os.path.join(dirname or "", fname or url.split("/")[-1])
    if overwrite or not os.path.exists(name):
        raise UnsupportedError(f"download: mxop downloads nothing; get {url} yourself, and put it at {name!r}")
    return name


def _refused(name: str, what: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(f"{name}: mxop downloads nothing; get {what} yourself")

    function.__name__ = name
    function.__doc__ = f"Raise: MXNet downloads {what} here, mxop downloads nothing."
    return function


download_model = _refused("download_model", "the files of the model, and read them with mx.model.load_checkpoint,")
get_bz2_data = _refused("get_bz2_data", "the file, and unpack it with Python's bz2,")
get_cifar10 = _refused("get_cifar10", "CIFAR-10")
get_mnist_pkl = _refused("get_mnist_pkl", "mnist.pkl.gz")
get_mnist_ubyte = _refused("get_mnist_ubyte", "the files of MNIST")
get_zip_data = _refused("get_zip_data", "the archive, and unpack it with Python's zipfile,")

_MNIST = {"train": "train", "test": "t10k"}


def get_mnist() -> dict[str, np.ndarray]:
    """Return MNIST, whose four ``.gz`` files lie in the current folder or in ``datasets/mnist`` below ``mx.base.data_dir()``.

    Returns
    -------
    dict
        ``train_data`` and ``test_data``, float32 from 0 to 1 of shape ``(n, 1, 28, 28)``; ``train_label``, ``test_label``.
    """
    found = {}
    for part, prefix in _MNIST.items():
        found[f"{part}_label"] = _mnist_file(f"{prefix}-labels-idx1-ubyte.gz").view(np.int8)
        found[f"{part}_data"] = _mnist_file(f"{prefix}-images-idx3-ubyte.gz")[:, None].astype(np.float32) / 255
    return found


def _mnist_file(name: str) -> np.ndarray:
    from ..mxnet.io.files import read_idx

    there = os.path.join(data_dir(), "datasets", "mnist", name)
    path = next((p for p in (name, there) if os.path.exists(p)), None)
    if path is None:
        raise UnsupportedError(f"get_mnist: mxop downloads nothing; get {name} yourself, and put it here or at {there!r}")
    return read_idx(path, "get_mnist")


def get_mnist_iterator(batch_size: int, input_shape: tuple[int, ...], num_parts: int = 1, part_index: int = 0) -> tuple:
    """Return iterators of MNIST's training and test images, see :func:`get_mnist`, of the shape that a net takes.

    Parameters
    ----------
    batch_size : int
    input_shape : tuple of int
        ``(1, 28, 28)`` or ``(784,)``.
    num_parts, part_index : int
        Take one of so many parts.
    """
    from ..mxnet.io import NDArrayIter

    data = {name: array[part_index::num_parts] for name, array in get_mnist().items()}
    return tuple(
        NDArrayIter(data[f"{part}_data"].reshape(-1, *input_shape), data[f"{part}_label"].astype(np.float32), batch_size,
                    shuffle=part == "train")
        for part in _MNIST
    )  # fmt: skip
