"""Quantile models of the user's: every way to ask for quantiles, two-sided base scales, calibration as they are."""

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge, QuantileRegressor, Ridge

from sosbands import SoSBandRegressor
from sosbands.bands.views import MODEL
from sosbands.conformal import ArrayIntervals
from sosbands.point_models import QuantileModel

LEVELS = (0.05, 0.5, 0.95)


def draw(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, 2 * X[:, 0] + (0.2 + np.abs(X[:, 1])) * (rng.exponential(size=n) - 1)


X, Y = draw(120)


class Oracle(RegressorMixin, BaseEstimator):
    """Knows the quantiles of `draw`; `n_fits_` counts how often a copy was fitted."""

    def fit(self, X, y):  # noqa: ARG002
        self.is_fitted_ = True
        return self

    def quantile(self, X, q):
        return 2 * X[:, 0] + (0.2 + np.abs(X[:, 1])) * (-np.log1p(-q) - 1)


class Forest(Oracle):
    def predict(self, X, quantiles=0.5):
        return np.column_stack([self.quantile(X, q) for q in np.atleast_1d(quantiles)])


class Foundation(Oracle):
    """With the signature of TabPFN's and TabICL's regressors."""

    def predict(self, X, *, output_type="mean", quantiles=None):
        if output_type == "mean":
            return self.quantile(X, 0.5)
        assert output_type == "quantiles"
        return [self.quantile(X, q) for q in quantiles]


class Distribution(Oracle):
    """With the signature of NGBoost's."""

    def predict(self, X):
        return self.quantile(X, 0.5)

    def pred_dist(self, X):
        size = 0.2 + np.abs(X[:, 1])
        return stats.expon(loc=2 * X[:, 0] - size, scale=size)


class One(Oracle):
    def __init__(self, alpha=0.5):
        self.alpha = alpha

    def predict(self, X):
        return self.quantile(X, self.alpha)


def ends_of_oracle(rows):
    return Oracle().quantile(rows, 0.05), Oracle().quantile(rows, 0.5), Oracle().quantile(rows, 0.95)


WAYS = {
    "quantiles": Forest(),
    "typed quantiles": Foundation(),
    "distribution": Distribution(),
    "triple": tuple(One(alpha) for alpha in LEVELS),
    "function": QuantileModel(ends_of_oracle),
    "adapter": QuantileModel(lower=One(0.05), middle=One(0.5), upper=One(0.95)),
    "frozen": FrozenEstimator(Forest().fit(X, Y)),
}
FIXED = {"base_scale": MODEL, "noise_features": "inputs", "lengthscale": np.inf, "width_penalty": 3.0}
FIXED |= {"learning_coverage": 0.9, "symmetry_penalty": np.inf, "random_state": 0}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_gives_the_same_intervals(way):
    """Bands of constant width in the two-sided scale, shifted: CQR up to what the constant is."""
    model = SoSBandRegressor(WAYS[way], conformal_score="shifted", **FIXED).fit(X, Y)
    new, y_new = draw(500, 1)
    told = model.told(new)
    lower, middle, upper = ends_of_oracle(new)
    assert np.allclose(told.prediction, middle)
    factor = (middle - told.band.lower) / (middle - lower)
    assert np.allclose(factor, factor[0], rtol=1e-6)
    assert np.allclose((told.band.upper - middle) / (upper - middle), factor[0], rtol=1e-6)
    held = model.calibration_rows_
    alone = ArrayIntervals()
    by_hand = {"lower": model.told(X[held]).band.lower, "upper": model.told(X[held]).band.upper}
    ends = alone.conformalize(by_hand, Y[held]).predict_interval({"lower": told.band.lower, "upper": told.band.upper})
    assert np.allclose(model.predict_interval(new), ends)
    assert 0.8 < model.evaluate(new, y_new)["coverage"] < 0.98


@pytest.mark.parametrize("score", ["added", "scaled", "shifted"])
def test_scores_have_a_unit_for_each_side(score):
    model = SoSBandRegressor(Forest(), conformal_score=score, **FIXED).fit(X, Y)
    new = draw(50, 1)[0]
    ends, (lower, middle, upper) = model.predict_interval(new), ends_of_oracle(new)
    if score != "shifted":
        assert np.allclose((middle - ends[:, 0]) / (middle - lower), (ends[:, 1] - middle) / (upper - middle))
    explained = model.explain(new)
    assert np.allclose(explained.width, ends[:, 1] - ends[:, 0])
    assert np.isfinite(model.predict_quantile(new, [0.2, 0.8])).all()
    assert "its own standard deviation" not in model.summary()


def test_the_choice_says_what_won():
    model = SoSBandRegressor(Forest(), random_state=0).fit(*draw(300, 2))
    assert model.noise_.view.base_scale in ("model", "both")
    tried = {row["base_scale"] for row in model.tuning_.evaluations}
    assert {"model", "forest"} <= tried
    assert {row["conformal_score"] for row in model.tuning_.evaluations} == {"added", "scaled", "shifted"}
    plain = SoSBandRegressor(Ridge(), random_state=0).fit(*draw(300, 2))
    assert {row["conformal_score"] for row in plain.tuning_.evaluations} == {"added", "scaled"}


def test_copies_are_fitted_in_the_folds_and_frozen_models_never():
    fits = []

    class Counted(Forest):
        def fit(self, X, y):
            fits.append(len(y))
            return super().fit(X, y)

    SoSBandRegressor(Counted(), calibration_size=None, **FIXED).fit(X, Y)
    assert sorted(fits) == [96] * 5 + [120]
    fits.clear()
    SoSBandRegressor(FrozenEstimator(Counted().fit(X, Y)), calibration_size=None, **FIXED).fit(X, Y)
    assert len(fits) == 1


def test_ends_that_cross_are_moved_to_the_middle():
    model = QuantileModel(lambda rows: (rows[:, 0] + 1, rows[:, 0], rows[:, 0] - 1)).fit(X, Y)
    lower, middle, upper = model.predict_ends(X)
    assert np.array_equal(lower, middle)
    assert np.array_equal(upper, middle)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (QuantileModel(Ridge()), "model='Ridge': expected one of the ways to predict quantiles"),
        (QuantileModel(), "model=None: expected a model alone, or None beside lower and upper"),
        (QuantileModel(Forest(), lower=Ridge(), upper=Ridge()), "expected a model alone"),
        (QuantileModel(lambda rows: rows[:, :1]), "expected a function that gives"),
        (QuantileModel(lambda rows: (rows[:, 0], rows[:5, 0])), "expected .*one number per row"),
        ((Ridge(),), "estimator=.*expected None, a regressor"),
    ],
)
def test_errors_name_what_is_wrong(model, words):
    with pytest.raises(ValueError, match=words):
        SoSBandRegressor(model, calibration_size=0.5, **FIXED).fit(X, Y)


def catboost(loss):
    return pytest.importorskip("catboost").CatBoostRegressor(
        iterations=30, loss_function=loss, verbose=0, thread_count=1, random_seed=0, allow_writing_files=False
    )


REAL = {
    "catboost quantiles": lambda: catboost("MultiQuantile:alpha=0.05,0.5,0.95"),
    "catboost uncertainty": lambda: catboost("RMSEWithUncertainty"),
    "lightgbm pair": lambda: tuple(
        pytest.importorskip("lightgbm").LGBMRegressor(
            objective="quantile", alpha=a, n_estimators=20, n_jobs=1, verbose=-1
        )
        for a in (0.05, 0.95)
    ),
    "ngboost": lambda: pytest.importorskip("ngboost").NGBRegressor(n_estimators=30, verbose=False, random_state=0),
    "quantile forest": lambda: pytest.importorskip("quantile_forest").RandomForestQuantileRegressor(30, random_state=0),
    "scikit-learn boosting": lambda: tuple(
        HistGradientBoostingRegressor(loss="quantile", quantile=q, max_iter=20, random_state=0) for q in LEVELS
    ),
    "linear quantiles": lambda: (QuantileRegressor(quantile=0.05, alpha=0), QuantileRegressor(quantile=0.95, alpha=0)),
    "return_std": BayesianRidge,
}


@pytest.mark.parametrize("name", REAL)
def test_models_of_other_libraries(name):
    """Coverage, and intervals that follow the noise: the rows of much of it have wider ones."""
    model = REAL[name]()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="ngboost|lightgbm|catboost")
        warnings.filterwarnings("ignore", message=".*feature names.*")
        fitted = SoSBandRegressor(model, random_state=0).fit(*draw(240, 3))
        new, y_new = draw(1000, 4)
        ends = fitted.predict_interval(new)
    assert 0.8 < np.mean((ends[:, 0] <= y_new) & (y_new <= ends[:, 1])) < 0.98
    width = ends[:, 1] - ends[:, 0]
    assert np.median(width[np.abs(new[:, 1]) > 0.7]) > 1.3 * np.median(width[np.abs(new[:, 1]) < 0.2])


def test_it_is_cloned_like_any_regressor():
    pair = QuantileModel(lower=One(0.05), upper=One(0.95), level=0.8)
    again = clone(pair).set_params(lower__alpha=0.1)
    assert again.get_params()["lower__alpha"] == 0.1
    assert pair.lower.alpha == 0.05
    assert pair.fit(X, Y).predict(X).shape == (120,)
