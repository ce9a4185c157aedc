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
    legend_below,
    new_axes,
    open_frame,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MEASURED = ("criterion", "uncertified")  # columns of a report that are no settings
LINEAR = 1.0  # per cent of loss, up to which the axis is linear
GAP = 0.6  # rows between two settings
SAME = 1e-9  # per cent: no difference


class Value(NamedTuple):
    """One value of a setting: losses, in per cent, of the candidates that have it, the smallest first.

    A loss is negative where a test, and not the score alone, has decided for the chosen candidate.
    """

    words: str
    losses: Array
    is_chosen: bool
    uncertified: bool  # of the best of them


class Group(NamedTuple):
    """A setting of which candidates have several values."""

    words: str
    values: list[Value]


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
    groups = [] if by_rules else read_settings(report)
    ax = new_axes(ax, legend=legend, size=(6.4, figure_height(groups) if groups else 3.0))
    if groups:
        draw_settings(ax, report, groups)
        legend_below(ax, show=legend, columns=3)
        return ax
    reason = "Chosen by rules." if by_rules else "There is nothing to compare: no setting had two values."
    ax.text(0.5, 0.5, f"{reason}\n{report.sentence}", transform=ax.transAxes, ha="center", va="center", wrap=True)
    ax.set(xticks=[], yticks=[])
    return ax


def read_settings(report: Any) -> list[Group]:
    """The settings that vary among candidates with a finite criterion."""
    rows = [row for row in report.evaluations if np.isfinite(row["criterion"])]
    settings = [name for name in next(iter(rows), {}) if name not in MEASURED]
    chosen = [row for row in rows if all(same(row[name], getattr(report, name)) for name in settings)]
    best = max((row["criterion"] for row in chosen or rows), default=np.nan)
    groups = [_group(report, name, _comparable(report, name, rows), best) for name in settings]
    return [group for group in groups if len(group.values) > 1]


def draw_settings(ax: Axes, report: Any, groups: list[Group]) -> None:
    """A dot per value, at what its best candidate loses against the chosen one; candidates behind it as ticks."""
    height, ticks = 0.0, []
    points = _font_size(ax, groups)
    for group in groups:
        for value in group.values:
            _draw_value(ax, height, value)
            ticks.append((height, value.words))
            height += 1
        middle = height - (len(group.values) + 1) / 2
        place: Style = {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points", "annotation_clip": False}
        look: Style = {"ha": "left", "va": "center", "fontweight": "bold", "fontsize": points}
        ax.annotate(group.words.replace(" ", "\n"), (1.0, middle), (8, 0), **look, **place)
        if group is not groups[-1]:
            ax.axhline(height - 1 + (1 + GAP) / 2, color=LIGHT, lw=0.8, zorder=0)
        height += GAP
    ax.set_yticks([place for place, _ in ticks], [words for _, words in ticks], fontsize=points)
    ax.set_ylim(height - GAP - 0.4, -0.6)  # the first setting at the top
    _loss_axis(ax, groups)
    open_frame(ax)
    ax.tick_params(axis="y", length=0)
    _label_once(ax)
    _note(ax, report)


def figure_height(groups: list[Group]) -> float:
    """Inches that the lines need, with axis and legend."""
    return 1.6 + 0.22 * _n_lines(groups)


def _n_lines(groups: list[Group]) -> float:
    return sum(len(group.values) for group in groups) + GAP * len(groups)


def _font_size(ax: Axes, groups: list[Group]) -> float:
    """Small letters, and smaller ones where lines are close."""
    from matplotlib.font_manager import FontProperties

    height = 72 * ax.bbox.height / ax.figure.dpi / _n_lines(groups)  # of a line, before a legend takes some of it
    return float(np.clip(0.7 * height, 5.0, FontProperties(size="small").get_size_in_points()))


def _comparable(report: Any, name: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lengthscales are told in units of the noise features, so that those of others do not stand beside them."""
    if name != "lengthscale":
        return rows
    return [row for row in rows if row["noise_features"] == report.noise_features]


def _group(report: Any, name: str, rows: list[dict[str, Any]], best: float) -> Group:
    """The values of one setting, numbers increasing, words as the search came to them."""
    found: list[Any] = []
    for row in rows:
        if not any(same(row[name], known) for known in found):
            found.append(row[name])
    if all(isinstance(each, (int, float)) for each in found):
        found.sort()
    values = []
    for each in found:
        having = sorted((row for row in rows if same(row[name], each)), key=lambda row: -row["criterion"])
        losses = 100 * np.expm1(best - np.array([row["criterion"] for row in having]))
        missed = having[0].get("uncertified", 0) > 0
        values.append(Value(_words(name, each), losses, same(each, getattr(report, name)), missed))
    return Group(name.replace("_", " "), values)


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


def _draw_value(ax: Axes, height: float, value: Value) -> None:
    """The best candidate and the others; the chosen one is a star, even if another with its value scores better."""
    best, others = value.losses[0], value.losses[1:]
    if value.is_chosen:
        star: Style = {"s": 150, "marker": "*", "facecolor": ORANGE, "edgecolor": BLACK, "lw": 0.9, "zorder": 4}
        ax.scatter(0.0, height, label="chosen", clip_on=False, **star)
        others = others[np.abs(others) > SAME]
    tick: Style = {"marker": "|", "s": 30, "color": LIGHT, "lw": 1.1, "zorder": 2}
    ax.scatter(others, np.full(len(others), height), label="other candidates with this value", **tick)
    if not value.is_chosen or best < -SAME:
        ax.scatter(best, height, s=30, color=BLUE, lw=0, label="best with this value", zorder=3, clip_on=False)
    if value.uncertified:
        ring: Style = {"s": 70, "facecolors": "none", "edgecolors": VERMILION, "marker": "s", "zorder": 3}
        ax.scatter(best, height, label="solves missed their tolerance", clip_on=False, **ring)


def _loss_axis(ax: Axes, groups: list[Group]) -> None:
    """Linear up to one per cent, decades beyond: the best are told apart, the worst are still seen."""
    from matplotlib.ticker import FixedLocator, NullFormatter, StrMethodFormatter

    losses = [float(value.losses[0]) for group in groups for value in group.values]
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


def _label_once(ax: Axes) -> None:
    """One line of the legend for each kind of mark."""
    known: set[str] = set()
    for mark in ax.collections:
        label = str(mark.get_label())
        if label in known or not len(np.asarray(mark.get_offsets())):
            mark.set_label("_")
        else:
            known.add(label)


def _note(ax: Axes, report: Any) -> None:
    """What the picture cannot show, said in the legend."""
    unvalued = sum(not np.isfinite(row["criterion"]) for row in report.evaluations)
    if unvalued:
        add_note(ax, f"{unvalued} candidates without a finite criterion are not shown")
    if getattr(report, "interrupted", False):
        add_note(ax, "the search was interrupted")
    if getattr(report, "timed_out", False):
        add_note(ax, "the search ran out of time")
