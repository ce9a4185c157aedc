"""The checks of constructor parameters of interval regressors, done at the start of fit, before anything slow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sosbands._arguments import check, check_choice, check_cv, is_count, is_fraction, is_number
from sosbands.bands import BandSettings
from sosbands.bands.nested import read_coverages
from sosbands.bands.settings import OPEN, is_auto
from sosbands.bands.views import BASE_SCALES, INPUTS, LENGTHSCALES, read_noise_features
from sosbands.conformal.asked import read_kind, read_level
from sosbands.conformal.scores import ALL_SCORES
from sosbands.conformal.target import NAMED, is_transformer, read_range
from sosbands.kernels import resolve_kernel
from sosbands.tables.rows import AUTO
from sosbands.tuning.rules import Rules

CROSS, OUT_OF_FOLD = "cross", "out-of-fold"  # words in place of a calibration size: every row is used twice
RESIDUALS = ("auto", "in-sample", "leave-one-out", "out-of-fold")

Check = Callable[[Any], object]


def is_cross(calibration_size: Any) -> bool:
    """Whether every row is to be learnt from and calibrated on, by copies that stay."""
    return isinstance(calibration_size, str) and calibration_size == CROSS


def is_out_of_fold(calibration_size: Any) -> bool:
    """Whether every row is to be learnt from and calibrated on, by what folds have said of it."""
    return isinstance(calibration_size, str) and calibration_size == OUT_OF_FOLD


def one_of(name: str, choices: tuple[Any, ...]) -> Check:
    """A check for one of these values."""
    return lambda value: check_choice(name, value, choices)


def count(name: str, least: int = 1) -> Check:
    """A check for a whole number."""
    return lambda value: check(name, value, is_count(value) and value >= least, f"an int >= {least}")


def rule(name: str, is_fine: Callable[[Any], bool], expected: str) -> Check:
    """A check by a condition."""
    return lambda value: check(name, value, bool(is_fine(value)), expected)


def is_model(value: Any) -> bool:
    """Whether a value is a regressor, fitted or not."""
    return not isinstance(value, (str, type)) and hasattr(value, "fit") and hasattr(value, "predict")


def _is_estimator(value: Any) -> bool:
    is_function = callable(value) and not hasattr(value, "fit") and not isinstance(value, (str, type))
    pair = isinstance(value, tuple) and len(value) in (2, 3) and all(map(is_model, value))
    return value is None or is_function or is_model(value) or pair


def _is_preprocessor(value: Any) -> bool:
    if value is None or isinstance(value, str):
        return value in (None, "auto", "standardize")
    return not isinstance(value, type) and hasattr(value, "fit") and hasattr(value, "transform")


def _is_seed(value: Any) -> bool:
    try:
        check_random_state(value)
    except (TypeError, ValueError):
        return False
    return True


def _check_nested(coverages: Any) -> None:
    if coverages is None:
        return
    expected = "None or increasing numbers in (0, 1)"
    check("nested_coverages", coverages, isinstance(coverages, (list, tuple, np.ndarray)), expected)
    check("nested_coverages", coverages, read_coverages("nested_coverages", coverages)[-1] < 1, expected)


def _check_bands(bands: Any) -> None:
    """Numerics: what the data may choose has parameters of its own."""
    if bands is None:
        return
    check("bands", bands, isinstance(bands, BandSettings), "None or a sosbands.bands.BandSettings")
    for name in OPEN:
        value = getattr(bands, name)
        check(f"bands.{name}", value, is_auto(value), f"'auto', because {name} is a parameter of the regressor itself")
    check("bands.normalize", bands.normalize, isinstance(bands.normalize, (bool, np.bool_)), "True or False")
    precomputed = isinstance(bands.kernel, str) and bands.kernel == "precomputed"
    expected = "the name of a kernel of rows, a kernel object or a function (see learn_bands)"
    check("kernel", bands.kernel, not precomputed, expected)


def _check_lengthscale(lengthscale: Any) -> None:
    """The words, sides and dimensions; that of arrays is known with the rows."""
    sides = lengthscale.values() if isinstance(lengthscale, dict) else [lengthscale]
    words = ("median",) if isinstance(lengthscale, dict) else ("auto", "median")
    fine = not isinstance(lengthscale, dict) or set(lengthscale) == {"lower", "upper"}
    check("lengthscale", lengthscale, fine, "the keys 'lower' and 'upper'")
    fine = all(each in words if isinstance(each, str) else np.ndim(each) < 2 for each in sides)
    also = " for each side" if isinstance(lengthscale, dict) else ", or a dict of the sides"
    known = ", ".join(map(repr, words))
    check("lengthscale", lengthscale, fine, f"{known}, a number > 0, one per feature{also}")


# Of parameters that several regressors share; what a class takes beside or instead of them is in its own `_checks`.
CHECKS: Mapping[str, Check] = {
    "bands": _check_bands,
    "base_scale": one_of("base_scale", ("auto", *BASE_SCALES)),
    "calibration": lambda value: read_kind(value, conditional=True),
    "calibration_size": rule(
        "calibration_size",
        lambda size: (
            size in (None, AUTO, CROSS, OUT_OF_FOLD)
            if size is None or isinstance(size, str)
            else is_fraction(size) or (is_count(size) and size >= 1)
        ),
        "'auto', a fraction in (0, 1), a number of rows >= 1, 'cross', 'out-of-fold', or None",
    ),
    "confidence_level": read_level,
    "conformal_score": one_of("conformal_score", ("auto", *ALL_SCORES)),
    "cv": check_cv,
    "estimator": rule(
        "estimator",
        _is_estimator,
        "None, a regressor with fit and predict, a pair or triple of them, or a function of X",
    ),
    "lengthscale": _check_lengthscale,
    "max_seconds": rule("max_seconds", lambda s: s is None or (is_number(s) and s >= 0), "None or a number >= 0"),
    "n_jobs": rule("n_jobs", lambda n: n is None or (is_count(n) and n != 0), "None or an int that is not 0"),
    "nested_coverages": _check_nested,
    "noise_features": lambda value: None if is_auto(value) else read_noise_features(value),
    "preprocessor": rule(
        "preprocessor", _is_preprocessor, "'auto', 'standardize', None or a transformer with fit and transform"
    ),
    "random_state": rule("random_state", _is_seed, "an int >= 0, a numpy RandomState or None"),
    "residuals": one_of("residuals", RESIDUALS),
    "target_range": lambda value: None if value is None or is_auto(value) else read_range(value),
    "target_transform": rule(
        "target_transform",
        lambda t: t in (None, "auto", *NAMED) if t is None or isinstance(t, str) else is_transformer(t),
        "'auto', None, 'log', 'sqrt', or a transformer with fit, transform and inverse_transform",
    ),
    "symmetry_penalty": rule(
        "symmetry_penalty",
        lambda value: is_auto(value) or not isinstance(value, str),
        "'auto', a number >= 0, inf, or for bands.symmetry_kind='operator' a pair",
    ),
    "rules": rule("rules", lambda r: r is None or isinstance(r, Rules), "None or a sosbands.tuning.Rules"),
    "verbose": rule("verbose", lambda v: isinstance(v, (bool, np.bool_)) or (is_count(v) and v >= 0), "an int >= 0"),
    **{name: count(name) for name in ("n_estimators", "min_samples_leaf", "max_iter", "n_starts")},
}


def check_parameters(model: Any) -> None:
    """Raise an error that names a parameter, its value and what was expected; one alone first, then some together."""
    checks = {**CHECKS, **model._checks}
    for name, value in model.get_params(deep=False).items():
        if name in checks:
            checks[name](value)
    if hasattr(model, "bands"):
        (model.bands or BandSettings()).replace(**{name: getattr(model, name) for name in OPEN})
    if getattr(model, "nested_coverages", None) is not None:
        expected = "None with calibration_size='cross', whose copies have bands of their own"
        check("nested_coverages", model.nested_coverages, not is_cross(model.calibration_size), expected)
    transform = getattr(model, "target_transform", None)
    if transform is not None and not isinstance(transform, str):
        expected = "'log', 'sqrt' or None with calibration_size='cross', whose copies would learn one each"
        check("target_transform", type(transform).__name__, not is_cross(model.calibration_size), expected)


def check_band_kernel(kernel: Any, lengthscale: Any, noise_features: str, n_inputs: int) -> None:
    """The same for the kernel of the bands and its lengthscale, once the number of inputs is known."""
    if noise_features not in ("auto", INPUTS, LENGTHSCALES):
        plain = not isinstance(lengthscale, dict) and np.ndim(lengthscale) == 0
        expected = "'auto', 'inputs' or 'lengthscales' beside a kernel object or a lengthscale for each feature or side"
        check("noise_features", noise_features, isinstance(kernel, str) and plain, expected)
        n_inputs = 1
    for side in lengthscale.values() if isinstance(lengthscale, dict) else [lengthscale]:
        resolve_kernel(kernel, "median" if is_auto(side) else side, np.zeros((2, n_inputs)))
