"""Groups, excess risk, slabs and cells: by hand, by brute force, against MAPIE, where the law is known, and refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, binomtest, norm
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeClassifier

from sosbands import metrics
from sosbands.exceptions import TooFewRowsWarning
from sosbands.metrics import local

C = 0.9


def sample(n=1000, d=2, seed=0):
    """Rows whose noise grows with the distance of their first feature from 0."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    sd = 0.3 + 1.4 * np.abs(X[:, 0])
    return X, sd, sd * rng.standard_normal(n)


def constant_width(sd):
    """Half a width that covers rows of these deviations with 90 % on average, and the coverage of each."""
    half = brentq(lambda w: np.mean(2 * norm.cdf(w / sd) - 1) - C, 0, 20)
    return half, 2 * norm.cdf(half / sd) - 1


def ends(half, n):
    return -np.full(n, half), np.full(n, half)


# ---------------------------------------------------------------- groups


Y = [0.0, 1.0, 2.0, 3.0, 4.0]
LOWER = [0.0, 2.0, 1.0, 0.0, 3.0]  # row 1: missed by 1
UPPER = [1.0, 3.0, 2.0, 2.5, 9.0]  # row 3: missed by 0.5


def test_groups_by_hand():
    found = metrics.evaluate_groups(Y, LOWER, UPPER, ["b", "a", "b", "a", "a"], confidence_level=0.8)
    assert list(found) == ["a", "b"]
    wilson = binomtest(1, 3).proportion_ci(method="wilson")
    expected = [3, 1 / 3, wilson.low, wilson.high, (1 + 2.5 + 6) / 3, (1 + 2.5 + 6 + 10 * 1.5) / 3]
    assert list(found["a"].values()) == pytest.approx(expected, rel=1e-12)
    assert found["b"]["coverage"] == 1
    weighted = metrics.evaluate_groups(
        Y, LOWER, UPPER, list("babaa"), confidence_level=0.8, sample_weight=[1, 1, 1, 0, 3]
    )
    low, high = local.share_range(0.75 * 1.6, 1.6)  # (1 + 3)^2 / (1 + 9) rows
    expected = [3, 0.75, low, high, (1 + 3 * 6) / 4, (1 + 10 + 3 * 6) / 4]
    assert list(weighted["a"].values()) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "table",
    [
        {"all": np.ones(5, bool), "none": np.zeros(5, bool), "last": np.arange(5) > 1},
        pd.DataFrame({"all": np.ones(5, bool), "none": np.zeros(5, bool), "last": np.arange(5) > 1}),
        np.column_stack([np.ones(5, bool), np.zeros(5, bool), np.arange(5) > 1]),
    ],
)
def test_groups_may_overlap(table):
    found = metrics.evaluate_groups(Y, LOWER, UPPER, table, confidence_level=0.8)
    first, last = found  # a group without rows is left out
    assert (first, last) == ((0, 2) if isinstance(table, np.ndarray) else ("all", "last"))
    assert found[first]["coverage"] == 0.6
    assert found[last]["mean_width"] == pytest.approx((1 + 2.5 + 6) / 3)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([2, 10, 2, 10, None], [2, 10, None]),
        (np.array([0.5, np.nan, 0.5, 0.5, np.nan]), [0.5, None]),
        (pd.Series(["b", pd.NA, "a", "b", "b"], dtype="string"), ["a", "b", None]),
        (np.array([True, False] * 2 + [True]), [False, True]),
        (["x", 1, "x", 1, 1], [1, "x"]),
    ],
)
def test_labels_are_in_order_and_missing_ones_last(labels, expected):
    found = metrics.evaluate_groups(Y, LOWER, UPPER, labels, confidence_level=0.8)
    assert list(found) == expected
    assert sum(each["n"] for each in found.values()) == 5


@pytest.mark.parametrize(
    ("by", "weight", "message"),
    [
        (["a"] * 4, None, r"by has shape \(4,\): expected one label per row"),
        ("a", None, r"by has shape \(\): expected one label"),
        (
            {"a": [1, 0, 0, 0, 1]},
            None,
            r"by has a column 'a' of dtype int64 and shape \(5,\): expected bools of",
        ),
        (np.ones((5, 2)), None, "by has a column 0 of dtype float64"),
        (list("aabbb"), [0, 0, 1, 1, 1], "sample_weight is zero in every row of the group 'a'"),
    ],
)
def test_bad_groups_are_named(by, weight, message):
    with pytest.raises(ValueError, match=message):
        metrics.evaluate_groups(Y, LOWER, UPPER, by, confidence_level=0.8, sample_weight=weight)


# ---------------------------------------------------------------- excess risk


class Known(ClassifierMixin, BaseEstimator):
    """Probabilities that are the second column of X."""

    def fit(self, X, y):  # noqa: ARG002
        self.classes_ = np.array([False, True])
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 1], X[:, 1]])


def test_the_excess_risk_by_hand():
    p, Z = np.repeat([0.5, 0.8, 0.9, 1.0], 50), np.tile([1.0, 1.0, 1.0, 1.0, 0.0], 40)
    X = np.column_stack([np.zeros(200), p])
    found = metrics.coverage_excess_risk(1 - Z, np.zeros(200), np.full(200, 0.5), X, 0.8, classifier=Known())
    # each p has 40 covered and 10 missed rows; 1/4 of the rows each: p < c in the first, = c in the second, else > c
    of_p = {
        value: (C8 := 0.8 * 0.04 + 0.2 * 0.64, 0.8 * (1 - value) ** 2 + 0.2 * value**2) for value in (0.5, 0.9, 1.0)
    }
    gain = {value: constant - own for value, (constant, own) in of_p.items()}
    assert pytest.approx(0.16) == C8
    expected = {
        "ert_l1": 0.0,
        "ert_l1_over": 0.0,
        "ert_l1_under": 0.0,  # coverage is 0.8 wherever p is
        "ert_l2": sum(gain.values()) / 4,
        "ert_l2_over": (gain[0.9] + gain[1.0]) / 4,
        "ert_l2_under": gain[0.5] / 4,
    }
    assert found == pytest.approx(expected, abs=1e-12)
    same = metrics.coverage_excess_risk(1 - Z, np.zeros(200), np.full(200, 0.5), X, 0.75, classifier=Known())
    # (Z - c) is 0.05 on average: with the sign of p - c, in the 3 of 4 parts with p > c and the one below
    assert same["ert_l1_over"] == pytest.approx(0.05 * 3 / 4)
    assert same["ert_l1_under"] == pytest.approx(-0.05 / 4)
    assert same["ert_l1"] == pytest.approx(0.05 / 2)


def test_a_classifier_that_knows_the_law_finds_the_distance_from_the_level():
    X, sd, y = sample(200_000)
    half, p = constant_width(sd)
    found = metrics.coverage_excess_risk(y, *ends(half, len(y)), np.column_stack([X[:, 0], p]), C, classifier=Known())
    assert found["ert_l1"] == pytest.approx(np.abs(p - C).mean(), rel=0.03)
    assert found["ert_l2"] == pytest.approx(np.square(p - C).mean(), rel=0.06)
    assert found["ert_l1_under"] == pytest.approx(np.maximum(C - p, 0).mean(), rel=0.06)


def test_the_default_finds_uneven_coverage_and_nothing_where_there_is_none():
    rows = []
    for seed in range(4):
        X, sd, y = sample(1000, seed=seed)
        half, p = constant_width(sd)
        even = norm.ppf((1 + C) / 2) * sd
        at_all = metrics.coverage_excess_risk(y, -even, even, X, C)
        found = metrics.coverage_excess_risk(y, *ends(half, 1000), X, C)
        assert found == metrics.coverage_excess_risk(y, *ends(half, 1000), X, C, random_state=0)
        rows.append([at_all["ert_l1"], at_all["ert_l2"], found["ert_l1"], found["ert_l2"]])
    truth = [0, 0, np.abs(p - C).mean(), np.square(p - C).mean()]
    np.testing.assert_allclose(np.mean(rows, axis=0), truth, atol=0.02)
    assert np.mean(rows, axis=0)[3] > 0.5 * truth[3] > 0


def test_rows_that_are_all_covered_need_no_classifier():
    found = metrics.coverage_excess_risk(np.zeros(200), np.zeros(200), np.ones(200), np.zeros((200, 1)), C)
    assert found["ert_l1"] == found["ert_l1_over"] == pytest.approx(0.1)
    assert found["ert_l2"] == pytest.approx(0.01)
    assert found["ert_l1_under"] == 0


# ---------------------------------------------------------------- slabs


def brute_slab(Z, covered, directions, share):
    """Least coverage over every pair of ends."""
    m, least = int(np.ceil(share * len(Z))), 1.0
    for v in directions:
        at = Z @ v
        for a in at:
            for b in at[at >= a]:
                inside = (a <= at) & (at <= b)
                if inside.sum() >= m:
                    least = min(least, covered[inside].mean())
    return least


def check_slabs(worst_slab):
    rng = np.random.default_rng(0)
    for case in range(40):
        n, d = int(rng.integers(5, 30)), int(rng.integers(1, 3))
        Z = rng.standard_normal((n, d)) if case % 2 else rng.integers(0, 4, (n, d)).astype(float)  # with ties
        covered = rng.uniform(size=n) < 0.7
        directions = rng.standard_normal((4, d)) if case % 2 else np.eye(d)
        share = float(rng.choice([0.1, 0.2, 0.34]))
        least, v, a, b = worst_slab(Z, covered, directions, share)
        inside = (a - 1e-9 <= Z @ v) & (Z @ v <= b + 1e-9)  # another sum than that of the ends
        assert least == pytest.approx(brute_slab(Z, covered, directions, share), abs=1e-12)
        assert covered[inside].mean() == pytest.approx(least, abs=1e-12)
        assert inside.sum() >= share * n


def test_slabs_against_all_pairs_of_ends(monkeypatch):
    check_slabs(local._worst_slab)
    monkeypatch.setattr(local, "BLOCK", 50)  # directions in several blocks
    check_slabs(local._worst_slab)


@pytest.mark.parametrize("broken", ["cuts between ties", "short slabs", "one direction"])
def test_the_check_of_slabs_rejects_broken_ones(broken):
    def worst_slab(Z, covered, directions, share):
        if broken == "cuts between ties":
            Z = Z + 1e-9 * np.arange(len(Z))[:, None]
        if broken == "short slabs":
            share /= 2
        return local._worst_slab(Z, covered, directions[: 1 if broken == "one direction" else None], share)

    with pytest.raises(AssertionError):
        check_slabs(worst_slab)


def test_the_worst_slab_is_measured_on_other_rows():
    rows = []
    for seed in range(4):
        X, sd, y = sample(1000, seed=seed)
        even, (half, _) = norm.ppf((1 + C) / 2) * sd, constant_width(sd)
        for lower, upper in ((-even, even), ends(half, 1000)):
            of = [metrics.worst_slab_coverage(y, lower, upper, X, held_out=out) for out in (True, False)]
            rows.append(of)
    right, constant = np.mean(rows[::2], axis=0), np.mean(rows[1::2], axis=0)
    assert right[0] == pytest.approx(C, abs=0.03)  # nothing is wrong anywhere
    assert right[1] < 0.83  # what was chosen for its misses looks wrong
    assert constant[0] < right[0] - 0.08
    again = metrics.worst_slab_coverage(y, lower, upper, X * [1000.0, 1.0], X_learn=X * [1000.0, 1.0])
    assert again == pytest.approx(rows[-1][0], abs=0.01)  # standardised
    assert metrics.worst_slab_coverage(y, lower, upper, X, random_state=1) != rows[-1][0]


# ---------------------------------------------------------------- cells


def test_cells_by_hand():
    X = np.repeat([[0.0], [10.0], [20.0]], [30, 60, 60], axis=0)
    y = np.concatenate([np.repeat([0.0, 2.0], [24, 6]), np.repeat([0.0, 2.0], [60, 0]), np.repeat([0.0, 2.0], [54, 6])])
    found = metrics.cell_coverage_gap(y, np.zeros(150), np.ones(150), X, C, n_cells=3)
    assert found["cell_gap"] == pytest.approx((30 * 0.1 + 60 * 0.1 + 0) / 150)
    k = np.arange(61)
    by_chance = [np.sum(binom.pmf(k, m, C) * np.abs(k / m - C)) * m / 150 for m in (30, 60, 60)]
    assert found["cell_gap_by_chance"] == pytest.approx(sum(by_chance), rel=1e-10)
    alike = metrics.cell_coverage_gap(y, np.zeros(150), np.ones(150), np.zeros((150, 1)), C, n_cells=3)
    assert alike["cell_gap"] == pytest.approx(abs(138 / 150 - C))  # one place, one cell


def test_cells_find_what_is_more_than_chance():
    found = []
    for seed in range(6):
        X, sd, y = sample(1000, seed=seed)
        even, (half, _) = norm.ppf((1 + C) / 2) * sd, constant_width(sd)
        found += [metrics.cell_coverage_gap(y, *given, X, C) for given in ((-even, even), ends(half, 1000))]
    of = np.array([each["cell_gap"] for each in found])
    chance = np.mean([each["cell_gap_by_chance"] for each in found])
    assert of[::2].mean() == pytest.approx(chance, abs=0.006)
    assert of[1::2].mean() > 2 * chance


# ---------------------------------------------------------------- all of them


def test_measures_of_places_are_one_row_and_deterministic():
    X, sd, y = sample(500)
    given = (y, *ends(2.0, 500), X)
    row = metrics.evaluate_places(*given, confidence_level=C, X_learn=X[:100], random_state=3)
    expected = metrics.coverage_excess_risk(*given, C, random_state=3)
    expected |= {"worst_slab_coverage": metrics.worst_slab_coverage(*given, X_learn=X[:100], random_state=3)}
    expected |= metrics.cell_coverage_gap(*given, C, X_learn=X[:100], random_state=3)
    assert row == expected
    assert len(row) == 9
    source = [np.random.default_rng(1), np.random.default_rng(1)]
    one, other = (metrics.evaluate_places(*given, confidence_level=C, random_state=each) for each in source)
    assert one == other != row


def test_too_few_rows_are_told_with_the_reason():
    X, _, y = sample(499)

    def of(n):
        return (y[:n], *ends(1.0, n), X[:n])

    with pytest.warns(TooFewRowsWarning, match="excess risk of the coverage: 199 of at least 200, because") as seen:
        assert all(np.isnan(value) for value in metrics.coverage_excess_risk(*of(199), C).values())
    assert seen[0].filename == __file__
    with pytest.warns(TooFewRowsWarning, match=r"499 of at least 500, because a slab of 0\.1 of them must hold 50"):
        assert np.isnan(metrics.worst_slab_coverage(*of(499)))
    with pytest.warns(TooFewRowsWarning, match="499 of at least 500, because 10 cells must hold 50 each on average"):
        assert np.isnan(metrics.cell_coverage_gap(*of(499), C)["cell_gap"])
    with pytest.warns(TooFewRowsWarning) as seen:
        row = metrics.evaluate_places(*of(499), confidence_level=C)
    assert list(row) == list(local.RISKS)
    assert len(seen) == 2
    assert metrics.worst_slab_coverage(*of(250), share=0.2) <= 1
    assert metrics.cell_coverage_gap(*of(250), C, n_cells=5)["cell_gap"] >= 0


@pytest.mark.parametrize(
    ("function", "more", "message"),
    [
        (metrics.coverage_excess_risk, {"confidence_level": 90}, "confidence_level=90: expected"),
        (metrics.coverage_excess_risk, {"confidence_level": C, "cv": 1}, "cv=1: expected an integer >= 2"),
        (metrics.worst_slab_coverage, {"share": 1}, "share=1: expected a number in"),
        (metrics.worst_slab_coverage, {"n_directions": 0}, "n_directions=0: expected"),
        (metrics.worst_slab_coverage, {"X_learn": [[0.0, 1.0]]}, "X_learn has 2 features: expected 1"),
        (metrics.cell_coverage_gap, {"confidence_level": C, "n_cells": 0}, "n_cells=0: expected"),
        (metrics.cell_coverage_gap, {"confidence_level": 0}, "confidence_level=0: expected"),
        (metrics.evaluate_groups, {"by": ["a"], "confidence_level": 0}, "confidence_level=0: expected"),
    ],
)
def test_bad_arguments_are_named(function, more, message):
    X = () if "by" in more else ([[0.0]],)
    with pytest.raises(ValueError, match=message):
        function([0.0], [0.0], [1.0], *X, **more)


# ---------------------------------------------------------------- what others say


def cases():
    """A hundred samples, numbers of rows that five folds divide, and a classifier for each."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n, d, level = int(rng.integers(100, 240)) * 5, int(rng.integers(1, 6)), float(rng.choice([0.5, 0.8, 0.9, 0.95]))
        X = rng.standard_normal((n, d))
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        y = rng.standard_normal(n) * (1 + np.abs(X[:, 0]))
        lower, upper = ends(np.quantile(np.abs(y), level), n)
        kind, settings = LogisticRegression, {}
        if seed % 2:
            kind, settings = DecisionTreeClassifier, {"min_samples_leaf": 15, "random_state": 0}
        yield seed, level, (y, lower, upper, X), kind, settings


def test_a_hundred_cases_against_mapie():
    pytest.importorskip("covmetrics", reason="needs covmetrics, and PyTorch with it: pip install covmetrics")
    conditional = pytest.importorskip("mapie.metrics.conditional", reason="needs mapie: pip install mapie")
    from covmetrics import losses

    of_losses = {"ert_l1": losses.L1_miscoverage, "ert_l2": losses.brier_score}
    of_losses |= {"ert_l1_over": losses.L1_miscoverage_over, "ert_l1_under": losses.L1_miscoverage_under}
    of_losses |= {"ert_l2_over": losses.brier_score_over, "ert_l2_under": losses.brier_score_under}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed, level, given, kind, settings in cases():
            y, lower, upper, X = given
            both = {"y_intervals": np.column_stack([lower, upper])}
            found = metrics.coverage_excess_risk(*given, level, classifier=kind(**settings), random_state=seed)
            model = {**both, "model_cls": kind, "model_kwargs": settings, "random_state": seed}
            for name, loss in of_losses.items():
                wanted = conditional.excess_risk_target_coverage(X, y, level, loss=loss, **model)
                assert found[name] == pytest.approx(wanted, abs=1e-14)
            share = (0.1, 0.15, 0.2)[seed % 3]
            one = metrics.worst_slab_coverage(*given, share=share, n_directions=20, held_out=False, random_state=seed)
            wanted = conditional.worst_slab_coverage(X, y, delta=share, n_directions=20, random_state=seed, **both)
            assert one == pytest.approx(wanted, abs=1e-14)
            cells = KMeans(10, n_init=3, random_state=seed).fit_predict(X).astype(int)
            wanted = conditional.coverage_gap(y, cells, level, weighted=True, **both)
            gap = metrics.cell_coverage_gap(*given, level, random_state=seed)["cell_gap"]
            assert gap == pytest.approx(wanted, abs=1e-14)


def check_risk(risk):
    """The same without MAPIE: folds and losses written out, on ten of those cases."""
    for seed, level, given, kind, settings in [case for case in cases() if case[0] < 10]:
        y, lower, upper, X = given
        Z, p = (lower <= y) & (y <= upper), np.empty(len(y))
        for known, new in KFold(5, shuffle=True, random_state=seed).split(X):
            p[new] = kind(**settings).fit(X[known], Z[known]).predict_proba(X[new])[:, 1]
        found = risk(*given, level, classifier=kind(**settings), random_state=seed)
        gains = [(abs(level - z), abs(q - z)) for z, q in zip(Z, p, strict=True)]
        assert found["ert_l2"] == pytest.approx(np.mean([a**2 - b**2 for a, b in gains]), abs=1e-12)
        l1 = [0 if q == level else (z - level if q > level else level - z) for z, q in zip(Z, p, strict=True)]
        assert found["ert_l1"] == pytest.approx(np.mean(l1), abs=1e-12)
        assert found["ert_l1_over"] == pytest.approx(np.sum(np.where(p > level, l1, 0)) / len(y), abs=1e-12)
        for kind_of in ("l1", "l2"):
            parts = found[f"ert_{kind_of}_over"] + found[f"ert_{kind_of}_under"]
            assert found[f"ert_{kind_of}"] == pytest.approx(parts, abs=1e-12)


def test_the_excess_risk_written_out():
    check_risk(metrics.coverage_excess_risk)


@pytest.mark.parametrize("broken", ["known rows", "swapped parts"])
def test_the_check_of_the_risk_rejects_broken_ones(broken):
    def risk(y, lower, upper, X, level, *, classifier, random_state):
        found = metrics.coverage_excess_risk(
            y, lower, upper, X, level, classifier=classifier, random_state=random_state
        )
        if broken == "swapped parts":
            return {**found, "ert_l1_over": found["ert_l1_under"], "ert_l1_under": found["ert_l1_over"]}
        Z = (lower <= y) & (y <= upper)
        p = classifier.fit(X, Z).predict_proba(X)[:, 1]  # of rows that it has learnt from
        gain = np.square(level - Z) - np.square(p - Z)
        parts = {"ert_l2_over": gain[p > level].sum() / len(y), "ert_l2_under": gain[p < level].sum() / len(y)}
        return {**found, "ert_l2": gain.mean(), **parts}

    with pytest.raises(AssertionError):
        check_risk(risk)
