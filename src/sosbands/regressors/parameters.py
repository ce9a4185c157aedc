"""The checks of `SoSBandRegressor`'s constructor parameters, done at the start of fit, before anything slow."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sosbands._arguments import check, check_choice, is_count, is_fraction, is_number
from sosbands.bands.penalties import read_cost, read_symmetry
from sosbands.conformal import SCORES
from sosbands.conformal.arguments import read_kind, read_level
from sosbands.kernels import StationaryKernel, resolve_kernel
from sosbands.solvers import check_solver
from sosbands.tuning.held_out import CRITERIA
from sosbands.tuning.rules import SYMMETRY_TESTS, Rules

RESIDUALS = ("auto", "in-sample", "leave-one-out", "out-of-fold")


def check_parameters(model: Any) -> None:
    """Raise a ValueError that names the parameter, its value and what was expected."""
    read_level(model.confidence_level)
    read_kind(model.calibration)
    check_choice("conformal_score", model.conformal_score, tuple(SCORES))
    for name in ("test_level", "tol"):
        check(name, getattr(model, name), is_fraction(getattr(model, name)), "a number in (0, 1)")
    check_choice("residuals", model.residuals, RESIDUALS)
    check_choice("criterion", model.criterion, tuple(CRITERIA))
    check_choice("symmetry_test", model.symmetry_test, SYMMETRY_TESTS)
    check_choice("symmetry_kind", model.symmetry_kind, ("training", "operator"))
    check_rules(model)
    check("constant", model.constant, isinstance(model.constant, (bool, np.bool_)), "True or False")
    check("normalize", model.normalize, isinstance(model.normalize, (bool, np.bool_)), "True or False")
    check("cv", model.cv, is_count(model.cv) and model.cv >= 2, "an int >= 2")
    fraction = model.outlier_fraction
    check("outlier_fraction", fraction, is_number(fraction) and 0 <= fraction < 1, "a number in [0, 1)")
    check_running(model)
    check_calibration_size(model.calibration_size)
    check_penalties(model, model.learning_coverage)
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


def check_kernel(kernel: Any, lengthscale: Any, n_features: int) -> None:
    """The same for the kernel and its lengthscale, once the number of features that the kernel sees is known."""
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


def check_penalties(model: Any, coverage: Any = 1.0) -> None:
    """The penalties of the problem, and its learning coverage where it has one."""
    symmetry = model.symmetry_penalty
    fine = not isinstance(symmetry, str) or symmetry == "auto"
    check("symmetry_penalty", symmetry, fine, "'auto', a number >= 0, inf, or a pair for the operator kind")
    read_cost(model.width_penalty, model.trace_penalty, model.frobenius_penalty, coverage)
    read_symmetry(1.0 if isinstance(symmetry, str) else symmetry, model.symmetry_kind)


def check_calibration_size(size: Any) -> None:
    """How many rows are held back."""
    fine = size is None or is_fraction(size) or (is_count(size) and size >= 1)
    check("calibration_size", size, fine, "a fraction in (0, 1), a number of rows >= 1, or None")


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
    known = value is None or (isinstance(value, str) and value == "standardize")
    usable = not isinstance(value, (str, type)) and hasattr(value, "fit") and hasattr(value, "transform")
    check("preprocessor", value, known or usable, "'standardize', None or a transformer with fit and transform")


def check_estimator(value: Any) -> None:
    """The point model."""
    usable = hasattr(value, "fit") and hasattr(value, "predict")
    is_function = callable(value) and not hasattr(value, "fit")
    fine = value is None or (not isinstance(value, (str, type)) and (usable or is_function))
    check("estimator", value, fine, "None, a regressor with fit and predict, or a function of X")
