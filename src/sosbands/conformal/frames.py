"""Intervals as a data frame, if the user wants one: with the index of the rows, and columns with names."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from sosbands._types import Array

NUMPY = "default"
OUTPUTS = (NUMPY, "pandas", "polars")


def interval_names(levels: Sequence[float], many: bool, ends: Sequence[str] = ("lower", "upper")) -> list[str]:
    """Columns of intervals at these levels: "lower" and "upper", of several levels such as "lower_90"."""
    return [f"{end}_{100 * level:.10g}" for level in levels for end in ends] if many else list(ends)


def quantile_names(levels: Sequence[float], many: bool = True) -> list[str]:
    """Columns of quantiles: "quantile_5", "quantile_50"; "quantile" of one level that came alone."""
    return [f"quantile_{100 * level:.10g}" for level in levels] if many else ["quantile"]


def as_frame(ends: Array, levels: Sequence[float], kind: str, index: Any = None) -> Any:
    """Intervals of shape (n, 2) or (n, 2, k) as a data frame with the columns of `interval_names`."""
    values = ends if ends.ndim == 2 else np.swapaxes(ends, 1, 2).reshape(len(ends), -1)
    return named_columns(values, interval_names(levels, ends.ndim == 3), kind, index)


def named_columns(values: Array, names: Sequence[str], kind: str, index: Any = None) -> Any:
    """Columns of an array of shape (n, k) as a data frame."""
    library = import_module(kind)
    columns = {name: values[:, k] for k, name in enumerate(names)}
    return library.DataFrame(columns, index=index) if kind == "pandas" else library.DataFrame(columns)
