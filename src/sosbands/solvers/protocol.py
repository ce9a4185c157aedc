"""The least that a solver asks of a problem, and what it returns.

Each solver states the further members that it needs in its own file; a problem has that shape, it does not inherit it.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from sosbands._types import Array
from sosbands.exceptions import ProblemShapeError

Bases = tuple[Array, ...]


class Status(StrEnum):
    """How a solve ended."""

    CONVERGED = "converged"  # the certified gap reached the tolerance
    ITERATION_LIMIT = "iteration limit"  # it had not when the iterations were spent
    STALLED = "stalled"  # no further progress in double precision


class BoxLike(Protocol):
    """Bounds of the variables."""

    @property
    def lower(self) -> Array:
        """Entries may be minus infinity."""

    @property
    def upper(self) -> Array:
        """Entries may be infinity."""

    def clip(self, z: Array) -> Array:
        """The nearest point inside."""


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
    """A concave function of variables in a box, to be MAXIMISED: all that a first-order method needs."""

    @property
    def bounds(self) -> BoxLike:
        """Of the variables, one entry for each."""

    @property
    def decompositions(self) -> int:
        """Eigendecompositions made so far: the unit of work."""

    def value_and_grad(self, z: Array) -> tuple[float, Array]:
        """Dual value and gradient."""

    def certificate(self, z: Array) -> CertificateLike:
        """Certificate of any z, feasible or not; cheap at the z of the last `value_and_grad`."""


def members(shape: type) -> list[str]:
    """Names that a problem of this shape must have, in the order of their statement."""
    stated = [vars(each) for each in reversed(shape.__mro__) if getattr(each, "_is_protocol", False)]
    return [
        name
        for names in stated
        for name, value in names.items()
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
    ]


def has_shape(problem: Any, shape: type) -> bool:
    """Whether a problem has all members of a shape."""
    return all(hasattr(problem, name) for name in members(shape))


def check_shape(problem: Any, shape: type, solver: str) -> None:
    """Name the members that a problem lacks for a solver."""
    missing = [name for name in members(shape) if not hasattr(problem, name)]
    if missing:
        raise ProblemShapeError(
            f"solver={solver!r} needs {', '.join(missing)} of a problem, which {type(problem).__name__} does not have"
        )


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
