"""Every metric by hand-computed cases, the row of all of them, the scorer, and what bad input is told."""

import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

from sosbands import metrics
from sosbands.stats import distance_correlation, hsic

INF = np.inf
Y = [0.0, 1.0, 2.0, 3.0, 4.0]
LOWER = [0.0, 2.0, 1.0, 0.0, 3.0]  # row 1: missed below
UPPER = [1.0, 3.0, 2.0, 2.5, 9.0]  # row 3: missed above; rows 0 and 2: on an end


def test_coverages():
    assert metrics.coverage(Y, LOWER, UPPER) == pytest.approx(0.6)
    assert metrics.lower_coverage(Y, LOWER, UPPER) == pytest.approx(0.8)
    assert metrics.upper_coverage(Y, LOWER, UPPER) == pytest.approx(0.8)
    assert metrics.coverage([0.0, 5.0], [-INF, -INF], [INF, 1.0]) == 0.5


def check_ends_belong_to_the_interval(coverage, lower_coverage, upper_coverage):
    rng = np.random.default_rng(0)
    for _ in range(20):
        y, a, b = rng.integers(0, 4, (3, 50)).astype(float)  # many ties
        lower, upper = np.minimum(a, b), np.maximum(a, b)
        both = lower_coverage(y, lower, upper) + upper_coverage(y, lower, upper) - 1
        assert coverage(y, lower, upper) == pytest.approx(both, abs=1e-12)
    assert coverage([1.0], [1.0], [1.0]) == lower_coverage([1.0], [1.0], [1.0]) == upper_coverage([1.0], [1], [1]) == 1


def test_ends_belong_to_the_interval():
    check_ends_belong_to_the_interval(metrics.coverage, metrics.lower_coverage, metrics.upper_coverage)


def test_the_check_rejects_open_ends():
    def broken(y, lower, upper):
        return float(np.mean((lower < np.asarray(y)) & (np.asarray(y) < upper)))

    with pytest.raises(AssertionError):
        check_ends_belong_to_the_interval(broken, metrics.lower_coverage, metrics.upper_coverage)


def test_widths():
    assert metrics.mean_width(LOWER, UPPER) == pytest.approx((1 + 1 + 1 + 2.5 + 6) / 5)
    assert metrics.median_width(LOWER, UPPER) == 1.0
    assert metrics.median_width([0, 0, 0, 0], [1, 2, 4, 9]) == 3.0
    assert metrics.mean_width([0, -INF], [1, 3]) == INF
    assert metrics.median_width([0, 0, -INF], [1, 2, 3]) == 2.0
    assert metrics.median_width([0, -INF], [1, 3]) == INF
    assert metrics.median_width([-INF, -INF], [INF, INF]) == INF


def test_interval_score():
    # widths 1, 1, 1, 2.5, 6 (mean 2.3); misses 1 and 0.5, each times 2/0.2 = 10: 15/5 = 3
    assert metrics.interval_score(Y, LOWER, UPPER, 0.8) == pytest.approx(5.3)
    assert metrics.interval_score([7.0], [1.0], [1.0], 0.9) == pytest.approx(120.0)
    assert metrics.interval_score([0.0, 9.0], [-INF, 0], [1.0, 1.0], 0.9) == INF


def test_interval_score_is_smallest_at_the_quantiles():
    y = np.random.default_rng(0).exponential(size=4001)
    quantiles = np.quantile(y, [0.05, 0.95])
    best = metrics.interval_score(y, np.full(4001, quantiles[0]), np.full(4001, quantiles[1]), 0.9)
    for shift in ([-0.02, 0], [0.02, 0], [0, -0.1], [0, 0.1]):
        ends = quantiles + shift
        assert metrics.interval_score(y, np.full(4001, ends[0]), np.full(4001, ends[1]), 0.9) > best


def test_coverage_gaps():
    samples = [[0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0]]
    gaps = metrics.coverage_gaps([0.5, 0.0], [2.0, 1.5], samples, 0.8)
    # row 0: >= lower 3/4, <= upper 3/4, inside 2/4; row 1: 4/4, 2/4, 2/4; targets 0.9, 0.9, 0.8
    assert gaps.marginal == pytest.approx((0.3 + 0.3) / 2)
    assert gaps.lower == pytest.approx((0.15 + 0.1) / 2)
    assert gaps.upper == pytest.approx((0.15 + 0.4) / 2)
    assert gaps.combined == pytest.approx((0.15 + 0.1 + 0.15 + 0.4) / 4)
    at_the_ends = metrics.coverage_gaps([1.0], [2.0], [[1.0, 2.0]], 0.9)
    np.testing.assert_allclose(at_the_ends, (0.1, 0.05, 0.05, 0.05))


def test_rmse_to_oracle():
    # squares 1 + 4 and 0 + 9: mean 7, half 3.5
    assert metrics.rmse_to_oracle([0, 1], [4, 5], [1, 1], [2, 8]) == pytest.approx(np.sqrt(3.5))
    assert metrics.rmse_to_oracle([0, 1], [4, 5], [0, 1], [4, 5]) == 0.0
    assert metrics.rmse_to_oracle([-INF, 1], [4, 5], [0, 1], [4, 5]) == INF


def test_worst_set_by_hand():
    X = np.array([[0.0], [1.0], [10.0], [11.0], [20.0], [21.0]])  # three pairs of neighbours
    y = np.array([0.0, 0.0, 0.0, 5.0, -5.0, -5.0])  # pair 2: one above; pair 3: both below
    lower, upper = np.full(6, -1.0), np.full(6, 1.0)
    worst = metrics.worst_set_coverage(y, lower, upper, X, n_sets=6, n_neighbors=2, random_state=0)
    assert worst == (0.0, 0.0, 0.5, 0.25)
    first = metrics.worst_set_coverage(y[:4], lower[:4], upper[:4], X[:4], n_sets=50, n_neighbors=2)
    assert first == (0.5, 1.0, 0.5, 0.75)


def test_worst_set_with_few_rows_is_marginal_coverage_whatever_the_random_source():
    rng = np.random.default_rng(1)
    y, X = rng.standard_normal(100), np.column_stack([rng.standard_normal((100, 2)), np.ones(100)])
    lower, upper = np.full(100, -1.0), np.full(100, 1.5)
    sides = [each(y, lower, upper) for each in (metrics.coverage, metrics.lower_coverage, metrics.upper_coverage)]
    for source in (3, np.random.default_rng(3), np.random.RandomState(3), None):
        assert list(metrics.worst_set_coverage(y, lower, upper, X, random_state=source)[:3]) == sides


def test_worst_set_against_sorting_all_distances():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((400, 2)) * [1.0, 1000.0]
    X_learn = rng.standard_normal((300, 2)) * [2.0, 1000.0]
    y = rng.standard_normal(400) * (1 + np.abs(X[:, 0]))
    lower, upper = np.full(400, -2.0), np.full(400, 2.0)
    centres = np.random.RandomState(7).choice(400, 10, replace=False)
    Z = X / X_learn.std(axis=0)
    nearest = [np.argsort(np.linalg.norm(Z - Z[i], axis=1), kind="stable")[:100] for i in centres]
    worst = metrics.worst_set_coverage(y, lower, upper, X, random_state=7, X_learn=X_learn)
    assert worst.marginal == pytest.approx(min(np.mean(np.abs(y[rows]) <= 2) for rows in nearest))
    assert worst.lower == pytest.approx(min(np.mean(y[rows] >= -2) for rows in nearest))
    assert worst.upper == pytest.approx(min(np.mean(y[rows] <= 2) for rows in nearest))
    assert worst != metrics.worst_set_coverage(y, lower, upper, X, random_state=8, X_learn=X_learn)
    assert worst.marginal < metrics.coverage(y, lower, upper)


def test_dependence_of_width_and_residual():
    rng = np.random.default_rng(3)
    m, f_lo, f_up = rng.standard_normal(60), rng.uniform(0, 1, 60), rng.uniform(0, 2, 60)
    y, q = m + (f_lo + f_up) * rng.standard_normal(60), 0.3
    R, W = np.abs((y - m) - (f_up - f_lo) / 2), f_up + f_lo
    lower, upper = m - f_lo - q, m + f_up + q
    assert metrics.width_residual_hsic(y, lower, upper) == pytest.approx(hsic(W, R), rel=1e-10)
    assert metrics.width_residual_correlation(y, lower, upper) == pytest.approx(distance_correlation(W, R), rel=1e-10)


def test_dependence_by_hand():
    # widths 2 and 4, residuals to the middle 0 and 3: distances 2 and 3, mean product of the centred ones 1 * 3/2
    y, lower, upper = [0.0, 3.0], [-1.0, -2.0], [1.0, 2.0]
    assert metrics.width_residual_hsic(y, lower, upper) == pytest.approx(1.5)
    assert metrics.width_residual_correlation(y, lower, upper) == pytest.approx(1.0)
    assert metrics.width_residual_hsic([*y, 7.0], [*lower, -INF], [*upper, 1.0]) == pytest.approx(1.5)
    assert metrics.width_residual_hsic(y, [-INF, -INF], [INF, INF]) == 0.0
    assert metrics.width_residual_correlation(y, [0.0, 2.0], [1.0, 3.0]) == 0.0


# ---------------------------------------------------------------- the row of all metrics


KEYS = [
    *("coverage", "coverage_lower", "coverage_upper", "mean_width", "median_width", "interval_score", "hsic"),
    *("distance_correlation", "n", "n_infinite", "n_empty"),
]


def test_the_row_by_hand():
    row = metrics.evaluate_intervals([0.0, 3.0], [-1.0, -2.0], [1.0, 2.0], confidence_level=0.5)
    assert list(row) == KEYS
    expected = [0.5, 1.0, 0.5, 3.0, 3.0, 5.0, 1.5, 1.0, 2.0, 0.0, 0.0]  # score: width 3 and 4 * 1 over two rows
    np.testing.assert_allclose(list(row.values()), expected, rtol=1e-12)
    assert all(type(value) is float for value in row.values())


def test_the_row_with_features():
    rng = np.random.default_rng(0)
    y, X = rng.standard_normal(300), rng.standard_normal((300, 2))
    lower, upper = np.full(300, -1.0), np.full(300, 1.2)
    row = metrics.evaluate_intervals(y, lower, upper, confidence_level=0.9, X=X, X_learn=X[:50], random_state=4)
    worst = metrics.worst_set_coverage(y, lower, upper, X, X_learn=X[:50], random_state=4)
    assert list(row) == [*KEYS, *(f"worst_set_coverage{side}" for side in ("", "_lower", "_upper"))]
    assert tuple(row.values())[-3:] == worst[:3]


def test_infinite_and_empty_intervals_are_counted_and_never_nan():
    row = metrics.evaluate_intervals(
        [0.0, 3.0, 1.0, 1.0, 5.0], [-1.0, -2.0, -INF, 0.0, 2.0], [1.0, 2.0, INF, INF, 2.0], confidence_level=0.9
    )
    assert (row["n"], row["n_infinite"], row["n_empty"]) == (5, 2, 1)
    assert row["mean_width"] == row["interval_score"] == INF
    assert row["median_width"] == 4.0
    assert row["coverage"] == 0.6
    everywhere = metrics.evaluate_intervals([0.0, 1.0], [-INF] * 2, [INF] * 2, confidence_level=0.9, X=[[0.0], [1.0]])
    assert not any(np.isnan(value) for value in [*row.values(), *everywhere.values()])
    assert everywhere["hsic"] == everywhere["distance_correlation"] == 0.0
    assert everywhere["coverage"] == 1.0


def test_two_sets_of_neighbours_need_room_for_both():
    rng = np.random.default_rng(0)
    y, X = rng.standard_normal(200), rng.standard_normal((200, 1))
    for n, there in ((199, False), (200, True)):
        row = metrics.evaluate_intervals(y[:n], np.full(n, -1.0), np.full(n, 1.0), confidence_level=0.9, X=X[:n])
        assert ("worst_set_coverage" in row) is ("worst_set_coverage_lower" in row) is there
    with pytest.raises(ValueError, match="X_learn has 2 features: expected 1"):  # also of few rows
        metrics.evaluate_intervals([0.0], [0.0], [1.0], confidence_level=0.9, X=[[0.0]], X_learn=[[0.0, 1.0]])


class ConstantBand(RegressorMixin, BaseEstimator):
    """Mean plus and minus a given half width: enough to be scored."""

    def __init__(self, half_width=1.0, confidence_level=0.9):
        self.half_width = half_width
        self.confidence_level = confidence_level

    def fit(self, X, y):  # noqa: ARG002
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)

    def predict_interval(self, X, confidence_level=None):
        level = self.confidence_level if confidence_level is None else confidence_level
        half = self.half_width * (2.0 if level > 0.95 else 1.0)
        return np.column_stack([self.predict(X) - half, self.predict(X) + half])


ROWS, TARGETS = np.zeros((200, 1)), np.random.default_rng(0).uniform(-1, 1, 200)


def test_the_scorer_is_minus_the_interval_score_and_travels():
    model = ConstantBand(0.5).fit(ROWS, TARGETS)
    expected = -metrics.interval_score(TARGETS, np.full(200, model.mean_ - 0.5), np.full(200, model.mean_ + 0.5), 0.9)
    assert metrics.interval_scorer()(model, ROWS, TARGETS) == pytest.approx(expected, rel=1e-12)
    wide = -metrics.interval_score(TARGETS, np.full(200, model.mean_ - 1.0), np.full(200, model.mean_ + 1.0), 0.99)
    scorer = metrics.interval_scorer(0.99)
    assert scorer(model, ROWS, TARGETS) == pytest.approx(wide, rel=1e-12)
    assert pickle.loads(pickle.dumps(scorer)) == scorer != metrics.interval_scorer()


def check_selection(scoring):
    """The best half width at level 0.9 of a uniform law on [-1, 1] is 0.9."""
    search = GridSearchCV(ConstantBand(), {"half_width": [0.3, 0.6, 0.9, 1.5, 3.0]}, scoring=scoring, cv=4).fit(
        ROWS, TARGETS
    )
    assert search.best_params_ == {"half_width": 0.9}


def test_model_selection_by_bands():
    check_selection(metrics.interval_scorer())
    check_selection(metrics.interval_scorer(0.9))
    scores = cross_val_score(ConstantBand(), ROWS, TARGETS, scoring=metrics.interval_scorer(), cv=4)
    assert scores.shape == (4,)
    assert np.all(scores < 0)


def test_the_check_rejects_r2_which_cannot_see_bands():
    with pytest.raises(AssertionError):
        check_selection("r2")


def test_the_scorer_names_what_is_missing():
    with pytest.raises(ValueError, match="LinearRegression has no predict_interval"):
        metrics.interval_scorer(0.9)(LinearRegression().fit(ROWS, TARGETS), ROWS, TARGETS)
    with pytest.raises(ValueError, match="confidence_level=1.5: expected a number in"):
        metrics.interval_scorer(1.5)
    with pytest.raises(ValueError, match="ConstantBand has no confidence_level"):
        metrics.interval_scorer()(ConstantBand(confidence_level=None).fit(ROWS, TARGETS), ROWS, TARGETS)
    flat = ConstantBand().fit(ROWS, TARGETS)
    flat.predict_interval = lambda X, level: flat.predict(X)  # noqa: ARG005
    with pytest.raises(ValueError, match=r"predict_interval gave shape \(200,\): expected \(n, 2\)"):
        metrics.interval_scorer()(flat, ROWS, TARGETS)


BAD_INTERVALS = [
    ([[0.0]], [0.0], [1.0], r"y has shape \(1, 1\): expected one dimension"),
    ([], [], [], r"y has shape \(0,\): expected one dimension and at least one"),
    ([np.nan], [0.0], [1.0], "y holds NaN"),
    ([INF], [0.0], [1.0], "y holds infinite entries"),
    ([0.0], [0.0, 1.0], [1.0], "lower has 2 entries: expected 1"),
    ([0.0], [0.0], [1.0, 2.0], "upper has 2 entries: expected 1"),
    ([0.0], [np.nan], [1.0], "lower holds NaN"),
    ([0.0], [0.0], [np.nan], "upper holds NaN"),
    ([0.0], [INF], [INF], r"lower holds \+inf"),
    ([0.0], [-INF], [-INF], "upper holds -inf"),
    ([0.0, 0.0], [0.0, 2.0], [1.0, 1.0], "lower > upper in 1 rows, first 1: expected lower <= upper"),
]
FUNCTIONS = [
    metrics.coverage,
    metrics.lower_coverage,
    metrics.upper_coverage,
    metrics.width_residual_hsic,
    metrics.width_residual_correlation,
    lambda y, lower, upper: metrics.interval_score(y, lower, upper, 0.9),
    lambda y, lower, upper: metrics.evaluate_intervals(y, lower, upper, confidence_level=0.9),
    lambda y, lower, upper: metrics.worst_set_coverage(y, lower, upper, np.zeros((len(y), 1))),
    lambda y, lower, upper: metrics.coverage_excess_risk(y, lower, upper, np.zeros((len(y), 1)), 0.9),
    lambda y, lower, upper: metrics.worst_slab_coverage(y, lower, upper, np.zeros((len(y), 1))),
    lambda y, lower, upper: metrics.cell_coverage_gap(y, lower, upper, np.zeros((len(y), 1)), 0.9),
    lambda y, lower, upper: metrics.evaluate_groups(y, lower, upper, ["a"] * len(y), confidence_level=0.9),
]


worst = partial(metrics.worst_set_coverage, [0.0], [0.0], [1.0])


@pytest.mark.parametrize(("y", "lower", "upper", "message"), BAD_INTERVALS)
def test_bad_intervals_are_named(y, lower, upper, message):
    for function in FUNCTIONS:
        with pytest.raises(ValueError, match=message):
            function(y, lower, upper)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.mean_width([1.0], [0.0]), "lower > upper"),
        (lambda: metrics.median_width([1.0], [2.0, 3.0]), "upper has 2 entries"),
        (lambda: metrics.interval_score([0.0], [0.0], [1.0], 1.0), "confidence_level=1.0: expected"),
        (lambda: metrics.evaluate_intervals([0.0], [0.0], [1.0], confidence_level=0), "confidence_level=0: expected"),
        (lambda: metrics.coverage_gaps([0.0], [1.0], [0.0], 0.9), r"Y_conditional has shape \(1,\)"),
        (lambda: metrics.coverage_gaps([0.0], [1.0], [[0.0], [1.0]], 0.9), "Y_conditional has 2 rows: expected 1"),
        (lambda: metrics.coverage_gaps([0.0], [1.0], [[np.nan]], 0.9), "Y_conditional holds NaN"),
        (lambda: metrics.coverage_gaps([0.0], [1.0], [[0.0]], 90), "confidence_level=90: expected"),
        (lambda: metrics.rmse_to_oracle([0.0], [1.0], [-INF], [1.0]), "oracle_lower holds infinite"),
        (lambda: metrics.rmse_to_oracle([0.0], [1.0], [0.0], [1.0, 2.0]), "oracle_upper has 2 entries: expected 1"),
        (lambda: worst([0.0]), r"X has shape \(1,\)"),
        (lambda: worst([[0.0], [1.0]]), "X has 2 rows: expected 1"),
        (lambda: worst([[0.0]], n_sets=0), "n_sets=0: expected"),
        (lambda: worst([[0.0]], n_neighbors=0), "n_neighbors=0: expected"),
        (lambda: worst([[0.0]], X_learn=[[0.0, 1.0]]), "X_learn has 2 features: expected 1"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
