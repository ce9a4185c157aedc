"""``sosbands explore``, ``card`` and ``demo``: pages about a table, about a model, and about simulated deliveries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sosbands import SoSBandRegressor
from sosbands._files import check_folder, check_place
from sosbands._words import many
from sosbands.baselines import LocallyWeightedCP, SplitCP
from sosbands.cli import options
from sosbands.cli.app import choice_ends_early
from sosbands.cli.columns import Tally, learn_columns
from sosbands.cli.estimators import band_regressor, introduce
from sosbands.cli.fit import words_of
from sosbands.cli.opened import Opened
from sosbands.cli.options import option
from sosbands.cli.output import Output, save_figure, stages, wrapped
from sosbands.cli.table_files import open_table
from sosbands.conformal.asked import calibration_of
from sosbands.datasets import delivery_times
from sosbands.report import write_card, write_page
from sosbands.tuning.search import Candidate, is_symmetric

ROWS, TEST_SHARE = 2000, 0.3
PICTURE, PAGE = "bands.png", "page.html"
FEATURE = "hour"  # the column along which the picture shows the bands
CHOSEN = (*Candidate._fields, "conformal_score")
RIVALS = {"split CP": SplitCP, "locally weighted CP": LocallyWeightedCP}
PAGE_PATH = option(..., "PAGE", "HTML file to write.", "-o", "--output")


@options.spelled
def explore(
    *,
    data: Path = options.DATA_PATH,
    target: str = options.TARGET,
    output: Path = PAGE_PATH,
    point: options.PointModel,
    confidence_level: float = options.LEVEL,
    calibration: str = options.CALIBRATION,
    score: str = options.SCORE,
    choice: options.BandChoice,
    limits: options.BandLimits,
    reading: options.Reading,
    seed: int = options.SEED,
    jobs: int | None = options.JOBS,
) -> None:
    """Learn bands from DATA and write one HTML page to explore them in a browser, without any server.

    Gaps are filled and texts encoded by the learning rows. Columns of texts, and those with gaps, have no axis of
    their own. Ctrl-C while the bands are chosen takes the best found so far; a second one ends the command.

    \b
    Example:
      sosbands explore data.csv --target price -o price.html
    """  # noqa: D301
    says = Output()
    _check_page(output, [data, *point.files])
    settings = limits.settings(score, choice) | {"confidence_level": confidence_level, "calibration": calibration}
    with says.listening(), stages("exploring", shown=True) as step:
        point_model = point.read()
        step(f"reading {data}")
        columns, frame, y = learn_columns(open_table(data), target, *reading.of(says))
        regressor = band_regressor(columns, point_model, seed=seed, jobs=jobs, **settings)
        introduce(point_model, says, columns, frame, data)
        step(f"{many(len(y), 'row')}, {many(len(columns.kinds), 'column')}; point model first")
        with choice_ends_early():
            write_page(frame, y, output, target_name=target, estimator=regressor, random_state=seed, n_jobs=jobs)
    Tally(columns).count(frame).report(says)
    says.result(f"Page written to {output}", {"output": str(output)})


def card(
    model: Path = options.MODEL_PATH,
    output: Path = PAGE_PATH,
    data: Path | None = option(None, "DATA", "CSV or Parquet file of rows that `fit` has not seen."),
    target: str | None = options.NEW_TARGET,
    groups: str | None = option(None, "COLUMN", "Tell coverage apart by this column of DATA."),
    drop_missing_target: bool = options.DROP_MISSING_TARGET,
    trust: list[str] = options.TRUST,
) -> None:
    """Write what a model was learnt from, its settings and why, its promise and its limits on one HTML page to print.

    With --data it also has the coverage of these rows, in all, by group and by region, with sampling errors.

    \b
    Example:
      sosbands card price.model --data test.csv -o card.html
    """  # noqa: D301
    says = Output()
    _check_page(output, [model, *([] if data is None else [data])])
    if data is None and (target is not None or groups is not None):
        raise ValueError(f"--{'target' if target is not None else 'groups'} without --data: expected a table")
    opened = Opened.of(says, model, trust, data, groups=groups)
    with says.listening(), stages("writing", shown=True) as step:
        given: dict[str, Any] = {}
        if data is not None:
            opened.check(target, grouped=calibration_of(opened.fitted).groups is not None)
            frame, y, labels, _ = opened.rows(step, drop=drop_missing_target)
            named = {} if labels is None else {"groups": labels, "groups_name": opened.asked.groups}
            given = {"X": frame, "y": y, "target_name": opened.target, **named}
            step(many(len(y), "row"))
        write_card(opened.one_sided(), output, side=opened.asked.side, model_file=model, **given)
    says.result(f"Card written to {output}", {"output": str(output)})


def _check_page(path: Path, inputs: list[Path]) -> None:
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"output {path}: expected a name that ends in .html")
    check_place(path, "output", apart_from=inputs)


def demo(
    output: Path = option(
        "sosbands-demo", "FOLDER", "Folder for the picture and the page; it is made.", "-o", "--output"
    ),
    seed: int = options.SEED,
    jobs: int | None = options.JOBS,
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
            check_place(output / name, "output")
    X, y = delivery_times(ROWS, seed, as_frame=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=TEST_SHARE, random_state=seed)
    with says.listening(), stages("learning", shown=True), choice_ends_early():
        model = SoSBandRegressor(random_state=seed, n_jobs=jobs).fit(X_train, y_train)
    opening = (
        f"Minutes that {len(X)} simulated deliveries took, from {', '.join(X)}: hardly any is much faster than usual, "
        "some are very late, and how late depends on distance, hour and rain."
    )
    says.result(wrapped(f"{opening}\n{words_of(model)}{_why(model)}"), {})
    with says.listening(), stages("comparing", shown=True):
        rivals = {name: method(random_state=seed).fit(X_train, y_train) for name, method in RIVALS.items()}
        rows = {name: each.evaluate(X_test, y_test) for name, each in {"sosbands": model, **rivals}.items()}
    compared = "; ".join(
        f"{name} {row['coverage']:.1%}, {row['mean_width']:.1f}, {row['interval_score']:.1f}"
        for name, row in rows.items()
    )
    measures = "coverage (90% promised), mean width, interval score (less is better)"
    told = f"On {len(y_test)} deliveries kept apart, all around the same point model, {measures}: {compared}."
    says.result(wrapped(told), {})
    output.mkdir(parents=True, exist_ok=True)
    with says.listening():
        _draw(says, model, X_test, y_test, output / PICTURE)
        with stages("exploring", shown=True), choice_ends_early():
            page = write_page(X, y, output / PAGE, target_name=y.name, random_state=seed, n_jobs=jobs)
        says.result(f"Page: {page}", {})


def _why(model: Any) -> str:
    """Why asymmetric bands: skew, and what the best symmetric ones score."""
    report = model.tuning_
    if report is None:
        return ""
    chosen = [row for row in report.evaluations if all(row[name] == getattr(report, name) for name in CHOSEN)]
    symmetric = [row for row in report.evaluations if is_symmetric(row["symmetry_penalty"])]
    if is_symmetric(report.symmetry_penalty) or report.symmetry is None or not chosen or not symmetric:
        return ""
    loss = np.expm1(chosen[0]["criterion"] - max(row["criterion"] for row in symmetric))
    return (
        f"\nWhy asymmetric: the residuals are skewed (p = {report.symmetry.p_value:.2g}), and the best symmetric bands "
        f"score {abs(loss):.1%} {'worse' if loss > 0 else 'better'} in cross-validation."
    )


def _draw(says: Output, model: Any, X: Any, y: Any, path: Path) -> None:
    """Intervals of test rows sorted by prediction, and along one feature with the rows near that slice."""
    from sosbands.plotting import plot_bands

    def draw(figure: Any) -> None:
        above, below = figure.subplots(2, 1)  # as narrow as a phone
        plot_bands(model, X, y, ax=above)
        plot_bands(model, X, y, feature=FEATURE, ax=below)

    try:
        save_figure(path, (5.2, 9.6), draw)
    except ImportError as error:
        says.note(f"no picture: {error}")
        return
    says.result(f"Picture: {path}", {})
