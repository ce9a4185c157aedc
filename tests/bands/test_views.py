"""What bands may look at: base scales and noise features by name, in units of the learning rows."""

import numpy as np
import pytest

from sosbands.bands.views import LEAST_SCALE, NoiseView, RowFacts, needed_scales, read_noise_features

RNG = np.random.default_rng(0)
N = 50
FACTS = RowFacts(
    RNG.standard_normal((N, 2)),
    3 + 2 * RNG.standard_normal(N),
    {"model": RNG.uniform(1, 2, N), "forest": RNG.uniform(0.5, 3, N)},
    np.array([0.5, 4.0]),
)
NEW = RowFacts(
    RNG.standard_normal((5, 2)),
    RNG.standard_normal(5),
    {"model": np.full(5, 2.0), "forest": np.array([0, 1, 2, 3, 1e9])},
)


def standardised(values, of):
    return (values - of.mean()) / of.std()


def test_base_scales():
    assert NoiseView.of("none", "inputs", FACTS).unit(NEW).tolist() == [1.0] * 5
    assert NoiseView.of("model", "inputs", FACTS).unit(NEW).tolist() == [2.0] * 5
    forest = NoiseView.of("forest", "inputs", FACTS)
    least = LEAST_SCALE * FACTS.scales["forest"].mean()
    np.testing.assert_allclose(forest.unit(NEW), [least, 1, 2, 3, 1e9], rtol=1e-12)
    both = NoiseView.of("both", "inputs", FACTS)
    product = np.sqrt(FACTS.scales["model"] * FACTS.scales["forest"])
    np.testing.assert_allclose(both.unit(FACTS), product, rtol=1e-12)
    np.testing.assert_allclose(both.unit(NEW)[1:], np.sqrt(2 * np.array([1, 2, 3, 1e9])), rtol=1e-12)
    assert both.unit(NEW)[0] == pytest.approx(LEAST_SCALE * product.mean())


def test_noise_features():
    np.testing.assert_array_equal(NoiseView.of("none", "inputs", FACTS).points(NEW), NEW.points)
    np.testing.assert_allclose(NoiseView.of("none", "lengthscales", FACTS).points(NEW), NEW.points / [0.5, 4.0])
    prediction = standardised(NEW.prediction, FACTS.prediction)
    np.testing.assert_allclose(NoiseView.of("none", "prediction", FACTS).points(NEW), prediction[:, None])
    both = NoiseView.of("none", "inputs+prediction", FACTS).points(NEW)
    np.testing.assert_allclose(both, np.column_stack([NEW.points, prediction]))
    logs = [standardised(np.log(NEW.scales[k][1:]), np.log(FACTS.scales[k])) for k in ("forest", "model")]
    np.testing.assert_allclose(NoiseView.of("none", "scale", FACTS).points(NEW)[1:], np.column_stack(logs))
    learning = NoiseView.of("model", "prediction+scale", FACTS).points(FACTS)
    np.testing.assert_allclose(learning.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(learning.std(axis=0), 1, rtol=1e-12)
    same = RowFacts(FACTS.points, np.full(N, 7.0), {})
    assert NoiseView.of("none", "prediction", same).points(same).tolist() == [[0.0]] * N


def test_a_view_knows_which_scales_to_ask_for():
    known = RowFacts(FACTS.points, FACTS.prediction, {"forest": FACTS.scales["forest"]})
    assert NoiseView.of("none", "scale", known).scales == {"forest"}
    assert NoiseView.of("forest", "inputs", FACTS).scales == {"forest"}
    assert NoiseView.of("both", "inputs", FACTS).scales == {"forest", "model"}
    assert NoiseView.of("none", "prediction", FACTS).scales == set()
    assert needed_scales("model", "inputs+scale") == {"forest", "model"}


def test_rows_are_taken_from_all_of_it():
    some = FACTS.take(np.array([3, 1]))
    np.testing.assert_array_equal(some.points, FACTS.points[[3, 1]])
    np.testing.assert_array_equal(some.scales["model"], FACTS.scales["model"][[3, 1]])
    assert len(some) == 2


def test_names_are_put_in_order_or_refused():
    assert read_noise_features("scale+inputs") == "inputs+scale"
    for value in ("", "x", "inputs+", "inputs+inputs", "inputs+lengthscales", 3, None):
        with pytest.raises(ValueError, match="noise_features=.*expected 'auto', or some of 'inputs'"):
            read_noise_features(value)
