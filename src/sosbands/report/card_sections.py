"""What a card consists of: sections with words, facts and tables, and those about the model itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from sosbands._words import many
from sosbands.conformal import move_in_words, points_needed, side_levels
from sosbands.metrics.local import long_run_coverage
from sosbands.point_models.blend import model_words
from sosbands.regressors.summary import paragraphs
from sosbands.tables import TableEncoder
from sosbands.tables.columns import CATEGORY, NUMBER
from sosbands.tables.rows import NUMBERS

PROPER = ("Bayesian", "Gaussian", "Huber", "Poisson", "Tweedie")  # names in names of classes
KERNELS = {"matern52": "Matérn 5/2", "matern32": "Matérn 3/2", "matern12": "exponential"}
BAR = 150.0  # width of the picture of a share, in pixels
BOTH = "both"
MOST_COLUMNS, MOST_GROUPS = 60, 40  # rows of the tables on a card
SETTINGS = {  # attribute of the model: what it is called in reasons, and what it means
    "base_scale": ("base scale", "unit in which bands are told"),
    "noise_features": ("noise features", "what bands look at"),
    "lengthscale": ("lengthscale", "distance over which bands change"),
    "width_penalty": ("width penalty", "how closely bands follow the residuals"),
    "learning_coverage": ("learning coverage", "share of learning rows inside before calibration"),
    "symmetry_penalty": ("symmetry penalty", "0: two independent bands; infinite: one for both sides"),
    "conformal_score": ("conformal score", "whether calibration adds to bands or multiplies them"),
}


@dataclass(frozen=True)
class Bar:
    """A share with its sampling error, drawn from `start` to 1 with a mark at the level."""

    share: float
    ends: tuple[float, float]
    level: float
    start: float


@dataclass(frozen=True)
class Table:
    """Cells are texts, or pictures of a share."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str | Bar, ...], ...]


@dataclass(frozen=True)
class Section:
    """One part of a card, from top to bottom: warnings, facts (name and value), words, points of a list, tables."""

    title: str
    words: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    tables: tuple[Table, ...] = ()
    points: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    heading: str = "h2"

    def html(self) -> str:
        """The section as HTML."""
        parts = [f'<p class="warning">{text_html(text)}</p>' for text in self.warnings]
        if self.facts:
            pairs = (f"<div><dt>{text_html(name)}</dt><dd>{text_html(value)}</dd></div>" for name, value in self.facts)
            parts.append(f"<dl>{''.join(pairs)}</dl>")
        parts += [f"<p>{text_html(text)}</p>" for text in self.words]
        if self.points:
            parts.append(f"<ul>{''.join(f'<li>{text_html(text)}</li>' for text in self.points)}</ul>")
        parts += [_table(table) for table in self.tables]
        title = f"<{self.heading}>{text_html(self.title)}</{self.heading}>"
        return f'<section class="{self.heading}">{title}{"".join(parts)}</section>'


def text_html(text: str) -> str:
    """Escaped, with no line break between a number and its per cent sign."""
    return escape(text).replace(" %", "&nbsp;%")


def plain(words: str) -> str:
    """Names of classes, such as "HistGradientBoostingRegressor", as words: "gradient boosting"."""

    def spelled(name: re.Match[str]) -> str:
        first, *others = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*", name[1])
        parts = [first if first in PROPER or first.isupper() else first.lower(), *(each.lower() for each in others)]
        return " ".join(parts)

    return re.sub(r"\b(?:Hist)?([A-Z][A-Za-z0-9]*?)(?:Regressor|CV)?\b", spelled, words)


def percent(share: float) -> str:
    """Such as "91.3 %"."""
    return f"{100 * share:.1f} %"


def level_words(level: float) -> str:
    """Such as "90 %", with as many digits as it has."""
    return f"{100 * level:.6g} %"


def number(value: float) -> str:
    """Four digits, without an exponent where that is short."""
    if np.isinf(value):
        return "infinite"
    return f"{float(f'{value:.4g}'):.10g}" if 1e-4 <= abs(value) < 1e9 or value == 0 else f"{value:.4g}"


def start_of(lows: Sequence[float]) -> float:
    """Where pictures of shares begin: the lowest end, rounded down to a tenth below it."""
    return max(0.0, int(10 * min(lows, default=0.5) - 1e-9) / 10)


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{text_html(name)}</th>' for name in table.header)
    rows = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in table.rows)
    caption = f"<caption>{text_html(table.caption)}</caption>" if table.caption else ""
    return f'<div class="scroll"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cell(cell: str | Bar) -> str:
    return f"<td>{_bar(cell) if isinstance(cell, Bar) else text_html(cell)}</td>"


def _bar(bar: Bar) -> str:
    def at(share: float) -> str:
        return f"{4 + (BAR - 8) * (share - bar.start) / max(1 - bar.start, 1e-9):.1f}"

    low, high = bar.ends
    kind = "apart" if high < bar.level else "near"
    words = escape(f"{percent(bar.share)}, 95 % of {percent(low)} to {percent(high)}", quote=True)
    return (
        f'<svg class="bar" width="{BAR:g}" height="16" viewBox="0 0 {BAR:g} 16" '
        f'preserveAspectRatio="none" role="img" aria-label="{words}">'
        f'<line class="axis" x1="{at(bar.start)}" x2="{at(1.0)}" y1="8" y2="8"/>'
        f'<line class="level" x1="{at(bar.level)}" x2="{at(bar.level)}" y1="1" y2="15"/>'
        f'<line class="{kind}" x1="{at(low)}" x2="{at(high)}" y1="8" y2="8"/>'
        f'<circle class="{kind}" cx="{at(bar.share)}" cy="8" r="3.5"/></svg>'
    )


def learnt(model: Any) -> Section:
    """The point model, and how many rows served for what."""
    said = paragraphs(model)
    given = len(np.union1d(model.learning_rows_, model.calibration_rows_)) + model.n_unused_rows_
    facts = [
        ("predictions by", plain(model_words(model.estimator_))),
        ("rows given", str(given)),
        ("learnt from", str(len(model.learning_rows_))),
        ("residuals", f"{model.residual_rule_}, root mean square {number(model.residual_rms_)}"),
    ]
    words = ["Bands were learnt from the residuals, below and above the prediction."]
    words += [said[subject] for subject in ("rows", "asymmetry", "shape") if subject in said]
    return Section("How it was learnt", tuple(words), tuple(facts))


def columns(model: Any, target: str | None) -> Section:
    """Names and kinds."""
    kinds = column_kinds(model)
    encoder = model.reader_.preprocessor
    levels = encoder.levels_ if isinstance(encoder, TableEncoder) else {}
    rows = [
        (name, kind + (f", {many(len(levels[name]), 'text')}" if kind == CATEGORY and name in levels else ""))
        for name, kind in kinds.items()
    ]
    more = f"and {len(rows) - MOST_COLUMNS} more columns" if len(rows) > MOST_COLUMNS else ""
    words = [f"Predicted: {target}." if target else "", paragraphs(model).get("columns", ""), more]
    table = Table("", ("column", "kind"), tuple(rows[:MOST_COLUMNS]))
    return Section(f"Columns ({len(rows)})", tuple(filter(None, words)), tables=(table,), heading="h3")


def column_kinds(model: Any) -> dict[str, str]:
    """Kinds of the columns of the table by name; of a transformer of the user's they are not known."""
    recorded = getattr(model, "columns_", None)
    if recorded is not None:
        return dict(recorded["kinds"])
    if isinstance(model.reader_.preprocessor, TableEncoder):
        return dict(model.reader_.preprocessor.kinds_)
    names = getattr(model, "feature_names_in_", None)
    names = [f"feature {k}" for k in range(model.n_features_in_)] if names is None else names
    return {str(name): NUMBER if model.reader_.kind == NUMBERS else "as given" for name in names}


def settings(model: Any) -> Section:
    """Each setting in use, whether it was chosen, and why."""
    tuning = model.tuning_
    reasons = () if tuning is None else tuning.reasons
    rows = []
    for name, (called, meaning) in SETTINGS.items():
        why = next((reason.partition(": ")[2] for reason in reasons if reason.startswith(called)), "")
        why = why.replace("with inf,", "with infinite,")
        given = getattr(model, name)
        chosen = isinstance(given, str) and given == "auto"
        how = why or ("chosen by the data" if chosen and tuning is not None else "default" if chosen else "set")
        rows.append((called, _value(model, name), how, meaning))
    kernel = model.noise_.settings.kernel
    kernel = kernel if isinstance(kernel, str) else f"given ({getattr(kernel, '__name__', type(kernel).__name__)})"
    facts = [("kernel", KERNELS.get(kernel, plain(kernel))), ("calibration", model.calibration)]
    words, warnings = [], []
    if tuning is not None:
        words.append(f"{tuning.sentence} {many(len(tuning.evaluations), 'candidate')} were compared on held-out rows.")
        if tuning.timed_out or tuning.interrupted:
            warnings.append("The choice ended before everything had been tried; the best found by then was taken.")
    table = Table("", ("setting", "in use", "why", "meaning"), tuple(rows))
    return Section("Settings", tuple(words), tuple(facts), (table,), warnings=tuple(warnings), heading="h3")


def _value(model: Any, name: str) -> str:
    noise = model.noise_
    if name in ("base_scale", "noise_features"):
        return str(getattr(noise.view, name)).replace("+", " and ")
    known = {"conformal_score": noise.score.name, "lengthscale": noise.lengthscale}
    value = known[name] if name in known else getattr(noise.settings, name)
    if value is None:
        return "the kernel's own"
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, dict):
        return f"{_array(value['lower'])} below, {_array(value['upper'])} above"
    return value if isinstance(value, str) else _array(value)


def _array(value: Any) -> str:
    return ", ".join(number(each) for each in np.ravel(np.asarray(value, dtype=float)).tolist())


def certificate(model: Any) -> Section:
    """How certain it is that the bands solve their problem."""
    found = model.noise_.certificate
    facts = [
        ("status", str(found["status"])),
        ("relative gap", f"{found['gap']:.1e}"),
        ("tolerance asked for", f"{model.noise_.settings.tol:.1e}"),
        ("kernel features", str(found["n_features"])),
        ("trace left out", f"{found['trace_left_out']:.1e}"),
        ("rows learnt from", str(model.noise_.n_rows)),
    ]
    failed = () if found["status"] == "converged" else ("The bands are not certified to the tolerance asked for.",)
    said = paragraphs(model)
    words = tuple(said[subject] for subject in ("certificate", "nested") if subject in said)
    return Section("Certificate", words, tuple(facts), warnings=failed, heading="h3")


def promised(model: Any, side: str) -> tuple[list[str], list[str]]:
    """The promise in words; and warnings, where there is none."""
    if "calibration_" not in vars(model):
        return [], ["Not calibrated: nothing is promised, and there are no intervals yet."]
    known = model.n_learnt_calibration_rows_
    if known:
        rows = f"{known} of {many(len(model.calibration_), 'calibration row')}"
        return [], [f"NO coverage is promised: {rows} had been learnt from. Calibration takes rows that have not."]
    words = [paragraphs(model, side)["promise"]]
    if side != BOTH:
        where = "above" if side == "upper" else "below"
        level = level_words(1 - model.confidence_level)
        words.append(f"Asked for {side} ends alone: at most {level} of new rows lie {where} theirs.")
    return words, []


def calibration(model: Any, level: float, lower_share: float, side: str) -> Section:
    """Rows and quantiles, with what chance makes of the promise."""
    if "calibration_" not in vars(model):
        return Section("Calibration", ("There is none yet.",), heading="h3")
    made = model.calibration_
    facts = (("rows", str(len(made))), ("confidence level", level_words(level)), ("kind", model.calibration))
    words, tables = paragraphs(model, side).get("calibration", ""), list[Table]()
    if not made.copies and made.weights is None and made.decay is None:
        words = (
            "Given these calibration rows the share of all rows to come that an interval (or an end) holds is itself "
            "random: the last column holds 95 % of what chance makes of it, for exchangeable rows without ties."
        )
        tables.append(_quantile_table(model, level, lower_share))
    return Section("Calibration", tuple(filter(None, [words])), facts, tuple(tables), heading="h3")


def _quantile_table(model: Any, level: float, lower_share: float) -> Table:
    """For each group and end: rows, what its quantile does, and the range of the coverage."""
    sides = side_levels(level, model.calibration, lower_share)
    ends = ("both ends",) if model.calibration == "symmetric" else ("the lower end", "the upper end")
    grouped, score = model.calibration_.groups is not None, model.noise_.score
    rows: list[tuple[str | Bar, ...]] = []
    for label, part in model.calibration_.parts():
        q = part.quantiles(level, model.calibration, lower_share)[0].tolist()
        for end, side, each in zip(ends, sides, q, strict=False):
            if side >= 1:
                continue  # an end that is not asked for
            short = len(part) < points_needed(side)
            does = f"infinite: needs {points_needed(side):.0f} rows" if short else move_in_words(score, each, end)
            low, high = long_run_coverage(side, len(part))
            cells = (str(len(part)), does, level_words(side), f"{percent(low)} to {percent(high)}")
            rows.append((str(label), *cells) if grouped else cells)
    header = (*(["group"] if grouped else []), "rows", "what calibration does", "promised", "95 % of coverage")
    more = f"The first {MOST_GROUPS} of {len(rows)}" if len(rows) > MOST_GROUPS else ""
    return Table(more, header, tuple(rows[:MOST_GROUPS]))
