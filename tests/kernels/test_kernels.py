"""Kernels against scikit-learn, lengthscales against hand-computed medians, and what counts as a kernel."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.gaussian_process import kernels as skl

from sosbands.kernels import StationaryKernel, learn_features, median_lengthscale, resolve_kernel
from sosbands.kernels.features import LandmarkKernel
from sosbands.kernels.kernels import CallableKernel

SKLEARN = {
    "matern52": lambda ell: skl.Matern(ell, nu=2.5),
    "matern32": lambda ell: skl.Matern(ell, nu=1.5),
    "matern12": lambda ell: skl.Matern(ell, nu=0.5),
    "gaussian": lambda ell: skl.RBF(ell),
}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def shared_letters(X, Y):
    """A string kernel: inner product of the counts of the letters a to d."""
    counts = [np.array([[word.count(letter) for letter in "abcd"] for word in words]) for words in (X, Y)]
    return counts[0].reshape(-1, 4) @ counts[1].reshape(-1, 4).T


# ---- values ------------------------------------------------------------------------------------------------------


def check_against_sklearn(kernel, oracle, rng, d=3):
    X, Y = rng.normal(size=(12, d)), rng.normal(size=(7, d))
    np.testing.assert_allclose(kernel(X, Y), oracle(X, Y), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(kernel(X, X), oracle(X), rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(kernel(X, Y), kernel(Y, X).T)
    np.testing.assert_array_equal(kernel.diag(X), np.diag(kernel(X, X)))


@pytest.mark.parametrize("ell", [(0.3,), (1.0,), (25.0,), (0.5, 2.0, 7.0)])
@pytest.mark.parametrize("name", SKLEARN)
def test_named_kernels_are_those_of_scikit_learn(name, ell, rng):
    check_against_sklearn(StationaryKernel(name, ell), SKLEARN[name](ell[0] if len(ell) == 1 else list(ell)), rng)


def test_the_comparison_rejects_a_wrong_kernel(rng):
    class Halved(StationaryKernel):
        def __call__(self, X, Y):
            return super().__call__(X, Y / 2)

    with pytest.raises(AssertionError):
        check_against_sklearn(Halved("matern52", (1.0,)), skl.Matern(1.0, nu=2.5), rng)
    with pytest.raises(AssertionError):  # sqrt(3) for sqrt(5) and the like
        check_against_sklearn(StationaryKernel("matern32", (1.0,)), skl.Matern(1.0, nu=2.5), rng)


@pytest.mark.parametrize("name", SKLEARN)
@pytest.mark.parametrize("far", [1e4, 1e160, 1e308])
def test_far_points_have_kernel_zero(name, far):
    kernel = StationaryKernel(name, (0.01,))
    np.testing.assert_array_equal(kernel(np.array([[far], [0.0]]), np.zeros((1, 1))), [[0.0], [1.0]])


# ---- what counts as a kernel ----------------------------------------------------------------------------------------


def test_resolve_a_name(rng):
    X = rng.normal(size=(30, 2))
    assert resolve_kernel("gaussian", 2, X) == StationaryKernel("gaussian", (2.0,))
    assert resolve_kernel("matern32", [1, 2.5], X) == StationaryKernel("matern32", (1.0, 2.5))
    assert resolve_kernel("matern52", np.array([0.5, 3.0]), X) == StationaryKernel("matern52", (0.5, 3.0))
    assert resolve_kernel("matern52", "median", X) == StationaryKernel("matern52", (float(np.median(pdist(X))),))


def test_errors_name_argument_value_and_what_is_expected():
    for kernel, lengthscale, message in (
        ("matern52", [1.0, 2.0, 3.0], r"lengthscale has shape \(3,\).*2"),
        ("matern52", [[1.0, 2.0]], r"lengthscale has shape \(1, 2\)"),
        *((each, 2.0, "lengthscale=2.0 has no effect") for each in (skl.RBF(1.0), np.dot, "precomputed")),
    ):
        with pytest.raises(ValueError, match=message):
            resolve_kernel(kernel, lengthscale, np.zeros((4, 2)))
    with pytest.raises(ValueError, match="kernel='rbf'"):
        StationaryKernel("rbf", (1.0,))
    with pytest.raises(ValueError, match="lengthscale"):
        StationaryKernel("gaussian", ())
    with pytest.raises(ValueError, match="2 entries: expected 1 or 3"):
        StationaryKernel("gaussian", (1.0, 2.0))(np.zeros((4, 3)), np.zeros((2, 3)))


def test_scikit_learn_kernels_are_used_as_they_are(rng):
    X, Z = rng.normal(size=(40, 2)), rng.normal(size=(15, 2))
    for kernel in (
        2.0 * skl.RBF([1.0, 3.0]) + skl.Matern(0.7, nu=1.5),
        skl.RBF(1.0) * skl.DotProduct(1.0),
        skl.RationalQuadratic(1.0, 2.0),
    ):
        assert resolve_kernel(kernel, "median", X) is kernel
        features = learn_features(X, kernel)
        np.testing.assert_allclose(features.V.T @ features.V, kernel(X), rtol=0, atol=1e-12 * kernel.diag(X).max())
        # the kernel of the learning points is reproduced at new points too: Phi(z)'Phi(X_i) = k(z, X_i)
        np.testing.assert_allclose(features.transform(Z).T @ features.V, kernel(Z, X), rtol=0, atol=1e-6)


@pytest.mark.parametrize("noise", [1.0, 1e-6])
def test_noise_terms_are_refused(noise, rng):
    X = rng.normal(size=(10, 2))
    with pytest.raises(ValueError, match="WhiteKernel"):
        learn_features(X, skl.RBF(1.0) + skl.WhiteKernel(noise))

    def nugget(A, B):
        return skl.RBF(1.0)(A, B) + noise * (np.eye(len(A)) if A is B else 0.0)

    with pytest.raises(ValueError, match="noise term"):
        learn_features(X, resolve_kernel(nugget, "median", X))


def test_callable_on_strings():
    words = np.array(["abba", "cab", "dad", "a", "bad", "abacab", "abba"], dtype=object)
    features = learn_features(words, resolve_kernel(shared_letters, "median", words))
    assert features.rank == 4  # as many as letters
    new = ["cabbage", "", "xyz"]
    Phi = features.transform(new)
    np.testing.assert_allclose(Phi.T @ features.V, shared_letters(new, words), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(Phi[:, 1:], 0.0)


def test_callables_are_checked(rng):
    X = rng.normal(size=(10, 2))
    with pytest.raises(ValueError, match=r"returned shape \(\): expected \(10, 10\)"):
        CallableKernel(lambda A, B: np.sum(A) * np.sum(B))(X, X)
    with pytest.raises(ValueError, match="returned NaN"):
        CallableKernel(lambda A, B: np.full((len(A), len(B)), np.nan))(X, X)
    with pytest.raises(ValueError, match="symmetric"):
        learn_features(X, CallableKernel(lambda A, B: 1.0 + (A[:, :1] > B[:, 0])))


# ---- median heuristic -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        ([[0.0], [1.0]], 1.0),
        ([[0.0], [1.0], [3.0]], 2.0),  # distances 1, 2, 3
        ([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]], np.sqrt(18.0)),  # 5, 1, sqrt(18)
        ([[0.0], [1.0], [3.0], [7.0]], 3.5),  # 1, 2, 3, 4, 6, 7
        ([[0.0], [0.0], [0.0], [2.0]], 1.0),  # 0, 0, 0, 2, 2, 2: the mean of the two middle ones
        ([[0.0], [0.0], [0.0], [0.0], [5.0]], 5.0),  # six of ten are zero: the median of the others
        ([[4.0, 2.0]], 1.0),
        ([[4.0, 2.0]] * 7, 1.0),
    ],
)
def test_median_by_hand(X, expected):
    assert median_lengthscale(np.array(X)) == pytest.approx(expected, rel=1e-15)


def test_median_of_many_rows_is_a_sample(rng):
    X = rng.normal(size=(100_000, 3))
    value = median_lengthscale(X)
    # the median distance of two standard normal points is sqrt(2) times the median of a chi with 3 degrees
    assert value == pytest.approx(np.sqrt(2 * 2.365974), rel=0.03)
    assert value == median_lengthscale(X)
    assert value != median_lengthscale(X, random_state=1)


def test_sampled_median_is_close_to_the_full_one(rng):
    X = rng.gamma(2.0, size=(1500, 2))
    full = median_lengthscale(X)
    assert full == np.median(pdist(X))
    assert median_lengthscale(X, max_rows=500) == pytest.approx(full, rel=0.1)
    assert median_lengthscale(X, max_rows=1500) == full


@pytest.mark.parametrize("factor", [1e-200, 1e-160, 1.0, 1e160, 1e200, 1e307])
def test_the_median_rule_is_equivariant_over_all_magnitudes(factor):
    X = np.random.default_rng(0).uniform(-1, 1, (30, 2))
    assert median_lengthscale(factor * X) == pytest.approx(factor * median_lengthscale(X), rel=1e-12)


def test_points_whose_scaled_coordinates_overflow_still_have_a_kernel():
    X = np.array([[0.0], [1e300]])
    np.testing.assert_array_equal(StationaryKernel("matern52", (1e-100,))(X, X), np.eye(2))


# ---- against landmarks ----------------------------------------------------------------------------------------------


RNG = np.random.default_rng(0)
LANDMARKS = RNG.normal(3.0, 1.0, (40, 3))
FAR = np.array([[1e300, 0.0, -1e300], [1e8, 1e8, 1e8], [-1e4, 3.0, 3.0]])
PLACES = np.vstack([RNG.normal(3.0, 2.0, (50, 3)), LANDMARKS, FAR])


@pytest.mark.parametrize("lengthscale", [(0.7,), (0.5, 2.0, np.inf), (np.inf,), (1e-3,)])
@pytest.mark.parametrize("name", SKLEARN)
def test_quick_values_against_landmarks_are_those_of_the_kernel(name, lengthscale):
    kernel = StationaryKernel(name, lengthscale)
    quick = LandmarkKernel(kernel, LANDMARKS)
    np.testing.assert_allclose(quick(PLACES), kernel(PLACES, LANDMARKS), rtol=0, atol=4 * quick.rounding)
    assert quick.rounding < 1e-12


def test_other_kernels_and_wide_clouds_of_landmarks_are_left_as_they_are():
    kernel = skl.RBF(0.8)
    assert np.array_equal(LandmarkKernel(kernel, LANDMARKS)(PLACES), kernel(PLACES, LANDMARKS))
    wide, kernel = np.vstack([LANDMARKS, [[1e9, 0, 0]], [[1e9 + 0.5, 0, 0]]]), StationaryKernel("matern52", (1.0,))
    found = LandmarkKernel(kernel, wide)(wide)
    assert np.array_equal(found, kernel(wide, wide))
    assert 0.6 < found[-1, -2] < 0.9  # by products it would be rounding alone
