"""The numbers printed in the paper's tables, from ``paper_numbers.csv``."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from studies.runs.methods import PAPER, PAPER_CQR

METHODS = {PAPER_CQR: "cqr", "het-gp": "het_gp", "gp": "hom_gp", PAPER: "pen_ksos"}


class Printed(NamedTuple):
    """A printed number and its standard deviation over repetitions, None where none is printed."""

    value: float
    sd: float | None


def printed(metric: str, dataset: str, method: str = "") -> Printed | None:
    """What the paper prints, None if it does not.

    Parameters
    ----------
    metric : str
        Such as "mean_width" or "marginal_coverage"; the first column of the file.
    dataset : str
        A data set of the paper.
    method : str
        Our name of a method in its tables; "" for tables of CQR and the paper's bands together.
    """
    name = METHODS.get(method, method)
    return _numbers().get((metric, dataset, name or "cqr+pen_ksos")) or _numbers().get((metric, dataset, name))


@cache
def _numbers() -> dict[tuple[str, str, str], Printed]:
    text = files("studies.runs").joinpath("paper_numbers.csv").read_text(encoding="utf-8")
    return {
        (row["metric"], row["dataset"], row["method"]): Printed(
            float(row["value"]), float(row["sd"]) if row["sd"] else None
        )
        for row in csv.DictReader(text.splitlines())
    }
