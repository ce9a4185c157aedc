"""Numbers in words, for captions, titles and tables: how many runs, of which sizes, which failed."""

from __future__ import annotations

import math
from collections.abc import Iterable

from studies.drawing.figures import grouped, succeeded
from studies.runs.config import Rows

NO_ROWS = "There are no rows to show."
NOISE = {1: "normal", 2: "normal", 3: "log-normal", 4: "two-sided", 5: "exponential", 6: "normal"}  # of the cases
COVERAGE_GAP = r"$\mathrm{ACG}^c$"
BOXES = (
    "Boxes: quartiles, with the median; whiskers: the most distant values within 1.5 box lengths; circles: the others; "
    "numbers at the right edge: values beyond it."
)


def case_words(case: int) -> str:
    """A synthetic case and its noise."""
    return f"case {case}" + (f", {NOISE[case]} noise" if case in NOISE else "")


def span_words(values: Iterable[float]) -> str:
    """The only value, or the smallest and the largest."""
    known = sorted(set(values))
    return "no" if not known else f"{known[0]:g}" if len(known) == 1 else f"{known[0]:g} to {known[-1]:g}"


def count_words(rows: Rows, *names: str, what: str = "repetition") -> str:
    """How many rows that did not fail there are for each value of the columns named, such as "19 to 20 repetitions"."""
    good = succeeded(rows)
    counts = [len(group) for group in (grouped(good, *names) if names else {None: good}).values() if group]
    return f"{span_words(counts)} {what}" + ("" if counts and max(counts) == 1 else "s")


def failure_words(rows: Rows) -> str:
    """A sentence on failed runs, after a space; nothing if there are none."""
    failed = len(rows) - len(succeeded(rows))
    if not failed:
        return ""
    return f" Left out: {failed} of {len(rows)} runs, which failed."


def joined(*sentences: str) -> str:
    """Sentences with one space between them, without empty ones."""
    return " ".join(filter(None, map(str.strip, sentences)))


def cases_words(rows: Rows) -> str:
    """The cases of some rows: "case 4", "cases 4 and 5"."""
    known = [str(case) for case in sorted({row["case"] for row in rows})]
    return f"cases {', '.join(known[:-1])} and {known[-1]}" if len(known) > 1 else f"case {''.join(known)}"


def penalty_words(penalty: float) -> str:
    """A symmetry penalty as a short text."""
    if math.isinf(penalty):
        return "∞"
    if 0 < penalty < 0.01 or penalty >= 1e4:
        exponent = math.floor(math.log10(penalty) + 1e-9)
        factor = penalty / 10**exponent
        return rf"$10^{{{exponent}}}$" if abs(factor - 1) < 1e-6 else rf"${factor:.2g}\cdot 10^{{{exponent}}}$"
    return f"{penalty:.3g}" if penalty < 100 else f"{penalty:.0f}"


def number_words(value: float | None, form: str = ".3g") -> str:
    """A number of a table, a dash for none."""
    return "-" if value is None or math.isnan(value) else f"{value:{form}}"
