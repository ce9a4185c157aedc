"""Dependence between samples, measured: arrays in, numbers out."""

from sosbands.stats.hsic import distance_correlation, distance_covariance_squared, hsic

__all__ = ["distance_correlation", "distance_covariance_squared", "hsic"]
