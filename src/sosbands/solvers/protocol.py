"""What a solver asks of a problem, and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from sosbands._types import Array, BoolArray


class Status(StrEnum):
    """How a solve ended."""

    CONVERGED = "converged"  # the certified gap reached the tolerance
    ITERATION_LIMIT = "iteration limit"  # it had not when the iterations were spent
    STALLED = "stalled"  # no further progress in double precision


class CertificateLike(Protocol):
    """A proof of quality: ``dual_value <= optimum <= primal_value``."""

    @property
    def dual_value(self) -> float:
        """Lower bound of the optimum."""

    @property
    def primal_value(self) -> float:
        """Upper bound of the optimum."""

    @property
    def gap(self) -> float:
        """Difference of the two, relative to the upper bound."""

    @property
    def violation(self) -> float:
        """Largest constraint violation of the primal point, relative to the residuals."""

    @property
    def sides(self) -> Any:
        """The primal point."""


class DualProblem(Protocol):
    """A concave function of `n_variables` variables with lower bounds, to be MAXIMISED."""

    n_variables: int
    lower_bounds: Array

    @property
    def decompositions(self) -> int:
        """Eigendecompositions made so far."""

    def value_and_grad(self, z: Array) -> tuple[float, Array]:
        """Dual value and gradient."""

    def hessian_product(self, z: Array, support: BoolArray) -> Callable[[Array], Array]:
        """Product with minus the generalised Hessian, rows and columns in `support`; positive semidefinite."""

    def certificate(self, z: Array) -> CertificateLike:
        """Certificate of any z; cheap at the z of the last `value_and_grad`."""

    def parts(self) -> tuple[DualProblem, ...]:
        """Independent problems over consecutive blocks of z whose values add up; ``(self,)`` if there are none."""


@dataclass(frozen=True)
class HistoryRow:
    """One line of a solve's history."""

    iteration: int
    dual_value: float
    primal_value: float
    gap: float
    decompositions: int
    seconds: float


@dataclass(frozen=True, eq=False)
class SolverResult:
    """Where a solve ended, with its certificate.

    Attributes
    ----------
    variables : ndarray
        Dual point z.
    certificate : CertificateLike
        Of that point.
    status : Status
    iterations, decompositions : int
    seconds : float
    history : tuple of HistoryRow
        One row per iteration; for independent parts one part after the other.
    """

    variables: Array
    certificate: CertificateLike
    status: Status
    iterations: int
    decompositions: int
    seconds: float
    history: tuple[HistoryRow, ...]
