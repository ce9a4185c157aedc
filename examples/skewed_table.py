"""Draw intervals of a skewed table beside those of split conformal prediction.

This is the picture of the README: ``python examples/skewed_table.py --output FOLDER``. Deliveries are simulated: hardly
any is much faster than usual, some are very late, and how late depends on the hour, the distance and rain. Both methods
learn from the same rows and are asked for the same coverage. A bar is the interval of a delivery that neither has seen,
around its prediction; a dot what came of it. The titles measure all test rows, of which some are drawn.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from sosbands import SoSBandRegressor
from sosbands.baselines import SplitCP
from sosbands.datasets import delivery_times

N, SHOWN = 3000, 110  # rows of the table, and of its test rows those that are drawn
# Blue and orange of the Okabe-Ito palette stay apart for colour-blind readers and, being dark and light, in grey print.
BLUE, ORANGE, RED, GREY = "#0072B2", "#E69F00", "#D55E00", "#333333"


def learn(n: int = N) -> tuple[dict[str, Any], Any, Any]:
    """Both models by their names, and the test rows with what came of them."""
    X, y = delivery_times(n, as_frame=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    methods = {"split CP": SplitCP(random_state=0), "sosbands": SoSBandRegressor(random_state=0)}
    return {name: method.fit(X_train, y_train) for name, method in methods.items()}, X_test, y_test


def draw(models: dict[str, Any], X: Any, y: Any) -> Any:
    """Return a figure with one panel for each model, narrow enough to be read on a phone."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 5.6), layout="constrained")
    panels = figure.subplots(len(models), 1, sharex=True, sharey=True)
    for axes, (name, model) in zip(panels, models.items(), strict=True):
        found = model.evaluate(X, y)
        draw_panel(axes, model, X[:SHOWN], y[:SHOWN])
        measured = f"{found['coverage']:.0%} inside, mean width {found['mean_width']:.1f} minutes"
        axes.set_title(f"{name}: {measured}", fontsize=10)
        axes.set_ylabel("minutes later\nthan predicted")
    panels[-1].set_xlabel("hour of the day")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def draw_panel(axes: Any, model: Any, X: Any, y: Any) -> None:
    """Bars from the prediction to both ends, and the observations."""
    prediction, hour = model.predict(X), X["hour"]
    lower, upper = model.predict_interval(X).T - prediction
    late = np.asarray(y) - prediction
    missed = (late < lower) | (late > upper)
    axes.vlines(hour, lower, 0, color=BLUE, alpha=0.6, lw=1.8, label="interval below the prediction")
    axes.vlines(hour, 0, upper, color=ORANGE, alpha=0.8, lw=1.8, label="interval above it")
    axes.scatter(hour[~missed], late[~missed], s=9, color=GREY, lw=0, zorder=3, label="delivery inside")
    axes.scatter(hour[missed], late[missed], s=26, marker="x", color=RED, lw=1.4, zorder=4, label="delivery outside")
    axes.axhline(0, color="black", lw=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def main(output: str | Path = "demo_output", n: int = N) -> Path:
    """Learn, print, draw; return the path of the picture."""
    models, X, y = learn(n)
    picture = Path(output) / "skewed-table.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    try:
        draw(models, X, y).savefig(picture, dpi=130)
    except ModuleNotFoundError as error:
        raise SystemExit(f"the picture needs matplotlib: pip install matplotlib ({error})") from error
    for name, model in models.items():
        found = model.evaluate(X, y)
        told = ", ".join(f"{key} {found[key]:.3g}" for key in ("coverage", "mean_width", "interval_score"))
        print(f"{name:16} {told}")
    print(f"picture: {picture}")
    return picture


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="demo_output", help="folder of the picture")
    parser.add_argument("--n", type=int, default=N, help="rows of the table")
    main(**vars(parser.parse_args()))
