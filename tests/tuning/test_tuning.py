"""The tuner: values of the criteria, the same folds for all, the decision in constructed cases, whole runs."""

import joblib
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import KFold

from sosbands import learn_bands
from sosbands.bands import penalty_scale
from sosbands.datasets import synthetic_case
from sosbands.kernels import StationaryKernel, median_lengthscale
from sosbands.metrics import interval_score
from sosbands.stats import distance_correlation, hsic
from sosbands.tuning import Rules, TuningReport, candidates, search, split, tune
from sosbands.tuning.criterion import (
    SEARCH_RANK,
    SEARCH_TOL,
    Evaluation,
    TuningData,
    fold_bands,
    penalty_units,
    pool,
)
from sosbands.tuning.decision import Question, constant_bands, decide, early_independence, early_symmetry
from sosbands.tuning.held_out import CRITERIA, HeldOut, interval_score_at
from sosbands.tuning.search import _Search


@pytest.fixture
def small_grid(monkeypatch):
    monkeypatch.setattr(candidates, "PENALTIES", (0.0, 1.0, np.inf))
    monkeypatch.setattr(candidates, "FACTORS", (0.3, 1.0))


def sample(n=40, d=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, (0.2 + np.abs(X[:, 0])) * (rng.gamma(1.5, size=n) - 1.5)


def tuning_data(n=40, **options):
    X, r = sample(n)
    folds = tuple(held for _, held in KFold(4, shuffle=True, random_state=0).split(X))
    units = penalty_units(X, r, "matern52", True)
    return TuningData(X, r, folds, {"kernel": "matern52", "symmetry_kind": "training", "normalize": units, **options})


def centred(W, R):
    """Held-out bands of widths W around the prediction, which observations miss by R."""
    return HeldOut(np.asarray(W) / 2, np.asarray(W) / 2, np.asarray(R))


def rows_of(report):
    return [(str(row["lengthscale"]), str(row["symmetry_penalty"]), row["criterion"]) for row in report.evaluations]


# ---------------------------------------------------------------- criterion


@pytest.mark.parametrize("penalty", [0.0, 1.0, np.inf])
def test_pooled_widths_and_residuals_equal_a_direct_computation(penalty):
    data = tuning_data()
    parts = {fold: fold_bands(data, fold, [0.5], [penalty]) for fold in range(4)}
    (found,) = pool(data, [0.5], [penalty], parts)
    W, R = np.zeros(40), np.zeros(40)
    for held in data.folds:
        out = np.isin(np.arange(40), held)
        bands = learn_bands(
            data.points[~out],
            data.r[~out],
            lengthscale=0.5,
            symmetry_penalty=penalty,
            normalize=data.options["normalize"],
            tol=SEARCH_TOL,
            rank=SEARCH_RANK,
        )
        assert bands.gap <= SEARCH_TOL
        lo, up = bands.lower(data.points[out]), bands.upper(data.points[out])
        W[out], R[out] = lo + up, np.abs(data.r[out] - (up - lo) / 2)
    order = np.concatenate(data.folds)
    np.testing.assert_allclose(found.held.widths, W[order], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.held.distances, R[order], rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(found.held.residuals, data.r[order])
    assert found.uncertified == 0
    (some,) = pool(data, [0.5], [penalty], {2: parts[2]})  # what an interrupted search has seen
    np.testing.assert_array_equal(some.held.widths, found.held.widths[20:30])


def test_a_grid_of_candidates_equals_one_by_one():
    """Warm starts change the path to a solution, not the solution."""
    data = tuning_data()
    ells, penalties = [0.3, 0.6], [0.0, 10.0, np.inf]
    lower, upper, gaps, _ = fold_bands(data, 1, ells, penalties)
    assert (gaps <= SEARCH_TOL).all()
    for i, ell in enumerate(ells):
        for j, penalty in enumerate(penalties):
            alone = fold_bands(data, 1, [ell], [penalty])
            np.testing.assert_allclose(lower[i, j], alone[0][0, 0], rtol=0.02, atol=0.02)
            np.testing.assert_allclose(upper[i, j], alone[1][0, 0], rtol=0.02, atol=0.02)


def test_a_candidate_without_a_certificate_is_never_the_best():
    """HSIC rewards width, and the widths of a solve that diverged may be anything."""
    data = tuning_data()
    parts = {fold: fold_bands(data, fold, [0.3, 0.6], [10.0]) for fold in range(len(data.folds))}
    part = parts[1]
    broken = part.gaps.copy()
    broken[0, 0] = 2.0
    wild, fine = pool(data, [0.3, 0.6], [10.0], parts | {1: part._replace(lower=1e12 * part.lower, gaps=broken)})
    assert (wild.uncertified, wild.failed, fine.failed) == (1, 1, 0)
    assert wild.value("hsic") == -np.inf
    assert np.isfinite(fine.value("hsic"))
    broken[0, 0] = 0.01  # short of the tolerance, but known to be near
    near, _ = pool(data, [0.3, 0.6], [10.0], parts | {1: part._replace(gaps=broken)})
    assert (near.uncertified, near.failed) == (1, 0)
    assert np.isfinite(near.value("hsic"))


def test_criteria_equal_their_formulas():
    rng = np.random.default_rng(0)
    W, R = rng.uniform(0, 2, 50), rng.exponential(size=50)
    each = Evaluation(1.0, 0.0, centred(W, R), 0)
    assert each.value("hsic") == hsic(W, R)
    assert each.value("dcor") == distance_correlation(W, R)
    logs = []
    for level in (0.7, 0.8, 0.9):
        q = np.sort(R - W / 2)[int(np.ceil(level * 51)) - 1]
        centre, half = 7.0, np.maximum(W / 2 + q, 0)
        lower, upper, y = centre - half, centre + half, centre + R
        logs.append(np.log(interval_score(y, lower, upper, level)))
    assert each.value("interval-score") == pytest.approx(-np.mean(logs), rel=1e-12)


def test_interval_score_where_ends_cross():
    """q = -1 leaves the narrow bands empty: their midpoint is missed by R, not by more."""
    W, R = np.array([2.0, 2.0, 2.0, 2.0, 0.2]), np.array([0.0, 0.0, 0.0, 0.0, 0.5])
    q = 0.5 - 0.1
    assert interval_score_at(centred(W, R), 0.8) == pytest.approx(np.mean(W + 2 * q))
    W, R = np.array([2.0] * 9 + [0.2]), np.array([0.0] * 9 + [0.5])
    assert interval_score_at(centred(W, R), 0.8) == pytest.approx(10 * 0.5 / 10)


def test_interval_score_prefers_the_true_bands():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=2000)
    R = np.abs((0.2 + x) * rng.standard_normal(2000))
    scores = [CRITERIA["interval-score"](centred(W, R)) for W in (0.2 + x, np.ones(2000), 1.2 - x)]
    assert scores[0] > scores[1] > scores[2]
    assert np.isfinite(CRITERIA["interval-score"](centred(np.ones(2), R[:2])))


def test_constant_widths_have_criterion_zero():
    each = Evaluation(np.inf, np.inf, centred(np.full(30, 2.0), np.arange(30.0)), 0)
    assert each.value("hsic") == each.value("dcor") == 0


@pytest.mark.usefixtures("small_grid")
def test_every_candidate_has_the_same_folds(monkeypatch):
    seen = []

    def spy(data, fold, lengthscales, penalties):
        seen.append((fold, tuple(data.folds[fold])))
        return fold_bands(data, fold, lengthscales, penalties)

    monkeypatch.setattr(search, "fold_bands", spy)
    X, r = sample(30)
    tune(X, r, cv=3, random_state=0, rules=Rules(complete=True, independence=None))
    assert len(seen) == 6
    assert len(set(seen)) == 3
    assert sorted(i for _, held in set(seen) for i in held) == list(range(30))


# ---------------------------------------------------------------- decision


def constructed(r, strength):
    """Widths that follow |r| by a given strength for (lengthscale, penalty)."""
    noise = np.random.default_rng(1).uniform(size=len(r))
    widths = {candidate: 1 + s * np.abs(r) + 0.1 * noise for candidate, s in strength.items()}
    return [Evaluation(ell, pen, centred(W, np.abs(r)), 0) for (ell, pen), W in widths.items()]


def decided(strength, skewed=True, dependent=True, test_widths=True, **rules):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (120, 1))
    r = rng.gamma(1.0, size=120) - 0.4 if skewed else rng.standard_normal(120)
    r = (0.1 + np.abs(X[:, 0])) * r if dependent else r
    data = TuningData(X, r, (), {"kernel": "matern52"})
    question = Question(data, Rules(**{"criterion": "hsic", **rules}), test_widths, tuple({pen for _, pen in strength}))
    return answer(question, constructed(r, strength))


def answer(question, evaluations, replicate=None):
    independence, symmetry = early_independence(question), early_symmetry(question)
    if question.is_constant(independence, symmetry):
        return constant_bands(question, independence, symmetry)
    return decide(question, evaluations, independence, symmetry, replicate)


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
    rng = np.random.default_rng(0)
    flat = [Evaluation(0.1, pen, centred(np.ones(20), rng.uniform(size=20)), 0) for pen in (0.0, np.inf)]
    data = TuningData(np.zeros((20, 1)), rng.standard_normal(20), (), {"kernel": "matern52"})
    for independence in ("features", "max-statistic", "naive"):
        found = answer(Question(data, Rules(independence=independence), True, (0.0, np.inf)), flat)
        assert found.homoscedastic
        assert found.independence.p_value == 1


def test_fixed_penalty():
    for penalty in (1.0, np.inf, (0.0, 1.0)):
        found = decided({(0.1, penalty): 0.2, (0.5, penalty): 0.7})
        assert (found.lengthscale, found.symmetry_penalty, found.symmetry) == (0.5, penalty, None)
        assert found.sentence.endswith("the best lengthscale by hsic at the given symmetry penalty.")


def test_fixed_lengthscale():
    ell = np.array([0.3, 0.4])
    data = tuning_data()
    evaluations = constructed(data.r, {(0.3, 0.0): 0.3, (0.3, np.inf): 0.2})
    evaluations = [Evaluation(ell, each.symmetry_penalty, each.held, 0) for each in evaluations]
    question = Question(data, Rules(criterion="hsic", symmetry_test=None), False, (0.0, np.inf))
    found = answer(question, evaluations)
    assert found.lengthscale is ell
    assert found.independence is found.symmetry is None
    assert found.sentence == "Best by hsic: independent bands below and above."
    both = answer(Question(data, Rules(), False, (0.0,)), evaluations[:1])
    assert both.sentence == "Lengthscale and symmetry penalty as given."


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


def test_replicates_from_other_splits():
    """Each replicate is the criterion of every penalty's best candidate on another split."""
    data = tuning_data()
    evaluations = constructed(data.r, GRID)
    asked = []

    def replicate(chosen, seed):
        asked.append(([(each.lengthscale, each.symmetry_penalty) for each in chosen], seed))
        wider = [centred(each.held.widths * (1 + seed), each.held.distances) for each in chosen]
        return [Evaluation(1.0, 1.0, held, 0) for held in wider]

    rules = Rules(criterion="hsic", symmetry_test="kruskal-wallis", replicates="splits", n_replicates=3)
    question = Question(data, rules, False, (0.0, 1.0, np.inf))
    found = answer(question, evaluations, replicate)
    assert asked == [([(0.5, 0.0), (0.5, 1.0), (0.1, np.inf)], seed) for seed in range(3)]
    np.testing.assert_allclose(found.replicates[:, 2], 3 * found.replicates[:, 0])  # HSIC is linear in the widths
    assert found.symmetry.name == "kruskal-wallis of 3 other splits"
    run = _Search(data, "hsic", 1, 0)
    first = run.evaluate([0.5], [1.0])
    (again,), (other,) = run.again(first, 0), run.again(first, 1)
    assert len(run.evaluations) == 1
    assert len({first[0].value("hsic"), again.value("hsic"), other.value("hsic")}) == 3
    assert run.again(first, 0)[0].value("hsic") == again.value("hsic")


def test_bootstrap_rule():
    found = decided(GRID, symmetry_test="bootstrap")
    assert found.symmetry.name == "bootstrap"
    assert found.sentence.startswith("Asymmetric bands gain (p = ")
    found = decided({**GRID, (0.5, np.inf): 2.0}, symmetry_test="bootstrap")
    assert (found.lengthscale, found.symmetry_penalty, found.symmetry.p_value) == (0.5, np.inf, 1.0)
    assert found.sentence == "Asymmetric bands gain nothing that could not be chance (p = 1): symmetric bands."


@pytest.mark.parametrize(
    "options",
    [{"criterion": "mse"}, {"symmetry_test": "t"}, {"independence": "t"}, {"level": 1.0}, {"n_permutations": 0}]
    + [{"replicates": "t"}, {"mode": "all"}, {"n_replicates": 1.5}, {"restarts": -1}]
    + [{"n_permutations": 18}, {"level": "a"}, {"seed": -1}],
)
def test_rules_name_what_is_wrong(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Rules(**options)


# ---------------------------------------------------------------- whole runs


@pytest.mark.parametrize(("number", "finite"), [(5, True), (1, False)])
def test_synthetic_cases(number, finite, monkeypatch):
    monkeypatch.setattr(candidates, "PENALTIES", (0.0, 1.0, np.inf))
    monkeypatch.setattr(candidates, "FACTORS", (0.25, 0.6))
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
    report = tune(X, r, rules=Rules(complete=True, independence=None), cv=3, random_state=0, verbose=1)
    assert isinstance(report, TuningReport)
    frame = report.to_frame()
    assert list(frame.columns) == ["lengthscale", "symmetry_penalty", "criterion", "uncertified"]
    assert len(frame) == len(report.evaluations) >= 6
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


@pytest.mark.usefixtures("small_grid")
def test_interruption_keeps_what_was_found(monkeypatch, capsys):
    X, r = sample(30)
    calls = []

    def interrupted_after(limit):
        def evaluate(data, fold, lengthscales, penalties):
            calls.append(fold)
            if len(calls) > limit:
                raise KeyboardInterrupt
            return fold_bands(data, fold, lengthscales, penalties)

        calls.clear()
        monkeypatch.setattr(search, "fold_bands", evaluate)

    every = {"rules": Rules(independence=None, symmetry_test=None, complete=True), "cv": 3, "random_state": 0}
    whole = tune(X, r, **every)
    interrupted_after(2)  # two of the three folds, for the first lengthscale
    report = tune(X, r, **every)
    assert report.interrupted
    assert len(report.evaluations) == 3
    best = max(report.evaluations, key=lambda row: row["criterion"])
    assert (report.lengthscale, report.symmetry_penalty) == (best["lengthscale"], best["symmetry_penalty"])
    assert rows_of(report) != rows_of(whole)[:3]
    assert repr(report).endswith(", interrupted")
    assert "best found so far" in capsys.readouterr().err
    interrupted_after(6 + 1)  # in the local search: the grid is complete
    report = tune(
        X, r, cv=3, random_state=0, rules=Rules(independence=None, symmetry_test=None, complete=True, restarts=1)
    )
    assert report.interrupted
    assert rows_of(report) == rows_of(whole)
    interrupted_after(0)
    with pytest.raises(KeyboardInterrupt):
        tune(X, r, **every)


@pytest.mark.usefixtures("small_grid")
def test_interruption_of_a_test_keeps_the_best_candidate(monkeypatch):
    X, r = sample(30)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("sosbands.tuning.decision.kruskal_wallis_test", interrupted)
    report = tune(X, r, rules=Rules(symmetry_test="kruskal-wallis", independence=None), cv=3, random_state=0)
    best = max(report.evaluations, key=lambda row: row["criterion"])
    assert report.interrupted
    assert (report.lengthscale, report.symmetry_penalty) == (best["lengthscale"], best["symmetry_penalty"])
    assert report.sentence == "Interrupted: the best found so far by interval-score."


# ---------------------------------------------------------------- what is searched


@pytest.mark.usefixtures("small_grid")
def test_early_tests_leave_less_to_search(monkeypatch):
    """Nothing for constant widths, the limit alone without skew, the ends and the best lengthscales otherwise."""
    monkeypatch.setattr(candidates, "PENALTIES", (0.0, 1.0, 10.0, np.inf))
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (100, 1))
    constant = tune(X, rng.standard_normal(100), cv=3, random_state=1)
    assert (constant.homoscedastic, len(constant.evaluations)) == (True, 0)
    scale = 0.1 + np.abs(X[:, 0])
    symmetric = tune(X, scale * np.random.default_rng(2).standard_normal(100), cv=3, random_state=0)
    assert {row["symmetry_penalty"] for row in symmetric.evaluations} == {np.inf}
    skewed = tune(X, scale * (rng.gamma(0.3, size=100) - 0.3), cv=3, random_state=0, rules=Rules(restarts=0))
    tried = [(row["lengthscale"], row["symmetry_penalty"]) for row in skewed.evaluations]
    ells = sorted({ell for ell, _ in tried})
    assert tried[:4] == [(ell, penalty) for ell in ells for penalty in (0.0, np.inf)]
    best = [max(skewed.evaluations[k:4:2], key=lambda row: row["criterion"])["lengthscale"] for k in (0, 1)]
    assert {ell for ell, penalty in tried[4:]} == set(best)
    assert {penalty for _, penalty in tried[4:]} == {1.0, 10.0}
    complete = tune(X, scale * rng.standard_normal(100), cv=3, random_state=0, rules=Rules(complete=True, restarts=0))
    assert len(complete.evaluations) == 8
    assert np.isinf(complete.symmetry_penalty)


def test_lengthscales_keep_held_out_points_supported():
    """In many dimensions short lengthscales leave new points without neighbours: they are not tried."""
    rng = np.random.default_rng(0)
    held = np.arange(40)
    flat, wide = rng.uniform(-1, 1, (200, 1)), rng.standard_normal((200, 10))
    ells = candidates.candidate_lengthscales(flat, "matern52", "auto", held)
    np.testing.assert_allclose(np.array(ells) / median_lengthscale(flat), np.geomspace(0.1, 3.2, 6))
    ells = candidates.candidate_lengthscales(wide, "matern52", "auto", held)
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
    monkeypatch.setattr(split, "SEARCH_ROWS", 40)
    X, r = sample(90)
    report = tune(X, r, cv=2, random_state=0)
    assert report.n_rows == 40
    assert rows_of(report) == rows_of(tune(X, r, cv=2, random_state=0))
    K = RBF(0.5)(X)
    other = tune(K, r, kernel="precomputed", normalize=False, cv=2, random_state=0)
    np.testing.assert_array_equal(other.rows, report.rows)
    assert (len(np.unique(report.rows)), report.rows.max() < 90) == (40, True)


@pytest.mark.usefixtures("small_grid")
def test_the_report_says_what_it_saw(monkeypatch):
    """From its rows and folds alone, without any random number, the criterion of its candidates comes out again."""
    monkeypatch.setattr(split, "SEARCH_ROWS", 40)
    X, r = sample(90)
    units = penalty_scale(X, r)
    report = tune(X, r, cv=3, random_state=0, symmetry_penalty=0.0, lengthscale=0.5, normalize=units)
    assert [len(fold) for fold in report.folds] == [14, 13, 13]
    np.testing.assert_array_equal(np.sort(np.concatenate(report.folds)), np.arange(40))
    options = {"kernel": "matern52", "symmetry_kind": "training", "normalize": units}
    data = split.searched_data(X, r, report.rows, report.folds, options)
    assert (data.options["normalize"].n, units.n) == (40, 90)
    np.testing.assert_array_equal(data.r, r[report.rows])
    again = pool(data, [0.5], [0.0], {k: fold_bands(data, k, [0.5], [0.0]) for k in range(3)})
    assert [each.value(report.criterion) for each in again] == [row["criterion"] for row in report.evaluations]


@pytest.mark.usefixtures("small_grid")
def test_restarts_climb_from_several_candidates():
    X, r = sample(30)
    options = {"cv": 2, "random_state": 0, "symmetry_penalty": 0.0}
    counts = [len(tune(X, r, rules=Rules(restarts=k, independence=None), **options).evaluations) for k in (0, 1, 2)]
    assert counts[0] == 2 < counts[1] < counts[2]
    assert [Rules(mode=mode).n_climbs for mode in ("common", "per-side")] == [0, 1]


@pytest.mark.usefixtures("small_grid")
def test_skew_that_changes_direction_is_not_taken_for_constant():
    """Sizes are the same everywhere, but the tail points down on the left and up on the right."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 1))
    r = np.sign(X[:, 0]) * (rng.exponential(size=200) - 1)
    report = tune(X, r, cv=3, random_state=0)
    assert report.independence.p_value > 0.05 >= report.symmetry.p_value
    assert np.isfinite(report.symmetry_penalty)
    assert np.isinf([row["lengthscale"] for row in report.evaluations]).any()  # constant bands were a candidate
    assert np.isfinite(report.lengthscale)


@pytest.mark.usefixtures("small_grid")
def test_a_penalty_means_the_same_on_a_sample_as_on_all_rows(monkeypatch):
    """The training penalty is a sum over rows: rows given ten times over must not make it ten times weaker."""
    X, r = sample(40)
    X, r = np.repeat(X, 10, axis=0), np.repeat(r, 10)
    seen = []

    def spy(data, fold, lengthscales, penalties):
        seen.append((len(data.r), data.options["normalize"].n))
        return fold_bands(data, fold, lengthscales, penalties)

    monkeypatch.setattr(search, "fold_bands", spy)
    monkeypatch.setattr(split, "SEARCH_ROWS", 40)
    options = {"rules": Rules(independence=None, complete=True), "cv": 2, "random_state": 0}
    tune(X, r, **options)
    tune(X, r, normalize=penalty_units(X, r, "matern52", True), **options)
    assert set(seen) == {(40, 40)}


@pytest.mark.usefixtures("small_grid")
def test_a_complete_search_decides_as_a_lean_one():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (60, 1))
    r = (0.1 + np.abs(X[:, 0])) * rng.standard_normal(60)
    lean, complete = (
        tune(X, r, cv=3, random_state=0, rules=Rules(restarts=1, complete=complete)) for complete in (False, True)
    )
    assert lean.symmetry.p_value > 0.05
    assert len(complete.evaluations) > len(lean.evaluations)
    assert (lean.lengthscale, lean.symmetry_penalty) == (complete.lengthscale, complete.symmetry_penalty)


@pytest.mark.usefixtures("small_grid")
@pytest.mark.parametrize("homoscedastic", [True, False])
def test_an_interrupted_search_obeys_the_early_tests(monkeypatch, homoscedastic):
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (60, 1))
    r = rng.standard_normal(60) * (1 if homoscedastic else 0.1 + np.abs(X[:, 0]))
    calls = []

    def interrupted(data, fold, lengthscales, penalties):
        calls.append(fold)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return fold_bands(data, fold, lengthscales, penalties)

    monkeypatch.setattr(search, "fold_bands", interrupted)
    report = tune(X, r, cv=3, random_state=0, rules=Rules(complete=True))
    assert report.interrupted
    assert (report.homoscedastic, report.symmetry_penalty) == (homoscedastic, np.inf)


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
    assert candidates.candidate_penalties("auto", {"lower": 1, "upper": 1.0})[-1] == np.inf
    assert candidates.candidate_penalties("auto", {"lower": [1.0, 2.0], "upper": np.array([1.0, 2.0])})[-1] == np.inf
    assert np.inf not in candidates.candidate_penalties("auto", {"lower": 1.0, "upper": 1.0 + 1e-12})


@pytest.mark.parametrize("mode", ["per-side", "per-side-and-feature"])
@pytest.mark.parametrize("kind", ["training", "operator"])
@pytest.mark.usefixtures("small_grid")
def test_modes(mode, kind):
    X, r = sample(24, d=2)
    rules = Rules(criterion="dcor", independence=None, mode=mode)
    report = tune(X, r, symmetry_kind=kind, symmetry_penalty=1.0, rules=rules, cv=2, random_state=0)
    last = report.evaluations[-1]["lengthscale"]
    if kind == "training":
        assert set(last) == {"lower", "upper"}
        last = last["lower"]
    assert np.shape(last) == ((2,) if mode == "per-side-and-feature" else ())
    bands = learn_bands(X, r, lengthscale=report.lengthscale, symmetry_penalty=1.0, symmetry_kind=kind, normalize=True)
    assert bands.gap <= 1e-4


@pytest.mark.usefixtures("small_grid")
def test_many_features_leave_room_for_the_first_model():
    search_ = _Search(tuning_data(20), "dcor", None, 0)
    search_.data = TuningData(*sample(20, d=8), search_.data.folds[:0], search_.data.options)
    asked = []

    def evaluate(lengthscales, penalties):
        asked.append(lengthscales[0])
        held = centred(np.arange(20.0), np.arange(20.0) ** len(asked))
        return [Evaluation(lengthscales[0], penalties[0], held, 0)]

    search_.evaluate = evaluate
    search_._climb(Evaluation(1.0, 0.0, centred(np.arange(20.0), np.ones(20)), 0), "per-side-and-feature")
    assert 32 <= len(asked) <= 49


@pytest.mark.usefixtures("small_grid")
def test_fixed_values_of_all_kinds():
    X, r = sample(24, d=2)
    options = {"cv": 2, "random_state": 0, "width_penalty": 5.0, "rules": Rules(complete=True, mode="per-side")}
    for ell in (0.5, [0.5, 0.7], np.array([0.5, 0.7]), {"lower": 0.5, "upper": 0.5}):
        report = tune(X, r, lengthscale=ell, **options)
        assert report.lengthscale is ell
        assert [row["symmetry_penalty"] for row in report.evaluations] == [0.0, 1.0, np.inf]
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
    options = {"cv": 3, "random_state": 0, "rules": Rules(complete=True)}
    named = tune(X, r, kernel="gaussian", lengthscale=0.5, **options)
    K = RBF(0.5)(X)
    for points, kernel in ((X, RBF(0.5)), (X, lambda A, B: RBF(0.5)(A, B)), (K, "precomputed")):
        report = tune(points, r, kernel=kernel, normalize=False, cv=3, random_state=0)
        assert report.independence is None
        assert report.lengthscale == "median"
    units = tune(K, r, kernel="precomputed", normalize=penalty_units(X, r, "gaussian", True), **options)
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
    rules = Rules(complete=True)
    report = tune(X, np.eye(12)[0], cv=3, random_state=0, rules=rules)  # one fold learns from zeros only
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
