"""``sosbands demo``: automatic bands for skewed, changing noise, in words, as a picture and as a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from sosbands import SoSBandRegressor
from sosbands._files import check_folder, written
from sosbands.baselines import LocallyWeightedCP, SplitCP
from sosbands.cli import options
from sosbands.cli.fit import words_of
from sosbands.cli.interruption import choice_ends_early
from sosbands.cli.output import Output, wrapped
from sosbands.cli.progress import stages
from sosbands.cli.table_files import check_output
from sosbands.datasets import delivery_times
from sosbands.report import write_page
from sosbands.tuning.candidates import is_symmetric

ROWS, TEST_SHARE = 1000, 0.3
PICTURE, PAGE = "bands.png", "page.html"
FEATURE = "hour"  # the column along which the picture shows the bands
CHOSEN = (
    "base_scale",
    "noise_features",
    "lengthscale",
    "width_penalty",
    "learning_coverage",
    "symmetry_penalty",
    "conformal_score",
)
RIVALS = {"split CP": SplitCP, "locally weighted CP": LocallyWeightedCP}


def demo(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder for the picture and the page; it is made.")
    ] = Path("sosbands-demo"),
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
) -> None:
    """Learn automatic intervals for simulated deliveries, say what was learnt and why, compare, draw and explore them.

    \b
    Example:
      sosbands demo -o demo
    """  # noqa: D301
    from sklearn.model_selection import train_test_split

    says = Output()
    check_folder(output)
    if output.is_dir():
        for name in (PICTURE, PAGE):
            check_output(output / name)
    X, y = delivery_times(ROWS, seed, as_frame=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=TEST_SHARE, random_state=seed)
    with says.listening(), stages("learning", shown=True), choice_ends_early():
        model = SoSBandRegressor(random_state=seed, n_jobs=jobs).fit(X_train, y_train)
    opening = (
        f"Minutes that {len(X)} simulated deliveries took, from {', '.join(X)}: hardly any is much faster than usual, "
        "some are very late, and how late depends on distance, hour and rain."
    )
    says.result(wrapped("\n".join([opening, words_of(model), *_why(model)])), {})
    with says.listening(), stages("comparing", shown=True):
        rivals = {name: method(random_state=seed).fit(X_train, y_train) for name, method in RIVALS.items()}
        rows = {name: each.evaluate(X_test, y_test) for name, each in {"sosbands": model, **rivals}.items()}
    says.result(wrapped(_compared(rows, len(y_test))), {})
    output.mkdir(parents=True, exist_ok=True)
    with says.listening():
        _draw(says, model, X_test, y_test, output / PICTURE)
        with stages("exploring", shown=True), choice_ends_early():
            page = write_page(X, y, output / PAGE, target_name=y.name, random_state=seed, n_jobs=jobs)
        says.result(f"Page: {page}", {})


def _why(model: Any) -> list[str]:
    """Why asymmetric bands: skew, and what the best symmetric ones score; every other choice is in the summary."""
    report = model.tuning_
    if report is None:
        return []
    chosen = [row for row in report.evaluations if all(row[name] == getattr(report, name) for name in CHOSEN)]
    symmetric = [row for row in report.evaluations if is_symmetric(row["symmetry_penalty"])]
    if is_symmetric(report.symmetry_penalty) or report.symmetry is None or not chosen or not symmetric:
        return []
    loss = np.expm1(chosen[0]["criterion"] - max(row["criterion"] for row in symmetric))
    why = (
        f"Why asymmetric: the residuals are skewed (p = {report.symmetry.p_value:.2g}), and the best symmetric bands "
        f"score {abs(loss):.1%} {'worse' if loss > 0 else 'better'} in cross-validation."
    )
    return [why]


def _compared(rows: Mapping[str, Mapping[str, Any]], n: int) -> str:
    """One line for all methods."""
    parts = [
        f"{name} {row['coverage']:.1%}, {row['mean_width']:.1f}, {row['interval_score']:.1f}"
        for name, row in rows.items()
    ]
    measures = "coverage (90% promised), mean width, interval score (less is better)"
    return f"On {n} deliveries kept apart, all around the same point model, {measures}: {'; '.join(parts)}."


def _draw(says: Output, model: Any, X: Any, y: Any, path: Path) -> None:
    """Intervals of the test rows over their predictions, and along one feature."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        says.note("no picture, as matplotlib is not installed: pip install matplotlib")
        return
    from sosbands.plotting import plot_bands

    figure = Figure(figsize=(12, 5.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_bands(model, X, y, ax=left)
    plot_bands(model, X, y, feature=FEATURE, ax=right)
    with written(path) as partial:
        figure.savefig(partial, dpi=150)
    says.result(f"Picture: {path}", {})
