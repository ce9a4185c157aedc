"""Pictures of the search for whatever is "auto"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sosbands._types import Array
from sosbands.plotting.axes import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    VERMILION,
    Style,
    add_note,
    legend_below,
    new_axes,
    new_panels,
    open_frame,
)
from sosbands.plotting.candidates import (
    Candidates,
    Penalties,
    chosen_candidate,
    distinct_penalties,
    one_lengthscale,
    penalty_words,
    read_candidates,
    read_penalties,
    same,
    sorted_penalties,
    what_varies,
)
from sosbands.plotting.settings import draw_settings, figure_height, is_automatic, read_settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARGIN = 0.03  # of the range of the candidates, around the map
STAR: Style = {"s": 190, "marker": "*", "facecolor": ORANGE, "edgecolor": BLACK, "lw": 0.9, "zorder": 4}
FINE = 200  # points per direction of the interpolated map


def plot_tuning(report: Any, ax: Any = None, *, legend: bool = True) -> Any:
    """Draw what the search saw.

    For the automatic choice a line for each value of each setting, at what the best candidate with it loses against the
    chosen one. For the rules, which choose lengthscale and symmetry penalty only, the criterion over these: a map, or
    a curve if only one of them was searched for.

    Parameters
    ----------
    report : TuningReport
        Of `sosbands.tuning.tune`, or `tuning_` of a model that tuned itself.
    ax : matplotlib Axes or a pair of them, optional
        By default those of a new figure, two if the report has replicates. In a pair the second is for
        :func:`plot_replicates`.
    legend : bool
        As for `plot_bands`.

    Returns
    -------
    matplotlib Axes or ndarray of two Axes
        Candidates with lengthscales of their own on each side or for each feature have no place on the map; the legend
        counts them. If nothing was searched for, the axes hold the decision in words.
    """
    replicates = getattr(report, "replicates", None)
    if ax is None and replicates is not None:
        ax = new_panels(2, size=(11.0, 5.0))
    if isinstance(ax, list | tuple | np.ndarray):
        first, second = ax
        return np.array([plot_tuning(report, first, legend=legend), plot_replicates(report, second, legend=legend)])
    if is_automatic(report):
        return _plot_settings(report, ax, legend)
    ax = new_axes(ax, legend=legend)
    penalties = read_penalties(report)
    candidates = read_candidates(report, penalties)
    if not len(candidates.values):
        return _say_instead(ax, report, candidates)
    axis = what_varies(candidates)
    if axis == "both":
        _draw_map(ax, report, penalties, candidates)
    else:
        _draw_line(ax, report, penalties, candidates, axis)
    _note_omissions(ax, report, candidates)
    legend_below(ax, show=legend, columns=3)
    return ax


def _plot_settings(report: Any, ax: Axes | None, legend: bool) -> Axes:
    """The picture of an automatic choice."""
    groups = read_settings(report)
    ax = new_axes(ax, legend=legend, size=(6.4, figure_height(groups) if groups else 3.0))
    if not groups:
        return _in_words(ax, "There is nothing to compare: no setting had two values.", report)
    draw_settings(ax, report, groups)
    legend_below(ax, show=legend, columns=3)
    return ax


def plot_replicates(report: Any, ax: Axes | None = None, *, legend: bool = True) -> Axes:
    """Draw the replicates of the criterion for each symmetry penalty as boxes, the chosen penalty hatched.

    Parameters
    ----------
    report : TuningReport
        Its `replicates` have one row per symmetry penalty, in the order in which `evaluations` first name them.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    legend : bool
        As for `plot_bands`.

    Returns
    -------
    matplotlib Axes
    """
    if getattr(report, "replicates", None) is None:
        raise ValueError("report.replicates is None: expected replicates, which the Kruskal-Wallis rule makes")
    values = np.asarray(report.replicates, dtype=float)
    named = distinct_penalties(report)
    if values.ndim != 2 or len(values) != len(named):
        raise ValueError(
            f"report.replicates has shape {values.shape}: expected {len(named)} rows, one per symmetry penalty"
        )
    penalties = sorted_penalties(named)
    ax = new_axes(ax, legend=legend)
    for place, penalty in enumerate(penalties):
        row = values[next(i for i, value in enumerate(named) if same(value, penalty))]
        chosen = not report.homoscedastic and same(penalty, report.symmetry_penalty)
        _draw_box(ax, place, row[np.isfinite(row)], chosen)
    ax.set_xticks(range(len(penalties)), [penalty_words(each) for each in penalties])
    ax.set(xlabel="symmetry penalty", ylabel=f"replicates of {_criterion_words(report)}")
    open_frame(ax)
    legend_below(ax, show=legend)
    return ax


def _draw_box(ax: Axes, place: int, values: Array, chosen: bool) -> None:
    looks: Style = {"facecolor": ORANGE, "hatch": "//"} if chosen else {"facecolor": "white"}
    box = ax.boxplot(
        [values],
        positions=[place],
        widths=0.6,
        patch_artist=True,
        manage_ticks=False,
        boxprops={**looks, "edgecolor": BLACK},
        medianprops={"color": BLACK, "lw": 2},
        flierprops={"marker": ".", "markeredgecolor": GREY},
    )
    if chosen:
        box["boxes"][0].set_label("chosen")


def _draw_map(ax: Axes, report: Any, penalties: Penalties, candidates: Candidates) -> None:
    """Filled contours with the candidates, the best of them and the chosen one."""
    x, ell, values = candidates.places, candidates.lengthscales, candidates.values
    ax.set_yscale("log")
    bar = ax.figure.colorbar(_draw_surface(ax, x, ell, values), ax=ax)
    bar.set_label(f"{_criterion_words(report)}, larger is better")
    ax.scatter(x, ell, s=9, color=BLACK, lw=0, label="candidates", zorder=3)
    _ring_uncertified(ax, x, ell, candidates)
    place, scale = penalties.place(report.symmetry_penalty), one_lengthscale(report.lengthscale)
    if place is not None and scale is not None and not report.homoscedastic:
        ax.scatter(place, scale, label="chosen", **STAR)
    best = int(np.argmax(values))
    if chosen_candidate(report, penalties, candidates) != best:
        ring: Style = {"s": 120, "facecolors": "none", "edgecolors": BLACK, "linewidths": 1.4, "zorder": 3.5}
        ax.scatter(x[best], ell[best], label=f"best by {_criterion_words(report)}", **ring)
    _penalty_axis(ax, penalties)
    _lengthscale_axis(ax.yaxis)
    ax.set_ylabel("lengthscale")
    reach = (ell.max() / ell.min()) ** MARGIN
    ax.set(xlim=_widened(x.min(), x.max()), ylim=(ell.min() / reach, ell.max() * reach))


def _draw_surface(ax: Axes, x: Array, ell: Array, values: Array) -> Any:
    """Contours of the criterion; coloured points where candidates on one line or all alike leave none."""
    from matplotlib.ticker import MaxNLocator

    surface = _interpolated(x, np.log10(ell), values) if values.min() < values.max() else None
    if surface is None:
        return ax.scatter(x, ell, c=values, s=60, cmap="cividis")
    places, logs, heights = surface
    levels = MaxNLocator(12).tick_values(values.min(), values.max())
    ax.contour(
        places,
        10**logs,
        heights,
        levels=levels,
        colors="white",
        linestyles="solid",
        linewidths=0.5,
        alpha=0.7,
        zorder=1.5,
    )
    return ax.contourf(places, 10**logs, heights, levels=levels, cmap="cividis", zorder=1)


def _ring_uncertified(ax: Axes, x: Array, heights: Array, candidates: Candidates) -> None:
    missed = candidates.uncertified
    if missed.any():
        ring: Style = {"s": 40, "facecolors": "none", "edgecolors": VERMILION, "marker": "s", "zorder": 3}
        ax.scatter(x[missed], heights[missed], label="solves missed their tolerance", **ring)


def _interpolated(x: Array, logs: Array, values: Array) -> tuple[Array, Array, Array] | None:
    """The criterion on a fine grid, masked outside of the candidates; None if these lie on one line."""
    from scipy.interpolate import LinearNDInterpolator

    points = np.column_stack([x, logs])
    if np.linalg.matrix_rank(points - points[0], tol=1e-9) < 2:
        return None
    places, fine = np.linspace(x.min(), x.max(), FINE), np.linspace(logs.min(), logs.max(), FINE)
    heights = LinearNDInterpolator(points, values, rescale=True)(*np.meshgrid(places, fine))
    return places, fine, np.ma.masked_invalid(heights)


def _draw_line(ax: Axes, report: Any, penalties: Penalties, candidates: Candidates, axis: str) -> None:
    """The criterion over what was searched for, in its order."""
    x = candidates.lengthscales if axis == "lengthscale" else candidates.places
    order = np.argsort(x, kind="stable")
    ax.plot(x[order], candidates.values[order], color=BLUE, marker="o", ms=4, lw=1.3, label="candidates")
    _ring_uncertified(ax, x, candidates.values, candidates)
    chosen = chosen_candidate(report, penalties, candidates)
    if chosen is not None:
        ax.scatter(x[chosen], candidates.values[chosen], label="chosen", **STAR)
    if axis == "lengthscale":
        ax.set(xscale="log", xlabel="lengthscale")
        _lengthscale_axis(ax.xaxis)
    else:
        _penalty_axis(ax, penalties)
    ax.set_ylabel(f"{_criterion_words(report)}, larger is better")
    open_frame(ax)


def _penalty_axis(ax: Axes, penalties: Penalties) -> None:
    """Ticks at 0, powers of ten and infinity; at all penalties where no two are powers of ten."""
    ticks = list(zip(penalties.places, penalties.values, strict=True))
    if not any(np.ndim(value) for _, value in ticks):
        main = [(place, value) for place, value in ticks if value in (0, np.inf) or _is_power_of_ten(value)]
        ticks = main if sum(value not in (0, np.inf) for _, value in main) > 1 else ticks
    ax.set_xticks([place for place, _ in ticks], [penalty_words(value) for _, value in ticks])
    ax.set_xlabel("symmetry penalty")


def _lengthscale_axis(axis: Any) -> None:
    """Ticks 0.1, 0.2, 0.5, 1, ... of a logarithmic axis."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def _widened(first: float, last: float) -> tuple[float, float]:
    """Limits that leave room for the marks at the ends."""
    return first - MARGIN * (last - first), last + MARGIN * (last - first)


def _is_power_of_ten(value: float) -> bool:
    return bool(np.isclose(np.log10(value), np.round(np.log10(value))))


def _criterion_words(report: Any) -> str:
    return {"hsic": "HSIC", "dcor": "distance correlation", "interval-score": "minus interval score"}.get(
        report.criterion, str(report.criterion)
    )


def _note_omissions(ax: Axes, report: Any, candidates: Candidates) -> None:
    """What the picture cannot show, said in the legend."""
    if candidates.sided:
        add_note(ax, f"{candidates.sided} candidates without one common lengthscale are not shown")
    if candidates.unvalued:
        add_note(ax, f"{candidates.unvalued} candidates without a finite criterion are not shown")
    if report.homoscedastic:
        add_note(ax, "chosen: bands of constant width")
    elif candidates.sided and one_lengthscale(report.lengthscale) is None:
        add_note(ax, f"chosen: several lengthscales, penalty {penalty_words(report.symmetry_penalty)}")
    if getattr(report, "interrupted", False):
        add_note(ax, "the search was interrupted")


def _say_instead(ax: Axes, report: Any, candidates: Candidates) -> Axes:
    """The decision in words, where there is nothing to draw."""
    if candidates.sided or candidates.unvalued:
        count = candidates.sided + candidates.unvalued
        reason = f"None of the {count} candidates has one lengthscale and a finite criterion."
    else:
        reason = "No candidates were evaluated."
    return _in_words(ax, reason, report)


def _in_words(ax: Axes, reason: str, report: Any) -> Axes:
    text = f"{reason}\n{report.sentence}"
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", wrap=True)
    ax.set(xticks=[], yticks=[])
    return ax
