"""Data sets: six synthetic cases with a known answer, and the twelve real ones of the comparison study."""

from sosbands.datasets.real import RealData, Split, load_real, real_names, real_steps
from sosbands.datasets.synthetic import CASE_NUMBERS, SyntheticCase, synthetic_case

__all__ = [
    "CASE_NUMBERS",
    "RealData",
    "Split",
    "SyntheticCase",
    "load_real",
    "real_names",
    "real_steps",
    "synthetic_case",
]
