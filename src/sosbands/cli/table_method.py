"""An interval regressor of numbers for the columns of a table, prepared by what the learning rows say."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator, clone

from sosbands._types import Array


class TableMethod(BaseEstimator):  # type: ignore[misc]
    """A method behind a preprocessor that is fitted where the method is: to the rows given to `fit`, and no others.

    Parameters
    ----------
    method : interval regressor
        It gets data frames of finite numbers. All rows given to `fit` are learnt from: its `calibration_size` must be
        None, as rows that it held back would have a say in the preprocessing.
    preprocessor : transformer
        Of data frames with texts and gaps; its output is made a pandas data frame.
    """

    def __init__(self, method: Any, preprocessor: Any) -> None:
        self.method = method
        self.preprocessor = preprocessor

    def fit(self, X: Any, y: Any) -> Self:
        """Fit both to the learning rows."""
        if self.method.calibration_size is not None:
            raise ValueError(f"method has calibration_size={self.method.calibration_size!r}: expected None")
        self.preprocessor_ = clone(self.preprocessor).set_output(transform="pandas")
        learning = self.preprocessor_.fit_transform(X, y)  # in which no row knows its own target
        self.method_ = clone(self.method).fit(learning, y)
        return self

    def conformalize(self, X: Any, y: Any) -> Self:
        """Calibrate the method."""
        self.method_.conformalize(self.preprocessor_.transform(X), y)
        return self

    def predict_interval(self, X: Any, confidence_level: float) -> Array:
        """Intervals of the method."""
        return self.method_.predict_interval(self.preprocessor_.transform(X), confidence_level)  # type: ignore[no-any-return]
