"""The numbers of the page, computed in Python: those that the estimator and the metrics give for the same rows."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import betabinom
from sklearn.linear_model import LinearRegression

from report_pages import QUIET, fitted_alike
from report_payload import in_use, opened
from sosbands import SoSBandRegressor
from sosbands.conformal import Band, ScaledScore, conformal_rank, interval, points_needed
from sosbands.metrics import evaluate_intervals
from sosbands.metrics.local import share_range
from sosbands.point_models import GaussianProcess
from sosbands.regressors import PAPER_SETTINGS
from sosbands.report import explore, steps
from sosbands.report.calibrated import calibrated, groups_along, levels_offered, promise
from sosbands.report.payload import _besides, payload
from sosbands.tuning import automatic
from spelled import spelled

pytestmark = QUIET

# rough bands, some of which calibration narrows by more than their width
ROUGH = {**PAPER_SETTINGS, "lengthscale": 0.2, "symmetry_penalty": 0.0, "constant": False}
FOREST = {"base_scale": "forest", "noise_features": "prediction", "conformal_score": "added", "cv": 3}
MODEL = {"base_scale": "model", "noise_features": "lengthscales", "conformal_score": "scaled", "cv": 3}
GIVEN = {"lengthscale": 0.8, "symmetry_penalty": 10.0, "width_penalty": 20.0, "learning_coverage": 0.8}
ROUGH_CASES = {
    f"rough {score} {kind}": {**ROUGH, "conformal_score": score, "calibration": kind}
    for score in ("added", "scaled")
    for kind in ("symmetric", "asymmetric")
}
OTHER_CASES = {
    "everything open": {"cv": 3},
    "added, forest": FOREST,
    "scaled, model": {**MODEL, "calibration": "asymmetric"},
    "all given": {**FOREST, **GIVEN, "noise_features": "inputs+scale"},
}
CASES = ROUGH_CASES | OTHER_CASES
rough_only = pytest.mark.parametrize("explored", ROUGH_CASES, indirect=True)
others_only = pytest.mark.parametrize("explored", OTHER_CASES, indirect=True)


def skewed(n=200, columns=2):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, columns))
    return X, np.sin(2 * X[:, 0]) + (1.1 + X[:, 0]) * rng.exponential(size=n)


def estimator(**settings):
    return SoSBandRegressor(LinearRegression() if "constant" in settings else GaussianProcess(), **spelled(**settings))


@pytest.fixture(scope="module", params=CASES)
def explored(request):
    X, y = skewed(180, 1) if request.param in ROUGH_CASES else skewed()
    data = explore(X, y, estimator=estimator(**CASES[request.param]), target_name="pay")
    return data, fitted_alike(data, X, y, estimator(**CASES[request.param])), X


def chosen(data):
    return data.path.steps[data.path.chosen]


def results(data):
    groups = [groups_along(x) for x in data.test.positions]
    return calibrated(chosen(data), data, levels_offered(data), groups), groups


def check_numbers(data, model, X_test, found, groups):
    """Compare with what the estimator and the metrics give at every level; the number of empty intervals."""
    y, center, n = data.test.y, data.test.prediction, len(data.test)
    empty = 0
    for k, level in enumerate(levels_offered(data)):
        lower, upper = model.predict_interval(X_test, level).T
        row = evaluate_intervals(y, lower, upper, confidence_level=level)
        assert found.quantiles[k] == pytest.approx(np.broadcast_to(model.quantile(level), 2), rel=1e-9)
        counts = [found.both[k], found.lower[k], found.upper[k]]
        assert counts == pytest.approx([n * row[key] for key in ("coverage", "coverage_lower", "coverage_upper")])
        assert found.width[k] == pytest.approx(row["mean_width"], rel=1e-9)
        assert found.empty[k] == row["n_empty"]
        quantiles = np.quantile(upper - lower, [0.1, 0.9], method="inverted_cdf")
        assert (found.narrow[k], found.wide[k]) == pytest.approx(quantiles, rel=1e-9)
        assert found.below[k] == pytest.approx(np.mean(center - lower), rel=1e-9)
        assert found.above[k] == pytest.approx(np.mean(upper - center), rel=1e-9)
        inside = (lower <= y) & (y <= upper)
        np.testing.assert_array_equal(k >= found.inside_from, inside)
        for axis, rows_of_groups in enumerate(groups):
            for g, rows in enumerate(rows_of_groups):
                assert found.groups[axis][g, k] == np.sum(inside[rows])
        empty += row["n_empty"]
    return empty


def test_every_number_is_that_of_the_estimator_at_every_level(explored):
    data, model, X = explored
    found, groups = results(data)
    empty = check_numbers(data, model, X[data.test.numbers], found, groups)
    if data.base_scale == "none" and model.bands is not None:  # the rough ones
        assert (empty > 0) == (data.score.name == "added")  # crossed ends are among the cases
    assert np.isinf(found.width[-1])  # and infinite intervals
    assert found.error[-1] == 0
    lower, upper = model.predict_interval(X[data.test.numbers], 0.8).T
    error = 1.959964 * np.std(upper - lower, ddof=1) / np.sqrt(len(lower))
    assert found.error[levels_offered(data).index(0.8)] == pytest.approx(error, rel=1e-6)
    step, rows = chosen(data), np.setdiff1d(np.arange(len(X)), data.test.numbers)
    np.testing.assert_allclose(step.lower_scores, model.calibration_.lower_scores, rtol=1e-12)
    np.testing.assert_allclose(step.upper_scores, model.calibration_.upper_scores, rtol=1e-12)
    np.testing.assert_array_equal(step.active_lower, rows[model.noise_.active_lower])
    np.testing.assert_array_equal(step.active_upper, rows[model.noise_.active_upper])
    assert step.certificate == model.noise_.certificate | {"seconds": step.certificate["seconds"]}


def test_the_check_of_numbers_rejects_another_unit(explored):
    data, model, X = explored
    wrong = replace(data, test_unit=1.1 * data.test_unit)
    with pytest.raises(AssertionError):
        check_numbers(wrong, model, X[data.test.numbers], *results(wrong))


def test_what_the_levels_promise(explored):
    data, model, _ = explored
    n, m = len(data.test), model.n_calibration_
    for level in (0.5, 0.55, 0.8, 0.9):
        side = level if data.calibration == "symmetric" else (1 + level) / 2
        found = promise(level, data)
        k = conformal_rank(m, side)
        assert (found.rank, found.needed) == (k, points_needed(side))
        assert found.chance == pytest.approx(betabinom(n, k, m + 1 - k).ppf([0.025, 0.975]) / n)
        assert found.end_level == pytest.approx((1 + level) / 2)
    assert promise(0.99, data).chance is None
    assert promise(0.99, data).rank > m


@pytest.mark.parametrize(
    ("x", "sizes"),
    [
        (np.arange(40.0), [20, 20]),
        (np.arange(29.0), [29]),
        (np.arange(200.0), [33, 34, 33, 33, 34, 33]),
        (np.where(np.arange(40) < 25, 0.0, np.arange(40)), [25, 15]),
        (np.zeros(100), [100]),
        (np.repeat([0.0, 1.0], [10, 90]), [100]),
        (np.repeat([0.0, 1.0], [20, 80]), [20, 80]),
    ],
)
def test_groups_hold_equal_places_together(x, sizes):
    order = np.random.default_rng(0).permutation(len(x))
    groups = groups_along(x[order])
    assert [len(rows) for rows in groups] == sizes
    np.testing.assert_array_equal(np.sort(np.concatenate(groups)), np.arange(len(x)))
    ends = [(x[order][rows].min(), x[order][rows].max()) for rows in groups]
    assert all(a[1] < b[0] for a, b in zip(ends[:-1], ends[1:], strict=True))


def test_what_is_stored_is_what_was_computed(explored):
    data, model, X = explored
    found, groups = results(data)
    (stored, step), n, size = in_use(data), len(data.test), np.std(data.test.y - data.test.prediction)
    infinite = [value is None for value in step["q"][-1]]
    np.testing.assert_array_equal(infinite, np.isinf(found.quantiles[:, 1]))
    assert len(step["q"]) == (1 if data.calibration == "symmetric" else 2)
    finite = np.isfinite(found.width)
    for name in ("width", "below", "above", "error", "narrow", "wide"):
        np.testing.assert_allclose(step[name], getattr(found, name)[finite], atol=1e-5)
    for name in ("both", "lower", "upper", "empty", "inside_from"):
        np.testing.assert_array_equal(step[name], getattr(found, name))
    first = np.array(step["inside_from"])[:, None] <= np.arange(len(finite))
    for axis, place in enumerate(stored["groups"]):
        assert place["n"] == [len(rows) for rows in groups[axis]]
        x = [data.test.positions[axis][rows] for rows in groups[axis]]
        for ends, end in zip(place["ends"], (np.min, np.max), strict=True):
            assert ends == pytest.approx([end(each) for each in x], abs=1e-4)
        member = np.array(place["member"])
        counts = np.array([first[member == g].sum(axis=0) for g in range(len(place["n"]))])
        for _, g, level, more in (each for each in step["besides"] if each[0] == axis):
            counts[g, level] += more
        np.testing.assert_array_equal(counts, found.groups[axis])
    assert {n, *stored["groups"][0]["n"]} <= set(stored["share_ranges"])
    np.testing.assert_allclose(stored["share_ranges"][n], share_range(np.arange(n + 1), n), atol=1e-5)
    assert stored["little_support"] == model.support_limit
    bands, q = step["test"], np.broadcast_to(model.quantile(0.95), 2)  # none cross
    lower, upper = model.predict_interval(X[data.test.numbers], 0.95).T
    reach = [np.add(bands["reach"][k], q[k] * np.asarray(bands["units"][k])) for k in (0, 1)]
    np.testing.assert_allclose(reach, [data.test.prediction - lower, upper - data.test.prediction], atol=1e-4 * size)
    added = ["{q} times the base scale added to {ends}", "{q} times the base scale taken off {ends}"]
    plain = [data.score.outwards, data.score.inwards]
    in_scales = data.base_scale != "none" and data.score.name == "added"
    assert stored["moves"][stored["score"]] == (added if in_scales else plain)
    if data.base_scale != "none":
        assert stored["moves"][0] == added  # whichever score is in use


@rough_only
def test_rows_that_are_inside_at_single_levels_are_counted(explored):
    """Ends that cross at 60 % leave a midpoint at which a row may lie that is outside at 50 and 70 %."""
    found, _ = results(explored[0])
    inside = np.zeros((3, len(found.both)), dtype=bool)
    inside[0, 5:] = inside[1, 7] = inside[1, 9:] = True
    counts = np.array([inside[[0, 2]].sum(axis=0), inside[[1]].sum(axis=0)])
    made = replace(found, inside_from=np.array([5, 9, inside.shape[1]]), groups=(counts,))
    assert _besides(made, [[np.array([0, 2]), np.array([1])]]) == [[0, 1, 7, 1]]


class TwiceScore(ScaledScore):
    """A score that the package does not have."""

    def band(self, center, below, above, support=None, unit=1.0):
        return Band(center, center, 2 * unit * below, 2 * unit * above, support)


@rough_only
def test_another_score_needs_no_other_code(explored):
    data, score = explored[0], TwiceScore()
    of_all = (data.path.steps[0], *data.path.steps[0].others)
    others = tuple(each for each in of_all if each.score.name != score.name)
    ranks = np.arange(1.0, 69)
    step = replace(of_all[0], score=score, lower_scores=ranks, upper_scores=ranks, others=others)
    found = calibrated(step, data, [0.5], [])
    below, above = step.test
    assert found.below[0] == pytest.approx(np.mean(found.quantiles[0, 0] * 2 * below))
    assert found.above[0] == pytest.approx(np.mean(found.quantiles[0, 1] * 2 * above))
    path = replace(data.path, steps=(step,), chosen=0)
    stored = payload(replace(data, path=path, coverages=(path,)))
    bands = opened(stored, stored["coverages"][0]["steps"][0], score.name)["test"]
    assert not np.any(bands["reach"])
    np.testing.assert_allclose(bands["units"], [2 * below, 2 * above], atol=1e-4)


@pytest.mark.parametrize("score", ["added", "scaled"])
def test_the_curve_is_that_of_the_estimator(score):
    X, y = skewed(120, 1)
    settings = {**FOREST, **GIVEN, "noise_features": "inputs+scale", "conformal_score": score}
    data = explore(X, y, estimator=estimator(**settings))
    model, axis, step = fitted_alike(data, X, y, estimator(**settings)), data.axes[0], chosen(data)
    band = step.score.band(axis.prediction, *step.curve, unit=data.curve_unit)
    ends, _ = interval(band, *np.broadcast_to(model.quantile(0.8), 2))
    np.testing.assert_allclose(ends, model.predict_interval(axis.grid[:, None], 0.8), rtol=1e-12)
    np.testing.assert_allclose(data.path.curve_support, model.support(axis.grid[:, None]), rtol=1e-12)
    stored = payload(data)
    for step, each in zip(data.path.steps, stored["coverages"][stored["coverage"]]["steps"], strict=True):
        drawn = opened(stored, each)["curve"]
        units = np.maximum(step.curve, np.transpose([step.score.floors])) if score == "scaled" else np.ones((2, 1))
        np.testing.assert_allclose(drawn["units"], units * data.curve_unit, atol=1e-4)
        assert np.any(drawn["reach"]) == (score == "added")


@others_only
def test_other_steps_are_the_estimator_with_that_penalty(explored):
    data, model, X = explored
    noise = model.noise_
    settings = {name: getattr(noise.settings, name) for name in ("width_penalty", "learning_coverage")}
    settings |= {"base_scale": noise.view.base_scale, "noise_features": noise.view.noise_features, "cv": model.cv}
    settings |= {"lengthscale": noise.lengthscale, "calibration": model.calibration, "tol": 1e-6}
    settings["conformal_score"] = noise.score.name
    for step in (data.path.steps[0], data.path.steps[4], data.path.steps[-1]):
        other = fitted_alike(data, X, skewed()[1], estimator(**settings, symmetry_penalty=step.symmetry_penalty))
        assert other.tuning_ is None
        band = step.score.band(data.test.prediction, *step.test, unit=data.test_unit)
        q = np.broadcast_to(other.quantile(0.8), 2)
        expected = other.predict_interval(X[data.test.numbers], 0.8)
        np.testing.assert_allclose(interval(band, *q)[0], expected, atol=0.02 * other.residual_rms_)
        if step.score.name == "scaled":
            assert step.score.floors == pytest.approx(other.noise_.score.floors, rel=0.01)


def test_the_slide_goes_from_independent_to_shared_certified(explored):
    data, model, _ = explored
    assert set(automatic.COUPLINGS) <= set(steps.COUPLINGS)  # what the choice tries is on the slider
    shown = [step.symmetry_penalty for step in data.path.steps]
    width = model.noise_.settings.width_penalty
    expected = {0, *(times * width for times in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)), np.inf}
    if model.noise_.settings.learning_coverage == 1:  # the paper's, in other units
        expected = {0, 2, 5, 10, 20, 50, 100, 200, 500, 1000, np.inf}
    assert shown == sorted({*expected, model.noise_.settings.symmetry_penalty})
    assert chosen(data).symmetry_penalty == model.noise_.settings.symmetry_penalty
    differences = [step.difference for step in data.path.steps]
    assert differences[-1] == 0
    assert differences[1] > 0.5 * differences[0] > 0.02
    assert differences[-2] < 0.1 * differences[0]
    for step in data.path.steps:
        assert step.certificate["status"] == "converged"
        assert step.certificate["gap"] <= 1e-4
        assert step.certificate["dual_value"] <= step.certificate["primal_value"]


@pytest.mark.parametrize(
    ("ell", "base_scale", "words"),
    [
        ("median", "forest", "lengthscale "),
        ([0.4, 0.9], "forest", "one lengthscale for each feature, "),
        ({"lower": 0.5, "upper": 0.8}, "forest", "one lengthscale below, another above, "),
        (np.inf, "forest", "a constant multiple of the base scale, "),
        (np.inf, "none", "constant width, "),
    ],
)
def test_lengthscales_of_any_form(ell, base_scale, words):
    X, y = skewed(100)
    given = {"base_scale": base_scale, "noise_features": "inputs", "width_penalty": 30.0, "lengthscale": ell}
    data = explore(X, y, estimator=estimator(**FOREST | given))
    model = fitted_alike(data, X, y, estimator(**FOREST | given))
    assert chosen(data).symmetry_penalty == model.noise_.settings.symmetry_penalty
    last = data.path.steps[-1]
    assert np.isinf(last.symmetry_penalty) != isinstance(ell, dict)  # those have no symmetric limit
    assert data.settings.startswith(words)
    if ell == np.inf:
        assert all(np.ptp(reach) < 1e-9 < np.mean(reach) for reach in last.test)
        assert (np.ptp(data.test_unit) > 0.1) == (base_scale == "forest")


def test_the_decision_and_its_reasons_are_told(explored):
    data, model, _ = explored
    assert data.is_tuned == (model.tuning_ is not None)
    if model.tuning_ is None:
        assert data.sentence == "Lengthscale and symmetry penalty were given, not chosen from the data."
        assert data.reasons == ()
        view, settings = model.noise_.view, model.noise_.settings
        words = f"lengthscale {settings.lengthscale:g}, base scale {view.base_scale}, noise features "
        words += f"{view.noise_features}, width penalty {settings.width_penalty:g}, learning coverage "
        assert data.settings == f"{words}{settings.learning_coverage:g}, {data.score.name} score"
        return
    assert (data.sentence, data.reasons) == (model.tuning_.sentence, model.tuning_.reasons)
    assert len(data.reasons) >= 2
    assert f", base scale {model.noise_.view.base_scale}, noise features " in data.settings


def constant_noise():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (100, 1))
    return X, X[:, 0] + rng.normal(size=100)


@pytest.mark.parametrize(
    ("base_scale", "reach"), [("none", "the same distance"), ("forest", "the same multiple of the base scale")]
)
def test_bands_without_width_are_told(base_scale, reach):
    X, y = constant_noise()
    flat = {**FOREST, **GIVEN, "base_scale": base_scale, "width_penalty": 0.01, "noise_features": "inputs"}
    data = explore(X, y, estimator=SoSBandRegressor(LinearRegression(), **flat))
    assert data.sentence.endswith(f" The bands are as good as zero: calibration makes every interval reach {reach}.")
    found, _ = results(data)
    assert found.width[0] == pytest.approx(2 * found.quantiles[0, 0] * np.mean(data.test_unit), rel=2e-3)


def test_rows_that_nothing_can_be_told_from():
    X, y = skewed(40, 1)
    data = explore(X, y, estimator=SoSBandRegressor(LinearRegression(), calibration_size=0.5))
    assert data.sentence == "Nothing can be told from 15 residuals: the simplest bands."
    assert data.reasons == ()
