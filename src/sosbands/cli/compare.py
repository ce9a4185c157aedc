"""``sosbands compare``: several methods on the same repeated splits of a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from sosbands import SoSBandRegressor
from sosbands.baselines import METHODS, make_method
from sosbands.cli import options
from sosbands.cli.columns import Columns, learn_columns
from sosbands.cli.estimators import check_model, point_model, table_preprocessor
from sosbands.cli.interruption import Stopped
from sosbands.cli.output import Output, wrapped
from sosbands.cli.progress import on_terminal
from sosbands.cli.table_files import check_output, open_table, table_suffix, write_rows
from sosbands.cli.table_method import TableMethod
from sosbands.comparison import ComparisonResult
from sosbands.comparison import compare as run_comparison
from sosbands.regressors import PAPER_SETTINGS
from sosbands.tuning import Rules

SOS, PAPER = "sos", "sos-paper"
KNOWN = (SOS, PAPER, *METHODS)
# The paper's problem and the rules by which it is tuned, around the same point model as the other methods.
PAPER_RULES = Rules(criterion="hsic", symmetry_test="kruskal-wallis", independence="naive")
PAPER_BANDS = {**PAPER_SETTINGS, "constant": False, "rules": PAPER_RULES}


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in KNOWN:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(KNOWN)}")
    if len(set(names)) < len(names):
        raise typer.BadParameter(f"{text!r} names a method twice")
    return names


def compare(  # noqa: PLR0913
    data: options.DataPath,
    target: options.Target,
    methods: Annotated[
        Any,
        typer.Option("--methods", metavar="A,B,...", parser=_names, help=f"Some of {', '.join(KNOWN)}."),
    ] = "sos,split,local,cqr-forest",
    repetitions: Annotated[
        int, typer.Option("--repetitions", metavar="N", parser=options.whole_number(1), help="Number of random splits.")
    ] = 10,
    confidence_level: options.NewLevel = 0.9,
    model: options.Model = "auto",
    score: options.Score = "auto",
    symmetry_penalty: options.SymmetryPenalty = "auto",
    lengthscale: options.Lengthscale = "auto",
    base_scale: options.BaseScale = "auto",
    noise_features: options.NoiseFeatures = "auto",
    width_penalty: options.WidthPenalty = "auto",
    learning_coverage: options.LearningCoverage = "auto",
    max_seconds: options.MaxSeconds = "60",
    rows: Annotated[
        int | None,
        typer.Option("--rows", metavar="N", parser=options.whole_number(10), help="Take only so many rows, at random."),
    ] = None,
    drop: options.Drop = [],  # noqa: B006
    category: options.Category = [],  # noqa: B006
    drop_missing_target: options.DropMissingTarget = False,
    store: Annotated[
        Path | None,
        typer.Option("--store", metavar="FILE", help="Keep every finished run; the same command continues."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="TABLE", help="CSV or Parquet file for the summary.")
    ] = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    json: options.Json = False,
) -> None:
    """Compare interval methods: coverage, width, interval score and time, over repeated splits of DATA.

    Each split gives 40 % of the rows to learn from, 40 % to calibrate and 20 % to test, the same for all methods. Gaps
    are filled and texts encoded by the learning rows of each split.

    \b
    Example:
      sosbands compare data.csv --target price --methods sos,cqr-forest --repetitions 20 --store runs.jsonl
    """  # noqa: D301
    says = Output(json)
    if output is not None:
        table_suffix(output, "output")
        check_output(output, apart_from=[data])
    if store is not None:
        check_output(store, apart_from=[data])
    dropping = says if drop_missing_target else None
    columns, frame, y = learn_columns(open_table(data), target, drop, category, dropping)
    check_model(model, columns)
    X, y = _some_rows(frame, y, rows, seed)
    dial = {"symmetry_penalty": symmetry_penalty, "lengthscale": lengthscale}
    bands = {
        "conformal_score": score,
        "base_scale": base_scale,
        "noise_features": noise_features,
        "width_penalty": width_penalty,
        "learning_coverage": learning_coverage,
        "max_seconds": max_seconds,
    }
    common = {"estimator": point_model(model, seed=None, jobs=None), "confidence_level": confidence_level}
    try:
        with says.listening():
            result = run_comparison(
                {name: _method(name, columns, dial, bands, common) for name in methods},
                X,
                y,
                n_repetitions=repetitions,
                confidence_level=confidence_level,
                n_jobs=jobs,
                random_state=seed,
                store=store,
                verbose=int(on_terminal() and not json),
            )
    except (KeyboardInterrupt, Stopped):
        if store is not None and store.exists():
            print(f"finished runs are in {store}: the same command continues", file=sys.stderr)
        raise
    if len(result.failures) == len(result.rows):
        raise ValueError(f"every run failed, the first with {result.failures[0]['error']}")
    if output is not None:
        write_rows(output, result.table())
    with says.listening():
        text, found = _told(result, methods)
    says.result(text, found)


def _method(
    name: str, columns: Columns, dial: dict[str, Any], bands: dict[str, Any], common: dict[str, Any]
) -> TableMethod:
    """An unfitted method; its random state is that of each repetition, its calibration rows those of the split."""
    common = {**common, "calibration_size": None}
    if name in (SOS, PAPER):
        method: Any = SoSBandRegressor(**dial, **(bands if name == SOS else PAPER_BANDS), **common)
    else:
        method = make_method(name, **common)
    return TableMethod(method, table_preprocessor(columns, scale=False))


def _some_rows(X: Any, y: Any, rows: int | None, seed: int) -> tuple[Any, Any]:
    if rows is None or rows >= len(y):
        return X, y
    chosen = np.sort(np.random.default_rng(seed).choice(len(y), rows, replace=False))
    return X.iloc[chosen].reset_index(drop=True), y[chosen]


def _told(result: ComparisonResult, methods: list[str]) -> tuple[str, dict[str, Any]]:
    """The result in words and as data."""
    differences = result.differences("interval_score", reference=methods[0]) if len(methods) > 1 else []
    text = result.describe()
    if differences:
        compared = f"Difference of the interval score (lower is better) to {methods[0]}"
        several = any(row["n"] > 1 for row in differences)
        sure = "with a 95 % confidence interval; one that holds 0 shows no difference"
        explained = f"{compared}, {sure if several else 'of which one repetition gives no confidence interval'}"
        text += f"\n\n{wrapped(explained)}\n\n{differences!r}"
    data = {
        "confidence_level": result.confidence_level,
        "n_learning": result.sizes.n_learn,
        "n_calibration": result.sizes.n_calibration,
        "n_test": result.sizes.n_test,
        "table": list(result.table()),
        "differences": list(differences),
        "remarks": result.remarks,
        "rows": result.rows,
    }
    return text, data
