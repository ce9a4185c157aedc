"""Intervals as data frames, on demand."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from sosbands import load
from sosbands.baselines import SplitCP
from sosbands.exceptions import LearningRowsWarning


def slope(X):
    return np.asarray(X)[:, 0]


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"a": rng.standard_normal(50), "b": rng.standard_normal(50)}, index=[f"row {i}" for i in range(50)]
    )
    return X, X["a"].to_numpy() + rng.standard_normal(50)


def test_a_pandas_frame_has_the_index_of_the_rows(table):
    X, y = table
    model = SplitCP(slope, random_state=0).fit(X, y)
    plain = model.predict_interval(X)
    frame = model.set_output(intervals="pandas").predict_interval(X)
    assert list(frame.columns) == ["lower", "upper"]
    assert list(frame.index) == list(X.index)
    np.testing.assert_array_equal(frame.to_numpy(), plain)
    by_list = SplitCP(slope, random_state=0).fit(X.to_numpy(), y).set_output(intervals="pandas")
    assert list(by_list.predict_interval(X.to_numpy()[:3].tolist()).index) == [0, 1, 2]


def test_several_levels_have_columns_with_their_names(table):
    X, y = table
    model = SplitCP(slope, random_state=0).fit(X, y)
    plain = model.predict_interval(X, [0.8, 0.875])
    frame = model.set_output(intervals="polars").predict_interval(pl.from_pandas(X), [0.8, 0.875])
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == ["lower_80", "upper_80", "lower_87.5", "upper_87.5"]
    np.testing.assert_array_equal(frame["upper_80"].to_numpy(), plain[:, 1, 0])
    np.testing.assert_array_equal(frame["lower_87.5"].to_numpy(), plain[:, 0, 1])


def test_evaluation_copies_and_files_know_of_it(table, tmp_path):
    X, y = table
    model = SplitCP(LinearRegression(), random_state=0).fit(X, y)
    held = model.calibration_rows_
    with pytest.warns(LearningRowsWarning, match="calibrated on already"):
        row = model.evaluate(X.iloc[held], y[held])
    with pytest.warns(LearningRowsWarning, match="calibrated on already"):
        assert model.set_output(intervals="pandas").evaluate(X.iloc[held], y[held]) == row
    assert isinstance(clone(model).fit(X, y).predict_interval(X), pd.DataFrame)
    model.save(tmp_path / "m.model")
    again = load(tmp_path / "m.model").predict_interval(X)
    np.testing.assert_array_equal(again.to_numpy(), model.predict_interval(X).to_numpy())
    assert isinstance(model.set_output(intervals="default").predict_interval(X), np.ndarray)


def test_an_unknown_output_is_named():
    with pytest.raises(ValueError, match=r"intervals='arrow': expected one of \['default', 'pandas', 'polars'\]"):
        SplitCP().set_output(intervals="arrow")


@pytest.mark.filterwarnings("ignore::sosbands.exceptions.LearningRowsWarning")
def test_evaluation_takes_weights(table):
    """A weight is a number of copies."""
    X, y = table
    times = np.random.default_rng(1).integers(0, 3, 50)
    model = SplitCP(slope, random_state=0).fit(X, y)
    weighted = model.evaluate(X, y, sample_weight=times)
    copied = model.evaluate(X.iloc[np.repeat(np.arange(50), times)], np.repeat(y, times))
    for name in ("coverage", "coverage_lower", "coverage_upper", "mean_width", "interval_score"):
        assert weighted[name] == pytest.approx(copied[name], rel=1e-12)
    assert weighted["coverage"] != model.evaluate(X, y)["coverage"]
