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
from sosbands.metrics.local import (
    cell_coverage_gap,
    coverage_excess_risk,
    coverage_gaps,
    evaluate_groups,
    evaluate_places,
    rmse_to_oracle,
    worst_slab_coverage,
)

__all__ = [
    "SidedMeasure",
    "cell_coverage_gap",
    "coverage",
    "coverage_excess_risk",
    "coverage_gaps",
    "crps",
    "evaluate_groups",
    "evaluate_intervals",
    "evaluate_places",
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
    "worst_slab_coverage",
]
