"""Features: K = V'V without jitter, Phi(X_i) = column i of V, low rank, and matrices that are no kernels."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import cholesky
from scipy.spatial.distance import cdist

from sosbands.exceptions import InfeasibleProblemError, LowRankWarning, NotPositiveSemidefiniteError
from sosbands.kernels import StationaryKernel, learn_features, resolve_kernel
from sosbands.kernels import features as features_module
from sosbands.kernels.features import dense_pivoted_cholesky, greedy_pivoted_cholesky
from sosbands.kernels.kernels import CallableKernel, PrecomputedKernel

PHI_TOL = 1e-7  # the largest difference of Phi(X_i) and V measured on smooth, numerically singular kernels is 1e-8
EPS = np.finfo(float).eps


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def uniform(rng, n, d):
    return rng.uniform(-1, 1, (n, d))


# ---- exact features -------------------------------------------------------------------------------------------------


def check_features(features, X, K):
    """What the learning problem relies on: the constrained values are the deployed ones."""
    n, scale = len(K), np.abs(K).max()
    np.testing.assert_allclose(features.V.T @ features.V, K, rtol=0, atol=2 * n * EPS * scale)
    np.testing.assert_allclose(features.transform(X), features.V, rtol=0, atol=PHI_TOL * np.sqrt(scale))
    np.testing.assert_array_equal(np.triu(features.L, 1), 0.0)
    assert np.diag(features.L).min() > 0
    assert features.trace_left_out <= 2 * n * EPS
    assert features.smallest_ratio == pytest.approx(1.0, abs=2 * n * EPS)


def repeated(rng, times):
    return np.repeat(uniform(rng, 40, 2), times, axis=0)


POINTS = {  # that are easy to get wrong
    "one": lambda rng: uniform(rng, 1, 2),
    "two": lambda rng: uniform(rng, 2, 1),
    "two equal": lambda _: np.ones((2, 3)),
    "all equal": lambda _: np.full((30, 2), 0.1),
    "n=250, d=1": lambda rng: uniform(rng, 250, 1),
    "n=150, d=5": lambda rng: uniform(rng, 150, 5),
    "repeated": lambda rng: repeated(rng, 3),
    "nearly repeated": lambda rng: repeated(rng, 2) + 1e-9 * rng.normal(size=(80, 2)),
    "a constant feature": lambda rng: np.column_stack([uniform(rng, 60, 1), np.full(60, 3.0)]),
}


@pytest.mark.parametrize("ell", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("name", ["matern52", "matern32", "matern12", "gaussian"])
@pytest.mark.parametrize("case", POINTS)
def test_exact_features(case, name, ell, rng):
    X, kernel = POINTS[case](rng), StationaryKernel(name, (ell,))
    check_features(learn_features(X, kernel), X, kernel(X, X))


def test_numerical_rank(rng):
    assert learn_features(repeated(rng, 3), StationaryKernel("matern12", (0.5,))).rank == 40
    assert learn_features(np.ones((9, 2)), StationaryKernel("matern52", (0.5,))).rank == 1
    smooth = learn_features(uniform(rng, 250, 1), StationaryKernel("gaussian", (1.0,)))
    assert 8 <= smooth.rank <= 20
    assert np.square(np.diag(smooth.L)).min() > 250 * EPS


def test_the_contract_rejects_jitter_and_wrong_pivots(rng):
    X, kernel = uniform(rng, 200, 1), StationaryKernel("matern52", (1.0,))
    K = kernel(X, X)
    features = learn_features(X, kernel)
    L = cholesky(K + 1e-8 * np.eye(len(X)), lower=True)
    jittered = replace(features, V=L.T, L=L, landmarks=X)
    with pytest.raises(AssertionError):
        check_features(jittered, X, K)
    with pytest.raises(AssertionError):
        check_features(replace(features, landmarks=features.landmarks[::-1]), X, K)
    with pytest.raises(AssertionError):
        check_features(learn_features(X, kernel, rank=20), X, K)


def test_learning_points_are_not_written(rng):
    X = uniform(rng, 20, 2)
    K = np.asfortranarray(StationaryKernel("matern52", (1.0,))(X, X))
    before = K.copy()
    features = learn_features(K, PrecomputedKernel())
    features.transform(K)
    np.testing.assert_array_equal(K, before)


# ---- the two factorisations -----------------------------------------------------------------------------------------


def greedy(K, floor, trace_left=0.0, max_rank=None, block=1):
    return greedy_pivoted_cholesky(
        lambda I, J: K[I] if J is None else K[np.ix_(I, J)],
        np.diag(K).copy(),
        floor=floor,
        trace_left=trace_left,
        max_rank=max_rank or len(K),
        block=block,
    )


def check_factorisation(V, pivots, K, floor):
    S = K - V.T @ V
    assert np.diag(S).max() <= 2 * floor
    assert np.abs(S).max() <= 2 * floor
    L = V[:, pivots].T
    np.testing.assert_array_equal(np.triu(L, 1), 0.0)
    # greedy: each pivot is the largest remaining diagonal entry
    left = np.diag(K)[None, :] - np.vstack([np.zeros(len(K)), np.cumsum(np.square(V), axis=0)[:-1]])
    np.testing.assert_allclose(left[np.arange(len(V)), pivots], left.max(axis=1), rtol=0, atol=floor)


@pytest.mark.parametrize(
    ("n", "d", "name"), [(3, 1, "gaussian"), (150, 2, "matern32"), (150, 1, "matern52"), (200, 3, "gaussian")]
)
def test_both_factorisations_agree(n, d, name, rng):
    X = uniform(rng, n, d)
    scale = rng.uniform(0.5, 2, n)  # different diagonal entries: no ties
    K = scale[:, None] * StationaryKernel(name, (0.7,))(X, X) * scale
    floor = 1e-8  # below, the order of the pivots could be rounding
    V_dense, pivots_dense = dense_pivoted_cholesky(K, floor)
    V_greedy, pivots_greedy = greedy(K, floor)
    for V, pivots in ((V_dense, pivots_dense), (V_greedy, pivots_greedy)):
        check_factorisation(V, pivots, K, floor)
    np.testing.assert_array_equal(pivots_greedy, pivots_dense)
    np.testing.assert_allclose(V_greedy, V_dense, rtol=0, atol=1e-7)


def test_the_factorisation_check_rejects_other_pivots(rng):
    X = uniform(rng, 30, 2)
    K = StationaryKernel("matern32", (0.7,))(X, X)
    V = cholesky(K)
    with pytest.raises(AssertionError):
        check_factorisation(V, np.arange(30), K, 1e-10)


def test_greedy_with_ties_and_more_rows_than_one_block():
    K = np.diag(np.repeat([3.0, 2.0], 100))
    (V, pivots), (V_dense, pivots_dense) = greedy(K, 1e-12), dense_pivoted_cholesky(K, 1e-12)
    np.testing.assert_array_equal(V.T @ V, V_dense.T @ V_dense)
    assert set(pivots[:100]) == set(pivots_dense[:100]) == set(range(100))


@pytest.mark.parametrize(("d", "trace"), [(1, 1e-6), (2, 1e-3), (4, 1e-1)])
def test_blocks_of_pivots_need_few_more_than_one_by_one(d, trace, rng):
    X = uniform(rng, 600, d)
    K = StationaryKernel("matern52", (0.5,))(X, X)
    V, pivots = greedy(K, 1e-12, trace_left=trace * 600, block=32)
    one_by_one, _ = greedy(K, 1e-12, trace_left=trace * 600)
    assert len(V) <= 1.25 * len(one_by_one) + 2
    left = 600 - np.cumsum(np.square(V).sum(axis=1))
    assert left[-1] <= trace * 600 < left[-2]
    np.testing.assert_array_equal(np.tril(V[:, pivots], -1), 0.0)
    assert len(set(pivots)) == len(pivots)
    np.testing.assert_allclose(V.T @ V[:, pivots], K[:, pivots], rtol=0, atol=1e-9)  # exact at the pivots
    assert np.linalg.eigvalsh(K - V.T @ V).min() > -1e-10


@pytest.mark.parametrize("max_rank", [255, 256, 257, 520])
def test_the_buffer_grows_up_to_any_largest_rank(max_rank, rng):
    X = uniform(rng, 540, 6)
    K = StationaryKernel("matern32", (0.5,))(X, X)
    V, pivots = greedy(K, 1e-12, max_rank=max_rank, block=64)
    assert len(V) == len(set(pivots)) == max_rank
    np.testing.assert_allclose(V.T @ V[:, pivots], K[:, pivots], rtol=0, atol=1e-9)


@pytest.mark.parametrize("rank", ["exact", 15, 0.05])
@pytest.mark.parametrize("name", ["matern52", "gaussian"])
def test_without_the_full_matrix_the_features_are_the_same(rank, name, rng, monkeypatch):
    X, kernel = uniform(rng, 150, 2), StationaryKernel(name, (0.8,))
    Z = uniform(rng, 20, 2)
    monkeypatch.setattr(features_module, "FEW_FEATURES", 1000)
    dense = learn_features(X, kernel, rank)
    monkeypatch.setattr(features_module, "DENSE_ROWS", 10)
    monkeypatch.setattr(features_module, "BLOCK_PIVOTS", 1)
    row_by_row = learn_features(X, kernel, rank)
    for f in (dense, row_by_row):
        np.testing.assert_allclose(f.transform(X), f.V, rtol=0, atol=PHI_TOL)
    gram = [f.transform(Z).T @ f.transform(Z) for f in (dense, row_by_row)]
    np.testing.assert_allclose(gram[0], gram[1], rtol=0, atol=1e-9)
    if rank != "exact":  # in the last digits the order of the pivots is rounding
        np.testing.assert_array_equal(row_by_row.landmarks, dense.landmarks)
        np.testing.assert_allclose(row_by_row.V, dense.V, rtol=0, atol=1e-11)
        assert row_by_row.trace_left_out == pytest.approx(dense.trace_left_out, abs=1e-12)


def test_row_by_row_also_for_callables_and_indefinite_ones(rng, monkeypatch):
    monkeypatch.setattr(features_module, "DENSE_ROWS", 5)
    X = uniform(rng, 40, 2)
    V = learn_features(X, CallableKernel(lambda A, B: A @ B.T)).V
    np.testing.assert_allclose(V.T @ V, X @ X.T, rtol=0, atol=1e-14)
    with pytest.raises(NotPositiveSemidefiniteError):
        learn_features(X, CallableKernel(lambda A, B: 1.0 + np.square(A[:, :1] - B[:, 0])))
    with pytest.raises(InfeasibleProblemError):
        learn_features(X, CallableKernel(lambda A, B: np.zeros((len(A), len(B)))))


# ---- low rank -------------------------------------------------------------------------------------------------------


def nystrom(K, pivots):
    """``K_P' K_PP^-1 K_P``, directly."""
    return K[pivots].T @ np.linalg.solve(K[np.ix_(pivots, pivots)], K[pivots])


def positions(landmarks, X):
    return np.argmin(cdist(landmarks, X), axis=1)


@pytest.mark.parametrize("rank", [1, 5, 30])
def test_an_integer_rank_projects_on_the_first_pivots(rank, rng):
    X, kernel = uniform(rng, 80, 2), StationaryKernel("matern52", (5.0,))
    K = kernel(X, X)
    features = learn_features(X, kernel, rank)
    K_hat = nystrom(K, positions(features.landmarks, X))
    assert features.rank == rank
    np.testing.assert_allclose(features.V.T @ features.V, K_hat, rtol=0, atol=1e-9)
    np.testing.assert_allclose(features.transform(X), features.V, rtol=0, atol=PHI_TOL)
    assert features.trace_left_out == pytest.approx(1 - np.trace(K_hat) / 80, abs=1e-10)
    assert features.smallest_ratio == pytest.approx((np.diag(K_hat) / np.diag(K)).min(), abs=1e-10)
    # the projected kernel is below the kernel: K - V'V is positive semidefinite
    assert np.linalg.eigvalsh(K - features.V.T @ features.V).min() > -1e-12


@pytest.mark.parametrize("dense_rows", [4000, 10])
@pytest.mark.parametrize("fraction", [0.3, 0.01, 1e-5])
def test_a_fraction_leaves_out_at_most_that_trace_with_the_fewest_features(fraction, dense_rows, rng, monkeypatch):
    monkeypatch.setattr(features_module, "DENSE_ROWS", dense_rows)
    X, kernel = uniform(rng, 120, 2), StationaryKernel("matern32", (3.0,))
    features = learn_features(X, kernel, fraction)
    left = 1 - np.cumsum(np.square(features.V).sum(axis=1)) / 120
    assert left[-1] <= fraction
    assert features.trace_left_out == pytest.approx(left[-1], abs=1e-13)
    assert features.rank == 1 or left[-2] > fraction


def test_shares_kept_by_hand():
    K = np.diag([4.0, 2.0, 1.0])
    with pytest.warns(LowRankWarning, match="the 2 features keep only 0 of the kernel"):
        features = learn_features(K, PrecomputedKernel(), 2)
    assert features.trace_left_out == pytest.approx(1 / 7, rel=1e-14)
    assert features.smallest_ratio == 0.0
    np.testing.assert_array_equal(features.landmarks, [0, 1])
    features = learn_features(np.diag([4.0, 0.0]), PrecomputedKernel(), np.int64(50))  # more than there can be
    assert (features.rank, features.trace_left_out, features.smallest_ratio) == (
        1,
        0.0,
        1.0,
    )  # without variance: not counted


def test_low_rank_warning_is_below_one_half():
    def learnt(share):  # k(x, 0) = s gives K_hat / K = s^2 at x for the single pivot 0
        return learn_features(np.array([[1.0, np.sqrt(share)], [np.sqrt(share), 1.0]]), PrecomputedKernel(), 1)

    assert learnt(0.51).smallest_ratio == pytest.approx(0.51)
    with pytest.warns(LowRankWarning, match="0.49.*raise `rank`"):
        learnt(0.49)


# ---- matrices that are no kernels -----------------------------------------------------------------------------------


def slightly_indefinite(rng, negative):
    Q = np.linalg.qr(rng.normal(size=(60, 60)))[0]
    eigenvalues = np.append(np.linspace(0.1, 1.0, 59), negative)
    return (Q * eigenvalues) @ Q.T


INDEFINITE = {
    "swap": [[0, 1], [1, 0]],
    "correlation of 2": [[1, 2], [2, 1]],
    "negative entry": [[1, 0], [0, -1]],
    "only negative": [[-1]],
    "zero variance, non-zero row": [[1, 0, 0], [0, 0, 1e-3], [0, 1e-3, 0]],
    "centred too much": np.eye(4) - 0.5,
    "distances": np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0))),
}


@pytest.mark.parametrize("rank", ["exact", 1])
@pytest.mark.parametrize("name", INDEFINITE)
def test_indefinite_matrices_are_errors(name, rank):
    K = np.array(INDEFINITE[name], dtype=float)
    assert np.linalg.eigvalsh(K).min() < 0
    with pytest.raises(NotPositiveSemidefiniteError, match="not positive semidefinite: after .* pivots"):
        learn_features(K, PrecomputedKernel(), rank)


@pytest.mark.parametrize("negative", [-1e-3, -1e-10, 0.0])
def test_slightly_indefinite_matrices_are_errors_and_rounding_is_none(negative, rng):
    K = slightly_indefinite(rng, negative)
    if negative:
        with pytest.raises(NotPositiveSemidefiniteError):
            learn_features(K, PrecomputedKernel())
    else:
        V = learn_features((K + K.T) / 2, PrecomputedKernel()).V
        np.testing.assert_allclose(V.T @ V, K, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("d", "ell"), [(1, 1.0), (1, 10.0), (3, 1.0)])
def test_single_precision_rounding_is_not_an_error(d, ell, rng):
    X = uniform(rng, 300, d)
    K = StationaryKernel("gaussian", (ell,))(X, X).astype(np.float32)
    assert np.linalg.eigvalsh(K.astype(float)).min() < -1e-8  # no kernel in double precision
    with pytest.raises(NotPositiveSemidefiniteError, match="float32"):
        learn_features(K.astype(float), PrecomputedKernel())
    features = learn_features(K, PrecomputedKernel())
    np.testing.assert_allclose(features.V.T @ features.V, K, rtol=0, atol=2 * 300 * np.finfo(np.float32).eps)
    np.testing.assert_allclose(features.transform(K), features.V, rtol=0, atol=1e-10)


def test_zero_and_infinite_kernels():
    for kernel in (PrecomputedKernel(), CallableKernel(lambda A, B: A @ B.T)):
        with pytest.raises(InfeasibleProblemError, match="zero at all learning points"):
            learn_features(np.zeros((3, 3)), kernel)
    with pytest.raises(ValueError, match="finite"):
        learn_features(np.array([[np.inf]]), PrecomputedKernel())


# ---- new points -----------------------------------------------------------------------------------------------------


PLACES = uniform(np.random.default_rng(0), 20, 3)
MATERN = StationaryKernel("matern52", (1.0,))
K = MATERN(PLACES, PLACES)
LEARNT = {
    "points": learn_features(PLACES, MATERN),
    "matrix": learn_features(K, PrecomputedKernel(), rank=15),
    "function": learn_features(PLACES, resolve_kernel(MATERN.__call__, "median", PLACES)),
}


@pytest.mark.parametrize(
    ("kind", "X", "message"),
    [
        ("points", [[1.0, np.nan, 2.0]], "Input X contains NaN"),
        ("points", [[1.0, np.inf, 2.0]], "Input X contains infinity"),
        ("points", [[1.0, 2.0, -np.inf]], "Input X contains infinity"),
        ("points", np.zeros(3), r"X has shape \(3,\): expected \(rows, 3\), as the learning points"),
        ("points", np.zeros((5, 2)), r"X has shape \(5, 2\): expected \(rows, 3\)"),
        ("points", np.zeros((0, 2)), r"X has shape \(0, 2\): expected \(rows, 3\)"),
        ("points", np.zeros((2, 3, 1)), r"X has shape \(2, 3, 1\): expected \(rows, 3\)"),
        ("points", 1.0, r"X has shape \(\): expected \(rows, 3\)"),
        ("points", None, r"X has shape \(\): expected \(rows, 3\)"),
        ("points", [["a", "b", "c"]], "numeric"),
        ("matrix", np.zeros((4, 5)), r"X has shape \(4, 5\): expected \(rows, 20\), kernel values against"),
        ("matrix", K[0], r"X has shape \(20,\)"),
        ("matrix", np.full((4, 20), np.nan), "NaN"),
        ("function", np.zeros((4, 2)), r"X has shape \(4, 2\): expected \(rows, 3\)"),
        ("function", "word", r"X has shape \(\): expected \(rows, 3\)"),
        ("function", [[np.nan, 0.0, 0.0]], "the kernel callable returned NaN or inf for some rows of X"),
    ],
)
def test_bad_new_points(kind, X, message):
    with pytest.raises(ValueError, match=message):
        LEARNT[kind].transform(X)


def test_no_new_points_and_rows_of_a_matrix():
    for kind, features in LEARNT.items():
        none = np.zeros((0, 20 if kind == "matrix" else 3))
        assert features.transform(none).shape == (features.rank, 0)
    given = LEARNT["matrix"]
    assert given.point_shape == (20,)
    np.testing.assert_allclose(given.transform(K[:3].tolist()), given.V[:, :3], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "convert",
    [
        np.ndarray.tolist,
        np.asfortranarray,
        pd.DataFrame,
        lambda X: X.astype(object),
        lambda X: X.astype(np.float32),
        lambda X: X.astype(int),
        lambda X: np.repeat(X, 2, axis=0)[::2],
    ],
)
def test_good_new_points(convert):
    X = np.array([[0.0, 1.0, -1.0], [2.0, 0.0, 1.0]])
    found, expected = (LEARNT["points"].transform(each) for each in (convert(X), X))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, int, bool])
def test_kernel_objects_see_double_precision(dtype, rng):
    # scikit-learn's kernels compute in the precision of their input, which with NumPy 1 may be single
    seen = []

    class Recording(StationaryKernel):
        def __call__(self, X, Y):
            seen.append(X.dtype)
            return super().__call__(X, Y)

    features = learn_features(uniform(rng, 20, 3), Recording("gaussian", (0.3,)))
    features.transform(np.ones((4, 3), dtype=dtype))
    assert set(seen) == {np.dtype(float)}


def test_callables_see_the_points_as_they_are(rng):
    X = uniform(rng, 6, 2)
    table = X @ X.T
    states = np.array([[0], [1], [3], [5]])  # integer states that index a table
    features = learn_features(states, CallableKernel(lambda A, B: table[A[:, 0]][:, B[:, 0]]))
    np.testing.assert_allclose(
        features.transform([[4], [1]]).T @ features.V, table[[4, 1]][:, [0, 1, 3, 5]], atol=1e-12
    )


def test_few_features_of_many_points_are_made_without_the_full_matrix(rng, monkeypatch):
    X, kernel = uniform(rng, 300, 3), StationaryKernel("matern52", (0.8,))
    monkeypatch.setattr(features_module, "FEW_FEATURES", 1000)
    dense = learn_features(X, kernel, (40, 1e-3))
    monkeypatch.setattr(features_module, "FEW_FEATURES", 4)
    sizes = []
    inner = StationaryKernel.__call__
    monkeypatch.setattr(
        StationaryKernel, "__call__", lambda self, A, B: (sizes.append(len(A) * len(B)), inner(self, A, B))[1]
    )
    few = learn_features(X, kernel, (40, 1e-3))
    assert sum(sizes) < 0.25 * 300**2
    assert few.rank == 40
    np.testing.assert_allclose(few.transform(X), few.V, rtol=0, atol=PHI_TOL)
    assert few.trace_left_out < 1.15 * dense.trace_left_out
