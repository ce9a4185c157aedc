"""The tuning criterion asks the conformal score: values by hand, floors of the training folds, searches."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import KFold

from sosbands import learn_bands
from sosbands.bands import penalty_scale
from sosbands.bands.views import RowFacts
from sosbands.conformal import SCORES
from sosbands.metrics import interval_score
from sosbands.tuning import Rules, rules, tune
from sosbands.tuning.rules import COARSE
from sosbands.tuning.search import CRITERIA, Candidate, HeldOut, Search, interval_score_at

EACH = Candidate("none", "inputs", 0.5, 10.0, 1.0, 1.0)


def held_out(n=60, seed=0):
    rng = np.random.default_rng(seed)
    below, above = rng.uniform(0.5, 2.0, (2, n))
    z = rng.gamma(1.5, size=n) - 1.5
    return HeldOut(below, above, z * np.where(z > 0, above, below))


def scaled(held):
    return replace(held, score=SCORES["scaled"].fitted(held.below.mean(), held.above.mean()))


def sample():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 1))
    return X, (0.2 + np.abs(X[:, 0])) * (rng.gamma(1.5, size=40) - 1.5)


def searched():
    X, r = sample()
    folds = tuple(held for _, held in KFold(4, shuffle=True, random_state=0).split(X))
    options = {"kernel": "matern52", "symmetry_kind": "training", "normalize": penalty_scale(X, r)}
    search = Search(RowFacts(X, np.zeros(40), {}), r, folds, options, COARSE)
    search.evaluate([EACH])
    return search


@pytest.mark.parametrize("level", [0.7, 0.8, 0.9])
def test_the_interval_score_of_scaled_bands_by_hand(level):
    held = scaled(held_out())
    m, r = 7.0, held.residuals
    S = np.maximum(-r / held.below, r / held.above)
    q = np.sort(S)[int(np.ceil(level * 61)) - 1]
    expected = interval_score(m + r, m - q * held.below, m + q * held.above, level)
    assert interval_score_at(held, level) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("level", [0.4, 0.8, 0.9])
def test_the_interval_score_of_added_bands_is_to_the_last_digit_that_of_widths_and_distances(level):
    held = held_out()
    folded = HeldOut(held.widths / 2, held.widths / 2, held.distances)
    assert interval_score_at(held, level) == interval_score_at(folded, level)


def test_hsic_and_dcor_do_not_ask_the_score():
    held = held_out()
    for name in ("hsic", "dcor"):
        assert CRITERIA[name](held) == CRITERIA[name](scaled(held))
    assert CRITERIA["interval-score"](held) != CRITERIA["interval-score"](scaled(held))


def test_a_factor_of_the_bands_changes_nothing_for_the_scaled_score_only():
    held = held_out()
    thrice = replace(held, below=3 * held.below, above=3 * held.above)
    assert CRITERIA["interval-score"](scaled(thrice)) == pytest.approx(CRITERIA["interval-score"](scaled(held)))
    assert CRITERIA["interval-score"](thrice) < CRITERIA["interval-score"](held) - 0.1


def test_each_score_prefers_the_bands_that_are_right_for_it():
    """Noise that is a scale times one law: bands of a third of the right size are right for the scaled score."""
    rng = np.random.default_rng(0)
    scale = rng.uniform(0.2, 3.0, 3000)
    r = scale * rng.standard_normal(3000)
    small, shifted = HeldOut(scale / 3, scale / 3, r), HeldOut(scale + 1, scale + 1, r)
    value = CRITERIA["interval-score"]
    assert value(scaled(small)) > value(scaled(shifted))
    assert value(small) < value(shifted)


def test_some_rows_keep_their_floors():
    held = scaled(held_out())
    some = held.take(np.array([3, 3, 5]))
    assert some.score.floors == held.score.floors
    np.testing.assert_array_equal(some.below, held.below[[3, 3, 5]])
    assert len(some) == 3


def test_floors_are_those_of_the_rows_that_were_learnt_from():
    search, (X, r) = searched(), sample()
    assert search.held_out(EACH, "added").score.name == "added"
    means = []
    for held in search.folds:
        others = np.setdiff1d(np.arange(40), held)
        settings = {"lengthscale": 0.5, "symmetry_penalty": 1.0, "normalize": search.options["normalize"]}
        bands = learn_bands(X[others], r[others], tol=COARSE.tol, rank=COARSE.ranks[0], **settings)
        assert bands.gap <= COARSE.tol
        means.append((bands.values_lower.mean(), bands.values_upper.mean()))
    assert search.held_out(EACH, "scaled").score.floors == pytest.approx(0.05 * np.mean(means, axis=0), rel=1e-9)


def test_floors_of_the_held_out_rows_would_be_others():
    """A broken rule that the test above must tell from the right one."""
    held = searched().held_out(EACH, "scaled")
    assert held.score.floors != pytest.approx((0.05 * held.below.mean(), 0.05 * held.above.mean()), rel=1e-3)


def test_a_search_by_each_score(monkeypatch):
    monkeypatch.setattr(rules, "PENALTIES", (0.0, 1.0, np.inf))
    monkeypatch.setattr(rules, "FACTORS", (0.3, 1.0))
    X, r = sample()
    options = {"cv": 3, "random_state": 0, "rules": Rules(symmetry_test="bootstrap", n_permutations=39)}
    plain, added, other = (
        tune(X, r, **each, **options) for each in ({}, {"conformal_score": "added"}, {"conformal_score": "scaled"})
    )
    values = [[row["criterion"] for row in report.evaluations] for report in (plain, added, other)]
    assert values[0] == values[1]
    assert not set(values[0]) & set(values[2])
    assert plain.symmetry == added.symmetry
    with pytest.raises(ValueError, match=r"conformal_score='times': expected one of \['added', 'scaled'\]"):
        tune(X, r, conformal_score="times")
