"""The page of an automatic choice: bands in units of a base scale are those of the estimator, with its reasons."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from test_calibrated import check_numbers, results

from report_payload import opened
from sosbands import SoSBandRegressor
from sosbands.conformal import interval
from sosbands.point_models import GaussianProcess
from sosbands.report import explore, steps
from sosbands.report.payload import payload
from sosbands.tuning import automatic
from spelled import spelled

pytestmark = [
    pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning"),
    pytest.mark.filterwarnings("ignore::sosbands.exceptions.CrossedIntervalsWarning"),
    pytest.mark.filterwarnings("ignore::sosbands.exceptions.TooFewCalibrationPointsWarning"),
]

FOREST = {"base_scale": "forest", "noise_features": "prediction", "conformal_score": "added", "cv": 3}
MODEL = {"base_scale": "model", "noise_features": "lengthscales", "conformal_score": "scaled", "cv": 3}
GIVEN = {"lengthscale": 0.8, "symmetry_penalty": 10.0, "width_penalty": 20.0, "learning_coverage": 0.8}
CASES = {
    "everything open": {"cv": 3},
    "added, forest": FOREST,
    "scaled, model": {**MODEL, "calibration": "asymmetric"},
    "all given": {**FOREST, **GIVEN, "noise_features": "inputs+scale"},
}


def skewed(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.sin(2 * X[:, 0]) + (1.1 + X[:, 0]) * rng.exponential(size=n)


def estimator(**settings):
    return SoSBandRegressor(GaussianProcess(), **spelled(**settings))


def fitted_alike(data, X, y, model):
    rows = np.setdiff1d(np.arange(len(y)), data.test.numbers)
    return model.set_params(random_state=0).fit(X[rows], y[rows])


@pytest.fixture(scope="module", params=CASES)
def explored(request):
    X, y = skewed()
    data = explore(X, y, estimator=estimator(**CASES[request.param]), target_name="pay")
    return data, fitted_alike(data, X, y, estimator(**CASES[request.param])), X


def in_use(data):
    return data.path.steps[data.path.chosen]


def test_every_number_is_that_of_the_estimator_at_every_level(explored):
    data, model, X = explored
    check_numbers(data, model, X[data.test.numbers], *results(data))
    np.testing.assert_allclose(in_use(data).lower_scores, model.calibration_.lower_scores, rtol=1e-12)
    np.testing.assert_allclose(in_use(data).upper_scores, model.calibration_.upper_scores, rtol=1e-12)


def test_the_check_of_numbers_rejects_another_unit(explored):
    data, model, X = explored
    wrong = replace(data, test_unit=1.1 * data.test_unit)
    with pytest.raises(AssertionError):
        check_numbers(wrong, model, X[data.test.numbers], *results(wrong))


def test_the_curves_are_those_of_the_estimator(explored):
    data, model, X = explored
    step = in_use(data)
    medians = np.median(np.delete(X, data.test.numbers, axis=0), axis=0)
    for k, axis in enumerate(data.axes[1:], start=1):
        rows = np.tile(medians, (len(axis.grid), 1))
        rows[:, k - 1] = axis.grid
        band = step.score.band(axis.prediction, *step.curves[k], unit=data.curve_units[k])
        ends, _ = interval(band, *np.broadcast_to(model.quantile(0.8), 2))
        np.testing.assert_allclose(ends, model.predict_interval(rows, 0.8), rtol=1e-12)
        np.testing.assert_allclose(data.path.curve_support[k], model.support(rows), rtol=1e-12)
    assert data.curve_units[0].size == 0  # along the prediction there is no curve


def test_what_is_stored_reaches_as_far_as_the_intervals(explored):
    data, model, X = explored
    stored, step = payload(data), in_use(data)
    bands = opened(stored, stored["coverages"][stored["coverage"]]["steps"][data.path.chosen])["test"]
    q = np.broadcast_to(model.quantile(0.8), 2)
    lower, upper = model.predict_interval(X[data.test.numbers], 0.8).T
    center, size = data.test.prediction, np.std(data.test.y - data.test.prediction)
    reach = [np.add(bands["reach"][k], q[k] * np.asarray(bands["units"][k])) for k in (0, 1)]
    np.testing.assert_allclose(reach, [center - lower, upper - center], atol=1e-4 * size)
    if step.score.name == "added":
        np.testing.assert_allclose(bands["units"][0], data.test_unit, atol=1e-5 * size)


def test_other_steps_are_the_estimator_with_that_penalty(explored):
    data, model, X = explored
    y = skewed()[1]
    chosen = {
        "base_scale": model.noise_.view.base_scale,
        "noise_features": model.noise_.view.noise_features,
        "conformal_score": model.noise_.score.name,
        "lengthscale": model.noise_.lengthscale,
        "width_penalty": model.noise_.settings.width_penalty,
        "learning_coverage": model.noise_.settings.learning_coverage,
        "calibration": model.calibration,
        "cv": model.cv,
        "tol": 1e-6,
    }
    for step in (data.path.steps[0], data.path.steps[4], data.path.steps[-1]):
        other = fitted_alike(data, X, y, estimator(**chosen, symmetry_penalty=step.symmetry_penalty))
        assert other.tuning_ is None
        band = step.score.band(data.test.prediction, *step.test, unit=data.test_unit)
        q = np.broadcast_to(other.quantile(0.8), 2)
        expected = other.predict_interval(X[data.test.numbers], 0.8)
        np.testing.assert_allclose(interval(band, *q)[0], expected, atol=0.02 * other.residual_rms_)
        if step.score.name == "scaled":
            assert step.score.floors == pytest.approx(other.noise_.score.floors, rel=0.01)


def test_penalties_are_multiples_of_the_width_penalty(explored):
    data, model, _ = explored
    assert set(automatic.COUPLINGS) <= set(steps.COUPLINGS)  # what the choice tries is on the slider
    shown = [step.symmetry_penalty for step in data.path.steps]
    width = model.noise_.settings.width_penalty
    expected = {0, *(times * width for times in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)), np.inf}
    assert shown == sorted({*expected, model.noise_.settings.symmetry_penalty})
    assert in_use(data).symmetry_penalty == model.noise_.settings.symmetry_penalty
    differences = [step.difference for step in data.path.steps]
    assert differences[-1] == 0
    assert differences[1] > 0.5 * differences[0] > 0.02
    assert differences[-2] < 0.1 * differences[0]
    for step in data.path.steps:
        assert step.certificate["status"] == "converged"
        assert step.certificate["gap"] <= 1e-4


def test_the_criterion_is_that_of_the_choice(explored):
    data, model, _ = explored
    assert data.criterion == "interval-score"
    if model.tuning_ is None:
        assert np.ptp([step.criterion for step in data.path.steps]) > 0.001
        return
    names = ("base_scale", "noise_features", "lengthscale", "width_penalty", "learning_coverage", "conformal_score")
    alike = [
        row for row in model.tuning_.evaluations if all(row[name] == getattr(model.tuning_, name) for name in names)
    ]
    found = {step.symmetry_penalty: step.criterion for step in data.path.steps}
    assert model.noise_.settings.symmetry_penalty in [row["symmetry_penalty"] for row in alike]
    for row in alike:
        assert found[row["symmetry_penalty"]] == row["criterion"]


def test_steps_that_the_choice_has_not_tried_are_judged_as_it_would(monkeypatch):
    X, y = skewed()
    shown = [explore(X, y, estimator=estimator(cv=3)).path.steps]
    monkeypatch.setattr("sosbands.report.steps._known", lambda *_: None)
    shown.append(explore(X, y, estimator=estimator(cv=3)).path.steps)
    looked_up, computed = ([step.criterion for step in path] for path in shown)
    np.testing.assert_allclose(looked_up, computed, atol=0.02)  # coarse solves, from other warm starts
    assert np.ptp(computed) > 0.05


@pytest.mark.parametrize("ell", ["median", [0.4, 0.9], {"lower": 0.5, "upper": 0.8}])
def test_lengthscales_of_any_form(ell):
    X, y = skewed(100)
    settings = {**FOREST, "noise_features": "inputs", "width_penalty": 30.0, "lengthscale": ell}
    data = explore(X, y, estimator=estimator(**settings))
    model = fitted_alike(data, X, y, estimator(**settings))
    path = data.path.steps
    assert in_use(data).symmetry_penalty == model.noise_.settings.symmetry_penalty
    assert np.isinf(path[-1].symmetry_penalty) != isinstance(ell, dict)
    known = {row["criterion"] for row in model.tuning_.evaluations}
    assert in_use(data).criterion in known
    assert all(np.isfinite(step.criterion) for step in path)


def test_the_decision_and_its_reasons_are_told(explored):
    data, model, _ = explored
    stored = payload(data)
    if model.tuning_ is None:
        assert (data.reasons, data.is_tuned) == ((), False)
        assert data.settings == (
            "lengthscale 0.8, base scale forest, noise features inputs+scale, width penalty 20, "
            "learning coverage 0.8, added score"
        )
        return
    assert (data.sentence, data.reasons) == (model.tuning_.sentence, model.tuning_.reasons)
    assert len(data.reasons) >= 3
    assert (stored["sentence"], stored["reasons"]) == (data.sentence, data.reasons)
    assert f", base scale {model.noise_.view.base_scale}, noise features " in stored["settings"]


def test_what_is_added_is_told_in_base_scales(explored):
    data, _, _ = explored
    added = ["{q} times the base scale added to {ends}", "{q} times the base scale taken off {ends}"]
    plain = [data.score.outwards, data.score.inwards]
    told = data.score.name == "added" and data.base_scale != "none"
    stored = payload(data)
    assert stored["moves"][stored["score"]] == (added if told else plain)
    assert payload(replace(data, base_scale="none"))["moves"][stored["score"]] == plain
    if data.base_scale != "none":
        assert stored["moves"][0] == added  # whichever score is in use


def constant_noise():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (100, 1))
    return X, X[:, 0] + rng.normal(size=100)


def test_bands_of_constant_width():
    plain = {"base_scale": "none", "noise_features": "inputs", "symmetry_penalty": np.inf, "cv": 3}
    X, y = constant_noise()
    y = X[:, 0] + np.sign(y - X[:, 0])  # around the true mean no sample shows anything else
    data = explore(X, y, estimator=SoSBandRegressor(lambda X: X[:, 0], **plain))
    assert data.sentence == "Symmetric bands of constant width."
    assert data.settings.startswith("constant width, ")
    assert all(np.ptp(step.curves[0][0]) < 1e-9 for step in data.path.steps)


def test_constant_multiples_of_a_base_scale():
    X, y = constant_noise()
    fixed = {**FOREST, "lengthscale": np.inf, "width_penalty": 30.0}
    data = explore(X, y, estimator=SoSBandRegressor(LinearRegression(), **fixed))
    assert data.settings.startswith("a constant multiple of the base scale, ")
    step = data.path.steps[-1]
    below, unit = step.curves[0][0], data.curve_units[0]
    assert np.ptp(below) < 1e-9 < 0.1 * np.mean(below)
    assert np.ptp(unit) > 0.1
    stored = payload(data)
    drawn = opened(stored, stored["coverages"][stored["coverage"]]["steps"][-1])["curves"][0]
    np.testing.assert_allclose(drawn["reach"][0], below * unit, atol=1e-4)
    assert step.difference == 0


@pytest.mark.parametrize(
    ("base_scale", "reach"), [("none", "the same distance"), ("forest", "the same multiple of the base scale")]
)
def test_bands_without_width_are_told(base_scale, reach):
    X, y = constant_noise()
    flat = {**FOREST, **GIVEN, "base_scale": base_scale, "width_penalty": 0.01, "noise_features": "inputs"}
    data = explore(X, y, estimator=SoSBandRegressor(LinearRegression(), **flat))
    assert data.sentence.endswith(f" The bands are as good as zero: calibration makes every interval reach {reach}.")
    found, _ = results(data)
    width = 2 * found.quantiles[0, 0] * np.mean(data.test_unit)
    assert found.width[0] == pytest.approx(width, rel=2e-3)


def test_rows_that_nothing_can_be_told_from():
    X, y = skewed(40)
    data = explore(X[:, :1], y, estimator=SoSBandRegressor(LinearRegression()))
    assert data.sentence == "Nothing can be told from 15 residuals: the simplest bands."
    assert data.reasons == ()
