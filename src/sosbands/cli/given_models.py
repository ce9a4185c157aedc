"""Point models of the user's own: regressors in files, and those that modules of the current folder hold."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from sosbands._words import many
from sosbands.cli.columns import Columns
from sosbands.cli.output import Output, listed
from sosbands.tables.kinds import BOOLEAN, CATEGORY, DATE

PICKLES = (".joblib", ".pkl", ".pickle")
TRIED_ROWS = 5  # by which a model shows that it predicts


def is_given(text: str) -> bool:
    """Whether a text names a model of the user's, not one of ours."""
    module, colon, name = text.rpartition(":")
    parts = [*module.split("."), *name.split(".")]
    return Path(text).suffix.lower() in PICKLES or bool(colon and all(part.isidentifier() for part in parts))


def model_files(text: str) -> list[Path]:
    """Files of the current folder that --model reads, of which no output may take the place."""
    if Path(text).suffix.lower() in PICKLES:
        return [Path(text)]
    module = text.rpartition(":")[0]
    return [Path(*module.split(".")).with_suffix(".py")] if module and is_given(text) else []


def importable_here() -> None:
    """Let modules be found in the current folder, too, after all other places."""
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)


@dataclass(frozen=True)
class GivenModel:
    """A regressor of the user's.

    Attributes
    ----------
    source : str
        What --model said.
    regressor : regressor
    is_fitted : bool
        It is used as it is; otherwise copies of it are fitted.
    """

    source: str
    regressor: Any
    is_fitted: bool

    @classmethod
    def read(cls, source: str, *, refit: bool = False) -> GivenModel:
        """Read the file, or import the module: code in them runs."""
        found = _read_file(source) if Path(source).suffix.lower() in PICKLES else _imported(source)
        _check_regressor(source, found)
        fitted = _is_fitted(found) and not refit
        if not fitted and not (hasattr(found, "fit") and hasattr(found, "get_params")):
            raise ValueError(
                f"--model {source}: a {type(found).__name__} cannot be copied and fitted, expected a regressor"
            )
        return cls(source, found, fitted)

    def names(self, columns: Columns) -> list[str]:
        """The columns that a fitted model wants, in its order; all columns for any other."""
        model, features = self.regressor, columns.features
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
        kinds = {kind: [name for name in columns.of_kind(kind) if name in names] for kind in (CATEGORY, BOOLEAN, DATE)}
        nameless = self.is_fitted and not hasattr(self.regressor, "feature_names_in_")
        table = TableColumns(
            names,
            kinds[CATEGORY],
            kinds[BOOLEAN],
            kinds[DATE],
            as_array=nameless and hasattr(self.regressor, "n_features_in_"),
        )
        model = FrozenEstimator(self.regressor) if self.is_fitted else clone(self.regressor)
        return Pipeline([("table", table), ("model", model)])

    @property
    def residuals(self) -> str:
        """Which residuals say how far the model is off: a model that is used as it is has not seen the rows."""
        return "in-sample" if self.is_fitted else "out-of-fold"

    def check_savable(self) -> None:
        """Complain about a model that no file can hold."""
        from sosbands.saving.files import check_savable

        try:
            check_savable(self.regressor)
        except ValueError as error:
            raise ValueError(f"--model {self.source}: {error}") from error

    def introduce(self, says: Output, columns: Columns, frame: Any, data: Path) -> None:
        """Say of a fitted model how it is used, after it has predicted a few rows: if it fails, then at once."""
        if not self.is_fitted:
            return
        some = frame.head(TRIED_ROWS)
        try:
            found = np.asarray(self.pipeline(columns).predict(some), dtype=float)
        except Exception as error:
            raise ValueError(
                f"--model {self.source} fails to predict rows of {data} ({type(error).__name__}: {error})"
            ) from error
        if found.shape not in ((len(some),), (len(some), 1)) or not np.isfinite(found).all():
            raise ValueError(
                f"--model {self.source} gives {np.array2string(found, precision=4)} for {many(len(some), 'row')}: "
                "expected a finite number for each"
            )
        says.note(
            f"{self.source} is fitted already and used as it is: none of these rows should be among those that it was "
            "fitted to, else intervals are too narrow; --refit fits a copy to the learning rows"
        )


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


def _check_regressor(source: str, found: Any) -> None:
    from sklearn.base import is_classifier

    if not hasattr(found, "predict"):
        raise ValueError(f"--model {source} is a {type(found).__name__} without predict: expected a regressor")
    if hasattr(found, "predict_interval"):
        raise ValueError(
            f"--model {source} is a {type(found).__name__}, which has intervals of its own: expected a regressor"
        )
    if is_classifier(found):
        raise ValueError(f"--model {source} is the classifier {type(found).__name__}: expected a regressor")


def _is_fitted(model: Any) -> bool:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if not hasattr(model, "fit"):
        return True
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True
