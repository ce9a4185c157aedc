"""The simulated deliveries: their law, written a second time, and what makes them a table for asymmetric bands."""

from math import exp, sqrt

import numpy as np
import pytest
from scipy import stats

from sosbands.datasets import DELIVERY_COLUMNS, delivery_times


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


def test_the_same_seed_gives_the_same_table():
    X, y = delivery_times(50)
    again_X, again_y = delivery_times(50, random_state=np.random.default_rng(0))
    assert np.array_equal(X, again_X)
    assert np.array_equal(y, again_y)
    assert not np.array_equal(y, delivery_times(50, random_state=1)[1])


def test_a_data_frame_has_names():
    pytest.importorskip("pandas", reason="data frames need pandas")
    X, y = delivery_times(30, random_state=3)
    frame, minutes = delivery_times(30, random_state=3, as_frame=True)
    assert tuple(frame.columns) == DELIVERY_COLUMNS
    assert minutes.name == "minutes"
    assert np.array_equal(frame.to_numpy(), X)
    assert np.array_equal(minutes.to_numpy(), y)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"n=-1: expected an integer >= 0"):
        delivery_times(-1)
    with pytest.raises(ValueError, match=r"random_state=-3: expected an integer >= 0"):
        delivery_times(5, random_state=-3)
    assert delivery_times(0)[0].shape == (0, 5)
