"""What is optimised: the convex problems of the paper, as concave duals with primal recovery and certificate."""

from sosbands.problems.certificate import Certificate, PrimalSide
from sosbands.problems.dual import BandDual, DualPoint
from sosbands.problems.one_sided import AsymmetricProblem, OneSidedProblem, SymmetricProblem
from sosbands.problems.operator_penalty import OperatorPenaltyProblem
from sosbands.problems.side import FeatureSpace, SideCost, SideTerm
from sosbands.problems.training_penalty import TrainingPenaltyProblem

TwoSidedProblem = AsymmetricProblem | TrainingPenaltyProblem | OperatorPenaltyProblem | SymmetricProblem

__all__ = [
    "AsymmetricProblem",
    "BandDual",
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
    "TwoSidedProblem",
]
