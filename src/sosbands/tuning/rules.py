"""Rules: by which criterion and tests the tuner decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sosbands._arguments import check, check_choice, is_count, is_fraction
from sosbands.tuning.held_out import CRITERIA

SYMMETRY_TESTS = ("auto", "kruskal-wallis", "sign-flip", "bootstrap", None)
INDEPENDENCE_TESTS = ("features", "max-statistic", "naive", None)
REPLICATES = ("bootstrap", "splits")
MODES = ("common", "per-side", "per-side-and-feature")
AUTO_TEST = "sign-flip"  # the evidence is in docs/tuning.md
MOST_PERMUTATIONS = 9_999  # of a level alone: with 1500 rows these take a minute
SMALLEST_LEVEL = 1 / (MOST_PERMUTATIONS + 1)
FLIPS = 999  # of the sign-flip test, at least
MOST_GIVEN = 1_000_000  # that rules may ask for


def permutations_for(level: float, least: int = 199) -> int:
    """How many permutations a test at this level is made with: ten times as many as it takes, as far as affordable."""
    return max(least, min(MOST_PERMUTATIONS, int(np.ceil(10 / level)) - 1))


def check_test_level(level: Any, expected: str = "a number in (0, 1)") -> None:
    """A level that the affordable number of permutations can resolve."""
    check("test_level", level, is_fraction(level), expected)
    reason = f"as p-values of the {MOST_PERMUTATIONS} permutations made at most are no smaller"
    check("test_level", level, level >= SMALLEST_LEVEL, f"at least {SMALLEST_LEVEL:g}, {reason}")


@dataclass(frozen=True)
class Rules:
    """How to search and to decide.

    The paper's rules are ``Rules(criterion="hsic", symmetry_test="kruskal-wallis", independence="naive")``.

    Attributes
    ----------
    criterion : {"interval-score", "hsic", "dcor"}
        HSIC is the paper's, which also rewards wide bands; the other two are ours.
    symmetry_test : {"auto", "kruskal-wallis", "sign-flip", "bootstrap", None}
        None always takes the best penalty; "auto" is "sign-flip".
    level : float
        Of both tests.
    independence : {"features", "max-statistic", "naive", None}
        Whether the sizes of the residuals depend on the features (exact), or held-out residuals on held-out widths:
        over all candidates, or at the best one as if it had not been searched for. The last two reject too often, as
        every residual has a part in the widths of the others; see docs/tuning.md.
    n_permutations : int
        Of the independence test and of the bootstrap; at least ``1/level - 1``, at most a million.
    replicates : {"bootstrap", "splits"}
        What the Kruskal-Wallis test compares: the criterion on resampled pairs of the one split, or on other splits.
    n_replicates : int
        Their number for each penalty.
    mode : {"common", "per-side", "per-side-and-feature"}
        What the local search moves: one lengthscale, one for each side, or one for each side and feature.
    restarts : int, optional
        Candidates of the grid from which the local search is started; 0 leaves it out. None is 0 for one common
        lengthscale, where the grid is as good, and 1 otherwise.
    complete : bool
        Evaluate the whole grid also where tests that need no search leave less of it, for a picture of it.
    seed : int
        Of the tests; the folds have their own.
    """

    criterion: str = "interval-score"
    symmetry_test: str | None = "auto"
    level: float = 0.05
    independence: str | None = "features"
    n_permutations: int = 199
    replicates: str = "bootstrap"
    n_replicates: int = 30
    mode: str = "common"
    restarts: int | None = None
    complete: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        choices: dict[str, Any] = {
            "criterion": CRITERIA,
            "symmetry_test": SYMMETRY_TESTS,
            "independence": INDEPENDENCE_TESTS,
            "replicates": REPLICATES,
            "mode": MODES,
        }
        for name, allowed in choices.items():
            check_choice(name, getattr(self, name), tuple(allowed))
        check("level", self.level, is_fraction(self.level), "a number in (0, 1)")
        for name, least in (("n_permutations", 1), ("n_replicates", 1), ("restarts", 0), ("seed", 0)):
            value = getattr(self, name)
            if name == "restarts" and value is None:
                continue
            check(name, value, is_count(value) and value >= least, f"an int >= {least}")
        fine = self.n_permutations <= MOST_GIVEN
        check("n_permutations", self.n_permutations, fine, f"at most {MOST_GIVEN}, which take hours")
        if self.level * (self.n_permutations + 1) < 1:
            raise ValueError(
                f"n_permutations={self.n_permutations}: expected at least {np.ceil(1 / self.level) - 1:.0f} for a test "
                f"at level {self.level:g}, as p-values are no smaller than 1/(1 + n_permutations)"
            )

    @property
    def n_climbs(self) -> int:
        """The number of local searches that `restarts` stands for."""
        return int(self.mode != "common") if self.restarts is None else int(self.restarts)

    @property
    def symmetry_rule(self) -> str | None:
        """The symmetry test that "auto" stands for."""
        return AUTO_TEST if self.symmetry_test == "auto" else self.symmetry_test
