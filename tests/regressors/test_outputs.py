"""What point models and preprocessors of the user's give is read with care: the error says which object gave what."""

import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sosbands import SoSBandRegressor
from sosbands.bands import BandSettings
from sosbands.baselines import LocallyWeightedCP, SplitCP
from sosbands.exceptions import RefittedWarning
from sosbands.point_models import ModelBlend
from sosbands.regressors import PAPER_SETTINGS

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (30, 2))
Y = X[:, 0] + RNG.standard_normal(30)
FAST = {**PAPER_SETTINGS, "lengthscale": "median", "symmetry_penalty": 1.0, "random_state": 0}
FAST |= {"bands": BandSettings(tol=1e-2), "calibration_size": 0.5}

GIVEN = {  # what comes back, and what the error says of it
    "fewer rows": (lambda p: p[:-1], r"has shape \((29|14|2|5)"),
    "two columns": (lambda p: np.stack([p, p], axis=-1), r"has shape \(\d+, 2\): expected"),
    "complex": (lambda p: p + 1j, "has dtype complex128: expected real numbers"),
    "NaN": (lambda p: p * np.nan, r"has \d+ of \d+ entries that are NaN or infinite, the first in row 0"),
    "infinite": (lambda p: p + np.inf, r"has \d+ of \d+ entries that are NaN or infinite"),
    "huge": (lambda p: p + 1e308, r"has entries as large as 1e\+308: expected at most 1e\+150"),
    "texts": (lambda p: p.astype(str), "has dtype <U32: expected real numbers"),
    "texts in objects": (lambda p: p.astype(str).astype(object), "has dtype object with entries of type str"),
    "dates": (lambda p: p.astype("M8[s]"), r"holds dates \(dtype datetime64\[s\]\)"),
    "spans": (lambda p: p.astype("m8[s]"), r"holds spans of time \(dtype timedelta64\[s\]\)"),
    "None": (lambda _: None, "is None: expected real numbers"),
    "a number": (lambda _: 1.0, r"has shape \(\): expected"),
    "masked": (lambda p: np.ma.MaskedArray(p, np.arange(len(p)) == 0), "has masked entries"),
}
TABLES = {
    "fewer rows": (lambda p: p[:-1], r"has \d+ rows: expected \d+, one for each row of X"),
    "one dimension": (lambda p: p[:, 0], r"must be a table of finite numbers.*got shape \(\d+,\)"),
    "three dimensions": (lambda p: p[:, :, None], r"must be a table.*got shape \(\d+, 2, 1\)"),
    "complex": (lambda p: p + 1j, "must be a table.*dtype complex128"),
    "NaN": (lambda p: p * np.nan, "must be a table of finite numbers"),
    "infinite": (lambda p: p + np.inf, "must be a table of finite numbers"),
    "huge": (lambda p: p * 0 + 1e308, r"has entries as large as 1e\+308: expected at most 1e\+150"),
    "texts": (lambda p: p.astype(str), "must be a table.*dtype <U32"),
    "texts in objects": (lambda p: p.astype(str).astype(object), "must be a table.*dtype object"),
    "dates": (lambda p: p.astype("M8[s]"), "must be a table.*datetime64"),
    "None": (lambda _: None, "must be a table.*NoneType"),
    "wider": (lambda p: np.hstack([p, p]), "has 4 columns: expected 2, as"),
}


class Model(RegressorMixin, BaseEstimator):
    def __init__(self, kind="plain", good_calls=0):
        self.kind = kind
        self.good_calls = good_calls

    def fit(self, X, y, sample_weight=None):  # noqa: ARG002
        self.calls_ = 0
        return self

    def predict(self, X):
        self.calls_ += 1
        plain = np.zeros(len(X))
        return plain if self.calls_ <= self.good_calls else GIVEN[self.kind][0](plain)


class Table(TransformerMixin, BaseEstimator):
    def __init__(self, kind="plain", good_calls=0):
        self.kind = kind
        self.good_calls = good_calls

    def fit(self, X, y=None):  # noqa: ARG002
        self.calls_ = 0
        return self

    def transform(self, X):
        self.calls_ += 1
        return X if self.calls_ <= self.good_calls else TABLES[self.kind][0](X)


WAYS = {
    "given": lambda kind: SoSBandRegressor(Model(kind), **FAST),
    "in a pipeline": lambda kind: SoSBandRegressor(make_pipeline(StandardScaler(), Model(kind)), **FAST),
    "frozen": lambda kind: SoSBandRegressor(FrozenEstimator(Model(kind).fit(X, Y)), **FAST),
    "a function": lambda kind: SoSBandRegressor(Model(kind).fit(X, Y).predict, **FAST),
    "in-sample": lambda kind: SoSBandRegressor(Model(kind), **FAST, residuals="in-sample"),
    "split": lambda kind: SplitCP(Model(kind), calibration_size=0.5),
    "local": lambda kind: LocallyWeightedCP(Model(kind), calibration_size=0.5),
}


def refused(kind, whose="estimator: output of Model.predict"):
    return pytest.raises(ValueError, match=f"^{re.escape(whose)} {GIVEN[kind][1]}")


@pytest.mark.parametrize("way", WAYS)
def test_predictions_in_fit(way):
    whose = "output of the function predict" if way == "a function" else "output of Model.predict"
    for kind in GIVEN if way == "given" else ("fewer rows", "NaN"):
        with refused(kind, f"estimator: {whose}"):
            WAYS[way](kind).fit(X, Y)


@pytest.mark.parametrize("kind", GIVEN)
def test_predictions_of_new_rows_and_scales(kind):
    """Learning and calibration go well: the error comes with the first rows to predict."""
    model = SplitCP(Model(kind, good_calls=1)).fit(X, Y)
    for ask in (model.predict, model.predict_interval):
        with refused(kind):
            ask(X)
    with refused(kind, "scale_estimator: output of Model.predict"):
        LocallyWeightedCP(LinearRegression(), Model(kind), calibration_size=0.5).fit(X, Y)


def test_members_of_a_blend():
    with pytest.raises(ValueError, match=r"output of Model.predict has shape \(5,\): expected \(6,\)"):
        ModelBlend([Model("fewer rows"), LinearRegression()]).fit(X, Y)


CASES = [*((kind, calls) for kind in TABLES if kind != "wider" for calls in (0, 3)), ("wider", 2)]


@pytest.mark.parametrize(("kind", "good_calls"), CASES)
def test_points(kind, good_calls):
    """In fit, and at new rows."""
    model = SoSBandRegressor(
        LinearRegression(), **{**FAST, "calibration_size": None}, preprocessor=Table(kind, good_calls)
    )
    with pytest.raises(ValueError, match=f"(?s)^preprocessor: output of Table.(fit_)?transform {TABLES[kind][1]}"):
        model.fit(X, Y).conformalize(X[:9], Y[:9] + 1).predict_interval(X[:5])


def test_errors_of_the_model_itself_say_whose_they_are():
    class Stubborn(Model):
        def fit(self, X, y, sample_weight=None):  # noqa: ARG002
            raise TypeError("no")

    with pytest.raises(TypeError, match="^estimator: Stubborn.fit failed: no$"):
        SplitCP(Stubborn()).fit(X, Y)


def test_rows_of_different_lengths_and_kernels_that_fail_are_named():
    ragged = [[1.0, 2.0], [3.0]] * 6
    for model in (SoSBandRegressor(), SplitCP(LinearRegression())):
        with pytest.raises(ValueError, match="^X: setting an array element with a sequence"):
            model.fit(ragged, Y[:12])
    with pytest.raises(TypeError, match="^kernel: float expected at most 1 argument"):
        SoSBandRegressor(LinearRegression(), **{**FAST, "bands": BandSettings(kernel=float)}).fit(X, Y)


# ---------------------------------------------------------------- models that are fitted already

FITTED = LinearRegression().fit(X, Y)


@pytest.mark.parametrize(
    "model",
    [
        SoSBandRegressor(FITTED, **FAST),
        SoSBandRegressor(make_pipeline(StandardScaler(), LinearRegression()).fit(X, Y), **FAST),
        SoSBandRegressor(FITTED, **{**FAST, "calibration_size": "cross"}, cv=2),
        SplitCP(FITTED),
        LocallyWeightedCP(scale_estimator=FITTED, estimator=LinearRegression()),
    ],
)
def test_a_refit_is_told_once(model):
    name = "scale_estimator" if isinstance(model, LocallyWeightedCP) else "estimator"
    expected = f"^{name}: the LinearRegression is fitted already, but a copy .*FrozenEstimator.*clone"
    with pytest.warns(RefittedWarning, match=expected) as heard:
        model.fit(X, Y)
    assert len(heard) == 1


def test_nothing_is_told_of_models_that_are_used_as_they_are_or_that_are_not_fitted():
    for model in (FrozenEstimator(FITTED), LinearRegression(), clone(FITTED), FITTED.predict):
        SplitCP(model).fit(X, Y)
    search = GridSearchCV(SplitCP(LinearRegression(), random_state=0), {"confidence_level": [0.7, 0.8]}, cv=2)
    cross_val_score(search.fit(X, Y).best_estimator_, X, Y, cv=2)
    clone(SplitCP(FITTED)).fit(X, Y)
