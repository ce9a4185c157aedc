"""Cutoffs of conditional calibration against solvers of the problem, its promises, and broken copies."""

import importlib.util

import numpy as np
import pytest

from benchmarks import conditional as cases
from sosbands.conformal import conditional, conformal_quantile
from sosbands.conformal.conditional import ConditionalQuantile
from sosbands.kernels import StationaryKernel

needs_cvxpy = pytest.mark.skipif(
    importlib.util.find_spec("cvxpy") is None, reason="CVXPY is not installed (extra 'sdp')"
)


def check_against_highs(n_problems=40):
    for seed in range(n_problems):
        row = cases.finite_row({}, seed)
        assert row["wrong"] == 0
        assert row["difference"] < 1e-8


def check_against_clarabel(n_problems=8):
    for seed in range(n_problems):
        assert cases.kernel_row({}, seed)["difference"] < 1e-6


def check_ties():
    """Discrete scores of discrete rows: all that (2) asks for holds, and a tie is inside."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        X = rng.integers(0, 3, (120, 2)).astype(float)
        S = rng.integers(0, 4, 120).astype(float)
        F = np.column_stack([np.ones(120), X[:, 0] > 0, X[:, 1] > 0]).astype(float)
        kernel = StationaryKernel("matern52", (2.0,))
        for K in (None, kernel(X, X)):
            fit = ConditionalQuantile(S, 0.8, F, K, 0.5)
            assert np.abs(F.T @ fit.eta).max() < 1e-9
            assert -0.2 - 1e-9 < fit.eta.min() < fit.eta.max() < 0.8 + 1e-9
        cutoffs = ConditionalQuantile(S, 0.8, F).cutoffs(F)
        assert np.abs(cutoffs - np.round(cutoffs)).max() < 1e-8  # sums and differences of scores
        for group in F.T > 0:
            assert np.mean(S[group] <= cutoffs[group]) >= 0.8
        apart = np.column_stack([F[:, 1], 1 - F[:, 1]])
        S = np.round(rng.standard_normal(120), 1)  # no rounding takes a tie out
        own = [conformal_quantile(S[F[:, 1] == g], 0.8) for g in (1, 0)]
        assert (ConditionalQuantile(S, 0.8, apart).cutoffs(np.eye(2)) >= own).all()


def test_groups_that_overlap_against_highs():
    check_against_highs()


@needs_cvxpy
def test_kernels_against_clarabel():
    check_against_clarabel()


def test_ties():
    check_ties()


@pytest.mark.parametrize("n", [1, 8, 9, 10, 19, 99, 100])
@pytest.mark.parametrize("level", [0.55, 0.8, 0.9])
def test_one_feature_is_the_conformal_quantile(n, level):
    S = np.random.default_rng(n).standard_normal(n)
    found = ConditionalQuantile(S, level, np.ones((n, 1))).cutoffs(np.ones((2, 1)))
    np.testing.assert_allclose(found, conformal_quantile(S, level), atol=1e-9)


def test_disjoint_groups_are_mondrian():
    rng = np.random.default_rng(3)
    labels, S = rng.integers(0, 4, 150), rng.standard_normal(150)
    labels[:3] = 4  # too few rows: infinite
    F = (labels[:, None] == np.arange(5)).astype(float)
    expected = [conformal_quantile(S[labels == g], 0.9) for g in range(5)]
    with_one, new = np.column_stack([np.ones(150), F]), np.column_stack([np.ones(5), np.eye(5)])
    np.testing.assert_allclose(ConditionalQuantile(S, 0.9, with_one).cutoffs(new), expected, atol=1e-9)
    assert np.isinf(expected[4])


def test_features_that_no_row_has_are_infinite():
    F = np.column_stack([np.ones(50), np.zeros(50), np.arange(50) % 2])
    fit = ConditionalQuantile(np.arange(50.0), 0.8, F)
    found = fit.cutoffs(np.array([[1.0, 0, 0], [1, 1, 0], [1, 0, 1], [0, 1, 1]]))
    assert np.isinf(found).tolist() == [False, True, False, True]


def test_infinite_scores_and_scores_that_are_alike():
    one = np.ones((20, 1))
    S = np.concatenate([np.arange(17.0), [np.inf] * 3])
    assert ConditionalQuantile(S, 0.8, one).cutoffs(one[:1]) == pytest.approx(16.0, abs=1e-7)
    assert ConditionalQuantile(S, 0.9, one).cutoffs(one[:1]) == np.inf
    assert ConditionalQuantile(-S, 0.1, one).cutoffs(one[:1]) == -np.inf
    assert ConditionalQuantile(np.full(20, np.inf), 0.8, one).cutoffs(one[:1]) == np.inf
    same = ConditionalQuantile(np.full(20, 3.0), 0.8, one).cutoffs(one[:1])
    assert 3.0 <= same <= 3.0 + 1e-8


def test_cutoffs_grow_with_the_weight_and_end_at_a_weight_of_the_fit():
    rng = np.random.default_rng(5)
    X, S = rng.standard_normal((80, 2)), rng.standard_normal(80)
    F, kernel = np.ones((80, 1)), StationaryKernel("matern52", (1.0,))
    K = kernel(X, X)
    fit = ConditionalQuantile(S[:79], 0.8, F[:79], K[:79, :79], 0.5)
    t = np.linspace(-0.2, 0.8, 21)
    path = fit.cutoffs(np.ones((21, 1)), np.repeat(K[79:, :79], 21, axis=0), t=t)
    assert (np.diff(path) > -1e-9).all()
    for at, score in zip(t[1:-1:4], path[1:-1:4], strict=True):  # with this score the row has this weight
        own = ConditionalQuantile(np.append(S[:79], score), 0.8, F, K, 0.5)
        assert own.eta[79] == pytest.approx(at, abs=1e-4)


def test_scores_are_as_good_in_another_unit():
    rng = np.random.default_rng(6)
    X, S = rng.standard_normal((60, 1)), rng.standard_normal(60)
    K, one = StationaryKernel("matern52", (1.0,))(X, X), np.ones((60, 1))
    plain = ConditionalQuantile(S, 0.9, one, K, 0.5).cutoffs(one, K)
    scaled = ConditionalQuantile(1e6 * S + 5e6, 0.9, one, K, 5e5).cutoffs(one, K)
    np.testing.assert_allclose(scaled, 1e6 * plain + 5e6, rtol=1e-7)


# ---------------------------------------------------------------- coverage


def coverage_rows(method, n, draws):
    rng = np.random.default_rng(1)
    rows = [cases.calibration_draw(rng, n, method) for _ in range(draws)]
    return {name: cases.mean_error([row[name] for row in rows]) for name in rows[0]}


def check_coverage(method, n=60, draws=100):
    """Groups: at least the level, at most that and d/(n + 1); neighbourhoods: the level and what (3) says."""
    found = coverage_rows(method, n, draws)
    if method == "groups":
        for g in range(5):
            mean, error = found[f"over_{g}"]
            assert -4 * error < mean < found["active"][0] / (n + 1) + 4 * error
    else:
        for p in range(len(cases.PLACES)):
            mean, error = found[f"near_{p}"]
            assert abs(mean - found[f"promised_{p}"][0]) < 4 * np.hypot(error, found[f"promised_{p}"][1])
            gap, size = found[f"gap_{p}"]
            assert gap == pytest.approx(found[f"promised_{p}"][0] / found[f"weight_{p}"][0], abs=0.01 + 4 * size)
            assert found[f"near_over_{p}"][0] > mean - 4 * error
    mean, error = found["exact"]
    assert abs(mean - cases.LEVEL) < 4 * error
    mean, error = found["coverage"]
    assert cases.LEVEL - 4 * error < mean < cases.LEVEL + found["active"][0] / (n + 1) + 4 * error


@pytest.mark.parametrize("method", ["groups", "local"])
def test_coverage_by_place(method):
    check_coverage(method)


# ---------------------------------------------------------------- broken copies


class WithoutFactor(ConditionalQuantile):
    """The kernel part of g at a new row without C."""

    def cutoffs(self, features, kernel=None, diagonal=None, t=None):
        C, self._C = self._C, 1.0 if self._C else 0.0
        try:
            return super().cutoffs(features, kernel, diagonal, t)
        finally:
            self._C = C


BROKEN = (AssertionError, ArithmeticError, RuntimeError, RuntimeWarning, ValueError)


def test_a_path_that_does_not_see_rank_loss_is_rejected(monkeypatch):
    monkeypatch.setattr(conditional, "RANK_LOSS", -np.inf)
    with pytest.raises(BROKEN):
        check_against_highs()


def test_ties_lost_by_rounding_are_rejected(monkeypatch):
    monkeypatch.setattr(conditional, "JITTER", 0.0)
    with pytest.raises(BROKEN):
        check_ties()


@needs_cvxpy
def test_cutoffs_without_the_factor_are_rejected_by_the_solver(monkeypatch):
    monkeypatch.setattr(cases, "ConditionalQuantile", WithoutFactor)
    with pytest.raises(AssertionError):
        check_against_clarabel()


def test_cutoffs_without_the_factor_are_rejected_by_their_coverage(monkeypatch):
    monkeypatch.setattr(cases, "ConditionalQuantile", WithoutFactor)
    with pytest.raises(AssertionError):
        check_coverage("local", draws=40)
