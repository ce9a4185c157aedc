"""How many rows "auto" holds back, and calibration on all rows by what folds have not seen."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor

from sosbands import SoSBandRegressor, load
from sosbands.baselines import GradientBoostingCQR, LocallyWeightedCP, SplitCP
from sosbands.conformal import points_needed
from sosbands.exceptions import LearningRowsWarning, UnstableModelWarning
from sosbands.tables.rows import auto_rows

FIXED = {"base_scale": "none", "noise_features": "inputs", "lengthscale": 1.0, "width_penalty": 3.0}
FIXED |= {"learning_coverage": 0.9, "symmetry_penalty": 1.0, "conformal_score": "scaled", "random_state": 0}


def draw(n, seed=0, columns=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, columns))
    return X, 2 * X[:, 0] + (0.2 + np.abs(X[:, 1])) * (rng.exponential(size=n) - 1)


@pytest.mark.parametrize(
    ("n", "level", "count"),
    [
        (20, 0.9, 9),  # what a finite interval takes
        (60, 0.9, 20),  # a third
        (150, 0.9, 50),  # five times what it takes
        (400, 0.9, 100),  # a quarter
        (400, 0.95, 100),
        (150, 0.95, 50),
        (400, 0.99, 133),
        (250, 0.99, 99),
        (10**6, 0.9, 5000),
    ],
)
def test_auto_holds_back_what_the_level_needs(n, level, count):
    assert auto_rows(n, points_needed(level)) == count


def test_auto_is_the_default_and_counts_by_group():
    X, y = draw(200)
    model = SplitCP(Ridge(), random_state=0).fit(X, y)
    assert (len(model.learning_rows_), len(model.calibration_rows_)) == (150, 50)
    groups = np.repeat(["a", "b"], [160, 40])
    held = SplitCP(Ridge(), random_state=0).fit(X, y, groups=groups).calibration_rows_
    assert np.unique(groups[held], return_counts=True)[1].tolist() == [auto_rows(160, 9), auto_rows(40, 9)]
    asymmetric = SplitCP(Ridge(), calibration="asymmetric", random_state=0).fit(X, y)
    assert len(asymmetric.calibration_rows_) == auto_rows(200, points_needed(0.95)) == 67


@pytest.mark.parametrize("make", [SplitCP, SoSBandRegressor])
def test_too_few_rows_are_refused_before_learning(make):
    X, y = draw(17)
    with pytest.raises(ValueError, match="n_samples = 17 .* takes 9 rows .*'out-of-fold' and 'cross' use every row"):
        make(confidence_level=0.9).fit(X, y)
    with pytest.raises(ValueError, match="level 0.99 takes 99 rows"):
        make(confidence_level=0.99).fit(*draw(150))


def test_out_of_fold_scores_are_those_of_copies_without_the_fold():
    X, y = draw(60)
    model = SplitCP(Ridge(), calibration_size="out-of-fold", random_state=0).fit(X, y)
    cross = SplitCP(Ridge(), calibration_size="cross", random_state=0).fit(X, y)
    assert np.array_equal(model.scores_, cross.scores_)
    assert np.array_equal(model.predict(X), Ridge().fit(X, y).predict(X))
    ends = model.predict(X)[:, None] + np.array([-1, 1]) * np.sort(model.scores_)[55 - 1]  # rank ceil(61 * 0.9)
    assert np.allclose(model.predict_interval(X), ends)


def test_bands_of_folds_have_not_seen_their_rows():
    """Bands scored at rows that they were learnt from cover too little; those of folds do not."""
    model = SoSBandRegressor(Ridge(), calibration_size="out-of-fold", **FIXED)
    found, seen = [], []
    for seed in range(12):
        fitted = model.fit(*draw(80, seed))
        X, y = draw(500, 1000 + seed)
        found.append(fitted.evaluate(X, y)["coverage"])
        known = SoSBandRegressor(Ridge(), calibration_size=None, **FIXED).fit(*draw(80, seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LearningRowsWarning)
            seen.append(known.conformalize(*draw(80, seed)).evaluate(X, y)["coverage"])
    assert 0.88 < np.mean(found) < 0.94
    assert np.mean(seen) < np.mean(found) - 0.01


@pytest.mark.parametrize("kind", ["symmetric", "asymmetric"])
def test_out_of_fold_with_groups_weights_levels_files_and_updates(kind, tmp_path):
    X, y = draw(120)
    groups = np.where(X[:, 0] > 0, "a", "b")
    model = SoSBandRegressor(Ridge(), calibration_size="out-of-fold", calibration=kind, **FIXED)
    model.fit(X, y, groups=groups, sample_weight=np.linspace(0.5, 1, 120))
    assert model.n_calibration_ == len(model.learning_rows_) == len(model.calibration_rows_) == 120
    new, labels = draw(10, 1)[0], ["a", "b"] * 5
    ends = model.predict_interval(new, [0.8, 0.9], groups=labels)
    assert (ends[:, 0, 1] <= ends[:, 0, 0]).all()
    assert np.isfinite(ends).all()
    assert np.isfinite(model.predict_quantile(new, 0.3, groups=labels)).all()
    assert "seen, not proven" in model.summary()
    assert "at least 90%" not in model.summary()
    model.save(tmp_path / "model.sos")
    again = load(tmp_path / "model.sos")
    assert np.array_equal(again.predict_interval(new, [0.8, 0.9], groups=labels), ends)
    assert again.update(*draw(5, 3), groups=["a"] * 5).n_calibration_ == 125
    assert "seen, not proven" in again.summary()


def test_out_of_fold_around_nested_bands_and_frozen_functions():
    X, y = draw(80)
    given = {**FIXED, "nested_coverages": (0.5, 0.9)}
    model = SoSBandRegressor(Ridge(), calibration_size="out-of-fold", **given).fit(X, y)
    assert model.evaluate(*draw(300, 5))["coverage"] > 0.8
    function = SoSBandRegressor(lambda rows: 2 * rows[:, 0], calibration_size="out-of-fold", **FIXED).fit(X, y)
    assert function.n_calibration_ == 80


def test_folds_keep_outliers_among_the_calibration_rows():
    from sosbands.bands import BandSettings

    X, y = draw(100)
    y[:5] += 50
    bands = BandSettings(outlier_fraction=0.05)
    model = SoSBandRegressor(Ridge(), calibration_size="out-of-fold", bands=bands, **FIXED).fit(X, y)
    assert model.n_noise_rows_ == 95
    assert model.n_calibration_ == 100
    assert np.sum(model.scores_ > 5 * np.median(model.scores_)) >= 5


@pytest.mark.parametrize("make", [SplitCP, LocallyWeightedCP])
def test_unstable_models_are_warned_of(make):
    """Least squares with 95 columns of 100 rows covers .7 in place of .9; steady models are let pass."""
    X, y = draw(100, columns=95)
    with pytest.warns(UnstableModelWarning, match="95 coefficients for 100 rows"):
        make(LinearRegression(), calibration_size="out-of-fold", random_state=0).fit(X, y)
    for steady in (Ridge(alpha=10.0), KNeighborsRegressor(), LinearRegression()):
        make(steady, calibration_size="out-of-fold", random_state=0).fit(X[:, :5], y)


def test_models_that_more_rows_make_worse_are_warned_of():
    class Worse(Ridge):
        def fit(self, X, y, sample_weight=None):
            self.shift = len(y) / 20
            return super().fit(X, y, sample_weight)

        def predict(self, X):
            return super().predict(X) + self.shift

    with pytest.warns(UnstableModelWarning, match="more rows make it worse"):
        SplitCP(Worse(), calibration_size="out-of-fold", random_state=0).fit(*draw(100))


def test_every_baseline_calibrates_out_of_fold():
    X, y = draw(60)
    for model in (LocallyWeightedCP(Ridge()), GradientBoostingCQR(max_iter=10)):
        fitted = model.set_params(calibration_size="out-of-fold", random_state=0).fit(X, y)
        assert fitted.n_calibration_ == 60
        assert 0.8 < fitted.evaluate(*draw(300, 2))["coverage"] < 1


def test_rows_that_were_calibrated_on_are_known_again():
    X, y = draw(120)
    model = SplitCP(Ridge(), random_state=0).fit(X, y)
    held = model.calibration_rows_
    with pytest.warns(LearningRowsWarning, match=f"{len(held)} of the {len(held)} rows .* calibrated on already"):
        model.evaluate(X[held], y[held])
    new = draw(20, 7)
    model.update(*new)
    with pytest.warns(LearningRowsWarning, match="20 of the 20 rows given to update were calibrated on already"):
        model.update(*new)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.evaluate(*draw(50, 8))
