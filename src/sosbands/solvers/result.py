"""What a solve returns, and the least that a problem must offer to be solved at all."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from sosbands._types import Array
from sosbands.problems.certificate import Bases, Certificate
from sosbands.problems.side import Box


class DualProblem(Protocol):
    """A concave function of variables in a box, to be MAXIMISED: all that L-BFGS needs.

    The other solvers take a :class:`~sosbands.problems.BandDual`, which has these four members and more.
    """

    @property
    def bounds(self) -> Box:
        """Of the variables, one entry for each."""

    @property
    def decompositions(self) -> int:
        """Eigendecompositions made so far: the unit of work."""

    def value_and_grad(self, z: Array) -> tuple[float, Array]:
        """Dual value and gradient."""

    def certificate(self, z: Array) -> Certificate:
        """Certificate of any z, feasible or not; cheap at the z of the last `value_and_grad`."""


class Status(StrEnum):
    """How a solve ended."""

    CONVERGED = "converged"  # the certified gap reached the tolerance
    ITERATION_LIMIT = "iteration limit"  # it had not when the iterations were spent
    STALLED = "stalled"  # no further progress in double precision


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
    """Where a solve ended, with the certificate of that point."""

    variables: Array
    certificate: Certificate
    status: Status
    iterations: int
    decompositions: int
    seconds: float
    history: tuple[HistoryRow, ...]  # a row per certified point, for independent parts one part after the other
    bases: tuple[Bases, ...] = ()  # subspaces that the solution of each part was found in
