"""What the automatic choice chooses among: candidates, what is open, and what was found, as plain values.

`automatic.py` searches, `choose.py` puts the result into words, and the report reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True, eq=False)
class Given:
    """A lengthscale of the user's, in whatever form `learn_bands` takes; equal to itself only."""

    value: Any


class Candidate(NamedTuple):
    """What is chosen, the score aside; `lengthscale` may be infinite, for bands of constant width."""

    base_scale: str
    noise_features: str
    lengthscale: Any
    width_penalty: float
    learning_coverage: float
    symmetry_penalty: Any

    @property
    def view(self) -> tuple[str, str]:
        """Base scale and noise features."""
        return self.base_scale, self.noise_features

    def settings(self) -> dict[str, Any]:
        """The rest, as `learn_band_sequence` takes it."""
        ell = self.lengthscale.value if isinstance(self.lengthscale, Given) else self.lengthscale
        return {
            "lengthscale": ell,
            "width_penalty": self.width_penalty,
            "learning_coverage": self.learning_coverage,
            "symmetry_penalty": self.symmetry_penalty,
        }


@dataclass(frozen=True)
class Choices:
    """What is open, and what is given: each a tuple of the values allowed, None where the search has its own.

    Attributes
    ----------
    base_scales, noise_features, conformal_scores : tuple of str
    lengthscales : tuple or None
        As `learn_bands` takes them, in place of multiples of the median distance and of infinity.
    width_penalties, learning_coverages, symmetry_penalties : tuple or None
    symmetry_test : bool
        Whether asymmetric bands are an option only if a sign-flip test finds skew.
    """

    base_scales: tuple[str, ...]
    noise_features: tuple[str, ...]
    conformal_scores: tuple[str, ...]
    lengthscales: tuple[Any, ...] | None = None
    width_penalties: tuple[float, ...] | None = None
    learning_coverages: tuple[float, ...] | None = None
    symmetry_penalties: tuple[Any, ...] | None = None
    symmetry_test: bool = True
    test_level: float = 0.05


@dataclass(frozen=True, eq=False)
class Choice:
    """A candidate with a score, and what it is worth.

    Attributes
    ----------
    candidate : Candidate
    conformal_score : str
    value : float
        Minus the mean logarithm of held-out interval scores: differences are relative ones.
    uncertified : int
        Folds whose coarse solve missed its tolerance.
    """

    candidate: Candidate
    conformal_score: str
    value: float
    uncertified: int

    def row(self) -> dict[str, Any]:
        """A line of the report."""
        kept = {"conformal_score": self.conformal_score, "criterion": self.value, "uncertified": self.uncertified}
        return {**self.candidate._asdict(), **self.candidate.settings(), **kept}


def is_constant(candidate: Candidate) -> bool:
    """Bands of constant width, in units of the base scale."""
    return isinstance(candidate.lengthscale, float) and bool(np.isinf(candidate.lengthscale))
