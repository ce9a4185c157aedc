"""What a comparison found: rows of its splits, a summary of each method, and paired differences."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student_t

from sosbands._arguments import check, is_count, is_fraction, read_level
from sosbands._extras import need
from sosbands._types import IntArray
from sosbands._words import many
from sosbands.comparison.store import StoreError, read_store
from sosbands.comparison.text_table import MISSING, TextTable
from sosbands.metrics.intervals import LEAST_FOR_SETS, SET_SIZE
from sosbands.metrics.local import share_range


class Split(NamedTuple):
    """Positions of the learning, calibration and test rows, each increasing."""

    learn: IntArray
    calibration: IntArray
    test: IntArray


@dataclass(frozen=True)
class SplitSizes:
    """How many rows are learnt from, calibrated on and tested on."""

    n_learn: int
    n_calibration: int
    n_test: int

    @classmethod
    def of(cls, n_rows: int, calibration_size: Any, test_size: Any) -> SplitSizes:
        """Sizes from fractions of all rows, or counts; the other rows are learnt from."""
        n_calibration = _count("calibration_size", calibration_size, n_rows)
        n_test = _count("test_size", test_size, n_rows)
        n_learn = n_rows - n_calibration - n_test
        if n_learn < 2:
            raise ValueError(
                f"calibration_size={calibration_size!r} and test_size={test_size!r} leave {n_learn} of {n_rows} rows "
                "to learn from: expected at least 2"
            )
        return cls(n_learn, n_calibration, n_test)

    def split(self, seed: int) -> Split:
        """Random division; it depends on the sizes and the seed only."""
        # The stream [seed, 0] is not the one that a method makes of the same seed.
        n = self.n_learn + self.n_calibration + self.n_test
        order = np.random.default_rng([seed, 0]).permutation(n).astype(np.intp)
        test, calibration, learn = np.split(order, [self.n_test, self.n_test + self.n_calibration])
        return Split(np.sort(learn), np.sort(calibration), np.sort(test))


def _count(name: str, size: Any, n_rows: int) -> int:
    if is_fraction(size):
        return max(1, round(float(size) * n_rows))
    check(name, size, is_count(size) and size >= 1, "a fraction of the rows in (0, 1) or a number of rows >= 1")
    return int(size)


class MeanInterval(NamedTuple):
    """A mean and its confidence interval."""

    mean: float
    lower: float
    upper: float


def corrected_interval(differences: ArrayLike, test_ratio: float, confidence_level: float = 0.95) -> MeanInterval:
    """Corrected resampled t interval of Nadeau and Bengio (Machine Learning 52, 2003).

    ``mean +- t sqrt((1/J + test_ratio) s^2)`` with the variance ``s^2`` of the J differences and the quantile of
    Student's t with J - 1 degrees of freedom. Repeated splits share rows, so their results are correlated and the
    usual ``s^2/J`` is too small; the correction takes the correlation to be ``n_test/n``, the share of common test
    rows, which adds ``n_test/(n - n_test)`` to 1/J.

    Parameters
    ----------
    differences : array-like of shape (J,)
        One difference per split.
    test_ratio : float
        Test rows over all other rows; 0 for independent repetitions, which gives the usual interval.
    confidence_level : float
        In (0, 1).

    Returns
    -------
    MeanInterval
        With NaN ends for J < 2, or if a difference is not finite.
    """
    d = np.asarray(differences, dtype=float)
    if d.ndim != 1:
        raise ValueError(f"differences has shape {d.shape}: expected one dimension")
    check("test_ratio", test_ratio, test_ratio >= 0, "a number >= 0")
    level = read_level(confidence_level)
    with np.errstate(invalid="ignore"):
        mean = float(d.mean()) if len(d) else np.nan
    if len(d) < 2 or not np.isfinite(d).all():
        return MeanInterval(mean, np.nan, np.nan)
    quantile = student_t.ppf((1 + level) / 2, len(d) - 1)
    half = float(quantile * np.sqrt((1 / len(d) + test_ratio) * d.var(ddof=1)))
    return MeanInterval(mean, mean - half, mean + half)


PART = "method "  # of a store: "method sos" holds the settings of the method sos
NO_SETS = "its sets are neighbours in dense columns that hold finite numbers in every row, and X has none"
SUMMARY = ("coverage", "mean_width", "interval_score", "worst_set_coverage")
NOT_METRICS = {"method", "repetition", "confidence_level", "seed", "n_learn", "n_calibration"}
NOT_METRICS |= {"by", "error_type", "error", "error_place", "warnings"}


def with_level(rows: list[dict[str, Any]], confidence_level: float) -> list[dict[str, Any]]:
    """Rows as the runner gives them, with the level, which they do not hold."""
    first = ("method", "repetition")
    return [{name: row[name] for name in first} | {"confidence_level": confidence_level} | row for row in rows]


@dataclass(frozen=True, repr=False)
class ComparisonResult:
    """Rows of a comparison, one per method and repetition.

    Attributes
    ----------
    rows : list of dict
        ``method``, ``repetition``, ``confidence_level``, ``seed``, ``n_learn``, ``n_calibration``, the metrics (missing
        if the method failed), ``by`` (a list with a dict for each group, if groups were given), ``fit_seconds``,
        ``calibrate_seconds``, ``predict_seconds``, ``seconds`` of it all, ``n_warnings``, ``warnings`` (their
        categories), ``error_type``, ``error``, ``error_place``.
    methods : tuple of str
        Names of the methods, in order.
    confidence_level : float
        Of the intervals.
    sizes : SplitSizes
        Numbers of learning, calibration and test rows.
    environments : list of dict
        Versions, processor and threads; several if a stored run was continued elsewhere.
    """

    rows: list[dict[str, Any]]
    methods: tuple[str, ...]
    confidence_level: float
    sizes: SplitSizes
    environments: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def from_store(cls, path: str | os.PathLike[str]) -> ComparisonResult:
        """Read what `compare` has stored so far."""
        found = read_store(path)
        if "sizes" not in found.settings:
            raise StoreError(f"store={os.fspath(path)!r}: expected a store that compare has written")
        methods = [name.removeprefix(PART) for name in found.parts if name.startswith(PART)]
        rows = sorted(found.rows, key=lambda row: (row["repetition"], methods.index(row["method"])))
        sizes = SplitSizes(**found.settings["sizes"])
        level = found.settings["confidence_level"]
        return cls(with_level(rows, level), tuple(methods), level, sizes, found.environments)

    @property
    def failures(self) -> list[dict[str, Any]]:
        """Rows of the runs that failed."""
        return [row for row in self.rows if row["error_type"] is not None]

    @property
    def metrics(self) -> list[str]:
        """Names of the numbers that rows hold."""
        names = dict.fromkeys(name for row in self.rows for name in row)
        return [name for name in names if name not in NOT_METRICS]

    def to_frame(self) -> Any:
        """The rows as a pandas data frame."""
        return need("pandas").DataFrame(self.rows)

    def table(self, metrics: Sequence[str] | None = None) -> TextTable:
        """Summary with one row per method.

        Parameters
        ----------
        metrics : sequence of str, optional
            By default coverage, mean width, interval score and worst-set coverage.

        Returns
        -------
        TextTable
            ``method``, for each metric ``<name>_mean`` and ``<name>_sd`` over the repetitions that succeeded,
            ``fit_seconds`` and ``predict_seconds`` (means), ``n`` and ``n_failed`` repetitions, ``n_warnings`` in all.
        """
        names = [name for name in SUMMARY if name in self.metrics] if metrics is None else list(metrics)
        for name in names:
            self._check_metric(name)
        made = [self._summary(method, names) for method in self.methods]
        return TextTable([row for row, _ in made], [shown for _, shown in made])

    def differences(
        self, metric: str = "interval_score", reference: str | None = None, confidence_level: float = 0.95
    ) -> TextTable:
        """Paired differences between methods, with confidence intervals.

        Repetitions are splits of one data set and share rows, so that the usual paired t interval is too narrow: the
        interval is the corrected resampled t interval (`corrected_interval`), with the ratio of test rows to all other
        rows. It is about data sets of this size from the same source. It is not adjusted for the number of pairs.

        Parameters
        ----------
        metric : str
            One of `metrics`.
        reference : str, optional
            The method that the others are compared with; by default all pairs.
        confidence_level : float
            Of the intervals of the differences.

        Returns
        -------
        TextTable
            ``method``, ``reference``, ``metric``, ``difference`` (mean of method minus reference), ``lower``,
            ``upper``, and ``n``, the repetitions in which both succeeded.
        """
        self._check_metric(metric)
        if reference is not None and reference not in self.methods:
            raise ValueError(f"reference={reference!r}: expected one of {', '.join(self.methods)}")
        others = [method for method in self.methods if method != reference]
        pairs = list(combinations(self.methods, 2)) if reference is None else [(name, reference) for name in others]
        values = {method: self._by_repetition(method, metric) for method in self.methods}
        rows: list[dict[str, Any]] = []
        shown: list[dict[str, Any]] = []
        for method, other in pairs:
            common = [repetition for repetition in values[method] if repetition in values[other]]
            with np.errstate(invalid="ignore"):
                d = [np.subtract(values[method][repetition], values[other][repetition]) for repetition in common]
            found = dict(zip(("difference", "lower", "upper"), self.interval_of(d, confidence_level), strict=True))
            rows.append({"method": method, "reference": other, "metric": metric, **found, "n": len(d)})
            shown.append(rows[-1] | {name: MISSING for name, value in found.items() if np.isnan(value)})
        return TextTable(rows, shown)

    def by_group(self) -> TextTable:
        """Coverage, width and score of each group of the rows (`by`), with one row per group and method.

        Returns
        -------
        TextTable
            ``group``, ``method``, and means over the repetitions with rows of the group: ``n`` rows, ``coverage``,
            ``mean_width``, ``interval_score``. ``coverage_from`` and ``coverage_to`` are the ends of Wilson's interval
            (95 %) for as many rows as one repetition has: repetitions share rows, and more of them add none.
        """
        found: dict[tuple[Any, str], list[dict[str, Any]]] = {}
        for row in self.rows:
            for each in row.get("by", ()):
                found.setdefault((each["group"], row["method"]), []).append(each)
        labels = dict.fromkeys(label for label, _ in found)
        rows = []
        for label in labels:
            for method in [name for name in self.methods if (label, name) in found]:
                names = ("n", "coverage", "mean_width", "interval_score")
                row = {name: float(np.mean([each[name] for each in found[label, method]])) for name in names}
                low, high = share_range(row["coverage"] * row["n"], row["n"]).tolist()
                first = {"group": label, "method": method, "n": row.pop("n"), "coverage": row.pop("coverage")}
                rows.append({**first, "coverage_from": low, "coverage_to": high, **row})
        return TextTable(rows)

    def to_markdown(self) -> str:
        """The summary in Markdown."""
        return self.table().to_markdown()

    def __repr__(self) -> str:
        return f"ComparisonResult: {self.describe()}"

    def describe(self, metrics: Sequence[str] | None = None) -> str:
        """Sizes, the summary of each method with these metrics, and what failed or was warned of, in words."""
        sizes, n = self.sizes, len({row["repetition"] for row in self.rows})
        lines = [
            f"{many(len(self.methods), 'method')}, {many(n, 'repetition')} at level {self.confidence_level:g}",
            f"rows: {sizes.n_learn} to learn, {sizes.n_calibration} to calibrate, {sizes.n_test} to test",
            "",
            repr(self.table(metrics)),
        ]
        groups = self.by_group()
        lines += ["", repr(groups)] if groups else []
        return "\n".join([*lines, *([""] if self.remarks else []), *self.remarks])

    @property
    def remarks(self) -> list[str]:
        """What went wrong, what was warned of, and what cannot be said, in words."""
        failed = Counter(f"{row['method']}: {row['error_type']}: {row['error']}" for row in self.failures)
        lines = [f"failed {many(count, 'time')}, {what}" for what, count in failed.items()]
        warned = Counter(f"{row['method']}: {row['warnings']}" for row in self.rows if row["n_warnings"])
        lines += [f"warned in {many(count, 'repetition')}, {what}" for what, count in warned.items()]
        if "worst_set_coverage" not in self.metrics and len(self.failures) < len(self.rows):
            n = self.sizes.n_test
            few = f"{n} test rows are too few, as two of its sets of {SET_SIZE} neighbours need {LEAST_FOR_SETS}"
            lines.append(f"no worst_set_coverage: {few if n < LEAST_FOR_SETS else NO_SETS}")
        if len(self.environments) > 1:
            lines.append(f"computed in {len(self.environments)} environments, see .environments")
        return lines

    def interval_of(self, values: ArrayLike, confidence_level: float = 0.95) -> MeanInterval:
        """Mean of one value per repetition, with its corrected resampled t interval (NaN for less than two)."""
        ratio = self.sizes.n_test / (self.sizes.n_learn + self.sizes.n_calibration)
        return corrected_interval(values, ratio, confidence_level)

    def _check_metric(self, metric: str) -> None:
        if metric not in self.metrics:
            raise ValueError(f"metric {metric!r}: expected one of {', '.join(self.metrics)}")

    def _by_repetition(self, method: str, metric: str) -> dict[int, float]:
        rows = [row for row in self.rows if row["method"] == method and row["error_type"] is None]
        return {row["repetition"]: row[metric] for row in rows if metric in row}

    def _summary(self, method: str, metrics: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
        """A row of the summary, and how it is shown: mean and standard deviation in one cell."""
        row: dict[str, Any] = {"method": method}
        shown: dict[str, Any] = {"method": method}
        for name in metrics:
            mean, sd = row[f"{name}_mean"], row[f"{name}_sd"] = _mean_and_sd(self._by_repetition(method, name))
            text = f"{mean:.4g}" if np.isnan(sd) else f"{mean:.4g} ± {sd:.2g}"
            shown[name] = MISSING if np.isnan(mean) else text
        for name in ("fit", "predict"):
            seconds, _ = _mean_and_sd(self._by_repetition(method, f"{name}_seconds"))
            row[f"{name}_seconds"] = seconds
            shown[f"{name} s"] = MISSING if np.isnan(seconds) else f"{seconds:.2g}"
        mine = [entry for entry in self.rows if entry["method"] == method]
        failed = sum(entry["error_type"] is not None for entry in mine)
        counts = {"n": len(mine) - failed, "failed": failed, "warnings": sum(entry["n_warnings"] for entry in mine)}
        return {**row, **{name if name == "n" else f"n_{name}": k for name, k in counts.items()}}, {**shown, **counts}


def _mean_and_sd(values: dict[int, float]) -> tuple[float, float]:
    """NaN for the mean of nothing, and for the standard deviation of less than two or of infinite values."""
    x = np.array(list(values.values()), dtype=float)
    mean = float(x.mean()) if len(x) else np.nan
    return mean, float(x.std(ddof=1)) if len(x) > 1 and np.isfinite(x).all() else np.nan
