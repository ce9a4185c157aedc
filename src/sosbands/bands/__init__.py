"""From points and residuals to two certified non-negative functions."""

from sosbands.bands.learn import learn_band_grid, learn_band_path, learn_bands
from sosbands.bands.prepare import penalty_scale
from sosbands.bands.scaling import PenaltyScale
from sosbands.bands.solution import BandSolution
from sosbands.bands.sos import SoSFunction

__all__ = [
    "BandSolution",
    "PenaltyScale",
    "SoSFunction",
    "learn_band_grid",
    "learn_band_path",
    "learn_bands",
    "penalty_scale",
]
