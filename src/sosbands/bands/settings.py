"""What `learn_bands` and its paths are told besides points, residuals and symmetry penalties, read once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sosbands.bands.penalties import PenaltyScale, SymmetryPenalty, read_cost, read_number, read_symmetry
from sosbands.problems import SideCost
from sosbands.solvers import check_solver


@dataclass(frozen=True, eq=False)
class BandSettings:
    """Checked settings; see `learn_bands` for their meaning."""

    kernel: Any
    rank: Any
    cost: SideCost
    kind: str
    solver: str
    tol: float
    normalize: bool | PenaltyScale

    def symmetry(self, penalty: Any) -> SymmetryPenalty:
        """A symmetry penalty of this kind."""
        return read_symmetry(penalty, self.kind)


def read_settings(
    *,
    kernel: Any = "matern52",
    width_penalty: float = 10.0,
    trace_penalty: float = 1.0,
    frobenius_penalty: float = 1.0,
    symmetry_kind: str = "training",
    rank: Any = "auto",
    solver: str = "auto",
    tol: float = 1e-4,
    normalize: bool | PenaltyScale = False,
) -> BandSettings:
    """Check the settings that need no data to be checked."""
    cost = read_cost(width_penalty, trace_penalty, frobenius_penalty)
    read_symmetry(0.0, symmetry_kind)
    if not 0 < read_number("tol", tol) < 1:
        raise ValueError(f"tol={tol!r}: expected a number in (0, 1)")
    if not isinstance(normalize, (bool, PenaltyScale)):
        raise ValueError(f"normalize={normalize!r}: expected True, False or a PenaltyScale")
    check_solver(solver)
    return BandSettings(kernel, rank, cost, symmetry_kind, solver, tol, normalize)
