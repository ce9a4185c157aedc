"""A fitted SoSBandRegressor in words."""

from __future__ import annotations

from typing import Any

import numpy as np


def describe(model: Any) -> str:
    """What was learnt, how asymmetric it is, what shapes it, how certain the solver is, what is promised."""
    parts = [_learnt(model), _asymmetry(model), _shape(model), _certificate(model), _promise(model)]
    return "\n".join(parts)


def _learnt(model: Any) -> str:
    name = type(model.estimator_).__name__
    rows = f"{len(model.learning_rows_)} learning rows and {model.n_features_in_} features"
    automatic = [n for n in ("lengthscale", "symmetry_penalty") if isinstance(getattr(model, n), str)]
    chosen = (
        f" Not tuned: {' and '.join(automatic)} {'is a rule' if len(automatic) == 1 else 'are rules'} of thumb"
        f" (lengthscale {_number(model.lengthscale_)}, symmetry penalty {_number(model.symmetry_penalty_)})."
        if automatic
        else f" Lengthscale {_number(model.lengthscale_)}, symmetry penalty {_number(model.symmetry_penalty_)}."
    )
    return f"Bands around {name}, learnt from {rows}.{chosen}"


def _asymmetry(model: Any) -> str:
    below, above = model.mean_lower_, model.mean_upper_
    if below == above == 0:
        return "All residuals are zero: the bands have no width."
    ratio = max(below, above) / max(min(below, above), np.finfo(float).tiny)
    side = "above" if above > below else "below"
    if ratio < 1.02:
        words = "the bands are as good as symmetric"
    else:
        words = f"the bands reach {_times(ratio)} as far {side} the prediction as on the other side"
    return f"On average they reach {below:.4g} below and {above:.4g} above the prediction before calibration: {words}."


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times" if ratio < 100 else "over 100 times"


def _shape(model: Any) -> str:
    below, above = len(model.active_lower_), len(model.active_upper_)
    squares = f"{model.lower_.rank} squares below and {model.upper_.rank} above"
    return f"{below} rows shape the lower band and {above} the upper one (active_lower_, active_upper_); {squares}."


def _certificate(model: Any) -> str:
    c = model.certificate_
    if c["status"] == "converged":
        start = f"Certified: the cost of the bands is within {max(c['gap'], 1e-16):.1e} (relative) of the best possible"
    else:
        start = f"NOT certified to the tolerance asked for ({c['status']}): the gap is {c['gap']:.1e}"
    left_out = c["trace_left_out"]
    features = f"{c['n_features']} kernel features" + (
        f" that leave out {left_out:.1e} of it" if left_out > 1e-12 else ""
    )
    return f"{start}, found in {c['seconds']:.2g} s with {features}."


def _promise(model: Any) -> str:
    if "calibration_" not in vars(model):
        return "Not calibrated: call conformalize(X, y) with rows that fit has not seen before asking for intervals."
    level, m = model.confidence_level, model.n_calibration_
    both = f"at least {level:.0%} of new rows fall into their interval"
    if model.calibration == "asymmetric":
        half = (1 - level) / 2
        both += f", at most {half:.1%} below and at most {half:.1%} above it"
    return (
        f"Calibrated on {m} rows: {both}, on average over calibration sets and over rows like those, whatever the"
        " distribution. This is not promised for every single region of the features, nor for rows of another kind."
    )


def _number(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{_number(v)} {k}" for k, v in value.items())
    if isinstance(value, (int, float, np.number)):
        return f"{value:.3g}"
    return np.array2string(np.asarray(value), precision=3) if not isinstance(value, str) else value
