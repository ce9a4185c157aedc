"""What bands may look at, and in which unit: noise features and base scales by name. For the search and for fitting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sosbands._arguments import check
from sosbands._types import AnyArray, Array

NO_SCALE, MODEL, FOREST, BOTH = BASE_SCALES = ("none", "model", "forest", "both")
INPUTS, LENGTHSCALES, PREDICTION, SCALE = PARTS = ("inputs", "lengthscales", "prediction", "scale")
LEAST_SCALE = 0.05  # of its mean over the learning rows: a tiny scale must not make a huge residual


@dataclass(frozen=True, eq=False)
class RowFacts:
    """What is known of n rows before any band: of learning rows by models that have not seen them."""

    points: Array  # (n, d), inputs as the preprocessor gives them
    prediction: Array
    # "model": standard deviations by the point model, or how far its ends reach, (n, 2); "forest": sizes of residuals
    scales: Mapping[str, Array]
    lengthscales: Array | None = None  # (d,), of a point model that has one for each of the inputs, at learning rows

    def __len__(self) -> int:
        return len(self.prediction)

    def take(self, rows: AnyArray) -> RowFacts:
        """Some of the rows."""
        scales = {name: scale[rows] for name, scale in self.scales.items()}
        return replace(self, points=self.points[rows], prediction=self.prediction[rows], scales=scales)


@dataclass(frozen=True, eq=False)
class NoiseView:
    """A base scale and noise features, in units of the learning rows.

    The scale is "none", the name of one, or "both", the geometric mean of the two; features are some of "inputs",
    "lengthscales" (inputs over them), "prediction" and "scale" (logarithms of every base scale), joined by "+".
    """

    base_scale: str
    noise_features: str
    center: Array  # mean and standard deviation of the columns that are no inputs
    spread: Array
    least: float  # no base scale is taken for less
    lengthscales: Array | None = None  # of the point model, where the features are inputs over them
    logged: tuple[str, ...] = ()  # scales whose logarithms are features

    @classmethod
    def of(cls, base_scale: str, noise_features: str, facts: RowFacts) -> NoiseView:
        """The view of these names, in units of these learning rows."""
        parts = noise_features.split("+")
        ells = facts.lengthscales if LENGTHSCALES in parts else None
        logged = tuple(sorted(facts.scales)) if SCALE in parts else ()
        plain = cls(base_scale, noise_features, np.zeros(1), np.ones(1), 0.0, ells, logged)
        plain = replace(plain, least=LEAST_SCALE * float(plain.unit(facts).mean()))
        columns = plain._columns(facts)
        if not columns.shape[1]:
            return plain
        spread = columns.std(axis=0)
        return replace(plain, center=columns.mean(axis=0), spread=np.where(spread > 0, spread, 1.0))

    @property
    def scales(self) -> set[str]:
        """Names of the scales that it looks at."""
        return needed_scales(self.base_scale, INPUTS) | set(self.logged)

    @property
    def parts(self) -> list[str]:
        """The names in `noise_features`."""
        return self.noise_features.split("+")

    def unit(self, facts: RowFacts) -> Array:
        """The base scale at rows, in units of the target."""
        if self.base_scale == NO_SCALE:
            return np.ones(len(facts))
        if self.base_scale == BOTH:  # transposed, as the model may have two columns, one for each side
            scale = (np.sqrt(facts.scales[MODEL]).T * np.sqrt(facts.scales[FOREST])).T
        else:
            scale = facts.scales[self.base_scale]
        return np.asarray(np.maximum(scale, self.least))

    def points(self, facts: RowFacts) -> Array:
        """What the kernel sees of rows."""
        columns = self._columns(facts)
        blocks = [(columns - self.center) / self.spread] if columns.shape[1] else []
        if INPUTS in self.parts:
            blocks.insert(0, facts.points)
        if self.lengthscales is not None:
            blocks.insert(0, facts.points / self.lengthscales)
        return blocks[0] if len(blocks) == 1 else np.hstack(blocks)

    def _columns(self, facts: RowFacts) -> Array:
        """The columns that are no inputs, as they are."""
        found = [facts.prediction] if PREDICTION in self.parts else []
        found += [np.log(np.maximum(facts.scales[name], np.finfo(float).tiny)) for name in self.logged]
        return np.column_stack(found) if found else np.zeros((len(facts), 0))


def needed_scales(base_scale: str, noise_features: str) -> set[str]:
    """Names of the scales that a view may look at."""
    scales = {MODEL, FOREST} if base_scale == BOTH else {base_scale} - {NO_SCALE}
    return scales | ({MODEL, FOREST} if SCALE in noise_features.split("+") else set())


def read_noise_features(value: Any) -> str:
    """Check the name of noise features; the parts in the order of `PARTS`."""
    parts = value.split("+") if isinstance(value, str) else []
    known = bool(parts) and set(parts) <= set(PARTS) and len(set(parts)) == len(parts)
    fine = known and not {INPUTS, LENGTHSCALES} <= set(parts)
    expected = "'auto', or some of 'inputs' (or 'lengthscales'), 'prediction' and 'scale', joined by '+'"
    check("noise_features", value, fine, expected)
    return "+".join(part for part in PARTS if part in parts)
