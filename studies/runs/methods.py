"""The methods that are compared, by name: ours, the paper's, and the competitors."""

from __future__ import annotations

import math
from typing import Any

from sosbands import SoSBandRegressor
from sosbands.bands import BandSettings
from sosbands.baselines import METHODS
from sosbands.point_models import GaussianProcess
from sosbands.regressors import PAPER_SETTINGS
from sosbands.tuning import Rules
from studies.rivals import RIVALS, SquaredSoS
from studies.searches import ClimbingRules

OURS, HARD, PAPER = "sos", "sos-hard", "sos-paper"
PER_FEATURE, PER_SIDE = "sos-per-feature", "sos-paper-per-side"
PAPER_CQR = "cqr-paper"
SHOWN = {
    OURS: "sosbands",
    HARD: "hard bands",
    PAPER: "pen. kSoS",
    PER_FEATURE: "per side and feature",
    PER_SIDE: "pen. kSoS, per side",
    PAPER_CQR: "CQR",
    "cqr-forest": "CQR, leaves of 5",
    "gp": "hom. GP",
    "het-gp": "het. GP",
    "squared-sos": "sym. kSoS",
    "cqr-boosting": "CQR, boosting",
    "split": "split CP",
    "local": "local CP",
    "rqr": "RQR",
}
# Parts of the automatic choice, each left out in turn.
WITHOUT: dict[str, dict[str, Any]] = {
    "rows outside": {"learning_coverage": 1.0},
    "constant": {"bands": BandSettings(constant=False)},
    "base scale": {"base_scale": "none"},
    "noise features": {"noise_features": "inputs"},
    "scaled score": {"conformal_score": "added"},
    "asymmetry": {"symmetry_penalty": math.inf},
    "blend": {"estimator": GaussianProcess()},
}
NUMERICS = ("symmetry_kind", "trace_penalty", "frobenius_penalty")  # of the band problem, that may be axes
PARAMETERS = ("symmetry_kind", "criterion", "symmetry_test", "residuals", "width_penalty", "start")  # that may be axes
SIDED = (OURS, HARD, PAPER, PAPER_CQR, "cqr-forest", "cqr-boosting", "rqr")  # whose two ends have a score each


# The paper's criterion, its independence test and the Kruskal-Wallis rule; solved to a certificate, as the effect of
# the paper's stopping rule is an experiment of its own. Lengthscales of each side or feature are found by a local
# search from the best common one.
PAPER_RULES = Rules(criterion="hsic", symmetry_test="kruskal-wallis", independence="naive")
# Hard bands are the first release's default: the paper's problem, tuned by interval score and exact tests.
RULES = {
    HARD: None,
    PAPER: PAPER_RULES,
    PER_SIDE: ClimbingRules(**vars(PAPER_RULES), mode="per-side"),
    PER_FEATURE: ClimbingRules(mode="per-side-and-feature"),
}


def interval_method(name: str, seed: int, **settings: Any) -> Any:
    """An unfitted method that learns from all rows given to `fit`; it is calibrated with `conformalize`.

    Parameters
    ----------
    name : str
        A name in `SHOWN`.
    seed : int
        Its random state.
    **settings
        Such as `estimator` and `width_penalty`; a method goes without those that it does not have.
    """
    settings = {"calibration_size": None, "random_state": seed} | settings
    if name in (PAPER, PER_SIDE, "squared-sos"):
        settings.setdefault("residuals", "in-sample")  # as in the papers
    if name == OURS:
        settings.pop("width_penalty", None)  # that of a case is the paper's
        return SoSBandRegressor(**with_rules(settings))
    settings.setdefault("estimator", GaussianProcess())  # the paper's point model; the default of ours is a blend
    if name in RULES:
        numerics = {key: settings.pop(key) for key in NUMERICS if key in settings}
        fixed = {**PAPER_SETTINGS, "bands": BandSettings(constant=False, **numerics), "rules": RULES[name]}
        return SoSBandRegressor(**with_rules({**fixed, **settings}))
    if name == PAPER_CQR:  # trees grown to single rows, as in the first CQR paper: its widths match the tables
        name, settings = "cqr-forest", {**settings, "min_samples_leaf": 1}
    method = (METHODS | RIVALS)[name]
    known = method._get_param_names()
    return method(**{key: value for key, value in settings.items() if key in known})


def with_rules(settings: dict[str, Any]) -> dict[str, Any]:
    """The same with criterion and symmetry test, which are axes of runs, in place of the rules."""
    tests = {name: settings[name] for name in ("criterion", "symmetry_test") if name in settings}
    rest = {name: value for name, value in settings.items() if name not in tests}
    return rest | ({"rules": Rules(**tests)} if tests else {})


def axis_settings(axes: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a method that the axes of a run set.

    By their own name, or together: bands that are not tuned, both penalties of the norms, both quantiles.
    """
    settings: dict[str, Any] = {name: axes[name] for name in PARAMETERS if name in axes}
    if settings.get("symmetry_test") == "none":
        settings["symmetry_test"] = None  # axes hold no None
    if "fixed_penalty" in axes:
        settings |= {"lengthscale": "median", "symmetry_penalty": axes["fixed_penalty"]}
    if "norm_penalties" in axes:
        settings |= dict.fromkeys(("trace_penalty", "frobenius_penalty"), axes["norm_penalties"])
    if "without" in axes:
        settings |= WITHOUT[axes["without"]]
    if "quantile_tail" in axes:
        settings["quantiles"] = (axes["quantile_tail"], 1 - axes["quantile_tail"])
    return settings


def chosen(model: Any) -> dict[str, Any]:
    """What a fitted model chose, for a row; nothing for methods that do not tune bands."""
    if isinstance(model, SquaredSoS):
        return {"constant_width": model.lengthscale_ is None}
    if not isinstance(model, SoSBandRegressor):
        return {}
    report = model.tuning_
    tests = {} if report is None else {"p_independence": report.independence, "p_symmetry": report.symmetry}
    penalty, ell = model.noise_.settings.symmetry_penalty, model.noise_.lengthscale
    return {
        "symmetry_penalty": float(penalty),
        "lengthscale": float(ell) if isinstance(ell, float | int) else None,
        "constant_width": bool(report is not None and report.homoscedastic),
        "gap": model.noise_.certificate["gap"],
        **{name: None if test is None else test.p_value for name, test in tests.items()},
    }
