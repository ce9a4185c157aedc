"""Self-contained HTML pages: one that lets a reader slide bands from asymmetric to symmetric, and cards of models."""

from sosbands.report.card import write_card
from sosbands.report.data import Axis, BandPath, Exploration, Rows, Step
from sosbands.report.exploration import explore
from sosbands.report.page import render, write_page

__all__ = ["Axis", "BandPath", "Exploration", "Rows", "Step", "explore", "render", "write_card", "write_page"]
