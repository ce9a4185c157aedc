"""The simulated tables: the law of deliveries, written a second time; the traits that mixed columns promise."""

from math import exp, sqrt

import numpy as np
import pytest
from scipy import stats

from sosbands.datasets import DELIVERY_COLUMNS, MIXED_TABLES, delivery_times


def by_hand(distance, stops, hour, rain, weight):
    """Minutes without delay, and the scale of the delay."""
    rush = exp(-(((hour - 8.5) / 1.2) ** 2)) + exp(-(((hour - 17.5) / 1.5) ** 2))
    minutes = 7 + 2.4 * distance**0.9 + 2.5 * stops + 0.2 * sqrt(weight)
    return minutes, (1.5 + 0.4 * distance) * (0.5 + 2 * rush) * (1 + 0.25 * min(rain, 6))


def test_delays_follow_the_law_that_is_documented():
    X, y = delivery_times(20_000, random_state=1)
    minutes, scale = np.array([by_hand(*row) for row in X]).T
    delay = (y - minutes) / scale
    assert stats.kstest(delay, stats.gamma(1.5).cdf).pvalue > 0.01
    rush, quiet = np.abs(X[:, 2] - 17.5) < 1, np.abs(X[:, 2] - 13) < 2
    assert stats.kstest(delay[rush], stats.gamma(1.5).cdf).pvalue > 0.01  # everywhere, not only on average
    assert stats.kstest(delay[X[:, 3] > 2], stats.gamma(1.5).cdf).pvalue > 0.01
    assert (y[rush] - minutes[rush]).std() > 2.5 * (y[quiet] - minutes[quiet]).std()
    assert stats.skew(delay) == pytest.approx(2 / sqrt(1.5), abs=0.15)


def test_columns_are_what_their_names_say():
    X, y = delivery_times(5000, random_state=2)
    distance, stops, hour, rain, weight = X.T
    assert X.shape == (5000, len(DELIVERY_COLUMNS))
    assert np.isfinite(X).all()
    assert (distance.min(), distance.max()) == (pytest.approx(0.5, abs=0.3), 30.0)
    assert distance.mean() == pytest.approx(6.5, abs=0.2)
    assert (stops == stops.round()).all()
    assert stops.mean() == pytest.approx(2, abs=0.1)
    assert (hour.min(), hour.max()) == (pytest.approx(7, abs=0.05), pytest.approx(21, abs=0.05))
    assert np.mean(rain == 0) == pytest.approx(0.7, abs=0.03)
    assert (weight >= 0).all()
    assert np.median(weight) == pytest.approx(np.e, abs=0.2)
    assert (y > 7).all()


def test_the_same_seed_gives_the_same_table_also_as_a_data_frame():
    X, y = delivery_times(50)
    for again in (delivery_times(50, random_state=np.random.default_rng(0)), delivery_times(50, as_frame=True)):
        assert np.array_equal(again[0], X)
        assert np.array_equal(again[1], y)
    frame, minutes = again
    assert tuple(frame.columns) == DELIVERY_COLUMNS
    assert minutes.name == "minutes"
    assert not np.array_equal(y, delivery_times(50, random_state=1)[1])
    assert delivery_times(0)[0].shape == (0, 5)


@pytest.mark.parametrize(("given", "name"), [({"n": -1}, "n=-1"), ({"n": 5, "random_state": -3}, "random_state=-3")])
def test_bad_arguments_are_named(given, name):
    with pytest.raises(ValueError, match=f"{name}: expected an integer >= 0"):
        delivery_times(**given)


# ---------------------------------------------------------------- mixed columns

GAPS = {"delays": ["weather", "age"], "prices": ["energy", "rooms", "plot"]}
GAPS["fares"] = ["payment", "passengers", "temperature"]
MANY = {"delays": "aircraft", "prices": "street", "fares": "cell"}


@pytest.mark.parametrize("name", MIXED_TABLES)
def test_traits(name):
    X, y = MIXED_TABLES[name](30_000, random_state=1)
    assert X.shape == (30_000, 12)
    texts = X.select_dtypes(exclude="number")
    assert texts.shape[1] == 5
    assert list(X.columns[X.isna().any()]) == GAPS[name]
    assert 8000 < X[MANY[name]].nunique() <= 20_000
    assert np.isfinite(y).all()
    center = np.median(y)
    below, above = center - np.quantile(y, 0.001), np.quantile(y, 0.999) - center
    assert above > 3 * below  # a long tail above


@pytest.mark.parametrize("name", MIXED_TABLES)
def test_repeatable(name):
    draw = MIXED_TABLES[name]
    (X, y), (again, same), (_, other) = draw(50, 3), draw(50, 3), draw(50, 4)
    assert X.equals(again)
    assert np.array_equal(y, same)
    assert not np.array_equal(y, other)
    with pytest.raises(ValueError, match="n=-1"):
        draw(-1)


def test_all_draws_come_from_one_world():
    """Means of the same streets agree between draws, beyond what chance would give."""
    means = []
    for seed in (1, 2):
        X, y = MIXED_TABLES["prices"](40_000, seed)
        means.append(np.log(y).groupby(X["city"]).mean())
    assert np.corrcoef(means[0], means[1].reindex(means[0].index))[0, 1] > 0.95
