"""Table: what the paper claims in words, and what the stored rows say."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from importlib import import_module
from typing import Any

from sosbands.comparison import TextTable
from studies.claims import calibration, real, solver, synthetic
from studies.claims.verdicts import NO_ROWS, Claim, MissingRowsError, Verdict
from studies.runs.config import Config, Rows

CLAIMS: tuple[Claim, ...] = (
    *synthetic.CLAIMS,
    *solver.CLAIMS,
    *real.CLAIMS,
    *calibration.CLAIMS,
)


def compute(config: Config) -> Rows:
    """A row per claim, from rows that are stored; nothing is computed anew."""
    stored = replace(config, compute_missing=False)
    rows = {
        entry: import_module(f"studies.entries.{entry.replace('-', '_')}").compute(stored)
        for entry in dict.fromkeys(claim.entry for claim in CLAIMS)
    }
    found = [{"claim": each.words, "entry": each.entry, **_checked(each, rows[each.entry])} for each in CLAIMS]
    return found if any(row["verdict"] != NO_ROWS for row in found) else []


def draw(rows: Rows) -> TextTable:
    """The claims with their verdicts, and how many there are of each."""
    keep = ("claim", "verdict", "figure", "entry")
    counts = Counter(row["verdict"] for row in rows)
    note = f"{len(rows)} claims: {', '.join(f'{n} {word}' for word, n in counts.most_common())}." if rows else ""
    return TextTable([{name: row[name] for name in keep} for row in rows], note=note)


def _checked(claim: Claim, rows: Rows) -> dict[str, Any]:
    try:
        verdict = claim.check(rows)
    except MissingRowsError as error:
        verdict = Verdict(NO_ROWS, str(error))
    return {"verdict": verdict.word, "figure": verdict.figure, "error_type": None}
