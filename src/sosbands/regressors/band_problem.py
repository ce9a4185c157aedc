"""From learning rows to the problem of the bands: what the settings leave open is chosen here, and the rest stated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from sosbands._arguments import check
from sosbands._types import Array, IntArray
from sosbands.bands import BandSolution, PenaltyScale, SoSFunction, penalty_scale
from sosbands.regressors.parameters import is_paper, resolved, symmetry_rules
from sosbands.tuning import TuningReport, choose, tune
from sosbands.tuning.settings import Choices
from sosbands.tuning.views import (
    BOTH,
    FOREST,
    INPUTS,
    LENGTHSCALES,
    MODEL,
    NO_SCALE,
    PREDICTION,
    SCALE,
    NoiseView,
    RowFacts,
    needed_scales,
)

FIXED = ("kernel", "symmetry_kind", "trace_penalty", "frobenius_penalty", "constant")  # that nothing chooses
FEW_ROWS = 200  # up to which fewer candidates are told apart


@dataclass(frozen=True, eq=False)
class NoiseData:
    """What bands are learnt from, before anything is chosen: learning rows without outliers.

    Attributes
    ----------
    facts : RowFacts
    r : ndarray of shape (n,)
        Residuals.
    rows : ndarray of int
        Positions of these rows in what was given to `fit`.
    weights : ndarray of shape (n,) or None
        How much each row counts, above 0.
    """

    facts: RowFacts
    r: Array
    rows: IntArray
    weights: Array | None = None

    def take(self, rows: IntArray) -> NoiseData:
        """Some of them."""
        if len(rows) == len(self.r):
            return self
        weights = None if self.weights is None else self.weights[rows]
        return NoiseData(self.facts.take(rows), self.r[rows], self.rows[rows], weights)


@dataclass(frozen=True, eq=False)
class BandProblem:
    """One problem, in the view that was chosen.

    Attributes
    ----------
    view : NoiseView
    points, z : ndarray of shape (n, d) and (n,)
        What the kernel sees, and residuals in units of the base scale.
    unit : ndarray of shape (n,)
        The base scale.
    rows : ndarray of int
        Positions of these rows in what was given to `fit`.
    wanted : dict
        lengthscale, width_penalty, learning_coverage and symmetry_penalty.
    conformal_score : str
    options : dict
        Further arguments of `learn_bands`, the units of the penalties among them.
    """

    view: NoiseView
    points: Array
    z: Array
    unit: Array
    rows: IntArray
    wanted: dict[str, Any]
    conformal_score: str
    options: dict[str, Any]


def band_problem(model: Any, data: NoiseData) -> BandProblem:
    """The problem that the settings of a `SoSBandRegressor`, and its tuning, state for its learning rows."""
    given = resolved(model)
    chosen = model if model.tuning_ is None else model.tuning_
    for name in ("base_scale", "noise_features", "width_penalty", "learning_coverage", "conformal_score"):
        if model.tuning_ is not None and getattr(chosen, name) is not None:
            given[name] = getattr(chosen, name)
    if not data.r.any():
        given["base_scale"] = NO_SCALE  # of bands without a width
    view = NoiseView.of(given["base_scale"], given["noise_features"], data.facts)
    points, unit = view.points(data.facts), view.unit(data.facts)
    z = data.r / unit
    ell = chosen.lengthscale
    wanted = {
        "lengthscale": "median" if isinstance(ell, str) else ell,  # or the kernel's own
        "width_penalty": given["width_penalty"],
        "learning_coverage": given["learning_coverage"],
        "symmetry_penalty": chosen.symmetry_penalty,
    }
    options = {name: getattr(model, name) for name in FIXED}
    automatic = model.tuning_ is not None and model.tuning_.base_scale is not None
    coverage = 0.0 if automatic else wanted["learning_coverage"]
    options["normalize"] = _units(model, points, z, coverage, data.weights)
    options["sample_weight"] = data.weights
    return BandProblem(view, points, z, unit, data.rows, wanted, given["conformal_score"], options)


def _units(model: Any, points: Array, z: Array, coverage: float, weights: Array | None = None) -> bool | PenaltyScale:
    """Units of the penalties: of the residuals; those of the paper's initial model if its problem was asked for."""
    if not model.normalize or not z.any():
        return False
    if coverage < 1:
        return PenaltyScale.of_residuals(z, weights)
    return penalty_scale(points, z, model.kernel, model.rank, model.tol, model.solver, weights)


def tune_bands(model: Any, data: NoiseData, rng: np.random.RandomState) -> TuningReport | None:
    """What to take for whatever is "auto"; None if nothing is."""
    given = resolved(model)
    check_view(given, data)
    has_lengthscale = isinstance(model.kernel, str)
    open_lengthscale = has_lengthscale and isinstance(model.lengthscale, str) and model.lengthscale == "auto"
    is_open = open_lengthscale or isinstance(model.symmetry_penalty, str)
    seed = int(rng.randint(2**31)) if is_open or "auto" in given.values() else 0
    if is_paper(model) or (given["base_scale"] == NO_SCALE and "auto" not in given.values()):
        return _tune_paper(model, data, given, rng, seed) if is_open else None
    if not is_open and "auto" not in given.values():
        return None
    options = {name: getattr(model, name) for name in FIXED} | {"solver": model.solver}
    if not model.normalize:
        options["normalize"] = False
    end = np.inf if model.max_seconds is None else perf_counter() + model.max_seconds
    return choose(
        data.facts,
        data.r,
        choices(model, given, data),
        options=options,
        level=model.confidence_level,
        cv=model.cv,
        deadline=end,
        random_state=rng,
        seed=seed,
        n_jobs=model.n_jobs,
        verbose=model.verbose,
        weights=data.weights,
    )


def _tune_paper(
    model: Any, data: NoiseData, given: dict[str, Any], rng: np.random.RandomState, seed: int
) -> TuningReport:
    """Lengthscale and symmetry penalty by the rules, everything else as given."""
    if data.weights is not None:
        raise ValueError(
            "sample_weight was given: expected None where the paper's rules choose, which know of no weights; give the "
            "lengthscale and the symmetry penalty"
        )
    base = given["base_scale"] if data.r.any() else NO_SCALE
    view = NoiseView.of(base, given["noise_features"], data.facts)
    points, z = view.points(data.facts), data.r / view.unit(data.facts)
    names = ("width_penalty", "learning_coverage", "conformal_score")
    return tune(
        points,
        z,
        lengthscale=model.lengthscale,
        symmetry_penalty=model.symmetry_penalty,
        normalize=_units(model, points, z, given["learning_coverage"]),
        rules=symmetry_rules(model, seed),
        cv=model.cv,
        n_jobs=model.n_jobs,
        random_state=rng,
        verbose=model.verbose,
        **{name: given[name] for name in names},
        **{name: getattr(model, name) for name in FIXED},
    )


def check_view(given: dict[str, Any], data: NoiseData) -> None:
    """Refuse a base scale or noise features that this point model does not have."""
    known, base, features = data.facts.scales, given["base_scale"], given["noise_features"]
    if not data.r.any():
        return  # no scale of nothing
    fine = MODEL in known or base not in (MODEL, BOTH)
    expected = "'auto', 'none' or 'forest', as the point model gives no standard deviation (return_std) of its own"
    check("base_scale", base, fine, expected)
    fine = LENGTHSCALES not in features.split("+") or data.facts.lengthscales is not None
    expected = "'inputs' instead of 'lengthscales', as the point model is no GaussianProcess of what the kernel sees"
    check("noise_features", features, fine, expected)


def choices(model: Any, given: dict[str, Any], data: NoiseData) -> Choices:
    """What the settings leave open, in the order in which candidates of equal value are preferred."""
    ell, penalty = model.lengthscale, model.symmetry_penalty
    is_named = isinstance(model.kernel, str)
    searched = is_named and isinstance(ell, str) and ell == "auto"
    own_kernel = not is_named or not isinstance(ell, str)
    sided = isinstance(ell, dict) and not np.array_equal(np.asarray(ell["lower"]), np.asarray(ell["upper"]))
    penalties = None if isinstance(penalty, str) else (penalty,)
    return Choices(
        base_scales=_base_scales(given["base_scale"], data),
        noise_features=_noise_features(given["noise_features"], data, own_kernel),
        conformal_scores=("added", "scaled") if given["conformal_score"] == "auto" else (given["conformal_score"],),
        lengthscales=None if searched else (ell if is_named else "median",),
        width_penalties=None if given["width_penalty"] == "auto" else (given["width_penalty"],),
        learning_coverages=None if given["learning_coverage"] == "auto" else (given["learning_coverage"],),
        symmetry_penalties=(0.0,) if sided and penalties is None else penalties,
        symmetry_test=model.symmetry_test is not None,
        test_level=model.test_level,
    )


def _base_scales(given: str, data: NoiseData) -> tuple[str, ...]:
    known = set(data.facts.scales)
    if given != "auto":
        return (given,)
    usable = tuple(name for name in (BOTH, MODEL, FOREST, NO_SCALE) if needed_scales(name, INPUTS) <= known)
    return usable[:2] if len(data.r) <= FEW_ROWS and BOTH in usable else usable


def _noise_features(given: str, data: NoiseData, own_kernel: bool) -> tuple[str, ...]:
    if given != "auto":
        return (given,)
    if own_kernel:
        return (INPUTS,)
    inputs = LENGTHSCALES if data.facts.lengthscales is not None else INPUTS
    many = len(data.r) > FEW_ROWS and data.facts.scales
    return (inputs, PREDICTION, SCALE) if many else (inputs, PREDICTION)


def widened_off_data(bands: BandSolution, problem: BandProblem) -> tuple[SoSFunction, SoSFunction]:
    """The band functions, off the data at least as large as bands of constant width.

    What the features of the learning points leave of ``k(x, x)`` says how little these know of x. A multiple of it is
    the sum of squares of all functions that vanish at the learning points, so that the bands stay sums of squares, and
    stay what they are where there are data.
    """
    if not problem.options["constant"] or problem.wanted["learning_coverage"] == 1 or not problem.z.any():
        return bands.lower, bands.upper  # the paper's
    c = problem.wanted["learning_coverage"]
    symmetric = bands.lower is bands.upper or np.array_equal(bands.lower.B, bands.upper.B)
    weights = problem.options["sample_weight"]
    if symmetric:
        levels = [share_quantile(np.abs(problem.z), c, weights)] * 2
    else:
        levels = [share_quantile(side, (1 + c) / 2, weights) for side in (-problem.z, problem.z)]
    lower, upper = (
        replace(function, beyond=max(0.0, level - function.off_data))
        for function, level in zip((bands.lower, bands.upper), levels, strict=True)
    )
    return lower, upper


def share_quantile(values: Array, share: float, weights: Array | None) -> float:
    """The usual quantile; of weighted rows the least value that rows of this share of the weight do not pass."""
    if weights is None:
        return float(np.quantile(values, share))
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, share * reached[-1]).clip(max=len(values) - 1)])
