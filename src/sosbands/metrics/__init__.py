"""How good intervals and distributions are: arrays in, numbers out."""

from sosbands.metrics.coverage import coverage, lower_coverage, upper_coverage
from sosbands.metrics.distribution import crps, normal_crps, pit, pit_distance
from sosbands.metrics.local import SidedMeasure, coverage_gaps, rmse_to_oracle, worst_set_coverage
from sosbands.metrics.row import evaluate_intervals
from sosbands.metrics.scorer import IntervalScorer, interval_score, interval_scorer
from sosbands.metrics.width import mean_width, median_width, width_residual_correlation, width_residual_hsic

__all__ = [
    "IntervalScorer",
    "SidedMeasure",
    "coverage",
    "coverage_gaps",
    "crps",
    "evaluate_intervals",
    "interval_score",
    "interval_scorer",
    "lower_coverage",
    "mean_width",
    "median_width",
    "normal_crps",
    "pit",
    "pit_distance",
    "rmse_to_oracle",
    "upper_coverage",
    "width_residual_correlation",
    "width_residual_hsic",
    "worst_set_coverage",
]
