"""``sosbands fit``: learn a model from a table and save it."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from sosbands import SoSBandRegressor
from sosbands._words import many
from sosbands.cli import options
from sosbands.cli.columns import Columns, Tally, kinds_in_words, learn_columns
from sosbands.cli.estimators import band_regressor, read_point_model
from sosbands.cli.given_models import GivenModel, model_files
from sosbands.cli.interruption import choice_ends_early
from sosbands.cli.intervals import BOTH, LOWER_SHARE, UPPER, Asked, apart, note_few_rows, with_groups
from sosbands.cli.model_files import trust_options, types_to_trust
from sosbands.cli.output import Output, percent, wrapped
from sosbands.cli.progress import stages
from sosbands.cli.split_width import record_split
from sosbands.cli.table_files import check_output, open_table
from sosbands.point_models import ModelBlend
from sosbands.point_models.outputs import model_name


def fit(  # noqa: PLR0913
    data: options.DataPath,
    target: options.Target,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="MODEL", help="File to write.")],
    model: options.Model = "auto",
    refit: options.Refit = False,
    confidence_level: options.NewLevel = 0.9,
    side: options.Side = BOTH,
    groups: options.Groups = None,
    groups_as_feature: options.GroupsAsFeature = False,
    calibration: options.Calibration = "symmetric",
    score: options.Score = "auto",
    calibration_size: options.CalibrationSize = "0.5",
    symmetry_penalty: options.SymmetryPenalty = "auto",
    lengthscale: options.Lengthscale = "auto",
    base_scale: options.BaseScale = "auto",
    noise_features: options.NoiseFeatures = "auto",
    width_penalty: options.WidthPenalty = "auto",
    learning_coverage: options.LearningCoverage = "auto",
    nested_coverages: options.NestedCoverages = [],  # noqa: B006
    outlier_fraction: options.OutlierFraction = "0",
    rank: options.Rank = "auto",
    max_seconds: options.MaxSeconds = "60",
    drop: options.Drop = [],  # noqa: B006
    category: options.Category = [],  # noqa: B006
    drop_missing_target: options.DropMissingTarget = False,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    json: options.Json = False,
) -> None:
    """Learn a model and its bands from DATA, calibrate them on rows held back, save them and say what was learnt.

    Ctrl-C while the bands are chosen takes the best found so far; a second one ends the command.

    \b
    Example:
      sosbands fit train.csv --target price -o price.model
    """  # noqa: D301
    says = Output(json)
    check_output(output, apart_from=[data, *model_files(model)])
    file = open_table(data)
    settings = {
        "confidence_level": confidence_level,
        "calibration": calibration if side == BOTH else "asymmetric",
        "conformal_score": score,
        "calibration_size": calibration_size,
        "symmetry_penalty": symmetry_penalty,
        "lengthscale": lengthscale,
        "base_scale": base_scale,
        "noise_features": noise_features,
        "width_penalty": width_penalty,
        "learning_coverage": learning_coverage,
        "nested_coverages": sorted(map(float, nested_coverages)) or None,
        "outlier_fraction": outlier_fraction,
        "rank": rank,
        "max_seconds": max_seconds,
    }
    clock = time.perf_counter()
    with says.listening(), stages("learning", shown=not json) as step:
        point_model = read_point_model(model, refit=refit)
        step(f"reading {data}")
        categories = with_groups(category, groups, target, drop)
        columns, frame, y = learn_columns(file, target, drop, categories, says if drop_missing_target else None)
        columns, frame, labels = apart(columns, frame, groups, as_feature=groups_as_feature)
        note_few_rows(says, len(y), calibration_size, confidence_level, settings["calibration"], side)
        regressor = band_regressor(columns, point_model, seed=seed, jobs=jobs, **settings)
        if isinstance(point_model, GivenModel):
            point_model.check_savable()
            point_model.introduce(says, columns, frame, data)
        step(f"{many(len(y), 'row')}, {many(len(columns.kinds), 'column')}; point model first")
        with choice_ends_early():
            fitted = regressor.fit(frame, y, groups=labels)
    seconds = time.perf_counter() - clock
    columns = columns.keep_in(fitted)
    Asked(side, groups).record(fitted)
    record_split(fitted, frame, y, labels)
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
    command = f"sosbands predict {shlex.quote(str(path))} NEW.csv -o OUT.csv {trust_options(trust)}".rstrip()
    text = f"{wrapped(learnt)}\nSaved to {path}. Next:\n  {command}"
    with says.listening():
        data = _data(fitted, columns, path, trust, seconds)
    says.result(text, data)


def words_of(fitted: Any) -> str:
    """The summary, and what one end alone promises."""
    asked = Asked.of_model(fitted)
    if asked.side == BOTH:
        return str(fitted.summary())
    beyond, missed = "above" if asked.side == UPPER else "below", percent(1 - fitted.confidence_level)
    one = f"Asked for {asked.side} ends alone, which take all of the miscoverage: at most {missed} of new rows lie"
    return f"{fitted.summary(asked.side)}\n{one} {beyond} theirs."


def _data(fitted: Any, columns: Columns, path: Path, trust: list[str], seconds: float) -> dict[str, Any]:
    asked = Asked.of_model(fitted)
    return {
        "model": str(path),
        "target": columns.target,
        "columns": columns.kinds,
        "n_learning": len(fitted.learning_rows_),
        "n_calibration": len(fitted.calibration_rows_),
        "confidence_level": fitted.confidence_level,
        "calibration": fitted.calibration,
        "side": asked.side,
        "groups": asked.groups,
        "quantile": _quantiles(fitted, asked),
        **_chosen(fitted),
        "mean_lower": fitted.mean_lower_,
        "mean_upper": fitted.mean_upper_,
        "certificate": fitted.certificate_,
        "point_model": model_name(fitted.estimator_),
        "members": _members(fitted.estimator_),
        "summary": words_of(fitted),
        "trust": trust,
        "seconds": seconds,
    }


def _quantiles(fitted: Any, asked: Asked) -> Any:
    """The quantile, or those of the groups; cross-calibration has none."""
    if hasattr(fitted, "copies_"):
        return None
    share = LOWER_SHARE[asked.side]
    if asked.groups is None:
        return fitted.quantile(lower_share=share)
    labels = np.unique(fitted.calibration_.groups).tolist()
    return {label: fitted.quantile(lower_share=share, group=label) for label in labels}


def _chosen(fitted: Any) -> dict[str, Any]:
    """What is in use of all that the data may choose, and why."""
    tuning = fitted.tuning_
    return {
        "base_scale": fitted.view_.base_scale,
        "noise_features": fitted.view_.noise_features,
        "lengthscale": fitted.lengthscale_,
        "width_penalty": fitted.width_penalty_,
        "learning_coverage": fitted.learning_coverage_,
        "nested_coverages": None if fitted.nested_ is None else list(fitted.nested_.coverages),
        "symmetry_penalty": fitted.symmetry_penalty_,
        "conformal_score": fitted.conformal_score_,
        "reasons": [] if tuning is None else list(tuning.reasons),
        "timed_out": tuning is not None and tuning.timed_out,
    }


def _members(estimator: Any) -> dict[str, float] | None:
    """Weights in a blend of models."""
    if not isinstance(estimator, ModelBlend):
        return None
    return {model_name(member): weight for member, weight in zip(estimator.members_, estimator.weights_, strict=True)}
