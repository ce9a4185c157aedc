"""The picture of the search for whatever is "auto"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sosbands._types import Array
from sosbands.plotting.axes import (
    BLACK,
    BLUE,
    LIGHT,
    ORANGE,
    VERMILION,
    Style,
    add_note,
    finished,
    new_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MEASURED = ("criterion", "uncertified")  # columns of a report that are no settings
LINEAR = 1.0  # per cent of loss, up to which the axis is linear
GAP = 0.6  # rows between two settings
SAME = 1e-9  # per cent: no difference


MARKS: dict[str, Style] = {  # by what they say in the legend
    "chosen": {"s": 150, "marker": "*", "facecolor": ORANGE, "edgecolor": BLACK, "lw": 0.9, "zorder": 4},
    "other candidates with this value": {"s": 30, "marker": "|", "color": LIGHT, "lw": 1.1, "zorder": 2},
    "best with this value": {"s": 30, "color": BLUE, "lw": 0, "zorder": 3},
    "solves missed their tolerance": {"s": 70, "marker": "s", "facecolors": "none", "edgecolors": VERMILION},
}


class _Value(NamedTuple):
    """One value of a setting: losses, in per cent, of the candidates that have it, the smallest first.

    A loss is negative where a test, and not the score alone, has decided for the chosen candidate.
    """

    words: str
    losses: Array
    is_chosen: bool
    uncertified: bool  # of the best of them


def plot_tuning(report: Any, ax: Axes | None = None, *, legend: bool = True) -> Axes:
    """Draw the automatic choice: for each value of each setting the loss of the best candidate with it.

    Parameters
    ----------
    report : TuningReport
        `tuning_` of a model. Of one that went by rules, which choose lengthscale and symmetry penalty by a criterion
        that need not be a score, the decision is told in words.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    legend : bool
        As for `plot_bands`.

    Returns
    -------
    matplotlib Axes
        If nothing was searched for, they hold the decision in words.
    """
    by_rules = getattr(report, "base_scale", None) is None
    settings = {} if by_rules else _read_settings(report)
    lines = sum(map(len, settings.values())) + GAP * len(settings)
    ax = new_axes(ax, legend=legend, size=(5.2, 1.8 + 0.22 * lines if settings else 3.0))
    if not settings:
        reason = "Chosen by rules." if by_rules else "There is nothing to compare: no setting had two values."
        ax.text(0.5, 0.5, f"{reason}\n{report.sentence}", transform=ax.transAxes, ha="center", va="center", wrap=True)
        ax.set(xticks=[], yticks=[])
        return ax

    from matplotlib.font_manager import FontProperties

    line = 72 * ax.bbox.height / ax.figure.dpi / lines  # points, before a legend takes some of them
    points = float(np.clip(0.7 * line, 5.0, FontProperties(size="small").get_size_in_points()))
    height, ticks = 0.0, []
    marks: list[list[tuple[float, float]]] = [[], [], [], []]  # loss and height of each, in the order of MARKS
    stars, bars, dots, squares = marks
    for name, values in settings.items():
        for value in values:
            best, others = value.losses[0], value.losses[1:]
            if value.is_chosen:  # a star, even if another candidate with its value scores better
                stars.append((0.0, height))
                others = others[np.abs(others) > SAME]
            if not value.is_chosen or best < -SAME:
                dots.append((best, height))
            if value.uncertified:
                squares.append((best, height))
            bars += [(loss, height) for loss in others]
            ticks.append((height, value.words))
            height += 1
        place: Style = {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points", "annotation_clip": False}
        look: Style = {"ha": "left", "va": "center", "fontweight": "bold", "fontsize": points}
        ax.annotate(name.replace("_", "\n"), (1.0, height - (len(values) + 1) / 2), (8, 0), **look, **place)
        if len(ticks) < sum(map(len, settings.values())):
            ax.axhline(height - 1 + (1 + GAP) / 2, color=LIGHT, lw=0.8, zorder=0)
        height += GAP
    for places, (label, style) in zip(marks, MARKS.items(), strict=True):
        if places:
            ax.scatter(*np.transpose(places), label=label, clip_on=places is bars, **style)
    ax.set_yticks([place for place, _ in ticks], [words for _, words in ticks], fontsize=points)
    ax.set_ylim(height - GAP - 0.4, -0.6)  # the first setting at the top
    ax.tick_params(axis="y", length=0)
    _loss_axis(ax, [float(value.losses[0]) for values in settings.values() for value in values])
    unvalued = sum(not np.isfinite(row["criterion"]) for row in report.evaluations)
    if unvalued:
        add_note(ax, f"{unvalued} candidates without a finite criterion are not shown")
    if getattr(report, "interrupted", False):
        add_note(ax, "the search was interrupted")
    if getattr(report, "timed_out", False):
        add_note(ax, "the search ran out of time")
    return finished(ax, legend=legend, columns=3)


def _read_settings(report: Any) -> dict[str, list[_Value]]:
    """The settings that vary among candidates with a finite criterion: numbers increasing, words as they were tried."""
    rows = [row for row in report.evaluations if np.isfinite(row["criterion"])]
    names = [name for name in next(iter(rows), {}) if name not in MEASURED]
    chosen = [row for row in rows if all(same(row[name], getattr(report, name)) for name in names)]
    best = max((row["criterion"] for row in chosen or rows), default=np.nan)
    settings: dict[str, list[_Value]] = {}
    for name in names:
        # lengthscales are told in units of the noise features: those of others do not stand beside them
        own = [row for row in rows if name != "lengthscale" or row["noise_features"] == report.noise_features]
        found: list[Any] = []
        for row in own:
            if not any(same(row[name], known) for known in found):
                found.append(row[name])
        if all(isinstance(each, (int, float)) for each in found):
            found.sort()
        settings[name] = []
        for each in found:
            having = sorted((row for row in own if same(row[name], each)), key=lambda row: -row["criterion"])
            losses = 100 * np.expm1(best - np.array([row["criterion"] for row in having]))
            missed = having[0].get("uncertified", 0) > 0
            settings[name].append(_Value(_words(name, each), losses, same(each, getattr(report, name)), missed))
    return {name: values for name, values in settings.items() if len(values) > 1}


def _words(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value.replace("+", " + ")
    if isinstance(value, dict) or not np.ndim(value) <= 1:
        return "as given"
    if name == "lengthscale" and not np.ndim(value):
        return "∞ (constant)" if np.isinf(value) else f"{value:.3g}"
    return penalty_words(value)


def same(first: Any, second: Any) -> bool:
    """Whether two penalties, numbers or pairs, are equal."""
    return bool(np.array_equal(first, second))


def penalty_words(penalty: Any) -> str:
    """A penalty as it is written at an axis."""
    if np.ndim(penalty):
        return "(" + ", ".join(penalty_words(part) for part in penalty) + ")"
    return "∞" if np.isinf(penalty) else f"{penalty:g}"


def _loss_axis(ax: Axes, losses: list[float]) -> None:
    """Linear up to one per cent, decades beyond: the best are told apart, the worst are still seen."""
    from matplotlib.ticker import FixedLocator, NullFormatter, StrMethodFormatter

    ticks = [0.0, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    last = next((tick for tick in ticks[3:] if tick >= max(losses)), max(losses))
    least = min(losses)
    first = next((-tick for tick in ticks[1:] if -tick <= least), least) if least < -SAME else 0.0
    ax.set_xscale("symlog", linthresh=LINEAR)
    both = [*(-tick for tick in ticks[:0:-1]), *ticks]
    ax.xaxis.set_major_locator(FixedLocator([tick for tick in both if first <= tick <= last]))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    better = " (below 0: better)" if first < 0 else ""
    label = f"held-out interval score, % worse than the chosen{better}"
    ax.set(xlim=(1.05 * first - 0.04 * LINEAR, 1.05 * last), xlabel=label)
    ax.grid(axis="x", color=LIGHT, lw=0.5, alpha=0.6)
    ax.set_axisbelow(True)
