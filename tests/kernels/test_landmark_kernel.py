"""LandmarkKernel: the values of the kernel itself, whatever the points, in blocks that share their memory."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from sosbands.kernels import StationaryKernel
from sosbands.kernels.features import LandmarkKernel

RNG = np.random.default_rng(0)
LANDMARKS = RNG.normal(3.0, 1.0, (40, 3))
FAR = np.array([[1e300, 0.0, -1e300], [1e8, 1e8, 1e8], [-1e4, 3.0, 3.0]])
POINTS = np.vstack([RNG.normal(3.0, 2.0, (50, 3)), LANDMARKS, FAR])


@pytest.mark.parametrize("lengthscale", [(0.7,), (0.5, 2.0, np.inf), (np.inf,), (1e-3,)])
@pytest.mark.parametrize("name", ["matern52", "matern32", "matern12", "gaussian"])
def test_values_of_the_kernel(name, lengthscale):
    kernel = StationaryKernel(name, lengthscale)
    quick = LandmarkKernel(kernel, LANDMARKS)
    found = quick(POINTS)
    np.testing.assert_allclose(found, kernel(POINTS, LANDMARKS), rtol=0, atol=4 * quick.rounding)
    assert quick.rounding < 1e-12


def test_other_kernels_speak_for_themselves():
    kernel = RBF(0.8)
    assert np.array_equal(LandmarkKernel(kernel, LANDMARKS)(POINTS), kernel(POINTS, LANDMARKS))


def test_a_wide_cloud_of_landmarks_is_compared_by_distances():
    wide = np.vstack([LANDMARKS, [[1e9, 0.0, 0.0]], [[1e9 + 0.5, 0.0, 0.0]]])
    kernel = StationaryKernel("matern52", (1.0,))
    found = LandmarkKernel(kernel, wide)(wide)
    assert np.array_equal(found, kernel(wide, wide))
    assert 0.6 < found[-1, -2] < 0.9  # by products it would be rounding alone
