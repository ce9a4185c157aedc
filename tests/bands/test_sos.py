"""SoSFunction: the values of Phi'A Phi, never negative, in blocks of any size."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sosbands import SoSFunction
from sosbands.kernels import StationaryKernel, learn_features
from sosbands.kernels import features as features_module
from sosbands.kernels.kernels import CallableKernel, PrecomputedKernel

X = np.random.default_rng(0).uniform(-1, 1, (25, 2))
FEATURES = learn_features(X, StationaryKernel("matern52", (0.7,)), rank=12)
GRID = np.stack(np.meshgrid(np.linspace(-3, 3, 19), np.linspace(-3, 3, 19)), axis=-1).reshape(-1, 2)


def factor(rank, seed=1):
    return np.random.default_rng(seed).normal(size=(FEATURES.rank, rank))


def check_function(f, features, B, ridge, points):
    """Values one point at a time from the definition; the operator; the sign."""
    A = B @ B.T + ridge * np.eye(len(B))
    k = features.kernel(points, features.landmarks)
    expected = []
    for row in k:
        phi = np.linalg.solve(features.L, row)
        expected.append(phi @ A @ phi)
    expected = np.array(expected)
    values = f(points)
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-12 * max(1.0, np.abs(A).max()))
    np.testing.assert_allclose(f.operator, A, rtol=1e-14, atol=0)
    assert values.min() >= 0
    assert f.rank == B.shape[1]


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("rank", [0, 1, 3, 12, 20])
def test_values(rank, ridge):
    B = factor(rank)
    check_function(SoSFunction(FEATURES, B, ridge), FEATURES, B, ridge, GRID)


def test_the_contract_rejects_broken_functions():
    class WithoutRidge(SoSFunction):
        def _values(self, Phi):
            return np.square(self.B.T @ Phi).sum(axis=0)

    class NotSquared(SoSFunction):
        def _values(self, Phi):
            return (self.B.T @ Phi).sum(axis=0)

    B = factor(2)
    for broken in (WithoutRidge, NotSquared):
        with pytest.raises(AssertionError):
            check_function(broken(FEATURES, B, 0.3), FEATURES, B, 0.3, GRID)


def test_values_at_the_learning_points_are_those_that_were_constrained():
    B = factor(4)
    np.testing.assert_allclose(
        SoSFunction(FEATURES, B)(X), np.diag(FEATURES.V.T @ B @ B.T @ FEATURES.V), rtol=0, atol=1e-11
    )


finite = st.floats(-1e3, 1e3, allow_nan=False)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    B=st.integers(0, 5).flatmap(lambda rank: arrays(float, (FEATURES.rank, rank), elements=finite)),
    ridge=st.floats(0, 1e3),
    points=st.integers(0, 6).flatmap(lambda n: arrays(float, (n, 2), elements=st.floats(-1e6, 1e6))),
)
def test_never_negative_and_linear_in_the_operator(B, ridge, points):
    f = SoSFunction(FEATURES, B, ridge)
    values = f(points)
    assert values.shape == (len(points),)
    assert np.all(values >= 0)
    assert np.linalg.eigvalsh(f.operator).min() >= -1e-12 * max(1.0, np.trace(f.operator))
    parts = SoSFunction(FEATURES, B)(points) + SoSFunction(FEATURES, B[:, :0], ridge)(points)
    np.testing.assert_allclose(values, parts, rtol=1e-12, atol=0)
    np.testing.assert_allclose(SoSFunction(FEATURES, 2 * B, 4 * ridge)(points), 4 * values, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("block_values", [1, 5, 100, 1000, 10**9])
def test_blocks_of_any_size_give_the_same_values(block_values, monkeypatch):
    f = SoSFunction(FEATURES, factor(3), 0.1)
    expected = f(GRID)
    monkeypatch.setattr(features_module, "BLOCK_VALUES", block_values)
    np.testing.assert_allclose(f(GRID), expected, rtol=1e-10, atol=1e-13)


def check_memory(f, points):
    tracemalloc.start()
    try:
        f(points)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * 8 * len(points) + 3e6  # the values (in parts, and joined) and a few blocks of 0.2 MB


@pytest.mark.parametrize(("d", "rank", "dtype"), [(1, "exact", float), (40, "exact", np.float32), (40, 2, np.float32)])
@pytest.mark.filterwarnings("ignore::sosbands.exceptions.LowRankWarning")
def test_memory_does_not_grow_with_the_number_of_points(d, rank, dtype, monkeypatch):
    rng = np.random.default_rng(2)
    features = learn_features(rng.uniform(-1, 1, (40, d)), StationaryKernel("matern52", (0.5,)), rank)
    f = SoSFunction(features, np.ones((features.rank, 2)))
    points = rng.uniform(size=(30_000, d)).astype(dtype)
    monkeypatch.setattr(features_module, "BLOCK_VALUES", 25_000)
    check_memory(f, points)  # all points as double precision, or their kernel matrix, would take 9.6 MB
    monkeypatch.setattr(features_module, "BLOCK_VALUES", 10**9)  # everything in one block must be rejected
    with pytest.raises(AssertionError):
        check_memory(f, points)


def test_precomputed_and_string_kernels():
    K = FEATURES.kernel(X, X)
    features = learn_features(K, PrecomputedKernel(), rank=12)
    B = factor(3)
    cross = FEATURES.kernel(GRID, X)
    np.testing.assert_allclose(SoSFunction(features, B)(cross), SoSFunction(FEATURES, B)(GRID), rtol=1e-9, atol=1e-12)
    assert SoSFunction(features, B)(cross[:0]).shape == (0,)
    with pytest.raises(ValueError, match=r"expected \(rows, 25\), kernel values against the learning points"):
        SoSFunction(features, B)(cross[:, :12])

    words = np.array(["ab", "b", "abc"], dtype=object)
    lengths = learn_features(words, CallableKernel(lambda A, B: np.outer([len(a) for a in A], [len(b) for b in B])))
    # one feature: Phi(x) = the length, up to sign
    np.testing.assert_allclose(SoSFunction(lengths, np.array([[2.0]]))(["", "a", "abcd"]), [0.0, 4.0, 64.0], rtol=1e-14)


def test_bad_factors_and_ridges_are_named():
    for B in (np.zeros(12), np.zeros((11, 2)), np.zeros((2, 12))):
        with pytest.raises(ValueError, match=r"B has shape .*: expected 12 rows"):
            SoSFunction(FEATURES, B)
    for ridge in (-1e-9, np.nan, np.inf):
        with pytest.raises(ValueError, match="ridge=.*>= 0"):
            SoSFunction(FEATURES, factor(1), ridge)
