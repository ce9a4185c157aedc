"""Rules that search on from the best candidate of the grid: one lengthscale, one per side, or per side and feature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize

from sosbands._arguments import check, check_choice, is_count
from sosbands._progress import say
from sosbands._types import Array
from sosbands.tuning import Rules, rules
from sosbands.tuning.rules import RuleSearch
from sosbands.tuning.search import Candidate

MODES = ("common", "per-side", "per-side-and-feature")


@dataclass(frozen=True)
class ClimbingRules(Rules):
    """Rules with a derivative-free local search (COBYQA) in log lengthscales.

    Attributes
    ----------
    mode : {"common", "per-side", "per-side-and-feature"}
        What the local search moves: one lengthscale, one for each side, or one for each side and feature. The operator
        penalty has one lengthscale for both sides in every mode.
    restarts : int
        Candidates of the grid from which it is started.
    """

    mode: str = "common"
    restarts: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("mode", self.mode, MODES)
        check("restarts", self.restarts, is_count(self.restarts) and self.restarts >= 0, "an int >= 0")

    def refine(self, policy: RuleSearch, start: Candidate) -> None:
        """Climb from the best lengthscales of the grid at the penalty of the best candidate."""
        here = [each for each in policy.found() if each.symmetry_penalty == start.symmetry_penalty]
        here = [each for each in here if isinstance(each.lengthscale, float) and not each.is_constant]
        for each in sorted(here, key=lambda each: -policy.value(each))[: self.restarts]:
            self._climb(policy, each)
        best = policy.best(start.symmetry_penalty)
        say(f"after the local search: {policy.criterion} {policy.value(best):.4g} at {best.settings()['lengthscale']}")

    def _climb(self, policy: RuleSearch, best: Candidate) -> None:
        """Derivative-free ascent from a candidate with one lengthscale, at its penalty."""
        shared = best.is_symmetric or policy.search.options["symmetry_kind"] == "operator"
        sides = 1 if self.mode == "common" or shared else 2
        per_side = policy.search.facts.points.shape[1] if self.mode == "per-side-and-feature" else 1
        unpack = _unpacker(sides, per_side)
        start = np.full(sides * per_side, np.log(best.lengthscale))
        reach = np.log(rules.FACTORS[1] / rules.FACTORS[0])

        def negative(logs: Array) -> float:
            if np.array_equal(logs, start):
                return -policy.value(best)  # known
            (found,) = policy.evaluate([unpack(np.exp(logs))], [best.symmetry_penalty])
            return -policy.value(found)

        minimize(
            negative,
            start,
            method="COBYQA",
            bounds=Bounds(start - reach, start + reach),
            # its first model takes 2 size + 1 evaluations, the first of which is known
            options={"maxfev": 3 * start.size + 1, "initial_tr_radius": 0.5 * reach, "scale": False},
        )


def _unpacker(sides: int, per_side: int) -> Callable[[Array], Any]:
    """From the numbers of the local search to a lengthscale of `learn_bands`."""

    def one(values: Array) -> Any:
        return float(values[0]) if per_side == 1 else values.copy()

    if sides == 1:
        return one
    return lambda values: {"lower": one(values[:per_side]), "upper": one(values[per_side:])}
