"""The paper's twelve data sets, with its preprocessing as named steps."""

from studies.data.real import RealData, Split, load_real, real_names, real_steps
from studies.data.sources import DatasetNotFoundError

__all__ = ["DatasetNotFoundError", "RealData", "Split", "load_real", "real_names", "real_steps"]
