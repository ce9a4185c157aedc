"""Laws of noise that are hard on intervals: heavy tails, ties, atoms, jumps of scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

Noise = Callable[[np.random.Generator, int], np.ndarray]

CONTINUOUS: dict[str, Noise] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "log-normal": lambda rng, n: rng.lognormal(0.0, 3.0, n),
    "two clusters": lambda rng, n: rng.standard_normal(n) * 1e-3 + rng.choice([-5.0, 5.0], n),
    "all below": lambda rng, n: -rng.exponential(size=n) - 1.0,
    "t with half a degree": lambda rng, n: rng.standard_t(0.5, n),
}
TIED: dict[str, Noise] = {
    "rounded": lambda rng, n: np.rint(rng.standard_normal(n)) * 0.0043,
    "an atom": lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, rng.standard_cauchy(n)),
    "a coin": lambda rng, n: rng.choice([-0.1, 0.3], n),
    "nothing": lambda _, n: np.zeros(n),
    "rounded Cauchy": lambda rng, n: np.rint(3 * rng.standard_cauchy(n)) / 7,
}
SCALES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "constant": lambda x: np.ones_like(x),
    "growing": lambda x: 0.1 + (1 + x) ** 2,
    "jump": lambda x: np.where(x > 0.3, 1e4, 1e-2),
    "two jumps": lambda x: np.where(np.abs(x) < 0.1, 1e6, 1.0),
}


@dataclass(frozen=True)
class NoiseLaw:
    """``y = mean(x) + scale(x) noise`` with x uniform on [-1, 1]; without a mean where ties are wanted."""

    noise: str
    scale: str
    ties: bool

    @classmethod
    def continuous(cls, rng: np.random.Generator) -> Self:
        """One in which no two scores are equal."""
        return cls(str(rng.choice(list(CONTINUOUS))), str(rng.choice(list(SCALES))), False)

    @classmethod
    def tied(cls, rng: np.random.Generator) -> Self:
        """One in which many are; x has few values too."""
        return cls(str(rng.choice(list(TIED))), str(rng.choice(list(SCALES))), True)

    def __str__(self) -> str:
        return f"{self.noise} noise of {self.scale} scale"

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Points (n, 1) and observations."""
        X = rng.uniform(-1, 1, (n, 1))
        if self.ties:
            X = np.rint(2 * X) / 2
        return X, self.observe(rng, X)

    def observe(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        """Observations at given points."""
        x = X[:, 0]
        noise = SCALES[self.scale](x) * {**CONTINUOUS, **TIED}[self.noise](rng, len(x))
        return noise if self.ties else np.sin(3 * x) + noise
