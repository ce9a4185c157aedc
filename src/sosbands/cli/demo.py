"""``sosbands demo``: automatic bands on data that ships with scikit-learn, in words, as a picture and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sosbands import SoSBandRegressor
from sosbands._files import written
from sosbands.cli import options
from sosbands.cli.output import Output, wrapped
from sosbands.cli.progress import stages
from sosbands.report import write_page

TARGET = "progression"
FEATURE = "bmi"  # the column along which the picture shows the bands


def demo(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder for the picture and the page; it is made.")
    ] = Path("sosbands-demo"),
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
) -> None:
    """Learn automatic intervals for scikit-learn's Diabetes data, print what was learnt, draw and explore them.

    \b
    Example:
      sosbands demo -o demo
    """  # noqa: D301
    from sklearn.datasets import load_diabetes
    from sklearn.model_selection import train_test_split

    says = Output()
    if output.exists() and not output.is_dir():
        raise ValueError(f"output {output} is a file: expected a folder")
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    y = y.rename(TARGET)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=seed)
    with says.listening(), stages("learning", shown=True):
        model = SoSBandRegressor(random_state=seed, n_jobs=jobs).fit(X_train, y_train)
        row = model.evaluate(X_test, y_test)
    words = [f"Progression of diabetes in {len(X)} patients, from {X.shape[1]} measurements.", model.summary()]
    words.append(
        f"On {len(y_test)} patients that were kept apart: {row['coverage']:.1%} inside their interval (at least 90% "
        f"promised on average), mean width {row['mean_width']:.4g}."
    )
    says.result(wrapped("\n".join(words)), {})
    output.mkdir(parents=True, exist_ok=True)
    with says.listening():
        _draw(says, model, X_test, y_test, output / "bands.png")
        with stages("exploring", shown=True):
            page = write_page(X, y, output / "page.html", target_name=TARGET, random_state=seed, n_jobs=jobs)
        says.result(f"Page: {page}", {})


def _draw(says: Output, model: Any, X: Any, y: Any, path: Path) -> None:
    """Intervals of the test rows over their predictions, and along one feature."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        says.note('no picture, as matplotlib is not installed: pip install "sosbands[plot]"')
        return
    from sosbands.plotting import plot_bands

    figure = Figure(figsize=(12, 5.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_bands(model, X, y, ax=left)
    plot_bands(model, X, y, feature=FEATURE, ax=right)
    with written(path) as partial:
        figure.savefig(partial, dpi=150)
    says.result(f"Picture: {path}", {})
