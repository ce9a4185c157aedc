"""Columns of a table as a model of the user's knows them, from what the command line has read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin


class TableColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Some columns of a data frame in the types that pandas gives them, or as an array; nothing is learnt.

    Parameters
    ----------
    names : sequence of str
        The columns, in the order that the model wants. Numbers stay floats, NaN where a cell is missing.
    texts, booleans, dates : sequences of str
        Those among them that hold texts, which have NaN where they are empty; the texts "true" and "false", which
        become booleans (NaN where there is neither); and days since 1970, which become dates.
    as_array : bool
        For a model that was fitted without names.
    """

    def __init__(
        self,
        names: Sequence[str],
        texts: Sequence[str] = (),
        booleans: Sequence[str] = (),
        dates: Sequence[str] = (),
        as_array: bool = False,
    ) -> None:
        self.names = names
        self.texts = texts
        self.booleans = booleans
        self.dates = dates
        self.as_array = as_array

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Do nothing."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, X: Any) -> Any:
        """The columns of these rows."""
        table = X[list(self.names)].copy()
        for name in self.texts:
            table[name] = _objects(table[name], lambda text: text)
        for name in self.booleans:
            table[name] = _booleans(table[name])
        for name in self.dates:
            table[name] = _dates(table[name])
        return table.to_numpy() if self.as_array else table


def _objects(column: Any, read: Any) -> Any:
    """What `read` makes of each text; NaN where it is empty or missing, as pandas reads it."""
    gaps = column.isna() | (column == "")
    values = [np.nan if gap else read(value) for value, gap in zip(column.tolist(), gaps.tolist(), strict=True)]
    return type(column)(values, index=column.index, dtype=object)


def _booleans(column: Any) -> Any:
    values = _objects(column, lambda text: str(text).lower() == "true")
    return values if values.isna().any() else values.astype(bool)


def _dates(column: Any) -> Any:
    days = np.asarray(column, dtype=float)
    microseconds = np.where(np.isnan(days), np.nan, np.round(days * 86_400_000_000))
    stamps = np.full(len(days), np.datetime64("NaT", "us"))
    known = np.isfinite(microseconds)
    stamps[known] = microseconds[known].astype(np.int64).astype("datetime64[us]")
    return type(column)(stamps, index=column.index)
