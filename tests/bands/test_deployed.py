"""Deployed functions of many landmarks: products in place of solves change nothing that can be seen."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

from sosbands import SoSFunction
from sosbands.bands.functions import deployed_pair, evaluate_pair
from sosbands.kernels import StationaryKernel, learn_features
from sosbands.kernels import features as features_module

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 3))
NEW = np.vstack([RNG.standard_normal((300, 3)), 8 * RNG.standard_normal((50, 3)), np.full((1, 3), 1e6)])


@pytest.fixture(autouse=True)
def few_landmarks_tell_the_support(monkeypatch):
    monkeypatch.setattr(features_module, "SUPPORT_RANK", 60)


def pair(lengthscale=1.0, constant=True, rank=200, beyond=0.0, name="matern52"):
    features = learn_features(X, StationaryKernel(name, (lengthscale,)), rank, constant=constant)
    rng = np.random.default_rng(1)
    return tuple(SoSFunction(features, rng.standard_normal((features.rank, k)), beyond=beyond) for k in (2, 5))


def test_the_quick_way_is_taken_and_agrees_with_the_certified_functions():
    for constant in (False, True):
        for name in ("matern52", "matern32", "gaussian"):
            learnt = pair(0.8, constant, name=name)
            deployed = deployed_pair(*learnt)
            assert all(f._weights is not None for f in deployed)
            found, expected = evaluate_pair(*deployed, NEW), evaluate_pair(*learnt, NEW)
            for a, b, f in zip(found[:2], expected[:2], deployed, strict=True):
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-8 * b.max())
                np.testing.assert_allclose(f(NEW), a, rtol=1e-12)


def test_support_is_one_at_the_learning_points_and_falls_to_nothing():
    for f in (pair(), pair(constant=False)):
        deployed = deployed_pair(*f)
        assert evaluate_pair(*deployed, X)[2].min() > 1 - 1e-9
        near, exact = evaluate_pair(*deployed, NEW)[2], evaluate_pair(*f, NEW)[2]
        assert near[-1] == 0.0
        far = exact < 0.1
        assert far.sum() > 20
        assert near[far].max() < 0.3
        assert near[exact > 0.9].min() > 0.6


def test_what_is_added_off_the_data_is_nothing_at_the_learning_points():
    plain, widened = deployed_pair(*pair()), deployed_pair(*pair(beyond=3.0))
    np.testing.assert_allclose(widened[0](X), plain[0](X), rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(widened[0](NEW[-1:]), plain[0](NEW[-1:]) + 3.0, rtol=1e-12)


def ridged(f):
    return tuple(replace(each, ridge=0.5) for each in f)


@pytest.mark.parametrize(
    ("learnt", "support_rank"),
    [
        (pair, 200),  # few landmarks
        (lambda: pair(lengthscale=4.0, name="gaussian", rank="exact"), 60),  # pivots fall to rounding
        (lambda: ridged(pair()), 60),  # a ridge needs the features
    ],
    ids=["few landmarks", "rounding could be seen", "ridge"],
)
def test_where_the_solve_is_taken_nothing_changes(learnt, support_rank, monkeypatch):
    monkeypatch.setattr(features_module, "SUPPORT_RANK", support_rank)
    learnt = learnt()
    deployed = deployed_pair(*learnt)
    assert deployed[0]._weights is None
    for a, b in zip(evaluate_pair(*deployed, X)[:2], evaluate_pair(*learnt, X)[:2], strict=True):
        assert np.array_equal(a, b)


def test_landmarks_that_know_only_themselves_do_not_tell_the_support():
    """With a tiny lengthscale the first landmarks keep nothing of the other learning points."""
    learnt = pair(lengthscale=1e-4, rank="exact", beyond=2.0)
    deployed = deployed_pair(*learnt)
    assert deployed[0].features.support_rank == 0
    below, above, support = evaluate_pair(*deployed, np.vstack([X, NEW]))
    np.testing.assert_allclose(support, np.repeat([1.0, 0.0], [len(X), len(NEW)]), atol=1e-12)
    assert np.isfinite(below).all()
    assert np.isfinite(above).all()


def test_a_wrong_product_would_be_seen():
    deployed = deployed_pair(*pair())
    broken = replace(deployed[0])
    broken.__dict__["_weights"] = deployed[0]._weights * (1 + 1e-6)
    assert np.abs(broken(NEW) - deployed[0](NEW)).max() > 1e-8 * deployed[0](NEW).max()


def test_copies_hold_the_fields_alone():
    f = deployed_pair(*pair())[0]
    values = f(NEW)
    for other in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f)):
        assert set(vars(other)) == {"features", "B", "ridge", "beyond"}
        assert np.array_equal(other(NEW), values)
