"""Intervals from predictions alone: the numbers of the regressors, and errors that name the column."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from sosbands.baselines import GradientBoostingCQR, SplitCP
from sosbands.conformal import ArrayIntervals

RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(120, 2)), RNG.normal(size=(40, 2))
Y = X[:, 0] + RNG.exponential(size=120)
GROUPS, NEW_GROUPS = np.where(X[:, 1] > 0, "a", "b"), np.where(X_NEW[:, 1] > 0, "a", "b")


@pytest.mark.parametrize("calibration", ["symmetric", "asymmetric"])
@pytest.mark.parametrize("groups", [False, True])
def test_predictions_give_the_intervals_of_split_cp(calibration, groups):
    model = SplitCP(LinearRegression(), calibration=calibration, calibration_size=None).fit(X[:60], Y[:60])
    known = {"groups": GROUPS[60:]} if groups else {}
    new = {"groups": NEW_GROUPS} if groups else {}
    model.conformalize(X[60:], Y[60:], **known)
    alone = ArrayIntervals(calibration=calibration).conformalize({"prediction": model.predict(X[60:])}, Y[60:], **known)
    table = pd.DataFrame({"prediction": model.predict(X_NEW)})
    expected = model.predict_interval(X_NEW, [0.5, 0.8], **new)
    assert np.array_equal(alone.predict_interval(table, [0.5, 0.8], **new), expected)
    assert np.array_equal(alone.predict_quantile(table, 0.3, **new), model.predict_quantile(X_NEW, 0.3, **new))


def test_ends_give_conformalised_quantile_regression():
    model = GradientBoostingCQR(max_iter=20, calibration_size=None, random_state=0).fit(X[:60], Y[:60])
    model.conformalize(X[60:], Y[60:])

    def ends(rows):
        band = model.told(rows).band
        return {"lower": band.lower, "upper": band.upper}

    alone = ArrayIntervals().conformalize(ends(X[60:]), Y[60:])
    assert np.array_equal(alone.predict_interval(ends(X_NEW)), model.predict_interval(X_NEW))


def test_scaled_ends_and_scales_by_hand():
    """Nine rows at 90 % take the largest score."""
    y = np.arange(1.0, 10.0)
    asymmetric = {"prediction": np.zeros(9), "lower": -np.ones(9), "upper": np.full(9, 3.0)}
    scaled = ArrayIntervals(conformal_score="scaled").conformalize(asymmetric, y)
    row = {"prediction": [10.0], "lower": [8.0], "upper": [11.0]}
    assert np.allclose(scaled.predict_interval(row), [[10 - 3 * 2, 10 + 3 * 1]])
    normalised = ArrayIntervals().conformalize({"prediction": np.zeros(9), "scale": np.full(9, 3.0)}, y)
    assert np.allclose(normalised.predict_interval({"prediction": [1.0], "scale": [2.0]}), [[-5.0, 7.0]])
    added = ArrayIntervals().conformalize(asymmetric, y)
    assert np.allclose(added.predict_interval(row), [[8 - 6, 11 + 6]])


def test_rows_are_added_weighed_and_evaluated():
    rows, y = {"prediction": np.zeros(60)}, np.linspace(0, 1, 60)
    model = ArrayIntervals().conformalize(rows, y)
    assert model.update({"prediction": [0.0]}, [5.0]).n_calibration_ == 61
    found = model.evaluate(rows, y)
    assert found["coverage"] == np.mean(y <= model.quantile())
    ratio = np.r_[np.zeros(30), np.ones(30)]
    weighted = ArrayIntervals().conformalize(rows, y, likelihood_ratio=ratio)
    assert weighted.predict_interval({"prediction": [0.0]}, 0.5, likelihood_ratio=[1.0])[0, 1] > 0.7


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[0.0]], "X='list': expected a mapping"),
        ({"lower": [0.0, 0.0]}, r"X=\['lower'\]: expected the column 'prediction', or 'lower' and 'upper'"),
        ({"scale": [1.0, 1.0]}, r"X=\['scale'\]: expected the column 'prediction'"),
        ({"prediction": [0.0, 0.0], "scale": [1.0]}, "expected columns of one length"),
        ({"prediction": [0.0, 0.0], "scale": [1.0, -1.0]}, "scale=-1.0: expected numbers >= 0"),
        ({"prediction": [0.0, np.nan]}, "prediction has 1 entries that are NaN or infinite, the first in row 1"),
        ({"prediction": [[0.0], [1.0]]}, "prediction=.*expected one number for each row"),
    ],
)
def test_errors_name_the_column(rows, words):
    with pytest.raises(ValueError, match=words):
        ArrayIntervals().conformalize(rows, [0.0, 1.0])


def test_new_rows_have_the_columns_of_the_calibration():
    model = ArrayIntervals().conformalize({"prediction": np.zeros(20), "scale": np.ones(20)}, np.arange(20.0))
    with pytest.raises(ValueError, match=r"X=\['prediction'\]: expected the columns \['prediction', 'scale'\]"):
        model.predict_interval({"prediction": [0.0]})
