"""How good intervals are: how often they hold, how wide they are, what width tells of the error, and their score.

Ends belong to the interval, everywhere: ``lower <= y <= upper`` is covered. As the ends do not cross, at most one of
them is missed, so that ``coverage = lower_coverage + upper_coverage - 1``.

An infinite interval is as wide as it is: means are infinite then, and the median is if half of the rows are. The two
measures of dependence need numbers, so they leave rows of infinite width out; with no row left they are 0, as for
any constant width. `evaluate_intervals` counts those rows.

R2 sees the point predictions only; the interval score is proper for the two quantiles that end an interval, and so
tells better bands from worse ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree
from sklearn.utils import check_random_state

from sosbands._arguments import LARGEST, check, check_size, is_count, read_level, read_numbers, read_weights
from sosbands._types import Array, BoolArray
from sosbands.stats import distance_correlation, hsic

SET_SIZE = 100  # neighbours in a set of the worst-set coverage
LEAST_FOR_SETS = 2 * SET_SIZE  # with fewer rows any two sets share some, so that no place is told from another
NO_END = "give it in another unit, or an infinite end where an interval has none"
RandomState = int | np.random.Generator | np.random.RandomState | None


def read_vector(values: ArrayLike, name: str, length: int | None = None, *, finite: bool = True) -> Array:
    """One-dimensional array of the given length, without NaN, and finite unless ends of intervals are read."""
    array = read_numbers(name, values)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} has shape {array.shape}: expected one dimension and at least one entry")
    if length is not None and len(array) != length:
        raise ValueError(f"{name} has {len(array)} entries: expected {length}")
    if np.any(np.isnan(array)):
        raise ValueError(f"{name} holds NaN: expected numbers")
    if finite and not np.all(np.isfinite(array)):
        raise ValueError(f"{name} holds infinite entries: expected finite numbers")
    return array


def read_bounds(
    lower: ArrayLike, upper: ArrayLike, length: int | None = None, *, measured: bool = True
) -> tuple[Array, Array]:
    """Both ends, lower <= upper, neither a point at infinity; measured, not only compared, ends have finite squares."""
    lower = read_vector(lower, "lower", length, finite=False)
    upper = read_vector(upper, "upper", len(lower), finite=False)
    if np.any(lower == np.inf):
        raise ValueError("lower holds +inf: expected finite numbers or -inf")
    if np.any(upper == -np.inf):
        raise ValueError("upper holds -inf: expected finite numbers or +inf")
    crossing = np.flatnonzero(lower > upper)
    if crossing.size:
        raise ValueError(f"lower > upper in {crossing.size} rows, first {crossing[0]}: expected lower <= upper")
    if measured:
        check_size("lower", lower, NO_END)
        check_size("upper", upper, NO_END)
    return lower, upper


def read_intervals(
    y: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, measured: bool = True
) -> tuple[Array, Array, Array]:
    """Targets and the two ends of their intervals, all of one length."""
    y = read_vector(y, "y")
    if measured:
        check_size("y", y)
    return y, *read_bounds(lower, upper, len(y), measured=measured)


def mean_over_rows(values: Array | BoolArray, sample_weight: ArrayLike | None) -> float:
    """Mean, weighted if there are weights: finite numbers >= 0, not all of them 0."""
    if sample_weight is None:
        return float(np.mean(values))
    weights = read_weights(sample_weight, len(values))
    counted = weights > 0  # a row of no weight may be infinitely wide
    weights = np.ldexp(weights, -np.frexp(weights.max())[1])  # in units in which no sum overflows or vanishes
    return float(np.average(values[counted], weights=weights[counted]))


def read_matrix(values: ArrayLike, name: str, n_rows: int | None = None) -> Array:
    """Two-dimensional finite array with at least one row and one column."""
    array = read_numbers(name, values)
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"{name} has shape {array.shape}: expected two dimensions, rows and columns")
    if n_rows is not None and len(array) != n_rows:
        raise ValueError(f"{name} has {len(array)} rows: expected {n_rows}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} holds NaN or infinite entries: expected finite numbers")
    check_size(name, array)
    return array


def standardised(X: Array, X_learn: ArrayLike | None) -> Array:
    """Features in units of the mean and standard deviation of `X_learn`, by default of the rows themselves."""
    known = X if X_learn is None else read_matrix(X_learn, "X_learn")
    if X.shape[1] != known.shape[1]:
        raise ValueError(f"X_learn has {known.shape[1]} features: expected {X.shape[1]}, as many as X")
    scale = known.std(axis=0)
    with np.errstate(over="ignore"):  # of rows far from those of a tiny scale
        Z: Array = (X - known.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    return Z.clip(-LARGEST, LARGEST)


def generator(random_state: RandomState) -> np.random.Generator | np.random.RandomState:
    """Source of random numbers: one of NumPy's as it is, or a new one."""
    return random_state if isinstance(random_state, np.random.Generator) else check_random_state(random_state)


def coverage(y: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Marginal coverage: the share of rows with ``lower <= y <= upper``.

    Parameters
    ----------
    y, lower, upper : array-like of shape (n,)
        Targets and ends of the intervals, ``lower <= upper``; infinite ends cover everything on their side.
    sample_weight : array-like of shape (n,), optional
        How much each row counts.
    """
    y, lower, upper = read_intervals(y, lower, upper, measured=False)
    return mean_over_rows((lower <= y) & (y <= upper), sample_weight)


def lower_coverage(
    y: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Share of rows with ``y >= lower``; `upper` is only checked."""
    y, lower, _ = read_intervals(y, lower, upper, measured=False)
    return mean_over_rows(y >= lower, sample_weight)


def upper_coverage(
    y: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Share of rows with ``y <= upper``; `lower` is only checked."""
    y, _, upper = read_intervals(y, lower, upper, measured=False)
    return mean_over_rows(y <= upper, sample_weight)


def mean_width(lower: ArrayLike, upper: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Mean of ``upper - lower``; infinite if one interval is."""
    lower, upper = read_bounds(lower, upper)
    return mean_over_rows(upper - lower, sample_weight)


def median_width(lower: ArrayLike, upper: ArrayLike) -> float:
    """Median of ``upper - lower``; infinite if half of the intervals are."""
    lower, upper = read_bounds(lower, upper)
    return float(np.median(upper - lower))


def width_residual_hsic(y: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> float:
    """HSIC (energy kernel) of the width ``W = upper - lower`` and ``R = |y - (lower + upper)/2|``.

    With ``lower = m - f_lo - q``, ``upper = m + f_up + q`` these are the ``R = |r - (f_up - f_lo)/2|`` and
    ``W = f_up + f_lo`` (plus a constant) of the tuning criterion. Large: wide intervals are where errors are large. At
    least 0, in the squared unit of y; 0 for intervals of constant width. Rows of infinite width are left out.
    """
    return _dependence(hsic, y, lower, upper)


def width_residual_correlation(y: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> float:
    """Distance correlation, in [0, 1], of the two samples of `width_residual_hsic`."""
    return _dependence(distance_correlation, y, lower, upper)


def _dependence(measure: Callable[[Array, Array], float], y: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> float:
    y, lower, upper = read_intervals(y, lower, upper)
    finite = np.isfinite(upper - lower)
    if not finite.any():
        return 0.0
    y, lower, upper = y[finite], lower[finite], upper[finite]
    return measure(upper - lower, np.abs(y - (lower / 2 + upper / 2)))


class SidedMeasure(NamedTuple):
    """One measure of the intervals, of their lower and their upper ends, and of both ends together."""

    marginal: float
    lower: float
    upper: float
    combined: float


def worst_set_coverage(
    y: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    X: ArrayLike,
    *,
    n_sets: int = 10,
    n_neighbors: int = SET_SIZE,
    random_state: RandomState = None,
    X_learn: ArrayLike | None = None,
) -> SidedMeasure:
    """Smallest coverage over sets of neighbours; ``combined`` is the mean of the lower and the upper minimum.

    Parameters
    ----------
    y, lower, upper, X : array-like of shape (n,), and (n, n_features)
        Targets and intervals of the test rows, and these.
    n_sets : int
        How many rows are drawn, without repetition; all of them if there are fewer.
    n_neighbors : int
        Size of each set: the nearest rows to the one drawn, itself included. With ``n <= n_neighbors`` every set is
        the whole test set and the result is marginal coverage.
    random_state : int, Generator, RandomState or None
        Which rows are drawn.
    X_learn : array-like of shape (n_learn, n_features), optional
        Rows whose mean and standard deviation standardise the features; by default those of `X`.
    """
    y, lower, upper = read_intervals(y, lower, upper)
    X = read_matrix(X, "X", len(y))
    for name, number in (("n_sets", n_sets), ("n_neighbors", n_neighbors)):
        check(name, number, is_count(number) and number >= 1, "an integer >= 1")
    Z, rng = standardised(X, X_learn), generator(random_state)
    centres = rng.choice(len(Z), min(n_sets, len(y)), replace=False)
    _, sets = cKDTree(Z).query(Z[centres], k=np.arange(1, min(n_neighbors, len(y)) + 1))
    above, below = (y >= lower)[sets], (y <= upper)[sets]
    low, up = float(above.mean(axis=1).min()), float(below.mean(axis=1).min())
    return SidedMeasure(float((above & below).mean(axis=1).min()), low, up, (low + up) / 2)


def interval_score(
    y: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    confidence_level: float,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean interval (Winkler) score, smaller is better.

    ``mean_i [ (u - l) + (2/alpha) (l - y)_+ + (2/alpha) (y - u)_+ ]`` with ``alpha = 1 - confidence_level``.

    Parameters
    ----------
    y, lower, upper : array-like of shape (n,)
        Targets and intervals; an infinite interval makes the score infinite.
    confidence_level : float
        In (0, 1).
    sample_weight : array-like of shape (n,), optional
        How much each row counts.
    """
    y, lower, upper = read_intervals(y, lower, upper)
    rate = 2 / (1 - read_level(confidence_level))
    missed = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    return mean_over_rows((upper - lower) + rate * missed, sample_weight)


@dataclass(frozen=True)
class IntervalScorer:
    """What `interval_scorer` returns: call it with ``(estimator, X, y)``."""

    confidence_level: float | None = None

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Negative interval score of the estimator's intervals: greater is better."""
        if not hasattr(estimator, "predict_interval") and hasattr(estimator, "steps"):  # a pipeline: its last step
            X = estimator[:-1].transform(X) if len(estimator.steps) > 1 else X
            estimator = estimator[-1]
        if not hasattr(estimator, "predict_interval"):
            raise ValueError(f"estimator {type(estimator).__name__} has no predict_interval: expected one that has")
        level = self.confidence_level
        if level is None:
            level = getattr(estimator, "confidence_level", None)
        if level is None:
            raise ValueError(
                f"confidence_level=None and {type(estimator).__name__} has no confidence_level: expected one of the two"
            )
        level = read_level(level)
        intervals = np.asarray(estimator.predict_interval(X, level))
        if intervals.ndim != 2 or intervals.shape[1] != 2:
            raise ValueError(f"predict_interval gave shape {intervals.shape}: expected (n, 2), lower and upper ends")
        lower, upper = intervals.T
        return -interval_score(y, lower, upper, level, sample_weight=sample_weight)


def interval_scorer(confidence_level: float | None = None) -> IntervalScorer:
    """Scorer for ``scoring=`` of `GridSearchCV`, `cross_val_score` and their like.

    ``scorer(estimator, X, y)`` is minus the mean interval score of ``estimator.predict_interval(X, level)``. Infinite
    intervals give -inf, which a search ranks last. Of a pipeline the last step predicts the intervals.

    Parameters
    ----------
    confidence_level : float, optional
        Level of the intervals that are compared. By default the `confidence_level` of the estimator; give it when the
        search varies that parameter, as scores at different levels cannot be compared.
    """
    return IntervalScorer(None if confidence_level is None else read_level(confidence_level))


def evaluate_intervals(
    y: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    confidence_level: float,
    X: ArrayLike | None = None,
    X_learn: ArrayLike | None = None,
    random_state: RandomState = 0,
    sample_weight: ArrayLike | None = None,
) -> dict[str, float]:
    """Every metric that test rows alone allow.

    Parameters
    ----------
    y, lower, upper : array-like of shape (n,)
        Targets and intervals. Infinite ends are allowed, NaN is not.
    confidence_level : float
        In (0, 1).
    X : array-like of shape (n, n_features), optional
        Test rows; with them the worst-set coverages are added, if there are at least 200: with fewer any two sets of
        100 neighbours share some rows.
    X_learn, random_state
        As in `worst_set_coverage`.
    sample_weight : array-like of shape (n,), optional
        How much each row counts in coverage, mean width and interval score; the others count rows.

    Returns
    -------
    dict of str to float
        ``coverage``, ``coverage_lower``, ``coverage_upper``, ``mean_width``, ``median_width``, ``interval_score``,
        ``hsic``, ``distance_correlation``, ``n``, ``n_infinite``, ``n_empty`` (zero width), and with `X` and at least
        200 rows ``worst_set_coverage``, ``worst_set_coverage_lower``, ``worst_set_coverage_upper``. Never NaN: with
        infinite intervals the mean width and the interval score are infinite, and ``hsic`` and
        ``distance_correlation`` are those of the ``n - n_infinite`` other rows (0 if there are none).
    """
    read_level(confidence_level)
    y, lower, upper = read_intervals(y, lower, upper)
    row = {
        "coverage": coverage(y, lower, upper, sample_weight=sample_weight),
        "coverage_lower": lower_coverage(y, lower, upper, sample_weight=sample_weight),
        "coverage_upper": upper_coverage(y, lower, upper, sample_weight=sample_weight),
        "mean_width": mean_width(lower, upper, sample_weight=sample_weight),
        "median_width": median_width(lower, upper),
        "interval_score": interval_score(y, lower, upper, confidence_level, sample_weight=sample_weight),
        "hsic": width_residual_hsic(y, lower, upper),
        "distance_correlation": width_residual_correlation(y, lower, upper),
        "n": float(len(y)),
        "n_infinite": float(np.count_nonzero(np.isinf(lower) | np.isinf(upper))),
        "n_empty": float(np.count_nonzero(lower == upper)),
    }
    if X is not None:
        standardised(read_matrix(X, "X", len(y)), X_learn)  # complains of bad points, also of few
    if X is not None and len(y) >= LEAST_FOR_SETS:
        worst = worst_set_coverage(y, lower, upper, X, X_learn=X_learn, random_state=random_state)
        sides = (("", worst.marginal), ("_lower", worst.lower), ("_upper", worst.upper))
        row |= {f"worst_set_coverage{side}": value for side, value in sides}
    return row
