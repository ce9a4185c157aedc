"""Pictures of intervals, of their coverage, of the search for them and of comparisons: an Axes in, an Axes out.

Importing this room does not load matplotlib; the functions do, when they are called.
"""

from sosbands.plotting.bands import plot_active_rows, plot_bands, plot_widths
from sosbands.plotting.metrics import plot_calibration, plot_comparison, plot_local_coverage
from sosbands.plotting.monitoring import plot_monitoring
from sosbands.plotting.tuning import plot_tuning

__all__ = [
    "plot_active_rows",
    "plot_bands",
    "plot_calibration",
    "plot_comparison",
    "plot_local_coverage",
    "plot_monitoring",
    "plot_tuning",
    "plot_widths",
]
