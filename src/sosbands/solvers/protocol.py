"""What a solver asks of a problem, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from sosbands._types import Array, BoolArray, IntArray

Bases = tuple[Array, ...]


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


class Problem(Protocol):
    """What `solve` takes: one dual problem, or several independent ones whose values add up."""

    n_variables: int

    def parts(self) -> Sequence[DualProblem]:
        """Independent problems over consecutive blocks of the variables; ``(self,)`` if they are all coupled."""

    def joined_certificate(self, certificates: Sequence[Any]) -> CertificateLike:
        """Certificate from those of the parts."""

    def dual_point(self, z: Array) -> Any:
        """The multipliers in a form that neighbouring problems can start from."""

    def start_from(self, point: Any) -> Array:
        """Variables at the multipliers of a neighbouring problem."""


class DualProblem(Protocol):
    """A concave function of `n_variables` variables with lower bounds, to be MAXIMISED.

    Its primal point is made of operators on spaces, the `terms`, which can be restricted to subspaces, given by one
    matrix of orthonormal columns per term.
    """

    n_variables: int
    lower_bounds: Array

    @property
    def decompositions(self) -> int:
        """Eigendecompositions made so far."""

    @property
    def terms(self) -> Sequence[Any]:
        """Spaces that operators live in, of dimension ``p`` each."""

    def value_and_grad(self, z: Array) -> tuple[float, Array]:
        """Dual value and gradient."""

    def hessian_product(self, z: Array, support: BoolArray) -> Callable[[Array], Array]:
        """Product with minus the generalised Hessian, rows and columns in `support`; positive semidefinite."""

    def preconditioner(self, z: Array, free: BoolArray, shift: float) -> Callable[[Array], Array] | None:
        """Approximate inverse of minus the Hessian plus ``shift I`` on the variables in `free`, if there is one."""

    def certificate(self, z: Array, also: Any = None) -> CertificateLike:
        """Certificate of any z, cheap at the z of the last `value_and_grad`; `also` is a known feasible point."""

    @property
    def sizes(self) -> Array:
        """How much each learning point asks for."""

    def subsampled(self, rows: IntArray) -> Any:
        """The same problem with some of the learning points only."""

    def extended(self, z: Array, rows: IntArray, small: Any) -> Array:
        """Variables of this problem from those of `small`, its restriction to `rows`."""

    def relaxed(self, factor: float) -> DualProblem:
        """The same problem with a larger Frobenius penalty: easier, with similar multipliers."""

    def restricted(self, bases: Bases) -> DualProblem:
        """The same problem with operators ``Q A Q'``."""

    def lift(self, z: Array, bases: Bases) -> Array:
        """Variables of this problem from those of a restricted one."""

    def project(self, z: Array, bases: Bases) -> Array:
        """Variables of a restricted problem from those of this one."""

    def lift_sides(self, sides: Any, bases: Bases) -> Any:
        """A primal point of this problem from one of a restricted one."""

    def positive_vectors(self, z: Array) -> list[Array]:
        """Eigenvectors that span the operators recovered at z, one matrix per term."""

    def refine(self, z: Array, vectors: list[Array]) -> tuple[list[Array], float]:
        """Better eigenvectors at z than `vectors`, and an upper estimate of the dual value."""


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
        One row per certified point; for independent parts one part after the other.
    bases : tuple of Bases
        The subspaces that the solution was found in, for each part; empty without subspaces.
    """

    variables: Array
    certificate: CertificateLike
    status: Status
    iterations: int
    decompositions: int
    seconds: float
    history: tuple[HistoryRow, ...]
    bases: tuple[Bases, ...] = ()
