"""How the dual problems are solved. Knows problems by their shape only."""

from sosbands.solvers.protocol import DualProblem, HistoryRow, SolverResult, Status
from sosbands.solvers.solve import Problem, check_solver, solve, solve_path

__all__ = ["DualProblem", "HistoryRow", "Problem", "SolverResult", "Status", "check_solver", "solve", "solve_path"]
