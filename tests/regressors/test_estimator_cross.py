"""calibration_size="cross": what each copy sees, MAPIE as an oracle, coverage over draws, the whole interface."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import PredefinedSplit
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import sosbands
from coverage_contract import LAWS, assert_coverage, coverages_of_parts
from sosbands import SmoothingSplineRegressor, SoSBandRegressor
from sosbands.baselines import GradientBoostingCQR, HomoscedasticGP, LocallyWeightedCP, SplitCP
from sosbands.conformal import Calibration
from sosbands.conformal.cross import cross_intervals, proven_coverage
from sosbands.exceptions import CrossedIntervalsWarning, LearningRowsWarning, TooFewCalibrationPointsWarning
from sosbands.plotting import plot_active_rows, plot_bands, plot_calibration
from sosbands.regressors.folds import fold_of_rows
from sosbands.report import write_page

FIXED = {
    "base_scale": "none",
    "noise_features": "inputs",
    "lengthscale": 0.5,
    "width_penalty": 1.0,
    "learning_coverage": 0.9,
    "symmetry_penalty": 1.0,
    "conformal_score": "added",
}


def rows(n=60, seed=0):
    return LAWS[0].draw(np.random.default_rng(seed), n)


def bands(**settings):
    given = {"calibration_size": "cross", "random_state": 0, **FIXED, **settings}
    return SoSBandRegressor(SmoothingSplineRegressor(), **given)


def local(**settings):
    return LocallyWeightedCP(LinearRegression(), LinearRegression(), calibration_size="cross", **settings)


@pytest.fixture(scope="module")
def fitted():
    return bands().fit(*rows())


# ---------------------------------------------------------------- against MAPIE


@pytest.mark.parametrize("n", [41, 100])
@pytest.mark.parametrize(("kind", "score"), [("symmetric", "absolute"), ("asymmetric", None)])
def test_intervals_are_those_of_mapie(n, kind, score):
    """Its "plus" method takes the end of rank ceil(level (n + 1)) on each side, as we do."""
    mapie = pytest.importorskip("mapie.regression")
    scores = pytest.importorskip("mapie.conformity_scores")
    X, y = rows(n, seed=n)
    X_new, _ = rows(50, seed=1)
    levels = [0.5, 0.8, 0.9, 0.999]  # the last of which needs more rows
    tree = DecisionTreeRegressor(min_samples_leaf=3, random_state=0)
    ours = SplitCP(tree, calibration=kind, calibration_size="cross", random_state=0).fit(X, y)
    peer = mapie.CrossConformalRegressor(
        tree,
        confidence_level=levels,
        cv=PredefinedSplit(ours.calibration_.folds),
        conformity_score=score or scores.AbsoluteConformityScore(sym=False),
    ).fit_conformalize(X, y)
    points, expected = peer.predict_interval(X_new, aggregate_point_predictions=None, allow_infinite_bounds=True)
    with pytest.warns(TooFewCalibrationPointsWarning, match=f"0.999 needs at least .* points, given: {n};"):
        found = ours.predict_interval(X_new, levels)
    assert np.isinf(found[:, :, 3]).all()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours.predict(X_new), points, rtol=0, atol=1e-12)


# ---------------------------------------------------------------- what the copies see


class Witness(RegressorMixin, BaseEstimator):
    """A line that remembers the rows of every fit of it and of its clones, by their number in the first column."""

    def __init__(self, seen=None):
        self.seen = seen

    def __sklearn_clone__(self):
        return Witness(self.seen)

    def fit(self, X, y):
        self.seen.append(set(np.asarray(X)[:, 0].astype(int).tolist()))
        self.rows_, self.line_ = self.seen[-1], LinearRegression().fit(X, y)
        return self

    def predict(self, X):
        return self.line_.predict(X)


class WitnessScaler(StandardScaler):
    """A preprocessor that remembers its learning rows."""

    def fit(self, X, y=None):
        self.rows_ = set(np.asarray(X)[:, 0].astype(int).tolist())
        return super().fit(X, y)


@pytest.mark.parametrize("cv", [2, 5])
def test_no_part_of_a_copy_has_seen_its_fold(cv):
    X, y = rows(40)
    X, everything, seen = np.column_stack([np.arange(40.0), X]), set(range(40)), []
    given = {"preprocessor": WitnessScaler(), "calibration_size": "cross", "cv": cv, "random_state": 0}
    model = SoSBandRegressor(Witness(seen), **given, **FIXED).fit(X, y)
    assert np.bincount(model.calibration_.folds).tolist() == [40 // cv] * cv
    allowed = [everything - set(np.flatnonzero(model.calibration_.folds == k).tolist()) for k in range(cv)]
    for copy, others in zip(model.calibration_.copies, allowed, strict=True):
        assert copy.estimator_.rows_ == copy.reader_.preprocessor.rows_ == others
        active = {*copy.noise_.active_lower, *copy.noise_.active_upper}
        assert active <= set(range(len(others)))  # numbered among its own rows
        assert len(copy.learning_rows_) == len(others)
    assert model.estimator_.rows_ == model.reader_.preprocessor.rows_ == everything
    # the fits of out-of-fold residuals too
    assert all(any(each <= some for some in (everything, *allowed)) for each in seen)


def test_intervals_and_scores_are_those_of_the_copies(fitted):
    (X, y), (X_new, _) = rows(), rows(30, seed=1)
    folds, copies = fitted.calibration_.folds, fitted.calibration_.copies
    scores = np.empty(60)
    for i, k in enumerate(folds):
        band = copies[k].told(X[[i]]).band
        scores[i] = max(band.lower[0] - y[i], y[i] - band.upper[0])
    np.testing.assert_allclose(fitted.scores_, scores, atol=1e-12)
    new = [copy.told(X_new).band for copy in copies]
    lower = np.sort([new[k].lower - s for k, s in zip(folds, scores, strict=True)], axis=0)
    upper = np.sort([new[k].upper + s for k, s in zip(folds, scores, strict=True)], axis=0)
    expected = np.column_stack([lower[int(0.1 * 61) - 1], upper[int(np.ceil(0.9 * 61)) - 1]])
    np.testing.assert_allclose(fitted.predict_interval(X_new), expected, atol=1e-12)


def test_the_model_of_all_rows_is_that_without_calibration(fitted):
    plain = bands(calibration_size=None).fit(*rows())
    X_new, _ = rows(30, seed=1)
    assert np.array_equal(fitted.predict(X_new), plain.predict(X_new))
    assert np.array_equal(fitted.support(X_new), plain.support(X_new))
    assert np.array_equal(fitted.noise_.active_upper, plain.noise_.active_upper)
    assert fitted.learning_rows_.tolist() == fitted.calibration_rows_.tolist() == list(range(60))
    assert fitted.n_calibration_ == 60


@pytest.mark.parametrize("method", [bands, local])
def test_the_number_of_processes_changes_nothing(method):
    X, y = rows(45)
    one, two, other = (method(random_state=s, cv=3, n_jobs=jobs).fit(X, y) for s, jobs in ((3, None), (3, 2), (4, 1)))
    assert np.array_equal(one.calibration_.folds, two.calibration_.folds)
    assert np.array_equal(one.scores_, two.scores_)
    assert np.array_equal(one.predict_interval(X), two.predict_interval(X))
    assert not np.array_equal(one.calibration_.folds, other.calibration_.folds)


def test_folds_have_their_part_of_every_group():
    labels = np.repeat(["a", "b", "c"], [23, 11, 3])
    folds = fold_of_rows(37, 5, np.random.RandomState(0), labels)
    for part in (slice(None), labels == "a", labels == "b", labels == "c"):
        counts = np.bincount(folds[part], minlength=5)
        assert counts.max() - counts.min() <= 1
    assert sorted(fold_of_rows(4, 9, np.random.RandomState(0)).tolist()) == [0, 1, 2, 3]


def test_time_is_shared_among_the_fits():
    model = bands(max_seconds=42.0, cv=6).fit(*rows(30))
    assert [copy.max_seconds for copy in model.calibration_.copies] == [6.0] * 6


class Doubtful(LinearRegression):
    """A model that warns of few rows."""

    def fit(self, X, y):
        if len(y) < 30:
            warnings.warn(f"only {len(y)} rows", UserWarning, stacklevel=2)
        return super().fit(X, y)


@pytest.mark.parametrize("jobs", [None, 2])
def test_warnings_of_copies_are_heard_once_in_any_process(jobs):
    model = LocallyWeightedCP(Doubtful(), calibration_size="cross", residuals="in-sample", n_jobs=jobs)
    with pytest.warns(UserWarning, match="only 24 rows") as caught:
        model.fit(*rows(30))
    assert [each.filename for each in caught] == [__file__]


# ---------------------------------------------------------------- coverage


def cross_coverages(make, law, n, draws, seed):
    """Shares of new rows inside their intervals of 90 %, those of the contract and those of two broken ones.

    Broken: every row is scored by a copy that has learnt from it; and the level is that which is proven, 80 %.
    """

    def one_draw(rng):
        (X, y), (X_new, y_new) = law.draw(rng, n), law.draw(rng, 100)
        model = make(int(rng.integers(2**31))).fit(X, y)
        ends = [model.predict_interval(X_new, level) for level in (0.9, 0.8)]
        copies = model.calibration_.copies
        folds = (model.calibration_.folds + 1) % len(copies)
        bands = [copy.told(X[folds == k]).band for k, copy in enumerate(copies)]
        model.calibration_ = type(model.calibration_).of_folds(copies, folds, bands, y, None)
        return [(y_new, each) for each in (*ends, model.predict_interval(X_new, 0.9))]

    return [found.both for found in coverages_of_parts(one_draw, draws, seed)]


def assert_cross_coverage(shares, n, level=0.9, n_folds=5):
    """About the level, and no doubt about what is proven."""
    assert_coverage(shares, level - 0.02, level + 0.05, n_tests=12, label="about the level")
    assert_coverage(shares, proven_coverage(level, n, n_folds), 1.0, n_tests=12, label="proven")


def line(seed):
    return SplitCP(LinearRegression(), calibration_size="cross", random_state=seed)


def tree(seed):
    return SplitCP(DecisionTreeRegressor(random_state=0), calibration_size="cross", random_state=seed)


@pytest.mark.parametrize(("make", "law", "broken"), [(line, LAWS[2], 1), (tree, LAWS[1], 2)])
def test_coverage_over_draws_and_that_of_broken_copies(make, law, broken):
    found = cross_coverages(make, law, 40, 200, seed=7)
    assert_cross_coverage(found[0], 40)
    with pytest.raises(AssertionError, match="is below"):
        assert_cross_coverage(found[broken], 40)


def test_coverage_of_bands_over_draws():
    shares, _, _ = cross_coverages(lambda seed: bands(cv=3, random_state=seed), LAWS[0], 40, 50, seed=8)
    mean, error = shares.mean(), shares.std(ddof=1) / np.sqrt(len(shares))
    assert 0.88 - 3 * error < mean < 0.95 + 3 * error


# ---------------------------------------------------------------- groups, levels, sides


def test_groups_are_compared_with_their_own_rows():
    (X, y), (X_new, _) = rows(80), rows(30, seed=1)
    labels, new = (np.where(each[:, 0] < 0, "left", "right") for each in (X, X_new))
    model = line(0).fit(X, y, groups=labels)
    found = model.predict_interval(X_new, groups=new)
    bands_new = [copy.told(X_new).band for copy in model.calibration_.copies]
    for side in ("left", "right"):
        own = labels == side
        alone = Calibration(model.calibration_.lower_scores[own], model.calibration_.upper_scores[own])
        expected = cross_intervals(bands_new, alone, model.calibration_.folds[own], 0.9, "symmetric")
        assert np.array_equal(found[new == side], expected[new == side])
    widths = np.diff(found, axis=1)[:, 0]
    assert widths[new == "right"].min() > 2 * widths[new == "left"].max()  # as the noise is
    with pytest.raises(ValueError, match=r"groups=None: expected one value per row"):
        model.predict_interval(X_new)


def test_levels_and_sides(fitted):
    X_new, _ = rows(30, seed=1)
    several = fitted.predict_interval(X_new, [0.5, 0.8, 0.9])
    assert several.shape == (30, 2, 3)
    assert np.array_equal(several[:, :, 2], fitted.predict_interval(X_new))
    sided = bands(calibration="asymmetric", cv=4).fit(*rows())
    assert "at least 61.2% is proven" in sided.summary()  # 1 - 2 (0.1 + 2 * 3/64)
    below, above = (sided.predict_interval(X_new, 0.8, lower_share=share) for share in (0.0, 1.0))
    assert np.isneginf(below[:, 0]).all()
    assert np.isposinf(above[:, 1]).all()
    assert np.isfinite(below[:, 1]).all()
    assert sided.scores_.shape == (60, 2)


def test_empty_intervals_are_counted():
    X, y = rows(60)
    wide = GradientBoostingCQR(max_iter=5, quantiles=(0.01, 0.99), calibration_size="cross", random_state=0).fit(X, y)
    with pytest.warns(CrossedIntervalsWarning, match="of 60 intervals are empty"):
        ends = wide.predict_interval(X, 0.02)
    assert (ends[:, 0] <= ends[:, 1]).all()
    assert (ends[:, 0] == ends[:, 1]).any()


# ---------------------------------------------------------------- the rest of the interface


@pytest.mark.parametrize(
    "model",
    [
        HomoscedasticGP(calibration_size="cross", random_state=0),
        GradientBoostingCQR(max_iter=5, calibration_size="cross", random_state=0),
        local(cv=3, random_state=0),
        bands(cv=3),
    ],
)
def test_models_come_back_from_files(model, tmp_path):
    X, y = rows(40)
    model = clone(model).fit(X, y)
    assert len(model.calibration_.copies) == getattr(model, "cv", 5)
    model.save(tmp_path / "model")
    loaded = sosbands.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_interval(X, [0.5, 0.8]), model.predict_interval(X, [0.5, 0.8]))
    assert np.array_equal(loaded.scores_, model.scores_)
    new = rows(200, seed=1)
    assert 0.7 < model.evaluate(*new)["coverage"] <= 1
    with pytest.warns(LearningRowsWarning, match="40 of the 40 rows given to evaluate"):
        model.evaluate(X, y)


def test_the_summary_says_what_is_proven_and_what_is_seen(fitted):
    words = fitted.summary(detail=True)
    assert "Cross-calibrated on all 60 rows: about 90% of new rows" in words
    assert f"at least {100 * (0.8 - 8 / 65):.1f}% is proven" in words
    assert "Calibration at 90%: by 5 copies" in words
    assert "at least 90%" not in words
    grouped = bands(cv=5).fit(*rows(), groups=np.repeat(["a", "b"], [50, 10])).summary()
    assert "in 2 groups, the smallest of 10: within each group about 90%" in grouped
    assert "at least 26.7% is proven" in grouped  # 0.8 - 8/15


def test_what_is_not_offered_is_refused_by_name(fitted, tmp_path):
    X, y = rows()
    for call, name in (
        (lambda: fitted.conformalize(X, y), "conformalize"),
        (lambda: fitted.quantile(), "quantile"),
        (lambda: fitted.predict_interval(X, likelihood_ratio=np.ones(60)), "likelihood_ratio"),
    ):
        with pytest.raises(ValueError, match=f"{name} of a model fitted with calibration_size='cross': not offered"):
            call()
    with pytest.raises(ValueError, match="calibration_size='cross', expected 'auto', a part or a number"):
        write_page(X, y, tmp_path / "page.html", estimator=bands())
    with pytest.raises(ValueError, match="calibration_size='cross' with 2 rows: expected at least 3"):
        line(0).fit(X[:2], y[:2])
    with pytest.raises(
        ValueError, match="calibration_size='crossed': expected 'auto', a fraction .*'cross', 'out-of-fold', or None"
    ):
        line(0).set_params(calibration_size="crossed").fit(X, y)
    assert line(0).fit(X[:3], y[:3]).calibration_.folds.max() == 2


def test_a_second_fit_with_a_part_forgets_the_copies():
    X, y = rows(30)
    model = line(0).fit(X, y).set_params(calibration_size=0.5).fit(X, y)
    assert model.calibration_.copies == ()
    assert model.quantile() == SplitCP(LinearRegression(), calibration_size=0.5, random_state=0).fit(X, y).quantile()


def test_pictures_of_such_a_model(fitted):
    X, y = rows()
    X_new, y_new = rows(60, seed=1)
    figure = plot_active_rows(fitted, X, y).figure
    assert "calibration rows" not in [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    plot_bands(fitted, X_new, y_new)
    plot_calibration(fitted, X_new, y_new)
    plt.close("all")


def test_copies_read_rows_as_the_model_does():
    """A single gap lies in one fold: the copy that has not seen it knows of gaps all the same."""
    X, y = rows()
    X[5, 0] = np.nan
    model = SoSBandRegressor(calibration_size="cross", cv=2, max_seconds=0, random_state=0).fit(X, y)
    assert {copy.reader_.kind for copy in model.calibration_.copies} == {model.reader_.kind} == {"columns"}
    assert np.isfinite(model.predict_interval(X[4:7])).all()
