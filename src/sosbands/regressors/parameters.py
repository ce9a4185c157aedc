"""The checks of `SoSBandRegressor`'s constructor parameters, done at the start of fit, before anything slow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sosbands._arguments import check, check_choice, check_cv, is_count, is_fraction, is_number
from sosbands.bands.nested import read_coverages
from sosbands.bands.penalties import read_cost, read_symmetry
from sosbands.conformal import SCORES
from sosbands.conformal.arguments import read_kind, read_level
from sosbands.kernels import StationaryKernel, resolve_kernel
from sosbands.regressors.cross import is_cross
from sosbands.solvers import check_solver
from sosbands.tuning.held_out import CRITERIA
from sosbands.tuning.rules import SYMMETRY_TESTS, Rules, check_test_level, permutations_for
from sosbands.tuning.views import (
    BASE_SCALES,
    FOREST,
    INPUTS,
    LENGTHSCALES,
    MODEL,
    NO_SCALE,
    needed_scales,
    read_noise_features,
)

# What "auto" stands for beside the paper's rules, and all that makes the estimator the paper's.
PAPER_SETTINGS: dict[str, Any] = {
    "base_scale": NO_SCALE,
    "noise_features": INPUTS,
    "width_penalty": 10.0,
    "learning_coverage": 1.0,
    "conformal_score": "added",
}
COMPARING_TESTS = ("kruskal-wallis", "bootstrap")  # which need candidates that differ in the symmetry penalty only
RESIDUALS = ("auto", "in-sample", "leave-one-out", "out-of-fold")


def check_parameters(model: Any) -> None:
    """Raise a ValueError that names the parameter, its value and what was expected."""
    read_level(model.confidence_level)
    read_kind(model.calibration)
    check_choice("conformal_score", model.conformal_score, ("auto", *SCORES))
    check_choice("base_scale", model.base_scale, ("auto", *BASE_SCALES))
    if not is_word(model.noise_features, "auto"):
        read_noise_features(model.noise_features)
    seconds = model.max_seconds
    check("max_seconds", seconds, seconds is None or (is_number(seconds) and seconds >= 0), "None or a number >= 0")
    check("tol", model.tol, is_fraction(model.tol), "a number in (0, 1)")
    check_test_level(model.test_level)
    check_choice("residuals", model.residuals, RESIDUALS)
    check_choice("criterion", model.criterion, tuple(CRITERIA))
    check_choice("symmetry_test", model.symmetry_test, SYMMETRY_TESTS)
    check_choice("symmetry_kind", model.symmetry_kind, ("training", "operator"))
    check_rules(model)
    check("constant", model.constant, isinstance(model.constant, (bool, np.bool_)), "True or False")
    check("normalize", model.normalize, isinstance(model.normalize, (bool, np.bool_)), "True or False")
    check_cv(model.cv)
    fraction = model.outlier_fraction
    check("outlier_fraction", fraction, is_number(fraction) and 0 <= fraction < 1, "a number in [0, 1)")
    check_running(model)
    check_calibration_size(model.calibration_size)
    check_nested(model.nested_coverages, model.calibration_size)
    check_penalties(model, model.learning_coverage, model.width_penalty)
    check_rank(model.rank)
    check_preprocessor(model.preprocessor)
    check_estimator(model.estimator)
    check_solver(model.solver)


def check_rules(model: Any) -> None:
    """Rules decide alone: what they say must not be said another time beside them."""
    rules, plain = model.rules, Rules()
    check("rules", rules, rules is None or isinstance(rules, Rules), "None or a sosbands.tuning.Rules")
    for name, field in (("criterion", "criterion"), ("symmetry_test", "symmetry_test"), ("test_level", "level")):
        value, default = getattr(model, name), getattr(plain, field)
        expected = f"the default, {default!r}, beside rules={rules!r}, whose {field} decides"
        check(name, value, rules is None or value == default, expected)


def is_paper(model: Any) -> bool:
    """Whether the rules of tuning are made for the paper's problem: one setting of all but two."""
    compares = model.symmetry_test in COMPARING_TESTS
    return model.rules is not None or model.criterion != "interval-score" or compares


def resolved(model: Any) -> dict[str, Any]:
    """The settings that the automatic choice may choose: as given, "auto", or what that stands for."""
    given = {name: getattr(model, name) for name in PAPER_SETTINGS}
    if not is_word(given["noise_features"], "auto"):
        given["noise_features"] = read_noise_features(given["noise_features"])
    if not is_paper(model):
        return given
    return {name: PAPER_SETTINGS[name] if is_word(value, "auto") else value for name, value in given.items()}


def is_word(value: Any, word: str) -> bool:
    """Whether a value that may be an array is this word."""
    return isinstance(value, str) and value == word


def scales_wanted(model: Any) -> set[str]:
    """Names of the base scales that the fit may come to look at."""
    given = resolved(model)
    if "auto" in (given["base_scale"], given["noise_features"]):
        return {MODEL, FOREST}
    return needed_scales(given["base_scale"], given["noise_features"])


def symmetry_rules(model: Any, seed: int) -> Rules:
    """By which criterion and tests lengthscale and symmetry penalty are decided."""
    if model.rules is not None:
        rules: Rules = replace(model.rules, seed=seed)
        return rules
    return Rules(
        criterion=model.criterion,
        symmetry_test=model.symmetry_test,
        level=model.test_level,
        n_permutations=permutations_for(model.test_level),
        seed=seed,
    )


def check_band_kernel(model: Any, n_inputs: int) -> None:
    """The same for the kernel of the bands and its lengthscale, once the number of inputs is known."""
    name = resolved(model)["noise_features"]
    if name in ("auto", INPUTS, LENGTHSCALES):
        check_kernel(model.kernel, model.lengthscale, n_inputs)
        return
    plain = not isinstance(model.lengthscale, dict) and np.ndim(model.lengthscale) == 0
    expected = "'auto', 'inputs' or 'lengthscales' beside a kernel object or a lengthscale for each feature or side"
    check("noise_features", name, isinstance(model.kernel, str) and plain, expected)
    check_kernel(model.kernel, model.lengthscale, 1)


def check_kernel(kernel: Any, lengthscale: Any, n_features: int) -> None:
    """The same for a kernel of so many features and its lengthscale."""
    known = not isinstance(kernel, str) or kernel != "precomputed"
    check("kernel", kernel, known, "the name of a kernel of rows, a kernel object or a function (see learn_bands)")
    is_auto = isinstance(lengthscale, str) and lengthscale == "auto"
    fine = not isinstance(lengthscale, str) or is_auto or lengthscale == "median"
    check("lengthscale", lengthscale, fine, "'auto', 'median', a number > 0, one per feature, or a dict")
    some = np.zeros((2, n_features))
    if not isinstance(lengthscale, dict):
        resolve_kernel(kernel, "median" if is_auto else lengthscale, some)
        return
    fine = set(lengthscale) == {"lower", "upper"}
    check("lengthscale", lengthscale, fine, "the keys 'lower' and 'upper'")
    for side in lengthscale.values():
        resolve_kernel(kernel, side, some)


def lengthscale_in_use(lower: Any, upper: Any) -> Any:
    """Lengthscale of the kernels of both sides, or a dict where they differ; None for kernels that are not ours."""
    if not isinstance(lower, StationaryKernel) or not isinstance(upper, StationaryKernel):
        return None
    below, above = (ell[0] if len(ell) == 1 else np.array(ell) for ell in (lower.lengthscale, upper.lengthscale))
    return below if lower == upper else {"lower": below, "upper": above}


def check_penalties(model: Any, coverage: Any = 1.0, width: Any = None) -> None:
    """The penalties of the problem, and its learning coverage where it has one."""
    width = model.width_penalty if width is None or is_word(width, "auto") else width
    width = 1.0 if is_word(width, "auto") else width
    coverage = 1.0 if is_word(coverage, "auto") else coverage
    symmetry = model.symmetry_penalty
    fine = not isinstance(symmetry, str) or symmetry == "auto"
    check("symmetry_penalty", symmetry, fine, "'auto', a number >= 0, inf, or a pair for the operator kind")
    read_cost(width, model.trace_penalty, model.frobenius_penalty, coverage)
    read_symmetry(1.0 if isinstance(symmetry, str) else symmetry, model.symmetry_kind)


def check_calibration_size(size: Any) -> None:
    """How many rows are held back."""
    fine = size is None or is_cross(size) or is_fraction(size) or (is_count(size) and size >= 1)
    check("calibration_size", size, fine, "a fraction in (0, 1), a number of rows >= 1, 'cross', or None")


def check_nested(coverages: Any, calibration_size: Any) -> None:
    """Coverages of nested bands, which copies have none in common of."""
    if coverages is None:
        return
    expected = "None or increasing numbers in (0, 1)"
    check("nested_coverages", coverages, isinstance(coverages, (list, tuple, np.ndarray)), expected)
    read = read_coverages("nested_coverages", coverages)
    check("nested_coverages", coverages, read[-1] < 1, expected)
    fine = not is_cross(calibration_size)
    check(
        "nested_coverages", coverages, fine, "None with calibration_size='cross', whose copies have bands of their own"
    )


def check_rank(rank: Any) -> None:
    """Number of features, or the trace that they leave out."""
    is_word = isinstance(rank, str) and rank in ("auto", "exact")
    fine = is_word or is_fraction(rank) or (is_count(rank) and rank >= 1)
    check("rank", rank, fine, "'auto', 'exact', an int >= 1 or a float in (0, 1)")


def check_running(model: Any) -> None:
    """How the work is done: processes, seed, progress lines."""
    jobs, verbose = model.n_jobs, model.verbose
    check("n_jobs", jobs, jobs is None or (is_count(jobs) and jobs != 0), "None or an int that is not 0")
    fine = isinstance(verbose, (bool, np.bool_)) or (is_count(verbose) and verbose >= 0)
    check("verbose", verbose, fine, "an int >= 0")
    try:
        check_random_state(model.random_state)
    except (TypeError, ValueError):
        check("random_state", model.random_state, False, "an int >= 0, a numpy RandomState or None")


def check_preprocessor(value: Any) -> None:
    """What makes the points that the kernel sees."""
    known = value is None or is_word(value, "auto") or is_word(value, "standardize")
    usable = not isinstance(value, (str, type)) and hasattr(value, "fit") and hasattr(value, "transform")
    check("preprocessor", value, known or usable, "'auto', 'standardize', None or a transformer with fit and transform")


def check_estimator(value: Any) -> None:
    """The point model."""
    usable = hasattr(value, "fit") and hasattr(value, "predict")
    is_function = callable(value) and not hasattr(value, "fit")
    fine = value is None or (not isinstance(value, (str, type)) and (usable or is_function))
    check("estimator", value, fine, "None, a regressor with fit and predict, or a function of X")
