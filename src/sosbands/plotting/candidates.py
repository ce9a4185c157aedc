"""Reading a tuning report: which candidates have a place on a map over symmetry penalty and lengthscale."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sosbands._types import Array, BoolArray


class Penalties(NamedTuple):
    """Places of the symmetry penalties on an axis: decades, with 0 one step before and infinity one step after."""

    values: list[Any]
    places: list[float]

    def place(self, penalty: Any) -> float | None:
        """Where this penalty is, if it is one of them."""
        known = [place for value, place in zip(self.values, self.places, strict=True) if same(value, penalty)]
        return known[0] if known else None


class Candidates(NamedTuple):
    """Candidates that have a place on the map, and how many have none."""

    places: Array
    lengthscales: Array  # NaN if the kernel has its own
    values: Array
    uncertified: BoolArray
    sided: int
    unvalued: int


def read_penalties(report: Any) -> Penalties:
    """Distinct penalties with their places; pairs, which have no order, one step apart."""
    values = sorted_penalties(distinct_penalties(report))
    if any(np.ndim(each) for each in values):
        return Penalties(values, [float(place) for place in range(len(values))])
    finite = [each for each in values if 0 < each < np.inf]
    shift = 1 - np.log10(finite[0]) if finite else 1.0
    last = float(np.log10(finite[-1]) + shift) if finite else 0.0
    places = [0.0 if each == 0 else last + 1 if np.isinf(each) else float(np.log10(each) + shift) for each in values]
    return Penalties(values, places)


def read_candidates(report: Any, penalties: Penalties) -> Candidates:
    """Places, lengthscales and values of the candidates with one lengthscale, or all of whom have the same."""
    rows = report.evaluations
    scales = [one_lengthscale(row["lengthscale"]) for row in rows]
    fixed = len({repr(row["lengthscale"]) for row in rows}) == 1 and len(penalties.values) > 1
    if fixed and scales[0] is None:
        scales = [np.nan] * len(rows)  # one given lengthscale of whatever form: a curve over the penalties
    mapped = [(row, scale) for row, scale in zip(rows, scales, strict=True) if scale is not None]
    kept = [(row, scale) for row, scale in mapped if np.isfinite(row["criterion"])]
    return Candidates(
        places=np.array([penalties.place(row["symmetry_penalty"]) for row, _ in kept], dtype=float),
        lengthscales=np.array([scale for _, scale in kept], dtype=float),
        values=np.array([row["criterion"] for row, _ in kept], dtype=float),
        uncertified=np.array([row.get("uncertified", 0) > 0 for row, _ in kept], dtype=bool),
        sided=len(rows) - len(mapped),
        unvalued=len(mapped) - len(kept),
    )


def what_varies(candidates: Candidates) -> str:
    """What varies: "lengthscale", "penalty" or "both"."""
    known = np.isfinite(candidates.lengthscales)
    if not known.all() or len(np.unique(candidates.lengthscales)) == 1 < len(np.unique(candidates.places)):
        return "penalty"
    return "lengthscale" if len(np.unique(candidates.places)) == 1 else "both"


def chosen_candidate(report: Any, penalties: Penalties, candidates: Candidates) -> int | None:
    """Position of the candidate that was chosen."""
    if report.homoscedastic:
        return None
    scale = one_lengthscale(report.lengthscale)
    here = candidates.places == penalties.place(report.symmetry_penalty)
    if scale is not None:
        here &= np.isclose(candidates.lengthscales, scale, rtol=1e-9)
    else:
        here &= np.isnan(candidates.lengthscales)
    found = np.flatnonzero(here)
    return int(found[0]) if len(found) else None


def sorted_penalties(values: list[Any]) -> list[Any]:
    """Increasing; as they come if some are pairs."""
    return values if any(np.ndim(each) for each in values) else sorted(float(each) for each in values)


def distinct_penalties(report: Any) -> list[Any]:
    """The penalties of all candidates, in the order in which they first appear."""
    found: list[Any] = []
    for each in (row["symmetry_penalty"] for row in report.evaluations):
        if not any(same(each, known) for known in found):
            found.append(each)
    return found


def same(first: Any, second: Any) -> bool:
    """Whether two penalties, numbers or pairs, are equal."""
    return bool(np.array_equal(first, second))


def one_lengthscale(lengthscale: Any) -> float | None:
    """A positive lengthscale common to all sides and features; None for anything else."""
    if isinstance(lengthscale, str | dict) or lengthscale is None or np.size(lengthscale) != 1:
        return None
    value = float(np.asarray(lengthscale, dtype=float).reshape(()))
    return value if 0 < value < np.inf else None


def penalty_words(penalty: Any) -> str:
    """A penalty as it is written at an axis."""
    if np.ndim(penalty):
        return "(" + ", ".join(penalty_words(part) for part in penalty) + ")"
    return "∞" if np.isinf(penalty) else f"{penalty:g}"
