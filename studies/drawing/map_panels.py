"""Contour maps of a criterion over symmetry penalty and lengthscale."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sosbands._types import Array
from studies.drawing.caption_words import penalty_words
from studies.drawing.panels import penalty_places, penalty_ticks
from studies.runs.config import Rows

N_LEVELS = 12
STRIP = 0.4  # half width of a column that stands alone, in decades


class Largest(NamedTuple):
    """Largest value of a map, and where it is."""

    value: float
    factor: float
    penalty: float

    def words(self) -> str:
        """For a title."""
        return f"max {self.value:.3g} at ({penalty_words(self.penalty)}, {self.factor:.2g})"


def largest(row: dict[str, Any], name: str) -> Largest:
    """Of the map of that name in a row; maps have a row per lengthscale and a column per penalty."""
    values = read_map(row, name)
    if not np.isfinite(values).any():
        return Largest(np.nan, np.nan, np.nan)
    i, j = np.unravel_index(np.nanargmax(values), values.shape)
    return Largest(float(values[i, j]), float(row["factors"][i]), float(row["penalties"][j]))


def read_map(row: dict[str, Any], name: str) -> Array:
    """The map of that name in a row, NaN where it has no finite value."""
    values = np.asarray(row[name], dtype=float)
    return np.where(np.isfinite(values), values, np.nan)


def common_levels(rows: Rows, name: str) -> Array:
    """Levels that cover the maps of all rows."""
    values = np.concatenate([read_map(row, name).ravel() for row in rows])
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    return np.linspace(low, high if high > low else low + 1e-12 + 1e-6 * abs(low), N_LEVELS)


def draw_map(ax: Any, row: dict[str, Any], name: str, levels: Array) -> Any:
    """Draw the map and a star where it is largest; what is returned is for a colour bar.

    Penalties 0 and infinity are strips of their own: nothing is interpolated between them and their neighbours.
    """
    values, places = read_map(row, name), penalty_places(row["penalties"])
    heights = np.log10(row["factors"])
    if len(heights) == 1:
        heights, values = heights + np.array([-STRIP, STRIP]), np.repeat(values, 2, axis=0)
    columns = np.array([places[float(p)] for p in row["penalties"]])
    inner = [k for k, p in enumerate(row["penalties"]) if 0 < p < np.inf]
    alone = [k for k in range(len(columns)) if k not in inner or len(inner) == 1]
    drawn = None
    for part in ([inner] if len(inner) > 1 else []) + [[k] for k in alone]:
        x = columns[part] if len(part) > 1 else columns[part] + np.array([-STRIP, STRIP])
        table = values[:, part] if len(part) > 1 else np.repeat(values[:, part], 2, axis=1)
        drawn = ax.contourf(x, heights, np.ma.masked_invalid(table), levels=levels, cmap="viridis")
    top = largest(row, name)
    if np.isfinite(top.value):
        star = {"marker": "*", "ms": 11, "mfc": "white", "mec": "black", "mew": 0.8, "ls": "none", "clip_on": False}
        ax.plot([places[top.penalty]], [np.log10(top.factor)], zorder=5, label="largest value", **star)
    penalty_ticks(ax, places, most=3)
    powers = np.arange(np.ceil(heights.min() - 1e-9), np.floor(heights.max() + 1e-9) + 1)
    ax.set_yticks(powers, [f"{10.0**power:g}" for power in powers])
    return drawn


def add_colour_bar(figure: Any, drawn: Any, axes: Any, label: str) -> None:
    """A narrow bar at the right of the axes with few ticks."""
    from matplotlib.ticker import MaxNLocator

    bar = figure.colorbar(drawn, ax=axes, ticks=MaxNLocator(4), fraction=0.06, pad=0.02, aspect=25)
    bar.ax.tick_params(labelsize=6.5)
    bar.set_label(label, fontsize=7.5)
