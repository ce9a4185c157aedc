"""Runs on the synthetic cases, where the conditional law is known: a method on one draw, judged against the oracle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from sosbands._types import Array
from sosbands.datasets import SyntheticCase, synthetic_case
from sosbands.metrics import coverage, coverage_gaps, interval_score, mean_width, rmse_to_oracle
from sosbands.point_models import GaussianProcess, SmoothingSplineRegressor
from studies.runs.config import Config, Rows
from studies.runs.methods import HARD, OURS, PAPER, PAPER_CQR, axis_settings, chosen, interval_method

LEVEL = 0.9
N_CALIBRATION, N_TEST, N_PLACES, N_CONDITIONAL = 2000, 1000, 100, 1000
CASES = (1, 2, 3, 4, 5, 6)
METHODS = (PAPER_CQR, "gp", "het-gp", "squared-sos", PAPER, HARD, OURS)
REPETITIONS = {"quick": 2, "paper": 20}


def synthetic_rows(
    config: Config,
    cases: Iterable[int] = CASES,
    methods: Iterable[str] = METHODS,
    repetitions: int | None = None,
    **axes: Any,
) -> Rows:
    """Rows of the methods on the cases, with the paper's sample sizes (quick: at most 100 points)."""
    tasks = [
        {
            "case": case,
            "n": min(synthetic_case(case).n_learning, config.pick(quick=100, paper=10_000)),
            "method": method,
            **axes,
            "repetition": k,
        }
        for method in methods
        for k in range(repetitions or REPETITIONS[config.preset])
        for case in cases
    ]
    return config.run("synthetic", synthetic_row, tasks, seed_axes=["case", "n", "repetition"])


def synthetic_row(axes: dict[str, Any], seed: int) -> dict[str, Any]:
    """Metrics of one method on one draw."""
    draw = Draw.of(axes["case"], axes["n"], seed)
    model, seconds = draw.fit(axes["method"], **axis_settings(axes))
    return {"fit_seconds": seconds, **chosen(model), **draw.judge(model)}


@dataclass(frozen=True, eq=False)
class Draw:
    """Learning, calibration and test data of one case, the same for all methods."""

    case: SyntheticCase
    seed: int
    X: Array
    y: Array
    X_calibration: Array
    y_calibration: Array
    X_test: Array
    y_test: Array
    samples: Array  # of Y at the first test points

    @classmethod
    def of(cls, number: int, n: int, seed: int) -> Draw:
        """Draw from independent streams, so that the test data do not depend on the number of learning points."""
        case = synthetic_case(number)
        streams = [np.random.default_rng([seed, k]) for k in range(4)]
        X_test, y_test = case.sample(N_TEST, streams[2])
        return cls(
            case,
            seed % 2**31,
            *case.sample(n, streams[0]),
            *case.sample(N_CALIBRATION, streams[1]),
            X_test,
            y_test,
            case.sample_conditional(X_test[:N_PLACES], N_CONDITIONAL, streams[3]),
        )

    def point_model(self) -> Any:
        """What the paper puts its bands around: a Gaussian process, or a spline where the noise is skewed."""
        return GaussianProcess() if self.case.point_model == "gp" else SmoothingSplineRegressor()

    def fit(self, method: str, **settings: Any) -> tuple[Any, float]:
        """The method, fitted and calibrated, and the seconds of the fit."""
        settings = {"estimator": self.point_model(), "width_penalty": self.case.width_penalty} | settings
        model = interval_method(method, self.seed, **settings)
        clock = perf_counter()
        model.fit(self.X, self.y)
        seconds = perf_counter() - clock
        return model.conformalize(self.X_calibration, self.y_calibration), seconds

    def judge(self, model: Any) -> dict[str, float]:
        """Width, coverage, local coverage gaps and distance to the oracle."""
        lower, upper = model.predict_interval(self.X_test, LEVEL).T
        gaps = coverage_gaps(lower[:N_PLACES], upper[:N_PLACES], self.samples, LEVEL)
        oracle = self.case.oracle_interval(self.X_test, LEVEL)
        return {
            "coverage": coverage(self.y_test, lower, upper),
            "mean_width": mean_width(lower, upper),
            "interval_score": interval_score(self.y_test, lower, upper, LEVEL),
            "acg": gaps.marginal,
            "acg_lower": gaps.lower,
            "acg_upper": gaps.upper,
            "acg_combined": gaps.combined,
            "rmse": rmse_to_oracle(lower, upper, *oracle.T),
            "oracle_width": float(np.mean(oracle[:, 1] - oracle[:, 0])),
        }
