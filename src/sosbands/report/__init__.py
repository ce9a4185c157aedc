"""One self-contained HTML page that lets a reader slide bands from asymmetric to symmetric."""

from sosbands.report.data import Axis, BandPath, Exploration, Rows, Step
from sosbands.report.exploration import explore
from sosbands.report.page import render, write_page

__all__ = ["Axis", "BandPath", "Exploration", "Rows", "Step", "explore", "render", "write_page"]
