"""The entries by name, in the order of the paper, then those beyond it, and the claims about all of them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from studies.runs.config import Config, Rows


@dataclass(frozen=True)
class Entry:
    """A figure or table: a file of `entries/`, named like it.

    Attributes
    ----------
    name : str
        With hyphens where the file has underscores.
    source : str
        Where the paper has it, or the question that it answers.
    title : str
    """

    name: str
    source: str
    title: str

    def compute(self, config: Config) -> Rows:
        """Its rows, computed or stored."""
        rows: Rows = self._module().compute(config)
        return rows

    def draw(self, rows: Rows) -> Any:
        """A matplotlib figure or a `TextTable` of its rows."""
        return self._module().draw(rows)

    def _module(self) -> Any:
        return import_module(f"studies.entries.{self.name.replace('-', '_')}")


ENTRIES = (
    Entry("penalty-bands", "figure, main text", "Impact of the symmetry penalty on the bands"),
    Entry("criterion-maps", "figure, main text", "HSIC over penalty and lengthscale"),
    Entry("synthetic-main", "figure, main text", "Mean width and local coverage, cases 1, 3 and 4"),
    Entry("penalty-histograms", "figure, main text", "Histograms of the selected penalty, cases 1 and 2"),
    Entry("real-width", "table, main text", "Mean width on twelve data sets"),
    Entry("sdp-time", "figure, appendix", "Time of the SDP and of the dual problem"),
    Entry("width-penalty-maps", "figure, appendix", "HSIC over penalty and lengthscale for four width penalties"),
    Entry("warm-start", "figure, appendix", "Iterations of cold and warm starts"),
    Entry("two-seeds", "figure, appendix", "Heteroscedastic Gaussian process and kernel sums of squares, two seeds"),
    Entry("calibration", "tables, appendix", "Symmetric and asymmetric calibration"),
    Entry("calibration-increase", "table, appendix", "Width added by asymmetric calibration"),
    Entry("penalty-kinds", "figure, appendix", "Operator and training-set penalty"),
    Entry("synthetic-cases", "figures, appendix", "Mean width, local coverage and distance to the oracle, cases 1-6"),
    Entry("large-solutions", "figures, appendix", "Bands of cases 1-6 learnt from 1000 points"),
    Entry("real-data", "table, appendix", "Description of the twelve data sets"),
    Entry("real-coverage", "table, appendix", "Marginal coverage on twelve data sets"),
    Entry("real-worst-set", "figure, appendix", "Worst-set coverage on twelve data sets"),
    Entry("real-penalties", "figure, appendix", "Histograms of the selected penalty on real data"),
    Entry("stopping-rule", "beyond: what does the paper's stopping rule change?", "Loose and certified solutions"),
    Entry("criteria", "beyond: which criterion and which symmetry rule?", "Criteria and symmetry rules, cases 1-6"),
    Entry(
        "feature-lengthscales",
        "beyond: one lengthscale per feature?",
        "One common lengthscale, and one per side and feature",
    ),
    Entry("residual-kinds", "beyond: which residuals?", "In-sample and out-of-fold residuals, boosting model"),
    Entry("more-competitors", "beyond: further competitors", "Interval scores of all methods on twelve data sets"),
    Entry("outliers", "beyond: the paper's outlier rule", "Widths with and without the removal of outliers"),
    Entry("open-settings", "beyond: what the paper leaves open", "Widths with other settings of three methods"),
    Entry("ablation", "beyond: what does each part bring?", "The automatic choice with one part left out"),
    Entry("norm-penalties", "beyond: do lam1 and lam2 matter?", "Bands with other penalties on the norms"),
    Entry("claims", "the paper's sentences", "Claims of the paper and what the stored rows say"),
)


def find_entry(name: str) -> Entry:
    """The entry of that name."""
    for entry in ENTRIES:
        if entry.name == name:
            return entry
    raise ValueError(f"name={name!r}: expected one of {[entry.name for entry in ENTRIES]}")
