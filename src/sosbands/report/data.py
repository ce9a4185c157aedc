"""What the page shows, as frozen arrays: computed once by `explore`, written by `render`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sosbands._types import Array, IntArray
from sosbands.conformal import Score
from sosbands.explanation import Explanation


@dataclass(frozen=True, eq=False)
class Axis:
    """What rows are put in order by: a feature, or the prediction.

    Attributes
    ----------
    name : str
    grid, prediction : ndarray of shape (g,)
        Values of the only feature, and the point model there. Empty beside other features: a curve would fix those
        somewhere, and no row is there.
    """

    name: str
    grid: Array
    prediction: Array


@dataclass(frozen=True, eq=False)
class Rows:
    """Some of the rows that were given, in random order.

    Attributes
    ----------
    numbers : ndarray of int
        Their positions in X.
    y, prediction : ndarray of shape (n,)
    positions : tuple of ndarray of shape (n,)
        Where they lie along each axis.
    """

    numbers: IntArray
    y: Array
    prediction: Array
    positions: tuple[Array, ...]

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, eq=False)
class Step:
    """The bands of one symmetry penalty.

    Attributes
    ----------
    symmetry_penalty : float
    certificate : dict
        Of the solve: status, dual_value, primal_value, gap, ... as `SoSBandRegressor.noise_.certificate`.
    squares : pair of int
        Numbers of squares below and above.
    active_lower, active_upper : ndarray of int
        Rows of X that shape each band.
    score : Score
        What calibration makes of prediction and bands, in units of the bands of this step.
    difference : float
        Mean absolute difference of the two bands at the learning points, in units of the target.
    lower_scores, upper_scores : ndarray of shape (m,)
        Scores of the calibration rows below and above.
    test : pair of ndarray of shape (n_test,)
        Band functions below and above at the test rows, in units of the base scale there.
    curve : pair of ndarray of shape (g,)
        The same along the only feature.
    others : tuple of Step
        The same bands with each other score, in the order of `SCORES`.
    """

    symmetry_penalty: float
    certificate: dict[str, Any]
    squares: tuple[int, int]
    active_lower: IntArray
    active_upper: IntArray
    score: Score
    difference: float
    lower_scores: Array
    upper_scores: Array
    test: tuple[Array, Array]
    curve: tuple[Array, Array]
    others: tuple[Step, ...] = ()


@dataclass(frozen=True, eq=False)
class BandPath:
    """The bands of one learning coverage for growing symmetry penalties.

    Attributes
    ----------
    learning_coverage : float
    chosen : int or None
        The step that `SoSBandRegressor` takes; None at learning coverages that are not in use.
    steps : tuple of Step
    test_support : ndarray of shape (n_test,)
        How much the learning rows say about the test rows; the same for all penalties.
    curve_support : ndarray of shape (g,)
        The same along the only feature.
    """

    learning_coverage: float
    chosen: int | None
    steps: tuple[Step, ...]
    test_support: Array
    curve_support: Array


@dataclass(frozen=True, eq=False)
class Exploration:
    """Everything on the page.

    Attributes
    ----------
    title, target_name : str
    confidence_level : float
        Shown first; the page offers others.
    calibration : {"symmetric", "asymmetric"}
        One quantile for both ends, or one for each.
    score : Score
        That of the step in use, whose words are those of the page.
    sentence : str
        The decision in words.
    reasons : tuple of str
        For each setting that was chosen its value, and what the best other value would have cost.
    settings : str
        What is in use beside the symmetry penalty, in words.
    base_scale : str
        Name of the unit in which bands are learnt and calibrated; "none" if that is the target's own.
    is_tuned : bool
        The data chose the symmetry penalty; otherwise it was given.
    model_name : str
        The point model, in words.
    n_given : int
        Rows given; those used are learning, calibration and test rows.
    n_test_drawn : int
        How many of the test rows are drawn and explained, the first ones; all of them are counted.
    axes : tuple of Axis
    learning, calibration_rows, test : Rows
    test_unit : ndarray of shape (n_test,)
        The base scale at the test rows, in units of the target.
    curve_unit : ndarray of shape (g,)
        The same along the only feature.
    path : BandPath
        That of the settings in use.
    coverages : tuple of BandPath
        The same with growing learning coverages; `path` is among them.
    why : Explanation or None
        Of the widths of the test rows that are drawn, at `confidence_level`, with rows numbered as in X; None if there
        is no typical width to compare them with.
    notes : tuple of str
        What was left out, in words.
    support_limit : float
        Rows with less support count as far from the learning rows.
    """

    title: str
    target_name: str
    confidence_level: float
    calibration: str
    score: Score
    sentence: str
    reasons: tuple[str, ...]
    settings: str
    base_scale: str
    is_tuned: bool
    model_name: str
    n_given: int
    n_test_drawn: int
    axes: tuple[Axis, ...]
    learning: Rows
    calibration_rows: Rows
    test: Rows
    test_unit: Array
    curve_unit: Array
    path: BandPath
    coverages: tuple[BandPath, ...]
    why: Explanation | None
    notes: tuple[str, ...]
    support_limit: float
