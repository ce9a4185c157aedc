"""``sosbands compare``: several methods on the same repeated splits of a table."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline

from sosbands import SoSBandRegressor
from sosbands._files import check_place, same_file
from sosbands._words import many
from sosbands.baselines import METHODS, make_method
from sosbands.cli import options
from sosbands.cli.columns import Columns, learn_columns
from sosbands.cli.estimators import band_regressor, check_model, point_model, read_point_model, table_preprocessor
from sosbands.cli.given_models import GivenModel, model_files
from sosbands.cli.interruption import Stopped
from sosbands.cli.kept_runs import DAYS, kept_runs
from sosbands.cli.output import Output, wrapped
from sosbands.cli.progress import stages
from sosbands.cli.table_files import check_output, open_table, table_suffix, write_rows
from sosbands.cli.table_method import TableMethod
from sosbands.comparison import ComparisonResult, judgement
from sosbands.comparison import compare as run_comparison
from sosbands.regressors import PAPER_SETTINGS
from sosbands.tuning import Rules

SOS, PAPER, SPLIT = "sos", "sos-paper", "split"
KNOWN = (SOS, PAPER, *METHODS)
AROUND_MODEL = (SOS, PAPER, SPLIT, "local", "squared-sos")  # the methods that have a point model
RELATIVE = "relative_width"  # to split conformal prediction
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
    refit: options.Refit = False,
    score: options.Score = "auto",
    symmetry_penalty: options.SymmetryPenalty = "auto",
    lengthscale: options.Lengthscale = "auto",
    base_scale: options.BaseScale = "auto",
    noise_features: options.NoiseFeatures = "auto",
    width_penalty: options.WidthPenalty = "auto",
    learning_coverage: options.LearningCoverage = "auto",
    outlier_fraction: options.OutlierFraction = "0",
    rank: options.Rank = "auto",
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
        typer.Option(
            "--store", metavar="FILE", help="Keep every finished run in this file, for more methods and repetitions."
        ),
    ] = None,
    other_code: options.OtherCode = "refuse",
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start anew, even if the same command was interrupted before.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="TABLE", help="CSV or Parquet file for the summary.")
    ] = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    json: options.Json = False,
) -> None:
    """Compare interval methods: coverage, width, interval score and time, over repeated splits of DATA.

    Each split gives 40 % of the rows to learn from, 40 % to calibrate and 20 % to test, the same for all methods. Gaps
    are filled and texts encoded by the learning rows of each split. After an interruption the same command continues
    within a week.

    \b
    Example:
      sosbands compare data.csv --target price --methods sos,cqr-forest --repetitions 20 --store runs.jsonl
    """  # noqa: D301
    says = Output(json)
    inputs = [data, *model_files(model)]
    if output is not None:
        table_suffix(output, "output")
        check_output(output, apart_from=inputs)
    if store is not None:
        check_place(store, "--store", apart_from=inputs)
        if output is not None and same_file(store, output):
            raise ValueError(f"--store {store} and output {output} are one file: expected two")
    bands = {
        "conformal_score": score,
        "base_scale": base_scale,
        "noise_features": noise_features,
        "width_penalty": width_penalty,
        "learning_coverage": learning_coverage,
        "outlier_fraction": outlier_fraction,
        "rank": rank,
        "max_seconds": max_seconds,
    }
    with says.listening(), stages("comparing", shown=not json) as step:
        point_model = read_point_model(model, refit=refit)
        step(f"reading {data}")
        columns, frame, y = learn_columns(
            open_table(data), target, drop, category, says if drop_missing_target else None
        )
        check_model(point_model, columns)
        if isinstance(point_model, GivenModel):
            point_model.introduce(says, columns, frame, data)
        X, y = _some_rows(frame, y, rows, seed)
        step(f"{many(len(y), 'row')}; {many(len(methods) * repetitions, 'run')} of {many(len(methods), 'method')}")
    dial = {"symmetry_penalty": symmetry_penalty, "lengthscale": lengthscale}
    maker = MethodMaker(columns, point_model, dial, bands, confidence_level)
    made = {name: maker.make(name) for name in methods}
    settings = {
        "methods": {name: maker.make(name) for name in (SOS, PAPER, "split")},
        "level": confidence_level,
        "seed": seed,
    }
    keeping = nullcontext(store) if store is not None else kept_runs(X, y, settings, says, fresh=fresh)
    with says.listening(), keeping as runs:
        try:
            result = run_comparison(
                made,
                X,
                y,
                n_repetitions=repetitions,
                confidence_level=confidence_level,
                n_jobs=jobs,
                random_state=seed,
                store=runs,
                other_code=other_code if store is not None else "again",
                verbose=int(not json),
            )
        except (KeyboardInterrupt, Stopped):
            if runs is not None and runs.exists():
                anew = "" if store is not None else f" within {DAYS} days, unless with --fresh"
                print(f"finished runs are in {runs}: the same command continues{anew}", file=sys.stderr)
            raise
    if len(result.failures) == len(result.rows):
        raise ValueError(f"every run failed, the first with {result.failures[0]['error']}")
    result = with_relative_width(result)
    if output is not None:
        write_rows(output, [_rounded(row) for row in result.table(_shown(result))])
    with says.listening():
        text, found = _told(result, methods)
    says.result(text, found)


@dataclass(frozen=True)
class MethodMaker:
    """Unfitted methods for a table; random state and calibration rows are those of each repetition."""

    columns: Columns
    point_model: str | GivenModel
    dial: dict[str, Any]
    bands: dict[str, Any]
    level: float

    def make(self, name: str) -> Any:
        """The method of this name. A model of the user's sees the table as it is, every other method numbers."""
        common: dict[str, Any] = {"confidence_level": self.level, "calibration_size": None}
        settings = {**self.dial, **(self.bands if name == SOS else PAPER_BANDS)} if name in (SOS, PAPER) else {}
        if isinstance(self.point_model, GivenModel) and name in AROUND_MODEL:
            return self._around(self.point_model, name, {**settings, **common})
        if not isinstance(self.point_model, GivenModel):
            common["estimator"] = point_model(self.point_model, seed=None, jobs=None)
        method = SoSBandRegressor(**settings, **common) if name in (SOS, PAPER) else make_method(name, **common)
        return TableMethod(method, table_preprocessor(self.columns, scale=False))

    def _around(self, given: GivenModel, name: str, settings: dict[str, Any]) -> Any:
        if name in (SOS, PAPER):
            return band_regressor(self.columns, given, seed=None, jobs=None, **settings)
        settings |= {"estimator": given.pipeline(self.columns), "residuals": given.residuals}
        if name == "local":
            forest = RandomForestRegressor(min_samples_leaf=10)
            settings["scale_estimator"] = make_pipeline(table_preprocessor(self.columns, scale=False), forest)
        if name == "squared-sos":
            settings["preprocessor"] = table_preprocessor(self.columns)
        return make_method(name, **settings)


def with_relative_width(result: ComparisonResult) -> ComparisonResult:
    """The same rows, with each mean width over that of split conformal prediction on the same rows, if that ran."""
    split = result._by_repetition(SPLIT, "mean_width") if SPLIT in result.methods else {}
    rows = []
    for row in result.rows:
        width = split.get(row["repetition"], 0.0)
        known = {RELATIVE: row["mean_width"] / width} if "mean_width" in row and 0 < width < np.inf else {}
        rows.append({**row, **known})
    return replace(result, rows=rows)


def _shown(result: ComparisonResult) -> list[str]:
    """Columns of the summary."""
    wanted = ("coverage", "mean_width", RELATIVE, "interval_score", "worst_set_coverage")
    return [name for name in wanted if name in result.metrics]


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in row.items()}


def _some_rows(X: Any, y: Any, rows: int | None, seed: int) -> tuple[Any, Any]:
    if rows is None or rows >= len(y):
        return X, y
    chosen = np.sort(np.random.default_rng(seed).choice(len(y), rows, replace=False))
    return X.iloc[chosen].reset_index(drop=True), y[chosen]


def _told(result: ComparisonResult, methods: list[str]) -> tuple[str, dict[str, Any]]:
    """The result in words and as data."""
    differences = result.differences("interval_score", reference=methods[0]) if len(methods) > 1 else []
    text = result.describe(_shown(result))
    if differences:
        compared = f"Difference of the interval score (lower is better) to {methods[0]}"
        several = any(row["n"] > 1 for row in differences)
        sure = "with a 95 % confidence interval; one that holds 0 shows no difference"
        explained = f"{compared}, {sure if several else 'of which one repetition gives no confidence interval'}"
        text += f"\n\n{wrapped(explained)}\n\n{differences!r}"
    verdict = judgement(result)
    if verdict:
        text += f"\n\n{wrapped(verdict)}"
    data = {
        "confidence_level": result.confidence_level,
        "n_learning": result.sizes.n_learn,
        "n_calibration": result.sizes.n_calibration,
        "n_test": result.sizes.n_test,
        "table": list(result.table(_shown(result))),
        "differences": list(differences),
        "remarks": result.remarks,
        "judgement": verdict,
        "rows": result.rows,
    }
    return text, data
