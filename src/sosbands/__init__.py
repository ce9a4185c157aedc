"""Prediction intervals that are honest about skewed noise."""
