"""What all pictures share: colours, new axes, and legends that cover nothing."""

from __future__ import annotations

from itertools import pairwise
from textwrap import fill
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Style = dict[str, Any]  # keyword arguments of matplotlib

# From the palette of Okabe and Ito, which stays apart for colour-blind readers; marks and lines differ as well.
BLUE, ORANGE, VERMILION = "#0072B2", "#E69F00", "#D55E00"
BLACK, GREY, LIGHT = "#000000", "#6E6E6E", "#C8C8C8"
LOWER: Style = {"color": BLUE, "marker": "v"}
UPPER: Style = {"color": ORANGE, "marker": "^"}
LINE = 50  # letters of a line in a legend


def new_axes(ax: Axes | None, *, legend: bool = False, size: tuple[float, float] = (6.4, 5.0)) -> Axes:
    """The axes given, or those of a new figure.

    A legend below the axes needs a figure that makes room for it, which one without any layout engine does not: it gets
    the constrained one, before anything is drawn.
    """
    if ax is None:
        return new_panels(1, size=size)[0]
    figure = ax.figure.figure  # of a subfigure the whole
    if legend and figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    return ax


def new_panels(count: int, *, size: tuple[float, float]) -> list[Axes]:
    """Axes side by side in a new figure that makes room for what lies outside of them."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(f"pictures need matplotlib: pip install matplotlib ({error})") from error
    figure = pyplot.figure(figsize=size, layout="constrained")
    return [figure.add_subplot(1, count, position + 1) for position in range(count)]


def open_frame(ax: Axes) -> None:
    """Leave only the two axis lines."""
    ax.spines[["top", "right"]].set_visible(False)


def legend_below(ax: Axes, *, show: bool = True, columns: int = 2) -> None:
    """A legend under the axis label, where no data can be, with as many columns as have room."""
    handles, labels = ax.get_legend_handles_labels()
    if not show or not handles:
        return
    from matplotlib.font_manager import FontProperties
    from matplotlib.transforms import ScaledTranslation

    labels = [fill(label, LINE) for label in labels]
    points = FontProperties(size="small").get_size_in_points()
    room = 1.2 * 72 * ax.bbox.width / ax.figure.dpi  # the layout will widen the axes, and labels stand beside them
    fitting = [count for count in range(1, columns + 1) if _legend_width(labels, count, points) <= room]
    inches = (
        2.4 * float(ax.xaxis.label.get_fontsize()) + 12
    ) / 72  # tick labels, axis label, and the space around them
    ax.legend(
        handles,
        labels,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=ax.transAxes + ScaledTranslation(0, -inches, ax.figure.dpi_scale_trans),
        ncols=max(fitting, default=1),
        frameon=False,
        fontsize=points,
        borderaxespad=0.0,
    )


def _legend_width(labels: list[str], columns: int, points: float) -> float:
    """About how wide the legend will be: letters of half the font size, handles and gaps of 4 of its sizes."""
    rows, more = divmod(len(labels), columns)
    ends = [rows * number + min(number, more) for number in range(columns + 1)]
    parts = [labels[first:last] for first, last in pairwise(ends)]
    longest = (max((len(line) for label in part for line in label.split("\n")), default=0) for part in parts)
    return sum((0.52 * letters + 4.0) * points for letters in longest)


def add_note(ax: Axes, text: str) -> None:
    """A remark as a line of the legend, so that it covers nothing."""
    ax.plot([], [], linestyle="none", label=text)


def percent(level: float) -> str:
    """A level in words: 90 %, 97.5 %."""
    return f"{100 * level:g} %"
