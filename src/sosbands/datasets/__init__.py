"""Data sets with a known answer: the six synthetic cases of the comparison study."""

from sosbands.datasets.synthetic import CASE_NUMBERS, SyntheticCase, synthetic_case

__all__ = ["CASE_NUMBERS", "SyntheticCase", "synthetic_case"]
