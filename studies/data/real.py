"""The twelve real data sets of the comparison study, by name, prepared as in the paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from sosbands._types import Array, IntArray
from sosbands.datasets.synthetic import RandomState, _random_source
from studies.data.catalogue import PAPER_SETS, PaperSet
from studies.data.sources import read_raw
from studies.data.steps import SelectFeatures, Step
from studies.data.table import Table

Source = Literal["sklearn", "folder", "openml"]


class Split(NamedTuple):
    """Row numbers of the three parts of a data set."""

    learning: IntArray
    calibration: IntArray
    test: IntArray


@dataclass(frozen=True, eq=False)
class RealData:
    """A real data set, ready for an experiment; get one with `load_real`.

    Attributes
    ----------
    name : str
        Its name in the paper.
    X, y : arrays of shape (n, n_features) and (n,)
        Features and target after the steps.
    feature_names, target_name : tuple of str, str
        Names of the columns.
    n_learning, n_calibration, n_test : int
        Sizes of the three parts in the paper.
    outlier_fraction : float
        Part of the learning rows that the paper removes as outliers of a homoscedastic Gaussian process. Nothing is
        removed here: it depends on the split and the point model.
    steps : mapping from str to str
        The steps taken, in order, each with its reason.
    dropped_features : mapping from str to str
        The features removed by the step "select-features", each with its reason.
    source : str
        Where the values came from.
    """

    name: str
    X: Array = field(repr=False)
    y: Array = field(repr=False)
    feature_names: tuple[str, ...]
    target_name: str
    n_learning: int
    n_calibration: int
    n_test: int
    outlier_fraction: float
    steps: Mapping[str, str]
    dropped_features: Mapping[str, str] = field(repr=False)
    source: str
    _rank: IntArray = field(repr=False)

    def split(self, random_state: RandomState = None) -> Split:
        """Draw the three parts, disjoint and of the paper's sizes.

        Rows are numbered by their values in the raw data before drawing. So a seed picks the same observations from
        every source, whatever the order of its rows, and also when steps that keep all rows are switched off.
        """
        order = np.argsort(self._rank)
        drawn = order[_random_source(random_state).permutation(len(order))]
        first, second = self.n_learning, self.n_learning + self.n_calibration
        return Split(drawn[:first], drawn[first:second], drawn[second : second + self.n_test])

    def to_frame(self) -> Any:
        """Features and target, which is the last column, as a pandas DataFrame."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError('to_frame needs pandas: pip install "sosbands[cli]"') from error
        return pd.DataFrame(np.column_stack([self.X, self.y]), columns=[*self.feature_names, self.target_name])


def real_names() -> list[str]:
    """Names of the twelve data sets."""
    return [paper.name for paper in PAPER_SETS]


def real_steps(name: str) -> dict[str, str]:
    """The paper's steps for a data set, in order, each with its reason; the keys are what `load_real` takes."""
    return {step.name: step.reason for step in _find(name).steps}


def load_real(
    name: str,
    *,
    source: Source | None = None,
    folder: str | Path | None = None,
    steps: Literal["paper"] | Iterable[str] = "paper",
) -> RealData:
    """Load a real data set of the comparison study.

    Parameters
    ----------
    name : str
        One of `real_names`; case does not matter, and "housing-log" is "Housing log".
    source : {"sklearn", "folder", "openml"}, optional
        Where the values come from. By default scikit-learn where it ships them (Diabetes), otherwise the folder; the
        network is used for "openml" only. Files are verified by their SHA-256, other sources by that of their values.
    folder : path, optional
        Folder with the CSV files; by default the environment variable SOSBANDS_DATA. If given, it is the source.
    steps : "paper" or names, default="paper"
        Which of `real_steps` to take: all of them, or those named, always in the paper's order. ``steps=()`` gives the
        raw data.

    Raises
    ------
    DatasetNotFoundError
        If the data are not where they were looked for; the message says how to get them.
    ValueError
        If an argument is wrong, or if the data found are not those of the paper.
    """
    paper = _find(name)
    chosen = _choose(paper, steps)
    values, where = read_raw(paper.raw, source, folder)
    table = Table.of(values, paper.raw.features, paper.raw.target)
    for step in chosen:
        table = step.apply(table)
    selections = [step.dropped for step in chosen if isinstance(step, SelectFeatures)]
    return RealData(
        name=paper.name,
        X=table.X,
        y=table.y,
        feature_names=table.features,
        target_name=table.target,
        n_learning=paper.n_learning,
        n_calibration=paper.n_calibration,
        n_test=paper.n_test,
        outlier_fraction=paper.outlier_fraction,
        steps={step.name: step.reason for step in chosen},
        dropped_features=dict(selections[0]) if selections else {},
        source=where,
        _rank=table.rank,
    )


def _find(name: str) -> PaperSet:
    key = " ".join(str(name).lower().replace("-", " ").replace("_", " ").split())
    for paper in PAPER_SETS:
        if paper.name.lower() == key:
            return paper
    raise ValueError(f"name={name!r}: expected one of {real_names()}")


def _choose(paper: PaperSet, steps: str | Iterable[str]) -> list[Step]:
    if isinstance(steps, str) and steps == "paper":
        return list(paper.steps)
    known = [step.name for step in paper.steps]
    named = list(steps) if isinstance(steps, Iterable) and not isinstance(steps, str) else [steps]
    if any(step not in known for step in named):
        raise ValueError(f"steps={steps!r}: {paper.name} expected 'paper' or some of {known}")
    return [step for step in paper.steps if step.name in named]
