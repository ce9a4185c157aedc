"""Why an interval is as wide as it is: exact shares of base scale, bands, features, learning rows and calibration."""

from sosbands.explanation.explain import TypicalRows
from sosbands.explanation.result import Explanation

__all__ = ["Explanation", "TypicalRows"]
