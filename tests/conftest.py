"""What every test shares: reproducible property tests, and plain asserts that explain themselves in helpers."""

import numpy as np
import pytest
from hypothesis import settings

pytest.register_assert_rewrite("contracts")

settings.register_profile("reproducible", derandomize=True, deadline=None, database=None)
settings.load_profile("reproducible")


@pytest.fixture(autouse=True)
def _seeded():
    """Models without `random_state` draw from NumPy's own generator: in a test that must not decide what it finds."""
    np.random.seed(0)  # noqa: NPY002
