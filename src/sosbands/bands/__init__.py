"""From points and residuals to two certified non-negative functions."""

from sosbands.bands.functions import SoSFunction
from sosbands.bands.learn import learn_band_grid, learn_band_path, learn_band_sequence, learn_bands, penalty_scale
from sosbands.bands.nested import NestedBands, NestedFunctions, learn_nested_bands
from sosbands.bands.settings import BandSettings, PenaltyScale
from sosbands.bands.solution import BandSolution
from sosbands.problems import DualPoint

__all__ = [
    "BandSettings",
    "BandSolution",
    "DualPoint",
    "NestedBands",
    "NestedFunctions",
    "PenaltyScale",
    "SoSFunction",
    "learn_band_grid",
    "learn_band_path",
    "learn_band_sequence",
    "learn_bands",
    "learn_nested_bands",
    "penalty_scale",
]
