"""A simulated table of deliveries, whose delays are skewed and change with traffic, rain and distance."""

from __future__ import annotations

from typing import Any

import numpy as np

from sosbands.datasets.synthetic import FloatArray, RandomState, _check_integer, _random_source

DELIVERY_COLUMNS = ("distance_km", "stops", "hour", "rain_mm", "weight_kg")
DELAY_SHAPE = 1.5  # of the gamma law of delays: its mean too, with a long tail above and a sharp edge below


def delivery_times(n: int = 1000, random_state: RandomState = 0, *, as_frame: bool = False) -> tuple[Any, Any]:
    """Minutes that simulated deliveries take, with what is known of each before it starts.

    A driver with nothing in the way needs ``7 + 2.4 distance^0.9 + 2.5 stops + 0.2 sqrt(weight)`` minutes. On top comes
    a delay of a gamma law with shape 1.5 and scale
    ``(1.5 + 0.4 distance) (0.5 + 2 rush) (1 + 0.25 min(rain, 6))``, with rush hours around 8:30 and 17:30: no delivery
    is early, and how late it may be depends on where and when.

    Parameters
    ----------
    n : int
        Number of deliveries.
    random_state : int, Generator, RandomState or None
        The same number gives the same table.
    as_frame : bool
        Give a data frame and a series (needs pandas) instead of arrays.

    Returns
    -------
    X : array or data frame of shape (n, 5)
        Columns `DELIVERY_COLUMNS`: distance, stops on the way, hour of the day, rain, weight.
    y : array or series of shape (n,)
        Minutes.
    """
    n = _check_integer("n", n, minimum=0)
    rng = _random_source(random_state)
    X = np.column_stack(
        [
            np.minimum(0.5 + rng.gamma(2.0, 3.0, n), 30.0).round(1),
            rng.poisson(2.0, n),
            rng.uniform(7.0, 21.0, n).round(2),
            np.where(rng.uniform(size=n) < 0.7, 0.0, rng.exponential(2.5, n)).round(1),
            rng.lognormal(1.0, 0.8, n).round(1),
        ]
    ).astype(np.float64)
    y = (undelayed_minutes(X) + delay_scale(X) * rng.gamma(DELAY_SHAPE, 1.0, n)).round(1)
    if not as_frame:
        return X, y
    import pandas as pd

    return pd.DataFrame(X, columns=list(DELIVERY_COLUMNS)), pd.Series(y, name="minutes")


def undelayed_minutes(X: FloatArray) -> FloatArray:
    """What deliveries take with nothing in the way, shape (n,)."""
    distance, stops, _, _, weight = X.T
    return np.asarray(7.0 + 2.4 * distance**0.9 + 2.5 * stops + 0.2 * np.sqrt(weight))


def delay_scale(X: FloatArray) -> FloatArray:
    """Scale of the gamma law of the delays, shape (n,)."""
    distance, _, hour, rain, _ = X.T
    rush = np.exp(-(((hour - 8.5) / 1.2) ** 2)) + np.exp(-(((hour - 17.5) / 1.5) ** 2))
    return np.asarray((1.5 + 0.4 * distance) * (0.5 + 2.0 * rush) * (1.0 + 0.25 * np.minimum(rain, 6.0)))
