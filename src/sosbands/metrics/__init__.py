"""How good intervals and distributions are: arrays in, numbers out."""

from sosbands.metrics.distribution import crps, normal_crps, pit, pit_distance
from sosbands.metrics.intervals import (
    SidedMeasure,
    coverage,
    evaluate_intervals,
    interval_score,
    interval_scorer,
    lower_coverage,
    mean_width,
    median_width,
    upper_coverage,
    width_residual_correlation,
    width_residual_hsic,
    worst_set_coverage,
)
from sosbands.metrics.local import coverage_gaps, rmse_to_oracle

__all__ = [
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
