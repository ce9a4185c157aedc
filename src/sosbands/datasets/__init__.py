"""Synthetic data: cases with known conditional quantiles, simulated tables of deliveries and of mixed columns."""

from sosbands.datasets.synthetic import CASE_NUMBERS, SyntheticCase, synthetic_case
from sosbands.datasets.tables import (
    DELIVERY_COLUMNS,
    MIXED_TABLES,
    delivery_times,
    flight_delays,
    house_prices,
    taxi_fares,
)

__all__ = [
    "CASE_NUMBERS",
    "DELIVERY_COLUMNS",
    "MIXED_TABLES",
    "SyntheticCase",
    "delivery_times",
    "flight_delays",
    "house_prices",
    "synthetic_case",
    "taxi_fares",
]
