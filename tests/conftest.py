"""What every test shares: reproducible property tests, and plain asserts that explain themselves in helpers."""

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("contracts")

settings.register_profile("reproducible", derandomize=True, deadline=None, database=None)
settings.load_profile("reproducible")
