"""What is optimised: the convex problems of the paper, as concave duals with primal recovery and certificate."""

from sosbands.problems.asymmetric import AsymmetricProblem, OneSidedProblem
from sosbands.problems.certificate import Certificate
from sosbands.problems.dual_point import DualPoint
from sosbands.problems.operator_penalty import OperatorPenaltyProblem
from sosbands.problems.operators import PrimalSide
from sosbands.problems.side import FeatureSpace, SideCost, SideTerm
from sosbands.problems.symmetric import SymmetricProblem
from sosbands.problems.training_penalty import TrainingPenaltyProblem

__all__ = [
    "AsymmetricProblem",
    "Certificate",
    "DualPoint",
    "FeatureSpace",
    "OneSidedProblem",
    "OperatorPenaltyProblem",
    "PrimalSide",
    "SideCost",
    "SideTerm",
    "SymmetricProblem",
    "TrainingPenaltyProblem",
]
