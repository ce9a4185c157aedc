"""Estimators from the words of the command line."""

from __future__ import annotations

from typing import Any

from sosbands import SmoothingSplineRegressor, SoSBandRegressor
from sosbands.cli.cells import BOOLEAN, CATEGORY, DATE, NUMBER
from sosbands.cli.columns import RECORD, Columns
from sosbands.cli.given_models import GivenModel
from sosbands.cli.output import listed
from sosbands.point_models import GaussianProcess

MODELS = ("auto", "gp", "forest", "boosting", "linear", "spline")
RESIDUALS = {"gp": "leave-one-out", "spline": "in-sample"}  # as the library's rule, which knows no pipelines
TEXTS = "texts"  # step of the preprocessor


def table_preprocessor(columns: Columns, *, scale: bool = True) -> Any:
    """Numbers and dates: gaps filled with the median, standardised. Categories and booleans: one column per text."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    fill: Any = SimpleImputer(strategy="median", keep_empty_features=True)
    steps = Pipeline([("fill", fill), ("scale", StandardScaler())]) if scale else fill
    texts = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    parts = [("numbers", steps, columns.of_kind(NUMBER, DATE)), (TEXTS, texts, columns.of_kind(CATEGORY, BOOLEAN))]
    return ColumnTransformer([part for part in parts if part[2]], verbose_feature_names_out=False)


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
    table = table_preprocessor(columns)
    if isinstance(model, GivenModel):
        settings["residuals"] = model.residuals
        return SoSBandRegressor(model.pipeline(columns), preprocessor=table, random_state=seed, n_jobs=jobs, **settings)
    regressor = point_model(model, seed=seed, jobs=jobs)
    if regressor is not None:
        regressor = Pipeline([("table", table_preprocessor(columns)), ("model", regressor)])
        settings["residuals"] = RESIDUALS.get(model, "out-of-fold")
    return SoSBandRegressor(regressor, preprocessor=table, random_state=seed, n_jobs=jobs, **settings)


def record_columns(model: Any, columns: Columns) -> Columns:
    """Keep the columns in a fitted model, with the texts of its learning rows."""
    names = columns.of_kind(CATEGORY, BOOLEAN)
    known = model.preprocessor_.named_transformers_[TEXTS].categories_ if names else []
    levels = {name: [str(text) for text in texts] for name, texts in zip(names, known, strict=True)}
    complete = Columns(columns.kinds, columns.target, levels)
    setattr(model, RECORD, complete.record())
    return complete
