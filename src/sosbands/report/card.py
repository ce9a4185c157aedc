"""write_card: one printable page about a fitted model, for those who decide whether to rely on it."""

from __future__ import annotations

import hashlib
import os
from copy import copy
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sosbands._arguments import check, read_level
from sosbands._files import check_place, written
from sosbands._words import many
from sosbands.comparison import environment
from sosbands.conformal.arguments import read_groups
from sosbands.regressors import SoSBandRegressor
from sosbands.regressors.base import LEARNT
from sosbands.report.card_blocks import Section, level_words, percent, text_html
from sosbands.report.card_coverage import Tested, group_section, limits, region_section, tested_section
from sosbands.report.card_model import BOTH, calibration, certificate, columns, learnt, settings
from sosbands.report.page import filled_in, page_file, policy_of
from sosbands.saving.container import read_facts

SIDES = {BOTH: 0.5, "lower": 1.0, "upper": 0.0}  # part of the miscoverage that rows below the interval may have
VERSIONS = ("sosbands", "python", "numpy", "scipy", "scikit-learn")


def write_card(
    model: Any,
    path: str | os.PathLike[str],
    *,
    X: Any = None,
    y: Any = None,
    groups: Any = None,
    groups_name: str = "groups",
    likelihood_ratio: Any = None,
    confidence_level: float | None = None,
    side: str = "both",
    target_name: str | None = None,
    title: str | None = None,
    model_file: str | os.PathLike[str] | None = None,
) -> Path:
    """Write a page about a fitted `SoSBandRegressor`; the file appears whole or not at all.

    It says what was learnt and from what, which settings are in use and why, the certificate, the calibration and what
    chance makes of its promise, the limits, and versions. With `X` and `y` it also says how many rows are inside their
    interval, in all, by group and by region, with sampling errors. It holds no row of any table, but column names and
    group labels, and asks nothing of the network.

    Parameters
    ----------
    model : SoSBandRegressor
    path : path
        HTML file to write, in a directory that exists.
    X, y : table of shape (n, n_features) and array of shape (n,), optional
        Rows that the model has not seen, and their targets.
    groups : array of shape (n,), optional
        Labels of these rows: needed if the model was calibrated by groups; else coverage is told apart by them.
    groups_name : str
        What the groups are called.
    likelihood_ratio : array of shape (n,), optional
        Given if and only if `conformalize` got it.
    confidence_level : float, optional
        By default that of the model.
    side : {"both", "lower", "upper"}
        The ends that intervals have; one alone takes asymmetric calibration, and all of the miscoverage.
    target_name, title : str, optional
        What is predicted, and the heading.
    model_file : path, optional
        The file that the model was read from or saved to: the card has its SHA-256.

    Returns
    -------
    Path
        The file.
    """
    check_place(path, apart_from=[] if model_file is None else [model_file])
    check("model", type(model).__name__, isinstance(model, SoSBandRegressor), "a SoSBandRegressor")
    check_is_fitted(model, LEARNT)
    check("side", side, side in SIDES, f"one of {list(SIDES)}")
    fine = side == BOTH or model.calibration == "asymmetric"
    check("side", side, fine, "'both' for a model with calibration='symmetric'")
    if (X is None) != (y is None):
        raise ValueError(f"{'y' if y is None else 'X'}=None: expected both X and y, or neither")
    asked_in_fit = model.confidence_level
    level = asked_in_fit if confidence_level is None else read_level(confidence_level)
    model = copy(model)  # its words are those of its level
    model.confidence_level = level
    tested, labels = None, None
    if X is not None:
        by_group = model._calibrated("write_card").groups is not None
        used = {"groups": groups} if by_group else {}
        used |= {} if likelihood_ratio is None else {"likelihood_ratio": likelihood_ratio}
        tested = Tested.of(model, X, y, level, side, SIDES[side], used)
        labels = None if groups is None else read_groups(groups, len(tested))
    target = target_name or (getattr(model, "columns_", None) or {}).get("target")
    sections = [learnt(model), columns(model, target), settings(model), certificate(model)]
    sections.append(calibration(model, level, SIDES[side], side))
    if tested is not None:
        sections.append(tested_section(model, tested, SIDES[side]))
        if labels is not None:
            sections.append(group_section(tested, labels, groups_name, calibrated=by_group))
        sections.append(region_section(model, tested, X))
    sections += [limits(model, asked_in_fit, tested), _made_with(model_file)]
    heading = title or (f"Prediction intervals for {target}" if target else "Prediction intervals")
    with written(path) as partial:
        partial.write_text(_rendered(heading, _lead(model, level, tested), sections), encoding="utf-8")
    return Path(path)


def _lead(model: Any, level: float, tested: Tested | None) -> str:
    """The card in a sentence or two."""
    learnt_from = f"Learnt from {many(len(model.learning_rows_), 'row')}"
    held = "not calibrated" if "calibration_" not in vars(model) else f"calibrated on {len(model.calibration_)}"
    first = f"{learnt_from}, {held}, {level_words(level)} intervals."
    if tested is None:
        return first
    share, (low, high) = tested.share(np.arange(len(tested)))
    return (
        f"{first} {percent(share)} of {many(len(tested), 'row')} with a known target are inside (95 % range "
        f"{percent(low)} to {percent(high)})."
    )


def _made_with(model_file: str | os.PathLike[str] | None) -> Section:
    """Versions, and the file."""
    found = environment()
    facts = [(name, str(found[name])) for name in VERSIONS if name in found]
    facts.append(("card written", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")))
    if model_file is not None:
        data, facts_of_file = Path(model_file).read_bytes(), read_facts(Path(model_file))
        facts += [
            ("model file", Path(model_file).name),
            ("size", f"{len(data)} bytes"),
            ("written by", f"sosbands {facts_of_file.get('sosbands', '?')}, format {facts_of_file.get('format', '?')}"),
            ("SHA-256 of the file", hashlib.sha256(data).hexdigest()),
        ]
    return Section("Versions and file", facts=tuple(facts))


def _rendered(title: str, lead: str, sections: list[Section]) -> str:
    style = page_file("card.css")
    parts = {
        "title": escape(title),
        "lead": text_html(lead),
        "policy": policy_of(style),
        "style": style,
        "sections": "\n".join(section.html() for section in sections),
    }
    return filled_in("card.html", parts)
