"""Why an interval is as wide as it is: exact shares of base scale, bands, features, learning rows and calibration."""

from sosbands.explanation.result import Explanation
from sosbands.explanation.typical import TypicalRows

__all__ = ["Explanation", "TypicalRows"]
