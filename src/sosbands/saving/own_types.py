"""Which objects of this package a model file may hold, and the names that it knows them by.

Files hold names of classes and not of modules, so that a class may move without becoming unreadable.
"""

from __future__ import annotations

from importlib import import_module

from sosbands.regressors.base import SplitRegressor

PACKAGE = "sosbands."
HOMES = {  # besides the interval regressors that `regressors` and `baselines` offer
    "Calibration": "conformal.calibration",
    "GaussianProcess": "point_models.gaussian_process",
    "KernelFeatures": "kernels.features",
    "ModelBlend": "point_models.blend",
    "NestedFunctions": "bands.nested",
    "NoiseView": "tuning.views",
    "NoisyProcess": "baselines.noisy_process",
    "PrecomputedKernel": "kernels.resolve",
    "Rules": "tuning.rules",
    "SmoothingSplineRegressor": "point_models.smoothing_spline",
    "SoSFunction": "bands.sos",
    "StationaryKernel": "kernels.stationary",
    "TableColumns": "point_models.table_columns",
    "TableEncoder": "tables.encoder",
    "TestResult": "stats.independence",
    "TuningReport": "tuning.report",
    "TypicalRows": "explanation.typical",
}
REGRESSORS = ("regressors", "baselines")


def name_of(cls: type) -> str | None:
    """The name of a class in files; the full one, with dots, of an interval regressor of a user; None for others."""
    name = cls.__name__
    if cls.__module__ == PACKAGE + HOMES.get(name, "-"):
        return name
    if not issubclass(cls, SplitRegressor):
        return None
    return name if _offered(name) is cls else f"{cls.__module__}.{cls.__qualname__}"


def type_named(name: str) -> type | None:
    """The class of this package with that name in files, if there is one."""
    if name in HOMES:
        found: type = getattr(import_module(PACKAGE + HOMES[name]), name)
        return found
    return _offered(name)


def users_type(full: str) -> type | None:
    """The interval regressor of a user with this full name; imports its module, so call it for trusted names only."""
    module, _, name = full.rpartition(".")
    try:
        found = getattr(import_module(module), name, None)
    except ImportError:
        return None
    return found if isinstance(found, type) and issubclass(found, SplitRegressor) else None


def _offered(name: str) -> type | None:
    """The interval regressor that the package offers under this name."""
    for room in REGRESSORS:
        module = import_module(PACKAGE + room)
        found = getattr(module, name) if name in module.__all__ else None
        if isinstance(found, type) and issubclass(found, SplitRegressor) and found is not SplitRegressor:
            return found
    return None
