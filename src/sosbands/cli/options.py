"""Options that several commands share, how their texts are read, and how commands take groups of them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Any, get_type_hints

import typer

from sosbands.bands import BandSettings
from sosbands.bands.views import BASE_SCALES, read_noise_features
from sosbands.cli.estimators import MODELS, PICKLES, GivenModel, is_given
from sosbands.cli.output import Output
from sosbands.comparison.runner import OTHER_CODE as CHOICES
from sosbands.conformal import target as scales
from sosbands.conformal.asked import SIDES
from sosbands.conformal.scores import ALL_SCORES
from sosbands.regressors.checks import CROSS, OUT_OF_FOLD
from sosbands.tables.rows import AUTO

MOST_DIGITS = 17  # with which a double is itself again
SEVERAL: Any = []  # default of options that may be given several times


def option(default: Any, metavar: str | None, text: str, *names: str, **more: Any) -> Any:
    """An option with its help; its name is that of the parameter, and default `...` makes it required."""
    return typer.Option(default, *names, metavar=metavar, help=text, **more)


def flag(name: str, text: str) -> Any:
    """An option that is there or not."""
    return typer.Option(False, name, help=text)


def spelled(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the fields of its parameters that are dataclasses spelled out, each as an option."""
    given = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {name: each.annotation for name, each in given.items() if is_dataclass(each.annotation)}
    parameters = []
    for name, each in given.items():
        hints = get_type_hints(groups[name], include_extras=True) if name in groups else {}
        parameters += [
            inspect.Parameter(field.name, each.kind, default=field.default, annotation=hints[field.name])
            for field in (fields(groups[name]) if name in groups else ())
        ] or [each]

    @wraps(command)
    def called(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    called.__annotations__ = {each.name: each.annotation for each in parameters}
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return called


# ---------------------------------------------------------------- what a text means


def reader(
    convert: Callable[[str], Any], fine: Callable[[Any], bool], problem: str, *words: str
) -> Callable[[str], Any]:
    """A reader of values of some kind, or of one of some words; `problem` is what a message says of other texts."""

    def read(text: str) -> Any:
        if text in words:
            return text
        try:
            value = convert(text)
        except ValueError:
            value = None
        if value is None or not fine(value):
            raise typer.BadParameter(f"{str(text)!r} {problem}")
        return value

    return read


def number(fine: Callable[[float], bool], expected: str, *words: str) -> Callable[[str], Any]:
    """A reader of numbers."""
    return reader(float, fine, f"is not {expected}", *words)


def whole_number(least: int, most: float = math.inf) -> Callable[[str], Any]:
    """A reader of whole numbers in a range."""
    to = "on" if most == math.inf else f"to {most}"
    return reader(int, lambda value: least <= value <= most, f"is not a whole number from {least} {to}")


def size(problem: str, *words: str) -> Callable[[str], Any]:
    """A reader of fractions with a decimal point, and of numbers of rows or features."""
    fine: Callable[[Any], bool] = lambda value: value >= 1 if isinstance(value, int) else 0 < value < 1  # noqa: E731
    return reader(lambda text: int(text) if text.strip().isdigit() else float(text), fine, problem, *words)


read_level = number(lambda value: 0 < value < 1, "between 0 and 1")
read_size = size(
    f"is neither a fraction between 0 and 1 nor a number of rows, nor {AUTO}, {CROSS} or {OUT_OF_FOLD}",
    *(AUTO, CROSS, OUT_OF_FOLD),
)
read_rank = size("is not auto, exact, a whole number or a fraction between 0 and 1", "auto", "exact")
read_coupling = number(lambda value: value >= 0, "auto, a number >= 0, or inf", "auto")
# in the way of joblib: negative numbers count from all cores
read_jobs = reader(int, bool, "is no number of processes: expected 1, 2, ..., or -1 for all cores")


def read_levels(texts: list[str] | None) -> list[float]:
    """Different levels, of an option that may be repeated and hold several with commas between them."""
    levels = [read_level(part.strip()) for text in texts or [] for part in text.split(",")]
    if len(set(levels)) < len(levels):
        raise typer.BadParameter(f"{', '.join(texts or [])!r} names a level twice")
    return levels


def read_range(text: str) -> Any:
    """Two numbers with a comma between them, either of which may be left out; or the words "auto" and "none"."""
    if text in (AUTO, "none"):
        return text if text == AUTO else None
    try:
        low, high = (float(part) if part.strip() else None for part in text.split(","))
        scales.read_range((low, high))
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not auto, none, nor two numbers such as 0,100 or 0, or ,100") from error
    return low, high


def one_of(names: Sequence[str]) -> Callable[[str | None], str | None]:
    """A check of a word, if one is given."""

    def check(value: str | None) -> str | None:
        if value is not None and value not in names:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(names)}")
        return value

    return check


def read_features(text: str) -> str:
    """Word "auto", or names of noise features."""
    try:
        return text if text == "auto" else read_noise_features(text)
    except ValueError as error:
        expected = str(error).partition("expected ")[2].replace("'", "")
        raise typer.BadParameter(f"{text!r} is not {expected}") from error


def read_model(text: str) -> str:
    """A name, a file or an object of a module."""
    if text in MODELS or is_given(text):
        return text
    raise typer.BadParameter(
        f"{text!r} is not one of {', '.join(MODELS)}, nor a file ({', '.join(PICKLES)}), nor module:object"
    )


# ---------------------------------------------------------------- groups of options


@dataclass(frozen=True)
class PointModel:
    """The model that bands are learnt around."""

    model: str = option(
        "auto",
        "NAME",
        "Point model: gp, forest, boosting, linear, spline (one column), or auto: a blend of Gaussian process, trees, "
        "boosting and ridge regression, weighed by cross-validation. Or a regressor of yours: a file that joblib or "
        "pickle wrote (model.joblib), or module:object, found from the current folder: the object, or a function or "
        "class that makes it. Reading either runs its code. A regressor that is fitted already is used as it is.",
        callback=read_model,
    )
    refit: bool = flag("--refit", "Fit a copy of the regressor given by --model, even if it is fitted already.")

    @property
    def files(self) -> list[Path]:
        """Files of the current folder that are read, of which no output may take the place."""
        if Path(self.model).suffix.lower() in PICKLES:
            return [Path(self.model)]
        module = self.model.rpartition(":")[0]
        return [Path(*module.split(".")).with_suffix(".py")] if module and is_given(self.model) else []

    def read(self) -> str | GivenModel:
        """One of our names, or the user's own model."""
        if self.model not in MODELS:
            return GivenModel.read(self.model, refit=self.refit)
        if self.refit:
            raise ValueError(
                f"--refit with --model {self.model}: expected a regressor of your own, as others are always fitted"
            )
        return self.model


@dataclass(frozen=True)
class BandChoice:
    """What the data choose unless it is given."""

    symmetry_penalty: Any = option(
        "auto", "NUMBER", "0: independent bands; inf: symmetric; auto: the data choose.", parser=read_coupling
    )
    lengthscale: Any = option(
        "auto",
        "NUMBER",
        "Of the kernel, in units of what it sees; median: median distance; auto: the data choose.",
        parser=number(lambda value: value > 0, "auto, median, a number > 0, or inf", "auto", "median"),
    )
    base_scale: str = option(
        "auto",
        "NAME",
        "Unit of the bands: none, the model's own standard deviation, a forest of residual sizes, or both; auto: the "
        "data choose.",
        callback=one_of(("auto", *BASE_SCALES)),
    )
    noise_features: str = option(
        "auto",
        "NAMES",
        "What the bands look at: inputs or lengthscales (inputs over the model's), prediction, scale, joined by +; "
        "auto: the data choose.",
        parser=read_features,
    )
    width_penalty: Any = option(
        "auto",
        "NUMBER",
        "The larger, the closer bands follow the residuals; auto: the data choose.",
        parser=number(lambda value: 0 < value < float("inf"), "auto or a number > 0", "auto"),
    )
    learning_coverage: Any = option(
        "auto",
        "SHARE",
        "Share of the learning rows inside the bands before calibration; auto: the data choose.",
        parser=number(lambda value: 0 < value <= 1, "auto, or a number above 0 and up to 1", "auto"),
    )


@dataclass(frozen=True)
class BandLimits:
    """What the bands need not do."""

    outlier_fraction: Any = option(
        "0",
        "SHARE",
        "Share of the learning rows, those with the largest residuals, that the bands need not follow.",
        parser=number(lambda value: 0 <= value < 1, "a number from 0 on, below 1"),
    )
    rank: Any = option(
        "auto",
        "N",
        "Kernel features that the bands are made of: their number, the fraction of the kernel's trace that they may "
        "leave out, exact, or auto.",
        parser=read_rank,
    )
    max_seconds: Any = option(
        "60",
        "NUMBER",
        "How long the choice may take: the best found by then is taken.",
        parser=number(lambda value: value >= 0, "a number of seconds >= 0, or inf"),
    )

    def settings(self, score: str, choice: BandChoice) -> dict[str, Any]:
        """Arguments of a regressor, together with what may be chosen."""
        bands = BandSettings(outlier_fraction=self.outlier_fraction, rank=self.rank)
        return {"conformal_score": score, **vars(choice), "bands": bands, "max_seconds": self.max_seconds}


@dataclass(frozen=True)
class TargetOptions:
    """What is known of the target."""

    target_range: Any = option(
        AUTO,
        "LOW,HIGH",
        "Least and largest value that the target can have, such as 0, for counts and prices: no end lies beyond.",
        parser=read_range,
    )
    target_transform: str = option(
        AUTO,
        "NAME",
        "Scale on which is learnt: log, sqrt, none, or auto: none, unless targets of at least 0 are skewed and another "
        "scale gives better intervals. Predictions and intervals are in units of the target all the same.",
        callback=one_of((AUTO, "none", *scales.NAMED)),
    )

    def settings(self) -> dict[str, Any]:
        """Arguments of a regressor."""
        transform = None if self.target_transform == "none" else self.target_transform
        return {"target_range": self.target_range, "target_transform": transform}


@dataclass(frozen=True)
class Places:
    """Where coverage is looked at besides the average."""

    by: str | None = option(
        None, "COLUMN", "Column of groups, such as regions, for a table of coverage, width and score by group."
    )
    places: bool = flag(
        "--places", "Look for places where coverage departs from the level: excess risk, worst slab, cells."
    )


OTHER_CODE = option(
    "refuse",
    "CHOICE",
    "Stored runs that another version of the code made: refuse, run again, or keep.",
    callback=one_of(CHOICES),
)


@dataclass(frozen=True)
class KeptRuns:
    """Runs that the same command need not repeat."""

    store: Path | None = option(None, "FILE", "Keep every finished run in this file, for more methods and repetitions.")
    other_code: str = OTHER_CODE


DROP_MISSING_TARGET = flag("--drop-missing-target", "Leave rows out whose target is missing, and say how many.")


@dataclass(frozen=True)
class Reading:
    """What is read of a table to learn from."""

    drop: list[str] = option(SEVERAL, "COLUMN", "Column to leave out. May be given several times.")
    category: list[str] = option(
        SEVERAL, "COLUMN", "Column of categories even if it holds numbers. May be given several times."
    )
    drop_missing_target: bool = DROP_MISSING_TARGET

    def of(self, says: Output) -> tuple[list[str], list[str], Output | None]:
        """The same as arguments of `learn_columns`."""
        return self.drop, self.category, says if self.drop_missing_target else None


# ---------------------------------------------------------------- options that stand alone

MODEL_PATH = typer.Argument(..., metavar="MODEL", help="File that `sosbands fit` has written.")
DATA_PATH = typer.Argument(..., metavar="DATA", help="CSV or Parquet file.")
TARGET = option(..., "COLUMN", "Column to predict.")
NEW_TARGET = option(None, "COLUMN", "Column of the truth; by default the one the model predicts.")
LEVEL = option(0.9, "LEVEL", "Share of new rows that intervals hold.", parser=read_level)
LEVELS = option(
    SEVERAL,
    "LEVEL",
    "Share of new rows that intervals hold; by default that of the model. Several, with commas or by repeating the "
    "option, are told apart by columns such as lower_80 and upper_80.",
    callback=read_levels,
)
NEW_GROUPS = option(None, "COLUMN", "Column of the groups; by default the one named in `fit`.")
NEW_SIDE = option(
    None,
    "END",
    "lower, upper or both: the ends that intervals have; by default as in `fit`.",
    callback=one_of(tuple(SIDES)),
)
CALIBRATION = option(
    "symmetric",
    "KIND",
    "symmetric: one quantile for both ends; asymmetric: one for each.",
    callback=one_of(("symmetric", "asymmetric")),
)
SCORE = option(
    "auto",
    "NAME",
    "added: calibration adds one number to the bands; scaled: it multiplies them by one; auto: the data choose.",
    callback=one_of(("auto", *ALL_SCORES)),
)
SEED = option(0, "N", "Of everything random.", parser=whole_number(0, 2**32 - 1))
JOBS = option(None, "N", "Processes; -1 takes all cores.", parser=read_jobs)
JSON = flag("--json", "Print one JSON object and nothing else.")
TRUST = option(SEVERAL, "TYPE", "Full name of a further type that the model file may hold. May be given several times.")
