"""Hostile problems for learn_bands, each with an answer or a named refusal, and with a certificate that is true.

- converged: the certified gap is at most the tolerance;
- warned: a solution with a named warning that says what it misses;
- refused: an error of the package, or a ValueError that names an argument.

Any other error is a breach, and so is a warning of another package. Every certificate is recomputed from its
definition in extended precision (recheck.py): one that claims more than that is wrong, whatever the outcome.
"""

from __future__ import annotations

import inspect
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from attack.hostile import hostile_problem
from attack.recheck import costs_of, recheck
from sosbands import BandSolution, learn_bands
from sosbands.bands.learn import penalty_scale
from sosbands.exceptions import NotCertifiedWarning, SosbandsError, SosbandsWarning

FULL = 3000
QUICK = 40
ARGUMENTS = (*inspect.signature(learn_bands).parameters, "kernel matrix")
# Rounding of double precision: what is reported may differ from what is true by this much of the primal value.
ALLOWED = {"primal_off": 1e-6, "dual_off": 1e-6, "crossed": 1e-9, "short": 1e-9, "outside_box": 1e-9}


def attempt(number: int) -> str:
    """The hostile problem of this number: converged, warned or refused."""
    X, r, options = hostile_problem(number)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            bands = learn_bands(X, r, **options)
        except Exception as error:
            if is_refusal(error):
                return "refused"
            raise AssertionError(f"crashed: {_described(error)}, n={len(X)}, {options}") from error
    foreign = [w for w in caught if not issubclass(w.category, SosbandsWarning)]
    assert not foreign, f"warning of another package: {foreign[0].category.__name__}: {foreign[0].message}, {options}"
    wrong = wrong_claims(bands, X, r, options)
    assert not wrong, f"wrong certificate: {wrong}, gap {bands.gap:.2g}, n={len(X)}, {options}"
    certified = not any(issubclass(w.category, NotCertifiedWarning) for w in caught)
    assert certified <= (bands.status.value == "converged"), f"status {bands.status.value} without a warning, {options}"
    return "converged" if certified else "warned"


def is_refusal(error: Exception) -> bool:
    """Whether the error says what is wrong with which argument."""
    by_name = isinstance(error, ValueError) and any(name in str(error) for name in ARGUMENTS)
    return isinstance(error, SosbandsError) or by_name


def _described(error: Exception) -> str:
    where = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
    return f"{type(error).__name__}: {str(error)[:200]} ({where[-1] if where else 'nowhere'})"


def wrong_claims(bands: BandSolution, X: np.ndarray, r: np.ndarray, options: dict[str, Any]) -> dict[str, float]:
    """Discrepancies of the certificate that rounding does not explain."""
    scale = None
    if options["normalize"] and np.any(r):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solver = {"rank": options["rank"], "solver": options["solver"]}
            scale = penalty_scale(X, r, kernel=options["kernel"], **solver)
    found = recheck(bands, r, costs_of(options, scale))
    return {name: found[name] for name, most in ALLOWED.items() if not found[name] <= most}
