"""Estimators from the words of the command line."""

from __future__ import annotations

from typing import Any

from sosbands import SmoothingSplineRegressor, SoSBandRegressor
from sosbands.cli.columns import Columns
from sosbands.cli.given_models import GivenModel
from sosbands.cli.output import listed
from sosbands.point_models import GaussianProcess
from sosbands.tables import TableEncoder
from sosbands.tables.kinds import BOOLEAN, CATEGORY

MODELS = ("auto", "gp", "forest", "boosting", "linear", "spline")
RESIDUALS = {"gp": "leave-one-out", "spline": "in-sample"}  # as the library's rule, which knows no pipelines


def table_preprocessor(columns: Columns, *, scale: bool = True, mark_gaps: bool = True) -> TableEncoder:
    """What makes numbers of data frames with these columns."""
    return TableEncoder(columns.kinds, scale=scale, mark_gaps=mark_gaps)


def point_model(name: str, *, seed: int | None, jobs: int | None) -> Any:
    """An unfitted regressor of numbers; None is the default of the library."""
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import RidgeCV

    if name == "auto":
        return None
    if name == "gp":
        return GaussianProcess()
    if name == "forest":
        return RandomForestRegressor(min_samples_leaf=5, random_state=seed, n_jobs=jobs)
    if name == "boosting":
        return HistGradientBoostingRegressor(random_state=seed)
    if name == "linear":
        return RidgeCV(alphas=[10.0**k for k in range(-3, 4)])
    if name == "spline":
        return SmoothingSplineRegressor()
    raise ValueError(f"model {name!r}: expected one of {', '.join(MODELS)}")


def read_point_model(source: str, *, refit: bool) -> str | GivenModel:
    """One of our names, or the user's own model."""
    if source in MODELS:
        if refit:
            raise ValueError(
                f"--refit with --model {source}: expected a regressor of your own, as others are always fitted"
            )
        return source
    return GivenModel.read(source, refit=refit)


def check_model(name: str | GivenModel, columns: Columns) -> None:
    """Complain about a model that cannot use these columns."""
    if name == "spline" and (len(columns.kinds) != 1 or columns.of_kind(CATEGORY, BOOLEAN)):
        raise ValueError(
            f"--model spline needs one column of numbers, there are {len(columns.kinds)}: {listed(columns.features)}; "
            "leave others out with --drop"
        )


def band_regressor(
    columns: Columns, model: str | GivenModel, *, seed: int | None, jobs: int | None, **settings: Any
) -> SoSBandRegressor:
    """Bands around a model, both of which take data frames with these columns."""
    from sklearn.pipeline import Pipeline

    check_model(model, columns)
    if isinstance(model, GivenModel):
        settings["residuals"] = model.residuals
        table = table_preprocessor(columns)
        return SoSBandRegressor(model.pipeline(columns), preprocessor=table, random_state=seed, n_jobs=jobs, **settings)
    regressor = point_model(model, seed=seed, jobs=jobs)
    if regressor is not None:
        table = table_preprocessor(columns, mark_gaps=model != "spline")  # which takes one column
        regressor = Pipeline([("table", table), ("model", regressor)])
        settings["residuals"] = RESIDUALS.get(model, "out-of-fold")
    return SoSBandRegressor(
        regressor, preprocessor=table_preprocessor(columns), random_state=seed, n_jobs=jobs, **settings
    )
