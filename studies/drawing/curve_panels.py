"""Panels with intervals along the only feature: learning points, point prediction, bands, and the oracle's."""

from __future__ import annotations

from typing import Any

import numpy as np

from studies.drawing.panels import BLACK, GREY, PURPLE


def draw_curves(ax: Any, row: dict[str, Any], colour: str, label: str, *, asymmetry: bool = False) -> None:
    """Draw the curves of a row.

    Parameters
    ----------
    ax : matplotlib Axes
    row : dict
        With the lists x, center, lower, upper, oracle_lower, oracle_upper, and the learning points X, y.
    colour, label : str
        Of the bands.
    asymmetry : bool
        Shade the part of the longer side beyond the shorter one: ``|f_up - f_lo|``.
    """
    from matplotlib.ticker import MaxNLocator

    x, center, lower, upper = (np.asarray(row[name], dtype=float) for name in ("x", "center", "lower", "upper"))
    ax.scatter(
        row["X"], row["y"], s=1.2 + 900 / (60 + len(row["X"])), color=GREY, lw=0, zorder=1, label="learning points"
    )
    ax.fill_between(x, lower, upper, color=colour, alpha=0.15, lw=0, zorder=0)
    if asymmetry:
        shorter = np.minimum(center - lower, upper - center)
        shade = {"color": PURPLE, "alpha": 0.6, "lw": 0, "zorder": 0.5}
        ax.fill_between(x, center + shorter, upper, label="asymmetry", **shade)
        ax.fill_between(x, lower, center - shorter, **shade)
    ax.plot(x, lower, color=colour, lw=1.3, label=label)
    ax.plot(x, upper, color=colour, lw=1.3)
    ax.plot(x, center, color=colour, lw=0.8, ls=":", label="point prediction")
    ax.plot(x, row["oracle_lower"], color=BLACK, lw=0.9, ls="--", label="oracle")
    ax.plot(x, row["oracle_upper"], color=BLACK, lw=0.9, ls="--")
    ax.set_xlim(x[0], x[-1])
    ax.xaxis.set_major_locator(MaxNLocator(5, prune="both"))  # labels of neighbours would touch
