"""Synthetic data with known conditional quantiles."""

from sosbands.datasets.synthetic import CASE_NUMBERS, SyntheticCase, synthetic_case

__all__ = ["CASE_NUMBERS", "SyntheticCase", "synthetic_case"]
