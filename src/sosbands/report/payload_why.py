"""Why intervals of test rows are wide, as the script of the page reads it: words, and the factors that matter most."""

from __future__ import annotations

from typing import Any

import numpy as np

from sosbands._types import Array
from sosbands.explanation import Explanation
from sosbands.report.packing import significant
from sosbands.tuning.views import NO_SCALE

MOST_FEATURES = 6  # of one row; what the others make together is one factor
FACTOR_DIGITS = 3
NOT_WORTH = 0.005  # logarithm of what is told as 1


def why(found: Explanation, levels: list[float]) -> dict[str, Any]:
    """For each row its width, words, and factors: positions in `names`, each with its value.

    The first names are base scale and band, which multiply to the width over the typical one; the others multiply to
    the band.
    """
    names = [f"base scale ({found.scale_name})", "band", *found.feature_names, "all else"]
    return {
        "level": levels.index(found.confidence_level),
        "typical": significant(found.typical_width),
        "typical_row": found.typical_row,
        "names": names,
        "rows": [
            {
                "width": significant(float(found.width[i])),
                "times": significant(float(found.times_typical[i]), FACTOR_DIGITS),
                "words": found.words(i),
                "factors": _factors(found, i),
            }
            for i in range(len(found))
        ],
    }


def _factors(found: Explanation, i: int) -> list[tuple[int, float | int | None]]:
    """Base scale if there is one, the band, and of the band the features that change it most."""
    logs = [] if found.scale_name == NO_SCALE else [(0, float(found.base_scale[i]))]
    logs.append((1, float(found.band[i])))
    shares: Array = found.features[i]
    most = np.argsort(-np.abs(shares), kind="stable")[:MOST_FEATURES]
    kept = [(2 + int(k), float(shares[k])) for k in most if abs(shares[k]) >= NOT_WORTH]
    rest = float(found.band[i]) - sum(share for _, share in kept)
    if kept and abs(rest) >= NOT_WORTH:
        kept.append((2 + len(shares), rest))
    return [(name, significant(float(np.exp(log)), FACTOR_DIGITS)) for name, log in logs + kept]
