"""The row of all metrics, the scorer, and what bad input is told."""

import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

from sosbands import metrics

INF = np.inf
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
    assert everywhere["coverage"] == everywhere["worst_set_coverage"] == 1.0


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


X, Y = np.zeros((200, 1)), np.random.default_rng(0).uniform(-1, 1, 200)


def test_the_scorer_is_minus_the_interval_score():
    model = ConstantBand(0.5).fit(X, Y)
    expected = -metrics.interval_score(Y, np.full(200, model.mean_ - 0.5), np.full(200, model.mean_ + 0.5), 0.9)
    assert metrics.interval_scorer()(model, X, Y) == pytest.approx(expected, rel=1e-12)
    wide = -metrics.interval_score(Y, np.full(200, model.mean_ - 1.0), np.full(200, model.mean_ + 1.0), 0.99)
    assert metrics.interval_scorer(0.99)(model, X, Y) == pytest.approx(wide, rel=1e-12)


def check_selection(scoring):
    """The best half width at level 0.9 of a uniform law on [-1, 1] is 0.9."""
    search = GridSearchCV(ConstantBand(), {"half_width": [0.3, 0.6, 0.9, 1.5, 3.0]}, scoring=scoring, cv=4).fit(X, Y)
    assert search.best_params_ == {"half_width": 0.9}


def test_model_selection_by_bands():
    check_selection(metrics.interval_scorer())
    check_selection(metrics.interval_scorer(0.9))
    scores = cross_val_score(ConstantBand(), X, Y, scoring=metrics.interval_scorer(), cv=4)
    assert scores.shape == (4,)
    assert np.all(scores < 0)


def test_the_check_rejects_r2_which_cannot_see_bands():
    with pytest.raises(AssertionError):
        check_selection("r2")


def test_the_scorer_travels():
    scorer = pickle.loads(pickle.dumps(metrics.interval_scorer(0.8)))
    assert scorer == metrics.interval_scorer(0.8)


def test_the_scorer_names_what_is_missing():
    with pytest.raises(ValueError, match="LinearRegression has no predict_interval"):
        metrics.interval_scorer(0.9)(LinearRegression().fit(X, Y), X, Y)
    with pytest.raises(ValueError, match="confidence_level=1.5: expected a number in"):
        metrics.interval_scorer(1.5)
    with pytest.raises(ValueError, match="ConstantBand has no confidence_level"):
        metrics.interval_scorer()(ConstantBand(confidence_level=None).fit(X, Y), X, Y)
    flat = ConstantBand().fit(X, Y)
    flat.predict_interval = lambda X, level: flat.predict(X)  # noqa: ARG005
    with pytest.raises(ValueError, match=r"predict_interval gave shape \(200,\): expected \(n, 2\)"):
        metrics.interval_scorer()(flat, X, Y)


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
]


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
        (lambda: metrics.worst_set_coverage([0.0], [0.0], [1.0], [0.0]), r"X has shape \(1,\)"),
        (lambda: metrics.worst_set_coverage([0.0], [0.0], [1.0], [[0.0], [1.0]]), "X has 2 rows: expected 1"),
        (lambda: metrics.worst_set_coverage([0.0], [0.0], [1.0], [[0.0]], n_sets=0), "n_sets=0: expected"),
        (lambda: metrics.worst_set_coverage([0.0], [0.0], [1.0], [[0.0]], n_neighbors=0), "n_neighbors=0: expected"),
        (
            lambda: metrics.worst_set_coverage([0.0], [0.0], [1.0], [[0.0]], X_learn=[[0.0, 1.0]]),
            "X_learn has 2 features: expected 1",
        ),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
