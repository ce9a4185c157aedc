"""How points are compared: kernels, lengthscales, and the finite features of a kernel."""

from sosbands.kernels.features import KernelFeatures, learn_features
from sosbands.kernels.lengthscale import median_lengthscale
from sosbands.kernels.resolve import Kernel, resolve_kernel
from sosbands.kernels.stationary import StationaryKernel

__all__ = [
    "Kernel",
    "KernelFeatures",
    "StationaryKernel",
    "learn_features",
    "median_lengthscale",
    "resolve_kernel",
]
