"""Pictures of a search by the paper's rules: the criterion over lengthscale and penalty, and its replicates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sosbands._types import Array, BoolArray
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
    open_frame,
)
from sosbands.plotting.tuning import penalty_words, same

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARGIN = 0.03  # of the range of the candidates, around the map
STAR: Style = {"s": 190, "marker": "*", "facecolor": ORANGE, "edgecolor": BLACK, "lw": 0.9, "zorder": 4}
FINE = 200  # points per direction of the interpolated map


def plot_tuning_map(report: Any, ax: Axes | None = None, *, legend: bool = True) -> Axes:
    """Draw the criterion over lengthscale and symmetry penalty: a map, or a curve if only one was searched for.

    Candidates with lengthscales of their own on each side or for each feature have no place on the map; the legend
    counts them. If nothing was searched for, the axes hold the decision in words.
    """
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


def plot_replicates(report: Any, ax: Axes | None = None, *, legend: bool = True) -> Axes:
    """Draw the replicates of the criterion for each symmetry penalty as boxes, the chosen penalty hatched.

    `replicates` of the report has one row per penalty, in the order in which `evaluations` first name them.
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
    ax.text(0.5, 0.5, f"{reason}\n{report.sentence}", transform=ax.transAxes, ha="center", va="center", wrap=True)
    ax.set(xticks=[], yticks=[])
    return ax


# --- reading a report: which candidates have a place on the map


class Penalties(NamedTuple):
    """Places of the symmetry penalties on an axis: decades, with 0 one step before and infinity one step after."""

    values: list[Any]
    places: list[float]

    def place(self, penalty: Any) -> float | None:
        """Where this penalty is, if it is one of them."""
        known = [place for value, place in zip(self.values, self.places, strict=True) if same(value, penalty)]
        return known[0] if known else None


class Candidates(NamedTuple):
    """Candidates that have a place on the map, and how many have none."""

    places: Array
    lengthscales: Array  # NaN if the kernel has its own
    values: Array
    uncertified: BoolArray
    sided: int
    unvalued: int


def read_penalties(report: Any) -> Penalties:
    """Distinct penalties with their places; pairs, which have no order, one step apart."""
    values = sorted_penalties(distinct_penalties(report))
    if any(np.ndim(each) for each in values):
        return Penalties(values, [float(place) for place in range(len(values))])
    finite = [each for each in values if 0 < each < np.inf]
    shift = 1 - np.log10(finite[0]) if finite else 1.0
    last = float(np.log10(finite[-1]) + shift) if finite else 0.0
    places = [0.0 if each == 0 else last + 1 if np.isinf(each) else float(np.log10(each) + shift) for each in values]
    return Penalties(values, places)


def read_candidates(report: Any, penalties: Penalties) -> Candidates:
    """Places, lengthscales and values of the candidates with one lengthscale, or all of whom have the same."""
    rows = report.evaluations
    scales = [one_lengthscale(row["lengthscale"]) for row in rows]
    fixed = len({repr(row["lengthscale"]) for row in rows}) == 1 and len(penalties.values) > 1
    if fixed and scales[0] is None:
        scales = [np.nan] * len(rows)  # one given lengthscale of whatever form: a curve over the penalties
    mapped = [(row, scale) for row, scale in zip(rows, scales, strict=True) if scale is not None]
    kept = [(row, scale) for row, scale in mapped if np.isfinite(row["criterion"])]
    return Candidates(
        places=np.array([penalties.place(row["symmetry_penalty"]) for row, _ in kept], dtype=float),
        lengthscales=np.array([scale for _, scale in kept], dtype=float),
        values=np.array([row["criterion"] for row, _ in kept], dtype=float),
        uncertified=np.array([row.get("uncertified", 0) > 0 for row, _ in kept], dtype=bool),
        sided=len(rows) - len(mapped),
        unvalued=len(mapped) - len(kept),
    )


def what_varies(candidates: Candidates) -> str:
    """What varies: "lengthscale", "penalty" or "both"."""
    known = np.isfinite(candidates.lengthscales)
    if not known.all() or len(np.unique(candidates.lengthscales)) == 1 < len(np.unique(candidates.places)):
        return "penalty"
    return "lengthscale" if len(np.unique(candidates.places)) == 1 else "both"


def chosen_candidate(report: Any, penalties: Penalties, candidates: Candidates) -> int | None:
    """Position of the candidate that was chosen."""
    if report.homoscedastic:
        return None
    scale = one_lengthscale(report.lengthscale)
    here = candidates.places == penalties.place(report.symmetry_penalty)
    if scale is not None:
        here &= np.isclose(candidates.lengthscales, scale, rtol=1e-9)
    else:
        here &= np.isnan(candidates.lengthscales)
    found = np.flatnonzero(here)
    return int(found[0]) if len(found) else None


def sorted_penalties(values: list[Any]) -> list[Any]:
    """Increasing; as they come if some are pairs."""
    return values if any(np.ndim(each) for each in values) else sorted(float(each) for each in values)


def distinct_penalties(report: Any) -> list[Any]:
    """The penalties of all candidates, in the order in which they first appear."""
    found: list[Any] = []
    for each in (row["symmetry_penalty"] for row in report.evaluations):
        if not any(same(each, known) for known in found):
            found.append(each)
    return found


def one_lengthscale(lengthscale: Any) -> float | None:
    """A positive lengthscale common to all sides and features; None for anything else."""
    if isinstance(lengthscale, str | dict) or lengthscale is None or np.size(lengthscale) != 1:
        return None
    value = float(np.asarray(lengthscale, dtype=float).reshape(()))
    return value if 0 < value < np.inf else None
