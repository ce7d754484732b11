"""Matrices with known properties, for tests of linear algebra."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .. import ndarray as nd


def get_identity_mat(size: int) -> nd.NDArray:
    """Return the identity matrix."""
    return nd.eye(size)


def get_identity_mat_batch(size: int) -> nd.NDArray:
    """Return two identity matrices in one array."""
    return nd.array(np.stack([np.eye(size)] * 2))


def _many(make: Callable[[int], np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    return np.array([make(shape[-1]) for _ in range(math.prod(shape[:-2]))]).reshape(shape)


def new_orthonormal_matrix_2d(n: int) -> np.ndarray:
    """Return a random orthonormal matrix."""
    return np.linalg.qr(np.random.randn(n, n))[0]


def new_matrix_with_real_eigvals_2d(n: int) -> np.ndarray:
    """Return a random matrix whose eigenvalues are real, between -10 and 10."""
    spread = np.random.uniform(0.5, 1.0, n)  # keeps the basis well conditioned
    basis = new_orthonormal_matrix_2d(n) * spread @ new_orthonormal_matrix_2d(n)
    return np.linalg.solve(basis, np.random.uniform(-10.0, 10.0, (n, 1)) * basis)


def new_matrix_with_real_eigvals_nd(shape: tuple[int, ...]) -> np.ndarray:
    """Return matrices of :func:`new_matrix_with_real_eigvals_2d` in an array of a shape."""
    return _many(new_matrix_with_real_eigvals_2d, shape)


def new_sym_matrix_with_real_eigvals_2d(n: int) -> np.ndarray:
    """Return a random symmetric matrix whose eigenvalues are between -10 and 10."""
    q = new_orthonormal_matrix_2d(n)
    return (q.T * np.random.uniform(-10.0, 10.0, n)) @ q


def new_sym_matrix_with_real_eigvals_nd(shape: tuple[int, ...]) -> np.ndarray:
    """Return matrices of :func:`new_sym_matrix_with_real_eigvals_2d` in an array of a shape."""
    return _many(new_sym_matrix_with_real_eigvals_2d, shape)
