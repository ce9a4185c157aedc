"""``sosbands fit``: learn a model from a table and save it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from sosbands import SoSBandRegressor
from sosbands.cli import options
from sosbands.cli.columns import Columns, Tally, kinds_in_words, learn_columns
from sosbands.cli.estimators import band_regressor, record_columns
from sosbands.cli.model_files import trust_options, types_to_trust
from sosbands.cli.output import Output, wrapped
from sosbands.cli.progress import stages
from sosbands.cli.table_files import check_output, open_table
from sosbands.point_models import model_name


def fit(
    data: options.DataPath,
    target: options.Target,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="MODEL", help="File to write.")],
    model: options.Model = "auto",
    confidence_level: options.NewLevel = 0.9,
    calibration: options.Calibration = "symmetric",
    score: options.Score = "added",
    calibration_size: options.CalibrationSize = "0.5",
    symmetry_penalty: options.SymmetryPenalty = "auto",
    lengthscale: options.Lengthscale = "auto",
    drop: options.Drop = [],  # noqa: B006
    category: options.Category = [],  # noqa: B006
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    json: options.Json = False,
) -> None:
    """Learn a model and its bands from DATA, calibrate them on rows held back, save them and say what was learnt.

    \b
    Example:
      sosbands fit train.csv --target price -o price.model
    """  # noqa: D301
    says = Output(json)
    check_output(output, apart_from=[data])
    file = open_table(data)
    columns, frame, y = learn_columns(file, target, drop, category)
    settings = {
        "confidence_level": confidence_level,
        "calibration": calibration,
        "conformal_score": score,
        "calibration_size": calibration_size,
        "symmetry_penalty": symmetry_penalty,
        "lengthscale": lengthscale,
    }
    regressor = band_regressor(columns, model, seed=seed, jobs=jobs, **settings)
    clock = time.perf_counter()
    with says.listening(), stages("learning", shown=not json):
        fitted = regressor.fit(frame, y)
    seconds = time.perf_counter() - clock
    columns = record_columns(fitted, columns)
    missing = Tally(columns)
    missing.count(frame)
    missing.report(says)
    fitted.save(output)
    trust = types_to_trust(output)
    report(says, fitted, columns, output, trust, seconds)


def report(
    says: Output, fitted: SoSBandRegressor, columns: Columns, path: Path, trust: list[str], seconds: float
) -> None:
    """The summary in words, or as JSON."""
    learnt = f"Learnt {columns.target!r} from {kinds_in_words(columns)}, in {seconds:.1f} s.\n{words_of(fitted)}"
    command = f"sosbands predict {path} NEW.csv -o OUT.csv {trust_options(trust)}".rstrip()
    text = f"{wrapped(learnt)}\nSaved to {path}. Next:\n  {command}"
    with says.listening():
        data = _data(fitted, columns, path, trust, seconds)
    says.result(text, data)


def words_of(fitted: Any) -> str:
    """The summary, with that name."""
    return str(fitted.summary()).replace("Bands around Pipeline,", f"Bands around {model_name(fitted.estimator_)},", 1)


def _data(fitted: Any, columns: Columns, path: Path, trust: list[str], seconds: float) -> dict[str, Any]:
    return {
        "model": str(path),
        "target": columns.target,
        "columns": columns.kinds,
        "n_learning": len(fitted.learning_rows_),
        "n_calibration": len(fitted.calibration_rows_),
        "confidence_level": fitted.confidence_level,
        "calibration": fitted.calibration,
        "conformal_score": fitted.conformal_score_,
        "quantile": fitted.quantile(),
        "symmetry_penalty": fitted.symmetry_penalty_,
        "lengthscale": fitted.lengthscale_,
        "mean_lower": fitted.mean_lower_,
        "mean_upper": fitted.mean_upper_,
        "certificate": fitted.certificate_,
        "point_model": model_name(fitted.estimator_),
        "summary": words_of(fitted),
        "trust": trust,
        "seconds": seconds,
    }
