"""Coverage from place to place: of groups, as a classifier finds it, in slabs and cells, and beside the known law.

``Z`` is 1 in rows that their interval covers, ``c`` the level. Few rows make a measure of chance alone: below the least
numbers here it is NaN, with a `TooFewRowsWarning` that says why, and `evaluate_places` leaves it out. A group has all
of its numbers however few rows it has, because Wilson's interval says how little they tell.

Of sided measures `combined` numbers put the lower and the upper ones side by side and average; the average over
repetitions is then the one of all lower and upper numbers pooled. Ranges are of test sets around a level, or of shares
that were counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import floor, nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import KFold

from sosbands._arguments import check, check_size, is_count, is_fraction, read_level, read_weights
from sosbands._threads import few_threads
from sosbands._types import Array, BoolArray
from sosbands._words import many, warn
from sosbands.exceptions import TooFewRowsWarning
from sosbands.metrics.intervals import (
    RandomState,
    SidedMeasure,
    generator,
    interval_score,
    mean_over_rows,
    mean_width,
    read_bounds,
    read_intervals,
    read_matrix,
    read_vector,
    standardised,
)

SAMPLING = 0.95  # of ranges and intervals
LEAST_FOR_RISK = 200  # where chance alone moves L1-ERT by 0.03; of constant widths around uneven noise it is 0.08
LEAST_IN_PLACE = 50  # rows of a slab or cell; at level 0.9 chance alone moves the coverage of 50 rows by 0.04
RISKS = ("ert_l1", "ert_l1_over", "ert_l1_under", "ert_l2", "ert_l2_over", "ert_l2_under")
BLOCK = 2**20  # projections of rows at a time


# ---------------------------------------------------------------- groups


def evaluate_groups(
    y: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    by: Any,
    *,
    confidence_level: float,
    sample_weight: ArrayLike | None = None,
) -> dict[Any, dict[str, float]]:
    """Coverage, width and score of each group of rows.

    Parameters
    ----------
    y, lower, upper : array-like of shape (n,)
        Targets and intervals.
    by : array-like of shape (n,), or table of k bool columns
        Labels; or groups that may overlap: a data frame or a mapping of names to bools, or a bool array (n, k).
    confidence_level : float
        In (0, 1).
    sample_weight : array-like of shape (n,), optional
        How much each row counts.

    Returns
    -------
    dict of label to dict
        ``n`` rows, ``coverage`` with the ends ``coverage_from`` and ``coverage_to`` of its Wilson interval (95 %; with
        weights for ``(sum w)^2 / sum w^2`` rows), ``mean_width``, ``interval_score``. Labels are in order, rows without
        one at the end, as None; groups without a row are left out.
    """
    level = read_level(confidence_level)
    y, lower, upper = read_intervals(y, lower, upper)
    weights = None if sample_weight is None else read_weights(sample_weight, len(y))
    found = {}
    for label, rows in read_by(by, len(y)).items():
        w = None if weights is None else weights[rows]
        if w is not None and not w.any():
            raise ValueError(f"sample_weight is zero in every row of the group {label!r}: expected a weight above zero")
        share = mean_over_rows((lower[rows] <= y[rows]) & (y[rows] <= upper[rows]), w)
        counted = float(rows.sum()) if w is None else float((w / w.max()).sum() ** 2 / np.square(w / w.max()).sum())
        low, high = share_range(share * counted, counted).tolist()
        found[label] = {
            "n": float(rows.sum()),
            "coverage": share,
            "coverage_from": low,
            "coverage_to": high,
            "mean_width": mean_width(lower[rows], upper[rows], sample_weight=w),
            "interval_score": interval_score(y[rows], lower[rows], upper[rows], level, sample_weight=w),
        }
    return found


def read_by(by: Any, n_rows: int) -> dict[Any, BoolArray]:
    """Rows of each group that has some, by its label."""
    if hasattr(by, "columns") or isinstance(by, Mapping):
        names = list(by.columns if hasattr(by, "columns") else by)
        table = [np.asarray(by[name]) for name in names]
    else:
        table = list(np.asarray(by).T) if np.ndim(by) == 2 else []
        names = list(range(len(table)))
    if not table:
        return _rows_by_label(by, n_rows)
    for name, column in zip(names, table, strict=True):
        if column.dtype != bool or column.shape != (n_rows,):
            is_now = f"dtype {column.dtype} and shape {column.shape}"
            raise ValueError(f"by has a column {name!r} of {is_now}: expected bools of shape ({n_rows},), or labels")
    return {name: column for name, column in zip(names, table, strict=True) if column.any()}


def _rows_by_label(by: Any, n_rows: int) -> dict[Any, BoolArray]:
    labels = np.asarray(by, dtype=object)
    if labels.shape != (n_rows,):
        raise ValueError(f"by has shape {labels.shape}: expected one label per row, shape ({n_rows},), or a bool table")
    found: dict[Any, BoolArray] = {}
    for i, label in enumerate(labels.tolist()):
        # None, NaN and the missing values of data frames are equal to nothing
        missing = label is None or type(label).__name__ in ("NAType", "NaTType") or label != label  # noqa: PLR0124
        found.setdefault(None if missing else label, np.zeros(n_rows, dtype=bool))[i] = True
    last = {None: found.pop(None)} if None in found else {}
    try:
        return {label: found[label] for label in sorted(found)} | last
    except TypeError:  # labels of several types
        return {label: found[label] for label in sorted(found, key=str)} | last


# ---------------------------------------------------------------- places that are looked for


def evaluate_places(
    y: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    X: ArrayLike,
    *,
    confidence_level: float,
    X_learn: ArrayLike | None = None,
    random_state: RandomState = 0,
) -> dict[str, float]:
    """Excess risk, worst slab and gaps of cells as one row; 0.3 s for 1000 rows.

    Parameters
    ----------
    y, lower, upper, confidence_level, random_state
        As in `coverage_excess_risk`.
    X, X_learn
        As in `worst_slab_coverage`.

    Returns
    -------
    dict of str to float
        What `coverage_excess_risk` gives, ``worst_slab_coverage``, and what `cell_coverage_gap` gives; without those
        that there are too few rows for.
    """
    given = (y, lower, upper, X)
    row = {
        **coverage_excess_risk(*given, confidence_level, random_state=random_state),
        "worst_slab_coverage": worst_slab_coverage(*given, X_learn=X_learn, random_state=random_state),
        **cell_coverage_gap(*given, confidence_level, X_learn=X_learn, random_state=random_state),
    }
    return {name: value for name, value in row.items() if not np.isnan(value)}


def coverage_excess_risk(
    y: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    X: ArrayLike,
    confidence_level: float,
    *,
    classifier: Any = None,
    cv: int = 5,
    random_state: RandomState = 0,
) -> dict[str, float]:
    """Excess risk of the target coverage (ERT): by how much a classifier knows better than the level who is covered.

    With out-of-fold probabilities ``p_i`` of being covered

        L1-ERT = mean_i sign(p_i - c) (Z_i - c),        L2-ERT = mean_i [(c - Z_i)^2 - (p_i - Z_i)^2].

    If p is the coverage at each place these are the means of ``|p - c|`` and ``(p - c)^2``; of a classifier that knows
    less they are smaller, on average. About 0 or below: nothing found.

    Parameters
    ----------
    y, lower, upper, X : array-like of shape (n,), and (n, n_features)
        Targets and intervals of at least 200 test rows, and these.
    confidence_level : float
        ``c``, in (0, 1).
    classifier : classifier of scikit-learn, optional
        With ``predict_proba``; it is cloned. By default 50 extremely randomised trees with at least 20 rows in each
        leaf; boosting as it comes fits so much noise that its L2-ERT is below 0 for thousands of rows.
    cv : int
        Folds.
    random_state : int, Generator, RandomState or None
        Of folds and trees.

    Returns
    -------
    dict of str to float
        ``ert_l1`` and ``ert_l2``, and their sums over the rows with ``p > c`` (``ert_l1_over``, ``ert_l2_over``: places
        that are covered too often) and ``p < c`` (``_under``: not often enough), all divided by n.

    References
    ----------
    Braun, Holzmueller, Jordan, Bach (2025). Conditional Coverage Diagnostics for Conformal Prediction.
    arXiv:2512.11779.
    """
    c = read_level(confidence_level)
    y, lower, upper = read_intervals(y, lower, upper)
    X = read_matrix(X, "X", len(y))
    check("cv", cv, is_count(cv) and cv >= 2, "an integer >= 2")
    if _too_few("the excess risk of the coverage", len(y), LEAST_FOR_RISK, "chance would be most of it"):
        return dict.fromkeys(RISKS, nan)
    covered = (lower <= y) & (y <= upper)
    seed = _seed(random_state)
    made = ExtraTreesClassifier(50, min_samples_leaf=20, max_features=None, random_state=seed)
    made = made if classifier is None else classifier
    p = np.empty(len(y))
    with few_threads():
        for known, new in KFold(cv, shuffle=True, random_state=seed).split(X):
            if len(np.unique(covered[known])) == 1:  # which many classifiers refuse
                p[new] = covered[known[0]]
            else:
                p[new] = clone(made).fit(X[known], covered[known]).predict_proba(X[new])[:, 1]
    Z = covered.astype(float)
    parts = {"l1": np.sign(p - c) * (Z - c), "l2": np.square(c - Z) - np.square(p - Z)}
    found = {}
    for name, of_rows in parts.items():
        found[f"ert_{name}"] = float(of_rows.mean())
        found[f"ert_{name}_over"] = float(of_rows[p > c].sum() / len(y))
        found[f"ert_{name}_under"] = float(of_rows[p < c].sum() / len(y))
    return found


def worst_slab_coverage(
    y: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    X: ArrayLike,
    *,
    share: float = 0.1,
    n_directions: int = 1000,
    held_out: bool = True,
    random_state: RandomState = 0,
    X_learn: ArrayLike | None = None,
) -> float:
    """Coverage in the worst slab ``a <= v'x <= b``, chosen on one half of the rows and counted on the other.

    Both halves take both parts, and the rows in both slabs are counted together. The coverage among the rows that a
    slab was chosen on (``held_out=False``, the measure of MAPIE) is far below the level for perfect intervals, too.

    Parameters
    ----------
    y, lower, upper, X : array-like of shape (n,), and (n, n_features)
        Targets and intervals of the test rows, and these; ``share * n`` must be at least 50.
    share : float
        Least part of the rows in a slab, in (0, 1).
    n_directions : int
        How many v are drawn.
    held_out : bool
        Whether the slab is measured on other rows than it was chosen on.
    random_state : int, Generator, RandomState or None
        Of the directions, then of the halves.
    X_learn : array-like of shape (n_learn, n_features), optional
        Rows whose mean and standard deviation standardise the features; by default those of `X`.

    References
    ----------
    Cauchois, Gupta, Duchi (2021). Knowing what You Know. Journal of Machine Learning Research 22(81).
    """
    y, lower, upper = read_intervals(y, lower, upper)
    X = read_matrix(X, "X", len(y))
    check("share", share, is_fraction(share), "a number in (0, 1)")
    check("n_directions", n_directions, is_count(n_directions) and n_directions >= 1, "an integer >= 1")
    Z, rng = standardised(X, X_learn), generator(random_state)
    least = int(np.ceil(round(LEAST_IN_PLACE / share, 9)))
    if _too_few("the worst slab", len(y), least, f"a slab of {share:g} of them must hold {LEAST_IN_PLACE}"):
        return nan
    covered = (lower <= y) & (y <= upper)
    directions = rng.standard_normal((n_directions, X.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    with few_threads():
        if not held_out:
            return _worst_slab(Z, covered, directions, share)[0]
        halves = np.array_split(rng.permutation(len(y)), 2)
        hits = rows = 0
        for chosen, other in (halves, halves[::-1]):
            _, v, a, b = _worst_slab(Z[chosen], covered[chosen], directions, share)
            projected = np.einsum("ij,j->i", Z[other], v)  # of a row the same, however many there are
            inside = (a <= projected) & (projected <= b)
            hits, rows = hits + int(covered[other][inside].sum()), rows + int(inside.sum())
    return hits / rows if rows else nan


def _worst_slab(Z: Array, covered: BoolArray, directions: Array, share: float) -> tuple[float, Array, float, float]:
    """Least coverage of a slab with at least this share of the rows, its direction and its ends.

    With S the covered among the first rows along v, the least ratio ``t = (S_j - S_i) / (j - i)`` over ``j - i >= m``
    is where ``min_j [F_j - max_{i <= j - m} F_i] = 0`` for ``F_k = S_k - t k``: t falls to the ratio at the minimum
    until that is 0. Equal projections lie in the same slabs: no i and j between them.
    """
    n, m = len(Z), int(np.ceil(round(share * len(Z), 9)))
    best = (np.inf, directions[0], -np.inf, np.inf)
    count = np.arange(n + 1)
    for block in np.array_split(directions, -(-len(directions) * n // BLOCK)):
        projected = np.einsum("ij,kj->ki", Z, block)
        order = np.argsort(projected, axis=1)
        along = np.take_along_axis(projected, order, axis=1)
        S = np.zeros((len(block), n + 1))
        S[:, 1:] = np.cumsum(covered[order], axis=1)
        cut = np.ones((len(block), n + 1), dtype=bool)
        cut[:, 1:-1] = along[:, 1:] > along[:, :-1]
        t, i, j = S[:, -1] / n, np.zeros(len(block), dtype=int), np.full(len(block), n)
        open_ = np.arange(len(block))
        while len(open_):
            F = S[open_] - t[open_, None] * count
            starts = np.where(cut[open_], F, -np.inf)[:, : n - m + 1]
            drop = np.where(cut[open_], F, np.inf)[:, m:] - np.maximum.accumulate(starts, axis=1)
            at = np.argmin(drop, axis=1)
            better = drop[np.arange(len(open_)), at] < -1e-9  # rounding; ratios differ by more, times rows
            open_, starts, at = open_[better], starts[better], at[better]
            j[open_] = at + m
            i[open_] = np.argmax(np.where(np.arange(n - m + 1) <= at[:, None], starts, -np.inf), axis=1)
            t[open_] = (S[open_, j[open_]] - S[open_, i[open_]]) / (j[open_] - i[open_])
        k = int(np.argmin(t))
        if t[k] < best[0]:
            best = (float(t[k]), block[k], float(along[k, i[k]]), float(along[k, j[k] - 1]))
    return best


def cell_coverage_gap(
    y: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    X: ArrayLike,
    confidence_level: float,
    *,
    n_cells: int = 10,
    random_state: RandomState = 0,
    X_learn: ArrayLike | None = None,
) -> dict[str, float]:
    """Distance of the coverage of cells from the level: the mean of ``|coverage - c|``, cells weighted by their rows.

    Parameters
    ----------
    y, lower, upper, X : array-like of shape (n,), and (n, n_features)
        Targets and intervals of the test rows, at least 50 for each cell, and these.
    confidence_level : float
        ``c``, in (0, 1).
    n_cells : int
        Cells, by k-means of the test rows.
    random_state : int, Generator, RandomState or None
        Of k-means.
    X_learn : array-like of shape (n_learn, n_features), optional
        Rows whose mean and standard deviation standardise the features; by default those of `X`.

    Returns
    -------
    dict of str to float
        ``cell_gap``, and ``cell_gap_by_chance``, what is expected of it if every row is covered with probability c.
    """
    c = read_level(confidence_level)
    y, lower, upper = read_intervals(y, lower, upper)
    X = read_matrix(X, "X", len(y))
    check("n_cells", n_cells, is_count(n_cells) and n_cells >= 1, "an integer >= 1")
    Z = standardised(X, X_learn)
    why = f"{many(n_cells, 'cell')} must hold {LEAST_IN_PLACE} each on average"
    if _too_few("the gap of cells", len(y), LEAST_IN_PLACE * n_cells, why):
        return {"cell_gap": nan, "cell_gap_by_chance": nan}
    n_different = len(np.unique(Z, axis=0))
    with few_threads():
        cells = KMeans(min(n_cells, n_different), n_init=3, random_state=_seed(random_state)).fit_predict(Z)
    covered = (lower <= y) & (y <= upper)
    m, hits = np.bincount(cells), np.bincount(cells, weights=covered)
    # de Moivre: E|B - mc| = 2 v (1 - c) P(B = v) of a binomial B, v = floor(mc) + 1
    v = np.array([floor(round(rows * c, 9)) + 1 for rows in m.tolist()])
    by_chance = 2 * v * (1 - c) * stats.binom.pmf(v, m, c)
    return {
        "cell_gap": float(np.abs(hits - m * c).sum() / len(y)),
        "cell_gap_by_chance": float(by_chance.sum() / len(y)),
    }


def _too_few(what: str, n: int, least: int, why: str) -> bool:
    """Whether there are fewer rows than a measure needs, of which the user is warned."""
    if n < least:
        warn(f"too few rows for {what}: {n} of at least {least}, because {why}", TooFewRowsWarning)
    return n < least


def _seed(random_state: RandomState) -> int:
    """What scikit-learn takes; a number is itself."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(generator(random_state).choice(2**31))


# ---------------------------------------------------------------- beside the known law, and by chance


def coverage_gaps(
    lower: ArrayLike, upper: ArrayLike, Y_conditional: ArrayLike, confidence_level: float
) -> SidedMeasure:
    """Absolute coverage gaps (ACG) from samples of the conditional law at each point.

    ``ACG = mean_i |p(X_i) - (1-alpha)|`` with ``p(X_i)`` the share of the samples at ``X_i`` inside the interval; the
    lower and the upper version compare the shares of ``y >= lower`` and of ``y <= upper`` with ``1 - alpha/2``.

    ``combined`` is ``ACG^c``, the mean over the lower and upper gaps of all points.

    Parameters
    ----------
    lower, upper : array-like of shape (n_x,)
        Intervals at the points.
    Y_conditional : array-like of shape (n_x, n_y)
        Row i: targets drawn at point i.
    confidence_level : float
        ``1 - alpha``, in (0, 1).
    """
    level = read_level(confidence_level)
    lower, upper = read_bounds(lower, upper)
    Y = read_matrix(Y_conditional, "Y_conditional", len(lower))
    above, below = lower[:, None] <= Y, upper[:, None] >= Y
    side_level = (1 + level) / 2
    gap = float(np.abs(np.mean(above & below, axis=1) - level).mean())
    gap_lo = float(np.abs(above.mean(axis=1) - side_level).mean())
    gap_up = float(np.abs(below.mean(axis=1) - side_level).mean())
    return SidedMeasure(gap, gap_lo, gap_up, (gap_lo + gap_up) / 2)


def rmse_to_oracle(lower: ArrayLike, upper: ArrayLike, oracle_lower: ArrayLike, oracle_upper: ArrayLike) -> float:
    """``sqrt(mean_i[(l - l*)^2 + (u - u*)^2] / 2)``, the distance to the conditional quantiles.

    Parameters
    ----------
    lower, upper : array-like of shape (n,)
        Intervals; an infinite end makes the distance infinite.
    oracle_lower, oracle_upper : array-like of shape (n,)
        Conditional quantiles at ``alpha/2`` and ``1 - alpha/2``, finite.
    """
    lower, upper = read_bounds(lower, upper)
    best_lower = read_vector(oracle_lower, "oracle_lower", len(lower))
    best_upper = read_vector(oracle_upper, "oracle_upper", len(lower))
    check_size("oracle_lower", best_lower)
    check_size("oracle_upper", best_upper)
    squares = np.square(lower - best_lower) + np.square(upper - best_upper)
    return float(np.sqrt(squares.mean() / 2))


def coverage_range(levels: Array, n: int, n_calibration: int | None) -> tuple[Array, Array]:
    """Ends of the central 95 % (at least) of the coverage of n test rows, at each level."""
    tails, ranges = np.array([(1 - SAMPLING) / 2, (1 + SAMPLING) / 2]), []
    for level in levels:
        k = 0 if n_calibration is None else _rank(level, n_calibration)
        if n_calibration is None:
            hits = stats.binom.ppf(tails, n, level)
        elif k > n_calibration:  # no finite interval has the level: all are infinite
            hits = np.full(len(tails), float(n))
        else:
            cumulated = np.cumsum(stats.betabinom.pmf(np.arange(n + 1), n, k, n_calibration + 1 - k))
            hits = np.minimum(np.searchsorted(cumulated, tails), n).astype(float)
        ranges.append(hits / n)
    low, high = np.array(ranges).T
    return low, high


def long_run_coverage(level: float, n_calibration: int) -> tuple[float, float]:
    """Ends of the central 95 % of the coverage of all rows to come, a beta law; 1 and 1 if intervals are infinite.

    Exact without ties and for exchangeable rows.
    """
    k = _rank(level, n_calibration)
    if k > n_calibration:
        return 1.0, 1.0
    low, high = stats.beta.ppf([(1 - SAMPLING) / 2, (1 + SAMPLING) / 2], k, n_calibration + 1 - k).tolist()
    return low, high


def share_range(hits: ArrayLike, n: ArrayLike) -> Array:
    """Wilson's 95 % interval of the share ``hits / n``, both ends along the last axis."""
    hits, n = np.asarray(hits, dtype=float), np.asarray(n, dtype=float)
    z = float(ndtri((1 + SAMPLING) / 2))
    p = hits / n
    middle = p + z**2 / (2 * n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    ends: Array = np.stack([middle - half, middle + half], axis=-1) / (1 + z**2 / n)[..., None]
    return np.clip(ends, 0.0, 1.0)


def _rank(level: float, m: int) -> int:
    """Of the quantile among m scores; the rounding of 0.9 * 10 must not cost a rank."""
    return int(np.ceil(round(level * (m + 1), 9)))
