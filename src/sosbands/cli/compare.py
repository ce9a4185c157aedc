"""``sosbands compare``: several methods on the same repeated splits of a table."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import typer
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline

from sosbands import SoSBandRegressor
from sosbands._files import check_place, same_file
from sosbands._types import Array
from sosbands._words import many
from sosbands.bands import BandSettings
from sosbands.baselines import METHODS, make_method
from sosbands.cli import options
from sosbands.cli.app import Stopped
from sosbands.cli.columns import Columns, learn_columns
from sosbands.cli.estimators import (
    GivenModel,
    band_regressor,
    check_model,
    introduce,
    point_model,
    table_preprocessor,
)
from sosbands.cli.options import option
from sosbands.cli.output import Output, stages, wrapped
from sosbands.cli.table_files import check_output, open_table, table_suffix, write_rows
from sosbands.comparison import ComparisonResult, judgement
from sosbands.comparison import compare as run_comparison
from sosbands.regressors import PAPER_SETTINGS
from sosbands.tuning import Rules

SOS, PAPER, SPLIT = "sos", "sos-paper", "split"
KNOWN = (SOS, PAPER, *METHODS)
WORDS = ", ".join(KNOWN)
AROUND_MODEL = (SOS, PAPER, SPLIT, "local")  # the methods that have a point model
RELATIVE = "relative_width"  # to split conformal prediction
SHOWN = ("coverage", "mean_width", RELATIVE, "interval_score", "worst_set_coverage")  # columns of the summary
# The paper's problem and the rules by which it is tuned, around the same point model as the other methods.
PAPER_RULES = Rules(criterion="hsic", symmetry_test="kruskal-wallis", independence="naive")
PAPER_BANDS = {**PAPER_SETTINGS, "bands": BandSettings(constant=False), "rules": PAPER_RULES}


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in KNOWN:
            raise typer.BadParameter(f"{name!r} is not one of {WORDS}")
    if len(set(names)) < len(names):
        raise typer.BadParameter(f"{text!r} names a method twice")
    return names


@options.spelled
def compare(
    *,
    data: Path = options.DATA_PATH,
    target: str = options.TARGET,
    methods: Any = option("sos,split,local,cqr-forest", "A,B,...", f"Some of {WORDS}.", parser=_names),
    repetitions: int = option(10, "N", "Number of random splits.", parser=options.whole_number(1)),
    confidence_level: float = options.LEVEL,
    point: options.PointModel,
    score: str = options.SCORE,
    choice: options.BandChoice,
    limits: options.BandLimits,
    rows: int | None = option(None, "N", "Take only so many rows, at random.", parser=options.whole_number(10)),
    reading: options.Reading,
    store: Path | None = option(
        None, "FILE", "Keep every finished run in this file, for more methods and repetitions."
    ),
    other_code: str = options.OTHER_CODE,
    output: Path | None = option(None, "TABLE", "CSV or Parquet file for the summary.", "-o", "--output"),
    seed: int = options.SEED,
    jobs: int | None = options.JOBS,
    json: bool = options.JSON,
) -> None:
    """Compare interval methods: coverage, width, interval score and time, over repeated splits of DATA.

    Each split gives 40 % of the rows to learn from, 40 % to calibrate and 20 % to test, the same for all methods. Gaps
    are filled and texts encoded by the learning rows of each split. After an interruption the same command continues
    with the runs in its --store.

    \b
    Example:
      sosbands compare data.csv --target price --methods sos,cqr-forest --repetitions 20 --store runs.jsonl
    """  # noqa: D301
    says = Output(json)
    inputs = [data, *point.files]
    if output is not None:
        table_suffix(output, "output")
        check_output(output, apart_from=inputs)
    if store is not None:
        check_place(store, "--store", apart_from=inputs)
        if output is not None and same_file(store, output):
            raise ValueError(f"--store {store} and output {output} are one file: expected two")
    with says.listening(), stages("comparing", shown=not json) as step:
        given = point.read()
        step(f"reading {data}")
        columns, frame, y = learn_columns(open_table(data), target, *reading.of(says))
        check_model(given, columns)
        introduce(given, says, columns, frame, data)
        if rows is not None and rows < len(y):
            chosen = np.sort(np.random.default_rng(seed).choice(len(y), rows, replace=False))
            frame, y = frame.iloc[chosen].reset_index(drop=True), y[chosen]
        step(f"{many(len(y), 'row')}; {many(len(methods) * repetitions, 'run')} of {many(len(methods), 'method')}")
    bands = limits.settings(score, choice)
    dial = {name: bands.pop(name) for name in ("symmetry_penalty", "lengthscale")}
    maker = MethodMaker(columns, given, dial, bands, confidence_level)
    made = {name: maker.make(name) for name in methods}
    with says.listening():
        try:
            result = run_comparison(
                made,
                frame,
                y,
                n_repetitions=repetitions,
                confidence_level=confidence_level,
                n_jobs=jobs,
                random_state=seed,
                store=store,
                other_code=other_code,
                verbose=int(not json),
            )
        except (KeyboardInterrupt, Stopped):
            if store is not None and store.exists():
                print(f"finished runs are in {store}: the same command continues", file=sys.stderr)
            raise
    if len(result.failures) == len(result.rows):
        raise ValueError(f"every run failed, the first with {result.failures[0]['error']}")
    result = with_relative_width(result)
    shown = [name for name in SHOWN if name in result.metrics]
    table = result.table(shown)
    if output is not None:
        write_rows(output, [{name: _rounded(cell) for name, cell in row.items()} for row in table])
    with says.listening():
        text, found = _told(result, methods, shown)
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
        return make_method(name, **settings)


def with_relative_width(result: ComparisonResult) -> ComparisonResult:
    """The same rows, with each mean width over that of split conformal prediction on the same rows, if that ran."""
    split = {row["repetition"]: row.get("mean_width", 0.0) for row in result.rows if row["method"] == SPLIT}
    rows = []
    for row in result.rows:
        width = split.get(row["repetition"], 0.0)
        known = {RELATIVE: row["mean_width"] / width} if "mean_width" in row and 0 < width < np.inf else {}
        rows.append({**row, **known})
    return replace(result, rows=rows)


def _rounded(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _told(result: ComparisonResult, methods: list[str], shown: list[str]) -> tuple[str, dict[str, Any]]:
    """The result in words and as data."""
    differences = result.differences("interval_score", reference=methods[0]) if len(methods) > 1 else []
    text = result.describe(shown)
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
        "table": list(result.table(shown)),
        "differences": list(differences),
        "remarks": result.remarks,
        "judgement": verdict,
        "rows": result.rows,
    }
    return text, data


class TableMethod(BaseEstimator):  # type: ignore[misc]
    """A method of data frames of finite numbers, behind a preprocessor of tables; both are fitted to the same rows.

    All rows given to `fit` are learnt from: `calibration_size` of the method must be None, as rows that it held back
    would have a say in the preprocessing.
    """

    def __init__(self, method: Any, preprocessor: Any) -> None:
        self.method = method
        self.preprocessor = preprocessor

    def fit(self, X: Any, y: Any) -> Self:
        """Fit both to the learning rows."""
        if self.method.calibration_size is not None:
            raise ValueError(f"method has calibration_size={self.method.calibration_size!r}: expected None")
        self.preprocessor_ = clone(self.preprocessor).set_output(transform="pandas")
        learning = self.preprocessor_.fit_transform(X, y)  # in which no row knows its own target
        self.method_ = clone(self.method).fit(learning, y)
        return self

    def conformalize(self, X: Any, y: Any) -> Self:
        """Calibrate the method."""
        self.method_.conformalize(self.preprocessor_.transform(X), y)
        return self

    def predict_interval(self, X: Any, confidence_level: float) -> Array:
        """Intervals of the method."""
        return self.method_.predict_interval(self.preprocessor_.transform(X), confidence_level)  # type: ignore[no-any-return]
