"""Conformal calibration: the quantile, the scores and their inverse, and the interface of interval regressors."""

from sosbands.conformal.arrays import ArrayIntervals
from sosbands.conformal.asked import Intervals
from sosbands.conformal.band import Band, Knots, Told, interval, lower_scores, symmetric_scores, upper_scores
from sosbands.conformal.calibration import Calibration, side_levels
from sosbands.conformal.conditional import ConditionalCalibration
from sosbands.conformal.cross import CrossCalibration
from sosbands.conformal.distribution import Places, inner_places
from sosbands.conformal.mixin import IntervalMixin
from sosbands.conformal.quantile import (
    conformal_quantile,
    conformal_rank,
    points_needed,
    weighted_conformal_quantile,
)
from sosbands.conformal.scores import SCORES, AddedScore, NestedScore, ScaledScore, Score, move_in_words
from sosbands.conformal.target import TargetScale

__all__ = [
    "SCORES",
    "AddedScore",
    "ArrayIntervals",
    "Band",
    "Calibration",
    "ConditionalCalibration",
    "CrossCalibration",
    "Intervals",
    "IntervalMixin",
    "Knots",
    "NestedScore",
    "Places",
    "ScaledScore",
    "Score",
    "TargetScale",
    "Told",
    "conformal_quantile",
    "conformal_rank",
    "inner_places",
    "interval",
    "lower_scores",
    "move_in_words",
    "points_needed",
    "side_levels",
    "symmetric_scores",
    "upper_scores",
    "weighted_conformal_quantile",
]
