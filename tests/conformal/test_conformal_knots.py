"""Scores of nested bands: values by hand, their inverse, and the contract of all scores."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import norm

from score_contract import check_equivariant, check_nested, check_never_crossed
from sosbands.conformal import Band, Knots, NestedScore, interval, lower_scores, upper_scores
from sosbands.conformal.scores import normal_places

VALUES = np.array([1.0, 2.0, 4.0])


def knots(n=1, reaches=(2.0, 3.0, 7.0)):
    each = np.tile(np.array(reaches), (n, 1))
    return Knots(VALUES, each, 2 * each)


def random_knots(rng, n):
    steps = 10.0 ** rng.uniform(-3, 2, (2, n, 3)) * (rng.uniform(size=(2, n, 3)) > 0.2)  # some bands are alike
    return Knots(VALUES, *np.cumsum(steps, axis=2))


@pytest.mark.parametrize(
    ("distance", "score"),
    [(-1.0, 0.0), (0.0, 0.0), (1.0, 0.5), (2.0, 1.0), (2.5, 1.5), (5.0, 3.0), (7.0, 4.0), (14.0, 8.0)],
)
def test_scores_and_reaches_by_hand(distance, score):
    below, above = knots().scores(np.array([distance]), 0), knots().scores(np.array([2 * distance]), 1)
    assert below[0] == above[0] == pytest.approx(score)
    assert knots().reach(score, 0)[0] == pytest.approx(max(distance, 0.0), rel=1e-12)
    assert knots().reach(np.array([score]), 1)[0] == pytest.approx(2 * max(distance, 0.0), rel=1e-12)


def test_a_band_that_is_no_wider_than_the_last_makes_a_jump():
    flat = knots(reaches=(2.0, 2.0, 4.0))
    assert flat.scores(np.array([2.0]), 0)[0] == 1.0
    assert flat.scores(np.array([2.0 + 1e-9]), 0)[0] == pytest.approx(2.0)
    assert flat.reach(1.5, 0)[0] == pytest.approx(2.0)


def test_no_band_at_all():
    none = knots(reaches=(0.0, 0.0, 0.0))
    assert none.scores(np.array([0.0]), 0)[0] == 0.0
    assert none.scores(np.array([1e-9]), 0)[0] == np.inf
    assert none.reach(5.0, 0)[0] == 0.0
    assert none.reach(np.inf, 0)[0] == np.inf


def check_inverse(made, rng):
    """A distance is at most the reach of its score rounded outwards, at least that rounded inwards; both are near."""
    n = len(made)
    distance = 10.0 ** rng.uniform(-6, 4, n)
    at_knots = rng.uniform(size=n) < 0.3
    distance = np.where(at_knots, made.lower[np.arange(n), rng.integers(0, 3, n)], distance)
    score = made.scores(distance, 0)
    finite = np.isfinite(score)
    outwards, inwards = made.reach(score, 0), made.reach(score, 0, outwards=False)
    assert (outwards[finite] >= distance[finite]).all()
    assert (inwards[finite] <= distance[finite]).all()
    np.testing.assert_allclose(outwards[finite], distance[finite], rtol=1e-9, atol=1e-9 * made.lower[finite, -1].max())


def test_a_distance_is_within_the_reach_of_its_score_to_the_last_digit():
    rng = np.random.default_rng(0)
    check_inverse(random_knots(rng, 20_000), rng)


def test_a_reach_that_is_not_rounded_outwards_is_rejected():
    @dataclass(frozen=True, eq=False)
    class Plain(Knots):
        def reach(self, q, side, *, outwards=True):  # noqa: ARG002
            return (Knots.reach(self, q, side) + Knots.reach(self, q, side, outwards=False)) / 2

    rng = np.random.default_rng(0)
    made = random_knots(rng, 20_000)
    with pytest.raises(AssertionError):
        check_inverse(Plain(made.values, made.lower, made.upper), rng)


def test_reaches_and_scores_do_not_decrease_to_the_last_digit():
    rng = np.random.default_rng(1)
    made = random_knots(rng, 300)
    grid = np.sort(np.concatenate([rng.uniform(0, 6, 200), VALUES, np.nextafter(VALUES, 9), np.nextafter(VALUES, 0)]))
    for outwards in (True, False):
        reaches = np.stack([made.reach(q, 1, outwards=outwards) for q in grid], axis=1)
        assert (np.diff(reaches, axis=1) >= 0).all()
    distances = np.sort(10.0 ** rng.uniform(-4, 3, (300, 400)), axis=1)
    scores = np.stack([made.scores(column, 1) for column in distances.T], axis=1)
    finite = np.isfinite(scores).all(axis=1)
    assert (np.diff(scores[finite], axis=1) >= 0).all()


def test_normal_noise_is_scored_in_standard_deviations():
    places = normal_places((0.5, 0.8, 0.95))
    np.testing.assert_allclose(places, norm.ppf([0.75, 0.9, 0.975]))
    score = NestedScore.of_steps((0.5, 0.8, 0.95), np.ones((2, 3)))
    sigma = np.array([0.5, 3.0])
    band = score.band(np.zeros(2), sigma[:, None] * places, sigma[:, None] * places)
    np.testing.assert_allclose(upper_scores(band, np.array([0.3, 7.5])), [0.6, 2.5])
    np.testing.assert_allclose(lower_scores(band, np.array([-1.1, 7.5])), [2.2, 0.0])
    np.testing.assert_allclose(interval(band, 1.0, 2.0)[0], [[-0.5, 1.0], [-3.0, 6.0]])


def test_floors_of_the_steps():
    score = NestedScore.of_steps((0.5, 0.9), np.array([[2.0, 0.0], [4.0, 6.0]]))
    assert score.floors == ((0.1, 0.0), pytest.approx((0.2, 0.3)))
    band = score.band(np.zeros(1), np.array([[0.0, 0.0]]), np.array([[1.0, 1.1]]), unit=2.0)
    np.testing.assert_allclose(band.knots.lower, [[0.2, 0.2]])
    np.testing.assert_allclose(band.knots.upper, [[2.0, 2.6]])
    one_sided = NestedScore.of_steps((0.5, 0.9), np.array([[0.0, 0.0], [4.0, 6.0]]))
    assert one_sided.floors[0] == one_sided.floors[1]
    flat = NestedScore.of_steps((0.5, 0.9), np.zeros((2, 2)))
    band = flat.band(np.zeros(1), np.zeros((1, 2)), np.zeros((1, 2)))
    assert upper_scores(band, np.array([3.0]))[0] == pytest.approx(3.0)  # the scale of the target


@dataclass(frozen=True)
class OfTwoFunctions:
    """A nested score for the contract, which knows one function for each side: bands at f and 3 f."""

    score: NestedScore = NestedScore((0.5, 0.9), ((0.0, 0.0), (0.0, 0.0)))

    def fitted(self, below, above):
        return OfTwoFunctions(NestedScore.of_steps((0.5, 0.9), np.array([[below, 2 * below], [above, 2 * above]])))

    def band(self, center, below, above):
        return self.score.band(center, *(np.stack([f, 3 * f], axis=1) for f in (below, above)))


@pytest.mark.parametrize("check", [check_nested, check_equivariant])
def test_the_contract_of_scores(check):
    check(OfTwoFunctions())


def test_the_contract_of_scores_on_many_rows():
    check_never_crossed(OfTwoFunctions(), n=2000)


def test_bad_knots_are_named():
    fine = np.ones((2, 3))
    with pytest.raises(ValueError, match=r"knots of shapes \(2, 3\) and \(2, 2\): expected \(n, 3\)"):
        Knots(VALUES, fine, fine[:, :2])
    with pytest.raises(ValueError, match=r"knots.upper: expected finite numbers >= 0 that do not decrease"):
        Knots(VALUES, fine, fine * [2, 1, 3])
    with pytest.raises(ValueError, match=r"knots.values=.*: expected increasing numbers > 0"):
        Knots(VALUES[::-1].copy(), fine, fine)
    with pytest.raises(ValueError, match="band with 2 rows of knots: expected 3, around one centre"):
        Band(np.zeros(3), np.zeros(3), knots=Knots(VALUES, fine, fine))
