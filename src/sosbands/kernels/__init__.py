"""How points are compared: kernels, lengthscales, and the finite features of a kernel."""

from sosbands.kernels.features import KernelFeatures, learn_features
from sosbands.kernels.kernels import Kernel, StationaryKernel, median_lengthscale, resolve_kernel

__all__ = ["Kernel", "KernelFeatures", "StationaryKernel", "learn_features", "median_lengthscale", "resolve_kernel"]
