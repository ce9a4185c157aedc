"""The tuner: values of the criteria, the same folds for all, the decision in constructed cases, whole runs."""

from dataclasses import replace
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import KFold

from sosbands import learn_bands
from sosbands.bands import penalty_scale
from sosbands.bands.views import RowFacts
from sosbands.conformal import SCORES
from sosbands.datasets import synthetic_case
from sosbands.kernels import StationaryKernel, median_lengthscale
from sosbands.metrics import interval_score
from sosbands.stats import distance_correlation, hsic
from sosbands.tuning import Rules, TuningReport, rules, search, tune
from sosbands.tuning.rules import (
    COARSE,
    SMALLEST_LEVEL,
    RuleSearch,
    candidate_lengthscales,
    candidate_penalties,
    permutations_for,
)
from sosbands.tuning.search import CRITERIA, Candidate, HeldOut, Part, Search, fold_parts, interval_score_at

SEARCH_RANK, SEARCH_TOL = COARSE.ranks[0], COARSE.tol


@pytest.fixture
def small_grid(monkeypatch):
    monkeypatch.setattr(rules, "PENALTIES", (0.0, 1.0, np.inf))
    monkeypatch.setattr(rules, "FACTORS", (0.3, 1.0))


def sample(n=40, d=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, (0.2 + np.abs(X[:, 0])) * (rng.gamma(1.5, size=n) - 1.5)


def searcher(n=40):
    X, r = sample(n)
    folds = tuple(held for _, held in KFold(4, shuffle=True, random_state=0).split(X))
    options = {"kernel": "matern52", "symmetry_kind": "training", "normalize": penalty_scale(X, r, "matern52")}
    return Search(RowFacts(X, np.zeros(n), {}), r, folds, options, COARSE)


def candidate(lengthscale, penalty):
    return Candidate("none", "inputs", lengthscale, 10.0, 1.0, penalty)


def centred(W, R):
    """Held-out bands of widths W around the prediction, which observations miss by R."""
    return HeldOut(np.asarray(W) / 2, np.asarray(W) / 2, np.asarray(R))


def rows_of(report):
    return [(str(row["lengthscale"]), str(row["symmetry_penalty"]), row["criterion"]) for row in report.evaluations]


# ---------------------------------------------------------------- criterion


@pytest.mark.parametrize("penalty", [0.0, 1.0, np.inf])
def test_pooled_widths_and_residuals_equal_a_direct_computation(penalty):
    run, each = searcher(), candidate(0.5, penalty)
    run.evaluate([each])
    (X, r), W, R = sample(40), np.zeros(40), np.zeros(40)
    settings = {"normalize": run.options["normalize"], "tol": SEARCH_TOL, "rank": SEARCH_RANK}
    for held in run.folds:
        out = np.isin(np.arange(40), held)
        bands = learn_bands(X[~out], r[~out], lengthscale=0.5, symmetry_penalty=penalty, **settings)
        assert bands.gap <= SEARCH_TOL
        lo, up = bands.lower(X[out]), bands.upper(X[out])
        W[out], R[out] = lo + up, np.abs(r[out] - (up - lo) / 2)
    order, found = np.concatenate(run.folds), run.held_out(each, "added")
    np.testing.assert_allclose(found.widths, W[order], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.distances, R[order], rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(found.residuals, r[order])
    assert run.uncertified(each) == 0
    some = run.held_out(each, "added", 2)  # what an interrupted search has seen
    np.testing.assert_array_equal(some.widths, found.widths[:20])


def test_a_grid_of_candidates_equals_one_by_one():
    """Warm starts change the path to a solution, not the solution."""
    run = searcher()
    grid = [candidate(ell, penalty) for ell in (0.6, 0.3) for penalty in (0.0, 10.0, np.inf)]
    given = run.facts.points, run.r, run.folds[1]
    options = {**run.options, "sample_weight": None}
    for part, each in zip(fold_parts(*given, grid, options, COARSE), grid, strict=True):
        (alone,) = fold_parts(*given, [each], options, COARSE)
        assert part.gap <= SEARCH_TOL
        np.testing.assert_allclose(part.lower, alone.lower, rtol=0.02, atol=0.02)
        np.testing.assert_allclose(part.upper, alone.upper, rtol=0.02, atol=0.02)


def test_a_candidate_without_a_certificate_is_never_the_best():
    """HSIC rewards width, and the widths of a solve that diverged may be anything."""
    policy = begun(Rules(criterion="hsic"), searcher())
    wild, fine = policy.evaluate([0.3, 0.6], [10.0])
    parts, part = policy.search.parts, policy.search.parts[wild, 1]
    parts[wild, 1] = part._replace(lower=1e12 * part.lower, gap=2.0)
    assert (policy.search.uncertified(wild), policy.search.failed(fine)) == (1, False)
    assert policy.value(wild) == -np.inf
    assert np.isfinite(policy.value(fine))
    parts[wild, 1] = part._replace(gap=0.01)  # short of the tolerance, but known to be near
    policy.begin(policy.search)
    assert policy.search.uncertified(wild) == 1
    policy.evaluate([0.3], [10.0])
    assert np.isfinite(policy.value(wild))


def test_criteria_equal_their_formulas():
    rng = np.random.default_rng(0)
    W, R = rng.uniform(0, 2, 50), rng.exponential(size=50)
    values = {name: criterion(centred(W, R)) for name, criterion in CRITERIA.items()}
    assert values["hsic"] == hsic(W, R)
    assert values["dcor"] == distance_correlation(W, R)
    logs = []
    for level in (0.7, 0.8, 0.9):
        q = np.sort(R - W / 2)[int(np.ceil(level * 51)) - 1]
        centre, half = 7.0, np.maximum(W / 2 + q, 0)
        lower, upper, y = centre - half, centre + half, centre + R
        logs.append(np.log(interval_score(y, lower, upper, level)))
    assert values["interval-score"] == pytest.approx(-np.mean(logs), rel=1e-12)


def test_interval_score_where_ends_cross():
    """q = -1 leaves the narrow bands empty: their midpoint is missed by R, not by more."""
    W, R = np.array([2.0, 2.0, 2.0, 2.0, 0.2]), np.array([0.0, 0.0, 0.0, 0.0, 0.5])
    q = 0.5 - 0.1
    assert interval_score_at(centred(W, R), 0.8) == pytest.approx(np.mean(W + 2 * q))
    W, R = np.array([2.0] * 9 + [0.2]), np.array([0.0] * 9 + [0.5])
    assert interval_score_at(centred(W, R), 0.8) == pytest.approx(10 * 0.5 / 10)


def test_constant_widths_have_criterion_zero():
    held = centred(np.full(30, 2.0), np.arange(30.0))
    assert CRITERIA["hsic"](held) == CRITERIA["dcor"](held) == 0


@pytest.mark.usefixtures("small_grid")
def test_every_candidate_has_the_same_folds(monkeypatch):
    seen = []

    def spy(points, z, held, wanted, *rest):
        seen.append((tuple(held), len(wanted)))
        return fold_parts(points, z, held, wanted, *rest)

    monkeypatch.setattr(search, "fold_parts", spy)
    X, r = sample(30)
    tune(X, r, cv=3, random_state=0, rules=Rules(symmetry_test="bootstrap", independence=None))
    assert [count for _, count in seen] == [6, 6, 6]
    assert sorted(i for held, _ in set(seen) for i in held) == list(range(30))


# ---------------------------------------------------------------- conformal scores

EACH = candidate(0.5, 1.0)


def held_out(n=60, seed=0):
    rng = np.random.default_rng(seed)
    below, above = rng.uniform(0.5, 2.0, (2, n))
    z = rng.gamma(1.5, size=n) - 1.5
    return HeldOut(below, above, z * np.where(z > 0, above, below))


def scaled(held):
    return replace(held, score=SCORES["scaled"].fitted(held.below.mean(), held.above.mean()))


def evaluated():
    run = searcher()
    run.evaluate([EACH])
    return run


@pytest.mark.parametrize("level", [0.7, 0.8, 0.9])
def test_the_interval_score_of_scaled_bands_by_hand(level):
    held = scaled(held_out())
    m, r = 7.0, held.residuals
    S = np.maximum(-r / held.below, r / held.above)
    q = np.sort(S)[int(np.ceil(level * 61)) - 1]
    expected = interval_score(m + r, m - q * held.below, m + q * held.above, level)
    assert interval_score_at(held, level) == pytest.approx(expected, rel=1e-12)


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


def test_some_rows_keep_their_floors():
    held = scaled(held_out())
    some = held.take(np.array([3, 3, 5]))
    assert some.score.floors == held.score.floors
    np.testing.assert_array_equal(some.below, held.below[[3, 3, 5]])
    assert len(some) == 3


def test_floors_are_those_of_the_rows_that_were_learnt_from():
    run, (X, r) = evaluated(), sample()
    assert run.held_out(EACH, "added").score.name == "added"
    means = []
    for held in run.folds:
        others = np.setdiff1d(np.arange(40), held)
        settings = {"lengthscale": 0.5, "symmetry_penalty": 1.0, "normalize": run.options["normalize"]}
        bands = learn_bands(X[others], r[others], tol=SEARCH_TOL, rank=SEARCH_RANK, **settings)
        assert bands.gap <= SEARCH_TOL
        means.append((bands.values_lower.mean(), bands.values_upper.mean()))
    assert run.held_out(EACH, "scaled").score.floors == pytest.approx(0.05 * np.mean(means, axis=0), rel=1e-9)


def test_floors_of_the_held_out_rows_would_be_others():
    """A broken rule that the test above must tell from the right one."""
    held = evaluated().held_out(EACH, "scaled")
    assert held.score.floors != pytest.approx((0.05 * held.below.mean(), 0.05 * held.above.mean()), rel=1e-3)


@pytest.mark.usefixtures("small_grid")
def test_a_search_by_each_score():
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


# ---------------------------------------------------------------- decision


def begun(asked, run, lengthscale="auto", penalties=(0.0, np.inf)):
    policy = RuleSearch(asked, "matern52", lengthscale, penalties, (10.0, 1.0))
    policy.begin(run)
    return policy


class Constructed(RuleSearch):
    """Instead of learning bands takes widths that follow |r| by a strength given for (lengthscale, penalty)."""

    def evaluate(self, lengthscales, penalties):  # noqa: ARG002
        r = self.search.r
        noise = np.random.default_rng(1).uniform(size=len(r))
        for (ell, penalty), strength in self.strength.items():
            if penalty in penalties:
                held = centred(1 + strength * np.abs(r) + 0.1 * noise, np.abs(r))
                each = candidate(ell, penalty)
                self.tried[each] = None
                for k, fold in enumerate(self.search.folds):
                    self.search.parts[each, k] = Part(held.below[fold], held.above[fold], 1.0, 1.0, 0.0, None)


def decided(strength, skewed=True, dependent=True, given=None, size=120, **asked):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (size, 1))
    r = rng.gamma(1.0, size=size) - 0.4 if skewed else rng.standard_normal(size)
    r = (0.1 + np.abs(X[:, 0])) * r if dependent else r
    penalties = tuple(dict.fromkeys(penalty for _, penalty in strength))
    asked = Rules(**{"criterion": "hsic", **asked})
    policy = Constructed(asked, "matern52", "auto" if given is None else given, penalties, (10.0, 1.0))
    policy.strength = strength
    folds = np.arange(size // 2), np.arange(size // 2, size)
    policy.begin(Search(RowFacts(X, np.zeros(size), {}), r, folds, {"kernel": "matern52"}, COARSE))
    return SimpleNamespace(**policy.run())


GRID = {(0.1, 0.0): 0.2, (0.5, 0.0): 0.5, (0.1, 1.0): 0.3, (0.5, 1.0): 0.9, (0.1, np.inf): 0.4, (0.5, np.inf): 0.3}


def test_asymmetric():
    found = decided(GRID)
    assert (found.lengthscale, found.symmetry_penalty) == (0.5, 1.0)
    assert found.sentence == "Residuals are skewed (p = 0.001): asymmetric bands, pulled together by a penalty of 1."
    found = decided({**GRID, (0.1, 0.0): 5.0})
    assert (found.lengthscale, found.symmetry_penalty) == (0.1, 0.0)
    assert found.sentence.endswith(": independent bands below and above.")


def test_symmetric_takes_its_own_best_lengthscale():
    found = decided(GRID, skewed=False)
    assert (found.lengthscale, found.symmetry_penalty) == (0.1, np.inf)
    assert found.symmetry.p_value > 0.05
    assert found.sentence == f"Residuals show no skew (p = {found.symmetry.p_value:.2g}): symmetric bands."


def test_skewed_and_yet_symmetric():
    found = decided({**GRID, (0.5, np.inf): 2.0}, criterion="dcor")
    assert (found.lengthscale, found.symmetry_penalty) == (0.5, np.inf)
    assert found.sentence.endswith("yet symmetric bands are best by dcor.")


def test_homoscedastic_fall_back():
    found = decided(GRID, dependent=False, skewed=False)
    assert found.homoscedastic
    assert (found.lengthscale, found.symmetry_penalty) == (np.inf, np.inf)
    p, q = found.independence.p_value, found.symmetry.p_value
    start = f"Sizes of residuals show no dependence on the features (p = {p:.2g}), and residuals no skew (p = {q:.2g})"
    assert found.sentence == f"{start}: bands of constant width."
    fixed = decided({(0.1, (0.0, 2.0)): 0.2}, dependent=False)
    assert fixed.homoscedastic
    assert fixed.symmetry_penalty == (0.0, 2.0)
    assert not decided(GRID, dependent=False, skewed=False, independence=None).homoscedastic


def test_skewed_noise_of_one_size_may_have_constant_bands():
    found = decided({**GRID, (np.inf, 0.0): 9.0}, dependent=False)
    assert (found.lengthscale, found.symmetry_penalty, found.homoscedastic) == (np.inf, 0.0, True)
    assert found.sentence == "Residuals are skewed (p = 0.001): independent bands below and above, of constant width."
    assert not decided(GRID, dependent=False).homoscedastic


def test_constant_widths_and_places_fall_back_by_every_test():
    r = np.random.default_rng(0).standard_normal(20)
    for independence in ("features", "max-statistic", "naive"):
        run = Search(RowFacts(np.zeros((20, 1)), np.zeros(20), {}), r, (np.arange(10), np.arange(10, 20)), {}, COARSE)
        policy = begun(Rules(independence=independence, symmetry_test=None), run, penalties=(0.0,))
        flat = [candidate(0.1, 0.0)]
        policy.tried.update(dict.fromkeys(flat))
        run.parts.update({(flat[0], k): Part(np.ones(10), np.ones(10), 1.0, 1.0, 0.0, None) for k in (0, 1)})
        policy.evaluate = lambda *_, flat=flat: flat
        found = policy.run()
        assert found["homoscedastic"]
        assert found["independence"].p_value == 1


def test_fixed_penalty():
    for penalty in (1.0, np.inf, (0.0, 1.0)):
        found = decided({(0.1, penalty): 0.2, (0.5, penalty): 0.7})
        assert (found.lengthscale, found.symmetry_penalty, found.symmetry) == (0.5, penalty, None)
        assert found.sentence.endswith("the best lengthscale by hsic at the given symmetry penalty.")


def test_the_papers_rules():
    found = decided(GRID, symmetry_test="kruskal-wallis", independence="naive", n_replicates=20)
    assert found.independence.name == "permutation"
    assert found.symmetry.name == "kruskal-wallis of 20 bootstrap replicates"
    assert found.symmetry.n_permutations == 2000
    assert found.replicates.shape == (3, 20)
    assert (found.lengthscale, found.symmetry_penalty) == (0.5, 1.0)
    assert found.sentence.startswith("The symmetry penalties differ (p = 0.0005): asymmetric bands")
    equal = decided({(0.1, 0.0): 0.5, (0.2, np.inf): 0.5}, symmetry_test="kruskal-wallis", n_replicates=10)
    assert equal.symmetry_penalty == np.inf
    assert equal.sentence.startswith("No symmetry penalty stands out (p = ")


def test_bootstrap_rule():
    found = decided(GRID, symmetry_test="bootstrap")
    assert found.symmetry.name == "bootstrap"
    assert found.sentence.startswith("Asymmetric bands gain (p = ")
    found = decided({**GRID, (0.5, np.inf): 2.0}, symmetry_test="bootstrap")
    assert (found.lengthscale, found.symmetry_penalty, found.symmetry.p_value) == (0.5, np.inf, 1.0)
    assert found.sentence == "Asymmetric bands gain nothing that could not be chance (p = 1): symmetric bands."


@pytest.mark.parametrize(
    ("option", "value"),
    [("criterion", "mse"), ("symmetry_test", "t"), ("independence", "t"), ("level", 1.0), ("level", "a")]
    + [("n_permutations", 0), ("n_permutations", 18), ("n_replicates", 1.5), ("seed", -1)],
)
def test_rules_name_what_is_wrong(option, value):
    with pytest.raises(ValueError, match=option):
        Rules(**{option: value})


@pytest.mark.parametrize(("level", "count"), [(0.5, 199), (0.05, 199), (0.01, 999), (0.001, 9999), (1e-4, 9999)])
def test_permutations_of_a_level(level, count):
    assert permutations_for(level) == Rules(level=level).permutations == count
    assert (count + 1) * level >= 1
    expected = "^level=.*: expected at least 0.0001, as p-values of the 9999 permutations made at most are"
    with pytest.raises(ValueError, match=expected):
        Rules(level=np.nextafter(SMALLEST_LEVEL, 0))


# ---------------------------------------------------------------- whole runs


@pytest.mark.parametrize(("number", "finite"), [(5, True), (1, False)])
@pytest.mark.usefixtures("small_grid")
def test_synthetic_cases(number, finite):
    case = synthetic_case(number)
    X, y = case.sample(100, 0)
    report = tune(X, y - case.location(X), random_state=0, cv=4)
    assert np.isfinite(report.symmetry_penalty) == finite
    assert report.independence.p_value <= 0.05
    assert not report.homoscedastic
    chosen = [row for row in report.evaluations if row["symmetry_penalty"] == report.symmetry_penalty]
    assert report.lengthscale == max(chosen, key=lambda row: row["criterion"])["lengthscale"]


@pytest.mark.usefixtures("small_grid")
def test_report(capsys):
    X, r = sample(30)
    report = tune(X, r, rules=Rules(independence=None, symmetry_test=None), cv=3, random_state=0, verbose=1)
    assert isinstance(report, TuningReport)
    frame = report.to_frame()
    assert list(frame.columns) == ["lengthscale", "symmetry_penalty", "criterion", "uncertified"]
    assert len(frame) == len(report.evaluations) == 5
    lines = repr(report).splitlines()
    assert lines[0] == f"TuningReport: {report.sentence}"
    assert f"{len(frame)} candidates by interval-score" in lines[-1]
    assert "interrupted" not in lines[-1]
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "[tuning] 2 lengthscales x 3 symmetry penalties on 3 folds of 30 rows"
    assert printed[1].startswith("[tuning] best of the grid: interval-score -")
    assert printed[-1] == f"[tuning] {report.sentence}"


@pytest.mark.usefixtures("small_grid")
def test_jobs_backends_and_seeds():
    X, r = sample(24)
    options = {"rules": Rules(independence=None), "cv": 2}
    one = tune(X, r, random_state=0, **options)
    others = [tune(X, r, random_state=0, n_jobs=2, **options), tune(X, r, random_state=0, **options)]
    others.append(tune(X, r, random_state=np.random.RandomState(0), **options))
    with joblib.parallel_config(backend="threading", n_jobs=2):
        others.append(tune(X, r, random_state=0, **options))
    for other in others:
        assert rows_of(other) == rows_of(one)
        assert other.sentence == one.sentence
        assert other.symmetry == one.symmetry
    assert one.symmetry.name == "sign-flip"
    assert rows_of(tune(X, r, random_state=1, **options)) != rows_of(one)


def interrupted_after(monkeypatch, limit):
    calls = []

    def parts(points, z, held, *rest):
        calls.append(held)
        if len(calls) > limit:
            raise KeyboardInterrupt
        return fold_parts(points, z, held, *rest)

    monkeypatch.setattr(search, "fold_parts", parts)


@pytest.mark.usefixtures("small_grid")
def test_interruption_keeps_what_was_found(monkeypatch, capsys):
    X, r = sample(30)
    every = {"rules": Rules(independence=None, symmetry_test=None), "cv": 3, "random_state": 0}
    whole = tune(X, r, **every)
    interrupted_after(monkeypatch, 2)  # two of the three folds of the ends
    report = tune(X, r, **every)
    assert report.interrupted
    assert len(report.evaluations) == 4
    best = max(report.evaluations, key=lambda row: row["criterion"])
    assert (report.lengthscale, report.symmetry_penalty) == (best["lengthscale"], best["symmetry_penalty"])
    assert rows_of(report) != rows_of(whole)[:4]
    assert repr(report).endswith(", interrupted")
    assert "best found so far" in capsys.readouterr().err
    interrupted_after(monkeypatch, 4)  # the ends are known, and one fold of those between
    report = tune(X, r, **every)
    assert report.interrupted
    assert rows_of(report) == rows_of(whole)[:4]
    interrupted_after(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt):
        tune(X, r, **every)


@pytest.mark.usefixtures("small_grid")
def test_interruption_of_a_test_keeps_the_best_candidate(monkeypatch):
    X, r = sample(30)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("sosbands.tuning.rules.kruskal_wallis_test", interrupted)
    report = tune(X, r, rules=Rules(symmetry_test="kruskal-wallis", independence=None), cv=3, random_state=0)
    best = max(report.evaluations, key=lambda row: row["criterion"])
    assert report.interrupted
    assert (report.lengthscale, report.symmetry_penalty) == (best["lengthscale"], best["symmetry_penalty"])
    assert report.sentence == "Interrupted: the best found so far by interval-score."


# ---------------------------------------------------------------- what is searched


@pytest.mark.usefixtures("small_grid")
def test_early_tests_leave_less_to_search(monkeypatch):
    """Nothing for constant widths, the limit alone without skew, the ends and the best lengthscales otherwise."""
    monkeypatch.setattr(rules, "PENALTIES", (0.0, 1.0, 10.0, np.inf))
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (100, 1))
    constant = tune(X, rng.standard_normal(100), cv=3, random_state=1)
    assert (constant.homoscedastic, len(constant.evaluations)) == (True, 0)
    scale = 0.1 + np.abs(X[:, 0])
    symmetric = tune(X, scale * np.random.default_rng(2).standard_normal(100), cv=3, random_state=0)
    assert {row["symmetry_penalty"] for row in symmetric.evaluations} == {np.inf}
    skewed = tune(X, scale * (rng.gamma(0.3, size=100) - 0.3), cv=3, random_state=0)
    tried = [(row["lengthscale"], row["symmetry_penalty"]) for row in skewed.evaluations]
    ells = sorted({ell for ell, _ in tried})
    assert tried[:4] == [(ell, penalty) for ell in ells for penalty in (0.0, np.inf)]
    best = [max(skewed.evaluations[k:4:2], key=lambda row: row["criterion"])["lengthscale"] for k in (0, 1)]
    assert {ell for ell, penalty in tried[4:]} == set(best)
    assert {penalty for _, penalty in tried[4:]} == {1.0, 10.0}


def test_lengthscales_keep_held_out_points_supported():
    """In many dimensions short lengthscales leave new points without neighbours: they are not tried."""
    rng = np.random.default_rng(0)
    held = np.arange(40)
    flat, wide = rng.uniform(-1, 1, (200, 1)), rng.standard_normal((200, 10))
    ells = candidate_lengthscales(flat, "matern52", "auto", held)
    np.testing.assert_allclose(np.array(ells) / median_lengthscale(flat), np.geomspace(0.1, 3.2, 6))
    ells = candidate_lengthscales(wide, "matern52", "auto", held)
    shortest = ells[0] / median_lengthscale(wide)

    def support(factor):
        ell = factor * median_lengthscale(wide)
        k = StationaryKernel("matern52", (ell,))
        cross = k(wide[40:], wide[held])
        return np.mean(np.sum(cross * np.linalg.solve(k(wide[40:], wide[40:]), cross), axis=0))

    assert support(shortest) >= 0.5 > support(shortest / 1.25)
    assert len(ells) == 6
    assert ells[-1] == pytest.approx(median_lengthscale(wide) * max(3.2, 4 * shortest))


@pytest.mark.usefixtures("small_grid")
def test_many_rows_are_searched_on_a_sample(monkeypatch):
    monkeypatch.setattr(RuleSearch, "most_rows", 40)
    X, r = sample(90)
    report = tune(X, r, cv=2, random_state=0)
    assert report.n_rows == 40
    other = tune(RBF(0.5)(X), r, kernel="precomputed", normalize=False, cv=2, random_state=0)
    np.testing.assert_array_equal(other.rows, report.rows)
    assert (len(np.unique(report.rows)), report.rows.max() < 90) == (40, True)


@pytest.mark.usefixtures("small_grid")
def test_the_report_says_what_it_saw(monkeypatch):
    """From its rows and folds alone, without any random number, the criterion of its candidates comes out again."""
    monkeypatch.setattr(RuleSearch, "most_rows", 40)
    X, r = sample(90)
    units = penalty_scale(X, r)
    report = tune(X, r, cv=3, random_state=0, symmetry_penalty=0.0, lengthscale=0.5, normalize=units)
    assert [len(fold) for fold in report.folds] == [14, 13, 13]
    np.testing.assert_array_equal(np.sort(np.concatenate(report.folds)), np.arange(40))
    options = {"kernel": "matern52", "symmetry_kind": "training", "normalize": replace(units, n=40)}
    some = RowFacts(X[report.rows], np.zeros(40), {})
    again = begun(Rules(), Search(some, r[report.rows], report.folds, options, COARSE))
    (each,) = again.evaluate([0.5], [0.0])
    assert [again.value(each)] == [row["criterion"] for row in report.evaluations]


@pytest.mark.usefixtures("small_grid")
def test_skew_that_changes_direction_is_not_taken_for_constant():
    """Sizes are the same everywhere, but the tail points down on the left and up on the right."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 1))
    report = tune(X, np.sign(X[:, 0]) * (rng.gamma(0.15, size=200) - 0.15), cv=3, random_state=0)
    assert report.independence.p_value > 0.05 >= report.symmetry.p_value
    assert np.isinf([row["lengthscale"] for row in report.evaluations]).any()  # constant bands were a candidate
    assert np.isfinite([report.symmetry_penalty, report.lengthscale]).all()  # 30 % better, whatever the folds


@pytest.mark.usefixtures("small_grid")
def test_a_penalty_means_the_same_on_a_sample_as_on_all_rows(monkeypatch):
    """The training penalty is a sum over rows: rows given ten times over must not make it ten times weaker."""
    X, r = sample(40)
    X, r = np.repeat(X, 10, axis=0), np.repeat(r, 10)
    seen = []

    def spy(points, z, held, wanted, options, *rest):
        seen.append((len(z), options["normalize"].n))
        return fold_parts(points, z, held, wanted, options, *rest)

    monkeypatch.setattr(search, "fold_parts", spy)
    monkeypatch.setattr(RuleSearch, "most_rows", 40)
    options = {"rules": Rules(independence=None), "cv": 2, "random_state": 0}
    tune(X, r, **options)
    tune(X, r, normalize=penalty_scale(X, r, "matern52"), **options)
    assert set(seen) == {(40, 40)}


@pytest.mark.usefixtures("small_grid")
def test_an_interrupted_search_obeys_the_early_tests(monkeypatch):
    """Sizes vary without skew: constant bands and asymmetric ones are out."""
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (60, 1))
    interrupted_after(monkeypatch, 2)
    report = tune(X, rng.standard_normal(60) * (0.1 + np.abs(X[:, 0])), cv=3, random_state=0)
    assert report.interrupted
    assert (report.homoscedastic, report.symmetry_penalty) == (False, np.inf)


@pytest.mark.parametrize("given", [0.5, [0.5], {"lower": 0.5, "upper": 0.7}])
def test_what_was_given_stays_where_nothing_can_be_told(given):
    X, r = sample(3)
    for residuals in (np.zeros(3), r):
        report = tune(X, residuals, lengthscale=given, cv=2)
        assert report.lengthscale is given
        assert not report.homoscedastic
        assert report.symmetry_penalty == (0.0 if isinstance(given, dict) else np.inf)
    assert tune(X, np.zeros(3), kernel=RBF(0.5)).lengthscale == "median"


@pytest.mark.usefixtures("small_grid")
def test_equal_lengthscales_of_both_sides_have_a_symmetric_limit():
    assert candidate_penalties("auto", {"lower": 1, "upper": 1.0})[-1] == np.inf
    assert candidate_penalties("auto", {"lower": [1.0, 2.0], "upper": np.array([1.0, 2.0])})[-1] == np.inf
    assert np.inf not in candidate_penalties("auto", {"lower": 1.0, "upper": 1.0 + 1e-12})


@pytest.mark.usefixtures("small_grid")
def test_fixed_values_of_all_kinds():
    X, r = sample(24, d=2)
    options = {"cv": 2, "random_state": 0, "width_penalty": 5.0, "rules": Rules(symmetry_test=None)}
    for ell in (0.5, [0.5, 0.7], np.array([0.5, 0.7]), {"lower": 0.5, "upper": 0.5}):
        report = tune(X, r, lengthscale=ell, **options)
        assert report.lengthscale is ell
        assert {row["symmetry_penalty"] for row in report.evaluations} == {0.0, 1.0, np.inf}
    report = tune(X, r, lengthscale={"lower": 0.5, "upper": np.array([0.7, 0.9])}, verbose=1, **options)
    assert [row["symmetry_penalty"] for row in report.evaluations] == [0.0, 1.0]
    assert report.sentence.startswith("Best by interval-score: ")
    report = tune(X, r, lengthscale="median", symmetry_penalty=2.0, **options)
    assert report.lengthscale == median_lengthscale(X)
    assert report.sentence == "Lengthscale and symmetry penalty as given."
    for pair in ((0.1, 1.0), [0.1, 1.0], (0.0, np.inf)):
        report = tune(X, r, symmetry_penalty=pair, symmetry_kind="operator", **options)
        assert report.symmetry_penalty == tuple(pair)


@pytest.mark.usefixtures("small_grid")
def test_kernels_without_a_lengthscale():
    X, r = sample(24)
    options = {"cv": 3, "random_state": 0, "rules": Rules(symmetry_test=None)}
    named = tune(X, r, kernel="gaussian", lengthscale=0.5, **options)
    K = RBF(0.5)(X)
    for points, kernel in ((X, RBF(0.5)), (X, lambda A, B: RBF(0.5)(A, B)), (K, "precomputed")):
        report = tune(points, r, kernel=kernel, normalize=False, cv=3, random_state=0)
        assert report.independence is None
        assert report.lengthscale == "median"
    units = tune(K, r, kernel="precomputed", normalize=penalty_scale(X, r, "gaussian"), **options)
    np.testing.assert_allclose(units.to_frame().criterion, named.to_frame().criterion, rtol=0.02)


@pytest.mark.usefixtures("small_grid")
def test_points_that_are_no_numbers():
    words = np.array(["a", "b", "ab", "bb", "aab", "ba"] * 3)
    r = np.random.default_rng(0).standard_normal(18)

    def kernel(A, B):
        return np.exp(-np.abs(np.char.str_len(A)[:, None] - np.char.str_len(B)[None, :]).astype(float))

    assert tune(words, r, kernel=kernel, cv=3, random_state=0).symmetry.name == "sign-flip"


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.usefixtures("small_grid")
def test_few_points(n):
    X, r = sample(n)
    assert tune(X, r, random_state=0).homoscedastic


@pytest.mark.usefixtures("small_grid")
def test_zero_residuals():
    X, _ = sample(12)
    report = tune(X, np.zeros(12))
    assert report.homoscedastic
    assert (report.lengthscale, report.symmetry_penalty, len(report.evaluations)) == (np.inf, np.inf, 0)
    assert "All residuals are zero" in repr(report)
    untested = Rules(independence=None, symmetry_test=None)
    report = tune(X, np.eye(12)[0], cv=3, random_state=0, rules=untested)  # one fold learns from zeros only
    assert np.isfinite(report.to_frame().criterion).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cv": 1}, "cv=1: expected an int >= 2"),
        ({"lengthscale": "mean"}, "lengthscale='mean'"),
        ({"symmetry_penalty": "none"}, "symmetry_penalty='none'"),
        ({"residuals": np.ones(3)}, r"shapes \(24, 1\) and \(3,\)"),
        ({"residuals": np.full(24, np.nan)}, "residuals hold NaN"),
    ],
)
def test_bad_input_is_named(change, message):
    X, r = sample(24)
    with pytest.raises(ValueError, match=message):
        tune(**{"points": X, "residuals": r, **change})
