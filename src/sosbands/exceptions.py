"""Every named error and warning of the package, and the number on which one of them depends."""

from collections.abc import Sequence

from sklearn.exceptions import NotFittedError


class SosbandsError(Exception):
    """Base class of the package's own errors."""


class NotPositiveSemidefiniteError(SosbandsError, ValueError):
    """A kernel matrix has a significantly negative eigenvalue."""


class InfeasibleProblemError(SosbandsError, ValueError):
    """A learning point has a zero feature vector, so no band can reach its residual."""


class SymmetricLimitError(SosbandsError, ValueError):
    """An infinite symmetry penalty was asked for with different lengthscales below and above."""


class ScaleError(SosbandsError, ValueError):
    """Residuals and penalties differ by so many orders of magnitude that double precision cannot hold both."""


class ExportError(SosbandsError, ValueError):
    """A model, or a part of one, cannot be exported for serving, or what was exported gives other intervals."""


class ProblemShapeError(SosbandsError, TypeError):
    """A solver needs members that a problem does not have."""


class NoTypicalWidthError(SosbandsError, ValueError):
    """The typical interval is infinite or a single point, so that no width can be compared with it."""


class SosbandsWarning(UserWarning):
    """Base class of the package's own warnings."""


class NotCertifiedWarning(SosbandsWarning):
    """A solve ended without reaching the duality gap that was asked for."""


class ZeroResidualsWarning(SosbandsWarning):
    """All residuals are zero, so the learnt bands have no width."""


class LowRankWarning(SosbandsWarning):
    """The low-rank features miss more than half of the kernel at some learning point."""


class NotCalibratedError(SosbandsError, NotFittedError):  # type: ignore[misc]
    """Intervals were asked for before any calibration."""


class TooFewCalibrationPointsWarning(SosbandsWarning):
    """The calibration set is too small for the confidence level, so that intervals are infinite."""


class TooFewRowsWarning(SosbandsWarning):
    """There are too few rows to measure coverage place by place, so that a measure is NaN or left out."""


class CrossedIntervalsWarning(SosbandsWarning):
    """Calibration moved the ends of some intervals past one another; their midpoints are given instead."""


class LeaveOneOutError(SosbandsError, ValueError):
    """Leave-one-out residuals were asked for of a point model that has no closed form for them."""


class MultiOutputError(SosbandsError, ValueError):
    """Several targets were given where intervals are for one."""


class ModelFileError(SosbandsError, ValueError):
    """A file does not hold a model that this version can read."""


class UntrustedTypesError(SosbandsError, ValueError):
    """A model file holds types that were not declared to be trusted.

    Attributes
    ----------
    types : tuple of str
        Their full names.
    """

    def __init__(self, message: str, types: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.types = tuple(types)


class LearningRowsWarning(SosbandsWarning):
    """Rows given to calibrate or evaluate were already learnt from: they promise, and say, little about new ones."""


LITTLE_SUPPORT = 0.5  # below it rows count as far from the learning data: warned of, counted and drawn grey
NO_SUPPORT = 0.1  # below it they say nothing: what is left of bands with a constant among the squares is the constant


class IdentifierWarning(SosbandsWarning):
    """Most texts of a column occur once, as identifiers do, and say nothing about new rows."""


class UnstableModelWarning(SosbandsWarning):
    """Out-of-fold errors say little about the model of all rows, because single rows change it too much."""


class RefittedWarning(SosbandsWarning):
    """A fitted point model was given, of which a copy was fitted anew; `FrozenEstimator` uses it as it is."""


class OffDataWarning(SosbandsWarning):
    """Some rows are far from the learning data (support below `LITTLE_SUPPORT`), where the bands say nothing."""
