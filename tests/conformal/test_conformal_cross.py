"""Cross-conformal intervals: the order statistic against sorting, the intervals against a transcription of CV+."""

import math

import numpy as np
import pytest

from sosbands.conformal import Band, Calibration, conformal_quantile, interval, lower_scores, upper_scores
from sosbands.conformal import cross as module
from sosbands.conformal.cross import cross_intervals, proven_coverage, ranked_reach, without_crossing

INF = np.inf


def ends_of(offsets, units, lists):
    """All ends of each row, sorted, from nothing but the definition; a unit 0 moves by 0, or by inf."""
    rows = []
    for offset, unit in zip(offsets, units, strict=True):
        found = []
        for k, scores in enumerate(lists):
            for s in scores:
                distance = (INF if s == INF else 0.0) if unit[k] == 0 else s * unit[k]
                found.append(offset[k] + distance)
        rows.append(sorted(found))
    return np.array(rows)


def random_lists(rng, kind, n, n_lists):
    sizes = rng.multinomial(n, rng.dirichlet(np.ones(n_lists)))  # some of them empty
    lists = []
    for size in sizes:
        scores = rng.normal(size=size) if kind == "continuous" else rng.integers(-3, 4, size).astype(float)
        if kind == "infinite":
            scores = np.where(rng.uniform(size=size) < 0.2, rng.choice([-INF, INF], size), scores)
        lists.append(np.sort(scores))
    return lists


@pytest.mark.parametrize("kind", ["continuous", "ties", "infinite"])
@pytest.mark.parametrize("n", [1, 7, 60, 700])
def test_the_order_statistic_is_that_of_sorting_all_ends(kind, n):
    rng = np.random.default_rng(n)
    for _ in range(12):
        n_lists = int(rng.integers(1, 7))
        lists = random_lists(rng, kind, n, n_lists)
        whole = kind == "ties"
        offsets = rng.integers(-2, 3, (4, n_lists)).astype(float) if whole else rng.normal(size=(4, n_lists))
        units = rng.integers(0, 3, (4, n_lists)) if whole else rng.exponential(size=(4, n_lists))
        units = units * rng.choice([0.0, 1.0, 1e-18], (4, n_lists))
        expected = ends_of(offsets, units, lists)
        for rank in {1, n, (n + 1) // 2, int(rng.integers(1, n + 1))}:
            found = ranked_reach(offsets, units, lists, rank)
            np.testing.assert_allclose(found, expected[:, rank - 1], rtol=2e-15, atol=1e-14)
        assert np.array_equal(ranked_reach(offsets, units, lists, n + 1), np.full(4, INF))


def test_the_bracket_gives_the_same_bits_as_sorting(monkeypatch):
    rng = np.random.default_rng(0)
    for kind in ("continuous", "ties", "infinite"):
        lists = random_lists(rng, kind, 900, 5)
        offsets, units = rng.normal(size=(40, 5)), rng.exponential(size=(40, 5))
        ranks = (1, 30, 450, 810, 900)
        found = [ranked_reach(offsets, units, lists, rank) for rank in ranks]
        with monkeypatch.context() as patch:
            patch.setattr(module, "isqrt", lambda _: 1)  # every score is chosen: no bracket
            assert all(
                np.array_equal(each, ranked_reach(offsets, units, lists, rank))
                for each, rank in zip(found, ranks, strict=True)
            )
        monkeypatch.setattr(module, "CELLS", 1000)  # a few rows at a time
        again = [ranked_reach(offsets, units, lists, rank) for rank in ranks]
        assert np.array_equal(found, again)


def test_few_of_the_ends_of_a_row_are_looked_at(monkeypatch):
    """Of 100 000 scores a row needs some 2000 ends, also where all of them are alike."""
    rng, looked_at = np.random.default_rng(0), []
    real = module._end

    def counting(offset, score, unit):
        looked_at.append(np.broadcast(offset, score, unit).size)
        return real(offset, score, unit)

    monkeypatch.setattr(module, "_end", counting)
    for scores in (np.sort(rng.normal(size=20_000)), np.zeros(20_000), np.repeat([-1.0, 0.0, 5.0], [9000, 2000, 9000])):
        looked_at.clear()
        found = ranked_reach(np.arange(5.0)[None], np.ones((1, 5)), [scores] * 5, 90_000)
        expected = np.sort(np.add.outer(np.arange(5.0), scores).ravel())[89_999]
        assert found == pytest.approx(expected, abs=1e-14)
        assert sum(looked_at) < 2500


# ---------------------------------------------------------------- intervals


def problem(rng, n=57, n_new=9, n_folds=4, kind="continuous"):
    folds = rng.permutation(np.arange(n) % n_folds)
    y = rng.normal(size=n) if kind == "continuous" else rng.integers(-2, 3, n).astype(float)
    known = [random_band(rng, n, kind) for _ in range(n_folds)]
    scores = np.empty((2, n))
    for k, band in enumerate(known):
        scores[:, folds == k] = np.stack([lower_scores(band, y), upper_scores(band, y)])[:, folds == k]
    groups = rng.choice(["a", "b"], n)
    return [random_band(rng, n_new, kind) for _ in range(n_folds)], Calibration(*scores, groups), folds, groups


def random_band(rng, n, kind):
    lower, upper = np.sort(rng.normal(size=(2, n)), axis=0)
    units = rng.exponential(size=(2, n)) + 0.1
    if kind == "ties":
        lower, upper, units = np.round(lower), np.round(upper), rng.integers(0, 3, (2, n)).astype(float)
    return Band(lower, upper, *units)


def cv_plus(bands, calibration, folds, level, kind, share=0.5, new_group=None):
    """The formula, word for word: one row, one end, one sum at a time."""
    alpha = 1 - level
    ends = np.empty((len(bands[0]), 2))
    for j in range(len(bands[0])):
        rows = range(len(folds)) if new_group is None else np.flatnonzero(calibration.groups == new_group[j])
        below, above = [], []
        for i in rows:
            band = bands[folds[i]]
            pair = calibration.lower_scores[i], calibration.upper_scores[i]
            low, up = (max(pair), max(pair)) if kind == "symmetric" else pair
            moved = [
                (INF if s == INF else 0.0) if unit[j] == 0 else s * unit[j]
                for s, unit in zip((low, up), band.units, strict=True)
            ]
            below.append(band.lower[j] - moved[0])
            above.append(band.upper[j] + moved[1])
        n = len(below)
        a_lo, a_up = (alpha, alpha) if kind == "symmetric" else (share * alpha, (1 - share) * alpha)
        k_lo = math.floor(a_lo * (n + 1) + 1e-9)  # floor(alpha (n + 1))-th smallest
        k_up = math.ceil((1 - a_up) * (n + 1) - 1e-9)
        ends[j] = sorted(below)[k_lo - 1] if k_lo >= 1 else -INF, sorted(above)[k_up - 1] if k_up <= n else INF
    return ends


@pytest.mark.parametrize("ties", ["continuous", "ties"])
@pytest.mark.parametrize(("kind", "share"), [("symmetric", 0.5), ("asymmetric", 0.5), ("asymmetric", 0.2)])
def test_intervals_are_those_of_the_formula(ties, kind, share):
    rng = np.random.default_rng(3)
    bands, calibration, folds, _ = problem(rng, kind=ties)
    labels = rng.choice(["a", "b"], len(bands[0]))
    for level in (0.3, 0.8, 0.9, 0.995):
        found = cross_intervals(bands, calibration, folds, level, kind, share)
        np.testing.assert_allclose(found, cv_plus(bands, calibration, folds, level, kind, share), atol=1e-13)
        by_group = cross_intervals(bands, calibration, folds, level, kind, share, labels)
        expected = cv_plus(bands, calibration, folds, level, kind, share, labels)
        np.testing.assert_allclose(by_group, expected, atol=1e-13)
    assert np.isinf(found).all()  # 57 rows are too few for the last level


def test_copies_that_are_all_alike_give_the_interval_of_split_calibration():
    rng = np.random.default_rng(1)
    band = random_band(rng, 200, "continuous")
    calibration = Calibration(rng.normal(size=83), rng.normal(size=83))
    folds = np.arange(83) % 5
    for level in (0.5, 0.9, 0.985, 0.99):
        q = conformal_quantile(calibration.scores("symmetric"), level)
        expected, crossed = interval(band, q, q)
        found = cross_intervals([band] * 5, calibration, folds, level, "symmetric")
        assert np.array_equal(found[~crossed], expected[~crossed])


def test_ends_that_cross_become_their_midpoint():
    ends = np.array([[0.0, 1.0], [2.0, 1.0], [INF, 1.0], [3.0, -INF], [-INF, INF], [-INF, 2.0]])
    band = Band(np.full(6, 4.0), np.full(6, 8.0))
    found, crossed = without_crossing(ends, band)
    assert crossed.tolist() == [False, True, True, True, False, False]
    assert found.tolist() == [[0, 1], [1.5, 1.5], [6, 6], [6, 6], [-INF, INF], [-INF, 2]]


# ---------------------------------------------------------------- what is proven


def test_proven_coverage_by_hand():
    assert proven_coverage(0.9, 100, 5) == pytest.approx(0.8 - 8 / 105)  # 2 (1 - 1/5)/(100/5 + 1)
    assert proven_coverage(0.9, 103, 5) == pytest.approx(0.8 - 8 / 108)  # folds of unequal size
    assert proven_coverage(0.9, 50, 50) == pytest.approx(0.8)  # the jackknife+
    assert proven_coverage(0.95, 60, 30) == pytest.approx(0.9 - 0.5 / 31)
    assert proven_coverage(0.5, 10, 5) == 0.0
