"""Why the intervals of test rows are as wide as they are: `model.explain`, with rows numbered as on the page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sosbands._types import IntArray
from sosbands.conformal.arguments import read_kind
from sosbands.exceptions import NoTypicalWidthError
from sosbands.explanation import Explanation
from sosbands.report.recorded import RecordedBands
from sosbands.report.table import Table

MOST_EXPLAINED = 200  # test rows


def explained(model: RecordedBands, table: Table, fit_rows: IntArray, test_rows: IntArray) -> Explanation | None:
    """Explain the first test rows at the level of the model; None if there is no typical width to compare with.

    The explanation counts rows among those that the model was fitted to; here they are positions in X.
    """
    quantiles = model.calibration_.quantiles(model.confidence_level, read_kind(model.calibration))
    if not np.isfinite(quantiles).all():
        return None
    try:
        found = model.explain(table.take(test_rows[:MOST_EXPLAINED]))
    except NoTypicalWidthError:
        return None
    return replace(found, typical_row=int(fit_rows[found.typical_row]), landmark_rows=fit_rows[found.landmark_rows])
