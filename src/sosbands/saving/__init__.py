"""Fitted models in files: plain data with a checksum, and the point model of another package under audit."""

from sosbands.saving.archive import FORMAT
from sosbands.saving.files import load, save

__all__ = ["FORMAT", "load", "save"]
