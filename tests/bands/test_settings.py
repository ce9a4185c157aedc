"""BandSettings: what it refuses, what it says, equality, and scikit-learn's way to set one of its fields."""

import inspect
from dataclasses import FrozenInstanceError
from functools import partial
from itertools import product

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from sosbands.bands import BandSettings, PenaltyScale, learn_band_sequence, learn_bands
from sosbands.bands.learn import LITERAL
from sosbands.kernels import StationaryKernel
from sosbands.problems import SideCost

X = np.random.default_rng(0).uniform(-1, 1, (20, 2))
R = X[:, 0] * np.random.default_rng(1).standard_normal(20)
CLOSED = BandSettings("median", 10.0, 0.8, 1.0)


NO_NUMBERS = [np.nan, -np.inf, "large", None, [1.0], np.array([1.0]), True, 1j, b"1"]
SIZES = [-1.0, np.inf, *NO_NUMBERS]
NO_RANKS = [0, -1, 1.0, 0.0, 1.5, -0.1, np.nan, np.inf, "full", None, True, [3]]
NO_LENGTHS = [0.0, -1.0, np.nan, None, [1.0, 0.0], {"lower": 1.0, "upper": -1.0}]
NO_SIDES = [{"lower": 1.0}, {}, {"low": 1.0, "up": 1.0}, {"lower": 1.0, "upper": 1.0, "x": 1.0}]
PAIR = "a number >= 0, or for symmetry_kind='operator' a pair"

WRONG = [
    ("width_penalty", SIZES, "a number >= 0"),
    ("trace_penalty", ["auto", *SIZES], "a number >= 0"),
    ("frobenius_penalty", ["auto", *SIZES], "a number >= 0"),
    ("frobenius_penalty", [0.0], "a number > 0"),
    ("learning_coverage", [0.0, -0.1, 1.1, *NO_NUMBERS], r"a number in \(0, 1\]"),
    ("symmetry_penalty", [-1.0, np.nan, -np.inf, "1", None, np.array([1.0]), True, 1j, b"1"], "a number >= 0 or inf"),
    ("symmetry_penalty", [(1.0, 1.0), [1.0]], PAIR),
    ("symmetry_kind", ["both", None], "one of"),
    ("lengthscale", NO_LENGTHS, "numbers > 0"),
    ("lengthscale", ["mean"], "'median'"),
    ("lengthscale", NO_SIDES, "the keys 'lower' and 'upper'"),
    ("lengthscale", [[[1.0, 2.0]], []], ""),
    ("kernel", ["matern", "rbf"], "one of"),
    ("kernel", [3, None], "a name, a scikit-learn kernel, a callable or 'precomputed'"),
    ("rank", [*NO_RANKS, (3, 2.0)], "'auto', 'exact', an int >= 1"),
    ("constant", [1], "True or False"),
    ("normalize", ["yes", 2], "True, False, 'residuals' or a PenaltyScale"),
    ("solver", ["adam", None, 3, ["lbfgs"]], "one of"),
    ("tol", [0.0, 1.0, -1e-3, np.nan, np.inf, "1e-3", None], r"a number in \(0, 1\)"),
    ("max_iterations", [0], "an int >= 1"),
    ("coupled_rows", [0], "None or an int >= 1"),
    ("outlier_fraction", [1.0], r"a number in \[0, 1\)"),
]


@pytest.mark.parametrize(("name", "values", "expected"), WRONG, ids=lambda each: str(each)[:20])
def test_each_field_is_checked_when_settings_are_made(name, values, expected):
    settings = BandSettings()
    makers = [BandSettings, settings.replace, settings.set_params]
    if name in inspect.signature(learn_bands).parameters:
        makers.append(partial(learn_bands, X, R))
    for make, value in product(makers, values):
        with pytest.raises(ValueError, match=f"(?s)^{name}.*expected {expected}"):
            make(**{name: value})
    assert settings == BandSettings()  # nothing half done


@pytest.mark.parametrize("pair", [(1.0, 1.0, 1.0), (-1.0, 1.0), (np.nan, 1.0), (1.0, 0.0)])
def test_bad_pairs_are_named(pair):
    with pytest.raises(ValueError, match=r"^symmetry_penalty=.*expected"):
        BandSettings(symmetry_penalty=pair, symmetry_kind="operator")


def test_paths_have_the_defaults_of_learn_bands():
    public = inspect.signature(learn_bands).parameters
    read = LITERAL.get_params()
    for name in ("max_iterations", "coupled_rows", "outlier_fraction"):  # of sequences and of the estimator only
        del read[name]
    assert {name: public[name].default for name in read} == read


def test_what_is_open_and_what_it_means():
    assert BandSettings().open_names == ("lengthscale", "width_penalty", "learning_coverage", "symmetry_penalty")
    assert BandSettings(kernel=StationaryKernel("matern52", (1.0,)), width_penalty=3.0).open_names == (
        "learning_coverage",
        "symmetry_penalty",
    )
    assert CLOSED.open_names == ()
    for name in BandSettings().open_names:
        with pytest.raises(ValueError, match=f"^{name}='auto': expected"):
            learn_bands(X, R, **{name: "auto"})


def test_costs_and_symmetry_by_hand():
    cost = BandSettings(width_penalty=2, trace_penalty=3, frobenius_penalty=4, learning_coverage=0.75).cost
    assert cost == SideCost(2.0, 3.0, 4.0, 0.125)
    assert BandSettings(width_penalty=2, learning_coverage=1 - 1e-10).cost.is_hard
    pair = BandSettings(symmetry_penalty=[1, 2], symmetry_kind="operator").symmetry
    assert (pair.lam_pen1, pair.lam_pen2, pair.kind) == (1.0, 2.0, "operator")
    one = BandSettings(symmetry_penalty=2, coupled_rows=7).symmetry
    assert (one.lam_pen1, one.lam_pen2, one.kind, one.rows) == (0.0, 2.0, "training", 7)


def test_equal_settings_are_one_key():
    arrays = [BandSettings(lengthscale=np.array([1.0, 2.0])) for _ in range(2)]
    assert arrays[0] == arrays[1]
    assert len({*arrays, BandSettings(), BandSettings().replace(tol=1e-4)}) == 2
    sides = {"lower": 1.0, "upper": np.array([2.0, 3.0])}
    assert BandSettings(lengthscale=sides) == BandSettings(lengthscale=dict(reversed(sides.items())))
    assert BandSettings(lengthscale=sides) != BandSettings(lengthscale={**sides, "lower": 1.1})
    assert BandSettings(normalize=PenaltyScale(1.0, 1.0, 1.0, 1.0, 9)) != BandSettings()
    assert BandSettings() != "auto"
    assert repr(BandSettings()) == "BandSettings()"
    assert repr(BandSettings(rank=9, lengthscale=np.ones(2))) == "BandSettings(lengthscale=array([1., 1.]), rank=9)"


class Model(BaseEstimator):
    def __init__(self, bands=None):
        self.bands = bands


def test_scikit_learn_sets_a_field_of_a_copy():
    model = Model(bands=BandSettings(rank=9, lengthscale=np.ones(2)))
    assert model.get_params()["bands__rank"] == 9
    other = clone(model).set_params(bands__rank=10, bands__tol=1e-3)
    assert (other.bands.rank, other.bands.tol, model.bands.rank) == (10, 1e-3, 9)
    assert other.bands == model.bands.replace(rank=10, tol=1e-3)
    with pytest.raises(FrozenInstanceError):
        model.bands.rank = 3
    with pytest.raises(TypeError, match="foo"):
        model.bands.replace(foo=1)


def test_a_sequence_of_settings_is_that_of_their_fields():
    each = [CLOSED.replace(symmetry_penalty=value, constant=False, normalize="residuals") for value in (0.0, np.inf)]
    plain = {"learning_coverage": 0.8, "normalize": "residuals"}
    for settings, bands in zip(each, learn_band_sequence(X, R, each), strict=True):
        one = learn_bands(X, R, symmetry_penalty=settings.symmetry_penalty, **plain)
        assert max(one.gap, bands.gap) <= 1e-4
        assert bands.dual_value <= one.primal_value * (1 + 1e-12)
        assert one.dual_value <= bands.primal_value * (1 + 1e-12)
