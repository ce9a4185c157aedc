"""How the dual problems are solved. Knows problems by their shape only."""

from sosbands.solvers.protocol import DualProblem, HistoryRow, SolverResult, Status
from sosbands.solvers.solve import solve

__all__ = ["DualProblem", "HistoryRow", "SolverResult", "Status", "solve"]
