"""Simulated tables: deliveries with skewed delays, and three as firms keep them, with texts, gaps and heavy tails."""

from __future__ import annotations

from collections.abc import Callable
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
    distance, stops, hour, rain, weight = X.T
    undelayed = 7.0 + 2.4 * distance**0.9 + 2.5 * stops + 0.2 * np.sqrt(weight)
    rush = np.exp(-(((hour - 8.5) / 1.2) ** 2)) + np.exp(-(((hour - 17.5) / 1.5) ** 2))
    scale = (1.5 + 0.4 * distance) * (0.5 + 2.0 * rush) * (1.0 + 0.25 * np.minimum(rain, 6.0))
    y = (undelayed + scale * rng.gamma(DELAY_SHAPE, 1.0, n)).round(1)
    return _frame(dict(zip(DELIVERY_COLUMNS, X.T, strict=True)), y, "minutes") if as_frame else (X, y)


MANY_KINDS = 20_000  # different texts in one column of each table
_WORLD = 2024  # seed of what carriers, districts and cells are like, which every draw shares


def flight_delays(n: int = 1000, random_state: RandomState = 0) -> tuple[Any, Any]:
    """Minutes by which simulated flights arrive late: mostly a few too early, sometimes hours too late.

    Parameters
    ----------
    n : int
        Number of flights.
    random_state : int, Generator, RandomState or None
        The same number gives the same table.

    Returns
    -------
    X : data frame of shape (n, 12)
        Texts (carrier, origin, destination, 20 000 aircraft, weather with gaps), integer codes (month, weekday, number
        of the flight) and numbers (hour, distance, age of the aircraft with gaps, passengers).
    y : series of shape (n,)
        Minutes, negative if early.
    """
    n, rng, world = _sources(n, random_state)
    carrier, origin, destination = _draw(rng, 14, n, 0.6), _draw(rng, 250, n, 0.9), _draw(rng, 250, n, 0.9)
    aircraft, weather = _draw(rng, MANY_KINDS, n, 0.5), rng.choice(5, n, p=[0.55, 0.2, 0.15, 0.07, 0.03])
    month, weekday = rng.integers(1, 13, n), rng.integers(1, 8, n)
    hour = np.clip(rng.normal(13.0, 4.5, n), 5.0, 23.5).round(2)
    distance = (150 + rng.gamma(2.0, 450.0, n)).round()
    age = rng.gamma(3.0, 4.0, n).round(1)
    punctual, airport = world.normal(0.0, 1.0, 14), world.normal(0.0, 1.0, 250)
    upkeep = world.normal(0.0, 1.0, MANY_KINDS)
    storm = np.array([0.0, 0.15, 0.5, 1.0, 1.6])[weather]
    load = 0.08 * (hour - 13.0) + 0.25 * punctual[carrier] + 0.2 * airport[origin] + 0.1 * airport[destination]
    load += storm + 0.25 * upkeep[aircraft] + 0.15 * np.isin(month, (6, 7, 12)) + 0.02 * (age - 12.0)
    early = -8.0 + 3.0 * punctual[carrier] - 0.004 * distance + rng.normal(0.0, 5.0 + 0.003 * distance)
    late = rng.uniform(size=n) < 1 / (1 + np.exp(1.0 - 1.2 * load))
    delay = np.where(late, 18.0 * np.exp(0.5 * load) * (rng.pareto(2.6, n) + 0.3), 0.0)
    columns = {
        "carrier": _texts("C", carrier),
        "origin": _texts("A", origin),
        "destination": _texts("A", destination),
        "aircraft": _texts("N", aircraft),
        "weather": _with_gaps(rng, np.array(["clear", "cloud", "rain", "snow", "storm"], dtype=object)[weather], 0.05),
        "month": month,
        "weekday": weekday,
        "flight": rng.integers(1, 6000, n),
        "hour": hour,
        "distance": distance,
        "age": _with_gaps(rng, age, 0.12),
        "passengers": rng.binomial(180, 0.8, n),
    }
    return _frame(columns, np.maximum(early + delay, -60.0).round(), "delay")


def house_prices(n: int = 1000, random_state: RandomState = 0) -> tuple[Any, Any]:
    """Prices of simulated houses in thousands: noise grows with the price, and some are far too dear.

    Parameters
    ----------
    n : int
        Number of houses.
    random_state : int, Generator, RandomState or None
        The same number gives the same table.

    Returns
    -------
    X : data frame of shape (n, 12)
        Texts (city, 20 000 streets, type, condition, energy label with gaps), integer codes (post code, heating) and
        numbers (area, rooms with gaps, year, floor, plot with gaps).
    y : series of shape (n,)
        Price in thousands.
    """
    n, rng, world = _sources(n, random_state)
    city, street = _draw(rng, 180, n, 0.9), _draw(rng, MANY_KINDS, n, 0.4)
    kind, condition, label = _draw(rng, 7, n, 0.5), rng.integers(0, 5, n), rng.integers(0, 7, n)
    area = np.clip(rng.lognormal(4.6, 0.45, n), 20.0, 900.0).round(1)
    year = np.clip(2024 - rng.gamma(1.6, 28.0, n), 1850, 2024).round()
    floor, plot = rng.poisson(1.8, n), rng.lognormal(5.8, 0.8, n).round()
    town, place = world.normal(0.0, 0.4, 180), world.normal(0.0, 0.25, MANY_KINDS)
    form = world.normal(0.0, 0.15, 7)
    log_price = 1.0 + 0.85 * np.log(area) + town[city] + place[street] + form[kind] + 0.06 * condition
    log_price += 0.03 * (3 - label) + 0.0015 * (year - 1970) * (year > 1970) + 0.05 * np.log(plot)
    spread = 0.08 + 0.10 * (year < 1950) + 0.05 * np.abs(town[city]) + 0.03 * (condition == 0)
    noise = spread * rng.standard_t(4.0, n) + np.where(rng.uniform(size=n) < 0.04, rng.exponential(0.6, n), 0.0)
    noise = np.clip(noise, -2.0, 2.0)  # of a logarithm: beyond, prices have no mean
    columns = {
        "city": _texts("city ", city),
        "street": _texts("street ", street),
        "type": _texts("type ", kind),
        "condition": np.array(["poor", "fair", "good", "fine", "new"], dtype=object)[condition],
        "energy": _with_gaps(rng, np.array(list("ABCDEFG"), dtype=object)[label], 0.25),
        "post_code": 10_000 + 37 * city + street % 30,
        "heating": rng.integers(1, 6, n),
        "area": area,
        "rooms": _with_gaps(rng, np.maximum(1.0, (area / 28 + rng.normal(0.0, 0.8, n)).round()), 0.08),
        "year": year,
        "floor": floor,
        "plot": _with_gaps(rng, plot, 0.3),
    }
    return _frame(columns, np.round(np.exp(log_price + noise) * 4.0, 1), "price")


def taxi_fares(n: int = 1000, random_state: RandomState = 0) -> tuple[Any, Any]:
    """Fares of simulated taxi rides, tips and tolls included: skewed, with a tariff that most rides follow closely.

    Parameters
    ----------
    n : int
        Number of rides.
    random_state : int, Generator, RandomState or None
        The same number gives the same table.

    Returns
    -------
    X : data frame of shape (n, 12)
        Texts (20 000 cells of the pick-up, zone of the drop-off, vendor, payment with gaps, weather), integer codes
        (tariff, weekday) and numbers (distance, hour, passengers with gaps, temperature with gaps, wait).
    y : series of shape (n,)
        Fare.
    """
    n, rng, world = _sources(n, random_state)
    cell, zone, vendor = _draw(rng, MANY_KINDS, n, 0.5), _draw(rng, 260, n, 0.9), _draw(rng, 3, n, 0.3)
    payment, weather = rng.choice(4, n, p=[0.62, 0.3, 0.05, 0.03]), rng.choice(3, n, p=[0.7, 0.2, 0.1])
    tariff, weekday = rng.choice([1, 2, 3, 5], n, p=[0.93, 0.04, 0.01, 0.02]), rng.integers(1, 8, n)
    distance, hour = np.minimum(rng.lognormal(0.9, 0.9, n), 80.0).round(2), rng.uniform(0.0, 24.0, n).round(2)
    wait = rng.exponential(3.0, n).round(1)
    jam, generous = world.normal(0.0, 0.25, MANY_KINDS), world.normal(0.0, 0.3, 260)
    rush = np.exp(-(((hour - 8.5) / 1.5) ** 2)) + np.exp(-(((hour - 17.5) / 2.0) ** 2))
    slow = np.exp(0.5 * rush * (weekday < 6) + jam[cell] + 0.2 * weather)
    minutes = distance * (2.2 + 1.3 * slow * rng.gamma(6.0, 1 / 6, n)) + wait
    fare = 3.0 + 1.75 * distance + 0.35 * minutes
    fare = np.where(tariff == 2, 70.0 + 0.1 * minutes, np.where(tariff == 5, fare * rng.lognormal(0.1, 0.5, n), fare))
    tip = np.where(payment == 0, fare * np.maximum(0.0, 0.18 + 0.06 * generous[zone] + rng.normal(0.0, 0.07, n)), 0.0)
    toll = np.where(rng.uniform(size=n) < 1 / (1 + np.exp(4.0 - 0.25 * distance)), 6.9, 0.0)
    odd = np.where(rng.uniform(size=n) < 0.004, rng.pareto(1.8, n) * 20.0, 0.0)
    columns = {
        "cell": _texts("cell ", cell),
        "zone": _texts("zone ", zone),
        "vendor": _texts("vendor ", vendor),
        "payment": _with_gaps(rng, np.array(["card", "cash", "app", "other"], dtype=object)[payment], 0.04),
        "weather": np.array(["dry", "rain", "snow"], dtype=object)[weather],
        "tariff": tariff,
        "weekday": weekday,
        "distance": distance,
        "hour": hour,
        "passengers": _with_gaps(rng, rng.choice([1.0, 2.0, 3.0, 4.0], n, p=[0.7, 0.16, 0.08, 0.06]), 0.1),
        "temperature": _with_gaps(rng, rng.normal(12.0, 9.0, n).round(1), 0.06),
        "wait": wait,
    }
    return _frame(columns, (fare + tip + toll + odd).round(2), "fare")


MIXED_TABLES: dict[str, Callable[..., tuple[Any, Any]]] = {
    "delays": flight_delays,
    "prices": house_prices,
    "fares": taxi_fares,
}


def _sources(n: int, random_state: RandomState) -> tuple[int, Any, np.random.Generator]:
    """Checked number of rows, the random numbers of the rows, and those of the world they come from."""
    return _check_integer("n", n, minimum=0), _random_source(random_state), np.random.default_rng(_WORLD)


def _draw(rng: Any, kinds: int, n: int, power: float) -> Any:
    """Positions of kinds that are drawn by a power law: a few are frequent, most are rare."""
    weights = np.arange(1, kinds + 1, dtype=float) ** -power
    return np.searchsorted(np.cumsum(weights / weights.sum())[:-1], rng.uniform(size=n))


def _texts(start: str, kinds: Any) -> Any:
    """Texts such as "A17"."""
    names = np.array([f"{start}{k}" for k in range(int(kinds.max(initial=0)) + 1)], dtype=object)
    return names[kinds]


def _with_gaps(rng: Any, values: Any, share: float) -> Any:
    """The values with some of them missing: None among texts, NaN among numbers."""
    return np.where(rng.uniform(size=len(values)) < share, None if values.dtype == object else np.nan, values)


def _frame(columns: dict[str, Any], y: FloatArray, name: str) -> tuple[Any, Any]:
    import pandas as pd

    return pd.DataFrame(columns), pd.Series(y, name=name)
