"""Synthetic data: cases with known conditional quantiles, and a simulated table of deliveries."""

from sosbands.datasets.deliveries import DELIVERY_COLUMNS, delivery_times
from sosbands.datasets.synthetic import CASE_NUMBERS, SyntheticCase, synthetic_case

__all__ = ["CASE_NUMBERS", "DELIVERY_COLUMNS", "SyntheticCase", "delivery_times", "synthetic_case"]
