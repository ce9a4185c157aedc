"""The checks of `SoSBandRegressor`'s constructor parameters that no other part makes, done at the start of fit."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from sosbands.solvers import check_solver


def check_parameters(model: Any) -> None:
    """Raise a ValueError that names the parameter, its value and what was expected."""
    _check("confidence_level", model.confidence_level, _is_number(model.confidence_level, 0, 1), "a number in (0, 1)")
    _choice("calibration", model.calibration, ("symmetric", "asymmetric"))
    _choice("symmetry_kind", model.symmetry_kind, ("training", "operator"))
    _choice("residuals", model.residuals, ("auto", "in-sample", "out-of-fold"))
    _choice("criterion", model.criterion, ("hsic", "dcor"))
    _choice("symmetry_test", model.symmetry_test, ("auto", "kruskal-wallis", "sign-flip", "bootstrap", None))
    _check("test_level", model.test_level, _is_number(model.test_level, 0, 1), "a number in (0, 1)")
    _check("normalize", model.normalize, isinstance(model.normalize, (bool, np.bool_)), "True or False")
    _check("tol", model.tol, _is_number(model.tol, 0, 1), "a number in (0, 1)")
    fraction = model.outlier_fraction
    _check("outlier_fraction", fraction, fraction == 0 or _is_number(fraction, 0, 1), "a number in [0, 1)")
    _check("cv", model.cv, _is_count(model.cv) and model.cv >= 2, "an int >= 2")
    size = model.calibration_size
    is_size = size is None or (_is_count(size) and size >= 1) or (not _is_count(size) and _is_number(size, 0, 1))
    _check("calibration_size", size, is_size, "a fraction in (0, 1), a number of rows >= 1, or None")
    for name in ("symmetry_penalty", "lengthscale"):
        value = getattr(model, name)
        allowed = ("auto",) if name == "symmetry_penalty" else ("auto", "median")
        _check(
            name, value, not isinstance(value, str) or value in allowed, f"{' or '.join(map(repr, allowed))} or numbers"
        )
    _check_preprocessor(model.preprocessor)
    _check_estimator(model.estimator)
    _check(
        "kernel", model.kernel, not isinstance(model.kernel, str) or model.kernel != "precomputed", "a kernel of rows"
    )
    check_solver(model.solver)


def _check_preprocessor(value: Any) -> None:
    known = value is None or (isinstance(value, str) and value == "standardize")
    usable = not isinstance(value, (str, type)) and hasattr(value, "fit") and hasattr(value, "transform")
    _check("preprocessor", value, known or usable, "'standardize', None or a transformer with fit and transform")


def _check_estimator(value: Any) -> None:
    usable = hasattr(value, "fit") and hasattr(value, "predict")
    fine = value is None or (not isinstance(value, (str, type)) and (usable or callable(value)))
    _check("estimator", value, fine, "None, a regressor with fit and predict, or a function of X")


def _is_number(value: Any, low: float, high: float) -> bool:
    return not isinstance(value, (bool, np.bool_)) and isinstance(value, Real) and low < float(value) < high


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def _choice(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    _check(name, value, isinstance(value, (str, type(None))) and value in allowed, f"one of {list(allowed)}")


def _check(name: str, value: Any, fine: bool, expected: str) -> None:
    if not fine:
        raise ValueError(f"{name}={value!r}: expected {expected}")
