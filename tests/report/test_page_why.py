"""Why intervals on the page are wide: what `explain` of the same model says, with rows numbered as in X."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from sosbands import SoSBandRegressor
from sosbands.report import exploration, explore
from sosbands.report.payload import MOST_FEATURES, payload

pytestmark = pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning")

SETTINGS = {"noise_features": "inputs", "symmetry_penalty": 10.0, "lengthscale": 2.0, "width_penalty": 30.0}
SETTINGS |= {"learning_coverage": 0.8, "conformal_score": "added", "base_scale": "forest"}


def table(n=160, columns=3):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(0, 1, (n, columns)), columns=[f"c{k}" for k in range(columns)])
    return X, 5 + X["c0"] + np.where(X["c1"] > 0.6, 4, 1) * rng.exponential(size=n)


def estimator(**settings):
    return SoSBandRegressor(LinearRegression(), **{**SETTINGS, **settings})


@pytest.fixture(scope="module")
def explored():
    X, y = table()
    data = explore(X, y, estimator=estimator())
    rows = np.setdiff1d(np.arange(len(y)), data.test.numbers)
    model = estimator(random_state=0).fit(X.iloc[rows], y.iloc[rows])
    return data, model.explain(X.iloc[data.test.numbers]), rows


def test_the_numbers_are_those_of_explain_and_the_factors_multiply_to_the_width(explored):
    data, expected, rows = explored
    for name in ("width", "base_scale", "band", "features", "landmarks"):
        np.testing.assert_allclose(getattr(data.why, name), getattr(expected, name), rtol=1e-9, atol=1e-12)
    assert data.why.typical_width == pytest.approx(expected.typical_width)
    np.testing.assert_array_equal(data.why.landmark_rows, rows[expected.landmark_rows])
    assert data.why.typical_row == rows[expected.typical_row]
    stored = payload(data)["why"]
    assert stored["names"] == ["typical error here (forest)", "shape of the band", "c0", "c1", "c2", "all else"]
    assert stored["typical"] == pytest.approx(expected.typical_width, rel=1e-4)
    assert stored["typical_row"] == data.why.typical_row
    for i, row in enumerate(stored["rows"]):
        factors = dict(row["factors"])
        assert factors[0] * factors[1] == pytest.approx(row["times"], rel=0.02)
        assert np.prod([value for name, value in row["factors"] if name > 1]) == pytest.approx(factors[1], rel=0.03)
        assert row["width"] == pytest.approx(expected.width[i], rel=1e-4)
        shares = [abs(np.log(value)) for name, value in row["factors"] if 1 < name < 5]
        assert shares == pytest.approx(sorted(shares, reverse=True), abs=0.006)  # the largest first


def test_the_words_are_those_of_explain_with_positions_in_the_table_given(explored):
    data, expected, rows = explored
    stored = payload(data)["why"]
    named = 0
    for i, row in enumerate(stored["rows"]):
        found, words = (re.findall(r"[Rr]ows like ([\d, and]+) of", text) for text in (row["words"], expected.words(i)))
        numbers = [[int(each) for each in re.findall(r"\d+", "".join(part))] for part in (found, words)]
        assert numbers[0] == rows[np.array(numbers[1], dtype=int)].tolist()
        assert re.sub(r"\d+", "", row["words"]) == re.sub(r"\d+", "", expected.words(i))
        named += len(numbers[0])
    assert named > 20


def test_few_rows_and_few_columns_are_told(monkeypatch):
    monkeypatch.setattr(exploration, "MOST_DRAWN", 7)
    X, y = table(100, columns=9)
    stored = payload(explore(X, y, estimator=estimator(base_scale="none")))["why"]
    assert len(stored["rows"]) == 7
    assert len(stored["names"]) == 12
    for row in stored["rows"]:
        names = [name for name, _ in row["factors"]]
        assert (names[0], len(set(names))) == (1, len(names))  # without a base scale it has no factor
        assert len(names) <= 2 + MOST_FEATURES
        product = np.prod([value for name, value in row["factors"] if name > 1])
        assert product == pytest.approx(dict(row["factors"])[1], rel=0.03)


def test_infinite_intervals_are_not_explained():
    X, y = table(60)
    assert explore(X, y, estimator=estimator().set_params(calibration_size=0.5), confidence_level=0.99).why is None
