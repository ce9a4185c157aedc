"""The simulated tables of mixed columns: repeatable, with the traits that they promise, one world for all draws."""

import numpy as np
import pytest

from sosbands.datasets import MIXED_TABLES

GAPS = {"delays": ["weather", "age"], "prices": ["energy", "rooms", "plot"]}
GAPS["fares"] = ["payment", "passengers", "temperature"]
MANY = {"delays": "aircraft", "prices": "street", "fares": "cell"}


@pytest.mark.parametrize("name", MIXED_TABLES)
def test_traits(name):
    X, y = MIXED_TABLES[name](30_000, random_state=1)
    assert X.shape == (30_000, 12)
    texts = X.select_dtypes(exclude="number")
    assert texts.shape[1] == 5
    assert list(X.columns[X.isna().any()]) == GAPS[name]
    assert 8000 < X[MANY[name]].nunique() <= 20_000
    assert np.isfinite(y).all()
    center = np.median(y)
    below, above = center - np.quantile(y, 0.001), np.quantile(y, 0.999) - center
    assert above > 3 * below  # a long tail above


@pytest.mark.parametrize("name", MIXED_TABLES)
def test_repeatable(name):
    draw = MIXED_TABLES[name]
    (X, y), (again, same), (_, other) = draw(50, 3), draw(50, 3), draw(50, 4)
    assert X.equals(again)
    assert np.array_equal(y, same)
    assert not np.array_equal(y, other)
    with pytest.raises(ValueError, match="n=-1"):
        draw(-1)


def test_all_draws_come_from_one_world():
    """Means of the same streets agree between draws, beyond what chance would give."""
    means = []
    for seed in (1, 2):
        X, y = MIXED_TABLES["prices"](40_000, seed)
        means.append(np.log(y).groupby(X["city"]).mean())
    assert np.corrcoef(means[0], means[1].reindex(means[0].index))[0, 1] > 0.95
