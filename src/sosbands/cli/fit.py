"""``sosbands fit``: learn a model from a table, save it, and say what was learnt."""

from __future__ import annotations

import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sosbands._files import check_place
from sosbands._types import Array
from sosbands._words import many
from sosbands.cli import options
from sosbands.cli.app import choice_ends_early
from sosbands.cli.columns import RECORD, Columns, Tally, learn_columns
from sosbands.cli.estimators import band_regressor, introduce
from sosbands.cli.opened import ASKED, BOTH, UPPER, Asked, labels_of, record_split
from sosbands.cli.options import flag, option
from sosbands.cli.output import Output, percent, stages, wrapped
from sosbands.cli.table_files import TableFile, open_table
from sosbands.conformal import points_needed, side_levels
from sosbands.conformal.asked import SIDES
from sosbands.point_models import ModelBlend
from sosbands.point_models.user_model import model_name
from sosbands.saving import save
from sosbands.tables.columns import KINDS
from sosbands.tables.rows import AUTO, held_back

FEW = 20  # learning rows, from which hardly anything can be learnt


@options.spelled
def fit(  # noqa: PLR0913
    *,
    data: Path = options.DATA_PATH,
    target: str = options.TARGET,
    output: Path = option(..., "MODEL", "File to write.", "-o", "--output"),
    point: options.PointModel,
    confidence_level: float = options.LEVEL,
    side: str = option(
        BOTH,
        "END",
        "lower or upper: intervals with this end only, which the level is the coverage of; or both.",
        callback=options.one_of(tuple(SIDES)),
    ),
    groups: str | None = option(
        None,
        "COLUMN",
        "Column of groups, each of which is calibrated apart, for coverage in each. Not learnt from, unless with "
        "--groups-as-feature.",
    ),
    groups_as_feature: bool = flag("--groups-as-feature", "Learn from the column of groups, too, as from a category."),
    calibration: str = options.CALIBRATION,
    score: str = options.SCORE,
    calibration_size: Any = option(
        AUTO,
        "SIZE",
        "Fraction or number of the rows that are held back for calibration; auto: a quarter, more of few rows. "
        "out-of-fold: all rows are learnt from and calibrated on by what folds have held out, which is not proven; "
        "cross: the same by copies of the model, which takes six times as long and is proven for less.",
        parser=options.read_size,
    ),
    choice: options.BandChoice,
    nested_coverages: list[str] = option(
        options.SEVERAL,
        "SHARE",
        "Learn a band for each of these shares, such as 0.5,0.8,0.9,0.95, each inside the next: for models that are "
        "asked for several levels or for quantiles.",
        callback=options.read_levels,
    ),
    limits: options.BandLimits,
    scale: options.TargetOptions,
    reading: options.Reading,
    seed: int = options.SEED,
    jobs: int | None = options.JOBS,
    json: bool = options.JSON,
) -> None:
    """Learn a model and its bands from DATA, calibrate them on rows held back, save them and say what was learnt.

    Ctrl-C while the bands are chosen takes the best found so far; a second one ends the command.

    \b
    Example:
      sosbands fit train.csv --target price -o price.model
    """  # noqa: D301
    says = Output(json)
    check_place(output, "output", apart_from=[data, *point.files])
    file = open_table(data)
    settings = (
        limits.settings(score, choice)
        | scale.settings()
        | {
            "confidence_level": confidence_level,
            "calibration": calibration if side == BOTH else "asymmetric",
            "calibration_size": calibration_size,
            "nested_coverages": sorted(map(float, nested_coverages)) or None,
        }
    )
    clock = time.perf_counter()
    with says.listening(), stages("learning", shown=not json) as step:
        point_model = point.read()
        step(f"reading {data}")
        columns, frame, y, labels = _read(file, target, reading, groups, says, as_feature=groups_as_feature)
        _note_few_rows(says, len(y), calibration_size, confidence_level, settings["calibration"], side)
        regressor = band_regressor(columns, point_model, seed=seed, jobs=jobs, **settings)
        introduce(point_model, says, columns, frame, data, to_save=True)
        step(f"{many(len(y), 'row')}, {many(len(columns.kinds), 'column')}; point model first")
        with choice_ends_early():
            fitted = regressor.fit(frame, y, groups=labels)
    seconds = time.perf_counter() - clock
    setattr(fitted, RECORD, {"kinds": columns.kinds, "target": columns.target})
    columns = Columns.of_model(fitted, output)  # with the texts of each
    setattr(fitted, ASKED, {"side": side, "groups": groups})
    record_split(fitted, frame, y, labels)
    Tally(columns).count(frame).report(says)
    trust = list(save(fitted, output))
    counts = [(kind, len(columns.of_kind(kind))) for kind in KINDS]
    kinds = ", ".join(many(count, kind) for kind, count in counts if count).replace("categorys", "categories")
    learnt = f"Learnt {columns.target!r} from {many(len(columns.kinds), 'column')}: {kinds}, in {seconds:.1f} s."
    command = f"sosbands predict {shlex.quote(str(output))} NEW.csv -o OUT.csv"
    command += "".join(f" --trust {name}" for name in trust)
    with says.listening():
        found = _data(fitted, columns, output, trust, seconds)
    says.result(f"{wrapped(learnt)}\n{wrapped(words_of(fitted))}\nSaved to {output}. Next:\n  {command}", found)


def _read(
    file: TableFile, target: str, reading: options.Reading, groups: str | None, says: Output, *, as_feature: bool
) -> tuple[Columns, Any, Array, Any]:
    """Columns, features, target and labels; the column of the groups is left among the features or not."""
    if groups is None:
        if as_feature:
            raise ValueError("--groups-as-feature without --groups: expected the column of the groups")
        return *learn_columns(file, target, *reading.of(says)), None
    if groups == target or groups in reading.drop:
        raise ValueError(f"--groups {groups}: expected another column than the target and those of --drop")
    with_groups = replace(reading, category=[*reading.category, groups])
    columns, frame, y = learn_columns(file, target, *with_groups.of(says))
    labels = labels_of(frame[groups])
    if as_feature:
        return columns, frame, y, labels
    kinds = {name: kind for name, kind in columns.kinds.items() if name != groups}
    if not kinds:
        raise ValueError(f"--groups {groups} leaves no column to learn from; add --groups-as-feature")
    return replace(columns, kinds=kinds), frame.drop(columns=groups), y, labels


def _note_few_rows(says: Output, n: int, size: float | int | str, level: float, kind: Any, side: str) -> None:
    """Say before the work begins that a calibration size leaves too few rows to calibrate on, or to learn from."""
    if isinstance(size, str):
        return
    held = held_back(n, size)
    needed = max(map(points_needed, side_levels(level, "symmetric" if side != BOTH else kind)))
    if held < needed:
        says.note(
            f"--calibration-size {size} holds {held} of {many(n, 'row')} back, but {percent(level)} intervals take "
            f"{needed:.0f}: they will be infinite; hold back {needed:.0f} or more, or ask for a smaller "
            "--confidence-level"
        )
    if n - held < min(FEW, held):
        says.note(
            f"--calibration-size {size} leaves {n - held} of {many(n, 'row')} to learn from, which tell hardly "
            f"anything: expected {FEW} or more, or half of the rows"
        )


def words_of(fitted: Any, *, detail: bool = False) -> str:
    """The summary, and what one end alone promises."""
    asked = Asked.of_model(fitted)
    if asked.side == BOTH:
        return str(fitted.summary(detail=detail))
    beyond, missed = "above" if asked.side == UPPER else "below", percent(1 - fitted.confidence_level)
    one = f"Asked for {asked.side} ends alone, which take all of the miscoverage: at most {missed} of new rows lie"
    return f"{fitted.summary(asked.side, detail=detail)}\n{one} {beyond} theirs."


def _data(fitted: Any, columns: Columns, path: Path, trust: list[str], seconds: float) -> dict[str, Any]:
    """What was learnt, for programs; of groups the quantiles, of cross-calibration none; the weights of a blend."""
    asked, calibration, point = Asked.of_model(fitted), fitted.calibration_, fitted.estimator_
    noise, tuning = fitted.noise_, fitted.tuning_
    quantile: Any = None
    if asked.groups is not None and not calibration.copies:
        labels = np.unique(calibration.groups).tolist()
        quantile = {label: fitted.quantile(side=asked.side, group=label) for label in labels}
    elif not calibration.copies:
        quantile = fitted.quantile(side=asked.side)
    members = None
    if isinstance(point, ModelBlend):
        members = dict(zip(map(model_name, point.members_), point.weights_, strict=True))
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
        "quantile": quantile,
        "base_scale": noise.view.base_scale,
        "noise_features": noise.view.noise_features,
        "lengthscale": noise.lengthscale,
        "width_penalty": noise.settings.width_penalty,
        "learning_coverage": noise.settings.learning_coverage,
        "nested_coverages": None if noise.nested is None else list(noise.nested.coverages),
        "symmetry_penalty": noise.settings.symmetry_penalty,
        "conformal_score": noise.score.name,
        "reasons": [] if tuning is None else list(tuning.reasons),
        "timed_out": tuning is not None and tuning.timed_out,
        "mean_lower": noise.mean_lower,
        "mean_upper": noise.mean_upper,
        "certificate": noise.certificate,
        "point_model": model_name(point),
        "members": members,
        "summary": words_of(fitted, detail=True),
        "trust": trust,
        "seconds": seconds,
    }
