"""Pictures of bands: what is drawn are the values of the model, in the right places, and only rows it is about."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.collections import LineCollection
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from pictures import FIXED, SupportedTent, Tent, labelled, labels, offsets
from sosbands import SoSBandRegressor
from sosbands.exceptions import TooFewCalibrationPointsWarning
from sosbands.plotting import plot_active_rows, plot_bands, plot_widths
from sosbands.plotting.axes import curve_rows
from sosbands.point_models import GaussianProcess

X3 = np.random.default_rng(0).normal(size=(40, 3))
SIDES = ("lower", "upper")


def vertices(ax, start):
    """Corners of a filled area, or ends of the bars, shape (k, 2)."""
    return np.vstack([path.vertices for path in labelled(ax, start).get_paths()])


def lines(ax):
    return [line.get_xydata() for line in ax.get_lines() if len(line.get_xdata())]


def marks(ax, rows, side):
    """Where the rows that shape a band are marked."""
    return offsets(ax, f"{len(rows)} row{'s shape' if len(rows) != 1 else ' shapes'} the {side} band")


def active(model):
    return zip(SIDES, (model.noise_.active_lower, model.noise_.active_upper), strict=True)


def test_the_curve_of_one_feature():
    X = np.array([[0.0], [1.0], [3.0]])
    ax = plot_bands(Tent(), X, confidence_level=0.5, n_points=5, x_range=(-1, 3))
    grid = np.array([-1.0, 0.0, 1.0, 2.0, 3.0])
    for line, shift in zip(lines(ax), (0.0, -0.5, 1.5), strict=True):
        np.testing.assert_allclose(line, np.column_stack([grid, 2 * grid + shift]))
    below, above = vertices(ax, "50 % interval, below"), vertices(ax, "50 % interval, above")
    assert {tuple(point) for point in below} == {(x, 2 * x + shift) for x in grid for shift in (-0.5, 0.0)}
    assert {tuple(point) for point in above} == {(x, 2 * x + shift) for x in grid for shift in (0.0, 1.5)}
    assert ax.get_xlim() == (-1, 3)
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("x", "y", "")
    ax = plot_bands(Tent(), [[0.0], [10.0]], n_points=3)  # the level of the model, the range of the data
    assert labels(ax) == ["prediction", "80 % interval, below", "80 % interval, above"]
    np.testing.assert_allclose(lines(ax)[1], [[-0.4, -1.6], [5, 9.2], [10.4, 20.0]])


def test_parts_meet_inside_of_an_interval_without_its_prediction():
    class Above(Tent):
        def predict_interval(self, X, confidence_level=None):
            return self.predict(X)[:, None] + np.array([1.0, 2.0]) + 0 * confidence_level

    ax = plot_bands(Above(), [[0.0], [1.0]], n_points=2, x_range=(0, 1))
    assert vertices(ax, "80 % interval, below")[:, 1].min() == 1.0  # nothing is filled down to the prediction
    np.testing.assert_allclose(np.ptp(vertices(ax, "80 % interval, above")[:, 1]), 3.0)  # from 1 to 2 + 2


def test_observations_outside_are_crosses():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    y = 2 * X[:, 0] + np.array([-0.81, -0.79, 2.39, 2.41])  # ends: -0.8 and 2.4
    ax = plot_bands(Tent(), X, y)
    np.testing.assert_allclose(offsets(ax, "observations"), np.column_stack([X[1:3, 0], y[1:3]]))
    np.testing.assert_allclose(offsets(ax, "outside of their intervals (2 of 4)"), [[0, -0.81], [3, 8.41]])
    assert ax.get_title() == "50 % of 4 rows inside, mean width 3.2"


def test_places_off_the_data_are_grey():
    ax = plot_bands(SupportedTent(), [[0.0], [1.0]], n_points=7, x_range=(-3, 3))
    spans = [patch.get_extents().transformed(ax.transData.inverted()).intervalx for patch in ax.patches]
    np.testing.assert_allclose(spans, [[-3.5, -1.5], [1.5, 3.5]])  # half a step beyond -3, -2 and 2, 3
    assert labels(ax).count("off the data") == 1
    assert len(plot_bands(SupportedTent(), [[0.0], [0.9]], x_range=(-1, 1)).patches) == 0
    assert len(plot_bands(Tent(), [[0.0], [0.9]], x_range=(-9, 9)).patches) == 0
    ax = plot_bands(SupportedTent(), [[-3.0], [0.0], [1.0], [2.0]], feature="prediction")
    np.testing.assert_allclose(vertices(ax, "off the data"), [[0, -6.8], [0, -3.6], [3, 3.2], [3, 6.4]])
    np.testing.assert_allclose(vertices(ax, "80 % interval, below")[:, 0], [1, 1, 2, 2])


def test_along_a_slice_only_rows_near_it_are_drawn_each_with_its_own_interval():
    ax = plot_bands(Tent(), X3, X3[:, 0], feature=1, n_points=4, x_range=(0, 3))
    held = np.median(X3[:, 0])
    np.testing.assert_allclose(lines(ax)[0], [[x, 2 * held] for x in (0.0, 1.0, 2.0, 3.0)])
    assert ax.get_xlabel() == "feature 1 (other features at their medians)"
    near = np.abs(2 * X3[:, 0] - 2 * held) <= 0.2 * 3.2  # a fifth of the width, which is that of all rows
    inside = (-X3[:, 0] >= -0.8) & (-X3[:, 0] <= 2.4)
    assert 3 < near.sum() < 20
    drawn = np.vstack([each.get_offsets() for each in ax.collections if each.get_label().startswith(("obs", "out"))])
    rows = np.flatnonzero(near)
    rows = np.concatenate([rows[inside[rows]], rows[~inside[rows]]])
    np.testing.assert_allclose(drawn, X3[rows][:, [1, 0]])
    assert any(label.replace("\n", " ").endswith(f"{near.sum()} of 40 rows near this slice") for label in labels(ax))
    bars = [np.vstack(each.get_segments()) for each in ax.collections if isinstance(each, LineCollection)]
    lower, upper = bars[0][0::2], bars[1][1::2]
    np.testing.assert_allclose(lower, np.column_stack([X3[:, 1], 2 * X3[:, 0] - 0.8])[near])
    np.testing.assert_allclose(upper, np.column_stack([X3[:, 1], 2 * X3[:, 0] + 2.4])[near])
    assert ax.get_title() == f"{100 * inside.mean():g} % of 40 rows inside, mean width 3.2"


FRAME = {
    "size": [1.0, 2.0, np.nan, 6.0],
    "count": [1, 2, 2, 9],
    "kind": ["b", "a", "b", "c"],
    "flag": [True, False, False, False],
}


@pytest.mark.parametrize("frame", [pd.DataFrame(FRAME), pl.DataFrame(FRAME)], ids=["pandas", "polars"])
def test_rows_along_a_curve_of_a_data_frame(frame):
    rows = curve_rows(frame, 1, np.array([0.5, 1.5]))
    assert type(rows) is type(frame)
    assert list(rows.columns) == list(FRAME)
    assert [list(np.asarray(rows[name])) for name in FRAME] == [[2.0, 2.0], [0.5, 1.5], ["b", "b"], [False, False]]


def test_categories_keep_their_type_and_columns_may_have_numbers_for_names():
    frame = pd.DataFrame({0: [1.0, 2.0], "kind": pd.Categorical(["v", "v"], categories=["u", "v"])})
    rows = curve_rows(frame, 0, np.array([5.0, 6.0, 7.0]))
    assert rows["kind"].dtype == frame["kind"].dtype
    assert rows[0].tolist() == [5.0, 6.0, 7.0]
    words = curve_rows(np.array([[1, "a"], [2, "b"], [3, "b"]], dtype=object), 0, np.array([7.0, 8.0]))
    assert words.tolist() == [[7.0, "b"], [8.0, "b"]]


def test_bars_sorted_by_the_prediction_are_the_default_with_several_features():
    y = 2 * X3[:, 0] + 1
    ax = plot_bands(Tent(), X3, y)
    center, place = np.sort(2 * X3[:, 0]), np.arange(40)
    np.testing.assert_allclose(vertices(ax, "80 % interval, below")[0::2], np.column_stack([place, center - 0.8]))
    np.testing.assert_allclose(vertices(ax, "80 % interval, above")[1::2], np.column_stack([place, center + 2.4]))
    np.testing.assert_allclose(lines(ax)[0], np.column_stack([place, center]))
    drawn = offsets(ax, "observations")
    np.testing.assert_allclose(drawn[np.argsort(drawn[:, 0])], np.column_stack([place, center + 1]))
    assert ax.get_xlabel() == "rows, sorted by prediction"


def test_of_many_rows_some_are_drawn_each_with_its_interval():
    X = np.arange(100.0)[:, None]
    chosen = np.array([0, 25, 50, 74, 99])
    y = 2 * X[:, 0] + np.where(X[:, 0] == 25, 9.0, 0.0)
    ax = plot_bands(Tent(), X, y, feature="prediction", max_intervals=5)
    expected = np.column_stack([np.arange(5), 2 * chosen - 0.8])
    np.testing.assert_allclose(vertices(ax, "80 % interval, below")[0::2], expected)
    assert "80 % interval, above (5 of 100 rows)" in labels(ax)
    np.testing.assert_allclose(offsets(ax, "observations"), [[0, 0], [2, 100], [3, 148], [4, 198]])
    np.testing.assert_allclose(offsets(ax, "outside of their intervals (1 of 5)"), [[1, 59]])
    assert ax.get_title() == "99 % of 100 rows inside, mean width 3.2"


class Endless(Tent):
    def predict_interval(self, X, confidence_level=None):
        ends = super().predict_interval(X, confidence_level)
        ends[np.asarray(X)[:, 0] > 1, 1] = np.inf
        return ends


@pytest.mark.parametrize("feature", [0, "prediction"])
def test_infinite_ends_reach_the_frame(feature):
    X = np.array([[0.0], [0.5], [2.0]])
    ax = plot_bands(Endless(), X, [0.0, 1.0, 30.0], feature=feature)
    low, high = ax.get_ylim()
    assert -1e3 < low < -0.8
    assert 30 < high < 1e3
    assert vertices(ax, "80 % interval, above")[:, 1].max() == high
    assert "ends at the frame are infinite" in labels(ax)
    assert ax.get_title() == "100 % of 3 rows inside, mean width infinite"
    X = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 0.1]])
    ax = plot_bands(Endless(), X, [0.0, 5.0, 5.0], feature=1)  # the median of the first feature is 2
    np.testing.assert_allclose(offsets(ax, "observations"), [[0.0, 5.0], [0.1, 5.0]])  # near if both are infinite


def test_what_the_picture_shows_is_not_warned_of(learnt):
    model, X, y = learnt
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax = plot_bands(model, X, y, x_range=(-9, 9))
    grid, lower, upper = (lines(ax)[k] for k in range(3))
    with pytest.warns(UserWarning, match="far from the learning data|empty"):
        expected = model.predict_interval(grid[:, :1])
    np.testing.assert_allclose(np.column_stack([lower[:, 1], upper[:, 1]]), expected)
    np.testing.assert_allclose(grid[:, 1], model.predict(grid[:, :1]))
    assert "off the data" in labels(ax)
    few = SoSBandRegressor(GaussianProcess(), **FIXED, calibration_size=5).fit(X, y)
    with pytest.warns(TooFewCalibrationPointsWarning) as caught:  # once, though it is asked twice
        plot_bands(few, X, y)
    assert len(caught) == 1


def test_shaping_rows_are_marked_on_the_rows_of_fit_alone(learnt):
    model, X, y = learnt
    ax = plot_bands(model, X, y)
    for side, rows in active(model):
        np.testing.assert_allclose(marks(ax, rows, side), np.column_stack([X[rows, 0], y[rows]]))
    others = X[::-1].copy()  # as many, in another order
    for given, options in (
        ((model, X, y), {"mark_active": False}),
        ((model, X), {}),
        ((model, others, y), {}),
        ((model, X[:50], y[:50]), {}),
        ((Tent(), X, y), {}),
    ):
        assert not any("shape" in label for label in labels(plot_bands(*given, **options)))
    with pytest.raises(ValueError, match="X holds other rows than those given to fit"):
        plot_bands(model, others, y, mark_active=True)
    with pytest.raises(ValueError, match="X has 50 rows: expected those given to fit"):
        plot_active_rows(model, X[:50], y[:50])
    with pytest.raises(ValueError, match="mark_active=True needs y"):
        plot_bands(model, X, mark_active=True)


def test_shaping_rows_are_found_behind_any_preprocessor_and_marked_where_they_are_drawn():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"dose": rng.uniform(size=60), "ward": rng.choice(["n", "s"], 60)})
    target = pd.Series(frame["dose"] + rng.exponential(size=60), name="pressure (kPa)")
    table = ColumnTransformer([("dose", StandardScaler(), ["dose"]), ("ward", OneHotEncoder(), ["ward"])])
    model = SoSBandRegressor(**FIXED, preprocessor=table).fit(frame, target)
    ax = plot_bands(model, frame, target, feature="dose", n_points=20)
    rows = model.noise_.active_upper
    points = np.column_stack([frame["dose"], target])
    drawn = np.vstack([offsets(ax, "observations"), offsets(ax, "outside")])
    near = rows[[point.tolist() in drawn.tolist() for point in points[rows]]]
    assert 0 < len(near) < len(rows)
    np.testing.assert_allclose(offsets(ax, f"{len(rows)} rows shape the upper band ({len(near)} drawn)"), points[near])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("dose (other features at typical values)", "pressure (kPa)")
    plot_bands(model, frame.sample(frac=1, random_state=0), target, mark_active=None)
    with pytest.raises(ValueError, match="feature='ward' holds"):
        plot_bands(model, frame, target, feature="ward")


def test_groups_go_through(learnt):
    _, X, y = learnt
    groups = np.where(np.arange(len(X)) % 2, "odd", "even")
    model = SoSBandRegressor(GaussianProcess(), **FIXED).fit(X, y, groups=groups)
    for label in ("odd", "even"):
        ax = plot_bands(model, X, groups=label, n_points=5, x_range=(-0.5, 0.5))
        expected = model.predict_interval(np.linspace(-0.5, 0.5, 5)[:, None], groups=[label] * 5)
        np.testing.assert_allclose(lines(ax)[2][:, 1], expected[:, 1])
    ax = plot_bands(model, X, feature="prediction", groups=groups)
    expected = model.predict_interval(X, groups=groups)[np.argsort(model.predict(X))]
    np.testing.assert_allclose(vertices(ax, "90 % interval, above")[1::2, 1], expected[:, 1])


def test_widths_below_and_above():
    X = np.array([[0.0], [0.5], [2.0]])
    ax = plot_widths(SupportedTent(), X, confidence_level=0.5, lower_share=1.0)
    np.testing.assert_allclose(offsets(ax, "rows off the data"), [[1.0, 1.5]])
    handles, names = ax.get_legend_handles_labels()
    np.testing.assert_allclose(handles[names.index("rows")].get_offsets(), [[1.0, 1.5]] * 2)
    np.testing.assert_allclose(*lines(ax)[0].T)  # the diagonal
    assert ax.get_xlim() == ax.get_ylim() == tuple(lines(ax)[0][:, 0])
    assert ax.get_xlim()[0] < 0 < 1.5 < ax.get_xlim()[1]
    assert ax.get_xlabel() == "prediction minus lower end (50 %)"
    ax = plot_widths(Endless(), [[0.0], [3.0], [4.0]])
    np.testing.assert_allclose(offsets(ax, "rows"), [[0.8, 2.4]])
    assert "2 rows with infinite intervals are not shown" in labels(ax)


def test_active_rows_on_their_bands(learnt):
    _, X, y = learnt
    model = SoSBandRegressor(GaussianProcess(), **FIXED, residuals="in-sample").fit(X, y)
    ax = plot_active_rows(model, X, y)
    assert not any("residuals" in label for label in labels(ax))
    points, learning = np.column_stack([X[:, 0], y - model.predict(X)]), model.learning_rows_
    np.testing.assert_allclose(offsets(ax, "learning rows"), points[learning])
    np.testing.assert_allclose(offsets(ax, "calibration rows"), points[model.calibration_rows_])
    for (side, rows), sign in zip(active(model), (-1, 1), strict=True):
        marked = marks(ax, rows, side)
        np.testing.assert_allclose(marked, points[rows])
        curve = labelled(ax, f"{side} band, not calibrated").get_xydata()
        np.testing.assert_allclose(np.interp(marked[:, 0], *curve.T), marked[:, 1], atol=0.02)  # touched in-sample
        assert np.all(sign * np.interp(X[learning, 0], *curve.T) >= sign * points[learning, 1] - 0.02)
    assert {int(text.get_text()) for text in ax.texts} == {row for _, rows in active(model) for row in rows}
    assert ax.get_ylabel() == "y − prediction"


@pytest.mark.parametrize("rule", ["leave-one-out", "out-of-fold"])
def test_active_rows_of_other_residuals_say_so(learnt, rule):
    model, X, y = learnt
    if rule == "out-of-fold":
        rng = np.random.default_rng(1)
        X = rng.uniform(size=(60, 2))
        y = X[:, 0] + rng.exponential(size=60)
        model = SoSBandRegressor(RandomForestRegressor(10, random_state=0), **FIXED).fit(X, y)
    ax = plot_active_rows(model, X, y)
    assert f"learnt from {rule} residuals, not from these" in [text.replace("\n", " ") for text in labels(ax)]
    assert ax.get_xlabel() == ("prediction" if rule == "out-of-fold" else "x")
    x = model.predict(X) if rule == "out-of-fold" else X[:, 0]
    for side, rows in active(model):
        np.testing.assert_allclose(marks(ax, rows, side), np.column_stack([x, y - model.predict(X)])[rows])


@pytest.mark.parametrize("base_scale", ["forest", "model"])
def test_bands_in_units_of_a_base_scale_are_drawn_in_those_of_the_target(learnt, base_scale):
    _, X, y = learnt
    features = {"base_scale": base_scale, "noise_features": "prediction+scale", "learning_coverage": 0.8}
    model = SoSBandRegressor(GaussianProcess(), **{**FIXED, **features}).fit(X, y)
    ax = plot_active_rows(model, X, y)
    below, above = (labelled(ax, f"{side} band, not calibrated").get_xydata() for side in SIDES)
    grid = below[:, :1]
    band = model.told(grid).band  # of the added score: the prediction, and both bands in units of the target
    np.testing.assert_allclose(below[:, 1], band.lower - model.predict(grid), atol=1e-12)
    np.testing.assert_allclose(above[:, 1], band.upper - model.predict(grid), atol=1e-12)
    facts = model.facts(grid)
    unit = model.noise_.view.unit(facts)
    np.testing.assert_allclose(above[:, 1] / unit, model.noise_.upper(model.noise_.view.points(facts)), rtol=1e-10)
    assert np.ptp(unit) > 0.05 * unit.mean()
