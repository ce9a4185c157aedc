"""One row of an explanation in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sosbands.explanation.result import Explanation

WORTH_SAYING = float(np.log(1.1))  # factors nearer to 1 make no difference that a reader should look at
MOST_ROWS, LEAST_SHARE = 3, 0.02  # landmarks that are named: so many, each with this share of what all contribute
SCALES = {
    "model": ("the model itself is unsure here", "the model itself is sure here"),
    "forest": ("the model is often far off here", "the model is seldom far off here"),
    "both": ("the model is unsure and often far off here", "the model is sure and seldom far off here"),
}
CALIBRATIONS = {
    "groups": "the calibration of its group",
    "weights": "the calibration with its likelihood ratio",
    "copies": "cross-calibration",
}


def words_of_row(found: Explanation, i: int) -> str:
    """How wide it is, and why."""
    width = found.width[i]
    if width == np.inf:
        return "This interval is infinite: there are too few calibration rows for its confidence level."
    if width == 0:
        return "This interval is a single point: calibration takes off more than the width of the band here."
    ratio = float(width / found.typical_width)
    if abs(np.log(ratio)) < WORTH_SAYING:
        first = f"This interval is about as wide as the typical one ({_times(ratio)})."
    else:
        first = f"This interval is {ratio:.2g} times as wide as the typical one."
    reasons = _reasons(found, i)
    if not reasons:
        return first
    second = "; ".join(reasons)
    return f"{first} {second[0].upper()}{second[1:]}."


def _reasons(found: Explanation, i: int) -> list[str]:
    """The factors that are worth a word, the largest first; the largest of all if none is and the width differs."""
    made = {"scale": found.base_scale[i], "band": found.band[i], "calibration": found.calibration[i]}
    sizes = {name: abs(float(value)) for name, value in made.items()}
    least = WORTH_SAYING
    if abs(float(np.log(found.times_typical[i]))) >= WORTH_SAYING:
        least = min(least, max(sizes.values()))
    named = sorted((name for name in made if sizes[name] >= least), key=lambda name: -sizes[name])
    words = {"scale": _scale, "band": _band, "calibration": _calibration}
    said = [words[name](found, i) for name in named]
    if "band" not in named and _is_far(found, i):
        said.append(f"it lies far from the learning data (support {found.support[i]:.2g})")
    return said


def _scale(found: Explanation, i: int) -> str:
    wide, narrow = SCALES[found.scale_name]
    return f"{wide if found.base_scale[i] > 0 else narrow} ({_factor(found.base_scale[i])})"


def _band(found: Explanation, i: int) -> str:
    value = float(found.band[i])
    if _is_far(found, i):
        does = "widens" if value > 0 else "narrows"
        where = f"it lies far from the learning data (support {found.support[i]:.2g})"
        words = f"{where}, where the band {does} ({_factor(value)})"
    else:
        rows = _rows(found, i)
        like = f"rows like {rows} of the learning data vary" if rows else "the learning data here vary"
        words = f"{like} {'much' if value > 0 else 'little'} ({_factor(value)})"
    features = found.features[i] * np.sign(value)
    k = int(np.argmax(features))
    if len(features) > 1 and features[k] >= WORTH_SAYING:
        words += f", mostly because of {found.feature_names[k]!r} ({_factor(found.features[i, k])})"
    return words


def _calibration(found: Explanation, i: int) -> str:
    by = CALIBRATIONS.get(found.calibrated_by, "calibration")
    return f"{by} {'widens' if found.calibration[i] > 0 else 'narrows'} it ({_factor(found.calibration[i])})"


def _is_far(found: Explanation, i: int) -> bool:
    return bool(found.support[i] < found.support_limit)


def _rows(found: Explanation, i: int) -> str:
    """Such as "12, 40 and 7": the learning rows that contribute most."""
    parts = found.landmarks[i]
    order = np.argsort(-parts, kind="stable")[:MOST_ROWS]
    total = parts[parts > 0].sum()
    kept = dict.fromkeys(str(found.landmark_rows[k]) for k in order if parts[k] > 0 and parts[k] >= LEAST_SHARE * total)
    names = list(kept)
    return names[0] if len(names) == 1 else " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _factor(log: float) -> str:
    return f"x{np.exp(log):.2g}"


def _times(ratio: float) -> str:
    return f"x{ratio:.3g}"
