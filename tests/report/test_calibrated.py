"""The numbers of the page, computed in Python: those that the estimator and the metrics give for the same rows."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import betabinom
from sklearn.linear_model import LinearRegression

from report_payload import opened
from sosbands import SoSBandRegressor
from sosbands.conformal import Band, ScaledScore, conformal_rank, points_needed
from sosbands.metrics import evaluate_intervals
from sosbands.metrics.local import share_range
from sosbands.regressors import PAPER_SETTINGS
from sosbands.report import explore
from sosbands.report.calibrated import calibrated, groups_along, levels_offered, promise
from sosbands.report.payload import _besides, payload
from spelled import spelled

pytestmark = [
    pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning"),
    pytest.mark.filterwarnings("ignore::sosbands.exceptions.CrossedIntervalsWarning"),
    pytest.mark.filterwarnings("ignore::sosbands.exceptions.TooFewCalibrationPointsWarning"),
]


def quick(**settings):
    """Rough bands, some of which calibration narrows by more than their width."""
    rough = {"lengthscale": 0.2, "symmetry_penalty": 0.0, "constant": False}
    return SoSBandRegressor(LinearRegression(), **spelled(**{**PAPER_SETTINGS, **rough, **settings}))


def line_data(n=180, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 1))
    return X, np.sin(2 * X[:, 0]) + (1.1 + X[:, 0]) * rng.exponential(size=n)


@pytest.fixture(
    scope="module",
    params=[(kind, score) for score in ("added", "scaled") for kind in ("symmetric", "asymmetric")],
    ids=lambda pair: " ".join(pair),
)
def explored(request):
    X, y = line_data()
    settings = dict(zip(("calibration", "conformal_score"), request.param, strict=True))
    data = explore(X, y, estimator=quick(**settings))
    rows = np.setdiff1d(np.arange(len(y)), data.test.numbers)
    model = quick(random_state=0, **settings).fit(X[rows], y[rows])
    return data, model, X[data.test.numbers]


def results(data):
    groups = [groups_along(x) for x in data.test.positions]
    path = data.path
    return calibrated(path.steps[path.chosen], data, levels_offered(data), groups), groups


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
        assert found.below[k] == pytest.approx(np.mean(center - lower), rel=1e-9)
        assert found.above[k] == pytest.approx(np.mean(upper - center), rel=1e-9)
        inside = (lower <= y) & (y <= upper)
        np.testing.assert_array_equal(k >= found.inside_from, inside)
        for axis, rows_of_groups in enumerate(groups):
            for g, rows in enumerate(rows_of_groups):
                assert found.groups[axis][g, 0, k] == np.sum(y[rows] >= lower[rows])
                assert found.groups[axis][g, 1, k] == np.sum(y[rows] <= upper[rows])
        empty += row["n_empty"]
    return empty


def test_every_number_is_that_of_the_estimator_at_every_level(explored):
    data, model, X_test = explored
    found, groups = results(data)
    empty = check_numbers(data, model, X_test, found, groups)
    assert (empty > 0) == (data.score.name == "added")  # crossed ends are among the cases
    assert np.isinf(found.width[-1])  # and infinite intervals
    assert found.error[-1] == 0


def test_the_error_of_the_mean_width(explored):
    data, model, X_test = explored
    found, _ = results(data)
    lower, upper = model.predict_interval(X_test, 0.8).T
    expected = 1.959964 * np.std(upper - lower, ddof=1) / np.sqrt(len(lower))
    assert found.error[levels_offered(data).index(0.8)] == pytest.approx(expected, rel=1e-6)


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
    data, _, _ = explored
    found, groups = results(data)
    stored = payload(data)
    step, n = opened(stored, stored["coverages"][stored["coverage"]]["steps"][data.path.chosen]), len(data.test)
    infinite = [value is None for value in step["q"][-1]]
    np.testing.assert_array_equal(infinite, np.isinf(found.quantiles[:, 1]))
    assert len(step["q"]) == (1 if data.calibration == "symmetric" else 2)
    finite = np.isfinite(found.width)
    for name in ("width", "below", "above", "error"):
        np.testing.assert_allclose(step[name], getattr(found, name)[finite], atol=1e-5)
    for name in ("both", "lower", "upper", "empty"):
        np.testing.assert_array_equal(step[name], getattr(found, name))
    np.testing.assert_array_equal(step["inside_from"], found.inside_from)
    first = [np.array(step[name])[:, None] <= np.arange(len(finite)) for name in ("lower_from", "upper_from")]
    for axis, place in enumerate(stored["groups"]):
        assert place["n"] == [len(rows) for rows in groups[axis]]
        means = [data.test.positions[axis][rows].mean() for rows in groups[axis]]
        assert place["x"] == pytest.approx(means, abs=1e-4)
        member = np.array(place["member"])
        counts = np.array([[flags[member == g].sum(axis=0) for flags in first] for g in range(len(place["n"]))])
        for _, g, end, level, more in (each for each in step["besides"] if each[0] == axis):
            counts[g, end, level] += more
        np.testing.assert_array_equal(counts, found.groups[axis])
    assert {len(data.test), *stored["groups"][0]["n"]} <= set(stored["share_ranges"])
    np.testing.assert_allclose(stored["share_ranges"][n], share_range(np.arange(n + 1), n), atol=1e-5)
    assert stored["little_support"] == 0.5


def test_rows_that_are_inside_at_single_levels_are_counted(explored):
    """Ends that cross at 60 % leave a midpoint at which a row may lie that is outside at 50 and 70 %."""
    found, groups = results(explored[0])
    inside = np.zeros((3, len(found.both)), dtype=bool)
    inside[0, 5:] = inside[1, 7] = inside[1, 9:] = True
    counts = np.array([[inside[[0, 2]].sum(axis=0)] * 2, [inside[[1]].sum(axis=0)] * 2])
    first = np.array([5, 9, inside.shape[1]])
    made = replace(found, lower_from=first, upper_from=first, groups=(counts,))
    assert _besides(made, [[np.array([0, 2]), np.array([1])]]) == [[0, 1, 0, 7, 1], [0, 1, 1, 7, 1]]


class TwiceScore(ScaledScore):
    """A score that the package does not have."""

    def band(self, center, below, above, support=None, unit=1.0):
        return Band(center, center, 2 * unit * below, 2 * unit * above, support)


def test_another_score_needs_no_other_code(explored):
    data, score = explored[0], TwiceScore()
    of_all = (data.path.steps[0], *data.path.steps[0].others)
    others = tuple(each for each in of_all if each.score.name != score.name)
    ranks = np.arange(1.0, 69)
    step = replace(of_all[0], score=score, lower_scores=ranks, upper_scores=ranks, others=others)
    found = calibrated(step, data, [0.5], [])
    (q, _), (below, above) = found.quantiles[0], step.test
    assert found.below[0] == pytest.approx(np.mean(q * 2 * below))
    assert found.above[0] == pytest.approx(np.mean(found.quantiles[0, 1] * 2 * above))
    path = replace(data.path, steps=(step,), chosen=0)
    stored = payload(replace(data, path=path, coverages=(path,)))
    bands = opened(stored, stored["coverages"][stored["coverage"]]["steps"][0], score.name)["test"]
    assert not np.any(bands["reach"])
    np.testing.assert_allclose(bands["units"], [2 * below, 2 * above], atol=1e-4)


def test_what_is_drawn_has_the_floors_of_its_own_step(explored):
    data, model, _ = explored
    stored = payload(data)
    assert stored["moves"][stored["score"]] == [model.noise_.score.outwards, model.noise_.score.inwards]
    path = data.path
    assert data.score.name == path.steps[0].score.name == model.noise_.score.name
    if data.score.name == "added":
        assert opened(stored, stored["coverages"][stored["coverage"]]["steps"][0])["curves"][0]["units"] == [1, 1]
        return
    assert path.steps[path.chosen].score.floors == pytest.approx(model.noise_.score.floors, rel=1e-9)
    other = next(step for step in path.steps if np.isinf(step.symmetry_penalty))
    assert other.score.floors[0] == pytest.approx(other.score.floors[1])
    assert other.score.floors != pytest.approx(model.noise_.score.floors, rel=1e-3)
    for step, drawn in zip(path.steps, stored["coverages"][stored["coverage"]]["steps"], strict=True):
        units = [np.maximum(f, floor) for f, floor in zip(step.curves[0], step.score.floors, strict=True)]
        curve = opened(stored, drawn)["curves"][0]
        np.testing.assert_allclose(curve["units"], units, atol=1e-4)
        assert not np.any(curve["reach"])


def test_the_criterion_of_the_steps_is_by_the_score_in_use():
    X, y = line_data(60)
    values = [
        [step.criterion for step in explore(X, y, estimator=quick(conformal_score=name)).path.steps]
        for name in ("added", "scaled")
    ]
    assert not set(values[0]) & set(values[1])
