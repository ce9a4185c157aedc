"""The automatic choice: values by hand, what it finds, its limits of time, and the words of its report."""

from dataclasses import replace
from time import perf_counter

import numpy as np
import pytest
from sklearn.utils import check_random_state

from sosbands import learn_bands
from sosbands.bands import PenaltyScale
from sosbands.conformal import conformal_quantile
from sosbands.metrics import interval_score
from sosbands.tuning import choose
from sosbands.tuning.automatic import COARSE, AutomaticSearch
from sosbands.tuning.choose import SEARCH_ROWS
from sosbands.tuning.settings import Candidate, Choices
from sosbands.tuning.split import held_out_folds
from sosbands.tuning.views import RowFacts

OPTIONS = {"kernel": "matern52", "constant": True}
ALL = Choices(("model", "forest", "none"), ("inputs", "prediction"), ("added", "scaled"))
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
    given = {"options": OPTIONS, "level": 0.9, "cv": 4, "deadline": np.inf, "seed": 0, **options}
    return choose(known, r, choices, random_state=check_random_state(0), **given)


def searcher(known, r, choices=ALL):
    folds = held_out_folds(len(r), 4, check_random_state(0))
    return AutomaticSearch(known, r, folds, OPTIONS, choices, (0.8, 0.9))


@pytest.mark.parametrize("base", ["none", "model"])
@pytest.mark.parametrize("penalty", [np.inf, 0.0])
def test_the_value_of_a_candidate_by_hand(base, penalty):
    """Bands of the other folds in units of the base scale, calibrated on all held-out rows, scored in units of y."""
    r = SCALE * GAMMA
    search = searcher(facts(model=SCALE, forest=USELESS), r)
    candidate = Candidate(base, "inputs", 0.8, 30.0, 0.9, penalty)
    search.evaluate([candidate])
    s = SCALE if base == "model" else np.ones(N)
    z = r / s
    below, above = np.zeros(N), np.zeros(N)
    scale = PenaltyScale.of_residuals(z)
    for held in search.folds:
        rest = np.setdiff1d(np.arange(N), held)
        settings = {"lengthscale": 0.8, "width_penalty": 30.0, "learning_coverage": 0.9, "symmetry_penalty": penalty}
        coarse = {name: COARSE[name] for name in ("rank", "tol")}
        bands = learn_bands(X[rest], z[rest], normalize=scale, **settings, **OPTIONS, **coarse)
        below[held], above[held] = bands.lower(X[held]), bands.upper(X[held])
    scores = []
    for level in (0.8, 0.9):
        q = conformal_quantile(np.maximum(-z - below, z - above), level)
        scores.append(interval_score(r, -s * (below + q), s * (above + q), level))
    added, scaled = search.choices_of(candidate)
    assert added.conformal_score == "added"
    assert added.value == pytest.approx(-np.mean(np.log(scores)), rel=1e-9)
    assert scaled.value != added.value


def test_the_true_scale_is_chosen_and_a_useless_one_is_not():
    report = chosen(facts(model=SCALE, forest=USELESS), SCALE * NORMAL)
    assert report.base_scale == "model"
    assert report.symmetry_penalty == np.inf
    assert any(reason.startswith("base scale model: ") and reason.endswith(" % worse") for reason in report.reasons)
    best = max(row["criterion"] for row in report.evaluations)
    mine = [row for row in report.evaluations if row["base_scale"] == "model"]
    assert max(row["criterion"] for row in mine) == best
    assert report.sentence.startswith("Symmetric bands of")


def test_without_a_scale_the_bands_find_what_changes():
    report = chosen(facts(), SCALE * NORMAL, Choices(("none",), ("inputs", "prediction"), ("added", "scaled")))
    assert (report.base_scale, report.noise_features) == ("none", "inputs")
    assert np.isfinite(report.lengthscale)
    assert not report.homoscedastic


def test_skew_makes_asymmetric_bands_an_option():
    skewed, plain = chosen(facts(model=SCALE), SCALE * GAMMA), chosen(facts(model=SCALE), SCALE * NORMAL)
    assert skewed.symmetry.p_value <= 0.05 < plain.symmetry.p_value
    assert np.isfinite(skewed.symmetry_penalty)
    assert skewed.sentence.startswith("Asymmetric bands")
    assert "no skew found in " in plain.sentence
    assert all(row["symmetry_penalty"] == np.inf for row in plain.evaluations)
    untested = chosen(
        facts(model=SCALE), SCALE * NORMAL, Choices(("model",), ("inputs",), ("added",), symmetry_test=False)
    )
    assert any(row["symmetry_penalty"] == 0 for row in untested.evaluations)


def test_what_is_given_stays():
    ells = {"lower": 0.5, "upper": np.array([0.5, 0.7])}
    given = Choices(("none",), ("inputs",), ("scaled",), (ells,), (7.0,), (0.8,), (2.0,))
    report = chosen(facts(), SCALE * GAMMA, given)
    assert report.lengthscale is ells
    found = {name: {row[name] for row in report.evaluations} for name in ("width_penalty", "learning_coverage")}
    assert found == {"width_penalty": {7.0}, "learning_coverage": {0.8}}
    assert (report.symmetry_penalty, report.conformal_score, report.symmetry) == (2.0, "scaled", None)
    assert report.reasons == ()


def test_a_line_goes_on_while_its_end_is_best(monkeypatch):
    search = searcher(facts(), NORMAL)
    worth = {}

    def evaluate(candidates, folds=None, **_):  # noqa: ARG001
        worth.update({each: each.width_penalty for each in candidates})

    monkeypatch.setattr(search, "evaluate", evaluate)
    monkeypatch.setattr(search, "_known", lambda each, n_folds=None: each in worth)  # noqa: ARG005
    monkeypatch.setattr(search, "_ranked", lambda line, n_folds=None: sorted(line, key=lambda c: -worth[c]))  # noqa: ARG005
    start = Candidate("none", "inputs", 1.0, 30.0, 0.9, np.inf)
    best = search._line(start, "width_penalty", (3.0, 300.0))
    assert best.width_penalty == 30_000.0
    assert sorted(each.width_penalty for each in worth) == [3.0, 30.0, 300.0, 3000.0, 30_000.0]


def test_values_beyond_the_first_grid_are_called_so():
    search = searcher(facts(), NORMAL)
    ell = search.median(("none", "inputs"))
    inside = Candidate("none", "inputs", 4 * ell, 300.0, 0.9, np.inf)
    assert not any(search.is_extended(inside, name) for name in ("width_penalty", "lengthscale", "base_scale"))
    assert search.is_extended(inside._replace(width_penalty=3000.0), "width_penalty")
    assert search.is_extended(inside._replace(lengthscale=8 * ell), "lengthscale")
    assert not search.is_extended(inside._replace(lengthscale=np.inf), "lengthscale")


def test_out_of_time_takes_the_best_so_far_and_says_so():
    report = chosen(facts(model=SCALE), SCALE * NORMAL, deadline=perf_counter() - 1)
    assert report.timed_out
    assert "Out of time (max_seconds)" in report.sentence
    assert "out of time" in repr(report)
    assert {row["lengthscale"] for row in report.evaluations} == {np.inf}  # only what costs nothing
    assert report.base_scale in ("model", "none")


def test_an_interruption_takes_the_best_so_far(monkeypatch, capsys):
    def interrupted(self):
        self.evaluate(self._constants())
        raise KeyboardInterrupt

    monkeypatch.setattr(AutomaticSearch, "run", interrupted)
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
    report = chosen(known, rng.standard_normal(n), Choices(("none",), ("inputs",), ("added",)), deadline=0.0)
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
    search = searcher(facts(), SCALE * NORMAL)
    fine, beyond = (Candidate("none", "inputs", 1.0, b, 0.9, np.inf) for b in (30.0, 1e300))
    search.evaluate([fine, beyond])
    assert search.choices_of(beyond)[0].value == -np.inf
    assert search.best().candidate == fine
