"""From points and residuals to two certified non-negative functions."""

from sosbands.bands.initial import penalty_scale
from sosbands.bands.learn import learn_band_grid, learn_band_path, learn_band_sequence, learn_bands
from sosbands.bands.nested import NestedBands, NestedFunctions, learn_nested_bands
from sosbands.bands.penalties import PenaltyScale
from sosbands.bands.solution import BandSolution
from sosbands.bands.sos import SoSFunction

__all__ = [
    "BandSolution",
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
