"""Learn bands around a model on data with skewed noise, print the certificates and draw the bands.

Picture of docs/notation.md: ``python examples/three_bands.py --output FOLDER``. The noise of this data
set is exponential and changes direction: below x = -0.25 its long tail points down, above it points up. The bands are
those before conformal calibration: they cover every learning point, and promise nothing yet about new ones.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from sosbands import BandSolution, learn_bands
from sosbands.datasets import SyntheticCase, synthetic_case

SEED, N_LEARNING, LENGTHSCALE = 0, 150, 0.5
IN_BETWEEN = 30.0  # with normalize=True; at 1 the bands still look almost like those at 0
TITLES = {0.0: "asymmetric", np.inf: "symmetric"}

# Blue and orange of the Okabe-Ito palette stay apart for colour-blind readers and, being dark and light, in grey print.
BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#6E6E6E"


@dataclass(frozen=True)
class Demo:
    """Everything that is printed and drawn."""

    case: SyntheticCase
    X: np.ndarray
    y: np.ndarray
    model: Any
    bands: dict[float, BandSolution]


def learn(in_between: float = IN_BETWEEN) -> Demo:
    """Fit a spline, then learn the bands at three symmetry penalties from the same residuals."""
    case = synthetic_case(5)
    X, y = case.sample(N_LEARNING, random_state=SEED)
    model = make_pipeline(SplineTransformer(n_knots=4), LinearRegression()).fit(X, y)
    residuals = y - model.predict(X)
    bands = {
        penalty: learn_bands(X, residuals, lengthscale=LENGTHSCALE, symmetry_penalty=penalty, normalize=True)
        for penalty in (0.0, in_between, np.inf)
    }
    return Demo(case, X, y, model, bands)


def report(demo: Demo) -> None:
    """Print each certificate, then the mean widths in one table."""
    for penalty, bands in demo.bands.items():
        print(f"symmetry_penalty={penalty:g} ({TITLES.get(penalty, 'in between')})\n{bands}\n")
    print("mean width at the learning points    below    above    total")
    for penalty, bands in demo.bands.items():
        below, above = bands.values_lower.mean(), bands.values_upper.mean()
        print(f"  symmetry_penalty={penalty:<16g} {below:8.3f} {above:8.3f} {below + above:8.3f}")
    lower, upper = demo.case.oracle_interval(demo.X, 0.9).T
    centre = demo.model.predict(demo.X)
    below, above = (centre - lower).mean(), (upper - centre).mean()
    print(f"  {'oracle 90 % interval':<33} {below:8.3f} {above:8.3f} {below + above:8.3f}")
    print("\nThese bands cover every learning point; they are not calibrated, so they are no 90 % intervals yet.")


def draw(demo: Demo) -> Any:
    """Return a figure with one panel per symmetry penalty, narrow enough to be read on a phone."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 8.6), layout="constrained")
    panels = figure.subplots(len(demo.bands), 1, sharex=True, sharey=True)
    for axes, (penalty, bands) in zip(panels, demo.bands.items(), strict=True):
        draw_panel(axes, demo, bands)
        title = f"{TITLES.get(penalty, 'in between')}, penalty {penalty:g}".replace("inf", "∞")
        width = bands.values_lower.mean() + bands.values_upper.mean()
        axes.set_title(f"{title}: all {len(demo.y)} rows inside, mean width {width:.2g}", fontsize=9)
        axes.set_ylabel("y")
    panels[-1].set_xlabel("x")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    figure.suptitle("Before calibration: bands that cover every learning row", fontsize=10)
    return figure


def draw_panel(axes: Any, demo: Demo, bands: BandSolution) -> None:
    """Points, model, both bands and the rows that shape them, in the order of the legend."""
    x = demo.X[:, 0]
    grid = np.linspace(-1, 1, 401)[:, None]
    centre = demo.model.predict(grid)
    lower, upper = centre - bands.lower(grid), centre + bands.upper(grid)
    axes.fill_between(grid[:, 0], lower, centre, color=BLUE, alpha=0.35, lw=0, label="lower band")
    axes.fill_between(grid[:, 0], centre, upper, color=ORANGE, alpha=0.35, lw=0, label="upper band")
    axes.plot(grid[:, 0], lower, color=BLUE, lw=1.4)
    axes.plot(grid[:, 0], upper, color=ORANGE, lw=1.4)
    marker = {"s": 52, "edgecolor": "black", "lw": 0.9, "zorder": 4}
    low, up = bands.active_lower, bands.active_upper
    axes.scatter(x[low], demo.y[low], marker="v", color=BLUE, label="rows that shape the lower band", **marker)
    axes.scatter(x[up], demo.y[up], marker="^", color=ORANGE, label="rows that shape the upper band", **marker)
    axes.plot(grid[:, 0], centre, color="black", lw=1.6, label="model (spline)")
    axes.scatter(x, demo.y, s=9, color=GREY, lw=0, label="learning rows", zorder=3)
    axes.set_xlim(-1.03, 1.03)
    axes.set_xticks([-1, -0.5, 0, 0.5, 1], ["−1", "−0.5", "0", "0.5", "1"])
    axes.spines[["top", "right"]].set_visible(False)


def main(output: str | Path = "demo_output", in_between: float = IN_BETWEEN) -> Path:
    """Learn, print, draw; return the path of the picture."""
    demo = learn(in_between)
    report(demo)
    picture = Path(output) / "bands.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    try:
        draw(demo).savefig(picture, dpi=130)
    except ModuleNotFoundError as error:
        raise SystemExit(f"the picture needs matplotlib: pip install matplotlib ({error})") from error
    print(f"picture: {picture}")
    return picture


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="demo_output", help="folder of the picture")
    parser.add_argument("--in-between", type=float, default=IN_BETWEEN, help="symmetry penalty of the middle panel")
    main(**vars(parser.parse_args()))
