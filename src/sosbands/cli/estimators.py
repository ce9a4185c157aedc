"""Estimators from the words of the command line: our point models by name, and regressors of the user's own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from sosbands import SmoothingSplineRegressor, SoSBandRegressor
from sosbands._words import listed, many
from sosbands.cli.columns import Columns
from sosbands.cli.output import Output
from sosbands.point_models import GaussianProcess
from sosbands.saving.files import dumped
from sosbands.tables import TableEncoder
from sosbands.tables.columns import BOOLEAN, CATEGORY, DATE

MODELS = ("auto", "gp", "forest", "boosting", "linear", "spline")
PICKLES = (".joblib", ".pkl", ".pickle")
TRIED_ROWS = 5  # by which a model shows that it predicts
OWN_RESIDUALS = {True: "in-sample", False: "out-of-fold"}  # a model that is used as it is has not seen the rows
RESIDUALS = {"gp": "leave-one-out", "spline": "in-sample"}  # as the library's rule, which knows no pipelines


def point_model(name: str, *, seed: int | None, jobs: int | None) -> Any:
    """An unfitted regressor of numbers; None is the default of the library."""
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import RidgeCV

    made: dict[str, Callable[[], Any]] = {
        "auto": lambda: None,
        "gp": GaussianProcess,
        "forest": lambda: RandomForestRegressor(min_samples_leaf=5, random_state=seed, n_jobs=jobs),
        "boosting": lambda: HistGradientBoostingRegressor(random_state=seed),
        "linear": lambda: RidgeCV(alphas=[10.0**k for k in range(-3, 4)]),
        "spline": SmoothingSplineRegressor,
    }
    return made[name]()


def check_model(name: str | GivenModel, columns: Columns) -> None:
    """Complain about a model that cannot use these columns."""
    if name == "spline" and (len(columns.kinds) != 1 or columns.of_kind(CATEGORY, BOOLEAN)):
        raise ValueError(
            f"--model spline needs one column of numbers, there are {len(columns.kinds)}: {listed(columns.kinds)}; "
            "leave others out with --drop"
        )


def band_regressor(
    columns: Columns, model: str | GivenModel, *, seed: int | None, jobs: int | None, **settings: Any
) -> SoSBandRegressor:
    """Bands around a model, both of which take data frames with these columns."""
    from sklearn.pipeline import Pipeline

    check_model(model, columns)
    if isinstance(model, GivenModel):
        settings["residuals"] = OWN_RESIDUALS[model.is_fitted]
        regressor = model.pipeline(columns)
    else:
        regressor = point_model(model, seed=seed, jobs=jobs)
        if regressor is not None:
            table = TableEncoder(columns.kinds, mark_gaps=model != "spline")  # which takes one column
            regressor = Pipeline([("table", table), ("model", regressor)])
            settings["residuals"] = RESIDUALS.get(model, "out-of-fold")
    table = TableEncoder(columns.kinds)
    return SoSBandRegressor(regressor, preprocessor=table, random_state=seed, n_jobs=jobs, **settings)


def is_given(text: str) -> bool:
    """Whether a text names a model of the user's, not one of ours."""
    module, colon, name = text.rpartition(":")
    parts = [*module.split("."), *name.split(".")]
    return Path(text).suffix.lower() in PICKLES or bool(colon and all(part.isidentifier() for part in parts))


def importable_here() -> None:
    """Let modules be found in the current folder, too, after all other places."""
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)


@dataclass(frozen=True)
class GivenModel:
    """A regressor of the user's."""

    source: str  # what --model said
    regressor: Any
    is_fitted: bool  # it is used as it is; otherwise copies of it are fitted

    @classmethod
    def read(cls, source: str, *, refit: bool = False) -> GivenModel:
        """Read the file, or import the module: code in them runs."""
        from sklearn.base import is_classifier
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted

        found = _read_file(source) if Path(source).suffix.lower() in PICKLES else _imported(source)
        kind = type(found).__name__
        if not hasattr(found, "predict"):
            raise ValueError(f"--model {source} is a {kind} without predict: expected a regressor")
        if hasattr(found, "predict_interval"):
            raise ValueError(f"--model {source} is a {kind}, which has intervals of its own: expected a regressor")
        if is_classifier(found):
            raise ValueError(f"--model {source} is the classifier {kind}: expected a regressor")
        fitted = not refit
        if fitted and hasattr(found, "fit"):
            try:
                check_is_fitted(found)
            except NotFittedError:
                fitted = False
        if not fitted and not (hasattr(found, "fit") and hasattr(found, "get_params")):
            raise ValueError(f"--model {source}: a {kind} cannot be copied and fitted, expected a regressor")
        return cls(source, found, fitted)

    def names(self, columns: Columns) -> list[str]:
        """The columns that a fitted model wants, in its order; all columns for any other."""
        model, features = self.regressor, list(columns.kinds)
        wanted = getattr(model, "feature_names_in_", None) if self.is_fitted else None
        if wanted is not None:
            missing = [str(name) for name in wanted if name not in features]
            if missing:
                raise ValueError(
                    f"--model {self.source} was fitted to columns that are not there: {listed(missing)} (there are "
                    f"{listed(features)})"
                )
            return [str(name) for name in wanted]
        count = getattr(model, "n_features_in_", None) if self.is_fitted else None
        if count is not None and count != len(features):
            raise ValueError(
                f"--model {self.source} was fitted to {many(int(count), 'column')} without names, there are "
                f"{len(features)}: {listed(features)}; leave others out with --drop"
            )
        return features

    def pipeline(self, columns: Columns) -> Any:
        """A regressor of data frames with these columns, each of which the model gets in the type that pandas has."""
        from sklearn.base import clone
        from sklearn.frozen import FrozenEstimator
        from sklearn.pipeline import Pipeline

        from sosbands.point_models import TableColumns

        names = self.names(columns)
        texts, booleans, dates = (
            [name for name in columns.of_kind(kind) if name in names] for kind in (CATEGORY, BOOLEAN, DATE)
        )
        nameless = self.is_fitted and not hasattr(self.regressor, "feature_names_in_")
        as_array = nameless and hasattr(self.regressor, "n_features_in_")
        table = TableColumns(names, texts, booleans, dates, as_array=as_array)
        model = FrozenEstimator(self.regressor) if self.is_fitted else clone(self.regressor)
        return Pipeline([("table", table), ("model", model)])


def _read_file(source: str) -> Any:
    import joblib

    if not Path(source).is_file():
        raise ValueError(f"--model {source}: no such file")
    importable_here()  # its classes may be defined there
    try:
        return joblib.load(source)
    except Exception as error:
        raise ValueError(f"--model {source} cannot be read ({type(error).__name__}: {error})") from error


def _imported(source: str) -> Any:
    module, _, path = source.rpartition(":")
    importable_here()
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(f"{error.name}.")):
            raise ValueError(f"--model {source}: importing {module} failed ({error})") from error
        raise ValueError(f"--model {source}: there is no module {module} in {os.getcwd()} or installed") from error
    except Exception as error:
        raise ValueError(f"--model {source}: importing {module} failed ({type(error).__name__}: {error})") from error
    for name in path.split("."):
        if not hasattr(found, name):
            where = getattr(found, "__file__", None) or module
            raise ValueError(f"--model {source}: {where} has no attribute {name!r}")
        found = getattr(found, name)
    if isinstance(found, type) or (callable(found) and not hasattr(found, "predict")):
        try:
            return found()
        except Exception as error:
            raise ValueError(f"--model {source}: calling it failed ({type(error).__name__}: {error})") from error
    return found


def introduce(
    model: str | GivenModel, says: Output, columns: Columns, frame: Any, data: Path, *, to_save: bool = False
) -> None:
    """Complain of a model of the user's that no file can hold, or that fails on a few rows; say how it is used."""
    if not isinstance(model, GivenModel):
        return
    source, some = f"--model {model.source}", frame.head(TRIED_ROWS)
    if to_save:
        try:
            dumped(model.regressor)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from error
    if not model.is_fitted:
        return
    try:
        found = np.asarray(model.pipeline(columns).predict(some), dtype=float)
    except Exception as error:
        raise ValueError(f"{source} fails to predict rows of {data} ({type(error).__name__}: {error})") from error
    if found.shape not in ((len(some),), (len(some), 1)) or not np.isfinite(found).all():
        given, rows = np.array2string(found, precision=4), many(len(some), "row")
        raise ValueError(f"{source} gives {given} for {rows}: expected a finite number for each")
    says.note(
        f"{model.source} is fitted already and used as it is: none of these rows should be among those that it was "
        "fitted to, else intervals are too narrow; --refit fits a copy to the learning rows"
    )
