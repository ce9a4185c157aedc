"""``sosbands compare``: several methods on the same repeated splits of a table."""

from __future__ import annotations

import sys
from dataclasses import replace
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
from sosbands.cli.columns import Columns, cells_of, check_column, learn_columns
from sosbands.cli.estimators import OWN_RESIDUALS, GivenModel, band_regressor, check_model, introduce, point_model
from sosbands.cli.opened import check_groups, labels_of
from sosbands.cli.options import option
from sosbands.cli.output import Output, stages, wrapped
from sosbands.cli.table_files import check_suffix, open_table, write_rows
from sosbands.comparison import compare as run_comparison
from sosbands.comparison import judgement
from sosbands.regressors import PAPER_SETTINGS
from sosbands.tables import TableEncoder
from sosbands.tables.columns import CATEGORY, NUMBER
from sosbands.tuning import Rules

SOS, PAPER, SPLIT = "sos", "sos-paper", "split"
KNOWN = (SOS, PAPER, *METHODS)
WORDS = ", ".join(KNOWN)
AROUND_MODEL = (SOS, PAPER, SPLIT, "local")  # the methods that have a point model
RELATIVE = "relative_width"  # to split conformal prediction
SHOWN = ("coverage", "mean_width", RELATIVE, "interval_score", "worst_set_coverage")  # columns of the summary
OF_PLACES = ("ert_l1", "ert_l1_under", "worst_slab_coverage", "cell_gap")
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
    places: options.Places,
    rows: int | None = option(None, "N", "Take only so many rows, at random.", parser=options.whole_number(10)),
    reading: options.Reading,
    kept: options.KeptRuns,
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
    inputs, store, by = [data, *point.files], kept.store, places.by
    if output is not None:
        check_suffix(output, "output")
        check_place(output, "output", apart_from=inputs)
    if store is not None:
        check_place(store, "--store", apart_from=inputs)
        if output is not None and same_file(store, output):
            raise ValueError(f"--store {store} and output {output} are one file: expected two")
    with says.listening(), stages("comparing", shown=not json) as step:
        given = point.read()
        step(f"reading {data}")
        file = open_table(data)
        columns, frame, y = learn_columns(file, target, *reading.of(says))
        texts = None
        if by is not None:  # also a column that is left out of the features
            check_column(file, by)
            read = file.read(list({by, target}))
            filled = ~np.isnan(cells_of(read, target, file, NUMBER).numbers(NUMBER))
            texts = labels_of(Columns({by: CATEGORY}).frame(read, file)[by][filled])
            check_groups(by, texts)
        check_model(given, columns)
        introduce(given, says, columns, frame, data)
        if rows is not None and rows < len(y):
            chosen = np.sort(np.random.default_rng(seed).choice(len(y), rows, replace=False))
            frame, y = frame.iloc[chosen].reset_index(drop=True), y[chosen]
            texts = None if texts is None else texts[chosen]
        step(f"{many(len(y), 'row')}; {many(len(methods) * repetitions, 'run')} of {many(len(methods), 'method')}")
    bands = limits.settings(score, choice)
    made = {name: method_of(name, columns, given, bands, confidence_level) for name in methods}
    with says.listening():
        try:
            result = run_comparison(
                made,
                frame,
                y,
                n_repetitions=repetitions,
                confidence_level=confidence_level,
                by=texts,
                places=places.places,
                n_jobs=jobs,
                random_state=seed,
                store=store,
                other_code=kept.other_code,
                verbose=int(not json),
            )
        except (KeyboardInterrupt, Stopped):
            if store is not None and store.exists():
                print(f"finished runs are in {store}: the same command continues", file=sys.stderr)
            raise
    if len(result.failures) == len(result.rows):
        raise ValueError(f"every run failed, the first with {result.failures[0]['error']}")
    split = {row["repetition"]: row.get("mean_width", 0.0) for row in result.rows if row["method"] == SPLIT}
    rows_with = []  # the mean width over that of split conformal prediction on the same rows, if that ran
    for row in result.rows:
        width = split.get(row["repetition"], 0.0)
        known = {RELATIVE: row["mean_width"] / width} if "mean_width" in row and 0 < width < np.inf else {}
        rows_with.append({**row, **known})
    result = replace(result, rows=rows_with)
    shown = [name for name in (*SHOWN, *(OF_PLACES if places.places else ())) if name in result.metrics]
    table = result.table(shown)
    if output is not None:
        rounded = [
            {name: float(f"{cell:.6g}") if isinstance(cell, float) else cell for name, cell in row.items()}
            for row in table
        ]
        write_rows(output, rounded)
    with says.listening():
        differences = result.differences("interval_score", reference=methods[0]) if len(methods) > 1 else []
        text, verdict = result.describe(shown), judgement(result)
    if differences:
        sure = "of which one repetition gives no confidence interval"
        if any(row["n"] > 1 for row in differences):
            sure = "with a 95 % confidence interval; one that holds 0 shows no difference"
        explained = f"Difference of the interval score (lower is better) to {methods[0]}, {sure}"
        text += f"\n\n{wrapped(explained)}\n\n{differences!r}"
    text += f"\n\n{wrapped(verdict)}" if verdict else ""
    found = {
        "confidence_level": result.confidence_level,
        "n_learning": result.sizes.n_learn,
        "n_calibration": result.sizes.n_calibration,
        "n_test": result.sizes.n_test,
        "table": list(result.table(shown)),
        **({} if by is None else {"by": list(result.by_group())}),
        "differences": list(differences),
        "remarks": result.remarks,
        "judgement": verdict,
        "rows": result.rows,
    }
    says.result(text, found)


def method_of(name: str, columns: Columns, model: str | GivenModel, bands: dict[str, Any], level: float) -> Any:
    """An unfitted method for a table; random state and calibration rows are those of each repetition.

    A model of the user's sees the table as it is, every other method numbers.
    """
    settings: dict[str, Any] = {"confidence_level": level, "calibration_size": None}
    if name in (SOS, PAPER):
        dial = {each: bands[each] for each in ("symmetry_penalty", "lengthscale")}
        settings |= bands if name == SOS else {**dial, **PAPER_BANDS}
    numbers = TableEncoder(columns.kinds, scale=False)
    if isinstance(model, GivenModel) and name in AROUND_MODEL:
        if name in (SOS, PAPER):
            return band_regressor(columns, model, seed=None, jobs=None, **settings)
        settings |= {"estimator": model.pipeline(columns), "residuals": OWN_RESIDUALS[model.is_fitted]}
        if name == "local":
            settings["scale_estimator"] = make_pipeline(numbers, RandomForestRegressor(min_samples_leaf=10))
        return make_method(name, **settings)
    if not isinstance(model, GivenModel):
        settings["estimator"] = point_model(model, seed=None, jobs=None)
    return TableMethod(SoSBandRegressor(**settings) if name in (SOS, PAPER) else make_method(name, **settings), numbers)


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
