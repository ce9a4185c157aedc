"""Options that several commands share, and how their texts are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from sosbands.cli.estimators import MODELS
from sosbands.conformal import SCORES
from sosbands.regressors.cross import is_cross
from sosbands.tuning.views import BASE_SCALES, read_noise_features

CALIBRATIONS = ("symmetric", "asymmetric")


def read_level(text: str) -> float:
    """A number strictly between 0 and 1."""
    return _number(text, lambda value: 0 < value < 1, "between 0 and 1")


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """A reader of whole numbers in a range."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least or (most is not None and value > most):
            raise typer.BadParameter(
                f"{str(text)!r} is not a whole number from {least} {f'to {most}' if most else 'on'}"
            )
        return value

    return read


def read_jobs(text: str) -> int:
    """A number of processes in the way of joblib: negative numbers count from all cores."""
    try:
        jobs = int(text)
    except ValueError:
        jobs = 0
    if jobs == 0:
        raise typer.BadParameter(f"{str(text)!r} is no number of processes: expected 1, 2, ..., or -1 for all cores")
    return jobs


def one_of(names: Sequence[str]) -> Callable[[str | None], str | None]:
    """A check of a word, if one is given."""

    def check(value: str | None) -> str | None:
        if value is not None and value not in names:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(names)}")
        return value

    return check


def read_size(text: str) -> float | int | str:
    """A fraction with a decimal point, a number of rows, or the word "cross"."""
    if is_cross(text):
        return text
    try:
        size: float | int = int(text) if text.strip().isdigit() else float(text)
    except ValueError:
        size = -1
    if not (0 < size < 1 or (isinstance(size, int) and size >= 1)):
        raise typer.BadParameter(f"{text!r} is neither a fraction between 0 and 1 nor a number of rows, nor cross")
    return size


def read_penalty(text: str) -> float | str:
    """Word "auto", or a number >= 0, infinity included."""
    if text == "auto":
        return text
    return _number(text, lambda value: value >= 0, "auto, a number >= 0, or inf")


def read_width_penalty(text: str) -> float | str:
    """Word "auto", or a number > 0."""
    if text == "auto":
        return text
    return _number(text, lambda value: 0 < value < float("inf"), "auto or a number > 0")


def read_coverage(text: str) -> float | str:
    """Word "auto", or a number in (0, 1]."""
    if text == "auto":
        return text
    return _number(text, lambda value: 0 < value <= 1, "auto, or a number above 0 and up to 1")


def read_seconds(text: str) -> float:
    """A number >= 0, infinity included."""
    return _number(text, lambda value: value >= 0, "a number of seconds >= 0, or inf")


def read_features(text: str) -> str:
    """Word "auto", or names of noise features."""
    try:
        return text if text == "auto" else read_noise_features(text)
    except ValueError as error:
        expected = str(error).partition("expected ")[2].replace("'", "")
        raise typer.BadParameter(f"{text!r} is not {expected}") from error


def read_lengthscale(text: str) -> float | str:
    """Words "auto" and "median", or a number > 0, infinity included."""
    if text in ("auto", "median"):
        return text
    return _number(text, lambda value: value > 0, "auto, median, a number > 0, or inf")


def _number(text: str, fine: Any, expected: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not fine(value):
        raise typer.BadParameter(f"{str(text)!r} is not {expected}")
    return value


Target = Annotated[str, typer.Option("--target", metavar="COLUMN", help="Column to predict.")]
Drop = Annotated[
    list[str], typer.Option("--drop", metavar="COLUMN", help="Column to leave out. May be given several times.")
]
Category = Annotated[
    list[str],
    typer.Option(
        "--category",
        metavar="COLUMN",
        help="Column of categories even if it holds numbers. May be given several times.",
    ),
]
DropMissingTarget = Annotated[
    bool, typer.Option("--drop-missing-target", help="Leave rows out whose target is missing, and say how many.")
]
Level = Annotated[
    float | None,
    typer.Option(
        "--confidence-level",
        metavar="LEVEL",
        parser=read_level,
        help="Share of new rows that intervals hold; by default that of the model.",
    ),
]
NewLevel = Annotated[
    float,
    typer.Option(
        "--confidence-level", metavar="LEVEL", parser=read_level, help="Share of new rows that intervals hold."
    ),
]
Model = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME",
        callback=one_of(MODELS),
        help="Point model: gp, forest, boosting, linear, spline (one column), or auto: a blend of Gaussian process, "
        "trees, boosting and ridge regression, weighed by cross-validation.",
    ),
]
Calibration = Annotated[
    str,
    typer.Option(
        "--calibration",
        metavar="KIND",
        callback=one_of(CALIBRATIONS),
        help="symmetric: one quantile for both ends; asymmetric: one for each.",
    ),
]
Score = Annotated[
    str,
    typer.Option(
        "--score",
        metavar="NAME",
        callback=one_of(("auto", *SCORES)),
        help="added: calibration adds one number to the bands; scaled: it multiplies them by one; auto: the data "
        "choose.",
    ),
]
CalibrationSize = Annotated[
    Any,
    typer.Option(
        "--calibration-size",
        metavar="SIZE",
        parser=read_size,
        help="Fraction or number of the rows that are held back for calibration; cross: all rows are learnt from and "
        "calibrated on, which takes six times as long and is proven for less.",
    ),
]
SymmetryPenalty = Annotated[
    Any,
    typer.Option(
        "--symmetry-penalty",
        metavar="NUMBER",
        parser=read_penalty,
        help="0: independent bands; inf: symmetric; auto: the data choose.",
    ),
]
Lengthscale = Annotated[
    Any,
    typer.Option(
        "--lengthscale",
        metavar="NUMBER",
        parser=read_lengthscale,
        help="Of the kernel, in units of what it sees; median: median distance; auto: the data choose.",
    ),
]
BaseScale = Annotated[
    str,
    typer.Option(
        "--base-scale",
        metavar="NAME",
        callback=one_of(("auto", *BASE_SCALES)),
        help="Unit of the bands: none, the model's own standard deviation, a forest of residual sizes, or both; auto: "
        "the data choose.",
    ),
]
NoiseFeatures = Annotated[
    str,
    typer.Option(
        "--noise-features",
        metavar="NAMES",
        parser=read_features,
        help="What the bands look at: inputs or lengthscales (inputs over the model's), prediction, scale, joined by "
        "+; auto: the data choose.",
    ),
]
WidthPenalty = Annotated[
    Any,
    typer.Option(
        "--width-penalty",
        metavar="NUMBER",
        parser=read_width_penalty,
        help="The larger, the closer bands follow the residuals; auto: the data choose.",
    ),
]
LearningCoverage = Annotated[
    Any,
    typer.Option(
        "--learning-coverage",
        metavar="SHARE",
        parser=read_coverage,
        help="Share of the learning rows inside the bands before calibration; auto: the data choose.",
    ),
]
MaxSeconds = Annotated[
    Any,
    typer.Option(
        "--max-seconds",
        metavar="NUMBER",
        parser=read_seconds,
        help="How long the choice may take: the best found by then is taken.",
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", parser=whole_number(0, 2**32 - 1), help="Of everything random.")
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", metavar="N", parser=read_jobs, help="Processes; -1 takes all cores.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Trust = Annotated[
    list[str],
    typer.Option(
        "--trust",
        metavar="TYPE",
        help="Full name of a further type that the model file may hold. May be given several times.",
    ),
]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="File that `sosbands fit` has written.")]
DataPath = Annotated[Path, typer.Argument(metavar="DATA", help="CSV or Parquet file.")]
