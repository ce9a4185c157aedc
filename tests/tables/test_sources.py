"""Which column of the table each column that comes out is made of."""

import numpy as np
import pandas as pd

from sosbands.tables import TableEncoder


def test_sources_follow_the_columns_that_come_out():
    rng = np.random.default_rng(0)
    n = 200
    frame = pd.DataFrame(
        {
            "shop": [f"s{k}" for k in rng.integers(0, 30, n)],
            "a_b": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "ward": rng.choice(["x_1", "y"], n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 9, n), "D"),
            "flag": rng.random(n) < 0.5,
        }
    )
    encoder = TableEncoder()
    points = encoder.fit_transform(frame, rng.normal(size=n))
    assert encoder.sources() == ["a_b", "day", "flag", "a_b", "ward", "ward", "shop"]
    assert list(encoder.get_feature_names_out()) == ["a_b", "day", "flag", "a_b_missing", "ward_x_1", "ward_y", "shop"]
    assert points.shape[1] == 7
