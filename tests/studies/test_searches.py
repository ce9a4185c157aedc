"""The local search over lengthscales, which only the studies use."""

import numpy as np
import pytest

from sosbands import learn_bands
from sosbands.bands import penalty_scale
from sosbands.bands.views import RowFacts
from sosbands.tuning import rules, tune
from sosbands.tuning.rules import COARSE, RuleSearch
from sosbands.tuning.search import Candidate, Part, Search
from studies.searches import ClimbingRules


@pytest.fixture(autouse=True)
def small_grid(monkeypatch):
    monkeypatch.setattr(rules, "PENALTIES", (0.0, 1.0, np.inf))
    monkeypatch.setattr(rules, "FACTORS", (0.3, 1.0))


def sample(n, d=1):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, d))
    return X, (0.2 + np.abs(X[:, 0])) * (rng.gamma(1.5, size=n) - 1.5)


def test_restarts_climb_from_several_candidates():
    X, r = sample(30)
    options = {"cv": 2, "random_state": 0, "symmetry_penalty": 0.0}
    reports = [tune(X, r, rules=ClimbingRules(restarts=k, independence=None), **options) for k in (0, 1, 2)]
    counts = [len(report.evaluations) for report in reports]
    assert counts[0] == 2 < counts[1] < counts[2]
    best = [max(row["criterion"] for row in report.evaluations) for report in reports]
    assert best[0] <= best[1] <= best[2]


@pytest.mark.parametrize("mode", ["per-side", "per-side-and-feature"])
@pytest.mark.parametrize("kind", ["training", "operator"])
def test_modes(mode, kind):
    X, r = sample(24, d=2)
    asked = ClimbingRules(criterion="dcor", independence=None, mode=mode)
    report = tune(X, r, symmetry_kind=kind, symmetry_penalty=1.0, rules=asked, cv=2, random_state=0)
    last = report.evaluations[-1]["lengthscale"]
    if kind == "training":
        assert set(last) == {"lower", "upper"}
        last = last["lower"]
    assert np.shape(last) == ((2,) if mode == "per-side-and-feature" else ())
    bands = learn_bands(X, r, lengthscale=report.lengthscale, symmetry_penalty=1.0, symmetry_kind=kind, normalize=True)
    assert bands.gap <= 1e-4


def test_many_features_leave_room_for_the_first_model():
    X, r = sample(20, d=8)
    options = {"kernel": "matern52", "symmetry_kind": "training", "normalize": penalty_scale(X, r)}
    search = Search(RowFacts(X, np.zeros(20), {}), r, (np.arange(10), np.arange(10, 20)), options, COARSE)
    asked = []

    class Counting(RuleSearch):
        def evaluate(self, lengthscales, penalties):
            asked.append(lengthscales[0])
            made = [Candidate("none", "inputs", 1.0 + len(asked), 10.0, 1.0, penalties[0])]
            width = np.arange(10.0) ** len(asked)
            search.parts.update({(made[0], k): Part(width, width, 1.0, 1.0, 0.0, None) for k in (0, 1)})
            self.tried.update(dict.fromkeys(made))
            return made

    policy = Counting(
        ClimbingRules(criterion="dcor", mode="per-side-and-feature"), "matern52", "auto", (0.0,), (10.0, 1.0)
    )
    policy.begin(search)
    (start,) = policy.evaluate([1.0], [0.0])
    policy.rules.refine(policy, start)
    assert 32 <= len(asked) - 1 <= 49


@pytest.mark.parametrize("options", [{"mode": "all"}, {"restarts": -1}, {"criterion": "mse"}])
def test_what_is_wrong_is_named(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        ClimbingRules(**options)
