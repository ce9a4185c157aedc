"""The automatic choice: values by hand, what it finds, its limits of time, and the words of its report."""

from dataclasses import replace
from time import perf_counter

import numpy as np
import pytest
from sklearn.utils import check_random_state

from sosbands import learn_bands
from sosbands.bands import PenaltyScale
from sosbands.bands.views import RowFacts
from sosbands.conformal import conformal_quantile
from sosbands.metrics import interval_score
from sosbands.tuning import Automatic, choose
from sosbands.tuning.automatic import COARSE, SEARCH_ROWS
from sosbands.tuning.report import reasons_of
from sosbands.tuning.search import Candidate, Search, held_out_folds

OPTIONS = {"kernel": "matern52", "constant": True}
ALL = Automatic(("model", "forest", "none"), ("inputs", "prediction"), ("added", "scaled"))
N = 150
RNG = np.random.default_rng(4)
X = RNG.uniform(-1, 1, (N, 2))
SCALE = 0.3 + (X[:, 0] > 0)
NORMAL = RNG.standard_normal(N)
GAMMA = RNG.gamma(1.5, size=N) - 1.5
USELESS = RNG.uniform(0.5, 2, N)


def facts(**scales):
    return RowFacts(X, X[:, 1], scales)


def chosen(known, r, choices=None, **options):
    choices = choices or replace(ALL, base_scales=(*known.scales, "none"))
    return choose(known, r, choices, options=OPTIONS, cv=4, random_state=check_random_state(0), **options)


def searcher(known, r, choices=ALL, coarse=COARSE, **options):
    """A policy that has begun, with its search."""
    policy = replace(choices)
    policy.begin(Search(known, r, held_out_folds(len(r), 4, check_random_state(0)), OPTIONS, coarse, **options))
    return policy


@pytest.mark.parametrize("base", ["none", "model"])
@pytest.mark.parametrize("penalty", [np.inf, 0.0])
def test_the_value_of_a_candidate_by_hand(base, penalty):
    """Bands of the other folds in units of the base scale, calibrated on all held-out rows, scored in units of y."""
    r = SCALE * GAMMA
    policy = searcher(facts(model=SCALE, forest=USELESS), r, coarse=COARSE._replace(tol=1e-7))  # solves start elsewhere
    search = policy.search
    candidate = Candidate(base, "inputs", 0.8, 30.0, 0.9, penalty)
    search.evaluate([candidate])
    s = SCALE if base == "model" else np.ones(N)
    z = r / s
    below, above = np.zeros(N), np.zeros(N)
    scale = PenaltyScale.of_residuals(z)
    for held in search.folds:
        rest = np.setdiff1d(np.arange(N), held)
        settings = {"lengthscale": 0.8, "width_penalty": 30.0, "learning_coverage": 0.9, "symmetry_penalty": penalty}
        coarse = {"rank": COARSE.ranks[0], "tol": 1e-7}
        bands = learn_bands(X[rest], z[rest], normalize=scale, **settings, **OPTIONS, **coarse)
        below[held], above[held] = bands.lower(X[held]), bands.upper(X[held])
    scores = []
    assert policy.levels == pytest.approx((0.8, 0.9, 0.95))
    for level in policy.levels:
        q = conformal_quantile(np.maximum(-z - below, z - above), level)
        scores.append(interval_score(r, -s * (below + q), s * (above + q), level))
    added, scaled = policy.choices_of(candidate)
    assert added.conformal_score == "added"
    assert added.value == pytest.approx(-np.mean(np.log(scores)), rel=1e-4)
    assert scaled.value != added.value


def test_the_true_scale_is_chosen_and_a_useless_one_is_not():
    report = chosen(facts(model=SCALE, forest=USELESS), SCALE * NORMAL)
    assert report.base_scale == "model"
    assert report.symmetry_penalty == np.inf
    assert any(reason.startswith("base scale model: ") and reason.endswith(" % worse") for reason in report.reasons)
    best = max(row["criterion"] for row in report.evaluations)
    mine = [row for row in report.evaluations if row["base_scale"] == "model"]
    assert max(row["criterion"] for row in mine) == best
    assert report.sentence.startswith("Symmetric bands ")


def test_without_a_scale_the_bands_find_what_changes():
    report = chosen(facts(), SCALE * NORMAL, Automatic(("none",), ("inputs", "prediction"), ("added", "scaled")))
    assert (report.base_scale, report.noise_features) == ("none", "inputs")
    assert np.isfinite(report.lengthscale)
    assert not report.homoscedastic


def test_reasons_are_differences_of_held_out_scores_and_say_so_where_doubt_decided():
    row = {"lengthscale": np.inf, "criterion": -1.0, "worth": -1.0}
    freer = {"lengthscale": 5.0, "criterion": -0.99, "worth": -1.002}
    other = {"lengthscale": 2.0, "criterion": -1.05, "worth": -1.06}
    (reason,) = reasons_of(row, [row, freer, other], ["lengthscale"], [])
    assert reason == "lengthscale inf: with 5, 1.0 % better, too little to prefer it"
    assert reasons_of(row, [row, other], ["lengthscale"], []) == ("lengthscale inf: with 2, 5.1 % worse",)


def test_bands_of_next_to_no_width_are_called_so():
    for penalty, words in ((1e-4, "Bands of next to no width, which leave"), (30.0, "Symmetric bands that vary with")):
        policy = Automatic(("none",), ("inputs",), ("added",), lengthscales=(1.0,), width_penalties=(penalty,))
        assert chosen(facts(), NORMAL, policy).sentence.startswith(words)


def test_skew_makes_asymmetric_bands_an_option():
    skewed, plain = chosen(facts(model=SCALE), SCALE * GAMMA), chosen(facts(model=SCALE), SCALE * NORMAL)
    assert skewed.symmetry.p_value <= 0.05 < plain.symmetry.p_value
    assert np.isfinite(skewed.symmetry_penalty)
    assert skewed.sentence.startswith("Asymmetric bands")
    assert "no skew found in " in plain.sentence
    assert all(row["symmetry_penalty"] == np.inf for row in plain.evaluations)
    untested = chosen(
        facts(model=SCALE), SCALE * NORMAL, Automatic(("model",), ("inputs",), ("added",), symmetry_test=False)
    )
    assert any(row["symmetry_penalty"] == 0 for row in untested.evaluations)


def test_what_is_given_stays():
    ells = {"lower": 0.5, "upper": np.array([0.5, 0.7])}
    given = Automatic(("none",), ("inputs",), ("scaled",), (ells,), (7.0,), (0.8,), (2.0,))
    report = chosen(facts(), SCALE * GAMMA, given)
    assert report.lengthscale is ells
    found = {name: {row[name] for row in report.evaluations} for name in ("width_penalty", "learning_coverage")}
    assert found == {"width_penalty": {7.0}, "learning_coverage": {0.8}}
    assert (report.symmetry_penalty, report.conformal_score, report.symmetry) == (2.0, "scaled", None)
    assert report.reasons == ()


def test_a_line_goes_on_while_its_end_is_best(monkeypatch):
    policy = searcher(facts(), NORMAL)
    worth, sign = {}, -1.0

    def evaluate(candidates, folds=None, **_):  # noqa: ARG001
        worth.update({each: sign * each.width_penalty for each in candidates})

    monkeypatch.setattr(policy.search, "evaluate", evaluate)
    monkeypatch.setattr(policy.search, "knows", lambda each, n_folds=None: each in worth)  # noqa: ARG005
    monkeypatch.setattr(policy, "_ranked", lambda line, n_folds=None: sorted(line, key=lambda c: -worth[c]))  # noqa: ARG005
    start = Candidate("none", "inputs", 1.0, 30.0, 0.9, np.inf)
    best = policy._line(start, "width_penalty", (3.0, 300.0))
    assert best.width_penalty == pytest.approx(0.03)
    assert sorted(each.width_penalty for each in worth) == pytest.approx([0.03, 0.3, 3.0, 30.0, 300.0])
    worth.clear()
    sign = 1.0
    assert policy._line(start, "width_penalty", (3.0, 300.0)).width_penalty == 300.0  # and not beyond
    assert sorted(each.width_penalty for each in worth) == [3.0, 30.0, 300.0]


def test_bands_that_can_follow_single_rows_are_doubted_the_more_the_fewer_rows_there_are():
    policy = searcher(facts(), NORMAL)
    ell = policy.search.median(("none", "inputs"))
    start = Candidate("none", "inputs", 2 * ell, 30.0, 0.9, np.inf)
    assert policy.doubt(start) == 0
    assert policy.doubt(start._replace(lengthscale=np.inf, width_penalty=3.0)) == 0
    assert policy.doubt(start._replace(lengthscale=0.5 * ell)) == pytest.approx(2 * 5 / N)
    assert policy.doubt(start._replace(width_penalty=300.0)) == pytest.approx(40 / N)
    given = searcher(facts(), NORMAL, replace(ALL, lengthscales=(0.1,), width_penalties=(1e5,)))
    assert given.doubt(start._replace(lengthscale=0.1, width_penalty=1e5)) == 0  # what is given is not doubted


def test_bands_without_a_width_are_not_chosen():
    policy = searcher(facts(), NORMAL)
    vanished = Candidate("none", "inputs", 1.0, 1e-3, 0.9, np.inf)
    policy.search.evaluate([vanished, vanished._replace(width_penalty=30.0)])
    assert [choice.value for choice in policy.choices_of(vanished)] == [-np.inf] * 2
    assert all(np.isfinite(choice.value) for choice in policy.choices_of(vanished._replace(width_penalty=30.0)))


def test_folds_start_from_what_another_fold_found():
    """The multipliers of its rows, and of those that it had held out those that lie outside at their ceiling."""
    search = searcher(facts(), SCALE * GAMMA).search
    candidate = Candidate("none", "inputs", 1.0, 30.0, 0.9, 0.0)
    search.evaluate([candidate], folds=[1])
    part, held = search.parts[candidate, 1], search.folds[1]
    r = SCALE * GAMMA
    np.testing.assert_array_equal(part.point.gamma_up[held] > 0, r[held] > part.upper)
    np.testing.assert_array_equal(part.point.gamma_lo[held] > 0, -r[held] > part.lower)
    assert set(part.point.gamma_up[held]) <= {0.0, part.point.ceiling}
    assert search.start_of(candidate) is part.point
    assert search.start_of(candidate._replace(width_penalty=3.0)) is None


def test_values_beyond_the_first_grid_are_called_so():
    policy = searcher(facts(), NORMAL)
    ell = policy.search.median(("none", "inputs"))
    inside = Candidate("none", "inputs", 4 * ell, 300.0, 0.9, np.inf)
    assert not any(policy.is_extended(inside, name) for name in ("width_penalty", "lengthscale", "base_scale"))
    assert policy.is_extended(inside._replace(width_penalty=3000.0), "width_penalty")
    assert policy.is_extended(inside._replace(lengthscale=8 * ell), "lengthscale")
    assert not policy.is_extended(inside._replace(lengthscale=np.inf), "lengthscale")


def test_out_of_time_takes_the_best_so_far_and_says_so():
    report = chosen(facts(model=SCALE), SCALE * NORMAL, deadline=perf_counter() - 1)
    assert report.timed_out
    assert "Out of time (max_seconds)" in report.sentence
    assert "out of time" in repr(report)
    assert {row["lengthscale"] for row in report.evaluations} == {np.inf}  # only what costs nothing
    assert report.base_scale in ("model", "none")


def test_an_interruption_takes_the_best_so_far(monkeypatch, capsys):
    def interrupted(self):
        self.search.evaluate([self.start((base, "inputs"), np.inf) for base in self.base_scales])
        raise KeyboardInterrupt

    monkeypatch.setattr(Automatic, "run", interrupted)
    report = chosen(facts(model=SCALE), SCALE * NORMAL)
    assert report.interrupted
    assert report.sentence.endswith("Interrupted: the best found so far.")
    assert "tuning interrupted" in capsys.readouterr().err


def test_processes_make_no_difference():
    known = facts(model=SCALE)
    one, two = (chosen(known, SCALE * GAMMA, n_jobs=jobs) for jobs in (None, 2))
    assert one.evaluations == two.evaluations


def test_units_do_not_matter():
    small, large = chosen(facts(model=SCALE), SCALE * GAMMA), chosen(facts(model=1e6 * SCALE), 1e6 * SCALE * GAMMA)
    names = ("base_scale", "noise_features", "lengthscale", "width_penalty", "symmetry_penalty", "conformal_score")
    assert [getattr(small, name) for name in names] == pytest.approx([getattr(large, name) for name in names])


def test_of_many_rows_a_sample_is_searched_on():
    rng = np.random.default_rng(0)
    n = SEARCH_ROWS + 50
    known = RowFacts(rng.standard_normal((n, 1)), np.zeros(n), {})
    report = chosen(known, rng.standard_normal(n), Automatic(("none",), ("inputs",), ("added",)), deadline=0.0)
    assert len(np.unique(report.rows)) == SEARCH_ROWS
    assert sum(len(fold) for fold in report.folds) == SEARCH_ROWS


@pytest.mark.parametrize(
    ("r", "words"), [(np.zeros(N), "All residuals are zero"), (NORMAL[:12], "told from 12 residuals")]
)
def test_where_nothing_can_be_told(r, words):
    known = facts(model=SCALE).take(np.arange(len(r)))
    report = chosen(known, r)
    assert words in report.sentence
    assert (report.base_scale, report.lengthscale, report.symmetry_penalty) == ("none", np.inf, np.inf)
    assert report.evaluations == ()


def test_candidates_that_cannot_be_stated_are_not_the_best():
    policy = searcher(facts(), SCALE * NORMAL)
    fine, beyond = (Candidate("none", "inputs", 1.0, b, 0.9, np.inf) for b in (30.0, 1e300))
    policy.search.evaluate([fine, beyond])
    assert policy.choices_of(beyond)[0].value == -np.inf
    assert policy.best().candidate == fine


def test_rows_that_count_differently_start_from_multipliers_of_one_row_each():
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.2, 3.0, N)
    search = searcher(facts(), SCALE * GAMMA, weights=weights).search
    candidate = Candidate("none", "inputs", 1.0, 30.0, 0.9, np.inf)
    search.evaluate([candidate])
    point = search.parts[candidate, 0].point
    rest = np.setdiff1d(np.arange(N), search.folds[0])
    largest = np.maximum(point.gamma_lo, point.gamma_up)
    assert largest[rest].max() == pytest.approx(point.ceiling, rel=1e-9)
    outside = largest[rest] > 0.999 * point.ceiling
    assert outside.sum() > 3
