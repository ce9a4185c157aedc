"""How often the smoothing spline follows single rows, and its test error, by the cost of a degree of freedom.

    python -m benchmarks.spline_smoothing

Draws of the synthetic cases with varying noise. A fit follows single rows if its residuals are below half the noise.
"""

from __future__ import annotations

import numpy as np

from sosbands import SmoothingSplineRegressor
from sosbands.datasets import synthetic_case
from sosbands.point_models.smoothing_spline import best_smoothing, merge_ties

SETTINGS = ((3, 100), (5, 100), (5, 200), (4, 500))  # case, n
COSTS = (1.0, 1.2, 1.4, 2.0)
DRAWS = 100
NOISE_SAMPLES = 2000


def rms(values) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def one_draw(number: int, n: int, seed: int) -> dict[float, tuple[float, float]]:
    """Residuals over noise and test error, for every cost."""
    case = synthetic_case(number)
    X, y = case.sample(n, random_state=seed)
    X_test, y_test = case.sample(2000, random_state=10**6 + seed)
    noise = rms(case.sample_conditional(X, NOISE_SAMPLES, random_state=seed).std(axis=1))
    knots = merge_ties((X[:, 0] - X.min()) / np.ptp(X), y)
    found = {}
    for cost in COSTS:
        model = SmoothingSplineRegressor(smoothing=best_smoothing(knots, cost)).fit(X, y)
        found[cost] = rms(y - model.predict(X)) / noise, rms(y_test - model.predict(X_test))
    return found


def main() -> None:
    print(f"{DRAWS} draws\ncase    n  cost  follow rows  mean test RMSE  largest")
    for number, n in SETTINGS:
        draws = [one_draw(number, n, seed) for seed in range(DRAWS)]
        for cost in COSTS:
            ratios, errors = np.array([draw[cost] for draw in draws]).T
            followed = int(np.sum(ratios < 0.5))
            print(f"{number:4} {n:4} {cost:5.1f} {followed:12} {errors.mean():15.3f} {errors.max():8.2f}", flush=True)


if __name__ == "__main__":
    main()
