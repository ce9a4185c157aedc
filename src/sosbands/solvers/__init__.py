"""How the dual problems are solved."""

from sosbands.solvers.result import DualProblem, HistoryRow, SolverResult, Status
from sosbands.solvers.solve import check_solver, solve, solve_path

__all__ = ["DualProblem", "HistoryRow", "SolverResult", "Status", "check_solver", "solve", "solve_path"]
