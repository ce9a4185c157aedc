"""Options that several commands share, and how their texts are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from sosbands.cli.estimators import MODELS
from sosbands.cli.given_models import PICKLES, is_given
from sosbands.cli.intervals import SIDES
from sosbands.comparison.runner import OTHER_CODE
from sosbands.conformal import SCORES
from sosbands.regressors.cross import is_cross
from sosbands.tuning.views import BASE_SCALES, read_noise_features

CALIBRATIONS = ("symmetric", "asymmetric")
MOST_DIGITS = 17  # with which a double is itself again


def read_level(text: str) -> float:
    """A number strictly between 0 and 1."""
    return _number(text, lambda value: 0 < value < 1, "between 0 and 1")


def read_levels(texts: list[str] | None) -> list[float]:
    """Different levels, of an option that may be repeated and hold several with commas between them."""
    levels = [read_level(part.strip()) for text in texts or [] for part in text.split(",")]
    if len(set(levels)) < len(levels):
        raise typer.BadParameter(f"{', '.join(texts or [])!r} names a level twice")
    return levels


def read_rank(text: str) -> float | int | str:
    """Words "auto" and "exact", a number of features, or the part of the kernel's trace that these may leave out."""
    if text in ("auto", "exact"):
        return text
    try:
        return read_size(text)
    except typer.BadParameter as error:
        raise typer.BadParameter(
            f"{text!r} is not auto, exact, a whole number or a fraction between 0 and 1"
        ) from error


def read_fraction(text: str) -> float:
    """A number from 0 on, below 1."""
    return _number(text, lambda value: 0 <= value < 1, "a number from 0 on, below 1")


def read_model(text: str) -> str:
    """A name, a file or an object of a module."""
    if text in MODELS or is_given(text):
        return text
    raise typer.BadParameter(
        f"{text!r} is not one of {', '.join(MODELS)}, nor a file ({', '.join(PICKLES)}), nor module:object"
    )


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
Levels = Annotated[
    list[str],
    typer.Option(
        "--confidence-level",
        metavar="LEVEL",
        callback=read_levels,
        help="Share of new rows that intervals hold; by default that of the model. Several, with commas or by "
        "repeating the option, are told apart by columns such as lower_80 and upper_80.",
    ),
]
NestedCoverages = Annotated[
    list[str],
    typer.Option(
        "--nested-coverages",
        metavar="SHARE",
        callback=read_levels,
        help="Learn a band for each of these shares, such as 0.5,0.8,0.9,0.95, each inside the next: for models that "
        "are asked for several levels or for quantiles.",
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
        callback=read_model,
        help="Point model: gp, forest, boosting, linear, spline (one column), or auto: a blend of Gaussian process, "
        "trees, boosting and ridge regression, weighed by cross-validation. Or a regressor of yours: a file that "
        "joblib or pickle wrote (model.joblib), or module:object, found from the current folder: the object, or a "
        "function or class that makes it. Reading either runs its code. A regressor that is fitted already is used as "
        "it is.",
    ),
]
Refit = Annotated[
    bool, typer.Option("--refit", help="Fit a copy of the regressor given by --model, even if it is fitted already.")
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="COLUMN",
        help="Column of groups, each of which is calibrated apart, for coverage in each. Not learnt from, unless with "
        "--groups-as-feature.",
    ),
]
NewGroups = Annotated[
    str | None,
    typer.Option("--groups", metavar="COLUMN", help="Column of the groups; by default the one named in `fit`."),
]
GroupsAsFeature = Annotated[
    bool, typer.Option("--groups-as-feature", help="Learn from the column of groups, too, as from a category.")
]
Side = Annotated[
    str,
    typer.Option(
        "--side",
        metavar="END",
        callback=one_of(SIDES),
        help="lower or upper: intervals with this end only, which the level is the coverage of; or both.",
    ),
]
NewSide = Annotated[
    str | None,
    typer.Option(
        "--side",
        metavar="END",
        callback=one_of(SIDES),
        help="lower, upper or both: the ends that intervals have; by default as in `fit`.",
    ),
]
OutlierFraction = Annotated[
    Any,
    typer.Option(
        "--outlier-fraction",
        metavar="SHARE",
        parser=read_fraction,
        help="Share of the learning rows, those with the largest residuals, that the bands need not follow.",
    ),
]
Rank = Annotated[
    Any,
    typer.Option(
        "--rank",
        metavar="N",
        parser=read_rank,
        help="Kernel features that the bands are made of: their number, the fraction of the kernel's trace that they "
        "may leave out, exact, or auto.",
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
OtherCode = Annotated[
    str,
    typer.Option(
        "--other-code",
        metavar="CHOICE",
        callback=one_of(OTHER_CODE),
        help="Stored runs that another version of the code made: refuse, run again, or keep.",
    ),
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
